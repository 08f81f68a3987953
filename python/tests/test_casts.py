"""What casts give, take and refuse; beside other libraries: test_peers.py."""
import numpy as np
import pytest
from conftest import same_numbers

import mpsim

def test_fp16_is_numpys(floats):
    with np.errstate(all="ignore"):
        theirs = floats.astype(np.float16)
    numbers = ~np.isnan(floats)
    assert np.array_equal(mpsim.encode(floats, "fp16")[numbers], theirs.view(np.uint16)[numbers])
    with np.errstate(all="ignore"):
        wide = floats.astype(np.float64) * (1 + 2.0**-40)  # one rounding, not two
        assert same_numbers(mpsim.round(wide, "fp16"), wide.astype(np.float16))


def test_decode_is_the_inverse_of_encode():
    for name in mpsim.formats:
        f = mpsim.formats[name]
        if f.bits <= 16:
            numbers = ~np.isnan(f.values)
            assert np.array_equal(mpsim.encode(f.values, f)[numbers], f.codes[numbers]), name
            assert same_numbers(mpsim.decode(f.codes, name), f.values), name


@pytest.mark.parametrize("name, x, wanted", [
    ("nearest-even", 1.0625, 1.0), ("nearest-away", 1.0625, 1.125), ("toward-zero", 1.12, 1.0), ("up", 1.01, 1.125),
    ("down", -1.01, -1.125), ("to-odd", 1.01, 1.125)])
def test_modes(name, x, wanted):
    assert mpsim.round(x, "e4m3", name) == wanted


def test_choices():
    assert mpsim.round(1e30, "e4m3", overflow="saturate") == 448
    assert np.isnan(mpsim.round(1e30, "e4m3"))
    assert mpsim.round(1e30, "e4m3", preset="cuda") == 448
    assert mpsim.round(2.0**-9, "e4m3", flush_subnormals=True) == 0
    assert mpsim.round(np.float16(2.0**-24), "binary32", flush_inputs=True) == 0
    assert mpsim.round(2.0**-24, "binary32", flush_inputs=True) == 2.0**-24  # normal in the source, binary64
    assert mpsim.round(2.0**-20, "fp16", scale=2**16) == 2.0**-4
    assert mpsim.round(1.5, "binary64") == 1.5


def test_nans_of_cuda_in_tf32():
    """cvt.rna.tf32 keeps a NaN's sign and leading bits (data/gpu); other conversions make it canonical."""
    x = np.array([0x7f800001, 0xff800001, 0xffc02001], np.uint32).view(np.float32)
    assert mpsim.encode(x, "tf32", "nearest-away", preset="cuda").tolist() == [0x3fc00, 0x7fc00, 0x7fe01]
    assert mpsim.encode(x[0], "tf32", "nearest-away", preset="cuda") == 0x3fc00
    assert np.isposinf(mpsim.round(x[:1], "tf32", "nearest-away", preset="cuda"))
    assert mpsim.encode(x, "tf32", preset="cuda").tolist() == [0x3ffff] * 3


def test_stochastic_is_reproducible_and_splits():
    x = np.full(1000, 1.03, np.float32)
    whole = mpsim.round(x, "e4m3", "stochastic-c", seed=5)
    assert np.array_equal(whole, mpsim.round(x, "e4m3", "stochastic-c", seed=5))
    parts = [mpsim.round(x[:300], "e4m3", "sr", seed=5), mpsim.round(x[300:], "e4m3", "sr", seed=5, index=300)]
    assert np.array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, mpsim.round(x, "e4m3", "sr", seed=6))
    assert 1.02 < whole.mean() < 1.04


def test_as_the_program_casts(program, tmp_path, floats):
    np.save(tmp_path / "x.npy", floats)
    out = tmp_path / "y.npy"
    program("cast", "-f", "e4m3", "-p", "cuda", "-s", "1024", "-o", out, tmp_path / "x.npy")
    theirs = np.load(out)
    codes = mpsim.encode(floats, "e4m3", preset="cuda", scale=1024)
    assert np.array_equal(theirs.view(np.uint8).reshape(-1), codes) or same_numbers(theirs, mpsim.decode(codes, "e4m3"))


