"""Which modules and products break a run: the others are turned back to a baseline by halves (delta debugging).

A unit is the products of one kind of a module. A set of units breaks the metric if the run is bad with these units under the policy and all
others under the baseline. What is found are sets that break the metric and no longer do so without any one of their units; sets that
do so beside one another are all found.
"""
from __future__ import annotations

import math
import re
import sys
from typing import Any, Callable, Iterator, Optional, Sequence, Union

from .._error import InputError
from .._library import lib
from .._policy import Policy
from ._apart import _wants, untouched
from ._audit import wrapped
from ._plans import policy_of
from ._said import Said

Unit = tuple[str, str]


class Bisection(Said):
    """What `Emulator.bisect` gives.

    sets: lists of (module, kind of product); each breaks the metric alone, and no longer without one of its members. runs: how many times
    the metric was computed. threshold: the largest number that is good; None: the metric says yes or no. policy, baseline: the metric
    with all units under the one, and with all under the other. log: a row for each run: units under the policy, value, good.
    verdict: a sentence.
    """

    def __init__(self, names: tuple[str, str], sets: list[list[Unit]], log: list[tuple[tuple[Unit, ...], Any, bool]], units: Sequence[Unit],
                 threshold: Optional[float], verdict: str) -> None:
        self.names, self.sets, self.log, self.units, self.threshold, self.verdict = names, sets, log, list(units), threshold, verdict
        self.runs = len(log)
        self.policy = log[0][1] if log else None
        self.baseline = log[1][1] if len(log) > 1 else None

    @property
    def overrides(self) -> dict[str, str]:
        """What `emulate(overrides=)` takes to keep the units that were found under the baseline."""
        return {key_of(unit): self.names[1] for each in self.sets for unit in each}

    def as_dict(self) -> dict[str, Any]:
        return {"schema": "mpsim.emulate-bisect/1", "mpsim": lib.mpsim_version().decode(), "policy": self.names[0], "baseline": self.names[1],
                "sets": [[{"module": path, "kind": kind} for path, kind in each] for each in self.sets], "runs": self.runs, "units": len(self.units),
                "threshold": self.threshold, "values": {"policy": self.policy, "baseline": self.baseline}, "verdict": self.verdict,
                "log": [{"units": len(units), "value": value, "good": good} for units, value, good in self.log]}

    def _lines(self) -> Iterator[str]:
        yield from wrapped(self.verdict)
        for i, each in enumerate(self.sets):
            if len(each) > 1:
                yield "  these together:" if i == 0 else "  and these together:"
            for path, kind in each:
                yield f"    {kind} of {path or 'the model itself'}"
        good = "" if self.threshold is None else "; good is any finite number" if self.threshold == sys.float_info.max else \
            f"; good is at most {self.threshold:.6g}"
        values = "" if self.baseline is None else f"; the metric is {said(self.policy)} under {self.names[0]}, {said(self.baseline)} under {self.names[1]}"
        yield from wrapped(f"{self.runs} runs, {len(self.units)} units{values}{good}")

    def __repr__(self) -> str:
        return f"<mpsim.emulate bisection: {len(self.sets)} sets in {self.runs} runs>"


