"""torch.ops.mpsim: the bits of mpsim.round, quantize and gemm, gradients, shapes without numbers, compiled and exported models."""
import pytest

import mpsim

torch = pytest.importorskip("torch")
operators = pytest.importorskip("mpsim.operators")
opcheck = pytest.importorskip("torch.library").__dict__.get("opcheck")
ops = torch.ops.mpsim
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32)


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def leaf(*shape, seed=1, dtype=torch.float32):
    return randn(*shape, seed=seed).to(dtype).requires_grad_()


CHECKED = [
    (ops.cast.default, lambda: (leaf(5, 64), "e4m3"), {}),
    (ops.cast.default, lambda: (leaf(5, 64, dtype=torch.bfloat16), "e4m3", "sr", 2.0), {"seed": 3}),
    (ops.quantize.default, lambda: (leaf(5, 64), "mxfp8"), {}),
    (ops.quantize.default, lambda: (leaf(3, 5, 64), "nvfp4", "columns"), {}),
    (ops.matmul.default, lambda: (leaf(5, 64), leaf(64, 8, seed=2), "hopper-wgmma-fp8-fp32"), {"format": "e4m3", "grad_format": "e5m2"}),
    (ops.matmul.default, lambda: (leaf(2, 3, 5, 16), leaf(3, 16, 4, seed=2), "fma"), {}),
    (ops.matmul.default, lambda: (leaf(2, 5, 16), leaf(16, 4, seed=2), "exact"), {"format": "bf16", "out_format": "bf16"}),
]


@pytest.mark.skipif(opcheck is None, reason="torch.library.opcheck is of torch 2.4")
@pytest.mark.parametrize("case", range(len(CHECKED)))
def test_opcheck(case):
    op, arguments, keywords = CHECKED[case]
    opcheck(op, arguments(), keywords)


def test_dtypes_of_casts():
    for dtype in DTYPES:
        for format in ("e4m3", "bf16", "fp16", "binary32", "binary64", "tf32"):
            x = (randn(4, 4) * 3).to(dtype)
            y = mpsim.round(x, format)
            assert operators._cast_dtype(x, format) is y.dtype
            assert torch.equal(ops.cast(x, format), y)


@pytest.mark.parametrize("axis", ("rows", "columns"))
def test_shapes_of_recipes(axis):
    """Of every recipe the fake results have the shapes, strides and dtypes of those with numbers."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    for recipe in mpsim.recipes:
        for shape in ((5, 64), (3, 5, 64), (7, 100)):
            x = randn(*shape)
            made = ops.quantize(x, recipe, axis, seed=1)
            with FakeTensorMode() as mode:
                fake = ops.quantize(mode.from_tensor(x), recipe, axis, seed=1)
            for a, b in zip(made, fake):
                assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride()), (recipe, shape)
            q = mpsim.quantize(x, recipe, axis=axis, seed=1)
            assert torch.equal(made[0], q.values) and torch.equal(made[1], q.codes) and torch.equal(made[2], q.scales)


def test_gradients():
    """Straight through; those of products are products."""
    x = leaf(6, 32)
    (ops.cast(x, "e4m3", scale=4.0) * 3).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 12.0))
    x.grad = None
    (ops.quantize(x, "mxfp8")[0] * 3).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 3.0))
    a, b, dy = leaf(6, 32), leaf(32, 8, seed=2), randn(6, 8, seed=3)
    model = "hopper-wgmma-fp8-fp32"
    ops.matmul(a, b, model, format="e4m3", grad_format="e5m2").backward(dy)
    e4m3, e5m2 = (lambda t, f=f: mpsim.round(t.detach(), f) for f in ("e4m3", "e5m2"))
    with torch.no_grad():
        da = ops.matmul(e5m2(dy), e4m3(b).t(), model, format="e5m2", format_b="e4m3")
        db = ops.matmul(e4m3(a).t(), e5m2(dy), model, format="e4m3", format_b="e5m2")
    assert torch.equal(a.grad, da) and torch.equal(b.grad, db)
    assert torch.equal(ops.matmul(a, b, model, format="e4m3").detach(), mpsim.gemm(a.detach(), b.detach(), model=model, format="e4m3"))


def test_gradients_by_another_model():
    a, b, dy = leaf(2, 6, 40), leaf(40, 8, seed=2), randn(2, 6, 8, seed=3)
    ops.matmul(a, b, "hopper-fp16-fp32", format="fp16", grad_model="exact").backward(dy)
    a2, dy2 = a.detach().flatten(0, -2), dy.flatten(0, -2)
    assert torch.equal(b.grad, mpsim.gemm(a2.t().contiguous(), dy2, model="exact", format="fp16"))  # one product over all rows
    assert torch.equal(a.grad.flatten(0, -2), mpsim.gemm(dy2, b.detach().t().contiguous(), model="exact", format="fp16"))


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(randn(8, 64, seed=4))

    def forward(self, x):
        y = ops.matmul(ops.cast(x, "e4m3"), self.w.t(), "hopper-wgmma-fp8-fp32", format="e4m3", grad_format="e5m2")
        return torch.nn.functional.gelu(ops.quantize(y, "mxfp8")[0])


def test_compiled_and_exported():
    """One graph without a break, with the bits of eager, forward and backward; an exported model with a batch of any size."""
    def grads(f, m):
        x = leaf(6, 64)
        y = f(x)
        y.square().sum().backward()
        made = y.detach(), x.grad, m.w.grad
        m.w.grad = None
        return made

    m = Layer()
    for a, b in zip(grads(m, m), grads(torch.compile(m, fullgraph=True, backend="aot_eager"), m)):
        assert torch.equal(a, b)
    exported = torch.export.export(m, (randn(6, 64),), dynamic_shapes={"x": {0: torch.export.Dim("n", min=2, max=64)}})
    assert torch.equal(exported.module()(randn(9, 64)), m(randn(9, 64)))


def test_refused():
    x = randn(4, 16)
    with pytest.raises(mpsim.InputError, match=r"\(\.\.\., m, k\) and \(\.\.\., k, n\)"):
        ops.matmul(x, x, "fma")
    with pytest.raises(mpsim.InputError, match="multiplies"):
        ops.matmul(x, x.t(), "hopper-bf16-fp32")
    with pytest.raises(mpsim.InputError, match="floating-point"):
        ops.matmul(x.int(), x.t().int(), "fma")
