# SPDX-License-Identifier: Apache-2.0
"""A quantised checkpoint written by mpsim, read by torchao, written by torchao, read back by mpsim.

    python3 roundtrip.py MPSIM

Run with torch 2.15.0 on CPU, torchao 0.18.0, safetensors 0.8.0. A model of four matrices and four biases is cast in the
layout of torchao under each recipe, with plain and swizzled scales, and then
* safetensors.torch.load_file and torchao's unflatten_tensor_state_dict make MXTensor, NVFP4Tensor or Float8Tensor of it;
* what these dequantise is compared, bit by bit, with what `mpsim cast --widen` gives under the recipe;
* torchao's flatten_tensor_state_dict and save_file write it again: tensors and metadata are compared with mpsim's;
* mpsim reads both files (cast -f binary32): their values are compared with torchao's.
Values of recipes that are not torchao's own may differ in the last bit: TransformerEngine multiplies an NVFP4 code by the
block's scale times the tensor's amax / 2688, torchao by the block's scale times its own of the tensor; torchao's training divides by the scale, its tensor
multiplies by the reciprocal.
"""
import json
import os
import subprocess
import sys
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict, unflatten_tensor_state_dict

RECIPES = ("torchao-0.18-floor", "torchao-0.18-rceil", "mxfp8:floor", "mxfp8:rceil", "mxfp8", "mxfp8-e5m2", "mxfp6-e2m3",
           "mxfp6-e3m2", "mxfp4", "nvfp4-torchao", "nvfp4-torchao:1level", "nvfp4", "nvfp4:2d", "torchao-rowwise",
           "torchao-tensorwise", "e4m3/row", "e4m3/16x16")
BLOCKS = {"torchao-rowwise", "torchao-tensorwise", "e4m3/row", "e4m3/16x16"}  # binary32 scales are never swizzled


def model():
    g = torch.Generator().manual_seed(5)
    out = {}
    for i, (rows, cols) in enumerate([(64, 128), (96, 64), (144, 192), (160, 64)]):
        x = torch.randn(rows, cols, generator=g) * torch.exp2(torch.randint(-6, 7, (rows, 1), generator=g).float())
        x[torch.rand(rows, cols, generator=g) < 0.03] = 0
        x[3] = 0
        out[f"layers.{i}.weight"] = x
        out[f"layers.{i}.bias"] = torch.randn(rows, generator=g).bfloat16()
    return out


def bits(t):
    return t.contiguous().reshape(-1).view({4: torch.int32, 2: torch.int16, 1: torch.uint8}[t.element_size()])


def differ(a, b):
    return sum(int((bits(a[k]) != bits(b[k])).sum()) for k in a)


def values(state):
    return {k: t.dequantize(torch.float32) if hasattr(t, "qdata") else t for k, t in state.items()}


def main(mpsim):
    total = {"values": 0, "bytes": 0}
    with tempfile.TemporaryDirectory() as d:
        f = {k: os.path.join(d, k + ".safetensors") for k in ("model", "q", "wide", "again", "read")}
        save_file(model(), f["model"])

        def cast(*words):
            subprocess.run([mpsim, "cast", "-q", *words], check=True)

        for recipe in RECIPES:
            for order in ("plain",) if recipe in BLOCKS else ("plain", "swizzled"):
                cast("-f", recipe, "--quantised", "torchao", "--scale-order", order, "-o", f["q"], f["model"])
                cast("-f", recipe, "--widen", "-o", f["wide"], f["model"])
                with safe_open(f["q"], "pt") as q:
                    meta = q.metadata()
                flat = load_file(f["q"])
                state, left = unflatten_tensor_state_dict(flat, meta)
                read, wide = values(state), load_file(f["wide"])
                flat2, meta2 = flatten_tensor_state_dict(state)
                assert not left and set(flat2) == set(flat) and differ(flat2, flat) == 0
                assert all(json.loads(meta[k]) == v for k, v in ((k, json.loads(v)) for k, v in meta2.items()))
                save_file(flat2, f["again"], meta2)
                back = []
                for name in ("q", "again"):
                    cast("-f", "binary32", "-o", f["read"], f[name])
                    back.append(differ({k: t.float() for k, t in read.items()}, load_file(f["read"])))
                n = sum(t.numel() for t in read.values())
                total["values"] += n
                total["bytes"] += sum(t.numel() * t.element_size() for t in flat.values())
                classes = sorted({type(t).__name__ for t in state.values() if hasattr(t, "qdata")})
                print(f"{recipe:22s} {order:9s} {classes[0]:13s} {n} values: {differ(read, wide)} differ from --widen; "
                      f"read by mpsim from its own file: {back[0]} differ, from torchao's: {back[1]}")
    print(total)


if __name__ == "__main__":
    main(*sys.argv[1:])
