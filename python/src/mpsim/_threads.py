"""Threads that the library is lent (mpsim/threads.h): made once, by the first call that has work for them."""
from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import c_uint, c_void_p
from typing import Any, Optional

from ._error import InputError, shown, whole_of
from ._library import INSTALLED

MOST = 1024
LIBRARY = os.path.join(INSTALLED, "lib", "libmpsim-trace.so.0")
_lock = threading.Lock()
_wanted: Optional[int] = None  # what set_threads said
_pool: Optional[int] = None
_made = False


def _threads() -> int:
    """As many as set_threads says, else as torch has where it is loaded; 0: as the program has."""
    if _wanted is not None:
        return _wanted
    torch = sys.modules.get("torch")
    return min(int(torch.get_num_threads()), MOST) if torch is not None and hasattr(torch, "get_num_threads") else 0


def _library() -> Any:
    try:
        loaded = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise ImportError(f"mpsim: its library of threads does not load: {error}") from None
    loaded.mpsim_threads_new.restype, loaded.mpsim_threads_new.argtypes = c_void_p, [c_uint]
    return loaded


def pool() -> Optional[int]:
    """An mpsim_pool, or None for one thread."""
    return _pool if _made else _make()


def _make() -> Optional[int]:
    global _pool, _made
    with _lock:
        if not _made:
            n = _threads()
            _pool = None if n == 1 else _library().mpsim_threads_new(n)
            _made = True
    return _pool


def set_threads(n: Optional[int] = None) -> None:
    """How many threads products use from now on, 1 to 1024; None: as many as torch where it is loaded, else as many processors as are
    free. Results never depend on it.

    >>> mpsim.set_threads(2)
    """
    global _wanted, _made
    if n is not None and not 1 <= whole_of(n, "threads") <= MOST:
        raise InputError(f"threads: expected 1 to {MOST}, found {shown(n)}")
    with _lock:
        _wanted, _made = None if n is None else int(n), False  # a pool that a call may have is kept, asleep
