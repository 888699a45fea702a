#!/usr/bin/env python3
"""Counts the instructions of small ops and fails when one costs more than the committed baseline allows.

    tests/instructions/gate.py --program BUILD/bin/dispatch_count --plugins BUILD/lib/tenon/plugins --key KEY [--update]

callgrind counts one run of the program and begins a new part of its count before and behind the counted iterations of every case;
start-up, first calls and shutdown are in the parts between. valgrind knows no AVX-512, so the AVX2 kernels are counted. Figures depend on the compiler and the build type: KEY names both,
and a key without a baseline is skipped. Exit code: 0 within the limit, 1 above it, 77 skipped, 2 could not be measured.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

PASS, FAIL, BROKEN, SKIP = 0, 1, 2, 77
BASELINE = pathlib.Path(__file__).resolve().parent / "baseline.json"
LIMIT_PERCENT = 2.0
# Iterations before the count and counted. The former are enough for every table and pool to have settled.
CASES = {"add16.nograd": (500, 2000), "add16.grad": (500, 2000), "rotate": (3, 4), "launch": (500, 2000), "chain50.fwdbwd": (10, 40)}
MARK = "tenon_next_part"


class Broken(Exception):
    pass


def why_skipped(valgrind):
    if shutil.which(valgrind) is None:
        return "valgrind is not installed; try: tools/dev setup"
    if platform.machine() != "x86_64":
        return f"the baseline is of x86-64, this is {platform.machine()}"
    info = pathlib.Path("/proc/cpuinfo")
    if info.exists() and not re.search(r"^flags\s*:.*\bavx2\b", info.read_text(), re.MULTILINE):
        return "this processor has no AVX2, whose kernels the baseline counts"
    return None


def parts_of(folder):
    """Instructions of each part, in the order of the program: callgrind writes out.1, out.2, ..., and what follows the last mark."""
    files = sorted(pathlib.Path(folder).glob("out.*"), key=lambda file: int(file.suffix[1:]))
    return [int(n) for file in files for n in re.findall(r"^(?:summary|totals): (\d+)", file.read_text(), re.MULTILINE)[-1:]]


def run_once(args, folder):
    """The parts of the whole process, and the ops that each case counted."""
    cases = [f"{case}={warm}+{counted}" for case, (warm, counted) in CASES.items()]
    command = [args.valgrind, "--tool=callgrind", f"--callgrind-out-file={folder}/out", f"--dump-before={MARK}", args.program, args.plugins, *cases]
    # A settled environment: its size and its settings would move figures.
    environment = {"PATH": os.environ.get("PATH", ""), "TENON_CONFIG": "cpu.isa=avx2"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    parts = parts_of(folder)
    ops = {case: int(n) for case, n in re.findall(r"^ops (\S+) (\d+)$", result.stdout, re.MULTILINE)}
    if result.returncode != 0 or len(parts) < 2 * len(CASES) or ops.keys() != CASES.keys():
        raise Broken(f"{' '.join(command)}\nwhy: exit code {result.returncode}, {len(parts)} parts, {2 * len(CASES)} or more wanted\n{result.stdout}{result.stderr}")
    return parts, ops


def measure(args):
    """Instructions an op, by case: every second part is that of the counted iterations of the next case."""
    with tempfile.TemporaryDirectory() as folder:
        parts, ops = run_once(args, folder)
    return {case: round(parts[2 * k + 1] / ops[case], 1) for k, case in enumerate(CASES)}


def report(measured, baseline):
    """Prints the table; returns what exceeds the baseline, a text each."""
    faults = []
    print(f"{'instructions an op':<24}{'now':>10}{'baseline':>10}{'change':>10}")
    for case, now in measured.items():
        before = baseline.get(case)
        if before is None:
            print(f"{case:<24}{now:>10.1f}{'-':>10}{'-':>10}")
            faults.append(f"{case}: has no baseline")
            continue
        change = 100 * (now - before) / before
        print(f"{case:<24}{now:>10.1f}{before:>10.1f}{change:>+9.1f}%")
        if change > LIMIT_PERCENT:
            faults.append(f"{case}: {now:.1f} instructions an op, baseline {before:.1f}, {change:+.1f} %, at most +{LIMIT_PERCENT:g} %")
        elif change < -LIMIT_PERCENT:
            print(f"  {case} became cheaper: --update keeps the gain")
    return faults


def write_baseline(path, known, key, measured):
    known[key] = measured
    path.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    print(f"{path}: wrote {key}")


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="dispatch_count")
    parser.add_argument("--plugins", required=True, help="folder of the plugins")
    parser.add_argument("--key", required=True, help="compiler, its version and the build type")
    parser.add_argument("--baseline", type=pathlib.Path, default=BASELINE)
    parser.add_argument("--valgrind", default="valgrind")
    parser.add_argument("--update", action="store_true", help="write the measured figures into the baseline")
    return parser.parse_args(argv)


def main(argv):
    args = parse(argv)
    if reason := why_skipped(args.valgrind):
        print(f"skipped: {reason}")
        return SKIP
    known = json.loads(args.baseline.read_text()) if args.baseline.exists() else {}
    if args.key not in known and not args.update:
        print(f"skipped: no baseline for \"{args.key}\"; known: {', '.join(sorted(known)) or 'none'}; try: gate.py --update")
        return SKIP
    try:
        measured = measure(args)
    except Broken as broken:
        print(f"could not measure: {broken}", file=sys.stderr)
        return BROKEN
    faults = report(measured, known.get(args.key, {}))
    if args.update:
        write_baseline(args.baseline, known, args.key, measured)
        return PASS
    if faults:
        print("\n".join(faults))
        print("try: make the call cheaper again, or if the cost is meant: the same command with --update, and say why in the commit")
    return FAIL if faults else PASS


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
