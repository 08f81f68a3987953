"""What lies between products: the door of mpsim/between.h beside torch and NumPy in binary64, and beside itself on other memory."""
import time

import numpy as np
import pytest

from mpsim import _layer as layer
from mpsim import InputError
from mpsim._formats import find
from mpsim._library import CRng

BF16, FP16 = find("bf16"), find("fp16")
torch = pytest.importorskip("torch")


def near(got, want, tolerance=2e-6):
    got, want = got.detach().double(), want.detach().double()
    assert got.shape == want.shape
    assert float((got - want).abs().max()) <= tolerance * max(1.0, float(want.abs().max()))


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms(kind):
    x, w, b, dy = normal(3, 5, 40), normal(40, seed=1), normal(40, seed=2), normal(3, 5, 40, seed=3)
    y, mean, inverse = torch.empty_like(x), torch.empty(3, 5, 1), torch.empty(3, 5)
    dx, dw, db = torch.empty_like(x), torch.empty(40), torch.empty(40)
    b = b if kind == "layer" else None
    layer.layer_norm(y, x, w, b, mean=mean, inverse=inverse, kind=kind)
    layer.norm_backward(dx, dy, x, mean if kind == "layer" else None, inverse, w, kind=kind)
    layer.norm_gradients(dw, db, dy, x, mean, inverse, kind=kind)
    x64, w64 = x.double().requires_grad_(), w.double().requires_grad_()
    b64 = b.double().requires_grad_() if b is not None else None
    want = torch.nn.functional.layer_norm(x64, (40,), w64, b64) if b is not None else torch.nn.functional.rms_norm(x64, (40,), w64, 1e-5)
    want.backward(dy.double())
    near(y, want)
    near(dx, x64.grad, 1e-5)
    near(dw, w64.grad, 1e-5)
    near(db, dy.sum((0, 1)), 1e-5)


@pytest.mark.parametrize("shape", [(6, 5), (4, 5, 7), (2, 5, 3, 4)])
def test_batch_norm(shape):
    x, w, b, dy = normal(*shape), normal(5, seed=1), normal(5, seed=2), normal(*shape, seed=3)
    y, mean, inverse, running = torch.empty_like(x), torch.empty(5), torch.empty(5), [torch.zeros(5), torch.ones(5)]
    layer.batch_norm(y, x, w, b, mean=mean, inverse=inverse, running_mean=running[0], running_var=running[1])
    dx, dw, db = torch.empty_like(x), torch.empty(5), torch.empty(5)
    layer.batch_norm_backward(dx, dw, db, dy, x, mean, inverse, w)
    x64, w64, b64 = (z.double().requires_grad_() for z in (x, w, b))
    running64 = [torch.zeros(5).double(), torch.ones(5).double()]
    want = torch.nn.functional.batch_norm(x64, *running64, w64, b64, True)
    want.backward(dy.double())
    for got, other in ((y, want), (dx, x64.grad), (dw, w64.grad), (db, b64.grad), (running[0], running64[0]), (running[1], running64[1])):
        near(got, other, 1e-5)
    layer.batch_norm_inference(y, x, *running, w, b)
    near(y, torch.nn.functional.batch_norm(x64, *running64, w64, b64), 1e-5)
    last = x.movedim(1, -1).contiguous().movedim(-1, 1)  # the same numbers elsewhere
    other = torch.empty_like(last)
    layer.batch_norm(other, last, w, b)
    layer.batch_norm(y, x, w, b)
    assert torch.equal(other, y)


