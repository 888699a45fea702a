"""ops: every op of the contract has a page, and its example is a call that `tenon why` answers."""
import re
import unittest

from command import SOURCE, Case, rows, tenon

OPS_DEF = (SOURCE / "abi/include/tenon/ops.def").read_text()
NAMES = [m.group(1) for m in re.finditer(r"X\([A-Z0-9_]+, (\w+), \d+, \w+, \w+, \w+\)", OPS_DEF)]


class Ops(Case):
    def test_lists_the_ops_of_the_contract_in_its_order(self):
        self.assertGreater(len(NAMES), 80)
        self.assertEqual([op["name"] for op in rows("ops")], NAMES)

    def test_every_page_is_complete(self):
        for op in rows("ops"):
            for key in ("summary", "semantics", "example", "family", "dtypes"):
                self.assertTrue(op[key], f"{op['name']}: {key} is empty")

    def test_the_page_of_softmax(self):
        page = tenon("ops", "softmax").stdout
        for line in ("softmax  Probabilities along one axis.", "axis (integer, default -1)", "tenon why softmax f32[2,3] --attr axis=-1"):
            self.assertIn(line, page)

    def test_operands_are_named_where_the_contract_names_them(self):
        by_name = {op["name"]: op for op in rows("ops")}
        self.assertIn("x [N,C,H,W], w [O, C/groups, KH, KW], bias? [O]", by_name["conv2d"]["operands"])
        self.assertIn("a [..., m, k]", by_name["matmul"]["operands"])

    def test_every_example_is_answered(self):
        failed = []
        for op in rows("ops"):
            words = op["example"].split()
            self.assertEqual(words[:2], ["tenon", "why"])
            done = tenon(*words[1:], "--json")
            if done.returncode != 0:
                failed.append(f"{op['example']}: {done.stderr.strip()}")
        self.assertEqual(failed, [])

    def test_an_unknown_op_gets_a_suggestion(self):
        self.assert_error(tenon("ops", "sofmax"), 2, "TN-CLI-003", 'no op is called "sofmax"', "use softmax")


if __name__ == "__main__":
    unittest.main()
