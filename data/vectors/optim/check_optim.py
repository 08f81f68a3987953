# SPDX-License-Identifier: Apache-2.0
"""Recompute the recorded optimizer steps with NumPy, one rounding at a time.

    python3 check_optim.py .            (needs numpy and ml_dtypes, not torch)

Prints, per implementation, capability and dtype, how many recorded values it gives and how many not.

Order of roundings

r(x) rounds to the dtype; everything inside is float32, every operation rounded. fma(a, b, c) rounds a·b + c once, with capability default
twice. s(x) rounds a Python double to float32, d(x) that to the dtype. avx512 equals avx2 in every run. NaNs compare as equal.

For-loop (foreach=False, fused=False):

    add(a, x, alpha), float32:               fma(x, s(alpha), a)
    add(a, x, alpha), bfloat16 and float16:
        avx2, avx512, vector body:           r(a + x·d(alpha))
        avx2, avx512, scalar tail; default:  r(a + r(x·d(alpha)))
    lerp(m, g, w):  w = s(1-beta1);  |w| < 0.5: r(fma(w, g-m, m));  else: r(fma(w-1, g-m, g))
    mul(a, x):      r(a · s(x))
    addcmul:        r(fma(s(value)·t1, t2, a))
    addcdiv:        r(a + (s(value)·t1) / t2)

* alpha is rounded to the dtype first: -lr, weight_decay, 1-dampening and momentum (nesterov) are bfloat16 or float16 numbers.
* The vector body of these additions is the first n − n mod 32 elements. Other operations, and float32, have no tail of their own.
* Several threads split tensors of more than 32,768 elements, and each part has a tail. Record with one thread.

SGD:

    maximize: g = -g
    weight_decay: g = add(g, p, weight_decay)
    momentum: step 1: m = g;  later: m = add(mul(m, momentum), g, 1-dampening)
              g = nesterov ? add(g, m, momentum) : m
    p = add(p, g, -lr)

Adam and AdamW (1-beta, bias corrections, lr/bc1, 1-lr·weight_decay and the root of bc2 are doubles first):

    maximize: g = -g
    weight_decay: AdamW: p = mul(p, 1 - lr·weight_decay)     Adam: g = add(g, p, weight_decay)
    m = lerp(m, g, 1-beta1)
    v = addcmul(mul(v, beta2), g, g, value = 1-beta2)
    amsgrad: vmax = max(vmax, v), used instead of v below
    bc1 = 1 - beta1**t;  bc2 = 1 - beta2**t
    den = r( r( r(sqrt(v)) / s(bc2**0.5) ) + d(eps) )
    p = addcdiv(p, m, den, value = -(lr/bc1))

* eps is rounded to the dtype first: in float16 1e-8 is 0, and so is r(v) for small gradients. adam and adamw in float16 with eps=1e-8 end with 17
  infinities and 9 NaN in 67 parameters. beta2, the divisor and 1-lr·weight_decay are not rounded to the dtype.

foreach is the same, except mul(a, x) = r(a · d(x)): momentum, beta2 (0.999 is 1.0 in bfloat16, so v never decays) and 1-lr·weight_decay are
rounded to the dtype. In float32 it equals the for-loop.

fused computes in float32 registers; only stored values are rounded, and the unrounded m, v, vmax are used further. Hyper-parameters are s().
The body is the first n − n mod 8 float32 elements. In bfloat16 and float16 the record does not show where fma is used.

    grad_scale: g = g / s(grad_scale)        (r(g) is written to .grad, the unrounded one is used)
    maximize:   g = -g
    SGD     weight_decay: g = fma(p, s(weight_decay), g)
            m = g (step 1), later, with k = s(1-dampening):
                body: fma(g, k, m·s(momentum))       tail: fma(m, s(momentum), g·k)
            g = nesterov ? fma(m, s(momentum), g) : m
            p = r(fma(g, s(-lr), p))
    Adam    AdamW: p = p · s(1 - lr·weight_decay)    Adam: g = fma(p, s(weight_decay), g)
            m = lerp as above;  k = s(1-beta2)
                body: v = fma(k·g, g, v·s(beta2))    tail: v = fma(v, s(beta2), (k·g)·g)
            amsgrad: vmax = max(vmax, v), used instead of v below
            den = sqrt(v) / s(bc2**0.5) + s(eps)
            p = r(p + (s(-(lr/bc1))·m) / den)

* In float32 fused equals the for-loop with capability default (without grad_scale), and with avx2 in the body.
* eps = 1e-8 in float16 is harmless: no infinity, no NaN.
* found_inf = 1: parameter, state, .grad and the step counter stay.
"""
import json
import os
import struct
import sys

