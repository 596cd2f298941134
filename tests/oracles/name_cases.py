#!/usr/bin/env python3
"""Runs the cases of tests/oracles/names with a Paddle: the real one, or fleetrun.

usage: python tests/oracles/name_cases.py MODULE SUBJECT…    prints one line of JSON per subject

MODULE is `paddle` or `fleetrun`; a SUBJECT is a file of tests/oracles/names. A case is a public function of
it, `case(paddle, net)`, that builds a program with the module that it is given, takes its inputs from `net`,
and returns {name: variable or array}. What it gives: the fetched variables, and the gradient of every
trainable parameter by the sum of f + f^3 over all float32 variables f that it returned, as PARAMETER@GRAD. No
random number matters: parameters get the values that net.parameter was given, others values_of() their name.

`@within(relative=…, absolute=…)` before a case: how far its values may be from Paddle's,
instead of 1e-5 and 1e-6.
"""

import functools
import importlib.util
import inspect
import json
import pathlib
import sys
import types
import zlib

import numpy

FOLDER = pathlib.Path(__file__).parent / "names"
NAMES = pathlib.Path(__file__).parents[1] / "golden" / "engine" / "names.txt"


def within(relative=1e-5, absolute=1e-6):
    """A decorator: the tolerance of a case."""

    def decorate(case):
        case.tolerance = (relative, absolute)
        return case

    return decorate


def subjects():
    """The names of all case modules."""
    return sorted(file.stem for file in FOLDER.glob("*.py"))


@functools.cache
def cases_of(subject):
    """{name: function} of one case module, in its order."""
    spec = importlib.util.spec_from_file_location("names_" + subject, FOLDER / (subject + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["name_cases"] = sys.modules[__name__]
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items()
            if inspect.isfunction(value) and not name.startswith("_") and value.__module__ == module.__name__}


def values_of(name, shape):
    """Numbers between -0.5 and 0.5 that only the name and the place decide."""
    start = zlib.crc32(name.encode()) % 97
    count = int(numpy.prod(shape, dtype="int64"))
    return (0.5 * numpy.sin(start + 0.7 * numpy.arange(count))).astype("float32").reshape(shape)


class Traced:
    """A module that notes which of its names are used."""

    def __init__(self, module, path, used):
        self._module, self._path, self._used = module, path, used

    def __getattr__(self, name):
        value, path = getattr(self._module, name), f"{self._path}.{name}"
        self._used.add(path)
        return Traced(value, path, self._used) if isinstance(value, types.ModuleType) else value


class Net:
    """What a case builds in: programs and a scope of its own."""

    def __init__(self, paddle):
        self.paddle = paddle
        self.main, self.startup = paddle.static.Program(), paddle.static.Program()
        self.scope = paddle.static.Scope()
        self.executor = paddle.static.Executor(paddle.CPUPlace())
        self.feed = {}
        self.given = {}
        self.initial = False

    def data(self, name, values, dtype="float32", shape=None, lengths=None):
        """An input and what is fed: its first size unknown unless `shape` says otherwise;
        lengths: those of its sequences."""
        array = numpy.asarray(values, dtype=dtype)
        shape = [None, *array.shape[1:]] if shape is None else shape
        variable = self.paddle.static.data(name, shape, dtype, lod_level=0 if lengths is None else 1)
        if lengths is not None:
            array = self.paddle.base.create_lod_tensor(array, [list(lengths)], self.paddle.CPUPlace())
        self.feed[name] = array
        return variable

    def parameter(self, name, values):
        """A trainable parameter with these values."""
        self.given[name] = numpy.asarray(values, dtype="float32")
        return self.paddle.create_parameter(list(self.given[name].shape), "float32",
                                            attr=self.paddle.ParamAttr(name=name))

    def keep_initial_values(self):
        """Parameters keep what their initializers gave them."""
        self.initial = True

    def start(self):
        """Runs the start-up program, and gives the trainable parameters their values."""
        self.executor.run(self.startup, scope=self.scope)
        for parameter in self.main.all_parameters():
            if not parameter.trainable or self.initial:
                continue
            values = self.given.get(parameter.name)
            values = values_of(parameter.name, parameter.shape) if values is None else values
            self.scope.find_var(parameter.name).get_tensor().set(values, self.paddle.CPUPlace())

    def run(self, fetch=(), program=None, **feed):
        """One run of the main program; `feed` instead of what data() was given."""
        return self.executor.run(program or self.main, feed={**self.feed, **feed}, fetch_list=list(fetch),
                                 scope=self.scope)

    def value(self, name):
        """What the scope holds."""
        return numpy.array(self.scope.find_var(name).get_tensor())


def _loss(paddle, variables):
    parts = [part for v in variables for part in (paddle.sum(v * v * v), paddle.sum(v))]
    return functools.reduce(lambda total, part: total + part, parts)


def run_case(module, case):
    """({name: array}, the names of paddle that were used)."""
    used = set()
    with module.utils.unique_name.guard():
        net = Net(module)
        with module.static.program_guard(net.main, net.startup), module.static.scope_guard(net.scope):
            returned = case(Traced(module, "paddle", used), net)
            arrays = {name: value for name, value in returned.items() if not hasattr(value, "stop_gradient")}
            fetches = {name: value for name, value in returned.items() if name not in arrays}
            if fetches:
                arrays |= _fetch(net, fetches)
    return {name: numpy.asarray(arrays[name]) for name in sorted(arrays)}, used


def _fetch(net, fetches):
    trained = [parameter.name for parameter in net.main.all_parameters() if parameter.trainable]
    learning = [value for value in fetches.values()
                if not value.stop_gradient and value.dtype == net.paddle.float32]
    gradients = {}
    if trained and learning:
        # Not by name: where a case has gradients of its own, theirs is PARAMETER@GRAD.
        _, pairs = net.paddle.optimizer.SGD(0.0).minimize(_loss(net.paddle, learning))
        gradients = {parameter.name + "@GRAD": gradient for parameter, gradient in pairs
                     if parameter.name in trained}
    net.start()
    wanted = {**fetches, **gradients}
    return dict(zip(wanted, net.run(wanted.values())))


def describe(array):
    """An array as JSON: type, shape, values in order;
    float32 with the nine digits that tell it from others."""
    array = numpy.asarray(array)
    number = ((lambda value: float(f"{value:.9g}")) if array.dtype == numpy.float32
              else (lambda value: value.item()))
    return {"dtype": array.dtype.name, "shape": list(array.shape),
            "values": [number(value) for value in array.ravel()]}


def run_subject(module, subject):
    """{case: {"names": those of names.txt that it used, "values": {name:
    array as JSON}} or {"error": text}}."""
    listed = set(NAMES.read_text(encoding="utf-8").split())
    found = {}
    for name, case in cases_of(subject).items():
        try:
            arrays, used = run_case(module, case)
            found[name] = {"names": sorted(used & listed),
                           "values": {name: describe(array) for name, array in arrays.items()}}
        except Exception as error:  # noqa: BLE001, whatever a case ends with is its result
            found[name] = {"error": f"{type(error).__name__}: {error}"}
    return found


def main(words):
    module = importlib.import_module(words[0])
    module.enable_static()
    for subject in words[1:]:
        print(json.dumps(run_subject(module, subject)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
