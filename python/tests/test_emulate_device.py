"""mpsim.emulate on a device: libmpsim-cuda whose device is a CPU (tests/gpu/cuda_host.cc, MPSIM_TEST_CUDA) computes what tensors of the CPU hold, by the
dispatch of a CUDA device, and every number equals that of libmpsim."""
import ctypes
import os
import sys

import pytest

import mpsim
from mpsim import _cuda, _device
from mpsim._convolution import ORDERS, Geometry
from mpsim._product import View

torch = pytest.importorskip("torch")
pytest.importorskip("mpsim.emulate._emulator")
from mpsim import _attention as tiles, _library, _windows  # noqa: E402
from mpsim.emulate import _homes, _optimizer, _there  # noqa: E402

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
        assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num()), (policy, i, int((a != b).sum()))
    return e, f


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("make", (mlp, GPT), ids=("mlp", "gpt"))
def test_every_number_is_that_of_memory(on_device, monkeypatch, make, policy):
    called = []
    function = _device.function
    monkeypatch.setattr(_device, "function", lambda name: called.append(name) or function(name))
    e, f = compare(on_device, make, policy)
    assert {"gemm", "optimizer"} <= set(called) and ("enter" in called) == policy.startswith("te-")
    assert [p.as_dict() for p in e.audit()] == [p.as_dict() for p in f.audit()]
    assert e.report().to_ndjson() == f.report().to_ndjson()
    steps = [[{k: v for k, v in step.items() if k not in ("updates", "lost")} for step in each.report().steps] for each in (e, f)]
    assert steps[0] == steps[1] and len(steps[0]) == 2
    assert _there.NOT_COUNTED in f.notes and _there.NOT_COUNTED not in e.notes


@pytest.mark.parametrize("arch", ("volta", "ampere", "cdna3", "exact", "blackwell-scaled"))
def test_other_devices(on_device, arch):
    """Models of other devices, and blocks with their scales."""
    compare(on_device, mlp, "te-mxfp8" if "scaled" in arch else "pytorch-amp-fp16" if arch == "volta" else "pytorch-amp-bf16", 1, arch=arch)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(2, 16, 3), nn.Linear(144, 32)

    def forward(self, x):
        return self.fc(functional.relu(self.conv(x[:, :50].reshape(-1, 2, 5, 5))).flatten(1))


@pytest.mark.parametrize("policy", (*POLICIES, "fp32"))
@pytest.mark.parametrize("make", (mlp, GPT, Net), ids=("mlp", "gpt", "net"))
def test_casts_alone(on_device, make, policy):
    """arch="torch": operands are rounded and quantised by the device, and torch multiplies them."""
    compare(on_device, (lambda: nn.Sequential(nn.Linear(32, 50), Net())) if make is Net else make, policy, arch="torch")


class Both:
    """Muon for matrices, AdamW for the rest."""

    def __init__(self, parameters, lr):
        p = list(parameters)
        self.each = torch.optim.Muon([x for x in p if x.dim() == 2], lr=lr), torch.optim.AdamW([x for x in p if x.dim() != 2], lr=lr)

    def step(self):
        for o in self.each:
            o.step()

    def zero_grad(self):
        for o in self.each:
            o.zero_grad()


OPTIMIZERS = {
    "SGD": ("pytorch-amp-bf16", mlp, lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, nesterov=True)),
    "amsgrad": ("pytorch-amp-bf16", mlp, lambda p, lr: torch.optim.Adam(p, lr, amsgrad=True)),
    "maximize": ("pytorch-amp-bf16", mlp, lambda p, lr: torch.optim.AdamW(p, lr, maximize=True)),
    "Muon": ("pytorch-amp-bf16", mlp, Both), "Muon in bf16": ("bf16-stochastic", mlp, Both), "the policy's Muon": ("muon-bf16", GPT, None),
    "Adafactor": ("fp32", GPT, lambda p, lr: torch.optim.Adafactor(p, lr)),
    "Adafactor in bf16": ("bf16-stochastic", mlp, lambda p, lr: torch.optim.Adafactor(p, lr, weight_decay=0.1))}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(on_device, name):
    policy, make, optimizer = OPTIMIZERS[name]
    if optimizer is Both and not hasattr(torch.optim, "Muon"):
        pytest.skip("this torch has no Muon")
    _, f = compare(on_device, make, policy, 3, optimizer=optimizer)
    assert not any("in memory" in note for note in f.notes)


