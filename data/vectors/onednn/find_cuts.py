# SPDX-License-Identifier: Apache-2.0
"""Find how torch cuts the depth of products of bfloat16 matrices on a CPU with AMX: the words of torch-mm:amx.

    python3 find_cuts.py THREADS ROWS COLUMNS DEPTH      one shape
    python3 find_cuts.py THREADS random N[,DEPTH]        N shapes up to 300 x 300 x DEPTH (254)

It multiplies with torch and tries all lengths of parts and chunks, and both kinds of tiles, on a corner of the result, then on
all of it.  A line: call, threads, shape, then the words, or "unknown".
"""
import random
import sys

import numpy as np
import torch
from record_onednn import CALLS, FORMATS, operands, tensor


def tile(a, b):
    """A tile's products from +0: sums of even and of odd places, added. Products of bfloat16 are exact in float32."""
    sums = [np.zeros((a.shape[0], b.shape[1]), np.float32) for _ in range(2)]
    for k in range(a.shape[1]):
        sums[k % 2] = sums[k % 2] + a[:, k:k + 1] * b[k:k + 1]
    return sums[0] + sums[1]


def in_order(terms):
    total = terms[0]
    for x in terms[1:]:
        total = total + x
    return total


def chain(a, b, equal):
    n = a.shape[1]
    tiles = -(-n // 32)
    length = n // tiles if equal and n % (2 * tiles) == 0 else 32
    return in_order([np.zeros((a.shape[0], b.shape[1]), np.float32)] +
                    [tile(a[:, k:k + length], b[k:k + length]) for k in range(0, n, length)])


def product(a, b, part, chunk, equal, kept):
    depth, sums = a.shape[1], []
    for p in range(0, depth, part):
        ends = [(k, min(k + chunk, p + part, depth)) for k in range(p, min(p + part, depth), chunk)]
        for e in ends:
            if (*e, equal) not in kept:
                kept[(*e, equal)] = chain(a[:, e[0]:e[1]], b[e[0]:e[1]], equal)
        sums.append(in_order([kept[(*e, equal)] for e in ends]))
    return torch.from_numpy(in_order(sums)).bfloat16().view(torch.int16).numpy()


def search(a, b, want):
    a, b = ((x.astype(np.uint32) << 16).view(np.float32) for x in (a, b))
    depth, kept = a.shape[1], {}
    whole = -(-depth // 32) * 32
    for part in [whole, *range(whole - 32, 127, -32)]:
        for chunk in range(part, 127, -32):
            for equal in 0, 1:
                if (product(a[:6], b[:, :8], part, chunk, equal, kept) == want[:6, :8]).all() and (
                        product(a, b, part, chunk, equal, {}) == want).all():
                    return (f"part={part}:" if part < whole else "") + f"chunk={chunk if chunk < part else 0}" + (
                        ":tiles=equal" if equal else "")
    return "unknown"


def main(threads, *shape):
    dtype, fraction, low = FORMATS["bf16"]
    torch.set_num_threads(int(threads))
    if shape[0] == "random":
        count, deepest = (*map(int, shape[1].split(",")), 254)[:2]
        shapes = [(random.randint(5, 300), random.randint(5, 300), random.randint(200, deepest)) for _ in range(count)]
    else:
        shapes = [tuple(map(int, shape))]
    for m, n, k in shapes:
        a, b = operands(m, n, k, fraction, low)
        for call, multiply in list(CALLS.items())[:4]:
            got = multiply(tensor(a, dtype), tensor(b, dtype)).contiguous().view(torch.int16).numpy()
            print(call, threads, m, n, k, search(a, b, got), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
