# SPDX-License-Identifier: Apache-2.0
"""Record block and tensor quantisations of torchao, and check them with small NumPy models.

    python3 record_torchao.py record .       (writes mx-*.safetensors, nvfp4.*, float8.*)
    python3 record_torchao.py check .        (needs only numpy; prints how many values the models give)

Recorded with torch 2.15.0 on CPU (eager mode, AVX-512) and torchao 0.18.0; record again with
ATEN_CPU_CAPABILITY=default and =avx2 to compare the vector paths.  Inputs come from
random.Random(SEED) and the lists below.  Tensors of a case: x (input), scale (the E8M0 or E4M3
codes of the blocks as U8, or F32 scales), codes (U8, one element per byte), dq (the framework's
dequantised result), pts (per-tensor scale).  The metadata maps each case to a line of key=value.

Models

MX.  b is the stored E8M0 code, amax the block's largest magnitude (a NaN makes it NaN).

    floor, ceil, even: e = exponent of amax (ceil: + 1 if the significand is not 1; even: after
      adding half a unit of the element's last significand bit to amax),
      b = clamp(e - emax, -127, 128) + 127
      NaN amax: b = 255;  y = x / max(2^(b-127), 2^-126), with 2^(255-127) = inf;  clamp
    rceil: d = f32(amax / max), b = clamp(ceil(f32(log2 d)), -127, 127) + 127; inf: 254, NaN: 255
      y = x * r, r = 2^(127-b), but 1 for b = 0 and NaN for b = 255;  clamp
    dq = value(code) * 2^(b-127), NaN for b = 255; bfloat16: rounded once

NVFP4.  All operations in float32:

    s = f32(amax_block / 6); with pts: f32(s / pts)
    scale = E4M3(clamp(s, 2^-6, 448));   r = 1 / scale; with pts: f32(f32(1 / pts) / scale)
    code = E2M1(clamp(f32(x * r), -6, 6));   dq = value * scale; with pts: value * f32(pts * scale)
    per_tensor_amax_to_scale(amax) = f32(amax / 2688)

float8.

    scale = f32(max / max(f64(amax), 1e-12)); pow2: 2^floor(f32(log2 scale))
    code = cast(clamp(f32(f32(x) * scale)));   dq = value / scale
"""
import json
import math
import os
import random
import struct
import sys

import numpy as np

SEED = 20261
#          exponent bits, mantissa bits, bias, largest value, torchao's emax
FORMATS = {"e4m3": (4, 3, 7, 448.0, 8), "e5m2": (5, 2, 15, 57344.0, 15),
           "e2m3": (2, 3, 1, 7.5, 2), "e3m2": (3, 2, 3, 28.0, 4), "e2m1": (2, 1, 1, 6.0, 2)}
FLT_MAX = float(np.finfo(np.float32).max)
BF16_MAX = 255 * 2.0 ** 120


def decode_table(fmt):
    """Value of every code; NaN and infinity where the format has them."""
    eb, mb, bias, top, _ = FORMATS[fmt]
    out = []
    for code in range(2 ** (1 + eb + mb)):
        s, e, m = code >> (eb + mb), code >> mb & (2 ** eb - 1), code & (2 ** mb - 1)
        v = math.ldexp(m, 1 - bias - mb) if e == 0 else math.ldexp(2 ** mb + m, e - bias - mb)
        if fmt == "e4m3" and code & 0x7f == 0x7f:
            v = math.nan
        if fmt == "e5m2" and e == 31:
            v = math.nan if m else math.inf
        out.append(-v if s else v)
    return np.array(out)


# --- inputs ----------------------------------------------------------------------------------
def step(x, n, dtype):
    """The n-th neighbour of x > 0 among the values of dtype."""
    shift = 16 if dtype == "bf16" else 0
    bits = int(np.float32(x).view(np.uint32)) >> shift
    return float(np.uint32((bits + n) << shift).view(np.float32))


