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


def conv_native(core: Any, x: Any, weight: Any, kind: str, groups: int, transposed: bool, stride: Any) -> Optional[str]:
    """Why a convolution, or a gradient of it, is torch's own; None: its order is known, or it is not torch's step that is emulated."""
    if not core.as_torch:
        return None
    if x.dtype != torch.bfloat16 or weight.dtype != torch.bfloat16:
        return f"convolutions of {str(x.dtype)[6:]} have no fixed order in torch"
    if kind == "wgrad" and torch.get_num_threads() != 1:
        return "the order of a convolution's weight gradient depends on torch's threads; torch.set_num_threads(1) has a known one"
    if kind == "dgrad" and any(s != 1 for s in stride):
        return "the order of a convolution's data gradient under a stride is not known"
    taps = 1
    for n in weight.shape[2:]:
        taps *= n
    if taps == 1 or groups != 1 or transposed or weight.dim() != 4:
        return "the order of convolutions of one tap, in groups, transposed or not of two dimensions is not known"
    return None


# ---- oneDNN's weight gradient of a convolution of two dimensions, in one thread ----

COLUMNS = 28  # of a row, that a chain of oneDNN's takes
BLOCK = 16  # channels
CACHED, MOST = 48 * 1024, 128 * 1024  # bytes of rows of one block of channels that a sum over rows takes


def weight_chunks(x: Any, weight: Any, dy: Any, stride: Any, padding: Any, dilation: Any, last: bool) -> Optional[tuple[int, int]]:
    """The model's chunk and what rows are filled up to (Geometry's row_multiple); None: not known.

    A chain takes up to 28 columns of a row. From 128 channels on, where the result is as large as what is read, it takes all rows of an
    image, or blocks of them that stay in a cache.
    """
    channels, outputs, sizes, kernel, out = x.shape[1], weight.shape[0], x.shape[2:], weight.shape[2:], dy.shape[2:]
    behind = [max(0, (o - 1) * s + k - n - p) for o, s, k, n, p in zip(out, stride, kernel, sizes, padding)]
    first = channels < BLOCK
    if (first and not last and outputs % BLOCK or any(d > 1 for d in dilation) or kernel[1] > (24 if first else 14)
            or any(2 * p > k for p, k in zip(padding, kernel)) or first and out[1] > COLUMNS and kernel[1] > out[1]):
        return None
    even = out[1] + out[1] % 2
    padded = channels if last else -(-channels // BLOCK) * BLOCK
    pad = max(padding[1], behind[1] + 1)
    row = 2 * BLOCK * (sizes[1] + pad + pad % 2 + (sizes[1] + pad + pad % 2) % 2 + even)
    least = max(1, padding[0], behind[0])
    if (padded < 128 or tuple(sizes) != tuple(out) or 1 in kernel or any(s != 1 for s in stride)
            or any(p != k // 2 for p, k in zip(padding, kernel)) or row * least > CACHED):
        return min(COLUMNS, even), min(COLUMNS, even)
    rows = _rows(out[0], row, least)
    return (rows * even, 2) if rows and out[0] % rows == 0 else None


def _rows(rows: int, size: int, least: int) -> int:
    """Rows of a block: all, or their number divided by its smallest factors until they stay in a cache; 0: not known."""
    n = rows
    while rows * size > MOST and n > 1 and n * size > CACHED:
        n //= next((i for i in (2, 3, 5) if n % i == 0), n + 1)
    return max(least, n) if n else 0
