"""Arrays in the memory of a CUDA device, counted there: libmpsim-cuda (gpu/include/mpsim/cuda.h).

The library is the one that MPSIM_CUDA names, or beside the package's others; where there is none, and where it cannot count
something, callers go on as without it.
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
import threading
import weakref
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Optional

import numpy as np

from ._error import Error
from ._formats import Format, of_dtype
from ._library import INSTALLED

NAME = "libmpsim-cuda.so.0"
MOST = (1 << 32) - 1  # elements
LINE = 512


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """The library; None where it is not there. One that MPSIM_CUDA names has to load."""
    named = os.environ.get("MPSIM_CUDA")
    path = named or os.path.join(INSTALLED, "lib", NAME)
    if not named and not os.path.exists(path):
        return None
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        if named:
            raise Error(f"MPSIM_CUDA={named} does not load: {error}") from None
        return None
    prototypes: dict[str, tuple[Any, list[Any]]] = {
        "new": (c_void_p, [c_void_p, c_size_t, c_uint, c_int, c_char_p, c_size_t]), "free": (None, [c_void_p]),
        "can": (c_int, [c_void_p, c_void_p]),
        "count": (c_int, [c_void_p, c_void_p, c_void_p, c_uint64, c_int64, c_void_p, POINTER(c_void_p)]),
        "ready": (c_int, [c_void_p]), "read": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p]),
        "drop": (None, [c_void_p]), "error": (c_char_p, [c_void_p])}
    for name, (restype, argtypes) in prototypes.items():
        function = getattr(loaded, "mpsim_cuda_" + name)
        function.restype, function.argtypes = restype, argtypes
    return loaded


class Lying:
    """Elements on a device: one behind the other, in whatever order."""

    __slots__ = ("address", "n", "format", "device", "stream", "shape", "kept", "strides")

    def __init__(self, address: int, n: int, format: Format, device: int, stream: int, shape: tuple[int, ...], kept: Any,
                 strides: Optional[tuple[int, ...]] = None) -> None:
        self.strides = strides  # in elements; None: the last dimension runs first
        self.address, self.n, self.format, self.device, self.stream, self.shape = address, n, format, device, stream, shape
        self.kept = kept  # what owns them


def dense(sizes: Any, strides: Any) -> bool:
    """Whether elements fill memory without gaps, in whatever order: counts do not depend on it."""
    end = 1
    for stride, size in sorted(zip(strides, sizes)):
        if size != 1 and stride != end:
            return False
        end *= size
    return True


def of_tensor(t: Any) -> Optional[Lying]:
    """A tensor of torch on a CUDA device; None for others, and for what is not counted there."""
    torch = sys.modules["torch"]
    if not t.is_cuda or t.layout is not torch.strided or not t.dtype.is_floating_point:
        return None
    format = of_dtype(str(t.dtype)[6:])
    if format is None or t.numel() > MOST or torch.version.hip:
        return None
    t = t.detach()
    if t.is_neg():
        t = t.resolve_neg()
    if not dense(t.shape, t.stride()):
        t = t.contiguous()
    stream = torch.cuda.current_stream(t.device).cuda_stream
    return Lying(t.data_ptr(), t.numel(), format, t.device.index or 0, stream, tuple(t.shape), t)


class DLTensor(ctypes.Structure):
    """What a capsule of DLPack begins with (dlpack.h)."""

    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device", c_int), ("dimensions", c_int), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("offset", c_uint64)]


DEVICES, LEGACY = (2, 13), 1                   # kDLCUDA, kDLCUDAManaged; the default stream
CODES = {(2, 16): "float16", (2, 32): "float32", (4, 16): "bfloat16"}


def of_capsule(x: Any) -> Optional[Lying]:
    """An array on a CUDA device that DLPack gives (JAX's bf16, for one); its producer lets the default stream wait for it."""
    try:
        if x.__dlpack_device__()[0] not in DEVICES:
            return None
        capsule = x.__dlpack__(stream=LEGACY)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [ctypes.py_object, c_char_p]
    t = DLTensor.from_address(get(capsule, b"dltensor"))
    shape = tuple(t.shape[i] for i in range(t.dimensions))
    format = of_dtype(CODES.get((t.code, t.bits), "")) if t.lanes == 1 else None
    n = math.prod(shape)
    if format is None or n > MOST or (t.strides and n and not dense(shape, t.strides[:t.dimensions])):
        return None
    strides = tuple(t.strides[:t.dimensions]) if t.strides else None
    return Lying((t.data or 0) + t.offset, n, format, t.device, 0, shape, (x, capsule), strides)


def of_any(x: Any) -> Optional[Lying]:
    """An array on a CUDA device, of torch or of what has __cuda_array_interface__ (CuPy, Numba, JAX) or DLPack; None for all else."""
    if type(x).__module__.partition(".")[0] == "torch":
        return of_tensor(x) if hasattr(x, "data_ptr") else None
    try:
        has = getattr(x, "__cuda_array_interface__", None)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # of arrays that are not there
        return None
    if has is None:
        return of_capsule(x) if hasattr(x, "__dlpack__") and not isinstance(x, np.ndarray) else None
    if not isinstance(has, dict) or has.get("mask") is not None:
        return None
    kind, shape, strides = np.dtype(has["typestr"]), tuple(has["shape"]), has.get("strides")
    format = of_dtype(kind.name) if kind.kind == "f" and kind.isnative else None
    n = math.prod(shape)
    if format is None or n > MOST or (strides is not None and n and not dense(shape, [s // kind.itemsize for s in strides])):
        return None
    stream = has.get("stream")  # 1: the legacy default one
    own = None if strides is None else tuple(s // kind.itemsize for s in strides)
    return Lying(has["data"][0] or 0, n, format, -1, 0 if stream in (None, 1) else stream, shape, x, own)


class Counter:
    """Casts on a device, for any thread; counts wait for nothing, reading them does."""

    def __init__(self, casts: Any, n: int, want: int, device: int) -> None:
        why = ctypes.create_string_buffer(LINE)
        self.handle = library().mpsim_cuda_new(casts, n, want, device, why, LINE)
        if not self.handle:
            raise Error(f"device {device}: {why.value.decode(errors='replace')}")
        self.lock = threading.Lock()
        weakref.finalize(self, library().mpsim_cuda_free, self.handle)

    def can(self, format: Format) -> bool:
        return bool(library().mpsim_cuda_can(self.handle, ctypes.addressof(format.c)))

    def _check(self, status: int) -> None:
        if status:
            raise Error("counting on a device: " + (library().mpsim_cuda_error(self.handle).decode(errors="replace") or f"{status}"))

    def count(self, x: Lying) -> Any:
        counted = c_void_p()
        with self.lock:
            self._check(library().mpsim_cuda_count(self.handle, ctypes.addressof(x.format.c), x.address, x.n, 0, x.stream, byref(counted)))
        return counted

    def read(self, counted: Any, stats: Any, histogram: Any, casts: Any) -> None:
        """Add what was counted to accumulators of libmpsim."""
        with self.lock:
            self._check(library().mpsim_cuda_read(counted, stats, histogram, casts))

    def drop(self, counted: Any) -> None:
        """Forget what is counted."""
        with self.lock:
            library().mpsim_cuda_drop(counted)