def test_optimizers_without_kernels(on_device):
    """States of few bits: the step has copies in memory, and the emulation says so."""
    e, f = compare(on_device, mlp, "torchao-adamw4bit", 3)
    assert _there.IN_MEMORY.format("adamw with states of few bits") in f.notes and not any("in memory" in note for note in e.notes)


def test_overflows_are_skipped_and_norms_clip(on_device):
    """Checks of gradients, unscaling and clipping are those of memory, where a step overflows, too."""
    def wild():
        model = mlp()
        with torch.no_grad():
            model[2].weight.mul_(300)
        return model

    for policy in ({"precision": "fp16", "clip": 0.5}, {"precision": "fp16"}, {"precision": "bf16", "clip": 1e-3}):
        e, f = compare(on_device, wild, policy, 4)
        assert e.optimizers.norm == f.optimizers.norm or e.optimizers.norm != e.optimizers.norm
        assert e.report().steps[0]["skipped"] == f.report().steps[0]["skipped"]


class Dropped(GPT):
    """Dropout in attention and beside it."""

    def forward(self, tokens):
        x = functional.dropout(self.table(tokens) + self.places[: tokens.shape[1]], 0.1)
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.qkv(self.norms[0](x)).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, None, 0.2, True)
        x = x + functional.dropout(self.out(y.transpose(1, 2).flatten(-2)), 0.1)
        return self.head(x + self.down(functional.gelu(self.up(self.norms[1](x)))))


@pytest.mark.parametrize("policy", ("te-mxfp8", "pytorch-amp-bf16"))
def test_dropout(on_device, monkeypatch, policy):
    """Attention with dropout arrives in parts, by torch's choice of that on a device."""
    e, f = compare(on_device, Dropped, policy)
    assert [p.as_dict() for p in e.audit()] == [p.as_dict() for p in f.audit()]
    kernels, choose = [], torch.nn.attention.sdpa_kernel
    monkeypatch.setattr(torch.nn.attention, "sdpa_kernel", lambda backend: kernels.append(backend) or choose(backend))
    train(Dropped, policy, 1)
    train(GPT, policy, 1)
    assert kernels == [torch.nn.attention.SDPBackend.MATH]


@pytest.mark.parametrize("what", ("product", "optimizer"))
def test_graphs_capture_no_step(on_device, monkeypatch, what):
    """A replay would repeat the numbers that the host has given: one line says so."""
    on_device(played())
    capturing = []
    monkeypatch.setattr(_homes, "is_capturing", lambda: bool(capturing))
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    with mpsim.emulate(model, "pytorch-amp-bf16"):
        loss_of(model, 0).backward()
        capturing.append(1)
        with pytest.raises(mpsim.InputError, match="a CUDA graph captures this step") as error:
            optimizer.step() if what == "optimizer" else model(torch.zeros(16, 32))
        assert "\n" not in str(error.value)
        capturing.clear()
        optimizer.step()


class Copies:
    """What reads a tensor on the host while a step runs: calls by the function of mpsim that asks."""

    READS = ("cpu", "item", "tolist", "numpy", "__bool__", "__float__", "__int__", "__index__", "__array__", "nonzero")

    def __init__(self, monkeypatch):
        self.found, self.on = {}, False
        for name in self.READS:
            self.watch(monkeypatch, torch.Tensor, name)
        to = torch.Tensor.to
        monkeypatch.setattr(torch.Tensor, "to", lambda x, *a, **how: (self.note("to") if "cpu" in map(str, (*a, *how.values())) else None, to(x, *a, **how))[1])
        for name in ("mpsim_operand_enter", "mpsim_product_run", "mpsim_between_run", "mpsim_update_run", "mpsim_gradients_check", "mpsim_gradients_move",
                     "mpsim_block_quantize"):  # what computes in memory
            self.watch(monkeypatch, _library.lib, name)
        self.watch(monkeypatch, _homes, "round_array")

    def watch(self, monkeypatch, owner, name):
        function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, **how: (self.note(name), function(*args, **how))[1])

    def note(self, name):
        frame = sys._getframe(1)
        while self.on and frame is not None:
            if "/mpsim/" in frame.f_code.co_filename:
                key = f"{os.path.basename(frame.f_code.co_filename)[:-3]}.{frame.f_code.co_name}: {name}"
                self.found[key] = self.found.get(key, 0) + 1
                return
            frame = frame.f_back


