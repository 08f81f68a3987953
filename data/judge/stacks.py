# SPDX-License-Identifier: Apache-2.0
"""Published faults and sound stacks, played: inputs and results of one operation each.

    python3 stacks.py            write results of the sound stacks that need a package to recorded.npz

Every fault is an implementation of its own after the description in the thread that stacks.tsv names, with NumPy alone and
without mpsim; fault=False is the same without the fault. A function returns the arrays by their roles for
mpsim.testing.judge. Numbers that stand for codes are float32.
"""
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.npz"


def normal(seed, *shape, scale=1.0):
    """Normal numbers in binary32; RandomState's streams do not change between releases of NumPy."""
    return (np.random.RandomState(seed).standard_normal(shape) * scale).astype(np.float32)


def spread(seed, *shape, bits=4):
    """Normal numbers whose blocks of 16 have other magnitudes, as activations have."""
    x = normal(seed, *shape)
    power = np.random.RandomState(seed + 1).randint(-bits, bits + 1, (shape[0], -(-shape[1] // 16)))
    return np.ldexp(x, np.repeat(power, 16, axis=1)[:, :shape[1]]).astype(np.float32)


def nearest(x, significand, lowest, largest=np.inf):
    """x to nearest even, in binary64: `significand` bits behind the point, `lowest` exponent of normal numbers, saturating."""
    x = np.asarray(x, np.float64)
    exponent = np.maximum(np.frexp(x)[1] - 1, lowest)
    step = np.ldexp(1.0, exponent - significand)
    return np.clip(np.rint(x / step) * step, -largest, largest)


def bf16(x):
    return nearest(x, 7, -126).astype(np.float32)


def fp16(x):
    return np.asarray(x).astype(np.float16)


def e4m3(x):
    return nearest(x, 3, -6, 448)


def e2m1(x):
    return nearest(x, 1, 0, 6)


E4M3 = np.array([(m / 8 * 2.0**-6 if e == 0 else (1 + m / 8) * 2.0**(e - 7)) for e in range(16) for m in range(8)][:127])
E4M3FNUZ = np.array([(m / 8 * 2.0**-7 if e == 0 else (1 + m / 8) * 2.0**(e - 8)) for e in range(16) for m in range(8)])
E3M4 = np.array([(m / 16 * 2.0**-2 if e == 0 else (1 + m / 16) * 2.0**(e - 3)) for e in range(7) for m in range(16)])
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def codes(values, table, sign):
    """The codes of numbers that the table has."""
    found = np.searchsorted(table, np.abs(values))
    return (found | np.where(np.signbit(values), sign, 0)).astype(np.uint8)


def pairs(nibbles):
    return nibbles[:, 0::2] | nibbles[:, 1::2] << 4


def blocks(x, n):
    return np.asarray(x, np.float64).reshape(x.shape[0], -1, n)


def amax(x, n):
    return np.abs(blocks(x, n)).max(axis=2)


# faults: casts


def universal_bf16(fault=True):
    x = normal(1, 512, 512)
    cut = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return {"x": x, "y": cut if fault else bf16(x)}


def tt_metal_mx(fault=True):
    x = spread(2, 256, 512)
    y = codes(e4m3(x), E4M3, 0x80)
    if not fault:
        return {"x": x, "y": y}
    normal_number = (y & 0x78) != 0
    half = np.abs(np.rint(x.astype(np.float64) / 2 * 2**9)).astype(np.uint8)  # a binade too small
    return {"x": x, "y": np.where(normal_number, y & 0xFE, (y & 0x80) | half).astype(np.uint8)}


def sglang_early(fault=True):
    """Groups of 64 with scales of powers of two, rounded up, so that the largest element of a group is in (224, 448]."""
    x = bf16(normal(3, 256, 512))
    x = (blocks(x, 64) / np.exp2(np.ceil(np.log2(amax(x, 64) / 448)))[..., None]).reshape(x.shape).astype(np.float32)
    if not fault:
        return {"x": x, "y": codes(e4m3(x), E4M3, 0x80)}
    bits = x.view(np.uint32)
    exponent = ((bits >> 23) & 0xFF).astype(np.int32) - 127 + 7
    rounded = (exponent << 3) + (((bits >> 20) & 7) + ((bits >> 19) & 1)).astype(np.int32)
    small = np.floor(np.abs(x.astype(np.float64)) * 2**9 + 0.5).astype(np.int32)
    y = np.where(exponent >= 15, 0x7E, np.where(exponent <= 0, small, np.minimum(rounded, 0x7E)))
    return {"x": x, "y": (y | ((bits >> 31) << 7).astype(np.int32)).astype(np.uint8)}


def triton_ties(fault=True):
    """fp16 numbers below 448, where ties are frequent."""
    x = fp16(np.clip(normal(4, 256, 512) * 64, -440, 440))
    if not fault:
        return {"x": x, "y": codes(e4m3(x), E4M3, 0x80)}
    value = np.abs(x.astype(np.float64))
    exponent = np.where(value > 0, np.frexp(value)[1] - 1, -30)
    significand = np.floor(value / np.exp2(exponent - 3.0) + 0.5).astype(np.int64)  # 8 to 16; ties away
    significand = np.where(significand == 16, 8, significand)  # the carry is lost
    again = np.floor(significand * np.exp2(exponent - 3.0) * 2**9 + 0.5)  # subnormal: rounded once more
    y = np.where(exponent < -6, again * 2.0**-9, significand * np.exp2(exponent - 3.0))
    return {"x": x, "y": codes(np.copysign(y, x.astype(np.float64)), E4M3, 0x80)}


def hexagon_halves(fault=True):
    x = normal(5, 256, 1024)
    y = fp16(x).reshape(256, 16, 2, 32)
    return {"x": x, "y": np.ascontiguousarray(y[:, :, ::-1 if fault else 1]).reshape(x.shape)}


# faults: quantisers and checkpoints


def mxfp4(x, exponents):
    """Codes of e2m1, two in a byte, and E8M0 codes, for exponents of scales."""
    values = e2m1(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None])
    return values, (exponents + 127).astype(np.uint8)


def even(largest):
    """The exponent of the largest element, of 1.75 and more the next, less that of 4."""
    significand, exponent = np.frexp(largest)
    return exponent - 1 + (significand * 2 >= 1.75) - 2


def vllm_mxfp4_scale(fault=True):
    x = bf16(spread(6, 256, 512))
    sixth = (amax(x, 32).astype(np.float32) * np.float32(1 / 6)).astype(np.float32)
    values, scales = mxfp4(x, np.frexp(sixth)[1] - 1 if fault else even(amax(x, 32)))
    return {"x": x, "codes": pairs(codes(values.reshape(x.shape), E2M1, 8)), "scales": scales}


def flux_nibbles(fault=True):
    x = bf16(spread(7, 256, 512, bits=2))
    scale = e4m3(np.clip((amax(x, 16).astype(np.float32) / np.float32(6)), 2.0**-6, 448))
    quotient = blocks(x, 16).astype(np.float32) * (np.float32(1) / scale.astype(np.float32))[..., None]
    nibbles = codes(e2m1(quotient).reshape(x.shape), E2M1, 8)
    swapped = nibbles[:, 0::2] << 4 | nibbles[:, 1::2]
    return {"x": x, "codes": swapped if fault else pairs(nibbles), "scales": codes(scale, E4M3, 0x80)}


def swizzle(scales):
    """cuBLAS's order of the scales of tiles of 128 x 4."""
    rows, columns = scales.shape
    tiles = scales.reshape(rows // 128, 4, 32, columns // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).reshape(rows, columns)


def comfy_scales(fault=True):
    x = bf16(spread(8, 256, 2048))
    ratio = (amax(x, 32).astype(np.float32) * np.float32(1 / 448)).astype(np.float32)
    exponents = np.ceil(np.log2(ratio.astype(np.float64))).astype(int)
    values = e4m3(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None]).reshape(x.shape)
    scales = swizzle((exponents + 127).astype(np.uint8))
    return {"x": x, "codes": codes(values, E4M3, 0x80), "scales": swizzle(scales) if fault else scales}


def quark_e8m0(fault=True):
    """Blocks of magnitudes up to some thousand; the scale of a fifth of them is 128."""
    x = bf16(spread(9, 256, 512) * np.float32(32))
    exponents = even(amax(x, 32))
    values, _ = mxfp4(x, exponents)
    scale = np.where(fault & (exponents == 7), np.nan, np.exp2(exponents.astype(np.float64)))
    return {"x": x, "y": (values * scale[..., None]).reshape(x.shape).astype(np.float32)}


def te_fnuz_max(fault=True):
    x = bf16(normal(10, 512, 512, scale=0.02))
    scale = np.float32(448 if fault else 240) / np.abs(x).max()
    values = nearest(x * scale, 3, -7, 240)
    values = np.where(values == 0, 0.0, values)  # this format has no negative zero
    return {"x": x, "codes": codes(values, E4M3FNUZ, 0x80), "scales": np.array([[1 / scale]], np.float32)}


def ltx_no_scale(fault=True):
    x = bf16(normal(11, 512, 512, scale=0.035))
    scale = np.float32(448) / np.abs(x).max()
    y = e4m3(x * scale).astype(np.float32)
    return {"x": x, "y": y if fault else y * (1 / scale)}


# faults: products


def chain(a, b, keep=np.float32):
    """Sums in the order of the depth, one rounding for a product and an addition: binary64 has all bits of both here but in rare
    cases, which the test of this file counts."""
    total = np.zeros((a.shape[0], b.shape[1]), keep)
    for k in range(a.shape[1]):
        total = (total.astype(np.float64) + np.outer(a[:, k].astype(np.float64), b[k].astype(np.float64))).astype(keep)
    return total


def ort_zeros(fault=True):
    """Weights of 4 bits in blocks of 512, read as the numbers that they stand for."""
    a, integers = normal(12, 8, 2048), np.random.RandomState(13).randint(0, 16, (2048, 16))
    scales = np.random.RandomState(14).uniform(0.01, 0.1, (4, 16)).astype(np.float32)
    b = ((integers.reshape(4, 512, 16) - 8) * scales[:, None]).reshape(2048, 16).astype(np.float32)
    return {"a": a, "b": b, "d": np.zeros((8, 16), np.float32) if fault else chain(a, b)}


def vllm_tf32(fault=True):
    a, b = normal(15, 48, 256), normal(16, 256, 64, scale=0.05)
    operands = [nearest(x, 10, -126).astype(np.float32) for x in (a, b)] if fault else [a, b]
    return {"a": a, "b": b, "d": chain(*operands)}


def tilelang_tail(fault=True):
    a, b, depth = fp16(normal(17, 64, 24)), fp16(normal(18, 24, 64)), 16 if fault else 24
    return {"a": a, "b": b, "d": (a[:, :depth].astype(np.float64) @ b[:depth].astype(np.float64)).astype(np.float32)}


def mamba_rows(fault=True):
    a, b = normal(19, 1024, 256), normal(20, 256, 1)
    d, before = chain(a, b), normal(21, 1024, 1, scale=16)
    return {"a": a, "b": b, "d": np.where((np.arange(1024) % 16 < 8)[:, None] | (not fault), d, before)}


def tract_fp16(fault=True):
    a, b = fp16(normal(22, 32, 512)), fp16(normal(23, 512, 32, scale=0.05))
    return {"a": a, "b": b, "d": chain(a, b, np.float16 if fault else np.float32).astype(np.float16)}


# faults: sums, functions, updates


def running(x, keep):
    """Sums of rows, one element after the other, in a format."""
    total = np.zeros((x.shape[0], 1), keep)
    for k in range(x.shape[1]):
        total = (total + x[:, k:k + 1]).astype(keep)
    return total


def tract_sum(fault=True):
    x = fp16(np.abs(normal(24, 64, 4096)))
    x[:4] = 1
    return {"x": x, "y": running(x, np.float16 if fault else np.float32).astype(np.float16)}


def candle_softmax(fault=True):
    x = fp16(normal(25, 32, 4096))
    x[:2] = 0
    keep = np.float16 if fault else np.float32
    power = np.exp((x.astype(keep) - x.max(axis=1, keepdims=True).astype(keep)).astype(np.float64)).astype(keep)
    total = running(power, np.float16) if fault else power.astype(np.float64).sum(axis=1, keepdims=True).astype(np.float32)
    return {"x": x, "y": (power / total).astype(np.float16)}


def vllm_rmsnorm(fault=True):
    x, weight = bf16(normal(26, 64, 1024)), bf16(1 + normal(27, 1, 1024, scale=0.1))
    mean = (x * x).astype(np.float32).astype(np.float64).mean(axis=1, keepdims=True).astype(np.float32)
    inverse = (1 / np.sqrt(mean.astype(np.float64) + 1e-6)).astype(np.float32)
    normalised = (x * inverse).astype(np.float32)
    return {"x": x, "weight": weight, "y": bf16((normalised if fault else bf16(normalised)) * weight)}


def adam(param, grad, m, v, step, decoupled, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.1):
    f = np.float32
    if decoupled:
        param = param * f(1 - lr * decay)
    else:
        grad = grad + f(decay) * param
    m = m + f(1 - beta1) * (grad - m)
    v = v * f(beta2) + f(1 - beta2) * grad * grad
    denominator = np.sqrt(v) / f((1 - beta2**step) ** 0.5) + f(eps)
    return param + f(-lr / (1 - beta1**step)) * (m / denominator), m, v


def flaggems_adam(fault=True):
    param, grad, m = normal(28, 64, 256), normal(29, 64, 256, scale=0.1), normal(30, 64, 256, scale=0.1)
    v = np.abs(normal(31, 64, 256, scale=0.01))
    new = adam(param, grad, m, v, 5, decoupled=fault)
    return {"param": param, "grad": grad, "m": m, "v": v, "new_param": new[0], "new_m": new[1], "new_v": new[2]}


# faults that the authors of the judge had not seen when they were judged first


def tensorlib_e3m4(fault=True):
    """Codes of E3M4, which the file gives back as E4M3."""
    x = normal(61, 256, 256)
    y = codes(nearest(x, 4, -2, 15.5), E3M4, 0x80)
    table = E4M3 if fault else E3M4
    return {"x": x, "y": np.where(y & 0x80, -1, 1).astype(np.float32) * table[np.minimum(y & 0x7F, len(table) - 1)].astype(np.float32)}


def saturn_nan(fault=True):
    x = bf16(np.ldexp(spread(62, 256, 256), 6).astype(np.float32))
    y = codes(e4m3(x), E4M3, 0x80)
    return {"x": x, "y": np.where(fault & (np.abs(x) >= 512) & (np.abs(x) < 57344), y | 0x7F, y).astype(np.uint8)}


def tensorlib_fp16(fault=True):
    x = normal(63, 256, 512, scale=1e-4)
    return {"x": x, "y": np.where(fault & (np.abs(x) < 2.0**-14), np.copysign(np.float16(0), fp16(x)), fp16(x))}


def humming_scale(fault=True):
    x = bf16(spread(64, 256, 512))
    exact = np.log2((amax(x, 32).astype(np.float32) * np.float32(1 / 448)).astype(np.float64))
    exponents = (np.floor(exact) if fault else np.ceil(exact)).astype(int)
    values = e4m3(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None]).reshape(x.shape)
    return {"x": x, "codes": codes(values, E4M3, 0x80), "scales": (exponents + 127).astype(np.uint8)}


def omlx_bytes(fault=True):
    """E8M0 codes are multiplied as integers."""
    x = bf16(spread(65, 256, 512) * np.float32(0.02))
    exponents = np.frexp(amax(x, 32))[1] - 1 - 8
    values = e4m3(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None])
    scale = exponents + 127.0 if fault else np.exp2(exponents.astype(np.float64))
    return {"x": x, "y": (values * scale[..., None]).reshape(x.shape).astype(np.float32)}


