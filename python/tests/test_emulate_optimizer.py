"""Optimizers and loss scalers of mpsim.emulate, on gradients that `mpsim train` recorded and on small ones."""
import copy
import ctypes
import json
import os
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import SOURCES

import mpsim
from mpsim import InputError
from mpsim._policy import Policy

torch = pytest.importorskip("torch")
nn = torch.nn
optimizer_of = pytest.importorskip("mpsim.emulate._optimizer")
there = pytest.importorskip("mpsim.emulate._there")
Optimizers = optimizer_of.Optimizers


class Lion(torch.optim.Optimizer):
    """As lion-pytorch's, by name."""

    mpsim_algorithm = "lion"

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        return closure() if closure else None


class Context:
    """What the emulator gives: parameters with names and placements, a seed, the step."""

    def __init__(self, model, plan, seed=0, **more):
        self.seed, self.step, self.notes, self.model = seed, 0, [], model
        self.note = lambda line: None if line in self.notes else self.notes.append(line)
        self.place(plan)
        vars(self).update(more)

    def place(self, plan):
        self.params = {}
        for name, p in self.model.named_parameters():
            place = plan.place(name.rpartition(".")[0], "linear", rank=p.dim() if name.endswith("weight") else 1, weighs=True)
            if p.dim() == 1 and place.muon:
                place = plan.place(name, "norm", rank=1)
            if place.kept.name != "binary32":
                with torch.no_grad():
                    p.copy_(mpsim.round(p.detach(), place.kept))
            self.params[id(p)] = SimpleNamespace(name=name, tensor=p, placement=place)


@pytest.fixture
def stepping():
    """Makes Optimizers of a model under a policy, and closes them."""
    made = []

    def make(model, policy, seed=0, **more):
        plan = policy if hasattr(policy, "place") else Policy.open(policy).plan()
        options = {k: more.pop(k) for k in ("native", "counting") if k in more}
        o = Optimizers(Context(model, plan, seed, **more), **options)
        o.open()
        o.place(plan)
        made.append(o)
        return o

    yield make
    for o in made:
        o.close()


def small(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))


X = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))


def loss_of(model):
    return model(X).square().mean()


def numbers(model):
    return [p.detach().clone() for p in model.parameters()]


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b))


