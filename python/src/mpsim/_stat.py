"""The report of stat in this process: lib/include/mpsim/report.h, of libmpsim-trace.

Arrays are read where they lie, at any strides; only what a safetensors file does not hold is converted first, to the
float32 or float64 that mpsim.open would give.
"""
from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from . import _cuda
from ._arrays import F64, of_any
from ._error import Error, FileError, InputError
from ._formats import find
from ._library import EINVAL, ENOMEM, ENOTFOUND, EUNAVAILABLE, OK, lib
from ._open import EDATA, EIO, LINE, COption
from ._open import library as of_files
from ._options import path_of
from ._statistics import CCast

# the dtypes of safetensors, by format
STORED = {"binary64": "F64", "binary32": "F32", "fp16": "F16", "bf16": "BF16", "e4m3": "F8_E4M3", "e5m2": "F8_E5M2",
          "e8m0": "F8_E8M0"}


class CArray(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("format", c_void_p), ("data", c_void_p), ("shape", POINTER(c_uint64)),
                ("strides", POINTER(c_int64)), ("dimensions", c_size_t)]


STRUCTURES = {"mpsim_array": CArray}
PROGRESS = CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)
COUNT = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p, c_size_t, c_uint, c_void_p, c_void_p, c_void_p)
LARGE = 1 << 20  # bytes of arrays: from here a thread works, so that signals are handled meanwhile
PAUSE = 0.05     # seconds between two looks at how far it is
KEPT = 4         # objects that an array is while it is read


@functools.lru_cache(maxsize=None)
def library() -> Any:
    loaded = of_files()
    question = [POINTER(COption), c_size_t, PROGRESS, c_void_p, c_char_p, c_size_t]
    prototypes: dict[str, tuple[Any, list[Any]]] = {
        "stat_files": (c_int, [POINTER(c_void_p), POINTER(c_char_p), c_size_t, *question]),
        "stat_arrays": (c_int, [POINTER(c_void_p), POINTER(CArray), c_size_t, *question]),
        "stat_counted": (c_int, [POINTER(c_void_p), POINTER(CArray), c_size_t, POINTER(COption), c_size_t, COUNT, c_void_p, c_char_p,
                                 c_size_t]),
        "report_free": (None, [c_void_p]), "report_json": (c_void_p, [c_void_p, POINTER(c_size_t)]),
        "report_text": (c_void_p, [c_void_p, POINTER(c_size_t)]), "report_note": (c_char_p, [c_void_p, c_size_t]),
        "report_code": (c_int, [c_void_p])}
    for name, (restype, argtypes) in prototypes.items():
        function = getattr(loaded, "mpsim_" + name)
        function.restype, function.argtypes = restype, argtypes
    return loaded


# ---- arrays


def named(arrays: Any) -> Mapping[str, Any]:
    """Arrays by their names, each a text."""
    given = arrays if isinstance(arrays, Mapping) else {"array": arrays}
    for name in given:
        if not isinstance(name, str):
            raise InputError(f"expected names of arrays as keys, found {name!r}")
    return given


def as_stored(x: Any, name: str) -> tuple[Any, str]:
    """The elements of an array as a safetensors file holds them, and its dtype there: those of the array itself, if that can be."""
    given = of_any(x, f"array '{name}'")
    kind = STORED.get(given.format.name) if given.format else None
    if kind:
        a = given.array
        return (a if a.dtype.isnative else a.astype(a.dtype.newbyteorder("="))), kind
    a = given.floats(f"array '{name}'").reshape(given.array.shape)
    return a, "F64" if a.dtype == F64 else "F32"


FORMATS = {dtype: format for format, dtype in STORED.items()}


def _name(name: str) -> bytes:
    try:
        encoded = name.encode()
    except UnicodeEncodeError:
        raise InputError(f"expected a name of Unicode, found {name!r}") from None
    if b"\0" in encoded:
        raise InputError(f"expected a name without a zero byte, found {name!r}")
    return encoded


def _fill(to: CArray, name: str, x: Any, kept: list[Any]) -> None:
    a, dtype = as_stored(x, name)
    a = np.asarray(a)
    to.name = _name(name)
    format = find(FORMATS[dtype])
    n = a.ndim
    shape, strides = (c_uint64 * n)(*a.shape), (c_int64 * n)(*a.strides)
    to.format, to.data, to.dimensions = ctypes.addressof(format.c), a.ctypes.data if a.size else None, n
    to.shape, to.strides = shape, strides
    kept += [a, format, shape, strides]


# ---- arrays on a device


def _there(x: Any) -> Optional[_cuda.Lying]:
    """An array that libmpsim-cuda may count where it lies; None: as any other."""
    lying = _cuda.of_any(x)
    return lying if lying and lying.format.name in STORED and lying.format.bits <= 32 and _cuda.library() else None


def _here(x: Any) -> Any:
    """A tensor of torch on a device, copied to memory; all else as it is."""
    return x.cpu() if _cuda.of_any(x) and hasattr(x, "cpu") else x


