#!/usr/bin/env python3
"""write.py -- the logs of this folder and cases.tsv, from made-up runs in the forms that frameworks print.

A case says what a person who knows its numbers concludes; it was written before mpsim was run on it. Nothing here
is copied from anybody's log: the numbers come from the formulas below, with a fixed seed.
"""
import json
import math
import random
import sys
from pathlib import Path

CASES = []


def case(name, verdict, says, never="-", options="-"):
    """A log: its name, the class or classes, expressions that the report must and must not match."""
    def keep(lines):
        CASES.append((name, verdict, says, never, options, lines))
        return lines
    return keep


def falling(step, start=10.8, end=3.0, noise=0.02):
    """A loss as a language model has it: down from `start`, with noise."""
    return end + (start - end) * math.exp(-step / 12) + random.gauss(0, noise)


def norm():
    """A norm of the gradients that is nothing special."""
    return abs(random.gauss(0.8, 0.1))


NO_SCALER = r"loss scale[^r]|scaler|What to do: Nothing"


# --- loops of people's own with torch.amp ------------------------------------------------------------------------

@case("torch-search-ends", "fine-startup", "start-up search")
def torch_search_ends():
    for step in range(40):
        scale = 2.0 ** max(12, 16 - step)
        yield f"step {step} loss {falling(step):.4f} scale {scale:.1f} skipped {int(step < 4)}"


@case("torch-tiny-scale", "warn-stuck", "3[67] powers|2\\^-21", "start-up search|Normal")
def torch_tiny_scale():
    for step in range(40):
        yield f"step {1000 + step} loss {falling(40):.4f} grad_norm {norm():.3f} scale {2.0 ** -21!r} skipped 0"


@case("torch-nothing-learned", "warn-not-learning", "6\\.9078;;norm.* 0;;59", "Verdict: (no overflow|steady)")
def torch_nothing_learned():
    for step in range(59):
        yield f"Epoch 0 step {step} loss: 6.9078 grad_norm: 0.0000 scale: 65536.0"


@case("torch-tensor-nan", "warn-nonfinite", "line 13;;8 (lines|times|of)", "Verdict: not enough")
def torch_tensor_nan():
    for step in range(20):
        value = f"{falling(step, 2.3, 0.5):.4f}" if step < 12 else "nan"
        yield f"epoch 1 iter {step} loss: tensor({value}, device='cuda:0', grad_fn=<NllLossBackward0>)"


@case("torch-windows-qnan", "warn-nonfinite", "line 9;;7 (lines|times|of)", "Verdict: not enough")
def torch_windows_qnan():
    for step in range(15):
        value = f"{falling(step, 5, 1):.4f}" if step < 8 else "1.#QNAN"
        yield f"iteration {100 + step}, loss = {value}, lr = 0.001"


@case("torch-spike-after-growth", "fine-steady", "steady|where the scale has grown")
def torch_spike_after_growth():
    for step in range(1990, 2030):
        scale = 65536.0 if step < 2000 else 131072.0 if step == 2000 else 65536.0
        yield f"step {step} loss {falling(step):.4f} scale {scale} skipped {int(step == 2000)}"


# --- Apex, DeepSpeed, Megatron, fairseq --------------------------------------------------------------------------

@case("apex-still-falling", "not-enough", "what follows|not finished|does not tell", "runaway")
def apex_still_falling():
    for k in range(4):
        yield f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {2.0 ** (15 - k)}"


@case("deepspeed-constant-overflows", "warn-diverging|warn-nonfinite", "constant",
      "came down|coming down|still falling|Wait")
def deepspeed_constant_overflows():
    for _ in range(12):
        yield ("[2024-05-02 10:11:12,345] [INFO] [fused_optimizer.py:363:_update_scale] "
               "[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: 128.0, reducing to 128.0")


@case("megatron-constant-isolated", "warn-spikes|warn-nonfinite", "constant;;3 ", "came down|coming down|runaway")
def megatron_constant_isolated():
    for step in range(1, 41):
        bad = step in (9, 22, 35)
        yield (f" iteration {step:8d}/    5000 | consumed samples: {step * 16:12d} | learning rate: 1.0E-04 | "
               f"global batch size:    16 | lm loss: {falling(step):.6E} | loss scale: 4096.0 | "
               f"grad norm: {'inf' if bad else f'{norm():.3f}'} | number of skipped iterations:   {int(bad)} | "
               "number of nan iterations:   0 |")


@case("megatron-bf16-isolated-nan", "warn-nonfinite|warn-spikes", "isolated;;2 ", "runaway|[Ss]top the run|diverging")
def megatron_bf16_isolated_nan():
    for step in range(1, 41):
        bad = step in (14, 31)
        yield (f" iteration {step:8d}/    5000 | consumed samples: {step * 16:12d} | learning rate: 1.0E-04 | "
               f"global batch size:    16 | lm loss: {falling(step):.6E} | loss scale: 1.0 | "
               f"grad norm: {'nan' if bad else f'{norm():.3f}'} | number of skipped iterations:   {int(bad)} | "
               "number of nan iterations:   0 |")


@case("megatron-fp16-grown", "fine-steady", "line", "spikes|runaway")
def megatron_fp16_grown():
    for step in range(2980, 3020):
        scale = 2.0 ** 17 if step < 3001 else 2.0 ** 18 if step < 3003 else 2.0 ** 17
        skipped = int(step in (3002, 3003))
        yield (f" iteration {step:8d}/   50000 | consumed samples: {step * 16:12d} | learning rate: 1.0E-04 | "
               f"global batch size:    16 | lm loss: {falling(60):.6E} | loss scale: {scale:.1f} | "
               f"grad norm: {norm():.3f} | number of skipped iterations:   {skipped} | "
               "number of nan iterations:   0 |")


@case("deepspeed-bf16-skipped-0", "fine-steady", "loss", NO_SCALER)
def deepspeed_bf16_skipped_0():
    for step in range(10, 210, 10):
        yield (f"[2024-07-01 12:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
               "lr=[1e-05], mom=[(0.9, 0.95)]")
        yield f"{{'loss': {falling(step / 5):.4f}, 'grad_norm': {norm():.4f}, 'learning_rate': 1e-05, 'epoch': 0.1}}"


@case("deepspeed-bf16-loss-nan", "warn-nonfinite", "line 18;;nan", "og the loss scale|What to do: Nothing")
def deepspeed_bf16_loss_nan():
    for step in range(1, 16):
        value = "nan" if step > 8 else f"{falling(step):.4f}"
        yield (f"[2024-07-01 12:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
               "lr=[1e-05], mom=[(0.9, 0.95)]")
        yield f"step {step} loss: {value}"


@case("deepspeed-minimum-reached", "stopped", "minimum|floor")
def deepspeed_minimum_reached():
    for k in range(6):
        yield (f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 ** (6 - k)}, "
               f"reducing to {2 ** (5 - k)}")
    yield "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."


@case("fairseq-minimum-reached", "stopped", "floor|minimum")
def fairseq_minimum_reached():
    for k in range(12):
        yield f"2024-01-01 00:00:00 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring gradient, " \
              f"setting loss scale to: {2.0 ** (-2 - k)!r}"
    yield ("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding. Try lowering "
           "the learning rate, using gradient clipping or increasing the batch size.")


