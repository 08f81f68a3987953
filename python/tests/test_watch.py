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

from mpsim import record  # noqa: E402
from mpsim._figures import has_gnuplot  # noqa: E402
from mpsim.record import Recorder  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, again):
        super().__init__()
        self.norm, self.up, self.down, self.again = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width), again

    def inside(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

    def forward(self, x):
        return checkpoint(self.inside, x, use_reentrant=False) if self.again else self.inside(x)


class Attention(nn.Module):
    """Its keys' bias has no gradient: a softmax does not see what it adds. Nor has that of a layer before BatchNorm, and so that of the
    values, which the rows of the softmax pass on as it is."""
    def __init__(self):
        super().__init__()
        self.qkv, self.mix, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.BatchNorm1d(16)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        y = torch.softmax(q @ k.transpose(1, 2) / 4, -1) @ v
        return self.norm(self.mix(y).flatten(0, 1))


def test_bug_20261127_roundoff_is_no_gradient():
    torch.manual_seed(3)
    model = Attention()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    with mpsim.watch(model, opt, every=1, formats="fp16", scales="1..2^24", kinds=("wgrad",)) as w:
        for _ in range(2):
            opt.zero_grad()
            x = torch.randn(8, 10, 16)
            (1e-3 * (model(x) * torch.randn(80, 16)).sum()).backward()
            opt.step()
    said = " ".join(w.advice())
    assert 20 <= w.gradients.rounded["wgrad:qkv.bias"] <= 32 and 10 <= w.gradients.rounded["wgrad:mix.bias"] <= 16
    assert set(w.gradients.rounded) == {"wgrad:qkv.bias", "wgrad:mix.bias"}
    assert "underflow in" not in said and "Loss scales from 1 to" in said and "nothing but rounding" in said and "wgrad:mix.bias" in said


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


def scaler_of(spec, init=2.0**10, growth=2):
    if spec and not hasattr(torch.amp, "GradScaler"):
        pytest.skip("this torch has no GradScaler for the CPU")
    return torch.amp.GradScaler("cpu", init_scale=init, growth_interval=growth) if spec else None


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
    extra = {key for key in mine if key[0] in ("update", "scaler") or key[0] == "note" and scaled}
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
    from mpsim._updates import lost_updates
    moves, lost = lost_updates(old, new, "bf16")
    assert moves == int((new != old).sum()) and lost == int(((moved == p.detach()) & (new != old)).sum()) > 300
    model = nn.Linear(10, 10, bias=False)
    opt = torch.optim.SGD(model.parameters(), lr=1e-6)
    with mpsim.watch(model, opt, every=1) as w:
        model(torch.randn(5, 10)).square().mean().backward()
        opt.step()
    assert any("Weights kept in bf16 would stall" in line for line in w.advice())


def test_what_is_refused_by_name(tmp_path):
    if not hasattr(torch, "compile"):
        pytest.skip("this torch has no torch.compile")
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
    scaler = scaler_of(True, 1.0, 2000)
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
    for words in ("Gradients underflow in fp16 as they are", "Loss scales from 2^", "mpsim log: ", " What to do: "):
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
        (tmp_path / "x").unlink(missing_ok=True)
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
        alone = run(False, call)
        assert equal(alone, run(True, call))
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


def test_captured_calls_are_skipped_and_counted(tmp_path, monkeypatch, recwarn):
    """While the stream captures a CUDA graph no tensor is read, no step is taken; steps outside are watched as without."""
    model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 3))
    opt = adam(model)[0]
    capturing = [False]
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: capturing[0])
    with mpsim.watch(model, opt, every=1, out=tmp_path / "x") as w:
        read, receive = [], w._receive
        monkeypatch.setattr(w, "_receive", lambda *args: (read.append(capturing[0]), receive(*args)))
        for captured in (True, False, True):
            capturing[0] = captured
            model(torch.ones(2, 6)).sum().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
        capturing[0] = False
        assert w.count == 1 and read and not any(read)
    lines = records(tmp_path / "x")
    assert [r["step"] for r in lines if r["level"] == "step"] == [1]
    assert w.remarks == ["not watched: 4 calls of 2 modules that CUDA graphs have captured: their replays run no hooks"]
    assert [r["text"] for r in lines if r["level"] == "note"] == w.remarks
    assert sum("CUDA graph captures" in str(r.message) for r in recwarn) == 1


