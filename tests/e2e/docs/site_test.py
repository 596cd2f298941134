"""What scripts/docs hands to MkDocs: every page, with links that lead somewhere in the site."""

import importlib.machinery
import importlib.util
import re
import shutil

import pytest

from pages import FENCE, Page
from reader import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not shutil.which("mandoc"):
        pytest.skip("no mandoc here, which prints the manual")
    loader = importlib.machinery.SourceFileLoader("docs_script", str(ROOT / "scripts/docs"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("docs_script", loader))
    loader.exec_module(script)
    folder = tmp_path_factory.mktemp("site")
    script.lay_out(folder)
    return folder


def test_links_lead_somewhere_within_the_site(site):
    pages = [Page(path) for path in (site / "docs").rglob("*.md")]
    assert not [f"{page.path.name}: {link}" for page in pages for link in page.dead_links()]
    linked = [page.path.parent / link.partition("#")[0] for page in pages for link in page.links()]
    assert all(path.resolve().is_relative_to(site / "docs") for path in linked)


def test_every_page_is_in_the_navigation(site):
    listed = re.findall(r'"([^"]+\.md)"', (site / "mkdocs.yml").read_text())
    assert sorted(listed) == sorted(path.relative_to(site / "docs").as_posix()
                                    for path in (site / "docs").rglob("*.md"))


def test_fences_have_a_language_alone(site):
    for path in (site / "docs").rglob("*.md"):
        assert not [fence[2] for fence in FENCE.finditer(path.read_text(encoding="utf-8")) if fence[2]]


def test_the_manual_is_plain_text(site):
    text = (site / "docs/man/fleetrun-ps.7.md").read_text(encoding="utf-8")
    assert text.startswith("# fleetrun-ps(7)\n\n```text\n")
    assert "EXACTLY ONCE\n" in text and "\b" not in text
