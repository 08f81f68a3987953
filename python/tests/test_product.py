"""Products of stacks where they lie, beside mpsim.gemm of each matrix."""
import numpy as np
import pytest

import mpsim
from mpsim._blocks import recipe_of
from mpsim._formats import find
from mpsim._product import Counts, Entering, View, enter, multiply

BF16, E4M3 = find("bf16"), find("e4m3")


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("format,model", [("bf16", "hopper-bf16-fp32"), ("e4m3", "hopper-wgmma-fp8-fp32"), ("fp16", "fma"), ("binary32", "fma"), ("bf16", "exact")])
def test_a_stack(format, model):
    a, b, bias, d = normal(3, 5, 17, 40), normal(5, 40, 33, seed=2), normal(33, seed=3), np.zeros((3, 5, 17, 33), np.float32)
    f = find(format)
    multiply(View.of(d), (View.of(a), f), (View.of(b).t(), f), model, bias=View.row(bias), factor=0.5, format=BF16)
    for i in range(3):
        for j in range(5):
            one = mpsim.gemm(a[i, j], b[j], model=model, format=format) * np.float32(0.5) + bias
            assert np.array_equal(d[i, j], mpsim.round(one, "bf16"))


def test_views():
    a, b = normal(2, 20, 9), normal(24, 9, seed=2)
    d = np.zeros((2, 12, 10), np.float32)  # reversed, every second row, columns first
    multiply(View.of(d.transpose(0, 2, 1)[:, ::-1]), (View.of(a[:, ::2][:, ::-1]), BF16), (View.of(b[::2]), BF16), "fma")
    for i in range(2):
        assert np.array_equal(d[i].T, mpsim.gemm(a[i, ::2], b[::2], model="fma", format="bf16", transpose_b=True))
    with pytest.raises(mpsim.InputError, match="dimensions"):
        View.of(b[0])
    with pytest.raises(mpsim.InputError, match="floating-point"):
        View.of(np.zeros((2, 2), np.int32))


def test_one_scale():
    x, y, d = normal(40, 64), normal(33, 64, seed=2), np.zeros((40, 33), np.float32)
    recipe, _ = recipe_of("te-current")
    counts = Counts()
    a, b = enter(View.of(x), Entering("bf16", recipe), counts), enter(View.of(y), Entering("bf16", recipe))
    assert a.amax == np.abs(mpsim.round(x, "bf16")).max() and counts.nonzero == x.size and not counts.overflow
    multiply(View.of(d), a, b, "hopper-wgmma-fp8-fp32")
    p, q = (mpsim.quantize(mpsim.round(v, "bf16"), "te-current") for v in (x, y))
    sums = mpsim.gemm(mpsim.decode(p.codes, "e4m3"), mpsim.decode(q.codes, "e4m3"), model="hopper-wgmma-fp8-fp32", format="e4m3", transpose_b=True)
    assert np.array_equal(d, sums * (p.scales.ravel()[0] * q.scales.ravel()[0]))
    # the same operand in another product, turned
    z, e = normal(12, 40, seed=3), np.zeros((64, 12), np.float32)
    multiply(View.of(e), a.t(), (View.of(z), E4M3), "hopper-wgmma-fp8-fp32")
    sums = mpsim.gemm(mpsim.decode(p.codes, "e4m3"), z, model="hopper-wgmma-fp8-fp32", format="e4m3", transpose_a=True, transpose_b=True)
    assert np.array_equal(e, sums * p.scales.ravel()[0])


@pytest.mark.parametrize("name", ["mxfp8", "nvfp4", "te-block-1x128"])
def test_blocks_as_values(name):
    x, y, d = normal(20, 256), normal(33, 256, seed=2), np.zeros((20, 33), np.float32)
    how = Entering("bf16", recipe_of(name)[0])
    multiply(View.of(d), enter(View.of(x), how), enter(View.of(y), how), "hopper-bf16-fp32")
    p, q = (mpsim.quantize(mpsim.round(v, "bf16"), name).values for v in (x, y))
    assert np.array_equal(d, mpsim.gemm(p, q, model="hopper-bf16-fp32", format="bf16", transpose_b=True))


def test_refused():
    x, d = normal(8, 8), np.zeros((8, 8), np.float32)
    recipe, _ = recipe_of("nvfp4:sr")
    with pytest.raises(mpsim.InputError, match="rng"):
        Entering("bf16", recipe)
    with pytest.raises(mpsim.InputError, match="blocks"):
        Entering("bf16", recipe_of("mxfp8")[0], blocks="no")
    with pytest.raises(mpsim.InputError, match="multiply"):
        multiply(View.of(d[:5]), (View.of(x), BF16), (View.of(x), BF16), "fma")
    a = enter(View.of(x), Entering("bf16", recipe_of("mxfp8")[0], blocks="scaled"))
    with pytest.raises(mpsim.InputError, match="turned"):
        a.t()


def test_threads():
    a, b, found = normal(300, 200), normal(200, 250, seed=2), []
    try:
        for n in (1, 3, None):
            mpsim.set_threads(n)
            found.append(mpsim.gemm(a, b, model="hopper-bf16-fp32", format="bf16").tobytes())
    finally:
        mpsim.set_threads(None)
    assert len(set(found)) == 1
    for wrong in (0, -1, 2000, "2"):
        with pytest.raises(mpsim.InputError, match="threads"):
            mpsim.set_threads(wrong)
