"""What paddle.nn.Embedding does in dygraph scripts, asked of fleetrun.paddle beside it. Prints "ok NAME" for
each case. Needs a Python with PaddlePaddle 3 and the package under test."""

import sys
import warnings

import numpy as np
import paddle
from fleetrun import Error, ps
from fleetrun.paddle import Embedding, client, prefetch, use_mode

IDS, WIDTH = 10, 3
Uniform = paddle.nn.initializer.Uniform
RATES = paddle.optimizer.lr


class Wide(paddle.nn.Layer):
    """Two lookups of one layer, and one of another, before a Linear."""

    def __init__(self, kind, attr=None, **options):
        super().__init__()
        self.first = kind(IDS, WIDTH, weight_attr=attr or paddle.ParamAttr(initializer=Uniform()), **options)
        self.second = kind(IDS, 2, **options)
        self.tail = paddle.nn.Linear(2 * WIDTH + 2, 2)

    def forward(self, ids):
        rows = [self.first(ids[:, 0]), self.first(ids[:, 1]), self.second(ids[:, 2])]
        return (self.tail(paddle.concat(rows, axis=1)) ** 2).mean()


def ids_of(step, rows=6):
    return paddle.to_tensor(np.random.default_rng(step).integers(0, IDS, (rows, 3)))


def pair(optimizer, sparse=True, **options):
    """A model of ours and one of Paddle's with the same values, and their optimizers."""
    models = [Wide(kind, sparse=sparse, **options) for kind in (Embedding, paddle.nn.Embedding)]
    made = [optimizer(model.parameters()) for model in models]
    return models, made


def equalize(models):
    models[1].set_state_dict(models[0].state_dict())


def rows_match(models, padding=None, limit=2e-6):
    for name in ("first", "second"):
        both = [getattr(model, name).state_dict()["weight"].numpy() for model in models]
        kept = [number for number in range(IDS) if number != padding]
        assert np.abs(both[0] - both[1])[kept].max() < limit, (name, both)


def train(models, optimizers, steps=6, before=lambda *_: None):
    for step in range(steps):
        losses = []
        for model, optimizer in zip(models, optimizers):
            loss = model(ids_of(step))
            loss.backward()
            before(optimizer)
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
        assert abs(losses[0] - losses[1]) < 1e-5, (type(optimizers[0]).__name__, step, losses)


PAIRS = {
    "sgd": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
    # With sparse gradients Paddle 3.3 updates the row of the padding, has no frequencies, and its first steps
    # of Adam are three quarters of what they are without.
    "padding": pair(lambda p: paddle.optimizer.SGD(0.1, p), False, padding_idx=-8),
    "frequencies": pair(lambda p: paddle.optimizer.SGD(0.1, p), False, scale_grad_by_freq=True),
    "scheduled": pair(lambda p: paddle.optimizer.SGD(RATES.StepDecay(0.5, 2, 0.5), p)),
    "adam": pair(lambda p: paddle.optimizer.Adam(0.1, parameters=p), False),
    "adagrad": pair(lambda p: paddle.optimizer.Adagrad(0.1, parameters=p)),
    "global norm": pair(
        lambda p: paddle.optimizer.SGD(0.1, p, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.05))),
    "slower": pair(lambda p: paddle.optimizer.SGD(0.1, p),
                   attr=paddle.ParamAttr(initializer=Uniform(), learning_rate=0.1)),
    "groups": pair(lambda p: paddle.optimizer.SGD(
        0.1, [{"params": p[:2]}, {"params": p[2:], "learning_rate": 0.1}])),
    "accumulated": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
    "scaled": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
    "frozen": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
    "prefetched": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
    "loaded": pair(lambda p: paddle.optimizer.SGD(0.1, p)),
}
TOUCHED = Embedding(IDS, WIDTH)
WIDE = Embedding(None, 2, initializer=ps.Constant(0.5), rule=ps.Rule("sgd", learning_rate=1.0))


def steps_are_paddles():
    for name in ("sgd", "frequencies", "adagrad", "global norm", "slower", "groups"):
        equalize(PAIRS[name][0])
        train(*PAIRS[name])
        rows_match(PAIRS[name][0])
    equalize(PAIRS["padding"][0])
    train(*PAIRS["padding"])
    rows_match(PAIRS["padding"][0], padding=2)


def adam_is_paddles_where_each_step_has_all_rows():
    """Servers count the steps of each row, Paddle those of the matrix."""
    models, optimizers = PAIRS["adam"]
    equalize(models)
    every = paddle.to_tensor(np.stack([np.arange(IDS)] * 3, axis=1))
    for _ in range(5):
        losses = [model(every) for model in models]
        assert abs(float(losses[0]) - float(losses[1])) < 1e-5, losses
        for loss, optimizer in zip(losses, optimizers):
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    rows_match(models, limit=1e-5)


def a_scheduled_rate_is_that_of_each_step():
    models, optimizers = PAIRS["scheduled"]
    equalize(models)
    train(models, optimizers, before=lambda optimizer: optimizer._learning_rate.step())
    rows_match(models)


def backward_passes_add_up_and_clear_grad_drops_them():
    models, optimizers = PAIRS["accumulated"]
    equalize(models)
    for model, optimizer in zip(models, optimizers):
        model(ids_of(1)).backward()
        optimizer.clear_grad()
        for step in (2, 3):
            model(ids_of(step)).backward()
        assert model.first.weight.grad is not None
        optimizer.step()
        optimizer.clear_grad()
    rows_match(models)
    now = models[0].first.state_dict()["weight"].numpy()
    optimizers[0].step()
    assert (models[0].first.state_dict()["weight"].numpy() == now).all()


