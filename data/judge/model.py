#!/usr/bin/env python3
"""The products of a language model of 0.5 B parameters on a device, recorded so that `mpsim judge` computes them again on a CPU, bit by bit.

    model.py record --device cuda DIR      one forward pass: DIR/run.json and DIR/operands.safetensors (12 MB for 32 tokens)
    model.py weights DIR                   DIR/weights.safetensors (1 GB), which is not carried: it follows from the seed
    mpsim judge DIR                        all products, the logits among them

The model has the shape of Qwen2.5-0.5B and random weights: integers of PCG64, uniform, rounded to bf16, the same on every machine. Of each
product the operands that are no weights are kept, and a SHA-256 of each row of the results (of stacks: of each matrix). The results of the first layer, and of the
first words of the head, are kept, too: from these the judge finds the rows of the kernels.

--device cpu: torch on this CPU. --device mpsim:ROW: products by a row of mpsim, as hopper-bf16-fp32, in place of a device.
--layers and --words make a smaller model.
"""
import argparse
import hashlib
import json
import os
import struct
import sys
import time

import numpy as np

SHAPE = {"layers": 24, "size": 896, "heads": 14, "pairs": 2, "head": 64, "inner": 4864, "words": 151936}
SEED, EPS, THETA, SAMPLE = 20261128, 1e-6, 1e6, 256
PIECE = 1 << 22  # weights that are made at once


def shapes(s):
    """The names and shapes of all weights, in the order of the file."""
    pairs = s["pairs"] * s["head"]
    yield "embedding", (s["words"], s["size"])
    for i in range(s["layers"]):
        for name, rows, columns in (("q", s["size"], s["size"]), ("k", pairs, s["size"]), ("v", pairs, s["size"]), ("o", s["size"], s["size"]),
                                    ("gate", s["inner"], s["size"]), ("up", s["inner"], s["size"]), ("down", s["size"], s["inner"])):
            yield f"{i}.{name}", (rows, columns)
        for name, n in (("q.bias", s["size"]), ("k.bias", pairs), ("v.bias", pairs), ("norm", s["size"]), ("norm2", s["size"])):
            yield f"{i}.{name}", (n,)
    yield "norm", (s["size"],)


