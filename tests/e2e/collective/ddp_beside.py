"""What lies one step beside the other cases: other orders of calls, other layers, other layouts."""
import collections
import contextlib
import copy
import dataclasses

import torch
import torch.distributed as td
from torch import nn

from ddp_side import Missing, alike, backward, case, check_means, data, mean, net, trained_alike


def pair(side, plain, **arguments):
    """(wrapped, plain): the same module twice."""
    return side.wrap(copy.deepcopy(plain), **arguments), plain


def step_both(model, plain, side, seed=0, x=None):
    x = data(side.rank, seed=seed) if x is None else x
    for each in (model, plain):
        backward(each, x)


@case
def backward_of_the_module_alone_stays_on_its_rank(side):
    model, plain = pair(side, net())
    step_both(model, plain, side)
    check_means(model, plain)
    model.zero_grad()
    plain.zero_grad()
    if side.rank == 0:  # nobody else takes part
        backward(model.module, data(side.rank, seed=1))
        backward(plain, data(side.rank, seed=1))
        assert torch.equal(model.module[0].weight.grad, plain[0].weight.grad)
    model.zero_grad()
    plain.zero_grad()
    step_both(model, plain, side, seed=2)
    check_means(model, plain)


@case
def forward_without_backward_and_the_module_alone(side):
    model, plain = pair(side, net())
    step_both(model, plain, side)
    with torch.no_grad():
        model(data(side.rank, seed=1))
    model.zero_grad()
    plain.zero_grad()
    step_both(model, plain, side, seed=3)
    check_means(model, plain)


@case
def gradients_asked_for_by_autograd_grad_are_local(side):
    model, plain = pair(side, net())
    x = data(side.rank)
    found = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
    own = torch.autograd.grad(plain(x).square().mean(), list(plain.parameters()))
    assert all(torch.allclose(a, b) for a, b in zip(found, own))
    assert all(parameter.grad is None for parameter in model.parameters())


@case
def gradient_penalty(side):
    if side.name == "torch":
        raise Missing  # a parameter that the penalty does not reach keeps PyTorch's from its mean
    model, plain = pair(side, net())
    for each in (model, plain):
        x = data(side.rank).requires_grad_()
        (slope,) = torch.autograd.grad(each(x).sum(), x, create_graph=True)
        slope.square().mean().backward()
    for one, other in zip(model.parameters(), plain.parameters()):
        if other.grad is not None:
            assert torch.allclose(one.grad, mean(other.grad), atol=1e-6)


@case
def no_grad_between_forward_and_backward(side):
    model, plain = pair(side, net())
    for each in (model, plain):
        loss = each(data(side.rank)).square().mean()
        with torch.no_grad():
            each(data(side.rank, seed=1))
        loss.backward()
    check_means(model, plain)


@case
def forward_in_eval_mode_between_steps(side):
    model, plain = pair(side, net(0, [nn.BatchNorm1d(8)]))
    step_both(model, plain, side)
    for each in (model, plain):
        each.eval()
        with torch.no_grad():
            each(data(side.rank, seed=9))
        each.train()
        each.zero_grad()
    step_both(model, plain, side, seed=1)
    check_means(model, plain, 1e-4)


@case
def nested_no_sync(side):
    model, plain = pair(side, net())
    with model.no_sync():
        with model.no_sync():
            step_both(model, plain, side)
        step_both(model, plain, side, seed=1)
        assert not alike(model.module[0].weight.grad)
    step_both(model, plain, side, seed=2)
    check_means(model, plain)


@case
def no_sync_that_ends_with_an_error(side):
    model, plain = pair(side, net())
    with contextlib.suppress(KeyError), model.no_sync():
        raise KeyError
    step_both(model, plain, side)
    check_means(model, plain)


@case
def forward_that_raises_on_all_ranks(side):
    class Choosy(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = net()

        def forward(self, x):
            hidden = self.part(x)
            if x.shape[1] == 4 and x[0, 0] == 7:
                raise ValueError("not this one")
            return hidden

    model, plain = pair(side, Choosy())
    for bad in (True, False, True, False):
        x = data(side.rank)
        if bad:
            x[0, 0] = 7
            with contextlib.suppress(ValueError):
                model(x)
            continue
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, x=x)
        check_means(model, plain)


