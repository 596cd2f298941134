"""fluid.layers: losses, samples and products that few scripts have, under the names and arguments of Paddle
1.x."""

from __future__ import annotations

from fleetrun import framework, tensor
from fleetrun._arguments import refuse
from fleetrun._param_attr import ParamAttr
from fleetrun._types import Any, DTypeLike, ParamLike, Variable
from fleetrun.fluid._math import one_hot_of_all
from fleetrun.nn import functional, initializer
from fleetrun.static import norms
from fleetrun.static.activated import activated
from fleetrun.static.sequence_lod import sequence_pad, sequence_unpad

__all__ = [
    "add_position_encoding", "bilinear_tensor_product", "center_loss", "get_tensor_from_selected_rows",
    "instance_norm", "mean_iou", "merge_selected_rows", "sampling_id", "teacher_student_sigmoid_loss",
    "unique", "unique_with_counts",
]  # fmt: skip


def teacher_student_sigmoid_loss(
    input: Variable, label: Variable, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Variable:
    """The cross entropy of a click, and of a teacher's chance where there is one: label -2 is no click, -1 a
    click, a chance in [0, 1) no click, 1 and the chance a click. No slope beyond the bounds. Shape: [n,
    1]."""

    def loss_of(x: Variable) -> Variable:
        one = functional.softplus(x)

        def where(low: float, high: float) -> Variable:
            inside = tensor.logical_and(tensor.greater_equal(label, low), tensor.less_than(label, high))
            return tensor.cast(inside, "float32")

        clicked = where(-1.0, 0.0) + where(1.0, float("inf"))
        taught = where(0.0, float("inf"))
        chance = label - where(1.0, float("inf"))
        return one - x * clicked + taught * (one - x * chance)

    exact = loss_of(input)
    sloped = loss_of(tensor.clip(input, soft_max_lower_bound, soft_max_up_bound))
    apart = exact - sloped
    apart.stop_gradient = True
    return sloped + apart


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
    name: str | None = None,
) -> Variable:
    """Each channel of each example to mean 0 and variance 1, times a weight (1) plus a bias (0) of each
    channel, which are there also where their attributes are left out."""
    for given, attr in (("param_attr", param_attr), ("bias_attr", bias_attr)):
        if attr is False:
            refuse("fluid.layers.instance_norm", **{given: (attr, None)})
    return norms.instance_norm(input, epsilon, param_attr or ParamAttr(), bias_attr or ParamAttr(), name)


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: float | Variable,
    param_attr: ParamLike,
    update_center: bool = True,
) -> Variable:
    """Half the squared distance of each row to the centre of its class; the centres, which optimizers leave
    alone, move by alpha times the mean distance while training. Shape: input[n, width], label[n, 1] -> [n,
    1]."""
    layer = framework.unique_name("center_loss")
    start = initializer.Constant(0.0)
    centers = framework.make_parameter(
        layer, [num_classes, input.shape[1]], "float32", param_attr, False, start, named=True
    )
    centers.stop_gradient = True
    ids = tensor.reshape(label, [-1])
    distance = input - tensor.gather(centers, ids)
    loss = tensor.scale(tensor.sum(tensor.square(distance), 1, keepdim=True), 0.5)
    if update_center:
        with framework.default_main_program()._optimized_guard([]):
            zeros = tensor.zeros_like(centers)
            moved = tensor.scatter(zeros, ids, distance, overwrite=False)
            ones = tensor.slice(tensor.ones_like(distance), [1], [0], [1])
            none = tensor.slice(zeros, [1], [0], [1])
            counts = tensor.scatter(none, ids, ones, overwrite=False) + 1.0
            tensor.assign(centers + moved / counts * alpha, centers)
    return loss


