# SPDX-License-Identifier: Apache-2.0
"""Tests of mpsim.record: python3 test_recorder.py [NAME ...]; needs torch only, a minute.

Each case is trained twice, with the recorder and without it; all weights must be the same bits.
"""
import contextlib
import copy
import io
import json
import os
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings

from deterministic import setup
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_ as imported_before, clip_grad_value_ as value_imported_before
from torch.utils.checkpoint import checkpoint
from recorder import module as mpsim_recorder
from recorder import Recorder, safetensors_header, save_safetensors
import train_replay_cases

ALL = ("weight", "wgrad", "act", "out", "agrad", "dgrad")
HALF = torch.float16 if hasattr(torch.amp, "GradScaler") else torch.bfloat16  # of autocast on a CPU before torch 2.3
TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}


def load(path):
    """Tensors and metadata (without the prefix) of a safetensors file."""
    with open(path, "rb") as f:
        raw = f.read()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), bytearray(raw[8 + size:])
    meta = {k.removeprefix("mpsim."): v for k, v in header.pop("__metadata__").items()}
    tensors = {}
    for name, h in header.items():
        begin, end = h["data_offsets"]
        flat = torch.frombuffer(data[begin:end], dtype=TYPES[h["dtype"]]) if end > begin else torch.empty(0)
        tensors[name] = flat.reshape(h["shape"])
    assert end <= len(data)
    return tensors, meta


def at(directory, step, rank=0):
    return load(os.path.join(directory, f"step_{step:06d}", f"rank_{rank:05d}.safetensors"))


def steps_of(directory):
    return sorted(int(d[5:]) for d in os.listdir(directory)) if os.path.isdir(directory) else []


def same(a, b):
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b))


@contextlib.contextmanager
def folder():
    with tempfile.TemporaryDirectory() as d:
        yield d


@contextlib.contextmanager
def warned(count=None):
    """The recorder's warnings; count: how many there must be."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        said = []
        yield said
    said += [str(w.message) for w in seen if "mpsim.record" in str(w.message)]
    assert count is None or len(said) == count, said


def mlp(inplace=False):
    return nn.Sequential(nn.Linear(8, 6), nn.ReLU(inplace=inplace), nn.Linear(6, 3))


def floats(n=4):
    return torch.randn(n, 8)


def train(model, data, opt=None, rec=None, scaler=None, steps=4, between=None, after=None, call=None, micro=1):
    """A few steps; the weights. between: what is done between backward() and the step."""
    torch.manual_seed(7)
    opt = opt or torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(1, steps + 1):
        opt.zero_grad()
        if rec:
            rec.begin(step)
        for _ in range(micro):
            with torch.autocast("cpu", HALF, enabled=scaler is not None):
                loss = (call or model)(data()).float().square().mean()
            (scaler.scale(loss) if scaler else loss).backward()
        if between:
            between(opt)
        if rec and not after:
            rec.end(loss)
        if scaler:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
        if rec and after:
            rec.end(loss)
    if rec:
        rec.close()
    return [p.detach().clone() for p in model.parameters()]


def both(make, data, **options):
    """Train with and without a recorder, which sees everything; the trace's directory by step."""
    setup(3)
    plain = train(make(), data, **options)
    setup(3)
    model, files = make(), {}
    with folder() as d:
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        rec = Recorder(model, d, every=1, optimizer=opt, kinds=ALL)
        recorded = train(model, data, opt, rec, **options)
        for step in steps_of(d):
            files[step] = at(d, step)
    assert same(plain, recorded), "the recorder changed the training"
    assert len(files) == options.get("steps", 4)
    return files


# ---- the optimizer ----

def test_cases_unchanged():
    for name in train_replay_cases.CASES:
        with folder() as d, warned():
            assert same(train_replay_cases.train(name), train_replay_cases.train(name, d)), name
            assert len(steps_of(os.path.join(d, name))) in (6, 9), name


def test_groups():
    for name, steps in (("groups-adamw", 9), ("groups-sgd", 9), ("scheduler-adamw", 9)):
        with folder() as d:
            train_replay_cases.train(name, d)
            d = os.path.join(d, name)
            rates = []
            for step in range(1, steps + 1):
                tensors, meta = at(d, step)
                groups = json.loads(meta["groups"])
                assert sorted(p for g in groups for p in g["params"]) == sorted(
                    k.removeprefix("weight:") for k in tensors if k.startswith("weight:"))
                assert float(meta["lr"]) == groups[0]["lr"]
                rates.append((groups[0]["lr"], groups[0].get("beta1")))
                assert step == 9 or meta["skipped"] == meta["found_inf"]
            assert meta["optimizer"] == groups[0]["optimizer"] == ("sgd" if "sgd" in name else "adamw")
            assert int(meta["optimizer_steps"]) == groups[0]["steps"] == 5 and groups[0]["impl"] == "forloop"
            if name == "groups-adamw":
                assert [g["weight_decay"] for g in groups] == [0.05, 0.0]
                assert (groups[1]["beta1"], groups[1]["beta2"], groups[1]["eps"]) == (0.8, 0.95, 1e-6)
            elif name == "groups-sgd":
                assert [(g["nesterov"], g["maximize"], g["dampening"]) for g in groups] == [
                    (True, False, 0), (False, True, 0), (False, False, 0.25)]
            else:
                assert len({r for r, _ in rates}) > 6 and len({b for _, b in rates}) > 6, rates


