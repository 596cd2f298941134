"""`fleetrun check`: what a script lacks is listed with file, line and way out; nothing of it is executed."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from conftest import environment
from fleetrun_job import find_fleetrun
from flow import LIMIT

STATIC = """import paddle
paddle.enable_static()
x = paddle.static.data("x", [None, 4])
"""

# name: (script, [(line, kind, part of the text, part of what to write instead)] of its findings).
CASES = {
    "runs": (STATIC + """
import paddle.distributed.fleet as fleet
strategy = fleet.DistributedStrategy()
strategy.a_sync = True
strategy.a_sync_configs = {"k_steps": 100}
loss = paddle.mean(paddle.static.nn.fc(x, 1) * 2.0)
optimizer = fleet.distributed_optimizer(paddle.optimizer.Adam(0.1), strategy)
optimizer.get_lr()
optimizer.minimize(loss)
""", []),
    "module": ("from paddle.vision.models import resnet18\n",
               [(1, "name", "paddle.vision: it is part of dynamic models", "run the script with the real")]),
    "name": (STATIC + "y = paddle.static.nn.crf_decodingg(x)\n",
             [(4, "name", "fleetrun has no paddle.static.nn.crf_decodingg", "")]),
    "alias": ("import paddle.fluid as fluid\nlayers = fluid.layers\nlayers.lod_rank_table(1)\n",
              [(3, "name", "fleetrun has no paddle.fluid.layers.lod_rank_table: it keeps lists of variables",
                "use ")]),
    "scope": (STATIC + """
import contextlib
scope = ""
@contextlib.contextmanager
def named(name):
    global scope
    scope += name
    yield
    scope = ""
for size in (3, 5):
    with named(f"{size}/"): paddle.static.nn.fc(x, size, weight_attr=scope + "weights")
""", []),
    "compiled": ("import paddle\npaddle.nothing\nwords = [(yield word) for word in 'ab']\n",
                 [(3, "syntax", "'yield' inside list comprehension", "")]),
    "environ": ("import os\nimport sys\nimport paddle\nsys.stdout.buffer\n"
                "for name in os.environ.iteritems():\n    pass\npaddle.set_default_dtype('float64')\n",
                [(5, "name", "'_Environ' object has no attribute 'iteritems'", ""),
                 (7, "refused", "parameters are float32", "")]),
    "dygraph_imported": ("import paddle.fluid as fluid\nfrom paddle.fluid.dygraph.base import to_variable\n"
                         "class Model(fluid.dygraph.Layer):\n    pass\n", []),
    "dygraph_called": ("from paddle.fluid.dygraph import Layer, guard\nclass Model(Layer):\n    pass\n"
                       "Model()\nwith guard():\n    pass\n",
                       [(4, "name", "paddle.fluid.dygraph.Layer: it belongs to dynamic mode", "the real"),
                        (5, "name", "paddle.fluid.dygraph.guard: it belongs to dynamic mode", "the real")]),
    "dygraph_unmade": ("import paddle\nfrom paddle.fluid.dygraph import Layer\nclass Model(Layer):\n"
                       "    def forward(self, x):\n        return x\n",
                       [(3, "name", "paddle.fluid.dygraph.Layer: it belongs to dynamic mode", "the real")]),
    "prints": ("import paddle\npaddle.optimizer.lr.StepDecay(0.1, 2, verbose=True)\n", []),
    "near": ("import paddle\npaddle.concatt([1])\n",
             [(2, "name", "fleetrun has no paddle.concatt", "paddle.concat")]),
    "method": (STATIC + "y = (x * 2.0).backward()\n",
               [(4, "name", "paddle.Tensor.backward: it belongs to dynamic mode", "with the real Paddle")]),
    "argument": (STATIC + "y = paddle.mean(x, axes=1)\n",
                [(4, "argument", "paddle.mean(x, axis, keepdim, name) has no argument axes", "")]),
    "value": (STATIC + "paddle.static.auc(x, x, curve='PR')\n",
              [(4, "refused", "curve='PR'", "leave curve at its default, 'ROC'")]),
    "never": ("import paddle\nmodel = paddle.jit.to_static(print)\nfrom paddle.distributed import fleet\n"
              "fleet.load_one_table(0, 'saved', 0)\n",
              [(2, "refused", "paddle.jit.to_static: fleetrun has no dynamic models", "paddle.static"),
               (4, "refused", "fleet.load_one_table: a save is loaded whole", "use fleet.load_model")]),
    "mapped": ("""one = map(str, [1, 2])
