"""Part of make bench-python: training steps under mpsim.emulate beside torch's own, by CPU time (a shared machine disturbs the clock), the best of several.

What each row leaves out: `casts only` (arch="torch") and microxcaling have no model of accumulation; microxcaling has no optimizer and no roles,
qtorch rounds the results of layers alone. Peers that are not installed are left out. `python bench_emulate.py gpt2` adds GPT-2 124 M: minutes, 4 GiB.
"""
import importlib.util
import resource
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import mpsim
import mpsim.emulate
from mpsim._library import lib
from mpsim._product import View, multiply
from mpsim.emulate._products import DTYPES

ROWS = (("bf16", "pytorch-amp-bf16", "hopper"), ("fp8", "te-fp8-current", "hopper"), ("mxfp8", "te-mxfp8", "blackwell-scaled"),
        ("nvfp4", "te-nvfp4", "blackwell-scaled"), ("bf16, casts only", "pytorch-amp-bf16", "torch"),
        ("fp8, casts only", "te-fp8-current", "torch"), ("mxfp8, casts only", "te-mxfp8", "torch"), ("nvfp4, casts only", "te-nvfp4", "torch"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Transformer(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, length):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(length, width) * 0.02)
        self.blocks, self.norm = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, x):
        y = self.tokens(x) + self.places
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


def step(model, x):
    def run():
        F.cross_entropy(model(x).flatten(0, 1).float(), x.flatten()).backward()
        model.zero_grad()
    return run


def best(call, times=5):
    """Seconds of CPU time, and by the clock, of the quickest call."""
    call()
    cpu = clock = float("inf")
    for _ in range(times):
        c, w = time.process_time(), time.perf_counter()
        call()
        cpu, clock = min(cpu, time.process_time() - c), min(clock, time.perf_counter() - w)
    return cpu, clock


def row(name, seconds, base):
    print(f"{name:22} {seconds[0]:8.3f} s CPU {seconds[1]:8.3f} s clock {seconds[0] / base[0]:6.1f} x", flush=True)


def transformer():
    """2 layers of 256, 8 x 128 tokens: forward and backward."""
    torch.manual_seed(0)
    model, x = Transformer(2, 256, 4, 256, 128), torch.randint(256, (8, 128))
    base = best(step(model, x))
    row("torch fp32", base, base)
    for name, policy, arch in ROWS:
        with mpsim.emulate(model, policy, arch=arch, report=False):
            row(name, best(step(model, x), 3), base)
    for name, peer in (("qtorch", peer_qtorch), ("mx", peer_microxcaling)):
        if importlib.util.find_spec(name):
            peer(x, base)
        else:
            print(f"{name}: not installed, its rows are left out", flush=True)


def peer_qtorch(x, base):
    """What layers give, and the gradients of that, as e4m3 and e5m2, by one Quantizer behind each layer; its extension is compiled when it is imported."""
    from qtorch import FloatingPoint
    from qtorch.quant import Quantizer

    model = Transformer(2, 256, 4, 256, 128)
    quantise = Quantizer(FloatingPoint(4, 3), FloatingPoint(5, 2), "nearest", "nearest")
    for layer in model.modules():
        if isinstance(layer, (nn.Linear, nn.LayerNorm)):
            layer.register_forward_hook(lambda layer, given, made: quantise(made))
    row("qtorch fp8", best(step(model, x), 2), base)


def peer_microxcaling(x, base):
    """mx replaces functions of torch for good, so it comes last."""
    import mx
    import mx.mx_mapping

    for name, element in (("microxcaling fp8", "fp8_e4m3"), ("microxcaling fp4", "fp4_e2m1")):
        specs = {"w_elem_format": element, "a_elem_format": element, "block_size": 32, "bfloat": 16, "custom_cuda": False, "scale_bits": 8}
        mx.mx_mapping.inject_pyt_ops(mx.finalize_mx_specs(specs))
        row(name, best(step(Transformer(2, 256, 4, 256, 128), x), 2), base)


def optimizers():
    """A step of AdamW over the parameters of the 2 x 256 transformer: torch's own loop, its fused one, and the hooked step, in place, of
    gradients that a backward pass has just written; with a report updates that are lost are counted, too."""
    torch.manual_seed(0)
    model = Transformer(2, 256, 4, 256, 128)
    grads = [torch.randn_like(p) for p in model.parameters()]

    def steps(optimizer):
        def run():
            for p, g in zip(model.parameters(), grads):
                p.grad = g
                torch.autograd.graph.increment_version(g)
            optimizer.step()
        return run

    base = best(steps(torch.optim.AdamW(model.parameters(), 1e-6)), 10)
    row("AdamW, torch", base, base)
    row("AdamW, torch fused", best(steps(torch.optim.AdamW(model.parameters(), 1e-6, fused=True)), 10), base)
    for policy in ("fp32", "pytorch-amp-bf16", "bf16-stochastic"):
        for report in (False, True):
            with mpsim.emulate(model, policy, report=report):
                row(f"AdamW, {policy}{', counted' if report else ''}", best(steps(torch.optim.AdamW(model.parameters(), 1e-6)), 10), base)


