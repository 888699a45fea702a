#!/usr/bin/env python3
"""Checks what a built library exports and links.

    tools/check/exports.py --runtime libtenon.so          exactly the functions of runtime.h
    tools/check/exports.py --plugins FOLDER               each exactly tn_plugin_query, and no driver linked
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Libraries a plugin may link; drivers are opened at run time, inside open().
MAY_LINK = re.compile(r"(ld-linux.*|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s|libgomp|libdnnl|libglslang.*|libasan|libubsan|libtsan)\.so.*")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports(library):
    """(name, kind letter) of each dynamic symbol the library defines."""
    rows = [line.split() for line in run("nm", "-D", "--defined-only", str(library)).splitlines()]
    return [(row[-1].split("@")[0], row[-2]) for row in rows if len(row) >= 2]


def declared(root):
    text = (root / "abi/include/tenon/runtime.h").read_text()
    return set(re.findall(r"^TN_API [^;(]*?\b(tn_\w+)\(", text, re.M))


def check_runtime(root, library):
    have, want = {name for name, _ in exports(library)}, declared(root)
    yield from (f"{library.name}: exports {n}, which runtime.h does not declare" for n in sorted(have - want))
    yield from (f"{library.name}: does not export {n} of runtime.h" for n in sorted(want - have))


def check_plugin(library):
    symbols = exports(library)
    names = [name for name, _ in symbols]
    if names != ["tn_plugin_query"]:
        yield f"{library.name}: exports {' '.join(names) or 'nothing'}, tn_plugin_query alone is wanted"
    yield from (f"{library.name}: {name} is unique in the process (STB_GNU_UNIQUE): build with -fno-gnu-unique" for name, kind in symbols if kind == "u")
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", str(library))):
        if not MAY_LINK.fullmatch(needed):
            yield f"{library.name}: links {needed}; open it inside open() instead"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--runtime", type=pathlib.Path)
    parser.add_argument("--plugins", type=pathlib.Path)
    args = parser.parse_args()
    faults = list(check_runtime(args.root, args.runtime)) if args.runtime else []
    for library in sorted(args.plugins.glob("libtenon_backend_*.so")) if args.plugins else []:
        faults += check_plugin(library)
    print("\n".join(faults) or "exports: as promised")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
