"""Mixed precision: what a GradScaler does with its factor, and that ranks agree on a bad step."""


def test_an_infinite_gradient_on_one_rank_skips_the_step_of_all(train):
    train("""
from fleetrun.amp import GradScaler
# Not averaged, so that only one rank has the bad gradient.
model = mlp(0)
optimizer = sgd(model)
scaler = fleet.distributed_scaler(GradScaler(decr_every_n_nan_or_inf=1))
before = [parameter.clone() for parameter in model.parameters()]
for number in range(3):
    _, (x, y) = batch()
    optimizer.zero_grad()
    scaler.scale(cross_entropy(model(x), y)).backward()
    if number == 1 and rank == 1:
        model[0].weight.grad[0, 0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    moved = any(not torch.equal(one, other) for one, other in zip(before, model.parameters()))
    assert moved == (number != 1)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    assert scaler.get_scale() == 32768.0 * (1.0 if number == 0 else 0.8)
""").succeeded()


def test_scaled_training_is_unscaled_training(train):
    train("""
from fleetrun.amp import GradScaler
alone, model = mlp(0), fleet.distributed_model(mlp(rank))
optimizer, own = fleet.distributed_optimizer(sgd(model)), sgd(alone)
scaler = GradScaler(**strategy.scaler_arguments())
assert scaler.is_enable() and not scaler.is_use_dynamic_loss_scaling() and scaler.get_scale() == 128.0
for number in range(20):
    everything, (x, y) = batch()
    optimizer.zero_grad()
    scaler.scale(cross_entropy(model(x), y)).backward()
    scaler.minimize(optimizer)
    step(alone, own, *everything)
    assert difference(model, alone) < 1e-6
assert scaler.get_scale() == 128.0
""", strategy="strategy.amp = True\nstrategy.amp_configs = dict(init_loss_scaling=128.0, use_dynamic_loss_scaling=False)"
          ).succeeded()


def test_the_factor_grows_and_shrinks_by_paddles_rule(train):
    train("""
from fleetrun.amp import GradScaler
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([parameter], lr=0.0)
def steps(scaler, gradients):
    factors = []
    for gradient in gradients:
        parameter.grad = torch.full((2,), gradient)
        scaler.step(optimizer)
        scaler.update()
        factors.append(scaler.get_scale())
    return factors
bad = float("nan")
scaler = GradScaler(init_loss_scaling=100.0, incr_every_n_steps=3)
assert steps(scaler, [1.0] * 7) == [100, 100, 200, 200, 200, 400, 400]
assert steps(scaler, [bad, 1.0, bad, bad, bad, bad]) == [400, 400, 400, 320, 320, 256]
# Good steps count from the last bad one.
again = GradScaler()
again.load_state_dict(scaler.state_dict())
assert steps(again, [1.0, 1.0, 1.0]) == [256, 256, 512]
assert GradScaler().state_dict() == {"scale": 32768.0, "incr_ratio": 2.0, "decr_ratio": 0.8, "incr_every_n_steps": 1000,
                                     "decr_every_n_nan_or_inf": 2, "incr_count": 0, "decr_count": 0,
                                     "use_dynamic_loss_scaling": True}
off = GradScaler(enable=False)
assert steps(off, [bad]) == [1.0] and off.scale(2.0) == 2.0
for wrong in ({"init_loss_scaling": 0}, {"incr_ratio": 1}, {"decr_ratio": 1.5}):
    try:
        GradScaler(**wrong)
    except Exception as error:
        assert error.kind == "config" and list(wrong)[0] in error.what
    else:
        raise AssertionError(wrong)
""", 1).succeeded()


def test_autocast_computes_in_bfloat16(train):
    train("""
from fleetrun.amp import auto_cast
model = fleet.distributed_model(mlp(rank))
optimizer = fleet.distributed_optimizer(sgd(model))
for number in range(3):
    _, (x, y) = batch()
    with auto_cast(dtype="bfloat16"):
        out = model(x)
    assert out.dtype == torch.bfloat16
    optimizer.minimize(cross_entropy(out.float(), y))
check_alike(model)
""").succeeded()
