# SPDX-License-Identifier: Apache-2.0
"""Train a tiny network on handwritten digits with real AMP and record every step.

    python3 train_amp_mlp.py ../amp-mlp
    python3 train_amp_mlp.py --device cuda OUT     on a machine with a device

Four runs: sgd, adam, adamw (torch.autocast float16, float32 parameters, GradScaler) and half
(float16 parameters, float32 masters kept by hand, as Apex O2 did, GradScaler for the scale).
../amp-mlp/README.md describes them. On a device the runs are repeated for each implementation
of the optimizers: forloop, foreach, fused, and capturable for Adam and AdamW.
"""
import argparse
import os
import re

VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")
from deterministic import ieee_sqrt, setup  # noqa: E402
# after the import, which asks for MKL's most general code: its square root is often wrong in
# the last bit; that of the AVX2 code is correctly rounded
os.environ["MKL_CBWR"] = "AVX2"
import torch  # noqa: E402
from recorder import save_safetensors  # noqa: E402

SEED, BATCH, STEPS = 20240603, 32, 24
GROWTH, BACKOFF, INTERVAL = 2.0, 0.5, 6
RUNS = {  # name: (initial scale, max_norm or 0, options)
    "sgd": (2.0 ** 24, 0.0, {"lr": 0.1, "momentum": 0.9}),
    "adam": (2.0 ** 24, 0.0, {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8,
                              "weight_decay": 0.0}),
    "adamw": (2.0 ** 24, 0.4, {"lr": 2e-3, "betas": (0.9, 0.999), "eps": 1e-8,
                               "weight_decay": 0.01}),
    "half": (2.0 ** 24, 0.0, {"lr": 0.1, "momentum": 0.9}),
}


IMPLEMENTATIONS = {  # of the optimizers on a device: arguments, runs
    "forloop": ({"foreach": False, "fused": False}, ("sgd", "adam", "adamw", "half")),
    "foreach": ({"foreach": True, "fused": False}, ("sgd", "adam", "adamw")),
    "fused": ({"foreach": False, "fused": True}, ("sgd", "adam", "adamw")),
    "capturable": ({"foreach": False, "fused": False, "capturable": True}, ("adam", "adamw")),
}


