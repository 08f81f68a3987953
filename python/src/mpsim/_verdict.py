"""What the judge (mpsim/judge.h) says of a recorded operation: the row that gives all its results, or what is wrong with them."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from . import _judge
from ._asked import Asked, asked, reshaped
from ._classes import SUMMED, Kind, of_rows
from ._error import Error
from ._stand import CASTS, Op, Value

# causes of findings (mpsim_judge_causes) by classes; the others are of formulas
CLASS_OF = {**dict.fromkeys(("zeros",), "dropped"), **dict.fromkeys(("sum-order",), "order"), **dict.fromkeys((
    "format", "mode", "double-rounding", "stochastic", "overflow", "infinity", "nan", "subnormal-inputs", "subnormal-results", "negative", "zero", "operands",
    "epilogue"), "format")}
NEAR_CAUSES = ("rounding", "sum-order")  # as near the exact results as rounding leaves them
PATTERNS = ("one-code", "rows", "columns", "bits", "tail", *NEAR_CAUSES)  # which do not say what is wrong
WEAK = ("factor", "offset")  # which roundings that lean to one side make, too
ADDED = (*SUMMED, "softmax", "norm")  # kinds with sums inside
CERTAIN = 14  # wrong results that are expected: e^-14 < 1e-6


class Verdict(NamedTuple):
    """row: gives all results. near: no row does, but all are as near the exact results as those of `nearest` are. kind: what is wrong. exact: rows of this kind
    are one rounding, so a result that differs is another operation's. of: the kind of operations."""

    row: Optional[str]
    near: bool
    nearest: str
    differ: int
    results: int
    kind: Optional[Kind]
    places: tuple[Any, ...]
    exact: bool
    of: str


def _ask(one: Asked, like: Optional[str]) -> Optional[_judge.Judgement]:
    try:
        return _judge.judge(one.kind, like, {role: v.tensor for role, v in (*one.arrays.items(), *one.results.items())})
    except Error:  # no row takes these formats or shapes
        return None


def _wrong(one: Asked, j: _judge.Judgement) -> Optional[Kind]:
    """The class of a finding that says what is wrong; None: the findings are patterns, or the results are near."""
    said = [f for f in j.findings if f.cause not in PATTERNS]
    named = [f for f in said if not f.text.startswith("of ")]  # beside how far results are from the exact ones
    if named and named[0].cause not in WEAK:
        return Kind(CLASS_OF.get(named[0].cause, "formula"), named[0].text)
    if not said:
        return None
    free = _ask(one, None)
    if free is not None and any(free.found(cause) for cause in NEAR_CAUSES) and of_rows(j.row, free.row, one.kind) == "format":
        return Kind("format", f"as near to {free.row} as rounding leaves them, not to {j.row}")
    return Kind(CLASS_OF.get(said[0].cause, "formula"), said[0].text)


def verdict(one: Asked, like: Optional[str] = None) -> Optional[Verdict]:
    """like: a row in place of that of the arguments."""
    j = _ask(one, like or one.like) if one.kept else None
    if j is None:
        return None
    row = j.row if j.equal else j.nearest if j.nearest and not j.nearest_differ else None
    near = row is None and any(j.found(cause) for cause in NEAR_CAUSES)
    kind = None
    if not j.equal and (like or one.like or row is None):
        kind = Kind(of_rows(j.row, row, one.kind), f"the results are those of {row}, not of {j.row}") if row else None if near else _wrong(one, j)
    return Verdict(row, near, j.nearest or j.row, j.differ, j.results, kind, j.places, one.kind in ("cast", "arith"), one.kind)


def _unknown(name: str) -> str:
    return f"no row judges aten.{name}"


def of(op: Op, like: Optional[str] = None) -> tuple[Optional[Verdict], str]:
    """The verdict of an operation, of several questions the one that says most is wrong; or why there is none."""
    questions = asked(op)
    if not questions:
        return None, _unknown(op.name)
    said = [verdict(one, like) for one in questions]
    if None in said:
        return None, _unknown(op.name) if all(one.kept for one in questions) else "numbers were not kept"
    return max((v for v in said if v is not None), key=lambda v: (v.kind is not None, v.row is None)), ""


def certain(differ: int, of_all: int, equal: int) -> bool:
    """Whether it is no accident that `equal` results of one run are right, if they were wrong as often as `differ` of `of_all` results of the other are."""
    return differ * min(equal / max(of_all, 1), 1.0) >= CERTAIN


