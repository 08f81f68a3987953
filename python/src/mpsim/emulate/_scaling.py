"""The loss scaler of a policy: backward under its scale, what it says of a step, its history.

A step of the scaler begins with the first scaled backward and ends where gradients are checked (_optimizer.py).
"""
from __future__ import annotations

from ctypes import byref
from typing import Any, Mapping, NamedTuple, Optional

import torch

from .._error import InputError, shown
from .._library import CScaler, CScalerConfig, lib, text
from .._scaler import Scaler, Step

BEFORE_UNSCALE = 2  # MPSIM_UPDATE_BEFORE_UNSCALE: gradients are divided by the next scale


class Scaled(NamedTuple):
    """A step of the loss scaler.

    step: of the training, from 0. scale: that the loss was multiplied by; next: of the next step. events: of `mpsim.events`. cause: the
    parameter whose gradient is not finite, or "norm of all gradients", or None. skipped: the optimizer moved nothing.
    """

    step: int
    scale: float
    next: float
    events: tuple[str, ...]
    cause: Optional[str]
    skipped: bool


def scaler_of(config: CScalerConfig) -> Scaler:
    """A loss scaler of settings that need no name."""
    s = Scaler.__new__(Scaler)
    s.spec, s._c = text(config.name), CScaler()
    if lib.mpsim_scaler_init(byref(s._c), byref(config)):
        raise InputError(f"loss_scaling: the settings of {s.spec} are outside their domains")
    s._ref = byref(s._c)
    return s


class Scaling:
    """The scaler of the plan in force. pending: a backward since the last check was scaled."""

    def __init__(self) -> None:
        self.config = CScalerConfig()
        self.scaler: Optional[Scaler] = None
        self.pending = False
        self.factor = 1.0  # that the loss of the backward pass that runs is multiplied by
        self.history: list[Scaled] = []

    def place(self, config: CScalerConfig) -> None:
        """A plan comes in force: the scaler goes on if its settings are the same."""
        if self.scaler is None or bytes(config) != bytes(self.config):
            self.config = CScalerConfig.from_buffer_copy(config)
            self.scaler, self.pending = scaler_of(self.config), False

    @property
    def there(self) -> bool:
        """Whether the policy has a loss scale."""
        return text(self.config.name) != "none"

    @property
    def scale(self) -> float:
        """The scale of the next backward."""
        return self.scaler.scale if self.scaler else 1.0

    @property
    def held(self) -> float:
        """The scale that gradients hold which were not unscaled yet; 1: none."""
        return self.scale if self.pending and self.there else 1.0

    def backward(self, loss: Any, **kwargs: Any) -> None:
        """Gradients of the loss times the scale; in float32 from the loss on, where a scale of 65536 is a number."""
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InputError(f"backward: expected a loss of one number, found {shown(loss) if not isinstance(loss, torch.Tensor) else list(loss.shape)}")
        if self.scaler and self.scaler.stopped:
            raise InputError(f"loss_scaling: {self.scaler.spec} has given up: the scale would fall below its smallest one")
        if loss.dtype in (torch.float16, torch.bfloat16):
            loss = loss.float()
        self.pending = self.pending or self.there
        if self.there:
            kwargs["gradient"] = torch.full_like(loss, self.scale)
            self.factor = self.scale
        try:
            loss.backward(**kwargs)
        finally:
            self.factor = 1.0

    def update(self, step: int, cause: Optional[str]) -> Step:
        """The gradients of a scaled step were checked; cause: what is to blame for an overflow."""
        assert self.scaler is not None
        said = self.scaler.update(cause is not None)
        self.pending = False
        if self.there:
            skipped = "skipped" in said.events or "raised" in said.events
            self.history.append(Scaled(step, said.scale, said.next, said.events, cause, skipped))
        return said

    def state_dict(self) -> dict[str, Any]:
        return {"spec": self.scaler.spec if self.scaler else None, "scaler": self.scaler.state_dict() if self.scaler else None, "pending": self.pending, "history": [list(h) for h in self.history]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if self.scaler and state["scaler"] is not None and state["spec"] == self.scaler.spec:  # a plan of this step may have another one
            self.scaler.load_state_dict(state["scaler"])
        self.pending = bool(state["pending"])
        self.history = [Scaled(step, scale, after, tuple(events), cause, skipped) for step, scale, after, events, cause, skipped in state["history"]]
