# SPDX-License-Identifier: Apache-2.0
"""Record tiny trainings, each with one thing that a replay must get right.

    python3 train_replay_cases.py ../replay-cases [CASE ...]

Every step is recorded, and after the last one a file of weights and state only. The settings of
the processor are those of train_amp_mlp.py: ATEN_CPU_CAPABILITY=default, MKL_CBWR=AVX2, and
square roots that are IEEE's on every processor.
"""
import argparse
import copy
import os

from deterministic import ieee_sqrt, setup
os.environ["MKL_CBWR"] = "AVX2"                           # as in train_amp_mlp.py
import torch  # noqa: E402
from torch import nn  # noqa: E402
from recorder import Recorder  # noqa: E402

SEED, STEPS, BATCH, CLASSES, VOCABULARY, LENGTH, WIDTH = 20240704, 8, 12, 6, 11, 5, 12
FORLOOP = {"foreach": False, "fused": False}
SCALER = {"init_scale": 2.0 ** 19, "growth_interval": 3}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(WIDTH, 16), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Sometimes(MLP):
    """A branch which every other step leaves out, so that its parameters take fewer steps."""

    def __init__(self):
        super().__init__()
        self.branch, self.calls = nn.Linear(WIDTH, 16), 0

    def forward(self, x):
        self.calls += 1
        h = self.fc1(x)
        return self.fc2(torch.relu(h + self.branch(x) if self.calls % 2 else h))


class Mixed(MLP):
    """The first layer's parameters are in bfloat16, the second's in float32."""

    def __init__(self):
        super().__init__()
        self.fc1.bfloat16()

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x.bfloat16())).float())


class Tied(nn.Module):
    """The decoder's weight is the encoder's."""

    def __init__(self):
        super().__init__()
        self.encoder, self.fc = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.decoder = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(torch.relu(self.fc(self.encoder(x)))).flatten(0, 1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x):
        h = self.embed(x)
        return self.head(h + self.attn(h, h, h, need_weights=False)[0]).flatten(0, 1)


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.ln = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.fc, self.rms = nn.Linear(WIDTH, WIDTH), nn.RMSNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        h = self.embed(x)
        h = h + self.fc(self.ln(h))
        return self.head(self.rms(h)).flatten(0, 1)


def vectors(half=False):
    x = torch.randn(BATCH, WIDTH)
    return x.half() if half else x, torch.randint(CLASSES, (BATCH,))


def words():
    x = torch.randint(VOCABULARY, (BATCH, LENGTH))
    return x, (x + 1).flatten() % VOCABULARY


def weights_and_biases(model, weights, biases):
    named = list(model.named_parameters())
    return [{"params": [p for n, p in named if n.endswith("weight")], **weights},
            {"params": [p for n, p in named if not n.endswith("weight")], **biases}]


def adamw(**options):
    return lambda model: torch.optim.AdamW(model.parameters(), **{"lr": 2e-3, **FORLOOP, **options})


def sgd(**options):
    return lambda model: torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9, **FORLOOP, **options})


def groups_adamw(model):
    return torch.optim.AdamW(weights_and_biases(model, {"weight_decay": 0.05}, {
        "lr": 5e-3, "weight_decay": 0.0, "betas": (0.8, 0.95), "eps": 1e-6}), lr=2e-3, **FORLOOP)


def groups_sgd(model):
    w, b = weights_and_biases(model, {}, {"lr": 0.05, "weight_decay": 0.0, "momentum": 0.5, "dampening": 0.25})
    first, second = ({"params": [p]} for p in w["params"])
    return torch.optim.SGD([{**first, "nesterov": True}, {**second, "maximize": True}, b],
                           lr=0.1, momentum=0.9, weight_decay=1e-2, **FORLOOP)


def layers(first, second):
    """An optimizer for each layer."""
    return lambda model: [first(model.fc1), second(model.fc2)]


