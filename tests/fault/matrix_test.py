"""Every behaviour of the fault kit beside a good plugin, in both orders: the good one works, the bad one has its own verdict.

    tests/fault/matrix_test.py --build build/dev --app BUILD/bin/fault_app --plugins BUILD/tests/fault/plugins [--sanitized] [--update] [unittest arguments]

--update writes the table of docs/faults.md, which the last test compares with what was seen.
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
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/faults.md"
TIMEOUT_MS = 400
options = argparse.Namespace()
CODES = {0: "in-use", 11: "crashed-in-probe", 12: "probe-timeout", 14: "query-refused", 17: "bad-table", 19: "open-error"}
STAGES = ["constructor", "query", "open", "kernels", "devices", "supports", "launch", "close", "exit"]


def expected():
    """{behaviour: (what it does, code, cause)}; the cause is a regular expression of its whole text without the quarantine's."""
    rows = {"crash_load": ("crashes in code that the dynamic linker runs", 11, "SIGSEGV in constructor")}
    for at in STAGES:
        rows[f"crash_{at}"] = (f"crashes in {at}", 11, f"SIGSEGV in {at}")
    for at in ["constructor", "open", "launch"]:
        rows[f"ill_{at}"] = (f"executes an illegal instruction in {at}", 11, f"(SIGILL|SIGTRAP) in {at}")
        rows[f"abort_{at}"] = (f"aborts in {at}", 11, f"SIGABRT in {at}")
    for at in ["constructor", "query", "open", "devices", "launch"]:
        rows[f"hang_{at}"] = (f"hangs in {at}", 12, f"{TIMEOUT_MS} ms passed in {at}")
        rows[f"leave_{at}"] = (f"calls exit(0) in {at}", 11, f"exit status 0 in {at}, without an end record")
    for at in STAGES:
        rows[f"throw_{at}"] = (f"throws a C++ exception in {at}", 11, rf"a C\+\+ exception in {at}")
    if options.sanitized:  # no exception comes through the sanitizer's own dlopen
        rows["throw_constructor"] = (rows["throw_constructor"][0], 11, "SIGABRT in constructor")
    rows["throw_query"] = ("throws a C++ exception in query", 14, "tn_plugin_query threw an exception, which the contract forbids")
    rows["throw_exit"] = ("throws a C++ exception in exit", 11, "SIGABRT in exit")
    for at in ["constructor", "query", "open", "devices", "supports", "launch"]:
        rows[f"rounding_{at}"] = (f"changes the rounding mode in {at}", 0, "")
    rows.update({
        "null_table": ("gives no table", 14, r"tn_plugin_query returned NULL for ABI \d+\.\d+"),
        "lie_abi": ("gives a table of another ABI version", 17, r"the table says ABI \d+\.\d+, asked for was \d+\.\d+"),
        "half_group": ("leaves an entry of a group out", 17, "some device entries are there, but these are NULL: copy"),
        "table_0": ("says that its table has 0 bytes", 17, r"table size 0, at least \d+ wanted"),
        "table_4": ("says that its table has 4 bytes", 17, r"table size 4, at least \d+ wanted"),
        "table_short": ("gives a table without its last required entry", 17, r"table size \d+, at least \d+ wanted"),
        "table_old": ("gives the shortest table that is allowed", 0, ""),
        "table_huge": ("says that its table has 4 GiB", 0, ""),
        "lie_count": ("reports a million devices", 19, r"TN-ABI-003: test\.lie_count reports 1000000 devices; at most 256 are believed"),
        "lie_memory": ("reports more free memory than there is", 0, ""),
        "lie_uuid": ("claims the hardware of the good plugin", 0, ""),
        "lie_name": ("gives a name without an end", 0, ""),
        "lie_stride": ("gives kernel rows of 4 bytes", 19, r"TN-ABI-001: test\.lie_stride: kernel table is malformed; 1 rows of stride 4.*"),
        "lie_row": ("leaves prepare of a kernel out", 19, r"TN-ABI-002: test\.lie_row: kernel row 0 is incomplete; name, prepare and retire are required"),
        "lie_support": ("accepts what it then cannot prepare", 0, ""),
        "lie_cost": ("says that its kernel costs nothing", 0, ""),
        "lie_live": ("counts a live object for ever", 0, ""),
        "leak": ("never frees memory of the host", 0, ""),
        "overrun": ("writes one element behind its result", 11, "SIGSEGV in launch"),
        "late_exit": ("calls the host from a destructor, after close", 11, "SIGSEGV in exit"),
        "fail_alloc": ("fails its first allocation", 0, ""),
        "fail_open": ("fails to open in an orderly way", 19, "the firmware does not answer")})
    return rows


