"""fleetrun.paddle's Embedding does what Paddle's does. PADDLE3_PYTHON is an interpreter with PaddlePaddle
3 of the Python that the package was built for; without it only what needs no Paddle is asked."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT
from torch_python import clean_environment, package_links

PADDLE = os.environ.get("PADDLE3_PYTHON")
CASES = pathlib.Path(__file__).with_name("paddle_embedding_cases.py")
needs_paddle = pytest.mark.skipif(PADDLE is None, reason="PADDLE3_PYTHON names no Python with PaddlePaddle 3")
JOB = """
import paddle, sys
from fleetrun.paddle import Embedding, client, use_mode
use_mode("sync")
paddle.seed(3)
rows = Embedding(100, 4, weight_attr=paddle.ParamAttr(initializer=paddle.nn.initializer.Uniform()))
optimizer = paddle.optimizer.SGD(0.5, parameters=rows.parameters())
first = rows.state_dict()["weight"].numpy().copy()
for step in range(10):
    (rows(paddle.to_tensor([step, 7])) ** 2).sum().backward()
    optimizer.step()
    optimizer.clear_grad()
client().barrier()
right = first.copy()
for step in range(10):
    for id in (step, 7):
        right[id] -= right[id]
print("apart", abs(rows.state_dict()["weight"].numpy() - right).max(), "rows", client().rows(rows.table))
"""


def test_without_paddle_the_embedding_says_what_to_install(tmp_path):
    done = subprocess.run([sys.executable, "-c", "import fleetrun.paddle"], capture_output=True, text=True,
                          env=environment(), timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 1 and "python -m pip install paddlepaddle" in done.stderr, done.stderr


@needs_paddle
@pytest.mark.parametrize("mode", ["async", "sync", "half_async", "geo"])
def test_layers_are_paddles(tmp_path, mode):
    done = subprocess.run([PADDLE, CASES, mode], capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT,
                          env=clean_environment(**package_links(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok ") == len(done.stdout.splitlines()) == 11, done.stdout


@needs_paddle
def test_a_job_of_servers_and_trainers_runs_one_script_on_all(tmp_path):
    (tmp_path / "train.py").write_text(JOB)
    more = package_links(tmp_path)
    done = subprocess.run([sys.executable, "-m", "fleetrun", "--server_num=2", "--trainer_num=2",
                           "--log_dir=log", f"--python={PADDLE}", "train.py"],
                          capture_output=True, text=True, timeout=LIMIT,
                          env=environment(**more, FLEETRUN_RUN_DIR=str(tmp_path / "run")), cwd=tmp_path)
    logs = [path.read_text() for path in sorted((tmp_path / "log").glob("workerlog.*"))]
    assert done.returncode == 0, done.stderr + "".join(logs)
    assert all("apart 0.0 rows 10" in log for log in logs), logs
