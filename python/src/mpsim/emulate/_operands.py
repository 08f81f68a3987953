"""What a recipe made of an operand, for those who judge quantisers: codes, scales and values."""
from __future__ import annotations

from ctypes import POINTER, byref, c_float, c_size_t, c_ubyte, cast
from typing import Any

import numpy as np

from .._cast import round as round_array
from .._error import Error
from .._formats import find
from .._library import CBlocks, CFormat, CRng, check, lib, text
from .._product import USES, Operand, View

NUMBERS = USES["numbers"]



def array_of(view: View) -> Any:
    """The numbers of a view as float32, in rows: (rows of all matrices, columns)."""
    item = view.format.code_dtype.itemsize
    extent = 1 + sum(max(n - 1, 0) * s for n, s in zip(view.shape, view.strides))
    if 0 in view.shape:
        return np.zeros((0, view.shape[-1]), np.float32)
    raw = np.frombuffer((c_ubyte * (extent * item)).from_address(view.address), view.format.code_dtype)
    codes = np.lib.stride_tricks.as_strided(raw, view.shape, [s * item for s in view.strides])
    values = view.format.values_of(np.ascontiguousarray(codes))
    return np.ascontiguousarray(values, np.float32).reshape(-1, view.shape[-1])


def multiplied(operand: Operand) -> Any:
    """The numbers that a product multiplies, with the scale of the tensor, as float32; None: they are scaled by block."""
    c = operand.c
    if c.factors:
        return None
    stack = c.stack
    format = find(text(cast(stack.format, POINTER(CFormat)).contents.name))
    n = stack.rank
    view = View(stack.codes, format, tuple(stack.shape[:n]), tuple(stack.strides[:n]))
    return array_of(view) * np.float32(c.inverse)


def quantised(view: View, entering: Any, operand: Operand) -> dict[str, Any]:
    """input: as it came; codes, scales (codes of scales, or binary32 numbers that decode) and values of what the recipe was given, which is the
    input rounded and transformed. What the product multiplies is compared with them."""
    given = array_of(view)
    x = np.ascontiguousarray(round_array(given, entering.format) if entering.format is not None else given, np.float32)
    if entering.c.hadamard:
        for row in x:
            whole = np.ascontiguousarray(row)
            check(lib.mpsim_hadamard_groups((c_ubyte * whole.nbytes).from_buffer(whole.data), whole.size, entering.c.hadamard, 0), "hadamard")
            row[:] = whole
        x = np.ascontiguousarray(round_array(x, entering.format), np.float32)
    recipe, (rows, columns) = entering.recipe, x.shape
    grid = c_size_t(), c_size_t()
    lib.mpsim_block_grid(byref(recipe), rows, columns, byref(grid[0]), byref(grid[1]))
    blocks = grid[0].value, grid[1].value
    codes, values = np.empty(x.shape, np.uint8), np.empty(x.shape, np.float32)
    inverses, scale_codes = np.empty(blocks, np.float32), np.empty(blocks, np.uint8)
    out = CBlocks(*(a.__array_interface__["data"][0] for a in (codes, values, scale_codes)), None, inverses.__array_interface__["data"][0])
    rng = None if entering.rng is None else byref(CRng(entering.rng.seed, entering.rng.stream, entering.rng.index))
    tensor = c_float(1.0)
    check(lib.mpsim_block_quantize(byref(recipe), (c_ubyte * x.nbytes).from_buffer(x.data) if x.nbytes else None, rows, columns, -1.0,
                                   1.0 if entering.given is None else entering.given, rng, byref(out), byref(tensor)), "quantise")
    made = multiplied(operand)
    whole = recipe.block_cols == 0 and recipe.block_rows == 0  # the product multiplies codes, and sums by the inverse of the scale
    numbers = values  # as arch="torch" multiplies them
    if entering.c.use != NUMBERS:
        numbers = find(text(recipe.element)).values_of(codes) * np.float32(operand.c.inverse) if whole else round_array(values, "bf16")
    if made is not None and made.shape == x.shape and not np.array_equal(made, numbers, equal_nan=True):
        raise Error(f"recipe {text(recipe.name)}: a product multiplies other numbers than its codes and scales stand for")
    has_codes = bool(lib.mpsim_block_scale_format(byref(recipe)))
    return {"input": given, "given": x, "codes": codes, "scales": scale_codes if has_codes else inverses, "values": values,
            "tensor_scale": tensor.value, "recipe": text(recipe.name)}
