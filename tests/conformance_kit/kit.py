"""Running `tenon conformance`, for the tests of this folder."""
import json
import os
import pathlib
import subprocess

TENON = pathlib.Path(os.environ["TENON"])
PLUGINS = pathlib.Path(os.environ["TENON_PLUGINS"])


def conformance(*args, timeout=600):
    """(exit code, report) of one run with --json; the report is None when the command line was refused."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    done = subprocess.run([str(TENON), "conformance", *map(str, args), "--json"], env=clean, capture_output=True, text=True, timeout=timeout)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None, done.stderr


def failed_levels(report):
    return sorted({c["level"] for c in report["checks"] if c["state"] == "failed"})


def failures(report):
    return "\n".join(f'{c["check"]}: {c["detail"]}' for c in report["checks"] if c["state"] == "failed")


def plugin(name):
    return PLUGINS / f"libtenon_backend_{name}.so"
