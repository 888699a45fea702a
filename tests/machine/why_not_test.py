"""doctor --capture and why-not: what is said of a captured machine is what the machine says of itself."""
import json
import os
import pathlib
import socket
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from command import PLUGINS, Case, Installed, rows, tenon  # noqa: E402

HAS = {name: (PLUGINS / f"libtenon_backend_{name}.so").exists() for name in ("cpu", "onednn", "sim", "null")}
BY_CONDITION = {"constraint", "device", "policy"}
CALLS = [call.split() for call in (
    "matmul f32[64,64] f32[64,64]", "matmul f64[8,16] f64[16,4]", "matmul bf16[32,64] bf16[64,16]", "matmul f16[32,64] f16[64,16]", "matmul u8[16,64] i8[64,16] dtype=i32",
    "matmul f32[7,3] f32[3,5]", "matmul f32[64,64]{1,64} f32[64,64]", "matmul f32[3,64,64] f32[3,64,64]", "matmul f32[0,4] f32[4,4]", "matmul bf16[1,4096] bf16[4096,1]",
    "add f32[16] f32[16]", "add f64[16] f64[16]", "add i32[16] i32[16]", "add bf16[100] bf16[100]", "add f32[8,1] f32[1,8]", "relu f32[5,6]", "relu f16[5,6]", "exp f32[1000]",
    "softmax f32[64,1000]", "softmax f64[3,5]", "softmax bf16[64,100]", "sum f32[8,100] axes=1", "reduce f32[8,100] axes=1 monoid=max", "reduce i64[8,100] axes=0 monoid=sum",
    "pointwise bf16[100] bf16[100] program=add", "pointwise f32[3,4] program=exp", "gather f32[5,6] i64[2,6] axis=0", "gather f64[5,6] i32[5,2] axis=1", "where bool[8] f32[8] f32[8]",
    "conv2d f32[4,16,28,28] f32[32,16,3,3] - lo=1,1 hi=1,1", "conv2d bf16[1,3,8,8] bf16[4,3,3,3] -", "conv2d f64[1,3,8,8] f64[4,3,3,3] -", "linear f32[8,16] f32[4,16] f32[4]",
    "max_pool2d f32[1,3,8,8] kernel=2,2", "layer_norm f32[8,64] f32[64] f32[64] axis=1")]

DEVICE = {"name": "acme:0", "plugin": 0, "physical": 1, "verdict": 0, "cause": "", "kind": 2, "kind_name": "cuda", "flags": 0, "hardware": "Acme 9000", "driver": "12.4", "vendor_id": 4318,
          "device_id": 1, "pci_domain": 0, "pci_bdf": 256, "memory_bytes": 1 << 36, "memory_free_bytes": 1 << 35, "dtypes_stored": "0x1c0000", "dtypes_computed": "0x100000",
          "dtypes_of_matrices": "0x40000", "caps": [{"key": 13, "name": "bandwidth", "type": "f64", "unit": "B/s", "value": 2e12, "source": "driver"}],
          "spaces": [{"id": 0, "kind": 0, "flags": 0, "align_bytes": 256, "max_alloc_bytes": 1 << 36, "budget_bytes": 1 << 36}],
          "rates": {"state": 0, "when": "", "note": "", "figures": []}}
PLUGIN = {"id": "com.example.acme", "version": "1.0", "build_id": "ab", "path": "~/acme.so", "code": 0, "verdict": "in-use", "stage": 9, "native_code": 0, "abi": 1, "flags": 0, "cause": ""}
IS_CUDA = {"kind": "device-kind", "arg": 2}


def kernel(name, op, op_id, needs, refines=True, **more):
    return {"name": name, "plugin": 0, "op": op, "op_id": op_id, "op_min": 1, "op_max": 1, "tier": 200, "flags": 0, "inplace_mask": 0, "refines": refines, "needs": [IS_CUDA, *needs], **more}


def op_id(name):
    return hex({r["name"]: r["id"] for r in rows("ops")}[name])


def machine(kernels, **changes):
    """A made-up machine with a GPU, as a person would write it."""
    return {"format": "tenon-machine", "version": 1, "tenon": "0.1.0", "abi": "0.1", "system": {"kernel": "6.1", "machine": "x86_64", "libc": "2.36", "distribution": "Made up"},
            "plugins": [PLUGIN], "devices": [DEVICE], "links": [{"from": "host", "to": "acme:0", "bytes_per_s": 1e10, "latency_ns": 5000, "source": "driver"}], "kernels": kernels, **changes}


