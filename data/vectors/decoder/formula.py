# SPDX-License-Identifier: Apache-2.0
"""Weights and texts from integers, which tests/support/decoderinput.c computes, too."""
import numpy as np
import torch

TRAINED, HELD, MASK = 2000, 200, 0xffffffff


def hashed(start, n):
    """MurmurHash3's finaliser (public domain) of start + i * 0x9E3779B9, i < n."""
    x = (start + np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B9)) & np.uint64(MASK)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        x = ((x ^ (x >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(MASK)
    return (x ^ (x >> np.uint64(16))).astype(np.int64)


def name_hash(name):
    """FNV-1a, 32 bits."""
    h = 0x811C9DC5
    for byte in name.encode():
        h = (h ^ byte) * 0x01000193 & MASK
    return h


def weight(name, shape):
    """12 bits v of each element: matrices v 2^-13, up to 0.25 in magnitude; biases v 2^-14; norms 1 + v 2^-13."""
    v = torch.tensor((hashed(name_hash(name), int(np.prod(shape))) >> 20) - 2048, dtype=torch.float64).reshape(shape)
    if len(shape) == 2:
        return v * 2.0 ** -13
    return v * 2.0 ** -14 if name.endswith(".bias") else 1 + v * 2.0 ** -13


def text(vocabulary):
    """A walk with steps of 1 to 4, so that there is something to learn."""
    steps = 1 + (hashed(name_hash("text"), TRAINED + HELD) >> 30)
    return torch.tensor(np.cumsum(steps) % vocabulary)


def set_weights(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(weight(name, tuple(p.shape)))
