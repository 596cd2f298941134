"""A wheel of fleetrun for one Python, for scripts/package."""
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
TAGS = "runtime,tools,python-runtime,man,completion,schema"  # what scripts/build installs, too
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PREFIX = ROOT / ".venv"
PLATFORM = "manylinux_2_35_x86_64"
MAX_BYTES = 40 << 20
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


def lay_out(installed, wheel, name):
    """Puts what was installed where a wheel wants it: the package on top, all else below NAME.data."""
    package = next(installed.rglob("fleetrun/__init__.py")).parent
    shutil.move(package, wheel / "fleetrun")
    shutil.move(installed / "bin", wheel / f"{name}.data/scripts")
    shutil.move(installed / "share", wheel / f"{name}.data/data/share")
    run("strip", "--strip-unneeded", *programs(wheel))


def copyrights(wheel):
    """{Debian's package: what it says of its copyright} of every library that these programs load."""
    words = [word for path in programs(wheel) for word in run("ldd", path, check=False).split()]
    libraries = {os.path.realpath(after) for word, after in zip(words, words[1:]) if word == "=>"}
    # Debian's packages name /lib what lies in /usr/lib: the last two parts of a path are the same in both.
    owners = {run("dpkg", "-S", "*/" + "/".join(library.split("/")[-2:])).split(":")[0]
              for library in libraries if os.path.exists(library)}
    return {owner: Path(f"/usr/share/doc/{owner}/copyright") for owner in sorted(owners)}


def describe(wheel, name, tag):
    """Writes NAME.dist-info. Its list of files is `wheel pack`'s."""
    from pyproject_metadata import StandardMetadata

    metadata = StandardMetadata.from_pyproject({"project": {**PROJECT, "readme": "README.md"}}, ROOT)
    folder = wheel / f"{name}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(str(metadata.as_rfc822()))
    (folder / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: fleetrun\nRoot-Is-Purelib: false\n"
                                  f"Tag: {tag}-{tag}-linux_x86_64\n")
    licenses = folder / "licenses"
    licenses.mkdir()
    shutil.copy(ROOT / "LICENSE", licenses)
    for owner, text in copyrights(wheel).items():
        shutil.copy(text, licenses / f"{owner}.copyright")


def package_wheel(python, to):
    tag = tag_of(python)
    name = f"fleetrun-{PROJECT['version']}"
    say(f"compiling for {tag}")
    folder = build(python, tag)
    with tempfile.TemporaryDirectory() as scratch:
        stage, wheel, packed = (Path(scratch) / part for part in ("stage", "wheel", "packed"))
        wheel.mkdir()
        packed.mkdir()
        run("meson", "install", "-C", folder, "--no-rebuild", "--quiet", "--destdir", stage, "--tags", TAGS)
        (wheel / f"{name}.data/data").mkdir(parents=True)
        lay_out(Path(f"{stage}{PREFIX}"), wheel, name)
        describe(wheel, name, tag)
        run(sys.executable, "-m", "wheel", "pack", wheel, "--dest-dir", packed)
        say("putting the libraries in that a system may lack")
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", PLATFORM, "--only-plat", "--wheel-dir",
            to, next(packed.iterdir()))
    made = to / f"{name}-{tag}-{tag}-{PLATFORM}.whl"
    size = made.stat().st_size
    if size >= MAX_BYTES:
        made.unlink()
        raise Refusal(f"{made.name} would have {size >> 20} MB, and may have less than {MAX_BYTES >> 20}")
    with zipfile.ZipFile(made) as archive:
        say(f"{made}: {size / 2**20:.1f} MB, {len(archive.namelist())} files")
