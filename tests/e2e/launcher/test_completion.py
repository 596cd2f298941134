"""What a shell completes, asked of the shell itself; zsh and fish only where they are installed."""

import os
import shutil
import subprocess

import pytest

from fleetrun_job import clean_environment, find_fleetrun, wait_until

# (words before the cursor, what has to be among the completions, what must not be)
CASES = [
    ("fleetrun --server", {"--server_num", "--servers"}, {"--trainers", "train.py"}),
    ("fleetrun --log-d", {"--log-dir"}, {"--log_dir"}),
    ("fleetrun --bind=", {"auto", "none", "core", "numa"}, {"train.py"}),
    ("fleetrun --bind c", {"core"}, {"auto"}),
    ("fleetrun --dry_run=s", {"sh"}, {"text"}),
    ("fleetrun --dry_run tr", {"train.py"}, set()),
    ("fleetrun --log_dir ru", {"runs"}, {"rude.txt"}),
    ("fleetrun --server_num 1 tr", {"train.py"}, set()),
    ("fleetrun --server_num=1 tr", {"train.py"}, set()),
    ("fleetrun --module tr", {"train.py"}, set()),
    ("fleetrun st", {"status", "stop"}, {"top"}),
    ("fleetrun --server_num=1 st", set(), {"status", "stop"}),
    ("fleetrun train.py --server", set(), {"--server_num"}),
    ("fleetrun tra", {"trace"}, {"top"}),
    ("fleetrun trace --server", {"--server_num", "--servers"}, {"--trainers", "train.py"}),
    ("fleetrun trace --server_num 1 tr", {"train.py"}, {"trace"}),
    ("fleetrun trace --bind c", {"core"}, {"auto"}),
    ("fleetrun trace train.py --server", set(), {"--server_num"}),
    ("fleetrun train.py ru", {"runs", "rude.txt"}, {"rumours"}),
    ("fleetrun stop ", {"rumours", "abcdef"}, set()),
    ("fleetrun logs ru", {"rumours"}, {"abcdef"}),
    ("fleetrun logs x ru", {"runs"}, {"rumours"}),
    ("fleetrun logs --rank=", {"0", "1"}, {"train.py"}),
    ("fleetrun logs --rank 1", {"1"}, {"0"}),
    ("fleetrun logs --fo", {"--follow"}, {"--force", "train.py"}),
]

# `fleetrun complete` of two jobs, one of which has two ranks.
LISTER = r"""#!/bin/sh
case "$*" in
  "complete stop"*|"complete logs ru"|"complete attach"*) offered="rumours abcdef" ;;
  "complete logs --rank = "*|"complete logs --rank "[01]) offered="0 1" ;;
  "complete logs --rank =") exec printf '0\n1\n' ;;
  "complete logs --rank="*) offered="--rank=0 --rank=1" ;;
  "complete logs --fo") offered="--follow" ;;
esac
for last in "$@"; do :; done
for word in $offered; do
  case $word in "$last"*) echo "$word" ;; esac
done
"""

BASH = r"""
source fleetrun.bash
line=$1
read -ra COMP_WORDS <<<"${line//=/ = }"
[[ $line == *[=\ ] ]] && COMP_WORDS+=("")
[[ $line == *= ]] && unset 'COMP_WORDS[-1]'
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_fleetrun
printf '%s\n' "${COMPREPLY[@]}"
"""

# One pseudo terminal; the widget writes what the line has become.
ZSH = r"""
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; setopt no_auto_menu no_list_ambiguous
show() { print -r -- "$BUFFER" >line.new; mv line.new line }; zle -N show; bindkey "^X" show; bindkey "^I" complete-word; echo rea""dy'
while zpty -r z out; do [[ $out == *ready* ]] && break; done
zpty -w -n z $'\C-u'"$1"$'\t\C-x'
for i in {1..200}; do [[ -e line ]] && break; sleep 0.05; done
cat line
"""


@pytest.fixture
def folder(tmp_path):
    for name, shell in (("fleetrun.bash", "bash"), ("_fleetrun", "zsh"), ("fleetrun.fish", "fish")):
        text = subprocess.run([find_fleetrun(), f"--completion={shell}"], capture_output=True,
                              check=True).stdout
        (tmp_path / name).write_bytes(text)
    (tmp_path / "train.py").touch()
    (tmp_path / "rude.txt").touch()
    (tmp_path / "runs").mkdir()
    (tmp_path / "bin").mkdir()
    lister = tmp_path / "bin" / "fleetrun"
    lister.write_text(LISTER)
    lister.chmod(0o755)
    return tmp_path


