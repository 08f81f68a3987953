"""What a watched training's numbers say, in words."""
from __future__ import annotations

import json
import math
import subprocess
from typing import Any

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


def broken(w: Any) -> list[str]:
    """Tensors with NaN or Inf, and where these came first."""
    found = [(r["step"], name, r["nan"] + r["inf"]) for name, rs in w.gradients.items() for r in rs if r["nan"] + r["inf"]]
    if not found:
        return []
    first = min(found)
    names = sorted({name for step, name, _ in found if step == first[0]})
    return [f"NaN or Inf in gradients from step {first[0]} on, in {listed(names)}."]


def losing(w: Any) -> list[str]:
    """For each format the gradients that lose more than a share, at the smallest of the scales."""
    said, scale = [], min(w.targets.scales)
    for label in w.targets.labels:
        f = find(label.partition("@")[0])
        under: dict[str, float] = {}
        over: dict[str, float] = {}
        for name, records in w.gradients.items():
            for r in records:
                cast = next(c for c in r["formats"] if c["format"] == label and c["scale"] == scale)
                if r["count"] and cast["underflow"] > SHARE * r["count"]:
                    under[name] = max(under.get(name, 0), cast["underflow"] / r["count"])
                if cast["overflow"]:
                    over[name] = max(over.get(name, 0), cast["overflow"] / r["count"])
        at = (f" at scale {power(scale)}" if scale != 1 else " as they are") + ", tensor by tensor"
        for lost, word in ((under, "underflow"), (over, "overflow")):
            worst = sorted(lost, key=lambda n: -lost[n])
            if worst:
                said.append(f"Gradients {word} in {f.name}{at}: "
                            f"{listed([f'{n} ({percent(lost[n])})' for n in worst])}.")
    return said


def windows(w: Any) -> list[str]:
    """The scales under which no gradient overflows and at most a share underflows, of those that were asked for."""
    kinds = [r for kind, r in w.kinds_seen().items() if w.targets.which(kind)]
    if len(w.targets.scales) < 2 or not kinds:
        return []
    said = []
    for label in w.targets.labels:
        safe = [s for s in w.targets.scales if all(
            c["overflow"] == 0 and c["underflow"] <= SHARE * r["count"]
            for r in kinds for c in r["formats"] if c["format"] == label and c["scale"] == s)]
        said.append(f"Loss scales from {power(min(safe))} to {power(max(safe))} are safe for gradients in {label}, each kind together: "
                    f"no overflow, at most {percent(SHARE)} underflow." if safe else
                    f"No loss scale of {power(min(w.targets.scales))} to {power(max(w.targets.scales))} is safe for gradients in "
                    f"{label}: take a scale for each tensor or block.")
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
    done = subprocess.run([PROGRAM, "log", "--json", "-"], input="\n".join(lines).encode() + b"\n", stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        return []
    row = json.loads(done.stdout)["scalers"][0]
    advice = f" {row['advice']}" if row.get("advice") else ""
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


def sentences(w: Any) -> list[str]:
    return broken(w) + losing(w) + windows(w) + judged(w) + stalled(w)