both = one + ["3"]
fine = list(one) + ["3"] + [each for each in map(str, one)]
for each in one:
    print(each, *one)
print(["3"] + one)
""", [(2, "argument", "what map() gives cannot be added", "list(map("),
      (6, "argument", "what map() gives cannot be added", "list(map(")]),
    "variables_of": ("""import argparse
given = argparse.ArgumentParser().parse_args()
def show(name, number=1):
    print(name, number)
show(**vars(given))
print(vars(given)["name"], sorted(vars(given).items()), len(vars()))
print(vars(given).iteritems())
""", [(7, "name", "'dict' object has no attribute 'iteritems'", "")]),
    "object": (STATIC + """
class Weights:
    pass
paddle.static.auc(x, x, ins_tag_weight=Weights())
""", [(7, "refused", "ins_tag_weight=Weights", "leave ins_tag_weight at its default, None")]),
    "strategy": ("""import sys
from paddle.distributed import fleet
def settings(k):
    strategy = fleet.DistributedStrategy()
    strategy.a_sync_configs = {"k_steps": k, "steps": len(sys.argv)}
    strategy.tensor_parallel = True
    return strategy
settings(10)
""", [(5, "name", "DistributedStrategy.a_sync_configs.steps", "k_steps"),
      (6, "refused", "DistributedStrategy.tensor_parallel = True", "leave it at False")]),
    "shapes": (STATIC + """
import math
w = paddle.create_parameter([5, int(math.pow(2, 1))], "float32")
y = paddle.matmul(x, paddle.create_parameter([5, 2], "float32"))
z = paddle.nn.functional.relu(y) @ w
""", [(7, "refused", "matmul: the inner dimensions differ", "")]),
    "python2": ("import cPickle\nfor i in xrange(3):\n    pass\n",
                [(1, "module", "No module named 'cPickle'", "install it"),
                 (2, "name", "name 'xrange' is not defined: it is Python 2's", "write it for Python 3")]),
    "bytes": (b"import math\n\nx = 1  # \xd6\xd0\xce\xc4\n",
              [(3, "syntax", "SyntaxError: Non-UTF-8 code", "write it for Python 3")]),
    "syntax": ("print 'hello'\n", [(1, "syntax", "SyntaxError", "write it for Python 3")]),
    "dynamic": ("""import paddle
class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.pool = paddle.nn.RNNTLoss(1)
        self.fc = paddle.nn.Linear(3, 1)
    def forward(self, x):
        return self.fc(self.pool(x))
net = Net()
paddle.DataParallel(net)
""", [(5, "name", "paddle.nn.RNNTLoss", "with the real Paddle"),
      (10, "name", "paddle.DataParallel: it belongs to dynamic mode", "with the real Paddle")]),
    "fallback": ("""import paddle
try:
    from paddle.vision import nothing
except ImportError:
    nothing = None
try:
    import cPickle as pickle
except ImportError:
    import pickle
if paddle.__version__ < "2.0":
    paddle.enable_imperative()
if hasattr(paddle, "Model"):
    paddle.Model()
getattr(paddle, "Model", None)
if paddle.is_compiled_with_cuda():
    paddle.device.cuda.get_device_name()
""", []),
    "roles": ("""from paddle.distributed import fleet
fleet.init()
if fleet.is_server():
    fleet.run_servers()
else:
    fleet.train_worker()
""", [(4, "name", "paddle.distributed.fleet.run_servers", "run_server"),
      (6, "name", "paddle.distributed.fleet.train_worker", "")]),
    "options": ("""import argparse, paddle
