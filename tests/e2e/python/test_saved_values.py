"""paddle.save and paddle.load: values by name in one file, and nothing that runs code."""


def test_the_state_of_a_program_comes_back(run):
    run("""
import numpy as np
import fleetrun as paddle
paddle.enable_static()
x = paddle.static.data("x", [None, 2])
y = paddle.nn.Linear(2, 1, weight_attr=paddle.ParamAttr(name="w"), bias_attr=paddle.ParamAttr(name="b"))(x)
paddle.optimizer.Adam(0.1).minimize(paddle.mean(y))
exe, main = paddle.static.Executor(paddle.CPUPlace()), paddle.static.default_main_program()
exe.run(paddle.static.default_startup_program())
exe.run(feed={"x": np.ones([3, 2], "float32")})
kept = {name: np.array(value) for name, value in main.state_dict().items()}
assert sorted(main.state_dict("param")) == ["b", "w"] and len(kept) > 2
paddle.save(main.state_dict(), "folder/model.pdparams")
exe.run(feed={"x": np.ones([3, 2], "float32")})
loaded = paddle.load("folder/model.pdparams")
assert not np.array_equal(np.array(main.state_dict()["w"]), kept["w"])
main.set_state_dict(loaded)
for name, value in main.state_dict().items():
    np.testing.assert_array_equal(np.array(value), kept[name])
""")


def test_containers_of_numbers_and_texts_come_back(run):
    run("""
import numpy as np
import fleetrun as paddle
made = {"epoch": 3, "names": ["a", "b"], "rate": 0.5, "place": (1, None), "values": {"x": np.arange(3)}}
paddle.save(made, "state.pdopt", protocol=2)
loaded = paddle.load("state.pdopt")
np.testing.assert_array_equal(loaded["values"].pop("x"), made["values"].pop("x"))
assert loaded == made
""")


def test_what_cannot_be_saved_and_a_file_that_runs_code_are_refused(run):
    done = run("""
import os
import pickle
import fleetrun as paddle
paddle.enable_static()
class Runs:
    def __reduce__(self):
        return os.system, ("echo it ran",)
with open("bad", "wb") as file:
    pickle.dump({"x": Runs()}, file)
x = paddle.static.data("x", [None, 2])
for call in (lambda: paddle.load("bad"), lambda: paddle.load("missing"), lambda: paddle.save({"x": x}, "out"),
             lambda: paddle.save({}, "out", protocol=9), lambda: paddle.static.default_main_program().state_dict("some")):
    try:
        call()
    except paddle.Error as error:
        print(error.what)
""")
    assert done.stdout.splitlines() == [
        "bad holds no arrays: posix.system is not an array",
        "missing cannot be read: No such file or directory",
        "paddle.save: the variable x, which has no value of its own",
        "paddle.save(protocol=9)",
        "Program.state_dict(mode='some')",
    ]
