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


def compare(s, folder, policy):
    command = [sys.executable, os.path.join(HERE, "..", "train_gpt.py"), "--device", s.device, "--autocast",
               AUTOCAST[policy], "--run", os.path.join(folder, "run.txt"), "--compare", os.path.join(folder, "trace")]
    result = subprocess.run(command, capture_output=True, text=True)
    print(result.stdout, result.stderr, flush=True)
    steps = [LINE.match(line).groups() for line in result.stdout.splitlines() if LINE.match(line)]
    if not steps:
        raise RuntimeError(f"train_gpt.py: exit {result.returncode}, no step")
    return {"within": result.returncode == 0,
            "steps": [{"step": int(n), "mpsim": float(a), "here": float(b), "with its weights": float(c),
                       "gradients": float(g), "worst": worst} for n, a, b, c, g, worst in steps]}


def ask(s):
    if not s.traces:
        raise Skipped("--traces was not given: nothing to compare with")
    for run in sorted(os.listdir(s.traces)):
        net, _, policy = run.partition("-")
        s.try_answer(f"{net} {policy}", lambda: compare(s, os.path.join(s.traces, run), policy))