def to_dtype_values(values, dtype):
    """Round to bfloat16 (nearest even, NaN and infinity kept) when the input is bfloat16."""
    a = np.array(values, dtype=np.float64).astype(np.float32)
    if dtype == "bf16":
        b = a.view(np.uint32).astype(np.uint64)
        r = ((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)
        r = np.where(np.isfinite(r), r, np.copysign(np.float32(BF16_MAX), a))
        a = np.where(np.isfinite(a), r, a)
    return a.astype(np.float32)


def make_blocks(fmt, dtype, size, scale_unit=1.0, specials=True):
    """Named blocks; scale_unit is the scale that puts the element grid on itself."""
    _, mb, _, top, emax = FORMATS[fmt]
    pick = random.Random(f"{SEED} {fmt} {dtype} {size}")
    blocks = []

    def add(name, values):
        values = [v for v in values][:size]
        values += [0.0] * (size - len(values))
        blocks.append((name, to_dtype_values(values, dtype)))

    def fill(amax, lo=-6):
        """Values below amax, one of them +-amax."""
        v = [pick.choice((-1, 1)) * amax * 2.0 ** pick.uniform(lo, -0.01) for _ in range(size)]
        v = [min(max(x, -amax), amax) for x in v]
        v[pick.randrange(size)] = amax * pick.choice((-1, 1))
        return v

    for i in range(3):
        add("normal", [pick.gauss(0, 1) for _ in range(size)])
    for i in range(2):
        k = pick.randrange(-40, 40)
        add("normal_scaled", [math.ldexp(pick.gauss(0, 1), k) for _ in range(size)])
    for span in (8, 20, 60):
        add("wide", [pick.choice((-1, 1)) * 2.0 ** pick.uniform(-span, span / 2)
                     for _ in range(size)])
    add("zero", [])
    add("minus_zero", [-0.0] * size)
    add("one_value", [0.0] * (size // 2) + [-3.7])
    for k in (0, -11, 70):                  # around the largest element value
        add("max", fill(math.ldexp(top, k)))
        add("max_plus", fill(step(math.ldexp(top, k), 1, dtype)))
    add("max_minus", fill(step(top, -1, dtype)))
    between = 2.0 ** (emax + 1)
    for v in (step(between, -1, dtype), (top + between) / 2, math.ldexp(top * 0.3 + between * 0.7,
                                                                        -9)):
        add("beyond_max", fill(v))
    for k in (emax, 0, -20):                     # around powers of two
        add("pow2", fill(2.0 ** k))
        add("pow2_minus", fill(step(2.0 ** k, -1, dtype)))
        add("pow2_plus", fill(step(2.0 ** k, 1, dtype)))
    carry = (2 - 2.0 ** -(mb + 1)) * 2.0 ** (emax - 3)       # where EVEN's rounding carries
    add("even_carry", fill(carry))
    add("even_below_carry", fill(step(carry, -1, dtype)))
    for v in (2.0 ** -126, step(2.0 ** -126, -1, dtype), 1.5 * 2.0 ** -127,
              2.0 ** -133 if dtype == "bf16" else 2.0 ** -149, 2.0 ** -125 * top,
              step(2.0 ** -127 * top, 1, dtype), 2.0 ** -118):
        add("tiny", fill(v))
    for v in (BF16_MAX if dtype == "bf16" else FLT_MAX, 2.0 ** 127,
              step(2.0 ** 127, 1, dtype), 1.75 * 2.0 ** 127):
        add("huge", fill(v))
    if specials:
        for bad in ((math.inf,), (-math.inf,), (math.nan,), (math.inf, math.nan), (-math.nan,)):
            v = fill(100.0)
            for b in bad:
                v[pick.randrange(size // 2) + (size // 2 if b is bad[0] else 0)] = b
            add("special", v)
    grid = sorted({abs(float(v)) for v in decode_table(fmt) if math.isfinite(v)})
    mids = [(a + b) / 2 for a, b in zip(grid, grid[1:])]
    if len(mids) > 24:
        mids = mids[:8] + pick.sample(mids[8:-3], 12) + mids[-3:]
    ties = [scale_unit * s * v for m in mids for v in
            (m, step(m, 1, dtype), step(m, -1, dtype)) for s in (1, -1)]
    for i in range(0, len(ties), size - 1):          # the first value fixes the scale
        add("ties", [scale_unit * 2.0 ** emax] + ties[i:i + size - 1])
    return blocks


# --- safetensors -----------------------------------------------------------------------------
def save(path, tensors, metadata):
    """Sorted keys, so that equal data gives equal bytes; tensors: name -> (dtype, numpy array)"""
    head, chunks, pos = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        dtype, a = tensors[name]
        raw = np.ascontiguousarray(a).tobytes()
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
        kind = {"F32": np.float32, "U8": np.uint8, "BF16": np.uint16}[t["dtype"]]
        v = np.frombuffer(raw[8 + n + a:8 + n + b], dtype=kind).reshape(t["shape"])
        if t["dtype"] == "BF16":
            v = (v.astype(np.uint32) << 16).view(np.float32)
        out[name] = v
    return meta, out


def from_torch(t):
    import torch
    t = t.detach().contiguous()
    if t.dtype == torch.bfloat16:
        return "BF16", t.view(torch.int16).numpy().view(np.uint16)
    if t.dtype == torch.float32:
        return "F32", t.numpy()
    return "U8", t.view(torch.uint8).numpy()


# --- recording -------------------------------------------------------------------------------
def inputs(blocks, dtype):
    import torch
    x = np.stack([v for _, v in blocks])
    if dtype == "bf16":                              # by bits: a cast would change the NaNs
        return torch.from_numpy((x.view(np.uint32) >> 16).astype(np.uint16)
                                .view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(x)


def describe(blocks):
    names, last = [], None
    for name, _ in blocks:
        if name == last:
            names[-1][1] += 1
        else:
            names.append([name, 1])
        last = name
    return "+".join(n if k == 1 else f"{n}*{k}" for n, k in names)


class File:
    def __init__(self):
        import torch
        import torchao
        self.tensors, self.meta = {}, {"recorder": "data/vectors/blocks/record_torchao.py"}
        self.common = (f"framework=torchao version={torchao.__version__} "
                       f"torch={torch.__version__.split('+')[0]}")

    def put(self, case, text, **tensors):
        for name, t in tensors.items():
            self.tensors[f"{case}/{name}"] = from_torch(t)
        self.meta[case] = self.common + " " + text

    def save(self, directory, name):
        save(os.path.join(directory, name), self.tensors, self.meta)


def record_mx(directory):
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx
    elem = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e2m3": DTYPE_FP6_E2M3,
            "e3m2": DTYPE_FP6_E3M2, "e2m1": torch.float4_e2m1fn_x2}
    for fmt in FORMATS:
        out = File()
        for dtype in ("f32", "bf16"):
            for size in (32, 16):
                for mode in (Mode.FLOOR, Mode.CEIL, Mode.EVEN, Mode.RCEIL):
                    if size == 16 and (fmt, dtype, mode) != ("e2m1", "f32", Mode.FLOOR):
                        continue
                    if dtype == "bf16" and fmt != "e4m3" and \
                            mode in (Mode.CEIL, Mode.EVEN):
                        continue
                    blocks = make_blocks(fmt, dtype, size)
                    x = inputs(blocks, dtype)
                    scale, data = to_mx(x.clone(), elem[fmt], size, mode)
                    dq = to_dtype(data, scale, elem[fmt], size, x.dtype)
                    codes = unpack_uint4(data) if fmt == "e2m1" else data
                    out.put(f"mx-{fmt}-{mode.value.lower()}-{dtype}-{size}",
                            f"recipe=mx mode={mode.value.lower()} element={fmt} block={size} "
                            f"input={dtype} scale=e8m0 seed={SEED} blocks={describe(blocks)}",
                            x=x, scale=scale.reshape(-1), codes=codes, dq=dq)
        out.save(directory, f"mx-{fmt}.safetensors")


def record_nvfp4(directory):
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    from torchao.prototype.mx_formats.kernels import unpack_uint4
    out = File()
    for dtype in ("f32", "bf16"):
        every = make_blocks("e2m1", dtype, 16)
        finite = make_blocks("e2m1", dtype, 16, specials=False)
        mild = [(n, v) for n, v in finite
                if 2.0 ** -14 < np.abs(v).max() < 2.0 ** 9 or n == "zero"]
        zeros = [b for b in finite if "zero" in b[0]]
        amax = float(max(np.abs(v).max() for _, v in mild))
        for name, blocks, pts in (
                ("single", every, None), ("own", finite, "amax"), ("own_mild", mild, "amax"),
                ("larger", mild, amax * 8), ("odd", mild, amax * 1.37),
                ("smaller", mild, amax / 24), ("zeros", zeros, "amax"), ("special", every, "amax")):
            if dtype == "bf16" and name in ("own_mild", "larger", "odd", "smaller"):
                continue
            x = inputs(blocks, dtype)
            extra = {}
            if pts is not None:
                a = x.abs().max() if pts == "amax" else torch.tensor(pts, dtype=torch.float32)
                extra["pts"] = per_tensor_amax_to_scale(a)
            q = NVFP4Tensor.to_nvfp4(x.clone(), per_tensor_scale=extra.get("pts"))
            out.put(f"nvfp4-{name}-{dtype}",
                    f"recipe=nvfp4 element=e2m1 block=16 input={dtype} scale=e4m3 "
                    f"per_tensor={'none' if pts is None else 'amax' if pts == 'amax' else 'given'}"
                    f" seed={SEED} blocks={describe(blocks)}",
                    x=x, scale=q.scale.reshape(-1), codes=unpack_uint4(q.qdata),
                    dq=q.dequantize(), **extra)
    out.save(directory, "nvfp4.safetensors")


def record_float8(directory):
    import torch
    from torchao.float8.config import ScalingGranularity as Granularity
    from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
    from torchao.float8.float8_training_tensor import LinearMMConfig
    out = File()
    for fmt, target in (("e4m3", torch.float8_e4m3fn), ("e5m2", torch.float8_e5m2)):
        for dtype in ("f32", "bf16"):
            blocks = [b for b in make_blocks(fmt, dtype, 16) if b[0] != "ties"]
            # f32(largest/amax) one step below a power of two, and far from one
            for k in (-60, -20, -9, -4, -3, -2, -1, 0, 1, 2, 3, 4, 9, 20, 33):
                top = step(math.ldexp(FORMATS[fmt][3], k), 1, dtype)
                blocks.append(("scale_below_pow2", to_dtype_values(
                    [top, top / 3, -top / 7] + [top * i / 17 for i in range(13)], dtype)))
            for v in (1e-12, 9.99e-13, 1e-30):
                blocks.append(("eps", np.resize(to_dtype_values([v, -v / 2, v / 5], dtype), 16)))
            picked, seen = [], set()
            for n, v in blocks:                       # tensorwise: one block of some kinds
                if n not in seen and n in ("normal", "zero", "max_plus", "huge", "special",
                                           "eps"):
                    seen.add(n)
                    picked.append((n, v))
            for pow2 in (False, True):
                x = inputs(blocks, dtype)

                def run(t, **kw):
                    q = hp_tensor_to_float8_dynamic(t, target, LinearMMConfig(),
                                                    round_scales_to_power_of_2=pow2, **kw)
                    return dict(x=t, scale=q._scale, codes=q._data, dq=q.to_original_precision())
                what = f"element={fmt} input={dtype} scale=f32 pow2={int(pow2)} seed={SEED}"
                name = f"{fmt}-{dtype}-pow2_{int(pow2)}"
                out.put(f"rowwise-{name}", f"recipe=float8 granularity=rowwise {what} "
                        f"blocks={describe(blocks)}",
                        **run(x, scaling_granularity=Granularity.AXISWISE, axiswise_dim=-1))
                for n, v in picked:
                    if pow2 and n not in ("zero", "max_plus"):
                        continue
                    out.put(f"tensorwise-{name}-{n}",
                            f"recipe=float8 granularity=tensorwise {what}",
                            **run(inputs([(n, v)], dtype)))
                rows = inputs([b for b in blocks if b[0].startswith("normal")], dtype)
                out.put(f"tensorwise-{name}-matrix",
                        f"recipe=float8 granularity=tensorwise {what}", **run(rows))
    out.save(directory, "float8.safetensors")


def record(directory):
    record_mx(directory)
    record_nvfp4(directory)
    record_float8(directory)


# --- independent models ----------------------------------------------------------------------
f32 = np.float32


def quantise(y, fmt):
    """Codes of y, float32: to nearest, ties to even, saturating.  NaN in a format without one falls
    into the bit arithmetic of torchao's conversion and gives what stands here."""
    eb, mb, bias, top, _ = FORMATS[fmt]
    table = decode_table(fmt)[:2 ** (eb + mb)]
    n = int((np.isfinite(table)).sum())
    grid = table[:n]
    a = np.minimum(np.abs(y).astype(np.float64), top)
    hi = np.clip(np.searchsorted(grid, np.nan_to_num(a)), 1, n - 1)
    lo = hi - 1
    mid = (grid[lo] + grid[hi]) / 2
    code = np.where((a > mid) | ((a == mid) & (hi % 2 == 0)), hi, lo)
    bits = y.view(np.uint32).astype(np.int64)
    if fmt in ("e4m3", "e5m2"):
        code = np.where(np.isnan(y), 0x7f, code)
    else:
        m = bits & 0x7fffffff
        m = m + ((bias - 127) << 23) + 2 ** (22 - mb) - 1 + (m >> (23 - mb) & 1)
        m = (m + 2 ** 31) % 2 ** 32 - 2 ** 31
        code = np.where(np.isnan(y), (m >> (23 - mb)) & 0xff, code)
    return (code | (bits >> 31) << (eb + mb)).astype(np.uint8)


def round_to(v, dtype):
    """float64 -> float32, and on to bfloat16 when the case is bfloat16."""
    v = v.astype(f32)
    if dtype != "bf16":
        return v
    b = v.view(np.uint32).astype(np.uint64)
    r = ((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(f32)
    return np.where(np.isnan(v), v, r)


def mx_model(x, fmt, mode, block, rule):
    """rule "0.18": the installed torchao; "notes": reciprocal 2^(127-b) and 255 for non-finite."""
    eb, mb, bias, top, emax = FORMATS[fmt]
    x = x.reshape(-1, block)
    amax = np.abs(x).max(axis=1)
    bits = amax.view(np.uint32).astype(np.int64)
    nan = np.isnan(amax)
    if mode == "rceil":
        d = (amax / f32(top)).astype(f32)
        db = d.view(np.uint32).astype(np.int64)
        e, m = db >> 23, db & 0x7fffff
        exact = e + ((m > 0) & (e > 0)) + ((e == 0) & (m > 0x400000))
        if rule == "notes":
            s = np.where(np.isfinite(amax), exact, 255)
        else:
            with np.errstate(divide="ignore"):
                log2 = np.log2(d.astype(np.float64)).astype(f32)      # rounded to float32
            s = np.clip(np.ceil(log2), -127, 127) + 127
            s = np.where(nan, 255, np.where(np.isinf(d), 254, s))
        s = np.nan_to_num(s).astype(np.int64)
    else:
        if mode == "even":
            bits = (bits + (1 << (22 - mb))) & 0xff800000
        e = (bits >> 23) - 127
        if mode == "ceil":
            e = e + ((bits & 0x7fffff) > 0)
        s = np.where(nan, 255, np.clip(e - emax, -127, 128) + 127)
        if rule == "notes":
            s = np.where(np.isfinite(amax), s, 255)
    factor = 2.0 ** (127.0 - s)
    if rule == "0.18":
        factor = np.where(s == 0, 1.0 if mode == "rceil" else 2.0 ** 126, factor)
        factor = np.where(s == 255, math.nan if mode == "rceil" else 0.0, factor)
    else:
        factor = np.where(s == 255, math.nan, factor)
    y = (x.astype(np.float64) * factor[:, None]).astype(f32)
    return s, quantise(y, fmt)


def nvfp4_model(x, pts):
    x = x.reshape(-1, 16)
    block = np.abs(x).max(axis=1) / f32(6)
    b = block if pts is None else block / pts
    s = quantise(np.clip(b, f32(2.0 ** -6), f32(448)), "e4m3")
    v = decode_table("e4m3")[s].astype(f32)
    r = f32(1) / v if pts is None else (f32(1) / pts) / v
    y = np.clip(x * r[:, None], f32(-6), f32(6))
    total = v if pts is None else pts * v
    return s, quantise(y, "e2m1"), total


def float8_model(x, fmt, rowwise, pow2):
    top = FORMATS[fmt][3]
    amax = np.abs(x).max(axis=1, keepdims=True) if rowwise else np.abs(x).max()
    scale = (top / np.maximum(amax.astype(np.float64), 1e-12)).astype(f32)
    exact = scale
    if pow2:
        log2 = np.log2(scale.astype(np.float64)).astype(f32)          # rounded to float32
        exact = (2.0 ** np.floor(np.log2(scale.astype(np.float64)))).astype(f32)
        scale = (2.0 ** np.floor(log2).astype(np.float64)).astype(f32)
    y = np.clip((x * scale).astype(f32), f32(-top), f32(top))
    return scale, exact, quantise(y, fmt)


def differ(a, b):
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    return int((~((a == b) | (np.isnan(a.astype(float)) & np.isnan(b.astype(float))))).sum())


def check(directory):
    np.seterr(all="ignore")
    rows = {}

    def count(key, **values):
        row = rows.setdefault(key, {})
        for k, (n, bad) in values.items():
            a, b = row.get(k, (0, 0))
            row[k] = (a + n, b + bad)

    for name in sorted(os.listdir(directory)):
        if not name.endswith(".safetensors") or name.startswith("te"):
            continue
        meta, data = load(os.path.join(directory, name))
        for case, text in meta.items():
            if case == "recorder":
                continue
            p = dict(w.split("=", 1) for w in text.split())
            x, scale, codes, dq = (data[f"{case}/{t}"] for t in ("x", "scale", "codes", "dq"))
            fmt = p["element"]
            value = decode_table(fmt)[codes]
            nan = np.isnan(x)
            if p["recipe"] == "mx":
                block = int(p["block"])
                for rule in ("0.18", "notes"):
                    s, c = mx_model(x, fmt, p["mode"], block, rule)
                    c = c.reshape(codes.shape)
                    if fmt in ("e4m3", "e5m2"):        # the NaN's sign is not compared
                        c, k = np.where(nan, c & 0x7f, c), np.where(nan, codes & 0x7f, codes)
                    else:
                        c, k = np.where(nan, 0, c), np.where(nan, 0, codes)
                    count(f"mx {p['mode']} {rule}", cases=(1, 0),
                          scales=(s.size, differ(s, scale)), codes=(c.size, differ(c, k)))
                f = np.where(scale == 255, math.nan, 2.0 ** (scale.astype(float) - 127))
                d = round_to((value.reshape(-1, block) * f[:, None]).reshape(x.shape), p["input"])
                count(f"mx {p['mode']} 0.18", dq=(d.size, differ(d, dq)))
            elif p["recipe"] == "nvfp4":
                pts = data.get(f"{case}/pts")
                s, c, t = nvfp4_model(x, pts)
                c, k = c.reshape(codes.shape), codes
                d = (value.reshape(-1, 16).astype(f32) * t[:, None]).reshape(x.shape)
                bad = np.isnan(t)[np.arange(x.size) // 16].reshape(x.shape)
                c, k = np.where(nan | bad, 0, c), np.where(nan | bad, 0, k)
                count("nvfp4 " + p["per_tensor"], cases=(1, 0),
                      scales=(s.size, differ(s & 0x7f, scale & 0x7f)),
                      codes=(c.size, differ(c, k)),
                      dq=(d.size, differ(round_to(d, p["input"]), dq)))
                if pts is not None and p["per_tensor"] == "amax":
                    count("nvfp4 amax", pts=(1, differ(pts, np.abs(x).max() / f32(2688))))
            else:
                row = p["granularity"] == "rowwise"
                s, exact, c = float8_model(x, fmt, row, p["pow2"] == "1")
                inf = np.isnan(value)
                c, k = np.where(inf, c & 0x7f, c), np.where(inf, codes & 0x7f, codes)
                d = round_to((value.astype(f32) / scale).astype(f32),
                             "f32" if row else p["input"])
                count(f"float8 {p['granularity']} pow2={p['pow2']}", cases=(1, 0),
                      scales=(s.size, differ(s, scale)), codes=(c.size, differ(c, k)),
                      dq=(d.size, differ(d, dq)), exact_log2=(s.size, differ(exact, scale)))
    for key, row in rows.items():
        print(key + ":", ", ".join(f"{k} {n}" if k == "cases" else f"{k} {n - bad}/{n}"
                                   for k, (n, bad) in row.items()))


if __name__ == "__main__":
    {"record": record, "check": check}[sys.argv[1]](*sys.argv[2:])
