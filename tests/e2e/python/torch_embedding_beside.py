"""What lies one step beside the cases of torch_embedding_cases.py: other orders of calls, other inputs.
Prints "ok NAME" for each case, "n/a NAME" for one that this PyTorch cannot be asked."""

import copy

import torch
from torch.utils.checkpoint import checkpoint

from fleetrun.torch import EmbeddingBag
from torch_embedding_cases import HAS_HOOKS, IDS, Pair, rows_of, run_all, some_ids


def losses_of(pair, make):
    """make(layer, tail) of both, which are alike."""
    losses = [make(layer, tail) for layer, tail in pair.models]
    assert torch.allclose(*losses, rtol=1e-5, atol=1e-7), losses
    return losses


def apply(pair, losses):
    for loss in losses:
        loss.backward()
    pair.step()
    pair.check()


def two_forwards_and_one_backward():
    pair = Pair()
    for step in range(3):
        pair.zero_grad()
        one, other = some_ids(step, 4), some_ids(step + 9, 3, 2)
        apply(pair, losses_of(pair, lambda e, t: t(e(one)).square().sum() + t(e(other)).square().mean()))


def two_forwards_and_two_backwards():
    pair = Pair()
    one, other = some_ids(1, 4), some_ids(2, 6)
    first = losses_of(pair, lambda e, t: t(e(one)).square().sum())
    second = losses_of(pair, lambda e, t: t(e(other)).square().sum())
    for loss in first:
        loss.backward()
    apply(pair, second)


def a_second_backward_of_one_graph_adds_up():
    pair = Pair()
    losses = losses_of(pair, lambda e, t: t(e(some_ids(1, 5))).square().sum())
    for loss in losses:
        loss.backward(retain_graph=True)
    apply(pair, losses)


def checkpointed_layers():
    for reentrant in (False, True):
        pair = Pair()
        anchor = torch.zeros((), requires_grad=True)
        for step in range(2):
            pair.zero_grad()
            apply(pair, losses_of(pair, lambda e, t: checkpoint(
                lambda ids, nothing: t(e(ids)).square().sum() + nothing, some_ids(step, 6), anchor,
                use_reentrant=reentrant)))


def autocast_of_16_bits():
    pair = Pair()
    for step in range(2):
        pair.zero_grad()
        losses = []
        for layer, tail in pair.models:
            with torch.autocast("cpu", torch.bfloat16):
                losses.append(tail(layer(some_ids(step, 4, 6))).float().square().mean())
        assert torch.allclose(*losses, rtol=1e-2)
        apply(pair, losses)


def ids_of_any_shape_and_type():
    for ids in (torch.tensor(3), torch.empty(0, dtype=torch.int64), some_ids(1, 2, 3, 4),
                some_ids(2, 6).to(torch.int32), some_ids(3, 4, 6).t(), some_ids(4, 10)[::2]):
        pair = Pair()
        losses = losses_of(pair, lambda e, t: t(e(ids)).square().sum())
        if ids.numel():
            apply(pair, losses)
        assert [layer(ids).shape for layer, _ in pair.models][0] == (*ids.shape, 3)


def a_backward_that_raises_leaves_nothing_behind():
    pair = Pair()
    before = rows_of(pair.ours)

    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(context, values):
            return values.clone()

        @staticmethod
        def backward(context, gradients):
            raise MemoryError

    for layer, tail in pair.models:
        try:
            tail(Failing.apply(layer(some_ids(1, 4)))).sum().backward()
            raise AssertionError("nothing was raised")
        except MemoryError:
            pass
    assert torch.equal(rows_of(pair.ours), before)
    pair.zero_grad()
    apply(pair, losses_of(pair, lambda e, t: t(e(some_ids(2, 4))).square().sum()))


def gradients_are_dropped_between_backwards():
    pair = Pair()
    for keep in (True, False):
        for loss in losses_of(pair, lambda e, t: t(e(some_ids(1, 8))).square().sum()):
            loss.backward()
        pair.zero_grad(set_to_none=keep)
        apply(pair, losses_of(pair, lambda e, t: t(e(some_ids(2, 4))).square().sum()))
        pair.zero_grad()


def frozen_and_thawed():
    pair = Pair()
    for number, learns in enumerate((True, False, True)):
        for layer, _ in pair.models:
            layer.requires_grad_(learns)
        pair.zero_grad()
        before = rows_of(pair.ours)
        apply(pair, losses_of(pair, lambda e, t: t(e(some_ids(number, 8))).square().sum()))
        assert torch.equal(rows_of(pair.ours), before) != learns


def detached_rows_learn_nothing():
    pair = Pair()
    before = rows_of(pair.ours)
    apply(pair, losses_of(pair, lambda e, t: t(e(some_ids(1, 4)).detach()).square().sum()))
    assert torch.equal(rows_of(pair.ours), before)


def weights_of_samples_get_gradients():
    pair = Pair(EmbeddingBag, mode="sum")
    weights = [torch.full((5, 3), 0.5, requires_grad=True) for _ in pair.models]
    ids = some_ids(1, 5, 3)
    losses = [tail(layer(ids, per_sample_weights=weight)).square().sum()
              for (layer, tail), weight in zip(pair.models, weights)]
    apply(pair, losses)
    assert torch.allclose(weights[0].grad, weights[1].grad, atol=1e-6)


def empty_bags_and_repeated_ids():
    for mode in ("sum", "mean", "max"):
        pair = Pair(EmbeddingBag, mode=mode)
        ids = torch.tensor([1, 1, 1, 4, 4])
        for offsets in ([0, 0, 3], [0, 5, 5]):
            pair.zero_grad()
            apply(pair, losses_of(pair, lambda e, t: t(e(ids, torch.tensor(offsets))).square().sum()))


def accumulation_with_a_scaler_and_clipping():
    if not hasattr(torch.amp, "GradScaler"):
        return "n/a"
    pair = Pair()
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0) for _ in pair.models]
    for step in range(3):
        pair.zero_grad()
        for part in range(2):
            losses = losses_of(pair, lambda e, t: t(e(some_ids(10 * step + part, 4, 6))).square().sum() / 2)
            for scaler, loss in zip(scalers, losses):
                scaler.scale(loss).backward()
        norms = []
        for scaler, model, (optimizer,) in zip(scalers, pair.models, pair.optimizers):
            scaler.unscale_(optimizer)
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3))
            scaler.step(optimizer)
            scaler.update()
        assert torch.allclose(*norms), norms
        pair.check()
    return None


def a_copy_learns_on_its_own_gradients():
    pair = Pair()
    twin = copy.deepcopy(pair.models[0])
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1) if HAS_HOOKS else None
    if optimizer is None:
        return "n/a"
    before = rows_of(pair.ours)
    twin[0](torch.tensor([2])).sum().backward()
    pair.step()
    assert torch.equal(rows_of(pair.ours), before)  # the copy's gradients are not the layer's
    optimizer.step()
    assert torch.allclose(rows_of(pair.ours)[2], before[2] - 0.1, atol=1e-6)
    return None


def every_id_at_once():
    pair = Pair()
    for step in range(3):
        pair.zero_grad()
        apply(pair, losses_of(pair, lambda e, t: t(e(torch.arange(IDS))).square().sum() * (step + 1)))


if __name__ == "__main__":
    run_all(globals(), (losses_of, apply))
