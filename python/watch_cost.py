"""make bench-watch: what watching costs a training of a small transformer: milliseconds a step, without and with it.

Steps without and with it take turns, so that both meet the same machine; medians of the processor's time, on one thread
unless --threads says another number (waiting threads of torch spin, and count). Of every=100 the cost is a hundredth
of that of a watched step, plus what the steps between cost, which is measured. Also: the same weights to the bit.
"""
import argparse
import statistics
import sys
import time

import torch
from torch import nn

import mpsim


class Block(nn.Module):
    """Of a GPT: attention and a feed-forward part, each after a norm."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, width // 64, 64).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(n, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)

    def made():
        torch.manual_seed(1)
        model = nn.Sequential(nn.Embedding(512, a.width), *(Block(a.width) for _ in range(a.layers)), nn.LayerNorm(a.width),
                              nn.Linear(a.width, 512))
        return model, torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randint(0, 512, (a.batch, a.length), generator=torch.Generator().manual_seed(2))

    def step(model, opt):
        start = time.process_time()
        opt.zero_grad()
        nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten()).backward()
        opt.step()
        return 1e3 * (time.process_time() - start)
    runs = {"not watched": None, "every=1": {"every": 1}, "every=1, four formats": {"every": 1, "formats": ["fp16", "bf16", "e4m3", "e5m2"]},
            "between watched steps": {"every": 10**9}}
    pairs = {name: made() for name in runs}
    watches = [mpsim.watch(*pairs[name], **options) for name, options in runs.items() if options]
    times = {name: [] for name in runs}
    for k in range(a.steps + 2):
        for name in runs:
            t = step(*pairs[name])
            if k > 1:
                times[name].append(t)
    for w in watches:
        w.close()
    median = {name: statistics.median(t) for name, t in times.items()}
    plain = median["not watched"]
    print("%d layers of width %d, %d x %d tokens, %d threads, %d parameters" % (
        a.layers, a.width, a.batch, a.length, torch.get_num_threads(), sum(p.numel() for p in pairs["every=1"][0].parameters())))
    for name, t in median.items():
        print("%-24s %8.1f ms %+7.1f %%" % (name, t, 100 * (t / plain - 1)))
    each = (0.99 * median["between watched steps"] + 0.01 * median["every=1"]) / plain - 1
    print("%-24s %8s    %+7.1f %%" % ("every=100", "", 100 * each))
    first = list(pairs["not watched"][0].parameters())
    for name, (model, _) in pairs.items():
        if not all(torch.equal(p, q) for p, q in zip(first, model.parameters())):
            return print("other weights: " + name) or 1
    print("the same weights to the bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
