"""mpsim.watch for training loops that others have written: Lightning, and Hugging Face's Trainer.

    Trainer(..., callbacks=[mpsim.callbacks.TrainerWatch(every=100, formats=["fp16"], out="run.jsonl")])      Hugging Face
    L.Trainer(..., callbacks=[mpsim.callbacks.LightningWatch(every=100, formats=["fp16"], out="run.jsonl")])  Lightning

The arguments are those of mpsim.watch; `.watch` is what it gives, once the training has begun. Both classes are made when
they are asked for, since each derives from one of its framework.
"""
from __future__ import annotations

import importlib
from typing import Any

from ._watch import watch


def _of_trainer() -> Any:
    from transformers import TrainerCallback  # type: ignore[import-not-found,unused-ignore]

    class TrainerWatch(TrainerCallback):  # type: ignore[misc,unused-ignore]
        """Watches what Hugging Face's Trainer trains; loss and norm that it logs go to the judge of `advice`."""

        def __init__(self, **options: Any) -> None:
            self.options = options
            self.watch: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            self.watch = watch(given["model"], given["optimizer"], start=state.global_step + 1, **self.options)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
            if self.watch is not None and not self.watch.closed:
                self.watch.note_at(state.global_step, {k: v for k, v in (logs or {}).items() if k in ("loss", "grad_norm")})

        def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if self.watch is not None:
                self.watch.close()
    return TrainerWatch


def _of_lightning() -> Any:
    try:
        base: Any = importlib.import_module("lightning.pytorch").Callback
    except ImportError:
        base = importlib.import_module("pytorch_lightning").Callback

    class LightningWatch(base):  # type: ignore[misc,unused-ignore]
        """Watches what Lightning's Trainer trains."""

        def __init__(self, **options: Any) -> None:
            self.options = options
            self.watch: Any = None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.watch = watch(pl_module, trainer.optimizers, start=trainer.global_step + 1,
                               scaler=getattr(trainer.precision_plugin, "scaler", None), **self.options)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            if self.watch is not None and loss is not None and self.watch.count >= self.watch.first:
                self.watch.note_at(self.watch.count, {"loss": loss})

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if self.watch is not None:
                self.watch.close()
    return LightningWatch


_MADE = {"TrainerWatch": _of_trainer, "LightningWatch": _of_lightning}


def __getattr__(name: str) -> Any:
    if name not in _MADE:
        raise AttributeError(f"module 'mpsim.callbacks' has no attribute {name!r}")
    globals()[name] = _MADE[name]()
    return globals()[name]
