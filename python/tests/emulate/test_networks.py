"""The networks of networks.py are those of `mpsim train`, whatever mpsim.emulate does: torch's own float32 steps beside the
program's in fp32, whose orders of sums differ, so tensors agree to some units in the last place, not in bits."""
import contextlib
import os
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
parity = pytest.importorskip("parity")

NOISE = ".attn.qkv.bias"  # a key's bias has the gradient 0 but for rounding, of which AdamW makes noise


class Distances(parity.Judge):
    """How far tensors are apart, by the norm of the program's."""

    def __init__(self):
        super().__init__()
        self.apart = {}

    def compare(self, step, name, ours, theirs):
        a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
        self.tensors += 1
        self.apart[name, step] = np.linalg.norm(a.reshape(b.shape) - b) / max(float(np.linalg.norm(b)), 1e-30)


class Torch(parity.Training):
    """The network as torch trains it, with the clip of a transformer at norm 1."""

    scale, norm = 1.0, float("nan")

    def weight(self, parameter):
        return parameter

    def said(self, *_):
        """The norm is torch's own."""

    @contextlib.contextmanager
    def emulate(self):
        yield self

    def backward(self, loss):
        loss.backward()

    def compare(self, e, step, kinds):
        super().compare(e, step, kinds)
        if "wgrad" in kinds and "decoder" in self.run.config:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)


@pytest.mark.parametrize("net, attention", [("mlp", "sdpa"), ("cnn", "sdpa"), ("gpt", "sdpa"), ("gpt", "eager"), ("llama", "sdpa"),
                                            ("llama", "eager")])
def test_like_train(net, attention, tmp_path):
    """Three steps: weights, moments, activations, gradients, losses."""
    if net == "llama" and not hasattr(parity.mpsim, "rotary"):
        pytest.skip("mpsim.rotary is not there")
    training = Torch(parity.train(str(tmp_path), net, "fp32", "hopper", 3, parity.SIZES[net], "1-3"), {"attention": attention})
    training.judge = Distances()
    training.go()
    apart = {k: d for k, d in training.judge.apart.items() if not k[0].endswith(NOISE)}
    worst = max(apart, key=apart.get)
    assert apart[worst] < 1e-5, worst
    hidden = {name.split(".")[-1] for name in training.judge.unseen}
    assert hidden == (set() if net in ("mlp", "cnn") or attention == "eager" else {"scores", "softmax", "context"})
