"""Recorded products, computed again bit by bit by rows: models of accumulation with what is added and rounded behind them (mpsim/judge.h)."""
from __future__ import annotations

import functools
from ctypes import c_int, c_size_t
from typing import Any, Iterator, Optional

import torch

from . import _judge
from ._cast import round as _round
from ._error import InputError
from ._library import lib
from ._product import View, multiply
from ._stand import PRODUCTS, Op, Recording, raw

lib.mpsim_torch_mm_chunk.restype, lib.mpsim_torch_mm_chunk.argtypes = c_size_t, [c_size_t, c_int]
SIDE = 12  # rows and columns of a product that a search looks at
MKL = 384  # products after which MKL's kernel of binary32 for AVX-512 begins a new sum


class Product:
    """A recorded product. equal: whether a row gives all its results; row: that row, or None; why: what is known where none does."""

    __slots__ = ("op", "row", "results", "why")

    def __init__(self, op: Op, row: Optional[str], why: str) -> None:
        self.op, self.row, self.why = op, row, why
        self.results = 1
        for n in op.outputs[0].shape:
            self.results *= n

    @property
    def equal(self) -> bool:
        return self.row is not None

    def __repr__(self) -> str:
        return f"<{self.op.place}: {self.row or self.why}>"


class Replay:
    """What `replay_products` gives: a `Product` for each product that was recorded."""

    def __init__(self, products: list[Product]) -> None:
        self.products = products

    @property
    def equal(self) -> bool:
        """Whether there are products, and a row gives all bits of each."""
        return bool(self.products) and all(p.equal for p in self.products)

    @property
    def rows(self) -> dict[tuple[str, str, str], tuple[int, int]]:
        """How many products and results there are of a dtype, an operation, and a row, or a reason why there is none."""
        found: dict[tuple[str, str, str], tuple[int, int]] = {}
        for p in self.products:
            key = str(p.op.outputs[0].dtype)[6:], p.op.name, p.row or p.why
            n, results = found.get(key, (0, 0))
            found[key] = n + 1, results + p.results
        return found

    def __iter__(self) -> Iterator[Product]:
        return iter(self.products)

    def __len__(self) -> int:
        return len(self.products)

    def __str__(self) -> str:
        same = [p for p in self.products if p.equal]
        lines = [f"{len(same):,} of {len(self.products):,} products equal in all bits, {sum(p.results for p in same):,} of "
                 f"{sum(p.results for p in self.products):,} results"]
        lines.append(f"  {'dtype':10}{'operation':10}{'products':>8}{'results':>14}  row")
        lines += [f"  {dtype:10}{name:10}{n:8,}{results:14,}  {row}" for (dtype, name, row), (n, results) in sorted(self.rows.items())]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<replay of {len(self.products)} products, {sum(p.equal for p in self.products)} equal>"


class Terms:
    """The operands of a product, and what is added: d = factor a b + add_factor add."""

    __slots__ = ("a", "b", "add", "factor", "add_factor", "d", "turned")

    def __init__(self, op: Op) -> None:
        left, right = PRODUCTS[op.name]
        values = [op.inputs[x.n].tensor for x in op.args]
        self.a, self.b = values[left], values[right]
        self.add = values[0] if left else None
        self.factor, self.add_factor = float(op.kwargs.get("alpha", 1)), float(op.kwargs.get("beta", 1))
        self.d = op.outputs[0].tensor
        self.turned = op.turned[op.args[left].n]

    @property
    def depth(self) -> int:
        return int(self.a.shape[-1])


def operands(x: Any, words: list[str]) -> Any:
    """The numbers as a row's `operands=` rounds them."""
    for word in words:
        if word.startswith("operands="):
            return _round(x.float(), word[9:]).to(torch.float32)
    return x


