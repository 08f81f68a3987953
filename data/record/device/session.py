# SPDX-License-Identifier: Apache-2.0
"""What the questions share: inputs that need not be stored, digests, a file of answers that grows by lines.

Inputs are drawn by integers alone, so that any machine, and tests/record/device.c, draws the same: word i of stream s
is mix(i, s) of lib/digest/scalar.h. A digest is mpsim_digest's: the sum of mix(i, code i) modulo 2^64, every NaN as the
code of all ones.
"""
import json
import os
import platform
import subprocess

import torch

# Formats: torch's type, explicit significand bits, bias. tf32: binary32 whose last 13 bits are zero.
FORMATS = {"float32": (torch.float32, 23, 127), "tf32": (torch.float32, 10, 127), "float16": (torch.float16, 10, 15),
           "bfloat16": (torch.bfloat16, 7, 127), "float8_e4m3fn": (torch.float8_e4m3fn, 3, 7),
           "float8_e5m2": (torch.float8_e5m2, 2, 15)}
UNSIGNED = {1: (torch.uint8, 0xff), 2: (torch.int16, 0xffff), 4: (torch.int32, 0xffffffff)}
PIECE = 1 << 22


class Skipped(Exception):
    """The question cannot be put here; the text says why."""


class Lost(Exception):
    """A case lost the device's context: a new process goes on behind it."""


def signed(x):
    return x - (1 << 64) if x >> 63 else x


def shift(z, n):
    return (z >> n) & ((1 << 64 - n) - 1)


def mix(index, output):
    """mpsim_mix, of tensors of int64 that wrap, or of one and an int."""
    if isinstance(output, int):
        output = torch.tensor(signed(output & (1 << 64) - 1), dtype=torch.int64, device=index.device)
    z = index * signed(0x9e3779b97f4a7c15) + 0x632be59bd9b4e019
    z = (z ^ shift(z, 30)) * signed(0xbf58476d1ce4e5b9)
    z = (z ^ shift(z, 27)) * signed(0x94d049bb133111eb)
    z = z ^ shift(z, 31)
    z = z ^ output * signed(0xd6e8feb86659fd93)
    z = (z ^ shift(z, 30)) * signed(0xbf58476d1ce4e5b9)
    z = (z ^ shift(z, 27)) * signed(0x94d049bb133111eb)
    return z ^ shift(z, 31)


def codes_of(t):
    """A tensor's bit patterns as int64, flat; NaNs become all ones, but for types whose only NaN is minus zero."""
    raw, mask = UNSIGNED[t.element_size()]
    t = t.detach().contiguous().flatten()
    codes = t.view(raw).to(torch.int64) & mask
    if not t.is_floating_point() or "fnuz" in str(t.dtype):
        return codes
    return torch.where(torch.isnan(t.to(torch.float32)), torch.full_like(codes, mask), codes)


def digest(t):
    total, flat = 0, t.detach().contiguous().flatten()
    for first in range(0, flat.numel(), PIECE):
        codes = codes_of(flat[first:first + PIECE])
        index = torch.arange(first, first + codes.numel(), dtype=torch.int64, device=codes.device)
        total += int(mix(index, codes).sum().item())
    return f"{total & (1 << 64) - 1:016x}"


def hexadecimal(t):
    """Bit patterns, separated by spaces."""
    width = 2 * t.element_size()
    return " ".join(f"{c:0{width}x}" for c in codes_of(t).tolist())


def of_bits(codes, dtype):
    """Elements of the codes, which are int64."""
    raw, mask = UNSIGNED[dtype.itemsize]
    if raw != torch.uint8:                       # a conversion to a narrower signed type wraps
        codes = torch.where(codes > mask >> 1, codes - mask - 1, codes)
    return codes.to(raw).view(dtype)


