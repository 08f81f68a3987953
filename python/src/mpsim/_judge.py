"""Judgements of other programs' results: lib/include/mpsim/judge.h, of libmpsim-trace, which the first judgement loads."""
from __future__ import annotations

import ctypes
import functools
import json
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint64, c_void_p
from typing import Any, Optional

import numpy as np

from . import _threads
from ._arrays import address, of_any
from ._error import InputError
from ._library import CFormat, text
from ._open import LINE, _check, library as of_files

ROW, ROWS, PLACES, FINDINGS, TEXT = 128, 32, 8, 12, 256


class CArray(ctypes.Structure):
    _fields_ = [("role", c_char_p), ("format", c_void_p), ("codes", c_void_p), ("rows", c_size_t), ("columns", c_size_t)]


class CPlace(ctypes.Structure):
    _fields_ = [("row", c_size_t), ("column", c_size_t), ("found", c_uint64), ("expected", c_uint64), ("exact", c_double)]


class CFinding(ctypes.Structure):
    _fields_ = [("cause", c_char_p), ("text", c_char * TEXT), ("explains", c_uint64)]


class CJudgement(ctypes.Structure):
    _fields_ = [("role", c_char_p), ("format", CFormat), ("rows", c_size_t), ("columns", c_size_t), ("results", c_uint64),
                ("differ", c_uint64), ("row", c_char * ROW), ("nearest", c_char * ROW), ("nearest_differ", c_uint64), ("same", c_size_t),
                ("class_rows", c_char * ROW * ROWS), ("places", c_size_t), ("findings", c_size_t), ("place", CPlace * PLACES),
                ("finding", CFinding * FINDINGS)]


STRUCTURES = {"mpsim_judge_array": CArray, "mpsim_judge_place": CPlace, "mpsim_judge_finding": CFinding, "mpsim_judgement": CJudgement}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    loaded = of_files()
    loaded.mpsim_judge_kind_name.restype, loaded.mpsim_judge_kind_name.argtypes = c_char_p, [ctypes.c_uint]
    loaded.mpsim_judge.restype = c_int
    loaded.mpsim_judge.argtypes = [POINTER(CJudgement), c_int, POINTER(CArray), c_size_t, c_char_p, c_void_p, c_char_p, c_size_t]
    return loaded


@functools.lru_cache(maxsize=None)
def kinds() -> tuple[str, ...]:
    """The kinds of operations, in the order of their numbers."""
    names: list[str] = []
    while True:
        name = library().mpsim_judge_kind_name(len(names))
        if name is None:
            return tuple(names)
        names.append(text(name))


class Place:
    """A result that differs: its row and column, the bits found and expected, and these as numbers. exact: what was to be rounded; NaN
    where it is not one number of binary64."""

    __slots__ = ("row", "column", "found_code", "expected_code", "found", "expected", "exact")

    def __init__(self, c: CPlace, values: Any) -> None:
        self.row, self.column, self.exact = int(c.row), int(c.column), float(c.exact)
        self.found_code, self.expected_code = int(c.found), int(c.expected)
        self.found, self.expected = (float(v) for v in values)

    def __repr__(self) -> str:
        return f"<[{self.row}, {self.column}] found {self.found_code:#x} ({self.found:g}), expected {self.expected_code:#x} ({self.expected:g})>"


class Finding:
    """Something that results which differ have in common: a word, a sentence, and how many of them."""

    __slots__ = ("cause", "text", "explains")

    def __init__(self, c: CFinding) -> None:
        self.cause, self.text, self.explains = text(c.cause), text(c.text), int(c.explains)

    def __repr__(self) -> str:
        return f"<{self.cause}: {self.text}>"


