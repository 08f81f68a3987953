#!/usr/bin/env python3
"""Small checkpoints of quantised tensors, by the packages that write them, and the values that the same packages read
from them in binary32, as SHA-256 of the little-endian values (values.txt; NaN as 0x7fc00000, since who multiplies
decides about its sign).

Written on 22 November 2026 on a CPU by torch 2.15.0, torchao 0.18.0, compressed-tensors 0.20.0, nvidia-modelopt 0.47.0,
transformers 5.23.0 (convert_moe_packed_tensors and _dequantize_fp8_weight; the blocks of gpt-oss and DeepSeek-V3 are made
here, since their owners publish no writer), safetensors 0.8.0, numpy 2.4.6, Python 3.11.

    python record.py            writes *.safetensors, *.pt, values.txt here
"""
import hashlib
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
lines = []


def tensor(rows, cols, seed, odd=True):
    """Numbers of many binades, a row of zeros, one of subnormal numbers, an outlier."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, cols, generator=g) * torch.exp2(torch.randint(-12, 3, (rows, 1), generator=g).float())
    if odd:
        x[1] = 0
        x[2] *= 2.0 ** -30
        x[3, 5] = 300
    return x


def value_lines(file, values):
    for name, x in sorted(values.items()):
        v = x.detach().to(torch.float32).contiguous().numpy().copy()
        v[np.isnan(v)] = np.uint32(0x7FC00000).view(np.float32)
        shape = ",".join(str(n) for n in v.shape)
        lines.append(f"{file}\t{name}\t{shape}\t{hashlib.sha256(v.astype('<f4').tobytes()).hexdigest()}")


def torchao():
    import torchao
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
    from torchao.quantization import Float8Tensor
    from torchao.quantization.granularity import PerRow, PerTensor

    assert torchao.__version__.startswith("0.18")
    x, odd = tensor(8, 64, 1), tensor(8, 64, 2)
    odd[4, 7], odd[5, 0], odd[6, 33] = float("nan"), float("inf"), -float("inf")
    m = {
        "m.e4m3": MXTensor.to_mx(x.bfloat16(), torch.float8_e4m3fn, 32),
        "m.e4m3_odd": MXTensor.to_mx(odd.bfloat16(), torch.float8_e4m3fn, 32),
        "m.e5m2_swizzled": MXTensor.to_mx(x, torch.float8_e5m2, 32, is_swizzled_scales=True),
        "m.e2m1": MXTensor.to_mx(x.bfloat16(), torch.float4_e2m1fn_x2, 32),
        "m.e2m3": MXTensor.to_mx(x.bfloat16(), "fp6_e2m3", 32),
        "m.e3m2": MXTensor.to_mx(x.bfloat16(), "fp6_e3m2", 32),
        "m.nvfp4": NVFP4Tensor.to_nvfp4(x.bfloat16()),
        "m.nvfp4_tensor": NVFP4Tensor.to_nvfp4(x.bfloat16(), per_tensor_scale=torch.tensor(300 / 2688.0)),
        "m.nvfp4_swizzled": NVFP4Tensor.to_nvfp4(
            tensor(130, 80, 3).bfloat16(), per_tensor_scale=torch.tensor(0.1), is_swizzled_scales=True),
        "m.float8_rows": Float8Tensor.from_hp(x.bfloat16(), granularity=PerRow()),
        "m.float8_tensor": Float8Tensor.from_hp(x, granularity=PerTensor()),
        "m.float8_3d": Float8Tensor.from_hp(torch.stack([x, 3 * x]).bfloat16(), granularity=PerRow()),
        "m.plain": torch.arange(6.0),
    }
    values = {k: v.dequantize(torch.float32) if hasattr(v, "qdata") else v for k, v in m.items()}
    flat, metadata = flatten_tensor_state_dict(m)
    save_file(flat, f"{HERE}/torchao.safetensors", metadata)
    value_lines("torchao.safetensors", values)
    m["m.e4m3_transposed"] = MXTensor.to_mx(x.bfloat16(), torch.float8_e4m3fn, 32).t()  # views
    values["m.e4m3_transposed"] = m["m.e4m3_transposed"].dequantize(torch.float32)
    torch.save(m, f"{HERE}/torchao.pt")
    value_lines("torchao.pt", values)


def compressed():
    import compressed_tensors
    from compressed_tensors.compressors.base import BaseCompressor
    from compressed_tensors.compressors.mx_utils import decompress_mx_scale
    from compressed_tensors.compressors.mxfp6.helpers import unpack_fp6_from_uint8
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    assert compressed_tensors.__version__ == "0.20.0"
    u8, e4m3 = torch.uint8, torch.float8_e4m3fn
    rows = {
        "nvfp4": ("nvfp4-pack-quantized", dict(num_bits=4, strategy="tensor_group", group_size=16, scale_dtype=e4m3), 6),
        "mxfp4": ("mxfp4-pack-quantized", dict(num_bits=4, strategy="group", group_size=32, scale_dtype=u8), 4),
        "mxfp6": ("mxfp6-pack-quantized", dict(num_bits=6, strategy="group", group_size=32, scale_dtype=u8), 4),
        "mxfp8": ("mxfp8-quantized", dict(num_bits=8, strategy="group", group_size=32, scale_dtype=u8), 256),
        "tensor": ("float-quantized", dict(num_bits=8, strategy="tensor"), 448),
        "channel": ("float-quantized", dict(num_bits=8, strategy="channel"), 448),
        "block": ("float-quantized", dict(num_bits=8, strategy="block", block_structure=[4, 32]), 448),
    }
    stored, values = {}, {}
    for name, (which, kind, most) in rows.items():
        args = QuantizationArgs(type="float", symmetric=True, dynamic=False, **kind)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        x = tensor(8, 96, 4)
        group = kind.get("group_size")
        if kind["strategy"] == "block":
            amax = x.abs().reshape(2, 4, 3, 32).amax((1, 3))
        elif group:
            amax = x.abs().reshape(8, 96 // group, group).amax(-1)
        else:
            amax = x.abs().amax(1, True) if kind["strategy"] == "channel" else x.abs().max().reshape(1)
        scale, state = amax.clamp(min=2.0 ** -40) / most, {"weight": x}
        if kind.get("scale_dtype") is u8:
            scale = torch.exp2(torch.floor(torch.log2(scale)))
        if name == "nvfp4":
            state["weight_global_scale"] = (448 * 6 / x.abs().max()).reshape(1).float()
            scale = (scale * state["weight_global_scale"]).clamp(2.0 ** -9, 448).to(e4m3).float()
        state["weight_scale"] = scale.bfloat16() if name == "channel" else scale
        done = BaseCompressor.get_value_from_registry(which).compress(dict(state), scheme)
        for key, value in done.items():
            stored[f"layers.{name}.{key}"] = value
        codes, s = done.get("weight_packed", done.get("weight")), done["weight_scale"]
        if codes.dtype is u8:
            unpack = unpack_fp6_from_uint8 if name == "mxfp6" else unpack_fp4_from_uint8
            codes = unpack(codes, 8, 96, torch.float32)
        s = decompress_mx_scale(s) if s.dtype is u8 else s
        values[f"layers.{name}.weight"] = dequantize(
            x_q=codes.float(), scale=s.float(), args=args, dtype=torch.float32,
            global_scale=state.get("weight_global_scale"))
    stored["layers.nvfp4.input_global_scale"] = torch.ones(1)
    save_file(stored, f"{HERE}/compressed-tensors.safetensors", {"format": "pt"})
    value_lines("compressed-tensors.safetensors", values)


def modelopt():
    import modelopt
    from modelopt.torch.quantization.qtensor import FP8QTensor, MXFP8QTensor, NVFP4QTensor

    assert modelopt.__version__ == "0.47.0"
    x = tensor(8, 64, 5)
    stored, values = {}, {}
    q, scale, second = NVFP4QTensor.quantize(x.clone(), 16)
    stored |= {"a.weight": q._quantized_data, "a.weight_scale": scale, "a.weight_scale_2": second,
               "a.input_scale": torch.tensor(0.5)}
    a = q.dequantize(torch.float32, scale=scale, double_scale=second, block_sizes={-1: 16})
    codes = torch.stack([q._quantized_data & 15, q._quantized_data >> 4], -1).reshape(a.shape)
    values["a.weight"] = torch.where(codes == 8, -0.0, a)  # code 8 is -0; in ModelOpt's table it is 0
    q, scale = FP8QTensor.quantize(x, axis=None)
    stored |= {"b.weight": q._quantized_data, "b.weight_scale": scale.reshape(())}
    values["b.weight"] = q.dequantize(torch.float32, scale=scale)
    scale = MXFP8QTensor.get_weights_scaling_factor(x)
    codes = MXFP8QTensor.quantize_with_scale(x, scale)
    stored |= {"c.weight": codes, "c.weight_scale": scale}
    values["c.weight"] = MXFP8QTensor(x.shape, x.dtype, codes).dequantize(torch.float32, scale=scale)
    save_file(stored, f"{HERE}/modelopt.safetensors")
    value_lines("modelopt.safetensors", values)


def transformers():
    import transformers as package
    from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    assert package.__version__ == "5.23.0"
    g = torch.Generator().manual_seed(6)
    blocks = torch.randint(0, 256, (2, 6, 2, 16), generator=g, dtype=torch.uint8)
    scales = torch.randint(100, 140, (2, 6, 2), generator=g, dtype=torch.uint8)
    scales[0, 0, 0], scales[1, 2, 1] = 0, 254
    name = "model.layers.0.mlp.experts.gate_up_proj"
    stored = {name + "_blocks": blocks, name + "_scales": scales, name + "_bias": torch.zeros(2, 6).bfloat16()}
    save_file(stored, f"{HERE}/gpt-oss.safetensors")
    value_lines("gpt-oss.safetensors", {name: convert_moe_packed_tensors(blocks, scales, dtype=torch.float32).transpose(1, 2)})

    x = tensor(130, 257, 7)
    x = x / 300
    scale = torch.zeros(2, 3)
    codes = torch.zeros(130, 257).to(torch.float8_e4m3fn)
    for i in range(2):
        for j in range(3):
            at = (slice(128 * i, 128 * i + 128), slice(128 * j, 128 * j + 128))
            scale[i, j] = x[at].abs().max() / 448
            codes[at] = (x[at] / scale[i, j]).to(torch.float8_e4m3fn)
    name = "model.layers.0.self_attn.o_proj.weight"
    save_file({name: codes, name + "_scale_inv": scale}, f"{HERE}/deepseek.safetensors")
    value_lines("deepseek.safetensors", {name: _dequantize_fp8_weight(codes, scale, [128, 128], torch.float32)})


def te():
    """TransformerEngine does not run here: stand-ins of its classes, pickled as the __reduce_ex__ of 2.12 says, and codes
    times scales as its dequantisation of rows says. No file of theirs was at hand to confirm it."""
    import enum
    import types

    def module(name):
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            part = ".".join(parts[:i])
            sys.modules.setdefault(part, types.ModuleType(part))
        return sys.modules[name]

    class DType:  # of pybind11
        def __init__(self, value=0):
            self.value = value

        def __getstate__(self):
            return self.value

        def __setstate__(self, value):
            self.value = value

    class Number(enum.IntEnum):
        E4M3 = 7
        E5M2 = 8

    native = module("transformer_engine_torch")
    for cls, name in ((DType, "DType"), (Number, "NumberOfDType")):
        cls.__module__, cls.__qualname__ = native.__name__, name
        setattr(native, name, cls)

    def maker(where, name):
        home = module("transformer_engine.pytorch.tensor." + where)

        def make(*arguments):
            made = cls()
            made.arguments = arguments
            return made

        cls = type(name, (), {"__reduce_ex__": lambda self, protocol: (cls._make_in_reduce_ex, self.arguments),
                              "_make_in_reduce_ex": staticmethod(make)})
        cls.__module__, cls.__qualname__ = home.__name__, name
        make.__module__, make.__qualname__ = home.__name__, name + "._make_in_reduce_ex"
        setattr(home, name, cls)
        return make

    g = torch.Generator().manual_seed(8)

    def codes(*shape):
        c = torch.randint(0, 256, shape, generator=g, dtype=torch.uint8)
        return torch.where(c & 0x7F >= 0x7C, 0, c)

    def padded(x, rows, cols):
        out = torch.zeros(-(-x.shape[0] // rows) * rows, -(-x.shape[1] // cols) * cols, dtype=x.dtype)
        out[: x.shape[0], : x.shape[1]] = x
        return out

    e2m1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values, m = {}, {}

    x, s = codes(32, 64), torch.randint(110, 135, (32, 2), generator=g, dtype=torch.uint8)
    m["m.mxfp8"] = maker("mxfp8_tensor", "MXFP8Tensor")(
        x, padded(s, 128, 4), x, padded(s[:1].repeat(1, 32), 4, 128), DType(7), torch.bfloat16, torch.Size([32, 64]), None,
        False)
    values["m.mxfp8"] = x.view(torch.float8_e4m3fn).float() * torch.exp2(s.float() - 127).repeat_interleave(32, 1)

    x, s, amax = codes(16, 16), codes(16, 2) & 0x7F, torch.tensor([3.7])
    m["m.nvfp4"] = maker("nvfp4_tensor", "NVFP4Tensor")(
        torch.Size([16, 32]), x, padded(s, 128, 4), None, None, amax, None, DType(10), torch.bfloat16, None, False)
    c = torch.stack([x & 15, x >> 4], -1).reshape(16, 32).long()
    v = torch.where(c > 7, -1.0, 1.0) * e2m1[c & 7]
    f = s.view(torch.float8_e4m3fn).float() * amax * np.float32(1 / 2688)
    values["m.nvfp4"] = v * f.repeat_interleave(16, 1)

    block = maker("float8_blockwise_tensor", "Float8BlockwiseQTensor")
    x, s = codes(128, 256), torch.rand(128, 2, generator=g)
    m["m.rows"] = block(torch.Size([128, 256]), x, padded(s.t(), 1, 4), None, None, DType(7), torch.bfloat16, None, False)
    values["m.rows"] = x.view(torch.float8_e4m3fn).float() * s.repeat_interleave(128, 1)
    s = torch.rand(1, 2, generator=g)
    m["m.tiles"] = block(torch.Size([128, 256]), x, padded(s, 1, 4), None, None, DType(8), torch.bfloat16, None, True)
    values["m.tiles"] = x.view(torch.float8_e5m2).float() * s.repeat_interleave(128, 1)

    x = codes(5, 3)
    m["m.float8"] = maker("float8_tensor", "Float8Tensor")(
        x, Number.E4M3, torch.tensor([0.125]), torch.float32, torch.Size([5, 3]))
    values["m.float8"] = x.view(torch.float8_e4m3fn).float() * 0.125
    torch.save(m, f"{HERE}/te.pt")
    value_lines("te.pt", values)


if __name__ == "__main__":
    for job in (torchao, compressed, modelopt, transformers, te):
        if len(sys.argv) < 2 or job.__name__ in sys.argv[1:]:
            job()
    if len(sys.argv) < 2:
        with open(f"{HERE}/values.txt", "w") as f:
            f.write("\n".join(lines) + "\n")
    else:
        print("\n".join(lines))
