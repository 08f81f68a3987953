# with_lightning.py TRACE: a callback that records the first two steps of Lightning's Trainer.
import sys

import lightning as L
import torch
from mpsim.record import Recorder


class Record(L.Callback):
    def __init__(self, trace, steps):
        self.trace, self.steps = trace, steps

    def on_train_start(self, trainer, module):
        self.recorder = Recorder(module, self.trace, steps=self.steps, optimizer=trainer.optimizers,
                                 scaler=getattr(trainer.precision_plugin, "scaler", None))

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self.recorder.begin(trainer.global_step + 1)  # the backward passes end where the optimizer steps

    def on_train_end(self, trainer, module):
        self.recorder.close()


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


L.seed_everything(0)
data = torch.utils.data.TensorDataset(torch.randn(18, 4), torch.randint(2, (18,)))
trainer = L.Trainer(max_steps=3, accelerator="cpu", callbacks=[Record(sys.argv[1], {1, 2})], logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, gradient_clip_val=1.0)
trainer.fit(Classifier(), torch.utils.data.DataLoader(data, batch_size=6))
