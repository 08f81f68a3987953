"""What a user reads of an emulation: the audit, the doctor, the report, the trace, comparisons, the search for what breaks a run."""
import json

import pytest
from conftest import mpsim, peer

torch = peer("torch")
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
    assert len(json.loads(audit.to_json())["products"]) == 18


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