def test_structures(tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc")
    if not SOURCES or not cc:
        pytest.skip("no C compiler, or MPSIM_SRCDIR names no checkout")
    structures = {**optimizer_of.STRUCTURES, **there.STRUCTURES}
    lines = []
    for name, structure in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));' for field, _ in structure._fields_]
    (tmp_path / "x.c").write_text("#include <mpsim/mpsim.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "}\n")
    subprocess.run([cc, "-I", os.path.join(SOURCES, "lib", "include"), "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    theirs = subprocess.run([tmp_path / "x"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    ours = []
    for name, structure in structures.items():
        ours.append(f"{name} {ctypes.sizeof(structure)}")
        ours += [f"{name}.{field} {getattr(structure, field).offset}" for field, _ in structure._fields_]
    assert theirs == ours


# ---- the trainer's steps, on its own gradients

STEPS = 5
ADAMW = ["--optimizer", "adamw", "--lr", "0.001"]
RUNS = [
    ("pytorch-amp-fp16", []), ("pytorch-amp-fp16", ADAMW), ("fp16-static", ADAMW), ("apex-O2", []), ("apex-O2", ADAMW), ("megatron-bf16", ADAMW),
    ("megatron-fp16", ADAMW), ("bf16-pure", ADAMW), ("bf16-stochastic", ADAMW), ("bf16-kahan", ADAMW), ("torchao-adamw8bit", ADAMW),
    ("torchao-adamw4bit", ADAMW), ("coat-fp8-states", ADAMW), ("fp8-lm", ADAMW), ("lion", []), ("muon-bf16", ADAMW), ("deepspeed-fp16", ADAMW),
    ("te-mxfp8", ADAMW), ("fp32", ["--optimizer", "adafactor"]), ("keras-mixed-float16", []), ("pytorch-amp-fp16", [*ADAMW, "--clip", "torch:0.1"]),
]


def recorded(folder, policy, options):
    """A run of the program with everything in a trace, and its words."""
    words = ["train", "--net", "mlp", "-P", policy, "--steps", str(STEPS), "--width", "80", "--batch", "16", "--quiet", *options]
    program = mpsim._library.PROGRAM
    text = folder / "run.txt"
    subprocess.run([program, *words, "--write-run", str(text)], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([program, *words, "--every", "1", "--json", "--trace", str(folder / "trace")], check=True, stdout=subprocess.PIPE)
    lines = {}
    for line in text.read_text().splitlines():
        lines.setdefault(line.split(" ")[0], line.partition(" ")[2])
    return json.loads(done.stdout), lines, [mpsim.open(folder / "trace" / f"step_{i + 1:06}" / "rank_00000.safetensors") for i in range(STEPS)]


def number(word):
    return float.fromhex(word) if "0x" in word else float(word)


def optimizers_of(model, lines):
    name, *rest = lines["optimizer"].split()
    n = {k: number(v) for k, _, v in (w.partition("=") for w in rest if "=" in w) if k not in ("variant", "store", "muon")}
    if name == "sgd":
        return torch.optim.SGD(model.parameters(), n["lr"], n["momentum"], n["dampening"], n["weight_decay"], bool(n["nesterov"]))
    if name == "lion":
        return Lion(model.parameters(), n["lr"], (n["beta1"], n["beta2"]), n["weight_decay"])
    if name == "adafactor":
        return torch.optim.Adafactor(model.parameters(), n["lr"], n["beta2_decay"], (n["eps"], n["eps2"]), n["d"], n["weight_decay"])
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    return kind(model.parameters(), n["lr"], (n["beta1"], n["beta2"]), n["eps"], n["weight_decay"])


def tensor(file, name):
    return torch.from_numpy(np.ascontiguousarray(np.asarray(file[name]), np.float32))


class Net(nn.Module):
    """The parameters of the program's mlp, by its names, of any shape."""

    def __init__(self, file):
        super().__init__()
        self.names = sorted({name.partition(":")[2] for name in file if name.startswith("wgrad:")})
        for name in self.names:
            module, _, what = name.rpartition(".")
            if module not in self._modules:
                self.add_module(module, nn.Module())
            kind = "master:" if f"master:{name}" in file else "weight:"
            self._modules[module].register_parameter(what, nn.Parameter(tensor(file, kind + name)))


@pytest.mark.parametrize("policy, options", RUNS, ids=[" ".join([p, *o]) for p, o in RUNS])
def test_steps_of_the_trainer(tmp_path, stepping, policy, options):
    """Weights, masters and moments after each step, the scale and the norm: those of the program, on the gradients that it recorded."""
    said, lines, files = recorded(tmp_path, policy, options)
    keys = {}
    if "clip" in lines and not lines["clip"].startswith("none"):
        rule, _, norm = lines["clip"].partition(" max=")
        keys = {"rule": rule, "norm": number(norm)}
    model = Net(files[0])
    plan = Policy.open(policy, layers=["fc1", "fc2", "head"]).plan()
    if keys and not plan.clip:
        folder = os.path.join(SOURCES, "data", "policies") if SOURCES else mpsim._policy.FOLDER
        with open(os.path.join(folder, policy + ".yaml"), encoding="utf-8") as f:
            (tmp_path / "own.yaml").write_text(f"{f.read()}clip: {{rule: {keys['rule']}, max_norm: {keys['norm']!r}}}\n")
        plan = Policy.open(tmp_path / "own.yaml").plan()
    o = stepping(model, plan, seed=said["config"]["seed"])
    optimizer = optimizers_of(model, lines)
    compared = 0
    for i, file in enumerate(files):
        step = said["runs"][0]["steps"][i]
        for name in model.names:
            p, kind = model.get_parameter(name), "master:" if f"master:{name}" in file else "weight:"
            assert torch.equal(p, tensor(file, kind + name)), (i, name)
            for key, state in (("opt.m", ("exp_avg", "momentum_buffer")), ("opt.v", ("exp_avg_sq",))):
                for has in (s for s in state if i and s in optimizer.state[p] and f"{key}:{name}" in file):
                    assert torch.equal(optimizer.state[p][has].reshape(p.shape), tensor(file, f"{key}:{name}")), (i, key, name)
            compared += p.numel()
            p.grad = tensor(file, f"wgrad:{name}")
        if "scale" in step:
            assert o.scaling.scale == step["scale"]
        o.scaling.pending = o.scaling.there
        optimizer.step()
        assert o.skipped == bool(step.get("skipped", False))
        if step.get("grad_norm") is not None and not o.skipped and plan.clip:
            assert o.norm == step["grad_norm"]
        o.context.step += 1
    assert compared > 20000


# ---- hooks

def test_the_step_of_torch_moves_nothing(stepping):
    """A rule that torch has, too: fp32 by the variant of torch's own loop is torch's step."""
    theirs, ours = small(), small()
    o = stepping(ours, {"precision": "fp32"}, on_cpu=True)
    a, b = torch.optim.AdamW(theirs.parameters(), 0.01, foreach=False), torch.optim.AdamW(ours.parameters(), 0.01, foreach=False)
    schedule = torch.optim.lr_scheduler.StepLR(b, 1, 0.5)
    torch.optim.lr_scheduler.StepLR(a, 1, 0.5)
    before = numbers(ours)
    for _ in range(3):
        loss_of(ours).backward()
        given = [p.grad for p in ours.parameters()]
        b.step()
        assert all(p.grad is g for p, g in zip(ours.parameters(), given))
        schedule.step()
        b.zero_grad()
    assert not same(before, numbers(ours)) and float(b.state[ours[0].weight]["step"]) == 3
    o.close()
    for _ in range(3):
        loss_of(theirs).backward()
        a.step()
        for g in a.param_groups:
            g["lr"] *= 0.5
        a.zero_grad()
    assert all(torch.allclose(x, y, atol=1e-6) for x, y in zip(numbers(theirs), numbers(ours)))


def test_parameters_of_another_model_are_left_alone(stepping):
    ours, other = small(), small(1)
    stepping(ours, "bf16-pure")
    twin = copy.deepcopy(other)
    a, b = (torch.optim.SGD(m.parameters(), 0.1) for m in (other, twin))
    for m, opt in ((other, a), (twin, b)):
        loss_of(m).backward()
        opt.step()
    assert same(numbers(other), numbers(twin)) and other[0].weight.grad is not None


def test_groups_closures_and_no_gradient(stepping):
    model = small()
    o = stepping(model, "fp32")
    opt = torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.0}, {"params": model[2].parameters()}], 0.5)
    calls = []

    def closure():
        opt.zero_grad()
        loss = loss_of(model)
        loss.backward()
        calls.append(loss)
        return loss

    before = numbers(model)
    assert opt.step(closure) is calls[0] and len(calls) == 1
    after = numbers(model)
    assert same(before[:2], after[:2]) and not torch.equal(before[2], after[2])
    want = before[2] - model[2].weight.grad * torch.tensor(0.5)
    assert torch.equal(after[2], want)
    opt.step(closure=closure)
    assert len(calls) == 2
    model[2].bias.grad = None
    kept, counted = model[2].bias.detach().clone(), o.lost["2.bias"]
    opt.step()
    assert torch.equal(kept, model[2].bias) and o.lost["2.bias"] == counted and o.lost["2.weight"].updates == 3 * 48


