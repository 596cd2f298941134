"""What is refused, accepted and left out, and what is said when ranks go apart."""
import copy
import os
import random

import torch
from torch import nn

from ddp_side import Missing, alike, backward, case, check_means, data, net, refused



@case
def modules_that_differ_are_refused(side):
    with refused():
        side.wrap(nn.Linear(3, 2 + side.rank))


@case
def modules_with_more_parameters_are_refused(side):
    with refused():
        side.wrap(nn.Sequential(*[nn.Linear(3, 3) for _ in range(1 + side.rank)]))


@case
def modules_without_gradients_are_refused(side):
    with refused():
        side.wrap(nn.Linear(3, 2).requires_grad_(False))


@case
def modules_that_are_not_initialized_are_refused(side):
    with refused():
        side.wrap(nn.LazyLinear(2))


@case
def device_ids_of_a_module_on_the_host_are_refused(side):
    with refused():
        side.wrap(net(), device_ids=[0])


@case
def what_is_no_module_is_refused(side):
    with refused(RuntimeError, TypeError, ValueError, AttributeError):
        side.wrap("a model")


@case
def arguments_that_change_no_number(side):
    plain = net()
    model = side.wrap(copy.deepcopy(plain), find_unused_parameters=False, static_graph=True, bucket_cap_mb=1,
                      device_ids=None, output_device=None)
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def parameters_to_ignore(side):
    plain = net(side.rank)
    module = copy.deepcopy(plain)
    module._ddp_params_and_buffers_to_ignore = ["0.weight"]
    model = side.wrap(module)
    assert not alike(model.module[0].weight)
    backward(model, data(side.rank))
    assert not alike(model.module[0].weight.grad) and alike(model.module[2].weight.grad)


@case
def group_of_one_rank(side):
    groups = [side.group([rank]) for rank in range(side.size)]
    plain = net(side.rank)
    model = side.wrap(copy.deepcopy(plain), process_group=groups[side.rank])
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    assert torch.allclose(model.module[0].weight.grad, plain[0].weight.grad)


@case
def group_of_all_ranks(side):
    plain = net()
    model = side.wrap(net(side.rank), process_group=side.group(list(range(side.size))))
    backward(model, data(side.rank))
    backward(plain, data(side.rank))
    check_means(model, plain)


@case
def module_and_training_flag(side):
    module = net()
    model = side.wrap(module)
    assert model.module is module and model.training
    model.eval()
    assert not module.training
    with torch.no_grad():
        assert not model(data(side.rank)).requires_grad


@case
def what_it_tells_of_itself(side):
    class Sized(nn.Module):
        dim = 7

        def __init__(self):
            super().__init__()
            self.part = net()

        def forward(self, x):
            return self.part(x)

    model = side.wrap(net(), bucket_cap_mb=2, find_unused_parameters=True)
    assert model.device == torch.device("cpu") and model.device_ids is None and model.output_device is None
    assert (model.dim, model.bucket_bytes_cap, model.device_type) == (0, 2 << 20, "cpu")
    assert model.find_unused_parameters and model.broadcast_buffers and not model.static_graph
    assert not model.gradient_as_bucket_view and model.require_forward_param_sync
    assert model.process_group.rank if side.rank else model.process_group is not None
    assert not model.is_multi_device_module and model.parameters_to_ignore == set()
    with refused(AttributeError):
        model.no_such_attribute
    model._set_ddp_runtime_logging_sample_rate(1)
    backward(model, data(side.rank))
    told = model._get_ddp_logging_data()
    assert (told["world_size"], told["rank"], told["module_name"]) == (side.size, side.rank, "Sequential")
    assert (told["num_parameter_tensors"], told["total_parameter_size_bytes"]) == (4, 4 * 67)
    assert (told["dtypes"], told["bucket_cap_bytes"], told["find_unused_parameters"]) == ("float", 2 << 20, 1)
    assert side.name == "torch" or side.wrap(Sized()).dim == 7  # a module's own come first


@case
def hooks_by_the_name_of_their_kind(side):
    from torch.distributed import BuiltinCommHookType
    for kind, near in ((BuiltinCommHookType.ALLREDUCE, 1e-5), (BuiltinCommHookType.FP16_COMPRESS, 1e-2)):
        plain = net()
        model = side.wrap(copy.deepcopy(plain))
        model._register_builtin_comm_hook(kind)
        for seed in range(2):
            model.zero_grad()
            plain.zero_grad()
            backward(model, data(side.rank, seed=seed))
            backward(plain, data(side.rank, seed=seed))
            check_means(model, plain, near)


