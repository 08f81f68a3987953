# SPDX-License-Identifier: Apache-2.0
"""Record bfloat16 optimizers (optimi, torchao) step by step, and check them with NumPy models.

    python3 record_lowp.py record .     (writes optimi.safetensors, torchao.safetensors, sr.txt)
    ATEN_CPU_CAPABILITY=default python3 record_lowp.py record DIR
    python3 record_lowp.py variant . DIR default       (writes the cases of DIR which differ)
    python3 record_lowp.py check .      (needs only numpy; prints how many values the operations below give)

Recorded with torch 2.15.0 on CPU (AVX-512), torch-optimi 0.3.3 and torchao 0.18.0; one thread.
optimi runs its for-loop path (triton=False, foreach=False), and where foreach=True gives something
else some cases of that.  torchao's step runs uncompiled: torch.compile is replaced by the identity
while it steps.  Inputs: numpy.random.default_rng(SEED), rounded to the case's type.

Operations

rn rounds float32 arithmetic to the parameter's type; fma is one rounding, with capability default two. Scalars are formed in double.

    w *= s             rn(w * f32(s));  foreach=True: rn(w * rn(s)), which makes a decay factor of 0.99999 1
    w += s             rn(w + rn(s))
    w += a*x           rn(fma(x, rn(a), w))           bfloat16: in the first 32*floor(n/32) elements
                       rn(w + rn(rn(a) * x))          bfloat16: in the rest, and everywhere with default
    lerp(s, e, w)      |w| < 0.5: rn(fma(w, e - s, s)), else rn(fma(w - 1, e - s, e))
    addcmul(x, a, b)   rn(fma(f32(value) * a, b, x))
    addcdiv(x, a, b)   rn(x + f32(value) * a / b)     left to right, not fused

optimi, with B = (b^t - b) / (b^t - 1) for each beta:

    decay        AdamW, decoupled: p *= 1 - lr*wd (decouple_lr: 1 - lr/max_lr*wd); else g += wd*p
    Adam(W)      m = lerp(m, g, 1 - B1);  v *= B2;  v = addcmul(v, g, g, 1 - B2)
                 d = rn(sqrt(v));  d += eps;  update(x) = addcdiv(x, m, d, -lr)
    SGD          m *= momentum;  m += g;  dampening: m = lerp(m, g, 1 - momentum)
                 momentum 0: m = g;  update(x): x += -lr*m
                 torch_init: m starts as g, after the L2 term, and step 1 follows as usual
    plain        p = update(p)
    Kahan        k = update(k);  old = p;  p = rn(p + k);  k = rn(k + rn(old - p))

torchao (lr is a float32 tensor; everything is float32 but the stored values):

    p32 = p - (lr*wd)*p;  c1 = 1 - f32(f32(b1)^t);  c2 likewise
    m32 = lerp(m, g, 1 - b1);  v32 = lerp(v, g*g, 1 - b2);  m = rn(m32);  v = rn(v32)
    d = sqrt(v32) / sqrt(c2) + eps;  p32 = p32 - (lr*(m32/c1))/d;  p = rn(p32), or stochastic:
    lo = low 16 bits; r < lo: away from zero, else truncated
"""
import json
import os
import struct
import sys

import numpy as np

SEED, N, STEPS = 20262, 67, 6
f32, f64 = np.float32, np.float64


def to_bf16(x):
    """Round float32 to bfloat16 (nearest even), kept as float32."""
    b = np.asarray(x, f32).view(np.uint32).astype(np.uint64)
    return ((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(f32)


def inputs(dtype):
    """Parameters of several magnitudes with exact zeros; gradients for every step."""
    rng = np.random.default_rng(SEED)
    p = rng.normal(size=N) * 2.0 ** rng.integers(-6, 5, N)
    p[:4] = [0.0, -0.0, 1.0, -256.0]
    gs = []
    for t in range(STEPS):
        g = rng.normal(size=N) * 2.0 ** rng.integers(-12, 3, N)
        g[[1, 5 + t, 20]] = [0.0, 0.0, 2.0 ** -60]
        g[2] = 0.5
        g[30:40] = rng.normal(size=10) * 2e-6         # about as large as eps
        gs.append(g)
    cut = to_bf16 if dtype == "bf16" else (lambda v: v)
    return cut(p.astype(f32)), [cut(g.astype(f32)) for g in gs]


def save(path, tensors, metadata):
    """Sorted keys, so that equal data gives equal bytes; tensors: name -> (dtype, float32)"""
    head, chunks, pos = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        dtype, a = tensors[name]
        a = np.ascontiguousarray(a, f32)
        if dtype == "BF16":
            assert not (a.view(np.uint32) & 0xffff).any(), name
            a = (a.view(np.uint32) >> 16).astype(np.uint16)
        raw = a.tobytes()
        head[name] = {"dtype": dtype, "shape": list(a.shape),
                      "data_offsets": [pos, pos + len(raw)]}
        pos += len(raw)
        chunks.append(raw)
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def load(path):
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + n])
    meta, out = head.pop("__metadata__"), {}
    for name, t in head.items():
        a, b = t["data_offsets"]
        v = np.frombuffer(raw[8 + n + a:8 + n + b], f32 if t["dtype"] == "F32" else np.uint16)
        out[name] = v if t["dtype"] == "F32" else (v.astype(np.uint32) << 16).view(f32)
    return meta, out


