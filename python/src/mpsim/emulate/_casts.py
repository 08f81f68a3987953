"""arch="torch": casts only. Operands are rounded and quantised as the policy has it, then multiplied by torch's own float32 products.

No model says how torch adds up: its sums differ between machines, versions of torch and numbers of threads.
"""
from __future__ import annotations

from ctypes import c_float, c_ubyte
from typing import Any, Optional

import numpy
import torch

from .._cast import plan_of
from .._device import There
from .._formats import Format, format_at
from .._product import Entering, Operand, View
from .._windows import tensor_of
from ._plans import BINARY32
from ._products import DTYPES

NOTE = "products are torch's own float32 products of the operands (arch 'torch'): other machines may give other bits"
# formats whose codes torch reads, and as what NumPy hands codes over
CODES = {"binary32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "binary64": torch.float64, "e4m3": torch.float8_e4m3fn,
         "e5m2": torch.float8_e5m2}
MODES = ("nearest-even", "nearest-away", "toward-zero")
BITS = {1: numpy.uint8, 2: numpy.int16, 4: numpy.int32, 8: numpy.int64}


def floats_at(address: int, format: Format, shape: Any, strides: Any) -> Any:
    """Codes in memory as a float32 tensor of its own."""
    if 0 in shape:
        return torch.empty(shape)
    size = format.code_dtype.itemsize
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    raw = numpy.frombuffer((c_ubyte * (extent * size)).from_address(address), BITS[size])
    dtype = CODES.get(format.name)
    if dtype is None:
        flat = torch.from_numpy(numpy.array(format.values_of(raw.view(format.code_dtype)), numpy.float32))
    else:
        flat = torch.from_numpy(raw).view(dtype).to(torch.float32, copy=True)
    return flat.as_strided(tuple(shape), tuple(strides))


def floats_there(side: There, cast: Any) -> Any:
    """The numbers of an operand in the workspace of a device: float32 where they lie, else a tensor of their own. cast: of the device."""
    stack, n = side.c.stack, side.c.stack.rank
    shape, strides = tuple(stack.shape[:n]), tuple(stack.strides[:n])
    format = format_at(stack.format)
    if 0 in shape:
        return torch.empty(shape, device=side.memory.device)
    begin = stack.codes - side.memory.data_ptr()
    extent = (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * format.code_dtype.itemsize
    codes = side.memory[begin : begin + extent]
    dtype = CODES.get(format.name)
    if dtype is not None:
        return codes.view(dtype).to(torch.float32).as_strided(shape, strides)
    flat = torch.empty(extent // format.code_dtype.itemsize, device=codes.device)
    shown, to = (View(x.data_ptr(), f, (1, flat.numel()), (flat.numel(), 1), x) for x, f in ((codes, format), (flat, BINARY32)))
    cast(to, shown, plan_of("binary32", None, 1.0, None, None, False, False, format.name))
    return flat.as_strided(shape, strides)


def numbers_of(side: Any, rounded: Any, home: Any) -> Any:
    """What a product reads, as float32: of an Operand in its own memory, or kept, as several products read it."""
    if not isinstance(side, Operand):
        view, format = side
        return wide(rounded(tensor_of(view), format))
    if side._of is not None:
        return numbers_of(side._of, rounded, home).mT
    if side.numbers is None:
        side.numbers = _numbers(side, rounded, home)
    return side.numbers


def wide(x: Any) -> Any:
    """Numbers as float32; a stack that is converted has no gaps between its matrices, so that torch need not copy it once more."""
    if x.dtype is torch.float32 or x.dim() == 2:
        return x.float()
    if x.stride(-1) == 1 or x.stride(-2) != 1:
        return x.to(torch.float32, memory_format=torch.contiguous_format)
    return wide(x.mT).mT


def _numbers(side: Operand, rounded: Any, home: Any) -> Any:
    c = side.c
    if isinstance(side, There) and _lies_in(side):
        x = floats_there(side, home.device.cast)
        to = format_at(c.format)
        return x if c.rounded or to is format_at(c.stack.format) else rounded(x, to).float()
    if isinstance(side, There):  # where it came from, rounded as it is read
        return wide(rounded(tensor_of(side.view[0]), format_at(c.format), MODES[c.mode]))
    stack, n = c.stack, c.stack.rank
    shape, strides = stack.shape[:n], stack.strides[:n]
    if side.view[1].recipe is not None and 0 not in shape:
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides))
        return torch.frombuffer((c_float * extent).from_address(stack.codes), dtype=torch.float32).as_strided(shape, strides)
    format, to = format_at(stack.format), format_at(c.format)
    x = floats_at(stack.codes, format, shape, strides)
    return x if c.rounded or to is format else rounded(x, to).float()