class File:
    def __init__(self, content):
        self.folder = tempfile.TemporaryDirectory(prefix="tenon-machine-")
        self.path = str(pathlib.Path(self.folder.name, "machine.json"))
        if content is not None:
            pathlib.Path(self.path).write_text(content if isinstance(content, str) else json.dumps(content))

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.folder.cleanup()


class Captured(Case):
    @classmethod
    def setUpClass(cls):
        cls.file = File(None)
        cls.path = cls.file.path
        done = tenon("doctor", "--capture", cls.path)
        assert done.returncode in (0, 3), done.stderr
        cls.text = done.stdout
        cls.machine = json.loads(pathlib.Path(cls.path).read_text())

    @classmethod
    def tearDownClass(cls):
        cls.file.__exit__()

    def test_holds_plugins_devices_and_kernels(self):
        m = self.machine
        self.assertEqual((m["format"], m["version"]), ("tenon-machine", 1))
        live = rows("plugins")
        self.assertEqual([(p["id"], p["code"], p["verdict"]) for p in m["plugins"]], [(p["id"], p["code"], p["verdict"]) for p in live])
        devices = rows("devices", "--all") if "--all" in tenon("devices", "--help").stdout else rows("devices")
        self.assertLessEqual({d["name"] for d in devices}, {d["name"] for d in m["devices"]})
        cpu = next(d for d in m["devices"] if d["name"] == "cpu:0")
        shown = {c["key"]: c["value"] for c in rows("caps", "cpu:0") if c["source"] != "measured"}
        for cap in cpu["caps"]:
            if not cap["name"].startswith("isa_"):
                self.assertEqual(shown[cap["name"]], cap["value"])
        self.assertTrue(cpu["spaces"])
        names = {k["name"] for k in m["kernels"]}
        self.assertIn("reference.matmul", names)
        if HAS["cpu"]:
            self.assertTrue(any(n.startswith("cpu.") for n in names))
        self.assertIn("--machine", self.text)

    def test_names_no_person_and_no_machine(self):
        text = json.dumps(self.machine)
        for word in (os.path.expanduser("~"), socket.gethostname()):
            if len(word) > 3:
                self.assertNotIn(word, text)

    def test_says_of_every_call_what_the_machine_says(self):
        compared = 0
        for device in ("cpu:0", "sim:0") if HAS["sim"] else ("cpu:0",):
            calls = CALLS if device == "cpu:0" else CALLS[:12]
            for call in calls:
                with self.subTest(f"{device} {' '.join(call)}"):
                    live, there = (rows("why-not", device, *call, *more) for more in ((), ("--machine", self.path)))
                    key = lambda r: (r["plugin"], r["kernel"])  # noqa: E731
                    self.assertEqual(sorted(map(key, live)), sorted(map(key, there)))
                    by_key = {key(r): r for r in there}
                    for r in live:
                        t = by_key[key(r)]
                        if r["why"] in BY_CONDITION:
                            self.assertEqual((t["takes"], t["why"], t["reason"], t["constraint"]), ("no", r["why"], r["reason"], r["constraint"]))
                        elif r["kind"] == "kernel":
                            self.assertNotEqual(t["takes"], "no", t)
                            self.assertIsNone(t["est_ns"])
                            if r["why"] == "refused":
                                self.assertEqual(t["takes"], "unknown", t)
                        compared += 1
        self.assertGreaterEqual(len(CALLS), 30)
        self.assertGreater(compared, 100)

    def test_a_plugin_that_did_not_start_is_the_answer(self):
        with Installed(["cpu"]) as at, File(None) as path:
            (at.plugins / "libtenon_backend_text.so").write_text("no library")
            self.assertIn(at.tenon("doctor", "--capture", path).returncode, (0, 3))
            m = json.loads(pathlib.Path(path).read_text())
            self.assertIn("bad-elf", {p["verdict"] for p in m["plugins"]})


