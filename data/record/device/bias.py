# SPDX-License-Identifier: Apache-2.0
"""A bias or a matrix added to a product: before or after the sum is rounded, or as the number where the sum begins?

a of stream 146, b of stream 147 (exponents -6 to 3), what is added of stream 148 (exponents 0 to 9, as the sums), places of
stream 149. linear: torch.nn.functional.linear; row, matrix: torch.addmm with a vector, with a matrix; relu:
torch._addmm_activation; scaled: torch.addmm with beta 0.3 and alpha 0.7.
"""
import torch

from products import KINDS, allow, laid_out
from results import told

SHAPES = ((128, 128, 64), (256, 256, 1024), (1024, 896, 896), (1024, 1024, 4096), (128, 128, 8192), (16, 4096, 4096))
QUICK = ((16, 32, 64), (32, 64, 256))
GIVEN = ("bfloat16", "float16", "float16 reduced", "bfloat16 reduced", "float16 sums", "tf32", "float32", "float16 wide")
STREAMS = (146, 147, 148, 149)


def linear(a, b, c, more):
    return torch.nn.functional.linear(a, b.t(), c)


def addmm(a, b, c, more):
    return torch.addmm(c, a, b, **more)


def relu(a, b, c, more):
    return torch._addmm_activation(c, a, b)


def scaled(a, b, c, more):
    return torch.addmm(c, a, b, beta=0.3, alpha=0.7, **more)


# the layout; whether a vector is added; what is called
HOWS = {"linear": ("NT", True, linear), "row": ("NN", True, addmm), "relu": ("NN", True, relu),
        "matrix": ("NN", False, addmm), "scaled": ("NN", False, scaled)}


def multiply(s, kind, how, shape):
    m, n, k = shape
    form, given = KINDS[kind]
    layout, vector, function = HOWS[how]
    more = allow(given)
    a = s.draw(form, (m, k), STREAMS[0], -6, 4)
    b = laid_out(s.draw(form, (k, n), STREAMS[1], -6, 4), layout[1] == "T")
    c = s.draw("float32" if given == "wide" else form, (n,) if vector else (m, n), STREAMS[2], 0, 10)
    return {"form": form, "how": how, "m": m, "n": n, "k": k, "streams": list(STREAMS[:3]),
            **told(s, lambda: function(a, b, c, more), STREAMS[3],
                   exact=lambda: function(a.double(), b.double(), c.double(), {}))}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in ("bfloat16", "float32") if s.device == "cpu" else GIVEN:
            for how in HOWS:
                if kind == "float16 wide" and how in ("linear", "relu"):
                    continue                     # these have no out_dtype
                name = f"{kind} {how} " + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: multiply(s, kind, how, shape))
