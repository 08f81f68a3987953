"""The same step under two policies, tensor beside tensor."""
from __future__ import annotations

import math
from typing import Any, Callable, Iterator, Mapping, Optional

import torch

from .._library import lib
from .._windows import tensor_of
from ._apart import one_step, untouched
from ._audit import table, wrapped
from ._counting import label_of
from ._said import Said

ROWS = 20  # of the printed table


class Difference:
    """A tensor of both runs.

    name: as "dgrad:fc1"; kind and path are parts of it. order: the place in the order of execution, from 0. elements: how many; differ:
    how many have other bits. error: norm of the difference by the norm of the second run's; sqnr: the same in decibels. nonfinite:
    infinite or NaN elements of both.
    """

    __slots__ = ("name", "kind", "path", "order", "elements", "differ", "error", "sqnr", "nonfinite")

    def __init__(self, kind: str, name: str, order: int, a: Any, b: Any) -> None:
        self.name, self.kind, self.path, self.order, self.elements = f"{kind}:{name}", kind, name, order, a.numel()
        self.nonfinite: tuple[int, int] = (0, 0)
        if a.shape != b.shape:
            self.differ, self.error = a.numel(), math.inf
        else:
            x, y = a.double(), b.double()
            self.nonfinite = int((~x.isfinite()).sum()), int((~y.isfinite()).sum())
            self.differ = int(((x != y) & ~(x.isnan() & y.isnan())).sum())
            bad = ~(x.isfinite() & y.isfinite()) & ~(x.isnan() & y.isnan()) & (x != y)
            both = x.isfinite() & y.isfinite()
            of = float((y * both).nan_to_num(0).norm())
            away = float(((x - y).nan_to_num(0) * both).norm())
            self.error = math.inf if bool(bad.any()) else away / of if of else (0.0 if not away else math.inf)
        self.sqnr = math.inf if self.error == 0 else -math.inf if math.isinf(self.error) else -20 * math.log10(self.error)

    def as_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in self.__slots__}

    def __repr__(self) -> str:
        return f"<{self.name}: relative error {self.error:.3g}>"


class Comparison(Said):
    """What `Emulator.compare` gives.

    rows: a `Difference` for each result of a product and each gradient of a parameter, in the order of execution; worst: the same, the
    largest relative error first. first: the first row whose bits differ, or None. losses: of both runs. missing: names that only one run has.
    """

    def __init__(self, names: tuple[str, str], losses: tuple[Optional[float], Optional[float]], rows: list[Difference], missing: list[str]) -> None:
        self.names, self.losses, self.rows, self.missing = names, losses, rows, missing
        self.worst = sorted(rows, key=lambda row: (-row.error, row.order))
        self.first = next((row for row in rows if row.differ), None)

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.worst)

    def __len__(self) -> int:
        return len(self.rows)

    def as_dict(self) -> dict[str, Any]:
        return {"schema": "mpsim.emulate-compare/1", "mpsim": lib.mpsim_version().decode(), "policies": list(self.names), "losses": list(self.losses),
                "first": self.first.name if self.first else None, "tensors": [row.as_dict() for row in self.rows], "missing": self.missing}

    def _lines(self) -> Iterator[str]:
        a, b = self.names
        said = ["none" if x is None else f"{x:.6g}" for x in self.losses]
        yield from wrapped(f"{a} beside {b}: losses {said[0]} and {said[1]}; errors are relative to {b}")
        differing = [row for row in self.rows if row.differ]
        if self.first is None:
            yield f"All bits of {len(self.rows)} tensors are equal."
            return
        yield from wrapped(f"{len(differing)} of {len(self.rows)} tensors differ, the first in order of execution is {self.first.name}")
        yield from table(("tensor", "order", "elements", "differ", "error", "dB"), [
            (row.name, str(row.order), f"{row.elements:,}", f"{100 * row.differ / max(row.elements, 1):.1f}%", f"{row.error:.2e}",
             "" if math.isinf(row.sqnr) else f"{row.sqnr:.1f}") for row in self.worst[:ROWS] if row.differ])
        if len(differing) > ROWS:
            yield f"  and {len(differing) - ROWS} more: comparison.worst"
        for name in self.missing:
            yield f"only one has {name}"

    def __repr__(self) -> str:
        return f"<mpsim.emulate comparison of {self.names[0]} and {self.names[1]}: {len(self.rows)} tensors>"


class Capture:
    """What the products of a run give, in their order; of a second run the differences from the first."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.tensors: dict[tuple[str, str, int], Any] = {}
        self.times: dict[tuple[str, str], int] = {}
        core.results.append(self.result)

    def result(self, record: Any, kind: str, slots: Any, out: Any, to: Any) -> None:
        if not record.recomputed:
            self.take(*label_of(record, slots[2], kind, slots), tensor_of(out))

    def take(self, kind: str, name: str, t: Any) -> None:
        n = self.times.get((kind, name), 0)
        self.times[kind, name] = n + 1
        self.tensors[kind, name, n] = t.clone()


def run(trial: Any, batch: Any, loss: Optional[Callable[[Any], Any]]) -> tuple[Optional[float], Capture]:
    """A step; gradients of parameters are those that it makes."""
    with untouched(trial.model), trial:
        capture = Capture(trial.core)
        for p in trial.model.parameters():
            p.grad = None
        value = one_step(trial, batch, loss)
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            for name, p in trial.model.named_parameters():
                if p.grad is not None:
                    capture.take("grad", name, p.grad.detach())
    return value, capture


def compare(e: Any, policy: Any, batch: Any, loss: Optional[Callable[[Any], Any]], changes: Mapping[str, Any]) -> Comparison:
    """See Emulator.compare."""
    with e.apart():
        trials = e.again(report=False), e.again(**{"policy": policy, "report": False, **changes})
        (first, a), (second, b) = (run(trial, batch, loss) for trial in trials)
    names = tuple(trial.core.plans.policy.name for trial in trials)
    names = names if names[0] != names[1] else (names[0] + " (1)", names[1] + " (2)")
    rows = [Difference(kind, name + (f" ({n})" if n else ""), i, t, b.tensors[kind, name, n])
            for i, ((kind, name, n), t) in enumerate(a.tensors.items()) if (kind, name, n) in b.tensors]
    missing = [f"{kind}:{name}" for kind, name, _ in {**a.tensors, **b.tensors} if (kind, name, _) not in a.tensors or (kind, name, _) not in b.tensors]
    return Comparison((names[0], names[1]), (first, second), rows, missing)