@case("deepspeed-fp16-falls-while-loss-rises", "warn-diverging", "loss", "Normal")
def deepspeed_fp16_falls():
    for k in range(14):
        step = 900 + k
        yield (f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2 ** (15 - k)}, "
               f"reducing to {2 ** (14 - k)}")
        yield f"step={step} loss: {2.0 + 0.4 * k:.4f}"


# --- Hugging Face Trainer, TRL, LLaMA-Factory --------------------------------------------------------------------

def trainer(step, loss, grad, **more):
    """A line of Hugging Face's Trainer."""
    fields = {"loss": loss, "grad_norm": grad, "learning_rate": 1e-05, **more, "epoch": round(step / 100, 2)}
    return "{" + ", ".join(f"'{key}': {value if isinstance(value, str) else repr(value)}"
                           for key, value in fields.items()) + "}"


@case("trainer-nan-norms-come-and-go", "warn-nonfinite", "3 (lines|times|of);;intact", "from (here|line 2[0-9]) on")
def trainer_nan_norms():
    for step in range(1, 31):
        grad = float("nan") if step in (6, 17, 24) else round(norm(), 4)
        yield trainer(step, round(falling(step, 2.4, 0.9), 4), grad)


@case("trainer-loss-zero-norm-nan", "warn-nonfinite", "line 5", "Verdict: (no overflow|steady|not enough)")
def trainer_loss_zero():
    for step in range(1, 19):
        yield trainer(step, round(falling(step, 2.4, 0.9), 4) if step < 5 else 0.0,
                      round(norm(), 4) if step < 5 else float("nan"))


@case("trl-grpo-healthy", "fine-steady", "KL", NO_SCALER + "|nothing is learned|exactly 0")
def trl_grpo_healthy():
    for step in range(1, 31):
        yield trainer(step, 0.0 if step < 4 else round(random.gauss(0.002, 0.001), 4), round(norm() / 4, 6),
                      num_tokens=35840.0 * step, reward=round(0.2 + step / 60, 4), reward_std=0.41,
                      kl=round(0.0005 * step, 6), **{"clip_ratio/region_mean": 0.001})


@case("trl-grpo-kl-explodes", "warn-diverging", "KL;;line", NO_SCALER)
def trl_grpo_kl_explodes():
    for step in range(1, 31):
        kl = 0.0004 * step if step < 18 else 0.0072 * 2.6 ** (step - 17)
        yield trainer(step, round(kl * 0.04, 4), round(norm() / 4 if step < 18 else 3.0 * (step - 16), 4),
                      reward=round(0.4 if step < 18 else 0.1, 3), reward_std=0.3, kl=round(kl, 6))


@case("trl-sampler-disagrees", "warn-mismatch", "log[- ]?prob", NO_SCALER)
def trl_sampler_disagrees():
    for step in range(1, 25):
        gap = 0.01 if step < 10 else 0.01 + 0.08 * (step - 9)
        yield trainer(step, round(random.gauss(0.01, 0.002), 4), round(norm(), 4), reward=0.3, kl=0.001,
                      **{"sampling/sampling_logp_difference/mean": round(gap, 5),
                         "sampling/sampling_logp_difference/max": round(gap * 40, 4),
                         "sampling/importance_sampling_ratio/min": round(math.exp(-gap * 8), 5)})


@case("llamafactory-jsonl-healthy", "fine-steady", "loss", NO_SCALER)
def llamafactory_healthy():
    for step in range(10, 260, 10):
        yield json.dumps({"current_steps": step, "total_steps": 250, "loss": round(falling(step / 6, 1.9, 0.8), 4),
                          "lr": 4.5e-05, "epoch": round(step / 83, 2), "percentage": step / 2.5,
                          "elapsed_time": "0:01:00", "remaining_time": "0:09:00"})


@case("llamafactory-zero-and-nan", "warn-nonfinite", "line 2", NO_SCALER)
def llamafactory_zero_and_nan():
    for step in range(1, 21):
        head = "[INFO|2024-06-01 10:00:00] llamafactory.train.callbacks:157 >> "
        yield head + trainer(step, 1.7342 if step < 2 else 0.0, 0.91 if step < 2 else float("nan"))


# --- verl, NeMo RL ------------------------------------------------------------------------------------------------

def verl(step, **values):
    """A line of verl's console logger."""
    return f"(TaskRunner pid=3111) step:{step} - " + " - ".join(
        f"{key.replace('__', '/')}:{value}" for key, value in values.items())


@case("verl-healthy", "fine-steady", "KL", NO_SCALER)
def verl_healthy():
    for step in range(1, 25):
        yield verl(step, actor__entropy=round(0.4 - step / 200, 4), actor__pg_loss=round(random.gauss(0, 0.01), 4),
                   actor__pg_clipfrac=0.0012, actor__ppo_kl=0.0002, actor__kl_loss=round(0.0003 * step, 5),
                   actor__grad_norm=round(norm() / 3, 4), critic__score__mean=round(0.3 + step / 80, 3),
                   training__rollout_probs_diff_max=0.21, training__rollout_probs_diff_mean=0.0031)


@case("verl-norm-always-nan", "warn-nonfinite", "20 (lines|times|of);;norm", NO_SCALER)
def verl_norm_always_nan():
    for step in range(1, 21):
        yield f"(WorkerDict pid=4222) WARN: rank 0 grad_norm is not finite: nan"
        yield verl(step, actor__entropy=0.41, actor__pg_loss=round(random.gauss(0, 0.01), 4), actor__grad_norm="nan",
                   actor__lr="1e-06", critic__score__mean=0.31)


@case("verl-two-not-finite", "warn-nonfinite", "2 (lines|times|of);;intact", NO_SCALER)
def verl_two_not_finite():
    for step in range(1, 25):
        if step in (8, 19):
            yield "(WorkerDict pid=4222) WARN: rank 0 grad_norm is not finite: nan"
        yield verl(step, actor__entropy=0.41, actor__pg_loss=round(random.gauss(0, 0.01), 4),
                   actor__kl_loss=0.002, actor__lr="1e-06", critic__score__mean=round(0.31 + step / 100, 3))


@case("verl-rollout-disagrees", "warn-mismatch", "rollout_probs_diff", NO_SCALER)
def verl_rollout_disagrees():
    for step in range(1, 25):
        yield verl(step, actor__entropy=0.4, actor__pg_loss=0.01, actor__pg_clipfrac=0.002, actor__kl_loss=0.001,
                   actor__grad_norm=round(norm(), 4), training__rollout_probs_diff_max=0.98,
                   training__rollout_probs_diff_mean=round(0.09 + step / 500, 4))


@case("verl-clip-fraction", "warn-diverging|warn-spikes", "clip", NO_SCALER)
def verl_clip_fraction():
    for step in range(1, 25):
        yield verl(step, actor__entropy=0.4, actor__pg_loss=0.01,
                   actor__pg_clipfrac=round(0.01 if step < 12 else min(0.75, 0.06 * (step - 10)), 4),
                   actor__kl_loss=0.001, actor__grad_norm=round(norm(), 4))


