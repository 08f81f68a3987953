# with_megatron.py: what the ranks of Megatron-LM write in a step. Not run here.
#
# In train_step() of megatron/training/training.py, between forward_backward_func(...) and optimizer.step():
#
#     if iteration in (100, 101):
#         record("trace", iteration, model, optimizer)
import os

import torch
from mpsim.record import save_safetensors


def record(trace, step, model, optimizer):
    tensors = {}
    for i, part in enumerate(model):  # several where a pipeline is interleaved
        prefix = f"part{i}." if len(model) > 1 else ""
        for name, p in part.named_parameters():
            grad = p.main_grad if hasattr(p, "main_grad") else p.grad  # float32 sums of micro-batches, scaled
            name = prefix + name.removeprefix("module.").removeprefix("module.")
            tensors["weight:" + name] = p.detach()
            if grad is not None:
                tensors["wgrad:" + name] = grad
            if getattr(p, "main_param", None) is not None:
                tensors["master:" + name] = p.main_param.detach()
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    notes = {"schema": "mpsim-trace/1", "step": step, "rank": rank, "world": world, "grads_scaled": "true",
             "loss_scale": float(optimizer.get_loss_scale()), "framework": "torch " + torch.__version__,
             "reduced": "post"}  # with --use-distributed-optimizer true of the rank's own part of main_grad alone
    path = os.path.join(trace, f"step_{step:06d}", f"rank_{rank:05d}.safetensors")
    save_safetensors(path, tensors, {"mpsim." + key: str(value) for key, value in notes.items()})
