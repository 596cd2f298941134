"""`fleetrun data read`: the bytes of the example's reader in Python, and its errors."""

import bisect
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import zlib

import pytest

from fleetrun_job import clean_environment, find_fleetrun

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "criteo"
LIMIT = 120
REAL = ROOT.parent / "shared" / "data" / "criteo_sample.csv"


def python_reader(text, *arguments):
    """What examples/criteo/reader.py prints."""
    package = subprocess.run([sys.executable, "-c", "import fleetrun; print(fleetrun.__path__[0])"],
                             text=True, check=True,
                             capture_output=True, timeout=LIMIT).stdout.strip()
    return subprocess.run([sys.executable, str(EXAMPLE / "reader.py"), *arguments], input=text,
                          capture_output=True, check=True,
                          timeout=LIMIT, env={**os.environ, "PYTHONPATH": os.path.dirname(package)}).stdout


def native_reader(text, schema=EXAMPLE / "criteo.json"):
    return subprocess.run([str(find_fleetrun()), "data", "read", f"--schema={schema}"], input=text,
                          capture_output=True,
                          check=True, timeout=LIMIT, env=clean_environment()).stdout


def lines(rows, seed):
    """Lines of the shape of Criteo's log, with every kind of count:
    large, negative, with a point, missing."""
    draw = random.Random(seed)
    for _ in range(rows):
        counts = [draw.choice(("", str(int(10 ** draw.uniform(0, 7)) - 3), f"{draw.randint(-2, 999)}.0",
                               repr(draw.uniform(-9, 9e4))))
                  for _ in range(13)]
        words = [draw.choice(("", f"{draw.getrandbits(32):08x}", f"{draw.getrandbits(32):08x}", "word",
                              "a longer word é"))
                 for _ in range(26)]
        yield "\t".join([draw.choice("01"), *counts, *words]) + draw.choice(("\n", "\n", "\r\n"))


def test_a_hundred_thousand_lines_give_the_bytes_of_the_reader_in_python():
    text = "".join(lines(100_000, seed=1)).encode()
    native = native_reader(text)
    assert native.count(b"\n") == 100_000
    assert native == python_reader(text)


