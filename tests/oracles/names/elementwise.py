"""Two tensors value by value, with broadcasting."""

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
    return {"add": paddle.add(x, row), "subtract": paddle.subtract(column, x), "multiply": paddle.multiply(x, column),
            "divide": paddle.divide(column, row), "maximum": paddle.maximum(x, row)}


def integers(paddle, net):
    x, y = net.data("x", [[7, -7, 3]], "int64"), net.data("y", [[2, 2, -4]], "int64")
    return {"add": paddle.add(x, y), "subtract": paddle.subtract(x, y), "multiply": paddle.multiply(x, y),
            "maximum": paddle.maximum(x, y)}
