"""Gradients of biases that are nothing but rounding, as sim/trace/roundoff.h has them, in a training that runs."""
from __future__ import annotations

from typing import Any, Optional

import torch

from .record import DTYPES, is_sharded

ROW = 4  # so many elements in a row are no chance
WORDS = ("weight", "kernel")


def companion(name: str) -> list[str]:
    """The parameters that may have the same terms in their gradients: "fc.weight" of "fc.bias"."""
    return [name[:-4] + word for word in WORDS] if name.endswith("bias") else []


def largest(weight: Any, n: int) -> Any:
    """Of each of n outputs the largest magnitude in its row of the weight's gradient; of what may lie either way the smaller."""
    found = [weight.reshape(n, -1).abs().amax(1)] if weight.shape[0] == n and weight.numel() else []
    if weight.shape[-1] == n and weight.numel() and (weight.dim() > 1 or not found):
        found.append(weight.reshape(-1, n).abs().amax(0))
    return torch.stack(found).amin(0) if found else None


def in_rows(small: Any, zero: Any) -> Any:
    """Those of the small elements that are not 0 and enough in a row; zeros between them are passed over."""
    kept, small, zero = [False] * len(small), small.tolist(), zero.tolist()
    begin = 0
    for at in range(len(small) + 1):
        if at < len(small) and (small[at] or zero[at]):
            continue
        row = [i for i in range(begin, at) if not zero[i]]
        if len(row) >= ROW or (row and at - begin == len(small)):
            for i in row:
                kept[i] = True
        begin = at + 1
    return torch.tensor(kept)


def roundoff(bias: Any, weight: Optional[Any]) -> Any:
    """The elements of a bias's gradient that are nothing but rounding, on the CPU; None where there are none."""
    if weight is None or any(is_sharded(t) or t.layout != torch.strided or t.dtype not in DTYPES for t in (bias, weight)):
        return None
    if bias.dim() != 1 or not bias.numel() or not weight.dim():
        return None
    rows = largest(weight.detach(), bias.numel())
    if rows is None:
        return None
    bias = bias.detach()
    unit = 2.0 ** -53 if bias.dtype == torch.float64 else 2.0 ** -24
    bound = 64 * unit * rows.double()
    small = ((bias.double().abs() <= bound) & bound.isfinite()).cpu()
    zero = (bias == 0).cpu()
    if not bool((small & ~zero).any()):
        return None
    kept = in_rows(small, zero)
    return bias.cpu()[kept].contiguous() if bool(kept.any()) else None
