"""explain: every section of docs/errors by its id."""
import re
import unittest

from command import SOURCE, Case, rows, tenon

SECTIONS = {m.group(1): m.group(2) for page in (SOURCE / "docs/errors").glob("TN-*.md") for m in re.finditer(r"^## (TN-[A-Z]+-\d{3}) ?(.*)$", page.read_text(), re.M)}


class Explain(Case):
    def test_lists_every_section(self):
        self.assertEqual({r["id"]: r["title"] for r in rows("explain")}, SECTIONS)

    def test_shows_the_text_of_one(self):
        done = tenon("explain", "TN-LOAD-007")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("TN-LOAD-007  "), done.stdout)
        self.assertIn("**Try:**", done.stdout)
        self.assertNotIn("## TN-", done.stdout)

    def test_short_and_lower_forms_are_understood(self):
        want = rows("explain", "TN-LOAD-007")
        for word in ("tn-load-7", "load-007", "LOAD-07"):
            self.assertEqual(rows("explain", word), want)

    def test_the_nearest_id_is_suggested(self):
        self.assert_error(tenon("explain", "TN-LOAD-999"), 2, "TN-CLI-008", "tenon explain " + max(i for i in SECTIONS if i.startswith("TN-LOAD-")))
        self.assert_error(tenon("explain", "TN-LAOD-007"), 2, "TN-CLI-008", "tenon explain TN-LOAD-007")

    def test_every_id_that_the_command_can_print_is_explained(self):
        source = "".join(f.read_text() for f in (SOURCE / "tools/tenon").rglob("*.cpp"))
        printed = set(re.findall(r'"(TN-CLI-\d{3})"', source))
        self.assertEqual(sorted(printed - set(SECTIONS)), [])


if __name__ == "__main__":
    unittest.main()
