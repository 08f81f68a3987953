"""Public cases of two runs that should agree, played on a CPU by two small transformers that differ in exactly one thing.

python tests/standing.py prints the table: what each case should be found to be, which was written first, and what compare_runs finds.
"""
import math
import sys
import time

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import mpsim
from mpsim import testing

WIDTH, HEADS, WORDS, LENGTH = 64, 4, 97, 16


class Norm(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(WIDTH))
        self.how, self.eps = how, how.get("eps", 1e-5)

    def forward(self, x):
        to = self.weight.dtype
        y = x if self.how.get("norm") == "low" else x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(to) if self.how.get("norm") == "fused" else y.to(to) * self.weight


class Eighth(nn.Module):
    """A linear layer whose weight is stored as E4M3 with one scale."""

    def __init__(self, inputs, outputs):
        super().__init__()
        w = torch.randn(outputs, inputs) / math.sqrt(inputs)
        self.register_buffer("scale", w.abs().max() / 448)
        self.register_buffer("codes", (w / self.scale).to(torch.float8_e4m3fn))

    def forward(self, x):
        return nn.functional.linear(x, self.codes.to(x.dtype) * self.scale.to(x.dtype))


class Rope(nn.Module):
    def __init__(self, how):
        super().__init__()
        half = WIDTH // HEADS // 2
        frequencies = 10000.0 ** (-torch.arange(half) / half)
        self.register_buffer("frequencies", frequencies.to(torch.bfloat16) if how.get("rope") == "low" else frequencies, persistent=False)

    def forward(self, n):
        angles = torch.arange(n).to(self.frequencies.dtype)[:, None] * self.frequencies
        return angles.cos(), angles.sin()


def turn(x, table, low=False):
    to = x.dtype if low else torch.float32
    p, q = x.to(to).chunk(2, -1)
    cos, sin = (t.to(to) for t in table)
    return torch.cat((p * cos - q * sin, q * cos + p * sin), -1).to(x.dtype)


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


