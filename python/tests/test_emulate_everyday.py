"""mpsim.emulate in trainings of every day: products of vectors, steps of several optimizers, models that change, long runs."""
import gc
import io

import numpy as np
import pytest

import mpsim
from mpsim import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")

nn, functional = torch.nn, torch.nn.functional


@pytest.fixture(autouse=True)
def one_thread():
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n)


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def bf16(x):
    return x.bfloat16().float()


# ---- products of vectors, and of three operands ----

class Vectors(nn.Module):
    """w x, and its product with v."""

    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(randn(6, 5)), nn.Parameter(randn(6, seed=2))

    def forward(self, x):
        return torch.dot(self.w @ x, self.v)


def test_gradients_of_vectors_are_products():
    """autograd writes the gradients of mv and dot as elementwise products: they are outer ones, in the formats of gradients."""
    m, x = Vectors(), randn(5, seed=3).requires_grad_()
    with mpsim.emulate(m, "pytorch-amp-bf16", arch="exact") as e:
        y = m(x)
        y.backward()
    kinds = [(p.operator, p.kind, p.shape) for p in e.audit()]
    assert sorted(kind for operator, kind, _ in kinds if operator == "aten::mul") == ["dgrad", "wgrad", "wgrad"]
    w, v = bf16(m.w.detach()), bf16(m.v.detach())
    assert torch.equal(m.w.grad, bf16(torch.outer(v, bf16(x.detach())))) and torch.equal(x.grad, bf16((w.double().t() @ v.double()).float()))
    h = bf16((w.double() @ bf16(x.detach()).double()).float())
    assert torch.equal(m.v.grad, h)


