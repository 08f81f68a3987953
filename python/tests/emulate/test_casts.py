"""arch="torch": the operands of any policy, multiplied by torch's own float32 products."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
mpsim = pytest.importorskip("mpsim")
pytest.importorskip("mpsim.emulate._emulator", exc_type=ImportError)
nn, F = torch.nn, torch.nn.functional


def net(kind):
    torch.manual_seed(0)
    if kind == "conv":
        return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.ReLU(), nn.ConvTranspose2d(16, 4, 3, stride=2, output_padding=1)), torch.randn(2, 3, 8, 8)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32)), torch.randn(48, 64)


def step(kind, policy, arch):
    """Gradients, and by (path, kind, role, transposed) what the recipes made of the operands of the first step's forward pass."""
    model, x = net(kind)
    seen = {}
    with mpsim.emulate(model, policy, arch=arch) as e:
        e.on_operand(lambda **v: seen.setdefault((v["path"], v["role"], v["transposed"]), v))
        y = model(x)
        y.float().square().mean().backward()
        audit = e.audit()
    return y, [p.grad.clone() for p in model.parameters()], seen, audit, e.notes


@pytest.mark.parametrize("policy, other", [("te-fp8-current", "hopper"), ("te-mxfp8", "blackwell-scaled"), ("te-nvfp4", "blackwell-scaled"),
                                           ("deepseek-v3-fp8", "hopper")])
def test_operands_are_those_of_other_architectures(policy, other):
    """other: one that multiplies codes with their scales: hopper rounds their products to bf16."""
    ours, theirs = (step("linear", policy, arch) for arch in ("torch", other))
    assert ours[2].keys() == theirs[2].keys() and ours[2]
    for key, value in ours[2].items():
        if key[:2] in (("0", "act"), ("0", "weight"), ("2", "weight")):  # what lies behind products has their bits
            for name in ("codes", "scales", "values"):
                assert np.array_equal(value[name], theirs[2][key][name]), (key, name)
    assert torch.allclose(ours[0].float(), theirs[0].float(), rtol=0.02, atol=0.02)
    for a, b in zip(ours[1], theirs[1]):
        assert torch.linalg.vector_norm(a - b) <= 0.05 * torch.linalg.vector_norm(b)


@pytest.mark.parametrize("policy, scaled", [("te-fp8-current", True), ("deepseek-v3-fp8", True), ("te-mxfp8", False)])
def test_products_are_torchs(policy, scaled):
    """Of dequantised operands, rounded once."""
    y, _, seen, _, _ = step("linear", policy, "torch")
    model, x = net("linear")
    values = [torch.from_numpy(seen["0", role, False]["values"].copy()) for role in ("act", "weight")]
    sums = values[0] @ values[1].T + model[0].bias.detach().to(torch.bfloat16).float()
    with mpsim.emulate(model, policy, arch="torch"):
        z = model[0](x)
    assert z.dtype == torch.bfloat16 and torch.equal(z, sums.to(torch.bfloat16))


def test_policies_without_recipes():
    model, x = net("linear")
    with mpsim.emulate(model, "fp32", arch="torch"):
        assert torch.equal(model(x), net("linear")[0](x))
    with mpsim.emulate(model, "pytorch-amp-bf16", arch="torch"):
        z = model[0](x)
    w, b = (p.detach().to(torch.bfloat16).float() for p in model[0].parameters())
    assert torch.equal(z, (x.to(torch.bfloat16).float() @ w.T + b).to(torch.bfloat16))


@pytest.mark.parametrize("policy", ["fp32", "te-fp8-current", "pytorch-amp-fp16"])
def test_convolutions(policy):
    ours, theirs = (step("conv", policy, arch) for arch in ("torch", "hopper"))
    assert torch.allclose(ours[0].float(), theirs[0].float(), rtol=0.02, atol=0.02)
    for a, b in zip(ours[1], theirs[1]):
        assert torch.linalg.vector_norm(a - b) <= 0.05 * torch.linalg.vector_norm(b)


def test_audit_says_so():
    _, _, _, audit, notes = step("linear", "te-fp8-current", "torch")
    assert {(p.kind, p.model, p.evidence) for p in audit} == {(k, "torch float32", "native") for k in ("fprop", "dgrad", "wgrad")} - {
        () } and len(audit) >= 5
    assert any("other machines" in line for line in notes)
    assert "torch float32 (native)" in str(audit)


def test_counts_are_those_of_roundings():
    """What the rounding of results did, as the library counts it."""
    lost = []
    for arch in ("torch", "hopper"):
        model, x = net("linear")
        with mpsim.emulate(model, "pytorch-amp-fp16", arch=arch) as e:
            (model(x * 1e-3).float().mean() * 1e-4).backward()
            e.core.report.end()
            lost.append(e.core.report.steps[0])
    for column in ("act", "agrad", "wgrad"):
        for name in ("nonzero", "lost"):
            a, b = (step[column][name] for step in lost)
            assert abs(a - b) <= 0.02 * max(a, b, 50)


def test_tiles_are_refused():
    with pytest.raises(mpsim.Error, match="has no tiles of attention"):
        mpsim.emulate(net("linear")[0], "fp32", arch="torch", attention="tiled")
