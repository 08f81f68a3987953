"""Recorded operations of torch as questions for the judge (mpsim/judge.h): the kind, the arrays by their roles, the row that the arguments say."""
from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple, Optional

import torch

from ._stand import PRODUCTS, Op, Slot, Value

DERIVED = ""  # the digest of an array that was not recorded as it is: a number for each result, another shape

NUMBERS = (torch.float32, torch.bfloat16, torch.float16)
NARROW = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float8_e4m3fn: "e4m3@pytorch", torch.float8_e5m2: "e5m2@pytorch"}
CASTS = {**NARROW, torch.float32: "binary32:nan=cut"}
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


def argument(op: Op, name: str, default: Any = None) -> Any:
    """An argument by its name in the operation's schema."""
    names = [a.name for a in op.func._schema.arguments]
    i = names.index(name) if name in names else len(op.args)
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
    eps = argument(op, "eps")
    if x is None or not isinstance(eps, float) or list(shape) != list(x.shape[-1:]):
        return None
    arrays = {"x": x, "weight": value(op, argument(op, "weight")), "bias": value(op, argument(op, "bias"))}
    word = "layernorm" if op.name == "native_layer_norm" else "rmsnorm"
    return _asked("norm", arrays, {"y": op.outputs[0]}, f"{word}:eps={eps!r}")


def _activation(op: Op) -> Optional[Asked]:
    row = ACTIVATIONS[op.name] + ("-tanh" if op.kwargs.get("approximate") == "tanh" else "")
    return _asked("activation", {"x": value(op, op.args[0])}, {"y": op.outputs[0]}, row)


def derived(t: Any) -> Value:
    return Value(DERIVED, t.dtype, tuple(t.shape), t)


def reshaped(v: Value, *shape: int) -> Value:
    return v if v.shape == shape or v.tensor is None else derived(v.tensor.reshape(shape))


def _sum(op: Op) -> Optional[Asked]:
    """Sums over the last dimension, over all but the last, and over all."""
    x, dims = value(op, op.args[0]), argument(op, "dim")
    if x is None or not x.shape or isinstance(dims, torch.dtype):
        return None
    n = len(x.shape)
    over = sorted(d % n for d in ([dims] if isinstance(dims, int) else dims or range(n)))
    y, last = op.outputs[0], x.shape[-1]
    if over == list(range(n)) and n > 1:
        return _asked("sum", {"x": reshaped(x, 1, -1)}, {"y": reshaped(y, 1)})
    if over == [n - 1]:
        return _asked("sum", {"x": x}, {"y": reshaped(y, *x.shape[:-1]) if n > 1 else reshaped(y, 1)})
    return _asked("sum", {"x": reshaped(x, -1, last)}, {"y": reshaped(y, 1, last)}) if over == list(range(n - 1)) else None


def _cast(op: Op) -> Optional[Asked]:
    x, y = value(op, op.args[0]), op.outputs[0]
    row = CASTS.get(y.dtype)
    return _asked("cast", {"x": x}, {"y": y}, row) if row and x is not None and x.dtype != y.dtype else None


# ---- arithmetic ----

ARITH = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "sqrt": "sqrt"}


def _spread(op: Op, x: Any, y: Value) -> Optional[Value]:
    """An operand: a tensor, or a number, for each result. Numbers are of binary32, as torch computes with them."""
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return derived(torch.full(y.shape, float(x), dtype=torch.float32))
    v = value(op, x)
    if v is None or v.shape == y.shape or v.tensor is None:
        return v
    try:
        return derived(v.tensor.expand(y.shape).contiguous())
    except RuntimeError:
        return None


def _terms(op: Op, row: str, terms: list[Any], y: Value) -> Optional[Asked]:
    given = [_spread(op, x, y) for x in terms]
    return None if None in given else _asked("arith", dict(zip("abc", given)), {"y": y}, row)


def _arith(op: Op) -> Optional[Asked]:
    args, y = list(op.args), op.outputs[0]
    if op.name == "pow":
        return _terms(op, "mul", [args[0], args[0]], y) if args[1] == 2 else None
    if op.name == "addcmul":
        return _terms(op, "fma", [args[1], args[2], args[0]], y) if op.kwargs.get("value", 1) == 1 else None
    if op.kwargs.get("alpha", 1) != 1 or op.kwargs.get("rounding_mode") is not None:
        return None
    return _terms(op, ARITH[op.name], args[:1 if op.name == "sqrt" else 2], y)


def _each(op: Op) -> list[Asked]:
    """Arithmetic of lists: a question for each tensor."""
    name = op.name[len("_foreach_"):]
    lists = [x if isinstance(x, (list, tuple)) else [x] * len(op.args[0]) for x in op.args[:1 if name == "sqrt" else 2]]
    if op.kwargs or len(op.args) > 2 or len(op.outputs) != len(lists[0]):
        return []
    asked = [_terms(op, ARITH[name], list(terms), y) for terms, y in zip(zip(*lists), op.outputs)]
    return [one for one in asked if one] if all(asked) else []


