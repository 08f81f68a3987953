"""What lies between the products: normalisations, softmax, losses and embeddings, in the formats that the policy has for their kind.

Natively: torch's kernel in float32, of operands that are numbers of their formats; what it gives is rounded once. All other operators
run in the dtypes that come (Emulator.native).
"""
from __future__ import annotations

import functools
from typing import Any, Callable, Optional

import torch

from .._formats import Format
from ._products import Record, dtype_of
from ._roles import ACT, CONST, GRAD

Tensor = torch.Tensor
LOSSES = ("_log_softmax", "nll_loss_forward", "nll_loss2d_forward", "mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
          "_ctc_loss", "soft_margin_loss", "multi_margin_loss", "multilabel_margin_loss_forward")
LOSSES_BACK = ("_log_softmax_backward_data", "nll_loss_backward", "nll_loss2d_backward", "mse_loss_backward", "smooth_l1_loss_backward",
               "huber_loss_backward", "binary_cross_entropy_backward", "_ctc_loss_backward", "soft_margin_loss_backward", "multi_margin_loss_backward",
               "multilabel_margin_loss_backward")
NORMS = ("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
         "_native_batch_norm_legit_functional", "cudnn_batch_norm", "_fused_rms_norm", "_batch_norm_with_update", "_batch_norm_no_update")
NORMS_BACK = ("native_layer_norm_backward", "native_group_norm_backward", "native_batch_norm_backward", "_fused_rms_norm_backward", "batch_norm_backward")


class Marked:
    """An operation of a forward pass: where it was, and what kind it is."""

    __slots__ = ("path", "kind", "dtype", "extra")

    def __init__(self, path: str, kind: str, dtype: Any = None) -> None:
        self.path, self.kind, self.dtype, self.extra = path, kind, dtype, None


