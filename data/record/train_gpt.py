# SPDX-License-Identifier: Apache-2.0
"""mpsim's transformers trained by PyTorch, on a CPU or a device: losses, tokens a second, a trace.

    python3 train_gpt.py --steps 20 --record TRACE --record-steps 1,2,20
    python3 train_gpt.py --device cuda --autocast bf16 --attention sdpa --width 768 --depth 12 --heads 12 --batch 8
    python3 train_gpt.py --run RUN.txt --compare TRACE_OF_MPSIM

Text, windows, schedule, groups and clipping are those of `mpsim train --net gpt` or llama (lib/include/train/train.h).
--run takes all settings from a run as text or from a checkpoint of mpsim; --weights the weights from a checkpoint or a
step of a trace, else torch draws them. --compare begins with the weights of a trace's first step, trains beside it, and
prints at each of its steps the losses of both and, with the trace's own weights, how far the gradients are apart; the
exit status is 1 where that is more than --loss-tolerance or --tolerance.

Seen: gpt and llama, width 32, two micro-batches on two ranks, 20 steps, CPU,
torch 2.15.0:

| policy, --autocast | losses differ by | gradients differ by | bounds |
|---|---|---|---|
| fp32, none | 9e-8 | 1.3e-6 | 1e-6, 5e-6 |
| pytorch-amp-bf16, bf16 | 9e-6 | 2.9e-3 | 5e-5, 1e-2 |
| pytorch-amp-fp16, fp16 | 1.0e-6 | 4.2e-4 | 1e-5, 2e-3 |

--device cuda and --autocast fp8 (TransformerEngine) were not run here. --record DIR --record-steps 1,2,3 --repeatable on a CPU: mpsim replay -P
fp32 reproduces all 208,128 weights and moments of three steps.
"""
import argparse
import ast
import contextlib
import glob
import json
import math
import os
import struct
import sys
import time

REPEATABLE = "--repeatable" in sys.argv
if REPEATABLE:                                   # before torch
    from deterministic import ieee_sqrt, setup
import numpy as np  # noqa: E402
import torch  # noqa: E402
import decoder  # noqa: E402
from recorder import Recorder  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LOW = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp8": torch.bfloat16}
# Losses may differ by this share, gradients of a parameter by this share of their norm.
TOLERANCES = {"none": (1e-6, 5e-6), "bf16": (5e-5, 1e-2), "fp16": (1e-5, 2e-3), "fp8": (1e-2, 3e-1)}  # fp8: a guess
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}


# ---- files ----

