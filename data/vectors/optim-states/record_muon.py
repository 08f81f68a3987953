# SPDX-License-Identifier: Apache-2.0
"""Record Muon: torch.optim.Muon, and Newton and Schulz's iteration of both of its forms.

    python3 record_muon.py .          (writes muon.safetensors, muon-bf16.safetensors)

Recorded with torch 2.15.0 on CPU. Products of torch's CPU libraries add in an order of their own, so here they are
exact sums rounded to float32 once (float64 holds them), which is model `exact`; all else is torch's: momentum, norm,
division, rounding to bfloat16, weight decay, the update. KELLER is KellerJordan/Muon's iteration, whose operations on
bfloat16 tensors are torch's. wide.*: the same iteration of torch.optim.Muon in float64, its own products.
Inputs: numpy.random.default_rng(SEED).
"""
import sys

import numpy as np
import torch
import torch.optim._muon as muon

from record_states import save

SEED, STEPS = 20264, 2
SHAPES = {"wide": (8, 24), "tall": (21, 10), "square": (16, 16)}
A, B, C = 3.4445, -4.7750, 2.0315


def product(a, b):
    return (a.double() @ b.double()).float()


def addmm(c, a, b, *, beta, alpha=1):
    return (product(a, b) * alpha + c.float() * beta).to(c.dtype)


class Exact(torch.Tensor):
    """A tensor whose products are exact sums."""
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            plain = [a.as_subclass(torch.Tensor) if isinstance(a, Exact) else a for a in args]
            if func in (torch.Tensor.__matmul__, torch.matmul):
                out = product(*plain).to(plain[0].dtype)
            elif func is torch.addmm:
                out = addmm(*plain, **kwargs)
            else:
                out = func(*plain, **(kwargs or {}))
            return out.as_subclass(Exact) if isinstance(out, torch.Tensor) else out


def keller(g, steps=5):
    """KellerJordan/Muon @00ba60d3, zeropower_via_newtonschulz5: its operations, on a matrix."""
    x = g.bfloat16()
    x = x.mT if g.size(-2) > g.size(-1) else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = product(x, x.mT).bfloat16()
        b = B * gram + product(C * gram, gram).bfloat16()
        x = A * x + product(b, x).bfloat16()
    return x.mT if g.size(-2) > g.size(-1) else x


def record(directory):
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED)
    iterate = muon._zeropower_via_newtonschulz
    exact = lambda g, *rest: iterate(g.as_subclass(Exact), *rest).as_subclass(torch.Tensor)
    out, meta = {}, {"mpsim.recorder": "data/vectors/optim-states/record_muon.py",
                     "mpsim.framework": "torch " + torch.__version__.split("+")[0]}
    for name, (rows, columns) in SHAPES.items():
        p0 = rng.normal(size=(rows, columns)).astype(np.float32) * 0.1
        for scale, nesterov in (("original", True), ("match_rms_adamw", False)):
            case = f"{name}-{scale}"
            p = torch.nn.Parameter(torch.from_numpy(p0.copy()))
            opt = torch.optim.Muon([p], lr=0.02, weight_decay=0.1, momentum=0.95, nesterov=nesterov, adjust_lr_fn=scale)
            meta[case] = (f"rows={rows} columns={columns} lr=0.02 weight_decay=0.1 momentum=0.95 "
                          f"nesterov={int(nesterov)} scale={scale}")
            out[f"{case}/p.0"] = p0
            for t in range(1, STEPS + 1):
                g = (rng.normal(size=p0.shape) * 10.0 ** rng.uniform(-3, 0)).astype(np.float32)
                out[f"{case}/g.{t}"] = g
                p.grad = torch.from_numpy(g.copy())
                seen = []
                muon._zeropower_via_newtonschulz = lambda u, *rest: seen.append(u.clone()) or exact(u, *rest)
                opt.step()
                out[f"{case}/p.{t}"] = p.detach().numpy().copy()
                out[f"{case}/m.{t}"] = opt.state[p]["momentum_buffer"].numpy().copy()
        u = seen[-1]
        out[f"{name}/u"] = u.numpy().copy()
        out[f"{name}/torch"] = exact(u, (A, B, C), 5, 1e-7).float().numpy().copy()
        out[f"{name}/plain"] = iterate(u, (A, B, C), 5, 1e-7).float().numpy().copy()
        out[f"{name}/keller"] = keller(u).float().numpy().copy()
        bf16, torch.bfloat16 = torch.bfloat16, torch.float64
        out[f"{name}/double"] = iterate(u.double(), (A, B, C), 5, 1e-7).numpy().astype(np.float32)
        torch.bfloat16 = bf16
        meta[name] = f"rows={rows} columns={columns} iteration=1"
    save(f"{directory}/muon.safetensors", out, meta)


def record_bf16(directory):
    """Parameters of bfloat16: where the update is a transposed view, torch adds it by scalars."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(SEED + 1)
    iterate = muon._zeropower_via_newtonschulz
    muon._zeropower_via_newtonschulz = lambda u, *rest: iterate(u.as_subclass(Exact), *rest).as_subclass(torch.Tensor)
    out, meta = {}, {"mpsim.recorder": "data/vectors/optim-states/record_muon.py",
                     "mpsim.framework": "torch " + torch.__version__.split("+")[0]}
    for name, (rows, columns) in {"wide": (16, 24), "tall": (24, 16), "column": (40, 1), "odd": (37, 13)}.items():
        p = torch.nn.Parameter(torch.from_numpy(rng.normal(size=(rows, columns)) * 0.1).bfloat16())
        opt = torch.optim.Muon([p], lr=0.02, weight_decay=0.1, momentum=0.95, nesterov=True)
        meta[name] = f"rows={rows} columns={columns} lr=0.02 weight_decay=0.1 momentum=0.95 nesterov=1 scale=original param=bf16"
        out[f"{name}/p.0"] = p.detach().float().numpy().copy()
        for t in range(1, STEPS + 1):
            p.grad = torch.from_numpy(rng.normal(size=(rows, columns)) * 10.0 ** rng.uniform(-3, 0)).bfloat16()
            out[f"{name}/g.{t}"] = p.grad.float().numpy().copy()
            opt.step()
            out[f"{name}/p.{t}"] = p.detach().float().numpy().copy()
            out[f"{name}/m.{t}"] = opt.state[p]["momentum_buffer"].float().numpy().copy()
    muon._zeropower_via_newtonschulz = iterate
    save(f"{directory}/muon-bf16.safetensors", out, meta)


if __name__ == "__main__":
    record(sys.argv[1])
    record_bf16(sys.argv[1])
