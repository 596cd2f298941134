"""fleet.distributed_model and fleet.distributed_optimizer on torch modules:
against one process with all ranks' examples."""

import pytest

EQUAL = """
alone, model = mlp(0), mlp(rank)
model = fleet.distributed_model(model)
optimizer, own = fleet.distributed_optimizer(sgd(model)), sgd(alone)
assert list(model.state_dict()) == list(alone.state_dict())
for number in range(100):
    everything, mine = batch()
    step(model, optimizer, *mine)
    if number < 20:
        step(alone, own, *everything)
        assert difference(model, alone) < 1e-6, (number, difference(model, alone))
check_alike(model)
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_train_as_one_process_with_all_their_examples(train, ranks):
    train(EQUAL, ranks).succeeded()


@pytest.mark.parametrize("strategy, environment", [
    ("strategy.fuse_all_reduce_ops = False", {}),
    ("strategy.nccl_comm_num = 3\nstrategy.fuse_all_reduce_ops = False", {}),
    ("strategy.last_comm_group_size_MB = 0", {"FLAGS_fuse_parameter_memory_size": "-1"}),
    ("", {"FLAGS_fuse_parameter_memory_size": "0.01", "FLAGS_fuse_parameter_groups_size": "2"}),
])
def test_buckets_change_no_result(train, strategy, environment):
    train(EQUAL, strategy=strategy, **environment).succeeded()


def test_two_levels_change_no_result(train):
    train(EQUAL, 4,
          strategy="strategy.use_hierarchical_allreduce = True\n"
                   "strategy.hierarchical_allreduce_inter_nranks = 2").succeeded()


def test_buckets_follow_the_order_of_backward_and_the_rule(train):
    train("""
class Reversed(torch.nn.Module):
    # Its parameters are listed in another order than backward's.
    def __init__(self):
        super().__init__()
        self.last, self.first = torch.nn.Linear(8, 2), torch.nn.Linear(4, 8)

    def forward(self, x):
        return self.last(self.first(x))

model = fleet.distributed_model(Reversed())
for _ in range(2):
    model(torch.ones(2, 4)).sum().backward()
names = [model._reducer._names[index] for index in model._reducer._places]
assert model._reducer.bucket_sizes == [2, 2], model._reducer.bucket_sizes
assert sorted(names[:2]) == ["last.bias", "last.weight"], names
""", strategy="strategy.fuse_grad_size_in_MB = 1\nstrategy.last_comm_group_size_MB = 0",
          FLAGS_fuse_parameter_memory_size="-1").succeeded()


def test_unused_parameters(train):
    train("""
class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.used = torch.nn.Linear(3, 1)
        self.sometimes = torch.nn.Linear(3, 1)
        self.never = torch.nn.Linear(3, 1)

    def forward(self, x, both):
        return self.used(x) + (self.sometimes(x) if both else 0)

torch.manual_seed(0)
model = fleet.distributed_model(Branches())
for round in range(3):
    model.zero_grad(set_to_none=True)
    model(torch.ones(2, 3), both=rank == 0).sum().backward()
    # Rank 0 alone has used it: its gradient, 2, is divided by both.
    assert model.sometimes.weight.grad.tolist() == [[1.0] * 3], model.sometimes.weight.grad
    assert model.used.weight.grad.tolist() == [[2.0] * 3]
    assert model.never.weight.grad is None
    model.zero_grad(set_to_none=True)
    model(torch.ones(2, 3), both=False).sum().backward()
    assert model.sometimes.weight.grad is None and model.used.weight.grad is not None
""").succeeded()


def test_no_sync_adds_up_and_the_next_backward_averages(train):
    train("""
alone, model = mlp(0), fleet.distributed_model(mlp(0))
parts = [batch() for _ in range(3)]
for number, (_, (x, y)) in enumerate(parts):
    with model.no_sync() if number < 2 else contextlib.nullcontext():
        cross_entropy(model(x), y).backward()
    if number < 2:
        ranks = []
        dist.all_gather(ranks, model.module[0].weight.grad.clone())
        assert not torch.equal(ranks[0], ranks[1]), "averaged within no_sync"
for (x, y), _ in parts:
    cross_entropy(alone(x), y).backward()
for one, other in zip(model.parameters(), alone.parameters()):
    assert torch.allclose(one.grad, other.grad, atol=1e-6)
""").succeeded()


def test_sparse_gradients_are_gathered(train):
    train("""
