"""Bugs of 2026's training stacks, played on a small network: each is run right and wrong under the same policy, and what mpsim says
of the two runs must name the module and the role where the bug is.

A play is a class: `change`, `optimizer` and `step` are parts of a training loop; `wrong` says whether the bug is in it. `thread` is the
public report of the bug; `first` is the tensor that must be named: the first one, in order of execution, that differs between traces of
the two runs, with its role and the path of its module."""
from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

VOCABULARY, WIDTH, WIDE, HEADS, SAMPLES, LENGTH = 64, 32, 64, 2, 2, 16


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (each(x).unflatten(2, (HEADS, -1)).transpose(1, 2) for each in (self.q, self.k, self.v))
        return self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """A gated feed-forward layer with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, WIDE, bias=False), nn.Linear(WIDTH, WIDE, bias=False)
        self.down, self.drop = nn.Linear(WIDE, WIDTH), nn.Dropout(0.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.drop(F.silu(self.gate(x)) * self.up(x)))


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2, self.mlp = nn.RMSNorm(WIDTH), Attention(), nn.RMSNorm(WIDTH), Mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Small(nn.Module):
    """A language model of two layers; with `saved` its layers are recomputed in backward."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.saved: dict[str, Any] | None = None

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x) if self.saved is None else checkpoint(layer, x, **self.saved)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1)[:-1], ids.flatten()[1:])


def batch(step: int) -> torch.Tensor:
    """The tokens of a step."""
    return torch.randint(VOCABULARY, (SAMPLES, LENGTH), generator=torch.Generator().manual_seed(100 + step))


class Play:
    """A training, right or wrong."""

    thread = ""
    policy = "te-mxfp8"
    module = ""  # where the bug is
    first = ""  # "role:path" of the first tensor that differs; of a play without traces, of the tensor that the report names
    step_found = 1
    pattern = ""  # what the difference looks like, where that says what the bug is
    steps = 2

    def __init__(self, wrong: bool) -> None:
        self.wrong = wrong

    def build(self) -> Small:
        """The network with its bug."""
        torch.manual_seed(11)
        model = Small()
        self.change(model)
        return model

    def change(self, model: Small) -> None:
        """What the play changes in the model."""

    def optimizer(self, model: Small) -> torch.optim.Optimizer:
        """The optimizer."""
        return torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(self, model: Small, optimizer: torch.optim.Optimizer, step: int) -> float:
        """One step of the training, as a user writes it."""
        loss = model(batch(step))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())

    def train(self, model: Small) -> list[float]:
        """All steps; the losses."""
        torch.manual_seed(12)
        optimizer = self.optimizer(model)
        return [self.step(model, optimizer, i) for i in range(self.steps)]


# --- weights that somebody has quantised ---------------------------------------------------------------------------------



def stored_nvfp4(w: torch.Tensor, swapped: bool = False, transposed: bool = False, scaled: bool = True) -> torch.Tensor:
    """The numbers of a weight that was stored in NVFP4: codes of four bits, two in a byte, a scale in E4M3 for every 16, and one scale
    in binary32. swapped: the two codes of a byte in the wrong order; transposed: scales by columns first; not scaled: without the last."""
    blocks = w.unflatten(1, (-1, 16))
    whole = w.abs().amax() / (6 * 448)
    scales = (blocks.abs().amax(2) / 6 / whole).to(torch.float8_e4m3fn).float()
    ratio = blocks / (scales * whole).clamp_min(1e-30)[:, :, None]
    index = sum((ratio.abs() > middle).long() for middle in (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0))
    codes = (index + 8 * (ratio < 0)).flatten(1).to(torch.uint8)
    packed = codes[:, 0::2] | codes[:, 1::2] << 4
    halves = [packed & 15, packed >> 4]
    read = torch.stack(halves[::-1] if swapped else halves, 2).flatten(1).long()
    exponent, mantissa = (read & 7) >> 1, (read & 1) * 0.5
    sizes = torch.where(exponent == 0, mantissa, torch.exp2(exponent - 1.0) * (1 + mantissa))
    numbers = (sizes * (1 - 2.0 * (read >> 3))).unflatten(1, (-1, 16))
    scales = scales.t().reshape(scales.shape) if transposed else scales
    return (numbers * scales[:, :, None]).flatten(1) * (whole if scaled else 1.0)