parser = argparse.ArgumentParser()
parser.add_argument("--new", default=True)
parser.add_argument("--old", action="store_true")
args = parser.parse_args()
if args.new:
    paddle.newer()
if args.old:
    paddle.older()
""", [(7, "name", "fleetrun has no paddle.newer", "")]),
    "library": ("""import paddle
class Model:
    def __init__(self, config):
        self.size = config.get("size")
    def net(self, inputs):
        return paddle.nonsense(inputs[0])
""", [(6, "name", "fleetrun has no paddle.nonsense", "")]),
    "own_name": ("from helper import missing\n",
                 [(1, "name", "cannot import name 'missing' from 'helper'", "")]),
    "relative": ("from . import helper\n", [(1, "module", "attempted relative import", "by its name")]),
    "folder": ("""import os, sys
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
from inner import build
build()
""", [(4, "name", "fleetrun has no paddle.inner_name", "")]),
    "folder_of_os": ("""import os
if __package__ is None:
    from os import sys, path
    sys.path.append(path.abspath(path.join(path.dirname(__file__), "lib")))
from inner import build
build()
""", [(4, "name", "fleetrun has no paddle.inner_name", "")]),
    "first_folder": ("""import os, sys
sys.path.append(sys.path[0] + "/" + os.curdir)
sys.path[0] = os.path.join(os.path.dirname("__file__"), os.path.pardir, "lib")
sys.path += ["lib"]
from inner import build
import somewhere_else
""", [(6, "module", "No module named 'somewhere_else'", "")]),
    "version": ("import sys\nassert sys.version_info.major == 3\nsys.version_info.majour\n",
                [(3, "name", "'tuple' object has no attribute 'majour'", "")]),
    "unknown_folder": ("import sys\nsys.path.append(sys.argv[1])\nimport somewhere_else\n", []),
    "pipe": ("import paddle\npaddle.distributed.QueueDataset().init(pipe_command='python pipe.py')\n",
             [(2, "name", "fleetrun has no paddle.distributed.fleet.Generator", "DataGenerator")]),
    "starts": ("import os, subprocess, sys\nif not os.path.exists('pipe.py'):\n    print('pipe.py')\n"
               "subprocess.run([sys.executable, 'pipe.py'])\n",
               [(2, "name", "fleetrun has no paddle.distributed.fleet.Generator", "DataGenerator")]),
    "names_file": ("import os, paddle\npath = os.path.join(os.path.dirname(__file__), 'pipe.py')\n"
                   "if paddle.is_compiled_with_cuda():\n    os.system(path)\n", []),
    "cases": ("""import unittest, paddle
class TestIt(unittest.TestCase):
    def setUp(self):
        self.name = "x"
    def test_b(self):
        with self.assertRaises(AttributeError):
            paddle.expected()
        paddle.second()
    def test_a(self):
        paddle.first()
""", [(10, "name", "fleetrun has no paddle.first", ""),
      (8, "name", "fleetrun has no paddle.second", "")]),
    "left": ("""import paddle
def main():
    try:
        paddle.static.load_program_state("nowhere")
    except Exception:
        return
    paddle.later()
main()
""", []),
    # A file of settings is read: one names a missing module, and says that the other branch is not taken.
    "settings": ("""import copy, importlib, json, os, paddle
def load(path):
    if os.path.isfile(path):
        with open(path, "r", encoding="utf-8") as file:
            if os.environ.get("UNKNOWN_ENVIRONMENT_OF_A_TEST"):
                found = json.load(file)
            else:
                found = json.loads(file.read())
        return found
    else:
        raise ValueError("there is no " + path)
def flat(settings):
    made = {}
    def into(above, inner):
        for key, value in inner.items():
            names = copy.deepcopy(above)
            names.append(key)
            if isinstance(value, dict):
                into(names, value)
            else:
                made[".".join(names)] = value
    into([], settings)
    return made
settings = flat(load("settings.json"))
importlib.import_module(settings.get("runner.reader"))
if type(settings.get("runner.old", False)) is bool and settings["runner.old"]:
    paddle.older()