def ulps_apart(y, exact):
    """|y - exact| in units of the last place of exact in y's type; inf where only one of both is finite."""
    info = torch.finfo(y.dtype)
    bits = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}[y.dtype]
    got, exact = y.detach().cpu().double(), exact.detach().cpu().double()
    finite = torch.isfinite(exact) & (exact.abs() <= info.max * (1 + 2.0 ** (-bits - 2)))
    _, e = torch.frexp(torch.where(finite, exact, torch.ones_like(exact)).abs().clamp(min=info.tiny))
    apart = (got - exact).abs() / torch.ldexp(torch.ones_like(exact), e - 1 - bits)
    same = (torch.isnan(got) & torch.isnan(exact)) | (got == exact)
    same |= ~finite & torch.isinf(got) & (torch.sign(got) == torch.sign(exact))
    apart = torch.where(torch.isnan(apart), torch.full_like(apart, torch.inf), apart)
    return torch.where(same, torch.zeros_like(apart), apart)


def driver():
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=10).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return None


def known_cases(path):
    """Those that an earlier process has answered."""
    with open(path, encoding="utf-8") as f:
        return {json.loads(line).get("case") for line in f}


class Session:
    """device, quick; the file of answers."""

    def __init__(self, question, a):
        self.device, self.quick, self.traces = a.device, a.quick, a.traces
        path = os.path.join(a.output_dir, question + ".ndjson")
        self.known = known_cases(path) if getattr(a, "again", False) else set()
        self.file = open(path, "a" if self.known else "w", encoding="utf-8")
        head = {"schema": "mpsim.device/1", "question": question, "kind": a.device, "quick": a.quick,
                "torch": torch.__version__, "python": platform.python_version()}
        if a.device == "cuda":
            if not torch.cuda.is_available():
                self.write(head)
                raise SystemExit("PyTorch sees no CUDA device")
            head.update(device=torch.cuda.get_device_name(), capability=list(torch.cuda.get_device_capability()),
                        cuda=torch.version.cuda, driver=driver())
        else:
            torch.set_num_threads(1)
            head.update(device="CPU", capability=torch.backends.cpu.get_cpu_capability())
        if not self.known:
            self.write(head)

    def write(self, line):
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()

    def answer(self, case, **facts):
        if case not in self.known:
            self.write({"case": case, **facts})

    def is_lost(self):
        try:
            if self.device == "cuda":
                torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False

    def end(self, **facts):
        self.write({"end": True, **facts})
        self.file.close()

    def words(self, n, stream, first=0):
        return mix(torch.arange(first, first + n, dtype=torch.int64, device=self.device), stream)

    def draw(self, format, shape, stream, low=-3, high=1):
        """Numbers with any sign and significand and an exponent from low to high - 1, row-major."""
        dtype, bits, bias = FORMATS[format]
        n, pieces = 1, []
        for size in shape:
            n *= size
        for first in range(0, n, PIECE):
            w = self.words(min(PIECE, n - first), stream, first)
            exponent = bias + low + ((w >> 32 & 0xffff) * (high - low) >> 16)
            code = shift(w, 63) << 8 * dtype.itemsize - 1 | exponent << bits | w & (1 << bits) - 1
            pieces.append(of_bits(code if format != "tf32" else
                                  shift(w, 63) << 31 | exponent << 23 | (w & 0x3ff) << 13, dtype))
        return torch.cat(pieces).reshape(shape)

    def sample(self, y, count, stream, below=None):
        """Elements of y in full, `count` places below its size: the first, the last, others by the words of a stream."""
        n = below or y.numel()
        at = shift(self.words(count, stream), 1) % n
        at[0], at[1] = 0, n - 1
        return {"places": [count, stream, n], "d": hexadecimal(y.flatten()[at])}

    def try_answer(self, case, function):
        """function() gives the facts; what this PyTorch or device refuses becomes a line that says so."""
        if case in self.known:
            return
        try:
            self.answer(case, **function())
        except Exception as e:
            self.answer(case, refused=f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"[:120])
            if self.is_lost():
                raise Lost(case) from e
