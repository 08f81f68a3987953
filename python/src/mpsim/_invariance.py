"""Whether rows of a kernel's results depend on what should not matter: the size of the batch, the position in it, strides, alignment,
threads. Nothing here computes: the kernel is compared with itself."""
from __future__ import annotations

import sys
from typing import Any, Callable, Optional, Sequence

import numpy as np

from ._error import InputError

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 32, 33, 48, 64, 96, 128, 256)


class Change:
    """One way to call a kernel, and the rows of results that it changes.

    what: "batch", "position", "stride", "alignment" or "threads". settings: how often the kernel was called so. rows: the numbers of
    rows that changed in one of these calls. first: of these calls the first that changed a row, in words; None.
    """

    __slots__ = ("what", "settings", "rows", "first", "of")

    def __init__(self, what: str, of: int) -> None:
        self.what, self.of, self.settings, self.first = what, of, 0, None  # type: str, int, int, Optional[str]
        self.rows: tuple[int, ...] = ()

    def add(self, setting: str, rows: Sequence[int]) -> None:
        self.settings += 1
        if len(rows) and self.first is None:
            self.first = setting
        self.rows = tuple(sorted({*self.rows, *(int(row) for row in rows)}))

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.what:<10} no row changes in {self.settings} call{'s' if self.settings != 1 else ''}"
        some = ", ".join(map(str, self.rows[:8])) + (", ..." if len(self.rows) > 8 else "")
        return f"{self.what:<10} {len(self.rows)} of {self.of} rows change, first with {self.first}: row{'s' if len(self.rows) != 1 else ''} {some}"

    def __repr__(self) -> str:
        return f"<{self}>"


class Invariance:
    """What mpsim.testing.invariance found: `changes`, one for each thing that was varied; `invariant`: no row has changed."""

    __slots__ = ("changes",)

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = tuple(changes)

    @property
    def invariant(self) -> bool:
        return not any(change.rows for change in self.changes)

    def of(self, what: str) -> Change:
        """The change of that name."""
        return next(change for change in self.changes if change.what == what)

    def __str__(self) -> str:
        changed = [change.what for change in self.changes if change.rows]
        return "\n  ".join([f"not invariant: {', '.join(changed)}" if changed else "invariant", *map(str, self.changes)])

    def __repr__(self) -> str:
        return f"<Invariance: {'invariant' if self.invariant else str(self).splitlines()[0]}>"


def _is_torch(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.is_tensor(x))


def _bits(x: Any, n: int) -> Any:
    """The bytes of each of n rows of results."""
    if isinstance(x, (tuple, list)):
        return np.concatenate([_bits(y, n) for y in x], axis=1)
    if _is_torch(x):
        torch = sys.modules["torch"]
        x = x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    else:
        x = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    if n == 0 or x.size % n:
        raise InputError("invariance: expected results with as many rows as the input")
    return x.reshape(n, -1)


def _other(a: Any, b: Any) -> Any:
    return np.flatnonzero((a != b).any(axis=1))


def _strided(a: Any) -> list[tuple[str, Any]]:
    """The same numbers with other strides."""
    n, tail = len(a), tuple(a.shape[1:])
    if _is_torch(a):
        wide, long = a.new_zeros((n, *tail[:-1], tail[-1] + 3)), a.new_zeros((2 * n, *tail))
        turned = a.transpose(0, -1).contiguous().transpose(0, -1)
    else:
        wide, long = np.zeros((n, *tail[:-1], tail[-1] + 3), a.dtype), np.zeros((2 * n, *tail), a.dtype)
        turned = np.ascontiguousarray(a.swapaxes(0, -1)).swapaxes(0, -1)
    wide[..., :-3] = a
    long[::2] = a
    return [("lines 3 elements apart", wide[..., :-3]), ("every second row of an array", long[::2]), ("the transpose of an array", turned)]


def _shifted(a: Any, by: int) -> Any:
    """The same numbers, `by` elements behind the beginning of a piece of memory."""
    n = a.numel() if _is_torch(a) else a.size
    room = a.new_zeros(n + by) if _is_torch(a) else np.zeros(n + by, a.dtype)
    room[by:] = a.reshape(-1)
    return room[by:].reshape(a.shape)


def _threads(a: Any, counts: Optional[Sequence[int]], set_threads: Optional[Callable[[int], Any]]) -> Any:
    """How threads are set, how they are reset, and the counts; None: they are not."""
    if set_threads is not None:
        return set_threads, None, counts or (1, 2, 4)
    if not _is_torch(a) or not a.is_cpu:  # threads of the host decide nothing on a device
        return None
    torch = sys.modules["torch"]
    return torch.set_num_threads, torch.get_num_threads(), counts or (1, 2, 3, 4)


def invariance(kernel: Callable[..., Any], a: Any, *others: Any, sizes: Optional[Sequence[int]] = None,
               threads: Optional[Sequence[int]] = None, set_threads: Optional[Callable[[int], Any]] = None) -> Invariance:
    """Call kernel(a, *others) with other batches, positions, strides, alignments and threads, and say which rows change, bit by bit.

    a: the batch, an array of NumPy or torch of two dimensions or more, whose first one is that of the rows; others: what all rows share.
    Row i of the results must be that of row i of `a`.

    Tensors may be on a device, where the kernel is called; its results are copied to the CPU, which compares them.

      batch      rows 0 to n - 1 alone as a batch of n, for the sizes, against each row as a batch of one
      position   the whole batch with its rows moved, against the whole batch
      stride     the same numbers with other strides;  alignment: at other addresses
      threads    with torch.set_num_threads, or with set_threads(n); of tensors on a device with set_threads alone

    >>> a = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    >>> mpsim.testing.invariance(lambda a: a * 2, a).invariant
    True
    """
    if not _is_torch(a):
        a = np.asarray(a)
    n = len(a) if a.ndim > 1 else 0
    if n < 2:
        raise InputError("invariance: expected a batch of two rows or more, in two dimensions or more")

    def call(x: Any) -> Any:
        return _bits(kernel(x, *others), len(x))

    alone = np.concatenate([call(a[i:i + 1]) for i in range(n)])
    whole = call(a)
    batch, position, stride, alignment = (Change(what, n) for what in ("batch", "position", "stride", "alignment"))
    for size in sorted({size for size in sizes or SIZES if 1 < size < n} | {n}):
        batch.add(f"a batch of {size}", _other(alone[:size], whole if size == n else call(a[:size])))
    for by in sorted({1, n // 2, n - 1}):
        order = [(i + by) % n for i in range(n)]
        position.add(f"rows moved by {by}", [order[i] for i in _other(whole[order], call(a[order]))])
    for name, x in _strided(a):
        stride.add(name, _other(whole, call(x)))
    for by in (1, 2, 4, 8):
        alignment.add(f"memory {by} element{'s' if by > 1 else ''} on", _other(whole, call(_shifted(a, by))))
    changes = [batch, position, stride, alignment]
    how = _threads(a, threads, set_threads)
    if how is not None:
        changes.append(Change("threads", n))
        set_to, before, counts = how
        try:
            set_to(counts[0])
            one = call(a)
            for count in counts[1:]:
                set_to(count)
                changes[-1].add(f"{count} threads beside {counts[0]}", _other(one, call(a)))
        finally:
            if before is not None:
                set_to(before)
    return Invariance(changes)
