"""What a user reads of an emulation: the audit, the doctor, the report, the trace, comparisons, the search for what breaks a run."""
import doctest
import importlib
import json
import os
import pydoc
import re
import subprocess
import sys

import pytest
from conftest import SOURCES, mpsim, peer
from mpsim._library import PROGRAM

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional


class Net(nn.Module):
    """A small model with attention, in the ways of every day."""

    def __init__(self):
        super().__init__()
        self.emb, self.ln = nn.Embedding(50, 32), nn.LayerNorm(32)
        self.att = nn.MultiheadAttention(32, 4, batch_first=True)
        self.fc, self.out = nn.Linear(32, 64), nn.Linear(64, 50)

    def forward(self, x, labels=None):
        h = self.emb(x)
        h = h + self.att(h, h, h, need_weights=False)[0]
        y = self.out(F.gelu(self.fc(self.ln(h))))
        return y if labels is None else F.cross_entropy(y.flatten(0, 1), labels.flatten())


class Hidden(nn.Module):
    """A model with a product that nothing claims, and a buffer."""

    def __init__(self):
        super().__init__()
        self.a, self.bn, self.b, self.calls = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4), 0

    def forward(self, x):
        self.calls += 1
        return torch.cdist(self.bn(self.a(x)), self.b(x)).sum()


def a_net(seed=0):
    torch.manual_seed(seed)
    return Net(), torch.randint(0, 50, (2, 8)), torch.randint(0, 50, (2, 8))


def state_of(model):
    """All that a step may change."""
    return ({k: v.clone() for k, v in model.state_dict().items()}, [None if p.grad is None else p.grad.clone() for p in model.parameters()],
            torch.get_rng_state())


def same_state(a, b):
    return all(torch.equal(a[0][k], b[0][k]) for k in a[0]) and torch.equal(a[2], b[2]) and all(
        (p is None) == (q is None) and (p is None or torch.equal(p, q)) for p, q in zip(a[1], b[1]))


def fits(report, line=False):
    """Whether a report is as its schema says."""
    folder = os.path.join(SOURCES, "doc", "schema")
    try:
        import jsonschema
    except ImportError:
        return True
    if not SOURCES or not os.path.isdir(folder):
        return True
    with open(os.path.join(folder, "{}.{}.json".format(*("mpsim.stat/1" if line else report["schema"]).split("/"))), encoding="utf-8") as file:
        schema = json.load(file)
    schema = {"$ref": "#/$defs/line", "$defs": schema["$defs"]} if line else schema
    found = [f"{e.json_path}: {e.message[:200]}" for e in jsonschema.Draft202012Validator(schema).iter_errors(report)]
    assert not found, found
    return True


def step_of(e, model, x, y, n=1, rule=torch.optim.SGD):
    """Steps of an optimizer."""
    optimizer = rule(model.parameters(), lr=0.05)
    for _ in range(n):
        loss = model(x, y)
        e.backward(loss)
        optimizer.step()
        optimizer.zero_grad()


# ---- the audit ----

def test_audit():
    model, x, y = a_net()
    with mpsim.emulate(model, "te-mxfp8", arch="blackwell-scaled") as e:
        for _ in range(2):
            model(x, y).backward()
    audit = e.audit()
    by_kind = {kind: [p for p in audit if p.kind == kind] for kind in ("fprop", "dgrad", "wgrad")}
    assert len(audit) == 18 and all(p.calls == 2 for p in audit)
    assert {p.path for p in by_kind["wgrad"]} == {"att", "fc", "out"}
    fc = next(p for p in by_kind["fprop"] if p.path == "fc")
    assert (fc.roles, fc.shape, fc.operator) == (("act", "weight", "out"), (1, 16, 64, 32), "aten::addmm")
    assert fc.formats == ("e4m3", "e4m3", "bf16") and fc.recipes == ("mxfp8", "mxfp8")
    assert fc.model == "blackwell-tcgen05-mxf8f6f4" and fc.evidence == "reported" and "no public outputs" in fc.unconfirmed
    assert fc.line.startswith(__file__)
    how = {each["operator"]: each["how"] for each in audit.operators}
    assert how["aten::addmm"] == "product" and how["aten::native_layer_norm"] == "between" and how["aten::gelu"] == "other" and how["aten::view"] == "free"
    assert next(each["calls"] for each in audit.operators if each["operator"] == "aten::gelu") == 2
    assert audit.foreign == [] and audit.native == []
    text = str(audit)
    assert max(map(len, text.splitlines())) <= 80 and "36 products, 18 rows" in text and "sdpa_backward" in text
    assert len(json.loads(audit.to_json())["products"]) == 18 and fits(json.loads(audit.to_json()))


