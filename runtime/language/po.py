#!/usr/bin/env python3
"""Reads translations in gettext's format (.po).

usage: runtime/language/po.py json|cc FILE…     prints {English: translation}, or the C++ that holds them

An entry is what gettext has: comments, a msgid, a msgstr, each in one or more strings. The first of a file,
whose msgid is empty, is the file's head and no translation.
"""
import json
import re
import sys

LINE = re.compile(r'(?:(msgid|msgstr) )?"((?:[^"\\]|\\.)*)"')
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def read(path):
    """(English, translation) of each entry of a file, in its order."""
    entries, at = [], None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            found = LINE.fullmatch(line)
            if not found or not (found[1] or at):
                raise ValueError(f"{path}:{number}: neither msgid nor msgstr nor a string of one")
            at = found[1] or at
            if found[1] == "msgid":
                entries.append({"msgid": "", "msgstr": ""})
            entries[-1][at] += re.sub(r"\\(.)", lambda escape: ESCAPES[escape[1]], found[2])
    return [(entry["msgid"], entry["msgstr"]) for entry in entries if entry["msgid"]]


def literal(text):
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n"\n    "')
    return f'    "{text}" "\\0"\n'


def source(entries):
    """English and translation in turn, each ended by a zero byte: nothing to relocate at a start."""
    texts = "".join(literal(text) for entry in entries for text in entry)
    return ('#include "runtime/language/chinese_catalogue.h"\n\nnamespace fleetrun {\n\n'
            f"std::string_view chinese_catalogue() noexcept {{\n  static constexpr char all[] =\n{texts};\n"
            "  return {all, sizeof all - 1};\n}\n\n}  // namespace fleetrun\n")


def main(arguments):
    if {"-h", "--help"} & set(arguments) or len(arguments) < 2 or arguments[0] not in ("json", "cc"):
        print(__doc__.strip())
        return 0 if {"-h", "--help"} & set(arguments) else 2
    entries = [entry for path in arguments[1:] for entry in read(path)]
    is_json = arguments[0] == "json"
    print(json.dumps(dict(entries), ensure_ascii=False, indent=1) if is_json else source(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