def test_state():
    """amsgrad's maximum, steps of a parameter that had no gradient, masters."""
    with folder() as d:
        with warned():
            for name in ("amsgrad-adam", "sometimes", "half-masters"):
                train_replay_cases.train(name, d)
        tensors, meta = at(os.path.join(d, "amsgrad-adam"), 9)
        assert tensors["opt.vmax:fc1.weight"].ge(tensors["opt.v:fc1.weight"]).all()
        assert meta["optimizer"] == "adam" and meta["amsgrad"] == "true"
        tensors, meta = at(os.path.join(d, "sometimes"), 8)
        assert json.loads(meta["groups"])[0]["steps"] == [5, 5, 5, 5, 2, 2]
        assert "wgrad:branch.weight" not in tensors and "branch.weight (Parameter): no gradient" in meta["not_recorded"]
        tensors, meta = at(os.path.join(d, "half-masters"), 4)
        assert tensors["master:fc1.weight"].dtype == tensors["opt.m:fc1.weight"].dtype == torch.float32
        assert tensors["weight:fc1.weight"].dtype == tensors["wgrad:fc1.weight"].dtype == torch.float16


def test_classes():
    class Mine(torch.optim.AdamW):
        pass

    class Other(torch.optim.AdamW):
        def step(self, closure=None):
            return super().step(closure)

    def first(make):
        model = mlp()
        with folder() as d:
            opt = make(model.parameters())
            rec = Recorder(model, d, every=1, optimizer=opt, kinds=("weight",))
            train(model, floats, opt, rec, steps=1)
            g = json.loads(at(d, 1)[1]["groups"])[0]
            return g["optimizer"], g["impl"], g["class"].split(".")[-1]

    o = torch.optim
    assert first(lambda p: o.SGD(p, lr=0.1)) == ("sgd", "forloop", "SGD")
    assert first(lambda p: o.SGD(p, lr=0.1, foreach=True)) == ("sgd", "foreach", "SGD")
    assert first(lambda p: o.Adam(p, fused=True)) == ("adam", "fused", "Adam")
    assert first(lambda p: o.AdamW(p)) == ("adamw", "forloop", "AdamW")
    assert first(lambda p: o.RMSprop(p)) == ("rmsprop", "forloop", "RMSprop")
    assert first(lambda p: Mine(p))[0] == "adamw"
    assert first(lambda p: Other(p))[0] == "other"


def test_two_optimizers():
    model = mlp()
    a, b = torch.optim.SGD(model[0].parameters(), lr=0.1), torch.optim.AdamW(model[2].parameters())

    class Both:
        @staticmethod
        def zero_grad():
            model.zero_grad()

        @staticmethod
        def step():
            a.step()
            b.step()
    with folder() as d:
        train(model, floats, Both, Recorder(model, d, every=1, optimizer=[a, b]))
        meta = at(d, 4)[1]
        assert [g["optimizer"] for g in json.loads(meta["groups"])] == ["sgd", "adamw"]
        assert [g["steps"] for g in json.loads(meta["groups"])] == [3, 3] and meta["skipped"] == "0"
        assert json.loads(meta["optimizers"]) == [{"groups": [0], "skipped": 0}, {"groups": [1], "skipped": 0}]


def test_one_of_two_skips():
    """Under one scaler each optimizer skips for its own gradients, and is clipped by itself."""
    with folder() as d:
        train_replay_cases.train("two-optimizers-clip", d)
        meta = at(os.path.join(d, "two-optimizers-clip"), 3)[1]
        first, second = json.loads(meta["optimizers"])
        assert (first["skipped"], first["found_inf"], first["grad_clip"]) == (0, 0, 0.3) and first["grad_norm"] > 0.3
        assert (second["skipped"], second["found_inf"], second["grad_clip"], second["grad_norm"]) == (1, 1, 0.15, "inf")
        assert meta["found_inf"] == "1" and "grad_clip" not in meta and "not_recorded" not in meta