class Judgement:
    """What mpsim.testing.judge says of results.

    equal: whether all are those of `row`, which is the row that was asked for, or the one with the fewest other results.
    results, differ: how many were compared, and how many are others. array: the one that places are of.
    same: rows that give the results of `row` for these inputs. nearest, nearest_differ: with `like`, another row that explains
    at least half of what differs; None where there is none.
    findings: what results that differ have in common, or of equal ones the order of their scales; places: the first that differ.
    """

    __slots__ = ("kind", "array", "row", "results", "differ", "nearest", "nearest_differ", "same", "findings", "places", "shape")

    def __init__(self, kind: str, c: CJudgement) -> None:
        self.kind, self.array, self.row = kind, text(c.role), text(c.row)
        self.results, self.differ = int(c.results), int(c.differ)
        self.nearest: Optional[str] = text(c.nearest) or None
        self.nearest_differ: Optional[int] = int(c.nearest_differ) if self.nearest else None
        self.shape = int(c.rows), int(c.columns)
        self.same = tuple(text(c.class_rows[i].value) for i in range(min(c.same, ROWS)))
        self.findings = tuple(Finding(c.finding[i]) for i in range(c.findings))
        self.places = tuple(Place(c.place[i], _values(c.format, c.place[i])) for i in range(c.places))

    @property
    def equal(self) -> bool:
        return self.differ == 0

    def found(self, cause: str) -> bool:
        """Whether a finding has this cause."""
        return any(f.cause == cause for f in self.findings)

    def __str__(self) -> str:
        if self.equal:
            also = [row for row in self.same if row != self.row]
            return f"{self.kind} {self.array}: {self.row}, equal in all {self.results:,} results" + \
                (f"\nthe same results for these inputs: {', '.join(also)}" if also else "") + \
                "".join(f"\n  {f.text}" for f in self.findings)
        lines = [f"{self.kind} {self.array}: {self.differ:,} of {self.results:,} results are not those of {self.row}"]
        if self.nearest:
            lines.append(f"{self.nearest} gives all results" if not self.nearest_differ else
                         f"nearest row: {self.nearest}, {self.nearest_differ:,} results differ")
        lines += [f"  {f.cause}: {f.text}" for f in self.findings] or ["  nothing that these results have in common is known"]
        lines += [f"  {p!r}" for p in self.places]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Judgement {self.row}: {'equal' if self.equal else f'{self.differ:,} of {self.results:,} differ'}>"

    @property
    def json(self) -> str:
        """The same as JSON."""
        return json.dumps({"kind": self.kind, "array": self.array, "row": self.row, "equal": self.equal, "results": self.results,
                           "differ": self.differ, "nearest": self.nearest, "nearest_differ": self.nearest_differ, "same": self.same,
                           "findings": [{"cause": f.cause, "text": f.text, "explains": f.explains} for f in self.findings]})


def _values(format: CFormat, place: CPlace) -> tuple[float, float]:
    from ._library import lib

    return lib.mpsim_decode(format, place.found), lib.mpsim_decode(format, place.expected)


class Side:
    """An array as the library reads it; `kept` is what owns its elements."""

    __slots__ = ("c", "kept")

    def __init__(self, role: str, x: Any) -> None:
        format, codes = _codes(x, role)
        columns = codes.shape[-1] if codes.ndim else 1
        rows = codes.size // columns if columns else 0
        self.kept = codes, format
        self.c = CArray(role.encode(), ctypes.addressof(format.c) if format is not None else None, address(codes), rows, columns)


def _codes(x: Any, role: str) -> tuple[Any, np.ndarray[Any, Any]]:
    """The format of an array's elements, None: bytes; and their codes."""
    given = of_any(x, role)
    array = np.ascontiguousarray(given.array)
    if given.format is None:
        if array.dtype.itemsize != 1:
            raise InputError(f"{role}: expected floating-point numbers, or codes as integers of 8 bits, found {array.dtype}")
        return None, array.view(np.uint8)
    return given.format, array.view(given.format.code_dtype)


def _heads(arrays: dict[str, Any]) -> dict[str, Any]:
    """Attention: how many matrices q and k have, where their shapes say so: [heads, tokens, size] and [batch, heads, tokens, size]."""
    shapes = [getattr(arrays.get(role), "shape", ()) for role in "qk"]
    if "heads" in arrays or any(len(shape) < 3 for shape in shapes):
        return arrays
    batches = [int(np.prod(shape[:-3], dtype=int)) for shape in shapes]
    heads = [np.prod(shape[:-2], dtype=int) for shape in shapes]
    return {**arrays, "heads": np.asarray([*heads, batches[0] if batches[0] == batches[1] else 1], np.float64)}


def judge(kind: str, like: Optional[str], arrays: dict[str, Any]) -> Judgement:
    names = kinds()
    if kind not in names:
        found = repr(kind) if isinstance(kind, str) else type(kind).__name__
        raise InputError(f"judge: expected an operation ({', '.join(names)}), found {found}")
    if kind == "attention":
        arrays = _heads(arrays)
    sides = [Side(role, x) for role, x in arrays.items() if x is not None]
    line, c = ctypes.create_string_buffer(LINE), CJudgement()
    status = library().mpsim_judge(byref(c), names.index(kind), (CArray * max(len(sides), 1))(*(s.c for s in sides)), len(sides),
                                   None if like is None else like.encode("ascii", "replace"), _threads.pool(), line, LINE)
    _check(status, line)
    return Judgement(kind, c)
