"""What `mpsim.emulate` refuses: each case is a small training that is not emulated yet, and words that the error's one line must have.

A case is a function of the network; `line` in the words stands for the line of this file where the user's code stopped."""
from __future__ import annotations

import os
import tempfile
import threading
from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional as F

Run = Callable[[nn.Module, torch.Tensor], Any]
CASES: dict[str, tuple[Callable[[], nn.Module], Run, tuple[str, ...]]] = {}


def case(name: str, *words: str, model: Callable[[], nn.Module] | None = None) -> Callable[[Run], Run]:
    """Enter a case: `words` must all be in the one line of the error."""
    def enter(run: Run) -> Run:
        CASES[name] = (model or net, run, words)
        return run
    return enter


def net() -> nn.Module:
    """A network of two layers."""
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))


def numbers(*shape: int) -> torch.Tensor:
    """An input."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


class Within(nn.Module):
    """A module that runs a function."""

    def __init__(self, run: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.inner, self.run = nn.Linear(32, 32), run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(self.inner(x), self.inner.weight)


@case("double backward", "double backward", "create_graph", "line")
def double_backward(model: nn.Module, x: torch.Tensor) -> None:
    x = x.requires_grad_()
    slope, = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    slope.square().sum().backward()


@case("torch.func.grad", "torch.func.grad", "module '0'", "line")
def functional_gradient(model: nn.Module, x: torch.Tensor) -> None:
    values = dict(model.named_parameters())
    torch.func.grad(lambda given: torch.func.functional_call(model, given, (x,)).sum())(values)


@case("vmap", "vmap", "module '0'", "line")
def mapped(model: nn.Module, x: torch.Tensor) -> None:
    torch.vmap(model)(x).sum().backward()


@case("jvp", "forward-mode", "aten::", "line")
def forward_mode(model: nn.Module, x: torch.Tensor) -> None:
    torch.func.jvp(model, (x,), (torch.ones_like(x),))


@case("forward AD", "forward-mode", "line")
def dual_numbers(model: nn.Module, x: torch.Tensor) -> None:
    import torch.autograd.forward_ad as forward
    with forward.dual_level():
        model(forward.make_dual(x, torch.ones_like(x)))


@case("torch.compile", "torch.compile", "line")
def compiled(model: nn.Module, x: torch.Tensor) -> None:
    torch.compile(model, backend="aot_eager")(x).sum().backward()


@case("compiled before", "torch.compile", model=lambda: torch.compile(net(), backend="eager"))  # type: ignore[arg-type,return-value]
def compiled_before(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


@case("flex_attention", "flex_attention", "line", model=lambda: Within(flexible))
def flex(model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        model(x)


def flexible(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Eager flex_attention."""
    from torch.nn.attention.flex_attention import flex_attention
    q = x.view(1, 1, -1, 32)
    return flex_attention(q, q, q)  # type: ignore[return-value]


@case("meta tensor", "meta", "aten::", "line")
def on_meta(model: nn.Module, x: torch.Tensor) -> None:
    nn.Linear(32, 32, device="meta")(x.to("meta"))


@case("another thread", "thread", "line")
def in_a_thread(model: nn.Module, x: torch.Tensor) -> None:
    raised: list[BaseException] = []
    def work() -> None:
        try:
            model(x)
        except BaseException as error:
            raised.append(error)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    if raised:
        raise raised[0]


@case("backward in a thread", "thread", "line")
def backward_in_a_thread(model: nn.Module, x: torch.Tensor) -> None:
    loss, raised = model(x).sum(), []
    def work() -> None:
        try:
            loss.backward()
        except BaseException as error:
            raised.append(error)
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    if raised:
        raise raised[0]


# an operator of somebody's own that has a product inside
MINE = torch.library.Library("mine", "DEF")
MINE.define("double_product(Tensor a, Tensor b) -> Tensor")
MINE.impl("double_product", lambda a, b: 2 * (a @ b), "CompositeExplicitAutograd")
double_product = torch.ops.mine.double_product


@case("custom operator", "mine::double_product", "line", model=lambda: Within(lambda x, w: double_product(x, w)))
def custom(model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        model(x)


@case("complex product", "aten::mm", "complex", "line", model=lambda: Within(lambda x, w: (x.to(torch.complex64) @ w.to(torch.complex64)).abs()))
def complex_product(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


@case("sparse product", "sparse", "line", model=lambda: Within(lambda x, w: torch.sparse.mm(w.detach().to_sparse(), x.t())))
def sparse_product(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


@case("nested tensor", "NestedTensor", "line", model=lambda: Within(lambda x, w: F.linear(torch.nested.nested_tensor([x[:2], x[2:]], layout=torch.jagged), w)))
def nested(model: nn.Module, x: torch.Tensor) -> None:
    model(x)


@case("quantised layer", "quantized", "line", model=lambda: torch.ao.nn.quantized.dynamic.Linear(32, 32))
def quantised(model: nn.Module, x: torch.Tensor) -> None:
    model(x)


@case("fp8 product", "_scaled_mm", "line", model=lambda: Within(lambda x, w: torch._scaled_mm(
    x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn).t(), torch.ones(()), torch.ones(()), out_dtype=torch.float32)))
def fp8_product(model: nn.Module, x: torch.Tensor) -> None:
    with torch.no_grad():
        model(x)


@case("matrix exponential", "matrix_exp", "line", model=lambda: Within(lambda x, w: torch.linalg.matrix_exp(w)))
def exponential(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


def group() -> Any:
    """A process group of one process, over a file."""
    import torch.distributed as distributed
    if not distributed.is_initialized():
        store = distributed.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    return distributed


def parallel(model: nn.Module) -> nn.Module:
    """DDP."""
    group()
    return nn.parallel.DistributedDataParallel(model)


@case("DDP", "DistributedDataParallel", model=lambda: parallel(net()))
def data_parallel(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


def sharded(model: nn.Module) -> nn.Module:
    """FSDP2."""
    group()
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    return model


@case("FSDP2", "FSDP", model=lambda: sharded(net()))
def fsdp(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()


def tensor_parallel(model: nn.Module) -> nn.Module:
    """Tensor parallelism: parameters are DTensors."""
    group()
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    return parallelize_module(model, init_device_mesh("cpu", (1,)), {"0": ColwiseParallel()})


@case("DTensor", "DTensor", model=lambda: tensor_parallel(net()))
def distributed_tensor(model: nn.Module, x: torch.Tensor) -> None:
    model(x).sum().backward()
