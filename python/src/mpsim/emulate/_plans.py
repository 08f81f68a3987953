"""What the policy says of a product: formats and recipes of its operands and its result, the model that adds it up.

A product has a kind and slots. `fprop`: act x weight -> out. `dgrad`: agrad x weight -> dgrad. `wgrad`: agrad x act -> wgrad. Of two
activations (attention) the first is in the slot act and the second in the slot weight, and both their gradients are dgrad.

Placements are those of the trainer, from the same function of the library (mpsim/policy.h). python/tests/emulate/parity.py compares every tensor
of the four networks of `mpsim train`, written as modules by an author who had not read the trainer.
"""
from __future__ import annotations

import fnmatch
import functools
import re
from ctypes import byref
from typing import Any, Mapping, Optional, Sequence

from .._dot import MODELS
from .._error import FileError, InputError, unknown
from .._formats import Format, find
from .._library import CModel, CRecipe, lib, text
from .._policy import Policy

BINARY32 = find("binary32")
SLOTS = {"fprop": ("act", "weight", "out"), "dgrad": ("agrad", "weight", "dgrad"), "wgrad": ("agrad", "act", "wgrad")}
PRODUCTS = tuple(SLOTS)
TORCH = "torch float32"  # the model of arch="torch": torch's own products
CPUS = ("avx512", "amx", "arm")  # the architectures of lib/dot/cpurows.h


def policy_of(value: Any, what: str, layers: list[str]) -> Policy:
    """A policy: an open one, a bundled name, a path, a dict, or a precision's word ("bf16")."""
    if isinstance(value, Policy):
        return value
    try:
        return Policy.open(value, layers)
    except (InputError, FileError) as error:
        word = _precision(value, layers)
        if word is not None:
            return word
        raise type(error)(f"{what}: {str(error).removeprefix('policy: ')}") from None


def _precision(value: Any, layers: list[str]) -> Optional[Policy]:
    """The policy of a precision's word, under that name; None where the word is none."""
    if not isinstance(value, str) or "/" in value or "." in value:
        return None
    try:
        made = Policy.open({"precision": value}, layers)
    except InputError:
        return None
    made.name = value
    return made


class Override:
    """Paths and products that another policy has."""

    def __init__(self, key: str, value: Any, layers: list[str]) -> None:
        self.key, self.product = key, ""
        pattern = key
        head, slash, tail = key.rpartition("/")
        if slash and tail in PRODUCTS:
            pattern, self.product = head, tail
        self.policy = policy_of(value, f"overrides: '{key}'", layers)
        # a pattern of the shell, or a regular expression: whichever fits
        self.glob = self.regex = re.compile(fnmatch.translate(pattern))
        try:
            self.regex = re.compile(pattern)
        except re.error:
            pass  # "*.mlp" is none

    def fits(self, path: str, product: str = "") -> bool:
        if self.product and product and product != self.product:
            return False
        return bool(self.glob.fullmatch(path) or self.regex.fullmatch(path))


class Architecture:
    """Where matrix products run: models by the formats of their operands, as `mpsim train --arch` has them."""

    def __init__(self, name: str, tf32: bool = False) -> None:
        if not isinstance(name, str):
            raise InputError(f"arch: expected the name of an architecture or of an accumulation model, found {type(name).__name__}")
        self.name, self.tf32 = name, tf32
        self.scaled = name.endswith("-scaled")
        self.base = name[: -len("-scaled")] if self.scaled else name
        known = {text for text in _architectures()}
        self.is_torch = name == "torch"
        self.is_model = self.base not in known and not self.is_torch
        if self.is_model:
            if name not in MODELS and not _parses(name):
                raise _no_arch(name, [*sorted(known), "torch"])
        elif self.scaled and not _scales(self.base):
            raise InputError(f"arch '{name}': only blackwell-scaled and rtx-blackwell-scaled multiply blocks with their scales")
        self.is_cpu = self.base in CPUS
        self.row = f"{self.base}-bf16-fp32"  # of CPUs
        self.of = functools.lru_cache(maxsize=None)(self._of)
        self.of_blocks = functools.lru_cache(maxsize=None)(self._of_blocks)

    def _of(self, a: Format, b: Format) -> str:
        """The name of the model."""
        if self.is_model:
            return self.base
        if self.is_torch:
            return TORCH
        if a is BINARY32 or b is BINARY32:  # the other one, as parameters that are stored in bf16, is widened
            return "fma"
        model = CModel()
        if lib.mpsim_model_for(byref(model), self.base.encode(), a.c, b.c, BINARY32.c):
            raise InputError(f"arch '{self.name}' has no products of {a} and {b}; name another one, or a model: exact, fma, ...")
        return text(model.name)

    def _of_blocks(self, left: str, right: str) -> str:
        """The name of the model that multiplies the blocks of two recipes with their scales."""
        model = CModel()
        a, b = (lib.mpsim_block_find(name.encode()).contents for name in (left, right))
        scales, other = lib.mpsim_block_scale_format(byref(a)), lib.mpsim_block_scale_format(byref(b))
        same = scales and other and text(scales.contents.name) == text(other.contents.name) and a.block_cols == b.block_cols
        if not same or lib.mpsim_model_for_blocks(byref(model), self.base.encode(), find(text(a.element)).c, find(text(b.element)).c, a.block_cols,
                                                  scales):
            raise InputError(f"arch '{self.name}' has no products of {left} and {right} with their scales")
        return text(model.name)


