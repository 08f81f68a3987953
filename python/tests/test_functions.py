"""Layers on arrays: products beside `gemm` and `quantize`, gradients beside binary64 and differences, all kinds of arrays."""
import numpy as np
import pytest

import mpsim
from mpsim import InputError

RNG = np.random.default_rng(7)
MODEL = "hopper-bf16-fp32"


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def near(got, want, tolerance=1e-5):
    assert got.shape == want.shape and got.dtype == np.float32
    assert np.abs(got - want).max() <= tolerance * max(1.0, np.abs(want).max())


def slope(f, x, dy, h=1e-3):
    """The gradient of sum(f(x) * dy) by differences, of a function in binary64."""
    x = x.astype(np.float64)
    g = np.empty_like(x)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += h
        down[i] -= h
        g[i] = ((f(up) - f(down)) * dy).sum() / (2 * h)
    return g


# ---- products ----

def test_linear_is_gemm():
    x, w, b = normal(2, 3, 40), normal(5, 40), normal(5)
    y = mpsim.linear(x, w, model=MODEL, format="bf16")
    assert np.array_equal(y.reshape(6, 5), mpsim.gemm(x.reshape(6, 40), w, model=MODEL, format="bf16", transpose_b=True))
    z = mpsim.linear(x, w, b, model=MODEL, format="bf16", result="bf16")
    assert np.array_equal(z, mpsim.round(y + b, "bf16"))
    assert mpsim.linear(x[0, 0], w, b).shape == (5,)


def test_gradients_of_linear_are_gemms():
    x, w, dy = normal(2, 30, 40), normal(5, 40), normal(2, 30, 5)
    dx, dw, db = mpsim.linear_backward(dy, x, w, model="hopper-wgmma-fp8-fp32", format="e4m3", gradient="e5m2")
    g, a, v = mpsim.round(dy.reshape(60, 5), "e5m2"), mpsim.round(x.reshape(60, 40), "e4m3"), mpsim.round(w, "e4m3")
    assert np.array_equal(dx.reshape(60, 40), product(g, v, "e5m2", "e4m3"))
    assert np.array_equal(dw, product(g.T, a.T.T, "e5m2", "e4m3"))
    near(db, g.sum(0))


