"""What is decided for the public names of Paddle 2.6.2 that are not here: why, and the way out.

The table is paddle_names.txt; tests/oracles/paddle_names.py compares it with the real Paddle.
"""

import functools
import os

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "paddle_names.txt")


@functools.cache
def table() -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """({word: reason}, {module: {name: word}}); the word of a name that is here is "here", "*" is every name
    of a module and of those below it."""
    reasons: dict[str, str] = {}
    names: dict[str, dict[str, str]] = {}
    section, word = "", ""
    with open(FILE, encoding="utf-8") as file:
        for line in file:
            line = line.partition("#")[0].rstrip()
            if line.startswith("["):
                section = line[1:-1]
            elif section == "reasons" and line:
                word, separator, text = line.partition(": ")
                reasons[word] = text
            elif line:
                first, colon, rest = line.partition(":")
                word = first.strip() if colon else word
                decided = names.setdefault(section, {})
                decided.update(dict.fromkeys((rest if colon else line).split(), word))
    return reasons, names


def decision(owner: str, name: str) -> str | None:
    """The word that is decided for owner.name, None for a name that Paddle has not."""
    _, names = table()
    found = names.get(owner, {}).get(name)
    if found is not None:
        return found
    above = f"{owner}.{name}"
    while above:
        found = names.get(above, {}).get("*")
        if found is not None:
            return found
        above = above.rpartition(".")[0]
    return None


def reason(owner: str, name: str) -> str | None:
    """Why owner.name is not here, and the way out; None where nothing is decided."""
    return table()[0].get(decision(owner, name) or "")
