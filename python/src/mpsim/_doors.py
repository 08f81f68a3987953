"""`round`, `encode`, `decode`, `quantize`, `gemm` and `dot` of arrays on a CUDA device: tensors of torch, and arrays with __cuda_array_interface__ or
DLPack (CuPy, Numba, JAX). Operations go to the caller's current stream; results are of the caller's kind, with the bits of arrays in memory.

What the library has no kernel for is an error; nothing is copied to memory.
"""
from __future__ import annotations

import ctypes
import functools
import math
import sys
from ctypes import POINTER, addressof, byref, c_size_t, c_void_p
from typing import Any, Optional

import numpy as np

from . import _cuda, _device
from ._dot import ROUNDINGS, accepted, model_of
from ._error import Error, InputError
from ._formats import Format, find, of_dtype
from ._library import STOCHASTIC, CRng, check, lib, text
from ._product import View
from ._random import words_of

BINARY32 = find("binary32")
DTYPES = {"binary32": "float32", "binary64": "float64", "bf16": "bfloat16", "fp16": "float16"}
KINDS = {"float32": (2, 32, "<f4"), "float64": (2, 64, "<f8"), "float16": (2, 16, "<f2"), "bfloat16": (4, 16, None), "uint8": (1, 8, "|u1"),
         "uint16": (1, 16, "<u2"), "uint32": (1, 32, "<u4")}


