"""Statistics of a training while it runs: the hooks of the recorder, but tensors are counted where they lie, not kept."""
from __future__ import annotations

import json
import os
import re
from array import array
from typing import Any, Callable, Iterable, Optional, Sequence, Union

import numpy as np
import torch

from . import _advice
from ._arrays import pointer
from ._cast import plan_of
from ._cuda import dense, of_tensor
from ._error import InputError
from ._formats import of_dtype
from ._library import check, lib
from ._statistics import Tally, Targets
from .record import DTYPES, STATE, Recorder, guarded, in_backward, is_sharded, unwatch
from .record import watch as listen

KINDS = ("weight", "wgrad", "act", "agrad")
ALL_KINDS = (*KINDS, "out", "dgrad", "opt")  # opt: opt.m, opt.v, opt.vmax
CHUNK = 1 << 15
CASTS = {"bf16": torch.bfloat16, "fp16": torch.float16}
WAITING = 64  # tensors that devices count at once; each has up to 256 KiB there and here
NO_FLOATS = "its input is no floating-point tensor"  # embeddings': a remark that warns nobody
STATES = sorted(set(STATE.values()))
FORMATS = {dtype: of_dtype(str(dtype)[6:]) for dtype in DTYPES}
# nvdlfw-inspect's names of tensors
INSPECT = {"activation": "act", "weight": "weight", "gradient": "agrad", "wgrad": "wgrad", "dgrad": "dgrad", "output": "out"}


def names_of(layers: dict[str, Any]) -> str:
    """A regular expression of the whole names that a `layers` of nvdlfw-inspect 0.2 chooses."""
    unknown = [key for key in layers if key not in ("exact_layer_names", "layer_name_regex_pattern", "layer_numbers", "layer_types")]
    if unknown:
        raise InputError(f"watch: inspect: expected layers by exact_layer_names, layer_name_regex_pattern, layer_numbers or "
                         f"layer_types, found {unknown[0]!r}")
    if layers.get("exact_layer_names"):
        return "|".join(map(re.escape, layers["exact_layer_names"]))
    if layers.get("layer_name_regex_pattern"):
        return f"(?s:.*(?:{layers['layer_name_regex_pattern']}).*)"  # which it searches for
    types, given = layers.get("layer_types") or ["all"], layers.get("layer_numbers", -1)
    ranges = [str(each).partition("-") for each in (given if isinstance(given, list) else [given])]
    words = ".*" if "all" in types else "|".join(f".*{re.escape(word)}.*" for word in types)
    if given in (-1, [-1]):
        return words
    try:
        numbers = {str(n) for low, _, high in ranges for n in range(int(low), int(high or low) + 1)}
    except ValueError:
        raise InputError(f"watch: inspect: expected layer_numbers as 3 or '1-5', or a list of these, found {given!r}") from None
    return rf"(?=(?:.*\.)?(?:{'|'.join(sorted(numbers))})(?:\..*)?$)(?:{words})"


def inspected(config: dict[str, Any]) -> dict[str, Any]:
    """Arguments of watch from a section of a file of nvdlfw-inspect 0.2: its layers, and of LogTensorStats tensors,
    freq, start_step and end_step or start_end_list. Which numbers it would log is not asked: all are counted."""
    features = config.get("transformer_engine", config)
    stats = next((v for k, v in features.items() if k.startswith("LogTensorStats")), features)
    if not config.get("enabled", True) or not stats.get("enabled", True):
        raise InputError("watch: inspect: expected a section that is enabled, found enabled: False")
    struct = stats.get("tensors_struct")
    if struct:
        rest = [{k: v for k, v in each.items() if k not in ("tensor", "stats")} for each in struct]
        if any(each != rest[0] for each in rest):
            raise InputError("watch: inspect: expected tensors_struct with one freq and range of steps, found several")
        stats = {**stats, **rest[0], "tensors": [each["tensor"] for each in struct]}
    tensors = stats.get("tensors", ["activation", "gradient", "weight"])
    tensors = list(INSPECT) if "all" in tensors else tensors
    for word in tensors:
        if word not in INSPECT:
            raise InputError(f"watch: inspect: expected tensors of {', '.join(INSPECT)}, found {word!r}")
    end = stats.get("end_step")
    spans = stats.get("start_end_list") or [(stats.get("start_step") or 0, -1 if end in (None, -1) else end + 1)]
    return {"modules": names_of(config.get("layers", {})), "kinds": [INSPECT[word] for word in tensors],
            "every": stats.get("freq") or 1, "spans": spans}


