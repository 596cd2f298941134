"""Writes text of the shape of Criteo's click log,
to try the example where that log is not at hand: data/part-00.txt …

A line is a label, 13 counts and 26 words of eight hexadecimal digits, tabs between them, some missing. The
words decide how likely a click is, so that there is something to learn;
the same arguments write the same bytes.
"""
import argparse
import math
import random
from pathlib import Path

WORDS = 26
MOST = (20, 600, 100, 50, 64000, 500, 100, 50, 500, 10, 10, 10, 50)  # about what the log's counts reach


def lines(rows, vocabulary, seed):
    """Yields `rows` lines, as bytes."""
    generator = random.Random(seed)
    uniform = generator.random
    for _ in range(rows):
        # Squared: a word's number is small more often than not, as a few words make up most of a real log.
        words = [int(vocabulary * uniform() ** 2) for _ in range(WORDS)]
        score = sum(math.sin(1.0 + word % 11) for word in words[:8]) / 2 - 1
        fields = [str(int(uniform() < 1 / (1 + math.exp(-score))))]
        fields += ["" if uniform() < 0.2 else str(int(most * uniform() ** 4)) for most in MOST]
        fields += ["" if uniform() < 0.1 else f"{(1 + word + place * vocabulary) * 2654435761 % 2**32:08x}"
                   for place, word in enumerate(words)]
        yield ("\t".join(fields) + "\n").encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "data",
                        help="folder (data)")
    parser.add_argument("--rows", type=int, default=20_000, help="of all files together (20000)")
    parser.add_argument("--files", type=int, default=4, help="files (4)")
    parser.add_argument("--vocabulary", type=int, default=1000, help="different words of a column (1000)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for index in range(arguments.files):
        first, last = (arguments.rows * i // arguments.files for i in (index, index + 1))
        with open(arguments.out / f"part-{index:02}.txt", "wb") as file:
            file.writelines(lines(last - first, arguments.vocabulary, arguments.seed * 1000 + index))


if __name__ == "__main__":
    main()
