"""Records weights that are packed integers as GPTQ, AWQ and bitsandbytes store them (packed.safetensors, gptq-v2), and the
numbers that they stand for in binary32 (values.txt, as record.py does it).

    python -m venv v && v/bin/pip install torch --index-url https://download.pytorch.org/whl/cpu
    v/bin/pip install bitsandbytes==0.50.2 compressed-tensors==0.20.0 transformers==5.23.0 safetensors numpy
    v/bin/python record_packed.py

compressed-tensors 0.20 packs (pack_to_int32) and dequantises (quantization.lifecycle.forward.dequantize of scales of float32)
itself. bitsandbytes 0.50.2 packs and dequantises itself: functional.quantize_4bit and QuantState.as_dict(packed=True);
dequantize_4bit of a state of float32; int8_vectorwise_quant and _dequant. Its kernel gives -0 for code 8 of FP4, its Python code
the table's +0, as here: the digests are of the latter. GPTQ and AWQ are stated in NumPy, from the facts: codes and zeros are
streams of bits (AutoGPTQ 0.7, nn_modules/qlinear/qlinear_cuda_old.py), w = scale (code - (zero + 1)), and zero without the 1
in checkpoints of format gptq_v2 (GPTQModel, utils/model.py); AWQ has eight columns in a word in the order 0 2 4 6 1 3 5 7
(AutoAWQ 0.2, utils/packing_utils.py), w = scale (code - zero). Weights are transposed there."""

import hashlib
import os

import bitsandbytes.functional as bnb
import numpy as np
import torch
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import Fp8Dequantize

HERE = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(20261123)
torch.manual_seed(1)
tensors, values = {}, []


def value(file, name, x):
    x = np.ascontiguousarray(x, dtype=np.float32)
    bits = np.where(np.isnan(x), np.uint32(0x7FC00000), x.view(np.uint32)).astype("<u4")
    values.append("\t".join([file, name, ",".join(map(str, x.shape)), hashlib.sha256(bits.tobytes()).hexdigest()]))


