# SPDX-License-Identifier: Apache-2.0
"""Record the tensors of a PyTorch training step as an mpsim-trace/1 directory.

Needs only torch, from 1.13 on, and the standard library, and can be copied beside a training as a file.  Use in your own loop:

    from mpsim.record import Recorder

    rec = Recorder(model, "trace", steps={1, 2, 100, 101}, optimizer=opt, scaler=scaler)
    for step in range(1, last + 1):
        opt.zero_grad()
        rec.begin(step)                      # hooks go on, if this step is wanted
        loss = loss_fn(model(x), y)          # one or several forward and backward passes
        scaler.scale(loss).backward()
        rec.end(loss)                        # anywhere after the last backward()
        scaler.unscale_(opt)                 # unscaling, clipping and the step as usual
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    rec.close()

Gradients, weights and the optimizer's state are taken as the last backward() left them:
before unscale_(), clipping and the update, whichever call comes first.  data/record/README.md
of mpsim's sources says what is recorded, and what is not; nothing here changes the training.
"""
import atexit
import contextlib
import ctypes
import functools
import inspect
import json
import math
import os
import re
import struct
import sys
import types
import warnings
import weakref

import torch

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
STATE = {"momentum_buffer": "opt.m", "exp_avg": "opt.m", "exp_avg_sq": "opt.v", "max_exp_avg_sq": "opt.vmax"}
WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
PREFIXES = re.compile(r"(^|\.)(_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module)(?=\.|$)")
# whose lines a warning is not about: ours, where this is the package's, and torch's
INSIDE = (os.path.join(os.path.dirname(__file__), "") if __package__ else __file__, os.path.join(os.path.dirname(torch.__file__), ""))
NO_SETTING = {"params", "foreach", "fused", "differentiable", "initial_lr"}
WITH_KWARGS = "with_kwargs" in inspect.signature(torch.nn.Module.register_forward_pre_hook).parameters  # torch 2.0
INERT = contextlib.nullcontext().__exit__        # takes anything, does nothing, and is Python's own


class Full(Exception):
    """The trace has its bytes."""


def clean(name):
    """A name without what wrappers put into it."""
    return PREFIXES.sub("", name).lstrip(".")


def raw_bytes(t):
    """The bytes of a tensor's values."""
    t = t.detach().cpu().contiguous()
    n = t.numel() * t.element_size()
    return ctypes.string_at(t.data_ptr(), n) if n else b""


def safetensors_header(tensors, metadata):
    """The first bytes of a safetensors file, and the size of the whole file."""
    header, pos = {"__metadata__": metadata}, 0
    for name in sorted(tensors):
        t = tensors[name]
        size = t.numel() * t.element_size()
        header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [pos, pos + size]}
        pos += size
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, 8 + len(text) + pos


def save_safetensors(path, tensors, metadata):
    """Write a safetensors file with sorted keys, so that equal data gives equal bytes. It is
    written whole or not at all."""
    folder = os.path.dirname(path) or "."
    part = os.path.join(folder, ".%s.%d.tmp" % (os.path.basename(path), os.getpid()))
    os.makedirs(folder, exist_ok=True)
    try:
        with open(part, "wb") as f:
            f.write(safetensors_header(tensors, metadata)[0])
            for name in sorted(tensors):
                f.write(raw_bytes(tensors[name]))
            f.flush()
            os.fsync(f.fileno())
        os.replace(part, path)
    except BaseException:
        try:
            os.unlink(part)
            os.rmdir(folder)                     # if nothing else is in it
        except OSError:
            pass
        raise


def floats(values):
    """The floating-point tensors of a hook argument, each once, in order."""
    found, todo = [], [values]
    while todo:
        v = todo.pop(0)
        if torch.is_tensor(v):
            if v.dtype in DTYPES and not any(v is f for f in found):
                found.append(v)
        elif isinstance(v, (tuple, list)):
            todo[:0] = v
        elif isinstance(v, dict):
            todo[:0] = v.values()
    return found


def in_backward():
    """True in a forward pass which activation checkpointing runs again."""
    if hasattr(torch._C, "_current_graph_task_id"):
        return torch._C._current_graph_task_id() != -1
    return BACKWARD.depth > 0                    # before torch 2.0


def is_compiling():
    return hasattr(torch, "compiler") and getattr(torch.compiler, "is_compiling", lambda: False)()


