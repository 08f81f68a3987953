"""What an emulation has counted, as a table for people and as the JSON of `mpsim stat --ndjson` and `mpsim train`."""
from __future__ import annotations

import json
import math
import os
from typing import Any, Iterator, Mapping, Optional, Union

from .._error import FileError, InputError
from .._library import lib
from .._lines import text_of
from .._program import Report as Program
from .._statistics import Targets
from ._audit import cut, table, wrapped
from ._counting import Counting, Sums

ROWS = 16  # of the printed table
UNDERFLOW, SQNR, LOST = 0.01, 15.0, 0.1  # shares and decibels beyond which a verdict names a tensor


def _targets(formats: Any, recipes: Any) -> dict[str, Any]:
    """The first line of `mpsim stat --ndjson`. Gradients hold the loss scale already: no kind is multiplied by one."""
    try:
        config = Targets(list(formats) or ["binary32"], [1], list(recipes)).config
    except InputError:  # a recipe that stat has no name for
        config = Targets(list(formats) or ["binary32"], [1], []).config
    return {**config, "scaled_kinds": []}


def share(n: int, of: int) -> str:
    if not of or not n:
        return "0" if of else ""
    percent = 100 * n / of
    return f"{percent:.2f} %" if percent >= 0.01 else "<0.01 %"


