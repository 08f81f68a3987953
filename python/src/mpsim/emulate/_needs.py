"""Which torch mpsim.emulate needs, said in one line by what is older."""
from __future__ import annotations

import re

from .._error import Error

OLDEST = 2, 4  # of those that the tests were run with (python/README.md)
# what the versions before one lack
LACKS = (((2, 0), "hooks of modules that are always called, storages without types"),
         ((2, 2), "weak references to storages"),
         ((2, 3), "attention on a CPU as an operator of its own"),
         ((2, 4), "no test was run with this one"))


def missing(error: ImportError) -> Error:
    """What is said where there is no torch."""
    return Error(f"mpsim.emulate needs torch {'.'.join(map(str, OLDEST))} or newer: {error}")


def check(found: str) -> None:
    """Refuses a version of torch that lacks what an emulation hooks into."""
    numbers = re.match(r"(\d+)\.(\d+)", found)
    version = (int(numbers[1]), int(numbers[2])) if numbers else OLDEST
    for first, lacks in LACKS:
        if version < first:
            raise Error(f"mpsim.emulate needs torch {'.'.join(map(str, OLDEST))} or newer ({lacks}), found torch {found}")
