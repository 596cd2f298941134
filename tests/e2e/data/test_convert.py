"""fleetrun data convert: the same rows, in files that are whole or not there."""

import os
import re
import resource
import signal
import subprocess

from fleetrun_job import clean_environment, find_fleetrun, wait_until


def head(data, *arguments):
    code, out, err = data("head", "-n", "100000", "--json", *arguments)
    assert code == 0, err
    return out


def test_each_file_gets_one_of_its_own(data):
    (data.directory / "more.txt").write_text(data.rows * 5000)
    code, out, err = data("convert", "rows.txt", "more.txt", data.slots, "--out=columns")
    assert (code, err) == (0, "")
    told = dict(re.findall(r"^columns/(\S+): (\d+) rows, \d+ bytes, digest [0-9a-f]{16}$", out, re.M))
    assert told == {"rows.txt.frc": "3", "more.txt.frc": "15000"}
    for name in ("rows.txt", "more.txt"):
        assert head(data, f"columns/{name}.frc") == head(data, name, data.slots)
    assert sorted(os.listdir(data.directory / "columns")) == ["more.txt.frc", "rows.txt.frc"]


def test_all_rows_go_into_one_file_and_columns_are_chosen_by_name(data):
    code, out, _ = data("convert", "rows.txt", "rows.txt", data.slots, "--out", "all.frc", "--block-rows=2")
    assert code == 0 and out.startswith("all.frc: 6 rows, ")
    assert head(data, "all.frc") == 2 * head(data, "rows.txt", data.slots)
    assert head(data, "all.frc", "--slots=label:int64[1]").splitlines()[:3] == [
        '{"label":[0]}', '{"label":[1]}', '{"label":[1]}']
    code, _, err = data("head", "all.frc", "--slots=label:int64")
    assert (code == 125
            and "slot 'label' is int64 with any number of values, "
                "in all.frc it is int64 with 1 value in each row" in err)


def test_bad_lines_end_it_or_are_left_out(data):
    (data.directory / "bad.txt").write_text(data.rows + "x\n" + data.rows)
    code, out, err = data("convert", "bad.txt", data.slots, "--out=bad.frc")
    assert (code, out) == (125, "") and "bad.txt:4:1: slot 'ids': 'x' is not a count of values" in err
    assert not list(data.directory.glob("*.frc*"))
    code, out, err = data("convert", "bad.txt", data.slots, "--out=bad.frc", "--bad_line=skip:1")
    assert code == 0 and "bad.frc: 6 rows" in out and "left out:\nbad.txt:4:1: " in err


def test_a_disk_that_is_full_leaves_what_was_there_before(data):
    (data.directory / "more.txt").write_text(data.rows * 50000)
    assert data("convert", "rows.txt", data.slots, "--out=all.frc")[0] == 0
    before = (data.directory / "all.frc").read_bytes()

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))

    code, out, err = data("convert", "more.txt", data.slots, "--out=all.frc", preexec_fn=limit)
    assert (code, out) == (125, "") and "all.frc cannot be written: File too large" in err
    assert (data.directory / "all.frc").read_bytes() == before
    assert not (data.directory / "all.frc.partial").exists()


def test_a_conversion_that_is_killed_leaves_nothing_that_is_taken_for_a_file(data):
    assert data("convert", "rows.txt", data.slots, "--out=all.frc")[0] == 0
    before = (data.directory / "all.frc").read_bytes()
    partial = data.directory / "all.frc.partial"
    (data.directory / "rows.big").write_text(data.rows * 3000)
    os.mkfifo(data.directory / "never")
    for half in range(3):
        # The pipe command does not end by itself, so that the kill comes in the middle,
        # whatever the machine does.
        never = os.open(data.directory / "never", os.O_RDWR)
        command = subprocess.Popen([find_fleetrun(), "data", "convert", "rows.txt", data.slots,
                                    "--out=all.frc", "--block_rows=500",
                                    "--pipe_command", "cat rows.big never"], cwd=data.directory,
                                    env=clean_environment())
        try:
            wait_until(lambda: partial.exists() and partial.stat().st_size > 20000 * half,
                       "something of it is written")
        finally:
            command.send_signal(signal.SIGKILL)
            command.wait()
            os.close(never)
        assert (data.directory / "all.frc").read_bytes() == before
        partial.rename(data.directory / "half.frc")
        code, _, err = data("head", "half.frc", data.slots)
        assert (code == 125 and ("half.frc is half a columnar file: its end is missing after" in err
                                 or "is not a columnar file" in err))
        (data.directory / "half.frc").rename(partial)
    assert data("convert", "rows.txt", data.slots, "--out=all.frc")[0] == 0
    assert (data.directory / "all.frc").read_bytes() == before
    assert not partial.exists()


def test_what_cannot_be_done_is_said(data):
    (data.directory / "file").write_text("")
    os.mkdir(data.directory / "a")
    (data.directory / "a" / "rows.txt").write_text("")
    for arguments, said in [
        (["rows.txt"], "convert needs --out=DIR, --out=FILE.frc or --out=FILE.parquet"),
        (["rows.txt", "--out=file"], "file is not a directory"),
        (["rows.txt", "a/rows.txt", "--out=out"], "rows.txt and a/rows.txt would both become rows.txt.frc"),
        (["rows.txt", "--out=o.frc", "--block_rows=0"], "--block_rows=0 is not a whole number from 1 on"),
        (["rows.txt", "--out=no/o.frc"], "no/o.frc.partial cannot be made: No such file or directory"),
    ]:
        code, out, err = data("convert", *arguments, data.slots)
        assert (code, out) == (125, ""), arguments
        assert said in err