class Empty(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Counted(Empty):
    calls = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls += 1
        return func(*args, **(kwargs or {}))


class Timed:
    """Functions of the library that emulations call, with the seconds that they take."""

    def __init__(self, names):
        self.seconds, self.calls, self.own = 0.0, 0, {name: getattr(lib, name) for name in names}

    def __enter__(self):
        for name, function in self.own.items():
            setattr(lib, name, self.timed(function))
        return self

    def __exit__(self, *error):
        for name, function in self.own.items():
            setattr(lib, name, function)

    def timed(self, function):
        def call(*args):
            c = time.perf_counter()
            try:
                return function(*args)
            finally:
                self.seconds += time.perf_counter() - c
                self.calls += 1
        return call


def in_library(run, times=20):
    """Seconds of a run in the library, without what a call from Python costs."""
    with Timed(("mpsim_product_run", "mpsim_operand_enter", "mpsim_operand_turn")) as timed:
        least = float("inf")
        for _ in range(times):
            timed.seconds, timed.calls = 0.0, 0
            run()
            least = min(least, timed.seconds)
        clock = timed.timed(lambda: None)
        timed.seconds, calls = 0.0, timed.calls
        for _ in range(1000):
            clock()
    return least - timed.seconds / 1000 * calls


def overhead():
    """Microseconds an operation on one thread, of a model whose products cost little: what is beside torch's own time and that in the library."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    mpsim.set_threads(1)
    torch.manual_seed(0)
    model, x = Transformer(2, 16, 2, 16, 8), torch.randint(16, (2, 8))
    run = step(model, x)
    with Counted() as counted:
        run()
    plain = best(run, 30)[0]
    with Empty():
        empty = best(run, 30)[0]
    calls = counted.calls
    print(f"{calls} operations: {1e6 * plain / calls:.1f} us each in torch, {1e6 * (empty - plain) / calls:.1f} more in an empty mode", flush=True)
    for name, policy, report in (("", "fp32", False), (", counted", "fp32", True), ("", "te-fp8-current", False)):
        with mpsim.emulate(model, policy, report=report):
            for _ in range(3):
                run()
            step_, library = best(run, 30)[0], in_library(run)
        print(f"  {1e6 * (step_ - plain - library) / calls:.1f} more under mpsim.emulate{name} ({policy}), and {1e6 * library / calls:.1f} in the library", flush=True)
    torch.set_num_threads(threads)
    mpsim.set_threads(threads)


def alone(audit, steps):
    """CPU seconds of the products of a step at the library's own speed, by an audit of so many."""
    total = 0.0
    for p in audit:
        n, rows, columns, depth = p.shape
        formats = [mpsim.formats[f] for f in p.formats]
        kinds = [DTYPES.get(f.name, torch.float32) for f in formats]
        a, b = torch.randn(n, rows, depth).to(kinds[0]), torch.randn(n, columns, depth).to(kinds[1])
        d = torch.zeros(n, rows, columns, dtype=kinds[2])
        left, right, out = View.of(a), View.of(b), View.of(d)
        c = time.process_time()
        multiply(out, (left, formats[0]), (right, formats[1]), p.model, format=formats[2])
        total += (time.process_time() - c) * p.calls
    return total / steps


def gpt2():
    """GPT-2 124 M, 1,024 tokens: a step beside its products alone, and the memory of both."""
    torch.manual_seed(0)
    model, x = Transformer(12, 768, 12, 50257, 1024), torch.randint(50257, (1, 1024))
    model.head.weight = model.tokens.weight
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    base = best(step(model, x), 1)
    row("GPT-2, torch fp32", base, base)
    torchs = peak()
    with mpsim.emulate(model, "pytorch-amp-bf16", report=False) as e:
        step(model, x)()
        c = time.process_time()
        step(model, x)()
        ours = time.process_time() - c
        audit = e.audit()
    products = alone(audit, 2)
    print(f"GPT-2, bf16: a step {ours:.1f} s CPU, its products alone {products:.1f} s, {ours / products:.2f} x; peak memory {peak():.2f} GiB, of torch "
          f"{torchs:.2f} GiB", flush=True)


def main():
    transformer()
    optimizers()
    overhead()
    if "gpt2" in sys.argv[1:]:
        gpt2()


if __name__ == "__main__":
    main()
