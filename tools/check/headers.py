#!/usr/bin/env python3
"""Compiles each public header alone, as C and C++, by every compiler there is, with padding and warnings as errors.

    tools/check/headers.py [--root DIR]
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

LANGUAGES = [("c", "c99"), ("c", "c11"), ("c++", "c++11"), ("c++", "c++20")]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wpadded", "-Werror"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    include = parser.parse_args().root / "abi" / "include"
    compilers = [c for c in ("gcc", "clang") if shutil.which(c)]
    if not compilers:
        sys.exit("headers: neither gcc nor clang is installed; run tools/dev setup")
    failures, tried = [], 0
    for header in sorted(include.glob("tenon/*.h")):
        for compiler in compilers:
            for language, standard in LANGUAGES:
                command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, f"-I{include}", "-c", "-o", "/dev/null", "-"]
                result = subprocess.run(command, input=f"#include <tenon/{header.name}>\nint tn_header_is_alone;\n", capture_output=True, text=True)
                tried += 1
                if result.returncode != 0:
                    failures.append(f"{header.name} as {standard} by {compiler}:\n{result.stderr}")
    print("\n".join(failures) or f"headers: {tried} compilations without a warning ({', '.join(compilers)})")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