def product(a, b, format_a, format_b):
    """gemm of numbers of two formats."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtypes = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
    return mpsim.gemm(a.astype(dtypes[format_a]), b.astype(dtypes[format_b]), model="hopper-wgmma-fp8-fp32")


@pytest.mark.parametrize("recipe", ["mxfp8", "nvfp4", "mxfp4"])
def test_recipes_are_quantised_along_the_depth(recipe):
    x, w, dy = normal(64, 96), normal(32, 96), normal(64, 32)

    def values(a):
        return mpsim.round(mpsim.quantize(np.ascontiguousarray(a), recipe).values, "bf16")

    assert np.array_equal(mpsim.linear(x, w, recipe=recipe, model="exact"), mpsim.gemm(values(x), values(w), model="exact", transpose_b=True))
    dx, dw, _ = mpsim.linear_backward(dy, x, w, recipe=recipe, gradient_recipe=recipe, model="exact")
    assert np.array_equal(dx, mpsim.gemm(values(dy), values(w.T), model="exact", transpose_b=True))
    assert np.array_equal(dw, mpsim.gemm(values(dy.T), values(x.T), model="exact", transpose_b=True))


def test_one_recipe_and_stochastic_models():
    x, w = normal(4, 32), normal(6, 32)
    plain = mpsim.linear(x, w, model="exact")
    assert np.array_equal(mpsim.linear(x, w, model="exact", recipe=(None, None)), plain)
    assert not np.array_equal(mpsim.linear(x, w, model="exact", recipe=("mxfp8", None)), plain)
    first = mpsim.linear(x, w, model="fma:bf16:round=sr", rng=mpsim.Random(1))
    again = mpsim.linear(x, w, model="fma:bf16:round=sr", rng=mpsim.Random(1))
    assert np.array_equal(first, again) and not np.array_equal(first, mpsim.linear(x, w, model="fma:bf16:round=sr", rng=mpsim.Random(2)))


# ---- convolutions ----

@pytest.mark.parametrize("x, w, how", [
    ((2, 4, 11), (6, 4, 3), {}), ((2, 4, 11), (6, 2, 3), {"stride": 2, "padding": 1, "groups": 2}), ((2, 3, 9, 8), (5, 3, 3, 2), {"padding": (1, 0)}),
    ((1, 4, 9, 10), (4, 1, 3, 3), {"stride": (2, 3), "padding": 2, "dilation": (1, 2), "groups": 4}), ((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), {"stride": 2}),
    ((1, 2, 7), (2, 2, 2), {"stride": 3})])
def test_conv(x, w, how):
    torch = pytest.importorskip("torch")
    x, w = normal(*x), normal(*w)
    b = normal(w.shape[0])
    a = [torch.from_numpy(z).double().requires_grad_() for z in (x, w, b)]
    want = getattr(torch.nn.functional, f"conv{x.ndim - 2}d")(*a, **how)
    near(mpsim.conv(x, w, b, **how), want.detach().numpy())
    dy = normal(*want.shape)
    want.backward(torch.from_numpy(dy).double())
    for got, z in zip(mpsim.conv_backward(dy, x, w, **how), a):
        near(got, z.grad.numpy(), 1e-5)


def test_the_order_of_a_convolution():
    """(tap, channel), under a model whose sums depend on it; the gradient of x in the order of dy."""
    x, w = normal(1, 3, 5), normal(2, 3, 3)
    y = mpsim.conv(x, w, model="fma:bf16")
    rows = np.stack([x[0, :, i:i + 3].T.ravel() for i in range(3)])
    assert np.array_equal(y[0].T, mpsim.gemm(rows, np.moveaxis(w, 1, -1).reshape(2, 9), model="fma:bf16", transpose_b=True))
    dy = normal(1, 2, 3)
    dx = mpsim.conv_backward(dy, x, w, model="fma:bf16").x
    row = np.concatenate([dy[0, :, p] for p in range(3)])[None]  # x[2] is read by tap 2 of y[0], tap 1 of y[1], tap 0 of y[2]
    assert np.array_equal(dx[0, :, 2][None], mpsim.gemm(row, np.concatenate([w[:, :, t] for t in (2, 1, 0)]), model="fma:bf16"))


# ---- attention ----

def whole(q, k, v, seen):
    s = np.einsum("...qd,...kd->...qk", q.astype(np.float64), k) / np.sqrt(q.shape[-1])
    p = np.exp(np.where(seen, s, -np.inf))
    return np.einsum("...qk,...kv->...qv", p / p.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("share", [1, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal, share):
    q, k, v, dy = normal(2, 4, 7, 6), normal(2, 4 // share, 7, 6), normal(2, 4 // share, 7, 5), normal(2, 4, 7, 5)
    seen = np.tril(np.ones((7, 7), bool)) if causal else np.ones((7, 7), bool)
    y, lse = mpsim.attention(q, k, v, causal=causal, tile=4)
    near(y, whole(q, k.repeat(share, 1), v.repeat(share, 1), seen))
    got = mpsim.attention_backward(dy, q, k, v, y, lse, causal=causal, tile=4)
    for x, back, f in ((q, got.q, lambda z: whole(z, k.repeat(share, 1), v.repeat(share, 1), seen)),
                       (k, got.k, lambda z: whole(q, z.repeat(share, 1), v.repeat(share, 1), seen)),
                       (v, got.v, lambda z: whole(q, k.repeat(share, 1), z.repeat(share, 1), seen))):
        near(back, slope(f, x, dy), 1e-4)
    masked = mpsim.attention(q, k, v, mask=seen, tile=4)
    assert np.array_equal(masked.y, y) and np.array_equal(masked.lse, lse)


def test_attention_in_formats():
    q, k, v, dy = (normal(3, 20, 16) for _ in range(4))
    y, lse = mpsim.attention(q, k, v, MODEL, format="bf16", causal=True, exp2=True, result="bf16")
    assert np.array_equal(y, mpsim.round(y, "bf16"))
    got = mpsim.attention_backward(dy, q, k, v, y, lse, MODEL, format="bf16", gradient="bf16", causal=True, exp2=True, scale_last=True,
                                   result="bf16")
    for back in got:
        assert np.array_equal(back, mpsim.round(back, "bf16"))
    alone = mpsim.attention_backward(dy[1], q[1], k[1], v[1], y[1], lse[1], MODEL, format="bf16", gradient="bf16", causal=True, exp2=True,
                                     scale_last=True, result="bf16")
    assert all(np.array_equal(a[1], b) for a, b in zip(got, alone))


def test_attention_on_tensors_of_torch():
    """Heads of a projection, where they lie, in their own dtype."""
    torch = pytest.importorskip("torch")
    from mpsim import _attention
    from mpsim._formats import find

    bf16 = find("bf16")
    qkv = torch.randn(2, 9, 3, 4, 8).bfloat16()  # batch, places, three, heads, size
    q, k, v = (qkv[:, :, i].transpose(1, 2) for i in range(3))
    y, lse = torch.zeros(2, 4, 9, 8), torch.zeros(2, 4, 9)
    how = _attention.Settings(MODEL, MODEL, 8, bf16, causal=True, tile=4, result=bf16)
    _attention.forward(y, lse, q, k, v, how, [bf16] * 3)
    want = mpsim.attention(*(x.float().numpy() for x in (q, k, v)), MODEL, format="bf16", causal=True, tile=4, result="bf16")
    assert np.array_equal(y.numpy(), want.y) and np.array_equal(lse.numpy(), want.lse)
    dy, grads = torch.randn(2, 4, 9, 8).bfloat16(), [torch.zeros(2, 4, 9, 8) for _ in range(3)]
    _attention.backward(*grads, dy, q, k, v, y, lse, how, [bf16] * 3, models=[MODEL] * 4, gradient=bf16, p=bf16, ds=bf16)
    other = mpsim.attention_backward(dy.float().numpy(), *(x.float().numpy() for x in (q, k, v)), *want, MODEL, format="bf16", gradient="bf16",
                                     causal=True, tile=4)
    assert all(np.array_equal(a.numpy(), b) for a, b in zip(grads, other))


# ---- what lies between ----

def norm64(x, w, b, kind):
    d = x - x.mean(-1, keepdims=True) if kind == "layer_norm" else x
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5) * w + b


@pytest.mark.parametrize("kind", ["layer_norm", "rms_norm"])
def test_norms(kind):
    x, w, b, dy = normal(3, 2, 10), normal(10), normal(10), normal(3, 2, 10)
    b = b if kind == "layer_norm" else 0 * b
    y = mpsim.layer_norm(x, w, b) if kind == "layer_norm" else mpsim.rms_norm(x, w)
    near(y, norm64(x.astype(np.float64), w, b, kind))
    dx, dw, db = getattr(mpsim, kind + "_backward")(dy, x, w)
    near(dx, slope(lambda z: norm64(z, w, b, kind), x, dy), 1e-4)
    near(dw, slope(lambda z: norm64(x.astype(np.float64), z, b, kind), w, dy), 1e-4)
    assert db is None if kind == "rms_norm" else np.allclose(db, dy.sum((0, 1)), atol=1e-5)
    low = mpsim.layer_norm(x, w, b, math="bf16")
    assert np.array_equal(low, mpsim.round(low, "bf16")) and not np.array_equal(low, mpsim.layer_norm(x, w, b, result="bf16"))


def test_activations():
    x, v, dy = normal(4, 9), normal(4, 9), normal(4, 9)
    erf = np.vectorize(__import__("math").erf)
    for how, f in (("none", lambda z: z / 2 * (1 + erf(z / np.sqrt(2)))),
                   ("tanh", lambda z: z / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))))):
        near(mpsim.gelu(x, how), f(x.astype(np.float64)))
        near(mpsim.gelu_backward(dy, x, how), slope(f, x, dy), 1e-4)

    def gated(g, values):
        return g / (1 + np.exp(-g)) * values

    near(mpsim.swiglu(x, v), gated(x.astype(np.float64), v))
    dgate, dvalue = mpsim.swiglu_backward(dy, x, v)
    near(dgate, slope(lambda z: gated(z, v), x, dy), 1e-4)
    near(dvalue, slope(lambda z: gated(x.astype(np.float64), z), v, dy), 1e-4)


@pytest.mark.parametrize("log", [False, True])
def test_softmax(log):
    x, dy = normal(3, 4, 6), normal(3, 4, 6)
    seen = np.arange(6) < np.arange(4)[:, None] + 3

    def f(z):
        e = np.exp(np.where(seen, z * 0.5, -np.inf))
        p = e / e.sum(-1, keepdims=True)
        return np.where(seen, np.log(np.where(seen, p, 1)) if log else p, 0)

    y = mpsim.softmax(x, scale=0.5, causal=True, log=log)
    near(np.where(seen, y, np.float32(0)), f(x.astype(np.float64)))
    near(mpsim.softmax_backward(dy, y, scale=0.5, causal=True, log=log), slope(f, x, dy), 1e-4)
    assert np.array_equal(mpsim.softmax(x, scale=0.5, mask=seen, log=log), y)


def test_losses_and_tables():
    x, labels = normal(2, 3, 5), np.array([[1, 4, -100], [0, 0, 2]])
    rows = np.log(np.exp(x.astype(np.float64)).sum(-1)) - np.take_along_axis(x, labels.clip(0)[..., None], -1)[..., 0]
    assert abs(mpsim.cross_entropy(x, labels) - rows[labels >= 0].mean()) < 1e-6
    p = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    want = (p - np.eye(5)[labels.clip(0)]) * (labels >= 0)[..., None] / 5 * 16
    near(mpsim.cross_entropy_backward(x, labels, scale=16), want)
    assert np.isnan(mpsim.cross_entropy(x, np.full((2, 3), -100)))
    index, dy = np.array([[1, 0], [1, 3]]), normal(2, 2, 5)
    assert np.array_equal(mpsim.embedding(x[0], index % 3), x[0][index % 3])
    want = np.zeros((4, 5), np.float32)
    np.add.at(want, index, dy)
    assert np.array_equal(mpsim.embedding_backward(dy, index, 4), want)
    want[1] = 0
    assert np.array_equal(mpsim.embedding_backward(dy, index, 4, ignored=1), want)


def test_rotary():
    cos, sin = mpsim.rotary(300, 16, 500.0)
    a = np.arange(300)[:, None] * 500.0 ** (-np.arange(8) / 8)
    near(cos, np.cos(a))
    near(sin, np.sin(a))


def test_kinds_of_arrays():
    torch = pytest.importorskip("torch")
    x, w = torch.randn(3, 8), torch.randn(4, 8).bfloat16()
    y = mpsim.linear(x, w, model=MODEL, format="bf16")
    assert isinstance(y, torch.Tensor) and torch.equal(y, torch.from_numpy(mpsim.linear(x.numpy(), w.float().numpy(), model=MODEL, format="bf16")))
    assert isinstance(mpsim.softmax(x), torch.Tensor)
    assert mpsim.softmax([[0.0, 0.0]]).tolist() == [[0.5, 0.5]]
    turned = np.asfortranarray(normal(5, 6))
    assert np.array_equal(mpsim.layer_norm(turned), mpsim.layer_norm(turned.copy()))


@pytest.mark.parametrize("call, said", [
    (lambda x: mpsim.linear(x, x.T), "linear: expected a weight of outputs x 4"),
    (lambda x: mpsim.linear(x, np.ones((3, 4)), np.ones(2)), "linear: bias: expected shape \\(3,\\)"),
    (lambda x: mpsim.linear(x, np.ones((3, 4)), model="nothing"), "accumulation model"),
    (lambda x: mpsim.linear(x, np.ones((3, 4)), recipe="nothing"), "block recipe"),
    (lambda x: mpsim.linear(x, np.ones((3, 4)), model="fma:bf16:round=sr"), "expected rng="),
    (lambda x: mpsim.linear_backward(x, x, np.ones((3, 4))), "linear_backward: dy: expected shape"),
    (lambda x: mpsim.attention(x, x, x[:1]), "attention: expected q"),
    (lambda x: mpsim.attention(x, x, x, mask=np.ones((3, 3), bool)), "mask: expected a shape"),
    (lambda x: mpsim.attention(x, x, x, tile=-1), "tile: expected a number of keys"),
    (lambda x: mpsim.attention(x, x, x, format=["bf16"] * 2), "one each for q, k and v"),
    (lambda x: mpsim.conv(x, x), "conv: expected x"),
    (lambda x: mpsim.conv(np.ones((1, 4, 5)), np.ones((2, 3, 2))), "conv: expected 1 x 3 channels"),
    (lambda x: mpsim.conv(np.ones((1, 3, 5)), np.ones((2, 3, 9))), "conv: expected a window"),
    (lambda x: mpsim.conv(np.ones((1, 3, 5)), np.ones((2, 3, 2)), stride=0), "stride: expected a number from 1"),
    (lambda x: mpsim.layer_norm(x, np.ones(3)), "layer_norm: parameters: expected shape"),
    (lambda x: mpsim.layer_norm(x, math="binary64"), "layer_norm: "),
    (lambda x: mpsim.gelu(x, "sometimes"), "approximate: expected none or tanh"),
    (lambda x: mpsim.softmax(x[0], causal=True), "expected \\(..., queries, keys\\)"),
    (lambda x: mpsim.softmax(x, mask=x), "mask: expected booleans"),
    (lambda x: mpsim.cross_entropy(x, np.ones(2)), "labels: expected whole numbers"),
    (lambda x: mpsim.cross_entropy(x, [3, 9]), "cross_entropy: expected indices from 0 to 3"),
    (lambda x: mpsim.embedding(x, [7]), "embedding: expected indices from 0 to 1"),
    (lambda x: mpsim.embedding_backward(x, [0, 1], 0), "entries: expected"),
    (lambda x: mpsim.rotary(4, 3), "rotary: expected a length and an even size"),
    (lambda x: mpsim.rotary(4, 2, 0.0), "rotary: base"),
])
def test_refused(call, said):
    with pytest.raises(InputError, match=said):
        call(np.ones((2, 4), np.float32))
