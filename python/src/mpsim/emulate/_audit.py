"""What an emulation has computed, and how: every product with the row of its model, every operator of torch that was called."""
from __future__ import annotations

import functools
import importlib
import math
import sys
from ctypes import byref
from typing import Any, Iterable, Iterator, Optional

from .._dot import model_of
from .._library import CModel, lib, text
from .._product import Operand
from ._plans import TORCH
from ._said import Said

EVIDENCE = ("defined", "vectors", "reported", "manual", "none")
WIDTH = 80
ROWS = 64  # of a module and a kind of product; calls of more shapes are counted in one row
ASKED = "natively, as native= says"
INTEGERS = "integers, which no policy changes"
# how an operator was computed; the order of the table
HOWS = {
    "product": "under a model of mpsim",
    "native product": "torch's kernel: its products are not emulated",
    "foreign": "an operator outside aten: what it computes is not seen",
    "between": "torch's kernel in binary32, the result rounded to its format",
    "float32": "torch's kernel in binary32, as torch.autocast has it",
    "other": "torch's kernel, in the dtypes that come",
    "free": "changes no number",
}


@functools.lru_cache(maxsize=None)
def row_of(model: str) -> tuple[str, Optional[str], Optional[str]]:
    """Of an accumulation model the evidence, what is unconfirmed, and the source."""
    if model == TORCH:
        return "native", "torch's own order of sums, which differs between machines", None
    found: CModel = model_of(model)[0]
    note = found.unconfirmed.decode() if found.unconfirmed else None
    return EVIDENCE[found.evidence], note, found.source.decode() if found.source else None


def recipe_said(side: Any) -> Optional[str]:
    """The recipe by which an operand has entered."""
    entering = side.view[1] if isinstance(side, Operand) and side.view is not None else None
    return text(entering.recipe.name) if entering is not None and entering.recipe is not None else None


def line_of_user() -> str:
    """The line of the user's code that runs: the innermost of a file that is neither this package's nor of another installed one; where
    there is none, of an installed package but torch."""
    here, found = __file__.rpartition("/")[0], "?"
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith((here, "<")) and "/torch/" not in name:
            if "-packages/" not in name:
                return f"{name}:{frame.f_lineno}"
            found = f"{name}:{frame.f_lineno}" if found == "?" else found
        frame = frame.f_back  # type: ignore[assignment]
    return found


class Product:
    """Calls of one product: of the same place, kind, shapes and formats.

    path: of the module; name: with the number of the call, and of the product in it, where there are several. operator: of torch.
    kind: "fprop", "dgrad", "wgrad" or "native". roles: of both operands and of the result. shape: (matrices, rows, columns, depth).
    formats: of both operands and of the result. recipes: by which the operands entered; None: rounded at most. model, evidence,
    unconfirmed, source: the row of `mpsim formats --models`. calls: how many; line: the user's line of the first of them. merged: whether
    the calls are of several shapes, or calls of the module (the shape and the name are the first's), as a module has ROWS rows of a kind
    at most, and one of all the rest. multiply_adds: of all calls.
    """

    __slots__ = ("path", "name", "operator", "kind", "roles", "shape", "formats", "recipes", "model", "evidence", "unconfirmed", "source", "why",
                 "calls", "line", "merged", "_multiply_adds")

    def __init__(self, record: Any, operator: str, kind: str, roles: tuple[str, ...], shape: tuple[int, ...], formats: tuple[str, ...],
                 recipes: tuple[Optional[str], ...], model: Optional[str], why: Optional[str]) -> None:
        self.path, self.name, self.operator, self.kind, self.roles, self.shape = record.path, record.name, operator, kind, roles, shape
        self.formats, self.recipes, self.model, self.why = formats, recipes, model, why
        row: tuple[Optional[str], Optional[str], Optional[str]] = row_of(model) if model else (None, None, None)
        self.evidence, self.unconfirmed, self.source = row
        self.calls, self.line = 0, line_of_user()
        self.merged, self._multiply_adds = False, 0

    @property
    def multiply_adds(self) -> int:
        return self._multiply_adds if self.merged else self.calls * math.prod(self.shape) if self.shape else 0

    def take(self, shape: tuple[int, ...]) -> None:
        """A call of some shape."""
        self.merged = True
        self._multiply_adds += math.prod(shape)

    def as_dict(self) -> dict[str, Any]:
        names = [name for name in self.__slots__ if not name.startswith("_")]
        return {name: list(value) if isinstance(value := getattr(self, name), tuple) else value for name in (*names, "multiply_adds")}

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name or 'the model'}: {' x '.join(map(str, self.shape))} under {self.model}>"


