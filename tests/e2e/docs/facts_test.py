"""What the pages say of the program, compared with its sources: errors, flags, variables, the manual."""

import functools
import re

import pytest

from pages import Page
from reader import ROOT

FOLDERS = ("cli", "collective", "dataset", "launcher", "ps", "runtime")
LANGUAGES = [ROOT / "docs/en", ROOT / "docs/zh"]


@functools.cache
def sources():
    """The text of each source, with literals that follow each other as one."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")
             if path.suffix in (".cc", ".h", ".py", ".txt")]
    return [re.sub(r'"\s*"', "", path.read_text(encoding="utf-8")) for path in files]


def rows(page):
    """The cells of its tables, without heads."""
    tables = re.findall(r"^\|(.+)\|$", page.prose, re.MULTILINE)
    cells = [[cell.strip() for cell in row.split(" | ")] for row in tables]
    heads = {i - 1 for i, row in enumerate(cells) if row[0].startswith("---")}
    return [row for i, row in enumerate(cells) if i not in heads and i - 1 not in heads]


def test_each_error_is_one_of_the_program():
    messages = [row[0].strip("`") for row in rows(Page(ROOT / "docs/en/errors.md"))]
    assert len(messages) > 40
    parts = {message: list(filter(None, message.split("…"))) for message in messages}
    assert not [message for message in messages
                if not any(all(part in text for part in parts[message]) for text in sources())]


def test_both_languages_have_the_same_errors():
    english, chinese = (rows(Page(folder / "errors.md")) for folder in LANGUAGES)
    assert [row[0] for row in chinese] == [row[0] for row in english]


@pytest.mark.parametrize("folder", LANGUAGES, ids=lambda folder: folder.name)
def test_flags_and_variables_are_the_program_s(folder):
    """In the pages that are not about other programs, whose flags these have in their left columns."""
    words = set()
    for path in folder.glob("*.md"):
        page = Page(path)
        code = " ".join(row[-1] for row in rows(page)) if path.name.startswith("from-") else page.text
        words.update(re.findall(r"(?<![\w-])--([a-z][\w-]+)|\b((?:FLEETRUN|PADDLE|FLAGS)_[A-Za-z_]+)", code))
    names = {flag.replace("-", "_") or variable for flag, variable in words}
    assert len(names) > 30
    text = "\n".join(sources()).replace("-", "_")
    assert not sorted(name for name in names if name not in text)


@pytest.mark.parametrize("folder", LANGUAGES, ids=lambda folder: folder.name)
def test_the_reference_has_each_page_of_the_manual(folder):
    linked = {link for link in Page(folder / "reference.md").links() if "/man/" in link}
    assert linked == {f"../../man/{path.name}" for path in (ROOT / "man").glob("fleetrun*.[157]*")}


def test_the_reference_says_what_the_manual_says_of_its_pages():
    said = {row[0]: row[1] for row in rows(Page(ROOT / "docs/en/reference.md"))}
    for cell, what in said.items():
        page = ROOT / "docs/en" / re.search(r"\]\(([^)]+)\)", cell)[1]
        name = re.search(r"^\.SH NAME\n.+? \\- (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)[1]
        assert what == name.replace("\\-", "-")
