"""Block formats: codes with scales."""
from __future__ import annotations

import functools
from ctypes import byref, c_float, c_size_t, c_uint, create_string_buffer
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, overload

import numpy as np

from ._arrays import F32, Given, address, of_any, on_device, pointer
from ._error import InputError, integer_of, name_of, real_of, shown, unknown
from ._formats import Format, find
from ._library import EINVAL, STOCHASTIC, CBlocks, CRecipe, check, lib, text
from ._random import Random, words_of
from ._room import empty
from ._typing import Axis, T

if TYPE_CHECKING:
    from ._typing import Array, Listed

A = TypeVar("A")

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


class Quantized(Generic[A]):
    """A quantised array: what `quantize` gives.

    recipe: its name in one spelling.
    shape: of the array.
    codes: the code of each element, uint8, in the shape of the array.
    values: what the elements stand for, float32 (of torch and JAX theirs), in the shape of the array.
    scales: what the number of a code is multiplied by, float32, per block; of NVFP4 with the scale of the tensor in it.
    scale_codes: the scales as they are stored, E8M0 or E4M3 codes as uint8, per block; None where scales are binary32.
    tensor_scale: NVFP4's scale of the whole array, a float; 1 for others.
    element: the format of the codes, one of `mpsim.formats`.
    nbytes: of the packed elements and all scales.

    dequantize() gives the array back, as values, or with ":rht", where codes, values and scales are those of the transformed
    array, transformed back. np.asarray() of this object is the same.

    Blocks are counted along the rows: scales has the shape (..., rows of blocks, blocks in a row); with axis
    "columns" its last two dimensions are those of the array.
    """

    __slots__ = ("recipe", "element", "codes", "values", "scales", "scale_codes", "tensor_scale", "nbytes", "_columns", "_transform")
    recipe: str
    element: Format
    codes: A
    values: A
    scales: A
    scale_codes: Optional[A]
    tensor_scale: float
    nbytes: int
    _columns: bool
    _transform: int

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.codes.shape)  # type: ignore[attr-defined]

    def dequantize(self) -> A:
        """What codes and scales stand for, in the shape of the array, as float32.

        >>> x = np.float32([[0.25, -3.0, 7.0, 0.01] * 8])
        >>> q = mpsim.quantize(x, "mxfp8:rht32")
        >>> bool(abs(q.dequantize() - x).max() < 0.5), bool(abs(q.values - x).max() < 0.5)
        (True, False)
        """
        if on_device(self.values, "dequantize") is not None:
            return self.values
        given = of_any(self.values, "dequantize")
        a = given.floats("dequantize").copy()
        if self._transform and a.size:
            a = _turned(a) if self._columns else a
            _transformed(a, self._transform, lib.mpsim_hadamard_groups_back)
            a = (a.T if self._columns else a).reshape(self.shape)
        return given.give(np.ascontiguousarray(a))  # type: ignore[no-any-return]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("quantised numbers are made when they are asked for: copy=False cannot be had")
        a = np.asarray(self.dequantize())
        return a if dtype is None else a.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"<mpsim.Quantized: {self.recipe}, shape {self.shape}, {self.nbytes} bytes>"


