"""Programs and their values in files: paddle.static.save and load, save_inference_model and
load_inference_model.

    PREFIX.pdparams     {name: array} of the parameters, as Paddle's own: a pickle of a dict of NumPy arrays
    PREFIX.pdopt        the same of the optimizer's state and other kept values
    PREFIX.pdmodel      the program: JSON, since fleetrun's operators are its own. Paddle cannot run it;
                        Paddle's is read (fluid/_paddle_program.py)
    PREFIX.pdiparams    {name: array} of what an inference model keeps, in the safetensors format

What is saved for inference runs without Python too: fleetrun predict, and
runtime/inference/inference_model.h.

A file is written beside its place and then moved there. Values of parameters that lie on servers are those in
the scope: fleet.save_persistables and fleet.save_inference_model ask the servers. Rows of sparse_embedding
are the servers' (or this process's tables') to save, with the same two calls.
"""

import importlib
import io
import json
import math
import os
import pickle
import warnings

import numpy

from fleetrun import _lazy, _native, _tensors, framework
from fleetrun._arguments import refuse, warn_of_save, warn_once
from fleetrun._error import Error
from fleetrun._files import replacing
from fleetrun._types import Any, Fetches, Iterable, Mapping, Program, Sequence, Variable
from fleetrun.static import groups
from fleetrun.static.lookups import tables_of_run
from fleetrun.static.paddle_state import adopted, with_powers
from fleetrun.static.training import Training, read, tables_of, training_of

__all__ = [
    "is_own", "is_persistable", "load", "load_inference_model", "load_program_state", "parsed", "prune",
    "save", "save_inference_model", "set_program_state", "set_values", "unpickled_object", "write_inference",
    "write_pickled", "write_with_tables",
]  # fmt: skip

_FORMAT = "fleetrun program 1"


def save(program: Program, model_path: str, protocol: int = 4, **configs: Any) -> None:
    """Writes `program`'s parameters to model_path.pdparams, what else it keeps to .pdopt, and itself to
    .pdmodel.

    Throws: Error(host) when a file cannot be written, Error(config) for a program that has no values yet.
    """
    if configs:
        raise Error("config", f"paddle.static.save has no argument {sorted(configs)[0]}")
    if not isinstance(protocol, int) or not 2 <= protocol <= 4:
        raise Error("config", f"paddle.static.save(protocol={protocol!r})", "use 2, 3 or 4")
    parameters = {parameter.name for parameter in program.all_parameters()}
    kept = _kept(program)
    _write(
        f"{model_path}.pdparams",
        _pickled({name: kept[name] for name in kept if name in parameters}, protocol),
    )
    _write(
        f"{model_path}.pdopt",
        _pickled(
            with_powers(program, {name: kept[name] for name in kept if name not in parameters}), protocol
        ),
    )
    _write(f"{model_path}.pdmodel", _text_of(program, [], []))


def load(
    program: Program, model_path: str, executor: Any = None, var_list: Iterable[Variable] | None = None
) -> None:
    """Reads back what save() wrote, into the scope; var_list: these variables only. Also Paddle's own
    .pdparams and .pdopt.

    What the files have and the program has not, or the other way round, is said in a warning.
    Throws: Error(data) for a file that is missing, is not such a file, holds other shapes, or lacks a
    parameter of the program.
    """
    values = adopted(program, load_program_state(model_path, var_list))
    set_values(program, values, model_path)
    if var_list is None:
        _say_missing(program, values, model_path)


def _say_missing(program, values, path):
    """Says what the program keeps and the files lack. Throws: Error(data) for a parameter."""
    lacking = sorted(
        name
        for name in program.native.variable_names()
        if program.native.variable(name).persistable and name not in values
    )
    parameters = [parameter.name for parameter in program.all_parameters() if parameter.name in lacking]
    if parameters:
        raise Error(
            "data",
            f"{path}.pdparams has no value for {', '.join(parameters)}",
            "load what this program saved; with var_list=[…] only those variables are loaded",
        )
    if lacking:
        warnings.warn(
            f"{path}: no value is there for {', '.join(lacking)}, which keep what they have", stacklevel=3
        )


def load_program_state(model_path: str, var_list: Iterable[Variable] | None = None) -> dict[str, Any]:
    """{name: array} of what save() wrote, or of a folder with a file for each variable."""
    if not os.path.exists(f"{model_path}.pdparams") and os.path.isdir(model_path):
        # By name: that module lies above this one.
        values = importlib.import_module("fleetrun.static.variable_files").folder_values(model_path)
        return _named(values, var_list)
    values = _unpickled(f"{model_path}.pdparams")
    if os.path.exists(f"{model_path}.pdopt"):
        values |= _unpickled(f"{model_path}.pdopt")
    return _named(values, var_list)