def _no_arch(name: str, known: list[str]) -> InputError:
    """The error for an architecture that is none: the nearest name, or all of them."""
    error = unknown("architecture or accumulation model", name, (*known, *MODELS))
    if "did you mean" in str(error):
        return error
    return InputError(f"{error}; the architectures are {', '.join(known)}")


def _architectures() -> set[str]:
    names = set()
    model = CModel()
    for i in range(lib.mpsim_model_count()):
        lib.mpsim_model_at(byref(model), i)
        if model.architecture:
            names.add(model.architecture.decode())
    return names


def _parses(name: str) -> bool:
    return not lib.mpsim_model_parse(byref(CModel()), name.encode("ascii", "replace"))


def _scales(base: str) -> bool:
    model = CModel()
    for i in range(lib.mpsim_model_count()):
        lib.mpsim_model_at(byref(model), i)
        if model.block and model.architecture and model.architecture.decode() == base:
            return True
    return False


class Plans:
    """Placements of all layers, of the plan in force and of overrides."""

    def __init__(self, policy: Any, overrides: Optional[Mapping[str, Any]], layers: list[str],
                 modules: Sequence[str] = ()) -> None:
        self.policy = policy_of(policy, "policy", layers)
        if overrides is not None and not isinstance(overrides, Mapping):
            raise InputError(f"overrides: expected a dict of policies by patterns, found {type(overrides).__name__}")
        self.overrides = [Override(key, value, layers) for key, value in (overrides or {}).items()]
        for override in self.overrides:
            if not any(override.fits(name + part) for name in modules for part in ("", ".scores", ".softmax", ".context")):
                raise InputError(f"overrides: '{override.key}' fits no module")
        self.begin(0)

    def begin(self, step: int) -> bool:
        """The plan of a step, from 0, comes in force. Whether that is another one."""
        plan = self.policy.plan(step)
        if getattr(self, "plan", None) is plan:
            return False
        self.plan = plan
        self.step = step
        self.placed: dict[Any, Any] = {}
        self.products: dict[tuple[str, str, int, bool], Any] = {}  # of `place`
        self.chosen: dict[tuple[str, str], Any] = {}
        return True

    def of(self, path: str, product: str) -> Any:
        """The plan that has a product of a path."""
        key = path, product
        plan = self.chosen.get(key)
        if plan is None:
            plan = self.plan
            for override in self.overrides:
                if override.fits(path, product):
                    plan = override.policy.plan(self.step)
            self.chosen[key] = plan
        return plan

    def place(self, path: str, product: str, rank: int, attention: bool = False) -> Any:
        """The placement of a layer, as one of its products has it."""
        placed = self.products[path, product, rank, attention] = self._placed(path, product, "conv" if rank > 2 else "linear", rank, attention, True)
        return placed

    def place_kind(self, path: str, kind: str) -> Any:
        """The placement of an operation between the products."""
        return self._placed(path, "fprop", kind, -1, False, None)

    def _placed(self, path: str, product: str, kind: str, rank: int, attention: bool, multiplies: Optional[bool]) -> Any:
        key = path, product, kind, rank, attention, multiplies
        placed = self.placed.get(key)
        if placed is None:
            placed = self.placed[key] = self.of(path, product).place(path, kind, rank=rank, attention=attention, multiplies=multiplies)
        return placed


def one_scale(recipe: Optional[CRecipe]) -> bool:
    return recipe is not None and recipe.block_rows == 0 and recipe.block_cols == 0
