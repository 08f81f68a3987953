"""Two recordings beside each other: which operation is the first whose difference is its own, and which only inherit theirs."""
from __future__ import annotations

import difflib
from typing import Any, Iterator, Optional

import torch

from . import _verdict
from ._classes import NEAR, Kind, Rows, differing, is_product, name_of, of_products, of_results, of_tensors, places, rounded_to, same_numbers, units
from ._replay import same_bits
from ._stand import CASTS, RANDOM, Op, Recording, Value

EQUAL, INHERITED, GUILTY, UNJUDGED, HARMLESS = "equal", "inherited", "guilty", "not judged", "another format alone"
BEFORE = "the operations before differ: "
NAMES = 5  # of operations in a line


def listed(ops: list[Op]) -> str:
    """Names of operations in the order of execution."""
    names = list(dict.fromkeys(f"aten.{op.token}" for op in sorted(ops, key=lambda op: op.number)))
    return ", ".join(names[-NAMES:] if len(names) <= NAMES else ["...", *names[-NAMES:]])


PLACES = 8  # that are kept
Rowed = tuple[Optional[str], Optional[str]]
Place = tuple[tuple[int, ...], float, float]


class Guilty:
    """An operation whose results differ for a reason of its own.

    kind: of CLASSES: "order" of sums, "split" of the depth, "format", "formula", "dropped", "weights", "inputs", "random".
    text: what is known. run: "a" or "b", whose results are not those of torch on this CPU, of the other's row or of that of the arguments; "" where that is
    not known. rows: those that give all results in a and in b, None where none is known. places: the first results that differ, where inputs are equal: their
    indices, and the numbers in a and in b. before: the difference is made by operations of one run alone, just before this one.
    """

    __slots__ = ("a", "b", "kind", "text", "run", "rows", "places", "before")

    def __init__(self, a: Op, b: Op, kind: Kind, run: str = "", rows: Rowed = (None, None)) -> None:
        self.a, self.b, self.kind, self.text, self.run, self.rows = a, b, kind.name, kind.text, run, rows
        self.places: tuple[Place, ...] = ()
        self.before = kind.text.startswith(BEFORE)

    @property
    def operation(self) -> str:
        return f"aten.{self.a.name}"

    @property
    def path(self) -> str:
        return self.a.path or self.b.path

    @property
    def backward(self) -> bool:
        return self.a.backward

    @property
    def place(self) -> str:
        return ("before " if self.before else "") + self.a.place

    def __repr__(self) -> str:
        return f"<{self.place}: {self.kind}: {self.text}>"


class Pair:
    """The same operation of both runs. why: why it is not judged; where it inherits its difference, which row gives its results in both runs, or
    that none is known. proven: whether its results are those that its inputs give, of a row or of torch on this CPU."""

    __slots__ = ("a", "b", "state", "why", "guilty", "proven")

    def __init__(self, a: Op, b: Op) -> None:
        self.a, self.b = a, b
        self.state: Optional[str] = None
        self.why = ""
        self.guilty: Optional[Guilty] = None
        self.proven = False


