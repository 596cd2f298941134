"""The package's names: lazy, its own under `paddle`, and an error that names what is missing."""


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
for use in (lambda: paddle.nn.Conv2DTranspose, lambda: paddle.nn.initializer.Normall, lambda: fleet.init_workers,
            lambda: paddle.DataParallel, lambda: paddle.optimizer.Lamb, lambda: paddle.static.normalize_program):
    try:
        use()
    except AttributeError as error:
        print(error)
""")
    assert done.stdout.splitlines() == [
        "fleetrun has no paddle.nn.Conv2DTranspose",
        "fleetrun has no paddle.nn.initializer.Normall; did you mean paddle.nn.initializer.Normal?",
        "fleetrun has no paddle.distributed.fleet.init_workers; did you mean "
        "paddle.distributed.fleet.init_worker?",
        "fleetrun has no paddle.DataParallel",
        "fleetrun has no paddle.optimizer.Lamb",
        "fleetrun has no paddle.static.normalize_program",
    ]


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
try:
    import paddle.vision.models
except ModuleNotFoundError as error:
    print(error)
try:
    paddle.DataParallel
except AttributeError as error:
    print(error)
""", PYTHONPATH=package + "/_compat")
    assert done.stdout == "2.6.2\nfleetrun has no module paddle.vision\nfleetrun has no paddle.DataParallel\n"


def test_a_cuda_place_is_accepted_with_one_warning(run):
    done = run("""
import fleetrun as paddle
paddle.enable_static()
assert not paddle.is_compiled_with_cuda() and not paddle.in_dynamic_mode()
places = [paddle.CUDAPlace(0), paddle.CUDAPlace(1), paddle.set_device("gpu:0")]
""")
    assert done.stderr == "fleetrun: warning: paddle.CUDAPlace(0): fleetrun's engine runs on the CPU\n"


def test_an_error_shows_what_disagrees_and_what_to_do(run):
    done = run("""
import fleetrun as paddle
try:
    paddle.disable_static()
except paddle.Error as error:
    assert error.kind == "config" and error.context == ()
    print(error)
""")
    assert done.stdout == ("paddle.disable_static(): fleetrun has no dynamic mode\n"
                           "  hint: build the model with paddle.static.data and run it with "
                           "paddle.static.Executor\n")


def test_an_error_nobody_catches_ends_the_script_with_1(run):
    done = run("import fleetrun as paddle\npaddle.disable_static()", expect=1)
    assert ("fleetrun.Error: paddle.disable_static(): fleetrun has no dynamic mode\n  hint: build" in
            done.stderr)
