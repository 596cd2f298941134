"""The Debian packages that scripts/package makes, unpacked where nothing of this checkout is."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NAMES = ("fleetrun", "python3-fleetrun", "libfleetrun-dev")


def run(*command, **variables):
    environment = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": "", **variables}
    done = subprocess.run([str(word) for word in command], env=environment, text=True, capture_output=True,
                          timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(ROOT / "scripts/package", "deb", "--quick", f"--to={folder}")
    return {name: next(folder.glob(f"{name}_*_amd64.deb")) for name in NAMES}


@pytest.fixture(scope="module")
def system(packages, tmp_path_factory):
    folder = tmp_path_factory.mktemp("system")
    for package in packages.values():
        run("dpkg-deb", "--extract", package, folder)
    return folder


def fields(package):
    lines = run("dpkg-deb", "--field", package).splitlines()
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def test_each_names_what_it_needs(packages):
    told = {name: fields(package) for name, package in packages.items()}
    assert re.search(r"libc6 \(>= 2\.3\d\)", told["fleetrun"]["Depends"])
    assert "libgrpc++1.51" in told["python3-fleetrun"]["Depends"]
    assert f"fleetrun (= {told['fleetrun']['Version']})" in told["python3-fleetrun"]["Depends"]
    assert "libgrpc++-dev" in told["libfleetrun-dev"]["Depends"]


def test_no_file_is_in_two_and_each_is_root_s(packages):
    seen = []
    for package in packages.values():
        lines = [line.split() for line in run("dpkg-deb", "--contents", package).splitlines()]
        assert {line[1] for line in lines} == {"root/root"}
        seen += [line[5] for line in lines if not line[5].endswith("/")]
    assert len(seen) == len(set(seen))


def test_the_commands_and_the_package_start(system):
    assert run(system / "usr/bin/fleetrun", "--version").startswith("fleetrun ")
    assert "usage" in run(system / "usr/bin/fleetrun", "ps", "--help").lower()
    # numpy is this environment's; a system with the package has Debian's.
    packages = f"{system}/usr/lib/python3/dist-packages"
    where = run(sys.executable, "-S", "-c", "import sys; sys.path.insert(0, sys.argv[1]); sys.path.append("
                "sys.argv[2]); import fleetrun; from fleetrun import _native; print(_native.__file__)",
                packages, Path(pytest.__file__).parents[1])
    assert where.startswith(packages)


def test_pkg_config_finds_the_library(system):
    folder = system / "usr/lib/x86_64-linux-gnu/pkgconfig"
    flags = run("pkg-config", "--cflags", "--libs", "fleetrun-ps", PKG_CONFIG_PATH=str(folder))
    assert "-I/usr/include/fleetrun" in flags and "-lfleetrun_ps" in flags
    assert (system / "usr/lib/libfleetrun_ps.a").exists()
    assert (system / "usr/include/fleetrun/ps/base/table_config.h").exists()
