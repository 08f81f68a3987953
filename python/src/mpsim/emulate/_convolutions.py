"""Convolutions and their gradients, of one to three dimensions, transposed ones and groups among them (mpsim/convolution.h).

The order of the sum over taps and channels is the one that the memory format implies: (tap, channel) for channels last, and for tensors of
architectures whose kernels turn them so; on a CPU, for channels first, oneDNN's (block of 16 channels, tap, channel).
"""
from __future__ import annotations

from typing import Any, Callable, Optional, Union

import torch
from torch.nn.functional import pad

from .. import _convolution as convolution
from .._product import View
from ._claims import Matrices
from ._plans import SLOTS
from ._products import FORMATS, Record, dtype_of
from ._roles import GRAD
from ._torchconv import Sums, sums

LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


class Convolutions:
    def __init__(self, core: Any, matrices: Matrices) -> None:
        self.core, self.matrices, self.products = core, matrices, matrices.products
        self.table: dict[str, Callable[..., Any]] = {"aten::convolution": self.forward, "aten::convolution_overrideable": self.forward,
                                                     "aten::convolution_backward": self.backward,
                                                     "aten::convolution_backward_overrideable": self.backward}

    # ---- layouts ----

    @staticmethod
    def last(x: Any, weight: Any) -> bool:
        """Whether the channels are the last in memory."""
        like = LAST.get(x.dim())
        return like is not None and (x.is_contiguous(memory_format=like) and not x.is_contiguous()
                                     or weight.is_contiguous(memory_format=like) and not weight.is_contiguous())

    def empty(self, shape: Any, dtype: Any, last: bool, device: Any) -> Any:
        like = LAST.get(len(shape), torch.contiguous_format) if last else torch.contiguous_format
        return torch.empty(shape, dtype=dtype, memory_format=like, device=device)

    def geometry(self, last: bool, stride: Any, padding: Any, dilation: Any, transposed: bool, groups: int, taps: str = "as-read",
                 row_multiple: int = 1) -> Any:
        order = "taps-channels" if last or not self.core.arch.is_cpu else "blocks-taps-channels"
        sizes: Any = [tuple(v) if len(v) > 1 else v[0] for v in (stride, padding, dilation)]
        return convolution.Geometry(sizes[0], sizes[1], sizes[2], groups, transposed, order, taps, row_multiple)

    # ---- sums of torch's own step ----

    def sums(self, kind: str, *which: Any) -> Union[Sums, str]:
        """How the sums go, or why the convolution is torch's own."""
        return sums(kind, *which) if self.core.as_torch else Sums()

    def even(self, a: Any, b: Any, axis: int) -> Optional[tuple[Any, Any]]:
        """The operands with one channel more, of zeros, where an odd number of channels is added: it is multiplied beside the last."""
        if not self.core.as_torch or a.shape[1] % 2 == 0:
            return None
        more = (0, 0, 0, 0, 0, 1)
        return pad(a, more), pad(b, more if axis else (0, 0, *more))

    # ---- one sum ----

    def run(self, which: str, record: Record, kind: str, a: Any, b: Any, out: Any, geometry: Any, bias: Any = None, chunk: int = 0,
            even: Optional[tuple[Any, Any]] = None) -> Any:
        """The convolution, or a gradient of it, of the operands in the slots of the kind: in `out`, or in a wider one where its format needs
        that (autograd rounds a gradient to the dtype of what it is the gradient of). chunk: of the model; 0: as it has it. even: what is
        multiplied in the operands' place."""
        slots = SLOTS[kind]
        to = FORMATS[a.dtype] if self.core.as_torch else self.products.placement(record, kind).format[slots[2]]
        if kind == "wgrad" and record.param is not None and not self.core.as_torch:
            to = record.param.placement.format["wgrad"]
        if not to.within(FORMATS[out.dtype]):
            out = torch.empty_like(out, dtype=dtype_of(to))

        casts = self.products.casts

        def using(d: View, left: Any, right: Any, model: str, bias: Any = None, **terms: Any) -> None:
            if bias is not None:
                terms["bias"] = bias
            if even is not None:
                left, right = ((View.of(t), side[1]) for t, side in zip(even, (left, right)))
            if casts is None:
                self.core.home.convolve(which, d, left, right, f"{model}:chunk={chunk}" if chunk else model, geometry, **terms)
            else:
                casts.convolve(which, geometry, d, left, right, **terms)

        self.products.run(record, kind, View.of(a), View.of(b), View.of(out), slots=slots, bias=bias, to=to, using=using)
        return out

    # ---- the operators ----

    def forward(self, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                groups: int) -> Any:
        core, roles = self.core, self.core.roles
        batched = x.dim() == weight.dim()
        if not batched:
            x = x.unsqueeze(0)
        record = self.matrices.record("conv", False, weight.dim())
        record.left, record.right = x.untyped_storage()._cdata, weight.untyped_storage()._cdata
        record.dtypes = x.dtype, weight.dtype
        tag = roles.tag(weight)
        record.param = tag.param if tag is not None else None
        core.paths.mark(record)
        last = self.last(x, weight)
        geometry = self.geometry(last, stride, padding, dilation, transposed, groups)
        format = FORMATS[x.dtype] if core.as_torch else self.products.placement(record, "fprop").format["out"]
        more = tuple(output_padding) if len(output_padding) > 1 else output_padding[0]
        sizes = geometry.sizes(x.shape[2:], weight.shape[2:], more if transposed else 0)
        out = self.empty((x.shape[0], weight.shape[1] * groups if transposed else weight.shape[0], *sizes), dtype_of(format), last, x.device)
        how = self.sums("fprop", x, weight, None, sizes, stride, padding, dilation, groups, transposed, last)
        if isinstance(how, str):
            core.ran_natively(record, how)
            out = torch.ops.aten.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        else:
            out = self.run("forward", record, "fprop", x, weight, out, geometry, bias, how.chunk, self.even(x, weight, 1))
        roles.put(out, max(roles.of(x), roles.of(weight)))
        return out if batched else out.squeeze(0)

    def backward(self, dy: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
                 output_padding: Any, groups: int, wanted: Any) -> Any:
        core, roles = self.core, self.core.roles
        record = core.paths.found()
        if not isinstance(record, Record):
            record = self.matrices.record("conv", False, weight.dim())
            record.dtypes = x.dtype, weight.dtype
            tag = roles.tag(weight)
            record.param = tag.param if tag is not None else None
        last = self.last(x, weight)
        geometry = self.geometry(last, stride, padding, dilation, transposed, groups)
        native = (dy, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups)
        dx = dw = db = None
        if wanted[0]:
            how = self.sums("dgrad", x, weight, dy, dy.shape[2:], stride, padding, dilation, groups, transposed, last)
            if isinstance(how, str):
                core.ran_natively(record, how)
                dx = torch.ops.aten.convolution_backward(*native, [True, False, False])[0]
            else:
                dx = self.empty(x.shape, record.dtypes[0], last, x.device)
                dx = self.run("input", record, "dgrad", dy, weight, dx,
                              self.geometry(last, stride, padding, dilation, transposed, groups, how.taps), None, how.chunk,
                              self.even(dy, weight, 0))
        if wanted[1]:
            how = self.sums("wgrad", x, weight, dy, dy.shape[2:], stride, padding, dilation, groups, transposed, last)
            if isinstance(how, str):
                core.ran_natively(record, how)
                dw = torch.ops.aten.convolution_backward(*native, [False, True, False])[1]
            else:
                dw = self.empty(weight.shape, record.dtypes[1], last, x.device)
                dw = self.run("weight", record, "wgrad", dy, x, dw,
                              self.geometry(last, stride, padding, dilation, transposed, groups, row_multiple=how.row_multiple), chunk=how.chunk)
        if wanted[2]:
            db = torch.ops.aten.convolution_backward(*native, [False, False, True])[2] if core.as_torch else self.bias(record, dy)
        for made in (dx, dw, db):
            if made is not None:
                roles.put(made, GRAD)
        return dx, dw, db

    def bias(self, record: Record, dy: Any) -> Any:
        """The sum over all places, of rows (image, place)."""
        core = self.core
        placement = self.products.placement(record, "wgrad")
        rows = core.to_format(dy, placement.format["agrad"]).movedim(1, -1)
        made = core.between.column_sums(rows.flatten(0, -2))
        return core.rounded(made, placement.format["wgrad"], keep=True)
