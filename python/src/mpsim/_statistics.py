"""What stat counts, of arrays where they lie: numbers as the program's, to the last digit.

`Targets` are formats, scales and recipes, as the program reads them; a `Tally` is what was counted of some tensors, and
says it as a record of `mpsim stat --ndjson`. Tallies merge exactly.
"""
from __future__ import annotations

import ctypes
import functools
import json
import math
import weakref
from ctypes import Structure, addressof, byref, c_char_p, c_double, c_float, c_int64, c_size_t, c_uint8, c_uint16, c_uint32, c_uint64, \
    c_void_p, sizeof
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union

import numpy as np

from ._blocks import recipe_of
from ._cast import plan_of
from ._cuda import Counter, Lying
from ._cuda import library as cuda
from ._error import InputError
from ._formats import Format
from ._library import PROGRAM, STRUCTURES, CBlocks, CRounding, check, lib
from ._options import options_of

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

ERRORS = 3  # MPSIM_SUMMARY_SUMS and _ERRORS
PIECE = 1 << 16  # elements that are worth a thread
SCALE_BINS = 277
ROOM = 1 << 11  # bytes of a record, as a first guess


class CSum(Structure):
    _fields_ = [("limb", c_int64 * 136), ("pending", c_uint32), ("first", c_uint16), ("end", c_uint16)]


class CStats(Structure):
    _fields_ = [(name, c_uint64) for name in ("count", "zero", "nan", "inf")] + [
        ("amax", c_double), ("amin", c_double), ("sum", CSum), ("sum_squares", CSum)]


class CCounts(Structure):
    _fields_ = [(name, c_uint64) for name in ("inexact", "underflow", "subnormal", "overflow", "nan")]


class CCastStats(Structure):
    _fields_ = [("counts", CCounts), ("compared", c_uint64), ("max_rel_err", c_double), ("sum_squared_error", CSum),
                ("sum_squares_left_out", CSum)]


class CBlockStats(Structure):
    _fields_ = [("casts", CCastStats)] + [(name, c_uint64) for name in (
        "underflow", "saturated", "spoilt", "blocks", "zero_blocks", "saturated_blocks", "lost_blocks",
        "nonfinite_blocks", "least_scales", "largest_scales", "scale_zero", "scale_nonfinite")] + [
            ("scales", c_uint64 * SCALE_BINS)]


class CLoss(Structure):
    _fields_ = [("name", c_char_p), ("axis", c_char_p), ("scale", c_double), ("of", c_void_p), ("cast", c_void_p), ("blocks", c_void_p)]


class CCast(Structure):
    _fields_ = [("format", c_void_p), ("rounding", CRounding)]


STRUCTURES.update({"mpsim_sum": CSum, "mpsim_stats": CStats, "mpsim_counts": CCounts, "mpsim_cast_stats": CCastStats,
                   "mpsim_block_stats": CBlockStats, "mpsim_loss": CLoss, "mpsim_cast": CCast})
_V, _N = c_void_p, c_size_t
for _name, _restype, _argtypes in (
        ("summary_new", _V, []), ("summary_free", None, [_V]),
        ("summary_begin", ctypes.c_int, [_V, _V, _N, ctypes.c_uint]), ("summary_add_f32", ctypes.c_int, [_V, _V, _V, _N]),
        ("summary_add_f64", ctypes.c_int, [_V, _V, _V, _N]), ("summary_add_codes", ctypes.c_int, [_V, _V, _V, _V, _N]),
        ("summary_read", ctypes.c_int, [_V, _V, _V, _V]), ("summary_merge", ctypes.c_int, [_V, _V]),
        ("stats_merge", None, [_V, _V]), ("cast_stats_merge", None, [_V, _V]), ("block_stats_merge", None, [_V, _V])):
    _f = getattr(lib, "mpsim_" + _name)
    _f.restype, _f.argtypes = _restype, _argtypes


@functools.cache
def writer() -> Any:
    """mpsim_stat_record."""
    from ._stat import library

    f = library().mpsim_stat_record
    f.restype, f.argtypes = c_size_t, [c_char_p, c_size_t, c_void_p, ctypes.POINTER(CLoss), c_size_t]
    return f