def triton_columns(fault=True):
    a, b = bf16(normal(66, 32, 16)), bf16(normal(67, 16, 32))
    d = chain(a, b)
    return {"a": a, "b": b, "d": np.where(fault & (np.arange(32) % 4 == 3), np.float32(0), d)}


def rocjitsu_mixlo(fault=True):
    """bf16 numbers times scales in binary32, stored as bf16."""
    a, b = bf16(normal(68, 256, 1)), np.abs(normal(69, 1, 64))
    d = (a * b).astype(np.float32)
    cut = (d.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return {"a": a, "b": b, "d": cut if fault else bf16(d)}


def universal_saturates(fault=True):
    """The cast without saturation: 464 and less are 448, what is larger is NaN."""
    x = bf16(np.ldexp(spread(70, 256, 256), 5).astype(np.float32))
    x[::16, 0] = np.inf
    y = codes(e4m3(np.clip(x, -1e9, 1e9)), E4M3, 0x80)
    return {"x": x, "y": y if fault else np.where(np.abs(x) > 464, y | 0x7F, y).astype(np.uint8)}


def iron_rmsnorm(fault=True):
    x = bf16(normal(71, 64, 1024))
    mean = (x * x).astype(np.float32).astype(np.float64).mean(axis=1, keepdims=True).astype(np.float32)
    inverse = (1 / np.sqrt(mean.astype(np.float64) + 1e-5)).astype(np.float32)
    return {"x": x, "y": bf16(x * (bf16(inverse) if fault else inverse))}


def bitsandbytes_order(fault=True):
    """AdamW's decay of the parameter after the step instead of before."""
    param, grad, m = normal(72, 64, 256), normal(73, 64, 256, scale=0.1), normal(74, 64, 256, scale=0.1)
    v, rates = np.abs(normal(75, 64, 256, scale=0.01)), {"lr": 0.1, "decay": 0.1}
    if not fault:
        new = adam(param, grad, m, v, 5, decoupled=True, **rates)
    else:
        new = adam(param, grad, m, v, 5, decoupled=True, lr=0.1, decay=0.0)
        new = new[0] * np.float32(1 - 0.1 * 0.1), *new[1:]
    return {"param": param, "grad": grad, "m": m, "v": v, "new_param": new[0], "new_m": new[1], "new_v": new[2]}


# faults: twelve that were chosen later, and played before the judge had seen them


def power_scales(x, n, of=None):
    """Exponents of the least powers of two that bring blocks of n below 448; of: maxima in place of the blocks' own."""
    largest = amax(x, n) if of is None else of
    return np.ceil(np.log2(largest / 448)).astype(int)


def xpu_lanes(fault=True):
    """Lanes beyond a half of each group are no part of the maximum."""
    x = bf16(spread(81, 256, 512))
    exponents = power_scales(x, 32, np.abs(blocks(x, 32)[:, :, :16]).max(axis=2) if fault else None)
    values = e4m3(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None]).reshape(x.shape)
    return {"x": x, "codes": codes(values, E4M3, 0x80), "scales": (exponents + 127).astype(np.uint8)}


