"""On a machine with a CUDA device: mpsim.stat of tensors there and mpsim.watch of a training there, by libmpsim-cuda (MPSIM_CUDA),
beside the same in memory, and what watching costs. Needs torch and the package. Exit: 0; 1: something differs; 77: no device.

    MPSIM_CUDA=gpu/build/libmpsim-cuda.so python3 python/cuda_check.py --output FILE
"""
import argparse
import json
import statistics
import sys
import time

import torch
from torch import nn

import mpsim
from mpsim import _cuda, _statistics, _watch, _watching

FOUR = ["fp16", "bf16", "e4m3", "e5m2"]


def tensors():
    """Of several dtypes, sizes, layouts; with what is not a number, too."""
    g = torch.Generator().manual_seed(1)
    x = torch.randn(1003, 517, generator=g)
    odd = x.clone()
    odd[0, :5] = torch.tensor([float("inf"), -float("inf"), float("nan"), 1e-42, 0.0])
    found = {"weight:x": x, "weight:odd": odd, "wgrad:tiny": x * 1e-7, "act:relu": x.relu(), "agrad:large": x * 1e6,
             "weight:empty": x[:0], "weight:one": x[0, 0], "weight:columns": x[:, ::2], "weight:transposed": x.t(),
             "act:double": x.double()}
    for name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(torch, name)
        found[f"act:{name}"], found[f"wgrad:{name}.odd"], found[f"weight:{name}.vector"] = x.to(dtype), odd.to(dtype), x[0, 1:].to(dtype)
    return found


def stat_questions():
    return [{}, {"formats": FOUR}, {"formats": ["fp16", "e4m3@cuda"], "scales": [1, 1024], "histogram": True}, {"counts": True},
            {"formats": ["mxfp8", "fp16"]}, {"formats": ["fp16"], "round": "sr"}]


def check_stat(say):
    bad = 0
    here = tensors()
    there = {name: t.cuda() for name, t in here.items()}
    there["weight:columns"], there["weight:transposed"] = there["weight:x"][:, ::2], there["weight:x"].t()
    for options in stat_questions():
        got, want = mpsim.stat(there, **options), mpsim.stat({name: t.contiguous() for name, t in here.items()}, **options)
        same = dict(got) == dict(want) and str(got) == str(want)
        for a, b in zip(got.get("tensors", []), want.get("tensors", [])):
            if a != b:
                say(f"  {a.get('name')}: {[(k, a[k], b.get(k)) for k in a if a[k] != b.get(k)]}"[:600])
        say(f"stat {options}: {'equal' if same else 'DIFFERENT'}")
        bad += not same
    return bad


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def training(width, layers, batch, steps, watching=None, autocast=None, times=None):
    """A training; its weights after the last step, and the lines of the watch."""
    torch.manual_seed(3)
    model = nn.Sequential(*(Block(width) for _ in range(layers)), nn.Linear(width, 64)).cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width, device="cuda"), torch.randint(0, 64, (batch,), device="cuda")
    seen = []
    w = mpsim.watch(model, opt, **watching) if watching is not None else None
    if w:
        write = w._write
        w._write = lambda lines: (seen.extend(json.loads(json.dumps(lines))), write(lines))
    for _ in range(steps):
        torch.cuda.synchronize()
        began = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16, enabled=bool(autocast)):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        torch.cuda.synchronize()
        if times is not None:
            times.append(1e3 * (time.perf_counter() - began))
    if w:
        w.close()
    return [p.detach().cpu() for p in model.parameters()], seen


def copying(function, *args, **keywords):
    """As without libmpsim-cuda."""
    kept, _statistics.cuda = _statistics.cuda, lambda: None
    try:
        return function(*args, **keywords)
    finally:
        _statistics.cuda = kept


def check_watch(say):
    bad = 0
    for autocast in (False, True):
        for kinds in (_watch.KINDS, _watch.ALL_KINDS):
            watching = {"every": 2, "formats": FOUR, "kinds": kinds, "updates": ["bf16", "fp16", "e4m3"]}
            args = 64, 2, 96, 5
            plain, _ = training(*args, autocast=autocast)
            weights, lines = training(*args, watching, autocast)
            others, expected = copying(training, *args, watching, autocast)
            same = all(torch.equal(a, b) for a, b in zip(plain, weights)) and all(torch.equal(a, b) for a, b in zip(plain, others))
            for a, b in zip(lines, expected):
                if a != b:
                    say(f"  {a.get('level')} {a.get('name')}: {[(k, a[k], b.get(k)) for k in a if a[k] != b.get(k)]}"[:600])
            equal = lines == expected and len(lines) > 50
            say(f"watch, autocast {autocast}, {len(kinds)} kinds, {len(lines)} lines: weights {'equal' if same else 'DIFFERENT'}, "
                f"lines {'equal' if equal else 'DIFFERENT'}")
            bad += not (same and equal)
    return bad


def costs(say, width, layers, batch, steps):
    found = {}
    for name, watching, copied in (
            ("not watched", None, False), ("one format", {"every": 1}, False), ("four formats", {"every": 1, "formats": FOUR}, False),
            ("four formats, no updates", {"every": 1, "formats": FOUR, "updates": []}, False),
            ("one format, copied", {"every": 1}, True)):
        for autocast in (False, True):
            times = []
            torch.cuda.empty_cache()
            run = training if not copied else lambda *a, **k: copying(training, *a, **k)
            run(width, layers, batch, (3 if copied else steps) + 1, watching, autocast, times)
            label = name + (", autocast" if autocast else "")
            found[label] = statistics.median(times[1:])
            base = found["not watched" + (", autocast" if autocast else "")]
            say(f"{label:36} {found[label]:9.2f} ms a step  {found[label] - base:+9.2f}")
    return found


def speeds(say):
    """One tensor, from Python."""
    found = {}
    for name in ("float32", "bfloat16"):
        x = torch.randn(1 << 26, device="cuda").to(getattr(torch, name))
        for formats in (["fp16"], FOUR):
            times = []
            for _ in range(5):
                torch.cuda.synchronize()
                began = time.perf_counter()
                mpsim.stat(x, formats=formats)
                times.append(1e3 * (time.perf_counter() - began))
            found[f"{name}, {len(formats)} formats"] = statistics.median(times)
            say(f"stat of 2^26 {name}, {len(formats)} formats: {statistics.median(times):.2f} ms")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output")
    parser.add_argument("--quick", action="store_true", help="a small training is timed")
    a = parser.parse_args()
    if not torch.cuda.is_available():
        print("no device")
        return 77
    if not _cuda.library():
        print("libmpsim-cuda is not found: MPSIM_CUDA names it")
        return 1
    torch.use_deterministic_algorithms(True)
    result = {"schema": "mpsim.cuda-check/1", "device": torch.cuda.get_device_name(), "torch": torch.__version__}

    def say(line):
        print(line, flush=True)
    result["stat_differing"], result["watch_differing"] = check_stat(say), check_watch(say)
    result["ms_of_stat"] = speeds(say)
    result["ms_of_steps"] = costs(say, *((256, 2, 256, 5) if a.quick else (2048, 8, 8192, 8)))
    if a.output:
        with open(a.output, "w", encoding="utf-8") as f:
            json.dump(result, f, indent=1)
    return int(result["stat_differing"] + result["watch_differing"] > 0)


if __name__ == "__main__":
    sys.exit(main())
