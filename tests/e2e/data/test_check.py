"""fleetrun data check: what is in files, and what is wrong with them."""

import gzip
import json


def test_bad_lines_are_listed_and_the_slots_summed_up(data):
    (data.directory / "bad.txt").write_text(data.rows + "1 x 2 1 2 1 1\n" + data.rows + "1 1 2 1 2\n")
    code, out, err = data("check", "rows.txt", "bad.txt", data.slots)
    assert (code, err) == (1, "")
    bad, _, rest = out.partition("2 files, 9 rows, 2 bad lines\n")
    assert bad == ("bad.txt:4:3: slot 'ids': 'x' is not a whole number\n"
                   "bad.txt:8:10: slot 'label': the line ends before it\n")
    lines = {line.split()[0]: line.split()[1:] for line in rest.splitlines() if line}
    assert lines["slot"] == ["values", "in", "a", "row", "missing", "min", "max", "mean", "distinct"]
    assert lines["ids:int64"] == ["18", "1", "to", "3", "0", "-1", "1002", "5"]
    assert lines["price:float32[2]"] == ["18", "2", "3", "0.001", "inf", "0.87525", "6"]
    assert lines["label:int64[1]"] == ["9", "1", "0", "1", "2"]


def test_json_says_the_same(data):
    (data.directory / "bad.txt").write_text("1 x 2 1 2 1 1\n")
    code, out, _ = data("check", "--json", "rows.txt", "bad.txt", data.slots)
    found = json.loads(out)
    assert code == 1
    assert (found["files"], found["rows"], found["bad_lines"]) == (2, 3, 1)
    assert found["bad"] == [{"file": "bad.txt", "line": 1, "column": 3, "slot": "ids",
                             "what": "'x' is not a whole number"}]
    assert [slot["name"] for slot in found["slots"]] == ["ids", "price", "label"]
    assert found["slots"][0]["min"] == -1 and found["slots"][1]["max"] == "inf"


def test_how_many_bad_lines_are_too_many(data):
    (data.directory / "bad.txt").write_text("x\n" * 50 + data.rows)
    code, out, _ = data("check", "bad.txt", data.slots)
    assert code == 1 and out.count("bad.txt:") == 20 and "and 30 more bad lines" in out
    assert "1 file, 3 rows, 50 bad lines" in out
    assert data("check", "bad.txt", data.slots, "--bad_line=skip:50")[0] == 0
    assert data("check", "bad.txt", data.slots, "--bad-line", "skip:49")[0] == 1
    code, out, _ = data("check", "bad.txt", data.slots, "--bad_line=fail")
    assert code == 1 and out.count("bad.txt:") == 1 and "1 file, 0 rows, 1 bad line\n" in out
    code, _, err = data("check", "bad.txt", data.slots, "--bad_line=some")
    assert code == 125 and "--bad_line=some is neither fail nor skip:N" in err


def test_a_pipe_command_that_fails_is_no_bad_line(data):
    code, out, err = data("check", "rows.txt", data.slots, "--pipe_command", "cat; exit 3")
    assert (code, out) == (125, "")
    assert "rows.txt" in err and "3" in err


def test_a_packed_file_under_a_text_name_is_no_text_with_bad_lines(data):
    (data.directory / "packed.txt").write_bytes(gzip.compress(data.rows.encode() * 100))
    code, out, err = data("check", "packed.txt", data.slots)
    assert (code, out) == (125, "") and "packed.txt: gzip bytes where text should be" in err and ".gz" in err


def test_good_files_end_with_0_and_columns_too(data):
    text = data("check", "rows.txt", data.slots)
    assert text[0] == 0
    assert data("convert", "rows.txt", data.slots, "--out=rows.frc")[0] == 0
    assert data("check", "rows.frc") == text
