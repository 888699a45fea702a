"""Plugins in plain C, built from the headers of every ABI version by gcc and clang, run by the hosts of every version and by
today's libtenon.so: every pair uses the highest common version, or is refused with both ranges named.

    history_test.py APP [unittest arguments]     APP: the program history_app of the build

To the versions of abi/history two are added that do not exist: one older, whose tables are shorter, and one newer, whose structs are
longer (derive.py). So the matrix is never one by one.
"""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import derive

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
APP = None
COMPILERS = [cc for cc in ("gcc", "clang") if shutil.which(cc)]


def number(version):
    major, minor = (int(part) for part in version.split("."))
    return major << 16 | minor


def run(*args, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "XDG_"))}
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, env={**kept, **env})


def expected(plugin, host):
    """The answer for two ranges [min, max] of version texts."""
    highest = min(plugin[1], host[1], key=number)
    if number(highest) >= max(number(plugin[0]), number(host[0])):
        return f"ok {highest}"
    return f"plugin [{plugin[0]}, {plugin[1]}], host [{host[0]}, {host[1]}]"


class History:
    """Header folders, plugins and hosts, made once."""

    def __init__(self, folder):
        self.folder = folder
        made = run(sys.executable, ROOT / "tools/check/abi_history.py", "--draft", folder / "headers")
        assert made.returncode == 0, made.stdout + made.stderr
        self.real = sorted((p.name for p in (folder / "headers").iterdir()), key=number)
        self.current = self.real[-1]
        major, minor = (int(part) for part in self.current.split("."))
        self.later = f"{major}.{minor + 1}"
        self.grown = derive.lengthen(self.copy(self.later, major, minor + 1))
        self.versions = [*self.real, self.later]
        # The older one is what the newest real version was grown from; its number is free only where no real one has it.
        self.earlier = f"{major}.{minor - 1}" if minor and f"{major}.{minor - 1}" not in self.real else None
        if self.earlier:
            derive.shorten(self.copy(self.earlier, major, minor - 1))
            self.versions.insert(0, self.earlier)
        self.plugins, self.hosts = {}, {}
        first, last = self.versions[0], self.versions[-1]
        for version in self.versions:
            self.hosts[version] = self.compile("gcc" if "gcc" in COMPILERS else COMPILERS[0], version, HERE / "history_host.c", f"host-{version}", "-ldl")
            # Its own version only; it and all older; and one that also claims what is to come.
            for low, high in sorted({(version, version), (first, version), (first, last)}):
                for cc in COMPILERS:
                    ranges = [f"-DHISTORY_MIN={number(low)}u", f"-DHISTORY_MAX={number(high)}u", "-fPIC", "-shared", "-fvisibility=hidden"]
                    name = f"libtenon_backend_history-{version}-{low}-{high}-{cc}.so"
                    self.plugins[version, (low, high), cc] = self.compile(cc, version, HERE / "history_plugin.c", name, *ranges)

    def copy(self, version, major, minor):
        target = self.folder / "headers" / version / "tenon"
        shutil.copytree(self.folder / "headers" / self.current / "tenon", target)
        derive.set_version(target, major, minor)
        return target

    def compile(self, cc, version, source, name, *more):
        out = self.folder / name
        flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", f"-I{self.folder / 'headers' / version}"]
        flags += ["-DHISTORY_LATER"] if version == self.later else []
        made = run(cc, *flags, source, "-o", out, *more)
        assert made.returncode == 0, f"{cc} {version}: {made.stderr}"
        return out


class Matrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.history = History(pathlib.Path(cls.temporary.name).resolve())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def answer(self, *command):
        # What the loader remembers of plugins must not outlive the test.
        result = run(*command, XDG_CACHE_HOME=self.temporary.name)
        self.assertEqual(result.returncode, 0, f"{command}: {result.stdout}{result.stderr}")
        return result.stdout

    def test_every_plugin_with_the_host_of_every_version(self):
        h = self.history
        seen = set()
        for (version, claim, cc), host in itertools.product(h.plugins, h.versions):
            for host_range in {(host, host), (h.versions[0], host)}:
                with self.subTest(plugin=version, claims=claim, cc=cc, host=host_range):
                    out = self.answer(h.hosts[host], number(host_range[0]), number(host_range[1]), h.plugins[version, claim, cc])
                    want = expected(claim, host_range)
                    self.assertIn(want, out)
                    seen.add(want.split()[0])
        self.assertEqual(seen, {"ok", "plugin"}, "the matrix should hold both agreements and refusals")

    def test_every_plugin_with_the_library_of_today(self):
        h = self.history
        host_range = (h.current, h.current)  # 0.x promises nothing across minors
        for (version, claim, cc), plugin in h.plugins.items():
            with self.subTest(plugin=version, claims=claim, cc=cc):
                self.assertIn(expected(claim, host_range), self.answer(APP, plugin))

    def test_derived_versions_differ_in_size_and_cover_every_struct_that_may_grow(self):
        h = self.history
        for name in ("tn_plugin", "tn_host", "tn_kernel_info", "tn_device_ref", "tn_op", "tn_cold"):
            self.assertIn(name, h.grown)
        probe = '#include <stdio.h>\n#include <tenon/plugin.h>\nint main(void) { printf("%zu %zu %zu", sizeof(tn_plugin), sizeof(tn_host), sizeof(tn_kernel_info)); return 0; }\n'
        (h.folder / "probe.c").write_text(probe)
        sizes = {v: [int(n) for n in self.answer(h.compile(COMPILERS[0], v, h.folder / "probe.c", f"probe-{v}")).split()] for v in h.versions}
        self.assertEqual([b - a for a, b in zip(sizes[h.current], sizes[h.later])], [24, 24, 24])
        if h.earlier:
            self.assertTrue(all(a < b for a, b in zip(sizes[h.earlier][:2], sizes[h.current][:2])), sizes)


if __name__ == "__main__":
    APP = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
