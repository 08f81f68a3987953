"""The largest error that a correct kernel of a row can have: mpsim_judge_tolerance_of of lib/include/mpsim/judge.h."""
from __future__ import annotations

import ctypes
import functools
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_size_t
from typing import Any

from ._error import InputError
from ._inputs import refuse, source_of
from ._judge import kinds, library as of_judges
from ._library import CFormat, text
from ._open import LINE

REASON = 640


class CTolerance(ctypes.Structure):
    _fields_ = [("kind", c_int), ("relative", c_double), ("absolute", c_double), ("scales", c_double), ("of", c_char * 64),
                ("reason", c_char * REASON)]


STRUCTURES = {"mpsim_judge_tolerance": CTolerance}


@functools.lru_cache(maxsize=None)
def library() -> Any:
    loaded = of_judges()
    loaded.mpsim_judge_tolerance_of.restype = c_int
    loaded.mpsim_judge_tolerance_of.argtypes = [POINTER(CTolerance), c_char_p, POINTER(CFormat), POINTER(CFormat), c_size_t, c_char_p, c_size_t]
    return loaded


class Tolerance:
    """A bound: |result - exact| is at most rtol times `of`, plus atol.

    kind: of the operation. scales: of a quantiser the largest error in units of the block's scale; else 0. reason: how the bound was
    computed, and for which inputs.
    """

    __slots__ = ("kind", "row", "rtol", "atol", "scales", "of", "reason")

    def __init__(self, row: str, c: CTolerance) -> None:
        self.kind, self.row, self.rtol, self.atol, self.scales = kinds()[c.kind], row, float(c.relative), float(c.absolute), float(c.scales)
        self.of, self.reason = text(c.of), text(c.reason)

    def __str__(self) -> str:
        return f"{self.kind} {self.row}: at most {self.rtol:g} * {self.of} + {self.atol:g}, because {self.reason}"

    def __repr__(self) -> str:
        return f"<Tolerance {self.row}: {self.rtol:g} * {self.of} + {self.atol:g}>"


def tolerance(row: str, depth: int, dtype: Any, to: Any) -> Tolerance:
    c, line = CTolerance(), ctypes.create_string_buffer(LINE)
    given, result = source_of(dtype), source_of(to)
    if not 0 <= depth < 2**40:
        raise InputError(f"depth: expected a number of products, found {depth}")
    refuse(library().mpsim_judge_tolerance_of(byref(c), row.encode("ascii", "replace"), None if given is None else byref(given.c),
                                              None if result is None else byref(result.c), depth, line, LINE), line)
    return Tolerance(row, c)
