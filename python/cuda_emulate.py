"""On a machine with a CUDA device: mpsim.emulate of models there, by libmpsim-cuda (MPSIM_CUDA). Every product of a training is computed again in
memory, from copies of its operands, and compared bit for bit; so are casts and optimizer steps. Then steps of a GPT-2 of 124 million parameters are timed
beside torch's own bf16 step, eager and compiled. Needs torch and the package. Exit: 0; 1: something differs; 77: no device.

    MPSIM_CUDA=gpu/build/libmpsim-cuda.so python3 python/cuda_emulate.py
"""
import argparse
import contextlib
import ctypes
import statistics
import sys
import time

import torch
from torch import nn

import mpsim
from mpsim import _cuda, _device
from mpsim._product import Operand, View, enter, multiply
from mpsim.emulate import _homes
from mpsim._windows import tensor_of

functional = nn.functional
POLICIES = ("te-mxfp8", "te-fp8-current", "te-fp8-delayed", "te-nvfp4", "pytorch-amp-bf16", "pytorch-amp-fp16", "fp32")
ARCHS = ("blackwell-scaled", "volta", "ampere", "ada", "cdna3", "exact")  # of other devices
device = "cuda"


class GPT(nn.Module):
    """A GPT-2."""

    def __init__(self, width, layers, heads, vocabulary, length):
        super().__init__()
        self.heads = heads
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "first": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "out": nn.Linear(width, width), "second": nn.LayerNorm(width),
            "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        x = self.table(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in block["qkv"](block["first"](x)).chunk(3, -1))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + block["out"](y.transpose(1, 2).flatten(-2))
            x = x + block["down"](functional.gelu(block["up"](block["second"](x)), approximate="tanh"))
        return self.head(self.last(x))


def loss_of(model, tokens):
    return functional.cross_entropy(model(tokens).float().flatten(0, 1), tokens.roll(-1, 1).flatten())


# ---- every product again, in memory ----

def copied(view):
    return View.of(tensor_of(view).cpu())


class Checked(_homes.OnDevice):
    """A device whose products are computed in memory, too."""

    def __init__(self, home):
        super().__init__(home.device, home.kinds)
        self.products, self.differing, self.numbers = 0, [], 0
        self.enter, self.multiply = self.both_enter, self.both_multiply

    def both_enter(self, view, entering, stats=None, amax=True):
        made = self.device.enter(view, entering, stats, amax)
        made.numbers = enter(copied(view), entering, None, amax)
        return made

    def here(self, side):
        if not isinstance(side, Operand):
            return copied(side[0]), side[1]
        return side.numbers if side._of is None else self.here(side._of).t()

    def both_multiply(self, d, a, b, model, bias=None, factor=1.0, add=None, rng=None, counts=None, **how):
        added = None if add is None else copied(add)
        self.device.multiply(d, a, b, model, bias, factor, add, rng, counts, **how)
        there = tensor_of(d).cpu()
        here = torch.empty_like(there)
        multiply(View.of(here), self.here(a), self.here(b), model, None if bias is None else View.row(bias.keep.cpu()), factor, added, rng, None, **how)
        self.products += 1
        self.numbers += here.numel()
        if not torch.equal(here.nan_to_num(77), there.nan_to_num(77)):
            self.differing.append((model, tuple(d.shape), int((here != there).sum())))


def home(model):
    """The home of a model on the device, or played by the CPU."""
    return _homes.home_of(model)


@contextlib.contextmanager
def checking(found):
    """Emulations have checked homes."""
    from mpsim.emulate import _emulator

    def checked(model):
        found.append(Checked(home(model)))
        return found[-1]
    _emulator.home_of = checked
    try:
        yield
    finally:
        _emulator.home_of = home


def check_products(policy, arch):
    torch.manual_seed(0)
    model = GPT(64, 2, 2, 96, 32).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    found = []
    with checking(found), mpsim.emulate(model, policy, arch=arch, seed=1) as e:
        for step in range(2):
            tokens = torch.randint(0, 96, (2, 32), generator=torch.Generator().manual_seed(step)).to(device)
            e.backward(loss_of(model, tokens))
            opt.step()
            opt.zero_grad()
    checked = found[0]
    return not checked.differing and checked.products > 40, f": {checked.products} products, {checked.numbers} numbers {checked.differing[:3] or ''}"