def test_products_of_nn_bilinear():
    """Its gradients of both inputs are products of kind dgrad, that of the weight of kind wgrad; all are of its module."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(5, 8))
    m.add_module("pair", nn.Bilinear(8, 6, 7))
    x, z = randn(4, 8).requires_grad_(), randn(4, 6, seed=2).requires_grad_()
    with mpsim.emulate(m, "fp32", arch="exact") as e:
        m.pair(x, z).square().sum().backward()
    audit = e.audit()
    assert {(p.path, p.operator) for p in audit} == {("pair", "aten::_trilinear")}
    assert [p.kind for p in audit] == ["fprop", "fprop", "dgrad", "dgrad", "wgrad", "wgrad", "dgrad"] and sum(p.calls for p in audit) == 8
    other = nn.Bilinear(8, 6, 7).double()
    other.load_state_dict(m.pair.state_dict())
    wide = [t.detach().double().requires_grad_() for t in (x, z)]
    other(*wide).square().sum().backward()
    for a, b in zip((x, z, *m.pair.parameters()), (*wide, *other.parameters())):
        assert torch.allclose(a.grad.double(), b.grad, rtol=1e-4, atol=1e-5)


# ---- steps ----

def a_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))


@pytest.mark.parametrize("policy", ("te-mxfp8", "pytorch-amp-fp16"))
def test_the_loss_of_micro_batches(policy):
    """A step's loss is that which the optimizer gets the gradient of, whoever multiplies it: the sum over the step's backward passes."""
    m, losses = a_net(), []
    optimizer = torch.optim.SGD(m.parameters(), 0.05)
    with mpsim.emulate(m, policy) as e:
        for step in range(2):
            for i in range(4):
                loss = m(randn(8, 16, seed=4 * step + i)).float().square().mean()
                losses.append(loss.item())
                e.backward(loss / 4)
            optimizer.step()
            optimizer.zero_grad()
            x = randn(8, 16).requires_grad_()
            torch.autograd.grad(m(x).float().sum(), x)  # of an input: no part of the training
    steps = e.report().steps
    assert [s["loss"] for s in steps[:2]] == pytest.approx([sum(losses[:4]) / 4, sum(losses[4:]) / 4], rel=1e-6)
    assert [s["passes"] for s in steps[:2]] == [4, 4] and ", the sum of " in " ".join(str(e.report()).split())
    m = a_net()
    with mpsim.emulate(m, "bf16") as e:
        y = m(randn(8, 16)).float()
        torch.autograd.backward([y.mean(), y.square().mean()], [torch.tensor(0.5), None])
    assert e.report().steps[0]["loss"] == pytest.approx(0.5 * y.mean().item() + y.square().mean().item(), rel=1e-6)


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.g = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
        self.d = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def optimizers(self):
        return [torch.optim.Adam(part.parameters(), 2e-3, betas=(0.5, 0.999)) for part in (self.d, self.g)]


def an_iteration(m, e, optimizers, i):
    """Two steps: the discriminator's, then the generator's."""
    score, (of_d, of_g) = functional.binary_cross_entropy_with_logits, optimizers
    made, ones = m.g(randn(32, 8, seed=i)), torch.ones(32, 1)
    true, false = m.d(randn(32, 16, seed=1000 + i) + 1), m.d(made.detach())
    loss = score(true.float(), ones) + score(false.float(), 0 * ones)
    of_d.zero_grad()
    e.backward(loss)
    e.step(of_d)
    of_g.zero_grad()
    other = score(m.d(made).float(), ones)
    e.backward(other)
    e.step(of_g)
    return loss.item(), other.item()


@pytest.mark.parametrize("policy", ("te-nvfp4", "te-fp8-delayed", "pytorch-amp-fp16"))
def test_a_gan_has_a_step_for_each_optimizer(policy):
    """A step is an update: losses, lost updates and the scaler's events are told by optimizer; a run that is resumed has the bits of a whole one."""
    m = Gan()
    optimizers = m.optimizers()
    with mpsim.emulate(m, policy, seed=3) as e:
        told = [an_iteration(m, e, optimizers, i) for i in range(3)]
        saved = torch.load(_written(e.state_dict()), weights_only=True)
        kept = [{k: v.clone() for k, v in m.state_dict().items()}, *(o.state_dict() for o in optimizers)]
        kept = torch.load(_written(kept), weights_only=True)
        told += [an_iteration(m, e, optimizers, i) for i in range(3, 6)]
    assert e.steps == 12
    report = e.report()
    runs = dict(report.runs())
    assert list(runs) == ["Adam of d", "Adam of g"] and [[s["step"] for s in steps] for steps in runs.values()] == [[1, 3, 5, 7, 9, 11], [2, 4, 6, 8, 10, 12]]
    for which, steps in enumerate(runs.values()):
        assert [s["loss"] for s in steps] == pytest.approx([each[which] for each in told], rel=1e-6)
        assert all(s["updates"] > 500 for s in steps)
    assert "Adam of d: loss " in str(report) and [run["policy"]["name"] for run in report.train()["runs"]] == [f"{policy}, Adam of d", f"{policy}, Adam of g"]
    again = Gan()
    others = again.optimizers()
    again.load_state_dict(kept[0])
    for optimizer, state in zip(others, kept[1:]):
        optimizer.load_state_dict(state)
    with mpsim.emulate(again, policy, seed=3) as e:
        e.load_state_dict(saved)
        assert [an_iteration(again, e, others, i) for i in range(3, 6)] == told[3:]
    assert all(torch.equal(a, b) for a, b in zip(m.parameters(), again.parameters()))


def _written(what):
    file = io.BytesIO()
    torch.save(what, file)
    file.seek(0)
    return file


# ---- what a policy names ----

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        x = self.first(x)
        return x + self.second(x)


def test_a_plain_sum_follows_its_operands():
    """A kept module's result is float32, and so is what it is added to: a note says that `mpsim train` has a layer there."""
    for keep, dtype in (([], torch.bfloat16), (["first"], torch.float32)):
        with mpsim.emulate(Block(), {"precision": "bf16", "autocast": "megatron", "params": "bf16", "keep_fp32": keep}) as e:
            assert e.model(randn(4, 16)).dtype == dtype
        assert any("hN.add1" in note for note in e.notes) == bool(keep)


