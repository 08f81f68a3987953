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


def cancelling(generator, *shape):
    """bf16 numbers from 2^-6 to 2^7, of both signs."""
    x = (torch.rand(shape, generator=generator) + 1) * torch.where(torch.rand(shape, generator=generator) < 0.5, -1.0, 1.0)
    return (x * 2.0 ** torch.randint(-6, 7, shape, generator=generator)).bfloat16().float()


def of_convolution(sizes, memory, cancelled):
    """A layer, x, dy: of the sums over channels (outputs), most is cancelled, so that their order shows."""
    images, channels, outputs, rows, columns, kernel, stride, padding = sizes
    layer, g = torch.nn.Conv2d(channels, outputs, kernel, stride, padding, bias=False), torch.Generator().manual_seed(sum(sizes))
    x, weight = cancelling(g, images, channels, rows, columns), cancelling(g, *layer.weight.shape)
    dy = cancelling(g, *layer(x).shape)
    left, right = (x, weight) if cancelled else (dy, weight.transpose(0, 1))
    half = left.shape[1] // 2
    left[:, half:2 * half], right[:, half:2 * half] = left[:, :half], -right[:, :half]
    left[:, 2 * half:] = 0
    if half and left.shape[1] % 2:  # the odd channel is beside another's opposite, at some places
        right[:, -1], left[:, -1, ::2, ::3] = -right[:, 0], left[:, 0, ::2, ::3]
    with torch.no_grad():
        layer.weight.copy_(weight)
    return (*(t.to(memory_format=memory) for t in (layer, x)), dy.bfloat16().contiguous(memory_format=memory))


# images, channels, outputs, rows, columns, kernel, stride, padding; the last three are kernels of one tap that add 160 channels at
# once, 512, and all
@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("cancelled", [True, False])
@pytest.mark.parametrize("sizes", [(2, 33, 21, 7, 8, 3, 1, 1), (2, 16, 32, 8, 9, 3, 1, 0), (2, 32, 16, 6, 5, 2, 1, 1), (1, 16, 24, 8, 1, 5, 1, 2),
                                   (2, 64, 24, 9, 9, 3, 2, 1), (2, 16, 24, 6, 6, 1, 1, 1), (2, 200, 320, 14, 14, 1, 1, 0),
                                   (1, 1040, 768, 7, 7, 1, 1, 0), (2, 256, 256, 28, 28, 1, 1, 0)])
def test_convolutions(sizes, memory, cancelled):
    """y, dx and dw of a layer are torch's: by the model, or natively where the order of the sums is not known."""
    layer, x, dy = of_convolution(sizes, memory, cancelled)

    def step():
        layer.zero_grad()
        leaf = x.clone().requires_grad_(True)
        y = layer(leaf)
        y.backward(dy)
        return y.detach(), leaf.grad, layer.weight.grad.clone()

    with torch.autocast("cpu", torch.bfloat16):
        want = step()
    with mpsim.emulate(layer, policy="pytorch-amp-bf16", arch=autocast.ARCH) as e:
        found = step()
        audit = str(e.audit())
    assert [int((a.float() != b.float()).sum()) for a, b in zip(found, want)] == [0, 0, 0], audit
