#!/usr/bin/env python3
"""usage: scripts/bench launch [--quick] [--rows NAMES] [--containment LEVEL] [--json FILE] [--seed N]

Measures fleetrun beside Paddle 3.3.1's launcher, torchrun and mpirun: how long a launch takes, how soon the
others are gone when one process dies, how soon it runs again, how long a stop takes,
and what fleetrun itself uses meanwhile.

The launchers take turns in one run, in an order that is shuffled for each round, so that a busy moment of the
machine hits all of them. The processes are C programs in pause() (worker.c); a death is timed by the process
that dies. The floor of a launch is a bare loop of posix_spawn and waitpid, in Python and in C. A figure is
the median, in brackets the smallest and the largest; a ratio is taken within a round, to the floor (launch)
or to fleetrun (the peers' columns).

  --rows   a comma-separated choice of: ROWS
  --quick  a few rounds of the fast launchers, one of the slow ones

fleetrun is --fleetrun, $FLEETRUN_BIN, or .venv/bin/fleetrun. The peers are where `scripts/bench setup-peers`
puts them; one that is missing is left out.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

import launchers  # noqa: E402
import peers  # noqa: E402
import rows  # noqa: E402

COLUMNS = ("fleetrun", "Paddle 3.3.1", "torchrun", "mpirun")


def find_peers(options):
    """The launchers that are here, fleetrun first."""
    found = [launchers.fleetrun(options.fleetrun,
                                [f"--containment={options.containment}"] if options.containment else [])]
    for name, make in (("paddle33", launchers.paddle), ("torch", launchers.torchrun)):
        if peers.is_there(name):
            found.append(make(peers.folder_of(name)))
    mpirun = shutil.which("mpirun")
    if mpirun:
        found.append(launchers.mpirun(mpirun))
    return found


def schedule(counts, rounds):
    """For each round, who takes part: those of few runs are spread evenly over the rounds."""
    return [
        [name for name, count in counts.items() if count and (r + 1) * count // rounds > r * count // rounds]
        for r in range(rounds)
    ]


def measure(row, contestants, options, generator):
    """{name: {round: {measure: milliseconds}}} and {name: number of runs that hung}."""
    counts = {name: row.runs(name, options.quick) for name in contestants}
    rounds = max(counts.values())
    results, hung = {name: {} for name in contestants}, {}
    for number, names in enumerate(schedule(counts, rounds)):
        generator.shuffle(names)
        for name in names:
            if hung.get(name, 0) > 2:
                continue
            try:
                results[name][number] = row.measure(contestants[name], generator)
            except launchers.Hung as error:
                hung[name] = hung.get(name, 0) + 1
                print(f"  {row.name}: {name} hung: {error}", file=sys.stderr, flush=True)
    return results, hung


def shown(value, unit):
    if unit == "ms":
        if value >= 10000:
            return f"{value / 1000:,.1f} s"
        return f"{value:,.1f} ms" if value < 100 else f"{value:,.0f} ms"
    return f"{value:,.3g} {unit}"


def spread(values, unit):
    """"7.8 ms (7.1 to 9.0)"; of many values the 99th percentile stands for the largest."""
    text = shown(statistics.median(values), unit)
    if len(values) == 1:
        return text
    number = lambda value: shown(value, unit).replace(f" {unit}", "")  # noqa: E731
    if len(values) >= 100:
        return f"{text} (p99 {number(statistics.quantiles(values, n=100)[98])})"
    return f"{text} ({number(min(values))} to {number(max(values))})"


def times(ratio):
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def ratios(mine, base):
    """mine / base for each round that has both; against base's median where no round has both."""
    together = [mine[r] / base[r] for r in mine if r in base and base[r] > 0]
    if not together:
        return ""
    if len(together) == 1:
        return f"{times(together[0])}×"
    return f"{times(statistics.median(together))}× ({times(min(together))} to {times(max(together))})"


def by_round(results, name, measure_name):
    return {r: values[measure_name] for r, values in results.get(name, {}).items() if measure_name in values}


def table_lines(row, results, hung):
    """The row's lines of the Markdown table, one for each thing that it measures."""
    lines = []
    for what, title, target in row.measures:
        cells = [title, target]
        ours = by_round(results, "fleetrun", what)
        floor = by_round(results, row.floors[0], what) if row.floors else {}
        floors = [f"{spread(list(v.values()), row.unit)}" for f in row.floors
                  if (v := by_round(results, f, what))]
        cells.append(" / ".join(floors) or "–")
        for column in COLUMNS:
            theirs = by_round(results, column, what)
            if not theirs:
                cells.append("hung" if hung.get(column) else "–")
                continue
            text = spread(list(theirs.values()), row.unit)
            ratio = ratios(theirs, floor if column == "fleetrun" else ours)
            cells.append(text + (f", {ratio}" if ratio else "") +
                         (f", hung {hung[column]}" if hung.get(column) else ""))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def heading(options, fleetrun):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), "?")
    print(f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, "
          f"load {os.getloadavg()[0]:.1f}, seed {options.seed}")
    print(f"containment: {rows.containment_of(fleetrun)}\n")
    print("| what | target | floor: loop in Python / in C | " + " | ".join(COLUMNS) + " |")
    print("|---" * (3 + len(COLUMNS)) + "|", flush=True)


def main():
    usage = __doc__.replace("ROWS", ", ".join(row.name for row in rows.ROWS))
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage=argparse.SUPPRESS)
    installed = ROOT / ".venv" / "bin" / "fleetrun"
    parser.add_argument("--fleetrun", default=os.environ.get("FLEETRUN_BIN", str(installed)))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", default=",".join(row.name for row in rows.ROWS))
    parser.add_argument("--containment")
    parser.add_argument("--json")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    options.fleetrun = os.path.abspath(options.fleetrun)
    if not os.path.exists(options.fleetrun):
        sys.exit(f"bench: error: there is no {options.fleetrun}\n  hint: scripts/build makes it")
    wanted = options.rows.split(",")
    unknown = set(wanted) - {row.name for row in rows.ROWS}
    if unknown:
        sys.exit(f"bench: error: no row is called {', '.join(unknown)}")
    generator = launchers.make_generator(options.seed)
    everything = {}
    with tempfile.TemporaryDirectory() as directory:
        programs = launchers.build_programs(directory)
        contestants = {launcher.name: launcher for launcher in find_peers(options)}
        heading(options, contestants["fleetrun"])
        for row in rows.ROWS:
            if row.name not in wanted:
                continue
            row.prepare(programs, directory)
            missing = row.missing(contestants["fleetrun"])
            if missing:
                print(f"| {row.measures[0][1]} | left out: {missing} |", flush=True)
                continue
            results, hung = measure(row, {name: name for name in row.floors} | contestants, options,
                                    generator)
            everything[row.name] = {"unit": row.unit, "results": results, "hung": hung}
            print("\n".join(table_lines(row, results, hung)), flush=True)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
