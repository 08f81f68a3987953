"""What kind of difference two tensors, or the results of two products, have: for `compare_runs` of mpsim.testing."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

import torch

from ._cast import round as _round
from ._replay import Terms, gives, operands, row_of, sampled
from ._stand import PRODUCTS, Op, raw

CLASSES = ("order", "split", "format", "formula", "dropped", "weights", "inputs", "random")
NARROW = ("bf16", "fp16", "tf32", "e4m3", "e5m2")
OPERANDS = ("tf32", "bf16", "fp16")
SUMS = ("sum", "mean", "var", "std", "softmax", "norm", "logsumexp", "cumsum", "loss", "attention", "prod", "embedding_dense_backward", "index_put", "index_add")
NEAR = 64  # units of the last place that another order of sums, or another function, may make
BITS = {torch.float64: 53, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}


class Kind(NamedTuple):
    """A class of CLASSES, and a sentence."""

    name: str
    text: str


def numbers(x: Any) -> Any:
    return x.to(torch.float64)


def same_numbers(x: Any, y: Any) -> bool:
    return bool(x.shape == y.shape and torch.equal(numbers(x).nan_to_num(0.5, 1e308, -1e308), numbers(y).nan_to_num(0.5, 1e308, -1e308)))


def rounded_to(x: Any, y: Any) -> Optional[str]:
    """The format that y has and x is rounded to; None if y is no rounding of x."""
    if not (x.is_floating_point() and y.is_floating_point()) or x.shape != y.shape or x.dtype == torch.float64:
        return None
    for name in NARROW:
        if same_numbers(_round(x.float(), name), y):
            return name
    return None


def name_of(dtype: Any) -> str:
    return str(dtype)[6:]


# ---- two tensors ----


def _lines(x: Any) -> list[bytes]:
    return [bytes(row) for row in raw(x).reshape(x.shape[0], -1).numpy()]


def _permuted(x: Any, y: Any, word: str) -> Optional[str]:
    if x.dim() < 1 or x.dtype != y.dtype or x.shape[0] < 2:
        return None
    a, b = _lines(x), _lines(y)
    if a == b or sorted(a) != sorted(b):
        return None
    return f"{sum(p != q for p, q in zip(a, b))} of {len(a)} {word} have changed places"


def _ratio(x: Any, y: Any) -> Optional[float]:
    """The constant that y is of x, but for a rounding."""
    p, q = numbers(x).reshape(-1), numbers(y).reshape(-1)
    nonzero = (p != 0) & (q != 0) & p.isfinite() & q.isfinite()
    if int(nonzero.sum()) < 8 or bool(((p == 0) != (q == 0)).any()):
        return None
    r = q[nonzero] / p[nonzero]
    middle = float(r.median())
    unit = 2.0 ** -min(BITS.get(x.dtype, 24), BITS.get(y.dtype, 24))
    return middle if middle and bool(((r - middle).abs() <= 4 * unit * abs(middle)).all()) and abs(middle - 1) > 16 * unit else None


def units(x: Any, y: Any) -> float:
    """The largest difference, in units of the last place of the largest number of the line: what another order of sums makes."""
    p, q = numbers(x), numbers(y)
    if not bool((p.isfinite() == q.isfinite()).all()):
        return float("inf")
    p, q = p.nan_to_num(0, 0, 0), q.nan_to_num(0, 0, 0)
    top = p.abs().amax(-1, keepdim=True) if p.dim() else p.abs()
    unit = top.clamp_min(2.0**-126) * 2.0 ** (1 - min(BITS.get(x.dtype, 24), BITS.get(y.dtype, 24)))
    return float(((p - q).abs() / unit).max()) if p.numel() else 0.0


def dropped(x: Any, y: Any) -> Optional[str]:
    """y has zeros where x has none, in most of what differs."""
    differ = numbers(x) != numbers(y)
    zeros = (numbers(y) == 0) & (numbers(x) != 0)
    n, of = int(zeros.sum()), int(differ.sum())
    return f"{n:,} of {x.numel():,} results are zeros" if n >= 8 and 2 * n > of else None


def of_tensors(x: Any, y: Any, names: tuple[str, str] = ("a", "b"), right: str = "") -> Optional[Kind]:
    """What is known of the difference of two tensors, exactly; None: nothing. right: the name of the tensor whose zeros are as they should be."""
    a, b = names
    if x.shape != y.shape:
        if x.dim() == 2 and x.T.shape == y.shape and torch.equal(x.T, y):
            return Kind("formula", f"{b} is transposed")
        return Kind("formula", f"shape {list(x.shape)} in {a}, {list(y.shape)} in {b}")
    for p, q, who in ((x, y, b), (y, x, a)):
        text = dropped(p, q)
        if text and who != right:
            return Kind("dropped", f"{text} in {who}")
    for p, q, who in ((x, y, b), (y, x, a)):
        format = rounded_to(p, q)
        if format:
            return Kind("format", f"{who} has the other's numbers, rounded to {format}")
    if x.dim() == 2 and x.shape[0] == x.shape[1] and torch.equal(x.T.to(y.dtype), y):
        return Kind("formula", f"{b} is transposed")
    for p, q, word in [(x, y, "rows"), *([(x.T, y.T, "columns")] if x.dim() == 2 else [])]:
        text = _permuted(p, q, word)
        if text:
            return Kind("formula", text)
    ratio = _ratio(x, y)
    return Kind("formula", f"{b} is {ratio:.6g} times {a}") if ratio is not None else None


def _differ(x: Any, y: Any) -> Any:
    p, q = numbers(x), numbers(y)
    return (p != q) & ~(p.isnan() & q.isnan())


def differing(x: Any, y: Any) -> int:
    return int(_differ(x, y).sum())


def places(x: Any, y: Any, most: int) -> tuple[tuple[tuple[int, ...], float, float], ...]:
    """The indices of the first results that differ, and their numbers in both tensors."""
    found = [tuple(i) for i in _differ(x, y).nonzero()[:most].tolist()]
    return tuple((i, float(x[i]), float(y[i])) for i in found)


def size_of(x: Any, y: Any) -> str:
    return f"{differing(x, y):,} of {x.numel():,} results differ, by up to {units(x, y):.3g} units in the last place of the largest of a line"


# ---- results of one operation for the same inputs ----


def narrower(x: Any, y: Any) -> Optional[str]:
    """The format whose numbers all of y are, and those of x are not."""
    if x.dtype != y.dtype or not y.is_floating_point():
        return None
    for name in NARROW[:2]:
        if same_numbers(_round(y.float(), name), y) and differing(_round(x.float(), name), x) >= 8:
            return name
    return None


def of_results(op: Op, x: Any, y: Any, names: tuple[str, str] = ("a", "b"), right: str = "") -> Kind:
    """Another operation than a product: x and y are its results."""
    known = of_tensors(x, y, names, right)
    if known:
        return known
    for p, q, who in ((x, y, names[1]), (y, x, names[0])):
        format = narrower(p, q)
        if format:
            return Kind("format", f"all results in {who} are numbers of {format}: {size_of(x, y)}")
    if units(x, y) <= NEAR and any(word in op.name for word in SUMS):
        return Kind("order", size_of(x, y))
    return Kind("formula", size_of(x, y))


def within(t: Terms, words: list[str]) -> Optional[bool]:
    """Whether sampled results are as near the exact sums as any order of sums in binary32 is; operands rounded as a row's words say."""
    a, b, d, add = sampled(t)
    p, q = numbers(operands(a, words)), numbers(operands(b, words))
    exact, magnitudes = (p @ q) * t.factor, (p.abs() @ q.abs()) * abs(t.factor)
    if add is not None:
        exact, magnitudes = exact + numbers(add) * t.add_factor, magnitudes + numbers(add).abs() * abs(t.add_factor)
    unit = 2.0 ** -BITS.get(d.dtype, 24)
    bound = 2 * (t.depth * 2.0**-24 * magnitudes + unit * exact.abs())
    good = exact.isfinite() & numbers(d).isfinite()
    return bool(((numbers(d) - exact).abs() <= bound)[good].all()) if bool(good.any()) else None


