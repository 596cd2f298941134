"""1,797 handwritten digits of 8 × 8, from the file that scikit-learn's wheel has;
the library itself is not imported."""
import importlib.util
import os

import numpy as np


def load_digits():
    """(pictures[1797, 64] float32 from -1 to 1, labels[1797] int64, is_test[1797]: each fifth)."""
    found = importlib.util.find_spec("sklearn")
    if found is None:
        raise SystemExit("no scikit-learn, whose digits this trains on: python -m pip install scikit-learn")
    rows = np.loadtxt(os.path.join(os.path.dirname(found.origin), "datasets", "data", "digits.csv.gz"),
                      delimiter=",")
    return (rows[:, :64] / 8.0 - 1.0).astype("float32"), rows[:, 64].astype("int64"), np.arange(
        len(rows)) % 5 == 0
