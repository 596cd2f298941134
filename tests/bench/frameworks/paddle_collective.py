"""Paddle 3.3.1 data-parallel training on the CPU, as its documentation has it:
nothing in here knows fleetrun."""

import numpy as np
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()

paddle.seed(0)
truth = paddle.randn([8, 1])
model = paddle.DataParallel(paddle.nn.Linear(8, 1))
optimizer = paddle.optimizer.SGD(learning_rate=0.1, parameters=model.parameters())
paddle.seed(rank + 1)  # every rank has data of its own
losses = []
for step in range(20):
    x = paddle.randn([64, 8])
    loss = paddle.nn.functional.mse_loss(model(x), paddle.matmul(x, truth))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    losses.append(float(mean) / size)

weights = []
dist.all_gather(weights, model.parameters()[0].detach())
assert all(np.array_equal(w.numpy(), weights[0].numpy()) for w in weights), "the ranks have different weights"
assert losses[-1] < losses[0] / 10, losses
print(f"rank {rank} of {size}: loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
