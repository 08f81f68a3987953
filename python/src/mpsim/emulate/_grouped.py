"""Products of several matrices in one call: `_grouped_mm` of mixtures of experts, `_trilinear` of nn.Bilinear."""
from __future__ import annotations

from math import prod
from typing import Any, Optional

import torch

from ._claims import Matrices
from ._products import Record
from ._roles import GRAD, WEIGHT

LETTERS = "abcdefgh"


class Grouped:
    """A group is a product of its own: its operands, copies and random bits are those of PATH[group]."""

    def __init__(self, core: Any, matrices: Matrices) -> None:
        self.core, self.matrices = core, matrices
        self.table: dict[str, Any] = {"aten::_grouped_mm": self.grouped_mm, "aten::_trilinear": self.trilinear}

    def grouped_mm(self, a: Any, b: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
        """a: rows x depth whose rows belong to groups (or one matrix a group), b: groups x depth x columns (or a matrix whose columns do);
        two matrices whose depth belongs to groups give one product a group."""
        core = self.core
        if bias is not None:
            raise core.refused("aten::_grouped_mm", "a bias, which torch does not have either")
        if offs is None:
            return self.matrices.multiply(a, b)
        ends = [int(e) for e in offs.tolist()]
        starts = [0, *ends[:-1]]
        records = self.records(a, b, len(ends))
        parts = []
        for i, (start, end) in enumerate(zip(starts, ends)):
            left = a[i] if a.dim() == 3 else a[start:end] if b.dim() == 3 else a[:, start:end]
            right = b[i] if b.dim() == 3 else b[:, start:end] if a.dim() == 3 else b[start:end]
            parts.append(self.matrices.multiply(left, right, record=records[i]))
        made = self.joined(a, b, parts, ends[-1] if ends else 0)
        made = made if out_dtype is None else made.to(out_dtype)
        core.roles.put(made, core.roles.largest((a, b)))
        return made

    @staticmethod
    def joined(a: Any, b: Any, parts: list[Any], total: int) -> Any:
        if a.dim() == b.dim():
            return torch.stack(parts)
        rows = a.dim() == 2  # groups of rows; else of columns
        rest = a.shape[0] - total if rows else b.shape[1] - total
        if rest:  # rows that belong to no group
            like = parts[0]
            parts = [*parts, like.new_zeros((rest, like.shape[1]) if rows else (like.shape[0], rest))]
        return torch.cat(parts, 0 if rows else 1)

    def records(self, a: Any, b: Any, n: int) -> list[Any]:
        core, matrices = self.core, self.matrices
        if matrices.is_gradient(a, b):
            first = core.paths.found()
            return first.extra if isinstance(first, Record) and isinstance(first.extra, list) and len(first.extra) == n else [None] * n
        first = matrices.record("linear", False, 2)
        made = []
        for i in range(n):
            record = Record(first.path, f"{first.name}[{i}]", "linear", False, 2, first.recomputed)
            made.append(record)
        first.extra = made
        core.paths.mark(first)
        return made

    def trilinear(self, x: Any, y: Any, z: Any, expand1: Any, expand2: Any, expand3: Any, sumdim: Any, unroll_dim: int = 1) -> Any:
        """Two products: the first operand with the second, what that gives with the third."""
        dims = x.dim() + len(expand1)
        letters = ["".join(LETTERS[d] for d in range(dims) if d not in {e % dims for e in expand}) for expand in (expand1, expand2, expand3)]
        kept = "".join(LETTERS[d] for d in range(dims) if d not in {s % dims for s in sumdim})
        needed = "".join(c for c in LETTERS[:dims] if c in letters[0] + letters[1] and c in letters[2] + kept)
        records = self.of_two(x, y, z)
        first = self.summed(x, letters[0], y, letters[1], needed, records[0])
        if records[1] is not None and self.matrices.is_gradient(z):  # the gradient of the third operand: the first product was made again
            records[1].left = first.untyped_storage()._cdata
        present = "".join(c for c in kept if c in needed + letters[2])
        made = self.summed(first, needed, z, letters[2], present, records[1])
        for i, c in enumerate(kept):
            if c not in present:
                made = made.unsqueeze(i)
        return made

    def of_two(self, x: Any, y: Any, z: Any) -> tuple[Optional[Record], Optional[Record]]:
        """What both products are of: x y and (x y) z going forward; going back dx = (dy y) z, dy = (x dy) z, dz = (x y) dy, of which
        those that give dy are of the weight."""
        core, matrices = self.core, self.matrices
        if not matrices.is_gradient(x, y, z):
            weighs = core.roles.of(z) == WEIGHT
            first, second = matrices.record("linear", False, 2), matrices.record("linear" if weighs else "pair", not weighs, 2)
            first.extra = [second]
            core.paths.mark(first)
            return first, second
        found = core.paths.found()
        if not isinstance(found, Record) or not isinstance(found.extra, list) or len(found.extra) != 1:
            return None, None
        if core.roles.of(z) == GRAD:
            return Record(found.path, found.name, "linear", False, 2, True), found.extra[0]
        return found, found if core.roles.of(y) == GRAD else found.extra[0]

    def summed(self, a: Any, of_a: str, b: Any, of_b: str, kept: str, record: Optional[Record]) -> Any:
        """einsum of two operands as a stack of products; where no index is summed each is an outer one."""
        both = [c for c in of_a if c in of_b]
        stack, depth = [c for c in both if c in kept], [c for c in both if c not in kept]
        rows, columns = [c for c in of_a if c not in of_b], [c for c in of_b if c not in of_a]
        size = {**dict(zip(of_a, a.shape)), **dict(zip(of_b, b.shape))}
        shape = [[size[c] for c in each] for each in (stack, rows, depth, columns)]
        n = [prod(each) for each in shape]
        with self.core.mode:  # copies have the roles of what they are made of
            left = a.permute([of_a.index(c) for c in (*stack, *rows, *depth)]).reshape(n[0], n[1], n[2])
            right = b.permute([of_b.index(c) for c in (*stack, *depth, *columns)]).reshape(n[0], n[2], n[3])
        made = self.matrices.multiply(left, right, record=record).view(shape[0] + shape[1] + shape[3])
        order = [*stack, *rows, *columns]
        return made.permute([order.index(c) for c in kept])
