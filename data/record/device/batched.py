# SPDX-License-Identifier: Apache-2.0
"""Stacks of products: torch.bmm and torch.baddbmm, operands transposed, between other heads, or one for all.

a (batch by M by K) of stream 150, b (batch by K by N) of stream 151, what baddbmm adds of stream 152 (exponents 0 to 5), places of
stream 153. heads: the memory is M (or K) by batch by the rest, as attention has heads; shared: b has one matrix, the first
of the stream, for the whole batch; added: torch.baddbmm.
"""
import torch

from products import KINDS, allow, laid_out
from results import told

# Scores and outputs of attention, of decoding, and others.
SHAPES = ((16, 256, 256, 64), (16, 256, 64, 256), (64, 1, 512, 128), (64, 16, 128, 512), (4, 512, 512, 1024), (2, 128, 128, 8192))
QUICK = ((3, 16, 16, 32), (2, 32, 16, 64))
GIVEN = ("bfloat16", "float16", "float16 wide", "float16 sums", "tf32", "float32")
HOWS = ("NN", "NT", "TN", "heads", "shared", "added")
STREAMS = (150, 151, 152, 153)


def turned(x):
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def between_heads(x):
    return x.transpose(0, 1).contiguous().transpose(0, 1)


def operands(s, form, how, shape):
    batch, m, n, k = shape
    a = s.draw(form, (batch, m, k), STREAMS[0], -6, 4)
    b = s.draw(form, (1 if how == "shared" else batch, k, n), STREAMS[1], -6, 4)
    if how == "heads":
        return between_heads(a), between_heads(b)
    if how == "shared":
        return a, b.expand(batch, k, n)
    return turned(a) if how[0] == "T" else a, turned(b) if how == "NT" else b


def multiply(s, kind, how, shape):
    batch, m, n, k = shape
    form, given = KINDS[kind]
    more = allow(given)
    a, b = operands(s, form, how, shape)
    c = s.draw("float32" if given == "wide" else form, (batch, m, n), STREAMS[2], 0, 6) if how == "added" else None

    def call():
        return torch.bmm(a, b, **more) if c is None else torch.baddbmm(c, a, b, **more)

    def exact():
        return a.double() @ b.double() + (0 if c is None else c.double())

    return {"form": form, "how": how, "batch": batch, "m": m, "n": n, "k": k, "streams": list(STREAMS[:3]),
            **told(s, call, STREAMS[3], exact=exact)}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in ("bfloat16", "float32") if s.device == "cpu" else GIVEN:
            for how in HOWS:
                name = f"{kind} {how} " + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: multiply(s, kind, how, shape))