def _named(values, var_list):
    names = None if var_list is None else {variable.name for variable in var_list}
    return {name: value for name, value in values.items() if names is None or name in names}


def set_program_state(program: Program, state_dict: Mapping[str, Any]) -> None:
    """Puts {name: array} into the scope; names that the program has not are left out, with a warning that
    lists them. Throws: Error(data)."""
    set_values(program, state_dict, "set_program_state")


def is_persistable(variable: Variable) -> bool:
    """Whether a variable keeps its value from one run to the next."""
    return variable.persistable


def save_inference_model(
    path_prefix: str,
    feed_vars: Fetches,
    fetch_vars: Fetches,
    executor: Any,
    program: Program | None = None,
    **configs: Any,
) -> None:
    """Writes what computes fetch_vars from feed_vars, without training, to path_prefix.pdmodel and
    .pdiparams, and rows that lie in tables to `tables` beside them, which every server writes on its own
    host.

    What else has to be fed is said in a warning. Throws: Error(config) for rows that nobody has yet.
    """
    configs.pop("clip_extra", None)
    if configs:
        raise Error("config", f"paddle.static.save_inference_model has no argument {sorted(configs)[0]}")
    program = program or framework.default_main_program()
    training = tables_of_run(program)
    feeds, fetches = names_of(feed_vars), names_of(fetch_vars)
    pruned = prune(program, feeds, fetches)
    if not pruned.native.has_operator("sparse_embedding"):
        write_inference(path_prefix, pruned, feeds, fetches)
    elif training is None:
        raise Error(
            "config",
            "save_inference_model: the rows of a sparse_embedding are in tables, and this program has none",
            "call an optimizer's minimize on its loss before",
        )
    else:
        write_with_tables(path_prefix, pruned, training, feeds, fetches, 0)


def warn_of_training(call: str, export_for_deployment: bool) -> None:
    """For who asks for a model to be trained on: Paddle, too, supports no other than that of deployment."""
    if not export_for_deployment:
        warn_once(
            call,
            f"{call}(export_for_deployment=False): only what computes target_vars is saved; "
            "paddle.static.save keeps a training",
        )


def write_with_tables(
    path_prefix: str, pruned: Program, training: Training, feeds: list[str], fetches: list[str], mode: int
) -> None:
    """The files of an inference model, and beside them, by a mode of saving, the tables of `training`."""
    text = training.plan.table_text(training.mode if training.distributed else "async")
    write_inference(path_prefix, pruned, feeds, fetches, json.loads(text))
    if training.plan.tables():
        training.client.save(_tables_beside(path_prefix), mode)


def _tables_beside(path_prefix):
    return os.path.join(os.path.dirname(path_prefix), "tables")


def write_inference(
    path_prefix: str,
    pruned: Program,
    feeds: list[str],
    fetches: list[str],
    tables: Sequence[dict[str, Any]] = (),
) -> None:
    """The files of an inference model whose program is `pruned`; tables: what says which those of its rows
    are."""
    in_tables = {table["name"] for table in tables}
    kept = _kept(pruned, in_tables)
    _write(f"{path_prefix}.pdiparams", _tensors.packed(kept))
    _write(f"{path_prefix}.pdmodel", _text_of(pruned, feeds, fetches, tables))


def load_inference_model(path_prefix: str, executor: Any, **configs: Any) -> list[Any]:
    """[program, names to feed, variables to fetch] of what save_inference_model wrote; parameters go into the
    scope. Rows come with it, unless this process trains and has servers, which have them. What Paddle wrote
    is read, too, as far as its operators are known here.

    Throws: Error(data) for files that are missing or are not such a model.
    """
    refuse("paddle.static.load_inference_model", **{name: (value, None) for name, value in configs.items()})
    path = f"{path_prefix}.pdmodel"
    if not is_own(written := _read(path)):
        return _paddles().load_model(written, path, f"{path_prefix}.pdiparams")
    model = _checked_model(written, path)
    try:
        program, feeds, fetches = _program_of(model)
    except Error as error:
        raise Error("data", f"{path} is damaged: {error.what}", "save the model again") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Error("data", f"{path} is damaged: {error!r}", "save the model again") from error
    path = f"{path_prefix}.pdiparams"
    set_values(program, _tensors.unpacked(_read(path), path), path_prefix)
    if model.get("tables") and tables_of(program) is None:
        read(program, _rows_of(program, model["tables"], _tables_beside(path_prefix)))
    return [program, feeds, fetches]


