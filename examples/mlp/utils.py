"""Data made in memory."""
import numpy as np


def gen_data(random=np.random):
    """One batch: 32 random numbers each, and whether the first half
    of them adds up to more than the second."""
    x = random.random(size=(128, 32)).astype("float32")
    y = (x[:, :16].sum(axis=1) > x[:, 16:].sum(axis=1)).astype("int64").reshape(128, 1)
    return {"x": x, "y": y}
