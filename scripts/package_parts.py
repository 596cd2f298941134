"""What the kinds of packages of scripts/package share: the product, built for a Python; running commands."""
import json
import os
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
PREFIX = ROOT / ".venv"
# For other Pythons: what compiles the bindings, as scripts/build gives it to the .venv, and the distutils
# that Debian's meson asks for.
FOR_OTHERS = (*(one for one in PYPROJECT["build-system"]["requires"] if one.startswith("nanobind")),
              "setuptools<81")
# From 3.12 on one module, of the stable ABI, is all Pythons'.
FACTS = """import sys, sysconfig
version = "cp%d%d" % sys.version_info[:2]
tag = "cp312-abi3" if sys.version_info >= (3, 12) else f"{version}-{version}"
print(tag, sysconfig.get_path("include"))"""


class Refusal(Exception):
    """What ends the script with one line."""


def say(text):
    print(f"package: {text}", flush=True)


def run(*command, check=True, **options):
    """What `command` printed."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd=ROOT, **options)
    if check and done.returncode != 0:
        sys.stderr.write(done.stdout[-4000:])
        raise Refusal(f"this failed with {done.returncode}: {' '.join(map(str, command))}")
    return done.stdout


def make_environment(folder, python, *packages):
    """The interpreter of a virtual environment with these packages, made once."""
    interpreter = folder / "bin/python"
    if not interpreter.exists():
        run(python, "-m", "venv", folder)
    if packages:
        run(interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return interpreter


def tag_of(python):
    """What a wheel for it is called by: cp311-cp311, or cp312-abi3 for 3.12 and every later one."""
    try:
        told = subprocess.run([python, "-c", FACTS], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refusal(f"{python} is not a Python that can be started: {error}") from error
    tag, headers = told.strip().split(" ", 1)
    if not (Path(headers) / "Python.h").exists():
        raise Refusal(f"{python} has no headers in {headers}: install its development files")
    return tag


def build(python, tag):
    """The folder that holds the product, built for this Python."""
    if python == "/usr/bin/python3":
        run(ROOT / "scripts/build", "--no-install")
        return ROOT / "build"
    folder = ROOT / f"build-{tag.partition('-')[0]}"
    environment = dict(os.environ, PATH=f"/usr/bin:/bin:{os.environ['PATH']}")
    if not (folder / "build.ninja").exists():
        interpreter = make_environment(ROOT / ".cache/package" / folder.name, python, *FOR_OTHERS)
        packages = PREFIX / "packages"
        run("meson", "setup", folder, "--prefix", PREFIX, "--libdir", "lib", "--buildtype", "release",
            f"-Dpython.platlibdir={packages}", f"-Dpython.purelibdir={packages}", "-Dtests=disabled",
            f"-Dpython_command={interpreter}", env=environment)
    run("ninja", "-C", folder, "run", "tools", env=environment)
    return folder


def licences_within(folder):
    """{file name: text} of the licences of what is compiled into the bindings that `folder` holds."""
    options = json.loads((folder / "meson-info/intro-buildoptions.json").read_text())
    python = next(option["value"] for option in options if option["name"] == "python_command")
    nanobind = Path(run(python, "-c", "import nanobind; print(nanobind.include_dir())").strip()).parent
    (own,) = nanobind.parent.glob("nanobind-*.dist-info/licenses/LICENSE")
    header = (nanobind / "ext/robin_map/include/tsl/robin_map.h").read_text()
    robin_map = header.partition("/**\n")[2].partition(" */")[0]
    return {"nanobind.LICENSE": own.read_text(),
            "robin_map.LICENSE": "".join(line[3:] or "\n" for line in robin_map.splitlines(keepends=True))}


def programs(folder):
    """Every program and library below `folder`."""
    return [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def install(folder, stage, tags):
    """What `meson install` puts below the prefix."""
    run("meson", "install", "-C", folder, "--no-rebuild", "--quiet", "--destdir", stage, "--tags", tags)
    return Path(f"{stage}{PREFIX}")
