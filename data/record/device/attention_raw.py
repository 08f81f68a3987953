# SPDX-License-Identifier: Apache-2.0
"""Attention, forward and backward: the codes of O, logsumexp, dQ, dK and dV by each implementation.

q, k, v and the gradient g of O are of streams 60, 61, 62 and 64: 2 heads, exponents -3 to 0. A line is one tensor of one
implementation: a digest of both heads, whether a second call gives the same, and of flash and cuDNN the codes of the
first head: all rows of up to 128, of others every (length / 32)-th row; base64 of little-endian codes. "math" and
"efficient" have digests alone. Gradients are computed under torch.use_deterministic_algorithms where the implementation has
one and it repeats ("mode"). The case of 16 rows holds its inputs, too. logsumexp is asked of the operator itself, which must
give the same O ("same").
"""
import base64

import torch
from torch.nn.attention import sdpa_kernel

from attention import KINDS
from products import kernels
from session import codes_of, digest

LENGTHS, WIDTHS, HEADS, ROWS, WHOLE, SMALL = (16, 128, 256, 384, 512), (64, 128), 2, 32, 128, 16
QUICK_LENGTHS, QUICK_WIDTHS = (16, 24), (64,)
RAW = ("flash", "cudnn")
OPERATORS = {  # (device, kind): the operator and its arguments behind q, k, v
    ("cuda", "flash"): ("_scaled_dot_product_flash_attention", lambda causal: (0.0, causal, False)),
    ("cpu", "flash"): ("_scaled_dot_product_flash_attention_for_cpu", lambda causal: (0.0, causal)),
    ("cuda", "cudnn"): ("_scaled_dot_product_cudnn_attention", lambda causal: (None, True, 0.0, causal, False)),
    ("cuda", "efficient"): ("_scaled_dot_product_efficient_attention", lambda causal: (None, True, 0.0, causal))}


def forward_and_backward(kind, inputs, causal, deterministic):
    q, k, v = (t.detach().clone().requires_grad_() for t in inputs[:3])
    torch.use_deterministic_algorithms(deterministic)
    try:
        with sdpa_kernel(KINDS[kind]):
            o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
            o.backward(inputs[3])
    finally:
        torch.use_deterministic_algorithms(False)
    return {"o": o.detach(), "dq": q.grad, "dk": k.grad, "dv": v.grad}


def twice(kind, inputs, causal, deterministic):
    """The tensors of one call, and of each whether a second call gives the same."""
    one, two = (forward_and_backward(kind, inputs, causal, deterministic) for _ in range(2))
    return one, {name: digest(one[name]) == digest(two[name]) for name in one}


def results(kind, inputs, causal):
    """Tensors, whether each comes again, and the mode of the gradients."""
    plain, again = twice(kind, inputs, causal, False)
    if all(again.values()):
        return plain, again, "default"
    try:
        ordered, repeats = twice(kind, inputs, causal, True)
    except RuntimeError as e:                    # no deterministic form of it
        return plain, again, f"default, deterministic refused: {str(e).splitlines()[0]}"[:90]
    if not all(repeats.values()):
        return plain, again, "default, deterministic does not repeat, either"
    return ordered, again, "deterministic"


def raw(t, length):
    """The codes of the first head, of the rows that are kept; t is 1 x heads x length (x width)."""
    step = 1 if length <= WHOLE else length // ROWS
    kept = t[0, 0][:length:step].contiguous().cpu()
    return {"rows": step, "codes": base64.b64encode(bytes_of(kept)).decode("ascii")}


def bytes_of(t):
    """Little-endian codes, every NaN as all ones, as digests have them."""
    size, codes = t.element_size(), codes_of(t)
    return b"".join(c.to_bytes(size, "little") for c in codes.tolist())


def logsumexp(s, kind, inputs, causal, o):
    name, arguments = OPERATORS[s.device, kind]
    got = getattr(torch.ops.aten, name)(*inputs[:3], *arguments(causal))
    lse = got[1].reshape(1, HEADS, -1)[:, :, :o.shape[2]].contiguous()
    return {"tensor": "lse", "digest": digest(lse), "same": digest(got[0]) == digest(o), "out": str(lse.dtype)[6:],
            **raw(lse, o.shape[2])}


def look(s, kind, dtype, length, width, causal):
    case = f"{kind} {dtype} {length}x{width} {'causal' if causal else 'whole'}"
    if case in s.known:
        return
    shape = (1, HEADS, length, width)
    inputs = [s.draw(dtype, shape, stream) for stream in (60, 61, 62, 64)]
    base = {"kind": kind, "type": dtype, "length": length, "width": width, "causal": causal, "streams": [60, 61, 62, 64]}
    try:
        tensors, again, mode = results(kind, inputs, causal)
    except Exception:
        s.try_answer(case, lambda: results(kind, inputs, causal) and {})
        return
    names = kernels(lambda: forward_and_backward(kind, inputs, causal, mode == "deterministic")) if s.device == "cuda" else []
    s.answer(case, **base, tensor="inputs", **{name: digest(t) for name, t in zip("qkvg", inputs)}, mode=mode,
             kernels=[name[:200] for name in names],
             **({"codes": {name: raw(t, length)["codes"] for name, t in zip("qkvg", inputs)}} if length == SMALL else {}))
    for name, t in tensors.items():
        s.answer(f"{case} {name}", **base, tensor=name, digest=digest(t), again=again[name],
                 **(raw(t, length) if kind in RAW else {}))
    if (s.device, kind) in OPERATORS:
        s.try_answer(f"{case} lse", lambda: {**base, **logsumexp(s, kind, inputs, causal, tensors["o"])})


def ask(s):
    for length in QUICK_LENGTHS if s.quick else LENGTHS:
        for width in QUICK_WIDTHS if s.quick else WIDTHS:
            for kind in KINDS:
                for dtype in ("float16", "bfloat16"):
                    for causal in (False, True):
                        look(s, kind, dtype, length, width, causal)
