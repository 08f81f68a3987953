"""Watching a training: the numbers of the program on a recorded trace, and the same weights to the bit."""
import copy
import json
import os
import warnings

import pytest

import mpsim

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from mpsim.record import Recorder  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, again):
        super().__init__()
        self.norm, self.up, self.down, self.again = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width), again

    def inside(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

    def forward(self, x):
        return checkpoint(self.inside, x, use_reentrant=False) if self.again else self.inside(x)


def network(again=False, dtype=torch.float32):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), Block(8, again), nn.Dropout(0.1), nn.Linear(8, 3)).to(dtype)


def train(model, optimizers, steps=3, scaler=None, micro=1, recorder=None, dtype=torch.float32, clip=False, overflow=()):
    """The weights after some steps."""
    torch.manual_seed(5)
    for step in range(1, steps + 1):
        for opt in optimizers:
            opt.zero_grad()
        if recorder:
            recorder.begin(step)
        for _ in range(micro):
            loss = model(torch.randn(4, 6, dtype=dtype)).float().square().mean() * (float("inf") if step in overflow else 1e-3)
            (scaler.scale(loss) if scaler else loss).backward()
        if recorder:
            recorder.end(loss)
        for opt in optimizers:
            if clip:
                if scaler:
                    scaler.unscale_(opt)
                nn.utils.clip_grad_norm_([p for g in opt.param_groups for p in g["params"]], 1e-3)
            scaler.step(opt) if scaler else opt.step()
        if scaler:
            scaler.update()
    return [p.detach().clone() for p in model.parameters()]


def adam(model):
    return [torch.optim.AdamW(model.parameters(), lr=1e-3)]


def two(model):
    return [torch.optim.AdamW(model[:2].parameters(), lr=1e-3), torch.optim.SGD(model[2:].parameters(), lr=1e-2, momentum=0.9)]


def scaler_of(spec):
    return torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2) if spec else None


def equal(a, b):
    return all(torch.equal(x, y) for x, y in zip(a, b))


CASES = {
    "plain": {}, "accumulated": {"micro": 3}, "checkpointed": {"again": True}, "two optimizers": {"optimizers": two},
    "scaled": {"scaler": True, "overflow": (2,), "steps": 5}, "clipped": {"scaler": True, "clip": True},
    "bf16": {"dtype": torch.bfloat16}, "two scaled": {"optimizers": two, "scaler": True, "overflow": (2,)},
}


@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case, tmp_path, program):
    """Every record is the program's of the tensors that the recorder keeps; the weights are those of a training alone."""
    options = {"again": False, "dtype": torch.float32, "optimizers": adam, "scaler": False, **CASES[case]}
    again, dtype, make, scaled = (options.pop(k) for k in ("again", "dtype", "optimizers", "scaler"))
    kinds = ("weight", "wgrad", "act", "agrad", "out", "dgrad", "opt")
    model = network(again, dtype)
    alone = train(model, make(model), scaler=scaler_of(scaled), dtype=dtype, **options)
    model = network(again, dtype)
    optimizers = make(model)
    recorder = Recorder(model, tmp_path / "trace", every=1, optimizer=optimizers,
                        kinds=("weight", "wgrad", "act", "agrad", "out", "dgrad", "opt.m", "opt.v"))
    train(model, optimizers, scaler=scaler_of(scaled), dtype=dtype, recorder=recorder, **options)
    recorder.close()
    model = network(again, dtype)
    optimizers = make(model)
    with mpsim.watch(model, optimizers, every=1, formats=["fp16", "e4m3"], scales=[1, 2**12], recipes=["mxfp8"],
                     out=tmp_path / "run.jsonl", kinds=kinds) as w:
        watched = train(model, optimizers, scaler=scaler_of(scaled), dtype=dtype, **options)
    assert equal(alone, watched) and not w.remarks
    ours = [json.loads(line) for line in open(tmp_path / "run.jsonl")]
    words = ["--ndjson", "-q", "--format=fp16,e4m3,mxfp8", "--scale=1,4096", tmp_path / "trace"]
    theirs = [json.loads(line) for line in program("stat", *words).splitlines()]
    assert ours[0] == theirs[0]

    def by_name(records):
        return {(r["level"], r.get("name", r.get("kind")), r.get("step")): {
            k: v for k, v in r.items() if k not in ("file", "loss_scale", "grad_norm")} for r in records[1:]}
    mine, reference = by_name(ours), by_name(theirs)
    extra = {key for key in mine if key[0] in ("update", "scaler")}
    # the clip begins before the second optimizer's step, so do the gradients of both: the order is the recorder's
    assert set(mine) - extra == set(reference)
    for key in reference:
        assert mine[key] == reference[key], key
    if scaled:
        skipped = [(r["step"], r["scale"]) for r in ours if r["level"] == "scaler" and r["skipped"]]
        assert skipped == [(step, 2.0**10) for step in options.get("overflow", ())]
        assert len(w.history[0]) == options.get("steps", 3)


