"""The man pages say what the program says: its flags, its variables, its exit statuses, its commands."""

import pathlib
import re
import shutil
import subprocess

import pytest

from built_manual import built
from fleetrun_job import find_fleetrun

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "man"


def program():
    try:
        return find_fleetrun()
    except FileNotFoundError:
        pytest.skip("fleetrun is not built")


def said(*arguments):
    return subprocess.run([program(), *arguments], capture_output=True, text=True, check=True,
                          timeout=30).stdout


def page_file(name):
    return built(name) if (MAN / f"{name}.in").exists() else MAN / name


def page(name):
    """The text of a page, with its dashes as they are printed."""
    return page_file(name).read_text().replace("\\-", "-")


PAGES = sorted(path.name.removesuffix(".in") for path in MAN.glob("fleetrun*.[0-9]*"))


def flags_of_help():
    """{every spelling of every flag}, from lines such as "  --trainer_num, --worker_num N"."""
    flags = set()
    for line in re.findall(r"^  (-.*)$", said("--help"), re.M):
        flags |= set(re.findall(r"(?:^|, )(--?[\w]+)", line))
    assert len(flags) > 60
    return flags


def long_flags_of_page(name):
    """Those that the heads of entries name; the text may mention others."""
    flags = page(name).partition(".SH FLAGS")[2].partition(".SH COMMANDS")[0]
    heads = "\n".join(re.findall(r"^\.TP\n(.*)$", flags, re.M))
    return set(re.findall(r"(?<![\w-])(--[a-z_]+)", re.sub(r"\\f[BRI]", "", heads)))


def completed_flags(shell):
    script = said(f"--completion={shell}")
    if shell == "bash":
        return set(re.search(r"^_fleetrun_flags='(.*)'$", script, re.M)[1].split())
    if shell == "zsh":
        return set(re.findall(r"^    '(--?\w+)=?-?\[", script, re.M))
    lines = re.findall(r"^complete -c fleetrun -n __fleetrun_before_script((?: -[ls] \w+)+)", script, re.M)
    found = {name for line in lines for name in re.findall(r"-([ls]) (\w+)", line)}
    return {("--" if kind == "l" else "-") + name for kind, name in found}


def variables_of_page():
    """Those in the heads of entries."""
    heads = re.findall(r"^\.TP\n(.*)$", page("fleetrun-environment.7"), re.M)
    return {name for head in heads for name in re.findall(r"\\fB(\w+)\\fR", head)}


PREFIX = r"(?:FLEETRUN|PADDLE|PET|TORCH|TORCHELASTIC|FLAGS|SLURMD?|KUBERNETES|NCCL|GLOO)_"
READ_OR_SET = (r"(?:find|has|set|get|erase|value_or|number)\(\s*\"([A-Z][A-Z_]{2,})\"",
               r"environ\[\"([A-Z_]+)\"\]",
               rf"[\"']({PREFIX}[A-Za-z_]*[A-Za-z])[\"'=]")


def variables_of_sources():
    """{name: the first file that reads or sets it}"""
    used = {}
    for folder in ("cli", "collective", "dataset", "launcher", "ps", "runtime"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cc", ".h", ".py"):
                for pattern in READ_OR_SET:
                    for name in re.findall(pattern, path.read_text()):
                        used.setdefault(name, path.relative_to(ROOT))
    assert len(used) > 150
    return used


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


# A macro of the build, advice of an error message, and what the names of Volcano begin with.
NOT_VARIABLES = {"FLEETRUN_VERSION", "NCCL_DEBUG", "VC_"}


def test_every_variable_that_the_sources_name_is_on_the_environment_page():
    documented = variables_of_page() | NOT_VARIABLES
    assert {name: str(path) for name, path in variables_of_sources().items() if name not in documented} == {}


def test_every_variable_of_fleetruns_own_on_the_page_is_named_by_the_sources():
    own = {name for name in variables_of_page() if name.startswith("FLEETRUN_")}
    assert own - set(variables_of_sources()) == set()


def test_the_exit_statuses_of_the_help_are_on_the_page():
    told = " ".join(said("--help").partition("exit status:")[2].partition("\n\n")[0].split())
    section = page("fleetrun.1").partition(".SH EXIT STATUS")[2].partition(".SH EXAMPLES")[0]
    for status in {number for number in re.findall(r"\b\d+\b", told) if int(number) not in (128,)}:
        assert re.search(rf"^\.BR? .*\b{status}\b", section, re.M), status


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_sound(name):
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    lint = ["mandoc", "-T", "lint", "-W", "warning", str(page_file(name))]
    done = subprocess.run(lint, capture_output=True, text=True, timeout=30)
    assert not [line for line in done.stdout.splitlines() if "missing date" not in line]
    assert not re.search(r"^@[A-Z_]+@$", page(name), re.M)


def test_every_page_is_installed():
    build = (MAN / "meson.build").read_text()
    assert set(re.findall(r"'(fleetrun[\w.-]*\.\d)'", build)) == set(PAGES)
