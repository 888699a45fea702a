"""bench: the form of its rows. Figures are not judged here."""
import unittest

from command import Case, Installed, rows, tenon

KEYS = ["case", "impl", "n", "min", "median", "p90", "unit", "env"]


class Bench(Case):
    def check(self, found):
        for r in found:
            self.assertEqual(list(r), KEYS)
            self.assertGreater(r["min"], 0)
            self.assertLessEqual(r["min"], r["median"])
            self.assertLessEqual(r["median"], r["p90"])
            self.assertIn(r["unit"], {"ns", "ms", "GFLOP/s", "GB/s", "img/s"})
            self.assertGreaterEqual(r["env"]["cores"], 1)

    def test_dispatch_rows(self):
        found = rows("bench", "dispatch", "--alone", "--pairs", "3")
        self.check(found)
        self.assertEqual([r["case"] for r in found], [f"dispatch.{c}" for c in (
            "add16.nograd", "add16.grad", "rotate", "launch", "chain50.fwdbwd", "threads1", "threads2")])
        self.assertEqual({r["impl"] for r in found}, {"tenon"})
        self.assertEqual({r["n"] for r in found}, {3})

    def test_gemm_rows(self):
        found = rows("bench", "gemm", "--case", "512.t1", "--pairs", "2")
        self.check(found)
        self.assertEqual({r["case"] for r in found}, {f"gemm.{t}.512.t1{p}" for t in ("f32", "bf16", "u8s8") for p in ("", ".packed")})
        self.assertLessEqual({r["impl"] for r in found}, {"tenon", "onednn", "tiles"})

    def test_a_rival_that_is_needed_and_absent_is_an_error(self):
        with Installed(["cpu"]) as at:
            done = at.tenon("bench", "elementwise", "--case", "softmax", "--pairs", "1", "--need", "onednn")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("error[TN-CLI-012]", done.stderr)

    def test_an_unknown_suite_gets_a_suggestion(self):
        self.assert_error(tenon("bench", "gem"), 2, "TN-CLI-009", "tenon bench gemm")


if __name__ == "__main__":
    unittest.main()
