#!/usr/bin/env python3
"""Checks that every include follows the arrows of the architecture, and that the top level holds nothing else.

    tools/check/layers.py [--root DIR]        exit 1 and one line per violation

A room may include itself, what its row of ROOMS names, and outside libraries that EXTERNAL grants to it.
"""
import argparse
import pathlib
import re
import sys

# The longest matching folder is a file's room.
ROOMS = {
    "abi": [],
    "kernel": ["abi"],
    "ops": ["abi"],
    "ops/gpu": ["abi"],
    "ops/reference": ["abi"],
    "loader": ["abi", "kernel", "ops", "ops/reference", "loader/cold"],
    "loader/cold": ["abi"],
    "backends/*": ["abi", "ops/reference", "ops/gpu", "backends/gpu_common"],
    "framework": ["abi", "framework/*"],
    "framework/*": ["abi"],  # and the rooms before it, see FRAMEWORK
    "tools": ["abi", "framework", "framework/*", "ops/reference", "loader/cold", "tools/bench", "tools/conformance"],
    "tools/docgen": ["abi", "ops"],  # a program of the build that prints what the ops declare
    "tools/conformance": ["abi", "ops", "ops/reference", "loader/cold"],  # drives a plugin through its table, by the ops' own cases
    "tools/bench": ["abi"],          # rivals, each a program without Tenon
    "tests": ["*"],
}
# Each may include itself and what stands before it.
FRAMEWORK = ["core", "autograd", "graph", "io", "nn", "optim", "data", "train", "quant", "dist", "trust", "track", "serve"]

# Libraries from outside, by the first part of the include, and the rooms that may use them.
EXTERNAL = {
    "boost": ["loader"],
    "dnnl": ["backends/onednn", "tools/bench"], "oneapi": ["backends/onednn", "tools/bench"], "omp.h": ["backends/onednn", "tools/bench"],
    "torch": ["tools/bench"],
    "hwy": ["backends/cpu"],
    "cuda": ["backends/cuda"], "nvrtc": ["backends/cuda"], "cublas": ["backends/cuda"], "cudnn": ["backends/cuda"], "nccl": ["backends/cuda"],
    "hip": ["backends/rocm"], "CL": ["backends/opencl"], "vulkan": ["backends/vulkan"], "glslang": ["backends/vulkan"],
    "nlohmann": ["framework", "tools"], "CLI": ["tools"], "toml++": ["framework", "tools"], "fmt": ["framework", "tools"],
    "gtest": [], "gmock": [], "benchmark": ["tools"],
}
C_LIBRARY = {"stddef.h", "stdint.h"}
KIT_LIBRARY = {"math.h", "pthread.h", "stdarg.h", "stdio.h", "stdlib.h", "string.h", "time.h"}  # tenon/kit.h, compiled into plugins
TOP_FILES = {"CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CHANGELOG.md"}
TOP_FOLDERS = {"abi", "kernel", "ops", "loader", "backends", "framework", "tools", "tests", "docs", "build", "dist", "shared"}
SOURCES = {".h", ".hpp", ".c", ".cpp", ".def", ".inc", ".cc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def room_of(path):
    """The room of a path relative to the root: 'backends/cpu', 'ops/gpu', 'kernel', or None."""
    parts = pathlib.PurePosixPath(path).parts
    if len(parts) > 2 and parts[0] in ("backends", "framework"):
        return "/".join(parts[:2])
    two = "/".join(parts[:2])
    if two in ROOMS and len(parts) > 2:
        return two
    return parts[0] if parts and parts[0] in TOP_FOLDERS else None


def allowed(source, target):
    """Whether a file of room `source` may include one of room `target`."""
    if source == target or source == "tests":
        return True
    if target == "tests":
        return False
    if source.startswith("framework/") and target.startswith("framework/"):
        order = {name: i for i, name in enumerate(FRAMEWORK)}
        a, b = source.split("/")[1], target.split("/")[1]
        return a in order and b in order and order[b] < order[a]
    row = ROOMS.get(source) or ROOMS.get(source.split("/")[0] + "/*", [])
    return target in row or target.split("/")[0] + "/*" in row and "/" in target


def external_fault(room, name, path=""):
    first = name.split("/")[0]
    if room == "abi":
        return None if name in C_LIBRARY or (path.endswith("/kit.h") and name in KIT_LIBRARY) else "abi may include the C library's stddef.h and stdint.h only"
    for prefix, rooms in EXTERNAL.items():
        if first == prefix or first.startswith(prefix + ".") or first.startswith(prefix) and prefix in ("dnnl", "cuda", "cublas", "cudnn"):
            if room == "tests" or any(room == r or room.startswith(r + "/") for r in rooms):
                return None
            return f"{prefix} is for {', '.join(rooms) or 'tests'} only"
    return None


def target_of(root, file, kind, name):
    """The room an include leads to; 'external' for anything outside the tree."""
    if kind == "<":
        return "abi" if name.startswith("tenon/") else "external"
    for base in (root, file.parent):
        at = (base / name).resolve()
        if at.exists() and at.is_relative_to(root):
            return room_of(at.relative_to(root).as_posix()) or "external"
    return room_of(name) or "external"


def check_file(root, file):
    path = file.relative_to(root).as_posix()
    room = room_of(path)
    if room is None:
        return
    text = file.read_text(errors="replace")
    for match in INCLUDE.finditer(text):
        kind, name = match.groups()
        line = text.count("\n", 0, match.start(2)) + 1
        target = target_of(root, file, kind, name)
        if target == "external":
            fault = external_fault(room, name, path)
        else:
            fault = None if allowed(room, target) else f"{room} may not include {target}"
        if fault:
            yield f"{path}:{line}: #include {name}: {fault}"


def check_top(root):
    for entry in sorted(root.iterdir()):
        known = TOP_FOLDERS if entry.is_dir() else TOP_FILES
        if entry.name not in known and not entry.name.startswith("."):
            yield f"{entry.name}: the top level holds no such {'folder' if entry.is_dir() else 'file'}"


def check(root):
    faults = list(check_top(root))
    for folder in sorted(TOP_FOLDERS - {"build", "dist", "docs", "shared"}):
        for file in sorted((root / folder).rglob("*")) if (root / folder).is_dir() else []:
            if file.suffix in SOURCES and file.is_file():
                faults += check_file(root, file)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    faults = check(parser.parse_args().root.resolve())
    print("\n".join(faults) or "layers: every include follows the arrows")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