class Stored(nn.Linear):
    """A layer whose weight is read as it was stored in NVFP4; its gradient goes to the weight itself."""

    how: dict[str, bool] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            change = stored_nvfp4(self.weight, **self.how) - self.weight
        return F.linear(x, self.weight + change, self.bias)


def replace(model: nn.Module, path: str, kind: type[nn.Linear], **attributes: Any) -> None:
    """Make the Linear at `path` one of another class, with the same parameters and path."""
    layer = model.get_submodule(path)
    layer.__class__ = kind
    for name, value in attributes.items():
        setattr(layer, name, value)


class ForgottenScale(Play):
    """The scale of a whole tensor is not applied to one matrix of a fused projection."""

    thread = "sgl-project/sglang#29151 (June 2026)"
    module, first = "layers.1.attention.k", "weight:layers.1.attention.k"
    pattern = "scaled"

    def change(self, model: Small) -> None:
        replace(model, self.module, Stored, how={"scaled": not self.wrong})


class NibbleOrder(Play):
    """The two codes of a byte are read in the wrong order in one layer."""

    thread = "sgl-project/sglang#23625 (April 2026); pytorch/ao#2939"
    module, first = "layers.0.mlp.up", "weight:layers.0.mlp.up"
    pattern = "permuted"

    def change(self, model: Small) -> None:
        replace(model, self.module, Stored, how={"swapped": self.wrong})


class TransposedScales(Play):
    """The scales of blocks are read by columns where they were written by rows."""

    thread = "vllm-project/vllm#34824 (February 2026)"
    module, first = "layers.1.mlp.gate", "weight:layers.1.mlp.gate"

    def change(self, model: Small) -> None:
        replace(model, self.module, Stored, how={"transposed": self.wrong})


# --- gradients -----------------------------------------------------------------------------------------------------------


class RoundedLinear(torch.autograd.Function):
    """A product whose gradient is quantised by `quantise` before both products of backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, quantise: Any) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.quantise = quantise
        return x @ w.t()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, w = ctx.saved_tensors
        grad = ctx.quantise(grad)
        return grad @ w, grad.flatten(0, 1).t() @ x.flatten(0, 1), None


class Rounded(nn.Linear):
    """A layer whose gradient is quantised."""

    quantise: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return RoundedLinear.apply(x, self.weight, self.quantise)  # type: ignore[no-any-return,no-untyped-call]


def stochastic_e2m1(grad: torch.Tensor, factor: float = 1.0, zero: bool = False) -> torch.Tensor:
    """Stochastic rounding to E2M1 with one scale. factor: of the dither; zero: what an instruction gives that is not there."""
    scale = grad.abs().amax() / 6
    x = grad / scale
    step = torch.exp2(torch.floor(torch.log2(x.abs().clamp(1, 4)))) / 2
    dither = torch.rand(x.shape, generator=torch.Generator().manual_seed(5)) - 0.5
    rounded = (torch.round(x / step + dither * factor) * step).clamp(-6, 6) * scale
    return torch.zeros_like(grad) if zero else rounded


class ZeroedGradients(Play):
    """Stochastic rounding gives zeros where the machine lacks the instruction: the gradients of one layer vanish, the loss is finite."""

    thread = "NVIDIA/TransformerEngine#3281 (July 2026)"
    module, first = "layers.0.attention.o", "agrad:layers.0.attention.o"

    def change(self, model: Small) -> None:
        replace(model, self.module, Rounded, quantise=lambda grad: stochastic_e2m1(grad, zero=self.wrong))


class DoubledDither(Play):
    """The fallback of a kernel dithers with twice the step of E2M1."""

    thread = "axolotl-ai-cloud/axolotl#3767 (July 2026)"
    module, first = "layers.1.attention.v", "agrad:layers.1.attention.v"

    def change(self, model: Small) -> None:
        replace(model, self.module, Rounded, quantise=lambda grad: stochastic_e2m1(grad, 2.0 if self.wrong else 1.0))


class FusedGate(torch.autograd.Function):
    """silu(x gate) * (x up), with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, wrong: bool) -> torch.Tensor:
        rows = x.flatten(0, -2)
        a, b = rows @ gate.t(), rows @ up.t()
        ctx.save_for_backward(x, gate, up, a, b)
        ctx.wrong = wrong
        return (F.silu(a) * b).view(*x.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, gate, up, a, b = ctx.saved_tensors
        rows, grad = x.flatten(0, -2), grad.flatten(0, -2)
        share = torch.sigmoid(a)
        to_a, to_b = grad * b * share * (1 + a * (1 - share)), grad * F.silu(a)
        half = to_a @ gate
        whole = torch.addmm(half, to_b, up, beta=0 if ctx.wrong else 1)  # the accumulator is not carried over
        return whole.view(x.shape), to_a.t() @ rows, to_b.t() @ rows, None


class FusedMlp(Mlp):
    """The feed-forward layer with the fused function."""

    wrong = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.drop(FusedGate.apply(x, self.gate.weight, self.up.weight, self.wrong)))  # type: ignore[no-untyped-call]


