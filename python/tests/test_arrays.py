"""Kinds of arrays, strides, dtypes: what comes in and what is given back."""
import gc
import sys
import threading

import numpy as np
import pytest
from conftest import peer, same_numbers

import mpsim


def test_kinds():
    x = np.array([[0.3, -7.7], [1e9, 0.0]])
    y = mpsim.round(x, "e4m3")
    assert y.dtype == np.float64 and y.shape == (2, 2) and y is not x and x[0, 0] == 0.3
    assert mpsim.round(x.astype(np.float32), "e4m3").dtype == np.float32
    assert isinstance(mpsim.round(0.3, "e4m3"), float) and isinstance(mpsim.round(3, "e4m3"), float)
    assert type(mpsim.round(np.float32(0.3), "e4m3")) is np.float32
    assert mpsim.round([0.3, 1.0], "e4m3").shape == (2,)
    assert isinstance(mpsim.encode(1.0, "e4m3"), int)
    assert mpsim.round(np.float32([]), "e4m3").shape == (0,)
    assert mpsim.round(np.zeros((3, 0, 2)), "e4m3").shape == (3, 0, 2)
    assert mpsim.round(np.array(0.3), "e4m3").shape == ()
    assert mpsim.round(np.array([1, 300, 7]), "e4m3").tolist() == [1.0, 288.0, 7.0]


def test_large_results():
    """They have memory of their own, which is used again only when nobody has an array of it."""
    x = np.linspace(-3, 3, 600_000, dtype=np.float32).reshape(1000, 600)
    want = mpsim.round(x[:200], "e4m3")  # a small one
    y = mpsim.round(x, "e4m3")
    part = y[:200]
    for _ in range(4):
        again = mpsim.round(x * 2, "bf16")
        assert not np.shares_memory(again, y)
    del y, again
    for _ in range(4):
        mpsim.round(x * 3, "bf16")
    assert np.array_equal(part, want)
    kept = [mpsim.round(x * i, "bf16") for i in range(6)]
    assert all(np.array_equal(one, mpsim.round((x * i)[:200], "bf16"), equal_nan=True) for i, one in enumerate(k[:200] for k in kept))
    columns = mpsim.round(np.asfortranarray(x), "e4m3")
    assert columns.flags.f_contiguous and columns.flags.writeable and np.array_equal(columns[:200], want)
    codes = mpsim.encode(x.T, "e4m3")
    assert codes.dtype == np.uint8 and np.array_equal(mpsim.decode(codes, "e4m3")[:, :200], want.T)


def test_large_results_in_threads():
    """Threads that take and give back memory at once have different memory."""
    x, bad = np.ones(300_000, np.float32), []

    def work(number):
        for _ in range(50):
            y = mpsim.round(x * number, "bf16")
            if not (y == number).all():
                bad.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []


def test_result_dtypes():
    """The input's dtype where it has every number of the format, else a wider one."""
    x = np.array([0.3, 3.3], np.float16)
    assert mpsim.round(x, "e4m3").dtype == np.float16
    assert mpsim.round(x, "bf16").dtype == np.float32
    assert mpsim.round(np.float32([0.3]), "binary64").dtype == np.float64
    assert mpsim.decode(np.array([1], np.uint32), "binary32").dtype == np.float32
    assert mpsim.decode(np.array([1], np.uint64), "binary64").tolist() == [5e-324]