@case
def static_graph_over_steps(side):
    model, plain = pair(side, net(), static_graph=True)
    for seed in range(4):
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, seed)
        check_means(model, plain)


@case
def static_graph_with_accumulation(side):
    model, plain = pair(side, net(), static_graph=True)
    step_both(model, plain, side)
    for seed in range(1, 4):
        model.zero_grad()
        plain.zero_grad()
        with model.no_sync():
            step_both(model, plain, side, 10 * seed)
        step_both(model, plain, side, seed)
        check_means(model, plain)


@case
def unused_parameters_with_no_sync(side):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x, which):
            return (self.one if which else self.other)(x)

    torch.manual_seed(1)
    model, plain = pair(side, Half(), find_unused_parameters=True)
    for each in (model, plain):
        with model.no_sync() if each is model else contextlib.nullcontext():
            each(data(side.rank), True).square().sum().backward()
        each(data(side.rank, seed=1), False).square().sum().backward()
    # What only no_sync has used is a local gradient or the mean: PyTorch averages all that have one.
    for one, other in zip(model.module.other.parameters(), plain.other.parameters()):
        assert torch.allclose(one.grad, mean(other.grad), atol=1e-6)


@case
def sparse_gradients(side):
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.last = nn.Embedding(20, 4, sparse=True), nn.Linear(4, 2)

        def forward(self, ids):
            return self.last(self.rows(ids).mean(1))

    torch.manual_seed(2)
    model, plain = pair(side, Bag())
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (model, plain)]
    for seed in range(3):
        ids = torch.randint(0, 20, (5, 3), generator=torch.Generator().manual_seed(10 * seed + side.rank))
        for each, optimizer in zip((model, plain), optimizers):
            optimizer.zero_grad()
            each(ids).square().mean().backward()
        found = model.module.rows.weight.grad
        assert found.is_sparse
        expected = mean(plain.rows.weight.grad.to_dense())
        assert torch.allclose(found.to_dense(), expected, atol=1e-6)
        optimizers[0].step()
        plain.load_state_dict(model.module.state_dict())
    trained_alike(model)


@case
def sparse_gradients_with_accumulation(side):
    torch.manual_seed(2)
    model, plain = pair(side, nn.Embedding(20, 4, sparse=True))
    for number in range(3):
        ids = torch.randint(0, 20, (5,), generator=torch.Generator().manual_seed(number + 7 * side.rank))
        with model.no_sync() if number < 2 else contextlib.nullcontext():
            model(ids).square().sum().backward()
        plain(ids).square().sum().backward()
    expected = mean(plain.weight.grad.to_dense())
    assert torch.allclose(model.module.weight.grad.to_dense(), expected, atol=1e-6)


@case
def embedding_bag_sparse(side):
    torch.manual_seed(2)
    model, plain = pair(side, nn.EmbeddingBag(30, 4, mode="sum", sparse=True))
    ids = torch.randint(0, 30, (9,), generator=torch.Generator().manual_seed(side.rank))
    for each in (model, plain):
        each(ids, torch.tensor([0, 2, 5])).square().sum().backward()
    assert torch.allclose(model.module.weight.grad.to_dense(), mean(plain.weight.grad.to_dense()), atol=1e-6)


@case
def channels_last(side):
    torch.manual_seed(3)
    plain = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)).to(
        memory_format=torch.channels_last)
    model, plain = pair(side, plain)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for seed in range(2):
        x = data(side.rank, 2, 3 * 64, seed).view(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, x=x)
        check_means(model, plain)
        optimizer.step()
        plain.load_state_dict(model.module.state_dict())
    assert model.module[0].weight.is_contiguous(memory_format=torch.channels_last)
    trained_alike(model)


