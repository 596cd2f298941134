"""Random programs: what they are made of, what they have to give, and how they become small.

A program is text that real Paddle and fleetrun both run (source()), and next to each line of it a function
over numpy arrays that says, in float64, what the line gives. Gradients are those of the sum of all results,
each multiplied by fixed weights: in float64 by differences.
"""

import math
import random

import numpy as np

STEP = 1e-6
TURNS = 40


class Unfit(Exception):
    """An operation that cannot follow here; another is drawn."""


class Value:
    """A variable of a program: its name, its type, what it holds."""

    def __init__(self, name, array, dtype):
        self.name, self.array, self.dtype = name, np.asarray(array), dtype

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)


class Leaf(Value):
    """A parameter, or what is fed; open: its first size is not known while the program is built."""

    def __init__(self, name, array, dtype, is_parameter, is_open=False):
        super().__init__(name, array, dtype)
        self.is_parameter, self.is_open = is_parameter, is_open


class Step:
    """A line of a program. reference: its results, of the arrays of its inputs; flat: no gradient flows;
    same: Paddle gives the variable itself back, so that what changes it later shows in the result, too."""

    def __init__(self, text, inputs, outputs, reference, flat, same=False):
        self.text, self.inputs, self.outputs = text, inputs, outputs
        self.reference, self.flat, self.same = reference, flat, same


def dtype_of(array):
    """How Paddle calls the type of an array of the reference; float64 stands for float32."""
    return {"f": "float32", "b": "bool"}.get(array.dtype.kind, str(array.dtype))


