"""Inputs that tell rows apart (mpsim_judge_inputs of lib/include/mpsim/judge.h), as arrays of NumPy or torch."""
from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterator, Mapping
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_void_p
from typing import Any, Optional

import numpy as np

from . import _threads
from ._error import InputError
from ._formats import Format, find
from ._judge import ROW, CArray, kinds, library as of_judges
from ._library import ERANGE, CFormat, text
from ._open import LINE, _check


class CSet(ctypes.Structure):
    _fields_ = [("kind", c_int), ("array", CArray * 3), ("arrays", c_size_t), ("rows", c_size_t), ("classes", c_size_t),
                ("row", POINTER(c_char * ROW)), ("class_of", POINTER(c_size_t)), ("format", POINTER(CFormat))]


STRUCTURES = {"mpsim_judge_set": CSet}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    loaded = of_judges()
    loaded.mpsim_judge_inputs.restype = c_int
    loaded.mpsim_judge_inputs.argtypes = [POINTER(CSet), c_char_p, POINTER(CFormat), c_void_p, c_char_p, c_size_t]
    loaded.mpsim_judge_set_clear.restype, loaded.mpsim_judge_set_clear.argtypes = None, [POINTER(CSet)]
    return loaded


class Inputs(Mapping[str, Any]):
    """The arrays of mpsim.testing.inputs by their roles.

    kind: of the operation. row: what was asked for. rows: the rows that were compared. classes: tuples of rows; the inputs do not tell
    the rows of a class apart.
    """

    def __init__(self, kind: str, row: str, arrays: dict[str, Any], classes: tuple[tuple[str, ...], ...]) -> None:
        self.kind, self.row, self.classes, self._arrays = kind, row, classes, arrays

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(row for rows in self.classes for row in rows)

    def __getitem__(self, role: str) -> Any:
        return self._arrays[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        arrays = ", ".join(f"{role} {'x'.join(map(str, x.shape))}" for role, x in self._arrays.items())
        return f"<Inputs {self.row} ({self.kind}): {arrays}; {len(self.rows):,} rows in {len(self.classes):,} classes>"


def _named(module: Any, format: Format) -> Any:
    return next((getattr(module, name) for name in (format.name, *format.aliases) if hasattr(module, name)), None)


def _numpy(format: Format, codes: Any) -> Any:
    dtype: Any = {"binary32": np.float32, "binary64": np.float64, "fp16": np.float16}.get(format.name)
    if dtype is None:
        try:
            import ml_dtypes
        except ImportError:
            raise InputError(f"NumPy has no dtype for {format.name}: install ml_dtypes, or ask for array=\"torch\"") from None
        dtype = _named(ml_dtypes, format)
        if dtype is None:
            raise InputError(f"NumPy has no dtype for {format.name}: choose another one, dtype=\"float32\"")
    return codes.view(dtype)


def _torch(format: Format, codes: Any, device: str) -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("array=\"torch\" needs torch") from None
    name = {"binary32": "float32", "binary64": "float64", "fp16": "float16"}.get(format.name)
    dtype = getattr(torch, name) if name else _named(torch, format)
    if dtype is None:
        raise InputError(f"torch has no dtype for {format.name}: choose another one, dtype=\"float32\"")
    return placed(torch.from_numpy(codes.view(f"i{codes.dtype.itemsize}")).view(dtype), device)


def placed(x: Any, device: str) -> Any:
    """A tensor on a device of torch's."""
    try:
        return x.to(device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise InputError(f"device: torch has no {device!r} here: {str(error).splitlines()[0]}") from None


def _array(c: CArray, one: bool, array: str, device: str) -> Any:
    given = CFormat.from_address(c.format)
    format = find(text(given.name))
    n = c.rows * c.columns
    bytes = ctypes.string_at(c.codes, n * format.code_dtype.itemsize)
    codes = np.frombuffer(bytearray(bytes), format.code_dtype)
    values = _torch(format, codes, device) if array == "torch" else _numpy(format, codes)
    return values if one else values.reshape(c.rows, c.columns)


def _classes(c: CSet) -> tuple[tuple[str, ...], ...]:
    classes: list[list[str]] = [[] for _ in range(c.classes)]
    for i in range(c.rows):
        classes[c.class_of[i]].append(text(c.row[i].value))
    return tuple(tuple(rows) for rows in classes)


def source_of(dtype: Any) -> Optional[Format]:
    if dtype is None or isinstance(dtype, (str, Format)):
        return None if dtype is None else find(dtype)
    return find(str(dtype)[6:] if str(dtype).startswith("torch.") else np.dtype(dtype).name)


def refuse(status: int, line: Any) -> None:
    """The error of a status. A row that does not take what is asked is the caller's, too."""
    if status == ERANGE:
        raise InputError(line.value.decode(errors="replace"))
    _check(status, line)


def inputs(row: str, dtype: Any, array: Optional[str], device: str) -> Inputs:
    if array is None:
        array = "numpy" if device == "cpu" else "torch"
    if array not in ("numpy", "torch"):
        raise InputError(f"array: expected \"numpy\" or \"torch\", found {array!r}")
    if array == "numpy" and device != "cpu":
        raise InputError(f"device: expected \"cpu\" for arrays of NumPy, found {device!r}")
    source, line, c = source_of(dtype), ctypes.create_string_buffer(LINE), CSet()
    loaded = library()
    status = loaded.mpsim_judge_inputs(byref(c), row.encode("ascii", "replace"), None if source is None else byref(source.c),
                                       _threads.pool(), line, LINE)
    refuse(status, line)
    try:
        kind = kinds()[c.kind]
        arrays = {text(c.array[i].role): _array(c.array[i], kind in ("cast", "arith"), array, device) for i in range(c.arrays)}
        return Inputs(kind, row, arrays, _classes(c))
    finally:
        loaded.mpsim_judge_set_clear(byref(c))


# ---- what a kernel gives ----

def here(x: Any) -> Any:
    """A tensor on a device, in memory."""
    torch = sys.modules.get("torch")
    return x.detach().cpu() if torch is not None and torch.is_tensor(x) and not x.is_cpu else x


def _is_codes(x: Any) -> bool:
    """Integers of a byte, or numbers of at most 8 bits."""
    item = getattr(x, "itemsize", None) or getattr(getattr(x, "dtype", None), "itemsize", 8)
    return item == 1


_ROLES = {"cast": ("y",), "product": ("d",), "attention": ("o", "lse")}


def results(kind: str, given: Any) -> dict[str, Any]:
    """The roles of what a kernel has returned: an array, a tuple of arrays, or a dict by roles."""
    if isinstance(given, Mapping):
        return {role: here(x) for role, x in given.items()}
    several = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    roles = _ROLES.get(kind) or (("codes", "scales") if len(several) > 1 or _is_codes(several[0]) else ("y",))
    if len(several) > len(roles):
        raise InputError(f"{kind}: expected a kernel that returns {' and '.join(roles)}, or a dict by roles, found {len(several)} results")
    return {role: here(x) for role, x in zip(roles, several)}
