"""The structures of ctypes beside the headers, and what Python sees of the package."""
import ctypes
import doctest
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import SOURCES

import mpsim
from mpsim import _device, _inputs, _judge, _statistics, _tolerance


def test_structures(tmp_path):
    headers = os.path.join(SOURCES, "lib", "include")
    cc = shutil.which("cc") or shutil.which("gcc")
    if not SOURCES or not cc:
        pytest.skip("no C compiler, or MPSIM_SRCDIR names no checkout")
    lines = []
    structures = {**_statistics.STRUCTURES, **_device.STRUCTURES, **_inputs.STRUCTURES, **_judge.STRUCTURES, **_tolerance.STRUCTURES}
    for name, structure in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field in (f[0] for f in structure._fields_):
            lines.append(f'printf("{name}.{field} %zu\\n", offsetof({name}, {field}));')
    (tmp_path / "x.c").write_text("#include <mpsim/judge.h>\n#include <mpsim/report.h>\n#include <mpsim/mpsim.h>\n#include <mpsim/cuda.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "}\n")
    subprocess.run([cc, "-I", headers, "-I", os.path.join(SOURCES, "gpu", "include"), "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    theirs = subprocess.run([tmp_path / "x"], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")
    ours = []
    for name, structure in structures.items():
        ours.append(f"{name} {ctypes.sizeof(structure)}")
        ours += [f"{name}.{f[0]} {getattr(structure, f[0]).offset}" for f in structure._fields_]
    assert theirs[:-1] == ours


@pytest.mark.parametrize("module", ["_formats", "_functions", "_cast", "_blocks", "_dot", "_scaler", "_reports", "_watch", "_threads", "_torchmm", "testing"])
def test_docstrings(module):
    extra = {"np": np, "mpsim": mpsim}
    if module == "_watch":
        extra["torch"] = pytest.importorskip("torch")
    failed, tried = doctest.testmod(importlib.import_module("mpsim." + module), extraglobs=extra)
    assert tried and not failed


def test_everything_public_is_described():
    for name in mpsim.__all__:
        thing = getattr(mpsim, name)
        if callable(thing):
            assert thing.__doc__ and len(thing.__doc__) > 40, name


def test_modules():
    """The wheel has every module of the sources, those of sub-packages, too."""
    sources = os.path.join(SOURCES, "python", "src", "mpsim")
    try:
        package = importlib.metadata.distribution("mpsim")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    if not SOURCES:
        pytest.skip("MPSIM_SRCDIR names no checkout")
    there = {os.path.relpath(os.path.join(folder, name), os.path.dirname(sources)) for folder, _, names in os.walk(sources)
             for name in names if name.endswith((".py", ".pyi")) and "_install" not in folder}
    assert there <= {f.as_posix() for f in package.files} and "mpsim/emulate/__init__.py" in there


def test_licences():
    """METADATA names the licence of each library in the wheel; the texts of those that refer to another's are there."""
    try:
        package = importlib.metadata.distribution("mpsim")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    named, texts = package.metadata["License"], {f.name: f.read_text() for f in package.files if "licenses" in f.parts}
    bundled = [f.name for f in package.files if f.parts[:3] == ("mpsim", "_install", "lib") and not f.name.startswith(("libmpsim", "libnocryp"))]
    ours = {"libgmp": "GMP (LGPL-3.0-or-later", "libmpfr": "MPFR (LGPL-3.0-or-later", "libjansson": "jansson (MIT", "libyaml": "libyaml (MIT",
            "libzip": "libzip (BSD", "libz.": "zlib (Zlib", "libbz2": "bzip2 (", "liblz4": "lz4 (BSD", "liblzma": "liblzma (", "libzstd": "zstd (BSD",
            "libarchive": "libarchive (BSD", "libhdf5": "HDF5 (BSD", "libsz": "libaec (BSD", "libaec": "libaec (BSD"}
    assert named.startswith("Apache-2.0; ") and "Version 2.0" in texts["COPYING"]
    for name in bundled:
        assert any(name.startswith(begin) and words in named for begin, words in ours.items()), name
    if any(name.startswith(("libgmp", "libmpfr")) for name in bundled):
        assert "GNU LESSER GENERAL PUBLIC LICENSE" in texts["LGPL-3"] and "GNU GENERAL PUBLIC LICENSE" in texts["GPL-3"]


def test_all_names_without_torch():
    """dir() has every name, and `import *` loads nothing that needs torch."""
    script = ("import sys; sys.modules['torch'] = None\nfrom mpsim import *\nimport mpsim\n"
              "assert {*mpsim.__all__, 'callbacks', 'record'} <= {*dir(mpsim)} and watch is mpsim.watch\n"
              "try:\n    watch(None, None)\nexcept mpsim.Error as error:\n    print(error)")
    said = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert said.startswith("watch: needs PyTorch from 1.13 on: ") and said.count("\n") == 1


def test_import_is_quick(tmp_path):
    """Beside NumPy: 0.1 s of processor time at most, the best of three; modules are compiled once, as in an installed package. What
    only some calls need is loaded by them."""
    script = ("import sys, numpy, time; before = set(sys.modules); t = time.process_time(); import mpsim; print(time.process_time() - t); "
              "print(*({'subprocess', 'concurrent.futures', 'tempfile', 'shutil', 'html', 'difflib'} & (set(sys.modules) - before)))")
    env = {**{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    said = [subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, env=env, text=True).stdout.split() for _ in range(3)]
    assert min(float(words[0]) for words in said) < 0.1
    assert not any(words[1:] for words in said)


def test_small_calls_are_quick():
    """Microseconds, not milliseconds: a hundred at most on the slowest machine, the best of many."""
    x, best = np.ones(10, np.float32), 1.0
    for _ in range(300):
        start = time.perf_counter()
        mpsim.round(x, "e4m3")
        best = min(best, time.perf_counter() - start)
    assert best < 100e-6


@pytest.fixture(scope="module")
def mypy_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("mypy")


def test_types(mypy_cache):
    if importlib.util.find_spec("mypy") is None or not SOURCES:
        pytest.skip("mypy is not installed, or MPSIM_SRCDIR names no checkout")
    folder = os.path.join(SOURCES, "python", "src", "mpsim")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", mypy_cache, folder],
                          stdout=subprocess.PIPE, cwd="/")
    assert done.returncode == 0, done.stdout.decode()


USE = """
import numpy as np
import mpsim

class Tensor:  # as torch's and JAX's
    device = "cpu"
    def __dlpack__(self) -> object: ...

x, t = np.ones(3, np.float32), Tensor()
rng = mpsim.Random(1)
reveal_type(mpsim.round(1.5, "e4m3", "sr", rng=rng))  # float
reveal_type(mpsim.round(x, "e4m3", out=x))  # numpy.ndarray[Any, numpy.dtype[numpy.floating[Any]]]
reveal_type(mpsim.round([1.0], "e4m3"))  # numpy.ndarray[Any, numpy.dtype[numpy.floating[Any]]]
reveal_type(mpsim.round(t, "e4m3"))  # use.Tensor
reveal_type(mpsim.encode(x, "e4m3"))  # numpy.ndarray[Any, numpy.dtype[numpy.unsignedinteger[Any]]]
reveal_type(mpsim.encode(1.5, "e4m3"))  # int
reveal_type(mpsim.decode(b"ab", "e4m3"))  # numpy.ndarray[Any, numpy.dtype[numpy.floating[Any]]]
reveal_type(mpsim.decode(3, "e4m3"))  # float
reveal_type(mpsim.gemm(t, t, format="e4m3"))  # use.Tensor
reveal_type(mpsim.scaled_mm(x, x, like="torch-scaled-mm:S=1"))  # numpy.ndarray[Any, numpy.dtype[numpy.floating[Any]]]
reveal_type(mpsim.quantize(t, "mxfp4", axis=-1).dequantize())  # use.Tensor
reveal_type(mpsim.quantize(x, "mxfp4").shape)  # tuple[int, ...]
mpsim.round(x, "e4m3", overflow="wrap")  # error
mpsim.quantize(x, "mxfp4", axis="up")  # error
mpsim.round(x, "e4m3", sed=1)  # error
"""


def test_types_of_results(tmp_path, mypy_cache):
    """mypy knows what comes out, and what is no argument."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-pretty", "--cache-dir", mypy_cache, "use.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    said = done.stdout.decode()
    for number, line in enumerate(USE.splitlines(), 1):
        _, mark, wanted = line.partition("  # ")
        if mark and line.startswith(("reveal", "mpsim.")):
            found = [each for each in said.splitlines() if each.startswith(f"use.py:{number}: ")]
            assert any(f'"{wanted}"' in each or wanted == "error" and ": error: " in each for each in found), (line, found)
