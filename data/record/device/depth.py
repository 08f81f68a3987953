# SPDX-License-Identifier: Apache-2.0
"""The depth of a matrix product: which of its terms are added to which first?

All products are 2^30 in one place of the depth, another place in each row of a, and 2^6 elsewhere (2^13 and 2^2 where sums
are fp16): half a unit in the last place of the large one, so that what is added to it alone is lost, and what was summed
before, in the same part of the depth or in another, is not. Row r of a has its large number at place r K / rows. `sums`:
what each row's result is above the large product, in small ones; `same`: whether all columns agree. Only kernels that
divide the depth, and those of older tensor cores, are asked; products.py says how kinds, layouts and shapes are meant.
"""
import torch

from products import KINDS, SHAPES, kernels, laid_out
from session import digest

ASKED = ("float16 wide", "float16 sums", "bfloat16 wide", "tf32", "float32")
ROWS = 64


def operands(s, kind, layout, shape):
    m, n, k = shape
    form, given = KINDS[kind]
    dtype = getattr(torch, {"tf32": "float32"}.get(form, form))
    b, small, large = (2.0 ** 7, 2.0 ** -5, 2.0 ** 6) if given == "sums" else (2.0 ** 15, 2.0 ** -9, 2.0 ** 15)
    rows = min(ROWS, k, m)
    x = torch.full((m, k), small, dtype=dtype, device=s.device)
    at = torch.arange(rows, device=s.device)
    x[at, at * k // rows] = large
    y = torch.full((k, n), b, dtype=dtype, device=s.device)
    return laid_out(x, layout[0] == "T"), laid_out(y, layout[1] == "T"), rows, large * b, small * b


def look(s, kind, layout, shape):
    allow = torch.backends.cuda.matmul
    given = KINDS[kind][1]
    allow.allow_tf32 = given == "tf32"
    allow.allow_fp16_reduced_precision_reduction = allow.allow_bf16_reduced_precision_reduction = False
    if given == "sums" or hasattr(allow, "allow_fp16_accumulation"):
        allow.allow_fp16_accumulation = given == "sums"
    a, b, rows, large, small = operands(s, kind, layout, shape)
    more = {"out_dtype": torch.float32} if given == "wide" else {}
    names = kernels(lambda: torch.mm(a, b, **more)) if s.device == "cuda" else []
    facts = {"m": shape[0], "n": shape[1], "k": shape[2], "kernels": names}
    if s.device == "cuda" and not any(word in name for name in names for word in ("plit", "tensorop", "not known")):
        return {**facts, "divided": False}
    d = torch.mm(a, b, **more)
    sums = (d[:rows, 0].double() - large) / small
    return {**facts, "rows": rows, "sums": [int(x) if x == int(x) else x for x in sums.tolist()],
            "same": bool((d == d[:, :1]).all()), "digest": digest(d)}


def ask(s):
    for shape in SHAPES[:4] if s.quick else SHAPES:
        for kind in ASKED:
            if s.device == "cpu" and KINDS[kind][1]:
                continue
            for layout in ("NN", "NT", "TN"):
                name = f"{kind} {layout} " + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: look(s, kind, layout, shape))
