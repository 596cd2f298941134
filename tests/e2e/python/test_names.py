"""The package's names: lazy, its own under `paddle`, and an error that names what is missing."""

import shutil


def test_importing_a_generator_loads_neither_numpy_nor_native_code(run):
    done = run("""
import sys
import fleetrun
import fleetrun.distributed.fleet as fleet
class Reader(fleet.MultiSlotDataGenerator):
    pass
print(sorted({"numpy", "fleetrun._native", "difflib", "subprocess"} & set(sys.modules)))
""")
    assert done.stdout == "[]\n"


def test_a_missing_name_fails_where_it_is_used_and_names_itself(run):
    done = run("""
import fleetrun as paddle
import fleetrun.distributed.fleet as fleet
for use in (lambda: paddle.nn.initializer.Normall, lambda: fleet.init_workers, lambda: paddle.qqqq):
    try:
        use()
    except AttributeError as error:
        print(error)
""")
    assert done.stdout.splitlines() == [
        "fleetrun has no paddle.nn.initializer.Normall; did you mean paddle.nn.initializer.Normal?",
        "fleetrun has no paddle.distributed.fleet.init_workers; did you mean "
        "paddle.distributed.fleet.init_worker?",
        "fleetrun has no paddle.qqqq",
    ]


def test_modules_are_reached_through_their_parents(run):
    """As in Paddle, which imports them with the package."""
    for name in ("inference.Config", "distributed.parallel", "distributed.utils", "distributed.fleet.launch",
                 "distributed.fleet.data_generator", "distributed.fleet.log_util",
                 "distributed.fleet.meta_optimizers", "utils.install_check"):
        run(f"import fleetrun as paddle\npaddle.{name}")


def test_every_listed_name_of_a_module_without_native_code_is_there(run):
    run("""
import importlib
for module in ("distributed.fleet._strategy:DistributedStrategy", "_mode:enable_static", "_places:CPUPlace",
               "_dtypes:float32", "regularizer:L2Decay", "_param_attr:ParamAttr",
               "distributed.fleet.base.role_maker:PaddleCloudRoleMaker"):
    name, attribute = module.split(":")
    getattr(importlib.import_module("fleetrun." + name), attribute)
""")


def test_paddle_is_an_alias_of_the_same_objects(run, package):
    done = run("""
import paddle
import paddle.distributed.fleet as fleet
import paddle.distributed.fleet.base.role_maker as role_maker
from paddle.distributed.fleet import DistributedStrategy
import fleetrun
import fleetrun.distributed.fleet
assert fleet is fleetrun.distributed.fleet and paddle.distributed is fleetrun.distributed
assert DistributedStrategy is fleetrun.distributed.fleet.DistributedStrategy
assert role_maker.PaddleCloudRoleMaker is fleet.PaddleCloudRoleMaker
assert paddle.CPUPlace is fleetrun.CPUPlace
print(paddle.__version__)
""", PYTHONPATH=package + "/_compat")
    assert done.stdout == "2.6.2\n"


def test_what_is_not_of_this_kind_says_what_this_engine_is(run, package):
    done = run("""
import importlib
import numpy
import paddle

def from_vision():
    from paddle.vision.transforms import Compose

def from_paddle():
    from paddle import Model

layer = paddle.nn.Linear(2, 3)
for use in (from_vision, from_paddle, lambda: paddle.Model, lambda: paddle.to_tensor([1.0]).backward,
            lambda: paddle.to_tensor([1.0]).numpy(), lambda: layer.state_dict(),
            lambda: paddle.optimizer.SGD(0.1).step(),
            lambda: layer(numpy.zeros((4, 2), "float32")),
            lambda: paddle.disable_static() or paddle.ones([2])):
    try:
        use()
    except (AttributeError, ModuleNotFoundError, paddle.Error) as error:
        print(type(error).__name__, "|", str(error).replace("\\n", " "))
""", PYTHONPATH=package + "/_compat")
    lines = done.stdout.splitlines()
    assert [line.partition(" | ")[0] for line in lines] == [
        "ModuleNotFoundError", "ModuleNotFoundError", *["AttributeError"] * 5, "Error", "Error"]
    for line in lines:
        assert "this engine runs static programs" in line, line
        assert "run the script with the real Paddle (fleetrun script.py, without --compat=paddle)" in line
        assert "fleetrun.ps" in line
    assert lines[0].startswith("ModuleNotFoundError | fleetrun has no paddle.vision: ")


