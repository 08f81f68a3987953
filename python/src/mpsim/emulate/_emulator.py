"""mpsim.emulate: a user's model in the arithmetic of a policy."""
from __future__ import annotations

import contextlib
import threading
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .._error import InputError, whole_of
from . import _refusals
from ._attention import autocast
from ._audit import Audit
from ._bisect import Bisection, bisect
from ._compare import Comparison, compare
from ._core import Core
from ._counting import Counting
from ._doctor import Doctor, examine
from ._homes import home_of
from ._optimizer import Optimizers
from ._plans import Architecture, Plans
from ._products import DTYPES
from ._record import ALL, Trace, record
from ._report import Report
from ._roles import GRAD
from ._scaling import Scaling

RUNNING: list["Emulator"] = []


class Emulator(contextlib.AbstractContextManager["Emulator"]):
    """What `mpsim.emulate` gives. A context manager: inside of it the model computes as the policy says.

    notes: lines on what a reader of the results must know.
    step, micro: the numbers of the current step, from 0, and of the micro-batch in it.
    """

    def __init__(self, model: Any, policy: Any, arch: Any, seed: int, overrides: Optional[Mapping[str, Any]], strict: bool, between: str,
                 native: Sequence[str], fused: Optional[Mapping[str, str]], attention: str, tf32: bool) -> None:
        if not isinstance(model, torch.nn.Module):
            raise InputError(f"emulate: expected a torch.nn.Module, found {type(model).__name__}")
        if between not in ("native", "mpsim"):
            raise InputError(f"between: expected 'native' or 'mpsim', found {between!r}")
        self.model = model
        self._judged()
        layers = [name for name, module in model.named_modules() if multiplies(module)]
        plans = Plans(policy, overrides, layers, [name for name, _ in model.named_modules()])
        if arch == "torch" and attention != "whole":
            raise InputError("arch 'torch' has no tiles of attention: attention='whole'")
        self.core = Core(model, plans, Architecture(arch, tf32), whole_of(seed, "seed"), bool(strict), tuple(native), between, tile_of(attention))
        self._waits = False  # a training pass has been made, and no backward pass of it
        self.scaling = Scaling()
        self.optimizers = self.core.optimizers = Optimizers(self.core, self.scaling, native)
        self.fused, self.between = dict(fused or {}), between
        self._closing: list[Callable[[], None]] = []  # what ends with the emulation
        self.asked: dict[str, Any] = {}  # the arguments of `emulate`
        self._open = False
        self._undo = contextlib.ExitStack()

    # ---- the context ----

    def __enter__(self) -> "Emulator":
        if RUNNING:
            raise InputError("emulate: another emulation runs; one at a time")
        self._judged()
        self._at_home()
        try:
            self.core.params.clear()
            self.core.paths.named(self.model)
            self.core.adopt()
            self.core.paths.clear()
            self.optimizers.place(self.core.plans.plan)
            self._listen()
        except BaseException:
            self._leave()
            raise
        self._open = True
        return self

    def _at_home(self) -> None:
        """Where the model lies. What is copied to memory is said."""
        core = self.core
        core.home = home_of(self.model)
        core.mode.operators.clear()
        core.mode.known.clear()
        if core.home.device is not None and core.tile is not None:
            core.home.tiles.note = core.note

    def _judged(self) -> None:
        for name, path, why in _refusals.in_model(self.model):
            raise InputError(f"emulate: {name} at '{path}': {why}" if path else f"emulate: {name}: {why}")
        for name, p in self.model.named_parameters():
            if torch.nn.parameter.is_lazy(p):
                raise InputError(f"emulate: parameter '{name}' has no shape yet: call the model once before it is emulated")

    def _grown(self) -> None:
        """Modules or parameters were registered somewhere: those of the model are emulated from here on."""
        self._judged()
        with _disable_current_modes():
            self.core.paths.named(self.model)
            self.optimizers.keep(self.core.adopt())

    def _listen(self) -> None:
        """From here on torch's operators come here."""
        core, plan = self.core, self.core.plans.plan
        with contextlib.ExitStack() as stack:  # what is done is undone, whatever fails
            self._undo = stack
            RUNNING.append(self)
            stack.callback(RUNNING.remove, self)
            self._later(*_refusals.watch(core))
            self._later(*autocast(core))
            stack.callback(core.paths.close)
            core.paths.open(core.refused, self._begins, self._grown)
            self._wrap_backward()
            self._watch_scaler()
            self._flags()
            if self.between == "mpsim":
                from ._fused import fuse

                self._later(*fuse(core, self.fused))
            elif self.fused:
                raise InputError("fused: for between='mpsim' alone")
            torch.clear_autocast_cache()
            if core.as_torch and plan.compute.name in ("bf16", "fp16"):
                stack.enter_context(torch.autocast("cpu", DTYPES[plan.compute.name]))
            stack.enter_context(core.mode)
            self.optimizers.open()
            stack.callback(self.optimizers.close)
            self._undo = stack.pop_all()

    def _later(self, *undo: Callable[[], None]) -> None:
        for each in undo:
            self._undo.callback(each)

    def __exit__(self, *error: Any) -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(self._leave)
            for close in reversed(self._closing):
                stack.callback(close)
            self._closing = []

    def _leave(self) -> None:
        """torch and the model are as they were."""
        self._undo.close()
        self.core.release()
        self.core.roles.clear()
        self._open = False

    def _flags(self) -> None:
        """Fast paths of torch that hide products: LSTM of oneDNN, nn.Transformer's evaluation."""
        for undo in self.core.home.flags():
            self._later(undo)
        mha = torch.backends.mha
        fast = mha.get_fastpath_enabled()
        mha.set_fastpath_enabled(False)
        self._later(lambda: mha.set_fastpath_enabled(fast))
        functions: Any = torch._VF
        lstm = functions.lstm

        def without_onednn(*args: Any) -> Any:
            kept = torch._C._get_mkldnn_enabled()
            torch._C._set_mkldnn_enabled(False)
            try:
                return lstm(*args)
            finally:
                torch._C._set_mkldnn_enabled(kept)

        functions.lstm = without_onednn
        self._later(lambda: setattr(functions, "lstm", lstm))
        rnn: Any = torch.nn.RNNBase
        check = rnn.check_input

        def check_shapes(module: Any, input: Any, batch_sizes: Any) -> None:
            """An input may be narrower than the weights, which are float32 tensors."""
            check(module, input.detach().to(module._flat_weights[0].dtype), batch_sizes)

        rnn.check_input = check_shapes
        self._later(lambda: setattr(rnn, "check_input", check))
        own: Any = torch.nn.functional
        bilinear = own.bilinear
        own.bilinear = lambda a, b, weight, bias=None: bilinear(a.to(weight.dtype), b.to(weight.dtype), weight, bias)
        self._later(lambda: setattr(own, "bilinear", bilinear))
        self._later(quiet("Mismatch dtype between input and weight"))  # of rms_norm, whose weight is a float32 tensor
        for dims in (1, 2, 3):
            for module in (torch, torch.nn.functional):
                self._later(mixed_convolutions(module, f"conv{dims}d", dims))

    def _begins(self, whole: bool) -> None:
        """The model is called, or one of its modules by itself, as a discriminator is. With the whole model a pass begins."""
        self._advance()
        self.core.pinned()
        if not whole:
            self.core.paths.begin_pass(calls=True)
            if self.core.as_torch and torch._C._current_graph_task_id() == -1:
                torch.clear_autocast_cache()  # optimizers may have stepped
            return
        training = torch.is_grad_enabled() and self.model.training
        self.core.paths.begin_pass(calls=training and self._waits)
        self._waits = training
        torch.clear_autocast_cache()

    def _wrap_backward(self) -> None:
        """Gradients begin with what the caller hands to the engine."""
        core, outer = self.core, self
        run, put = _engine()

        def engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != core.thread:
                raise core.refused("backward", "it runs in another thread, whose operations are not seen")
            if core.within:
                raise core.refused("backward", f"inside of {core.within[-1]}, which is not emulated yet")
            if len(args) > 2 and args[2]:
                raise core.refused("backward", "create_graph=True: double backward, a gradient of gradients, is not emulated yet")
            if torch._C._current_graph_task_id() == -1:
                outer._before_backward(t_outputs, args, kwargs)
            for x in args[0] if args else ():
                if isinstance(x, torch.Tensor):
                    core.roles.put(x, GRAD)
            try:
                with torch.autocast("cpu", enabled=False), core.home.without_autocast():
                    return run(t_outputs, *args, **kwargs)
            finally:
                if torch._C._current_graph_task_id() == -1:
                    outer._after_backward(bool(args[1]) if len(args) > 1 else bool(kwargs.get("retain_graph")))

        put(engine_run_backward)
        self._later(lambda: put(run))

    def _watch_scaler(self) -> None:
        """The scale of a caller's own GradScaler, which the report divides losses by."""
        outer, scaler = self, getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        old = scaler.scale

        def scale(self: Any, outputs: Any) -> Any:
            made = old(self, outputs)
            if self.is_enabled():
                outer.core.own_scaler = True
                if outer.core.report is not None:
                    outer.core.report.root_scale = float(self.get_scale())
            return made

        setattr(scaler, "scale", scale)
        self._later(lambda: setattr(scaler, "scale", old))

    def _advance(self) -> None:
        """Another step begins, if optimizers have ended the one before."""
        core = self.core
        if core.over:
            self._waits = False
        if core.over and core.advance():
            self.optimizers.place(core.plans.plan)

    def _before_backward(self, roots: Any, args: Any, kwargs: Any) -> None:
        self._advance()
        report = self.core.report
        if report is not None and self._accumulates(args, kwargs) and all(root.numel() == 1 for root in roots):
            with _disable_current_modes():
                given = args[0] if args else kwargs.get("grad_tensors", ())
                weights = [1.0 if g is None else float(g) / self.scaling.factor for g in given] or [1.0] * len(roots)
                if not any(p.tensor.grad is not None for p in self.core.params.values()):
                    report.dropped()
                report.loss(sum(weight * float(root.detach()) for weight, root in zip(weights, roots)))

    def _accumulates(self, args: Any, kwargs: Any) -> bool:
        """Whether a backward pass gives gradients of parameters: that of `torch.autograd.grad` may be of inputs alone."""
        inputs = args[3] if len(args) > 3 else kwargs.get("inputs", ())
        return not inputs or any(id(x) in self.core.params for x in inputs)

    def _after_backward(self, kept: bool) -> None:
        core = self.core
        core.paths.end_backward(kept)
        core.micro += 1
        core.paths.begin_pass()
        self._waits = False

    # ---- a step ----

    def _inside(self, call: str) -> None:
        if not self._open:
            raise InputError(f"{call}: the emulation is not entered: call the model and {call} inside of `with mpsim.emulate(...) as e:`")

    def backward(self, loss: Any, **how: Any) -> None:
        """loss.backward() of the loss times the policy's loss scale."""
        self._inside("e.backward")
        self.scaling.backward(loss, **how)

    def step(self, *optimizers: Any, closure: Any = None) -> Any:
        """A step of optimizers whose gradients alone are checked and clipped together; `optimizer.step()` does it with all that are there."""
        self._inside("e.step")
        return self.optimizers.step(*optimizers, closure=closure)

    def unscale(self) -> None:
        """Checks and unscales the gradients before the step, so that the caller can read or clip them."""
        self.optimizers.unscale()

    @property
    def steps(self) -> int:
        """Steps that are over."""
        return self.core.step + self.core.over

    @property
    def scale(self) -> float:
        """The loss scale of the next backward pass; 1 where the policy has none."""
        return self.scaling.scale

    @property
    def norm(self) -> float:
        """The norm of all gradients in the last step, unscaled, before clipping; NaN where nothing clips."""
        return self.optimizers.norm

    def state_dict(self) -> dict[str, Any]:
        """What a run needs to go on with the bits of one that was not interrupted, beside the state_dicts of model and optimizers."""
        core = self.core
        return {"mpsim.emulate": 1, "policy": core.plans.policy.name, "seed": core.seed, "step": self.steps,
                "histories": core.claims.products.histories.state_dict(core.over), "optimizers": self.optimizers.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was made, under the same policy and seed."""
        core = self.core
        for name, own in (("policy", core.plans.policy.name), ("seed", core.seed)):
            if state.get(name) != own:
                raise InputError(f"state: expected the {name} {own!r}, found {state.get(name)!r}")
        core.over, core.step, core.micro = 0, int(state["step"]), 0
        core.streams.clear()
        core.plans.begin(core.step)
        core.place()
        self.optimizers.place(core.plans.plan)
        core.claims.products.histories.load_state_dict(state["histories"])
        self.optimizers.load_state_dict(state["optimizers"])

    # ---- what users read ----

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """What runs inside is not part of this emulation, which goes on behind it."""
        listens = self in RUNNING
        if listens:
            self._undo.close()
        try:
            yield
        finally:
            if listens:
                self._listen()

    def again(self, **changes: Any) -> "Emulator":
        """Another emulation of the same model, as this one was made but for the changes."""
        return emulate(self.model, **{**self.asked, **changes})

    def doctor(self, batch: Any, loss: Optional[Callable[[Any], Any]] = None) -> Doctor:
        """One step that changes nothing: what a strict emulation refuses, and what torch computes between the products.

        batch: the model's input (a tensor, a tuple of arguments, a dict of keywords), or a function that returns the loss. loss: a
        function of the model's output; None: the output's `.loss`, or the output itself. Works before `with`, and inside.
        """
        return examine(self, batch, loss)

    def compare(self, policy: Any, batch: Any, loss: Optional[Callable[[Any], Any]] = None, **changes: Any) -> Comparison:
        """The same step under this policy and under another one, which change nothing: results of products and gradients of parameters,
        the worst first. batch, loss: as of `doctor`. changes: other arguments of `emulate` for the second run, as arch="ampere"."""
        return compare(self, policy, batch, loss, changes)

    def bisect(self, metric: Callable[..., Any], baseline: Any = "fp32", threshold: Optional[float] = None) -> Bisection:
        """The modules and kinds of products that break a run: all others are turned back to the baseline by halves.

        metric: a function of the emulation, or of nothing, that computes with the model (a few steps, say) and gives True where the run is
            good, or a number, the smaller the better. It makes its own optimizer; the model is put back after each run.
        threshold: the largest number that is good; None: the middle between the number under this policy and that under the baseline.
        """
        return bisect(self, metric, baseline, threshold)

    def record(self, folder: Any, every: int = 1, consecutive: int = 1, kinds: Sequence[str] = ALL, max_bytes: Optional[int] = None) -> Trace:
        """Record a trace in a folder, for `mpsim replay`, `stat`, `diff`, `advise` and `report`: operands and results of products, weights,
        masters, gradients and moments.

        every, consecutive: the steps whose remainder by `every` is below `consecutive`; steps count from 1. kinds: of tensors; moments come
        always. max_bytes: recording ends before the trace grows beyond.
        """
        trace = record(self, folder, every, consecutive, kinds, max_bytes)
        self._closing.append(trace.close)
        return trace

    def report(self) -> Report:
        """What was counted so far: underflow, overflow, saturation, SQNR, largest magnitudes and scales by tensor and step, updates that
        were lost, and the history of the loss scale."""
        return Report(self, self.core.report)

    def audit(self) -> Audit:
        """Every product so far, with the row of its model, and every operator of torch that was called."""
        return Audit(self.core)

    def on_operand(self, function: Callable[..., Any]) -> None:
        """Calls a function with what each recipe makes of an operand, by keywords: path, kind (of the product that it was made for), role ("act",
        "weight", "agrad"), transposed, input, given, codes, scales, values (arrays of rows x depth), tensor_scale, recipe."""
        from ._operands import quantised

        if home_of(self.model).device is not None:
            raise InputError("on_operand: operands are read in memory, and the model is on a device")

        def watch(record: Any, kind: str, word: str, view: Any, entering: Any, operand: Any) -> None:
            with _disable_current_modes():
                function(path=record.path, kind=kind, role=word.partition(".")[0], transposed=word.endswith(".qt"),
                         **quantised(view, entering, operand))

        self.core.operand_watchers.append(watch)

    def weight(self, parameter: Any) -> Any:
        """The model's copy of a parameter: its numbers in the format that the policy stores parameters in, as float32."""
        param = self.core.params.get(id(parameter))
        if param is None:
            raise InputError("weight: expected a parameter of the model")
        return param.copy(self.core).float() if param.low else parameter.detach()

    @property
    def notes(self) -> list[str]:
        """Lines on what a reader of the results must know."""
        return self.core.notes


def quiet(message: str) -> Callable[[], None]:
    """A warning of torch is not shown. What is returned undoes that."""
    before = list(warnings.filters)
    warnings.filterwarnings("ignore", message=message)
    mine = [each for each in warnings.filters if each not in before]

    def undo() -> None:
        for each in mine:
            if each in warnings.filters:
                warnings.filters.remove(each)  # type: ignore[attr-defined]

    return undo


def mixed_convolutions(module: Any, name: str, dims: int) -> Callable[[], None]:
    """aten's composite refuses a bias whose dtype is not the input's, before any mode sees it: the operator behind it is called then.
    (Autocast makes them alike.) What is returned undoes that."""
    convolve = getattr(module, name)

    def mixed(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        if bias is None or isinstance(padding, str) or input.dtype == bias.dtype or torch.is_autocast_enabled("cpu"):
            return convolve(input, weight, bias, stride, padding, dilation, groups)
        batched = input.dim() == dims + 2
        stride, padding, dilation = ([v] * dims if isinstance(v, int) else list(v) * (dims if len(v) == 1 else 1) for v in (stride, padding, dilation))
        made = torch.ops.aten.convolution(input if batched else input.unsqueeze(0), weight, bias, stride, padding, dilation, False, [0] * dims, groups)
        return made if batched else made.squeeze(0)

    setattr(module, name, mixed)
    return lambda: setattr(module, name, convolve)


def _engine() -> tuple[Callable[..., Any], Callable[[Any], None]]:
    """What torch begins a backward pass with, and how another function is put in its place."""
    import torch.autograd.graph as graph

    autograd: Any = torch.autograd

    def put(function: Any) -> None:
        graph._engine_run_backward = function
        autograd._engine_run_backward = function

    return graph._engine_run_backward, put


def tile_of(attention: Any) -> Optional[int]:
    """Keys of a tile: of "tiled" 64, of "tiled:N" N; None for "whole"."""
    word, colon, number = str(attention).partition(":")
    if word == "whole" and not colon:
        return None
    if word != "tiled" or colon and not number.isdigit() or number == "0":
        raise InputError(f"attention: expected 'whole', 'tiled' or 'tiled:N', found {attention!r}")
    return int(number or 64)


def multiplies(module: Any) -> bool:
    """Whether a module has a matrix of its own that it multiplies with: policies that keep the first and the last layers count these."""
    if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)):
        return False
    return any(p.dim() > 1 for p in module.parameters(recurse=False))


