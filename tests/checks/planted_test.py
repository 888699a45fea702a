"""Each check of tools/check finds a violation planted in a copy of the tree's parts."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(name, *args):
    result = subprocess.run([sys.executable, str(ROOT / "tools/check" / name), *map(str, args)], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


class Planted(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name).resolve()

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def copy_abi(self):
        shutil.copytree(ROOT / "abi", self.root / "abi")

    def edit(self, path, old, new):
        file = self.root / path
        text = file.read_text()
        self.assertIn(old, text)
        file.write_text(text.replace(old, new, 1))

    def expect(self, result, *words):
        code, output = result
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)


class Layers(Planted):
    def plant(self, path, include, *targets):
        for target in targets:
            self.write(target, "")
        self.write(path, f"// a file\n#include {include}\n")
        return check("layers.py", "--root", self.root)

    def test_passes_arrows_that_are_drawn(self):
        for path, include in [("kernel/a.cpp", "<tenon/types.h>"), ("loader/a.cpp", '"kernel/x.h"'), ("loader/b.cpp", '"loader/cold/elf.h"'),
                              ("backends/cpu/a.cpp", '"ops/reference/x.h"'), ("framework/nn/a.cpp", '"framework/core/x.h"'),
                              ("tools/cli/a.cpp", '"loader/cold/elf.h"'), ("tests/x/a.cpp", '"kernel/x.h"'), ("backends/cpu/b.cpp", "<hwy/highway.h>"),
                              ("backends/cuda/a.cpp", '"backends/gpu_common/x.h"'), ("abi/include/tenon/a.h", "<stdint.h>")]:
            code, output = self.plant(path, include)
            self.assertEqual(code, 0, output)

    def test_finds_arrows_that_are_not(self):
        for path, include, words in [("kernel/a.cpp", '"ops/op.h"', "kernel may not include ops"), ("ops/a.cpp", '"kernel/x.h"', "ops may not include kernel"),
                                     ("backends/cpu/a.cpp", '"kernel/x.h"', "backends/cpu may not include kernel"),
                                     ("backends/cpu/a.cpp", '"backends/sim/x.h"', "backends/cpu may not include backends/sim"),
                                     ("framework/core/a.cpp", '"framework/nn/x.h"', "framework/core may not include framework/nn"),
                                     ("framework/core/a.cpp", '"kernel/x.h"', "framework/core may not include kernel"),
                                     ("loader/cold/a.cpp", '"loader/x.h"', "loader/cold may not include loader"),
                                     ("tools/cli/a.cpp", '"loader/search.h"', "tools may not include loader"),
                                     ("kernel/a.cpp", '"tests/x/a.h"', "kernel may not include tests"),
                                     ("kernel/a.cpp", "<boost/dll.hpp>", "boost is for loader only"),
                                     ("framework/core/a.cpp", "<dnnl.hpp>", "dnnl is for backends/onednn"),
                                     ("abi/include/tenon/a.h", "<string.h>", "abi may include")]:
            with self.subTest(path=path, include=include):
                self.expect(self.plant(path, include), words, f"{path}:2")
                (self.root / path).unlink()

    def test_finds_an_arrow_hidden_in_a_relative_path(self):
        self.expect(self.plant("ops/a.cpp", '"../kernel/x.h"', "kernel/x.h"), "ops may not include kernel")

    def test_finds_strangers_at_the_top(self):
        self.write("third_party/x.h", "")
        self.write("notes.txt", "")
        self.expect(check("layers.py", "--root", self.root), "third_party: the top level holds no such folder", "notes.txt")


class Sizes(Planted):
    def test_finds_a_file_over_the_limit(self):
        self.write("kernel/a.cpp", "\n" * 801)
        self.write("kernel/b.cpp", "\n" * 800)
        code, output = check("sizes.py", "--root", self.root)
        self.assertEqual((code, output.count("lines, at most")), (1, 1), output)


class AbiLock(Planted):
    def setUp(self):
        super().setUp()
        self.copy_abi()
        code, output = check("abi_lock.py", "--root", self.root, "--update")
        self.assertEqual(code, 0, output)

    def run_check(self):
        return check("abi_lock.py", "--root", self.root)

    def test_passes_the_same_headers(self):
        self.assertEqual(self.run_check()[0], 0)

    def test_passes_a_field_at_the_end_of_an_extensible_struct(self):
        self.edit("abi/include/tenon/types.h", "double flops, bytes; } tn_cost;", "double flops, bytes; uint64_t extra; } tn_cost;")
        code, output = self.run_check()
        self.assertEqual(code, 0, output)
        self.assertIn("added: field tn_cost.extra", output)

    def test_passes_a_new_constant_and_a_new_function(self):
        self.edit("abi/include/tenon/types.h", "TN_BOUND_VIEW };", "TN_BOUND_VIEW, TN_BOUND_NEW };")
        self.edit("abi/include/tenon/runtime.h", "TN_API uint32_t tn_version(void);", "TN_API uint32_t tn_version(void); TN_API void tn_new(void);")
        code, output = self.run_check()
        self.assertEqual(code, 0, output)
        self.assertIn("added: function tn_new", output)

    def test_finds_a_field_in_the_middle(self):
        self.edit("abi/include/tenon/types.h", "double flops, bytes; } tn_cost;", "double flops, extra, bytes; } tn_cost;")
        self.expect(self.run_check(), "field tn_cost.bytes was 16 8, is 24 8", "tn_cost.extra was put inside")

    def test_finds_a_field_that_is_gone_or_narrower(self):
        self.edit("abi/include/tenon/types.h", "double flops, bytes; } tn_cost;", "double flops; float bytes; } tn_cost;")
        self.expect(self.run_check(), "field tn_cost.bytes was 16 8, is 16 4")

    def test_finds_any_growth_of_a_frozen_struct(self):
        self.edit("abi/include/tenon/runtime.h", "uint32_t queue, reserved; uint64_t value; } tn_point;", "uint32_t queue, reserved; uint64_t value, more; } tn_point;")
        self.edit("abi/include/tenon/runtime.h", "TN_CHECK_SIZE(tn_point, 16);", "")
        self.expect(self.run_check(), "struct tn_point was frozen 16, is frozen 24")

    def test_finds_an_entry_moved_in_the_plugin_table(self):
        self.edit("abi/include/tenon/plugin.h", "  void (*close)(tn_instance*);", "  void (*pause)(tn_instance*); void (*close)(tn_instance*);")
        self.expect(self.run_check(), "tn_plugin.close was 32 8, is 40 8")

    def test_finds_a_constant_with_another_value(self):
        self.edit("abi/include/tenon/types.h", 'X(TN_E_ARG, -1,', 'X(TN_E_ARG, -51,')
        self.expect(self.run_check(), "constant TN_E_ARG was -1, is -51")

    def test_finds_a_function_with_another_signature_or_none(self):
        self.edit("abi/include/tenon/runtime.h", "TN_API uint32_t tn_version(void);", "TN_API uint64_t tn_version(void);")
        self.edit("abi/include/tenon/runtime.h", "TN_API uint32_t tn_threads(tn_runtime*);", "")
        self.expect(self.run_check(), "function tn_version", "function tn_threads is gone")

    def test_guards_the_committed_lock(self):
        shutil.copy(ROOT / "abi/lock/v0.lock", self.root / "abi/lock/v0.lock")
        self.edit("abi/include/tenon/types.h", "double flops, bytes; } tn_cost;", "double bytes, flops; } tn_cost;")
        self.expect(self.run_check(), "tn_cost.flops")


class Headers(Planted):
    def setUp(self):
        super().setUp()
        self.copy_abi()

    def test_finds_padding(self):
        self.write("abi/include/tenon/extra.h", "#include <stdint.h>\nstruct tn_x { uint8_t a; uint32_t b; };\nextern struct tn_x tn_an_x;\n")
        self.expect(check("headers.py", "--root", self.root), "extra.h as c11 by gcc", "padd")

    def test_finds_a_header_that_needs_another_before_it(self):
        self.write("abi/include/tenon/extra.h", "extern tn_diag tn_the_diag;\n")
        self.expect(check("headers.py", "--root", self.root), "extra.h as c99")


class Exports(Planted):
    def build(self, name, source, *flags):
        out = self.root / "plugins" / name
        out.parent.mkdir(exist_ok=True)
        subprocess.run(["c++", "-shared", "-fPIC", "-x", "c++", "-", "-x", "none", "-o", out, *flags], input=source, text=True, check=True)
        return out

    def check(self):
        return check("exports.py", "--plugins", self.root / "plugins")

    def test_passes_a_plugin_with_one_symbol(self):
        self.build("libtenon_backend_a.so", 'extern "C" int tn_plugin_query() { return 0; }')
        code, output = self.check()
        self.assertEqual(code, 0, output)

    def test_finds_a_second_symbol_and_none(self):
        self.build("libtenon_backend_a.so", 'extern "C" int tn_plugin_query() { return 0; } extern "C" int helper() { return 0; }')
        self.build("libtenon_backend_b.so", "static int x; int* hidden() __attribute__((visibility(\"hidden\"))); int* hidden() { return &x; }")
        self.expect(self.check(), "helper", "libtenon_backend_b.so: exports nothing")

    def test_finds_a_unique_symbol(self):
        self.build("libtenon_backend_a.so", 'template <class T> struct S { static int x; }; template <class T> int S<T>::x; extern "C" int* tn_plugin_query() { return &S<int>::x; }')
        self.expect(self.check(), "STB_GNU_UNIQUE")

    def test_finds_a_linked_driver(self):
        driver = self.build("libdriver.so", "int driver() { return 0; }", "-Wl,-soname,libcuda.so.1")
        self.build("libtenon_backend_a.so", 'int driver(); extern "C" int tn_plugin_query() { return driver(); }', str(driver))
        self.expect(self.check(), "links libcuda.so.1")

    def test_finds_a_runtime_that_lacks_a_function_or_has_one_more(self):
        self.copy_abi()
        library = self.build("libtenon.so", 'extern "C" int tn_version() { return 0; } extern "C" int tn_secret() { return 0; }')
        self.expect(check("exports.py", "--root", self.root, "--runtime", library), "exports tn_secret", "does not export tn_call of")


class ErrorPages(Planted):
    def test_finds_an_id_without_a_section_and_a_section_that_stands_twice(self):
        self.write("ops/a.cpp", "return fail(d, s, error_id(kShape, 7), \"x\");")
        self.write("loader/verdicts.def", 'X(3, Unreadable, "unreadable", Find, "...")')
        self.write("docs/errors/TN-SHAPE.md", "## TN-SHAPE-001 a\n## TN-SHAPE-001 b\n")
        self.expect(check("error_pages.py", "--root", self.root), "TN-SHAPE-007 of ops/a.cpp has no section in docs/errors/TN-SHAPE.md",
                    "TN-LOAD-003 of loader/verdicts.def", "TN-SHAPE-001: has 2 sections")

    def test_passes_when_each_id_is_explained(self):
        self.write("ops/a.cpp", "error_id(ops::kShape, 1)")
        self.write("docs/errors/TN-SHAPE.md", "## TN-SHAPE-001 a\n")
        self.assertEqual(check("error_pages.py", "--root", self.root)[0], 0)


class Snippets(Planted):
    def run_page(self, text):
        (self.root / "build").mkdir(exist_ok=True)
        return check("snippets.py", "--build", self.root / "build", self.write("page.md", text))

    def test_passes_a_program_that_prints_what_the_page_shows(self):
        code, output = self.run_page("```c\n#include <stdio.h>\nint main(void) { puts(\"a 12 b\"); return 0; }\n```\n\n```text\na ... b\n```\n")
        self.assertEqual(code, 0, output)

    def test_reads_fragments_without_compiling_them(self):
        self.assertEqual(self.run_page("```cpp\nauto y = f(x);\n```\n")[0], 0)

    def test_finds_a_program_that_does_not_compile(self):
        self.expect(self.run_page("text\n```cpp\nint main() { return undeclared; }\n```\n"), "page.md:2", "undeclared")

    def test_finds_a_program_that_fails(self):
        self.expect(self.run_page("```c\nint main(void) { return 3; }\n```\n"), "ended with 3")

    def test_finds_output_that_differs(self):
        self.expect(self.run_page("```c\n#include <stdio.h>\nint main(void) { puts(\"a\"); return 0; }\n```\n```text\nb\n```\n"), "the page shows")

    def test_compares_what_the_command_prints(self):
        command = self.write("build/bin/tenon", "#!/bin/sh\necho devices: 1\n")
        command.chmod(0o755)
        self.assertEqual(self.run_page("```console\n$ tenon devices\ndevices: ...\n```\n")[0], 0)
        self.expect(self.run_page("```console\n$ tenon devices\ndevices: 2\n```\n"), "devices: 1")

    def test_finds_a_translation_out_of_step(self):
        a = self.write("a.md", "one\n```console\n$ x\n```\n")
        b = self.write("b.md", "eins\n```console\n$ y\n```\n")
        self.assertEqual(check("snippets.py", "--same", a, a)[0], 0)
        self.expect(check("snippets.py", "--same", a, b), "block 1")


if __name__ == "__main__":
    unittest.main()