def check_updates(policy):
    """Steps from the same gradients."""
    made = []
    for where in (device, "cpu"):
        if where == "cpu":
            played, _homes.PLAYED = _homes.PLAYED, None
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(64, 96), nn.Linear(96, 32))
        model = model.to(where)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        with mpsim.emulate(model, policy, seed=1) as e:
            for step in range(3):
                g = torch.Generator().manual_seed(step)
                for p in model.parameters():
                    p.grad = torch.randn(p.shape, generator=g).to(where)
                opt.step()
        made.append([p.detach().cpu() for p in model.parameters()])
        if where == "cpu":
            _homes.PLAYED = played
    return all(torch.equal(a, b) for a, b in zip(*made)), ""


class Images(nn.Module):
    """Convolutions: usual, depthwise, transposed; batch normalisation, pooling."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24)
        self.apart, self.up = nn.Conv2d(24, 24, 3, stride=2, groups=24), nn.ConvTranspose2d(24, 12, 2, stride=2)
        self.head = nn.Linear(12, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.silu(self.norm(self.stem(x))), 2)
        return self.head(self.up(torch.relu(self.apart(x))).flatten(2)[..., 5])


def check_trainings(kind, policy, optimizer):
    """Whole trainings here and there: with between="mpsim" all that is not one rounding is mpsim's own."""
    made = []
    for where in (device, "cpu"):
        played, _homes.PLAYED = _homes.PLAYED, None if where == "cpu" else _homes.PLAYED
        torch.manual_seed(0)
        model = (Images() if kind == "images" else GPT(64, 2, 2, 96, 32)).to(where)
        opt = (torch.optim.AdamW(model.parameters(), 1e-2) if optimizer == "adamw" else
               torch.optim.Muon([p for p in model.blocks.parameters() if p.dim() == 2], 1e-2))
        with mpsim.emulate(model, policy, arch="hopper", between="mpsim", seed=1, report=False) as e:
            for step in range(2):
                g = torch.Generator().manual_seed(step)
                if kind == "images":
                    loss = functional.cross_entropy(model(torch.randn(8, 3, 16, 16, generator=g).to(where)).float(), torch.arange(8).to(where))
                else:
                    loss = loss_of(model, torch.randint(0, 96, (2, 32), generator=g).to(where))
                e.backward(loss)
                opt.step()
                opt.zero_grad()
        made.append([p.detach().cpu() for p in model.state_dict().values()])
        _homes.PLAYED = played
    differ = sum(not torch.equal(a.nan_to_num(77), b.nan_to_num(77)) for a, b in zip(*made))
    return differ == 0, f": {differ} of {len(made[0])} tensors" if differ else ""


def check_testing():
    """The referee of kernels, of tensors there."""
    from mpsim import testing

    if device == "cuda":
        testing.assert_bits(lambda x: x.to(torch.float16), like="fp16@pytorch", device=device)
    found = testing.invariance(lambda a: mpsim.round(a, "e4m3"), torch.randn(8, 32, generator=torch.Generator().manual_seed(1)).to(device))
    return found.invariant, "" if found.invariant else f": {found}"


def check_casts():
    x = torch.randn(1 << 16, generator=torch.Generator().manual_seed(1)) * 10
    at = home(nn.Linear(1, 1).to(device))
    for format in ("e4m3", "e5m2", "e2m1", "tf32", "e3m2"):
        f = mpsim.formats[format]
        if not torch.equal(at.round(x.to(device), f).cpu().nan_to_num(77), mpsim.round(x, f).nan_to_num(77)):
            return False, f": {format}"
    return True, ""


def check_doors():
    """Functions and operators of tensors there, compiled, too."""
    import mpsim.operators

    x = torch.randn(96, 128, generator=torch.Generator().manual_seed(1))
    w = torch.randn(128, 48, generator=torch.Generator().manual_seed(2))
    asked = {
        "round": lambda a, b: mpsim.round(a, "e4m3"), "encode": lambda a, b: mpsim.encode(a.t(), "e5m2", "sr", seed=3),
        "quantize": lambda a, b: mpsim.quantize(a, "mxfp8").values, "nvfp4": lambda a, b: mpsim.quantize(a, "nvfp4", axis="columns").codes,
        "gemm": lambda a, b: mpsim.gemm(a, b, model="hopper-wgmma-fp8-fp32", format="e4m3"),
        "matmul": torch.compile(lambda a, b: torch.ops.mpsim.matmul(torch.ops.mpsim.cast(a, "e4m3"), b, "hopper-bf16-fp32", format="bf16"),
                                fullgraph=True, backend="aot_eager")}
    wrong = [name for name, function in asked.items() if not torch.equal(function(x.to(device), w.to(device)).cpu(), function(x, w))]
    return not wrong, f": {wrong}" if wrong else ""