def said(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def key_of(unit: Unit) -> str:
    """A unit as a key of overrides."""
    return f"{re.escape(unit[0])}/{unit[1]}"


class Search:
    """Runs of the metric, each once."""

    def __init__(self, e: Any, metric: Callable[..., Any], baseline: Policy, threshold: Optional[float]) -> None:
        self.e, self.metric, self.baseline, self.threshold = e, metric, baseline, threshold
        self.units: list[Unit] = []
        self.log: list[tuple[tuple[Unit, ...], Any, bool]] = []
        self.known: dict[frozenset[Unit], tuple[Any, bool]] = {}

    def value(self, low: Optional[Sequence[Unit]]) -> Any:
        """The metric with these units under the policy; None: with all, which are seen then."""
        chosen = None if low is None else frozenset(low)
        back = {} if chosen is None else {key_of(unit): self.baseline for unit in self.units if unit not in chosen}
        trial = self.e.again(overrides={**(self.e.asked.get("overrides") or {}), **back}, report=False)
        with untouched(trial.model), trial:
            got = self.metric(trial) if _wants(self.metric) else self.metric()
        if low is None:
            self.units = list(trial.core.ledger.order)
        return as_value(got)

    def good(self, value: Any) -> bool:
        return value if isinstance(value, bool) else not math.isnan(value) and (self.threshold is None or value <= self.threshold)

    def note(self, low: Sequence[Unit], value: Any) -> bool:
        good = self.good(value)
        self.log.append((tuple(low), value, good))
        self.known[frozenset(low)] = value, good
        return good

    def bad(self, low: Sequence[Unit]) -> bool:
        """Whether these units break the metric."""
        found = self.known.get(frozenset(low))
        return not found[1] if found is not None else not self.note(low, self.value(low))

    def least(self, units: list[Unit]) -> list[Unit]:
        """Of units that break the metric those that do, none of which can be left out: by halves, quarters, ... and what is left without them."""
        parts = 2
        while len(units) > 1:
            size = -(-len(units) // parts)
            pieces = [units[i:i + size] for i in range(0, len(units), size)]
            found = next((piece for piece in pieces if self.bad(piece)), None)
            if found is not None:
                units, parts = found, 2
                continue
            rests = ([u for other in pieces if other is not piece for u in other] for piece in pieces) if len(pieces) > 2 else ()
            found = next((rest for rest in rests if self.bad(rest)), None)
            if found is not None:
                units, parts = found, max(parts - 1, 2)
            elif size == 1:
                break
            else:
                parts = min(2 * parts, len(units))
        return units


def as_value(got: Any) -> Union[bool, float]:
    if isinstance(got, bool):
        return got
    try:
        return float(got)
    except (TypeError, ValueError):
        raise InputError(f"bisect: metric: expected True, False or a number, found {type(got).__name__}") from None


def bisect(e: Any, metric: Callable[..., Any], baseline: Any, threshold: Optional[float]) -> Bisection:
    """See Emulator.bisect."""
    if not callable(metric):
        raise InputError(f"bisect: metric: expected a function, found {type(metric).__name__}")
    layers = [name for name, _ in e.model.named_modules() if name]
    search = Search(e, metric, policy_of(baseline, "baseline", layers), threshold)
    with e.apart():
        return _search(search, e.core.plans.policy.name)


def _search(search: Search, name: str) -> Bisection:
    names = name, search.baseline.name
    whole = search.value(None)
    units = search.units
    none = search.value([])
    if search.threshold is None and not isinstance(whole, bool):  # of a number that is not finite: all finite ones are good
        search.threshold = (whole + none) / 2 if math.isfinite(whole) and math.isfinite(none) else sys.float_info.max
    bad = not search.note(units, whole)
    good = search.note([], none)

    def made(sets: list[list[Unit]], verdict: str) -> Bisection:
        return Bisection(names, sets, search.log, units, search.threshold, verdict)

    if not bad:
        return made([], f"The metric is good under {names[0]}: nothing is to be found.")
    if not good:
        return made([], f"The metric is bad with all products under {names[1]}, too: not the products break it, but what else the policy has: storage of "
                        "parameters, operations between the products, loss scaler, optimizer.")
    sets: list[list[Unit]] = []
    rest = list(units)
    while rest and search.bad(rest):
        sets.append(search.least(rest))
        rest = [unit for unit in rest if unit not in sets[-1]]
    n = sum(map(len, sets))
    return made(sets, f"{n} of {len(units)} units break{'s' if n == 1 else ''} the metric" + (f", in {len(sets)} sets that do so one without the other" if len(sets) > 1 else "") +
                ": with these under the baseline it is good.")
