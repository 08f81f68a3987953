# SPDX-License-Identifier: Apache-2.0
"""One step of mpsim's transformers under torch.autocast on a CPU, operation after operation.

    python3 record_autocast.py .

A case of a file is one operation with what went in and what came out, in the bits that PyTorch had: matrix products,
sums, casts, LayerNorm, GELU and embeddings as ATen was called, below autocast and autograd; attention's softmax,
rotary positions, RMSNorm, SwiGLU and the loss as the module that computes them by several calls. Equal tensors are
stored once. Metadata mpsim.dtypes.LAYER: the dtypes of a layer's input, output and their gradients as computed with.
The kernels are those of the machine (AVX-512 with oneDNN where recorded), in one thread.

What tests/train/t-decoder-autocast.c finds, of both dtypes:

| operation | numbers | equal | others differ by |
| casts, embeddings, residual, sums of gradients, rotary positions, bias gradients, GELU, softmax, gradient of logits | 15,624 | all | |
| products, as one exact sum rounded once, and bias | 14,320 | 14,318 | 1 ulp |
| SwiGLU, silu rounded before its product | 320, backward 640 | all | |
| SwiGLU of mpsim, rounded once | 320, backward 640 | 249, 469 | 1 ulp |
| loss (binary32) | 4 | 2 | 2 ulps |
| LayerNorm (binary32); mean; 1 / deviation | 720; 60; 60 | 429; 30; 44 | 2e-7 and 1.3e-7 of the largest; 2 ulps |
| its dx; dweight and dbias | 720; 144 | 244; 90 | 1.5e-7 of the largest |
| RMSNorm (binary32); dx; dweight | 720; 720; 72 | 601; 297; 35 | 3 ulps; 1.9e-7 of the largest |
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "record"))
import torch  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
import decoder  # noqa: E402
import formula  # noqa: E402
from recorder import raw_bytes, save_safetensors  # noqa: E402

SEED, BATCH = 7, 2
SMALL = dict(depth=1, width=12, heads=3, context=5, vocabulary=20, hidden=16)
CASES = {"gpt": decoder.Config("gpt", **SMALL), "llama": decoder.Config("llama", kv_heads=1, **SMALL)}
DTYPES = {"bf16": (torch.bfloat16, 1.0), "fp16": (torch.float16, 1024.0)}
WORDS = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}


class Cases:
    """The cases of a file, and two arrays of bits: "fp32" and "low", of autocast's dtype. A case names a tensor by its
    place and length there, "f96+16" or "l96+16"; "w96+16" is binary32 that the numbers of "low" are widened to, and
    "=NAME" a parameter as formula.py has it."""

    def __init__(self, low, model):
        self.low, self.meta, self.live = low, {}, True
        self.parts, self.sizes = {"f": [], "l": []}, {"f": 0, "l": 0}
        self.known = {raw_bytes(p): "=" + name for name, p in model.named_parameters()}

    def is_known(self, t):
        return raw_bytes(t) in self.known or raw_bytes(t.to(self.low)) in self.known

    def place(self, t):
        key, letter = raw_bytes(t), "f" if t.dtype == torch.float32 else "l"
        if key not in self.known:
            self.known[key] = f"{letter}{self.sizes[letter]}+{t.numel()}"
            self.parts[letter].append(t.clone().contiguous().reshape(-1))
            self.sizes[letter] += t.numel()
        return self.known[key]

    def keep(self, t):
        """The name of a tensor's bits."""
        t = t.detach()
        if t.dtype == torch.float32 and raw_bytes(t) not in self.known and torch.equal(t.to(self.low).float(), t):
            return "w" + self.place(t.to(self.low))[1:]
        return self.place(t)

    def add(self, op, tensors, **facts):
        facts.update((role, self.keep(t)) for role, t in tensors.items())
        words = " ".join(f"{k}={v}" for k, v in facts.items())
        self.meta["%03d" % len(self.meta)] = f"op={op} {words}"

    def tensors(self):
        return {"fp32": torch.cat(self.parts["f"]), "low": torch.cat(self.parts["l"])}


def either_way(t):
    """A matrix, or a stack of them, as it lies in memory, and whether it is transposed."""
    turned = t.transpose(-1, -2)
    return (turned, 1) if turned.is_contiguous() and not t.is_contiguous() else (t, 0)


