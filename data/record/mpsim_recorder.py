# SPDX-License-Identifier: Apache-2.0
"""Record the tensors of a PyTorch training step as an mpsim-trace/1 directory.

Needs only torch and the standard library.  Use in your own training loop:

    rec = Recorder(model, "trace", steps={1, 100, 1000}, optimizer=opt,
                   meta={"optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "seed": 1})
    for step in range(1, last + 1):
        opt.zero_grad()
        rec.begin(step)                      # hooks go on, if this step is wanted
        loss = loss_fn(model(x), y)
        loss.backward()
        rec.end(loss)                        # after backward, BEFORE opt.step()
        opt.step()

Kinds written (key = kind:fqn): weight (parameters before the update), wgrad
(.grad), act (input of a module), out (its output), agrad (gradient with respect
to its output, dY), dgrad (gradient with respect to its input, dX), and, with
optimizer=, opt.m and opt.v (momentum / Adam moments before the update).

With a gradient scaler, pass loss_scale=scaler.get_scale() and say with
grads_scaled=True|False whether scaler.unscale_() has run already: .grad is
recorded as it is.  Values are stored in the dtype in which they were computed.
"""
import json
import os
import re
import struct
import warnings

import torch

warnings.filterwarnings("ignore", message="Full backward hook is firing")  # the first layer has no dX

DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def save_safetensors(path, tensors, metadata):
    """Write a safetensors file with sorted keys, so that equal data gives equal bytes."""
    header, chunks, pos = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        t = tensors[name]
        raw = t.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        raw = bytes(raw.untyped_storage())[raw.storage_offset():raw.storage_offset() + raw.numel()]
        header[name] = {"dtype": DTYPES[t.dtype], "shape": list(t.shape), "data_offsets": [pos, pos + len(raw)]}
        pos += len(raw)
        chunks.append(raw)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def floats(values):
    """The floating-point tensors of a hook argument."""
    values = values if isinstance(values, (tuple, list)) else (values,)
    return [v for v in values if torch.is_tensor(v) and v.dtype in DTYPES]


class Recorder:
    def __init__(self, model, directory, steps, optimizer=None, meta=None, rank=0, world=1,
                 kinds=("weight", "wgrad", "act", "agrad"), modules=r".*", out_modules=None):
        """modules, out_modules: regular expressions (fullmatch) on the names of leaf
        modules to hook; out_modules, if given, records out for these even if "out" is not in kinds."""
        self.model, self.dir, self.steps, self.opt = model, directory, set(steps), optimizer
        self.meta, self.rank, self.world = dict(meta or {}), rank, world
        self.kinds, self.modules, self.out_modules = set(kinds), re.compile(modules), out_modules
        self.handles, self.tensors, self.order, self.step = [], {}, [], None

    def _put(self, kind, name, value):
        key, n = f"{kind}:{name}", 1
        while key in self.tensors:               # a module called again, or several inputs
            key, n = f"{kind}:{name}.{n}", n + 1
        self.tensors[key] = value.detach().clone()

    def begin(self, step):
        if step not in self.steps:
            return
        self.step, self.tensors, self.order = step, {}, []
        for name, mod in self.model.named_modules():
            if any(True for _ in mod.children()) or not self.modules.fullmatch(name):
                continue
            out = "out" in self.kinds or (self.out_modules and re.fullmatch(self.out_modules, name))
            self.handles.append(mod.register_forward_hook(self._forward(name, out)))
            if self.kinds & {"agrad", "dgrad"}:
                self.handles.append(mod.register_full_backward_hook(self._backward(name)))

    def _forward(self, name, out):
        def hook(mod, inputs, output):
            self.order.append(name)
            if "act" in self.kinds:
                for t in floats(inputs):
                    self._put("act", name, t)
            if out:
                for t in floats(output):
                    self._put("out", name, t)
        return hook

    def _backward(self, name):
        def hook(mod, grad_input, grad_output):
            for kind, grads in (("agrad", grad_output), ("dgrad", grad_input)):
                if kind in self.kinds:
                    for t in floats(grads):
                        self._put(kind, name, t)
        return hook

    def end(self, loss, loss_scale=1.0, grads_scaled=False, reduced="post"):
        """Call after backward() and before optimizer.step()."""
        if self.step is None:
            return
        for h in self.handles:
            h.remove()
        self.handles = []
        names = {p: n for n, p in self.model.named_parameters()}
        for p, n in names.items():
            if "weight" in self.kinds:
                self._put("weight", n, p)
            if "wgrad" in self.kinds and p.grad is not None:
                self._put("wgrad", n, p.grad)
        for p, state in (self.opt.state.items() if self.opt else ()):
            for key, kind in (("momentum_buffer", "opt.m"), ("exp_avg", "opt.m"), ("exp_avg_sq", "opt.v")):
                if torch.is_tensor(state.get(key)) and p in names:
                    self._put(kind, names[p], state[key])
        meta = {"schema": "mpsim-trace/1", "step": self.step, "rank": self.rank, "world": self.world,
                "loss": "%.9g" % float(loss.detach()), "loss_scale": "%.17g" % loss_scale,
                "grads_scaled": str(bool(grads_scaled)).lower(), "reduced": reduced,
                "framework": "torch " + torch.__version__, "order": ",".join(self.order)}
        meta.update(self.meta)
        meta = {"mpsim." + k: str(v) for k, v in meta.items()}
        save_safetensors(os.path.join(self.dir, f"step_{self.step:06d}", f"rank_{self.rank:05d}.safetensors"),
                         self.tensors, meta)
        self.step, self.tensors = None, {}
