"""One tensor value by value: functions and activations."""

X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]]
POSITIVE = [[0.5, 1.25, 2.0], [3.0, 0.75, 0.1]]


def exponentials(paddle, net):
    x, p = net.parameter("x", X), net.parameter("p", POSITIVE)
    return {"exp": paddle.exp(x), "expm1": paddle.expm1(x), "log": paddle.log(p), "log1p": paddle.log1p(p),
            "log2": paddle.log2(p), "log10": paddle.log10(p)}


def roots(paddle, net):
    x, p = net.parameter("x", X), net.parameter("p", POSITIVE)
    return {"sqrt": paddle.sqrt(p), "rsqrt": paddle.rsqrt(p), "square": paddle.square(x),
            "reciprocal": paddle.reciprocal(p)}


def trigonometry(paddle, net):
    x = net.parameter("x", X)
    return {"sin": paddle.sin(x), "cos": paddle.cos(x), "tan": paddle.tan(x), "tanh": paddle.tanh(x),
            "erf": paddle.erf(x)}


def rounding(paddle, net):
    x = net.parameter("x", [[0.4, -1.3, 2.6, -2.7, 0.0]])
    return {"floor": paddle.floor(x), "ceil": paddle.ceil(x), "round": paddle.round(x),
            "sign": paddle.sign(x),
            "abs": paddle.abs(x)}


def bounds(paddle, net):
    x = net.parameter("x", X)
    return {"both": paddle.clip(x, -0.5, 2.0), "low": paddle.clip(x, min=0.25),
            "high": paddle.clip(x, max=1.0)}


def activations(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", X)
    return {"relu": functional.relu(x), "sigmoid": functional.sigmoid(x), "tanh": functional.tanh(x),
            "softsign": functional.softsign(x), "leaky_relu": functional.leaky_relu(x, 0.1),
            "relu6": functional.relu6(x),
            "log_sigmoid": functional.log_sigmoid(x)}


def smooth_activations(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", X)
    return {"gelu": functional.gelu(x), "gelu_tanh": functional.gelu(x, True), "elu": functional.elu(x, 0.5),
            "selu": functional.selu(x), "softplus": functional.softplus(x),
            "softplus_2": functional.softplus(x, 2.0, 3.0),
            "silu": functional.silu(x), "swish": functional.swish(x), "mish": functional.mish(x)}


def piecewise_activations(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", [[-4.0, -1.5, 0.3, 2.0, 5.0]])
    return {"hardswish": functional.hardswish(x), "hardsigmoid": functional.hardsigmoid(x),
            "hardshrink": functional.hardshrink(x), "hardtanh": functional.hardtanh(x),
            "tanhshrink": functional.tanhshrink(x)}


def kinks(paddle, net):
    """Slopes where two pieces meet: a parameter for each function, since their gradients would add up."""
    functional = paddle.nn.functional
    functions = {"relu": functional.relu, "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
                 "relu6": functional.relu6,
                 "elu": functional.elu, "selu": functional.selu, "abs": paddle.abs,
                 "clip": lambda x: paddle.clip(x, 0.0, 6.0),
                 "hardshrink": functional.hardshrink, "hardswish": functional.hardswish,
                 "hardsigmoid": functional.hardsigmoid,
                 "prelu": lambda x: functional.prelu(x, net.parameter("weight", [0.25]))}
    return {name: function(net.parameter("x_" + name, [[0.0, 6.0, 0.5, -0.5, 3.0, -3.0]]))
            for name, function in functions.items()}


def softmax(paddle, net):
    functional, x = paddle.nn.functional, net.parameter("x", [[[0.5, -1.0], [2.0, 0.0], [1.0, 1.5]]])
    return {"last": functional.softmax(x), "middle": functional.softmax(x, axis=1),
            "log": functional.log_softmax(x),
            "log_middle": functional.log_softmax(x, axis=1)}


def types(paddle, net):
    x, n = net.data("x", [[1.5, -2.5, 0.0]]), net.data("n", [[3, 0, -1]], "int64")
    return {"int64": paddle.cast(x, "int64"), "int32": paddle.cast(x, paddle.int32),
            "bool": paddle.cast(x, paddle.bool),
            "float32": paddle.cast(n, paddle.float32), "float64": paddle.cast(n, "float64"),
            "same": n.astype(paddle.int64),
            "of_bool": paddle.cast(paddle.cast(n, "bool"), "float32")}


def copies(paddle, net):
    x = net.parameter("x", X)
    return {"assign": paddle.assign(x) * 2.0, "constant": paddle.assign([1.0, 2.5]) + 1.0}


def default_type(paddle, net):
    assert paddle.get_default_dtype() == "float32"
    assert not paddle.is_compiled_with_custom_device("npu")
    return {"x": paddle.ones([2], paddle.get_default_dtype())}


def methods_in_place(paddle, net):
    """They give new variables, in a program."""
    x = net.parameter("x", [[0.25, 0.5, 0.75], [0.875, 0.125, 0.3]])
    plain = ("asin_ asinh_ atanh_ ceil_ cosh_ erfinv_ exp_ flatten_ floor_ log1p_ reciprocal_ round_ rsqrt_ "
             "sigmoid_ sqrt_")
    made = {name: getattr(x * 1.0, name)() for name in plain.split()}
    return {**made, "acosh_": (x + 1.0).acosh_(), "add_": (x * 1.0).add_(x),
            "subtract_": (x * 2.0).subtract_(x), "clip_": (x * 1.0).clip_(0.2, 0.6),
            "lerp_": (x * 1.0).lerp_(x * x, 0.25), "scale_": (x * 1.0).scale_(2.0, 0.5), "kept": x}
