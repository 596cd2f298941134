"""What is said in Chinese says what the English says now: help, messages, the manual.

A text is translated by its English (runtime/language/zh_CN/*.po): one that was changed has no translation any
more, and a test here names it. A section of a page of the manual begins with a mark of its English."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from built_manual import built

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "man"
sys.path.insert(0, str(ROOT / "runtime/language"))

import po  # noqa: E402

FILES = {path.stem: po.read(path) for path in sorted((ROOT / "runtime/language/zh_CN").glob("*.po"))}
PAGES = sorted((MAN / "zh_CN").glob("*.in"))
VALUE = re.compile(r"\{(?:n|word|text|sentence)\d?\}")
MARKS = "，。；：、！？）"


def texts_of_tables(*names):
    """What man/tables.cc takes from these tables, that is shown to people."""
    tables = json.loads(built("tables.json").read_text(encoding="utf-8"))

    def texts(value):
        if isinstance(value, list):
            return {text for member in value for text in texts(member)}
        if isinstance(value, dict):
            own = {value.get(key, "") for key in ("title", "help", "meaning", "details")}
            return own | {text for member in value.values() for text in texts(member)}
        return set()

    return set().union(*(texts(tables[name]) for name in names)) - {""}


def english(name):
    return {text for text, _ in FILES[name]}


def source_of(page):
    """The English page or template."""
    return MAN / page.name if (MAN / page.name).exists() else MAN / page.stem


def sections(page):
    return re.split(r"^\.SH .*\n", page.read_text(encoding="utf-8"), flags=re.M)[1:]


def test_each_setting_has_its_chinese():
    assert texts_of_tables("flags") - english("settings") == set()


def test_no_chinese_is_left_of_a_setting_that_says_something_else():
    assert english("settings") - texts_of_tables("flags") == set()


def test_each_variable_has_its_chinese():
    words_of_pages = {"Variable", "Default", "Attribute", "State", "No gradient."}
    assert english("variables") - words_of_pages == texts_of_tables("variables")


def test_each_key_of_a_role_has_its_chinese():
    assert english("roles") == texts_of_tables("role_keys")


def test_each_command_has_its_chinese():
    source = (ROOT / "cli/commands.cc").read_text(encoding="utf-8")
    summaries = set(re.findall(r'^    \{"\w+", "([^"]+)", run_', source, re.M))
    assert len(summaries) > 20 and summaries - english("commands") == set()
    help_of_all = (ROOT / "cli/help.cc").read_text(encoding="utf-8")
    assert {text for text in english("commands") - summaries
            if text not in help_of_all.replace('\\n', "\n")} == set()


def test_nothing_is_translated_twice():
    texts = [text for entries in FILES.values() for text, _ in entries]
    assert {text for text in texts if texts.count(text) > 1} == set()


@pytest.mark.parametrize("name", FILES)
def test_translations_have_the_values_of_their_english(name):
    for text, chinese in FILES[name]:
        assert chinese, text
        assert sorted(VALUE.findall(chinese)) == sorted(VALUE.findall(text)), text
        assert chinese.startswith("\n") == text.startswith("\n"), text
        assert chinese.endswith("\n") == text.endswith("\n"), text


@pytest.mark.parametrize("name", FILES)
def test_flags_and_variables_stay_as_they_are(name):
    words = re.compile(r"(?<![\w-])--[a-z_]+|\b[A-Z]+_[A-Z_]+\b|`[^`]+`")
    for text, chinese in FILES[name]:
        assert set(words.findall(chinese)) == set(words.findall(text)), text


def test_each_message_is_one_of_the_program():
    """What it has between values and marks stands in one literal of the sources, or in two joined ones."""
    files = [path for folder in ("cli", "launcher", "runtime/base", "runtime/connect", "runtime/secure")
             for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".h")]
    sources = "\n".join(re.sub(r'"\s*"', "", path.read_text(encoding="utf-8")) for path in files)
    system = {os.strerror(number) for number in range(1, 134)}
    for text in english("messages") - system:
        for part in re.split(rf"{VALUE.pattern}|[,;:()'?]| for | and ", text):
            words = part.split()
            halves = ((" ".join(words[:i]), " ".join(words[i:])) for i in range(len(words) + 1))
            assert any(first in sources and second in sources for first, second in halves), text


@pytest.mark.parametrize("name", FILES)
def test_chinese_is_set_as_it_is_printed(name):
    """Marks of full width between Chinese characters, and no blank behind them."""
    for _, chinese in FILES[name]:
        assert not re.search(rf"[\u4e00-\u9fff][,;:!?](?!\w)|[{MARKS}] +\S", chinese), chinese


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_section_says_what_the_english_one_says_now(page):
    ours, theirs = sections(page), sections(source_of(page))
    assert len(ours) == len(theirs)
    for chinese, text in zip(ours, theirs):
        mark = f'.\\" of {hashlib.sha256(text.encode()).hexdigest()[:8]}'
        assert chinese.startswith(mark + "\n"), f"the English has changed: translate it, then mark it {mark}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_entries_and_flags_of_the_english_one(page):
    def shape(text):
        return (re.findall(r"^\.(?:SS|TP|IP|nf|fi|EX|EE|TS|TE|PP|P)\b|^@\w+@$", text, re.M),
                sorted(set(re.findall(r"--[a-z_]{2,}", plain(text)))))

    for chinese, text in zip(sections(page), sections(source_of(page))):
        assert shape(chinese) == shape(text)


def plain(text):
    """Without requests and fonts of roff, which Chinese sets elsewhere."""
    text = re.sub(r'^\.\\".*\n', "", text, flags=re.M)
    text = re.sub(r"^\.[A-Za-z]+\b", "", re.sub(r"\\f[BIRP]|\\[:c&]", "", text), flags=re.M)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(ha", "^").replace("\\e", "\\")


def names_in(text):
    """What is called the same in each language: variables, calls, files, keys, numbers, words of examples."""
    name = r"(?<![\w.])[A-Za-z]\w*(?:[._]\w+)+|\b[A-Z]+_[A-Z_]+"
    return set(re.findall(name + r"|(?<![\w-])--?[a-z][a-z_-]+|\b\d[\d.:]*\b", plain(text)))


def bold_in(text):
    """Words in bold, as they are typed, but those that are a term of the page and no name."""
    text = re.sub(r"^\.B +(.*)$", r"\\fB\1\\fR", text, flags=re.M)
    parts = re.findall(r"\\fB(.*?)(?:\\f[RIP]|$)", text, re.M)
    for kind, line in re.findall(r"^\.(BR|RB|BI|IB) +(.*)$", text, re.M):
        words = re.findall(r'"[^"]*"|\S+', line)
        parts += [word.strip('"') for word in words[kind.index("B")::2]]
    words = {word.strip(" \"'“”,.;:（），。、") for part in parts for word in plain(part).split()}
    return {word for word in words
            if re.fullmatch(r"[!-~]+", word) and re.search(r"\w[^A-Za-z]|[a-z][A-Z]", word)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_what_the_english_one_names(page):
    for chinese, text in zip(sections(page), sections(source_of(page))):
        assert names_in(text) - names_in(chinese) == set()
        assert {word for word in bold_in(text) if word not in plain(chinese)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_the_examples_of_the_english_one(page):
    """Each block that is set as it is has as many lines."""
    def blocks(text):
        found = re.findall(r"^\.(nf|EX|TS)\n(.*?)^\.(?:fi|EE|TE)$", text, re.M | re.S)
        return [(kind, block.count("\n")) for kind, block in found]

    for chinese, text in zip(sections(page), sections(source_of(page))):
        assert blocks(chinese) == blocks(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_built_page_is_whole(page):
    text = built(f"zh_CN/{page.stem}").read_text(encoding="utf-8")
    assert not re.search(r"^@[A-Z_]+@$", text, re.M)
    heads = re.compile(r"^\.TP\n(.*)$", re.M)
    ours, theirs = heads.findall(text), heads.findall((built(page.stem) if source_of(page).suffix == ".in"
                                                       else source_of(page)).read_text(encoding="utf-8"))
    flags = re.compile(r"--?[a-z_]+|[A-Z]+_[A-Z_]+")
    assert [flags.findall(head.replace("\\-", "-")) for head in ours] == \
        [flags.findall(head.replace("\\-", "-")) for head in theirs]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_man_shows_the_page_without_a_complaint(page, tmp_path):
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man is not installed")
    name, _, section = page.stem.rpartition(".")
    for folder in (tmp_path / "man", tmp_path / "man/zh_CN"):
        (folder / f"man{section}").mkdir(parents=True, exist_ok=True)
    shutil.copy(built(f"zh_CN/{page.stem}"), tmp_path / f"man/zh_CN/man{section}")
    source = built(page.stem) if source_of(page).suffix == ".in" else source_of(page)
    shutil.copy(source, tmp_path / f"man/man{section}")
    environment = {**os.environ, "MANPATH": str(tmp_path / "man"), "MANWIDTH": "100", "MANROFFOPT": "-ww"}
    done = subprocess.run(["man", "-L", "zh_CN.UTF-8", section, name], env=environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    assert "名称" in done.stdout and "另见" in done.stdout


def test_every_page_has_its_chinese():
    pages = {path.name.removesuffix(".in") for path in MAN.glob("fleetrun*.*")}
    assert pages == {page.stem for page in PAGES}


def test_every_page_is_installed():
    """Each list of the English ones is that of the Chinese ones, too."""
    named = re.findall(r"^  '(fleetrun[\w.-]*\.\d)'[,:]", (MAN / "meson.build").read_text(), re.M)
    assert sorted(named) == sorted(page.stem for page in PAGES)
