"""round, encode, decode, quantize, gemm and dot of arrays on a device: libmpsim-cuda whose device is a CPU (tests/gpu/cuda_host.cc, MPSIM_TEST_CUDA)."""
import ctypes
import os

import numpy as np
import pytest

import mpsim
from mpsim import _arrays, _blocks, _cast, _cuda, _device, _doors, _dot

PATH = os.environ.get("MPSIM_TEST_CUDA")
pytestmark = pytest.mark.skipif(not PATH, reason="MPSIM_TEST_CUDA is not set")


class Memory:
    """Memory of the device, which ctypes reads."""

    def __init__(self, n, *_):
        memory = ctypes.CDLL(PATH).mpsim_test_memory
        memory.restype, memory.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self.at = memory(max(n, 1))

    def data_ptr(self):
        return self.at


class There:
    """An array with __cuda_array_interface__."""

    def __init__(self, x):
        x = np.ascontiguousarray(x)
        self.memory, self.x = Memory(x.nbytes), x
        ctypes.memmove(self.memory.at, x.ctypes.data, x.nbytes)
        self.__cuda_array_interface__ = {"typestr": x.dtype.str, "shape": x.shape, "data": (self.memory.at, False), "version": 3, "strides": None}


def here(made):
    """The numbers of a result."""
    has = made.__cuda_array_interface__
    x = np.empty(has["shape"], has["typestr"])
    flat = np.empty(x.size, x.dtype)
    ctypes.memmove(flat.ctypes.data, has["data"][0], x.nbytes)
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, has["shape"], has["strides"]))


def same(a, b):
    """Equal bits; of numbers of 16 bits a NaN equals any NaN."""
    if a.dtype == b.dtype == np.float16:
        a, b = (np.where(np.isnan(x), np.float16(np.nan), x) for x in (a, b))
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setenv("MPSIM_CUDA", PATH)
    monkeypatch.setattr(_doors, "allocate", Memory)
    for cached in (_cuda.library, _device.functions):
        cached.cache_clear()
    yield
    for cached in (_cuda.library, _device.functions):
        cached.cache_clear()


def numbers(*shape, dtype=np.float32):
    x = np.random.default_rng(1).standard_normal(shape).astype(dtype)
    if x.size > 8:
        x.flat[3], x.flat[5] = np.inf, 1e-7
    return x


CASTS = [("e4m3", {}), ("e5m2", {"mode": "toward-zero", "overflow": "saturate"}), ("e4m3", {"mode": "sr", "seed": 3, "scale": 4.0}), ("bf16", {}),
         ("fp16", {"preset": "cuda"}), ("e2m1", {}), ("e4m3", {"flush_subnormals": True})]


@pytest.mark.parametrize("dtype", (np.float32, np.float16))
@pytest.mark.parametrize("case", range(len(CASTS)))
def test_casts(case, dtype):
    format, how = CASTS[case]
    for x in (numbers(37, 53, dtype=dtype), numbers(7, dtype=dtype), numbers(2, 3, 4, dtype=dtype), numbers(0, dtype=dtype)):
        assert same(here(mpsim.round(There(x), format, **how)), mpsim.round(x, format, **how))
        assert same(here(mpsim.encode(There(x), format, **how)), mpsim.encode(x, format, **how))


def test_results_have_both_protocols():
    made = mpsim.round(There(numbers(4, 4)), "e4m3")
    assert made.__dlpack_device__() == (2, 0)
    capsule = made.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    t = _cuda.DLTensor.from_address(get(capsule, b"dltensor"))
    assert t.data == made.__cuda_array_interface__["data"][0] and t.shape[:2] == [4, 4] and (t.code, t.bits) == (2, 32)
    manager = _doors._Manager.from_address(get(capsule, b"dltensor"))
    held = len(_doors._lent)
    manager.deleter(ctypes.pointer(manager))  # as a consumer calls it
    assert len(_doors._lent) == held - 1


@pytest.mark.parametrize("recipe", ("mxfp8", "nvfp4", "te-current", "mxfp4", "te-block-1x128", "te-block-128x128", "nvfp4-sr", "deepseek-1x128"))
@pytest.mark.parametrize("axis", ("rows", "columns"))
def test_recipes(recipe, axis):
    for x in (numbers(33, 96), numbers(3, 5, 64)):
        x = np.nan_to_num(x, posinf=3.0)
        q, want = mpsim.quantize(There(x), recipe, axis=axis, seed=5), mpsim.quantize(x, recipe, axis=axis, seed=5)
        assert q.nbytes == want.nbytes and q.element is want.element
        for name in ("codes", "values", "scales", "scale_codes"):
            a, b = getattr(q, name), getattr(want, name)
            assert (a is None) == (b is None)
            if a is not None:
                assert same(here(a), np.ascontiguousarray(b)), name
        assert here(q.tensor_scale).item() == want.tensor_scale


