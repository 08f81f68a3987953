# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's autograd makes of mpsim's transformers, in float64, and losses of a training in float32.

    python3 record_decoder.py .

Weights and text are those of formula.py, windows those of lib/include/train/train.h; nothing of mpsim is run. Of each
case: the loss and the gradient of every parameter in the first step, in float64, rounded to float32 for the file; the
losses of 20 steps of AdamW with groups, warm-up, cosine, clipping and accumulation, in float32 (losses) and float64
(losses64).
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "record"))
from deterministic import ieee_sqrt, setup  # noqa: E402
import torch  # noqa: E402
import decoder  # noqa: E402
import formula  # noqa: E402
from recorder import save_safetensors  # noqa: E402

SEED, BATCH, STEPS, ACCUMULATE, WARMUP = 7, 3, 20, 2, 4
LR, BETAS, EPS, DECAY, MAX_NORM, MIN_LR = 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0, 0.1
SMALL = dict(depth=2, width=16, heads=2, context=8, vocabulary=24)
CASES = {
    "gpt": decoder.Config("gpt", hidden=32, **SMALL),
    "gpt-gelu": decoder.Config("gpt", hidden=24, activation="gelu", tied=0, **SMALL),
    "llama": decoder.Config("llama", hidden=24, **SMALL),
    "llama-kv1": decoder.Config("llama", hidden=24, kv_heads=1, **SMALL),
}


def batch(c, text, index):
    return decoder.batch_of(text, decoder.windows(SEED, index * BATCH, BATCH, formula.TRAINED, c.context), c.context)


def make(c, dtype):
    model = decoder.Decoder(c).to(dtype)
    formula.set_weights(model)
    return model


def gradients(c, text, dtype):
    """Of one step without accumulation."""
    model = make(c, dtype)
    loss = decoder.loss_of(model, *batch(c, text, 0))
    loss.backward()
    tensors = {"loss": loss.detach().reshape(1)}
    tensors.update(("wgrad:" + name, p.grad) for name, p in model.named_parameters())
    return tensors


def float32_apart(c, text, tensors):
    """How far PyTorch's own float32 gradients are from those in float64, of the largest of each parameter."""
    single = gradients(c, text, torch.float32)
    return max(((single[name] - t).abs().max() / t.abs().max()).item() for name, t in tensors.items())


def losses(c, text, dtype):
    model = make(c, dtype)
    opt = torch.optim.AdamW(decoder.groups(model, DECAY), lr=LR, betas=BETAS, eps=EPS, foreach=False)
    found = []
    for step in range(STEPS):
        for g in opt.param_groups:
            g["lr"] = decoder.learning_rate(step, STEPS, LR, warmup=WARMUP, min_lr=MIN_LR)
        opt.zero_grad()
        total = 0.0
        for m in range(ACCUMULATE):
            loss = decoder.loss_of(model, *batch(c, text, step * ACCUMULATE + m))
            (loss / ACCUMULATE).backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM, foreach=False)
        opt.step()
        found.append(total / ACCUMULATE)
    return torch.tensor(found, dtype=torch.float64).float()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("directory")
    args = ap.parse_args()
    setup(SEED)
    ieee_sqrt()
    for name, c in CASES.items():
        text = formula.text(c.vocabulary)
        tensors = gradients(c, text, torch.float64)
        own = float32_apart(c, text, tensors)
        tensors = {key: t.float() for key, t in tensors.items()}
        tensors.update(losses=losses(c, text, torch.float32), losses64=losses(c, text, torch.float64))
        meta = dict(vars(c), seed=SEED, batch=BATCH, steps=STEPS, accumulate=ACCUMULATE, warmup=WARMUP, lr=LR,
                    beta1=BETAS[0], beta2=BETAS[1], eps=EPS, weight_decay=DECAY, max_norm=MAX_NORM, min_lr=MIN_LR,
                    float32_apart=f"{own:.1e}", framework="torch " + torch.__version__)
        path = os.path.join(args.directory, name + ".safetensors")
        save_safetensors(path, tensors, {"mpsim." + k: str(v) for k, v in meta.items()})
        apart = ((tensors["losses"] - tensors["losses64"]) / tensors["losses64"]).abs().max().item()
        print(f"{name:10s} loss {tensors['loss'].item():.9g}, after {STEPS} steps {tensors['losses'][-1].item():.9g}; "
              f"float32 and float64 differ by {apart:.1e}, gradients by {own:.1e}; {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
