# SPDX-License-Identifier: Apache-2.0
"""Reductions: in which order are numbers added?

Numbers with exponents from -3 to 0 and any sign: sums and norms of streams 2, 102, ... 702, so that an order that fits all
eight is not so by chance; rows of stream 2. The reader tries orders of its own on the same numbers. `ulps`: from float64.
"""
import torch

from session import digest, hexadecimal, ulps_apart

SIZES = (2, 5, 8, 31, 32, 33, 64, 127, 128, 256, 512, 1000, 1024, 2048, 4096, 16384, 65536, 1 << 18, 1 << 20, 1 << 22)
STREAMS = [2 + 100 * i for i in range(8)]
F = torch.nn.functional


def one(y, exact):
    return {"d": hexadecimal(y.reshape(1)), "ulps": round(ulps_apart(y.reshape(1), exact.reshape(1)).item(), 3)}


def several(s, dtype, n, function, exact):
    draws = [s.draw(dtype, (n,), stream) for stream in STREAMS]
    y = torch.stack([function(x) for x in draws])
    true = torch.stack([exact(x.cpu().double()) for x in draws])
    return {"n": n, "streams": STREAMS, "d": hexadecimal(y), "ulps": round(ulps_apart(y, true).max().item(), 3)}


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
            wide, facts = x.cpu().double(), {"n": n, "streams": [2]}
            s.try_answer(f"sum {dtype} {n}", lambda: several(s, dtype, n, torch.sum, torch.sum))
            s.try_answer(f"norm {dtype} {n}", lambda: several(s, dtype, n, norm, torch.linalg.vector_norm))
            if n <= 65536:
                s.try_answer(f"layer_norm {dtype} {n}", lambda: {**facts, **rows(x)})
                label = torch.tensor([n // 2], device=s.device)
                s.try_answer(f"cross_entropy {dtype} {n}", lambda: {
                    **facts, "label": n // 2,
                    **one(F.cross_entropy(x.reshape(1, -1), label), F.cross_entropy(wide.reshape(1, -1), label.cpu()))})
