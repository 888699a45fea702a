#!/usr/bin/env python3
"""Counts the instructions of small ops and fails when one costs more than the committed baseline allows.

    tests/instructions/gate.py --program BUILD/bin/dispatch_count --plugins BUILD/lib/tenon/plugins --key KEY [--update]

callgrind counts one run with few iterations of every case, then for each case a run with many of it; the difference to the first
leaves out start-up, first calls and shutdown. valgrind knows no AVX-512, so the AVX2 kernels are counted. Figures depend on the compiler and the build type: KEY names both,
and a key without a baseline is skipped. Exit code: 0 within the limit, 1 above it, 77 skipped, 2 could not be measured.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

PASS, FAIL, BROKEN, SKIP = 0, 1, 2, 77
BASELINE = pathlib.Path(__file__).resolve().parent / "baseline.json"
LIMIT_PERCENT = 2.0
# Few and many iterations. The few are enough for every table and pool to have settled.
CASES = {"add16.nograd": (500, 2500), "add16.grad": (500, 2500), "rotate": (3, 7), "launch": (500, 2500), "chain50.fwdbwd": (10, 50)}


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


def run_once(args, iterations):
    """Instructions of the whole process, and the ops of each case."""
    cases = [f"{case}={n}" for case, n in iterations.items()]
    command = [args.valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", args.program, args.plugins, *cases]
    # A settled environment: its size and its settings would move figures.
    environment = {"PATH": os.environ.get("PATH", ""), "TENON_CONFIG": "cpu.isa=avx2"}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    collected = re.search(r"Collected\s*:\s*(\d+)", result.stderr)
    ops = {case: int(n) for case, n in re.findall(r"^ops (\S+) (\d+)$", result.stdout, re.MULTILINE)}
    if result.returncode != 0 or not collected or ops.keys() != iterations.keys():
        raise Broken(f"{' '.join(command)}\nwhy: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return int(collected[1]), ops


def measure(args):
    """Instructions an op, by case. Counts are not times: two runs side by side do not disturb each other."""
    few = {case: n for case, (n, _) in CASES.items()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(run_once, args, few)
        longer = {case: pool.submit(run_once, args, {**few, case: many}) for case, (_, many) in CASES.items()}
    base, base_ops = first.result()
    measured = {}
    for case, run in longer.items():
        count, ops = run.result()
        measured[case] = round((count - base) / (ops[case] - base_ops[case]), 1)
    return measured


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
