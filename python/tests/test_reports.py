"""Reports: the program's, to the byte."""
import concurrent.futures
import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import peer

import mpsim
from mpsim._figures import has_gnuplot
from mpsim._program import Stored


def test_stat_of_files(program, trace):
    words = ["--format=fp16,e4m3,nvfp4", "--scale=1,65536", "--kind=agrad,wgrad"]
    r = mpsim.stat(trace, formats=["fp16", "e4m3", "nvfp4"], scales=[1, 2**16], kind=["agrad", "wgrad"])
    assert r.to_json() == program("stat", "--json", *words, trace)
    assert str(r) + "\n" == program("stat", *words, trace).decode()
    assert r["schema"] == "mpsim.stat/1" and dict(r)["total"]["count"] == r["total"]["count"] and len(r) == len(list(r))


def test_stat_of_arrays(program, tmp_path):
    """A dict of arrays is the safetensors file of it."""
    rng = np.random.default_rng(3)
    arrays = {"wgrad:a": rng.standard_normal((5, 7)).astype(np.float32), "weight:b": rng.standard_normal(11),
              "act:c": rng.standard_normal(6).astype(np.float16), "empty": np.zeros((0, 3), np.float32)}
    r = mpsim.stat(arrays, formats=["fp16", "e4m3"], scales="1,2^10")
    assert [(t["name"], t["dtype"], t["shape"], t["file"]) for t in r["tensors"]] == [
        ("wgrad:a", "F32", [5, 7], "-"), ("weight:b", "F64", [11], "-"), ("act:c", "F16", [6], "-"),
        ("empty", "F32", [0, 3], "-")]
    stored = Stored(arrays)  # whose file is closed with it
    stored.file.seek(0)
    (tmp_path / "x.safetensors").write_bytes(stored.file.read())
    theirs = program("stat", "--json", "--format=fp16,e4m3", "--scale=1,2^10", tmp_path / "x.safetensors")
    assert theirs.replace(str(tmp_path / "x.safetensors").encode(), b"-") == r.to_json()
    flat = mpsim.stat(arrays["wgrad:a"][:, ::2], formats="e4m3")["tensors"][0]
    assert flat["shape"] == [5, 4] and flat["name"] == "array"
    assert "array" in str(mpsim.stat(arrays["wgrad:a"], tensors=True))


def strided():
    """Arrays that lie in other ways than one element behind the other."""
    x = np.random.default_rng(5).standard_normal((6, 8, 10)).astype(np.float32) * 1e-5
    locked = x.copy()
    locked.flags.writeable = False
    return {"wgrad:all": x, "wgrad:turned": x.transpose(2, 0, 1), "act:back": x[::-1, ::2, ::-3], "weight:column": x[:, 3, 4],
            "agrad:same": np.broadcast_to(x[0, 0], (3, 10)), "F": np.asfortranarray(x.astype(np.float16)), "locked": locked,
            "swapped": x.astype(">f4"), "integers": np.arange(-4, 5), "none": x[:0], "one": np.float64(3.5), "half": x[2].astype(">f2").T}


QUESTIONS = [{}, {"formats": ["fp16", "mxfp8:rceil", "nvfp4"], "scales": [1, 2**10], "axis": "both", "rht": 16},
             {"round": "srb", "seed": 3, "histogram": True, "scale_kinds": "all"}, {"counts": True, "kind": ["wgrad"], "tensors": True},
             {"fail_if": ["underflow>1%", "total:sqnr<300"], "map": ["one=weight:one"], "quiet": True}]


@pytest.mark.parametrize("options", QUESTIONS)
def test_stat_is_the_program(options):
    """In this process, and by the program on a copy: the same bytes, table, lines and exit code."""
    ours, theirs = mpsim.stat(strided(), **options), mpsim.stat(strided(), sandbox=True, **options)
    assert ours.to_json() == theirs.to_json()
    assert (ours.notes, ours.exit_code) == (theirs.notes, theirs.exit_code)
    if not options.get("histogram"):  # which the program's table does not show
        assert str(ours) == str(theirs)


def test_stat_from_threads():
    """Side by side, errors between them."""
    want = [mpsim.stat(strided(), **options).to_json() for options in QUESTIONS]

    def ask(i):
        with pytest.raises(mpsim.InputError, match="unknown format"):
            mpsim.stat(strided(), formats="fp61")
        with pytest.raises(mpsim.FileError, match="/no/such"):
            mpsim.stat("/no/such/file")
        return mpsim.stat(strided(), **QUESTIONS[i % len(QUESTIONS)]).to_json() == want[i % len(QUESTIONS)]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert all(pool.map(ask, range(20)))