class Program:
    """Leaves, steps, the results that are fetched, and whether an optimizer takes a step."""

    RATE = 0.125

    def __init__(self):
        self.leaves, self.steps, self.fetched = [], [], []
        self.minimizes = False

    def parameters(self):
        """The leaves that are trained."""
        return [leaf for leaf in self.leaves if leaf.is_parameter]

    def evaluate(self, given=None, frozen=None, factors=None):
        """{name: array}. given: other values of leaves; frozen: results through which no gradient flows;
        factors: by which values are multiplied. Leaves have the digits that float32 has of them."""
        known = {leaf.name: held(leaf.array) for leaf in self.leaves}
        for name, factor in (factors or {}).items():
            if name in known:
                known[name] = known[name] * factor
        known.update(given or {})
        with np.errstate(all="ignore"):
            for step in self.steps:
                if frozen is not None and step.flat:
                    known.update({name: frozen[name] for name in step.outputs})
                    continue
                made = step.reference(*(known[name] for name in step.inputs))
                made = made if isinstance(made, tuple) else (made,)
                for name, array in zip(step.outputs, made, strict=True):
                    factor = (factors or {}).get(name)
                    known[name] = np.asarray(
                        array if factor is None or factor.shape != np.shape(array) else array * factor
                    )
        return known

    def loss(self, known):
        """The sum of what is fetched and has gradients, weighted."""
        return sum(float(np.sum(known[name] * weights(known[name].shape))) for name in self.learned)

    @property
    def learned(self):
        """The fetched results that have gradients."""
        return [name for name in self.fetched if self.types[name] in ("float32", "float64")]

    @property
    def types(self):
        """{name: type} of all that is there."""
        found = {leaf.name: leaf.dtype for leaf in self.leaves}
        for step in self.steps:
            found.update(zip(step.outputs, step.dtypes))
        return found

    def errors(self, most=4e-7):
        """Factors of values that stand for the errors of float32; those of equal values are equal."""
        return {
            name: 1.0 + most * np.sin(array * 1e7)
            for name, array in self.evaluated.items()
            if array.dtype.kind == "f"
        }

    def after_the_step(self, known, gradients):
        """`known`, where what is a parameter itself holds what the optimizer's step left."""
        moved = {name: known[name] - self.RATE * slope for name, slope in gradients.items()}
        for step in self.steps:
            if step.same and step.inputs[0] in moved:
                moved[step.outputs[0]] = moved[step.inputs[0]]
        return {**known, **moved} if self.minimizes else known

    def gradients(self, factors=None):
        """({parameter: gradient}, {parameter: where it has one}): False where the slopes of both sides
        differ."""
        base = self.evaluate(factors=factors)
        start, found, smooth = self.loss(base), {}, {}
        for leaf in self.parameters():
            slope, sure = np.zeros(leaf.shape), np.ones(leaf.shape, bool)
            for place in np.ndindex(leaf.shape):
                sides = []
                for sign in (1.0, -1.0):
                    moved = base[leaf.name].copy()
                    moved[place] += sign * STEP
                    sides.append(self.loss(self.evaluate({leaf.name: moved}, base, factors)))
                slope[place] = (sides[0] - sides[1]) / (2 * STEP)
                bend = abs(sides[0] + sides[1] - 2 * start) / STEP
                sure[place] = bend < 5e-4 * (1 + abs(slope[place]))
            found[leaf.name], smooth[leaf.name] = slope, sure
        return found, smooth

    def source(self):
        """The program as a script: it leaves `found`, {name: array}, and `gradients`, {parameter: array}."""
        lines = [
            "import numpy as np",
            "import paddle",
            "",
            "paddle.enable_static()",
            "F = paddle.nn.functional",
            "main, startup = paddle.static.Program(), paddle.static.Program()",
            "feed, values = {}, {}",
            "with paddle.static.program_guard(main, startup):",
        ]
        for leaf in self.leaves:
            array = f"np.array({leaf.array.tolist()}, {leaf.dtype!r}).reshape({list(leaf.shape)})"
            if leaf.is_parameter:
                lines += [
                    f"    values[{leaf.name!r}] = {array}",
                    f"    {leaf.name} = paddle.create_parameter({list(leaf.shape)}, 'float32', "
                    f"attr=paddle.ParamAttr({leaf.name!r}))",
                ]
            else:
                shape = [-1 if leaf.is_open and axis == 0 else size for axis, size in enumerate(leaf.shape)]
                lines += [
                    f"    feed[{leaf.name!r}] = {array}",
                    f"    {leaf.name} = paddle.static.data({leaf.name!r}, {shape}, {leaf.dtype!r})",
                ]
        for step in self.steps:
            lines.append(f"    {', '.join(step.outputs)} = {step.text}")
        types = self.types
        lines.append("    losses = []")
        for name in self.learned:
            array = weights(self.evaluated[name].shape)
            weight = f"np.array({array.tolist()}, {types[name]!r})" if array.ndim else repr(float(array))
            weight = f"paddle.assign({weight})" if array.ndim else weight
            lines += [
                f"    if not {name}.stop_gradient:",
                f"        losses.append(paddle.cast(paddle.sum({name} * {weight}), 'float32'))",
            ]
        lines += [
            "    pairs = []",
            "    if losses and values:",
            "        loss = losses[0]",
            "        for one in losses[1:]:",
            "            loss = loss + one",
        ]
        lines.append(
            f"        paddle.optimizer.SGD({self.RATE}).minimize(loss)"
            if self.minimizes
            else "        pairs = paddle.static.append_backward(loss)"
        )
        lines += [
            "executor = paddle.static.Executor(paddle.CPUPlace())",
            "executor.run(startup)",
            "scope = paddle.static.global_scope()",
            "for name, value in values.items():",
            "    scope.find_var(name).get_tensor().set(value, paddle.CPUPlace())",
            f"names = {self.fetched!r}",
            "fetched = executor.run(main, feed=feed, fetch_list=[",
            "    *(globals()[name] for name in names), *(gradient for _, gradient in pairs)])",
            "found = dict(zip(names, fetched))",
            "gradients = {one.name: array for (one, _), array in zip(pairs, fetched[len(names):])}",
        ]
        if self.minimizes:
            lines += [
                "for name, value in values.items():",
                "    moved = np.array(scope.find_var(name).get_tensor())",
                f"    gradients[name] = (value - moved) / {self.RATE}",
            ]
        return "\n".join(lines) + "\n"

    def script(self, found, expected):
        """source(), and lines that show what came and what had to."""
        lines = [
            self.source(),
            "for name, array in {**found, **gradients}.items():",
            "    print(name, np.asarray(array).tolist())",
        ]
        for name in expected:
            lines.append(f"# {name} has to be {np.asarray(expected[name]).tolist()}")
            lines.append(f"# {' ' * len(name)} and was {np.asarray(found.get(name)).tolist()}")
        return "\n".join(lines) + "\n"

    def settle(self):
        """Evaluates what it holds; to be called when leaves, steps or fetched have changed."""
        self.evaluated = self.evaluate()
        for step in self.steps:
            if not hasattr(step, "dtypes"):
                step.dtypes = [dtype_of(self.evaluated[name]) for name in step.outputs]
        return self


def held(array):
    """Values as float32 holds them, in float64; others as they are."""
    return array.astype("float32").astype("float64") if array.dtype.kind == "f" else array


def weights(shape):
    """Numbers that make a loss of results: each place its own."""
    count = int(np.prod(shape, dtype=int))
    return np.cos(1.0 + 1.3 * np.arange(count)).round(2).reshape(shape)