def test_what_the_device_lacks_is_an_error():
    x = There(numbers(4, 64))
    with pytest.raises(mpsim.InputError, match="Hadamard"):
        mpsim.quantize(x, "mxfp8:rht32")
    with pytest.raises(mpsim.InputError, match="both operands on a device"):
        mpsim.gemm(x, x.x, model="fma", transpose_b=True)


@pytest.mark.parametrize("model,format", (("fma", None), ("hopper-wgmma-fp8-fp32", "e4m3"), ("exact", "bf16"), ("volta-fp16-fp32", "fp16")))
def test_products(model, format):
    a, b = np.nan_to_num(numbers(17, 40), posinf=2.0), np.nan_to_num(numbers(40, 9), posinf=2.0)
    assert same(here(mpsim.gemm(There(a), There(b), model=model, format=format)), mpsim.gemm(a, b, model=model, format=format))
    turned = mpsim.gemm(There(a.T.copy()), There(b.T.copy()), model=model, format=format, transpose_a=True, transpose_b=True)
    assert same(here(turned), mpsim.gemm(a, b, model=model, format=format))


# ---- tensors of torch, played by those of the CPU

@pytest.fixture
def torch(monkeypatch):
    torch = pytest.importorskip("torch")
    anywhere = _cuda.library().mpsim_test_anywhere
    monkeypatch.setattr(_device, "_anywhere", anywhere(1), raising=False)
    device = _device.Device(0, lambda t: True, lambda: 0, lambda n: torch.empty(n, dtype=torch.uint8))
    monkeypatch.setattr(_device.Device, "of", staticmethod(lambda index: device))

    def play(x, what):
        return _doors._of_tensor(x, what) if torch.is_tensor(x) else _arrays.on_device(x, what)

    def turn(on):
        for module in (_cast, _blocks, _dot):
            monkeypatch.setattr(module, "on_device", play if on else _arrays.on_device)
    torch.turn = turn
    return torch


def both(torch, function):
    torch.turn(False)
    want = function()
    torch.turn(True)
    return function(), want


def test_casts_of_tensors(torch):
    x = torch.from_numpy(numbers(24, 36))
    for t in (x, x.t(), x[:, ::2], x.bfloat16(), x[0, 0], x[:0], x.half().view(2, 12, 6, 6)):
        for format, how in CASTS:
            for function in (mpsim.round, mpsim.encode):
                got, want = both(torch, lambda: function(t, format, **how))
                assert got.dtype is want.dtype and got.shape == want.shape
                if got.dtype in (torch.float16, torch.bfloat16):
                    assert torch.equal(got.isnan(), want.isnan())
                    got, want = got.nan_to_num(77), want.nan_to_num(77)
                bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[got.element_size()]
                assert torch.equal(got.contiguous().view(bits), want.contiguous().view(bits)), (format, how, t.dtype)
    codes = mpsim.encode(x, "e4m3")
    got, want = both(torch, lambda: mpsim.decode(codes, "e4m3"))
    assert torch.equal(got.nan_to_num(77), want.nan_to_num(77))


def test_recipes_and_products_of_tensors(torch):
    x = torch.from_numpy(np.nan_to_num(numbers(40, 64), posinf=2.0))
    for t in (x, x.t(), x[:, ::2], x.view(5, 8, 64)):
        for recipe, how in (("mxfp8", {}), ("nvfp4", {"axis": "columns"}), ("nvfp4", {"amax": 8.0}), ("ms-amp", {"given": 0.5})):
            got, want = both(torch, lambda: mpsim.quantize(t, recipe, **how))
            assert torch.equal(got.values, want.values) and torch.equal(got.codes, want.codes) and torch.equal(got.scales, want.scales)
            assert torch.equal(got.dequantize(), want.dequantize()) and float(got.tensor_scale) == want.tensor_scale
    got, want = both(torch, lambda: mpsim.gemm(x.t(), x[:, :9], model="hopper-bf16-fp32", format="bf16"))
    assert torch.equal(got, want)
    got, want = both(torch, lambda: mpsim.dot(x[0], x[1], "hopper-wgmma-fp8-fp32", format="e4m3", c=0.5))
    assert got == want