def _lies_in(side: There) -> bool:
    """Whether an operand's numbers are in its workspace, and not where they came from."""
    memory = side.memory
    return memory is not None and memory.data_ptr() <= side.c.stack.codes < memory.data_ptr() + memory.numel()


def sums_of(a: Any, b: Any, bias: Optional[View], factor: float, out: Any) -> Any:
    """factor a b^T + bias, by torch. out: where they may be put, or None."""
    if a.dim() == 2 and b.dim() == 2:
        if bias is not None:
            return torch.addmm(tensor_of(bias).reshape(-1), a, b.mT, alpha=factor, out=out)
        sums = torch.mm(a, b.mT, out=out)
    elif a.shape[:-2] == b.shape[:-2]:
        sums = torch.bmm(a.flatten(0, -3), b.flatten(0, -3).mT)
        sums = sums.view(*a.shape[:-2], *sums.shape[-2:])
    else:
        sums = torch.matmul(a, b.mT)
    if factor != 1.0:
        sums *= factor
    return sums if bias is None else sums.add_(tensor_of(bias))


def put(d: View, sums: Any, format: Format, counts: Any, home: Any) -> None:
    """float32 sums, rounded once, in their place."""
    out = tensor_of(d)
    if format is BINARY32:
        if counts is not None:
            finite = int(torch.isfinite(sums).sum())
            counts.add(int(torch.count_nonzero(sums)) - (sums.numel() - finite), 0, 0, sums.numel() - finite)
        out.copy_(sums)
        return
    sums = sums.contiguous()
    if counts is not None or format.name not in DTYPES:
        made = home.enter(View.of(sums), Entering(format), counts)  # which owns the codes
        stack = made.c.stack
        sums = floats_there(made, home.device.cast) if isinstance(made, There) and _lies_in(made) else floats_at(
            stack.codes, format_at(stack.format), sums.shape, stack.strides[: stack.rank])
    out.copy_(sums)


class Casts:
    """Functions of the library's products, by torch."""

    def __init__(self, core: Any) -> None:
        self.core = core
        core.note(NOTE)

    def multiply(self, d: View, left: Any, right: Any, model: str, bias: Optional[View] = None, format: Format = BINARY32,
                 counts: Any = None, factor: float = 1.0, add: Optional[View] = None, add_factor: float = 1.0) -> None:
        rounded = self.core.to_format
        home = self.core.home
        a, b = numbers_of(left, rounded, home), numbers_of(right, rounded, home)
        there = tensor_of(d) if format is BINARY32 and counts is None and add is None and d.format is BINARY32 else None
        sums = sums_of(a, b, bias, factor, there)
        if sums is there:
            return
        if add is not None:
            sums += tensor_of(add).float() * add_factor
        put(d, sums, format, counts, home)

    def convolve(self, which: str, geometry: Any, d: View, left: Any, right: Any, bias: Optional[View] = None, format: Format = BINARY32,
                 counts: Any = None) -> None:
        """which: "forward" of (x, w), "input" of (dy, w) or "weight" of (dy, x)."""
        rounded, aten, home = self.core.to_format, torch.ops.aten, self.core.home
        a, b = numbers_of(left, rounded, home), numbers_of(right, rounded, home)
        transposed, _, _, groups, _, *numbers = geometry._numbers
        n = len(d.shape) - 2
        stride, padding, dilation = (list(numbers[i : i + n]) for i in (0, 3, 6))
        like = torch.empty(tuple(d.shape), device=a.device)
        if which == "forward":
            row = None if bias is None else tensor_of(bias).reshape(-1)
            more = [d.shape[i + 2] - (a.shape[i + 2] - 1) * stride[i] + 2 * padding[i] - dilation[i] * (b.shape[i + 2] - 1) - 1 if transposed else 0
                    for i in range(n)]
            sums = aten.convolution(a, b, row, stride, padding, dilation, bool(transposed), more, groups)
        else:
            x, w = (like, b) if which == "input" else (b, like)
            more = [a.shape[i + 2] - (x.shape[i + 2] - 1) * stride[i] + 2 * padding[i] - dilation[i] * (w.shape[i + 2] - 1) - 1 if transposed else 0
                    for i in range(n)]
            wanted = [which == "input", which == "weight", False]
            sums = aten.convolution_backward(a, x, w, None, stride, padding, dilation, bool(transposed), more, groups, wanted)[int(which == "weight")]
        put(d, sums, format, counts, home)