# ---- attention, products of FP8 ----

MOST_SCORES = 1 << 22  # of an attention that is judged
MOST_KEYS = 1 << 22  # scores of an attention that are judged

def _attention(op: Op) -> Optional[Asked]:
    """Shapes are [batch, heads, tokens, size]; a mask is of bytes, or of numbers 0 and -inf. Kernels round P to the format of V."""
    q, k, v = (value(op, x) for x in op.args[:3])
    mask = value(op, argument(op, "attn_mask", argument(op, "attn_bias")))
    if any(x is None or len(x.shape) != 4 or x.dtype not in NUMBERS for x in (q, k, v)):
        return None
    assert q is not None and k is not None and v is not None
    scale, scores = argument(op, "scale"), q.shape[0] * q.shape[1] * q.shape[2] * k.shape[2]
    if scores > MOST_SCORES or argument(op, "dropout_p", 0.0) or q.shape[:1] != k.shape[:1]:
        return None
    words = (f":p={NARROW.get(q.dtype)}" * (q.dtype in NARROW), ":causal-first" * bool(argument(op, "is_causal", False)), f":scale={scale!r}" * (scale is not None))
    row = "flash" + "".join(words)
    heads = torch.tensor([q.shape[0] * q.shape[1], k.shape[0] * k.shape[1], q.shape[0]], dtype=torch.float32)
    arrays: dict[str, Optional[Value]] = {"q": q, "k": k, "v": v, "heads": derived(heads)}
    if mask is not None:
        seen = None if mask.tensor is None else mask.tensor if mask.dtype == torch.bool else mask.tensor == 0
        if seen is None or mask.dtype != torch.bool and not bool((seen | (mask.tensor == -torch.inf)).all()):
            return None
        arrays["mask"] = derived(seen.expand(*q.shape[:3], k.shape[2]).to(torch.uint8).contiguous())
        return Asked("attention", {r: x for r, x in arrays.items() if x is not None}, {"o": op.outputs[0]}, row)
    return _asked("attention", arrays, {"o": op.outputs[0]}, row)


def _scaled(op: Op) -> Optional[Asked]:
    """A product of FP8 whose scales are one number, or one of each line."""
    given = {"a": value(op, op.args[0]), "b": value(op, op.args[1]), **{name: value(op, argument(op, name)) for name in ("scale_a", "scale_b", "bias")}}
    arrays = {name: v for name, v in given.items() if v is not None}
    if argument(op, "scale_result") is not None or len(arrays) < 4 or any(arrays[n].dtype not in (torch.float8_e4m3fn, torch.float8_e5m2) for n in "ab"):
        return None
    for name in ("scale_a", "scale_b"):
        v = arrays[name]
        n = math.prod(v.shape)
        if v.dtype != torch.float32 or n not in (1, op.outputs[0].shape[0 if name == "scale_a" else 1]):
            return None
        arrays[name] = reshaped(v, n)
    return Asked("scaled-product", arrays, {"d": op.outputs[0]})


# ---- all ----


def _asked(kind: str, arrays: dict[str, Optional[Value]], results: dict[str, Optional[Value]], like: Optional[str] = None) -> Optional[Asked]:
    given = {role: v for role, v in arrays.items() if v is not None}
    made = {role: v for role, v in results.items() if v is not None}
    results_of = NUMBERS if kind != "cast" else tuple(CASTS)
    if len(given) < 1 or any(v.dtype not in NUMBERS or 0 in v.shape or not v.shape for v in given.values()):
        return None
    return Asked(kind, given, made, like) if len(made) == len(results) and all(v.dtype in results_of for v in made.values()) else None


KINDS: dict[str, Callable[[Op], Optional[Asked]]] = {
    **{name: _product for name in PRODUCTS}, "_softmax": _softmax, "_log_softmax": _softmax, "native_layer_norm": _norm, "_fused_rms_norm": _norm,
    **{name: _activation for name in ACTIVATIONS}, "sum": _sum, "mean": _sum, "_to_copy": _cast,
    **{name: _arith for name in (*ARITH, "pow", "addcmul")}, "_scaled_mm": _scaled,
    **{f"_scaled_dot_product_{name}": _attention for name in (
        "flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention", "fused_attention_overrideable")}}


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
    if op.name.startswith("_foreach_") and op.name[len("_foreach_"):] in ARITH:
        return _each(op)
    if op.name not in KINDS or not op.outputs:
        return []
    one = KINDS[op.name](op)
    return [one] if one else []