def sglang_multiplier(fault=True):
    """The multiplier 1 / scale is fp16: of blocks with scales below 2^-15 it is infinite."""
    x = fp16(normal(82, 256, 512) * np.repeat(np.exp2(-np.random.RandomState(83).randint(0, 16, (256, 16))), 32, axis=1))
    exponents = power_scales(x, 32)
    times = np.exp2(-exponents.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (blocks(x, 32) * (fp16(times) if fault else times).astype(np.float64)[..., None]).reshape(x.shape)
    y = codes(np.where(np.isnan(scaled), 0, e4m3(np.clip(scaled, -448, 448))), E4M3, 0x80)
    return {"x": x, "codes": np.where(np.isnan(scaled), 0x7F, y).astype(np.uint8), "scales": (exponents + 127).astype(np.uint8)}


def vllm_scatter(fault=True):
    """Scales lie column by column, and the kernel adds the column without its stride."""
    x = bf16(spread(84, 256, 512))
    exponents = power_scales(x, 32)
    values = e4m3(blocks(x, 32) * np.exp2(-exponents.astype(np.float64))[..., None]).reshape(x.shape)
    right = (exponents + 127).astype(np.uint8)
    row, column = np.indices(right.shape)
    return {"x": x, "codes": codes(values, E4M3, 0x80), "scales": right.T.ravel()[row + column] if fault else right}


def arch_int(fault=True):
    """Integers become bf16 by way of binary32."""
    r = np.random.RandomState(85)
    x = np.concatenate([r.randint(2**23, 2**31, 16384), r.randint(2**7, 2**8, 16384) * 2**23 + 2**22 + r.randint(-9, 10, 16384)])
    x = x.astype(np.float64).reshape(64, 512)
    return {"x": x, "y": bf16(x.astype(np.float32)) if fault else bf16(x)}


def pocket_gelu(fault=True):
    """The exact GELU in place of the one by tanh."""
    import math
    x = bf16(normal(86, 64, 512, scale=2))
    wide = x.astype(np.float64)
    exact = wide / 2 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
    by_tanh = wide / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    return {"x": x, "y": bf16((exact if fault else by_tanh).astype(np.float32))}


def tt_gelu_tail(fault=True):
    """GELU by tanh in binary32, in the form (x / 2) t + x / 2, which cancels for negative numbers."""
    x = bf16(np.random.RandomState(87).uniform(-12, 12, (64, 512)).astype(np.float32))
    wide = x.astype(np.float64)
    u = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    half = x / np.float32(2)
    cancelled = half * np.tanh(u).astype(np.float32) + half
    return {"x": x, "y": bf16(cancelled if fault else (wide / (1 + np.exp(-2 * u))).astype(np.float32))}


def tt_softmax_nan(fault=True):
    """Rows that should be NaN: uniform where all are -inf, else zeros."""
    x = normal(88, 64, 64)
    x[3], x[9, 5], x[17, 40], x[30] = -np.inf, np.inf, np.nan, np.nan
    with np.errstate(invalid="ignore"):
        power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        y = (power / power.sum(axis=1, keepdims=True)).astype(np.float32)
    if fault:
        y[3], y[[9, 17, 30]] = 1 / 64, 0
    return {"x": x, "y": y}


def lattice_nan(fault=True):
    """The maximum of a row drops NaN, and exp(NaN) is 0: the others share the row."""
    x = normal(89, 64, 64)
    x[np.arange(0, 64, 4), np.arange(16) * 3] = np.nan
    wide = x.astype(np.float64)
    if fault:
        wide = np.where(np.isnan(wide), -np.inf, wide)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    return {"x": x, "y": (power / power.sum(axis=1, keepdims=True)).astype(np.float32)}


def modular_split(fault=True):
    """Four parts of the depth, of which each sum is rounded to bf16 before they are added in bf16."""
    a, b = bf16(normal(90, 64, 512)), bf16(normal(91, 512, 32))
    if not fault:
        return {"a": a, "b": b, "d": bf16((a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))}
    parts = [bf16((a[:, k:k + 128].astype(np.float64) @ b[k:k + 128].astype(np.float64)).astype(np.float32)) for k in range(0, 512, 128)]
    d = parts[0]
    for part in parts[1:]:
        d = bf16(d + part)
    return {"a": a, "b": b, "d": d}


def xla_bias(fault=True):
    """A bias of the columns is added along the rows; small integers, so that sums are exact."""
    r = np.random.RandomState(92)
    a, b, bias = (r.randint(-8, 9, shape).astype(np.float32) for shape in ((16, 64), (64, 16), (1, 16)))
    return {"a": a, "b": b, "bias": bias, "d": a @ b + (bias.T if fault else bias)}


def nanochat_eps(fault=True):
    """eps is added to the root of v, and the bias correction comes behind it. Small gradients, of which eps is a part."""
    param, grad = normal(93, 64, 256), normal(94, 64, 256, scale=1e-7)
    m, v = normal(95, 64, 256, scale=1e-7), np.abs(normal(96, 64, 256, scale=1e-14))
    right = adam(param, grad, m, v, 5, decoupled=True)
    if fault:
        f, new_m, new_v = np.float32, right[1], right[2]
        step = f(1e-3 * (1 - 0.999**5) ** 0.5 / (1 - 0.9**5))
        right = param * f(1 - 1e-3 * 0.1) - step * (new_m / (np.sqrt(new_v) + f(1e-8))), new_m, new_v
    return {"param": param, "grad": grad, "m": m, "v": v, "new_param": right[0], "new_m": right[1], "new_v": right[2]}


def candle_mean(fault=True):
    """The sums of rows are narrowed to fp16 before they are divided: half of the rows overflow. Integers, so that sums are exact."""
    x = fp16(np.random.RandomState(97).randint(0, 33, (64, 4096)) + np.arange(64)[:, None] % 2 * 8 - 4)
    total = x.astype(np.float64).sum(axis=1, keepdims=True).astype(np.float32)
    with np.errstate(over="ignore"):
        mean = fp16(total).astype(np.float32) / np.float32(4096) if fault else total / np.float32(4096)
        return {"x": x, "y": fp16(mean)}


# faults: arithmetic


def numbers(bits):
    return np.array(bits, np.uint32).view(np.float32)


CANONICAL = 0x7FC00000


def quadrants_fma16(fault=True):
    """Exact in binary64; some products are halfway between two fp16 numbers, and the third number is too small for fp32."""
    a, b, c = (fp16(normal(s, 65536)) for s in (100, 101, 102))
    c[np.abs(c) < 2.0**-8], a[np.abs(a) < 2.0**-8], b[np.abs(b) < 2.0**-8] = 1, 1, 1
    r = np.random.RandomState(103)
    a[::8], b[::8] = r.randint(16, 32, (2, 8192)) * 2 + 1
    c[::8] = np.where(r.randint(0, 2, 8192), 2.0**-14, -2.0**-14)
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    return {"a": a, "b": b, "c": c, "y": fp16(exact.astype(np.float32) if fault else exact)}


def rvvm_sqrt(fault=True):
    """Minus zero counts as negative."""
    a = normal(103, 4096)
    a[::3], a[5::64], a[6::64] = np.abs(a[::3]), -0.0, 0.0
    with np.errstate(invalid="ignore"):
        y = np.sqrt(a)
    y[np.isnan(y)] = numbers([CANONICAL])
    if fault:
        y[(a == 0) & np.signbit(a)] = numbers([CANONICAL])
    return {"a": a, "y": y}


def rvvm_fma_nan(fault=True):
    """NaN of no operand is all ones, that of a signalling NaN keeps its payload; both should be canonical. Sums are exact in binary64."""
    a, b, c = (bf16(normal(s, 4096)) for s in (104, 105, 106))
    a[0::32], b[0::32] = 0, np.inf
    a[1::32], b[1::32], c[1::32] = 1, np.inf, -np.inf
    for k, x in enumerate((a, b, c)):
        x.view(np.uint32)[2 + k::32] = 0x7FA00000
    with np.errstate(invalid="ignore"):
        y = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)
    bits = y.view(np.uint32)
    bits[np.isnan(y)] = CANONICAL
    if fault:
        bits[0::32], bits[1::32] = 0xFFFFFFFF, 0xFFFFFFFF
        for k in range(3):
            bits[2 + k::32] = 0x7FE00000
    return {"a": a, "b": b, "c": c, "y": y}


