"""paddle.inference: a saved model through handles gives what the executor gave; what the launcher says."""

SAVED = """
import numpy
import paddle
from paddle.inference import Config, PrecisionType, create_predictor

paddle.enable_static()
x = paddle.static.data("x", [None, 3])
slot = paddle.static.data("slot", [None, 1], "int64", lod_level=1)
rows = paddle.static.nn.sequence_pool(paddle.static.nn.embedding(slot, [10, 2]), "sum")
rows = paddle.reshape(rows, [-1, 2])
out = paddle.static.nn.fc(paddle.concat([x, rows], 1), 2, activation="tanh")
exe = paddle.static.Executor()
exe.run(paddle.static.default_startup_program())
paddle.static.save_inference_model("folder/model", [x, slot], [out], exe)
fed = numpy.ones([2, 3], "float32")
sequences = paddle.base.create_lod_tensor(numpy.array([[1], [2], [3]]), [[1, 2]], None)
expected, = exe.run(feed={"x": fed, "slot": sequences}, fetch_list=[out])
config = Config("folder/model.pdmodel", "folder/model.pdiparams")
config.disable_gpu()
config.set_cpu_math_library_num_threads(1)
config.enable_use_gpu(1000, 0)
config.enable_tensorrt_engine(max_batch_size=2, precision_mode=PrecisionType.Float32)
predictor = create_predictor(config)
print(predictor.get_input_names(), len(predictor.get_output_names()), config.use_gpu())
predictor.get_input_handle("x").copy_from_cpu(fed)
handle = predictor.get_input_handle("slot")
handle.copy_from_cpu(numpy.array([[1], [2], [3]]))
handle.set_lod([[0, 1, 3]])
assert predictor.run()
found = predictor.get_output_handle(predictor.get_output_names()[0])
numpy.testing.assert_array_equal(found.copy_to_cpu(), expected)
print(found.shape(), found.type().name, handle.lod())
other = predictor.clone()
try:
    other.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
except Exception as error:
    print(str(error).splitlines()[0])
for call in (lambda: Config("."), lambda: Config("a.pdmodel", "b.pdiparams"), lambda: config.enable_gpus,
             lambda: create_predictor(Config("nowhere"))):
    try:
        call()
        print("accepted")
    except Exception as error:
        print(str(error).splitlines()[0])
assert create_predictor(Config("folder")).get_input_names() == ["x", "slot"]
"""

OLDER = """
import numpy
import paddle.fluid as fluid
from paddle.fluid import core

x = fluid.data("x", [None, 3])
ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
rows = fluid.layers.reshape(fluid.layers.sequence_pool(fluid.embedding(ids, [10, 2]), "sum"), [-1, 2])
out = fluid.layers.fc(fluid.layers.concat([x, rows], 1), 2)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
fluid.io.save_inference_model("saved", ["x", "ids"], [out], exe,
                              model_filename="__model__", params_filename="__params__")
fed, numbers = numpy.ones([2, 3], "float32"), numpy.array([[1], [2], [3]])
sequences = fluid.create_lod_tensor(numbers, [[1, 2]], None)
expected, = exe.run(feed={"x": fed, "ids": sequences}, fetch_list=[out])

config = core.AnalysisConfig("saved/__model__", "saved/__params__")
config.disable_gpu()
config.switch_use_feed_fetch_ops(True)
predictor = core.create_paddle_predictor(config)
first, second = core.PaddleTensor(data=fed), core.PaddleTensor(numbers, "any name", [[0, 1, 3]])
print(first.dtype, first.shape, first.data.length(), first.data.float_data()[:2], second.dtype)
found, = predictor.run([first, second])
numpy.testing.assert_array_equal(found.as_ndarray(), expected)
print(found.shape, found.dtype, predictor.get_input_tensor_shape())
handles = predictor.clone()
handles.get_input_tensor("x").copy_from_cpu(fed)
handles.get_input_tensor("ids").copy_from_cpu(numbers)
handles.get_input_tensor("ids").set_lod([[0, 1, 3]])
assert handles.zero_copy_run()
name, = handles.get_output_names()
numpy.testing.assert_array_equal(handles.get_output_tensor(name).copy_to_cpu(), expected)

by_name = core.AnalysisConfig("saved")
by_name.switch_specify_input_names(True)
first.name, second.name = "x", "ids"
found, = core.create_paddle_predictor(by_name).run([second, first])
numpy.testing.assert_array_equal(found.as_ndarray(), expected)
for call in (lambda: predictor.run([first]), lambda: core.create_paddle_predictor(by_name).run([first, first])):
    try:
        call()
    except Exception as error:
        print(str(error).splitlines()[0])
tensor = core.PaddleTensor()
tensor.shape, tensor.dtype, tensor.data = [2, 2], core.PaddleDType.INT64, core.PaddleBuf([1, 2, 3, 4])
print(tensor.as_ndarray().tolist(), tensor.as_ndarray().dtype)
for length in (40, 16):
    tensor.data.resize(length)
    print(tensor.data.tolist())
"""


