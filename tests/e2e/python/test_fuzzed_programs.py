"""Random programs over the functions of values and layers give, with their gradients, what float64 gives
(tests/oracles/fuzz_programs.py; tests/campaigns/programs.py draws more, and asks real Paddle)."""

import concurrent.futures
import functools
import pathlib
import re
import subprocess
import sys

import pytest
from conftest import environment
from flow import LIMIT

ORACLES = pathlib.Path(__file__).parents[2] / "oracles"
PROGRAMS, PROCESSES = 2000, 2

# Names of the modules that no random program draws, and why.
LEFT_OUT = {
    "random numbers": "alpha_dropout bernoulli dropout dropout2d dropout3d gumbel_softmax multinomial normal "
                      "rand randint randint_like randn randperm rrelu standard_normal uniform",
    "no value of a program": "broadcast_shape create_parameter create_tensor create_global_var fill_constant "
                             "is_complex is_floating_point is_integer is_tensor",
    "values that are not there yet": "empty empty_like",
    "known values, in test_placed_values.py":
        "affine_grid conj diagonal_scatter fold frexp grid_sample max_unpool1d max_unpool2d max_unpool3d "
        "mode multigammaln nanmedian nanquantile quantile select_scatter sgn temporal_shift "
        "unique_consecutive",
    "arrays, of which a program keeps several values": "array_length array_read array_write create_array",
}  # fmt: skip


def run(*words):
    """fuzz_programs.py with these arguments."""
    return subprocess.run(
        [sys.executable, str(ORACLES / "fuzz_programs.py"), *map(str, words)],
        text=True,
        capture_output=True,
        env=environment(),
        timeout=2 * LIMIT,
        stdin=subprocess.DEVNULL,
    )


@functools.cache
def names_of_programs():
    """The names of Paddle that random programs use."""
    return set(run("--list", "--count", 4000).stdout.split())


def test_random_programs_give_what_float64_gives():
    each = PROGRAMS // PROCESSES
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        done = list(pool.map(lambda part: run("--seed", 1 + part * each, "--count", each), range(PROCESSES)))
    for one in done:
        assert one.returncode == 0, one.stdout[:4000] + one.stderr
        counts = {
            name: int(count) for count, name in re.findall(r"(\d+) ([a-z ]+)", one.stdout.splitlines()[-1])
        }
        assert counts["programs"] == each
        assert counts.get("undecided", 0) < each / 100, one.stdout
        assert counts.get("refused for a size that is not known", 0) < each / 25, one.stdout


def test_a_wrong_program_becomes_a_small_script(tmp_path):
    """tanh that is off by a tenth is found, and shown alone."""
    script = tmp_path / "broken.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ORACLES)!r})\n"
        "import fuzz_programs as fuzz, programs\n"
        "module = fuzz.load()\n"
        "right = module.tanh\n"
        "module.tanh = lambda x: module.scale(right(x), 1.1)\n"
        "maker = programs.Maker(1)\n"
        "x = maker.leaf((2, 3), parameter=True)\n"
        'for text, reference in (("paddle.exp({0})", fuzz.np.exp), ("paddle.tanh({0})", fuzz.np.tanh),\n'
        '                        ("paddle.abs({0})", fuzz.np.abs)):\n'
        "    x = maker.step(text, reference, x)\n"
        "maker.program.fetched = [x.name]\n"
        "found = fuzz.Comparison(module).judged(maker.program.settle())\n"
        "print(found[1])\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        text=True,
        capture_output=True,
        env=environment(),
        timeout=LIMIT,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"paddle\.(?:exp|tanh|abs)\b", done.stdout) == ["paddle.tanh"]
    assert "has to be" in done.stdout


@pytest.mark.parametrize(
    "module, prefix", [("tensor", "paddle."), ("nn.functional", "paddle.nn.functional.")]
)
def test_every_function_is_drawn(module, prefix):
    used = names_of_programs()
    names = subprocess.run(
        [sys.executable, "-c", f"import fleetrun.{module} as m; print(*m.__all__)"],
        text=True,
        capture_output=True,
        env=environment(),
        timeout=LIMIT,
    ).stdout.split()
    left_out = {name for listed in LEFT_OUT.values() for name in listed.split()}
    drawn = {name.removeprefix(prefix) for name in used if name.startswith(prefix)}
    # In a program a name with _ is the one without.
    missing = [name for name in names if name.removesuffix("_") not in drawn | left_out]
    assert missing == []
