# SPDX-License-Identifier: Apache-2.0
"""Compare torch's products of matrices on this CPU with mpsim_torch_mm_run and its rule, in every bit.

    make lib/libmpsim.la
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX python3 compare_onednn.py bf16 amx 400 [SEED [THREADS [LIBRARY]]]
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 python3 compare_onednn.py bf16 avx512 100
    ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 python3 compare_onednn.py fp16 avx512 100

So many random shapes for each number of threads (1,2,3,4,8,16,32). A line for each number of threads, and for each product that differs.
"""
import ctypes
import pathlib
import random
import sys

import numpy as np
import torch
from record_onednn import CALLS, FORMATS, operands, tensor

WORDS = {"mm": "", "bmm": "", "linear": ":right-transposed", "left-transposed": ":left-transposed",
         "both-transposed": ":left-transposed:right-transposed"}


class Matrix(ctypes.Structure):
    _fields_ = [("format", ctypes.c_void_p), ("codes", ctypes.c_void_p), ("stride", ctypes.c_size_t), ("transposed", ctypes.c_int)]


def library(path):
    lib = ctypes.CDLL(str(path))
    lib.mpsim_format_find.restype = ctypes.c_void_p
    size = [ctypes.c_size_t] * 3
    lib.mpsim_torch_mm_run.argtypes = [ctypes.c_void_p, *size] + [ctypes.c_void_p] * 4
    return lib


def simulated(lib, name, fmt, a, b):
    """Codes as torch should give them."""
    product, d = ctypes.create_string_buffer(1024), torch.empty(a.shape[0], b.shape[1], dtype=torch.int16)
    f = lib.mpsim_format_find(fmt.encode())
    ma, mb = (Matrix(f, x.ctypes.data, x.shape[1], 0) for x in (a, b))
    if lib.mpsim_torch_mm_parse(product, name.encode()):
        raise ValueError(name)
    status = lib.mpsim_torch_mm_run(product, a.shape[0], *b.shape[::-1], ctypes.addressof(ma), ctypes.addressof(mb), d.data_ptr(), None)
    if status:
        raise ValueError(f"{name} {a.shape} {b.shape}: status {status}")
    return d


def shape(pick, deepest):
    large = pick.random() < 0.15
    m, n = (pick.randint(2, pick.choice([40, 100, 300] + [1200] * large)) for _ in range(2))
    k = pick.randint(3, pick.choice([100, 1000, 2000, 4000] + [deepest] * large))
    if pick.random() < 0.3:
        k = pick.choice([256, 512, 1024, 2048, 4096])
    if pick.random() < 0.2:
        m, n = pick.choice([32, 64, 128, 256]), pick.choice([64, 128, 256, 512])
    return m, n, k


def main(fmt, by, count, seed="1", threads="1,2,3,4,8,16,32", path=None):
    here = pathlib.Path(__file__).resolve().parents[3] / "lib/.libs/libmpsim.so"
    lib, pick, all_wrong = library(path or here), random.Random(int(seed)), 0
    dtype, fraction, low = FORMATS[fmt]
    for n_threads in map(int, threads.split(",")):
        torch.set_num_threads(n_threads)
        done = wrong = 0
        while done < int(count):
            m, n, k = shape(pick, 9000)
            call = pick.choice(list(CALLS))
            if m * n * k <= 4096:
                continue
            a, b = operands(m, n, k, fraction, low)
            order = np.random.default_rng(k).permutation(k)  # else the halves of an even depth cancel each other
            a, b = np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order])
            got = CALLS[call](tensor(a, dtype), tensor(b, dtype)).contiguous().view(torch.int16)
            name = f"torch-mm:{by}:threads={n_threads}{WORDS[call]}"
            done += 1
            if not torch.equal(got, simulated(lib, name, fmt, a, b)):
                wrong += 1
                print("differs:", call, n_threads, m, n, k, flush=True)
        print(f"{n_threads} threads: {done} products, {wrong} differ", flush=True)
        all_wrong += wrong
    return all_wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