def records(path):
    """The lines of a file, which are JSON to the letter."""
    return [json.loads(line, parse_constant=pytest.fail) for line in open(path)]


def test_advice_knows_the_scaler():
    """Gradients of 2^-30 under a loss scale of 2^16 are those of 2^-14: the scales that fit them are the loss scale's."""
    model = nn.Linear(8, 8, bias=False)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    for scales, words in (("2^0..2^32", "Loss scales from 2^16 to 2^45 are safe"), ("2^-16..2^16", "Loss scales from 2^6 to 2^31 are safe")):
        scaler = scaler_of(True, 2.0**16, 2000)
        with mpsim.watch(model, opt, every=1, scales=scales) as w:
            for step in range(3):
                opt.zero_grad()
                loss = (model(torch.ones(1, 8)) * 2.0**-30).sum() * (float("inf") if step == 1 else 1)
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
        said = "\n".join(w.advice())
        assert words in said and "skipped are left out" in said and ("Smaller ones were not counted" in said) == ("2^0" in scales)
        assert "NaN or Inf in gradients of 1 watched step, which the scaler skipped, first of step 2" in said
        assert "underflow in" not in said  # at 2^16, which they had
    with mpsim.watch(model, opt, every=1, scales=[2**-30, 2**-29]) as w:
        scaler.scale((model(torch.ones(1, 8)) * 2.0**-30).sum()).backward()
        opt.step()
    assert w.advice()[0].startswith("Gradients underflow in fp16 at loss scale 2^-15, tensor by tensor")
    with mpsim.watch(model, opt, every=1, scales=[1, 2**20]) as w:  # a scale of one's own, which is said
        (model(torch.ones(1, 8)) * 2.0**-30 * 1024).sum().backward()
        w.note(loss_scale=1024)
        opt.step()
    assert any("Loss scales from 2^10 to 2^30 are safe" in line for line in w.advice()), w.advice()


def test_overflow_is_json(tmp_path, program):
    """An overflow under clipping, whose norm is infinite: a file that plot reads."""
    model = network()
    opt = adam(model)
    with mpsim.watch(model, opt, every=1, out=tmp_path / "x", scales=[1, 2**16]) as w:
        train(model, opt, scaler=scaler_of(True), clip=True, overflow=(2,))
        w.note(loss=float("nan"))
    norms = [r["grad_norm"] for r in records(tmp_path / "x") if r["level"] == "step"]
    assert norms[1] in ("Infinity", "NaN") and isinstance(norms[0], float)
    if has_gnuplot():
        program("plot", "amax", "--kind=wgrad", "-o", tmp_path / "figure", tmp_path / "x")


def test_a_file_is_never_written_over(tmp_path):
    """Records of the first part of a run stay; a file that cannot be written is known before the first step."""
    path = tmp_path / "x"
    model = network()
    opt = adam(model)
    with mpsim.watch(model, opt, every=1, out=path):
        train(model, opt, steps=1)
    before = path.read_bytes()
    for out, kind, words in ((path, mpsim.InputError, "has content already"), (tmp_path, mpsim.FileError, "Is a directory"),
                             (tmp_path / "none" / "x", mpsim.FileError, "No such file"), (3, mpsim.InputError, "found int")):
        with pytest.raises(kind, match=words):
            mpsim.watch(model, opt, every=1, out=out, start=2)
    assert path.read_bytes() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_costs_the_file_only(recwarn):
    model = network()
    opt = adam(model)
    with mpsim.watch(model, opt, every=1, out="/dev/full") as w:
        train(model, opt)
    assert w.remarks == ["no more records: /dev/full: No space left on device"] and w.seen == 3


def test_gradients_are_those_before_clipping(tmp_path):
    """Also where the norm comes back with the clip, before torch 2.6."""
    seen = []
    for clip in (False, True):
        model = network()
        opt = adam(model)
        with mpsim.watch(model, opt, every=1, out=tmp_path / f"{clip}", kinds=["wgrad"]):
            train(model, opt, steps=1, clip=clip)
        seen.append([r["amax"] for r in records(tmp_path / f"{clip}") if r["level"] == "tensor"])
    assert seen[0] == seen[1]


