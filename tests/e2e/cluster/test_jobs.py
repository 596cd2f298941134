"""Real training on several hosts: the examples of this repository over a list of hosts,
and PyTorch on Gloo."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from cluster_job import has_package, python_path, training_environment
from fleetrun_job import ROOT

TRAIN_FLIGHTS, TEST_FLIGHTS = 6106, 2068
LONG = 120


@pytest.fixture
def flights(rig, tmp_path):
    """The wide & deep example with its sample, on every host's own disk."""
    if not has_package():
        pytest.skip("the Python package is not installed")
    source = tmp_path / "flights"
    shutil.copytree(ROOT / "examples" / "wide_and_deep", source,
                    ignore=shutil.ignore_patterns("data", "log", "model", "__pycache__"))
    subprocess.run([sys.executable, "-B", "prepare_data.py", "--sample", "--files", "4"], cwd=source,
                   check=True, capture_output=True)
    for host in rig.hosts:
        shutil.copytree(source, host.files / "flights")
    rig.share_secret()
    return rig.place / "flights"


def check_training(text, epochs):
    """Every flight was seen once an epoch, the loss fell, and something was learned."""
    lines = re.findall(r"epoch (\d) of \d: (\d+) examples, \d+ examples/s, loss (0\.\d+), AUC (0\.\d{4})$",
                       text, re.MULTILINE)
    assert [int(line[0]) for line in lines] == list(range(1, epochs + 1)), text
    assert all(int(line[1]) == TRAIN_FLIGHTS for line in lines), text
    assert epochs == 1 or float(lines[-1][2]) < float(lines[0][2])
    auc = re.search(r"test AUC: (0\.\d{4}) on (\d+) flights", text)
    assert auc and float(auc[1]) > 0.55 and int(auc[2]) == TEST_FLIGHTS, text


def export():
    return (
        [f"--export=OMP_NUM_THREADS,PYTHONDONTWRITEBYTECODE{''.join(',' + name for name in python_path())}"])


def test_wide_and_deep_over_a_list_of_hosts(rig, flights):
    h1, *_ = rig.hosts
    job = h1.fleetrun("--hosts=h1,h2,h3", "--python", sys.executable, *export(), "--server_num=1",
                      "--trainer_num=1", "train.py", "--epochs", 2, "--batch-size", 100,
                      environment=training_environment(h1), directory=flights, seconds=LONG)
    assert job.status == 0, job.out + job.err
    check_training(job.out, epochs=2)
    for host in rig.hosts[:3]:
        assert list((host.files / "flights" / "log").glob("**/workerlog.*")), host.name


def logs_of(rig, folder):
    """{host: names of its logs}"""
    return {host.name: sorted(path.name for path in (host.files / folder / "log").rglob("*log.?")
                              if "/0/" not in str(path))
            for host in rig.hosts[:3]}


def test_servers_on_one_host_and_trainers_on_others(rig, flights):
    h1, *_ = rig.hosts
    job = h1.fleetrun("--hosts=h1:servers=2,h2:trainers=1,h3:trainers=1", "--run_mode=ps", "--python",
                      sys.executable, *export(),
                      "train.py", "--epochs", 2, "--batch-size", 100, environment=training_environment(h1),
                      directory=flights, seconds=LONG)
    assert job.status == 0, job.out + job.err
    assert logs_of(rig, "flights") == {"h1": ["serverlog.0", "serverlog.1"], "h2": ["workerlog.0"],
                                       "h3": ["workerlog.0"]}
    check_training(job.out, epochs=2)


SHARED_FILES = """
import json, os, sys
import fleetrun.distributed.fleet as fleet
from fleetrun import ps

fleet.init(is_collective=False)
tables = [ps.SparseTable("count", 1, rule="sum")]
if ps.is_server():
    ps.Server(tables).wait()
    sys.exit(0)
with ps.Client(tables) as client:
    client.barrier()  # all are here before the first file goes
    taken = []
    for file in fleet.util.get_dynamic_files([f"part-{i}" for i in range(40)], directory="."):
        taken.append(file)
        if len(taken) == 1:
            client.barrier()
with open(f"taken-{fleet.worker_index()}", "w") as file:
    json.dump(taken, file)
"""


def test_trainers_of_several_hosts_share_files(rig):
    if not has_package():
        pytest.skip("the Python package is not installed")
    rig.share_secret()
    folder = rig.shared / "files"
    folder.mkdir()
    (folder / "share.py").write_text(SHARED_FILES)
    jobs = [host.start(f"--master={rig.hosts[0].address}:6768", "--nnodes=2", "--server_num=1",
                       "--trainer_num=1", "--python", sys.executable, f"--log_dir=log-{host.name}",
                       "share.py",
                       directory=folder, environment=training_environment(host)) for host in rig.hosts[:2]]
    for job in jobs:
        assert job.finish(LONG).status == 0, job.out + job.err
    taken = [json.loads((folder / f"taken-{rank}").read_text()) for rank in range(2)]
    assert all(taken)
    assert sorted(taken[0] + taken[1]) == sorted(f"part-{i}" for i in range(40))


def torch_python():
    """An interpreter that has PyTorch; None where there is none."""
    folder = pathlib.Path(os.environ.get("FLEETRUN_PEERS_TORCH", ROOT / ".cache" / "peers-torch"))
    for python in (folder / "bin" / "python", pathlib.Path(sys.executable)):
        if (python.exists() and not subprocess.run([python, "-c", "import torch"],
                                                   capture_output=True).returncode):
            return python
    return None


def test_pytorch_on_gloo_between_hosts(rig, team):
    python = torch_python()
    if python is None:
        pytest.skip("there is no PyTorch (scripts/bench setup-peers torch)")
    script = ROOT / "tests" / "bench" / "frameworks" / "torch_ddp.py"
    jobs = [host.start("--master=10.77.0.1:6768", "--nnodes=3", "--nproc_per_node=1", "--python", python,
                       script,
                       environment=host.environment(OMP_NUM_THREADS="1")) for host in rig.hosts[:3]]
    for job in jobs:
        assert job.finish(LONG).status == 0, job.out + job.err
    said = "".join(path.read_text() for host in rig.hosts[:3]
                   for path in (host.files / "log").glob("workerlog.*"))
    losses = re.findall(r"rank (\d) of 3: loss (\d\.\d+) -> (\d\.\d+)", said)
    assert sorted(rank for rank, *_ in losses) == ["0", "1", "2"] and len({end for *_, end in losses}) == 1
    assert float(losses[0][2]) < float(losses[0][1])
