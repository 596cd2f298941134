"""Two tensors value by value, with broadcasting; comparisons; what operators of variables say."""

X = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]]
Y = [[1.5, 0.5, -2.0], [-1.0, 0.25, 4.0]]
ROW = [1.5, -0.5, 2.5]
COLUMN = [[0.5], [-2.0]]


def arithmetic(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", Y)
    return {"add": paddle.add(x, y), "subtract": paddle.subtract(x, y), "multiply": paddle.multiply(x, y),
            "divide": paddle.divide(x, y)}


def broadcast(paddle, net):
    x, row, column = net.parameter("x", X), net.parameter("row", ROW), net.parameter("column", COLUMN)
    return {"add": paddle.add(x, row), "subtract": paddle.subtract(column, x),
            "multiply": paddle.multiply(x, column),
            "divide": paddle.divide(column, row), "maximum": paddle.maximum(x, row)}


def extremes(paddle, net):
    x, y = net.parameter("x", [[1.0, 2.0, 3.0]]), net.parameter("y", [[1.0, 5.0, -3.0]])
    return {"maximum": paddle.maximum(x, y), "minimum": paddle.minimum(x, y)}


def integers(paddle, net):
    x, y = net.data("x", [[7, -7, 3]], "int64"), net.data("y", [[2, 2, -4]], "int64")
    return {"add": paddle.add(x, y), "subtract": paddle.subtract(x, y), "multiply": paddle.multiply(x, y),
            "maximum": paddle.maximum(x, y), "mod": paddle.mod(x, y)}


def integers_of_32_bits(paddle, net):
    x, y = net.data("x", [[7, -7, 3]], "int32"), net.data("y", [[2, 2, -4]], "int32")
    return {"add": paddle.add(x, y), "multiply": paddle.multiply(x, y), "mod": paddle.mod(x, y)}


def powers(paddle, net):
    x, y = net.parameter("x", [[0.5, 1.25, 2.0]]), net.parameter("y", [[1.5, -0.5, 2.0]])
    return {"number": paddle.pow(x, 2.5), "variable": paddle.pow(x, y), "square": paddle.pow(x, 2)}


def remainders(paddle, net):
    x, y = net.data("x", [[5.5, -5.5, 3.0]]), net.data("y", [[2.0, 2.0, -4.0]])
    return {"mod": paddle.mod(x, y), "floor_divide": paddle.floor_divide(x, y)}


def spelled_as_operators(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", Y)
    return {"add": x + y, "sub": x - y, "mul": x * y, "div": x / y, "neg": -x, "radd": 2.0 + x,
            "rsub": 2.0 - x,
            "rmul": 3 * x, "rdiv": 1.0 / y, "add_number": x + 1.5, "sub_number": x - 0.5,
            "div_number": x / 4.0,
            "power": (x * x) ** 1.5, "less": x < y, "less_number": x <= 0.5, "greater": x > y,
            "greater_equal": x >= 0.5,
            "equal": x == y, "not_equal": x != y}


def operators_of_integers(paddle, net):
    x = net.data("x", [[7, -7, 3]], "int64")
    return {"add": x + 2, "sub": x - 2, "mul": x * 3, "mod": x % 4, "floor": x // 2, "half": x / 2,
            "less": x < 4,
            "equal": x == 3}


def comparisons(paddle, net):
    x, y = net.data("x", [[1.0, 2.0, 3.0]]), net.data("y", [[1.0, 5.0, -3.0]])
    return {"equal": paddle.equal(x, y), "not_equal": paddle.not_equal(x, y),
            "less_than": paddle.less_than(x, y),
            "less_equal": paddle.less_equal(x, y), "greater_than": paddle.greater_than(x, y),
            "greater_equal": paddle.greater_equal(x, y)}


def comparisons_of_integers(paddle, net):
    x, y = net.data("x", [[1, 2, 3]], "int64"), net.data("y", [[1], [3]], "int64")
    return {"equal": paddle.equal(x, y), "not_equal": paddle.not_equal(x, y),
            "less_than": paddle.less_than(x, y),
            "greater_than": paddle.greater_than(x, y)}


def logical(paddle, net):
    x = net.data("x", [[True, True, False, False]], "bool")
    y = net.data("y", [[True, False, True, False]], "bool")
    return {"and": paddle.logical_and(x, y), "or": paddle.logical_or(x, y), "xor": paddle.logical_xor(x, y),
            "not": paddle.logical_not(x)}


def bits(paddle, net):
    x = net.data("x", [[6, -3, 1 << 40], [0, 9, -1]], "int64")
    y = net.data("y", [[3, 5, -1]], "int64")
    return {"and": paddle.bitwise_and(x, y), "or": paddle.bitwise_or(x, y), "xor": paddle.bitwise_xor(x, y),
            "not": paddle.bitwise_not(x), "spelled": (x & y) | (~x ^ y)}


def bits_of_32(paddle, net):
    x, y = net.data("x", [[6, -3, 12]], "int32"), net.data("y", [[3], [5]], "int32")
    return {"and": paddle.bitwise_and(x, y), "or": x.bitwise_or(y), "xor": x ^ y, "not": x.bitwise_not()}


def bits_of_bools(paddle, net):
    x = net.data("x", [[True, True, False, False]], "bool")
    y = net.data("y", [[True, False, True, False]], "bool")
    return {"and": paddle.bitwise_and(x, y), "or": x | y, "xor": x ^ y, "not": ~x,
            "both": (x & y).astype("float32")}


def not_numbers(paddle, net):
    x = net.data("x", [[1.0, float("nan"), float("inf"), -float("inf")]])
    return {"isnan": paddle.isnan(x), "isinf": paddle.isinf(x), "isfinite": paddle.isfinite(x)}


def choice(paddle, net):
    x, y = net.parameter("x", X), net.parameter("y", Y)
    return {"where": paddle.where(x > y, x, y),
            "broadcast": paddle.where(x > 0.5, x, net.parameter("row", ROW))}


def places(paddle, net):
    found = net.data("found", [[True, False, True], [False, False, True]], "bool")
    rows, columns = paddle.where(found)
    return {"nonzero": paddle.nonzero(found), "rows": rows, "columns": columns}


def empty(paddle, net):
    x, y = net.data("x", [[]], shape=[None, 0]), net.data("y", [[]], shape=[None, 0])
    return {"add": paddle.add(x, y), "less": paddle.less_than(x, y)}


def scaled(paddle, net):
    x = net.parameter("x", X)
    return {"scale": paddle.scale(x, 2.0, 0.5), "before": paddle.scale(x, 2.0, 0.5, bias_after_scale=False),
            "integers": paddle.scale(net.data("n", [[1, 2]], "int64"), 3.0, 1.0)}


def ties(paddle, net):
    """Slopes where both are equally large."""
    x, y = net.parameter("x", [[1.0, 2.0, 3.0]]), net.parameter("y", [[1.0, 2.5, 2.5]])
    return {"maximum": paddle.maximum(x, y), "minimum": paddle.minimum(x * 2.0, y * 2.0)}