def test_modules_of_paddle_that_are_another_one_here(run, package):
    run("""
import sys
import paddle
import paddle.fluid as fluid
import paddle.fluid.layers.nn
import paddle.static.nn.sequence_lod as sequence_lod
import paddle.fluid.incubate.fleet.base.role_maker as role_maker
from paddle.fluid.incubate.fleet.collective import fleet, DistributedStrategy
from paddle.incubate.distributed.fleet.parameter_server.distribute_transpiler import fleet as servers
from paddle.base import core, framework
from paddle.nn.layer.common import Linear
assert paddle.fluid.layers.nn is fluid.layers and framework is paddle.framework
assert sequence_lod.sequence_pool is paddle.static.nn.sequence_pool
assert role_maker.PaddleCloudRoleMaker is paddle.distributed.fleet.PaddleCloudRoleMaker
assert fluid.incubate.fleet.base.role_maker is role_maker and Linear is paddle.nn.Linear
assert core is fluid.core and sys.modules["fleetrun.fluid.layers.nn"] is fluid.layers
from fleetrun._homes import HOMES
import importlib
for name in HOMES:
    importlib.import_module("paddle." + name)
""", PYTHONPATH=package + "/_compat")


def test_names_of_dynamic_mode_may_be_imported_and_not_called(run, package):
    run("""
import paddle
import paddle.fluid as fluid
import paddle.fluid.dygraph.nn as nn
from paddle.fluid import dygraph
from paddle.fluid.dygraph import Layer, Linear, guard, to_variable
from paddle.fluid.dygraph.base import to_variable
from paddle.fluid.dygraph.parallel import ParallelEnv
assert fluid.dygraph is dygraph and not hasattr(dygraph, "any_name") and hasattr(dygraph, "guard")
assert ParallelEnv().nranks == 1 and not dygraph.enabled()

class Model(fluid.dygraph.Layer):
    def __init__(self, width):
        super().__init__()

    @dygraph.no_grad
    def frozen(self, x):
        return x

@dygraph.declarative
def twice(x):
    return x * 2

assert twice(3) == 6 and issubclass(Model, Layer)
names = {"guard()": "guard", "nn.Linear(1, 1)": "Linear", "dygraph.base.to_variable(1)": "to_variable",
         "to_variable(value=1)": "to_variable", "Model(3)": "Layer", "dygraph.any_name": "any_name"}
for use, name in names.items():
    try:
        eval(use)
    except AttributeError as error:
        assert f"paddle.fluid.dygraph.{name}: it belongs to dynamic mode" in str(error), error
    else:
        raise SystemExit(use)
""", PYTHONPATH=package + "/_compat")


def test_modules_of_nested_lists_and_loggers_are_those_of_paddle(run, package):
    run("""
import logging

import paddle
import paddle.fluid as fluid
from paddle.fluid.input import embedding
from paddle.fluid.layers.utils import assert_same_structure, convert_to_list, is_sequence, map_structure
from paddle.fluid.log_helper import get_logger
from paddle.reader.decorator import shuffle
assert embedding is fluid.embedding and shuffle is paddle.reader.shuffle and callable(paddle.batch)
assert map_structure(lambda a, b: a + b, [1, {"k": (2,)}], [3, {"k": (4,)}]) == [4, {"k": (6,)}]
assert is_sequence([]) and not is_sequence("text")
assert convert_to_list(2, 2, "stride") == convert_to_list((2, 2), 2, "stride") == [2, 2]
assert_same_structure([1, {"k": 2}], [3, {"k": 4}])
assert_same_structure([1], (2,), check_types=False)
for call, kind in ((lambda: convert_to_list([1], 2, "stride"), ValueError),
                   (lambda: assert_same_structure([1], [1, 2]), ValueError),
                   (lambda: assert_same_structure({"a": 1}, {"b": 1}), ValueError),
                   (lambda: assert_same_structure([1], (1,)), TypeError)):
    try:
        call()
    except kind:
        continue
    raise AssertionError(kind)
assert get_logger("one", logging.INFO) is get_logger("one", logging.INFO)
assert len(get_logger("one", logging.INFO, "%(message)s").handlers) == 1
""", PYTHONPATH=package + "/_compat")


