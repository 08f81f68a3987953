"""oneDNN's convolutions of bf16 images on a CPU with AVX512-BF16: the order of every sum, or why it is not known.

Forward, and the gradient of the input without strides, is one chain of pairs of channels for each number: taps and channels take turns as
the memory format says, an odd channel is a pair with +0, and what the kernels of one tap add at once (channels first) depends on sizes.
What was compared with torch, in every bit, is told in data/vectors/onednn.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

import torch

BLOCK = 16  # channels


class Sums(NamedTuple):
    """How sums go: taps (Geometry), the model's chunk (0: none), what rows are filled up to."""

    taps: str = "as-read"
    chunk: int = 0
    row_multiple: int = 1


def sums(kind: str, x: Any, weight: Any, dy: Any, out: Any, stride: Any, padding: Any, dilation: Any, groups: int, transposed: bool,
         last: bool) -> Union[Sums, str]:
    """How the sums of a convolution ("fprop"; out: its sizes) or of a gradient ("dgrad", "wgrad") go, or why they are torch's own."""
    if x.dtype != torch.bfloat16 or weight.dtype != torch.bfloat16:
        return f"convolutions of {str(x.dtype)[6:]} have no fixed order in torch"
    if groups != 1 or transposed or weight.dim() != 4:
        return "the order of convolutions in groups, transposed or not of two dimensions is not known"
    if kind == "wgrad":
        return _of_weight(x, weight, dy, stride, padding, dilation, last)
    if kind == "dgrad" and any(s != 1 for s in stride):
        return "the order of a convolution's data gradient under a stride is not known"
    why = _unusual(kind, x, weight, out, stride, padding, dilation, last)
    if why or last:
        return why or Sums()
    taps, channels = "as-weights" if kind == "dgrad" else "as-read", weight.shape[kind == "fprop"]
    if weight.shape[2] * weight.shape[3] > 1:
        return Sums(taps)
    chunk = _of_one_tap(channels, weight.shape[kind == "dgrad"], x.shape[0], x.shape[2:], torch.get_num_threads())
    if any(s != 1 for s in stride) and channels > min(chunk, EXPLICIT[0]):
        return "the order of convolutions of one tap of many channels under a stride is not known"
    return Sums(taps, chunk if chunk < channels else 0)


def _unusual(kind: str, x: Any, weight: Any, out: Any, stride: Any, padding: Any, dilation: Any, last: bool) -> Optional[str]:
    """Sizes with which oneDNN's kernels go other ways than the usual one."""
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:])]
    if any(2 * p > r for p, r in zip(padding, reach)) or reach[1] > x.shape[3]:
        return "the order of convolutions that are padded by more than half of their kernel, or narrower than it, is not known"
    read, made = (x.shape[3], out[1]) if kind == "fprop" else (out[1], x.shape[3])
    if last and (made - 1) * stride[1] >= read:
        return "the order of channels-last convolutions whose result is wider than what they read is not known"
    if last and weight.shape[kind == "fprop"] > 1024 and weight.shape[2] * weight.shape[3] > 1:
        return "the order of channels-last convolutions of more than 1024 channels is not known"
    if weight.shape[1] == 1 and any(t.stride(1) == 1 and t.shape[2] * t.shape[3] > 1 for t in (x, weight)):
        return "the order of convolutions of one channel that lies last is not known"
    return None


# ---- kernels of one tap, channels first ----

EXPLICIT = 160, 1024, 512  # channels that are added at once: of images of middle size, of other large ones, of small ones
WAY, HITS = 32768, 7  # bf16 numbers of a way of the cache; how often columns may meet there