def test_tensor_settings():
    with folder() as d:
        train_replay_cases.train("tensor-lr", d)
        assert [g["tensors"] for g in json.loads(at(os.path.join(d, "tensor-lr"), 1)[1]["groups"])] == [["lr"]]


def test_muon_settings():
    with folder() as d:
        train_replay_cases.train("muon", d)
        g = json.loads(at(os.path.join(d, "muon"), 1)[1]["groups"])[0]
        assert (g["ns_steps"], g["ns_coefficients"], g["adjust_lr_fn"]) == (5, [3.4445, -4.775, 2.0315], "original")


def test_foreign_parameters():
    """Parameters that the optimizer has not, and that the model has not, are named."""
    model, other = mlp(), nn.Parameter(torch.ones(3))
    with folder() as d, warned(1):
        opt = torch.optim.SGD([*model[0].parameters(), other], lr=0.1)
        train(model, floats, opt, Recorder(model, d, every=1, optimizer=opt), steps=2)
        missing = at(d, 2)[1]["not_recorded"].split(",")
    assert missing == ["2.bias (Parameter): in no group of the optimizer",
                       "2.weight (Parameter): in no group of the optimizer",
                       "group 0 parameter 2 (Parameter): the model has it not"], missing


# ---- gradients, scaler, clip ----

def amp(between, scaler_given=True, after=False, kinds=("weight", "wgrad"), steps=4, make=torch.optim.AdamW, **options):
    """An AMP training; what was recorded, and what the gradients and the norm were."""
    setup(5)
    model, seen = mlp(), []
    opt = make(model.parameters(), lr=1e-2, **options)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 26, growth_interval=2)

    def spy(opt):
        seen.append(([p.grad.clone() for p in model.parameters()], scaler.get_scale(), scaler._get_growth_tracker(),
                     between(model, opt, scaler)))
    with folder() as d:
        rec = Recorder(model, d, every=1, optimizer=opt, kinds=kinds, scaler=scaler if scaler_given else None)
        train(model, floats, opt, rec, scaler, steps, between=spy, after=after)
        files = [at(d, s) for s in steps_of(d)]
    assert len(files) == steps
    names = [n for n, _ in model.named_parameters()]
    for (tensors, meta), (grads, scale, tracker, _) in zip(files, seen):
        for n, g in zip(names, grads):
            assert torch.allclose(tensors["wgrad:" + n], g, rtol=0, atol=0, equal_nan=True), n
        assert float(meta["loss_scale"]) == scale and meta["grads_scaled"] == "true"
        assert int(meta["growth_tracker"]) == tracker and meta["autocast"] == "float16"
        assert int(meta["found_inf"]) == int(meta["skipped"]) == int(not all(g.isfinite().all() for g in grads))
    return files, [s[3] for s in seen]


def last_taken(files):
    """The metadata of the last step that was not skipped."""
    return [meta for _, meta in files if meta["skipped"] == "0"][-1]


def test_order_of_calls():
    """Gradients are those of backward(), wherever end() stands, given a scaler or not."""
    def unscale(model, opt, scaler):
        scaler.unscale_(opt)

    def nothing(model, opt, scaler):
        pass
    for between in (unscale, nothing):
        for given in (True, False):
            for after in (True, False):
                files, _ = amp(between, given, after, steps=12)
                assert {m["found_inf"] for _, m in files} == {"0", "1"}
                assert all(m["grad_clip"] == "0.0" and "not_recorded" not in m for _, m in files)
    files, _ = amp(nothing, steps=12, fused=True)
    assert {m["found_inf"] for _, m in files} == {"0", "1"}
    taken = [int(m["optimizer_steps"]) for _, m in files]
    assert taken == [sum(m["skipped"] == "0" for _, m in files[:i]) for i in range(len(files))]
    files, _ = amp(nothing, steps=12, make=torch.optim.SGD, fused=True)
    assert taken[:4] == [int(m["optimizer_steps"]) for _, m in files][:4]


