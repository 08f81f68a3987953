"""mpsim.emulate on a device: libmpsim-cuda whose device is a CPU (tests/gpu/cuda_host.cc, MPSIM_TEST_CUDA) computes what tensors of the CPU hold, by the
dispatch of a CUDA device, and every number equals that of libmpsim."""
import os

import pytest

import mpsim
from mpsim import _cuda, _device

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
from mpsim.emulate import _homes, _there  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
PATH = os.environ.get("MPSIM_TEST_CUDA")
POLICIES = ("te-mxfp8", "te-fp8-current", "te-fp8-delayed", "te-nvfp4", "pytorch-amp-bf16", "pytorch-amp-fp16", "bf16-stochastic")


def played():
    """A device that is the CPU."""
    return _device.Device(0, lambda t: True, lambda: 0, lambda n: torch.empty(n, dtype=torch.uint8))


@pytest.fixture(autouse=True)
def library(monkeypatch):
    if not PATH:
        pytest.skip("MPSIM_TEST_CUDA is not set")
    monkeypatch.setenv("MPSIM_CUDA", PATH)
    for cached in (_cuda.library, _device.functions):
        cached.cache_clear()
    anywhere = getattr(_cuda.library(), "mpsim_test_anywhere", None)
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    if anywhere is not None:
        anywhere(1)
    yield
    if anywhere is not None:
        anywhere(0)
    torch.set_num_threads(n)
    for cached in (_cuda.library, _device.functions):
        cached.cache_clear()


def has(*names):
    missing = [name for name in names if name not in _device.functions()]
    if missing:
        pytest.skip(f"this libmpsim-cuda lacks {', '.join(missing)}")


@pytest.fixture
def on_device(monkeypatch):
    """Emulations from here on are of the device."""
    return lambda device: monkeypatch.setattr(_homes, "PLAYED", device)


class GPT(nn.Module):
    def __init__(self, width=32, heads=2, vocabulary=48, length=16):
        super().__init__()
        self.heads = heads
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Parameter(0.1 * torch.randn(length, width))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.table(tokens) + self.places[: tokens.shape[1]]
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(-2))
        return self.head(x + self.down(functional.gelu(self.up(self.norms[1](x)))))


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))


def loss_of(model, step):
    g = torch.Generator().manual_seed(step)
    if isinstance(model, GPT):
        tokens = torch.randint(0, 48, (2, 16), generator=g)
        return functional.cross_entropy(model(tokens).float().flatten(0, 1), tokens.roll(-1, 1).flatten())
    return model(torch.randn(16, 32, generator=g)).float().square().mean()


def train(make, policy, steps, optimizer=None, **how):
    """A training: losses, gradients and weights; the emulation."""
    torch.manual_seed(0)
    model = make()
    opt = (optimizer or torch.optim.AdamW)(model.parameters(), lr=1e-2)
    found = []
    with mpsim.emulate(model, policy, seed=3, **how) as e:
        for step in range(steps):
            loss = loss_of(model, step)
            e.backward(loss)
            found += [loss.detach().clone(), *(p.grad.clone() for p in model.parameters())]
            opt.step()
            opt.zero_grad()
            found += [p.detach().clone() for p in model.parameters()]
    return found, e


def compare(on_device, make, policy, steps=2, **how):
    on_device(None)
    here, e = train(make, policy, steps, **how)
    on_device(played())
    there, f = train(make, policy, steps, **how)
    for i, (a, b) in enumerate(zip(here, there)):
        assert torch.equal(a, b), (policy, i, int((a != b).sum()))
    return e, f


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("make", (mlp, GPT), ids=("mlp", "gpt"))
def test_every_number_is_that_of_memory(on_device, make, policy):
    has("enter", "gemm")
    e, f = compare(on_device, make, policy)
    assert [p.as_dict() for p in e.audit()] == [p.as_dict() for p in f.audit()]
    assert e.report().to_ndjson() == f.report().to_ndjson()
    steps = [[{k: v for k, v in step.items() if k not in ("updates", "lost")} for step in each.report().steps] for each in (e, f)]
    assert steps[0] == steps[1] and len(steps[0]) == 2
    assert _there.NOT_COUNTED in f.notes and _there.NOT_COUNTED not in e.notes
