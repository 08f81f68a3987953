# SPDX-License-Identifier: Apache-2.0
"""Autocast: in which type does each operation work?

For each operation and each type of its floating-point inputs: the result's type, and the types of the floating-point
tensors that the first operation of ATen other than a copy got, which is where autocast's casts show.
"""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

F = torch.nn.functional
SHORT = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float64: "float64"}
COPIES = ("_to_copy", "copy_", "clone", "detach", "view", "t", "transpose", "reshape", "unsqueeze", "expand", "empty",
          "zeros", "ones", "permute", "_unsafe_view", "unbind", "alias", "squeeze", "select", "slice")
# name: of a matrix x of 16 by 16, a second one y, a vector v of 16, both of x's type, and labels
OPERATIONS = {
    "matmul": lambda x, y, v, k: x @ y, "mm": lambda x, y, v, k: torch.mm(x, y),
    "bmm": lambda x, y, v, k: torch.bmm(x[None], y[None]), "addmm": lambda x, y, v, k: torch.addmm(v, x, y),
    "linear": lambda x, y, v, k: F.linear(x, y, v), "einsum": lambda x, y, v, k: torch.einsum("ij,jk->ik", x, y),
    "conv2d": lambda x, y, v, k: F.conv2d(x[None, None], y[None, None, :3, :3]),
    "scaled_dot_product_attention": lambda x, y, v, k: F.scaled_dot_product_attention(x[None, None], y[None, None],
                                                                                      y[None, None]),
    "add": lambda x, y, v, k: x + y, "mul": lambda x, y, v, k: x * y, "div": lambda x, y, v, k: x / y,
    "add mixed": lambda x, y, v, k: x + y.float(), "cat mixed": lambda x, y, v, k: torch.cat([x, y.float()]),
    "relu": lambda x, y, v, k: F.relu(x), "gelu": lambda x, y, v, k: F.gelu(x), "silu": lambda x, y, v, k: F.silu(x),
    "sigmoid": lambda x, y, v, k: torch.sigmoid(x), "tanh": lambda x, y, v, k: torch.tanh(x),
    "exp": lambda x, y, v, k: torch.exp(x), "log": lambda x, y, v, k: torch.log(x.abs()),
    "pow": lambda x, y, v, k: x.pow(2), "rsqrt": lambda x, y, v, k: torch.rsqrt(x.abs()),
    "softmax": lambda x, y, v, k: F.softmax(x, -1), "log_softmax": lambda x, y, v, k: F.log_softmax(x, -1),
    "layer_norm": lambda x, y, v, k: F.layer_norm(x, (16,), v, v), "rms_norm": lambda x, y, v, k: F.rms_norm(x, (16,), v),
    "group_norm": lambda x, y, v, k: F.group_norm(x, 4, v, v),
    "batch_norm": lambda x, y, v, k: F.batch_norm(x, v.float(), v.float().abs(), training=True),
    "cross_entropy": lambda x, y, v, k: F.cross_entropy(x, k), "nll_loss": lambda x, y, v, k: F.nll_loss(x, k),
    "mse_loss": lambda x, y, v, k: F.mse_loss(x, y), "l1_loss": lambda x, y, v, k: F.l1_loss(x, y),
    "sum": lambda x, y, v, k: x.sum(), "mean": lambda x, y, v, k: x.mean(), "cumsum": lambda x, y, v, k: x.cumsum(0),
    "prod": lambda x, y, v, k: x.prod(), "norm": lambda x, y, v, k: torch.linalg.vector_norm(x),
    "max_pool2d": lambda x, y, v, k: F.max_pool2d(x[None], 2), "avg_pool2d": lambda x, y, v, k: F.avg_pool2d(x[None], 2),
    "embedding": lambda x, y, v, k: F.embedding(k, x), "dropout": lambda x, y, v, k: F.dropout(x, 0.5),
}


class Watch(TorchDispatchMode):
    """Types that the first operation got."""

    def __init__(self):
        super().__init__()
        self.name, self.types = None, []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if self.name is None and name not in COPIES:
            flat = torch.utils._pytree.tree_leaves((args, kwargs))
            found = [SHORT.get(t.dtype) for t in flat if isinstance(t, torch.Tensor) and t.is_floating_point()]
            if found:
                self.name, self.types = name, found
        return function(*args, **(kwargs or {}))


def look(s, operation, low, given):
    x, y, v = (s.draw("float32", shape, 20 + i).to(given) for i, shape in enumerate(((16, 16), (16, 16), (16,))))
    labels = torch.arange(16, device=s.device)
    with Watch() as watch, torch.autocast(s.device, dtype=low):
        result = operation(x, y, v, labels)
    return {"result": SHORT[result.dtype], "inside": watch.name, "types": sorted(set(watch.types))}


def ask(s):
    for low in (torch.float16, torch.bfloat16):
        for given in (torch.float32, low):
            for name, operation in OPERATIONS.items():
                s.try_answer(f"{name} of {SHORT[given]} under {SHORT[low]}", lambda: look(s, operation, low, given))
