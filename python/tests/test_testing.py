"""mpsim.testing: results of NumPy, ml_dtypes and torch, judged; and faults that are made here."""
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import SOURCES

import mpsim
from mpsim import _inputs, testing


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
    turned = testing.judge("quantise", x=x, codes=q.codes, scales=np.ascontiguousarray(q.scale_codes.reshape(64, -1).T))
    assert turned.equal and str(turned).endswith("\n  the order of the scales is that of the transposed grid")
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


def test_inputs_by_row_and_by_kind():
    made = testing.inputs("e4m3")
    assert made.kind == "cast" and list(made) == ["x"] and made["x"].dtype == np.float32 and made["x"].size % 2 == 1
    assert len(made.classes) >= 180 and len(made.rows) >= 1626 and f"{len(made.classes)} classes" in repr(made)
    same = next(rows for rows in made.classes if "e4m3" in rows)
    assert "e4m3@ocp" in same and "e4m3@saturate" not in same
    assert testing.inputs("quantise", like="mxfp8")["x"].shape == testing.inputs("mxfp8")["x"].shape
    assert testing.inputs("mxfp8", dtype="fp16")["x"].dtype == np.float16
    for bad in (lambda: testing.inputs("nothing"), lambda: testing.inputs("cast", like="mxfp8"), lambda: testing.inputs("e4m3", array="list"),
                lambda: testing.inputs("mxfp8", dtype="float64"), lambda: testing.inputs("e4m3", device="cuda")):
        with pytest.raises(mpsim.InputError):
            bad()


def ml_dtypes_bfloat16():
    return pytest.importorskip("ml_dtypes").bfloat16


def test_kernels_of_numpy():
    def half(x):
        """NumPy keeps the payload of a NaN, and leaves it signalling."""
        nan = np.copysign(np.float16(np.nan), np.where(np.signbit(x), -1, 1).astype(np.float16))
        with np.errstate(over="ignore"):
            return np.where(np.isnan(x), nan, x.astype(np.float16))

    assert testing.assert_bits(half, like="fp16").results > 7000
    with pytest.raises(AssertionError, match="the mode is toward-zero, not nearest-even"):
        testing.assert_bits(lambda x: mpsim.encode(x, "bf16", mode="toward-zero").view(ml_dtypes_bfloat16()), like="bf16")

    def quantise(x, recipe="mxfp8-floor"):
        q = mpsim.quantize(x, recipe)
        return q.codes, q.scale_codes

    assert testing.assert_bits(quantise, like="mxfp8-floor").equal
    with pytest.raises(AssertionError, match="mxfp8-floor gives all results"):
        testing.assert_bits(quantise, like="mxfp8-rceil")
    assert testing.assert_bits(lambda x: {"y": mpsim.quantize(x, "mxfp4").values}, like="mxfp4").array == "y"
    assert testing.assert_bits(lambda a, b: mpsim.gemm(a, b, model="fma"), like="fma").results == 53 * 53
    with pytest.raises(mpsim.InputError, match="expected a kernel that returns y"):
        testing.assert_bits(lambda x: (x, x), like="fp16")


def test_kernels_of_torch():
    torch = pytest.importorskip("torch")
    assert testing.assert_bits(lambda x: x.to(torch.float8_e5m2), like="e5m2@pytorch", array="torch").equal
    assert testing.inputs("hopper-bf16-fp32", array="torch")["a"].dtype == torch.bfloat16
    assert testing.inputs("e4m3", array="torch", dtype=torch.float16)["x"].dtype == torch.float16


