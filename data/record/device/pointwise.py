# SPDX-License-Identifier: Apache-2.0
"""Operations on elements that optimizers, scalers and clipping are made of: which are contracted, which scalars are rounded?

4099 numbers each of x, y, z, streams 80, 81, 82, exponents -6 to 5; r is |y|, where a root is taken or a divisor wanted.
Results: a digest and eight in full. Each operation also as foreach does it for a list, which has kernels of its own.
"""
import torch

from session import digest, hexadecimal

N, S = 4099, 0.3
ALONE = {
    "add": lambda x, y, z, r: torch.add(x, y, alpha=S), "sub": lambda x, y, z, r: torch.sub(x, y, alpha=S),
    "add scalar": lambda x, y, z, r: x + S, "mul scalar": lambda x, y, z, r: x * S,
    "div scalar": lambda x, y, z, r: x / S, "div": lambda x, y, z, r: x / r, "scalar div": lambda x, y, z, r: S / r,
    "div 0-dim": lambda x, y, z, r: x / torch.tensor(S, device=x.device),
    "mul 0-dim": lambda x, y, z, r: x * torch.tensor(S, device=x.device),
    "addcmul": lambda x, y, z, r: torch.addcmul(x, y, z, value=S),
    "addcmul 1": lambda x, y, z, r: torch.addcmul(x, y, z),
    "addcdiv": lambda x, y, z, r: torch.addcdiv(x, z, r, value=S),
    "addcdiv 1": lambda x, y, z, r: torch.addcdiv(x, z, r),
    "lerp 0.1": lambda x, y, z, r: torch.lerp(x, y, 0.1), "lerp 0.9": lambda x, y, z, r: torch.lerp(x, y, 0.9),
    "sqrt": lambda x, y, z, r: torch.sqrt(r), "rsqrt": lambda x, y, z, r: torch.rsqrt(r),
    "reciprocal": lambda x, y, z, r: torch.reciprocal(r), "pow 0.5": lambda x, y, z, r: r ** 0.5,
    "pow 2": lambda x, y, z, r: x ** 2, "pow 3": lambda x, y, z, r: x ** 3,
}
LISTS = {
    "add": lambda x, y, z, r: torch._foreach_add([x], [y], alpha=S),
    "sub": lambda x, y, z, r: torch._foreach_sub([x], [y], alpha=S),
    "add scalar": lambda x, y, z, r: torch._foreach_add([x], S), "mul scalar": lambda x, y, z, r: torch._foreach_mul([x], S),
    "div scalar": lambda x, y, z, r: torch._foreach_div([x], S), "div": lambda x, y, z, r: torch._foreach_div([x], [r]),
    "mul list": lambda x, y, z, r: torch._foreach_mul([x], [S]), "div list": lambda x, y, z, r: torch._foreach_div([x], [S]),
    "mul 0-dim": lambda x, y, z, r: torch._foreach_mul([x], torch.tensor(S, device=x.device)),
    "addcmul": lambda x, y, z, r: torch._foreach_addcmul([x], [y], [z], value=S),
    "addcmul list": lambda x, y, z, r: torch._foreach_addcmul([x], [y], [z], [S]),
    "addcdiv": lambda x, y, z, r: torch._foreach_addcdiv([x], [z], [r], value=S),
    "addcdiv list": lambda x, y, z, r: torch._foreach_addcdiv([x], [z], [r], [S]),
    "lerp 0.1": lambda x, y, z, r: torch._foreach_lerp([x], [y], 0.1),
    "lerp 0.9": lambda x, y, z, r: torch._foreach_lerp([x], [y], 0.9),
    "sqrt": lambda x, y, z, r: torch._foreach_sqrt([r]), "reciprocal": lambda x, y, z, r: torch._foreach_reciprocal([r]),
    "pow 2": lambda x, y, z, r: torch._foreach_pow([x], 2), "pow 3": lambda x, y, z, r: torch._foreach_pow([x], 3),
}


def unscaled(x, scale):
    """As GradScaler does it: times the reciprocal of the scale."""
    x, found = x.clone(), torch.zeros((), device=x.device)
    inverse = torch.tensor(scale, device=x.device).double().reciprocal().float()
    torch._amp_foreach_non_finite_check_and_unscale_([x], found, inverse)
    return x


def clipped(x, foreach):
    """What clip_grad_norm_ leaves, and the norm that it returns."""
    p = torch.nn.Parameter(x.clone())
    p.grad = x.clone()
    norm = torch.nn.utils.clip_grad_norm_([p], 1.0, foreach=foreach)
    return p.grad, norm


def facts(y):
    return {"n": y.numel(), "digest": digest(y), "sample": hexadecimal(y.flatten()[:8])}


def clip_facts(x, foreach):
    y, norm = clipped(x, foreach)
    return {**facts(y), "norm": hexadecimal(norm.reshape(1))}


def ask(s):
    for dtype in ("float32", "bfloat16", "float16"):
        x, y, z = (s.draw(dtype, (N,), 80 + i, -6, 6) for i in range(3))
        for name, function in ALONE.items():
            s.try_answer(f"{name}: {dtype}", lambda: facts(function(x, y, z, y.abs())))
        for name, function in LISTS.items():
            s.try_answer(f"foreach {name}: {dtype}", lambda: facts(function(x, y, z, y.abs())[0]))
        for scale in (3.0, 65536.0):
            s.try_answer(f"unscale {scale:g}: {dtype}", lambda: facts(unscaled(x, scale)))
        for foreach in (False, True):
            s.try_answer(f"clip {'foreach' if foreach else 'for-loop'}: {dtype}", lambda: clip_facts(x, foreach))
