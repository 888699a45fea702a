"""Headers of versions that do not exist: one minor older than the given headers, with shorter tables, and one newer, with a
field more at the end of every extensible struct."""
import re

LATER = "uint64_t tn_later_[3];"
CURRENT = re.compile(r"(#define TN_ABI_CURRENT\s+TN_ABI\()(\d+), (\d+)\)")
# What the older minor did not have yet: everything from this field to the end of the struct.
SHORTER = {"tn_plugin": "  tn_status (*ops)(", "tn_host": "  const tn_builder_api* builder;"}


def set_version(folder, major, minor):
    types = folder / "types.h"
    text, n = CURRENT.subn(rf"\g<1>{major}, {minor})", types.read_text())
    if n != 1:
        raise ValueError("no TN_ABI_CURRENT in types.h")
    types.write_text(text)


def body_end(text, name, begin):
    """Index of the bracket that closes the struct."""
    ends = [at for at in (text.find("} " + name + ";", begin), text.find("\n};", begin) + 1) if at > 0]
    return min(ends)


def lengthen(folder):
    """Returns the names of the structs that have grown."""
    grown = []
    for header in ("types.h", "plugin.h"):
        text = (folder / header).read_text()
        for match in reversed(list(re.finditer(r"(?:typedef )?struct (\w+) \{", text))):
            end = body_end(text, match.group(1), match.end())
            marks = text[match.end(): text.find("\n", match.end())] + text[end: text.find("\n", end)]
            if "[extensible]" in marks:
                text = text[:end] + f" {LATER} " + text[end:]
                grown.append(match.group(1))
        (folder / header).write_text(text)
    return grown


def shorten(folder):
    text = (folder / "plugin.h").read_text()
    for name, first in SHORTER.items():
        begin = text.index(first, text.index(f"struct {name} {{"))
        text = text[:begin] + text[body_end(text, name, begin):]
    (folder / "plugin.h").write_text(text)