class Between:
    """Handlers by the name of the operator: of (func, tensors, args, kwargs)."""

    def __init__(self, core: Any) -> None:
        self.core = core
        self.table: dict[str, Callable[..., Any]] = {}
        for kind, forward, backward in (("norm", NORMS, NORMS_BACK), ("loss", LOSSES, LOSSES_BACK), ("softmax", ("_softmax",), ("_softmax_backward_data",))):
            for name in forward:
                self.table["aten::" + name] = self._forward(kind if "batch_norm" not in name else "batchnorm")
            for name in backward:
                self.table["aten::" + name] = self._backward(kind if "batch_norm" not in name else "batchnorm")
        self.table["aten::sum"] = self.sum
        self.table["aten::embedding"] = self.embedding
        self.table["aten::embedding_dense_backward"] = self.embedding_backward

    # ---- formats ----

    def placement(self, path: str, kind: str) -> Any:
        return self.core.plans.place_kind(path, kind)

    def entered(self, x: Any, placement: Any) -> Any:
        """An operand in float32: a parameter as its kind has it, an activation as it enters."""
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        core = self.core
        tag = core.roles.tag(x)
        if tag is not None and tag.param is not None:
            return core.enter_weight(x, tag.param, placement.format["weight"])
        role = ACT if tag is None else tag.role
        if role == CONST or x.dtype == torch.float64:
            return x.float()
        return core.to_format(x, placement.format["agrad" if role == GRAD and core.paths.back else "act"]).float()

    def rounded(self, made: Any, role: int, slots: tuple[str, ...], placement: Any) -> Any:
        """What the kernel gives: each result of a slot in its format. The slot "" leaves one as it is, "wgrad" in float32."""
        core = self.core
        one = isinstance(made, Tensor)
        out = []
        for i, y in enumerate((made,) if one else made):
            slot = slots[min(i, len(slots) - 1)]
            if isinstance(y, Tensor) and y.is_floating_point():
                if slot:
                    y = core.rounded(y, placement.format[slot], keep=slot == "wgrad")
                core.roles.put(y, role)
            out.append(y)
        return out[0] if one else tuple(out)

    # ---- operators ----

    def _forward(self, kind: str) -> Callable[..., Any]:
        def run(func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
            core = self.core
            path = core.paths.here().path
            placement = self.placement(path, kind)
            role = core.roles.largest(given)
            entered = [self.entered(a, placement) for a in args]
            if func._schema.name in ("aten::_softmax", "aten::_log_softmax"):
                entered[2] = False
            made = func(*entered, **{k: self.entered(v, placement) for k, v in kwargs.items()})
            if kind == "batchnorm":
                for stored, moved in zip(args[3:5], entered[3:5]):  # running statistics of few bits were moved in a copy
                    if moved is not stored:
                        stored.copy_(moved)
            core.paths.mark(Marked(path, kind, given[0].dtype if given else None))
            return self.rounded(made, role, ("out", ""), placement)

        return run

    def _backward(self, kind: str) -> Callable[..., Any]:
        def run(func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
            core = self.core
            mark = core.paths.found()
            placement = self.placement(mark.path if mark is not None else "", kind)
            entered = [self.entered(a, placement) for a in args]
            if func._schema.name in ("aten::_softmax_backward_data", "aten::_log_softmax_backward_data"):
                entered[3] = torch.float32
            made = func(*entered, **{k: self.entered(v, placement) for k, v in kwargs.items()})
            return self.rounded(made, GRAD, ("dgrad", "wgrad"), placement)

        return run

    def embedding(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        path = core.paths.here().path
        placement = self.placement(path, "embedding")
        made = func(core.presented(args[0]), *args[1:], **kwargs)
        core.paths.mark(Marked(path, "embedding"))
        return self.rounded(made, max(ACT, core.roles.of(args[0])), ("out",), placement)

    def embedding_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        mark = core.paths.found()
        placement = self.placement(mark.path if mark is not None else "", "embedding")
        made = func(self.entered(args[0], placement), *args[1:], **kwargs)
        return self.rounded(made, GRAD, ("wgrad",), placement)

    # ---- sums over rows: gradients of what was added to each of them ----

    def sum(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        """The gradient of a bias, or of a parameter that was added to rows: of numbers in the format of agrad, in binary32, rounded once."""
        core = self.core
        x = given[0]
        mark = None if core.paths.forward or len(args) < 2 else core.paths.found()
        placement = self.of_sums(mark)
        left = self.left(x, args[1] if len(args) > 1 else None)
        if placement is None or not left or core.roles.of(x) != GRAD or not x.is_floating_point():
            return core.native(func, core.mode.operators[func], given, args, kwargs)
        entered = core.to_format(x, placement.format["agrad"])
        made = self.column_sums(entered.flatten(0, -2)) if left == 1 else self.period_sums(entered)
        made = core.rounded(made, placement.format["wgrad"], keep=True)
        if len(args) > 2 and args[2]:
            made = made.view((1,) * (x.dim() - left) + tuple(made.shape))
        core.roles.put(made, GRAD)
        return made

    def of_sums(self, mark: Any) -> Any:
        if isinstance(mark, Record):
            return self.core.claims.products.placement(mark, "wgrad") if mark.form in ("linear", "conv") else None
        return mark.extra.placement if isinstance(mark, Marked) and mark.extra is not None else None

    @staticmethod
    def left(x: Any, dims: Any) -> int:
        """How many dimensions a sum over the leading ones leaves: 1, or 2; 0: it is another sum."""
        if not dims or x.dim() < 2:
            return 0
        summed = sorted(d % x.dim() for d in dims)
        if summed != list(range(len(summed))):
            return 0
        left = x.dim() - len(summed)
        return left if left == 1 or left == 2 and len(summed) == 1 else 0

    def column_sums(self, x: Any) -> Any:
        return x.sum(0, dtype=torch.float32)

    def period_sums(self, x: Any) -> Any:
        return x.float().sum(0)

    # ---- softmax of attention ----

    def causal(self, s: Any, format: Format, scale: float, causal: bool, mask: Any) -> tuple[Any, Any]:
        """P of scores in float32, and the logarithms of the sums."""
        x = s * scale
        if causal:
            x.masked_fill_(later(*s.shape[-2:], s.device), -torch.inf)
        if mask is not None:
            x = x.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else x + mask.float()
        p, most = torch.softmax(x, -1), x.amax(-1)
        lse = most - torch.log(p.amax(-1))
        empty = most == -torch.inf  # rows that see nothing
        if self.core.home.device is not None or empty.any():  # to ask a device is to wait for it
            p.masked_fill_(empty.unsqueeze(-1), 0.0)
            lse.masked_fill_(empty, -torch.inf)
        return self.core.rounded(p, format), lse

    def causal_backward(self, dp: Any, p: Any, format: Format, scale: float, causal: bool) -> Any:
        made = torch._softmax_backward_data(dp, p.float(), -1, torch.float32)
        return self.core.rounded(made.mul_(scale), format)


@functools.lru_cache(maxsize=4)
def later(rows: int, columns: int, device: Any) -> Any:
    """Keys that are later than the query."""
    return torch.ones((rows, columns), dtype=torch.bool, device=device).triu(1)