class Maker:
    """Draws a program, step by step; what operations (table.py) ask for values of shapes."""

    LARGEST = 64
    HIGHEST = 200.0

    def __init__(self, seed, ties=False):
        """ties: where values are equal, and slopes are what an implementation says, is drawn, too."""
        self.random, self.ties = random.Random(seed), ties
        self.program = Program()
        self.values = []
        self.names = {"p": 0, "d": 0, "v": 0}

    def name(self, kind):
        """The next name of a kind: p0, d0, v0."""
        self.names[kind] += 1
        return f"{kind}{self.names[kind] - 1}"

    def numbers(self, shape, low, high):
        """Numbers of two digits, which scripts can show."""
        count = int(np.prod(shape, dtype=int))
        return np.array([round(self.random.uniform(low, high), 2) for _ in range(count)]).reshape(shape)

    def leaf(self, shape, low=-2.0, high=2.0, dtype="float32", parameter=None):
        """A new leaf with values of [low, high]."""
        if dtype == "float32":
            parameter = self.random.random() < 0.7 if parameter is None else parameter
            array = self.numbers(shape, low, high)
        else:
            parameter = False
            count = int(np.prod(shape, dtype=int))
            drawn = [self.random.randint(int(low), int(high)) for _ in range(count)]
            array = np.array(drawn, "int64" if dtype == "int64" else dtype).reshape(shape)
        if int(np.prod(shape, dtype=int)) > self.LARGEST:
            raise Unfit
        parameter = parameter and len(shape) > 0
        is_open = not parameter and len(shape) > 0 and self.random.random() < 0.15
        leaf = Leaf(self.name("p" if parameter else "d"), array, dtype, parameter, is_open)
        self.program.leaves.append(leaf)
        self.values.append(leaf)
        return leaf

    def shape(self, least=1, most=3):
        """A shape of small sizes."""
        return tuple(self.random.choice([1, 2, 2, 3, 3, 4]) for _ in range(self.random.randint(least, most)))

    def any(self, wide=False, least=0, most=9, fits=None):
        """A value of floating point, one that is there or a new leaf. wide: float64 will do, too."""
        known = [one for one in self.values if one.dtype == "float32" or (wide and one.dtype == "float64")]
        known = [one for one in known if least <= one.ndim <= most and (fits is None or fits(one.array))]
        if known and self.random.random() < 0.85:
            return known[-1] if self.random.random() < 0.5 else self.random.choice(known)
        made = self.leaf(self.shape(max(least, 1), min(most, 3)), *self.random.choice([(-2, 2), (0.3, 1.6)]))
        if fits is not None and not fits(made.array):
            raise Unfit
        return made

    def like(self, shape, dtype="float32", low=-2.0, high=2.0):
        """A value of exactly this shape and type."""
        known = [one for one in self.values if one.dtype == dtype and one.shape == tuple(shape)]
        if dtype != "float64" and known and self.random.random() < 0.6:
            return self.random.choice(known)
        if dtype == "float64":
            if known:
                return self.random.choice(known)
            raise Unfit
        return self.leaf(tuple(shape), low, high, dtype)

    def partner(self, value, fits=None):
        """A value that broadcasts with another."""
        sizes = value.shape[self.random.randint(0, value.ndim) :]
        sizes = tuple(1 if self.random.random() < 0.25 else size for size in sizes)
        if self.random.random() < 0.4:
            sizes = value.shape
        return self.like(sizes or value.shape, value.dtype if value.dtype == "float64" else "float32")

    def axis(self, value):
        """An axis, counted from either end."""
        if value.ndim == 0:
            raise Unfit
        return self.random.randint(-value.ndim, value.ndim - 1)

    def axes(self, value):
        """None, an axis or several."""
        if value.ndim == 0 or self.random.random() < 0.3:
            return None
        if self.random.random() < 0.6:
            return self.axis(value)
        return sorted(self.random.sample(range(value.ndim), self.random.randint(1, value.ndim)))

    def flag(self):
        """True or False."""
        return self.random.random() < 0.5

    def pick(self, *choices):
        """One of them."""
        return self.random.choice(choices)

    def step(self, text, reference, *inputs, flat=False, same=False, dtypes=None):
        """Appends a line: {0}, {1} … in its text are its inputs. Its first result. Raises Unfit where a
        result cannot be used, or an input is what rounding left of 0."""
        for one in inputs:
            if one.array.dtype.kind == "f" and np.any((one.array != 0) & (np.abs(one.array) < 1e-6)):
                raise Unfit
        with np.errstate(all="ignore"):
            made = reference(*(one.array for one in inputs))
        made = [np.asarray(one) for one in (made if isinstance(made, tuple) else (made,))]
        for array in made:
            if array.size > self.LARGEST or array.size == 0 or array.ndim > 5:
                raise Unfit
            if array.dtype.kind == "f" and not np.all(np.abs(array) < self.HIGHEST):
                raise Unfit
        names = [self.name("v") for _ in made]
        flat = flat or all(array.dtype.kind != "f" for array in made)
        names_in = [one.name for one in inputs]
        step = Step(text.format(*names_in), names_in, names, reference, flat, same)
        if dtypes is None:
            wide = any(one.dtype == "float64" for one in inputs)
            dtypes = ["float64" if wide and array.dtype.kind == "f" else dtype_of(array) for array in made]
        step.dtypes = dtypes
        self.program.steps.append(step)
        self.values += [Value(name, array, dtype) for name, array, dtype in zip(names, made, dtypes)]
        return self.values[-len(made)]

    def make(self, operations, length):
        """A program of about `length` steps, each drawn from `operations`."""
        for _ in range(length):
            for _ in range(TURNS):
                leaves, steps, values = map(len, (self.program.leaves, self.program.steps, self.values))
                try:
                    self.random.choice(operations)(self)
                    break
                except Unfit:
                    del self.program.leaves[leaves:], self.program.steps[steps:], self.values[values:]
        used = {name for step in self.program.steps for name in step.inputs}
        self.program.leaves = [leaf for leaf in self.program.leaves if leaf.name in used]
        made = [name for step in self.program.steps for name in step.outputs]
        ends = [name for name in made if name not in used]
        self.program.fetched = made if self.random.random() < 0.5 else ends
        self.program.minimizes = self.random.random() < 0.4
        return self.program.settle()


