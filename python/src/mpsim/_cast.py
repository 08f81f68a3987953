"""Rounding arrays to formats, and the codes of their numbers."""
from __future__ import annotations

import functools
from ctypes import byref, c_int, c_uint8
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from ._arrays import F32, F64, Given, of_any, on_device, pointer, put, room_of
from ._error import InputError, flag_of, name_of, real_of, shown, unknown
from ._formats import Format, find
from ._library import STOCHASTIC, CRounding, at, check, lib, text
from ._loops import ENCODE, ROUND, Loops
from ._random import Random, words_of
from ._room import SMALL, empty, like
from ._typing import Mode, Overflow, T

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typing import Array, Casting, Codes, Floats, Listed

NDARRAY = np.ndarray
WITH_WORDS = {(False, True): lib.mpsim_round_array_f32, (False, False): lib.mpsim_round_array_f64,
              (True, True): lib.mpsim_encode_array_f32, (True, False): lib.mpsim_encode_array_f64}  # codes?, binary32?
MODES = tuple(text(lib.mpsim_round_mode_name(i)) for i in range(9))
PRESETS = tuple(text(lib.mpsim_preset_at(i).contents.name) for i in range(lib.mpsim_preset_count()))


class Plan:
    """A format and how numbers become numbers of it, ready for the library."""

    __slots__ = ("format", "rounding", "f", "r", "stochastic", "single", "code_dtype")

    def __init__(self, format: Format, rounding: CRounding) -> None:
        self.format, self.rounding = format, rounding
        self.f, self.r = format.ref, at(rounding)
        self.stochastic = rounding.mode >= STOCHASTIC
        self.single = format.value_dtype is F32 or format.value_dtype == F32
        self.code_dtype = format.code_dtype


def set_mode(r: CRounding, mode: str) -> None:
    number, bits = c_int(), c_uint8(r.sr_bits)
    if lib.mpsim_round_mode_parse(byref(number), byref(bits), name_of(mode, "rounding mode")):
        raise unknown("rounding mode", mode, MODES)
    r.mode, r.sr_bits = number.value, bits.value


@functools.lru_cache(maxsize=1024)
def plan_of(name: Union[str, Format], mode: Optional[str], scale: float, preset: Optional[str], overflow: Optional[str],
            flush_subnormals: bool, flush_inputs: bool, source: str) -> Plan:
    """`source`: the format that the numbers come from, for presets and flushing."""
    format, r = find(name), CRounding()
    lib.mpsim_rounding_init(byref(r), 0)
    if preset is not None:
        row = lib.mpsim_preset_find(name_of(preset, "preset"))
        if not row:
            raise unknown("preset", preset, PRESETS)
        lib.mpsim_rounding_preset_from(byref(r), row, format.c, find(source).c)
    if mode is not None:
        set_mode(r, mode)
    if overflow is not None:
        if overflow not in ("inf", "saturate"):
            raise InputError(f"overflow is 'inf' or 'saturate', not {shown(overflow)}")
        r.overflow = int(overflow == "saturate")
    r.flush_output, r.flush_input = flag_of(flush_subnormals, "flush_subnormals"), flag_of(flush_inputs, "flush_inputs")
    if flush_inputs:
        r.flush_below = find(source).min_normal
    r.scale = real_of(scale, "scale")
    if lib.mpsim_rounding_check(byref(r)):
        raise InputError(f"scale: expected a finite number larger than 0, found {scale}")
    return Plan(format, r)


def _unhashable(error: TypeError, **given: Any) -> Exception:
    """Of what a plan is looked up by, what can be no key."""
    for name, value in given.items():
        try:
            hash(value)
        except TypeError:
            what = "a number" if name == "scale" else "True or False" if name.startswith("flush") else "a name"
            return InputError(f"{name}: expected {what}, found {type(value).__name__}")
    return error