# ---- two runs of an operation ----


def _blamed(a: Verdict, b: Verdict) -> tuple[Verdict, Verdict, str, str]:
    """The verdict of the run whose results are those of the arguments' row, or near them; that of the other run; the name of the other, and of the first.
    Where that is not known: a run whose results are those of a row, the other, "", and the name of the first."""
    if b.kind and not a.kind and (a.row or a.near):
        return a, b, "b", "a"
    if a.kind and not b.kind and (b.row or b.near):
        return b, a, "a", "b"
    return (a, b, "", "a") if a.row else (b, a, "", "b")


def _both(a: Verdict, b: Verdict, blamed: str) -> tuple[Kind, str]:
    assert a.row and b.row
    return Kind(of_rows(a.row, b.row, a.of), f"{a.row} in a, {b.row} in b"), blamed


def own(a: Verdict, b: Verdict) -> Optional[tuple[Kind, str]]:
    """Other results of equal inputs: the class, and the run whose results are not those of the row of the arguments, or ""."""
    right, wrong, blamed, first = _blamed(a, b)
    if a.row and b.row:
        return _both(a, b, blamed)
    if a.of in ADDED and not (a.kind or b.kind) and (right.row or a.near) and wrong.near:
        if of_rows(a.nearest, b.nearest, a.of) == "format":
            return Kind("format", f"as near as rounding leaves them to {a.nearest} in a, to {b.nearest} in b"), ""
        same = f"{right.row} in {first}; in {'b' if first == 'a' else 'a'}" if right.row else "in both"
        return Kind("order", f"{same} no known row, but results as near to the exact ones as rounding leaves them"), ""
    if not blamed or wrong.kind is None:
        return None
    lead = f"{right.row} in {first}" if right.row else f"as near to {right.nearest} in {first} as rounding leaves them"
    return Kind(wrong.kind.name, f"{lead}; in {blamed}: {wrong.kind.text}"), blamed


def inherited(ops: tuple[Op, Op], a: Verdict, b: Verdict) -> Optional[tuple[Optional[Kind], str]]:
    """Other results of other inputs. (None, row): a row gives the results of both. (class, run): the operation differs, too. None: it is not known."""
    if a.row and a.row == b.row:
        return None, a.row
    right, wrong, blamed, first = _blamed(a, b)
    if a.row and b.row:
        by_other = [of(op, row)[0] for op, row in ((ops[0], b.row), (ops[1], a.row))]
        for v, row in zip(by_other, (b.row, a.row)):
            if v is not None and not v.differ:
                return None, row
        if not all(v is not None and (v.exact or certain(v.differ, v.results, mine.results)) for v, mine in zip(by_other, (b, a))):
            return None  # a search finds one of many rows for a few results
        return _both(a, b, blamed)
    if right.row:
        by = of(ops[first == "a"], right.row)[0]
        if by is not None and (right.exact or certain(by.differ, by.results, right.results)):
            near = f"{by.differ:,} of {by.results:,} results are others, as near to the exact ones as rounding leaves them"
            kind = wrong.kind or by.kind or Kind("order", near)
            return Kind(kind.name, f"{right.row} in {first}; in {'b' if first == 'a' else 'a'}: {kind.text}"), blamed
    elif blamed and wrong.kind and not wrong.kind.text.startswith("of "):
        return Kind(wrong.kind.name, f"in {blamed}: {wrong.kind.text}"), blamed
    return None


def chains(way_a: list[Op], way_b: list[Op], x: Value, y: Value) -> Optional[Kind]:
    """One operation of a run where the other run has several, of equal inputs: x and y, what both make, as results of that operation."""
    for way in (way_a, way_b):
        ops = [op for op in way if op.name not in CASTS]
        questions = asked(ops[0]) if len(ops) == 1 else []
        if len(questions) != 1 or len(questions[0].results) != 1 or x.tensor is None or y.tensor is None:
            continue
        (role, z), = questions[0].results.items()
        if x.tensor.numel() != y.tensor.numel() or x.tensor.numel() != z.tensor.numel():
            continue
        one, other = (verdict(questions[0]._replace(results={role: reshaped(v, *z.shape)})) for v in (x, y))
        said = own(one, other) if one is not None and other is not None else None
        if said is not None:
            return said[0]
    return None