def xla_div(fault=True):
    a, b = normal(107, 16384), normal(108, 16384)
    a[::4] = b[::4]
    return {"a": a, "b": b, "y": a * (np.float32(1) / b) if fault else a / b}


def jax_sqrt_daz(fault=True):
    a = np.abs(np.ldexp(normal(109, 4096), -(np.arange(4096) % 150))).astype(np.float32)
    tiny = a < np.finfo(np.float32).tiny
    return {"a": a, "y": np.sqrt(np.where(tiny & fault, np.float32(0), a))}


# faults: attention; heads x tokens x size


def attend(q, k, v, seen=None, scale=None):
    """In binary64, and rounded once; keys of which nothing is to be seen have False in `seen`. Also log(sum(exp(scores)))."""
    s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * (q.shape[-1]**-0.5 if scale is None else scale)
    s = s if seen is None else np.where(seen, s, -np.inf)
    top = s.max(axis=-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(axis=-1, keepdims=True)
    return p / total @ v.astype(np.float64), np.log(total) + top


def heads(seed, count, tokens, size=16):
    return normal(seed, count, tokens, size)


def jaxjs_gqa(fault=True):
    """8 heads of queries, 2 of keys: head h should have the keys of h // 4, and has those of h % 2."""
    q, k, v = heads(110, 8, 32), heads(111, 2, 48), heads(112, 2, 48)
    whose = np.arange(8) % 2 if fault else np.arange(8) // 4
    return {"q": q, "k": k, "v": v, "o": attend(q, k[whose], v[whose])[0].astype(np.float32)}


def executorch_causal(fault=True):
    """Fewer queries than keys: the last query belongs to the last key instead of the first to the first."""
    q, k, v = heads(113, 2, 12), heads(114, 2, 40), heads(115, 2, 40)
    seen = np.tri(12, 40, 28 if fault else 0, dtype=bool)
    return {"q": q, "k": k, "v": v, "o": attend(q, k, v, seen)[0].astype(np.float32)}


def mlc_scale(fault=True):
    q, k, v = heads(116, 2, 48, 64), heads(117, 2, 48, 64), heads(118, 2, 48, 64)
    return {"q": q, "k": k, "v": v, "o": attend(q, k, v, scale=1.0 if fault else None)[0].astype(np.float32)}


def flashinfer_tail(fault=True):
    """The last of the tiles of 64 keys is filled with zeros, whose scores are 0 and whose probabilities are not."""
    q, k, v = heads(119, 2, 32), heads(120, 2, 200), heads(121, 2, 200)
    filled = [np.pad(x, ((0, 0), (0, 56), (0, 0))) for x in (k, v)] if fault else [k, v]
    return {"q": q, "k": k, "v": v, "o": attend(q, *filled)[0].astype(np.float32)}


def sglang_lse(fault=True):
    """Keys of a prefix and of the queries' own chunk apart, merged by exp of logarithms of base 2."""
    q, k, v = heads(122, 2, 32), heads(123, 2, 128), heads(124, 2, 128)
    (o1, l1), (o2, l2) = attend(q, k[:, :96], v[:, :96]), attend(q, k[:, 96:], v[:, 96:], np.tri(32, dtype=bool))
    base = np.log(2) if fault else 1.0
    w1 = 1 / (1 + np.exp((l2 - l1) / base))
    return {"q": q, "k": k, "v": v, "o": (w1 * o1 + (1 - w1) * o2).astype(np.float32)}

# faults: attention with a soft cap, a bias, slopes, sinks, a window


def attend_more(q, k, v, seen=None, cap=0.0, bias=0.0, slopes=None, sinks=None):
    """In binary64: scale, cap, bias, slopes, mask; sinks are scores without values. Also log(sum(exp(scores)))."""
    queries, keys = q.shape[-2], k.shape[-2]
    s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * q.shape[-1]**-0.5
    s = cap * np.tanh(s / cap) if cap else s
    distance = np.abs(np.arange(keys) - (np.arange(queries)[:, None] + keys - queries))
    s = s + bias - (0 if slopes is None else np.reshape(slopes, (-1, 1, 1)).astype(np.float64) * distance)
    s = s if seen is None else np.where(seen, s, -np.inf)
    sink = np.full(s.shape[:2], -np.inf) if sinks is None else np.broadcast_to(np.asarray(sinks, np.float64), s.shape[:2])
    top = np.maximum(s.max(axis=-1), sink)
    p = np.exp(s - top[..., None])
    total = p.sum(axis=-1) + np.exp(sink - top)
    return p / total[..., None] @ v.astype(np.float64), np.log(total) + top


def banded(queries, keys, window):
    """Causal: a query sees its own key and window - 1 before it."""
    distance = np.arange(queries)[:, None] + keys - queries - np.arange(keys)
    return (distance >= 0) & (distance < window)


def imp_softcap(fault=True):
    """A path that keeps scores in fp32 leaves the cap out. Scores are of the size of the cap."""
    q, k, v = heads(170, 4, 48, 32) * np.float32(5), heads(171, 4, 48, 32) * np.float32(5), heads(172, 4, 48, 32)
    o, _ = attend_more(q, k, v, np.tri(48, dtype=bool), cap=0.0 if fault else 50.0)
    return {"q": q, "k": k, "v": v, "o": o.astype(np.float32)}


def emx_softcap(fault=True):
    """The cap is applied to scores with the mask: masked ones become -cap instead of -infinity."""
    q, k, v = heads(173, 2, 32, 32), heads(174, 2, 40, 32), heads(175, 2, 40, 32)
    seen = np.random.RandomState(176).rand(32, 40) < 0.7
    if not fault:
        o = attend_more(q, k, v, seen, cap=3.0)[0]
    else:
        s = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * 32**-0.5
        p = np.exp(3.0 * np.tanh(np.where(seen, s, -np.inf) / 3.0))
        o = p / p.sum(axis=-1, keepdims=True) @ v.astype(np.float64)
    return {"q": q, "k": k, "v": v, "mask": seen.astype(np.uint8), "o": o.astype(np.float32)}


def modular_sink(fault=True):
    """The sink of a row is that of head `row % heads`, where rows are queries of all heads."""
    q, k, v = heads(177, 4, 30), heads(178, 2, 48), heads(179, 2, 48)
    sinks = np.float32([1.5, -0.5, 3, 0.25])
    rows = sinks[np.arange(4 * 30).reshape(4, 30) % 4] if fault else sinks[:, None]
    whose = np.arange(4) // 2
    return {"q": q, "k": k, "v": v, "sinks": sinks, "o": attend_more(q, k[whose], v[whose], sinks=rows)[0].astype(np.float32)}


def rocm_sink(fault=True):
    """Two parts of the keys, merged by their sums: the sink is in both."""
    q, k, v = heads(180, 4, 32), heads(181, 4, 64), heads(182, 4, 64)
    sinks = np.float32([2, 1, -1, 0.5])
    o1, l1 = attend_more(q, k[:, :32], v[:, :32], sinks=sinks[:, None])
    o2, l2 = attend_more(q, k[:, 32:], v[:, 32:], sinks=sinks[:, None] if fault else None)
    w1 = 1 / (1 + np.exp(l2 - l1))[..., None]
    return {"q": q, "k": k, "v": v, "sinks": sinks, "o": (w1 * o1 + (1 - w1) * o2).astype(np.float32)}


def aprender_alibi(fault=True):
    """Slopes are 2^(-8 h / n), not 2^(-8 (h + 1) / n)."""
    q, k, v = heads(183, 8, 40), heads(184, 8, 40), heads(185, 8, 40)
    slopes = np.exp2(-8 * (np.arange(8) + 1) / 8).astype(np.float32)
    o, _ = attend_more(q, k, v, np.tri(40, dtype=bool), slopes=2 * slopes if fault else slopes)
    return {"q": q, "k": k, "v": v, "slopes": slopes, "o": o.astype(np.float32)}


def tokenspeed_lse(fault=True):
    """The logarithm of the sum is to base 2."""
    q, k, v = heads(186, 4, 40, 32), heads(187, 4, 40, 32), heads(188, 4, 40, 32)
    o, lse = attend_more(q, k, v, np.tri(40, dtype=bool))
    return {"q": q, "k": k, "v": v, "o": o.astype(np.float32), "lse": (lse / np.log(2) if fault else lse).astype(np.float32)}


def zml_window(fault=True):
    """The window of 16 keys does not count a query's own key."""
    q, k, v = heads(189, 2, 64, 32), heads(190, 2, 64, 32), heads(191, 2, 64, 32)
    return {"q": q, "k": k, "v": v, "o": attend_more(q, k, v, banded(64, 64, 17 if fault else 16))[0].astype(np.float32)}


def tt_bias(fault=True):
    """The bias is added before the scores are scaled."""
    q, k, v, bias = heads(192, 2, 32, 64), heads(193, 2, 48, 64), heads(194, 2, 48, 64), normal(195, 2, 32, 48, scale=3.0)
    o, _ = attend_more(q, k, v, bias=bias.astype(np.float64) * (64**-0.5 if fault else 1))
    return {"q": q, "k": k, "v": v, "bias": bias, "o": o.astype(np.float32)}



# faults: products of block-scaled operands; b is columns x depth


def grid(scales, down, right, shape):
    """A scale for each element, of blocks of down x right."""
    return np.repeat(np.repeat(np.asarray(scales, np.float64), down, 0), right, 1)[:shape[0], :shape[1]]


def scaled(a, b, by_a, by_b):
    return ((a * by_a) @ (b * by_b).T).astype(np.float32)


def fp8(seed, rows, depth, scale=64.0):
    return e4m3(normal(seed, rows, depth, scale=scale)).astype(np.float32)


def scales_of(seed, *shape):
    return np.exp(normal(seed, *shape)).astype(np.float32)


def fbgemm_tail(fault=True):
    """A depth of 192 in steps of 64, scales of blocks of 128: the scales of the last, incomplete block are not applied."""
    a, b = fp8(125, 128, 192), fp8(126, 256, 192)
    scale_a, scale_b = scales_of(127, 1, 2), scales_of(128, 2, 2)
    by_a, by_b = grid(scale_a, 128, 128, a.shape), grid(scale_b, 128, 128, b.shape)
    if fault:
        by_a[:, 128:], by_b[:, 128:] = 1, 1
    return {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "d": scaled(a, b, by_a, by_b)}


def cutlass_waves(fault=True):
    """Scales of 128 x 128 and 64 x 128; rows from 128 on are also multiplied by the scales of A of the rows before."""
    a, b = fp8(129, 256, 256), fp8(130, 128, 256)
    scale_a, scale_b = scales_of(131, 2, 2), scales_of(132, 2, 2)
    by_a = grid(scale_a, 128, 128, a.shape)
    if fault:
        by_a[128:] *= by_a[:128].copy()
    return {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "d": scaled(a, b, by_a, grid(scale_b, 64, 128, b.shape))}


def triton_e8m0(fault=True):
    """The byte 0 of E8M0 is read as zero instead of 2^-127. Every other column has no other scale."""
    a, b = fp8(133, 32, 128), fp8(134, 48, 128)
    scale_a = np.full((32, 4), 240, np.uint8)
    scale_b = np.random.RandomState(135).randint(1, 5, (48, 4)).astype(np.uint8)
    scale_b[::2] = 0
    by = [np.exp2(x.astype(np.float64) - 127) for x in (scale_a, scale_b)]
    if fault:
        by[1][scale_b == 0] = 0
    return {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "d": scaled(a, b, grid(by[0], 1, 32, a.shape), grid(by[1], 1, 32, b.shape))}


def comfy_swizzle(fault=True):
    """Scales in cuBLAS's order are read row by row."""
    a, b = fp8(136, 128, 256), fp8(137, 128, 256)
    scale_a, scale_b = (np.random.RandomState(s).randint(117, 126, (128, 8)).astype(np.uint8) for s in (138, 139))
    given = {"a": a, "b": b, "scale_a": swizzle(scale_a), "scale_b": swizzle(scale_b)}
    by = (given["scale_a"], given["scale_b"]) if fault else (scale_a, scale_b)
    return {**given, "d": scaled(a, b, *(grid(np.exp2(x.astype(np.float64) - 127), 1, 32, a.shape) for x in by))}


def te_alpha(fault=True):
    """NVFP4, of which the scales of whole tensors are left out."""
    values = [e2m1(normal(s, 64, 128, scale=2.5)) for s in (140, 141)]
    scales = [e4m3(np.abs(normal(s, 64, 8, scale=64)) + 1) for s in (142, 143)]
    tensor = np.float32([[0.0123]]), np.float32([[0.00456]])
    d = scaled(*values, *(grid(x, 1, 16, (64, 128)) for x in scales)).astype(np.float64)
    a, b = (pairs(codes(x, E2M1, 8)) for x in values)
    scale_a, scale_b = (codes(x, E4M3, 0x80) for x in scales)
    d = d if fault else d * tensor[0].astype(np.float64) * tensor[1].astype(np.float64)
    return {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "tensor_a": tensor[0], "tensor_b": tensor[1], "d": d.astype(np.float32)}


# sound stacks: the package where it is there, else what recorded.npz has of it


def recorded(name):
    with np.load(RECORDED) as f:
        return {key.split(".", 1)[1]: f[key] for key in f.files if key.split(".", 1)[0] == name}


def torch_bf16(live=False):
    x = spread(41, 32, 256)
    if not live:
        return {"x": x, **recorded("torch-bf16")}
    import torch
    return {"x": x, "y": torch.from_numpy(x).bfloat16().float().numpy()}


def ml_dtypes_e5m2(live=False):
    x = np.ldexp(spread(42, 32, 256), 8).astype(np.float32)
    if not live:
        return {"x": x, **recorded("ml-dtypes-e5m2")}
    import ml_dtypes
    return {"x": x, "y": x.astype(ml_dtypes.float8_e5m2).astype(np.float32)}


def numpy_fp16(live=True):
    x = np.ldexp(spread(43, 256, 512), 10).astype(np.float32)
    with np.errstate(over="ignore"):
        return {"x": x, "y": x.astype(np.float16)}


def torchao_mxfp8(live=False):
    x = bf16(spread(44, 64, 256))
    if not live:
        return {"x": x, **recorded("torchao-mxfp8")}
    import torch
    from torchao.prototype.mx_formats.config import ScaleCalculationMode
    from torchao.prototype.mx_formats.mx_tensor import to_mx
    scales, values = to_mx(torch.from_numpy(x).bfloat16(), torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)
    return {"x": x, "codes": values.view(torch.uint8).numpy(), "scales": scales.view(torch.uint8).numpy()}


def torchao_nvfp4(live=False):
    x = bf16(spread(45, 64, 256))
    if not live:
        return {"x": x, **recorded("torchao-nvfp4")}
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale
    t = torch.from_numpy(x).bfloat16()
    scales, values = nvfp4_quantize(t, 16, per_tensor_amax_to_scale(t.float().abs().max()))
    return {"x": x, "codes": values.view(torch.uint8).numpy(), "scales": scales.view(torch.uint8).numpy()}


def gguf_mxfp4(live=False):
    """A block of 17 bytes: the scale, then 16 bytes with element i and element i + 16."""
    x = spread(46, 32, 256)
    if not live:
        return {"x": x, **recorded("gguf-mxfp4")}
    import gguf
    packed = gguf.quants.quantize(x, gguf.GGMLQuantizationType.MXFP4)
    return {"x": x, "y": gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.MXFP4).reshape(x.shape)}


