"""mpsim.emulate in trainings of every day: products of vectors, steps of several optimizers, models that change, long runs."""
import gc
import json

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