def test_memory_does_not_grow():
    """What is kept of gradients has the same size after 3 steps and after 30."""
    import pickle
    model = network()
    opt = adam(model)
    sizes = []
    with mpsim.watch(model, opt, every=1, scales="2^0..2^16") as w:
        for steps in (3, 27):
            train(model, opt, steps=steps)
            kept = vars(w.gradients)
            sizes.append(len(pickle.dumps({k: v for k, v in kept.items() if k != "targets"})))
    assert sizes[1] < 1.5 * sizes[0]


def test_numbers_take_bytes_a_step():
    """Of names that come later or not in each step, of steps in any order, NaN among them."""
    import sys
    model = network()
    w = mpsim.watch(model, adam(model))
    for step in (5, 3, 9):
        w.note_at(step, {"loss": step / 2})
    w.note_at(3, {"grad_norm": torch.tensor(2.0)})
    w.note_at(7, {"loss": float("nan")})
    assert {k: v for k, v in w.numbers.items() if k != 7} == {3: {"loss": 1.5, "grad_norm": 2.0}, 5: {"loss": 2.5}, 9: {"loss": 4.5}}
    assert w.numbers[7]["loss"] != w.numbers[7]["loss"] and len(w.numbers) == 4 and 4 not in w.numbers
    for step in range(10_000):
        w.note_at(step, {"loss": 1.0})
    assert sum(sys.getsizeof(c.numbers) + sys.getsizeof(c.known) for c in w.numbers.columns.values()) < 250_000
    for call in (lambda: w.note(loss="x"), lambda: w.note_at("3", {})):
        with pytest.raises(mpsim.InputError):
            call()
    w.close()


def test_copies_of_the_model(tmp_path):
    """A watched model is saved and copied as any other; its copies (an EMA) and passes under no_grad are not counted."""
    import io
    import pickle
    model = network()
    opt = adam(model)[0]
    with mpsim.watch(model, opt, every=1, out=tmp_path / "x") as w:
        saved = io.BytesIO()
        torch.save(model, saved)
        average = copy.deepcopy(model)
        average(torch.randn(50, 6)).sum().backward()
        with torch.no_grad():
            model(torch.randn(50, 6))
        with torch.inference_mode():
            model(torch.randn(50, 6))
        model(torch.randn(4, 6)).sum().backward()
        opt.step()
    assert b"mpsim" not in saved.getvalue() and b"mpsim" not in pickle.dumps(average)
    saved.seek(0)
    loaded = torch.load(saved, **({"weights_only": False} if torch.__version__ >= "2" else {}))
    assert loaded(torch.randn(2, 6)).shape == (2, 3) and not w.remarks
    acts = [r for r in records(tmp_path / "x") if r["level"] == "tensor" and r["kind"] in ("act", "agrad")]
    assert acts and all(r["shape"][0] == 4 and not r["name"].endswith(".1") for r in acts)


def test_reentrant_checkpoints_are_passes_of_the_training(tmp_path):
    """Their first pass is without gradients, and counted."""
    model = network()
    opt = adam(model)[0]
    with mpsim.watch(model, opt, every=1, out=tmp_path / "x", kinds=["act", "agrad"]) as w:
        x = torch.randn(4, 6, requires_grad=True)
        model[3](checkpoint(model[1], model[0](x), use_reentrant=True)).sum().backward()
        opt.step()
    names = [r["name"] for r in records(tmp_path / "x") if r["level"] == "tensor"]
    assert sorted(names) == sorted(f"{kind}:{name}" for kind in ("act", "agrad") for name in ("0", "1.norm", "1.up", "1.down", "3"))
    assert all("2 (Dropout)" in line for line in w.remarks)


def test_a_closed_watch_leaves_nothing():
    model = network()
    opt = adam(model)[0]
    hooks = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    with mpsim.watch(model, opt, every=1):
        pass
    for each in (mpsim.watch(model, opt), Recorder(model, "none", every=1, optimizer=opt)):
        each.close()
    with pytest.raises(mpsim.FileError):
        mpsim.watch(model, opt, out="/no/such/file")
    assert not any(getattr(opt, name, None) for name in hooks) and "step" not in vars(opt)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("first", [True, False])
