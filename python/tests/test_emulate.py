"""mpsim.emulate on small models: what a user's training gives, judged by numbers."""
import copy
import gc
import io

import numpy as np
import pytest

import mpsim
from mpsim import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
from torch.utils.checkpoint import checkpoint  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
TENSORWISE = {"precision": "fp8", "fp8_recipe": "torchao-tensorwise"}
RECIPES = ("te-nvfp4", "te-fp8-delayed", "pytorch-amp-fp16", "bf16-stochastic", "te-mxfp8")


@pytest.fixture(autouse=True)
def one_thread():
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n)


def randn(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mlp(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 16))


def batches(n=6, rows=16, width=32):
    return [randn(rows, width, seed=10 + i) for i in range(n)]


def numbers(model):
    return [p.detach().clone() for p in model.parameters()]


def equal(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


def train(model, optimizer, e, data):
    for x in data:
        e.backward(model(x).square().mean() * 50)
        optimizer.step()
        optimizer.zero_grad()


def grads_of(model, policy, x, run=None, **how):
    """Loss, gradients and result of one step, and the products."""
    model.zero_grad()
    with mpsim.emulate(model, policy=policy, **how) as e:
        y = (run or model)(x)
        loss = y.float().square().mean()
        loss.backward()
        return loss.item(), {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}, y.detach().clone(), e.audit()


def same_grads(a, b):
    return a[0] == b[0] and a[1].keys() == b[1].keys() and all(torch.equal(a[1][k], b[1][k]) for k in a[1])


# ---- numbers: a product is mpsim.gemm of the rounded operands ----

def gemm(a, b, model, format="binary32"):
    """RN(a b), of float tensors."""
    made = np.asarray(mpsim.gemm(a.float().contiguous().numpy(), b.float().contiguous().numpy(), model=model), np.float32)
    return torch.from_numpy(np.asarray(mpsim.round(made, format), np.float32))


def bf16(x):
    return x.bfloat16().float()


@pytest.mark.parametrize("arch", ("exact", "fma"))
def test_linear_of_fp32(arch):
    """Products of binary32 numbers are those of mpsim.gemm, gradients too."""
    torch.manual_seed(0)
    m, x = nn.Linear(40, 24, bias=False), randn(16, 40).requires_grad_()
    dy = randn(16, 24, seed=2)
    with mpsim.emulate(m, policy="fp32", arch=arch):
        y = m(x)
        y.backward(dy)
    w = m.weight.detach()
    assert torch.equal(y, gemm(x.detach(), w.t(), arch))
    assert torch.equal(x.grad, gemm(dy, w, arch))
    assert torch.equal(m.weight.grad, gemm(dy.t(), x.detach(), arch))


def test_linear_of_bf16():
    torch.manual_seed(0)
    m, x, dy = nn.Linear(40, 24, bias=False), randn(16, 40).requires_grad_(), randn(16, 24, seed=2)
    with mpsim.emulate(m, policy="pytorch-amp-bf16", arch="exact"):
        y = m(x)
        y.backward(dy.bfloat16())
    w = m.weight.detach()
    assert y.dtype == torch.bfloat16 and torch.equal(y.float(), gemm(bf16(x.detach()), bf16(w).t(), "exact", "bf16"))
    assert torch.equal(x.grad, gemm(bf16(dy), bf16(w), "exact", "bf16"))
    assert torch.equal(m.weight.grad, gemm(bf16(dy).t(), bf16(x.detach()), "exact", "bf16"))


def test_scaled_sums():
    """addmm and baddbmm are RN(alpha a b + beta c), forward and backward."""
    a, b, c = randn(16, 40).requires_grad_(), randn(40, 24, seed=2).requires_grad_(), randn(16, 24, seed=3).requires_grad_()
    dy = randn(16, 24, seed=4)
    with mpsim.emulate(nn.Identity(), policy="fp32", arch="exact"):
        torch.addmm(c, a, b, beta=0.5, alpha=2).backward(dy)
        y = torch.addmm(c.detach(), a.detach(), b.detach(), beta=0.5, alpha=2)
        stacked = torch.baddbmm(c.detach().expand(2, 16, 24), torch.stack([a.detach()] * 2), torch.stack([b.detach()] * 2), beta=0.5, alpha=2)
        nothing = torch.addmm(torch.full((16, 24), float("nan")), a.detach(), b.detach(), beta=0)
        written = c.detach().clone().addmm_(a.detach(), b.detach(), beta=0.5, alpha=2)
    d = lambda x: x.detach().double()  # noqa: E731
    assert torch.equal(y, ((2 * (d(a) @ d(b))).float().double() + 0.5 * d(c)).float()) and torch.equal(written, y)
    assert torch.equal(stacked[0], y) and torch.equal(stacked[1], y)
    assert torch.equal(nothing, gemm(a.detach(), b.detach(), "exact"))
    assert torch.equal(a.grad, gemm(dy * 2, b.detach().t(), "exact"))
    assert torch.equal(b.grad, gemm(a.detach().t(), dy * 2, "exact"))
    assert torch.equal(c.grad, dy * 0.5)


def test_what_is_added_has_the_format_of_operands():
    a, b, c = randn(16, 32), randn(32, 8, seed=2), randn(16, 8, seed=3)
    with mpsim.emulate(nn.Identity(), policy="pytorch-amp-bf16", arch="exact"):
        y = torch.addmm(c, a, b, beta=0.5, alpha=2)
    wide = (2 * (bf16(a).double() @ bf16(b).double())).float() + 0.5 * bf16(c)
    assert torch.equal(y, wide.bfloat16())


def test_spellings():
    """Other spellings of a product have its bits: einsum, tensordot, matmul, mv, dot, out=, outer dimensions, transposed operands."""
    a, b, v = randn(6, 40), randn(40, 24, seed=2), randn(40, seed=3)
    with mpsim.emulate(nn.Identity(), policy="fp32", arch="exact") as e:
        y = a @ b
        given, empty = torch.empty(6, 24), torch.empty(0)
        made = [torch.einsum("ik,kj->ij", a, b), torch.tensordot(a, b, 1), torch.mm(a, b, out=given), torch.mm(a, b, out=empty), given, empty,
                (b.t() @ a.t()).t(), torch.matmul(a.reshape(2, 3, 40), b).reshape(6, 24), torch.linalg.multi_dot([a, b]),
                torch.addbmm(torch.zeros(6, 24), a[None], b[None])]
        mv, dot, addmv = a @ v, v @ a[0], torch.addmv(v[:6], a, v, beta=2)
        assert not [each for each in e.audit().operators if each["how"] == "native product"]
    assert torch.equal(y, gemm(a, b, "exact"))
    assert all(torch.equal(y, z) for z in made)
    assert torch.equal(mv, gemm(a, v[:, None], "exact")[:, 0]) and torch.equal(dot, mv[0])
    assert torch.equal(addmv, ((a.double() @ v.double()).float().double() + 2 * v[:6].double()).float())


def naive(run, *tensors):
    """What a function of torch gives in binary64."""
    return run(*(t.double() for t in tensors))


CONVOLUTIONS = [
    ("conv1d", (2, 4, 9), (6, 4, 3), {"padding": 1}), ("conv2d", (2, 4, 7, 6), (6, 2, 3, 3), {"groups": 2, "stride": 2, "padding": 1}),
    ("conv2d", (2, 4, 8, 8), (4, 1, 3, 3), {"groups": 4, "dilation": 2}), ("conv3d", (1, 3, 4, 5, 4), (2, 3, 2, 3, 2), {}),
    ("conv_transpose1d", (2, 4, 5), (4, 3, 3), {"stride": 2, "output_padding": 1}),
    ("conv_transpose2d", (2, 4, 4, 5), (4, 3, 3, 3), {"stride": 2, "padding": 1, "groups": 2}), ("conv2d", (4, 7, 6), (6, 4, 3, 3), {})]


@pytest.mark.parametrize("name, x, w, how", CONVOLUTIONS)
def test_convolutions(name, x, w, how):
    """Exact sums, rounded once: those of binary64 are within one unit, and nearly all equal."""
    x, w = randn(*x), randn(*w, seed=2)
    run = lambda x, w: getattr(functional, name)(x, w, **how)  # noqa: E731
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    c, d = x.double().requires_grad_(), w.double().requires_grad_()
    with mpsim.emulate(nn.Identity(), policy="fp32", arch="exact") as e:
        y = run(a, b)
        dy = randn(*y.shape, seed=3)
        y.backward(dy)
        assert {p.kind for p in e.audit()} == {"fprop", "dgrad", "wgrad"}
    z = run(c, d)
    z.backward(dy.double())
    for mine, exact in ((y, z), (a.grad, c.grad), (b.grad, d.grad)):
        assert torch.equal(mine.detach(), exact.detach().float())


def attention(q, k, v, mask=None, causal=False, scale=None):
    """By hand, in the same arithmetic of products."""
    share = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(share, 1), v.repeat_interleave(share, 1)
    s = (q @ k.transpose(-1, -2)) * (scale or q.shape[-1] ** -0.5)
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else s + mask
    return torch.softmax(s, -1) @ v


@pytest.mark.parametrize("how", ("plain", "causal", "bool", "float", "gqa", "scale"))
def test_attention(how):
    """torch's attention as one operator is what its parts give in binary64, to a few units of binary32."""
    heads = 2 if how == "gqa" else 4
    q, k, v = randn(2, 4, 12, 8), randn(2, heads, 12, 8, seed=2), randn(2, heads, 12, 8, seed=3)
    mask = {"bool": randn(12, 12, seed=4) > -0.5, "float": randn(2, 1, 12, 12, seed=4)}.get(how)
    if how == "bool":
        mask = mask | torch.eye(12, dtype=torch.bool)
    scale = 0.7 if how == "scale" else None
    mine, exact = [t.clone().requires_grad_() for t in (q, k, v)], [t.double().requires_grad_() for t in (q, k, v)]
    dy = randn(2, 4, 12, 8, seed=5)
    with mpsim.emulate(nn.Identity(), policy="fp32", arch="exact") as e:
        y = functional.scaled_dot_product_attention(*mine, attn_mask=mask, is_causal=how == "causal", scale=scale, enable_gqa=how == "gqa")
        y.backward(dy)
        assert {p.name.rpartition(".")[2] for p in e.audit()} == {"scores", "context"}
    z = attention(*exact, mask=None if mask is None or mask.dtype == torch.bool and False else mask if mask.dtype == torch.bool else mask.double(),
                  causal=how == "causal", scale=scale)
    z.backward(dy.double())
    for a, b in zip((y, *(t.grad for t in mine)), (z, *(t.grad for t in exact))):
        assert torch.allclose(a.double(), b, rtol=1e-5, atol=1e-6)


def test_attention_with_dropout():
    """torch takes it apart then; its products are seen all the same."""
    q = randn(2, 4, 12, 8).requires_grad_()
    with mpsim.emulate(nn.Identity(), policy="pytorch-amp-bf16") as e:
        functional.scaled_dot_product_attention(q, q, q, dropout_p=0.3).sum().backward()
        calls = sum(p.calls for p in e.audit())
    assert calls == 6 and torch.isfinite(q.grad).all()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(randn(3, 16, 24))

    def forward(self, x, ends):
        return torch._grouped_mm(x, self.weight, offs=ends)


def test_grouped_products():
    """A group is a product of its own; one without rows has a gradient of zeros."""
    if not hasattr(torch, "_grouped_mm"):
        pytest.skip("this torch has no _grouped_mm")
    m, x = Experts(), bf16(randn(32, 16, seed=2)).bfloat16().requires_grad_()
    m.to(torch.bfloat16)
    ends, dy = torch.tensor([10, 10, 32], dtype=torch.int32), randn(32, 24, seed=3).bfloat16()
    w = m.weight.detach().float()
    with mpsim.emulate(m, policy="pytorch-amp-bf16", arch="exact"):
        y = m(x, ends)
        y.backward(dy)
        dw = m.weight.grad.clone()
    xs, ds = x.detach().float(), dy.float()
    assert torch.equal(y[:10].float(), gemm(xs[:10], w[0], "exact", "bf16")) and torch.equal(y[10:].float(), gemm(xs[10:], w[2], "exact", "bf16"))
    assert torch.equal(dw[0].float(), gemm(xs[:10].t(), ds[:10], "exact", "bf16")) and not dw[1].any()
    assert torch.equal(x.grad[10:].float(), gemm(ds[10:], w[2].t(), "exact", "bf16"))


@pytest.mark.parametrize("kind", ("LSTM", "GRU", "RNN", "LSTMCell", "Bilinear"))
def test_recurrent_and_bilinear(kind):
    """Every product is seen; the numbers are torch's in binary64 to a few units of binary32."""
    torch.manual_seed(0)
    if kind == "Bilinear":
        m, inputs = nn.Bilinear(8, 6, 5), (randn(7, 8), randn(7, 6, seed=2))
    else:
        m = nn.LSTMCell(8, 6) if kind == "LSTMCell" else getattr(nn, kind)(8, 6, num_layers=2)
        inputs = (randn(7, 8),) if kind == "LSTMCell" else (randn(5, 7, 8),)
    wide = copy.deepcopy(m).double()
    first = lambda y: y[0] if isinstance(y, tuple) else y  # noqa: E731
    first(wide(*(x.double() for x in inputs))).square().sum().backward()
    with mpsim.emulate(m, policy="fp32", arch="exact") as e:
        first(m(*inputs)).square().sum().backward()
        assert len(e.audit()) and not e.audit().native
    for p, q in zip(m.parameters(), wide.parameters()):
        assert torch.allclose(p.grad.double(), q.grad, rtol=1e-4, atol=1e-6)


# ---- a training goes on ----

@pytest.mark.parametrize("policy", RECIPES)
def test_resume(policy):
    """A run that was saved, and loaded with weights_only, has the bits of one that was not interrupted."""
    data = batches(6)

    def begin():
        m = mlp()
        return m, torch.optim.AdamW(m.parameters(), 1e-2)

    m, o = begin()
    with mpsim.emulate(m, policy=policy, seed=3) as e:
        train(m, o, e, data)
    whole, scale = numbers(m), e.scale
    m, o = begin()
    file = io.BytesIO()
    with mpsim.emulate(m, policy=policy, seed=3) as e:
        train(m, o, e, data[:3])
        torch.save((e.state_dict(), m.state_dict(), o.state_dict()), file)
    for before in (False, True):  # the state is loaded inside, or before
        file.seek(0)
        state = torch.load(file, weights_only=True)
        m, o = begin()
        e = mpsim.emulate(m, policy=policy, seed=3)
        if before:
            e.load_state_dict(state[0])
        with e:
            m.load_state_dict(state[1])
            o.load_state_dict(state[2])
            if not before:
                e.load_state_dict(state[0])
            train(m, o, e, data[3:])
        assert equal(whole, numbers(m)) and e.scale == scale
    with pytest.raises(InputError, match="state: expected the seed 4, found 3"):
        mpsim.emulate(m, policy=policy, seed=4).load_state_dict(state[0])


def test_resume_with_an_override():
    """Histories of a layer that an override gives another policy are resumed, too."""
    data, how = batches(5), {"policy": "pytorch-amp-bf16", "overrides": {"2": "te-fp8-delayed"}}
    m = mlp()
    o = torch.optim.SGD(m.parameters(), 0.1)
    with mpsim.emulate(m, **how) as e:
        train(m, o, e, data)
    whole, m = numbers(m), mlp()
    o = torch.optim.SGD(m.parameters(), 0.1)
    with mpsim.emulate(m, **how) as e:
        train(m, o, e, data[:3])
        state = e.state_dict()
    with mpsim.emulate(m, **how) as e:
        e.load_state_dict(state)
        train(m, o, e, data[3:])
    assert equal(whole, numbers(m))


def test_scheduled_policy():
    """Another plan comes in force at its step: placements and the scaler; a resumed run has it, too."""
    policy = {"precision": "fp16", "schedule": [{"step": 3, "precision": "bf16"}]}
    data, m = batches(4), mlp()
    o = torch.optim.SGD(m.parameters(), 0.1)
    formats, scales = [], []
    with mpsim.emulate(m, policy=policy) as e:
        for x in data:
            before = len(e.audit())
            train(m, o, e, [x])
            formats.append({p.formats[0] for p in e.audit().products[before:]})
            scales.append(e.scale)
            if e.steps == 2:
                state = copy.deepcopy((e.state_dict(), m.state_dict()))
    assert formats == [{"fp16"}, set(), {"bf16"}, set()] and scales[0] > 1 and scales[3] == 1
    whole, m = numbers(m), mlp()
    o = torch.optim.SGD(m.parameters(), 0.1)
    with mpsim.emulate(m, policy=policy) as e:
        m.load_state_dict(state[1])
        e.load_state_dict(state[0])
        train(m, o, e, data[2:])
    assert equal(whole, numbers(m))


def test_evaluation_changes_nothing():
    """Evaluations between steps, with and without gradients' graph, leave the training's bits as they are."""
    for policy in ("te-nvfp4", "te-fp8-delayed", "bf16-stochastic"):
        made = []
        for evaluates in (False, True):
            m = mlp()
            o = torch.optim.AdamW(m.parameters(), 1e-2)
            with mpsim.emulate(m, policy=policy) as e:
                for x in batches(4):
                    if evaluates:
                        with torch.no_grad():
                            m(x * 100)
                        with torch.inference_mode():
                            m.eval()(x * 50)
                        m.train()
                    y = m(x)
                    if evaluates:
                        with torch.no_grad():
                            m(x * 3)
                    e.backward(y.square().mean())
                    o.step()
                    o.zero_grad()
            made.append(numbers(m))
        assert equal(*made), policy


# ---- addresses of random bits ----

def test_the_model_called_twice_before_a_backward():
    """Each call has random bits of its own, and an evaluation with a graph takes none away."""
    def names(e, m, evaluates):
        seen = []
        e.core.watchers.append(lambda record, kind, *_: seen.append((record.name, kind)))
        if evaluates:
            m.eval()(randn(4, 32))
            m.train()
            seen.clear()
        (m(randn(4, 32)) + m(randn(4, 32, seed=1))).square().sum().backward()
        return seen

    m = nn.Linear(32, 32)
    for evaluates in (False, True):
        with mpsim.emulate(m, policy="te-nvfp4") as e:
            found = names(e, m, evaluates)
        assert found[:2] == [("", "fprop"), ("#1", "fprop")] and sorted(found[2:]) == [("", "wgrad"), ("#1", "wgrad")]



class Twice(nn.Module):
    """A block that is called twice, under checkpointing or not."""

    def __init__(self, how):
        super().__init__()
        torch.manual_seed(0)
        self.block, self.head, self.how = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32)), nn.Linear(32, 16), how

    def forward(self, x):
        for _ in range(2):
            x = self.block(x) if self.how is None else checkpoint(self.block, x, use_reentrant=self.how)
        return self.head(x)