def stream(codes, bits):
    """(n, columns) -> int32 (n bits / 32, columns)."""
    n, columns = codes.shape
    one = ((codes[:, None, :] >> np.arange(bits)[None, :, None]) & 1).reshape(n * bits // 32, 32, columns)
    return (one.astype(np.uint64) << np.arange(32, dtype=np.uint64)[None, :, None]).sum(1).astype(np.uint32).view(np.int32)


def gptq(name, bits, ins, outs, groups, act, dtype, v2=False):
    codes, zeros = rng.integers(0, 2**bits, (ins, outs)), rng.integers(0, 2**bits, (groups, outs))
    scales = torch.tensor(rng.standard_normal((groups, outs)) / 64).to(dtype)
    of = np.arange(ins) // -(-ins // groups)
    of = rng.permutation(of) if act else of
    t = {"qweight": torch.tensor(stream(codes, bits)), "qzeros": torch.tensor(stream(zeros.T, bits).T.copy()), "scales": scales}
    if act is not None:
        t["g_idx"] = torch.tensor(of, dtype=torch.int32)
    x = scales.float().numpy()[of] * (codes - zeros[of] - (0 if v2 else 1)).astype(np.float32)
    return {f"{name}.{k}": v for k, v in t.items()}, x.T


def awq(name, ins, outs, groups):
    def words(a):
        w = np.zeros((a.shape[0], a.shape[1] // 8), np.uint32)
        for i, column in enumerate((0, 2, 4, 6, 1, 3, 5, 7)):
            w |= a[:, column::8].astype(np.uint32) << np.uint32(4 * i)
        return torch.tensor(w.view(np.int32))
    codes, zeros = rng.integers(0, 16, (ins, outs)), rng.integers(0, 16, (groups, outs))
    scales = torch.tensor((rng.standard_normal((groups, outs)) / 64).astype(np.float16))
    of = np.arange(ins) // (ins // groups)
    t = {f"{name}.qweight": words(codes), f"{name}.qzeros": words(zeros), f"{name}.scales": scales}
    return t, (scales.float().numpy()[of] * (codes - zeros[of]).astype(np.float32)).T


for name, *how in (("two", 2, 64, 32, 2, 0), ("three", 3, 96, 32, 3, 1), ("four", 4, 72, 40, 3, None), ("eight", 8, 64, 20, 4, 1)):
    t, x = gptq(f"gptq.{name}", *how, {"two": torch.float32, "three": torch.bfloat16}.get(name, torch.float16))
    tensors |= t
    value("packed.safetensors", f"gptq.{name}.weight", x)
t, x = awq("awq", 96, 40, 3)
tensors |= t
value("packed.safetensors", "awq.weight", x)
for kind in "nf4", "fp4":
    for nested in False, True:
        name = f"bnb.{kind}{'.nested' if nested else ''}.weight"
        codes, state = bnb.quantize_4bit(torch.randn(33, 65) / 50, blocksize=64, compress_statistics=nested, quant_type=kind)
        tensors |= {name: codes} | {f"{name}.{k}": v for k, v in state.as_dict(packed=True).items()}
        x = bnb.dequantize_4bit(codes, state).float().numpy()
        value("packed.safetensors", name, x + np.float32(0) if kind == "fp4" else x)
w = torch.randn(24, 40).half()
codes, scb, _ = bnb.int8_vectorwise_quant(w)
tensors |= {"bnb.int8.weight": codes, "bnb.int8.SCB": scb.float(), "bnb.int8.weight_format": torch.tensor(0, dtype=torch.uint8)}
value("packed.safetensors", "bnb.int8.weight", bnb.int8_vectorwise_dequant(codes, scb).float().numpy())
for name, bits, outs, ins, group, symmetric in (("four", 4, 24, 64, 32, True), ("three", 3, 33, 96, 48, False),
                                               ("eight", 8, 17, 50, None, False), ("int8", 8, 12, 40, None, True)):
    args = QuantizationArgs(num_bits=bits, symmetric=symmetric, strategy="group" if group else "channel", group_size=group)
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
    codes = torch.randint(low, high, (outs, ins), dtype=torch.int8)
    scales = (torch.randn(outs, ins // group if group else 1) / 64).bfloat16()
    zeros = None if symmetric else torch.randint(low, high, scales.shape, dtype=torch.int8)
    m = f"ct.{name}."
    tensors |= {m + "weight_scale": scales} | ({m + "weight": codes} if name == "int8" else
               {m + "weight_packed": pack_to_int32(codes, bits), m + "weight_shape": torch.tensor(codes.shape)})
    if zeros is not None:
        tensors[m + "weight_zero_point"] = pack_to_int32(zeros, bits, packed_dim=0)
    value("packed.safetensors", m + "weight", dequantize(codes, scales.float(), zeros, args).numpy())
dequantise = Fp8Dequantize(None)._dequantize_one  # of DeepSeek-V4's names; the scales' grid tells the blocks there
for name, codes, grid in (("v4.wq", torch.randn(6, 10).to(torch.float8_e4m3fn), (1, 1)),
                          ("v4.experts.0.w1", torch.randint(-128, 128, (3, 32), dtype=torch.int8), (3, 2))):
    scales = torch.exp2(torch.randint(-9, 3, grid).float()).to(torch.float8_e8m0fnu)
    tensors |= {f"{name}.weight": codes, f"{name}.scale": scales}
    value("packed.safetensors", f"{name}.weight", dequantise(codes, scales, torch.float32).numpy())
save_file({k: v.contiguous() for k, v in tensors.items()}, f"{HERE}/packed.safetensors")

t, x = gptq("m", 4, 32, 8, 1, None, torch.float16, v2=True)
os.makedirs(f"{HERE}/gptq-v2", exist_ok=True)
save_file({k: v.contiguous() for k, v in t.items()}, f"{HERE}/gptq-v2/model.safetensors")
with open(f"{HERE}/gptq-v2/config.json", "w") as f:
    f.write('{"quantization_config": {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"}}\n')
value("gptq-v2/model.safetensors", "m.weight", x)

with open(f"{HERE}/values.txt") as f:
    kept = [line for line in f.read().splitlines() if not line.startswith(("packed.", "gptq-v2/"))]
with open(f"{HERE}/values.txt", "w") as f:
    f.write("\n".join(kept + values) + "\n")