@pytest.mark.parametrize("view", [
    lambda a: a[::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[:, 1], lambda a: a[1:, ::3],
    lambda a: np.broadcast_to(a[0], (5, a.shape[1])), lambda a: np.asfortranarray(a),
    lambda a: a.astype(a.dtype.newbyteorder()), lambda a: a.copy().view(np.matrix),
    lambda a: np.frombuffer(b"\0" + a.tobytes(), a.dtype, offset=1) if sys.version_info >= (3, 9) else a])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_strides(view, dtype):
    a = (np.arange(60.0).reshape(6, 10) * 0.37 - 9).astype(dtype)
    x = view(a)
    plain = np.array(np.asarray(x), dtype=dtype, order="C")
    assert same_numbers(mpsim.round(x, "e4m3"), mpsim.round(plain, "e4m3"))
    assert np.array_equal(mpsim.encode(x, "e5m2"), mpsim.encode(plain, "e5m2"))
    assert mpsim.round(x, "e4m3").shape == x.shape


def test_read_only():
    x = np.arange(4, dtype=np.float32)
    x.flags.writeable = False
    assert mpsim.round(x, "e4m3").tolist() == [0, 1, 2, 3]
    codes = mpsim.encode(x, "e4m3")
    codes.flags.writeable = False
    assert mpsim.decode(codes, "e4m3").tolist() == [0, 1, 2, 3]


def test_ml_dtypes():
    ml_dtypes = peer("ml_dtypes")
    x = np.array([0.3, 300.0]).astype(ml_dtypes.bfloat16)
    y = mpsim.round(x, "e4m3")
    assert y.dtype == ml_dtypes.bfloat16 and same_numbers(y.astype(np.float32), [0.3125, 288])
    assert mpsim.round(x[::-1], "fp16").dtype == np.float32
    assert mpsim.encode(x, "bf16").tolist() == x.view(np.uint16).tolist()


def test_torch():
    torch = peer("torch")
    x = torch.tensor([[0.3, 300.0], [-1.0, 5.0]], requires_grad=True)
    assert torch.equal(mpsim.round(x, "e4m3"), torch.tensor([[0.3125, 288.0], [-1.0, 5.0]]))
    assert torch.equal(mpsim.round(x.t(), "e4m3"), mpsim.round(x, "e4m3").t())
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        assert mpsim.round(x.to(dtype), "e4m3").dtype == dtype
    assert mpsim.round(x.half(), "bf16").dtype == torch.float32
    assert mpsim.encode(x, "e4m3").dtype == torch.uint8
    assert mpsim.round(torch.tensor([1, 300]), "e4m3").tolist() == [1.0, 288.0]
    codes = mpsim.encode(x.bfloat16(), "bf16")
    assert torch.equal(mpsim.decode(codes, "bf16"), x.detach().bfloat16().float())
    assert torch.equal(mpsim.round(torch._neg_view(x.detach()), "e4m3"), -mpsim.round(x, "e4m3"))
    with pytest.raises(mpsim.InputError, match="elements in memory") as error:
        mpsim.round(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "e4m3")
    assert "\n" not in str(error.value)
    with pytest.raises(mpsim.InputError, match="elements in memory"):
        torch.func.vmap(lambda row: mpsim.round(row, "e4m3"))(x.detach())
    with pytest.raises(mpsim.InputError, match="found one on meta"):
        mpsim.round(torch.empty(3, device="meta"), "e4m3")
    with pytest.raises(mpsim.InputError, match="dense"):
        mpsim.round(torch.eye(3).to_sparse(), "e4m3")


def test_jax():
    jax = peer("jax")
    x = jax.numpy.asarray([0.3, 300.0], jax.numpy.bfloat16)
    y = mpsim.round(x, "e4m3")
    assert isinstance(y, jax.Array) and y.dtype == x.dtype and y.tolist() == [0.3125, 288.0]
    with pytest.raises(mpsim.InputError, match="jax_enable_x64"):  # JAX would cut the codes off
        mpsim.encode(x, "binary64")
    with pytest.raises(mpsim.InputError) as error:
        jax.jit(lambda x: mpsim.round(x, "e4m3"))(x)
    assert "\n" not in str(error.value)


def test_nothing_is_imported_for_others():
    import subprocess
    script = "import sys, mpsim; mpsim.round([1.0], 'e4m3'); print([m for m in ('torch', 'jax', 'ml_dtypes') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout.strip() == b"[]"


def test_results_outlive_everything():
    y = mpsim.round(np.full(100_000, 0.3, np.float32), "e4m3")
    gc.collect()
    assert (y == 0.3125).all()


def test_casts_raise_no_flags_of_numpy():
    """Infinities, NaN, overflow and underflow are results, and no floating-point exceptions."""
    x = np.float64([np.inf, -np.inf, np.nan, 1e300, -1e-300, 5e-324, 1 / 3] * 9)
    with np.errstate(all="ignore"):
        single = x.astype(np.float32)
    with np.errstate(all="raise"):
        for a in (x, single):
            for name in ("e4m3", "e5m2", "bf16", "fp16", "e8m0", "e2m1", "binary32", "binary64"):
                codes = mpsim.encode(a, name)
                mpsim.round(a, name, scale=3.0)
                mpsim.decode(codes, name)
                mpsim.round(a, name, "up")


def test_threads():
    """Calls from several threads at once, of different formats."""
    x = np.linspace(-500, 500, 200_000, dtype=np.float32)
    wanted = {name: mpsim.round(x, name) for name in ("e4m3", "e5m2", "bf16", "e2m1")}
    wrong = []

    def work(name):
        for _ in range(5):
            if not same_numbers(mpsim.round(x, name), wanted[name]):
                wrong.append(name)
    threads = [threading.Thread(target=work, args=(name,)) for name in wanted]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_buffers():
    """What has Python's buffer protocol, and ranges; bytes are codes."""
    import array
    import ctypes
    x = np.float32([0.3, 1.7])
    for given in (memoryview(x), array.array("f", x), (ctypes.c_float * 2)(*x)):
        assert mpsim.round(given, "e4m3").tolist() == mpsim.round(x, "e4m3").tolist()
    assert mpsim.round(range(3), "e4m3").tolist() == [0, 1, 2]
    assert mpsim.decode(b"\x38\xfe", "e4m3").tolist() == [1, -448] == mpsim.decode(range(56, 255, 198), "e4m3").tolist()
    assert mpsim.decode([], "e4m3").shape == (0,) and mpsim.decode(56, "e4m3") == 1.0


def test_dlpack():
    """An array that knows DLPack alone."""
    class Foreign:
        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **options):
            return self.x.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()
    x = np.float32([0.3, 1.7])
    assert mpsim.round(Foreign(x), "e4m3").tolist() == mpsim.round(x, "e4m3").tolist()