class Runs:
    """What `compare_runs` gives.

    guilty: operations with differences of their own, in the order of execution; first: the first of them, or None. pairs: operations that
    both runs have; equal, inherited, unjudged: lists of these pairs; unproven: the inherited ones whose results no known row gives. only:
    operations of one run alone, on which results of both depend, or which end it.
    same: whether no result differs, and nothing was left unjudged.
    """

    def __init__(self, pairs: list[Pair], only: list[tuple[str, Op]]) -> None:
        self.pairs, self.only = pairs, only
        self.guilty = [p.guilty for p in pairs if p.guilty is not None]
        self.first = self.guilty[0] if self.guilty else None

    def _of(self, state: str) -> list[Pair]:
        return [p for p in self.pairs if p.state == state]

    @property
    def equal(self) -> list[Pair]:
        return self._of(EQUAL)

    @property
    def inherited(self) -> list[Pair]:
        return self._of(INHERITED)

    @property
    def unproven(self) -> list[Pair]:
        return [p for p in self.inherited if not p.proven]

    @property
    def unjudged(self) -> list[Pair]:
        return self._of(UNJUDGED)

    @property
    def same(self) -> bool:
        return len(self.equal) == len(self.pairs) and not self.only and bool(self.pairs)

    def as_dict(self) -> dict[str, Any]:
        return {"schema": "mpsim.stand-compare/1", "equal": len(self.equal), "inherited": len(self.inherited), "same": self.same,
                "guilty": [{"operation": g.operation, "path": g.path, "backward": g.backward, "class": g.kind, "text": g.text, "run": g.run or None,
                            "rows": list(g.rows), "places": [{"index": list(i), "a": x, "b": y} for i, x, y in g.places], "number": [g.a.number, g.b.number]} for g in self.guilty],
                "unproven": [{"operation": f"aten.{p.a.name}", "path": p.a.path, "why": p.why} for p in self.unproven],
                "not_judged": [{"operation": f"aten.{p.a.name}", "path": p.a.path, "why": p.why} for p in self.unjudged],
                "only": [{"run": run, "operation": f"aten.{op.name}", "path": op.path, "number": op.number} for run, op in self.only]}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if self.first is None:
            yield "No operation is guilty." if not self.same else f"All results of {len(self.pairs):,} operations are equal."
        else:
            g = self.first
            yield f"First guilty operation: {g.place}: {g.kind}"
            yield f"  {g.text}" + (f"; the results of run {g.run} are those that its inputs do not give" if g.run else "")
            if g.places:
                index, x, y = g.places[0]
                yield f"  first at {list(index)}: {x:.9g} in a, {y:.9g} in b"
        yield f"{len(self.equal):,} operations equal, {len(self.inherited):,} inherit their differences, {len(self.guilty):,} guilty"
        for g in self.guilty[1:6]:
            yield f"  then {g.place}: {g.kind}: {g.text}"
        if len(self.guilty) > 6:
            yield f"  and {len(self.guilty) - 6} more"
        harmless = len(self._of(HARMLESS))
        if harmless:
            yield f"{harmless:,} operations give another format alone: what uses their results is equal"
        for pairs, word in ((self.unproven, "inherit, but whether they differ themselves is not known"), (self.unjudged, "not judged")):
            whys: dict[str, int] = {}
            for p in pairs:
                whys[p.why] = whys.get(p.why, 0) + 1
            for why, n in whys.items():
                yield f"{n:,} operations {word}: {why}"
        for run in "ab":
            ops = [op for r, op in self.only if r == run]
            if ops:
                yield f"{len(ops):,} operations of run {run} alone, not compared: {listed(ops)}"

    def __repr__(self) -> str:
        return f"<comparison of {len(self.pairs)} operations: {self.first!r}>"


# ---- which operations are the same ----


def _groups(run: Recording, by_path: bool) -> dict[tuple[bool, str], list[Op]]:
    found: dict[tuple[bool, str], list[Op]] = {}
    for op in run.ops:
        found.setdefault((op.backward, op.path if by_path else ""), []).append(op)
    return found


def _blocks(one: list[Op], other: list[Op]) -> list[tuple[Op, Op]]:
    matcher = difflib.SequenceMatcher(None, [op.token for op in one], [op.token for op in other], autojunk=False)
    return [pair for i, j, n in matcher.get_matching_blocks() for pair in zip(one[i:i + n], other[j:j + n])]


def _gaps(ops: list[Op], matched: set[int]) -> dict[tuple[int, str], list[Op]]:
    """Casts and copies by how many matched operations come before them."""
    found: dict[tuple[int, str], list[Op]] = {}
    n = 0
    for op in ops:
        if op.name in CASTS:
            found.setdefault((n, op.token), []).append(op)
        n += op.number in matched
    return found


def _matched(one: list[Op], other: list[Op]) -> list[tuple[Op, Op]]:
    """Operations by their names in order; then casts, which stand between the same operations."""
    pairs = _blocks([op for op in one if op.name not in CASTS], [op for op in other if op.name not in CASTS])
    left, right = (_gaps(ops, {pair[k].number for pair in pairs}) for k, ops in enumerate((one, other)))
    return pairs + [pair for key in left.keys() & right.keys() for pair in zip(left[key], right[key])]


