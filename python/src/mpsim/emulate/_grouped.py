"""Products of several matrices in one call: `_grouped_mm` of mixtures of experts, `_trilinear` of nn.Bilinear."""
from __future__ import annotations

from typing import Any

import torch

from ._claims import Matrices
from ._products import Record
from ._roles import GRAD

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
        if core.roles.largest((a, b)) == GRAD:
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
        core = self.core
        dims = x.dim() + len(expand1)
        letters = [[LETTERS[d] for d in range(dims) if d not in {e % dims for e in expand}] for expand in (expand1, expand2, expand3)]
        kept = [LETTERS[d] for d in range(dims) if d not in {s % dims for s in sumdim}]
        needed = [c for c in LETTERS[:dims] if (c in letters[0] or c in letters[1]) and (c in letters[2] or c in kept)]
        dtype = torch.promote_types(torch.promote_types(x.dtype, y.dtype), z.dtype)  # einsum takes operands of one dtype
        with core.mode:
            x, y, z = x.to(dtype), y.to(dtype), z.to(dtype)
            first = torch.einsum(f"{''.join(letters[0])},{''.join(letters[1])}->{''.join(needed)}", x, y).to(dtype)
            present = [c for c in kept if c in needed or c in letters[2]]
            made = torch.einsum(f"{''.join(needed)},{''.join(letters[2])}->{''.join(present)}", first, z)
        for i, c in enumerate(kept):
            if c not in present:
                made = made.unsqueeze(i)
        return made
