"""paddle.distributed.io: what a training keeps, and models that servers' tables belong to."""

import os

from fleetrun import _lazy, framework
from fleetrun._arguments import refuse
from fleetrun.static import io
from fleetrun.static.lookups import LOOKUPS
from fleetrun.static.training import training_of

_FILE = "persistables.pdparams"


def save_persistables(executor, dirname, main_program=None, filename=None):
    """The program's kept values, but for the rows of sparse tables, to dirname/filename (persistables.pdparams); of a program
    with tables on servers what fleet.save_persistables writes."""
    program = main_program or framework.default_main_program()
    if _has_servers(program):
        refuse("paddle.distributed.io.save_persistables", filename=(filename, None))
        _fleet().save_persistables(executor, dirname, program)
    else:
        io.save_vars(executor, dirname, program, predicate=_is_kept_here(program), filename=filename or _FILE)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """Reads back what save_persistables wrote."""
    program = main_program or framework.default_main_program()
    if _has_servers(program):
        refuse("paddle.distributed.io.load_persistables", filename=(filename, None))
        _fleet().load_model(dirname)
    else:
        io.load_vars(executor, dirname, program, predicate=_is_kept_here(program), filename=filename or _FILE)


def load_inference_model_distributed(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    """[program, names to feed, variables to fetch] of what fleet.save_inference_model wrote to `dirname`. Rows come from the
    tables that this process is connected to (fleet.load_inference_model fills them)."""
    refuse("paddle.distributed.io.load_inference_model_distributed", params_filename=(params_filename, None),
           pserver_endpoints=(pserver_endpoints, None))
    return io.load_inference_model(os.path.join(str(dirname), model_filename or "model"), executor)


def _is_kept_here(program):
    return lambda variable: io.is_persistable(variable) and variable.name not in LOOKUPS.of(program)


def _has_servers(program):
    training = training_of(program)
    return training is not None and training.distributed


def _fleet():
    from fleetrun.distributed.fleet._fleet import the_fleet

    return the_fleet


__getattr__, __dir__ = _lazy.attach(__name__, "paddle.distributed.io", {
    "is_persistable": "static.io:is_persistable",
    **{name: f"distributed.io:{name}" for name in ("save_persistables", "load_persistables", "load_inference_model_distributed")},
})