def _turned(a: Any) -> Any:
    """A matrix by its columns."""
    return np.ascontiguousarray(a.reshape(-1, a.shape[-1]).T) if a.size else np.empty(a.shape[-1:] + (a.size // (a.shape[-1] or 1),), a.dtype)


def _transformed(a: Any, group: int, function: Any) -> None:
    """The Hadamard transform of groups along the rows of a contiguous array, in place; groups end where rows do."""
    width = a.shape[-1]
    for part in [a] if width % group == 0 else a.reshape(-1, width):
        check(function(pointer(part), part.size, group, 0), "quantize: the Hadamard transform")


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
        single = _turned(single)
    if transform and single.size:
        single = single.copy() if single is a or np.shares_memory(single, given.array) else single
        _transformed(single, transform, lib.mpsim_hadamard_groups)
    return single


def _by_columns(axis: Any, dimensions: int) -> bool:
    """Whether blocks lie along columns. By number: of the last dimension rows; of the first of two columns."""
    number = integer_of(axis)
    if number is not None:
        if number in (-1, dimensions - 1):
            return False
        if dimensions == 2 and number in (-2, 0):
            return True
        raise InputError(f"quantize: axis: expected -1, the last dimension, or of a matrix -2, found {number} for {dimensions} dimensions")
    if not isinstance(axis, str) or axis not in ("rows", "columns"):
        raise InputError(f"quantize: axis is 'rows' or 'columns', or a number, not {shown(axis)}")
    return axis == "columns"


@overload
def quantize(x: Listed, recipe: str, *, axis: Axis = "rows", amax: Optional[float] = None, given: float = 1.0,
             rng: Optional[Random] = None, seed: Optional[int] = None, stream: Optional[int] = None,
             index: Optional[int] = None) -> Quantized[Array]: ...
@overload
def quantize(x: T, recipe: str, *, axis: Axis = "rows", amax: Optional[float] = None, given: float = 1.0,
             rng: Optional[Random] = None, seed: Optional[int] = None, stream: Optional[int] = None,
             index: Optional[int] = None) -> Quantized[T]: ...


def quantize(x: Any, recipe: str, *, axis: Axis = "rows", amax: Optional[float] = None, given: float = 1.0,
             rng: Optional[Random] = None, seed: Optional[int] = None, stream: Optional[int] = None,
             index: Optional[int] = None) -> Quantized[Any]:
    """Codes and scales of an array under a block recipe, and what they stand for.

    x: numbers of at least one dimension; an array of several is a matrix whose rows are its last dimension. Numbers
        wider than binary32 are rounded to it first.
    recipe: a name of `mpsim.recipes`, or e4m3/1x128 and its kind, with words as in "mxfp8:rceil"; doc/explanations/blocks.md.
    axis: whether blocks lie along "rows" (the last dimension, also -1) or "columns" (of a matrix also -2 and 0).
    amax: NVFP4: the largest magnitude of the tensor that x is a part of; None: of x.
    given: the scale of recipes that are given one (delayed scaling; MS-AMP: the scale so far).
    rng, or seed, stream, index: random bits of recipes with ":sr", as of `round`.

    >>> q = mpsim.quantize(np.array([[0.25, -3.0, 7.0, 0.01] * 8], np.float32), "mxfp4")
    >>> q.codes[0, :4], q.scales, q.nbytes
    (array([ 0, 13,  7,  0], dtype=uint8), array([[1.]], dtype=float32), 17)
    >>> q.values[0, :4]
    array([ 0., -3.,  6.,  0.], dtype=float32)
    """
    largest = -1.0 if amax is None else real_of(amax, "amax")
    if amax is not None and not 0 <= largest < float("inf"):
        raise InputError(f"amax: expected a finite number from 0 on, found {amax}")
    factor = real_of(given, "given")
    if not 0 < factor < float("inf"):
        raise InputError(f"given: expected a finite number larger than 0, found {given}")
    c, transform = recipe_of(recipe)
    there = on_device(x, "quantize")
    if there is not None:
        from . import _doors

        made: Quantized[Any] = _doors.quantize(there, recipe, c, transform, _by_columns(axis, len(there.shape)), None if amax is None else largest, factor,
                                              (rng, seed, stream, index))
        return made
    source = of_any(x, "quantize")
    columns = _by_columns(axis, source.array.ndim)
    a = _matrix(source, columns, transform)
    width = a.shape[-1]
    height = a.size // width if width else 0
    rows, cols = c_size_t(), c_size_t()
    lib.mpsim_block_grid(byref(c), height, width, byref(rows), byref(cols))
    grid = (rows.value, cols.value)
    codes, values = empty(a.shape, np.uint8), empty(a.shape, F32)
    inverses: Any = np.empty(grid, F32)
    scale_codes: Any = np.empty(grid, np.uint8) if _has_scale_codes(c) else None
    out = CBlocks(address(codes), address(values), None if scale_codes is None else address(scale_codes), None,
                  address(inverses))
    tensor_scale = c_float(1.0)
    words = byref(words_of(rng, seed, stream, index, a.size)) if c.element_mode >= STOCHASTIC else None
    check(lib.mpsim_block_quantize(c, pointer(a), height, width, largest, factor, words, out, tensor_scale), f"quantize '{recipe}'")
    q: Quantized[Any] = Quantized()
    q._columns, q._transform = columns, transform
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


GIVEN_RULES = (8, 11)  # MSAMP, GIVEN
BINARY32_RULES = (6, 7, 8, 11, 17)  # AMAX_TE, AMAX_TORCHAO, MSAMP, GIVEN, AMAX_DEEPSEEK


def _has_scale_codes(c: CRecipe) -> bool:
    return c.rule not in BINARY32_RULES
