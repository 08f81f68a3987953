"""A selection of parity.py: networks under mpsim.emulate equal those of `mpsim train` in every bit. All policies, 100 steps each:
`make check-emulate`."""
import itertools
import os
import sys

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
parity = pytest.importorskip("parity")
pytest.importorskip("mpsim.emulate._emulator", exc_type=ImportError)

SELECTION = [("mlp", p) for p in ("fp32", "pytorch-amp-fp16", "bf16-pure", "bf16-stochastic", "bf16-kahan", "apex-O2", "te-fp8-delayed",
                                  "te-nvfp4", "deepseek-v3-fp8", "fp8-lm", "muon-bf16")] + [
    ("cnn", "pytorch-amp-bf16"), ("cnn", "apex-O2"), ("cnn", "te-mxfp8"), ("gpt", "pytorch-amp-bf16"), ("gpt", "te-fp8-current-dpa"),
    ("gpt", "deepspeed-fp16"), ("llama", "megatron-bf16"), ("llama", "te-nvfp4"), ("llama", "torchao-adamw8bit")]


def trained(tmp_path, net, policy, steps=3, form=None, option=(), **options):
    """options: of mpsim.emulate, instead of what the run of the program says."""
    run = parity.train(str(tmp_path), net, policy, "hopper", steps, parity.SIZES[net] + list(option), f"1-{steps}")
    return parity.Training(run, form, **options).go()


def equal(judge):
    assert not judge.found, str(judge.found[0])
    assert judge.compared > 10_000


@pytest.mark.parametrize("net, policy", SELECTION)
def test_every_bit(net, policy, tmp_path):
    equal(trained(tmp_path, net, policy))


@pytest.mark.parametrize("checkpoint", ["reentrant", "plain"])
def test_checkpoints(checkpoint, tmp_path):
    """Blocks that run again in backward take the random bits of the first time."""
    equal(trained(tmp_path, "gpt", "te-nvfp4", form={"checkpoint": checkpoint}))


@pytest.mark.parametrize("net, policy", [("mlp", "bf16-stochastic"), ("llama", "te-fp8-delayed"), ("mlp", "pytorch-amp-fp16"), ("gpt", "te-nvfp4"),
                                         ("mlp", "bf16-kahan"), ("mlp", "torchao-adamw8bit")])
def test_resumed(net, policy, tmp_path):
    """Two steps, a checkpoint, two more in a new model under a new emulation."""
    run = parity.train(str(tmp_path), net, policy, "hopper", 4, parity.SIZES[net], "1-4")
    first = parity.Training(run)
    equal(first.go(until=2))
    equal(parity.Training(run).go(state=first.saved))


@pytest.mark.parametrize("threads", [1, 3])
def test_threads(threads, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        equal(trained(tmp_path, "llama", "te-nvfp4"))
    finally:
        torch.set_num_threads(before)


def test_micro_batches(tmp_path):
    equal(trained(tmp_path, "gpt", "te-nvfp4", option=["--accumulate", "2"]))


def test_order_of_calls(tmp_path, monkeypatch):
    """A control: random bits by a count of calls."""
    from mpsim.emulate import _products
    calls, enter = itertools.count(1), _products.enter

    def counted(view, entering, *more):
        if entering.rng is not None:
            entering.c.rng.stream = next(calls)
        return enter(view, entering, *more)
    monkeypatch.setattr(_products, "enter", counted)
    judge = trained(tmp_path, "mlp", "te-nvfp4", option=["--lr", "1"])
    assert next(calls) > 1 and judge.different > 0


@pytest.mark.parametrize("policy, options", [("megatron-bf16", {"arch": "fma"}), ("megatron-bf16", {"arch": "exact"}),
                                             ("megatron-bf16", {"arch": "ampere"}), ("te-nvfp4", {"seed": 1})])
def test_controls(policy, options, tmp_path):
    """What must differ: another accumulator, other random bits."""
    assert trained(tmp_path, "llama", policy, **options).different > 0
