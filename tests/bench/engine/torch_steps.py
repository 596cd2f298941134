"""Trains the network of train_in_memory.py with PyTorch, in the fastest of its usual ways (one lookup for all
slots), and writes seconds of passes over as many examples.
The data are random batches in memory; threads share each batch.
"""

import argparse
import json
import time

import torch

SLOTS, DENSE, WIDTH, ROWS, LAYERS = 26, 13, 10, 1_000_001, (400, 400, 400, 2)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(ROWS, WIDTH, sparse=True)
        torch.nn.init.uniform_(self.table.weight, -0.01, 0.01)
        layers, width = [], SLOTS * WIDTH + DENSE
        for size in LAYERS:
            layers += [torch.nn.Linear(width, size), torch.nn.ReLU()]
            width = size
        self.layers = torch.nn.Sequential(*layers[:-1])

    def forward(self, ids, dense):
        return self.layers(torch.cat([self.table(ids).flatten(1), dense], 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", required=True, help="JSON file to write: seconds of each pass")
    parser.add_argument("--rows", type=int, required=True, help="examples of a pass")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    network, size = Network(), arguments.batch_size
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    batches = [(torch.randint(0, 100_000, (size, SLOTS)), torch.rand(size, DENSE),
                torch.randint(0, 2, (size,)))
               for _ in range(max(1, arguments.rows // size))]
    seconds = []
    for _ in range(arguments.epochs):
        start = time.monotonic()
        for ids, dense, label in batches:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(ids, dense), label).backward()
            optimizer.step()
        seconds.append(time.monotonic() - start)
    with open(arguments.report, "w") as file:
        json.dump(seconds, file)


if __name__ == "__main__":
    main()
