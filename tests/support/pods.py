"""Pods of Kubernetes, as far as fleetrun sees them: a host name, an address, a process 1, and an environment.

Each pod is a machine of tests/support/machines.py with a process namespace of its own, in which the command
of the manifest runs as process 1.
"""

import base64
import subprocess

from fleetrun_job import DEADLINE, clean_environment, find_fleetrun, wait_until
from machines import make_machines


class Pods:
    """Pods called `names`, which find each other as NAME.train, and the trainer that lies in each."""

    def __init__(self, directory, names, trainer):
        self.directory, self.names = directory, names
        known = {name: [f"{name}.train"] for name in names}
        self.machines = make_machines(directory / "hosts", ["switch", *names], known)
        self.running = {}
        for name in names:
            self.path(name).mkdir()
            script = self.path(name) / "train"
            script.write_text(trainer)
            script.chmod(0o755)

    def path(self, name):
        return self.directory / name

    def environment(self, name, **more):
        return clean_environment(HOME=str(self.path(name)), FLEETRUN_RUN_DIR=str(self.path(name) / "run"),
                                 HOSTNAME=name,
                                 KUBERNETES_SERVICE_HOST="10.96.0.1", POD_IP=self.machines[name].address,
                                 **more)

    def start(self, name, *arguments, **environment):
        words = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", find_fleetrun(), *arguments]
        self.running[name] = subprocess.Popen(
            self.machines[name].command(*words, cwd=self.path(name)),
            env=self.environment(name, **environment),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def first_process(self, name):
        """The id, seen from here, of process 1 of the pod."""
        def found():
            with open(f"/proc/{self.running[name].pid}/task/{self.running[name].pid}/children") as file:
                return file.read().split()
        return int(wait_until(found, f"process 1 of {name}")[0])

    def status(self, name):
        """What the probes ask."""
        words = ["nsenter", "-t", str(self.first_process(name)), "-a", find_fleetrun(), "status"]
        return subprocess.run(words, env=self.environment(name), capture_output=True,
                              timeout=DEADLINE).returncode

    def let_go(self):
        for name in self.names:
            (self.path(name) / "go").touch()

    def results(self):
        """{pod: (exit status, what it said)}, when all have ended."""
        return {name: (pod.wait(DEADLINE), pod.stdout.read()) for name, pod in self.running.items()}

    def close(self):
        for machine in self.machines.values():
            machine.close()
        for pod in self.running.values():
            pod.wait(DEADLINE)
            pod.stdout.close()

    def mount_secret(self, name, secret):
        """The words of the manifest name /etc/fleetrun; returns where that is in this pod."""
        mounted = self.path(name) / "etc"
        mounted.mkdir(exist_ok=True)
        path = mounted / "secret"
        if not path.exists():
            path.write_bytes(base64.b64decode(secret))
            path.chmod(0o400)
        return mounted

    def start_container(self, name, container, index, secret):
        """As Kubernetes starts pod `index`: with the arguments of the manifest, $(NAME) replaced."""
        mounted = str(self.mount_secret(name, secret))
        words = [word.replace("$(JOB_COMPLETION_INDEX)", str(index)).replace("$$", "$")
                 .replace("/etc/fleetrun", mounted) for word in container["args"]]
        self.start(name, *words, JOB_COMPLETION_INDEX=str(index))