COUNTERS = "_optimizer._taken: __int__"  # of steps, which the optimizer keeps in memory
NORM = {"_there.norms: tolist": 1}  # clipping by the norm of all gradients
SCALER = {"_there.check: tolist": 1}  # a loss scaler looks for overflows
DELAYED = {"_delayed.settle: tolist": 1}  # largest magnitudes, of which the host makes the next step's scales
LOSS = {"_device.between: tolist": 2, "_homes.mean: cpu": 1, "_layers.nll_loss_backward: __float__": 2}  # rows that count, the mean, its gradient
READ = {"te-mxfp8": NORM, "te-nvfp4": NORM, "deepseek-v3-fp8": NORM, "deepseek-v3-fp8-ue8m0": NORM, "te-fp8-current": NORM, "te-fp8-delayed": NORM | DELAYED,
        "pytorch-amp-bf16": {}, "bf16-stochastic": {}, "pytorch-amp-fp16": SCALER, "nemo-fp16-fp8-blockwise": SCALER, "muon-bf16": {}}


def reads(copies, policy, make=GPT, **how):
    """What the third step reads."""
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    with mpsim.emulate(model, policy, report=False, **how) as e:
        for step in range(3):
            copies.on = step == 2
            loss = loss_of(model, step)
            e.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        copies.on = False
    copies.found.pop(COUNTERS, None)
    return copies.found


@pytest.mark.parametrize("policy,between", [*((policy, "native") for policy in READ), ("te-mxfp8", "mpsim"), ("pytorch-amp-fp16", "mpsim")])
def test_what_a_step_reads_on_the_host(on_device, monkeypatch, policy, between):
    """Products, casts, quantising and optimizers copy nothing and wait for nothing; what else does is named here."""
    on_device(played())
    assert reads(Copies(monkeypatch), policy, between=between) == READ[policy] | (LOSS if between == "mpsim" else {})


def test_dropout_reads_nothing(on_device, monkeypatch):
    on_device(played())
    assert reads(Copies(monkeypatch), "pytorch-amp-bf16", Dropped) == {}


def test_what_memory_computes_is_seen(on_device, monkeypatch):
    on_device(None)
    functions = {key.partition(": ")[2] for key in reads(Copies(monkeypatch), "te-mxfp8", between="mpsim")}
    assert {"mpsim_operand_enter", "mpsim_product_run", "mpsim_between_run", "mpsim_update_run", "mpsim_gradients_check"} <= functions


def test_a_run_goes_on(on_device):
    """Histories of delayed scaling that a device holds are in the state."""
    on_device(played())
    _, e = train(mlp, "te-fp8-delayed", 2)
    on_device(None)
    _, f = train(mlp, "te-fp8-delayed", 2)
    assert e.state_dict()["histories"] == f.state_dict()["histories"] != {}


REFUSED = [({"arch": "avx512"}, "torch's own step on a CPU")]


@pytest.mark.parametrize("how,why", REFUSED, ids=[why for _, why in REFUSED])
def test_what_has_no_kernel_is_refused(on_device, how, why):
    on_device(played())
    with pytest.raises(mpsim.InputError, match=why):
        train(mlp, "pytorch-amp-bf16", 1, **how)


def geometries():
    """Convolutions of all kinds: (geometry, x, w, more of the sizes of y)."""
    for order in ORDERS:
        yield dict(padding=1, order=order), (2, 20, 5, 6), (3, 20, 3, 3)
        yield dict(stride=2, padding=1, order=order, transposed=True), (2, 20, 4, 3), (20, 3, 3, 2)
        yield dict(stride=(2, 3), padding=(0, 2), dilation=(1, 2), order=order), (2, 36, 7, 9), (3, 36, 3, 2)
    yield dict(groups=2, padding=1, dilation=2), (2, 6, 6, 5), (4, 3, 2, 2)
    yield dict(groups=2, stride=2, transposed=True), (2, 6, 3, 4), (6, 2, 3, 3)
    yield dict(groups=6, padding=1), (1, 6, 5, 5), (6, 1, 3, 3)
    yield dict(stride=2, padding=3), (1, 3, 11), (4, 3, 4)
    yield dict(stride=3, transposed=True), (1, 3, 4), (3, 2, 2)  # places that no tap meets
    yield dict(stride=(1, 2, 2), padding=1), (1, 2, 3, 5, 4), (3, 2, 2, 3, 3)
    yield dict(padding=1, taps="as-weights", row_multiple=4), (2, 5, 4, 6), (3, 5, 3, 3)


