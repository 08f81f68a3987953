# SPDX-License-Identifier: Apache-2.0
"""Record torch.optim.Adafactor step by step.

    python3 record_adafactor.py DIR                                (writes DIR/adafactor.safetensors)
    ATEN_CPU_CAPABILITY=default python3 record_adafactor.py DIR    (writes DIR/adafactor-default.safetensors)

Recorded with torch 2.15.0 on CPU (AVX2), foreach=False, float32, one thread. The file format is that of
../optim-lowp/record_lowp.py; `shape=RxC` among the words of a case, and moments as the optimizer keeps them:
m.T are row_var, v.T col_var or, of vectors, variance.
"""
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "optim-lowp"))
import record_lowp as lowp  # noqa: E402

SEED, STEPS = 20261, 5
GIVEN = {"plain": dict(lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0),
         "decay": dict(lr=0.5, beta2_decay=-0.5, eps=(1e-6, 1e-2), d=2.0, weight_decay=0.1),
         "maximize": dict(lr=3e-3, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.01, maximize=True)}
SHAPES = [(67,), (1,), (8, 8), (5, 37), (37, 5), (1, 9), (9, 1), (2, 3, 4, 5)]


def record(directory):
    torch.set_num_threads(1)
    capability = os.environ.get("ATEN_CPU_CAPABILITY", "")
    rng, tensors = np.random.default_rng(SEED), {}
    meta = {"recorder": "data/vectors/optim-adafactor/record_adafactor.py"}
    for kind, given in GIVEN.items():
        for shape in SHAPES:
            case = kind + "-" + "x".join(map(str, shape))
            start = (rng.normal(size=shape) * 2.0 ** rng.integers(-6, 2, shape)).astype(np.float32)
            p = torch.nn.Parameter(torch.from_numpy(start.copy()))
            opt = torch.optim.Adafactor([p], foreach=False, **given)
            tensors[f"{case}/p.0"] = ("F32", start.reshape(-1))
            for t in range(1, STEPS + 1):
                g = (rng.normal(size=shape) * 2.0 ** rng.integers(-12, 1, shape)).astype(np.float32)
                if t == 3:
                    g.reshape(-1)[:1] = 0
                if t == 4:
                    g *= np.float32(2.0 ** -40)
                p.grad = torch.from_numpy(g.copy())
                opt.step()
                tensors[f"{case}/g.{t}"] = ("F32", g.reshape(-1))
                tensors[f"{case}/p.{t}"] = ("F32", p.detach().numpy().reshape(-1).copy())
                for key, letter in (("row_var", "m"), ("col_var", "v"), ("variance", "v")):
                    if key in opt.state[p]:
                        tensors[f"{case}/{letter}.{t}"] = ("F32", opt.state[p][key].numpy().reshape(-1).copy())
            numbers = dict(given)
            eps, numbers["eps2"] = numbers.pop("eps")
            numbers["eps"] = eps if eps is not None else torch.finfo(torch.float32).eps
            meta[case] = lowp.words(optimizer="adafactor", impl="forloop", torch=torch.__version__.split("+")[0],
                                    shape="x".join(map(str, shape)), dtype="f32", **numbers, steps=STEPS)
    name = "adafactor" + ("-" + capability if capability else "") + ".safetensors"
    lowp.save(os.path.join(directory, name), tensors, meta)


if __name__ == "__main__":
    record(sys.argv[1])