def test_clip():
    def by(function, *args, **kwargs):
        def between(model, opt, scaler):
            scaler.unscale_(opt)
            return function(model.parameters(), *args, **kwargs)
        return between

    def parts(parameters, limit):
        parameters = list(parameters)
        norm = nn.utils.get_total_norm([p.grad for p in parameters])
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
        return norm
    for function in (lambda *a: nn.utils.clip_grad_norm_(*a), imported_before, parts):
        files, norms = amp(by(function, 0.1), steps=12)
        for (_, meta), norm in zip(files, norms):
            assert meta["grad_clip"] == "0.1" and meta["grad_norm"] == repr(norm.item())
            assert meta["grad_norm_type"] == "2" and meta["clip_impl"] == "foreach" and "not_recorded" not in meta
    files, norms = amp(by(imported_before, 0.1, norm_type=float("inf"), foreach=False), steps=12)
    assert files[-1][1]["grad_norm_type"] == "inf" and files[-1][1]["clip_impl"] == "forloop"
    files, _ = amp(by(lambda *a: nn.utils.clip_grad_value_(*a), 0.001), steps=12)
    assert files[-1][1]["grad_clip_value"] == "0.001" and "not_recorded" not in files[-1][1]
    with warned():                               # a name that was taken before begin() is seen by what it does
        files, _ = amp(by(value_imported_before, 0.001), steps=12)
    assert "changed after backward() in a way not seen" in last_taken(files)["not_recorded"]
    assert nn.utils.clip_grad_norm_ is imported_before and nn.utils.clip_grad_value_ is value_imported_before


def test_wrong_clips():
    """What the metadata cannot say is named: scaled gradients, some parameters, twice, by hand."""
    def scaled(model, opt, scaler):
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)

    def some(model, opt, scaler):
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model[0].parameters(), 0.1)

    def twice(model, opt, scaler):
        scaler.unscale_(opt)
        for part in (model[0], model[2]):
            nn.utils.clip_grad_norm_(part.parameters(), 0.1)

    def by_hand(model, opt, scaler):
        scaler.unscale_(opt)
        for p in model.parameters():
            p.grad.mul_(0.5)
    for between, reason in ((scaled, "still scaled"), (some, "not once and of all"), (twice, "not once and of all"),
                            (by_hand, "(gradients) (4 tensors): changed after backward() in a way not seen")):
        with warned() as said:
            files, _ = amp(between, steps=12)
        meta = last_taken(files)
        assert reason in meta["not_recorded"] and len(said) == 1, (reason, meta, said)
        assert between is by_hand or "grad_clip" not in meta and "grad_norm" not in meta


def test_accumulation():
    files = both(mlp, floats, micro=3)
    tensors, meta = files[2]
    assert meta["accumulation"] == "3" and meta["order"] == "0,1,2,0,1,2,0,1,2"
    assert {"act:0", "act:0.1", "act:0.2", "agrad:2.2"} <= set(tensors)


def test_by_hand_scaler():
    """end(loss_scale=, grads_scaled=), as before; note() for what cannot be seen."""
    model = mlp()
    with folder() as d:
        rec = Recorder(model, d, {1}, meta={"optimizer": "sgd", "lr": 0.1})
        rec.begin(1)
        loss = model(floats()).mean()
        (loss * 64).backward()
        rec.note(found_inf=0)
        rec.end(loss, loss_scale=64, grads_scaled=True, reduced="pre")
        assert steps_of(d) == [1]                # written at once where there is no optimizer to wait for
        meta = at(d, 1)[1]
        assert (meta["loss_scale"], meta["grads_scaled"], meta["reduced"], meta["lr"]) == ("64", "true", "pre", "0.1")
        assert meta["found_inf"] == "0" and "grad_clip" not in meta


# ---- models ----

def words():
    return torch.randint(11, (3, 5))


def test_attention():
    files = both(train_replay_cases.Attention, words)
    tensors, meta = files[3]
    assert {"weight:attn.in_proj_weight", "wgrad:attn.in_proj_weight", "act:attn", "out:attn", "agrad:attn",
            "dgrad:attn", "opt.m:attn.in_proj_weight"} <= set(tensors)
    assert meta["not_recorded"].split(",") == [
        "attn.out_proj (NonDynamicallyQuantizableLinear): attn does its work",
        "embed (Embedding): its input is no floating-point tensor"], meta["not_recorded"]


def test_attention_layer():
    def make():
        return nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    files = both(make, lambda: torch.randn(2, 5, 8))
    assert "act:self_attn" in files[4][0] and "out_proj" in files[4][1]["not_recorded"]


def test_tied():
    files = both(train_replay_cases.Tied, words)
    tensors, meta = files[2]
    assert json.loads(meta["tied"]) == {"decoder.weight": "encoder.weight"}
    assert "weight:encoder.weight" in tensors and "weight:decoder.weight" not in tensors


def test_norms():
    tensors, meta = both(train_replay_cases.Norms, words)[2]
    assert {"act:ln", "agrad:ln", "act:rms", "agrad:rms", "dgrad:rms", "wgrad:rms.weight"} <= set(tensors)
    assert "act:embed" not in tensors and "agrad:embed" in tensors
    assert meta["not_recorded"] == "embed (Embedding): its input is no floating-point tensor"


