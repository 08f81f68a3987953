"""Casts beside ml_dtypes, torch and gfloat: every code of small formats both ways, and random values in each rounding.

What was compared is counted and printed at the end of a run, 10^6 values a format and rounding with PEERS=1. What another
library does otherwise is said where it is asked: nothing else is left out.
"""
import numpy as np
import pytest
from conftest import counted, peer, same_numbers

import mpsim

ML_DTYPES = [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("e4m3ieee", "float8_e4m3"), ("e3m4", "float8_e3m4"),
             ("e4m3fnuz", "float8_e4m3fnuz"), ("e5m2fnuz", "float8_e5m2fnuz"), ("e4m3b11fnuz", "float8_e4m3b11fnuz"),
             ("e8m0", "float8_e8m0fnu"), ("bf16", "bfloat16"), ("e2m1", "float4_e2m1fn"), ("e3m2", "float6_e3m2fn"),
             ("e2m3", "float6_e2m3fn")]
TORCH = [("e4m3", "float8_e4m3fn"), ("e5m2", "float8_e5m2"), ("e4m3fnuz", "float8_e4m3fnuz"),
         ("e5m2fnuz", "float8_e5m2fnuz"), ("e8m0", "float8_e8m0fnu"), ("bf16", "bfloat16"), ("fp16", "float16")]
GFLOAT = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e8m0", "bf16", "fp16", *(n for n in mpsim.formats if n.startswith("binary8p"))]
P3109_NARROW = ["binary4p2se", "binary4p2sf", "binary4p3uf", "binary6p1se", "binary6p3sf", "binary6p4ue"]
GFLOAT_NAMES = {"bf16": "bfloat16", "fp16": "binary16"}
MODES = {"nearest-even": "TiesToEven", "nearest-away": "TiesToAway", "toward-zero": "TowardZero", "up": "TowardPositive",
         "down": "TowardNegative", "stochastic-a:8": "StochasticFastest", "stochastic-b:8": "StochasticFast",
         "stochastic-c:8": "Stochastic", "stochastic-a:2": "StochasticFastest", "stochastic-b:2": "StochasticFast",
         "stochastic-c:2": "Stochastic"}


def dtype_of(module, name):
    found = getattr(module, name, None)
    if found is None:
        pytest.skip(f"this {module.__name__} has no {name}")
    return found


def wide_of(floats):
    """Binary64 numbers that are none of binary32, many of them beside the middle of two."""
    with np.errstate(all="ignore"):
        return floats.astype(np.float64) * (1 + 2.0**-40)


# ---- ml_dtypes ----

@pytest.mark.parametrize("name, dtype", ML_DTYPES)
def test_every_code_of_ml_dtypes(name, dtype):
    """The value of each code, and the code of each value."""
    dtype = dtype_of(peer("ml_dtypes"), dtype)
    f = mpsim.formats[name]
    theirs = f.codes.view(dtype)
    assert same_numbers(f.values, theirs.astype(np.float32))
    assert same_numbers(mpsim.decode(theirs), f.values)
    numbers = ~np.isnan(f.values)
    assert np.array_equal(mpsim.encode(f.values, name)[numbers], f.codes[numbers])
    back = f.values.astype(dtype).view(f.code_dtype)
    assert np.array_equal(back[numbers], f.codes[numbers])
    assert np.isnan(f.values).any() == f.has_nan
    counted("ml_dtypes", "codes", f.codes.size)


@pytest.mark.parametrize("name, dtype", ML_DTYPES)
def test_random_values_of_ml_dtypes(name, dtype, floats):
    """Of binary32 and binary64, which ml_dtypes takes to binary32 first; codes, NaN's too."""
    dtype = dtype_of(peer("ml_dtypes"), dtype)
    codes = mpsim.formats[name].code_dtype
    for x in (floats, wide_of(floats)):
        with np.errstate(all="ignore"):
            theirs = x.astype(dtype)
        assert np.array_equal(mpsim.encode(x, name, preset="ml-dtypes"), theirs.view(codes))
        assert same_numbers(mpsim.round(x, name, preset="ml-dtypes"), theirs.astype(np.float32))
        counted("ml_dtypes", "random values", x.size)


@pytest.mark.parametrize("name, dtype", ML_DTYPES)
def test_narrow_sources_of_ml_dtypes(name, dtype):
    """All numbers of fp16 and bf16; to most formats by binary32, as from it."""
    ml_dtypes = peer("ml_dtypes")
    dtype = dtype_of(ml_dtypes, dtype)
    for source in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        if name == "bf16" and source == dtype:
            continue
        x = np.arange(1 << 16, dtype=np.uint16).view(source)
        with np.errstate(all="ignore"):
            theirs = x.astype(dtype)
        assert np.array_equal(mpsim.encode(x, name, preset="ml-dtypes"), theirs.view(mpsim.formats[name].code_dtype)), source
        counted("ml_dtypes", "values of fp16 and bf16", x.size)


# ---- torch ----

