"""What the cases of data parallel training are written with (ddp_cases.py)."""
import contextlib

import torch
import torch.distributed as td
from torch import nn

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Missing(Exception):
    """This PyTorch has not what the case needs."""


class Side:
    """One of the two: how it wraps, and what differs by design."""

    def __init__(self, name):
        self.name, self.rank, self.size = name, td.get_rank(), td.get_world_size()
        if name == "ours":
            import fleetrun.distributed.fleet as fleet
            fleet.init(is_collective=True)
            self.fleet = fleet

    def wrap(self, module, **arguments):
        if self.name == "ours":
            return self.fleet.distributed_model(module, **arguments)
        return nn.parallel.DistributedDataParallel(module, **arguments)

    def group(self, ranks):
        if self.name == "ours":
            import fleetrun.distributed as fd
            return fd.new_group(ranks)
        return td.new_group(ranks)


def mean(tensor, over=None):
    wide = tensor.dtype in (torch.float16, torch.bfloat16)
    value = tensor.detach().double() if wide else tensor.detach().clone()
    td.all_reduce(value)
    return (value / (over or td.get_world_size())).to(tensor.dtype)


def alike(tensor):
    """Whether a tensor has the same bits on all ranks."""
    every = [torch.empty_like(tensor) for _ in range(td.get_world_size())]
    td.all_gather(every, tensor.detach().contiguous())
    return all(torch.equal(each, every[0]) for each in every)


def data(rank, rows=6, columns=4, seed=0, **more):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(100 * seed + rank), **more)


def net(seed=0, extra=()):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), *extra, nn.Tanh(), nn.Linear(8, 3))


def backward(model, x):
    model(x).square().mean().backward()


def check_means(model, plain, rtol=1e-5, over=None):
    """The gradients of model are the means of those that the ranks have in plain."""
    for (name, one), other in zip(model.named_parameters(), plain.parameters()):
        expected = mean(other.grad if other.grad is not None else torch.zeros_like(other), over)
        assert one.grad is not None, f"{name} has no gradient"
        if not expected.numel():
            continue
        near = rtol * expected.abs().max().item()
        assert torch.allclose(one.grad, expected, rtol=rtol, atol=near), (name, one.grad, expected)


def trained_alike(model, parameters=None):
    for name, value in model.state_dict().items():
        assert alike(value.float() if value.dtype == torch.bool else value), f"{name} differs"


@contextlib.contextmanager
def refused(*kinds):
    try:
        yield
    except kinds or (RuntimeError, ValueError, TypeError) as error:
        assert str(error).strip(), "refused without a word"
        return
    raise AssertionError("it was accepted")