@functools.lru_cache(maxsize=1024)
def loops_of(to_codes: bool, name: Union[str, Format], mode: Optional[str], scale: float, preset: Optional[str],
             overflow: Optional[str], flush_subnormals: bool, flush_inputs: bool, source: Optional[str]) -> Optional[Loops]:
    """The ufunc of a cast, of binary32 and binary64; None where elements need random words.

    source: as of `plan_of`; None: the format of the elements."""
    loops = []
    for dtype, wide, own in ((F32, 0, "binary32"), (F64, 1, "binary64")):
        plan = plan_of(name, mode, scale, preset, overflow, flush_subnormals, flush_inputs, source or own)
        if plan.stochastic:
            return None
        if to_codes:
            loops.append((ENCODE + wide, dtype, plan.code_dtype, plan.format.c, plan.rounding))
        elif wide or plan.single:
            loops.append((ROUND + wide, dtype, dtype, plan.format.c, plan.rounding))
    return Loops(loops)


@overload
def round(x: float, format: Union[str, Format], mode: Optional[Mode] = None, **how: Unpack[Casting]) -> float: ...
@overload
def round(x: np.generic, format: Union[str, Format], mode: Optional[Mode] = None, **how: Unpack[Casting]) -> np.floating[Any]: ...
@overload
def round(x: Listed, format: Union[str, Format], mode: Optional[Mode] = None, *, out: Optional[Array] = None,
          **how: Unpack[Casting]) -> Floats: ...
@overload
def round(x: T, format: Union[str, Format], mode: Optional[Mode] = None, *, out: Optional[T] = None, **how: Unpack[Casting]) -> T: ...


def round(x: Any, format: Union[str, Format], mode: Optional[Mode] = None, *, scale: float = 1.0, rng: Optional[Random] = None,
          seed: Optional[int] = None, stream: Optional[int] = None, index: Optional[int] = None, preset: Optional[str] = None,
          overflow: Optional[Overflow] = None, flush_subnormals: bool = False, flush_inputs: bool = False, out: Any = None) -> Any:
    """`x * scale` rounded once to a format; the result is not divided by the scale again.

    x: numbers of any shape, in an array of NumPy, ml_dtypes, torch or JAX, also on a CUDA device, a list or a number. Where a number of the
        format may not be one of x's dtype, the result is float32 or float64.
    format: its name, or one of `mpsim.formats`.
    mode: "nearest-even" (default, or the preset's), "nearest-away", "toward-zero", "up", "down", "to-odd", or
        "stochastic-a", "-b", "-c", with ":N" of N random bits.
    scale: x is multiplied by it first, exactly; any positive number.
    rng: an `mpsim.Random`, which gives stochastic modes new random words at each call.
    seed, stream, index: or their address: element i takes the word of index + i in that stream, the same at each call.
    preset: what overflow, infinity and NaN become, as a framework or device does it: see `mpsim.presets`.
    overflow: "inf" or "saturate", instead of the preset's.
    flush_subnormals, flush_inputs: subnormal results, or subnormal inputs of x's dtype, become zero.
    out: an array of the result's kind, shape and dtype, which gets the result and is returned; it may be x.

    >>> mpsim.round(np.array([0.3, 300.0, 500.0], np.float32), "e4m3")
    array([  0.3125, 288.    ,      nan], dtype=float32)
    >>> mpsim.round(500.0, "e4m3", overflow="saturate")
    448.0
    >>> mpsim.round([1.1] * 6, "e4m3", "stochastic-c", seed=7)
    array([1.125, 1.125, 1.   , 1.   , 1.125, 1.125])
    """
    return _cast(x, False, format, mode, scale, (rng, seed, stream, index), preset, overflow, flush_subnormals, flush_inputs, out)


@overload
def encode(x: float, format: Union[str, Format], mode: Optional[Mode] = None, **how: Unpack[Casting]) -> int: ...
@overload
def encode(x: np.generic, format: Union[str, Format], mode: Optional[Mode] = None,
           **how: Unpack[Casting]) -> np.unsignedinteger[Any]: ...
@overload
def encode(x: Listed, format: Union[str, Format], mode: Optional[Mode] = None, *, out: Optional[Array] = None,
           **how: Unpack[Casting]) -> Codes: ...
