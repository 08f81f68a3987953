# SPDX-License-Identifier: Apache-2.0
"""Times of what memory bounds: casts, norms, softmax, cross-entropy, Hadamard transforms, quantisation, by torch's own
operations, torchao, Transformer Engine and fast_hadamard_transform."""
import torch
from torch.nn import functional

from timing import COLUMNS, Timer, optional

BF16 = torch.bfloat16


def casting(t, from_, to):
    x = t.tensor((t.rows, COLUMNS), from_)
    out = torch.empty_like(x, dtype=to)
    return lambda: out.copy_(x)


def norm(t, function, parameters):
    x = t.tensor((t.rows, COLUMNS), BF16)
    more = [t.tensor((COLUMNS,), BF16, i) for i in range(parameters)]

    def run():
        with torch.no_grad():
            function(x, (COLUMNS,), *more)
    return run


def gradient(t, function, parameters):
    """The backward pass alone: dx and the parameters' gradients."""
    x = t.tensor((t.rows, COLUMNS), BF16).requires_grad_()
    more = [t.tensor((COLUMNS,), BF16, i).requires_grad_() for i in range(parameters)]
    y, dy = function(x, (COLUMNS,), *more), t.tensor((t.rows, COLUMNS), BF16, 5)
    return lambda: torch.autograd.grad(y, [x] + more, dy, retain_graph=True)


def softmax(t):
    columns = COLUMNS
    while columns * columns > t.elements:
        columns //= 2
    x = t.tensor((t.elements // columns // columns, columns, columns), BF16)
    return lambda: torch.softmax(x, -1)


def cross_entropy(t):
    x = t.tensor((t.rows, COLUMNS), BF16).requires_grad_()
    labels = torch.arange(t.rows, device=t.s.device) * 7 % COLUMNS
    return lambda: torch.autograd.grad(functional.cross_entropy(x, labels), x)


def hadamard_matrix(device):
    h = torch.ones((1, 1), device=device)
    for _ in range(4):
        h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)])
    return (h / 4).to(BF16)


def hadamard_by_product(t):
    x, h = t.tensor((t.elements // 16, 16), BF16), hadamard_matrix(t.s.device)
    return lambda: torch.mm(x, h)


def fast_hadamard(t):
    library, x = optional("fast_hadamard_transform"), t.tensor((t.elements // 16, 16), BF16)
    return lambda: library.hadamard_transform(x, 0.25)


def quantise(t):
    """A scale for the tensor from its largest number, as eager code has it."""
    x = t.tensor((t.rows, COLUMNS), BF16)
    return lambda: (x * (448.0 / x.abs().amax().float())).to(torch.float8_e4m3fn)


def torchao_mx(t):
    mx, x = optional("torchao.prototype.mx_formats.mx_tensor"), t.tensor((t.rows, COLUMNS), BF16)
    return lambda: mx.MXTensor.to_mx(x, torch.float8_e4m3fn, 32)


def torchao_nvfp4(t):
    nvfp4, x = optional("torchao.prototype.mx_formats.nvfp4_tensor"), t.tensor((t.rows, COLUMNS), BF16)
    return lambda: nvfp4.NVFP4Tensor.to_nvfp4(x)


def engine_quantiser(t, name, *arguments):
    te, dtypes = optional("transformer_engine.pytorch"), optional("transformer_engine_torch")
    quantiser = getattr(te, name)(getattr(dtypes.DType, arguments[0]))
    x = t.tensor((t.rows, COLUMNS), BF16)
    return lambda: quantiser(x)


def engine_block_quantiser(t, dimensions):
    te, dtypes = optional("transformer_engine.pytorch"), optional("transformer_engine_torch")
    quantiser = te.Float8BlockQuantizer(dtypes.DType.kFloat8E4M3, rowwise=True, columnwise=False, block_scaling_dim=dimensions)
    x = t.tensor((t.rows, COLUMNS), BF16)
    return lambda: quantiser(x)


def ask(s):
    t = Timer(s)
    n = t.elements
    for name, from_, to, width in (("fp16", torch.float32, torch.float16, 6), ("bf16", torch.float32, BF16, 6),
                                   ("e4m3", torch.float32, torch.float8_e4m3fn, 5)):
        t.row(f"copy_ of binary32 to {name}", [f"cast of binary32 to {name}"], lambda: casting(t, from_, to), width * n)
    t.row("copy_ of bf16 to binary32", ["cast of bf16 to binary32"], lambda: casting(t, BF16, torch.float32), 6 * n)
    t.row("copy_ of bf16 to e4m3", ["cast of bf16 to e4m3"], lambda: casting(t, BF16, torch.float8_e4m3fn), 3 * n)
    t.row("copy_ of e4m3 to bf16", ["cast of e4m3 to bf16"], lambda: casting(t, torch.float8_e4m3fn, BF16), 3 * n)
    for name, function, parameters in (("layer_norm", functional.layer_norm, 2), ("rms_norm", functional.rms_norm, 1)):
        ours = {"layer_norm": "LayerNorm, bf16", "rms_norm": "RMSNorm, bf16"}[name]
        t.row(name, [ours], lambda: norm(t, function, parameters), 4 * n)
        t.row(f"{name}, backward", [ours + ", backward"], lambda: gradient(t, function, parameters), 6 * n)
    t.row("softmax", ["softmax, causal, bf16"], lambda: softmax(t), 4 * n, text="of whole rows; mpsim's are causal")
    t.row("cross_entropy with gradient", ["cross-entropy with gradient, bf16"], lambda: cross_entropy(t), 4 * n)
    ours = ["Hadamard in groups of 16, bf16"]
    t.row("Hadamard by a product", ours, lambda: hadamard_by_product(t), 4 * n)
    t.row("fast_hadamard_transform", ours, lambda: fast_hadamard(t), 4 * n)
    t.row("quantise, one scale, e4m3", ["quantize bf16, one scale, e4m3"], lambda: quantise(t), 5 * n,
          text="eager: a largest number, a product, a cast")
    t.row("torchao, MXFP8", ["quantize bf16, MXFP8, codes"], lambda: torchao_mx(t), 3 * n)
    t.row("torchao, NVFP4", ["quantize bf16, NVFP4, as bf16"], lambda: torchao_nvfp4(t), 3 * n, text="gives codes and scales")
    t.row("Transformer Engine, MXFP8", ["quantize bf16, MXFP8, codes"],
          lambda: engine_quantiser(t, "MXFP8Quantizer", "kFloat8E4M3"), 3 * n)
    for name, dimensions in (("1x128", 1), ("128x128", 2)):
        t.row(f"Transformer Engine, {name}", [f"quantize bf16, {name}, codes"],
              lambda: engine_block_quantiser(t, dimensions), 3 * n)
    t.row("Transformer Engine, NVFP4", ["quantize bf16, NVFP4, as bf16"],
          lambda: engine_quantiser(t, "NVFP4Quantizer", "kFloat4E2M1"), 3 * n, text="gives codes and scales")
