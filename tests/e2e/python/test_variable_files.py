"""save_vars and load_vars: one file for each variable, in Paddle's format."""

HEAD = """
import os
import numpy as np
import pytest
from fleetrun import Error, fluid
from fleetrun.fluid import layers

x = layers.data("x", [2])
out = layers.fc(layers.fc(x, 3, name="a"), 1, name="b")
program = fluid.default_main_program()
exe = fluid.Executor(fluid.CPUPlace())
values = {}
def start(optimizer=None):
    if optimizer is not None:
        optimizer.minimize(layers.mean(out))
    exe.run(fluid.default_startup_program())
def value(name):
    return np.array(fluid.global_scope().find_var(name).get_tensor())
"""


def test_the_files_are_those_of_paddle(run):
    """The bytes are what Paddle 1.8.5 writes for these values."""
    run(HEAD + """
start()
fluid.global_scope().find_var("b.w_0").get_tensor().set(np.array([[1], [2], [-3]], "float32"))
fluid.io.save_params(exe, "each")
fluid.io.save_params(exe, "whole", filename="all")
assert sorted(os.listdir("each")) == ["a.b_0", "a.w_0", "b.b_0", "b.w_0"]
zeros, weight = (open("each/" + name, "rb").read().hex() for name in ("a.b_0", "b.w_0"))
assert zeros == "00" * 16 + "04000000" + "08051003" + "00" * 12, zeros
assert weight == "00" * 16 + "06000000" + "080510031001" + "0000803f" + "00000040" + "000040c0", weight
order = ("a.b_0", "a.w_0", "b.b_0", "b.w_0")
assert open("whole/all", "rb").read() == b"".join(open("each/" + name, "rb").read() for name in order)
before = {name: value(name) for name in order}
for folder, file in (("each", None), ("whole", "all")):
    for name in order:
        fluid.global_scope().find_var(name).get_tensor().set(before[name] + 1)
    fluid.io.load_params(exe, folder, filename=file)
    assert all(np.array_equal(value(name), before[name]) for name in order)
state = fluid.load_program_state("each")
assert set(state) == set(order) and np.array_equal(state["b.w_0"], before["b.w_0"])
""")


def test_an_optimizers_state_has_paddles_names(run):
    run(HEAD + """
start(fluid.optimizer.Adam(0.1))
feed = {"x": np.ones((4, 2), "float32")}
for _ in range(3):
    exe.run(feed=feed)
fluid.io.save_persistables(exe, "each")
fluid.io.save_persistables(exe, "whole", filename="all")
names = os.listdir("each")
assert "a.w_0_beta1_pow_acc_0" in names and "learning_rate_0" in names and "a.w_0_step_0" not in names
exe.run(feed=feed)
expected = value("a.w_0")
for folder, file in (("each", None), ("whole", "all")):
    exe.run(fluid.default_startup_program())
    fluid.io.load_persistables(exe, folder, filename=file)
    assert value("a.w_0_step_0") == 3
    exe.run(feed=feed)
    assert np.array_equal(value("a.w_0"), expected)
""")


def test_pretrained_values_are_found_by_their_files(run):
    """As ERNIE, BERT and PALM load them."""
    run(HEAD + """
start()
fluid.io.save_params(exe, "each")
os.remove("each/b.w_0")
before = value("a.w_0")
start()
kept = value("b.w_0")
there = lambda variable: os.path.exists(os.path.join("each", variable.name))
fluid.io.load_vars(exe, "each", program, predicate=there)
assert np.array_equal(value("a.w_0"), before) and np.array_equal(value("b.w_0"), kept)
fluid.global_scope().find_var("a.w_0").get_tensor().set(before + 1)
startup = fluid.default_startup_program()  # ERNIE loads into its variables, and asks which are parameters
theirs = lambda variable: isinstance(variable, fluid.framework.Parameter) and there(variable)
fluid.io.load_vars(exe, "each", startup, predicate=theirs)
assert np.array_equal(value("a.w_0"), before)
fluid.io.load_vars(exe, "nowhere", program, predicate=lambda variable: False)
with pytest.raises(Error, match="each/b.w_0 cannot be read"):
    fluid.io.load_params(exe, "each")
open("each/b.w_0", "wb").write(open("each/a.w_0", "rb").read()[:-3])
with pytest.raises(Error, match="b.w_0 holds no value of a variable: 24 bytes are to follow byte 26 of 47"):
    fluid.io.load_params(exe, "each")
open("each/b.w_0", "wb").write(open("each/a.w_0", "rb").read())
with pytest.raises(Error, match=r"b.w_0 has the shape \\[2, 3\\] there, \\[3, 1\\] in the program"):
    fluid.io.load_params(exe, "each")
fluid.io.save_params(exe, "whole", filename="all")
with pytest.raises(Error, match="whole/all holds 4 values, and 1 are to be loaded"):
    fluid.io.load_vars(exe, "whole", program, vars=[program.var("a.w_0")], filename="all")
""")


def test_pickles_of_before_are_read(run):
    run(HEAD + """
import pickle
start()
os.mkdir("older")
older = {name: np.full(value(name).shape, 3, "float32") for name in ("a.w_0", "a.b_0", "b.w_0", "b.b_0")}
pickle.dump(older, open("older/params.pdparams", "wb"))
fluid.io.load_params(exe, "older")
assert (value("a.w_0") == 3).all()
start()
fluid.io.load_params(exe, "older", filename="params.pdparams")
assert (value("a.w_0") == 3).all()
""")