def test_steps_that_are_watched(tmp_path):
    """The first and each that `every` divides; evaluation between them is none of it."""
    model = network()
    optimizers = adam(model)
    seen = []
    w = mpsim.watch(model, optimizers, every=3, out=tmp_path / "x", log=seen.append, start=5)
    torch.manual_seed(0)
    for _ in range(6):
        optimizers[0].zero_grad()
        model(torch.randn(2, 6)).sum().backward()
        optimizers[0].step()
        model.eval()
        model(torch.randn(50, 6))
        model.train()
    w.close()
    w.close()
    records = [json.loads(line) for line in open(tmp_path / "x")]
    assert [r["step"] for r in records if r["level"] == "step"] == [5, 6, 9] == [d["step"] for d in seen]
    assert not any(r.get("shape", [0])[0] == 50 for r in records)
    assert seen[0]["mpsim/wgrad/0.weight/underflow/fp16"] == 0 and "mpsim/updates_lost/bf16" in seen[0]
    assert w.count == 10 and not model[0]._forward_hooks and not model[0]._forward_pre_hooks
    before = len(open(tmp_path / "x").read())
    optimizers[0].step()
    assert len(open(tmp_path / "x").read()) == before


def test_lost_updates():
    """Against bf16 training by torch: weights that torch's own SGD would not move in bf16."""
    torch.manual_seed(3)
    old = torch.randn(40_000)
    grad = torch.randn(40_000) * torch.logspace(-6, 0, 40_000)
    new = old - grad * 0.01
    p = nn.Parameter(old.to(torch.bfloat16))
    moved = (p.detach().float() + (new - old)).to(torch.bfloat16)
    from mpsim._watch import lost_updates
    moves, lost = lost_updates(old, new, "bf16")
    assert moves == int((new != old).sum()) and lost == int(((moved == p.detach()) & (new != old)).sum()) > 300
    model = nn.Linear(10, 10, bias=False)
    opt = torch.optim.SGD(model.parameters(), lr=1e-6)
    with mpsim.watch(model, opt, every=1) as w:
        model(torch.randn(5, 10)).square().mean().backward()
        opt.step()
    assert any("Weights kept in bf16 would stall" in line for line in w.advice())


def test_what_is_refused_by_name(tmp_path):
    model = network()
    compiled = torch.compile(model, backend="eager")
    opt = adam(model)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with mpsim.watch(compiled, opt, every=1, out=tmp_path / "x") as w:
            loss = compiled(torch.randn(2, 6)).sum()
            loss.backward()
            opt[0].step()
    assert any("0 (Linear): compiled" in line for line in w.remarks) and any("compiled" in str(s.message) for s in seen)
    records = [json.loads(line) for line in open(tmp_path / "x")]
    assert {r["kind"] for r in records if r["level"] == "tensor"} == {"weight", "wgrad"}
    assert any(r["level"] == "note" for r in records)
    for call, words in (
            (lambda: mpsim.watch(model, opt, formats=["fp61"]), "fp61"), (lambda: mpsim.watch(model, opt, kinds=["grad"]), "found 'grad'"),
            (lambda: mpsim.watch(model, opt, every=0), "every"), (lambda: mpsim.watch("model", opt), "torch.nn.Module"),
            (lambda: mpsim.watch(model, "adam"), "found str"), (lambda: mpsim.watch(model, opt, updates="fp61"), "fp61"),
            (lambda: mpsim.watch(model, opt, recipes=["mxfp8:rht"]), "Hadamard"),
            (lambda: mpsim.watch(model, opt, inspect={"LogTensorStats": {"tensors": ["fprop"]}}), "fprop")):
        with pytest.raises(mpsim.InputError) as error:
            call()
        assert words in str(error.value)


