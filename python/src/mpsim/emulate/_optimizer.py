"""Optimizers under a policy: the user's class and its groups decide the rule and the numbers, the policy formats, moments and rounding.

Hooks of every optimizer take the gradients of the model's parameters away, so that torch's own step moves nothing, and step by mpsim/update.h;
learning-rate schedulers, closures and GradScaler see a step. Moments lie in the optimizer's own state under torch's names, so that its
state_dict has them. Before the first step after a backward all gradients that it wrote are checked, unscaled and clipped together.

`context` has: params, by id(parameter) an object with name and placement; seed; step, from 0; note(line). Of one that has them also
stepped(), called once when the first optimizer has stepped after a backward (step may change with the next pass), and on_cpu, whether the emulated machine is a CPU.
"""
from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from inspect import unwrap
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional
from weakref import WeakKeyDictionary

import torch
from torch.optim import optimizer as _torch

from .._error import Error, InputError
from .._library import ENOMEM, CFormat, CRng, lib, text
from .._optim import ALGORITHMS, STORES, CMuon, COptim, CStates, CVariant
from .._policy import CPlacement, Plan
from .._threads import pool
from ._homes import MEMORY
from ._rules import KAHAN, STATES, Rule, algorithm_of, implied_variant, name_of, numbers_of, rule_of, set_numbers, unsupported
from ._scaling import BEFORE_UNSCALE, Scaling
from ._streams import stream_of

M, V, VMAX, NEEDS_KAHAN = 1, 2, 4, 8
STOCHASTIC = STORES.index("stochastic")
NORM = "norm of all gradients"
NOT_SCALED = "loss.backward() was called, and not e.backward(loss): the policy's loss scaler did not take part"
OWN_SCALER = "the script's own GradScaler scaled the loss: the policy's loss scaler did not take part"
ADJUST = {None: 0, "original": 0, "match_rms_adamw": 1, "spectral_unclamped": 2}


class CTensors(ctypes.Structure):
    _fields_ = [(name, c_void_p) for name in ("param", "grad", "m", "v", "vmax", "kahan")] + [("n", c_size_t)]


class CUpdate(ctypes.Structure):
    _fields_ = [("optim", POINTER(COptim)), ("muon", POINTER(CMuon)), ("states", POINTER(CStates)), ("rng", POINTER(CRng)), ("step", c_uint64),
                ("rows", c_size_t), ("cols", c_size_t), ("t", CTensors), ("updates", c_uint64), ("lost", c_uint64)]


class CGradient(ctypes.Structure):
    _fields_ = [("format", POINTER(CFormat)), ("x", c_void_p), ("y", c_void_p), ("n", c_size_t), ("found", c_uint32)]


class CRules(ctypes.Structure):
    _fields_ = [("unscale", c_int), ("clip", c_int), ("max_norm", c_double), ("variant", POINTER(CVariant)), ("clip_scaled", c_int)]


class CUnscaling(ctypes.Structure):
    _fields_ = [("before", c_double), ("in_optimizer", c_double)]


class CReadied(ctypes.Structure):
    _fields_ = [("norm", c_double), ("clipped", c_int), ("in_optimizer", c_double)]


# by their names in C, for the test that compares them with the headers
STRUCTURES = {"mpsim_optim_tensor": CTensors, "mpsim_update": CUpdate, "mpsim_gradient": CGradient, "mpsim_step_rules": CRules,
              "mpsim_unscaling": CUnscaling, "mpsim_readied": CReadied}

