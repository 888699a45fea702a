#!/usr/bin/env python3
"""Compares the layout of the public headers with the committed lock: only additions at the end pass.

    tools/check/abi_lock.py [--root DIR]            compare; exit 1 and one line per break
    tools/check/abi_lock.py --update                write abi/lock/v<major>.lock anew (until 1.0: with a raised minor)

Locked: offset and size of every field of every struct, the size of every [frozen] struct, every enum constant, every
function's declaration. Allowed: fields behind the last one of an [extensible] struct, new structs, constants and functions.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HEADERS = ["types.h", "plugin.h", "runtime.h", "ops.h"]


def current(root):
    """(major, minor) of TN_ABI_CURRENT."""
    match = re.search(r"#define TN_ABI_CURRENT\s+TN_ABI\((\d+), (\d+)\)", (root / "abi/include/tenon/types.h").read_text())
    if not match:
        sys.exit("abi/include/tenon/types.h: no #define TN_ABI_CURRENT TN_ABI(major, minor)")
    return tuple(int(part) for part in match.groups())


def lock_path(root, major):
    return root / f"abi/lock/v{major}.lock"


def frozen_structs(include):
    """Names of the structs whose comment at the opening or closing brace says [frozen]."""
    names = set()
    for header in HEADERS:
        text = (include / "tenon" / header).read_text()
        for match in re.finditer(r"typedef struct (\w+) \{", text):
            end = text.find("} " + match.group(1) + ";", match.end())
            line_end = text.find("\n", end)
            first_line = text[match.end(): text.find("\n", match.end())]
            if "[frozen]" in first_line or "[frozen]" in text[end:line_end]:
                names.add(match.group(1))
    return names


def preprocess(include, compiler):
    """The project's own declarations, macros expanded, system headers left out."""
    source = "".join(f"#include <tenon/{h}>\n" for h in HEADERS)
    out = subprocess.run([compiler, "-std=c11", "-E", "-x", "c", f"-I{include}", "-"], input=source, check=True, capture_output=True, text=True).stdout
    own, keep = False, []
    for line in out.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = "/tenon/" in marker.group(1)
        elif own:
            keep.append(line)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", " ".join(keep))


def matching(text, at):
    """Index behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "{(["
        depth -= text[i] in "})]"
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced brackets in the headers")


def split_top(text, separator):
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "{(["
        depth -= c in "})]"
        if c == separator and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
    return [p.strip() for p in parts + [text[begin:]] if p.strip()]


def field_names(declaration):
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
    if pointer:
        return [pointer.group(1)]
    if "{" in declaration:  # an anonymous union with a name behind it
        declaration = "x " + declaration[matching(declaration, declaration.index("{")):]
    return [re.findall(r"\w+", re.sub(r"\[.*?\]", "", part))[-1] for part in split_top(declaration, ",")]


def structs(text):
    """{name: [field, ...]} of every struct with a body."""
    found = {}
    for match in re.finditer(r"\bstruct (\w+)\s*\{", text):
        end = matching(text, match.end() - 1)
        body = text[match.end():end - 1]
        found[match.group(1)] = [n for d in split_top(body, ";") for n in field_names(d)]
    return found


def constants(text):
    names = []
    for match in re.finditer(r"\benum\s*\{", text):
        end = matching(text, match.end() - 1)
        names += [re.match(r"\w+", item).group(0) for item in split_top(text[match.end():end - 1], ",")]
    return [n for n in names if not n.endswith("_END_")]


def functions(text):
    """{name: normalised declaration} of every function declared at the top level."""
    while "{" in text:  # bodies of structs and enums hold no functions
        at = text.index("{")
        text = text[:at] + text[matching(text, at):]
    found = {}
    for item in split_top(text, ";"):
        match = re.search(r"\b(tn_\w+)\s*\(", item)
        if match and not item.startswith("typedef") and "_Static_assert" not in item:
            found[match.group(1)] = re.sub(r"\s*([(),*])\s*", r"\1", " ".join(item.replace("extern ", "").split()))
    return found


def measure(include, text, compiler):
    """Lines of the lock, from a generated program's own offsetof and sizeof."""
    frozen, rows = frozen_structs(include), []
    for name, fields in sorted(structs(text).items()):
        typedef = re.search(rf"typedef struct {name}\b", text)
        c_type = name if typedef else f"struct {name}"
        kind = "frozen" if name in frozen else "extensible"
        rows.append(f'printf("struct {name} {kind} %zu\\n", sizeof({c_type}));')
        rows += [f'printf("field {name}.{f} %zu %zu\\n", offsetof({c_type}, {f}), sizeof((({c_type}*)0)->{f}));' for f in fields]
    rows += [f'printf("constant {n} %lld\\n", (long long){n});' for n in sorted(set(constants(text)))]
    source = "#include <stdio.h>\n" + "".join(f"#include <tenon/{h}>\n" for h in HEADERS) + "int main(void){" + "\n".join(rows) + "return 0;}"
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layout"
        subprocess.run([compiler, "-std=c11", "-w", f"-I{include}", "-x", "c", "-", "-o", program], input=source, check=True, text=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return out.splitlines() + [f"function {d}" for _, d in sorted(functions(text).items())]


def parse(lines):
    table = {}
    for line in lines:
        kind, rest = line.split(" ", 1)
        if kind == "function":
            table[kind, re.search(r"\b(tn_\w+)\(", rest).group(1)] = rest
        elif kind in ("struct", "field", "constant"):
            name, *values = rest.split()
            table[kind, name] = values
    return table


def compare(old, new):
    breaks, additions = [], []
    for key, value in old.items():
        kind, name = key
        if key not in new:
            breaks.append(f"{kind} {name} is gone")
        elif kind == "struct" and value[0] == "extensible" and new[key][0] == "extensible":
            if int(new[key][1]) < int(value[1]):
                breaks.append(f"struct {name} shrank from {value[1]} to {new[key][1]} bytes")
        elif new[key] != value:
            breaks.append(f"{kind} {name} was {show(value)}, is {show(new[key])}")
    ends = {}
    for (kind, name), value in old.items():
        if kind == "field":
            owner = name.split(".")[0]
            ends[owner] = max(ends.get(owner, 0), int(value[0]) + int(value[1]))
    for key, value in new.items():
        if key in old:
            continue
        kind, name = key
        owner = name.split(".")[0]
        if kind == "field" and owner in ends and int(value[0]) < ends[owner]:
            breaks.append(f"field {name} was put inside struct {owner}, at {value[0]}; its end was {ends[owner]}")
        else:
            additions.append(f"{kind} {name}")
    return breaks, additions


def show(value):
    return value if isinstance(value, str) else " ".join(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=pathlib.Path(__file__).resolve().parents[2], type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--cc", default="cc")
    args = parser.parse_args()
    include, lock = args.root / "abi" / "include", lock_path(args.root, current(args.root)[0])
    lines = measure(include, preprocess(include, args.cc), args.cc)
    if args.update:
        lock.parent.mkdir(exist_ok=True)
        lock.write_text("# Layout of abi/include/tenon on LP64, made by tools/check/abi_lock.py --update\n" + "\n".join(lines) + "\n")
        print(f"abi lock: {len(lines)} lines written")
        return
    breaks, additions = compare(parse(l for l in lock.read_text().splitlines() if not l.startswith("#")), parse(lines))
    print("\n".join(breaks) or f"abi lock: kept, {len(additions)} additions")
    for addition in additions:
        print(f"added: {addition} (record it: tools/check/abi_lock.py --update)")
    sys.exit(1 if breaks else 0)


if __name__ == "__main__":
    main()