@pytest.mark.parametrize("policy", ("te-nvfp4", "te-fp8-delayed", "bf16-stochastic", TENSORWISE))
def test_called_twice_and_checkpointed(policy):
    x = randn(16, 32).requires_grad_()
    plain, again, other = (grads_of(Twice(how), policy, x) for how in (None, False, True))
    assert same_grads(plain, again) and same_grads(plain, other)
    names = {p.name for p in plain[3] if p.kind == "fprop"}
    assert {"block.0", "block.0#1"} <= names


def test_calls_have_random_bits_of_their_own():
    """Two calls of a module on the same numbers are rounded by other random bits; repeats are equal."""
    m = nn.Linear(64, 64, bias=False)
    got = []
    for _ in range(2):
        dx = []
        with mpsim.emulate(m, policy="te-nvfp4", seed=1):
            for _ in range(2):
                x = randn(32, 64).requires_grad_()
                model = nn.Sequential()
                y = [m(x), m(x)]
                dx += [torch.autograd.grad(each, x, randn(32, 64, seed=2).bfloat16(), retain_graph=True)[0] for each in y[:1]]
                del model
        got.append(dx)
    assert all(torch.equal(a, b) for a, b in zip(*got))


@pytest.mark.parametrize("policy", ("te-nvfp4", "te-mxfp8", "pytorch-amp-bf16"))
def test_threads(policy):
    m, x = Twice(None), randn(64, 32)
    made = []
    for n in (1, 2, 4):
        torch.set_num_threads(n)
        made.append(grads_of(m, policy, x)[:2])
    assert same_grads(made[0], made[1]) and same_grads(made[0], made[2])


