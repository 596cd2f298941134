"""What torch.nn.Embedding and EmbeddingBag do, asked of fleetrun.torch beside them: rows, gradients, steps.
Prints "ok NAME" for each case, "n/a NAME" for one that this PyTorch cannot be asked."""

import copy
import io
import pickle
import warnings

import numpy as np
import torch
from fleetrun import Error, ps
from fleetrun.torch import Embedding, EmbeddingBag, RowOptimizer, prefetch

IDS, WIDTH = 10, 3
HAS_HOOKS = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 1)


def table(name="emb", rate=0.1):
    return ps.SparseTable(name, WIDTH, rule=ps.Rule("sgd", learning_rate=rate),
                          initializer=ps.Uniform(-1, 1, seed=3))


def rows_of(layer):
    return torch.from_numpy(layer.client.pull(layer.table, np.arange(IDS), create=False))


class Pair:
    """A layer of ours and PyTorch's with the same rows, each before the same Linear, and their optimizers."""

    def __init__(self, kind=Embedding, **options):
        torch.manual_seed(1)
        self.ours = kind(ps.Client([table()]), "emb", **options)
        self.theirs = getattr(torch.nn, kind.__name__)(IDS, WIDTH, **options)
        with torch.no_grad():
            self.theirs.weight.copy_(rows_of(self.ours))
            if self.ours.padding_idx is not None:
                self.theirs.weight[self.ours.padding_idx] = 0
        tail = torch.nn.Linear(WIDTH, 2)
        self.models = [torch.nn.ModuleList([layer, copy.deepcopy(tail)])
                       for layer in (self.ours, self.theirs)]
        theirs = [torch.optim.SGD(self.models[1].parameters(), lr=0.1)]
        if HAS_HOOKS:
            ours = [torch.optim.SGD(self.models[0].parameters(), lr=0.1)]
        else:
            ours = [torch.optim.SGD(self.models[0][1].parameters(), lr=0.1),
                    RowOptimizer(self.ours.parameters())]
        self.optimizers = [ours, theirs]

    def zero_grad(self, **options):
        for optimizer in sum(self.optimizers, []):
            optimizer.zero_grad(**options)

    def backward(self, *arguments, scale=1.0, **named):
        losses = [(tail(layer(*arguments, **named)) ** 2).mean() for layer, tail in self.models]
        assert torch.allclose(*losses, rtol=1e-5, atol=1e-7), losses
        for loss in losses:
            (loss * scale).backward()

    def step(self):
        for optimizer in sum(self.optimizers, []):
            optimizer.step()

    def check(self):
        kept = [number for number in range(IDS) if number != self.ours.padding_idx]
        difference = (rows_of(self.ours) - self.theirs.weight.detach())[kept].abs().max()
        assert difference < 1e-5, difference


def some_ids(seed, *shape):
    return torch.randint(0, IDS, shape, generator=torch.Generator().manual_seed(seed))


def each_step_is_pytorchs():
    for options in ({}, {"padding_idx": 0}, {"scale_grad_by_freq": True}):
        pair = Pair(**options)
        for step in range(8):
            pair.zero_grad()
            pair.backward(some_ids(step, 4, 6))
            pair.step()
            pair.check()


def backward_passes_add_up():
    pair = Pair()
    for step in range(6):
        pair.zero_grad(set_to_none=step % 2 == 0)
        for part in range(1 + step % 3):
            pair.backward(some_ids(10 * step + part, 4, 6))
        pair.step()
        pair.check()


def backward_alone_changes_no_row():
    pair = Pair()
    before = rows_of(pair.ours)
    pair.backward(some_ids(1, 5))
    assert torch.equal(rows_of(pair.ours), before)
    pair.zero_grad()
    pair.step()
    assert torch.equal(rows_of(pair.ours), before)


def a_second_step_pushes_nothing():
    pair = Pair()
    pair.backward(some_ids(1, 5))
    pair.step()
    after = rows_of(pair.ours)
    for optimizer in pair.optimizers[0]:
        optimizer.step()
    assert torch.equal(rows_of(pair.ours), after)


def gradients_are_clipped_with_the_rest():
    pair = Pair()
    for step in range(4):
        pair.zero_grad()
        pair.backward(some_ids(step, 4, 6), scale=100.0)
        norms = [torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5) for model in pair.models]
        assert torch.allclose(*norms), norms
        pair.step()
        pair.check()
        pair.zero_grad()
        pair.backward(some_ids(step, 4, 6))
        for model in pair.models:
            torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
        pair.step()
        pair.check()


