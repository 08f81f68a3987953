"""A whole model on the stand: recordings of torch, and the products of a small transformer computed again bit by bit."""
import json
import os
import subprocess
import sys

import pytest
from conftest import SOURCES

from mpsim import testing
from mpsim._library import PROGRAM

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    """MKL cuts the depth by the number of threads."""
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(n)


def transformer(dtype):
    """Two layers and a head: addmm, bmm and mm, forward and backward."""
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, dtype=dtype)
    return torch.nn.Sequential(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), torch.nn.Linear(64, 500, dtype=dtype))


def recorded(model, x, limit=1 << 30):
    with testing.record(model, limit=limit) as run, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        model(x).float().square().mean().backward()
    return run


def native():
    return "AVX512" in torch.backends.cpu.get_cpu_capability() and torch.backends.mkl.is_available()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_replayed(dtype, tmp_path):
    """Rows are those of an x86 CPU with AVX-512; another one has no misnamed product, but others without a row."""
    model = transformer(dtype)
    run = recorded(model, torch.randn(2, 16, 64, dtype=dtype))
    paths = {op.path for op in run.products}
    assert {"1", "0.layers.0.linear1", "0.layers.1.linear2"} <= paths and any(op.backward for op in run.products)
    replayed = testing.replay_products(run)
    assert len(replayed) >= 28 and "products" in str(replayed)
    if native():
        assert replayed.equal, str(replayed)
    run.save(str(tmp_path / "run"))
    again = testing.open_recording(str(tmp_path / "run"))
    assert testing.replay_products(tmp_path / "run").rows == replayed.rows and len(again) == len(run)
    assert testing.compare_runs(run, str(tmp_path / "run")).same


def test_a_wrong_bit_is_not_replayed():
    run = recorded(transformer(torch.float32), torch.randn(2, 16, 64))
    op = run.products[3]
    wrong = op.outputs[0].tensor.clone()
    wrong.view(-1).view(torch.int32)[5] ^= 1
    op.outputs = [run.value(wrong)]
    replayed = testing.replay_products(run)
    assert not replayed.equal and replayed.products[3].row is None


def test_numbers_beyond_the_limit_are_not_judged():
    run = recorded(transformer(torch.float32), torch.randn(2, 16, 64), limit=0)
    assert run.kept == 0 and run.left_out > 100
    replayed = testing.replay_products(run)
    assert not replayed.equal and all(p.why == "not judged: operands were not kept" for p in replayed)


def test_products_inside_of_operators_are_counted_and_not_judged():
    """Attention as one operator."""
    with testing.record(transformer(torch.float32)) as run:
        run._mode.model(torch.randn(2, 16, 64))
    inside = [p for p in testing.replay_products(run) if "scaled_dot_product" in p.op.name]
    assert len(inside) == 2 and not any(p.equal for p in inside) and all("products inside of aten::" in p.why for p in inside)


def test_files_that_are_no_recordings(tmp_path):
    import mpsim

    (tmp_path / "ops.json").write_text("{}")
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(mpsim.InputError, match="no recording"):
            testing.open_recording(os.fspath(folder))


# ---- two runs ----


def cases():
    import standing

    return standing.CASES + standing.SOUND


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_first_guilty_operation(case):
    """Public cases, and pairs of runs that are sound: expected is what standing.py says, which was written first."""
    import standing

    runs = case.judged()
    assert standing.found(runs) == case.expected, str(runs)
    assert case.expected or not runs.guilty and not runs.unjudged
    if case.expected and case.expected[2] == "weights":
        assert "56 of 64 rows have changed places" in runs.first.text
    assert runs.as_dict()["schema"] == "mpsim.stand-compare/1" and str(runs)


def test_an_inherited_difference_is_not_blamed():
    """The first weight differs in one number: what comes of it is equal to what torch gives for it."""
    model = transformer(torch.float32)
    x = torch.randn(2, 16, 64)
    a = recorded(model, x)
    with torch.no_grad():
        model[0].layers[0].linear1.weight[3, 5] += 1
    model.zero_grad()
    runs = testing.compare_runs(a, recorded(model, x))
    assert [(g.path, g.kind) for g in runs.guilty if not g.backward] == [("0.layers.0.linear1", "weights")] and len(runs.inherited) > 20


def test_nan_is_inherited():
    model = transformer(torch.float32)
    x = torch.randn(2, 16, 64)
    a = recorded(model, x)
    model.zero_grad()
    x = x.clone()
    x[:, 3] = float("nan")
    runs = testing.compare_runs(a, recorded(model, x))
    assert {g.kind for g in runs.guilty} == {"inputs"} and runs.inherited, str(runs)


