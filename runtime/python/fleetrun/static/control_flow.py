"""paddle.static.nn.cond and its like. A program here runs all of its operators in order.

Both branches of a cond are computed, and their values chosen from; so what a branch cannot compute of the
values that it is not meant for (the logarithm of 0) is in the gradients as NaN. A loop whose condition
depends on numbers of the script alone is appended step by step; any other is a `loop` (static/loops.py).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy

from fleetrun import _lazy, _native, framework, tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun.static.loops import dynamic_loop
from fleetrun.utils import nest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleetrun._variable import Variable

__all__ = ["case", "cond", "Switch", "switch_case", "value_of", "while_loop"]

_MAX_STEPS = 10_000
_UNKNOWN = ("dropout", "random", "bernoulli", "multinomial", "permutation", "sparse_embedding")


def value_of(variable: Any) -> Any:
    """The value that a number of Python, or a variable that no input, parameter or random number goes into,
    has here; None for another."""
    if not isinstance(variable, framework.Variable):
        return variable
    program = framework.default_main_program()
    wanted = framework.standing_for(variable.name)
    needed, chosen = {wanted}, []
    for op in reversed(program.ops):
        if needed.isdisjoint(op.outputs):
            continue
        if any(word in op.type for word in _UNKNOWN):
            return None
        needed.update(op.inputs)
        chosen.append(op)
    for name in needed:
        if name:
            known = program.native.variable(name)
            if known.is_data or known.persistable:
                return None
    alone = _native.Program()
    for op in reversed(chosen):
        alone.append(op.type, op.inputs, op.outputs, op.attributes, op.where)
    executor = _native.Executor(alone, _native.Scope())
    executor.run({})
    return numpy.asarray(executor.value(wanted)).reshape(-1)[0].item()


class _Branch:
    """What is appended within it writes to no variable that was there before: `written` says by which other
    one each is replaced."""

    above: Any = None

    def __init__(self) -> None:
        self.written: dict[str, str] = {}

    def inputs(self, names: Sequence[str]) -> list[str]:
        above = names if self.above is None else self.above.inputs(names)
        return [self.written.get(name, other) for name, other in zip(names, above)]

    def outputs(self, names: Sequence[str]) -> list[str]:
        program = framework.default_main_program()
        if self.above is not None:
            self.above.inputs(names)
        for name in names:
            if program.has_var(name):
                self.written[name] = framework.unique_name(name + ".branch")
        return [self.written.get(name, name) for name in names]

    def now(self, value: Any) -> Any:
        """The variable that stands for `value` at the branch's end."""
        if isinstance(value, framework.Variable):
            return framework.default_main_program().var(self.inputs([value.name])[0])
        return value


@contextlib.contextmanager
def _branch() -> Iterator[_Branch]:
    branch = _Branch()
    with framework.redirected(branch):
        yield branch


def _call(function):
    """(the branch, what its function gives)."""
    with _branch() as branch:
        given = function() if function is not None else None
        return branch, nest.map_structure(branch.now, given)


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Any = None,
) -> Any:
    """What true_fn() gives where pred, one bool, is true, else what false_fn() gives: a variable, or the same
    nest of variables of the same shapes; what they assign to other variables likewise.

    Throws: Error(config) for functions that give different things.
    """
    known = value_of(pred)
    if known is not None:
        function = true_fn if known else false_fn
        return None if function is None else function()
    (one, ours), (other, theirs) = _call(true_fn), _call(false_fn)
    left, right = nest.flatten(ours), nest.flatten(theirs)
    if len(left) != len(right):
        raise Error(
            "config",
            f"paddle.static.nn.cond: true_fn gives {len(left)} values, false_fn {len(right)}",
            "let both give the same",
        )
    chosen = [_select(pred, a, b) for a, b in zip(left, right)]
    _keep(pred, one, other)
    return nest.pack_sequence_as(ours, chosen)


def _keep(pred, one, other):
    """Gives each variable that a branch has written to the value of the branch that is taken."""
    program = framework.default_main_program()
    for name in {**one.written, **other.written}:
        value = _select(
            pred, program.var(one.written.get(name, name)), program.var(other.written.get(name, name))
        )
        tensor.assign(value, program.var(name))