class Row:
    """A tensor over all steps: what the worst cast of it lost.

    name: as "act:fc1". cast: a format or a recipe. nonzero, lost, overflow, nonfinite: counts of every step. underflow, overflowed: the
    largest shares of a step with statistics; sqnr: the lowest, in decibels; amax: the largest magnitude; scale: the last one.
    """

    __slots__ = ("name", "cast", "nonzero", "lost", "overflow", "nonfinite", "underflow", "overflowed", "sqnr", "amax", "scale", "step")

    def __init__(self, name: str) -> None:
        self.name, self.cast = name, ""
        self.nonzero = self.lost = self.overflow = self.nonfinite = 0
        self.underflow, self.overflowed, self.sqnr, self.amax = 0.0, 0.0, math.inf, 0.0
        self.scale: Optional[float] = None
        self.step = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """A line of a tensor."""
        self.amax = max(self.amax, line["amax"])
        self.nonfinite = max(self.nonfinite, line["nan"] + line["inf"])
        of = line["count"] - line["zero"] - line["nan"] - line["inf"]
        for each in (*line["formats"], *line.get("blocks", ())):
            sqnr = each["sqnr_db"] if not isinstance(each["sqnr_db"], str) else math.inf
            self.underflow = max(self.underflow, each["underflow"] / of if of else 0.0)
            self.overflowed = max(self.overflowed, each["overflow"] / of if of else 0.0)
            if sqnr < self.sqnr or not self.cast:
                self.sqnr, self.cast, self.step = sqnr, each.get("format") or each["recipe"], line["step"]
            if "format" in each and each["scale"] != 1.0:
                self.scale = each["scale"]

    @property
    def saturates(self) -> bool:
        """Whether numbers beyond the largest become the largest: of recipes, which scale them before."""
        return self.cast not in ("bf16", "fp16", "binary32", "tf32")

    @property
    def badness(self) -> tuple[float, ...]:
        lost = self.lost / self.nonzero if self.nonzero else 0.0
        over = self.overflow / self.nonzero if self.nonzero else 0.0
        return (float(self.nonfinite > 0), 0.0 if self.saturates else max(over, self.overflowed), max(lost, self.underflow), -self.sqnr)

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Report:
    """What `Emulator.report` gives.

    lines: records of `mpsim stat --ndjson`; steps: those of `mpsim train`; rows: a `Row` for each tensor, the worst first.
    Printed, it is a table of at most 80 columns with a verdict. stat() is the whole as `mpsim.stat` gives it: it plots, and becomes a
    DataFrame. train() is the JSON of `mpsim train`. save(folder) writes report.txt, stat.jsonl, train.json and audit.json.
    """

    def __init__(self, e: Any, counting: Optional[Counting]) -> None:
        core = e.core
        if counting is None:
            raise InputError("report: the emulation does not count: report=False")
        self.e, self.counting = e, counting
        self.steps, lines, self.totals, kinds = counting.so_far()
        self.config = _targets(counting.formats, counting.recipes)
        self.lines: list[dict[str, Any]] = [self.config, *lines, *self._sums(kinds)]
        self.lost = dict(getattr(getattr(e, "optimizers", None), "lost", {}))
        self.notes = list(core.notes)
        self.rows = self._rows()

    @staticmethod
    def _sums(kinds: dict[str, Sums]) -> Iterator[dict[str, Any]]:
        whole = Sums()
        for kind, sums in kinds.items():
            whole.merge(sums)
            yield {"level": "kind", "kind": kind, "tensors": sums.tensors, **sums.record(True)}
        yield {"level": "total", "tensors": whole.tensors, **whole.record(True), "failed_files": 0, "unread": []}

    def _rows(self) -> list[Row]:
        rows: dict[str, Row] = {}
        for (kind, name), values in self.totals.items():
            row = rows.setdefault(f"{kind}:{name}", Row(f"{kind}:{name}"))
            row.nonzero, row.lost, row.overflow, row.nonfinite = values
        for line in self.lines:
            if line["level"] == "tensor":
                rows.setdefault(line["name"], Row(line["name"])).take(line)
        return sorted(rows.values(), key=lambda row: row.badness, reverse=True)

    # ---- for programs ----

    def to_ndjson(self) -> str:
        """Lines as `mpsim stat --ndjson` writes them; `mpsim plot` reads them."""
        return "".join(map(text_of, self.lines))

    def stat(self) -> Program:
        """The statistics as `mpsim.stat` gives them."""
        whole: dict[str, Any] = {k: v for k, v in self.config.items() if k in ("schema", "mpsim", "formats", "recipes")}
        skip = ("level", *whole)
        whole["config"] = {"formats": [f["name"] for f in self.config["formats"]], "recipes": [r["name"] for r in self.config.get("recipes", [])],
                           **{k: v for k, v in self.config.items() if k not in skip}}
        for level, key in (("tensor", "tensors"), ("kind", "kinds"), ("step", "steps")):
            whole[key] = [{k: v for k, v in line.items() if k != "level"} for line in self.lines if line["level"] == level]
        whole["total"] = {k: v for k, v in self.lines[-1].items() if k != "level"}
        return Program(text_of(whole).encode(), self.notes, 0, lambda: str(self).encode())

    def train(self) -> dict[str, Any]:
        """The JSON of `mpsim train`: doc/schema/mpsim.train.1.json."""
        e, plans = self.e, self.e.core.plans
        config = {"net": type(e.model).__name__, "steps": len(self.steps), "seed": e.core.seed, "math": e.core.math_said, "arch": e.core.arch.name,
                  "tf32": e.core.arch.tf32}
        policy = plans.policy
        said = {"name": policy.name, "file": policy.path or None, "source": policy.source, "note": policy.note,
                "plans": [{"from": plan.start + 1, "plan": plan.describe} for plan in policy.plans], "products": self._models(),
                "clip": plans.plan.clip or "none"}
        return {"schema": "mpsim.train/1", "mpsim": lib.mpsim_version().decode(), "config": config,
                "runs": [{"policy": {**said, "name": policy.name + (f", {name}" if name else "")}, "steps": steps, "total": self._total(steps)}
                         for name, steps in self.runs()]}

    def runs(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The steps, of several optimizers with a backward pass each those of each: their names and records. A name is "" where there is one."""
        found: dict[str, list[dict[str, Any]]] = {}
        for step in self.steps:
            found.setdefault(" and ".join(step.get("optimizers", ())), []).append(step)
        found = {name: steps for name, steps in found.items() if name} or found
        return list(found.items()) if len(found) > 1 else [("", self.steps)]

    def _models(self) -> str:
        named: dict[str, None] = {}
        for p in self.e.audit():
            if p.model:
                named[f"{p.formats[0]} x {p.formats[1]}: {p.model}"] = None
        return "; ".join(named)

    def _total(self, steps: list[dict[str, Any]]) -> dict[str, Any]:
        params = self.e.core.params.values() or list(self.e.model.parameters())
        n = sum((p.tensor if hasattr(p, "tensor") else p).numel() for p in params)
        skipped = [s["step"] for s in steps if s["skipped"]]

        def events(name: str) -> int:
            return sum(name in s["events"] for s in steps)

        def sums(column: str) -> dict[str, int]:
            return {key: sum(s[column][key] for s in steps) for key in ("nonzero", "lost", "overflow", "nonfinite")}

        multiply_adds = sum(p.multiply_adds for p in self.e.audit())
        return {"status": "", "parameters": n, "first": steps[0]["step"] if steps else 1, "steps": len(steps),
                "initial_loss": steps[0]["loss"] if steps else "NaN", "final_loss": steps[-1]["loss"] if steps else "NaN", "skipped": len(skipped),
                "overflows": events("overflow"), "backoffs": events("backoff"), "growths": events("growth"),
                "clipped": sum(s["clipped"] for s in steps), "first_skipped": skipped[0] if skipped else 0,
                "final_scale": steps[-1]["next_scale"] if steps else 1.0, "cause": next((s["cause"] for s in steps if s["cause"]), None),
                "act": sums("act"), "agrad": sums("agrad"), "wgrad": sums("wgrad"), "updates": sum(s["updates"] for s in steps),
                "lost": sum(s["lost"] for s in steps), "multiply_adds": multiply_adds}

    def to_json(self) -> str:
        """The JSON of train()."""
        return text_of(self.train())

    def save(self, folder: Union[str, "os.PathLike[str]"]) -> list[str]:
        """report.txt, stat.jsonl, train.json and audit.json in a folder; their paths."""
        where, made = os.fspath(folder), []
        try:
            os.makedirs(where, exist_ok=True)
            for name, text in (("report.txt", str(self) + "\n"), ("stat.jsonl", self.to_ndjson()), ("train.json", self.to_json()),
                               ("audit.json", self.e.audit().to_json() + "\n")):
                path = os.path.join(where, name)
                with open(path + ".tmp", "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(path + ".tmp", path)
                made.append(path)
        except OSError as error:
            raise FileError(f"report: {error.filename}: cannot write: {error.strerror}") from None
        return made

    # ---- for people ----

    def verdict(self) -> list[str]:
        """What the numbers say, a sentence each; the worst first."""
        return list(self._verdict())

    def _verdict(self) -> Iterator[str]:
        steps = self.steps
        finite = [s["loss"] for s in steps if not isinstance(s["loss"], str)]
        bad = [s["step"] for s in steps if s["loss"] in ("Infinity", "-Infinity") or s["loss"] == "NaN" and finite and s["step"] > 1]
        if bad:
            yield f"The loss is not finite from step {bad[0]} on."
        skipped = [s["step"] for s in steps if s["skipped"]]
        if skipped:
            cause = next((s["cause"] for s in steps if s["cause"]), None)
            yield f"{len(skipped)} of {len(steps)} steps were skipped, the first is {skipped[0]}" + (f": {cause} is not finite." if cause else ".")
        worst = [row for row in self.rows if row.badness[0] or row.badness[1]]
        if worst:
            yield f"{len(worst)} of {len(self.rows)} tensors overflow or are not finite; the worst is {worst[0].name}."
        under = [row for row in self.rows if row.badness[2] > UNDERFLOW]
        if under:
            under.sort(key=lambda row: row.badness[2], reverse=True)
            yield (f"{len(under)} of {len(self.rows)} tensors {'loses' if len(under) == 1 else 'lose'} more than 1 % to zero; the worst is {under[0].name} "
                   f"({100 * under[0].badness[2]:.1f} %).")
        full = sorted((row for row in self.rows if row.saturates and row.overflowed > UNDERFLOW), key=lambda row: row.overflowed, reverse=True)
        if full:
            yield (f"{len(full)} of {len(self.rows)} tensors saturate in more than 1 % of their numbers; the worst is {full[0].name} "
                   f"({100 * full[0].overflowed:.1f} %).")
        noisy = sorted((row for row in self.rows if row.sqnr < SQNR), key=lambda row: row.sqnr)
        if noisy:
            yield f"{len(noisy)} of {len(self.rows)} tensors are below {SQNR:g} dB; the worst is {noisy[0].name} in {noisy[0].cast} ({noisy[0].sqnr:.1f} dB)."
        updates, lost = sum(s["updates"] for s in steps), sum(s["lost"] for s in steps)
        if updates and lost / updates > LOST:
            name = max(self.lost, key=lambda key: self.lost[key].lost / max(self.lost[key].updates, 1), default=None)
            yield f"{100 * lost / updates:.1f} % of the updates are lost" + (f"; the worst is {name}." if name else ".")
        if not steps:
            yield "No step was counted: what is emulated runs inside of `with mpsim.emulate(...) as e:`."

    def __str__(self) -> str:
        return "\n".join(self._text())

    def _text(self) -> Iterator[str]:
        plans = self.e.core.plans
        yield from wrapped(f"{type(self.e.model).__name__} under {plans.policy.name}, arch {self.e.core.arch.name}: {len(self.steps)} steps, "
                           f"{len(self.rows)} tensors")
        said = self.verdict()
        yield from wrapped("Verdict: " + (" ".join(said) if said else "nothing overflows, no tensor loses more than 1 % to zero."))
        yield from self.table()
        yield from self._losses()
        for line in self.notes:
            yield from wrapped(f"note: {line}")

    def table(self, rows: Optional[int] = ROWS) -> Iterator[str]:
        """The lines of the table of tensors; None: of all."""
        shown = self.rows if rows is None else self.rows[:rows]
        cells = []
        for row in shown:
            lost = max(row.lost / row.nonzero if row.nonzero else 0.0, row.underflow)
            over = max(row.overflow / row.nonzero if row.nonzero else 0.0, row.overflowed)
            cells.append((row.name, row.cast, f"{row.amax:.3g}" if row.amax else "", "" if row.scale is None else f"{row.scale:.4g}", percent(lost),
                          percent(over), "" if math.isinf(row.sqnr) else f"{row.sqnr:.1f}"))
        if cells:
            yield from table(("tensor", "cast", "amax", "scale", "zero", "over", "dB"), [tuple(cut(c, 24) if i == 1 else c for i, c in enumerate(each))
                                                                                         for each in cells])
        if len(shown) < len(self.rows):
            yield f"  and {len(self.rows) - len(shown)} more: report.rows"

    def _losses(self) -> Iterator[str]:
        if self.steps:
            for name, steps in self.runs():
                yield from self._course(name, steps)

    @staticmethod
    def _course(name: str, steps: list[dict[str, Any]]) -> Iterator[str]:
        first, last = steps[0], steps[-1]
        line = (f"{name}: " if name else "") + f"loss {said_number(first['loss'])} at step {first['step']}, {said_number(last['loss'])} at step {last['step']}"
        passes = sorted({s.get("passes", 1) for s in steps})
        if passes[-1] > 1:
            line += f", the sum of {passes[-1] if len(passes) == 1 else f'{passes[0]} to {passes[-1]}'} backward passes"
        updates, lost = sum(s["updates"] for s in steps), sum(s["lost"] for s in steps)
        if updates:
            line += f"; {share(lost, updates)} of {updates:,} updates are lost"
        yield from wrapped(line)
        changes = [s for i, s in enumerate(steps) if s["skipped"] or i and s["scale"] != steps[i - 1]["scale"]]
        if last["scale"] != 1.0 or changes:
            yield from wrapped(f"loss scale {first['scale']:g} at step {first['step']}, {last['next_scale']:g} after step {last['step']}; "
                               f"{sum(s['skipped'] for s in steps)} steps skipped")

    def plot(self, figure: str = "heatmap", ax: Any = None, **options: Any) -> Any:
        """A figure of the statistics: `mpsim plot`, as `mpsim.stat(...).plot` draws it."""
        return self.stat().plot(figure, ax, **options)

    def to_pandas(self) -> Any:
        """The statistics as a DataFrame of pandas."""
        return self.stat().to_pandas()

    def __repr__(self) -> str:
        return f"<mpsim.emulate report: {len(self.steps)} steps, {len(self.rows)} tensors>"


def percent(x: float) -> str:
    return "0" if not x else f"{100 * x:.2f}%" if x >= 0.0001 else "<.01%"


def said_number(x: Any) -> str:
    return x if isinstance(x, str) else f"{x:.5g}"