import ml_dtypes
import numpy as np

F32 = np.float32
TYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
WIDTH = {"default": 0, "avx2": 32, "avx512": 32}      # bytes; avx512 runs the AVX2 kernels here
KIND = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def load(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head, data = json.loads(f.read(size)), f.read()
    meta, tensors = head.pop("__metadata__"), {}
    for name, h in head.items():
        a, b = h["data_offsets"]
        tensors[name] = np.frombuffer(data[a:b], dtype=TYPES[h["dtype"]]).reshape(h["shape"])
    return meta, tensors


def fma(a, b, c):
    """binary32 fma: exact product in binary64, sum rounded to odd there, then to binary32."""
    a, b, c = (np.asarray(x, F32).astype(np.float64) for x in (a, b, c))
    a, b, c = np.broadcast_arrays(a, b, c)
    p = a * b
    s = p + c
    t = s - p
    err = (p - (s - t)) + (c - t)
    odd = (s.view(np.int64) & 1) != 0
    fix = np.isfinite(s) & (err != 0) & ~odd
    toward = np.where(err > 0, np.inf, -np.inf)
    return np.where(fix, np.nextafter(s, toward), s).astype(F32)


def mulsub(a, b, c):
    """c + a*b with two roundings."""
    return F32(c) + F32(a) * F32(b)


def same(a, b):
    """Equal bits; any NaN equals any NaN."""
    w = {4: np.uint32, 2: np.uint16}[a.dtype.itemsize]
    nan = np.isnan(a.astype(F32)) & np.isnan(b.astype(F32))
    return (a.view(w) == b.view(w)) | nan


class Ops:
    """Tensor operations as ATen's CPU kernels do them: in binary32, then rounded to the dtype."""

    def __init__(self, dtype, n, capability):
        self.to = KIND[dtype]
        self.ma = mulsub if capability == "default" else fma
        width = WIDTH[capability] // self.to(0).itemsize
        self.body = np.arange(n) < n - n % (2 * width) if width else np.zeros(n, bool)
        self.fused_body = np.arange(n) < n - n % width if width else np.zeros(n, bool)

    def r(self, x):
        return np.asarray(x, F32).astype(self.to)

    def w(self, x):
        return np.asarray(x).astype(F32)

    def mul(self, a, x, foreach):
        return self.r(self.w(a) * F32(self.to(x) if foreach else x))

    def add(self, a, b, alpha):
        if self.to is F32:
            return self.ma(b, F32(alpha), a)
        x = self.w(b) * F32(self.to(alpha))               # exact, but for under- and overflow
        two = self.r(self.w(a) + self.w(self.r(x)))       # scalar: the product is rounded too
        return np.where(self.body, self.r(self.w(a) + x), two)

    def lerp(self, s, e, weight):
        s, e, weight = self.w(s), self.w(e), F32(weight)
        if abs(weight) < 0.5:
            return self.r(self.ma(weight, e - s, s))
        return self.r(self.ma(weight - F32(1), e - s, e))

    def addcmul(self, a, x, y, value):
        return self.r(self.ma(F32(value) * self.w(x), self.w(y), self.w(a)))

    def addcdiv(self, a, x, y, value):
        return self.r(self.w(a) + (F32(value) * self.w(x)) / self.w(y))


def eager(o, st, g, t, c, fe):
    """One step of the for-loop (fe False) or foreach (fe True) implementation."""
    p = st["p"]
    if c["maximize"]:
        g = -g
    wd = c["weight_decay"]
    if c["optimizer"] == "sgd":
        mom = c["momentum"]
        if wd:
            g = o.add(g, p, wd)
        if mom:
            if t == 1:
                st["m"] = g
            else:
                st["m"] = o.add(o.mul(st["m"], mom, fe), g, 1 - c["dampening"])
            g = o.add(g, st["m"], mom) if c["nesterov"] else st["m"]
        st["p"] = o.add(p, g, -c["lr"])
        return
    b1, b2 = c["beta1"], c["beta2"]
    if wd and c["optimizer"] == "adamw":
        p = o.mul(p, 1 - c["lr"] * wd, fe)
    elif wd:
        g = o.add(g, p, wd)
    st["m"] = o.lerp(st["m"], g, 1 - b1)
    st["v"] = o.addcmul(o.mul(st["v"], b2, fe), g, g, 1 - b2)
    v = st["v"]
    if c["amsgrad"]:
        v = st["vmax"] = np.where(st["vmax"] > v, st["vmax"], v)
    bc1, bc2 = 1 - b1 ** t, 1 - b2 ** t
    d = o.r(np.sqrt(o.w(v)))
    d = o.r(o.w(d) / F32(bc2 ** 0.5))
    d = o.r(o.w(d) + F32(o.to(c["eps"])))
    st["p"] = o.addcdiv(p, st["m"], d, -(c["lr"] / bc1))


def fused(o, st, g, t, c, fe):
    """One step of the fused CPU kernels: binary32 registers, stored with one rounding each."""
    p, wd = o.w(st["p"]), c["weight_decay"]
    g = o.w(g)
    if "grad_scale" in c:
        g = g / F32(c["grad_scale"])
    if c["maximize"]:
        g = -g
    if c["optimizer"] == "sgd":
        mom = F32(c["momentum"])
        if wd:
            g = o.ma(p, F32(wd), g)
        if mom:
            if t == 1:
                m = g
            else:
                k, m = F32(1 - c["dampening"]), o.w(st["m"])
                m = np.where(o.fused_body, o.ma(g, k, m * mom), o.ma(m, mom, g * k))
            st["m"] = o.r(m)
            g = o.ma(m, mom, g) if c["nesterov"] else m
        st["p"] = o.r(o.ma(g, F32(-c["lr"]), p))
        return
    b1, b2 = c["beta1"], c["beta2"]
    if wd and c["optimizer"] == "adamw":
        p = p * F32(1 - c["lr"] * wd)
    elif wd:
        g = o.ma(p, F32(wd), g)
    m, w = o.w(st["m"]), F32(1 - b1)
    m = o.ma(w, g - m, m) if abs(w) < 0.5 else o.ma(w - F32(1), g - m, g)
    v, k = o.w(st["v"]), F32(1 - b2)
    v = np.where(o.fused_body, o.ma(k * g, g, v * F32(b2)), o.ma(v, F32(b2), k * g * g))
    st["m"], st["v"] = o.r(m), o.r(v)
    if c["amsgrad"]:
        v = np.maximum(o.w(st["vmax"]), v)
        st["vmax"] = o.r(v)
    bc1, bc2 = 1 - b1 ** t, 1 - b2 ** t
    d = np.sqrt(v) / F32(bc2 ** 0.5) + F32(c["eps"])
    st["p"] = o.r(p + F32(-(c["lr"] / bc1)) * m / d)


def number(text):
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def check(c, tensors, case):
    """Returns {kind: (values, mismatches, [positions])}, every step from the recorded state."""
    o = Ops(c["dtype"], c["n"], c["capability"])
    step = fused if c["impl"] == "fused" else eager
    zero = np.zeros(c["n"], KIND[c["dtype"]])
    st, done, result = {"p": tensors[case + "/p.0"], "m": zero, "v": zero, "vmax": zero}, 0, {}
    for t in range(1, c["steps"] + 1):
        if t != c.get("found_inf_at"):
            done += 1
            step(o, st, tensors[f"{case}/g.{t}"], done, c, c["impl"] == "foreach")
        for kind in ("p", "m", "v", "vmax"):
            got = tensors.get(f"{case}/{kind}.{t}")
            if got is None:
                continue
            ok = same(np.asarray(st[kind]), got)
            n, bad, where = result.get(kind, (0, 0, []))
            result[kind] = (n + len(ok), bad + int((~ok).sum()),
                            where + [(t, int(i)) for i in np.nonzero(~ok)[0]])
            st[kind] = got                                # errors do not pile up
    return result


def main(directory):
    np.seterr(all="ignore")
    total, failed, table = 0, 0, {}
    for name in ("sgd", "adam", "adamw"):
        meta, tensors = load(os.path.join(directory, name + ".safetensors"))
        for case in sorted(k for k in meta if not k.startswith("mpsim.")):
            c = {k: number(v) for k, v in (f.split("=", 1) for f in meta[case].split())}
            runs = [(c["impl"], c["capability"])]
            runs += [x.split("/") for x in c.get("also", "").split(",") if x]
            for c["impl"], c["capability"] in runs:
                row = table.setdefault((name, c["impl"], c["capability"], c["dtype"]), [0, 0, 0])
                row[0] += 1
                for kind, (n, bad, where) in check(c, tensors, case).items():
                    row[1], row[2] = row[1] + n, row[2] + bad
                    total, failed = total + n, failed + bad
                    if bad:
                        print(f"{case} as {c['impl']}/{c['capability']}, {kind}: "
                              f"{bad} of {n} differ, (step, element): {where[:6]}")
    for key, (cases, n, bad) in sorted(table.items()):
        print("%-6s %-8s %-8s %-5s" % key, "%3d cases %6d values %5d mismatches" % (cases, n, bad))
    print(total, "values,", failed, "mismatches")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
