# Written by scripts/python-stubs.
"""The methods of a variable."""
from collections.abc import Sequence
from typing import Any
from fleetrun._dtypes import DTypeLike
from fleetrun._numbers import Operand, Shape
from fleetrun._variable import Variable
class Operators:
    def __hash__(self) -> int: ...
    def abs(self, name: str | None = None) -> Variable:
        """The absolute value, value by value."""
    def acos(self, name: str | None = None) -> Variable:
        """The inverse of the cosine, value by value."""
    def add(self, y: Operand, name: str | None = None) -> Variable:
        """x + y, with broadcasting."""
    def add_n(self, name: str | None = None) -> Variable:
        """The sum of a list of variables of one shape."""
    def all(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """Whether all values over `axis` are true, or of numbers not 0."""
    def any(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """Whether a value over `axis` is true, or of numbers not 0."""
    def argmax(self, axis: int | None = None, keepdim: bool = False, dtype: DTypeLike = 'int64', name: str | None = None) -> Variable:
        """The place of the largest value along `axis`, or of all; the first of equal ones."""
    def argmin(self, axis: int | None = None, keepdim: bool = False, dtype: DTypeLike = 'int64', name: str | None = None) -> Variable:
        """The place of the smallest value along `axis`, or of all; the first of equal ones."""
    def argsort(self, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
        """The places of the values along `axis` in rising, or falling, order; equal ones as Paddle has
        them, in no order of their own."""
    def asin(self, name: str | None = None) -> Variable:
        """The inverse of the sine, value by value."""
    def atan(self, name: str | None = None) -> Variable:
        """The inverse of the tangent, value by value."""
    def bernoulli(self, name: str | None = None) -> Variable:
        """1 with the probability that x gives, else 0. Shape: that of x, float32."""
    def bitwise_and(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_and of x and y, value by value, bit by bit; of bools, as bool."""
    def bitwise_not(self, name: str | None = None) -> Variable:
        """The other bits of whole numbers; of bools, not x."""
    def bitwise_or(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_or of x and y, value by value, bit by bit; of bools, as bool."""
    def bitwise_xor(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_xor of x and y, value by value, bit by bit; of bools, as bool."""
    def bmm(self, y: Variable, name: str | None = None) -> Variable:
        """Matrix products, one per example. Shape: [B, N, K] x [B, K, M]."""
    def broadcast_to(self, shape: Shape, name: str | None = None) -> Variable:
        """x with axes of 1, and new ones at the front, repeated to `shape`; -1 keeps a size, sizes may be
        variables."""
    def cast(self, dtype: DTypeLike) -> Variable:
        """x in another type."""
    def ceil(self, name: str | None = None) -> Variable:
        """Rounded up, value by value."""
    def chunk(self, chunks: int, axis: int = 0, name: str | None = None) -> list[Variable]:
        """`chunks` equal parts of x along `axis`."""
    def clip(self, min: float | Variable | None = None, max: float | Variable | None = None, name: str | None = None) -> Variable:
        """x cut to [min, max]; a bound of None is none. Bounds of whole numbers lose their fractions."""
    def concat(self, axis: int = 0, name: str | None = None) -> Variable:
        """Variables side by side along `axis`; a copy of one alone."""
    def cos(self, name: str | None = None) -> Variable:
        """The cosine, value by value."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """Each value and those before it along `axis`, or in the flattened x, added up."""
    def digamma(self, name: str | None = None) -> Variable:
        """The slope of lgamma(), value by value."""
    def divide(self, y: Operand, name: str | None = None) -> Variable:
        """x / y, value by value, with broadcasting."""
    def dot(self, y: Variable, name: str | None = None) -> Variable:
        """The sum of products along the last axis. Shape: [N] x [N], or [B, N] x [B, N] -> [B]."""
    def equal(self, y: Operand, name: str | None = None) -> Variable:
        """equal of x and y, value by value, as bool."""
    def equal_all(self, y: Operand, name: str | None = None) -> Variable:
        """Whether all values are equal."""
    def erf(self, name: str | None = None) -> Variable:
        """The error function, value by value."""
    def erfinv(self, name: str | None = None) -> Variable:
        """The inverse of the error function, value by value."""
    def exp(self, name: str | None = None) -> Variable:
        """e to the power of x, value by value."""
    def expand(self, shape: Shape, name: str | None = None) -> Variable:
        """x with axes of 1, and new ones at the front, repeated to `shape`; -1 keeps a size, sizes may be
        variables."""
    def expand_as(self, y: Variable, name: str | None = None) -> Variable:
        """expand() to y's shape."""
    def expm1(self, name: str | None = None) -> Variable:
        """exp(x) - 1, value by value."""
    def flatten(self, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Variable:
        """x with the axes start_axis … stop_axis joined into one."""
    def flip(self, axis: int | Sequence[int], name: str | None = None) -> Variable:
        """x with the values along the axes `axis` in reverse order."""
    def floor(self, name: str | None = None) -> Variable:
        """Rounded down, value by value."""
    def floor_divide(self, y: Operand, name: str | None = None) -> Variable:
        """x / y rounded down, value by value, with broadcasting."""
    def floor_mod(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def gather(self, index: Variable, axis: int | None = None, name: str | None = None) -> Variable:
        """x with the axis `axis` (the first when None) replaced by the places in index[n]; without it where the
        index has no axis."""
    def gather_nd(self, index: Variable, name: str | None = None) -> Variable:
        """The parts of x at index[.., k]: one place for each of its first k axes."""
    def greater_equal(self, y: Operand, name: str | None = None) -> Variable:
        """greater_equal of x and y, value by value, as bool."""
    def greater_than(self, y: Operand, name: str | None = None) -> Variable:
        """greater_than of x and y, value by value, as bool."""
    def index_select(self, index: Variable, axis: int = 0, name: str | None = None) -> Variable:
        """gather() along any axis."""
    def isfinite(self, name: str | None = None) -> Variable:
        """Whether a value is neither NaN nor infinite."""
    def isinf(self, name: str | None = None) -> Variable:
        """Whether a value is infinite."""
    def isnan(self, name: str | None = None) -> Variable:
        """Whether a value is NaN."""
    def less_equal(self, y: Operand, name: str | None = None) -> Variable:
        """less_equal of x and y, value by value, as bool."""
    def less_than(self, y: Operand, name: str | None = None) -> Variable:
        """less_than of x and y, value by value, as bool."""
    def lgamma(self, name: str | None = None) -> Variable:
        """The logarithm of the gamma function, value by value."""
    def log(self, name: str | None = None) -> Variable:
        """The natural logarithm, value by value."""
    def log10(self, name: str | None = None) -> Variable:
        """The logarithm to base 10, value by value."""
    def log1p(self, name: str | None = None) -> Variable:
        """log(1 + x), value by value."""
    def log2(self, name: str | None = None) -> Variable:
        """The logarithm to base 2, value by value."""
    def logical_and(self, y: Operand, name: str | None = None) -> Variable:
        """logical_and of x and y, value by value, as bool."""
    def logical_not(self, name: str | None = None) -> Variable:
        """Whether a value is 0 or false."""
    def logical_or(self, y: Operand, name: str | None = None) -> Variable:
        """logical_or of x and y, value by value, as bool."""
    def logical_xor(self, y: Operand, name: str | None = None) -> Variable:
        """logical_xor of x and y, value by value, as bool."""
    def logsumexp(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """log(sum(exp(x))) over `axis`, without overflow."""
    def masked_select(self, mask: Variable, name: str | None = None) -> Variable:
        """The values of x where `mask` (bool) holds, both brought to one shape. Shape: [how many]."""
    def matmul(self, y: Variable, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None) -> Variable:
        """The matrix product. Shape: [.., N, K] x [.., K, M] with leading axes broadcast; [K] is a row of x, a
        column of y."""
    def max(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The largest over `axis` (a number, a list, or None for all)."""
    def maximum(self, y: Operand, name: str | None = None) -> Variable:
        """The larger of x and y, value by value, with broadcasting."""
    def mean(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The mean over `axis` (a number, a list, or None for all)."""
    def min(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The smallest over `axis` (a number, a list, or None for all)."""
    def minimum(self, y: Operand, name: str | None = None) -> Variable:
        """The smaller of x and y, value by value, with broadcasting."""
    def mm(self, mat2: Variable, name: str | None = None) -> Variable:
        """matmul()."""
    def mod(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def multinomial(self, num_samples: int = 1, replacement: bool = False, name: str | None = None) -> Variable:
        """Places drawn in proportion to x. Shape: x[.., places] float32 -> [.., num_samples] int64."""
    def multiply(self, y: Operand, name: str | None = None) -> Variable:
        """x * y, value by value, with broadcasting."""
    def nonzero(self, as_tuple: bool = False) -> Any:
        """Where x is not 0. Shape: [how many, axes of x] int64; as_tuple: one [how many, 1] for each axis."""
    def norm(self, p: float | str = 'fro', axis: int | Sequence[int] | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The p-norm over `axis`: p a number, plus or minus infinity, or "fro" (2); of 0 how many are not 0.
        1e-12 where all values are 0, so that it has a slope."""
    def not_equal(self, y: Operand, name: str | None = None) -> Variable:
        """not_equal of x and y, value by value, as bool."""
    def numel(self, name: str | None = None) -> Variable:
        """How many values x has when the program runs, int64."""
    def outer(self, y: Variable, name: str | None = None) -> Variable:
        """Every value of x times every one of y. Shape: [N] x [M] -> [N, M]."""
    def pow(self, y: Variable | float, name: str | None = None) -> Variable:
        """x to the power of a number or of a variable."""
    def prod(self, axis: int | Sequence[int] | None = None, keepdim: bool = False, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """The product over `axis` (a number, a list, or None for all)."""
    def rank(self) -> Variable:
        """The number of axes, int32."""
    def reciprocal(self, name: str | None = None) -> Variable:
        """1 / x, value by value."""
    def remainder(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def reshape(self, shape: Shape, name: str | None = None) -> Variable:
        """x with another shape: 0 keeps that size, one -1 is computed; sizes may be variables."""
    def roll(self, shifts: int | Sequence[int], axis: int | Sequence[int] | None = None, name: str | None = None) -> Variable:
        """x with the values along the axes `axis` (of fixed size) moved by `shifts`, around the end."""
    def round(self, name: str | None = None) -> Variable:
        """Rounded, halves away from 0, value by value."""
    def rsqrt(self, name: str | None = None) -> Variable:
        """1 / sqrt(x), value by value."""
    def scale(self, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None, name: str | None = None) -> Variable:
        """scale * x + bias, or scale * (x + bias)."""
    def scatter(self, index: Variable, updates: Variable, overwrite: bool = True, name: str | None = None) -> Variable:
        """x with the rows index[n] replaced by updates[n, ..]; overwrite=False: by the sums of the updates of
        each."""
    def sign(self, name: str | None = None) -> Variable:
        """-1, 0 or 1, value by value."""
    def sin(self, name: str | None = None) -> Variable:
        """The sine, value by value."""
    def slice(self, axes: Sequence[int], starts: Shape, ends: Shape) -> Variable:
        """input[starts:ends] along each of `axes`; negative numbers count from the end, variables may be among
        them."""
    def sort(self, axis: int = -1, descending: bool = False, name: str | None = None) -> Variable:
        """The values along `axis` in rising, or falling, order."""
    def split(self, num_or_sections: int | Sequence[int], axis: int = 0, name: str | None = None) -> list[Variable]:
        """Parts of x along `axis`: that many equal ones, or of these sizes (one may be -1). Returns a list."""
    def sqrt(self, name: str | None = None) -> Variable:
        """The square root, value by value."""
    def square(self, name: str | None = None) -> Variable:
        """x * x, value by value."""
    def squeeze(self, axis: int | Sequence[int] | None = None, name: str | None = None) -> Variable:
        """x without the axes `axis` where they are 1, or without all that are 1 as far as is known."""
    def stack(self, axis: int = 0, name: str | None = None) -> Variable:
        """Variables of one shape, stacked along a new axis."""
    def std(self, axis: int | Sequence[int] | None = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None) -> Variable:
        """The square root of var()."""
    def strided_slice(self, axes: Sequence[int], starts: Shape, ends: Shape, strides: Sequence[int] | None, name: str | None = None) -> Variable:
        """slice() that takes every `strides`-th place; below 0 from `starts` down, where an end of -1 is before
        the first place."""
    def subtract(self, y: Operand, name: str | None = None) -> Variable:
        """x - y, with broadcasting."""
    def sum(self, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The sum over `axis` (a number, a list, or None for all); of whole numbers and bools int64."""
    def t(self, name: str | None = None) -> Variable:
        """A matrix with its axes exchanged; a vector as it is."""
    def take_along_axis(self, indices: Variable, axis: int, broadcast: bool = True) -> Variable:
        """Along `axis`, of each line of arr those places that the line of `indices` says; with broadcast one line
        says it of all."""
    def tan(self, name: str | None = None) -> Variable:
        """The tangent, value by value."""
    def tanh(self, name: str | None = None) -> Variable:
        """The hyperbolic tangent, value by value."""
    def tile(self, repeat_times: Shape, name: str | None = None) -> Variable:
        """x repeated so many times along each axis, from the last one; times may be variables."""
    def topk(self, k: int | Variable, axis: int | None = None, largest: bool = True, sorted: bool = True, name: str | None = None) -> tuple[Variable, Variable]:
        """(values, places) of the k largest, or smallest, along `axis` (the last when None), in order. k: a
        number or a variable of one integer."""
    def transpose(self, perm: Sequence[int], name: str | None = None) -> Variable:
        """x with its axes in this order."""
    def tril(self, diagonal: int = 0, name: str | None = None) -> Variable:
        """The values up to that diagonal of the last two axes; 0 above it."""
    def triu(self, diagonal: int = 0, name: str | None = None) -> Variable:
        """The values from that diagonal of the last two axes on; 0 below it."""
    def unbind(self, axis: int = 0) -> list[Variable]:
        """The parts of `input` along `axis` (of fixed size), without that axis."""
    def unique(self, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | Sequence[int] | None = None, dtype: DTypeLike = 'int64', name: str | None = None) -> Any:
        """The different values of x in rising order; and, as asked for, their first places in the flattened x,
        for each value of x which one it is, and how often each is there."""
    def unsqueeze(self, axis: int | Sequence[int], name: str | None = None) -> Variable:
        """x with new axes of size 1 at these places of the result."""
    def unstack(self, axis: int = 0, num: int | None = None) -> list[Variable]:
        """unbind()."""
    def var(self, axis: int | Sequence[int] | None = None, unbiased: bool = True, keepdim: bool = False, name: str | None = None) -> Variable:
        """The variance over `axis`."""
    def where(self, x: Any = None, y: Any = None, name: str | None = None) -> Any:
        """x where `condition` (bool) holds, else y, with broadcasting; without both nonzero(condition,
        as_tuple=True)."""
    def acosh(self, name: str | None = None) -> Variable:
        """The inverse of cosh, value by value."""
    def addmm(self, x: Variable, y: Variable, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Variable:
        """beta * input + alpha * x @ y."""
    def allclose(self, y: Variable, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None) -> Variable:
        """Whether all values are close: isclose()."""
    def amax(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The largest value over `axis`; equal ones share its gradient."""
    def amin(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The smallest value over `axis`; equal ones share its gradient."""
    def asinh(self, name: str | None = None) -> Variable:
        """The inverse of sinh, value by value."""
    def atan2(self, y: Variable, name: str | None = None) -> Variable:
        """The angle of the point (y, x), in (-pi, pi]."""
    def atanh(self, name: str | None = None) -> Variable:
        """The inverse of tanh, value by value."""
    def cdist(self, y: Variable, p: float = 2.0, compute_mode: str = 'use_mm_for_euclid_dist_if_necessary', name: str | None = None) -> Variable:
        """The p-norm between each row of x and each of y. Shape: [.., n, k] x [.., m, k] -> [.., n, m]."""
    def conj(self, name: str | None = None) -> Variable:
        """x itself: the engine has no complex numbers."""
    def cosh(self, name: str | None = None) -> Variable:
        """The hyperbolic cosine, value by value."""
    def count_nonzero(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """How many values are not 0, int64."""
    def cross(self, y: Variable, axis: int = 9, name: str | None = None) -> Variable:
        """The cross product along an axis of size 3, the first one when it is not given."""
    def deg2rad(self, name: str | None = None) -> Variable:
        """x from degrees to radians."""
    def dist(self, y: Variable, p: float = 2, name: str | None = None) -> Variable:
        """The p-norm of x - y."""
    def fmax(self, y: Variable, name: str | None = None) -> Variable:
        """The larger of x and y; of a NaN and a number the number."""
    def fmin(self, y: Variable, name: str | None = None) -> Variable:
        """The smaller of x and y; of a NaN and a number the number."""
    def frac(self, name: str | None = None) -> Variable:
        """x - trunc(x)."""
    def frexp(self, name: str | None = None) -> tuple[Variable, Variable]:
        """(m, e) with x = m * 2^e and |m| in [0.5, 1), or both 0."""
    def heaviside(self, y: Variable, name: str | None = None) -> Variable:
        """0 where x is below 0, y where it is 0, else 1."""
    def hypot(self, y: Variable, name: str | None = None) -> Variable:
        """sqrt(x² + y²)."""
    def is_complex(self) -> bool:
        """False: the engine has no complex numbers."""
    def is_empty(self, name: str | None = None) -> Variable:
        """Whether x has no values when the program runs."""
    def is_floating_point(self) -> bool:
        """Whether x is float32 or float64."""
    def is_integer(self) -> bool:
        """Whether x is int32 or int64."""
    def is_tensor(self) -> bool:
        """Whether x is a variable of a program."""
    def isclose(self, y: Variable, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False, name: str | None = None) -> Variable:
        """Whether |x - y| is at most atol + rtol * |y|, value by value; equal_nan: NaN is close to NaN."""
    def ldexp(self, y: Variable, name: str | None = None) -> Variable:
        """x * 2^y."""
    def lerp(self, y: Variable, weight: Operand, name: str | None = None) -> Variable:
        """x + weight * (y - x)."""
    def logaddexp(self, y: Variable, name: str | None = None) -> Variable:
        """log(exp(x) + exp(y)), without overflow."""
    def logit(self, eps: float | None = None, name: str | None = None) -> Variable:
        """log(x / (1 - x)); with eps x is cut to [eps, 1 - eps]."""
    def multigammaln(self, p: int, name: str | None = None) -> Variable:
        """The logarithm of the gamma function of p variables."""
    def mv(self, vec: Variable, name: str | None = None) -> Variable:
        """The product of a matrix and a vector."""
    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None) -> Variable:
        """x with these numbers where it is NaN or infinite; the largest and smallest float32 when not given."""
    def nanmean(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The mean of what is not NaN."""
    def nansum(self, axis: Any = None, dtype: DTypeLike | None = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The sum of what is not NaN."""
    def neg(self, name: str | None = None) -> Variable:
        """-x."""
    def rad2deg(self, name: str | None = None) -> Variable:
        """x from radians to degrees."""
    def renorm(self, p: float, axis: int, max_norm: float) -> Variable:
        """x whose parts along `axis` have a p-norm of at most max_norm."""
    def sgn(self, name: str | None = None) -> Variable:
        """sign(): the engine has no complex numbers."""
    def sinh(self, name: str | None = None) -> Variable:
        """The hyperbolic sine, value by value."""
    def stanh(self, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
        """scale_b * tanh(scale_a * x)."""
    def trunc(self, name: str | None = None) -> Variable:
        """Rounded towards 0, value by value."""
    def atleast_1d(self, name: str | None = None) -> Any:
        """Each with at least one axis."""
    def atleast_2d(self, name: str | None = None) -> Any:
        """Each with at least two axes, new ones at the front."""
    def atleast_3d(self, name: str | None = None) -> Any:
        """Each with at least three axes; a matrix gets its third at the end."""
    def broadcast_shape(self, y_shape: Sequence[int]) -> list[int]:
        """The shape of x + y. Throws: ValueError."""
    def broadcast_tensors(self, name: str | None = None) -> list[Variable]:
        """Each in the shape of their sum."""
    def bucketize(self, sorted_sequence: Variable, out_int32: bool = False, right: bool = False, name: str | None = None) -> Variable:
        """searchsorted() in one sequence."""
    def clone(self, name: str | None = None) -> Variable:
        """A copy of x, through which gradients flow."""
    def combinations(self, r: int = 2, with_replacement: bool = False, name: str | None = None) -> Variable:
        """All choices of r values of a vector of fixed size. Shape: [how many, r]."""
    def crop(self, shape: Any = None, offsets: Any = None, name: str | None = None) -> Variable:
        """The part of x of this shape that begins at `offsets`; -1 goes to the end."""
    def diag(self, offset: int = 0, padding_value: float = 0, name: str | None = None) -> Variable:
        """A vector of fixed size on a diagonal, `padding_value` elsewhere; of a matrix its diagonal. As in
        Paddle's programs no gradient flows through it."""
    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1, name: str | None = None) -> Variable:
        """The last axis (of fixed size) of `input` on the diagonal of two new axes dim1 and dim2. As in Paddle's
        programs no gradient flows through it."""
    def diagflat(self, offset: int = 0, name: str | None = None) -> Variable:
        """The values of x on a diagonal. As in Paddle's programs no gradient flows through it."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Variable:
        """The diagonal of two axes of fixed size, as the last axis."""
    def diagonal_scatter(self, y: Variable, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Variable:
        """x with y where diagonal() takes its values from. As in Paddle's programs no gradient flows to y."""
    def diff(self, n: int = 1, axis: int = -1, prepend: Variable | None = None, append: Variable | None = None, name: str | None = None) -> Variable:
        """Each value minus the one before it along `axis`, n times."""
    def increment(self, value: float = 1.0, name: str | None = None) -> Variable:
        """x + value, put into x itself."""
    def index_add(self, index: Variable, axis: int, value: Variable, name: str | None = None) -> Variable:
        """x with the parts of `value` added along `axis` at index[n]."""
    def index_sample(self, index: Variable) -> Variable:
        """Of each row of x those places that the row of `index` says. Shape: [n, k] x [n, m] -> [n, m]."""
    def inner(self, y: Variable, name: str | None = None) -> Variable:
        """The sums of products along the last axes. Shape: [.., k] x [.., k] -> x's and y's other axes."""
    def kron(self, y: Variable, name: str | None = None) -> Variable:
        """Every value of x times all of y. Shape: the product of the sizes of each axis."""
    def kthvalue(self, k: int, axis: int | None = None, keepdim: bool = False, name: str | None = None) -> tuple[Variable, Variable]:
        """(value, place) of the k-th smallest along `axis`, the last one when None."""
    def masked_fill(self, mask: Variable, value: Any, name: str | None = None) -> Variable:
        """`value` where `mask` (bool) holds, else x."""
    def median(self, axis: int | None = None, keepdim: bool = False, mode: str = 'avg', name: str | None = None) -> Variable:
        """The middle value along `axis` (of fixed size), or of all; the mean of two for an even number; NaN where
        there is one."""
    def moveaxis(self, source: Any, destination: Any, name: str | None = None) -> Variable:
        """x with the axes `source` at the places `destination`."""
    def multiplex(self, index: Variable, name: str | None = None) -> Variable:
        """Row n of inputs[index[n]]. Shape: each [n, ..], index[n, 1] or [n]."""
    def repeat_interleave(self, repeats: int | Variable, axis: int | None = None, name: str | None = None) -> Variable:
        """Each value along `axis` (or of the flattened x) so many times; a variable repeats[n] says it of each
        place, or repeats[1] of all."""
    def reverse(self, axis: Any, name: str | None = None) -> Variable:
        """flip()."""
    def rot90(self, k: int = 1, axes: Sequence[int] = (0, 1), name: str | None = None) -> Variable:
        """x turned k times by 90 degrees, from the first axis to the second; x itself for no turn."""
    def scatter_nd(self, updates: Variable, shape: Sequence[int], name: str | None = None) -> Variable:
        """zeros of `shape` with `updates` added at index[.., k]."""
    def scatter_nd_add(self, index: Variable, updates: Variable, name: str | None = None) -> Variable:
        """x with `updates` added at index[.., k]: one place for each of its first k axes, which are of fixed
        size."""
    def searchsorted(self, values: Variable, out_int32: bool = False, right: bool = False, name: str | None = None) -> Variable:
        """Where each value goes into the rising sequence of its row; right: behind equal ones."""
    def select_scatter(self, values: Variable, axis: int, index: int, name: str | None = None) -> Variable:
        """x with `values` at one place of `axis`, which is of fixed size."""
    def shard_index(self, index_num: int, nshards: int, shard_id: int, ignore_value: int = -1) -> Variable:
        """The place within shard shard_id of those ids that are in it, ignore_value for the others."""
    def take(self, index: Variable, mode: str = 'raise', name: str | None = None) -> Variable:
        """The values of the flattened x at `index`; mode: "wrap" around the end, "clip" to it."""
    def tensordot(self, y: Variable, axes: Any = 2, name: str | None = None) -> Variable:
        """The sums of products along pairs of axes: the last of x and the first of y, or the two lists."""
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, name: str | None = None) -> Variable:
        """The sum of diagonal()."""
    def trapezoid(self, x: Variable | None = None, dx: float | None = None, axis: int = -1, name: str | None = None) -> Variable:
        """The area below y along `axis` by trapezoids; x: where its values are, else dx (1) apart."""
    def unflatten(self, axis: int, shape: Sequence[int], name: str | None = None) -> Variable:
        """x with one axis taken apart into `shape`."""
    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, dtype: DTypeLike = 'int64', name: str | None = None) -> Any:
        """x (flattened, or its parts along `axis`) without those that are equal to the one before; and for each
        where it went, and how often each was there. No gradient."""
    def vander(self, n: int | None = None, increasing: bool = False, name: str | None = None) -> Variable:
        """The powers of each value of a vector, from n - 1 down to 0."""
    def view(self, shape_or_dtype: Any, name: str | None = None) -> Variable:
        """x with another shape. Throws: Error(config) for a type."""
    def view_as(self, other: Variable, name: str | None = None) -> Variable:
        """x with the shape of `other`."""
    def vsplit(self, num_or_sections: Any, name: str | None = None) -> list[Variable]:
        """split() along the first axis."""
    def cummax(self, axis: int | None = None, dtype: DTypeLike = 'int64', name: str | None = None) -> tuple[Variable, Variable]:
        """(the greatest value up to each along `axis`, or of the flattened x, and the last place that has it)."""
    def cummin(self, axis: int | None = None, dtype: DTypeLike = 'int64', name: str | None = None) -> tuple[Variable, Variable]:
        """(the smallest value up to each along `axis`, or of the flattened x, and the last place that has it)."""
    def cumprod(self, dim: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """The product of the values up to each along `dim`, of the flattened x without."""
    def cumulative_trapezoid(self, x: Variable | None = None, dx: float | None = None, axis: int = -1, name: str | None = None) -> Variable:
        """The area below y up to each value but the first, by trapezoids; x: where its values are, else dx (1)
        apart."""
    def logcumsumexp(self, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """log(cumsum(exp(x))), without overflow."""
    def bincount(self, weights: Variable | None = None, minlength: int = 0, name: str | None = None) -> Variable:
        """How often each whole number from 0 up to the greatest one is there, or the sum of its weights."""
    def histogram(self, bins: int = 100, min: float = 0, max: float = 0, name: str | None = None) -> Variable:
        """How many values lie in each of `bins` equal parts of [min, max], int64; of the values' own range where
        both are equal."""
    def index_fill(self, index: Variable, axis: int, value: Any, name: str | None = None) -> Variable:
        """x with one value at the places `index` along `axis`."""
    def index_put(self, indices: Sequence[Variable], value: Variable, accumulate: bool = False, name: str | None = None) -> Variable:
        """x with `value` at the places that the indices say, one tensor of places for each of x's first axes, or
        one mask; accumulate: added there."""
    def put_along_axis(self, indices: Variable, values: Any, axis: int, reduce: str = 'assign', include_self: bool = True, broadcast: bool = True) -> Variable:
        """arr with `values` at the places `indices` along `axis`; reduce "assign" or "add". Shape: indices have
        arr's axes; with broadcast their sizes but that of `axis` are repeated to arr's."""
    def mode(self, axis: int = -1, keepdim: bool = False, name: str | None = None) -> tuple[Variable, Variable]:
        """(the most frequent value along `axis`, the least of several; where it is for the last time)."""
    def nanmedian(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Variable:
        """The middle one of the values along `axis` that are not NaN; the mean of two for an even number."""
    def nanquantile(self, q: float | Sequence[float], axis: Any = None, keepdim: bool = False) -> Variable:
        """quantile() of what is not NaN."""
    def quantile(self, q: float | Sequence[float], axis: Any = None, keepdim: bool = False) -> Variable:
        """The value below which a part q of those along `axis` lies, float64; NaN where one of them is NaN. A
        list of q gives a first axis."""
    def abs_(self, name: str | None = None) -> Variable:
        """The absolute value, value by value."""
    def acos_(self, name: str | None = None) -> Variable:
        """The inverse of the cosine, value by value."""
    def addmm_(self, x: Variable, y: Variable, beta: float = 1.0, alpha: float = 1.0, name: str | None = None) -> Variable:
        """beta * input + alpha * x @ y."""
    def atan_(self, name: str | None = None) -> Variable:
        """The inverse of the tangent, value by value."""
    def cumprod_(self, dim: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """The product of the values up to each along `dim`, of the flattened x without."""
    def digamma_(self, name: str | None = None) -> Variable:
        """The slope of lgamma(), value by value."""
    def index_fill_(self, index: Variable, axis: int, value: Any, name: str | None = None) -> Variable:
        """x with one value at the places `index` along `axis`."""
    def index_put_(self, indices: Sequence[Variable], value: Variable, accumulate: bool = False, name: str | None = None) -> Variable:
        """x with `value` at the places that the indices say, one tensor of places for each of x's first axes, or
        one mask; accumulate: added there."""
    def lgamma_(self, name: str | None = None) -> Variable:
        """The logarithm of the gamma function, value by value."""
    def renorm_(self, p: float, axis: int, max_norm: float) -> Variable:
        """x whose parts along `axis` have a p-norm of at most max_norm."""
    def bitwise_and_(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_and of x and y, value by value, bit by bit; of bools, as bool."""
    def bitwise_not_(self, name: str | None = None) -> Variable:
        """The other bits of whole numbers; of bools, not x."""
    def bitwise_or_(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_or of x and y, value by value, bit by bit; of bools, as bool."""
    def bitwise_xor_(self, y: Operand, name: str | None = None) -> Variable:
        """bitwise_xor of x and y, value by value, bit by bit; of bools, as bool."""
    def cast_(self, dtype: DTypeLike) -> Variable:
        """x in another type."""
    def cos_(self, name: str | None = None) -> Variable:
        """The cosine, value by value."""
    def cumsum_(self, axis: int | None = None, dtype: DTypeLike | None = None, name: str | None = None) -> Variable:
        """Each value and those before it along `axis`, or in the flattened x, added up."""
    def divide_(self, y: Operand, name: str | None = None) -> Variable:
        """x / y, value by value, with broadcasting."""
    def equal_(self, y: Operand, name: str | None = None) -> Variable:
        """equal of x and y, value by value, as bool."""
    def erf_(self, name: str | None = None) -> Variable:
        """The error function, value by value."""
    def expm1_(self, name: str | None = None) -> Variable:
        """exp(x) - 1, value by value."""
    def floor_divide_(self, y: Operand, name: str | None = None) -> Variable:
        """x / y rounded down, value by value, with broadcasting."""
    def floor_mod_(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def frac_(self, name: str | None = None) -> Variable:
        """x - trunc(x)."""
    def greater_equal_(self, y: Operand, name: str | None = None) -> Variable:
        """greater_equal of x and y, value by value, as bool."""
    def greater_than_(self, y: Operand, name: str | None = None) -> Variable:
        """greater_than of x and y, value by value, as bool."""
    def hypot_(self, y: Variable, name: str | None = None) -> Variable:
        """sqrt(x² + y²)."""
    def index_add_(self, index: Variable, axis: int, value: Variable, name: str | None = None) -> Variable:
        """x with the parts of `value` added along `axis` at index[n]."""
    def ldexp_(self, y: Variable, name: str | None = None) -> Variable:
        """x * 2^y."""
    def less_equal_(self, y: Operand, name: str | None = None) -> Variable:
        """less_equal of x and y, value by value, as bool."""
    def less_than_(self, y: Operand, name: str | None = None) -> Variable:
        """less_than of x and y, value by value, as bool."""
    def log10_(self, name: str | None = None) -> Variable:
        """The logarithm to base 10, value by value."""
    def log2_(self, name: str | None = None) -> Variable:
        """The logarithm to base 2, value by value."""
    def log_(self, name: str | None = None) -> Variable:
        """The natural logarithm, value by value."""
    def logical_and_(self, y: Operand, name: str | None = None) -> Variable:
        """logical_and of x and y, value by value, as bool."""
    def logical_not_(self, name: str | None = None) -> Variable:
        """Whether a value is 0 or false."""
    def logical_or_(self, y: Operand, name: str | None = None) -> Variable:
        """logical_or of x and y, value by value, as bool."""
    def logit_(self, eps: float | None = None, name: str | None = None) -> Variable:
        """log(x / (1 - x)); with eps x is cut to [eps, 1 - eps]."""
    def masked_fill_(self, mask: Variable, value: Any, name: str | None = None) -> Variable:
        """`value` where `mask` (bool) holds, else x."""
    def mod_(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def multiply_(self, y: Operand, name: str | None = None) -> Variable:
        """x * y, value by value, with broadcasting."""
    def nan_to_num_(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None, name: str | None = None) -> Variable:
        """x with these numbers where it is NaN or infinite; the largest and smallest float32 when not given."""
    def neg_(self, name: str | None = None) -> Variable:
        """-x."""
    def pow_(self, y: Variable | float, name: str | None = None) -> Variable:
        """x to the power of a number or of a variable."""
    def remainder_(self, y: Operand, name: str | None = None) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def reshape_(self, shape: Shape, name: str | None = None) -> Variable:
        """x with another shape: 0 keeps that size, one -1 is computed; sizes may be variables."""
    def scatter_(self, index: Variable, updates: Variable, overwrite: bool = True, name: str | None = None) -> Variable:
        """x with the rows index[n] replaced by updates[n, ..]; overwrite=False: by the sums of the updates of
        each."""
    def sin_(self, name: str | None = None) -> Variable:
        """The sine, value by value."""
    def sinh_(self, name: str | None = None) -> Variable:
        """The hyperbolic sine, value by value."""
    def square_(self, name: str | None = None) -> Variable:
        """x * x, value by value."""
    def squeeze_(self, axis: int | Sequence[int] | None = None, name: str | None = None) -> Variable:
        """x without the axes `axis` where they are 1, or without all that are 1 as far as is known."""
    def t_(self, name: str | None = None) -> Variable:
        """A matrix with its axes exchanged; a vector as it is."""
    def tan_(self, name: str | None = None) -> Variable:
        """The tangent, value by value."""
    def tanh_(self, name: str | None = None) -> Variable:
        """The hyperbolic tangent, value by value."""
    def transpose_(self, perm: Sequence[int], name: str | None = None) -> Variable:
        """x with its axes in this order."""
    def tril_(self, diagonal: int = 0, name: str | None = None) -> Variable:
        """The values up to that diagonal of the last two axes; 0 above it."""
    def triu_(self, diagonal: int = 0, name: str | None = None) -> Variable:
        """The values from that diagonal of the last two axes on; 0 below it."""
    def trunc_(self, name: str | None = None) -> Variable:
        """Rounded towards 0, value by value."""
    def unsqueeze_(self, axis: int | Sequence[int], name: str | None = None) -> Variable:
        """x with new axes of size 1 at these places of the result."""
    def where_(self, x: Any = None, y: Any = None, name: str | None = None) -> Any:
        """x where `condition` (bool) holds, else y, with broadcasting; without both nonzero(condition,
        as_tuple=True)."""
    def acosh_(self, name: str | None = None) -> Variable:
        """The inverse of cosh, value by value."""
    def add_(self, y: Operand, name: str | None = None) -> Variable:
        """x + y, with broadcasting."""
    def asin_(self, name: str | None = None) -> Variable:
        """The inverse of the sine, value by value."""
    def asinh_(self, name: str | None = None) -> Variable:
        """The inverse of sinh, value by value."""
    def atanh_(self, name: str | None = None) -> Variable:
        """The inverse of tanh, value by value."""
    def ceil_(self, name: str | None = None) -> Variable:
        """Rounded up, value by value."""
    def clip_(self, min: float | Variable | None = None, max: float | Variable | None = None, name: str | None = None) -> Variable:
        """x cut to [min, max]; a bound of None is none. Bounds of whole numbers lose their fractions."""
    def cosh_(self, name: str | None = None) -> Variable:
        """The hyperbolic cosine, value by value."""
    def erfinv_(self, name: str | None = None) -> Variable:
        """The inverse of the error function, value by value."""
    def exp_(self, name: str | None = None) -> Variable:
        """e to the power of x, value by value."""
    def flatten_(self, start_axis: int = 0, stop_axis: int = -1, name: str | None = None) -> Variable:
        """x with the axes start_axis … stop_axis joined into one."""
    def floor_(self, name: str | None = None) -> Variable:
        """Rounded down, value by value."""
    def lerp_(self, y: Variable, weight: Operand, name: str | None = None) -> Variable:
        """x + weight * (y - x)."""
    def log1p_(self, name: str | None = None) -> Variable:
        """log(1 + x), value by value."""
    def logical_xor_(self, y: Operand, name: str | None = None) -> Variable:
        """logical_xor of x and y, value by value, as bool."""
    def not_equal_(self, y: Operand, name: str | None = None) -> Variable:
        """not_equal of x and y, value by value, as bool."""
    def put_along_axis_(self, indices: Variable, values: Any, axis: int, reduce: str = 'assign', include_self: bool = True, broadcast: bool = True) -> Variable:
        """arr with `values` at the places `indices` along `axis`; reduce "assign" or "add". Shape: indices have
        arr's axes; with broadcast their sizes but that of `axis` are repeated to arr's."""
    def reciprocal_(self, name: str | None = None) -> Variable:
        """1 / x, value by value."""
    def round_(self, name: str | None = None) -> Variable:
        """Rounded, halves away from 0, value by value."""
    def rsqrt_(self, name: str | None = None) -> Variable:
        """1 / sqrt(x), value by value."""
    def scale_(self, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True, act: str | None = None, name: str | None = None) -> Variable:
        """scale * x + bias, or scale * (x + bias)."""
    def sqrt_(self, name: str | None = None) -> Variable:
        """The square root, value by value."""
    def subtract_(self, y: Operand, name: str | None = None) -> Variable:
        """x - y, with broadcasting."""
    def assign(self, output: Variable | None = None) -> Variable:
        """A copy of a variable, or a constant of an array or a number, which has the shape [1]; into `output`
        when it is given."""
    def astype(self, dtype: DTypeLike) -> Variable:
        """x in another type."""
    def sigmoid(self, name: str | None = None) -> Variable:
        """1 / (1 + exp(-x))."""
    def sigmoid_(self, name: str | None = None) -> Variable:
        """1 / (1 + exp(-x))."""
    def __add__(self, other: Any) -> Variable:
        """x + y, with broadcasting."""
    def __radd__(self, y: Any) -> Variable:
        """x + y, with broadcasting."""
    def __sub__(self, other: Any) -> Variable:
        """x - y, with broadcasting."""
    def __rsub__(self, other: Any) -> Variable: ...
    def __mul__(self, other: Any) -> Variable:
        """x * y, value by value, with broadcasting."""
    def __rmul__(self, y: Any) -> Variable:
        """x * y, value by value, with broadcasting."""
    def __truediv__(self, other: Any) -> Variable:
        """x / y, value by value, with broadcasting."""
    def __rtruediv__(self, other: Any) -> Variable: ...
    def __floordiv__(self, other: Any) -> Variable:
        """x / y rounded down, value by value, with broadcasting."""
    def __mod__(self, other: Any) -> Variable:
        """The rest of x / y with y's sign, value by value, with broadcasting."""
    def __pow__(self, other: Any) -> Variable:
        """x to the power of a number or of a variable."""
    def __rpow__(self, base: Any) -> Variable:
        """base to the power of x, float32 where the base is a fraction."""
    def __matmul__(self, y: Any) -> Variable:
        """The matrix product. Shape: [.., N, K] x [.., K, M] with leading axes broadcast; [K] is a row of x, a
        column of y."""
    def __lt__(self, other: Any) -> Variable:
        """less_than of x and y, value by value, as bool."""
    def __le__(self, other: Any) -> Variable:
        """less_equal of x and y, value by value, as bool."""
    def __gt__(self, other: Any) -> Variable:
        """greater_than of x and y, value by value, as bool."""
    def __ge__(self, other: Any) -> Variable:
        """greater_equal of x and y, value by value, as bool."""
    def __eq__(self, other: Any) -> Any:
        """Compares values when `other` is a variable or a number; a variable is not equal to any other thing."""
    def __ne__(self, other: Any) -> Any: ...
    def __and__(self, y: Any) -> Variable:
        """bitwise_and of x and y, value by value, bit by bit; of bools, as bool."""
    def __or__(self, y: Any) -> Variable:
        """bitwise_or of x and y, value by value, bit by bit; of bools, as bool."""
    def __xor__(self, y: Any) -> Variable:
        """bitwise_xor of x and y, value by value, bit by bit; of bools, as bool."""
    def __invert__(self) -> Variable:
        """The other bits of whole numbers; of bools, not x."""
    def __abs__(self) -> Variable:
        """The absolute value, value by value."""
    def __neg__(self) -> Variable: ...
    def __getitem__(self, items: Any) -> Variable:
        """x[items]: numbers, slices, None for a new axis, one Ellipsis; a bool mask of x's shape; places, of one
        axis or of several together, whose axes stand where the first of them was, or first where they are apart.

        Throws: Error(config) naming what an index cannot be."""
