"""Random numbers in workers: each has its own, made from one number that the parent draws."""


def draw():
    """The number that the workers of one pass get, from numpy's global generator: numpy.random.seed() in the
    script makes all workers repeatable, as in Paddle."""
    import sys

    import numpy

    return int(numpy.random.randint(0, sys.maxsize))


def worker_words(base, worker):
    """numpy's seed in a worker: Paddle's four words, which are those of a SeedSequence."""
    import numpy

    return numpy.random.SeedSequence([worker, base & 0xFFFFFFFF, base >> 32, 0]).generate_state(4).tolist()


def seed_worker(base, worker):
    """Seeds random, numpy.random, and PyTorch where the parent has imported it."""
    import random
    import sys

    import numpy

    random.seed(base + worker)
    numpy.random.seed(worker_words(base, worker))
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(base + worker)
