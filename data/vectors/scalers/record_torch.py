# SPDX-License-Identifier: Apache-2.0
"""Record what torch.amp.GradScaler("cpu") and clip_grad_norm_ do, as text vectors.

    python3 record_torch.py .

Writes torch.txt (scale and growth tracker under scripted overflows), unscale.txt (bits of
unscaled gradients) and clip.txt (bits of clipped gradients).  Every file says its columns.
"""
import math
import os
import random
import struct
import sys
import warnings

os.environ["ATEN_CPU_CAPABILITY"] = "default"
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["MKL_CBWR"] = "AVX2"

import torch  # noqa: E402

SEED = 20240602
NAMES = {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
ABOUT = ["# SPDX-License-Identifier: Apache-2.0",
         f"# torch {torch.__version__} on CPU, recorded by record_torch.py, seed {SEED}"]


def hexfloat(x):
    """C99 hex float of a finite or infinite double, without trailing zeros."""
    if math.isinf(x) or math.isnan(x):
        return str(x)
    sign, x = ("-" if math.copysign(1, x) < 0 else ""), abs(x)
    if x == 0:
        return sign + "0x0p+0"
    m, e = math.frexp(x)
    digits = ("%013x" % int((m * 2 - 1) * 2 ** 52)).rstrip("0")
    return f"{sign}0x1{'.' if digits else ''}{digits}p{e - 1:+d}"


def bits(t):
    raw = {4: torch.int32, 2: torch.int16}[t.element_size()]
    width = 2 * t.element_size()
    return ["%0*x" % (width, v & (16 ** width - 1)) for v in t.reshape(-1).view(raw).tolist()]


def from_bits(values, dtype):
    size = dtype.itemsize
    fmt, raw = ("<%dI", torch.int32) if size == 4 else ("<%dH", torch.int16)
    return torch.frombuffer(bytearray(struct.pack(fmt % len(values), *values)), dtype=raw) \
        .view(dtype).clone()


class CountingSGD(torch.optim.SGD):
    steps = 0

    def step(self, *args, **kwargs):
        self.steps += 1
        return super().step(*args, **kwargs)


SCALERS = [
    ("short-defaults", dict(init_scale=65536.0, growth_interval=5),
     "1100000000010000010001111000000000001000000000000100"),
    ("backoff-growth", dict(init_scale=65536.0, growth_factor=1.5, backoff_factor=0.7,
                            growth_interval=3), "0001000010110000001111000000000010100000000000"),
    ("odd-factors", dict(init_scale=1000.1, growth_factor=1.001, backoff_factor=0.999,
                         growth_interval=1), "000010000100110000000011110000"),
    ("interval-1", dict(init_scale=1.0, growth_interval=1), "0010010000"),
    ("interval-2", dict(init_scale=2.0 ** 24, growth_interval=2), "1110010001010100000"),
    ("to-infinity", dict(init_scale=2.0 ** 120, growth_interval=1), "0000000000100"),
    ("to-infinity-1.5", dict(init_scale=3.0e38, growth_factor=1.5, growth_interval=2),
     "010000010000"),
    ("to-zero", dict(init_scale=2.0 ** -140, growth_interval=3), "111111111110001000"),
    ("to-zero-0.7", dict(init_scale=2.0 ** -145, backoff_factor=0.7, growth_factor=1.5,
                         growth_interval=2), "1111110000001111111100001"),
    ("disabled", dict(enabled=False, init_scale=65536.0, growth_interval=2), "0010010"),
]


def set_grad(param, bad):
    param.grad = torch.tensor([1.0, float("inf") if bad else 0.5])


def record_scaler(out):
    print(*ABOUT, sep="\n", file=out)
    print("""\
# torch.amp.GradScaler("cpu"): scaler.scale(), gradients set, scaler.step(), scaler.update()
# case NAME init=.. growth=.. backoff=.. window=.. (window is growth_interval), then per step:
# INF (1: a gradient was infinite) SCALE (after update) COUNTER (growth tracker after) EVENT
# SCALE is the exact value as a hex float; EVENT: step or skip (whether optimizer.step ran).
# With enabled=0 the scale is reported as 1 and the counter as 0, and the step is always taken.
# "case two-optimizers" has INF and EVENT of both optimizers: INF1 INF2 SCALE COUNTER EVENT1 EVENT2
# "set=X" lines: scaler.update(X) was called instead of update(), with the same other columns.
# Seen: growth which would give infinity leaves the scale as it is and resets the counter (on CPU
# too in this version); a scale of 0 stays 0, and steps with finite gradients are taken then.""",
          file=out)
    for name, options, pattern in SCALERS:
        o = dict(init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000)
        o.update(options)
        enabled = options.get("enabled", True)
        print(f"case {name} init={hexfloat(o['init_scale'])} growth={o['growth_factor']!r} "
              f"backoff={o['backoff_factor']!r} window={o['growth_interval']}"
              + ("" if enabled else " enabled=0"), file=out)
        p = torch.nn.Parameter(torch.zeros(2))
        opt, scaler = CountingSGD([p], lr=0.0), torch.amp.GradScaler("cpu", **options)
        for bad in pattern:
            scaler.scale(torch.tensor(1.0))
            set_grad(p, bad == "1")
            before = opt.steps
            scaler.step(opt)
            scaler.update()
            print(bad, hexfloat(scaler.get_scale()), scaler._get_growth_tracker() if enabled else 0,
                  "step" if opt.steps > before else "skip", file=out)
    print("case two-optimizers init=0x1p+16 growth=2.0 backoff=0.5 window=3", file=out)
    ps = [torch.nn.Parameter(torch.zeros(2)) for _ in range(2)]
    opts = [CountingSGD([p], lr=0.0) for p in ps]
    scaler = torch.amp.GradScaler("cpu", growth_interval=3)
    for pair in "00 00 00 10 00 01 11 00 00 00 01 00 10 00 00 00".split():
        scaler.scale(torch.tensor(1.0))
        before = [o.steps for o in opts]
        for p, o, bad in zip(ps, opts, pair):
            set_grad(p, bad == "1")
            scaler.step(o)
        scaler.update()
        print(*pair, hexfloat(scaler.get_scale()), scaler._get_growth_tracker(),
              *("step" if o.steps > b else "skip" for o, b in zip(opts, before)), file=out)
    print("case set-scale init=0x1p+16 growth=2.0 backoff=0.5 window=3", file=out)
    p = torch.nn.Parameter(torch.zeros(2))
    opt, scaler = CountingSGD([p], lr=0.0), torch.amp.GradScaler("cpu", growth_interval=3)
    for action in "0 0 set=1000.5 0 0 0 1 0 set=8.0 0 0 0 0".split():
        scaler.scale(torch.tensor(1.0))
        set_grad(p, action == "1")
        before = opt.steps
        scaler.step(opt)
        scaler.update(float(action[4:]) if action.startswith("set") else None)
        print(action, hexfloat(scaler.get_scale()), scaler._get_growth_tracker(),
              "step" if opt.steps > before else "skip", file=out)


def gradient_bits(dtype, count=60):
    pick = random.Random(SEED)
    if dtype is torch.float32:
        special = [0, 1, 0x00400000, 0x007fffff, 0x00800000, 0x3f800000, 0x7f7fffff, 0x7f800000,
                   0x7fc00000, 0x42f6e979, 0x33800000, 0x7f000000]
        top, mantissa = 255, 23
    elif dtype is torch.bfloat16:
        special = [0, 1, 0x40, 0x7f, 0x80, 0x3f80, 0x7f7f, 0x7f80, 0x7fc0, 0x42f7, 0x3380]
        top, mantissa = 255, 7
    else:
        special = [0, 1, 0x200, 0x3ff, 0x400, 0x3c00, 0x7bff, 0x7c00, 0x7e00, 0x57b7, 0x0400]
        top, mantissa = 31, 10
    sign = 1 << (8 * dtype.itemsize - 1)
    values = special + [b | sign for b in special]
    while len(values) < count:
        if pick.random() < 0.3 or dtype is torch.float16:
            e = pick.randrange(0, top)
        else:
            e = pick.randrange(90, 170)
        values.append(pick.getrandbits(1) * sign | e << mantissa | pick.getrandbits(mantissa))
    return values


def record_unscale(out):
    print(*ABOUT, sep="\n", file=out)
    print("""# GradScaler.unscale_ on CPU.  "group" lines: SCALE (hex float) DTYPE FOUND_INF, where
# FOUND_INF is what unscale_ reported for the whole group; then one line per value:
# SCALE DTYPE INBITS OUTBITS.
# "group ... finite" has no lines: FOUND_INF of the same values without infinities and NaN (it
# looks at the gradients before the multiplication: some of the products overflow).
# raises SCALE DTYPE EXCEPTION: unscale_ refused.
# All lines: inv = float32(1 / double(scale)); inv == 1: unchanged, else float32 product,
# rounded to DTYPE (840 values, 0 mismatches; NaN equals NaN).""", file=out)
    scales = [65536.0, 3.0 * 2 ** 10, 65536.0 * 0.7, 2.0 ** -130, 1.0, 2.0 ** 127, 2.0 ** -149]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for init in scales:
            for only_finite in (False, True):
                values = gradient_bits(dtype)
                x = from_bits(values, dtype)
                if only_finite:
                    x = x[torch.isfinite(x)]
                p = torch.nn.Parameter(torch.zeros(len(x), dtype=dtype))
                opt = torch.optim.SGD([p], lr=0.0)
                scaler = torch.amp.GradScaler("cpu", init_scale=init)
                scaler.scale(torch.tensor(1.0))
                scale = hexfloat(scaler.get_scale())
                p.grad = x.clone()
                try:
                    scaler.unscale_(opt)
                except (ValueError, RuntimeError) as e:
                    if not only_finite:
                        print("raises", scale, NAMES[dtype], type(e).__name__, file=out)
                    continue
                found = int(scaler._per_optimizer_states[id(opt)]["found_inf_per_device"]
                            [torch.device("cpu")].item())
                print("group", scale, NAMES[dtype], found, "finite" if only_finite else "all",
                      file=out)
                if only_finite:
                    continue
                for a, b in zip(bits(x), bits(p.grad)):
                    print(scale, NAMES[dtype], a, b, file=out)


def record_clip(out):
    print(*ABOUT, "# ATEN_CPU_CAPABILITY=default MKL_CBWR=AVX2", sep="\n", file=out)
    print("""# torch.nn.utils.clip_grad_norm_(parameters, max_norm), default norm type 2, by set:
# set NAME DTYPE MAXNORM FOREACH TOTALBITS TOTALDTYPE; MAXNORM is a hex float, TOTALBITS the bits
# of the returned norm; then one line per tensor and direction: in INDEX BITS..., out INDEX BITS...
# The norm is a sum in an order of torch's own: compare it with a tolerance, and the clipped
# values exactly from the recorded norm, all in DTYPE, r() rounding float32 to it:
# c = r(r(1 / r(total + r(1e-6))) * float32(max_norm)), 1 if above 1, out = r(in * c): 3600 values,
# 0 mismatches (NaN equals NaN).  A quotient max_norm / (total + 1e-6) would give 238.""", file=out)
    gen = torch.Generator().manual_seed(SEED)
    shapes = ((5,), (3, 7), (1,), (33,))
    base = [torch.randn(s, generator=gen) for s in shapes]
    sets = [("below", 0.02, 1.0), ("above", 1.0, 1.0), ("above-3", 3.0, 0.7), ("far", 500.0, 1.0),
            ("tiny", 2.0 ** -20, 2.0 ** -21), ("near", 0.125, 1.0), ("inf", 1.0, 1.0),
            ("nan", 1.0, 1.0), ("zero", 0.0, 1.0), ("overflow", 60000.0, 1.0)]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for name, factor, limit in sets:
            for foreach in (False, True):
                ps = []
                for i, b in enumerate(base):
                    g = (b * factor).clamp(-60000, 60000).to(dtype)
                    if i == 1 and name in ("inf", "nan"):
                        g[1, 2] = float(name)
                    ps.append(torch.nn.Parameter(torch.zeros_like(g)))
                    ps[-1].grad = g
                before = [bits(p.grad) for p in ps]
                total = torch.nn.utils.clip_grad_norm_(ps, limit, foreach=foreach)
                print("set", name, NAMES[dtype], hexfloat(limit), int(foreach), *bits(total),
                      NAMES[total.dtype], file=out)
                for i, (a, p) in enumerate(zip(before, ps)):
                    print("in", i, *a, file=out)
                    print("out", i, *bits(p.grad), file=out)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for file, record in (("torch.txt", record_scaler), ("unscale.txt", record_unscale),
                         ("clip.txt", record_clip)):
        with open(os.path.join(sys.argv[1], file), "w") as f:
            record(f)
