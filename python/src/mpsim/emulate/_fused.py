"""Modules that are computed as one operation of mpsim, forward and backward: RMSNorm, SwiGLU.

`fused={"layers.*.mlp.act": "swiglu"}` names them by path; every torch.nn.RMSNorm is one. They are for between="mpsim".
"""
from __future__ import annotations

import fnmatch
from typing import Any, Callable, Mapping

import torch

from .._error import InputError, unknown
from ._products import dtype_of
from ._roles import ACT, GRAD


class RmsNorm(torch.autograd.Function):
    """y = RMSNorm of the rows of x, times a weight."""

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, eps: float, core: Any, path: str) -> Any:
        placement = core.plans.place_kind(path, "norm")
        between = core.between
        entered, w = between.entered(x, placement), between.flat(weight, placement)
        y = between.result(x, placement.format["out"], core.roles.largest([x]))
        inverse = torch.empty(x.shape[:-1], device=x.device)
        core.home.layer.rms_norm(y, entered, w, inverse=inverse, eps=eps, format=placement.format["out"])
        ctx.save_for_backward(entered, inverse)
        ctx.of = core, placement, w, x.dtype
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        entered, inverse = ctx.saved_tensors
        core, placement, w, dtype = ctx.of
        between, format = core.between, placement.format
        dy = between.entered(dy, placement)
        dx = torch.empty(entered.shape, dtype=dtype_of(format["dgrad"]), device=dy.device)
        core.home.layer.norm_backward(dx, dy, entered, None, inverse, w, kind="rms", format=format["dgrad"])
        core.roles.put(dx, GRAD)
        dw = None
        if w is not None:
            dw = torch.empty(w.shape, device=dy.device)
            core.home.layer.norm_gradients(dw, None, dy, entered, None, inverse, kind="rms")
            dw = between.stored(dw, format["wgrad"])
        return dx, dw, None, None, None


class Swiglu(torch.autograd.Function):
    """y = gate sigmoid(gate) value, of rows that are gates, then values: one rounding, in the format that comes."""

    @staticmethod
    def forward(ctx: Any, x: Any, core: Any) -> Any:
        n = x.shape[-1] // 2
        y = torch.empty((*x.shape[:-1], n), dtype=x.dtype, device=x.device)
        core.home.layer.activate("swiglu", y, x[..., :n], x[..., n:])
        core.roles.put(y, core.roles.of(x))
        ctx.save_for_backward(x)
        ctx.core = core
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        (x,) = ctx.saved_tensors
        n = x.shape[-1] // 2
        dx = torch.empty(x.shape, dtype=dy.dtype, device=dy.device)
        ctx.core.home.layer.activate_backward("swiglu", dx[..., :n], dy, x[..., :n], x[..., n:], dx[..., n:])
        ctx.core.roles.put(dx, GRAD)
        return dx, None


def rms_norm(core: Any, module: Any, path: str) -> Callable[..., Any]:
    eps = getattr(module, "eps", None)
    if eps is None:
        eps = getattr(module, "variance_epsilon", None)
    eps = torch.finfo(torch.float32).eps if eps is None else float(eps)
    return lambda x: RmsNorm.apply(x, getattr(module, "weight", None), eps, core, path)


def swiglu(core: Any, module: Any, path: str) -> Callable[..., Any]:
    return lambda x: Swiglu.apply(x, core)


FORMS: dict[str, Callable[..., Callable[..., Any]]] = {"rms_norm": rms_norm, "swiglu": swiglu}


def fuse(core: Any, fused: Mapping[str, str]) -> list[Callable[[], None]]:
    """Replaces what modules do; what is returned undoes that."""
    undo: list[Callable[[], None]] = []
    classes = getattr(torch.nn, "RMSNorm", ())
    wanted = {path: "rms_norm" for path, module in core.paths.modules.items() if classes and isinstance(module, classes)}
    for pattern, form in fused.items():
        if form not in FORMS:
            raise unknown("fused operation", form, FORMS)
        paths = [path for path in core.paths.modules if fnmatch.fnmatchcase(path, pattern)]
        if not paths:
            raise InputError(f"fused: '{pattern}' fits no module")
        wanted.update(dict.fromkeys(paths, form))
    for path, form in wanted.items():
        module = core.paths.modules[path]
        if "forward" in module.__dict__:
            raise InputError(f"fused: module '{path}' has a forward of its own, which would be lost")
        module.forward = FORMS[form](core, module, path)
        undo.append(lambda module=module: module.__dict__.pop("forward"))  # type: ignore[misc]
    return undo
