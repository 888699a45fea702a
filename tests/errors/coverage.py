#!/usr/bin/env python3
"""Checks that every error id with a page has a golden text, and that no golden text is about an id without one.

    tests/errors/coverage.py [--root DIR]

The few ids that only a failing machine can raise are listed below, each with its reason; one that has a golden text, or no
page, does not belong there.
"""
import argparse
import pathlib
import re
import sys

NEEDS_A_FAILING_MACHINE = {
    "TN-CLI-011": "an exception that nobody foresaw; whatever a test could provoke would get an id of its own",
    "TN-CLI-025": "a device that computes wrongly",
    "TN-CLI-026": "a file system that gives back other bytes than were written, checksums and all",
    "TN-LOAD-025": "a system that starts no process, or an installation without tenon-probe; tests/fault takes it away",
    "TN-OP-041": "a oneDNN that fails: its library damaged, or no memory left for it",
    "TN-OP-101": "a libtenon of another version than libtenon_framework: the linker would have to be deceived",
    "TN-STATE-001": "4,096 generations of a million types each: more than ten minutes of interning",
    "TN-STATE-002": "4,095 sweeps of a million attribute sets each: more than an hour of interning",
}


def pages(root):
    found = set()
    for page in (root / "docs/errors").glob("TN-*.md"):
        found.update(re.findall(r"^## (TN-[A-Z]+-\d{3})\b", page.read_text(), re.M))
    return found


def golden(root):
    found = set()
    for file in (root / "tests/errors/golden").glob("TN-*.txt"):
        found.update(re.findall(r"^\[(TN-[A-Z]+-\d{3})\b", file.read_text(), re.M))
    return found


def faults(root):
    with_page, with_text, listed = pages(root), golden(root), set(NEEDS_A_FAILING_MACHINE)
    yield from (f"{i}: has a page and no golden text: add a case to tests/errors, or take the id away" for i in sorted(with_page - with_text - listed))
    yield from (f"{i}: has a golden text and no page in docs/errors" for i in sorted(with_text - with_page))
    yield from (f"{i}: is listed as needing a failing machine, and a case provokes it" for i in sorted(listed & with_text))
    yield from (f"{i}: is listed as needing a failing machine, and has no page" for i in sorted(listed - with_page))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    root = parser.parse_args().root
    found = list(faults(root))
    print("\n".join(found) or f"golden texts: {len(golden(root))} of {len(pages(root))} ids, the others need a failing machine")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
