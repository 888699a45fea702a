#!/usr/bin/env python3
"""Guards what was released of the C ABI: abi/history holds the headers of every released version.

    tools/check/abi_history.py [--root DIR] [--cc CC]   check; exit 1 and one line per fault
    tools/check/abi_history.py --release 0.1            copy abi/include to abi/history/0.1 and mark the version released
    tools/check/abi_history.py --draft DIR              every version's headers to DIR/VERSION/tenon, unreleased ones as they are now

Checked: the list abi/history/versions is in order and ends with TN_ABI_CURRENT; no released file was changed, added or taken away;
today's headers break no released version of the same major (in 0.x: of the same minor), and add nothing to a released one. As long
as the last version is unreleased, its headers are compared with abi/lock alone, as abi_lock.py does.
"""
import argparse
import hashlib
import pathlib
import re
import shutil
import sys

import abi_lock

STATES = ("released", "unreleased")


class Fault(Exception):
    pass


def number(version):
    return tuple(int(part) for part in version.split("."))


def versions(root):
    """[(version, state)] of abi/history/versions, oldest first."""
    rows = []
    for line in (root / "abi/history/versions").read_text().splitlines():
        match = re.fullmatch(r"(\d+\.\d+) (\w+)", line)
        if not match or match.group(2) not in STATES:
            raise Fault(f'abi/history/versions: "{line}", a line is a version and one of: {", ".join(STATES)}')
        rows.append(match.groups())
    return rows


def current(root):
    text = (root / "abi/include/tenon/types.h").read_text()
    match = re.search(r"#define TN_ABI_CURRENT\s+TN_ABI\((\d+), (\d+)\)", text)
    if not match:
        raise Fault("abi/include/tenon/types.h: no #define TN_ABI_CURRENT TN_ABI(major, minor)")
    return ".".join(match.groups())


def headers(folder):
    return sorted(p for p in folder.iterdir() if p.suffix in (".h", ".def"))


def read_lock(path):
    return abi_lock.parse(l for l in path.read_text().splitlines() if not l.startswith("#"))


def measured(root, cc):
    include = root / "abi/include"
    return abi_lock.measure(include, abi_lock.preprocess(include, cc), cc)


def lock_of(root, version):
    return root / f"abi/lock/v{number(version)[0]}.lock"


def sums(folder):
    """{path: sha256} of what lies below a version's folder, but for the sums themselves."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def check_list(root, rows):
    names = [v for v, _ in rows]
    if not rows or [number(v) for v in names] != sorted({number(v) for v in names}):
        yield "abi/history/versions: versions stand in ascending order, each once"
        return
    for version, state in rows[:-1]:
        if state != "released":
            yield f"abi/history/versions: {version} is unreleased, only the last one may be"
    if names[-1] != current(root):
        yield f"abi/history/versions: ends with {names[-1]}, TN_ABI_CURRENT is {current(root)}: add a line for it"
    for entry in sorted((root / "abi/history").iterdir()):
        if entry.is_dir() and (entry.name, "released") not in rows:
            yield f"abi/history/{entry.name}: a folder, but abi/history/versions does not say that it is released"


def check_files(root, version):
    folder = root / "abi/history" / version
    place = f"abi/history/{version}"
    if not (folder / "SHA256SUMS").is_file():
        yield f"{place}: released, but SHA256SUMS is missing"
        return
    want = dict(reversed(line.split("  ", 1)) for line in (folder / "SHA256SUMS").read_text().splitlines())
    have = sums(folder)
    for path in sorted(want.keys() | have.keys()):
        if path not in have:
            yield f"{place}/{path}: was released and is gone"
        elif path not in want:
            yield f"{place}/{path}: was not released with this version"
        elif have[path] != want[path]:
            yield f"{place}/{path}: was released and is changed; released headers stay as they are"


def promised(old, new):
    """Whether `new` has to stay compatible with `old`."""
    return old[0] == new[0] and (old[0] > 0 or old[1] == new[1])


def check_layout(root, rows, cc):
    lines = abi_lock.parse(measured(root, cc))
    now, now_state = rows[-1]
    for version, state in rows:
        if state != "released":
            old, name = lock_of(root, version), f"abi/lock/{lock_of(root, version).name}"
        else:
            old, name = root / "abi/history" / version / "layout.lock", f"released {version}"
        if not old.is_file():
            yield f"{old.relative_to(root)}: missing"
            continue
        breaks, additions = abi_lock.compare(read_lock(old), lines)
        if state != "released" or promised(number(version), number(now)):
            yield from (f"{name}: {fault}" for fault in breaks)
        if version == now and now_state == "released":
            yield from (f"{name}: {addition} was added: raise TN_ABI_CURRENT and add the new version to abi/history/versions" for addition in additions)


def check(root, cc):
    rows = versions(root)
    faults = list(check_list(root, rows))
    for version, state in rows:
        faults += check_files(root, version) if state == "released" else []
    return faults or list(check_layout(root, rows, cc))


def release(root, version, cc):
    rows = versions(root)
    if rows[-1] != (version, "unreleased"):
        raise Fault(f"{version} cannot be released: abi/history/versions ends with {' '.join(rows[-1])}")
    faults = check(root, cc)
    if faults:
        raise Fault("\n".join(faults))
    lock = lock_of(root, version)
    if abi_lock.parse(measured(root, cc)) != read_lock(lock):
        raise Fault(f"abi/lock/{lock.name} lacks additions: run tools/check/abi_lock.py --update first")
    folder = root / "abi/history" / version
    (folder / "tenon").mkdir(parents=True)
    for header in headers(root / "abi/include/tenon"):
        shutil.copyfile(header, folder / "tenon" / header.name)
    shutil.copyfile(lock, folder / "layout.lock")
    (folder / "SHA256SUMS").write_text("".join(f"{sha}  {path}\n" for path, sha in sums(folder).items()))
    rows[-1] = (version, "released")
    (root / "abi/history/versions").write_text("".join(f"{v} {s}\n" for v, s in rows))


def draft(root, out):
    for version, state in versions(root):
        source = root / "abi/history" / version / "tenon" if state == "released" else root / "abi/include/tenon"
        target = out / version / "tenon"
        target.mkdir(parents=True, exist_ok=True)
        for header in headers(source):
            shutil.copyfile(header, target / header.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--release", metavar="VERSION")
    parser.add_argument("--draft", metavar="DIR", type=pathlib.Path)
    args = parser.parse_args()
    try:
        if args.release:
            release(args.root, args.release, args.cc)
            print(f"abi history: {args.release} is released, its headers are in abi/history/{args.release}")
        elif args.draft:
            draft(args.root, args.draft)
        else:
            faults = check(args.root, args.cc)
            print("\n".join(faults) or "abi history: kept: " + ", ".join(f"{v} {s}" for v, s in versions(args.root)))
            sys.exit(1 if faults else 0)
    except Fault as fault:
        print(fault)
        sys.exit(1)


if __name__ == "__main__":
    main()
