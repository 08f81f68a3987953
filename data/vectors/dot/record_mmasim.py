# SPDX-License-Identifier: Apache-2.0
"""Record what MMA-Sim gives where a sum of one sign comes to zero.

    pip install torch==2.15.0 numpy==2.4.6 && pip install --no-deps mmasim==2.1.1
    python3 record_mmasim.py .

See README.md.  One npz an architecture, in the layout of recorded outputs: TYPE.a and TYPE.b [n, 2],
TYPE.c [n], TYPE.d_fp32 and TYPE.d_fp16 [n], one addition each.
"""
import os
import sys

import numpy as np
import torch
from mmasim.nv_ptx import MMA, WGMMA, TCGen05MMA

CASES, SEED = 10000, 20261122
TYPES = {  # dtype, name in PTX, explicit significand bits, smallest exponents of normal numbers and of all, largest
    "fp16": (torch.float16, "f16", 10, -14, -24, 15),
    "bf16": (torch.bfloat16, "bf16", 7, -126, -133, 127),
    "tf32": (torch.float32, "tf32", 10, -126, -136, 127),
    "e4m3": (torch.float8_e4m3fn, "e4m3", 3, -6, -9, 7),
    "e5m2": (torch.float8_e5m2, "e5m2", 2, -14, -16, 15),
}


def mma(arch):
    def make(t, d):
        k = {"fp16": {"Volta": 4, "Turing": 8}.get(arch, 16), "bf16": 16, "tf32": 8}.get(t, 32)
        x = TYPES[t][1]
        return MMA(arch, f"m{8 if arch == 'Volta' else 16}n8k{k}.{d}.{x}.{x}.{d}")
    return make


def wgmma(t, d):
    x = TYPES[t][1]
    return WGMMA("Hopper", f"m64n8k{ {'tf32': 8, 'fp16': 16, 'bf16': 16}.get(t, 32)}.{d}.{x}.{x}")


def tcgen05(t, d):
    kind = {"tf32": "tf32", "fp16": "f16", "bf16": "f16"}.get(t, "f8f6f4")
    x = TYPES[t][1]
    return TCGen05MMA("Blackwell", f"m64n8k{ {'tf32': 8, 'f16': 16}.get(kind, 32)}.kind::{kind}.{d}.{x}.{x}")


FP16, HALF, FP8 = ("fp16",), ("fp16", "bf16", "tf32"), ("e4m3", "e5m2")
FILES = {"volta": (mma("Volta"), FP16), "turing": (mma("Turing"), FP16), "ampere": (mma("Ampere"), HALF),
         "ada": (mma("Ada Lovelace"), HALF + FP8), "hopper": (wgmma, HALF + FP8),
         "blackwell": (tcgen05, HALF + FP8), "rtx-blackwell": (mma("RTX Blackwell"), HALF + FP8)}


def number(rng, t, low, high, n):
    """n positive numbers of t with exponents low to high; at most four significant bits."""
    _, _, bits, _, last, _ = TYPES[t]
    e = rng.integers(low, high + 1, n)
    s = rng.integers(8, 16, n) / 8
    keep = np.minimum(np.minimum(bits, 3), e - last)
    return np.ldexp(np.floor(s * 2.0 ** keep) / 2.0 ** keep, e)


def tiny(rng, t, low, high, n):
    """-a b of a magnitude from 2^low to below 2^(high + 1), alone or beside a smaller one."""
    _, _, _, _, last, top = TYPES[t]
    a, b = np.zeros((n, 2)), np.zeros((n, 2))
    for k in range(2):
        total = rng.integers(low, high + 1 - 2, n)
        ea = rng.integers(np.maximum(last, total - top), np.minimum(top, total - last) + 1)
        for i in range(n):
            a[i, k] = number(rng, t, ea[i], ea[i], 1)[0]
            b[i, k] = -number(rng, t, total[i] - ea[i], total[i] - ea[i], 1)[0]
    a[rng.random(n) < 0.5, 1] = 0
    return a, b, np.where(rng.random(n) < 0.5, 0.0, -0.0)


def cancelled(rng, t, n):
    """x - x - y: y is 14 to 34 powers of two smaller, so that it is cut away, or is what is left."""
    _, _, _, _, last, top = TYPES[t]
    a, b = np.zeros((n, 2)), np.zeros((n, 2))
    half = min(top // 2 - 1, 7)
    a[:, 0], b[:, 0] = number(rng, t, 0, half, n), -number(rng, t, 0, half, n)
    e = rng.integers(-34, -13, n)
    e = np.maximum(e, 2 * last)
    for i in range(n):
        ea = rng.integers(max(last, e[i] - top), min(top, e[i] - last) + 1)
        a[i, 1], b[i, 1] = number(rng, t, ea, ea, 1)[0], -number(rng, t, e[i] - ea, e[i] - ea, 1)[0]
    return a, b, -a[:, 0] * b[:, 0]


def addend(rng, t, n):
    """c alone, below the numbers of e8m13, or a zero product beside it."""
    a, b = np.zeros((n, 2)), np.zeros((n, 2))
    a[:, 0] = np.where(rng.random(n) < 0.5, number(rng, t, 0, 3, n), 0)
    return a, b, -np.ldexp(rng.integers(1, 1 << 10, n).astype(float), -149)


def cases(rng, t):
    n = CASES
    if t in ("bf16", "tf32"):
        parts = [tiny(rng, t, -180, -149, n - n // 4), cancelled(rng, t, n // 4)]
    elif t == "fp16":
        parts = [cancelled(rng, t, n), tiny(rng, t, -48, -24, n)]
    elif t == "e5m2":
        parts = [cancelled(rng, t, n // 2), addend(rng, t, n // 2), tiny(rng, t, -32, -24, n)]
    else:
        parts = [cancelled(rng, t, n), addend(rng, t, n // 2)]
    a, b, c = (np.concatenate([p[i] for p in parts]) for i in range(3))
    b = np.where((rng.random(len(c)) < 0.05)[:, None], -b, b)  # controls, of the other sign
    return a, b, c


def main(directory):
    for number_, (name, (make, types)) in enumerate(FILES.items()):
        arrays = {}
        for t in types:
            rng = np.random.default_rng([SEED, number_, sorted(TYPES).index(t)])
            a, b, c = cases(rng, t)
            ta, tb, tc = (torch.from_numpy(x).to(torch.float32) for x in (a, b, c))
            for x, y in ((a, ta), (b, tb)):
                assert (y.to(TYPES[t][0]).to(torch.float64).numpy() == x).all(), t
            for d, dtype in (("fp32", torch.float32), ("fp16", torch.float16)):
                if d == "fp16" and t in ("bf16", "tf32"):
                    continue
                out = make(t, d.replace("fp", "f")).dpa(ta.to(TYPES[t][0]), tb.to(TYPES[t][0]), tc.to(dtype))
                out = out.float().numpy()
                arrays[f"{t}.d_{d}"] = out
                zero = out == 0
                print(f"{name:14s} {t} {d}: {len(out)} cases, {zero.sum()} zero, {np.signbit(out[zero]).sum()} of them -0")
            half = {"fp16": np.float16, "e4m3": np.float16, "e5m2": np.float16}.get(t, np.float32)
            arrays[f"{t}.a"], arrays[f"{t}.b"] = ta.numpy().astype(half), tb.numpy().astype(half)
            arrays[f"{t}.c"] = tc.numpy()
        np.savez_compressed(os.path.join(directory, name + ".npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
