"""Two runs that differ in how one operation is computed, for each kind of operation that the judge has rows for; and sound pairs.

python tests/standing_ops.py prints the table: the operation, module and class that each case should be found to be, and what compare_runs finds.
Each case is played twice: with equal weights, where the operation is the first guilty one; and with weights that differ before it, where its
inputs differ already and it must be guilty beside the weight. --each changes one number of each operation of a pass, one after the other.
"""
import math
import sys
import time

import standing
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from mpsim import testing
from mpsim._stand import tensors

WIDTH, HEADS, WORDS, LENGTH = 64, 4, 97, 16
F, BF16 = nn.functional, torch.bfloat16


class Attention(nn.Module):
    def __init__(self, eager):
        super().__init__()
        self.eager = eager
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if self.eager:
            scores = (q @ k.transpose(-1, -2)).float() * (WIDTH // HEADS) ** -0.5
            y = scores.softmax(-1).to(x.dtype) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(b, n, WIDTH))


class MLP(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Layer(nn.Module):
    def __init__(self, i):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention(i == 0)
        self.norm2, self.mlp = nn.RMSNorm(WIDTH, eps=1e-6), MLP((F.gelu, F.silu)[i])
        for norm in (self.norm1, self.norm2):
            nn.init.normal_(norm.weight, 1, 0.1)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    """Casts to bf16 and E4M3, mm, addmm, bmm, both attentions, both norms, GELU, SiLU, softmax, log-softmax, a sum and a mean."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer(i) for i in range(2))
        self.head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words):
        x = self.embed(words.flatten()).view(*words.shape, WIDTH)
        for layer in self.layers:
            x = layer(x)
        logits = self.head((x * 256).to(torch.float8_e4m3fn).to(x.dtype)).float()
        self.sizes = x.detach().float().square().sum(-1)
        return logits.log_softmax(-1).mean(-1).to(x.dtype)


class Eighth(nn.Module):
    """A product of E4M3 with a scale of each tensor."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(7)
        self.embed, self.weight = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(WORDS, WIDTH))

    def forward(self, words):
        x = self.embed(torch.sin(words[..., None] * torch.arange(1, WIDTH + 1).to(self.weight.dtype)).flatten(0, 1))
        scales = [(t.abs().amax().float() / 448).reshape(()) for t in (x, self.weight)]
        x8, w8 = ((t / s.to(t.dtype)).to(torch.float8_e4m3fn) for t, s in zip((x, self.weight), scales))
        return torch._scaled_mm(x8, w8.t(), scale_a=scales[0], scale_b=scales[1], out_dtype=BF16)


# ---- operations computed another way ----


def low_softmax(n, func, x, dim, half):
    e = (x - x.amax(dim, keepdim=True)).to(BF16).exp()
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


def low_log_softmax(n, func, x, dim, half):
    z = (x - x.amax(dim, keepdim=True)).to(BF16)
    return (z - z.exp().sum(dim, keepdim=True).log()).to(x.dtype)


def tanh_gelu(n, func, x, **_):
    return F.gelu(x, approximate="tanh")


def tanh_gelu_backward(n, func, grad, x, **_):
    return func(grad, x, approximate="tanh")


def low_inverse(n, func, x):
    return func(x.to(BF16)).to(x.dtype)


def unbiased(n, func, x, shape, weight, bias, eps):
    made = func(x, shape, weight, bias, eps)
    z = x.float() - x.float().mean(-1, keepdim=True)
    return ((z * torch.rsqrt(x.float().var(-1, keepdim=True) + eps) * weight.float() + bias.float()).to(x.dtype), *made[1:])


def low_norm(n, func, x, shape, weight, bias, eps):
    made = func(x, shape, weight, bias, eps)
    low = x.to(BF16)
    z = low - low.mean(-1, keepdim=True)
    return ((z * torch.rsqrt(z.square().mean(-1, keepdim=True) + eps) * weight.to(BF16) + bias.to(BF16)).to(x.dtype), *made[1:])


def late_bias(n, func, bias, a, b):
    return (a @ b) + bias


def stored_parts(n, func, a, b):
    k = a.shape[1] // 2
    return a[:, :k] @ b[:k] + a[:, k:] @ b[k:] if b.shape[1] == WORDS else None


