# SPDX-License-Identifier: Apache-2.0
"""Fused optimizers: which elements does the compiler contract otherwise than their neighbours?

A thread of these kernels has four elements, and what the compiler makes of them differs. Parameters, gradients and digests
are those of optimizers.py, but for two steps and other sizes: 1003 and 4099 are taken a number at a time, 512 places apart,
4096 by vectors of four, 70000 in two chunks. `m`, `v`, `p` are lists: of the elements whose place, divided by 512 for the
first two sizes, leaves 0, 1, 2 or 3 when divided by 4; a digest of each, its elements in order.
"""
import torch

from optimizers import STATES
from session import digest

SIZES = (1003, 4099, 4096, 70000)
OPTIONS = {
    "adam": (torch.optim.Adam, {"weight_decay": 0.01}), "adam amsgrad": (torch.optim.Adam, {"amsgrad": True}),
    "adam maximize": (torch.optim.Adam, {"weight_decay": 0.01, "maximize": True}),
    "adamw": (torch.optim.AdamW, {"weight_decay": 0.1}),
    "sgd": (torch.optim.SGD, {"weight_decay": 0.01, "momentum": 0.9}),
    "sgd dampening": (torch.optim.SGD, {"momentum": 0.9, "dampening": 0.3}),
    "sgd nesterov": (torch.optim.SGD, {"weight_decay": 0.01, "momentum": 0.9, "nesterov": True}),
    "sgd plain": (torch.optim.SGD, {"weight_decay": 0.01}),
}
ADAM = {"lr": 0.01, "betas": (0.9, 0.95), "eps": 1e-8}


def quarters(x):
    x = x.detach().flatten()
    place = torch.arange(x.numel(), device=x.device)
    turn = (place // 512 if x.numel() % 4 else place) % 4
    return [digest(x[turn == i]) for i in range(4)]


def look(s, cls, options, dtype, n, scale):
    more = {"lr": 0.01} if cls is torch.optim.SGD else ADAM
    p = torch.nn.Parameter(s.draw(dtype, (n,), 3, -6, 0))
    optimizer, after = cls([p], fused=True, **more, **options), []
    for t in (1, 2):
        p.grad = s.draw(dtype, (n,), 3 + t, -9, 1)
        if scale != 1:                           # as GradScaler hands them over
            optimizer.grad_scale = torch.tensor(scale, device=s.device)
            optimizer.found_inf = torch.tensor(0.0, device=s.device)
        optimizer.step()
        state = {letter: optimizer.state[p][key] for letter, keys in {**STATES, "vmax": ("max_exp_avg_sq",)}.items()
                 for key in keys if isinstance(optimizer.state[p].get(key), torch.Tensor)}
        after.append({"p": quarters(p), **{k: quarters(x) for k, x in state.items()}})
    return {"n": n, "options": {**{k: v for k, v in more.items() if k != "betas"}, **options}, "scale": scale,
            "after": after}


def ask(s):
    for dtype in ("float32", "bfloat16", "float16"):
        for n in SIZES[:1] if s.quick or dtype != "float32" else SIZES:
            for name, (cls, options) in OPTIONS.items():
                for scale in (1, 1000.0) if name in ("adam", "sgd") else (1,):
                    s.try_answer(f"{name} {dtype} {n} scale {scale:g}", lambda: look(s, cls, options, dtype, n, scale))
