# SPDX-License-Identifier: Apache-2.0
"""Record what mmaemu gives for products as torch._scaled_mm, or compare it with mpsim.

    make tests/support/scaledmms
    pip install torch==2.15.0 numpy==2.4.6 safetensors mmaemu==0.1.0
    python3 record.py SCALEDMMS record results.safetensors
    python3 record.py SCALEDMMS compare OUTPUTS [SEED]    # at least so many others, shapes and settings in turn
    python3 record.py SCALEDMMS speed                     # 64 x 5760 x 1920 on one thread

See README.md.  Inputs come from the project's own generator (tests/support/mmset.h).
"""
import hashlib
import random
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import torch

import mmaemu

DTYPE = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "binary32": torch.float32, "bf16": torch.bfloat16,
         "fp16": torch.float16}
VIEW = {"e4m3": (torch.uint8, np.uint8), "e5m2": (torch.uint8, np.uint8), "binary32": (torch.int32, np.uint32),
        "bf16": (torch.int16, np.uint16), "fp16": (torch.int16, np.uint16)}
warnings.simplefilter("ignore")


def setting(r, kinds):
    """A product: its words, its name, its scales."""
    arch = r.choice(["hopper", "ada"])
    a, b = r.choice([("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")])
    if arch == "hopper" and (a, b) == ("e5m2", "e5m2"):
        b = "e4m3"  # cuBLASLt has no product of two e5m2
    if (a, b) == ("e5m2", "e5m2"):
        b = "e4m3"
    out = r.choice(["bf16", "bf16", "fp16", "binary32", "e4m3", "e5m2"])
    if out == "e5m2" and (a, b) == ("e4m3", "e4m3"):
        out = "e4m3"
    parts = r.choice([1, 1, 2, 3, 4, 5, 6, 7, 12])
    order = "contiguous" if arch == "hopper" else r.choice(["serial", "pairwise"])
    name = f"torch-scaled-mm:{arch}:{r.choice(['fast', 'slow'])}:S={parts}:{order}:out={out}"
    scales = [r.choice([1.0, 0.5, 0.1, 0.0123, 3.7]) for _ in range(2)]
    result = r.choice([None, 2.0, 0.37]) if out in ("e4m3", "e5m2") else None
    return name, a, b, r.choice(kinds), scales, result


def compute(tool, m, n, k, name, a, b, kind, seed, scales, result):
    words = [str(x) for x in (m, n, k, a, b, kind, seed)]
    raw = subprocess.run([tool, "inputs", *words], stdout=subprocess.PIPE, check=True).stdout
    codes = torch.from_numpy(np.frombuffer(raw, np.uint8).copy())
    x, y = codes[:m * k].reshape(m, k).view(DTYPE[a]), codes[m * k:].reshape(n, k).view(DTYPE[b])
    _, arch, fast, parts, order, out = name.split(":")
    parts, out = int(parts[2:]), out[4:]
    start = time.process_time()
    d = mmaemu.scaled_mm(x, y.t(), torch.tensor(scales[0]), torch.tensor(scales[1]), out_dtype=DTYPE[out],
                         use_fast_accum=fast == "fast", profile=arch, splitk=1 if parts == 1 else (parts, order),
                         scale_result=None if result is None else torch.tensor(result))
    seconds = time.process_time() - start
    signed, unsigned = VIEW[out]
    return d.contiguous().view(signed).numpy().view(unsigned), words, hashlib.sha256(raw).hexdigest(), seconds


def record(tool, path):
    from safetensors.numpy import save_file
    r, tensors, metadata = random.Random(28), {}, {"mpsim.framework": "mmaemu " + mmaemu.__version__}
    for i in range(90):
        name, a, b, kind, scales, result = setting(r, [0, 1, 2, 3, 4, 5, 6, 7, 8])
        m, n, k = r.choice([16, 48]), r.choice([16, 32]), 16 * r.randrange(1, 100)
        if kind in (0, 6):
            k = 16 * r.randrange(1, 5)  # else every result is NaN
        d, words, digest, _ = compute(tool, m, n, k, name, a, b, kind, 1000 + i, scales, result)
        case = f"{i:03d}"
        tensors[case + "/d"] = d
        metadata[case] = (f"name={name} words={','.join(words)} scale_a={scales[0]!r} scale_b={scales[1]!r}" +
                          (f" scale_result={result!r}" if result is not None else "") + f" inputs={digest}")
    save_file(tensors, path, metadata)
    print(sum(d.size for d in tensors.values()), "results")


def compare(tool, outputs, seed):
    r = random.Random(seed)
    done = differ = i = 0
    theirs = ours = 0.0
    work = 0
    while done < outputs:
        name, a, b, kind, scales, result = setting(r, [1, 1, 1, 2, 3, 4, 5, 7, 8, 0, 6])
        m, n, k = 16 * r.randrange(4, 40), 16 * r.randrange(4, 40), 16 * r.randrange(1, 60)
        if kind in (0, 6):
            k = 16 * r.randrange(1, 5)
        d, words, _, seconds = compute(tool, m, n, k, name, a, b, kind, 100000 * seed + i, scales, result)
        more = [name, repr(scales[0]), repr(scales[1])] + ([repr(result)] if result is not None else [])
        out = subprocess.run([tool, "compare", *words, *more], input=d.tobytes(), stdout=subprocess.PIPE).stdout.decode()
        found = re.search(r"(\d+) results, (\d+) differ, ([0-9.]+) seconds", out)
        done, differ = done + int(found[1]), differ + int(found[2])
        theirs, ours, work, i = theirs + seconds, ours + float(found[3]), work + m * n * k, i + 1
        if int(found[2]) or "FAILED" in out:
            print(words, more, out, flush=True)
        if i % 10 == 0 or done >= outputs:
            print(f"{i} products, {done} results, {differ} differ; multiply-adds a second: mmaemu {work / theirs / 1e6:.1f} M, "
                  f"mpsim {work / ours / 1e6:.0f} M, {theirs / ours:.0f} times", flush=True)


def speed(tool):
    for fast in ("fast", "slow"):
        name = f"torch-scaled-mm:hopper:{fast}:S=1:contiguous:out=bf16"
        d, words, _, seconds = compute(tool, 64, 5760, 1920, name, "e4m3", "e4m3", 1, 5, [0.1, 0.2], None)
        out = subprocess.run([tool, "compare", *words, name, "0.1", "0.2"], input=d.tobytes(),
                             stdout=subprocess.PIPE).stdout.decode()
        print(f"64 x 5760 x 1920, {fast}: mmaemu {seconds:.2f} s of processor time; {out.strip()}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[2] == "record":
        record(sys.argv[1], sys.argv[3])
    elif sys.argv[2] == "speed":
        speed(sys.argv[1])
    else:
        compare(sys.argv[1], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
