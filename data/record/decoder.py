# SPDX-License-Identifier: Apache-2.0
"""mpsim's transformers in PyTorch, written from lib/include/train/train.h: GPT-2's form and Llama's, by options.

Modules and parameters have the names of mpsim's layers ("h0.attn.qkv.weight"), one module a layer, so that hooks see
what mpsim's traces hold. Attention is materialised; a row of a linear layer's weight is an output.
"""
import dataclasses
import math

import torch
from mpsim_random import words


@dataclasses.dataclass
class Config:
    net: str = "gpt"
    depth: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 0          # 0: heads
    hidden: int = 0            # 0: 4 width; of swiglu 8/3 width, up to a multiple of 8
    context: int = 64
    vocabulary: int = 256
    norm: str = ""             # layernorm, rmsnorm
    activation: str = ""       # gelu-tanh, gelu, swiglu
    positions: str = ""        # learned, rotary
    biases: int = -1
    tied: int = -1
    attention: str = "materialised"  # or sdpa: PyTorch's own, whose scores no hook sees

    def __post_init__(self):
        gpt = self.net == "gpt"
        self.kv_heads = self.kv_heads or self.heads
        self.norm = self.norm or ("layernorm" if gpt else "rmsnorm")
        self.activation = self.activation or ("gelu-tanh" if gpt else "swiglu")
        self.positions = self.positions or ("learned" if gpt else "rotary")
        self.biases = int(gpt) if self.biases < 0 else self.biases
        self.tied = int(gpt) if self.tied < 0 else self.tied
        swiglu = self.activation == "swiglu"
        self.hidden = self.hidden or ((8 * self.width // 3 + 7) // 8 * 8 if swiglu else 4 * self.width)

    @property
    def size(self):
        return self.width // self.heads


def norm(c):
    if c.norm == "rmsnorm":
        return torch.nn.RMSNorm(c.width, eps=1e-5)
    return torch.nn.LayerNorm(c.width, eps=1e-5, bias=bool(c.biases))


class Positions(torch.nn.Embedding):
    def forward(self, x):
        return x + self.weight[:x.shape[1]]


class Heads(torch.nn.Module):
    """Queries, keys and values of heads, turned by place with rotary positions in binary32 or wider, as Llama's
    code does (x.float(), then type_as)."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        if c.positions == "rotary":
            w = torch.exp(-(2.0 * torch.arange(c.size // 2, dtype=torch.float64) / c.size) * math.log(10000.0))
            a = torch.arange(c.context, dtype=torch.float64)[:, None] * w
            self.register_buffer("cos", a.cos(), persistent=False)
            self.register_buffer("sin", a.sin(), persistent=False)

    def turn(self, x):
        if self.c.positions != "rotary":
            return x
        wide = torch.promote_types(x.dtype, torch.float32)
        cos, sin = (t[:x.shape[2]].to(wide) for t in (self.cos, self.sin))
        a, b = x.to(wide).chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    def forward(self, x):
        c, (n, length, _) = self.c, x.shape
        parts = x.split((c.width, c.kv_heads * c.size, c.kv_heads * c.size), dim=-1)
        q, k, v = (p.reshape(n, length, -1, c.size).transpose(1, 2) for p in parts)
        return self.turn(q), self.turn(k), v


class Scores(torch.nn.Module):
    def forward(self, q, k):
        return q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).transpose(-1, -2)


class Softmax(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.scale = 1 / math.sqrt(c.size)
        self.register_buffer("mask", torch.ones(c.context, c.context, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, s):
        n = s.shape[-1]
        return torch.softmax((s * self.scale).masked_fill(self.mask[:n, :n], float("-inf")), dim=-1)


class Context(torch.nn.Module):
    def forward(self, p, v):
        y = p @ v.repeat_interleave(p.shape[1] // v.shape[1], dim=1)
        return y.transpose(1, 2).flatten(2)


class Activation(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        f = torch.nn.functional
        if self.kind == "swiglu":
            gate, value = x.chunk(2, dim=-1)
            return f.silu(gate) * value
        return f.gelu(x, approximate="tanh" if self.kind == "gelu-tanh" else "none")


class Add(torch.nn.Module):
    def forward(self, x, stream):
        return x + stream


class Attention(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.qkv = torch.nn.Linear(c.width, (c.heads + 2 * c.kv_heads) * c.size, bias=bool(c.biases))
        self.heads, self.scores, self.softmax, self.context = Heads(c), Scores(), Softmax(c), Context()
        self.proj = torch.nn.Linear(c.width, c.width, bias=bool(c.biases))

    def forward(self, x):
        q, k, v = self.heads(self.qkv(x))
        if self.c.attention == "sdpa":
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True,
                                                                 enable_gqa=self.c.kv_heads < self.c.heads)
            return self.proj(y.transpose(1, 2).flatten(2))
        return self.proj(self.context(self.softmax(self.scores(q, k)), v))


class Feed(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        columns = c.hidden * (2 if c.activation == "swiglu" else 1)
        self.fc = torch.nn.Linear(c.width, columns, bias=bool(c.biases))
        self.act = Activation(c.activation)
        self.proj = torch.nn.Linear(c.hidden, c.width, bias=bool(c.biases))

    def forward(self, x):
        return self.proj(self.act(self.fc(x)))


class Block(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.attn, self.add1 = norm(c), Attention(c), Add()
        self.ln2, self.mlp, self.add2 = norm(c), Feed(c), Add()

    def forward(self, x):
        x = self.add1(self.attn(self.ln1(x)), x)
        return self.add2(self.mlp(self.ln2(x)), x)


class Decoder(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.wte = torch.nn.Embedding(c.vocabulary, c.width)
        if c.positions == "learned":
            self.wpe = Positions(c.context, c.width)
        for i in range(c.depth):
            setattr(self, f"h{i}", Block(c))
        self.lnf = norm(c)
        self.head = torch.nn.Linear(c.width, c.vocabulary, bias=False)
        if c.tied:
            self.head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens)
        if self.c.positions == "learned":
            x = self.wpe(x)
        for i in range(self.c.depth):
            x = getattr(self, f"h{i}")(x)
        return self.head(self.lnf(x))


def initialise(model):
    """The distribution of mpsim's initial weights, from torch's generator."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1:
                p.fill_(0.0 if name.endswith(".bias") else 1.0)
            else:
                deep = name.endswith(("attn.proj.weight", "mlp.proj.weight"))
                torch.nn.init.normal_(p, std=0.02 / (math.sqrt(2 * model.c.depth) if deep else 1))


def loss_of(model, tokens, labels):
    """Of 16-bit logits in binary32, as mpsim's: under autocast CUDA would round log-probabilities to 16 bits."""
    logits = model(tokens)
    logits = logits.float() if logits.element_size() == 2 else logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def windows(seed, first, n, trained, context):
    """Where the windows `first` to first + n - 1 of a run begin: of step s, micro-batch m, rank r, sequence b that of
    index ((s * accumulate + m) * ranks + r) * batch + b."""
    return [int(w) * (trained - context) >> 32 for w in words(seed, "text windows", first, n)]


def batch_of(text, starts, context):
    """Tokens and labels of windows: the label of a place is the next token."""
    rows = torch.stack([text[s:s + context + 1] for s in starts]).long()
    return rows[:, :-1], rows[:, 1:]


def learning_rate(step, steps, lr, decay="cosine", warmup=20, min_lr=0.1, cooldown=0):
    """Of step `step`, from 0."""
    if step < warmup:
        factor = (step + 1) / warmup
    else:
        p = (step - warmup) / (steps - warmup)
        factor = {"constant": 1.0, "linear": 1 - (1 - min_lr) * p,
                  "cosine": min_lr + (1 - min_lr) * 0.5 * (1 + math.cos(math.pi * p))}[decay]
    if cooldown and step >= steps - cooldown:
        factor *= (steps - step) / (cooldown + 1)
    return lr * factor


def groups(model, weight_decay):
    """Parameters of one dimension, norms and biases, do not decay."""
    p = list(model.parameters())
    return [{"params": [x for x in p if x.dim() > 1], "weight_decay": weight_decay},
            {"params": [x for x in p if x.dim() == 1], "weight_decay": 0.0}]
