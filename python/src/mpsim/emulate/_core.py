"""The state of an emulation, which all its parts share: parameters, roles, paths, plans, formats.

A parameter stays a float32 tensor of the user and holds what updates accumulate in: the master, if the policy has one. Operators see its
storage copy (`Core.presented`), so that optimizers, scalers and checkpoints of the user find what they expect. A format is a dtype where torch has
it; numbers of other formats are in float32. Under a policy that casts everything, constants and weights do not promote: activations
and gradients decide how wide a result is.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

from .._error import Error, InputError
from .._formats import Format
from .._policy import TABLE
from ._audit import ASKED, INTEGERS, Ledger, line_of_user
from ._between import Between, Marked
from ._claims import Claims
from ._homes import MEMORY
from ._mode import Mode
from ._paths import Paths
from ._plans import BINARY32, Architecture, Plans
from ._products import DTYPES, FORMATS, dtype_of
from ._roles import ACT, CONST, GRAD, WEIGHT, Roles
from ._streams import stream_of

Tensor = torch.Tensor
SUMS = ("aten::add", "aten::add_")
STREAMS = 1 << 16  # of names that are kept


class Param:
    """A parameter of the model: a float32 tensor that keeps what updates accumulate in."""

    __slots__ = ("name", "path", "tensor", "placement", "storage", "split", "low", "dtype", "original", "_copy", "_version")

    def __init__(self, name: str, tensor: Any) -> None:
        self.name, self.tensor, self.dtype = name, tensor, tensor.dtype
        self.path = name.rpartition(".")[0]
        self.original: Any = None  # its numbers on entry, where float32 does not hold them
        self._copy: Any = None
        self._version = -1

    def put(self, placement: Any, split: bool) -> None:
        """Its placement, of the plan in force."""
        self.placement, self.split = placement, split
        self.storage: Format = placement.storage
        self.low = self.storage is not BINARY32
        self._copy = None

    def moved(self) -> None:
        """The tensor has other numbers, whatever its version says."""
        self._copy = None

    def copy(self, core: Any) -> Any:
        """The model's copy: numbers of the storage format, in its dtype."""
        if self._copy is None or self._version != self.tensor._version:
            mode = "nearest-away" if self.split else "nearest-even"
            self._copy = core.to_format(self.tensor.detach(), self.storage, mode)
            self._version = self.tensor._version
            core.roles.pin(self._copy, WEIGHT)
        return self._copy