class Safetensors:
    """A file's metadata, and its tensors as float32."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        n, = struct.unpack("<Q", self.data[:8])
        self.entries, self.start = json.loads(self.data[8:8 + n]), 8 + n
        self.metadata = self.entries.pop("__metadata__", {})

    def get(self, name):
        e = self.entries[name]
        a, b = e["data_offsets"]
        x = np.frombuffer(self.data[self.start + a:self.start + b], dtype=DTYPES[e["dtype"]])
        if e["dtype"] == "BF16":
            x = (x.astype(np.uint32) << 16).view(np.float32)
        return torch.from_numpy(x.astype(np.float32)).reshape(e["shape"])


def run_of(path):
    """The lines "key value" of a run, before its first plan."""
    with open(path, "rb") as f:
        is_text = f.read(12) == b"mpsim-run/1\n"
    if is_text:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    else:
        text = Safetensors(path).metadata["mpsim.train.run"]
    settings = {}
    for line in text.splitlines()[1:]:
        key, _, value = line.partition(" ")
        if key == "plan":
            break
        settings[key] = value
    for line in text.splitlines():
        if line.startswith("optimizer "):
            settings.update(w.split("=", 1) for w in line.split() if "=" in w)
    return settings


def steps_of(trace):
    """Step numbers and files of a trace, in order."""
    found = {}
    for path in glob.glob(os.path.join(trace, "step_*", "rank_00000.safetensors")):
        found[int(os.path.basename(os.path.dirname(path))[5:])] = path
    return dict(sorted(found.items()))


def bundled_text():
    with open(os.path.join(HERE, "..", "text", "text.inc"), encoding="ascii") as f:
        lines = [line.strip().replace("\\?", "?") for line in f]  # no escape of Python's
    return "".join(ast.literal_eval(line) for line in lines if line.startswith('"')).encode("ascii")


def load_weights(model, file):
    with torch.no_grad():
        for name, p in model.named_parameters():
            kind = "master:" if "master:" + name in file.entries else "weight:"
            p.copy_(file.get(kind + name).reshape(p.shape))


# ---- settings ----

def arguments():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    ap.add_argument("--autocast", default="none", choices=("none", "bf16", "fp16", "fp8"))
    ap.add_argument("--fp8-recipe", default="delayed", choices=("delayed", "current", "mxfp8"))
    ap.add_argument("--attention", default="materialised", choices=("materialised", "sdpa"))
    ap.add_argument("--repeatable", action="store_true", help="on a CPU: equal bits at every run, IEEE's square roots")
    ap.add_argument("--record")
    ap.add_argument("--record-steps", default="1,2")
    ap.add_argument("--run")
    ap.add_argument("--weights")
    ap.add_argument("--compare")
    ap.add_argument("--loss-tolerance", type=float)
    ap.add_argument("--tolerance", type=float)
    ap.add_argument("--text", help="bytes; else the bundled text")
    ap.add_argument("--net", default="gpt", choices=("gpt", "llama"))
    for name, value in (("depth", 2), ("width", 64), ("heads", 4), ("kv-heads", 0), ("hidden", 0), ("context", 64),
                        ("batch", 8), ("steps", 300), ("seed", 0), ("accumulate", 1), ("ranks", 1), ("warmup", 20),
                        ("cooldown", 0), ("vocabulary", 0), ("biases", -1), ("tied", -1)):
        ap.add_argument("--" + name, type=int, default=value)
    for name in ("norm", "activation", "positions"):
        ap.add_argument("--" + name, default="")
    ap.add_argument("--schedule", default="cosine", choices=("constant", "linear", "cosine"))
    for name, value in (("lr", 1e-3), ("weight-decay", 0.1), ("beta1", 0.9), ("beta2", 0.95), ("eps", 1e-8),
                        ("clip", 1.0), ("min-lr", 0.1)):
        ap.add_argument("--" + name, type=float, default=value)
    return ap.parse_args()


def number(text):
    return float.fromhex(text) if "0x" in text else float(text)


def take_run(a):
    """What a run of mpsim says instead of the options."""
    s = run_of(a.run)
    words = {"decay": "schedule"}
    for key, value in s.items():
        name = words.get(key, key)
        if name == "rotary":
            a.positions = "rotary" if int(value) else "learned"
        elif name in ("lr", "weight_decay", "beta1", "beta2", "eps", "min_lr"):
            setattr(a, name, number(value))
        elif name not in ("text", "steps") and hasattr(a, name) and isinstance(getattr(a, name), (int, str)):
            setattr(a, name, int(value) if isinstance(getattr(a, name), int) else value)
    a.run_steps = int(s["steps"])


# ---- FP8 ----

def use_fp8(model, recipe):
    """Linear layers but the head become TransformerEngine's; a context to run them in. Never run here: unconfirmed."""
    import transformer_engine.pytorch as te
    from transformer_engine.common import recipe as recipes
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, torch.nn.Linear) and name != "head":
                new = te.Linear(child.in_features, child.out_features, bias=child.bias is not None,
                                params_dtype=torch.float32, device=child.weight.device)
                with torch.no_grad():
                    new.weight.copy_(child.weight)
                    if child.bias is not None:
                        new.bias.copy_(child.bias)
                setattr(parent, name, new)
    chosen = {"delayed": "DelayedScaling", "current": "Float8CurrentScaling", "mxfp8": "MXFP8BlockScaling"}[recipe]
    made = getattr(recipes, chosen)()
    return lambda: te.fp8_autocast(enabled=True, fp8_recipe=made)


# ---- training ----