@overload
def encode(x: T, format: Union[str, Format], mode: Optional[Mode] = None, *, out: Optional[T] = None, **how: Unpack[Casting]) -> T: ...


def encode(x: Any, format: Union[str, Format], mode: Optional[Mode] = None, *, scale: float = 1.0, rng: Optional[Random] = None,
           seed: Optional[int] = None, stream: Optional[int] = None, index: Optional[int] = None, preset: Optional[str] = None,
           overflow: Optional[Overflow] = None, flush_subnormals: bool = False, flush_inputs: bool = False, out: Any = None) -> Any:
    """The codes of `x * scale` rounded to a format: unsigned integers of 8, 16, 32 or 64 bits, in the shape of x.

    The arguments are those of `round`. A code narrower than its integer lies in its low bits.

    >>> mpsim.encode(np.array([1.0, -448.0, 0.001], np.float32), "e4m3")
    array([ 56, 254,   1], dtype=uint8)
    """
    return _cast(x, True, format, mode, scale, (rng, seed, stream, index), preset, overflow, flush_subnormals, flush_inputs, out)


def _cast(x: Any, to_codes: bool, format: Union[str, Format], mode: Optional[str], scale: float, words: tuple[Any, Any, Any, Any],
          preset: Optional[str], overflow: Optional[str], flush_subnormals: bool, flush_inputs: bool, out: Any) -> Any:
    """round and encode. What is common comes first, straight: arrays of float32 or float64 without gaps."""
    try:
        if type(x) is NDARRAY and ((dtype := x.dtype) is F32 or dtype is F64) and x.ndim and x.flags.forc:
            loops = loops_of(to_codes, format, mode, scale, preset, overflow, flush_subnormals, flush_inputs, None)
            if loops is not None:
                if out is None:
                    return loops.call(x) if x.size <= SMALL else loops.call(x, like(x, loops.result_of(dtype)))
                if type(out) is NDARRAY and out.dtype is loops.result_of(dtype) and out.shape == x.shape and out.flags.writeable:
                    return loops.call(x, out)
        there = on_device(x, "encode" if to_codes else "round")
        if there is not None:
            source = there.format.name if there.format else "binary64"
            plan = plan_of(format, mode, scale, preset, overflow, flush_subnormals, flush_inputs, source)
            from . import _doors

            result = _doors.cast(there, to_codes, plan, words)
            return result if out is None else put(out, result)
        given = of_any(x, "encode" if to_codes else "round")
        source = given.format.name if given.format else "binary64"
        loops = loops_of(to_codes, format, mode, scale, preset, overflow, flush_subnormals, flush_inputs, source)
        plan = plan_of(format, mode, scale, preset, overflow, flush_subnormals, flush_inputs, source)
    except TypeError as error:
        raise _unhashable(error, format=format, mode=mode, scale=scale, preset=preset, overflow=overflow,
                          flush_subnormals=flush_subnormals, flush_inputs=flush_inputs) from None
    a = given.floats("encode" if to_codes else "round")
    if loops is None:
        y = _with_words(a, to_codes, plan, words)
    else:
        as_they_are = to_codes or not given.raw and given.array.dtype in (F32, F64)  # else of the user's narrower dtype
        room = room_of(out, given, a.shape, loops.result_of(a.dtype)) if out is not None and as_they_are else None
        if room is None and a.size > SMALL:
            y = loops.call(a, like(a, loops.result_of(a.dtype)))
        else:
            y = np.asarray(loops.call(a, room))
        if room is not None:
            return out
    result = given.give(y) if to_codes else given.give_values(y, plan.format)
    return result if out is None else put(out, result)


def _with_words(a: Any, to_codes: bool, plan: Plan, words: tuple[Any, Any, Any, Any]) -> Any:
    """A contiguous array cast with random words."""
    single = a.dtype is F32
    if single and not plan.single and not to_codes:
        a, single = a.astype(F64), False
    rng = words_of(*words, a.size)
    y: Any = empty(a.shape, plan.code_dtype if to_codes else a.dtype)
    check(WITH_WORDS[to_codes, single](plan.f, plan.r, byref(rng), pointer(y), pointer(a), a.size, None), "cast")
    return y


