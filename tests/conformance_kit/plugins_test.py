"""The plugins of the tree pass what applies to them; the command's exit codes and lists."""
import json
import pathlib
import tempfile
import unittest

from kit import conformance, failed_levels, failures, plugin


class ThePluginsOfTheTree(unittest.TestCase):
    def passes(self, *args):
        code, report, error = conformance(*args, "--level", 6)
        self.assertIsNotNone(report, error)
        self.assertEqual(failed_levels(report), [], failures(report))
        self.assertEqual(code, 0)
        self.assertEqual(report["reached"], 6)
        return report

    def test_the_simulated_accelerator_passes_all_levels(self):
        report = self.passes("--plugin", plugin("sim"), "--config", "sim.memory_bytes=268435456")
        self.assertEqual(report["plugin"], "dev.tenon.sim")
        self.assertEqual({c["level"] for c in report["checks"]}, {1, 2, 3, 4, 5, 6})

    def test_a_slow_simulated_accelerator_passes_the_asynchronous_levels(self):
        for level in (2, 5):
            code, report, _ = conformance("--plugin", plugin("sim"), "--only-level", level, "--config", "sim.latency_ns=200000", "--config", "sim.devices=2")
            self.assertEqual(code, 0, failures(report))

    def test_the_linked_reference_passes_all_levels(self):
        self.passes("--device", "cpu:0")

    @unittest.skipUnless(plugin("cpu").exists(), "the cpu pack is not built")
    def test_the_cpu_pack_passes_all_levels(self):
        self.passes("--plugin", plugin("cpu"))

    @unittest.skipUnless(plugin("onednn").exists(), "the onednn pack is not built")
    def test_the_onednn_pack_passes_all_levels(self):
        self.passes("--plugin", plugin("onednn"))


class TheCommand(unittest.TestCase):
    def lists(self, text):
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()) if hasattr(self, "enterContext") else tempfile.mkdtemp()) / "lists.json"
        file.write_text(json.dumps(text))
        return file

    def run_one(self, lists):
        return conformance("--plugin", plugin("sim"), "--only-level", 3, "--only", "3.special.sim.copy", "--lists", self.lists(lists))

    def test_never_leaves_a_check_out_and_keeps_its_reason(self):
        code, report, _ = self.run_one({"never": [{"check": "3.special.sim.*", "why": "no such hardware"}]})
        self.assertEqual(code, 0)
        self.assertEqual([(c["state"], c["detail"]) for c in report["checks"]], [("never", "no such hardware")])

    def test_not_yet_that_passes_fails(self):
        code, report, _ = self.run_one({"not_yet": [{"tag": "special", "why": "soon"}]})
        self.assertEqual(code, 1)
        self.assertIn("take it out", report["checks"][0]["detail"])

    def test_an_entry_without_a_reason_is_refused(self):
        code, report, error = self.run_one({"not_yet": [{"check": "3.special.sim.copy"}]})
        self.assertEqual((code, report), (2, None))
        self.assertIn("gives no reason", error)

    def test_a_file_that_is_not_there_has_an_exit_code_of_its_own(self):
        self.assertEqual(conformance("--plugin", "/nowhere/libx.so")[0], 3)

    def test_neither_plugin_nor_device_is_a_mistake_of_usage(self):
        self.assertEqual(conformance()[0], 2)

    def test_a_device_that_nobody_offers_names_those_that_are_there(self):
        code, _, error = conformance("--device", "quantum:0")
        self.assertEqual(code, 3)
        self.assertIn("cpu:0", error)


if __name__ == "__main__":
    unittest.main()
