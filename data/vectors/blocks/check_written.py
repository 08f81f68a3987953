# SPDX-License-Identifier: Apache-2.0
"""Load quantised checkpoints that `mpsim cast` writes with the code of those whose layouts they are.

    python3 check_written.py PROGRAM [TE]

A matrix, one of odd sides and a tensor of experts are written in each layout and order of scales, then
    torchao             unflatten_tensor_state_dict, .dequantize(); codes and scales as bytes beside those
                        that torchao gives for the same tensor
    compressed-tensors  decompress of its compressors, as in unpack and dequantize in binary32
    gpt-oss             transformers' convert_moe_packed_tensors
    deepseek            weight_dequant's formula
    te                  get_scale_shape of its quantizers (TE: its wheel, unpacked); scales without
                        padding; NVFP4's dequantize kernel as a formula
and what they make of it is compared with `mpsim cast -f fp32` of the same file, which reads it back, and
(torchao) with `mpsim cast --widen`.  Run with torch 2.15.0 (CPU), torchao 0.18.0,
compressed-tensors 0.20.0, transformers 5.23.0, transformer_engine 2.20.2.
"""
import ast
import math
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
counts = {}


def count(what, a, b):
    """Elements (or bytes) compared, and those that differ."""
    n, wrong = counts.get(what, (0, 0))
    a, b = a.contiguous().flatten(), b.contiguous().flatten()
    counts[what] = (n + b.numel(),
                    wrong + (int((a != b).sum()) if a.numel() == b.numel() else b.numel()))


class Folder:
    def __init__(self, program, place):
        self.program, self.place = program, place

    def path(self, name):
        return os.path.join(self.place, name + ".safetensors")

    def cast(self, source, to, *words):
        r = subprocess.run([self.program, "cast", "-q", "-o", self.path(to), *words,
                            self.path(source)], capture_output=True, text=True)
        if r.returncode:
            raise SystemExit(r.stderr)
        return load_file(self.path(to))

    def written(self, source, recipe, layout, order="plain", *words):
        """The stored tensors, and what mpsim reads of them."""
        stored = self.cast(source, "q", "-f", recipe, "--quantised", layout, "--scale-order", order,
                           *words)
        return stored, self.cast("q", "back", "-f", "fp32")


def torchao(folder):
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict
    mx = {"mxfp8:floor": (E4, Mode.FLOOR), "mxfp8:rceil": (E4, Mode.RCEIL),
          "mxfp8e5m2:even": (E5, Mode.EVEN), "mxfp6e2m3": (DTYPE_FP6_E2M3, Mode.FLOOR),
          "mxfp6e3m2:ceil": (DTYPE_FP6_E3M2, Mode.CEIL),
          "mxfp4": (torch.float4_e2m1fn_x2, Mode.FLOOR)}
    x = load_file(folder.path("x"))
    for recipe in (*mx, "nvfp4-torchao", "nvfp4:1level", "torchao-rowwise"):
        wide = folder.cast("x", "wide", "-f", recipe, "--widen")
        for order in ("plain", "swizzled"):
            if recipe == "torchao-rowwise" and order == "swizzled":
                continue
            stored, back = folder.written("x", recipe, "torchao", order)
            with safe_open(folder.path("q"), "pt") as f:
                state, left = unflatten_tensor_state_dict(stored, f.metadata())
            assert not left
            for name, v in x.items():
                q, swizzled = state[name], order == "swizzled"
                dq = q.dequantize(torch.float32)
                count("torchao: values, and written with --widen", wide[name], dq)
                count("torchao: values, and read back", back[name], dq)
                if recipe in mx:
                    own = MXTensor.to_mx(v, mx[recipe][0], scaling_mode=mx[recipe][1],
                                         is_swizzled_scales=swizzled)
                elif recipe == "torchao-rowwise":
                    continue
                else:
                    pts = per_tensor_amax_to_scale(v.abs().max()) if "torchao" in recipe else None
                    own = NVFP4Tensor.to_nvfp4(v, per_tensor_scale=pts, is_swizzled_scales=swizzled)
                for part in ("qdata", "scale"):
                    a, b = getattr(q, part), getattr(own, part)
                    assert a.shape == b.shape and a.dtype == b.dtype
                    count("torchao: bytes of its own codes and scales", a.view(torch.uint8),
                          b.view(torch.uint8))


def compressed_tensors(folder):
    from compressed_tensors.compressors.mx_utils import decompress_mx_scale
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle.forward import dequantize
    for recipe, args in (
            ("nvfp4", dict(num_bits=4, strategy="tensor_group", group_size=16)),
            ("mxfp4", dict(num_bits=4, strategy="group", group_size=32)),
            ("mxfp8:te", dict(num_bits=8, strategy="group", group_size=32)),
            ("e4m3/row", dict(num_bits=8, strategy="channel")),
            ("e4m3/128x128", dict(num_bits=8, strategy="block", block_structure=[128, 128]))):
        args = QuantizationArgs(type="float", symmetric=True, **args)
        stored, back = folder.written("m", recipe, "compressed-tensors")
        for name, read in back.items():
            scale = stored[name + "_scale"]
            scale = decompress_mx_scale(scale) if scale.dtype == torch.uint8 else scale
            codes = stored[name] if name in stored else unpack_fp4_from_uint8(
                stored[name + "_packed"], read.shape[0], read.shape[1], dtype=torch.float32)
            values = dequantize(codes.float(), scale.float(), args=args, dtype=torch.float32,
                                global_scale=stored.get(name + "_global_scale"))
            count("compressed-tensors: values", read, values)


