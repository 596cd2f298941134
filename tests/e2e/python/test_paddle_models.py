"""Models that Paddle wrote (tests/golden/paddle_models, made by tests/oracles/models_2_6.py and
models_1_8.py) compute here what they did there, train, and are refused where they are damaged."""

import tarfile
from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[2] / "golden" / "paddle_models"

# Each model: an operator or a few, with its feeds and what Paddle computed.
ALL = """
import glob, os, sys
import numpy
import fleetrun as paddle
from fleetrun import fluid

paddle.enable_static()
folder = sys.argv[1]
feeds = dict(numpy.load(f"{folder}/feeds.npz"))
lengths = feeds.pop("lengths", numpy.array([])).tolist()
executor, count = paddle.static.Executor(paddle.CPUPlace()), 0
for wanted in sorted(glob.glob(f"{folder}/*.npz")):
    prefix = wanted[: -len(".npz")]
    if os.path.basename(prefix) == "feeds":
        continue
    with paddle.static.scope_guard(paddle.static.Scope()):
        if os.path.isdir(prefix):
            one = "params" if os.path.exists(f"{prefix}/params") else None
            program, names, fetches = fluid.io.load_inference_model(prefix, executor, None, one)
        else:
            program, names, fetches = paddle.static.load_inference_model(prefix, executor)
        feed = {name: feeds[name] if name not in "sq" else fluid.create_lod_tensor(feeds[name], [lengths], None)
                for name in names}
        made = executor.run(program, feed=feed, fetch_list=fetches)
    values = list(numpy.load(wanted).values())
    assert len(made) == len(values), prefix
    for one, value in zip(made, values):
        one = numpy.asarray(one)
        assert (one.shape, one.dtype) == (value.shape, value.dtype), (prefix, one.shape, one.dtype)
        numpy.testing.assert_allclose(one, value, rtol=2e-5, atol=1e-6, err_msg=prefix)
    count += 1
assert "fleetrun.fluid.layers" not in sys.modules  # which would change what x + y means in the script
print(count)
"""

@pytest.fixture
def unpacked(tmp_path):
    """Puts the models of a version into a folder, and returns that."""
    def put(version):
        with tarfile.open(MODELS / f"paddle_{version}.tar.xz") as archive:
            archive.extractall(tmp_path / "models")
        (folder,) = (tmp_path / "models").iterdir()
        return folder

    return put

@pytest.mark.parametrize("version, count", [("2.6", 173), ("1.8", 115)])
def test_every_operator_computes_what_paddle_did(run, unpacked, version, count):
    folder = unpacked(version)
    done = run(f"import sys; sys.argv = ['', {str(folder)!r}]\n" + ALL)
    assert done.stdout.splitlines()[-1] == str(count)

def test_a_program_of_paddle_trains(run, unpacked):
    """What Paddle's desc.serialize_to_string() gave of a program and its start-up program: the losses are its
    own."""
    folder = unpacked("2.6")
    done = run(f"""
import numpy
import fleetrun as paddle
from fleetrun.static import Executor, Program, program_guard
paddle.enable_static()
main, startup = [Program.parse_from_string(open({str(folder)!r} + "/training_" + name, "rb").read())
                 for name in ("main", "startup")]
assert sorted(one.name for one in main.all_parameters()) == [
    "batch_norm_0.b_0", "batch_norm_0.w_0", "batch_norm_0.w_1", "batch_norm_0.w_2", "emb", "fc_0.b_0",
    "fc_0.w_0", "fc_1.b_0", "fc_1.w_0"]
with program_guard(main, startup):
    paddle.optimizer.Adam(0.01).minimize(main.global_block().var("mean_1.tmp_0"))
executor = Executor(paddle.CPUPlace())
executor.run(startup)
random = numpy.random.RandomState(0)
for _ in range(5):
    x, ids = random.rand(16, 8).astype("float32"), random.randint(0, 20, (16, 1))
    feed = {{"x": x, "ids": ids, "y": (x.sum(1, keepdims=True) > 4).astype("int64")}}
    fetched = executor.run(main, feed=feed, fetch_list=["mean_1.tmp_0", "accuracy_0.tmp_2"])
    print(*(float(one) for one in fetched))
""")
    losses = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    assert losses == [pytest.approx(step, rel=1e-5) for step in [
        (0.69314718, 0.5), (0.56676817, 1.0), (0.48546483, 0.9375), (0.40025130, 0.875),
        (0.37362134, 0.8125)]]


def test_a_program_that_was_written_here_trains_again(run):
    done = run("""
import numpy
import fleetrun as paddle
paddle.enable_static()
x = paddle.static.data("x", [None, 2], "float32")
loss = paddle.mean(paddle.square(paddle.static.nn.fc(x, 1) - 1.0))
executor = paddle.static.Executor(paddle.CPUPlace())
executor.run(paddle.static.default_startup_program())
again = paddle.static.Program.parse_from_string(paddle.static.default_main_program().desc.serialize_to_string())
with paddle.static.program_guard(again):
    paddle.optimizer.SGD(0.1).minimize(again.global_block().var(loss.name))
feed = {"x": numpy.ones((4, 2), "float32")}
losses = [executor.run(again, feed=feed, fetch_list=[loss.name])[0].item() for _ in range(20)]
print(losses[0] > 2 * losses[-1])
""")
    assert done.stdout == "True\n"

def test_operators_that_are_not_known_are_named(run, tmp_path, unpacked):
    model = unpacked("2.6") / "tanh.pdmodel"
    model.write_bytes(model.read_bytes().replace(b"\x1a\x04tanh", b"\x1a\x04tank"))
    told = run(f"""
import fleetrun as paddle
paddle.enable_static()
paddle.static.load_inference_model({str(model)[:-len(".pdmodel")]!r}, None)
""", expect=1).stderr
    assert "tanh.pdmodel holds a program of Paddle with operators that are not known here: tank" in told

def test_damaged_models_are_refused_with_one_error(run, unpacked):
    folder = unpacked("2.6")
    done = run(f"""
import random
import fleetrun as paddle
paddle.enable_static()
random.seed(1)
seen = set()
for name in ("fc", "conv", "embp", "sslice"):
    whole = open(f"{folder}/{{name}}.pdmodel", "rb").read()
    for turn in range(150):
        data = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        if turn % 3 == 0:
            del data[random.randrange(len(data)):]
        try:
            paddle.static.Program.parse_from_string(bytes(data))
            seen.add("read")
        except paddle.Error as error:
            seen.add(error.kind)
print(sorted(seen))
""")
    assert done.stdout == "['config', 'data', 'read']\n"
