"""Loss scalers, a step at a time."""
from __future__ import annotations

from ctypes import byref, create_string_buffer
from typing import Any, Mapping, NamedTuple

from ._error import InputError, name_of, real_of, shown, unknown
from ._library import ENOTFOUND, CScaler, CScalerConfig, lib, text

SCALERS = tuple(text(lib.mpsim_scaler_at(i).contents.config.name) for i in range(lib.mpsim_scaler_count()))
# bit i is the event of that name, as reports of `mpsim scaler` call it
EVENTS = ("overflow", "skipped", "backoff", "growth", "tolerated", "floored", "ceiling", "refused", "raised")


class Step(NamedTuple):
    """What a step did to a scaler.

    events: names of what happened, of `mpsim.events`: "overflow", "skipped", "backoff", "growth", ...
    scale: that the loss of the step was multiplied by.
    unscale: that its gradients are divided by.
    next: the scale of the next step.
    """

    events: tuple[str, ...]
    scale: float
    unscale: float
    next: float


class Scaler:
    """A loss scaler as a framework has it, stepped by hand.

    spec: a name of `mpsim.scalers`, or with changes: "torch:init=2^10,window=500"; doc/explanations/scalers.md.

    >>> s = mpsim.Scaler("torch:window=2")
    >>> s.scale
    65536.0
    >>> s.update(True)
    Step(events=('overflow', 'skipped', 'backoff'), scale=65536.0, unscale=65536.0, next=32768.0)
    >>> s.update(False).events, s.update(False).events, s.scale
    ((), ('growth',), 65536.0)
    """

    def __init__(self, spec: str = "torch") -> None:
        config = CScalerConfig()
        status = lib.mpsim_scaler_parse(byref(config), name_of(spec, "scaler"))
        if status == ENOTFOUND and ":" not in spec:
            raise unknown("scaler", spec, SCALERS)
        if status:
            raise InputError(f"scaler '{spec}': an unknown name, key or word, or a value outside its domain")
        self.spec = spec
        self._c = CScaler()
        lib.mpsim_scaler_init(byref(self._c), byref(config))
        self._ref = byref(self._c)

    def update(self, overflow: bool) -> Step:
        """Account for one step, whose gradients overflowed or not; a bool, or a number that is not 0 where they did."""
        r = lib.mpsim_scaler_update(self._ref, 1 if overflow is True or real_of(overflow, "overflow") else 0)
        bits = r.events
        return Step(tuple(name for i, name in enumerate(EVENTS) if bits >> i & 1), r.scale, r.unscale, r.next)

    @property
    def scale(self) -> float:
        """The loss scale of the next step."""
        return float(self._c.scale)

    @property
    def step(self) -> int:
        """Steps seen."""
        return int(self._c.step)

    @property
    def stopped(self) -> bool:
        """Whether the framework has raised its error: the scale stays as it is."""
        return bool(self._c.stopped)

    def save(self) -> str:
        """The state as a line of text, for `load`.

        >>> s = mpsim.Scaler("torch"); _ = s.update(True); t = mpsim.Scaler("torch"); t.load(s.save()); t.scale
        32768.0
        """
        line = create_string_buffer(512)
        lib.mpsim_scaler_save(self._ref, line, len(line))
        return text(line.value)

    def load(self, state: str) -> None:
        """Go on from a saved state of a scaler of the same spec."""
        if not isinstance(state, str) or "\0" in state or lib.mpsim_scaler_load(self._ref, state.encode("utf-8", "replace")):
            raise InputError(f"expected a state of scaler '{self.spec}', as save() gives it, found {shown(state)}")

    def state_dict(self) -> dict[str, str]:
        """The same as a dict, for checkpoints: its spec and its state.

        >>> s = mpsim.Scaler("torch"); _ = s.update(True); t = mpsim.Scaler("torch"); t.load_state_dict(s.state_dict()); t.scale
        32768.0
        """
        return {"spec": self.spec, "state": self.save()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state_dict` of a scaler of the same spec."""
        if not isinstance(state, Mapping) or set(state) != {"spec", "state"}:
            raise InputError(f"expected a state of scaler '{self.spec}', as state_dict() gives it, found {shown(state)}")
        if state["spec"] != self.spec:
            raise InputError(f"expected a state of scaler '{self.spec}', found one of {shown(state['spec'])}")
        self.load(state["state"])

    def __getstate__(self) -> dict[str, str]:
        return self.state_dict()

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["spec"])  # type: ignore[misc]
        self.load_state_dict(state)

    def __repr__(self) -> str:
        return f"<mpsim.Scaler {self.spec}: scale {self.scale:g}, step {self.step}>"