# --- recording -------------------------------------------------------------------------------
ADAM = {"adamw": dict(lr=1e-3, betas=(0.9, 0.99), eps=1e-6, weight_decay=1e-2),
        "adamw_large": dict(lr=0.03, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1),
        "adamw_full": dict(lr=2e-3, betas=(0.9, 0.99), eps=1e-6, weight_decay=1e-3,
                           decouple_lr=True, max_lr=5e-3),
        "adam": dict(lr=1e-3, betas=(0.9, 0.99), eps=1e-6, weight_decay=0),
        "adam_l2": dict(lr=1e-2, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)}
SGD = {"sgd": dict(lr=1e-2, momentum=0),
       "sgd_momentum": dict(lr=1e-2, momentum=0.9),
       "sgd_momentum_l2": dict(lr=1e-2, momentum=0.9, weight_decay=1e-2),
       "sgd_dampening": dict(lr=1e-2, momentum=0.9, dampening=True, weight_decay=1e-2,
                             decouple_wd=True),
       "sgd_torch_init": dict(lr=1e-2, momentum=0.4, dampening=True, torch_init=True,
                              weight_decay=1e-2)}


def words(**kw):
    return " ".join(f"{k}={int(v) if isinstance(v, bool) else v if isinstance(v, str) else repr(v)}"
                    for k, v in kw.items())


class File:
    def __init__(self, package, version):
        import torch
        self.torch, self.tensors = torch, {}
        self.meta = {"recorder": "data/vectors/optim-lowp/record_lowp.py"}
        self.common = dict(impl=package, version=version,
                           torch=torch.__version__.split("+")[0])

    def run(self, case, dtype, make, names, keep=True):
        """Steps the optimizer make(param) gives; names: state key -> letter."""
        torch, res = self.torch, {}
        td = torch.bfloat16 if dtype == "bf16" else torch.float32
        p0, gs = inputs(dtype)
        p = torch.nn.Parameter(torch.from_numpy(p0.copy()).to(td))
        opt = make(p)

        def put(name, t):
            assert t.dtype == td, (case, name, t.dtype)
            res[f"{case}/{name}"] = (dtype.upper(), t.detach().float().numpy().copy())
        put("p.0", p)
        for t, g in enumerate(gs, 1):
            p.grad = torch.from_numpy(g.copy()).to(td)     # optimi overwrites it
            put(f"g.{t}", p.grad)
            opt.step()
            put(f"p.{t}", p)
            for key, letter in names.items():
                value = opt.state[p].get(key)
                if torch.is_tensor(value):
                    put(f"{letter}.{t}", value)
        if keep:
            self.tensors.update(res)
        return res


