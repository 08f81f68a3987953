# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's autograd makes of mpsim's networks, in float64: an oracle of the formulas.

    python3 train_reference.py ../vectors/train

Initial weights, order of the images and networks are rebuilt here from the description in
lib/include/train/train.h (mpsim_random.py, nothing of mpsim is run); forward, backward and SGD with
momentum are PyTorch's, in float64. Three steps of each case are recorded: losses, all gradients,
and running statistics, rounded to float32 for the file.
"""
import argparse
import os

import numpy as np
import torch
from mpsim_random import words
from recorder import save_safetensors
from train_amp_mlp import digits

SEED, BATCH, STEPS, TRAINING = 7, 24, 3, 1437
LR, MOMENTUM = 0.1, 0.9
CASES = {  # net, depth, width, batchnorm
    "mlp": ("mlp", 2, 16, False),
    "mlp-batchnorm": ("mlp", 3, 12, True),
    "cnn": ("cnn", 2, 4, True),
    "cnn-plain": ("cnn", 1, 5, False),
}


def initial(name, shape, fan_in):
    n = int(np.prod(shape))
    u = (words(SEED, "init " + name, 0, n) >> 8) * 2.0 ** -23 - 1
    return torch.tensor((u / np.sqrt(float(fan_in))).astype(np.float32).astype(np.float64)
                        .reshape(shape))


def images(step):
    per_pass = TRAINING // BATCH
    order = list(range(TRAINING))
    w = words(SEED, f"order of pass {step // per_pass}", 0, TRAINING)
    for k in range(TRAINING - 1, 0, -1):
        j = int(w[k]) * (k + 1) >> 32
        order[k], order[j] = order[j], order[k]
    at = step % per_pass * BATCH
    return order[at:at + BATCH]


class Network:
    def __init__(self, net, depth, width, batchnorm):
        self.net, self.depth, self.batchnorm = net, depth, batchnorm
        self.p, self.running = {}, {}
        inputs = 64 if net == "mlp" else 1
        for i in range(1, depth + 1):
            layer = f"fc{i}" if net == "mlp" else f"conv{i}"
            if net == "mlp":
                outputs, fan_in = width, inputs
                self.p[layer + ".weight"] = initial(layer + ".weight", (outputs, inputs), fan_in)
                self.p[layer + ".bias"] = initial(layer + ".bias", (outputs,), fan_in)
            else:
                outputs, fan_in = width << (i - 1), 9 * inputs
                self.p[layer + ".weight"] = initial(layer + ".weight", (outputs, 3, 3, inputs),
                                                    fan_in)
            if batchnorm:
                self.p[f"bn{i}.weight"] = torch.ones(outputs, dtype=torch.float64)
                self.p[f"bn{i}.bias"] = torch.zeros(outputs, dtype=torch.float64)
                self.running[f"bn{i}.mean"] = torch.zeros(outputs, dtype=torch.float64)
                self.running[f"bn{i}.var"] = torch.ones(outputs, dtype=torch.float64)
            inputs = outputs
        if net == "cnn":
            inputs *= (8 >> depth) ** 2
        self.p["head.weight"] = initial("head.weight", (10, inputs), inputs)
        self.p["head.bias"] = initial("head.bias", (10,), inputs)
        for t in self.p.values():
            t.requires_grad_()

    def normalise(self, x, i):
        if not self.batchnorm:
            return x
        return torch.nn.functional.batch_norm(
            x, self.running[f"bn{i}.mean"], self.running[f"bn{i}.var"], self.p[f"bn{i}.weight"],
            self.p[f"bn{i}.bias"], training=True, momentum=0.1, eps=1e-5)

    def __call__(self, x):
        f = torch.nn.functional
        if self.net == "mlp":
            for i in range(1, self.depth + 1):
                x = f.linear(x, self.p[f"fc{i}.weight"], self.p[f"fc{i}.bias"])
                x = f.relu(self.normalise(x, i))
        else:
            x = x.reshape(-1, 1, 8, 8)
            for i in range(1, self.depth + 1):
                x = f.conv2d(x, self.p[f"conv{i}.weight"].permute(0, 3, 1, 2), padding=1)
                x = f.max_pool2d(f.relu(self.normalise(x, i)), 2)
            x = x.permute(0, 2, 3, 1).reshape(len(x), -1)
        return f.linear(x, self.p["head.weight"], self.p["head.bias"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    args = ap.parse_args()
    torch.set_num_threads(1)
    x, y = digits()
    for case, (net, depth, width, batchnorm) in CASES.items():
        model = Network(net, depth, width, batchnorm)
        opt = torch.optim.SGD(model.p.values(), lr=LR, momentum=MOMENTUM, foreach=False)
        tensors = {}
        meta = {"net": net, "depth": depth, "width": width, "batchnorm": int(batchnorm),
                "batch": BATCH, "seed": SEED, "steps": STEPS, "lr": LR, "momentum": MOMENTUM,
                "framework": "torch " + torch.__version__}
        for step in range(STEPS):
            i = images(step)
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[i].double()), y[i])
            loss.backward()
            tensors[f"loss:{step}"] = loss.detach().reshape(1)
            for name, p in model.p.items():
                tensors[f"wgrad:{step}:{name}"] = p.grad.clone().reshape(-1)
            for name, r in model.running.items():
                tensors[f"running:{step}:{name}"] = r.clone()
            opt.step()
            print(f"{case:14s} step {step} loss {loss.item():.15g}")
        tensors = {key: t.float() for key, t in tensors.items()}
        save_safetensors(os.path.join(args.directory, case + ".safetensors"), tensors,
                         {"mpsim." + k: str(v) for k, v in meta.items()})


if __name__ == "__main__":
    main()