def bilinear_tensor_product(
    x: Variable,
    y: Variable,
    size: int,
    act: str | None = None,
    name: str | None = None,
    param_attr: ParamLike = None,
    bias_attr: ParamLike = None,
) -> Variable:
    """act(x @ weight[k] @ y + bias[k]) for each k. Shape: x[n, a], y[n, b] -> [n, size]."""
    layer = name or framework.unique_name("bilinear_tensor_product")
    shape = [size, x.shape[1], y.shape[1]]
    weight = framework.make_parameter(layer, shape, "float32", param_attr, False, None, named=True)
    bias: Any = None
    if bias_attr is not False:
        bias = framework.make_parameter(layer, [1, size], "float32", bias_attr, True, None, named=True)
    return activated("bilinear_tensor_product", act, functional.bilinear(x, y, weight, bias))


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """alpha * input + beta * sines and cosines of the place within the sequence. Shape: [n, length, width],
    or sequences of rows."""
    lengths: Any = None
    if input.lod_level:
        input, lengths = sequence_pad(input, tensor.zeros([1], "float32"))
    half = input.shape[-1] // 2
    steps = [10000.0 ** -(k / (half - 1)) if half > 1 else 1 / 10000.0 for k in range(half)]
    places = tensor.cast(tensor.arange(0, tensor.shape(input)[1], 1, "int64"), "float32")
    angles = tensor.reshape(places, [1, -1, 1]) * tensor.to_tensor([[steps]], "float32")
    waves = tensor.concat([tensor.sin(angles), tensor.cos(angles)], 2)
    out = tensor.scale(input, alpha) + tensor.scale(waves, beta)
    return out if lengths is None else sequence_unpad(out, lengths)


def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, Variable, Variable]:
    """(the mean over classes that are there of right / (right + wrong), how many of each class are wrong, how
    many right, int32)."""
    hots = [
        one_hot_of_all(tensor.reshape(tensor.cast(one, "int64"), [-1]), num_classes) for one in (input, label)
    ]
    right = tensor.sum(hots[0] * hots[1], 0)
    wrong = tensor.sum(hots[0], 0) + tensor.sum(hots[1], 0) - tensor.scale(right, 2.0)
    both = right + wrong
    there = tensor.cast(tensor.greater_than(both, 0.0), "float32")
    share = right / tensor.maximum(both, tensor.ones_like(both))
    mean = tensor.sum(share) / tensor.maximum(tensor.sum(there), tensor.ones_like(tensor.sum(there)))
    return tensor.reshape(mean, [1]), tensor.cast(wrong, "int32"), tensor.cast(right, "int32")


def sampling_id(
    x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: DTypeLike = "float32"
) -> Variable:
    """A class drawn for each row by its chances. Shape: [n, classes] -> [n]."""
    attributes: dict[str, Any] = {"num_samples": 1, "replacement": True}
    if seed:
        attributes["seed"] = int(seed)
    drawn = framework.append("sampling_id", "multinomial", [x], attributes)
    return tensor.cast(tensor.reshape(drawn, [-1]), dtype)


def _by_appearance(x: Variable, dtype: DTypeLike) -> tuple[Variable, Variable, Variable]:
    values, firsts, inverse, counts = tensor.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = tensor.argsort(firsts)
    rank = tensor.argsort(order)
    numbers = tensor.cast(tensor.gather(rank, inverse), dtype)
    return tensor.gather(values, order), numbers, tensor.cast(tensor.gather(counts, order), dtype)


def unique(x: Variable, dtype: DTypeLike = "int32") -> tuple[Variable, Variable]:
    """(the values as they first come, the number of each value of x among them)."""
    return _by_appearance(x, dtype)[:2]


def unique_with_counts(x: Variable, dtype: DTypeLike = "int32") -> tuple[Variable, Variable, Variable]:
    """unique(), and how often each is there."""
    return _by_appearance(x, dtype)


def get_tensor_from_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """x: rows are no other kind of variable here."""
    return tensor.assign(x)


def merge_selected_rows(x: Variable, name: str | None = None) -> Variable:
    """x: rows are no other kind of variable here."""
    return tensor.assign(x)