# ---- speed ----

def synchronize():
    if device == "cuda":
        torch.cuda.synchronize()


def steps_of(model, tokens, opt, begin, backward, n):
    times = []
    with begin() as e:
        for _ in range(n):
            synchronize()
            began = time.perf_counter()
            backward(e, loss_of(model, tokens))
            opt.step()
            opt.zero_grad()
            synchronize()
            times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def speeds(say, quick):
    width, layers, heads, vocabulary, batch, length = (64, 1, 2, 96, 1, 32) if quick else (768, 12, 12, 50257, 8, 1024)
    torch.manual_seed(0)
    model = GPT(width, layers, heads, vocabulary, length).to(device)
    tokens = torch.randint(0, vocabulary, (batch, length)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4, **({"fused": True} if device == "cuda" else {}))

    @contextlib.contextmanager
    def autocast():
        with torch.autocast(device, torch.bfloat16):
            yield None

    def rate(took):
        return f"{1e3 * took:.1f} ms a step, {batch * length / took:.0f} tokens/s"
    base = steps_of(model, tokens, opt, autocast, lambda e, loss: loss.backward(), 6)
    say(f"torch bf16, eager, {batch * length} tokens: {rate(base)}")
    try:
        took = steps_of(torch.compile(model), tokens, opt, autocast, lambda e, loss: loss.backward(), 6)
        say(f"torch bf16, compiled: {rate(took)}, {took / base:.2f} times eager")
    except Exception as error:  # the compiler's own, of many kinds
        say(f"torch bf16, compiled: not timed, torch.compile failed: {type(error).__name__}")
        opt.zero_grad()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for policy, arch, goal in (("te-mxfp8", "hopper", 1.5 * base), ("pytorch-amp-bf16", "hopper", 1.5 * base), ("te-mxfp8", "torch", 1.5 * base), ("te-mxfp8", "blackwell-scaled", 2.0),
                               ("pytorch-amp-bf16", "cdna3", 2.0)):
        took = steps_of(model, tokens, opt, lambda: mpsim.emulate(model, policy, arch=arch, report=False), lambda e, loss: e.backward(loss), 4)
        say(f"{policy}, arch {arch}: {rate(took)}, {took / base:.2f} times torch bf16, eager; goal {1e3 * goal:.0f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model is timed")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda",
                        help="cpu: the CPU plays the device, by tests/gpu/cuda-host.so as MPSIM_CUDA, to try this script")
    a = parser.parse_args()
    global device
    device = a.device
    if device == "cuda" and not torch.cuda.is_available():
        print("no device")
        return 77
    if not _cuda.library():
        print("libmpsim-cuda is not found: MPSIM_CUDA names it")
        return 1
    if device == "cpu":
        _cuda.library().mpsim_test_anywhere(ctypes.c_int(1))
        _homes.PLAYED = _device.Device(0, lambda t: True, lambda: 0, lambda n: torch.empty(n, dtype=torch.uint8))

    def say(line):
        print(line, flush=True)
    bad = 0
    questions = [("casts", check_casts, ()), ("doors", check_doors, ())] + [(f"products of {p}, arch hopper", check_products, (p, "hopper")) for p in POLICIES]
    questions += [(f"products, arch {arch}", check_products, ("te-mxfp8" if "scaled" in arch else "pytorch-amp-fp16" if arch == "volta" else "pytorch-amp-bf16",
                                                                arch)) for arch in ARCHS]
    questions += [(f"a training of {kind} under {policy} by {optimizer}", check_trainings, (kind, policy, optimizer)) for kind, policy, optimizer in (
        ("images", "pytorch-amp-bf16", "adamw"), ("images", "te-fp8-current", "adamw"), ("gpt", "te-mxfp8", "adamw"), ("gpt", "pytorch-amp-bf16", "muon"))]
    questions += [("tensors of mpsim.testing", check_testing, ())]
    questions += [(f"updates of {p}", check_updates, (p,)) for p in ("pytorch-amp-bf16", "bf16-stochastic", {"precision": "fp16", "clip": 0.5})]
    for question, answer, arguments in questions:
        began = time.perf_counter()
        try:
            equal, more = answer(*arguments)
        except (mpsim.Error, AssertionError) as error:
            equal, more = False, f": {error}"
        bad += not equal
        say(f"{question}: {'equal' if equal else 'DIFFERENT'}{more} ({time.perf_counter() - began:.1f} s)")
    speeds(say, a.quick or device == "cpu")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
