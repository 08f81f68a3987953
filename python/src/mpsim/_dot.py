"""Dot products and matrix products as hardware and software add them, and torch._scaled_mm's whole."""
from __future__ import annotations

import functools
from ctypes import addressof, byref, c_float, c_uint64, pointer as to
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from ._arrays import F32, F64, Given, address, of_any, on_device, pointer, put
from ._error import InputError, flag_of, name_of, real_of, unknown
from ._formats import Format, find
from ._library import ENOTFOUND, ERANGE, STOCHASTIC, CFormat, CMatrix, CModel, CScaledMM, check, lib, text
from ._cast import encode
from ._random import Random, words_of
from ._threads import pool
from ._typing import T

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typing import Adding, Array, Floats, Listed

ROUNDINGS = 2**32  # random words that lie between those of two elements


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


def _there(a: Any, b: Any, what: str) -> Any:
    """Both operands, if they are on a device; None: none is."""
    p, q = on_device(a, what), on_device(b, what)
    if (p is None) != (q is None):
        raise InputError(f"{what}: expected both operands on a device or both in memory")
    return None if p is None else (p, q)


def _judge(what: str, name: str, model: CModel, p: Operand, q: Operand) -> None:
    """Operands that the hardware of a row takes: others are rounded only if that is asked for."""
    accepted(what, name, model, p.format, q.format)


def accepted(what: str, name: str, model: CModel, a: Format, b: Format) -> None:
    """Refuses formats that the hardware of a row does not take."""
    if lib.mpsim_model_accepts(model, a.c, b.c):
        return
    taken = text(model.operands).split()
    raise InputError(f"{what}: model '{name}' multiplies {', '.join(taken)}, found {a} and {b}; format='{taken[0]}' rounds both "
                     f"to nearest even; for another rounding call mpsim.round(x, '{taken[0]}', MODE) first")


def _refused(status: int, what: str, model: str, a: Operand, b: Operand) -> None:
    if status == ERANGE:
        hint = "; format='e4m3' rounds both to nearest even" if what == "scaled_mm" else ""
        raise InputError(f"{what}: model '{model}' cannot take {a.format} and {b.format}{hint}")
    check(status, what)


def dot(a: Any, b: Any, model: str = "fma", *, c: float = 0.0, format: Union[str, Format, None] = None, rng: Optional[Random] = None,
        seed: Optional[int] = None, stream: Optional[int] = None, index: Optional[int] = None) -> float:
    """`c` + the sum of a[i] * b[i] under an accumulation model, as a float.

    a, b: one-dimensional arrays of one length, of any kinds. Their formats are those of their dtypes, or:
    format: both are rounded to it first, to nearest even. The row of a tensor core takes the formats of its hardware alone, and
        others are refused.
    model: a name of `mpsim.models`, or with changes: "fma:bf16", "hopper-wgmma-fp8-fp32:F=25"; doc/explanations/accumulation.md.
    c: the first value of the accumulator, rounded to the format of the result.
    rng, or seed, stream, index: random bits of models that round stochastically, as of `round`.

    >>> a, b = [1.0, -1.0, 0.001953125], [1.0, 1.0, 0.03125]
    >>> [mpsim.dot(a, b, m, format="e4m3") for m in ("exact", "hopper-wgmma-fp8-fp32")]
    [6.103515625e-05, 0.0]
    """
    m, result, stochastic = model_of(model)
    both = _there(a, b, "dot")
    if both is not None:
        from . import _doors

        return _doors.dot(both[0], both[1], model, format, real_of(c, "c"), (rng, seed, stream, index))
    p, q = Operand(a, format, "dot"), Operand(b, format, "dot")
    if p.codes.ndim != 1 or p.codes.shape != q.codes.shape:
        raise InputError(f"dot: expected two arrays of one dimension and one length, found shapes "
                         f"{p.codes.shape} and {q.codes.shape}")
    _judge("dot", model, m, p, q)
    d = c_uint64()
    words = byref(words_of(rng, seed, stream, index, ROUNDINGS)) if stochastic else None
    start = encode(real_of(c, "c"), result)
    status = lib.mpsim_dot(m, p.format.c, pointer(p.codes), q.format.c, pointer(q.codes), p.codes.size, start,
                           words, d)
    if status:
        _refused(status, "dot", model, p, q)
    return float(lib.mpsim_decode(result.c, d))