def test_micro_batches():
    """Two micro-batches add up as two steps' gradients do, and have random bits of their own."""
    m, (a, b) = mlp(), batches(2)
    with mpsim.emulate(m, policy="pytorch-amp-bf16"):
        for x in (a, b):
            m(x).square().mean().backward()
        both = {k: p.grad.clone() for k, p in m.named_parameters()}
    one, two = (grads_of(m, "pytorch-amp-bf16", x)[1] for x in (a, b))
    assert all(torch.equal(both[k], one[k] + two[k]) for k in both)
    m.zero_grad()
    with mpsim.emulate(m, policy="te-nvfp4"):
        parts = []
        for _ in range(2):
            m(a).square().mean().backward()
            parts.append(m[0].weight.grad.clone())
            m.zero_grad()
    assert not torch.equal(*parts)


# ---- overrides ----

def test_overrides():
    """By path, regular expression and product; what fits nothing is an error."""
    x = randn(16, 32)
    *_, audit = grads_of(mlp(), "te-mxfp8", x, overrides={"0": "pytorch-amp-bf16", r"[2-9]/dgrad": "pytorch-amp-bf16"})
    recipes = {(p.path, p.kind): p.recipes[0] for p in audit}
    assert recipes["0", "fprop"] is None and recipes["0", "wgrad"] is None
    assert recipes["2", "fprop"] and recipes["2", "wgrad"] and recipes["2", "dgrad"] is None
    with pytest.raises(InputError, match="'nobody' fits no module"):
        mpsim.emulate(mlp(), policy="te-mxfp8", overrides={"nobody": "bf16"})
    with pytest.raises((InputError, mpsim.FileError), match="overrides: '0'"):
        mpsim.emulate(mlp(), policy="te-mxfp8", overrides={"0": "no-such-policy"})


