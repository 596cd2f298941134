"""fluid.layers: pictures and volumes in other sizes, and their channels, under the names and arguments of
Paddle 1.x."""

from __future__ import annotations

from fleetrun import tensor
from fleetrun._error import Error
from fleetrun._types import Any, Sequence, Variable
from fleetrun.nn import _resized, functional
from fleetrun.static.activated import activated
from fleetrun.static.sequence_lod import lod_reset

__all__ = [
    "affine_channel", "affine_grid", "fsp_matrix", "grid_sampler", "im2sequence", "image_resize",
    "image_resize_short", "lrn", "pixel_shuffle", "resize_bilinear", "resize_linear", "resize_nearest",
    "resize_trilinear", "shuffle_channel", "space_to_depth", "temporal_shift", "unfold",
]  # fmt: skip

_MODES = {"LINEAR": "linear", "BILINEAR": "bilinear", "TRILINEAR": "trilinear", "NEAREST": "nearest",
          "BICUBIC": "bicubic"}  # fmt: skip


def image_resize(
    input: Variable,
    out_shape: Any = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """`input` with its axes of space in the sizes out_shape, or `scale` times theirs. resample: LINEAR,
    BILINEAR, TRILINEAR, NEAREST or BICUBIC. actual_shape: sizes that a run decides."""
    if resample not in _MODES:
        raise Error(
            "config", f"fluid.layers.image_resize(resample={resample!r})", f"use one of {', '.join(_MODES)}"
        )
    size = out_shape if actual_shape is None else actual_shape
    if size is None and scale is None:
        raise Error("config", "fluid.layers.image_resize without out_shape and scale", "give it one of them")
    if size is None and isinstance(scale, Variable):
        space = tensor.cast(tensor.shape(input), "float32")
        first = 1 if data_format in ("NWC", "NHWC", "NDHWC") else 2
        space = tensor.slice(space, [0], [first], [first + input.ndim - 2])
        size = tensor.cast(space * tensor.reshape(scale, [1]), "int32")
    last = data_format in ("NWC", "NHWC", "NDHWC")
    return _resized.resized(
        input, size, scale, _MODES[resample], align_corners, align_mode, last, by_size=True
    )


def resize_linear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCW",
) -> Variable:
    """image_resize() of sequences, LINEAR."""
    more = (actual_shape, align_corners, align_mode, data_format)
    return image_resize(input, out_shape, scale, name, "LINEAR", *more)


def resize_bilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize() of pictures, BILINEAR."""
    more = (actual_shape, align_corners, align_mode, data_format)
    return image_resize(input, out_shape, scale, name, "BILINEAR", *more)


def resize_trilinear(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCDHW",
) -> Variable:
    """image_resize() of volumes, TRILINEAR."""
    more = (actual_shape, align_corners, align_mode, data_format)
    return image_resize(input, out_shape, scale, name, "TRILINEAR", *more)


def resize_nearest(
    input: Variable,
    out_shape: Any = None,
    scale: Any = None,
    name: str | None = None,
    actual_shape: Variable | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize() of pictures, NEAREST."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input: Variable, out_short_len: int, resample: str = "BILINEAR") -> Variable:
    """image_resize() to pictures whose shorter side has this size."""
    high, wide = input.shape[2:]
    short = min(high, wide)
    sizes = [int(float(side) * out_short_len / short + 0.5) for side in (high, wide)]
    return image_resize(input, sizes, resample=resample)


def lrn(
    input: Variable,
    n: int = 5,
    k: float = 1.0,
    alpha: float = 1e-4,
    beta: float = 0.75,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """input / (k + alpha * the sum of squares of n neighbouring channels)^beta."""
    return _resized.over_channels(input, n, alpha, beta, k, data_format == "NHWC", (n - 1) // 2)


def pixel_shuffle(x: Variable, upscale_factor: int) -> Variable:
    """Channels moved to space."""
    return functional.pixel_shuffle(x, upscale_factor)


def shuffle_channel(x: Variable, group: int, name: str | None = None) -> Variable:
    """Channels of `group` groups in turn."""
    return functional.channel_shuffle(x, group)


def affine_channel(
    x: Variable,
    scale: Variable | None = None,
    bias: Variable | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    act: str | None = None,
) -> Variable:
    """act(x * scale + bias), one number of each for a channel."""
    shape = [1, -1, 1, 1] if data_layout == "NCHW" else [-1]
    x = x if scale is None else x * tensor.reshape(scale, shape)
    x = x if bias is None else x + tensor.reshape(bias, shape)
    return activated("fluid.layers.affine_channel", act, x)


def fsp_matrix(x: Variable, y: Variable) -> Variable:
    """The products of channels, the mean over places. Shape: [n, c, high, wide] x [n, d, high, wide] ->
    [n, c, d]."""
    products = tensor.matmul(tensor.flatten(x, 2, 3), tensor.flatten(y, 2, 3), transpose_y=True)
    return tensor.scale(products, 1.0 / (x.shape[2] * x.shape[3]))


def unfold(
    x: Variable,
    kernel_sizes: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    paddings: int | Sequence[int] = 0,
    dilations: int | Sequence[int] = 1,
    name: str | None = None,
) -> Variable:
    """functional.unfold()."""
    return functional.unfold(x, kernel_sizes, strides, paddings, dilations)


def im2sequence(
    input: Variable,
    filter_size: int | Sequence[int] = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    input_image_size: Variable | None = None,
    out_stride: Any = 1,
    name: str | None = None,
) -> Variable:
    """A picture as the sequence of what lies under a window. padding: one number, two, or top, left, bottom
    and right. Shape: [n, channels, high, wide] -> sequences of channels * window values."""
    if input_image_size is not None:
        raise Error("config", "fluid.layers.im2sequence(input_image_size=…)", "give pictures of one size")
    columns = functional.unfold(input, filter_size, stride, padding)
    width, places = columns.shape[1:]
    rows = tensor.reshape(tensor.transpose(columns, [0, 2, 1]), [-1, width])
    starts = tensor.arange(0, tensor.shape(columns)[0] + 1, 1, "int64") * places
    return lod_reset(rows, starts)


def affine_grid(theta: Variable, out_shape: Sequence[int], name: str | None = None) -> Variable:
    """nn.functional.affine_grid."""
    made: Variable = functional.affine_grid(theta, out_shape)
    return made


def grid_sampler(x: Variable, grid: Variable, name: str | None = None) -> Variable:
    """nn.functional.grid_sample, bilinear."""
    made: Variable = functional.grid_sample(x, grid)
    return made


def temporal_shift(x: Variable, seg_num: int, shift_ratio: float = 0.25, name: str | None = None) -> Variable:
    """nn.functional.temporal_shift."""
    made: Variable = functional.temporal_shift(x, seg_num, shift_ratio)
    return made


def space_to_depth(x: Variable, blocksize: int, name: str | None = None) -> Variable:
    """The values of x in the order of the image that is blocksize times as wide and high, cut into [n,
    channels * blocksize², high / blocksize, wide / blocksize]."""
    channels, high, wide = x.shape[1:]
    blocks = blocksize * blocksize
    if channels % blocks or high % blocksize or wide % blocksize:
        what = f"{x.name} {list(x.shape)} does not divide into blocks of {blocksize} by {blocksize}"
        raise Error("config", f"fluid.layers.space_to_depth: {what}")
    parts = tensor.reshape(x, [-1, blocksize, blocksize, channels // blocks, high, wide])
    wider = tensor.transpose(parts, [0, 3, 4, 1, 5, 2])
    return tensor.reshape(wider, [-1, channels * blocks, high // blocksize, wide // blocksize])