class LostHalf(Play):
    """The gradient of a fused layer's input lacks one of two contributions; weights' gradients are right."""

    thread = "linkedin/Liger-Kernel#1413 (August 2026)"
    module, first = "layers.0.mlp", "dgrad:layers.0.mlp.1"

    def change(self, model: Small) -> None:
        layer = model.layers[0].mlp
        layer.__class__ = FusedMlp  # type: ignore[assignment]
        layer.wrong = self.wrong  # type: ignore[assignment]


class Down(nn.Linear):
    """The second product of an expert, whose input has the router's share already."""

    wrong = False

    def forward(self, x: torch.Tensor, share: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return F.linear(x, self.weight, self.bias) if self.wrong else F.linear(x, self.weight) + share * self.bias


class Experts(nn.Module):
    """Two experts, both chosen for each token and weighted by a router."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 2, bias=False)
        self.up = nn.ModuleList([nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2)])
        self.down = nn.ModuleList([Down(WIDE, WIDTH) for _ in range(2)])
        for each in self.down:
            nn.init.normal_(each.bias)
            each.wrong = wrong

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        share = torch.softmax(self.router(x), -1).unbind(-1)
        return sum(down(F.silu(up(x)) * each[..., None], each[..., None]) for up, down, each in zip(self.up, self.down, share))


class WholeBias(Play):
    """The bias of each chosen expert is added whole, not by the router's share: as often as there are experts."""

    thread = "NVIDIA-NeMo/Automodel#2591 (June 2026)"
    module, first = "layers.1.mlp.down.0", "out:layers.1.mlp.down.0"

    def change(self, model: Small) -> None:
        torch.manual_seed(13)
        model.layers[1].mlp = Experts(self.wrong)


class DropoutNotReplayed(Play):
    """A recomputed layer draws another dropout mask than its forward pass."""

    thread = "allenai/OLMo-core#828 (August 2026); pytorch/pytorch#190758"
    module, first = "layers.1.mlp.down", "wgrad:layers.1.mlp.down.weight"

    def change(self, model: Small) -> None:
        model.layers[1].mlp.drop.p = 0.25
        model.saved = {"use_reentrant": False, "preserve_rng_state": not self.wrong}


# --- optimizers ----------------------------------------------------------------------------------------------------------


class LostMaster(Play):
    """bf16 parameters without an fp32 copy: weights that begin at 1 never move."""

    thread = "NVIDIA/Model-Optimizer#2322 (September 2026); vllm-project/speculators#765"
    module, first = "norm", "weight:layers.0.norm1.weight"

    @property
    def policy(self) -> str:  # type: ignore[override]
        return "bf16-pure" if self.wrong else "megatron-bf16"

    def optimizer(self, model: Small) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.0)


