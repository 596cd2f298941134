"""fleetrun.elastic: the world as fleetrun tells it, in scripts that use nothing else of the package."""

import json
import os
import subprocess
import sys

import pytest

from conftest import environment
from flow import LIMIT


def line(epoch, trainers=(0, 1), in_place=True, **more):
    world = {"epoch": epoch, "attempt": 0, "run": "a" * 32, "hash": f"{epoch:016x}", "in_place": in_place,
             "node": "1" * 32,
             "node_rank": 0, "nodes": ["h1", "h2"], "servers": [],
             "trainers": [{"rank": rank, "endpoint": f"10.0.0.1:{6170 + rank}", "node": "h1", "id": "1" * 32}
                          for rank in trainers]}
    return (json.dumps({**world, **more}) + "\n").encode()


class Told:
    """A script that has a pipe as fleetrun makes them, and that is told worlds; it answers in lines."""

    def __init__(self, tmp_path, code, first=b"", flags=os.O_NONBLOCK, **variables):
        read, self._write = os.pipe2(flags | os.O_CLOEXEC)
        os.set_blocking(self._write, True)
        self.say(first)
        script = tmp_path / "script.py"
        script.write_text(code, encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], env=environment(FLEETRUN_WORLD_FD=read, **variables),
            pass_fds=[read],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        os.close(read)

    def say(self, data):
        if data:
            os.write(self._write, data)

    def end(self):
        if self._write is not None:
            os.close(self._write)
            self._write = None

    def ask(self, text=""):
        """Sends a line; the line that the script answers with."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def finish(self):
        out, err = self.process.communicate(timeout=LIMIT)
        assert self.process.returncode == 0, err
        return out, err


@pytest.fixture
def told(tmp_path):
    made = []

    def tell(*arguments, **named):
        made.append(Told(tmp_path, *arguments, **named))
        return made[-1]

    yield tell
    for one in made:
        one.end()
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_without_fleetrun_there_is_no_world_and_importing_it_loads_next_to_nothing(run):
    said = run("""
import sys
before = set(sys.modules)
from fleetrun import elastic
new = sorted(set(sys.modules) - before)
print(elastic.world(), elastic.epoch(), elastic.check())
elastic.on_world_change(print)
elastic.on_world_change(print, thread=True)
print(elastic.check(), new)
""").stdout.splitlines()
    assert said[0] == "None 0 False"
    assert said[1].startswith("False ")
    for heavy in ("numpy", "json", "threading", "fleetrun._native", "asyncio"):
        assert f"'{heavy}'" not in said[1]


@pytest.mark.parametrize("descriptor", ["", "-1", "x", "1", "99999999999999999999", "700"])
def test_a_variable_without_its_pipe_means_no_world(run, descriptor):
    said = run("from fleetrun import elastic; print(elastic.world(), elastic.epoch())",
               FLEETRUN_WORLD_FD=descriptor, FLEETRUN_EPOCH="3").stdout
    assert said == "None 3\n"


def test_a_pipe_that_blocks_is_not_fleetruns_and_is_not_read(told):
    script = told("from fleetrun import elastic; print(elastic.world())", line(1), flags=0)
    assert script.finish()[0] == "None\n"


def test_the_newest_world_counts_whatever_lies_before_it(told):
    script = told("""
from fleetrun import elastic
while input() != "end":
    world = elastic.world()
    print(world, elastic.epoch(), world and [world.position(rank) for rank in (0, 2, 1)])
""", line(1), FLEETRUN_EPOCH="1")
    assert script.ask().endswith("nodes=['h1', 'h2'], trainers=[0, 1]) 1 [(0, 2), (None, 2), (1, 2)]")
    script.say(line(2) + b"\n\nnot a world\n" + line(4, trainers=[0, 2]) + b'{"epoch":')
    assert script.ask().endswith("trainers=[0, 2]) 4 [(0, 2), (1, 2), (None, 2)]")
    script.say(b'5}\n{"epoch":6}\n[1]\n' + line(7)[:40])
    assert " 4 [" in script.ask()
    script.say(line(7)[40:])
    assert " 7 [" in script.ask()
    script.end()  # fleetrun is gone
    assert " 7 [" in script.ask()
    script.process.communicate("end\n", timeout=LIMIT)
    assert script.process.returncode == 0


def test_a_callback_is_called_where_the_script_checks_once_for_all_changes(told):
    script = told("""
from fleetrun import elastic
seen = []
@elastic.on_world_change
def changed(world):
    seen.append(world.epoch)
while True:
    word = input()
    if word == "end":
        break
    if word == "remove":
        elastic.remove_callback(changed)
    print(elastic.check() if word == "check" else None, seen)
""", line(1))
    assert script.ask("check") == "False []"
    script.say(line(2) + line(3))
    assert script.ask("") == "None []"
    assert script.ask("check") == "True [3]"
    script.say(line(3))
    assert script.ask("check") == "False [3]"
    script.ask("remove")
    script.say(line(4))
    assert script.ask("check") == "False [3]"


def test_a_callback_with_a_thread_is_called_at_once_and_may_fail(told):
    script = told("""
from fleetrun import elastic
def changed(world):
    print(world.epoch, flush=True)
    raise ValueError("a mistake of the callback")
elastic.on_world_change(changed, thread=True)
print("ready", flush=True)
input()
print(elastic.world().epoch)
""", line(1))
    assert script.process.stdout.readline() == "ready\n"
    for epoch in (2, 3, 4):
        script.say(line(epoch))
        assert script.process.stdout.readline() == f"{epoch}\n"
    script.process.stdin.write("\n")
    out, err = script.finish()
    assert out == "4\n"
    # Of the last one the script's end may leave something out.
    assert err.count("ValueError: a mistake of the callback") >= 2


def test_what_a_script_starts_or_forks_does_not_take_its_lines(told):
    script = told("""
import os, sys
from fleetrun import elastic
elastic.world()
os.system(f'{sys.executable} -c "from fleetrun import elastic; print(elastic.world())"')
input()
child = os.fork()
if child == 0:
    print("child", elastic.epoch(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print("parent", elastic.epoch())
""", line(1))
    assert script.process.stdout.readline() == "None\n"
    script.say(line(2))
    script.process.stdin.write("\n")
    assert script.finish()[0] == "child 1\nparent 2\n"