def number(x: float) -> Union[float, str]:
    """As reports have it: NaN and infinities as words."""
    return x if math.isfinite(x) else "NaN" if x != x else "Infinity" if x > 0 else "-Infinity"


class Targets:
    """What tensors are cast to.

    config: the first record of `mpsim stat --ndjson` under these, which the program writes; it also judges the names.
    """

    def __init__(self, formats: Sequence[str], scales: Any, recipes: Sequence[str]) -> None:
        import subprocess

        words = options_of({"format": [*formats, *recipes] or None, "scale": scales if formats else None})
        empty = json.dumps({"x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
        done = subprocess.run([PROGRAM, "stat", "--ndjson", *words, "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              input=len(empty).to_bytes(8, "little") + empty)
        if done.returncode:
            raise InputError(done.stderr.decode(errors="replace").strip().splitlines()[-1])
        self.config: dict[str, Any] = json.loads(done.stdout.split(b"\n", 1)[0])
        self.scales = [float(s) for s in self.config["scales"]] or [1.0]
        self.labels = [f["name"] for f in self.config["formats"]]
        self.scaled_kinds = set(self.config["scaled_kinds"])
        if self.config["round"].startswith("stochastic"):
            raise InputError("stochastic rounding is not for statistics in place")
        plans = [plan_of(label.partition("@")[0], None, s, label.partition("@")[2] or None, None, False, False, "binary32")
                 for label in self.labels for s in self.scales]
        self.plans = plans  # formats must outlive the casts
        self.recipes = [(name["name"], recipe_of(name["name"])) for name in self.config.get("recipes", [])]
        if any(transform for _, (_, transform) in self.recipes):
            raise InputError("recipes with a Hadamard transform are not for statistics in place: record the tensors and use stat")
        self.casts = {scaled: self._casts(scaled) for scaled in (True, False)}
        self.counters: dict[tuple[int, bool], Counter] = {}  # by device, and whether scaled
        self.summaries: list[int] = []
        self.pool: Optional[ThreadPoolExecutor] = None
        self.parallel(1)

    def parallel(self, threads: int) -> None:
        """Count large arrays with so many threads."""
        while len(self.summaries) < threads:
            self.summaries.append(lib.mpsim_summary_new())
            weakref.finalize(self, lib.mpsim_summary_free, self.summaries[-1])
        if threads > 1:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(threads - 1)
        self.threads = threads

    def end(self) -> None:
        """Let the threads go: what was counted stays, and more is counted by one."""
        if self.pool:
            self.pool.shutdown()
        self.pool, self.threads = None, 1

    def counter(self, x: Lying, scaled: bool) -> Optional[Counter]:
        """What counts elements where they lie, on a device; None if nothing does."""
        if self.recipes or not cuda():
            return None
        key = x.device, scaled
        if key not in self.counters:
            self.counters[key] = Counter(self.casts[scaled], len(self.casts[scaled]), ERRORS, x.device)
        counter = self.counters[key]
        return counter if counter.can(x.format) else None

    def which(self, kind: Optional[str]) -> bool:
        """Whether tensors of a kind are multiplied by the scales."""
        return kind in self.scaled_kinds or kind is None

    def of(self, scaled: bool) -> list[tuple[str, float]]:
        """Format and scale of each cast of a tensor."""
        return [(label, s) for label in self.labels for s in (self.scales if scaled else [1.0])]

    def _casts(self, scaled: bool) -> Any:
        chosen = []
        for label, scale in self.of(scaled):
            r = CRounding()
            plan = self.plans[self.labels.index(label) * len(self.scales)]
            ctypes.pointer(r)[0] = plan.rounding
            r.scale = scale
            chosen.append(CCast(addressof(plan.format.c), r))
        return (CCast * len(chosen))(*chosen)


class Tally:
    """What was counted of tensors whose casts are the same."""

    __slots__ = ("targets", "scaled", "stats", "casts", "blocks", "elements", "tensors")

    def __init__(self, targets: Targets, scaled: bool) -> None:
        self.targets, self.scaled = targets, scaled
        self.stats = CStats()
        self.casts = (CCastStats * len(targets.casts[scaled]))()
        self.blocks = (CBlockStats * len(targets.recipes))()
        self.tensors = 0

    def merge(self, other: Tally) -> None:
        """Add what another has counted; casts at scale 1 stand for all scales."""
        lib.mpsim_stats_merge(byref(self.stats), byref(other.stats))
        repeat = len(self.casts) // max(len(other.casts), 1)
        for i in range(len(self.casts)):
            lib.mpsim_cast_stats_merge(byref(self.casts, i * sizeof(CCastStats)),
                                       byref(other.casts, i // repeat * sizeof(CCastStats)))
        for i in range(len(self.blocks)):
            lib.mpsim_block_stats_merge(byref(self.blocks, i * sizeof(CBlockStats)), byref(other.blocks, i * sizeof(CBlockStats)))
        self.tensors += other.tensors

    def add(self, address: int, n: int, format: Format, width: int, wide: Optional[int] = None) -> None:
        """Count n elements that lie at an address. width: of a row, for recipes; wide: where they lie as binary32."""
        t = self.targets
        parts = max(1, min(t.threads, n // PIECE))
        ends = [n * i // parts for i in range(parts + 1)]

        def count(i: int) -> None:
            s, m, at = t.summaries[i], ends[i + 1] - ends[i], address + ends[i] * (format.bits // 8)
            check(lib.mpsim_summary_begin(s, casts, len(casts), ERRORS), "statistics")
            if format.name == "binary32":
                lib.mpsim_summary_add_f32(s, None, at, m)
            elif format.name == "binary64":
                lib.mpsim_summary_add_f64(s, None, at, m)
            else:
                lib.mpsim_summary_add_codes(s, addressof(format.c), None, at, m)
        casts = t.casts[self.scaled]
        others = [t.pool.submit(count, i) for i in range(1, parts)] if t.pool else []
        count(0)
        for i, other in enumerate(others, 1):
            other.result()
            check(lib.mpsim_summary_merge(t.summaries[0], t.summaries[i]), "statistics")
        lib.mpsim_summary_read(t.summaries[0], byref(self.stats), None, self.casts)
        self.tensors += 1
        single = address if format.name == "binary32" else wide
        for i, (name, (recipe, _)) in enumerate(t.recipes):
            out = CBlocks(stats=addressof(self.blocks) + i * sizeof(CBlockStats))
            if n and single:
                check(lib.mpsim_block_quantize(recipe, ctypes.cast(single, lib.mpsim_block_quantize.argtypes[1]),
                                               n // width, width, -1.0, 1.0, None, out, None), f"recipe '{name}'")

    def read(self, counter: Counter, counted: Any) -> None:
        """Add what a counter has counted of a tensor."""
        counter.read(counted, byref(self.stats), None, self.casts)
        self.tensors += 1

    def record(self) -> dict[str, Any]:
        """The members of a record of stat, from "count" on."""
        casts = [cast_loss(label, scale, self.casts, i, self.stats) for i, (label, scale) in enumerate(self.targets.of(self.scaled))]
        blocks = [block_loss(name, "rows", self.blocks, i, self.stats) for i, (name, _) in enumerate(self.targets.recipes)]
        return record_of(self.stats, casts + blocks)


def cast_loss(label: str, scale: float, casts: Any, i: int, of: CStats) -> CLoss:
    """Element i of an array of CCastStats, of the elements that `of` is of. The array stays with the result."""
    loss = CLoss(label.encode(), None, scale, addressof(of), addressof(casts) + i * sizeof(CCastStats), None)
    loss.kept = casts, of
    return loss


def block_loss(name: str, axis: str, blocks: Any, i: int, of: CStats) -> CLoss:
    """The same of CBlockStats."""
    loss = CLoss(name.encode(), axis.encode(), 1.0, addressof(of), None, addressof(blocks) + i * sizeof(CBlockStats))
    loss.kept = blocks, of
    return loss


def record_of(stats: CStats, losses: Sequence[CLoss]) -> dict[str, Any]:
    """The members of a record of stat, from "count" on, as libmpsim-trace writes them."""
    write = writer()
    array, size = (CLoss * len(losses))(*losses), ROOM
    while True:
        text = ctypes.create_string_buffer(size)
        n = write(text, size, byref(stats), array, len(losses))
        if not n:
            raise MemoryError
        if n < size:
            record: dict[str, Any] = json.loads(ctypes.string_at(text, n))
            return record
        size = n + 1
