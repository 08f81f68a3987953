# SPDX-License-Identifier: Apache-2.0
"""Times of matrix products: torch.mm, torch._scaled_mm, DeepGEMM, Transformer Engine."""
import torch

from timing import Timer, optional

E4M3 = torch.float8_e4m3fn


def plain(t, dtype, tf32):
    n = t.order
    torch.backends.cuda.matmul.allow_tf32 = tf32
    a, b = t.tensor((n, n), dtype, 1), t.tensor((n, n), dtype, 2)
    out = torch.empty((n, n), dtype=dtype, device=t.s.device)
    return lambda: torch.mm(a, b.t(), out=out)


def scaled(t, scales, fast):
    n = t.order
    a, b = t.tensor((n, n), E4M3, 1), t.tensor((n, n), E4M3, 2)
    of_a, of_b = scales(n, t.s.device)
    return lambda: torch._scaled_mm(a, b.t(), of_a, of_b, out_dtype=torch.bfloat16, use_fast_accum=fast)


def of_tensors(n, device):
    return torch.ones((), device=device), torch.ones((), device=device)


def of_rows(n, device):
    return torch.ones((n, 1), device=device), torch.ones((1, n), device=device)


def of_blocks(n, device):
    """a: 1 x 128, b: 128 x 128; both with the outer dimension contiguous."""
    k = n // 128
    return torch.ones((k, n), device=device).t(), torch.ones((k, k), device=device).t()


def deep_gemm(t):
    """fp8_gemm_nt of version 2, or its name in version 1."""
    n, library = t.order, optional("deep_gemm")
    a, b = t.tensor((n, n), E4M3, 1), t.tensor((n, n), E4M3, 2)
    of_a = torch.ones((n, n // 128), device=t.s.device)
    of_b = torch.ones((n // 128, n // 128), device=t.s.device)
    out = torch.empty((n, n), dtype=torch.bfloat16, device=t.s.device)
    multiply = getattr(library, "fp8_gemm_nt", None) or library.gemm_fp8_fp8_bf16_nt
    return lambda: multiply((a, of_a), (b, of_b), out)


def transformer_engine(t):
    """A linear layer in FP8 with current scaling: operands are quantised, too."""
    n = t.order
    te, recipe = optional("transformer_engine.pytorch"), optional("transformer_engine.common.recipe")
    layer = te.Linear(n, n, bias=False, params_dtype=torch.bfloat16, device=t.s.device)
    x = t.tensor((n, n), torch.bfloat16)

    def run():
        with torch.no_grad(), te.fp8_autocast(enabled=True, fp8_recipe=recipe.Float8CurrentScaling()):
            layer(x)
    return run


def ask(s):
    t = Timer(s)
    n, flops = t.order, 2 * t.order ** 3

    def ours(format, *ways):
        return [f"{format} {n}^3, {way}" for way in ways]
    wgmma = ("wgmma, b transposed", "wgmma 128 x 256, b transposed", "wgmma by TMA, b transposed")
    mma = ("mma.sync", "mma.sync, b transposed", "mma.sync 64 x 64", "mma.sync 64 x 64, b transposed")
    tma = ("wgmma by TMA", "wgmma by TMA, a transposed")
    sums = ours("e4m3", *wgmma)
    for name, dtype in (("float16", torch.float16), ("bfloat16", torch.bfloat16)):
        rows = ours({"float16": "fp16", "bfloat16": "bf16"}[name], *mma, *wgmma, *tma)
        t.row(f"torch.mm {name}", rows, lambda: plain(t, dtype, False), flops=flops)
    t.row("torch.mm tf32", ours("tf32", "mma.sync", "mma.sync, b transposed"), lambda: plain(t, torch.float32, True), flops=flops)
    t.row("torch.mm float32", ours("binary32", "fma", "fma, b transposed"), lambda: plain(t, torch.float32, False), flops=flops)
    promoted, blocks = (ours("e4m3", f"wgmma, b transposed, {what}", f"wgmma by TMA, b transposed, {what}")
                        for what in ("promoted", "blocks"))
    t.row("torch._scaled_mm, fast", sums, lambda: scaled(t, of_tensors, True), flops=flops)
    t.row("torch._scaled_mm", promoted, lambda: scaled(t, of_tensors, False), flops=flops)
    t.row("torch._scaled_mm, rows", promoted, lambda: scaled(t, of_rows, False), flops=flops)
    t.row("torch._scaled_mm, 1x128 by 128x128", blocks, lambda: scaled(t, of_blocks, False), flops=flops)
    t.row("DeepGEMM", blocks, lambda: deep_gemm(t), flops=flops)
    t.row("Transformer Engine, Linear", promoted, lambda: transformer_engine(t), flops=flops)
