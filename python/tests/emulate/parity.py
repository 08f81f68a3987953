"""`mpsim train` beside the same networks as modules of PyTorch under mpsim.emulate: every tensor in every bit.

    python3 parity.py --net gpt --policy te-mxfp8 --steps 3
    python3 parity.py --all-policies --steps 100 --net mlp --net cnn

runs the program with a trace of every compared step, and the network of networks.py under mpsim.emulate with the optimizer of torch that
has the same rule and numbers, from the weights of the trace's first step, on the same batches. Compared are weights, masters,
moments, activations, gradients, the loss, the norm and the loss scale. Of the first step that differs it prints the first
tensor, its index and both numbers; at the end a table: policies by networks, numbers compared, numbers that differ. The exit code is 1
if anything differs. The checkout that MPSIM_SRCDIR names, or the one this file is in, has the data.
"""
import argparse
import copy
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import traceback
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import networks  # noqa: E402

import mpsim  # noqa: E402
from mpsim._library import PROGRAM  # noqa: E402

SOURCES = os.environ.get("MPSIM_SRCDIR") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
NETS = ("mlp", "cnn", "gpt", "llama")
# small sizes that have all layers: of the program's options
SIZES = {"mlp": ["--width", "32", "--batch", "32"], "cnn": ["--width", "8", "--batch", "16"],
         "gpt": ["--width", "32", "--heads", "2", "--context", "32", "--batch", "2", "--validation", "2"],
         "llama": ["--width", "32", "--heads", "4", "--kv-heads", "2", "--context", "32", "--batch", "2", "--validation", "2"]}


# ---- the run of the program ----

@dataclasses.dataclass
class Run:
    """A training by the program: its JSON, its text, its trace."""
    folder: str
    policy: str
    arch: str
    json: "Dict[str, Any]"
    text: "Dict[str, List[str]]"   # first words of lines, and the rest of each line

    @property
    def config(self) -> "Dict[str, Any]":
        return self.json["config"]

    @property
    def steps(self) -> "List[Dict[str, Any]]":
        return self.json["runs"][0]["steps"]

    def trace(self, step: int) -> str:
        """The file of a step, from 1; empty where there is none."""
        path = os.path.join(self.folder, "trace", f"step_{step:06}", "rank_00000.safetensors")
        return path if os.path.exists(path) else ""


