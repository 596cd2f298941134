"""The man pages say what the program says: its flags, its variables, its exit statuses, its commands."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "man"


def program():
    path = (os.environ.get("FLEETRUN_BIN") or shutil.which("fleetrun")
            or str(ROOT / "build" / "cli" / "fleetrun"))
    if not os.path.exists(path):
        pytest.skip("fleetrun is not built")
    return path


def said(*arguments):
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=True,
                          timeout=30).stdout


def page(name):
    """The text of a page, with its dashes as they are printed."""
    return (MAN / name).read_text().replace("\\-", "-")


def flags_of_help():
    """{every spelling of every flag}, from lines such as "  --trainer_num, --worker_num N"."""
    flags = set()
    for line in re.findall(r"^  (-.*)$", said("--help"), re.M):
        flags |= set(re.findall(r"(?:^|, )(--?[\w]+)", line))
    assert len(flags) > 60
    return flags


def long_flags_of_page(name):
    """Those that a page's headings name; the text may mention others."""
    flags = set()
    for line in re.findall(r"^\.B[IR]? (.*)$",
                           page(name).partition(".SH FLAGS")[2].partition(".SH COMMANDS")[0], re.M):
        flags |= set(re.findall(r"(?<![\w-])(--[a-z_]+)", re.sub(r"\\f[BRI]", "", line)))
    return flags


def completed_flags(shell):
    script = said(f"--completion={shell}")
    if shell == "bash":
        return set(re.search(r"^_fleetrun_flags='(.*)'$", script, re.M)[1].split())
    if shell == "zsh":
        return set(re.findall(r"^    '(--?\w+)=?-?\[", script, re.M))
    lines = re.findall(r"^complete -c fleetrun -n __fleetrun_before_script((?: -[ls] \w+)+)", script, re.M)
    found = {name for line in lines for name in re.findall(r"-([ls]) (\w+)", line)}
    return {("--" if kind == "l" else "-") + name for kind, name in found}


def contract_variables():
    """The names in the table of runtime/base/env_contract.cc."""
    names = set(re.findall(r'^  \{"([A-Za-z_]+)", "',
                           (ROOT / "runtime" / "base" / "env_contract.cc").read_text(), re.M))
    assert len(names) > 40
    return names


def variables_of_settings():
    names = set()
    for text in re.findall(r"\(variables? ([^)]*)\)", " ".join(said("--help").split())):
        names |= set(re.findall(r"\b[A-Z][A-Z_]+\b", text.partition(" default ")[0]))
    assert len(names) > 40
    return names


def variables_of_page():
    """Those in headings: lines that begin with .B or .BR and hold names of variables only."""
    headings = re.findall(r"^\.TP\n\.BR? (.*)$", page("fleetrun-environment.7"), re.M)
    return {name for heading in headings for name in re.findall(r"\b[A-Z][A-Za-z_]*[A-Za-z]\b", heading)}


def test_every_flag_of_the_help_is_on_the_page_and_no_other():
    wanted = {flag for flag in flags_of_help() if flag.startswith("--")}
    assert long_flags_of_page("fleetrun.1") == wanted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_flag_of_the_help_is_completed_and_no_other(shell):
    assert completed_flags(shell) == flags_of_help()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_of_the_help_is_completed_and_on_the_page(shell):
    names = set(re.findall(r"^  fleetrun (\w+) {3,}", said("--help").partition("commands")[2], re.M))
    assert {"status", "top", "logs", "attach", "stop"} <= names
    script, text = said(f"--completion={shell}"), page("fleetrun.1").partition(".SH COMMANDS")[2]
    for name in names:
        assert re.search(rf"\b{name}\b", script), name
        assert rf"\fBfleetrun {name}\fR" in text, name


def test_every_variable_is_on_the_environment_page():
    missing = (contract_variables() | variables_of_settings()) - variables_of_page()
    assert not missing


def test_every_variable_of_fleetruns_own_is_on_the_environment_page():
    """The names with FLEETRUN_ that the sources use, and no other."""
    used = set()
    for folder in ("cli", "collective", "dataset", "launcher", "ps", "runtime"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".cc", ".h", ".py"):
                used |= set(re.findall(r'"(FLEETRUN_[A-Z_]+[A-Z])"', path.read_text()))
    used -= {"FLEETRUN_VERSION"}
    assert used == {name for name in variables_of_page() if name.startswith("FLEETRUN_")}


def test_the_exit_statuses_of_the_help_are_on_the_page():
    told = " ".join(said("--help").partition("exit status:")[2].partition("\n\n")[0].split())
    section = page("fleetrun.1").partition(".SH EXIT STATUS")[2].partition(".SH EXAMPLES")[0]
    for status in {number for number in re.findall(r"\b\d+\b", told) if int(number) not in (128,)}:
        assert re.search(rf"^\.BR? .*\b{status}\b", section, re.M), status


@pytest.mark.parametrize("name", sorted(path.name for path in MAN.glob("*.[1-9]")))
def test_the_page_is_sound(name):
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", str(MAN / name)], capture_output=True,
                          text=True, timeout=30)
    assert not [line for line in done.stdout.splitlines() if "missing date" not in line]


def test_every_page_is_installed():
    build = (MAN / "meson.build").read_text()
    assert set(re.findall(r"'([\w.-]+)'", build)) == {path.name for path in MAN.glob("*.[1-9]")}
