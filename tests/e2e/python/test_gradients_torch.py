"""Values and gradients of operators against PyTorch's, on random shapes, broadcast and empty ones too."""

import subprocess

import pytest
from flow import LIMIT
from torch_python import clean_environment, find_torch_python

SCRIPT = '''
import numpy as np
import torch
import fleetrun as paddle

paddle.enable_static()
F, T = paddle.nn.functional, torch.nn.functional
random = np.random.default_rng(SEED)


def shape():
    return [int(size) for size in random.choice([0, 1, 2, 3, 4, 5], size=random.integers(1, 4), p=[.1, .1, .2, .2, .2, .2])]


def partner(sizes):
    kept = sizes[int(random.integers(0, len(sizes))):]
    return [1 if random.random() < 0.3 else size for size in kept]


def cases():
    """(name, shapes of the inputs, fleetrun's function, torch's)."""
    for name, theirs in (("add", torch.add), ("subtract", torch.sub), ("multiply", torch.mul), ("divide", torch.div),
                         ("pow", torch.pow), ("maximum", torch.maximum), ("minimum", torch.minimum)):
        sizes = shape()
        yield name, [sizes, partner(sizes)], getattr(paddle, name), theirs
        yield name, [partner(sizes), sizes], getattr(paddle, name), theirs
    for name in ("exp log log1p log2 log10 expm1 sqrt rsqrt square reciprocal tanh sin cos tan erf abs floor ceil sign "
                 "sigmoid relu softplus silu mish gelu elu selu relu6 hardswish softsign tanhshrink hardshrink").split():
        ours = getattr(paddle, name, None) if name not in ("sigmoid", "relu") else None
        yield name, [shape()], ours or getattr(F, name), getattr(torch, name, None) or getattr(T, name)
    yield "log_sigmoid", [shape()], F.log_sigmoid, T.logsigmoid
    sizes = shape()
    axis = int(random.integers(0, len(sizes)))
    for name, theirs in (("sum", torch.sum), ("mean", torch.mean), ("prod", torch.prod), ("logsumexp", torch.logsumexp),
                         ("max", torch.amax), ("min", torch.amin)):
        full = [size or 1 for size in sizes]
        yield name, [full], lambda x, f=getattr(paddle, name): f(x, axis=axis), lambda x, f=theirs: f(x, axis)
    yield "softmax", [full], lambda x: F.softmax(x, axis=axis), lambda x: torch.softmax(x, axis)
    yield "log_softmax", [full], lambda x: F.log_softmax(x, axis=axis), lambda x: torch.log_softmax(x, axis)
    yield "cumsum", [sizes], lambda x: paddle.cumsum(x, axis=axis), lambda x: torch.cumsum(x, axis)
    yield "concat", [sizes, sizes], lambda *x: paddle.concat(list(x), axis=axis), lambda *x: torch.cat(x, axis)
    yield "stack", [sizes, sizes], lambda *x: paddle.stack(list(x), axis=axis), lambda *x: torch.stack(x, axis)
    yield "tile", [sizes], lambda x: paddle.tile(x, [2, 1, 3]), lambda x: torch.tile(x, (2, 1, 3))
    yield "expand", [partner(full)], lambda x: paddle.expand(x, full), lambda x: x.expand(full)
    turned = [int(one) for one in random.permutation(len(sizes))]
    yield "transpose", [sizes], lambda x: paddle.transpose(x, turned), lambda x: x.permute(turned)
    yield "flatten", [sizes], paddle.flatten, lambda x: x.reshape(-1)
    n, k, m = (int(size) for size in random.integers(1, 5, 3))
    leading = shape()
    yield "matmul", [[*leading, n, k], [*partner(leading), k, m]], paddle.matmul, torch.matmul
    yield "matmul", [[n, k], [*leading, k, m]], paddle.matmul, torch.matmul
    yield "matmul", [[*leading, n, k], [k, m]], paddle.matmul, torch.matmul
    yield "matmul of vectors", [[n, k], [k]], paddle.matmul, torch.matmul
    for equation in ("ij,jk->ik", "ij,jk->k", "ij,jk->kij", "ij,jk->"):
        yield equation, [[n, k], [k, m]], lambda x, y, e=equation: paddle.einsum(e, x, y), \\
            lambda x, y, e=equation: torch.einsum(e, x, y)
    yield "bij,bjk->bki", [[3, n, k], [3, k, m]], lambda x, y: paddle.einsum("bij,bjk->bki", x, y), \\
        lambda x, y: torch.einsum("bij,bjk->bki", x, y)
    places = random.integers(0, n, 4)
    yield "gather", [[n, k]], lambda x: paddle.gather(x, paddle.to_tensor(places)), lambda x: x[torch.tensor(places)]
    yield "index_select", [[k, n]], lambda x: paddle.index_select(x, paddle.to_tensor(places), axis=1), \\
        lambda x: torch.index_select(x, 1, torch.tensor(places))
    yield "tril", [[2, n, k]], lambda x: paddle.tril(x, 1), lambda x: torch.tril(x, 1)
    yield "triu", [[2, n, k]], paddle.triu, torch.triu
    yield "topk", [[n, 6]], lambda x: paddle.topk(x, 3)[0], lambda x: torch.topk(x, 3)[0]
    yield "sort", [[6, n]], lambda x: paddle.sort(x, axis=0), lambda x: torch.sort(x, 0)[0]
    yield "masked_select", [[n, 6]], lambda x: paddle.masked_select(x, x > 0.9), lambda x: x[x > 0.9]
    yield "where", [[n, k], [n, k]], lambda x, y: paddle.where(x > y, x, y), lambda x, y: torch.where(x > y, x, y)
    yield "cosine_similarity", [[n, k], [n, k]], F.cosine_similarity, T.cosine_similarity
    yield "normalize", [[n, k]], F.normalize, T.normalize
    yield "var", [[n, 5]], lambda x: paddle.var(x, axis=1), lambda x: torch.var(x, 1)
    yield "clip", [[n, k]], lambda x: paddle.clip(x, 0.7, 1.1), lambda x: torch.clamp(x, 0.7, 1.1)


def compare(name, shapes, ours, theirs):
    arrays = [random.uniform(0.3, 1.5, sizes).astype("float32") for sizes in shapes]
    main, startup, scope = paddle.static.Program(), paddle.static.Program(), paddle.static.Scope()
    executor = paddle.static.Executor(paddle.CPUPlace())
    with paddle.static.program_guard(main, startup), paddle.static.scope_guard(scope), paddle.utils.unique_name.guard():
        inputs = [paddle.create_parameter(sizes, "float32", name=f"x{place}", is_bias=True)  # which empty ones can be too
                  for place, sizes in enumerate(shapes)]
        made = ours(*inputs)
        paddle.optimizer.SGD(0.0).minimize(paddle.sum(made * made * made + made))
        for place, array in enumerate(arrays):
            scope.var(f"x{place}").set(array)
        names = [f"x{place}@GRAD" for place in range(len(shapes))]
        # The learning rate of 0 leaves the inputs as they are.
        found = executor.run(main, fetch_list=[made, *names])
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    result = theirs(*tensors)
    (result * result * result + result).sum().backward()
    expected = [result.detach().numpy(), *(tensor.grad.numpy() for tensor in tensors)]
    for got, wanted, what in zip(found, expected, ["the value", *names]):
        got = np.asarray(got)
        assert got.shape == wanted.shape, f"{name} of {shapes}: {what} is {got.shape}, not {wanted.shape}"
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=2e-4, atol=2e-4, err_msg=f"{name} of {shapes}: {what}")


count = 0
for _ in range(5):
    for case in cases():
        compare(*case)
        count += 1
print(count, "compared")
'''


@pytest.fixture(scope="module")
def torch_python(tmp_path_factory):
    found = find_torch_python(tmp_path_factory.mktemp("packages"))
    return found or pytest.skip("no torch here: scripts/setup-debian --tests installs Debian's")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_operators_and_their_gradients_are_torchs(torch_python, tmp_path, seed):
    interpreter, more = torch_python
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("SEED", str(seed)), encoding="utf-8")
    done = subprocess.run([interpreter, str(script)], cwd=tmp_path, env=clean_environment(**more), text=True,
                          capture_output=True, timeout=2 * LIMIT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" compared\n")
