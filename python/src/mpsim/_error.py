"""The exceptions of mpsim: what was expected and what was found, in one line."""
from __future__ import annotations

import difflib
from typing import Iterable


class Error(Exception):
    """Anything that mpsim refuses or cannot do. Where the program has printed a line, that line."""

    __module__ = "mpsim"


class InputError(Error, ValueError):
    """A name, a number, an array or the content of a file that is not what it has to be; a ValueError."""

    __module__ = "mpsim"


class FileError(Error, OSError):
    """A file that cannot be read or written; an OSError."""

    __module__ = "mpsim"


def unknown(what: str, name: object, names: Iterable[str]) -> InputError:
    """The error for a name that is none, with the nearest one that is."""
    near = difflib.get_close_matches(str(name).lower(), list(names), 1)
    return InputError(f"unknown {what} '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