def test_a_policy_of_a_dict_has_a_name():
    for keys, name in (({"precision": "fp8", "fp8_recipe": "torchao-tensorwise"}, "dict of fp8 torchao-tensorwise"), ({"precision": "bf16", "name": "mine"}, "mine"),
                       ({"clip": 1.0}, "dict")):
        e = mpsim.emulate(a_net(), keys)
        with e:
            e.model(randn(4, 16)).sum().backward()
        assert str(e.report()).startswith(f"Sequential under {name}, ") and e.report().train()["runs"][0]["policy"]["name"] == name


def test_averages_of_weights_see_all_bits():
    """What a user computes of parameters outside of modules and without gradients is float32, whatever the model reads."""
    m, mine = a_net(), [p.detach().clone() for p in a_net().parameters()]
    for policy in ("te-mxfp8", "bf16-kahan", "megatron-bf16"):
        with mpsim.emulate(m, policy), torch.no_grad():
            for average, p in zip(mine, m.parameters()):
                want = torch.from_numpy(average.numpy() + np.float32(0.1) * (p.numpy() - average.numpy()))
                average.lerp_(p, 0.1)
                assert torch.allclose(average, want, rtol=1e-6, atol=0)
                average.copy_(p.data)
                assert np.array_equal(average.numpy(), p.numpy())


def test_an_evaluation_behind_the_last_step_is_no_step():
    m = a_net()
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    with mpsim.emulate(m, "te-mxfp8") as e:
        two_steps(m, e, optimizer, randn(8, 16))
        with torch.no_grad():
            m(randn(8, 16))
    assert len(e.report().steps) == e.steps == 2 and "not finite" not in str(e.report())


