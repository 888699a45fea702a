"""The gate lets through what is within the limit and stops what is not. A script stands in for valgrind and costs what it is told."""
import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import gate

START_UP, COST = 5_000_000, 200
FAKE = """#!/bin/sh
# --tool --callgrind-out-file --dump-before PROGRAM PLUGINS CASE=WARM+COUNTED...
[ "$TENON_CONFIG" = cpu.isa=avx2 ] || exit 9
[ "$3" = --dump-before=tenon_next_part ] || exit 9
out=${{2#*=}}
shift 5
part=0
for pair; do
  echo "ops ${{pair%=*}} ${{pair#*+}}"
  part=$((part + 1))
  echo "totals: $(({start_up} + part))" > "$out.$part"
  part=$((part + 1))
  echo "totals: $(({cost} * ${{pair#*+}}))" > "$out.$part"
done
exit {code}
"""


class Gate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.baseline = self.root / "baseline.json"
        self.valgrind = self.root / "valgrind"
        self.costs(COST)
        self.skipped, gate.why_skipped = gate.why_skipped, lambda valgrind: None  # of any machine

    def tearDown(self):
        gate.why_skipped = self.skipped
        self.folder.cleanup()

    def costs(self, cost, code=0):
        self.valgrind.write_text(FAKE.format(start_up=START_UP, cost=cost, code=code))
        self.valgrind.chmod(0o755)

    def plant(self, cost, key="GNU 12 RelWithDebInfo"):
        self.baseline.write_text(json.dumps({key: {case: cost for case in gate.CASES}}))

    def run_gate(self, *more):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = gate.main(["--program", "p", "--plugins", "d", "--key", "GNU 12 RelWithDebInfo", "--baseline", str(self.baseline),
                              "--valgrind", str(self.valgrind), *more])
        return code, out.getvalue()

    def test_passes_what_costs_as_much_as_before(self):
        self.plant(COST)
        self.assertEqual(self.run_gate()[0], gate.PASS)

    def test_start_up_is_not_counted(self):
        self.plant(COST)
        self.assertIn(f"{COST}.0", self.run_gate()[1])

    def test_fails_on_a_baseline_five_percent_lower(self):
        self.plant(COST * 0.95)
        code, output = self.run_gate()
        self.assertEqual(code, gate.FAIL, output)
        for case in gate.CASES:
            self.assertIn(f"{case}: 200.0 instructions an op, baseline 190.0, +5.3 %", output)

    def test_the_limit_is_two_percent(self):
        self.plant(COST)
        self.costs(COST + 4)
        self.assertEqual(self.run_gate()[0], gate.PASS)
        self.costs(COST + 5)
        self.assertEqual(self.run_gate()[0], gate.FAIL)

    def test_one_case_alone_fails_the_gate(self):
        cases = {case: COST for case in gate.CASES}
        cases["rotate"] = COST * 0.95
        self.baseline.write_text(json.dumps({"GNU 12 RelWithDebInfo": cases}))
        code, output = self.run_gate()
        self.assertEqual(code, gate.FAIL)
        self.assertIn("rotate: 200.0", output)
        self.assertNotIn("launch: ", output)

    def test_a_case_without_a_baseline_fails(self):
        self.baseline.write_text(json.dumps({"GNU 12 RelWithDebInfo": {"launch": COST}}))
        code, output = self.run_gate()
        self.assertEqual(code, gate.FAIL)
        self.assertIn("rotate: has no baseline", output)

    def test_tells_of_gains_and_passes(self):
        self.plant(COST * 2)
        code, output = self.run_gate()
        self.assertEqual(code, gate.PASS)
        self.assertIn("became cheaper", output)

    def test_skips_an_unknown_compiler_and_names_the_known(self):
        self.plant(1, key="Clang 14 Release")
        code, output = self.run_gate()
        self.assertEqual(code, gate.SKIP)
        self.assertIn('no baseline for "GNU 12 RelWithDebInfo"; known: Clang 14 Release', output)

    def test_skips_without_valgrind(self):
        gate.why_skipped = self.skipped
        self.valgrind.unlink()
        code, output = self.run_gate()
        self.assertEqual(code, gate.SKIP)
        self.assertIn("valgrind is not installed", output)

    def test_update_writes_its_own_key_and_keeps_the_others(self):
        self.plant(1, key="Clang 14 Release")
        self.assertEqual(self.run_gate("--update")[0], gate.PASS)
        written = json.loads(self.baseline.read_text())
        self.assertEqual(written["GNU 12 RelWithDebInfo"], {case: COST for case in gate.CASES})
        self.assertEqual(written["Clang 14 Release"]["rotate"], 1)
        self.assertEqual(self.run_gate()[0], gate.PASS)

    def test_a_program_that_fails_is_neither_passed_nor_skipped_nor_written(self):
        self.plant(COST)
        before = self.baseline.read_text()
        self.costs(COST, code=3)
        code, output = self.run_gate("--update")
        self.assertEqual(code, gate.BROKEN)
        self.assertIn("exit code 3", output)
        self.assertEqual(self.baseline.read_text(), before)


if __name__ == "__main__":
    unittest.main()