if settings.get("runner.other") is None:
    paddle.newer()
""", [(25, "module", "No module named 'a_reader'", "install it"),
      (29, "name", "fleetrun has no paddle.newer", "")]),
    "unknown_settings": ("""import json, os, sys, paddle
def load(path):
    if path.startswith("/"):
        return json.load(open(path))
    else:
        raise ValueError(path)
def of_one(settings, section):
    found = {}
    for key, value in settings.items():
        if key.startswith(section):
            found[key] = value
    return found
settings = of_one(load(sys.argv[1]), "runner")
optimizer = paddle.optimizer.Adam(settings.get("runner.rate"))
if settings.get("runner.old") or settings.get("runner.older"):
    paddle.older()
settings.get("runner.dynamic") and paddle.dynamic()
paddle.newer()
""", [(18, "name", "fleetrun has no paddle.newer", "")]),
    "kept": (STATIC + """
width = paddle.nn.Embedding(9, 4)._embedding_dim
paddle.nn.BeamSearchDecoder(None, 0, 1, 2, output_fn=lambda x: nothing(x)), (width, 1).clear_grad()
""", [(6, "name", "'tuple' object has no attribute 'clear_grad'", "")]),
    # What ends a run by the script's own will, by Python's library, or by a part that is not built.
    "own_end": ("""import paddle, sys
if not paddle.is_compiled_with_cuda():
    print("it wants a GPU")
    sys.exit(3)
paddle.nonsense
""", [(4, "exit", "the script ends here with 3", "")]),
    "own_error": ("""import paddle
def places(count):
    if count > 1:
        raise ValueError("one place only")
    return count
def lazily():
    yield 1
    raise KeyError("not for who only makes it")
lazily()
places(len([1, 2]))
paddle.nonsense
""", [(4, "raise", "the script raises ValueError('one place only')", "")]),
    "role_ends": ("""import sys, paddle.distributed.fleet as fleet
fleet.init()
if fleet.is_server():
    sys.exit(1)
""", []),
    "pythons_own": ("""import collections, numpy
numpy.asscalar
{}.iteritems()
from collections import Mapping
"text".decode("utf-8")
collections.OrderedDict, numpy.random.rand, numpy.linalg.norm
getattr(numpy, "trapezoid", None) or numpy.trapz
""", [(2, "name", "module 'numpy' has no attribute 'asscalar'", ""),
      (3, "name", "'dict' object has no attribute 'iteritems'", ""),
      (4, "name", "cannot import name 'Mapping' from 'collections'", ""),
      (5, "name", "'str' object has no attribute 'decode'", "")]),
    "not_built": ("import parts.inner\n",
               [(2, "module", "No module named 'parts.compiled'", "build or install it")]),
    "layers": (STATIC + """
class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.parts = paddle.nn.LayerList([paddle.nn.Linear(2, 2)])
        self.linear = paddle.nn.Linear(4, 2)
        self.apply(self.begin)
    def begin(self, layer):
        if isinstance(layer, paddle.nn.Linear):
            layer.weight.set_value(paddle.normal(shape=layer.weight.shape))
Net()
""", [(13, "refused", "set_value of linear_", "give it an array")]),
    "asserts": ("""import paddle
def layer(kind=None, size=2):
    assert size == 2, "a pair"
    assert kind is not None
    paddle.no_such_layer
layer("a")
layer(size=2)
""", [(5, "name", "no_such_layer", ""), (4, "raise", "AssertionError: kind is not None", "")]),
    "own_calls": ("""import functools, paddle
def wrapped(function):
    return functools.wraps(function)(lambda *words: function(1, *words))
class Net:
    def build(self, x, size=1, *, name=""):
        return x
    @classmethod
    def make(cls, size):
        return cls()
    @wrapped
    def other(self, x):
        return x
    @staticmethod
    def plain(x):
        return x
net = Net.make(1)
net.build(1, 2, name="a"), net.plain(1), Net.plain(1), net.other(), Net.build(net, 1)
pair = [1, 2]
net.build(*pair)
net.build(1, width=2)
net.build(*pair, 3)
try:
    net.build()
