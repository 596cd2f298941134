"""The network of the three training scripts beside this file."""
import fleetrun as paddle


def mlp(input_x, input_y, hidden=128, classes=2):
    """The mean cross entropy of a network of two hidden layers.

    Shape: input_x[batch, 32] float32, input_y[batch, 1] int64 -> one number.
    """
    layer = paddle.nn.functional.relu(paddle.nn.Linear(32, hidden)(input_x))
    layer = paddle.nn.functional.relu(paddle.nn.Linear(hidden, hidden)(layer))
    logits = paddle.nn.Linear(hidden, classes)(layer)
    return paddle.mean(paddle.nn.functional.cross_entropy(logits, input_y))