@pytest.mark.parametrize("layers, stats, names, steps", [
    ({"layer_name_regex_pattern": r"1\.(up|down)$"}, {"tensors": ["activation", "gradient"], "freq": 2, "start_step": 3},
     ["act:1.up", "act:1.down", "agrad:1.up", "agrad:1.down"], [4, 6]),
    ({"layer_types": ["up", "norm"]}, {"tensors": ["activation"], "start_step": 1, "end_step": 2}, ["act:1.up", "act:1.norm"], [1, 2]),
    ({"layer_types": ["all"], "layer_numbers": ["1-2"]}, {"tensors": ["activation"], "freq": 5},
     ["act:1.up", "act:1.down", "act:1.norm", "act:2"], [5]),
    ({"layer_types": ["up"], "layer_numbers": [3, 1]}, {"tensors": ["gradient"], "start_end_list": [[1, 2], [4, -1]]}, ["agrad:1.up"],
     [1, 4, 5, 6]),
    ({"exact_layer_names": ["0", "3"]}, {"tensors_struct": [{"tensor": "activation", "stats": ["max"], "freq": 3}]}, ["act:0", "act:3"],
     [3, 6]),
])
def test_inspect_keys(layers, stats, names, steps, tmp_path):
    """A section of an nvdlfw-inspect file chooses layers and steps as there (config_manager.py and logging.py of 0.2.2)."""
    model = network()
    opt = adam(model)
    config = {"enabled": True, "layers": layers, "transformer_engine": {"LogTensorStats": {"enabled": True, **stats}}}
    with mpsim.watch(model, opt, out=tmp_path / "x", inspect=config):
        train(model, opt, steps=6)
    seen = {(r["name"], r["step"]) for r in map(json.loads, open(tmp_path / "x")) if r["level"] == "tensor"}
    assert seen == {(name, step) for name in names for step in steps}


@pytest.mark.parametrize("config, words", [
    ({"enabled": False}, "enabled: False"), ({"layers": {"layer_name": "x"}}, "found 'layer_name'"),
    ({"layers": {"layer_numbers": "x"}}, "layer_numbers as 3 or '1-5'"),
    ({"LogTensorStats": {"tensors_struct": [{"tensor": "weight", "freq": 1}, {"tensor": "wgrad", "freq": 2}]}}, "found several")])
def test_inspect_refusals(config, words):
    model = network()
    with pytest.raises(mpsim.InputError) as error:
        mpsim.watch(model, adam(model), inspect=config)
    assert words in str(error.value)


