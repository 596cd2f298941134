"""fleetrun data head: the first rows of files, and what it says of those that cannot be shown."""

import gzip
import json
import pathlib
import shutil

from fleetrun_job import find_fleetrun


def test_rows_are_shown_with_the_names_of_their_slots(data):
    assert data("head", "-n", "2", "rows.txt", data.slots) == (0, """\
1  ids    1002 7 45
   price  0.5 0.001
   label  0
2  ids    9
   price  1 2
   label  1
""", "")


def test_json_has_a_line_for_each_row(data):
    code, out, _ = data("head", "--json", "rows.txt", data.slots)
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"ids": [1002, 7, 45], "price": [0.5, 0.001], "label": [0]},
        {"ids": [9], "price": [1, 2], "label": [1]},
        {"ids": [-1, -1], "price": ["nan", "inf"], "label": [1]},
    ]


def test_several_files_packed_ones_and_pipe_commands(data):
    (data.directory / "rows.gz").write_bytes(gzip.compress(data.rows.encode()))
    code, out, err = data("head", "-n1", "rows.txt", "rows.gz", data.slots)
    assert code == 125 and "head has no flag -n1" in err
    code, out, _ = data("head", "-n", "1", "rows.txt", "rows.gz", data.slots, "--pipe-command",
                        "sed s/1002/4711/")
    assert code == 0
    assert out == "".join(f"==> {name} <==\n1  ids    4711 7 45\n   price  0.5 0.001\n   label  0\n"
                          for name in ("rows.txt", "rows.gz"))


def test_slots_may_be_named_one_flag_each_or_in_a_file(data):
    (data.directory / "slots.json").write_text(json.dumps([
        {"name": "ids", "type": "int64"}, {"name": "price", "type": "float32", "width": 2},
        {"name": "label", "type": "int64", "width": 1}]))
    wanted = data("head", "rows.txt", data.slots)
    assert wanted[0] == 0
    assert data("head", "rows.txt", "--slots=@slots.json") == wanted
    assert data("head", "rows.txt", "--slots=ids:int64", "--slots", "price:float32[2]",
                "--slots=label:int64[1]") == wanted


def test_a_bad_line_is_named_after_the_rows_before_it(data):
    (data.directory / "bad.txt").write_text(data.rows + "1 x 2 1 2 1 1\n")
    code, out, err = data("head", "bad.txt", data.slots)
    assert code == 125
    assert out.count("ids") == 3
    assert "bad.txt:4:3: slot 'ids': 'x' is not a whole number" in err


def test_what_cannot_be_done_is_said(data):
    for arguments, said in [
        (["head", "rows.txt"], "the slots of the file were not given"),
        (["head", data.slots], "there is no FILE to read"),
        (["head", "none.txt", data.slots], "none.txt (No such file or directory)"),
        (["head", "-n", "0", "rows.txt", data.slots], "-n=0 is not a whole number from 1 on"),
        (["haed"], "did you mean head?"),
        (["--json"], "needs a command before --json"),
    ]:
        code, out, err = data(*arguments)
        assert (code, out) == (125, ""), arguments
        assert err.startswith("fleetrun data: error: ") and said in err and "hint: " in err


def test_help_says_how(data):
    assert data("--help")[1].startswith("usage: fleetrun data COMMAND")
    assert data() == data("help")
    for command in ("head", "check", "convert"):
        for asked in ((command, "--help"), (command, "x", "-h"), ("help", command)):
            code, out, _ = data(*asked)
            assert code == 0 and out.startswith(f"usage: fleetrun data {command} ")


def test_a_fleetrun_without_the_program_says_what_is_missing(data):
    alone = data.directory / "alone" / "fleetrun"
    alone.parent.mkdir()
    shutil.copy(pathlib.Path(find_fleetrun()).resolve(), alone)
    code, _, err = data("head", "rows.txt", data.slots, program=alone)
    assert code == 125 and "fleetrun-data" in err and "is not beside fleetrun" in err
