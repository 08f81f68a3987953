"""Sums and matrix products under accumulation models."""
import json

import numpy as np
import pytest
from conftest import peer, same_numbers

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
    (lambda: mpsim.dot(np.ones(2), np.ones(2), "hopper-wgmma-fp8-fp32"), "cannot take binary64 and binary64"),
])
def test_refusals(call, words):
    with pytest.raises(mpsim.InputError) as error:
        call()
    assert words in str(error.value)


def test_the_first_value_has_a_sign():
    assert np.signbit(mpsim.dot([], [], c=-0.0)) and not np.signbit(mpsim.dot([], []))
