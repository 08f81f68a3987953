"""Convolutions and their gradients on a CUDA device, with the bits of mpsim/convolution.h: products of windows that are copied beside one another.

    convolve(device, "forward", y, (x, bf16), (w, bf16), "hopper-bf16-fp32", Geometry(padding=1), bias=View.row(bias))

A number of a result is a dot product in an order that the geometry says. Torch copies what the products of a row read, in this order and as codes,
to memory of its allocator; libmpsim-cuda multiplies the copies. Forward passes and gradients of an input take some images at a time, so
that the copies stay small.
"""
from __future__ import annotations

import ctypes
from ctypes import sizeof
from math import gcd, prod
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
from torch.nn.functional import pad

from ._convolution import DIMS, ORDERS, TAPS, Geometry
from ._device import COperandThere, Device, There
from ._dot import model_of
from ._error import InputError
from ._formats import Format, format_at
from ._library import CRng
from ._product import Side, View

BLOCK = 16  # MPSIM_CONVOLUTION_BLOCK
COPIED = 1 << 28  # bytes of windows that are copied at a time, but for those of one image
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
STOCHASTIC = "convolutions of models that round stochastically have no kernels on a device"


class Codes(NamedTuple):
    """An operand: its elements as a tensor, and a copy of some of them as an operand again."""

    tensor: Any
    again: Callable[[Any], Side]


class Axis(NamedTuple):
    """A dimension of a result: places first, first + next, ... (so many as `positions`) read the source at
    position * step + shift + i * apart, i < taps, and the weight at tap + i * tap_next."""

    first: int
    next: int
    positions: int
    step: int
    shift: int
    apart: int
    taps: int
    tap: int
    tap_next: int


class Settings:
    """The numbers of a geometry, for `n` dimensions."""

    def __init__(self, geometry: Geometry, n: int) -> None:
        self.transposed, self.order, self.taps, self.groups, self.row_multiple, *numbers = geometry._numbers
        self.stride, self.padding, self.dilation = (numbers[i : i + n] for i in (0, DIMS, 2 * DIMS))