@pytest.mark.parametrize("shape", [(3, 6), (2, 6, 5), (2, 6, 3, 4)])
def test_group_norm(shape):
    x, w, b, dy = normal(*shape), normal(6, seed=1), normal(6, seed=2), normal(*shape, seed=3)
    y, mean, inverse = torch.empty_like(x), torch.empty(shape[0], 3), torch.empty(shape[0], 3)
    layer.group_norm(y, x, 3, w, b, mean=mean, inverse=inverse)
    dx, dw, db = torch.empty_like(x), torch.empty(6), torch.empty(6)
    layer.group_norm_backward(dx, dw, db, dy, x, mean, inverse, 3, w)
    x64, w64, b64 = (z.double().requires_grad_() for z in (x, w, b))
    want = torch.nn.functional.group_norm(x64, 3, w64, b64)
    want.backward(dy.double())
    for got, other in ((y, want), (dx, x64.grad), (dw, w64.grad), (db, b64.grad)):
        near(got, other, 1e-4)
    one, rows = torch.empty_like(x), torch.empty(shape[0], 6 * x[0, 0].numel())  # a group: LayerNorm of all, the parameters repeated
    layer.group_norm(one, x, 1, w, b)
    layer.layer_norm(rows, x.reshape(shape[0], -1), *(p.repeat_interleave(x[0, 0].numel()) for p in (w, b)))
    assert torch.equal(one.reshape(rows.shape), rows)
    low = torch.empty(shape, dtype=torch.bfloat16)
    layer.group_norm(low, x, 3, w, b)
    assert torch.equal(low, y.bfloat16())


F = torch.nn.functional
FUNCTIONS = {"gelu-tanh": lambda x: F.gelu(x, approximate="tanh"), "gelu": F.gelu, "relu": F.relu, "silu": F.silu, "sigmoid": torch.sigmoid,
             "tanh": torch.tanh, "exp": torch.exp}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_activations(kind):
    x, dy = normal(50, 21), normal(50, 21, seed=1)
    y, dx = torch.empty_like(x), torch.empty_like(x)
    layer.activate(kind, y, x)
    layer.activate_backward(kind, dx, dy, y if kind in ("relu", "sigmoid", "tanh", "exp") else x)
    x64 = x.double().requires_grad_()
    want = FUNCTIONS[kind](x64)
    want.backward(dy.double())
    near(y, want)
    near(dx, x64.grad)
    turned = torch.empty(21, 50)
    layer.activate(kind, turned.t(), x)
    assert torch.equal(turned.t(), y)
    low = torch.empty(50, 21, dtype=torch.bfloat16)
    layer.activate(kind, low, x)
    assert torch.equal(low, y.bfloat16())


def test_swiglu():
    both, dy = normal(6, 10), normal(6, 5, seed=1)
    y, d = torch.empty(6, 5), torch.empty(6, 10)
    layer.activate("swiglu", y, both[:, :5], both[:, 5:])
    layer.activate_backward("swiglu", d[:, :5], dy, both[:, :5], both[:, 5:], d[:, 5:])
    x64 = both.double().requires_grad_()
    want = F.silu(x64[:, :5]) * x64[:, 5:]
    want.backward(dy.double())
    near(y, want)
    near(d, x64.grad)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_softmax(log, causal):
    s, dp = normal(2, 3, 4, 6), normal(2, 3, 4, 6, seed=1)
    p, ds = torch.empty_like(s), torch.empty_like(s)
    mask = torch.ones(4, 6, dtype=torch.bool).tril(2)
    layer.softmax(p, s, scale=0.5, length=4 if causal else 0, log=log)
    layer.softmax_backward(ds, dp, p, scale=0.5, length=4 if causal else 0, log=log)
    s64 = s.double().requires_grad_()
    x = s64 * 0.5
    want = (torch.log_softmax if log else torch.softmax)(x.masked_fill(~mask, -torch.inf) if causal else x, -1)
    want.backward(dp.double() * mask if causal else dp.double())
    seen = mask if causal else torch.ones_like(mask)
    near(torch.where(seen, p, torch.zeros(())), torch.where(seen, want.detach(), torch.zeros(()).double()))
    near(ds, s64.grad)
    if causal:
        other, back = torch.empty_like(s), torch.empty_like(s)
        layer.softmax(other, s, scale=0.5, mask=mask, log=log)
        layer.softmax_backward(back, dp, other, scale=0.5, mask=mask, log=log)
        assert torch.equal(other, p) and torch.equal(back, ds)


def test_cross_entropy():
    x, labels = normal(7, 11), torch.tensor([3, 0, -100, 10, 5, -100, 2])
    loss, dx = torch.empty(7), torch.empty(7, 11)
    correct, counted = layer.cross_entropy(x, labels, loss=loss, dx=dx, coefficient=0.2, ignored=-100)
    x64 = x.double().requires_grad_()
    want = F.cross_entropy(x64, labels, reduction="none")
    (want.sum() * 0.2).backward()
    near(loss, want)
    near(dx, x64.grad)
    assert counted == 5 and correct == int((x.argmax(-1) == labels).sum())
    assert abs(layer.mean(loss, counted) - float(want.detach().sum() / 5)) < 1e-6
    with pytest.raises(InputError):
        layer.cross_entropy(x, torch.full((7,), 11))
    with pytest.raises(InputError):
        layer.cross_entropy(x, labels[:6])


