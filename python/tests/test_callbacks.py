"""Lightning's and Transformers' trainings watched: the same weights to the bit, and the records of mpsim.watch by hand."""
import json
import logging
import warnings

import pytest
from conftest import peer

import mpsim

torch = pytest.importorskip("torch")

OPTIONS = {"every": 2, "formats": ["fp16", "e4m3"], "kinds": ["weight", "wgrad", "act", "agrad"]}
STEPS = 5


def data():
    torch.manual_seed(2)
    return torch.randn(4 * STEPS, 6)


def network():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def records(path):
    return [json.loads(line) for line in open(path)]


def tensors(path):
    """Statistics by step and name, without what wraps the model."""
    return {(r["step"], r["name"].replace("net.", "")): {k: v for k, v in r.items() if k not in ("name", "file")}
            for r in records(path) if r["level"] == "tensor"}


def by_hand(path):
    """The same training in a loop of one's own."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with mpsim.watch(model, optimizer, out=path, **OPTIONS):
        for x in data().split(4):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    return [p.detach() for p in model.parameters()]


def lightning_module(lightning):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = network()

        def training_step(self, batch, index):
            return self.net(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    return Module()


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed", "bf16-true"])
def test_lightning(precision, tmp_path):
    lightning = peer("lightning.pytorch")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    def fit(callbacks):
        module = lightning_module(lightning)
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, callbacks=callbacks, precision=precision, default_root_dir=tmp_path)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning")
            trainer.fit(module, torch.utils.data.DataLoader(data(), batch_size=4))
        return [p.detach() for p in module.parameters()]
    callback = mpsim.callbacks.LightningWatch(out=tmp_path / "run.jsonl", **OPTIONS)
    watched = fit([callback])
    assert all(torch.equal(a, b) for a, b in zip(fit([]), watched))
    assert callback.watch.closed and callback.watch.count == STEPS and not callback.watch.remarks
    seen = records(tmp_path / "run.jsonl")
    assert [r["step"] for r in seen if r["level"] == "step"] == [1, 2, 4] and seen[-1]["level"] == "total"
    assert sorted(callback.watch.numbers) == [1, 2, 3, 4, 5]  # each step's loss
    if precision == "32-true":
        assert all(torch.equal(a, b) for a, b in zip(by_hand(tmp_path / "hand.jsonl"), watched))
        assert tensors(tmp_path / "run.jsonl") == tensors(tmp_path / "hand.jsonl")


def test_transformers(tmp_path):
    """Trainer, over accumulated micro-batches; the loss that it logs is noted."""
    transformers = peer("transformers")
    peer("accelerate")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, x):
            y = self.net(x)
            return {"loss": y.square().mean(), "logits": y}

    def fit(callbacks):
        model = Net()
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path / "out"), per_device_train_batch_size=2, gradient_accumulation_steps=2, num_train_epochs=1,
            learning_rate=1e-2, logging_steps=1, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=3)
        transformers.Trainer(model=model, args=arguments, train_dataset=[{"x": x} for x in data()], callbacks=callbacks).train()
        return [p.detach() for p in model.parameters()]
    callback = mpsim.callbacks.TrainerWatch(out=tmp_path / "run.jsonl", **OPTIONS)
    watched = fit([callback])
    assert all(torch.equal(a, b) for a, b in zip(fit([]), watched))
    assert callback.watch.closed and callback.watch.count == STEPS and not callback.watch.remarks
    seen = records(tmp_path / "run.jsonl")
    assert [r["step"] for r in seen if r["level"] == "step"] == [1, 2, 4]
    names = {r["name"] for r in seen if r["level"] == "tensor" and r["step"] == 2}
    assert {"wgrad:net.0.weight", "act:net.0", "act:net.0.1", "agrad:net.2"} <= names  # of both micro-batches
    losses = {step: numbers["loss"] for step, numbers in callback.watch.numbers.items() if "loss" in numbers}
    assert sorted(losses) == [1, 2, 3, 4, 5] and all(loss > 0 for loss in losses.values())


def test_bert(tmp_path):
    """A model of the library: all its parameters; nothing of the evaluation."""
    transformers = peer("transformers")
    peer("accelerate")
    config = transformers.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=12)
    torch.manual_seed(0)
    model = transformers.BertForSequenceClassification(config)
    rows = [{"input_ids": torch.randint(0, 50, (12,)), "labels": torch.tensor(i % 2)} for i in range(8)]
    callback = mpsim.callbacks.TrainerWatch(every=1, out=tmp_path / "run.jsonl", formats=["fp16"], scales=[1, 2**16])
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"), per_device_train_batch_size=4, num_train_epochs=1, eval_strategy="epoch",
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True)
    transformers.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=[callback]).train()
    seen = [r for r in records(tmp_path / "run.jsonl") if r["level"] == "tensor"]
    named = dict(model.named_parameters())
    grads = {r["name"][len("wgrad:"):] for r in seen if r["kind"] == "wgrad"}
    assert grads == set(named)
    assert all(r["count"] == named[r["name"].partition(":")[2]].numel() for r in seen if r["kind"] == "weight")
    assert all(r["step"] in (1, 2) for r in seen) and callback.watch.advice()
