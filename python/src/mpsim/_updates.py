"""Updates of weights that a format would lose."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._arrays import pointer
from ._cast import plan_of
from ._library import check, lib

CHUNK = 1 << 15
CASTS = {"bf16": torch.bfloat16, "fp16": torch.float16}


def lost_updates(old: Any, new: Any, label: str) -> tuple[int, int]:
    """Of two contiguous binary32 tensors the elements that differ, and how many of these a weight kept in a format would
    not have moved: the weight, rounded, and the same movement added to it in binary32 and rounded."""
    if old.is_cuda and label in CASTS:  # these casts are PyTorch's, to the bit
        kept = old.to(CASTS[label]).to(old.dtype)
        then = (kept + (new - old)).to(CASTS[label]).to(old.dtype)
        moves = old != new
        return int(moves.sum()), int((moves & (then == kept)).sum())
    old, new = old.cpu().reshape(-1).numpy(), new.cpu().contiguous().reshape(-1).numpy()
    plan = plan_of(label, None, 1.0, None, None, False, False, "binary32")
    kept, then = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)  # stay in the cache
    moved = lost = 0
    for i in range(0, old.size, CHUNK):
        a, b = old[i:i + CHUNK], new[i:i + CHUNK]
        k, t = kept[:a.size], then[:a.size]
        check(lib.mpsim_round_array_f32(plan.f, plan.r, None, pointer(k), pointer(a), a.size, None), "updates")
        np.add(k, np.subtract(b, a, out=t), out=t)
        check(lib.mpsim_round_array_f32(plan.f, plan.r, None, pointer(t), pointer(t), a.size, None), "updates")
        moves = a != b
        moved += int(np.count_nonzero(moves))
        lost += int(np.count_nonzero(moves & (t == k)))
    return moved, lost