class Attention(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how
        for name in "qkvo":
            setattr(self, name, nn.Linear(WIDTH, WIDTH, bias=False))

    def forward(self, x, table):
        b, n, _ = x.shape
        q, k, v = (getattr(self, name)(x).view(b, n, HEADS, -1).transpose(1, 2) for name in "qkv")
        q, k, scale = turn(q, table, self.how.get("turn")), turn(k, table, self.how.get("turn")), 0.3 if "scale" in self.how else (WIDTH // HEADS) ** -0.5
        scores = (q * scale) @ k.transpose(-1, -2) if self.how.get("scale") == "queries" else q @ k.transpose(-1, -2) * scale
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        if self.how.get("attention"):
            p = scores.softmax(-1, dtype=torch.float32).to(v.dtype) if self.how["attention"] == "wide" else scores.softmax(-1)
            return self.o((p @ v).transpose(1, 2).reshape(b, n, WIDTH))
        p = softmax(scores if self.how.get("softmax") == "low" else scores.float()).to(v.dtype)
        return self.o((p @ v).transpose(1, 2).reshape(b, n, WIDTH))


class MLP(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.up = Eighth(WIDTH, 2 * WIDTH) if how.get("fp8") else nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down(nn.functional.silu(self.up(x)))


class Layer(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.norm1, self.attn, self.norm2, self.mlp = Norm(how), Attention(how), Norm(how), MLP(how)
        self.how = how

    def forward(self, x, table):
        copied = (lambda y: y.clone()) if self.how.get("copies") else (lambda y: y)
        x = x + copied(self.attn(self.norm1(x), table))
        return x + self.mlp(copied(self.norm2(x)))


class Model(nn.Module):
    def __init__(self, how):
        super().__init__()
        torch.manual_seed(7)
        self.how = how
        self.embed, self.rope = nn.Embedding(WORDS, WIDTH), Rope(how)
        self.layers = nn.ModuleList(Layer(how) for _ in range(2))
        self.norm, self.head = Norm(how), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words):
        x, table = self.embed(words), self.rope(words.shape[1])
        x = x.float() if self.how.get("residual") == "high" else x
        for layer in self.layers:
            x = layer(x, table)
        x = self.norm(x)
        if self.how.get("head") == "high":
            return HIGH(self.head, x)
        return self.head(x)


def HIGH(head, x):
    return nn.functional.linear(x.float(), head.weight.float())


def model(dtype=torch.bfloat16, permuted=False, **how):
    m = Model(how)
    for p in m.parameters():
        p.data = p.data.to(dtype)
    if permuted:  # a converter that does not know how the checkpoint pairs the numbers of a head
        w = m.layers[0].attn.q.weight
        w.data = w.data.view(HEADS, -1, 2, WIDTH).transpose(1, 2).reshape(WIDTH, WIDTH).contiguous()
    return m


# ---- stacks: what computes an operation ----


WRITTEN = ()  # what a kernel returns that has written its operands


class Stack(TorchDispatchMode):
    """Operations by other kernels than torch's."""

    def __init__(self, **kernels):
        super().__init__()
        self.kernels, self.calls = kernels, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._schema.name.partition("::")[2]
        kernel = self.kernels.get(name)
        n = self.calls[name] = self.calls.get(name, -1) + 1
        made = kernel(n, func, *args, **(kwargs or {})) if kernel else None
        return func(*args, **(kwargs or {})) if made is None else None if made is WRITTEN else made


def products(**how):
    """Every mm and bmm by a row of mpsim."""
    def kernel(n, func, a, b):
        return row(a, b, **how)

    return lambda: Stack(mm=kernel, bmm=kernel)


def row(a, b, **how):
    return torch.stack([matrix(x, y, **how) for x, y in zip(a, b)]) if a.dim() == 3 else matrix(a, b, **how)


def matrix(a, b, model="fma", operands=None, split=1, below=0):
    x, y = (mpsim.round(t, operands).to(t.dtype) if operands else t for t in (a, b))
    x, y, k = x.contiguous(), y.contiguous(), a.shape[-1]
    parts = split if a.shape[-2] < below or not below else 1
    out = None
    for i in range(parts):
        one, other = x[..., i * k // parts:(i + 1) * k // parts], y[..., i * k // parts:(i + 1) * k // parts, :]
        p = mpsim.gemm(one.contiguous(), other.contiguous(), model=model)
        out = p if out is None else out + p
    return out.to(a.dtype)


def zeroed():
    """The second product of the head's backward pass, of its weight, is lost."""
    def kernel(n, func, a, b):
        return torch.zeros(a.shape[0], b.shape[1], dtype=a.dtype) if n == 2 * 6 + 1 + 1 else None

    return Stack(mm=kernel)


def misread():
    """Codes of E4M3 read as E4M3FNUZ: each number half as large."""
    def kernel(n, func, x, **kwargs):
        if x.dtype == torch.float8_e4m3fn:
            return x.view(torch.float8_e4m3fnuz).to(kwargs["dtype"])
        return None

    return Stack(_to_copy=kernel)


class Case:
    """name, thread: where it was published; a, b: options of the two models; stacks: what computes; batches: of both; expected: operation, module, class."""

    def __init__(self, name, thread, expected, a, b, stacks=(None, None), batches=(2, 2), backward=False):
        self.name, self.thread, self.expected = name, thread, expected
        self.options, self.stacks, self.batches, self.backward = (a, b), stacks, batches, backward

    def runs(self):
        return [self.one(*each) for each in zip(self.options, self.stacks, self.batches)]

    def one(self, options, stack, batch):
        m = model(**options)
        words = torch.arange(batch * LENGTH).reshape(batch, LENGTH) * 31 % WORDS
        mode = stack() if stack else torch.no_grad() if not self.backward else torch.enable_grad()
        with mode, torch.set_grad_enabled(self.backward), testing.record(m) as run:
            logits = m(words)
            if self.backward:
                nn.functional.cross_entropy(logits.float().flatten(0, 1), words.flatten()).backward()
        return run

    def judged(self):
        return testing.compare_runs(*self.runs(), leading=self.batches[0] != self.batches[1])


F32 = {"dtype": torch.float32}
CASES = [
    Case("TF32 on without a word", "ml-explore/mlx 3860, pytorch 53635", ("aten.mm", "layers.0.attn.q", "format"), F32, F32,
         (products(), products(operands="tf32"))),
    Case("split of K by the batch", "verl 6280", ("aten.mm", "layers.0.attn.q", "split"), F32, F32,
         (products(split=4, below=32), products(split=4, below=32)), (8, 1)),
    Case("another order of sums", "vllm 19403", ("aten.mm", "layers.0.attn.q", "order"), F32, F32, (products(), products(model="sequential"))),
    Case("RMSNorm in bf16", "meta-llama/llama 1048", ("aten.pow", "layers.0.norm1", "format"), {}, {"norm": "low"}),
    Case("compiled RMSNorm keeps fp32", "pytorch 158699, 168186", ("aten.mul", "layers.0.norm1", "format"), {}, {"norm": "fused"}),
    Case("RoPE's frequencies in bf16", "transformers 29496, gpt-neox 1003", ("aten.mul", "rope", "format"), {}, {"rope": "low"}),
    Case("RoPE in bf16", "a common change", ("aten.mul", "layers.0.attn", "format"), {}, {"turn": True}),
    Case("scale on the queries, not on the scores", "a common change", ("aten.bmm", "layers.0.attn", "formula"), {"scale": "scores"},
         {"scale": "queries"}),
    Case("softmax without its upcast", "axlearn 18, tinygrad 12280", ("aten.sub", "layers.0.attn", "format"), {}, {"softmax": "low"}),
    Case("head in bf16, sampler in fp32", "prime-rl 2438, Megatron-LM 6252", ("aten.mm", "head", "format"), {"head": "high"}, {}),
    Case("residual stream in bf16", "Megatron-LM 3504", ("aten.add", "layers.0", "format"), {"residual": "high"}, {}),
    Case("another epsilon", "mindone 219", ("aten.add", "layers.0.norm1", "formula"), {}, {"eps": 1e-3}),
    Case("Q permuted for another RoPE", "nanotron 427, AiDotNet 2074", ("aten.mm", "layers.0.attn.q", "weights"), {}, {"permuted": True}),
    Case("E4M3 read as FNUZ: a factor of two", "transformers 47030", ("aten._to_copy", "layers.0.mlp.up", "formula"), {"fp8": True}, {"fp8": True},
         (None, misread)),
    Case("gradient of a weight zeroed", "TransformerEngine 3281", ("aten.mm", "head", "dropped"), {}, {}, (None, zeroed), backward=True),
]
SOUND = [
    Case("eager twice, with its backward", "", None, {}, {}, backward=True),
    Case("batch 1 beside 32, an invariant kernel", "", None, F32, F32, (products(), products()), (1, 32)),
    Case("more copies, the same numbers", "", None, {}, {"copies": True}),
    Case("a softmax that casts within", "", None, {"attention": "wide"}, {"attention": "own"}),
]


def found(runs):
    return None if runs.first is None else (runs.first.operation, runs.first.path, runs.first.kind)


def main():
    right = 0
    torch.set_num_threads(1)
    for case in CASES + SOUND:
        start = time.process_time()
        runs = case.judged()
        good = found(runs) == case.expected and (case.expected is not None or not runs.guilty)
        right += good
        print(f"{'right' if good else 'WRONG'}  {case.name} ({case.thread or 'sound'}), {time.process_time() - start:.2f} s")
        print(f"       expected {case.expected}, found {found(runs)}")
        if runs.first:
            print(f"       {runs.first.text}")
        print(f"       {len(runs.equal)} equal, {len(runs.inherited)} inherited, {len(runs.guilty)} guilty, {len(runs.unjudged)} not judged, "
              f"{len(runs.only)} in one run alone")
        if "-v" in sys.argv:
            print(runs)
    print(f"{right} of {len(CASES) + len(SOUND)} right")
    return right != len(CASES) + len(SOUND)


if __name__ == "__main__":
    sys.exit(main())
