"""examples/data_parallel_resnet, local_sgd and mixed_precision: two processes each, on real digits."""
import importlib.util
import re

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None,
                                reason="no scikit-learn, whose digits these train on")


def logs(folder, run):
    """The two workers' logs, of a job that ended well."""
    assert run.returncode == 0, run.stdout + run.stderr
    return [(folder / "log" / f"workerlog.{rank}").read_text() for rank in (0, 1)]


def accuracy(text):
    return float(re.search(r"test accuracy: (\d\.\d+)", text)[1])


def digests(texts):
    return {re.search(r"parameters (\w{16})", text)[1] for text in texts}


def test_data_parallel_resnet(example, torch_fleetrun):
    folder = example("data_parallel_resnet")
    texts = logs(folder, torch_fleetrun(folder, "--nproc_per_node=2", "train.py", "--epochs=3"))
    for text in texts:
        lines = re.findall(
            r"^\[Epoch (\d), batch (\d+)\] loss: (\d+\.\d{5}), acc1: \d\.\d{5}, acc5: \d\.\d{5}$", text, re.M)
        assert [(int(epoch), int(batch)) for epoch, batch, _ in lines] == [(e, b) for e in range(3)
                                                                           for b in range(0, 22, 5)]
        assert float(lines[0][2]) > 1.5 and float(lines[-1][2]) < 0.5
    assert len(digests(texts)) == 1
    assert accuracy(texts[0]) > 0.9 and "test accuracy" not in texts[1]


@pytest.mark.parametrize("arguments", [[], ["--steps=1"], ["--adaptive"]])
def test_local_sgd(example, torch_fleetrun, arguments):
    folder = example("local_sgd")
    texts = logs(folder, torch_fleetrun(folder, "--nproc_per_node=2", "train.py", *arguments))
    for rank, text in enumerate(texts):
        costs = [float(cost) for cost in re.findall(rf"worker_index: {rank}, step\d+ cost = (\d+\.\d+)",
                                                    text)]
        assert len(costs) == 9 and costs[0] > 1.5 and costs[-1] < 0.5
        assert accuracy(text) > 0.9
    assert len(digests(texts)) == 1


def test_mixed_precision(example, torch_fleetrun):
    folder = example("mixed_precision")
    texts = logs(folder, torch_fleetrun(folder, "--nproc_per_node=2", "train.py"))
    for text in texts:
        factors = [float(factor) for factor in re.findall(r"loss scaling (\d+\.\d)", text)]
        assert factors[0] == 32768.0 and factors[-1] == 8 * 32768.0
        assert accuracy(text) > 0.9
    assert len(digests(texts)) == 1


def test_static_loss_scaling(example, torch_fleetrun):
    folder = example("mixed_precision")
    texts = logs(folder, torch_fleetrun(folder, "--nproc_per_node=2", "train.py", "--static"))
    assert set(re.findall(r"loss scaling (\d+\.\d)", texts[0])) == {"128.0"}
    assert accuracy(texts[1]) > 0.9
