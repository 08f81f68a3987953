"""A step that leaves nothing behind: what the model, its gradients and the generators of random numbers hold is put back."""
from __future__ import annotations

import contextlib
import inspect
import random
from typing import Any, Callable, Iterator, Mapping, Optional

import numpy
import torch

from .._error import InputError

class NoLoss(InputError):
    """A step has no loss to begin its gradients with."""


PLAIN = (bool, int, float, str, type(None))


class Kept:
    """What a model holds."""

    def __init__(self, model: Any) -> None:
        self.tensors: list[tuple[Any, str, Any, Any, Any]] = []  # module, name, the tensor, its data, what they were
        self.grads: list[tuple[Any, Any, Any]] = []
        self.attributes: list[tuple[Any, dict[str, Any]]] = []
        seen: set[int] = set()
        for module in model.modules():
            self.attributes.append((module, {k: v for k, v in vars(module).items() if isinstance(v, PLAIN)}))
            for table in (module._parameters, module._buffers):
                for name, tensor in table.items():
                    if tensor is not None:
                        first = id(tensor) not in seen
                        seen.add(id(tensor))
                        self.tensors.append((table, name, tensor, tensor.data, tensor.data.clone() if first else None))
        for p in model.parameters():
            self.grads.append((p, p.grad, None if p.grad is None else p.grad.clone()))

    def restore(self) -> None:
        with torch.no_grad():
            for table, name, tensor, data, was in self.tensors:
                table[name] = tensor
                if was is not None:
                    tensor.data = data
                    if not same_bits(data, was):
                        data.copy_(was)
            for p, grad, was in self.grads:
                p.grad = grad
                if grad is not None:
                    grad.data.copy_(was)
        for module, values in self.attributes:
            for name, value in values.items():
                if vars(module).get(name, value) is not value:
                    object.__setattr__(module, name, value)


def same_bits(a: Any, b: Any) -> bool:
    if a.is_floating_point() and a.device.type in ("cpu", "cuda"):
        kind = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}.get(a.element_size())
        return kind is not None and bool(torch.equal(a.contiguous().view(kind), b.contiguous().view(kind)))
    return False


@contextlib.contextmanager
def untouched(model: Any) -> Iterator[None]:
    """What runs inside changes no parameter, gradient, buffer, plain attribute of a module or random generator."""
    kept, here, there = Kept(model), random.getstate(), numpy.random.get_state()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        random.setstate(here)
        numpy.random.set_state(there)
        kept.restore()


# ---- one step ----

def _wants(function: Any) -> bool:
    """Whether a function must be given an argument."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def outputs_of(model: Any, batch: Any) -> Any:
    """What the model gives for a batch: a tensor, a tuple or list of arguments, a mapping of keywords."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def loss_of(output: Any, loss: Optional[Callable[[Any], Any]]) -> Any:
    """The loss of what a model gives."""
    if loss is not None:
        return loss(output)
    own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    first = output
    while isinstance(first, (tuple, list)) and first:
        first = first[0]
    if isinstance(first, torch.Tensor) and first.dim() == 0:
        return first
    raise NoLoss("the model gives no loss for this batch: say loss=, a function of what the model gives, or a function that computes the loss "
                     "instead of the batch")


def one_step(e: Any, batch: Any, loss: Optional[Callable[[Any], Any]]) -> Optional[float]:
    """Forward and backward in an emulation that is open; the loss. batch: what the model is given, or a function (of the model, or of
    nothing) that gives the loss, or runs the whole step itself and gives None."""
    if callable(batch) and not isinstance(batch, Mapping):
        value = batch(e.model) if _wants(batch) else batch()
        value = loss(value) if loss is not None and value is not None else value
    else:
        value = loss_of(outputs_of(e.model, batch), loss)
    if value is None or not isinstance(value, torch.Tensor):
        return value if isinstance(value, (int, float)) else None
    if value.requires_grad:
        backward = getattr(e, "backward", None)
        if backward is not None:
            backward(value)
        else:
            value.backward()  # type: ignore[no-untyped-call]
    return float(value.detach())