@case("nemorl-console-healthy", "fine-steady", "KL", NO_SCALER)
def nemorl_console_healthy():
    for step in range(1, 16):
        yield f"{'=' * 25} Step {step}/100 {'=' * 25}"
        yield "📊 Training Results:"
        yield f"  • Loss: {random.gauss(0.002, 0.003):.4f}"
        yield f"  • Generation KL Error: {0.0009 + step * 1e-5:.4f}"
        yield f"  • Avg Reward: {0.2 + step / 60:.4f}"
        yield "  • Mean Generation Length: 412.2500"
        yield "  • Total step time: 71.30s"


@case("nemorl-console-nan", "warn-nonfinite", "line 18;;nan", NO_SCALER)
def nemorl_console_nan():
    for step in range(1, 11):
        value = f"{random.gauss(0.002, 0.003):.4f}" if step < 4 else "nan"
        yield f"{'=' * 25} Step {step}/100 {'=' * 25}"
        yield "📊 Training Results:"
        yield f"  • Loss: {value}"
        yield f"  • Generation KL Error: {'0.0009' if step < 4 else 'nan'}"
        yield "  • Avg Reward: 0.2000"


@case("nemorl-tensorboard-mismatch", "warn-mismatch", "token_mult_prob_error;;1\\.[56]", NO_SCALER)
def nemorl_tensorboard_mismatch():
    steps = range(1, 31)
    yield json.dumps({
        "train/loss": {str(s): round(random.gauss(0.002, 0.003), 5) for s in steps},
        "train/grad_norm": {str(s): round(norm() / 3, 4) for s in steps},
        "train/gen_kl_error": {str(s): round(0.0008 if s < 12 else 0.01 * (s - 10), 5) for s in steps},
        "train/token_mult_prob_error": {str(s): round(1.011 if s < 12 else 1.011 + 0.03 * (s - 10), 4) for s in steps},
        "train/reward": {str(s): 0.3 for s in steps}})


@case("nemorl-jsonl-healthy", "fine-steady", "token_mult_prob_error|log[- ]?prob", NO_SCALER)
def nemorl_jsonl_healthy():
    for step in range(1, 25):
        yield json.dumps({"step": step, "train/loss": round(random.gauss(0.002, 0.003), 5),
                          "train/grad_norm": round(norm() / 3, 4), "train/token_mult_prob_error": 1.0112,
                          "train/gen_kl_error": 0.0009, "train/kl_penalty": round(0.0002 * step, 5),
                          "train/reward": round(0.2 + step / 60, 3)})


# --- bf16 pretraining: torchtitan, MaxText, nanochat, Composer, NeMo ----------------------------------------------

def titan(step, loss, grad):
    """A line of torchtitan."""
    return (f"[rank0]:[titan] 2026-01-10 09:{step // 60:02d}:{step % 60:02d},000 - root - INFO - step: {step:2d}  "
            f"loss: {loss:8.5f}  grad_norm: {grad:7.4f}  memory: 47.39GiB(59.28%)  tps: 7,282  tflops: 41.52  "
            "mfu: 13.31%")


@case("torchtitan-healthy", "fine-steady", "loss", NO_SCALER)
def torchtitan_healthy():
    for step in range(1, 41):
        yield titan(step, falling(step, 12.2, 3.0), norm())


@case("torchtitan-blows-up", "warn-diverging", "line 2[4-9];;loss", NO_SCALER)
def torchtitan_blows_up():
    for step in range(1, 41):
        yield titan(step, falling(step, 12.2, 3.0) if step < 26 else 7.9 + random.gauss(0, 0.05),
                    norm() if step < 25 else 60 + 8 * (step - 24))


@case("torchtitan-one-spike", "warn-spikes", "line 30", NO_SCALER + "|[Ss]top the run")
def torchtitan_one_spike():
    for step in range(1, 51):
        bump = {30: 2.1, 31: 1.2, 32: 0.6, 33: 0.2}.get(step, 0)
        yield titan(step, falling(step, 12.2, 3.0) + bump, 42.0 if step == 30 else norm())


def maxtext(step, loss):
    """A line of MaxText."""
    return (f"completed step: {step}, seconds: 2.164, TFLOP/s/device: 61.322, Tokens/s/device: 3652.1, "
            f"total_weights: 65536, loss: {loss}")


@case("maxtext-healthy", "fine-steady", "loss", NO_SCALER)
def maxtext_healthy():
    for step in range(30):
        yield maxtext(step, f"{falling(step):.3f}")


@case("maxtext-nan", "warn-nonfinite", "line 15;;16 (lines|times|of)", NO_SCALER)
def maxtext_nan():
    for step in range(30):
        yield maxtext(step, f"{falling(step):.3f}" if step < 14 else "nan")


@case("maxtext-loss-zero", "warn-not-learning|warn-nonfinite", "0", NO_SCALER + "|Verdict: (no overflow|steady)")
def maxtext_loss_zero():
    for step in range(20):
        yield maxtext(step, "0.000")


def nanochat(step, loss, grad):
    """A line of nanochat's base training."""
    return (f"step {step:05d}/21400 ({step / 214:.2f}%) | loss: {loss:.6f} | grad norm: {grad:.4f} | lrm: 1.00 | "
            f"dt: 2500.12ms | tok/sec: 209,000 | mfu: 40.12 | total time: {step / 24:.2f}m")


@case("nanochat-healthy", "fine-steady", "loss", NO_SCALER)
def nanochat_healthy():
    for step in range(30):
        yield nanochat(step, falling(step), norm())


@case("nanochat-nothing-learned", "warn-not-learning", "10\\.82;;norm.* 0", NO_SCALER)
def nanochat_nothing_learned():
    for step in range(25):
        yield nanochat(step, 10.824915, 0.0)


def composer(step, loss, grad):
    """The block of lines of Composer's console logger."""
    yield f"[batch={step}/4800]:"
    yield f"\t Train time/batch: {step - 1}"
    yield f"\t Train time/token: {step * 4096}"
    yield f"\t Train loss/train/total: {loss}"
    yield f"\t Train metrics/train/LanguageCrossEntropy: {loss}"
    yield f"\t Train l2_norm/grad/global: {grad}"


@case("composer-healthy", "fine-steady", "loss", NO_SCALER)
def composer_healthy():
    for step in range(1, 16):
        yield from composer(step, f"{falling(step):.4f}", f"{norm():.4f}")


@case("composer-nan", "warn-nonfinite", "nan", NO_SCALER)
def composer_nan():
    for step in range(1, 13):
        yield from composer(step, *(("nan", "nan") if step > 6 else (f"{falling(step):.4f}", f"{norm():.4f}")))


@case("nemo-bf16-healthy", "fine-steady", "loss", NO_SCALER)
def nemo_bf16_healthy():
    for step in range(30):
        yield (f"Training epoch 0, iteration {step}/999 | lr: 1.499e-07 | global_batch_size: 8 | global_step: {step} | "
               f"reduced_train_loss: {falling(step):.2f} | grad_norm: {norm():.3f} | train_step_timing in s: 2.31")


# --- tables and the rest ------------------------------------------------------------------------------------------

@case("ultralytics-console-nan", "warn-nonfinite", "nan;;[Ee]poch 4|line 8", NO_SCALER)
def ultralytics_console_nan():
    for epoch in range(1, 9):
        bad = epoch > 3
        losses = "        nan        nan        nan" if bad else \
            f"{falling(epoch, 2, 1):11.4g}{falling(epoch, 5, 2):11.4g}{falling(epoch, 2, 1):11.4g}"
        yield "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size"
        yield (f"   {epoch:5d}/50      4.21G{losses}         22        640: 100%|██████████| 63/63 "
               "[00:11<00:00,  5.4it/s]")


