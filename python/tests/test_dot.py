"""Sums and matrix products under accumulation models."""
import json

import numpy as np
import pytest
from conftest import counted, peer, same_numbers

import mpsim

RNG = np.random.default_rng(11)
A, B = (mpsim.round(RNG.standard_normal((9, 70)).astype(np.float32), "e4m3") for _ in range(2))


def test_fma_is_a_loop():
    """fma in binary32, where products of e4m3 numbers are exact."""
    s = np.float32(0.5)
    for x, y in zip(A[0], B[0]):
        s = np.float32(s + x * y)
    assert mpsim.dot(A[0], B[0], "fma", c=0.5) == s
    assert mpsim.dot(A[0], B[0], "exact") == np.float32((A[0].astype(float) * B[0]).sum())


@pytest.mark.parametrize("model", ["exact", "fma", "fma:bf16", "hopper-wgmma-fp8-fp32", "hopper-mma-fp8-fp32", "pairwise"])
def test_gemm_is_dots(model):
    d = mpsim.gemm(A, B.T, model=model, format="e4m3")
    assert d.shape == (9, 9) and d.dtype == np.float32
    dots = [[mpsim.dot(a, b, model, format="e4m3") for b in B] for a in A]
    assert np.array_equal(d, np.array(dots, np.float32))
    assert np.array_equal(mpsim.gemm(A, B, model=model, format="e4m3", transpose_b=True), d)
    assert np.array_equal(mpsim.gemm(A.T, B.T, model=model, format="e4m3", transpose_a=True), d)
    c = RNG.standard_normal((9, 9)).astype(np.float32)
    first = mpsim.gemm(A, B.T, c, model, format="e4m3")
    assert first[2, 3] == mpsim.dot(A[2], B[3], model, c=float(c[2, 3]), format="e4m3")


def test_as_the_program_adds(program, tmp_path):
    np.save(tmp_path / "a.npy", A[0].astype(np.float32))
    np.save(tmp_path / "b.npy", B[0].astype(np.float32))
    out = json.loads(program("dot", "--json", "-f", "e4m3", "-M", "hopper-wgmma-fp8-fp32", tmp_path / "a.npy",
                             tmp_path / "b.npy"))
    assert f"{mpsim.dot(A[0], B[0], 'hopper-wgmma-fp8-fp32', format='e4m3')!r}" in json.dumps(out)


def test_formats_of_dtypes():
    ml_dtypes, torch = peer("ml_dtypes"), peer("torch")
    wanted = mpsim.gemm(A, B.T, model="hopper-wgmma-fp8-fp32", format="e4m3")
    theirs = [x.astype(ml_dtypes.float8_e4m3fn) for x in (A, B)]
    assert np.array_equal(mpsim.gemm(theirs[0], theirs[1].T, model="hopper-wgmma-fp8-fp32"), wanted)
    tensors = [torch.from_numpy(x).to(torch.float8_e4m3fn) for x in (A, B)]
    d = mpsim.gemm(tensors[0], tensors[1], model="hopper-wgmma-fp8-fp32", transpose_b=True)
    assert isinstance(d, torch.Tensor) and np.array_equal(d.numpy(), wanted)
    halves = A.astype(np.float16)
    assert same_numbers(mpsim.gemm(halves, halves.T, model="exact"), mpsim.gemm(A, A.T, model="exact"))


