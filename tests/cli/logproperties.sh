#!/bin/sh
# logproperties.sh -- mpsim log: properties of its verdicts, on logs that are generated (logproperties.awk); a sixth of them a day,
# all with MPSIM_TEST_PART=all.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cd "$dir" || exit 99
mkdir above logs

# ---- what stands above logs, and measures nothing
cat >above/deepspeed.json <<'END'
{
  "train_batch_size": 256,
  "gradient_clipping": 1.0,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "betas": [0.9, 0.95], "eps": 1e-8}},
  "fp16": {
    "enabled": true,
    "loss_scale": 0,
    "loss_scale_window": 1000,
    "initial_scale_power": 16,
    "min_loss_scale": 1
  }
}
END
cat >above/deepspeed-printed <<'END'
[2024-05-02 10:11:12,345] [INFO] [config.py:979:print]   dynamic_loss_scale_args ...... {'init_scale': 65536, 'scale_window': 1000}
[2024-05-02 10:11:12,345] [INFO] [config.py:979:print]   loss_scale ................... 0
[2024-05-02 10:11:12,345] [INFO] [config.py:979:print]   initial_dynamic_scale ........ 65536
[2024-05-02 10:11:12,345] [INFO] [config.py:979:print]   gradient_clipping ............ 1.0
END
cat >above/settings.yaml <<'END'
model:
  norm_eps: 1e-5
training:
  steps: 1000
  max_norm: 1.0
  loss_scale: 128.0
  grad_norm_clip: 1.0
  z_loss: 0.0001
  val_loss_every: 125
END
cat >above/namespace <<'END'
Namespace(lr=0.0001, clip_grad_norm=1.0, max_norm=0.25, loss_scale=None, init_loss_scale=65536, loss='ce', loss_weight=0.5, norm=1, steps=1000)
END
cat >above/torchrun <<'END'
W0110 09:00:00.000000 139 torch/distributed/run.py:793] *****************************************
W0110 09:00:00.000000 139 torch/distributed/run.py:793] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default
W0110 09:00:00.000000 139 torch/distributed/run.py:793] *****************************************
+ python train.py --loss_scale=0 --max_norm=1.0 --steps 1000
END
cat >above/megatron-arguments <<'END'
------------------------ arguments ------------------------
  clip_grad ....................................... 1.0
  initial_loss_scale .............................. 4294967296
  loss_scale ...................................... None
  min_loss_scale .................................. 1.0
  norm_epsilon .................................... 1e-05
-------------------- end of arguments ---------------------
END
cat >above/model <<'END'
GPT(
  (0-11): 12 x Block(
    (norm1): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
    (q_norm): RMSNorm(64, eps=1e-06)
    (norm2): GroupNorm(32, 128, eps=1e-05, affine=True)
    (norm2): GroupNorm(64, 256, eps=1e-05, affine=True)
  )
  (norm): LayerNorm((768,), eps=1e-05, elementwise_affine=True)
  (loss): FocalLoss(gamma=2.0, alpha=0.25)
)
END
cat >above/source.py <<'END'
class Block(nn.Module):
    def __init__(self, dim):
        self.norm1 = nn.LayerNorm(768)
        self.loss_scale = 1024
scaler = torch.cuda.amp.GradScaler(init_scale=2**16, growth_interval=2000)
val_loss = 0.0
val_loss_every = 125
best_loss = 1e9
grad_norm = 0.5
for step in range(1000):
    loss = model(x, y) / 4
    print(f"step {step} loss: {loss.item():.4f} grad_norm: {grad_norm:.4f}")
    if loss > 100: break
END

# ---- the logs, and the class of each
judged() { # judged FILE: its line of JSON
    "$MPSIM" log --json "logs/$1" 2>>errors </dev/null || echo '"class": "refused"'
}
generate() { # generate PART
    rm -f logs/*
    (cd logs && awk -v part="$1" -f "$top/tests/cli/logproperties.awk" ../above/*) || exit 99
    while read -r file _; do judged "$file"; done <logs/index | sed -n 's/.*"class": "\([^"]*\)".*/\1/p' >classes
}

# holds PROPERTY NAME: those of its logs that have another class than is wanted
holds() {
    paste logs/index classes | awk -F '\t' -v property="$1" '
        $2 != group { group = $2; base = $6 }
        $3 != property { next }
        { count++ }
        $4 == "=" ? $6 == base : $4 ~ /^!/ ? $6 !~ substr($4, 2) : $6 ~ $4 { next }
        { print $1 ": " $6 ", not " ($4 == "=" ? base : $4) ": " $5; bad = 1 }
        END { exit bad || !count }' >out
    ok $? "$2"
}

generate "$(turn 0 1 2 3 4 5 | awk '{ print NF == 1 ? $1 : "all" }')"
echo "# $(wc -l <logs/index) logs"
holds lost "a run that has learned something and lost it is never fine, after however few good steps"
holds prefix "settings, a printed model and source code above a log change no verdict"
holds same "nor do the form of a framework, the name of the loss, lines twice or fewer lines"
holds lines "from four lines on their number changes no verdict"
holds startup "a start-up that comes down again is not called diverging"
holds healthy "healthy runs with noise are fine"
holds scale "what forbids fine forbids it beside a loss scale"

# both commands judge alike
awk -F '\t' '$1 % 40 == 1 { print $1 }' logs/index | {
    differ=0
    while read -r file; do
        "$MPSIM" scaler --log "logs/$file" --json >one 2>>errors </dev/null
        judged "$file" | cmp -s - one || differ=1
    done
    exit $differ
}
ok $? "mpsim scaler --log says what mpsim log says"
[ ! -s errors ]; ok $? "no log is refused"
finish
