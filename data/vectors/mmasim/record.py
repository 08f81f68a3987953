# SPDX-License-Identifier: Apache-2.0
"""Record what MMA-Sim gives for sets of dot products, or compare it with mpsim.

    make tests/support/dotsets
    pip install torch==2.15.0 numpy==2.4.6 safetensors && pip install --no-deps mmasim==2.1.1
    python3 record.py DOTSETS record results.safetensors     # the recorded cases
    python3 record.py DOTSETS compare COUNT [PATTERN]        # COUNT others of each family, or of those named

See README.md.  Inputs come from the project's own generator (tests/support/dotset.h); of MMA-Sim only its
instructions are called.
"""
import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from mmasim.amd import MFMA
from mmasim.nv_ptx import MMA, WGMMA, TCGen05MMA
from mmasim.nv_ptx.sim import MMABlockScale, TCGen05MMABlockScale

SEED = 20261126
CASES = 10008  # of a family: 1112 of each kind
CHUNK = 50000
F8, F6 = ("e4m3", "e5m2"), ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
FNUZ = ("e4m3fnuz", "e5m2fnuz")
TORCH = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "binary32": torch.float32,
         "binary64": torch.float64, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
         "e4m3fnuz": torch.float8_e4m3fnuz, "e5m2fnuz": torch.float8_e5m2fnuz, "e8m0": torch.float8_e8m0fnu}
PTX = {"fp16": "f16", "binary32": "f32", "binary64": "f64"}
BYTES = {"fp16": 2, "bf16": 2, "tf32": 4, "binary32": 4, "binary64": 8}
INTEGER = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def ptx(t):
    return PTX.get(t, t)


def same(*types):
    return [(t, t) for t in types]


def pairs(types):
    return [(x, y) for x in types for y in types]


def mma(arch, shape, kind=""):
    return lambda a, b, d: MMA(arch, f"{shape}{kind}.{ptx(d)}.{ptx(a)}.{ptx(b)}.{ptx(d)}")


def wgmma(k):
    return lambda a, b, d: WGMMA("Hopper", f"m64n8k{k}.{ptx(d)}.{ptx(a)}.{ptx(b)}")


def tcgen05(k, kind):
    return lambda a, b, d: TCGen05MMA("Blackwell", f"m64n8k{k}.kind::{kind}.{ptx(d)}.{ptx(a)}.{ptx(b)}")


def mfma(arch, suffix):
    short = {"e4m3fnuz": "fp8", "e5m2fnuz": "bf8"}
    return lambda a, b, d: MFMA(arch, suffix.format(a=short.get(a), b=short.get(b)))


def block(arch, shape, s):
    if arch == "Blackwell":
        return lambda a, b, d: TCGen05MMABlockScale(arch, f"m128n8{shape}.f32.{a}.{b}.{s}")
    return lambda a, b, d: MMABlockScale(arch, f"m16n8{shape}.f32.{a}.{b}.f32.{s}")


# family: model, pairs of formats, result, instruction, depth, scales. Depth is two additions or more, where the
# instruction is longer than one: MMA-Sim's dot products take any depth that is a multiple of it.
FAMILIES = {}


def family(model, formats, result, make, k, scale=None, name=None):
    FAMILIES[name or model] = (model, formats, result, make, k, scale)


H, X, F32, F64 = same("fp16"), same("bf16"), "binary32", "binary64"
for arch, name, shape, k in (("Volta", "volta", "m8n8k4", 8), ("Turing", "turing", "m16n8k8", 16),
                             ("Ampere", "ampere", "m16n8k16", 16), ("Ada Lovelace", "ada", "m16n8k16", 16),
                             ("Hopper", "hopper", "m16n8k16", 32), ("Blackwell", "blackwell", "m16n8k16", 32),
                             ("RTX Blackwell", "rtx-blackwell", "m16n8k16", 32)):
    for d in ("fp16", F32):
        family(f"{name}-fp16-{d.replace('binary', 'fp')}", H, d, mma(arch, shape), k)
    if name not in ("volta", "turing"):
        family(f"{name}-bf16-fp32", X, F32, mma(arch, shape), k)
        family(f"{name}-tf32-fp32", same("tf32"), F32, mma(arch, "m16n8k8"), 16)