def test_the_predictor_of_older_scripts_takes_tensors_and_handles(run, package):
    assert run(OLDER, PYTHONPATH=package + "/_compat").stdout.splitlines() == [
        "PaddleDType.FLOAT32 [2, 3] 24 [1.0, 1.0] PaddleDType.INT64",
        "[2, 2] PaddleDType.FLOAT32 {'x': [-1, 3], 'ids': [-1, 1]}",
        "predictor.run() of 1 tensors (x)",
        "predictor.run() of 2 tensors (x, x)",
        "[[1, 2], [3, 4]] int64",
        "[1, 2, 3, 4, 0]",
        "[1, 2]",
    ]


RATE = """
import json
import numpy
import paddle.fluid as fluid
from paddle.fluid.layers.learning_rate_scheduler import _decay_step_counter

x = fluid.data("x", [None, 1])
cost = fluid.layers.mean(fluid.layers.fc(x, 1, bias_attr=False, param_attr=fluid.ParamAttr(name="w")))
with fluid.default_main_program()._lr_schedule_guard():
    rate = fluid.layers.create_global_var([1], 0.0, "float32", persistable=True, name="rate")
    step = _decay_step_counter()
    with fluid.layers.control_flow.Switch() as switch:
        with switch.case(step < 2.0):
            fluid.layers.assign((step + 1.0) * 0.25, rate)
        with switch.default():
            fluid.layers.assign(step * 0.0 + 0.125, rate)
fluid.optimizer.SGD(rate).minimize(cost)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
value = lambda: numpy.array(fluid.global_scope().find_var("w").get_tensor()).item()
values = [value()]
for _ in range(4):
    exe.run(feed={"x": numpy.ones([3, 1], "float32")})
    values.append(value())
print(json.dumps([round(before - after, 5) for before, after in zip(values, values[1:])]))
"""


def test_a_predictor_gives_what_the_executor_gave(run, package):
    done = run(SAVED, PYTHONPATH=f"{package}/_compat")
    assert done.stdout.splitlines()[:2] == ["['x', 'slot'] 1 False", "[2, 2] FLOAT32 [[0, 1, 3]]"]
    said = done.stdout.splitlines()[2:]
    assert said[0].endswith("has no value")
    assert "the folder has 0 files *.pdmodel" in said[1] and said[2].endswith("two models")
    assert "did you mean paddle.inference.Config.enable_" in said[3]
    assert "nowhere.pdmodel" in said[4]
    for name in ("enable_use_gpu", "enable_tensorrt_engine"):
        assert done.stderr.count(f"paddle.inference.Config.{name} has no effect") == 1


def test_an_optimizer_takes_a_rate_that_the_program_computes(run, package):
    assert run(RATE, PYTHONPATH=f"{package}/_compat").stdout == "[0.25, 0.5, 0.125, 0.125]\n"
    refused = RATE.replace("cost = ", "ids = fluid.data('ids', [None, 1], 'int64')\n"
                           "import paddle\nrows = paddle.static.nn.sparse_embedding(ids, [9, 1])\ncost = ")
    refused = refused.replace("fluid.layers.mean(", "fluid.layers.mean(rows + ")
    done = run(refused, expect=1, PYTHONPATH=f"{package}/_compat")
    assert "the program computes the learning rate rate, and tables are told it by the trainer" in done.stderr


def test_what_the_launcher_says_of_a_trainer(run, package):
    done = run("""
import paddle.distributed as dist
from paddle.fluid.contrib.reader import distributed_batch_reader
environment = dist.ParallelEnv()
print(environment.rank, environment.nranks, environment.trainer_endpoints, environment.current_endpoint)
print(list(distributed_batch_reader(lambda: iter(range(7)))()))
""", PYTHONPATH=f"{package}/_compat", PADDLE_TRAINER_ID=1, PADDLE_TRAINERS_NUM=2,
               PADDLE_TRAINER_ENDPOINTS="127.0.0.1:1,127.0.0.1:2", PADDLE_CURRENT_ENDPOINT="127.0.0.1:2")
    assert done.stdout.splitlines() == ["1 2 ['127.0.0.1:1', '127.0.0.1:2'] 127.0.0.1:2", "[1, 3, 5]"]
