# SPDX-License-Identifier: Apache-2.0
"""Times of a step of AdamW: one parameter of binary32, fused and foreach; Transformer Engine's and apex's FusedAdam."""
import torch

from timing import COLUMNS, Timer, optional

OURS = ["AdamW, binary32"]


def stepping(t, make):
    p = torch.nn.Parameter(t.tensor((t.rows, COLUMNS), torch.float32))
    p.grad = t.tensor((t.rows, COLUMNS), torch.float32, 1)
    return make([p]).step


def ask(s):
    t = Timer(s)
    n = 28 * t.elements
    for kind in ("fused", "foreach"):
        t.row(f"torch.optim.AdamW, {kind}", OURS, lambda: stepping(t, lambda p: torch.optim.AdamW(p, **{kind: True})), n)
    t.row("Transformer Engine, FusedAdam", OURS,
          lambda: stepping(t, optional("transformer_engine.pytorch.optimizers").FusedAdam), n)
    t.row("apex, FusedAdam", OURS, lambda: stepping(t, optional("apex.optimizers").FusedAdam), n)