def in_parts(a, b, scales, chain, parts, out):
    """torch._scaled_mm by its description: chains of the tensor core by `gemm`, the rest by NumPy."""
    depth = a.shape[1]
    each = -(-(-(-depth // 128)) // parts) * 128
    total = np.float32(0)
    for first in range(0, parts * each, each):
        part = np.zeros((len(a), len(b)), np.float32)
        for k in range(first, min(first + each, depth), chain or each):
            end = min(k + (chain or each), first + each, depth)
            part = part + mpsim.gemm(a[:, k:end], b[:, k:end], model="hopper-wgmma-fp8-fp32", format="e4m3", transpose_b=True)
        total = part if first == 0 else total + part
    alpha = np.float32(scales[0]) * np.float32(scales[1])
    return mpsim.round(total * alpha, out)


@pytest.mark.parametrize("depth", [70, 300, 1000])
@pytest.mark.parametrize("words, chain, parts, out", [
    ("fast:S=1", 0, 1, "bf16"), ("slow:S=1:out=fp16", 128, 1, "fp16"), ("fast:S=3:out=binary32", 0, 3, "binary32"),
    ("Hopper:S=2:contiguous", 128, 2, "bf16")])
def test_scaled_mm_is_chains_and_roundings(depth, words, chain, parts, out):
    a, b = (mpsim.round(RNG.standard_normal((n, depth)).astype(np.float32), "e4m3") for n in (5, 7))
    scales = np.float32(0.37), np.float32(0.0123)
    like = "torch-scaled-mm:" + words
    d = mpsim.scaled_mm(a, b.T, *scales, like=like, format="e4m3")
    assert d.dtype == np.float32 and np.array_equal(d, in_parts(a, b, scales, chain, parts, out))
    assert np.array_equal(mpsim.scaled_mm(a.T, b, *map(float, scales), like=like, format="e4m3", transpose_a=True,
                                          transpose_b=True), d)


def test_scaled_mm_of_torch():
    """Operands as torch._scaled_mm takes them; and a scale of the result, zero too."""
    torch = peer("torch")
    a, b = (torch.from_numpy(x).to(torch.float8_e4m3fn) for x in (A, B))
    scale = torch.tensor(0.5)
    like = "torch-scaled-mm:fast:S=1:out=e4m3"
    d = mpsim.scaled_mm(a, b.t(), scale, scale, like=like)
    assert isinstance(d, torch.Tensor) and d.shape == (9, 9)
    y = mpsim.scaled_mm(A, B.T, 0.25, like="torch-scaled-mm:fast:S=1:out=binary32", format="e4m3")
    assert np.array_equal(d.numpy(), mpsim.round(y, "e4m3"))
    twice, none = (mpsim.scaled_mm(a, b.t(), scale, scale, like=like, scale_result=s).numpy() for s in (2.0, 0.0))
    assert np.array_equal(twice, mpsim.round(2 * y, "e4m3")) and not none.any()


def test_scaled_mm_as_mmaemu():
    mmaemu, torch = peer("mmaemu"), peer("torch")
    done = 0
    for arch, fast, parts, order in (("hopper", True, 1, "contiguous"), ("hopper", False, 3, "contiguous"),
                                     ("ada", True, 2, "serial"), ("ada", False, 4, "pairwise")):
        a, b = (torch.from_numpy(RNG.standard_normal((n, 640)).astype(np.float32)).to(torch.float8_e4m3fn)
                for n in (32, 48))
        theirs = mmaemu.scaled_mm(a, b.t(), torch.tensor(0.7), torch.tensor(0.3), out_dtype=torch.bfloat16,
                                  use_fast_accum=fast, profile=arch, splitk=1 if parts == 1 else (parts, order))
        words = f"torch-scaled-mm:{arch}:{'fast' if fast else 'slow'}:S={parts}:{order}"
        ours = mpsim.scaled_mm(a, b.t(), 0.7, 0.3, like=words)
        assert np.array_equal(ours.numpy(), theirs.float().numpy())
        done += ours.numel()
    counted("mmaemu", "results of scaled_mm", done)


def test_random_bits():
    sr = "fma:bf16:round=sr"
    a, b, c = (mpsim.gemm(A, B.T, model=sr, seed=s) for s in (1, 1, 2))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


def test_empty():
    assert mpsim.gemm(np.zeros((2, 0)), np.zeros((0, 3))).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert mpsim.dot([], [], c=3.0) == 3.0


@pytest.mark.parametrize("call, words", [
    (lambda: mpsim.dot([1.0], [1.0], "hoper-wgmma-fp8-fp32"), "did you mean 'hopper-wgmma-fp8-fp32'?"),
    (lambda: mpsim.dot([1.0], [1.0], "fma:chunk=x"), "a change is none"),
    (lambda: mpsim.dot([1.0], [1.0, 2.0]), "one length, found shapes (1,) and (2,)"),
    (lambda: mpsim.gemm(A, B), "expected matrices of m x k and k x n, found 9 x 70 and 9 x 70"),
    (lambda: mpsim.gemm(A, B.T, np.zeros((2, 2))), "expected c of 9 x 9, found shape (2, 2)"),
    (lambda: mpsim.gemm(A[0], B), "expected two matrices"),
    (lambda: mpsim.dot([1.0], [1.0], ["fma"]), "found list"),
    (lambda: mpsim.dot([1.0], [1.0], "fma\0"), "NUL character"),
    (lambda: mpsim.dot([1.0], [1.0], c="1"), "c: expected a number, found str"),
    (lambda: mpsim.dot([1.0], [1.0], "fma:fp16:round=sr", seed=-1), "seed: expected an integer"),
    (lambda: mpsim.scaled_mm(A, B.T, like="torch-scaled-mm", format="e4m3"), "expected S=N"),
    (lambda: mpsim.scaled_mm(A, B.T, like="torch-scaled:S=1", format="e4m3"), "did you mean 'torch-scaled-mm'?"),
    (lambda: mpsim.scaled_mm(A, B.T, like="torch-scaled-mm:S=0", format="e4m3"), "the words are hopper"),
    (lambda: mpsim.scaled_mm(A, B.T, like=1, format="e4m3"), "the name of a product, found int"),
    (lambda: mpsim.scaled_mm(A, B, like="torch-scaled-mm:S=1", format="e4m3"), "scaled_mm: expected matrices of m x k"),
    (lambda: mpsim.scaled_mm(A, B.T, like="torch-scaled-mm:S=1"), "cannot take binary32 and binary32; format='e4m3' rounds both"),
    (lambda: mpsim.scaled_mm(A, B.T, "1", like="torch-scaled-mm:S=1", format="e4m3"), "scale_a: expected a number"),
    (lambda: mpsim.scaled_mm(A, B.T, like="torch-scaled-mm:S=1", format="e4m3", scale_result=2), "in e4m3 or e5m2, found bf16"),
    (lambda: mpsim.dot(np.ones(2), np.ones(2), "hopper-wgmma-fp8-fp32"), "multiplies e4m3, e5m2, found binary64 and binary64; format='e4m3' rounds"),
    (lambda: mpsim.gemm(A, B.T, model="hopper-wgmma-fp8-fp32"), "gemm: model 'hopper-wgmma-fp8-fp32' multiplies e4m3, e5m2, found binary32"),
    (lambda: mpsim.gemm(A, B.T, model="hopper-wgmma-fp8-fp32", format="fp16"), "found fp16 and fp16; format='e4m3' rounds both to nearest even"),
    (lambda: mpsim.dot(A[0], B[0], "hopper-wgmma-fp8-fp32:F=20"), "found binary32 and binary32"),
    (lambda: mpsim.gemm(A, B.T, model="hopper-bf16-fp32"), "mpsim.round(x, 'bf16', MODE)"),
])
def test_refusals(call, words):
    with pytest.raises(mpsim.InputError) as error:
        call()
    assert words in str(error.value)


def test_rows_take_their_formats_alone():
    """Whatever a row of the table multiplies; operands of e4m3 in binary32 are refused by all that do not have binary32."""
    for name in mpsim.models:
        def call(format):
            return mpsim.gemm(A[:2], B[:2].T, model=name, format=format)
        try:
            call(None)
        except mpsim.InputError as error:
            first = str(error).split("format='")[1].split("'")[0]
            assert call(first).shape == (2, 2), name


def test_the_first_value_has_a_sign():
    assert np.signbit(mpsim.dot([], [], c=-0.0)) and not np.signbit(mpsim.dot([], []))