@pytest.mark.parametrize("call, words", [
    (lambda: mpsim.round([1.0], "fp61"), "unknown format 'fp61': did you mean fp64 or fp16?"),
    (lambda: mpsim.round([1.0], "e4m3", "sideways"), "unknown rounding mode 'sideways'"),
    (lambda: mpsim.round([1.0], "e4m3", preset="nowhere"), "unknown preset 'nowhere'"),
    (lambda: mpsim.round([1.0], "e4m3", scale=0), "scale: expected a finite number larger than 0, found 0"),
    (lambda: mpsim.round([1.0], "e4m3", scale=float("nan")), "scale: expected"),
    (lambda: mpsim.round([1.0], "e4m3", overflow="wrap"), "overflow is 'inf' or 'saturate', not 'wrap'"),
    (lambda: mpsim.round([1j], "e4m3"), "round: expected an array of floating-point numbers"),
    (lambda: mpsim.round(np.array([1j]), "e4m3"), "found dtype complex128"),
    (lambda: mpsim.round(np.array(["a"]), "e4m3"), "found dtype <U1"),
    (lambda: mpsim.round(None, "e4m3"), "found NoneType"),
    (lambda: mpsim.round([1.0], None), "found NoneType"),
    (lambda: mpsim.round(np.array([2**60 + 1]), "e4m3"), "at most 2^53"),
    (lambda: mpsim.decode(np.array([300]), "e4m3"), "0 to 255, found 300"),
    (lambda: mpsim.decode(np.array([16], np.uint8), "e2m1"), "0 to 15, found 16"),
    (lambda: mpsim.decode(np.array([1.0]), "e4m3"), "expected codes of 8 bits"),
    (lambda: mpsim.decode(np.array([1], np.uint8)), "expected the name of a format"),
    (lambda: mpsim.round([1.0], "e4m3", scale=[2]), "scale: expected a number, found list"),
    (lambda: mpsim.round([1.0], "e4m3", scale="2"), "scale: expected a number, found str"),
    (lambda: mpsim.round([1.0], "e4m3", scale=10**400), "scale: expected a number that binary64 has"),
    (lambda: mpsim.round([1.0], ["e4m3"]), "format: expected a name, found list"),
    (lambda: mpsim.round([1.0], "e4m3\0"), "NUL character"),
    (lambda: mpsim.round([1.0], "e4m3", ["up"]), "mode: expected a name, found list"),
    (lambda: mpsim.round([1.0], "e4m3", preset="cuda\0"), "NUL character"),
    (lambda: mpsim.round([1.0], "e4m3", "sr", seed=-1), "seed: expected an integer from 0 to 2^64 - 1, found -1"),
    (lambda: mpsim.round([1.0], "e4m3", "sr", index=1.5), "index: expected an integer"),
    (lambda: mpsim.round(10**400, "e4m3"), "round: expected a number that binary64 has"),
    (lambda: mpsim.round(2**60 + 1, "binary64"), "round: expected a number that float64 has"),
    (lambda: mpsim.round([2**60 + 1], "binary64"), "at most 2^53"),
    (lambda: mpsim.round([10**30], "e4m3"), "found dtype object"),
    (lambda: mpsim.round(["1"], "e4m3"), "found dtype <U1"),
    (lambda: mpsim.round([True], "e4m3"), "found dtype bool"),
    (lambda: mpsim.round(np.ma.array([1.0], mask=[1]), "e4m3"), "without a mask"),
    (lambda: mpsim.round(b"12", "e4m3"), "found bytes"),
    (lambda: mpsim.decode([1]), "expected the name of a format"),
    (lambda: mpsim.decode(2**70, "e4m3"), "integers of at most 64 bits, found 1180591620717411303424"),
    (lambda: mpsim.decode([1.5], "e4m3"), "found a list of float64"),
    (lambda: mpsim.decode(1.5, "e4m3"), "found 1.5"),
    (lambda: mpsim.decode(True, "e4m3"), "found True"),
    (lambda: mpsim.formats["e5m0"], "no room for NaN"),
    (lambda: mpsim.formats["binary32"].codes, "at most 16 bits"),
])
def test_refusals(call, words):
    with pytest.raises(mpsim.InputError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)
    assert isinstance(error.value, mpsim.Error) and isinstance(error.value, ValueError)


def test_within_takes_names():
    f = mpsim.formats["e4m3"]
    assert f.within("fp16") and f.within(mpsim.formats["bf16"]) and not f.within("e5m2")
    with pytest.raises(mpsim.InputError, match="unknown format 'x'"):
        f.within("x")


def test_formats_are_the_same_for_all():
    """One object serves all who ask: it cannot be changed. Unknown names are unknown to get, too."""
    f = mpsim.formats["e4m3"]
    with pytest.raises(AttributeError, match="max cannot be changed"):
        f.max = 3.0
    f.values[:] = 7
    assert f.max == 448 and f.values[1] == 2.0**-9
    assert mpsim.formats.get("zz") is None and mpsim.formats.get("e4m3") is f and 3 not in mpsim.formats
