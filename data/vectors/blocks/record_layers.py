# SPDX-License-Identifier: Apache-2.0
"""Record what reference code makes of the operands of one linear layer, policy by policy, as digests.

    python3 record_layers.py SOURCES MPSIM layers.txt

MPSIM, the program, trains six steps under each policy with a learning rate of 2, so that weights are
no longer alike, and writes its trace: act, weight and agrad of the layer fc2 (160 x 160 each).  Their operands for the three products are computed here by the
reference code that record_references.py runs (SOURCES is its folder; TransformerEngine's NVFP4 and
block quantisers, torchao's to_mx and nvfp4_quantize, DeepGEMM's math.py; NumPy versions of
TransformerEngine's MXFP8 and of DeepSeek-V3's act_quant, which exist for GPUs only):

    q   along the depth of y = x W^T and of dx = dy W:     x, dy, W by rows
    qt  along the depth of dW = dy^T x, and W for dx:      x, dy, W by columns

Stochastic rounding of FP4 is done here in NumPy, as TransformerEngine's software rounds with 8 random
bits, by Philox words of mpsim/rng.h, on the codes' scales that the reference gives; blocks of zeros
under DeepSeek-V3's act_quant (0 / 0 there) are as mpsim has them, zeros of scale 1.  A line is one
operand: digests (16 digits of SHA-256) of the tensor it is made of (as bf16), of codes, scales and of
what both stand for (bf16, what is multiplied); promoted policies multiply the codes.  A digest of
values is that of record_references.py's order: rows of the quantised matrix.
"""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors import safe_open

from record_references import (Sources, bytes_of, deepgemm, deepseek, digest, te_block, te_mxfp8,
                               te_nvfp4, torchao_mx, torchao_nvfp4)

f32, u32, u64 = np.float32, np.uint32, np.uint64
ROLES = ("act", "weight", "agrad")
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], f32)

BLOCK = {"act": "1x128", "weight": "128x128", "agrad": "1x128"}
# policy: how its three operands are quantised, and what of NVFP4's recipe it has
POLICIES = {"te-nvfp4": ("nvfp4", "2d", "sr", "rht"), "te-nvfp4-without-rht": ("nvfp4", "2d", "sr"),
            "te-nvfp4-without-2d": ("nvfp4", "sr", "rht"), "te-nvfp4-without-sr": ("nvfp4", "2d", "rht"),
            "torchao-nvfp4": ("torchao-nvfp4",), "te-mxfp8": ("te-mxfp8",), "mxfp8-floor": ("floor",),
            "mxfp8-even": ("even",), "mxfp8-ceil": ("ceil",), "mxfp8-rceil": ("rceil",),
            "deepseek-v3-fp8": ("te-block",), "deepseek-v3-fp8-f32": ("deepseek",),
            "deepseek-v3-fp8-ue8m0": ("deepgemm",)}


# --- random words ----------------------------------------------------------------------------
def stream(step, name):
    """FNV-1a, 64 bits, of the eight bytes of the step, the lowest first, and of the name."""
    h = 0xcbf29ce484222325
    for b in step.to_bytes(8, "little") + name.encode():
        h = (h ^ b) * 0x100000001b3 & (1 << 64) - 1
    return h


