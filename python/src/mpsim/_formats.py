"""Number formats: mpsim.formats."""
from __future__ import annotations

import functools
from ctypes import POINTER, addressof, byref, cast
from typing import Any, Iterator, Mapping, Optional, Union

import numpy as np

from ._error import InputError, name_of
from ._library import PROGRAM, CFormat, at, lib, text
from ._loops import DECODE, Loops

CODES = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
TABLE_BITS = 16  # formats of at most so many bits list their codes


class Format:
    """A number format, of `mpsim.formats`.

    >>> f = mpsim.formats["e4m3"]
    >>> f.bits, f.exponent_bits, f.significand_bits, f.bias
    (8, 4, 3, 7)
    >>> f.max, f.min, f.min_normal, f.min_positive, f.eps
    (448.0, -448.0, 0.015625, 0.001953125, 0.125)

    name: its name in the table, or what was asked for.
    bits: of a code; exponent_bits and significand_bits: of its fields; bias: of the exponent.
    max: the largest finite number; min: the smallest one, -max where there is a sign.
    min_normal, min_positive: the smallest positive normal number, the smallest positive one.
    eps: from 1 to the next larger number.
    has_inf, has_nan, has_zero, signed: whether it has these.
    source: the document that it comes from.
    """

    __slots__ = ("c", "ref", "name", "bits", "exponent_bits", "significand_bits", "bias", "max", "min", "min_normal",
                 "min_positive", "eps", "has_inf", "has_nan", "has_zero", "signed", "source", "aliases", "code_dtype",
                 "value_dtype", "_loops", "__weakref__")

    def __init__(self, c: CFormat) -> None:
        """`c` must not change; nor does what is said of it: one object serves all who ask for the name."""
        self.c = c
        self.ref = at(c)
        self.name: str = text(c.name)
        self.aliases: tuple[str, ...] = tuple(text(c.aliases).split())
        self.bits: int = c.bits
        self.exponent_bits: int = c.ebits
        self.significand_bits: int = c.mbits
        self.bias: int = c.bias
        self.signed = bool(lib.mpsim_format_is_signed(c))
        self.has_inf, self.has_nan, self.has_zero = bool(c.inf), c.nan != 0, c.zero != 2
        self.max: float = lib.mpsim_format_max(c)
        self.min_normal: float = lib.mpsim_format_min_normal(c)
        self.min_positive: float = lib.mpsim_format_min_positive(c)
        self.min = -self.max if self.signed else 0.0 if self.has_zero else self.min_positive
        self.eps: float = lib.mpsim_format_epsilon(c)
        self.source: str = text(c.source)
        self.code_dtype: Any = CODES[lib.mpsim_format_code_bytes(c)]
        # the narrowest of binary32 and binary64 that has all its numbers
        single = _of_struct(b"binary32") if self.name != "binary32" else c
        self.value_dtype: Any = np.dtype(np.float32 if _within(c, single) else np.float64)
        self._loops: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_loops" and hasattr(self, name):
            raise AttributeError(f"{self!r}: {name} cannot be changed")
        object.__setattr__(self, name, value)

    def within(self, other: Union[str, Format]) -> bool:
        """Whether each number of this format is one of the other, too, which is a format or the name of one.

        >>> mpsim.formats["e4m3"].within(mpsim.formats["fp16"]), mpsim.formats["bf16"].within(mpsim.formats["fp16"])
        (True, False)
        """
        return _within(self.c, find(other).c)

    @property
    def codes(self) -> np.ndarray[Any, Any]:
        """All codes in ascending order, as an array of 2**bits unsigned integers; of formats of at most 16 bits.

        >>> mpsim.formats["e2m1"].codes
        array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15],
              dtype=uint8)
        """
        if self.bits > TABLE_BITS:
            raise InputError(f"codes: expected a format of at most 16 bits, found {self.name} with {self.bits}")
        return np.arange(1 << self.bits, dtype=np.uint32).astype(self.code_dtype)

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """The value of each code of `codes`, as float32, or float64 where that has not all numbers.

        >>> mpsim.formats["e2m1"].values[:8]
        array([0. , 0.5, 1. , 1.5, 2. , 3. , 4. , 6. ], dtype=float32)
        """
        values: np.ndarray[Any, Any] = self.values_of(self.codes)
        return values

    def decoder(self) -> Any:
        """The ufunc of code_dtype to value_dtype, made once."""
        if self._loops is None:
            kind = DECODE + (self.value_dtype.itemsize == 8)
            self._loops = Loops([(kind, self.code_dtype, self.value_dtype, self.c, None)])
        return self._loops.call

    def values_of(self, codes: Any) -> Any:
        """The values of an array of code_dtype."""
        return np.asarray(self.decoder()(codes))

    def __repr__(self) -> str:
        return f"mpsim.formats[{self.name!r}]"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return find, (self.name,)