# ---- parameters ----

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(20, 32)
        self.head = nn.Linear(32, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(self.table(tokens))


@pytest.mark.parametrize("between", ("native", "mpsim"))
def test_tied_weights(between):
    """One parameter, of which both gradients are added; the head's product has it as its weight."""
    m, tokens = Tied(), torch.arange(20).reshape(4, 5)
    loss, grads, y, audit = grads_of(m, "fp32", tokens, arch="exact", between=between)
    assert list(grads) == ["table.weight"] and {p.kind for p in audit} == {"fprop", "dgrad", "wgrad"}
    wide = Tied().double()
    wide(tokens).square().mean().backward()
    assert torch.allclose(grads["table.weight"].double(), wide.table.weight.grad, rtol=1e-5, atol=1e-8)


class Lora(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.base, self.a, self.b = nn.Linear(32, 24), nn.Linear(32, 4, bias=False), nn.Linear(4, 24, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


def test_frozen_and_adapters():
    """Frozen parameters get no gradient and do not move; adapters do; all are weights of their products."""
    m, x = Lora(), randn(16, 32)
    before = numbers(m.base)
    with mpsim.emulate(m, policy="bf16-stochastic") as e:
        o = torch.optim.AdamW([p for p in m.parameters() if p.requires_grad], 1e-2)
        train(m, o, e, [x, x])
        kinds = {(p.path, p.kind) for p in e.audit()}
        assert m.base.weight.grad is None
    assert kinds == {("base", "fprop"), ("a", "fprop"), ("b", "fprop"), ("a", "wgrad"), ("b", "wgrad"), ("b", "dgrad")}
    assert all(torch.equal(p.bfloat16(), q.bfloat16()) for p, q in zip(before, numbers(m.base)))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float64))
def test_dtypes_come_back(dtype):
    m = mlp().to(dtype)
    before = numbers(m)
    with mpsim.emulate(m, policy="pytorch-amp-bf16") as e:
        assert {p.dtype for p in m.parameters()} == {torch.float32}
        m(randn(16, 32).to(dtype))
    assert {p.dtype for p in m.parameters()} == {dtype} and equal(before, numbers(m))
    with mpsim.emulate(m, policy="pytorch-amp-bf16") as e:
        train(m, torch.optim.SGD(m.parameters(), 0.1), e, batches(1))
    assert {p.dtype for p in m.parameters()} == {dtype} and not torch.equal(before[0], m[0].weight)


def test_numbers_of_binary64_come_back():
    """Those that did not move have all their bits."""
    m = nn.Linear(32, 16).double()
    with torch.no_grad():
        m.weight += 1e-12
    before = numbers(m)
    with mpsim.emulate(m, policy="fp32", arch="exact"):
        assert m(randn(2, 32).double()).dtype == torch.float32
    assert equal(before, numbers(m))


@pytest.mark.parametrize("between", ("native", "mpsim"))
def test_running_statistics_of_bf16(between):
    """Statistics of a model in bf16 move as those of one in float32 do."""
    torch.manual_seed(0)
    m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).bfloat16()
    with mpsim.emulate(m, policy="pytorch-amp-bf16", between=between):
        m(randn(2, 3, 6, 6))
    assert m[1].running_mean.dtype == torch.bfloat16 and m[1].running_mean.all() and (m[1].running_var != 1).all()


