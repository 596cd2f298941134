"""Writes clicks that can be learned, as MultiSlot text: data/part-0 …; the same bytes in every run."""
import random
from pathlib import Path

SLOTS, DICT_SIZE = 6, 100
FILES, ROWS = 4, 5000


def example(generator):
    """Ids of the slots, and whether it was clicked: likely where many ids are multiples of three."""
    ids = [int(DICT_SIZE * generator.random() ** 2) for _ in range(SLOTS)]
    threes = sum(i % 3 == 0 for i in ids)
    return ids, int(generator.random() < (0.05, 0.2, 0.5, 0.8, 0.95, 0.97, 0.98)[threes])


def main():
    folder = Path(__file__).resolve().parent / "data"
    folder.mkdir(exist_ok=True)
    for part in range(FILES):
        generator = random.Random(part)
        with open(folder / f"part-{part}", "w") as file:
            for _ in range(ROWS):
                ids, click = example(generator)
                file.write(" ".join(f"1 {i}" for i in [*ids, click]) + "\n")


if __name__ == "__main__":
    main()
