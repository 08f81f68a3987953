"""Dot products and matrix products as hardware and software add them."""
from __future__ import annotations

import functools
from ctypes import addressof, byref, c_uint64, pointer as to
from typing import Any, Optional, Union

import numpy as np

from ._arrays import F32, F64, Given, address, of_any, pointer
from ._error import InputError, name_of, real_of, unknown
from ._formats import Format, find
from ._library import ENOTFOUND, ERANGE, STOCHASTIC, CFormat, CMatrix, CModel, check, lib, text
from ._cast import encode, words_of


def _names() -> tuple[str, ...]:
    model, names = CModel(), []
    for i in range(lib.mpsim_model_count()):
        lib.mpsim_model_at(byref(model), i)
        names.append(text(model.name))
    return tuple(names)


MODELS = _names()


def model_of(name: str) -> tuple[CModel, Format, bool]:
    """A model, the format of its results, and whether it needs random bits."""
    return _parse(name, name_of(name, "model"))


@functools.lru_cache(maxsize=256)
def _parse(name: str, as_bytes: bytes) -> tuple[CModel, Format, bool]:
    model = CModel()
    status = lib.mpsim_model_parse(byref(model), as_bytes)
    if status == ENOTFOUND:
        raise unknown("accumulation model", name, MODELS)
    if status:
        raise InputError(f"accumulation model '{name}': a change is none, comes twice, or has no effect in it")
    places = (model.product, model.accumulator, model.outer, model.result)
    stochastic = any(place.rounding.mode >= STOCHASTIC for place in places)
    return model, Format(CFormat.from_buffer_copy(model.result.format)), stochastic


class Operand:
    """A matrix or vector as codes of a format."""

    __slots__ = ("codes", "format", "given")

    def __init__(self, x: Any, format: Union[str, Format, None], what: str) -> None:
        self.given: Given = of_any(x, what)
        own = self.given.format
        self.format = find(format) if format is not None else own if own is not None else find("binary64")
        a = self.given.array
        if self.given.raw and own is self.format:
            self.codes = np.asarray(a, order="C")
        elif own is not None and own is self.format and a.dtype.kind in "fV":
            self.codes = np.asarray(a, order="C").view(self.format.code_dtype)
        else:
            self.codes = encode(self.given.floats(what), self.format)

    def matrix(self, transposed: bool) -> CMatrix:
        return CMatrix(addressof(self.format.c), address(self.codes), self.codes.shape[1], int(transposed))


def _result(codes: Any, format: Format) -> Any:
    """The values of codes of a result, as float32 or float64."""
    if format.name == "binary32":
        return codes.view(F32)
    if format.name == "binary64":
        return codes.view(F64)
    return format.values_of(codes)


def _refused(status: int, what: str, model: str, a: Operand, b: Operand) -> None:
    if status == ERANGE:
        raise InputError(f"{what}: model '{model}' cannot take {a.format} and {b.format}")
    check(status, what)


def dot(a: Any, b: Any, model: str = "fma", *, c: float = 0.0, format: Union[str, Format, None] = None,
        seed: int = 0, stream: int = 0, index: int = 0) -> float:
    """`c` + the sum of a[i] * b[i] under an accumulation model, as a float.

    a, b: one-dimensional arrays of one length, of any kinds. Their formats are those of their dtypes, or:
    format: both are rounded to it first, to nearest even.
    model: a name of `mpsim.models`, or with changes: "fma:bf16", "hopper-wgmma-fp8-fp32:F=25"; doc/dot.md.
    c: the first value of the accumulator, rounded to the format of the result.
    seed, stream, index: random bits of models that round stochastically, as of `round`.

    >>> a, b = [1.0, -1.0, 0.001953125], [1.0, 1.0, 0.03125]
    >>> [mpsim.dot(a, b, m, format="e4m3") for m in ("exact", "hopper-wgmma-fp8-fp32")]
    [6.103515625e-05, 0.0]
    """
    m, result, stochastic = model_of(model)
    p, q = Operand(a, format, "dot"), Operand(b, format, "dot")
    if p.codes.ndim != 1 or p.codes.shape != q.codes.shape:
        raise InputError(f"dot: expected two arrays of one dimension and one length, found shapes "
                         f"{p.codes.shape} and {q.codes.shape}")
    d = c_uint64()
    rng = byref(words_of(seed, stream, index)) if stochastic else None
    start = encode(real_of(c, "c"), result)
    status = lib.mpsim_dot(m, p.format.c, pointer(p.codes), q.format.c, pointer(q.codes), p.codes.size, start,
                           rng, d)
    if status:
        _refused(status, "dot", model, p, q)
    return float(lib.mpsim_decode(result.c, d))


def gemm(a: Any, b: Any, c: Any = None, model: str = "fma", *, format: Union[str, Format, None] = None,
         transpose_a: bool = False, transpose_b: bool = False, seed: int = 0, stream: int = 0, index: int = 0) -> Any:
    """The matrix product `a @ b + c`, each element a dot product under an accumulation model.

    a: m x k, or k x m with transpose_a. b: k x n, or n x k with transpose_b. c: m x n, or None for zeros.
    Formats, model and random bits as of `dot`; c is rounded to the format of the result. The result is m x n, of a's
    kind (NumPy, torch, JAX), as float32, or float64 where that has not all numbers of the format.

    >>> a = np.ones((2, 64), np.float32)
    >>> mpsim.gemm(a, a, model="hopper-wgmma-fp8-fp32", format="e4m3", transpose_b=True)
    array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    m, result, stochastic = model_of(model)
    p, q = Operand(a, format, "gemm"), Operand(b, format, "gemm")
    if p.codes.ndim != 2 or q.codes.ndim != 2:
        raise InputError(f"gemm: expected two matrices, found shapes {p.codes.shape} and {q.codes.shape}")
    rows, depth = p.codes.shape[::-1] if transpose_a else p.codes.shape
    depth_b, columns = q.codes.shape[::-1] if transpose_b else q.codes.shape
    if depth != depth_b:
        raise InputError(f"gemm: expected matrices of m x k and k x n, found {rows} x {depth} and {depth_b} x {columns}")
    left, right = p.matrix(transpose_a), q.matrix(transpose_b)
    rng = byref(words_of(seed, stream, index)) if stochastic else None
    start: Optional[CMatrix] = None
    if c is not None:
        first = encode(of_any(c, "gemm").floats("gemm"), result)
        if first.shape != (rows, columns):
            raise InputError(f"gemm: expected c of {rows} x {columns}, found shape {first.shape}")
        start = CMatrix(addressof(result.c), address(first), columns, 0)
    d = np.empty((rows, columns), result.code_dtype)
    status = lib.mpsim_gemm(m, rows, columns, depth, byref(left), byref(right), start and to(start),
                            pointer(d), columns, rng, None)
    if status:
        _refused(status, "gemm", model, p, q)
    return p.given.give(_result(d, result))