def program(*options: str) -> bytes:
    done = subprocess.run([PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(f"mpsim {' '.join(options)}: {done.stderr.decode().strip()}")
    return done.stdout


def lines_of(path: str) -> "Dict[str, List[str]]":
    found: "Dict[str, List[str]]" = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            key, _, rest = line.strip().partition(" ")
            found.setdefault(key, []).append(rest)
    return found


def train(folder: str, net: str, policy: str, arch: str, steps: int, options: "List[str]", traced: str) -> Run:
    """Trains by the program. traced: the steps that the trace has, as --trace-steps says them."""
    words = ["train", "--net", net, "-P", policy, "--arch", arch, "--steps", str(steps), *options, "--quiet"]
    text = os.path.join(folder, "run.txt")
    program(*words, "--write-run", text)
    made = json.loads(program(*words, "--every", "1", "--json", "--trace", os.path.join(folder, "trace"),
                              "--trace-steps", traced))
    return Run(folder, policy, arch, made, lines_of(text))


# ---- what the module trains on, and with ----

Batch = Tuple[torch.Tensor, torch.Tensor]


def batches_of(run: Run) -> "Iterator[List[Batch]]":
    """Inputs and labels of every step's micro-batches. Which digits a step has, the input of the first layer in a trace says."""
    c = run.config
    if "decoder" in c:
        text, d = networks.text_of(os.path.join(SOURCES, "data", "text", "text.inc")), c["decoder"]
        for step in range(c["steps"]):
            yield [networks.windows(text, c["seed"], step * d["accumulate"] + m, c["batch"], d["context"])
                   for m in range(d["accumulate"])]
        return
    pixels, labels = networks.digits_of(os.path.join(SOURCES, "data", "digits", "digits.inc"))
    of = {row.tobytes(): label for row, label in zip(pixels, labels)}
    for step in range(1, c["steps"] + 1):
        first = tensor_of(mpsim.open(run.trace(step)), "act:conv1" if c["net"] == "cnn" else "act:fc1").reshape(-1, 64)
        known = torch.tensor([int(of[row.tobytes()]) for row in first * 16])
        inputs = torch.from_numpy(first)
        yield [(inputs.reshape(-1, 1, 8, 8) if c["net"] == "cnn" else inputs, known)]


def tensor_of(file: Any, name: str) -> np.ndarray:
    """A tensor of a trace as float32, which holds all numbers of the formats that traces have."""
    return np.ascontiguousarray(np.asarray(file[name]), np.float32)


def of_program(x: torch.Tensor, images: bool) -> np.ndarray:
    """A tensor as traces have it: of images channels innermost."""
    y = x.detach().to(torch.float32)
    return (y.permute(0, 2, 3, 1) if images and y.dim() == 4 else y).contiguous().numpy()


def take_weights(model: torch.nn.Module, run: Run) -> None:
    """Masters where the policy has them, else weights, of the first step."""
    file = mpsim.open(run.trace(1))
    with torch.no_grad():
        for name, p in model.named_parameters():
            kind = "master:" if "master:" + name in file else "weight:"
            x = torch.from_numpy(tensor_of(file, kind + name))
            p.copy_(x.permute(0, 3, 1, 2) if x.dim() == 4 else x)


class Lion(torch.optim.Optimizer):
    """Lion as lion-pytorch names it: its rule is the library's, so the step of its own says that nobody took it over."""
    mpsim_algorithm = "lion"

    def __init__(self, params: Any, lr: float, betas: "Tuple[float, float]", weight_decay: float) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure: Any = None) -> None:
        if any(p.grad is not None for g in self.param_groups for p in g["params"]):
            raise RuntimeError("Lion: the step ran natively")


def number(word: str) -> float:
    return float.fromhex(word) if "0x" in word else float(word)


def rule_of(run: Run) -> "Tuple[str, Dict[str, float]]":
    name, *rest = run.text["optimizer"][0].split()
    words = dict(w.split("=", 1) for w in rest if "=" in w)
    return name, {k: number(v) for k, v in words.items() if k not in ("variant", "store", "muon")}


def groups_of(model: torch.nn.Module, run: Run, decay: float, has: "Callable[[str], bool]") -> "List[Dict[str, Any]]":
    """Parameters; of a transformer vectors do not decay."""
    named = [(n, p) for n, p in model.named_parameters() if has(n)]
    if "decoder" not in run.config or run.config["decoder"]["decay_all"]:
        return [{"params": [p for _, p in named], "weight_decay": decay}]
    return [{"params": [p for _, p in named if p.dim() > 1], "weight_decay": decay},
            {"params": [p for _, p in named if p.dim() == 1], "weight_decay": 0.0}]


def optimizers_of(model: torch.nn.Module, run: Run) -> "List[torch.optim.Optimizer]":
    """torch's optimizers of the run's rules and numbers; two where Muon has the matrices."""
    name, n = rule_of(run)
    made: "List[torch.optim.Optimizer]" = []
    muon = {m for m, p in model.named_parameters() if is_muons(m, p)} if "muon" in run.text else set()
    groups = [g for g in groups_of(model, run, n["weight_decay"], lambda m: m not in muon) if g["params"]]
    betas = n["beta1"], n["beta2"]
    if name == "sgd":
        made.append(torch.optim.SGD(groups, n["lr"], n["momentum"], n["dampening"], nesterov=bool(n["nesterov"])))
    elif name in ("adam", "adamw"):
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        made.append(kind(groups, n["lr"], betas, n["eps"], amsgrad=bool(n["amsgrad"])))
    elif name == "lion":
        made.append(Lion(groups, n["lr"], betas, n["weight_decay"]))
    else:
        raise NotImplementedError(f"optimizer {name}")
    if muon:
        made.append(muon_of(model, run, muon))
    return made


def is_muons(name: str, p: torch.Tensor) -> bool:
    """Matrices of linear layers, without the head."""
    return p.dim() == 2 and not name.startswith(("head", "wte", "wpe"))


def muon_of(model: torch.nn.Module, run: Run, names: "set[str]") -> torch.optim.Optimizer:
    words = dict(w.split("=", 1) for w in run.text["muon"][0].split() if "=" in w)
    n = {k: number(words[k]) for k in ("lr", "momentum", "weight_decay", "eps") if k in words}
    params = [p for m, p in model.named_parameters() if m in names]
    return torch.optim.Muon([{"params": params, "initial": n["lr"]}], nesterov=True, **n)  # type: ignore[arg-type]


def policy_of(run: Run) -> str:
    """The policy, with the clip of the run: of a transformer there is one where the policy says nothing."""
    path = run.policy if run.policy.endswith(".yaml") else os.path.join(SOURCES, "data", "policies", run.policy + ".yaml")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    rule, _, norm = run.text["clip"][0].partition(" max=")
    if rule == "none":
        return run.policy
    text = "".join(line for line in text.splitlines(keepends=True) if not re.match("clip|max_grad_norm|gradient_clip", line))
    made = os.path.join(run.folder, "clipped-" + os.path.basename(path))
    with open(made, "w", encoding="utf-8") as f:
        f.write(f"{text}clip: {{rule: {rule}, max_norm: {number(norm)}}}\n")
    return made


# ---- what modules read and make ----

class Seen:
    """Tensors of a step, by kind and module: in, out; gin: the gradient of the input through the module alone, gout: of the
    output, gall: of the input by all its uses."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.tensors: "Dict[Tuple[str, str], torch.Tensor]" = {}
        self.on = True
        self.hooks: "List[Any]" = []
        for name, m in model.named_modules():
            if name and not list(m.children()) or name.endswith(".attn.heads"):
                self.hooks.append(m.register_forward_pre_hook(self.before(name)))
                self.hooks.append(m.register_forward_hook(self.after(name)))

    def keep(self, kind: str, name: str, x: torch.Tensor) -> None:
        with _disable_current_modes():
            self.tensors[kind, name] = x.detach().clone()

    def gradient(self, kind: str, name: str, x: torch.Tensor) -> None:
        if x.requires_grad:
            x.register_hook(lambda g: self.keep(kind, name, g))

    def before(self, name: str) -> "Callable[..., Any]":
        def hook(_: Any, inputs: "Tuple[torch.Tensor, ...]") -> Any:
            if not self.on or not inputs[0].is_floating_point():
                return None
            self.keep("in", name, inputs[0])
            self.gradient("gall", name, inputs[0])
            alone = inputs[0].view_as(inputs[0])
            self.gradient("gin", name, alone)
            return (alone, *inputs[1:])
        return hook

    def after(self, name: str) -> "Callable[..., None]":
        def hook(_: Any, inputs: Any, output: Any) -> None:
            if self.on:
                first = output[0] if isinstance(output, tuple) else output
                self.keep("out", name, first)
                self.gradient("gout", name, first)
        return hook


KINDS = {"act": "in", "out": "out", "agrad": "gout", "dgrad": "gin"}


def follower(layer: str, depth: int) -> str:
    """The module that reads the sum add1 or add2, or what wpe makes."""
    if layer == "wpe":
        return "h0.ln1"
    block, name = layer.split(".")
    if name == "add1":
        return block + ".ln2"
    return f"h{int(block[1:]) + 1}.ln1" if int(block[1:]) + 1 < depth else "lnf"


def aliases(kind: str, layer: str, depth: int) -> "List[Tuple[str, str]]":
    """Where a tensor of a trace is seen: of its own module, or of a neighbour where the layer is a line of a forward."""
    own = [(KINDS[kind], layer)]
    last = layer.rpartition(".")[2]
    if layer == "wpe" or last in ("add1", "add2"):
        read = {"add1": layer.replace("add1", "ln1"), "add2": layer.replace("add2", "ln2")}.get(last, "")
        return {"out": [("in", follower(layer, depth))], "agrad": [("gall", follower(layer, depth))],
                "dgrad": [("gall", read)], "act": []}[kind]
    if last == "context" and kind in ("out", "agrad"):
        return [("in" if kind == "out" else "gall", layer.replace("context", "proj"))]
    if layer == "loss":
        return [("out", "head")] if kind == "act" else [("gout", "head")]
    if last == "heads" and kind == "dgrad":
        return [("gout", layer.replace("heads", "qkv"))]
    return own


@dataclasses.dataclass
class Difference:
    """The first number that differs in a tensor, and how many do."""
    step: int
    tensor: str
    count: int
    of: int
    index: "Tuple[int, ...]"
    ours: float
    theirs: float

    def __str__(self) -> str:
        bits = [int(np.float32(x).view(np.uint32)) for x in (self.ours, self.theirs)]
        return (f"step {self.step}: {self.tensor}{list(self.index)}: emulate {self.ours!r} (0x{bits[0]:08x}), train "
                f"{self.theirs!r} (0x{bits[1]:08x}); {self.count} of {self.of} differ")


class Judge:
    """Counts numbers, and those that differ."""

    def __init__(self) -> None:
        self.compared, self.different, self.tensors = 0, 0, 0
        self.found: "List[Difference]" = []
        self.unseen: "Dict[str, int]" = {}

    def compare(self, step: int, name: str, ours: "Any", theirs: "Any") -> None:
        a, b = np.asarray(ours, np.float32), np.asarray(theirs, np.float32)
        if a.size != b.size:
            raise ValueError(f"{name}: {a.shape} beside {b.shape}")
        a, b = a.reshape(b.shape), b
        wrong = (a.view(np.uint32) != b.view(np.uint32)) & ~(np.isnan(a) & np.isnan(b))
        self.compared += b.size
        self.tensors += 1
        if wrong.any():
            self.different += int(wrong.sum())
            first = tuple(int(i) for i in np.argwhere(wrong)[0]) if b.ndim else ()
            self.found.append(Difference(step, name, int(wrong.sum()), b.size, first, float(a[first]), float(b[first])))


# ---- a step ----

def moments_of(e: Any, optimizers: "List[torch.optim.Optimizer]", p: torch.Tensor) -> "Dict[str, torch.Tensor]":
    """Moments by the names of traces."""
    words = {"momentum_buffer": "opt.m", "exp_avg": "opt.m", "exp_avg_sq": "opt.v", "max_exp_avg_sq": "opt.vmax"}
    found: "Dict[str, torch.Tensor]" = {}
    for o in optimizers:
        for key, value in (o.state[p] if p in o.state else {}).items():
            if key in words and isinstance(value, torch.Tensor):
                found[words[key]] = value
    return found


DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16}


def header_of(path: str) -> "Dict[str, Any]":
    with open(path, "rb") as f:
        return json.loads(f.read(int.from_bytes(f.read(8), "little")))  # type: ignore[no-any-return]


def metadata_of(path: str) -> "Dict[str, str]":
    return header_of(path)["__metadata__"]  # type: ignore[no-any-return]


def dtypes_of(path: str) -> "Dict[str, str]":
    """The dtypes of a file's tensors."""
    return {name: entry["dtype"] for name, entry in header_of(path).items() if name != "__metadata__"}


def read(x: torch.Tensor, dtype: str) -> torch.Tensor:
    """As a layer reads it: rounded to the format of the trace."""
    return x.detach().to(DTYPES.get(dtype, torch.float32))


class Training:
    """A network of networks.py under mpsim.emulate, step for step beside the trace of a run."""

    def __init__(self, run: Run, form: "Optional[Dict[str, str]]" = None, **options: Any) -> None:
        """form: attention and checkpoint of networks.Config; options: of mpsim.emulate."""
        self.run, self.judge, self.at = run, Judge(), 1
        self.config = networks.Config.of(run.config, **(form or {}))
        self.model = networks.build(self.config)
        take_weights(self.model, run)
        self.optimizers = optimizers_of(self.model, run)
        self.seen = Seen(self.model)
        self.options = options

    def emulate(self) -> Any:
        words = {"policy": policy_of(self.run), "arch": self.run.arch, "seed": self.run.config["seed"], "between": "mpsim",
                 "fused": {"*.act": "swiglu"} if self.config.activation == "swiglu" else {}}
        return mpsim.emulate(self.model, **{**words, **self.options})  # type: ignore[operator]

    def ours(self, e: Any, kind: str, name: str, dtype: str) -> "Optional[torch.Tensor]":
        """A tensor of a trace; None where the modules do not show it."""
        parameters = dict(self.model.named_parameters())
        if kind in KINDS:
            for key in aliases(kind, name, self.config.depth):
                if key in self.seen.tensors:
                    found = self.seen.tensors[key]
                    return read(found, dtype) if kind in ("act", "agrad") else found
            return None
        if kind in ("weight", "master"):
            return parameters[name] if kind == "master" else e.weight(parameters[name])
        if kind == "wgrad":
            return parameters[name].grad
        return moments_of(e, self.optimizers, parameters[name]).get(kind)

    def compare(self, e: Any, step: int, kinds: "Tuple[str, ...]") -> None:
        """Tensors of the trace's step, in its order."""
        path = self.run.trace(step)
        file, dtypes = mpsim.open(path), dtypes_of(path)
        for full in file:
            kind, _, name = full.partition(":")
            if kind.split(".")[0] not in kinds or (kind, name.rpartition(".")[2]) in SILENT:
                continue
            theirs = tensor_of(file, full)
            ours = self.ours(e, kind, name, dtypes[full])
            if ours is None and kind.startswith("opt.") and not theirs.any():
                continue  # moments before the first update
            if ours is None:
                self.judge.unseen[full] = self.judge.unseen.get(full, 0) + 1
                continue
            self.judge.compare(step, full, of_program(ours, self.config.net == "cnn"), theirs)

    def step(self, e: Any, number_: int, batches: "List[Batch]") -> None:
        said = self.run.steps[number_ - 1]
        traced = bool(self.run.trace(number_))
        for o in self.optimizers:
            for g in o.param_groups if "lr" in said else []:
                g["lr"] = said["lr"] if type(o).__name__ != "Muon" else g["initial"] * self.factor(number_)
        self.seen.on = traced
        if traced:
            with _disable_current_modes():
                self.compare(e, number_, ("weight", "master", "opt"))
        losses = []
        for inputs, labels in batches:
            loss = networks.loss_of(self.model, inputs, labels)
            e.backward(loss / len(batches) if len(batches) > 1 else loss)
            losses.append(float(loss.detach()))
        self.said(number_, "scale", float(e.scale), said["scale"])
        with _disable_current_modes():
            self.judge.compare(number_, "loss", losses[0] if len(losses) == 1 else np.mean(losses), said["loss"])
            if traced:
                self.compare(e, number_, ("act", "out", "agrad", "dgrad", "wgrad"))
        for o in self.optimizers:
            o.step()
            o.zero_grad()
        self.said(number_, "norm", float(e.norm), said["norm"])
        self.said(number_, "next scale", float(e.scale), said["next_scale"])

    def said(self, step: int, name: str, ours: float, theirs: "Any") -> None:
        """What the program says of a step; of a norm that nobody computes it says NaN."""
        if theirs != "NaN":
            self.judge.compare(step, name, ours, theirs)

    def factor(self, step: int) -> float:
        """What the schedule multiplies Muon's learning rate by."""
        return float(metadata_of(self.run.trace(step))["mpsim.lr_factor"])

    def go(self, everything: bool = False, until: int = 0, state: "Optional[Dict[str, Any]]" = None) -> Judge:
        """All steps, up to the first that differs unless all are asked for. until: the last step, whose end `saved` has; state: such
        an end, behind which the run goes on."""
        last = until or self.run.config["steps"]
        with self.emulate() as e:
            first = self.restore(e, state) if state else 1
            for number_, batches in enumerate(batches_of(self.run), 1):
                if not first <= number_ <= last:
                    continue
                self.step(e, number_, batches)
                if self.judge.found and not everything:
                    return self.judge
            with _disable_current_modes():
                self.compare(e, last + 1, ("weight", "master", "opt"))
            if until:
                self.saved = self.save(e, last)
        return self.judge

    def save(self, e: Any, step: int) -> "Dict[str, Any]":
        """What a checkpoint of a training has."""
        parts = {"step": step, "model": self.model.state_dict(), "emulation": e.state_dict(),
                 "optimizers": [o.state_dict() for o in self.optimizers]}
        return copy.deepcopy(parts)

    def restore(self, e: Any, state: "Dict[str, Any]") -> int:
        """The step that comes next."""
        self.model.load_state_dict(state["model"])
        for o, s in zip(self.optimizers, state["optimizers"]):
            o.load_state_dict(s)
        e.load_state_dict(state["emulation"])
        return int(state["step"]) + 1


# what a module cannot show, as it reads numbers of a narrower format than it computes in: (kind, layer)
SILENT = {("act", "loss"), ("dgrad", "loss"), ("dgrad", "softmax")}


# ---- many ----

def policies() -> "List[str]":
    return sorted(f[:-5] for f in os.listdir(os.path.join(SOURCES, "data", "policies")) if f.endswith(".yaml"))


def one(a: argparse.Namespace, net: str, policy: str) -> "Tuple[str, Judge]":
    """A row of the table: what to print, and the counts."""
    with tempfile.TemporaryDirectory() as folder:
        traced = f"1-{a.steps}" if net in ("mlp", "cnn") or policy == "muon-bf16" or a.steps <= 10 else f"1,2,3,10,{a.steps // 2},{a.steps}"
        judge = Judge()
        try:
            run = train(folder, net, policy, a.arch, a.steps, SIZES[net] + a.option, traced)
            t = Training(run, {"attention": a.attention, "checkpoint": a.checkpoint}, between=a.between)
            judge = t.judge
            t.go(a.all_steps)
        except Exception as error:  # one row of many
            if a.verbose:
                traceback.print_exc()
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", judge
        return "", judge


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--net", action="append", choices=NETS, help="may be repeated (default: all four)")
    p.add_argument("--policy", action="append", help="a bundled policy; may be repeated (default: fp32)")
    p.add_argument("--all-policies", action="store_true", help="all bundled ones")
    p.add_argument("--arch", default="hopper")
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--attention", default="sdpa", choices=("sdpa", "eager"))
    p.add_argument("--between", default="mpsim", choices=("mpsim", "native"), help="who computes between the products")
    p.add_argument("--checkpoint", default="", choices=("reentrant", "plain"), help="blocks are run again in backward")
    p.add_argument("--option", action="append", default=[], help="another option of mpsim train, as --option=--batch --option=8")
    p.add_argument("--all-steps", action="store_true", help="go on behind a step that differs")
    p.add_argument("--show", type=int, default=1, help="differences that are printed of each run")
    p.add_argument("--verbose", action="store_true", help="where errors come from, and what was not compared")
    return p.parse_args()


def main() -> int:
    a, bad = arguments(), 0
    rows = policies() if a.all_policies else a.policy or ["fp32"]
    print(f"{'policy':24}{'net':6}{'tensors':>9}{'numbers':>13}{'differ':>10}")
    for policy in rows:
        for net in a.net or NETS:
            error, judge = one(a, net, policy)
            print(f"{policy:24}{net:6}{judge.tensors:9}{judge.compared:13,}{judge.different:10,}  {error}", flush=True)
            for difference in judge.found[:a.show]:
                print(f"    {difference}")
            if a.verbose and judge.unseen:
                print("    not compared:", ", ".join(judge.unseen))
            bad += bool(error or judge.different)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