@pytest.mark.parametrize("name, dtype", TORCH)
def test_every_code_of_torch(name, dtype):
    torch = peer("torch")
    dtype = dtype_of(torch, dtype)
    f = mpsim.formats[name]
    codes = torch.from_numpy(f.codes.view(f"i{f.code_dtype.itemsize}" if f.bits > 8 else np.uint8))
    theirs = codes.view(dtype)
    assert same_numbers(f.values, theirs.float().numpy())
    assert same_numbers(mpsim.decode(theirs).float().numpy(), f.values)
    numbers = ~np.isnan(f.values)
    back = torch.from_numpy(f.values).to(dtype).view(codes.dtype).numpy().view(f.code_dtype)
    assert np.array_equal(back[numbers], f.codes[numbers])
    counted("torch", "codes", f.codes.size)


@pytest.mark.parametrize("name, dtype", TORCH)
def test_random_values_of_torch(name, dtype, floats):
    torch = peer("torch")
    dtype = dtype_of(torch, dtype)
    for x in (torch.from_numpy(floats), torch.from_numpy(wide_of(floats))):
        theirs = x.to(dtype)
        ours = mpsim.round(x, name, preset="pytorch")
        assert isinstance(ours, torch.Tensor) and ours.dtype == x.dtype
        assert same_numbers(ours.numpy(), theirs.to(x.dtype).numpy())
        assert same_numbers(mpsim.decode(theirs).float().numpy(), theirs.float().numpy())
        counted("torch", "random values", x.numel())


# ---- gfloat ----

def gfloat_of(name):
    """gfloat's description of a format."""
    gfloat, formats = peer("gfloat"), peer("gfloat.formats")
    if name.startswith("binary") and "p" in name:
        bits, rest = name[len("binary"):].split("p")
        types = peer("gfloat.types")
        return formats.format_info_p3109(int(bits), int(rest[:-2]),
                                         types.Signedness.Signed if rest[-2] == "s" else types.Signedness.Unsigned,
                                         types.Domain.Extended if rest[-1] == "e" else types.Domain.Finite), gfloat
    return getattr(formats, "format_info_" + GFLOAT_NAMES.get(name, "ocp_" + name)), gfloat


def philox(seed, stream, n):
    """The random word of each of n elements, from the paper (Salmon and others, SC 2011): Philox4x32-10."""
    block = np.arange(-(-n // 4), dtype=np.uint64)
    low = np.uint64(0xffffffff)
    counter = [block & low, block >> np.uint64(32), np.full_like(block, stream & 0xffffffff), np.full_like(block, stream >> 32)]
    key = [seed & 0xffffffff, seed >> 32]
    for _ in range(10):
        products = [counter[0] * np.uint64(0xd2511f53), counter[2] * np.uint64(0xcd9e8d57)]
        counter = [products[1] >> np.uint64(32) ^ counter[1] ^ np.uint64(key[0]), products[1] & low,
                   products[0] >> np.uint64(32) ^ counter[3] ^ np.uint64(key[1]), products[0] & low]
        key = [(key[0] + 0x9e3779b9) & 0xffffffff, (key[1] + 0xbb67ae85) & 0xffffffff]
    return np.stack(counter, 1).reshape(-1)[:n]


def suitable(x, f):
    """Numbers of which both libraries say the same: gfloat raises an error for what a format without NaN cannot say, and has
    no rule for negative numbers in unsigned formats, nor for zero where there is none."""
    if not f.signed:
        x = x[~np.signbit(x)]
    if not f.has_zero:
        x = x[~(x < f.min_positive)]
    return x if f.has_nan else x[np.isfinite(x)]


@pytest.mark.parametrize("name", GFLOAT + P3109_NARROW)
def test_every_code_of_gfloat(name):
    info, gfloat = gfloat_of(name)
    f = mpsim.formats[name]
    with np.errstate(all="ignore"):
        theirs = gfloat.decode_ndarray(info, f.codes.astype(np.int64))
    assert same_numbers(f.values, theirs)
    numbers = ~np.isnan(f.values)
    back = gfloat.encode_ndarray(info, f.values[numbers].astype(np.float64))
    assert np.array_equal(back.astype(f.code_dtype), f.codes[numbers])
    assert np.array_equal(mpsim.encode(f.values, name)[numbers], f.codes[numbers])
    counted("gfloat", "codes", f.codes.size)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", GFLOAT + P3109_NARROW)
def test_random_values_of_gfloat(name, mode, floats):
    """In binary64, in which gfloat's sums with random bits are exact; what overflows is infinite or NaN, or the largest number."""
    info, gfloat = gfloat_of(name)
    f = mpsim.formats[name]
    with np.errstate(invalid="ignore"):  # NaNs with the quiet bit clear
        x = suitable(floats.astype(np.float64), f)
    theirs = {"rnd": gfloat.RoundMode[MODES[mode]]}
    if ":" in mode:
        bits = int(mode.rpartition(":")[2])
        theirs.update(srnumbits=bits, srbits=(philox(2**40 + 3, 5, x.size) >> np.uint64(32 - bits)).astype(np.int64))
    saturate = not f.has_nan and not f.has_inf
    with np.errstate(all="ignore"):
        wanted = gfloat.round_ndarray(info, x, sat=saturate, **theirs)
    ours = mpsim.round(x, name, mode, seed=2**40 + 3, stream=5, overflow="saturate" if saturate else None)
    different = ~((np.isnan(ours) & np.isnan(wanted)) | ((ours == wanted) & (np.signbit(ours) == np.signbit(wanted))))
    assert not different.any(), (int(different.sum()), x[different][:5], ours[different][:5], wanted[different][:5])
    counted("gfloat", "random values, " + mode.partition(":")[0], x.size)
