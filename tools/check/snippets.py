#!/usr/bin/env python3
"""Compiles, runs and compares the code in Markdown pages.

    tools/check/snippets.py --build DIR PAGE...       programs and console sessions of the pages
    tools/check/snippets.py --same PAGE TRANSLATION   both pages hold the same fenced blocks

A ```c or ```cpp block with a main() is compiled against the tree and run; it must end with 0, and print what a ```text
block right behind it shows, if there is one. In a ```console block whose commands ("$ ...") all call `tenon`, the commands
are run and their output is compared; a line of three dots stands for any lines. Other blocks are only read.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.M | re.S)


def blocks(page):
    """(language, text, line, text of a ```text block that follows directly or None)"""
    source = page.read_text()
    found = list(FENCE.finditer(source))
    for i, match in enumerate(found):
        line = source.count("\n", 0, match.start()) + 1
        after = found[i + 1] if i + 1 < len(found) else None
        shown = after.group(2) if after and after.group(1) == "text" and not source[match.end():after.start()].strip() else None
        yield match.group(1), match.group(2), line, shown


def matches(expected, actual):
    """Line by line; '...' stands for any number of lines, also within a line for any text."""
    parts = []
    for line in expected.rstrip("\n").split("\n"):
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(p) for p in line.rstrip().split("...")) + r"[ \t]*\n")
    return re.fullmatch("".join(parts), actual.rstrip("\n") + "\n") is not None


def compiler_of(language, root, build, headers):
    """Compiler and flags. `headers` comes first: there lies what precompile() made."""
    compiler, standard = ("cc", "-std=c11") if language == "c" else ("c++", "-std=c++20")
    return [compiler, standard, "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", f"-I{headers}", f"-I{root}/abi/include", f"-I{root}/framework/include", f"-I{root}", f"-I{build}/include"]


def programs(page):
    return [(language, text) for language, text, _, _ in blocks(page) if language in ("c", "cpp") and re.search(r"\bint main\s*\(", text)]


def precompile(pages, root, build, headers):
    """Most programs begin with one header, which costs more than all the rest of them. GCC takes the file only where that is the
    first line and all flags agree; another compiler, or a failure here, leaves the programs to be compiled from the source."""
    first = "#include <tenon/tenon.hpp>\n"
    if sum(text.startswith(first) for page in pages for _, text in programs(page)) < 3:
        return
    (headers / "tenon").mkdir()
    source = headers / "first.hpp"
    source.write_text(first)
    subprocess.run([*compiler_of("cpp", root, build, headers), "-x", "c++-header", str(source), "-o", str(headers / "tenon/tenon.hpp.gch")], capture_output=True)


def compile_and_run(language, text, root, build, headers, folder):
    source = folder / ("snippet.c" if language == "c" else "snippet.cpp")
    source.write_text(text)
    libraries = [name for name in ("tenon_framework", "tenon") if (build / "lib" / f"lib{name}.so").exists()]
    command = [*compiler_of(language, root, build, headers), str(source), "-o", str(folder / "snippet"), f"-L{build}/lib", f"-Wl,-rpath,{build}/lib", *[f"-l{n}" for n in libraries]]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if compiled.returncode != 0:
        return f"does not compile:\n{compiled.stderr}", ""
    ran = subprocess.run([str(folder / "snippet")], capture_output=True, text=True, cwd=folder, timeout=120)
    return (f"ended with {ran.returncode}:\n{ran.stderr}" if ran.returncode != 0 else None), ran.stdout


def check_program(language, text, shown, root, build, headers):
    with tempfile.TemporaryDirectory() as folder:
        fault, output = compile_and_run(language, text, root, build, headers, pathlib.Path(folder))
    if fault is None and shown is not None and not matches(shown, output):
        fault = f"prints\n{output}but the page shows\n{shown}"
    return fault


def sessions(text):
    """(command, expected output) pairs of a console block."""
    pairs = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            pairs.append([line[2:].strip(), ""])
        elif pairs:
            pairs[-1][1] += line
    return pairs


def check_console(text, root, build):
    pairs = sessions(text)
    if not pairs or not all(re.match(r"tenon\b", command) for command, _ in pairs) or not (build / "bin" / "tenon").exists():
        return None
    env = dict(os.environ, PATH=f"{build}/bin:{os.environ['PATH']}", NO_COLOR="1")
    for command, expected in pairs:
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=root, env=env, timeout=300)
        if expected.strip() and not matches(expected, ran.stdout + ran.stderr):
            return f"`{command}` prints\n{ran.stdout + ran.stderr}but the page shows\n{expected}"
        if not expected.strip() and ran.returncode != 0:
            return f"`{command}` ended with {ran.returncode}:\n{ran.stderr}"
    return None


def check_page(page, root, build, headers):
    for language, text, line, shown in blocks(page):
        fault = None
        if language in ("c", "cpp") and re.search(r"\bint main\s*\(", text):
            fault = check_program(language, text, shown, root, build, headers)
        elif language == "console":
            fault = check_console(text, root, build)
        if fault:
            yield f"{page}:{line}: {fault}"


def check_pages(pages, root, build):
    with tempfile.TemporaryDirectory() as folder:
        headers = pathlib.Path(folder)
        precompile(pages, root, build, headers)
        return [fault for page in pages for fault in check_page(page, root, build, headers)]


def same(page, translation):
    ours, theirs = ([(language, text) for language, text, _, _ in blocks(p)] for p in (page, translation))
    if len(ours) != len(theirs):
        yield f"{page} has {len(ours)} blocks, {translation} {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs), 1):
        if a != b:
            yield f"block {number} of {translation} differs from that of {page}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--same", nargs=2, type=pathlib.Path)
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    faults = list(same(*args.same)) if args.same else []
    if args.pages:
        faults += check_pages(args.pages, args.root.resolve(), args.build.resolve())
    print("\n".join(faults) or f"snippets: {len(args.pages) or 'both'} pages hold")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
