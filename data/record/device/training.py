# SPDX-License-Identifier: Apache-2.0
"""A transformer's training beside mpsim's, from mpsim's weights: losses and gradients.

--traces names a folder made by traces.sh, elsewhere. Each is trained again by train_gpt.py --compare, whose lines are the
answers: losses of mpsim and of torch, with torch's own weights and with mpsim's, and how far gradients are apart.
"""
import os
import re
import subprocess
import sys

from session import Skipped

HERE = os.path.dirname(os.path.abspath(__file__))
AUTOCAST = {"fp32": "none", "pytorch-amp-bf16": "bf16", "pytorch-amp-fp16": "fp16"}
LINE = re.compile(r"step (\d+): mpsim's loss (\S+); here (\S+) \(\S+\), with its weights (\S+) \(\S+\); "
                  r"gradients apart by (\S+) \((.*?)\)")


def start(s, folder, policy):
    return subprocess.Popen(
        [sys.executable, os.path.join(HERE, "..", "train_gpt.py"), "--device", s.device, "--autocast",
         AUTOCAST[policy], "--run", os.path.join(folder, "run.txt"), "--compare", os.path.join(folder, "trace")],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def compare(process):
    text, _ = process.communicate()
    print(text, flush=True)
    steps = [LINE.match(line).groups() for line in text.splitlines() if LINE.match(line)]
    if not steps:
        raise RuntimeError(f"train_gpt.py: exit {process.returncode}, no step")
    return {"within": process.returncode == 0,
            "steps": [{"step": int(n), "mpsim": float(a), "here": float(b), "with its weights": float(c),
                       "gradients": float(g), "worst": worst} for n, a, b, c, g, worst in steps]}


def ask(s):
    if not s.traces:
        raise Skipped("--traces was not given: nothing to compare with")
    runs = [run.partition("-")[::2] + (run,) for run in sorted(os.listdir(s.traces))]
    processes = [start(s, os.path.join(s.traces, run), policy) for _, policy, run in runs]  # all at once
    for (net, policy, _), process in zip(runs, processes):
        s.try_answer(f"{net} {policy}", lambda: compare(process))
