# SPDX-License-Identifier: Apache-2.0
"""Record lion-pytorch's Lion step by step.

    python3 record_lion.py DIR                                 (writes DIR/lion.safetensors)
    ATEN_CPU_CAPABILITY=default python3 record_lion.py DIR     (writes DIR/lion-default.safetensors)

Recorded with lion-pytorch 0.2.5 and torch 2.15.0 on CPU (AVX2); one thread, use_triton=False. Inputs and
the file format are those of ../optim-lowp/record_lowp.py, with gradients and moments that are NaN or infinite.
"""
import importlib.metadata
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "optim-lowp"))
import record_lowp as lowp  # noqa: E402

GIVEN = {"lion": dict(lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0),
         "lion_decay": dict(lr=3e-3, betas=(0.95, 0.98), weight_decay=0.1),
         "lion_large": dict(lr=0.125, betas=(0.4, 0.7), weight_decay=1.0)}


def record(directory):
    import lion_pytorch
    torch.set_num_threads(1)
    capability = os.environ.get("ATEN_CPU_CAPABILITY", "")
    out = lowp.File("lion-pytorch", importlib.metadata.version("lion-pytorch"))
    out.meta["recorder"] = "data/vectors/optim-lion/record_lion.py"
    plain = lowp.inputs

    def inputs(dtype):
        p, gs = plain(dtype)
        for g in gs[1:3]:
            g[50:54] = [np.nan, np.inf, -np.inf, -0.0]
        gs[3][51] = -np.inf                              # the moment is infinite by then: NaN
        return p, gs

    lowp.inputs = inputs
    for kind, given in GIVEN.items():
        for dtype in ("bf16", "f32"):
            out.run(f"{kind}-{dtype}", dtype, lambda p: lion_pytorch.Lion([p], **given), {"exp_avg": "m"})
            numbers = dict(given)
            numbers["beta1"], numbers["beta2"] = numbers.pop("betas")
            out.meta[f"{kind}-{dtype}"] = lowp.words(optimizer="lion", **out.common, dtype=dtype, **numbers,
                                                     steps=lowp.STEPS, n=lowp.N, seed=lowp.SEED)
    name = "lion" + ("-" + capability if capability else "") + ".safetensors"
    lowp.save(os.path.join(directory, name), out.tensors, out.meta)


if __name__ == "__main__":
    record(sys.argv[1])
