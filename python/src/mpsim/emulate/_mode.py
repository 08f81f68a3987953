"""The dispatch mode: every operator of torch passes here, below autograd.

Products go to who claims them. Everything else runs natively, on numbers of the formats that the policy has for it, and the role of
what it gives is kept. A call costs microseconds; what an operator is, is looked up once.

Below autograd aten has decided what a layer is: `addmm` or `mm` and `add`, which branch of attention, what backward multiplies. A function
mode, a tensor subclass or a kernel override would see less, or change the model.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .._error import Error
from ._claims import HIDDEN
from ._refusals import PARALLEL
from ._roles import ACT, CONST, LOOK_UPS, RANDOM

Tensor = torch.Tensor
STRIDED = torch.strided
PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) if hasattr(torch.nn, "Buffer") else (torch.Tensor, torch.nn.Parameter)
SPACES = ("aten", "prim", "prims", "profiler")
FREE = frozenset("aten::" + name for name in (  # what changes no number
    "detach", "view", "_unsafe_view", "t", "transpose", "permute", "expand", "slice", "select", "as_strided", "alias", "squeeze", "unsqueeze", "split",
    "split_with_sizes", "chunk", "unbind", "reshape", "_reshape_alias", "_local_scalar_dense", "is_same_size", "unfold", "diagonal", "movedim",
    "lift_fresh", "_to_copy", "clone", "contiguous", "copy_", "empty_strided", "empty", "empty_like", "record_stream", "set_", "resize_"))

VIEWS = frozenset("aten::" + name for name in (  # whose results lie where their operand does, and so have its role
    "detach", "view", "_unsafe_view", "t", "transpose", "permute", "expand", "slice", "select", "as_strided", "alias", "squeeze", "unsqueeze", "split",
    "split_with_sizes", "unbind", "diagonal", "unfold"))
FLOAT32 = frozenset("aten::" + name for name in (  # torch.autocast computes these in float32 on CUDA (ATen/autocast_mode.h)
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan", "pow", "softplus",
    "cumprod", "cumsum", "dist", "linalg_vector_norm", "norm", "prod", "sum", "renorm", "logsumexp", "_pdist_forward", "upsample_nearest1d",
    "_upsample_nearest_exact1d", "upsample_nearest2d", "_upsample_nearest_exact2d", "upsample_nearest3d", "_upsample_nearest_exact3d",
    "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa", "upsample_trilinear3d", "upsample_bicubic2d",
    "_upsample_bicubic2d_aa"))
COPIES = frozenset(("aten::_to_copy", "aten::clone", "aten::contiguous"))


ALIKE = frozenset("aten::" + name for name in (  # what is written has the dtype of what it is written into
    "index_put", "_index_put_impl", "_unsafe_index_put", "_unsafe_masked_index_put_accumulate", "index_copy", "index_add", "index_reduce", "scatter",
    "scatter_add", "scatter_reduce", "masked_scatter", "put"))


def decomposes(func: Any) -> bool:
    """Whether an operator is made of others, as they are defined."""
    known = getattr(func, "_can_decompose", None)  # torch 2.5 and newer
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd") if known is None else known())


class Operator:
    """What is known of an operator."""

    __slots__ = ("name", "space", "claim", "free", "looks_up", "random", "writes", "out", "hidden", "alike", "between", "composite", "float32", "calls", "claimed",
                 "factory", "outer", "view")

    def __init__(self, func: Any, claims: Any, between: Any) -> None:
        schema = func._schema
        self.name: str = schema.name
        self.space: str = self.name.partition("::")[0]
        self.claim: Optional[Callable[..., Any]] = claims.table.get(self.name)
        self.free, self.view = self.name in FREE, self.name in VIEWS
        base = self.name[:-1] if self.name.endswith("_") else self.name
        self.looks_up, self.random = self.name in LOOK_UPS, self.name in RANDOM or base in RANDOM
        self.writes = tuple(i for i, a in enumerate(schema.arguments) if a.alias_info is not None and a.alias_info.is_write)
        self.out = tuple(a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write and a.kwarg_only)
        self.hidden, self.alike = self.name in HIDDEN, base in ALIKE
        self.between: Optional[Callable[..., Any]] = between.table.get(self.name)
        # torch has formulas of some operators beside a kernel of their own (silu_backward), which is what runs
        self.composite = decomposes(func) and not func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CPU)
        self.float32 = base in FLOAT32
        self.calls = self.claimed = 0
        self.outer = self.name == "aten::mul"
        self.factory = self.name.endswith("_like") or self.name.startswith("aten::new_")


def tensors(args: Any, found: list[Any]) -> list[Any]:
    for a in args:
        if isinstance(a, Tensor):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            tensors(a, found)
    return found


class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The mode of an emulation."""

    supports_higher_order_operators = True

    def __init__(self, core: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.core = core
        self.operators: dict[Any, Operator] = {}
        self.known: dict[int, Operator] = {}  # the same by their objects, which `operators` keeps
        self.last = "the program"  # operator that was called

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """torch would wrap the method, for microseconds a call, to keep Dynamo out of it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        core = self.core
        operator = self.known.get(id(func))  # an operator's own hash is a function in Python
        if operator is None:
            if not hasattr(func, "_schema"):
                raise core.refused(str(func), "a higher-order operator: its products would not be seen")
            operator = self.known[id(func)] = self.operators[func] = Operator(func, core.claims, core.between)
        operator.calls += 1
        self.last = operator.name
        if operator.view and not core.optimizers.natively:
            x = args[0]
            if type(x) in PLAIN and (x.is_cpu or x.device.type in core.home.kinds) and x.layout is STRIDED:
                return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = kwargs or {}
        if core.optimizers.natively and core.stepping(operator):
            return func(*args, **kwargs)
        if operator.free and not operator.writes:
            return self._free(func, operator, args, kwargs)
        given = tensors(args, [])
        if kwargs:
            tensors(kwargs.values(), given)
        kinds = core.home.kinds
        for t in given:
            if type(t) not in PLAIN or t.device.type not in kinds or t.layout is not STRIDED:
                if not self._plain(t):
                    return self._foreign(func, operator, t, args, kwargs)
        if operator.claim is not None and given:
            if given[0].is_floating_point():
                return self._claimed(func, operator, args, kwargs)
            core.other_numbers(operator, given[0])
        if operator.hidden or operator.space not in SPACES:
            core.unclaimed(operator)
        if operator.outer and core.claims.matrices.is_outer(given):
            operator.claimed += 1
            core.calling = operator.name
            return core.claims.matrices.outer(*given)
        if operator.between is not None and not core.as_torch:
            return operator.between(func, given, args, kwargs)
        if operator.composite:  # composites come whole in inference mode, and from handlers
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        return core.native(func, operator, given, args, kwargs)

    def _free(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        """Views and copies: the role of what they are made of. A cast or a copy of a parameter in a module reads its storage copy; elsewhere it
        is a user's own, of a checkpoint say, and keeps all bits."""
        core = self.core
        x = args[0] if args and isinstance(args[0], Tensor) else None
        if x is None:
            return func(*args, **kwargs)
        if (type(x) not in PLAIN or x.device.type not in core.home.kinds or x.layout is not STRIDED) and not self._plain(x):
            return self._foreign(func, operator, x, args, kwargs)
        tag = core.roles.tag(x)
        if tag is not None and tag.param is not None and tag.param.low and operator.name in COPIES and not core.paths.outside():
            out = func(core.presented(x), *args[1:], **kwargs)
        else:
            out = func(*args, **kwargs)
        role = CONST if operator.factory else ACT if tag is None else tag.role
        if isinstance(out, Tensor):
            core.roles.put(out, role)
        elif isinstance(out, (list, tuple)):
            for y in out:
                if isinstance(y, Tensor):
                    core.roles.put(y, role)
        return out

    def _claimed(self, func: Any, operator: Operator, args: Any, kwargs: Any) -> Any:
        core = self.core
        if core.within:
            raise core.refused(operator.name, f"a product inside of {core.within[-1]}, which is not emulated yet")
        core.calling = operator.name
        operator.claimed += 1
        try:
            if not operator.out and not operator.writes:
                return operator.claim(*args, **kwargs)  # type: ignore[misc]
            target = kwargs[operator.out[0]] if operator.out else args[operator.writes[0]]
            made = operator.claim(*args, **{k: v for k, v in kwargs.items() if k not in operator.out})  # type: ignore[misc]
            if operator.out and target.shape != made.shape:
                target.resize_(made.shape)
            target.copy_(made)
            core.roles.put(target, core.roles.of(made))
            return target
        except Error as error:
            if not operator.out and not operator.writes:
                func(*args, **kwargs)  # shapes that do not fit: torch's own error
            raise core.located(error, operator.name) from None

    def _plain(self, t: Any) -> bool:
        """Whether a tensor is an ordinary one: where the model is, or in memory, and of a class that handles no operators itself."""
        return type(t).__torch_dispatch__ is Tensor.__torch_dispatch__ and t.device.type in self.core.home.kinds and t.layout is STRIDED

    def _foreign(self, func: Any, operator: Operator, t: Any, args: Any, kwargs: Any) -> Any:
        """An operator on a tensor that is not an ordinary one."""
        from torch._subclasses.fake_tensor import FakeTensor

        kind = type(t).__name__
        if isinstance(t, FakeTensor) or t.device.type == "meta" and operator.claim is None:
            return func(*args, **kwargs)
        if kind == "DTensor":
            raise self.core.refused(operator.name, f"a DTensor; {PARALLEL}")
        if type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__:
            raise self.core.refused(operator.name, f"a tensor of the class {kind}, whose own operators are not emulated")
        if t.device.type not in self.core.home.kinds:
            raise self.core.refused(operator.name, f"a tensor on the device '{t.device.type}', and the model is not there")
        if operator.claim is None and not operator.hidden:
            return func(*args, **kwargs)
        raise self.core.refused(operator.name, f"a tensor of the layout {str(t.layout)[6:]}; only dense ones are emulated")
