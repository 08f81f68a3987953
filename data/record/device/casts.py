# SPDX-License-Identifier: Apache-2.0
"""Casts: which code does each number become?

Sources: all codes of bfloat16 and float16; of float32 each upper half with the lower halves LOW, which hold every
midpoint of the formats of 8 and 16 bits and its neighbours. Codes are stored as runs CODE*COUNT over ascending sources,
NaNs as their bits; those of 16 bits only as a digest (NaNs as one class) and one of what NaNs become, bits in their order.
"""
import torch

from session import digest, of_bits

LOW = (0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff)
EIGHT = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
SIXTEEN = ("float16", "bfloat16")


def sources(name, device):
    high = torch.arange(1 << 16, dtype=torch.int64, device=device)
    if name != "float32":
        return of_bits(high, getattr(torch, name))
    low = torch.tensor(LOW, dtype=torch.int64, device=device)
    return of_bits((high[:, None] << 16 | low).flatten(), torch.float32)


def runs(codes, width):
    values, counts = torch.unique_consecutive(codes, return_counts=True)
    return " ".join(f"{v:0{width}x}*{n}" for v, n in zip(values.tolist(), counts.tolist()))


def cast(x, target):
    y = x.to(target)
    facts = {"n": x.numel(), "digest": digest(y)}
    if target.itemsize == 1:
        facts["codes"] = runs(y.view(torch.uint8).to(torch.int64).flatten(), 2)
    else:
        facts["nans"] = digest((y.view(torch.int16))[torch.isnan(x)])
    return facts


def ask(s):
    for source in ("float32",) + SIXTEEN:
        x = sources(source, s.device)
        for target in EIGHT + [t for t in SIXTEEN if t != source]:
            s.try_answer(f"{source} to {target}", lambda: cast(x, getattr(torch, target)))
