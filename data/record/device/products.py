# SPDX-License-Identifier: Apache-2.0
"""Matrix products of cuBLAS, by torch.mm: which additions, in which chunks, split how over the depth?

a (M by K) is of stream 40, b (K by N) of stream 41, exponents -6 to 3, so that terms are cut off where a tensor core
aligns; a T says that the operand's memory is transposed. 64 places of the result in full, a digest of all, whether
another call gives the same, the names of kernels. The reader adds up the 64 by the model rows, also with the depth in
parts.
"""
import torch

from session import digest

SHAPES = ((128, 128, 16), (128, 128, 32), (128, 128, 64), (128, 128, 256), (256, 128, 1024), (128, 128, 8192),
          (512, 512, 512), (1024, 1024, 1024), (2048, 1024, 4096), (4096, 4096, 2048), (4096, 4096, 8192))
QUICK = ((16, 16, 16), (32, 48, 64), (128, 128, 256))
# the operands' format; what is asked or allowed: a result of binary32, tf32, parts of sums in 16 bits, all sums in fp16
KINDS = {"float16": ("float16", ""), "float16 wide": ("float16", "wide"), "float16 reduced": ("float16", "reduced"),
         "float16 sums": ("float16", "sums"), "bfloat16": ("bfloat16", ""), "bfloat16 wide": ("bfloat16", "wide"),
         "bfloat16 reduced": ("bfloat16", "reduced"), "tf32": ("tf32", "tf32"), "float32 as tf32": ("float32", "tf32"),
         "float32": ("float32", "")}


def without_parameters(name):
    """A kernel's name up to its list of parameters: parentheses within <> and of anonymous namespaces stay."""
    depth = 0
    for i, c in enumerate(name):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth <= 0 and not name.startswith("(anonymous", i):
            return name[:i]
    return name


def kernels(function):
    """Names of what ran on the device, without their parameters, or why they are not known."""
    try:
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            function()
            torch.cuda.synchronize()
        return sorted({without_parameters(e.key) for e in seen.key_averages()
                       if e.device_type == torch.autograd.DeviceType.CUDA})
    except Exception as e:                       # the answer is worth more than its kernel's name
        return [f"not known: {type(e).__name__}"]


def laid_out(x, transposed):
    return x.t().contiguous().t() if transposed else x


def allow(given):
    """What a kind asks of cuBLAS, or allows."""
    matmul = torch.backends.cuda.matmul
    matmul.allow_tf32 = given == "tf32"
    matmul.allow_fp16_reduced_precision_reduction = matmul.allow_bf16_reduced_precision_reduction = given == "reduced"
    if given == "sums" or hasattr(matmul, "allow_fp16_accumulation"):
        matmul.allow_fp16_accumulation = given == "sums"
    return {"out_dtype": torch.float32} if given == "wide" else {}


def multiply(s, kind, layout, shape):
    m, n, k = shape
    form, given = KINDS[kind]
    more = allow(given)
    a = laid_out(s.draw(form, (m, k), 40, -6, 4), layout[0] == "T")
    b = laid_out(s.draw(form, (k, n), 41, -6, 4), layout[1] == "T")
    d = torch.mm(a, b, **more)
    facts = {"form": form, "out": str(d.dtype)[6:], "m": m, "n": n, "k": k, "streams": [40, 41], **s.sample(d, 64, 42),
             "digest": digest(d), "again": digest(torch.mm(a, b, **more)) == digest(d)}
    if s.device == "cuda":
        facts["kernels"] = kernels(lambda: torch.mm(a, b, **more))
    return facts


def ask(s):
    for shape in QUICK if s.quick else SHAPES:
        for kind in KINDS:
            if s.device == "cpu" and KINDS[kind][1]:
                continue
            for layout in ("NN", "NT", "TN"):
                name = f"{kind} {layout} " + "x".join(str(size) for size in shape)
                s.try_answer(name, lambda: multiply(s, kind, layout, shape))
