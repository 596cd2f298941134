"""The wheel that scripts/package makes, in a virtual environment that knows nothing of this checkout."""
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scripts/package"
EXAMPLE = ROOT / "examples/wide_and_deep"


def run(*command, folder=ROOT):
    path = f"{Path(command[0]).parent}:/usr/bin:/bin"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": ""}
    done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(PACKAGE, "wheel", f"--to={folder}")
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    """The commands of an environment with the wheel in it, and with numpy, which is this one's."""
    import numpy

    environment = tmp_path_factory.mktemp("foreign") / "venv"
    venv.create(environment, with_pip=True)
    (packages,) = environment.glob("lib/python3*/site-packages")
    for name in ("numpy", "numpy.libs"):
        (packages / name).symlink_to(Path(numpy.__file__).parents[1] / name)
    run(environment / "bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    return environment / "bin"


def test_its_name_says_where_it_runs(wheel):
    own = f"cp3{sys.version_info.minor}"
    tag = "cp312-abi3" if sys.version_info >= (3, 12) else f"{own}-{own}"
    assert re.fullmatch(rf"fleetrun-[0-9.]+-{tag}-manylinux_2_35_x86_64\.whl", wheel.name)
    assert wheel.stat().st_size < 40 << 20


def test_pytorch_finds_the_backend_by_its_name(bin_folder):
    """As torch.distributed looks for it; the module itself needs PyTorch."""
    found = run(bin_folder / "python", "-c", """if True:
        from importlib.metadata import entry_points
        from importlib.util import find_spec
        (backend,) = entry_points(group="torch.distributed.backends", name="fleetrun")
        print(backend.attr, find_spec(backend.module).name)
        (loaded,) = entry_points(group="torch.backends", name="fleetrun")
        print(loaded.load()())
    """)
    assert found == "register fleetrun.distributed.torch_backend\nNone\n"


def test_it_holds_no_path_of_this_checkout(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    folders = [f"{ROOT}/{folder}/".encode() for folder in ("build", ".venv", ".cache")]
    told = [name for name, data in held.items() if any(folder in data for folder in folders)]
    assert told == []


def test_it_holds_the_licences_of_what_is_compiled_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        texts = {name.rpartition("/licenses/")[2]: archive.read(name).decode() for name in archive.namelist()
                 if "/licenses/" in name}
    assert "Wenzel Jakob" in texts["nanobind.LICENSE"]
    assert texts["robin_map.LICENSE"].startswith("MIT License\n\nCopyright (c) 2017 Thibaut")


def test_its_commands_start(bin_folder):
    assert run(bin_folder / "fleetrun", "--version").startswith("fleetrun ")
    for command in ("data", "ps", "predict", "trace"):
        assert "usage" in run(bin_folder / "fleetrun", command, "--help").lower()


def test_its_manual_is_found(bin_folder):
    assert (bin_folder.parent / "share/man/man1/fleetrun.1").exists()
    assert (bin_folder.parent / "share/man/zh_CN/man1/fleetrun.1").exists()


def test_a_job_with_a_server_trains(bin_folder, tmp_path):
    folder = tmp_path / "wide_and_deep"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("data", "log", "model", "__pycache__"))
    run(bin_folder / "python", "prepare_data.py", "--sample", "--files", "4", folder=folder)
    shown = run(bin_folder / "fleetrun", "--server_num=1", "--trainer_num=2", "train.py", "--epochs=1",
                folder=folder)
    assert "test AUC: " in shown


def test_an_unknown_kind_of_package_is_refused():
    done = subprocess.run([PACKAGE, "spaceship"], text=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr == "package: error: unknown kind of package spaceship: wheel, deb, image are known\n"