def test_invariance():
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((12, 32)).astype(np.float32), rng.standard_normal((32, 8)).astype(np.float32)

    def rows_alone(a, b):
        return np.stack([mpsim.gemm(np.ascontiguousarray(row[None]), b, model="fma")[0] for row in a])

    def split(a, b):
        """Batches of eight and more are added in two parts, as a kernel for large batches might."""
        if len(a) < 8:
            return rows_alone(a, b)
        return rows_alone(a[:, :16], b[:16]) + rows_alone(a[:, 16:], b[16:])

    sound, wrong = testing.invariance(rows_alone, a, b), testing.invariance(split, a, b)
    assert sound.invariant and str(sound).startswith("invariant\n  batch") and sound.of("batch").settings == 7
    assert not wrong.invariant and wrong.of("batch").first == "a batch of 8" and len(wrong.of("batch").rows) == 12
    assert not wrong.of("position").rows and not wrong.of("stride").rows and "first with a batch of 8" in str(wrong)

    def first_row(a):
        return np.concatenate([a[:1] * np.float32(1.5), a[1:]])

    assert testing.invariance(first_row, a).of("position").rows

    state = [1]
    change = testing.invariance(lambda a: a + np.float32(state[0] == 4), a, set_threads=lambda n: state.__setitem__(0, n)).of("threads")
    assert len(change.rows) == 12 and change.first == "4 threads beside 1"
    with pytest.raises(mpsim.InputError):
        testing.invariance(rows_alone, a[0], b)


def test_invariance_of_torch():
    torch = pytest.importorskip("torch")
    a = torch.from_numpy(numbers().copy()[:, :16]).nan_to_num(0, 0, 0)
    assert testing.invariance(lambda a: a * 2, a).invariant
    report = testing.invariance(torch.nn.functional.linear, a, a[:8])
    assert [change.what for change in report.changes] == ["batch", "position", "stride", "alignment", "threads"]


def test_tensors_of_a_device(monkeypatch):
    """A device is played by a class of tensors that NumPy cannot read: kernels get such tensors, judges get copies."""
    torch = pytest.importorskip("torch")

    class There(torch.Tensor):
        is_cpu = False

        def cpu(self):
            copied.append(tuple(self.shape))
            return self.as_subclass(torch.Tensor).clone()

        def numpy(self, *args, **how):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    copied, called = [], []
    monkeypatch.setattr(_inputs, "placed", lambda x, device: x.as_subclass(There) if device == "cuda" else x)

    def kernel(x):
        assert type(x) is There
        called.append(x.shape)
        return x.bfloat16()

    assert testing.assert_bits(kernel, like="bf16@pytorch", device="cuda").equal and called
    with pytest.raises(AssertionError, match="not those of bf16@pytorch"):
        testing.assert_bits(lambda x: (x.view(torch.int32) & -65536).view(torch.float32), like="bf16@pytorch", device="cuda")
    a, b = testing.inputs("hopper-bf16-fp32", device="cuda").values()
    d = torch.from_numpy(mpsim.gemm(a.cpu(), b.cpu(), model="hopper-bf16-fp32").float().numpy()).as_subclass(There)
    assert testing.judge("product", like="hopper-bf16-fp32", a=a, b=b, d=d).equal and testing.assert_bits("product", like="hopper-bf16-fp32", a=a, b=b, d=d)
    copied.clear()
    x = torch.randn(4, 8).as_subclass(There)
    found = testing.invariance(lambda a: a * 2, x)
    assert found.invariant and copied and [change.what for change in found.changes] == ["batch", "position", "stride", "alignment"]
    assert [change.what for change in testing.invariance(lambda a: a * 2, x, set_threads=lambda n: None).changes][-1] == "threads"


def test_tolerances():
    x = testing.inputs("e4m3")["x"]
    x, t = x[np.abs(x) <= 448].astype(np.float64), testing.tolerance("e4m3")
    share = np.abs(mpsim.round(x, "e4m3") - x) / (t.rtol * np.abs(x) + t.atol)
    assert 0.5 <= share.max() <= 1 and "half the distance" in t.reason and t.kind == "cast"
    assert testing.tolerance("mxfp8-floor").scales > 64 and "448" in str(testing.tolerance("mxfp8-floor"))
    a = np.random.default_rng(3).standard_normal((4, 1024)).astype(np.float32)
    d, t = mpsim.gemm(a, a.T.copy(), model="fma"), testing.tolerance("fma", depth=1024)
    wide = a.astype(np.float64)
    assert (np.abs(d - wide @ wide.T) <= t.rtol * (np.abs(wide) @ np.abs(wide.T)) + t.atol).all() and t.of == "sum |a b|"
    for bad in (lambda: testing.tolerance("fma"), lambda: testing.tolerance("nothing"), lambda: testing.tolerance("cdna3-bf16-fp32", depth=8),
                lambda: testing.tolerance("fma", depth=-1)):
        with pytest.raises(mpsim.InputError):
            bad()


