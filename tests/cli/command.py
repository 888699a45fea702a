"""Running the command under test, for the tests of this folder."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TENON = pathlib.Path(os.environ["TENON"])
PLUGINS = pathlib.Path(os.environ["TENON_PLUGINS"])
SOURCE = pathlib.Path(os.environ["TENON_SOURCE"])


def tenon(*args, env=None, program=TENON, stdout=subprocess.PIPE):
    """The finished process; no variable of the caller's that steers Tenon reaches it."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TENON_") and k != "NO_COLOR"}
    return subprocess.run([str(program), *args], env={**clean, **(env or {})}, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120)


def rows(*args, **kwargs):
    """The objects of a listing; fails the test when the command fails."""
    done = tenon(*args, "--json", **kwargs)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


class Installed:
    """A copy of the built command with libraries and chosen plugins, so that plugin files can be taken away."""

    def __init__(self, plugins):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tenon-cli-"))
        (self.root / "bin").mkdir()
        lib = self.root / "lib"
        (lib / "tenon/plugins").mkdir(parents=True)
        for library in TENON.parent.parent.joinpath("lib").glob("libtenon*.so*"):
            shutil.copy(library, lib)
        for name in plugins:
            file = f"libtenon_backend_{name}.so"
            if (PLUGINS / file).exists():
                shutil.copy(PLUGINS / file, lib / "tenon/plugins")
        self.program = self.root / "bin/tenon"
        shutil.copy(TENON, self.program)
        self.plugins = lib / "tenon/plugins"

    def env(self):
        # The copied command's run path may still name the build's libraries; this comes first.
        return {"LD_LIBRARY_PATH": str(self.root / "lib")}

    def tenon(self, *args, env=None):
        return tenon(*args, program=self.program, env={**self.env(), **(env or {})})

    def rows(self, *args):
        return rows(*args, program=self.program, env=self.env())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


class Case(unittest.TestCase):
    def assert_error(self, done, code, error_id, *words):
        """Four lines of the house form on stderr, the exit code, and words that must be among them."""
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertTrue(done.stderr.startswith(f"error[{error_id}]: "), done.stderr)
        self.assertIn("\n  try:   ", done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
