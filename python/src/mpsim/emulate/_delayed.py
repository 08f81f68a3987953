"""Delayed scaling: the histories of largest magnitudes of all operands, and the scales that come of them (mpsim/recipe.h)."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_float
from typing import Any, Optional

import torch

from .._error import InputError
from .._formats import find
from .._library import lib, text
from .._policy import CDelayedConfig


class CDelayed(ctypes.Structure):
    _fields_ = [("config", CDelayedConfig), ("scale", c_float), ("scale_inverse", c_float), ("history", POINTER(c_float))]


SETTINGS = tuple(field[0] for field in CDelayedConfig._fields_)
STRUCTURES = {"mpsim_delayed": CDelayed}

for _name, _restype, _arguments in (("init", ctypes.c_int, [POINTER(CDelayed), POINTER(CDelayedConfig), POINTER(c_float)]),
                                    ("record", None, [POINTER(CDelayed), c_float]), ("update", None, [POINTER(CDelayed), c_float])):
    _function = getattr(lib, "mpsim_delayed_" + _name)
    _function.restype, _function.argtypes = _restype, _arguments


class History:
    """One operand's."""

    __slots__ = ("c", "numbers", "element", "seen")

    def __init__(self, config: CDelayedConfig, element: str) -> None:
        own = CDelayedConfig.from_buffer_copy(config)
        own.fp8_max = find(element).max
        self.numbers = (c_float * own.history)()
        self.c, self.element, self.seen = CDelayed(), element, False
        if lib.mpsim_delayed_init(byref(self.c), byref(own), self.numbers):
            raise InputError("the settings of delayed scaling are out of range")


class Histories:
    """Those of all layers: of act, weight and agrad."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.all: dict[tuple[str, str], History] = {}
        self.waiting: list[tuple[History, Any]] = []  # magnitudes that a device has, each a tensor of one number

    def scale(self, record: Any, slot: str, recipe: Any) -> Optional[float]:
        """The scale that steps before have left; None: the recipe is not delayed."""
        plan = self.core.plans.of(record.path, "fprop")
        if plan.delayed is None:
            return None
        key = record.name, slot
        history = self.all.get(key)
        if history is None:
            history = self.all[key] = History(plan.delayed, text(recipe.element))
        return float(history.c.scale)

    def record(self, record: Any, slot: str, amax: Any) -> None:
        """A cast of this step saw this largest magnitude. One that a device has is read when the step is over."""
        history = self.all[(record.name, slot)]
        history.seen = True
        if isinstance(amax, float):
            lib.mpsim_delayed_record(byref(history.c), amax)
        else:
            self.waiting.append((history, amax))

    def settle(self) -> None:
        """Magnitudes that a device has are recorded."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for (history, _), amax in zip(waiting, torch.cat([each[1] for each in waiting]).tolist()):
                lib.mpsim_delayed_record(byref(history.c), amax)

    def update(self) -> None:
        """A step is over."""
        self.settle()
        for history in self.all.values():
            if history.seen:
                lib.mpsim_delayed_update(byref(history.c), 0.0)
            history.seen = False

    def state_dict(self, over: int) -> dict[str, Any]:
        """over: 1 where the step is over, and its magnitudes are in no scale yet."""
        self.settle()
        if over:
            self.update()
        return {f"{slot}:{name}": {"settings": [getattr(h.c.config, name) for name in SETTINGS], "scale": h.c.scale,
                                   "scale_inverse": h.c.scale_inverse, "history": list(h.numbers), "element": h.element}
                for (name, slot), h in self.all.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.all.clear()
        self.waiting = []
        for key, kept in state.items():
            slot, _, name = key.partition(":")
            history = self.all[(name, slot)] = History(CDelayedConfig(*kept["settings"]), kept["element"])
            history.c.scale, history.c.scale_inverse = kept["scale"], kept["scale_inverse"]
            history.numbers[:] = kept["history"]
