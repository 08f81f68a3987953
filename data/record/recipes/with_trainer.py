# with_trainer.py TRACE: a callback that records the first two steps of Hugging Face's Trainer.
import sys
import tempfile

import torch
from mpsim.record import Recorder
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed


class Record(TrainerCallback):
    def __init__(self, trace, steps, **options):
        self.trace, self.steps, self.options = trace, steps, options

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **given):
        self.recorder = Recorder(model, self.trace, steps=self.steps, optimizer=optimizer, **self.options)

    def on_step_begin(self, args, state, control, **given):
        self.recorder.begin(state.global_step + 1)  # the backward passes end where the optimizer steps

    def on_train_end(self, args, state, control, **given):
        self.recorder.close()


set_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=16, n_positions=4, n_embd=4, n_layer=1, n_head=1))
tokens = [{"input_ids": t, "labels": t} for t in torch.randint(16, (6, 4))]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=3, per_device_train_batch_size=2, learning_rate=1e-2, use_cpu=True,
                                  report_to=[], save_strategy="no", disable_tqdm=True)
    record = Record(sys.argv[1], {1, 2}, kinds=("weight", "wgrad"))
    Trainer(model, arguments, train_dataset=tokens, callbacks=[record]).train()
