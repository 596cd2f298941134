"""What `meson install --tags devel` installs: a trainer of one's own in C++ is built against it alone, found
by pkg-config and by CMake, wherever it lies, and trains."""

import os
import pathlib
import shutil
import subprocess

import pytest

from fleetrun_job import ROOT, clean_environment, find_fleetrun

LIMIT = 300  # a compiler on a busy machine
EXAMPLE = ROOT / "examples" / "ps_client"


def run(*command, cwd, **variables):
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=clean_environment(**variables),
                          capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of pkg-config's files, below another root than the one that was configured."""
    if not (ROOT / "build" / "ps" / "libfleetrun_ps.a").exists() or not shutil.which("meson"):
        pytest.skip("the archive for C++ programs is not built")
    root = tmp_path_factory.mktemp("installed")
    run("meson", "install", "-C", ROOT / "build", "--no-rebuild", "--quiet", "--tags", "devel", cwd=root,
        DESTDIR=str(root))
    (found,) = root.rglob("fleetrun-ps.pc")
    return found.parent


def by_pkg_config(installed, work):
    words = run("pkg-config", "--define-prefix", "--cflags", "--libs", "fleetrun-ps", cwd=work,
                PKG_CONFIG_PATH=str(installed)).split()
    shutil.copy(EXAMPLE / "train.cc", work)
    run("c++", "-std=c++20", "train.cc", *words, "-o", "train", cwd=work)
    return work / "train"


def by_cmake(installed, work):
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    shutil.copytree(EXAMPLE, work / "source")
    run("cmake", "-S", "source", "-B", "made", f"-DCMAKE_PREFIX_PATH={installed.parents[1]}", cwd=work)
    run("cmake", "--build", "made", cwd=work)
    return work / "made" / "ps_client_example"


@pytest.mark.parametrize("build", [by_pkg_config, by_cmake])
def test_a_program_is_built_against_what_was_installed_and_trains(installed, tmp_path, build):
    program = build(installed, tmp_path)
    run(find_fleetrun(), "--server_num=1", "--trainer_num=1", "--log_dir=logs", program, "", "50",
        cwd=tmp_path, FLEETRUN_RUN_DIR=str(tmp_path / "run"))
    logs = "".join(log.read_text() for log in (tmp_path / "logs").rglob("workerlog.0"))
    assert "loss" in logs, logs


def test_every_header_that_is_installed_finds_those_that_it_includes(installed):
    headers = next(pathlib.Path(installed).parents[1].glob("include/fleetrun"))
    wanted = {line.split('"')[1] for header in headers.rglob("*.h")
              for line in header.read_text().splitlines() if line.startswith('#include "')}
    assert sorted(name for name in wanted if not os.path.exists(headers / name)) == []