@pytest.mark.parametrize("last", (False, True), ids=("first", "last"))
@pytest.mark.parametrize("model", ("hopper-bf16-fp32", "exact"))
def test_convolutions(on_device, monkeypatch, model, last):
    """Windows that are copied and multiplied have the bits of convolutions in memory."""
    monkeypatch.setattr(_windows, "COPIED", 3000)  # some images at a time
    bf16, home = mpsim.formats["bf16"], _homes.OnDevice(played(), ("cpu",))
    g = torch.Generator().manual_seed(1)

    def random(shape):
        x = torch.randn(shape, generator=g).bfloat16().float()
        return x.contiguous(memory_format=torch.channels_last) if last and len(shape) == 4 else x

    for how, sx, sw in geometries():
        geometry = Geometry(**how)
        x, w, bias = random(sx), random(sw), random((sw[1] * how.get("groups", 1) if how.get("transposed") else sw[0],))
        dy = random((sx[0], len(bias), *geometry.sizes(sx[2:], sw[2:])))
        for which, like, a, b in (("forward", dy, x, w), ("input", x, dy, w), ("weight", w, dy, x)):
            terms = {"bias": View.row(bias)} if which == "forward" else {}
            found = []
            for each in (_homes.MEMORY, home):
                d, counts = torch.full_like(like, 7), each.counts() if each is not home else home.device.counts()
                each.convolve(which, View.of(d), (View.of(a), bf16), (View.of(b), bf16), model, geometry, factor=0.5, counts=counts, format=bf16, **terms)
                found.append((d, each.read([counts])[0]))
            assert torch.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1], (how, which, (found[0][0] != found[1][0]).sum())


