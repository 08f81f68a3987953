"""mpsim.torch_mm: the sums written out by mpsim.gemm and numpy, and the program's."""
import numpy as np
import pytest

import mpsim


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("depth,chunk", [(300, 512), (700, 512), (1500, 1024)])
def test_chunks(depth, chunk):
    a, b = normal(20, depth), normal(depth, 33, seed=2)
    want = np.zeros((20, 33), np.float32)
    for k in range(0, depth, chunk):
        part = mpsim.gemm(a[:, k:k + chunk], b[k:k + chunk], model="avx512-bf16-fp32", format="bf16")
        want = part if k == 0 else want + part
    found = mpsim.torch_mm(a, b, like="torch-mm:avx512", format="bf16")
    assert found.dtype == np.float32 and np.array_equal(found, mpsim.round(want, "bf16"))


def test_stacks():
    a, b = normal(2, 3, 9, 70), normal(3, 70, 17, seed=2)
    found = mpsim.torch_mm(a, b, like="torch-mm:avx512", format="fp16")
    for i in range(2):
        for j in range(3):
            assert np.array_equal(found[i, j], mpsim.torch_mm(a[i, j], b[j], like="torch-mm:avx512", format="fp16"))
    out = np.zeros_like(found)
    assert mpsim.torch_mm(a, b, like="torch-mm:avx512", format="fp16", out=out) is out and np.array_equal(out, found)


def test_torch():
    torch = pytest.importorskip("torch")
    a, b = (torch.from_numpy(x).to(torch.bfloat16) for x in (normal(64, 200), normal(200, 48, seed=2)))
    found = mpsim.torch_mm(a, b, like="torch-mm:avx512")
    assert torch.equal(found, torch.from_numpy(mpsim.torch_mm(a.float().numpy(), b.float().numpy(), like="torch-mm:avx512", format="bf16")))


def test_refused():
    a = normal(40, 300)
    for args, match in [((a, a), "m x k and k x n"), ((a[0], a), "found shape"), ((np.zeros((2, 4, 300)), np.zeros((3, 300, 4))), "broadcast")]:
        with pytest.raises(mpsim.InputError, match=match):
            mpsim.torch_mm(*args, like="torch-mm:avx512", format="bf16")
    for like, match in [("torch-m", "unknown"), ("torch-mm:avx512:what", "word"), ("torch-mm:amx", "depth is cut")]:
        with pytest.raises(mpsim.InputError, match=match):
            mpsim.torch_mm(a, a.T, like=like, format="bf16")
    with pytest.raises(mpsim.InputError, match="not known"):
        mpsim.torch_mm(a, a.T, like="torch-mm:avx512", format="e4m3")