class MadeUp(Case):
    """A GPU that is not here, from a file written by hand."""

    @classmethod
    def setUpClass(cls):
        cls.matmul = op_id("matmul")

    def ask(self, content, *call, device="acme:0"):
        with File(content) as path:
            return rows("why-not", device, *call, "--machine", path)

    def test_lists_each_candidate_with_its_cause(self):
        f16 = "0x40000"
        found = {r["kernel"]: r for r in self.ask(machine([
            kernel("acme.matmul.f16", "matmul", self.matmul, [{"kind": "dtype", "mask": f16}]),
            kernel("acme.matmul.sure", "matmul", self.matmul, [{"kind": "rank", "operand": 0, "lo": 2, "hi": 2}], refines=False),
            kernel("acme.matmul.asks", "matmul", self.matmul, []),
            kernel("acme.matmul.tiles", "matmul", self.matmul, [{"kind": "dim-multiple", "operand": 0, "arg": 1, "lo": 16}]),
            kernel("acme.matmul.big", "matmul", self.matmul, [{"kind": "cap", "arg": 13, "lo": 10**13, "hi": 2**63 - 1}]),
            kernel("acme.matmul.new", "matmul", self.matmul, [{"kind": 77}]),
            kernel("acme.matmul.packed", "matmul", self.matmul, [], packed={"operand": 1, "layout": "acme.tiles"}),
            kernel("acme.other", "", "0x8000000000000001", []),
            {**kernel("acme.matmul.cpu", "matmul", self.matmul, []), "needs": [{"kind": "device-kind", "arg": 1}]}]), "matmul", "bf16[8,24]", "bf16[24,8]")}
        self.assertNotIn("acme.other", found)
        self.assertEqual({k: r["takes"] for k, r in found.items() if r["kind"] == "kernel"},
                         {"acme.matmul.f16": "no", "acme.matmul.sure": "yes", "acme.matmul.asks": "unknown", "acme.matmul.tiles": "no", "acme.matmul.big": "no", "acme.matmul.new": "no",
                          "acme.matmul.packed": "no", "acme.matmul.cpu": "no"})
        for name, words in {"f16": "operand 0 is bf16, kernel takes f16", "tiles": "operand 0 dim[1] is 24, no multiple of 16", "big": "2e+12, outside", "new": "constraint kind 77",
                            "packed": "operand 1 is not stored as acme.tiles", "cpu": "acme:0 is a CUDA device, the kernel needs a CPU"}.items():
            self.assertIn(words, found[f"acme.matmul.{name}"]["reason"])
        self.assertIn("supports()", found["acme.matmul.asks"]["text"])
        self.assertIn("cost is unknown", found["acme.matmul.sure"]["text"])

    def test_no_kernel_of_this_machine_is_among_them(self):
        found = self.ask(machine([kernel("acme.matmul", "matmul", self.matmul, [])]), "matmul", "f32[8,8]", "f32[8,8]")
        self.assertEqual({r["plugin"] for r in found if r["kind"] == "kernel"}, {"com.example.acme"})

    def test_an_expansion_is_judged_by_its_parts(self):
        without = [r for r in self.ask(machine([]), "softmax", "f32[4,4]") if r["kind"] == "expand"]
        self.assertEqual([r["takes"] for r in without], ["no"])
        parts = [kernel(f"acme.{name}", name, op_id(name), []) for name in ("pointwise", "reduce", "matmul", "gather", "scatter", "copy")]
        within = [r for r in self.ask(machine(parts), "softmax", "f32[4,4]") if r["kind"] == "expand"]
        self.assertEqual([r["takes"] for r in within], ["unknown"])

    def test_hostile_conditions_are_answered(self):
        top = 2**63 - 1
        needs = [[{"kind": "same-type", "operand": 0, "arg": 4294967295}], [{"kind": "dim", "arg": 4294967295, "lo": -top, "hi": top}], [{"kind": "contiguous", "arg": 4294967295}],
                 [{"kind": "align", "lo": top}], [{"kind": "align", "lo": -top - 1}], [{"kind": "dim-multiple", "lo": -1}], [{"kind": "bytes", "lo": -1, "hi": -1}],
                 [{"kind": "program-limits", "arg": 7, "lo": -top, "hi": -top}], [{"kind": "attr", "arg": 4294967295, "mask": "0xffffffffffffffff"}], [{"kind": "space", "mask": "0x0"}]]
        found = self.ask(machine([kernel(f"acme.k{i}", "matmul", self.matmul, n) for i, n in enumerate(needs)]), "matmul", "f32[8,8]", "f32[8,8]")
        self.assertEqual(len([r for r in found if r["kind"] == "kernel"]), len(needs))

    def test_a_device_that_cannot_be_used_says_why(self):
        broken = {**DEVICE, "verdict": 7, "cause": "the driver is older than the card"}
        (row,) = self.ask(machine([], devices=[broken]), "matmul", "f32[8,8]", "f32[8,8]")
        self.assertEqual((row["usable"], row["why"]), (False, "the driver is older than the card"))
        self.assertTrue(row["try"])
        absent = {**PLUGIN, "code": 18, "verdict": "open-unavailable", "cause": "libacme.so.1 is absent"}
        (row,) = self.ask(machine([], plugins=[absent], devices=[]), "matmul", "f32[8,8]", "f32[8,8]")
        self.assertEqual((row["usable"], row["verdict"], row["try"]), (False, "open-unavailable", "tenon explain TN-LOAD-018"))
        self.assertIn("libacme.so.1 is absent", row["why"])

    def test_the_text(self):
        with File(machine([kernel("acme.matmul.f16", "matmul", self.matmul, [{"kind": "dtype", "mask": "0x40000"}])])) as path:
            done = tenon("why-not", "acme", "matmul", "f32[8,8]", "f32[8,8]", "--machine", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("matmul f32[8,8] f32[8,8] -> f32[8,8]  on acme:0 (Acme 9000) of " + path, done.stdout)
            self.assertIn("constraint: operand 0 is f32, kernel takes f16", done.stdout)
            self.assertEqual(done.stderr, "")
            other = tenon("why-not", "acme", "matmul", "f32[8,8]", "f32[8,8]", "--machine", path, env={"XDG_CACHE_HOME": "", "HOME": ""})
            self.assertEqual(other.stdout, done.stdout)

    def test_another_abi_is_warned_of(self):
        with File({**machine([]), "abi": "7.3"}) as path:
            self.assertIn("7.3", tenon("why-not", "acme:0", "relu", "f32[8]", "--machine", path).stderr)


class Wrong(Case):
    def test_names(self):
        with File(machine([])) as path:
            self.assert_error(tenon("why-not", "acne:0", "relu", "f32[8]", "--machine", path), 3, "TN-CLI-014", "there are acme:0", "use acme:0")
            self.assert_error(tenon("why-not", "acme:0", "rellu", "f32[8]", "--machine", path), 2, "TN-CLI-003", "use relu")
            self.assert_error(tenon("why-not", "acme:0", "--machine", path), 2, "TN-CLI-002", "an op is missing")
        self.assert_error(tenon("why-not", "cqu:0", "relu", "f32[8]"), 3, "TN-CLI-014", "use cpu:0")

    def test_files(self):
        self.assert_error(tenon("why-not", "acme:0", "relu", "f32[8]", "--machine", "/nowhere.json"), 1, "TN-FILE-001")
        for content, error in (("[]", "TN-FILE-031"), ({**machine([]), "version": 2}, "TN-FILE-032"), ({**machine([]), "kernels": [{}]}, "TN-FILE-033")):
            with File(content) as path:
                self.assert_error(tenon("why-not", "acme:0", "relu", "f32[8]", "--machine", path), 1, error)


class Here(Case):
    def test_tells_who_takes_it_and_who_does_not(self):
        found = rows("why-not", "cpu:0", "matmul", "f32[64,64]", "f32[64,64]")
        self.assertIn("yes", {r["takes"] for r in found})
        for r in found:
            self.assertEqual(r["takes"] == "yes", r["why"] in ("won", "slower", "tier", "name"), r)
            self.assertTrue(r["text"])

    @unittest.skipUnless(HAS["sim"], "the sim plugin is not built")
    def test_an_estimate_names_its_origin(self):
        call = ("why", "matmul", "f32[64,64]", "f32[64,64]", "--device", "sim:0")
        with tempfile.TemporaryDirectory() as home:
            env = {"XDG_CACHE_HOME": home}
            self.assertIn(" ns from guessed rates", tenon(*call, env=env).stdout)
            rows("caps", "sim:0", "--measure", env=env)
            (path,) = pathlib.Path(home, "tenon", "rates").glob("*.rates")
            planted = [line if not line.startswith("rate ") else line.rsplit(" ", 1)[0] + " 1e9" for line in path.read_text().splitlines()]
            path.write_text("\n".join(planted) + "\n")
            self.assertRegex(tenon(*call, env=env).stdout, r"est [0-9,]+ ns from measured rates")
            guess, measured = (rows(*call, env=e)[0] for e in ({"XDG_CACHE_HOME": home, "TENON_CONFIG": "loader.cache=off"}, env))
            self.assertEqual((guess["source"], measured["source"]), ("guess", "measured"))
            self.assertAlmostEqual(measured["est_ns"] / guess["est_ns"], 8, places=1)  # 1 GFLOP/s for 8
            captured = path.with_suffix(".json")
            tenon("doctor", "--capture", str(captured), env=env)
            sim = next(d for d in json.loads(captured.read_text())["devices"] if d["name"] == "sim:0")
            self.assertEqual(sim["rates"]["state"], 1)
            self.assertIn("matmul_f32", {f["name"] for f in sim["rates"]["figures"]})
            links = json.loads(captured.read_text())["links"]
            self.assertEqual({(l["from"], l["to"], l["bytes_per_s"], l["latency_ns"]) for l in links}, {("host", "sim:0", 1e9, 5e8), ("sim:0", "host", 1e9, 5e8)})


if __name__ == "__main__":
    unittest.main()
