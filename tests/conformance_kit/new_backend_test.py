"""A backend made by `tenon new backend` builds outside the tree, against an installed Tenon, without a C++ compiler, and
conforms; the commands of docs/vendors.md work as they stand there; and a fault in tenon/kit.h cannot hide itself."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

CMAKE = os.environ["TENON_CMAKE"]
BUILD = os.environ["TENON_BUILD"]
SOURCE = pathlib.Path(os.environ["TENON_SOURCE"])
# What building C takes. No c++, no g++, no clang++.
TOOLS = ["cmake", "ninja", "make", "cc", "gcc", "ld", "as", "ar", "ranlib", "nm", "strip", "objdump", "sh", "env", "uname"]


class OutsideTheTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tenon-vendor-")
        cls.addClassCleanup(folder.cleanup)
        cls.top = pathlib.Path(folder.name).resolve()
        cls.prefix = cls.top / "tenon"
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", str(cls.prefix)], check=True, capture_output=True)
        cls.tools = cls.top / "tools"
        cls.tools.mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (cls.tools / tool).symlink_to(found)
        assert not any(shutil.which(cxx, path=str(cls.tools)) for cxx in ("c++", "g++", "clang++", "CC"))
        cls.acme = cls.top / "acme"
        cls.call("tenon", "new", "backend", "acme", str(cls.acme))
        cls.plugin = cls.build(cls.acme, cls.acme / "build")

    @classmethod
    def environment(cls, cxx=False):
        path = [str(cls.prefix / "bin"), os.environ["PATH"] if cxx else str(cls.tools)]
        return {"PATH": ":".join(path), "TENON": str(cls.prefix), "HOME": str(cls.top), "LANG": "C.UTF-8"}

    @classmethod
    def call(cls, *command, cxx=False, check=True):
        env = cls.environment(cxx)
        program = shutil.which(command[0], path=env["PATH"])
        done = subprocess.run([program, *command[1:]], cwd=cls.top, env=env, capture_output=True, text=True, timeout=600)
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    @classmethod
    def build(cls, source, out, *flags, cxx=False):
        cls.call("cmake", "-S", str(source), "-B", str(out), f"-DCMAKE_PREFIX_PATH={cls.prefix}", *flags, cxx=cxx)
        built = cls.call("cmake", "--build", str(out), cxx=cxx)
        if "-I" not in " ".join(flags):
            assert "warning:" not in built.stdout + built.stderr, built.stdout + built.stderr
        return out / "libtenon_backend_acme.so"

    def report(self, plugin, level, *more):
        done = self.call("tenon", "conformance", "--plugin", str(plugin), "--level", str(level), "--json", *more, check=False)
        return json.loads(done.stdout)

    def test_the_template_passes_every_level(self):
        report = self.report(self.plugin, 6)
        self.assertTrue(report["passed"], [c for c in report["checks"] if c["state"] == "failed"])
        self.assertEqual((report["plugin"], report["reached"]), ("com.example.acme", 6))

    def test_the_six_primitives_are_tried_in_f32_i64_and_bool(self):
        for check in self.report(self.plugin, 3)["checks"]:
            if check["check"].startswith(("3.values", "3.strides")):
                self.assertEqual(check["state"], "passed")
                self.assertGreater(check["tried"], 40, check["check"])

    def test_it_has_at_most_300_lines_of_c(self):
        lines, comment = 0, False
        for file in [*self.acme.glob("*.c"), *self.acme.glob("*.h")]:
            for line in file.read_text().splitlines():
                text = line.strip()
                starts = text.startswith("/*")
                if text and not starts and not comment:
                    lines += 1
                comment = (comment or starts) and "*/" not in text
                self.assertLessEqual(len(line), 160, f"{file.name}: {line}")
        self.assertLessEqual(lines, 300)

    def test_nothing_of_the_tree_or_the_template_s_name_is_left_in_it(self):
        for file in self.acme.iterdir():
            if file.is_file():
                self.assertIsNone(re.search(r"\bnull|NULL_|dev\.tenon", file.read_text()), file)

    def test_the_same_in_cxx(self):
        self.call("tenon", "new", "backend", "acme", str(self.top / "cxx"), "--cxx")
        plugin = self.build(self.top / "cxx", self.top / "cxx/build", cxx=True)
        self.assertFalse(list((self.top / "cxx").glob("*.c")))
        self.assertTrue(self.report(plugin, 3)["passed"])

    def test_the_commands_of_the_guide_work_as_they_stand(self):
        page = (SOURCE / "docs/vendors.md").read_text()
        commands = "".join(re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S))
        self.assertGreaterEqual(len(commands.splitlines()), 9)
        with tempfile.TemporaryDirectory(prefix="tenon-guide-") as folder:
            for command in commands.splitlines():
                done = subprocess.run(["/bin/sh", "-ec", command], cwd=folder, env=self.environment(), capture_output=True, text=True, timeout=600)
                self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
            self.assertTrue(json.loads((pathlib.Path(folder) / "acme/report.json").read_text())["passed"])

    # Each would be copied by every vendor: the kit's faults must be found by what does not use it.
    KIT_FAULTS = {
        "the larger of two is the smaller": ("return (a > b) == (larger != 0) ? a : b;", "return (a < b) == (larger != 0) ? a : b;"),
        "ties go away from zero": ("return rintf(a);", "return roundf(a);"),
        "a NaN becomes the least integer": ("if (f != f) return 0;", "if (f != f) return INT64_MIN;"),
        "a walk does not come back to the start of an axis": ("(s->dim[i] - 1) : s->step", "(s->dim[i] - 2) : s->step"),
        "the flat index counts the first axis": ("n.a == TN_INDEX_FLAT ? w->number", "n.a == TN_INDEX_FLAT ? w->index[0]"),
        "the last of equals wins": ("larger ? v.f > r->best.f", "larger ? v.f >= r->best.f"),
        "an empty product is 0": ("tnk_i64(r->monoid == TN_MONOID_PROD)", "tnk_i64(0)"),
        "minus zero has no sign": ("a != a || a == 0 ? a :", "a != a ? a : a == 0 ? 0.0f :"),
    }

    def test_a_fault_of_the_kit_is_found(self):
        kit = (self.prefix / "include/tenon/kit.h").read_text()
        for number, (what, (good, bad)) in enumerate(self.KIT_FAULTS.items()):
            with self.subTest(what):
                self.assertEqual(kit.count(good), 1, good)
                include = self.top / f"faulty{number}"
                (include / "tenon").mkdir(parents=True)
                (include / "tenon/kit.h").write_text(kit.replace(good, bad))
                plugin = self.build(self.acme, include / "build", f"-DCMAKE_C_FLAGS=-I{include}")
                report = self.report(plugin, 3)
                self.assertEqual({c["level"] for c in report["checks"] if c["state"] == "failed"}, {3}, what)


class TheCommand(unittest.TestCase):
    def tenon(self, *args):
        return subprocess.run([os.environ["TENON"], *args], capture_output=True, text=True, timeout=60)

    def test_overwrites_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "mine.c").write_text("int x;")
            done = self.tenon("new", "backend", "acme", folder)
            self.assertEqual(done.returncode, 1)
            self.assertIn("TN-CLI-038", done.stderr)
            self.assertEqual([p.name for p in pathlib.Path(folder).iterdir()], ["mine.c"])

    def test_refuses_names_that_cannot_be_identifiers(self):
        for name in ("Acme", "2x", "a-b", "", "a" * 25):
            self.assertEqual(self.tenon("new", "backend", name).returncode, 2, name)


class AbiCheck(unittest.TestCase):
    def check(self, file):
        done = subprocess.run([os.environ["TENON"], "abi", "check", str(file), "--json"], capture_output=True, text=True, timeout=60)
        return done.returncode, json.loads(done.stdout) if done.stdout else None

    def test_a_good_plugin_is_in_use(self):
        code, row = self.check(pathlib.Path(os.environ["TENON_PLUGINS"]) / "libtenon_backend_sim.so")
        self.assertEqual((code, row["good"], row["verdict"], row["code"]), (0, True, "in-use", 0))
        self.assertEqual((row["id"], row["exports"], row["abi"]), ("dev.tenon.sim", ["tn_plugin_query"], row["host_abi"]))

    def test_another_library_is_no_plugin(self):
        library = next(pathlib.Path(os.environ["TENON"]).parent.parent.joinpath("lib").glob("libtenon.so*"))
        code, row = self.check(library)
        self.assertEqual((code, row["verdict"], row["explain"]), (1, "not-a-plugin", "TN-LOAD-001"))

    def test_text_is_bad_elf_and_an_absent_file_has_its_own_exit_code(self):
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(b"hello, this is no library")
            file.flush()
            code, row = self.check(file.name)
            self.assertEqual((code, row["verdict"]), (1, "bad-elf"))
        self.assertEqual(self.check("/nowhere/x.so"), (3, None))


if __name__ == "__main__":
    unittest.main()
