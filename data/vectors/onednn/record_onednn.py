# SPDX-License-Identifier: Apache-2.0
"""Record what torch gives for products of bfloat16 matrices on a CPU: digests, and the first results.

    pip install torch numpy
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python3 record_onednn.py >amd-zen5.txt

See README.md.  The operands are a formula, so that a test can make them again (tests/dot/t-onednn.c).
"""
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


def codes(w):
    """Numbers of bfloat16 from 2^-3 to 2^3, of both signs."""
    return ((w & np.uint64(0x807F)) | (np.uint64(124) + (w >> np.uint64(20)) % np.uint64(6)) << np.uint64(7)).astype(np.uint16)


def operands(m, n, k):
    """Products of the second half of K are the opposites of those of the first, at other places: what is left
    of a sum is its roundings, so that another order shows in nearly every result."""
    w = words(m << 40 | n << 20 | k, (m + n) * k)
    a, b = codes(w[:m * k]).reshape(m, k), codes(w[m * k:]).reshape(k, n)
    half, step = k // 2, 7
    while np.gcd(step, k) != 1:
        step += 2
    a[:, half:2 * half], b[half:2 * half] = a[:, :half], b[:half] ^ 0x8000
    place = np.arange(k) * step % k
    return np.ascontiguousarray(a[:, place]), np.ascontiguousarray(b[place])


def tensor(x):
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)


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
}
SHAPES = [(16, 16, 32), (17, 33, 65), (33, 17, 127), (8, 100, 511), (64, 64, 512), (20, 24, 513), (5, 40, 600), (31, 18, 1023),
          (32, 32, 1024), (24, 16, 1500), (16, 16, 2500), (3, 64, 4095)]
VECTORS = [(1, 300, 100), (1, 64, 1500), (200, 1, 31), (150, 1, 600), (90, 1, 2048)]


def main():
    print("mpsim-onednn/1")
    print(f"# torch {torch.__version__}; {[x for x in torch.__config__.show().splitlines() if 'MKL-DNN' in x][0].strip()}")
    print("# call, threads, rows, columns, depth, digest, the first results")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for m, n, k in SHAPES + VECTORS:
            a, b = operands(m, n, k)
            for name, call in CALLS.items():
                if (m, n, k) in VECTORS and name == "left-transposed":
                    continue
                c = call(tensor(a), tensor(b)).contiguous().view(torch.int16).numpy().view(np.uint16)
                first = " ".join(f"{x:04x}" for x in c.reshape(-1)[:6])
                print(f"{name} {threads} {m} {n} {k} {digest(c):016x} {first}")


if __name__ == "__main__":
    main()