class Array:
    """An array of the caller's on a device: its elements as a View of two or more dimensions, and what makes results of its kind."""

    __slots__ = ("given", "view", "device", "shape", "dtype", "kind", "format")

    def __init__(self, given: Any, view: View, device: Any, shape: tuple[int, ...], dtype: str, kind: Any) -> None:
        self.given, self.view, self.device, self.shape, self.dtype, self.kind = given, view, device, shape, dtype, kind
        self.format: Optional[Format] = view.format

    def result(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Room for a result, without gaps."""
        return self.kind(self, shape, dtype)

    @property
    def n(self) -> int:
        return math.prod(self.shape)


# ---- torch ----

class _OfTorch:
    """A result as a tensor."""

    def __init__(self, like: Array, shape: tuple[int, ...], dtype: str) -> None:
        torch = sys.modules["torch"]
        own = getattr(torch, dtype, None)
        if own is None:
            own = getattr(torch, dtype.replace("uint", "int"))  # versions that know no wider unsigned integers
        self.array = torch.empty(shape, dtype=own, device=like.given.device)
        self.address = self.array.data_ptr()

    def give(self) -> Any:
        return self.array

    def shaped(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """The elements as an array of another shape."""
        return self.array.as_strided(shape, strides)


def _of_tensor(x: Any, what: str) -> Array:
    torch = sys.modules["torch"]
    if x.layout is not torch.strided:
        raise InputError(f"{what}: expected a dense tensor, found layout {x.layout}")
    x = x.detach()
    if x.is_neg():
        x = x.resolve_neg()
    name = str(x.dtype)[6:]
    format = of_dtype(name) if x.dtype.is_floating_point else None
    if format is None and name not in KINDS and not name.startswith("int"):
        raise InputError(f"{what}: expected a tensor of numbers, found dtype {x.dtype}")
    t = x if 2 <= x.dim() <= 8 else x.reshape(1, -1) if x.dim() < 2 else x.flatten(0, -2)
    view = View(t.data_ptr(), format, tuple(t.shape), tuple(t.stride()), t)  # type: ignore[arg-type]
    return Array(x, view, _device.Device.of(x.device.index or 0), tuple(x.shape), name, _OfTorch)


# ---- others ----

class _Manager(ctypes.Structure):
    """DLManagedTensor."""


_DELETER = ctypes.CFUNCTYPE(None, POINTER(_Manager))
_Manager._fields_ = [("tensor", _cuda.DLTensor), ("context", c_void_p), ("deleter", _DELETER)]
_lent: dict[int, Any] = {}  # what consumers of capsules hold


def _unlend(manager: Any) -> None:
    _lent.pop(addressof(manager.contents), None)


_UNLEND = _DELETER(_unlend)


class DeviceArray:
    """An array on a device with both protocols, __cuda_array_interface__ (of dtypes that NumPy has) and DLPack."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, device: int, stream: int, keep: Any) -> None:
        self.address, self.shape, self.strides, self.dtype, self.device, self.keep, self.stream = address, shape, strides, dtype, device, keep, stream
        _code, bits, typestr = KINDS[dtype]
        if typestr is not None:
            self.__cuda_array_interface__ = {"typestr": typestr, "shape": shape, "data": (address, False), "version": 3,
                                             "strides": tuple(s * bits // 8 for s in strides), "stream": stream or 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return _cuda.DEVICES[0], self.device

    def __dlpack__(self, stream: Any = None, **_: Any) -> Any:
        code, bits, _typestr = KINDS[self.dtype]
        n = len(self.shape)
        sizes, strides = ((ctypes.c_int64 * max(n, 1))(*numbers) for numbers in (self.shape, self.strides))
        manager = _Manager(_cuda.DLTensor(self.address, _cuda.DEVICES[0], self.device, n, code, bits, 1, sizes, strides, 0), None, _UNLEND)
        _lent[addressof(manager)] = manager, sizes, strides, self
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
        return new(addressof(manager), b"dltensor", None)

    def __repr__(self) -> str:
        return f"<mpsim.DeviceArray: {self.dtype}, shape {self.shape}, on device {self.device}>"


@functools.lru_cache(maxsize=None)
def _driver() -> Any:
    """The driver's own allocator, where torch is not there."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise Error(f"memory on a device: {error}") from None
    driver.cuMemAlloc_v2.argtypes, driver.cuMemFree_v2.argtypes = [POINTER(c_void_p), c_size_t], [c_void_p]
    return driver


class _Memory:
    """Memory of the driver, which waits for the device where it is given back."""

    def __init__(self, bytes: int) -> None:
        at = c_void_p()
        status = _driver().cuMemAlloc_v2(byref(at), bytes)
        if status:
            raise MemoryError(f"{bytes} bytes on the device: error {status} of the driver")
        self.at = at.value or 0

    def data_ptr(self) -> int:
        return self.at

    def __del__(self, free: Any = None) -> None:
        if getattr(self, "at", 0):
            _driver().cuMemFree_v2(self.at)


def allocate(bytes: int, device: int, stream: int) -> Any:
    """Memory of a device: torch's, where torch has one, else the driver's. An object with data_ptr()."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        where = torch.cuda.current_device() if device < 0 else device
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, where)) if stream else torch.cuda.device(where):
            return torch.empty(bytes, dtype=torch.uint8, device=torch.device("cuda", where))
    return _Memory(bytes)


class _OfOthers:
    """A result through the producer's from_dlpack, or as a DeviceArray."""

    def __init__(self, like: Array, shape: tuple[int, ...], dtype: str) -> None:
        self.root = type(like.given).__module__.partition(".")[0]
        memory = like.device.empty(max(math.prod(shape) * KINDS[dtype][1] // 8, 1))
        self.address = memory.data_ptr()
        self.shape, self.rest = shape, (dtype, max(like.device.index, 0), like.device.stream(), memory)

    def give(self) -> Any:
        return self.shaped(self.shape, _packed(self.shape))

    def shaped(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        made, producer = DeviceArray(self.address, shape, strides, *self.rest), sys.modules.get(self.root)
        taken = getattr(producer, "from_dlpack", None) or getattr(getattr(producer, "dlpack", None), "from_dlpack", None)
        return made if taken is None else taken(made)


def _of_other(x: Any, what: str) -> Optional[Array]:
    lies = _cuda.of_any(x)
    if lies is None:
        return None
    if lies.strides is not None and lies.strides != _packed(lies.shape):
        raise InputError(f"{what}: expected an array on a device whose rows lie one behind the other")
    shape = lies.shape if len(lies.shape) > 1 else (1, lies.n)
    if len(shape) > 8:
        shape = (math.prod(shape[:-1]), shape[-1])
    view = View(lies.address, lies.format, shape, _packed(shape), lies)
    index, stream = lies.device, lies.stream
    device = _device.Device(index, lambda _: True, lambda: stream, lambda bytes: allocate(bytes, index, stream))
    return Array(x, view, device, lies.shape, next((d for f, d in DTYPES.items() if f == lies.format.name), ""), _OfOthers)


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, n = [], 1
    for size in reversed(shape):
        strides.append(n)
        n *= max(size, 1)
    return tuple(reversed(strides))


def of(x: Any, what: str) -> Optional[Array]:
    """An array on a device; None for all else."""
    try:
        return _of_tensor(x, what) if x.is_cuda else None
    except AttributeError:
        pass
    if isinstance(x, (np.ndarray, np.generic, float, int, list, tuple)):
        return None
    return _of_other(x, what)


# ---- casts ----

def _floats(x: Array, what: str) -> Format:
    if x.format is None:
        raise InputError(f"{what}: expected floating-point numbers on a device, found {x.dtype}")
    return x.format


def _flat(made: Any, format: Format, like: View) -> View:
    return View(made.address, format, like.shape, _packed(tuple(like.shape)), made)


def cast(x: Array, to_codes: bool, plan: Any, words: tuple[Any, Any, Any, Any]) -> Any:
    """`round` or `encode`."""
    own = _floats(x, "encode" if to_codes else "round")
    to = plan.format
    if to_codes:
        format, dtype = to, plan.code_dtype.name
    else:
        format = own if to.within(own) else BINARY32
        dtype = x.dtype if format is own else "float32"
    made = x.result(x.shape, dtype)
    rng = words_of(*words, x.n) if plan.stochastic else None
    if x.n:
        x.device.cast(_flat(made, format, x.view), x.view, plan, rng)
    return made.give()


def decode(x: Array, format: Format) -> Any:
    """Values of codes."""
    from ._cast import plan_of

    if x.format is not None and x.format is not format or x.format is None and x.dtype.lstrip("u") != f"int{8 * format.code_dtype.itemsize}":
        raise InputError(f"decode: expected codes of {format.bits} bits on a device, found {x.dtype}")
    made = x.result(x.shape, "float32")
    codes = View(x.view.address, format, x.view.shape, x.view.strides, x.view.keep)
    if x.n:
        x.device.cast(_flat(made, BINARY32, x.view), codes, plan_of("binary32", None, 1.0, None, None, False, False, format.name))
    return made.give()


# ---- recipes ----

def quantize(x: Array, recipe: str, c: Any, transform: int, columns: bool, largest: Optional[float], given: float, words: tuple[Any, Any, Any, Any]) -> Any:
    """What `quantize` gives; the scale of the tensor stays on the device, as an array of one number."""
    from ._blocks import GIVEN_RULES, Quantized, _has_scale_codes

    if transform:
        raise InputError(f"quantize '{recipe}': libmpsim-cuda has no Hadamard transform of its own; mpsim.emulate has it within products, x.cpu() copies x")
    own = _floats(x, "quantize")
    *outer, width = x.view.shape
    height = math.prod(outer)
    view = View(x.view.address, own, x.view.shape, x.view.strides, x.view.keep)
    if columns:
        view = _as_matrix(x, height, width).t()
        height, width = width, height
    rows, cols = c_size_t(), c_size_t()
    lib.mpsim_block_grid(byref(c), height, width, byref(rows), byref(cols))
    grid = (rows.value, cols.value)
    has_codes = _has_scale_codes(c)
    codes, values, inverses, scale_codes, scale = (x.result(shape, dtype) for shape, dtype in (
        ((height, width), "uint8"), ((height, width), "float32"), (grid, "float32"), (grid if has_codes else (0,), "uint8"), ((1,), "float32")))
    needs = {"amax": largest, "given": given if c.rule in GIVEN_RULES else None}
    there = {name: None if number is None else _number(x, number, name) for name, number in needs.items()}
    out = _device.CBlocksThere(codes.address, values.address, scale_codes.address if has_codes else None, None, inverses.address, None,
                               None if there["amax"] is None else there["amax"].data_ptr(), scale.address, None)
    rng: Optional[CRng] = words_of(*words, x.n) if c.element_mode >= STOCHASTIC else None
    x.device.quantize(c, view, height, width, None if there["given"] is None else there["given"].data_ptr(), rng, out, f"quantize '{recipe}'")
    q: Any = Quantized()
    q._columns, q._transform, q.recipe, q.element = columns, transform, text(c.name), find(text(c.element))
    q.nbytes = lib.mpsim_block_bytes(byref(c), height, width)
    q.tensor_scale = scale.give()
    blocks = x.shape[:-1] + grid[1:] if c.block_rows == 1 and not columns else grid
    blocks = blocks if not columns else blocks[::-1]
    for name, made, shape in (("codes", codes, x.shape), ("values", values, x.shape), ("scales", inverses, blocks), ("scale_codes", scale_codes, blocks)):
        strides = (*_packed(shape[:-1]), math.prod(shape[:-1])) if columns else _packed(shape)  # of columns the array was quantised turned
        setattr(q, name, made.shaped(shape, strides) if has_codes or made is not scale_codes else None)
    return q


def _as_matrix(x: Array, height: int, width: int) -> View:
    if len(x.view.shape) == 2:
        return x.view
    if hasattr(x.given, "reshape") and x.kind is _OfTorch:
        t = x.given.reshape(height, width)
        return View(t.data_ptr(), x.view.format, (height, width), t.stride(), t)
    return View(x.view.address, x.view.format, (height, width), (width, 1), x.view.keep)


def _number(x: Array, number: float, name: str) -> Any:
    if x.kind is not _OfTorch:
        raise InputError(f"quantize: {name}= of an array on a device is for tensors of torch")
    torch = sys.modules["torch"]
    return torch.full((1,), number, dtype=torch.float32, device=x.given.device)


# ---- products ----

def gemm(p: Array, q: Array, model: str, format: Any, transpose_a: bool, transpose_b: bool, c: Optional[Array], words: tuple[Any, Any, Any, Any],
         what: str = "gemm") -> Any:
    """`gemm` of two matrices on the same device."""
    m, to, stochastic = model_of(model)
    fa, fb = (find(format) if format is not None else _floats(each, what) for each in (p, q))
    if len(p.shape) != 2 or len(q.shape) != 2:
        raise InputError(f"{what}: expected two matrices, found shapes {p.shape} and {q.shape}")
    a, b = p.view.t() if transpose_a else p.view, q.view if transpose_b else q.view.t()
    if a.shape[1] != b.shape[1]:
        raise InputError(f"{what}: expected matrices of m x k and k x n, found {a.shape[0]} x {a.shape[1]} and {b.shape[1]} x {b.shape[0]}")
    accepted(what, model, m, fa, fb)
    shape = (a.shape[0], b.shape[0])
    wide = to if to.name in ("binary32", "binary64") else BINARY32
    made = p.result(shape, DTYPES[wide.name])
    rng: Optional[CRng] = words_of(*words, ROUNDINGS * shape[0] * shape[1]) if stochastic else None
    p.device.multiply(View(made.address, wide, shape, (shape[1], 1), _There), (a, fa), (b, fb), model, rng=rng, format=to, start=_start(c, to, shape, what))
    return made.give()


def _start(c: Optional[Array], to: Format, shape: tuple[int, ...], what: str) -> Optional[View]:
    if c is None:
        return None
    if c.shape != shape or c.format is None or c.format.name != to.name:
        raise InputError(f"{what}: expected c of {shape[0]} x {shape[1]} in {to} on the device, found {c.dtype}, shape {c.shape}")
    return c.view


class _There:
    """Stands for a tensor of a device."""

    is_cuda = True


def dot(p: Array, q: Array, model: str, format: Any, c: float, words: tuple[Any, Any, Any, Any]) -> float:
    """`dot` of two tensors of torch; waits for the number."""
    if len(p.shape) != 1 or p.shape != q.shape:
        raise InputError(f"dot: expected two arrays of one dimension and one length, found shapes {p.shape} and {q.shape}")
    if p.kind is not _OfTorch or q.kind is not _OfTorch:
        raise InputError("dot: expected tensors of torch on a device")
    torch = sys.modules["torch"]
    m, to, _ = model_of(model)
    if to.name not in DTYPES:
        raise InputError(f"dot: results of {to} on a device have no dtype of torch")
    first = torch.full((1, 1), c, dtype=getattr(torch, DTYPES[to.name]), device=p.given.device)
    for each in (p, q):
        each.shape = (1, *each.shape)
    return float(gemm(p, q, model, format, False, True, _of_tensor(first, "dot"), words, "dot").item())