def align(a: Recording, b: Recording) -> tuple[list[Pair], list[tuple[str, Op]]]:
    """Pairs in the order of run a, and the operations of one run alone. By module and name; by name where the runs share no module; products
    that are left by name."""
    by_path = bool({op.path for op in a.ops} & {op.path for op in b.ops} - {""}) or not any(op.path for op in [*a.ops, *b.ops])
    left, right = _groups(a, by_path), _groups(b, by_path)
    pairs = [pair for key in left.keys() & right.keys() for pair in _matched(left[key], right[key])]
    used = [{pair[k].number for pair in pairs} for k in (0, 1)]
    pairs += [pair for backward in (False, True) for pair in _blocks(*(
        [op for op in run.products if op.backward == backward and op.number not in used[k]] for k, run in enumerate((a, b))))]
    used = [{pair[k].number for pair in pairs} for k in (0, 1)]
    alone = [("ab"[k], op) for k, run in enumerate((a, b)) for op in run.ops if op.number not in used[k]]
    return [Pair(p, q) for p, q in sorted(pairs, key=lambda pair: pair[0].number)], alone


# ---- what differs ----


class Judge:
    def __init__(self, a: Recording, b: Recording, leading: bool) -> None:
        self.runs, self.leading = (a, b), leading
        self.pairs, self.alone = align(a, b)
        self.of = {op.number: p for p in self.pairs for op in (p.a,)}, {op.number: p for p in self.pairs for op in (p.b,)}
        self.rows = Rows(), Rows()
        self.roots: tuple[dict[int, Any], dict[int, Any]] = {}, {}
        self.again: dict[tuple[int, int], Any] = {}

    def run(self) -> Runs:
        with torch.no_grad():
            for p in self.pairs:
                self.state(p)
        self.uses = self._uses(0), self._uses(1)
        for p in self.pairs:
            if p.guilty is not None and p.guilty.kind == "format" and self._harmless(p):
                p.state, p.guilty = HARMLESS, None
        alone = [(run, op) for run, op in self.alone if not self._equal_from("ab".index(run), op)]
        return Runs(self.pairs, alone)

    def cut(self, u: Value, v: Value) -> tuple[Any, Any]:
        """The tensors that are compared: whole, or the leading parts of different batches; None where they cannot be."""
        x, y = u.tensor, v.tensor
        if x is None or y is None or x.shape == y.shape:
            return x, y
        if self.leading and x.dim() == y.dim() and x.dim() and x.shape[1:] == y.shape[1:]:
            n = min(x.shape[0], y.shape[0])
            return x[:n], y[:n]
        return None, None

    def relation(self, u: Value, v: Value) -> str:
        """equal: all bits; numbers: the same numbers in other formats; rounded: one is the other, rounded; differ; unknown."""
        if u.digest == v.digest:
            return "equal"
        if u.shape == v.shape and u.dtype == v.dtype and (u.tensor is None or v.tensor is None):
            return "differ"
        x, y = self.cut(u, v)
        if x is None or y is None:
            return "unknown" if self.leading or u.tensor is None or v.tensor is None else "differ"
        if same_bits(x, y):
            return "equal"
        if x.dtype != y.dtype and same_numbers(x, y):
            return "numbers"
        return "rounded" if rounded_to(x, y) or rounded_to(y, x) else "differ"

    def sources(self, side: int, source: Any) -> tuple[set[Any], list[Op]]:
        """The pairs and names that a value comes from, and the operations of this run alone on the way."""
        if not isinstance(source, int):
            return {source}, []
        pair = self.of[side].get(source)
        if pair is not None:
            return {pair}, []
        known = self.roots[side].get(source)
        if known is None:
            op = self.runs[side].ops[source]
            found: set[Any] = set()
            chain: list[Op] = [op]
            for s in op.sources:
                more, way = self.sources(side, s)
                found |= more
                chain += way
            known = self.roots[side][source] = found, chain
        return known

    def state(self, p: Pair) -> str:
        if p.state is None:
            p.state = UNJUDGED  # of what a loop would ask
            p.state = self._state(p)
        return p.state

    def _state(self, p: Pair) -> str:
        outs = [self.relation(u, v) for u, v in zip(p.a.outputs, p.b.outputs)]
        if len(p.a.outputs) == len(p.b.outputs) and all(r in ("equal", "numbers") for r in outs):
            return EQUAL
        if p.a.name in RANDOM and "random" not in p.why:
            return self._found(p, Kind("random", "the random numbers differ"))
        ins = [self.relation(u, v) for u, v in zip(p.a.inputs, p.b.inputs)]
        if self.leading and self._over_batch(p):
            return self._not(p, "sums over the batch, which is another one")
        if "unknown" in outs:
            return self._not(p, "numbers were not kept")
        if len(p.a.inputs) != len(p.b.inputs):
            return self._found(p, Kind("formula", f"{len(p.a.inputs)} tensors enter in a, {len(p.b.inputs)} in b"))
        inherits, unjudged, own = False, False, None
        for i, r in enumerate(ins):
            if r in ("equal", "numbers"):
                continue
            states, kind = self._input(p, i, r)
            inherits |= INHERITED in states or GUILTY in states
            unjudged |= UNJUDGED in states
            own = own or kind
        if own is not None and not (inherits or unjudged):
            return self._found(p, own)
        if inherits or unjudged:
            return self._inherited(p, unjudged and not inherits)
        state = self._own(p, ins)
        if p.guilty is not None:
            p.guilty.places = self._places(p)
        return state

    def _places(self, p: Pair) -> tuple[Place, ...]:
        for u, v in zip(p.a.outputs, p.b.outputs):
            if self.relation(u, v) not in ("equal", "numbers"):
                x, y = self.cut(u, v)
                return () if x is None or y is None or x.shape != y.shape else places(x, y, PLACES)
        return ()

    def _over_batch(self, p: Pair) -> bool:
        """Whether inputs have another batch than results show."""
        def other(u: Value, v: Value) -> bool:
            return u.shape != v.shape

        return any(other(u, v) and self.cut(u, v) == (None, None) for u, v in zip(p.a.inputs, p.b.inputs)) or \
            any(other(u, v) for u, v in zip(p.a.inputs, p.b.inputs)) and not any(other(u, v) for u, v in zip(p.a.outputs, p.b.outputs))

    def _input(self, p: Pair, i: int, relation: str) -> tuple[set[str], Optional[Kind]]:
        """Of an input that differs: the states of what it comes from, or the kind of the difference that begins here."""
        s, t = p.a.sources[i], p.b.sources[i]
        (left, way_a), (right, way_b) = self.sources(0, s), self.sources(1, t)
        pairs = [x for x in left | right if isinstance(x, Pair)]
        states = {self.state(x) for x in pairs} - {EQUAL}
        if states:
            return states, None
        x, y = self.cut(p.a.inputs[i], p.b.inputs[i])
        known = of_tensors(x, y) if x is not None and y is not None else None
        if isinstance(s, str) and s == t:
            u, v = (run.parameters[s] for run in self.runs)  # as it is stored, not as it enters
            if u.digest != v.digest and u.tensor is not None and v.tensor is not None:
                known = of_tensors(u.tensor, v.tensor)
            if known and known.name == "format":
                return set(), Kind("format", f"{s}: {known.text}")
            return set(), Kind("weights", f"{s} differs: {known.text if known else 'other numbers'}")
        if s is None and t is None:
            return set(), Kind("inputs", "a tensor that comes from outside of the model differs" + (f": {known.text}" if known else ""))
        names = self._alone(way_a, way_b)
        if known and known.name == "format" or relation == "rounded":
            return set(), Kind("format", f"{known.text if known else 'one is rounded'}{names}")
        if isinstance(s, int) and s == p.a.sources[i] and not names:
            return set(), Kind("formula", "another view of an equal tensor enters" + (f": {known.text}" if known else ""))
        chain = _verdict.chains(way_a, way_b, p.a.inputs[i], p.b.inputs[i]) if left == right else None
        if chain is not None:
            return set(), Kind(chain.name, f"{BEFORE}{names[2:]}: {chain.text}")
        kinds = {op.name for op in [*way_a, *way_b]}
        name = "format" if kinds <= {"_to_copy", "clone", "copy"} and kinds else "formula"
        return set(), Kind(name, f"{BEFORE}{names[2:]}" + (f": {known.text}" if known else ""))

    @staticmethod
    def _alone(way_a: list[Op], way_b: list[Op]) -> str:
        said = [f"only {run} has {listed(way)} before it" for run, way in (("a", way_a), ("b", way_b)) if way]
        return "; " + "; ".join(said) if said else ""

    # ---- verdicts ----

    def _found(self, p: Pair, kind: Kind, run: str = "", rows: Rowed = (None, None)) -> str:
        p.guilty = Guilty(p.a, p.b, kind, run, rows)
        return GUILTY

    @staticmethod
    def _not(p: Pair, why: str) -> str:
        p.why = why
        return UNJUDGED

    def _own(self, p: Pair, ins: list[str]) -> str:
        """Equal inputs, other results."""
        u, v = p.a.outputs[0], p.b.outputs[0]
        said = self._arguments(p)
        if said:
            return self._found(p, Kind("formula", said))
        if "numbers" in ins or u.dtype != v.dtype:
            one, other = (next((name_of(x.dtype) for x, y in zip(*z) if x.dtype != y.dtype), "") for z in (
                ((p.a.inputs + p.a.outputs), (p.b.inputs + p.b.outputs)), ((p.b.inputs + p.b.outputs), (p.a.inputs + p.a.outputs))))
            return self._found(p, Kind("format", f"computed in {one} in a, in {other} in b"))
        if is_product(p.a) and p.a.kept and p.b.kept:
            kind = of_products(p.a, p.b, self.rows, True)
            if kind is None:
                return self._not(p, "a product whose results differ, and one row gives both")
            return self._found(p, kind, self._blame(p) if kind.name in ("dropped", "formula") else "", (self.rows[0].of(p.a), self.rows[1].of(p.b)))
        k = next((k for k, (m, n) in enumerate(zip(p.a.outputs, p.b.outputs)) if self.relation(m, n) not in ("equal", "numbers")), 0)
        x, y = self.cut(p.a.outputs[k], p.b.outputs[k])
        if x is None or y is None:
            return self._found(p, Kind("formula", "the digests of the results differ; the numbers were not kept"))
        one, other = _verdict.of(p.a)[0], _verdict.of(p.b)[0]
        rows = one and one.row, other and other.row
        kind, run = (one and other and k == 0 and _verdict.own(one, other)) or (None, self._blame(p))
        known = of_results(p.a, x, y, right="" if not run else "a" if run == "b" else "b")
        if kind is not None and (known.name == "dropped" or kind.name == "order" and known.name == "format"):  # what the rows did not say
            kind = None
        return self._found(p, kind or known, run, rows)

    def _arguments(self, p: Pair) -> str:
        """Arguments that are no tensors and differ."""
        def flat(x: Any) -> Any:
            if isinstance(x, (list, tuple)):
                return [flat(y) for y in x]
            return x if isinstance(x, (int, float, str, bool)) or x is None else str(x) if isinstance(x, torch.dtype) else "tensor"

        names = [argument.name for argument in p.a.func._schema.arguments]
        said = [f"{names[i] if i < len(names) else i} is {x} in a, {y} in b" for i, (x, y) in enumerate(zip(p.a.args, p.b.args))
                if flat(x) != flat(y) and not (self.leading and isinstance(x, (int, list, tuple)))]
        said += [f"{k} is {p.a.kwargs.get(k)} in a, {p.b.kwargs.get(k)} in b" for k in p.a.kwargs.keys() | p.b.kwargs.keys()
                 if flat(p.a.kwargs.get(k)) != flat(p.b.kwargs.get(k)) and k not in ("device", "pin_memory", "layout")]
        return "; ".join(said)

    def _torch(self, op: Op, side: int) -> Optional[list[Any]]:
        """The results of torch on this CPU; None where it cannot be asked."""
        key = side, op.number
        if key not in self.again:
            self.again[key] = None
            if op.kept and op.name not in RANDOM and op.func.namespace == "aten":
                try:
                    self.again[key] = op.again()
                except (RuntimeError, TypeError, NotImplementedError):
                    pass
        return self.again[key]  # type: ignore[no-any-return]

    def _wrong(self, op: Op, side: int, near: float = NEAR) -> Optional[Kind]:
        """How an operation's results differ from those of torch on this CPU; None: they do not, by more than rounding, or it is not known."""
        made = self._torch(op, side)
        for t, v in zip(made or [], op.outputs):
            if v.tensor is not None and t.shape == v.tensor.shape and t.dtype == v.dtype and not same_numbers(t, v.tensor) and units(t, v.tensor) > near:
                run = "ab"[side]
                kind = of_results(op, t, v.tensor, ("torch on this CPU", run), "torch on this CPU")
                return Kind(kind.name, f"beside torch on this CPU: {kind.text}")
        return None

    def _blame(self, p: Pair) -> str:
        wrong = [self._wrong(op, side) is not None for side, op in enumerate((p.a, p.b))]
        return "a" if wrong == [True, False] else "b" if wrong == [False, True] else ""

    def _inherited(self, p: Pair, unjudged: bool) -> str:
        """Inputs differ already: whether the results are what these give."""
        if is_product(p.a) and p.a.kept and p.b.kept:
            kind = of_products(p.a, p.b, self.rows, False)
            if kind is not None:
                return self._found(p, kind)
            p.proven, p.why = bool(self.rows[0].of(p.a) and self.rows[1].of(p.b)), f"no row is known of aten.{p.a.name}"
        else:
            found = self._differs(p)
            if found is not None:
                return found
        return self._not(p, "inputs were not judged") if unjudged else INHERITED

    def _differs(self, p: Pair) -> Optional[str]:
        """Whether an operation that is no product differs itself, by torch on this CPU and by rows. None: it does not, or it is not known."""
        again = [self._again(op, side) for side, op in enumerate((p.a, p.b))]
        if again == [0, 0]:
            p.proven, p.why = True, "torch on this CPU"
            return None
        (one, why), (other, _) = _verdict.of(p.a), _verdict.of(p.b)
        p.why = why or f"no row gives the results of aten.{p.a.name}"
        if one is not None and other is not None:
            said = _verdict.inherited((p.a, p.b), one, other)
            if said is not None and said[0] is not None:
                return self._found(p, said[0], said[1], (one.row, other.row))
            if said is not None:
                p.proven, p.why = True, said[1]
                return None
        for side, v in ((1, other), (0, one)):  # torch gives all results of one run, and others than those of this one
            n, differ = self._results(p.b if side else p.a), again[side]
            if again[1 - side] == 0 and differ and _verdict.certain(differ, n, self._results(p.a if side else p.b)):
                kind = self._wrong(p.b if side else p.a, side, 0) or Kind("formula", "")
                return self._found(p, v.kind if v and v.kind else kind, "ab"[side])
        wrong = [self._wrong(op, side) for side, op in enumerate((p.a, p.b))]
        if (wrong[0] is None) != (wrong[1] is None):
            return self._found(p, wrong[0] or wrong[1] or Kind("formula", ""), "b" if wrong[0] is None else "a")
        return None

    @staticmethod
    def _results(op: Op) -> int:
        return sum(v.tensor.numel() for v in op.outputs if v.tensor is not None)

    def _again(self, op: Op, side: int) -> Optional[int]:
        """How many results are not those of torch on this CPU; None: it cannot be asked."""
        made = self._torch(op, side)
        if made is None or [(t.shape, t.dtype) for t in made] != [(v.shape, v.dtype) for v in op.outputs] or any(v.tensor is None for v in op.outputs):
            return None
        return sum(0 if same_bits(t, v.tensor) else differing(t, v.tensor) for t, v in zip(made, op.outputs))

    # ---- what uses a result ----

    def _uses(self, side: int) -> dict[int, list[Op]]:
        found: dict[int, list[Op]] = {}
        for op in self.runs[side].ops:
            for s in op.sources:
                if isinstance(s, int):
                    found.setdefault(s, []).append(op)
        return found

    def _equal_from(self, side: int, op: Op) -> bool:
        """Whether all that uses a result, directly or through operations of this run alone, is equal in both runs; and something does."""
        todo, seen = [op], set()
        while todo:
            users = self.uses[side].get(todo.pop().number, [])
            if not users:
                return False
            for user in users:
                pair = self.of[side].get(user.number)
                if pair is not None and pair.state not in (EQUAL, HARMLESS):
                    return False
                if pair is None and user.number not in seen:
                    seen.add(user.number)
                    todo.append(user)
        return True

    def _harmless(self, p: Pair) -> bool:
        other = any(u.dtype != v.dtype for u, v in zip(p.a.outputs, p.b.outputs))
        return other and self._equal_from(0, p.a) and self._equal_from(1, p.b)


def compare(a: Recording, b: Recording, leading: bool = False) -> Runs:
    """See mpsim.testing.compare_runs."""
    return Judge(a, b, leading).run()
