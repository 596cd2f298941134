"""The documents are spelled right: English by codespell's list of misspellings, Chinese by what no
simplified text holds."""

import itertools
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MESSAGES = [*ROOT.glob("runtime/language/zh_CN/*.po")]
TEXTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*/*.md"), *ROOT.glob("man/**/*.[1-9]*"),
         *ROOT.glob("examples/*/README.md"), *MESSAGES]
ENGLISH = [text for text in TEXTS if not re.search(r"zh_CN|\.zh\.md|/zh/", str(text))]
CHINESE = [text for text in TEXTS if text not in ENGLISH]
# lod and nce: operators of Paddle's. The others are options, and types of columns.
OURS = "lod,nce"
HAN = "[\u4e00-\u9fff]"
# A homophone in place of a word, as input methods offer it, and Taiwan's or Hong Kong's words.
HOMOPHONES = "登陆 帐号 帐户 阀值 布署 图象 通迅 部份 按装 己经 以经 拷备 备分 复盖 线成 进成 做为 程式 資料 伺服器 记忆体 档案"


def prose(text):
    """Without escapes of roff and without code."""
    return re.sub(r"^\.\w+|\\[f*]?\(..|\\f.|\\[&-]|`[^`\n]*`", " ", text, flags=re.M)


def misspelled(text):
    """Lines, each with the word that codespell knows, and what it may be."""
    told = subprocess.run([sys.executable, "-m", "codespell_lib", "--ignore-words-list", OURS, "-"],
                          input=prose(text), capture_output=True, text=True, timeout=60)
    assert told.returncode in (0, 65), told.stderr
    return told.stdout.replace("\n\t", "  ").splitlines()


def odd_chinese(text):
    """Pairs of what is wrong and the line that holds it."""
    for line in text.splitlines():
        # GB 2312 has the characters of everyday simplified text, and no traditional ones.
        yield from (("not simplified: " + han, line) for han in re.findall(HAN, line)
                    if not han.encode("gb2312", "ignore"))
        yield from ((f"half-width {mark[1]}", line) for mark in re.findall(f"{HAN}[,;:?!]{HAN}", line))
        yield from ((f"twice {word}", line) for word in re.findall(f"({HAN}{{2}})\\1", line))
        yield from ((word, line) for word in HOMOPHONES.split() if word in line)


def test_there_are_texts_in_both_languages():
    assert len(ENGLISH) > 40 and len(CHINESE) > 40


@pytest.mark.parametrize("text, found", [("It will recieve it.\n", "recieve ==> receive"),
                                         (r"the \fBseperate\fR world" "\n", "seperate ==> separate")])
def test_what_is_misspelled_is_named(text, found):
    assert any(found in line for line in misspelled(text))
    assert not misspelled("It will receive it, `recieve` and a lod.\n")


@pytest.mark.parametrize("text, found", [("参数伺服器", "伺服器"), ("參数服务器", "not simplified: 參"),
                                         ("训练,预测", "half-width ,"), ("训练训练", "twice 训练")])
def test_what_is_odd_in_chinese_is_named(text, found):
    assert found in [what for what, _ in odd_chinese(text)]


def test_english_is_spelled_right():
    texts = itertools.chain.from_iterable((f"{path.relative_to(ROOT)}\n", path.read_text(encoding="utf-8"))
                                          for path in ENGLISH + MESSAGES)
    assert not misspelled("".join(texts))


@pytest.mark.parametrize("path", CHINESE, ids=lambda path: str(path.relative_to(ROOT)))
def test_chinese_is_spelled_right(path):
    assert not list(odd_chinese(path.read_text(encoding="utf-8")))
