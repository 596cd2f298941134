"""Types of parameters, and buffers."""
import contextlib
import copy

import torch
import torch.distributed as td
from torch import nn

from ddp_side import Missing, alike, backward, case, check_means, data, mean, net, refused, trained_alike



@case
def float64_and_bfloat16(side):
    for dtype in (torch.float64, torch.bfloat16):
        plain = net().to(dtype)
        model = side.wrap(copy.deepcopy(plain))
        backward(model, data(side.rank).to(dtype))
        backward(plain, data(side.rank).to(dtype))
        check_means(model, plain, rtol=2e-2 if dtype == torch.bfloat16 else 1e-9)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3).half())

    def forward(self, x):
        return x * self.weight


@case
def float16_gradients_do_not_overflow(side):
    model = side.wrap(Scale())
    for _ in range(2):
        model.zero_grad()
        model(torch.full((3,), 60000.0).half()).backward(torch.ones(3).half())
        assert model.module.weight.grad.tolist() == [60000.0] * 3, model.module.weight.grad


@case
def parameters_of_several_types(side):
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4).double()

        def forward(self, x):
            return self.b(self.a(x).double())

    torch.manual_seed(0)
    plain = Mixed()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(4, 3, dtype=torch.complex64))
        self.real = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.tensor(1 + 2j))

    def forward(self, x):
        return self.real((x.to(torch.complex64) @ self.first * self.scale).abs())


@case
def complex_parameters(side):
    torch.manual_seed(0)
    plain = Complex()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(2):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def channels_last(side):
    torch.manual_seed(0)
    plain = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    model = side.wrap(copy.deepcopy(plain))
    x = data(side.rank, 2, 3 * 5 * 5).view(2, 3, 5, 5).to(memory_format=torch.channels_last)
    for _ in range(2):
        backward(model, x)
        backward(plain, x)
    check_means(model, plain)


@case
def sparse_gradients(side):
    torch.manual_seed(0)
    plain = nn.Embedding(20, 3, sparse=True)
    model = side.wrap(copy.deepcopy(plain))
    ids = torch.tensor([side.rank, 3, 3, 7 + side.rank])
    model(ids).sum().backward()
    plain(ids).sum().backward()
    expected = mean(plain.weight.grad.to_dense())
    found = model.module.weight.grad
    assert torch.allclose(found.to_dense(), expected)
    # Each row once: scripts read these, and compute with them.
    assert found.indices().tolist() == [expected.any(1).nonzero().view(-1).tolist()]
    assert torch.allclose(found.values(), expected[found.indices()[0]])


@case
def autocast_and_grad_scaler(side):
    model = side.wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for seed in range(2):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(data(side.rank, seed=seed)).float().square().mean()
        loss.backward()
        optimizer.step()
    trained_alike(model)

@case
def buffers_are_those_of_rank_0_before_forward(side):
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 1)
            self.register_buffer("seen", torch.zeros(3))

        def forward(self, x):
            was = self.seen.clone()
            self.seen.add_(x.sum().detach())
            return self.linear(x), was

    model = side.wrap(Counts())
    for seed in range(3):
        out, was = model(data(side.rank, seed=seed))
        assert alike(was)
        out.sum().backward()


@case
def buffers_of_any_type(side):
    class Buffers(nn.Module):
        def __init__(self, rank):
            super().__init__()
            self.linear = nn.Linear(4, 1)
            self.register_buffer("flag", torch.tensor([rank == 0, rank == 1]))
            self.register_buffer("count", torch.tensor(rank))
            self.register_buffer("phase", torch.tensor([1j * rank]))
            self.register_buffer("narrow", torch.full((3,), float(rank)).half())
            self.register_buffer("hidden", torch.full((2,), float(rank)), persistent=False)

        def forward(self, x):
            return self.linear(x)

    model = side.wrap(Buffers(side.rank))
    backward(model, data(side.rank))
    own = Buffers(0)
    for name, value in model.module.named_buffers():
        assert torch.equal(value, dict(own.named_buffers())[name]), name