for _name, (_restype, _argtypes) in {
        "unscaling_of": (CUnscaling, [POINTER(CRules), c_double]),
        "gradients_check": (c_int, [POINTER(CGradient), c_size_t, c_int, c_int, c_double, c_void_p, POINTER(c_int64)]),
        "gradients_move": (c_int, [POINTER(CRules), POINTER(CGradient), c_size_t, c_double, c_double, c_void_p, POINTER(CReadied)]),
        "optim_placed": (COptim, [POINTER(COptim), POINTER(CPlacement)]),
        "placement_state": (POINTER(CFormat), [POINTER(CPlacement), c_uint64]),
        "optim_needs": (ctypes.c_uint, [POINTER(COptim), POINTER(CFormat)]),
        "optim_elements": (c_uint64, [POINTER(COptim), ctypes.c_uint, c_uint64]),
        "states_keep": (c_int, [POINTER(CStates), c_void_p, c_void_p, c_void_p, c_void_p, c_size_t]),
        "update_run": (c_int, [POINTER(CUpdate), c_size_t, c_int, c_void_p, POINTER(c_size_t)]),
        "muon_init": (None, [POINTER(CMuon), c_int, POINTER(CVariant)]),
        "muon_factor": (c_double, [POINTER(CMuon), c_size_t, c_size_t])}.items():
    _function = getattr(lib, "mpsim_" + _name)
    _function.restype, _function.argtypes = _restype, _argtypes


def _check(status: int, what: str) -> None:
    if status == ENOMEM:
        raise MemoryError(what)
    if status:
        raise Error(f"{what}: {text(lib.mpsim_status_string(status))}")


class Lost(NamedTuple):
    """Elements that a step in binary64 would have moved, and those of them that did not move."""

    updates: int
    lost: int


class Checked(NamedTuple):
    """Gradients that were checked and unscaled: of which parameters, by which scale, and what they have been divided by."""

    parameters: list[Any]
    scale: float
    unscaled: float


class Settings:
    """The rule of a group for parameters of one placement: what is looked up once."""

    def __init__(self, optim: COptim, muon: Optional[CMuon], states: Any, algorithm: str) -> None:
        self.optim, self.muon, self.states, self.algorithm = optim, muon, states, algorithm


class Held:
    """A gradient while a step runs: where it lies as one array, and where it goes back to."""

    __slots__ = ("parameter", "grad", "flat")

    def __init__(self, parameter: Any) -> None:
        self.parameter, self.grad = parameter, parameter.grad
        self.flat = _flat(self.grad)


def _flat(x: Any) -> Any:
    """A tensor as contiguous float32: itself, if it lies so."""
    return x.detach() if x.dtype == torch.float32 and x.is_contiguous() else x.detach().float().contiguous()


def _turned(x: Any, last: Any) -> Any:
    """A kernel whose channels lie last in memory, as it lies there: elements are counted so, as in `mpsim train`."""
    return x if last is None else x.movedim(1, -1)


