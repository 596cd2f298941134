"""paddle.distributed.io: what a training keeps, and models that servers' tables belong to."""

import os

from fleetrun import _lazy, framework
from fleetrun._arguments import refuse
from fleetrun._types import Any, Program
from fleetrun.static import io
from fleetrun.static.io import is_persistable
from fleetrun.static.lookups import LOOKUPS
from fleetrun.static.training import training_of
from fleetrun.static.variable_files import load_vars, save_vars

__all__ = ["is_persistable", "load_inference_model_distributed", "load_persistables", "save_persistables"]


def save_persistables(
    executor: Any,
    dirname: str,
    main_program: Program | None = None,
    filename: str | None = None,
) -> None:
    """The program's kept values, but for the rows of sparse tables, to files of their names in dirname, or
    all to dirname/filename; of a program with tables on servers what fleet.save_persistables writes."""
    program = main_program or framework.default_main_program()
    if _has_servers(program):
        refuse("paddle.distributed.io.save_persistables", filename=(filename, None))
        _fleet().save_persistables(executor, dirname, program)
    else:
        save_vars(executor, dirname, program, predicate=_is_kept_here(program), filename=filename)


def load_persistables(
    executor: Any,
    dirname: str,
    main_program: Program | None = None,
    filename: str | None = None,
) -> None:
    """Reads back what save_persistables wrote."""
    program = main_program or framework.default_main_program()
    if _has_servers(program):
        refuse("paddle.distributed.io.load_persistables", filename=(filename, None))
        _fleet().load_model(dirname)
    else:
        load_vars(executor, dirname, program, predicate=_is_kept_here(program), filename=filename)


def load_inference_model_distributed(
    dirname: str | os.PathLike[str],
    executor: Any,
    model_filename: str | None = None,
    params_filename: str | None = None,
    pserver_endpoints: Any = None,
) -> list[Any]:
    """[program, names to feed, variables to fetch] of what fleet.save_inference_model wrote to `dirname`.
    Rows come from the tables that this process is connected to (fleet.load_inference_model fills them)."""
    refuse(
        "paddle.distributed.io.load_inference_model_distributed",
        params_filename=(params_filename, None),
        pserver_endpoints=(pserver_endpoints, None),
    )
    return io.load_inference_model(os.path.join(str(dirname), model_filename or "model"), executor)


def _is_kept_here(program):
    return lambda variable: is_persistable(variable) and variable.name not in LOOKUPS.of(program)


def _has_servers(program):
    training = training_of(program)
    return training is not None and training.distributed and not training.is_whole


def _fleet():
    from fleetrun.distributed.fleet._fleet import the_fleet

    return the_fleet


__getattr__, __dir__ = _lazy.attach(__name__)
