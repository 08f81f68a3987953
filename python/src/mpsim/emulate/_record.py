"""A trace of an emulated training: what products read and give, weights, gradients and moments, as `mpsim.record` writes it.

The recorder's own hooks look at modules; here the products say what they read and give. Gradients and moments are taken before the
optimizers step, as the last backward has left them.
"""
from __future__ import annotations

import functools
import math
from typing import Any, Optional

import torch
from torch.optim import optimizer as _optimizers
from torch.utils._python_dispatch import _disable_current_modes

from .._library import text
from .._windows import tensor_of
from ..record import Recorder
from ._counting import KINDS, label_of

ALL = ("weight", "wgrad", "act", "agrad", "out", "dgrad")


class Trace(Recorder):
    """What `Emulator.record` gives; close() ends it, as does the end of the emulation."""

    NAME, VERB = "mpsim.emulate", ("records", "stored")

    def __init__(self, e: Any, folder: Any, every: int, consecutive: int, kinds: Any, max_bytes: Optional[int]) -> None:
        self.e, self.core = e, e.core
        self.at: Optional[int] = None
        self.times: dict[tuple[str, str], int] = {}
        plans = self.core.plans
        meta = {"policy": plans.policy.name, "arch": self.core.arch.name, "seed": self.core.seed, "emulated": type(e.model).__name__,
                "states": plans.plan.optimizer.states}
        super().__init__(e.model, folder, every=every, consecutive=consecutive, kinds=kinds, max_bytes=max_bytes,
                         meta={k: v for k, v in meta.items() if v is not None})
        self.core.watchers.append(self._product)
        self.core.results.append(self._result)

    # ---- steps: the recorder is told by what the emulation does ----

    def _listen(self) -> None:
        super()._listen()
        before = _optimizers.register_optimizer_step_pre_hook(self._stepping)
        hooks: Any = _optimizers._global_optimizer_pre_hooks
        hooks.move_to_end(before.id, last=False)  # before the policy takes the gradients away
        self.global_hooks = [before, _optimizers.register_optimizer_step_post_hook(self._have_stepped), *self._in_order()]

    def _leave(self) -> None:
        super()._leave()
        for hook in self.global_hooks:
            hook.remove()
        self.global_hooks = []
        for watchers, mine in ((self.core.watchers, self._product), (self.core.results, self._result)):
            if mine in watchers:
                watchers.remove(mine)

    def _install(self) -> None:
        """No hooks that take tensors."""

    def _in_order(self) -> list[Any]:
        """Hooks that note when modules with parameters are called: of embeddings and norms products do not tell it."""
        return [module.register_forward_pre_hook(functools.partial(self._called, name))
                for name, module in self.core.paths.modules.items() if any(True for _ in module.parameters(recurse=False))]

    def _called(self, name: str, module: Any, inputs: Any) -> None:
        if self.core.paths.depth:
            return
        if self.at != self.core.step:
            self._begin()
        self.order.append(name)

    def _begin(self) -> None:
        self.at, self.times = self.core.step, {}
        with _disable_current_modes():
            self.begin(self.core.step + 1)

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer of the model is about to step."""
        params = self.core.params
        if not any(id(p) in params for group in optimizer.param_groups for p in group["params"]):
            return
        if not any(optimizer is each for each in self.opts):
            self.opts.append(optimizer)
            self.taken[id(optimizer)] = None if any(state.get("momentum_buffer") is not None for state in optimizer.state.values()) else 0
            self.sees_steps = True
        if self.step is not None:
            with _disable_current_modes(), torch.no_grad():
                report = self.core.report
                losses = report.now.get("losses") if report is not None else None
                scaling = getattr(getattr(self.e, "optimizers", None), "scaling", None)
                scale = scaling.scale if scaling is not None and scaling.there else None
                self.end(sum(losses) / len(losses) if losses else None, loss_scale=scale, grads_scaled=None if scale is None else True)
                self._before_step(optimizer)

    def _have_stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not any(optimizer is each for each in self.opts):
            return
        with _disable_current_modes():
            optimizers = getattr(self.e, "optimizers", None)
            if optimizers is not None and self.step is not None:
                plan = self.core.plans.plan
                if plan.clip and math.isfinite(optimizers.norm):
                    self.note(grad_clip=plan.max_norm, grad_norm=optimizers.norm, clip_impl=plan.clip)
                if optimizers.scaling.there:
                    self.note(found_inf=int(optimizers.skipped), skipped=int(optimizers.skipped), scaler=text(plan.scaler.name))
            self._after_step(optimizer)

    # ---- tensors ----

    def _take(self, kind: str, name: str, view: Any) -> None:
        if kind in self.kinds and self.step is not None and not self.captured:
            self._put(kind, name, tensor_of(view))  # a name that comes again, of another micro-batch, gets a number

    def _product(self, record: Any, kind: str, slots: Any, views: Any, entered: Any, formats: Any, model: Any, out: Any, to: Any) -> None:
        if self.at != self.core.step:
            self._begin()
        if record.recomputed or kind not in KINDS:
            return
        if kind == "fprop":
            self.order.append(record.path)
            if record.form == "pair":
                self.order.append(record.name + "@b")
            for slot, view in zip(slots, views):
                label, name = label_of(record, slot, kind, slots)
                if label == "act" or label == "weight" and record.param is None:  # a weight that is made of parameters
                    self._take(label, name, view)
        elif slots[0] == "agrad" and self.times.get((record.name, str(self.core.micro))) is None:
            self.times[record.name, str(self.core.micro)] = 1
            view = views[0]
            self._take("agrad", record.name, view.t() if kind == "wgrad" else view)

    def _result(self, record: Any, kind: str, slots: Any, out: Any, to: Any) -> None:
        if not record.recomputed and kind != "wgrad":
            self._take(*label_of(record, slots[2], kind, slots), out)

    def _put(self, kind: str, name: str, value: Any) -> None:
        """A parameter: what products read, and what accumulates its updates where that is another number."""
        param = self.core.params.get(id(value)) if kind == "weight" else None
        if param is not None and param.low:
            super()._put("weight", name, param.copy(self.core))
            if param.placement.kept is param.storage:
                return
            kind = "master"
        super()._put(kind, name, value)


def record(e: Any, folder: Any, every: int, consecutive: int, kinds: Any, max_bytes: Optional[int]) -> Trace:
    """See Emulator.record."""
    return Trace(e, folder, every, consecutive, kinds, max_bytes)
