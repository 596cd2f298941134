"""An elastic job as a JobSet: a pod is lost, the job goes on, and the pod that comes in its place joins.

What stands in for Kubernetes and JobSet is here: it starts the pods of the manifest that `fleetrun k8s`
prints, and does with those that end what the manifest's policies say.
"""

import subprocess

import pytest

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until
from machines import need_namespaces
from pods import Pods

yaml = pytest.importorskip("yaml")

SIZE = 3
TRAINER = """#!/bin/sh
trap 'exit 0' TERM
touch up.$PADDLE_TRAINERS_NUM.$PADDLE_TRAINER_ID
while [ ! -e go ]; do sleep 0.02; done
"""


class Cluster:
    """One replicated job of a JobSet, as its controllers keep it."""

    def __init__(self, directory, *launch):
        command = [find_fleetrun(), "k8s", "--image=x", "--name=train", "--kind=jobset", *launch]
        printed = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE,
                                 env=clean_environment())
        assert printed.returncode == 0, printed.stderr
        found = {manifest["kind"]: manifest for manifest in yaml.safe_load_all(printed.stdout)}
        self.secret = found["Secret"]["data"]["secret"]
        (replicated,) = found["JobSet"]["spec"]["replicatedJobs"]
        self.job = replicated["template"]["spec"]
        (self.container,) = self.job["template"]["spec"]["containers"]
        names = [f"train-{replicated['name']}-0-{index}" for index in range(self.job["completions"])]
        self.pods = Pods(directory, names, TRAINER)
        self.failures = dict.fromkeys(names, 0)
        self.done = set()

    def start(self, index):
        name = self.pods.names[index]
        self.pods.start_container(name, self.container, index, self.secret)

    def lose(self, index):
        """The node of the pod goes down: the condition DisruptionTarget."""
        pod = self.pods.running[self.pods.names[index]]
        subprocess.run(["kill", "-KILL", str(self.pods.first_process(self.pods.names[index]))], check=True)
        pod.wait(DEADLINE)
        conditions = [rule["action"] for rule in self.job["podFailurePolicy"]["rules"]
                      if {"type": "DisruptionTarget", "status": "True"} in rule.get("onPodConditions", [])]
        assert conditions == ["Ignore"]  # another pod takes the place, and it does not count

    def action_for(self, status):
        for rule in self.job["podFailurePolicy"]["rules"]:
            if status in rule.get("onExitCodes", {}).get("values", []):
                return rule["action"]
        return "Count"

    def settle(self):
        """Until every index has succeeded; pods that may come again do."""
        while len(self.done) < len(self.pods.names):
            for index, name in enumerate(self.pods.names):
                if name in self.done:
                    continue
                status = self.pods.running[name].wait(DEADLINE)
                action = "Complete" if status == 0 else self.action_for(status)
                assert action != "FailJob", (name, status, self.pods.running[name].stdout.read())
                self.failures[name] += action == "Count"
                assert self.failures[name] <= self.job["backoffLimitPerIndex"], name
                if action == "Complete":
                    self.done.add(name)
                else:
                    self.start(index)

    def up(self, size, index):
        """Whether the trainer of this pod runs in a world of `size`."""
        return bool(list(self.pods.path(self.pods.names[index]).glob(f"up.{size}.*")))

    def forget(self):
        for name in self.pods.names:
            for path in self.pods.path(name).glob("up.*"):
                path.unlink()


@pytest.fixture
def cluster(tmp_path):
    need_namespaces()
    here = Cluster(tmp_path, f"--nnodes=2:{SIZE}", "--log_dir=log", "./train")
    yield here
    here.pods.close()


@pytest.mark.parametrize("lost", [2, 0], ids=["a worker", "the pod that coordinates"])
def test_a_pod_is_lost_and_another_takes_its_place(cluster, lost):
    everybody = range(SIZE)
    others = [index for index in everybody if index != lost]
    for index in everybody:
        cluster.start(index)
    wait_until(lambda: all(cluster.up(SIZE, index) for index in everybody), "all pods train")
    cluster.forget()
    cluster.lose(lost)
    wait_until(lambda: all(cluster.up(SIZE - 1, index) for index in others), "the others go on")
    cluster.start(lost)
    wait_until(lambda: all(cluster.up(SIZE, index) for index in everybody), "the pod in its place joins")
    cluster.pods.let_go()
    cluster.settle()
    assert set(cluster.failures.values()) == {0}