def test_a_clip_of_scaled_gradients_is_noted():
    for unscale in (False, True):
        m = a_net()
        optimizer = torch.optim.SGD(m.parameters(), 0.1)
        with mpsim.emulate(m, "pytorch-amp-fp16") as e:
            e.backward(m(randn(8, 16)).float().square().mean())
            if unscale:
                e.unscale()
            torch.nn.utils.clip_grad_value_(m.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        assert any("e.unscale()" in note for note in e.notes) != unscale


@pytest.mark.parametrize("policy", ("te-fp8-current", "te-mxfp8"))
def test_inputs_that_are_made_of_gradients(policy):
    """An adversarial input is an activation, as it would be were it read from a file."""
    m, made = a_net(), []
    x = randn(32, 16).requires_grad_()
    with mpsim.emulate(m, policy):
        g, = torch.autograd.grad(m(x).float().square().mean(), x)
        inputs = [x.detach() + 0.1 * g.sign(), g, x.detach() * 2]
    for come in (False, True):
        with mpsim.emulate(m, policy, report=False) as e:
            e.core.step = 1  # as late
            if come:
                g, = torch.autograd.grad(m(x).float().square().mean(), x)
                seen = [x.detach() + 0.1 * g.sign(), g, x.detach() * 2]
                assert all(torch.equal(a, b) for a, b in zip(seen, inputs))
            m(seen[0] if come else inputs[0]).float().square().mean().backward()
            m(seen[1] if come else inputs[1]).float().square().mean().backward()
            made.append([p.grad.clone() for p in m.parameters()])
            m.zero_grad()
            assert not any("no product of a forward pass" in note for note in e.notes)
    assert all(torch.equal(a, b) for a, b in zip(*made))


def test_an_optimizer_that_calls_its_closure_natively():
    m, x = a_net(), randn(32, 16)
    optimizer = torch.optim.LBFGS(m.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = m(x).float().square().mean()
        loss.backward()
        told.append(loss.item())
        return loss

    with mpsim.emulate(m, "bf16", native=["LBFGS"]) as e:
        for _ in range(2):
            told = []
            optimizer.step(closure)
    assert e.steps == len(e.report().steps) == 2 and e.report().steps[1]["loss"] == pytest.approx(told[-1]) and "passes" not in e.report().steps[1]
    with mpsim.emulate(m, "pytorch-amp-fp16", native=["LBFGS"]) as e, pytest.raises(InputError, match="LBFGS calls a closure while it runs natively"):
        optimizer.step(closure)


def test_optimizers_that_step_in_the_backward_pass():
    """One for each parameter, in its hook: a step has the updates of all of them, and the bits of an optimizer of all."""
    made = []
    for hooked in (False, True):
        m = a_net()
        of = {p: torch.optim.SGD([p], 0.1) for p in m.parameters()}

        def step(p):
            of[p].step()
            of[p].zero_grad()

        if hooked:
            for p in m.parameters():
                p.register_post_accumulate_grad_hook(step)
        with mpsim.emulate(m, "te-mxfp8") as e:
            for i in range(3):
                m(randn(8, 16, seed=i)).float().square().mean().backward()
                for p in () if hooked else m.parameters():
                    step(p)
        steps = e.report().steps
        made.append([p.detach().clone() for p in m.parameters()])
        assert e.steps == 3 and [s["step"] for s in steps] == [1, 2, 3] and all(len(s["optimizers"]) == 4 and s["updates"] > 500 for s in steps)
    assert all(torch.equal(a, b) for a, b in zip(*made))


# ---- a model that changes ----

class Adapter(nn.Module):
    """A low-rank adapter around a layer."""

    def __init__(self, base):
        super().__init__()
        self.base, self.a, self.b = base, nn.Linear(base.in_features, 4, bias=False), nn.Linear(4, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def adapted(m):
    torch.manual_seed(1)
    m[0].requires_grad_(False)
    m[0] = Adapter(m[0])
    return m


def two_steps(m, e, optimizer, x):
    for _ in range(2):
        e.backward(m(x).float().square().mean())
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("policy", ("te-mxfp8", "bf16-pure"))
def test_modules_that_come_later_are_emulated(policy):
    """Adapters that are put in while a model is emulated have the bits of those that were there before; so has a group that is added."""
    x, made = randn(32, 16), []
    for late in (False, True):
        m = a_net() if late else adapted(a_net())
        with mpsim.emulate(m, policy) as e:
            if late:
                adapted(m)
            optimizer = torch.optim.AdamW(m[2].parameters(), 1e-2)
            optimizer.add_param_group({"params": [*m[0].a.parameters(), *m[0].b.parameters()]})
            two_steps(m, e, optimizer, x)
            made.append([p.detach().clone() for p in m.parameters()])
            kinds = {(p.path, p.kind) for p in e.audit()}
        assert ("0.a", "wgrad") in kinds and ("0.base", "wgrad") not in kinds and {p.roles[1] for p in e.audit() if p.kind == "fprop"} == {"weight"}
        assert e.report().steps[0]["updates"] > 100
    assert all(torch.equal(a, b) for a, b in zip(*made))


def test_parameters_of_others_in_an_optimizer_are_refused():
    m, scale = a_net(), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([*m.parameters(), scale], 0.1)
    with mpsim.emulate(m, "pytorch-amp-fp16") as e:
        e.backward((m(randn(4, 16)) * scale).float().mean())
        with pytest.raises(InputError, match=r"optimizer torch.optim.sgd.SGD has a parameter of shape \[1\] in group 0 that is not the model's"):
            optimizer.step()


@pytest.mark.parametrize("policy", ("te-mxfp8", "bf16-pure"))
def test_data_that_is_replaced(policy):
    """`p.data = other`, as averages of weights are swapped in: the parameter is a weight all the same, with its new numbers."""
    m, other, x = a_net(), a_net(), randn(8, 16)
    with torch.no_grad():
        for p in other.parameters():
            p.mul_(-0.5)
    with mpsim.emulate(other, policy):
        want = other(x).detach().clone()
    with mpsim.emulate(m, policy) as e:
        m(x)
        for p, q in zip(m.parameters(), other.parameters()):
            p.data = q.detach().clone()
        y = m(x)
        y.float().sum().backward()
    assert torch.equal(y, want) and {p.roles[1] for p in e.audit() if p.kind == "fprop"} == {"weight"}


# ---- long runs ----

def test_shapes_that_vary_do_not_fill_the_audit():
    m, n = nn.Sequential(nn.Linear(4, 4)), 200
    with mpsim.emulate(m, "fp32", report=False) as e:
        for rows in range(1, n + 1):
            m(randn(rows, 4)).sum().backward()
    audit = e.audit()
    assert len(audit) == 2 * 65 and sum(p.calls for p in audit) == 2 * n and [p.merged for p in audit].count(True) == 2
    assert sum(p.multiply_adds for p in audit if p.kind == "fprop") == 16 * n * (n + 1) // 2
    assert "several" in str(audit) and next(p for p in audit if p.merged).calls == n - 64


def test_passes_without_gradients_do_not_fill_memory(monkeypatch):
    """What passes without a backward pass have left goes with their graphs; what is held, as by an episode, stays."""
    from mpsim.emulate import _paths

    def episode(e, m, limit):
        monkeypatch.setattr(_paths, "LIVING", limit)
        e.core.paths.look = limit
        losses = [m(randn(2, 16, seed=i)).float().square().mean() for i in range(40)]
        for i in range(300):
            m(randn(2, 16, seed=i))
        held = len(e.core.paths.marks)
        sum(losses).backward()
        made = [p.grad.clone() for p in m.parameters()]
        m.zero_grad()
        return held, made

    m = a_net()
    with mpsim.emulate(m, "te-nvfp4", report=False) as e:
        few, a = episode(e, m, 64)
    with mpsim.emulate(m, "te-nvfp4", report=False) as e:
        many, b = episode(e, m, 1 << 15)
    assert few < 300 < 600 < many and all(torch.equal(x, y) for x, y in zip(a, b))


def test_vectors_beside_matrices_of_muon():
    """Of a policy with Muon the matrices are Muon's, the biases beside them the optimizer's: a bias has the placement of its module."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    o = torch.optim.AdamW(m.parameters(), lr=0.01)
    before = [p.detach().clone() for p in m.parameters()]
    with mpsim.emulate(m, "muon-bf16", arch="exact") as e:
        m(randn(4, 6)).square().sum().backward()
        o.step()
        for p, b in zip(m.parameters(), before):
            moved = (p.detach() - b).abs().max().item()
            assert moved > 0 and (p.dim() > 1 or moved < 0.0125)  # the first step of AdamW is lr, of masters in float32
        assert any("Muon" in note for note in e.notes)


def test_attention_of_operands_of_two_dtypes():
    """Rotary embeddings give float32 queries and keys beside values of bf16: under torch's list of autocast all become bf16, and so does a mask."""
    model = torch.nn.Linear(8, 24)
    turn = torch.linspace(-1, 1, 8)

    def attend(early, mask=None):
        model.zero_grad()
        with mpsim.emulate(model, "pytorch-amp-bf16", arch="hopper", seed=1) as e:
            q, k, v = model(torch.randn(1, 2, 6, 8, generator=torch.Generator().manual_seed(1))).chunk(3, -1)
            q, k = (x * turn for x in (q, k))
            if early:
                q, k = q.bfloat16(), k.bfloat16()
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            e.backward(y.float().square().sum())
        return [y.detach(), model.weight.grad.clone()]

    before = torch.nn.functional.scaled_dot_product_attention
    assert all(torch.equal(a, b) for a, b in zip(attend(False), attend(True)))
    assert attend(False, torch.zeros(6, 6))[0].dtype == torch.bfloat16
    assert torch.nn.functional.scaled_dot_product_attention is before
