# SPDX-License-Identifier: Apache-2.0
"""Attention by scaled_dot_product_attention: how far from float64 is each of its implementations?

q, k, v are of streams 60, 61, 62: 2 heads of 64, exponents -3 to 0. Errors relative to the root of the mean square of the true
result: the largest, and the root of the mean square; 32 places of the result in full, of the first 128 rows of the first head, so
that a reader computes few rows.
"""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from session import digest

KINDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
         "efficient": SDPBackend.EFFICIENT_ATTENTION, "math": SDPBackend.MATH}
LENGTHS, QUICK, HEADS, WIDTH = (128, 1024, 4096), (64, 256), 2, 64


def truth(q, k, v, causal):
    q, k, v = (t.double() for t in (q, k, v))
    scores = q @ k.transpose(-1, -2) / WIDTH ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
    return torch.softmax(scores, -1) @ v


def look(s, kind, dtype, length, causal):
    q, k, v = (s.draw(dtype, (1, HEADS, length, WIDTH), 60 + i) for i in range(3))
    with sdpa_kernel(KINDS[kind]):
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    exact = truth(q, k, v, causal)
    size, apart = exact.square().mean().sqrt(), y.double() - exact
    return {"length": length, "width": WIDTH, "causal": causal, "streams": [60, 61, 62],
            "largest": float(f"{(apart.abs().max() / size).item():.4g}"),
            "rms": float(f"{(apart.square().mean().sqrt() / size).item():.4g}"),
            "size": float(f"{size.item():.6g}"), "digest": digest(y),
            **s.sample(y, 32, 63, min(length, 128) * WIDTH)}


def ask(s):
    for dtype in ("float16", "bfloat16"):
        for length in QUICK if s.quick else LENGTHS:
            for causal in (True, False):
                for kind in KINDS:
                    s.try_answer(f"{kind} {dtype} {length} {'causal' if causal else 'whole'}",
                                 lambda: look(s, kind, dtype, length, causal))
