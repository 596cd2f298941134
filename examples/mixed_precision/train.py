"""Mixed precision with loss scaling, in every process of a job.

    fleetrun --nproc_per_node=2 train.py              # the factor follows the gradients
    fleetrun --nproc_per_node=2 train.py --static     # it stays

The matrix products run in bfloat16 on CPUs. Gradients of float16 would be lost where they are small: the loss
is multiplied before backward, the gradients are divided before the step, and a step with an infinite gradient
on any process is left out on all. Source: document 004, section 3.
"""
import argparse
import hashlib

import torch

import fleetrun.distributed.fleet as fleet
from digits import load_digits
from fleetrun.amp import GradScaler, auto_cast

STEPS, BATCH = 200, 32


def train(is_static):
    strategy = fleet.DistributedStrategy()
    strategy.amp = True
    strategy.amp_configs = {"init_loss_scaling": 128.0 if is_static else 32768.0,
                            "use_dynamic_loss_scaling": not is_static,
                            "incr_every_n_steps": 50}
    fleet.init(is_collective=True, strategy=strategy)
    rank, size = fleet.worker_index(), fleet.worker_num()
    x, y, is_test = map(torch.from_numpy, load_digits())
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model = fleet.distributed_model(model)
    optimizer = fleet.distributed_optimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    scaler = fleet.distributed_scaler(GradScaler(**strategy.scaler_arguments()))
    training = torch.nonzero(~is_test).reshape(-1)
    for step in range(STEPS):
        order = torch.randint(len(training), (size, BATCH), generator=torch.Generator().manual_seed(step))
        mine = training[order[rank]]
        with auto_cast():
            out = model(x[mine])
        loss = torch.nn.functional.cross_entropy(out.float(), y[mine])
        scaler.scale(loss).backward()
        scaler.minimize(optimizer)
        optimizer.clear_grad()
        if step % 20 == 0:
            print("worker_index: %d, step%d cost = %f, loss scaling %.1f" % (rank, step, loss,
                                                                             scaler.get_scale()), flush=True)
    digest = hashlib.sha256(b"".join(value.detach().numpy().tobytes()
                                     for value in model.parameters())).hexdigest()
    right = (model(x[is_test]).argmax(1) == y[is_test]).float().mean().item()
    print("worker_index: %d, test accuracy: %.4f, parameters %s" % (rank, right, digest[:16]), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--static", action="store_true")
    train(parser.parse_args().static)
