#!/usr/bin/env python3
"""Checks that no source file is longer than the limit (tables, generated files and test data are exempt).

    tools/check/sizes.py [--root DIR] [--limit LINES]
"""
import argparse
import pathlib
import sys

FOLDERS = ["abi", "kernel", "ops", "loader", "backends", "framework", "tools", "tests"]
SOURCES = {".h", ".hpp", ".c", ".cpp", ".py", ".cmake"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--limit", default=800, type=int)
    args = parser.parse_args()
    faults = []
    for folder in FOLDERS:
        for file in sorted((args.root / folder).rglob("*")):
            if file.suffix not in SOURCES or not file.is_file() or "generated" in file.parts:
                continue
            lines = file.read_bytes().count(b"\n")
            if lines > args.limit:
                faults.append(f"{file.relative_to(args.root)}: {lines} lines, at most {args.limit}: split it by purpose")
    print("\n".join(faults) or f"sizes: no file over {args.limit} lines")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