@case
def parameters_with_gaps(side):
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(4)
            self.weight = nn.Parameter(torch.randn(4, 8).t())
            self.scale = nn.Parameter(torch.tensor(2.0))
            self.nothing = nn.Parameter(torch.empty(0, 3))

        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight) * self.scale + self.nothing.sum()

    model, plain = pair(side, Turned())
    for seed in range(2):
        step_both(model, plain, side, seed)
    check_means(model, plain)


@case
def lists_and_dicts_of_parameters(side):
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(5)
            self.list = nn.ParameterList(nn.Parameter(torch.randn(4)) for _ in range(3))
            self.dict = nn.ParameterDict({"a": nn.Parameter(torch.randn(4))})

        def forward(self, x):
            return sum((x * each).sum(1) for each in self.list) * (x * self.dict["a"]).sum(1)

    model, plain = pair(side, Parts())
    step_both(model, plain, side)
    check_means(model, plain)


@case
def weight_norm_and_spectral_norm(side):
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(6)
            self.one = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 8))
            self.other = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3))

        def forward(self, x):
            return self.other(self.one(x))

    if not hasattr(torch.nn.utils.parametrizations, "weight_norm"):
        raise Missing
    model, plain = pair(side, Normed())
    for seed in range(3):
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, seed)
        check_means(model, plain, 1e-4)
    trained_alike(model)


@case
def scripted_module(side):
    model, plain = side.wrap(torch.jit.script(net())), net()
    for seed in range(2):
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, seed)
    for one, other in zip(model.parameters(), plain.parameters()):
        assert torch.allclose(one.grad, mean(other.grad), atol=1e-6)


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor


Named = collections.namedtuple("Named", "logits more")


@case
def outputs_in_classes(side):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = net()

        def forward(self, x, kind):
            hidden = self.part(x)
            return Output(hidden, hidden.square().mean()) if kind else Named(hidden, [hidden.detach()])

    for static in (False, True):
        model, plain = pair(side, Model(), static_graph=static)
        for each in (model, plain):
            each(data(side.rank), True).loss.backward()
            each(data(side.rank, seed=1), False).logits.square().sum().backward()
        check_means(model, plain)


@case
def loss_that_the_module_keeps(side):
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = net()

        def forward(self, x):
            self.extra = self.part(x).square().mean()
            return self.extra.detach()

    model, plain = pair(side, Keeping())
    for seed in range(2):
        for each in (model, plain):
            each.zero_grad()
            each(data(side.rank, seed=seed))
            (each.module if each is model else each).extra.backward()
        check_means(model, plain)


@case
def buffers_of_all_kinds(side):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = net()
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))
            self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
            self.register_buffer("kept", torch.zeros(2), persistent=False)

        def forward(self, x):
            self.count += 1
            self.kept = self.kept + x.sum()  # another tensor each time
            self.seen[self.count % 3] = True
            return self.part(x) + 0 * self.kept.sum()

    model, plain = pair(side, Counting())
    for seed in range(3):
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, seed)
    check_means(model, plain)
    assert model.module.count == 3
    with torch.no_grad():
        model.module.kept += side.rank
    model(data(0))
    assert alike(model.module.kept)


@case
def autocast(side):
    model, plain = pair(side, net())
    for seed in range(2):
        for each in (model, plain):
            each.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = each(data(side.rank, seed=seed)).float().square().mean()
            loss.backward()
        check_means(model, plain, 2e-2)


@case
def not_a_number_on_one_rank_is_one_on_all(side):
    model = side.wrap(net())
    x = data(side.rank)
    if side.rank == 1:
        x[0, 0] = float("nan")
    backward(model, x)
    assert all(torch.isnan(parameter.grad).any() for parameter in model.parameters())


@case
def hooks_after_accumulation(side):
    model, plain = pair(side, net())
    parameter = model.module[0].weight
    if not hasattr(parameter, "register_post_accumulate_grad_hook"):
        raise Missing
    called = []
    parameter.register_post_accumulate_grad_hook(lambda each: called.append(each.grad.shape))
    model.register_forward_hook(lambda *_: called.append("forward"))
    model.module[0].register_full_backward_hook(lambda *_: called.append("backward"))
    step_both(model, plain, side)
    check_means(model, plain)
    assert called[0] == "forward" and "backward" in called and parameter.shape in called