class Watch(Recorder):
    """What `mpsim.watch` gives. A context manager; `close` ends it, as does the end of the program.

    step: the number of the step at hand, or None between watched ones.
    count: how many steps the optimizers have taken or skipped.
    remarks: lines on what could not be watched, and why.
    """
    NAME, VERB = "mpsim.watch", ("counts", "counted")

    def __init__(self, model: torch.nn.Module, optimizer: Any, every: int, targets: Targets, out: Any, kinds: Sequence[str],
                 modules: str, scaler: Any, log: Optional[Callable[[dict[str, Any]], Any]], updates: Sequence[str],
                 start: int, stop: Optional[int], gather: bool, spans: Optional[Sequence[Sequence[int]]] = None) -> None:
        self.targets, self.out, self.log, self.updates = targets, out, log, list(updates)
        self.first, self.stop, self.count, self.closed = start, stop, start - 1, False
        self.spans = spans  # of steps, each without its end, -1 for none: then the first step is like others
        self.file: Any = None
        self.lines: list[dict[str, Any]] = []
        self.by_kind: dict[str, Tally] = {}
        self.of_step: dict[str, Tally] = {}
        self.waiting: list[tuple[dict[str, Any], Tally, Any, Any]] = []  # lines of tensors that devices are counting
        self.done: set[int] = set()
        self.took: set[int] = set()
        self.before: dict[int, list[tuple[str, Any, Any]]] = {}
        self.history = array("d"), array("b")  # of each step the loss scale, and whether it was skipped
        self.numbers: dict[int, dict[str, float]] = {}  # loss and norm, by step
        self.remarks: list[str] = []
        self.seen = 0  # watched steps
        self.gradients: dict[str, list[dict[str, Any]]] = {}
        self.lost: dict[str, list[int]] = {}
        wanted = set(kinds) - {"opt"} | (set(STATES) if "opt" in kinds else set())
        super().__init__(model, os.devnull, every=every, optimizer=optimizer, kinds=wanted, modules=modules, scaler=scaler,
                         gather=gather, settings=False)
        if not all(hasattr(o, "register_step_post_hook") for o in self.opts):
            raise InputError("watch: expected optimizers of torch.optim with step hooks, found "
                             + ", ".join(type(o).__name__ for o in self.opts))
        self.path: Optional[str] = None
        self._begin()

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

    @guarded
    def _on_clip(self, kind: str, parameters: Any, limit: Any, norm: Any, foreach: Any) -> None:
        whose = {id(p) for p in parameters}
        for opt in self.opts:
            if whose & set(self._params(opt)):
                self._take(opt)
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
                for key, kind in STATE.items():
                    if kind in self.kinds and torch.is_tensor(opt.state.get(p, {}).get(key)):
                        self._put(kind, name, opt.state[p][key])
                if self.updates and p.grad is not None and not is_sharded(p) and p.dtype in DTYPES:
                    kept.append((name, p, p.detach().clone(memory_format=torch.contiguous_format)))
        self.before[id(opt)] = kept

    def _params_of(self, opt: Any) -> Iterable[Any]:
        return [p for g in opt.param_groups for p in g["params"]]

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

    def _on_input(self, mod: Any, name: str, args: Any, kwargs: Any) -> Any:
        return super()._on_input(mod, name, args, kwargs) if self._inner()[0].training else None

    def _on_output(self, name: str, out: Any, output: Any) -> None:
        if self._inner()[0].training:
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
        """Numbers of the step at hand, as loss=2.3, that its record and the judge of the run get."""
        self.note_at(self.count + 1, numbers)

    def note_at(self, step: int, numbers: dict[str, Any]) -> None:
        """The same of another step."""
        self.numbers.setdefault(step, {}).update({k: float(v) for k, v in numbers.items()})

    def _miss(self, name: str, what: Any, reason: str) -> None:
        if reason == "not called or compiled":
            if isinstance(what, torch.nn.Module) and not any(True for _ in what.parameters()):
                return  # as dropout that attention does itself: there is nothing to watch
            reason = "not called in training mode, or compiled"
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
        lines.append({"level": "step", "step": self.step, "tensors": whole.tensors, **whole.record(), **scale,
                      **self.numbers.get(self.step, {})})
        for kind, tally in tallies.items():
            if kind not in self.by_kind:
                self.by_kind[kind] = Tally(self.targets, tally.scaled)
            self.by_kind[kind].merge(tally)
        for line in lines:
            if line["level"] == "tensor" and line["kind"] in ("agrad", "wgrad", "dgrad"):
                self.gradients.setdefault(line["name"], []).append({**line, **scale})
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

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if self.out is None:
            return
        if self.file is None:
            rank = self._place()[0]
            self.path = os.fspath(self.out)
            if rank:
                stem, ext = os.path.splitext(self.path)
                self.path = f"{stem}.rank{rank:05d}{ext}"
            self.file = open(self.path, "w", encoding="utf-8")
            lines = [self.targets.config, *lines]
        self.file.write("".join(json.dumps(line) + "\n" for line in lines))
        self.file.flush()

    def close(self) -> None:
        """End watching: hooks go, sums over kinds and over all are written. What has been watched stays known."""
        if self.closed:
            return
        self._finish()
        self.count += bool(self.done)
        self.closed = True
        self._drop()
        unwatch(self)
        whole = self._whole(self.by_kind)
        self._write([{"level": "kind", "kind": kind, "tensors": tally.tensors, **tally.record()}
                     for kind, tally in self.by_kind.items()]
                    + [{"level": "total", "tensors": whole.tensors, **whole.record(), "failed_files": 0}])
        if self.file is not None:
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
        return _advice.sentences(self)


