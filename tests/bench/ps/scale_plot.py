"""Makes a table and a plot (SVG) of what `ps_scale_bench` prints.

usage: ps_scale_bench | python3 scale_plot.py OUT.svg
"""

import json
import sys

COLORS = {1: "#1b6ca8", 2: "#d1782b", 4: "#3a8f4d"}
DASHES = {0.0: "", 1.0: "6 3", 5.0: "2 3"}
WIDTH, HEIGHT, LEFT, BOTTOM = 720, 420, 60, 50


def table(figures):
    print("median ms a step (slowest tenth)")
    trainers = sorted({one["trainers"] for one in figures})
    print("delay  servers  " + "".join(f"{str(count) + ' trainers':>18}" for count in trainers))
    for delay, servers in sorted({(one["delay_ms"], one["servers"]) for one in figures}):
        cells = {one["trainers"]: one for one in figures if (one["delay_ms"],
                                                             one["servers"]) == (delay, servers)}
        texts = (f"{cells[count]['median_ms']:.1f} ({cells[count]['p90_ms']:.1f})" for count in trainers)
        print(f"{delay:3.0f} ms  {servers:7d}  " + "".join(f"{text:>18}" for text in texts))


def plot(figures, path):
    highest = max(one["median_ms"] for one in figures)
    most = max(one["trainers"] for one in figures)

    def place(one):
        x = LEFT + (one["trainers"] - 1) / max(most - 1, 1) * (WIDTH - LEFT - 160)
        y = HEIGHT - BOTTOM - one["median_ms"] / highest * (HEIGHT - BOTTOM - 30)
        return f"{x:.1f},{y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
             'font-size="12"><rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="18">ms a step, by trainers (1 to {most}); highest {highest:.1f} ms</text>',
             f'<path d="M{LEFT} 30 V{HEIGHT - BOTTOM} H{WIDTH - 100}" fill="none" stroke="black"/>']
    lines = sorted({(one["delay_ms"], one["servers"]) for one in figures})
    for index, (delay, servers) in enumerate(lines):
        points = sorted((one for one in figures if (one["delay_ms"], one["servers"]) == (delay, servers)),
                        key=lambda one: one["trainers"])
        parts.append(
            f'<polyline points="{" ".join(map(place, points))}" fill="none" '
                     f'stroke="{COLORS.get(servers, "black")}" stroke-width="2" '
                     f'stroke-dasharray="{DASHES.get(delay, "")}"/>')
        parts.append(f'<text x="{WIDTH - 150}" y="{40 + 16 * index}" fill="{COLORS.get(servers, "black")}">'
                     f'{servers} servers, {delay:.0f} ms</text>')
    with open(path, "w") as file:
        file.write("\n".join(parts) + "\n</svg>\n")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    figures = [json.loads(line) for line in sys.stdin if line.startswith("{")]
    table(figures)
    plot(figures, sys.argv[1])


if __name__ == "__main__":
    main()
