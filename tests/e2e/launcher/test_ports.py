"""Ports of a job: held before its processes start, and, for servers of ours, as long as the job lives."""

import socket
import threading

from fleetrun_job import clean_environment, wait_until

# A program that is known to be ours by its import, with servers that wait to be told when to bind.
OWN = """
import os, signal, socket, sys, time
try:
    import fleetrun
except ImportError:
    pass  # only the import line counts here
role = os.environ["TRAINING_ROLE"]
endpoint = os.environ["PADDLE_PSERVERS_IP_PORT_LIST"]
host, port = endpoint.split(":")
if role == "PSERVER":
    assert os.environ["FLEETRUN_LISTEN"] == endpoint
    with open("endpoint.part", "w") as file:
        file.write(endpoint)
    os.rename("endpoint.part", "endpoint")
    while not os.path.exists("go"):
        time.sleep(0.01)
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((host, int(port)))
    server.listen()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        server.accept()[0].sendall(b"ours")
else:
    assert "FLEETRUN_LISTEN" not in os.environ
    for _ in range(50):
        assert socket.create_connection((host, int(port))).recv(4) == b"ours"
"""


class Squatter:
    """Binds the port of `endpoint` the moment it is free,
    with and without SO_REUSEADDR, and listens there."""

    def __init__(self, endpoint):
        self.endpoint = (endpoint.split(":")[0], int(endpoint.split(":")[1]))
        self.got = self.tries = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.squat)
        self.thread.start()

    def squat(self):
        while not self.stopped.is_set():
            with socket.socket() as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, self.tries % 2)
                try:
                    taken.bind(self.endpoint)
                    taken.listen()
                    self.got += 1
                except OSError:
                    pass
            self.tries += 1

    def stop(self):
        self.stopped.set()
        self.thread.join()


def test_a_squatter_never_gets_the_port_of_a_server_of_ours(work, python):
    work.script("own.py", OWN)
    job = work.start("--python", python, "--server_num=1", "--trainer_num=2", "own.py")
    endpoint = wait_until(lambda: (work.directory / "endpoint").exists()
                          and (work.directory / "endpoint").read_text(), "the server's start")
    squatter = Squatter(endpoint)
    try:
        wait_until(lambda: squatter.tries > 2000, "the squatter's tries")
        (work.directory / "go").touch()
        job.finish()
    finally:
        squatter.stop()
    assert job.status == 0, job.err
    assert squatter.got == 0


def test_another_fleetrun_does_not_get_a_port_that_is_held_for_a_server_of_ours(work, python):
    work.script("own.py", OWN)
    job = work.start("--python", python, "--server_num=1", "--trainer_num=1", "own.py")
    endpoint = wait_until(lambda: (work.directory / "endpoint").exists()
                          and (work.directory / "endpoint").read_text(), "the server's start")
    other = work.run(f"--servers={endpoint}", "--trainer_num=1", "/bin/true")
    assert other.status == 125
    assert f"of server {endpoint} is in use" in other.err
    (work.directory / "go").touch()
    assert job.finish().status == 0, job.err


def test_a_process_of_a_foreign_framework_binds_its_endpoint_as_it_likes(work, python):
    bind = ("import os, socket\ns = socket.socket()\n"
            "h, p = os.environ['PADDLE_CURRENT_ENDPOINT'].split(':')\ns.bind((h, int(p)))\ns.listen()\n")
    work.script("plain.py", bind)
    job = work.run("--python", python, "--nproc_per_node=4", "plain.py", environment=clean_environment())
    assert job.status == 0, job.err
