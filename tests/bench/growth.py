#!/usr/bin/env python3
"""growth.py -- make bench-growth: CPU time and memory of the commands against the size of what they are given, with slopes.

    tests/bench/growth.py [-l SECONDS] [-m MPSIM] [AXIS]...

Of each axis sizes grow by ten over four decades (elements: five, in sparse files), as long as the next run is expected to end within
the limit (default 60 CPU seconds a run). Time is the user's, since the system's is that of the page cache where a file is larger than
before; the least of three runs, of which the last two find the file in memory: how the kernel divides a run of few ticks between user
and system is chance, and of a run that is mostly the system's a large one. A run of more than a fifth of the limit runs once. Memory is the most that the
process had resident. A slope is the exponent between the two largest sizes: 1 is linear. Runs below a fifth of a second, and memory
that is less than 16 MiB above what the program takes with nothing, have none. A slope above 1.15 is marked, and the exit code is 1 then.
"""

import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

DECADES = {"elements": 5}  # sizes of the other axes: 4
RUNS = 3
MIB = 1 << 20


def safetensors(path: Path, shapes: list[tuple[str, int]], step: int | None = None) -> Path:
    """A sparse file of binary32 zeros."""
    header: dict[str, object] = {"__metadata__": {"mpsim.step": str(step), "mpsim.optimizer": "sgd", "mpsim.lr": "0.1"}} if step is not None else {}
    at = 0
    for name, n in shapes:
        header[name] = {"dtype": "F32", "shape": [n], "data_offsets": [at, at + 4 * n]}
        at += 4 * n
    text = json.dumps(header, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + at)
    return path


def tensors(at: Path, n: int, kind: str = "wgrad") -> Path:
    return safetensors(at / "t.safetensors", [(f"{kind}:layers.{i}.weight", 4) for i in range(n)])


def elements(at: Path, n: int) -> Path:
    return safetensors(at / "e.safetensors", [("wgrad:layer.weight", n)])


