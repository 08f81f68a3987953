"""Recorded operations of torch as questions for the judge (mpsim/judge.h): the kind, the arrays by their roles, the row that the arguments say."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import torch

from ._stand import PRODUCTS, Op, Slot, Value

NUMBERS = (torch.float32, torch.bfloat16, torch.float16)
NARROW = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float8_e4m3fn: "e4m3@pytorch", torch.float8_e5m2: "e5m2@pytorch"}
ACTIVATIONS = {"gelu": "gelu", "silu": "silu", "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp"}


SETTINGS = (("lr", "lr"), ("beta1", "beta1"), ("beta2", "beta2"), ("eps", "eps"), ("weight_decay", "weight_decay"))


class Asked(NamedTuple):
    """arrays: what enters; results: what came out; like: the row of the arguments, None: any of the kind."""

    kind: str
    arrays: dict[str, Value]
    results: dict[str, Value]
    like: Optional[str] = None

    @property
    def kept(self) -> bool:
        return all(v.tensor is not None for v in (*self.arrays.values(), *self.results.values()))


def value(op: Op, x: Any) -> Optional[Value]:
    return op.inputs[x.n] if isinstance(x, Slot) else None


def argument(op: Op, i: int, name: str, default: Any = None) -> Any:
    return op.args[i] if i < len(op.args) else op.kwargs.get(name, default)


def _product(op: Op) -> Optional[Asked]:
    left, right = PRODUCTS[op.name]
    arrays = {"a": value(op, op.args[left]), "b": value(op, op.args[right])}
    if op.kwargs.get("alpha", 1) != 1 or left and op.kwargs.get("beta", 1) != 1:
        return None
    if left:
        added = value(op, op.args[0])
        if added is None or added.shape not in (op.outputs[0].shape, op.outputs[0].shape[-1:]):
            return None
        arrays["c" if added.shape == op.outputs[0].shape else "bias"] = added
    return _asked("product", arrays, {"d": op.outputs[0]})


def _softmax(op: Op) -> Optional[Asked]:
    x = value(op, op.args[0])
    if x is None or op.args[1] not in (-1, len(x.shape) - 1):
        return None
    return _asked("softmax", {"x": x}, {"y": op.outputs[0]}, "log-softmax" if "log" in op.name else "softmax")


def _norm(op: Op) -> Optional[Asked]:
    x, shape = value(op, op.args[0]), op.args[1]
    eps = argument(op, 4 if op.name == "native_layer_norm" else 3, "eps")
    if x is None or not isinstance(eps, float) or list(shape) != list(x.shape[-1:]):
        return None
    arrays = {"x": x, "weight": value(op, argument(op, 2, "weight")), "bias": value(op, argument(op, 3, "bias")) if op.name == "native_layer_norm" else None}
    word = "layernorm" if op.name == "native_layer_norm" else "rmsnorm"
    return _asked("norm", arrays, {"y": op.outputs[0]}, f"{word}:eps={eps!r}")


def _activation(op: Op) -> Optional[Asked]:
    row = ACTIVATIONS[op.name] + ("-tanh" if op.kwargs.get("approximate") == "tanh" else "")
    return _asked("activation", {"x": value(op, op.args[0])}, {"y": op.outputs[0]}, row)


def _sum(op: Op) -> Optional[Asked]:
    x, dims = value(op, op.args[0]), argument(op, 1, "dim")
    dims = [dims] if isinstance(dims, int) else dims
    if x is None or dims is not None and [d % max(len(x.shape), 1) for d in dims] != [len(x.shape) - 1]:
        return None
    return _asked("sum", {"x": x}, {"y": op.outputs[0]})


def _cast(op: Op) -> Optional[Asked]:
    x, y = value(op, op.args[0]), op.outputs[0]
    row = NARROW.get(y.dtype)
    return _asked("cast", {"x": x}, {"y": y}, row) if row and x is not None and x.dtype != y.dtype else None


def _asked(kind: str, arrays: dict[str, Optional[Value]], results: dict[str, Optional[Value]], like: Optional[str] = None) -> Optional[Asked]:
    given = {role: v for role, v in arrays.items() if v is not None}
    made = {role: v for role, v in results.items() if v is not None}
    results_of = NUMBERS if kind != "cast" else tuple(NARROW)
    if len(given) < 1 or any(v.dtype not in NUMBERS or 0 in v.shape or not v.shape for v in given.values()):
        return None
    return Asked(kind, given, made, like) if len(made) == len(results) and all(v.dtype in results_of for v in made.values()) else None


KINDS: dict[str, Callable[[Op], Optional[Asked]]] = {
    **{name: _product for name in PRODUCTS}, "_softmax": _softmax, "_log_softmax": _softmax, "native_layer_norm": _norm, "_fused_rms_norm": _norm,
    **{name: _activation for name in ACTIVATIONS}, "sum": _sum, "mean": _sum, "_to_copy": _cast}


def _step(op: Op) -> list[Asked]:
    """A fused step of an optimizer: a question for each parameter."""
    algorithm = {"_fused_adamw": "adamw", "_fused_adam": "adam"}[op.name]
    lists, words = op.args[:6], op.kwargs
    params, grads, m, v, vmax, steps = ([value(op, x) for x in xs] for xs in lists)
    asked = []
    for i, p in enumerate(params):
        counted = steps[i]
        step = None if counted is None else counted.tensor  # counted before the step
        new = [next((v for k, v in zip(op.written, op.outputs) if k == x.n), None) for x in (lists[0][i], lists[2][i], lists[3][i])]
        if step is None or words.get("maximize") or words.get("amsgrad") or any(n is None for n in new) or words.get("grad_scale") is not None:
            return []
        row = algorithm + "".join(f":{name}={words[key]!r}" for name, key in SETTINGS) + f":step={int(step)}"
        one = _asked("update", {"param": p, "grad": grads[i], "m": m[i], "v": v[i]}, {"new_param": new[0], "new_m": new[1], "new_v": new[2]}, row)
        asked += [one] if one else []
    return asked if len(asked) == len(params) else []


def asked(op: Op) -> list[Asked]:
    """The questions of an operation; none: the judge has no kind for it."""
    if op.name in ("_fused_adamw", "_fused_adam"):
        return _step(op)
    if op.name not in KINDS or not op.outputs:
        return []
    one = KINDS[op.name](op)
    return [one] if one else []
