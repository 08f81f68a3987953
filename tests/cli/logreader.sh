#!/bin/sh
# logreader.sh -- what the reader of training logs owes to every log: settings, printed models and source code above it change
# nothing; nor do other names, other forms, lines printed twice, lines left out.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cd "$dir" || exit 99
data=$top/data/logs written=$top/tests/logs/written

# verdict LOG [OPTION]...: the verdict with its confidence, without the numbers of lines
verdict() {
    "$MPSIM" scaler --log "$@" 2>&1 | sed -n '/^Verdict/,/^  Evidence/p; /^mpsim:/p' | sed 's/lines* [0-9]*\(-[0-9]*\)*/line N/g' | tr -s ' \n' ' '
}

# ---- a prefix of settings, a printed model, source code changes nothing: one prefix a day
turns 6
for prefix in "$top"/tests/logs/prefixes/*.txt; do
    due || { ok 1 "$prefix" && continue; }
    : >differing
    count=0
    for log in $(ls "$data"/*.log "$written"/*.txt | awk -v part=$((part % 4)) 'NR % 4 == part || ENVIRON["MPSIM_TEST_PART"] == "all"'); do
        case $log in *tensorboard-mismatch*) continue ;; esac # JSON, which goes to the end of the file
        count=$((count + 1))
        cat "$prefix" "$log" >prefixed
        [ "$(verdict "$log")" = "$(verdict prefixed)" ] || echo "$log" >>differing
    done
    cat differing
    [ ! -s differing ] && [ $count -gt 40 ]; ok $? "$(basename "$prefix" .txt) above $count logs changes no verdict"
done
turns 1

# ---- the same numbers in another form, under other names, printed twice, thinned: the same verdict
# numbers KIND: step, loss and norm of 60 steps: a run that learns, one that blows up, one that becomes NaN, one that jumps and comes back
numbers() {
    awk -v kind="$1" 'BEGIN {
        x = 4711
        for (i = 1; i <= 60; i++) {
            x = x * 16807 % 2147483647
            loss = 2.5 + 8 * exp(-i / 12) + 0.05 * x / 2147483647
            norm = 0.8 + 0.1 * x / 2147483647
            if (kind == "rises" && i > 40) { loss += (i - 40) * 0.4; norm *= 1 + (i - 40) }
            if (kind == "spike" && i == 45) { loss *= 3; norm *= 40 }
            if (kind == "nan" && i > 50) print i, "nan", "nan"; else printf "%d %.4f %.3f\n", i, loss, norm
        } }'
}
# form NAME: lines of "step loss norm" as a framework prints them
form() {
    case $1 in
    hf) awk '{ printf "{'"'loss': %s, 'grad_norm': %s, 'learning_rate': 1e-05, 'epoch'"': %.2f}\n", $2, $3, $1 / 100 }' ;;
    megatron) awk '{ printf " [2024-05-01 10:%02d:07] iteration %8d/    1000 | consumed samples: %12d | elapsed time per iteration (ms): 512.%d | learning rate: 1.0E-04 | global batch size:    16 | lm loss: %s | grad norm: %s |\n", $1 % 60, $1, $1 * 16, $1 % 10, $2, $3 }' ;;
    torchtitan) awk '{ printf "[rank0]:2024-05-01 10:%02d:07,123 - root - INFO - step: %2d  loss: %8s  grad_norm: %7s  memory: 40.12GiB(50.1%%)  tps: 7,%03d  tflops: 310.2  mfu: 31.1%%\n", $1 % 60, $1, $2, $3, $1 }' ;;
    csv) awk 'BEGIN { print "step,train/loss,grad_norm" } { print $1 "," $2 "," $3 }' ;;
    wandb) awk 'BEGIN { print "\"Step\",\"run-1 - train/loss\",\"run-1 - train/loss__MIN\",\"run-1 - train/loss__MAX\",\"run-1 - train/grad_norm\"" } { printf "\"%d\",\"%s\",\"%s\",\"%s\",\"%s\"\n", $1, $2, $2, $2, $3 }' ;;
    jsonl) awk '{ gsub("nan", "NaN"); printf "{\"step\": %d, \"train_loss\": %s, \"grad_norm\": %s}\n", $1, $2, $3 }' ;;
    names) awk '{ printf "Step %d | Train Loss: %s | Gradient Norm: %s\n", $1, $2, $3 }' ;;
    plain) awk '{ printf "step %d loss: %s grad_norm: %s\n", $1, $2, $3 }' ;;
    esac
}
for kind in well rises nan spike; do
    numbers $kind >numbers
    form plain <numbers >plain
    want=$(verdict plain)
    printf '# %s\n' "$want"
    : >differing
    for name in hf megatron torchtitan csv wandb jsonl names; do
        form $name <numbers >other
        [ "$(verdict other)" = "$want" ] || { echo "$name: $(verdict other)" >>differing; }
    done
    sed p plain >other && [ "$(verdict other)" = "$want" ] || echo "tee: $(verdict other)" >>differing
    sed 'h; s/^/2024-05-01 10:00:00,000 INFO trainer: /; p; g' plain >other && [ "$(verdict other)" = "$want" ] || echo "two handlers: $(verdict other)" >>differing
    form hf <numbers | sed p >other && [ "$(verdict other)" = "$want" ] || echo "tee of hf: $(verdict other)" >>differing
    cp differing out
    [ ! -s differing ]; ok $? "$kind: the same numbers in seven forms and printed twice have one verdict"
    # every second line, and the one with the jump
    awk 'NR % 2 == 0 || NR == 45' plain >other
    [ "$("$MPSIM" log other | grep ^Verdict)" = "$("$MPSIM" log plain | grep ^Verdict)" ]
    ok $? "$kind: half of the lines have the same verdict"
done

numbers well >numbers

# ---- names by their words
names() { # names KIND NAME...: a log with such a number has it in its report as that kind
    kind=$1
    shift
    for name in "$@"; do
        awk -v name="$name" 'BEGIN { for (i = 1; i < 9; i++) printf "step:%d - %s:0.00%d - actor/grad_norm:0.3%d\n", i, name, i, i }' >named
        "$MPSIM" log named >out 2>err && grep -q "($kind)" out || echo "$name" >>differing
    done
}
: >differing
names 'trainer and sampler' debug/vllm_vs_local_logprob_diff_mean actor/rollout_train_logprob_gap policy/rollout_train_logprobs_abs_diff_mean \
    training/rollout_probs_diff_mean train/train_rollout_logprob_abs_diff rollout_corr/kl token_mult_prob_error gen_kl_error mismatch_kl \
    debug/vllm_local_reverse_kl sampling/sampling_logp_difference/mean
names KL kl objective/kl actor/ppo_kl approx_kl policy/approxkl_avg train/kl_loss loss/kl_div mean_kl
names clipped actor/pg_clipfrac clip_fraction policy/clipfrac_avg clip_ratio/region_mean train/clip_rate
names reward reward critic/rewards/mean critic/score/mean env/episode_reward
names entropy entropy actor/entropy policy/entropy_avg
cp differing out
[ ! -s differing ]; ok $? "names of reinforcement learning are known by their words, with any folder before them"
: >differing
for name in kl_coef actor/kl_coef clip_range grad_clip_coef rollout_probs_diff_std reward_std entropy_coef lr; do
    awk -v name="$name" 'BEGIN { for (i = 1; i < 9; i++) printf "step:%d - %s:0.00%d - actor/grad_norm:0.3%d\n", i, name, i, i }' >named
    "$MPSIM" log named >out 2>err
    ! grep -q 'trainer and sampler\|(KL)\|(clipped)\|(reward)\|(entropy)\|not read' out || echo "$name" >>differing
done
cp differing out
[ ! -s differing ]; ok $? "settings and spreads of them are not"
form plain <numbers | awk '{ print $0, "q_mean: " $2 * 3, "aux/foo: 0." NR, "lr: 0.00" NR, "tokens: " NR * 100 }' >more
run 0 log more && has '^2 numbers were not read, as their names are not known: q_mean, aux/foo$' && run 0 log --json more && has '"unread": \["q_mean", "aux/foo"\]'
ok $? "numbers that are not read are named"

# ---- ranks
cat >ranks <<'END'
[rank0] step 100 loss: 2.31 scale: 65536.0 grad_norm: 0.91
[rank1] step 100 loss: 2.29 scale: 65536.0 grad_norm: 0.91
[rank0] step 200 loss: 2.21 scale: 65536.0 grad_norm: 0.93
[rank1] step 200 loss: 2.25 scale: 32768.0 grad_norm: 0.95
[rank0] step 300 loss: 2.20 scale: 65536.0 grad_norm: 0.97
[rank1] step 300 loss: 2.31 scale: 32768.0 grad_norm: 1.21
END
run 0 log ranks && has '^The loss scale differs between ranks: at step 200 it is 65536 on rank 0, and 32768 on rank 1 (line 4); so in 2 lines' &&
    has '^The loss differs between ranks: at step 100 it is 2.31 on rank 0, and 2.29 on rank 1 (line 2); so in 3 lines'
ok $? "scales that differ between ranks are told"
run 0 log --json ranks && has '"scales_apart": {"lines": 2, "line": 4, "step": 200, "rank": 0, "other_rank": 1, "value": 65536.0, "other_value": 32768.0}'; ok $? "and in JSON"
sed 's/32768/65536/; s/ loss: [0-9.]*/ loss: 2.2/' ranks >agree && run 0 log agree && ! has 'between ranks'; ok $? "ranks that agree are not"

