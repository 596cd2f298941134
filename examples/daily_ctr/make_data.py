"""Writes clicks that can be learned, as MultiSlot text: data/1/part-0 … of day 1, and so on;
the same bytes in every run.

Every day a tenth of the items goes and others come.
"""
import random
from pathlib import Path

DAYS, FILES, ROWS, ITEMS, USERS = 4, 4, 2000, 300, 200


def example(generator, day):
    """Ids of a user, of the item that was shown, and of some seen before; and whether it was clicked."""
    first = (day - 1) * ITEMS // 10
    item, user = first + int(ITEMS * generator.random() ** 2), int(USERS * generator.random())
    seen = [first + int(ITEMS * generator.random()) for _ in range(generator.randint(1, 4))]
    liking = 0.1 + 0.5 * (item % 3 == 0) + 0.2 * (user % 4 == 0)
    return user, item, seen, int(generator.random() < liking)


def main():
    for day in range(1, DAYS + 1):
        folder = Path(__file__).resolve().parent / "data" / str(day)
        folder.mkdir(parents=True, exist_ok=True)
        for part in range(FILES):
            generator = random.Random(100 * day + part)
            with open(folder / f"part-{part}", "w") as file:
                for _ in range(ROWS):
                    user, item, seen, click = example(generator, day)
                    file.write(f"1 1 1 {click} 1 {user} 1 {item} {len(seen)} {' '.join(map(str, seen))}\n")


if __name__ == "__main__":
    main()