def _of_one_tap(channels: int, outputs: int, images: int, sizes: Any, threads: int) -> int:
    """Channels that are added at once (jit_avx512_core_bf16_1x1_conv_kernel's reduce_blocking), by the rows and columns of the image."""
    rows, positions = sizes[0], sizes[0] * sizes[1]
    whole, wide = -(-channels // BLOCK) * BLOCK, -(-outputs // BLOCK) * BLOCK
    if 8 * images >= threads:
        most = EXPLICIT[0] if wide <= 256 and 10 < rows < 28 else EXPLICIT[rows <= 10 and 2 or 1]
        chunk = min(whole, most)
    else:
        most = whole // BLOCK if whole < 1024 else 32 if rows <= 10 else 16
        chunk = BLOCK * next(n for n in range(most, 0, -1) if whole // BLOCK % n == 0)
    return min(chunk, _without_aliases(chunk, positions, _positions_at_once(rows, positions, wide, images, threads)))


def _positions_at_once(rows: int, positions: int, outputs: int, images: int, threads: int) -> int:
    most, least = (30, 9) if 8 * images < threads else (6, 5) if 128 < outputs < 256 and 10 < rows < 28 else (9, 6)
    for n in range(most, least - 1, -1):
        if (rows if rows >= 14 else positions) % n == 0:
            return n
    n, left = min(most, positions), positions % most
    for i in range(most, least - 1, -1):
        if positions % i == 0:
            return i
        if positions % i > left:
            n, left = i, positions % i
    return n


def _without_aliases(chunk: int, positions: int, at_once: int) -> int:
    if positions * chunk <= WAY * HITS:
        return chunk
    for start in range(at_once):
        hits = 0
        for at in range(start, positions * (chunk // BLOCK), WAY // BLOCK):
            hits += at % positions < at_once
            if hits == HITS:
                chunk = min(chunk, BLOCK * max(1, (at + WAY // BLOCK) // positions))
                break
    return chunk


# ---- oneDNN's weight gradient of a convolution of two dimensions, in one thread ----

COLUMNS = 28  # of a row, that a chain of oneDNN's takes
CACHED, MOST = 48 * 1024, 128 * 1024  # bytes of rows of one block of channels that a sum over rows takes


def _of_weight(x: Any, weight: Any, dy: Any, stride: Any, padding: Any, dilation: Any, last: bool) -> Union[Sums, str]:
    if torch.get_num_threads() != 1:
        return "the order of a convolution's weight gradient depends on torch's threads; torch.set_num_threads(1) has a known one"
    if weight.shape[2] * weight.shape[3] == 1:
        return "the order of the weight gradient of convolutions of one tap is not known"
    chunks = weight_chunks(x, weight, dy, stride, padding, dilation, last)
    return "the order of the weight gradient of a convolution of these sizes is not known" if chunks is None else Sums("as-read", *chunks)


def weight_chunks(x: Any, weight: Any, dy: Any, stride: Any, padding: Any, dilation: Any, last: bool) -> Optional[tuple[int, int]]:
    """The model's chunk and what rows are filled up to (Geometry's row_multiple); None: not known.

    A chain takes up to 28 columns of a row. From 128 channels on, where the result is as large as what is read, it takes all rows of an
    image, or blocks of them that stay in a cache.
    """
    channels, outputs, sizes, kernel, out = x.shape[1], weight.shape[0], x.shape[2:], weight.shape[2:], dy.shape[2:]
    behind = [max(0, (o - 1) * s + k - n - p) for o, s, k, n, p in zip(out, stride, kernel, sizes, padding)]
    first = channels < BLOCK
    if (first and not last and outputs % BLOCK or any(d > 1 for d in dilation) or kernel[1] > (24 if first else 14)
            or any(2 * p > k for p, k in zip(padding, kernel)) or first and out[1] > COLUMNS and kernel[1] > out[1]):
        return None
    even = out[1] + out[1] % 2
    padded = channels if last else -(-channels // BLOCK) * BLOCK
    pad = max(padding[1], behind[1] + 1)
    row = 2 * BLOCK * (sizes[1] + pad + pad % 2 + (sizes[1] + pad + pad % 2) % 2 + even)
    least = max(1, padding[0], behind[0])
    if (padded < 128 or tuple(sizes) != tuple(out) or 1 in kernel or any(s != 1 for s in stride)
            or any(p != k // 2 for p, k in zip(padding, kernel)) or row * least > CACHED):
        return min(COLUMNS, even), min(COLUMNS, even)
    rows = _rows(out[0], row, least)
    return (rows * even, 2) if rows and out[0] % rows == 0 else None


def _rows(rows: int, size: int, least: int) -> int:
    """Rows of a block: all, or their number divided by its smallest factors until they stay in a cache; 0: not known."""
    n = rows
    while rows * size > MOST and n > 1 and n * size > CACHED:
        n //= next((i for i in (2, 3, 5) if n % i == 0), n + 1)
    return max(least, n) if n else 0