except TypeError:
    later = missing
globals().update(made=1)
made
""", [(20, "argument", "build(self, x, size, name) has no argument width", ""),
      (21, "argument", "takes fewer arguments without a name", ""),
      (25, "name", "name 'missing' is not defined", "")]),
    "fetched": (STATIC + """
test = paddle.static.default_main_program().clone(for_test=True)
loss = paddle.mean(paddle.static.nn.fc(x, 1))
after = paddle.static.default_main_program().clone(for_test=True)
exe = paddle.static.Executor()
for batch in [1, 2]:
    exe.run(feed={"x": batch}, fetch_list=[loss])
    exe.run(after, feed={"x": batch}, fetch_list=[loss])
    exe.run(test, feed={"x": batch}, fetch_list=[x])
    exe.run(test, feed={"x": batch}, fetch_list=[x, loss])
""", [(13, "refused", "the program has no variable 'mean_0.tmp_0'", "")]),
    "operators": (STATIC + """
loss = paddle.mean(x)
for op in paddle.static.default_main_program().global_block().ops:
    op.all_attrs(), op.has_attr("axis"), op.type
    op.no_such_name
""", [(8, "name", "'Operator' object has no attribute 'no_such_name'", "")]),
    "datasets": (STATIC + """import math
import paddle.fluid as fluid
layer = paddle.static.nn.fc(x, int(math.ceil(2.5)))
paddle.matmul(layer, paddle.ones([4, 1]))
dataset = fluid.DatasetFactory().create_dataset("InMemoryDataset")
dataset.set_parse_ins_id(True)
dataset.set_parse_logkey(True)
dataset.load_into_memory()
dataset.global_shuffle()
paddle.save(paddle.static.default_main_program().state_dict(), "model.pdparams")
dataset = paddle.fluid.DatasetFactory().create_dataset()
dataset.global_shuffle(None)
fluid.DatasetFactory().create_dataset("BoxPSDataset")
paddle.set_device("gpu:0"), paddle.set_device("npu")
""", [(7, "refused", "matmul: the inner dimensions differ", ""),
      (10, "refused", "set_parse_logkey(parse_logkey=True) is not supported", "False"),
      (15, "refused", "a QueueDataset does not shuffle", "InMemoryDataset"),
      (16, "refused", "create_dataset(datafeed_class='BoxPSDataset') is not supported", "QueueDataset"),
      (17, "refused", "paddle.set_device('npu'): there is no such device", 'use "cpu"')]),
    "evaluated": ("""import paddle.fluid as fluid
act = "relu"
eval("fluid.layers." + act)
eval("fluid.layers." + act + "r")
eval("no_such_name." + act)
eval("x y"), eval("1 +" + input()), eval("nothing", {"nothing": 1}), print >> 1
""", [(4, "name", "fleetrun has no paddle.fluid.layers.relur", "relu"),
      (5, "name", "name 'no_such_name' is not defined", ""), (6, "argument", "print >> …", "(…, file=…)")]),
    "called": ("""import json, numpy, textwrap, yaml
from PIL import Image
textwrap.indent("a", prefix="b"), json.dumps({}, indent=1)
textwrap.indent("a")
json.dumps({}, no_such=1), textwrap.indent(*input())
try:
    textwrap.indent("a", "b", None, 1)
except TypeError:
    pass