def test_several_optimizers_have_one_norm(stepping):
    """Of the gradients of a backward; e.step of some has theirs alone."""
    def run(split, joint):
        model = small()
        o = stepping(model, {"precision": "fp32", "clip": 0.01})
        groups = [[*model[0].parameters()], [*model[2].parameters()]] if split else [[*model.parameters()]]
        optimizers = [torch.optim.SGD(g, 0.5) for g in groups]
        loss_of(model).backward()
        if joint:
            o.step(*optimizers)
        else:
            for each in optimizers:
                each.step()
        o.close()
        return numbers(model), o.norm

    whole = run(False, False)
    for each in (run(True, False), run(True, True)):
        assert same(whole[0], each[0]) and whole[1] == each[1] > 0.01
    model = small()
    o = stepping(model, {"precision": "fp32", "clip": 0.01})
    optimizers = [torch.optim.SGD(m.parameters(), 0.5) for m in (model[0], model[2])]
    loss_of(model).backward()
    o.step(optimizers[1])
    own = o.norm
    assert own < whole[1]
    o.step(optimizers[0])
    assert o.norm < whole[1] and o.norm != own


def test_the_callers_own_clip(stepping):
    def run(own):
        model = small()
        o = stepping(model, {"precision": "fp32", **({} if own else {"clip": {"rule": "torch-cpu", "max_norm": 0.01}})})
        opt = torch.optim.SGD(model.parameters(), 0.5)
        loss_of(model).backward()
        if own:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        opt.step()
        o.close()
        return numbers(model)

    assert all(torch.allclose(a, b, atol=1e-7) for a, b in zip(run(True), run(False)))


# ---- loss scales

def overflow(model):
    model[0].weight.grad[0, 0] = float("inf")