def philox(seed, which, n):
    """Words 0 to n - 1 of (seed, stream): Philox4x32-10."""
    i = np.arange((n + 3) // 4, dtype=u64)
    c = [i & u64(0xffffffff), i >> u64(32), np.full_like(i, which & 0xffffffff),
         np.full_like(i, which >> 32)]
    k = [seed & 0xffffffff, seed >> 32]
    for _ in range(10):
        p, q = c[0] * u64(0xD2511F53), c[2] * u64(0xCD9E8D57)
        c = [q >> u64(32) ^ c[1] ^ u64(k[0]), q & u64(0xffffffff),
             p >> u64(32) ^ c[3] ^ u64(k[1]), p & u64(0xffffffff)]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return np.stack(c, 1).reshape(-1)[:n].astype(u32)


# --- NVFP4 -----------------------------------------------------------------------------------
def transform(src, x):
    """TransformerEngine's reference transform of the rows, in the format of x."""
    q = object.__new__(src.nvfp4.NVFP4QuantizerRef)
    q.__dict__.update(with_rht=True, quant_tile_shape=(1, 16), with_random_sign_mask=True)
    return q._apply_rht(x)


def amax_of(x):
    return np.abs(x.float().numpy()).max().astype(f32)


def scale_values(scales):
    return torch.from_numpy(scales).view(torch.float8_e4m3fn).float().numpy()


def spread(scales, shape, rows):
    return np.repeat(np.repeat(scales, rows, 0), 16, 1)[:shape[0], :shape[1]]


def stochastic(x, scales, words):
    """E2M1 codes of x under its scales, by 8 bits of each word."""
    v = x.float().numpy()
    decode = f32(1) / f32(f32(448 * 6) / amax_of(x))
    inverse = (spread(scale_values(scales), v.shape, 1) * decode).astype(f32)
    with np.errstate(divide="ignore"):
        factor = np.minimum(f32(1) / inverse, np.finfo(f32).max).astype(f32)
    y = (v * factor).astype(f32)
    a = np.abs(y)

    def step(t):
        return np.where(t < 2, f32(.5), np.where(t < 4, f32(1), f32(2))).astype(f32)
    r = (words >> u32(24)).reshape(v.shape).astype(np.float64) / 256
    t = (r * step(a) + a).astype(f32)           # one rounding: the sum is exact in binary64
    q = np.minimum(np.floor(t / step(t)) * step(t), 6).astype(f32)
    code = np.searchsorted(E2M1[:8], q)
    return (code + np.where(np.signbit(y), 8, 0)).astype(np.uint8)


def nvfp4(src, x, role, use, words):
    """x: rows along the depth."""
    rotated = use == "qt" and role != "weight" and "rht" in words
    tile = "16x16" if role == "weight" and "2d" in words else "1x16"
    if rotated:                      # the reference transforms the columns that it transposes
        x = transform(src, x)
    codes, scales, _ = te_nvfp4(src, x, {"tile": tile, "axis": "rows", "rht": "0"})
    if role == "agrad" and "sr" in words:
        name = ("agrad" if use == "q" else "agrad.qt") + ":fc2"
        codes = stochastic(x, scales, philox(0, stream(6, name), x.numel()))
    high = 16 if tile == "16x16" else 1
    inner = spread(scale_values(scales), x.shape, high)
    factor = ((inner * amax_of(x)).astype(f32) * (f32(1) / f32(448 * 6))).astype(f32)  # dequantize_nvfp4.cuh
    return codes, scales, (E2M1[codes] * factor).astype(f32), x


def of_zeros(codes, scales, values):
    """Blocks of zeros, of which act_quant makes 0 / 0: mpsim counts their scale as 1."""
    bad = np.isnan(values)
    return np.where(bad, 0, codes).astype(np.uint8), np.where(scales == 0, f32(1), scales), \
        np.where(bad, f32(0), values)


# --- one operand -----------------------------------------------------------------------------
def quantise(src, words, x, role, use):
    if words[0] == "nvfp4":
        return nvfp4(src, x, role, use, words)
    rows = {"element": "e4m3", "axis": "rows"}
    if words[0] == "torchao-nvfp4":
        got = torchao_nvfp4(src, x, {"level": "2"})
    elif words[0] == "te-mxfp8":
        got = te_mxfp8(src, x, rows)
    elif words[0] == "te-block":
        got = te_block(src, x, {**rows, "block": BLOCK[role], "pow2": "1"})
    elif words[0] == "deepseek":
        got = of_zeros(*deepseek(src, x.float(), {"block": BLOCK[role], "eps": "0"}))
    elif words[0] == "deepgemm":
        got = deepgemm(src, x, {"block": BLOCK[role], "scale": "e8m0"})
    else:
        got = torchao_mx(src, x, {**rows, "mode": words[0]})
    return (*got, x)


def bits(x):
    return x.contiguous().view(torch.int16).numpy().astype("<i2").tobytes()


def lines(src, policy, words, tensors):
    for role in ROLES:
        for use in ("q", "qt"):
            x = tensors[role]
            x = x if use == "q" else x.t().contiguous()
            codes, scales, values, made_of = quantise(src, words, x, role, use)
            element = "e2m1" if "nvfp4" in words[0] else "e4m3"
            raw = bytes_of(codes, scales, None, x.float().numpy(), element)
            bf16 = torch.from_numpy(np.ascontiguousarray(values, f32)).to(torch.bfloat16)
            yield (f"{policy} {role}.{use} x={digest(bits(tensors[role]))} of={digest(bits(made_of))} "
                   f"codes={digest(raw['codes'])} scales={digest(raw['scales'])} "
                   f"values={digest(bits(bf16))}")


def main(root, program, out):
    src = Sources(root)
    with open(out, "w") as f, tempfile.TemporaryDirectory() as folder:
        print("# SPDX-License-Identifier: Apache-2.0", file=f)
        print("# recorded by record_layers.py: torch", torch.__version__.split("+")[0],
              "torchao 0.18.0, transformer_engine 2.20.2, DeepGEMM 38939a4", file=f)
        for policy, words in POLICIES.items():
            run = os.path.join(folder, policy)
            subprocess.run([program, "train", "-P", policy, "--width", "160", "--batch", "160", "--steps",
                            "6", "--lr", "2", "--trace", run, "-o", os.devnull, "--quiet"], check=True)
            step = safe_open(glob.glob(run + "/step_000006/*.safetensors")[0], "pt")
            names = {"act": "act:fc2", "weight": "weight:fc2.weight", "agrad": "agrad:fc2"}
            tensors = {r: step.get_tensor(n).to(torch.bfloat16) for r, n in names.items()}
            for line in lines(src, policy, words, tensors):
                print("layer", line, file=f)


if __name__ == "__main__":
    main(*sys.argv[1:])
