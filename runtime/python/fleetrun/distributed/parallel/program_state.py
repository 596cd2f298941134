"""The state of a static program that is trained collectively: what it keeps from run to run (parameters, what
its optimizer keeps, statistics), and where its schedule is.

Statistics that each rank keeps for itself (moving means of batch norms, counts of metrics) are, for who takes
a place, those of the rank that gives the state. Operators that draw random numbers draw others in each
generation of the ranks.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun._error import Error
from fleetrun.distributed._world import the_world

if TYPE_CHECKING:
    from fleetrun.framework import Program

__all__ = ["check_program", "program_of", "put_program", "state_of_program"]


def program_of(each: object) -> Program | None:
    """The program that an object is, or is compiled from."""
    framework = sys.modules.get("fleetrun.framework")
    program = vars(each).get("compiled_from", each) if hasattr(each, "__dict__") else each
    return program if framework is not None and isinstance(program, framework.Program) else None


def check_program(program: Program) -> None:
    """Throws: Error(config) for one whose state is not that of every rank."""
    training = _training_of(program)
    if training is None:
        raise Error(
            "config",
            "recoverable() with a program that nothing trains",
            "give it the program of the loss, after fleet.distributed_optimizer(…).minimize(loss)",
        )
    if training.plan.tables() or (training.collective is None and the_world.size > 1):
        raise Error(
            "config",
            "recoverable() with a program that is not trained collectively",
            "call fleet.init(is_collective=True) first; servers go on by themselves (fleetrun-ps(7))",
        )


def state_of_program(program: Program) -> dict[str, Any]:
    """As plain data."""
    scope, schedule = _scope(), _schedule_of(program)
    values = {
        name: numpy.array(scope.value(name))
        for name in program.native.variable_names()
        if program.native.variable(name).persistable and scope.has(name)
    }
    return {"values": values, "schedule": schedule and dict(schedule.state_dict())}


def put_program(program: Program, state: dict[str, Any]) -> None:
    """What state_of_program() said, of this program or of its like in another process."""
    scope, schedule = _scope(), _schedule_of(program)
    for name, value in state["values"].items():
        scope.set_value(name, value)
    if schedule is not None:
        schedule.set_state_dict(state["schedule"])


def _training_of(program):
    from fleetrun.static import training

    return training.training_of(program) if training.is_trained(program) else None


def _schedule_of(program):
    from fleetrun.optimizer.lr import LRScheduler

    rate = getattr(_training_of(program).rate.schedule, "_learning_rate", None)
    return rate if isinstance(rate, LRScheduler) else None


def _scope():
    from fleetrun._scope import global_scope

    return global_scope().native
