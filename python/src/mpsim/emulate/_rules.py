"""Which rule of lib/optim an optimizer's class is, and with which numbers."""
from __future__ import annotations

import inspect
from typing import Any, Callable, NamedTuple, Optional

import torch

from .._optim import COptim


class Rule(NamedTuple):
    """algorithm: of mpsim_optim_name, or "muon". states: moments in few bits that the class has. variant: the implementation, where it is
    no choice of flags. refused: settings that the library does not have, by name, with the only value that it takes."""

    algorithm: str
    states: Optional[str] = None
    variant: Optional[str] = None
    store: Optional[Callable[[dict[str, Any]], Optional[str]]] = None
    refused: tuple[tuple[str, Any], ...] = ()


def _stochastic(group: dict[str, Any]) -> Optional[str]:
    return "stochastic" if group.get("bf16_stochastic_round") else None


_LION = Rule("lion", variant="lion-pytorch", refused=(("cautious_factor", 1.0), ("decoupled_weight_decay", False), ("use_triton", False)))
_TORCH = (("differentiable", False),)
RULES: dict[str, Rule] = {
    "torch.optim.sgd.SGD": Rule("sgd", refused=_TORCH),
    "torch.optim.adam.Adam": Rule("adam", refused=_TORCH),
    "torch.optim.adamw.AdamW": Rule("adamw", refused=_TORCH),
    **{f"torch.optim{module}.Adafactor": Rule("adafactor") for module in ("", "._adafactor")},
    **{f"torch.optim{module}.Muon": Rule("muon") for module in ("", "._muon")},
    "lion_pytorch.lion_pytorch.Lion": _LION,
    "bitsandbytes.optim.adam.Adam8bit": Rule("adam", states="bitsandbytes-8bit"),
    "bitsandbytes.optim.adamw.AdamW8bit": Rule("adamw", states="bitsandbytes-8bit"),
    **{f"torchao.optim.adam.{name}": Rule(algorithm, states=states, variant="torchao", store=_stochastic)
       for kind, algorithm in (("Adam", "adam"), ("AdamW", "adamw"))
       for name, states in ((kind + "8bit", "torchao-8bit"), (kind + "4bit", "torchao-4bit"), (kind + "Fp8", "torchao-fp8"), ("_" + kind, None))},
}


def algorithm_of(rule: Rule, group: dict[str, Any]) -> str:
    """Of a group: torch's Adam may decouple the decay."""
    return "adamw" if rule.algorithm == "adam" and group.get("decoupled_weight_decay") else rule.algorithm


def _step_of(kind: Any) -> Any:
    return inspect.unwrap(kind.step)


def rule_of(optimizer: Any) -> Optional[Rule]:
    """The rule of an optimizer's class; None: the library has none. A class with a step of its own is not what it derives from. One that says
    which rule its step is has it as `mpsim_algorithm`."""
    said = getattr(type(optimizer), "mpsim_algorithm", None)
    if said is not None:
        return _LION if said == "lion" else Rule(said)
    for kind in type(optimizer).__mro__:
        rule = RULES.get(f"{kind.__module__}.{kind.__qualname__}")
        if rule is not None:
            return rule if _step_of(kind) is _step_of(type(optimizer)) else None
    return None


def name_of(optimizer: Any) -> str:
    kind = type(optimizer)
    return f"{kind.__module__}.{kind.__qualname__}"


def unsupported(rule: Rule, group: dict[str, Any]) -> Optional[str]:
    """A setting of a group that the library does not have, as a line; None: all are there."""
    for name, only in rule.refused:
        if name in group and group[name] != only and not (group[name] is None and not only):
            return f"{name}={group[name]!r} is not emulated, expected {only!r}"
    return None


def implied_variant(rule: Rule, group: dict[str, Any], on_cpu: bool) -> Optional[str]:
    """The variant that a group's flags name, where its caller has set one; None: they leave it open."""
    if rule.variant:
        return rule.variant
    fused, foreach, capturable = (group.get(name) for name in ("fused", "foreach", "capturable"))
    if rule.algorithm == "adafactor" and foreach is False and on_cpu:
        return "torch-cpu-adafactor"
    if rule.algorithm not in ("sgd", "adam", "adamw"):
        return None
    if fused:
        return "torch-fused-cpu" if on_cpu else "torch-fused-c"
    if on_cpu:
        return {True: "torch-cpu-foreach", False: "torch-cpu"}.get(foreach)  # type: ignore[arg-type]
    if capturable:
        return "torch-capturable" if foreach is False else "torch-foreach-capturable"
    return {True: "torch-foreach", False: "torch"}.get(foreach)  # type: ignore[arg-type]


def _number(x: Any) -> float:
    return float(x.item() if isinstance(x, torch.Tensor) else x)


def set_numbers(c: COptim, group: dict[str, Any]) -> None:
    """The numbers and flags of a parameter group, as torch spells them, as settings of the library."""
    for name in ("lr", "momentum", "dampening", "weight_decay", "beta2_decay", "d"):
        if group.get(name) is not None:
            setattr(c, name, _number(group[name]))
    for name in ("nesterov", "amsgrad", "maximize"):
        if name in group:
            setattr(c, name, bool(group[name]))
    betas, eps = group.get("betas"), group.get("eps")
    if betas is not None:
        c.beta1, c.beta2 = map(_number, betas)
        c.float_powers = any(isinstance(b, torch.Tensor) for b in betas)
    if isinstance(eps, tuple):  # Adafactor's two
        if eps[0] is not None:
            c.eps = _number(eps[0])
        c.eps2 = _number(eps[1])
    elif eps is not None:
        c.eps = _number(eps)


def numbers_of(group: dict[str, Any]) -> tuple[Any, ...]:
    """What decides the settings of a group, to see whether they are the same."""
    return tuple((k, _plain(v)) for k, v in group.items() if k != "params")


def _plain(v: Any) -> Any:
    return tuple(map(_plain, v)) if isinstance(v, (tuple, list)) else _number(v) if isinstance(v, torch.Tensor) and v.numel() == 1 else v


# names of the arrays in an optimizer's own state: torch's, so that its state_dict has them
STATES: dict[str, tuple[str, str, str]] = {
    "sgd": ("momentum_buffer", "", ""), "adam": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"), "adamw": ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
    "lion": ("exp_avg", "", ""), "adafactor": ("row_var", "col_var", ""), "muon": ("momentum_buffer", "", "")}
KAHAN = "kahan_comp"  # as optimi has it
