"""One identity in every listing and every selector of the command (D07); filters as people set them.

    tests/devices/command_test.py --build build/dev --fakes BUILD/tests/devices/plugins [unittest arguments]
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

options = argparse.Namespace()
FILTERS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK")


class Command(unittest.TestCase):
    """Two cards, each reached by two plugins, the second of which counts them the other way round."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenon-devices-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        (self.top / "plugins").mkdir()
        for fake in ("cuda", "vulkan"):
            shutil.copy(options.fakes / f"{fake}.so", self.top / f"plugins/libtenon_backend_{fake}.so")
        self.fakes = {"TENON_FAKE_cuda": "u=1,p=6500,m=8 u=2,p=b300,m=16", "TENON_FAKE_vulkan": "u=2,p=b300,m=16 u=1,p=6500,m=8"}

    def run_tenon(self, *arguments, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "XDG_")) and k not in FILTERS}
        env = dict(kept, NO_COLOR="1", XDG_CACHE_HOME=str(self.top / "cache"), TENON_PLUGIN_PATH=str(self.top / "plugins"), **{**self.fakes, **variables})
        return subprocess.run([str(options.build / "bin/tenon"), *arguments], capture_output=True, text=True, timeout=60, env=env)

    def rows(self, *arguments, **variables):
        done = self.run_tenon(*arguments, "--json", **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def devices(self, **variables):
        return {d["name"]: d for d in self.rows("devices", **variables)}

    def test_koboldcpp_1023_listings_show_address_and_uuid(self):
        for _ in range(2):  # opened at first, known then
            seen = self.devices()
            self.assertEqual((seen["cuda:1"]["pci"], seen["cuda:1"]["uuid"]), ("pci:0000:b3:00.0", "uuid:02020202-0202-0202-0202-020202020201"))
            self.assertEqual({k: seen["vulkan:0"][k] for k in ("pci", "uuid", "physical")}, {k: seen["cuda:1"][k] for k in ("pci", "uuid", "physical")})
            self.assertEqual((seen["cpu:0"]["pci"], seen["cpu:0"]["uuid"]), ("", ""))
            text = self.run_tenon("devices").stdout
            self.assertRegex(text, r"(?m)^cuda:1 +pci:0000:b3:00\.0 +uuid:02020202-0202-0202-0202-020202020201$")
            self.assertRegex(text, r"(?m)^vulkan:0 +usable .*, the same as cuda:1$")

    def test_koboldcpp_1023_what_a_listing_shows_is_taken_by_every_selector(self):
        for name, device in self.devices().items():
            for spec in {name, device["pci"], device["uuid"]} - {""}:
                said = self.run_tenon("why", "add", "f32[8]", "f32[8]", "--device", spec).stdout
                hardware = name if spec == name else {"vulkan:0": "cuda:1", "vulkan:1": "cuda:0"}.get(name, name)
                self.assertRegex(said, rf"(?m) on {hardware}$", spec)

    def test_plugins_devices_and_doctor_agree_on_what_is_ready(self):
        self.devices()
        plugins = {p["id"]: p for p in self.rows("plugins")}
        self.assertEqual([(plugins[f"test.{n}"]["code"], plugins[f"test.{n}"]["in_use"], plugins[f"test.{n}"]["opened"]) for n in ("cuda", "vulkan")], [(0, True, False)] * 2)
        self.assertRegex(self.run_tenon("plugins").stdout, r"(?m)^ready +test\.cuda ")
        self.assertTrue(all(d["usable"] for d in self.devices().values()))
        checks = {c["check"]: c for c in self.rows("doctor")}
        self.assertIn("cuda", checks["plugins in use"]["value"])
        self.assertIn("device cuda:1", checks)

    def test_a_hidden_device_is_listed_with_the_variable_that_hides_it(self):
        seen = self.devices(CUDA_VISIBLE_DEVICES="1")
        self.assertEqual({n: d["usable"] for n, d in seen.items() if not n.startswith(("sim:", "opencl:"))}, {"cpu:0": True, "cuda:0": True, "vulkan:0": True, "vulkan:1": False})
        self.assertEqual(seen["vulkan:1"]["cause"], "hidden by CUDA_VISIBLE_DEVICES=1")
        self.assertIn("hidden by TENON_DEVICES=cpu,cuda:0", self.run_tenon("devices", TENON_DEVICES="cpu,cuda:0").stdout)

    def test_a_slip_in_a_filter_is_an_error_with_its_id(self):
        done = self.run_tenon("devices", TENON_DEVICES="cpu,cuda:2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("TN-DEVICE-007", done.stdout + done.stderr)
        self.assertIn("cuda:2 is none of cpu:0", done.stdout + done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    for name in ["--build", "--fakes"]:
        parser.add_argument(name, required=True, type=pathlib.Path)
    options, left = parser.parse_known_args()
    options.build = options.build.resolve()
    unittest.main(argv=[sys.argv[0], *left])