def record_optimi(directory):
    import importlib.metadata

    import optimi
    out = File("optimi", importlib.metadata.version("torch-optimi"))
    names = {"exp_avg": "m", "exp_avg_sq": "v", "kahan_comp": "kahan"}
    for kind, given in list(ADAM.items()) + list(SGD.items()):
        cls = {"adamw": optimi.AdamW, "adam": optimi.Adam, "sgd": optimi.SGD}[kind.split("_")[0]]
        for dtype, kahan in (("bf16", True), ("bf16", False), ("f32", False)):
            if dtype == "f32" and "_" in kind:
                continue
            tag = f"-{dtype}" + ("-kahan" if kahan else "")

            def make(p, foreach=False):
                return cls([p], triton=False, foreach=foreach, kahan_sum=kahan, **given)

            def put(case, **more):
                p = dict(given)
                if "betas" in p:
                    p["beta1"], p["beta2"] = p.pop("betas")
                out.meta[case] = words(optimizer=kind.split("_")[0], **out.common, dtype=dtype,
                                       kahan=kahan, **p, steps=STEPS, n=N, seed=SEED, **more)
            res = out.run(kind + tag, dtype, make, names)
            other = out.run(f"{kind}{tag}-foreach", dtype, lambda p: make(p, True), names, False)
            same = all(np.array_equal(v[1], other[f"{kind}{tag}-foreach/" + k.split("/")[1]][1])
                       for k, v in res.items())
            put(kind + tag, foreach=0, foreach_equal=same)
            if not same and kind in ("adamw", "adamw_large", "sgd_momentum"):
                out.tensors.update(other)
                put(f"{kind}{tag}-foreach", foreach=1)
    save(os.path.join(directory, "optimi.safetensors"), out.tensors, out.meta)


def record_torchao(directory):
    import torch
    import torchao
    from torchao.optim.adam import _AdamW, single_param_adam
    from torchao.optim import quant_utils
    out = File("torchao", torchao.__version__)
    names = {"exp_avg": "m", "exp_avg_sq": "v"}
    draws, compiled, real = [], torch.compile, torch.randint

    def randint(*args, **kwargs):
        r = real(*args, **kwargs)
        draws.append(r.numpy().astype(f32))
        return r
    torch.compile = lambda f, **kw: f
    torch.randint = randint
    try:
        for kind, given in (("adamw", dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                                           weight_decay=1e-2)),
                            ("adamw_large", dict(lr=0.03, betas=(0.8, 0.95), eps=1e-6,
                                                 weight_decay=0.1)),
                            ("adamw_nodecay", dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8,
                                                   weight_decay=0))):
            for dtype, sr in (("bf16", False), ("bf16", True), ("f32", False)):
                case = f"{kind}-{dtype}" + ("-sr" if sr else "")
                draws.clear()
                torch.manual_seed(SEED)
                out.run(case, dtype, lambda p: _AdamW([p], bf16_stochastic_round=sr, **given),
                        names)
                assert len(draws) == (STEPS if sr else 0)
                for t, r in enumerate(draws, 1):
                    out.tensors[f"{case}/r.{t}"] = ("F32", r.reshape(-1))
                p = dict(given)
                p["beta1"], p["beta2"] = p.pop("betas")
                out.meta[case] = words(optimizer="adamw", **out.common, dtype=dtype, sr=sr,
                                       **p, steps=STEPS, n=N, seed=SEED)
    finally:
        torch.compile, torch.randint = compiled, real
    assert single_param_adam
    save(os.path.join(directory, "torchao.safetensors"), out.tensors, out.meta)
    record_sr(directory, torch, torchao.__version__, quant_utils._fp32_to_bf16_sr)