def _codes(given: Given, format: Format) -> Any:
    """The elements as codes: integers that are codes, or the bits of an array of the format's own dtype."""
    a = given.array
    if given.raw or a.dtype.kind not in "iu":
        if given.format is None or given.format.bits != format.bits:
            raise InputError(f"decode: expected codes of {format.bits} bits or an array of {format}, found "
                             f"numbers of {given.format}")
        return np.asarray(a, order="C").view(format.code_dtype)
    if a.dtype.itemsize == format.code_dtype.itemsize:
        a = np.asarray(a, order="C").view(format.code_dtype)
    if a.size and (int(a.max()) >> format.bits or int(a.min()) < 0):
        raise InputError(f"decode: expected codes of {format.bits} bits, 0 to {2**format.bits - 1}, "
                         f"found {a.min()} to {a.max()}")
    return np.asarray(a, format.code_dtype, order="C")


def _integers(codes: Any) -> Any:
    """Integers of Python's, bytes among them, as an array."""
    if isinstance(codes, (bytes, bytearray)):
        return np.frombuffer(codes, np.uint8)
    try:
        array = np.asarray(codes)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"decode: expected integers: {error}") from None
    if array.size == 0 and array.dtype == F64:
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise InputError("decode: expected integers of at most 64 bits, found "
                         + (f"{codes!r:.40}" if isinstance(codes, (float, int)) else f"a list of {array.dtype}"))
    return array


@overload
def decode(codes: int, format: Union[str, Format]) -> float: ...
@overload
def decode(codes: np.generic, format: Union[str, Format, None] = None) -> np.floating[Any]: ...
@overload
def decode(codes: Union[Listed, bytes, bytearray], format: Union[str, Format, None] = None, *, out: Optional[Array] = None) -> Floats: ...
@overload
def decode(codes: T, format: Union[str, Format, None] = None, *, out: Optional[T] = None) -> T: ...


def decode(codes: Any, format: Union[str, Format, None] = None, *, out: Any = None) -> Any:
    """The values of codes, exactly: float32, or float64 where that has not all numbers of the format.

    codes: integers of any shape, bytes, or an array of a dtype that has the format's codes (float8_e4m3fn of ml_dtypes or
        torch, as its bits); torch and JAX give theirs back.
    format: its name; may be left out where the dtype says it.
    out: as of `round`.

    >>> mpsim.decode(np.array([56, 254, 1, 127], np.uint8), "e4m3")
    array([ 1.000000e+00, -4.480000e+02,  1.953125e-03,           nan],
          dtype=float32)
    """
    if type(codes) is NDARRAY and format is not None and codes.ndim and codes.flags.forc:  # the common case
        f = find(format)
        if codes.dtype is f.code_dtype and f.bits == 8 * codes.itemsize:
            if out is None:
                return f.decoder()(codes) if codes.size <= SMALL else f.decoder()(codes, like(codes, f.value_dtype))
            if type(out) is NDARRAY and out.dtype is f.value_dtype and out.shape == codes.shape and out.flags.writeable:
                return f.decoder()(codes, out)
    there = on_device(codes, "decode")
    if there is not None:
        if format is None and there.format is None:
            raise InputError("decode: expected the name of a format beside integers")
        from . import _doors

        result = _doors.decode(there, find(there.format if format is None else format))
        return result if out is None else put(out, result)
    given = of_any(_integers(codes) if isinstance(codes, (float, int, list, tuple, range, bytes, bytearray)) else codes, "decode")
    if isinstance(codes, int):
        given.kind = "number"
    if format is None and given.format is None:
        raise InputError("decode: expected the name of a format beside integers")
    f = find(given.format if format is None else format)  # type: ignore[arg-type]
    result = given.give(f.values_of(_codes(given, f)))
    return result if out is None else put(out, result)