def a_scaled_loss_is_unscaled_and_its_overflows_are_skipped():
    if not hasattr(torch.amp, "GradScaler"):
        return "n/a"
    pair = Pair()
    scalers = [torch.amp.GradScaler("cpu", init_scale=65536.0) for _ in pair.models]
    for step in range(5):
        pair.zero_grad()
        before = rows_of(pair.ours)
        losses = [(tail(layer(some_ids(step, 4, 6))) ** 2).mean() * (float("inf") if step == 2 else 1.0)
                  for layer, tail in pair.models]
        for scaler, loss, (optimizer,) in zip(scalers, losses, pair.optimizers):
            scaler.scale(loss).backward()
            if step % 2:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        assert torch.equal(rows_of(pair.ours), before) == (step == 2), step
        pair.check()
    assert scalers[0].get_scale() == scalers[1].get_scale() == 32768.0


def eval_keeps_gradients_and_no_grad_makes_no_rows():
    pair = Pair()
    for model in pair.models:
        model.eval()
    pair.backward(some_ids(2, 7))
    pair.step()
    pair.check()
    rows = pair.ours.client.rows("emb")
    with torch.no_grad():
        pair.ours(torch.tensor([77, -5]))
    pair.ours.requires_grad_(False)
    assert not pair.ours(torch.tensor([78])).requires_grad
    assert pair.ours.client.rows("emb") == rows
    pair.ours.requires_grad_(True)
    assert pair.ours(torch.tensor([78])).requires_grad


def bags_are_pytorchs():
    flat, offsets = some_ids(3, 20), torch.tensor([0, 3, 3, 9])
    for mode in ("sum", "mean", "max"):
        for more in ({}, {"padding_idx": 2}, {"include_last_offset": True}):
            if mode == "max" and "include_last_offset" in more and not HAS_HOOKS:
                continue  # PyTorch 1.13 writes beyond its memory
            pair = Pair(EmbeddingBag, mode=mode, **more)
            weights = {"per_sample_weights": torch.rand(20)} if mode == "sum" else {}
            ends = torch.tensor([0, 3, 3, 9, 20]) if "include_last_offset" in more else offsets
            for _ in range(3):
                pair.zero_grad()
                pair.backward(flat, ends, **weights)
                pair.step()
                pair.check()
            pair.backward(some_ids(4, 5, 3))


def bags_of_one_are_pytorchs():
    ids = some_ids(1, 8)
    for mode in ("sum", "mean", "max"):
        pair = Pair(EmbeddingBag, mode=mode, padding_idx=0, scale_grad_by_freq=mode == "sum" and HAS_HOOKS)
        for arguments in ((ids.view(8, 1),), (ids, torch.arange(8)), (ids.int(), torch.arange(8).int()),
                          (ids, torch.tensor([0, 0, 2, 3, 4, 5, 6, 7]))):
            pair.zero_grad()
            pair.backward(*arguments)
            pair.step()
            pair.check()


def a_gradient_that_is_to_be_differentiated_is_kept_alone():
    pair = Pair()
    loss = (pair.models[0][1](pair.ours(some_ids(1, 5))) ** 2).sum()
    if HAS_HOOKS:
        loss.backward(create_graph=True)
        assert not pair.ours.weight.grad.requires_grad


def half_and_double_change_what_it_gives():
    pair = Pair()
    for kind in (torch.float16, torch.float64, torch.float32):
        pair.ours.to(kind)
        rows = pair.ours(some_ids(1, 4))
        assert rows.dtype == kind
        rows.sum().backward()
        assert pair.ours.weight.grad.dtype == kind
        pair.ours.weight.grad = None


def a_copy_shares_the_rows():
    pair = Pair(padding_idx=1)
    pair.backward(some_ids(1, 4))
    other = copy.deepcopy(pair.models[0])
    assert other[0].client is pair.ours.client and other[0].weight.grad is None
    assert torch.equal(other[0](some_ids(2, 6)), pair.ours(some_ids(2, 6)))