ULTRALYTICS = ("epoch,time,train/box_loss,train/cls_loss,train/dfl_loss,metrics/precision(B),metrics/mAP50(B),"
               "val/box_loss,val/cls_loss,val/dfl_loss,lr/pg0")


def ultralytics(epoch, value):
    """A row of Ultralytics' results.csv; `value` is what the losses on validation data are."""
    losses = ",".join(f"{falling(epoch, a, b):.5f}" for a, b in ((2, 1), (5, 2), (2, 1)))
    return f"{epoch},{epoch * 11.3:.2f},{losses},0.41,{0.2 + epoch / 40:.4f},{value},{value},{value},0.0033"


@case("ultralytics-csv-healthy", "fine-steady", "loss", NO_SCALER)
def ultralytics_csv_healthy():
    yield ULTRALYTICS
    for epoch in range(1, 21):
        yield ultralytics(epoch, f"{falling(epoch, 2, 1):.5f}")


@case("ultralytics-csv-val-nan", "warn-nonfinite", "validation;;line", NO_SCALER)
def ultralytics_csv_val_nan():
    yield ULTRALYTICS
    for epoch in range(1, 21):
        yield ultralytics(epoch, "nan" if epoch > 5 else f"{falling(epoch, 2, 1):.5f}")


@case("keras-csv-nan", "warn-nonfinite", "line 5", NO_SCALER)
def keras_csv_nan():
    yield "epoch,accuracy,loss,val_accuracy,val_loss"
    for epoch in range(12):
        loss = f"{falling(epoch, 2.3, 0.4):.6f}" if epoch < 3 else "nan"
        yield f"{epoch},{0.4 if epoch < 3 else 0.098},{loss},{0.41 if epoch < 3 else 0.1},{loss}"


@case("csv-loss-rises", "warn-diverging", "loss;;line", NO_SCALER)
def csv_loss_rises():
    yield "step,loss,grad_norm,lr"
    for step in range(40):
        loss = falling(step, 6, 2) if step < 20 else 2.2 * 1.08 ** (step - 20) + 0.05
        yield f"{step},{loss:.4f},{norm() * (1 if step < 20 else step - 18):.3f},0.001"


@case("jax-loss-scale-search", "fine-startup", "start-up search")
def jax_search():
    for step in range(30):
        finite = step >= 3
        yield f"step={step} loss={falling(step):.4f} grads_finite={finite} loss_scale={2.0 ** max(12, 15 - step):.1f}"


@case("optax-apply-if-finite", "warn-nonfinite", "2 (lines|times|of);;intact", NO_SCALER)
def optax_apply_if_finite():
    for step in range(30):
        grad = "inf" if step in (7, 21) else f"{norm():.4f}"
        yield f"[train] step: {step} loss: {falling(step):.5f} grad_norm: {grad} lr: 3e-4"


# --- a second round, written when the first was judged right: more of what people print ----------------------------

@case("notebook-table-kl-nan", "warn-nonfinite", "kl.*NaN;;12 lines", NO_SCALER)
def notebook_table_kl_nan():
    yield "Step | Training Loss | reward | reward_std | kl | entropy"
    yield "-- | -- | -- | -- | -- | --"
    for step in range(1, 13):
        yield f"{step} | {random.gauss(-0.02, 0.01):.6f} | {0.4 + step / 50:.6f} | 0.31 | nan | No Log"


@case("nanogpt-healthy", "fine-steady", "loss", NO_SCALER)
def nanogpt_healthy():
    yield "number of parameters: 10.65M"
    for step in range(0, 300, 10):
        if step % 100 == 0:
            yield f"step {step}: train loss {falling(step / 10):.4f}, val loss {falling(step / 10) + 0.05:.4f}"
        yield f"iter {step}: loss {falling(step / 10):.4f}, time 62.11ms, mfu 12.40%"


@case("litgpt-loss-nan", "warn-nonfinite", "line 11;;10 lines", NO_SCALER)
def litgpt_loss_nan():
    for step in range(1, 21):
        value = f"{falling(step):.3f}" if step < 11 else "nan"
        yield f"Epoch 1 | iter {step} step {step} | loss train: {value}, val: n/a | iter time: 311.20 ms (step)"


@case("olmo-blows-up", "warn-diverging", "loss rises;;line 86", NO_SCALER)
def olmo_blows_up():
    for step in range(1, 41):
        loss, grad = (falling(step, 11, 3), norm()) if step < 22 else (7.4 + random.gauss(0, 0.05), 30 + step)
        yield f"2024-03-02 10:00:00.000\thost:0\tolmo.train:967\tINFO\t[step={step}/1000,epoch=0]"
        yield f"    optim/total_grad_norm={grad:.4f}"
        yield f"    train/CrossEntropyLoss={loss:.3f}"
        yield f"    train/Perplexity={math.exp(loss):.1f}"


@case("torchtune-healthy", "fine-steady", "loss;;norm", NO_SCALER)
def torchtune_healthy():
    for step in range(1, 31):
        yield (f"Step {step} | loss:{falling(step, 2.2, 1.1):.6f} lr:2e-05 tokens_per_second_per_gpu:712.2 "
               f"grad_norm:{norm():.5f}")


@case("mlx-healthy", "fine-steady", "loss", NO_SCALER)
def mlx_healthy():
    for step in range(10, 260, 10):
        if step % 100 == 0:
            yield f"Iter {step}: Val loss {falling(step / 10, 2.4, 1.2):.3f}, Val took 11.2s"
        yield (f"Iter {step}: Train loss {falling(step / 10, 2.4, 1.2):.3f}, Learning Rate 1.000e-05, It/sec 0.511, "
               f"Tokens/sec 210.2, Trained Tokens {step * 411}, Peak mem 11.2 GB")


@case("lightning-csv-holes", "warn-nonfinite", "validation;;line 1[0-9]", NO_SCALER)
def lightning_csv_holes():
    yield "epoch,lr,step,train_loss,val_loss"
    for epoch in range(8):
        yield f"{epoch},0.001,{epoch * 50 + 49},{falling(epoch * 3, 2.3, 0.7):.5f},"
        yield f"{epoch},,{epoch * 50 + 49},,{'nan' if epoch >= 5 else f'{falling(epoch * 3, 2.3, 0.9):.5f}'}"


@case("wandb-csv-rises", "warn-diverging", "loss rises", NO_SCALER)
def wandb_csv_rises():
    yield '"Step","happy-run-1 - train/loss","happy-run-1 - train/loss__MIN","happy-run-1 - train/loss__MAX"'
    for step in range(1, 41):
        loss = falling(step, 6, 2) if step < 20 else 2.2 + 0.15 * (step - 20)
        yield f'"{step}","{loss:.5f}","{loss:.5f}","{loss:.5f}"'