def _select(pred, a, b):
    if a is None and b is None:
        return None
    if a is None or b is None:
        raise Error("config", "paddle.static.nn.cond: one branch gives None", "let both give the same")
    a, b = tensor.to_tensor(a), tensor.to_tensor(b)
    if a.name == b.name:
        return a
    if a.dtype != b.dtype or not _same_shape(a.shape, b.shape):
        raise Error(
            "config",
            f"paddle.static.nn.cond: true_fn gives {a.dtype.name} {list(a.shape)}, false_fn {b.dtype.name} "
            f"{list(b.shape)}",
            "let both give the same type and shape",
        )
    one = tensor.reshape(pred, [1] * a.ndim)
    if a.dtype.name == "bool":
        return tensor.logical_or(tensor.logical_and(one, a), tensor.logical_and(tensor.logical_not(one), b))
    return tensor.where(one, a, b)


def _same_shape(one, other):
    return len(one) == len(other) and all(
        a == b or (min(a, b) < 0 and 1 not in (a, b)) for a, b in zip(one, other)
    )


def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """What the function of the first pair whose bool is true gives, else default(), which is the last
    function where it is left out."""
    pairs = list(pred_fn_pairs)
    if not pairs:
        raise Error("config", "paddle.static.nn.case without pairs", "give it (bool, function) pairs")
    if default is None:
        default = pairs.pop()[1]
    return _first_of(pairs, default)


def _first_of(pairs, default):
    if not pairs:
        return default()
    (pred, function), *rest = pairs
    return cond(pred, function, lambda: _first_of(rest, default))


def switch_case(
    branch_index: Any,
    branch_fns: Mapping[int, Callable[[], Any]] | Sequence[Any],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """What the function of the number branch_index gives, else default(), which is the function of the
    largest number where it is left out. branch_fns: {number: function}, pairs, or functions of 0, 1, …"""
    fns: Any = branch_fns
    if isinstance(fns, (list, tuple)):
        numbered = [one if isinstance(one, (list, tuple)) else (i, one) for i, one in enumerate(fns)]
        fns = {number: function for number, function in numbered}
    pairs = list(fns.items())
    pairs.sort(key=lambda one: one[0])
    default = default or pairs[-1][1]
    if not isinstance(branch_index, framework.Variable):
        return fns.get(branch_index, default)()
    return _first_of([(tensor.equal(branch_index, number), one) for number, one in pairs], default)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
    name: str | None = None,
) -> list[Any]:
    """loop_vars after body(*loop_vars), again and again while cond(*loop_vars) is true. Steps whose number
    the script's numbers say are appended one by one; others are the body of a loop.

    Throws: Error(config) for a body that gives other loop variables, and for a loop of known numbers that
    does not end.
    """
    variables = list(loop_vars)
    for done in range(_MAX_STEPS):
        condition = cond(*variables)
        known = value_of(condition)
        if known is None and not done:
            return dynamic_loop(condition, cond, body, variables, is_test)
        if known is None:
            raise Error(
                "config",
                f"paddle.static.nn.while_loop: after {done} steps the next depends on what is fed or on "
                "parameters",
                "begin with loop variables that a run computes",
            )
        if not known:
            return variables
        given = body(*variables)
        given = as_list(given)
        if len(given) != len(variables):
            raise Error(
                "config",
                f"paddle.static.nn.while_loop: body takes {len(variables)} values and gives {len(given)}",
                "let it give each loop variable its next value",
            )
        variables = given
    raise Error("config", f"paddle.static.nn.while_loop has not ended after {_MAX_STEPS} steps")


class Switch:
    """fluid.layers.Switch: of the blocks `with switch.case(bool):` and `with switch.default():` the first
    whose bool is true counts; they assign to variables that are there."""

    def __init__(self, name: str | None = None) -> None:
        self._taken: Any = None

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self._taken = None

    @contextlib.contextmanager
    def case(self, condition: Variable) -> Iterator[None]:
        """A block that counts where `condition` is true and none before it counted."""
        before = self._taken
        wanted = condition if before is None else tensor.logical_and(condition, tensor.logical_not(before))
        with self._block(wanted):
            yield
        self._taken = condition if before is None else tensor.logical_or(condition, before)

    @contextlib.contextmanager
    def default(self) -> Iterator[None]:
        """The block that counts where no other did."""
        if self._taken is None:
            raise Error("config", "Switch.default() before a case", "begin with switch.case(...)")
        with self._block(tensor.logical_not(self._taken)):
            yield

    @contextlib.contextmanager
    def _block(self, wanted):
        with _branch() as branch:
            yield
        _keep(wanted, branch, _Branch())


__getattr__, __dir__ = _lazy.attach(__name__, {"While": "static.loops:While"})
