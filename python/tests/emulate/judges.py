"""Judges of `mpsim.emulate` that share nothing with it: what the roles of a step's operands are, and which products it has.

The role judge runs a model four times in plain torch and looks at the numbers alone. What doubles with the loss is a gradient;
else, what moves with the input, or with the random numbers drawn on the way, is an activation; else, what moves with the parameters is
a weight; else it is a constant."""
from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
from typing import Any, Callable, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import families

# operands of products by the operation's name
OPERANDS: dict[str, tuple[int, ...]] = {
    "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "vdot": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "addbmm": (1, 2),
    "addmv": (1, 2), "addr": (1, 2), "_addmm_activation": (1, 2), "_grouped_mm": (0, 1), "_scaled_mm": (0, 1),
    "convolution": (0, 1), "convolution_backward": (0, 1, 2), "_trilinear": (0, 1, 2), "_euclidean_dist": (0, 1),
    "_scaled_dot_product_flash_attention_for_cpu": (0, 1, 2),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (0, 1, 2, 3),
    "mkldnn_rnn_layer": (0, 1, 2), "mkldnn_rnn_layer_backward": (0, 1, 2), "linear_cross_entropy": (0, 1)}
# what may not appear in an ordinary step: composites, and kernels that hide products
HIDING = ("linear", "matmul", "einsum", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention", "_transformer_encoder_layer_fwd",
          "_native_multi_head_attention", "lstm", "gru", "rnn_tanh", "rnn_relu")


def name_of(func: Any) -> str:
    """The name of an operation without its overload and without the underscore of an in-place form."""
    name: str = func._schema.name.split("::")[1]
    return name[:-1] if name.endswith("_") and not name.startswith("__") else name


class Products(TorchDispatchMode):
    """Records the products of a run: names and what `of` says of each operand. Also the operations outside of aten.

    Entered before an emulation it sees what the emulation lets torch compute; entered inside of one, what the model asks for."""

    supports_higher_order_operators = True

    def __init__(self, of: Callable[[torch.Tensor], Any] = lambda operand: tuple(operand.shape)) -> None:
        super().__init__()
        self.of, self.seen, self.others = of, [], collections.Counter()  # type: ignore[var-annotated]
        self.hidden: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        schema = getattr(func, "_schema", None)
        if schema is None or not schema.name.startswith(("aten::", "prim::", "profiler::")):
            self.others[schema.name if schema else str(func)] += 1
            return func(*args, **(kwargs or {}))
        name = name_of(func)
        if name in HIDING:
            self.hidden[name] += 1
            with self:
                made = func.decompose(*args, **(kwargs or {}))
            return made if made is not NotImplemented else func(*args, **(kwargs or {}))
        if name in OPERANDS:
            self.seen.append((name, [self.of(args[i]) for i in OPERANDS[name]]))
        return func(*args, **(kwargs or {}))

    @property
    def counts(self) -> collections.Counter[str]:
        """How many products of each name."""
        return collections.Counter(name for name, _ in self.seen)


@dataclasses.dataclass
class Judged:
    """A product and what its operands are: grad, act, weight, const, or None where zeros tell nothing."""

    name: str
    roles: tuple[str | None, ...]


def move(model: torch.nn.Module, seed: int, by: float) -> None:
    """Add normal numbers to all parameters. A model begins with zeros in places; after this it has none."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn(each.shape, generator=noise), alpha=by)


def run(case: families.Case, seed: int = 3, factor: float = 1.0, moved: int = 0, mode: Any = None) -> Any:
    """One forward and backward pass. The weights and buffers are as before afterwards, gradients are gone."""
    before = {key: value.clone() for key, value in case.model.state_dict().items()}
    move(case.model, 7, 0.02)
    if moved:
        move(case.model, moved, 0.05)
    torch.manual_seed(seed + 1)
    try:
        with torch.backends.mkldnn.flags(enabled=False), mode:  # the LSTM of oneDNN is one operation, whatever is in it
            (case.loss(case.model, case.batch(seed)) * factor).backward()
    finally:
        case.model.zero_grad(set_to_none=True)
        with torch.no_grad():
            for key, value in case.model.state_dict().items():
                value.copy_(before[key])
    return mode


def judged(case: families.Case) -> list[Judged]:
    """The products of one step and the roles of their operands."""
    def products(**how: Any) -> Any:
        return run(case, mode=Products(lambda operand: operand.detach().clone()), **how).seen
    once, double, other, moved = products(), products(factor=2.0), products(seed=5), products(moved=8)
    names = [[name for name, _ in each] for each in (once, double, other, moved)]
    if any(each != names[0] for each in names):
        raise AssertionError("the order of products depends on the numbers: this family cannot be judged")
    return [Judged(name, tuple(role(*four) for four in zip(a, double[i][1], other[i][1], moved[i][1])))
            for i, (name, a) in enumerate(once)]


def role(once: torch.Tensor, double: torch.Tensor, other: torch.Tensor, moved: torch.Tensor) -> str | None:
    """The role of an operand from its numbers in the four runs."""
    def same(a: torch.Tensor, b: torch.Tensor) -> bool:
        return a.shape == b.shape and bool(torch.equal(a, b))
    if not once.any():
        return None
    if not same(once, double) and same(once * 2, double):
        return "grad"
    return "act" if not same(once, other) else "weight" if not same(once, moved) else "const"


def profiled(case: families.Case) -> collections.Counter[str]:
    """Products of a step by the profiler, which also sees what kernels call inside."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        run(case, mode=contextlib.nullcontext())
    counts: collections.Counter[str] = collections.Counter()
    for each in seen.key_averages():
        name = each.key.removeprefix("aten::").rstrip("_")
        if each.key.startswith("aten::") and name in OPERANDS:
            counts[name] += each.count
    return counts


def digest(tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    """A digest of the bits of each tensor."""
    return {name: hashlib.sha256(each.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()[:16]
            for name, each in tensors.items()}


def chosen(names: list[str]) -> Iterator[tuple[str, families.Case]]:
    """The families of these names that can be built here; a line says which cannot."""
    for name in names:
        try:
            yield name, families.build(name)
        except families.Missing as error:
            print(f"{name}: skipped, {error}", flush=True)
