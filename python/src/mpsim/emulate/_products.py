"""Products as the plan has them: operands entered, multiplied under a model, rounded into a tensor."""
from __future__ import annotations

import functools
from typing import Any, Optional

import torch

from .._formats import Format, find
from .._library import CRecipe, CRng, lib, text
from .._product import Entering, Operand, View
from ._delayed import Histories
from ._plans import BINARY32, Plans, one_scale

GIVEN = 11  # MPSIM_SCALE_GIVEN
BF16, FP16, BINARY64, TF32 = find("bf16"), find("fp16"), find("binary64"), find("tf32")
FORMATS = {torch.float32: BINARY32, torch.bfloat16: BF16, torch.float16: FP16, torch.float64: BINARY64}
DTYPES = {"binary32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "binary64": torch.float64}


def dtype_of(format: Format) -> Any:
    """The dtype that holds numbers of a format: its own, or float32."""
    return DTYPES.get(format.name, torch.float32)


class Record:
    """A product of a forward pass: what its gradients need to know."""

    __slots__ = ("path", "name", "form", "attention", "rank", "left", "right", "swapped", "dtypes", "param", "operands", "shape",
                 "recomputed", "gradients", "extra")

    def __init__(self, path: str, name: str, form: str, attention: bool, rank: int, recomputed: bool) -> None:
        self.path, self.name, self.form, self.attention, self.rank = path, name, form, attention, rank
        self.left = self.right = 0  # storages of the operands in the slots act and weight
        self.swapped = False  # the weight was the first operand
        self.dtypes: tuple[Any, Any] = (torch.float32, torch.float32)
        self.param: Any = None
        self.operands: dict[Any, Operand] = {}  # one-scale copies, which all products of a step share
        self.shape: tuple[int, ...] = ()
        self.recomputed = recomputed
        self.extra: Any = None  # of several products in one operator, what their gradients need
        self.gradients = 0  # weight gradients so far, of one of several products of a function

    def drop(self) -> None:
        """What was kept so that gradients need not make it again."""
        self.operands = {}
        if isinstance(self.extra, list):
            for each in self.extra:
                if isinstance(each, Record):
                    each.drop()
            if self.attention:
                self.extra[2] = None


class Products:
    """What all handlers of products do."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.plans: Plans = core.plans
        self.arch = core.arch
        self.histories = Histories(core)
        self.noted = False
        self.casts: Any = None  # torch's products in place of the library's
        if self.arch.is_torch:
            from ._casts import Casts

            self.casts = Casts(core)
        self.elements: dict[int, tuple[Any, Format]] = {}  # of recipes, by their objects, which are kept
        self.enterings: dict[Any, Entering] = {}  # that nothing but the placement decides
        self.words = {"act": ("act", "act.qt"), "weight": ("weight", "weight.qt"), "agrad": ("agrad", "agrad.qt")}

    def placement(self, record: Record, kind: str) -> Any:
        plans = self.plans
        key = record.path, kind, record.rank, record.attention
        return plans.products.get(key) or plans.place(*key)

    # ---- operands ----

    def _rng(self, recipe: Any, record: Record, word: str) -> Optional[CRng]:
        if recipe.element_mode < 6:
            return None
        return CRng(self.core.seed, self.core.stream(f"{word}:{record.name}"), 0)

    def operand(self, record: Record, kind: str, placement: Any, slot: str, view: View, transposed: bool, param: Any) -> tuple[Any, Format, str]:
        """What a product reads of a tensor, its format, and the name of a recipe whose scales enter the model. `view` has its depth along its
        columns; transposed: as the copy of the tensor's transpose, of block recipes."""
        format: Format = placement.format[slot]
        recipe = placement.recipe[slot]
        rounding = "nearest-even"
        if param is not None and param.low:
            if param.storage.within(format):
                format = param.storage
            if param.split:
                rounding = "nearest-away"
        if recipe is None:
            if self.arch.tf32 and format is BINARY32:
                return self.core.home.enter(view, Entering(TF32, rounding="nearest-away")), TF32, ""
            if rounding == "nearest-even":
                return (view, format), format, ""
            return self.core.home.enter(view, Entering(format, rounding=rounding)), format, ""
        element = self.element(recipe)
        if one_scale(recipe):
            return self._one_scale(record, kind, slot, view, transposed, format, recipe), element, ""
        word = self.words[slot][transposed]
        hadamard = placement.hadamard if transposed and slot != "weight" else 0
        how = "numbers" if self.casts is not None else "codes" if placement.promote else "scaled" if self.arch.scaled else "values"
        if how == "values" and not self.noted:
            self.noted = True
            self.core.note(f"blocks are multiplied as the bf16 numbers that codes and scales stand for: arch '{self.arch.name}' has no products "
                           "of codes with scales, blackwell-scaled and rtx-blackwell-scaled have")
        entering = self.entering(format, recipe, self._rng(recipe, record, word), hadamard=hadamard, blocks=how, rounding=rounding,
                                 promote=placement.promote)
        made = self.core.home.enter(view, entering, self.core.report.casts(record, word, recipe) if self.core.report else None, False)
        self.core.entered(record, kind, word, view, entering, made)
        return made, BF16 if how == "values" else element, text(recipe.name) if how == "scaled" else ""

    def element(self, recipe: Any) -> Format:
        """The format of a recipe's elements."""
        found = self.elements.get(id(recipe))
        if found is None:
            found = self.elements[id(recipe)] = recipe, find(text(recipe.element))
        return found[1]

    def entering(self, format: Format, recipe: Any, rng: Optional[CRng], given: Optional[float] = None, **how: Any) -> Entering:
        if rng is not None or given is not None:
            return Entering(format, recipe, rng=rng, given=given, **how)
        self.element(recipe)  # keeps it
        key = format, id(recipe), *how.values()
        made = self.enterings.get(key)
        if made is None:
            made = self.enterings[key] = Entering(format, recipe, **how)
        return made

    def _one_scale(self, record: Record, kind: str, slot: str, view: View, transposed: bool, format: Format, recipe: Any) -> Any:
        key = slot, view.address
        made = record.operands.get(key)
        if made is None:
            upright = view.t() if transposed else view
            given = self.histories.scale(record, slot, recipe)
            if given is not None:
                recipe = given_recipe(recipe)
            entering = self.entering(format, recipe, self._rng(recipe, record, slot), given,
                                     blocks="values" if self.casts is None else "numbers")
            made = self.core.home.enter(upright, entering, self.core.report.casts(record, slot, recipe) if self.core.report else None, given is not None)
            if given is not None and not record.recomputed:
                self.histories.record(record, slot, made.amax)
            record.operands = {k: v for k, v in record.operands.items() if k[0] != slot}
            record.operands[key] = made
            self.core.entered(record, kind, slot, upright, entering, made)
        return made.t() if transposed else made

    # ---- products ----

    def run(self, record: Record, kind: str, a: View, b: View, out: View, transposed: tuple[bool, bool] = (False, False), *,
            slots: tuple[str, str, str], to: Format, bias: Any = None, factor: float = 1.0, add: Optional[View] = None, add_factor: float = 1.0,
            using: Any = None) -> None:
        """out = a b^T as the plan has it, rounded to a format: a of rows x depth, b of columns x depth, in the slots. bias: a tensor of one
        number a column, in the slot weight. factor, add, add_factor: those of multiply. using: another function of the
        library that adds up products of two operands, as a convolution."""
        sa, sb, _ = slots
        report = self.core.report
        if report is not None and report.at != self.core.step:
            report.begin()
        placement = self.placement(record, kind)
        left, fa, ra = self.operand(record, kind, placement, sa, a, transposed[0], record.param if sa == "weight" else None)
        right, fb, rb = self.operand(record, kind, placement, sb, b, transposed[1], record.param if sb == "weight" else None)
        model = self.arch.of_blocks(ra, rb) if ra and rb else self.arch.of(fa, fb)
        row = None if bias is None else self.bias(bias, placement)
        core = self.core
        if core.watchers:
            core.saw(record, kind, slots, (a, b), (left, right), (fa, fb), model, out, to)
        sums = None if report is None else report.wide(out, to, model)
        counts = None if report is None or sums is not None else report.products(record, kind, slots)
        terms = {}
        if using is None:
            using = core.home.multiply if self.casts is None else self.casts.multiply
            terms = {"factor": factor, "add": add, "add_factor": add_factor}
        using(out if sums is None else View.of(sums), left, right, model, bias=row, format=to if sums is None else BINARY32, counts=counts, **terms)
        if sums is not None:
            report.narrow(record, kind, slots, sums, out, to)
        elif report is not None:
            report.result(record, kind, slots, out, to)
        if core.results:
            core.gave(record, kind, slots, out, to)

    def bias(self, bias: Any, placement: Any) -> View:
        """A bias as it enters: a float32 row of numbers of the format of weights."""
        tag = self.core.roles.tag(bias)
        return View.row(self.core.enter_weight(bias, tag.param if tag is not None else None, placement.format["weight"]))


@functools.lru_cache(maxsize=None)
def _given(name: str) -> CRecipe:
    recipe = CRecipe.from_buffer_copy(lib.mpsim_block_find(name.encode()).contents)
    recipe.rule = GIVEN
    return recipe


def given_recipe(recipe: CRecipe) -> CRecipe:
    """The same with a scale that is given."""
    return _given(text(recipe.name))
