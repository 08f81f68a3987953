# SPDX-License-Identifier: Apache-2.0
"""mpsim's random bits in NumPy: Philox4x32-10 of (seed, stream, index), as lib/include/train/train.h says."""
import numpy as np


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., 2011) of arrays of four counter words."""
    c = [np.asarray(w, dtype=np.uint64) for w in counter]
    k0, k1 = key
    low = np.uint64(0xffffffff)
    for _ in range(10):
        p0 = c[0] * np.uint64(0xD2511F53)
        p1 = c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xffffffff, (k1 + 0xBB67AE85) & 0xffffffff
    return c


def stream(purpose):
    """FNV-1a, 64 bits, of a name."""
    h = 0xcbf29ce484222325
    for byte in purpose.encode():
        h = (h ^ byte) * 0x100000001b3 % 2 ** 64
    return h


def words(seed, purpose, first, n):
    """Words first to first + n - 1 of the stream of a purpose."""
    s = stream(purpose)
    blocks = np.arange(first // 4, (first + n + 3) // 4, dtype=np.uint64)
    zeros = np.zeros_like(blocks)
    out = philox([blocks & np.uint64(0xffffffff), blocks >> np.uint64(32),
                  zeros + np.uint64(s & 0xffffffff), zeros + np.uint64(s >> 32)],
                 (seed & 0xffffffff, seed >> 32))
    return np.stack(out, 1).reshape(-1)[first % 4:][:n].astype(np.int64)
