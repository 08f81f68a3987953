# SPDX-License-Identifier: Apache-2.0
"""Record what torch gives for products of bfloat16 or float16 matrices on a CPU: digests, and the first results.

    pip install torch numpy
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python3 record_onednn.py bf16 >amd-zen5.txt
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX python3 record_onednn.py bf16 >intel-amx.txt
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX python3 record_onednn.py bf16 cut >intel-amx-cut.txt
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX python3 record_onednn.py bf16 rule >intel-amx-rule.txt
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 python3 record_onednn.py fp16 >intel-fp16.txt

See README.md.  The operands are a formula, so that a test can make them again (tests/dot/t-onednn.c).

Products with AVX512

oneDNN cuts the depth into chunks, sums each from zero with vdpbf16ps (second product of a pair first, an odd one beside a zero), adds the chunks in binary32
and rounds once. Rows, columns and threads do not matter. The lengths are those of compute_blocking_heuristic_avx512 (brgemm_matmul_utils.cpp).
fp16: fma instead of avx512-bf16-fp32.

| product | model |
| depth up to 512 | avx512-bf16-fp32:result=bf16 |
| up to 1024, and beyond with a transposed left operand | avx512-bf16-fp32:chunk=512:result=bf16 |
| beyond 1024 | avx512-bf16-fp32:chunk=1024:result=bf16 |
| one row, the matrix in rows of the depth (a @ b, bmm) | fma:result=bf16 |
| one column; one row by linear | 16 sums of pairs 32 products apart (fp16: of products 16 apart); then halves (i and i + 8, i and i + 4), then neighbours: avx512-bf16-fp32:order=lanes:L=16 on reordered operands (put_in_lanes of the test) |

With a transposed left operand, more threads than blocks of 64 columns and a depth from 2048 (bf16: a power of two), up to 4 threads share the depth:
torch-mm:avx512:threads=N:left-transposed.
"""
import random
import sys

import numpy as np
import torch

GOLDEN = 0x9E3779B97F4A7C15


def words(seed, n):
    """SplitMix64, n words."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.uint64(GOLDEN) * np.arange(1, n + 1, dtype=np.uint64)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)


FORMATS = {"bf16": (torch.bfloat16, 7, 124), "fp16": (torch.float16, 10, 12)}   # fraction bits, exponent field of 2^-3


def codes(w, fraction, low):
    """Numbers from 2^-3 to 2^3, of both signs."""
    kept = np.uint64(0x8000 | (1 << fraction) - 1)
    return ((w & kept) | (np.uint64(low) + (w >> np.uint64(20)) % np.uint64(6)) << np.uint64(fraction)).astype(np.uint16)


def operands(m, n, k, fraction, low):
    """Products of the second half of K are the opposites of those of the first, at other places: what is left
    of a sum is its roundings, so that another order shows in nearly every result."""
    w = words(m << 40 | n << 20 | k, (m + n) * k)
    a, b = codes(w[:m * k], fraction, low).reshape(m, k), codes(w[m * k:], fraction, low).reshape(k, n)
    half, step = k // 2, 7
    while np.gcd(step, k) != 1:
        step += 2
    a[:, half:2 * half], b[half:2 * half] = a[:, :half], b[:half] ^ 0x8000
    place = np.arange(k) * step % k
    return np.ascontiguousarray(a[:, place]), np.ascontiguousarray(b[place])


def tensor(x, dtype):
    return torch.from_numpy(x.view(np.int16)).view(dtype)


def digest(c):
    """FNV-1a over the codes, row by row."""
    h = 0xCBF29CE484222325
    for x in c.reshape(-1).tolist():
        h = ((h ^ x) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


CALLS = {  # layout of the operands as the library sees them
    "mm": lambda a, b: a @ b,
    "linear": lambda a, b: torch.nn.functional.linear(a, b.t().contiguous()),
    "left-transposed": lambda a, b: a.t().contiguous().t() @ b,
    "bmm": lambda a, b: torch.bmm(a[None], b[None])[0],
    "both-transposed": lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(),  # of `rule` alone
}
SHAPES = [(16, 16, 32), (17, 33, 65), (33, 17, 127), (8, 100, 511), (64, 64, 512), (20, 24, 513), (5, 40, 600), (31, 18, 1023),
          (32, 32, 1024), (24, 16, 1500), (16, 16, 2500), (3, 64, 4095)]
VECTORS = [(1, 300, 100), (1, 64, 1500), (200, 1, 31), (150, 1, 600), (90, 1, 2048)]
CUT = [(48, 64, 500), (65, 96, 508), (64, 65, 760), (64, 130, 1000), (33, 64, 1270), (24, 16, 1500), (48, 64, 2010),
       (64, 96, 2010), (16, 16, 2500), (200, 8, 3000), (33, 64, 3000), (31, 130, 4000),  # where AMX sums cut the depth
       (24, 86, 60), (45, 21, 180), (18, 178, 240), (52, 38, 140), (33, 64, 744)]  # or may have tiles of fewer than 32 products


def of_rule():
    """Random shapes of 4097 to 2^23 multiply-adds; most are cut."""
    pick = random.Random(1)
    while True:
        m, n = (pick.randint(*pick.choice([(2, 32), (33, 80), (33, 80), (33, 200)])) for _ in range(2))
        k = pick.choice([pick.randint(3, 4000), *(2 * pick.randint(200, 2000) for _ in range(5)), 32 * pick.randint(13, 125)])
        if 4096 < m * n * k <= 1 << 23 and k % 256:  # halves of a power of two would cancel each other
            yield (m, n, k), pick.choice(list(CALLS))


def products(which):
    """Threads, shape, call."""
    if which == "rule":
        drawn = of_rule()
        for threads in 1, 2, 3, 4, 8, 16, 32:
            yield from ((threads, *next(drawn)) for _ in range(40))
        return
    shapes, all_threads = (CUT, (1, 2, 4)) if which == "cut" else (SHAPES + VECTORS, (1, 2))
    for threads in all_threads:
        for shape in shapes:
            for call in list(CALLS)[:4]:
                if shape not in VECTORS or call != "left-transposed":
                    yield threads, shape, call


def main(name="bf16", which=""):
    dtype, fraction, low = FORMATS[name]
    print("mpsim-onednn/1")
    print(f"# torch {torch.__version__}; {[x for x in torch.__config__.show().splitlines() if 'MKL-DNN' in x][0].strip()}")
    print("# call, threads, rows, columns, depth, digest, the first results")
    for threads, (m, n, k), call in products(which):
        torch.set_num_threads(threads)
        a, b = (tensor(x, dtype) for x in operands(m, n, k, fraction, low))
        c = CALLS[call](a, b).contiguous().view(torch.int16).numpy().view(np.uint16)
        first = " ".join(f"{x:04x}" for x in c.reshape(-1)[:6])
        print(f"{call} {threads} {m} {n} {k} {digest(c):016x} {first}")


if __name__ == "__main__":
    main(*sys.argv[1:])
