"""What lies between the products by mpsim's own functions (mpsim/between.h): the same bits on every machine, as in `mpsim train`.

What is not here runs natively, as with between="native": operations that are one rounding anyway (sums of two, products, ReLU, maxima),
and those that the list of an audit names.

Softmax and loss are one operation where both are seen: the tag of a logarithm keeps its logits, the tag of the gradient says that it is complete.
"""
from __future__ import annotations

from math import prod
from typing import Any, Optional

import torch

from .._formats import Format
from ._between import Between, Marked
from ._plans import BINARY32
from ._products import FORMATS, dtype_of
from ._roles import ACT, GRAD

MEAN, SUM = 1, 2  # of losses: torch's numbers of reductions
LOGARITHMS = ("aten::_log_softmax", "aten::_log_softmax_backward_data")
DONE = "done"  # a gradient of logits that is complete already


class Layers(Between):
    """The handlers of Between, and activations."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        own = {"native_layer_norm": self.layer_norm, "native_layer_norm_backward": self.layer_norm_backward,
               "native_batch_norm": self.batch_norm, "native_batch_norm_backward": self.batch_norm_backward,
               "_softmax": self.softmax, "_softmax_backward_data": self.softmax_backward, "_log_softmax": self.softmax,
               "_log_softmax_backward_data": self.softmax_backward, "nll_loss_forward": self.nll_loss,
               "nll_loss_backward": self.nll_loss_backward, "embedding": self.embedding_of, "embedding_dense_backward": self.embedding_backward_of,
               "max_pool2d_with_indices_backward": self.pool_backward, "add": self.accumulated, "add_": self.accumulated}
        for name in ("gelu", "silu", "sigmoid", "tanh", "exp"):
            own[name] = self.activation
            if name != "exp":
                own[name + "_backward"] = self.activation_backward
        self.table.update({"aten::" + name: handler for name, handler in own.items()})

    # ---- results ----

    @property
    def layer(self) -> Any:
        """The functions of `_layer`, where the tensors are."""
        return self.core.home.layer

    def result(self, like: Any, format: Format, role: int) -> Any:
        out = torch.empty(like.shape, dtype=dtype_of(format), device=like.device)
        self.core.roles.put(out, role)
        return out

    @staticmethod
    def gradient(shape: Any, like: Any) -> Any:
        """A parameter's, or other numbers: float32; a gradient is rounded to its format by `stored`."""
        return torch.empty(shape, dtype=torch.float32, device=like.device)

    def stored(self, x: Any, format: Format) -> Any:
        x = self.core.rounded(x, format, keep=True)
        self.core.roles.put(x, GRAD)
        return x

    def pool_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        """Of windows that do not overlap each gradient goes to its place, a zero with its sign; torch adds it to +0."""
        dy, x, size, stride = args[:4]
        if any(s < k for s, k in zip(stride or size, size)) or any(d != 1 for d in args[5]):
            out = func(dy, x.to(dy.dtype), *args[2:], **kwargs)
        else:
            flat = torch.zeros(*x.shape[:-2], x.shape[-2] * x.shape[-1], dtype=dy.dtype, device=dy.device)
            flat.scatter_(-1, args[7].flatten(-2), dy.flatten(-2))
            out = torch.empty_like(x, dtype=dy.dtype).copy_(flat.view(x.shape))
        self.core.roles.put(out, GRAD)
        return out

    # ---- normalisation ----

    def layer_norm(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        x, shape, weight, bias, eps = args
        path = core.paths.here().path
        placement = self.placement(path, "norm")
        core.paths.mark(Marked(path, "norm"))
        y = self.result(x, placement.format["out"], core.roles.largest(given))
        rows = x.shape[: x.dim() - len(shape)]
        mean, inverse = self.gradient(rows.numel(), x), self.gradient(rows.numel(), x)
        flat = (rows.numel(), prod(shape))
        self.layer.layer_norm(y.view(flat), self.entered(x, placement).reshape(flat), self.flat(weight, placement), self.flat(bias, placement), mean=mean,
                         inverse=inverse, eps=eps, format=placement.format["out"])
        mean, inverse = (z.view(*rows, *([1] * len(shape))) for z in (mean, inverse))
        for z in (mean, inverse):
            core.roles.put(z, ACT)
        return y, mean, inverse

    def flat(self, x: Any, placement: Any) -> Any:
        return None if x is None else self.entered(x, placement).reshape(-1)

    def layer_norm_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        dy, x, shape, mean, inverse, weight, bias, wanted = args
        mark = core.paths.found()
        placement = self.placement(mark.path if mark is not None else "", "norm")
        format = placement.format
        rows = mean.numel()
        flat = (rows, prod(shape))
        dy, x, mean, inverse = self.entered(dy, placement).reshape(flat), self.entered(x, placement).reshape(flat), mean.reshape(-1), inverse.reshape(-1)
        dx = dw = db = None
        if wanted[0]:
            dx = self.result(args[1], format["dgrad"], GRAD)
            self.layer.norm_backward(dx.view(flat), dy, x, mean, inverse, self.flat(weight, placement), format=format["dgrad"])
        if wanted[1] or wanted[2]:
            n = x.shape[1]
            dw, db = (self.gradient(n, x) if w else None for w in wanted[1:])
            self.layer.norm_gradients(dw, db, dy, x, mean, inverse)
            dw, db = (None if z is None else self.stored(z, format["wgrad"]).view(tuple(shape)) for z in (dw, db))
        return dx, dw, db

    def batch_norm(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        x, weight, bias, running_mean, running_var, training, momentum, eps = args
        path = core.paths.here().path
        placement = self.placement(path, "batchnorm")
        core.paths.mark(Marked(path, "batchnorm"))
        y = torch.empty_like(x, dtype=dtype_of(placement.format["out"]))
        core.roles.put(y, core.roles.largest(given))
        entered, w, b = self.entered(x, placement), self.flat(weight, placement), self.flat(bias, placement)
        if not training:
            self.layer.batch_norm_inference(y, entered, running_mean, running_var, w, b, eps=eps, format=placement.format["out"])
            return y, self.gradient(0, x), self.gradient(0, x)
        mean, inverse = self.gradient(x.shape[1], x), self.gradient(x.shape[1], x)
        self.layer.batch_norm(y, entered, w, b, mean=mean, inverse=inverse, running_mean=running_mean, running_var=running_var, eps=eps,
                         momentum=momentum, format=placement.format["out"])
        return y, mean, inverse

    def batch_norm_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        dy, x, weight, running_mean, running_var, mean, inverse, training, eps, wanted = args
        mark = core.paths.found()
        path = mark.path if mark is not None else ""
        if not training:
            return self._backward("batchnorm")(func, given, args, kwargs)
        placement = self.placement(path, "batchnorm")
        format, n = placement.format, x.shape[1]
        dx = torch.empty_like(x, dtype=dtype_of(format["dgrad"])) if wanted[0] else None
        dw, db = (self.gradient(n, x) if w else None for w in wanted[1:])
        self.layer.batch_norm_backward(dx, dw, db, self.entered(dy, placement), self.entered(x, placement), mean, inverse, self.flat(weight, placement),
                                  format=format["dgrad"])
        if dx is not None:
            core.roles.put(dx, GRAD)
        return (dx, *(None if z is None else self.stored(z, format["wgrad"]) for z in (dw, db)))

    # ---- activations: in the format that comes ----

    @staticmethod
    def word(func: Any, args: Any, kwargs: Any) -> str:
        name = str(func._schema.name)[6:].removesuffix("_backward")
        approximate = kwargs.get("approximate", "none")
        return "gelu-tanh" if name == "gelu" and approximate == "tanh" else name

    def activation(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        x = args[0]
        y = torch.empty_like(x)
        self.layer.activate(self.word(func, args, kwargs), y, x)
        self.core.roles.put(y, self.core.roles.of(x))
        return y

    def activation_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        dy, x = args[:2]
        dx = torch.empty_like(x, dtype=dy.dtype)
        self.layer.activate_backward(self.word(func, args, kwargs), dx, dy, x)
        self.core.roles.put(dx, GRAD)
        return dx

    # ---- softmax and losses ----

    def softmax(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        """Softmax, or its logarithm: the logits of that are kept for a loss that may come, as softmax and cross-entropy are one operation then."""
        core = self.core
        x, dim = args[:2]
        log = func._schema.name in LOGARITHMS
        path, kind = core.paths.here().path, "loss" if log else "softmax"
        placement = self.placement(path, kind)
        core.paths.mark(Marked(path, kind))
        y = self.result(x, placement.format["out"], core.roles.of(x))
        entered = self.entered(x, placement)
        self.layer.softmax(y.movedim(dim, -1), entered.movedim(dim, -1), log=log, format=placement.format["out"])
        tag = core.roles.tag(y)
        if log and x.dim() == 2 and dim in (1, -1) and tag is not None:
            tag.extra = entered, path
        return y

    def softmax_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        dy, y, dim = args[:3]
        log = func._schema.name in LOGARITHMS
        tag, mark = core.roles.tag(dy), core.paths.found()
        if log and tag is not None and tag.extra is DONE:
            return dy
        placement = self.placement(mark.path if mark is not None else "", "loss" if log else "softmax")
        dx = self.result(y, placement.format["dgrad"], GRAD)
        self.layer.softmax_backward(dx.movedim(dim, -1), self.entered(dy, placement).movedim(dim, -1), y.movedim(dim, -1), log=log,
                               format=placement.format["dgrad"])
        return dx

    def logits(self, y: Any, weight: Any) -> Any:
        tag = self.core.roles.tag(y)
        return tag.extra if tag is not None and isinstance(tag.extra, tuple) and weight is None else None

    def nll_loss(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        y, target, weight, reduction, ignored = args
        kept = self.logits(y, weight)
        if kept is None or target.dim() != 1:
            return self._forward("loss")(func, given, args, kwargs)
        losses = self.gradient(target.shape, y)
        _, counted = self.layer.cross_entropy(kept[0], target, loss=losses, ignored=ignored)
        self.core.paths.mark(Marked(kept[1], "loss"))
        loss = losses
        if reduction == MEAN:
            loss = y.new_tensor(self.layer.mean(losses, counted) if counted else float("nan"), dtype=torch.float32)
        elif reduction == SUM:
            loss = y.new_tensor(self.layer.mean(losses, 1), dtype=torch.float32)
        total = y.new_tensor(float(counted), dtype=torch.float32)
        self.core.roles.put(loss, self.core.roles.of(y))
        self.core.roles.put(total, 0)
        return loss, total

    def nll_loss_backward(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        dy, y, target, weight, reduction, ignored, total = args
        kept = self.logits(y, weight)
        if kept is None or target.dim() != 1 or reduction not in (MEAN, SUM):
            return self._backward("loss")(func, given, args, kwargs)
        coefficient = float(dy) / (float(total) if reduction == MEAN else 1.0)
        placement = self.placement(kept[1], "loss")
        dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
        self.layer.cross_entropy(kept[0], target, dx=dx, coefficient=coefficient, ignored=ignored, format=placement.format["dgrad"])
        self.core.roles.put(dx, GRAD).extra = DONE
        return dx

    # ---- tables ----

    def embedding_of(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        table, index = args[:2]
        path = core.paths.here().path
        placement = self.placement(path, "embedding")
        core.paths.mark(Marked(path, "embedding"))
        format = placement.format["out"]
        y = torch.empty((*index.shape, table.shape[1]), dtype=dtype_of(format), device=table.device)
        self.layer.embedding(y, core.presented(table), index, format=format)
        core.roles.put(y, max(ACT, core.roles.of(table)))
        return y

    def embedding_backward_of(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        core = self.core
        dy, index, entries, padding, by_frequency = args
        mark = core.paths.found()
        placement = self.placement(mark.path if mark is not None else "", "embedding")
        if by_frequency:
            return self.embedding_backward(func, given, args, kwargs)
        table = torch.zeros((entries, dy.shape[-1]), dtype=torch.float32, device=dy.device)
        dy = self.entered(dy, placement)
        self.layer.embedding_backward(table, dy, index, ignored=padding if padding >= 0 else None)
        table = self.stored(table, placement.format["wgrad"])
        tag = core.roles.tag(table)
        tag.extra = dy, index, padding, placement.format["wgrad"]
        return table

    def accumulated(self, func: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        """A tied table: autograd adds its gradients. That of the look-up goes on from the other's sum, as `mpsim train` has it."""
        core = self.core
        tag = core.roles.tag(args[1]) if len(args) > 1 and isinstance(args[1], torch.Tensor) and args[1].dim() == 2 else None
        if tag is None or not isinstance(tag.extra, tuple) or len(tag.extra) != 4 or core.paths.node_name().endswith("AccumulateGrad"):
            return core.native(func, core.mode.operators[func], given, args, kwargs)
        dy, index, padding, format = tag.extra
        table = args[0].float().clone()
        self.layer.embedding_backward(table, dy, index, ignored=padding if padding >= 0 else None, added=True)
        table = self.stored(table, format)
        if func._schema.name == "aten::add_":
            return args[0].copy_(table)
        return table

    # ---- sums over rows ----

    def column_sums(self, x: Any) -> Any:
        sums = self.gradient(x.shape[-1], x)
        self.layer.column_sums(sums, x.float())
        return sums

    def period_sums(self, x: Any) -> Any:
        sums = self.gradient(x.shape[-2:], x)
        self.layer.period_sums(sums, x.float())
        return sums

    # ---- attention ----

    def causal(self, s: Any, format: Format, scale: float, causal: bool, mask: Any) -> tuple[Any, Any]:
        """P of scores in float32, and no logarithm of sums."""
        if mask is not None and mask.dtype != torch.bool:
            s, scale, mask = s * scale + mask.float(), 1.0, None
        p = torch.empty(s.shape, dtype=dtype_of(format), device=s.device)
        self.layer.softmax(p, s, scale=scale, length=s.shape[-2] if causal else 0, mask=mask, format=format)
        return p, torch.zeros(s.shape[:-1], device=s.device)

    def causal_backward(self, dp: Any, p: Any, format: Format, scale: float, causal: bool) -> Any:
        ds = torch.empty(p.shape, dtype=dtype_of(format), device=p.device)
        self.layer.softmax_backward(ds, dp, p, scale=scale, length=p.shape[-2] if causal else 0, format=format)
        return ds