def test_stat_stops():
    """By an exception of its progress, and by one of a signal's handler: both come while the library works."""
    endless = np.broadcast_to(np.float32(0.3), (1 << 40,))
    seen = []

    def progress(done, total):
        seen.append((done, total))
        if len(seen) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mpsim.stat({"wgrad:x": endless}, progress=progress)
    assert len(seen) == 3 and seen[0] < seen[1] and seen[0][1] == 1 << 42

    def handler(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError):
            mpsim.stat({"wgrad:x": endless})
    finally:
        signal.signal(signal.SIGALRM, before)


def test_stat_copies_nothing():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mpsim.stat({"a": np.broadcast_to(np.float32(0.3), (1 << 25,))}, formats="fp16", counts=True)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB: of 128 MiB


FORK = """
import os, mpsim, numpy as np
many = {f"wgrad:{i}": np.full(1 << 20, 0.1, np.float32) for i in range(4)}
want = mpsim.stat(many, threads=3).to_json()
child = os.fork()
if child == 0:
    os._exit(mpsim.stat(many, threads=3).to_json() != want)
raise SystemExit(os.waitpid(child, 0)[1])
"""


def test_stat_after_fork():
    """A child of a process that has asked, of many arrays on several threads, asks, too. In a process without other threads."""
    assert subprocess.run([sys.executable, "-c", FORK], timeout=60).returncode == 0


def test_stat_of_tensors():
    torch = peer("torch")
    x = {"a": torch.tensor([1.0, 3.0], dtype=torch.bfloat16), "b": torch.tensor([1.0]).to(torch.float8_e4m3fn)}
    r = mpsim.stat(x, formats="e5m2")
    assert [(t["dtype"], t["amax"]) for t in r["tensors"]] == [("BF16", 3.0), ("F8_E4M3", 1.0)]
    ml_dtypes = peer("ml_dtypes")
    turned = torch.arange(12, dtype=torch.float32).reshape(3, 4).to(torch.bfloat16).T
    assert mpsim.stat({"t": turned}).to_json() == mpsim.stat({"t": turned.contiguous()}).to_json()
    r = mpsim.stat({"a": np.array([3.0]).astype(ml_dtypes.bfloat16), "b": np.array([6.0]).astype(ml_dtypes.float4_e2m1fn)})
    assert [(t["dtype"], t["amax"]) for t in r["tensors"]] == [("BF16", 3.0), ("F32", 6.0)]


def test_odd_offsets():
    """Tensors behind one of three bytes."""
    ml_dtypes = peer("ml_dtypes")
    x = {"a": np.ones(3).astype(ml_dtypes.float8_e4m3fn), "b": np.float64([1e300]), "c": np.float32([7.0])}
    assert [t["amax"] for t in mpsim.stat(x)["tensors"]] == [1.0, 1e300, 7.0]


def test_conditions():
    r = mpsim.stat(np.float32([np.nan, 1.0]), fail_if=["nan"])
    assert r.exit_code == 1 and any("nan" in line for line in r.notes)
    assert mpsim.stat(np.float32([1.0]), fail_if=["nan"]).exit_code == 0


def test_diff(program, tmp_path):
    a = np.linspace(1, 2, 50, dtype=np.float32)
    b = mpsim.round(a, "bf16")
    r = mpsim.diff(a, b)
    assert r.exit_code == 1 and r["tensors"][0]["verdict"] == "rounded" and "bf16" in str(r)
    assert mpsim.diff(a, a).exit_code == 0
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = mpsim.diff(tmp_path / "a.npy", tmp_path / "b.npy")
    assert files.to_json() == program("diff", "--json", tmp_path / "a.npy", tmp_path / "b.npy", code=1)
    assert mpsim.diff(tmp_path / "a.npy", {"array": b})["tensors"][0]["verdict"]


def test_replay(program, trace):
    policies = ["pytorch-amp-fp16", "te-mxfp8"]
    r = mpsim.replay([os.path.join(trace, "step_019999"), os.path.join(trace, "step_020000")], policies)
    assert [p["policy"]["name"] for p in r["policies"]] == policies
    one = mpsim.replay(trace, "pytorch-amp-fp16", weights="recorded")
    assert one.to_json() == program("replay", "--json", "-P", "pytorch-amp-fp16", "--weights", "recorded", trace)