def parsed(written: bytes) -> Program:
    """The program that bytes hold, of fleetrun or of Paddle. Throws: Error(data)."""
    if is_own(written):
        return _program_of(_checked_model(written, "what is given"))[0]
    return _paddles().program_of(written, "what is given")[0]


def _rows_of(program, tables, dirname):
    """What a loaded program looks rows up in: a copy in this process of what was saved with it."""
    everything = _native.TablePlan.of_text(json.dumps(tables))
    rows = [table for table in tables if table["kind"] == "sparse"]
    client = _native.make_in_process("async", everything.tables())
    warn_of_save(client.load(dirname))
    training = Training(_native.TablePlan.of_text(json.dumps(rows)), "async", False, (program, program))
    training.connect(client)
    return training


def _program_of(model):
    program = framework.Program()
    for variable in model["variables"]:
        program.native.add_variable(**variable)
        if variable["trainable"]:
            program.add_parameter(variable["name"], None, 1.0)
    for op in model["operators"]:
        attributes = {name: _attribute(value) for name, value in op["attributes"].items()}
        program.native.append(op["type"], op["inputs"], op["outputs"], attributes)
    return (
        program,
        [program.var(name).name for name in model["feeds"]],
        [program.var(name) for name in model["fetches"]],
    )


def prune(program: Program, feeds: list[str], fetches: list[str]) -> Program:
    """The part of `program` that computes `fetches` from `feeds`, for test, without what computes a feed;
    the scope has its values. A warning names an input that is not in `feeds`."""
    _pull_dense(program)
    native = program.native.clone_for_test()
    # What is fed stays an input, read by something or not.
    needed, kept = {*fetches, *feeds}, []
    for name in fetches:
        native.variable(name)
    for op in reversed(native.operators()):
        if needed.intersection(op.outputs).difference(feeds):
            needed.update(name for name in op.inputs if name)
            kept.append(op)
    pruned = framework.Program()
    for op in kept:
        if op.type == "sparse_embedding":
            needed.add(str(op.attributes["parameter"]))
    for name in native.variable_names():
        variable = native.variable(name)
        is_data = variable.is_data or (name in feeds and not variable.persistable)
        if name in needed and (is_data or variable.persistable):
            pruned.native.add_variable(**{**_fields(variable), "is_data": is_data})
            if variable.is_data and name not in {*feeds, *map(groups.name_of, feeds)}:
                warnings.warn(
                    f"the inference model reads {name}, which is not among its inputs {feeds}: it has to be "
                    "fed, too; fetch what does not need it",
                    stacklevel=3,
                )
    for op in reversed(kept):
        pruned.native.append(op.type, op.inputs, op.outputs, op.attributes)
    return pruned


def names_of(variables: Fetches) -> list[str]:
    """The names of variables, or of names, of one or of several."""
    listed = [variables] if isinstance(variables, (str, Variable)) else variables
    return [variable if isinstance(variable, str) else variable.name for variable in listed]


def _fields(variable):
    return {
        "name": variable.name,
        "type": variable.type,
        "shape": list(variable.shape),
        "lod_level": variable.lod_level,
        "persistable": variable.persistable,
        "trainable": variable.trainable,
        "stop_gradient": variable.stop_gradient,
        "is_data": variable.is_data,
    }


def _json(value):
    """An attribute as JSON has it, which knows no infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return [_json(one) for one in value] if isinstance(value, list) else value


def _attribute(value):
    """The other way."""
    if isinstance(value, dict):
        return float(value["float"])
    return [_attribute(one) for one in value] if isinstance(value, list) else value


def _text_of(program, feeds, fetches, tables=()):
    native = program.native
    model = {
        "format": _FORMAT,
        "feeds": feeds,
        "fetches": fetches,
        "variables": [
            _fields(native.variable(name))
            for name in native.variable_names()
            if native.variable(name).is_data or native.variable(name).persistable
        ],
        "operators": [
            {
                "type": op.type,
                "inputs": op.inputs,
                "outputs": op.outputs,
                "attributes": {name: _json(value) for name, value in op.attributes.items()},
            }
            for op in native.operators()
        ],
    }
    if tables:
        model["tables"] = tables
    return json.dumps(model, indent=1).encode()


def is_own(written: bytes) -> bool:
    """Whether a program's file is of fleetrun, and not of Paddle."""
    return written[:1] == b"{"