class Core:
    """See above. `report` is None, or what counts; `watchers` are told of every product before it is computed, `results` of what it gave."""

    def __init__(self, model: Any, plans: Plans, arch: Architecture, seed: int, strict: bool, native: tuple[str, ...], between: str,
                 tile: Optional[int] = None) -> None:
        self.model, self.plans, self.arch, self.seed, self.strict, self.allowed = model, plans, arch, seed, strict, native
        self.roles, self.paths = Roles(), Paths(model)
        self.step = self.micro = 0
        self.tile = tile  # keys of a tile of attention; None: it is materialised
        self.over = 0  # 1: optimizers have ended this step, and the next one has not begun
        self.optimizers: Any = None
        self.home: Any = MEMORY  # where its tensors lie
        self.thread = 0  # the one that is emulated
        self.within: list[str] = []  # transformations that are entered, as vmap
        self.own_scaler = False  # the caller's GradScaler has scaled a loss
        self.report: Any = None
        self.ledger = Ledger(self)
        self.math_said = "native" if between == "native" else "mpsim"
        self.watchers: list[Callable[..., None]] = [self.ledger.product]
        self.results: list[Callable[..., None]] = []
        self.calling = ""  # the operator whose products are computed
        self.operand_watchers: list[Callable[..., None]] = []
        self.notes: list[str] = []
        self.streams: dict[str, int] = {}
        self.conversions: dict[tuple[Any, Format], tuple[bool, Any]] = {}  # whether a dtype's numbers are a format's; its dtype
        self.params: dict[int, Param] = {}
        self.claims = Claims(self)
        self.between = Between(self) if between == "native" else self._mpsim()
        self.mode = Mode(self)
        self.casts_all = self.listed = self.keeps = False
        self.on_cpu = arch.is_cpu
        self.as_torch = False  # products in the dtypes that come, under torch.autocast itself

    def _mpsim(self) -> Any:
        from ._layers import Layers

        return Layers(self)

    # ---- parameters ----

    def adopt(self) -> list[Param]:
        """The parameters of the model become float32 tensors, with the roles that they have; those that have come while it is emulated, too.
        Those that are new, or have another name than before."""
        new = []
        for name, p in self.model.named_parameters():
            param = self.params.get(id(p))
            if not p.is_floating_point() or param is not None and param.name == name:
                continue
            if param is None:
                param = self.params[id(p)] = self._adopted(name, p)
            param.name, param.path = name, name.rpartition(".")[0]
            new.append(param)
        for _, b in self.model.named_buffers():
            self.roles.put(b, CONST)
        self.place(new)
        return new

    def _adopted(self, name: str, p: Any) -> Param:
        if p.device.type not in self.home.kinds:
            raise InputError(f"emulate: parameter '{name}' is on the device '{p.device.type}', the model is not")
        if p.dtype not in FORMATS:
            raise InputError(f"emulate: parameter '{name}' has the dtype {p.dtype}, expected float32, bfloat16, float16 or float64")
        param = Param(name, p)
        self._wide(param)
        return param

    def _wide(self, param: Param) -> None:
        """The parameter is a float32 tensor, and its storage is known to be its own."""
        p = param.tensor
        if p.dtype != torch.float32:
            param.original = p.data if p.dtype == torch.float64 else None
            p.data = p.data.float()
            self.note(f"parameters of {str(param.dtype)[6:]} are float32 tensors while they are emulated")
        self.roles.pin(p, WEIGHT, param)
        param.moved()

    def pinned(self) -> None:
        """Parameters whose `data` the user has replaced by another tensor are parameters all the same."""
        tags = self.roles.tags
        for param in self.params.values():
            key = param.tensor.untyped_storage()._cdata
            tag = tags.get(key)
            if tag is None or tag.param is not param and (tag.param is None or tag.param.tensor.untyped_storage()._cdata != key):
                self._wide(param)

    def place(self, only: Optional[list[Param]] = None) -> None:
        """The placements of parameters, of the plan in force. only: of these."""
        plan = self.plans.plan
        self.as_torch = self.arch.is_cpu and plan.autocast == "torch" and plan.recipe is None
        if self.as_torch and self.home.device is not None:
            raise InputError(f"emulate: arch '{self.arch.name}' is torch's own step on a CPU, and the model is on a device")
        self.casts_all = plan.casts_all and plan.compute is not BINARY32
        self.listed = plan.autocast == "torch" and plan.compute is not BINARY32 and not self.as_torch
        if only is None:
            self.keeps = False  # the policy has products in float32 among others
        ranks: dict[str, int] = {}  # of a module's largest parameter: a bias is placed as the weight beside it
        for param in self.params.values():
            ranks[param.path] = max(ranks.get(param.path, 0), param.tensor.dim())
        for param in self.params.values() if only is None else only:
            rank = ranks[param.path]
            module = self.paths.modules.get(param.path)
            kind = kind_of(module)
            placement = self.plans.of(param.path, "fprop").place(param.path, kind, rank=TABLE if kind == "embedding" else rank, weighs=True)
            param.put(placement, plan.master == "split")
            self.keeps = self.keeps or rank > 1 and kind != "embedding" and self.casts_all and placement.format["out"] is BINARY32
            if placement.kept is not BINARY32:
                with torch.no_grad():
                    param.tensor.copy_(self.to_format(param.tensor.detach(), placement.kept).float())

    def release(self) -> None:
        """The parameters have their dtypes again."""
        for param in self.params.values():
            if param.dtype != torch.float32:
                data = param.tensor.data.to(param.dtype)
                if param.original is not None:  # numbers that did not move are those of before
                    data = torch.where(data == param.original.float(), param.original, data)
                param.tensor.data = data
                if param.tensor.grad is not None:
                    param.tensor.grad = None

    def enter_weight(self, x: Any, param: Optional[Param], format: Format) -> Any:
        """A parameter, or a view of one, as it enters an operation: float32 numbers of its storage's format, then of this one."""
        if param is not None and param.low:
            x = self.presented(x).float()
        return self.to_format(x.detach() if x.requires_grad else x, format).float()

    def presented(self, x: Any) -> Any:
        """What reads a parameter sees its storage copy, in that dtype."""
        tag = self.roles.tag(x)
        if tag is None or tag.param is None or not tag.param.low or x.dtype != torch.float32:
            return x  # bytes of a storage are read as integers
        copy = tag.param.copy(self)
        if x.shape == copy.shape and x.stride() == copy.stride():
            return copy
        return copy.as_strided(x.shape, x.stride(), x.storage_offset() - tag.param.tensor.storage_offset())

    # ---- formats ----

    def to_format(self, x: Any, format: Format, mode: str = "nearest-even") -> Any:
        """Numbers of a format, in the dtype that holds them: x itself if it has such a dtype, or a narrower one."""
        key = x.dtype, format
        if key not in self.conversions:
            own = FORMATS.get(x.dtype)
            self.conversions[key] = own is None or own is format or own.within(format), DTYPES.get(format.name)
        nothing, dtype = self.conversions[key]
        if nothing:
            return x
        if mode == "nearest-even" and dtype is not None:
            return x.to(dtype)
        values = self.home.round(x.detach().float(), format, mode)
        return values.to(dtype) if dtype is not None else values

    def rounded(self, x: Any, format: Format, keep: bool = False) -> Any:
        """A result rounded to its format, in that dtype; keep: in the dtype that it has."""
        y = self.to_format(x, format)
        if keep:
            return y.to(x.dtype)
        dtype = dtype_of(format)
        return y if y.dtype == dtype else y.to(dtype)

    # ---- operators that nobody claims ----

    def native(self, func: Any, operator: Any, given: list[Any], args: Any, kwargs: Any) -> Any:
        """torch's kernel, in the dtypes that come."""
        roles = self.roles
        role, low, widest, weight = CONST, False, None, None
        for t in given:
            tag = roles.tags.get(t.untyped_storage()._cdata)
            r = ACT if tag is None else tag.role
            if r > role:
                role = r
            if tag is not None and tag.param is not None:
                weight = tag.param
                low = low or weight.low
            if r >= ACT and t.is_floating_point() and t.dim():
                widest = t.dtype if widest is None else torch.promote_types(widest, t.dtype)
        if operator.factory:
            role = CONST
        if operator.random or operator.looks_up and not self._by_weight(given):
            role = max(role, ACT)
        if role == GRAD and not self.paths.back:
            role = ACT
        if low and not operator.factory and not self._of_user(given):
            args, kwargs = self._presented_all(operator, args, kwargs)
        if self.listed and (operator.float32 and self.paths.forward or not self.paths.forward and self._listed_back()):
            args = tuple(self._float32(a) for a in args)
            if self.paths.forward:
                self.paths.mark(LISTED)
        elif weight is not None and self.paths.forward:
            mark = Marked(weight.path, "other")
            mark.extra = weight
            self.paths.mark(mark)
        if operator.alike and args[0].is_floating_point():
            args = tuple(self._in_dtype(a, args[0].dtype) for a in args)
        out = func(*args, **kwargs)
        if operator.writes:
            self._writes(operator, given)
            for t in (given[0],) if not operator.out else (kwargs[n] for n in operator.out if n in kwargs):
                roles.put(t, role)
            if operator.out or not isinstance(out, (tuple, list)):
                return out
        narrow = widest if self.casts_all and widest is not None and "dtype" not in kwargs else None
        if self.keeps and narrow is torch.float32 and operator.name in SUMS and len(given) == 2:
            self._mixed(given)
        if isinstance(out, Tensor):
            return self._tagged(operator, out, role, narrow)
        if isinstance(out, (tuple, list)):
            return type(out)(self._tagged(operator, y, role, narrow) if isinstance(y, Tensor) else y for y in out) if type(out) in (tuple, list) else out
        return out

    def _of_user(self, given: list[Any]) -> bool:
        """Whether an operator on parameters is a user's own, as of an average of weights: outside of modules, without gradients. It sees all bits."""
        return self.paths.outside() and not (torch.is_grad_enabled() and any(t.requires_grad for t in given))

    def _writes(self, operator: Any, given: list[Any]) -> None:
        """A user changes gradients that hold the policy's loss scale."""
        scale = self.optimizers.scaling.held
        if scale != 1 and given and self.roles.of(given[0]) == GRAD and self.paths.outside() and "zero" not in operator.name:
            self.note(f"gradients were changed, as by a clip, while they held the loss scale {scale:g}; e.unscale() before it divides them by the scale")

    def _mixed(self, given: list[Any]) -> None:
        """A sum of activations of two formats, as where a module of `keep_fp32` gives one of them."""
        if given[0].dtype != given[1].dtype and self.paths.stack and all(t.dim() and t.is_floating_point() and self.roles.of(t) == ACT for t in given):
            low = next((str(t.dtype)[6:] for t in given if t.dtype is not torch.float32), "")
            self.note(f"sums of float32 and {low} activations are float32, as torch promotes them: no policy names a plain x + y; `mpsim train` "
                      f"rounds its layers hN.add1 and hN.add2 to {self.plans.plan.compute.name} unless keep_fp32 names them")

    @staticmethod
    def _in_dtype(a: Any, dtype: Any) -> Any:
        """Numbers in the dtype of what they are written into: these operators promote nothing."""
        return a.to(dtype) if isinstance(a, Tensor) and a.is_floating_point() and a.dtype != dtype else a

    def _by_weight(self, given: list[Any]) -> bool:
        """Whether a table is looked up by what is made of a weight, as codes of stored weights are: that is a weight, too."""
        found = [self.roles.of(t) for t in given if not t.is_floating_point()]
        return bool(found) and max(found) == WEIGHT

    def _tagged(self, operator: Any, y: Any, role: int, narrow: Any) -> Any:
        if y.layout is not torch.strided:
            raise self.refused(operator.name, f"a tensor of the layout {str(y.layout)[6:]}; only dense ones are emulated")
        if narrow is not None and y.is_floating_point() and y.dtype != narrow and torch.promote_types(y.dtype, narrow) == y.dtype:
            y = y.to(narrow)
        self.roles.put(y, role)
        return y

    def _listed_back(self) -> bool:
        return self.paths.found() is LISTED

    def _float32(self, a: Any) -> Any:
        if isinstance(a, Tensor):
            return a.float() if a.dtype in (torch.bfloat16, torch.float16) else a
        return type(a)(self._float32(x) for x in a) if type(a) in (list, tuple) else a

    def _presented_all(self, operator: Any, args: Any, kwargs: Any) -> Any:
        def shown(a: Any) -> Any:
            if isinstance(a, Tensor):
                return self.presented(a)
            return type(a)(shown(x) for x in a) if type(a) in (list, tuple) else a

        return (tuple(a if i in operator.writes else shown(a) for i, a in enumerate(args)),
                {k: v if k in operator.out else shown(v) for k, v in kwargs.items()})

    # ---- steps ----

    def stepped(self) -> None:
        """Optimizers have stepped."""
        if self.report is not None:
            self.report.stepped(self.optimizers)
        self.over = 1

    def advance(self) -> bool:
        """The next step begins. Whether another plan comes in force with it."""
        self.claims.products.histories.update()
        self.paths.end_step()
        self.step, self.micro, self.over = self.step + 1, 0, 0
        self.streams.clear()
        if not self.plans.begin(self.step):
            return False
        self.place()
        return True

    # ---- streams, notes, refusals ----

    def stream(self, name: str) -> int:
        """The stream of random bits of a name in this step, as `mpsim train` has it."""
        name = f"{name}/{self.micro}" if self.micro else name
        stream = self.streams.get(name)
        if stream is None:
            if len(self.streams) > STREAMS:
                self.streams.clear()
            stream = self.streams[name] = stream_of(self.step, name)
        return stream

    def note(self, line: str) -> None:
        if line not in self.notes:
            self.notes.append(line)

    def where(self) -> str:
        path = self.paths.here().path
        mark = None if self.paths.forward else self.paths.found()
        path = getattr(mark, "path", path)
        return f"module '{path}'" if path else "the model itself"

    def refused(self, name: str, why: str) -> InputError:
        return InputError(f"emulate: {name} in {self.where()} ({line_of_user()}): {why}")

    def located(self, error: Error, name: str) -> Error:
        text = str(error)
        return error if text.startswith("emulate: ") else type(error)(f"emulate: {name} in {self.where()} ({line_of_user()}): {text}")

    def unclaimed(self, operator: Any) -> None:
        """An operator that has a product inside, or may have: it would be computed natively."""
        name = operator.name
        if any(name == a or a.endswith("*") and name.startswith(a[:-1]) for a in self.allowed):
            self.ledger.refused(name, self.where(), line_of_user(), ASKED)
            return
        why = "its products would be computed natively" if operator.hidden else "an operator outside aten, whose products nobody sees"
        self.ledger.refused(name, self.where(), line_of_user(), why)
        if self.strict:
            raise self.refused(name, f"{why}; native=['{name}'] allows it")

    def ran_natively(self, record: Any, why: str) -> None:
        """A product that torch computes itself."""
        for watcher in self.watchers:
            watcher(record, "native", (), (), (), (), why, None, None)

    def other_numbers(self, operator: Any, x: Any) -> None:
        """A product of numbers that are not floating-point ones: of integers, which no arithmetic here changes, or of complex ones."""
        if x.is_complex():
            raise self.refused(operator.name, f"a product of {str(x.dtype)[6:]}; only real numbers are emulated")
        self.ledger.refused(operator.name, self.where(), line_of_user(), INTEGERS)

    def stepping(self, operator: Any) -> bool:
        """Whether an operator is of an optimizer that runs natively, and not of its closure: its products are counted."""
        name = self.optimizers.runs_natively() if self.paths.outside() else None
        if name is not None and operator.claim is not None:
            self.ledger.refused(operator.name, f"the optimizer {name}", line_of_user(), ASKED)
        return name is not None

    def saw(self, record: Any, kind: str, slots: Any, views: Any, entered: Any, formats: Any, model: Any, out: Any, to: Any) -> None:
        """A product, before it is computed."""
        for watcher in self.watchers:
            watcher(record, kind, slots, views, entered, formats, model, out, to)

    def gave(self, record: Any, kind: str, slots: Any, out: Any, to: Any) -> None:
        """What a product gave."""
        for watcher in self.results:
            watcher(record, kind, slots, out, to)

    def entered(self, record: Any, kind: str, word: str, view: Any, entering: Any, operand: Any) -> None:
        """An operand that a recipe has quantised."""
        for watcher in self.operand_watchers:
            watcher(record, kind, word, view, entering, operand)


LISTED = Marked("", "float32")


def kind_of(module: Any) -> Optional[str]:
    """The kind of a module that torch has; None: its name and the rank of its weight tell."""
    nn = torch.nn
    for kind, classes in (("linear", (nn.Linear, nn.Bilinear)), ("conv", (nn.modules.conv._ConvNd,)), ("batchnorm", (nn.modules.batchnorm._BatchNorm,)),
                          ("norm", (nn.LayerNorm, nn.GroupNorm)), ("embedding", (nn.Embedding, nn.EmbeddingBag))):
        if isinstance(module, classes):
            return kind
    rms = getattr(nn, "RMSNorm", None)
    return "norm" if rms is not None and isinstance(module, rms) else None