def test_copies_keep_master_bits():
    m = mlp()
    with torch.no_grad():
        m[0].weight.fill_(1 + 2.0**-20)
    with mpsim.emulate(m, policy="megatron-bf16"):
        copies = m[0].weight.detach().clone(), copy.deepcopy(m).state_dict()["0.weight"], m[0].weight.to(torch.float64)
    assert all((x == 1 + 2.0**-20).all() for x in copies)


# ---- optimizers ----

def test_closure_several_optimizers_and_schedulers():
    """A closure, two optimizers and a scheduler give what the plain spelling gives."""
    made = []
    for closure in (False, True):
        m, (x, *_) = mlp(), batches(1)
        one, two = torch.optim.AdamW(m[0].parameters(), 1e-2), torch.optim.SGD(m[2].parameters(), 1e-1)
        schedule = torch.optim.lr_scheduler.StepLR(one, 1, 0.5)
        with mpsim.emulate(m, policy="te-nvfp4") as e:
            for _ in range(3):
                def loss():
                    m.zero_grad()
                    value = m(x).square().mean()
                    value.backward()
                    return value
                if closure:
                    assert one.step(loss).item() > 0
                else:
                    loss()
                    one.step()
                two.step()
                schedule.step()
            assert e.steps == 3 and one.param_groups[0]["lr"] == pytest.approx(1e-2 / 8)
        made.append(numbers(m))
    assert equal(*made)


