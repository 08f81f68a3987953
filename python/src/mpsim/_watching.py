"""Statistics of a training while it runs: the hooks of the recorder, but tensors are counted where they lie, not kept.

Hooks, and the rules of when a step begins and ends, are the recorder's. Tests compare every record with the program's report of the recorded trace.
"""
from __future__ import annotations

import os
import sys
from array import array
from typing import Any, Callable, Iterable, Optional, Sequence

import torch

from ._advice import Gradients, sentences
from ._cuda import dense, of_tensor
from ._error import InputError, real_of, whole_of
from ._formats import of_dtype
from ._lines import Lines
from ._numbers import Numbers
from ._roundoff import companion, roundoff
from ._statistics import Tally, Targets
from ._updates import lost_updates
from .record import DTYPES, STATE, Recorder, guarded, in_backward, is_sharded, unwatch
from .record import watch as listen

GRADIENTS = ("agrad", "wgrad", "dgrad")
WAITING = 64  # tensors that devices count at once; each has up to 256 KiB there and here
NO_FLOATS = "its input is no floating-point tensor"  # embeddings': a remark that warns nobody
STATES = sorted(set(STATE.values()))
FORMATS = {dtype: of_dtype(str(dtype)[6:]) for dtype in DTYPES}


def in_function() -> bool:
    """Whether an autograd.Function's forward() runs, as that of reentrant checkpoints, which is without gradients."""
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount and code.co_varnames[0] == "ctx":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class Watch(Recorder):
    """What `mpsim.watch` gives. A context manager; `close` ends it, as does the end of the program.

    step: the number of the step at hand, or None between watched ones.
    count: how many steps the optimizers have taken or skipped.
    remarks: lines on what could not be watched, and why.
    gradients: what `advice` knows of them, of a size that steps do not change.
    path: the file that is written; None: none.
    """
    NAME, VERB = "mpsim.watch", ("counts", "counted")

    def __init__(self, model: torch.nn.Module, optimizer: Any, every: int, targets: Targets, out: Any, kinds: Sequence[str],
                 modules: str, scaler: Any, log: Optional[Callable[[dict[str, Any]], Any]], updates: Sequence[str],
                 start: int, stop: Optional[int], gather: bool, spans: Optional[Sequence[Sequence[int]]] = None) -> None:
        self.targets, self.log, self.updates = targets, log, list(updates)
        self.first, self.stop, self.count, self.closed = start, stop, start - 1, False
        self.spans = spans  # of steps, each without its end, -1 for none: then the first step is like others
        self.lines: list[dict[str, Any]] = []
        self.by_kind: dict[str, Tally] = {}
        self.of_step: dict[str, Tally] = {}
        self.waiting: list[tuple[dict[str, Any], Tally, Any, Any]] = []  # lines of tensors that devices are counting
        self.done: set[int] = set()
        self.took: set[int] = set()
        self.before: dict[int, list[tuple[str, Any, Any]]] = {}
        self.history = array("d"), array("b")  # of each step the loss scale, and whether it was skipped
        self.numbers = Numbers()  # loss and norm, by step
        self.remarks: list[str] = []
        self.seen = 0  # watched steps
        self.gradients = Gradients(targets)
        self.rounded: dict[str, dict[str, Any]] = {}  # of the step at hand: the record of what is nothing but rounding, by tensor
        self.lost: dict[str, list[int]] = {}
        wanted = set(kinds) - {"opt"} | (set(STATES) if "opt" in kinds else set())
        super().__init__(model, os.devnull, every=every, optimizer=optimizer, kinds=wanted, modules=modules, scaler=scaler,
                         gather=gather, settings=False)
        if not self.sees_steps:
            self._leave()
            raise InputError("watch: expected optimizers of torch.optim, found " + ", ".join(type(o).__name__ for o in self.opts))
        self.file: Optional[Lines] = None
        if out is not None:
            try:
                self.file = Lines(out, self._place()[0], targets.config)
            except BaseException:
                self._leave()
                raise
        self._begin()

    @property
    def path(self) -> Optional[str]:
        return self.file.path if self.file else None

    # ---- steps ----

    def wanted(self, step: int) -> bool:
        if self.closed or (self.stop is not None and step > self.stop):
            return False
        if self.spans is not None:
            return step % self.every == 0 and any(low <= step and (end == -1 or step < end) for low, end in self.spans)
        return step == self.first or step % self.every == 0

    def _drop(self) -> None:
        super()._drop()
        for _, _, counter, counted in self.waiting:
            counter.drop(counted)
        self.of_step, self.lines, self.waiting, self.before, self.took = {}, [], [], {}, set()
        if not self.closed:
            listen(self)  # of skipped steps GradScaler alone tells

    @guarded
    def _begin(self) -> None:
        self.done = set()
        if self.wanted(self.count + 1):
            self._drop()
            self.step = self.count + 1
            self._install()

    def _mine(self, optimizer: Any) -> bool:
        return any(optimizer is opt for opt in self.opts)

    def _on_backward(self, depth: int) -> None:
        pass

    def _before_unscale(self, scaler: Any, optimizer: Any) -> None:
        if self._mine(optimizer):
            self._on_scaler(scaler, sure=True)
            self._take(optimizer)

    def _after_unscale(self, scaler: Any, optimizer: Any) -> None:
        pass

    def _before_scaler_step(self, scaler: Any, optimizer: Any) -> None:
        self._before_unscale(scaler, optimizer)
        self.in_scaler = self._mine(optimizer)

    def _after_scaler_step(self, scaler: Any, optimizer: Any) -> None:
        self.in_scaler = False
        if self._mine(optimizer):
            found = scaler.is_enabled() and sum(float(v.item()) for v in scaler._found_inf_per_device(optimizer).values())
            self._stepped(optimizer, bool(found))

    def _before_clip(self, parameters: Any) -> None:
        whose = {id(p) for p in parameters}
        for opt in self.opts:
            if whose & set(self._params(opt)):
                self._take(opt)

    @guarded
    def _on_clip(self, kind: str, parameters: Any, limit: Any, norm: Any, foreach: Any) -> None:
        self._before_clip(parameters)
        whose = {id(p) for p in parameters}
        for opt in self.opts:
            if whose & set(self._params(opt)):
                if norm is not None and self.step is not None and not is_sharded(norm):
                    self.note(grad_norm=float(norm))

    def _before_step(self, opt: Any) -> None:
        self._take(opt)

    def _after_step(self, opt: Any) -> None:
        if not self.in_scaler:
            self._stepped(opt, False)

    def _take(self, opt: Any) -> None:
        """Gradients, weights and state of an optimizer's parameters, as the last backward() has left them."""
        if id(opt) in self.done:  # once more, before the others: a new step, whose passes nothing has seen
            self._finish()
            self.count, self.done = self.count + 1, set()
        if self.step is not None and id(opt) not in self.took:
            self.took.add(id(opt))
            self._take_now(opt)

    @guarded
    def _take_now(self, opt: Any) -> None:
        if in_backward():
            self._miss("(gradients)", "optimizer", "the step is part of backward()")
        if any(type(m).__name__ == "FullyShardedDataParallel" for m in self.model.modules()):
            return self._miss("(model)", "FullyShardedDataParallel", "parameters are flat and sharded")
        names, kept = self._names(), []
        by_name = {name: p for p, name in names.items()}
        with torch.no_grad():
            for p in self._params_of(opt):
                name = names.get(p)
                if name is None:
                    self._miss("a parameter", "Parameter", "the model has it not")
                    continue
                if "weight" in self.kinds:
                    self._put("weight", name, p)
                if p.grad is None:
                    self._miss(name, "Parameter", "no gradient in this step")
                elif "wgrad" in self.kinds:
                    self._put("wgrad", name, p.grad)
                    self._put_roundoff(name, p.grad, by_name)
                for key, kind in STATE.items():
                    if kind in self.kinds and torch.is_tensor(opt.state.get(p, {}).get(key)):
                        self._put(kind, name, opt.state[p][key])
                if self.updates and p.grad is not None and not is_sharded(p) and p.dtype in DTYPES:
                    kept.append((name, p, p.detach().clone(memory_format=torch.contiguous_format)))
        self.before[id(opt)] = kept

    def _put_roundoff(self, name: str, grad: Any, by_name: dict[str, Any]) -> None:
        """Elements that are no gradient, which the advice leaves out."""
        weight = next((by_name[other] for other in companion(name) if other in by_name), None)
        found = roundoff(grad, None if weight is None else weight.grad)
        if found is None:
            return
        tally = Tally(self.targets, self.targets.which("wgrad"))
        wide = found.float() if self.targets.recipes and found.dtype != torch.float32 else found
        tally.add(found.data_ptr(), found.numel(), FORMATS[found.dtype], found.numel(), wide.data_ptr())
        self.rounded[f"wgrad:{name}"] = tally.record()

    def _params_of(self, opt: Any) -> Iterable[Any]:
        return [p for g in opt.param_groups for p in g["params"]]

    def _skipped(self) -> bool:
        """Whether the scaler has skipped the step at hand."""
        told = self.step is not None and len(self.history[1]) > self.step - self.first
        return told and bool(self.history[1][-1])

    def _stepped(self, opt: Any, skipped: bool) -> None:
        if self.closed:
            return
        if self.step is not None and not skipped:
            self._count_updates(opt)
        if not self.done:
            scale = self.scaler.get_scale() if self.scaler is not None and self.scaler.is_enabled() else 0.0
            changed = scale and (not self.history[0] or scale != self.history[0][-1] or skipped)
            self.history[0].append(scale)
            self.history[1].append(skipped)
            if changed or (scale and self.step is not None):
                self._write([{"level": "scaler", "step": self.count + 1, "scale": scale, "skipped": skipped}])
        self.done.add(id(opt))
        if len(self.done) == len(self.opts):
            self._end()

    def _end(self) -> None:
        self._finish()
        self.count += 1
        self._begin()

    # ---- counting ----

    def _receive(self, key: str, kind: str, t: Any) -> None:
        self.tensors[key] = True
        dtype, shape = t.dtype, list(t.shape)
        line = {"level": "tensor", "file": "-", "name": key, "kind": kind, "step": self.step, "dtype": DTYPES[dtype], "shape": shape}
        tally = Tally(self.targets, self.targets.which(kind))
        if kind not in self.of_step:
            self.of_step[kind] = Tally(self.targets, tally.scaled)
        self.lines.append(line)
        there = of_tensor(t)
        counter = self.targets.counter(there, tally.scaled) if there else None
        if there and counter:
            self.waiting.append((line, tally, counter, counter.count(there)))
            if len(self.waiting) == WAITING:
                self._collect()
            return
        t = t if t.is_cpu else t.cpu()
        if not t.is_contiguous() and (self.targets.recipes or not dense(t.shape, t.stride())):
            t = t.contiguous()
        wide = t.float() if self.targets.recipes and t.dtype != torch.float32 else t
        tally.add(t.data_ptr(), t.numel(), FORMATS[t.dtype], t.shape[-1] if t.dim() else 1, wide.data_ptr())
        self._counted(line, tally)

    def _counted(self, line: dict[str, Any], tally: Tally) -> None:
        line.update(tally.record())
        self.of_step[line["kind"]].merge(tally)

    def _collect(self) -> None:
        """What devices have counted so far."""
        waiting, self.waiting = self.waiting, []
        for line, tally, counter, counted in waiting:
            tally.read(counter, counted)
            self._counted(line, tally)

    def _trains(self) -> bool:
        """Whether a pass is one of the training: evaluation and passes under no_grad are not."""
        return self._inner()[0].training and (torch.is_grad_enabled() or in_function())

    def _on_input(self, mod: Any, name: str, args: Any, kwargs: Any) -> Any:
        return super()._on_input(mod, name, args, kwargs) if self._trains() else None

    def _on_output(self, name: str, out: Any, output: Any) -> None:
        if self._trains():
            super()._on_output(name, out, output)

    @guarded
    def _count_updates(self, opt: Any) -> None:
        """Of each parameter the elements that the step has moved; what formats would have lost of that."""
        with torch.no_grad():
            for name, p, old in self.before.pop(id(opt), []):
                new = p.detach()
                line: dict[str, Any] = {"level": "update", "name": name, "step": self.step, "dtype": DTYPES[p.dtype],
                                        "count": p.numel()}
                if p.dtype is torch.float32:
                    counted = {label: lost_updates(old, new, label) for label in self.updates}
                    line["moved"] = max(moved for moved, _ in counted.values())
                    line["formats"] = [{"format": label, "lost": lost} for label, (_, lost) in counted.items()]
                else:
                    line["moved"], line["formats"] = int((new != old).sum()), []
                    line["unmoved"] = int(((new == old) & (p.grad != 0)).sum())
                    counted = {"": (line["moved"] + line["unmoved"], line["unmoved"])}
                for label, (moved, lost) in counted.items():
                    tally = self.lost.setdefault(label, [0, 0])
                    tally[0] += lost
                    tally[1] += moved
                self.lines.append(line)

    # ---- what is written ----

    def note(self, **numbers: float) -> None:
        """Numbers of the step at hand, as loss=2.3, that its record and the judge of the run get. loss_scale: what the loss
        was multiplied by, where that was not a GradScaler of PyTorch."""
        self.note_at(self.count + 1, numbers)

    def note_at(self, step: int, numbers: dict[str, Any]) -> None:
        """The same of another step."""
        self.numbers.note(whole_of(step, "note_at: step"), {k: real_of(v, f"note: {k}") for k, v in numbers.items()})

    def _miss(self, name: str, what: Any, reason: str) -> None:
        if reason == "not called or compiled":
            if isinstance(what, torch.nn.Module) and not any(True for _ in what.parameters()):
                return  # as dropout that attention does itself: there is nothing to watch
            reason = "not called in training mode with gradients, or compiled"
        super()._miss(name, what, reason)

    @guarded
    def _finish(self) -> None:
        if self.step is None:
            return
        if not self.fired and not self.took:  # it has begun, and nothing was trained
            return self._drop()
        self._note_modules()
        self._collect()
        new = sorted(set(self.missing.items()) - self.said)
        self.said.update(new)
        self.seen += 1
        lines, tallies = self.lines, self.of_step
        for name, reason in new:
            self.remarks.append(f"not watched: {name}: {reason}")
            lines.append({"level": "note", "step": self.step, "text": self.remarks[-1]})
        whole = self._whole(tallies)
        scale = {"loss_scale": self.history[0][-1]} if self.history[0] and self.history[0][-1] else {}
        numbers = {**scale, **self.numbers.get(self.step, {})}
        if numbers.get("loss_scale", 1.0) != 1.0 and not self.gradients.scaled:
            lines.append({"level": "note", "step": self.step, "text": "gradients have a loss scale in them, loss_scale of each step: "
                          "scales multiply it"})
        lines.append({"level": "step", "step": self.step, "tensors": whole.tensors, **whole.record(), **numbers})
        for kind, tally in tallies.items():
            if kind not in self.by_kind:
                self.by_kind[kind] = Tally(self.targets, tally.scaled)
            self.by_kind[kind].merge(tally)
        for line in lines:
            if line["level"] == "tensor" and line["kind"] in GRADIENTS:
                self.gradients.add(line, numbers.get("loss_scale"), self._skipped(), self.rounded.get(line["name"]))
        self.rounded = {}
        flat = self._flat(lines, tallies) if self.log else {}
        self._drop()
        self._write(lines)
        if self.log:
            self.log(flat)
        unexpected = [f"{n}: {r}" for n, r in new if r != NO_FLOATS]
        if unexpected:
            self._warn("not watched: " + "; ".join(unexpected))

    def _whole(self, tallies: dict[str, Tally]) -> Tally:
        whole = Tally(self.targets, any(t.scaled for t in tallies.values()))
        for tally in tallies.values():
            whole.merge(tally)
        return whole

    def _flat(self, lines: list[dict[str, Any]], tallies: dict[str, Tally]) -> dict[str, Any]:
        """The numbers of a step under names with slashes, for TensorBoard and W&B."""
        flat: dict[str, Any] = {"step": self.step}
        named = [(line["name"].replace(":", "/", 1), line) for line in lines if line["level"] == "tensor"]
        for name, line in named + [(kind, tally.record()) for kind, tally in tallies.items()]:
            flat[f"mpsim/{name}/amax"] = line["amax"]
            for cast in line["formats"] + [{"format": b["recipe"], "scale": 1.0, **b} for b in line.get("blocks", [])]:
                label = cast["format"] + (f"@{cast['scale']:g}" if cast["scale"] != 1 else "")
                for key in ("underflow", "overflow"):
                    flat[f"mpsim/{name}/{key}/{label}"] = cast[key] / line["count"] if line["count"] else 0.0
                if not isinstance(cast["sqnr_db"], str):
                    flat[f"mpsim/{name}/sqnr_db/{label}"] = cast["sqnr_db"]
        if self.history[0] and self.history[0][-1]:
            flat["mpsim/loss_scale"] = self.history[0][-1]
        for label in self.updates:
            lost = [(f["lost"], line["moved"]) for line in lines if line["level"] == "update" for f in line["formats"]
                    if f["format"] == label]
            if sum(moved for _, moved in lost):
                flat[f"mpsim/updates_lost/{label}"] = sum(n for n, _ in lost) / sum(moved for _, moved in lost)
        return flat

    def _lost(self, reason: str) -> None:
        """The step at hand is lost: the file says so, too."""
        step = self.count + 1 if self.step is None else self.step
        cause = (reason.splitlines() or [""])[0]
        text = f"not watched: step {step}: {cause}"
        if ("lost", cause) not in self.said:  # else known, of an earlier step
            self.said.add(("lost", cause))
            self.remarks.append(text)
        self._write([{"level": "note", "step": step, "text": text}])

    def _write(self, lines: list[dict[str, Any]]) -> None:
        """Append records; a disk that is full ends the file, never the training."""
        failed = self.file.write(lines, self._place()[0]) if self.file else None
        if failed:
            self.remarks.append(failed)
            self._warn(failed)

    def close(self) -> None:
        """End watching: hooks go, sums over kinds and over all are written. What has been watched stays known."""
        if self.closed:
            return
        self._finish()
        self.count += bool(self.done)
        self.closed = True
        self._drop()
        self._leave()
        unwatch(self)
        self.targets.end()
        if self.graphed:
            calls = sum(self.graphed.values())
            self.remarks.append(f"not watched: {calls} calls of {len(self.graphed)} modules that CUDA graphs have captured: "
                                "their replays run no hooks")
            self._write([{"level": "note", "step": self.count, "text": self.remarks[-1]}])
        whole = self._whole(self.by_kind)
        self._write([{"level": "kind", "kind": kind, "tensors": tally.tensors, **tally.record()}
                     for kind, tally in self.by_kind.items()]
                    + [{"level": "total", "tensors": whole.tensors, **whole.record(), "failed_files": 0, "unread": []}])
        if self.file:
            self.file.close()

    def kinds_seen(self) -> dict[str, dict[str, Any]]:
        """The sums of each kind over the watched steps, as records of `mpsim stat`."""
        return {kind: tally.record() for kind, tally in self.by_kind.items()}

    def __repr__(self) -> str:
        where = f", in {self.path}" if self.path else ""
        return f"<mpsim.Watch: {self.seen} of {self.count - self.first + 1} steps watched{where}>"

    def advice(self) -> list[str]:
        """What the numbers so far say, a sentence each: layers that underflow or overflow, loss scales that are safe, the
        judgement of `mpsim log` on the loss scale, updates that a format would lose. Empty: nothing was found."""
        return sentences(self)