def a_state_has_no_rows():
    pair = Pair()
    pair.backward(some_ids(1, 4))
    state = pair.models[0].state_dict()
    assert list(state) == ["1.weight", "1.bias"]
    pair.models[0].load_state_dict(state)
    try:
        pair.models[0].load_state_dict(pair.models[1].state_dict())
        raise AssertionError("rows of a file were taken for those of a table")
    except RuntimeError as error:
        assert "0.weight" in str(error)


def two_tables_go_in_one_change():
    client = ps.Client([table("a"), table("b")])
    layers = [Embedding(client, name) for name in ("a", "b", "a")]
    optimizer = RowOptimizer([layer.weight for layer in layers])
    ids = torch.tensor([1, 2, 2])
    before = {name: client.pull(name, [1, 2]) for name in ("a", "b")}
    calls = client.next_change
    sum(layer(ids).sum() for layer in layers).backward()
    optimizer.step()
    assert client.next_change == calls + 1
    for name, times in (("a", 2), ("b", 1)):
        moved = before[name] - client.pull(name, [1, 2])
        assert np.allclose(moved, np.array([[0.1], [0.2]]) * times), (name, moved)
    many = client.pull_many({"a": [[1, 2]], "b": [2]})
    assert many["a"].shape == (1, 2, WIDTH) and np.array_equal(many["b"], client.pull("b", [2]))


class Unscaling(torch.optim.Optimizer):
    """Takes scaled gradients, as fused optimizers do; a scaler tells it how they are scaled."""

    def step(self):
        pass


def maximize_and_an_optimizers_own_scale_are_followed():
    if not HAS_HOOKS:
        return "n/a"
    layer = Embedding(ps.Client([table()]), "emb")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, maximize=True)
    before = rows_of(layer)[3]
    layer(torch.tensor([3])).sum().backward()
    optimizer.step()
    assert torch.allclose(rows_of(layer)[3], before + 0.1)
    optimizer = Unscaling(layer.parameters(), {})
    optimizer.grad_scale, optimizer.found_inf = torch.tensor(8.0), torch.tensor(0.0)
    (8 * layer(torch.tensor([3])).sum()).backward()
    optimizer.step()
    assert torch.allclose(rows_of(layer)[3], before)
    optimizer.found_inf = torch.tensor(1.0)
    layer(torch.tensor([3])).sum().backward()
    optimizer.step()
    assert torch.allclose(rows_of(layer)[3], before)