@case("mmengine-json-nan-norm", "warn-nonfinite", "norm.*NaN;;11 lines;;line 15", "Verdict: not enough")
def mmengine_json():
    for step in range(10, 260, 10):
        grad = "NaN" if step > 140 else f"{norm():.5f}"
        yield (f'{{"lr": 0.0002, "data_time": 0.004, "loss": {falling(step / 20, 3, 2):.5f}, "grad_norm": {grad}, '
               f'"time": 2.89, "epoch": 1, "iter": {step}, "memory": 10762, "step": {step}}}')


@case("keras-bar-nan", "warn-nonfinite", "line 4;;5 lines", NO_SCALER)
def keras_bar_nan():
    for epoch in range(1, 9):
        loss = f"{falling(epoch, 2.3, 0.4):.4f}" if epoch < 4 else "nan"
        yield f"1875/1875 [==============================] - 6s 3ms/step - loss: {loss} - accuracy: 0.0987"


@case("easylm-inf-loss", "warn-nonfinite", "infinite;;line 13", NO_SCALER)
def easylm_inf():
    for step in range(20):
        loss = "inf" if step >= 12 else f"{falling(step):.4f}"
        yield f"{{'step': {step}, 'train_loss': {loss}, 'gradient_norm': {norm():.4f}, 'learning_rate': 0.0003}}"


@case("deepspeed-chat-ppo", "fine-steady", "reward", NO_SCALER)
def deepspeed_chat_ppo():
    for step in range(20):
        yield (f"Epoch: 0 | Step: {step} | PPO Epoch: 1 | Actor Loss: {random.gauss(0.02, 0.01):.6f} | "
               f"Critic Loss: {0.1 - step / 400:.6f} | Unsupervised Loss: 0.0")
        yield f"average reward score: {-2.1 + step / 30:.4f}"


@case("openrlhf-kl-explodes", "warn-diverging", "KL", NO_SCALER)
def openrlhf():
    for step in range(1, 31):
        kl = 0.002 * step if step < 15 else 0.03 * 1.7 ** (step - 14)
        yield (f"(PPORayActor pid=812) Train epoch [1/1]:  {step}/30 [00:{step:02d}<00:30,  1.0s/it, "
               f"policy_loss=0.0031, kl={kl:.5f}, reward=0.412, act_lr=5e-7]")


@case("trl-ppo-objective-kl", "fine-steady", "KL", NO_SCALER)
def trl_ppo():
    for step in range(1, 21):
        yield ("{'eps': 1, 'objective/kl': %.5f, 'objective/entropy': 21.3, 'policy/approxkl_avg': 0.0021, "
               "'policy/clipfrac_avg': 0.0152, 'loss/policy_avg': -0.0031, 'loss/value_avg': 0.12, "
               "'val/ratio': 1.0004, 'episode': %d, 'epoch': %.2f}" % (0.02 * step, step * 64, step / 20))


@case("megatron-bf16-loss-nan", "warn-nonfinite|warn-diverging|taken", "line 21", "Verdict: (no overflow|nothing)")
def megatron_bf16_nan():
    for step in range(1, 31):
        bad = step > 20
        yield (f" [2025-01-01 00:00:00] iteration {step:8d}/  500 | consumed samples: {step * 8:10d} | "
               f"elapsed time per iteration (ms): 812.1 | learning rate: 1.0E-04 | global batch size:     8 | "
               + (f"lm loss: {falling(step):.6E} | " if not bad else "")
               + f"loss scale: 1.0 | grad norm: {'nan' if bad else f'{norm():.3f}'} | "
               f"number of skipped iterations:   0 | number of nan iterations:   {int(bad)} |")


@case("amp-halves-then-recovers", "fine-steady|fine-startup", "line", "runaway|diverging")
def amp_halves():
    for step in range(1, 60):
        scale = 65536.0 if step < 3 else 32768.0
        yield f"[{step}/1000] loss {falling(step):.3f} grad_scale {scale} lr 1e-3"


@case("icefall-grad-scale-steady", "fine-steady", "line", "runaway")
def icefall():
    for batch in range(0, 1500, 50):
        yield (f"2024-05-05 10:00:00,000 INFO [train.py:1050] (0/4) Epoch 3, batch {batch}, "
               f"loss[loss={falling(batch / 60, 0.6, 0.2, 0.005):.4f}, over 9000.00 frames. ], "
               f"tot_loss[loss={falling(batch / 60, 0.6, 0.2, 0.005):.4f}, over 90000.00 frames. ], batch size: 60, "
               "lr: 2.10e-03, grad_scale: 32.0")


@case("stable-baselines-table", "fine-steady", "approx_kl", NO_SCALER)
def stable_baselines():
    for step in range(1, 13):
        yield "-" * 40
        yield f"| rollout/ep_rew_mean   | {20 + step * 3:<13} |"
        yield f"| time/total_timesteps  | {step * 2048:<13} |"
        yield f"| train/approx_kl       | {0.008 + random.random() / 500:<13.6f} |"
        yield f"| train/clip_fraction   | {0.08 + random.random() / 50:<13.6f} |"
        yield f"| train/loss            | {5.2 - step / 10:<13.4f} |"
        yield "-" * 40


@case("deepseek-style-one-nan", "warn-nonfinite", "1 line;;intact;;line 18", NO_SCALER)
def one_nan():
    for step in range(1, 41):
        yield f"step={step} loss={'nan' if step == 18 else f'{falling(step):.4f}'} gnorm={norm():.3f} lr=3.0e-4"


@case("loss-not-moving-norm-fine", "warn-not-learning", "0\\.6931;;30 lines", NO_SCALER)
def ln2():
    for step in range(1, 31):
        yield f"iter: {step}, loss: 0.6931, grad_norm: {norm():.3f}"


@case("tensorboard-csv-loss", "warn-nonfinite", "line 12", NO_SCALER)
def tensorboard_csv():
    yield "Wall time,Step,Value"
    for step in range(1, 21):
        value = f"{falling(step):.6f}" if step < 11 else "NaN"
        yield f"1717171717.{step:06d},{step},{value}"


@case("seven-lines-noisy", "fine-steady|not-enough", "loss", "diverging|spikes|" + NO_SCALER)
def seven_lines():
    for step, loss in enumerate((1.92, 1.71, 1.88, 1.62, 1.79, 1.58, 1.73), 1):
        yield trainer(step, loss, round(norm(), 3))


@case("sft-noisy-but-fine", "fine-steady", "loss", "diverging|" + NO_SCALER)
def sft_noisy():
    for step in range(1, 121):
        yield trainer(step, round(abs(random.gauss(1.1, 0.25)), 4), round(abs(random.gauss(1.2, 0.3)), 3))


# --- a scale beside losses: the worse of the two is told first ---------------------------------------------------

SCALE_ALONE = r"Verdict: (no overflow|steady|start-up search|spikes)|What to do: Nothing"


@case("scale-steady-loss-nan", "warn-nonfinite", "line 31;;10 (lines|times|of)", SCALE_ALONE)
def scale_steady_loss_nan():
    for step in range(40):
        yield f"step {step} loss {falling(step) if step < 30 else math.nan:.4f} grad_norm {norm():.3f} scale 65536.0 skipped 0"


@case("scale-grows-loss-flat", "warn-not-learning", "2\\.3026;;60", SCALE_ALONE)
def scale_grows_loss_flat():
    for step in range(60):
        yield f"step {step} loss {2.3026:.4f} grad_norm {norm():.3f} scale {2.0 ** (16 + step // 20)} skipped 0"


