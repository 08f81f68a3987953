# SPDX-License-Identifier: Apache-2.0
"""Times of a training step of GPT-2's form, width 1024, as gpu/runs/wide-bf16.run: torch's autocast in bf16 with the fused AdamW,
eager, compiled, and as a CUDA graph."""
import torch

from timing import Timer

OURS = ["wide-bf16"]
SHAPE = {"depth": 2, "width": 1024, "heads": 16, "context": 128}
SMALL = {"depth": 1, "width": 64, "heads": 4, "context": 16}


def network(device, shape, attention):
    from decoder import Config, Decoder
    torch.manual_seed(0)
    return Decoder(Config(attention=attention, **shape)).to(device)


class Step:
    """A step on tokens that stay where they are, as a graph needs it."""

    def __init__(self, t, shape, batch, compiled=False, attention="sdpa"):
        device = t.s.device
        self.device = device
        self.net = network(device, shape, attention)
        self.forward = torch.compile(self.net) if compiled else self.net
        cuda = device == "cuda"
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3, fused=True, **({"capturable": True} if cuda else {}))
        g = torch.Generator().manual_seed(1)
        tokens = torch.randint(256, (batch, shape["context"] + 1), generator=g).to(device)
        self.x, self.y = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def __call__(self):
        self.optimizer.zero_grad(set_to_none=False)
        with torch.autocast(self.device, torch.bfloat16):
            logits = self.forward(self.x)
        torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), self.y.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()


def graph(step):
    """The step captured once; a call replays it."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        step()
    return g.replay


def ask(s):
    t = Timer(s)
    shape, batch = (SMALL, 1) if s.quick else (SHAPE, 4)
    tokens = batch * shape["context"]
    parameters = 12 * shape["depth"] * shape["width"] ** 2
    work = {"flops": 6 * parameters * tokens}
    for attention in ("materialised", "sdpa"):
        t.row(f"training step, eager, {attention}", OURS, lambda: Step(t, shape, batch, attention=attention), **work)
        if t.cuda:
            t.row(f"training step, CUDA graph, {attention}", OURS, lambda: graph(Step(t, shape, batch, attention=attention)), **work)
    t.row("training step, compiled, sdpa", OURS, lambda: Step(t, shape, batch, compiled=True), **work)