def test_tables():
    table, index, dy = normal(9, 6), torch.randint(9, (4, 5), generator=torch.Generator().manual_seed(1)), normal(4, 5, 6, seed=2)
    y, d = torch.empty(4, 5, 6), torch.empty(9, 6)
    layer.embedding(y, table, index)
    assert torch.equal(y, table[index])
    layer.embedding_backward(d, dy, index, ignored=3)
    want = torch.zeros(9, 6).index_add_(0, index.flatten(), dy.flatten(0, 1))
    want[3] = 0
    assert torch.equal(d, want)
    layer.embedding_backward(d, dy, index, added=True)
    want.index_add_(0, index.flatten(), dy.flatten(0, 1))
    assert torch.equal(d, want)
    with pytest.raises(InputError):
        layer.embedding(y, table, index + 5)


def test_sums_and_elements():
    x, b = normal(300, 7), normal(7, seed=1)
    sums, some = torch.empty(7), torch.empty(3, 7)
    layer.column_sums(sums, x)
    near(sums, x.double().sum(0), 1e-5)
    layer.period_sums(some, x)
    near(some, x.double().view(100, 3, 7).sum(0), 1e-5)
    y = torch.empty(300, 7, dtype=torch.bfloat16)
    layer.add(y, x.bfloat16(), b)
    assert torch.equal(y, (x.bfloat16().float() + b).bfloat16())
    layer.multiply(y, x.bfloat16(), b)
    assert torch.equal(y, (x.bfloat16().float() * b).bfloat16())


def test_dropout():
    x, rng = torch.ones(1000), CRng(1, 2, 3)
    y, z = torch.empty(1000), torch.empty(900)
    layer.dropout(y, x, 0.25, rng)
    assert set(y.tolist()) == {0.0, float(np.float32(1 / 0.75))} and 680 < int((y > 0).sum()) < 820
    layer.dropout(z, x[100:], 0.25, CRng(1, 2, 103))  # by address
    assert torch.equal(z, y[100:])


def test_arrays_of_numpy_and_formats():
    x = np.random.default_rng(1).normal(size=(4, 20)).astype(np.float32)
    y, z = np.empty_like(x), np.empty((20, 4), np.float16)
    layer.softmax(y, x)
    layer.softmax(z.T, x)
    assert np.array_equal(z.T, y.astype(np.float16))
    w = np.empty_like(x)
    layer.softmax(w, x, format=BF16)
    assert np.array_equal(w, torch.from_numpy(y).bfloat16().float().numpy())
    layer.softmax(w, x, math=FP16)
    assert not np.array_equal(w, y) and np.array_equal(w, w.astype(np.float16))


def test_refused():
    x = torch.zeros(3, 4)
    for call in (lambda: layer.softmax(torch.zeros(3, 5), x), lambda: layer.layer_norm(x, x, torch.zeros(3)), lambda: layer.softmax(x.double(), x),
                 lambda: layer.layer_norm(x, x, mean=torch.zeros(4)), lambda: layer.activate("swiglu", x, x), lambda: layer.softmax(x, x, mask=x),
                 lambda: layer.add(x, torch.zeros(2, 4), x), lambda: layer.embedding(x, torch.zeros(9, 5), torch.zeros(3)),
                 lambda: layer.batch_norm(torch.zeros(4), torch.zeros(4)), lambda: layer.softmax(torch.zeros(()), torch.zeros(()))):
        with pytest.raises(InputError):
            call()


def test_a_small_call_is_cheap():
    x, y = torch.zeros(8, 8), torch.zeros(8, 8)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(200):
            layer.softmax(y, x)
        times.append((time.perf_counter() - begin) / 200)
    print(f"softmax of 8 x 8: {min(times) * 1e6:.1f} us")
    assert min(times) < 100e-6