def ask(argv, folder):
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(argv, cwd=folder,
                          env=clean_environment(HOME=str(folder), LC_ALL="C.UTF-8", PATH=path),
                          capture_output=True,
                          text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("line", "wanted", "unwanted"), CASES)
def test_bash(folder, line, wanted, unwanted):
    found = set(ask(["bash", "-c", BASH, "bash", line], folder))
    assert wanted <= found
    assert not unwanted & found


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("line", "wanted", "unwanted"), CASES)
def test_fish(folder, line, wanted, unwanted):
    if "log-d" in line:
        pytest.skip("fish does not know '-' for '_'")
    lines = ask(["fish", "--no-config", "-c", f"source fleetrun.fish; complete -C '{line}'"], folder)
    found = {found.split("\t")[0].split("=")[-1].rstrip("/") for found in lines}
    assert wanted <= found
    assert not unwanted & found


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("fleetrun --bind=c", "fleetrun --bind=core "),
        ("fleetrun --log-d", "fleetrun --log-dir="),
        ("fleetrun --dry_run=s", "fleetrun --dry_run=sh "),
        ("fleetrun --server_num 1 tr", "fleetrun --server_num 1 train.py "),
        ("fleetrun stat", "fleetrun status "),
        ("fleetrun train.py --server_n", "fleetrun train.py --server_n"),
        ("fleetrun attach ab", "fleetrun attach abcdef "),
        ("fleetrun logs --fo", "fleetrun logs --follow "),
        ("fleetrun --log_dir ru", "fleetrun --log_dir runs/"),
    ],
)
def test_zsh(folder, line, completed):
    assert ask(["zsh", "-f", "-c", ZSH, "zsh", line], folder) == [completed]


def test_another_shell_is_refused(work):
    job = work.run("--completion=tcsh")
    assert job.status == 125
    assert "there is bash, zsh and fish" in job.err


def test_the_names_of_running_jobs_are_listed_for_shells(work):
    work.script("t.py", "import time; print('up', flush=True); time.sleep(60)")
    job = work.start("--job_id=completed", "t.py")
    job.wait_for_log("workerlog.0", "up")
    wait_until(lambda: "completed" in work.run("list", "--names").out.split(), "the job is listed")


def test_what_follows_a_subcommand(work):
    work.script("t.py", "import os, socket, time\n"
                        "if os.environ['TRAINING_ROLE'] == 'PSERVER':\n"
                        "    s = socket.create_server(('', int(os.environ['PADDLE_PORT'])))\n"
                        "print('up', flush=True)\ntime.sleep(60)\n")
    job = work.start("--job_id=completed", "--trainer_num=2", "--server_num=1", "--run_mode=ps", "t.py")
    job.wait_for_log("workerlog.1", "up")

    def offered(*words):
        return work.run("complete", *words).out.split()

    def offers(wanted, *words):
        # It asks the job, and offers nothing where a busy machine lets that answer late.
        wait_until(lambda: offered(*words) == wanted, f"{words} offers {wanted}")

    wait_until(lambda: "completed" in offered("stop", ""), "the job is offered")
    offers(["completed"], "logs", "compl")
    offers(["0", "1"], "logs", "completed", "--rank", "")
    offers(["--rank=0,0", "--rank=0,1"], "logs", "completed", "--rank=0,")
    offers(["0", "1"], "logs", "completed", "--rank", "=")  # bash has '=' as a word
    offers(["server"], "logs", "completed", "--role", "=", "s")
    offers(["1"], "logs", "completed", "-r", "1")
    offers(["completed"], "ui", "--job", "comp")
    offers(["--job=completed"], "ps", "--job=comp")
    assert offered("logs", "--log-d") == [] and offered("logs", "--log_d") == ["--log_dir"]
    assert {"USR1", "USR2"} <= set(offered("stop", "--signal", "US"))
    assert {"stat", "get", "save"} <= set(offered("ps", "")) and offered("ps", "sta") == ["stat"]
    assert set(offered("data", "")) >= {"head", "check", "convert"}
    for nothing in (["logs", "--log_dir", ""], ["plot", ""], ["trace", ""], ["no_command", ""], ["logs"], []):
        assert offered(*nothing) == [], nothing
