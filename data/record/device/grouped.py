# SPDX-License-Identifier: Apache-2.0
"""Grouped products, as mixtures of experts have them: torch._grouped_mm, torch._scaled_grouped_mm.

Groups are ranges that end at `ends`. rows: a (M by K) in ranges of rows, b (groups by K by N); columns: a (groups by M by K),
b (K by N) in ranges of columns; depth: a (M by K), b (K by N) in ranges of the depth, a result for each; stack: groups
by M by K and groups by K by N. a of stream 161, b of stream 162 (exponents -6 to 3), places of stream 163. FP8 (e4m3): scales
binary32 of streams 164 and 165, exponents -1 to 1, of rows of a and columns of b, of each group where the depth is
in ranges.
"""
import torch

from products import KINDS, allow
from results import told

# M, N, K, the sizes of groups along what is in ranges; Qwen3-30B-A3B's experts are 768 by 2048. An empty group comes last: a
# kernel that faults ends the question.
SHAPES = ((1024, 1024, 768, (128, 384, 512)), (512, 256, 4096, (64, 192, 256)), (1024, 768, 2048, (256, 0, 16, 496, 256)))
QUICK = ((48, 32, 64, (16, 0, 32)),)
HOWS = ("rows", "columns", "depth", "stack")
GIVEN = ("bfloat16", "float16", "float32", "tf32")
FP8 = "float8_e4m3fn"
STREAMS = (161, 162, 163, 164, 165)


def column_major(b):
    return b.view(torch.uint8).transpose(-2, -1).contiguous().transpose(-2, -1).view(b.dtype) if b.element_size() == 1 \
        else b.transpose(-2, -1).contiguous().transpose(-2, -1)


def sized(how, m, n, k, sizes):
    """Shapes of a and b, and where the groups end along what is in ranges."""
    groups, total = len(sizes), sum(sizes)
    ends = [sum(sizes[:i + 1]) for i in range(groups)]
    return {"rows": ((total, k), (groups, k, n), ends), "columns": ((groups, m, k), (k, total), ends),
            "depth": ((m, total), (total, n), ends), "stack": ((groups, m // groups, k), (groups, k, n), None)}[how]


def scales_of(s, how, m, n, a, b, groups):
    x = {"rows": (a.shape[0],), "columns": (groups, m), "depth": (m * groups,), "stack": (groups, a.shape[-2])}[how]
    y = {"rows": (groups, n), "columns": (b.shape[-1],), "depth": (n * groups,), "stack": (groups, n)}[how]
    return s.draw("float32", x, STREAMS[3], -1, 2), s.draw("float32", y, STREAMS[4], -1, 2)


def exactly(how, a, b, ends, scales):
    """The result in binary64."""
    a, b = a.double(), b.double()
    x, y = (scale.double() for scale in scales) if scales else (torch.ones((), dtype=torch.float64, device=a.device),) * 2
    first = [0] + ends[:-1]
    if how == "rows":
        d = torch.cat([a[i:j] @ b[g] * (y[g] if scales else y) for g, (i, j) in enumerate(zip(first, ends))])
        return d * (x[:, None] if scales else x)
    if how == "columns":
        d = torch.cat([a[g] @ b[:, i:j] * (x[g][:, None] if scales else x) for g, (i, j) in enumerate(zip(first, ends))], 1)
        return d * y
    if how == "depth":
        d = torch.stack([a[:, i:j] @ b[i:j] for i, j in zip(first, ends)])
        return d * (x.view(len(ends), -1, 1) * y.view(len(ends), 1, -1) if scales else 1)
    return a @ b * (x[:, :, None] * y[:, None, :] if scales else 1)


def multiply(s, kind, how, shape, fast=False):
    m, n, k, sizes = shape
    form, given = (FP8, "") if kind == FP8 else KINDS[kind]
    allow(given)
    of_a, of_b, ends = sized(how, m, n, k, sizes)
    a, b = s.draw(form, of_a, STREAMS[0], -6, 4), column_major(s.draw(form, of_b, STREAMS[1], -6, 4))
    scales = scales_of(s, how, m, n, a, b, len(sizes)) if kind == FP8 else None
    offsets = None if ends is None else torch.tensor(ends, dtype=torch.int32, device=s.device)
    if kind == FP8:
        def call():
            return torch._scaled_grouped_mm(a, b, *scales, offs=offsets, out_dtype=torch.bfloat16, use_fast_accum=fast)
    else:
        grouped = torch._grouped_mm if kind == "bfloat16" else torch.nn.functional.grouped_mm

        def call():
            return grouped(a, b, offs=offsets)

    return {"form": form, "how": how, "groups": len(sizes), "a": list(of_a), "b": list(of_b), "ends": ends or [],
            "fast": fast, "streams": [STREAMS[i] for i in (0, 1, 3, 4)], **told(s, call, STREAMS[2], exact=lambda: exactly(how, a, b, ends or [], scales))}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in ("bfloat16", "float32", FP8) if s.device == "cpu" else GIVEN + (FP8,):
            for how in HOWS:
                for fast in (False, True) if kind == FP8 else (False,):
                    name = f"{kind} {how}{' fast' if fast else ''} " + "x".join(str(size) for size in shape[:3]) \
                           + " in " + "+".join(str(size) for size in shape[3])
                    s.try_answer(name, lambda: multiply(s, kind, how, shape, fast))
