"""torch's own step under autocast on this CPU beside mpsim.emulate(policy="pytorch-amp-bf16", arch="avx512").

    python3 autocast.py [gpt2 llama mlp cnn-nchw cnn-nhwc ...] [--width 64] [--controls]

Every product, the loss and every gradient have to be equal in every bit, on a CPU with AVX512-BF16. torch has one thread for networks of
convolutions, as the order of the gradients of their weights depends on it. --controls: the same with another accumulator, the bias behind
the rounding, the depth in another order, and of convolutions the order of the other memory format, each of which must differ; how many
numbers do is printed.
"""
import argparse
import contextlib
import dataclasses
import os
import sys
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

import mpsim

ARCH = "avx512"
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "_scaled_dot_product_flash_attention_for_cpu")


def has_bf16() -> bool:
    """Whether torch multiplies by vdpbf16ps here: AMX is another row."""
    try:
        with open("/proc/cpuinfo", encoding="ascii") as f:
            flags = next(line for line in f if line.startswith("flags")).split()
    except (OSError, StopIteration):
        return False
    return "avx512_bf16" in flags and "amx_bf16" not in flags


# ---- models ----

def nearly(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + 2**-6 * torch.randn_like(x))


class Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1, self.fc2, self.head = nn.Linear(256, 4 * width), nn.Linear(4 * width, 8 * width), nn.Linear(8 * width, 40)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self.head(F.gelu(self.fc2(F.relu(self.fc1(x))))), y)


class Cnn(nn.Module):
    """The sums of its convolutions cancel: half of the channels are nearly the others', with weights of the other sign."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(32, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.head, half = nn.Linear(width, 40), width // 2
        with torch.no_grad():
            self.conv1.weight[half:] = nearly(self.conv1.weight[:half])
            self.conv1.bias[half:] = self.conv1.bias[:half]  # type: ignore[index]
            self.conv1.weight[:, 16:] = -self.conv1.weight[:, :16]
            self.conv2.weight[:, half:] = -self.conv2.weight[:, :half]

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return F.cross_entropy(self.head(x.mean((2, 3))), y)


def decoder(kind: str, width: int) -> nn.Module:
    import transformers
    sizes = {"vocab_size": 320, "bos_token_id": 0, "eos_token_id": 1}
    if kind == "gpt2":
        c = transformers.GPT2Config(n_layer=2, n_embd=width, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0,
                                    attn_pdrop=0.0, attn_implementation="eager", **sizes)
        return transformers.GPT2LMHeadModel(c)
    c = transformers.LlamaConfig(num_hidden_layers=2, hidden_size=width, num_attention_heads=4, num_key_value_heads=2,
                                 intermediate_size=5 * width // 2, max_position_embeddings=64,
                                 attn_implementation="eager", **sizes)
    return transformers.LlamaForCausalLM(c)


@dataclasses.dataclass
class Case:
    """A model and its loss on a batch."""
    name: str
    model: nn.Module
    loss: "Callable[[], torch.Tensor]"


def case(name: str, width: int) -> Case:
    torch.manual_seed(1)
    if name in ("gpt2", "llama"):
        model, tokens = decoder(name, width), torch.randint(0, 320, (2, 64))
        for n, p in model.named_parameters():  # biases begin with 0
            nn.init.normal_(p, std=0.02) if n.endswith("bias") else None
        return Case(name, model, lambda: model(input_ids=tokens, labels=tokens).loss)
    if name == "mlp":
        model, x, y = Mlp(width), torch.randn(256, 256), torch.randint(0, 40, (256,))
        return Case(name, model, lambda: model(x, y))
    model, x, y = Cnn(width), torch.randn(4, 16, 12, 12), torch.randint(0, 40, (4,))
    x = torch.cat([x, nearly(x)], 1)
    if name == "cnn-nhwc":
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    return Case(name, model, lambda: model(x, y))


CASES = ("gpt2", "llama", "mlp", "cnn-nchw", "cnn-nhwc")


# ---- a step, and what it made ----

class Record(TorchDispatchMode):
    """Keeps what products give."""

    def __init__(self) -> None:
        super().__init__()
        self.made: "List[Tuple[str, torch.Tensor]]" = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name in PRODUCTS:
            made = out[:2] if name == "convolution_backward" else out[:1] if isinstance(out, tuple) else (out,)
            with _disable_current_modes():
                self.made += [(name, t.detach().clone()) for t in made if t is not None]
        return out


class BiasBehind(TorchDispatchMode):
    """A control: the sum is rounded before the bias is added."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.addmm.default and not kwargs:
            made = torch.mm(args[1], args[2])
            return torch.add(made, args[0]).to(made.dtype)
        return func(*args, **(kwargs or {}))


class DepthReversed(TorchDispatchMode):
    """A control: products are summed from the last to the first."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, args = func.overloadpacket.__name__, list(args)
        if name in ("mm", "bmm", "addmm"):
            a, b = args[-2:]
            args[-2:] = a.flip(-1), b.flip(-2)
        return func(*args, **(kwargs or {}))


class OtherFormat(TorchDispatchMode):
    """A control: a convolution sums in the order of the other memory format."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is not torch.ops.aten.convolution.default:
            return func(*args, **(kwargs or {}))
        other = torch.contiguous_format if args[0].is_contiguous(memory_format=torch.channels_last) else torch.channels_last
        return func(*(a.contiguous(memory_format=other) for a in args[:2]), *args[2:])


