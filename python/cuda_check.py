"""On a machine with a CUDA device: mpsim.stat of tensors there and mpsim.watch of a training there, by libmpsim-cuda (MPSIM_CUDA),
beside the same in memory, and what watching costs. Needs torch and the package. Exit: 0; 1: something differs; 77: no device.
The file (schema mpsim.cuda-check/2) has a line for each question: `question`, `status` (equal, different), `seconds`.

    MPSIM_CUDA=gpu/build/libmpsim-cuda.so python3 python/cuda_check.py --output FILE
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
from torch import nn

import mpsim
from mpsim import _cuda, _statistics, _watch, _watching

FOUR = ["fp16", "bf16", "e4m3", "e5m2"]
device = "cuda"  # "cpu": played by --device cpu


def synchronize():
    if device == "cuda":
        torch.cuda.synchronize()


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


class Answers:
    """The questions that were asked, with what became of each."""
    def __init__(self, say):
        self.rows, self.say = [], say

    def ask(self, question, answer, *arguments):
        """answer(...) gives True if all is equal, and more words to say."""
        began = time.perf_counter()
        equal, more = answer(*arguments)
        self.rows.append({"question": question, "status": "equal" if equal else "different",
                          "seconds": round(time.perf_counter() - began, 3)})
        self.say(f"{question}: {'equal' if equal else 'DIFFERENT'}{more}")

    def differing(self, word):
        return sum(row["status"] != "equal" for row in self.rows if row["question"].startswith(word))


def differences(got, want, name, say):
    """Of two lists of dicts, said one by one."""
    for a, b in zip(got, want):
        if a != b:
            say(f"  {name(a)}: {[(k, a[k], b.get(k)) for k in a if a[k] != b.get(k)]}"[:600])


def check_stat(answers):
    here = tensors()
    there = {name: t.to(device) for name, t in here.items()}
    there["weight:columns"], there["weight:transposed"] = there["weight:x"][:, ::2], there["weight:x"].t()

    def stat(options):
        got, want = mpsim.stat(there, **options), mpsim.stat({name: t.contiguous() for name, t in here.items()}, **options)
        differences(got.get("tensors", []), want.get("tensors", []), lambda a: a.get("name"), answers.say)
        return dict(got) == dict(want) and str(got) == str(want), ""
    for options in stat_questions():
        answers.ask(f"stat {options}", stat, options)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def training(width, layers, batch, steps, watching=None, autocast=None, times=None):
    """A training; its weights after the last step, and the lines of the watch."""
    torch.manual_seed(3)
    model = nn.Sequential(*(Block(width) for _ in range(layers)), nn.Linear(width, 64)).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width, device=device), torch.randint(0, 64, (batch,), device=device)
    seen = []
    w = mpsim.watch(model, opt, **watching) if watching is not None else None
    if w:
        write = w._write
        w._write = lambda lines: (seen.extend(json.loads(json.dumps(lines))), write(lines))
    for _ in range(steps):
        synchronize()
        began = time.perf_counter()
        with torch.autocast(device, torch.bfloat16, enabled=bool(autocast)):
            loss = nn.functional.cross_entropy(model(x).float(), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        synchronize()
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


def check_watch(answers):
    def watch(kinds, autocast):
        watching = {"every": 2, "formats": FOUR, "kinds": kinds, "updates": ["bf16", "fp16", "e4m3"]}
        args = 64, 2, 96, 5
        plain, _ = training(*args, autocast=autocast)
        weights, lines = training(*args, watching, autocast)
        others, expected = copying(training, *args, watching, autocast)
        same = all(torch.equal(a, b) for a, b in zip(plain, weights)) and all(torch.equal(a, b) for a, b in zip(plain, others))
        differences(lines, expected, lambda a: f"{a.get('level')} {a.get('name')}", answers.say)
        equal = lines == expected and len(lines) > 50
        return same and equal, f": weights {'equal' if same else 'DIFFERENT'}, {len(lines)} lines {'equal' if equal else 'DIFFERENT'}"
    for autocast in (False, True):
        for kinds in (_watch.KINDS, _watch.ALL_KINDS):
            answers.ask(f"watch, autocast {autocast}, {len(kinds)} kinds", watch, kinds, autocast)


def costs(say, width, layers, batch, steps):
    found = {}
    for name, watching, copied in (
            ("not watched", None, False), ("one format", {"every": 1}, False), ("four formats", {"every": 1, "formats": FOUR}, False),
            ("four formats, no updates", {"every": 1, "formats": FOUR, "updates": []}, False),
            ("one format, copied", {"every": 1}, True)):
        for autocast in (False, True):
            times = []
            if device == "cuda":
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
        x = torch.randn(1 << (26 if device == "cuda" else 16), device=device).to(getattr(torch, name))
        for formats in (["fp16"], FOUR):
            times = []
            for _ in range(5):
                synchronize()
                began = time.perf_counter()
                mpsim.stat(x, formats=formats)
                times.append(1e3 * (time.perf_counter() - began))
            found[f"{name}, {len(formats)} formats"] = statistics.median(times)
            say(f"stat of 2^26 {name}, {len(formats)} formats: {statistics.median(times):.2f} ms")
    return found


def write(path, head, answers, times):
    """A question is a line, so that scripts without JSON count them."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("{" + ",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()) + ",\n \"questions\": [\n  ")
        f.write(",\n  ".join(json.dumps(row) for row in answers.rows) + "],\n ")
        f.write(",\n ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in times.items()) + "}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output")
    parser.add_argument("--quick", action="store_true", help="a small training is timed")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: the CPU plays the device, to try this script")
    a = parser.parse_args()
    global device
    device = a.device
    if device == "cuda" and not torch.cuda.is_available():
        print("no device")
        return 77
    if device == "cuda" and not _cuda.library():
        print("libmpsim-cuda is not found: MPSIM_CUDA names it")
        return 1
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else PyTorch refuses products on a device in this mode
    torch.use_deterministic_algorithms(True)

    def say(line):
        print(line, flush=True)
    answers = Answers(say)
    check_stat(answers)
    check_watch(answers)
    head = {"schema": "mpsim.cuda-check/2", "version": mpsim.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else "CPU executor",
            "torch": torch.__version__, "cuda": torch.version.cuda, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "stat_differing": answers.differing("stat"), "watch_differing": answers.differing("watch")}
    times = {}
    if a.output:
        write(a.output, head, answers, times | {"ms_of_stat": None, "ms_of_steps": None})
    times["ms_of_stat"] = speeds(say)
    times["ms_of_steps"] = costs(say, *((256, 2, 256, 5) if a.quick else (2048, 8, 8192, 8)))
    if a.output:
        write(a.output, head, answers, times)
    return int(head["stat_differing"] + head["watch_differing"] > 0)


if __name__ == "__main__":
    sys.exit(main())