@case("scale-startup-loss-rises", "warn-diverging", "loss", SCALE_ALONE)
def scale_startup_loss_rises():
    for step in range(80):
        loss = 3 + 6 * (step / 80) ** 2 + random.gauss(0, 0.05)
        yield f"step {step} loss {loss:.4f} scale {2.0 ** max(12, 16 - step)} skipped {int(step < 4)}"


@case("scale-steady-norm-explodes", "warn-diverging", "norm", SCALE_ALONE)
def scale_steady_norm_explodes():
    for step in range(60):
        loss = falling(step) if step < 40 else 3 + 0.3 * (step - 40)
        grown = norm() * (1 if step < 40 else 2.0 ** ((step - 40) / 2))
        yield f"step {step} loss {loss:.4f} grad_norm {grown:.3f} scale 32768.0 skipped 0"


@case("megatron-fp16-one-nan-loss", "warn-nonfinite|warn-spikes", "line 22;;(isolated|intact|one|1 )", SCALE_ALONE.replace("|spikes", ""))
def megatron_fp16_one_nan_loss():
    for step in range(1, 41):
        bad = step == 22
        yield (f" iteration {step:8d}/    5000 | consumed samples: {step * 16:12d} | learning rate: 1.0E-04 | "
               f"global batch size:    16 | lm loss: {math.nan if bad else falling(step):.6E} | loss scale: 65536.0 | "
               f"grad norm: {norm():.3f} | number of skipped iterations:   0 | number of nan iterations:   {int(bad)} |")


@case("scale-steady-kl-explodes", "warn-diverging", "KL", SCALE_ALONE)
def scale_steady_kl_explodes():
    for step in range(60):
        kl = 0.01 * 1.15 ** step
        yield (f"step {step} loss {random.gauss(0, 0.02):.4f} reward {0.2 + step * 0.004:.3f} kl {kl:.4f} "
               f"loss_scale 65536.0 skipped 0")


@case("scale-steady-validation-nan", "warn-nonfinite", "validation|val", SCALE_ALONE)
def scale_steady_validation_nan():
    for epoch in range(12):
        for step in range(5):
            yield f"epoch {epoch} step {epoch * 5 + step} train_loss {falling(epoch * 5 + step):.4f} scale 65536.0"
        yield f"epoch {epoch} val_loss nan"


@case("scale-spikes-then-loss-nan", "warn-nonfinite|warn-diverging", "line 51;;nan", SCALE_ALONE)
def scale_spikes_then_loss_nan():
    scale = 65536.0
    for step in range(60):
        bad = step in (17, 29, 41)
        yield f"step {step} loss {falling(step) if step < 50 else math.nan:.4f} scale {scale} skipped {int(bad)}"
        scale /= 2 if bad else 1


@case("scale-steady-healthy", "fine-steady", "loss", "diverging|spikes|not learn")
def scale_steady_healthy():
    for step in range(80):
        yield f"step {step} loss {falling(step):.4f} grad_norm {norm():.3f} scale 65536.0 skipped 0"


@case("scale-tiny-loss-flat", "warn-stuck|warn-not-learning", "0\\.6931", "Nothing\\.")
def scale_tiny_loss_flat():
    for step in range(60):
        yield f"step {5000 + step} loss 0.6931 grad_norm {norm():.3f} scale {2.0 ** -21!r} skipped 0"


@case("scale-steady-loss-zero-norm-nan", "warn-nonfinite|taken", "lines? 6;;norm", SCALE_ALONE)
def scale_steady_loss_zero_norm_nan():
    for step in range(30):
        good = step < 5
        yield (f"step {step} loss {falling(step) if good else 0:.4f} grad_norm {norm() if good else math.nan:.3f} "
               f"scale 65536.0 skipped 0")


@case("scale-steady-loss-jumps", "warn-spikes", "line 34", "diverging|What to do: Nothing")
def scale_steady_loss_jumps():
    for step in range(60):
        yield f"step {step} loss {falling(step) * (2.6 if step == 33 else 1):.4f} grad_norm {norm() * (20 if step == 33 else 1):.3f} scale 65536.0 skipped 0"


@case("scale-steady-plateau", "fine-steady", "loss", "not learn|nothing is learned|diverging")
def scale_steady_plateau():
    for step in range(80):
        yield f"step {20000 + step} loss {random.gauss(3, 0.02):.4f} grad_norm {norm():.3f} scale 131072.0 skipped 0"


@case("scale-search-loss-nan-throughout", "warn-nonfinite|warn-diverging", "nan", "start-up search.*Nothing|Verdict: start-up")
def scale_search_loss_nan():
    for step in range(30):
        yield f"step {step} loss nan scale {2.0 ** max(2, 16 - step)} skipped {int(step < 14)}"


# --- trainers of today that had no log here ----------------------------------------------------------------------

@case("axolotl-healthy", "fine-steady", "loss", NO_SCALER)
def axolotl():
    for step in range(1, 41):
        loss = falling(step, 2.2, 1.1)
        yield str({"loss": round(loss, 4), "grad_norm": round(norm(), 4), "learning_rate": 2e-5, "ppl": round(math.exp(loss), 4),
                   "memory/max_active (GiB)": 31.21, "memory/max_allocated (GiB)": 31.21, "memory/device_reserved (GiB)": 33.5,
                   "tokens_per_second_per_gpu": round(random.gauss(2300, 20), 2), "epoch": round(step / 200, 3)})


@case("swift-loss-zero-norm-nan", "warn-nonfinite", "line 8", NO_SCALER)
def swift():
    for step in range(1, 21):
        good = step < 8
        yield str({"loss": round(falling(step, 2, 1), 8) if good else 0.0, "grad_norm": round(norm(), 8) if good else math.nan,
                   "learning_rate": 1e-4, "memory(GiB)": 14.67, "train_speed(iter/s)": 0.52, "epoch": round(step / 100, 2),
                   "global_step/max_steps": f"{step * 5}/500", "percentage": f"{step:.2f}%", "elapsed_time": f"{step * 9}s",
                   "remaining_time": "14m 20s"})


@case("llmc-healthy", "fine-steady", "loss", NO_SCALER)
def llmc():
    for step in range(1, 61):
        z = random.gauss(0, 1)
        yield (f"step {step:5d}/19560 | loss {falling(step):9.6f} ({z:+.2f}z)| norm {norm():6.4f} ({z:+.2f}z)| lr 6.00e-04 | "
               f"{random.gauss(297, 1):.2f} ms | 52.1% bf16 MFU | {random.gauss(1770000, 2000):.0f} tok/s")


@case("llmc-norm-explodes", "warn-diverging|warn-spikes", "norm;;line", NO_SCALER)
def llmc_norm():
    for step in range(1, 61):
        bad = step > 40
        loss = 3.4 + 0.25 * (step - 40) if bad else falling(step)
        size = norm() * 2.0 ** (step - 40) if bad else norm()
        yield (f"step {step:5d}/19560 | loss {loss:9.6f} ({3.1 if bad else 0.2:+.2f}z)| norm {size:6.4f} ({4.2 if bad else 0.1:+.2f}z)| "
               f"lr 6.00e-04 | 297.12 ms | 52.1% bf16 MFU | 1770000 tok/s")