class Words(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.nn.Embedding(50, 4, sparse=True)
        self.top = torch.nn.Linear(4, 2)

    def forward(self, ids):
        return self.top(self.rows(ids).mean(1))

torch.manual_seed(0)
alone = Words()
torch.manual_seed(rank)
model = fleet.distributed_model(Words())
optimizer, own = fleet.distributed_optimizer(sgd(model, momentum=0, weight_decay=0)), sgd(alone, momentum=0, weight_decay=0)
for number in range(10):
    ids, y = torch.randint(50, (6 * size, 3), generator=examples), torch.randint(2, (6 * size,), generator=examples)
    mine = slice(rank * 6, rank * 6 + 6)
    step(model, optimizer, ids[mine], y[mine])
    step(alone, own, ids, y)
    assert model.rows.weight.grad.is_sparse
    assert difference(model, alone) < 1e-6
check_alike(model)
""").succeeded()


def test_buffers_are_those_of_rank_0(train):
    train("""
model = fleet.distributed_model(mlp(rank, [torch.nn.BatchNorm1d(64)]))
optimizer = fleet.distributed_optimizer(sgd(model))
for number in range(5):
    _, mine = batch()
    step(model, optimizer, *mine)
_, (x, _) = batch()
model(x)                 # rank 0's statistics go out before each forward
state = [model.module[1].running_mean.clone()]
with torch.no_grad():
    model(x)
model.eval()
model(x)
assert not model.module.training
model.train()
cross_entropy(model(x), torch.zeros(8, dtype=torch.int64)).backward()
means = []
dist.all_gather(means, model.module[1].num_batches_tracked.reshape(1))
assert means[0] == means[1]
""").succeeded()


def test_models_that_differ_are_named(train):
    result = train("""
try:
    fleet.distributed_model(torch.nn.Linear(3, 2 + rank))
except Exception as error:
    assert error.kind == "config"
    print(error)
try:
    fleet.distributed_model("a model")
except Exception as error:
    print(error)
""").succeeded()
    assert "the model of rank 1 is not that of rank 0" in result.logs[0]
    assert "it is not a torch.nn.Module" in result.logs[1]


def test_float16_on_the_way(train):
    train("""
alone, model = mlp(0), fleet.distributed_model(mlp(rank))
optimizer, own = fleet.distributed_optimizer(sgd(model)), sgd(alone)
for number in range(20):
    everything, mine = batch()
    step(model, optimizer, *mine)
    step(alone, own, *everything)
assert 1e-7 < difference(model, alone) < 1e-2, difference(model, alone)
check_alike(model)
""", strategy="strategy.fp16_allreduce = True").succeeded()


def test_a_torch_schedule_takes_the_optimizer_and_rates_are_scaled(train):
    train("""
from fleetrun.distributed.parallel import LinearWarmup, scaled_learning_rate
assert scaled_learning_rate(0.1) == 0.2
assert scaled_learning_rate(0.1, 32, 32) == 0.1 and scaled_learning_rate(0.1, 32, 128) == 0.4
model = fleet.distributed_model(mlp(0))
optimizer = fleet.distributed_optimizer(sgd(model, lr=scaled_learning_rate(0.1)))
assert isinstance(optimizer, torch.optim.SGD)
schedule = LinearWarmup(optimizer, 4, start_factor=0.5)
rates = []
for _ in range(6):
    _, mine = batch()
    rates.append(round(optimizer.param_groups[0]["lr"], 6))
    optimizer.minimize(cross_entropy(model(mine[0]), mine[1]))
    optimizer.clear_grad()
    schedule.step()
assert rates == [0.1, 0.125, 0.15, 0.175, 0.2, 0.2], rates
""").succeeded()


def test_deep_gradient_compression_learns_and_keeps_ranks_alike(train):
    train("""
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(20, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 5))
model = fleet.distributed_model(model)
optimizer = fleet.distributed_optimizer(sgd(model, lr=0.05, weight_decay=0))
teacher = torch.randn(20, 5, generator=examples)
losses = []
for number in range(60):
    x = torch.randn(32 * size, 20, generator=examples)[rank * 32:rank * 32 + 32]
    losses.append(step(model, optimizer, x, (x @ teacher).argmax(1)))
    if number == 4:
        assert "momentum_buffer" in optimizer.state[model.module[0].weight]
assert model._reducer.bucket_sizes == [3, 1], model._reducer.bucket_sizes  # the 20,480 values of the first layer lie alone
compression = model._reducer.compression
assert compression.sparsity == 0.99 and "momentum_buffer" in optimizer.state[model.module[0].bias]
assert sum(losses[-5:]) < 0.6 * sum(losses[:5]), losses
check_alike(model)
""", strategy="strategy.dgc = True\nstrategy.dgc_configs = dict(rampup_begin_step=5, rampup_step=4, sparsity=[0.75, 0.9, 0.99])"
          ).succeeded()


def test_one_process_is_left_alone(train):
    train("""
model = mlp(0)
wrapped = fleet.distributed_model(model)
optimizer = fleet.distributed_optimizer(sgd(wrapped))
everything, mine = batch()
step(wrapped, optimizer, *mine)
assert wrapped._reducer is None and wrapped.module is model
""", 1).succeeded()


def test_numbers_are_those_of_pytorchs_own_data_parallel_training(train):
    train("""
torch.distributed.init_process_group("gloo")
twin = torch.nn.parallel.DistributedDataParallel(mlp(0))
model = fleet.distributed_model(mlp(rank))
optimizer, own = fleet.distributed_optimizer(sgd(model)), sgd(twin)
for number in range(30):
    _, mine = batch()
    step(model, optimizer, *mine)
    step(twin, own, *mine)
    assert difference(model, twin) < 1e-6, (number, difference(model, twin))
torch.distributed.destroy_process_group()
""").succeeded()
