"""Whatever the public functions are given: a result, or an mpsim.Error of one line."""
import sys

import numpy as np
import pytest

import mpsim

ODD = [None, True, 0, -1, 3, 1.5, float("nan"), float("inf"), 10**30, "x", "", "e4m3", b"x", [], (), {}, {"a": 1}, [1.0],
       [[1.0, 2.0], [3.0, 4.0]], object(), np.zeros((0, 4), np.float32), np.zeros((3, 0)), np.zeros((0, 0)), np.float32(3), np.ones(3),
       np.ones((2, 2, 2)), np.array("a"), np.array([1j]), lambda: 1, int, mpsim.formats["e4m3"], mpsim.Scaler(), range(3), {1},
       "\ud800", "/nonexistent", "a\0"]
SQUARE, CAST = np.ones((3, 3)), ["format", "mode", "scale", "rng", "seed", "index", "preset", "overflow", "flush_inputs", "out"]
# a function, its first arguments where another is odd, keywords that it needs, those that are odd in turn
FUNCTIONS = [
    (mpsim.round, [np.ones(3)], {"format": "e4m3"}, CAST), (mpsim.encode, [np.ones(3)], {"format": "e4m3"}, CAST),
    (mpsim.decode, [np.ones(3, np.uint8)], {"format": "e4m3"}, ["format", "out"]),
    (mpsim.dot, [np.ones(3), np.ones(3)], {}, ["model", "c", "format", "rng"]),
    (mpsim.gemm, [SQUARE, SQUARE], {}, ["c", "model", "format", "transpose_a", "out"]),
    (mpsim.scaled_mm, [SQUARE, SQUARE], {"like": "torch-scaled-mm:S=1", "format": "e4m3"}, ["scale_a", "like", "scale_result", "out"]),
    (mpsim.quantize, [SQUARE], {"recipe": "mxfp8"}, ["recipe", "axis", "amax", "given"]),
    (mpsim.quantize, [SQUARE], {"recipe": "mxfp8:rht32", "axis": "columns"}, ["seed"]),
    (mpsim.stat, [np.ones(3)], {}, ["formats", "scales", "progress", "kind", "fail_if", "map"]),
    (mpsim.open, ["/nonexistent"], {}, ["kind", "match"]), (mpsim.Scaler, [], {}, []), (mpsim.Random, [1], {}, ["stream", "index"]),
    (mpsim.formats["e4m3"].within, [], {}, []), (mpsim.formats.__getitem__, [], {}, []), (mpsim.Scaler().load, [], {}, []),
    (mpsim.Scaler().load_state_dict, [], {}, []), (mpsim.Scaler().update, [], {}, [])]


def odd():
    torch = sys.modules.get("torch")
    return ODD + ([torch.ones(2), torch.ones(2, 2, requires_grad=True), torch.nn.Linear(2, 2), torch.ones(2).to(torch.complex64)] if torch else [])


def calls(function, first, needed, keywords):
    for x in odd():
        yield (x, *first[1:]), needed
        for key in keywords:
            yield first, {**needed, key: x}


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: case[0].__name__)
def test_arguments(case):
    for arguments, keywords in calls(*case):
        try:
            case[0](*arguments, **keywords)
        except mpsim.Error as error:
            assert str(error) and "\n" not in str(error)


@pytest.mark.parametrize("command", [mpsim.diff, mpsim.advise, mpsim.report, mpsim.replay, mpsim.memory])
def test_commands(command):
    for x in (None, {1}, "\ud800", "a\0", [1j], lambda: 1, "/nonexistent", np.zeros((0, 4))):
        with pytest.raises(mpsim.Error) as error:
            command(*([x] if command is not mpsim.diff else [x, "/nonexistent"]))
        assert "\n" not in str(error.value)


def test_modules_are_no_arrays():
    torch = pytest.importorskip("torch")
    for call in (lambda x: mpsim.stat(x), lambda x: mpsim.round(x, "e4m3"), lambda x: mpsim.diff(x, x)):
        with pytest.raises(mpsim.InputError, match="found Linear"):
            call(torch.nn.Linear(2, 2))


def test_empty_columns():
    for shape in ((0, 4), (3, 0), (0, 0)):
        q = mpsim.quantize(np.zeros(shape, np.float32), "mxfp8", axis="columns")
        assert q.shape == q.values.shape == q.dequantize().shape == shape


def test_reports_and_files(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4), np.float32))
    report, file = mpsim.stat(np.float32([1e-8, 1.0]), formats="fp16", scales=[1, 1024]), mpsim.open(tmp_path / "a.npy")
    page = mpsim.Page("", [], 0)
    for x in (3, 1.5, b"x", [], {}, object(), np.ones(2), "\ud800", "a\0", {1}):
        for call in (lambda: report.plot(x), lambda: report.plot("sweep", venue=x), lambda: page.save(x), lambda: file.select(step=x)):
            try:
                call()
            except mpsim.Error as error:
                assert "\n" not in str(error)
        with pytest.raises(mpsim.InputError, match="axis of Matplotlib"):
            report.plot("sweep", ax=x)
