"""`fleetrun check --build`: a script is executed up to its first batch, and does nothing to the outside."""

import json
import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT

HEAD = """import os, sys
import paddle
paddle.enable_static()
width = len(os.listdir(os.path.dirname(os.path.abspath(__file__)))) + 4
x = paddle.static.data("x", [None, 4])
exe = paddle.static.Executor()
"""

# name: (script, its findings as (line, part of the text)).
CASES = {
    "shapes": (HEAD + "y = paddle.matmul(x, paddle.create_parameter([width, 2], 'float32'))\n",
               [(7, "matmul: the inner dimensions differ")]),
    "names": (HEAD + "getattr(paddle, 'nonsense'[: width + 9])(x)\n",
              [(7, "fleetrun has no paddle.nonsense")]),
    "own_error": (HEAD + "raise ValueError(sys.argv[1:])\n", [(7, "ValueError: ['--size', '3']")]),
    "ends": (HEAD + "sys.exit(width)\n", [(7, "the script ends with 5")]),
    "batch": (HEAD + """
exe.run(paddle.static.default_startup_program())
loss = paddle.mean(paddle.static.nn.fc(x, 1))
paddle.optimizer.SGD(0.1).minimize(loss)
exe.run(feed={"x": [[1.0] * 4]}, fetch_list=[loss])
open("made", "w").close()
getattr(paddle, "nonsense"[: width + 9])
""", []),
    "loader": (HEAD + """
loader = paddle.io.DataLoader.from_generator(feed_list=[x], capacity=2)
loader.set_sample_generator(lambda: open("made", "w"), batch_size=2)
for batch in loader():
    open("made", "w").close()
""", []),
    "process": (HEAD + """
import subprocess
try:
    subprocess.run(["touch", "made"])
except Exception:
    open("made", "w").close()
""", []),
    "port": (HEAD + """
import socket
socket.create_server(("127.0.0.1", 0))
open("made", "w").close()
""", []),
    "trainer": (HEAD + """
import paddle.distributed.fleet as fleet
fleet.init()
optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), fleet.DistributedStrategy())
optimizer.minimize(paddle.mean(paddle.static.nn.fc(x, 1)))
exe.run(paddle.static.default_startup_program())
fleet.init_worker()
exe.train_from_dataset(paddle.static.default_main_program(), paddle.distributed.QueueDataset())
open("made", "w").close()
""", []),
}


def build(folder, *words):
    return subprocess.run([sys.executable, "-m", "fleetrun._check", "--build", *words], cwd=folder,
                          env=environment(), text=True, capture_output=True, timeout=LIMIT,
                          stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", CASES)
def test_build_of(tmp_path, name):
    text, wanted = CASES[name]
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    done = build(tmp_path, "--json", "script.py", "--size", "3")
    findings = json.loads(done.stdout)["scripts"][0]["findings"]
    assert [(each["line"], part in each["text"]) for each, (_, part) in zip(findings, wanted)] == [
        (line, True) for line, _ in wanted], findings
    assert (len(findings), done.returncode) == (len(wanted), bool(wanted)), findings
    assert not (tmp_path / "made").exists()


def test_a_build_is_of_one_script(tmp_path):
    (tmp_path / "script.py").write_text("", encoding="utf-8")
    done = build(tmp_path, "script.py", "script.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fleetrun: error: check: --build executes one script\n")
