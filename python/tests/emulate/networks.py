"""The four networks of `mpsim train` as plain modules of PyTorch, written from pages of doc/ alone.

Nothing here knows of mpsim, but for the tables of rotary positions, which are the library's. Modules have the names of mpsim's
layers ("h0.attn.qkv"), so that patterns of policies match both. A layer of `mpsim train` that is no module here (`add1`,
`attn.scores`, ...) is a line of a `forward`. parity.py trains these networks under mpsim.emulate.
"""
import dataclasses
import math
import re
from typing import Any, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


@dataclasses.dataclass
class Config:
    """Sizes, in the words of the options of `mpsim train` and of the section "config" of its JSON."""
    net: str = "mlp"
    depth: int = 2
    width: int = 0            # 0: as mpsim train has it
    batchnorm: bool = False
    heads: int = 4
    kv_heads: int = 0         # 0: heads
    hidden: int = 0           # 0: 4 width; of swiglu 8/3 width, up to a multiple of 8
    context: int = 64
    vocabulary: int = 256
    norm: str = ""
    activation: str = ""
    positions: str = ""
    biases: bool = True
    tied: bool = True
    attention: str = "sdpa"   # or eager: scores, softmax and context as modules
    checkpoint: str = ""      # blocks are run again in backward: reentrant, plain

    @classmethod
    def of(cls, config: "dict[str, Any]", **options: str) -> "Config":
        """From the section "config" of a run's JSON."""
        words = {**config, **config.get("decoder", {}), **options}
        names = {f.name for f in dataclasses.fields(cls)}
        return cls(**{k: v for k, v in words.items() if k in names})

    @property
    def size(self) -> int:
        """Columns of a head."""
        return self.width // self.heads


# ---- digits: a perceptron and a convolutional network ----

class Mlp(nn.Module):
    """64 pixels, hidden layers with ReLU, 10 logits."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.depth, inputs = c.depth, 64
        for i in range(1, c.depth + 1):
            setattr(self, f"fc{i}", nn.Linear(inputs, c.width))
            if c.batchnorm:
                setattr(self, f"bn{i}", nn.BatchNorm1d(c.width))
            setattr(self, f"relu{i}", nn.ReLU())
            inputs = c.width
        self.head = nn.Linear(inputs, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(1, self.depth + 1):
            x = getattr(self, f"fc{i}")(x)
            if hasattr(self, f"bn{i}"):
                x = getattr(self, f"bn{i}")(x)
            x = getattr(self, f"relu{i}")(x)
        return self.head(x)


class Flatten(nn.Module):
    """Pixels from the top, channels innermost, as they lie in channels_last."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 3, 1).flatten(1)


class Cnn(nn.Module):
    """8 x 8 pixels; convolutions 3 x 3 with twice as many channels each, normalisation, ReLU, the largest of 2 x 2; 10 logits."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.depth, inputs, channels = c.depth, 1, c.width
        for i in range(1, c.depth + 1):
            setattr(self, f"conv{i}", nn.Conv2d(inputs, channels, 3, padding=1, bias=False))
            if c.batchnorm:
                setattr(self, f"bn{i}", nn.BatchNorm2d(channels))
            setattr(self, f"relu{i}", nn.ReLU())
            setattr(self, f"pool{i}", nn.MaxPool2d(2))
            inputs, channels = channels, 2 * channels
        self.flatten = Flatten()
        self.head = nn.Linear(inputs * (8 >> c.depth) ** 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(1, self.depth + 1):
            x = getattr(self, f"conv{i}")(x)
            if hasattr(self, f"bn{i}"):
                x = getattr(self, f"bn{i}")(x)
            x = getattr(self, f"pool{i}")(getattr(self, f"relu{i}")(x))
        return self.head(self.flatten(x))


# ---- text: decoders ----

def norm(c: Config) -> nn.Module:
    if c.norm == "rmsnorm":
        return nn.RMSNorm(c.width, eps=1e-5)
    return nn.LayerNorm(c.width, eps=1e-5, bias=c.biases)


def rotary(length: int, size: int) -> "Tuple[torch.Tensor, torch.Tensor]":
    """Cosines and sines of places x pairs, the library's."""
    import mpsim
    return tuple(torch.from_numpy(np.array(t, np.float32)) for t in mpsim.rotary(length, size))  # type: ignore[return-value]


class Heads(nn.Module):
    """Columns to heads; queries and keys turned by their places, in float32, rounded once."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.parts, self.size = (c.width, c.kv_heads * c.size, c.kv_heads * c.size), c.size
        if c.positions == "rotary":
            cos, sin = rotary(c.context, c.size)
            self.register_buffer("cos", cos, persistent=False)
            self.register_buffer("sin", sin, persistent=False)

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        if not hasattr(self, "cos"):
            return x
        cos, sin = self.cos[:x.shape[2]], self.sin[:x.shape[2]]
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    def forward(self, x: torch.Tensor) -> "Tuple[torch.Tensor, torch.Tensor, torch.Tensor]":
        q, k, v = (p.unflatten(-1, (-1, self.size)).transpose(1, 2) for p in x.split(self.parts, dim=-1))
        return self.turn(q), self.turn(k), v


class Scores(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).transpose(-1, -2)


class Softmax(nn.Module):
    """Over places up to its own, in float32."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(size)

    def forward(self, s: torch.Tensor) -> torch.Tensor:
        later = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
        return torch.softmax((s.float() * self.scale).masked_fill(later, -math.inf), dim=-1)


