"""paddle.linalg: what of it is made of products and sums."""

from __future__ import annotations

from fleetrun import _lazy, tensor
from fleetrun._arguments import refuse
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable

__all__ = ["corrcoef", "cov", "matrix_power", "multi_dot"]


def cov(
    x: Variable,
    rowvar: bool = True,
    ddof: bool = True,
    fweights: Any = None,
    aweights: Any = None,
    name: str | None = None,
) -> Variable:
    """How the rows of x (columns without rowvar) vary together; ddof: over one observation less. Shape: [n,
    observations], sizes known -> [n, n]."""
    refuse("paddle.linalg.cov", fweights=(fweights, None), aweights=(aweights, None))
    x = tensor.unsqueeze(x, 0) if x.ndim == 1 else x
    x = x if rowvar else tensor.transpose(x, [1, 0])
    if x.shape[1] < 0:
        raise Error("config", f"paddle.linalg.cov of {x.name} {list(x.shape)}", "give it fixed sizes")
    apart = x - tensor.mean(x, 1, keepdim=True)
    product = tensor.matmul(apart, apart, transpose_y=True)
    made = tensor.scale(product, 1.0 / (x.shape[1] - (1 if ddof else 0)))
    return made if x.shape[0] != 1 else tensor.reshape(made, [])


def corrcoef(x: Variable, rowvar: bool = True, name: str | None = None) -> Variable:
    """cov() over the deviations of both, within [-1, 1]."""
    made = cov(x, rowvar)
    if not made.ndim:
        return made / made
    deviation = tensor.sqrt(tensor.diagonal(made))
    return tensor.clip(made / tensor.unsqueeze(deviation, 1) / tensor.unsqueeze(deviation, 0), -1.0, 1.0)


def matrix_power(x: Variable, n: int, name: str | None = None) -> Variable:
    """The product of n times x. Throws: Error(config) for an n below 0."""
    if n < 0:
        raise Error("config", f"paddle.linalg.matrix_power(n={n}): there is no inverse here")
    if n == 0:
        return tensor.expand_as(tensor.eye(x.shape[-1]), x)
    made = x
    for _ in range(n - 1):
        made = tensor.matmul(made, x)
    return made


def multi_dot(x: Sequence[Variable], name: str | None = None) -> Variable:
    """The product of matrices, the first and the last of which may be vectors."""
    made = x[0]
    for one in x[1:]:
        made = tensor.matmul(made, one)
    return made


__getattr__, __dir__ = _lazy.attach(__name__, _lazy.names("tensor", "norm"))
