"""why: the decision record of a call."""
import json
import unittest

from command import PLUGINS, Case, Installed, rows, tenon

MATMUL = ("why", "matmul", "f32[512,512]", "f32[512,512]")
CONV = ("why", "conv2d", "f32[4,16,28,28]", "f32[32,16,3,3]", "-", "--attr", "lo=1,1", "--attr", "hi=1,1")
SOFTMAX = ("why", "softmax", "f32[64,1000]")
HAS = {name: (PLUGINS / f"libtenon_backend_{name}.so").exists() for name in ("cpu", "onednn", "sim")}


def first_part(found):
    return [r for r in found if r["part"] == 0]


class Why(Case):
    def check_record(self, found):
        """Exactly one winner, first; every other row has a reason; costs rise."""
        rows_ = first_part(found)
        self.assertTrue(rows_[0]["winner"])
        self.assertEqual(sum(r["winner"] for r in rows_), 1)
        for r in rows_[1:]:
            self.assertTrue(r["reason"], r)
            self.assertNotEqual(r["why"], "won")
        costs = [r["est_ns"] for r in rows_ if r["why"] in ("won", "slower", "tier", "name")]
        self.assertEqual(costs, sorted(costs))
        self.assertEqual(len({(r["plugin"], r["kernel"]) for r in rows_}), len(rows_), "a candidate has two rows")

    def test_matmul_lists_the_candidates_of_every_plugin(self):
        found = rows(*MATMUL)
        self.check_record(found)
        plugins = {r["plugin"].split(".")[-1] for r in first_part(found)}
        self.assertIn("reference", " ".join(r["kernel"] for r in first_part(found)) + " ".join(plugins))
        if HAS["onednn"]:
            self.assertIn("onednn", plugins)

    def test_conv_and_softmax_list_expand(self):
        for call in (CONV, SOFTMAX):
            found = rows(*call)
            self.check_record(found)
            self.assertIn("expand", {r["kind"] for r in first_part(found)}, call)

    def test_a_winning_expansion_shows_its_parts(self):
        with Installed([]) as at:
            found = at.rows(*SOFTMAX)
            self.assertEqual(first_part(found)[0]["kind"], "expand")
            parts = {r["part"] for r in found}
            self.assertGreaterEqual(max(parts), 3)  # max, exp, sum, divide in some cut
            for part in parts:
                self.assertTrue([r for r in found if r["part"] == part][0]["winner"])

    def test_each_part_of_an_expansion_says_its_op_types_kernel_and_cost(self):
        for plugins in ([], ["cpu", "onednn"]):  # the expansion wins, and loses
            with Installed(plugins) as at:
                found = at.rows(*SOFTMAX)
                self.assertEqual({(r["op"], r["call"], r["depth"]) for r in first_part(found)}, {("softmax", "softmax f32[64,1000] -> f32[64,1000]", 0)})
                chosen = [r for r in found if r["part"] > 0 and r["winner"]]
                self.assertEqual([r["part"] for r in chosen], sorted({r["part"] for r in found} - {0}))
                for r in chosen:
                    self.assertTrue(r["call"].startswith(r["op"] + " f32["), r)
                    self.assertIn(" -> f32[", r["call"])
                    self.assertGreaterEqual(r["depth"], 1)
                    self.assertGreater(r["est_ns"], 0)
                    self.assertTrue(r["kernel"])
                self.assertIn("reduce", {r["op"] for r in chosen} | {r["kernel"].split(".")[1] for r in chosen if "." in r["kernel"]})
                text = at.tenon(*SOFTMAX).stdout
                for r in chosen:
                    self.assertIn(r["call"], text)

    def test_taking_a_plugin_away_changes_the_winner(self):
        if not HAS["onednn"]:
            self.skipTest("the onednn plugin is not built")
        with Installed(["cpu", "onednn"]) as at:
            before = first_part(at.rows(*MATMUL))[0]
            (at.plugins / "libtenon_backend_onednn.so").unlink()
            after = first_part(at.rows(*MATMUL))
            self.assertTrue(before["plugin"].endswith("onednn"), before)
            self.assertNotEqual(after[0]["plugin"], before["plugin"])
            self.assertTrue(after[0]["winner"])
            self.assertNotIn(before["plugin"], {r["plugin"] for r in after})

    def test_the_choice_does_not_depend_on_the_order_of_files(self):
        names = [n for n in ("cpu", "onednn", "sim") if HAS[n]]
        with Installed(names) as at:
            want = [(r["kernel"], r["why"]) for r in at.rows(*MATMUL)]
            for i, name in enumerate(reversed(names)):  # bytewise order of names is the order of loading
                (at.plugins / f"libtenon_backend_{name}.so").rename(at.plugins / f"libtenon_backend_{i}{name}.so")
            self.assertEqual(sorted((r["kernel"], r["why"]) for r in at.rows(*MATMUL)), sorted(want))
            self.assertEqual(at.rows(*MATMUL)[0]["kernel"], want[0][0])

    def test_the_text_names_the_result_and_the_winner(self):
        done = tenon("why", "matmul", "f32[8,16]", "f32[16,4]")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("matmul f32[8,16] f32[16,4] -> f32[8,4]  on cpu:0", done.stdout)
        self.assertIn("->", done.stdout.splitlines()[2])

    def test_no_expand_leaves_only_kernels_made_for_the_op(self):
        with Installed([]) as at:
            done = at.tenon(*SOFTMAX, "--policy", "no-expand")
            self.assert_error(done, 1, "TN-CLI-007", "no candidate takes this call")
            self.assertIn("policy no-expand", done.stdout)

    def test_a_required_device_that_is_absent_is_an_error(self):
        done = tenon(*MATMUL, "--device", "cuda:0", "--policy", "require")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cuda:0", done.stderr)

    def test_a_list_of_devices_takes_the_next_that_works(self):
        done = tenon(*MATMUL, "--device", "cuda:0,cpu:0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on cpu:0", done.stdout)

    def test_attributes_by_word_and_by_program(self):
        self.check_record(rows("why", "reduce", "f32[8,100]", "--attr", "axes=1", "--attr", "monoid=max"))
        self.check_record(rows("why", "pointwise", "bf16[100]", "bf16[100]", "--attr", "program=add"))
        self.check_record(rows("why", "matmul", "u8[16,16]", "i8[16,16]", "--attr", "dtype=i32"))

    def test_strided_operands(self):
        self.check_record(rows("why", "matmul", "f32[64,64]{1,64}", "f32[64,64]"))

    def test_views_run_nothing(self):
        done = tenon("why", "permute", "f32[2,3]", "--attr", "perm=1,0")
        self.assertEqual(done.returncode, 0, done.stderr)