def test_in_place():
    tensors, meta = both(lambda: mlp(inplace=True), floats)[2]
    other, _ = both(mlp, floats)[2]
    assert "act:1" in tensors and tensors["act:1"].lt(0).any()          # as it was before
    for key in other:
        assert key == "dgrad:1" or torch.equal(tensors[key], other[key]), key
    assert meta["not_recorded"] == "1 (ReLU): dgrad: no gradient came; unused or changed in place"


def test_residual():
    """dX is the module's own share of the gradient of its input."""
    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.fc = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            h = self.first(x)
            return h + self.fc(h)
    t, _ = both(Residual, floats)[1]
    assert torch.allclose(t["dgrad:fc"], t["agrad:fc"] @ t["weight:fc.weight"])
    assert torch.allclose(t["agrad:first"], t["dgrad:fc"] + t["agrad:fc"])


def test_checkpoint():
    class Checkpointed(nn.Module):
        def __init__(self, reentrant):
            super().__init__()
            self.first, self.body, self.last, self.reentrant = nn.Linear(8, 8), mlp(), nn.Linear(3, 3), reentrant

        def forward(self, x):
            h = self.first(x)
            h = self.body(h) if self.reentrant is None else checkpoint(self.body, h, use_reentrant=self.reentrant)
            return self.last(h)
    plain, meta = both(lambda: Checkpointed(None), floats)[2]
    for reentrant in (False, True):
        tensors, other = both(lambda: Checkpointed(reentrant), floats)[2]
        assert other["order"] == meta["order"] and other["accumulation"] == "1"
        for key in tensors:
            assert torch.equal(tensors[key], plain[key]), key
        for key in set(plain) - set(tensors):    # named, if it is not there
            name = key.split(":")[1]
            assert key.startswith("dgrad:") and name + " (" in other["not_recorded"], (reentrant, key, other)


def test_functional_weights():
    """A module that is not called, and one with parameters of its own and children."""
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.unused = nn.Linear(8, 6), nn.Linear(6, 3), nn.Linear(2, 2)
            self.gain = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.b(nn.functional.linear(x, self.a.weight, self.a.bias)) * self.gain
    tensors, meta = both(Functional, floats)[2]
    assert "wgrad:a.weight" in tensors and "act:a" not in tensors and "act:b" in tensors
    assert [m.split(":")[0] for m in meta["not_recorded"].split(",")] == [
        "(model) (Functional)", "a (Linear)", "unused (Linear)", "unused.bias (Parameter)",
        "unused.weight (Parameter)"], meta["not_recorded"]


def test_odd_tensors():
    """Sparse gradients and complex parameters are named; frozen parameters are only weights."""
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.fc = nn.Embedding(11, 8, sparse=True), nn.Linear(8, 3)
            self.turn = nn.Parameter(torch.ones(3, dtype=torch.complex64))
            self.fc.bias.requires_grad_(False)

        def forward(self, x):
            return (self.fc(self.embed(x)) * self.turn).real
    model = Odd()
    with folder() as d, warned(1):
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, words, opt, Recorder(model, d, every=1, optimizer=opt, kinds=("weight", "wgrad")), steps=2)
        tensors, meta = at(d, 2)
    assert "weight:fc.bias" in tensors and "wgrad:fc.bias" not in tensors and "wgrad:fc.weight" in tensors
    assert "embed.weight (sparse_coo)" in meta["not_recorded"] and "turn (complex64)" in meta["not_recorded"]


def test_compile():
    """Bits as without the recorder, and every module that was not seen is named."""
    def compiled(kind):
        def make():
            torch._dynamo.reset()
            model = mlp(inplace=True)
            if kind == "model":
                return torch.compile(model, backend="aot_eager")
            if kind == "method":
                model.compile(backend="aot_eager")
            if kind == "part":
                model[2] = torch.compile(model[2], backend="aot_eager")
            return model
        return make
    for kind in ("model", "method", "part"):
        tensors, meta = both(compiled(kind), floats)[3]
        assert {"weight:0.weight", "wgrad:2.bias", "opt.v:0.weight"} <= set(tensors), sorted(tensors)
        assert "2 (Linear): compiled" in meta["not_recorded"] and "act:2" not in tensors
        assert ("act:0" in tensors) == (kind == "part")
    compiler = []

    def call(x):                                 # the model itself is not compiled: a function around it is
        return compiler[-1](x)

    def make():
        torch._dynamo.reset()
        model = mlp()
        compiler.append(torch.compile(lambda x: model(x), backend="aot_eager"))
        return model
    tensors, meta = both(make, floats, call=call)[3]
    assert "wgrad:2.bias" in tensors and "2 (Linear): not called or compiled" in meta["not_recorded"]


# ---- several processes ----

