"""Functions of paddle.incubate that are one operator in Paddle, for speed."""

from fleetrun import tensor
from fleetrun._types import Variable
from fleetrun.nn import functional


def softmax_mask_fuse(x: Variable, mask: Variable, name: str | None = None) -> Variable:
    """softmax(x + mask) over the last axis."""
    made: Variable = functional.softmax(x + mask)
    return made


def softmax_mask_fuse_upper_triangle(x: Variable) -> Variable:
    """softmax over the last axis of what is not above the diagonal, 0 there. Shape: [.., n, n]."""
    ones = tensor.ones_like(x)
    hidden = tensor.triu(ones, 1)
    made: Variable = functional.softmax(tensor.where(tensor.greater_than(hidden, 0.0), ones * -1e30, x))
    return made


def identity_loss(x: Variable, reduction: str | int = "none") -> Variable:
    """x, its sum or its mean: "none" (2), "sum" (0), "mean" (1)."""
    if reduction in ("sum", 0):
        return tensor.sum(x)
    if reduction in ("mean", 1):
        return tensor.mean(x)
    if reduction in ("none", 2):
        return tensor.assign(x)
    raise ValueError(f"paddle.incubate.identity_loss(reduction={reduction!r})")