class Run:
    def __init__(self, a):
        self.a = a
        if a.text:
            with open(a.text, "rb") as f:
                text = f.read()
        else:
            text = bundled_text()
        self.text = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())
        self.trained = len(text) - len(text) // 10
        keys = ("net", "depth", "width", "heads", "kv_heads", "hidden", "context", "norm", "activation", "positions",
                "biases", "tied", "attention")
        self.c = decoder.Config(vocabulary=a.vocabulary or 256, **{k: getattr(a, k) for k in keys})
        torch.manual_seed(a.seed)
        self.model = self.make()
        decoder.initialise(self.model)
        self.fp8 = use_fp8(self.model, a.fp8_recipe) if a.autocast == "fp8" else contextlib.nullcontext
        self.opt = torch.optim.AdamW(decoder.groups(self.model, a.weight_decay), lr=a.lr, betas=(a.beta1, a.beta2),
                                     eps=a.eps)
        self.scaler = torch.amp.GradScaler(a.device, enabled=a.autocast == "fp16")

    def make(self):
        return decoder.Decoder(self.c).to(self.a.device)

    def autocast(self):
        low = LOW.get(self.a.autocast)
        return torch.autocast(self.a.device, dtype=low) if low else contextlib.nullcontext()

    def batch(self, step, micro):
        """micro: of all ranks, in the order rank, micro-batch."""
        a = self.a
        rank, m = divmod(micro, a.accumulate)
        first = ((step * a.accumulate + m) * a.ranks + rank) * a.batch
        starts = decoder.windows(a.seed, first, a.batch, self.trained, a.context)
        return [t.to(a.device) for t in decoder.batch_of(self.text, starts, a.context)]

    def gradients(self, model, step):
        """backward() of all micro-batches; the mean loss."""
        n, total = self.a.accumulate * self.a.ranks, 0.0
        model.zero_grad(set_to_none=True)
        for micro in range(n):
            with self.autocast(), self.fp8():
                loss = decoder.loss_of(model, *self.batch(step, micro))
            self.scaler.scale(loss / n).backward()
            total += loss.detach()
        return total / n

    def schedule(self, step):
        """Before the recorder looks at the optimizer."""
        a = self.a
        for g in self.opt.param_groups:
            g["lr"] = decoder.learning_rate(step, a.run_steps, a.lr, a.schedule, a.warmup, a.min_lr, a.cooldown)

    def update(self):
        a = self.a
        self.scaler.unscale_(self.opt)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), a.clip or math.inf)
        self.scaler.step(self.opt)
        self.scaler.update()
        return norm

    @torch.no_grad()
    def validate(self, windows=32):
        a, n = self.a, 0
        n = min(windows, (len(self.text) - self.trained - 1) // a.context)
        total = 0.0
        for first in range(0, n, a.batch):
            starts = [self.trained + k * a.context for k in range(first, min(first + a.batch, n))]
            tokens, labels = (t.to(a.device) for t in decoder.batch_of(self.text, starts, a.context))
            with self.autocast(), self.fp8():
                total += decoder.loss_of(self.model, tokens, labels).item() * len(starts)
        return total / n if n else math.nan


class Comparison:
    """A trace of mpsim, and a model with its weights."""

    def __init__(self, run, trace):
        self.run, self.files, self.bad, self.done = run, steps_of(trace), 0, 0
        if not self.files:
            sys.exit(f"{trace}: no steps")
        defaults = TOLERANCES[run.a.autocast]
        self.loss_tolerance = run.a.loss_tolerance or defaults[0]
        self.tolerance = run.a.tolerance or defaults[1]
        self.probe = run.make()
        load_weights(run.model, Safetensors(next(iter(self.files.values()))))

    def step(self, number, loss):
        """Of step `number`, from 1; loss: of the run's own weights."""
        if number not in self.files:
            return
        f = Safetensors(self.files[number])
        if "mpsim.loss" not in f.metadata:       # what the last step made
            return
        load_weights(self.probe, f)
        mine, theirs = self.run.gradients(self.probe, number - 1).item(), float(f.metadata["mpsim.loss"])
        ours, scale = self.run.scaler.get_scale(), float(f.metadata["mpsim.loss_scale"])
        worst, where = 0.0, ""
        for name, p in self.probe.named_parameters():
            g, want = p.grad.cpu().double() / ours, f.get("wgrad:" + name).reshape(p.shape).double() / scale
            apart = ((g - want).norm() / want.norm()).item()
            if not apart <= worst:
                worst, where = apart, name
        lost = [abs(x - theirs) / theirs for x in (loss, mine)]
        wrong = not max(lost) <= self.loss_tolerance or not worst <= self.tolerance
        self.bad += wrong
        self.done += 1
        print(f"step {number}: mpsim's loss {theirs:.9g}; here {loss:.9g} ({lost[0]:.1e}), with its weights {mine:.9g} "
              f"({lost[1]:.1e}); gradients apart by {worst:.1e} ({where}){': too much' if wrong else ''}")


def main():
    a = arguments()
    a.run_steps = a.steps
    if REPEATABLE:
        setup(a.seed)
        ieee_sqrt()
    if a.run:
        take_run(a)
    run = Run(a)
    if a.weights:
        load_weights(run.model, Safetensors(a.weights))
    comparison = Comparison(run, a.compare) if a.compare else None
    steps = min(a.steps, max(comparison.files)) if comparison else a.steps
    rec = None
    if a.record:
        rec = Recorder(run.model, a.record, steps={int(s) for s in a.record_steps.split(",")}, optimizer=run.opt,
                       scaler=run.scaler if a.autocast == "fp16" else None,
                       kinds=("weight", "wgrad", "act", "out", "agrad", "dgrad"))
    first = min(10, steps // 2)
    for step in range(steps):
        if step == first:
            if a.device == "cuda":
                torch.cuda.synchronize()
            began = time.perf_counter()
        run.schedule(step)
        if rec:
            rec.begin(step + 1)
        loss = run.gradients(run.model, step)
        if rec:
            rec.end(loss)
        norm = run.update()
        if comparison:
            comparison.step(step + 1, loss.item())
        elif step < 10 or step % 10 == 9 or step + 1 == steps:
            print(f"step {step + 1} loss {loss.item():.9g} norm {norm.item():.6g}")
    if rec:
        rec.close()
    if a.device == "cuda":
        torch.cuda.synchronize()
    if not comparison:
        rate = (steps - first) * a.batch * a.context * a.accumulate * a.ranks / (time.perf_counter() - began)
        where = torch.cuda.get_device_name() if a.device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
        print(f"validation loss {run.validate():.9g}; {rate:.0f} tokens a second ({where}, {a.autocast}, "
              f"{a.attention}, torch {torch.__version__})")
    else:
        print(f"{comparison.done} steps compared, {comparison.bad} beyond losses {comparison.loss_tolerance:g}, "
              f"gradients {comparison.tolerance:g}")
        sys.exit(comparison.bad > 0)


if __name__ == "__main__":
    main()
