#!/usr/bin/env python3
"""Checks that every error id in the sources has a section in docs/errors, and that no section stands twice.

    tools/check/error_pages.py [--root DIR]

Ids are found as error_id(kShape, 2) or id(kShape, 2), as file_error(2), data_error(2) and conf_error(2), by number as
error_id(6, 2) or 6u << 16 | 2, as "TN-SHAPE-002" in a string, and as the codes of loader/verdicts.def.
"""
import argparse
import pathlib
import re
import sys

FOLDERS = ["kernel", "ops", "loader", "backends", "framework", "tools"]
CALL = re.compile(r"\b(?:error_)?id\(\s*(?:\w+::)*k([A-Z][a-z]+)\s*,\s*(\d+)\s*\)")
NAMED = re.compile(r"\b(data|file|conf)_error\((\d+)\)")
NUMBER = re.compile(r"(?:\berror_id\(|\b)(\d+)u?(?:,| << 16 \|) (\d+)\b")
FAMILIES = ["", "ARG", "SHAPE", "DTYPE", "STATE", "MEM", "OP", "DEVICE", "LOAD", "POLICY", "DATA", "FILE", "CONF", "GRAD", "TRAIN", "ABI"]
TEXT = re.compile(r"\bTN-([A-Z]+)-(\d{3})\b")


def used(root):
    """{id: first place}"""
    found = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in (".cpp", ".h", ".c", ".def") or not file.is_file():
                continue
            text = file.read_text(errors="replace")
            for match in CALL.finditer(text):
                found.setdefault(f"TN-{match.group(1).upper()}-{int(match.group(2)):03d}", f"{file.relative_to(root)}")
            for match in NAMED.finditer(text):
                found.setdefault(f"TN-{match.group(1).upper()}-{int(match.group(2)):03d}", f"{file.relative_to(root)}")
            for match in NUMBER.finditer(text):
                if ("error_id(" in match.group(0) or "<< 16" in match.group(0)) and int(match.group(1)) < len(FAMILIES):
                    found.setdefault(f"TN-{FAMILIES[int(match.group(1))]}-{int(match.group(2)):03d}", f"{file.relative_to(root)}")
            for line in text.splitlines():
                for match in TEXT.finditer(line) if '"' in line and not line.lstrip().startswith("//") else []:
                    found.setdefault(match.group(0), f"{file.relative_to(root)}")
    verdicts = root / "loader/verdicts.def"
    if verdicts.exists():
        for code in re.findall(r"^X\((\d+),", verdicts.read_text(), re.M):
            if code != "0":
                found.setdefault(f"TN-LOAD-{int(code):03d}", "loader/verdicts.def")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    root = parser.parse_args().root
    sections = []
    for page in sorted((root / "docs/errors").glob("TN-*.md")):
        sections += re.findall(r"^## (TN-[A-Z]+-\d{3})\b", page.read_text(), re.M)
    faults = [f"{i}: has {sections.count(i)} sections" for i in sorted(set(sections)) if sections.count(i) > 1]
    faults += [f"{i} of {place} has no section in docs/errors/{i[:-4]}.md" for i, place in sorted(used(root).items()) if i not in sections]
    print("\n".join(faults) or f"error pages: {len(sections)} sections, every id explained")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
