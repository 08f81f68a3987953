"""Options of the program from keywords."""
from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Union

from ._error import InputError

REPEATED = ("match", "map", "policy")  # options that take a word each, and not a list in one
PathLike = Union[str, "os.PathLike[str]"]


def is_path(x: Any) -> bool:
    return isinstance(x, (str, os.PathLike))


def word_of(text: str, what: str) -> str:
    """A word of the command line: what an operating system can say."""
    if "\0" in text:
        raise InputError(f"expected {what}, found one with a NUL character: {text!r}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError(f"expected {what}, found one that no file system can say: {text!a}") from None
    return text


def path_of(x: Any) -> str:
    """A path as text, without NUL, which would end it there."""
    if not is_path(x):
        raise InputError(f"expected a path, found {type(x).__name__}")
    path = os.fspath(x)
    return word_of(path if isinstance(path, str) else os.fsdecode(path), "a path")


def text_of(value: Any) -> str:
    """An option's value as the program reads it."""
    return os.fsdecode(value) if is_path(value) else str(value)


def items_of(value: Any) -> Any:
    """The values of an option: several as a list, one as it is."""
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        return value
    try:
        return list(value)
    except TypeError:  # an array without dimensions
        return str(value)


def options_of(options: Mapping[str, Any]) -> list[str]:
    """Options of the program from keywords: fail_if=["nan"] is --fail-if=nan, histogram=True is --histogram."""
    words = []
    for key, given in options.items():
        name, value = "--" + key.replace("_", "-"), items_of(given)
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif isinstance(value, list) and key in REPEATED:
            words.extend(f"{name}={text_of(each)}" for each in value)
        else:
            words.append(f"{name}={','.join(map(text_of, value)) if isinstance(value, list) else text_of(value)}")
    return [word_of(word, "options without NUL characters" if "\0" in word else "options") for word in words]