def heads(q, k, v, causal=0, scale=True, after=1.0, low=False):
    n = q.shape[-2]
    s = q.float() @ k.float().transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale else 1)
    s = (s.to(BF16).float() if low else s).masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1 + causal), -math.inf)
    return (s.softmax(-1).to(q.dtype).float() @ v.float() * after).to(q.dtype), s.logsumexp(-1)


def seen_too_far(n, func, q, k, v, *_, **__):
    return heads(q, k, v, causal=1)


def late_scale(n, func, q, k, v, *_, **__):
    return heads(q, k, v, scale=False, after=q.shape[-1] ** -0.5)


def low_scores(n, func, q, k, v, *_, **__):
    return heads(q, k, v, low=True)


def cut(x):
    return (x.float().view(torch.int32) & -65536).view(torch.float32)


def cut_sum(n, func, a, b, **_):
    return cut(a.float() + b.float()).to(a.dtype) if isinstance(b, torch.Tensor) and a.dtype == BF16 else None


def cut_cast(n, func, x, **kwargs):
    return cut(x).to(BF16) if kwargs.get("dtype") == BF16 and x.dtype == torch.float32 else None


def overflowing_cast(n, func, x, **kwargs):
    if kwargs.get("dtype") != torch.float8_e4m3fn:
        return None
    return torch.where(x.abs() > 464, 127, x.to(torch.float8_e4m3fn).view(torch.uint8)).to(torch.uint8).view(torch.float8_e4m3fn)


def other_mean(n, func, x, dim, keepdim=False, **_):
    return None if keepdim else x.sum(dim) / (x.shape[-1] - 1)


def low_total(n, func, x, dim, *_, **__):
    if list(dim) != [-1]:
        return None
    total = torch.zeros(x.shape[:-1], dtype=BF16)
    for i in range(x.shape[-1]):
        total = (total + x[..., i]).to(BF16)
    return total.to(x.dtype)


def other_total(n, func, x, dim, *_, **__):
    if list(dim) != [-1]:
        return None
    total = x[..., 0]
    for i in range(1, x.shape[-1]):
        total = total + x[..., i]
    return total


def low_sigmoid(n, func, x):
    return x * x.sigmoid()


def halved_norm_backward(n, func, grad, *args):
    x, weight, bias = func(grad, *args)
    return x, None if weight is None else weight * 0.5, bias


def adamw(params, grads, ms, vs, steps, lr, beta1, beta2, weight_decay, eps, inside, corrected):
    for p, g, m, v, step in zip(params, grads, ms, vs, steps):
        w, g, t = p.float(), g.float(), float(step)
        w = w * (1 - lr * weight_decay)
        m.copy_((m.float() + (g - m.float()) * (1 - beta1)).to(m.dtype))
        v.copy_((v.float() * beta2 + (1 - beta2) * g * g).to(v.dtype))
        one, two = (1 - beta1**t, 1 - beta2**t) if corrected else (1, 1)
        s = v.float() / two
        root = (s + eps).sqrt() if inside else s.sqrt() + eps
        p.copy_((w - lr / one * m.float() / root).to(p.dtype))


def steps(**how):
    def kernel(n, func, params, grads, m, v, vmax, at, *, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, **_):
        adamw(params, grads, m, v, at, lr, beta1, beta2, weight_decay, eps, **how)
        return standing.WRITTEN

    return kernel


def inside_root(n, func, vs):
    return [(v + 1e-8).sqrt() for v in vs]


def without_scale(n, func, a, b, scale_a, scale_b, *args, **kwargs):
    return func(a, b, scale_a, torch.ones_like(scale_b), *args, **kwargs)


