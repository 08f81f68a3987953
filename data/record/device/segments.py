# SPDX-License-Identifier: Apache-2.0
"""Products whose kernels may cut the depth of some tiles alone (segment-K, stream-K): which tiles, and where?

As `products`, a of stream 140, b of stream 141, places of stream 142. A kernel that says so in its name gets 4,096 places,
so that each tile of 128 by 128 has some thirty; others get 256. A device has 132 multiprocessors (H100, H200): numbers of tiles are
below and above.
"""
import torch

from products import KINDS, allow, laid_out
from results import MOST, told

# The first was cut so on an H200 (float16 sums, NT).
SHAPES = ((2048, 1024, 4096), (1024, 2048, 4096), (2048, 1024, 2048), (2048, 1024, 8192), (1024, 1024, 4096), (1024, 1024, 8192),
          (2048, 512, 4096), (4096, 512, 4096), (1536, 1024, 4096), (2176, 1024, 4096), (512, 512, 8192), (2048, 1024, 4160))
QUICK = ((32, 48, 64), (128, 64, 256))
GIVEN = ("float16 sums", "float16", "bfloat16 reduced")
STREAMS = (140, 141, 142)


def multiply(s, kind, layout, shape, places=64, streams=STREAMS, most=MOST):
    """"m": the rows that the digest has."""
    m, n, k = shape
    form, given = KINDS[kind]
    more = allow(given)
    a = laid_out(s.draw(form, (m, k), streams[0], -6, 4), layout[0] == "T")
    b = laid_out(s.draw(form, (k, n), streams[1], -6, 4), layout[1] == "T")
    rows = max(1, most // n)
    facts = told(s, lambda: torch.mm(a, b, **more), streams[2], places, most, lambda: a[:rows].double() @ b.double())
    return {"form": form, "m": facts["elements"] // n, "n": n, "k": k, "streams": list(streams[:2]), **facts}


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in ("float16",) if s.device == "cpu" else GIVEN:
            for layout in ("NN", "NT", "TN"):
                name = f"{kind} {layout} " + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: multiply(s, kind, layout, shape, 64 if s.quick else 256, most=4 * MOST))
