"""Counting while a model is emulated: in every step what roundings lost, in some steps all that `mpsim stat` counts.

The cheap counts come from the library's products themselves (what became zero, overflowed, is not finite). Statistics read each tensor
once more; they change no bit.
"""
from __future__ import annotations

import math
from ctypes import addressof, byref, cast
from typing import Any, Callable, Iterator, Optional

import numpy
import torch

from .._blocks import recipe_of
from .._cast import encode, plan_of
from .._cuda import dense
from .._dot import model_of
from .._error import Error, InputError, whole_of
from .._formats import Format, find
from .._library import CBlocks, check, lib, text
from .._product import Operand, View
from .._statistics import CBlockStats, CCast, CCastStats, CStats, Tally, block_loss, cast_loss, number, record_of
from .._windows import tensor_of
from ._plans import BINARY32, TORCH, one_scale
from ._products import FORMATS

STORED = {torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
MODES = {0: "nearest-even", 1: "nearest-away", 2: "toward-zero"}
FIRST = (1, 2, 5, 10, 20, 50)  # the steps of which there are statistics, beside each hundredth
KINDS = ("fprop", "dgrad", "wgrad")
COUNTED = ("nonzero", "lost", "overflow", "nonfinite")
# of the kinds of tensors the columns of `mpsim train`
COLUMN = {"act": "act", "weight": "act", "out": "act", "agrad": "agrad", "dgrad": "agrad", "wgrad": "wgrad"}


def when(every: Any) -> Callable[[int], bool]:
    """Which steps, from 1, have statistics."""
    if every is True:
        return lambda step: step in FIRST or step % 100 == 0
    if every is False or every is None or every == 0:
        return lambda step: False
    if isinstance(every, (list, tuple, set, frozenset, range)):
        chosen = frozenset(every)
        return lambda step: step in chosen
    n = whole_of(every, "report: every", 1)
    return lambda step: step == 1 or step % n == 0


def here(t: Any) -> Any:
    """A tensor in memory: one that a device has is copied."""
    return t if t.is_cpu else t.cpu()


def label_of(record: Any, slot: str, kind: str, slots: Any) -> tuple[str, str]:
    """The kind and the name of a tensor, as a trace has them; NAME@b: of the second one of two activations that are multiplied."""
    param = record.param
    if slot in ("weight", "wgrad"):
        if param is not None:
            return slot, param.name
        return ("act", record.name + "@b") if record.form == "pair" and slot == "weight" else (slot, record.name)
    if slot == "dgrad" and slots[1] == "act":  # of the right one of two activations
        return slot, record.name + "@b"
    return slot, record.name


class CastSet:
    """Casts to a format, for a Tally."""

    def __init__(self, format: Optional[Format], shared: "Counting") -> None:
        chosen = []
        if format is not None:
            self.plan = plan_of(format, None, 1.0, None, None, False, False, "binary32")
            chosen.append(CCast(addressof(self.plan.format.c), self.plan.rounding))
        casts = (CCast * len(chosen))(*chosen)
        self.casts, self.recipes, self.pool, self.threads = {True: casts, False: casts}, (), None, 1
        self.summaries = shared.summaries


class Cast:
    """What a cast or a recipe did to tensors: c is its CCastStats or CBlockStats, of the elements that `stats` is of."""

    __slots__ = ("c", "stats", "scale")

    def __init__(self, kind: Any, scale: Optional[float]) -> None:
        self.c, self.stats, self.scale = kind(), CStats(), scale

    def merge(self, c: Any, stats: Any, scale: Optional[float]) -> None:
        function = lib.mpsim_block_stats_merge if isinstance(self.c, CBlockStats) else lib.mpsim_cast_stats_merge
        function(byref(self.c), byref(c))
        lib.mpsim_stats_merge(byref(self.stats), byref(stats))
        if scale != self.scale:
            self.scale = None  # several


class Sums:
    """Of one tensor, or of several."""

    def __init__(self) -> None:
        self.stats = CStats()
        self.casts: dict[str, Cast] = {}
        self.blocks: dict[tuple[str, str], Cast] = {}
        self.tensors = 0

    def add(self, stats: Any) -> None:
        lib.mpsim_stats_merge(byref(self.stats), byref(stats))

    def cast(self, label: str, c: Any, stats: Any, scale: Optional[float] = 1.0) -> None:
        found = self.casts.get(label)
        if found is None:
            found = self.casts[label] = Cast(CCastStats, scale)
        found.merge(c, stats, scale)

    def block(self, recipe: str, axis: str, c: Any, stats: Any) -> None:
        found = self.blocks.get((recipe, axis))
        if found is None:
            found = self.blocks[recipe, axis] = Cast(CBlockStats, 1.0)
        found.merge(c, stats, 1.0)

    def merge(self, other: "Sums") -> None:
        self.add(other.stats)
        self.tensors += other.tensors
        for label, each in other.casts.items():
            self.cast(label, each.c, each.stats, each.scale)
        for (recipe, axis), each in other.blocks.items():
            self.block(recipe, axis, each.c, each.stats)

    def record(self, whole: bool = False) -> dict[str, Any]:
        """The members of a record of stat, from "count" on. whole: only casts to formats of all elements; what reads the record takes each for
        such a one, and would count the others as lost."""
        casts = [cast_loss(label, 1.0 if each.scale is None else each.scale, each.c, 0, each.stats) for label, each in self.casts.items()
                 if not whole or each.stats.count == self.stats.count]
        blocks = [block_loss(recipe, axis, each.c, 0, each.stats) for (recipe, axis), each in self.blocks.items()]
        return record_of(self.stats, casts + blocks)


class Seen(Sums):
    """A tensor of a step."""

    def __init__(self, kind: str, name: str, dtype: str, shape: list[int]) -> None:
        super().__init__()
        self.kind, self.name, self.dtype, self.shape = kind, name, dtype, shape
        self.done: set[Any] = set()
        self.tensors = 1


class Counting:
    """See above. steps: a record for each step that is over; lines: those of tensors and steps with statistics.

    full: statistics are taken in the step at hand. by_kind: sums over them.
    """

    def __init__(self, core: Any, every: Any) -> None:
        self.summaries: list[int] = []
        self.core, self.wanted = core, when(every)
        self.at: Optional[int] = None
        self.full = False
        self.live: dict[tuple[str, str], tuple[str, str, Any]] = {}  # by word and name of the record: kind, name, counts of this step
        self.totals: dict[tuple[str, str], list[int]] = {}
        self.steps: list[dict[str, Any]] = []
        self.now: dict[str, Any] = {}
        self.lines: list[dict[str, Any]] = []
        self.seen: dict[tuple[str, str], Seen] = {}
        self.by_kind: dict[str, Sums] = {}
        self.formats: dict[str, None] = {}  # labels, in their order
        self.recipes: dict[str, None] = {}
        self.optimizers: Any = None  # that have stepped
        self.root_scale = 1.0  # that a caller's own scaler has multiplied the loss by
        self.summaries.append(lib.mpsim_summary_new())
        self.sets: dict[Optional[str], CastSet] = {}

    def __del__(self) -> None:
        for summary in self.summaries:
            lib.mpsim_summary_free(summary)

    # ---- steps ----

    def begin(self) -> None:
        """The step at hand is another one."""
        if self.at is not None:
            self.end()
        self.at = self.core.step
        full = self.wanted(self.at + 1)
        if full != self.full:
            self._watch(full)
        self.full = full

    def _watch(self, on: bool) -> None:
        core = self.core
        for watchers, mine in ((core.watchers, self.product), (core.operand_watchers, self.operand)):
            if on:
                watchers.append(mine)
            else:
                watchers.remove(mine)

    def loss(self, value: float) -> None:
        """What a backward pass is the gradient of. A step's loss is the sum over its passes, whose gradient the optimizer gets: of
        micro-batches that are divided by their number the mean."""
        if self.at is not None:
            if self.at != self.core.step:
                self.begin()
            self.now.setdefault("losses", []).append(value / self.root_scale)

    def dropped(self) -> None:
        """There are no gradients: those of the step's passes so far were dropped, as where a closure is called again."""
        self.now.pop("losses", None)

    def stepped(self, optimizers: Any) -> None:
        """Optimizers have stepped (Optimizers of _optimizer.py). The step ends when the next one begins: others may step, too."""
        if self.at != self.core.step:
            self.begin()
        self.optimizers = optimizers

    def _ask(self) -> None:
        """What the optimizers and the loss scaler say of the step."""
        optimizers = self.optimizers
        if optimizers is None:
            return
        self.now["optimizers"] = list(optimizers.stepped_now)
        lost = optimizers.lost_now.values()
        self.now.update(norm=optimizers.norm, clipped=optimizers.clipped, skipped=optimizers.skipped, updates=sum(each.updates for each in lost),
                        lost=sum(each.lost for each in lost))
        said = next((each for each in reversed(optimizers.scaling.history) if each.step <= (self.at or 0)), None)
        if said is not None and said.step == self.at:
            self.now.update(scale=said.scale, next_scale=said.next, events=said.events, cause=said.cause, skipped=said.skipped)

    def tell(self, **numbers: Any) -> None:
        """Numbers of the step at hand: loss, scale, next_scale, events, skipped, cause, norm, clipped, updates, lost, lr."""
        if self.at != self.core.step:
            self.begin()
        self.now.update(numbers)

    def end(self) -> None:
        """The step is over."""
        self._close(self.steps, self.lines, self.totals, self.by_kind)
        self.core.home.clear([counts for _, _, counts in self.live.values()])
        self.now, self.at, self.seen, self.optimizers = {}, None, {}, None

    def so_far(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[tuple[str, str], list[int]], dict[str, Sums]]:
        """Records of steps, lines, totals by tensor and sums by kind, with the step at hand as it is now, which goes on; that
        is a step if a backward pass or an optimizer was in it."""
        kinds = {}
        for kind, sums in self.by_kind.items():
            kinds[kind] = Sums()
            kinds[kind].merge(sums)
        made = list(self.steps), list(self.lines), {key: list(total) for key, total in self.totals.items()}, kinds
        if self.at is not None:
            self._close(*made)
            if len(made[0]) > 1 and not self.now.get("losses") and self.optimizers is None:  # what is evaluated behind the last step is none
                made[0].pop()
        return made

    def _close(self, steps: list[dict[str, Any]], lines: list[dict[str, Any]], totals: dict[tuple[str, str], list[int]], kinds: dict[str, Sums]) -> None:
        """The step at hand, added to those before."""
        columns = {column: [0] * 4 for column in ("act", "agrad", "wgrad")}
        read = self.core.home.read([counts for _, _, counts in self.live.values()])
        for (kind, name, _), numbers in zip(self.live.values(), read):
            if numbers[0] or numbers[-1]:
                total = totals.setdefault((kind, name), [0, 0, 0, 0])
                for i, n in enumerate(numbers):
                    columns[COLUMN[kind]][i] += n
                    total[i] += n
        self._ask()
        steps.append(self._step(columns))
        if self.full and self.seen:
            self._put(lines, kinds)

    def _step(self, columns: dict[str, list[int]]) -> dict[str, Any]:
        """The record of `mpsim train`."""
        now = self.now
        scale, losses = float(now.get("scale", self.root_scale)), now.get("losses")
        loss = now.get("loss", math.fsum(losses) if losses and all(map(math.isfinite, losses)) else sum(losses) if losses else math.nan)
        step: dict[str, Any] = {
            "step": (self.at or 0) + 1, "loss": number(float(loss)), "scale": scale,
            "next_scale": float(now.get("next_scale", scale)), "events": list(now.get("events", ())), "skipped": bool(now.get("skipped", False)),
            "cause": now.get("cause"), "norm": number(float(now.get("norm", math.nan))), "clipped": bool(now.get("clipped", False))}
        step.update({column: dict(zip(COUNTED, values)) for column, values in columns.items()})
        step.update(updates=int(now.get("updates", 0)), lost=int(now.get("lost", 0)))
        if "lr" in now:
            step["lr"] = float(now["lr"])
        if losses and len(losses) > 1:
            step["passes"] = len(losses)
        if now.get("optimizers"):
            step["optimizers"] = now["optimizers"]
        return step

    def _put(self, lines: list[dict[str, Any]], kinds: dict[str, Sums]) -> None:
        """The lines of a step with statistics."""
        step, whole = (self.at or 0) + 1, Sums()
        for seen in self.seen.values():
            lines.append({"level": "tensor", "file": "-", "name": f"{seen.kind}:{seen.name}", "kind": seen.kind, "step": step, "dtype": seen.dtype,
                          "shape": seen.shape, **seen.record()})
            whole.merge(seen)
            kinds.setdefault(seen.kind, Sums()).merge(seen)
        lines.append({"level": "step", "step": step, "tensors": whole.tensors, **whole.record()})

    # ---- counts, of every step ----

    def _counts(self, word: str, name: str, kind: str, label: str) -> Any:
        found = self.live.get((word, name))
        if found is None:
            found = self.live[word, name] = kind, label, self.core.home.counts()
        return found[2]

    def casts(self, record: Any, word: str, recipe: Any) -> Any:
        """Where an operand's quantisation is counted."""
        if record.recomputed:
            return None
        kind, name = label_of(record, word.partition(".")[0], "", ("", ""))
        return self._counts(word, name, kind, name)

    def products(self, record: Any, kind: str, slots: Any) -> Any:
        """Where the rounding of a product's result is counted."""
        if record.recomputed:
            return None
        label, name = label_of(record, slots[2], kind, slots)
        return self._counts(slots[2], name, label, name)

    # ---- statistics ----

    def _tensor(self, kind: str, name: str, t: Any) -> Seen:
        found = self.seen.get((kind, name))
        if found is None:
            found = self.seen[kind, name] = Seen(kind, name, STORED[t.dtype], list(t.shape))
        return found

    def _set(self, format: Optional[Format]) -> CastSet:
        key = None if format is None else format.name
        found = self.sets.get(key)
        if found is None:
            found = self.sets[key] = CastSet(format, self)
            if format is not None:
                self.formats[format.name] = None
        return found

    def plain(self, kind: str, name: str, t: Any, format: Optional[Format]) -> None:
        """A tensor, and its cast to a format; None: no cast."""
        seen = self._tensor(kind, name, t)
        micro = 0 if kind == "weight" else self.core.micro
        what = micro, None if format is None else format.name
        known = (micro, "stats") in seen.done
        if what in seen.done or format is None and known:
            return
        t = here(t if dense(t.shape, t.stride()) else t.contiguous())
        tally = Tally(self._set(format), True)  # type: ignore[arg-type]
        tally.add(t.data_ptr(), t.numel(), FORMATS[t.dtype], 1)
        seen.done.update((what, (micro, "stats")))
        if not known:
            seen.add(tally.stats)
        if format is not None:
            seen.cast(format.name, tally.casts[0], tally.stats)

    def product(self, record: Any, kind: str, slots: Any, views: Any, entered: Any, formats: Any, model: Any, out: Any, to: Any) -> None:
        """A watcher of products: operands that no recipe quantises."""
        if record.recomputed or kind not in KINDS:
            return
        for slot, view, side, format in zip(slots, views, entered, formats):
            entering = side.view[1] if isinstance(side, Operand) and side.view is not None else None
            if entering is None or entering.recipe is None:
                label, name = label_of(record, slot, kind, slots)
                self.plain(label, name, tensor_of(view), format)

    def operand(self, record: Any, kind: str, word: str, view: View, entering: Any, operand: Any) -> None:
        """A watcher of operands that a recipe has quantised."""
        if record.recomputed or not self.full:
            return
        slot, _, turned = word.partition(".")
        kind, name = label_of(record, slot, "", ("", ""))
        t = here(tensor_of(view))
        seen = self._tensor(kind, name, t)
        recipe = entering.recipe
        axis = "columns" if turned else "rows"
        what = 0 if kind == "weight" else self.core.micro, text(recipe.name), axis
        if what in seen.done:
            return
        seen.done.add(what)
        self.plain(kind, name, t, None)
        blocks, stats, scale = self.quantised(t, entering)
        if one_scale(recipe):
            label = text(recipe.element)
            self.formats[label] = None
            seen.cast(label, blocks.casts, stats, scale)
        else:
            self.recipes[text(recipe.name)] = None
            seen.block(text(recipe.name), axis, blocks, stats)

    def quantised(self, t: Any, entering: Any) -> tuple[Any, Any, float]:
        """What a recipe makes of a tensor: its statistics, those of the numbers that it is given, and the scale of the first block."""
        recipe = entering.recipe
        x = t if entering.format is None else self.core.to_format(t, entering.format, MODES[entering.c.mode])
        x = x.float().contiguous()
        if entering.c.hadamard:
            x = self._transformed(x if x.data_ptr() != t.data_ptr() else x.clone(), entering)
        rows, cols = x.shape[-2:]
        together = recipe.block_rows == 0 and recipe.block_cols == 0 or bool(recipe.block_rows) and rows % recipe.block_rows == 0
        matrices = [x.flatten(0, -2)] if together else list(x.unsqueeze(0).flatten(0, -3))
        amax = -1.0 if together else float(x.abs().max()) if x.numel() else 0.0
        stats = CBlockStats()
        scales = numpy.zeros(self._grid(recipe, matrices[0]), numpy.float32) if matrices else numpy.zeros(1, numpy.float32)
        rng = None if entering.rng is None else type(entering.rng).from_buffer_copy(entering.rng)
        for matrix in matrices:
            out = CBlocks(stats=addressof(stats), scales=scales.ctypes.data)
            given = 1.0 if entering.given is None else entering.given
            bytes_at = cast(matrix.data_ptr(), lib.mpsim_block_quantize.argtypes[1])
            check(lib.mpsim_block_quantize(byref(recipe), bytes_at, matrix.shape[0], cols, amax, given, None if rng is None else byref(rng), byref(out),
                                           None), f"recipe '{text(recipe.name)}'")
            if rng is not None:
                rng.index += matrix.numel()
        tally = Tally(self._set(None), True)  # type: ignore[arg-type]
        tally.add(x.data_ptr(), x.numel(), BINARY32, 1)
        return stats, tally.stats, float(scales.flat[0])

    @staticmethod
    def _grid(recipe: Any, matrix: Any) -> int:
        rows, cols = matrix.shape
        h, w = recipe.block_rows or max(rows, 1), recipe.block_cols or max(cols, 1)
        blocks: int = max(1, -(-rows // h) * -(-cols // w))
        return blocks

    def _transformed(self, x: Any, entering: Any) -> Any:
        for row in x.flatten(0, -2):
            bytes_at = cast(row.data_ptr(), lib.mpsim_hadamard_groups.argtypes[0])
            check(lib.mpsim_hadamard_groups(bytes_at, row.numel(), entering.c.hadamard, 0), "Hadamard transform")
        return x if entering.format is None else self.core.to_format(x, entering.format, MODES[entering.c.mode]).float()

    # ---- results ----

    def wide(self, out: View, to: Format, model: str) -> Any:
        """In a step with statistics, a tensor for a product's sums before they are rounded; None: they are rounded at once."""
        if not self.full or to.name not in ("bf16", "fp16") or out.format is not to or model != TORCH and model_of(model)[1].name != "binary32":
            return None
        return torch.empty(tuple(out.shape), dtype=torch.float32, device=out.keep.device)

    def narrow(self, record: Any, kind: str, slots: Any, sums: Any, out: View, to: Format) -> None:
        """Sums, rounded into their place as the product would have; what that does is counted."""
        sums = here(sums)
        codes = torch.from_numpy(encode(sums.numpy(), to).view(numpy.int16))
        tensor_of(out).view(torch.int16).copy_(codes.reshape(tuple(out.shape)))
        if record.recomputed:
            return
        label, name = label_of(record, slots[2], kind, slots)
        tally = Tally(self._set(to), True)  # type: ignore[arg-type]
        tally.add(sums.data_ptr(), sums.numel(), BINARY32, 1)
        seen = self.seen.get((label, name))
        if seen is None:
            seen = self.seen[label, name] = Seen(label, name, "F32", list(out.shape))
        seen.add(tally.stats)
        seen.cast(to.name, tally.casts[0], tally.stats)
        stats, did = tally.stats, tally.casts[0].counts
        self._counts(slots[2], name, label, name).add(stats.count - stats.zero - stats.nan - stats.inf, did.underflow, did.overflow,
                                                      stats.nan + stats.inf + did.overflow)

    def result(self, record: Any, kind: str, slots: Any, out: View, to: Format) -> None:
        """A result that is rounded already: what it holds."""
        if self.full and not record.recomputed:
            label, name = label_of(record, slots[2], kind, slots)
            seen = self.seen.get((label, name))
            t = tensor_of(out)
            if seen is None:
                seen = self.seen[label, name] = Seen(label, name, STORED[t.dtype], list(t.shape))
            t = here(t if dense(t.shape, t.stride()) else t.contiguous())
            tally = Tally(self._set(None), True)  # type: ignore[arg-type]
            tally.add(t.data_ptr(), t.numel(), FORMATS[t.dtype], 1)
            seen.add(tally.stats)
