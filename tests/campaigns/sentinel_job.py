"""A training in which faults are made, for tests/campaigns/sentinel.py: each alone, with a step before it
that has to go through. Rank 0 prints a line of JSON for each: {"fault": ..., "changed": whether it has
changed a parameter (a skipped average may not), "said": what the ranks' errors said}.

environment: SEED, FAULTS (how many), FLEETRUN_SENTINEL=every
"""

import json
import os
import random

import torch

import fleetrun.distributed as dist
import fleetrun.distributed.fleet as fleet

torch.set_num_threads(1)
draw = random.Random(int(os.environ["SEED"]))  # the same on all ranks
fleet.init(is_collective=True)
rank, ranks = fleet.worker_index(), fleet.worker_num()
TYPES = {torch.float32: torch.int32, torch.float64: torch.int64, torch.bfloat16: torch.int16}


def make():
    """A model that nobody has seen: its depth, widths and type are drawn."""
    torch.manual_seed(draw.randrange(1 << 30))
    widths = [4, *(draw.randint(1, 40) for _ in range(draw.randint(1, 4))), 2]
    layers = []
    for one, other in zip(widths, widths[1:]):
        layers += [torch.nn.Linear(one, other), draw.choice([torch.nn.Tanh, torch.nn.ReLU])()]
    return torch.nn.Sequential(*layers).to(draw.choice(list(TYPES)))


def step(model, averages=True):
    """One step, of which nothing is applied where it raises."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    optimizer.zero_grad()
    kind = next(model.parameters()).dtype
    inputs = torch.randn(5, 4, generator=examples).to(kind)
    if averages:
        model(inputs).square().sum().backward()
    else:
        with model.no_sync():
            model(inputs).square().sum().backward()
    optimizer.step()


def flip(values, place, bit):
    """One bit of one value."""
    bits = values.detach().view(-1).view(TYPES[values.dtype])
    last = 8 * values.element_size() - 1
    bits[place] ^= -(1 << last) if bit == last else 1 << bit


examples = torch.Generator().manual_seed(1000 * int(os.environ["SEED"]) + rank)
for number in range(int(os.environ["FAULTS"])):
    if number % 10 == 0:
        model = fleet.distributed_model(make())
        parameters = dict(model.named_parameters())
    step(model)
    start = {name: value.detach().clone() for name, value in parameters.items()}
    victim, name = draw.randrange(ranks), draw.choice(sorted(parameters))
    place, bit = draw.randrange(parameters[name].numel()), draw.randrange(8 * parameters[name].element_size())
    kind = draw.choice(["a skipped average", "a flipped bit"])
    if rank == victim:
        if kind == "a skipped average":
            step(model, averages=False)
        else:
            flip(parameters[name], place, bit)
    changed = any(not torch.equal(value, start[each]) for each, value in parameters.items())
    try:
        step(model)
        said = ""
    except RuntimeError as error:
        said = str(error)
    with torch.no_grad():
        for each, values in start.items():
            parameters[each].copy_(values)
    every = []
    dist.all_gather_object(every, [changed, said])
    if rank == 0:
        fault = {"kind": kind, "rank": victim, "tensor": name, "place": place, "bit": bit}
        changed, said = any(each for each, _ in every), [text for _, text in every]
        print(json.dumps({"fault": fault, "changed": changed, "said": said}), flush=True)