def test_grad_scaler_of_the_user():
    """Its scale is a power of two: the numbers of a run without it. An overflow skips the step."""
    made = []
    for scales in (False, True):
        m = mlp()
        o = torch.optim.SGD(m.parameters(), 0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scales)
        with mpsim.emulate(m, policy="fp32", arch="exact"):
            for x in batches(3):
                scaler.scale(m(x).square().mean()).backward()
                scaler.step(o)
                scaler.update()
                o.zero_grad()
            before = numbers(m)
            if scales:
                scaler.scale(m(x * 1e30).square().mean()).backward()
                scaler.step(o)
                scaler.update()
                assert equal(before, numbers(m)) and scaler.get_scale() == 512
        made.append(before)
    assert equal(*made)


class Whitening(torch.optim.Optimizer):
    """An optimizer with a product, which the library does not have."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        if closure is not None:
            with torch.enable_grad():
                closure()
        for p in (p for group in self.param_groups for p in group["params"] if p.dim() == 2):
            p.sub_(p.grad @ p.grad.t() @ p, alpha=0.1)


def test_optimizer_that_runs_natively():
    """Its products are torch's, of the masters' numbers, and in the audit; those of its closure are emulated."""
    m, x = mlp(), randn(16, 32)
    with pytest.raises(InputError, match="Whitening"), mpsim.emulate(m, policy="pytorch-amp-bf16"):
        m(x).square().mean().backward()
        Whitening(m.parameters()).step()
    m.zero_grad()
    o = Whitening(m.parameters())
    with mpsim.emulate(m, policy="pytorch-amp-bf16", native=["Whitening"]) as e:
        m(x).square().mean().backward()
        w, g = m[0].weight.detach().clone(), m[0].weight.grad.clone()
        n = len(e.audit())
        o.step()
        audit = e.audit()
        assert len(audit) == n and {(row["module"].rpartition(".")[2], row["calls"]) for row in audit.native} >= {("Whitening", 4)}

        def loss():
            m.zero_grad()
            value = m(x).square().mean()
            value.backward()
            return value

        after = m[0].weight.detach().clone()
        calls = sum(p.calls for p in e.audit())
        o.step(loss)
        assert sum(p.calls for p in e.audit()) == calls + 5
    assert torch.equal(after, w - 0.1 * (g @ g.t() @ w))


# ---- nothing is left behind ----

def state_of_torch():
    import torch.autograd.graph as graph
    import torch.utils.checkpoint as checkpoints
    from torch.nn.modules import module
    from torch.optim import optimizer
    return (torch._VF.lstm, graph._engine_run_backward, torch.autograd._engine_run_backward, torch.amp.GradScaler.scale, checkpoints.CheckpointFunction,
            torch.autograd.Function.__dict__["apply"], torch.nn.functional.conv2d, torch.conv2d, len(module._global_forward_pre_hooks),
            len(module._global_forward_hooks), len(optimizer._global_optimizer_pre_hooks), len(optimizer._global_optimizer_post_hooks),
            torch.is_autocast_enabled("cpu"), torch.backends.mha.get_fastpath_enabled(), torch._C._len_torch_dispatch_stack(),
            torch.backends.mkldnn.is_available(), torch.get_rng_state().sum().item())


class Breaks(nn.Module):
    def __init__(self, error):
        super().__init__()
        self.layer, self.error = nn.Linear(32, 16), error

    def forward(self, x):
        x = self.layer(x)
        if self.error is not None:
            raise self.error
        return x


@pytest.mark.parametrize("error", (ValueError("mine"), KeyboardInterrupt()))
@pytest.mark.parametrize("arch", ("hopper", "avx512"))
def test_errors_leave_nothing(error, arch):
    """torch and the model are as they were, and the emulation can be opened again."""
    m, x = Breaks(error).bfloat16(), randn(4, 32).bfloat16()
    before, plain = state_of_torch(), numbers(m)
    e = mpsim.emulate(m, policy="pytorch-amp-bf16", arch=arch)
    with pytest.raises(type(error)), e:
        m(x)
    assert state_of_torch() == before and {p.dtype for p in m.parameters()} == {torch.bfloat16} and equal(plain, numbers(m))
    m.error = None
    with e:
        m(x).square().mean().backward()
        assert {p.path for p in e.audit()} == {"layer"}
    assert state_of_torch() == before


def test_errors_on_entry_leave_nothing():
    m = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).bfloat16()
    before = state_of_torch()
    with pytest.raises(InputError, match="fused"), mpsim.emulate(m, fused={"1": "swiglu"}):
        pass
    broken = nn.Sequential(m, nn.Linear(4, 4, device="meta"))
    with pytest.raises(InputError, match="'1.weight' is on the device 'meta'"), mpsim.emulate(broken):
        pass
    with pytest.raises(InputError, match="has no shape yet"):
        mpsim.emulate(nn.Sequential(nn.LazyLinear(4)))
    assert state_of_torch() == before and m[0].weight.dtype == torch.bfloat16
    e = mpsim.emulate(m)

    def full():
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"), e:
        e._closing.append(full)  # as a trace whose disk is full
    assert state_of_torch() == before
    with mpsim.emulate(m):
        pass


def test_memory():
    """After a step nothing of it is kept: no marks, no operands; evaluations with a graph that nobody goes through keep little."""
    def records(e):
        return [mark for mark in e.core.paths.marks.values() if not hasattr(mark, "kind")]

    m = mlp()
    o = torch.optim.SGD(m.parameters(), 0.1)
    with mpsim.emulate(m, policy=TENSORWISE) as e:
        train(m, o, e, batches(2))
        assert not records(e)
        for _ in range(6):  # checkpoints leave the marks of recomputations, for some steps
            for how in (True, False):
                checkpoint(m, randn(16, 32).requires_grad_(), use_reentrant=how).sum().backward()
            o.step()
        assert len(e.core.paths.marks) <= 5 * 10
        train(m, o, e, 6 * batches(1))
        assert not records(e) and len(e.core.paths.marks) < 20
        y = m(randn(16, 32))
        y.sum().backward(retain_graph=True)
        y.sum().backward()  # the marks were there
        assert not records(e) and not any("no product of a forward pass" in line for line in e.notes)
        for x in batches(20):
            m(x)
        held = sum(bool(getattr(mark, "operands", None)) for mark in e.core.paths.marks.values())
        assert 0 < held <= 2 * 9
        gc.collect()
        storages = len(e.core.roles.tags)
        for x in batches(20):
            m(x)
        gc.collect()
        assert len(e.core.roles.tags) <= storages + 2


# ---- odd inputs ----

@pytest.mark.parametrize("policy", (*RECIPES, "te-fp8-current"))
def test_empty_batch(policy):
    m = nn.Sequential(nn.LayerNorm(32), *mlp())
    for between in ("native", "mpsim"):
        loss, grads, y, _ = grads_of(m, policy, torch.empty(0, 32), run=lambda x: m(x).sum()[None], between=between)
        assert loss == 0 and not any(g.any() for g in grads.values())


def test_integers_and_complex_numbers():
    """Products of integers are torch's, and in the audit; complex ones are refused."""
    a = torch.arange(6).reshape(2, 3)
    with mpsim.emulate(nn.Identity()) as e:
        assert (a @ a.t()).tolist() == [[5, 14], [14, 50]]
        (row,) = e.audit().native
        assert row["operator"] == "aten::mm" and "integers" in row["why"]
        with pytest.raises(InputError, match="product of complex64"):
            torch.zeros(2, 2, dtype=torch.complex64) @ torch.zeros(2, 2, dtype=torch.complex64)


