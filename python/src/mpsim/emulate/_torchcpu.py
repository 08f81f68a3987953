"""torch's own step on a CPU with bf16 instructions: products in the dtypes that come, by the rule of oneDNN (mpsim/torchmm.h).

What the rule does not reach runs natively, and the audit says so: products of binary32 numbers, of one row or column, and of 16^3
multiply-adds or fewer, for which torch does not call oneDNN.
"""
from __future__ import annotations

import functools
from ctypes import c_int, c_size_t
from typing import Any, Optional

import torch

from .._library import lib
from .._product import View, multiply
from ._products import FORMATS, Record

lib.mpsim_torch_mm_chunk.restype, lib.mpsim_torch_mm_chunk.argtypes = c_size_t, [c_size_t, c_int]
SMALL = 16**3


@functools.lru_cache(maxsize=None)
def chunked(base: str, depth: int, transposed: bool) -> str:
    """The model of a product of this depth."""
    chunk = lib.mpsim_torch_mm_chunk(depth, transposed)
    return f"{base}:chunk={chunk}" if chunk and chunk < depth else base


def known(base: str, a: Any, b: Any) -> Optional[str]:
    """Why a product is native; None: the rule has it."""
    if a.dtype != torch.bfloat16 or b.dtype != torch.bfloat16:
        return f"products of {str(a.dtype)[6:]} have no fixed order in torch"
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    if rows == 1 or columns == 1:
        return "products with a vector are not oneDNN's"
    if rows * depth * columns <= SMALL:
        return "products of 16^3 multiply-adds or fewer are not oneDNN's"
    return None


def natively(a: Any, b: Any, bias: Any, terms: dict[str, Any]) -> Any:
    """torch's own product with what is added to it."""
    c, beta, alpha = (bias, 1, 1) if bias is not None else (terms.get("add"), terms.get("add_factor", 1), terms.get("factor", 1))
    if c is None:
        return torch.matmul(a, b) if alpha == 1 else torch.matmul(a, b) * alpha
    return (torch.addmm if a.dim() == 2 else torch.baddbmm)(c, a, b, beta=beta, alpha=alpha)


def product(core: Any, record: Record, base: str, a: Any, b: Any, bias: Any, terms: dict[str, Any]) -> Any:
    """a b by the rule; the bias enters in the epilogue."""
    format = FORMATS[a.dtype]
    out = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=a.dtype)
    model = chunked(base, a.shape[-1], a.stride(-1) != 1)
    left, right, to = View.of(a), View.of(b).t(), View.of(out)
    if core.watchers:
        core.saw(record, "as torch", ("act", "weight", "out"), (left, right), ((left, None), (right, None)), (format, format), model, to, format)
    add = terms.get("add")
    multiply(to, (left, None), (right, None), model, bias=None if bias is None else View.row(bias.float()), factor=terms.get("factor", 1.0),
             add=None if add is None else View.of(add.expand(out.shape)), add_factor=terms.get("add_factor", 1.0), format=format)
    return out
