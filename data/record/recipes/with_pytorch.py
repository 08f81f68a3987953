# with_pytorch.py TRACE: three fp16 AMP steps of PyTorch, of which the first two are recorded.
import sys

import torch
from mpsim.record import Recorder

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
x, y = torch.randn(6, 4), torch.randint(2, (6,))

recorder = Recorder(model, sys.argv[1], steps={1, 2}, optimizer=optimizer, scaler=scaler)
for step in range(1, 4):
    optimizer.zero_grad()
    recorder.begin(step)  # before the first forward pass of the step
    with torch.autocast("cpu", torch.float16):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    recorder.end(loss)  # after the last backward pass, before or after unscaling and clipping
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
recorder.close()