def test_inference_mode_and_no_grad():
    """Composites are taken apart there: the numbers of a pass with gradients."""
    m = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(64, 8))
    x, made = randn(2, 3, 6, 6), []
    with mpsim.emulate(m, policy="te-mxfp8") as e:
        for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            with mode():
                made.append(m(x).detach().clone().float())
        assert sum(p.calls for p in e.audit()) == 6
    assert torch.equal(made[0], made[1]) and torch.equal(made[0], made[2])


def test_products_of_gradients():
    """Of a gradient outside of backward nobody knows what it is: a note says so."""
    m = mlp()
    with mpsim.emulate(m) as e:
        m(randn(16, 32)).sum().backward()
        assert not e.notes
        m[0].weight.grad @ m[0].weight.grad.t()
        assert any("no product of a forward pass" in line for line in e.notes)


# operators whose names say product and that have none, or arrive as what is claimed
NO_PRODUCTS = {
    "aten::" + name for name in (
        "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _convert_weight_to_int4pack_for_cpu _cummax_helper _cummin_helper "
        "_dyn_quant_pack_4bit_weight _embedding_bag_per_sample_weights_backward _standard_gamma _standard_gamma_grad _transform_bias_rescale_qkv "
        "_weight_norm_interface _weight_norm_interface_backward digamma digamma_ erfinv erfinv_ igamma igamma_ igammac igammac_ lgamma lgamma_ "
        "mvlgamma mvlgamma_ polygamma polygamma_ rsqrt rsqrt_ sqrt sqrt_ linalg_matrix_sqrth upsample_trilinear3d upsample_trilinear3d_backward "
        "_foreach_lgamma _foreach_lgamma_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sqrt _foreach_sqrt_ cummax cummin detach detach_ hamming_window "
        "slice_inverse mkldnn_reorder_conv2d_weight mkldnn_reorder_conv3d_weight _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell_backward_impl"
    ).split()}