def muon(model):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    return [torch.optim.Muon(matrices, lr=1e-2, weight_decay=0.1),
            torch.optim.AdamW([p for p in model.parameters() if p.ndim < 2], lr=2e-3, **FORLOOP)]


def cosine(opt):
    return torch.optim.lr_scheduler.CosineAnnealingLR(opt, STEPS)


def one_cycle(opt):                                       # moves beta1, too
    return torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1e-2, total_steps=STEPS + 1)


AMP = {"autocast": torch.float16, "scaler": SCALER}
CLIP = {**AMP, "optimizer": adamw(), "clip": ("norm", 0.62)}
CASES = {
    "groups-adamw": {**AMP, "optimizer": groups_adamw},
    "groups-sgd": {**AMP, "optimizer": groups_sgd},
    "scheduler-sgd": {"optimizer": sgd(), "scheduler": cosine},
    "scheduler-adamw": {**AMP, "optimizer": adamw(), "scheduler": one_cycle},
    "amsgrad-adamw": {**AMP, "optimizer": adamw(amsgrad=True)},
    "amsgrad-adam": {**AMP, "optimizer": lambda m: torch.optim.Adam(
        m.parameters(), lr=2e-3, weight_decay=0.1, amsgrad=True, **FORLOOP)},
    "amsgrad-gap": {**AMP, "optimizer": adamw(amsgrad=True), "steps": {1, 2, 6, 7, 8}},
    "sgd-nesterov": {**AMP, "optimizer": sgd(nesterov=True, weight_decay=1e-2)},
    "sgd-dampening": {**AMP, "optimizer": sgd(dampening=0.3, weight_decay=1e-2)},
    "clip": CLIP,
    "clip-no-norm": {**CLIP, "note": {"grad_norm": None}},
    "clip-value": {**CLIP, "clip": ("value", 0.01)},
    "tensor-lr": {**AMP, "optimizer": lambda m: torch.optim.AdamW(
        m.parameters(), lr=torch.tensor(3e-3), weight_decay=0.1, **FORLOOP)},
    "tensor-lr-adam": {**AMP, "optimizer": lambda m: torch.optim.Adam(
        m.parameters(), lr=torch.tensor(3e-3), weight_decay=0.1, **FORLOOP)},
    "tensor-betas": {**AMP, "optimizer": lambda m: torch.optim.AdamW(
        m.parameters(), lr=3e-3, betas=(torch.tensor(0.9), torch.tensor(0.999)), weight_decay=0.1, **FORLOOP)},
    "tensor-betas-adam": {**AMP, "optimizer": lambda m: torch.optim.Adam(
        m.parameters(), lr=torch.tensor(3e-3), betas=(torch.tensor(0.9), torch.tensor(0.95)), amsgrad=True, **FORLOOP)},
    "accumulation": {**AMP, "optimizer": adamw(), "micro": 4},
    "accumulation-clip": {**CLIP, "micro": 4, "optimizer": sgd(), "clip": ("norm", 0.35)},
    "tied": {**AMP, "model": Tied, "data": words, "optimizer": adamw()},
    "attention": {**AMP, "model": Attention, "data": words, "optimizer": adamw()},
    "norms": {**AMP, "model": Norms, "data": words, "optimizer": adamw()},
    "bf16": {"autocast": torch.bfloat16, "optimizer": adamw()},
    "sometimes": {**AMP, "model": Sometimes, "optimizer": adamw()},
    "foreach-sgd": {**AMP, "optimizer": sgd(foreach=True)},
    "foreach-adamw": {**AMP, "optimizer": adamw(foreach=True)},
    "fused-sgd": {**AMP, "optimizer": sgd(fused=True), "scaler": {**SCALER, "init_scale": 2.0 ** 17}},
    "fused-adamw": {**AMP, "optimizer": adamw(fused=True)},
    "muon": {"autocast": torch.bfloat16, "optimizer": muon},
    "mixed": {"autocast": torch.bfloat16, "model": Mixed, "optimizer": adamw()},
    "two-optimizers": {**AMP, "scaler": {**SCALER, "init_scale": 2.0 ** 21}, "optimizer": layers(sgd(), sgd(lr=0.05))},
    "two-optimizers-clip": {**AMP, "scaler": {**SCALER, "init_scale": 2.0 ** 21},
                            "optimizer": layers(adamw(), sgd()), "clip": ("norm", 0.3)},
    "half": {"half": True, "data": lambda: vectors(half=True), "optimizer": sgd()},
    "half-masters": {"half": True, "masters": True, "scaler": SCALER, "data": lambda: vectors(half=True),
                     "optimizer": sgd()},
}