@dataclasses.dataclass
class Step:
    products: "List[Tuple[str, torch.Tensor]]"
    loss: torch.Tensor
    gradients: "Dict[str, torch.Tensor]"


def taken(c: Case, record: Record, loss: torch.Tensor) -> Step:
    grads = {n: p.grad.detach().clone() for n, p in c.model.named_parameters() if p.grad is not None}
    c.model.zero_grad()
    return Step(record.made, loss.detach().clone(), grads)


@contextlib.contextmanager
def threads_of(c: Case) -> "Iterator[None]":
    before = torch.get_num_threads()
    torch.set_num_threads(1 if c.name.startswith("cnn") else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def by_torch(c: Case) -> Step:
    with threads_of(c):
        return step_of_torch(c)


def step_of_torch(c: Case) -> Step:
    with torch.autocast("cpu", torch.bfloat16), Record() as record:
        loss = c.loss()
    with record:
        loss.backward()
    return taken(c, record, loss)


def by_mpsim(c: Case, control: "Any" = None, **options: Any) -> Step:
    words = {"policy": "pytorch-amp-bf16", "arch": ARCH, **options}
    with threads_of(c), mpsim.emulate(c.model, **words) as e, control() if control else contextlib.nullcontext():  # type: ignore[operator]
        with Record() as record:
            loss = c.loss()
            e.backward(loss)
    return taken(c, record, loss)


# ---- the comparison ----

def differing(a: torch.Tensor, b: torch.Tensor) -> int:
    if a.shape != b.shape:
        return max(a.numel(), b.numel())
    x, y = (t.float().contiguous().numpy() for t in (a, b))
    return int(((x.view(np.uint32) != y.view(np.uint32)) & ~(np.isnan(x) & np.isnan(y))).sum())


@dataclasses.dataclass
class Count:
    numbers: int = 0
    differ: int = 0
    first: str = ""

    def add(self, name: str, a: torch.Tensor, b: torch.Tensor) -> None:
        n = differing(a, b)
        self.numbers += b.numel()
        self.differ += n
        if n and not self.first:
            self.first = f"{name} {tuple(b.shape)}: {n} of {b.numel()}"


def compare(ours: Step, theirs: Step) -> "Tuple[Count, Count]":
    """Products, and the loss with all gradients."""
    products, rest = Count(), Count()
    rest.add("loss", ours.loss, theirs.loss)
    if [a for a, _ in ours.products] != [b for b, _ in theirs.products]:
        products.differ, products.first = 1, f"other products: {len(ours.products)} beside {len(theirs.products)}"
        return products, rest
    for i, ((name, a), (_, b)) in enumerate(zip(ours.products, theirs.products)):
        products.add(f"product {i} ({name})", a, b)
    for name, b in theirs.gradients.items():
        rest.add(name, ours.gradients.get(name, torch.zeros(0)), b)
    return products, rest


# another accumulator, the bias behind the rounding, the depth in another order: (name, mode, options, models)
MATRICES = ("gpt2", "llama", "mlp")
CONTROLS: "List[Tuple[str, Any, Dict[str, Any], Tuple[str, ...]]]" = [
    ("fma", None, {"arch": "fma"}, MATRICES), ("exact", None, {"arch": "exact"}, MATRICES),
    ("hopper", None, {"arch": "hopper-bf16-fp32"}, MATRICES), ("bias behind the rounding", BiasBehind, {}, ("gpt2", "mlp")),
    ("depth from its end", DepthReversed, {}, MATRICES), ("the other memory format", OtherFormat, {}, ("cnn-nchw", "cnn-nhwc"))]


def row(c: Case, what: str, ours: Step, theirs: Step) -> "Tuple[Count, Count]":
    products, rest = compare(ours, theirs)
    print(f"{c.name:10}{what:26}{products.differ:9,} of {products.numbers:11,}{rest.differ:9,} of {rest.numbers:11,}  "
          f"{products.first or rest.first}", flush=True)
    return products, rest


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", default=[])
    p.add_argument("--width", type=int, default=64)
    p.add_argument("--controls", action="store_true")
    a = p.parse_args()
    if not has_bf16():
        print("SKIP autocast: this CPU does not multiply by vdpbf16ps alone")
        return 0
    print(f"{'model':10}{'':26}{'products that differ':>24}{'loss, gradients':>24}")
    bad = 0
    for name in a.cases or CASES:
        c = case(name, a.width)
        theirs = by_torch(c)
        products, rest = row(c, "", by_mpsim(c), theirs)
        bad += bool(products.differ or rest.differ)
        for what, mode, options, models in CONTROLS if a.controls else []:
            if name not in models:
                continue
            products, rest = row(c, "control: " + what, by_mpsim(c, mode, **options), theirs)
            bad += not products.differ and not rest.differ
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