def test_memory(program):
    r = mpsim.memory(params=7_000_000_000, policies=["pytorch-amp-fp16"], optimizer="adamw", ranks=8, zero=1)
    words = ["--params=7000000000", "--policy=pytorch-amp-fp16", "--optimizer=adamw", "--ranks=8", "--zero=1"]
    assert r.to_json() == program("memory", "--json", *words)
    assert str(r) + "\n" == program("memory", *words).decode()


@pytest.mark.parametrize("traces", [np.ones(3, np.float32), {"wgrad:w": np.ones(3, np.float32)}, 3, []])
def test_commands_on_paths_refuse_arrays(traces):
    for command in (mpsim.advise, mpsim.replay, mpsim.report):
        with pytest.raises(mpsim.InputError, match="expected a path, found"):
            command(traces)


def test_advise(program, trace):
    steps = [os.path.join(trace, f"step_{step:06d}") for step in (1, 120)]
    r = mpsim.advise(steps, formats=["fp16", "mxfp8"], max_underflow="2%")
    words = ["--format=fp16,mxfp8", "--max-underflow=2%"]
    assert r.to_json() == program("advise", "--json", *words, *steps) and r["schema"].startswith("mpsim.advise/")
    assert str(r) + "\n" == program("advise", *words, *steps).decode()


def test_report(program, trace, tmp_path):
    step = os.path.join(trace, "step_000001")
    page = mpsim.report(step, formats=["fp16"], scales=[1, 1024])
    program("report", "--format=fp16", "--scale=1,1024", "-o", tmp_path / "theirs.html", step)
    page.save(tmp_path / "ours.html")
    assert (tmp_path / "ours.html").read_text() == page.html == (tmp_path / "theirs.html").read_text()
    assert page.html.lower().startswith("<!doctype html>") and "<iframe" in page._repr_html_() and page.exit_code == 0
    with pytest.raises(mpsim.FileError, match="cannot write"):
        page.save(tmp_path / "none" / "x.html")
    with pytest.raises(mpsim.InputError, match="no option 'output'"):
        mpsim.report(step, output="x.html")


@pytest.mark.parametrize("call, kind, words", [
    (lambda: mpsim.report("/no/such/file"), mpsim.FileError, "/no/such/file"),
    (lambda: mpsim.report({"a": [1.0]}), mpsim.InputError, "expected a path, found dict"),
    (lambda: mpsim.stat([1.0], progress=3), mpsim.InputError, "progress: expected a function"),
    (lambda: mpsim.stat("/no/such/file"), mpsim.FileError, "/no/such/file"),
    (lambda: mpsim.stat(os.path.abspath(__file__)), mpsim.InputError, "test_reports.py"),
    (lambda: mpsim.stat([1.0], no_such=3), mpsim.InputError, "--no-such"),
    (lambda: mpsim.stat([1.0], formats="fp61"), mpsim.InputError, "mpsim: stat: unknown format 'fp61'"),
    (lambda: mpsim.stat([1.0], json=True), mpsim.InputError, "no option 'json'"),
    (lambda: mpsim.stat({1: [1.0]}), mpsim.InputError, "names of arrays"),
    (lambda: mpsim.stat({"a": "b"}), mpsim.InputError, "found str"),
    (lambda: mpsim.memory(), mpsim.InputError, "mpsim: memory: "),
    (lambda: mpsim.stat("a\0b"), mpsim.InputError, "NUL character"),
    (lambda: mpsim.stat([1.0], formats="fp16\0"), mpsim.InputError, "NUL character"),
    (lambda: mpsim.open("a\0b"), mpsim.InputError, "NUL character"),
    (lambda: mpsim.open(None), mpsim.InputError, "expected a path, found NoneType"),
    (lambda: mpsim.open(b"x"), mpsim.InputError, "expected a path, found bytes"),
])
def test_refusals(call, kind, words):
    with pytest.raises(kind) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)
    assert isinstance(error.value, OSError if kind is mpsim.FileError else ValueError)


def test_options_are_any_that_list():
    x = np.float32([1e-8, 1.0])
    wanted = mpsim.stat(x, ["fp16"], [1, 2]).to_json()
    for formats, scales in ((("fp16",), np.array([1, 2.0])), ({"fp16"}, range(1, 3)), (mpsim.formats["fp16"], (s for s in (1, 2)))):
        assert mpsim.stat(x, formats, scales).to_json().replace(b"2.0", b"2") == wanted.replace(b"2.0", b"2")


