"""Public reports about what a person sees: the `tenon` command, its text, its JSON and its exit status.

    tests/reports/command_test.py --build build/dev [unittest arguments]
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

options = argparse.Namespace(build=None)
CODES = {"not-a-plugin": 1, "not-regular-file": 2, "unreadable": 3, "empty-file": 4, "bad-elf": 5, "wrong-target": 6, "abi-range": 7, "cpu-need": 8, "missing-dependency": 9,
         "open-failed": 10, "crashed-in-probe": 11, "probe-timeout": 12, "no-symbol": 13, "query-refused": 14, "bad-table": 17, "open-unavailable": 18, "open-error": 19}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenon-reports-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        self.top.chmod(0o755)
        self.plugins = self.top / "plugins"
        self.plugins.mkdir()

    def place(self, name, fixture, kit="loader/fixtures"):
        file = self.plugins / f"libtenon_backend_{name}.so"
        shutil.copy(options.build / "tests" / kit / f"{fixture}.so", file)
        return file

    def tenon(self, *arguments, before=(), **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "XDG_"))}
        env = dict(kept, NO_COLOR="1", XDG_CACHE_HOME=str(self.top / "cache"), TENON_PLUGIN_PATH=str(self.plugins), TENON_CONFIG="loader.probe_timeout_ms=400")
        env.update({k: str(v) for k, v in more.items() if k.isupper()})
        user = {"user": more["user"], "group": 65534, "extra_groups": []} if "user" in more else {}
        return subprocess.run([*before, str(options.build / "bin/tenon"), *map(str, arguments)], capture_output=True, text=True, timeout=120, env=env, cwd="/", **user)

    def rows(self, *arguments, **more):
        done = self.tenon(*arguments, "--json", **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Loading(Case):
    # KhronosGroup/Vulkan-Loader#1467
    def test_vulkan_loader_1467_the_lists_end_well_and_name_the_failing_file(self):
        for names in (["a", "b", "c"], ["b", "a", "c"], ["c", "b", "a"]):
            for file in self.plugins.iterdir():
                file.unlink()
            self.place(names[0], "device"), self.place(names[2], "device2")
            bad = self.place(names[1], "devices_fail")
            names_of = {d["name"] for d in self.rows("devices")}
            self.assertTrue({"cpu:0", "device:0", "device2:0", "device2:1"} <= names_of, names_of)
            done = self.tenon("plugins")
            self.assertEqual(done.returncode, 0)
            lines = [line for line in done.stdout.splitlines() if line.startswith("TN-LOAD-") and str(self.plugins) in line]  # not the drivers that this machine lacks
            self.assertEqual(lines, [f"TN-LOAD-019 open-error: {bad}"])
            self.assertIn("the bus does not answer", done.stdout)

    # KhronosGroup/Vulkan-LoaderAndValidationLayers#2629
    def test_vulkan_loader_and_validation_layers_2629_one_file_is_one_set_of_devices(self):
        self.place("device", "device")
        (self.top / "link").symlink_to(self.plugins)
        path = f"{self.plugins}:{self.plugins}//:{self.top}/./plugins:{self.plugins}/../plugins:{self.top}/link"
        names = [d["name"] for d in self.rows("devices", TENON_PLUGIN_PATH=path)]
        self.assertEqual([n for n in names if n.startswith("device")], ["device:0"])

    # torch-spyre/torch-spyre#3659; also what a text file, a folder or a foreign library is
    def test_torch_spyre_3659_text_and_json_give_the_same_cause_of_every_failure(self):
        for fixture in ("undefined", "missing_dep", "unavailable", "open_error", "no_symbol", "query_null", "wrong_target", "next_major", "cpu_need", "no_record"):
            self.place(fixture, fixture)
        self.place("crash_open", "crash_open", "fault/plugins"), self.place("hang_open", "hang_open", "fault/plugins")
        (self.plugins / "libtenon_backend_text.so").write_text("this is text")
        (self.plugins / "libtenon_backend_empty.so").write_text("")
        (self.plugins / "libtenon_backend_folder.so").mkdir()
        rows = [r for r in self.rows("plugins") if r["path"].startswith(str(self.plugins))]
        text = self.tenon("plugins").stdout
        self.assertEqual(len(rows), 15)
        causes = set()
        for r in rows:
            self.assertEqual(CODES[r["verdict"]], r["code"], r)
            self.assertTrue(r["cause"], r)
            self.assertNotIn(r["cause"], causes)
            causes.add(r["cause"])
            self.assertIn(f"{r['explain']} {r['verdict']}: {r['path']}\n  why:   {r['cause']}\n  try:   tenon explain {r['explain']}", text)
            page = self.tenon("explain", r["explain"])
            self.assertEqual(page.returncode, 0, r)
            self.assertIn("Try", page.stdout)
        self.assertEqual(self.tenon("why", "add", "f32[4]", "f32[4]").returncode, 0)


class OneFile(Case):
    # torch-spyre/torch-spyre#3659: of one file as of many; nothing that it does ends the command
    def test_torch_spyre_3659_one_file_is_checked_whatever_it_does(self):
        kit = options.build / "tests/fault/plugins"
        rows = [("crash_constructor", 11, "SIGSEGV"), ("crash_open", 11, "SIGSEGV"), ("abort_launch", 0, ""), ("leave_query", 11, "exit status 0"), ("hang_open", 12, "passed"),
                ("crash_close", 11, "SIGSEGV"), ("crash_exit", 11, "SIGSEGV"), ("fail_open", 19, "the firmware does not answer"), ("null_table", 14, ""), ("good", 0, "")]
        tried = [(trial, *row) for trial in ("off", "on") for row in rows]  # by the loader's trial, and without it by the command's own child
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # what hangs is waited for beside the others
            waiting = [pool.submit(self.check_one, kit, *case) for case in tried if case[1].startswith("hang_")]
            for case in tried:
                if not case[1].startswith("hang_"):
                    self.check_one(kit, *case)
            for done in waiting:
                done.result()

    def check_one(self, kit, trial, fixture, code, words):
        if trial == "on" and fixture == "abort_launch":
            code, words = 11, "SIGABRT in launch"  # only the trial launches anything
        settings = {"TENON_CONFIG": f"loader.probe={trial};loader.probe_timeout_ms=400", "XDG_CACHE_HOME": self.top / "cache" / trial / fixture}
        check = ["abi", "check", kit / f"{fixture}.so", "--limit", "2"]
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            text = beside.submit(self.tenon, *check, **settings) if trial == "off" else None  # with a trial, it shows what the first has kept
            done = self.tenon(*check, "--json", **settings)
            text = text.result() if text else self.tenon(*check, **settings)
        said = json.loads(done.stdout)
        self.assertEqual((said["code"], done.returncode), (code, 1 if code else 0), (trial, fixture, said, done.stderr))
        if options.sanitized and words == "SIGSEGV":  # the sanitizer's own handler may make an exit status of the signal
            self.assertRegex(said["cause"], "SIGSEGV|exit status [1-9]")
        else:
            self.assertIn(words, said["cause"])
        self.assertEqual(text.returncode, done.returncode)
        self.assertIn(said["explain"] or "in-use", text.stdout)


class Choice(Case):
    # microsoft/onnxruntime#23372
    def test_onnxruntime_23372_a_required_device_that_cannot_be_had_ends_with_a_status_and_the_cause(self):
        self.place("crash_open", "crash_open", "fault/plugins")
        add = ["why", "add", "f32[4]", "f32[4]", "--device"]
        for device, words in (("npu:0", "no device is called npu:0"), ("crash_open:0", "SIGSEGV in open")):
            done = self.tenon(*add, device, "--policy", "require")
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn(words, done.stderr)
            done = self.tenon(*add, device, "--policy", "prefer")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"warning: {device} is not used", done.stderr)
            self.assertIn(words, done.stderr)
            self.assertIn("running on cpu:0", done.stderr)

    # microsoft/onnxruntime#27006
    def test_onnxruntime_27006_the_list_of_the_command_line_is_walked_in_order(self):
        self.place("a", "crash_open", "fault/plugins"), self.place("b", "good", "fault/plugins")
        done = self.tenon("why", "add", "f32[4]", "f32[4]", "--device", "crash_open,good,cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on good:0", done.stdout)
        self.assertIn("crash_open", done.stderr)


class Words(Case):
    # ggml-org/llama.cpp#17536
    def test_llama_cpp_17536_memory_is_shown_in_whole_numbers_of_bytes_and_holds_together(self):
        self.place("lie_memory", "lie_memory", "fault/plugins")
        for d in self.rows("devices"):
            self.assertIsInstance(d["memory_bytes"], int)
            self.assertLessEqual(d["memory_free_bytes"], d["memory_bytes"], d)
        cpu = [d for d in self.rows("devices") if d["name"] == "cpu:0"][0]
        total = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
        self.assertEqual(cpu["memory_bytes"], total)

    # pytorch/pytorch#30528, #180712: "not available" for ten different reasons
    def test_pytorch_30528_every_reason_has_its_own_code_and_the_exit_status_tells_absent_from_broken(self):
        absent, broken = 3, 1
        reasons = {"unavailable": ("open-unavailable", absent, "libdriver.so.7 is absent"), "missing_dep": ("missing-dependency", absent, "libtenon_fixture_dep.so"),
                   "next_major": ("abi-range", broken, "7.0"), "cpu_need": ("cpu-need", broken, ""), "wrong_target": ("wrong-target", broken, "riscv64"),
                   "open_error": ("open-error", broken, "the firmware does not answer"), "query_null": ("query-refused", broken, ""), "no_symbol": ("no-symbol", broken, "tn_plugin_query"),
                   "text": ("bad-elf", broken, "this"), "crash_open": ("crashed-in-probe", broken, "SIGSEGV in open"), "hang_open": ("probe-timeout", broken, "400 ms")}
        for fixture in reasons:
            if fixture == "text":
                (self.plugins / "libtenon_backend_text.so").write_text("this is text")
            elif fixture in ("crash_open", "hang_open"):
                self.place(fixture, fixture, "fault/plugins")
            else:
                self.place(fixture, fixture)
        for fixture, (verdict, status, words) in reasons.items():
            done = self.tenon("caps", f"{fixture}:0")
            self.assertEqual(done.returncode, status, (fixture, done.stderr))
            code = f"TN-LOAD-{CODES[verdict]:03d}"
            self.assertIn(code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("this machine has", done.stderr, "other devices are beside the point")
            said = json.loads(self.tenon("caps", f"{fixture}:0", "--json").stderr)
            self.assertIn(code, said["why"])
            self.assertEqual(said["try"], f"tenon explain {code}")
        done = self.tenon("caps", "npu:0")
        self.assertEqual(done.returncode, absent)
        self.assertIn("TN-DEVICE-004", done.stderr)

    def test_pytorch_30528_no_permission_is_a_reason_of_its_own(self):
        if os.geteuid() != 0:
            self.skipTest("needs a user to become another one")
        self.place("shut", "device").chmod(0)
        for text, arguments in (("unreadable", ["plugins"]), ("TN-LOAD-003", ["caps", "shut:0"])):
            done = self.tenon(*arguments, user="nobody", XDG_CACHE_HOME="")
            self.assertIn(text, done.stdout + done.stderr)
            self.assertIn("Permission denied", done.stdout + done.stderr)

    # LostRuins/koboldcpp#1023, NVIDIA/DIGITS#1358
    def test_koboldcpp_1023_every_command_means_the_same_device_by_a_name(self):
        self.place("good", "good", "fault/plugins")
        devices = {d["name"]: d for d in self.rows("devices", TENON_CONFIG="sim.devices=3")}
        self.assertTrue({"sim:0", "sim:1", "sim:2", "good:0"} <= set(devices), devices)
        for name in ("sim:0", "sim:1", "sim:2", "good:0"):
            head = self.tenon("why", "add", "f32[4]", "f32[4]", "--device", name, TENON_CONFIG="sim.devices=3").stdout
            self.assertIn(f"on {name}", head.splitlines()[0])
        names = {f["check"] for f in self.rows("doctor", TENON_CONFIG="sim.devices=3") if f["check"].startswith("device ")}
        self.assertEqual(names, {f"device {n}" for n in devices})


class Instructions(Case):
    # ggml-org/llama.cpp PR #14286: a file for newer processors dies before it is asked whether it fits
    def test_llama_cpp_14286_a_file_for_other_processors_is_never_opened_by_the_linker(self):
        file = self.place("cpu_need", "cpu_need")
        trace = self.top / "trace"
        done = self.tenon("plugins", "--json", LD_DEBUG="files", LD_DEBUG_OUTPUT=self.top / "linker", TENON_FIXTURE_TRACE=trace)
        self.assertEqual(done.returncode, 0)
        row = [json.loads(line) for line in done.stdout.splitlines() if str(file) in line][0]
        self.assertEqual(row["verdict"], "cpu-need")
        seen = "".join(p.read_text() for p in self.top.glob("linker.*"))
        self.assertIn("libtenon_backend_cpu.so", seen)
        self.assertNotIn(file.name, seen)
        self.assertFalse(trace.exists(), "no instruction of it ran, in no process")

    def test_llama_cpp_14286_what_is_compiled_for_newer_processors_runs_nothing_by_itself(self):
        commands = json.loads((options.build / "compile_commands.json").read_text())
        looked_at = 0
        for c in commands:
            relative = os.path.relpath(c["file"], options.source)
            if not relative.startswith(("kernel", "ops", "loader", "backends", "framework", "abi")):
                continue
            looked_at += 1
            if re.search(r" -m(?!tune)(arch|cpu|avx|sse|fma|f16c|amx|bmi|native)", c["command"]):
                name = re.search(r" -o (\S+)", c["command"]).group(1)
                sections = subprocess.run(["readelf", "-SW", options.build / name], capture_output=True, text=True).stdout
                self.assertNotRegex(sections, r"\.(init_array|ctors)", f"{relative} has static initialisers and its own instruction set")
        self.assertGreater(looked_at, 100)

    def test_llama_cpp_14286_an_old_processor_loads_every_plugin_and_computes(self):
        emulator = shutil.which("qemu-x86_64")
        if emulator is None or os.uname().machine != "x86_64" or options.sanitized:
            self.skipTest("needs qemu-x86_64, a build for x86_64, and no sanitizer")
        # The trial in a child process would run on the real processor. GPU drivers that compile for the processor, for minutes under an
        # emulator, are kept out: the plugins above them are loaded all the same.
        done = self.tenon("doctor", "--json", before=[emulator, "-cpu", "Nehalem"], TENON_CONFIG="loader.probe=off", OCL_ICD_VENDORS="/nonexistent", VK_DRIVER_FILES="/nonexistent")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = {f["check"]: f for f in map(json.loads, done.stdout.splitlines())}
        self.assertIn("computes", found["device cpu:0"]["value"])
        self.assertIn("cpu-kernels", found["plugins in use"]["value"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--sanitized", action="store_true")
    options, rest = parser.parse_known_args()
    options.build = options.build.resolve()
    options.source = pathlib.Path(__file__).resolve().parents[2]
    unittest.main(argv=[sys.argv[0], *rest])