def distributed(rank, kind, d):
    torch.distributed.init_process_group("gloo", init_method=f"file://{d}/meeting-{kind}", rank=rank, world_size=2)
    warnings.simplefilter("ignore")

    def run(record):
        setup(3)
        model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4))
        if kind == "ddp":
            model = nn.parallel.DistributedDataParallel(model)
        elif kind == "fsdp1":
            from torch.distributed.fsdp import FullyShardedDataParallel
            model = FullyShardedDataParallel(model, device_id=torch.device("cpu"), use_orig_params=True)
        else:
            from torch.distributed.fsdp import fully_shard
            from torch.distributed.device_mesh import init_device_mesh
            mesh = init_device_mesh("cpu", (2,))
            fully_shard(model[0], mesh=mesh)
            fully_shard(model, mesh=mesh)
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        rec = record and Recorder(model, os.path.join(d, kind), every=1, optimizer=opt, gather=kind == "fsdp-gather")
        torch.manual_seed(rank)

        def clip(opt):
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)

        def data():
            return torch.randn(4, 8) + rank
        train(model, data, opt, rec, between=clip)
        return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach().clone() for p in model.parameters()]
    assert same(run(False), run(True)), "the recorder changed the training"
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)                                  # threads of gloo may still be there


def pair(kind):
    d = tempfile.TemporaryDirectory()
    torch.multiprocessing.spawn(distributed, (kind, d.name), nprocs=2)
    return d, [at(os.path.join(d.name, kind), 3, rank) for rank in (0, 1)]


def test_ddp():
    d, ((a, meta), (b, other)) = pair("ddp")
    assert (meta["rank"], other["rank"], meta["world"], meta["reduced"]) == ("0", "1", "2", "post")
    assert torch.equal(a["wgrad:0.weight"], b["wgrad:0.weight"]) and not torch.equal(a["act:0"], b["act:0"])
    assert "not_recorded" not in meta and json.loads(meta["groups"])[0]["params"][0] == "0.weight"
    d.cleanup()


def test_fsdp():
    d, ((a, meta), _) = pair("fsdp")
    assert "0.weight (DTensor): " in meta["not_recorded"] and not any(k.startswith("w") for k in a)
    assert "act:0" in a and "agrad:2" in a
    d.cleanup()
    d, ((a, meta), (b, _)) = pair("fsdp-gather")
    assert tuple(a["weight:0.weight"].shape) == (6, 8) and torch.equal(a["wgrad:2.weight"], b["wgrad:2.weight"])
    assert torch.equal(a["opt.v:0.weight"], b["opt.v:0.weight"]) and float(meta["grad_norm"]) > 0
    assert "not_recorded" not in meta, meta
    d.cleanup()
    d, ((a, meta), _) = pair("fsdp1")
    assert "(FullyShardedDataParallel): parameters are flat" in meta["not_recorded"] and "act:0" in a
    assert not any(k.startswith(("w", "opt")) for k in a)
    d.cleanup()


# ---- which steps, how many bytes, failures ----

def test_which_steps():
    def recorded(**options):
        model = mlp()
        with folder() as d:
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            train(model, floats, opt, Recorder(model, d, optimizer=opt, **options), steps=12)
            return steps_of(d)
    assert recorded(every=1) == list(range(1, 13))
    assert recorded(steps={2, 5}) == [2, 5] and recorded(steps=[]) == []
    assert recorded(every=5) == [5, 10]
    assert recorded(every=5, consecutive=2) == [1, 5, 6, 10, 11]
    assert recorded(every=6, steps=(1,)) == [1, 6, 12]


def test_which_modules():
    model = mlp()
    with folder() as d:
        train(model, floats, None, Recorder(model, d, every=1, kinds=ALL, modules="[01]", out_modules="0"), steps=1)
        assert {k.split(":")[1] for k in at(d, 1)[0] if k.split(":")[0] in ("act", "agrad", "dgrad")} == {"0", "1"}


def test_max_bytes():
    setup(3)
    plain = train(mlp(), floats, steps=8)
    setup(3)
    model = mlp()
    with folder() as d, warned(1) as said:
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        rec = Recorder(model, d, every=1, optimizer=opt, max_bytes=16000)
        assert same(plain, train(model, floats, opt, rec, steps=8))
        size = sum(os.path.getsize(os.path.join(w, f)) for w, _, files in os.walk(d) for f in files)
        assert 8000 < size <= 16000 and steps_of(d) == list(range(1, len(steps_of(d)) + 1)), size
        assert rec.written == size
    assert "max_bytes=16000" in said[0]


