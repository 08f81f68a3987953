# SPDX-License-Identifier: Apache-2.0
"""Record what quantised tensors look like in the layouts of checkpoints, for tests/quant/t-written.c.

    python3 record_layouts.py layouts.safetensors

Written with torch 2.15.0 on CPU, torchao 0.18.0, compressed-tensors 0.20.0, safetensors 0.8.0. Codes and scales are
torchao's (MXTensor, NVFP4Tensor; tiles of 128x128 by DeepSeek-V3's formula in PyTorch); how they lie in a layout is written
out here, in NumPy, from the sources that sim/quant/form.c names, and shares nothing with it. Where compressed-tensors has a
function that packs, its bytes are compared with those here.

    x.weight, x.bias            the model that mpsim cast is given, bfloat16; the bias stays as it is
    LAYOUT/RECIPE/NAME          a tensor of the file that is to come out, its bytes as U8
    metadata                    LAYOUT/RECIPE: the options of cast; LAYOUT/RECIPE/NAME: dtype and shape
"""
import json
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.prototype.mx_formats.kernels import unpack_uint4
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

ROWS, COLS = 160, 64
E4M3, E5M2, E2M1 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2


def bytes_of(t):
    return t.contiguous().view(torch.uint8).numpy()


def mx(w, element):
    """Codes, a byte each, and scales of MXFP8, 6, 4 by torchao's RCEIL."""
    t = MXTensor.to_mx(w, element, scaling_mode=Mode.RCEIL)
    codes = unpack_uint4(t.qdata) if element is E2M1 else t.qdata
    return bytes_of(codes), bytes_of(t.scale)


def nvfp4(w):
    scale = per_tensor_amax_to_scale(w.float().abs().max())
    t = NVFP4Tensor.to_nvfp4(w, per_tensor_scale=scale)
    return bytes_of(unpack_uint4(t.qdata)), bytes_of(t.scale), scale.numpy()


