# SPDX-License-Identifier: Apache-2.0
"""Record how torchao stores quantised tensors: state dicts, swizzled scales, packed codes.

    python3 record_layouts.py layouts [TORCHAO_0_13]

Written with torch 2.15.0 on CPU, torchao 0.18.0, safetensors 0.8.0:
    torchao.pt            torch.save of a state dict: MXTensor, NVFP4Tensor, Float8Tensor
    torchao.safetensors   the same through torchao.prototype.safetensors (flatten_tensor_state_dict
                          and safetensors.torch.save_file); without the transposed tensor, which it
                          refuses: "You are trying to save a non contiguous tensor"
    expected.safetensors  what stands in both: NAME/x the tensor that was quantised, NAME/dq what
                          .dequantize() gives (MX: in the type of x; else in binary32; neither of the
                          two large ones), NAME/codes one element a byte, NAME/scale the scales in
                          the plain order, NAME/pts the scale of the tensor
    grids.safetensors     swizzle-RxC/plain, /blocked: to_blocked of R x C bytes; pack4/plain,
                          /packed: pack_uint4; pack6/plain, /packed: pack_uint6_pytorch of torchao
                          0.13.0 (folder of its unpacked wheel; 0.18.0 has no packed FP6)
The judges of the swizzled order are in check_layouts.py.
"""
import ast
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
from torchao.prototype.mx_formats.kernels import pack_uint4, unpack_uint4
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
from torchao.prototype.mx_formats.utils import from_blocked, to_blocked
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import Float8Tensor, PerBlock, PerRow, PerTensor

from record_torchao import from_torch, save

SEED = 20262
E4M3, E5M2, E2M1 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2


def source(rng, *shape, dtype=torch.bfloat16):
    """Values over some binades, with a few zeros; bfloat16 ones come back as that type."""
    x = rng.normal(size=shape) * np.exp2(rng.integers(-6, 7, size=(*shape[:-1], 1)))
    x[rng.random(shape) < 0.03] = 0
    return torch.from_numpy(x.astype(np.float32)).to(dtype)


def nvfp4(x, scaled=True, **words):
    pts = per_tensor_amax_to_scale(x.float().abs().max()) if scaled else None
    return NVFP4Tensor.to_nvfp4(x, per_tensor_scale=pts, **words)


def state_dict():
    rng = np.random.default_rng(SEED)
    x = {}
    q = {}

    def put(name, data, tensor):
        x[name], q[name] = data, tensor

    w = source(rng, 6, 64)
    put("mxfp8.weight", w, MXTensor.to_mx(w, E4M3))
    put("mxfp8_rceil.weight", w, MXTensor.to_mx(w, E4M3, scaling_mode=Mode.RCEIL))
    put("mxfp8_e5m2.weight", w, MXTensor.to_mx(w, E5M2))
    put("mxfp6_e2m3.weight", w, MXTensor.to_mx(w, DTYPE_FP6_E2M3))
    put("mxfp6_e3m2.weight", w, MXTensor.to_mx(w, DTYPE_FP6_E3M2))
    put("mxfp4.weight", w, MXTensor.to_mx(w, E2M1))
    put("mxfp8_swizzled.weight", w, MXTensor.to_mx(w, E4M3, is_swizzled_scales=True))
    wide = source(rng, 33, 160)
    put("mxfp4_swizzled.weight", wide, MXTensor.to_mx(wide, E2M1, is_swizzled_scales=True))
    w = source(rng, 2, 4, 64)
    put("mxfp8_experts.weight", w, MXTensor.to_mx(w, E4M3))
    w = source(rng, 64, 6)                                    # blocks run down the columns
    put("mxfp8_columns.weight", w, MXTensor.to_mx(w.t().contiguous(), E4M3).t())
    w = source(rng, 5, 48)
    put("nvfp4.weight", w, nvfp4(w))
    put("nvfp4_1level.weight", w, nvfp4(w, scaled=False))
    put("nvfp4_swizzled.weight", w, nvfp4(w, is_swizzled_scales=True))
    tall = source(rng, 129, 80)
    put("nvfp4_tall.weight", tall, nvfp4(tall, is_swizzled_scales=True))
    w = source(rng, 7, 24)
    put("float8_row.weight", w, Float8Tensor.from_hp(w, granularity=PerRow()))
    put("float8_tensor.weight", w, Float8Tensor.from_hp(w, granularity=PerTensor()))
    w = source(rng, 16, 32)
    put("float8_block.weight", w, Float8Tensor.from_hp(w, granularity=PerBlock([8, 16])))
    q["plain.bias"] = source(rng, 9)
    return x, q