def sums_of(op: Op) -> Optional[str]:
    """Where no row is known: which operands the sums are of: "" as they are, or not known, a format that they are rounded to, or None: of none of them."""
    t = Terms(op)
    plain = within(t, [])
    if plain is not False:  # or nothing finite was seen
        return ""
    return next((f for f in OPERANDS if t.a.dtype == torch.float32 and within(t, [f"operands={f}"])), None)


FORMATS = ("operands=", "result=", "math=", "normalised=", "inverse=", "via=", "s=", "p=", "sum=", "round=")
SPLITS = ("split=", "chunk=", "parts=", "partials=")
SUMMED = ("product", "sum", "scaled-product", "attention")  # kinds whose rows differ in the order of sums
ARGUMENTS = ("causal", "window", "scale", "mean", "columns")


def _words(row: str, which: tuple[str, ...]) -> set[str]:
    return {w for w in row.replace(":", "+").split("+") if w.startswith(which)}


def of_rows(one: str, other: str, kind: str = "product") -> str:
    """The class of the difference of two rows of a kind."""
    names = [row.replace("@", ":").replace("+", ":").split(":")[0] for row in (one, other)]
    if kind not in SUMMED and kind != "cast" and names[0] != names[1]:
        return "formula"
    if kind in ("cast", "arith") or _words(one, FORMATS) != _words(other, FORMATS):
        return "format"
    if kind not in SUMMED or kind != "product" and _words(one, ARGUMENTS) != _words(other, ARGUMENTS):
        return "formula"
    return "split" if _words(one, SPLITS) != _words(other, SPLITS) else "order"