family("hopper-k4-tf32-fp32", same("tf32"), F32, mma("Hopper", "m16n8k4"), 4)
for d in ("fp16", F32):
    r = d.replace("binary", "fp")
    family(f"ada-fp8-{r}", pairs(F8), d, mma("Ada Lovelace", "m16n8k32"), 32)
    family(f"hopper-wgmma-fp8-{r}", pairs(F8), d, wgmma(32), 64)
    family(f"blackwell-tcgen05-fp8-{r}", pairs(F6), d, tcgen05(32, "f8f6f4"), 64)
    family(f"rtx-blackwell-fp8-{r}", pairs(F6), d, mma("RTX Blackwell", "m16n8k32", ".kind::f8f6f4"), 64)
for arch, name in (("Blackwell", "blackwell-tcgen05"), ("RTX Blackwell", "rtx-blackwell")):
    family(f"{name}-mxf8f6f4", pairs(F6), F32, block(arch, "k32.kind::mxf8f6f4.block32", "ue8m0"), 32, "e8m0")
    family(f"{name}-mxf4", same("e2m1"), F32, block(arch, "k64.kind::mxf4.block32", "ue8m0"), 128, "e8m0")
    family(f"{name}-mxf4nvf4", same("e2m1"), F32, block(arch, "k64.kind::mxf4nvf4.block16", "ue4m3"), 128, "e4m3")
    family(f"{name}-mxf4nvf4", same("e2m1"), F32, block(arch, "k64.kind::mxf4nvf4.block16", "ue8m0"), 128, "e8m0",
           f"{name}-mxf4nvf4-e8m0")
family("ampere-fp64", same(F64), F64, mma("Ampere", "m8n8k4"), 8)
family("hopper-fp64", same(F64), F64, mma("Hopper", "m16n8k16"), 16)
family("blackwell-fp64", same(F64), F64, mma("Blackwell", "m8n8k4"), 8)
family("cdna1-fp16-fp32", H, F32, mfma("CDNA1", "f32_4x4x4f16"), 8)
family("cdna1-bf16-fp32", X, F32, mfma("CDNA1", "f32_4x4x2bf16"), 4)
family("cdna1-fp32", same(F32), F32, mfma("CDNA1", "f32_4x4x1f32"), 4)
family("cdna2-fp16-fp32", H, F32, mfma("CDNA2", "f32_4x4x4f16"), 8)
family("cdna2-bf16-fp32", X, F32, mfma("CDNA2", "f32_4x4x4bf16_1k"), 8)
family("cdna2-bf16-2-fp32", X, F32, mfma("CDNA2", "f32_4x4x2bf16"), 4)
family("cdna2-fp32", same(F32), F32, mfma("CDNA2", "f32_4x4x1f32"), 4)
family("cdna2-fp64", same(F64), F64, mfma("CDNA2", "f64_4x4x4f64"), 8)
family("cdna3-fp16-fp32", H, F32, mfma("CDNA3", "f32_16x16x16_f16"), 16)
family("cdna3-bf16-fp32", X, F32, mfma("CDNA3", "f32_16x16x16_bf16"), 16)
family("cdna3-xf32-fp32", same("tf32"), F32, mfma("CDNA3", "f32_16x16x8_xf32"), 8)
family("cdna3-fp8-fp32", pairs(FNUZ), F32, mfma("CDNA3", "f32_16x16x32_{a}_{b}"), 32)
family("cdna3-fp32", same(F32), F32, mfma("CDNA3", "f32_16x16x4_f32"), 4)
family("cdna3-fp64", same(F64), F64, mfma("CDNA3", "f64_16x16x4_f64"), 8)

# MMA-Sim computes these with the machine's own operations, so that a NaN is the machine's.
ANY_NAN = re.compile(r"cdna[12]-|.*-fp64$|cdna3-fp32$")


def to_torch(codes, t, packed):
    """Codes as the tensor that MMA-Sim takes."""
    if t == "tf32":
        codes = codes << 13
    if t in ("e3m2", "e2m3", "e2m1") and not packed:
        return torch.from_numpy((codes << 2 if t == "e2m1" else codes).astype(np.uint8))
    if t == "e2m1":  # two in a byte, the first above
        return torch.from_numpy((codes[:, ::2] << 4 | codes[:, 1::2]).astype(np.uint8))
    signed = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[codes.dtype.itemsize]
    return torch.from_numpy(codes.view(signed)).view(TORCH[t])


