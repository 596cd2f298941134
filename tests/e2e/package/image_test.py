"""The image that scripts/package makes: what stands in it, and jobs in a container that needs no privilege.

The jobs run where `scripts/package image` was called before and bubblewrap is installed.
"""
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleetrun_job import DEADLINE
from terminals import fork

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/wide_and_deep"
sys.path.insert(0, str(ROOT / "scripts"))

import image_package  # noqa: E402


def blob(layout, described):
    data = (layout / "blobs/sha256" / described["digest"].removeprefix("sha256:")).read_bytes()
    assert described["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert described["size"] == len(data)
    return data


def open_image(packed, layout):
    """Name, configuration and layer of an image."""
    shutil.unpack_archive(packed, layout)
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(layout, described))
    (layer,) = manifest["layers"]
    return (described["annotations"]["org.opencontainers.image.ref.name"],
            json.loads(blob(layout, manifest["config"])), blob(layout, layer))


def pack(folder, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    folder.mkdir()
    image_package.pack_image(b"a system", folder, folder / "image.tar")
    return folder / "image.tar"


def test_it_is_an_oci_layout_whose_user_is_not_root(tmp_path, monkeypatch):
    name, config, layer = open_image(pack(tmp_path / "made", monkeypatch), tmp_path / "layout")
    assert name == image_package.NAME
    assert config["config"]["User"] == "1000:1000"
    assert config["config"]["Entrypoint"] == ["fleetrun-init", "--"]
    assert config["created"] == "2023-11-14T22:13:20+00:00"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'a system').hexdigest()}"]
    assert image_package.gzip.decompress(layer) == b"a system"


def test_the_same_system_gives_the_same_bytes(tmp_path, monkeypatch):
    first, second = (pack(tmp_path / name, monkeypatch) for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_tools_for_images_read_it(tmp_path, monkeypatch):
    if not shutil.which("skopeo"):
        pytest.skip("skopeo is not installed")
    packed = pack(tmp_path / "made", monkeypatch)
    told = subprocess.run(["skopeo", "inspect", "--config", f"oci-archive:{packed}:{image_package.NAME}"],
                          capture_output=True, text=True, timeout=DEADLINE)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["config"]["WorkingDir"] == "/work"


class Container:
    """Runs commands in the image as its configuration says, in namespaces of whoever runs the test."""

    def __init__(self, folder, config):
        self.system, self.config = folder / "system", config
        self.work = folder / "work"
        shutil.copytree(EXAMPLE, self.work,
                        ignore=shutil.ignore_patterns("data", "log", "model", "__pycache__"))

    def words(self, *command, flags=()):
        user, group = self.config["User"].split(":")
        variables = [word for entry in self.config["Env"] for word in ("--setenv", *entry.split("=", 1))]
        return ["bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--uid", user, "--gid", group,
                "--bind", str(self.system), "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
                "--bind", str(self.work), self.config["WorkingDir"], "--chdir", self.config["WorkingDir"],
                "--clearenv", *variables, *flags, "--", *self.config["Entrypoint"], *command]

    def run(self, *command):
        done = subprocess.run(self.words(*command), capture_output=True, text=True, timeout=2 * DEADLINE)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    packed = ROOT / f"dist/fleetrun-{image_package.VERSION}-image.tar"
    if not packed.exists():
        pytest.skip(f"scripts/package image was not called: there is no {packed.name} in dist")
    if not shutil.which("bwrap"):
        pytest.skip("bwrap is not installed (Debian's package bubblewrap)")
    tried = subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"], capture_output=True,
                           text=True)
    if tried.returncode != 0:
        pytest.skip(f"no namespaces here: {tried.stderr.strip()}")
    folder = tmp_path_factory.mktemp("image")
    _, config, layer = open_image(packed, folder / "layout")
    made = Container(folder, config["config"])
    made.system.mkdir()
    subprocess.run(["tar", "-xz", "--no-same-owner", "-C", made.system], input=layer, check=True)
    made.run("python3", "prepare_data.py", "--sample", "--files", "4")
    yield made
    shutil.rmtree(folder)


LAUNCH = ("fleetrun", "--server_num=1", "--trainer_num=2", "train.py")


def test_process_1_is_an_init_and_nobody_is_root(container):
    told = container.run("sh", "-c", "cat /proc/1/comm; id -u; id -un")
    assert told.split() == ["fleetrun-init", "1000", "fleetrun"]


def test_it_holds_nothing_of_the_machine_that_made_it(container):
    made_here = [name for name in ("hostname", "resolv.conf", "machine-id")
                 if (container.system / "etc" / name).exists()]
    assert made_here == []


def test_without_a_command_it_shows_the_help(container):
    assert container.run(*container.config["Cmd"]).startswith("usage: fleetrun ")


def test_a_job_with_a_server_trains(container):
    assert "test AUC: " in container.run(*LAUNCH, "--epochs=1")


def first_process(told):
    """The pid of the container's process 1 among ours, as bubblewrap tells it."""
    with open(told) as answer:
        return json.loads(answer.read())["child-pid"]


def test_sigterm_of_the_container_ends_the_job(container):
    told, tells = os.pipe()
    with subprocess.Popen(container.words(*LAUNCH, "--epochs=1000", flags=["--info-fd", str(tells)]),
                          pass_fds=[tells], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as job:
        os.close(tells)
        pid = first_process(told)
        next(line for line in job.stdout if line.startswith("epoch 1 of"))
        os.kill(pid, signal.SIGTERM)
        out, _ = job.communicate(timeout=DEADLINE)
    assert (job.returncode, "fleetrun got SIGTERM" in out) == (143, True), out


def test_ctrl_c_ends_the_job(container):
    pid, terminal = fork()
    if pid == 0:
        words = container.words(*LAUNCH, "--epochs=1000")
        os.execvp(words[0], words)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while data := os.read(terminal, 1 << 16):
            if b"epoch 1 of" in data and b"epoch 1 of" not in shown:
                os.write(terminal, b"\x03")
            shown += data
    _, status = os.waitpid(pid, 0)
    assert (os.waitstatus_to_exitcode(status), b"fleetrun got SIGINT" in shown) == (130, True), shown.decode()