def gpt_oss(folder):
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors
    stored, back = folder.written("x", "mxfp4", "gpt-oss")
    for name, read in back.items():
        blocks, scales = stored[name + "_blocks"], stored[name + "_scales"]
        if blocks.dim() == 3:
            blocks, scales, read = blocks[None], scales[None], read[None]
        values = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
        count("gpt-oss: values", read.transpose(1, 2), values)     # it gives them transposed


def deepseek(folder):
    stored, back = folder.written("m", "e4m3/128x128", "deepseek")
    for name, read in back.items():
        s = stored[name + "_scale_inv"].repeat_interleave(128, 0).repeat_interleave(128, 1)
        values = stored[name].float() * s[:read.shape[0], :read.shape[1]]
        count("deepseek: values", read, values)


def shape_function(root, path):
    """get_scale_shape of the quantizer in a file, alone."""
    tree = ast.parse(open(os.path.join(root, "transformer_engine/pytorch", path)).read())
    found = [n for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for n in c.body
             if getattr(n, "name", "") == "get_scale_shape"][0]
    found.returns = None
    for a in found.args.args:
        a.annotation = None
    space = {"math": math, "MXFP8_BLOCK_SCALING_SIZE": 32, "NVFP4_BLOCK_SCALING_SIZE": 16,
             "round_up_to_nearest_multiple": lambda n, m: -(-n // m) * m}
    exec(compile(ast.Module([found], []), path, "exec"), space)
    return space["get_scale_shape"]


def nvfp4_values(stored, name, shape):
    """TransformerEngine 2.20, common/cast/nvfp4/dequantize_nvfp4.cuh: the number of the code times
    f32(f32(block scale * amax) * f32(1 / (6 * 448)))."""
    grid = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])
    data = stored[name + ".rowwise_data"]
    codes = grid[torch.stack((data & 15, data >> 4), -1).long()].reshape(shape)
    scale = stored[name + ".rowwise_scale_inv"].view(E4).float()[:shape[0], :shape[1] // 16]
    scale = scale * stored[name + ".amax_rowwise"] * torch.tensor(1 / 2688, dtype=torch.float32)
    return codes * scale.repeat_interleave(16, 1)


def transformer_engine(folder, root):
    class Blocks:
        block_len, block_scaling_dim = 128, 2
    for recipe, file, block in (("mxfp8:te", "tensor/mxfp8_tensor.py", (1, 32)),
                                ("nvfp4", "tensor/nvfp4_tensor.py", (1, 16)),
                                ("te-block-128x128", "tensor/float8_blockwise_tensor.py", (128, 128))):
        shape = shape_function(root, file)
        plain = folder.cast("t", "plain", "-f", recipe)
        stored, back = folder.written("t", recipe, "te")
        wide = folder.cast("t", "wide", "-f", recipe, "--widen")
        for name, read in back.items():
            scale = next(v for k, v in stored.items() if k.startswith(name) and "scale_inv" in k)
            expected = shape(Blocks, read.shape, False)
            count("te: shapes of scales", torch.tensor(scale.shape), torch.tensor(expected))
            grid = plain[name + ".scale"]
            cut = scale[:grid.shape[0], :grid.shape[1]]
            count("te: scales without padding", cut.contiguous().view(torch.uint8),
                  grid.contiguous().view(torch.uint8))
            if recipe == "nvfp4":                  # its kernel rounds in another order than --widen
                count("te: values read back, by dequantize_nvfp4.cuh", read,
                      nvfp4_values(stored, name, read.shape))
            else:
                count("te: values read back", read, wide[name])


def main(program, te=None):
    torch.manual_seed(20262)

    def matrix(*shape):
        return torch.randn(shape) * torch.exp2(torch.randint(-6, 6, (*shape[:-1], 1)).float())
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(os.path.abspath(program), place)
        save_file({"a.weight": matrix(40, 96), "b.weight": matrix(130, 160),
                   "experts.weight": matrix(2, 128, 64)}, folder.path("x"))
        save_file({"a.weight": matrix(40, 96), "b.weight": matrix(130, 160)}, folder.path("m"))
        save_file({"a.weight": matrix(128, 256), "b.weight": matrix(384, 128)}, folder.path("t"))
        torchao(folder)
        compressed_tensors(folder)
        gpt_oss(folder)
        deepseek(folder)
        if te:
            transformer_engine(folder, te)
    for what, (n, wrong) in counts.items():
        print(f"{what}: {n - wrong} of {n} equal")
    return any(wrong for _, wrong in counts.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
