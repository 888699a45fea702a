"""An installed tree, moved to another place, serves programs of other projects.

    tests/install/install_test.py --build build/dev [--cmake PATH] [unittest arguments]

Installs once into a folder that is then moved, and works with the moved one only. Its name holds a blank.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
OUTSIDE = HERE / "outside"
options = argparse.Namespace(build=None, cmake="cmake")


def clean_environment(**more):
    """No variable that could lead to the build tree."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "LD_", "PKG_CONFIG", "CMAKE_", "XDG_"))}
    return dict(kept, **{k: str(v) for k, v in more.items()})


def run(*command, cwd="/", env=None):
    ran = subprocess.run([str(c) for c in command], cwd=cwd, env=env or clean_environment(), capture_output=True, text=True, timeout=300)
    if ran.returncode != 0:
        raise AssertionError(f"{command} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def run_paths(file):
    return re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", run("readelf", "-d", file))


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tenon-install-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.top = pathlib.Path(cls.folder.name).resolve()
        cls.first, cls.prefix = cls.top / "first", cls.top / "moved here" / "tenon"
        run(options.cmake, "--install", options.build, "--prefix", cls.first)
        cls.prefix.parent.mkdir()
        cls.first.rename(cls.prefix)
        cls.by_cmake = cls.build_by_cmake()
        cls.by_pkg_config = cls.build_by_pkg_config()

    @classmethod
    def build_by_cmake(cls):
        out = cls.top / "by-cmake"
        run(options.cmake, "-S", OUTSIDE, "-B", out, f"-DCMAKE_PREFIX_PATH={cls.prefix}")
        run(options.cmake, "--build", out)
        return out

    @classmethod
    def build_by_pkg_config(cls):
        """As a person writes it in a Makefile; the run path is the program's own business there."""
        out = cls.top / "by-pkg-config"
        out.mkdir()
        env = clean_environment(PKG_CONFIG_PATH=cls.prefix / "lib/pkgconfig")
        for source, compiler, package in [("add.c", ["cc", "-std=c11"], "tenon"), ("fit.cpp", ["c++", "-std=c++20"], "tenon-framework")]:
            flags = shlex.split(run("pkg-config", "--cflags", "--libs", package, env=env))
            folder = run("pkg-config", "--variable=libdir", package, env=env).strip().replace("\\ ", " ")
            run(*compiler, OUTSIDE / source, "-o", out / pathlib.Path(source).stem, *flags, f"-Wl,-rpath,{folder}")
        return out

    def programs(self):
        return [self.by_cmake, self.by_pkg_config]

    def check_add(self, program, cwd):
        """Runs `add`; returns the plugin files it looked at."""
        lines = run(program, cwd=cwd).splitlines()
        self.assertIn("sum 11 22 33 44", lines)
        return [line.split(" ", 2) for line in lines if line.startswith("plugin ")]

    def plugin_folder(self):
        return self.prefix / "lib/tenon/plugins"

    def test_puts_everything_where_it_is_documented(self):
        for path in ["lib/libtenon.so", "lib/libtenon_framework.so", "include/tenon/runtime.h", "include/tenon/ops.def",
                     "include/tenon/tenon.hpp", "include/tenon/nn/layers.hpp", "lib/cmake/Tenon/TenonConfig.cmake",
                     "lib/pkgconfig/tenon.pc", "lib/pkgconfig/tenon-framework.pc", "lib/tenon/plugins/libtenon_backend_sim.so"]:
            self.assertTrue((self.prefix / path).exists(), path)

    def test_installs_every_plugin_that_was_built(self):
        built = {p.name for p in (options.build / "lib/tenon/plugins").glob("libtenon_backend_*.so")}
        self.assertEqual({p.name for p in self.plugin_folder().glob("*.so")}, built)

    def test_run_paths_are_relative_to_the_file(self):
        for file in [*self.prefix.glob("lib/libtenon*.so.*"), *self.plugin_folder().glob("*.so"), *self.prefix.glob("bin/*")]:
            for path in run_paths(file):
                self.assertRegex(path, r"^\$ORIGIN(/|$)", file)

    def test_no_text_file_names_the_build_or_the_first_place(self):
        for file in [*self.prefix.glob("lib/cmake/Tenon/*"), *self.prefix.glob("lib/pkgconfig/*")]:
            for place in [self.first, self.prefix, options.build, HERE.parents[1]]:
                self.assertNotIn(str(place), file.read_text(), file)

    def test_public_headers_need_nothing_else(self):
        headers = sorted(p.relative_to(self.prefix / "include") for p in self.prefix.glob("include/tenon/**/*.hpp"))
        source = self.top / "all.cpp"
        source.write_text("".join(f"#include <{h}>\n" for h in headers))
        run("c++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", self.prefix / "include", source)

    # ggml-org/llama.cpp#26265, #17491: run from another folder, or moved, a program finds no backend, not even that of the CPU.
    def test_llama_cpp_26265_a_moved_tree_runs_from_the_root_folder_and_finds_the_plugins(self):
        for folder in self.programs():
            plugins = self.check_add(folder / "add", cwd="/")
            found = {path for _, code, path in plugins if path.startswith(str(self.plugin_folder()))}
            self.assertEqual(len(found), len(list(self.plugin_folder().glob("*.so"))), plugins)

    def test_cpp_program_trains_saves_and_loads(self):
        for folder in self.programs():
            self.assertEqual(run(folder / "fit", self.top / "line.safetensors"), "line 3.00 -1.00\n")

    def test_llama_cpp_26265_runs_through_a_symbolic_link_in_another_folder(self):
        elsewhere = self.top / "elsewhere"
        elsewhere.mkdir()
        for i, folder in enumerate(self.programs()):
            link = elsewhere / f"add{i}"
            link.symlink_to(folder / "add")
            self.assertEqual(self.check_add(link, cwd=elsewhere), self.check_add(folder / "add", cwd="/"))

    def test_llama_cpp_26265_a_plugin_in_the_current_folder_is_not_even_looked_at(self):
        trap = self.top / "trap"
        trap.mkdir()
        witness = trap / "it-ran"
        source = trap / "trap.c"
        source.write_text(f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{witness}", "w")); }}\n')
        for name in ["libtenon_backend_x.so", "libtenon_backend_cpu.so", "libtenon.so.0", "libtenon_framework.so.0"]:
            run("cc", "-shared", "-fPIC", source, "-o", trap / name)
        for program in [self.by_cmake / "add", self.by_pkg_config / "add"]:
            for _, _, path in self.check_add(program, cwd=trap):
                self.assertFalse(path.startswith(str(trap)), path)
        self.assertFalse(witness.exists())

    def test_llama_cpp_26265_the_command_runs_from_the_root_folder_and_through_a_link(self):
        command = self.prefix / "bin/tenon"
        if not command.exists():
            self.skipTest("the tree was built without the tenon command")
        link = self.top / "tenon-link"
        link.symlink_to(command)
        for program in [command, link]:
            entries = [json.loads(line) for line in run(program, "plugins", "--json").splitlines()]
            found = {e["path"] for e in entries if e["path"].startswith(str(self.plugin_folder()))}
            self.assertEqual(len(found), len(list(self.plugin_folder().glob("*.so"))), entries)

    def test_llama_cpp_26265_the_cpu_works_without_any_plugin_file(self):
        bare = self.top / "bare"
        shutil.copytree(self.prefix, bare, symlinks=True)
        shutil.rmtree(bare / "lib/tenon")
        env = clean_environment(LD_LIBRARY_PATH=bare / "lib")
        self.assertIn("sum 11 22 33 44", run(self.by_cmake / "add", env=env))

    def test_components_can_be_installed_alone(self):
        alone = self.top / "alone"
        run(options.cmake, "--install", options.build, "--prefix", alone, "--component", "plugins")
        files = [p for p in alone.rglob("*") if p.is_file()]
        self.assertTrue(files)
        self.assertEqual({p.parent for p in files}, {alone / "lib/tenon/plugins"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", required=True)
    parser.add_argument("--cmake", default="cmake")
    options, rest = parser.parse_known_args()
    options.build = pathlib.Path(options.build).resolve()
    unittest.main(argv=[sys.argv[0], *rest])
