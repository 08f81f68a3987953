"""Convolutions and their gradients where the tensors lie (mpsim/convolution.h): one to three dimensions, groups, strides, padding,
dilation, transposed ones, any strides in memory, sums by an accumulation model in an order that is said.

    y, x, w = View.of(out), View.of(images), View.of(weight)
    forward(y, (x, bf16), (w, bf16), "hopper-bf16-fp32", Geometry(padding=(1, 1)), bias=View.row(bias))
"""
from __future__ import annotations

import struct
import threading
from ctypes import addressof, byref, c_size_t
from typing import Any, Optional, Sequence

from ._dot import model_of
from ._error import InputError, shown
from ._formats import Format, address_of
from ._library import ERANGE, CConvolution, COperand, CRng, check, lib
from ._product import Counts, Side, View, _said, _side
from ._threads import pool

DIMS = 3
ORDERS = {"taps-channels": 0, "blocks-taps-channels": 1, "channels-taps": 2}
TAPS = {"as-read": 0, "as-weights": 1}
_PACK = struct.Struct("=5Qf4x3Q3B5x11Q")  # mpsim_convolution


class Geometry:
    """How a convolution reads: its settings but for the sizes, which are those of the tensors.

    stride, padding, dilation: a number for all dimensions, or one for each. order: what the sum over taps and channels goes through,
    the last the fastest: "taps-channels" (kernels for NHWC, `mpsim train`), "blocks-taps-channels" (16 channels a block: oneDNN
    for NCHW on CPUs), "channels-taps" (torch.unfold). taps: where a gradient or a transposed convolution reads, whether taps go by
    what they read, "as-read", or stay as they are in the weight, "as-weights". row_multiple: in a weight's gradient products of
    +0 fill each row of positions up to a multiple of it, so that no chunk of the model "avx512-bf16-fp32:chunk=28" spans two rows.
    """

    __slots__ = ("_numbers",)

    def __init__(self, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, transposed: bool = False,
                 order: str = "taps-channels", taps: str = "as-read", row_multiple: int = 1) -> None:
        if order not in ORDERS:
            raise InputError(f"order: expected one of {', '.join(ORDERS)}, found {shown(order)}")
        if taps not in TAPS:
            raise InputError(f"taps: expected one of {', '.join(TAPS)}, found {shown(taps)}")
        if groups < 1:
            raise InputError(f"groups: expected 1 or more, found {groups}")
        if row_multiple < 1:
            raise InputError(f"row_multiple: expected 1 or more, found {row_multiple}")
        self._numbers = (bool(transposed), ORDERS[order], TAPS[taps], groups, row_multiple, *_each(stride, "stride", 1, 1),
                         *_each(padding, "padding", 0, 0), *_each(dilation, "dilation", 1, 1))

    def sizes(self, x: Sequence[int], kernel: Sequence[int], output_padding: Any = 0) -> tuple[int, ...]:
        """The sizes of y, from those of x and of the kernel (without images and channels)."""
        c, n = CConvolution(), c_size_t()
        lib.mpsim_convolution_init(addressof(c))
        c.transposed, _, _, _, _, *numbers = self._numbers
        c.stride, c.padding, c.dilation = (tuple(numbers[i:i + DIMS]) for i in (0, DIMS, 2 * DIMS))
        more, sizes = _each(output_padding, "output_padding", 0, 0), []
        for d, size in enumerate(x):
            if lib.mpsim_convolution_size(addressof(c), d, size, kernel[d], more[d], byref(n)):
                raise InputError(f"convolution: a kernel of {tuple(kernel)} does not fit {tuple(x)} with padding "
                                 f"{tuple(c.padding)[:len(x)]} and dilation {tuple(c.dilation)[:len(x)]}")
            sizes.append(n.value)
        return tuple(sizes)


def _each(x: Any, what: str, missing: int, least: int) -> tuple[int, ...]:
    values = (x,) * DIMS if isinstance(x, int) else tuple(x)
    if len(values) > DIMS or any(v < least for v in values):
        raise InputError(f"{what}: expected up to {DIMS} numbers of at least {least}, found {shown(x)}")
    return values + (missing,) * (DIMS - len(values))


class _Own(threading.local):
    """Structures that a thread uses again: their memory, and where that is."""

    def __init__(self) -> None:
        self.c, self.a, self.b = CConvolution(), COperand(), COperand()
        self.at, self.a_at, self.b_at = addressof(self.c), addressof(self.a), addressof(self.b)


_own = _Own()


def _run(function: Any, what: str, d: View, a: Side, b: Side, model: str, geometry: Geometry, bias: Optional[View], factor: float,
         rng: Optional[CRng], counts: Optional[Counts], format: Optional[Format]) -> None:
    m = model_of(model)
    if m[2] and rng is None:
        raise InputError(f"model '{model}' rounds stochastically: expected rng=")
    own = _own
    _PACK.pack_into(own.c, 0, addressof(m[0]), _side(a, own.a, own.a_at), _side(b, own.b, own.b_at), d.at(),
                    address_of(format), factor, 0 if bias is None else bias.at(),
                    0 if rng is None else addressof(rng), 0 if counts is None else addressof(counts), *geometry._numbers)
    status = function(own.at, pool())
    if status:
        said = f"{what}: {_said(a)} and {_said(b)} to {d!r} under model '{model}'"
        if status == ERANGE:
            raise InputError(f"{said}: formats that cannot be taken")
        check(status, said)


def forward(y: View, x: Side, w: Side, model: str, geometry: Geometry, bias: Optional[View] = None, factor: float = 1.0,
            rng: Optional[CRng] = None, counts: Optional[Counts] = None, *, format: Optional[Format] = None) -> None:
    """y = RN(x convolved with w * (both inverses) * factor + bias): x, y of images x channels x sizes, w as torch has it.

    x, w: each an Operand without blocks, or (View, Format or None): rounded to nearest even as it is read. bias: View.row. format:
    that results are rounded to, where y's elements lie in a wider one. rng, counts: as of `multiply`; number i of y, row-major, is
    the dot product whose random words begin at rng.index + 2^32 i.
    """
    _run(lib.mpsim_convolution_forward, "convolution", y, x, w, model, geometry, bias, factor, rng, counts, format)


def backward_input(dx: View, dy: Side, w: Side, model: str, geometry: Geometry, factor: float = 1.0, rng: Optional[CRng] = None,
                   counts: Optional[Counts] = None, *, format: Optional[Format] = None) -> None:
    """The gradient of x: one sum a number over taps and outputs, nothing is scattered."""
    _run(lib.mpsim_convolution_backward_input, "gradient of a convolution's input", dx, dy, w, model, geometry, None, factor, rng,
         counts, format)


def backward_weight(dw: View, dy: Side, x: Side, model: str, geometry: Geometry, factor: float = 1.0, rng: Optional[CRng] = None,
                    counts: Optional[Counts] = None, *, format: Optional[Format] = None) -> None:
    """The gradient of w: sums over images, then positions, ascending."""
    _run(lib.mpsim_convolution_backward_weight, "gradient of a convolution's weight", dw, dy, x, model, geometry, None, factor, rng,
         counts, format)
