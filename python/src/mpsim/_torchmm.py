"""Products of bf16 and fp16 matrices as torch computes them on a CPU (mpsim/torchmm.h)."""
from __future__ import annotations

import functools
from ctypes import addressof
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from ._arrays import address, put
from ._dot import Operand, _result
from ._error import InputError, name_of, unknown
from ._formats import Format
from ._library import ENOTFOUND, ERANGE, CMatrix, CTorchMM, check, lib
from ._threads import pool
from ._typing import T

if TYPE_CHECKING:
    from ._typing import Array, Floats, Listed

WORDS = ("avx512 or amx; threads=N; left-transposed, right-transposed; part=N, chunk=N, tiles=32 or equal")


@functools.lru_cache(maxsize=256)
def _like(like: str, as_bytes: bytes) -> CTorchMM:
    product = CTorchMM()
    status = lib.mpsim_torch_mm_parse(product, as_bytes)
    if status == ENOTFOUND:
        raise unknown("product", like, ("torch-mm:avx512", "torch-mm:amx"))
    if status:
        raise InputError(f"product '{like}': a word is none, comes twice or does not fit the others; the words are {WORDS}")
    return product


@overload
def torch_mm(a: Listed, b: Any, *, like: str, format: Union[str, Format, None] = None, out: Optional[Array] = None) -> Floats: ...
@overload
def torch_mm(a: T, b: Any, *, like: str, format: Union[str, Format, None] = None, out: Optional[T] = None) -> T: ...


def torch_mm(a: Any, b: Any, *, like: str, format: Union[str, Format, None] = None, out: Any = None) -> Any:
    """`a @ b` of bf16 or fp16 matrices as torch computes it on an x86 CPU with instructions for them, whole, rounded to their format.

    a: (..., m, k); b: (..., k, n). The dimensions before the last two are broadcast; each product is one of its own.
    like: "torch-mm:avx512" or "torch-mm:amx" with words: threads=N, the threads that torch has; left-transposed and right-transposed,
        how the operands lie in torch; part=N, chunk=N, tiles=32 or equal, how the depth is cut. doc/howto/match-a-library-product.md.
    format: bf16 or fp16, which both are rounded to first; None: they are of it.
    The result is of a's kind, as float32. out: as of `round`.

    >>> a = np.full((2, 32, 1500), 0.1, np.float32)
    >>> mpsim.torch_mm(a, np.ones((1500, 24), np.float32), like="torch-mm:avx512", format="bf16")[:, 0, 0]
    array([150., 150.], dtype=float32)
    """
    product = _like(like, name_of(like, "product"))
    p, q = Operand(a, format, "torch_mm"), Operand(b, format, "torch_mm")
    (rows, depth), (depth_b, columns) = _matrix(p.codes), _matrix(q.codes)
    if depth != depth_b:
        raise InputError(f"torch_mm: expected matrices of m x k and k x n, found {rows} x {depth} and {depth_b} x {columns}")
    try:
        outer = np.broadcast_shapes(p.codes.shape[:-2], q.codes.shape[:-2])
    except ValueError:
        raise InputError(f"torch_mm: expected shapes that can be broadcast, found {p.codes.shape} and {q.codes.shape}") from None
    d: Any = np.empty((*outer, rows, columns), p.format.code_dtype)
    left, right = (CMatrix(addressof(x.format.c), 0, x.codes.shape[-1], 0) for x in (p, q))
    steps = zip(_places(p.codes, outer), _places(q.codes, outer))
    at, size = address(d), rows * columns * d.itemsize
    for i, (left.codes, right.codes) in enumerate(steps):
        status = lib.mpsim_torch_mm_run(product, rows, columns, depth, left, right, at + i * size, pool())
        if status == ERANGE:
            raise InputError(f"torch_mm: '{like}' is not known for {p.format} and {q.format}, {rows} x {depth} x {columns}; it takes two "
                             f"operands of bf16 or of fp16, and amx threads=N, or words that say how the depth is cut")
        check(status, "torch_mm")
    result = p.given.give(_result(d, p.format))
    return result if out is None else put(out, result)


def _matrix(codes: Any) -> tuple[int, int]:
    if codes.ndim < 2:
        raise InputError(f"torch_mm: expected matrices, or stacks of them, found shape {codes.shape}")
    return codes.shape[-2], codes.shape[-1]


def _places(codes: Any, outer: tuple[int, ...]) -> Any:
    """Where the matrices of a contiguous array begin, in the order of the stack."""
    n = int(np.prod(codes.shape[:-2], dtype=np.int64))
    numbers = np.broadcast_to(np.arange(n).reshape(codes.shape[:-2]), outer)
    first, size = address(codes), codes.shape[-2] * codes.shape[-1] * codes.itemsize
    return (first + int(i) * size for i in numbers.ravel())
