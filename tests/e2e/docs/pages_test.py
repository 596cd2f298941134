"""The pages of docs/en and docs/zh: their blocks, typed where a reader stands, links, both languages."""

import pytest

from pages import Page
from reader import ROOT

ENGLISH = sorted((ROOT / "docs/en").glob("*.md"))
CHINESE = ROOT / "docs/zh"
PAGES = [page.name for page in ENGLISH]
RUN = [page.name for page in ENGLISH if any("skip" not in block.options for block in Page(page).blocks)]


def test_both_languages_have_the_same_pages():
    assert len(PAGES) > 5
    assert [page.name for page in sorted(CHINESE.glob("*.md"))] == PAGES


@pytest.mark.parametrize("name", RUN)
def test_blocks_run_and_print_what_is_shown(reader, name):
    page = Page(ROOT / "docs/en" / name)
    printed = reader.reads(page)
    assert not list(page.missing(printed)), printed[-6000:]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    for page in (Page(ROOT / "docs/en" / name), Page(CHINESE / name)):
        assert not list(page.dead_links())


@pytest.mark.parametrize("name", PAGES)
def test_both_languages_say_the_same(name):
    english, chinese = Page(ROOT / "docs/en" / name), Page(CHINESE / name)
    assert [block.code() for block in chinese.blocks] == [block.code() for block in english.blocks]
    assert [block.options for block in chinese.blocks] == [block.options for block in english.blocks]
    assert [level for level, _ in chinese.headings] == [level for level, _ in english.headings]
    assert sorted(link.replace(".zh.md", ".md") for link in chinese.links()) == sorted(english.links())