@overload
def gemm(a: Listed, b: Any, c: Any = None, model: str = "fma", *, out: Optional[Array] = None, **how: Unpack[Adding]) -> Floats: ...
@overload
def gemm(a: T, b: Any, c: Any = None, model: str = "fma", *, out: Optional[T] = None, **how: Unpack[Adding]) -> T: ...


def gemm(a: Any, b: Any, c: Any = None, model: str = "fma", *, format: Union[str, Format, None] = None,
         transpose_a: bool = False, transpose_b: bool = False, rng: Optional[Random] = None, seed: Optional[int] = None,
         stream: Optional[int] = None, index: Optional[int] = None, out: Any = None) -> Any:
    """The matrix product `a @ b + c`, each element a dot product under an accumulation model.

    a: m x k, or k x m with transpose_a. b: k x n, or n x k with transpose_b. c: m x n, or None for zeros.
    Formats, model and random bits as of `dot`; c is rounded to the format of the result. The result is m x n, of a's
    kind (NumPy, torch, JAX), as float32, or float64 where that has not all numbers of the format. out: as of `round`.

    >>> a = np.ones((2, 64), np.float32)
    >>> mpsim.gemm(a, a, model="hopper-wgmma-fp8-fp32", format="e4m3", transpose_b=True)
    array([[64., 64.],
           [64., 64.]], dtype=float32)
    """
    m, result, stochastic = model_of(model)
    transpose_a, transpose_b = flag_of(transpose_a, "transpose_a"), flag_of(transpose_b, "transpose_b")
    both = _there(a, b, "gemm")
    if both is not None:
        from . import _doors

        first = on_device(c, "gemm")
        if c is not None and first is None:
            raise InputError("gemm: expected c on the device, as a and b are")
        product = _doors.gemm(both[0], both[1], model, format, transpose_a, transpose_b, first, (rng, seed, stream, index))
        return product if out is None else put(out, product)
    p, q = Operand(a, format, "gemm"), Operand(b, format, "gemm")
    rows, columns, depth = _sizes(p, q, "gemm", transpose_a, transpose_b)
    _judge("gemm", model, m, p, q)
    left, right = p.matrix(transpose_a), q.matrix(transpose_b)
    words = byref(words_of(rng, seed, stream, index, ROUNDINGS * rows * columns)) if stochastic else None
    start: Optional[CMatrix] = None
    if c is not None:
        first = encode(of_any(c, "gemm").floats("gemm"), result)
        if first.shape != (rows, columns):
            raise InputError(f"gemm: expected c of {rows} x {columns}, found shape {first.shape}")
        start = CMatrix(addressof(result.c), address(first), columns, 0)
    d = np.empty((rows, columns), result.code_dtype)
    status = lib.mpsim_gemm(m, rows, columns, depth, byref(left), byref(right), start and to(start),
                            pointer(d), columns, words, pool())
    if status:
        _refused(status, "gemm", model, p, q)
    product = p.given.give(_result(d, result))
    return product if out is None else put(out, product)


def _sizes(p: Operand, q: Operand, what: str, transpose_a: bool, transpose_b: bool) -> tuple[int, int, int]:
    """Rows, columns and depth of a product."""
    if p.codes.ndim != 2 or q.codes.ndim != 2:
        raise InputError(f"{what}: expected two matrices, found shapes {p.codes.shape} and {q.codes.shape}")
    rows, depth = p.codes.shape[::-1] if transpose_a else p.codes.shape
    depth_b, columns = q.codes.shape[::-1] if transpose_b else q.codes.shape
    if depth != depth_b:
        raise InputError(
            f"{what}: expected matrices of m x k and k x n, found {rows} x {depth} and {depth_b} x {columns}")
    return rows, columns, depth


