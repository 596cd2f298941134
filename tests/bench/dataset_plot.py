"""Makes a plot (SVG) of what `dataset_bench scale` prints:
MB/s against the length of a line, a curve for each number of threads.

usage: dataset_bench scale FOLDER | python3 dataset_plot.py OUT.svg
"""

import json
import math
import sys

COLORS = {1: "#1b6ca8", 2: "#d1782b", 4: "#3a8f4d"}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 420, 70, 40, 130, 60


def plot(figures, path):
    """Line lengths on a logarithmic axis; a bar from the slowest to the fastest round at each point."""
    lengths = sorted({one["line_bytes"] for one in figures})
    highest = max(one["highest"] for one in figures) / 1e6
    step = 10 ** math.floor(math.log10(highest))
    if highest < 4 * step:
        step //= 4

    def x(length):
        share = math.log(length / lengths[0]) / math.log(lengths[-1] / lengths[0])
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(bytes_per_second):
        return HEIGHT - BOTTOM - bytes_per_second / 1e6 / highest * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="22">MB/s of MultiSlot text through QueueDataset, '
             'by the bytes of a line</text>',
             f'<path d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}" fill="none" stroke="black"/>']
    for mark in range(0, int(highest / step) + 1):
        at = y(mark * step * 1e6)
        parts.append(f'<path d="M{LEFT} {at:.1f} H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{mark * step:,.0f}</text>')
    for length in lengths:
        parts.append(f'<text x="{x(length):.1f}" y="{HEIGHT - BOTTOM + 18}" '
                     f'text-anchor="middle">{length:,}</text>')
    for index, threads in enumerate(sorted({one["threads"] for one in figures})):
        color = COLORS.get(threads, "black")
        curve = sorted((one for one in figures if one["threads"] == threads),
                       key=lambda one: one["line_bytes"])
        points = " ".join(f'{x(one["line_bytes"]):.1f},{y(one["bytes_per_second"]):.1f}' for one in curve)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        for one in curve:
            parts.append(
                f'<path d="M{x(one["line_bytes"]):.1f} {y(one["lowest"]):.1f} V{y(one["highest"]):.1f}" '
                         f'stroke="{color}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 16 * (index + 1)}" fill="{color}">'
                     f'{threads} thread{"s" if threads > 1 else ""}</text>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    figures = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    for one in figures:
        print(
            f'{one["threads"]} threads, lines of {one["line_bytes"]:6,} bytes: '
              f'{one["bytes_per_second"] / 1e6:7,.0f} MB/s ({one["lowest"] / 1e6:,.0f} to '
              f'{one["highest"] / 1e6:,.0f})')
    plot(figures, sys.argv[1])


if __name__ == "__main__":
    main()