def environment(cache, **more):
    # Sanitized programs: the host's findings and leaks end it with a status; the child that tries plugins has options of its own.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TENON_", "XDG_", "ASAN_", "LSAN_", "UBSAN_"))}
    if options.sanitized:
        kept["LSAN_OPTIONS"] = f"suppressions={ROOT / 'tests/fault/leaks.supp'}:print_suppressions=0"
    return dict(kept, NO_COLOR="1", XDG_CACHE_HOME=str(cache), TENON_CONFIG=f"loader.probe_timeout_ms={TIMEOUT_MS}", **more)


def place(folder, **files):
    """Copies fixtures as plugins: place(folder, m="good")."""
    for name, fixture in files.items():
        shutil.copy(options.plugins / f"{fixture}.so", folder / f"libtenon_backend_{name}.so")


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


class Matrix(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tenon-fault-")
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        self.folder, self.cache = self.top / "plugins", self.top / "cache"
        self.folder.mkdir()

    def run_program(self, *command, cache=None, **more):
        began = time.monotonic()
        ran = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, env=environment(cache or self.cache, **more))
        self.assertEqual(ran.returncode, 0, f"{command}\n{ran.stdout}\n{ran.stderr}")
        self.assertLess(time.monotonic() - began, 150 if options.sanitized else 30)
        return ran.stdout

    def check_app(self, behaviour, code, cause, folder, cache):
        out = lines_of(self.run_program(options.app, folder, cache=cache))
        plugins = {p["plugin"]: p for p in out if "plugin" in p}
        devices = {d["device"]: d["sum"] for d in out if "device" in d}
        bad = plugins[f"test.{behaviour}"]
        self.assertEqual(bad["code"], code, bad)
        seen = bad["cause"].split("; in quarantine until: ")
        self.assertRegex(seen[0], f"^{cause}$")
        self.assertEqual(seen[1:], [f"tenon plugins --forget test.{behaviour}"] if code in (11, 12) else [])
        self.assertEqual((plugins["test.good"]["code"], plugins["dev.tenon.cpu"]["code"]), (0, 0))
        self.assertEqual((devices["good:0"], devices["cpu:0"]), ("", ""))
        self.assertIn({"own_environment": True}, out)
        return bad["cause"]

    def check_command(self, behaviour, code, cause, folder, cache):
        """What `tenon plugins` says: from the cache now, and the same."""
        tenon = options.build / "bin/tenon"
        if not tenon.exists():
            return
        path = {"TENON_PLUGIN_PATH": str(folder), "cache": cache}
        rows = {r["id"]: r for r in lines_of(self.run_program(tenon, "plugins", "--json", **path))}
        row = rows[f"test.{behaviour}"]
        self.assertEqual((row["code"], row["verdict"], row["in_use"]), (code, CODES[code], code == 0))
        # JSON keeps the line breaks that the app above writes as blanks.
        self.assertEqual(re.sub(r"\s", " ", row["cause"]), cause)
        self.assertEqual(row["explain"], f"TN-LOAD-{code:03d}" if code else "")
        text = self.run_program(tenon, "plugins", **path)
        self.assertRegex(text, rf"(?m)^{CODES[code]} +test\.{behaviour} ")
        if code:
            self.assertIn(f"TN-LOAD-{code:03d} {CODES[code]}: {row['path']}", text)

    def test_every_behaviour_has_a_row_and_every_row_a_plugin(self):
        self.assertEqual(sorted(p.stem for p in options.plugins.glob("*.so")), sorted([*expected(), "good"]))

    def check_beside(self, behaviour, name, code, cause, where):
        folder = self.top / where / "plugins"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place(folder, **{name: behaviour, "m": "good"})
        cache = self.top / where / "cache"
        seen = self.check_app(behaviour, code, cause, folder, cache)
        self.check_command(behaviour, code, seen, folder, cache)

    def test_beside_a_good_plugin_in_both_orders(self):
        """What hangs takes no processor: it is waited for beside the others, with folders of its own."""
        trials = [(behaviour, name, code, cause) for behaviour, (_, code, cause) in expected().items() for name in ["a", "z"]]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = {trial: pool.submit(self.check_beside, *trial, trial[0] + trial[1]) for trial in trials if trial[0].startswith("hang_")}
            for trial in trials:
                if trial not in waiting:
                    with self.subTest(behaviour=trial[0], before=trial[1] == "a"):
                        self.check_beside(*trial, "beside")
            for trial, done in waiting.items():
                with self.subTest(behaviour=trial[0], before=trial[1] == "a"):
                    done.result()

    def test_all_at_once(self):
        place(self.folder, **{b: b for b in expected()}, good="good")
        out = lines_of(self.run_program(options.app, self.folder))
        plugins = {p["plugin"]: p["code"] for p in out if "plugin" in p}
        self.assertEqual({b: plugins[f"test.{b}"] for b in expected()}, {b: code for b, (_, code, _) in expected().items()})
        devices = {d["device"]: d["sum"] for d in out if "device" in d}
        self.assertEqual((plugins["test.good"], devices["good:0"], devices["cpu:0"]), (0, "", ""))

    def test_quarantine_lasts_until_it_is_forgotten(self):
        tenon = options.build / "bin/tenon"
        if not tenon.exists():
            self.skipTest("the tree was built without the tenon command")
        place(self.folder, x="hang_open")
        path = {"TENON_PLUGIN_PATH": str(self.folder)}
        times = []
        for arguments in [[], [], ["--forget", "test.hang_open"], []]:
            began = time.monotonic()
            rows = lines_of(self.run_program(tenon, "plugins", "--json", *arguments, **path))
            times.append(time.monotonic() - began)
            self.assertIn(12, [r["code"] for r in rows])
        tried = [t > TIMEOUT_MS / 1000 for t in times]
        self.assertEqual(tried, [True, False, True, False], times)

    def test_without_tenon_probe_the_verdict_says_so_or_the_plugin_is_refused(self):
        library = self.top / "lib"
        library.mkdir()
        shutil.copy(options.build / "lib/libtenon.so.0", library)  # an installation that lacks libexec
        place(self.folder, a="good")
        for setting, code, cause in [("on", 0, "used without a probe: tenon-probe is absent from the installation"),
                                     ("require", 25, "tenon-probe is absent from the installation"), ("off", 0, "")]:
            env = dict(environment(self.cache), LD_LIBRARY_PATH=str(library), TENON_CONFIG=f"loader.probe={setting}")
            ran = subprocess.run([options.app, self.folder], capture_output=True, text=True, timeout=60, env=env)
            good = [p for p in lines_of(ran.stdout) if p.get("plugin") == "test.good"][0]
            self.assertEqual((good["code"], good["cause"]), (code, cause))

    def test_exceptions_of_a_plugin_that_was_not_tried_are_held_at_the_border(self):
        for at in ["open", "kernels", "devices"]:
            place(self.folder, a=f"throw_{at}", m="good")
            env = dict(environment(self.cache), TENON_CONFIG="loader.probe=off")
            ran = subprocess.run([options.app, self.folder], capture_output=True, text=True, timeout=60, env=env)
            out = lines_of(ran.stdout)
            bad = [p for p in out if p.get("plugin") == f"test.throw_{at}"][0]
            self.assertEqual((ran.returncode, bad["code"]), (0, 19), bad)
            self.assertIn({"device": "good:0", "sum": ""}, out)

    def test_the_table_in_the_docs_is_current(self):
        if options.sanitized:
            self.skipTest("it shows what happens without a sanitizer")
        rows = ["| the plugin | verdict | cause |", "| --- | --- | --- |"]
        for what, code, cause in expected().values():
            link = f"[TN-LOAD-{code:03d}](errors/TN-LOAD.md#tn-load-{code:03d}-{CODES[code]}) {CODES[code]}" if code else "in use"
            text = re.sub(r"\\d\+", "N", cause).replace("(SIGILL|SIGTRAP)", "SIGILL").replace("\\.", ".").replace("\\+", "+").replace(".*", "").replace(f"{TIMEOUT_MS} ms", "10 s")
            rows.append(f"| {what} | {link} | {f'`{text}`' if text else ''} |")
        table = "\n".join(rows)
        page = PAGE.read_text()
        begin, end = "<!-- generated by tests/fault/matrix_test.py --update -->\n", "\n<!-- end -->"
        head, rest = page.split(begin)
        if options.update:
            PAGE.write_text(head + begin + table + end + rest.split(end)[1])
        else:
            self.assertEqual(rest.split(end)[0], table, "run tests/fault/matrix_test.py --update")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    for name in ["--build", "--app", "--plugins"]:
        parser.add_argument(name, required=True, type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--sanitized", action="store_true", help="the programs are built with the address sanitizer: slower, and leaks are findings")
    options, left = parser.parse_known_args()
    options.build = options.build.resolve()
    if options.sanitized:
        TIMEOUT_MS = 4001  # not whole seconds, so that it is written in ms
    unittest.main(argv=[sys.argv[0], *left])
