# SPDX-License-Identifier: Apache-2.0
"""Products of int8 by torch._int_mm: exact, and beyond int32?

a (M by K) is the top byte of the words of stream 158, b (K by N) of stream 159, places of stream 160. least: all numbers
are -128, so that sums of more than 131,071 products do not fit int32.
"""
import torch

from products import laid_out
from results import told
from session import shift

SHAPES = ((32, 64, 64), (128, 128, 256), (256, 512, 1024), (1024, 1024, 896), (1024, 1024, 4096), (17, 4096, 4096))
QUICK = ((32, 16, 64), (32, 16, 256))
BEYOND = (32, 16, 131136)
STREAMS = (158, 159, 160)


def drawn(s, shape, stream, least):
    n = shape[0] * shape[1]
    if least:
        return torch.full(shape, -128, dtype=torch.int8, device=s.device)
    byte = shift(s.words(n, stream), 56)
    return torch.where(byte > 127, byte - 256, byte).to(torch.int8).reshape(shape)


def multiply(s, layout, shape, least=False):
    m, n, k = shape
    a = laid_out(drawn(s, (m, k), STREAMS[0], least), layout[0] == "T")
    b = laid_out(drawn(s, (k, n), STREAMS[1], least), layout[1] == "T")
    return {"m": m, "n": n, "k": k, "least": least, "streams": list(STREAMS[:2]),
            **told(s, lambda: torch._int_mm(a, b), STREAMS[2])}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for layout in ("NN", "NT", "TN"):
            s.try_answer(f"{layout} " + "x".join(str(size) for size in shape), lambda: multiply(s, layout, shape))
    s.try_answer("NT least " + "x".join(str(size) for size in BEYOND), lambda: multiply(s, "NT", BEYOND, True))