yaml.load(open("settings.json"))
Image.BILINEAR, Image.NO_SUCH_FILTER
numpy.concatenate([[1], [2]]), numpy.concatenate()
""", [(4, "argument", "textwrap.indent() misses its argument prefix", ""),
      (10, "argument", "yaml.load() misses its argument Loader", ""),
      (11, "name", "module 'PIL.Image' has no attribute 'NO_SUCH_FILTER'", "")]),
    "endless": ("import paddle\ndef f(n):\n    return f(n + 1)\nf(0)\nwhile True:\n    f(1)\n", []),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """({script: its part of the JSON}, the folder): every case in one run of the command."""
    folder = tmp_path_factory.mktemp("check")
    for name, (text, _) in CASES.items():
        (folder / f"{name}.py").write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "settings.json").write_text(
        '{"runner": {"old": false, "reader": "a_reader"}}\n', encoding="utf-8")
    (folder / "helper.py").write_text("present = 1\n", encoding="utf-8")
    (folder / "pipe.py").write_text("import paddle.distributed.fleet as fleet\n"
                                    "class Lines(fleet.Generator):\n    pass\n", encoding="utf-8")
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").write_text("import os\nimport parts.compiled\n", encoding="utf-8")
    (folder / "parts" / "inner.py").write_text("", encoding="utf-8")
    (folder / "lib").mkdir()
    (folder / "lib" / "inner.py").write_text(
        "import paddle\n\ndef build():\n    paddle.inner_name\n", encoding="utf-8")
    done = check(folder, "--json", *(f"{name}.py" for name in CASES))
    assert done.returncode == 1, done.stderr
    return {entry["script"]: entry for entry in json.loads(done.stdout)["scripts"]}


def check(folder, *words):
    """`python -m fleetrun._check WORDS` in `folder`, which has to leave no new file there."""
    before = sorted(os.listdir(folder))
    done = subprocess.run([sys.executable, "-m", "fleetrun._check", *words], cwd=folder, env=environment(),
                          text=True, capture_output=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    assert sorted(os.listdir(folder)) == before
    return done


@pytest.mark.parametrize("name", CASES)
def test_findings_of(checked, name):
    entry = checked[f"{name}.py"]
    found = [(each["line"], each["kind"], each["text"], each["instead"]) for each in entry["findings"]]
    wanted = CASES[name][1]
    assert len(found) == len(wanted), found
    for (line, kind, text, instead), (at, of_kind, part, way_out) in zip(found, wanted):
        assert (line, kind) == (at, of_kind) and part in text and way_out in instead, (text, instead)


def test_the_first_finding_of_a_dynamic_script_says_so(checked):
    assert "dynamic.py:10 is of dynamic mode, and this engine runs static programs" in (
        checked["dynamic.py"]["findings"][0]["text"])


def test_what_perhaps_is_not_reached_is_possible(checked):
    assert [(each["line"], each["certain"]) for each in checked["left.py"]["possible"]] == [(7, False)]


WANTS = """import argparse, os, sys, paddle
parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--kind", default=""), parser.add_argument("--config")
options = parser.parse_args()
int(os.getenv("NO_SUCH_COUNT"))
os.environ["NO_SUCH_PLACE"]
os.environ["MADE_HERE"] = "1"
int(os.environ["MADE_HERE"])
open("no_such_file")
paddle.load("no_such_model")
paddle.inference.create_predictor(paddle.inference.Config(os.path.join("no_such", "it.pdmodel")))
try:
    open("no_such_settings")
except IOError:
    pass
if not os.path.exists("cache"):
    os.makedirs("cache")
open("cache/part")
[len(part) for part in
 os.listdir("no_such_folder")]
folder = os.path.dirname(os.path.abspath(options.config))
if not options.kind:
    raise ValueError("there is no kind")
