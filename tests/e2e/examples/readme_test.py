"""The README's blocks, typed where its reader stands after the quickstart; and the README in Chinese."""
import re

from pages import Page
from reader import ROOT

README, CHINESE = Page(ROOT / "README.md"), Page(ROOT / "README.zh.md")


def test_each_block_runs(reader):
    reader.prepare_sample()
    printed = reader.reads(README)
    assert not list(README.missing(printed))
    assert (reader.sample / "trace.json").stat().st_size > 1000
    assert (reader.sample / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_only_what_takes_minutes_is_left_out():
    assert [block.options.get("skip") for block in README.blocks if "skip" in block.options] == [
        "minutes: it installs and builds", "tests/e2e/package does", "another machine, another time"]


def test_links_lead_somewhere():
    assert not list(README.dead_links()) + list(CHINESE.dead_links())


def test_both_languages_have_the_same_blocks_and_figures():
    assert [block.code() for block in CHINESE.blocks] == [block.code() for block in README.blocks]
    assert [block.options for block in CHINESE.blocks] == [block.options for block in README.blocks]
    assert [level for level, _ in CHINESE.headings] == [level for level, _ in README.headings]
    for english, chinese in zip(sections(README), sections(CHINESE), strict=True):
        assert code_words(chinese) == code_words(english)
        assert figures(chinese) == figures(english)


def sections(page):
    return re.split(r"^#+ ", page.prose, flags=re.MULTILINE)


def code_words(text):
    """What stands between backticks; the order of a sentence is its language's own."""
    return sorted(" ".join(word.split()) for word in re.findall(r"`([^`]+)`", text))


def figures(text):
    """Its numbers, but for those that are part of a name."""
    plain = re.sub(r"`[^`]+`", "", text)
    return sorted(re.findall(r"(?<![A-Za-z\d.])\d+(?:[.,]\d+)*", plain))