class Rows:
    """The rows of the products of a run, found as they are wanted."""

    def __init__(self) -> None:
        self.found: dict[int, Optional[str]] = {}
        self.before: dict[str, None] = {}

    def of(self, op: Op) -> Optional[str]:
        if op.number not in self.found:
            row, _ = row_of(op, [*self.before])
            self.found[op.number] = row
            if row is not None:
                self.before[row] = None
        return self.found[op.number]


def of_products(a: Op, b: Op, rows: tuple[Rows, Rows], same_inputs: bool) -> Optional[Kind]:
    """Two runs of a product whose results are not those of one row; None: their difference is explained by their operands, or nothing is known."""
    x, y = a.outputs[0].tensor, b.outputs[0].tensor
    if same_inputs and x is not None and y is not None and x.shape == y.shape:
        known = of_tensors(x, y)
        if known and known.name != "format":
            return known
    if [v.dtype for v in a.inputs] != [v.dtype for v in b.inputs]:
        return None  # each format has rows of its own
    p, q = rows[0].of(a), rows[1].of(b)
    if p and q:
        if p == q or gives(b, p) or gives(a, q):
            return None
        return Kind(of_rows(p, q), f"{p} in a, {q} in b")
    if x is None or y is None:
        return None
    for op, row, other, who in ((b, q, p, "b"), (a, p, q, "a")):
        if row is not None:
            continue
        summed = sums_of(op)
        if summed is None:
            t = Terms(op)
            zero = int((t.d == 0).sum())
            if zero and 2 * zero > t.d.numel():
                return Kind("dropped", f"{zero:,} of {t.d.numel():,} results are zeros in {who}")
            return Kind("formula", f"results in {who} are farther from the exact sums than any order of sums in binary32")
        if summed:
            return Kind("format", f"operands are rounded to {summed} in {who}; the order of sums is not known")
        if other and same_inputs:
            return Kind("order", f"{other} in {'a' if who == 'b' else 'b'}, another order of sums in {who}, of which no row is known")
    return Kind("order", "another order of sums, of which no row is known") if same_inputs else None


def is_product(op: Op) -> bool:
    return op.name in PRODUCTS