def blocks(first: int, end: int) -> list[tuple[int, int]]:
    """How MKL cuts a depth: blocks of 384, of which the last two are alike where less than 768 are left."""
    cut = []
    while first < end:
        left = end - first
        size = MKL if left >= 2 * MKL else -(-left // 2) if left > MKL else left
        cut.append((first, first + size))
        first += size
    return cut


def parts(depth: int, words: list[str]) -> list[tuple[int, int]]:
    """Where the parts of a row's `split=` begin and end, as the judge has them."""
    n = next((int(w[6:]) for w in words if w.startswith("split=")), 1)
    unit = 1 if depth % 32 else 32
    each = -(-(depth // unit) // n) * unit
    return [(i, min(i + each, depth)) for i in range(0, depth, each)]


def compute(row: str, t: Terms, dtype: Any) -> Any:
    """The results of a row."""
    model, *words = row.split("+")
    a, b = operands(t.a, words), operands(t.b, words)
    if model.startswith("mkl-fp32"):
        middle = -(-t.depth // 2)
        total = _chains(a, b, blocks(0, t.depth)) if model == "mkl-fp32" else _chains(a, b, blocks(0, middle)) + _chains(a, b, blocks(middle, t.depth))
    else:
        cut = parts(t.depth, words)
        if len(cut) == 1:
            return _one(model, a, b, t, dtype)
        total = _chains(a, b, cut, model, next((w[9:] for w in words if w.startswith("partials=")), "binary32"))
    total = total * t.factor if t.factor != 1 else total
    total = total if t.add is None else total + t.add.float() * t.add_factor
    rounded: Any = total.to(dtype)
    return rounded


def _chains(a: Any, b: Any, cut: list[tuple[int, int]], model: str = "fma", partials: str = "binary32") -> Any:
    """The sums of parts of the depth, added in order, and stored in a format."""
    def stored(x: Any) -> Any:
        return x if partials == "binary32" else _round(x, partials)

    pieces = [stored(_one(model, a[..., first:end].contiguous(), b[..., first:end, :].contiguous(), None, torch.float32)) for first, end in cut]
    total = pieces[0]
    for piece in pieces[1:]:
        total = stored(total + piece)
    return total


def _one(model: str, a: Any, b: Any, t: Optional[Terms], dtype: Any) -> Any:
    out = torch.empty((*a.shape[:-1], b.shape[-1]), dtype=dtype)
    add: Any = None if t is None else t.add
    bias = None
    if add is not None and t is not None and add.dim() == 1 and t.add_factor == 1:
        add, bias = None, View.row(add.float())
    multiply(View.of(out), (View.of(a), None), (View.of(b).t(), None), model, bias=bias, factor=1.0 if t is None else t.factor,
             add=None if add is None else View.of(add.expand(out.shape)), add_factor=1.0 if t is None else t.add_factor)
    return out


def same_bits(x: Any, y: Any) -> bool:
    return bool(x.dtype == y.dtype and x.shape == y.shape and torch.equal(raw(x), raw(y)))


@functools.lru_cache(maxsize=None)
def candidates(dtype: Any, depth: int, turned: bool) -> tuple[str, ...]:
    """Rows of torch's products on a CPU, the likely ones first."""
    if dtype in (torch.bfloat16, torch.float16):
        base = "avx512-bf16-fp32" if dtype == torch.bfloat16 else "fma"
        chunk = lib.mpsim_torch_mm_chunk(depth, turned)
        first = f"{base}:chunk={chunk}" if chunk and chunk < depth else base
        more = ("amx-bf16-fp32",) if dtype == torch.bfloat16 else ()
        return first, *more, "fma", "sequential"
    if dtype == torch.float32:
        return ("mkl-fp32" if depth > MKL else "fma", "mkl-fp32:parts=2")
    return ()


def gives(op: Op, row: str, t: Optional[Terms] = None) -> bool:
    """Whether a row gives all results of a product."""
    t = t or Terms(op)
    try:
        made = compute(row, t, op.outputs[0].dtype)
    except InputError:  # the row does not take these formats
        return False
    return same_bits(made, t.d) if t.d is not None else Recording(None).value(made).digest == op.outputs[0].digest


def sampled(t: Terms) -> tuple[Any, Any, Any, Any]:
    """Some rows and columns of the first matrix, all of the depth: a, b, d, and what is added."""
    a, b, d = (x.reshape(-1, *x.shape[-2:])[0] for x in (t.a, t.b, t.d))
    m, n = d.shape
    rows = torch.arange(min(m, SIDE)) * max(m - 1, 1) // max(min(m, SIDE) - 1, 1)
    columns = torch.arange(min(n, SIDE)) * max(n - 1, 1) // max(min(n, SIDE) - 1, 1)
    add = None if t.add is None else t.add.expand(t.d.shape).reshape(-1, m, n)[0][rows][:, columns].contiguous()
    return a[rows].contiguous(), b[:, columns].contiguous(), d[rows][:, columns].contiguous(), add


def search(op: Op, t: Terms) -> Optional[str]:
    """A row of the judge's that gives all results; None if there is none, or it cannot be asked."""
    if t.d is None or t.factor != 1 or t.add is not None and t.add_factor != 1:
        return None
    a, b, d, add = sampled(t)
    if not bool(d.isfinite().any()):  # by which no row is told from another
        return None
    try:
        found = _judge.judge("product", None, {"a": a, "b": b, "d": d, "c": add})
    except InputError:
        return None
    for row in (found.row, *found.same) if found.equal else ():
        if gives(op, row, t):
            return row
    return None


def row_of(op: Op, before: list[str], searching: bool = True) -> tuple[Optional[str], str]:
    """A row that gives all results of a product, or why none is known. before: rows of other products, which are tried first."""
    if op.name not in PRODUCTS:
        return None, f"not judged: products inside of {op.func._schema.name}"
    if not op.kept:
        return None, "not judged: operands were not kept"
    if not all(x.dtype in (torch.float32, torch.bfloat16, torch.float16) for x in op.inputs):
        return None, f"not judged: no rows for {str(op.inputs[-1].dtype)[6:]}"
    t = Terms(op)
    if 0 in t.a.shape or 0 in t.b.shape:
        return None, "not judged: nothing is multiplied"
    known = [*candidates(t.a.dtype, t.depth, t.turned), *before]
    for row in dict.fromkeys(known):
        if gives(op, row, t):
            return row, ""
    found = search(op, t) if searching else None
    return found, "" if found else "no known row"


def replay(recording: Recording, rows: tuple[str, ...] = ()) -> Replay:
    """See mpsim.testing.replay_products."""
    done: list[Product] = []
    before = dict.fromkeys(rows)
    with torch.no_grad():
        for op in recording.products:
            row, why = row_of(op, [*before])
            if row is not None:
                before.setdefault(row)
            done.append(Product(op, row, why))
    return Replay(done)