def digits():
    """The images of scikit-learn's load_digits as the project keeps them, divided by 16."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "digits", "digits.inc"), encoding="ascii") as f:
        lines = re.findall(r'"(\d)([a-q]{64})"', f.read())
    assert len(lines) == 1797
    pixels = [[ord(c) - ord("a") for c in image] for _, image in lines]
    return (torch.tensor(pixels, dtype=torch.float32) / 16,
            torch.tensor([int(label) for label, _ in lines]))


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = torch.nn.Linear(64, 16)
        self.fc2 = torch.nn.Linear(16, 10)

    def forward(self, x):
        return self.fc2(torch.nn.functional.relu(self.fc1(x)))


def machine(device):
    if device == "cpu":
        return {"cpu_capability": torch.backends.cpu.get_cpu_capability().lower(),
                "mkl_cbwr": "AVX2"}
    return {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}


def options_meta(name, options):
    meta = {"optimizer": "sgd" if name == "half" else name, "lr": options["lr"]}
    if "momentum" in options:
        meta.update(momentum=options["momentum"], dampening=0.0, nesterov="false",
                    weight_decay=0.0)
    else:
        meta.update(beta1=options["betas"][0], beta2=options["betas"][1], eps=options["eps"],
                    betas="%r,%r" % options["betas"], weight_decay=options["weight_decay"],
                    amsgrad="false", bias_correction="true")
    return meta


def train(name, directory, data, device="cpu", impl="forloop"):
    init, max_norm, options = RUNS[name]
    if impl == "fused" and name == "sgd":  # a first step that is skipped leaves its buffer uninitialised (torch 2.11 to 2.15)
        init = 2.0 ** 17
    x, y = (t.to(device) for t in data)
    torch.manual_seed(SEED)
    order = torch.randperm(len(y))
    model, half = MLP().to(device), name == "half"
    names = [n for n, _ in model.named_parameters()]
    if half:
        model.half()                                      # the masters are the rounded weights
        masters = [torch.nn.Parameter(p.detach().float().clone()) for p in model.parameters()]
    else:
        masters = list(model.parameters())
    cls = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}.get(name, torch.optim.SGD)
    opt = cls(masters, **IMPLEMENTATIONS[impl][0], **options)
    scaler = torch.amp.GradScaler(device, init_scale=init, growth_factor=GROWTH,
                                  backoff_factor=BACKOFF, growth_interval=INTERVAL)
    events = ""
    for step in range(1, STEPS + 2):
        i = (step - 1) * BATCH % (len(y) - BATCH)
        idx = order[i:i + BATCH]
        tensors = {}
        for n, p, m in zip(names, model.parameters(), masters):
            tensors["weight:" + n] = p.detach().clone()
            if half:
                tensors["master:" + n] = m.detach().clone()
            state = opt.state[m] if m in opt.state else {}
            for key, kind in (("momentum_buffer", "opt.m"), ("exp_avg", "opt.m"),
                              ("exp_avg_sq", "opt.v")):
                if torch.is_tensor(state.get(key)):
                    tensors[f"{kind}:{n}"] = state[key].clone()
        meta = {"schema": "mpsim-trace/1", "step": step, "rank": 0, "world": 1,
                "framework": "torch " + torch.__version__, "order": "fc1,fc2",
                "model": "amp-mlp/" + name, "seed": SEED, "batch": BATCH, "micro_batch": 0,
                "reduced": "post",
                **machine(device), "optimizer_impl": impl, "dtype_computed": "F16",
                "scaler": "torch", "scaler_init": repr(init), "scaler_growth": repr(GROWTH),
                "scaler_backoff": repr(BACKOFF), "scaler_interval": INTERVAL,
                "loss_scale": repr(scaler.get_scale()),
                "growth_tracker": scaler._get_growth_tracker(),
                "grads_scaled": "true", "grad_clip": repr(max_norm),
                "optimizer_steps": events.count("s")}
        meta.update(options_meta(name, options))
        if step <= STEPS:
            for p in model.parameters():
                p.grad = None
            opt.zero_grad()
            if half:
                loss = torch.nn.functional.cross_entropy(model(x[idx].half()).float(), y[idx])
            else:
                with torch.autocast(device, dtype=torch.float16):
                    loss = torch.nn.functional.cross_entropy(model(x[idx]), y[idx])
            scaler.scale(loss).backward()
            for n, p in zip(names, model.parameters()):
                tensors["wgrad:" + n] = p.grad.detach().clone()
            if half:                                      # unscale into the masters, by hand
                inv = 1.0 / torch.tensor(scaler.get_scale(), device=device)
                bad = not all(bool(torch.isfinite(p.grad).all()) for p in model.parameters())
                for p, m in zip(model.parameters(), masters):
                    m.grad = p.grad.float() * inv
                if not bad:
                    opt.step()
                    with torch.no_grad():
                        for p, m in zip(model.parameters(), masters):
                            p.copy_(m)
                torch._amp_update_scale_(scaler._scale, scaler._growth_tracker,
                                         torch.tensor(float(bad), device=device), GROWTH, BACKOFF, INTERVAL)
            else:
                if max_norm:
                    scaler.unscale_(opt)
                    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
                    meta["grad_norm"] = repr(norm.item())
                bad = any(not bool(torch.isfinite(tensors["wgrad:" + n]).all()) for n in names)
                before = [p.detach().clone() for p in model.parameters()]
                scaler.step(opt)
                moved = any(not torch.equal(a, p) for a, p in zip(before, model.parameters()))
                assert moved != bad
                scaler.update()
            meta.update(loss="%.9g" % loss.item(), found_inf=int(bad), skipped=int(bad))
            events += "." if bad else "s"
        tensors = {key: t.cpu() for key, t in tensors.items()}
        path = os.path.join(directory, name, f"step_{step:06d}", "rank_00000.safetensors")
        save_safetensors(path, tensors, {"mpsim." + k: str(v) for k, v in meta.items()})
        print(f"{name:6s} {step:3d} scale {meta['loss_scale']:>12s} tracker "
              f"{meta['growth_tracker']} inf {meta.get('found_inf', '-')} loss "
              f"{meta.get('loss', '-')} norm {meta.get('grad_norm', '-')}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    ap.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    args = ap.parse_args()
    setup(SEED)
    data = digits()
    if args.device == "cuda":  # deterministic.py hid the devices; CUDA looks at its first call
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        if VISIBLE is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = VISIBLE
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    if args.device == "cpu":
        ieee_sqrt()
        for name in RUNS:
            train(name, args.directory, data)
        return
    for impl, (_, names) in IMPLEMENTATIONS.items():
        for name in names:
            train(name, os.path.join(args.directory, impl), data, args.device, impl)


if __name__ == "__main__":
    main()
