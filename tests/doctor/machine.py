"""A machine of one's own for `tenon doctor`: mount namespaces, fake drivers, other users."""
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import unittest

TENON = pathlib.Path(os.environ["TENON"])
CC = os.environ.get("CC_FOR_FAKES", "cc")
HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = pathlib.Path("/usr/lib") / os.environ.get("MULTIARCH", "x86_64-linux-gnu")
NOBODY = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]


def can(script):
    try:
        return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "sh", "-ec", script], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


namespaces = unittest.skipUnless(can("true"), "needs root, and a kernel that lets it make mount namespaces: run the tests as root")
no_gpu = unittest.skipIf(pathlib.Path("/proc/driver/nvidia").exists() or pathlib.Path("/dev/kfd").exists() or (LIBRARIES / "libcuda.so.1").exists(),
                         "is about a machine without GPUs, which this is not")
OVERLAY = """scratch=$(mktemp -d); mount -t tmpfs none $scratch; mkdir $scratch/u $scratch/w
mount -t overlay overlay -o lowerdir={0},upperdir=$scratch/u,workdir=$scratch/w {0}
""".format(LIBRARIES)
overlays = unittest.skipUnless(can(OVERLAY), "needs root and overlay mounts: run the tests as root")
NODES = """mount -t tmpfs -o mode=755 none /dev; mkdir /dev/dri
mknod -m 666 /dev/null c 1 3; mknod -m 666 /dev/zero c 1 5; mknod -m 666 /dev/urandom c 1 9
"""
nodes = unittest.skipUnless(can(NODES), "needs root to make device nodes: run the tests as root")
real_drivers = unittest.skipUnless(list(pathlib.Path("/etc/OpenCL/vendors").glob("pocl*.icd")) and list(pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp*.json"))
                                   and (LIBRARIES / "libOpenCL.so.1").exists() and (LIBRARIES / "libvulkan.so.1").exists(),
                                   "needs PoCL and lavapipe: sudo apt install ocl-icd-libopencl1 pocl-opencl-icd libvulkan1 mesa-vulkan-drivers")
unprivileged = unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv") and subprocess.run([*NOBODY, TENON, "--version"], capture_output=True).returncode == 0,
                                   "needs root, setpriv, and a build that the user nobody may read: run the tests as root, in a folder that is open to all")


class Doctor(unittest.TestCase):
    """Each test has a home of its own, and no variable that leads to drivers."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-doctor-")
        self.addCleanup(self.folder.cleanup)
        self.home = pathlib.Path(self.folder.name)
        self.home.chmod(0o755)

    def environment(self, **more):
        return dict({"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home), "NO_COLOR": "1"}, **{k: str(v) for k, v in more.items()})

    def run_doctor(self, *arguments, before="", wrap=(), env=None):
        """The finished process. `before`: shell lines run as root in a mount namespace of its own; `wrap`: what stands before the command."""
        command = [*wrap, str(TENON), "doctor", *arguments]
        if before:
            command = ["unshare", "-m", "--propagation", "private", "sh", "-ec", before + "\nexec " + shlex.join(command)]
        return subprocess.run(command, env=self.environment() if env is None else env, capture_output=True, text=True, timeout=120, cwd="/")

    def doctor(self, *arguments, code=0, **how):
        """The text, after the same machine was asked for JSON: both say the same codes."""
        text = self.run_doctor(*arguments, **how)
        self.assertEqual(text.returncode, code, text.stdout + text.stderr)
        done = self.run_doctor(*arguments, "--json", **how)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.rows = [json.loads(line) for line in done.stdout.splitlines()]
        spoken = [line.split()[1] for line in text.stdout.splitlines() if line.startswith("           reason: ")]
        self.assertEqual(spoken, [row["reason"] for row in self.rows if row["reason"]], text.stdout + done.stdout)
        for row in self.rows:
            if row["reason"] or row["state"] in ("warning", "missing"):
                self.assertTrue(row["try"], row)
        return text.stdout

    def row(self, check):
        found = [row for row in self.rows if row["check"] == check]
        self.assertEqual(len(found), 1, (check, self.rows))
        return found[0]

    def fake(self, kind, name, *flags, folder="lib"):
        """A driver of fake.c; its path."""
        path = self.home / folder / name
        path.parent.mkdir(exist_ok=True)
        subprocess.run([CC, "-shared", "-fPIC", "-O1", "-w", f"-D{kind}", *flags, str(HERE / "fake.c"), "-o", str(path)], check=True)
        return path

    def manifest(self, library, name="fake_icd.json"):
        path = self.home / name
        path.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.3.0"}}))
        return path
