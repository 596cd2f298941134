"""fluid.layers.Normal, Uniform, Categorical. The numbers are those of Paddle 1.8.5."""


def test_entropy_likelihood_and_divergence(run):
    run("""
import numpy as np
from fleetrun import fluid
from fleetrun.fluid import layers

one = layers.Normal(np.array([0, 1], "float32"), np.array([1, 2], "float32"))
other = layers.Normal([1.0, 1.0], [2.0, 1.0])
flat = layers.Uniform([0.0, 1.0], [2.0, 3.0])
some, more = layers.Categorical(np.array([[0.1, 0.5, -1]], "float32")), layers.Categorical([[0.7, 0.2, 1.0]])
at = layers.assign(np.array([0.5, 1.5], "float32"))
asked = [one.entropy(), one.log_prob(at), one.kl_divergence(other), flat.entropy(), flat.log_prob(at),
         some.entropy(), some.kl_divergence(more), one.sample([4000], seed=3), flat.sample([2000, 2])]
values = fluid.Executor(fluid.CPUPlace()).run(fetch_list=asked)
expected = EXPECTED
for value, wanted in zip(values, expected):
    assert np.allclose(np.ravel(value), wanted, atol=1e-6), (value, wanted)
draws, spread = values[7:]
assert draws.shape == (4000, 2) and spread.shape == (2000, 2, 2)
assert np.allclose(draws.mean(0), [0, 1], atol=0.15) and np.allclose(draws.std(0), [1, 2], rtol=0.1)
assert 0 <= spread[..., 0].min() and spread[..., 0].max() < 2 and 1 <= spread[..., 1].min() and spread.max() < 3
assert layers.Normal(2.0, 0.5).sample([7]).shape == (7,)
""".replace("EXPECTED", str(EXPECTED)))


EXPECTED = [
    [1.4189385, 2.1120858],
    [-1.0439385, -1.6433357],
    [0.4431472, 0.8068528],
    [0.6931472, 0.6931472],
    [-0.6931472, -0.6931472],
    [0.9567735],
    [0.3559104],
]
