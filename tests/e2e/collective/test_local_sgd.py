"""Local SGD: ranks that train apart and average their parameters now and then."""


def test_one_local_step_is_synchronous_sgd(train):
    train("""
alone, model = mlp(0), fleet.distributed_model(mlp(rank))
optimizer, own = fleet.distributed_optimizer(sgd(model)), sgd(alone)
for number in range(50):
    everything, mine = batch()
    step(model, optimizer, *mine)
    step(alone, own, *everything)
    assert difference(model, alone) < 1e-5, (number, difference(model, alone))
check_alike(model)
""", strategy="strategy.use_local_sgd = True\nstrategy.local_sgd_steps = 1").succeeded()


def test_ranks_are_averaged_every_k_steps_and_before_begin_step_in_each(train):
    train("""
model = fleet.distributed_model(mlp(rank))
optimizer = fleet.distributed_optimizer(sgd(model, momentum=0))
averaged = []
for number in range(1, 16):
    _, mine = batch()
    step(model, optimizer, *mine)
    parts = []
    dist.all_gather(parts, model.module[0].weight.detach().clone())
    if torch.equal(parts[0], parts[1]):
        averaged.append(number)
assert averaged == [1, 2, 3, 4, 5, 9, 13], averaged
""", strategy="strategy.use_local_sgd = True\nstrategy.local_sgd_steps = 4\nstrategy.local_sgd_is_warm_steps = 5").succeeded()


def test_the_average_is_of_what_ranks_have_moved(train):
    train("""
model = fleet.distributed_model(torch.nn.Linear(1, 1, bias=False))
optimizer = fleet.distributed_optimizer(sgd(model, lr=1.0, momentum=0, weight_decay=0))
before = model.weight.item()
for _ in range(3):
    optimizer.zero_grad()
    (model(torch.ones(1, 1)) * (rank + 1)).sum().backward()
    optimizer.step()
# Three steps of -1 and of -2.
assert abs(model.weight.item() - (before - 4.5)) < 1e-6
""", strategy="strategy.localsgd = True\nstrategy.localsgd_configs = dict(k_steps=2, begin_step=1)"
          ).succeeded()


def test_adaptive_steps_grow_shorter_with_the_loss(train):
    train("""
model = fleet.distributed_model(torch.nn.Linear(1, 1))
optimizer = fleet.distributed_optimizer(sgd(model, lr=0.1))
local = optimizer._fleetrun._local
def pass_of(loss):
    optimizer.zero_grad()
    model(torch.ones(1, 1)).sum().backward()
    optimizer.observe(loss)
    optimizer.step()
def passes(losses):
    for loss in losses:
        pass_of(loss)
    return local.k_steps
assert passes([3.5 + rank]) == 4              # begin_step; the mean of both ranks is 4
assert passes([9.0, 9.0, 9.0]) == 4           # apart
assert passes([3.5 + rank]) == 2              # sqrt(4 / 4 * 4)
assert passes([9.0, 0.5 + rank]) == 1         # sqrt(1 / 4 * 4)
assert passes([10000.0]) == 16
optimizer.zero_grad()
""", strategy="strategy.adaptive_localsgd = True\nstrategy.adaptive_localsgd_configs = dict(init_k_steps=4, begin_step=1)"
          ).succeeded()


def test_optimizers_whose_steps_are_not_linear_are_refused(train):
    result = train("""
model = fleet.distributed_model(mlp(0))
try:
    fleet.distributed_optimizer(torch.optim.Adam(model.parameters()))
except Exception as error:
    assert error.kind == "config" and error.hint
    print(error)
""", 1, strategy="strategy.localsgd = True").succeeded()
    assert "local SGD with Adam: it is for SGD" in result.logs[0]