def _within(a: CFormat, b: CFormat) -> bool:
    """Precision, the largest number and the grid of the smallest ones decide."""
    return bool(a.mbits <= b.mbits and lib.mpsim_format_max(a) <= lib.mpsim_format_max(b)
                and lib.mpsim_format_min_positive(a) >= lib.mpsim_format_min_positive(b)
                and lib.mpsim_format_is_signed(a) <= lib.mpsim_format_is_signed(b)
                and a.inf <= b.inf and (a.nan == 0 or b.nan != 0) and (a.zero == 2 or b.zero == 0 or a.zero == 1 == b.zero))


def _of_struct(name: bytes) -> CFormat:
    c = CFormat()
    lib.mpsim_format_parse(byref(c), name)
    return c


def _refused(name: str) -> InputError:
    """What the program says of a name that is no format."""
    import subprocess

    command = [PROGRAM, "formats", "--", name.encode("utf-8", "replace").decode()]
    line = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE).stderr.decode(errors="replace")
    return InputError(line.strip().replace("mpsim: formats: ", "") or f"unknown format '{name}'")


@functools.lru_cache(maxsize=None)
def _parse(name: str) -> Format:
    c = CFormat()
    status = lib.mpsim_format_parse(byref(c), name_of(name, "format"))
    if status:
        raise _refused(name)
    return Format(c)


def find(name: Union[str, Format]) -> Format:
    """The format of that name; the same object for the same name."""
    if isinstance(name, Format):
        return name
    if not isinstance(name, str):
        raise InputError(f"expected the name of a format or one of mpsim.formats, found {type(name).__name__}")
    return _parse(name)


@functools.lru_cache(maxsize=None)
def of_dtype(name: str) -> Any:
    """The format of a NumPy, ml_dtypes or torch dtype by its name; None for what is none."""
    row = lib.mpsim_format_find(name.encode())
    return _parse(text(row.contents.name)) if row else None


@functools.lru_cache(maxsize=None)
def _names() -> tuple[str, ...]:
    return tuple(text(lib.mpsim_format_at(i).contents.name) for i in range(lib.mpsim_format_count()))


class Formats(Mapping[str, Format]):
    """The formats by their names: those of the table in its order, and any other that a name says.

    A name is one of the table or an alias ("bfloat16", "float8_e4m3fn"), "binary8p3se" and its kind (IEEE P3109), or
    "e5m7:fn" and its kind: exponent bits, significand bits, options. See doc/explanations/formats.md.

    >>> mpsim.formats["e5m7:fn"].max
    130048.0
    >>> len(mpsim.formats) > 40 and "bf16" in mpsim.formats
    True
    """

    def __getitem__(self, name: Union[str, Format]) -> Format:
        return find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())

    def get(self, key: Any, default: Any = None) -> Any:
        """The format of a name, or `default` where it is none."""
        return find(key) if key in self else default

    def __contains__(self, name: object) -> bool:
        try:
            find(name)  # type: ignore[arg-type]
        except InputError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<mpsim.formats: {', '.join(_names())}>"


formats = Formats()


_addresses: dict[int, int] = {}
_kept: list[Format] = []


def address_of(format: Optional[Format]) -> int:
    """Where the structure of a format lies, 0 for None; formats that were asked for are kept for ever."""
    if format is None:
        return 0
    try:
        return _addresses[id(format)]
    except KeyError:
        _kept.append(format)
        return _addresses.setdefault(id(format), addressof(format.c))


def format_at(address: int) -> Format:
    """The format whose structure lies there."""
    return find(text(cast(address, POINTER(CFormat)).contents.name))