def opts(opt):
    return opt if isinstance(opt, list) else [opt]


def update(case, opt, scaler):
    """What comes between the last backward() and the next step."""
    kind, limit = case.get("clip", (None, 0))
    for k, one in enumerate(opts(opt)):
        mine = [p for g in one.param_groups for p in g["params"]]
        if kind and scaler:
            scaler.unscale_(one)
        if kind == "norm":
            nn.utils.clip_grad_norm_(mine, limit / (k + 1))
        if kind == "value":
            nn.utils.clip_grad_value_(mine, limit)
        if scaler:
            scaler.step(one)
        else:
            one.step()
    if scaler:
        scaler.update()


def update_masters(model, masters, opt, scaler, rec):
    """As Apex O2 did: float32 masters, which the float16 weights follow."""
    inverse = 1.0 / torch.tensor(scaler.get_scale())
    bad = not all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())
    if rec:
        rec.note(found_inf=int(bad))
    for p, m in zip(model.parameters(), masters):
        m.grad = p.grad.float() * inverse
    if not bad:
        opt.step()
        with torch.no_grad():
            for p, m in zip(model.parameters(), masters):
                p.copy_(m)
    torch._amp_update_scale_(scaler._scale, scaler._growth_tracker, torch.tensor(float(bad)),
                             scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval())


def train(name, directory=None, **options):
    """The weights after the last step; nothing is recorded without a directory."""
    case = CASES[name]
    setup(SEED)
    model = case.get("model", MLP)()
    if case.get("half"):
        model.half()
    masters = None
    if case.get("masters"):
        masters = [nn.Parameter(p.detach().float().clone()) for p in model.parameters()]
    opt = case["optimizer"](nn.ParameterList(masters) if masters else model)
    scaler = torch.amp.GradScaler("cpu", **case["scaler"]) if "scaler" in case else None
    scheduler = case["scheduler"](opt) if "scheduler" in case else None
    data = case.get("data", vectors)
    rec = directory and Recorder(
        model, os.path.join(directory, name), case.get("steps", range(STEPS + 1)), optimizer=opt, scaler=scaler,
        masters=masters, kinds=("weight", "wgrad"), meta={"model": "replay-cases/" + name, "seed": SEED}, **options)
    for step in range(1, STEPS + 1):
        for one in opts(opt):
            one.zero_grad()
        model.zero_grad()
        if rec:
            rec.begin(step)
        for _ in range(case.get("micro", 1)):
            x, y = data()
            with torch.autocast("cpu", dtype=case.get("autocast"), enabled="autocast" in case):
                loss = nn.functional.cross_entropy(model(x).float(), y) / case.get("micro", 1)
            (scaler.scale(loss) if scaler else loss).backward()
        if rec:
            rec.end(loss)
            rec.note(**case.get("note", {}))
        if masters:
            update_masters(model, masters, opt, scaler, rec)
        else:
            update(case, opt, scaler)
        if scheduler:
            scheduler.step()
    if rec:
        rec.snapshot(STEPS + 1)
        rec.close()
    return copy.deepcopy([p.detach() for p in model.parameters()])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    ap.add_argument("case", nargs="*", default=list(CASES))
    args = ap.parse_args()
    ieee_sqrt()
    for name in args.case:
        train(name, args.directory)
        print(name)


if __name__ == "__main__":
    main()