def lost_updates(old: Any, new: Any, label: str) -> tuple[int, int]:
    """Of two contiguous binary32 tensors the elements that differ, and how many of these a weight kept in a format would
    not have moved: the weight, rounded, and the same movement added to it in binary32 and rounded."""
    if old.is_cuda and label in CASTS:  # these casts are PyTorch's, to the bit
        kept = old.to(CASTS[label]).to(old.dtype)
        then = (kept + (new - old)).to(CASTS[label]).to(old.dtype)
        moves = old != new
        return int(moves.sum()), int((moves & (then == kept)).sum())
    old, new = old.cpu().reshape(-1).numpy(), new.cpu().contiguous().reshape(-1).numpy()
    plan = plan_of(label, None, 1.0, None, None, False, False, "binary32")
    kept, then = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)  # stay in the cache
    moved = lost = 0
    for i in range(0, old.size, CHUNK):
        a, b = old[i:i + CHUNK], new[i:i + CHUNK]
        k, t = kept[:a.size], then[:a.size]
        check(lib.mpsim_round_array_f32(plan.f, plan.r, None, pointer(k), pointer(a), a.size, None), "updates")
        np.add(k, np.subtract(b, a, out=t), out=t)
        check(lib.mpsim_round_array_f32(plan.f, plan.r, None, pointer(t), pointer(t), a.size, None), "updates")
        moves = a != b
        moved += int(np.count_nonzero(moves))
        lost += int(np.count_nonzero(moves & (t == k)))
    return moved, lost


def watch(model: torch.nn.Module, optimizer: Any, every: int = 100, formats: Union[str, Sequence[str]] = ("fp16",),
          scales: Any = (1,), recipes: Union[str, Sequence[str]] = (), out: Union[str, "os.PathLike[str]", None] = None, *,
          kinds: Sequence[str] = KINDS, modules: str = ".*", scaler: Any = None,
          log: Optional[Callable[[dict[str, Any]], Any]] = None, updates: Union[str, Sequence[str]] = ("bf16",), start: int = 1,
          stop: Optional[int] = None, gather: bool = False, inspect: Optional[dict[str, Any]] = None) -> Watch:
    """Watch a PyTorch training: statistics of its tensors where they lie, as `mpsim stat` counts them.

    model, optimizer: as they are trained; a list of several optimizers.
    every: the first step and each whose number this divides are watched.
    formats, scales, recipes: what tensors are cast to, as of `stat`.
    out: a file of JSON lines, the records of `mpsim stat --ndjson` and "update", "scaler" and "note" beside; None: none.
    kinds: of "weight", "wgrad", "act", "agrad", "out", "dgrad", "opt". modules: a regular expression on their names.
    scaler: the GradScaler; found by itself where it scales the loss.
    log: called after each watched step with numbers by name, as {"mpsim/agrad/fc1/underflow/fp16": 0.02, "step": 100}.
    updates: formats; what share of the movements of binary32 weights these would lose.
    start: the number of the first step. stop: of the last. gather: sharded parameters (DTensor) are gathered.
    inspect: a section of an nvdlfw-inspect file as a dict, instead of kinds, modules and every: the steps that it says.

    Gradients are those before unscaling and clipping, as the last backward() has left them. Training changes by no bit.
    Tensors on a CUDA device are counted there if libmpsim-cuda is found (MPSIM_CUDA names it), else copied to memory, as
    are binary64 tensors and all of them under recipes. What cannot be watched (modules inside torch.compile, parameters of FSDP1)
    is named, in a warning and in the file.

    >>> model = torch.nn.Linear(4, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with mpsim.watch(model, optimizer, every=1, formats=["fp16"], kinds=["wgrad"]) as w:
    ...     loss = (model(torch.ones(3, 4)) * 1e-7).sum(); loss.backward(); optimizer.step()
    >>> w.kinds_seen()["wgrad"]["formats"][0]["subnormal"]
    10
    """
    spans = None
    if inspect is not None:
        given = inspected(inspect)
        modules, kinds, every, spans = (given[k] for k in ("modules", "kinds", "every", "spans"))
    listed = [[each] if isinstance(each, str) else list(each) for each in (formats, recipes, updates)]
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise InputError(f"watch: expected kinds of {', '.join(ALL_KINDS)}, found {kind!r}")
    if not all(hasattr(o, "step") for o in (optimizer if isinstance(optimizer, (list, tuple)) else [optimizer])):
        raise InputError(f"watch: expected an optimizer or a list of them, found {type(optimizer).__name__}")
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"watch: expected a torch.nn.Module, found {type(model).__name__}")
    if every < 1:
        raise InputError(f"watch: every is a number of steps from 1 on, not {every!r}")
    for name in listed[2]:
        plan_of(name, None, 1.0, None, None, False, False, "binary32")
    targets = Targets(listed[0], list(scales) if isinstance(scales, (list, tuple)) else scales, listed[1])
    targets.parallel(torch.get_num_threads())
    return Watch(model, optimizer, every, targets, out, kinds, modules, scaler, log, listed[2], start, stop, gather,
                 spans)
