"""Streams of random bits: those of `mpsim train` (lib/train/batch.c), so that equal names have equal bits."""
from __future__ import annotations

HASH, PRIME, MASK = 0xcbf29ce484222325, 0x100000001b3, 2**64 - 1  # FNV-1a


def stream_of(step: int, name: str) -> int:
    """The stream of a name in a step, from 0."""
    h = HASH
    for byte in (step + 1).to_bytes(8, "little") + name.encode():
        h = (h ^ byte) * PRIME & MASK
    return h
