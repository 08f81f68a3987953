"""Products of stacks of matrices where they lie (mpsim/product.h): any strides, numbers rounded or put through a recipe as they
enter, sums by an accumulation model, one rounding to the format of the results, which go straight to their places.

    d, a, b = View.of(out), View.of(x), View.of(weight)
    multiply(d, (a, bf16), (b, bf16), "hopper-wgmma-bf16-fp32", bias=View.row(bias))

Both operands have the depth along their columns: b is columns x depth, as the weight of torch's linear is. `View.t()` turns.
"""
from __future__ import annotations

import struct
import threading
from ctypes import addressof, c_float, memset, sizeof
from typing import Any, Optional, Sequence, Union

from ._dot import model_of
from ._error import InputError, shown
from ._formats import Format, address_of, find, of_dtype
from ._library import ERANGE, STOCHASTIC, CEntered, CEntering, CEntryStats, COperand, CProduct, CRecipe, CRng, CStack, check, lib, text
from ._threads import pool

RANK = 8
MODES = {"nearest-even": 0, "nearest-away": 1, "toward-zero": 2}
USES = {"values": 0, "codes": 1, "scaled": 2, "numbers": 3}
_PACK = struct.Struct("=QQI4x8Q8q")  # mpsim_stack
_OPERAND = struct.Struct(_PACK.format + "QBB2xf6Q")  # mpsim_operand, but for `memory`
PRODUCT = struct.Struct("=5Qf4x3Qf4x3Q")  # mpsim_product
_MISSING = tuple((0,) * (RANK - n) for n in range(RANK + 1))  # the sizes or strides of the dimensions that a stack does not have
_formats: dict[Any, tuple[Format, int]] = {}


def _format_of(dtype: Any) -> tuple[Format, int]:
    """The format of a dtype of torch or NumPy, and the bytes of an element."""
    found = _formats.get(dtype)
    if found is None:
        name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
        format = of_dtype(name)
        if format is None:
            raise InputError(f"product: expected numbers of a floating-point dtype, found {name}")
        found = _formats[dtype] = (format, format.code_dtype.itemsize)
    return found


def format_of(dtype: Any) -> Format:
    """The format of a dtype of torch or NumPy."""
    return _format_of(dtype)[0]