def test_all_products_of_aten_are_known():
    """An operator whose name says product, and that runs on a CPU as it is, is claimed, refused, or known to have none."""
    import re

    from mpsim.emulate._claims import HIDDEN
    with mpsim.emulate(nn.Identity()) as e:
        claimed = set(e.core.claims.table)
    says = re.compile(r"aten::.*(mm|matmul|linear(?!_?[123]d)|conv|attention|rnn|lstm|gru|solve|chol|_lu|qr|svd|eig|inv|det|dot|cdist|trilinear|int4|int8|qkv)")
    dispatches = torch._C._dispatch_has_kernel_for_dispatch_key
    unknown = []
    for name in sorted({schema.name for schema in torch._C._jit_get_all_schemas()}):
        packet = getattr(torch.ops.aten, name[6:], None) if says.match(name) else None
        if packet is None or name in HIDDEN | claimed | NO_PRODUCTS or any(word in name for word in ("cudnn", "miopen", "mps")):
            continue
        try:
            func = getattr(packet, packet.overloads()[0])
            if not func._can_decompose() and any(dispatches(func.name(), key) for key in ("CPU", "CompositeExplicitAutograd")):
                unknown.append(name)
        except (AttributeError, RuntimeError):  # a schema alone
            continue
    assert not unknown
