# SPDX-License-Identifier: Apache-2.0
"""The trainings of doc/reference/transformer.md in NumPy, in float64, written from that page alone: whether it says enough.

    python3 decoder_from_the_page.py RUN.json STEP-1-OF-THE-TRACE.safetensors

trains what a run of `mpsim train -P fp32 --every 1 --json --trace DIR --trace-steps 1` trained, and tells how many
initial weights differ from the trace's and how far losses are apart. Of gpt and llama with the norms, activations,
positions and optimizer that they have by default. Needs NumPy; runs on a CPU in seconds.
"""
import ast
import json
import os
import struct
import sys

import numpy as np
from mpsim_random import words


def normal(seed, name, shape, deviation):
    """In float32; ln and cos rounded from float64, from which mpsim's own differ in a last bit now and then."""
    f, n = np.float32, shape[0] * shape[1]
    w = words(seed, "init " + name, 0, 2 * n) >> 8
    u = (w[0::2] + 1).astype(f) * f(2 ** -24)
    turn = w[1::2].astype(f) * f(2 ** -24) * f(float.fromhex("0x1.921fb6p+2"))
    z = np.sqrt(f(-2) * np.log(u.astype(float)).astype(f)) * np.cos(turn.astype(float)).astype(f)
    return (f(deviation) * z).astype(float).reshape(shape)


def bundled_text():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "text", "text.inc")
    with open(path, encoding="ascii") as f:
        lines = [line.strip().replace("\\?", "?") for line in f if line.startswith('"')]
    return np.frombuffer("".join(map(ast.literal_eval, lines)).encode(), dtype=np.uint8).astype(int)


# ---- parameters ----

def shapes(c, d):
    wide, s, gpt = c["width"], c["width"] // d["heads"], c["net"] == "gpt"
    block = {"ln1": (wide,), "attn.qkv": ((d["heads"] + 2 * d["kv_heads"]) * s, wide), "attn.proj": (wide, wide),
             "ln2": (wide,), "mlp.fc": (d["hidden"] * (1 if gpt else 2), wide), "mlp.proj": (wide, d["hidden"])}
    blocks = {f"h{k}.{name}": shape for k in range(c["depth"]) for name, shape in block.items()}
    table = (d["vocabulary"], wide)
    return {"wte": table, **({"wpe": (d["context"], wide)} if gpt else {}), **blocks, "lnf": (wide,),
            **({} if gpt else {"head": table})}


def initial(c, d):
    p = {}
    for layer, shape in shapes(c, d).items():
        name = layer + ".weight"
        deviation = 0.02 * c["gain"] / (np.sqrt(2 * c["depth"]) if layer.endswith(".proj") else 1)
        p[name] = np.ones(shape) if len(shape) == 1 else normal(c["seed"], name, shape, deviation)
        if c["net"] == "gpt" and layer not in ("wte", "wpe"):
            p[layer + ".bias"] = np.zeros(shape[0])
    return p


# ---- layers: each returns its result and a function from the result's gradient to the input's ----

def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, c, d, p):
        self.c, self.d, self.p, self.g = c, d, p, {}
        self.gpt, self.s = c["net"] == "gpt", c["width"] // d["heads"]

    def add(self, name, value):
        self.g[name] = self.g.get(name, 0) + value

    def norm(self, name, x):
        w, b = self.p[name + ".weight"], self.p.get(name + ".bias", 0)
        d = x - x.mean(-1, keepdims=True) if self.gpt else x
        inverse = 1 / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
        h = d * inverse

        def back(dy):
            self.add(name + ".weight", (dy * h).sum((0, 1)))
            if self.gpt:
                self.add(name + ".bias", dy.sum((0, 1)))
            dh = dy * w
            dx = dh - h * (dh * h).mean(-1, keepdims=True)
            return inverse * (dx - dh.mean(-1, keepdims=True) if self.gpt else dx)
        return h * w + b, back

    def linear(self, name, x, weight=None):
        weight = weight or name + ".weight"
        w, b = self.p[weight], self.p.get(name + ".bias", 0)

        def back(dy):
            self.add(weight, np.einsum("nto,nti->oi", dy, x))
            if name + ".bias" in self.p:
                self.add(name + ".bias", dy.sum((0, 1)))
            return dy @ w
        return x @ w.T + b, back

    def turned(self, x, sign):
        if self.gpt:
            return x
        half = self.s // 2
        t = sign * np.arange(x.shape[2])[:, None] * 10000.0 ** (-2 * np.arange(half) / self.s)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate((a * np.cos(t) - b * np.sin(t), b * np.cos(t) + a * np.sin(t)), -1)

    def attention(self, x):
        heads, kv, s, (n, length, _) = self.d["heads"], self.d["kv_heads"], self.s, x.shape
        q, k, v = (y.reshape(n, length, -1, s).transpose(0, 2, 1, 3)
                   for y in np.split(x, (heads * s, (heads + kv) * s), -1))
        take = np.arange(heads) * kv // heads
        q, k, v = self.turned(q, 1), self.turned(k, 1)[:, take], v[:, take]
        p = softmax(np.where(np.tri(length, dtype=bool), q @ k.swapaxes(2, 3) / np.sqrt(s), -np.inf))

        def back(dy):
            do = dy.reshape(n, length, heads, s).transpose(0, 2, 1, 3)
            dp = do @ v.swapaxes(2, 3)
            ds = p * (dp - (p * dp).sum(-1, keepdims=True)) / np.sqrt(s)
            dk, dv = (y.reshape(n, kv, heads // kv, length, s).sum(2)
                      for y in (ds.swapaxes(2, 3) @ q, p.swapaxes(2, 3) @ do))
            parts = self.turned(ds @ k, -1), self.turned(dk, -1), dv
            return np.concatenate([y.transpose(0, 2, 1, 3).reshape(n, length, -1) for y in parts], -1)
        return (p @ v).transpose(0, 2, 1, 3).reshape(n, length, -1), back

    def activation(self, x):
        if self.gpt:
            k = np.sqrt(2 / np.pi)
            t = np.tanh(k * (x + 0.044715 * x ** 3))
            slope = 0.5 * (1 + t) + x / 2 * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x)
            return x / 2 * (1 + t), lambda dy: dy * slope
        gate, value = np.split(x, 2, -1)
        f = 1 / (1 + np.exp(-gate))
        return gate * f * value, lambda dy: np.concatenate((dy * value * f * (1 + gate * (1 - f)), dy * gate * f), -1)

    def layer(self, name, x):
        kind = name.split(".", 1)[-1]
        if kind.startswith("ln"):
            return self.norm(name, x)
        other = {"attn.context": self.attention, "mlp.act": self.activation}.get(kind)
        return other(x) if other else self.linear(name, x)

    def branch(self, x, names):
        """Layers after one another, added to their input."""
        y, way = x, []
        for name in names:
            y, back = self.layer(name, y)
            way.insert(0, back)

        def all_back(dy):
            dx = dy
            for back in way:
                dx = back(dx)
            return dy + dx
        return x + y, all_back

    def forward(self, tokens):
        """Logits, and a function from their gradient to those of all parameters."""
        x, way = self.p["wte.weight"][tokens] + (self.p["wpe.weight"] if self.gpt else 0), []
        for k in range(self.c["depth"]):
            for names in (("ln1", "attn.qkv", "attn.context", "attn.proj"), ("ln2", "mlp.fc", "mlp.act", "mlp.proj")):
                x, back = self.branch(x, [f"h{k}.{name}" for name in names])
                way.insert(0, back)
        x, back_norm = self.norm("lnf", x)
        logits, back_head = self.linear("head", x, "wte.weight" if self.gpt else None)

        def all_back(dy):
            for back in (back_head, back_norm, *way):
                dy = back(dy)
            table = np.zeros_like(self.p["wte.weight"])
            np.add.at(table, tokens, dy)
            self.add("wte.weight", table)
            if self.gpt:
                self.add("wpe.weight", dy.sum(0))
        return logits, all_back

    def loss(self, windows, gradients):
        self.g = {}
        labels = windows[:, 1:, None]
        logits, back = self.forward(windows[:, :-1])
        p = softmax(logits)
        if gradients:
            back((p - (np.arange(p.shape[-1]) == labels)) / labels.size)
        return -np.log(np.take_along_axis(p, labels, -1)).mean()