class Calls(TorchDispatchMode):
    """The calls of ATen that one operation of mpsim answers to."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        see = getattr(self, "see_" + str(func).split(".")[1], None)
        if see and self.cases.live:
            self.cases.live = False
            see(args, kwargs or {}, out)
            self.cases.live = True
        return out

    def product(self, a, b, out, bias=None):
        (x, at), (w, bt) = either_way(a), either_way(b)
        tensors = {"a": x, "b": w, "y": out}
        if bias is not None:
            tensors["bias"] = bias
        self.cases.add("gemm", tensors, stacks=a.shape[0] if a.dim() == 3 else 1, rows=a.shape[-2], depth=a.shape[-1],
                       cols=b.shape[-1], at=at, bt=bt)

    def see_mm(self, args, kwargs, out):
        self.product(args[0], args[1], out)

    see_bmm = see_mm

    def see_addmm(self, args, kwargs, out):
        self.product(args[1], args[2], out, args[0])

    def see__to_copy(self, args, kwargs, out):
        if out.dtype == self.cases.low and args[0].dtype == torch.float32 and self.cases.is_known(args[0]):
            self.cases.add("cast", {"x": args[0], "y": out})

    def see_embedding(self, args, kwargs, out):
        self.cases.add("embed", {"x": args[0], "index": args[1].float(), "y": out}, rows=len(args[0]),
                       cols=out.shape[-1])

    def see_embedding_dense_backward(self, args, kwargs, out):
        self.cases.add("embed-backward", {"x": args[0], "index": args[1].float(), "y": out}, cols=out.shape[-1])

    def see_add(self, args, kwargs, out):
        a, b = args
        if not self.cases.is_known(a) and not self.cases.is_known(b):
            return  # within RMSNorm and rotary positions
        self.cases.add("add" if a.shape == b.shape else "add-rows", {"a": a, "b": b, "y": out}, rows=b.shape[-2],
                       cols=out.shape[-1])

    def see_sum(self, args, kwargs, out):
        x, dims = args[0], args[1]
        if x.dim() == 2 and dims == [0]:
            self.cases.add("column-sums", {"x": x, "y": out}, cols=x.shape[1])
        elif x.dim() == 3 and dims == [0]:
            self.cases.add("rows-backward", {"x": x, "y": out}, cols=x.shape[2])
        elif x.dim() == 5 and dims == [2]:  # of repeat_interleave: (sequence, kv head, head, place, column)
            self.cases.add("add-groups", {"x": x, "y": out}, cols=x.shape[4], length=x.shape[3], group=x.shape[2])

    def see_native_layer_norm(self, args, kwargs, out):
        x, _, w, b, _ = args
        self.cases.add("norm", dict(x=x, w=w, b=b, y=out[0], mean=out[1], inverse=out[2]), cols=x.shape[-1], kind=0)

    def see_native_layer_norm_backward(self, args, kwargs, out):
        dy, x, _, mean, inverse, w, _, _ = args
        self.cases.add("norm-backward", dict(dy=dy, x=x, mean=mean, inverse=inverse, w=w, y=out[0], dw=out[1],
                                             db=out[2]), cols=x.shape[-1], kind=0)

    def see_gelu(self, args, kwargs, out):
        self.cases.add("activate", {"x": args[0], "y": out}, kind=0, cols=out.shape[-1])

    def see_gelu_backward(self, args, kwargs, out):
        self.cases.add("activate-backward", {"dy": args[0], "x": args[1], "y": out}, kind=0, cols=out.shape[-1])


class Modules:
    """Hooks on the modules that are one operation of mpsim and several calls of ATen, and the dtypes of all."""

    def __init__(self, model, cases):
        self.cases, self.seen, self.c = cases, {}, model.c
        self.forwards = {decoder.Softmax: self.softmax, decoder.Heads: self.heads, torch.nn.RMSNorm: self.rms}
        self.backwards = {decoder.Softmax: self.softmax_back, torch.nn.RMSNorm: self.rms_back}
        for name, m in model.named_modules():
            if next(m.children(), None) is None:
                m.register_forward_hook(lambda m, x, y, name=name: self.forward(name, m, x, y))
                if name != "wte":
                    m.register_full_backward_hook(lambda m, dx, dy, name=name: self.backward(name, m, dx, dy))

    def quietly(self, function, *args):
        was, self.cases.live = self.cases.live, False
        function(*args)
        self.cases.live = was

    def forward(self, name, m, x, y):
        self.seen[name] = [[t.detach().clone() for t in x], [t.detach().clone() for t in decoder_outputs(y)]]
        if type(m) in self.forwards:
            self.quietly(self.forwards[type(m)], m, *self.seen[name])
        if isinstance(m, decoder.Activation) and m.kind == "swiglu":
            self.quietly(self.swiglu, self.seen[name][0][0], self.seen[name][1][0])

    def backward(self, name, m, dx, dy):
        self.seen[name] += [[t.clone() for t in dx if t is not None], [t.clone() for t in dy]]
        if type(m) in self.backwards:
            self.quietly(self.backwards[type(m)], m, *self.seen[name])
        if isinstance(m, decoder.Activation) and m.kind == "swiglu":
            self.quietly(self.swiglu_back, *self.seen[name])
        if isinstance(m, decoder.Heads) and self.c.positions == "rotary":
            self.quietly(self.heads_back, m, *self.seen[name])

    def softmax(self, m, x, y):
        self.cases.add("causal", {"x": x[0], "y": y[0]}, cols=y[0].shape[-1], scale=m.scale)

    def softmax_back(self, m, x, y, dx, dy):
        self.cases.add("causal-backward", {"p": y[0], "dy": dy[0], "y": dx[0]}, cols=y[0].shape[-1], scale=m.scale)

    def parts(self):
        c = self.c
        return ((0, c.heads), (c.width, c.kv_heads), (c.width + c.kv_heads * c.size, c.kv_heads))

    def heads(self, m, x, y):
        tables = {"cos": m.cos.float(), "sin": m.sin.float()} if self.c.positions == "rotary" else {}
        for k, (first, heads) in enumerate(self.parts()):
            if k == 2 or not tables:
                continue
            self.cases.add("heads", dict(tables, x=x[0], y=y[k]), length=self.c.context, heads=heads,
                           size=self.c.size, first=first, cols=x[0].shape[-1])

    def heads_back(self, m, x, y, dx, dy):
        for k, (first, heads) in enumerate(self.parts()[:2]):
            self.cases.add("heads-backward", dict(x=dy[k], y=dx[0], cos=m.cos.float(), sin=m.sin.float()),
                           length=self.c.context, heads=heads, size=self.c.size, first=first, cols=dx[0].shape[-1])

    def rms(self, m, x, y):
        self.cases.add("norm", dict(x=x[0], w=m.weight, y=y[0]), cols=x[0].shape[-1], kind=1)

    def rms_back(self, m, x, y, dx, dy):
        xx, w = x[0].clone().requires_grad_(), m.weight.detach().clone().requires_grad_()
        with torch.enable_grad(), torch.autocast("cpu", enabled=False):  # the gradient of the weight comes later
            torch.nn.functional.rms_norm(xx, w.shape, w, m.eps).backward(dy[0])
        assert torch.equal(xx.grad, dx[0])
        self.cases.add("norm-backward", dict(dy=dy[0], x=x[0], w=m.weight, y=dx[0], dw=w.grad), cols=x[0].shape[-1],
                       kind=1)

    def swiglu(self, x, y):
        self.cases.add("activate", {"x": x, "y": y}, kind=2, cols=y.shape[-1])

    def swiglu_back(self, x, y, dx, dy):
        self.cases.add("activate-backward", {"dy": dy[0], "x": x[0], "y": dx[0]}, kind=2, cols=y[0].shape[-1])

    def dtypes(self):
        """Of products those of the operands and results, which autocast casts to and from."""
        low = self.cases.low
        for name, s in self.seen.items():
            product = name.split(".")[-1] in ("qkv", "proj", "fc", "head", "scores", "context")
            facts = dict(zip(("act", "out", "dgrad", "agrad"), (WORDS.get(t[0].dtype) for t in s if t)))
            if product:
                assert s[1][0].dtype == low
                facts.update(act=WORDS[low], dgrad=WORDS[low])
            self.cases.meta["mpsim.dtypes." + name] = " ".join(f"{k}={v}" for k, v in facts.items() if v)


def decoder_outputs(y):
    return y if isinstance(y, tuple) else (y,)


def record(c, dtype, scale):
    model = decoder.Decoder(c)
    formula.set_weights(model)
    cases = Cases(dtype, model)
    modules = Modules(model, cases)
    starts = decoder.windows(SEED, 0, BATCH, formula.TRAINED, c.context)
    tokens, labels = decoder.batch_of(formula.text(c.vocabulary), starts, c.context)
    with Calls(cases):
        with torch.autocast("cpu", dtype=dtype):
            logits = model(tokens)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        logits.retain_grad()
        (loss * scale).backward()
    cases.add("loss", {"x": logits, "labels": labels.float(), "y": logits.grad, "loss": loss.reshape(1)},
              cols=c.vocabulary, scale=scale)
    modules.dtypes()
    return cases, loss.item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    args = ap.parse_args()
    torch.set_num_threads(1)
    for word, (dtype, scale) in DTYPES.items():
        for net, c in CASES.items():
            cases, loss = record(c, dtype, scale)
            path = os.path.join(args.directory, f"autocast-{word}-{net}.safetensors")
            meta = dict(framework="torch " + torch.__version__, net=net,
                        cpu_capability=torch.backends.cpu.get_cpu_capability().lower(),
                        low=word, onednn=int(torch.backends.mkldnn.enabled and torch.backends.mkldnn.is_available()))
            meta.update(vars(c))
            save_safetensors(path, cases.tensors(), {**cases.meta, **{"mpsim." + k: str(v) for k, v in meta.items()}})
            print(f"{word} {net:6s} loss {loss:.9g}, {len(cases.meta)} entries, "
                  f"{os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