def plain(t):
    """Codes, a byte each, and scales in the plain order."""
    flip = t.qdata.dim() > 1 and not t.qdata.is_contiguous()
    data = t.qdata.t() if flip else t.qdata
    scale = t.scale.t() if flip else t.scale
    packed = data.dtype == torch.uint8 and data.shape[-1] * 2 == (t.t() if flip else t).shape[-1]
    codes = unpack_uint4(data) if packed else data
    if getattr(t, "is_swizzled_scales", False):
        rows, cols = codes.shape[-2], codes.shape[-1] // t.block_size
        scale = from_blocked(scale.flatten().view(torch.uint8), rows, cols)
    return codes.contiguous(), scale.contiguous()


def grids(old):
    rng = np.random.default_rng(SEED + 1)
    out, meta = {}, {"recorder": "data/vectors/blocks/record_layouts.py"}
    facts = f"framework=torchao torch={torch.__version__.split('+')[0]} version="
    for rows, cols in ((1, 1), (3, 5), (32, 4), (33, 3), (128, 4), (129, 4), (127, 5), (200, 9)):
        p = torch.from_numpy(rng.integers(1, 256, size=(rows, cols), dtype=np.uint8))
        b = to_blocked(p)
        assert torch.equal(from_blocked(b, rows, cols), p)
        name = f"swizzle-{rows}x{cols}"
        out[name + "/plain"], out[name + "/blocked"] = p, b
        meta[name] = facts + "0.18.0 function=to_blocked"
    p = torch.from_numpy(rng.integers(0, 16, size=(5, 32), dtype=np.uint8))
    out["pack4/plain"], out["pack4/packed"] = p, pack_uint4(p)
    meta["pack4"] = facts + "0.18.0 function=pack_uint4"
    if old:
        path = os.path.join(old, "torchao/prototype/mx_formats/kernels.py")
        tree = ast.parse(open(path).read())
        tree.body = [n for n in tree.body if getattr(n, "name", "") == "pack_uint6_pytorch"]
        space = {"torch": torch}
        exec(compile(tree, path, "exec"), space)
        p = torch.from_numpy(rng.integers(0, 64, size=(3, 32), dtype=np.uint8))
        out["pack6/plain"] = p
        out["pack6/packed"] = space["pack_uint6_pytorch"](p)
        meta["pack6"] = facts + "0.13.0 function=pack_uint6_pytorch"
    return out, meta


def main(directory, old=None):
    x, q = state_dict()
    torch.save(q, os.path.join(directory, "torchao.pt"))
    flat, meta = flatten_tensor_state_dict({k: v for k, v in q.items() if "columns" not in k})
    save_file(flat, os.path.join(directory, "torchao.safetensors"), meta)
    out, meta = {}, {"recorder": "data/vectors/blocks/record_layouts.py"}
    for name, t in q.items():
        if name not in x:
            out[name + "/x"] = t
            continue
        out[name + "/codes"], out[name + "/scale"] = plain(t)
        if name not in ("nvfp4_tall.weight", "mxfp4_swizzled.weight"):
            out[name + "/x"] = x[name]
            out[name + "/dq"] = t.dequantize() if "mx" in name else t.dequantize(torch.float32)
        if getattr(t, "per_tensor_scale", None) is not None:
            out[name + "/pts"] = t.per_tensor_scale.reshape(1)
        meta[name] = (f"class={type(t).__name__} input={str(x[name].dtype).split('.')[1]} "
                      f"shape={'x'.join(map(str, t.shape))}")
    out = {k: from_torch(v) for k, v in out.items()}
    save(os.path.join(directory, "expected.safetensors"), out, meta)
    out, meta = grids(old)
    save(os.path.join(directory, "grids.safetensors"), {k: from_torch(v) for k, v in out.items()},
         meta)


if __name__ == "__main__":
    main(*sys.argv[1:])