"""


def test_what_a_run_needs_and_the_check_has_not_is_no_finding(tmp_path):
    (tmp_path / "wants.py").write_text(WANTS, encoding="utf-8")
    done = check(tmp_path, "--json", "wants.py")
    entry = json.loads(done.stdout)["scripts"][0]
    assert (done.returncode, entry["findings"]) == (0, [])
    assert [(each["line"], each["text"]) for each in entry["wants"]] == [
        (5, "the following arguments are required: --data"), (6, "int() of None"),
        (7, "'NO_SUCH_PLACE' is not in the environment"), (10, "'no_such_file' is not there"),
        (11, "'no_such_model' is not there"), (12, "'no_such/it.pdmodel' is not there"),
        (21, "'no_such_folder' is not there"), (22, "the script needs its option config"),
        (24, "the script raises ValueError('there is no kind')")]
    given = check(tmp_path, "--json", "wants.py", "--data", "d")  # the command line of the run
    entry = json.loads(given.stdout)["scripts"][0]
    assert [(each["line"], each["kind"]) for each in entry["findings"]] == [(24, "raise")]
    assert 5 not in [each["line"] for each in entry["wants"]]
    assert "wants.py: needed by a run, and not found by this check:\n  wants.py:5: the following" in (
        check(tmp_path, "wants.py").stdout)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_full_output_is_named_and_a_reader_that_has_left_is_no_error(tmp_path, flags):
    (tmp_path / "bad.py").write_text("import paddle\npaddle.no_such_name()\n")
    argv = [sys.executable, "-m", "fleetrun._check", *flags, "bad.py"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(argv, cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (
        125, "fleetrun: error: standard output cannot be written: No space left on device\n")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(argv, cwd=tmp_path, env=environment(), stdout=pipe, stderr=subprocess.PIPE,
                              text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")


def test_the_examples_lack_nothing():
    folder = pathlib.Path(__file__).resolve().parents[3] / "examples"
    scripts = [str(path) for path in sorted(folder.rglob("*.py")) if "torch" not in path.read_text("utf-8")]
    done = check(folder, *scripts)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_text_and_exit_statuses(tmp_path):
    (tmp_path / "good.py").write_text("import paddle\npaddle.enable_static()\n", encoding="utf-8")
    (tmp_path / "bad.py").write_text("open('made', 'w')\nimport paddle\npaddle.Model()\n", "utf-8")
    good = check(tmp_path, "good.py")
    assert (good.returncode, good.stdout, good.stderr) == (0, "good.py: nothing is found\n", "")
    bad = check(tmp_path, "good.py", "bad.py")
    assert bad.returncode == 1
    lines = bad.stdout.splitlines()
    assert lines[1].startswith("bad.py:3: fleetrun has no paddle.Model: it belongs to dynamic mode")
    assert lines[2].startswith("    instead: run the script with the real Paddle (fleetrun script.py,")
    assert lines[3] == "bad.py: 1 finding"
    for words, wrong in ([], "there is no script"), (["--fast", "good.py"], "there is no flag --fast"), (
            ["nowhere.py"], "there is no file nowhere.py"):
        done = check(tmp_path, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"fleetrun: error: check: {wrong}\n  hint: fleetrun check --help\n"


@pytest.mark.parametrize("words", [["--compat=paddle"], ["--compat", "paddle"],
                                   ["--compat=paddle", f"--python={sys.executable}"]])
def test_flags_of_a_launch_with_compat_stand_before_the_script(tmp_path, words):
    (tmp_path / "keyword.py").write_text("import paddle\npaddle.Model()\n", encoding="utf-8")
    done = subprocess.run([find_fleetrun(), "check", *words, "keyword.py", "--compat=other"], cwd=tmp_path,
                          env=environment(), text=True, capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "keyword.py: 1 finding"), done.stderr


@pytest.mark.parametrize("words", [["--compat=torch"], ["--compat", "torch"]])
def test_another_package_is_refused(tmp_path, words):
    (tmp_path / "good.py").write_text("import paddle\n", encoding="utf-8")
    done = check(tmp_path, *words, "good.py")
    wrong = "--compat is 'torch': there is no such package, use --compat=paddle"
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"fleetrun: error: check: {wrong}")


def test_the_command_takes_the_interpreter_of_a_launch(tmp_path):
    (tmp_path / "keyword.py").write_text("import paddle\npaddle.Model()\n", encoding="utf-8")
    words = [find_fleetrun(), "check", f"--python={sys.executable}", "keyword.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), text=True, capture_output=True,
                          timeout=LIMIT)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "keyword.py: 1 finding"), done.stderr


def test_arguments_of_the_script_choose_its_branches(tmp_path):
    (tmp_path / "script.py").write_text(CASES["options"][0], encoding="utf-8")
    done = check(tmp_path, "--json", "script.py", "--old", "--new", "")
    assert [each["line"] for each in json.loads(done.stdout)["scripts"][0]["findings"]] == [9]