class View:
    """A stack of matrices in memory.

    address: of the element whose indices are all 0. format: of the elements as they lie. shape: (..., rows, columns).
    strides: in elements, any, 0 where one element stands for all of a dimension. keep: the object that owns the memory.
    """

    __slots__ = ("address", "format", "shape", "strides", "keep", "_c", "_at")

    def __init__(self, address: int, format: Format, shape: Sequence[int], strides: Sequence[int], keep: Any = None) -> None:
        self.address, self.format, self.shape, self.strides, self.keep = address, format, shape, strides, keep
        self._c: Optional[CStack] = None
        self._at = 0

    @staticmethod
    def of(x: Any) -> View:
        """Of a tensor of torch or an array of NumPy, of 2 to 8 dimensions."""
        try:
            view = View(x.data_ptr(), _format_of(x.dtype)[0], x.shape, x.stride(), x)
        except AttributeError:
            format, size = _format_of(x.dtype)
            view = View(x.__array_interface__["data"][0], format, x.shape, [s // size for s in x.strides], x)
        if not 2 <= len(view.shape) <= RANK:
            raise InputError(f"product: expected 2 to {RANK} dimensions, found shape {tuple(view.shape)}")
        return view

    @staticmethod
    def row(x: Any) -> View:
        """Of one dimension: a row that serves all rows, as a bias does."""
        try:
            address, step = x.data_ptr(), x.stride()[0]
            format = _format_of(x.dtype)[0]
        except AttributeError:
            format, size = _format_of(x.dtype)
            address, step = x.__array_interface__["data"][0], x.strides[0] // size
        return View(address, format, (1, x.shape[0]), (0, step), x)

    def t(self) -> View:
        """Rows and columns exchanged, without a copy."""
        *h, rows, columns = self.shape  # a slice of a torch.Size costs half a microsecond
        *w, down, along = self.strides
        return View(self.address, self.format, (*h, columns, rows), (*w, along, down), self.keep)

    def at(self) -> int:
        """Where its mpsim_stack is."""
        if self._c is None:
            self._c = CStack()
            self._at = self.put(self._c, addressof(self._c))
        return self._at

    def put(self, c: CStack, at: int) -> int:
        """Its mpsim_stack goes to `c`, which is at `at`."""
        n = len(self.shape)
        rest = _MISSING[n]
        _PACK.pack_into(c, 0, address_of(self.format), self.address, n, *self.shape, *rest, *self.strides, *rest)
        return at

    def __repr__(self) -> str:
        return f"<View: {self.format}, shape {tuple(self.shape)}, strides {tuple(self.strides)}>"


class Entering:
    """How numbers enter a product: rounded to `format` (None: as they come), through the Hadamard transform in groups of so many along
    the columns (rounded to `format` again), then through a block recipe.

    rounding: of the first step. given: the scale of recipes that are given one, of MS-AMP the scale so far. rng: of recipes with random
    bits. blocks: what is multiplied of recipes with blocks: "values" as bf16; "codes", each block's sum times both factors
    ("promoted"); "scaled", codes with scale codes, for a model that takes them; "numbers", of any recipe, the float32 numbers that
    codes and scales stand for. promote: with "codes", the products that are
    promoted at once, which is the length of the blocks.
    """

    __slots__ = ("c", "at", "format", "recipe", "given", "rng", "keep")

    def __init__(self, format: Union[Format, str, None] = None, recipe: Optional[CRecipe] = None, rounding: str = "nearest-even",
                 given: Optional[float] = None, rng: Optional[CRng] = None, hadamard: int = 0, blocks: str = "values",
                 promote: int = 0) -> None:
        if rounding not in MODES:
            raise InputError(f"rounding: expected one of {', '.join(MODES)}, found {shown(rounding)}")
        if blocks not in USES:
            raise InputError(f"blocks: expected one of {', '.join(USES)}, found {shown(blocks)}")
        if promote and (recipe is None or recipe.block_cols != promote):
            raise InputError(f"promote: expected the length of the recipe's blocks, found {promote}")
        if recipe is not None and recipe.element_mode >= STOCHASTIC and rng is None:
            raise InputError(f"recipe {text(recipe.name)}: expected rng=, where its random bits come from")
        self.format = None if format is None else find(format)
        self.recipe, self.given, self.rng = recipe, given, rng
        if promote and blocks == "values":
            blocks = "codes"
        self.c = CEntering(0 if self.format is None else address_of(self.format), MODES[rounding], USES[blocks], hadamard,
                           0 if recipe is None else addressof(recipe), 1.0 if given is None else given)
        if rng is not None:
            self.c.rng = rng
        self.at = addressof(self.c)


class Counts(CEntered):
    """What a rounding did: finite numbers but zero (nonzero), those of them that became zero (lost), or are beyond the largest number
    (overflow), and results that are infinite or NaN (nonfinite). Calls add to it."""

    def add(self, *numbers: int) -> None:
        """Numbers in the order of the fields."""
        for field, n in zip(CEntered._fields_, numbers):
            setattr(self, field[0], getattr(self, field[0]) + n)

    @staticmethod
    def read(several: Sequence[Any]) -> list[list[int]]:
        """The fields of each."""
        return [[c.nonzero, c.lost, c.overflow, c.nonfinite] for c in several]

    @staticmethod
    def clear(several: Sequence[Any]) -> None:
        for c in several:
            memset(addressof(c), 0, sizeof(c))


class Operand:
    """Numbers as products read them, usable in several. amax: the largest magnitude of what the recipe was given."""

    __slots__ = ("c", "at", "amax", "counts", "view", "numbers", "_of")

    def __init__(self) -> None:
        self.c = COperand()
        self.at = addressof(self.c)
        self.amax = 0.0
        self.counts: Optional[Counts] = None
        self.view: Any = None
        self.numbers: Any = None  # as float32, for who multiplies them itself
        self._of: Any = None  # what owns the memory of a turned one

    @property
    def inverse(self) -> float:
        """Numbers stand for number * inverse."""
        return float(self.c.inverse)

    def t(self) -> Operand:
        """Rows and columns exchanged, without a copy; of operands with one scale."""
        turned = Operand()
        check(lib.mpsim_operand_turn(turned.at, self.at), "product: an operand with blocks cannot be turned")
        turned.amax, turned.counts, turned.view, turned._of = self.amax, self.counts, self.view, self
        return turned

    def __del__(self) -> None:
        if self._of is None and self.c.memory:
            lib.mpsim_operand_free(self.at)


def enter(view: View, entering: Entering, stats: Optional[Counts] = None, amax: bool = True) -> Operand:
    """Numbers as a product reads them; where nothing is to be done, those of the view where they lie.

    stats: Counts, to which it is added what the recipe, or without one the rounding, did. amax: whether the largest magnitude is wanted.
    """
    operand = Operand()
    operand.view = view, entering
    own = _own
    wanted = None
    amax = amax and entering.recipe is not None
    if amax or stats is not None:
        own.amax.value = 0.0
        own.stats.amax, own.stats.counts = own.amax_at if amax else None, None if stats is None else addressof(stats)
        wanted = own.stats_at
    operand.counts = stats
    status = lib.mpsim_operand_enter(operand.at, view.put(own.d, own.d_at), entering.at, wanted, pool())
    if status:
        _refuse(status, f"enter: {view!r}")
    if amax:
        operand.amax = own.amax.value
    return operand


Side = Union[Operand, "tuple[View, Optional[Format]]"]


class _Own(threading.local):
    """Structures that a thread uses again: their memory, and where that is."""

    def __init__(self) -> None:
        self.product, self.a, self.b, self.d = CProduct(), COperand(), COperand(), CStack()
        self.product_at, self.a_at, self.b_at, self.d_at = (addressof(c) for c in (self.product, self.a, self.b, self.d))
        self.stats, self.amax = CEntryStats(), c_float()
        self.stats_at, self.amax_at = addressof(self.stats), addressof(self.amax)


_own = _Own()


def _side(side: Any, own: COperand, at: int) -> int:
    """Where the operand is: `own`, which is at `at`, is filled for one that is rounded as it is read."""
    if side.__class__ is Operand:
        return int(side.at)
    read_in_place(side[0], side[1], own)
    return at


def read_in_place(view: View, format: Optional[Format], own: COperand) -> None:
    """The operand of numbers where they lie, rounded to nearest even as they are read."""
    shape, lies = view.shape, address_of(view.format)
    n = len(shape)
    rest = _MISSING[n]
    _OPERAND.pack_into(own, 0, lies, view.address, n, *shape, *rest, *view.strides, *rest, lies if format is None else address_of(format),
                       0, 0, 1.0, 0, 0, 0, 0, 0, 0)


def multiply(d: View, a: Side, b: Side, model: str, bias: Optional[View] = None, factor: float = 1.0, add: Optional[View] = None,
             rng: Optional[CRng] = None, counts: Optional[Counts] = None, *, format: Optional[Format] = None,
             start: Optional[View] = None, add_factor: float = 1.0, depth: int = 0) -> None:
    """d[s] = RN(a[s] b[s] * (a's inverse * b's inverse) * factor + bias + add * add_factor), for every matrix s of the stack d.

    a: rows x depth, b: columns x depth; each an Operand, or (View, Format or None): rounded to nearest even as it is read. model: of
    `mpsim.models`, or with changes. bias, add: of d's shape, or with ones; add may be d. start: the first value of the
    chains, in the format of the model's results. format: that results are rounded to, where d's elements lie in a
    wider one. rng: of models that round stochastically. counts: what the last rounding did. depth: 0, or so many products alone.
    """
    m = model_of(model)
    if m[2] and rng is None:
        raise InputError(f"model '{model}' rounds stochastically: expected rng=")
    own = _own
    PRODUCT.pack_into(own.product, 0, addressof(m[0]), _side(a, own.a, own.a_at), _side(b, own.b, own.b_at), d.put(own.d, own.d_at),
                       address_of(format), factor, 0 if start is None else start.at(),
                       0 if bias is None else bias.at(), 0 if add is None else add.at(), add_factor, depth,
                       0 if rng is None else addressof(rng), 0 if counts is None else addressof(counts))
    status = lib.mpsim_product_run(own.product_at, pool())
    if status:
        _refuse(status, f"multiply: {_said(a)} and {_said(b)} to {d!r} under model '{model}'")


def _said(side: Any) -> str:
    return f"an operand of {side.view[0]!r}" if isinstance(side, Operand) else repr(side[0])


def _refuse(status: int, what: str) -> None:
    if status == ERANGE:
        raise InputError(f"{what}: formats that cannot be taken")
    check(status, what)