class Context(nn.Module):
    def forward(self, p: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return p @ v.repeat_interleave(p.shape[1] // v.shape[1], dim=1)


class Attention(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.qkv = nn.Linear(c.width, (c.heads + 2 * c.kv_heads) * c.size, bias=c.biases)
        self.heads = Heads(c)
        if c.attention == "eager":
            self.scores, self.softmax, self.context = Scores(), Softmax(c.size), Context()
        self.proj = nn.Linear(c.width, c.width, bias=c.biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.heads(self.qkv(x))
        if hasattr(self, "scores"):
            y = self.context(self.softmax(self.scores(q, k)), v)
        else:
            shared = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}  # which torch 2.4 and older do not have
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, **shared)
        return self.proj(y.transpose(1, 2).flatten(2))


class SwiGlu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = x.chunk(2, dim=-1)
        return F.silu(gate) * value


class Feed(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.fc = nn.Linear(c.width, c.hidden * (2 if c.activation == "swiglu" else 1), bias=c.biases)
        if c.activation == "swiglu":
            self.act: nn.Module = SwiGlu()
        else:
            self.act = nn.GELU(approximate="tanh" if c.activation == "gelu-tanh" else "none")
        self.proj = nn.Linear(c.hidden, c.width, bias=c.biases)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(self.act(self.fc(x)))


class Block(nn.Module):
    def __init__(self, c: Config) -> None:
        super().__init__()
        self.ln1, self.attn, self.ln2, self.mlp = norm(c), Attention(c), norm(c), Feed(c)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Decoder(nn.Module):
    """GPT-2's form, Llama's, and what lies between: tokens to logits."""

    def __init__(self, c: Config) -> None:
        super().__init__()
        self.depth, self.again = c.depth, c.checkpoint
        self.wte = nn.Embedding(c.vocabulary, c.width)
        if c.positions == "learned":
            self.wpe = nn.Embedding(c.context, c.width)
        for i in range(c.depth):
            setattr(self, f"h{i}", Block(c))
        self.lnf = norm(c)
        self.head = nn.Linear(c.width, c.vocabulary, bias=False)
        if c.tied:
            self.head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens)
        if hasattr(self, "wpe"):
            x = x + self.wpe.weight[:tokens.shape[1]]
        for i in range(self.depth):
            block = getattr(self, f"h{i}")
            x = checkpoint(block, x, use_reentrant=self.again == "reentrant") if self.again else block(x)
        return self.head(self.lnf(x))


def build(c: Config) -> nn.Module:
    """The network, with whatever weights torch draws."""
    made = {"mlp": Mlp, "cnn": Cnn}.get(c.net, Decoder)(c)
    return made.to(memory_format=torch.channels_last) if c.net == "cnn" else made


def loss_of(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of a batch."""
    return F.cross_entropy(model(inputs).flatten(0, -2), labels.flatten())


# ---- data: digits and text, seeds and windows ----

def escaped(text: str) -> bytes:
    """A string of C whose escapes are \\n, \\", \\\\ and \\?."""
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text).encode("ascii")


def text_of(path: str) -> np.ndarray:
    """The bytes of data/text/text.inc: strings of C, a line each."""
    with open(path, encoding="ascii") as f:
        lines = [line.strip().rstrip(",;") for line in f]
    return np.frombuffer(b"".join(escaped(s[1:-1]) for s in lines if s.startswith('"')), np.uint8).astype(np.int64)


def digits_of(path: str) -> "Tuple[np.ndarray, np.ndarray]":
    """Pixels (0 to 16) and labels of data/digits/digits.inc: a label and 64 letters a line."""
    with open(path, encoding="ascii") as f:
        rows = [line.strip().strip(',;"') for line in f if line.startswith('"')]
    pixels = np.array([[ord(c) - ord("a") for c in row[1:65]] for row in rows], np.float32)
    return pixels, np.array([int(row[0]) for row in rows], np.int64)


def words(seed: int, stream: str, first: int, n: int) -> np.ndarray:
    """n words of 32 bits of a stream, from index `first` on: Philox4x32-10 as doc/reference/transformer.md has it."""
    low, h = 0xFFFFFFFF, 0xCBF29CE484222325
    for byte in stream.encode("ascii"):
        h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    made = []
    for j in range(first // 4, (first + n + 3) // 4):
        c, k = [j & low, j >> 32, h & low, h >> 32], [seed & low, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & low, (a >> 32) ^ c[3] ^ k[1], a & low]
            k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
        made += c
    return np.array(made[first % 4:first % 4 + n], np.int64)


def windows(text: np.ndarray, seed: int, index: int, batch: int, context: int) -> "Tuple[torch.Tensor, torch.Tensor]":
    """Tokens and labels of micro-batch `index` of the run: windows of what is trained on, the text without its last tenth."""
    trained = len(text) - len(text) // 10
    starts = words(seed, "text windows", index * batch, batch) * (trained - context) >> 32
    rows = torch.from_numpy(np.stack([text[s:s + context + 1] for s in starts]))
    return rows[:, :-1], rows[:, 1:]
