"""What a watched training's numbers say, in words."""
from __future__ import annotations

import json
import math
from array import array
from typing import Any, Optional

from ._formats import find
from ._library import PROGRAM

SHARE = 0.01  # of elements; plot's sweep has the same
STALL = 0.5  # of updates
SHOWN = 5  # layers named in a sentence


def power(scale: float) -> str:
    """2^16, or all digits."""
    m, e = math.frexp(scale)
    return f"2^{e - 1}" if m == 0.5 and scale != 1 else f"{scale:g}"


def percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def listed(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def without(line: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """The record of a tensor's elements but for those of another record: counts are sums."""
    formats = [{**cast, **{key: cast[key] - other[key] for key in ("underflow", "overflow")}}
               for cast, other in zip(line["formats"], part["formats"])]
    return {**line, "count": line["count"] - part["count"], "formats": formats}


class Gradients:
    """What is remembered of gradients: of each tensor its worst, of each kind counts for each loss scale that a GradScaler
    had. Its size does not grow with the steps.

    The scales of the casts multiply gradients as they are. Where these have the scale of a GradScaler in them, the loss
    scale that is judged is the product of both. Steps that the scaler skipped are left out of what is judged so.
    """

    def __init__(self, targets: Any) -> None:
        self.targets, self.own = targets, 1.0 if 1.0 in targets.scales else min(targets.scales)  # own: under which worst is
        self.of_casts = targets.of(True)
        # by label and "underflow" or "overflow", by tensor: the largest share, and under which loss scale
        self.worst: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
        self.broken: dict[bool, dict[str, int]] = {False: {}, True: {}}  # whether the step was skipped; first step by tensor
        self.broken_steps: dict[bool, array[int]] = {False: array("q"), True: array("q")}
        self.scaled = False
        self.rounded: dict[str, int] = {}  # by tensor: elements that are nothing but rounding, most of a step
        # by kind and scale of the scaler: elements, and of each cast what underflowed and what overflowed
        self.counts: dict[tuple[str, float], tuple[list[int], list[int], list[int]]] = {}

    def add(self, line: dict[str, Any], scale: Optional[float], skipped: bool, rounded: Optional[dict[str, Any]] = None) -> None:
        """The record of a tensor in a step. scale: the scaler's, if there is one. rounded: that of its elements which are nothing
        but rounding; they count as not there."""
        self.scaled |= (scale or 1.0) != 1.0
        if rounded:
            self.rounded[line["name"]] = max(rounded["count"], self.rounded.get(line["name"], 0))
            line = without(line, rounded)
        factor, broken = scale or 1.0, line["nan"] + line["inf"]
        if broken:
            self.broken[skipped].setdefault(line["name"], line["step"])
            steps = self.broken_steps[skipped]
            if not steps or steps[-1] != line["step"]:
                steps.append(line["step"])
        if skipped:
            return
        counts = self.counts.setdefault((line["kind"], factor), ([0], [0] * len(self.of_casts), [0] * len(self.of_casts)))
        counts[0][0] += line["count"]
        for i, cast in enumerate(line["formats"] if self.targets.which(line["kind"]) else ()):
            counts[1][i] += cast["underflow"]
            counts[2][i] += cast["overflow"]
        for cast in line["formats"]:
            if cast["scale"] != self.own or not line["count"]:
                continue
            for key, least in (("underflow", SHARE), ("overflow", 0)):
                share = cast[key] / line["count"]
                known = self.worst.setdefault((cast["format"], key), {})
                if share > max(least, known.get(line["name"], (0.0, 0.0))[0]):
                    known[line["name"]] = share, cast["scale"] * factor

    def safe(self, label: str, limit: float) -> tuple[list[float], list[float]]:
        """Loss scales that were counted at all watched steps, and those of them below a limit at which a format loses little."""
        tested: Optional[set[float]] = None
        lost = set()
        for (kind, factor), (count, under, over) in self.counts.items():
            if not self.targets.which(kind):
                continue
            own = {i: s * factor for i, (name, s) in enumerate(self.of_casts) if name == label}
            tested = set(own.values()) if tested is None else tested & set(own.values())
            lost |= {own[i] for i in own if over[i] or under[i] > SHARE * count[0]}
        return sorted(tested or ()), sorted(s for s in (tested or set()) - lost if s < limit)

    def factors(self) -> list[float]:
        """The scales that the scaler had."""
        return sorted({factor for _, factor in self.counts})


def broken(w: Any) -> list[str]:
    """Tensors with NaN or Inf, and where these came first."""
    said = []
    for skipped, rest in ((False, ""), (True, ", which the scaler skipped")):
        names, steps = w.gradients.broken[skipped], w.gradients.broken_steps[skipped]
        if names:
            first = [name for name, step in names.items() if step == steps[0]]
            said.append(f"NaN or Inf in gradients of {len(steps)} watched step{'s' if len(steps) > 1 else ''}{rest}, first of step "
                        f"{steps[0]}, in {listed(sorted(first))}.")
    return said


def at_scales(scales: list[float], scaled: bool) -> str:
    """Under which loss scales something was lost."""
    low, high = min(scales), max(scales)
    if high == 1 and not scaled:
        return " as they are"
    return f" at {'loss ' if scaled else ''}scale{'' if low == high else 's'} {power(low)}{'' if low == high else ' to ' + power(high)}"


def losing(w: Any) -> list[str]:
    """For each format the gradients that lose more than a share: as they are, or at the smallest of the scales."""
    said = []
    for label in w.targets.labels:
        for word in ("underflow", "overflow"):
            lost = w.gradients.worst.get((label, word), {})
            worst = sorted(lost, key=lambda n: -lost[n][0])
            if worst:
                at = at_scales([scale for _, scale in lost.values()], w.gradients.scaled)
                said.append(f"Gradients {word} in {find(label.partition('@')[0]).name}{at}, tensor by tensor: "
                            f"{listed([f'{n} ({percent(lost[n][0])})' for n in worst])}.")
    return said


def limit_of(w: Any) -> float:
    """The smallest loss scale at which the scaler skipped a step and above which it never took one."""
    taken = max((scale for scale, skipped in zip(*w.history) if not skipped), default=0.0)
    return min((scale for scale, skipped in zip(*w.history) if skipped and scale > taken), default=math.inf)


def windows(w: Any) -> list[str]:
    """The scales under which no gradient overflows and at most a share underflows, of those that were counted."""
    factors = w.gradients.factors()
    if len(w.targets.scales) < 2 or not any(w.targets.which(kind) for kind, _ in w.gradients.counts):
        return []
    said, limit = [], limit_of(w)
    for label in w.targets.labels:
        tested, safe = w.gradients.safe(label, limit)
        if not tested:
            said.append(f"The scaler's loss scale was {power(factors[0])} to {power(factors[-1])}: no loss scale was counted in {label} at all "
                        "watched steps; give scales from below 1 to above 1.")
        elif not safe:
            said.append(f"No loss scale of {power(tested[0])} to {power(tested[-1])} is safe for gradients in {label}: take a "
                        "scale for each tensor or block.")
        else:
            said.append(f"Loss scales from {power(safe[0])} to {power(safe[-1])} are safe for gradients in {label}, each kind "
                        f"together: no overflow, at most {percent(SHARE)} underflow.")
        if tested and any(w.history[1]):
            said[-1] += " Steps that the scaler skipped are left out."
        if safe and safe[0] == tested[0] and factors != [1.0]:
            said[-1] += (" Smaller ones were not counted: the gradients have the scaler's loss scale in them, and scales multiply "
                         "it; give scales below 1.")
    return said


def judged(w: Any) -> list[str]:
    """The judgement of `mpsim log` on loss scale, loss and norm."""
    scales, skipped = w.history
    lines = []
    for i, scale in enumerate(scales):
        step = w.first + i
        told = [f"{k} {v!r}" for k, v in w.numbers.get(step, {}).items()]
        told = ([f"scale {scale!r} skipped {skipped[i]}"] if scale else []) + told
        if told:
            lines.append(f"step {step} " + " ".join(told))
    if not lines:
        return []
    import subprocess

    done = subprocess.run([PROGRAM, "log", "--json", "-"], input="\n".join(lines).encode() + b"\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        return []
    row = json.loads(done.stdout)["scalers"][0]
    advice = f" What to do: {row['advice']}" if row.get("advice") else ""
    return [f"mpsim log: {row['verdict']}: {row['why']}{advice}"] if row.get("verdict") else []


def stalled(w: Any) -> list[str]:
    """Formats in which most updates would be lost."""
    said = []
    for label, (lost, moved) in w.lost.items():
        if moved and lost > STALL * moved:
            said.append(f"Weights kept in {label} would stall: {percent(lost / moved)} of the updates would be lost. Keep "
                        "binary32 masters, or round stochastically." if label else
                        f"Weights stall: {percent(lost / moved)} of those with a gradient did not move. Keep binary32 "
                        "masters, or round stochastically.")
    return said


def rounding(w: Any) -> list[str]:
    """Elements that are no gradients."""
    found = w.gradients.rounded
    names = [f"{name} ({n})" for name, n in sorted(found.items())]
    return [f"Left out as nothing but rounding of sums that are 0 mathematically, guessed from the gradients of their weights: elements "
            f"of {listed(names)}."] if found else []


def sentences(w: Any) -> list[str]:
    return broken(w) + losing(w) + windows(w) + rounding(w) + judged(w) + stalled(w)
