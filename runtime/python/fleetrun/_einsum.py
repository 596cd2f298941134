"""paddle.einsum: two operands at a time; what one of them alone holds is summed first, the rest is one engine
operator."""

from __future__ import annotations

from fleetrun._error import Error
from fleetrun._graph import append
from fleetrun._types import Variable

_SPARE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _fail(equation, what, hint=""):
    raise Error("config", f'paddle.einsum("{equation}"): {what}', hint)


def _letters(equation, operands):
    """(letters of each operand, letters of the result), dots replaced by letters that the equation does not
    use."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        _fail(equation, f"{len(parts)} operands are described, {len(operands)} are given")
    spare = [letter for letter in _SPARE if letter not in equation]
    most = max(
        (x.ndim - len(part.replace("...", "")) for part, x in zip(parts, operands) if "..." in part),
        default=0,
    )
    dots = "".join(spare[:most])
    inputs = []
    for part, x in zip(parts, operands):
        hidden = x.ndim - len(part.replace("...", ""))
        inputs.append(part.replace("...", dots[len(dots) - hidden :] if hidden else ""))
        if len(inputs[-1]) != x.ndim:
            _fail(equation, f"'{part}' describes {x.name}, which has {x.ndim} axes")
        if len(set(inputs[-1])) != len(inputs[-1]):
            _fail(equation, f"a letter is twice in '{part}'", "diagonals are not supported")
    if arrow:
        return inputs, right.replace("...", dots)
    every = "".join(inputs)
    return inputs, dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))


def einsum(equation: str, *operands: Variable) -> Variable:
    """Products of operands, summed over the letters that the result does not have. `...` stands for any
    axes."""
    if not operands:
        _fail(equation, "no operand is given")
    inputs, wanted = _letters(equation, operands)
    factors = list(operands)
    while len(factors) > 2:
        later = wanted + "".join(inputs[2:])
        kept = "".join(c for c in dict.fromkeys(inputs[0] + inputs[1]) if c in later)
        factors[:2], inputs[:2] = [_product(equation, factors[:2], inputs[:2], kept)], [kept]
    return _product(equation, factors, inputs, wanted)


def _product(equation, factors, inputs, wanted):
    """Of one or two operands. Changes the lists."""
    others = [inputs[1 - place] if len(inputs) == 2 else "" for place in range(len(inputs))]
    for place, letters in enumerate(inputs):
        alone = [axis for axis, c in enumerate(letters) if c not in wanted and c not in others[place]]
        if alone:
            factors[place] = factors[place].sum(axis=alone)
            inputs[place] = "".join(c for axis, c in enumerate(letters) if axis not in alone)
    if any(c not in "".join(inputs) for c in wanted):
        _fail(equation, f"'{wanted}' has a letter that no operand has")
    if "" in inputs:  # a number
        rest = [(x, letters) for x, letters in zip(factors, inputs) if letters]
        product = factors[0] if len(factors) == 1 else factors[0] * factors[1]
        return _ordered(product, rest[0][1], wanted) if rest else product
    if len(factors) == 1:
        return _ordered(factors[0], inputs[0], wanted)
    return append("einsum", "einsum", factors, {"x": inputs[0], "y": inputs[1], "out": wanted})


def _ordered(x, letters, wanted):
    return x if letters == wanted else x.transpose([letters.index(c) for c in wanted])