class Case:
    """expected: operation, module, class; kernels: of the second run; dtype, backward: of both; step: fused or foreach; batches, threads: of each."""

    def __init__(self, name, expected, dtype=BF16, backward=False, step=None, made=Model, batches=(2, 2), threads=(1, 1), **kernels):
        self.name, self.expected, self.kernels, self.batches, self.threads = name, expected, kernels, batches, threads
        self.dtype, self.backward, self.step, self.made = dtype, backward or step is not None, step, made

    def one(self, kernels, noise=False, batch=2):
        m = self.made()
        m.to(self.dtype)
        if noise:  # what the operations before give differs
            with torch.no_grad():
                for t in m.embed.parameters():
                    t.mul_(1 + 0.05 * torch.randn(t.shape, generator=torch.Generator().manual_seed(3)).to(t.dtype))
        words = torch.arange(batch * LENGTH).reshape(batch, LENGTH) * 31 % WORDS
        optimizer = torch.optim.AdamW(m.parameters(), lr=0.01, **{self.step: True}) if self.step else None
        with standing.Stack(**kernels), torch.set_grad_enabled(self.backward), testing.record(m) as run:
            y = m(words)
            if self.backward:
                y.float().square().mean().backward()
            if optimizer:
                optimizer.step()
        return run

    def judged(self, noise=False):
        runs = []
        for kernels, noisy, batch, threads in zip(({}, self.kernels), (False, noise), self.batches, self.threads):
            torch.set_num_threads(threads)
            runs.append(self.one(kernels, noisy, batch))
        torch.set_num_threads(1)
        return testing.compare_runs(*runs, leading=self.batches[0] != self.batches[1])


F32 = torch.float32
CASES = [
    Case("softmax's powers and sum in bf16", ("aten._softmax", "layers.0.attn", "format"), _softmax=low_softmax),
    Case("log-softmax in bf16", ("aten._log_softmax", "", "format"), _log_softmax=low_log_softmax),
    Case("GELU by tanh for erf", ("aten.gelu", "layers.0.mlp", "formula"), gelu=tanh_gelu),
    Case("GELU by tanh for erf, fp32", ("aten.gelu", "layers.0.mlp", "formula"), F32, gelu=tanh_gelu),
    Case("SiLU with a sigmoid of bf16", ("aten.silu", "layers.1.mlp", "format"), silu=low_sigmoid),
    Case("RMSNorm with an inverse root in bf16", ("aten.rsqrt", "layers.0.norm2", "format"), rsqrt=low_inverse),
    Case("LayerNorm divides by n - 1", ("aten.native_layer_norm", "layers.0.norm1", "formula"), native_layer_norm=unbiased),
    Case("LayerNorm in bf16", ("aten.native_layer_norm", "layers.0.norm1", "format"), native_layer_norm=low_norm),
    Case("LayerNorm in bf16, the rest fp32", ("aten.native_layer_norm", "layers.0.norm1", "format"), F32, native_layer_norm=low_norm),
    Case("bias added behind the rounding", ("aten.addmm", "layers.0.attn.qkv", "format"), addmm=late_bias),
    Case("K in two parts stored in bf16", ("aten.mm", "head", "split"), mm=stored_parts),
    Case("mask one key too far", ("aten._scaled_dot_product_flash_attention_for_cpu", "layers.1.attn", "formula"),
         _scaled_dot_product_flash_attention_for_cpu=seen_too_far),
    Case("scale behind the softmax's cast", ("aten._scaled_dot_product_flash_attention_for_cpu", "layers.1.attn", "formula"),
         _scaled_dot_product_flash_attention_for_cpu=late_scale),
    Case("scores in bf16", ("aten._scaled_dot_product_flash_attention_for_cpu", "layers.1.attn", "format"),
         _scaled_dot_product_flash_attention_for_cpu=low_scores),
    Case("residual cut, not rounded", ("aten.add", "layers.0", "format"), add=cut_sum),
    Case("cast to bf16 that cuts", ("aten._to_copy", "layers.0.attn", "format"), _to_copy=cut_cast),
    Case("cast to E4M3 whose overflow is NaN", ("aten._to_copy", "", "format"), _to_copy=overflowing_cast),
    Case("mean divides by n - 1", ("aten.mean", "", "formula"), mean=other_mean),
    Case("sum in bf16", ("aten.sum", "", "format"), sum=low_total),
    Case("sum in another order", ("aten.sum", "", "order"), F32, sum=other_total),
    Case("gradient of GELU by tanh", ("aten.gelu_backward", "layers.0.mlp", "formula"), backward=True, gelu_backward=tanh_gelu_backward),
    Case("gradient of a norm's weight halved", ("aten.native_layer_norm_backward", "layers.1.norm1", "formula"), backward=True,
         native_layer_norm_backward=halved_norm_backward),
    Case("AdamW, eps inside the root", ("aten._fused_adamw", "", "formula"), F32, step="fused", _fused_adamw_=steps(inside=True, corrected=True)),
    Case("AdamW without bias correction", ("aten._fused_adamw", "", "formula"), F32, step="fused", _fused_adamw_=steps(inside=False, corrected=False)),
    Case("foreach AdamW, eps inside the root", ("aten._foreach_sqrt", "", "formula"), F32, step="foreach", _foreach_sqrt=inside_root),
    Case("scale of _scaled_mm left out", ("aten._scaled_mm", "", "formula"), made=Eighth, _scaled_mm=without_scale),
]


