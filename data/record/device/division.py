# SPDX-License-Identifier: Apache-2.0
"""Division in Triton, which DeepSeek-V3's act_quant is written in: is x / s rounded correctly?

Quotients of binary32 by `x / s` and by the function that asks for IEEE's (div_rn), of a million numbers of streams 70
(exponents -20 to 20) and 71 (-10 to 10), and of 1024 blocks of 128 as act_quant makes them: s = max |x| / 448, codes of
x / s. The same by torch's own operations. Triton has no CPU; its interpreter (TRITON_INTERPRET=1) only tries the code.
"""
import os

import torch

from session import digest, hexadecimal, ulps_apart

try:
    import triton
    import triton.language as tl

    @triton.jit
    def divide(x, y, out, n, RN: tl.constexpr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a, b = tl.load(x + at, mask=at < n, other=1.0), tl.load(y + at, mask=at < n, other=1.0)
        tl.store(out + at, tl.div_rn(a, b) if RN else a / b, mask=at < n)

    @triton.jit
    def quantise(x, codes, scales, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a = tl.load(x + at).to(tl.float32)
        s = tl.max(tl.abs(a)) / 448.0
        tl.store(codes + at, (a / s).to(codes.dtype.element_ty))
        tl.store(scales + tl.program_id(0), s)
except ImportError:
    triton = None


def quotients(s, how):
    n = 1 << 14 if s.quick else 1 << 20
    x, y = s.draw("float32", (n,), 70, -20, 21), s.draw("float32", (n,), 71, -10, 11)
    out, compiled = torch.empty_like(x), None
    if how == "torch":
        out = x / y
    else:
        compiled = divide[(n // 1024,)](x, y, out, n, RN=how == "div_rn", BLOCK=1024)
    apart = ulps_apart(out, x.cpu().double() / y.cpu().double())
    ptx = getattr(compiled, "asm", {}).get("ptx", "") if compiled is not None else ""
    return {"n": n, "streams": [70, 71], "digest": digest(out), "sample": hexadecimal(out[:16]),
            "not nearest": int((apart > 0.5 + 1e-7).sum()), "largest": round(apart.max().item(), 4),
            "instructions": sorted({w for w in ptx.split() if w.startswith(("div.", "rcp."))})}


def blocks(s, dtype, how):
    n = 1024 * 128
    x = s.draw(dtype, (n,), 72, -8, 4)
    codes = torch.empty(n, dtype=torch.float8_e4m3fn, device=s.device)
    scales = torch.empty(n // 128, dtype=torch.float32, device=s.device)
    if how == "torch":
        wide = x.float().reshape(-1, 128)
        scales = wide.abs().amax(1) / 448.0
        codes = (wide / scales[:, None]).to(codes.dtype)
    else:
        quantise[(n // 128,)](x, codes, scales, BLOCK=128)
    return {"n": n, "stream": 72, "codes": digest(codes), "scales": digest(scales), "sample": hexadecimal(scales[:8])}


def ask(s):
    cannot = "Triton is not here" if not triton else None
    if s.device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        cannot = "Triton has no CPU"
    for how in ("torch", "Triton") if not cannot else ("torch",):
        s.try_answer(f"x / s {how}", lambda: quotients(s, how))
        for dtype in ("bfloat16", "float32"):
            s.try_answer(f"act_quant {dtype} {how}", lambda: blocks(s, dtype, how))
    if cannot:
        s.answer("x / s Triton", refused=cannot)
    else:
        s.try_answer("div_rn Triton", lambda: quotients(s, "div_rn"))
