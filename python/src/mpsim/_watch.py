"""mpsim.watch: what it is given is judged here, before torch is loaded; `_watching` does the work."""
from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Callable, Literal, Optional, Sequence, Union

from ._cast import plan_of
from ._error import Error, InputError, whole_of
from ._inspect import inspected
from ._statistics import Targets

if TYPE_CHECKING:
    import torch

    from ._watching import Watch

Kind = Literal["weight", "wgrad", "act", "agrad", "out", "dgrad", "opt"]
KINDS: tuple[Kind, ...] = ("weight", "wgrad", "act", "agrad")
ALL_KINDS = (*KINDS, "out", "dgrad", "opt")  # opt: opt.m, opt.v, opt.vmax


def listed(value: Any, name: str) -> list[Any]:
    """A name, or several."""
    try:
        return [value] if isinstance(value, str) else list(value)
    except TypeError:
        raise InputError(f"watch: {name}: expected a name or a list of names, found {type(value).__name__}") from None


def pattern_of(modules: Any) -> str:
    try:
        pattern = re.compile(modules)
        pattern.match("")  # one of bytes matches no name
        return pattern.pattern  # type: ignore[no-any-return]
    except (re.error, TypeError) as error:
        raise InputError(f"watch: modules: expected a regular expression, found {modules!r}: {error}") from None


def judge(model: Any, optimizer: Any, scaler: Any, log: Any) -> None:
    """What is watched, and by what."""
    import torch
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"watch: expected a torch.nn.Module, found {type(model).__name__}")
    if not all(hasattr(o, "step") for o in (optimizer if isinstance(optimizer, (list, tuple)) else [optimizer])):
        raise InputError(f"watch: expected an optimizer or a list of them, found {type(optimizer).__name__}")
    if scaler is not None and not hasattr(scaler, "get_scale"):
        raise InputError(f"watch: scaler: expected a GradScaler, found {type(scaler).__name__}")
    if log is not None and not callable(log):
        raise InputError(f"watch: log: expected a function, found {type(log).__name__}")


def watch(model: torch.nn.Module, optimizer: Any, every: int = 100, formats: Union[str, Sequence[str]] = ("fp16",),
          scales: Any = (1,), recipes: Union[str, Sequence[str]] = (), out: Union[str, "os.PathLike[str]", None] = None, *,
          kinds: Union[Kind, Sequence[Kind]] = KINDS, modules: str = ".*", scaler: Any = None,
          log: Optional[Callable[[dict[str, Any]], Any]] = None, updates: Union[str, Sequence[str]] = ("bf16",), start: int = 1,
          stop: Optional[int] = None, gather: bool = False, inspect: Optional[dict[str, Any]] = None) -> Watch:
    """Watch a PyTorch training: statistics of its tensors where they lie, as `mpsim stat` counts them.

    model, optimizer: as they are trained; a list of several optimizers.
    every: the first step and each whose number this divides are watched.
    formats, scales, recipes: what tensors are cast to, as of `stat`; scales multiply gradients as they are, with the GradScaler's
        scale in them, which `advice` takes into account.
    out: a file of JSON lines, the records of `mpsim stat --ndjson` and "update", "scaler" and "note" beside; None: none. A
        file that has content is refused: a run that goes on writes another.
    kinds: of "weight", "wgrad", "act", "agrad", "out", "dgrad", "opt". modules: a regular expression on their names.
    scaler: the GradScaler; found by itself where it scales the loss.
    log: called after each watched step with numbers by name, as {"mpsim/agrad/fc1/underflow/fp16": 0.02, "step": 100}.
    updates: formats; what share of the movements of binary32 weights these would lose.
    start: the number of the first step. stop: of the last. gather: sharded parameters (DTensor) are gathered.
    inspect: a section of an nvdlfw-inspect file as a dict, instead of kinds, modules and every: the steps that it says.

    Gradients are those before unscaling and clipping, as the last backward() has left them. Training changes by no bit.
    Passes in evaluation or under no_grad, and those of copies of the model (an EMA), are not watched. Of several optimizers that take
    turns unevenly, a step is watched only if none of them is pending when it begins.
    Tensors on a CUDA device are counted there if libmpsim-cuda is found (MPSIM_CUDA names it), else copied to memory, as
    are binary64 tensors and all of them under recipes. What cannot be watched (modules inside torch.compile, parameters of FSDP1)
    is named, in a warning and in the file. So are calls that a CUDA graph captures, and their number: replays run no hooks.

    >>> model = torch.nn.Linear(4, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with mpsim.watch(model, optimizer, every=1, formats=["fp16"], kinds=["wgrad"]) as w:
    ...     loss = (model(torch.ones(3, 4)) * 1e-7).sum(); loss.backward(); optimizer.step()
    >>> w.kinds_seen()["wgrad"]["formats"][0]["subnormal"]
    10
    """
    spans = None
    if inspect is not None:
        given = inspected(inspect)
        modules, kinds, every, spans = (given[k] for k in ("modules", "kinds", "every", "spans"))
    every, start = whole_of(every, "watch: every", 1), whole_of(start, "watch: start", 0)
    stop = None if stop is None else whole_of(stop, "watch: stop", 0)
    chosen, modules = listed(kinds, "kinds"), pattern_of(modules)
    for kind in chosen:
        if kind not in ALL_KINDS:
            raise InputError(f"watch: expected kinds of {', '.join(ALL_KINDS)}, found {kind!r}")
    lost = listed(updates, "updates")
    for name in lost:
        plan_of(name, None, 1.0, None, None, False, False, "binary32")
    try:
        import torch

        from ._watching import Watch
    except ImportError as error:
        raise Error(f"watch: needs PyTorch from 1.13 on: {error}") from None
    judge(model, optimizer, scaler, log)
    targets = Targets(listed(formats, "formats"), list(scales) if isinstance(scales, (list, tuple)) else scales,
                      listed(recipes, "recipes"))
    targets.parallel(torch.get_num_threads())
    return Watch(model, optimizer, every, targets, out, chosen, modules, scaler, log, lost, start, stop, gather, spans)
