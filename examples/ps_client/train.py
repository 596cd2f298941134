"""A trainer of one's own on fleetrun's parameter servers, in Python: numpy alone, no framework, no engine.

    fleetrun --server_num=2 --trainer_num=2 train.py [SAVE_DIRECTORY]
    python train.py                            # one process, its servers inside it

A linear model whose weights, one for each key, lie on the servers; the bias is a dense table.
"""

import sys

import numpy as np

from fleetrun import ps

KEYS, EXAMPLES, KEYS_OF_ONE, STEPS = 500, 64, 3, 300

# Servers and trainers make the same list; they compare it when they meet.
TABLES = [
    ps.SparseTable("weights", 1, rule=ps.Rule("sgd", learning_rate=0.1)),
    ps.DenseTable("bias", 1, rule=ps.Rule("sgd", learning_rate=0.001)),
]


def truth(keys):
    """What the model has to learn."""
    return (keys % 7 - 3.0).sum(axis=1) + 0.5


def step(client, random):
    """One step. Returns the mean squared error before it."""
    keys = random.integers(0, KEYS, (EXAMPLES, KEYS_OF_ONE))
    rows = client.pull("weights", keys)  # [EXAMPLES, KEYS_OF_ONE, 1]
    errors = rows[:, :, 0].sum(axis=1) + client.pull_dense("bias") - truth(keys)
    gradients = np.repeat(errors[:, None], KEYS_OF_ONE, axis=1)[:, :, None]
    client.push("weights", keys, gradients)  # keys that are there more than once are added up
    client.push_dense("bias", [errors.sum()])
    return float(np.mean(errors**2))


def train(client, directory):
    """Trains, and saves if there is a directory."""
    random = np.random.default_rng(client.trainer)
    if client.trainer == 0:
        client.set_dense("bias", [0.0])
    client.barrier()
    for number in range(STEPS):
        loss = step(client, random)
        if number % 100 == 0:
            print(f"trainer {client.trainer} step {number} loss {loss:.4f}", flush=True)
    mean = client.sum(loss) / client.trainers
    print(f"trainer {client.trainer} loss {float(mean):.6f} rows {client.rows('weights')}", flush=True)
    if client.trainer == 0 and directory:
        client.save(directory)


if ps.is_server():
    ps.Server(TABLES).wait()
else:
    with ps.Client(TABLES) as trainer:
        train(trainer, sys.argv[1] if len(sys.argv) > 1 else "")
