"""PyTorch with an embedding on fleetrun's parameter servers: any number of ids, each row where its server is.

    fleetrun --server_num=1 --trainer_num=2 train.py
    python train.py                            # one process

Classifies bags of ids by their sum of hidden signs. The embedding's rows are trained by the servers' adagrad,
the rest of the model by PyTorch's SGD; its gradients are averaged over the trainers, so that all have the
same model. With PyTorch 2.1 or later one optimizer of all parameters does, too.
"""

import torch

from fleetrun import ps
from fleetrun.torch import Embedding, RowOptimizer

IDS, BAG, BATCH, WIDTH, STEPS = 1000, 8, 128, 8, 150
TABLES = [ps.SparseTable("emb", WIDTH, rule=ps.Rule("adagrad", learning_rate=0.3),
                         initializer=ps.Uniform(-0.1, 0.1))]


def make_model(client):
    """The same on every trainer."""
    torch.manual_seed(0)
    tail = torch.nn.Linear(WIDTH, 1)
    return Embedding(client, "emb", padding_idx=0), tail


def batch(random):
    """Bags of ids, 0 being padding, and their classes."""
    ids = torch.randint(0, IDS, (BATCH, BAG), generator=random)
    signs = torch.where(ids == 0, 0, ids * 2654435761 % 97 - 48)
    return ids, (signs.sum(dim=1) > 0).float()


def average_gradients(client, model):
    """Adds the gradients up over all trainers and divides by their number."""
    for parameter in model.parameters():
        total = client.sum(parameter.grad.numpy())
        parameter.grad = torch.from_numpy(total / client.trainers).to(torch.float32)


def train(client):
    """Trains, and prints how many bags of fresh ones are classified well."""
    embedding, tail = make_model(client)
    optimizers = torch.optim.SGD(tail.parameters(), lr=0.5), RowOptimizer(embedding.parameters())
    random = torch.Generator().manual_seed(client.trainer)
    for number in range(STEPS):
        ids, classes = batch(random)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(tail(embedding(ids).sum(dim=1)).squeeze(
            1), classes)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        average_gradients(client, tail)
        for optimizer in optimizers:
            optimizer.step()  # RowOptimizer's pushes the rows' gradients
        if number % 50 == 0:
            print(f"trainer {client.trainer} step {number} loss {loss.item():.4f}", flush=True)
    embedding.eval()
    ids, classes = batch(torch.Generator().manual_seed(99))
    right = ((tail(embedding(ids).sum(dim=1)).squeeze(1) > 0).float() == classes).float().mean().item()
    print(f"trainer {client.trainer} right {right:.3f} weight {tail.weight.abs().sum().item():.6f}",
          flush=True)


if ps.is_server():
    ps.Server(TABLES).wait()
else:
    with ps.Client(TABLES) as trainer:
        train(trainer)