def test_text_with_commas_and_a_header(tmp_path):
    schema = json.loads((EXAMPLE / "criteo.json").read_text())
    schema.update(delimiter=",", header=True)
    (tmp_path / "commas.json").write_text(json.dumps(schema))
    names = ["label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))]
    text = (",".join(names) + "\n" + "".join(lines(1000, seed=2)).replace("\t", ",")).encode()
    assert native_reader(text, tmp_path / "commas.json") == python_reader(text, ",")


def test_the_real_rows_of_the_log(tmp_path):
    if not REAL.exists():
        pytest.skip(f"{REAL} is not here")
    schema = json.loads((EXAMPLE / "criteo.json").read_text())
    schema.update(delimiter=",", header=True)
    (tmp_path / "commas.json").write_text(json.dumps(schema))
    native = native_reader(REAL.read_bytes(), tmp_path / "commas.json")
    assert native.count(b"\n") == 200
    assert native == python_reader(REAL.read_bytes(), ",")


SCHEMA = '{"delimiter": ",", "columns": ["a", "b"], "slots": [{"each": ["a", "b"], "type": "int64"}]}'


@pytest.fixture
def schema(data):
    (data.directory / "s.json").write_text(SCHEMA)
    return "--schema=s.json"


def test_standard_input_and_files(data, schema):
    (data.directory / "one.txt").write_text("1,2\n3,4")
    (data.directory / "two.txt").write_text("5,6\n")
    assert data("read", schema, "one.txt", "two.txt") == (0, "1 1 1 2\n1 3 1 4\n1 5 1 6\n", "")
    assert data("read", schema, input="1,2\r\n") == (0, "1 1 1 2\n", "")
    assert data("read", schema, input="") == (0, "", "")


def test_packed_files(data, schema):
    subprocess.run(["gzip", "-c"], input=b"1,2\n", stdout=open(data.directory / "one.gz", "wb"), check=True)
    assert data("read", schema, "one.gz") == (0, "1 1 1 2\n", "")


def test_a_bad_line_ends_it_after_the_lines_before(data, schema):
    (data.directory / "one.txt").write_text("1,2\n3,x\n5,6\n")
    assert data("read", schema, "one.txt") == (
        125, "1 1 1 2\n", "fleetrun data: error: one.txt:2:3: column 'b': 'x' is not a whole number\n")
    code, out, err = data("read", schema, input="1\n")
    assert (code, out) == (125, "")
    assert (err ==
            "fleetrun data: error: standard input:1:2: 1 column where the schema has 2: 'b' is missing\n")


@pytest.mark.parametrize("arguments, complaint", [
    ([], "read needs --schema=FILE"),
    (["--schema"], "--schema needs a value"),
    (["--schema=none.json"], "the schema none.json cannot be read"),
    (["--schema=bad.json"], "bad.json: not JSON: byte 2"),
    (["--shema=s.json"], "read has no flag --shema"),
    (["--schema=s.json", "none.txt"], "none.txt"),
])
def test_what_it_cannot_do_is_said_in_one_line(data, schema, arguments, complaint):
    (data.directory / "bad.json").write_text("{")
    code, out, err = data("read", *arguments, stdin=subprocess.DEVNULL)
    assert (code, out) == (125, "")
    assert complaint in err.splitlines()[0]


def test_help(data):
    code, out, err = data("read", "--help")
    assert code == 0 and "--schema FILE" in out


def test_a_closed_pipe_ends_it(data, schema):
    process = subprocess.Popen([str(find_fleetrun()), "data", "read", schema], cwd=data.directory,
                               stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean_environment())
    try:
        process.stdout.close()
        try:
            process.stdin.write(b"1,2\n" * 100_000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 141
    finally:
        process.stderr.close()
        if process.poll() is None:
            process.kill()
            process.wait()


# ---- Each step, against the same in Python as fleetrun-schema(5) gives it ----


def fnv1a(text):
    number = 0xcbf29ce484222325
    for byte in text.encode():
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return number


STEPS = {
    "float32": [
        ('[]', lambda x, text: x),
        ('["log"]', lambda x, text: math.log(1 + x)),
        ('[{"normalise": {"min": -3, "max": 600}}]', lambda x, text: (x - -3) / (600 - -3)),
        ('[{"normalise": {"mean": 0.1, "std": 0.7}}, "log"]', lambda x, text: math.log(1 + (x - 0.1) / 0.7)),
        ('[{"bucket": [0.5, 10, 100]}]', lambda x, text: float(bisect.bisect_right([0.5, 10, 100], x))),
    ],
    "int64": [
        ('[{"bucket": [0.5, 10, 100]}]', lambda x, text: bisect.bisect_right([0.5, 10, 100], x)),
        ('["square_log"]', lambda x, text: math.floor(math.log(x) * math.log(x)) if x > 2 else int(x)),
        ('[{"hash": "crc32"}]', lambda x, text: zlib.crc32(text.encode())),
        ('[{"hash": "fnv1a", "prefix": "{column}:"}]', lambda x, text: fnv1a("a:" + text)),
        ('[{"hash": "fnv1a", "modulo": 1000003}, {"modulo": 1009}]',
         lambda x, text: fnv1a(text) % 1000003 % 1009),
    ],
}


@pytest.mark.parametrize("type_name, steps, twin",
                         [(kind, *case) for kind, cases in STEPS.items() for case in cases])
def test_each_step_gives_what_python_does(tmp_path, type_name, steps, twin):
    (tmp_path / "s.json").write_text(
        f'{{"columns": ["a"], "slots": [{{"name": "x", "type": "{type_name}", "columns": ["a"], "steps": '
        f'{steps}}}]}}')
    draw = random.Random(3)
    texts = [repr(draw.choice((draw.randint(0, 5), draw.uniform(0.2, 3), draw.uniform(1, 1e9),
                               draw.randint(1, 10**18))))
             for _ in range(5000)]
    expected = "".join(f"1 {twin(float(text), text)}\n" for text in texts)
    assert native_reader("".join(text + "\n" for text in texts).encode(),
                         tmp_path / "s.json").decode() == expected
