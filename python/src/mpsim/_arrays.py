"""What users pass and get back: arrays of NumPy (with the dtypes of ml_dtypes), torch and JAX, numbers, lists.

Contiguous float32 and float64 arrays in memory are used where they lie; narrower floating-point dtypes are widened,
which is exact. torch, ml_dtypes and jax are never imported here: who passes their arrays has done so.
"""
from __future__ import annotations

import ctypes
import functools
import sys
from array import array
from ctypes import addressof, c_ubyte
from typing import Any, Optional

import numpy as np

from ._error import InputError, real_of
from ._formats import Format, find, of_dtype

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def pointer(array: np.ndarray[Any, Any]) -> Any:
    """Where the elements of a contiguous array lie, as an argument of the library; the array must live meanwhile."""
    try:
        return c_ubyte.from_buffer(array)  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, empty, or a dtype without a buffer
        return c_ubyte.from_address(array.ctypes.data or 1)


def address(array: np.ndarray[Any, Any]) -> int:
    """The same as a number, for structures."""
    return addressof(pointer(array))


class Given:
    """An array of the user's: its elements as NumPy has them, and how results become arrays of its kind."""

    __slots__ = ("array", "format", "kind", "dtype", "raw")

    def __init__(self, array: Any, format: Optional[Format], kind: str, dtype: Any, raw: bool) -> None:
        self.array = array    # numbers: any NumPy array of floating point; raw: of codes
        self.format = format  # of the elements; None: integers
        self.kind = kind      # "numpy", "scalar" (of NumPy), "torch", "jax" or "number"
        self.dtype = dtype    # of the user's array, where results of its kind may have it
        self.raw = raw        # the elements are codes of `format`, as unsigned integers

    def floats(self, what: str) -> Any:
        """The elements as a contiguous array of float32 or float64, exactly."""
        a = self.array
        if self.format is not None and (self.raw or a.dtype.isbuiltin == 2):  # 2: a dtype of ml_dtypes
            return self.format.values_of(np.asarray(a, order="C").view(self.format.code_dtype))
        if a.dtype is F32 or a.dtype is F64:
            return a if a.flags.c_contiguous else np.asarray(a, order="C")
        if a.dtype.kind in "iu":
            wide = np.asarray(a, F64, order="C")
            if a.dtype.itemsize == 8 and a.size and np.abs(wide).max() > 2.0**53:
                raise InputError(f"{what}: expected integers of at most 2^53, which float64 has, found larger ones")
            return wide
        if a.dtype == F32 or a.dtype == F64:  # of another byte order, or a structured view of it
            return np.asarray(a, F32 if a.dtype.itemsize == 4 else F64, order="C")
        return np.asarray(a, F32, order="C")

    def give(self, result: Any) -> Any:
        """A result in the user's kind of array."""
        if self.kind == "numpy":
            return result
        if self.kind == "number":
            return result.item()
        if self.kind == "scalar":
            return result[()]
        if self.kind == "torch":
            torch = sys.modules["torch"]
            if result.dtype.kind == "u" and not hasattr(torch, f"uint{8 * result.dtype.itemsize}"):
                result = result.view(f"i{result.dtype.itemsize}")  # versions that know no wider unsigned integers
            return torch.from_numpy(result)
        if result.dtype.itemsize == 8 and not sys.modules["jax"].config.jax_enable_x64:
            raise InputError(f"expected jax_enable_x64 for results of {result.dtype}, which JAX has not without it")
        return sys.modules["jax"].numpy.asarray(result)

    def give_values(self, values: Any, format: Format) -> Any:
        """Numbers of `format`, in the user's dtype if that has all of them."""
        if self.kind == "torch":
            given = self.give(values)
            if given.dtype is self.dtype or self.format is None or not format.within(self.format):
                return given
            return given.to(self.dtype)
        if self.kind != "number" and self.format is not None and values.dtype != self.dtype and format.within(self.format):
            values = values.astype(self.dtype)
        return self.give(values)


@functools.lru_cache(maxsize=None)
def _of_torch(dtype: Any) -> tuple[Optional[Format], Any]:
    """The format of a dtype of torch, None for integers; and the dtype to view its codes in, None where NumPy has it."""
    torch = sys.modules["torch"]
    if dtype in (torch.float32, torch.float64, torch.float16):
        return of_dtype(str(dtype)[6:]), None
    if not dtype.is_floating_point:
        return None, None
    format = of_dtype(str(dtype)[6:])
    if format is None:
        raise InputError(f"expected a tensor of numbers, found dtype {dtype}")
    return format, torch.int16 if format.bits == 16 else torch.uint8


def _tensor(x: Any, what: str) -> Given:
    """A tensor of torch, in memory, where its elements lie."""
    try:
        return _dense(x, what)
    except InputError:
        raise
    except (TypeError, RuntimeError, ValueError) as error:  # nested and quantised ones, those of transforms
        raise InputError(f"{what}: expected a tensor with elements in memory: {_line(error)}") from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _dense(x: Any, what: str) -> Given:
    if not x.is_cpu:
        raise InputError(f"{what}: expected a tensor in the CPU's memory, found one on {x.device}: x.cpu() copies it")
    if x.is_sparse or x.layout is not sys.modules["torch"].strided:
        raise InputError(f"{what}: expected a dense tensor, found layout {x.layout}")
    if x.requires_grad:
        x = x.detach()
    if x.is_neg() or x.is_conj():
        x = x.resolve_neg().resolve_conj()
    format, bits = _of_torch(x.dtype)
    if bits is not None:
        codes = x.view(bits).numpy().view(format.code_dtype)  # type: ignore[union-attr]
        return Given(codes, format, "torch", x.dtype, True)
    a = x.numpy()
    return Given(a, format, "torch", x.dtype, False) if format else Given(of_array(a, what).array, None, "torch", x.dtype, False)


