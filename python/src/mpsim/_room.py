"""Memory for large results, so that they need not wait for the system's: pages of 2 MiB where it has them, and what was used last again."""
from __future__ import annotations

import mmap
from ctypes import addressof, c_char
from typing import Any

import numpy as np

PAGE = 1 << 21
SMALL = 1 << 18  # elements up to which NumPy's own memory is as quick
KEPT, MOST = 2, 32 << 20  # regions that nobody uses, and bytes of each
HUGE = getattr(mmap, "MADV_HUGEPAGE", None)

_free: list[tuple[int, Any]] = []  # sizes and regions; append and remove are atomic


class Region:
    """Pages of the system's; who has an array of them has this object, whose end gives them back."""

    __slots__ = ("size", "memory", "__array_interface__")

    def __init__(self, size: int, memory: Any) -> None:
        self.size, self.memory = size, memory
        start = addressof(c_char.from_buffer(memory))
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (start + -start % PAGE, False)}

    def __del__(self, free: list[tuple[int, Any]] = _free, most: int = MOST, kept: int = KEPT) -> None:  # also when Python ends
        if self.size <= most:
            free.append((self.size, self.memory))
            if len(free) > kept:  # those that were used last stay
                del free[:1]


def _region(size: int) -> Region:
    kept = next((one for one in list(_free) if one[0] == size), None)
    if kept is not None:
        try:
            _free.remove(kept)
            return Region(*kept)
        except ValueError:  # another thread was quicker
            pass
    memory = mmap.mmap(-1, size + PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(HUGE)  # type: ignore[arg-type]
    return Region(size, memory)


def empty(shape: tuple[int, ...], dtype: Any, order: str = "C") -> Any:
    """As np.empty."""
    dtype = np.dtype(dtype)
    n = dtype.itemsize
    for extent in shape:
        n *= extent
    if n <= 4 * SMALL or HUGE is None:
        return np.empty(shape, dtype, order)  # type: ignore[call-overload]
    try:
        region = np.asarray(_region((n + PAGE - 1) // PAGE * PAGE))
    except OSError:  # a limit of the system's; NumPy says what is wrong, or does with less
        return np.empty(shape, dtype, order)  # type: ignore[call-overload]
    return region[:n].view(dtype).reshape(shape, order=order)


def like(x: Any, dtype: Any) -> Any:
    """For results of an array without gaps, in its order."""
    return empty(x.shape, dtype, "C" if x.flags.c_contiguous else "F")