def test_a_folder_in_the_way_is_named(run, package, tmp_path):
    (tmp_path / "fleetrun").mkdir()
    (tmp_path / "fleetrun" / "__init__.py").write_text("", encoding="utf-8")
    done = run("import paddle", PYTHONPATH=f"{tmp_path}:{package}/_compat", expect=1)
    assert f"finds {tmp_path}/fleetrun/__init__.py, which stands in the way of the package" in done.stderr


def test_another_python_than_the_one_built_for_is_named(run, package, tmp_path):
    copy = tmp_path / "site" / "fleetrun"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (copy / "_native.cpython-39-x86_64-linux-gnu.so").write_bytes(b"")
    done = run("import fleetrun as paddle; paddle.static.data('x', [1])", PYTHONPATH=str(tmp_path / "site"),
               expect=1)
    assert "fleetrun was built for another Python than this one, Python 3." in done.stderr
    assert "_native.cpython-39-x86_64-linux-gnu.so" in done.stderr


def test_a_cuda_place_is_accepted_with_one_warning(run):
    done = run("""
import fleetrun as paddle
paddle.enable_static()
assert not paddle.is_compiled_with_cuda() and not paddle.in_dynamic_mode()
places = [paddle.CUDAPlace(0), paddle.CUDAPlace(1), paddle.set_device("GPU:0"), paddle.set_device("CPU")]
""")
    assert done.stderr == "fleetrun: warning: paddle.CUDAPlace(0): fleetrun's engine runs on the CPU\n"


def test_the_first_variable_of_a_script_has_its_methods(run):
    done = run("""
import fleetrun as paddle
x = paddle.ones([2])
print((x + 1).astype("int32").dtype)
""")
    assert done.stdout == "paddle.int32\n"


def test_an_error_shows_what_disagrees_and_what_to_do(run):
    done = run("""
import fleetrun as paddle
paddle.disable_static()
assert paddle.in_dynamic_mode()
try:
    paddle.ones([2])
except paddle.Error as error:
    assert error.kind == "config" and error.context == ()
    print(error)
""")
    assert done.stdout == ("paddle.disable_static(): fleetrun has no dynamic mode\n"
                           "  hint: it belongs to dynamic mode, and this engine runs static programs; run "
                           "the script with the real Paddle (fleetrun script.py, without --compat=paddle), "
                           "where fleetrun.ps gives it tables on parameter servers; or build the model with "
                           "paddle.static.data and run it with paddle.static.Executor\n")


def test_a_script_may_end_in_dynamic_mode_and_come_back(run):
    done = run("""
import fleetrun as paddle
paddle.disable_static()
paddle.enable_static()
x = paddle.static.data("x", [2])
paddle.disable_static()
with paddle.framework._dygraph_guard(None):
    made = paddle.scale(x, 2.0)
executor = paddle.static.Executor()
print(executor.run(feed={"x": [1.0, 2.0]}, fetch_list=[made])[0].tolist(), paddle.in_dynamic_mode())
""")
    assert done.stdout == "[2.0, 4.0] True\n"


def test_an_error_nobody_catches_ends_the_script_with_1(run):
    done = run("import fleetrun as paddle\npaddle.disable_static()\npaddle.nn.Linear(2, 3)", expect=1)
    assert ("fleetrun.Error: paddle.disable_static(): fleetrun has no dynamic mode\n  hint: it belongs" in
            done.stderr)