def test_advice():
    model = network()
    opt = adam(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    with mpsim.watch(model, opt, every=1, formats=["fp16", "e4m3"], scales="2^0..2^24") as w:
        for _ in range(8):
            opt[0].zero_grad()
            loss = model(torch.randn(4, 6)).square().mean() * 1e-7
            scaler.scale(loss).backward()
            w.note(loss=float(loss.detach()))
            scaler.step(opt[0])
            scaler.update()
    assert repr(w) == "<mpsim.Watch: 8 of 8 steps watched>"
    said = "\n".join(w.advice())
    for words in ("Gradients underflow in fp16 as they are", "Loss scales from 2^", "mpsim log: "):
        assert words in said, said


def test_what_nobody_can_mend_warns_nobody():
    """Embeddings have integers as inputs, and attention does its dropout itself: no warning. Others come from the line of the
    training, in watch's name."""
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.drop, self.unused, self.up = nn.Embedding(5, 4), nn.Dropout(), nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            return self.up(self.tokens(x))
    for model, words in ((Model(), "unused (Linear): not called"), (Model(), None)):
        if words is None:
            del model.unused
        opt = adam(model)[0]
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            with mpsim.watch(model, opt, every=1) as w:
                model(torch.tensor([1, 2])).sum().backward()
                opt.step()
        assert any("tokens (Embedding)" in line for line in w.remarks) and not any("drop" in line for line in w.remarks)
        said = [s for s in seen if "mpsim" in str(s.message)]
        assert len(said) == (words is not None)
        if words:
            text = str(said[0].message)
            assert text.startswith("mpsim.watch: not watched: ") and words in text and "Embedding" not in text
            assert said[0].filename == __file__


def test_advice_at_the_smallest_scale():
    """The scale that is said is the one that was counted, in whatever order they are given."""
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    with mpsim.watch(model, opt, every=1, scales=[2**30, 2**4]) as w:
        (model(torch.ones(3, 4)) * 1e-12).sum().backward()
        opt.step()
    assert w.advice()[0].startswith("Gradients underflow in fp16 at scale 2^4, tensor by tensor: ")


def test_bug_20261125_closures(tmp_path):
    """Passes in a closure that the step calls: the gradients are those of this step, not of the one before."""
    def run(watched, call):
        model = network()
        opt = adam(model)[0]
        w = mpsim.watch(model, opt, every=1, kinds=["wgrad"], out=tmp_path / "x") if watched else None
        torch.manual_seed(4)
        for _ in range(3):
            def closure():
                opt.zero_grad()
                loss = model(torch.randn(4, 6)).square().mean()
                loss.backward()
                return loss
            call(opt, closure)
        if w:
            w.close()
            assert not w.remarks
        return [p.detach().clone() for p in model.parameters()]

    def plain(opt, closure):
        closure()
        opt.step()
    texts = []
    for call in (plain, lambda opt, closure: opt.step(closure), lambda opt, closure: opt.step(closure=closure)):
        assert equal(run(False, call), run(True, call))
        texts.append((tmp_path / "x").read_text())
    assert texts[0] == texts[1] == texts[2]


def test_gan():
    """An optimizer that steps more often than the other: each of its steps is one."""
    a, b = nn.Linear(3, 3), nn.Linear(3, 1)
    both = nn.ModuleDict({"a": a, "b": b})
    oa, ob = torch.optim.SGD(a.parameters(), 0.1), torch.optim.SGD(b.parameters(), 0.1)
    with mpsim.watch(both, [oa, ob], every=1) as w:
        for step in range(4):
            for opt, call in ((ob, lambda: b(a(torch.ones(2, 3)).detach()).sum()), (oa, lambda: b(a(torch.ones(2, 3))).sum())):
                if opt is oa and step % 2:
                    continue
                both.zero_grad()
                call().backward()
                opt.step()
    assert w.count == 4


def test_a_failure_costs_a_step_only():
    model = network()
    opt = adam(model)
    alone = train(copy.deepcopy(model), adam(model), steps=1)
    w = mpsim.watch(model, opt, every=1)
    w._put = None
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        train(model, opt, steps=1)
    w.close()
    assert any("a step was not recorded" in str(s.message) for s in seen) and len(alone)


@pytest.mark.skipif(not hasattr(os, "fork") or not torch.distributed.is_available(), reason="no torch.distributed")
def test_ranks(tmp_path):
    """DDP: each rank has a file; gradients are those that are reduced. FSDP2: sharded parameters are named."""
    import torch.multiprocessing as mp
    mp.spawn(one_rank, (str(tmp_path),), nprocs=2)
    first, second = ([json.loads(line) for line in open(tmp_path / name)] for name in ("ddp.jsonl", "ddp.rank00001.jsonl"))
    grads = [{r["name"]: r["l2"] for r in records if r["level"] == "tensor" and r["kind"] == "wgrad"} for records in (first, second)]
    assert grads[0] == grads[1] and len(grads[0]) == 10
    names = {r["name"] for r in map(json.loads, open(tmp_path / "fsdp.jsonl")) if r["level"] == "tensor" and r["kind"] == "wgrad"}
    text = open(tmp_path / "notes.txt").read()
    assert "DTensor" in text and "gather=True" in text and not names
    names = {r["name"] for r in map(json.loads, open(tmp_path / "gathered.jsonl")) if r.get("kind") == "wgrad" and r["level"] == "tensor"}
    assert len(names) == 10


def one_rank(rank, folder):
    import socket  # noqa: F401
    from torch.distributed.fsdp import fully_shard
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2)
    warnings.simplefilter("ignore")

    def run(model, out, **options):
        opt = torch.optim.SGD(model.parameters(), 0.1)
        with mpsim.watch(model, opt, every=1, out=os.path.join(folder, out), **options) as w:
            torch.manual_seed(rank)
            model(torch.randn(4, 6)).square().mean().backward()
            opt.step()
        return w
    run(nn.parallel.DistributedDataParallel(network()), "ddp.jsonl")
    w = run(fully_shard(network()), "fsdp.jsonl")
    if rank == 0:
        with open(os.path.join(folder, "notes.txt"), "w") as f:
            f.write("\n".join(w.remarks))
    run(fully_shard(network()), "gathered.jsonl", gather=True)
    torch.distributed.destroy_process_group()