def kernel(case, g):
    return (g.operation, g.path, g.kind) == case.expected


def named(case, runs, noise):
    """The first guilty operation; where weights differ one of them."""
    return any(kernel(case, g) for g in runs.guilty) if noise else runs.first is not None and kernel(case, runs.first)


SOUND = [Case(f"{name} {str(dtype)[6:]}", None, dtype, **how) for name, how in (
    ("forward, backward, fused step", {"step": "fused", "backward": True}), ("forward, backward, foreach step", {"step": "foreach", "backward": True}),
    ("batch 1 beside 32", {"batches": (32, 1)}), ("threads 1 beside 2", {"threads": (1, 2)})) for dtype in (BF16, F32)]


def sound(runs, noise):
    """Nothing but the weights that differ."""
    return {g.kind for g in runs.guilty} <= ({"weights"} if noise else set())


# ---- one number of one operation ----


class Change(TorchDispatchMode):
    """Changes the largest number of the first result of operation k of a recording."""

    def __init__(self, k):
        super().__init__()
        self.k, self.run, self.done = k, None, False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if self.run is not None and not self.done and len(self.run) == self.k:
            x = out[0] if isinstance(out, (tuple, list)) else out
            places = {t.untyped_storage()._cdata for t in tensors((args, list((kwargs or {}).values())), [])}
            if x.is_floating_point() and x.numel() and x.untyped_storage()._cdata not in places:  # no view
                self.done, flat = True, x.reshape(-1)
                i = int(flat.float().abs().argmax())
                flat[i] = (flat[i].float() * 1.25 + 0.125).to(x.dtype)
        return out


def changed(dtype, k):
    m, mode = Model().to(dtype), Change(k)
    words = torch.arange(2 * LENGTH).reshape(2, LENGTH) * 31 % WORDS
    with mode, testing.record(m) as mode.run:
        m(words).float().square().mean().backward()
    return mode.run, mode.done


def each(dtype):
    """How many operations of a forward and backward pass are named as the first guilty one if a number of theirs changes, and how many there are."""
    a, right, n = changed(dtype, -1)[0], 0, 0
    for op in a:
        b, done = changed(dtype, op.number)
        if done and b.ops[op.number].outputs[0].digest != op.outputs[0].digest:
            first = testing.compare_runs(a, b).first
            right, n = right + (first is not None and first.a.number == op.number), n + 1
    return right, n


def main():
    right = {False: 0, True: 0}
    torch.set_num_threads(1)
    if "--each" in sys.argv:
        counts = [each(dtype) for dtype in (BF16, F32)]
        print("; ".join(f"{right} of {n} single changes are named in {name}" for (right, n), name in zip(counts, ("bf16", "fp32"))))
        return any(right != n for right, n in counts)
    for case in CASES + SOUND:
        for noise in (False, True):
            start = time.process_time()
            runs = case.judged(noise)
            good = named(case, runs, noise) if case.expected else sound(runs, noise)
            right[noise] += good
            g = next((g for g in runs.guilty if kernel(case, g)), None) if case.expected else None
            g = g or next((g for g in runs.guilty if g.kind != "weights"), None)
            print(f"{'right' if good else 'WRONG'}  {case.name}{', other weights' if noise else ''}, {time.process_time() - start:.2f} s: expected {case.expected}")
            if g:
                print(f"       {g.operation} {g.path}, {g.kind}: {g.text}")
            if "-v" in sys.argv:
                print(runs)
    n = len(CASES) + len(SOUND)
    print(f"{right[False]} of {n} right, {right[True]} of {n} with other weights")
    return right != {False: n, True: n}


if __name__ == "__main__":
    sys.exit(main())
