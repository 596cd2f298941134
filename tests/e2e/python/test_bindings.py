"""What the native module does beside its functions: conversions, owners, and the end of the process."""
import os

import pytest


def test_scalars_of_numpy_are_what_those_of_python_are(run):
    run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
x = paddle.static.data("x", [2, 3])
for yes in (True, np.bool_(True), np.array(True)):
    paddle.matmul(x, x, transpose_y=yes)
kept = [op for op in paddle.static.default_main_program().native.operators() if op.type == "matmul"]
told = [value for op in kept for value in op.attributes.values() if value == 1]
assert len(told) == 3 and all(value is True for value in told), told
paddle.static.data("y", [np.int64(2), np.uint8(3)])
paddle.full([np.int32(2)], np.float32(0.5))
""")


def test_an_object_of_c_outlives_the_one_of_python(run):
    done = run("""
import gc, weakref
from fleetrun import _native
program, scope = _native.Program(), _native.Scope()
program.add_variable("x", "float32", [-1], is_data=True)
plan, client = _native.TablePlan(), _native.make_in_process("async", [])
runner = _native.StepRunner(program, scope, plan, client, "async")
del program, scope, plan, client
gc.collect()
runner.run({})
runner.end_pass()
made = [_native.Program() for _ in range(1000)]  # where others were
assert len({id(one) for one in made}) == 1000 and all(one.variable_names() == [] for one in made)
""")
    assert done.stderr == ""


def test_who_leaves_objects_behind_prints_nothing(run):
    done = run("""
import sys, threading
from fleetrun import _native
sys.kept = [_native.Program(), _native.Scope(), _native.make_in_process("async", []), _native.DataType.int8]
sys.kept.append(sys.kept)
threading.Thread(target=lambda kept: threading.Event().wait(), args=[_native.Scope()], daemon=True).start()
""")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("call, says", [
    ("native.Program(1)", "incompatible function arguments"),
    ("native.Program().append('relu', None, [], {})", "incompatible function arguments"),
    ("native.ps_assign(client, 0, keys[::2], rows)", "the array is not contiguous"),
    ("native.ps_assign(client, 0, keys.astype('int32'), rows)", "elements of 4 bytes, not 8"),
    ("native.Scope().set_value('x', numpy.zeros((4, 4))[:, 1])", "the array is not contiguous"),
    ("native.Executor(native.Program(), native.Scope()).run({'x': 3})", "a int is no array"),
])
def test_what_cannot_be_converted_is_refused(run, call, says):
    done = run(f"""
import numpy
from fleetrun import _native as native
client = native.make_in_process("async", [])
keys, rows = numpy.arange(4, dtype="uint64"), numpy.zeros(4, "float32")
{call}
""", expect=1)
    assert says in done.stderr


def test_arrays_that_are_contiguous_in_all_but_name_are_taken(run):
    run("""
import numpy
from fleetrun import _native as native
scope, values = native.Scope(), numpy.arange(12.0).reshape(3, 4)
for array in (values, values[:1, :], values[1:2], values[:, None, :][:2], numpy.float32(1), values[:0]):
    frozen = numpy.array(array)
    frozen.flags.writeable = False
    for one in (array, frozen):
        scope.set_value("x", one)
        assert numpy.array_equal(numpy.asarray(scope.value("x")), one) and scope.value("x").offsets == []
view = memoryview(scope.value("x"))
assert (view.shape, view.format, view.itemsize) == ((0, 4), "d", 8)
""")


def test_the_module_of_later_pythons_is_told_from_that_of_this_one(run, package, tmp_path):
    if os.path.exists(os.path.join(package, "_native.abi3.so")):
        pytest.skip("this Python loads it")
    copy = tmp_path / "site" / "fleetrun"
    copy.mkdir(parents=True)
    for file in os.listdir(package):
        if not file.endswith(".so"):
            (copy / file).symlink_to(os.path.join(package, file))
    (copy / "_native.abi3.so").write_bytes(b"")
    done = run("import fleetrun as paddle; paddle.static.data('x', [1])", PYTHONPATH=str(tmp_path / "site"),
               expect=1)
    assert "fleetrun was built for another Python than this one" in done.stderr
    assert "_native.abi3.so" in done.stderr
