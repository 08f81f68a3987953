"""The exceptions of mpsim: what was expected and what was found, in one line."""
from __future__ import annotations

import operator
from typing import Any, Iterable, Optional


class Error(Exception):
    """Anything that mpsim refuses or cannot do. Where the program has printed a line, that line."""

    __module__ = "mpsim"


class InputError(Error, ValueError):
    """A name, a number, an array or the content of a file that is not what it has to be; a ValueError."""

    __module__ = "mpsim"


class FileError(Error, OSError):
    """A file that cannot be read or written; an OSError."""

    __module__ = "mpsim"


def name_of(value: object, what: str) -> bytes:
    """A name as the library takes it: text without NUL, which would end it there."""
    if not isinstance(value, str):
        raise InputError(f"expected the name of a {what}, found {type(value).__name__}")
    if "\0" in value:
        raise InputError(f"expected the name of a {what}, found one with a NUL character: {value!r}")
    return value.encode("ascii", "replace")


def real_of(value: Any, name: str) -> float:
    """A number as binary64."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{name}: expected a number, found {type(value).__name__}") from None
    except OverflowError:
        raise InputError(f"{name}: expected a number that binary64 has, found a larger one") from None


def shown(value: object) -> str:
    """A value in an error's line: one line, and short."""
    try:
        return " ".join(repr(value).split())[:60]
    except Exception:  # whatever a foreign object does
        return type(value).__name__


def integer_of(value: Any) -> Optional[int]:
    """An integer of Python, NumPy or torch; None for what is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def flag_of(value: Any, name: str) -> bool:
    """True or False, of Python or NumPy, or 1 or 0."""
    number = int(value) if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_") else integer_of(value)
    if number not in (0, 1):
        raise InputError(f"{name}: expected True or False, found {shown(value)}")
    return bool(number)


def whole_of(value: Any, name: str, least: int = 0) -> int:
    """An integer from `least` on."""
    number = integer_of(value)
    if number is None or number < least:
        raise InputError(f"{name}: expected an integer from {least} on, found {shown(value)}")
    return number


def unknown(what: str, name: object, names: Iterable[str]) -> InputError:
    """The error for a name that is none, with the nearest one that is."""
    import difflib

    near = difflib.get_close_matches(str(name).lower(), list(names), 1)
    return InputError(f"unknown {what} '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
