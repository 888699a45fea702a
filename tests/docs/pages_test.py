"""The index of the error pages names every family that has a page, links between the pages lead somewhere, and the Chinese
page says the same words of code as the English one (its blocks are compared by tools/check/snippets.py --same).

    tests/docs/pages_test.py [unittest arguments]
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ERRORS = ROOT / "docs/errors"
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
GENERATED = {ROOT / "docs/semantics.md"}  # written by a build target, see tools/docgen


def dead_links(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        path = (page.parent / target).resolve()
        if not re.match(r"\w+:", target) and not path.exists() and path not in GENERATED:
            yield f"{page.relative_to(ROOT)}: {target}"


class ErrorIndex(unittest.TestCase):
    def test_names_every_family_that_has_a_page(self):
        listed = set(re.findall(r"^\| `(TN-[A-Z]+)` \|", (ERRORS / "README.md").read_text(), re.M))
        written = {re.match(r"TN-[A-Z]+", page.name).group(0) for page in ERRORS.glob("TN-*.md")}
        self.assertEqual(written - listed, set(), "families without a row in docs/errors/README.md")


class Links(unittest.TestCase):
    def test_lead_to_files_that_exist(self):
        self.assertEqual([dead for page in PAGES for dead in dead_links(page)], [])


class Translation(unittest.TestCase):
    def test_holds_every_word_of_code_and_every_row_of_the_page(self):
        page, translation = ((ROOT / p).read_text() for p in ("README.md", "docs/zh/README.md"))
        for pattern in [r"(?<!`)`([^`\n]+)`(?!`)", r"\]\((?:\.\./)*(?:docs/)?([^)]*)\)"]:
            ours, theirs = (set(re.findall(pattern, text)) for text in (page, translation))
            self.assertEqual({w for w in ours - theirs if w not in ("zh/README.md", "README.md")}, set())
        self.assertEqual(page.count("\n| "), translation.count("\n| "), "rows of tables")


if __name__ == "__main__":
    unittest.main()