@functools.lru_cache(maxsize=256)
def _like(like: str, as_bytes: bytes) -> tuple[CScaledMM, Format]:
    """A product of a library, and the format of its results."""
    product = CScaledMM()
    status = lib.mpsim_scaled_mm_parse(byref(product), as_bytes)
    if status == ENOTFOUND:
        raise unknown("product", like, ("torch-scaled-mm",))
    if status:
        raise InputError(f"product '{like}': a word is none, comes twice or does not fit the others; the words are hopper, "
                         "ada; fast, slow; S=N; contiguous, serial, pairwise; out=FORMAT")
    if product.parts == 0:
        raise InputError(f"product '{like}': expected S=N, the number of parts that K is cut into; S=1 where cuBLASLt "
                         f"has no workspace")
    return product, Format(CFormat.from_buffer_copy(product.out))


@overload
def scaled_mm(a: Listed, b: Any, scale_a: float = 1.0, scale_b: float = 1.0, *, like: str, scale_result: Optional[float] = None,
              format: Union[str, Format, None] = None, transpose_a: bool = False, transpose_b: bool = False,
              out: Optional[Array] = None) -> Floats: ...
@overload
def scaled_mm(a: T, b: Any, scale_a: Any = 1.0, scale_b: Any = 1.0, *, like: str, scale_result: Optional[float] = None,
              format: Union[str, Format, None] = None, transpose_a: bool = False, transpose_b: bool = False,
              out: Optional[T] = None) -> T: ...


def scaled_mm(a: Any, b: Any, scale_a: Any = 1.0, scale_b: Any = 1.0, *, like: str,
              scale_result: Optional[float] = None, format: Union[str, Format, None] = None, transpose_a: bool = False,
              transpose_b: bool = False, out: Any = None) -> Any:
    """`a @ b * (scale_a * scale_b)` of fp8 operands as `torch._scaled_mm`, and so cuBLASLt, computes it, whole.

    a, b, format, transpose_a, transpose_b: as of `gemm`, in e4m3 or e5m2.
    scale_a, scale_b: what the numbers of a and b are multiplied by to be those that they stand for, as float32.
    like: "torch-scaled-mm" with words: hopper or ada; fast or slow (use_fast_accum); S=N, the parts that K is cut into,
        which must be said; serial or pairwise; out=bf16, fp16, binary32, e4m3 or e5m2 (out_dtype). doc/howto/match-a-library-product.md.
    scale_result: what results in e4m3 and e5m2 are multiplied by before they are rounded.
    The result is of a's kind, as float32. out: as of `round`.

    >>> a = np.full((1, 4096), 0.3, np.float32)
    >>> [mpsim.scaled_mm(a, a.T, like=f"torch-scaled-mm:{how}:S=1", format="e4m3").item() for how in ("fast", "slow")]
    [386.0, 400.0]
    """
    product, kept = _like(like, name_of(like, "product"))
    transpose_a, transpose_b = flag_of(transpose_a, "transpose_a"), flag_of(transpose_b, "transpose_b")
    p, q = Operand(a, format, "scaled_mm"), Operand(b, format, "scaled_mm")
    rows, columns, depth = _sizes(p, q, "scaled_mm", transpose_a, transpose_b)
    left, right = p.matrix(transpose_a), q.matrix(transpose_b)
    of_result: Optional[c_float] = None
    if scale_result is not None:
        if kept.bits != 8:
            raise InputError(f"scaled_mm: expected scale_result with results in e4m3 or e5m2, found {kept}")
        of_result = c_float(real_of(scale_result, "scale_result"))
    d = np.empty((rows, columns), kept.code_dtype)
    status = lib.mpsim_scaled_mm_run(product, rows, columns, depth, byref(left), byref(right), real_of(scale_a, "scale_a"),
                                     real_of(scale_b, "scale_b"), None if of_result is None else byref(of_result),
                                     pointer(d), pool())
    if status:
        _refused(status, "scaled_mm", like, p, q)
    result = p.given.give(_result(d, kept))
    return result if out is None else put(out, result)