def pieces(number, name, shape):
    """The weights of a tensor as codes of bf16: uniform with a deviation of 0.02; of norms around 1."""
    n, around = int(np.prod(shape)), 1.0 if "norm" in name else 0.0
    bits = np.random.PCG64(SEED + number)
    for first in range(0, n, PIECE):
        count = min(PIECE, n - first)
        raw = bits.random_raw(-(-count // 4)).view(np.uint16)[:count]
        x = (raw.astype(np.float32) - np.float32(32767.5)) * np.float32(0.02 * 3**0.5 / 32768) + np.float32(around)
        code = x.view(np.uint32)
        yield ((code + np.uint32(0x7FFF) + (code >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype("<u2")


def header(entries):
    """The head of a safetensors file of bf16 tensors."""
    at, table = 0, {}
    for name, shape in entries:
        end = at + 2 * int(np.prod(shape))
        table[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def write_weights(folder):
    with open(os.path.join(folder, "run.json")) as file:
        about = json.load(file)["about"]
    all_of, hashed = list(shapes(about["shape"])), hashlib.sha256()
    with open(os.path.join(folder, "weights.safetensors"), "wb") as file:
        file.write(header([*all_of, ("head.sample", (SAMPLE, about["shape"]["size"]))]))
        sample = b""
        for number, (name, shape) in enumerate(all_of):
            for codes in pieces(number, name, shape):
                sample = sample or codes[:SAMPLE * about["shape"]["size"]].tobytes()
                hashed.update(codes.data)
                file.write(codes.data)
        file.write(sample)
    if hashed.hexdigest() != about["weights"]:
        sys.exit(f"{folder}: the weights are not those of the record: PCG64 gives other numbers here")


class Record:
    """Products in their order, the operands to keep, and digests of results."""

    def __init__(self, compute):
        self.compute, self.operations, self.kept = compute, [], {}

    def keep(self, name, x):
        self.kept.setdefault(name, x.detach().to("cpu").contiguous())
        return name

    def product(self, name, a, b, bias=None, whole=False):
        """a: the name and the numbers of the rows; b: those of the columns, whose matrix is transposed; bias: the same, added."""
        d = self.compute(a[1], b[1], None if bias is None else bias[1])
        arrays = {"a": a[0], "b": {"tensor": b[0], "transposed": True}, "d": self.result(f"{name}.d", d, whole)}
        if bias is not None:
            arrays["bias"] = bias[0]
        self.operations.append({"name": name, "kind": "product", "try": "hopper-bf16-fp32", "arrays": arrays})
        return d

    def result(self, name, d, whole):
        if whole:
            return self.keep(name, d)
        codes = to_codes(d.detach().to("cpu").contiguous())
        rows = 1 if d.dim() == 2 else d.shape[-2]
        lines = codes.reshape(-1, rows * d.shape[-1])
        return {"digest": [hashlib.sha256(line.tobytes()).hexdigest() for line in lines], "rows": rows, "format": "bf16", "shape": list(d.shape)}


def to_codes(x):
    import torch

    return x.view(torch.int16).numpy()


def norm(x, weight):
    import torch

    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype) * weight


def turned(x, s):
    """Rotary positions of heads x tokens x head."""
    import torch

    half = s["head"] // 2
    angles = torch.arange(x.shape[1], device=x.device)[:, None] * THETA ** (-torch.arange(half, device=x.device) / half)
    cos, sin, (p, q) = angles.cos(), angles.sin(), x.float().chunk(2, -1)
    return torch.cat((p * cos - q * sin, q * cos + p * sin), -1).to(x.dtype)


def attend(r, i, s, q, k, v, whole):
    import torch

    n, each = q.shape[0], s["heads"] // s["pairs"]
    q, k, v = (x.view(n, -1, s["head"]).transpose(0, 1) for x in (q, k, v))
    q, k = turned(q, s).contiguous(), turned(k, s)
    k, v = (x.repeat_interleave(each, 0).contiguous() for x in (k, v))
    scores = r.product(f"{i}.scores", (r.keep(f"{i}.q.x", q), q), (r.keep(f"{i}.k.x", k), k), whole=whole)
    mask = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
    p = torch.softmax((scores.float() * s["head"] ** -0.5).masked_fill(mask, -torch.inf), -1).to(q.dtype)
    turned_v = v.transpose(1, 2).contiguous()
    y = r.product(f"{i}.context", (r.keep(f"{i}.p", p), p), (r.keep(f"{i}.v.x", turned_v), turned_v), whole=whole)
    return y.transpose(0, 1).reshape(n, -1).contiguous()


def forward(r, w, s, tokens):
    import torch

    def linear(name, x_name, x, whole):
        bias = (f"{name}.bias", w[f"{name}.bias"]) if f"{name}.bias" in w else None
        return r.product(name, (r.keep(x_name, x), x), (name, w[name]), bias, whole)

    x = w["embedding"][tokens]
    for i in range(s["layers"]):
        h = norm(x, w[f"{i}.norm"])
        q, k, v = (linear(f"{i}.{name}", f"{i}.x", h, i == 0) for name in "qkv")
        y = attend(r, i, s, q, k, v, i == 0)
        x = x + linear(f"{i}.o", f"{i}.y", y, i == 0)
        h = norm(x, w[f"{i}.norm2"])
        gate, up = (linear(f"{i}.{name}", f"{i}.h", h, i == 0) for name in ("gate", "up"))
        x = x + linear(f"{i}.down", f"{i}.inner", torch.nn.functional.silu(gate) * up, i == 0)
    x = norm(x, w["norm"])
    logits = r.product("head", (r.keep("head.x", x), x), ("embedding", w["embedding"]))
    r.operations.insert(-1, {"name": "head: the first words", "kind": "product", "try": "hopper-bf16-fp32",
                             "arrays": {"a": "head.x", "b": {"tensor": "head.sample", "transposed": True}, "d": r.keep("head.d", logits[:, :SAMPLE])}})
    return logits


def on_device(a, b, bias):
    import torch

    return torch.nn.functional.linear(a, b, bias) if a.dim() == 2 else torch.bmm(a, b.transpose(1, 2))


def by_row(row):
    """Products by a row of mpsim."""
    import torch
    from mpsim._product import View, multiply

    def compute(a, b, bias):
        d = torch.empty((*a.shape[:-1], b.shape[-2]), dtype=torch.bfloat16)
        multiply(View.of(d), (View.of(a), None), (View.of(b), None), row, bias=None if bias is None else View.row(bias.float()))
        return d

    return compute


def write_record(folder, r, s, weights, device, seconds):
    os.makedirs(folder, exist_ok=True)
    kept = sorted(r.kept)
    with open(os.path.join(folder, "operands.safetensors"), "wb") as file:
        file.write(header([(name, tuple(r.kept[name].shape)) for name in kept]))
        for name in kept:
            file.write(to_codes(r.kept[name]).tobytes())
    import torch

    about = {"shape": s, "seed": SEED, "weights": weights, "device": device, "torch": torch.__version__, "seconds": round(seconds, 3)}
    with open(os.path.join(folder, "run.json"), "w") as file:
        json.dump({"schema": "mpsim.run/1", "about": about, "files": ["operands.safetensors", "weights.safetensors"], "operations": r.operations}, file, indent=0)


def record(folder, device, tokens, s):
    import torch

    place = "cpu" if device.startswith("mpsim:") else device
    if place == "cuda" and not torch.cuda.is_available():
        sys.exit(77)
    hashed, w = hashlib.sha256(), {}
    for number, (name, shape) in enumerate(shapes(s)):
        codes = np.concatenate(list(pieces(number, name, shape)))
        hashed.update(codes.data)
        w[name] = torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16).reshape(shape).to(place)
    words = np.random.PCG64(SEED - 1).random_raw(tokens) % np.uint64(s["words"])
    r = Record(by_row(device[6:]) if device.startswith("mpsim:") else on_device)
    begun = time.perf_counter()
    with torch.no_grad():
        forward(r, w, s, torch.from_numpy(words.astype(np.int64)).to(place))
    named = torch.cuda.get_device_name() if place == "cuda" else device
    write_record(folder, r, s, hashed.hexdigest(), named, time.perf_counter() - begun)
    print(f"{len(r.operations)} products of {tokens} tokens on {named}: {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("record", "weights"))
    parser.add_argument("folder")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tokens", type=int, default=32)
    for key in ("layers", "words"):
        parser.add_argument(f"--{key}", type=int, default=SHAPE[key])
    given = parser.parse_args()
    if given.what == "weights":
        return write_weights(given.folder)
    return record(given.folder, given.device, given.tokens, {**SHAPE, "layers": given.layers, "words": given.words})


if __name__ == "__main__":
    main()
