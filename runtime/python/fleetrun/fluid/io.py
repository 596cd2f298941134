"""paddle.fluid.io: what a training keeps, models for inference, and loaders, as Paddle 1.x spells them."""

from __future__ import annotations

import os

from fleetrun import _lazy, framework
from fleetrun._types import Any, Program, Sequence, Variable
from fleetrun.distributed.io import (
    is_persistable,
    load_persistables,
    save_persistables,
)
from fleetrun.fluid._paddle_program import load_model
from fleetrun.static import io, loose_shapes, serial
from fleetrun.static.io import load, load_program_state, save, set_program_state
from fleetrun.static.io_utils import is_belong_to_optimizer, is_parameter
from fleetrun.static.variable_files import load_vars, save_vars

__all__ = [
    "get_program_parameter", "get_program_persistable_vars", "is_belong_to_optimizer", "is_parameter",
    "is_persistable", "load", "load_inference_model", "load_params", "load_persistables",
    "load_program_state", "load_vars", "save", "save_inference_model", "save_params", "save_persistables",
    "save_vars", "set_program_state",
]  # fmt: skip


def get_program_parameter(program: Program) -> list[Variable]:
    """The parameters of `program`."""
    return list(program.all_parameters())


def get_program_persistable_vars(program: Program) -> list[Variable]:
    """The variables of `program` that keep their values."""
    return [variable for variable in program.list_vars() if is_persistable(variable)]


def save_params(
    executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """The program's parameters, to files of their names in dirname, or all to dirname/filename."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_params(
    executor: Any, dirname: str, main_program: Program | None = None, filename: str | None = None
) -> None:
    """Reads back what save_params wrote."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_inference_model(
    dirname: str,
    feeded_var_names: Sequence[str],
    target_vars: Sequence[Variable],
    executor: Any,
    main_program: Program | None = None,
    model_filename: str | None = None,
    params_filename: str | None = None,
    export_for_deployment: bool = True,
    program_only: bool = False,
) -> list[str]:
    """What computes target_vars from the inputs of these names, in `dirname`: __model__.pdmodel and
    .pdiparams, and the program where Paddle has it, too, __model__ or model_filename, for
    Program.parse_from_string(). program_only: no .pdiparams, for who saves the values there otherwise.
    Returns the names of target_vars."""
    io.warn_of_training("fluid.io.save_inference_model", export_for_deployment)
    program = main_program or framework.default_main_program()
    feeds = [feeded_var_names] if isinstance(feeded_var_names, str) else list(feeded_var_names)
    path = os.path.join(dirname, model_filename or "__model__")
    inputs = [program.var(name) for name in feeds]
    if program_only:
        serial.save_to_file(f"{path}.pdmodel", serial.serialize_program(inputs, target_vars, program))
    else:
        io.save_inference_model(path, inputs, target_vars, executor, program)
    serial.save_to_file(path, serial.load_from_file(f"{path}.pdmodel"))
    return io.names_of(target_vars)


def load_inference_model(
    dirname: str,
    executor: Any,
    model_filename: str | None = None,
    params_filename: str | None = None,
    pserver_endpoints: Any = None,
) -> list[Any]:
    """[program, names to feed, variables to fetch] of what save_inference_model wrote, this one or Fleet's,
    which computes with other declared sizes too, as the program that was saved; values that were saved
    otherwise are those of save_persistables in `dirname`. pserver_endpoints: accepted, for all rows come with
    the model."""
    path = os.path.join(dirname, model_filename or "__model__")
    of_fleet = os.path.join(dirname, "model")
    if model_filename is None and not os.path.exists(f"{path}.pdmodel"):
        path = of_fleet if os.path.exists(f"{of_fleet}.pdmodel") else path
    if os.path.isfile(path) and not os.path.exists(f"{path}.pdmodel"):
        values = os.path.join(dirname, params_filename) if params_filename else dirname
        loaded = load_model(io._read(path), path, values)
    else:
        loaded = _loaded(path, dirname, executor)
    program, feeds, _ = loaded
    for name in feeds:
        loose_shapes.declare(program.var(name))
    return loaded


def _loaded(path, dirname, executor):
    if os.path.exists(f"{path}.pdiparams") or not os.path.exists(f"{path}.pdmodel"):
        return io.load_inference_model(path, executor)
    model = io._checked_model(io._read(f"{path}.pdmodel"), f"{path}.pdmodel")
    program, feeds, fetches = io._program_of(model)
    load_persistables(executor, dirname, program)
    return [program, feeds, fetches]


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.LOADERS,
        "batch": "io.readers:batch",
        **_lazy.names(
            "reader",
            "buffered cache chain compose firstn map_readers shuffle xmap_readers multiprocess_reader",
        ),
    },
)