def test_the_example_of_pytest(tmp_path):
    page = os.path.join(SOURCES, "doc", "howto", "test-a-kernel.md") if SOURCES else ""
    if not os.path.exists(page):
        pytest.skip("MPSIM_SRCDIR names no checkout")
    with open(page, encoding="utf-8") as file:
        program, screen = file.read().split("`test_kernel.py`:\n")[1].split("What pytest prints:\n")
    (tmp_path / "test_kernel.py").write_text("".join(line[4:] + "\n" for line in program.splitlines()), encoding="utf-8")
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py"], cwd=tmp_path, capture_output=True,
                         text=True, check=False)
    lines = [line[4:] for line in screen.split("\n\n")[0].strip("\n").splitlines()]
    assert ran.returncode == 1 and len(lines) == 5 and all(line in ran.stdout.splitlines() for line in lines), ran.stdout


def test_attention_of_torch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, heads, 48, 16) for heads in (4, 2, 2))
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    j = testing.judge("attention", q=q, k=k, v=v, o=o)
    assert j.equal or (":causal" in j.row and [f.cause for f in j.findings] == ["rounding"])
    k, v = (x.repeat(1, 2, 1, 1) for x in (k, v))  # head h has the keys of head h modulo 2
    o = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert testing.judge("attention", like="eager", q=q, k=k[:, :2], v=v[:, :2], o=o).found("heads")


def attention(q, k, v, scale):
    s = q @ k.T * np.float32(scale)
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True) @ v, (s.max(axis=1) + np.log(p.sum(axis=1))).astype(np.float32)


def test_a_kernel_of_attention():
    made = testing.inputs("eager")
    assert made.kind == "attention" and list(made) == ["q", "k", "v"] and len(made.classes) > 60
    with pytest.raises(AssertionError, match="the scale is left out"):
        testing.assert_bits(lambda q, k, v: attention(q, k, v, 1), like="eager")
    o, lse = attention(*made.values(), made["q"].shape[1]**-0.5)
    assert testing.judge("attention", like="eager", **made, o=o, lse=lse).found("rounding")
    assert testing.judge("attention", like="eager", **made, lse=lse / np.float32(np.log(2))).found("lse")


def test_a_scaled_product_of_torch():
    torch = pytest.importorskip("torch")
    torch.manual_seed(2)
    a, b = (torch.randn(n, 64).to(torch.float8_e4m3fn) for n in (32, 48))
    by_a, by_b = torch.tensor(0.3), torch.tensor(1.7)
    d = torch._scaled_mm(a, b.t(), scale_a=by_a, scale_b=by_b, out_dtype=torch.bfloat16)
    j = testing.judge("scaled-product", a=a, b=b, scale_a=by_a, scale_b=by_b, d=d)
    assert j.equal or j.found("sum-order")
    d = torch._scaled_mm(a, b.t(), scale_a=by_a, scale_b=torch.tensor(1.0), out_dtype=torch.bfloat16)
    assert testing.judge("scaled-product", like="blocks", a=a, b=b, scale_a=by_a, scale_b=by_b, d=d).found("scale-missing")


def test_arithmetic():
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(4096).astype(np.float32) for _ in range(3))
    assert testing.judge("arith", a=a, b=b, y=a - b).row == "sub"
    j = testing.judge("arith", like="fma", a=a, b=b, c=c, y=a * b + c)
    assert j.nearest == "fma:separate" and j.nearest_differ == 0 and j.findings[0].cause == "double-rounding"
    h = a.astype(np.float16)
    assert testing.assert_bits("arith", like="sqrt", a=np.abs(h), y=np.sqrt(np.abs(h))).equal
