#!/usr/bin/env python3
"""Makes a page of the manual from its template and the tables of the program.

usage: man/pages.py TEMPLATE TABLES [WORDS]     prints the page

TABLES   JSON of man/tables.cc or scripts/check-walks
WORDS    JSON {English: Chinese} of runtime/language/po.py, for a template in Chinese

A template is a page in roff with lines such as @FLAGS@, each of which is replaced by what is made of one
table. Sentences of the tables are plain text in which `words` stand out.
"""
import json
import re
import sys
import textwrap


LABELS = ("Variable", "Default", "Attribute", "State", "No gradient.")
MARKS = "，。；：、（）"
BLOCKS = {".nf": ".fi", ".EX": ".EE", ".TS": ".TE"}  # what is between is set as it is
FONTS = (".B ", ".BI ", ".BR ", ".I ", ".IB ", ".IR ", ".RB ", ".RI ")


def is_chinese(text):
    return any("\u3000" <= character <= "\u9fff" or "\uff00" <= character for character in text)


def roff(text):
    """Plain text as roff, `words` in bold."""
    for character, escape in (("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("^", "\\(ha"), ("…", "...")):
        text = text.replace(character, escape)
    return re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)


def paragraph(*sentences):
    text = roff(" ".join(sentence for sentence in sentences if sentence))
    text = re.sub(f"(?<=[{MARKS}]) ", "", text)
    lines = textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)
    return [("\\&" if line.startswith(".") else "") + line for line in lines]


def sentence(text):
    """A line of help as a sentence; a word of a program, a file or a formula keeps its case."""
    if is_chinese(text):
        return text.rstrip("。") + "。"
    first, second = [*text.split(), ""][:2]
    is_article = first == "a" and second.isalpha()
    is_word = first.endswith(":") or not first.strip(",;").isalpha() or len(first) == 1 and not is_article
    return (text if is_word else text[0].upper() + text[1:]).rstrip(".") + "."


def labelled(tables, label, values):
    label = tables["labels"][label]
    if is_chinese(label):
        return f"{label}：{'、'.join(values)}。" if values and values[0] else ""
    plural = "" if len(values) == 1 else "s"
    return f"{label}{plural}: {', '.join(values)}." if values and values[0] else ""


def bold(names):
    return roff(", ".join(f"`{name}`" for name in names))


def entry(head, *sentences):
    return [".TP", head, *paragraph(*sentences)]


def flag_entry(tables, flag):
    value = f" \\fI{roff(flag['value'])}\\fR" if flag["value"] else ""
    if flag["value_is_optional"]:
        value = f"[={value.strip()}]"
    return entry(bold(flag["spellings"]) + value, sentence(flag["help"]), flag["details"],
                 labelled(tables, "Variable", flag["variables"]),
                 labelled(tables, "Default", [flag["default"]]))


def flags(tables):
    for group in tables["flags"]:
        yield f".SS {sentence(group['title']).rstrip('.。')}"
        for flag in group["flags"]:
            yield from flag_entry(tables, flag)


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
            yield from entry(head, sentence(row["meaning"]), form,
                             labelled(tables, "Attribute", [row["attributes"]]),
                             "" if row["has_gradient"] else tables["labels"]["No gradient."])


def update_rules(tables):
    for rule in tables["update_rules"]:
        state = labelled(tables, "State", [rule["state"]])
        yield from entry(bold([rule["name"]]), sentence(rule["formula"]), state)


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


def translated(value, words):
    """A table in which each text that `words` has is the Chinese one."""
    if isinstance(value, dict):
        return {key: translated(member, words) for key, member in value.items()}
    if isinstance(value, list):
        return [translated(member, words) for member in value]
    return words.get(value, value) if isinstance(value, str) else value


def is_running_text(line):
    return not line.startswith(".") or line.startswith(FONTS)


def may_end_between(before, after):
    """Whether a line may: not in front of a mark that closes, nor behind one that opens."""
    return is_chinese(before + after) and before != "（" and (after not in MARKS or after == "（")


def with_line_ends(text):
    """Chinese without blanks, with a mark (\\:) wherever a line may end."""
    return "".join(character + ("\\:" if may_end_between(character, after) else "")
                   for character, after in zip(text, text[1:] + " ")) if text else text


def set_as_chinese(lines):
    """Chinese has no blank where a line of its source ends: neither between two of its characters, nor behind
    a mark that is as wide as they are. A head (.TP), and what is set as it is (.nf), end as they do."""
    lines = list(lines)
    end = ""  # of the block that this line is in
    for i, line in enumerate(lines):
        end = BLOCKS.get(line, "") if end in ("", line) else end
        is_filled = not end
        after = lines[i + 1] if i + 1 < len(lines) else "."
        is_head = i > 0 and lines[i - 1] == ".TP"
        is_running = is_filled and not is_head and is_running_text(line) and is_running_text(after)
        is_within = line[-1:] in MARKS or is_chinese(line[-1:]) and is_chinese(after[:1])
        is_text = is_filled and not line.startswith(".") and " \\- " not in line
        yield (with_line_ends(line) if is_text else line) + ("\\:\\c" if is_running and is_within else "")
        if line.startswith(".TH "):
            yield from (".ad l", ".nh")  # blanks stay as wide as they are


def main(arguments):
    if {"-h", "--help"} & set(arguments) or len(arguments) not in (2, 3):
        print(__doc__.strip())
        return 0 if {"-h", "--help"} & set(arguments) else 2
    words = {}
    if len(arguments) == 3:
        with open(arguments[2], encoding="utf-8") as file:
            words = json.load(file)
    with open(arguments[0], encoding="utf-8") as template, open(arguments[1], encoding="utf-8") as tables:
        made = {**json.load(tables), "labels": {label: label for label in LABELS}}
        lines = page(template.read(), translated(made, words))
        print("\n".join(set_as_chinese(lines) if words else lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
