"""Products as the plan has them: operands entered, multiplied under a model, rounded into a tensor."""
from __future__ import annotations

from typing import Any, Optional

import torch

from .._formats import Format, find
from .._library import CRng
from .._product import Entering, Operand, View, enter, multiply
from ._delayed import Histories
from ._plans import BINARY32, Plans, one_scale

BF16, FP16, BINARY64 = find("bf16"), find("fp16"), find("binary64")
FORMATS = {torch.float32: BINARY32, torch.bfloat16: BF16, torch.float16: FP16, torch.float64: BINARY64}
DTYPES = {"binary32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "binary64": torch.float64}


def dtype_of(format: Format) -> Any:
    """The dtype that holds numbers of a format: its own, or float32."""
    return DTYPES.get(format.name, torch.float32)


class Record:
    """A product of a forward pass: what its gradients need to know."""

    __slots__ = ("path", "name", "form", "attention", "rank", "left", "right", "swapped", "dtypes", "param", "operands", "shape", "where", "line",
                 "recomputed", "extra")

    def __init__(self, path: str, name: str, form: str, attention: bool, rank: int, recomputed: bool) -> None:
        self.path, self.name, self.form, self.attention, self.rank = path, name, form, attention, rank
        self.left = self.right = 0  # storages of the operands in the slots act and weight
        self.swapped = False  # the weight was the first operand
        self.dtypes: tuple[Any, Any] = (torch.float32, torch.float32)
        self.param: Any = None
        self.operands: dict[Any, Operand] = {}  # one-scale copies, which all products of a step share
        self.shape: tuple[int, ...] = ()
        self.where, self.line, self.recomputed, self.extra = None, "", recomputed, None


class Products:
    """What all handlers of products do."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.plans: Plans = core.plans
        self.arch = core.arch
        self.histories = Histories(core)
        self.words = {"act": ("act", "act.qt"), "weight": ("weight", "weight.qt"), "agrad": ("agrad", "agrad.qt")}

    def placement(self, record: Record, kind: str) -> Any:
        return self.plans.place(record.path, kind, record.rank, record.attention)

    # ---- operands ----

    def _rng(self, recipe: Any, record: Record, word: str) -> Optional[CRng]:
        if recipe.element_mode < 6:
            return None
        return CRng(self.core.seed, self.core.stream(f"{word}:{record.name}"), 0)

    def operand(self, record: Record, placement: Any, slot: str, view: View, transposed: bool, param: Any) -> Any:
        """What a product reads of a tensor: a view and the format that it is rounded to, or an Operand. `view` has its depth along its
        columns; transposed: as the copy of the tensor's transpose, of block recipes."""
        format: Format = placement.format[slot]
        recipe = placement.recipe.get(slot)
        split = False
        if param is not None:
            storage = param.storage
            if storage is not BINARY32:
                if format is BINARY32 or storage.within(format):
                    format = storage
                split = param.split
        if recipe is None:
            if self.arch.tf32 and format is BINARY32:
                return enter(view, Entering(find("tf32"), rounding="nearest-away"))
            if split:
                return enter(view, Entering(format, rounding="nearest-away"))
            return view, format
        if one_scale(recipe):
            return self._one_scale(record, slot, view, transposed, format, recipe)
        word = self.words[slot][transposed]
        hadamard = placement.hadamard if transposed and slot != "weight" else 0
        how = "codes" if placement.promote else "scaled" if self.arch.scaled else "values"
        rng = self._rng(recipe, record, word)
        return enter(view, Entering(format, recipe, rng=rng, hadamard=hadamard, blocks=how, promote=placement.promote,
                                    rounding="nearest-away" if split else "nearest-even"),
                     self.core.report.casts(record, word, recipe) if self.core.report else None)

    def _one_scale(self, record: Record, slot: str, view: View, transposed: bool, format: Format, recipe: Any) -> Any:
        key = (slot, view.address) if slot == "agrad" else slot
        made = record.operands.get(key)
        if made is None:
            upright = view.t() if transposed else view
            given = self.histories.scale(record, slot, recipe)
            rng = self._rng(recipe, record, slot)
            made = enter(upright, Entering(format, recipe, given=given, rng=rng),
                         self.core.report.casts(record, slot, recipe) if self.core.report else None)
            if given is not None and not record.recomputed:
                self.histories.record(record, slot, made.amax)
            if slot == "agrad":
                record.operands = {k: v for k, v in record.operands.items() if k in ("act", "weight")}
            record.operands[key] = made
        return made.t() if transposed else made

    # ---- products ----

    def model(self, placement: Any, a: Any, b: Any, slots: tuple[str, str]) -> Any:
        left, right = (x.format if isinstance(x, Operand) else x[1] for x in (a, b))
        if self.arch.scaled and isinstance(a, Operand) and isinstance(b, Operand) and a.scaled and b.scaled:
            return self.arch.of_blocks(left, right, a.block, a.scale_format)
        return self.arch.of(left, right)

    def run(self, record: Record, kind: str, a: View, b: View, out: View, bias: Any = None, transposed: tuple[bool, bool] = (False, False), *,
            slots: tuple[str, str, str], to: Format) -> None:
        """out = a b^T as the plan has it, rounded to a format: a of rows x depth, b of columns x depth, in the slots. bias: a tensor of one
        number a column, in the slot weight."""
        sa, sb, so = slots
        placement = self.placement(record, kind)
        params = [record.param if slot == "weight" else None for slot in (sa, sb)]
        left = self.operand(record, placement, sa, a, transposed[0], params[0])
        right = self.operand(record, placement, sb, b, transposed[1], params[1])
        model = self.model(placement, left, right, (sa, sb))
        entered = None
        if bias is not None:
            entered = self.bias(bias, placement)
        if self.core.watchers:
            self.core.saw(record, kind, (sa, sb), (a, b), (left, right), model)
        multiply(out, left, right, model, bias=entered, to=to, counts=self.core.report.products(record, kind, so) if self.core.report else None)

    def bias(self, bias: Any, placement: Any) -> View:
        """A bias as it enters: a float32 row of numbers of the format of weights."""
        tag = self.core.roles.tag(bias)
        param = tag.param if tag is not None else None
        return View.of(self.core.enter_weight(bias, param, placement.format["weight"]))
