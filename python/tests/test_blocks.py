"""Block formats: codes, scales and values fit together, and are the program's."""
import numpy as np
import pytest
from conftest import peer, same_numbers

import mpsim

PLAIN = [r for r in mpsim.recipes if r != "nvfp4-sr"]


@pytest.fixture
def matrix():
    rng = np.random.default_rng(7)
    return (rng.standard_normal((48, 160)) * 2.0 ** rng.integers(-6, 7, (48, 1))).astype(np.float32)


def spread(scales, shape):
    """A scale for each element, from one for each block of a matrix."""
    rows, cols = shape[0] // scales.shape[0], -(-shape[1] // scales.shape[1])
    cols = {1: shape[1]}.get(scales.shape[1], 1 << (cols - 1).bit_length())
    rows = shape[0] if scales.shape[0] == 1 else 1 << (-(-shape[0] // scales.shape[0]) - 1).bit_length()
    return np.repeat(np.repeat(scales, rows, 0)[: shape[0]], cols, 1)[:, : shape[1]]


@pytest.mark.parametrize("recipe", PLAIN)
def test_values_are_codes_times_scales(recipe, matrix):
    q = mpsim.quantize(matrix, recipe)
    assert q.codes.shape == q.values.shape == matrix.shape and q.codes.dtype == np.uint8 and q.values.dtype == np.float32
    scales = np.broadcast_to(q.scales, q.scales.shape).reshape(-1, q.scales.shape[-1])
    ours = mpsim.decode(q.codes, q.element) * spread(scales, matrix.shape)
    assert np.allclose(ours, q.values, rtol=3e-7, atol=0), recipe
    if q.scale_codes is not None and not recipe.startswith("nvfp4"):
        assert same_numbers(mpsim.decode(q.scale_codes, "e8m0"), q.scales)
    if recipe.startswith("nvfp4"):
        assert np.allclose(mpsim.decode(q.scale_codes, "e4m3") * np.float32(q.tensor_scale), q.scales, rtol=3e-7)
    assert q.nbytes < matrix.nbytes


@pytest.mark.parametrize("recipe", ["mxfp8:rceil", "mxfp4", "nvfp4", "e4m3/128x128", "e4m3/row"])
@pytest.mark.parametrize("axis", ["rows", "columns"])
def test_as_the_program_counts(recipe, axis, matrix):
    """The errors of our values are those that stat reports."""
    report = mpsim.stat(matrix, formats=recipe, axis=axis)["total"]["blocks"][0]
    q = mpsim.quantize(matrix, recipe, axis=axis)
    error = float(np.mean((matrix.astype(np.float64) - q.values.astype(np.float64)) ** 2))
    assert report["mse"] == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("recipe", ["mxfp8:rht16", "nvfp4:rht128"])
def test_transforms(recipe, matrix):
    """The transform is orthogonal, and each row is transformed as it is alone; a tail stays as it is."""
    q = mpsim.quantize(matrix, recipe)
    assert np.allclose((q.values**2).sum(1), (matrix**2).sum(1), rtol=0.2)
    assert not np.allclose(q.values, matrix, rtol=0.2, atol=0.2)
    cut = mpsim.quantize(matrix[:, :150], recipe, amax=float(np.abs(matrix).max()))
    rows = [mpsim.quantize(row, recipe, amax=float(np.abs(matrix).max())).codes for row in matrix[:, :150]]
    assert np.array_equal(cut.codes, np.array(rows))


def test_ml_dtypes_has_the_same_elements(matrix):
    ml_dtypes = peer("ml_dtypes")
    q = mpsim.quantize(matrix, "mxfp8:rceil")
    scaled = matrix / np.repeat(q.scales, 32, 1)
    assert np.array_equal(scaled.astype(ml_dtypes.float8_e4m3fn).view(np.uint8), q.codes)


def test_shapes(matrix):
    x = matrix.reshape(2, 24, 160)
    q = mpsim.quantize(x, "mxfp4")
    assert q.codes.shape == x.shape and q.scales.shape == (2, 24, 5) and q.scale_codes.dtype == np.uint8
    assert mpsim.quantize(x, "e4m3/128x128").scales.shape == (1, 2)
    assert mpsim.quantize(x[0, 0], "mxfp4").scales.shape == (5,)
    columns = mpsim.quantize(matrix, "mxfp4", axis="columns")
    turned = mpsim.quantize(np.ascontiguousarray(matrix.T), "mxfp4")
    assert np.array_equal(columns.codes, turned.codes.T) and np.array_equal(columns.scales, turned.scales.T)
    assert mpsim.quantize(np.zeros((0, 4), np.float32), "mxfp4").codes.shape == (0, 4)
    before = matrix.copy()
    mpsim.quantize(matrix, "nvfp4:rht")
    assert np.array_equal(before, matrix)


def test_kinds(matrix):
    torch = peer("torch")
    q = mpsim.quantize(torch.from_numpy(matrix), "nvfp4")
    assert isinstance(q.values, torch.Tensor) and isinstance(q.codes, torch.Tensor) and isinstance(q.scales, torch.Tensor)
    assert np.array_equal(q.codes.numpy(), mpsim.quantize(matrix, "nvfp4").codes)


def test_random_bits(matrix):
    a, b, c = (mpsim.quantize(matrix, "nvfp4:sr", seed=s).codes for s in (1, 1, 2))
    assert np.array_equal(a, b) and not np.array_equal(a, c)


@pytest.mark.parametrize("recipe", ["mxfp8", "nvfp4", "mxfp8:rht32", "mxfp8:rht16", "e4m3/row"])
@pytest.mark.parametrize("axis", [-1, -2, 0, 1])
def test_dequantize(recipe, axis, matrix):
    """The array again, after a transform transformed back; by rows and columns, also where groups do not end with rows."""
    for x in (matrix, matrix[:40, :70]):
        q = mpsim.quantize(x, recipe, axis=axis)
        named = mpsim.quantize(x, recipe, axis="rows" if axis in (-1, 1) else "columns")
        assert np.array_equal(q.codes, named.codes) and q.shape == x.shape and np.array_equal(np.asarray(q), q.dequantize())
        assert np.abs(q.dequantize() - x).max() < np.abs(x).max() * (0.3 if recipe == "nvfp4" else 0.1)
        if ":" not in recipe:
            assert np.array_equal(q.dequantize(), q.values)
    assert np.asarray(q, np.float64).dtype == np.float64 and np.linalg.norm(q - x) < np.linalg.norm(x)


def test_dequantize_of_torch(matrix):
    torch = peer("torch")
    q = mpsim.quantize(torch.from_numpy(matrix), "mxfp8:rht32", axis="columns")
    assert isinstance(q.dequantize(), torch.Tensor)
    assert np.array_equal(q.dequantize().numpy(), mpsim.quantize(matrix, "mxfp8:rht32", axis="columns").dequantize())


@pytest.mark.parametrize("call, words", [
    (lambda: mpsim.quantize([[[1.0]]], "mxfp8", axis=0), "axis: expected -1, the last dimension, or of a matrix -2, found 0 for 3 dimensions"),
    (lambda: mpsim.quantize([1.0], "mxfp8", axis=1), "found 1 for 1 dimensions"),
    (lambda: mpsim.quantize([1.0], "mxfp8", axis=-1.0), "axis is 'rows' or 'columns'"),
    (lambda: mpsim.quantize([1.0], "mxfp9"), "unknown block recipe 'mxfp9'; did you mean 'mxfp"),
    (lambda: mpsim.quantize([1.0], "mxfp8:foo"), "block recipe 'mxfp8:foo': "),
    (lambda: mpsim.quantize(1.0, "mxfp8"), "at least one dimension"),
    (lambda: mpsim.quantize([1.0], "mxfp8", axis="columns"), "at least two dimensions"),
    (lambda: mpsim.quantize([[1.0]], "mxfp8", axis="up"), "axis is 'rows' or 'columns'"),
    (lambda: mpsim.quantize([1.0], 3), "found int"),
    (lambda: mpsim.quantize([1.0], ["mxfp8"]), "found list"),
    (lambda: mpsim.quantize([1.0], "mxfp8\0"), "NUL character"),
    (lambda: mpsim.quantize([1.0], "nvfp4", amax="1"), "amax: expected a number, found str"),
    (lambda: mpsim.quantize([1.0], "nvfp4", amax=-1), "amax: expected a finite number from 0 on, found -1"),
    (lambda: mpsim.quantize([1.0], "nvfp4", amax=float("nan")), "amax: expected a finite number"),
    (lambda: mpsim.quantize([1.0], "mxfp8", given=0), "given: expected a finite number larger than 0"),
    (lambda: mpsim.quantize([1.0], "nvfp4:sr", seed=-1), "seed: expected an integer"),
])
def test_refusals(call, words):
    with pytest.raises(mpsim.InputError) as error:
        call()
    assert words in str(error.value)
