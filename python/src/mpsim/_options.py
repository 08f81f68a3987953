"""Options of the program from keywords."""
from __future__ import annotations

import os
from typing import Any, Mapping, Union

REPEATED = ("match", "map", "policy")  # options that take a word each, and not a list in one
PathLike = Union[str, "os.PathLike[str]"]


def is_path(x: Any) -> bool:
    return isinstance(x, (str, os.PathLike))


def options_of(options: Mapping[str, Any]) -> list[str]:
    """Options of the program from keywords: fail_if=["nan"] is --fail-if=nan, histogram=True is --histogram."""
    words = []
    for key, value in options.items():
        name = "--" + key.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(name)
        elif isinstance(value, (list, tuple)) and key in REPEATED:
            words.extend(f"{name}={os.fspath(each)}" for each in value)
        elif isinstance(value, (list, tuple)):
            words.append(f"{name}={','.join(str(each) for each in value)}")
        else:
            words.append(f"{name}={os.fspath(value) if is_path(value) else value}")
    return words