def record_sr(directory, torch, version, function):
    draws, chunk = 1 << 20, 1 << 18
    lows = [0, 1, 2, 7, 255, 256, 0x1000, 0x3fff, 0x4000, 0x5555, 0x7fff, 0x8000, 0x8001, 0xaaaa,
            0xc000, 0xf000, 0xff00, 0xfffe, 0xffff]
    bits = []
    for hi in (0x3f80, 0xbf80, 0x0000, 0x8000, 0x007f, 0x7f7f, 0xc2ab):
        bits += [hi << 16 | lo for lo in (lows if hi < 0x4000 and hi else lows[1::4] + [0])]
    bits += [0x7f800000, 0xff800000, 0x7fc00000, 0x7f804000, 0xff80c000]
    torch.manual_seed(SEED)
    rows, chi, dof = [], 0.0, 0
    for b in bits:
        x = torch.from_numpy(np.full(chunk, b, np.uint32).view(np.int32)).view(torch.float32)
        away = toward = nan = 0
        for _ in range(draws // chunk):
            q = function(x).view(torch.int16).numpy().view(np.uint16).astype(np.int64)
            low, high = q == b >> 16, q == (b >> 16) + 1
            toward, away = toward + int(low.sum()), away + int(high.sum())
            nan += int((~low & ~high).sum())
        lo = b & 0xffff
        p = lo / 65536
        finite = b & 0x7f800000 != 0x7f800000
        z = (away - draws * p) / (draws * p * (1 - p)) ** 0.5 if lo and finite else 0.0
        chi, dof = chi + z * z, dof + bool(lo and finite)
        rows.append("%08x %5d %7d %7d %7d %9.1f %6.2f" % (b, lo, away, toward, nan, draws * p, z))
    with open(os.path.join(directory, "sr.txt"), "w") as f:
        print("# SPDX-License-Identifier: Apache-2.0", file=f)
        print(f"# torchao {version} _fp32_to_bf16_sr, torch {torch.__version__.split('+')[0]}, CPU,"
              f" torch.manual_seed({SEED})", file=f)
        print(f"# {draws} draws for each input:", file=f)
        print("# results one step away from zero, truncated, or neither (NaN made quiet)", file=f)
        print("# chi-square against P(away) = lo/65536, finite inputs with lo > 0:"
              f" {chi:.1f} with {dof} degrees of freedom", file=f)
        print("# columns: input lo away truncated neither expected_away z", file=f)
        print("\n".join(rows), file=f)


def record(directory):
    import torch
    torch.set_num_threads(1)
    record_optimi(directory)
    record_torchao(directory)


def variant(directory, other, name):
    """The cases of another recording that differ from this one, as FILE-name.safetensors."""
    for kind in ("optimi", "torchao"):
        meta, a = load(os.path.join(directory, kind + ".safetensors"))
        meta2, b = load(os.path.join(other, kind + ".safetensors"))
        case = {k.split("/")[0] for k in b if not np.array_equal(a[k].view(np.uint32),
                                                                 b[k].view(np.uint32))}
        dtype = {c: "BF16" if " dtype=bf16 " in meta2[c] else "F32" for c in case}
        tensors = {k: (dtype[k.split("/")[0]], v) for k, v in b.items()
                   if k.split("/")[0] in case}
        for k in tensors:
            if "/r." in k:
                tensors[k] = ("F32", tensors[k][1])
        out = {c: meta2[c] + " capability=" + name for c in case}
        out["recorder"] = meta["recorder"]
        save(os.path.join(directory, f"{kind}-{name}.safetensors"), tensors, out)


# --- models ----------------------------------------------------------------------------------
class Ops:
    """The operations of torch's CPU kernels: float32 arithmetic, one rounding to the type."""

    def __init__(self, dtype, fused, foreach=False):
        self.cut = to_bf16 if dtype == "bf16" else (lambda v: np.asarray(v, f32))
        self.fused, self.foreach = fused, foreach

    def fma(self, a, b, c):
        """a * b + c, fused when the kernel is (float64 holds the product; its own rounding of the
        sum is a second one, which did not show)."""
        if self.fused:
            return (np.asarray(a, f64) * np.asarray(b, f64) + np.asarray(c, f64)).astype(f32)
        return (np.asarray(a, f32) * np.asarray(b, f32)).astype(f32) + c

    def mul(self, x, s):
        return self.cut(x * (self.cut(f32(s)) if self.foreach else f32(s)))

    def add_scalar(self, x, s):
        return self.cut(x + self.cut(f32(s)))

    def add(self, x, y, alpha=1.0):
        alpha = self.cut(f32(alpha))                 # bfloat16: the factor is rounded as well
        whole = self.cut(self.fma(y, alpha, x))
        parts = self.cut(x + self.cut(alpha * y))    # the product is rounded by itself
        body = N // 32 * 32 if self.fused else 0     # vectors; the rest goes one by one
        if self.cut is not to_bf16:
            return whole
        return np.where(np.arange(N) < body, whole, parts)

    def lerp32(self, s, e, w):
        w, d = f32(w), e - s
        return self.fma(w, d, s) if abs(w) < 0.5 else self.fma(w - f32(1), d, e)

    def lerp(self, s, e, w):
        return self.cut(self.lerp32(s, e, w))

    def addcmul(self, x, a, b, value):
        return self.cut(self.fma(f32(value) * a, b, x))

    def addcdiv(self, x, a, b, value):
        return self.cut(x + f32(value) * a / b)


def optimi_model(q, p, gs, fused):
    o = Ops(q["dtype"], fused, q["foreach"] == "1")
    lr, wd = float(q["lr"]), float(q.get("weight_decay", 0))
    adam, kahan = q["optimizer"] != "sgd", q["kahan"] == "1"
    mom = float(q.get("momentum", 0))
    decouple = q["optimizer"] == "adamw" or q.get("decouple_wd") == "1"
    if q.get("decouple_lr") == "1":
        decay = 1 - (lr / float(q["max_lr"])) * wd
    else:
        decay = 1 - lr * wd
    m, v, c = np.zeros(N, f32), np.zeros(N, f32), np.zeros(N, f32)
    for t, g in enumerate(gs, 1):
        if q.get("torch_init") == "1" and t == 1:
            m = o.add(g, p, wd) if wd and not decouple else g
        if wd:
            if decouple:
                p = o.mul(p, decay)
            else:
                g = o.add(g, p, wd)
        if adam:
            b1, b2 = ((b ** t - b) / (b ** t - 1) for b in (float(q["beta1"]), float(q["beta2"])))
            m = o.lerp(m, g, 1 - b1)
            v = o.addcmul(o.mul(v, b2), g, g, 1 - b2)
            den = o.add_scalar(o.cut(np.sqrt(v)), float(q["eps"]))

            def update(x):
                return o.addcdiv(x, m, den, -lr)
        else:
            if mom:
                m = o.lerp(m, g, 1 - mom) if q.get("dampening") == "1" else o.add(o.mul(m, mom), g)
            step = m if mom else g

            def update(x):
                return o.add(x, step, -lr)
        if kahan:
            c, old = update(c), p
            p = o.add(p, c)
            c = o.add(c, o.cut(old - p))
        else:
            p = update(p)
        yield {"p": p, "m": m, "v": v, "kahan": c}


def torchao_model(q, p, gs, fused, rs):
    o = Ops(q["dtype"], fused)
    lr, wd, eps = f32(float(q["lr"])), f32(float(q["weight_decay"])), f32(float(q["eps"]))
    b1, b2 = float(q["beta1"]), float(q["beta2"])
    m, v = np.zeros(N, f32), np.zeros(N, f32)
    one = f32(1)
    for t, g in enumerate(gs, 1):
        x = p - lr * wd * p
        c1 = one - f32(f64(f32(b1)) ** t)
        c2 = one - f32(f64(f32(b2)) ** t)
        m32, v32 = o.lerp32(m, g, 1 - b1), o.lerp32(v, g * g, 1 - b2)
        m, v = o.cut(m32), o.cut(v32)
        den = np.sqrt(v32) / np.sqrt(c2) + eps
        x = x - lr * (m32 / c1) / den
        if q["sr"] == "1":
            bits = x.view(np.uint32)
            up = rs[t - 1].astype(np.uint32) < (bits & 0xffff)
            p = ((bits & 0xffff0000) + np.where(up, 0x10000, 0).astype(np.uint32)).view(f32)
        else:
            p = o.cut(x)
        yield {"p": p, "m": m, "v": v}


def check(directory):
    np.seterr(all="ignore")
    for name in ("optimi", "torchao", "optimi-default", "torchao-default"):
        path = os.path.join(directory, name + ".safetensors")
        if not os.path.exists(path):
            continue
        meta, data = load(path)
        for fused in (True, False):
            rows, own = {}, {}
            for case, text in sorted(meta.items()):
                if case == "recorder":
                    continue
                q = dict(w.split("=", 1) for w in text.split())
                gs = [data[f"{case}/g.{t}"] for t in range(1, STEPS + 1)]
                rs = [data.get(f"{case}/r.{t}") for t in range(1, STEPS + 1)]
                model = (optimi_model(q, data[f"{case}/p.0"], gs, fused) if "optimi" in name else
                         torchao_model(q, data[f"{case}/p.0"], gs, fused, rs))
                n = bad = 0
                for t, got in enumerate(model, 1):
                    for letter, value in got.items():
                        want = data.get(f"{case}/{letter}.{t}")
                        if want is not None:
                            n += want.size
                            bad += int((want.view(np.uint32) != value.view(np.uint32)).sum())
                own[case] = (n, bad)
                key = (q["optimizer"], q["dtype"], "kahan" if q.get("kahan") == "1" else
                       "sr" if q.get("sr") == "1" else "-")
                a, b, k = rows.get(key, (0, 0, 0))
                rows[key] = (a + n, b + bad, k + 1)
            for key, (n, bad, k) in rows.items():
                print(name, "fused" if fused else "unfused", *key, f"cases {k}, {n - bad}/{n}")
            print(" ", {c: b for c, (_, b) in own.items() if b})


if __name__ == "__main__":
    {"record": record, "variant": variant, "check": check}[sys.argv[1]](*sys.argv[2:])
