"""Gradients are the means over the ranks, however backward goes."""
import copy

import torch
from torch import nn

from ddp_side import Missing, backward, case, check_means, data, mean, net, refused, trained_alike



@case
def gradients_are_means(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(3):
        x = data(side.rank, seed=seed)
        model.zero_grad()
        plain.zero_grad()
        backward(model, x)
        backward(plain, x)
        check_means(model, plain)


@case
def ranks_start_from_rank_0(side):
    model = side.wrap(net(side.rank, [nn.BatchNorm1d(8)]))
    trained_alike(model)
    assert torch.equal(next(iter(model.parameters())), net(0, [nn.BatchNorm1d(8)])[0].weight)


@case
def parameters_stay_alike_over_steps(side):
    model = side.wrap(net(side.rank))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for seed in range(8):
        optimizer.zero_grad()
        backward(model, data(side.rank, seed=seed))
        optimizer.step()
    trained_alike(model)


@case
def training_is_that_of_one_process(side):
    plain = net()
    model = side.wrap(net(side.rank))
    ours, own = (torch.optim.SGD(each.parameters(), lr=0.1, momentum=0.9) for each in (model, plain))
    for seed in range(5):
        own.zero_grad()
        ours.zero_grad()
        backward(plain, torch.cat([data(rank, seed=seed) for rank in range(side.size)]))
        backward(model, data(side.rank, seed=seed))
        own.step()
        ours.step()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain.parameters(), model.parameters()))


@case
def evaluating_module_at_the_first_forward(side):
    plain = net(0, [nn.BatchNorm1d(8), nn.Dropout()]).eval()
    model = side.wrap(copy.deepcopy(plain))
    model.eval()
    x = data(side.rank)
    backward(model, x)
    backward(plain, x)
    check_means(model, plain)


