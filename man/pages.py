#!/usr/bin/env python3
"""Makes a page of the manual from its template and the tables of the program.

usage: man/pages.py TEMPLATE TABLES     TABLES: JSON of man/tables.cc or scripts/check-walks; prints the page

A template is a page in roff with lines such as @FLAGS@, each of which is replaced by what is made of one
table. Sentences of the tables are plain text in which `words` stand out.
"""
import json
import re
import sys
import textwrap


def roff(text):
    """Plain text as roff, `words` in bold."""
    for character, escape in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("…", "...")):
        text = text.replace(character, escape)
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)


def paragraph(*sentences):
    text = roff(" ".join(sentence for sentence in sentences if sentence))
    lines = textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)
    return [("\\&" if line.startswith(".") else "") + line for line in lines]


def sentence(text):
    """A line of help as a sentence; a word of a program, a file or a formula keeps its case."""
    first, second = [*text.split(), ""][:2]
    is_article = first == "a" and second.isalpha()
    is_word = first.endswith(":") or not first.strip(",;").isalpha() or len(first) == 1 and not is_article
    return (text if is_word else text[0].upper() + text[1:]).rstrip(".") + "."


def labelled(label, values):
    plural = "" if len(values) == 1 else "s"
    return f"{label}{plural}: {', '.join(values)}." if values and values[0] else ""


def bold(names):
    return roff(", ".join(f"`{name}`" for name in names))


def entry(head, *sentences):
    return [".TP", head, *paragraph(*sentences)]


def flag_entry(flag):
    value = f" \\fI{roff(flag['value'])}\\fR" if flag["value"] else ""
    if flag["value_is_optional"]:
        value = f"[={value.strip()}]"
    return entry(bold(flag["spellings"]) + value, sentence(flag["help"]), flag["details"],
                 labelled("Variable", flag["variables"]), labelled("Default", [flag["default"]]))


def flags(tables):
    for group in tables["flags"]:
        yield f".SS {sentence(group['title']).rstrip('.')}"
        for flag in group["flags"]:
            yield from flag_entry(flag)


def role_keys(tables):
    for key in tables["role_keys"]:
        head = f"{bold([key['name']])} = \\fI{roff(key['value'])}\\fR"
        yield from entry(head, sentence(key["help"]), key["details"])


def variables(tables):
    for section in tables["variables"]:
        yield f".SS {section['title']}"
        for variable in section["variables"]:
            yield from entry(bold(variable["names"]), sentence(variable["meaning"]), variable["details"])


def flag_variables(tables):
    for flag in (flag for group in tables["flags"] for flag in group["flags"] if flag["variables"]):
        yield from entry(bold(flag["variables"]), f"`{flag['spellings'][0]}`")


def operators(tables):
    for group in tables["operators"]:
        yield f".SS {roff(group['title'])}"
        yield from paragraph(group["about"])
        for row in group["operators"]:
            head = bold([row["type"]]) + (f" {roff(row['form'])}" if row["form"].startswith("(") else "")
            form = "" if row["form"].startswith("(") else sentence("inputs and outputs " + row["form"])
            yield from entry(head, sentence(row["meaning"]), form, labelled("Attribute", [row["attributes"]]),
                             "" if row["has_gradient"] else "No gradient.")


def update_rules(tables):
    for rule in tables["update_rules"]:
        yield from entry(bold([rule["name"]]), sentence(rule["formula"]), labelled("State", [rule["state"]]))


def house(tables):
    """A line for each floor; a room stands one above the highest that it looks into."""
    floors = {}
    for room, row in tables["rooms"].items():
        floors[room] = 1 + max((floors[other] for other in row["looks_into"]), default=-1)
    for floor in sorted(set(floors.values()), reverse=True):
        text = "   ".join(room for room in floors if floors[room] == floor)
        for i, line in enumerate(textwrap.wrap(text, 88, break_on_hyphens=False)):
            yield roff(f"    {'' if i else floor:>2} │ {line}")


def rooms(tables):
    for room, row in tables["rooms"].items():
        yield from entry(f"\\fI{roff(room)}\\fR", sentence(row["what"]))


def walks(tables):
    for name, walk in tables["walks"].items():
        width = max(len(step["file"]) for step in walk["files"])
        yield from [".PP", f"\\fB{roff(name)}\\fR: {roff(walk['what'])}", ".PP", ".nf"]
        for step in walk["files"]:
            yield roff(f"    {step['file']:{width}}  {step['does'].replace('`', '')}")
        yield ".fi"


SECTIONS = {
    "@FLAGS@": flags,
    "@FLAG_VARIABLES@": flag_variables,
    "@HOUSE@": house,
    "@OPERATORS@": operators,
    "@ROLE_KEYS@": role_keys,
    "@ROOMS@": rooms,
    "@UPDATE_RULES@": update_rules,
    "@VARIABLES@": variables,
    "@WALKS@": walks,
}


def page(template, tables):
    for line in template.splitlines():
        yield from SECTIONS[line](tables) if line in SECTIONS else [line]


def main(arguments):
    if {"-h", "--help"} & set(arguments) or len(arguments) != 2:
        print(__doc__.strip())
        return 0 if {"-h", "--help"} & set(arguments) else 2
    with open(arguments[0], encoding="utf-8") as template, open(arguments[1], encoding="utf-8") as tables:
        print("\n".join(page(template.read(), json.load(tables))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
