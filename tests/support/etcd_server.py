"""A real etcd for tests, on a port and in a directory of its own:
with Etcd(directory) as etcd: ... etcd.master"""

import base64
import json
import os
import shutil
import socket
import subprocess
import urllib.request

from fleetrun_job import DEADLINE, wait_until


def why_not():
    """What this machine lacks for an etcd; None when there is one."""
    return None if shutil.which("etcd") else "etcd needs the package etcd-server"


def text64(text):
    return base64.b64encode(text.encode()).decode()


class Etcd:
    def __init__(self, directory):
        self.directory = directory
        # Bound and not listening: nobody else gets these ports, and etcd,
        # which sets SO_REUSEADDR as well, does.
        self.leases = [socket.socket() for _ in range(2)]
        for lease in self.leases:
            lease.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            lease.bind(("127.0.0.1", 0))
        client, peer = (f"127.0.0.1:{lease.getsockname()[1]}" for lease in self.leases)
        self.endpoint, self.peer = client, f"http://{peer}"
        self.server = None

    @property
    def master(self):
        return f"etcd://{self.endpoint}"

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()
        for lease in self.leases:
            lease.close()

    def start(self):
        client = f"http://{self.endpoint}"
        with open(self.directory / "etcd.log", "ab") as log:
            self.server = subprocess.Popen(
                ["etcd", "--data-dir", self.directory / "data", "--listen-client-urls", client,
                 "--advertise-client-urls", client,
                 "--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer,
                 "--initial-cluster", f"default={self.peer}"],
                stdout=log, stderr=log, env={"PATH": os.environ["PATH"]})
        wait_until(self.answers, "an answer of etcd")

    def answers(self):
        try:
            return self.ask("kv/range", {"key": text64("x")})
        except OSError:
            return None

    def kill(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait(DEADLINE)
            self.server = None

    def ask(self, path, question):
        request = urllib.request.Request(f"http://{self.endpoint}/v3/{path}", json.dumps(question).encode())
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return json.load(answer)

    def keys(self):
        """{key: value} of all that is there."""
        found = self.ask("kv/range", {"key": text64("\0"), "range_end": text64("\0")}).get("kvs", [])
        return {base64.b64decode(entry["key"]).decode(): base64.b64decode(entry.get("value", ""))
                for entry in found}

    def switch_logins_on(self, password):
        for path, question in [
                ("auth/user/add", {"name": "root", "password": password}),
                ("auth/role/add", {"name": "root"}),
                ("auth/user/grant", {"user": "root", "role": "root"}), ("auth/enable", {})]:
            self.ask(path, question)
