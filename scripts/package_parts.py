"""What the kinds of packages of scripts/package share: the product, built for a Python; running commands."""
import os
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PREFIX = ROOT / ".venv"
# For later Pythons: a pybind11 that speaks to them, and the distutils that Debian's meson asks for.
FOR_LATER = ("pybind11==3.0.1", "setuptools<81")
FACTS = 'import sys, sysconfig; print("cp%d%d" % sys.version_info[:2], sysconfig.get_path("include"))'


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
    """cp311, for example."""
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
    folder = ROOT / f"build-{tag}"
    environment = dict(os.environ, PATH=f"/usr/bin:/bin:{os.environ['PATH']}")
    if not (folder / "build.ninja").exists():
        interpreter = make_environment(ROOT / ".cache/package" / tag, python, *FOR_LATER)
        pkgconfig = run(interpreter, "-c", "import pybind11; print(pybind11.get_pkgconfig_dir())").strip()
        environment["PKG_CONFIG_PATH"] = pkgconfig
        packages = PREFIX / "packages"
        run("meson", "setup", folder, "--prefix", PREFIX, "--libdir", "lib", "--buildtype", "release",
            f"-Dpython.platlibdir={packages}", f"-Dpython.purelibdir={packages}", "-Dtests=disabled",
            f"-Dpython_command={interpreter}", env=environment)
    run("ninja", "-C", folder, "run", "tools", env=environment)
    return folder


def programs(folder):
    """Every program and library below `folder`."""
    return [path for path in folder.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def install(folder, stage, tags):
    """What `meson install` puts below the prefix."""
    run("meson", "install", "-C", folder, "--no-rebuild", "--quiet", "--destdir", stage, "--tags", tags)
    return Path(f"{stage}{PREFIX}")