def test_digests_alone():
    """Without numbers the operation is found, and its class is not."""
    model = transformer(torch.float32)
    x = torch.randn(2, 16, 64)
    a = recorded(model, x, limit=0)
    assert testing.compare_runs(a, recorded(model, x, limit=0)).same is False  # gradients of the first pass are added to
    model.zero_grad()
    assert testing.compare_runs(a, recorded(model, x, limit=0)).same
    runs = testing.compare_runs(a, recorded(model, x + 1, limit=0))
    assert runs.first is None or runs.first.kind in ("inputs", "weights")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_stored_run_is_judged_without_python(dtype, tmp_path):
    """Products, casts, norms, ReLU, sums and the steps of an optimizer by `mpsim judge RUN`: equal, or no row is known; one wrong bit is guilty."""
    model = transformer(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    with testing.record(model) as run, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        model(torch.randn(2, 16, 64, dtype=dtype)).float().square().mean().backward()
        optimizer.step()
    report = stored(run, tmp_path / "run")
    states = {(v["kind"], v["state"]) for v in report["verdicts"]}
    assert report["first_guilty"] is None and {("product", "equal"), ("activation", "equal"), ("update", "equal")} <= states, report
    assert not native() or {kind for kind, state in states if state == "not judged"} <= {"norm", "softmax"}, report
    op = next(op for op in run.ops if op.name == "relu")
    wrong = op.outputs[0].tensor.clone()
    wrong.view(-1)[7] = -0.0
    op.outputs = [run.value(wrong)]
    report = stored(run, tmp_path / "wrong")
    assert report["differing"] == 1 and report["first_guilty"]["name"].endswith(op.place) and report["first_guilty"]["differ"] == 1


def stored(run, folder):
    """What `mpsim judge` says of a recording in a folder."""
    run.save(str(folder), rows={"activation": "relu"})
    made = subprocess.run([PROGRAM, "judge", "--json", str(folder)], capture_output=True, text=True)
    assert made.returncode in (0, 1, 5), made.stderr
    return json.loads(made.stdout)


def test_digests_of_a_stored_run(tmp_path):
    """Results of which only the digest was kept: the same row gives it, another one does not."""
    model = torch.nn.Linear(64, 256, dtype=torch.bfloat16)
    x = torch.randn(8, 64, dtype=torch.bfloat16)
    with testing.record(model) as run:
        model(x)
    product = run.products[0]
    for v in product.outputs:
        v.tensor = None
    verdicts = []
    for name, row in (("right", "fma"), ("wrong", "sequential:bf16")):
        run.save(str(tmp_path / name), rows={"product": row})
        made = subprocess.run([PROGRAM, "judge", "--json", str(tmp_path / name)], capture_output=True, text=True)
        verdicts.append(json.loads(made.stdout)["verdicts"][0])
    assert verdicts[0]["digests"] == verdicts[1]["digests"] == 1 and verdicts[1]["state"] == "differs"
    assert not native() or verdicts[0]["state"] == "equal"


@pytest.mark.skipif(not SOURCES, reason="MPSIM_SRCDIR names no checkout")
def test_a_model_on_a_device_is_recorded_and_judged(tmp_path):
    """data/judge/model.py with a row of mpsim in place of a device: all products equal; another row, or a bit of an operand, is guilty."""
    script, folder = os.path.join(SOURCES, "data", "judge", "model.py"), str(tmp_path)
    small = ("--layers", "1", "--words", "512", "--tokens", "3")
    subprocess.run([sys.executable, script, "record", folder, "--device", "mpsim:hopper-bf16-fp32", *small], check=True)
    subprocess.run([sys.executable, script, "weights", folder], check=True)

    def judged():
        made = subprocess.run([PROGRAM, "judge", "--json", folder], capture_output=True, text=True)
        return json.loads(made.stdout)

    report = judged()
    assert report["operations"] == report["equal"] == 11 and report["digests"] == 3 and report["digests_differ"] == 0, report
    manifest = os.path.join(folder, "run.json")
    with open(manifest) as file:
        run = json.load(file)
    for operation in run["operations"]:
        operation["row"] = "hopper-bf16-fp32"
    run["operations"][8]["row"] = "fma"
    run["operations"][-1]["arrays"]["d"]["digest"][1] = "0" * 64
    with open(manifest, "w") as file:
        json.dump(run, file)
    report = judged()
    assert [v["number"] for v in report["verdicts"] if v["state"] == "differs"] == [9, 11], report
    assert report["verdicts"][-1]["text"] == "d: 1 of 3 digests differ, first that of row 1"


@pytest.mark.filterwarnings("ignore:Using .torch.compile")
def test_a_compiled_model_is_refused():
    """torch would run it as if it were not compiled, and two recordings would be equal whatever the compiler does."""
    import mpsim

    model = torch.nn.Linear(8, 8)
    with testing.record(model), pytest.raises(mpsim.InputError, match="before torch.compile"):
        torch.compile(model, backend="eager")(torch.randn(2, 8))
    model.compile(backend="eager")
    with testing.record(model), pytest.raises(mpsim.InputError, match="before torch.compile"):
        model(torch.randn(2, 8))


def test_a_single_number_is_compared():
    """A result without dimensions, and one whose stride is not 1."""
    class Loss(torch.nn.Module):
        def forward(self, x, factor):
            return (x.t()[:, :1].t().contiguous() * factor).sum() * factor

    runs = []
    for factor in (1.0, 3.0):
        with testing.record(Loss()) as run:
            Loss()(torch.ones(4, 1), torch.tensor(factor))
        runs.append(run)
    assert testing.compare_runs(*runs).guilty and testing.compare_runs(runs[0], runs[0]).same


# ---- one operation computed another way: standing_ops.py ----


def operations():
    import standing_ops

    inherited = ("GELU", "SiLU", "RMSNorm", "LayerNorm divides", "K in", "residual", "sum in", "gradient", "scale of")
    return [(case, noise) for case in standing_ops.CASES for noise in (False, True) if not noise or case.name.startswith(inherited)] + \
        [(case, noise) for case in standing_ops.SOUND for noise in (False, True)]


@pytest.mark.parametrize("case, noise", operations(), ids=lambda x: x.name if hasattr(x, "name") else "other weights" if x else "")
def test_an_operation_is_computed_another_way(case, noise):
    """With equal weights it is the first guilty one; with other weights before it, it does not hide behind the difference that it inherits."""
    import standing_ops

    runs = case.judged(noise)
    if case.expected:
        assert standing_ops.named(case, runs, noise), str(runs)
    else:
        assert standing_ops.sound(runs, noise), str(runs)
        assert not noise or len(runs.inherited) > 40 and len(runs.unproven) < 0.1 * len(runs.inherited), str(runs)


def test_several_operations_beside_one():
    """The row of an operation of one run, asked of what the other run makes by several."""
    class MLP(torch.nn.Module):
        def __init__(self, act):
            super().__init__()
            torch.manual_seed(0)
            self.up, self.down, self.act = torch.nn.Linear(64, 64), torch.nn.Linear(64, 8), act

        def forward(self, x):
            return self.down(self.act(self.up(x)))

    x, acts = torch.randn(4, 64).to(torch.bfloat16), (torch.nn.functional.silu, lambda x: x * torch.sigmoid(x), lambda x: torch.sigmoid(1.5 * x) * x)
    runs = [recorded_forward(MLP(act).to(torch.bfloat16), x) for act in acts]
    firsts = [testing.compare_runs(runs[i], runs[k]).first for i, k in ((0, 1), (1, 0), (0, 2))]
    assert [g.kind for g in firsts] == ["format", "format", "formula"] and all(g.before for g in firsts), firsts
    assert firsts[0].text.endswith("silu in a, silu:math=bf16 in b") and firsts[1].text.endswith("silu:math=bf16 in a, silu in b")


def recorded_forward(model, x):
    with testing.record(model) as run:
        model(x)
    return run


def test_rows_and_places_are_said():
    import standing_ops

    case = next(c for c in standing_ops.CASES if c.name == "SiLU with a sigmoid of bf16")
    first = case.judged().first
    assert first.rows == ("silu", "silu:math=bf16") and first.run == "b" and first.places
    index, one, other = first.places[0]
    assert first.a.outputs[0].tensor[index] == one and first.b.outputs[0].tensor[index] == other != one


@pytest.mark.parametrize("number", [0, 1], ids=["bf16", "fp32"])
def test_what_no_row_judges_is_said(number):
    """The inverse root has no row; without torch's answer, as of another machine, nothing is known of it but that it inherits. Nothing is guilty: the
    mean of fp32 is one result, which another row gives in each run."""
    import standing_ops
    from mpsim import _guilty

    case = standing_ops.SOUND[number]
    judge = _guilty.Judge(case.one({}), case.one({}, True), False)
    judge._torch = lambda op, side: None
    runs = judge.run()
    assert "no row judges aten.rsqrt" in {p.why for p in runs.unproven} and "no row judges aten.rsqrt" in str(runs)
    assert standing_ops.sound(runs, True), str(runs)
    proven = {"add", "mul", "_to_copy", "addmm", "mm"} | ({"native_layer_norm", "gelu", "silu"} if case.dtype == torch.bfloat16 else set())
    assert {p.a.name for p in runs.inherited if p.proven} >= proven, str(runs)