def test_the_policys_scaler(stepping):
    model = small()
    o = stepping(model, {"precision": "fp16", "loss_scaling": {"scaler": "torch", "init_scale": 1024, "growth_interval": 2}})
    opt = torch.optim.SGD(model.parameters(), 0.1)
    told = []
    o.context.stepped = lambda: told.append(o.context.step)
    before = numbers(model)
    o.scaling.backward(loss_of(model))
    scaled = model[2].bias.grad.clone()
    overflow(model)
    opt.step()
    assert same(before, numbers(model)) and o.skipped and o.scaling.scale == 512 and opt.state[model[0].weight] == {}
    opt.zero_grad()
    for _ in range(2):
        o.scaling.backward(loss_of(model))
        opt.step()
        opt.zero_grad()
    assert not same(before, numbers(model)) and o.scaling.scale == 1024
    assert [(h.scale, h.next, h.cause, h.skipped) for h in o.scaling.history] == [
        (1024, 512, "0.weight", True), (512, 512, None, False), (512, 1024, None, False)]
    assert scaled.abs().max() > 10 and len(told) == 3
    o.scaling.backward(loss_of(model).half())
    assert torch.isfinite(model[2].bias.grad).all()


def test_gradients_unscaled_before_the_step(stepping):
    """A caller's own clip under the policy's scaler."""
    def run(scaled):
        model = small()
        o = stepping(model, {"precision": "fp16", "loss_scaling": 1024} if scaled else {"precision": "fp32"})
        opt = torch.optim.SGD(model.parameters(), 0.5)
        o.scaling.backward(loss_of(model))
        o.unscale()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        opt.step()
        o.close()
        return numbers(model), o.scaling.scaler.step

    assert same(run(True)[0], run(False)[0]) and run(True)[1] == 1


@pytest.mark.parametrize("options", [{}, {"foreach": False}, {"fused": True}])
def test_the_callers_grad_scaler(stepping, options):
    """GradScaler scales, checks and skips; of fused optimizers it leaves that to their step."""
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=1)
    model, twin = small(), small()
    o = stepping(model, "pytorch-amp-fp16")
    opt = torch.optim.SGD(model.parameters(), 0.1, **options)
    before = numbers(model)
    scaler.scale(loss_of(model)).backward()
    overflow(model)
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    assert same(before, numbers(model)) and scaler.get_scale() == 128
    scaler.scale(loss_of(model)).backward()
    scaler.step(opt)
    scaler.update()
    assert scaler.get_scale() == 256 and o.scaling.history == []
    assert any("did not take part" in line for line in o.context.notes)
    o.close()
    plain = stepping(twin, "fp16-unscaled")
    loss_of(twin).backward()
    torch.optim.SGD(twin.parameters(), 0.1).step()
    plain.close()
    assert same(numbers(model), numbers(twin))


# ---- states

@pytest.mark.parametrize("policy", ["bf16-stochastic", "bf16-kahan", "torchao-adamw8bit", "megatron-fp16"])
def test_a_resumed_run_has_the_bits(stepping, policy):
    def go(o, model, opt, steps):
        for _ in range(steps):
            o.scaling.backward(loss_of(model))
            opt.step()
            opt.zero_grad()
            o.context.step += 1

    whole, part = small(), small()
    o = stepping(whole, policy)
    opt = torch.optim.AdamW(whole.parameters(), 0.01)
    go(o, whole, opt, 6)
    o.close()
    o = stepping(part, policy)
    opt = torch.optim.AdamW(part.parameters(), 0.01)
    go(o, part, opt, 3)
    kept = copy.deepcopy((part.state_dict(), opt.state_dict(), o.state_dict()))
    o.close()
    again = small(5)
    o = stepping(again, policy)
    again.load_state_dict(kept[0])
    opt = torch.optim.AdamW(again.parameters(), 0.5)
    opt.load_state_dict(kept[1])
    o.load_state_dict(kept[2])
    o.context.step = 3
    go(o, again, opt, 3)
    assert same(numbers(whole), numbers(again)) and o.scaling.scale >= 1
    assert o.lost["0.weight"].updates == 6 * 96


def test_random_bits_have_addresses(stepping):
    """Of seed, step and name: not of the order of steps or parameters."""
    def run(seed, step, backwards=False):
        model = small()
        o = stepping(model, "bf16-stochastic", seed=seed)
        o.context.step = step
        parameters = [*model.parameters()]
        opt = torch.optim.AdamW(parameters[::-1] if backwards else parameters, 1e-3)
        loss_of(model).backward()
        opt.step()
        o.close()
        return numbers(model)

    assert same(run(1, 4), run(1, 4, True)) and not same(run(1, 4), run(2, 4)) and not same(run(1, 4), run(1, 5))