def torch_bf16_mm(live=False):
    a, b = bf16(normal(47, 32, 192)), bf16(normal(48, 192, 32))
    if not live:
        return {"a": a, "b": b, **recorded("torch-bf16-mm")}
    import torch
    product = torch.from_numpy(a).bfloat16() @ torch.from_numpy(b).bfloat16()
    return {"a": a, "b": b, "d": product.float().numpy()}


def torch_sum(live=False):
    x = normal(49, 64, 1000)
    if not live:
        return {"x": x, **recorded("torch-sum")}
    import torch
    return {"x": x, "y": torch.from_numpy(x).sum(dim=1, keepdim=True).numpy()}


def torch_softmax(live=False):
    x = normal(50, 16, 512)
    if not live:
        return {"x": x, **recorded("torch-softmax")}
    import torch
    return {"x": x, "y": torch.softmax(torch.from_numpy(x), 1).numpy()}


def torch_adamw(live=False):
    param, grad = normal(51, 16, 128), normal(52, 16, 128, scale=0.1)
    m, v = normal(53, 16, 128, scale=0.1), np.abs(normal(54, 16, 128, scale=0.01))
    given = {"param": param, "grad": grad, "m": m, "v": v}
    if not live:
        return {**given, **recorded("torch-adamw")}
    import torch
    p = torch.nn.Parameter(torch.from_numpy(param.copy()))
    p.grad = torch.from_numpy(grad.copy())
    optimizer = torch.optim.AdamW([p], lr=1e-3, weight_decay=0.1, foreach=False)
    optimizer.state[p] = {"step": torch.tensor(4.0), "exp_avg": torch.from_numpy(m.copy()), "exp_avg_sq": torch.from_numpy(v.copy())}
    optimizer.step()
    state = optimizer.state[p]
    return {**given, "new_param": p.detach().numpy(), "new_m": state["exp_avg"].numpy(), "new_v": state["exp_avg_sq"].numpy()}