def ours_alone(side):
    if side.name == "torch":
        raise Missing


@case
def one_rank_whose_backward_raised_is_named(side):
    ours_alone(side)
    plain = net()
    model = side.wrap(copy.deepcopy(plain))
    backward(model, data(side.rank))
    model.zero_grad()
    handle = list(model.parameters())[0].register_hook(lambda gradient: 1 / 0) if side.rank == 1 else None
    try:
        backward(model, data(side.rank))
    except ZeroDivisionError:
        assert side.rank == 1
        handle.remove()
    except RuntimeError as error:
        assert side.rank != 1 and "rank 1 raised in its backward of step 2" in str(error), error
    else:
        raise AssertionError("the others heard nothing")
    model.zero_grad(set_to_none=True)
    for seed in range(2):
        backward(model, data(side.rank, seed=seed))
        backward(plain, data(side.rank, seed=seed))
    check_means(model, plain)


@case
def ranks_that_drift_apart_are_named(side):
    ours_alone(side)
    os.environ["FLEETRUN_SENTINEL"] = "every"
    for name in ("0.weight", "2.bias"):
        model = side.wrap(net())
        backward(model, data(side.rank))
        if side.rank == 1:
            parameter = dict(model.named_parameters())[name]
            bits = parameter.detach().view(-1).view(torch.int32)
            bits[1] ^= 1 << 3  # one bit of one value
        try:
            backward(model, data(side.rank))
        except RuntimeError as error:
            assert f"'{name}' of rank " in str(error) and "step 2" in str(error), error
        else:
            raise AssertionError("nobody noticed")


@case
def rank_that_skips_an_average_is_named(side):
    ours_alone(side)
    os.environ["FLEETRUN_SENTINEL"] = "every"
    model = side.wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    backward(model, data(side.rank))
    optimizer.step()
    if side.rank == 1:
        with model.no_sync():
            backward(model, data(side.rank))
        optimizer.step()
    try:
        backward(model, data(side.rank))
    except RuntimeError as error:
        assert "have drifted apart" in str(error), error
    else:
        raise AssertionError("nobody noticed")


@case
def faults_of_both_kinds_are_found_in_their_step(side):
    ours_alone(side)
    os.environ["FLEETRUN_SENTINEL"] = "every"
    faults = int(os.environ.get("DDP_FAULTS", "60"))
    model = side.wrap(net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = dict(model.named_parameters())
    first = {name: value.detach().clone() for name, value in parameters.items()}
    draw, found = random.Random(1), 0
    for number in range(faults):
        rank, name = draw.randrange(side.size), draw.choice(sorted(parameters))
        value = parameters[name].detach().view(-1).view(torch.int32)
        place, bit, skips = draw.randrange(value.numel()), draw.randrange(32), draw.random() < 0.5
        if side.rank == rank and skips:
            with model.no_sync():
                backward(model, data(rank, seed=number))
            optimizer.step()
        elif side.rank == rank:
            value[place] ^= -(1 << 31) if bit == 31 else 1 << bit
        try:
            backward(model, data(side.rank, seed=number))
        except RuntimeError as error:
            found += "have drifted apart" in str(error) and (skips or f"'{name}'" in str(error))
        with torch.no_grad():
            for each, values in first.items():
                parameters[each].copy_(values)
        optimizer.zero_grad()
    assert found == faults, found


@case
def parameters_are_all_compared_within_some_steps(side):
    ours_alone(side)
    model = side.wrap(nn.Sequential(*[nn.Linear(4, 4) for _ in range(12)]))
    backward(model, data(side.rank))
    parts = model._reducer._sentinel.parts
    assert sorted(index for part in parts for index, _, _ in part) == list(range(24)) and len(parts) == 3
    if side.rank == 1:
        with torch.no_grad():
            model.module[7].bias[0] += 1e-3
    noticed = None
    for step in range(3):
        try:
            backward(model, data(side.rank))
        except RuntimeError as error:
            noticed = str(error)
            break
    assert noticed and "'7.bias'" in noticed, noticed


@case
def parameters_that_are_new_are_refused(side):
    ours_alone(side)
    model = side.wrap(net())
    model.module[2] = nn.Linear(8, 3)
    with refused():
        backward(model, data(side.rank))