def test_another_plan(stepping):
    policy = Policy.open({"schedule": [{"step": 1, "precision": "fp16", "loss_scaling": 8}, {"step": 3, "precision": "bf16", "params": "bf16", "autocast": "all"}]})
    model = small()
    o = stepping(model, policy.plan(0))
    opt = torch.optim.SGD(model.parameters(), 0.1, 0.9)
    for step in range(4):
        if step == 2:
            o.context.place(policy.plan(step))
            o.place(policy.plan(step))
        o.context.step = step
        o.scaling.backward(loss_of(model))
        opt.step()
        opt.zero_grad()
    buffer = opt.state[model[0].weight]["momentum_buffer"]
    assert torch.equal(buffer, buffer.bfloat16().float()) and o.scaling.scale == 1
    assert torch.equal(model[0].weight, model[0].weight.bfloat16().float())


def test_parameters_in_another_order(stepping):
    """Kernels that lie channels last, gradients too: the bits of those in order. Random bits count elements as they lie, as `mpsim train` does
    (parity.py): they are others."""
    def run(last, policy):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 8, 3))
        if last:
            model.to(memory_format=torch.channels_last)
        o = stepping(model, policy)
        opt = torch.optim.AdamW(model.parameters(), 0.01)
        for _ in range(2):
            model(torch.ones(1, 3, 5, 5)).square().sum().backward()
            opt.step()
        o.close()
        return numbers(model)

    assert same(run(False, "bf16-pure"), run(True, "bf16-pure"))
    assert not same(run(False, "torchao-bf16-sr"), run(True, "torchao-bf16-sr"))


# ---- what is refused

def test_classes(stepping):
    class Mine(torch.optim.Adam):
        def step(self, closure=None):
            return super().step(closure)

    model = small()
    stepping(model, "fp32")
    for make, line in ((lambda: torch.optim.RMSprop(model.parameters(), 0.1), r"no rule of the optimizer torch.optim.rmsprop.RMSprop; native="),
                       (lambda: Mine(model.parameters()), "no rule of the optimizer .*Mine"),
                       (lambda: torch.optim.LBFGS(model.parameters()), "no rule of the optimizer torch.optim.lbfgs.LBFGS")):
        opt = make()
        loss_of(model).backward()
        with pytest.raises(InputError, match=line):
            opt.step(lambda: 0.0)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    opt.param_groups[0]["differentiable"] = True
    with pytest.raises(InputError, match="differentiable=True is not emulated"):
        opt.step()


def test_a_class_that_runs_natively(stepping):
    model, twin = small(), small()
    o = stepping(model, "fp32", native=["RMSprop"])
    opt = torch.optim.RMSprop(model.parameters(), 0.1)
    loss_of(model).backward()
    opt.step()
    assert any("RMSprop runs natively" in line for line in o.context.notes)
    o.close()
    loss_of(twin).backward()
    torch.optim.RMSprop(twin.parameters(), 0.1).step()
    assert same(numbers(model), numbers(twin))
    o = stepping(model, "bf16-pure", native=["torch.optim.rmsprop.RMSprop"])
    loss_of(model).backward()
    opt.step()
    assert torch.equal(model[0].weight, model[0].weight.bfloat16().float())


def test_sparse_gradients_and_what_a_policy_has_not(stepping):
    table = nn.Embedding(5, 3, sparse=True)
    o = stepping(table, "fp32")
    opt = torch.optim.SGD(table.parameters(), 0.1)
    table(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(InputError, match="the gradient of 'weight' is sparse"):
        opt.step()
    o.close()
    model = small()
    stepping(model, "bf16-kahan")
    opt = Lion(model.parameters())
    loss_of(model).backward()
    with pytest.raises(InputError, match="has no variant of lion, kahan"):
        opt.step()


def test_what_differs_from_the_policy_is_noted(stepping):
    model = small()
    o = stepping(model, {"precision": "bf16", "optimizer": {"name": "adamw", "weight_decay": 0.3}})
    opt = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    loss_of(model).backward()
    opt.step()
    assert o.context.notes == ["the policy's weight_decay is 0.3; the optimizer's, 0.1, counts"]
    torch.optim.SGD(model.parameters(), 0.1).step()
    assert "the policy names the optimizer adamw; the class of the optimizer, sgd, counts" in o.context.notes


def test_muon_by_its_class(stepping):
    model = nn.Sequential(nn.Linear(6, 16, bias=False))
    o = stepping(model, "muon-bf16")
    opt = torch.optim.Muon(model.parameters(), lr=0.02, weight_decay=0.0)
    loss_of(model).backward()
    before = numbers(model)[0]
    opt.step()
    moved = (model[0].weight - before).detach()
    singular = torch.linalg.svdvals(moved / (0.02 * (16 / 6) ** 0.5))
    assert 0.5 < singular.min() and singular.max() < 1.3 and o.lost_now["0.weight"].updates == 96
