"""Jobs whose ranks exchange tensors: scripts as trainers of a real fleetrun,
on numpy arrays and on torch modules.

Without torch (tests/support/torch_python.py) the tests that need it are skipped.
"""

import pathlib
import subprocess
import sys

import pytest

from torch_python import clean_environment, find_torch_python

FLEETRUN = pathlib.Path(sys.executable).parent / "fleetrun"
DEADLINE = 120


@pytest.fixture(scope="session")
def torch_python(tmp_path_factory):
    """(interpreter, environment) that have torch and the package."""
    found = find_torch_python(tmp_path_factory.mktemp("packages"))
    return found or pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")


class Job:
    """A finished job: what its ranks printed."""

    def __init__(self, done, folder, ranks):
        self.status = done.returncode
        self.output = done.stdout + done.stderr
        self.logs = [(folder / "log" / f"workerlog.{rank}").read_text()
                     if (folder / "log" / f"workerlog.{rank}").exists() else ""
                     for rank in range(ranks)]

    def succeeded(self):
        """Fails with everything that was printed, unless every rank printed "done"."""
        told = self.output + "".join(f"\n---- rank {rank}\n{log}" for rank, log in enumerate(self.logs))
        assert self.status == 0, told
        assert all("done" in log for log in self.logs), told
        return self


@pytest.fixture
def job(tmp_path):
    """job(CODE, RANKS, python=…, environment): a job of as many ranks, run to its end."""

    def run(code, ranks, python=sys.executable, **environment):
        script = tmp_path / "train.py"
        script.write_text(code, encoding="utf-8")
        done = subprocess.run([FLEETRUN, f"--nproc_per_node={ranks}", f"--python={python}", script],
                              cwd=tmp_path,
                              env=clean_environment(**environment), text=True, capture_output=True,
                              timeout=DEADLINE,
                              stdin=subprocess.DEVNULL)
        return Job(done, tmp_path, ranks)

    return run


@pytest.fixture
def torch_job(job, torch_python):
    """job() in an interpreter with torch."""
    python, more = torch_python
    return lambda code, ranks, **environment: job(code, ranks, python=python, **more, **environment)


# What scripts of test_data_parallel, test_local_sgd and test_amp begin with.
COMMON = """
import contextlib
import torch
import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet

strategy = fleet.DistributedStrategy()
{strategy}
fleet.init(is_collective=True, strategy=strategy)
rank, size = fleet.worker_index(), fleet.worker_num()
examples = torch.Generator().manual_seed(3)
cross_entropy = torch.nn.CrossEntropyLoss()

def mlp(seed, extra=()):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(20, 64), *extra, torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                               torch.nn.Linear(64, 5))

def sgd(model, **more):
    return torch.optim.SGD(model.parameters(), **{{"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4, **more}})

def batch(each=8):
    # What all ranks take together, and this rank's part of it.
    x, y = torch.randn(each * size, 20, generator=examples), torch.randint(5, (each * size,), generator=examples)
    mine = slice(rank * each, (rank + 1) * each)
    return (x, y), (x[mine], y[mine])

def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()

def difference(one, other):
    return max((a - b).abs().max().item() for a, b in zip(one.parameters(), other.parameters()))

def check_alike(model):
    states = []
    dist.all_gather_object(states, {{name: value.numpy().tobytes() for name, value in model.state_dict().items()}})
    assert all(state == states[0] for state in states), "ranks differ"
"""


@pytest.fixture
def train(torch_job):
    """train(CODE, RANKS, STRATEGY): a job of it after the common part, which must end well."""
    return lambda code, ranks=2, strategy="", **environment: torch_job(
        COMMON.format(strategy=strategy) + code + '\nprint("done")\n', ranks, **environment)
