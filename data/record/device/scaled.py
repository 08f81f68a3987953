# SPDX-License-Identifier: Apache-2.0
"""FP8 products by torch._scaled_mm: how many bits do sums keep, when are they promoted, how are scales applied?

a (M by K) is of stream 50, b (K by N, its memory transposed) of stream 51, exponents -6 to 5; scales binary32 of
streams 52 and 53, exponents -1 to 1: a number, a row each of a and a column each of b, or blocks: 1 by 128 of a, and 128
by 1 or 128 by 128 of b.
"""
import torch

from products import kernels
from session import digest

SHAPES = ((128, 128, 32), (128, 128, 64), (128, 128, 128), (128, 128, 256), (256, 256, 1024), (512, 512, 4096),
          (1024, 1024, 2048))
QUICK = ((16, 16, 32), (128, 128, 256))
FORMS = (("float8_e4m3fn", "float8_e4m3fn"), ("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "float8_e4m3fn"))
SCALES = ("one", "tensor", "rows", "1x128 by 1x128", "1x128 by 128x128")


def scales_of(s, kind, m, n, k):
    """As _scaled_mm takes them: of a outer-dimension-major for blocks."""
    if kind == "one":
        one = torch.ones((), device=s.device)
        return one, one
    sizes = {"tensor": ((), ()), "rows": ((m, 1), (1, n)), "1x128 by 1x128": ((m, k // 128), (k // 128, n)),
             "1x128 by 128x128": ((m, k // 128), (k // 128, n // 128))}[kind]
    x, y = (s.draw("float32", size, 52 + i, -1, 2) for i, size in enumerate(sizes))
    if "x" in kind:                              # neighbours in memory are rows of a; columns of b, or its blocks of depth
        x, y = x.t().contiguous().t(), y.t().contiguous().t() if kind.endswith("128x128") else y
    return x, y


def in_fours(y, claimed):
    """Scales of blocks of 128 by 128 (depth by columns) as cuBLAS reads them: a column of them has whole fours in memory. Some
    versions of PyTorch want to see these strides, others (`claimed`) those of a tensor without gaps, and read the same memory."""
    blocks, columns = y.shape
    memory = torch.zeros((columns, (blocks + 3) // 4 * 4), device=y.device)
    memory[:, :blocks] = y.t()
    return memory.as_strided((blocks, columns), (1, blocks)) if claimed else memory[:, :blocks].t()


def with_strides(multiply_by, y):
    """y in the first form that this PyTorch takes."""
    for claimed in (False, True):
        try:
            multiply_by(in_fours(y, claimed))
            return in_fours(y, claimed)
        except (RuntimeError, ValueError):
            if claimed:
                raise


def multiply(s, forms, kind, fast, out, shape):
    m, n, k = shape
    a = s.draw(forms[0], (m, k), 50, -6, 6)
    b = s.draw(forms[1], (k, n), 51, -6, 6).view(torch.uint8).t().contiguous().t().view(getattr(torch, forms[1]))
    x, y = scales_of(s, kind, m, n, k)

    def by(y):
        return torch._scaled_mm(a, b, scale_a=x, scale_b=y, out_dtype=out, use_fast_accum=fast)

    if kind.endswith("128x128") and y.shape[0] % 4:
        y = with_strides(by, y)

    def call():
        return by(y)

    d = call()
    facts = {"forms": list(forms), "scales": kind, "fast": fast, "m": m, "n": n, "k": k, "streams": [50, 51, 52, 53],
             **s.sample(d, 32, 54), "digest": digest(d)}
    if s.device == "cuda" and forms == FORMS[0]:  # a profile takes longer than the product
        facts["kernels"] = kernels(call)
    return facts


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for forms in FORMS:
            for kind in SCALES:
                if "128" in kind and shape[2] % 128:
                    continue
                for fast in (False, True):
                    for out in (torch.float32, torch.bfloat16):
                        name = f"{forms[0][7:]} {forms[1][7:]} {kind} {'fast' if fast else 'slow'} " \
                               f"{str(out)[6:]} " + "x".join(str(size) for size in shape)
                        s.try_answer(name, lambda: multiply(s, forms, kind, fast, out, shape))
