"""Random words that move on, and results that go where they are wanted."""
import copy
import pickle
import threading

import numpy as np
import pytest
from conftest import peer

import mpsim


def added(times, **words):
    """1 and many small numbers, each sum rounded stochastically to bf16."""
    s = np.ones(400, np.float32)
    for _ in range(times):
        s = mpsim.round(s + np.float32(2.0**-10), "bf16", "stochastic-a", **words)
    return s


def test_a_generator_moves_on():
    """1,000 small additions are near their sum; with one address for all of them each element goes up always or never."""
    moving, same = added(1000, rng=mpsim.Random(3)), added(1000, seed=3)
    assert moving.mean() == pytest.approx(1 + 1000 / 1024, rel=0.02) and moving.std() < 0.1 < 0.5 < same.std()


def test_its_words_are_those_of_addresses():
    x = np.full(100, 1.03, np.float32)
    rng = mpsim.Random(5, stream=2, index=7)
    for call, n in ((lambda **words: mpsim.round(x, "e4m3", "sr", **words), 100), (lambda **words: mpsim.encode(x[:30], "e4m3", "sr", **words), 30),
                    (lambda **words: mpsim.quantize(x, "nvfp4:sr", **words).codes, 100),
                    (lambda **words: mpsim.dot(x, x, "fma:bf16:round=sr", **words), 2**32),
                    (lambda **words: mpsim.gemm(x[:6].reshape(2, 3), x[:3].reshape(3, 1), model="fma:bf16:round=sr", **words), 2 * 2**32)):
        index = rng.index
        assert np.array_equal(call(rng=rng), call(seed=5, stream=2, index=index)) and rng.index == index + n
    index = rng.index
    mpsim.round(x, "e4m3", rng=rng)  # to nearest: no words
    mpsim.round(x[:0], "e4m3", "sr", rng=rng)
    assert rng.index == index
    for other in (pickle.loads(pickle.dumps(rng)), copy.deepcopy(rng)):
        assert repr(other) == repr(rng) and np.array_equal(mpsim.round(x, "e4m3", "sr", rng=other), mpsim.round(x, "e4m3", "sr", rng=copy.copy(rng)))
    last = mpsim.Random(1, 2, 2**64 - 50)
    mpsim.round(x, "e4m3", "sr", rng=last)
    assert (last.stream, last.index) == (2**32 + 2, 100)


def test_threads_share_a_generator():
    rng, x = mpsim.Random(1), np.ones(3, np.float32)
    threads = [threading.Thread(target=lambda: [mpsim.round(x, "e4m3", "sr", rng=rng) for _ in range(300)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert rng.index == 3 * 300 * 4


@pytest.mark.parametrize("call", [
    lambda **words: mpsim.round(1.03, "e4m3", "stochastic-a", **words), lambda **words: mpsim.encode([1.03], "e4m3", "sr:4", **words),
    lambda **words: mpsim.quantize([1.0], "nvfp4:sr", **words), lambda **words: mpsim.dot([1.0], [1.0], "fma:fp16:round=sr", **words),
    lambda **words: mpsim.gemm([[1.0]], [[1.0]], model="fma:fp16:round=sr", **words)])
def test_words_are_asked_for(call):
    """No silent repetition of the same words at every call."""
    for words, found in (({}, r"expected rng=mpsim.Random\(seed\)"), ({"rng": 3}, "expected an mpsim.Random, found int"),
                         ({"rng": mpsim.Random(1), "seed": 1}, "no seed, stream or index beside it")):
        with pytest.raises(mpsim.InputError, match=found):
            call(**words)
    call(index=0)


# ---- out=

def test_results_go_where_they_are_wanted():
    x = np.float32([[0.3, -1.9], [300, 1e-4]])
    for call, y in ((lambda a, **to: mpsim.round(a, "e4m3", **to), np.empty_like(x)),
                    (lambda a, **to: mpsim.round(a, "e4m3", "sr", seed=1, **to), np.empty_like(x)),
                    (lambda a, **to: mpsim.encode(a, "e4m3", **to), np.empty(x.shape, np.uint8)),
                    (lambda a, **to: mpsim.round(a, "binary64", **to), np.empty(x.shape)),
                    (lambda a, **to: mpsim.decode(mpsim.encode(a, "e5m2"), "e5m2", **to), np.empty_like(x)),
                    (lambda a, **to: mpsim.round(a.astype(np.float16), "e4m3", **to), np.empty(x.shape, np.float16)),
                    (lambda a, **to: mpsim.gemm(a, a, **to), np.empty_like(x)),
                    (lambda a, **to: mpsim.scaled_mm(a, a, like="torch-scaled-mm:S=1", format="e4m3", **to), np.empty_like(x))):
        for to in (y, np.empty(x.shape[::-1], y.dtype).T, np.empty((4, 4), y.dtype)[::2, 1:3]):
            assert call(x, out=to) is to and np.array_equal(to, call(x)), call
            assert call(x.T, out=to) is to and np.array_equal(to, call(x.T))
        for wrong in (np.empty(3, y.dtype), np.empty(x.shape, np.complex64), [0.0] * 4, 3):
            with pytest.raises(mpsim.InputError, match="^out: expected ndarray of "):
                call(x, out=wrong)
        locked = y.copy()
        locked.flags.writeable = False
        with pytest.raises(mpsim.InputError, match="can be written"):
            call(x, out=locked)
    mine = x.copy()
    assert mpsim.round(mine, "e4m3", out=mine) is mine and np.array_equal(mine, mpsim.round(x, "e4m3"))
    with pytest.raises(mpsim.InputError, match="no out= for a number"):
        mpsim.round(0.3, "e4m3", out=np.empty(()))


def test_results_go_where_torch_wants_them():
    torch = peer("torch")
    x = torch.tensor([[0.3, -1.9], [300, 1e-4]])
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        given, to = x.to(dtype), torch.empty(2, 2, dtype=dtype)
        assert mpsim.round(given, "e4m3", out=to) is to and torch.equal(to, mpsim.round(given, "e4m3"))
        assert mpsim.round(given, "e4m3", out=given) is given and torch.equal(to, given)
    codes = torch.empty(2, 2, dtype=torch.uint8)
    assert mpsim.encode(x, "e4m3", out=codes) is codes and torch.equal(codes, mpsim.encode(x, "e4m3"))
    for wrong in (np.empty((2, 2), np.float32), torch.empty(2, 2, dtype=torch.float64)):
        with pytest.raises(mpsim.InputError, match="^out: expected Tensor"):
            mpsim.round(x, "e4m3", out=wrong)