def _paddles():
    # By name: layers lie above files.
    return importlib.import_module("fleetrun.fluid._paddle_program")


def _checked_model(data, where):
    """What a .pdmodel holds. Throws: Error(data) naming `where`."""
    try:
        model = json.loads(data)
    except (ValueError, RecursionError):
        model = None
    if not isinstance(model, dict) or model.get("format") != _FORMAT:
        raise Error(
            "data",
            f"{where} is not a program of fleetrun",
            "save it with fleetrun's save_inference_model",
        )
    return model


def _pull_dense(program):
    """Dense parameters into the scope, as the servers have them now."""
    training = training_of(program)
    if training is not None and training.distributed and training.connected:
        training.pull_dense(framework.global_scope().native)


def _kept(program, in_tables=()):
    """{name: array} of what the program keeps and the scope has; in_tables: parameters that are not in it."""
    scope = framework.global_scope().native
    native = program.native
    _pull_dense(program)
    kept = {
        name: numpy.asarray(scope.value(name))
        for name in native.variable_names()
        if native.variable(name).persistable and scope.has(name)
    }
    if not kept and any(
        native.variable(name).persistable for name in native.variable_names() if name not in in_tables
    ):
        raise Error(
            "config",
            "the program's variables have no values yet",
            "run the start-up program first: exe.run(paddle.static.default_startup_program())",
        )
    return kept


def set_values(program: Program, values: Mapping[str, Any], where: str) -> None:
    """Puts values into the scope, by name, as the program has them. Throws: Error(config, data) naming
    `where`."""
    scope = framework.global_scope().native
    training = training_of(program)
    if training is not None and training.is_whole and training.connected:
        raise Error(
            "config",
            f"{where}: the servers have the parameters of this program, and go on with theirs",
            "load before the first step: servers begin with the values of trainer 0",
        )
    values = adopted(program, values)
    strangers = [name for name in values if not program.native.has_variable(name)]
    if strangers:
        warnings.warn(
            f"{where}: the program has no variable of these names, so they are left out: "
            f"{', '.join(sorted(strangers))}",
            stacklevel=3,
        )
    for name, value in values.items():
        if name in strangers:
            continue
        shape = [size for size in program.native.variable(name).shape]
        value, kind = numpy.ascontiguousarray(value), program.native.variable(name).type
        if len(shape) != value.ndim or any(
            want >= 0 and want != size for want, size in zip(shape, value.shape)
        ):
            raise Error(
                "data", f"{where}: {name} has the shape {list(value.shape)} there, {shape} in the program"
            )
        if (value.dtype.name, kind) == ("int32", "int64"):
            value = value.astype("int64")
        if value.dtype.name != kind:
            raise Error("data", f"{where}: {name} is {value.dtype.name} there, {kind} in the program")
        scope.set_value(name, value)


def _pickled(values, protocol):
    return pickle.dumps(values, protocol=protocol)


class _Arrays(pickle.Unpickler):
    """Unpickles dicts of arrays and nothing that runs code."""

    _ALLOWED = {
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy._core.multiarray", "scalar"),
        ("_codecs", "encode"),
        ("collections", "OrderedDict"),
    }

    def find_class(self, module, name):
        if (module, name) not in self._ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is not an array")
        return super().find_class(module, name)


def unpickled_object(path: str) -> Any:
    """What a pickle of arrays, numbers, texts and containers of them holds. Throws: Error(data)."""
    try:
        return _Arrays(io.BytesIO(_read(path))).load()
    except Error:
        raise
    except Exception as error:  # a damaged pickle raises nearly anything
        raise Error("data", f"{path} holds no arrays: {error}") from error


def write_pickled(path: str, values: Any, protocol: int) -> None:
    """Writes such a pickle beside its place, then moves it there. Throws: Error(host)."""
    _write(path, _pickled(values, protocol))


def _unpickled(path):
    values = unpickled_object(path)
    if not isinstance(values, dict):
        raise Error("data", f"{path} holds no arrays by name")
    return {name: value for name, value in values.items() if isinstance(value, numpy.ndarray)}


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Error("data", f"{path} cannot be read: {error.strerror}") from error


def _write(path, data):
    with replacing(path) as file:
        file.write(data)


__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        **_lazy.names(
            "static.serial",
            "deserialize_persistables deserialize_program load_from_file normalize_program save_to_file "
            "serialize_persistables serialize_program",
        ),
        **_lazy.names("static.variable_files", "load_vars save_vars"),
    },
)
