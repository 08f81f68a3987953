# SPDX-License-Identifier: Apache-2.0
"""Reductions: in which order are numbers added?

Numbers of stream 2, with exponents from -3 to 0 and any sign, so that nearly every order has a sum of its own; for
logarithms and norms of rows likewise. The reader tries orders of its own on the same numbers. `ulps`: from float64.
"""
import torch

from session import digest, hexadecimal, ulps_apart

SIZES = (2, 5, 8, 31, 32, 33, 64, 127, 128, 256, 512, 1000, 1024, 2048, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22)
F = torch.nn.functional


def one(y, exact):
    return {"d": hexadecimal(y.reshape(1)), "ulps": round(ulps_apart(y.reshape(1), exact.reshape(1)).item(), 3)}


def norm(x):
    p = torch.nn.Parameter(x.clone())
    p.grad = x.clone()
    return torch.nn.utils.clip_grad_norm_([p], 1e30)


def rows(x):
    """Of layer_norm of one row: mean, reciprocal deviation, a digest of the row."""
    y, mean, rstd = torch.native_layer_norm(x.reshape(1, -1), (x.numel(),), None, None, 1e-5)
    wide = x.cpu().double()
    return {"mean": one(mean, wide.mean()),
            "rstd": one(rstd, torch.rsqrt(wide.var(correction=0) + 1e-5)), "y": digest(y)}


def ask(s):
    for dtype in ("float32", "bfloat16", "float16"):
        for n in SIZES:
            x = s.draw(dtype, (n,), 2)
            if s.quick and n > 65536:
                break
            wide, facts = x.cpu().double(), {"n": n, "stream": 2}
            s.try_answer(f"sum {dtype} {n}", lambda: {**facts, **one(x.sum(), wide.sum())})
            s.try_answer(f"norm {dtype} {n}", lambda: {**facts, **one(norm(x), wide.norm())})
            if n <= 65536:
                s.try_answer(f"layer_norm {dtype} {n}", lambda: {**facts, **rows(x)})
                label = torch.tensor([n // 2], device=s.device)
                s.try_answer(f"cross_entropy {dtype} {n}", lambda: {
                    **facts, "label": n // 2,
                    **one(F.cross_entropy(x.reshape(1, -1), label), F.cross_entropy(wide.reshape(1, -1), label.cpu()))})
