"""Pipe programs: their bytes are those of Paddle 2.6.2 (taken from running these scripts with it), as are the
samples that they refuse and the words in which they do."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import generator_cases

LIMIT = 120  # seconds that any one process may take; nothing waits for less

READER = """
import fleetrun.distributed.fleet as fleet

class Reader(fleet.{base}):
    def generate_sample(self, line):
        def samples():
            {body}
        return samples
{more}
reader = Reader()
reader.{call}()
"""


@pytest.fixture
def environment(package):
    return {**os.environ, "PYTHONPATH": os.path.dirname(package), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def pipe(tmp_path, environment):
    """pipe(base, body, text, …): the finished process of a reader with `text` as its standard input."""

    def run_reader(base, body, text="", more="", call="run_from_stdin"):
        script = tmp_path / "reader.py"
        script.write_text(READER.format(base=base, body=body, more=more, call=call), encoding="utf-8")
        return subprocess.run([sys.executable, str(script)], input=text, text=True, capture_output=True,
                              timeout=LIMIT,
                              env=environment)

    return run_reader


def bytes_of(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_counts_and_values_of_each_slot_in_order(pipe):
    body = 'yield [("words", [int(x) for x in line.split()]), ("label", [0])]'
    assert bytes_of(pipe("MultiSlotDataGenerator", body, "1 2 3 4\n5\n")) == "4 1 2 3 4 1 0\n1 5 1 0\n"


def test_lists_tuples_and_zips_are_samples_and_none_is_left_out(pipe):
    body = """
            yield (("a", [1]), ("b", [2.5]))
            yield None
            yield zip(["a", "b"], [[3, 4], [5]])"""
    assert bytes_of(pipe("MultiSlotDataGenerator", body, call="run_from_memory")) == "1 1 1 2.5\n2 3 4 1 5\n"


def test_values_are_written_as_str_shows_them(pipe):
    body = 'yield [("a", [-1, 2**64 - 1, True]), ("b", [1e-05, float("nan"), float("inf"), 0.1, 3])]'
    assert bytes_of(pipe("MultiSlotDataGenerator", body, call="run_from_memory")) == \
        "3 -1 18446744073709551615 True 5 1e-05 nan inf 0.1 3\n"


def test_an_id_slot_becomes_a_float_slot_with_its_first_float(pipe):
    body = """
            yield [("a", [1])]
            yield [("a", [2, 0.5])]
            yield [("a", [3])]"""
    more = "    def __del__(self): print(self._proto_info)\n"
    assert bytes_of(pipe("MultiSlotDataGenerator", body, more=more, call="run_from_memory")) == \
        "1 1\n2 2 0.5\n1 3\n[('a', 'float')]\n"


def test_strings_are_joined_unchecked(pipe):
    body = 'yield [("words", line.split()), ("label", ["x"])]'
    assert bytes_of(pipe("MultiSlotStringDataGenerator", body, "a b\n\n")) == "2 a b 1 x\n0 1 x\n"


def test_batches_go_through_generate_batch_and_the_last_may_be_short(pipe):
    more = """
    def generate_batch(self, samples):
        def padded():
            longest = max(len(sample[0][1]) for sample in samples)
            for (name, values), in samples:
                yield [(name, values + [0] * (longest - len(values)))]
        return padded

    def __init__(self):
        super().__init__()
        self.set_batch(2)