def test_files_in_memory_are_closed():
    """No ResourceWarning when a report goes."""
    import gc
    import warnings
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        mpsim.diff([1.0], [2.0])
        gc.collect()
    assert not seen


def test_the_command(program):
    module = subprocess.run([sys.executable, "-m", "mpsim", "--version"], stdout=subprocess.PIPE, check=True).stdout
    assert module == program("--version") and mpsim.__version__.encode() in module
    command = os.path.join(os.path.dirname(sys.executable), "mpsim")
    if not os.path.exists(command):
        pytest.skip("the package is not installed: no command beside this Python")
    assert subprocess.run([command, "--version"], stdout=subprocess.PIPE, check=True).stdout == module
    assert subprocess.run([command, "formats", "fp61"], stderr=subprocess.PIPE).returncode == 2


def test_frames():
    """A row for each group and cast: those of the program's CSV."""
    r = mpsim.stat({"wgrad:a": np.float32([1e-8, 1.0]), "act:b": np.float32([np.inf])}, formats=["fp16", "mxfp8"], scales=[1, 1024])
    pandas = peer("pandas")
    frame = r.to_pandas()
    own = frame[(frame.level == "tensor") & (frame.name == "wgrad:a")]
    assert list(own.format) == ["fp16", "fp16", "mxfp8"] and list(own.underflow) == [1, 0, 1] and own.sqnr_db.dtype == float
    assert isinstance(frame, pandas.DataFrame) and set(frame.level) == {"tensor", "kind", "step", "total"}
    assert "<pre>" in r._repr_html_() and "wgrad" in r._repr_html_()
    with pytest.raises(mpsim.InputError, match="report of stat"):
        mpsim.memory(params=10, policies="pytorch-amp-fp16").to_pandas()


def test_frames_of_polars():
    peer("polars")
    frame = mpsim.stat({"wgrad:a": np.float32([1e-8, np.nan])}, formats=["fp16", "mxfp8"]).to_polars()
    assert frame.height == 2 * 4 and frame["nan"].to_list() == [1] * 8


def test_figures(tmp_path, program):
    if not has_gnuplot():
        pytest.skip("no gnuplot")
    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32) * 1e-6
    r = mpsim.stat({"wgrad:a": x}, formats="fp16", scales="2^0..2^24")
    figure = r.plot("sweep", venue="icml", type="svg")
    assert figure._repr_svg_().startswith("<?xml") and "# report" in figure.data
    figure.save(tmp_path / "x.svg")
    (tmp_path / "report").write_bytes(r.to_json())
    program("plot", "sweep", "--venue=icml", "--type=svg", "-o", tmp_path / "theirs", tmp_path / "report")
    assert figure.data.splitlines()[2:] == (tmp_path / "theirs.dat").read_text().splitlines()[2:]  # after the report's name
    assert (tmp_path / "x.svg").read_text() == figure.svg
    for call, words in ((lambda: r.plot("swoop"), "swoop"), (lambda: figure.save("x.doc"), "x.doc")):
        with pytest.raises(mpsim.InputError, match=words):
            call()
    with pytest.raises(mpsim.FileError, match="cannot write: No such file"):
        figure.save(tmp_path / "none" / "x.svg")


def test_axes():
    peer("matplotlib").use("Agg")
    import matplotlib.pyplot as plt
    r = mpsim.stat({"wgrad:a": np.float32([1e-8, 1e-3, 60000])}, formats=["fp16"], scales=[1, 1024])
    ax = plt.subplots()[1]
    assert r.plot("sweep", ax=ax) is ax
    assert [list(line.get_ydata()) for line in ax.lines] == [[pytest.approx(100 / 3), 0], [0, pytest.approx(100 / 3)]]
    assert r.plot("sqnr", ax=plt.subplots()[1]).patches[0].get_width() == pytest.approx(r["kinds"][0]["formats"][0]["sqnr_db"])
    with pytest.raises(mpsim.InputError, match="without gnuplot"):
        r.plot("ruler", ax=ax)


def test_to_json_is_json(trace):
    r = mpsim.stat(os.path.join(trace, "step_000001"), formats="fp16")
    assert json.loads(r.to_json())["total"] == r["total"]
