# SPDX-License-Identifier: Apache-2.0
"""Matrix products in binary64 by torch.mm: in which order are the terms added?

Numbers with any sign, 52 random bits of significand (of stream S + 100) and an exponent from -6 to 3 (of stream S); a (M by
K) is of stream 50, b (K by N) of stream 51. 64 places of the result in full, a digest of all, the names of kernels.
"""
import torch

from products import kernels
from session import shift

SHAPES = ((64, 64, 4), (64, 64, 8), (64, 64, 16), (128, 128, 32), (128, 128, 256), (512, 512, 512), (1024, 1024, 2048))
LOW, HIGH = -6, 4


def draw(s, shape, stream):
    n = shape[0] * shape[1]
    w, bits = s.words(n, stream), s.words(n, stream + 100)
    exponent = 1023 + LOW + ((w >> 32 & 0xffff) * (HIGH - LOW) >> 16)
    return (shift(w, 63) << 63 | exponent << 52 | bits & (1 << 52) - 1).view(torch.float64).reshape(shape)


def multiply(s, shape):
    m, n, k = shape
    a, b = draw(s, (m, k), 50), draw(s, (k, n), 51)
    d = torch.mm(a, b)
    at = shift(s.words(64, 52), 1) % d.numel()
    at[0], at[1] = 0, d.numel() - 1
    codes = d.flatten()[at].view(torch.int64).tolist()
    facts = {"m": m, "n": n, "k": k, "streams": [50, 51], "places": [64, 52, m * n],
             "d": " ".join(f"{c & (1 << 64) - 1:016x}" for c in codes)}
    if s.device == "cuda":
        facts["kernels"] = kernels(lambda: torch.mm(a, b))
    return facts


def ask(s):
    for shape in SHAPES[:5] if s.quick else SHAPES:
        s.try_answer("binary64 " + "x".join(str(size) for size in shape), lambda: multiply(s, shape))
