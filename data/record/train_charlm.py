# SPDX-License-Identifier: Apache-2.0
"""Train a small character-level transformer and record a trace.

    python3 train_charlm.py --text jargon.txt.gz ../charlm
"""
import argparse
import gzip
import hashlib
import math

from deterministic import setup
import torch
from recorder import Recorder

SEED, BATCH, T, DIM, HEADS, LAYERS = 20240502, 3, 20, 32, 2, 2
LR, BETAS, EPS, DECAY = 2e-3, (0.9, 0.99), 1e-8, 0.01
STEPS, LAST = (1, 100, 1000, 11999, 12000), 12000
ASCII = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"})


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(DIM, 3 * DIM)
        self.softmax = torch.nn.Softmax(dim=-1)
        self.proj = torch.nn.Linear(DIM, DIM)
        self.register_buffer("mask", torch.ones(T, T, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // HEADS)
        w = self.softmax(scores.masked_fill(self.mask[:t, :t], float("-inf")))
        return self.proj((w @ v).transpose(1, 2).reshape(b, t, d))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.attn = torch.nn.LayerNorm(DIM), Attention()
        self.ln2 = torch.nn.LayerNorm(DIM)
        self.fc1, self.gelu, self.fc2 = torch.nn.Linear(DIM, 4 * DIM), torch.nn.GELU(), torch.nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.fc2(self.gelu(self.fc1(self.ln2(x))))


class CharLM(torch.nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.tok, self.pos = torch.nn.Embedding(vocab, DIM), torch.nn.Embedding(T, DIM)
        self.blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS))
        self.lnf, self.head = torch.nn.LayerNorm(DIM), torch.nn.Linear(DIM, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.lnf(x))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--text", required=True, help="text file, UTF-8, plain or .gz")
    ap.add_argument("directory")
    args = ap.parse_args()
    raw = (gzip.open if args.text.endswith(".gz") else open)(args.text, "rb").read()
    print("text: %d bytes, SHA-256 %s" % (len(raw), hashlib.sha256(raw).hexdigest()))
    text = raw.decode("utf-8").translate(ASCII).encode("ascii", "ignore").decode()
    text = text[text.index("Glossary"):]
    chars = sorted(set(text))
    print(f"{len(text)} characters, vocabulary of {len(chars)}")
    code = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([code[c] for c in text])
    train, valid = data[:len(data) * 9 // 10], data[len(data) * 9 // 10:]

    setup(SEED)
    model = CharLM(len(chars))
    opt = torch.optim.AdamW(model.parameters(), lr=LR, betas=BETAS, eps=EPS, weight_decay=DECAY, foreach=False)
    rec = Recorder(model, args.directory, STEPS, optimizer=opt, modules=r"(?!.*gelu).*", out_modules="head",
                   settings=False, meta={
        "model": "charlm", "optimizer": "adamw", "lr": LR, "betas": "%g,%g" % BETAS, "eps": EPS,
        "weight_decay": DECAY, "grad_clip": 0, "seed": SEED, "batch": BATCH, "micro_batch": 0,
        "dtype_computed": "F32"})

    def batch(source):
        start = torch.randint(len(source) - T - 1, (BATCH,)).tolist()
        return (torch.stack([source[i:i + T] for i in start]), torch.stack([source[i + 1:i + T + 1] for i in start]))

    def loss_of(x, y):
        logits = model(x)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())

    mean = 0.0
    for step in range(1, LAST + 1):
        x, y = batch(train)
        opt.zero_grad()
        rec.begin(step)
        loss = loss_of(x, y)
        loss.backward()
        rec.end(loss)
        opt.step()
        mean += (loss.item() - mean) / min(step, 200)
        if step in STEPS:
            print(f"step {step:6d}  loss {loss.item():.5f}  running mean {mean:.4f}")
    with torch.no_grad():
        print("validation loss %.4f" % (sum(loss_of(*batch(valid)).item() for _ in range(500)) / 500))


if __name__ == "__main__":
    main()