def numpy_div(live=True):
    a, b = np.ldexp(normal(150, 65536), 8).astype(np.float32), normal(151, 65536)
    return {"a": a, "b": b, "y": a / b}


def numpy_mul16(live=True):
    """Results of all kinds: overflow, subnormal numbers, NaN."""
    a, b = (fp16(np.ldexp(normal(s, 65536), np.arange(65536) * k % 23 - 12)) for s, k in ((152, 1), (153, 7)))
    a[::100], b[::300], b[7::100] = np.inf, 0, np.nan
    with np.errstate(over="ignore", invalid="ignore"):
        return {"a": a, "b": b, "y": a * b}


def torch_sdpa(live=False):
    """bf16 in PyTorch's math backend: scores and probabilities are tensors."""
    q, k, v = (bf16(normal(s, 1, 4, 64, 32)) for s in (154, 155, 156))
    if not live:
        return {"q": q, "k": k, "v": v, **recorded("torch-sdpa")}
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    with sdpa_kernel(SDPBackend.MATH):
        o = torch.nn.functional.scaled_dot_product_attention(*(torch.from_numpy(x).bfloat16() for x in (q, k, v)), is_causal=True)
    return {"q": q, "k": k, "v": v, "o": o.float().numpy()}


def torch_scaled_mm(live=False):
    a, b = fp8(157, 32, 64, 1.0), fp8(158, 48, 64, 1.0)
    given = {"a": a, "b": b, "scale_a": np.float32([[0.3]]), "scale_b": np.float32([[1.7]])}
    if not live:
        return {**given, **recorded("torch-scaled-mm")}
    import torch
    a, b = (torch.from_numpy(x).to(torch.float8_e4m3fn) for x in (a, b))
    d = torch._scaled_mm(a, b.t(), scale_a=torch.tensor(0.3), scale_b=torch.tensor(1.7), out_dtype=torch.bfloat16)
    return {**given, "d": d.float().numpy()}