@case
def zero_grad_between_forward_and_backward(side):
    model, plain = pair(side, net())
    step_both(model, plain, side)
    for each in (model, plain):
        loss = each(data(side.rank, seed=1)).square().mean()
        each.zero_grad()
        loss.backward()
    check_means(model, plain)


@case
def state_that_is_loaded_between_steps(side):
    model, plain = pair(side, net())
    step_both(model, plain, side)
    for each in (model.module, plain):
        each.load_state_dict(net(9).state_dict())
        each.zero_grad()
    step_both(model, plain, side, 1)
    check_means(model, plain)
    trained_alike(model)


@case
def many_small_buckets(side):
    torch.manual_seed(8)
    plain = nn.Sequential(*[nn.Linear(4, 4) for _ in range(40)])
    model, plain = pair(side, plain, bucket_cap_mb=0.0001)
    for seed in range(3):
        model.zero_grad()
        plain.zero_grad()
        step_both(model, plain, side, seed)
        check_means(model, plain, 1e-4)


@case
def views_of_buckets_with_kept_zeros(side):
    model, plain = pair(side, net(), gradient_as_bucket_view=True)
    for seed in range(4):
        model.zero_grad(set_to_none=False)
        plain.zero_grad(set_to_none=False)
        with model.no_sync() if seed == 2 else contextlib.nullcontext():
            step_both(model, plain, side, seed)
        if seed != 2:
            check_means(model, plain)


@case
def detached_copy_of_gradients_of_one_batch_of_each_size(side):
    model, plain = pair(side, net())
    step_both(model, plain, side, x=data(side.rank, rows=1 + 5 * side.rank))
    check_means(model, plain)


@case
def several_backwards_on_parts_of_the_outputs(side):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.one(x), self.other(x)

    model, plain = pair(side, Two(), find_unused_parameters=True)
    for each in (model, plain):
        one, other = each(data(side.rank))
        (one.square().sum() + other.sum()).backward()
    check_means(model, plain)


def joined(side, by_all, rounds, **more):
    from torch.distributed.algorithms.join import Join
    model = side.wrap(net(0, [nn.BatchNorm1d(8)]))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model], divide_by_initial_world_size=by_all, **more):
        for seed in range(rounds):
            optimizer.zero_grad()
            backward(model, data(side.rank, seed=seed))
            optimizer.step()
    return model


@case
def join_context_that_divides_by_all(side):
    trained_alike(joined(side, True, 2 + 2 * side.rank))


@case
def join_context_that_divides_by_those_with_inputs(side):
    trained_alike(joined(side, False, 2 + 2 * side.rank))


@case
def join_context_of_a_rank_without_any_input(side):
    model = joined(side, True, 3 * side.rank)
    trained_alike(model)
    model.zero_grad()
    backward(model, data(side.rank))
    assert alike(model.module[0].weight.grad)


@case
def join_context_that_throws(side):
    try:
        joined(side, True, 2 + side.rank, throw_on_early_termination=True)
    except RuntimeError as error:
        assert "exhausted" in str(error)
    else:
        raise AssertionError("nobody threw")


@case
def join_context_that_is_off(side):
    model = joined(side, True, 2, enable=False)
    assert all(alike(parameter) for parameter in model.parameters())


@case
def join_context_of_two_models_and_again(side):
    from torch.distributed.algorithms.join import Join
    one, other = side.wrap(net(0)), side.wrap(net(1))
    for _ in range(2):
        with Join([one, other]):
            for seed in range(1 + 2 * side.rank):
                for each in (one, other):
                    each.zero_grad()
                    backward(each, data(side.rank, seed=seed))
                    with torch.no_grad():
                        for parameter in each.parameters():
                            parameter -= 0.1 * parameter.grad
    trained_alike(one)
    trained_alike(other)
    assert td.get_world_size() == side.size
