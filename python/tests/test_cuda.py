"""Arrays on a device: libmpsim-cuda, where MPSIM_TEST_CUDA is it with a CPU for a device (tests/gpu/cuda_host.cc)."""
import ctypes
import os

import numpy as np
import pytest

import mpsim
from mpsim import _cuda

PATH = os.environ.get("MPSIM_TEST_CUDA")
pytestmark = pytest.mark.skipif(not PATH, reason="MPSIM_TEST_CUDA is not set")


class There:
    """An array whose elements the device alone has."""

    def __init__(self, x):
        x = np.asarray(x)
        memory = ctypes.CDLL(PATH).mpsim_test_memory
        memory.restype, memory.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self.at, self.x = memory(max(x.nbytes, 1)), x
        ctypes.memmove(self.at, np.ascontiguousarray(x).ctypes.data, x.nbytes)
        self.__cuda_array_interface__ = {"typestr": x.dtype.str, "shape": x.shape, "data": (self.at, False), "version": 3, "strides": None}


class Capsuled:
    """The same by DLPack alone."""

    def __init__(self, x):
        self.there = There(x)
        x = self.there.x
        self.sizes = (ctypes.c_int64 * x.ndim)(*x.shape)
        self.tensor = _cuda.DLTensor(self.there.at, 2, 0, x.ndim, 2, 8 * x.itemsize, 1, self.sizes, None, 0)

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        assert stream == 1
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setenv("MPSIM_CUDA", PATH)
    _cuda.library.cache_clear()
    yield
    _cuda.library.cache_clear()


def arrays():
    x = np.random.default_rng(1).standard_normal((37, 53)).astype(np.float32)
    x[3, 4], x[5, 6], x[7, 7] = np.inf, np.nan, 1e-42
    return {"weight:a": x, "wgrad:a": x.astype(np.float16), "wgrad:b": x[:0], "act:c": x[0] * 1e5}


QUESTIONS = [{}, {"format": "fp16,e4m3@cuda", "scale": "1,1024"}, {"format": "bf16", "histogram": True}, {"counts": True},
             {"round": "toward-zero", "format": "e5m2"}]


@pytest.mark.parametrize("options", QUESTIONS)
def test_reports_are_those_of_arrays_in_memory(options):
    here = arrays()
    got = mpsim.stat({k: There(x) for k, x in here.items()}, **options)
    want = mpsim.stat(here, **options)
    assert got.json == want.json if hasattr(got, "json") else str(got) == str(want)


def test_capsules_are_taken():
    here = arrays()
    assert str(mpsim.stat({k: Capsuled(x) for k, x in here.items()}, format="fp16")) == str(mpsim.stat(here, format="fp16"))


def test_some_arrays_are_in_memory():
    here = arrays()
    mixed = {k: There(x) if i % 2 else x for i, (k, x) in enumerate(here.items())}
    assert str(mpsim.stat(mixed, format="fp16")) == str(mpsim.stat(here, format="fp16"))


def test_one_array():
    assert str(mpsim.stat(There(arrays()["act:c"]))) == str(mpsim.stat(arrays()["act:c"]))
