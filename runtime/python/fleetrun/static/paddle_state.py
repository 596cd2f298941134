"""An optimizer's state as Paddle's files have it.

Adam, AdamW, Lamb and Adamax count their steps here (PARAMETER_step_N); Paddle keeps the powers of beta that
the next step takes (PARAMETER_beta1_pow_acc_N, PARAMETER_beta2_pow_acc_N), and the learning rate. Files get
both, and what is loaded may have either.
"""

from __future__ import annotations

import math

import numpy

from fleetrun import _lazy
from fleetrun._types import Any, Mapping, Program

__all__ = ["adopted", "with_powers"]

# The types of update operators that count steps, and the betas whose powers Paddle keeps.
_BETAS = {
    "adam": ("beta1", "beta2"),
    "adamw": ("beta1", "beta2"),
    "lamb": ("beta1", "beta2"),
    "adamax": ("beta1",),
}
# Below this a power of beta has too few digits to say the step.
_LEAST = 1e-30


def _counting(program: Program) -> dict[str, tuple[dict[str, float], float]]:
    """{name of the steps: ({name of a power: beta}, learning rate)}."""
    found = {}
    for op in program.native.operators():
        parameter = op.outputs[0] if op.outputs else ""
        if op.type not in _BETAS:
            continue
        given: Any = op.attributes
        steps = op.outputs[-1]
        number = steps.rpartition("_")[2]
        powers = {f"{parameter}_{beta}_pow_acc_{number}": float(given[beta]) for beta in _BETAS[op.type]}
        found[steps] = (powers, float(given["learning_rate"]))
    return found


def with_powers(program: Program, state: Mapping[str, Any]) -> dict[str, Any]:
    """`state` of `program` with the powers of beta and, where there is none, the learning rate."""
    made = dict(state)
    for steps, (powers, rate) in _counting(program).items():
        if steps not in made:
            continue
        for name, beta in powers.items():
            made[name] = numpy.array([beta ** (int(made[steps][0]) + 1)], "float32")
        if not any(name.startswith("learning_rate_") for name in made):
            made["learning_rate_0"] = numpy.array(rate, "float32")
    for name, value in made.items():
        if name.startswith("learning_rate_") and numpy.size(value) == 1:
            made[name] = numpy.reshape(value, ())  # as Paddle has it
    return made


def adopted(program: Program, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with steps for the powers of beta, which go, as does a learning rate that `program` keeps no
    variable for."""
    made = dict(values)
    for steps, (powers, _) in _counting(program).items():
        known = {name: made.pop(name) for name in powers if name in made}
        exact = [name for name in known if float(numpy.ravel(known[name])[0]) > _LEAST]
        if known and steps not in made:
            name = exact[0] if exact else list(known)[-1]
            power = max(float(numpy.ravel(known[name])[0]), 1e-300)
            made[steps] = numpy.array([max(round(math.log(power) / math.log(powers[name])) - 1, 0)], "int64")
    for name in [name for name in made if name.startswith("learning_rate_")]:
        if not program.native.has_variable(name):
            del made[name]
        elif numpy.size(made[name]) == 1:
            made[name] = numpy.reshape(made[name], (1,))
    return made


__getattr__, __dir__ = _lazy.attach(__name__)
