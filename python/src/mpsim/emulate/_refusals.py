"""What is refused by name: ways to run a model in which products would not be seen, or not be what they seem.

Some are seen in the model itself, when an emulation begins; others where torch enters them, whose functions are replaced for the time.
"""
from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Iterator

Undo = Callable[[], None]
PARALLEL = "parallel training is not emulated yet"
COMPILED = "a compiled function, whose products would not be seen; call it uncompiled"
# classes of modules, or of what modules inherit from
CLASSES = {"DistributedDataParallel": PARALLEL, "DataParallel": PARALLEL, "FullyShardedDataParallel": PARALLEL, "FSDPModule": PARALLEL,
           "OptimizedModule": COMPILED}
# where torch enters a transformation: module, function that enters, function that leaves, what users call it
TRANSFORMATIONS = (
    ("torch._functorch.vmap", "_vmap_increment_nesting", "_vmap_decrement_nesting", "vmap"),
    ("torch._functorch.eager_transforms", "_grad_increment_nesting", "_grad_decrement_nesting", "torch.func.grad"),
    ("torch._functorch.eager_transforms", "_jvp_increment_nesting", "_jvp_decrement_nesting", "torch.func.jvp"),
    ("torch.autograd.forward_ad", "enter_dual_level", "exit_dual_level", "forward-mode differentiation"))


def class_refused(module: Any) -> tuple[str, str]:
    """The name of a class that is refused, and why; empty strings where none is."""
    for each in type(module).__mro__:
        if each.__name__ in CLASSES and each.__module__.startswith("torch."):
            name = "torch.compile" if each.__name__ == "OptimizedModule" else each.__name__
            return name, CLASSES[each.__name__]
    if getattr(module, "_compiled_call_impl", None) is not None:
        return "torch.compile", COMPILED
    return "", ""


def in_model(model: Any) -> Iterator[tuple[str, str, str]]:
    """What of a model is refused: the name of the class, the path of the module, why."""
    for path, module in model.named_modules():
        name, why = class_refused(module)
        if name:
            yield name, path, why
    for path, p in model.named_parameters():
        if type(p.data).__name__ == "DTensor":
            yield "DTensor", path, PARALLEL


def watch(core: Any) -> list[Undo]:
    """Replace what enters transformations and compiled functions; what undoes it. `core.within` has the names of transformations that
    are entered: a product inside of one is refused where it is computed, as torch's own code uses vmap for masks."""
    core.thread, core.within = threading.get_ident(), []
    undo = []
    for place, enter, leave, name in TRANSFORMATIONS:
        undo += _bracketed(core, place, enter, leave, name)
    return undo + _compiled(core)


def _bracketed(core: Any, place: str, enter: str, leave: str, name: str) -> list[Undo]:
    """Note that a transformation is entered and left."""
    import importlib

    module = importlib.import_module(place)
    first, last = getattr(module, enter, None), getattr(module, leave, None)
    if first is None or last is None:
        return []

    def entered(*args: Any, **kwargs: Any) -> Any:
        core.within.append(name)
        return first(*args, **kwargs)

    def left(*args: Any, **kwargs: Any) -> Any:
        if core.within:
            core.within.pop()
        return last(*args, **kwargs)

    setattr(module, enter, entered)
    setattr(module, leave, left)
    return [lambda: setattr(module, enter, first), lambda: setattr(module, leave, last)]


def _compiling() -> str:
    """What compiles: flex_attention compiles itself."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "flex_attention":
            return "flex_attention"
        frame = frame.f_back  # type: ignore[assignment]
    return "torch.compile"


def _compiled(core: Any) -> list[Undo]:
    """A function that torch.compile has made asks for its callback when it is called: that is refused. Functions that are only kept
    from being compiled ask, too, for none."""
    import torch._dynamo.eval_frame as frames

    asked = getattr(frames, "_callback_from_stance", None)
    if asked is None:
        return []

    def callback_from_stance(callback: Any, *args: Any) -> Any:
        if callback not in (None, False) and threading.get_ident() == core.thread:
            raise core.refused(_compiling(), COMPILED)
        return asked(callback, *args)

    frames._callback_from_stance = callback_from_stance
    return [lambda: setattr(frames, "_callback_from_stance", asked)]