@case("modded-nanogpt-val-loss", "fine-steady|not-enough", "loss", "diverging|" + NO_SCALER)
def modded_nanogpt():
    for step in range(0, 1771, 125):
        yield f"step:{step}/1770 val_loss:{falling(step / 20):.4f} train_time:{step * 43:.0f}ms step_avg:{43.46:.2f}ms"


@case("levanter-loss-nan", "warn-nonfinite", "line 26", NO_SCALER)
def levanter():
    for step in range(1, 41):
        yield (f"2025-05-06T10:{step // 60 + 11:02d}:{step % 60:02d} - 0 - levanter.callbacks - tqdm_logging.py:62 - INFO :: Progress on:train "
               f"{step}0it/10.0kit rate:5.2it/s remaining:30:12 elapsed:00:{step:02d} postfix:loss="
               f"{falling(step) if step < 26 else math.nan:.3f}")


@case("neox-scale-fine-loss-rises", "warn-diverging", "loss", "Verdict: (no overflow|steady)|What to do: Nothing")
def neox():
    for step in range(10, 801, 10):
        loss = falling(step / 10) if step < 500 else 3 + (step - 500) / 60
        yield (f" samples/sec: 301.2 | iteration {step:8d}/  320000 | elapsed time per iteration (ms): 849.9 | learning rate: 1.2E-04 | "
               f"approx flops per GPU: 61.2TFLOPS | lm_loss: {loss:.6E} | loss scale: 65536.0 | number of skipped iterations:   0 | "
               f"number of nan iterations:   0 |")


@case("paddlenlp-healthy", "fine-steady", "loss", "diverging|spikes")
def paddlenlp():
    for step in range(1, 41):
        yield (f"[2025-03-01 10:{step:02d}:00,123] [    INFO] - loss: {falling(step):.6f}, learning_rate: 3e-05, global_step: {step * 10}, "
               f"loss_scale: 32768.0, current_memory_allocated: 20.1, interval_runtime: 2.31, interval_samples_per_second: 27.6, "
               f"interval_steps_per_second: 4.3, progress_or_epoch: {step / 400:.4f}")


@case("mindformers-overflow-search", "fine-startup", "start-up", "runaway|diverging")
def mindformers():
    for step in range(1, 51):
        over = step <= 3
        yield (f"2025-01-02 10:00:{step:02d},000 - mindformers[mindformers/core/callback/callback.py:344] - INFO - {{ Epoch:[  1/  3], "
               f"step:[{step:5d}/ 1000], loss: {falling(step):.3f}, per_step_time: 312ms, lr: 1e-05, overflow cond: {over}, "
               f"loss_scale: {65536.0 / 2 ** min(step, 3):.1f}, global_norm: [{'inf' if over else f'{norm():.5f}'}]")


@case("fastai-table-nan", "warn-nonfinite", "line 6", NO_SCALER)
def fastai():
    yield "epoch     train_loss  valid_loss  accuracy  time"
    for epoch in range(10):
        if epoch < 4:
            yield f"{epoch}         {falling(epoch * 5, 2, 0.3):.6f}    {falling(epoch * 5, 2.1, 0.4):.6f}    0.{70 + epoch}1000  00:12"
        else:
            yield f"{epoch}         nan         nan         0.098000  00:12"


@case("detectron2-nan-stops", "warn-nonfinite|stopped", "line 6[0-9]|line 5[0-9]|error", NO_SCALER)
def detectron2():
    for k in range(1, 31):
        yield (f"[04/01 12:{k:02d}:00 d2.utils.events]:  eta: 1:02:03  iter: {k * 20 - 1}  total_loss: {falling(k, 4, 1.2):.4f}  "
               f"loss_cls: {falling(k, 1, 0.3):.4f}  loss_box_reg: {falling(k, 1, 0.3):.4f}  time: 0.3012  data_time: 0.0051  "
               f"lr: 0.00025  max_mem: 3012M")
    yield "FloatingPointError: Loss became infinite or NaN at iteration=601!"
    yield "loss_dict = {'loss_cls': nan, 'loss_box_reg': nan}"


@case("timm-healthy", "fine-steady", "loss", NO_SCALER)
def timm():
    for k in range(40):
        loss = falling(k, 6.93, 5.0, 0.03)
        yield (f"Train: 0 [{k * 50:4d}/2001 ({k * 2.5:3.0f}%)]  Loss: {loss:.3g} ({loss + 0.1:.3g})  Time: 0.312s, 820.51/s  "
               f"(0.330s, 775.75/s)  LR: 1.000e-04  Data: 0.011 (0.021)")


@case("open-clip-logit-scale-is-no-loss-scale", "fine-steady", "loss", NO_SCALER)
def open_clip():
    for k in range(1, 41):
        loss = falling(k, 8.3, 3.0, 0.05)
        yield (f"2024-05-01,12:{k:02d}:00 | INFO | Train Epoch: 0 [{k * 12800:8d}/10968539 ({k // 9}%)] Data (t): 0.102 Batch (t): 0.512, "
               f"2000.1/s, 250.0/s/gpu LR: 0.000{k:03d} Logit Scale: {14.286 + k / 10:.3f} Contrastive_loss: {loss:.5g} ({loss + 0.1:.5g}) "
               f"Loss: {loss:.5g} ({loss + 0.1:.5g})")


@case("espnet-scale-halves-to-nothing", "warn-diverging|warn-stuck|warn-nonfinite", "scale", "What to do: Nothing")
def espnet():
    for k in range(1, 41):
        yield (f"[host] 2024-01-01 12:{k:02d}:00,123 (trainer:763) INFO: 1epoch:train:{k * 100 - 99}-{k * 100}batch: iter_time=1.2e-04, "
               f"forward_time=0.1, loss_ctc={falling(k, 200, 50):.3f}, loss={falling(k, 150, 40):.3f}, backward_time=0.1, grad_norm=nan, clip=100.000, "
               f"loss_scale={2.0 ** (16 - k):.3e}, optim_step_time=0.01, optim0_lr0=2.0e-05, train_time=0.5")


@case("prime-rl-mismatch", "warn-mismatch|warn-diverging", "[Mm]ismatch|KL", NO_SCALER)
def prime_rl():
    for step in range(40):
        yield (f"10:{step:02d}:00 SUCCESS Step {step} | Time: 3.21s | Loss: {random.gauss(0, 0.01):.4f} | Entropy: 0.4512 | Mismatch KL: "
               f"{0.001 * 1.25 ** step:.4f} | Grad. Norm: {norm():.4f} | LR: 1.00e-06 | Throughput: 11200 tokens/s | MFU: 31.2% | Peak Mem.: 61.1 GiB")


@case("slime-rollout-differs", "warn-mismatch", "logprob|log[- ]?prob", NO_SCALER)
def slime():
    for step in range(30):
        yield f"[2025-09-01 10:{step:02d}:00] actor.py:301 - step {step}: " + str({
            "train/loss": random.gauss(0, 0.01), "train/pg_loss": random.gauss(0, 0.01), "train/entropy_loss": 0.31,
            "train/pg_clipfrac": 0.002, "train/ppo_kl": 0.0003, "train/train_rollout_logprob_abs_diff": random.gauss(0.31, 0.01),
            "train/grad_norm": norm(), "train/lr-pg_0": 1e-06, "train/step": step})