@functools.lru_cache(maxsize=None)
def _of_numpy(dtype: Any) -> Any:
    """The format of a dtype of NumPy or ml_dtypes; None for integers, False for what is no number."""
    if dtype.kind in "iu":
        return None
    format = of_dtype(dtype.name)
    return False if format is None or dtype.kind not in "fV" or dtype.names or dtype.itemsize > 8 else format


def of_array(x: Any, what: str) -> Given:
    """An array of NumPy."""
    dtype = x.dtype
    format = _of_numpy(dtype)
    if format is False:
        raise InputError(f"{what}: expected an array of floating-point numbers, found dtype {dtype}")
    return Given(x, format, "numpy", dtype, False)


def of_any(x: Any, what: str) -> Given:
    """Whatever the user has passed."""
    if isinstance(x, (np.ndarray, np.generic)):
        if isinstance(x, np.ma.MaskedArray):
            raise InputError(f"{what}: expected an array without a mask: x.filled() or x.data is one")
        given = of_array(np.asarray(x), what)
        if isinstance(x, np.generic):
            given.kind = "scalar"
        return given
    if isinstance(x, (float, int)) and not isinstance(x, bool):
        value = real_of(x, what)
        if value != x and x == x:
            raise InputError(f"{what}: expected a number that float64 has, found {x}")
        return Given(np.array(value), find("binary64"), "number", F64, False)
    module = type(x).__module__.partition(".")[0]
    if module == "torch" and sys.modules["torch"].is_tensor(x):
        return _tensor(x, what)
    if isinstance(x, (memoryview, array, ctypes.Array)):
        return of_array(np.asarray(x), what)
    if hasattr(x, "__array__") or isinstance(x, (list, tuple, range)):
        try:
            given = of_array(np.asarray(x), what)
            if not hasattr(x, "__array__"):  # Python's numbers are binary64
                given.array, given.format, given.dtype = given.floats(what).astype(F64, copy=False), find("binary64"), F64
        except InputError:
            raise
        except Exception as error:  # whatever another library says
            raise InputError(f"{what}: expected an array of floating-point numbers: {_line(error)}") from None
        if module in ("jax", "jaxlib"):
            given.kind = "jax"
        return given
    if hasattr(x, "__dlpack__"):  # CuPy's and others', in memory
        try:
            return of_array(np.from_dlpack(x), what)
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise InputError(f"{what}: expected an array in the CPU's memory: {_line(error)}") from None
    raise InputError(f"{what}: expected an array of NumPy, torch or JAX, or numbers, found {type(x).__name__}")


_MEMORY = (np.ndarray, np.generic, float, int, list, tuple, range, bytes, bytearray, memoryview)


def on_device(x: Any, what: str) -> Any:
    """The array of a CUDA device that x is (of _doors); None for all else."""
    if isinstance(x, _MEMORY):
        return None
    try:
        if not x.is_cuda:
            return None
    except AttributeError:
        if not (hasattr(x, "__cuda_array_interface__") or _lies_there(x)):
            return None
    from ._doors import of

    return of(x, what)


def _lies_there(x: Any) -> bool:
    try:
        return x.__dlpack_device__()[0] in (2, 13)  # kDLCUDA, kDLCUDAManaged
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
        return False


def room_of(out: Any, given: Given, shape: tuple[int, ...], dtype: Any) -> Optional[Any]:
    """Where the elements of the user's `out` lie, if results of this shape and dtype go there as they are."""
    a = out
    if given.kind == "torch" and type(out).__module__.partition(".")[0] == "torch" and out.is_cpu and not out.requires_grad:
        try:
            a = out.numpy()
        except (TypeError, RuntimeError):  # no dtype of NumPy, or no elements
            return None
    elif given.kind != "numpy":
        return None
    return a if isinstance(a, np.ndarray) and a.dtype == dtype and a.shape == shape and a.flags.writeable else None


def put(out: Any, result: Any) -> Any:
    """A result copied into the user's `out`, which has to be like it."""
    like = isinstance(result, np.ndarray) and isinstance(out, np.ndarray) or type(out).__module__.partition(".")[0] == "torch" == type(
        result).__module__.partition(".")[0]
    if not like or out.shape != result.shape or out.dtype != result.dtype:
        what = f"{type(result).__name__} of {result.dtype}, shape {tuple(result.shape)}" if hasattr(result, "shape") else "no out= for a number"
        found = f"{type(out).__name__}" + (f" of {out.dtype}, shape {tuple(out.shape)}" if hasattr(out, "dtype") else "")
        raise InputError(f"out: expected {what}, as the result is, found {found}")
    try:
        if isinstance(out, np.ndarray):
            np.copyto(out, result)
        else:
            out.copy_(result)
    except (ValueError, RuntimeError) as error:  # read-only, or a leaf with a gradient
        raise InputError(f"out: expected an array that can be written: {_line(error)}") from None
    return out
