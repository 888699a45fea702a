"""devices, caps, plugins, doctor."""
import json
import os
import pathlib
import platform
import re
import shutil
import tempfile
import unittest

from command import PLUGINS, Case, Installed, rows, tenon

PLUGIN_KEYS = {"path", "code", "stage", "cause", "verdict", "explain", "in_use", "id", "version", "abi", "build_id"}


class Devices(Case):
    @classmethod
    def setUpClass(cls):
        """Rates of sim:0 are measured once, which takes seconds; each test that changes the file has a copy of its own."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.measured = pathlib.Path(folder.name)
        rows("caps", "sim:0", "--measure", env={"XDG_CACHE_HOME": folder.name})

    def test_every_machine_has_cpu_0(self):
        cpu = [d for d in rows("devices") if d["name"] == "cpu:0"]
        self.assertEqual(len(cpu), 1)
        self.assertTrue(cpu[0]["usable"])
        self.assertEqual(cpu[0]["kind"], "cpu")
        self.assertGreater(cpu[0]["memory_bytes"], 1 << 20)
        self.assertIn("f32", cpu[0]["dtypes"])

    def test_an_emulated_device_is_a_piece_of_the_cpu(self):
        devices = {d["name"]: d for d in rows("devices")}
        self.assertEqual(devices["sim:0"]["physical"], devices["cpu:0"]["physical"])

    def test_the_table_has_no_escapes_when_it_is_no_terminal(self):
        self.assertNotIn("\033", tenon("devices").stdout)

    def test_caps_agree_with_the_system(self):
        caps = {c["key"]: c for c in rows("caps", "cpu:0")}
        self.assertEqual(caps["cores"]["value"], len(os.sched_getaffinity(0)))
        self.assertEqual(caps["page_bytes"]["value"], os.sysconf("SC_PAGESIZE"))
        self.assertEqual(caps["architecture"]["value"], platform.machine())

    def test_measured_rates_are_kept_and_shown_again(self):
        with tempfile.TemporaryDirectory() as home:
            env = {"XDG_CACHE_HOME": home}
            self.assertNotIn("measured", {c["source"] for c in rows("caps", "cpu:0", env=env)})
            measured = {c["key"]: c["value"] for c in rows("caps", "cpu:0", "--measure", env=env) if c["source"] == "measured"}
            for key in ("bandwidth", "flops_f32", "matmul_f32", "launch_ns", "link_to_device", "link_to_host", "link_ns"):
                self.assertGreater(measured[key], 0, key)
            again = {c["key"]: c["value"] for c in rows("caps", "cpu:0", env=env) if c["source"] == "measured"}
            self.assertEqual(again.keys(), measured.keys())
            for key, value in measured.items():
                self.assertAlmostEqual(again[key] / value, 1, places=5)

    def test_a_damaged_file_of_rates_is_ignored_with_a_note(self):
        with tempfile.TemporaryDirectory() as home:
            env = {"XDG_CACHE_HOME": home}
            shutil.copytree(self.measured, home, dirs_exist_ok=True)
            (path,) = pathlib.Path(home, "tenon", "rates").glob("*.rates")
            whole = path.read_text()
            self.assertIn("measured", {c["source"] for c in rows("caps", "sim:0", env=env)})
            rate = next(line for line in whole.splitlines() if line.startswith("rate "))
            for text in ("", "{", "tenon-rates 2\n", whole[:-2], whole + "x", whole.replace("rate ", "rate no_such_", 1), whole.replace(rate, rate + "\n" + rate),
                         whole.replace(rate, rate.rsplit(" ", 1)[0] + " -1"), whole.replace(rate, rate.rsplit(" ", 1)[0] + " nan"), whole.replace("when ", "when 2")):
                path.write_text(text)
                caps = rows("caps", "sim:0", env=env)
                self.assertNotIn("measured", {c["source"] for c in caps}, text)
                (note,) = [c["note"] for c in caps if c["key"] == "rates"]
                self.assertIn("is damaged in line", note)
                self.assertIn("kept rates are ignored", tenon("caps", "sim:0", env=env).stdout)

    def test_rates_of_something_else_are_ignored_with_a_note(self):
        with tempfile.TemporaryDirectory() as home:
            env = {"XDG_CACHE_HOME": home}
            shutil.copytree(self.measured, home, dirs_exist_ok=True)
            (path,) = pathlib.Path(home, "tenon", "rates").glob("*.rates")
            made_for = path.read_text().splitlines()[1]
            parts = made_for.split("; ")  # name, hardware, driver, threads, ABI, builds
            self.assertGreater(len(parts), 4)
            for k in range(1, len(parts)):
                other = "; ".join(p + "!" if i == k else p for i, p in enumerate(parts))
                path.write_text(path.read_text().replace(path.read_text().splitlines()[1], other))
                caps = rows("caps", "sim:0", env=env)
                self.assertNotIn("measured", {c["source"] for c in caps})
                (note,) = [c["note"] for c in caps if c["key"] == "rates"]
                self.assertIn(f'"{parts[k]}!"'[:60], note)
                self.assertIn("there", note)

    def test_without_a_folder_the_rates_cannot_be_kept(self):
        done = tenon("caps", "sim:0", "--measure", env={"XDG_CACHE_HOME": "", "HOME": ""})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("TN-CLI-013", done.stderr)

    def test_an_unknown_device_is_missing(self):
        done = tenon("caps", "warp:7")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("warp:7", done.stderr)


class Plugins(Case):
    def test_every_file_has_a_verdict(self):
        listed = rows("plugins")
        for p in listed:
            self.assertLessEqual(PLUGIN_KEYS, set(p))
        paths = {os.path.basename(p["path"]) for p in listed}
        self.assertLessEqual({f.name for f in PLUGINS.glob("libtenon_backend_*.so")}, paths)

    def test_bad_files_have_a_verdict_each_and_harm_nothing(self):
        with Installed(["cpu"]) as at:
            (at.plugins / "libtenon_backend_text.so").write_text("not a library")
            (at.plugins / "libtenon_backend_empty.so").write_bytes(b"")
            (at.plugins / "libtenon_backend_folder.so").mkdir()
            wrong = bytearray((at.root / "lib/libtenon.so").read_bytes()[:4096])
            wrong[18:20] = b"\xf3\x00"  # EM_RISCV
            (at.plugins / "libtenon_backend_riscv.so").write_bytes(wrong)
            got = {os.path.basename(p["path"]): p for p in at.rows("plugins") if p["path"]}
            want = {"text": "bad-elf", "empty": "empty-file", "folder": "not-regular-file", "riscv": "wrong-target", "cpu": "in-use"}
            for name, verdict in want.items():
                p = got[f"libtenon_backend_{name}.so"]
                self.assertEqual(p["verdict"], verdict, p)
                self.assertEqual(p["code"] == 0, verdict == "in-use")
                self.assertTrue(verdict == "in-use" or p["cause"], p)
            done = at.tenon("plugins")
            self.assertEqual(done.returncode, 0)
            self.assertIn("try:   tenon explain TN-LOAD-004", done.stdout)
            self.assertEqual(at.rows("why", "add", "f32[16]", "f32[16]")[0]["rank"], 0)

    @unittest.skipIf(os.geteuid() != 0, "needs a user to become another one")
    def test_an_unreadable_file_is_seen_by_an_unprivileged_user(self):
        import subprocess
        with Installed([]) as at:
            secret = at.plugins / "libtenon_backend_secret.so"
            secret.write_bytes(b"x" * 100)
            secret.chmod(0)
            for folder in [at.root, *at.root.rglob("*")]:
                if folder.is_dir():
                    folder.chmod(0o755)
            done = subprocess.run([str(at.program), "plugins", "--json"], env={**at.env(), "PATH": os.environ["PATH"]}, capture_output=True, text=True, user="nobody")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('"verdict":"unreadable"', done.stdout)


class Doctor(Case):
    def test_a_working_machine_is_healthy(self):
        findings = rows("doctor")
        for f in findings:
            self.assertEqual(set(f), {"check", "state", "required", "value", "why", "try", "reason", "detail"})
            self.assertIn(f["state"], {"ok", "note", "warning", "missing"})
            if f["state"] in ("warning", "missing"):
                self.assertTrue(f["try"], f)
        by_name = {f["check"]: f for f in findings}
        self.assertEqual(by_name["device cpu:0"]["state"], "ok")
        self.assertIn("processor", by_name)
        self.assertIn("memory", by_name)

    def test_the_report_says_all_and_names_nobody(self):
        with tempfile.TemporaryDirectory() as home:
            path = pathlib.Path(home, "report.jsonl")
            env = {"HOME": home, "USER": "somebody", "TENON_PLUGIN_PATH": home + "/plugins", "SECRET_TOKEN": "s3cr3t"}
            done = tenon("doctor", "--report", str(path), env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            text = path.read_text()
            kinds = [json.loads(line)["kind"] for line in text.splitlines()]
            self.assertLessEqual({"system", "environment", "finding", "plugin", "device"}, set(kinds))
            self.assertIn('"TENON_PLUGIN_PATH":"~/plugins"', text)
            for word in (home, "somebody", "s3cr3t", platform.node()):
                self.assertNotRegex(text, rf"(?<!\w){re.escape(word)}(?!\w)")

    def test_a_report_that_cannot_be_written_is_an_error(self):
        done = tenon("doctor", "--report", "/nowhere/report.jsonl")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("TN-FILE-", done.stderr)

    def test_a_plugin_that_is_gone_is_named_with_what_to_type(self):
        with Installed(["cpu"]) as at:
            done = at.tenon("doctor")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("plugin onednn", done.stdout)
            self.assertIn("sudo apt install libdnnl-dev", done.stdout)

    def test_without_any_plugin_the_linked_reference_still_computes(self):
        with Installed([]) as at:
            by_name = {f["check"]: f for f in at.rows("doctor")}
            self.assertEqual(by_name["device cpu:0"]["state"], "ok")
            self.assertEqual(by_name["plugin cpu-kernels"]["state"], "warning")


if __name__ == "__main__":
    unittest.main()