def tensor_of(view: View) -> Any:
    """The tensor that a view shows."""
    t = view.keep.detach()
    return t.as_strided(tuple(view.shape), tuple(view.strides), (view.address - t.data_ptr()) // t.element_size() + t.storage_offset())


# ---- operands ----

def codes_of(side: Side) -> Codes:
    if not isinstance(side, There):
        view, format = side  # type: ignore[misc]
        return Codes(tensor_of(view), lambda t: (View.of(t), format))
    stack = side.c.stack
    begin = stack.codes - (side.memory.data_ptr() if side.memory is not None else 0)
    if side.memory is None or not 0 <= begin < side.memory.numel():  # nothing was to be done: the numbers are where they were
        tensor = tensor_of(side.view[0])
    else:
        size = format_at(stack.format).code_dtype.itemsize
        n = stack.rank
        shape, strides = tuple(stack.shape[:n]), tuple(stack.strides[:n])
        extent = (1 + sum((s - 1) * t for s, t in zip(shape, strides))) * size if 0 not in shape else 0
        tensor = side.memory[begin : begin + extent].view(BITS[size]).as_strided(shape, strides)
    return Codes(tensor, lambda t: _again(side, t))


def _again(side: There, t: Any) -> There:
    """The operand with other elements of its format."""
    made = There()
    ctypes.memmove(ctypes.addressof(made.there), ctypes.addressof(side.there), sizeof(COperandThere))
    View(t.data_ptr(), format_at(side.c.stack.format), t.shape, t.stride()).put(made.c.stack, ctypes.addressof(made.c.stack))
    made.memory = t
    return made


# ---- which elements ----

def _axis(s: Settings, d: int, turned: bool, out: int, kernel: int, r: int) -> Axis:
    """As phase_of in lib/dot/convolution_taps.c."""
    stride, padding, dilation = s.stride[d], s.padding[d], s.dilation[d]
    if not turned:
        return Axis(0, 1, out, stride, -padding, dilation, kernel, 0, 1)
    at, apart = r + padding, stride // gcd(stride, dilation)
    first = next((t for t in range(min(kernel, apart)) if t * dilation % stride == at % stride), None)
    positions = (out - r - 1) // stride + 1
    if first is None:
        return Axis(r, stride, positions, 1, 0, 1, 0, 0, 1)
    taps = (kernel - 1 - first) // apart + 1
    as_read = s.taps == TAPS["as-read"]
    tap, after = (first + (taps - 1) * apart, -apart) if as_read else (first, apart)
    return Axis(r, stride, positions, 1, (at - tap * dilation) // stride, -after * dilation // stride, taps, tap, after)


def _phases(s: Settings, turned: bool, out: Sequence[int], kernel: Sequence[int]) -> list[list[Axis]]:
    """The positions of a result by what taps they meet."""
    found: list[list[Axis]] = [[]]
    for d, (size, taps) in enumerate(zip(out, kernel)):
        each = [_axis(s, d, turned, size, taps, r) for r in range(min(s.stride[d], size) if turned else 1)]
        found = [[*before, axis] for before in found for axis in each]
    return found


def _windows(x: Any, axes: Sequence[Axis]) -> Any:
    """(images, channels, *positions, *taps) of x, without a copy but for what lies outside, which is 0, and taps that descend."""
    more: list[int] = []
    starts, turned = [], []
    for size, a in zip(x.shape[2:], axes):
        reach = (a.taps - 1) * a.apart
        low, high = a.shift + min(reach, 0), a.shift + (a.positions - 1) * a.step + max(reach, 0)
        before = max(-low, 0)
        more = [before, max(high + 1 - size, 0), *more]
        starts.append(low + before)
        turned.append(reach < 0)
    if any(more):
        x = pad(x, more)
    steps = x.stride()[2:]
    shape = (*x.shape[:2], *(a.positions for a in axes), *(a.taps for a in axes))
    strides = (*x.stride()[:2], *(step * a.step for step, a in zip(steps, axes)), *(step * abs(a.apart) for step, a in zip(steps, axes)))
    found = x.as_strided(shape, strides, x.storage_offset() + sum(i * step for i, step in zip(starts, steps)))
    n = len(axes)
    descending = [2 + n + d for d in range(n) if turned[d]]
    return found.flip(descending) if descending else found


def _ordered(x: Any, order: int, channels: int, taps: int) -> Any:
    """(..., channels, *taps) with both as one dimension, in the order of the sum; a copy."""
    front, n = x.dim() - 1 - taps, x.shape[-1 - taps]
    of_taps = list(range(front + 1, front + 1 + taps))
    if order == ORDERS["channels-taps"] or channels == 1:
        return x.reshape(*x.shape[:front], -1)
    if order == ORDERS["taps-channels"] or n <= BLOCK:
        return x.permute(*range(front), *of_taps, front).reshape(*x.shape[:front], -1)
    whole = n // BLOCK * BLOCK
    blocks = x.narrow(front, 0, whole).unflatten(front, (-1, BLOCK))
    parts = [blocks.permute(*range(front), front, *(t + 1 for t in of_taps), front + 1).reshape(*x.shape[:front], -1)]
    if whole < n:
        parts.append(x.narrow(front, whole, n - whole).permute(*range(front), *of_taps, front).reshape(*x.shape[:front], -1))
    return torch.cat(parts, -1)


def _grouped(x: Any, groups: int, dim: int = 1) -> Any:
    """Channels as groups x channels of a group."""
    return x.unflatten(dim, (groups, -1))


# ---- sums over taps and channels ----

def _of_taps(device: Device, which: str, d: View, source: Codes, weight: Codes, s: Settings, bias: Optional[View], multiplied: Callable[..., None]) -> None:
    """Forward, or the gradient of the input."""
    out, w, n = tensor_of(d), weight.tensor, len(d.shape) - 2
    turned = (which == "input") != bool(s.transposed)
    lines = _grouped(w, s.groups, 0)
    if turned:
        lines = lines.transpose(1, 2)  # (groups, channels of the result, channels of the source, *taps)
    for axes in _phases(s, turned, out.shape[2:], w.shape[2:]):
        each = lines
        for at, a in enumerate(axes):
            each = each.index_select(3 + at, torch.tensor([a.tap + i * a.tap_next for i in range(a.taps)], dtype=torch.int64, device=w.device))
        right = _ordered(each, s.order, each.shape[2], n)
        to = out[(slice(None), slice(None), *(slice(a.first, None, a.next) for a in axes))]
        depth, positions = right.shape[-1], prod(a.positions for a in axes)
        some = max(1, COPIED // max(1, s.groups * positions * depth * source.tensor.element_size()))
        for first in range(0, out.shape[0], some):
            _part(source, weight, source.tensor[first : first + some], right, to[first : first + some], axes, s, d.format, bias, multiplied)


def _part(source: Codes, weight: Codes, x: Any, right: Any, to: Any, axes: Sequence[Axis], s: Settings, format: Format, bias: Optional[View],
          multiplied: Callable[..., None]) -> None:
    """Some images of a phase."""
    n = len(axes)
    windows = _grouped(_windows(x, axes), s.groups) if right.shape[-1] else x.new_zeros((x.shape[0], s.groups, x.shape[1] // s.groups, *(
        a.positions for a in axes), *(a.taps for a in axes)))
    windows = windows.movedim(2, 2 + n)  # (images, groups, *positions, channels, *taps)
    left = _ordered(windows, s.order, x.shape[1] // s.groups, n).contiguous()
    result = _grouped(to, s.groups).movedim(2, -1)  # (images, groups, *positions, channels)
    right = right.contiguous().view(1, s.groups, *(1,) * (n - 1), *right.shape[1:])
    row = bias
    if s.groups == 1:
        left, result, right = left.squeeze(1), result.squeeze(1), right.squeeze(1)
    elif bias is not None:
        step, each = bias.strides[-1], right.shape[-2]
        row = View(bias.address, bias.format, (s.groups, *(1,) * n, each), (each * step, *(0,) * n, step), bias.keep)
    right = right.expand(*left.shape[:-2], *right.shape[-2:])
    multiplied(View(result.data_ptr(), format, result.shape, result.stride(), result), _given(source, left), _given(weight, right), row)


def _given(codes: Codes, t: Any) -> Side:
    """An operand of a product; one without elements is somewhere all the same."""
    if t.numel():
        return codes.again(t)
    return codes.again(t.new_zeros(1).as_strided(t.shape, (0,) * t.dim()))


# ---- sums over images and positions ----

def _of_positions(d: View, dy: Codes, x: Codes, s: Settings, multiplied: Callable[..., None]) -> None:
    """The gradient of the weight."""
    out, n = tensor_of(d), len(d.shape) - 2
    still, read = (x, dy) if s.transposed else (dy, x)
    places = still.tensor.shape[2:]
    axes = [Axis(0, 1, size, s.stride[i], -s.padding[i], s.dilation[i], out.shape[2 + i], 0, 1) for i, size in enumerate(places)]
    fill = -places[-1] % s.row_multiple
    lines = _grouped(pad(still.tensor, (0, fill)) if fill else still.tensor, s.groups)  # (images, groups, rows, *positions)
    lines = lines.permute(1, 2, 0, *range(3, 3 + n)).reshape(s.groups, lines.shape[2], -1).contiguous()
    windows = _grouped(_windows(read.tensor, axes), s.groups)  # (images, groups, channels, *positions, *taps)
    if fill:
        windows = pad(windows, (*(0,) * (2 * n), 0, fill))
    windows = windows.permute(1, 2, *range(3 + n, 3 + 2 * n), 0, *range(3, 3 + n)).reshape(s.groups, -1, lines.shape[-1]).contiguous()
    made = out if out.is_contiguous() else torch.empty(out.shape, dtype=out.dtype, device=out.device)
    result = made.view(s.groups, -1, windows.shape[1])
    to = View(result.data_ptr(), d.format, result.shape, result.stride(), made)
    if s.transposed:
        multiplied(to.t(), _given(read, windows), _given(still, lines), None)
    else:
        multiplied(to, _given(still, lines), _given(read, windows), None)
    if made is not out:
        out.copy_(made)


# ---- the operations ----

def convolve(device: Device, which: str, d: View, a: Side, b: Side, model: str, geometry: Geometry, bias: Optional[View] = None, factor: float = 1.0,
             rng: Optional[CRng] = None, counts: Any = None, *, format: Optional[Format] = None) -> None:
    """As `forward` ("forward" of x, w), `backward_input` ("input" of dy, w) and `backward_weight` ("weight" of dy, x) of `_convolution`, on a device."""
    if model_of(model)[2]:
        raise InputError(f"{STOCHASTIC}: expected another model than '{model}'")
    left, right, s = codes_of(a), codes_of(b), Settings(geometry, len(d.shape) - 2)
    if 0 in d.shape:
        return

    def multiplied(to: View, one: Side, other: Side, row: Optional[View]) -> None:
        device.multiply(to, one, other, model, bias=row, factor=factor, counts=counts, format=format)

    if which == "weight":
        _of_positions(d, left, right, s, multiplied)
    else:
        _of_taps(device, which, d, left, right, s, bias, multiplied)
