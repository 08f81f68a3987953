# SPDX-License-Identifier: Apache-2.0
"""Train a small convolutional network on scikit-learn's digits and record a trace.

    python3 train_digits_cnn.py ../digits-cnn
"""
import argparse

from deterministic import setup
import torch
from sklearn.datasets import load_digits
from recorder import Recorder

SEED, BATCH, LR, MOMENTUM, LAST = 20240501, 32, 0.1, 0.9, 20000
STEPS = (1, 120, 500, 2000, 6000, 19999, 20000)


class DigitsCNN(torch.nn.Module):
    """8x8 grey images, 10 classes."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(16)
        self.fc1 = torch.nn.Linear(16 * 2 * 2, 32)
        self.fc2 = torch.nn.Linear(32, 10)

    def forward(self, x):
        f = torch.nn.functional
        x = f.avg_pool2d(f.relu(self.bn1(self.conv1(x))), 2)
        x = f.avg_pool2d(f.relu(self.bn2(self.conv2(x))), 2)
        return self.fc2(f.relu(self.fc1(x.flatten(1))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    args = ap.parse_args()
    setup(SEED)
    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(data.target)
    perm = torch.randperm(len(y))
    train, test = perm[:1500], perm[1500:]
    model = DigitsCNN()
    opt = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM, foreach=False)
    rec = Recorder(model, args.directory, STEPS, optimizer=opt, out_modules="fc2", settings=False, meta={
        "model": "digits-cnn", "optimizer": "sgd", "lr": LR, "momentum": MOMENTUM, "dampening": 0,
        "nesterov": "false", "weight_decay": 0, "grad_clip": 0, "seed": SEED,
        "batch": BATCH, "micro_batch": 0, "dtype_computed": "F32"})
    order, pos = torch.randperm(len(train)), 0
    for step in range(1, LAST + 1):
        if pos + BATCH > len(train):
            order, pos = torch.randperm(len(train)), 0
        idx = train[order[pos:pos + BATCH]]
        pos += BATCH
        opt.zero_grad()
        rec.begin(step)
        loss = torch.nn.functional.cross_entropy(model(x[idx]), y[idx])
        loss.backward()
        rec.end(loss)
        opt.step()
        if step in STEPS:
            print(f"step {step:6d}  loss {loss.item():.6g}")
    model.eval()
    with torch.no_grad():
        print("test accuracy %.4f" % (model(x[test]).argmax(1) == y[test]).float().mean().item())


if __name__ == "__main__":
    main()