def closed(program):
    """The program with all sizes known while it is built."""
    return _copy(
        program,
        leaves=[Leaf(leaf.name, leaf.array, leaf.dtype, leaf.is_parameter) for leaf in program.leaves],
    )


def small(array):
    """Array with each value as a number that is easier to read, one change at a time."""
    for digits in (0, 1):
        rounded = np.round(array, digits)
        if not np.array_equal(rounded, array) and math.isfinite(float(np.sum(rounded))):
            yield rounded


def smaller(program):
    """Programs that are smaller by one change: without a step, a result, a use, or digits."""
    for index in reversed(range(len(program.steps))):
        yield _without(program, index)
    for name in program.fetched:
        if len(program.fetched) > 1:
            yield _copy(program, fetched=[one for one in program.fetched if one != name])
    if program.minimizes:
        yield _copy(program, minimizes=False)
    for place, leaf in enumerate(program.leaves):
        options = [
            Leaf(leaf.name, array, leaf.dtype, leaf.is_parameter, leaf.is_open)
            for array in (small(leaf.array) if leaf.array.dtype.kind == "f" else ())
        ]
        if leaf.is_open:
            options.append(Leaf(leaf.name, leaf.array, leaf.dtype, leaf.is_parameter))
        for one in options:
            yield _copy(program, leaves=[*program.leaves[:place], one, *program.leaves[place + 1 :]])


def _copy(program, **changes):
    made = Program()
    for name in ("leaves", "steps", "fetched", "minimizes"):
        setattr(made, name, changes.get(name, getattr(program, name)))
    used = {name for step in made.steps for name in step.inputs}
    made.leaves = [leaf for leaf in made.leaves if leaf.name in used]
    return made.settle()


def _without(program, index):
    """Where the results of a step are used, leaves with their values stand instead."""
    step, rest = program.steps[index], [*program.steps[:index], *program.steps[index + 1 :]]
    leaves = list(program.leaves)
    for name, dtype in zip(step.outputs, step.dtypes):
        array = program.evaluated[name]
        is_parameter = dtype == "float32" and array.ndim > 0
        leaves.append(Leaf(name, array, dtype, is_parameter))
    fetched = [name for name in program.fetched if name not in step.outputs]
    made = [name for one in rest for name in one.outputs]
    fetched = fetched or made[-1:]
    return _copy(program, steps=rest, leaves=leaves, fetched=fetched) if rest else None


def shrink(program, fails):
    """The smallest program that can be reached and for which `fails(program)` holds."""
    shrunk = True
    while shrunk:
        shrunk = False
        for candidate in smaller(program):
            if candidate is not None and fails(candidate):
                program, shrunk = candidate, True
                break
    return program
