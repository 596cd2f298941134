"""Loops whose number of steps only a run knows: the operator `loop`, whose body is a program of its own
(runtime/engine/operators/loop_operators.cc).

What a body reads of the programs around it goes into the loop as it is; what it writes there is carried from
step to step. Gradients go through all steps.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from fleetrun import framework, tensor
from fleetrun._arguments import as_list
from fleetrun._error import Error
from fleetrun.utils import nest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleetrun._variable import Variable

__all__ = ["Body", "building", "counted", "dynamic_loop", "scan", "StepBuilder", "While"]

_FLOATS = ("float32", "float64")


class Body:
    """The program of a loop's step while it is built. Operators that write to a variable of the programs
    around it, or again to one of its own, write to another, which stands for it from then on."""

    above: Any = None

    def __init__(self) -> None:
        self.outer = framework.default_main_program()
        self.program = framework.Program()
        self.program.outer = self.outer
        self.written: dict[str, str] = {}
        # What comes from around it, in order: {name in this program: name there}.
        self.captured: dict[str, str] = {}

    def around(self, name: str) -> bool:
        """Whether a program around this one has the variable."""
        program = self.outer
        while program is not None:
            if program.has_var(name):
                return True
            program = program.outer
        return False

    def capture(self, name: str) -> None:
        """Lets the body have a variable of the programs around it."""
        if not name or self.program.has_var(name) or not self.around(name):
            return
        there = name if self.above is None else self.above.inputs([name])[0]
        known = self.outer.native.variable(there)
        self.declare(name, known, known.stop_gradient)
        self.captured[name] = there

    def declare(self, name: str, like: Any, stop_gradient: bool) -> Variable:
        """An input of the body: a variable like that one."""
        self.program.native.add_variable(
            name, like.type, like.shape, like.lod_level, persistable=True, stop_gradient=stop_gradient
        )
        return self.program.var(name)

    def inputs(self, names: Sequence[str]) -> list[str]:
        """What operators read for these names."""
        for name in names:
            self.capture(name)
        return [self.written.get(name, name) for name in names]

    def outputs(self, names: Sequence[str]) -> list[str]:
        """What operators write to for these names."""
        for name in names:
            self.capture(name)
            if self.program.has_var(name):
                self.written[name] = framework.unique_name(name + ".step")
        return [self.written.get(name, name) for name in names]

    def now(self, name: str) -> Variable:
        """A copy of what stands for the name at the step's end."""
        return tensor.assign(self.program.var(self.written.get(name, name)))


@contextlib.contextmanager
def building() -> Iterator[Body]:
    """Within `with`, calls build the body of a loop."""
    body = Body()
    with framework.program_guard(body.program), framework.redirected(body):
        yield body


def _append(
    body: Body,
    first: Sequence[Any],
    names: Sequence[str],
    following: Sequence[Variable],
    collected: Sequence[Variable] = (),
    is_test: bool = False,
) -> tuple[list[Variable], list[Variable]]:
    """Appends the loop: `first` is what the carried `names` of the body begin with, `following` what a step
    makes of them; the condition is the first. Returns (what they end with, what is collected)."""
    captured = [(name, there) for name, there in body.captured.items() if name not in names]
    program = framework.default_main_program()
    inputs = [*first, *(program.var(there) for _, there in captured)]
    attributes: dict[str, Any] = {
        "body": body.program.native.to_words(),
        "takes": [*names, *(name for name, _ in captured)],
        "next": [one.name for one in following],
    }
    if collected:
        attributes["collected"] = [one.name for one in collected]
    if is_test:
        attributes["is_test"] = True
    layer = framework.unique_name("loop")
    outputs = framework.temporaries(layer, len(first) + len(collected) + 1)
    made = framework.append("while_loop", "loop", inputs, attributes, outputs)
    return made[: len(first)], made[len(first) : -1]