def numbers(at: Path, n: int) -> Path:
    """A file of n numbers of a normal distribution, the same few again and again."""
    path = elements(at, n)
    draw = random.Random(1)
    some = struct.pack("<4096f", *(draw.gauss(0, 1e-3) for _ in range(4096)))
    header = path.stat().st_size - 4 * n
    with path.open("r+b") as f:
        f.seek(header)
        f.write((some * (n // 4096 + 1))[: 4 * n])
    return path


def steps(at: Path, n: int) -> Path:
    for i in range(n):
        safetensors(at / "s" / f"step_{i:07d}" / "rank_00000.safetensors", [("wgrad:layer.weight", 4), ("weight:layer.weight", 4)], i)
    return at / "s"


def ranks(at: Path, n: int) -> Path:
    for i in range(n):
        safetensors(at / "r" / "step_000001" / f"rank_{i:05d}.safetensors", [("wgrad:layer.weight", 4)], 1)
    return at / "r"


def log(at: Path, n: int) -> Path:
    path = at / "train.log"
    path.write_text("".join(f"step {i} loss {3 - i / (2 * n):.5f} grad_norm 1.{i % 100:02d} loss_scale 65536\n" for i in range(n)))
    return path


def report(at: Path, n: int, form: str) -> Path:
    """Of n tensors, by the program."""
    path = at / "report"
    subprocess.run([PROGRAM[0], "stat", form, "--histogram", "-f", "fp16", "-o", str(path), str(tensors(at, n))], check=True)
    return path


def scales(n: int) -> str:
    """n of them; a command line has room for some 10,000."""
    return ",".join(f"{1 + i / 1024:.9f}" for i in range(n))


def formats(n: int) -> str:
    """n of them: exponents of 3 to 8 bits, significands of 1 to 23, with biases of their own."""
    kinds = [f"e{e}m{m}:ieee:bias={b}" for b in range(1, 8) for e in range(3, 9) for m in range(1, 24)]
    return ",".join(kinds[:n])


Words = Callable[[Path, int], list[str]]
PROGRAM = ["./mpsim"]  # set by main
# An axis: the smallest size, and commands by name.
AXES: dict[str, tuple[int, dict[str, Words]]] = {
    "tensors": (100, {
        "info": lambda at, n: ["info", str(tensors(at, n))],
        "stat": lambda at, n: ["stat", "-f", "fp16", "--json", str(tensors(at, n))],
        "stat --csv": lambda at, n: ["stat", "-f", "fp16", "--csv", str(tensors(at, n))],
        "cast": lambda at, n: ["cast", "-f", "bf16", "-o", str(at / "out.safetensors"), str(tensors(at, n))],
        "diff": lambda at, n: ["diff", str(tensors(at, n)), str(tensors(at / "b", n))],
        "memory": lambda at, n: ["memory", "-P", "pytorch-amp-fp16", str(tensors(at, n, "weight"))],
        "advise": lambda at, n: ["advise", str(tensors(at, n))],
        "report": lambda at, n: ["report", "--no-figures", "-o", str(at / "r.html"), str(tensors(at, n))],
        "plot": lambda at, n: ["plot", "histogram", "--type", "txt", "-o", str(at / "f.txt"), str(report(at, n, "--json"))],
        "plot lines": lambda at, n: ["plot", "histogram", "--type", "txt", "-o", str(at / "f.txt"), str(report(at, n, "--ndjson"))],
    }),
    "elements": (10**6, {
        "info": lambda at, n: ["info", str(elements(at, n))],
        "stat": lambda at, n: ["stat", "-f", "fp16", "--threads", "1", str(elements(at, n))],
        "cast": lambda at, n: ["cast", "-f", "e4m3", "-o", "/dev/null", str(elements(at, n))],
        "diff": lambda at, n: ["diff", str(elements(at, n)), str(elements(at / "b", n))],
        "advise": lambda at, n: ["advise", str(elements(at, n))],
    }),
    "steps": (10, {
        "info": lambda at, n: ["info", str(steps(at, n))],
        "stat": lambda at, n: ["stat", "-f", "fp16", "--json", str(steps(at, n))],
        "replay": lambda at, n: ["replay", "-P", "pytorch-amp-fp16", str(steps(at, n))],
        "diff": lambda at, n: ["diff", str(steps(at, n)), str(steps(at / "b", n))],
    }),
    "ranks": (10, {
        "info": lambda at, n: ["info", str(ranks(at, n))],
        "stat": lambda at, n: ["stat", "-f", "fp16", "--json", str(ranks(at, n))],
    }),
    "scales": (1, {
        "stat": lambda at, n: ["stat", "-f", "fp16", "-s", scales(n), "--json", str(elements(at, 4096))],
    }),
    "formats": (1, {
        "stat": lambda at, n: ["stat", "-f", formats(n), "--threads", "1", "--json", str(numbers(at, 1 << 22))],
    }),
    "lines": (1000, {
        "log": lambda at, n: ["log", str(log(at, n))],
    }),
    "depth": (10**4, {
        "dot": lambda at, n: ["dot", "-f", "e4m3", "-M", "fma", "-K", str(n)],
    }),
}  # fmt: skip


def made_apart(words: Words, at: Path, n: int) -> list[str]:
    """The words, and the files they name: made by another process, since a program's largest size includes that of who starts it."""
    from_child, to_parent = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(to_parent, "wb") as f:
            f.write(json.dumps(words(at, n)).encode())
        os._exit(0)
    os.close(to_parent)
    with os.fdopen(from_child, "rb") as f:
        text = f.read()
    os.waitpid(child, 0)
    made: list[str] = json.loads(text)
    return made


def run(mpsim: str, words: list[str], at: Path) -> tuple[float, float, int, int]:
    """Seconds of user and of the system, bytes, exit code."""
    child = subprocess.Popen([mpsim, *words], stdout=subprocess.DEVNULL, stderr=(at / "err").open("wb"), cwd=at)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime, used.ru_stime, used.ru_maxrss << 10, child.returncode


def least(mpsim: str, words: list[str], at: Path, limit: float) -> tuple[float, float, int, int]:
    """The same of up to three runs, the least of each."""
    found = [run(mpsim, words, at)]
    while len(found) < RUNS and found[0][3] in (0, 1) and found[0][0] + found[0][1] < limit / 5:
        found.append(run(mpsim, words, at))
    user, system, memory, codes = zip(*found)
    return min(user), min(system), min(memory), codes[0]


def base_memory(mpsim: str) -> float:
    """What the program takes of memory before it reads anything."""
    child = subprocess.Popen([mpsim, "info", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    text = Path(f"/proc/{child.pid}/status").read_text()
    child.communicate()
    return float(text.split("VmHWM:")[1].split()[0]) * 1024


def slope(sizes: list[int], values: list[float], least: float) -> float | None:
    if len(values) < 2 or values[-1] <= 2 * least or values[-2] < least / 2:
        return None
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def grow(mpsim: str, axis: str, name: str, first: int, words: Words, limit: float) -> bool:
    """A row a size, and the slopes; whether one is above linear."""
    sizes: list[int] = []
    times: list[float] = []
    memories: list[float] = []
    spent = 0.0
    for decade in range(DECADES.get(axis, 4)):
        n = first * 10**decade
        if 10 * spent > limit:
            break
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            seconds, system, memory, code = least(mpsim, made_apart(words, at, n), at, limit)
            if code == 2 and decade:
                break  # as many as it takes: scales
            if code not in (0, 1):
                print(f"{axis:<9} {name:<11} {n:>11}  exit code {code}: {(at / 'err').read_text(errors='replace').strip()[:100]}")
                break
        spent = seconds + system
        sizes.append(n)
        times.append(seconds)
        memories.append(memory)
        print(f"{axis:<9} {name:<11} {n:>11} {seconds:>9.2f} {system:>9.2f} {memory / MIB:>9.1f}", flush=True)
    base = base_memory(mpsim)
    of_time = slope(sizes, times, 0.1)
    of_memory = slope(sizes, [max(m - base, MIB) for m in memories], 8 * MIB)
    high = any(s is not None and s > 1.15 for s in (of_time, of_memory))
    text = " ".join("-" if s is None else f"{s:.2f}" for s in (of_time, of_memory))
    print(f"{axis:<9} {name:<11} {'slopes':>11} {text}{'   above linear' if high else ''}", flush=True)
    return high


def main() -> int:
    p = argparse.ArgumentParser(description="CPU time and memory of the commands against size.")
    p.add_argument("-l", type=float, default=60, help="CPU seconds that a run may be expected to take")
    p.add_argument("-m", default="./mpsim", help="the program")
    p.add_argument("axes", nargs="*", metavar="AXIS", help=" ".join(AXES))
    o = p.parse_args()
    for axis in o.axes:
        if axis not in AXES:
            p.error(f"'{axis}' is not one of {' '.join(AXES)}")
    print(f"{'axis':<9} {'command':<11} {'size':>11} {'user s':>9} {'system s':>9} {'MiB':>9}")
    PROGRAM[0] = mpsim = str(Path(o.m).resolve())
    high = [grow(mpsim, a, name, AXES[a][0], words, o.l) for a in o.axes or AXES for name, words in AXES[a][1].items()]
    return 1 if any(high) else 0


if __name__ == "__main__":
    sys.exit(main())
