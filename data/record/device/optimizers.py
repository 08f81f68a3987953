# SPDX-License-Identifier: Apache-2.0
"""Optimizers: which operations are contracted, divided, rounded?

1003 parameters of stream 3 (exponents -6 to -1); the gradient of step t is of stream 3 + t (exponents -9 to 0). After each
of five steps a digest of parameters and of states, and 16 parameters in full. mpsim has a variant for each
implementation (mpsim/optim.h); the reader says which one gives these digests.
"""
import torch

from session import digest, hexadecimal

N, STEPS = 1003, 5
IMPLEMENTATIONS = {"forloop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True},
                   "capturable": {"foreach": False, "capturable": True},
                   "capturable-foreach": {"foreach": True, "capturable": True}}
OPTIMIZERS = {"sgd": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.01}),
              "adam": (torch.optim.Adam, {"lr": 0.01, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.01}),
              "adamw": (torch.optim.AdamW, {"lr": 0.01, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1})}
STATES = {"m": ("momentum_buffer", "exp_avg"), "v": ("exp_avg_sq",)}


def state_of(optimizer, p):
    found = {}
    for letter, keys in STATES.items():
        for key in keys:
            if isinstance(optimizer.state[p].get(key), torch.Tensor):
                found[letter] = optimizer.state[p][key]
    return found


def steps(s, make, dtype, sizes=(N,)):
    p = torch.nn.Parameter(s.draw(dtype, sizes, 3, -6, 0))
    optimizer, after = make([p]), []
    for t in range(1, STEPS + 1):
        p.grad = s.draw(dtype, sizes, 3 + t, -9, 1)
        optimizer.step()
        after.append({"p": digest(p), "sample": hexadecimal(p.detach().flatten()[:16]),
                      **{k: digest(v) for k, v in state_of(optimizer, p).items()}})
    return {"n": p.numel(), "after": after}


def plain(options):
    facts = dict(options)
    if "betas" in facts:
        facts["beta1"], facts["beta2"] = facts.pop("betas")
    return facts


def stochastic(s):
    """torchao's AdamW: its random numbers are torch's, of seed 1."""
    try:
        from torchao.optim import AdamW
    except ImportError as e:
        s.answer("adamw torchao-stochastic bfloat16", refused=f"torchao is not here: {e}")
        return
    torch.manual_seed(1)
    options = OPTIMIZERS["adamw"][1]
    s.try_answer("adamw torchao-stochastic bfloat16", lambda: {
        "optimizer": "adamw", "seed": 1, "options": plain(options),
        **steps(s, lambda p: AdamW(p, bf16_stochastic_round=True, **options), "bfloat16", (17, 59))})


def ask(s):
    if s.device == "cpu":
        from deterministic import ieee_sqrt      # not all of MKL's are
        ieee_sqrt()
    for name, (cls, options) in OPTIMIZERS.items():
        for implementation, how in IMPLEMENTATIONS.items():
            if name == "sgd" and "capturable" in how:
                continue
            for dtype in ("float32", "bfloat16"):
                s.try_answer(f"{name} {implementation} {dtype}", lambda: {
                    "optimizer": name, "implementation": implementation, "options": plain(options),
                    **steps(s, lambda p: cls(p, **options, **how), dtype)})
    stochastic(s)
