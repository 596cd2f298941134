"""What fleetrun does in pods of Kubernetes (tests/support/pods.py)."""

import re
import signal
import subprocess

import pytest

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until
from machines import need_namespaces
from pods import Pods

NAMES = ["train-0", "train-1"]
IDENTITY = re.compile(r"rank (\d) of (\d) on ([\w-]+)")
TRAINER = """#!/bin/sh
trap 'touch saved; exit 0' TERM
echo "rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM on $(hostname)"
touch up
while [ ! -e go ]; do sleep 0.02; done
(sleep 0.05 &)
"""


@pytest.fixture
def pods(tmp_path):
    need_namespaces()
    here = Pods(tmp_path, NAMES, TRAINER)
    yield here
    here.close()


def ranks(results):
    return sorted(IDENTITY.findall("".join(said for _, said in results.values())))


BOTH = [("0", "2", "train-0"), ("1", "2", "train-1")]


def start_manifest(pods, *flags):
    """As Kubernetes starts the pods of the Indexed Job that `fleetrun k8s` prints."""
    yaml = pytest.importorskip("yaml")
    printed = subprocess.run([find_fleetrun(), "k8s", "--image=x", "--name=train", "--nodes=2", *flags,
                              "--show=all", "--log_dir=log", "./train"],
                             capture_output=True, text=True, timeout=DEADLINE, env=clean_environment())
    assert printed.returncode == 0, printed.stderr
    found = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(printed.stdout)}
    (container,) = found["Job"]["spec"]["template"]["spec"]["containers"]
    for index, name in enumerate(NAMES):
        pods.start_container(name, container, index, found["Secret"]["data"]["secret"])


def test_the_pods_of_a_manifest_meet_and_their_probes_succeed(pods):
    start_manifest(pods)
    wait_until(lambda: all((pods.path(name) / "up").exists() for name in NAMES), "the trainers")
    # Probes are repeated: a job is found a turn of its launcher's loop after its first process runs.
    wait_until(lambda: [pods.status(name) for name in NAMES] == [0, 0], "the probes")
    pods.let_go()
    results = pods.results()
    assert [status for status, _ in results.values()] == [0, 0], results
    assert ranks(results) == BOTH


def test_a_pod_that_waits_for_the_others_is_not_ready(pods):
    pods.start("train-0", "--nnodes=2", "--rank=0", "--master=train-0.train:6768", "./train")
    assert pods.status("train-0") != 0
    assert pods.running["train-0"].poll() is None


def test_a_pod_that_is_ended_takes_the_job_with_it_in_order(pods):
    start_manifest(pods)
    wait_until(lambda: all((pods.path(name) / "up").exists() for name in NAMES), "the trainers")
    subprocess.run(["kill", "-TERM", str(pods.first_process("train-1"))], check=True)
    results = pods.results()
    assert [status for status, _ in results.values()] == [128 + signal.SIGTERM] * 2, results
    assert all((pods.path(name) / "saved").exists() for name in NAMES)
    assert "stopped by SIGTERM on train-1" in results["train-0"][1]


VOLCANO = {"VC_WORKER_HOSTS": "train-0.train,train-1.train", "VC_WORKER_NUM": "2"}
PYTORCH = {"MASTER_ADDR": "train-0", "MASTER_PORT": "23456", "WORLD_SIZE": "2"}
PADDLE = {"PADDLE_TRAINERS": "10.77.0.2,10.77.0.3", "PADDLE_TRAINERS_NUM": "2", "PADDLE_PORT": "2379",
          "TRAINING_ROLE": "TRAINER",
          "PADDLE_TRAINER_ENDPOINTS": "10.77.0.2:2379,10.77.0.3:2379"}


@pytest.mark.parametrize("common, index, flags, said", [
    (VOLCANO, "VC_TASK_INDEX", [], "a pod of Volcano (VC_TASK_INDEX, HOSTNAME, "),
    (PYTORCH, "RANK", [], "a pod of a PyTorchJob (MASTER_ADDR, "),
    (PADDLE, "PADDLE_TRAINER_ID", [], "a pod of a PaddleJob (PADDLE_TRAINERS, "),
    ({}, "JOB_COMPLETION_INDEX", ["--nnodes=2"], "a pod of an Indexed Job (JOB_COMPLETION_INDEX, "),
], ids=["Volcano", "PyTorchJob", "PaddleJob", "Indexed Job"])
def test_the_environment_of_a_pod_is_understood(pods, common, index, flags, said):
    secret = pods.directory / "secret"
    secret.write_bytes(bytes(range(32)))
    secret.chmod(0o400)
    pods.let_go()
    for number, name in enumerate(NAMES):
        pods.start(name, *flags, f"--secret_file={secret}", "--show=all", "./train",
                   **{**common, index: str(number)})
    results = pods.results()
    assert [status for status, _ in results.values()] == [0, 0], results
    assert ranks(results) == BOTH
    assert all(said in text for _, text in results.values())


def test_torchrun_in_pods_of_kubeflow_trainer_meets_by_their_variables(pods):
    """As its runtime torch-distributed sets them for a TrainJob whose command is torchrun."""
    secret = pods.directory / "secret"
    secret.write_bytes(bytes(range(32)))
    secret.chmod(0o400)
    pods.let_go()
    for number, name in enumerate(NAMES):
        pods.start(name, "torchrun", "--no-python", "./train", JOB_COMPLETION_INDEX=str(number),
                   PET_NNODES="2", PET_NPROC_PER_NODE="1", PET_NODE_RANK=str(number),
                   PET_MASTER_ADDR="train-0.train", PET_MASTER_PORT="29500",
                   FLEETRUN_SECRET_FILE=str(secret))
    results = pods.results()
    assert [status for status, _ in results.values()] == [0, 0], results
    assert ranks(results) == BOTH