def numpy_flash(live=True):
    """Tiles of 32 keys, an online softmax in fp32."""
    q, k, v = heads(159, 2, 40, 32), heads(160, 2, 100, 32), heads(161, 2, 100, 32)
    f = np.float32
    top, total, o = np.full((2, 40, 1), -np.inf, f), np.zeros((2, 40, 1), f), np.zeros_like(q)
    for start in range(0, 100, 32):
        s = q @ k[:, start:start + 32].transpose(0, 2, 1) * f(32**-0.5)
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        p, again = np.exp(s - new), np.exp(top - new)
        total = total * again + p.sum(axis=-1, keepdims=True)
        o, top = o * again + p @ v[:, start:start + 32], new
    return {"q": q, "k": k, "v": v, "o": o / total}


def numpy_sinks(live=True):
    """Tiles of 32 keys in fp32, a window, sinks that begin the maximum and the sum, logarithms of sums."""
    q, k, v = heads(196, 4, 40, 32), heads(197, 2, 100, 32), heads(198, 2, 100, 32)
    f, whose, sinks = np.float32, np.arange(4) // 2, np.float32([1, -1, 0.5, 3])
    seen = banded(40, 100, 50)
    top, o = np.broadcast_to(sinks[:, None, None], (4, 40, 1)).astype(f), np.zeros_like(q)
    total = np.ones_like(top)
    for at in range(0, 100, 32):
        s = np.where(seen[:, at:at + 32], q @ k[whose, at:at + 32].transpose(0, 2, 1) * f(32**-0.5), f(-np.inf))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        p, again = np.exp(s - new), np.exp(top - new)
        total = total * again + p.sum(axis=-1, keepdims=True)
        o, top = o * again + p @ v[whose, at:at + 32], new
    return {"q": q, "k": k, "v": v, "sinks": sinks, "o": o / total, "lse": (top + np.log(total))[..., 0]}