@case
def frozen_batch_norms(side):
    plain = net(0, [nn.BatchNorm1d(8)])
    model = side.wrap(copy.deepcopy(plain))
    for each in (model, plain):
        each.eval()
    for seed in range(2):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def evaluating_after_training(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    model.eval()
    model.zero_grad()
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def backward_that_raised_on_all_ranks(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    model.zero_grad()

    def fail(gradient):
        raise RuntimeError("out of memory")

    for where in (2, 0):
        parameter = list(model.parameters())[where]
        handle = parameter.register_hook(fail)
        with refused(RuntimeError):
            backward(model, data(side.rank))
        handle.remove()
        model.zero_grad(set_to_none=True)
    backward(model, data(side.rank, seed=1))
    backward(plain, data(side.rank, seed=1))
    check_means(model, plain)
    trained_alike(model)


@case
def backward_that_raised_before_any_other(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    handle = list(model.parameters())[0].register_hook(lambda gradient: 1 / 0)
    with refused(ZeroDivisionError):
        backward(model, data(side.rank))
    handle.remove()
    model.zero_grad(set_to_none=True)
    for seed in range(2):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def forward_twice_and_one_backward(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for each in (model, plain):
        (each(data(side.rank)).sum() + each(data(side.rank, seed=1)).square().sum()).backward()
    check_means(model, plain)


@case
def forward_twice_through_a_batch_norm_and_one_backward(side):
    if side.name == "torch":
        raise Missing  # before PyTorch 2.15 the second forward's buffers are a change of what the first kept
    plain = net(0, [nn.BatchNorm1d(8)])
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(2):
        for each in (model, plain):
            each.zero_grad()
            (each(data(side.rank, seed=seed) + side.rank) + each(data(side.rank))).square().sum().backward()
        check_means(model, plain)


@case
def gradients_add_up_without_zero_grad(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(3):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def zero_grad_that_keeps_tensors(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(3):
        model.zero_grad(set_to_none=False)
        plain.zero_grad(set_to_none=False)
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
        check_means(model, plain)


@case
def kept_gradients_stay_what_they_are(side):
    model = side.wrap(net())
    backward(model, data(side.rank))
    kept = [parameter.grad for parameter in model.parameters()]
    before = [gradient.clone() for gradient in kept]
    model.zero_grad(set_to_none=True)
    backward(model, data(side.rank, seed=1))
    assert all(torch.equal(a, b) for a, b in zip(kept, before))


@case
def gradient_as_bucket_view(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain), gradient_as_bucket_view=True)
    for seed in range(3):
        model.zero_grad(set_to_none=seed == 1)
        plain.zero_grad()
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
        check_means(model, plain)


@case
def tied_weights(side):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
            self.other.weight = self.one.weight

        def forward(self, x):
            return self.other(self.one(x))

    torch.manual_seed(0)
    plain = Tied()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def unused_parameter_has_no_gradient(side):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x):
            return self.used(x)

    model = side.wrap(Half(), find_unused_parameters=True)
    for _ in range(2):
        backward(model, data(side.rank))
    assert model.module.unused.weight.grad is None and model.module.used.weight.grad is not None


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.always, self.sometimes = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x, both):
        return self.always(x) + (self.sometimes(x) if both else 0)


@case
def parameter_that_one_rank_uses(side):
    torch.manual_seed(0)
    plain = Choosing()
    model = side.wrap(copy.deepcopy(plain), find_unused_parameters=True)
    for _ in range(2):
        model.zero_grad()
        plain.zero_grad()
        for each in (model, plain):
            each(data(side.rank), side.rank == 0).sum().backward()
        check_means(model, plain)


@case
def unused_parameter_keeps_its_gradient(side):
    torch.manual_seed(0)
    model = side.wrap(Choosing(), find_unused_parameters=True)
    model(data(side.rank), True).sum().backward()
    before = model.module.sometimes.weight.grad.clone()
    model.module.always.zero_grad()
    model(data(side.rank), False).sum().backward()
    assert torch.allclose(model.module.sometimes.weight.grad, before)


@case
def non_reentrant_checkpoint(side):
    from torch.utils.checkpoint import checkpoint
    checkpointed(side, lambda part, x: checkpoint(part, x, use_reentrant=False))


@case
def reentrant_checkpoint(side):
    from torch.utils.checkpoint import checkpoint
    checkpointed(side, lambda part, x: checkpoint(part, x, use_reentrant=True))


def checkpointed(side, through):
    class Parts(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
            self.last = nn.Linear(4, 2)

        def forward(self, x):
            for part in self.parts:
                x = through(part, x.requires_grad_())
            return self.last(x)

    torch.manual_seed(0)
    plain = Parts()
    model = side.wrap(copy.deepcopy(plain))
    for seed in range(2):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def outputs_of_any_shape(side):
    class Outputs(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x, *, scale=1.0):
            return {"list": [self.a(x) * scale, None], "tuple": (self.b(x), "text")}

    torch.manual_seed(0)
    plain = Outputs()
    model = side.wrap(copy.deepcopy(plain))
    for each in (model, plain):
        out = each(data(side.rank), scale=2.0)
        (out["list"][0].sum() + out["tuple"][0].square().sum()).backward()
    check_means(model, plain)


@case
def gradients_of_inputs_pass(side):
    model = side.wrap(net())
    x = data(side.rank).requires_grad_()
    backward(model, x)
    plain, y = net(), data(side.rank).requires_grad_()
    backward(plain, y)
    assert torch.allclose(x.grad, y.grad)


@case
def recurrent_layers(side):
    torch.manual_seed(0)
    plain = nn.LSTM(4, 5, batch_first=True)
    model = side.wrap(copy.deepcopy(plain))
    for each in (model, plain):
        each(data(side.rank).view(2, 3, 4))[0].square().sum().backward()
    check_means(model, plain)


@case
def frozen_parameters(side):
    plain = net()
    plain[0].weight.requires_grad_(False)
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    assert model.module[0].weight.grad is None
    assert torch.allclose(model.module[2].weight.grad, mean(plain[2].weight.grad))


@case
def parameters_that_are_unfrozen_later(side):
    if side.name == "torch":
        raise Missing
    plain = net()
    plain[0].weight.requires_grad_(False)
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    for each in (model.module, plain):
        each[0].weight.requires_grad_(True)
        each.zero_grad(set_to_none=True)
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def hooks_of_parameters(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    for each in (model.module, plain):
        each[0].weight.register_hook(lambda gradient: gradient * 3)
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def clipping(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    for parameter in plain.parameters():
        parameter.grad = mean(parameter.grad)
    ours, own = (nn.utils.clip_grad_norm_(each.parameters(), 0.01) for each in (model, plain))
    assert torch.allclose(ours, own)
    check_means(model, plain)


@case
def two_models_in_one_process(side):
    generator, critic = net(0), net(1)
    one, other = side.wrap(copy.deepcopy(generator)), side.wrap(copy.deepcopy(critic))
    for seed in range(2):
        backward(one, data(side.rank, seed=seed))
        backward(other, data(side.rank, seed=seed + 5))
        backward(generator, data(side.rank, seed=seed))
        backward(critic, data(side.rank, seed=seed + 5))
    check_means(one, generator)
    check_means(other, critic)


@case
def one_model_behind_another(side):
    first, second = nn.Linear(4, 4), net(1)
    one, other = side.wrap(copy.deepcopy(first)), side.wrap(copy.deepcopy(second))
    for a, b in ((one, other), (one.module, other.module)):
        for each in (one, other):
            each.zero_grad()
        backward(nn.Sequential(one, other), data(side.rank))
    first.load_state_dict(one.module.state_dict())
    backward(nn.Sequential(first, second), data(side.rank))
    check_means(one, first)
    check_means(other, second)


class OneOf(nn.Module):
    """A forward uses the layers that it is told."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 1, bias=False), nn.Linear(4, 1, bias=False)

    def forward(self, x, layers):
        return sum(getattr(self, layer)(x).sum() for layer in layers)


@case
def gradient_that_a_script_has_set(side):
    """It is the rank's own where no rank has used the parameter, and else given to the others, too; one that
    lies in the bucket is the mean always."""
    mine, middle = 10.0 + side.rank, mean(torch.tensor(10.0 + side.rank)).item()
    for views in (False, True):
        model = side.wrap(OneOf(), find_unused_parameters=True, gradient_as_bucket_view=views)
        weight, x = model.module.b.weight, torch.ones(1, 4) * side.size
        for _ in range(3):
            model.zero_grad()
            weight.grad = torch.full((1, 4), mine)
            model(x, "a").backward()
            assert weight.grad.eq(middle if views else mine).all(), (views, weight.grad)
            model.zero_grad()
            weight.grad = torch.full((1, 4), mine)
            model(x, "b" if side.rank == 0 else "a").backward()
            assert weight.grad.allclose(torch.tensor(middle + 1)), (views, weight.grad)


@case
def gradient_of_a_backward_that_stayed_here(side):
    for beside in (False, True):
        model = side.wrap(OneOf(), find_unused_parameters=True)
        weight, x = model.module.b.weight, torch.ones(1, 4) * (side.rank + 1)
        model(x, "a").backward()
        for _ in range(2):
            model.zero_grad()
            if beside:
                model.module(x, "b").backward()
            else:
                with model.no_sync():
                    model(x, "b").backward()
            assert weight.grad.eq(side.rank + 1).all(), (beside, weight.grad)
            model(x, "a").backward()
            assert weight.grad.eq((side.size + 1) / 2).all(), (beside, weight.grad)