def test_audit_as_a_data_frame():
    peer("pandas")
    model, x, y = a_net()
    with mpsim.emulate(model, "pytorch-amp-bf16") as e:
        model(x, y)
    frame = e.audit().to_pandas()
    assert list(frame.depth[frame.name == "fc"]) == [32] and set(frame.model) == {"hopper-bf16-fp32"}


def test_audit_names_operators_outside_aten():
    @torch.library.custom_op("mpsimtest::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_autograd(lambda ctx, grad: grad * 2)
    layer = nn.Linear(4, 4)
    with mpsim.emulate(layer, "pytorch-amp-bf16") as e:
        with pytest.raises(mpsim.InputError, match="mpsimtest::twice.*an operator outside aten"):
            twice(layer(torch.ones(2, 4)))
    with mpsim.emulate(layer, "pytorch-amp-bf16", native=["mpsimtest::*"]) as e:
        twice(layer(torch.ones(2, 4)))
    assert e.audit().foreign == ["mpsimtest::twice"] and "outside aten: mpsimtest::twice" in str(e.audit())


def test_convolutions(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.Flatten(), nn.Linear(72, 4))
    x, y = torch.randn(2, 3, 8, 8), torch.tensor([0, 1])
    with mpsim.emulate(model, "te-fp8-current", report=1) as e:
        e.record(tmp_path)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            e.backward(F.cross_entropy(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
    shapes = {(p.path, p.kind): p.shape for p in e.audit()}
    assert shapes["0", "fprop"] == (1, 128, 8, 27) and shapes["2", "wgrad"] == (1, 8, 72, 18) and shapes["2", "dgrad"] == (1, 128, 8, 72)
    names = {line["name"] for line in e.report().lines if line["level"] == "tensor"}
    assert {"act:2", "weight:2.weight", "out:2", "agrad:2", "dgrad:2", "wgrad:2.weight", "act:4"} <= names
    assert all(fits(line, line=True) for line in map(json.loads, e.report().to_ndjson().splitlines()))
    assert e.compare("fp32", (x,), lambda out: F.cross_entropy(out, y)).first.name == "out:0"
    assert "record     0 of " in str(mpsim.replay(str(tmp_path), "te-fp8-current"))


# ---- the doctor ----

def test_doctor_finds_what_is_refused():
    torch.manual_seed(0)
    model, x = Hidden(), torch.randn(5, 4)
    model.a.weight.grad = torch.ones(4, 4)
    before = state_of(model)
    e = mpsim.emulate(model, "fp32")
    found = e.doctor(x)
    assert [each["operator"] for each in found.refused] == ["aten::_cdist_forward", "aten::_cdist_backward"] and not found
    assert found.refused[0]["line"].startswith(__file__) and "native=['aten::_cdist_forward'] allows" in " ".join(str(found).split())
    assert same_state(before, state_of(model)) and model.calls == 0 and len(e.audit()) == 0
    with e, pytest.raises(mpsim.InputError, match="_cdist_forward.*its products would be computed natively"):
        model(x)
    ended = mpsim.emulate(model, "pytorch-amp-bf16").doctor(x)  # torch has no such kernel for bf16
    assert "NotImplementedError" in ended.error and "not known" in str(ended) and json.loads(ended.to_json())["ok"] is False
    assert fits(json.loads(ended.to_json())) and fits(json.loads(found.to_json()))


@pytest.mark.parametrize("inside", [False, True])
def test_doctor_changes_nothing(inside):
    model, x, y = a_net()
    want, before = [], state_of(model)
    for examines in (False, True):
        torch.manual_seed(1)
        e = mpsim.emulate(model, "te-mxfp8")
        if examines and not inside:
            assert e.doctor(lambda m: m(x, y))
        with e:
            if examines and inside:
                assert e.doctor((x, y)) and e.doctor({"x": x}, loss=lambda out: out.float().square().mean()) and e.doctor(lambda: model(x, y))
            loss = model(x, y)
            loss.backward()
        want.append([loss.detach(), *(p.grad.clone() for p in model.parameters()), torch.rand(3)])
        model.zero_grad()
    assert all(torch.equal(a, b) for a, b in zip(*want)) and all(torch.equal(v, before[0][k]) for k, v in model.state_dict().items())
    with pytest.raises(mpsim.InputError, match="gives no loss"):
        mpsim.emulate(model, "fp32").doctor(x)


# ---- the report ----

@pytest.mark.parametrize("policy, arch", [("te-nvfp4", "blackwell-scaled"), ("te-fp8-current", "hopper"), ("pytorch-amp-fp16", "hopper")])
def test_report_changes_no_bit(policy, arch):
    """Statistics read; a NaN, an overflow and a subnormal number among the weights are what they were without."""
    want = []
    for report in (False, 1):
        model, x, y = a_net()
        with torch.no_grad():
            model.fc.weight[1], model.out.weight[3], model.out.weight[4, 0] = 1e5, 6e4, float("nan")
        with mpsim.emulate(model, policy, arch=arch, report=report):
            loss = model(x, y)
            loss.backward()
        want.append([t.detach().contiguous().view(torch.int32) for t in (loss, *(p.grad for p in model.parameters()))])
    assert all(torch.equal(a, b) for a, b in zip(*want))


def test_report(tmp_path):
    model, x, y = a_net()
    with mpsim.emulate(model, "te-mxfp8", report=2) as e:
        step_of(e, model, x, y, 4)
    report = e.report()
    assert [s["step"] for s in report.steps] == [1, 2, 3, 4] and [line["step"] for line in report.lines if line["level"] == "step"] == [1, 2, 4]
    losses = [s["loss"] for s in report.steps]
    assert losses[0] > losses[-1] and all(s["agrad"]["nonzero"] > 1000 and s["act"]["nonzero"] > 1000 for s in report.steps)
    names = {line["name"] for line in report.lines if line["level"] == "tensor"}
    assert {"act:fc", "weight:fc.weight", "out:fc", "agrad:fc", "dgrad:fc", "wgrad:fc.weight", "act:att.scores.1", "act:att.scores.1@b", "dgrad:att.context.1@b"} <= names
    line = next(line for line in report.lines if line.get("name") == "act:fc")
    assert [(b["recipe"], b["axis"]) for b in line["blocks"]] == [("mxfp8", "rows"), ("mxfp8", "columns")] and 20 < line["blocks"][0]["sqnr_db"] < 40
    assert line["shape"] == [16, 32] and line["dtype"] == "BF16" and line["count"] == 512
    assert all(fits(json.loads(text), line=True) for text in report.to_ndjson().splitlines())
    assert fits(json.loads(report.to_json())) and fits(json.loads(report.stat().to_json()))
    text = str(report)
    assert max(map(len, text.splitlines())) <= 80 and text.startswith("Net under te-mxfp8, arch hopper: 4 steps") and "Verdict: " in text
    report.save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["audit.json", "report.txt", "stat.jsonl", "train.json"]
    page = subprocess.run([PROGRAM, "report", "-q", "--no-figures", "-o", "-", tmp_path], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert text.splitlines()[0] in page and all(f">{name}<" in page for name in names) and ">te-mxfp8<" in page
    for figure, name in (("heatmap", "stat.jsonl"), ("sqnr", "stat.jsonl"), ("training", "train.json")):
        done = subprocess.run([PROGRAM, "plot", "--type", "txt", "-o", tmp_path / figure, figure, tmp_path / name], stderr=subprocess.PIPE)
        assert done.returncode == 0 or b"gnuplot" in done.stderr, done.stderr


def test_statistics_are_those_of_stat():
    """Counts of the report beside `mpsim stat` of the same tensors."""
    torch.manual_seed(0)
    layer = nn.Linear(64, 32, bias=False)
    x = torch.randn(16, 64) * 1e-3
    grad = torch.randn(16, 32) * 1e-5
    with mpsim.emulate(layer, "pytorch-amp-fp16", report=1) as e:
        y = layer(x)
        y.backward(grad.to(y.dtype))
    lines = {line["name"]: line for line in e.report().lines if line["level"] == "tensor"}
    for name, t in (("weight:weight", layer.weight.detach()), ("act:(x)", x)):
        want = mpsim.stat({"x": t}, formats=["fp16"])["tensors"][0]
        got = lines[name.replace("(x)", "")]
        assert {k: v for k, v in got.items() if k not in ("level", "file", "name", "kind", "step")} == {
            k: v for k, v in want.items() if k not in ("file", "name", "kind", "step")}
    assert lines["wgrad:weight"]["formats"] == [] and lines["out:"]["formats"][0]["format"] == "fp16"


def test_report_tells_updates_and_the_scaler():
    model, x, y = a_net()
    with mpsim.emulate(model, "pytorch-amp-fp16", report=1) as e:
        step_of(e, model, x, y, 2)
        with torch.no_grad():
            model.out.weight[0, 0] = float("inf")
        step_of(e, model, x, y, 1)
        again = e.report(), e.report()
        step_of(e, model, x, y, 1)
    report = e.report()
    assert [s["scale"] for s in report.steps] == [65536, 65536, 65536, 32768] and [s["skipped"] for s in report.steps] == [False, False, True, True]
    assert report.steps[2]["events"][:1] == ["overflow"] and report.steps[2]["cause"] and report.steps[0]["updates"] > 10000
    assert again[0].steps == again[1].steps == report.steps[:3]  # asking ends no step
    assert "2 of 4 steps were skipped, the first is 3" in " ".join(str(report).split()) and "loss scale 65536 at step 1" in str(report)
    assert fits(json.loads(report.to_json())) and report.train()["runs"][0]["total"]["skipped"] == 2
    model, x, y = a_net()
    with mpsim.emulate(model, "bf16-pure", report=1) as e:
        step_of(e, model, x, y, 1)
    assert "of the updates are lost; the worst is " in " ".join(str(e.report()).split())


def test_report_of_what_underflows_names_it():
    model, x, y = a_net()
    with mpsim.emulate(model, "fp16-unscaled", report=1) as e:
        (model(x, y) * 1e-5).backward()
    report = e.report()
    assert "lose more than 1 % to zero" in str(report) and report.rows[0].lost > 0
    counts, agrads = report.steps[0]["agrad"], [row for row in report.rows if row.name.startswith(("agrad:", "dgrad:"))]
    assert counts["lost"] == sum(row.lost for row in agrads) and counts["nonzero"] == sum(row.nonzero for row in agrads)


def test_report_off_and_thinned():
    model, x, y = a_net()
    with mpsim.emulate(model, "fp32", report=False) as e:
        step_of(e, model, x, y, 1)
        assert not e.optimizers.lost_now  # which took longer than the step
    with pytest.raises(mpsim.InputError, match="does not count"):
        e.report()
    with mpsim.emulate(model, "te-mxfp8", report={3}) as e:
        step_of(e, model, x, y, 4)
    assert {line["step"] for line in e.report().lines if line["level"] == "tensor"} == {3} and len(e.report().steps) == 4
    with pytest.raises(mpsim.InputError, match="report: every"):
        mpsim.emulate(model, "fp32", report=-1)


# ---- comparisons ----

def test_compare():
    model, x, y = a_net()
    before = state_of(model)
    e = mpsim.emulate(model, "te-mxfp8", arch="blackwell-scaled")
    found = e.compare("fp32", (x, y))
    assert same_state(before, state_of(model)) and e.compare("te-mxfp8", (x, y)).first is None
    names = [row.name for row in found.rows]
    assert names[0] == "out:att" and found.first.name == "out:att" and {"dgrad:fc", "wgrad:fc.weight", "grad:fc.weight", "grad:emb.weight"} <= set(names)
    errors = [row.error for row in found]
    assert errors == sorted(errors, reverse=True) and 0 < errors[-1] < errors[0] < 1
    # the same by hand
    grads = []
    for policy in ("te-mxfp8", "fp32"):
        with mpsim.emulate(model, policy, arch="blackwell-scaled"):
            model(x, y).backward()
        grads.append(model.fc.weight.grad.double())
        model.zero_grad()
    by_hand = (grads[0] - grads[1]).norm() / grads[1].norm()
    assert next(row for row in found if row.name == "grad:fc.weight").error == pytest.approx(float(by_hand), rel=1e-12)
    text = str(found)
    assert max(map(len, text.splitlines())) <= 80 and "the first in order of execution is out:att" in " ".join(text.split())
    assert fits(json.loads(found.to_json()))
    with e:
        assert [row.error for row in e.compare("fp32", (x, y))] == errors
        assert e.compare("te-mxfp8", (x, y), overrides={"out": "fp32"}).first.name == "out:out"


# ---- the search for what breaks a run ----

class Tall(nn.Module):
    """A sum of 3,200,000 in layer b, which is no number of fp16."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(8, 8, bias=False) for _ in range(3))
        with torch.no_grad():
            for layer in (self.a, self.b, self.c):
                layer.weight.fill_(0.125)
            self.b.weight.fill_(5e4)

    def forward(self, x):
        return self.c(self.b(self.a(x)) * 1e-6).float().sum()


def test_bisect_finds_the_product():
    model, x = Tall(), torch.full((4, 8), 8.0)
    before = state_of(model)

    def metric():
        loss = model(x)
        loss.backward()
        return loss.item()

    e = mpsim.emulate(model, "fp16-unscaled")
    found = e.bisect(metric)
    assert found.sets == [[("b", "fprop")]] and found.runs == len(found.log) <= 9 and len(found.units) == 8
    assert same_state(before, state_of(model)) and found.overrides == {"b/fprop": "fp32"}
    assert e.bisect(metric).log == found.log  # deterministic
    with mpsim.emulate(model, "fp16-unscaled", overrides=found.overrides):
        assert torch.isfinite(model(x))
    assert "1 of 8 units breaks the metric" in str(found) and fits(json.loads(found.to_json()))
    with e:
        assert e.bisect(lambda e: bool(torch.isfinite(e.model(x)))).sets == found.sets


def test_bisect_says_where_nothing_is_found():
    model, x = Tall(), torch.full((4, 8), 8.0)
    e = mpsim.emulate(model, "fp16-unscaled")
    assert "is good under fp16-unscaled" in e.bisect(lambda: True).verdict
    assert "with all products under fp32, too" in e.bisect(lambda: False and model(x)).verdict
    with pytest.raises(mpsim.InputError, match="bisect: metric"):
        e.bisect(3)
    with pytest.raises(mpsim.InputError, match="expected True, False or a number, found str"):
        e.bisect(lambda: "good")


@pytest.mark.parametrize("sets", [[{3}], [{1, 6}], [{0, 7}, {4}], [{2, 3, 5}, {1}, {6, 7}]])
def test_bisect_of_what_acts_together(sets):
    """Delta debugging alone, on sets that are known: each is found, whole, and nothing beside it."""
    from mpsim.emulate._bisect import Search, _search

    class Known(Search):
        def value(self, low):
            self.units = [(str(i), "fprop") for i in range(8)]
            low = {int(path) for path, _ in (self.units if low is None else low)}
            return not any(each <= low for each in sets)

    from mpsim._policy import Policy

    found = _search(Known(None, None, Policy.open("fp32"), None), "policy")
    assert sorted(sorted(int(path) for path, _ in each) for each in found.sets) == sorted(map(sorted, sets))
    assert found.runs <= 60 and len({frozenset(units) for units, _, _ in found.log}) == found.runs


# ---- the trace ----

def test_record(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        model, x, y = a_net()
        e = mpsim.emulate(model, "te-mxfp8")
        weight = model.fc.weight.detach().clone()
        e.record(folder, every=1)
        with e:
            step_of(e, model, x, y, 3, torch.optim.AdamW)
    assert sorted(os.listdir(folders[0])) == ["step_000001", "step_000002", "step_000003"]
    step = mpsim.open(folders[0] / "step_000001" / "rank_00000.safetensors")
    names = set(step)
    assert {"act:fc", "out:fc", "agrad:fc", "dgrad:fc", "weight:fc.weight", "master:fc.weight", "wgrad:fc.weight", "wgrad:ln.bias"} <= names
    assert torch.equal(torch.as_tensor(step["master:fc.weight"][:]), weight) and step["weight:fc.weight"].format.name == "bf16"
    assert step["out:fc"].shape == (16, 64) and step["agrad:att.context.1"].format.name == "bf16"
    for words in (["diff", *folders], ["stat", "-q", folders[0]], ["replay", "-q", "-P", "te-mxfp8", folders[0]],
                  ["report", "-q", "--no-figures", "-o", tmp_path / "page.html", folders[0]]):
        done = subprocess.run([PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0, (words, done.stdout[-500:], done.stderr)
    replayed = mpsim.replay(str(folders[0]), "te-mxfp8")
    assert "record     0 of 90,000 carried weights, moments and masters differ" in str(replayed)  # the trainer's steps, bit for bit
    stated = {t["name"]: t for t in mpsim.stat(folders[0], formats="mxfp8")["tensors"] if t["step"] == 1}
    line = next(line for line in e.report().lines if line.get("name") == "agrad:out" and line["step"] == 1)
    rows = {k: line["blocks"][0][k] for k in ("underflow", "overflow", "inexact", "blocks")}
    assert rows == {k: stated["agrad:out"]["blocks"][0][k] for k in rows} and line["amax"] == stated["agrad:out"]["amax"]


def test_record_changes_nothing(tmp_path):
    want = []
    for records in (False, True):
        model, x, y = a_net()
        with mpsim.emulate(model, "te-nvfp4", arch="blackwell-scaled") as e:
            if records:
                trace = e.record(tmp_path, kinds=["act", "wgrad"])
            step_of(e, model, x, y, 2)
            if records:
                trace.close()
            step_of(e, model, x, y, 1)
        want.append([v.clone() for v in model.state_dict().values()])
    assert all(torch.equal(a, b) for a, b in zip(*want)) and len(os.listdir(tmp_path)) == 2
    assert {name.partition(":")[0] for name in mpsim.open(tmp_path / "step_000002" / "rank_00000.safetensors")} == {"act", "wgrad"}


# ---- scripts ----

PLAIN = """
import sys
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x, y = torch.randn(64, 16), torch.randint(0, 4, (64,))
for step in range(int(sys.argv[1])):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("loss", loss.item(), __name__)
if len(sys.argv) > 2:
    sys.exit(int(sys.argv[2])) if sys.argv[2].isdigit() else model.no_such_thing
"""
AMP = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        y = torch.relu(self.a(x))
        return self.b(y)

if __name__ == "__main__":
    torch.manual_seed(0)
    model, scaler = Net(), torch.amp.GradScaler("cpu", init_scale=1024.0)
    model.a(torch.zeros(1, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    x, y = torch.randn(64, 16), torch.randint(0, 4, (64,))
    for step in range(4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
            loss = nn.functional.cross_entropy(out, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        optimizer.zero_grad()
    print(out.dtype, loss.item())
"""


@pytest.fixture
def script(tmp_path, monkeypatch, capfd):
    """Runs a script under a policy, in this process: what a process of its own would take is torch's time."""
    from mpsim.emulate._script import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(text, *words, code=0, options=("-P", "te-mxfp8")):
        (tmp_path / "train.py").write_text(text)
        got = main([*options, "train.py", *words])
        out, err = capfd.readouterr()
        assert got == code, err
        return out, err, tmp_path
    return run


def test_script(script):
    out, err, folder = script(PLAIN, "3")
    assert out.startswith("loss ") and out.endswith("__main__\n") and "Sequential under te-mxfp8, arch hopper" in err and "Verdict" in err
    report = json.loads((folder / "emulate.json").read_text())
    assert fits(report) and report["config"]["net"] == "Sequential" and report["runs"][0]["policy"]["name"] == "te-mxfp8"
    assert {json.loads(line)["level"] for line in (folder / "emulate.jsonl").read_text().splitlines()} == {"config", "tensor", "step", "kind", "total"}
    assert len(json.loads((folder / "emulate.audit.json").read_text())["products"]) == 5 and "products" in (folder / "emulate.txt").read_text()
    again = subprocess.run([sys.executable, "-W", "error", "-m", "mpsim.emulate", "-P", "te-mxfp8", "--", "train.py", "3"], cwd=folder,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (again.returncode, again.stdout.decode()) == (0, out)
    plain = subprocess.run([sys.executable, "train.py", "3"], cwd=folder, stdout=subprocess.PIPE, check=True).stdout.decode()
    assert 0 < abs(float(plain.split()[1]) - float(out.split()[1])) < 0.05  # it is emulated


def test_script_that_fails(script):
    _, err, folder = script(PLAIN, "1", "wrong", code=1, options=("-P", "fp32", "-q", "-o", "other.json"))
    assert "no_such_thing" in err and "_script.py" not in err and "Verdict" not in err and fits(json.loads((folder / "other.json").read_text()))
    script(PLAIN, "1", "7", code=7)
    _, err, _ = script("import torch\n", code=3)
    assert err == "mpsim: emulate: the script called no model of PyTorch and built no optimizer: nothing was emulated\n"
    _, err, _ = script(PLAIN, "1", code=4, options=("-P", "no-such"))
    assert err.splitlines()[-1].startswith("mpsim: policy: no-such: no such file")
    _, err, _ = script(PLAIN.replace("nn.functional.cross_entropy(model(x), y)", "torch.cdist(model(x), model(x)).sum()"), "1", code=3)
    assert "_euclidean_dist in" in err and "(train.py:10)" in err
    _, err, _ = script(PLAIN + "\nother = nn.Linear(2, 2)\ntorch.optim.SGD(other.parameters(), lr=1.0)\n", "1", code=3)
    assert "a second model, Linear, beside Sequential" in err


def test_script_with_autocast_and_a_scaler(script):
    out, err, folder = script(AMP, options=("-P", "pytorch-amp-fp16", "--seed", "3", "--record", "run"))
    assert out.startswith("torch.float16 ") and "regions of autocast of the script did nothing (4)" in " ".join(err.split())
    steps = json.loads((folder / "emulate.json").read_text())["runs"][0]["steps"]
    assert steps[0]["scale"] == 1024 and 1 < steps[0]["loss"] < 2 and os.path.isdir(folder / "run" / "step_000001")


# ---- docstrings, types ----

def test_docstrings():
    failed, tried = doctest.testmod(importlib.import_module("mpsim.emulate._emulator"), extraglobs={"mpsim": mpsim, "torch": torch})
    assert tried and not failed
    for name, thing in vars(importlib.import_module("mpsim.emulate._emulator").Emulator).items():
        assert name.startswith("_") or thing.__doc__, name
    assert "overrides: other policies" in pydoc.plain(pydoc.render_doc(mpsim.emulate))  # help(mpsim.emulate)


USE = """
import torch
import mpsim

model = torch.nn.Linear(2, 2)
with mpsim.emulate(model, "te-mxfp8", arch="hopper", overrides={"": "bf16"}) as e:
    e.backward(model(torch.ones(2, 2)).sum())
reveal_type(e)  # mpsim.emulate._emulator.Emulator
reveal_type(e.report().lines)  # list[dict[str, Any]]
reveal_type(e.doctor(torch.ones(2, 2)).ok)  # bool
reveal_type(e.bisect(lambda: 1.0).runs)  # int
mpsim.emulate(model, polici="fp32")  # error
"""


def test_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-pretty", "use.py"], cwd=tmp_path, stdout=subprocess.PIPE)
    said = [each for each in done.stdout.decode().splitlines() if "defined in" not in each and not each.startswith("Found")]
    assert len(said) == 5, said
    for number, line in enumerate(USE.splitlines(), 1):
        _, mark, wanted = line.partition("  # ")
        if mark:
            assert any(each.startswith(f"use.py:{number}: ") and (wanted in each or wanted == "error" and ": error: " in each) for each in said), (line, said)


# ---- mistakes of a user: one clear line ----

def refused(match, call):
    with pytest.raises(mpsim.Error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_arguments_that_are_wrong_are_named():
    for match, how in (("^policy: te-nvpf4: no such file.*did you mean te-nvfp4", {"policy": "te-nvpf4"}), ("^arch: expected the name", {"arch": None}),
                       ("^unknown architecture .*'h100'; the architectures are .*hopper", {"arch": "h100"}),
                       ("^policy: unknown key 'precison': did you mean precision", {"policy": {"precison": "bf16"}}),
                       ("^overrides: expected a dict", {"overrides": ["0"]})):
        refused(match, lambda: mpsim.emulate(torch.nn.Linear(4, 4), **how))


def test_a_precision_has_its_name():
    assert "under bf16, arch hopper" in str(mpsim.emulate(torch.nn.Linear(4, 4), "bf16").report())


def test_outside_of_with_is_refused():
    model = torch.nn.Linear(4, 4)
    e = mpsim.emulate(model, "pytorch-amp-fp16")
    refused("^e.backward: the emulation is not entered", lambda: e.backward(model(torch.ones(2, 4)).sum()))
    assert "inside of `with" in " ".join(str(e.report()).split())


def test_shapes_that_do_not_fit_are_torchs_error():
    model = torch.nn.Linear(4, 4)
    with mpsim.emulate(model, "bf16"), pytest.raises(RuntimeError, match="3x3 and 4x4"):
        model(torch.ones(3, 3))


def test_a_gradscaler_of_the_caller_is_told_from_a_forgotten_scale():
    for own, words in ((True, "the script's own GradScaler"), (False, "loss.backward\\(\\) was called")):
        model, scaler = torch.nn.Linear(4, 4), torch.amp.GradScaler("cpu", init_scale=8, enabled=own)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with mpsim.emulate(model, "pytorch-amp-fp16") as e:
            scaler.scale(model(torch.ones(2, 4)).sum()).backward()
            scaler.step(optimizer)
        assert re.search(words, " ".join(e.notes))


def test_kinds_have_only_casts_of_all_their_elements():
    """`mpsim plot` takes what a cast of a kind has not compared for lost."""
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 32))
    with mpsim.emulate(model, "te-nvfp4", overrides={"1": "bf16"}) as e:
        e.backward(model(torch.randn(32, 32)).square().sum())
    kinds = [line for line in e.report().lines if line["level"] in ("kind", "total")]
    assert kinds and all(cast["compared"] == line["count"] for line in kinds for cast in line["formats"])
