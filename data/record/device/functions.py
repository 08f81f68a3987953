# SPDX-License-Identifier: Apache-2.0
"""Elementary functions: how far from the true value, in units of the last place, and which bits?

Sources: all codes of bfloat16 and float16; of float32 2^20, the code i 2^12 + (word i of stream 1) mod 2^12. The true
value is float64's on the host. A table: results at most 0.5 ulp away (correctly rounded), then up to 1, 2, 4, ... ulps;
"not finite": one of both is an infinity or a NaN and the other is not the same.
"""
import math

import torch

from session import digest, hexadecimal, of_bits, ulps_apart

EDGES = (0.5 + 1e-7, 1, 2, 4, 16, 256, 65536, math.inf)
F = torch.nn.functional
# name: the function, its true value
FUNCTIONS = {
    "exp": (torch.exp, torch.exp), "log": (torch.log, torch.log), "tanh": (torch.tanh, torch.tanh),
    "erf": (torch.erf, torch.erf), "sigmoid": (torch.sigmoid, torch.sigmoid), "rsqrt": (torch.rsqrt, torch.rsqrt),
    "gelu": (F.gelu, lambda x: torch.where(x == -math.inf, -0.0, 0.5 * x * torch.special.erfc(-x * math.sqrt(0.5)))),
    "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"),
                  lambda x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
}


def sources(s, name):
    if name != "float32":
        return of_bits(torch.arange(1 << 16, dtype=torch.int64, device=s.device), getattr(torch, name))
    index = torch.arange(1 << 20, dtype=torch.int64, device=s.device)
    return of_bits(index << 12 | s.words(1 << 20, 1) & 0xfff, torch.float32)


def table(x, y, exact):
    apart = ulps_apart(y, exact)
    finite = torch.isfinite(apart)
    counts, below = {}, 0
    for edge in EDGES:
        upto = int((apart[finite] <= edge).sum())
        counts["0.5" if edge < 1 else "more" if edge == math.inf else str(edge)] = upto - below
        below = upto
    counts["not finite"] = int((~finite).sum())
    order = torch.argsort(apart, descending=True, stable=True)[:4]
    worst = [[hexadecimal(x.cpu()[i:i + 1]), hexadecimal(y.cpu()[i:i + 1]),
              round(apart[i].item(), 3) if finite[i] else "not finite"] for i in order.tolist() if apart[i] > 0.5]
    return {"n": x.numel(), "digest": digest(y), "ulps": {k: v for k, v in counts.items() if v}, "worst": worst}


def ask(s):
    for dtype in ("bfloat16", "float16", "float32"):
        x = sources(s, dtype)
        for name, (function, true) in FUNCTIONS.items():
            s.try_answer(f"{name} {dtype}", lambda: table(x, function(x), true(x.cpu().double())))