cat >mixed <<'END'
[2024-05-01 10:00:00,123] [INFO] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[0.9]
[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 65536, reducing to 32768
[deepspeed] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 32768, reducing to 16384
END
run 0 log mixed && has 'overflows   2,'; ok $? "one rank tells the steps, another one the overflows: both count"

# ---- other forms
printf 's:0 tel:10.968871\ns:0 trl:10.965596\ns:1 trl:10.814037\ns:2 trl:10.543272\ns:3 trl:10.260427\ns:4 trl:9.960427\ns:5 trl:9.760427\n' >main.log
run 0 log main.log && has 'the loss goes from 10.966 to 9.7604'; ok $? "llm.c"
numbers well | awk 'BEGIN { printf "[" } { printf "%s[17000000%02d.5, %d, %s]", (NR > 1 ? ", " : ""), NR, $1, $2 } END { printf "]" }' >run-1-tag-train_loss.json
run 0 log run-1-tag-train_loss.json && has 'the loss goes from 9.8' && numbers well | form plain >plain && run 0 log plain run-1-tag-train_loss.json &&
    has '^loss of B beside A, at 60 common steps' && has '^Verdict: the same'
ok $? "TensorBoard's JSON"
printf '[1,  2000] loss: 2.187\n[1,  4000] loss: 1.854\n[2,  2000] loss: 1.680\n[2,  4000] loss: 1.582\n' >tutorial
run 0 log tutorial tutorial && has 'at 4 common steps'; ok $? "[epoch, batch] of PyTorch's tutorials"
printf 'Epoch 1 Loss: 2.31 Scale: 65536.0 Skipped Steps: 0\nEpoch 2 Loss: 2.1 Scale: 32768.0 Skipped Steps: 1\nEpoch 3 Loss: 2.0 Scale: 8192.0 Skipped Steps: 3\n' >skipped
run 0 log skipped && has 'overflows   3, steps skipped 3'; ok $? "Skipped Steps counts all of them"
{ form plain <numbers | sed 20q; printf 'NaN detected in gradients of %s.weight\n' a b c; form plain <numbers | sed 1,20d; } >detected
run 0 log detected && has '^Verdict: Inf or NaN' && has 'in 1 line the norm of the gradients is\|gradients is NaN in 1 line'; ok $? "NaN detected in the gradients of several tensors is one event"
# ---- names, signs and forms
# five FORMAT: five lines of awk's printf with the number of the line
five() { awk -v form="$1\n" 'BEGIN { for (i = 1; i < 6; i++) printf form, i, i }' >five; }
five "{'loss': 0.5%d, 'reward': -0.%d}" && run 0 scaler --log five && has 'reward (reward) goes from -0.1 to -0.5'; ok $? "a negative value in a dictionary keeps its sign"
five 'step %d closs: %d.5' && run 0 scaler --log five && has 'loss goes from 1.5 to 5.5'; ok $? "closs is a loss"
five 'step %d global_grad_norm: %d.5 loss: 2' && run 0 scaler --log five && has 'norm of the gradients goes from 1.5'; ok $? "global_grad_norm is a norm"
five 'step %d value_loss: %d.5 policy_loss: 0.1' && run 0 scaler --log five && has 'the loss is 0.1 in 5 lines' && ! has validation; ok $? "a critic's loss is not the loss on validation data"
five '%d 3.2 s run, 1%d.5 loss, 0.001 LR' && run 0 scaler --log five && has 'loss goes from 11.5 to 15.5'; ok $? "a value before its name"
five 'validation loss at iteration %d00 | lm loss value: %d.5E+00 | lm loss PPL: 3.0E+02 |' && run 0 scaler --log five && has 'loss goes from 1.5 to 5.5'; ok $? "Megatron's losses on validation data"
five 'step %d detected nan/inf gradient (norm=2.%d); skipping optimizer step.' && run 0 scaler --log five && has 'by a threshold' && ! has 'nan '; ok $? "a step that is skipped by a threshold is no overflow"
five '| epoch   1 | %5d/ 9999 batches | ms/batch 12.11 | loss 0.0000 | gnorm 0.000%d' && run 0 scaler --log five && has 'loss is 0 in'; ok $? "a time for a batch is no step"
finish
