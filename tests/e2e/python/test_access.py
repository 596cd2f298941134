"""Servers and trainers that are started by hand: who lets whom in."""

import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT

SCRIPT = """
import sys
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet

paddle.enable_static()
fleet.init(is_collective=False)
x = paddle.static.data(name="x", shape=[None, 4], dtype="float32")
loss = paddle.mean(paddle.nn.Linear(4, 1)(x))
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
try:
    fleet.distributed_optimizer(paddle.optimizer.SGD(learning_rate=0.001), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
    else:
        paddle.static.Executor(paddle.CPUPlace()).run(paddle.static.default_startup_program())
        fleet.init_worker()
        fleet.stop_worker()
except paddle.Error as error:
    print("refused:", error, "|", error.hint)
    sys.exit(7)
print("done")
"""


class Pair:
    """A server and trainers of one job without a launcher."""

    def __init__(self, folder, port):
        self.folder, self.port, self.running = folder, port, []
        (folder / "script.py").write_text(SCRIPT)

    def start(self, role, **variables):
        common = {"PADDLE_PSERVERS_IP_PORT_LIST": f"127.0.0.1:{self.port}", "PADDLE_TRAINERS_NUM": 1,
                  "PADDLE_TRAINER_ID": 0,
                  "POD_IP": "127.0.0.1", "PADDLE_PORT": self.port, "TRAINING_ROLE": role,
                  "XDG_CONFIG_HOME": self.folder / "config"}
        process = subprocess.Popen([sys.executable, "script.py"], cwd=self.folder,
                                   env=environment(**{**common, **variables}),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.running.append(process)
        return process

    def secret(self, name, digit, mode=0o600):
        path = self.folder / name
        path.write_text(("0123456789abcde" + digit) * 4 + "\n")
        path.chmod(mode)
        return {"FLEETRUN_SECRET_FILE": path}

    def close(self):
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def pair(tmp_path, ports):
    pair = Pair(tmp_path, *ports(1))
    yield pair
    pair.close()


def finish(process, expect=0):
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == expect, out + err
    return out, err


def test_without_a_word_the_users_own_secret_is_made_and_used(pair):
    server, trainer = pair.start("PSERVER"), pair.start("TRAINER")
    assert finish(trainer)[0] == finish(server)[0] == "done\n"
    assert (pair.folder / "config/fleetrun/secret").stat().st_mode & 0o777 == 0o600


def test_another_secret_is_refused_on_both_sides_until_the_right_one_comes(pair):
    right, wrong = pair.secret("right", "a"), pair.secret("wrong", "b")
    server = pair.start("PSERVER", **right)
    out, _ = finish(pair.start("TRAINER", **wrong), expect=7)
    assert f"server 0 at 127.0.0.1:{pair.port} has another secret than this host" in out
    assert "FLEETRUN_SECRET_FILE" in out and str(wrong["FLEETRUN_SECRET_FILE"]) in out
    assert finish(pair.start("TRAINER", **right))[0] == "done\n"
    out, err = finish(server)
    assert out == "done\n"
    assert "server 0 refused 127.0.0.1: " in err and "has another secret than this host" in err
    for word in ("0123456789abcdea", "0123456789abcdeb"):
        assert word not in out + err


def test_a_secret_that_others_can_read_is_none(pair):
    out, _ = finish(pair.start("TRAINER", **pair.secret("open", "a", mode=0o644)), expect=7)
    assert str(pair.folder / "open") in out


def test_insecure_is_said_loudly_and_has_to_be_said_on_both_sides(pair):
    server = pair.start("PSERVER", FLEETRUN_INSECURE=1)
    out, _ = finish(pair.start("TRAINER"), expect=7)
    assert "runs with --insecure, and this host without it" in out
    out, err = finish(pair.start("TRAINER", FLEETRUN_INSECURE=1))
    assert out == "done\n" and "INSECURE" in err
    assert "INSECURE" in finish(server)[1]
