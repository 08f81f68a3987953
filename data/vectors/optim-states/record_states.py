# SPDX-License-Identifier: Apache-2.0
"""Record torchao's quantised moments step by step; compute COAT's and MS-AMP's with NumPy.

    python3 record_states.py record .     (writes torchao.safetensors, model.safetensors)

Recorded with torch 2.15.0 and torchao 0.18.0 on CPU (AVX-512), one thread; torch.compile is replaced by the
identity while a step runs, and arrays of any size are quantised (torchao: from 4,096 elements on), so that the
files are small. Square roots are NumPy's, which are IEEE's: those of MKL differ with the processor. model.safetensors needs NumPy alone: COAT's kernels (NVlabs/VILA @36f6adcd) and MS-AMP's scales
as formulas, powers and logarithms in binary64. Inputs: numpy.random.default_rng(SEED).
"""
import json
import struct
import sys

import numpy as np

SEED, N, STEPS = 20263, 256, 3
f32, f64 = np.float32, np.float64


def to_bf16(x):
    b = np.asarray(x, f32).view(np.uint32).astype(np.uint64)
    return ((b + 0x7fff + (b >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(f32)


def inputs(bf16):
    """Parameters; gradients whose magnitudes differ by block, some zero."""
    rng = np.random.default_rng(SEED)
    p = rng.normal(size=N) * 0.1
    gs = []
    for t in range(STEPS):
        g = rng.normal(size=N) * 2.0 ** rng.integers(-14, 1, N) * np.where(np.arange(N) < N // 2, 1, 1e-3)
        g[rng.integers(0, N, 20)] = 0
        gs.append(g)
    cut = to_bf16 if bf16 else (lambda v: v)
    return cut(p.astype(f32)), [cut(g.astype(f32)) for g in gs]


def edges():
    """Blocks with what is rare: zeros, numbers below every limit, NaN, infinities, halves between codes."""
    rng = np.random.default_rng(SEED + 1)
    block = [np.zeros(256), rng.normal(size=256), np.full(256, 1e-30), np.geomspace(1e-38, 1, 256),
             np.where(np.arange(256) == 7, np.nan, 1.0), np.where(np.arange(256) == 9, np.inf, 1.0),
             np.linspace(-1, 1, 256), np.full(256, -0.25), np.arange(256) * 2.0 ** -149,
             np.linspace(-448, 448, 256)]
    return np.concatenate(block).astype(f32)


def save(path, tensors, metadata):
    """Sorted keys, so that equal data gives equal bytes."""
    names = {"float32": "F32", "uint8": "U8", "uint16": "U16"}
    head, chunks, pos = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        a = np.ascontiguousarray(tensors[name])
        kind, raw = names[str(a.dtype)], a.tobytes()
        head[name] = {"dtype": kind, "shape": list(a.shape), "data_offsets": [pos, pos + len(raw)]}
        pos += len(raw)
        chunks.append(raw)
    text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(chunks))


# --- torchao ---------------------------------------------------------------------------------
def parts(state):
    """What a quantised state keeps: codes (4 bits: unpacked), numbers, what they stand for."""
    codes = state.codes.view(__import__("torch").uint8).numpy().reshape(-1)
    if codes.size * 2 == state.numel():
        codes = np.stack([codes >> 4, codes & 15], -1).reshape(-1)
    return codes.copy(), state.scale.numpy().copy(), state.dequantize().float().numpy().reshape(-1).copy()


def record_torchao(directory):
    import torch
    import torchao.optim.adam as ao
    import torchao.optim.quant_utils as utils
    torch.set_num_threads(1)
    torch.compile = lambda f, **_: f
    torch.Tensor.sqrt = lambda x: torch.tensor(np.sqrt(x.numpy()))
    drawn = []

    def randint(*a, **k):
        drawn.append(real(*a, **k))
        return drawn[-1]
    real, torch.randint = torch.randint, randint
    ao._AdamBase._new_buffer = lambda self, p, signed: (
        torch.zeros_like(p) if isinstance(self, ao._AdamW) else self._subclass_zeros(p, signed, self.block_size))
    out, meta = {}, {"mpsim.recorder": "data/vectors/optim-states/record_states.py",
                     "mpsim.framework": "torchao 0.18.0, torch " + torch.__version__.split("+")[0]}
    cases = [("8bit", ao.AdamW8bit, "torchao-8bit", {}), ("4bit", ao.AdamW4bit, "torchao-4bit", {}),
             ("fp8", ao.AdamWFp8, "torchao-fp8", {}),
             ("8bit-adam", ao.Adam8bit, "torchao-8bit", dict(weight_decay=0.01)),
             ("8bit-sr", ao.AdamW8bit, "torchao-8bit", dict(bf16_stochastic_round=True)),
             ("fp8-sr", ao.AdamWFp8, "torchao-fp8", dict(bf16_stochastic_round=True)),
             ("fp8-bf16", ao.AdamWFp8, "torchao-fp8", {}),
             ("whole-sr", ao._AdamW, "none", dict(bf16_stochastic_round=True)),
             ("whole-amsgrad-sr", ao._AdamW, "none", dict(amsgrad=True, bf16_stochastic_round=True))]
    for name, make, states, more in cases:
        bf16 = "sr" in name or "bf16" in name
        dtype = torch.bfloat16 if bf16 else torch.float32
        p0, gs = inputs(bf16)
        p = torch.nn.Parameter(torch.from_numpy(p0.copy()).to(dtype))
        opt = make([p], lr=1e-2, betas=(0.9, 0.99), eps=1e-8, **more)
        given = dict(lr=1e-2, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=more.get("weight_decay", 0.01))
        meta[name] = " ".join([f"states={states}", f"optimizer={'adam' if 'adam' in name else 'adamw'}",
                               f"dtype={'bf16' if bf16 else 'f32'}", f"sr={int('sr' in name)}",
                                f"amsgrad={int('amsgrad' in name)}"] +
                              [f"{k}={v!r}" for k, v in given.items()])
        tag = "bf16" if bf16 else "f32"
        out[f"in-{tag}/p"] = p0
        for t, g in enumerate(gs, 1):
            out[f"in-{tag}/g.{t}"] = g
            p.grad = torch.from_numpy(g.copy()).to(dtype)
            torch.manual_seed(t)
            drawn.clear()
            opt.step()
            out[f"{name}/p.{t}"] = p.detach().float().numpy().copy()
            if "sr" in name:
                out[f"{name}/r.{t}"] = drawn[-1].numpy().astype(np.uint16)
            for key, letter in (("exp_avg", "m"), ("exp_avg_sq", "v"), ("max_exp_avg_sq", "x")):
                if key not in opt.state[p]:
                    continue
                if states == "none":
                    out[f"{name}/{letter}.{t}"] = opt.state[p][key].float().numpy().copy()
                    continue
                codes, scale, _ = parts(opt.state[p][key])
                out[f"{name}/{letter}.codes.{t}"] = codes
                out[f"{name}/{letter}.numbers.{t}"] = scale
    meta["in-f32"], meta["in-bf16"] = "input=1", "input=1"
    x = torch.from_numpy(edges())
    out["edges/x"] = x.numpy()
    meta["edges"] = "edges=1"
    for name, make in (("dynamic8", lambda: ao.OptimState8bit.zeros(x.shape, True)),
                       ("dynamic8-unsigned", lambda: ao.OptimState8bit.zeros(x.shape, False)),
                       ("dynamic4", lambda: ao.OptimState4bit.zeros(x.shape, True)),
                       ("linear4", lambda: ao.OptimState4bit.zeros(x.shape, False)),
                       ("e4m3_256", lambda: ao.OptimStateFp8.zeros(x.shape))):
        state = make()
        state.copy_(x)
        codes, scale, _ = parts(state)
        out[f"edges/{name}.codes"], out[f"edges/{name}.numbers"] = codes, scale
        if hasattr(state, "qmap"):
            out[f"edges/{name}.map"] = state.qmap.numpy()
    del utils
    save(f"{directory}/torchao.safetensors", out, meta)


# --- COAT and MS-AMP, as formulas ---------------------------------------------------------------
def fp8_codes(x, largest, mbits, emin):
    """Nearest even, saturating: values and codes of E4M3 or E5M2."""
    a = np.abs(x.astype(f64))
    e = np.maximum(np.floor(np.log2(np.where(a > 0, a, 1))), emin)
    ulp = 2.0 ** (e - mbits)
    q = np.minimum(np.rint(a / ulp) * ulp, largest)
    e = np.maximum(np.floor(np.log2(np.where(q > 0, q, 1))), emin)
    normal = q >= 2.0 ** emin
    code = np.where(normal, (e - emin + 1) * 2 ** mbits + (q / 2.0 ** e - 1) * 2 ** mbits,
                    q / 2.0 ** (emin - mbits))
    return np.copysign(q, x.astype(f64)), (code + 128 * np.signbit(x)).astype(np.uint16)


def power(x, y):
    with np.errstate(all="ignore"):
        return np.power(x.astype(f64), f64(y)).astype(f32)


def coat(x, largest, mbits, emin, steps=16):
    """One group: numbers [scale, k, sqrt(max min)], codes, values; binary32 but for powers and logarithms."""
    with np.errstate(all="ignore"):
        a = np.abs(x)
        most, least = f32(f64(a.max()) + 1e-20), f32(min(f64(a.min()), 1e9) + 1e-20)
        middle = np.sqrt(f32(most * least))
        span = f32(np.log2(f64(f32(most / least))))
        bound = f32(np.log2(f64(largest) ** 2 / 2))
        k = f32(np.floor(f32(f32(bound / span) * f32(steps))) / f32(steps))
        scale = f32(power(np.array([f32(most / middle)]), k)[0] / f32(largest))
        y = np.copysign(power(a / middle, k), x)
        q, codes = fp8_codes((y / scale).astype(f32), largest, mbits, emin)
        back = (q.astype(f32) * scale).astype(f32)
        values = (np.copysign(power(np.abs(back), f32(1) / k), back) * middle).astype(f32)
        return np.array([scale, k, middle], f32), codes, values


def record_model(directory):
    rng = np.random.default_rng(SEED + 2)
    out, meta = {}, {"mpsim.recorder": "data/vectors/optim-states/record_states.py",
                     "mpsim.framework": "NumPy formulas of COAT's kernel"}
    x = np.concatenate([rng.normal(size=128) * s * 10.0 ** rng.uniform(-d, 0, 128)
                        for s, d in ((1, 0), (1, 3), (1e-3, 1), (1e-3, 6), (1e-7, 12))] +
                       [rng.normal(size=100) ** 2 * 1e-9]).astype(f32)
    x[[5, 300]] = 0
    for name, largest, mbits, emin in (("coat-e4m3", 448, 3, -6), ("coat-e5m2", 57344, 2, -14)):
        groups = [coat(x[i:i + 128], largest, mbits, emin) for i in range(0, len(x), 128)]
        meta[name] = "model=coat"
        out[f"{name}/x"] = x
        for i, key in enumerate(("numbers", "codes", "values")):
            out[f"{name}/{key}"] = np.concatenate([g[i] for g in groups])
    save(f"{directory}/model.safetensors", out, meta)


if __name__ == "__main__" and sys.argv[1:2] == ["record"]:
    record_model(sys.argv[2])
    record_torchao(sys.argv[2])
