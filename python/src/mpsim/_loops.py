"""Casts as ufuncs of NumPy over mpsim_loop_run (lib/include/mpsim/loop.h).

NumPy makes the result, finds where elements lie, releases the global lock and calls the library, all in C: for small
arrays a fifth of what ctypes takes. A ufunc is made by PyUFunc_FromFuncAndData of NumPy's C interface, where extension
modules have it from, too; its place there has never changed.
"""
from __future__ import annotations

import ctypes
import importlib
from ctypes import addressof, byref, c_char_p, c_int, c_void_p, py_object
from typing import Any, Optional, Sequence

import numpy as np

from ._error import Error
from ._library import CFormat, CLoop, CRounding, check, lib

ROUND, ENCODE, DECODE = 0, 2, 4  # mpsim_loop_kind of binary32; of binary64 one more
FROM_FUNC_AND_DATA = 1  # in the table of _UFUNC_API
NO_IDENTITY = -1
NAME, DOC = c_char_p(b"mpsim"), c_char_p(b"a cast of mpsim")


RUN = ctypes.cast(lib.mpsim_loop_run, c_void_p).value


def _maker() -> Any:
    """PyUFunc_FromFuncAndData."""
    package = "numpy._core" if hasattr(np, "_core") else "numpy.core"  # of NumPy 2, 1
    capsule = importlib.import_module(package + "._multiarray_umath")._UFUNC_API
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = c_void_p, [py_object, c_char_p]
    table = ctypes.cast(pointer_of(capsule, None), ctypes.POINTER(c_void_p))
    prototype = ctypes.PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p, c_int, c_int, c_int, c_int, c_char_p,
                                   c_char_p, c_int)
    address = table[FROM_FUNC_AND_DATA]
    if address is None:
        raise Error("this NumPy gives no ufuncs to others")
    return prototype(address)


MAKE = _maker()


class Loops:
    """A ufunc of one loop for each type of source, and what it points to: it must not outlive this object."""

    __slots__ = ("call", "results", "_loops", "_functions", "_data", "_types")

    def __init__(self, loops: Sequence[tuple[int, Any, Any, CFormat, Optional[CRounding]]]) -> None:
        """loops: kind, dtype of the elements, dtype of the results, format, rounding."""
        n = len(loops)
        self._loops = (CLoop * n)()
        for made, (kind, _, _, format, rounding) in zip(self._loops, loops):
            check(lib.mpsim_loop_init(byref(made), kind, byref(format), rounding and byref(rounding)), "cast")
        self._functions = (c_void_p * n)(*[RUN] * n)
        self._data = (c_void_p * n)(*map(addressof, self._loops))
        self._types = bytes(dtype.num for _, given, result, _, _ in loops for dtype in (given, result))
        self.results = {np.dtype(given): np.dtype(result) for _, given, result, _, _ in loops}
        self.call: Any = MAKE(addressof(self._functions), addressof(self._data), self._types, n, 1, 1, NO_IDENTITY, NAME, DOC,
                              0)  # one operand, one result

    def result_of(self, dtype: Any) -> Any:
        """The dtype of results of an array; of one that has no loop of its own, as the widest has."""
        return self.results.get(dtype) or list(self.results.values())[-1]