def numpy_capped(live=True):
    """Eager, in bf16 between the operations: scale, cap, slopes, causal mask."""
    q, k, v = (bf16(heads(s, 4, 48, 32) * np.float32(2)) for s in (199, 200, 201))
    slopes = np.float32([0.5, 0.25, 0.125, 0.0625])
    s = bf16(bf16(q @ k.transpose(0, 2, 1)) * np.float32(32**-0.5))
    s = bf16(bf16(np.tanh(bf16(s / np.float32(20)))) * np.float32(20))
    s = bf16(s - slopes[:, None, None] * np.abs(np.arange(48) - np.arange(48)[:, None]).astype(np.float32))
    s = np.where(np.tri(48, dtype=bool), s, np.float32(-np.inf))
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p = bf16(p / p.sum(axis=-1, keepdims=True))
    return {"q": q, "k": k, "v": v, "slopes": slopes, "o": bf16(p @ v)}


def table():
    """The rows of stacks.tsv as dictionaries."""
    lines = (HERE / "stacks.tsv").read_text().splitlines()
    return [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:]]


def play(name, live=False, fault=True):
    """The arrays of a stack by their roles. live: by the package of a sound stack; fault=False: a fault's stack without it."""
    function = globals()[name.replace("-", "_")]
    return function(live=True) if live else function() if fault else function(fault=False)


def record():
    """Results of the packages into recorded.npz; inputs come from their seeds."""
    results = {}
    for row in table():
        if row["cause"] == "none" and not row["name"].startswith("numpy-"):
            given = play(row["name"], live=True)
            results |= {f"{row['name']}.{role}": array for role, array in given.items()
                        if role in ("y", "codes", "scales", "d", "o") or role.startswith("new_")}
    np.savez_compressed(RECORDED, **results)


if __name__ == "__main__":
    record()
    sys.exit(0)
