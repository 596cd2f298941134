"""Names that paddle, paddle.tensor and paddle.nn.functional have of other modules: text, because reading it
must load nothing."""

MATH = (
    "acosh addmm allclose amax amin asinh atan2 atanh cdist conj cosh count_nonzero cross deg2rad dist "
    "fmax fmin frac frexp heaviside hypot is_complex is_empty is_floating_point is_integer is_tensor "
    "isclose ldexp lerp logaddexp logit multigammaln mv nan_to_num nanmean nansum neg rad2deg renorm "
    "sgn sinh stanh trunc"
)
SHAPES = (
    "atleast_1d atleast_2d atleast_3d broadcast_shape broadcast_tensors bucketize clone combinations "
    "crop diag diag_embed diagflat diagonal diagonal_scatter diff empty empty_like increment index_add "
    "index_sample inner kron kthvalue logspace masked_fill median moveaxis multiplex randint_like "
    "repeat_interleave reverse rot90 scatter_nd scatter_nd_add searchsorted select_scatter shard_index "
    "standard_normal take tensordot trace trapezoid tril_indices triu_indices unflatten "
    "unique_consecutive vander view view_as vsplit"
)
CUMULATIVE = "cummax cummin cumprod cumulative_trapezoid logcumsumexp"
QUANTILES = "mode nanmedian nanquantile quantile"
PLACING = "bincount histogram index_fill index_put put_along_axis"
# In place in Paddle's dynamic mode; in a program, there as here, what the name without the _ gives.
IN_PLACE = (
    "abs_ acos_ addmm_ atan_ cumprod_ digamma_ index_fill_ index_put_ lgamma_ renorm_ "
    "bitwise_and_ bitwise_not_ bitwise_or_ bitwise_xor_ "
    "cast_ cos_ cumsum_ divide_ equal_ erf_ expm1_ floor_divide_ floor_mod_ frac_ "
    "greater_equal_ greater_than_ hypot_ index_add_ ldexp_ less_equal_ less_than_ log10_ log2_ log_ "
    "logical_and_ logical_not_ logical_or_ logit_ masked_fill_ mod_ multiply_ nan_to_num_ neg_ "
    "pow_ remainder_ reshape_ scatter_ sin_ sinh_ square_ squeeze_ t_ tan_ tanh_ transpose_ tril_ triu_ "
    "trunc_ unsqueeze_ where_"
)
# Of variables alone.
METHODS_IN_PLACE = (
    "acosh_ add_ asin_ asinh_ atanh_ ceil_ clip_ cosh_ erfinv_ exp_ flatten_ floor_ lerp_ log1p_ "
    "logical_xor_ not_equal_ put_along_axis_ reciprocal_ round_ rsqrt_ scale_ sqrt_ subtract_"
)
LAYER_FUNCTIONS = (
    "bilinear celu channel_shuffle cosine_embedding_loss dice_loss dropout2d glu hinge_embedding_loss "
    "maxout multi_label_soft_margin_loss npair_loss pad pairwise_distance pixel_shuffle poisson_nll_loss "
    "scaled_dot_product_attention sigmoid_focal_loss soft_margin_loss softshrink thresholded_relu "
    "triplet_margin_loss triplet_margin_with_distance_loss zeropad2d"
)
LAYER_FUNCTIONS_IN_PLACE = "elu_ hardtanh_ leaky_relu_ relu_ softmax_ tanh_ thresholded_relu_"
