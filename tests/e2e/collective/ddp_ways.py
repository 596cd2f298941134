"""no_sync, uneven inputs, communication hooks; copies, files and compilers."""
import contextlib
import copy
import io
import os
import sys

import torch
import torch.distributed as td
from torch import nn

from ddp_side import Missing, alike, backward, case, check_means, data, net, refused, trained_alike



@case
def no_sync_adds_up(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(3):
        with model.no_sync() if seed < 2 else contextlib.nullcontext():
            backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
        if seed < 2:
            assert not alike(model.module[0].weight.grad)
    check_means(model, plain)


@case
def no_sync_counts_at_forward(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    with model.no_sync():
        loss = model(data(side.rank)).square().mean()
    loss.backward()
    backward(plain, data(side.rank))
    assert torch.allclose(model.module[0].weight.grad, plain[0].weight.grad)


@case
def require_backward_grad_sync(side):
    model = side.wrap(net())
    model.require_backward_grad_sync = False
    backward(model, data(side.rank))
    assert not alike(model.module[0].weight.grad)
    model.require_backward_grad_sync = True
    backward(model, data(side.rank))
    assert alike(model.module[0].weight.grad)


def uneven(side, by_all, module=None):
    plain = net()
    model = side.wrap(copy.deepcopy(plain) if module is None else module)
    rounds = 2 + 2 * side.rank
    with model.join(divide_by_initial_world_size=by_all):
        for seed in range(rounds):
            model.zero_grad()
            if module is None:
                plain.load_state_dict(model.module.state_dict())
                plain.zero_grad()
            backward(model, data(side.rank, seed=seed))
            if module is None:
                backward(plain, data(side.rank, seed=seed))
                active = [rank for rank in range(side.size) if 2 + 2 * rank > seed]
                for one, other in zip(model.parameters(), plain.parameters()):
                    expected = other.grad / side.size
                    if len(active) == 1 and not by_all:
                        expected = other.grad
                    if len(active) == 1:
                        assert torch.allclose(one.grad, expected, rtol=1e-5), (seed, one.grad, expected)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
    trained_alike(model)


@case
def join_divides_by_all(side):
    uneven(side, True)


@case
def join_divides_by_those_with_inputs(side):
    uneven(side, False)


@case
def join_with_buffers(side):
    uneven(side, True, net(0, [nn.BatchNorm1d(8)]))


@case
def join_of_a_rank_without_any_input(side):
    model = side.wrap(net())
    with model.join():
        for seed in range(3 if side.rank == 1 else 0):
            model.zero_grad()
            backward(model, data(side.rank, seed=seed))
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
    trained_alike(model)
    model.zero_grad()
    plain = copy.deepcopy(model.module)
    plain.zero_grad()
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def join_that_throws(side):
    model = side.wrap(net())
    with refused(RuntimeError):
        with model.join(throw_on_early_termination=True):
            for seed in range(2 + side.rank):
                backward(model, data(side.rank, seed=seed))


@case
def join_that_is_off(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    with model.join(enable=False):
        backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


def hooked(side, state, hook, rtol=1e-5):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    model.register_comm_hook(state, hook)
    for seed in range(2):
        model.zero_grad()
        plain.zero_grad()
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
        check_means(model, plain, rtol)
    return model


@case
def hook_that_averages(side):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    hooked(side, None, default_hooks.allreduce_hook)


@case
def hooks_of_16_bits(side):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    hooked(side, None, default_hooks.fp16_compress_hook, 1e-2)
    if side.name == "ours":  # PyTorch's asks for NCCL
        hooked(side, None, default_hooks.bf16_compress_hook, 5e-2)


@case
def hook_of_16_bits_has_wider_gradients_too(side):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    for dtype in (torch.float32, torch.float64):
        model = side.wrap(net().to(dtype))
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)
        backward(model, data(side.rank, dtype=dtype))
        for parameter in model.parameters():
            assert torch.equal(parameter.grad, parameter.grad.half().to(dtype)), dtype


@case
def hook_of_ones_own(side):
    seen = []

    def hook(state, bucket):
        state.append((bucket.index(), bucket.is_last(), len(bucket.gradients()), bucket.buffer().numel()))
        assert [gradient.shape for gradient in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        work = td.all_reduce(bucket.buffer().div_(td.get_world_size()), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    hooked(side, seen, hook)
    assert seen[0][3] > 0 and any(last for _, last, _, _ in seen)


@case
def hook_that_zeroes(side):
    def hook(state, bucket):
        future = torch.futures.Future()
        future.set_result(torch.zeros_like(bucket.buffer()))
        return future

    model = side.wrap(net())
    model.register_comm_hook(None, hook)
    backward(model, data(side.rank))
    assert all(parameter.grad.eq(0).all() for parameter in model.parameters())


@case
def hook_that_leaves_ranks_apart(side):
    """As those of local SGD do, whose ranks average their parameters now and then."""
    def hook(state, bucket):
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    os.environ["FLEETRUN_SENTINEL"] = "every"
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    model.register_comm_hook(None, hook)
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, plain)]
    for seed in range(3):
        for each, optimizer in zip((model, plain), optimizers):
            optimizer.zero_grad()
            backward(each, data(side.rank, seed=seed))
            optimizer.step()
    for one, other in zip(model.parameters(), plain.parameters()):
        assert torch.equal(one, other) and not alike(one)


@case
def second_hook_is_refused(side):
    model = side.wrap(net())
    hook = lambda state, bucket: None
    model.register_comm_hook(None, hook)
    with refused(RuntimeError):
        model.register_comm_hook(None, hook)


@case
def hook_that_cannot_be_called_is_refused(side):
    with refused(TypeError):
        side.wrap(net()).register_comm_hook(None, 1)


@case
def static_graph_that_is_said_after_wrapping(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    model._set_static_graph()
    for seed in range(2):
        model.zero_grad()
        plain.zero_grad()
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
        check_means(model, plain)


@case
def deep_copy(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    twin = copy.deepcopy(model)
    twin.zero_grad()
    backward(twin, data(side.rank, seed=1))
    backward(plain, data(side.rank, seed=1))
    check_means(twin, plain)


@case
def saved_wrapper(side):
    model = side.wrap(net())
    backward(model, data(side.rank))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    try:
        twin = torch.load(file, weights_only=False)
    except TypeError:
        file.seek(0)
        twin = torch.load(file)
    plain = copy.deepcopy(twin.module)
    twin.zero_grad()
    plain.zero_grad()
    backward(twin, data(side.rank, seed=1))
    backward(plain, data(side.rank, seed=1))
    check_means(twin, plain)


@case
def state_dict_of_a_model_around_it(side):
    class Around(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.head = inner, nn.Linear(3, 1)

    one, other = Around(side.wrap(net(3))), Around(side.wrap(net(4)))
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.inner.module[0].weight, other.inner.module[0].weight)


@case
def state_dict_with_ddps_names(side):
    model, plain = side.wrap(net(3)), net(4)
    model.load_state_dict({f"module.{name}": value for name, value in plain.state_dict().items()})
    assert torch.equal(model.module[0].weight, plain[0].weight)
    model.module.load_state_dict(net(5).state_dict())
    model.load_state_dict(model.state_dict())


def compiled(side, make):
    if not hasattr(torch, "compile") or sys.version_info >= (3, 11) and torch.__version__ < "2.1":
        raise Missing
    plain = net(0, [nn.BatchNorm1d(8)])
    model = make(copy.deepcopy(plain))
    for seed in range(3):
        for each in (model, plain):
            each.zero_grad()
            each(data(side.rank, seed=seed)).square().mean().backward()
        inner = model
        while not isinstance(inner, nn.Sequential):
            inner = inner._orig_mod if hasattr(inner, "_orig_mod") else inner.module
        check_means(inner, plain, 1e-4)


@case
def in_the_place_of_pytorchs_class(side):
    if side.name == "ours":
        from fleetrun.distributed.parallel import DistributedDataParallel
    else:
        from torch.nn.parallel import DistributedDataParallel
    plain = net(0, [nn.BatchNorm1d(8)])
    model = DistributedDataParallel(copy.deepcopy(plain), None, None, 0)
    assert isinstance(side.wrap(net()), DistributedDataParallel)
    assert list(model.state_dict()) == [f"module.{name}" for name in plain.state_dict()]
    assert dict(model.named_parameters()).keys() == {f"module.{name}" for name, _ in plain.named_parameters()}
    model.load_state_dict(model.state_dict())
    assert not hasattr(model, "0")
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def compiled_wrapper(side):
    compiled(side, lambda module: torch.compile(side.wrap(module), backend="aot_eager"))


@case
def wrapper_of_a_compiled_module(side):
    compiled(side, lambda module: side.wrap(torch.compile(module, backend="aot_eager")))