class DefaultBetas(Play):
    """One group of parameters gets the optimizer's default betas and epsilon in place of the configured ones."""

    thread = "PaddlePaddle/PaddleFormers#4815 (July 2026)"
    module, first = "embed", "opt.v:embed.weight"
    step_found = 2
    pattern = "scaled"

    def optimizer(self, model: Small) -> torch.optim.Optimizer:
        matrices = [p for n, p in model.named_parameters() if n.startswith("layers") and p.dim() == 2]
        others = [p for n, p in model.named_parameters() if not (n.startswith("layers") and p.dim() == 2)]
        own = {} if self.wrong else {"betas": (0.9, 0.95), "eps": 1e-6}
        return torch.optim.AdamW([{"params": others, **own}, {"params": matrices, "betas": (0.9, 0.95), "eps": 1e-6}], lr=1e-3)


class ClippedScaled(Play):
    """Gradients are clipped while they are still multiplied by the loss scale."""

    thread = "k2-fsa/icefall#2081 (April 2026)"
    policy = "pytorch-amp-fp16"
    first = "wgrad:head.weight"
    pattern = "scaled"

    def train(self, model: Small) -> list[float]:
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        return super().train(model)

    def optimizer(self, model: Small) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1)  # Adam would not see a factor of all gradients

    def step(self, model: Small, optimizer: torch.optim.Optimizer, step: int) -> float:
        loss = model(batch(step))
        self.scaler.scale(loss).backward()
        if not self.wrong:
            self.scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad()
        return float(loss.detach())


class NewScale(Play):
    """Gradients are divided by the loss scale that has just been raised, not by the one that backward used."""

    thread = "deepspeedai/DeepSpeed#8588 (September 2026)"
    policy = "fp16-unscaled"
    first = "wgrad:head.weight"
    step_found = 2
    pattern = "scaled"

    def optimizer(self, model: Small) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.1)

    def step(self, model: Small, optimizer: torch.optim.Optimizer, step: int) -> float:
        scale = 1024.0 * 2 ** step
        loss = model(batch(step))
        (loss * scale).backward()
        for each in model.parameters():
            assert each.grad is not None
            each.grad.div_(scale * 2 if self.wrong and step else scale)
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())


class MainGrad(torch.autograd.Function):
    """A product whose weight gradient goes into a buffer of the weight, as fused kernels have it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor, layer: Any) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        ctx.layer = layer
        return x @ w.t()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # type: ignore[override]
        x, w = ctx.saved_tensors
        made = grad.flatten(0, 1).t() @ x.flatten(0, 1)
        main = ctx.layer.main
        ctx.layer.main = made if main is None or ctx.layer.wrong else main + made
        return grad @ w, None, None


class Repeated(nn.Linear):
    """A layer that is called twice in a pass."""

    main: Any = None
    wrong = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        once = MainGrad.apply(x, self.weight, self)  # type: ignore[no-untyped-call]
        return MainGrad.apply(F.gelu(once), self.weight, self)  # type: ignore[no-any-return,no-untyped-call]


class OverwrittenGradient(Play):
    """A layer that is called twice keeps the weight gradient of one call: the other one is overwritten."""

    thread = "NVIDIA/Megatron-LM#6965 (September 2026)"
    module, first = "layers.1.attention.o", "wgrad:layers.1.attention.o.weight"

    def change(self, model: Small) -> None:
        replace(model, self.module, Repeated, wrong=self.wrong)

    def step(self, model: Small, optimizer: torch.optim.Optimizer, step: int) -> float:
        loss = model(batch(step))
        loss.backward()
        layer: Any = model.get_submodule(self.module)
        layer.weight.grad, layer.main = layer.main, None
        optimizer.step()
        optimizer.zero_grad()
        return float(loss.detach())


PLAYS: tuple[type[Play], ...] = (ForgottenScale, NibbleOrder, TransposedScales, ZeroedGradients, DoubledDither, LostHalf, WholeBias,
                                 DropoutNotReplayed, LostMaster, DefaultBetas, ClippedScaled, NewScale, OverwrittenGradient)
