"""People are spoken to in the language of their locale; logs for programs, events and JSON stay English."""

import json

import pytest

from fleetrun_job import clean_environment

CHINESE = {"LANG": "zh_CN.UTF-8", "LC_ALL": ""}
FAILS = ("--nproc_per_node=1", "/bin/sh", "-c", "exit 3")


def said(work, *arguments, **variables):
    return work.run(*arguments, environment=clean_environment(**variables))


def test_the_help_is_in_the_locale_s_language(work):
    english = said(work, "--help", LANG="C.UTF-8", LC_ALL="").out
    chinese = said(work, "--help", **CHINESE).out
    assert "parameter servers to start on this host" in english
    assert "本机启动的参数服务器个数" in chinese and "parameter servers to start" not in chinese
    flags = [[line for line in text.splitlines() if line.startswith("  -")] for text in (english, chinese)]
    assert flags[0] == flags[1] and len(flags[0]) > 100
    assert "给出它，任务就是 `ps` 任务。" in said(work, "help", "trainer_num", **CHINESE).out


@pytest.mark.parametrize("variables", [
    {"LANG": "en_US.UTF-8"}, {"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, {"LANG": "C.UTF-8", "LANGUAGE": "zh_CN"},
    {"LANG": "zh_CN.GB18030"}, {"LANG": "de_DE.UTF-8"}])
def test_others_read_english(work, variables):
    assert said(work, "--help", **{"LC_ALL": "", **variables}).out == said(work, "--help", LC_ALL="C").out


def test_an_error_and_its_hint(work):
    job = said(work, "--sever_num=1", "train.py", **CHINESE)
    assert (job.status, job.err) == (125, "fleetrun: 错误：未知参数 --sever_num\n  提示：是不是 --server_num？\n")
    job = said(work, "nosuch.py", **CHINESE)
    assert (job.status, job.err) == (127, "fleetrun: 错误：脚本 'nosuch.py' 不存在\n  提示：检查文件名和当前目录\n")
    job = said(work, "--server_num=x", "train.py", **CHINESE)
    assert "--server_num 是 'x'：应为 1 到 4096 的整数" in job.err
    assert not list(work.directory.iterdir())


def test_what_is_not_translated_is_said_in_english(work):
    chinese, english = (said(work, "--inject=foo", "/bin/true", **variables).err
                        for variables in (CHINESE, {"LC_ALL": "C"}))
    assert english.startswith("fleetrun: error: --inject 'foo': ")
    assert chinese.splitlines()[0] == english.splitlines()[0].replace("fleetrun: error: ", "fleetrun: 错误：")


def test_a_failure_is_told_in_chinese_and_recorded_in_english(work):
    job = said(work, *FAILS, **CHINESE)
    assert job.status == 3
    assert "最先失败：trainer 0 以 3 退出" in job.err and "trainer 0 以 3 退出（最先失败；日志 " in job.err
    for line in ("LAUNCH INFO ", "Run Pod: ", "Pod failed", "Container failed !!!", "Exit code 3"):
        assert line in job.err
    verdict = json.loads((work.directory / "log/verdict.json").read_text(encoding="utf-8"))
    assert verdict["cause"] == "trainer 0 exited with 3"
    (events,) = (work.directory / "log").glob("*/events.jsonl")
    assert events.read_text(encoding="utf-8").isascii()


def test_a_restart_is_told_in_chinese(work):
    job = said(work, "--max_restart=1", *FAILS, **CHINESE)
    assert "trainer 0 失败，重启全部进程：第 1 次尝试（crash，第 1 次重启，最多 1 次）" in job.err
    assert "不再重启：crash 允许的 1 次重启已用完" in job.err


def test_completion_and_schema_are_the_same_in_each_language(work):
    for flag in ("--completion=bash", "--completion=zsh", "--completion=fish", "--job_schema"):
        assert said(work, flag, **CHINESE).out == said(work, flag, LC_ALL="C").out != ""


def test_an_agent_speaks_english(work):
    """Who started it reads what it says."""
    assert "fleetrun: error: " in said(work, "agent", **CHINESE).err