@case
def broadcast_buffers_false(side):
    model = side.wrap(net(0, [nn.BatchNorm1d(8)]), broadcast_buffers=False)
    plain = net(0, [nn.BatchNorm1d(8)])
    for seed in range(3):
        model.zero_grad()
        backward(model, data(side.rank, seed=seed) + side.rank)
        plain(data(side.rank, seed=seed) + side.rank)
    assert torch.allclose(model.module[1].running_mean, plain[1].running_mean)
    assert not alike(model.module[1].running_mean)


@case
def buffers_of_the_start(side):
    def wrapped(**arguments):
        module = net(0, [nn.BatchNorm1d(8)])
        module[1].running_mean.fill_(side.rank)
        return side.wrap(module, **arguments).module[1].running_mean

    assert alike(wrapped()) and not alike(wrapped(broadcast_buffers=False))
    if side.name == "ours" or hasattr(side.wrap(net()), "forward_sync_buffers"):
        assert alike(wrapped(forward_sync_buffers=False))


@case
def evaluation_after_training_uses_rank_0s_buffers(side):
    model = side.wrap(net(0, [nn.BatchNorm1d(8)]))
    backward(model, data(side.rank) + side.rank)
    model.eval()
    with torch.no_grad():
        out = model(data(5))
    assert alike(out)


class Shifted(nn.Module):
    """Its output depends on what it has seen, unlike that of a batch norm that trains."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.seen.mul_(0.5).add_(x.mean())
        return self.linear(x) + self.seen


@case
def buffers_between_the_forwards_of_no_sync_are_the_ranks_own(side):
    plain = Shifted()
    model = side.wrap(copy.deepcopy(plain))
    plain.load_state_dict(model.module.state_dict())
    for step in range(3):
        td.broadcast(plain.seen, 0)
        for part in range(3):
            x = data(side.rank, seed=10 * step + part) + side.rank
            with model.no_sync() if part < 2 else contextlib.nullcontext():
                out = model(x)
                assert torch.equal(out, plain(x)), (step, part)
                out.sum().backward()


@case
def buffers_of_join_are_those_of_the_last_rank_that_has_a_batch(side):
    plain = Shifted()
    model = side.wrap(copy.deepcopy(plain))
    plain.load_state_dict(model.module.state_dict())
    batches = [data(side.rank, seed=seed) + side.rank for seed in range(3 if side.rank == 0 else 2)]
    with model.join():
        outs = []
        for x in batches:
            outs.append(model(x))
            outs[-1].sum().backward()
    for step in range(3):
        if step < 2:
            td.broadcast(plain.seen, side.size - 1)
        if step < len(batches):
            assert torch.equal(outs[step], plain(batches[step])), step


@case
def synchronized_batch_norm(side):
    if side.name == "torch":
        raise Missing  # refused there for inputs in the host's memory
    plain = net(0, [nn.BatchNorm1d(8)])
    model = side.wrap(nn.SyncBatchNorm.convert_sync_batchnorm(net(side.rank, [nn.BatchNorm1d(8)])))
    rows = [3 + 4 * rank for rank in range(side.size)]
    for seed in range(3):
        parts = [data(rank, rows[rank], seed=seed) for rank in range(side.size)]
        for each in (model, plain):
            each.zero_grad()
        everything = torch.cat(parts).requires_grad_()
        mine = parts[side.rank].clone().requires_grad_()
        plain(everything).square().sum().backward()
        model(mine).square().sum().backward()
        start = sum(rows[:side.rank])
        assert torch.allclose(mine.grad, everything.grad[start:start + rows[side.rank]], atol=1e-5)
        for one, other in zip(model.parameters(), plain.parameters()):
            assert torch.allclose(one.grad * side.size, other.grad, atol=1e-5)
    assert torch.allclose(model.module[1].running_var, plain[1].running_var)
    assert torch.allclose(model.module[1].running_mean, plain[1].running_mean)
    model.eval()
    plain.eval()
    assert torch.allclose(model(data(0)), plain(data(0)), atol=1e-6)
    assert isinstance(copy.deepcopy(model).module[1], nn.SyncBatchNorm)


@case
def synchronized_batch_norm_of_a_torch_group_is_refused(side):
    if side.name == "torch":
        raise Missing
    module = nn.SyncBatchNorm.convert_sync_batchnorm(net(0, [nn.BatchNorm1d(8)]), td.group.WORLD)
    with refused():
        side.wrap(module)