def fails(prepare, **options):
    """A trace that cannot be written: one warning, same weights, nothing half written."""
    setup(3)
    plain = train(mlp(), floats, steps=5)
    setup(3)
    model = mlp()
    with folder() as d, warned(1) as said:
        opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
        place = os.path.join(d, "trace")
        rec = Recorder(model, place, every=1, optimizer=opt, **options)
        restore = prepare(place)
        try:
            assert same(plain, train(model, floats, opt, rec, steps=5))
        finally:
            restore()
        left = [os.path.join(w, f) for w, _, files in os.walk(place) for f in files]
        for path in left:
            load(path)
    assert "the training goes on" in said[0]
    return left


def test_no_folder():
    def a_file(place):
        with open(place, "w", encoding="ascii") as f:
            f.write("here is a file\n")
        return lambda: os.remove(place)
    fails(a_file)


def test_no_permission():
    if os.geteuid() == 0:
        return print("  (skipped: root may write everywhere)")

    def closed(place):
        os.mkdir(place, 0o500)
        return lambda: os.chmod(place, 0o700)
    assert fails(closed) == []


def test_disk_full():
    """No file may grow beyond 2 KB, as if the disk were full."""
    def small(place):
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old[1]))

        def restore():
            resource.setrlimit(resource.RLIMIT_FSIZE, old)
            signal.signal(signal.SIGXFSZ, handler)
        return restore
    assert fails(small) == []


def test_failing_recorder():
    """An error of the recorder's own, anywhere: one warning, same weights."""
    for name in ("raw_bytes", "floats", "implementation", "is_sharded"):
        def broken(place):
            old = getattr(mpsim_recorder, name)

            def raises(*args, **kwargs):
                raise RuntimeError("broken")
            setattr(mpsim_recorder, name, raises)
            return lambda: setattr(mpsim_recorder, name, old)
        assert fails(broken, kinds=ALL) == [], name


def test_warnings_are_errors():
    model = train_replay_cases.Attention()
    with folder() as d, warnings.catch_warnings():
        warnings.simplefilter("error")
        with open(os.devnull, "w", encoding="ascii") as f, contextlib.redirect_stderr(f):
            opt = torch.optim.AdamW(model.parameters())
            train(model, words, opt, Recorder(model, d, every=1, optimizer=opt), steps=2)
        assert steps_of(d) == [1, 2]


def test_file():
    """Equal data gives equal bytes; a file is replaced whole."""
    with folder() as d:
        path = os.path.join(d, "a", "b.safetensors")
        tensors = {"b": torch.arange(6.0).reshape(2, 3).t(), "a": torch.tensor(1.5), "empty": torch.empty(0, 4),
                   "half": torch.ones(3, dtype=torch.float16), "brain": torch.ones(3, dtype=torch.bfloat16)}
        save_safetensors(path, tensors, {"k": "v"})
        assert safetensors_header(tensors, {"k": "v"})[1] == os.path.getsize(path)
        assert os.listdir(os.path.dirname(path)) == ["b.safetensors"]
        for name, t in load(path)[0].items():
            assert torch.equal(t, tensors[name]) and t.shape == tensors[name].shape


def test_end_of_training():
    """The last step is written without close() when the optimizer has stepped; a step that the
    program gave up is written by close(), as skipped; snapshot() has no gradients."""
    model = mlp()
    with folder() as d:
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        rec = Recorder(model, d, every=1, optimizer=opt)
        for step in (1, 2):
            opt.zero_grad()
            rec.begin(step)
            loss = model(floats()).square().mean()
            loss.backward()
            rec.end(loss)
            if step == 1:
                opt.step()
                assert steps_of(d) == [1]
        assert steps_of(d) == [1]
        rec.snapshot(3)
        rec.close()
        assert [at(d, s)[1].get("skipped") for s in (1, 2, 3)] == ["0", "1", None]
        assert not any(k.startswith("wgrad") for k in at(d, 3)[0]) and "opt.m:0.weight" in at(d, 3)[0]


def test_resumed():
    """The count of steps is said only where it is known."""
    model = mlp()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    train(model, floats, opt, steps=3)
    with folder() as d:
        train(model, floats, opt, Recorder(model, d, every=1, optimizer=opt), steps=2)
        for step in (1, 2):
            tensors, meta = at(d, step)
            assert "steps" not in json.loads(meta["groups"])[0] and "optimizer_steps" not in meta
            assert "opt.m:0.weight" in tensors
    opt = torch.optim.Adam(model.parameters())
    train(model, floats, opt, steps=3)
    with folder() as d:
        train(model, floats, opt, Recorder(model, d, every=1, optimizer=opt), steps=2)
        assert at(d, 2)[1]["optimizer_steps"] == "4"