def emulate(model: Any, policy: Any = "pytorch-amp-bf16", *, arch: str = "hopper", seed: int = 0, overrides: Optional[Mapping[str, Any]] = None,
            strict: bool = True, between: str = "native", native: Sequence[str] = (), fused: Optional[Mapping[str, str]] = None,
            attention: str = "whole", tf32: bool = False, report: Any = True) -> Emulator:
    """A model of PyTorch in the arithmetic of a policy: a context manager. The model computes so inside its block.

    model: a torch.nn.Module in memory or on a CUDA device (doc/howto/emulate-on-a-gpu.md); it does not change.
    policy: the name of a bundled policy (`mpsim help policies`), a file, a dict of its keys ({"precision": "fp16", "clip": 1.0}), or a
        precision ("bf16").
    arch: how products are computed: an architecture of `mpsim train` ("hopper", "blackwell-scaled", "cdna3"), one accumulation model of
        `mpsim dot` for all products ("exact", "fma"), or "torch": mpsim casts the operands, and torch multiplies them in float32.
    seed: the seed of random bits, which depend on it, the module, the role, the step, the micro-batch and the element.
    overrides: other policies for modules and products: {"lm_head": "bf16", r"layers\\.(0|1)\\..*": "te-mxfp8", "*/dgrad": "bf16"}. A key is a
        shell pattern or a regular expression of the module's name; /fprop, /dgrad or /wgrad at its end selects a product.
    strict: True: a product that mpsim does not recognise is an error that names operator, module and line. False: torch computes it, and
        `audit` names it.
    native: names of operators and classes of optimizers that torch may compute, as ["aten::_cdist_forward"].
    between: who computes between the products: "native", torch's kernels, or "mpsim", the same bits on every machine.
    fused: with between="mpsim": classes of modules that are computed as one operation, as {"LlamaRMSNorm": "rms_norm"}.
    attention: scaled_dot_product_attention with all scores at once ("whole"), or in tiles of 64 keys ("tiled") or N keys ("tiled:N").
    tf32: binary32 products on tensor cores, in tf32.
    report: steps with statistics: True: 1, 2, 5, 10, 20, 50 and each hundredth; n: the first and each that n divides; or a set of steps.
        Other steps count only what roundings lose. False: nothing is counted.

    >>> layer = torch.nn.Linear(4, 2)
    >>> with mpsim.emulate(layer, "te-mxfp8", arch="blackwell-scaled") as e:
    ...     loss = layer(torch.ones(3, 4)).float().square().sum()
    ...     e.backward(loss)
    >>> [(p.kind, p.model) for p in e.audit()]
    [('fprop', 'blackwell-tcgen05-mxf8f6f4'), ('wgrad', 'blackwell-tcgen05-mxf8f6f4')]
    """
    asked = {name: value for name, value in locals().items() if name != "model"}
    e = Emulator(model, policy, arch, seed, overrides, strict, between, native, fused, attention, tf32)
    e.asked = asked
    e.optimizers.counting = report is not False and report is not None
    if e.optimizers.counting:
        e.core.report = Counting(e.core, report)
    return e