def tiles(w, side):
    """DeepSeek-V3, inference/kernel.py, weight_quant: s = amax / 448, y = x / s."""
    x = w.float()
    rows, cols = x.shape
    codes = torch.empty(x.shape, dtype=E4M3)
    scales = np.empty((-(-rows // side), -(-cols // side)), np.float32)
    for i in range(0, rows, side):
        for j in range(0, cols, side):
            block = x[i:i + side, j:j + side]
            s = block.abs().max() / 448
            scales[i // side, j // side] = s
            codes[i:i + side, j:j + side] = (block / s).to(E4M3)
    return bytes_of(codes), scales


# ---- how they lie ----

def nibbles(codes):
    return codes[:, 0::2] | codes[:, 1::2] << 4


def sixes(codes):
    word = sum(codes[:, i::4].astype(np.uint32) << 6 * i for i in range(4))
    return np.stack([word & 255, word >> 8 & 255, word >> 16], -1).reshape(len(codes), -1).astype(np.uint8)


def padded(grid, down, across):
    rows, cols = (-(-n // k) * k for n, k in zip(grid.shape, (down, across)))
    out = np.zeros((rows, cols), grid.dtype)
    out[:grid.shape[0], :grid.shape[1]] = grid
    return out


def swizzled(grid):
    """cuBLAS, 1D block scaling factors layout, scale by scale."""
    across = -(-grid.shape[1] // 4)
    out = np.zeros(-(-grid.shape[0] // 128) * across * 512, np.uint8)
    for (o, i), s in np.ndenumerate(grid):
        out[(o // 128 * across + i // 4) * 512 + o % 32 * 16 + o % 128 // 32 * 4 + i % 4] = s
    return out


def record(w):
    t = w.t().contiguous()
    c8, s8 = mx(w, E4M3)
    c8t, s8t = mx(t, E4M3)
    c5, s5 = mx(w, E5M2)
    c63, s63 = mx(w, DTYPE_FP6_E2M3)
    c62, s62 = mx(w, DTYPE_FP6_E3M2)
    c4, s4 = mx(w, E2M1)
    cn, sn, pts = nvfp4(w)
    ct, st, _ = nvfp4(t)
    cd, sd = tiles(w, 128)
    amax = np.float32(w.float().abs().max())
    yield "plain", "mxfp8:rceil", "", {"": ("F8_E4M3", c8), ".scale": ("F8_E8M0", s8)}
    yield "plain", "mxfp8-e5m2:rceil", "", {"": ("F8_E5M2", c5), ".scale": ("F8_E8M0", s5)}
    yield "plain", "mxfp6-e2m3:rceil", "", {"": ("U8", sixes(c63)), ".scale": ("F8_E8M0", s63)}
    yield "plain", "mxfp6-e3m2:rceil", "", {"": ("U8", sixes(c62)), ".scale": ("F8_E8M0", s62)}
    yield "plain", "mxfp4:rceil", "--scale-order swizzled", {
        "": ("U8", nibbles(c4)), ".scale": ("F8_E8M0", swizzled(s4).reshape(64, -1))}
    yield "plain", "mxfp8:rceil", "--axis columns", {"": ("F8_E4M3", c8t.T), ".scale": ("F8_E8M0", s8t.T)}
    yield "plain", "mxfp8:rceil", "--axis columns --scale-order swizzled", {
        "": ("F8_E4M3", c8t.T), ".scale": ("F8_E8M0", swizzled(s8t).reshape(32, -1))}
    yield "plain", "nvfp4-torchao", "", {"": ("U8", nibbles(cn)), ".scale": ("F8_E4M3", sn), ".tensor_scale": ("F32", pts)}
    yield "plain", "e4m3/128x128", "", {"": ("F8_E4M3", cd), ".scale": ("F32", sd)}
    yield "te", "mxfp8:rceil", "", {".rowwise_data": ("U8", c8), ".rowwise_scale_inv": ("U8", padded(s8, 128, 4))}
    yield "te", "mxfp8:rceil", "--scale-order swizzled", {
        ".rowwise_data": ("U8", c8), ".rowwise_scale_inv": ("U8", swizzled(s8).reshape(256, -1))}
    yield "te", "mxfp8:rceil", "--axis columns", {
        ".columnwise_data": ("U8", c8t.T), ".columnwise_scale_inv": ("U8", padded(s8t.T, 4, 128))}
    yield "te", "nvfp4-torchao", "", {".rowwise_data": ("U8", nibbles(cn)), ".rowwise_scale_inv": ("U8", padded(sn, 128, 4)),
                                      ".amax_rowwise": ("F32", amax.reshape(1))}
    yield "te", "nvfp4-torchao", "--axis columns", {
        ".columnwise_data": ("U8", nibbles(ct)), ".columnwise_scale_inv": ("U8", padded(st, 128, 4)),
        ".amax_columnwise": ("F32", amax.reshape(1))}
    yield "compressed-tensors", "nvfp4-torchao", "", {
        "_packed": ("U8", nibbles(cn)), "_scale": ("F8_E4M3", sn),
        "_global_scale": ("F32", (np.float32(2688) / amax).reshape(1))}
    yield "compressed-tensors", "mxfp4:rceil", "", {"_packed": ("U8", nibbles(c4)), "_scale": ("U8", s4)}
    yield "compressed-tensors", "mxfp6-e2m3:rceil", "", {"_packed": ("U8", sixes(c63)), "_scale": ("U8", s63)}
    yield "compressed-tensors", "mxfp8:rceil", "", {"": ("F8_E4M3", c8), "_scale": ("U8", s8)}
    yield "modelopt", "nvfp4-torchao", "", {"": ("U8", nibbles(cn)), "_scale": ("F8_E4M3", sn), "_scale_2": ("F32", pts)}
    yield "modelopt", "mxfp8:rceil", "", {"": ("F8_E4M3", c8), "_scale": ("U8", s8)}
    yield "deepseek", "e4m3/128x128", "", {"": ("F8_E4M3", cd), "_scale_inv": ("F32", sd)}
    yield "gpt-oss", "mxfp4:rceil", "", {"_blocks": ("U8", nibbles(c4).reshape(ROWS, COLS // 32, 16)), "_scales": ("U8", s4)}


def judge_packing(w):
    """compressed-tensors' own packing, of the values that torchao's codes stand for."""
    from compressed_tensors.compressors.mxfp6.helpers import pack_fp6_to_uint8
    from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8
    from torchao.prototype.mx_formats.kernels import f4_unpacked_to_f32, f6_e2m3_unpacked_to_f32
    four, six = mx(w, E2M1)[0], mx(w, DTYPE_FP6_E2M3)[0]
    packed = pack_fp4_to_uint8(f4_unpacked_to_f32(torch.from_numpy(four))).numpy()
    assert (packed == nibbles(four)).all()
    packed = pack_fp6_to_uint8(f6_e2m3_unpacked_to_f32(torch.from_numpy(six))).numpy()
    assert (packed == sixes(six)).all()


def main(path):
    g = torch.Generator().manual_seed(20)
    w = torch.randn(ROWS, COLS, generator=g) * torch.exp2(torch.randint(-6, 7, (ROWS, 1), generator=g).float())
    w[torch.rand(ROWS, COLS, generator=g) < 0.03] = 0
    w = w.bfloat16()
    judge_packing(w)
    out = {"x.weight": w, "x.bias": torch.randn(ROWS, generator=g).bfloat16()}
    meta = {"recorder": "tests/quant/record_layouts.py"}
    seen = {}
    for n, (layout, recipe, options, parts) in enumerate(record(w)):
        case = f"case{n:02d}"
        meta[case] = f"-f {recipe} --quantised {layout} {options}".strip()
        for suffix, (dtype, data) in parts.items():
            raw = np.frombuffer(data.tobytes(), np.uint8)
            same = seen.setdefault(raw.tobytes(), f"{case}/{suffix}")  # bytes that are there already
            meta[f"{case}/{suffix}"] = json.dumps({"dtype": dtype, "shape": list(data.shape), "bytes": same})
            if same == f"{case}/{suffix}":
                out[same] = torch.from_numpy(raw.copy())
    save_file(out, path, meta)


if __name__ == "__main__":
    main(*sys.argv[1:])
