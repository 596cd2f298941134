"""scripts/check-titles, on repositories of its own: what it asks of a message, and since which commit."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check-titles"
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
       "GIT_COMMITTER_EMAIL": "a@b",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git")


def git(root, *words):
    subprocess.run(["git", "-C", root, *words], check=True, capture_output=True, timeout=60,
                   env={**os.environ, **GIT})


@pytest.fixture
def repository(tmp_path):
    """A repository whose second commit adds the check; the title of the first one would not do."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "launcher").mkdir()
    (tmp_path / "launcher" / "plan.cc").write_text("")
    (tmp_path / "README.md").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "scripts/check-titles: read commits", "-m", "They had no bodies.")
    return tmp_path


def commit(root, *messages):
    git(root, "commit", "--allow-empty", *(word for message in messages for word in ("-m", message)))


def check(root):
    run = subprocess.run([root / "scripts" / "check-titles"], capture_output=True, text=True, timeout=60)
    return run.returncode, run.stdout


@pytest.mark.parametrize("title", [
    "launcher/plan: say why a port is refused", "README: name the folders",
    "launcher, scripts: use one word for one thing",
    "scripts/{lint,test}: end alike"])
def test_good_messages_pass_and_those_of_before_the_check_are_exempt(repository, title):
    commit(repository, title, "Because.")
    assert check(repository) == (0, "")


@pytest.mark.parametrize("messages, finding", [
    (["launcher/plan: " + "x" * 60, "Because."], "a title of 75 characters; at most 72"),
    (["launcher/plan: say why a port is refused"], "has no body"),
    (["Say why a port is refused", "Because."], "is not `folder/file: verb …`"),
    (["lancher/plan: say why", "Because."], "lancher/plan is not a folder or file"),
])
def test_a_message_that_does_not_do_is_named_with_its_commit(repository, messages, finding):
    commit(repository, *messages)
    status, found = check(repository)
    assert status == 1
    assert finding in found and found.count("\n") == 1


def test_a_shallow_clone_is_checked_as_far_as_it_reaches(repository, tmp_path_factory):
    commit(repository, "launcher/plan: say why a port is refused", "Because.")
    commit(repository, "No place", "Because.")
    clone = tmp_path_factory.mktemp("clone") / "c"
    git(repository, "clone", "--quiet", "--depth=1", f"file://{repository}", clone)
    status, found = check(clone)
    assert status == 1 and "No place" in found


def test_where_there_is_no_git_repository_the_check_is_skipped(repository):
    shutil.rmtree(repository / ".git")
    assert check(repository)[0] == 77