class BadCalls(Case):
    def test_operands(self):
        for spec, word in (("f32", "brackets"), ("f33[2]", "element type"), ("f32[2", "not closed"), ("f32[2;3]", "commas"), ("f32[-1]", "-1"),
                           ("f32[1,1,1,1,1,1,1,1,1]", "at most 8"), ("f32[2,3]{1}", "stride"), ("f32[99999999999999999999]", "whole numbers"), ("", "element type")):
            self.assert_error(tenon("why", "relu", spec), 2, "TN-CLI-004", word)

    def test_attributes(self):
        self.assert_error(tenon("why", "softmax", "f32[2,3]", "--attr", "axes=1"), 2, "TN-CLI-005", "softmax knows axis", "--attr axis=")
        self.assert_error(tenon("why", "softmax", "f32[2,3]", "--attr", "axis=one"), 2, "TN-CLI-005", "whole number")
        self.assert_error(tenon("why", "softmax", "f32[2,3]", "--attr", "axis"), 2, "TN-CLI-005", "key=value")

    def test_counts(self):
        self.assert_error(tenon("why", "add", "f32[2]", "f32[2]", "f32[2]"), 2, "TN-CLI-006", "3 given, 2 wanted")

    def test_shapes_are_the_ops_own_business(self):
        done = tenon("why", "matmul", "f32[128,256]", "f32[512,64]")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("error[TN-SHAPE-"), done.stderr)
        self.assertIn("256", done.stderr)
        self.assertIn("512", done.stderr)

    def test_errors_as_json(self):
        done = tenon("why", "sofmax", "f32[2]", "--json")
        error = json.loads(done.stderr)
        self.assertEqual(error["error"], "TN-CLI-003")
        self.assertEqual(set(error), {"error", "what", "where", "why", "try"})
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