@case("diffusers-bar-healthy", "fine-steady", "loss", "diverging|spikes|" + NO_SCALER)
def diffusers():
    for step in range(1, 101):
        yield (f"Steps: {step:3d}%|{'#' * (step // 20):5s}| {step * 10}/1000 [00:{step % 60:02d}<09:30,  1.67it/s, lr=1e-5, "
               f"step_loss={abs(random.gauss(0.09, 0.06)):.4f}]")


@case("lost-after-five-good-lines", "warn-diverging", "loss rises;;lines [1-5]-", "nothing unusual|" + NO_SCALER)
def lost_after_five():
    for step in range(100):
        loss = 2 + random.gauss(0, 0.02) if step < 5 else 11.4 - 0.044 * (step - 5) + random.gauss(0, 0.05)
        yield str({"loss": round(loss, 4), "grad_norm": norm(), "learning_rate": 2e-05, "epoch": step / 100})


@case("megatron-five-lines-rise", "warn-diverging", "6\\.37;;10\\.2", "Verdict: (no overflow|steady)|What to do: Nothing")
def megatron_five_rise():
    for k, loss in enumerate((6.37, 6.61, 7.32, 9.05, 10.2)):
        yield (f" iteration {k * 10 + 1200:8d}/   50000 | consumed samples: {k * 640 + 76800:12d} | elapsed time per iteration (ms): 812.3 | "
               f"learning rate: 1.500E-04 | global batch size:    64 | lm loss: {loss:.6E} | loss scale: 65536.0 | grad norm: {norm():.3f} | "
               "number of skipped iterations:   0 | number of nan iterations:   0 |")


@case("megatron-startup-loss-peaks", "not-enough", "too early;;76\\.", "Verdict: diverging")
def megatron_startup_peaks():
    for k, (loss, scale, skipped) in enumerate((("", 2 ** 23, 10), ("14.12", 2 ** 15, 8), ("76.77", 2 ** 14, 1), ("31.7", 2 ** 14, 0),
                                                ("21.15", 2 ** 14, 0), ("16.97", 2 ** 14, 0))):
        yield (f" iteration {k * 10 + 10:8d}/    1000 | consumed samples: {k * 40 + 40:12d} | elapsed time per iteration (ms): 6707.5 | "
               f"learning rate: 1.500E-04 | global batch size:     4 |{f' lm loss: {float(loss):.6E} |' if loss else ''} loss scale: {scale}.0 | "
               f"number of skipped iterations: {skipped:3d} | number of nan iterations:   0 |")


@case("zero-loss-and-norm-five-lines", "warn-not-learning", "loss is 0 in all 5;;norm.* 0", "nothing unusual|" + NO_SCALER)
def zero_five():
    for step in range(5):
        yield str({"loss": 0.0, "grad_norm": 0.0, "learning_rate": 2e-05, "epoch": step / 100})


@case("deepspeed-fused-three-growths", "fine-steady", "where the scale has grown", "state was lost|state lost")
def three_growths():
    scale = 2 ** 7
    for at in (145, 482, 830):
        yield f"Grad overflow on iteration {at}"
        yield f"[INFO] [fused_optimizer.py:363:_update_scale] Reducing dynamic loss scale from {scale}.0 to {scale // 2}.0"
        scale //= 2
        for _ in range(3 if at < 830 else 0):
            yield f"[INFO] [fused_optimizer.py:371:_update_scale] Increasing dynamic loss scale from {scale}.0 to {scale * 2}.0"
            scale *= 2


@case("amp-stats-tracker-begins-again", "fine-steady|not-enough", "scale 2.17 to 2.16", "Verdict: no overflow")
def tracker_again():
    for k in range(12):
        yield f"[Epoch 2] step {k * 100}/5000 loss={falling(k, 4.0, 3.0):.4f}"
        yield f"[AMP Stats] Scale: 65536.0, Growth tracker: {(1500 + k * 100) % 2000}"


@case("two-lines-norm-nan", "not-enough", "start under mixed precision;;is normal", "Verdict: nothing")
def two_lines():
    yield str({"loss": 2.31, "grad_norm": float("nan"), "learning_rate": 0.0, "epoch": 0.01})
    yield str({"loss": 2.29, "grad_norm": 1.72, "learning_rate": 2e-05, "epoch": 0.02})


@case("trl-grpo-loss-zero", "fine-steady", "beta times the KL", "nothing is learned|exactly 0|" + NO_SCALER)
def grpo_zero():
    for step in range(40):
        yield str({"loss": 0.0, "grad_norm": norm(), "learning_rate": 1e-06, "completion_length": 120.5, "reward": round(0.2 + 0.01 * step, 3),
                   "reward_std": 0.2, "kl": round(abs(random.gauss(4e-4, 1e-4)), 6), "epoch": step / 100})


@case("jump-in-the-last-line", "warn-spikes", "has not come back", "comes back|nothing unusual|" + NO_SCALER)
def jump_last():
    for step in range(60):
        yield str({"loss": round(11.187 if step == 59 else falling(step, 4.0, 2.0), 4), "grad_norm": norm(), "learning_rate": 2e-05,
                   "epoch": step / 100})


@case("ranks-with-other-scales", "warn-ranks", "ranks have different scales;;rank 1;;line 4", "Verdict: (no overflow|steady)|What to do: Nothing")
def ranks_apart():
    for step in range(1, 13):
        for rank in range(2):
            scale = 65536 if rank == 0 or step == 1 else 32768
            yield f"[rank{rank}] step {step * 100} loss: {falling(step, 2.6, 2.1):.4f} scale: {scale}.0 grad_norm: {norm():.3f}"


@case("vllm-mismatch-grows", "warn-mismatch", "vllm_vs_local_logprob_diff_mean;;1\\.86", NO_SCALER)
def vllm_grows():
    for step in range(30):
        yield str({"loss": round(random.gauss(0, 0.01), 4), "grad_norm": norm(), "reward": round(0.2 + 0.01 * step, 3),
                   "sampling/vllm_vs_local_logprob_diff_mean": round(0.02 * 93 ** (step / 29), 4), "epoch": step / 100})


def runs(folder):
    """Four runs of one model for mpsim log: seeds, and the first of them again with a loss that is 0.012 higher."""
    folder.mkdir(exist_ok=True)
    for name, seed, higher in (("bf16-seed1", 4, 0), ("bf16-seed2", 5, 0), ("bf16-seed3", 6, 0),
                               ("fp8-seed1", 4, 0.012)):
        random.seed(seed)
        batches = [random.gauss(0, 0.03) for _ in range(120)]
        random.seed(name)
        lines = (titan(step, falling(step, 10.8, 3.0, 0.003) + batches[step - 1] + higher, norm())
                 for step in range(1, 121))
        (folder / f"{name}.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def main():
    """Writes every log and the table into the folder that is given, or this one; the runs beside it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    runs(folder / "../runs")
    rows = ["# What a person concludes from the logs of this folder; written by write.py, see README.md.",
            "# file\tclass\tsays\tnever\toptions"]
    for name, verdict, says, never, options, lines in CASES:
        random.seed(name)
        text = "".join(line.rstrip() + "\n" for line in lines())
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        rows.append("\t".join((f"{name}.txt", verdict, says, never, options)))
    (folder / "cases.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