def test_schedulers_without_hooks_of_torch_2(first, monkeypatch, recwarn):
    """A scheduler replaces step(), too, before or after: both count on, and the last of ours goes."""
    monkeypatch.setattr(record, "on_step", lambda *of: [record.Stepping(*of)])
    model = nn.Linear(4, 2)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 2) if first else None
    with mpsim.watch(model, opt, every=1) as w:
        scheduler = scheduler or torch.optim.lr_scheduler.StepLR(opt, 2)
        for _ in range(4):
            model(torch.ones(1, 4)).sum().backward()
            opt.step()
            scheduler.step()
    opt.step()
    scheduler.step()
    assert w.seen == w.count == 4 and opt.param_groups[0]["lr"] == pytest.approx(1e-3) and not getattr(opt.step, "mpsim_calls", None)
    assert not [each for each in recwarn if "lr_scheduler" in str(each.message)]


def test_a_lost_step_is_noted(tmp_path, recwarn):
    """Under vmap tensors have no elements in memory: the step is lost, and the file says so."""
    func = pytest.importorskip("torch.func")
    model = nn.Linear(6, 3)
    opt = adam(model)[0]
    with mpsim.watch(model, opt, every=1, out=tmp_path / "x") as w:
        for _ in range(2):
            func.vmap(model)(torch.randn(4, 6)).sum().backward()
            opt.step()
    notes = [r for r in records(tmp_path / "x") if r["level"] == "note"]
    assert [r["step"] for r in notes] == [1, 2] and [notes[0]["text"]] == w.remarks and w.remarks[0].startswith("not watched: step 1: ")


@pytest.mark.parametrize("words", ["plain", "scaled", "two optimizers", "checkpointed"])
def test_without_hooks_of_torch_2(words, monkeypatch, tmp_path, program):
    """As with torch 1.13, whose optimizers have no hooks and whose modules' hooks have no keywords."""
    monkeypatch.setattr(record, "WITH_KWARGS", False)
    monkeypatch.setattr(record, "on_step", lambda *of: [record.Stepping(*of)])
    test_as_recorded(words, tmp_path, program)


@pytest.mark.parametrize("options, words", [
    ({"every": "3"}, "every: expected an integer from 1 on, found '3'"), ({"every": float("nan")}, "found nan"),
    ({"every": 2.5}, "found 2.5"), ({"modules": "("}, "modules: expected a regular expression"), ({"modules": 3}, "found 3"), ({"modules": b"x"}, "found b'x'"),
    ({"start": "1"}, "start: expected"), ({"stop": "1"}, "stop: expected"), ({"formats": 3}, "formats: expected a name or a list"),
    ({"kinds": 3}, "kinds: expected a name or a list"), ({"updates": 3}, "updates: expected"), ({"recipes": 3}, "recipes: expected"),
    ({"scaler": 1024}, "scaler: expected a GradScaler"), ({"log": 3}, "log: expected a function"), ({"inspect": []}, "inspect: expected a section"),
    ({"inspect": {"layers": []}}, "inspect: expected a section"), ({"inspect": {"LogTensorStats": {"freq": "x"}}}, "every: expected")])
def test_refused_arguments(options, words):
    model = network()
    with pytest.raises(mpsim.InputError) as error:
        mpsim.watch(model, adam(model), **options)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_one_kind():
    model = network()
    opt = adam(model)
    with mpsim.watch(model, opt, every=1, kinds="wgrad") as w:
        train(model, opt, steps=1)
    assert list(w.kinds_seen()) == ["wgrad"]


@pytest.mark.skipif(not hasattr(os, "fork") or not torch.distributed.is_available(), reason="no torch.distributed")
def test_ranks(tmp_path):
    """DDP: each rank has a file; gradients are those that are reduced. FSDP2: sharded parameters are named."""
    import torch.multiprocessing as mp
    if torch.__version__ < "2":
        pytest.skip("this torch has no fully_shard")
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
