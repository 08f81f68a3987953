"""Options of the program from keywords."""
from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Union

from ._error import InputError

REPEATED = ("match", "map", "policy")  # options that take a word each, and not a list in one
PathLike = Union[str, "os.PathLike[str]"]


def is_path(x: Any) -> bool:
    return isinstance(x, (str, os.PathLike))


def path_of(x: Any) -> str:
    """A path as text, without NUL, which would end it there."""
    if not is_path(x):
        raise InputError(f"expected a path, found {type(x).__name__}")
    path = os.fsdecode(x)
    if "\0" in path:
        raise InputError(f"expected a path, found one with a NUL character: {path!r}")
    return path


def options_of(options: Mapping[str, Any]) -> list[str]:
    """Options of the program from keywords: fail_if=["nan"] is --fail-if=nan, histogram=True is --histogram."""
    words = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
            value = list(value)
        if value is True:
            words.append(name)
        elif isinstance(value, list) and key in REPEATED:
            words.extend(f"{name}={os.fspath(each)}" for each in value)
        elif isinstance(value, list):
            words.append(f"{name}={','.join(str(each) for each in value)}")
        else:
            words.append(f"{name}={os.fspath(value) if is_path(value) else value}")
    for word in words:
        if "\0" in word:
            raise InputError(f"expected options without NUL characters, found {word!r}")
    return words