"""
    body = 'yield [("words", [int(x) for x in line.split()])]'
    assert bytes_of(pipe("MultiSlotDataGenerator", body, "1\n2 3\n4 5 6\n",
                         more)) == "2 1 0\n2 2 3\n3 4 5 6\n"


TWO = "the complete field set of two given line are inconsistent."


@pytest.mark.parametrize("body, complaint, note", [
    ('yield {"a": [1]}',
     "the output of process() must be in list or tuple typeExample: "
     "[('words', [1926, 08, 17]), ('label', [1])]",
     "generate_sample() gave a sample of <class 'dict'>"),
    ('yield [(b"a", [1])]', "name<class 'bytes'> must be in str type", ""),
    ('yield [("a", (1, 2))]', "elements<class 'tuple'> must be in list type", "the values of slot 'a'"),
    ('yield [("a", [])]', "the elements of each field can not be empty, you need padding it in process().",
     "slot 'a' has no values"),
    ('yield [("a", ["1"])]', "the type of element<class 'str'> must be in int or float",
     "a value of slot 'a': '1'"),
    ('yield [("a", [1.0, None])]', "the type of element<class 'NoneType'> must be in int or float",
     "a value of slot 'a': None"),
    ('yield [("a", [1])]; yield [("a", [1]), ("b", [1])]', TWO,
     "this sample has 2 slots, those before it had 1"),
    ('yield [("a", [1])]; yield [("b", [1])]',
     "the field name of two given line are not match: require<a>, get<b>.", ""),
    ('yield [("a", [1])]; yield [("a", ["x"])]', "the type of element<class 'str'> must be in int or float",
     "a value of slot 'a': 'x'"),
])
def test_malformed_samples_are_refused_in_paddles_words_with_a_note(pipe, body, complaint, note):
    done = pipe("MultiSlotDataGenerator", body, call="run_from_memory")
    assert done.returncode == 1
    message, *notes = done.stderr.splitlines()[-2 if note else -1:]
    assert message == "ValueError: " + complaint
    assert "".join(notes).startswith(note)


def test_a_generator_without_generate_sample_names_itself(run):
    done = run("import fleetrun.distributed.fleet as fleet\nfleet.MultiSlotDataGenerator().run_from_memory()",
               expect=1)
    assert "NotImplementedError: Please rewrite this function to return a list or tuple" in done.stderr
    assert "MultiSlotDataGenerator does not define generate_sample" in done.stderr


GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "data_generator" / "cases.json"


@pytest.mark.parametrize("plain", ["in C++", "in Python"])
def test_random_samples_give_what_paddle_made_of_them(environment, plain):
    cases, expected = zip(*json.loads(GOLDEN.read_text()))
    # Without its module of C++ the generators are Python alone.
    program = f"""
import runpy, sys
if {plain == "in Python"}: sys.modules["fleetrun._multi_slot_text"] = None
from fleetrun.distributed.fleet import data_generator
assert (data_generator._multi_slot_text is None) == {plain == "in Python"}
sys.argv = ["", "fleetrun.distributed.fleet"]
runpy.run_path({generator_cases.__file__!r}, run_name="__main__")
"""
    done = subprocess.run([sys.executable, "-c", program], input=json.dumps(cases), text=True,
                          capture_output=True, timeout=LIMIT,
                          env=environment)
    assert done.returncode == 0, done.stderr
    for case, theirs, ours in zip(cases, expected, json.loads(done.stdout), strict=True):
        assert ours == theirs, case


def test_a_reader_that_has_enough_ends_the_program_quietly(tmp_path, environment):
    script = tmp_path / "reader.py"
    script.write_text(READER.format(base="MultiSlotDataGenerator", more="", call="run_from_memory",
                                    body='yield from ([("a", [i])] for i in range(10**9))'), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment)
    try:
        assert process.stdout.readline() == b"1 0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(LIMIT) == 141
    finally:
        process.stderr.close()
        if process.poll() is None:
            process.kill()
            process.wait()


def test_the_generators_import_the_standard_library_alone_and_little_of_it(run):
    done = run("""
import sys
before = set(sys.modules)
import fleetrun.distributed.fleet.data_generator
print(sorted(name for name in set(sys.modules) - before if not name.startswith("fleetrun")))
""")
    assert set(eval(done.stdout)) <= {"__future__", "importlib", "importlib._bootstrap",
                                      "importlib._bootstrap_external", "importlib.machinery", "warnings",
                                      "_warnings", "types", "atexit"}, done.stdout
