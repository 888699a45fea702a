"""Errors of the `tenon` command: each says its golden text (golden/TN-CLI.txt), in the order what, where, why, try."""
import os
import pathlib
import re
import struct
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from command import Installed, tenon  # noqa: E402

GOLDEN = HERE / "golden/TN-CLI.txt"
PARTS = {"where:": "where", "why:": "why", "try:": "try"}


def read_golden():
    texts = {}
    for block in GOLDEN.read_text().split("\n\n") if GOLDEN.exists() else []:
        if block.strip():
            head, _, text = block.strip().partition("\n")
            texts[head.strip("[]")] = text + "\n"
    return texts


def said(stderr, folder):
    """(id, golden form of the text) of what the command wrote."""
    first, *rest = stderr.rstrip("\n").split("\n")
    match = re.fullmatch(r"error\[(TN-[A-Z]+-\d{3})\]: (.*)", first)
    if not match:
        return None, stderr
    parts = {"what": match.group(2)}
    for line in rest:
        head, _, text = line.strip().partition(" ")
        parts[PARTS.get(head, head)] = text.strip()
    text = "".join(f"{name}: {parts[name]}\n" for name in ("what", "why", "try", "where") if name in parts)
    text = re.sub(r"/tmp/tenon-cli-\w+", "DIR", text.replace(str(folder), "DIR"))
    return match.group(1), re.sub(r"\b\d+ (ids|ops|commands|candidates)\b", r"N \1", text)  # grows with the tree


def idx(path, dims, data):
    path.write_bytes(bytes([0, 0, 8, len(dims)]) + b"".join(struct.pack(">I", d) for d in dims) + bytes(data))


def write_data(folder, size):
    folder.mkdir()
    for part, n in (("train", 20), ("t10k", 10)):
        idx(folder / f"{part}-images-idx3-ubyte", [n, size, size], [i * 37 % 256 for i in range(n * size * size)])
        idx(folder / f"{part}-labels-idx1-ubyte", [n], [i % 10 for i in range(n)])


def full_output():
    with open("/dev/full", "w") as full:
        return tenon("ops", stdout=full)


class Files:
    """Data of two sizes, and a model trained on the first."""

    def __init__(self, folder):
        self.folder = folder
        write_data(folder / "four", 4)
        write_data(folder / "five", 5)
        self.model = folder / "model.safetensors"
        done = tenon("train", "--data", str(folder / "four"), "--model.layers=flatten,linear 10", "--steps=1", "--kernels=reference",
                     f"--checkpoint.dir={folder / 'checkpoints'}", f"--out={self.model}")
        assert done.returncode == 0, done.stderr
        header = b"{}"
        (folder / "bare.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
        (folder / "runs").mkdir()


def without_plugins(*args):
    with Installed([]) as at:
        return at.tenon(*args)


def cases(files):
    """(id, label, the finished command)"""
    data = str(files.folder / "four")
    yield "TN-CLI-001", "", tenon("devcies")
    yield "TN-CLI-002", "a value", tenon("why", "matmul", "f32[2,2]", "f32[2,2]", "--policy", "often")
    yield "TN-CLI-002", "an option", tenon("devices", "--al")
    yield "TN-CLI-003", "", tenon("why", "sofmax", "f32[4,4]")
    yield "TN-CLI-004", "", tenon("why", "relu", "f32(4)")
    yield "TN-CLI-005", "", tenon("why", "softmax", "f32[4,4]", "--attr", "axes=1")
    yield "TN-CLI-006", "", tenon("why", "softmax", "f32[4,4]", "f32[4,4]")
    yield "TN-CLI-007", "", without_plugins("why", "softmax", "f32[4,4]", "--policy", "no-expand")
    yield "TN-CLI-008", "", tenon("explain", "TN-SHAPE-999")
    yield "TN-CLI-009", "", tenon("bench", "gem")
    yield "TN-CLI-010", "", full_output()
    yield "TN-CLI-012", "", without_plugins("bench", "dispatch", "--case", "add16.nograd", "--need", "torch")
    yield "TN-CLI-013", "", tenon("caps", "sim:0", "--measure", env={"XDG_CACHE_HOME": "", "HOME": ""})
    yield "TN-CLI-014", "", without_plugins("why-not", "cpu:1", "relu", "f32[4]")
    yield "TN-CLI-020", "", tenon("eval", str(files.folder / "bare.safetensors"), "--data", data)
    yield "TN-CLI-021", "", tenon("train", "--data", data, "--precision=bf16")
    yield "TN-CLI-022", "", tenon("train", "--resume", str(files.folder / "runs"))
    yield "TN-CLI-023", "", tenon("eval", str(files.model), "--data", str(files.folder / "five"))
    yield "TN-CLI-024", "", tenon("predict", str(files.model), str(files.folder / "five/t10k-images-idx3-ubyte"))
    yield "TN-CLI-030", "", tenon("conformance")
    yield "TN-CLI-031", "", tenon("abi", "check", "/nowhere/libtenon_backend_acme.so")
    yield "TN-CLI-032", "", tenon("conformance", "--device", "cpu:0", "--config", "sim.devices")
    (files.folder / "lists.json").write_text('{"never": [{"check": "1.exports"}]}')
    yield "TN-CLI-033", "", tenon("conformance", "--device", "cpu:0", "--lists", str(files.folder / "lists.json"))
    yield "TN-CLI-034", "", without_plugins("conformance", "--device", "acme:0")
    yield "TN-CLI-035", "", tenon("abi", "show", "libtenon_backend_acme.so")
    yield "TN-CLI-036", "", tenon("new", "plugin", "acme")
    yield "TN-CLI-037", "", tenon("new", "backend", "Acme-2")
    yield "TN-CLI-038", "", tenon("new", "backend", "acme", str(files.folder))
    yield "TN-CLI-039", "", tenon("new", "backend", "acme", "/dev/null/acme")


class Command(unittest.TestCase):
    maxDiff = None

    def test_says_its_golden_texts(self):
        golden, seen = read_golden(), {}
        with tempfile.TemporaryDirectory(prefix="tenon-errors-") as folder:
            for error_id, label, done in cases(Files(pathlib.Path(folder))):
                key = f"{error_id} {label}".strip()
                got, text = said("\n".join(line for line in done.stderr.splitlines() if not line.startswith("warning")), folder)
                with self.subTest(key):
                    self.assertEqual(got, error_id, text)
                    self.assertTrue(all(f"{part}: " in "\n" + text for part in ("\nwhat", "\nwhy", "\ntry")), text)
                seen[key] = text
        if "TENON_GOLDEN_UPDATE" in os.environ:
            GOLDEN.write_text("".join(f"[{key}]\n{text}\n" for key, text in sorted(seen.items())))
            return
        self.assertEqual(seen, golden)


if __name__ == "__main__":
    unittest.main()
