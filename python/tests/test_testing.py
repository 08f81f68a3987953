"""mpsim.testing: results of NumPy, ml_dtypes and torch, judged; and faults that are made here."""
import numpy as np
import pytest

import mpsim
from mpsim import testing


def numbers(n=4096):
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(n) * 2.0 ** rng.integers(-12, 10, n)).astype(np.float32)
    x[:5] = np.inf, -np.inf, np.nan, 0, -0.0
    return x.reshape(64, -1)


def test_a_cast_of_numpy():
    x = numbers()
    j = testing.judge("cast", x=x, y=x.astype(np.float16))
    assert j.equal and j.row == "fp16" and j.results == x.size and not j.findings and "equal in all 4,096 results" in str(j)


def test_a_cast_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(numbers())
    assert testing.assert_bits("cast", like="e4m3@pytorch", x=x, y=x.to(torch.float8_e4m3fn)).equal
    assert testing.assert_bits("cast", like="bf16@pytorch", x=x, y=x.bfloat16()).equal
    cut = (x.view(torch.int32) & -65536).view(torch.float32)
    with pytest.raises(AssertionError, match="the mode is toward-zero, not nearest-even"):
        testing.assert_bits("cast", like="bf16", x=x, y=cut)


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numbers()
    assert "e5m2@ml-dtypes" in testing.judge("cast", x=x, y=x.astype(ml_dtypes.float8_e5m2)).same


def test_codes_are_bytes():
    x = numbers()
    assert testing.assert_bits("cast", like="e4m3", x=x, y=mpsim.encode(x, "e4m3")).array == "y"
    with pytest.raises(mpsim.InputError, match="which format|of which format"):
        testing.judge("cast", x=x, y=mpsim.encode(x, "e4m3"))


def test_a_quantiser():
    x = np.nan_to_num(numbers(), posinf=1, neginf=-1)
    q = mpsim.quantize(x, "mxfp8-floor")
    j = testing.judge("quantise", x=x, codes=q.codes, scales=q.scale_codes)
    assert j.equal and "mxfp8-floor" in j.same
    j = testing.judge("quantise", like="mxfp8-rceil", x=x, codes=q.codes, scales=q.scale_codes)
    assert not j.equal and j.found("scale-factor") and j.nearest == "mxfp8-floor" and j.nearest_differ == 0
    assert j.places and j.places[0].found == j.places[0].expected / 2


def test_a_product():
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((5, 64)).astype(np.float32), rng.standard_normal((64, 7)).astype(np.float32)
    d = mpsim.gemm(a, b, model="fma")
    assert testing.assert_bits("product", like="fma", a=a, b=b, d=d).results == 35
    with pytest.raises(AssertionError, match="zeros"):
        testing.assert_bits("product", like="fma", a=a, b=b, d=np.zeros_like(d))


def test_bad_arguments():
    x = numbers()
    for bad in (lambda: testing.judge("nothing", x=x), lambda: testing.judge("cast", x=x), lambda: testing.judge("cast", x=x, y=x[:3]),
                lambda: testing.judge("cast", like="e4m3:sideways", x=x, y=x), lambda: testing.judge("cast", x=x, y=x, z=x),
                lambda: testing.judge("cast", x=x, y="text")):
        with pytest.raises(mpsim.InputError):
            bad()