def shape_of(record: Any, kind: str, views: Any, out: Any) -> tuple[int, ...]:
    """(matrices, rows, columns, depth); of a convolution those of the product that it is: a row a place, a column a channel; of the gradient of
    its weight a row a channel."""
    if record.form != "conv":
        return math.prod(out.shape[:-2]), out.shape[-2], out.shape[-1], views[0].shape[-1]
    weight = out.shape if kind == "wgrad" else views[1].shape
    if kind == "wgrad":
        return 1, weight[0], math.prod(weight[1:]), math.prod(views[0].shape) // max(views[0].shape[1], 1)
    return 1, out.shape[0] * math.prod(out.shape[2:]), out.shape[1], math.prod(weight) // max(out.shape[1], 1)


class Ledger:
    """What is kept of products while they are computed."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.products: dict[Any, Product] = {}
        self.order: list[tuple[str, str]] = []  # (path, kind) as they came first
        self.met: dict[tuple[str, str], int] = {}  # and how many rows each has
        self.unclaimed: dict[tuple[str, str, str, str], int] = {}  # operator, module, line, why

    def product(self, record: Any, kind: str, slots: Any, views: Any, entered: Any, formats: Any, model: Any, out: Any, to: Any) -> None:
        """A watcher of products (Core.saw)."""
        if kind == "native":
            return self.native(record, str(model))
        key = record.name, kind, slots, out.shape, views[0].shape[-1], to
        found = self.products.get(key)
        if found is None:
            found = self._new(record, kind, slots, views, entered, formats, model, out, to)
        found.calls += 1

    def _new(self, record: Any, kind: str, slots: Any, views: Any, entered: Any, formats: Any, model: Any, out: Any, to: Any) -> Product:
        shape, place = shape_of(record, kind, views, out), (record.path, kind)
        name = model if isinstance(model, str) else text(model.name)
        rows = self.met[place] = self.met.get(place, 0) + 1
        if rows == 1:
            self.order.append(place)
        said = tuple(slots), (formats[0].name, formats[1].name, to.name), tuple(recipe_said(side) for side in entered), name
        key = (*place, *said) if rows > ROWS else (record.name, kind, slots, out.shape, views[0].shape[-1], to)
        found = self.products.get(key)
        if found is None:
            found = self.products[key] = Product(record, self.core.calling, kind, said[0], shape, said[1], said[2], name, None)
        if rows > ROWS:
            found.take(shape)
        return found

    def native(self, record: Any, why: str) -> None:
        key = record.name, "native", self.core.calling, why
        found = self.products.get(key)
        if found is None:
            found = self.products[key] = Product(record, self.core.calling, "native", (), (), (), (), None, why)
        found.calls += 1

    def refused(self, operator: str, module: str, line: str, why: str) -> None:
        key = operator, module, line, why
        self.unclaimed[key] = self.unclaimed.get(key, 0) + 1


def how_of(operator: Any, core: Any) -> str:
    """How an operator was computed: a key of HOWS."""
    if operator.space not in ("aten", "prim", "prims", "profiler"):
        return "foreign"
    if operator.hidden:
        return "native product"
    if operator.free:
        return "free"
    if operator.between is not None and not core.as_torch:
        return "between"
    return "float32" if operator.float32 and core.listed else "other"


class Audit(Said):
    """What `Emulator.audit` gives: rows of products, and the operators that were called.

    products: a list of `Product`. operators: a row for each operator of torch: its name, calls and how it was computed.
    foreign: names of operators outside aten. native: the products that torch computed, and why.
    Iterating gives the products; printed, it is a table of 80 columns.
    """

    def __init__(self, core: Any) -> None:
        self.products: list[Product] = list(core.ledger.products.values())
        self.operators: list[dict[str, Any]] = []
        calls: dict[tuple[str, str], int] = {}
        for operator in core.mode.operators.values():
            for how, n in (("product", operator.claimed), (how_of(operator, core), operator.calls - operator.claimed)):
                calls[operator.name, how] = calls.get((operator.name, how), 0) + n
        for (name, how), n in sorted(calls.items(), key=lambda item: (list(HOWS).index(item[0][1]), -item[1], item[0][0])):
            if n:
                self.operators.append({"operator": name, "calls": n, "how": how})
        self.foreign = [each["operator"] for each in self.operators if each["how"] == "foreign"]
        self.native = [{"operator": o, "module": m, "line": where, "why": why, "calls": n} for (o, m, where, why), n in core.ledger.unclaimed.items()]
        self.notes = list(core.notes)

    def __iter__(self) -> Iterator[Product]:
        return iter(self.products)

    def __len__(self) -> int:
        return len(self.products)

    # ---- for programs ----

    def as_dict(self) -> dict[str, Any]:
        """The audit as its JSON has it: doc/schema/mpsim.emulate-audit.1.json."""
        return {"schema": "mpsim.emulate-audit/1", "mpsim": lib.mpsim_version().decode(), "products": [p.as_dict() for p in self.products],
                "operators": self.operators, "foreign": self.foreign, "native": self.native, "notes": self.notes}

    def to_pandas(self) -> Any:
        """The products as a DataFrame of pandas, a row each."""
        pandas: Any = importlib.import_module("pandas")
        rows = []
        for p in self.products:
            row = p.as_dict()
            row.update(zip(("matrices", "rows", "columns", "depth"), p.shape))
            for key in ("roles", "formats"):
                row.update(zip((f"{key}_a", f"{key}_b", f"{key}_out"), row.pop(key)))
            row.update(zip(("recipe_a", "recipe_b"), row.pop("recipes")))
            del row["shape"]
            rows.append(row)
        return pandas.DataFrame(rows)

    # ---- for people ----

    def _lines(self) -> Iterable[str]:
        return (*self._products(), *self._operators(), *(f"note: {line}" for line in self.notes))

    def _products(self) -> Iterator[str]:
        emulated = [p for p in self.products if p.kind != "native"]
        calls = sum(p.calls for p in emulated)
        yield f"{calls:,} products, {len(emulated):,} rows"
        groups: dict[Any, list[Product]] = {}
        for p in emulated:
            groups.setdefault((p.model, p.formats, p.recipes), []).append(p)
        for (model, formats, recipes), rows in groups.items():
            a, b = (f"{recipe} of {format}" if recipe else format for format, recipe in zip(formats, recipes))
            yield ""
            yield from wrapped(f"{a} x {b} -> {formats[2]}: {model} ({row_of(model)[0]})")
            yield from table(("module", "kind", "operands", "shape", "operator", "calls"), [
                (p.name or "(model)", p.kind, " x ".join(p.roles[:2]), "several" if p.merged else shape_said(p.shape), short(p.operator), f"{p.calls:,}") for p in rows])
        for model in dict.fromkeys(p.model for p in emulated):
            note = row_of(model)[1]
            if note:
                yield ""
                yield from wrapped(f"unconfirmed of {model}: {note}")
        for p in self.products:
            if p.kind == "native":
                yield from wrapped(f"natively, {p.calls:,} calls: {p.operator} in {p.name or 'the model'}: {p.why}")

    def _operators(self) -> Iterator[str]:
        by_how: dict[str, list[dict[str, Any]]] = {}
        for each in self.operators:
            by_how.setdefault(each["how"], []).append(each)
        yield ""
        yield "Operators of torch"
        for how, rows in by_how.items():
            yield ""
            yield from wrapped(f"{HOWS[how]}: {sum(r['calls'] for r in rows):,} calls", "  ")
            names = ", ".join(f"{r['operator'].removeprefix('aten::')} {r['calls']:,}" for r in rows)
            yield from wrapped(names, "    ")
        yield ""
        yield "Operators outside aten: " + (", ".join(self.foreign) or "none")
        for each in self.native:
            yield from wrapped(f"natively, {each['calls']:,} calls: {each['operator']} in {each['module']} ({each['line']}): {each['why']}")

    def __repr__(self) -> str:
        return f"<mpsim.emulate audit: {sum(p.calls for p in self.products):,} products, {len(self.operators)} operators>"


def short(operator: str) -> str:
    """The name of an operator, of at most 20 columns."""
    name = operator.rpartition("::")[2]
    return cut(name.replace("_scaled_dot_product_flash_attention_for_cpu", "sdpa"), 20)


def shape_said(shape: tuple[int, ...]) -> str:
    return ("" if shape[0] == 1 else f"{shape[0]} x ") + "x".join(map(str, shape[1:]))


def wrapped(line: str, indent: str = "") -> list[str]:
    """A line in lines of at most WIDTH columns."""
    lines, at = [], indent
    for word in line.replace(" %", "\0%").split(" "):
        if len(at) + 1 + len(word) > WIDTH and at.strip():
            lines.append(at.rstrip())
            at = indent + "  "
        at += word + " "
    return [each.replace("\0", " ") for each in (*lines, at.rstrip())]


def table(titles: tuple[str, ...], rows: list[tuple[str, ...]], indent: str = "  ") -> Iterator[str]:
    """A table of at most WIDTH columns: the first column gives way. Columns of numbers are set to the right."""
    columns = list(zip(titles, *rows))
    widths = [max(map(len, column)) for column in columns]
    widths[0] = max(8, min(widths[0], WIDTH - len(indent) - sum(widths[1:]) - 2 * (len(widths) - 1)))
    numbers = [all(cell.replace(",", "").replace(".", "").replace("-", "").replace("%", "").replace("e", "").replace("+", "").strip().isdigit() or
                   cell in ("inf", "nan", "") for cell in column[1:]) for column in columns]
    for cells in (titles, *rows):
        said = [cell.rjust(width) if number else cut(cell, width).ljust(width) for cell, width, number in zip(cells, widths, numbers)]
        yield (indent + "  ".join(said)).rstrip()


def cut(name: str, width: int) -> str:
    """A long name without its middle."""
    return name if len(name) <= width else name[: width // 3] + ".." + name[len(name) - (width - width // 3 - 2):]