def _channels_last(p: Any) -> Any:
    """The memory format of a kernel whose channels lie last; None for others."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(p.dim())
    return last if last is not None and not p.is_contiguous() and p.is_contiguous(memory_format=last) else None


class Optimizers:
    """Steps of the user's optimizers on the parameters of a context.

    counting: count updates that are lost, which takes twice the time of the step; lost: by parameter, of all steps; lost_now: of the last one.
    norm, clipped: of the last step. native: names of classes that may run natively where the library has no such rule.
    """

    def __init__(self, context: Any, scaling: Optional[Scaling] = None, native: Iterable[str] = (), counting: bool = True) -> None:
        self.context, self.scaling = context, scaling or Scaling()
        self.native, self.counting = tuple(native), counting
        self.lost: dict[str, Lost] = {}
        self.lost_now: dict[str, Lost] = {}
        self.norm, self.clipped, self.skipped = float("nan"), False, False
        self._plan: Optional[Plan] = None
        self._checked: Optional[Checked] = None  # gradients that are to be clipped yet
        self._in_optimizer, self._at, self._told, self.started = 1.0, 0, True, False
        self._settings: dict[tuple[Any, ...], Settings] = {}
        self._taken: dict[int, list[tuple[Any, Any]]] = {}
        self._scope: Optional[set[int]] = None
        self._hooks: list[Any] = []
        self.stepped_now: list[str] = []  # names of the optimizers that have stepped since the last check
        self._names: Any = WeakKeyDictionary()
        self.natively: list[tuple[str, Any]] = []  # optimizers that run natively, and the code of their steps

    # ---- hooks ----

    def open(self) -> None:
        """From now on all optimizers of the process are looked at."""
        self._hooks = [_torch.register_optimizer_step_pre_hook(self._before), _torch.register_optimizer_step_post_hook(self._after)]

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._taken = [], {}

    def place(self, plan: Plan) -> None:
        """A plan comes in force: its scaler, its formats of moments; parameters that are kept in few bits become such numbers."""
        self._plan = plan
        self._settings = {}
        self.scaling.place(plan.scaler)
        self.keep(self.context.params.values())

    def keep(self, params: Iterable[Any]) -> None:
        """Parameters that are kept in few bits become such numbers."""
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            for param in params:
                states = param.placement.c.states
                if states and param.tensor.requires_grad:
                    self._keep(param.tensor, states)

    def _keep(self, p: Any, states: Any) -> None:
        x = _flat(p).cpu()
        _check(lib.mpsim_states_keep(states, x.data_ptr(), None, None, None, x.numel()), "optimizer: states")
        _put(p, x)

    def _before(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        ours = [p for group in optimizer.param_groups for p in group["params"] if id(p) in self.context.params]
        if not ours or isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
            return None  # of another model; or a wrapper, whose optimizer has its own step
        self._strangers(optimizer)
        rule = self._rule(optimizer)
        result = _closed(args, kwargs) if rule else None
        if not rule and self.scaling.scale != 1 and (len(args) > 1 or kwargs.get("closure") is not None):
            raise InputError(f"emulate: optimizer {name_of(optimizer)} calls a closure while it runs natively: its gradients would hold the loss scale "
                             f"{self.scaling.scale:g}; a policy without one is needed")
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            skip = self._settle(optimizer)
            self._said(optimizer, ours)
            if rule and not skip:
                self._step(optimizer, rule)
            self._take(optimizer, ours if rule or skip else [])
        if rule is None:
            self.natively.append((name_of(optimizer), unwrap(type(optimizer).step).__code__))
        return result

    def _strangers(self, optimizer: Any) -> None:
        """An optimizer of the model's parameters has no others: these would be stepped by torch, by gradients that hold the loss scale."""
        for i, group in enumerate(optimizer.param_groups):
            for p in group["params"]:
                if p.grad is not None and p.is_floating_point() and id(p) not in self.context.params:
                    raise InputError(f"emulate: optimizer {name_of(optimizer)} has a parameter of shape {list(p.shape)} in group {i} that is not the "
                                     "model's: put what has it into the model, as a module of an nn.ModuleList, or give it an optimizer of its own")

    def _said(self, optimizer: Any, ours: list[Any]) -> None:
        """The optimizer steps: its class, and the module of its parameters where these are not the model's."""
        name = self._names.get(optimizer)
        if name is None:
            of = [str(self.context.params[id(p)].name) for p in ours]
            whole = sum(p.tensor.requires_grad for p in self.context.params.values()) <= len(of)
            module = ".".join(os.path.commonprefix([each.split(".")[:-1] for each in of])) if len(of) > 1 else ""
            rest = "" if whole else module or of[0] + (f" and {len(of) - 1} more" if len(of) > 1 else "")
            name = self._names[optimizer] = type(optimizer).__name__ + (f" of {rest}" if rest else "")
        if name not in self.stepped_now:
            self.stepped_now.append(name)

    def runs_natively(self) -> Optional[str]:
        """The name of the optimizer whose own step runs; None: none does, as one has ended with an error."""
        frame: Any = sys._getframe()
        while frame is not None:
            if frame.f_code is self.natively[-1][1]:
                return self.natively[-1][0]
            frame = frame.f_back
        return None

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        taken = self._taken.pop(id(optimizer), None)
        if taken is None:
            return
        self.natively = []
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            for p, grad in taken:
                p.grad = grad
            if self._rule(optimizer) is None:
                self._round(optimizer)
                self._called(optimizer)
        stepped = getattr(self.context, "stepped", None)
        if stepped and not self._told:
            self._told = True
            stepped()

    def _another_step(self) -> None:
        """Gradients are at hand: a step of the context, or more of it, as where each parameter is stepped while the backward pass runs."""
        if self._at != self.context.step or not self.started:
            self.lost_now, self.stepped_now, self.started = {}, [], True
        self._at, self._told = self.context.step, False

    def _called(self, optimizer: Any) -> None:
        """An optimizer has run natively: gradients that its closure has made are used up, and it has stepped."""
        fresh = self._fresh()
        for p in fresh:
            p.grad._mpsim_ready = p.grad._version
        if fresh:
            self._another_step()
            self._said(optimizer, fresh)

    def _take(self, optimizer: Any, parameters: list[Any]) -> None:
        self._taken[id(optimizer)] = [(p, p.grad) for p in parameters if p.grad is not None]
        for p in parameters:
            p.grad = None

    def _rule(self, optimizer: Any) -> Optional[Rule]:
        rule = rule_of(optimizer)
        if rule is None:
            name = name_of(optimizer)
            if name not in self.native and name.rpartition(".")[2] not in self.native:
                raise InputError(f"emulate: the library has no rule of the optimizer {name}; native=['{name}'] runs its own step in float32")
            self.context.note(f"optimizer {name} runs natively, in float32; its results are rounded")
        return rule

    def _round(self, optimizer: Any) -> None:
        """Parameters that an optimizer moved natively are numbers of their format again."""
        for group in optimizer.param_groups:
            for p in group["params"]:
                param = self.context.params.get(id(p))
                if param is not None and param.placement.kept.name != "binary32":
                    _put(p, self.home.round(_flat(p), param.placement.kept))

    # ---- from gradients to the optimizer ----

    def step(self, *optimizers: Any, closure: Any = None) -> Any:
        """One step of optimizers, whose gradients alone are checked and clipped together. What the closure gives, where there is one."""
        self._scope = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
        try:
            result = [o.step(closure) if closure is not None else o.step() for o in optimizers]
        finally:
            self._scope = None
        return result[0] if result else None

    def unscale(self) -> None:
        """Gradients are checked and unscaled before the step, so that a caller may clip them: GradScaler's unscale_."""
        with torch.no_grad(), torch._C._DisableTorchDispatch():
            fresh = self._fresh()
            if fresh and self._checked is None:
                self._check_all(fresh)

    def _settle(self, optimizer: Any) -> bool:
        """Gradients as the optimizer gets them, those of all parameters that were written since the last step. Whether the step is skipped."""
        found, outer = getattr(optimizer, "found_inf", None), getattr(optimizer, "grad_scale", None)
        if found is not None and float(found) > 0:
            return True  # a fused optimizer is called by GradScaler on an overflow, too
        fresh = self._fresh()
        if self._checked is None and fresh:
            self._check_all(fresh, None if outer is None else float(outer))
        if self._checked is not None:
            parameters, scale, unscaled = self._checked
            self._checked = None
            parameters = [p for p in parameters if p.grad is not None]
            if not self.skipped:
                self._ready([Held(p) for p in parameters], scale, unscaled)
            for p in parameters:
                p.grad._mpsim_ready = p.grad._version
        return self.skipped

    def _fresh(self) -> list[Any]:
        """Parameters whose gradients a backward has written since they were readied."""
        found = []
        for param in self.context.params.values():
            p = param.tensor
            grad = p.grad
            if grad is None or self._scope is not None and id(p) not in self._scope:
                continue
            if grad.layout is not torch.strided:
                raise InputError(f"emulate: the gradient of '{param.name}' is sparse; only dense ones are stepped: sparse=False")
            if getattr(grad, "_mpsim_ready", -1) != grad._version:
                found.append(p)
        return found

    def _rules(self) -> CRules:
        plan = self._plan
        assert plan is not None
        return CRules(plan.scaler.unscale, plan.c.clip, plan.max_norm, self._variant_of_clip(), plan.clip_scaled)

    def _variant_of_clip(self) -> Any:
        """The variant decides who unscales: fused optimizers do."""
        assert self._plan is not None
        algorithm = self._plan.optimizer.algorithm or "adamw"
        found = self._plan.optimizer.variant(algorithm)
        return ctypes.pointer(found) if found is not None else lib.mpsim_optim_variant_find(b"ieee")

    def _check_all(self, fresh: list[Any], outer: Optional[float] = None) -> None:
        """Unscale; the scaler moves. outer: a caller's GradScaler has scaled, and looks for overflows itself."""
        plan, scaling = self._plan, self.scaling
        assert plan is not None
        own = scaling.pending and outer is None
        if scaling.there and not own:
            self.context.note(OWN_SCALER if getattr(self.context, "own_scaler", False) else NOT_SCALED)
        rules, scale = self._rules(), scaling.scale if own else 1.0 if outer is None else outer
        held = [Held(p) for p in fresh]
        kept = None
        before: float = lib.mpsim_unscaling_of(byref(rules), scale).before
        if own and scaling.config.order == BEFORE_UNSCALE and before != 1:
            kept = [h.flat.clone() for h in held]  # the scale moves first: they are divided by the next one
        cause = self._checks(held, rules, plan.scaler.check, before, own)
        self._another_step()
        self.skipped = False
        unscale = scale
        if own or not scaling.there and outer is None:
            said = scaling.update(self.context.step, self._blame(held, cause))
            unscale = said.unscale
            self.skipped = "skipped" in said.events or "raised" in said.events
        if kept is not None and unscale != before and not self.skipped:
            for h, x in zip(held, kept):
                h.flat.copy_(x)
            before = float("nan")
        self._give_back(held)
        self._checked = Checked(fresh, unscale, before)

    def _checks(self, held: list[Held], rules: CRules, check: int, before: float, looks: bool) -> int:
        """Gradients are unscaled; the number of the one that is to blame, or what mpsim_gradients_check says. looks: the policy's scaler asks for it."""
        if self.device is not None:
            return int(self._there(held).check(rules.unscale, check, before, looks))
        gradients, cause = self._gradients(held), c_int64()
        _check(lib.mpsim_gradients_check(gradients, len(held), rules.unscale, check, before, pool(), byref(cause)), "gradients")
        return int(cause.value)

    def _there(self, held: list[Held]) -> Any:
        from ._there import Gradients

        return Gradients(self.context, [h.flat for h in held], [self.context.params[id(h.parameter)].placement.c.kept for h in held])

    @property
    def home(self) -> Any:
        """Where the parameters lie."""
        return getattr(self.context, "home", MEMORY)

    @property
    def device(self) -> Any:
        """The device that the parameters are on; None: memory."""
        return self.home.device

    def _blame(self, held: list[Held], cause: int) -> Optional[str]:
        return None if cause == -1 else NORM if cause == -2 else str(self.context.params[id(held[cause].parameter)].name)

    def _ready(self, held: list[Held], scale: float, unscaled: float) -> None:
        rules, ready = self._rules(), CReadied()
        if self.device is not None:
            _check(self._there(held).move(rules, scale, unscaled, ready), "gradients")
        else:
            _check(lib.mpsim_gradients_move(byref(rules), self._gradients(held), len(held), scale, unscaled, pool(), byref(ready)), "gradients")
        self._give_back(held)
        self.norm, self.clipped, self._in_optimizer = ready.norm, bool(ready.clipped), ready.in_optimizer

    def _gradients(self, held: list[Held]) -> Any:
        gradients = (CGradient * max(len(held), 1))()
        for c, h in zip(gradients, held):
            c.format = ctypes.pointer(self.context.params[id(h.parameter)].placement.c.kept)
            c.x = c.y = h.flat.data_ptr()
            c.n = h.flat.numel()
        return gradients

    def _give_back(self, held: list[Held]) -> None:
        for h in held:
            if h.flat.data_ptr() != h.grad.data_ptr():
                h.grad.copy_(h.flat)

    # ---- the optimizer ----

    def _step(self, optimizer: Any, rule: Rule) -> None:
        jobs: list[Job] = []
        for group in optimizer.param_groups:
            why = unsupported(rule, group)
            if why:
                raise InputError(f"emulate: optimizer {name_of(optimizer)}: {why}")
            numbers = numbers_of(group)
            for p in group["params"]:
                param = self.context.params.get(id(p))
                if param is not None and p.grad is not None:
                    jobs.append(Job(self, optimizer.state[p], self.settings(optimizer, rule, group, numbers, param), param))
        if not jobs:
            return
        if self.device is not None:
            return self._step_there(optimizer, jobs)
        self._update(optimizer, jobs, [job.c for job in jobs])

    def _step_there(self, optimizer: Any, jobs: list[Job]) -> None:
        """A step on a device: of rules without kernels in memory."""
        from . import _there as there

        has = {id(job): there.has_kernel(job) for job in jobs}
        in_memory = [job for job in jobs if not has[id(job)]]
        there.step(self.home, [job for job in jobs if has[id(job)]], f"emulate: optimizer {name_of(optimizer)}")
        for job in jobs:
            if has[id(job)]:
                job.done()
        if in_memory:
            self.context.note(there.IN_MEMORY.format(", ".join(sorted({job.settings.algorithm + (" with states of few bits" if job.settings.states else "")
                                                                        for job in in_memory}))))
            copies = [there.InMemory(job) for job in in_memory]
            self._update(optimizer, in_memory, [each.c for each in copies], lambda: there.back(copies))
        if self.counting and any(has.values()):
            self.context.note(there.NOT_COUNTED)

    def _update(self, optimizer: Any, jobs: list[Job], c: list[CUpdate], back: Callable[[], None] = lambda: None) -> None:
        """The updates of jobs in memory; back: what is to be done before the parameters have their numbers."""
        updates = (CUpdate * len(jobs))(*c)
        which = c_size_t()
        status = lib.mpsim_update_run(updates, len(jobs), self.counting, pool(), byref(which))
        if status:
            job = jobs[which.value]
            _check(status, f"emulate: optimizer {name_of(optimizer)}: '{job.param.name}' cannot be stepped by {job.says()}")
        back()
        for job, update in zip(jobs, updates):
            job.done()
            self._count(job.param.name, update)

    def _count(self, name: str, update: CUpdate) -> None:
        if self.counting:
            now, before = Lost(update.updates, update.lost), self.lost.get(name, Lost(0, 0))
            self.lost_now[name] = now
            self.lost[name] = Lost(before.updates + now.updates, before.lost + now.lost)

    def settings(self, optimizer: Any, rule: Rule, group: dict[str, Any], numbers: tuple[Any, ...], param: Any) -> Settings:
        """Of a group and a placement; made again where a number of the group has changed."""
        shape = tuple(param.tensor.shape[-2:]) if rule.algorithm == "adafactor" and param.tensor.dim() > 1 else ()
        key = (id(optimizer), rule, numbers, id(param.placement), param.tensor.numel(), shape, param.tensor.dim(), self._in_optimizer)
        found = self._settings.get(key)
        if found is None:
            if len(self._settings) > 4096:  # a schedule makes new ones each step
                self._settings.clear()
            found = self._settings[key] = self._make(optimizer, rule, group, param, shape)
        return found

    def _make(self, optimizer: Any, rule: Rule, group: dict[str, Any], param: Any, shape: tuple[int, ...]) -> Settings:
        plan, place = self._plan, param.placement
        assert plan is not None
        if rule.algorithm == "muon":
            return Settings(COptim(grad_scale=self._in_optimizer), self._muon(group, place), None, "muon")
        algorithm = algorithm_of(rule, group)
        self._notes(algorithm, group)
        optim = COptim()
        lib.mpsim_optim_init(byref(optim), ALGORITHMS.index(algorithm), self._variant(rule, algorithm, group))
        set_numbers(optim, group)
        optim.store = STORES.index(rule.store(group) or plan.optimizer.store) if rule.store else plan.optimizer.c.store
        optim = lib.mpsim_optim_placed(byref(optim), byref(place.c))
        optim.state = lib.mpsim_placement_state(byref(place.c), param.tensor.numel()).contents
        optim.grad_scale = self._in_optimizer
        optim.rows, optim.cols = shape or (0, 0)
        if place.muon and param.tensor.dim() > 1:  # the bias beside a matrix has its placement, and the optimizer's rule
            self.context.note("matrices of hidden layers are stepped by the policy's Muon, with its numbers")
            return Settings(optim, self._policys_muon(group, place), None, "muon")
        states = place.c.states
        if not states and rule.states:
            states = lib.mpsim_states_find(rule.states.encode())
        return Settings(optim, None, states if states else None, algorithm)

    def _variant(self, rule: Rule, algorithm: str, group: dict[str, Any]) -> Any:
        """The policy's; else what the class and the group's flags say; else the policy's own choice."""
        options = self._plan.optimizer  # type: ignore[union-attr]
        implied = None if options.variant_given else implied_variant(rule, group, bool(getattr(self.context, "on_cpu", False)))
        found = options.variant(algorithm) if implied is None else None
        if found is not None:
            return ctypes.pointer(found)
        if implied is None:
            names = ", ".join(said for said in (algorithm, options.store) if said != "nearest")
            raise InputError(f"emulate: the policy's optimizer has no variant of {names}")
        return lib.mpsim_optim_variant_find(implied.encode())

    def _notes(self, algorithm: str, group: dict[str, Any]) -> None:
        options = self._plan.optimizer  # type: ignore[union-attr]
        if options.algorithm not in (None, algorithm):
            self.context.note(f"the policy names the optimizer {options.algorithm}; the class of the optimizer, {algorithm}, counts")
        for name, x in options.numbers.items():
            own = group["betas"][int(name[-1]) - 1] if name in ("beta1", "beta2") and "betas" in group else group.get(name)
            if isinstance(own, (int, float)) and name != "lr" and own != x and options.algorithm in (None, algorithm):
                self.context.note(f"the policy's {name} is {x:g}; the optimizer's, {own:g}, counts")

    def _muon(self, group: dict[str, Any], place: Any) -> CMuon:
        """Of a Muon of torch: its numbers; products as the policy has them, exact where it has no Muon."""
        muon = self._base_muon(place)
        muon.lr, muon.weight_decay, muon.momentum, muon.eps = (float(group[k]) for k in ("lr", "weight_decay", "momentum", "eps"))
        muon.nesterov, muon.steps = bool(group["nesterov"]), group["ns_steps"]
        muon.a, muon.b, muon.c = group["ns_coefficients"]
        muon.scale = ADJUST[group.get("adjust_lr_fn")]
        return muon

    def _policys_muon(self, group: dict[str, Any], place: Any) -> CMuon:
        muon = self._base_muon(place)
        muon.lr *= float(group["lr"]) / float(group.get("initial_lr", group["lr"])) if group["lr"] else 0
        return muon

    def _base_muon(self, place: Any) -> CMuon:
        options = self._plan.optimizer  # type: ignore[union-attr]
        if options.muon:
            muon = CMuon.from_buffer_copy(options.c.muon)
        else:
            muon = CMuon()
            lib.mpsim_muon_init(byref(muon), 0, lib.mpsim_optim_variant_find(b"torch"))
            self.context.note("the policy has no Muon: its products are exact sums in bf16, rounded once")
        muon.param = place.c.kept
        return muon

    # ---- checkpoints ----

    def state_dict(self) -> dict[str, Any]:
        """What the optimizers' own state_dict does not have: the scaler, and counts."""
        return {"scaling": self.scaling.state_dict(), "lost": {name: list(x) for name, x in self.lost.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.scaling.load_state_dict(state["scaling"])
        self.lost = {name: Lost(*x) for name, x in state["lost"].items()}


def _put(p: Any, x: Any) -> None:
    """Numbers into a parameter, whose version moves, unless they lie there."""
    if x.data_ptr() != p.data_ptr():
        p.copy_(x)
    else:
        torch.autograd.graph.increment_version(p)


class Job:
    """The update of one parameter: its arrays in the optimizer's own state."""

    def __init__(self, of: Optimizers, state: dict[str, Any], s: Settings, param: Any) -> None:
        self.param, self.parameter = param, param.tensor
        self.settings, self.state = s, state
        self.kept: list[Any] = []
        self.last = _channels_last(self.parameter) if s.muon is None and s.algorithm != "adafactor" else None
        self.values = _flat(_turned(self.parameter, self.last))
        n, rows, cols = self.values.numel(), 0, 0
        names, needs = STATES[s.algorithm], M
        if s.muon is None:
            needs = lib.mpsim_optim_needs(byref(s.optim), byref(s.optim.param))
        else:
            rows, cols = self._matrix(s)
        taken, first = self._taken(s, names, needs)
        self.rng = CRng(of.context.seed, stream_of(of._at, param.name), 0) if s.optim.store == STOCHASTIC else None
        arrays = [self._array(name, needs & bit, bit, n) for name, bit in zip((*self._names(names, s), KAHAN), (M, V, VMAX, NEEDS_KAHAN))]
        self.c = CUpdate(ctypes.pointer(s.optim), ctypes.pointer(self.muon) if s.muon is not None else None, s.states, ctypes.pointer(self.rng) if self.rng else None,
                         taken + 1 if not first else 1, rows, cols, CTensors(self.values.data_ptr(), self._grad(), *arrays, n))

    def _grad(self) -> int:
        grad = _flat(_turned(self.parameter.grad, self.last))
        self.kept.append(grad)
        return int(grad.data_ptr())

    def _matrix(self, s: Settings) -> tuple[int, int]:
        """KELLER takes kernels, too, whose scale is that of their last two dimensions."""
        p = self.parameter
        assert s.muon is not None
        if p.dim() < 2:
            raise InputError(f"emulate: Muon steps matrices, and '{self.param.name}' has the shape {list(p.shape)}")
        rows = p.shape[0]
        cols = p.numel() // rows if rows else 0
        self.muon = CMuon.from_buffer_copy(s.muon)
        if p.dim() > 2:
            self.muon.factor = lib.mpsim_muon_factor(byref(self.muon), p.shape[-2], p.shape[-1])
        return rows, cols

    def _names(self, names: tuple[str, str, str], s: Settings) -> tuple[str, str, str]:
        return ("", "variance", "") if s.algorithm == "adafactor" and self.parameter.dim() < 2 else names

    def _taken(self, s: Settings, names: tuple[str, str, str], needs: int) -> tuple[int, bool]:
        """Steps that were taken, and whether this one is the first."""
        if s.algorithm in ("adam", "adamw", "adafactor"):
            count = self.state.get("step", 0)
            return int(count), int(count) == 0
        return 1, bool(needs & M) and self.state.get(names[0]) is None

    def _array(self, name: str, needed: int, bit: int, n: int) -> Optional[int]:
        """Where an array of the state lies: made, all zero, where it is needed for the first time."""
        if not needed:
            return None
        x = self.state.get(name) if name else None
        if x is None:
            x = self._zeros(name)
            if self.settings.states:  # a map of few bits may have no zero
                here = x.cpu()
                m, v = (here.data_ptr() if bit in bits else None for bits in ((M,), (V, VMAX)))
                _check(lib.mpsim_states_keep(self.settings.states, None, m, v, None, n), "optimizer: states")
                x.copy_(here)
            if name:
                self.state[name] = x
        like = torch.contiguous_format if self.last is None else self.last
        if x.dtype != torch.float32 or not x.is_contiguous(memory_format=like):
            x = x.detach().float().contiguous(memory_format=like)
            if name:
                self.state[name] = x
        self.kept.append(x)
        return int(x.data_ptr())

    def _zeros(self, name: str) -> Any:
        shape = list(self.parameter.shape)
        if name == "row_var":
            shape[-1] = 1
        elif name == "col_var":
            shape[-2] = 1
        elif not name:
            shape = [1]  # Adafactor has no moments of the rows of a vector
        return torch.zeros(shape, dtype=torch.float32, device=self.parameter.device)

    def says(self) -> str:
        s = self.settings
        variant = (s.muon or s.optim).variant.contents
        return f"variant {text(variant.name)} of {s.algorithm} in {self.param.placement.kept.name}"

    def done(self) -> None:
        """The parameter has its numbers; the step is counted."""
        _put(_turned(self.parameter, self.last), self.values)
        if self.settings.algorithm in ("adam", "adamw", "adafactor"):
            step = self.state.get("step")
            if isinstance(step, torch.Tensor):
                step += 1
            else:
                self.state["step"] = torch.tensor(float((step or 0) + 1))


def _closed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A closure makes gradients inside of the step: it runs before, and the step is given what it returned."""
    at = 1 if len(args) > 1 else None
    closure = args[1] if at else kwargs.get("closure")
    if closure is None:
        return None
    with torch.enable_grad():
        loss = closure()
    done = lambda: loss  # noqa: E731
    return ((args[0], done, *args[2:]), kwargs) if at else (args, {**kwargs, "closure": done})
