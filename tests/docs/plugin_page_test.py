"""The plugin and the program of docs/abi.md, exactly as they stand there, built as the page says and run together.

    tests/docs/plugin_page_test.py --build build/dev [unittest arguments]
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
options = argparse.Namespace(build=None)


def run(*command, **more):
    ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, **more)
    if ran.returncode != 0:
        raise AssertionError(f"{command} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}")
    return ran.stdout


def environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    return dict(kept, NO_COLOR="1", **more)


class PluginPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.top = pathlib.Path(folder.name)
        cls.plugins = cls.top / "plugins"
        cls.plugins.mkdir()
        blocks = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs/abi.md").read_text(), re.M | re.S)
        plugin, program = [b for b in blocks if "tn_plugin_query(" in b], [b for b in blocks if "int main(" in b]
        (cls.top / "negate.c").write_text(plugin[0])
        (cls.top / "who.c").write_text(program[0])
        flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-missing-field-initializers", f"-I{ROOT}/abi/include"]
        cls.library = cls.plugins / "libtenon_backend_negate.so"
        run("cc", *flags, "-fPIC", "-shared", "-fvisibility=hidden", cls.top / "negate.c", "-o", cls.library)
        lib = options.build / "lib"
        run("cc", *flags, cls.top / "who.c", "-o", cls.top / "who", f"-L{lib}", f"-Wl,-rpath,{lib}", "-ltenon")

    def test_exports_one_symbol_and_links_the_c_library_alone(self):
        run(sys.executable, ROOT / "tools/check/exports.py", "--plugins", self.plugins)

    def test_is_a_candidate_and_computes(self):
        lines = run(self.top / "who", env=environment(TENON_PLUGIN_PATH=str(self.plugins))).splitlines()
        self.assertTrue(any(line.startswith("example.neg.f32: ") for line in lines), lines)
        self.assertEqual(lines[-1], "-1 2 -3 4")

    def test_without_it_another_kernel_computes_the_same(self):
        lines = run(self.top / "who", env=environment()).splitlines()
        self.assertFalse(any(line.startswith("example.") for line in lines), lines)
        self.assertEqual(lines[-1], "-1 2 -3 4")

    def test_the_command_shows_it_and_says_why_it_refuses(self):
        command = options.build / "bin/tenon"
        if not command.exists():
            self.skipTest("the tree was built without the tenon command")
        env = environment(TENON_PLUGIN_PATH=str(self.plugins))
        self.assertIn("org.example.negate", run(command, "plugins", env=env))
        self.assertIn("example.neg.f32", run(command, "why", "neg", "f32[1000,1000]", env=env))
        refused = [line for line in run(command, "why", "neg", "i32[4]", "--json", env=env).splitlines() if "example.neg.f32" in line]
        self.assertIn("operand 0 is i32, kernel takes f32", "".join(refused))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    options, rest = parser.parse_known_args()
    options.build = options.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