# ---- the run ----

def rate(d, n, steps):
    warmup, cooldown, least = d["warmup"], d["cooldown"], d["min_lr"]
    y = (n - warmup) / max(steps - warmup, 1)
    r = (n + 1) / warmup if n < warmup else {
        "constant": 1, "linear": 1 - (1 - least) * y,
        "cosine": least + (1 - least) * (1 + np.cos(np.pi * y)) / 2}[d["schedule"]]
    return r * ((steps - n) / (cooldown + 1) if n >= steps - cooldown else 1)


def train(c, d, p):
    """Yields the loss and the validation loss of every step."""
    text, length = bundled_text(), d["context"]
    trained = len(text) - len(text) // 10
    at = np.arange(length + 1)
    n = min(d["validation"], (len(text) - trained - 1) // length)
    held = text[trained + length * np.arange(n)[:, None] + at]
    model, m, v = Model(c, d, p), dict.fromkeys(p, 0), dict.fromkeys(p, 0)
    each = d["accumulate"] * d["ranks"] * c["batch"]
    for step in range(c["steps"]):
        x = words(c["seed"], "text windows", step * each, each)
        loss = model.loss(text[(x * (trained - length) >> 32)[:, None] + at], True)
        norm = np.sqrt(sum((g * g).sum() for g in model.g.values()))
        lr, t = 1e-3 * rate(d, step, c["steps"]), step + 1
        for name, w in p.items():
            g = model.g[name] * min(1, 1 / (norm + 1e-6))
            w -= lr * (0.1 if w.ndim > 1 else 0) * w
            m[name] = 0.9 * m[name] + 0.1 * g
            v[name] = 0.95 * v[name] + 0.05 * g * g
            w -= lr * (m[name] / (1 - 0.9 ** t)) / (np.sqrt(v[name] / (1 - 0.95 ** t)) + 1e-8)
        yield loss, model.loss(held, False)


def weights_of(path):
    with open(path, "rb") as f:
        data = f.read()
    size, = struct.unpack("<Q", data[:8])
    return {name[7:]: np.frombuffer(data[8 + size:][slice(*e["data_offsets"])], "<f4").reshape(e["shape"])
            for name, e in json.loads(data[8:8 + size]).items() if name.startswith("weight:")}


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        run = json.load(f)
    c, d = run["config"], run["config"]["decoder"]
    p, theirs = initial(c, d), weights_of(sys.argv[2])
    assert p.keys() == theirs.keys()
    units = [abs(p[k].astype(np.float32).view(np.int32).astype(int) - theirs[k].view(np.int32)) for k in p]
    print(f"{sum((u > 0).sum() for u in units)} of {sum(u.size for u in units)} initial weights differ, by at most "
          f"{max(u.max() for u in units)} units in the last place")
    worst = [0.0, 0.0]
    for row, ours in zip(run["runs"][0]["steps"], train(c, d, p)):
        apart = [abs(x / row[k] - 1) for x, k in zip(ours, ("loss", "validation_loss"))]
        worst = np.maximum(worst, apart)
    print(f"losses differ by {worst[0]:.1e} of them at most, validation losses by {worst[1]:.1e}")


main()
