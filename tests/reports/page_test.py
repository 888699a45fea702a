"""docs/reports.md and the tests agree: every test named there exists, and every test of a public report stands there.

    tests/reports/page_test.py [--update] [unittest arguments]

--update writes the names of the tests into the table, beside the report that the beginning of their names gives.
"""
import argparse
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reports.md"
options = argparse.Namespace(update=False)
# What a test's name begins with, made from a reference: "KhronosGroup/Vulkan-Loader#1467" is vulkan_loader_1467.
REFERENCE = re.compile(r"([\w.-]+)/([\w.-]+)(?:#| PR #)(\d+)")


def keys(text):
    """The beginnings of names that stand for the references in a text, with and without the owner."""
    found = []
    for owner, project, number in REFERENCE.findall(text):
        for name in (project, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", project)):
            name = re.sub(r"\W", "_", name).lower()
            found += [f"{name}_{number}_", re.sub(r"\W", "_", owner).lower() + f"_{name}_{number}_"]
    return found


def tests():
    """{name of the test: its file}, of the whole tree."""
    found = {}
    for file in sorted((ROOT / "tests").glob("*/*")):
        pattern = {".cpp": r"TEST(?:_[FP])?\(\w+,\s*(\w+)\)", ".py": r"def test_(\w+)\("}.get(file.suffix)
        for name in re.findall(pattern, file.read_text()) if pattern else []:
            found[name] = file
    return found


def made_for_reports(file):
    return file.name == "reports_test.cpp" or (file.parent.name == "reports" and file.name != "page_test.py" and file.name != "selection_test.cpp")


def rows():
    """[(line number, cells)] of the tables of the page."""
    found = []
    for i, line in enumerate(PAGE.read_text().splitlines()):
        if line.startswith("| ") and not line.startswith(("| ---", "| report")):
            found.append((i, [c.strip() for c in line.strip("|").split(" | ")]))
    return found


def names_cell(report):
    begins = tuple(keys(report))
    return "<br>".join(f"`{name}` in {file.relative_to(ROOT / 'tests')}" for name, file in tests().items() if name.startswith(begins))


class Page(unittest.TestCase):
    def test_every_row_has_a_rule_and_its_tests(self):
        lines = PAGE.read_text().splitlines()
        for i, cells in rows():
            self.assertEqual(len(cells), 3, cells)
            self.assertTrue(keys(cells[0]), cells)
            self.assertTrue(cells[1], cells)
            cell = names_cell(cells[0])
            self.assertTrue(cell, f"no test of {cells[0]}")
            if options.update:
                lines[i] = f"| {cells[0]} | {cells[1]} | {cell} |"
            else:
                self.assertEqual(cells[2], cell, "run tests/reports/page_test.py --update")
        if options.update:
            PAGE.write_text("\n".join(lines) + "\n")

    def test_every_test_of_a_report_has_a_row(self):
        known = tuple(k for _, cells in rows() for k in keys(cells[0]))
        for name, file in tests().items():
            if made_for_reports(file):
                self.assertTrue(name.startswith(known), f"{file}: {name} is of no report on docs/reports.md")

    def test_every_test_of_a_report_names_it_in_its_file(self):
        for i, cells in rows():
            for owner, project, number in REFERENCE.findall(cells[0]):
                files = {f for name, f in tests().items() if name.startswith(tuple(keys(cells[0])))}
                self.assertTrue(any(f"#{number}" in f.read_text() for f in files), f"{owner}/{project}#{number}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--update", action="store_true")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
