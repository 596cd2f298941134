"""What a script feeds, keeps and reads back amiss is one error, and never a crash or a wrong number."""

HEAD = """
import threading
import numpy as np
import fleetrun as paddle
paddle.enable_static()
static, data = paddle.static, paddle.static.data
exe = static.Executor(paddle.CPUPlace())
x = data("x", [None, 3])
def told(call):
    try:
        call()
    except paddle.Error as error:
        print(error.what)
    else:
        raise AssertionError("no error")
def floats(*shape):
    return np.ones(shape, "float32")
"""


def test_a_feed_that_is_no_array_is_named(run):
    done = run(HEAD + """
y = paddle.scale(x, 2.0)
for value in (None, [[1, 2], [3]], "abc", np.array([[1, 2, 3]], dtype=object)):
    told(lambda: exe.run(feed={"x": value}, fetch_list=[y]))
told(lambda: exe.run(feed=floats(2, 3), fetch_list=[y]))
told(lambda: exe.run(feed={1: floats(2, 3)}, fetch_list=[y]))
told(lambda: exe.run(feed={"x": floats(2, 3), y.name: floats(2, 3)}, fetch_list=[y]))
assert exe.run(feed={"x": floats(2, 3)}, fetch_list=y)[0].shape == exe.run(feed={"x": floats(2, 3)}, fetch_list=y.name)[0].shape == (2, 3)
""")
    lines = done.stdout.splitlines()
    assert lines[0] == "feed 'x': cannot convert to float32: None"
    assert lines[
        1].startswith("feed 'x': cannot convert to float32: setting an array element with a sequence")
    assert lines[2] == "feed 'x': cannot convert to float32: could not convert string to float: 'abc'"
    assert lines[3:] == ["an array of element type 'O' cannot be a tensor",
                         "Executor.run: the feed is ndarray",
                         "Executor.run: feed 1 is not a name",
                         "feed 'scale_0.tmp_0' is not an input of the program"]


def test_inputs_and_parameters_that_cannot_be_declared(run):
    done = run(HEAD + """
told(lambda: data(None, [3]))
told(lambda: data("y", "ab"))
told(lambda: data("y", [None, 2.5]))
told(lambda: paddle.nn.Embedding(-5, 3))
told(lambda: paddle.split(x, 0, 1))
for rate in (float("nan"), float("inf")):
    told(lambda: paddle.optimizer.SGD(rate))
told(lambda: paddle.optimizer.Adam(0.1, beta1=float("nan")))
told(lambda: paddle.optimizer.lr.StepDecay(float("nan"), 3))
""")
    assert done.stdout.splitlines() == [
        "paddle.static.data(name=None) is not a name",
        "paddle.static.data(shape='ab'): 'str' object cannot be interpreted as an integer",
        "paddle.static.data(shape=[None, 2.5]): 'float' object cannot be interpreted as an integer",
        "paddle.embedding_0: a parameter of the shape [-5, 3]",
        "split: makes 1 or more outputs, 0 are named: x float32 [-1, 3]",
        "paddle.optimizer.SGD(learning_rate=nan) is not a number that can be computed with",
        "paddle.optimizer.SGD(learning_rate=inf) is not a number that can be computed with",
        "paddle.optimizer.Adam(beta1=nan) is not a number that can be computed with",
        "paddle.optimizer.lr.StepDecay: the learning rate of epoch 0 is nan",
    ]


def test_kept_values_have_the_programs_type_and_shape_or_none(run):
    done = run(HEAD + """
y = static.nn.fc(x, 4)
scope = static.global_scope()
scope.var("fc_0.w_0")
told(lambda: np.array(scope.find_var("fc_0.w_0")))
told(lambda: exe.run(feed={"x": floats(2, 3)}, fetch_list=[y]))
exe.run(static.default_startup_program())
for value in (floats(3, 1000), np.ones([3, 4])):
    scope.var("fc_0.w_0").set(value)
    told(lambda: exe.run(feed={"x": floats(2, 3)}, fetch_list=[y]))
scope.var("fc_0.w_0").set(floats(3, 4))
assert exe.run(feed={"x": floats(2, 3)}, fetch_list=[y])[0].tolist() == [[3.0] * 4] * 2
""")
    assert done.stdout.splitlines() == [
        "'fc_0.w_0' has no value", "'fc_0.w_0' has no value",
        "'fc_0.w_0' is float32 [3, 4] in the program, and float32 [3, 1000] in the scope",
        "'fc_0.w_0' is float32 [3, 4] in the program, and float64 [3, 4] in the scope"]


def test_threads_that_run_one_program_take_turns(run):
    run(HEAD + """
y, z = paddle.scale(x, 2.0), paddle.nn.functional.softmax(static.nn.fc(x, 50))
exe.run(static.default_startup_program())
program, wrong = static.default_main_program(), []
def work(number):
    for i in range(100):
        rows = 1 + i * (number + 1) % 97
        doubled, shares = exe.run(program, feed={"x": np.full([rows, 3], number, "float32")}, fetch_list=[y, z])
        if doubled.shape != (rows, 3) or (doubled != 2 * number).any() or shares.shape != (rows, 50):
            wrong.append((number, rows, doubled.shape, shares.shape))
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
""")


