"""mpsim.open: tensors of files, beside what NumPy, the file's bytes and the program say of them."""
import json
import os
import shutil
import subprocess
import threading

import numpy as np
import pytest
from conftest import SOURCES

import mpsim
from mpsim import _open, _stat


def safetensors(path, tensors, metadata=None):
    header, offset, data = ({"__metadata__": metadata} if metadata else {}), 0, b""
    for name, (dtype, a) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(a.shape), "data_offsets": [offset, offset + a.nbytes]}
        offset += a.nbytes
        data += a.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2**16, (3, 4), dtype=np.uint16)
    arrays = {"wgrad:a": ("F32", rng.standard_normal((4, 5)).astype(np.float32)), "weight:a": ("BF16", codes),
              "half": ("F16", rng.standard_normal(7).astype(np.float16)), "ids": ("I64", np.arange(6).reshape(2, 3)),
              "wide": ("F64", rng.standard_normal(3)), "flag": ("BOOL", np.array([True, False])),
              "one": ("F8_E4M3", np.uint8([0x38])[0].reshape(())), "none": ("F32", np.zeros((0, 3), np.float32))}
    return safetensors(tmp_path / "step_12.safetensors", arrays, {"mpsim.rank": "3"}), arrays


def test_a_file(model):
    path, arrays = model
    with mpsim.open(path) as f:
        assert set(f) == set(arrays) and len(f) == len(arrays) and f.notes == () and f.steps == (12,)
        for name, (dtype, a) in arrays.items():
            t = f[name]
            assert (t.shape, t.stored, t.step, t.rank, t.layout) == (a.shape, dtype, 12, 3, "safetensors")
            assert t.file == str(path) and t.ndim == a.ndim and t.size == a.size and t.codes().shape == a.shape
            if dtype in ("F32", "F16", "I64", "F64", "BOOL"):
                assert t.dtype == a.dtype and t.numpy().dtype == a.dtype and np.array_equal(t, a)
                assert t.nbytes == a.nbytes
        t = f["weight:a"]
        want = (arrays["weight:a"][1].astype(np.uint32) << 16).view(np.float32)
        assert t.dtype == np.float32 and np.array_equal(t.numpy(), want, equal_nan=True)
        assert np.array_equal(t.codes(), arrays["weight:a"][1]) and t.format is mpsim.formats["bf16"]
        assert (t.kind, t.fqn, f["half"].kind) == ("weight", "a", None)
        assert f["one"][()] == 1.0 and f["one"].shape == () and float(np.asarray(f["one"])) == 1.0
        kept = f["half"]
    with pytest.raises(mpsim.InputError, match="closed"):
        kept.numpy()


INDICES = [(), 1, -1, slice(None), slice(1, 3), slice(None, None, -1), slice(3, 0, -2), (2, 1), (slice(None), 1),
           (slice(0, 3, 2), slice(1, None)), (Ellipsis, 2), (1, Ellipsis), (slice(2, 2), 0), None, [0, 2],
           (slice(1, 3), [0, 1, 1]), (Ellipsis, slice(None, None, -1)), (np.int64(1), slice(None)), (..., np.newaxis)]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("row", [5, 50_000])  # rows read whole, and in pieces
def test_slices(tmp_path, order, row):
    a = np.asarray(np.random.default_rng(2).standard_normal((4, row, 3)).astype(np.float32), order=order)
    np.save(tmp_path / "a.npy", a)
    t = mpsim.open(tmp_path / "a.npy")[""]
    for index in INDICES:
        got, want = t[index], a[index]
        assert np.array_equal(got, want) and np.shape(got) == np.shape(want), index
    for bad in [4, -5, (0, 0, 0, 0), (..., ...)]:
        with pytest.raises(IndexError):
            t[bad]


def test_slices_read_what_they_need(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((100, 100, 1000), np.float32))
    t, read = mpsim.open(tmp_path / "a.npy")[""], []
    real = _open._Reader.read
    monkeypatch.setattr(_open._Reader, "read", lambda self, what, i, first, out: (read.append(out.size), real(self, what, i, first, out)))
    for index, most in [(3, 100_000), ((3, 4), 1000), ((3, 4, 5), 1), (slice(2, 4), 200_000), ((slice(None), 5), 100_000),
                        (slice(None, None, 50), 200_000), ((7, slice(1, 3)), 2000)]:
        read.clear()
        t[index]
        assert 0 < sum(read) <= most, index