def start(tool, verb, first, count, f, a, b):
    model, _, _, _, k, scale = FAMILIES[f]
    words = [tool, verb, str(first), str(count), model, a, b, str(k), str(SEED)] + ([scale] if scale else [])
    env = dict(os.environ, NANS="any" if ANY_NAN.match(f) else "")
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)


def compute(given, f, a, b, count):
    """MMA-Sim's codes of the cases that can be read there, the digest of their inputs, and the seconds that it took."""
    _, _, result, make, k, scale = FAMILIES[f]
    at, arrays = 0, []
    q = k // (16 if "nvf4" in f else 32) if scale else 0
    codes = ((a, k), (b, k), (scale, q), (scale, q), (result, 1))
    raw = given.read(sum(count * n * BYTES.get(t, 1) for t, n in codes))
    for t, n in codes:
        if n == 0:
            arrays.append(None)
            continue
        dtype = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[BYTES.get(t, 1)]
        arrays.append(np.frombuffer(raw, dtype, count * n, at).reshape(count, n).copy())
        at += count * n * dtype().itemsize
    assert at == len(raw), (at, len(raw))
    packed = scale is not None and "mxf8" not in f
    x, y = to_torch(arrays[0], a, packed), to_torch(arrays[1], b, packed)
    c = to_torch(arrays[4], result, False)[:, 0]
    more = [to_torch(s, scale, False) for s in arrays[2:4]] if scale else []
    before = time.process_time()
    d = make(a, b, result).dpa(x, y, c, *more)
    seconds = time.process_time() - before
    size = BYTES[result]
    d = d.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[size]).numpy().view(INTEGER[size])
    return d, hashlib.sha256(raw).hexdigest(), seconds


def record(tool, path):
    from safetensors.numpy import save_file
    tensors, known, metadata = {}, {}, {"mpsim.framework": "mmasim 2.1.1", "mpsim.torch": torch.__version__}
    for f, (model, formats, result, _, k, scale) in FAMILIES.items():
        each = -(-CASES // len(formats) // 9) * 9
        for a, b in formats:
            name = f if len(formats) == 1 else f"{f}.{a}.{b}"
            inputs = start(tool, "inputs", 0, each, f, a, b)
            d, digest, _ = compute(inputs.stdout, f, a, b, each)
            assert inputs.wait() == 0
            first = known.setdefault(d.tobytes(), name)  # many architectures give the same results
            if first == name:
                tensors[name + "/d"] = d
            metadata[name] = (f"model={model} a={a} b={b} k={k} seed={SEED}" + (f" scale={scale}" if scale else "") +
                              (" nan=any" if ANY_NAN.match(f) else "") + (f" results={first}" if first != name else "") +
                              f" inputs={digest}")
        print(f, each * len(formats), "cases")
    save_file(tensors, path, metadata)


def compare(tool, count, pattern):
    for f, (_, formats, _, _, k, _) in FAMILIES.items():
        if not fnmatch.fnmatch(f, pattern):
            continue
        wrong, done, dropped, seconds, shown = [0, 0], 0, 0, 0.0, ""
        for a, b in formats:
            for first in range(0, -(-count // len(formats)), CHUNK):
                n = min(CHUNK, -(-count // len(formats)) - first)
                mpsim = start(tool, "compare", 1000000 + first, n, f, a, b)
                d, _, s = compute(mpsim.stdout, f, a, b, n)
                out = mpsim.communicate(d.tobytes())[0].decode()
                numbers = re.search(r"(\d+) cases, (\d+) differ from mpsim_dot, (\d+) from mpsim_gemm, (\d+) leave out",
                                    out)
                done, seconds, dropped = done + int(numbers[1]), seconds + s, dropped + int(numbers[4])
                wrong = [wrong[0] + int(numbers[2]), wrong[1] + int(numbers[3])]
                shown = shown or (out if int(numbers[2]) + int(numbers[3]) else "")
        print(f"{f:32s} {done:9d} cases  {wrong[0]:6d} differ from mpsim_dot {wrong[1]:6d} from mpsim_gemm"
              f" {dropped:6d} explained  {k * done / seconds / 1e6:8.1f} M multiply-adds a second of MMA-Sim", flush=True)
        if shown:
            print(shown)


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[2] == "record":
        record(sys.argv[1], sys.argv[3])
    else:
        compare(sys.argv[1], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else "*")