def test_wrapped_optimizer():
    class Wrapped(torch.optim.Optimizer):        # as Accelerate's
        def __init__(self, optimizer):
            self.optimizer = optimizer

        def zero_grad(self):
            self.optimizer.zero_grad()

        def step(self):
            self.optimizer.step()
    model = mlp()
    with folder() as d:
        opt = Wrapped(torch.optim.AdamW(model.parameters()))
        train(model, floats, opt, Recorder(model, d, every=1, optimizer=opt), steps=2)
        assert at(d, 2)[1]["optimizer_steps"] == "1" and at(d, 2)[1]["skipped"] == "0"


def test_two_recorders():
    """Two models whose steps are recorded at once, and nothing is left of it."""
    models, scaler = [mlp(), mlp()], torch.amp.GradScaler("cpu")
    opts = [torch.optim.AdamW(m.parameters()) for m in models]
    before = torch.autograd.backward
    with folder() as d:
        recs = [Recorder(m, os.path.join(d, str(k)), every=1, optimizer=o)
                for k, (m, o) in enumerate(zip(models, opts))]
        for step in range(1, 4):
            for rec in recs:
                rec.begin(step)
            for m, o, rec in zip(models, opts, recs):
                o.zero_grad()
                loss = m(floats()).square().mean()
                if m is models[1]:
                    loss.backward()
                    rec.end(loss)
                else:                            # a scaler that only one of them has
                    scaler.scale(loss).backward()
                    rec.end(loss)
                    scaler.unscale_(o)
                nn.utils.clip_grad_norm_(m.parameters(), 0.1)
                if m is models[1]:
                    o.step()
                else:
                    scaler.step(o)
                    scaler.update()
        for k in (0, 1):
            assert steps_of(os.path.join(d, str(k))) == [1, 2, 3]
            meta = at(os.path.join(d, str(k)), 3)[1]
            assert (meta["grads_scaled"], meta.get("scaler")) == (("true", "torch"), ("false", None))[k], meta
            assert "grad_norm" in meta and meta["accumulation"] == "1" and "not_recorded" not in meta, meta
    assert torch.autograd.backward is before and not mpsim_recorder.PATCHED


def test_saved_and_copied():
    """A model is saved and copied while a step is recorded; what a copy computes is not the model's; close() leaves nothing."""
    setup(3)
    model = mlp()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    with folder() as d, warned(0):
        rec = Recorder(model, d, every=1, optimizer=opt)
        rec.begin(1)
        average, saved = copy.deepcopy(model), io.BytesIO()
        torch.save(model, saved)
        average(torch.randn(50, 8)).sum().backward()
        model(floats()).sum().backward()
        rec.end()
        opt.step()
        rec.close()
        tensors, _ = at(d, 1)
        assert tensors["act:0"].shape == (4, 8) and "act:0.1" not in tensors
        assert not getattr(opt, "_optimizer_step_post_hooks", None) and "step" not in vars(opt)
        rec.begin(2)                             # and goes on, if it is asked to
        model(floats()).sum().backward()
        rec.end()
        opt.step()
        assert steps_of(d) == [1, 2]
        rec.close()
    assert b"mpsim" not in saved.getvalue()


def test_nothing_stays():
    """After a recorded step all functions and modules are as before."""
    before = (torch.autograd.backward, torch.autocast.__enter__, nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_,
              nn.utils.get_total_norm, torch.amp.GradScaler.step, torch.amp.GradScaler.unscale_)
    model = mlp()
    with folder() as d:
        train(model, floats, None, Recorder(model, d, every=1, kinds=ALL), steps=2)
    after = (torch.autograd.backward, torch.autocast.__enter__, nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_,
             nn.utils.get_total_norm, torch.amp.GradScaler.step, torch.amp.GradScaler.unscale_)
    assert all(a is b for a, b in zip(before, after))
    assert not any(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in model.modules())


def test_misuse():
    """What is no directory is refused at once, and a recorder whose begin() nobody called says why there is no trace."""
    model = nn.Linear(2, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        Recorder(model, opt, every=1)
        raise AssertionError("an optimizer was taken as the directory")
    except TypeError as error:
        assert "SGD" in str(error)
    with tempfile.TemporaryDirectory() as d, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Recorder(model, d, every=1, optimizer=opt).close()
        assert ["begin(step) was never called" in str(w.message) for w in said] == [True]


def main():
    tests = {n.removeprefix("test_"): f for n, f in globals().items() if n.startswith("test_")}
    bad = 0
    for name in sys.argv[1:] or tests:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tests[name]()
                print("ok", name, flush=True)
            except Exception:
                bad += 1
                print("not ok", name, flush=True)
                traceback.print_exc()
    print(f"{len(sys.argv[1:] or tests)} tests, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
