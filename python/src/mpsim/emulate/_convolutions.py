"""Convolutions and their gradients, of one to three dimensions, transposed ones and groups among them (mpsim/convolution.h).

The order of the sum over taps and channels is the one that the memory format implies: (tap, channel) for channels last, and for tensors of
architectures whose kernels turn them so; on a CPU, for channels first, oneDNN's (block of 16 channels, tap, channel).
"""
from __future__ import annotations

from typing import Any, Callable

import torch

from .. import _convolution as convolution
from .._product import View
from ._claims import Matrices
from ._plans import SLOTS
from ._products import FORMATS, Record, dtype_of
from ._roles import GRAD
from ._torchcpu import conv_native

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

    def empty(self, shape: Any, dtype: Any, last: bool) -> Any:
        like = LAST.get(len(shape), torch.contiguous_format) if last else torch.contiguous_format
        return torch.empty(shape, dtype=dtype, memory_format=like)

    def order(self, last: bool) -> str:
        return "taps-channels" if last or not self.core.arch.is_cpu else "blocks-taps-channels"

    @staticmethod
    def sizes(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int) -> tuple[int, ...]:
        made = [x.shape[0], weight.shape[1] * groups if transposed else weight.shape[0]]
        for i, n in enumerate(x.shape[2:]):
            extent = (weight.shape[2 + i] - 1) * dilation[i] + 1
            made.append((n - 1) * stride[i] - 2 * padding[i] + extent + output_padding[i] if transposed
                        else (n + 2 * padding[i] - extent) // stride[i] + 1)
        return tuple(made)

    # ---- one sum ----

    def run(self, which: Any, record: Record, kind: str, a: Any, b: Any, out: Any, how: dict[str, Any], bias: Any = None) -> None:
        """out = the convolution, or a gradient of it, of the operands in the slots of the kind."""
        self.products.run(record, kind, View.of(a), View.of(b), View.of(out), slots=SLOTS[kind], bias=bias,
                          to=FORMATS[a.dtype] if self.core.as_torch else self.products.placement(record, kind).format[SLOTS[kind][2]],
                          using=lambda d, left, right, model, **terms: which(d, left, right, model, **how, **terms))

    # ---- the operators ----

    def forward(self, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                groups: int) -> Any:
        core, roles = self.core, self.core.roles
        batched = x.dim() == weight.dim()
        if not batched:
            x = x.unsqueeze(0)
        dims = weight.dim() - 2
        stride, padding, dilation, output_padding = (list(v) * (dims if len(v) == 1 else 1) for v in (stride, padding, dilation, output_padding))
        record = self.matrices.record("conv", False, weight.dim())
        record.left, record.right = x.untyped_storage()._cdata, weight.untyped_storage()._cdata
        record.dtypes = x.dtype, weight.dtype
        tag = roles.tag(weight)
        record.param = tag.param if tag is not None else None
        core.paths.mark(record)
        last = self.last(x, weight)
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "transposed": transposed, "order": self.order(last)}
        format = FORMATS[x.dtype] if core.as_torch else self.products.placement(record, "fprop").format["out"]
        out = self.empty(self.sizes(x, weight, stride, padding, dilation, transposed, output_padding, groups), dtype_of(format), last)
        why = conv_native(core, x, weight, "fprop", how)
        if why:
            core.ran_natively(record, why)
            out = torch.ops.aten.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
        else:
            self.run(convolution.forward, record, "fprop", x, weight, out, how, bias)
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
        dims = weight.dim() - 2
        stride, padding, dilation, output_padding = (list(v) * (dims if len(v) == 1 else 1) for v in (stride, padding, dilation, output_padding))
        last = self.last(x, weight)
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "transposed": transposed, "order": self.order(last)}
        native = (dy, x, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups)
        dx = dw = db = None
        if wanted[0]:
            why = conv_native(core, x, weight, "dgrad", how)
            if why:
                core.ran_natively(record, why)
                dx = torch.ops.aten.convolution_backward(*native, [True, False, False])[0]
            else:
                dx = self.empty(x.shape, record.dtypes[0], last)
                taps = "weights" if core.as_torch and not last else "read"
                self.run(convolution.backward_input, record, "dgrad", dy, weight, dx, {**how, "taps": taps})
        if wanted[1]:
            why = conv_native(core, x, weight, "wgrad", how)
            if why:
                core.ran_natively(record, why)
                dw = torch.ops.aten.convolution_backward(*native, [False, True, False])[1]
            else:
                dw = self.empty(weight.shape, record.dtypes[1], last)
                self.run(convolution.backward_weight, record, "wgrad", dy, x, dw, how)
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
        made = core.between.column_sums(rows.reshape(-1, rows.shape[-1]))
        return core.rounded(made, placement.format["wgrad"], keep=True)
