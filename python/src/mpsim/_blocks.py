"""Block formats: codes with scales."""
from __future__ import annotations

import functools
from ctypes import byref, c_float, c_size_t, c_uint, create_string_buffer
from typing import Any, Optional

import numpy as np

from ._arrays import F32, Given, address, of_any, pointer
from ._cast import words_of
from ._error import InputError, name_of, real_of, unknown
from ._formats import Format, find
from ._library import EINVAL, STOCHASTIC, CBlocks, CRecipe, check, lib, text

RECIPES = tuple(text(lib.mpsim_block_at(i).contents.name) for i in range(lib.mpsim_block_count()))


def recipe_of(name: str) -> tuple[CRecipe, int]:
    """A recipe and the size of the groups of its Hadamard transform, 0 for none."""
    return _parse(name, name_of(name, "block recipe"))


@functools.lru_cache(maxsize=256)
def _parse(name: str, as_bytes: bytes) -> tuple[CRecipe, int]:
    recipe, transform, error = CRecipe(), c_uint(), create_string_buffer(200)
    status = lib.mpsim_block_parse(byref(recipe), byref(transform), as_bytes, error, len(error))
    if status == EINVAL:
        raise InputError(f"block recipe '{name}': {error.value.decode()}")
    if status:
        raise unknown("block recipe", name, RECIPES)
    return recipe, transform.value


HADAMARD = "quantize: the Hadamard transform"


class Quantized:
    """A quantised array: what `quantize` gives.

    recipe: its name in one spelling.
    codes: the code of each element, uint8, in the shape of the array.
    values: what the elements stand for, float32 (of torch and JAX theirs), in the shape of the array.
    scales: what the number of a code is multiplied by, float32, per block; of NVFP4 with the scale of the tensor in it.
    scale_codes: the scales as they are stored, E8M0 or E4M3 codes as uint8, per block; None where scales are binary32.
    tensor_scale: NVFP4's scale of the whole array, a float; 1 for others.
    element: the format of the codes, one of `mpsim.formats`.
    nbytes: of the packed elements and all scales.

    With ":rht" codes, values and scales are those of the transformed array.

    Blocks are counted along the rows: scales has the shape (..., rows of blocks, blocks in a row); with axis
    "columns" its last two dimensions are those of the array.
    """

    __slots__ = ("recipe", "element", "codes", "values", "scales", "scale_codes", "tensor_scale", "nbytes")
    recipe: str
    element: Format
    codes: Any
    values: Any
    scales: Any
    scale_codes: Any
    tensor_scale: float
    nbytes: int

    def __repr__(self) -> str:
        return f"<mpsim.Quantized: {self.recipe}, shape {tuple(self.codes.shape)}, {self.nbytes} bytes>"


def _matrix(given: Given, columns: bool, transform: int) -> Any:
    """The elements as binary32, rounded to it where they are wider; blocks lie along the last dimension."""
    a = given.floats("quantize")
    if a.ndim == 0:
        raise InputError("quantize: expected an array of at least one dimension, found a number")
    if columns and a.ndim < 2:
        raise InputError("quantize: expected an array of at least two dimensions for axis 'columns', found one")
    single = a
    if a.dtype is not F32:
        with np.errstate(over="ignore"):
            single = a.astype(F32)
    if columns:
        single = np.ascontiguousarray(np.swapaxes(single.reshape(-1, a.shape[-1]), 0, 1))
    if transform:
        single = single.copy() if single is a or np.shares_memory(single, given.array) else single
        width = single.shape[-1]
        if width % transform == 0:  # groups end where rows do
            check(lib.mpsim_hadamard_groups(pointer(single), single.size, transform, 0), HADAMARD)
        else:
            for row in single.reshape(-1, width):
                check(lib.mpsim_hadamard_groups(pointer(row), width, transform, 0), HADAMARD)
    return single


def quantize(x: Any, recipe: str, *, axis: str = "rows", amax: Optional[float] = None, given: float = 1.0,
             seed: int = 0, stream: int = 0, index: int = 0) -> Quantized:
    """Codes and scales of an array under a block recipe, and what they stand for.

    x: numbers of at least one dimension; an array of several is a matrix whose rows are its last dimension. Numbers
        wider than binary32 are rounded to it first.
    recipe: a name of `mpsim.recipes`, or e4m3/1x128 and its kind, with words as in "mxfp8:rceil"; doc/blocks.md.
    axis: whether blocks lie along "rows" (the last dimension) or "columns".
    amax: NVFP4: the largest magnitude of the tensor that x is a part of; None: of x.
    given: the scale of recipes that are given one (delayed scaling; MS-AMP: the scale so far).
    seed, stream, index: random bits of recipes with ":sr", as of `round`.

    >>> q = mpsim.quantize(np.array([[0.25, -3.0, 7.0, 0.01] * 8], np.float32), "mxfp4")
    >>> q.codes[0, :4], q.scales, q.nbytes
    (array([ 0, 13,  7,  0], dtype=uint8), array([[1.]], dtype=float32), 17)
    >>> q.values[0, :4]
    array([ 0., -3.,  6.,  0.], dtype=float32)
    """
    if axis not in ("rows", "columns"):
        raise InputError(f"quantize: axis is 'rows' or 'columns', not {axis!r}")
    columns = axis == "columns"
    largest = -1.0 if amax is None else real_of(amax, "amax")
    if amax is not None and not 0 <= largest < float("inf"):
        raise InputError(f"amax: expected a finite number from 0 on, found {amax}")
    factor = real_of(given, "given")
    if not 0 < factor < float("inf"):
        raise InputError(f"given: expected a finite number larger than 0, found {given}")
    source = of_any(x, "quantize")
    c, transform = recipe_of(recipe)
    a = _matrix(source, columns, transform)
    width = a.shape[-1]
    height = a.size // width if width else 0
    rows, cols = c_size_t(), c_size_t()
    lib.mpsim_block_grid(byref(c), height, width, byref(rows), byref(cols))
    grid = (rows.value, cols.value)
    codes: Any = np.empty(a.shape, np.uint8)
    values: Any = np.empty(a.shape, F32)
    inverses: Any = np.empty(grid, F32)
    scale_codes: Any = np.empty(grid, np.uint8) if _has_scale_codes(c) else None
    out = CBlocks(address(codes), address(values), None if scale_codes is None else address(scale_codes), None,
                  address(inverses))
    tensor_scale = c_float(1.0)
    rng = byref(words_of(seed, stream, index)) if c.element_mode >= STOCHASTIC else None
    check(lib.mpsim_block_quantize(c, pointer(a), height, width, largest, factor, rng, out, tensor_scale), f"quantize '{recipe}'")
    q = Quantized()
    q.recipe, q.element = text(c.name), find(text(c.element))
    q.nbytes = lib.mpsim_block_bytes(byref(c), height, width)
    q.tensor_scale = tensor_scale.value
    shape = source.array.shape
    if columns:
        codes, values = codes.T, values.T
    # blocks within rows keep the dimensions before them
    blocks = shape[:-1] + grid[1:] if c.block_rows == 1 and not columns else grid
    q.codes, q.values = source.give(codes.reshape(shape)), source.give(values.reshape(shape))
    q.scales, q.scale_codes = (
        None if each is None else source.give(each.T if columns else each.reshape(blocks)) for each in (inverses, scale_codes))
    return q


BINARY32_RULES = (6, 7, 8, 11, 17)  # AMAX_TE, AMAX_TORCHAO, MSAMP, GIVEN, AMAX_DEEPSEEK


def _has_scale_codes(c: CRecipe) -> bool:
    return c.rule not in BINARY32_RULES
