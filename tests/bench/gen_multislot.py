"""Writes MultiSlot text of the CTR shape: 13 floats, 26 slots of one id each, one label.

A pure function of its arguments (a seeded generator of its own), so that every benchmark reads the same
bytes. The label depends on the ids and floats, so that a model has something to learn.
"""

import argparse
import os
import random

DENSE = 13
SLOTS = 26


def lines(rows, vocabulary, seed):
    """Yields `rows` lines, as bytes."""
    generator = random.Random(seed)
    randrange, uniform = generator.randrange, generator.random
    for _ in range(rows):
        floats = [uniform() for _ in range(DENSE)]
        ids = [randrange(vocabulary) for _ in range(SLOTS)]
        score = sum(floats[:4]) / 4 + sum(i % 7 for i in ids[:8]) / 48 - 1
        label = int(uniform() < 0.5 + score)
        yield (
            f"{DENSE} " + " ".join(f"{value:.6f}" for value in floats)
            + "".join(f" 1 {i}" for i in ids) + f" 1 {label}\n"
        ).encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", help="where part-000 … go; made if it is not there")
    parser.add_argument("--rows", type=int, default=100_000, help="of all files together")
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=100_000, help="ids are below this")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.makedirs(arguments.directory, exist_ok=True)
    for index in range(arguments.files):
        first, last = (arguments.rows * i // arguments.files for i in (index, index + 1))
        with open(os.path.join(arguments.directory, f"part-{index:03}"), "wb") as part:
            part.writelines(lines(last - first, arguments.vocabulary, arguments.seed * 1000 + index))


if __name__ == "__main__":
    main()
