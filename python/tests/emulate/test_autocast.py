"""A selection of autocast.py: torch's own step under autocast on this CPU, every product, loss and gradient."""
import os
import sys

import pytest

import mpsim

torch = pytest.importorskip("torch")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
autocast = pytest.importorskip("autocast")
pytest.importorskip("mpsim.emulate._emulator", exc_type=ImportError)
if not autocast.has_bf16():
    pytest.skip("this CPU does not multiply by vdpbf16ps alone", allow_module_level=True)


def case_of(name):
    if name in ("gpt2", "llama"):
        pytest.importorskip("transformers")
    return autocast.case(name, 64)


@pytest.mark.parametrize("name", autocast.CASES)
def test_as_torch(name):
    c = case_of(name)
    products, rest = autocast.compare(autocast.by_mpsim(c), autocast.by_torch(c))
    assert (products.differ, rest.differ) == (0, 0), products.first or rest.first
    assert products.numbers > 10_000


@pytest.mark.parametrize("what, mode, options, models", autocast.CONTROLS)
def test_controls(what, mode, options, models):
    """A wrong model differs."""
    c = case_of(models[-1])
    products, rest = autocast.compare(autocast.by_mpsim(c, mode, **options), autocast.by_torch(c))
    assert products.differ > 0 and rest.differ > 0


def test_threads_of_torch():
    """With more threads the order of a convolution's weight gradient is torch's affair: it is native, and named."""
    c, before = case_of("cnn-nchw"), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with mpsim.emulate(c.model, policy="pytorch-amp-bf16", arch=autocast.ARCH) as e:
            e.backward(c.loss())
            assert "torch.set_num_threads(1)" in str(e.audit())
    finally:
        torch.set_num_threads(before)