def a_scaled_loss_is_unscaled_and_its_overflows_are_skipped():
    models, optimizers = PAIRS["scaled"]
    equalize(models)
    scalers = [paddle.amp.GradScaler(init_loss_scaling=1024.0) for _ in models]
    # Paddle 3.3 has no scaler on a CPU: it lets everything through, and an infinity is refused by the push.
    overflow = float("inf") if scalers[0].is_enable() else 1.0
    for step, factor in enumerate((1.0, overflow, 1.0)):
        for model, optimizer, scaler in zip(models, optimizers, scalers):
            scaler.scale(model(ids_of(step)) * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.clear_grad()
    rows_match(models)


def eval_looks_and_makes_no_rows():
    models, _ = PAIRS["frozen"]
    equalize(models)
    table = models[0].first.table
    with paddle.no_grad():
        assert abs(float(models[0](ids_of(1))) - float(models[1](ids_of(1)))) < 1e-6
    assert client().rows(table) == 0
    models[0].first.weight.stop_gradient = True
    models[0](ids_of(1)).backward()
    assert client().rows(table) == 0 and models[0].first.weight.grad is None


def layers_are_prefetched_in_one_request():
    models, optimizers = PAIRS["prefetched"]
    equalize(models)
    for step in range(4):
        ids = ids_of(step)
        prefetch({models[0].first: ids[:, 0], models[0].second: ids[:, 2]})
        losses = [model(ids) for model in models]
        assert abs(float(losses[0]) - float(losses[1])) < 1e-5
        for loss, optimizer in zip(losses, optimizers):
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
    rows_match(models)


def a_state_is_paddles_both_ways():
    models, optimizers = PAIRS["loaded"]
    models[0].set_state_dict(models[1].state_dict())
    train(models, optimizers)
    rows_match(models)
    paddle.save(models[0].state_dict(), "ours.pdparams")
    models[1].set_state_dict(paddle.load("ours.pdparams"))
    rows_match(models, limit=1e-9)
    assert len(models[0].state_dict()) == 4 and len(models[0].parameters()) == 4


def the_weight_takes_all_rows_and_has_no_values():
    layer = PAIRS["loaded"][0][0].first
    matrix = np.random.default_rng(0).random((IDS, WIDTH), dtype="float32")
    layer.weight.set_value(matrix)
    assert (layer(paddle.arange(IDS)).numpy() == matrix).all()
    # What shares the weight must not go on with values that nobody has.
    tied = paddle.nn.functional.linear(paddle.ones([2, 1]), layer.weight)
    assert np.isnan(tied.numpy()).all() and np.isnan(float((layer.weight ** 2).sum()))


def any_number_is_an_id_without_num_embeddings():
    ids = paddle.to_tensor([[2**40, -1]])
    rows = WIDE(ids)
    assert rows.numpy().tolist() == [[[0.5, 0.5], [0.5, 0.5]]]
    optimizer = paddle.optimizer.LBFGS(parameters=[paddle.create_parameter([1], "float32")])
    assert optimizer is not None
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert WIDE.state_dict() == {} and WIDE.state_dict() == {}
    assert len(told) == 1 and "client().save" in str(told[0].message)


def late_step(layer):
    optimizer = paddle.optimizer.Adam(0.1, parameters=layer.parameters())
    layer(paddle.to_tensor([1])).sum().backward()
    try:
        optimizer.step()
    finally:
        optimizer.clear_grad()


def what_cannot_be_is_said():
    layer = PAIRS["sgd"][0][0].first
    paddle.nn.initializer.Normal()(TOUCHED.weight)
    ours = (Error, ValueError)
    for made, words in ((lambda: layer(paddle.to_tensor([IDS])), "is not within [0, 10)"),
                        (lambda: layer(paddle.to_tensor([-1])), "is not within [0, 10)"),
                        (lambda: layer(paddle.to_tensor([0.5])), "not integers"),
                        (lambda: Embedding(IDS, WIDTH), "after the first forward"),
                        (lambda: Embedding(IDS, WIDTH, padding_idx=IDS), "padding_idx"),
                        (lambda: Embedding(IDS, WIDTH, max_norm=1.0), "max_norm=1.0"),
                        (lambda: Embedding(IDS, WIDTH, weight_attr=paddle.ParamAttr(
                            initializer=paddle.nn.initializer.Orthogonal())), "Orthogonal"),
                        (lambda: Embedding(None, WIDTH), "without num_embeddings"),
                        (lambda: use_mode("sync" if sys.argv[1] == "geo" else "geo"), "after the"),
                        (lambda: paddle.optimizer.Lamb(0.1, parameters=[layer.weight]), "not know: Lamb"),
                        (lambda: late_step(layer), "before its Adam was made"),
                        (lambda: TOUCHED(paddle.to_tensor([1])), "was given values"),
                        (lambda: layer.weight.set_value(np.ones((1, 3), "float32")), "shape [1, 3] for"),
                        (lambda: layer.assign([1, 1], np.ones((2, WIDTH))), "key 1 is there twice")):
        try:
            made()
            raise AssertionError(words)
        except ours as error:
            assert words in str(error), error


use_mode(sys.argv[1])
CASES = [value for value in list(globals().values())
         if getattr(value, "__module__", "") == "__main__" and callable(value) and not isinstance(value, type)
         and value not in (ids_of, pair, equalize, rows_match, train, late_step)]
for case in CASES:
    print(case() or "ok", case.__name__, flush=True)
