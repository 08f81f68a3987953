"""The figure of doc/howto/model-in-fp8.md: a small GPT-2 of Hugging Face under te-nvfp4. Needs mpsim, torch and transformers; some seconds.

Usage: python3 doc/scripts/emulate-gpt2.py [PNG]
"""
import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import mpsim

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=None, eos_token_id=None))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
text = torch.tensor(list(b"the quick brown fox jumps over the lazy dog. " * 20))

with mpsim.emulate(model, policy="te-nvfp4", arch="blackwell-scaled", seed=0) as e:
    for step in range(20):
        ids = torch.stack([text[(7 * step + 13 * row) % 800:][:64] for row in range(4)])
        loss = model(input_ids=ids, labels=ids).loss
        e.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
print(e.report())
e.report().plot("heatmap", format="nvfp4-sr", kind="agrad").save(sys.argv[1] if len(sys.argv) > 1 else "emulate.png")