class Images(nn.Module):
    """Convolutions of a weight in groups, transposed and of one tap."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.apart, self.up = nn.Conv2d(6, 6, 3, stride=2, groups=6), nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.head = nn.Linear(4, 32)

    def forward(self, x):
        x = x[:3].repeat(1, 4).view(-1, 2, 8, 8)
        return self.head(self.up(functional.relu(self.apart(functional.silu(self.norm(self.stem(x)))))).mean((2, 3)))


@pytest.mark.parametrize("policy", ("pytorch-amp-bf16", "te-fp8-current", "te-mxfp8", "bf16-stochastic"))
def test_models_with_convolutions(on_device, policy):
    e, f = compare(on_device, Images, policy, 1)
    assert [p.as_dict() for p in e.audit()] == [p.as_dict() for p in f.audit()]


class Gated(nn.Module):
    """RMSNorm and SwiGLU as one operation each, a tied table, other activations, attention with a mask."""

    def __init__(self, width=32, vocabulary=40):
        super().__init__()
        self.table, self.norm, self.up = nn.Embedding(vocabulary, width, padding_idx=3), nn.RMSNorm(width), nn.Linear(width, 48)
        self.act, self.down, self.head = Halves(), nn.Linear(24, width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        tokens = (x[:2].abs() * 9).long() % 40
        h = self.table(tokens)
        seen = torch.ones(32, 32, dtype=torch.bool).tril(3)
        h = h + functional.scaled_dot_product_attention(h, self.norm(h), h, attn_mask=seen)
        h = h + torch.tanh(self.down(self.act(self.up(functional.silu(h)))))
        return functional.cross_entropy(self.head(h).float().flatten(0, 1), tokens.flatten(), ignore_index=5).reshape(1)


class Halves(nn.Module):
    def forward(self, x):
        a, b = x.chunk(2, -1)
        return a * torch.sigmoid(a) * b


@pytest.mark.parametrize("policy", ("te-mxfp8", "pytorch-amp-bf16", "te-fp8-delayed"))
@pytest.mark.parametrize("make", (GPT, Images, Gated), ids=("gpt", "images", "gated"))
def test_operations_between_products(on_device, monkeypatch, make, policy):
    """between="mpsim": norms, activations, softmax, losses and tables by libmpsim-cuda."""
    called = []
    between = _device.Device.between
    monkeypatch.setattr(_device.Device, "between", lambda self, layer, arrays, n, what, counts=False: called.append(what) or between(
        self, layer, arrays, n, what, counts))
    e, f = compare(on_device, make, policy, 1, between="mpsim", **({"fused": {"act": "swiglu"}} if make is Gated else {}))
    assert [p.as_dict() for p in e.audit()] == [p.as_dict() for p in f.audit()]
    assert {GPT: {"layer_norm", "norm_backward", "norm_gradients", "activate", "activate_backward", "softmax", "softmax_backward", "cross_entropy",
                  "embedding", "embedding_backward", "column_sums"},
            Images: {"batch_norm", "batch_norm_backward", "activate", "activate_backward", "column_sums"},
            Gated: {"layer_norm", "norm_backward", "norm_gradients", "activate", "softmax", "cross_entropy", "embedding"}}[make] <= set(called)


@pytest.mark.parametrize("policy, attention", (("pytorch-amp-bf16", "tiled"), ("pytorch-amp-bf16", "tiled:5"), ("pytorch-amp-fp16", "tiled:16")))
def test_tiles_of_attention(on_device, monkeypatch, policy, attention):
    called = []
    function = _device.function
    monkeypatch.setattr(_device, "function", lambda name: called.append(name) or function(name))
    _, f = compare(on_device, GPT, policy, 1, attention=attention)
    assert {"attention_forward", "attention_backward"} <= set(called)
    assert _homes.TILES_IN_MEMORY not in f.notes


def test_tiles_without_kernels_are_copied_to_memory():
    """A mask, a format without a dtype: the bits of memory, and it is said."""
    bf16, e4m3 = mpsim.formats["bf16"], mpsim.formats["e4m3"]
    q, k, v = torch.randn(3, 2, 9, 8).unbind()
    seen = torch.rand(2, 9, 9) < 0.7
    how = tiles.Settings("hopper-bf16-fp32", "hopper-bf16-fp32", 8, bf16, tile=4)
    home, said = _homes.OnDevice(played(), ("cpu",)), []
    home.tiles.note = said.append
    for formats, mask, copied in (((bf16,) * 3, seen, 1), ((e4m3, bf16, bf16), None, 1), ((bf16,) * 3, None, 0)):
        here, there = ((torch.empty(2, 9, 8), torch.empty(2, 9)) for _ in range(2))
        said.clear()
        tiles.forward(*here, q, k, v, how, formats, mask)
        home.tiles.forward(*there, q, k, v, how, formats, mask)
        assert all(torch.equal(a, b) for a, b in zip(here, there))
        assert said == [_homes.TILES_IN_MEMORY] * copied


def test_attention_of_a_device(on_device):
    """The operator that scaled_dot_product_attention is on a CUDA device has the results of that of a CPU."""
    efficient = torch.ops.aten._scaled_dot_product_efficient_attention

    def run(f):
        q, k, v = (torch.randn(2, 3, 8, 16, generator=torch.Generator().manual_seed(i)).requires_grad_() for i in range(3))
        with mpsim.emulate(nn.Identity(), "pytorch-amp-bf16"):
            y = f(q, k, v)
            y.float().square().sum().backward()
        return y.detach(), q.grad, k.grad, v.grad

    on_device(played())
    there = run(lambda q, k, v: efficient(q, k, v, None, True, 0.0, True)[0])
    here = run(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    assert all(torch.equal(a, b) for a, b in zip(here, there))


def test_no_operator_of_cudnn(on_device):
    """Batch normalisation arrives as on a CPU, whose operator has a handler."""
    before = torch.backends.cudnn.enabled
    undo = _homes.OnDevice(played()).flags()
    assert not torch.backends.cudnn.enabled
    for each in undo:
        each()
    assert torch.backends.cudnn.enabled == before


@pytest.mark.parametrize("scale", (1.0, 3.0, 65536.0))
def test_gradients_are_unscaled_as_in_memory(scale):
    """By each rule, and rounded to the parameter's format where the scale is 1, too."""
    format, many = mpsim.formats["bf16"].c, torch.randn(3, 50, generator=torch.Generator().manual_seed(1))
    for rule in (_there.RECIPROCAL, _there.DIVIDE, _there.ROUNDED):
        here, there = many.clone(), many.clone()
        c = (_optimizer.CGradient * 3)(*(_optimizer.CGradient(ctypes.pointer(format), x.data_ptr(), x.data_ptr(), 50) for x in here))
        cause = ctypes.c_int64()
        assert _library.lib.mpsim_gradients_check(c, 3, rule, 0, scale, None, ctypes.byref(cause)) == 0
        _there.Gradients(type("Context", (), {"home": _homes.MEMORY}), list(there), [format] * 3).unscale(rule, scale)
        assert torch.equal(here, there), (rule, scale)


def test_norms_between_two_numbers():
    """Norms that binary64 cannot tell from the middle between two numbers are those of exact sums."""
    format = mpsim.formats["bf16"].c
    x = torch.tensor([1.0, 2.0**-4 + 2.0**-17])  # about 1 + 2^-9
    many = [torch.tensor([3.0, 4.0]), torch.tensor([256.0, 16.0, 16.0, 1.0]), x]  # the second is 257, between 256 and 258 of bf16
    context = type("Context", (), {"home": _homes.OnDevice(played(), ("cpu",))})
    g = _there.Gradients(context, many, [format] * 3)
    assert g.norms(True)[:] == [5.0, 256.0, 1.0]
    assert g.norms(False)[:2] == [5.0, 257.0]