def _ask_there(arrays: Mapping[str, Any], words: Sequence[str]) -> Optional[Answer]:
    """The report of arrays of which a device holds some, which counts them. None: it cannot count all that is asked."""
    kept: list[Any] = []
    lying = [_there(x) for x in arrays.values()]
    given = (CArray * len(arrays))()
    for to, there, (name, x) in zip(given, lying, arrays.items()):
        if there is None:
            _fill(to, name, np.ascontiguousarray(as_stored(_here(x), name)[0]), kept)
            continue
        shape = (c_uint64 * len(there.shape))(*there.shape)
        to.name, to.format, to.data = _name(name), ctypes.addressof(there.format.c), there.address or None
        to.dimensions, to.shape = len(shape), shape
        kept.append(shape)
    counters: dict[tuple[int, bytes, int], _cuda.Counter] = {}
    raised: list[BaseException] = []

    def count(context: Any, i: int, casts: Any, n: int, want: int, *to: Any) -> int:
        try:
            there = lying[i]
            if there is None:
                return _count_here(given[i], casts, n, want, to)
            key = there.device, ctypes.string_at(casts, n * ctypes.sizeof(CCast)) if n else b"", want
            if key not in counters:
                counters[key] = _cuda.Counter(casts, n, want, there.device)
            if not counters[key].can(there.format):
                return EUNAVAILABLE
            counters[key].read(counters[key].count(there), *to)
            return OK
        except BaseException as error:  # ctypes would print it
            raised.append(error)
            return EIO

    def call(report: Any, options: Any, line: Any) -> int:
        status: int = library().mpsim_stat_counted(report, given, len(given), options, len(words), COUNT(count), None, line, LINE)
        if raised:
            raise raised[0]
        return status

    return _answer(words, call, EUNAVAILABLE)


def _answer(words: Sequence[str], call: Callable[[Any, Any, Any], int], passed: int = OK) -> Optional[Answer]:
    """What a function of the library reports, which `call` calls. None: its status is the one that is passed over."""
    report, line = c_void_p(), ctypes.create_string_buffer(LINE)
    try:
        status = call(byref(report), _options(words), line)
        if status and status == passed:
            return None
        if status:
            _refuse(status, line.value.decode(errors="replace"))
        return Answer(report)
    finally:
        library().mpsim_report_free(report)


def _count_here(a: CArray, casts: Any, n: int, want: int, to: Any) -> int:
    """An array in memory, beside others that are not; one element behind the other."""
    summary = lib.mpsim_summary_new()
    try:
        return (lib.mpsim_summary_begin(summary, casts, n, want)
                or lib.mpsim_summary_add_codes(summary, a.format, None, a.data, math.prod(a.shape[:a.dimensions]))
                or lib.mpsim_summary_read(summary, *to)) if summary else ENOMEM
    finally:
        lib.mpsim_summary_free(summary)


# ---- the call


class Answer:
    """What a report is: its JSON, the program's table and lines, its exit code."""

    def __init__(self, report: Any) -> None:
        loaded, n = library(), c_size_t()

        def text(function: Any) -> bytes:
            at = function(report, byref(n))
            return ctypes.string_at(at, n.value)

        self.json, self.table = text(loaded.mpsim_report_json), text(loaded.mpsim_report_text)
        self.code: int = loaded.mpsim_report_code(report)
        self.lines: list[str] = []
        while (line := loaded.mpsim_report_note(report, len(self.lines))) is not None:
            self.lines.append("mpsim: " + line.decode(errors="replace"))


def _side_by_side(call: Callable[[Any], int], progress: Optional[Callable[[int, int], Any]]) -> int:
    """A call that may take long, by a thread, so that this one learns of signals: handlers run in no other. What is raised
    meanwhile, by a handler or by `progress`, ends the call."""
    said, told, stop, status = (0, 0), (0, 0), False, 0

    def ask(context: Any, done: int, total: int) -> int:
        nonlocal said
        said = done, total
        return stop

    def work() -> None:
        nonlocal status
        status = call(PROGRESS(ask))

    thread = threading.Thread(target=work, name="mpsim", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(PAUSE)
            if progress and said != told:
                told = said
                progress(*told)
    except BaseException:
        stop = True
        thread.join()
        raise
    return status


def _options(words: Sequence[str]) -> Any:
    options = (COption * len(words))()
    for option, word in zip(options, words):
        name, _, value = word[2:].partition("=")
        option.name, option.value = name.encode(), os.fsencode(value) if "=" in word else b"1"
    return options


def _refuse(status: int, line: str) -> None:
    if status == ENOMEM:
        raise MemoryError(line)
    raise (InputError if status in (EINVAL, ENOTFOUND, EDATA) else FileError if status == EIO else Error)("mpsim: " + line)


def ask(inputs: Sequence[Any], words: Sequence[str], are_paths: bool,
        progress: Optional[Callable[[int, int], Any]] = None) -> Answer:
    """The report of paths, or of the one array or dict of arrays there is."""
    kept: list[Any] = []
    size = LARGE
    if are_paths:
        given: Any = (c_char_p * len(inputs))(*(os.fsencode(path_of(each)) for each in inputs))
        function = library().mpsim_stat_files
    else:
        arrays = named(inputs[0])
        if any(_there(x) for x in arrays.values()):
            answer = _ask_there(arrays, words)
            if answer:
                return answer
            arrays = {name: _here(x) for name, x in arrays.items()}
        given = (CArray * len(arrays))()
        for to, (name, x) in zip(given, arrays.items()):
            _fill(to, name, x, kept)
        size = sum(each.nbytes for each in kept[::KEPT])
        function = library().mpsim_stat_arrays

    def call(report: Any, options: Any, line: Any) -> int:
        def run(ask: Any) -> int:
            status: int = function(report, given, len(given), options, len(words), ask, None, line, LINE)
            return status

        return run(PROGRESS()) if size < LARGE and not progress else _side_by_side(run, progress)

    answer = _answer(words, call)
    assert answer is not None
    return answer