def is_capturing():
    """Whether the current stream captures a CUDA graph: what reads a tensor ends the capture, and replays run no hooks."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def is_sharded(t):
    return hasattr(t, "full_tensor")


def number(x):
    return x.item() if torch.is_tensor(x) else x


def text_of(value):
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else repr(value)


def guarded(method):
    """What fails in here costs the recording of a step, never the training."""
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except Full:
            self._drop()
            self.stopped = True
            self._warn(f"recording ends, the training goes on: {self.written} bytes are written, "
                       f"and more than max_bytes={self.max_bytes} would be")
        except Exception as e:  # whatever it is
            reason = f"{type(e).__name__}: {e}"
            self._lost(reason)
            self._drop()
            self._warn("a step was not recorded, the training goes on: " + reason, key="failed")
        return None
    return call


# ---- calls that are watched while a step is recorded ----

ACTIVE = []                                      # the recorders which have a step at hand
PATCHED = {}                                     # (owner, name): what was there, what is there now
BACKWARD = types.SimpleNamespace(depth=0)        # calls of backward() that are running, while a step is recorded


def tell(method, *args):
    for rec in list(ACTIVE) if ACTIVE and not is_capturing() else ():
        getattr(rec, method)(*args)


def listed(parameters):
    return [parameters] if torch.is_tensor(parameters) else list(parameters)


def watch_backward(old):
    def call(*args, **kwargs):
        tell("_on_backward", 1)
        BACKWARD.depth += 1
        try:
            return old(*args, **kwargs)
        finally:
            BACKWARD.depth -= 1
            tell("_on_backward", -1)
    return call


def watch_autocast(old):
    def call(context):
        tell("_on_autocast", context)
        return old(context)
    return call


def watch_norm(old):
    def call(tensors, norm_type=2.0, *args, **kwargs):
        tell("_on_norm", norm_type)
        return old(tensors, norm_type, *args, **kwargs)
    return call


def watch_scale_by_norm(old):
    def call(parameters, max_norm, total_norm, foreach=None):
        parameters = listed(parameters)
        tell("_on_clip", "norm", parameters, max_norm, total_norm, foreach)
        return old(parameters, max_norm, total_norm, foreach)
    return call


def watch_clip_norm(old):
    def call(parameters, max_norm, norm_type=2.0, *args, **kwargs):
        parameters = listed(parameters)
        tell("_on_norm", norm_type)
        tell("_before_clip", parameters)
        norm = old(parameters, max_norm, norm_type, *args, **kwargs)
        tell("_on_clip", "norm", parameters, max_norm, norm, kwargs.get("foreach"))
        return norm
    return call


def watch_clip_value(old):
    def call(parameters, clip_value, foreach=None):
        parameters = listed(parameters)
        tell("_on_clip", "value", parameters, clip_value, None, foreach)
        return old(parameters, clip_value, foreach)
    return call


def watch_scale(old):
    def call(scaler, *args, **kwargs):
        tell("_on_scaler", scaler)
        return old(scaler, *args, **kwargs)
    return call


def watch_unscale(old):
    def call(scaler, optimizer):
        tell("_before_unscale", scaler, optimizer)
        result = old(scaler, optimizer)
        tell("_after_unscale", scaler, optimizer)
        return result
    return call


def watch_scaler_step(old):
    def call(scaler, optimizer, *args, **kwargs):
        tell("_before_scaler_step", scaler, optimizer)
        try:
            return old(scaler, optimizer, *args, **kwargs)
        finally:
            tell("_after_scaler_step", scaler, optimizer)
    return call


def watched(scaler):
    """What is replaced: owner, name, by what."""
    utils, parts = torch.nn.utils, sys.modules["torch.nn.utils.clip_grad"]
    yield torch.autograd, "backward", watch_backward
    yield torch.autocast, "__enter__", watch_autocast
    for owner, mark in ((parts, "_"), (utils, "")):
        yield owner, mark + "get_total_norm", watch_norm
        yield owner, mark + "clip_grads_with_norm_", watch_scale_by_norm
        yield owner, "clip_grad_value_", watch_clip_value
        if not hasattr(parts, "_clip_grads_with_norm_"):  # before torch 2.6
            yield owner, "clip_grad_norm_", watch_clip_norm
    general = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # of both, and before torch 2.3
    for owner in {general, type(scaler)} - {type(None)}:
        for name, make in (("scale", watch_scale), ("unscale_", watch_unscale), ("step", watch_scaler_step)):
            if name in owner.__dict__:
                yield owner, name, make


def watch(rec):
    if rec not in ACTIVE:
        ACTIVE.append(rec)
    for owner, name, make in watched(rec.scaler):
        old = owner.__dict__.get(name)
        if old is not None and (owner, name) not in PATCHED:
            new = functools.wraps(old)(make(old))
            PATCHED[owner, name] = old, new
            setattr(owner, name, new)


def unwatch(rec):
    if rec in ACTIVE:
        ACTIVE.remove(rec)
    for (owner, name), (old, new) in () if ACTIVE else list(PATCHED.items()):
        if owner.__dict__.get(name) is new:      # else others have replaced it once more: ours stays, idle
            setattr(owner, name, old)
            del PATCHED[owner, name]


def autocast_dtype():
    """What autocast computes in where it is in force; None: it is not."""
    try:
        return next((torch.get_autocast_dtype(d) for d in ("cpu", "cuda") if torch.is_autocast_enabled(d)), None)
    except (AttributeError, TypeError):          # before torch 2.4
        return (torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else
                torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None)


# ---- hooks ----

class Hook:
    """A hook of one module. Copies of the module (an EMA's), and what torch.save() writes of it, have one instead that
    does nothing and needs none of this file."""

    def __init__(self, module, call):
        self.module, self.call = weakref.ref(module), call

    def __call__(self, module, *args):
        return self.call(module, *args) if module is self.module() else None

    def __deepcopy__(self, memo):
        return INERT

    def __reduce__(self):
        return getattr, (contextlib.nullcontext(), "__exit__")


class Stepping:
    """A call before and one after each step of an optimizer whose torch, before 2.0, has no hooks for it. Its step() is
    replaced once, by one that makes all such calls."""

    def __init__(self, opt, before, after):
        self.opt, self.calls, self.mine = weakref.ref(opt), getattr(opt.step, "mpsim_calls", None), (before, after)
        if self.calls is None:
            self.calls = []
            opt.step = types.MethodType(self.replaced(opt.step, self.calls), opt)
        self.calls.append(self.mine)

    @staticmethod
    def replaced(old, calls):
        @functools.wraps(old)
        def step(opt, *args, **kwargs):
            now, given = list(calls), ((opt, *args), kwargs)
            for before, _ in now:
                given = before(opt, *given) or given
            result = old(*given[0][1:], **given[1])
            for _, after in now:
                after(opt, *given)
            return result
        step.mpsim_calls, step.mpsim_old = calls, old
        return step

    def remove(self):
        if self.mine in self.calls:
            self.calls.remove(self.mine)
        opt = self.opt()
        now = vars(opt).get("step") if opt is not None else None
        if not self.calls and isinstance(now, types.MethodType) and getattr(now, "mpsim_calls", None) is self.calls:
            if getattr(now.mpsim_old, "__func__", None) is getattr(type(opt), "step", None):
                del opt.step
            else:
                opt.step = now.mpsim_old         # a scheduler's; one that came later calls ours, which does nothing more


def on_step(opt, before, after):
    """Handles of calls before and after each step of an optimizer; none where it has no place for them."""
    if hasattr(opt, "register_step_post_hook"):
        return [opt.register_step_pre_hook(before), opt.register_step_post_hook(after)]
    return [Stepping(opt, before, after)] if isinstance(opt, torch.optim.Optimizer) else []


def all_names(model):
    """Each name of each parameter, of shared ones several."""
    for prefix, module in model.named_modules(remove_duplicate=False):
        for name, p in module._parameters.items():
            if p is not None:
                yield (prefix + "." if prefix else "") + name, p


# ---- what a parameter group is ----

def implementation(opt, group):
    """forloop, foreach, fused; capturable, or with -capturable: as torch.optim chooses."""
    foreach, fused = group.get("foreach"), group.get("fused")
    if "foreach" not in group and "fused" not in group:
        return "unknown"
    if foreach is None and not fused:
        choose = getattr(sys.modules["torch.optim.optimizer"], "_default_to_fused_or_foreach", None)
        used = [p for p in group["params"] if p.grad is not None] or group["params"]
        foreach = bool(choose and choose(used, group.get("differentiable", False), use_fused=False)[1])
        if torch.is_tensor(group.get("lr")) and not group.get("capturable"):
            foreach = False
    name = "fused" if fused else "foreach" if foreach else "forloop"
    if group.get("capturable"):
        return "capturable" if name == "forloop" else name + "-capturable"
    return name


def algorithm(opt, group):
    """sgd, adam, adamw, ...: the class of torch.optim whose step() runs, else the own name."""
    cls = type(opt)
    for base in cls.__mro__:
        if base.__module__.startswith("torch.optim") and inspect.unwrap(base.step) is inspect.unwrap(cls.step):
            cls = base
            break
    name = cls.__name__.lower()
    return "adamw" if name == "adam" and group.get("decoupled_weight_decay") else name


@functools.lru_cache(maxsize=None)
def ieee_roots():
    """Whether float32 square roots on CPU, MKL's as a rule, are IEEE's here: of 4096 numbers."""
    with torch.no_grad():
        x = torch.arange(1.0, 4097.0, device="cpu")
        want = x.double().sqrt().float()
        return torch.equal(x.sqrt(), want) and torch.equal(torch._foreach_sqrt([x])[0], want)


class Recorder:
    NAME, VERB = "mpsim.record", ("records", "stored")  # who warns; what becomes of a tensor

    def __init__(self, model, directory, steps=None, optimizer=None, meta=None, rank=None, world=None,
                 kinds=("weight", "wgrad", "act", "agrad"), modules=r".*", out_modules=None, *,
                 scaler=None, every=None, consecutive=1, accumulation=None, masters=None,
                 max_bytes=None, gather=False, settings=True):
        """steps: a set of step numbers; every, consecutive: the steps whose remainder by `every`
        is below `consecutive` (every=1: all). optimizer: one, or a list.
        modules, out_modules: regular expressions (fullmatch) on the names of the modules to hook;
        out_modules, if given, records out for these even if "out" is not in kinds.
        scaler: the GradScaler (found by itself, if it scales the loss after begin()).
        accumulation: micro-batches of a step, if not the calls of backward() after begin().
        masters: float32 copies of the parameters, in their order, which the optimizer updates.
        max_bytes: recording ends before the trace grows beyond. gather: sharded parameters
        (DTensor) are gathered, in which every rank must take part. settings=False: nothing of the
        optimizer but its state, and nothing of the run, is said beyond meta."""
        if steps is None and not every:
            raise ValueError("say which steps are wanted: steps=, or every= (every=1: all)")
        self.model, self.dir, self.meta = model, os.fspath(directory), dict(meta or {})
        self.steps, self.every, self.consecutive = None if steps is None else set(steps), every, consecutive
        self.opts = [] if optimizer is None else [*optimizer] if isinstance(optimizer, (list, tuple)) else [optimizer]
        self.rank, self.world, self.scaler, self.accumulation = rank, world, scaler, accumulation
        self.kinds, self.modules, self.out_modules = set(kinds), re.compile(modules), out_modules
        self.masters, self.max_bytes, self.gather = masters and list(masters), max_bytes, gather
        self.guessed = False                     # whether the scaler is this optimizer's
        self.settings, self.written, self.stopped, self.said = settings, 0, False, set()
        self.graphed = {}                        # calls that CUDA graphs have captured, by module
        self.handles, self.taken, self.begun = [], {}, False
        self._drop()
        for k, opt in enumerate(self.opts):
            while isinstance(getattr(opt, "optimizer", None), torch.optim.Optimizer):
                opt = self.opts[k] = opt.optimizer      # Accelerate's, Lightning's
            known = not any(state.get("momentum_buffer") is not None for state in opt.state.values())
            self.taken[id(opt)] = 0 if known else None
        self._listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- a step ----

    def wanted(self, step):
        return bool(self.steps and step in self.steps or self.every and step % self.every < self.consecutive)

    def begin(self, step):
        """Call before the first forward pass of a step."""
        self.begun = True
        if self.step == step and not self.captured:
            return                               # a further micro-batch
        self._finish()
        if self.at_exit is None:                 # after close(): which steps there were in between is not known
            self._listen()
            self.taken = dict.fromkeys(self.taken)
        if not self.stopped and self.wanted(step):
            self._drop()
            self.step = step
            self._install()

    def end(self, loss=None, loss_scale=None, grads_scaled=None, reduced="post"):
        """Call after the last backward(), before or after unscaling, clipping and the step. Without
        a scaler: the scale that the loss was multiplied by, and whether gradients still are."""
        if self.step is None:
            return
        self.said_of_loss = (loss_scale, grads_scaled, reduced)
        self._capture()
        self._end(loss)

    @guarded
    def _end(self, loss):
        if self.step is None:
            return
        if loss is not None:
            self.notes["loss"] = "%.9g" % float(loss.detach() if torch.is_tensor(loss) else loss)
        self.ended = True
        self._finish_if_ready()

    def note(self, **meta):
        """Metadata of the step at hand which the recorder cannot see (found_inf of a scaler of one's
        own, a norm); None takes a key away."""
        if self.step is not None:
            self.notes.update(meta)

    def snapshot(self, step):
        """A file of weights and state only: after the last step, what it made of them."""
        self._finish()
        if self.stopped:
            return
        self.step, self.is_snapshot = step, True
        self._capture()
        self._finish()

    def close(self):
        """Write what is still to be written; nothing stays on the model or the optimizers."""
        if not self.begun:
            self._warn("nothing is recorded: begin(step) was never called")
        self._finish()
        self._leave()

    def _listen(self):
        """Hooks on the optimizers, and the end of the program."""
        me = weakref.ref(self)
        self.at_exit = lambda: me() and me().close()
        atexit.register(self.at_exit)
        self.on_steps = [on_step(opt, self._step_begins, self._step_ends) for opt in self.opts]
        self.sees_steps = all(self.on_steps)     # of each optimizer

    def _leave(self):
        for handle in (h for handles in self.on_steps for h in handles):
            handle.remove()
        atexit.unregister(self.at_exit)
        self.on_steps, self.at_exit = [], None

    def _lost(self, reason):
        """The step at hand is lost."""

    def _drop(self):
        for h in self.handles:
            h.remove()
        unwatch(self)
        self.handles, self.tensors, self.order, self.step, self.held = [], {}, [], None, 0
        self.captured = self.ended = self.in_scaler = self.is_snapshot = False
        self.notes, self.missing, self.said_of_loss = {}, {}, (None, None, "post")
        self.hooked, self.fired, self.due, self.autocast = {}, set(), set(), None
        self.backwards = self.depth = 0
        self.found_inf, self.scale, self.scaler_notes = {}, None, {}
        self.unscaled, self.groups = set(), []
        self.clips, self.changes, self.norm_type, self.stepped = [], [], 2.0, set()

    def _warn(self, text, key=None):
        if (key or text) in self.said:
            return
        self.said.add(key or text)
        level, frame = 2, sys._getframe(1)
        while frame.f_back and frame.f_code.co_filename.startswith(INSIDE):
            level, frame = level + 1, frame.f_back
        try:
            warnings.warn(f"{self.NAME}: {text}", RuntimeWarning, stacklevel=level)
        except RuntimeWarning:                   # warnings are errors here
            print(f"{self.NAME}: {text}", file=sys.stderr)

    # ---- hooks of modules ----

    def _inner(self):
        model, compiled = self.model, False
        while type(model).__name__ in WRAPPERS:
            compiled |= type(model).__name__ == "OptimizedModule"
            model = getattr(model, WRAPPERS[type(model).__name__])
        return model, compiled

    def _candidates(self):
        """Modules without children, or with parameters of their own: name, module, whether compiled."""
        model, compiled = self._inner()
        within = ("",) if compiled else ()
        for name, mod in model.named_modules():
            if type(mod).__name__ == "OptimizedModule" or getattr(mod, "_compiled_call_impl", None) is not None:
                within += (name + "." if name else "",)
            own = any(p is not None for p in mod._parameters.values()) or hasattr(mod, "parametrizations")
            leaf = not any(True for _ in mod.children())
            if (leaf or own) and self.modules.fullmatch(clean(name)):
                yield clean(name), mod, leaf, (name + ".").startswith(within)

    @guarded
    def _install(self):
        self.autocast = autocast_dtype()
        parallel = type(self.model).__name__ == "DataParallel"
        for name, mod, leaf, compiled in self._candidates():
            if not self.kinds & {"act", "out", "agrad", "dgrad"}:
                break
            if compiled or parallel:
                self._miss(name, mod, "compiled; hooks would change it" if compiled else "run by several threads")
            elif not name and not leaf:
                self._miss("(model)", mod, "operands of its own parameters are inside its forward()")
            else:
                self._hook(mod, name)
        watch(self)

    def _hook(self, mod, name):
        self.hooked[name] = mod
        out = "out" in self.kinds or bool(self.out_modules and re.fullmatch(self.out_modules, name))

        def before(m, args, kwargs=None):
            given = self._on_input(m, name, args, kwargs or {})
            return given if given is None or WITH_KWARGS else given[0]
        self.handles += [
            mod.register_forward_pre_hook(Hook(mod, before), **({"with_kwargs": True} if WITH_KWARGS else {})),
            mod.register_forward_hook(Hook(mod, lambda m, args, output: self._on_output(name, out, output)))]

    def _miss(self, name, what, reason):
        self.missing[f"{name} ({what if isinstance(what, str) else type(what).__name__})"] = reason

    def _put(self, kind, name, value):
        key, n = f"{kind}:{name}", 1
        while key in self.tensors:               # a module called again, or several inputs
            key, n = f"{kind}:{name}.{n}", n + 1
        if is_sharded(value):
            if not self.gather:
                return self._miss(name, "DTensor", f"{kind} is sharded: gather=True on all ranks {self.VERB[0]} it")
            value = value.detach().full_tensor()
        if value.layout != torch.strided or value.dtype not in DTYPES:
            what = value.dtype if value.layout == torch.strided else value.layout
            return self._miss(name, str(what).replace("torch.", ""), f"{kind} of this kind cannot be {self.VERB[1]}")
        self._receive(key, kind, value.detach())

    def _receive(self, key, kind, value):
        self.held += value.numel() * value.element_size()
        if self.max_bytes is not None and self.written + self.held > self.max_bytes:
            raise Full
        self.tensors[key] = value.clone()

    @guarded
    def _add(self, kind, name, values):
        if self.step is not None and not self.captured and not is_capturing():
            for t in floats(values):
                self._put(kind, name, t)

    def _watch(self, t, kind, name):
        """Record the gradient of t when it is there, if this is still the same step."""
        tensors = self.tensors
        if not in_backward():
            self.due.add((kind, name))
        t.register_hook(lambda grad: self._add(kind, name, grad) if self.tensors is tensors else None)

    def _is_graphed(self, name):
        """Whether a CUDA graph captures this call of a module, which is skipped, and counted as that."""
        if not is_capturing():
            return False
        self.graphed[name] = self.graphed.get(name, 0) + 1
        self._warn(f"calls that a CUDA graph captures are not {self.VERB[1]}: its replays run no hooks", key="graph")
        return True

    @guarded
    def _on_input(self, mod, name, args, kwargs):
        if is_compiling() or self.captured or self._is_graphed(name):
            return None
        self.fired.add(name)
        if not in_backward():
            self.order.append(name)
            if "act" in self.kinds:              # here, as the module may change it in place
                self._add("act", name, (args, kwargs))
                if not floats((args, kwargs)):
                    self._miss(name, mod, "its input is no floating-point tensor" if args or WITH_KWARGS else
                               "its inputs are keywords, which hooks have from torch 2.0 on")
        if "dgrad" not in self.kinds or not torch.is_grad_enabled():
            return None
        views = {}                               # one tensor given twice stays one tensor

        def view(value):
            """The value by a way of its own, so that its gradient is this module's alone."""
            if not torch.is_tensor(value) or value.dtype not in DTYPES or not value.requires_grad:
                return value
            if id(value) not in views:
                views[id(value)] = value.view_as(value)
                self._watch(views[id(value)], "dgrad", name)
            return views[id(value)]
        return tuple(map(view, args)), {k: view(v) for k, v in kwargs.items()}

    @guarded
    def _on_output(self, name, out, output):
        if is_compiling() or self.captured or is_capturing():
            return
        if out and not in_backward():
            self._add("out", name, output)
        for t in floats(output) if "agrad" in self.kinds else ():
            if t.requires_grad:
                self._watch(t, "agrad", name)

    # ---- what happens between the passes and the update ----

    def _mine(self, optimizer):
        return self.step is not None and any(optimizer is opt for opt in self.opts)

    def _gradient_marks(self):
        grads = [p.grad for p in self._inner()[0].parameters()]
        return [g is not None and (id(g), g._version) for g in grads]

    @guarded
    def _on_backward(self, depth):
        """Counts the backward passes that reach the model's parameters; some are within others."""
        if self.captured:
            return
        if self.depth == 0:
            self.marks = self._gradient_marks()
        self.depth += depth
        self.backwards += self.depth == 0 and self.marks != self._gradient_marks()

    def _on_autocast(self, context):
        if self.autocast is None and getattr(context, "_enabled", False):
            self.autocast = context.fast_dtype

    def _on_norm(self, norm_type):
        self.norm_type = norm_type

    @guarded
    def _on_scaler(self, scaler, sure=False):
        """A scaler has scaled a loss, or, sure, is about this optimizer."""
        if self.scaler is not scaler and scaler.is_enabled() and (sure or self.scaler is None):
            self.scaler, self.guessed = scaler, not sure
            if self.captured:
                self._note_scaler()
        self.guessed &= not sure

    def _before_unscale(self, scaler, optimizer):
        if self._mine(optimizer):
            self._on_scaler(scaler, sure=True)
            self._capture()

    @guarded
    def _after_unscale(self, scaler, optimizer):
        if self._mine(optimizer) and scaler.is_enabled() and id(optimizer) not in self.unscaled:
            self.unscaled.add(id(optimizer))
            inverse = scaler._scale.double().reciprocal().float()
            self.changes.append((self._params(optimizer), lambda g: g * inverse.to(g.device)))

    def _before_scaler_step(self, scaler, optimizer):
        if self._mine(optimizer):
            self._on_scaler(scaler, sure=True)
            self._capture()
            self.in_scaler = True

    @guarded
    def _after_scaler_step(self, scaler, optimizer):
        self.in_scaler = False
        if not self._mine(optimizer):
            return
        if scaler.is_enabled():
            found = sum(float(v.item()) for v in scaler._found_inf_per_device(optimizer).values())
            self.found_inf[id(optimizer)] = int(found > 0)
        self.stepped.add(id(optimizer))
        self._finish_if_ready()

    @guarded
    def _before_clip(self, parameters):
        whose = {id(p) for p in parameters if p.grad is not None}
        if whose & (set().union(*(self._params(o) for o in self.opts)) or {id(p) for p in self._names()}):
            self._capture()

    @guarded
    def _on_clip(self, kind, parameters, limit, norm, foreach):
        of = [{i for i in self._params(o, with_grad=True)} for o in self.opts]
        all_of_them = set().union(*of)
        whose = {id(p) for p in parameters if p.grad is not None}
        if not whose & (all_of_them or {id(p) for p in self._names()}):
            return                               # another model's
        self._capture()
        if self.step is None:
            return
        if foreach is None:
            grads = [p.grad for p in parameters if p.grad is not None]
            has = getattr(sys.modules.get("torch.utils._foreach_utils"), "_has_foreach_support", None)
            foreach = bool(grads and has and has(grads, grads[0].device))
        clip = {"kind": kind, "limit": float(limit), "impl": "foreach" if foreach else "forloop",
                "whole": whose >= all_of_them,
                "of": [k for k, own in enumerate(of) if own & whose],
                "all_of": all(own <= whose for own in of if own & whose),
                "unscaled": all(id(o) in self.unscaled for o, own in zip(self.opts, of) if own & whose)}
        if kind == "norm":
            clip.update(type=self.norm_type)
            if is_sharded(norm):
                norm = norm.full_tensor() if self.gather else None
            clip["norm"] = None if norm is None else float(number(norm))
        self.clips.append(clip)
        if kind == "value":
            self.changes.append((whose, lambda g: g.clamp(-float(limit), float(limit))))
        elif norm is not None:
            factor = torch.clamp(float(limit) / (norm.detach() + 1e-6), max=1.0)
            self.changes.append((whose, lambda g: g * factor.to(g.device)))

    def _step_ends(self, opt, args, kwargs):
        if not is_capturing():
            self._after_step(opt)

    def _step_begins(self, opt, args, kwargs):
        """The passes may be in a closure that the step calls, as Lightning's are: the gradients come after it."""
        if is_capturing():
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            self._before_step(opt)
            return None

        def call():
            loss = closure()
            self._before_step(opt)
            return loss
        return ((args[0], call, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": call})

    @guarded
    def _before_step(self, opt):
        self._capture()
        if self.step is None:
            return
        if self.guessed and not self.in_scaler:
            self.scaler = self.scale = None      # another model's
            self._note_scaler()
        self._check_gradients(opt)

    @guarded
    def _after_step(self, opt):
        found = getattr(opt, "found_inf", None)  # a fused step may have done nothing
        if self.taken[id(opt)] is not None:
            self.taken[id(opt)] = self.taken[id(opt)] + (1 if found is None else 1 - found)
        if self.step is not None and not self.in_scaler:
            self.stepped.add(id(opt))
            self._finish_if_ready()

    def _params(self, opt, with_grad=False):
        """The parameters of an optimizer, by id."""
        return {id(p) for g in opt.param_groups for p in g["params"] if not with_grad or p.grad is not None}

    def _check_gradients(self, opt):
        """Has anything changed the gradients since, which the recorder did not see? Those of other optimizers wait
        for their step."""
        changed = 0
        others = set().union(*(self._params(o) for o in self.opts if o is not opt))
        for p, name in self._names().items():
            kept = self.tensors.get("wgrad:" + name)
            if kept is None or p.grad is None or is_sharded(p.grad) or self.masters or id(p) in others:
                continue
            want = kept
            for whose, change in self.changes:
                want = change(want) if id(p) in whose else want
            same = (want == p.grad) | (want.isnan() & p.grad.isnan())
            changed += not bool(same.all())
        if changed:
            self._miss("(gradients)", f"{changed} tensors", "changed after backward() in a way not seen")

    # ---- what is recorded of parameters and optimizer ----

    def _names(self):
        return {p: clean(n) for n, p in self._inner()[0].named_parameters()}

    @guarded
    def _capture(self):
        if self.step is None or self.captured:
            return
        if in_backward():
            self._miss("(gradients)", "optimizer", "the step is part of backward()")
        self.captured, self.place = True, self._place()
        for h in self.handles:
            h.remove()
        self.handles = []
        with torch.no_grad():
            names = self._names()
            if any(type(m).__name__ == "FullyShardedDataParallel" for m in self.model.modules()):
                self._miss("(model)", "FullyShardedDataParallel", "parameters are flat and sharded")
                names = {}
            for p, n in names.items():
                if "weight" in self.kinds:
                    self._put("weight", n, p)
                if self.is_snapshot or not p.requires_grad:
                    continue
                if p.grad is None:
                    self._miss(n, "Parameter", "no gradient in this step")
                elif "wgrad" in self.kinds:
                    self._put("wgrad", n, p.grad)
            if self.masters:
                masters = dict(zip(self.masters, names.values()))
                for p, n in masters.items():
                    self._put("master", n, p)
                names = {**names, **masters}
            for opt in self.opts:
                for p, state in opt.state.items():
                    for key, kind in STATE.items():
                        if torch.is_tensor(state.get(key)) and p in names:
                            self._put(kind, names[p], state[key])
            self._note_modules()
            self._note_scaler()
            if self.settings:
                self._note_settings(names)

    def _note_modules(self):
        for name, mod in self.hooked.items():
            if name not in self.fired and not self.is_snapshot:
                parent = next((n for n in self.fired if name.startswith(n + ".")), None)
                self._miss(name, mod, f"{parent} does its work" if parent else "captured by a CUDA graph" if name in self.graphed
                           else "not called or compiled")
        for kind, name in sorted(self.due):
            if f"{kind}:{name}" not in self.tensors:
                self._miss(name, self.hooked[name], kind + ": no gradient came; unused or changed in place")

    def _note_scaler(self):
        self.scaler_notes, s = {}, self.scaler
        if s is None or not s.is_enabled():
            return
        self.scale = s.get_scale()
        self.scaler_notes = {
            "scaler": "torch", "scaler_init": s._init_scale, "scaler_growth": s.get_growth_factor(),
            "scaler_backoff": s.get_backoff_factor(), "scaler_interval": s.get_growth_interval(),
            "growth_tracker": s._get_growth_tracker()}

    def _steps_taken(self, opt, group, p):
        """Updates of a parameter before this step; None: not known."""
        state = opt.state.get(p, {})
        if "step" in state:
            return int(number(state["step"]))
        if "betas" in group:
            return 0
        if group.get("momentum") and state.get("momentum_buffer") is None:
            return 0
        taken = self.taken[id(opt)]
        if taken is None or number(taken) == 0 and state.get("momentum_buffer") is not None:
            return None                          # the state was loaded
        return int(number(taken))

    def _note_settings(self, names):
        groups, steps, self.groups = [], [], []
        for opt in self.opts:
            self.groups.append([len(groups) + k for k in range(len(opt.param_groups))])
            for k, group in enumerate(opt.param_groups):
                known = [p for p in group["params"] if p in names]
                for i, p in enumerate(group["params"]):
                    if p not in names:
                        self._miss(f"group {k} parameter {i}", "Parameter", "the model has it not")
                cls = type(opt)
                g = {"params": [names[p] for p in known], "optimizer": algorithm(opt, group),
                     "class": cls.__module__ + "." + cls.__qualname__, "impl": implementation(opt, group)}
                tensors = [key for key in ("lr", "betas") if torch.is_tensor(group.get(key)) or (
                    key == "betas" and any(map(torch.is_tensor, group.get(key, ()))))]
                if tensors:
                    g["tensors"] = tensors       # torch computes with them in their own format
                for key, value in group.items():
                    value = number(value) if torch.is_tensor(value) and value.numel() == 1 else value
                    if key == "betas":
                        g.update(zip(("beta1", "beta2"), map(number, value)))
                    elif key == "eps" and isinstance(value, (tuple, list)):     # Adafactor's; None: the default
                        g.update((k, number(v)) for k, v in zip(("eps", "eps2"), value) if v is not None)
                    elif key == "ns_coefficients":                              # Muon's
                        g[key] = [number(v) for v in value]
                    elif key == "adjust_lr_fn":
                        g[key] = value or "original"
                    elif key not in NO_SETTING and isinstance(value, (bool, int, float)):
                        g[key] = value if math.isfinite(value) else repr(value)
                taken = [self._steps_taken(opt, group, p) for p in known]
                if taken and None not in taken:
                    g["steps"] = taken[0] if len(set(taken)) == 1 else taken
                    steps += taken
                groups.append(g)
        inside = {n for g in groups for n in g["params"]}
        for p, n in names.items() if self.opts else ():
            if p.requires_grad and n not in inside:
                self._miss(n, "Parameter", "in no group of the optimizer")
        if not groups:
            return
        first = dict(groups[0])
        first["optimizer_impl"] = first.pop("impl")
        for key in ("params", "class", "steps"):
            first.pop(key, None)
        if "beta1" in first:
            first["betas"] = "%r,%r" % (first["beta1"], first["beta2"])
        self.notes.update(first, groups=json.dumps(groups, separators=(",", ":")))
        if steps:
            self.notes["optimizer_steps"] = max(steps)

    # ---- the file ----

    def _clip_meta(self):
        if self.scale is not None and not all(c["unscaled"] for c in self.clips):
            return self._miss("(clip)", "clip_grad", "of gradients that were still scaled")
        if all(c["whole"] for c in self.clips):
            return self._said_of_clips(self.clips)
        if not all(c["all_of"] and len(c["of"]) == 1 for c in self.clips):
            return self._miss("(clip)", "clip_grad", "not once and of all parameters, or of all of an optimizer")
        return {}                                # each optimizer has its own

    def _said_of_clips(self, clips):
        if len({c["kind"] for c in clips}) < len(clips):
            return self._miss("(clip)", "clip_grad", "not once and of all parameters, or of all of an optimizer")
        meta = {"grad_clip": 0.0}
        for c in clips:
            meta["clip_impl"] = c["impl"]
            if c["kind"] == "value":
                meta["grad_clip_value"] = c["limit"]
            else:
                meta["grad_clip"] = c["limit"] if c["limit"] != float("inf") else 0.0
                meta["grad_norm_type"] = "%g" % float(c["type"])
                if c["norm"] is None:
                    self._miss("(clip)", "clip_grad", "the norm is sharded")
                else:
                    meta["grad_norm"] = c["norm"]
        return meta

    def _each_optimizer(self):
        """What only some of several optimizers did: groups (of `groups`), whether it was skipped, found_inf, its clip."""
        own = not all(c["whole"] for c in self.clips)
        said = []
        for k, opt in enumerate(self.opts):
            found = self.found_inf.get(id(opt))
            one = {"groups": self.groups[k], "skipped": int(bool(found) or id(opt) not in self.stepped)}
            if found is not None:
                one["found_inf"] = found
            if own:
                one.update(self._said_of_clips([c for c in self.clips if c["of"] == [k]]) or {})
                if not math.isfinite(one.get("grad_norm", 0)):
                    one["grad_norm"] = repr(one["grad_norm"])
            said.append(one)
        return json.dumps(said, separators=(",", ":"))

    def _run_meta(self):
        """What the step's own calls have shown."""
        meta = {}
        if self.opts and not self.is_snapshot:
            meta.update(self._clip_meta() or {})
            done = all(id(opt) in self.stepped for opt in self.opts)
            found = max(self.found_inf.values(), default=None)
            seen = self.sees_steps
            if found is not None:
                meta.update(found_inf=found)
            if found is not None or seen:
                meta.update(skipped=int(bool(found) or not done))
            if len(self.opts) > 1 and self.groups and (found is not None or seen):
                meta.update(optimizers=self._each_optimizer())
            meta.update(accumulation=self.accumulation or max(self.backwards, 1))
        inner = self._inner()[0]
        first = self._names()
        tied = {clean(n): first[p] for n, p in all_names(inner)}
        tied = {n: p for n, p in tied.items() if n != p}
        if tied:
            meta["tied"] = json.dumps(tied, sort_keys=True, separators=(",", ":"))
        if self.autocast:
            meta["autocast"] = str(self.autocast).replace("torch.", "")
        device = next((p.device for p in first), torch.device("cpu"))
        if device.type == "cuda":
            meta.update(device=torch.cuda.get_device_name(device), cuda=torch.version.cuda)
        elif device.type == "cpu":
            capability = getattr(getattr(torch.backends, "cpu", None), "get_cpu_capability", None)
            if capability:                       # torch 2.0
                meta["cpu_capability"] = capability().lower()
            meta["ieee_roots"] = str(ieee_roots()).lower()
            if os.environ.get("MKL_CBWR"):
                meta["mkl_cbwr"] = os.environ["MKL_CBWR"]
        return meta

    def _place(self):
        dist = torch.distributed
        group = dist.is_available() and dist.is_initialized()
        return (self.rank if self.rank is not None else dist.get_rank() if group else 0,
                self.world if self.world is not None else dist.get_world_size() if group else 1)

    def _finish_if_ready(self):
        if self.ended and all(id(opt) in self.stepped for opt in self.opts):
            self._finish()

    @guarded
    def _finish(self):
        if self.step is None:
            return
        self._capture()
        if self.step is None:
            return
        rank, world = self.place
        loss_scale, grads_scaled, reduced = self.said_of_loss
        if loss_scale is None:
            loss_scale = self.scale if self.scale is not None else 1.0
        if grads_scaled is None:
            grads_scaled = self.scale is not None
        notes = dict(self.meta)
        notes.update({"schema": "mpsim-trace/1", "step": self.step, "rank": rank, "world": world, "reduced": reduced,
                      "loss_scale": "%.17g" % loss_scale, "grads_scaled": bool(grads_scaled),
                      "framework": "torch " + torch.__version__,
                      "order": None if self.is_snapshot else ",".join(self.order)})
        if self.settings:
            notes.update(self.scaler_notes)
            notes.update(self._run_meta())
            if self.missing:
                notes["not_recorded"] = ",".join(f"{n}: {r}".replace(",", ";") for n, r in sorted(self.missing.items()))
        notes.update(self.notes)
        new = sorted(set(self.missing.items()) - self.said)
        if new:
            self.said.update(new)
            self._warn("not recorded: " + ", ".join(f"{n}: {r}" for n, r in new))
        path = os.path.join(self.dir, f"step_{self.step:06d}", f"rank_{rank:05d}.safetensors")
        meta = {"mpsim." + k: text_of(v) for k, v in notes.items() if v is not None}
        tensors = self.tensors
        self._drop()
        size = safetensors_header(tensors, meta)[1]
        if self.max_bytes is not None and self.written + size > self.max_bytes:
            raise Full
        save_safetensors(path, tensors, meta)
        self.written += size