def test_a_run(trace):
    with mpsim.open(trace, kind=["wgrad", "agrad"]) as f:
        assert f.steps[0] == 1 and f.steps[-1] == 20000 and {t.kind for t in f.tensors} == {"wgrad", "agrad"}
        last = f.select(step=20000, kind="wgrad")
        t = last["wgrad:fc1.weight"]
        assert t.fqn == "fc1.weight" and f[f"{t.file}:{t.name}"] is t
        stat = mpsim.stat(t.file, formats="fp16", match=[t.name])["tensors"][0]
        assert stat["amax"] == float(np.abs(t.numpy()).max()) and stat["shape"] == list(t.shape)
        assert mpsim.stat(last, formats="fp16")["total"]["count"] == sum(t.size for t in last.tensors)
    with pytest.raises(mpsim.InputError, match="select: expected name"):
        f.select(colour=1)


def test_packed_and_several(tmp_path):
    arrays = {"b": np.arange(5000, dtype=np.float64), "a": np.arange(12, dtype=np.int16).reshape(3, 4)}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    np.save(tmp_path / "y.npy", np.float16([1, 2]))
    f = mpsim.open([tmp_path / "x.npz", tmp_path / "y.npy"])
    assert list(f) == ["b", "a", ""] and np.array_equal(f["a"], arrays["a"]) and f["b"][4000] == 4000 and f["b"][5] == 5
    assert f["a"].format is None and f["a"].codes().dtype == np.int16 and list(f[""][:]) == [1, 2]


def test_quantised(tmp_path, program):
    x = np.random.default_rng(5).standard_normal((4, 64)).astype(np.float32)
    path = safetensors(tmp_path / "x.safetensors", {"w": ("F32", x)})
    program("cast", "-f", "mxfp8", "-o", tmp_path / "q.safetensors", path)
    t = mpsim.open(tmp_path / "q.safetensors")["w"]
    assert "codes e4m3, scales e8m0 of 1x32" in t.quantised and t.dtype == np.float32 and t.shape == (4, 64)
    assert np.array_equal(t[1:, 5], mpsim.quantize(x, "mxfp8").values[1:, 5])
    parts = mpsim.open(tmp_path / "q.safetensors", stored="parts")
    assert len(parts) == 2 and not any(p.quantised for p in parts.tensors)


def test_errors(tmp_path, model):
    path, _ = model
    (tmp_path / "bad.safetensors").write_bytes(b"\x02" + bytes(7) + b"{]")
    for call, kind, line in [
            (lambda: mpsim.open(tmp_path / "none"), mpsim.FileError, f"{tmp_path}/none: cannot open: No such file or directory"),
            (lambda: mpsim.open(tmp_path / "bad.safetensors"), mpsim.InputError, "header is not valid: the name of a tensor expected"),
            (lambda: mpsim.open(path, colour="red"), mpsim.InputError, "'colour' is not an option of reading files"),
            (lambda: mpsim.open(path, kind="grad"), mpsim.InputError, "--kind: 'grad' is not one of"),
            (lambda: mpsim.open([]), mpsim.InputError, "no path given")]:
        with pytest.raises(kind) as error:
            call()
        assert line in str(error.value)
    bad = mpsim.open(tmp_path, keep_going=True)
    assert len(bad.notes) == 1 and "bad.safetensors: " in bad.notes[0] and "half" in bad
    with pytest.raises(KeyError):
        bad["nothing"]


def test_threads(model):
    """Threads share a file: each gets what it asks for."""
    path, arrays = model
    f, wrong = mpsim.open(path), []

    def work():
        for _ in range(200):
            if not (np.array_equal(f["wgrad:a"][1:3], arrays["wgrad:a"][1][1:3]) and np.array_equal(f["ids"], arrays["ids"][1])):
                wrong.append(1)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_structures(tmp_path):
    cc = shutil.which("cc") or shutil.which("gcc")
    if not SOURCES or not cc:
        pytest.skip("no C compiler, or MPSIM_SRCDIR names no checkout")
    structures = {**_open.STRUCTURES, **_stat.STRUCTURES}
    lines = "".join(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));\n'
                    for name, structure in structures.items() for field, _ in structure._fields_)
    (tmp_path / "x.c").write_text("#include <mpsim/report.h>\n#include <stdio.h>\nint main(void) {\n" + lines + "}\n")
    subprocess.run([cc, "-I", os.path.join(SOURCES, "lib", "include"), "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    theirs = subprocess.run([tmp_path / "x"], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    assert theirs == [f"{name}.{field} {getattr(structure, field).offset}"
                      for name, structure in structures.items() for field, _ in structure._fields_]


def test_docstrings():
    import doctest
    failed, tried = doctest.testmod(_open, extraglobs={"np": np, "mpsim": mpsim})
    assert tried and not failed