def momentum_of_another_optimizer_is_not_confused_by_other_rows():
    if not HAS_HOOKS:
        return "n/a"
    pair = Pair()
    optimizer = torch.optim.Adam(pair.models[0].parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        layer, tail = pair.models[0]
        tail(layer(some_ids(step, 2 + step))).sum().backward()
        optimizer.step()
    assert optimizer.state[pair.ours.weight] == {}


def pytorchs_data_parallel_leaves_the_rows_alone():
    if not HAS_HOOKS:
        return "n/a"
    import torch.distributed as dist
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    client = ps.Client([table()])
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(Embedding(client, "emb"), torch.nn.Linear(WIDTH, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = client.pull("emb", [5])
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.tensor([5])).sum().backward()
        optimizer.step()
    assert (client.pull("emb", [5]) != before).all()
    dist.destroy_process_group()


class Counting(ps.Client):
    """How many tables each request asked for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = []

    def pull_many(self, tables, create=True):
        self.asked.append(len(tables))
        return super().pull_many(tables, create)


def layers_that_are_prefetched_learn_the_same_in_one_request():
    for mode in ("async", "sync"):
        torch.manual_seed(4)
        names = ("a", "b", "c")
        clients = [kind([table(name) for name in names], mode) for kind in (ps.Client, Counting)]
        sides = []
        for client in clients:
            if mode == "sync":
                client.begin_pass()
            layers = [EmbeddingBag(client, name, mode="sum") for name in names] + [Embedding(client, "a")]
            model = torch.nn.ModuleList(layers)
            sides.append((layers, RowOptimizer(model.parameters())))
        batches = [[torch.randint(0, IDS, (4, 2)) for _ in range(4)] for _ in range(6)]
        for number, batch in enumerate(batches):
            if number == 0 or mode == "async":  # there a later one would miss the step before
                prefetch(dict(zip(sides[1][0], batch)))
            losses = [[layer(ids).square().mean() for layer, ids in zip(layers, batch)]
                      for layers, _ in sides]
            assert all(map(torch.equal, *losses)), (mode, number)
            if not HAS_HOOKS:
                continue
            for loss in losses:
                sum(loss).backward()
            if mode == "sync" and number + 1 < len(batches):  # before the step: rows are those after it
                prefetch(dict(zip(sides[1][0], batches[number + 1])))
            for _, optimizer in sides:
                optimizer.step()
                optimizer.zero_grad()
        if HAS_HOOKS or mode == "async":
            assert clients[1].asked == [3] * 6, clients[1].asked
    layer = sides[1][0][1]
    rows = clients[1].pull("b", np.array([7, 1]), create=False)
    clients[1].asked.clear()
    prefetch({layer: torch.tensor([[7], [1]])})
    assert layer(torch.tensor([[1], [2]])).tolist()[0] == rows[1].tolist()  # of other ids nothing was asked
    assert clients[1].asked == [1]


def rows_trained_elsewhere_are_assigned():
    matrix = torch.arange(IDS * WIDTH, dtype=torch.float64).reshape(IDS, WIDTH)
    theirs = torch.nn.Embedding.from_pretrained(matrix.float(), padding_idx=2)
    for given in (matrix, matrix.numpy(), matrix.bfloat16(), matrix.clone().requires_grad_()):
        ours = Embedding.from_pretrained(ps.Client([table()]), "emb", given, padding_idx=2)
        assert not ours.weight.requires_grad and ours.client.rows("emb") == IDS
        ids = torch.tensor([[0, 3], [2, 9]])
        right = theirs(ids)
        right[1, 0] = 0  # PyTorch's layer keeps what the matrix has for the padding
        assert torch.equal(ours(ids), right), (ours(ids), right)
    last = Embedding.from_pretrained(ps.Client([table()]), "emb", matrix, padding_idx=-1)
    assert last.padding_idx == IDS - 1 and not last(torch.tensor([IDS - 1])).any()
    bags = EmbeddingBag.from_pretrained(ps.Client([table()]), "emb", matrix, freeze=False, mode="sum")
    assert bags.weight.requires_grad and bags(torch.tensor([[1, 2]])).tolist() == [[9.0, 11.0, 13.0]]
    layer = Embedding(ps.Client([table()], mode="sync"), "emb")
    prefetch({layer: torch.tensor([3])})
    layer.assign(torch.tensor([[3, 4]], dtype=torch.int32), torch.ones(1, 2, WIDTH).bfloat16())
    assert layer(torch.tensor([3])).tolist() == [[1.0] * WIDTH]
    for made, words in ((lambda: layer.assign([3, 3], torch.ones(2, WIDTH)), "key 3 is there twice"),
                        (lambda: layer.assign(torch.tensor([3]), torch.ones(1, 2)), "[1, 2], not [1, 3]"),
                        (lambda: layer.assign(torch.tensor([3.0]), torch.ones(1, WIDTH)), "not integers"),
                        (lambda: layer.assign(torch.tensor([3]), torch.full((1, WIDTH), torch.nan)), "NaN"),
                        (lambda: Embedding.from_pretrained(layer.client, "emb", matrix[:, :2]), "[10, 2]")):
        try:
            made()
            raise AssertionError(words)
        except Error as error:
            assert words in str(error), error
    assert layer(torch.tensor([3])).tolist() == [[1.0] * WIDTH]


def refused(made, words):
    try:
        made()
    except Error as error:
        assert words in str(error), error
    else:
        raise AssertionError(words)


def nothing_computes_with_the_weight():
    pair = Pair()
    weight, rows = pair.ours.weight, torch.ones(4, WIDTH)
    tied = torch.nn.Linear(WIDTH, IDS, bias=False)
    tied.weight = weight
    for made, word in ((lambda: torch.nn.functional.linear(rows, weight), "linear()"),
                       (lambda: tied(rows), "linear()"),
                       (lambda: rows @ weight.T, "T"), (lambda: rows @ weight.t(), "t()"),
                       (lambda: torch.nn.functional.embedding(torch.tensor([0]), weight), "embedding()"),
                       (lambda: weight.square().sum(), "square()"), (lambda: weight.norm(), "norm()"),
                       (lambda: weight.mul(2), "mul()"), (lambda: weight[0], "__getitem__()"),
                       (lambda: torch.cat([weight, rows]), "cat()"), (lambda: weight.data.sum(), "sum()"),
                       (lambda: rows.copy_(weight), "copy_()"),
                       (lambda: torch.nn.functional.linear(rows, weight=weight.data), "linear()")):
        refused(made, f"the layer of table 'emb' is used by {word}, and its rows")
        with torch.no_grad():
            refused(made, word)
    pair.backward(some_ids(1, 4))  # it has values of no meaning now
    refused(lambda: tied(rows), "linear()")
    assert weight.numel() == len(weight) * WIDTH and weight.dtype == torch.float32 and weight.is_leaf
    assert "Weight" in repr(weight) and torch.zeros_like(weight).shape == weight.shape and weight.dim() == 2
    pair.step()
    pair.check()


def files_of_a_layer_are_refused():
    layer = Embedding(ps.Client([table()]), "emb")
    for what in (layer, torch.nn.Sequential(layer), layer.weight, list(layer.parameters())):
        refused(lambda: torch.save(what, io.BytesIO()), "the layer of table 'emb' is to be pickled")
        refused(lambda: pickle.dumps(what), "ps.Client.save")


def an_optimizer_copied_with_its_model_has_the_copys_weight():
    if not HAS_HOOKS:
        return "n/a"
    layer = Embedding(ps.Client([table()]), "emb")
    for made in ((layer, torch.optim.SGD(layer.parameters(), lr=0.1)),
                 (torch.optim.SGD(layer.parameters(), lr=0.1), layer)):
        copies = copy.deepcopy(made)
        twin, optimizer = copies if isinstance(copies[0], Embedding) else copies[::-1]
        assert optimizer.param_groups[0]["params"][0] is twin.weight is not layer.weight
        before = rows_of(layer)
        twin(torch.tensor([2])).sum().backward()
        optimizer.step()
        assert torch.allclose(rows_of(layer)[2], before[2] - 0.1, atol=1e-6)
    return None


def what_cannot_be_is_said():
    layer = Embedding(ps.Client([table()]), "emb")
    matrix = torch.nn.Parameter(torch.ones(IDS, WIDTH))
    for made, words in ((lambda: layer(torch.tensor([0.5])), "not integers"),
                        (lambda: RowOptimizer(torch.nn.Linear(1, 1).parameters()), "no fleetrun.torch layer"),
                        (lambda: EmbeddingBag(layer.client, "emb", mode="median"), "'median'"),
                        (lambda: prefetch({layer: torch.tensor([0.5])}), "not integers"),
                        (lambda: setattr(layer.weight, "data", matrix.data), "'emb' is set to [10, 3]"),
                        (lambda: layer.weight.data.uniform_(-1, 1), "'emb' is changed by uniform_()"),
                        (lambda: torch.nn.init.normal_(layer.weight), "'emb' is changed by normal_()"),
                        (lambda: layer.weight.data.copy_(matrix.data[:0]), "'emb' is changed by copy_()"),
                        (lambda: layer.weight.data.__setitem__(0, 1.0), "'emb' is changed by __setitem__()"),
                        (lambda: setattr(layer, "weight", matrix), "on the servers")):
        try:
            made()
            raise AssertionError(words)
        except Error as error:
            assert words in str(error), error
    layer(torch.tensor([3])).sum().backward() if HAS_HOOKS else None
    other = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(12):
            other.step()
        if HAS_HOOKS:
            torch.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.5).step()
    words = " ".join(str(one.message) for one in told)
    assert not HAS_HOOKS or ("10 steps of optimizers without" in words and "l2_decay" in words), words
    if HAS_HOOKS:
        try:
            torch.optim.SGD(layer.parameters(), lr=0.1).step(lambda: 1.0)
            raise AssertionError("a closure")
        except Error as error:
            assert "closure" in str(error)
    else:
        try:
            layer(torch.tensor([3])).sum().backward()
            raise AssertionError("no hooks")
        except Error as error:
            assert "RowOptimizer" in str(error)


def run_all(names, but):
    """Runs the functions of a script that take nothing, without those that only help."""
    for name, case in list(names.items()):
        if getattr(case, "__module__", "") == "__main__" and not isinstance(case, type) and case not in but:
            print(case() or "ok", name, flush=True)


if __name__ == "__main__":
    run_all(globals(), (table, rows_of, some_ids, refused, run_all))
