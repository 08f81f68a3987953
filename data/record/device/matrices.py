# SPDX-License-Identifier: Apache-2.0
"""Sums of the rows and of the columns of matrices, as gradients of biases are: in which order are numbers added?

Numbers of stream 90 with exponents from -3 to 0 and any sign, row-major. Results: a digest of all, 16 places in full.
"""
import torch

from session import digest

SHAPES = ((3, 5), (5, 3), (64, 64), (128, 1000), (1000, 128), (100, 33), (4096, 12), (8192, 768), (768, 8192), (65536, 32),
          (20, 50257), (1 << 20, 3))
QUICK = SHAPES[:6]


def look(s, dtype, shape, axis, function):
    y = function(s.draw(dtype, shape, 90), axis)
    return {"rows": shape[0], "columns": shape[1], "axis": axis, "n": y.numel(), "digest": digest(y), **s.sample(y, 16, 91)}


def ask(s):
    for dtype in ("float32", "bfloat16", "float16"):
        for shape in QUICK if s.quick else SHAPES:
            for axis in (0, 1):
                for name, function in (("sum", torch.sum), ("mean", torch.mean)):
                    s.try_answer(f"{name} {dtype} {shape[0]}x{shape[1]} over {'rows' if axis == 0 else 'columns'}",
                                 lambda: look(s, dtype, shape, axis, function))
