# SPDX-License-Identifier: Apache-2.0
"""Times of causal attention by scaled_dot_product_attention, forward and backward, each of its implementations; and of
FlashAttention's own package."""
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from timing import Timer, optional

KINDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION,
         "efficient": SDPBackend.EFFICIENT_ATTENTION}


def operands(t, grad):
    """Those of gpu/validation/speed/attention.cuh: heads, length and width by the order of the products."""
    shape = (1, t.order // 64, t.order // 2, min(t.order, 128))
    return [t.tensor(shape, torch.bfloat16, i).requires_grad_(grad) for i in range(3)]


def forward(t, kind):
    q, k, v = operands(t, False)

    def run():
        with torch.no_grad(), sdpa_kernel(KINDS[kind]):
            scaled_dot_product_attention(q, k, v, is_causal=True)
    return run


def backward(t, kind):
    qkv = operands(t, True)
    with sdpa_kernel(KINDS[kind]):
        y = scaled_dot_product_attention(*qkv, is_causal=True)
    dy = t.tensor(y.shape, torch.bfloat16, 5)
    return lambda: torch.autograd.grad(y, qkv, dy, retain_graph=True)


def package(t, name):
    """Sequence before heads there."""
    library = optional(name)
    q, k, v = (x.transpose(1, 2).contiguous() for x in operands(t, False))
    return lambda: library.flash_attn_func(q, k, v, causal=True)


def ask(s):
    t = Timer(s)
    heads, length, width = t.order // 64, t.order // 2, min(t.order, 128)
    ours = f"attention, bf16, {heads} x {length} x {width}, causal, "
    product = heads * length * length * width    # half of 2 n^2 d
    for kind in KINDS:
        t.row(f"{kind}, forward", [ours + "forward"], lambda: forward(t, kind), flops=2 * product)
        t.row(f"{kind}, backward", [ours + "backward"], lambda: backward(t, kind), flops=5 * product)
    for name in ("flash_attn", "flash_attn_interface"):
        t.row(f"{name}, forward", [ours + "forward"], lambda: package(t, name), flops=2 * product)