def _begin(body: Body, value: Variable, name: str = "") -> Variable:
    """The body's variable for a carried value."""
    name = name or framework.unique_name("loop.in")
    there = value.name if body.above is None else body.above.inputs([value.name])[0]
    known = body.outer.native.variable(there)
    return body.declare(name, known, known.type not in _FLOATS)


def dynamic_loop(
    condition: Any,
    cond: Callable[..., Any],
    step: Callable[..., Any],
    loop_vars: Sequence[Any],
    is_test: bool = False,
) -> list[Any]:
    """loop_vars after step(*loop_vars), again and again while cond(*loop_vars) is true; `condition` is that
    of the first step. As in Paddle 2.6 a step moves the variables of loop_vars themselves: whoever reads
    them in a step or after the loop has their value of then. Throws: Error(config) for a step that gives
    another number of values."""
    asked = nest.flatten(list(loop_vars))
    first = [tensor.to_tensor(one) for one in asked]
    moved = {one.name: at for at, one in enumerate(asked) if isinstance(one, framework.Variable)}
    with building() as body:
        entering = [
            _begin(body, one, one.name if moved.get(one.name) == at else "") for at, one in enumerate(first)
        ]
        checked = body.declare(framework.unique_name("loop.in"), _Bool(condition.shape), True)
        given = step(*nest.pack_sequence_as(list(loop_vars), entering))
        given = as_list(given)
        leaves = nest.flatten(given)
        if len(leaves) != len(first):
            raise Error(
                "config",
                f"paddle.static.nn.while_loop: body takes {len(first)} values and gives {len(leaves)}",
                "let it give each loop variable its next value",
            )
        following = [tensor.assign(one) for one in leaves]
        again = tensor.assign(cond(*nest.pack_sequence_as(list(loop_vars), following)))
    names = [checked.name, *(one.name for one in entering)]
    written = {name: there for name, there in body.captured.items() if name in body.written}
    with framework.program_guard(body.program), framework.redirected(body):
        more = [body.now(name) for name in written]
    program = framework.default_main_program()
    made, _ = _append(
        body,
        [condition, *first, *(program.var(there) for there in written.values())],
        [*names, *written],
        [again, *following, *more],
        is_test=is_test,
    )
    for name, value in zip(written.values(), made[1 + len(first) :]):
        tensor.assign(value, program.var(name))
    for at in moved.values():
        if not getattr(first[at], "trainable", False):
            tensor.assign(made[1 + at], first[at])
    return list(nest.pack_sequence_as(list(loop_vars), made[1 : 1 + len(first)]))


class _Bool:
    """What a condition is declared as."""

    type = "bool"
    lod_level = 0

    def __init__(self, shape):
        self.shape = list(shape)


class While:
    """fluid.layers.While: the block `with loop.block():` is a step, again and again while `cond`, a bool that
    the block writes to, is true. What else it writes to is there after the loop."""

    def __init__(self, cond: Variable, is_test: bool = False, name: str | None = None) -> None:
        if cond.dtype.name != "bool":
            raise Error(
                "config", f"fluid.layers.While({cond.name}): it is {cond.dtype.name}", "give it a bool"
            )
        self._cond, self._is_test = cond, bool(is_test)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """The step. Throws: Error(config) where it leaves the condition as it is."""
        with building() as body:
            body.capture(self._cond.name)
            yield
            written = [name for name in body.captured if name in body.written]
            if self._cond.name not in written:
                raise Error(
                    "config",
                    f"fluid.layers.While: its block does not write to {self._cond.name}",
                    "end it with layers.less_than(…, cond=cond) or the like",
                )
            written.sort(key=lambda name: name != self._cond.name)
            following = [body.now(name) for name in written]
        program = framework.default_main_program()
        first = [program.var(body.captured[name]) for name in written]
        made, _ = _append(body, first, written, following, is_test=self._is_test)
        for name, value in zip(written, made):
            tensor.assign(value, program.var(name))