def test_sequences_that_lie_are_refused(run):
    done = run(HEAD + """
ids = data("ids", [None, 1], lod_level=1)
pooled = static.nn.sequence_pool(ids, "sum")
for offsets in ([0, 100, 3], [0, -1, 3], [1, 3], [0, 2]):
    told(lambda: exe.run(feed={"ids": paddle.base.LoDTensor(floats(3, 1), offsets)}, fetch_list=[pooled]))
""")
    assert done.stdout.splitlines() == [f"ids is fed [3, 1] with sequences that begin and end at {offsets}"
                                        for offsets in ("[0, 100, 3]", "[0, -1, 3]", "[1, 3]", "[0, 2]")]


def test_a_run_stops_at_the_first_nan_when_asked(run):
    code = HEAD + """
loss = paddle.mean(paddle.log(static.nn.fc(x, 4) - 100.0))
paddle.optimizer.SGD(0.01).minimize(loss)
exe.run(static.default_startup_program())
told(lambda: exe.run(feed={"x": floats(2, 3)}, fetch_list=[loss]))
"""
    assert run(code, FLAGS_check_nan_inf="1").stdout == "log made NaN in 'log_0.tmp_0', in run 1\n"
    assert "AssertionError: no error" in run(code, expect=1).stderr


def test_a_damaged_model_is_one_error(run):
    done = run(HEAD + """
import json
y = static.nn.fc(x, 4)
exe.run(static.default_startup_program())
static.save_inference_model("m", [x], [y], exe)
whole = json.load(open("m.pdmodel"))
def changed(change):
    model = json.loads(json.dumps(whole))
    change(model)
    open("n.pdmodel", "w").write(json.dumps(model))
    open("n.pdiparams", "wb").write(open("m.pdiparams", "rb").read())
    told(lambda: static.load_inference_model("n", exe))
changed(lambda m: m.update(variables=3))
changed(lambda m: m["operators"][0].update(attributes=[]))
changed(lambda m: m["operators"][0].update(attributes={"a": {"float": "much"}}))
changed(lambda m: m["operators"][0].update(type="linear_grad"))
changed(lambda m: m["operators"][0].update(outputs=[""]))
changed(lambda m: m.update(fetches=["nothing"]))
changed(lambda m: m.pop("feeds"))
open("n.pdmodel", "w").write("[" * 200000)
told(lambda: static.load_inference_model("n", exe))
""")
    lines = done.stdout.splitlines()
    assert len(lines) == 8 and all(line.startswith("n.pdmodel is damaged: ") for line in lines[:7])
    assert lines[3].endswith("minimize() alone appends it") and lines[4].endswith("an output has no name")
    assert "has no variable 'nothing'" in lines[5]
    assert lines[7] == "n.pdmodel is a program neither of fleetrun nor of Paddle"


DATASET = """
ids, label = data("ids", [None, 1], "int64", lod_level=1), data("label", [None, 1], "int64")
pooled = static.nn.sequence_pool(paddle.nn.Embedding(10, 4)(ids), "sum")
loss = paddle.mean(paddle.nn.functional.cross_entropy(static.nn.fc(pooled, 2), label))
exe.run(static.default_startup_program())
main, scope = static.default_main_program(), static.global_scope()
with open("lines.txt", "w") as file:
    file.write("3 1 2 3 1 0\\n" * 40)
def dataset(pipe="cat"):
    made = paddle.distributed.QueueDataset()
    made.init(batch_size=10, use_var=[ids, label], pipe_command=pipe)
    made.set_filelist(["lines.txt"])
    return made
"""


def test_a_pass_needs_a_dataset_that_no_other_pass_reads(run):
    done = run(HEAD + DATASET + """
import os
told(lambda: exe.train_from_dataset(main, "lines.txt"))
told(lambda: exe.train_from_dataset(main, None))
told(lambda: exe.train_from_dataset(main, dataset(), thread=-3))
os.mkfifo("begun"), os.mkfifo("go")
shared = dataset("echo > begun; read < go; cat")
first = threading.Thread(target=lambda: exe.train_from_dataset(main, shared, scope=scope))
first.start()
open("begun").read()
told(lambda: exe.train_from_dataset(main, shared))
open("go", "w").write("go\\n")
first.join()
print(exe.last_pass.examples)
exe.train_from_dataset(main, dataset())
""")
    lines = [line for line in done.stdout.splitlines()
             if not line.startswith(("examples:", "bound by", "time:", "\n")) and line]
    assert lines == ["Executor.train_from_dataset: 'lines.txt' is not a dataset",
                     "Executor.train_from_dataset: no dataset is given",
                     "Executor.train_from_dataset(thread=-3)", "QueueDataset: another epoch is reading it",
                     "40"]
