"""Local SGD: processes that train apart and average their parameters every few steps.

    fleetrun --nproc_per_node=2 train.py                # every 4 steps, after 20 synchronous ones
    fleetrun --nproc_per_node=2 train.py --steps=1      # synchronous training
    fleetrun --nproc_per_node=2 train.py --adaptive     # as many steps as the loss and the rate say

Fewer exchanges are faster where the network is slow, or a process is now and then; the model gets a little
worse. Source: document 004, section 3.
"""
import argparse
import hashlib

import numpy as np
import torch

import fleetrun.distributed.fleet as fleet
from digits import load_digits

EPOCHS, BATCH = 8, 32


def strategy_of(arguments):
    strategy = fleet.DistributedStrategy()
    if arguments.adaptive:
        strategy.adaptive_localsgd = True
        strategy.adaptive_localsgd_configs = {"init_k_steps": arguments.steps,
                                              "begin_step": arguments.warm_steps}
    else:
        strategy.use_local_sgd = True
        strategy.local_sgd_steps = arguments.steps
        strategy.local_sgd_is_warm_steps = arguments.warm_steps
    return strategy


def train(arguments):
    fleet.init(is_collective=True, strategy=strategy_of(arguments))
    rank, size = fleet.worker_index(), fleet.worker_num()
    pictures, labels, is_test = map(torch.from_numpy, load_digits())
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model = fleet.distributed_model(model)
    optimizer = fleet.distributed_optimizer(torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9))
    x, y = pictures[~is_test], labels[~is_test]
    step, batches = 0, len(y) // (BATCH * size)
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(len(y))  # the same everywhere; each takes its turn
        for number in range(batches):
            mine = order[(number * size + rank) * BATCH:][:BATCH]
            loss = torch.nn.functional.cross_entropy(model(x[mine]), y[mine])
            optimizer.zero_grad()
            loss.backward()
            optimizer.observe(loss)
            optimizer.step()
            if step % 20 == 0:
                print("worker_index: %d, step%d cost = %f" % (rank, step, loss), flush=True)
            step += 1
    optimizer.synchronize()
    digest = hashlib.sha256(b"".join(value.detach().numpy().tobytes()
                                     for value in model.parameters())).hexdigest()
    right = (model(pictures[is_test]).argmax(1) == labels[is_test]).float().mean().item()
    print("worker_index: %d, test accuracy: %.4f, parameters %s" % (rank, right, digest[:16]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4,
                        help="between two averages; with --adaptive the first number")
    parser.add_argument("--warm-steps", type=int, default=20, help="so many steps are synchronous")
    parser.add_argument("--adaptive", action="store_true")
    train(parser.parse_args())