class StepBuilder:
    """A body whose steps are counted: `index` (int64 [1]) from 0 up to a count. Used within building()."""

    def __init__(self, body: Body) -> None:
        self._body = body
        with self.outside():
            zero = tensor.full([1], 0, "int64")
        self._first: list[Variable] = [zero]
        self.index = _begin(body, zero)
        self._entering: list[Variable] = [self.index]

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Within `with`, calls build before the loop."""
        with framework.program_guard(self._body.outer), framework.redirected_as(self._body.above):
            yield

    def carry(self, first: Variable) -> Variable:
        """The body's variable that begins with `first`."""
        self._first.append(first)
        self._entering.append(_begin(self._body, first))
        return self._entering[-1]

    def end(self, following: Sequence[Variable], given: Sequence[Variable]) -> None:
        """What the carried ones, in their order, become, and what is collected, rows behind rows."""
        self._checked = self._body.declare(framework.unique_name("loop.in"), _Bool([1]), True)
        now = self.index + 1
        self._limit = framework.unique_name("loop.count")
        limit = self._body.declare(self._limit, _Count(), True)
        self._following = [tensor.less_than(now, limit), now, *(tensor.assign(one) for one in following)]
        self._collected = [tensor.assign(one) for one in given]

    def append(self, count: Variable) -> tuple[list[Variable], list[Variable]]:
        """Appends the loop after building(). Returns (what is carried at the end, what is collected)."""
        limit = tensor.cast(tensor.reshape(count, [1]), "int64")
        self._body.captured[self._limit] = limit.name
        condition = tensor.less_than(self._first[0], limit)
        names = [self._checked.name, *(one.name for one in self._entering)]
        first = [condition, *self._first]
        made, kept = _append(self._body, first, names, self._following, self._collected)
        return made[2:], kept


class _Count:
    """What a number of steps is declared as."""

    type = "int64"
    lod_level = 0
    shape = [1]


def scan(
    step: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    states: Sequence[Variable],
    count: Variable,
    steps: int = -1,
) -> tuple[list[Variable], list[Variable]]:
    """step(t, *states) -> (next states, values to collect), for t (int64 [1]) from 0 up to `count`; `steps`:
    that number where it is known, for the shapes.

    Returns (the last states, the collected values of all steps, stacked along a new first axis).
    """
    with building() as body:
        builder = StepBuilder(body)
        entering = [builder.carry(one) for one in states]
        following, given = step(builder.index, *entering)
        builder.end(following, [tensor.unsqueeze(one, 0) for one in given])
    last, collected = builder.append(count)
    return last, [_with_steps(one, steps) for one in collected]


def _with_steps(collected, steps):
    """What was collected, its first axis as long as is known, where a shape can say so."""
    rest = list(collected.shape[1:])
    return collected if steps < 0 or rest.count(-1) > 1 else tensor.reshape(collected, [steps, *rest])


def counted(
    condition: Variable,
    states: Sequence[Variable],
    step: Callable[..., tuple[Variable, Sequence[Any], Sequence[Any]]],
    is_test: bool = False,
) -> tuple[list[Variable], list[Variable]]:
    """step(t, *states) -> (whether another follows, next states, values to collect), for t (int64 [1]) from
    0 on; `condition`: whether there is a first. Returns what scan() does."""
    first = [tensor.full([1], 0, "int64"), *states]
    with building() as body:
        checked = body.declare(framework.unique_name("loop.in"), _Bool([1]), True)
        entering = [_begin(body, one) for one in first]
        again, following, given = step(*entering)
        carried = [tensor.reshape(again, [1]), entering[0] + 1, *(tensor.assign(one) for one in following)]
        collected = [tensor.unsqueeze(one, 0) for one in given]
    names = [checked.name, *(one.name for one in entering)]
    made, kept = _append(body, [condition, *first], names, carried, collected, is_test)
    return made[2:], kept
