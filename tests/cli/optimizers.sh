#!/bin/sh
# optimizers.sh -- mpsim replay with moments in few bits and with Muon: what the reports say of them, JSON, threads,
# bad keys; trainings with them, which their replays repeat to the bit.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
charlm=$MPSIM_SRCDIR/data/charlm
mlp=$MPSIM_SRCDIR/data/amp-mlp/adam

# ---- moments in few bits
policy() { # policy STATES: every parameter's moments
    printf 'precision: no\noptimizer: {name: trace, states: %s}\n' "$1" >"$dir/p.yaml"
}
turns 4
for s in torchao-8bit torchao-4bit torchao-fp8 bitsandbytes-8bit coat coat-e5m2 coat-plain fp8-lm; do
    policy $s
    run 0 replay -P "$dir/p.yaml" "$charlm" && has "^moments    $s, " && has '^           m: SQNR [1-7][0-9]*\.[0-9] dB' &&
        has '^           v: SQNR' && has '^           steps m / ' && has '^lowest     '
    ok $? "charlm: $s"
done
policy torchao-8bit
run 0 replay -P "$dir/p.yaml" "$mlp" && has 'no tensor of this trace is large enough' &&
    has '^record     0 of 75,020 carried'
ok $? "small tensors stay whole, and the run is the recorded one"
policy coat-plain
run 0 replay -P "$dir/p.yaml" "$mlp" && has '0.23 % of 14,158 that are not zero become zero' &&
    has 'before it was stored 1700.5, 33 have a v that became zero'
ok $? "a second moment that becomes zero, and the largest step"
policy coat
run 0 replay -P "$dir/p.yaml" "$mlp" && has 'v: SQNR .* 0 of 19,360 that are not zero become zero' && has ', 0 have a v that became zero'
ok $? "none with its range expanded"
turns 4 together
run 0 replay --json -P "$dir/p.yaml" "$mlp" && has '"moments"' && has '"states": "coat"' && has '"largest_step_stored"' && has '"become_zero"'
ok $? "JSON"
cp "$dir/out" "$dir/json"
OMP_NUM_THREADS=1 run 0 replay --json -P "$dir/p.yaml" "$mlp" && cmp -s "$dir/out" "$dir/json"; ok $? "any threads"
turns 4 together
due && "$MPSIM" train -P fp32 --optimizer adam --width 32 --steps 3 --loss-factor 1e-18 --trace "$dir/tiny" -o /dev/null --quiet
run 0 replay -P fp8-lm "$dir/tiny" && has '^           v: SQNR -, 0 of 8,408 that are not zero become zero, 10,398 not finite$' &&
    has 'the largest -' && has '^lowest     fc1.bias m .*, v -, steps -, 96 not finite$' && ! has 'steps no error'
ok $? "bug_20261122_not_finite_is_no_error"
run 0 replay -P fp8-lm --json "$dir/tiny" && has '"not_finite": [1-9]' && has '"largest_step_stored": "NaN"'
ok $? "bug_20261122_not_finite_is_no_error: JSON"
turns 4
run 0 replay -P fp32 "$mlp" && ! has '^moments' && ! has '^muon'; ok $? "nothing is said without them"
printf 'precision: bf16\nparams: bf16\nautocast: all\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9, states: coat}\n' >"$dir/p.yaml"
run 0 replay -P "$dir/p.yaml" "$MPSIM_SRCDIR/data/digits-cnn" && has '^           m: SQNR' && ! has '^           v: '
ok $? "a momentum buffer counts as the first moment"

# ---- Muon
turns 4 together
run 0 replay -P muon-bf16 "$charlm" && has '^muon       lr 0.02, momentum 0.95, nesterov' &&
    has 'updates against those of binary64: SQNR 2[0-9]\.[0-9] dB of 122,880'
ok $? "charlm: muon"
cp "$dir/out" "$dir/text"
OMP_NUM_THREADS=1 run 0 replay -P muon-bf16 "$charlm" && cmp -s "$dir/out" "$dir/text"; ok $? "muon: any threads"
turns 4
muon() { # muon KEYS: for linear layers
    printf 'precision: no\noptimizer: {name: trace, muon: {%s}}\n' "$1" >"$dir/p.yaml"
}
muon 'ns_dtype: fp32, model: sequential'
run 0 replay -P "$dir/p.yaml" "$charlm" && has 'updates against those of binary64: SQNR 1[0-9][0-9]\.'; ok $? "muon in fp32"
muon 'form: keller, model: "fma:bf16"'
run 0 replay -P "$dir/p.yaml" "$MPSIM_SRCDIR/data/digits-cnn" && has 'keller form' && has '^lowest     '
ok $? "muon in the form of its author, sums in bf16, kernels of convolutions"
muon 'momentum: 0.9'
run 0 replay --json -P "$dir/p.yaml" "$charlm" && has '"muon_settings"' && has '"muon": {"count"'; ok $? "muon: JSON"
muon 'momentum: 0, variant: torch, nesterov: false'
run 0 replay -P "$dir/p.yaml" "$charlm" && cp "$dir/out" "$dir/text"
muon 'variant: torch, nesterov: false, momentum: 0'
run 0 replay -P "$dir/p.yaml" "$charlm" && cmp -s "$dir/out" "$dir/text"; ok $? "bug_20261122_muon_keys_in_any_order"

# ---- Lion
turns 4 together
due && "$MPSIM" train -P bf16-pure --optimizer lion --variant ieee --weight-decay 0.1 --width 32 --steps 6 --trace "$dir/lion" --trace-every 1 \
    -o /dev/null --quiet
printf 'precision: bf16\nparams: bf16\nautocast: all\noptimizer: {name: trace, variant: ieee}\n' >"$dir/p.yaml"
run 0 replay -P "$dir/p.yaml" "$dir/lion" && has '^optimizer  lion, lr 0.0001, betas 0.9 0.99, weight decay 0.1$' && has '^record     0 of '
ok $? "lion: a training is replayed"
run 0 replay -P lion "$charlm" && has '^optimizer  lion, lr 0.0001' && has '^variant    lion-pytorch,' && ! has 'opt.v'
ok $? "lion: the policy, without the recorded moments"
run 3 train -P fp32 --optimizer lion --eps 1e-8 --steps 1 && has 'eps: lion has none' err; ok $? "lion has no eps"

# ---- Adafactor
turns 4
for net in mlp cnn; do
    due && "$MPSIM" train -P fp32 --net $net --optimizer adafactor --weight-decay 0.1 --width 8 --steps 4 --trace "$dir/adafactor-$net" \
        --trace-every 1 -o /dev/null --quiet
    run 0 replay -P fp32 "$dir/adafactor-$net" && has '^optimizer  adafactor, lr 0.01, beta2 decay -0.8, eps 1.19209e-07 0.001, d 1, weight' &&
        has '^record     0 of '
    ok $? "adafactor: a training of $net is replayed"
done
printf 'precision: no\noptimizer: {name: adafactor, lr: 0.01, d: 2}\n' >"$dir/p.yaml"
run 0 replay -P "$dir/p.yaml" "$charlm" && has '^optimizer  adafactor, lr 0.01, .*, d 2' && has 'optimizer state 8.7 KiB'
ok $? "adafactor: moments of rows and columns, of another optimizer's record"

for c in 'coat-fp8-states amsgrad-adamw coat of adamw has no amsgrad' 'te-nvfp4 amsgrad-adam apex of adam has no amsgrad' \
    'bf16-kahan sgd-nesterov optimi of sgd has no nesterov' 'bf16-kahan sgd-dampening optimi of sgd has no such dampening' \
    'te-nvfp4 groups-sgd apex of sgd has no maximize'; do
    at=${c#* }
    run 3 replay -P "${c%% *}" "$MPSIM_SRCDIR/data/replay-cases/${at%% *}" && has "cannot be stepped: variant ${at#* }\$" err
    ok $? "variant ${at#* }"
done

# ---- train: what is recorded of a training is what a replay of it has, to the bit
trained() { # trained POLICY NAME [OPTION...]: its replay differs in nothing
    policy=$1 name=$2
    shift 2
    rm -rf "$dir/run"
    run 0 train -P "$policy" "$@" --steps 4 --trace "$dir/run" --trace-every 1 && run 0 replay -P "$policy" "$dir/run" &&
        has '^record     0 of [1-9]'
    ok $? "train: $name is replayed"
}
for p in torchao-adamw8bit torchao-adamw4bit torchao-adamwfp8 coat-fp8-states fp8-lm muon-bf16; do
    trained $p "$p, mlp" --width 64 --optimizer adamw
    trained $p "$p, gpt" --net gpt --width 32 --context 32
done
printf 'precision: no\noptimizer: {name: trace, muon: {form: keller, variant: torch, ns_dtype: fp32, model: sequential}}\n' >"$dir/p.yaml"
trained "$dir/p.yaml" "muon in the form of its author, kernels" --net cnn --width 16
printf 'precision: bf16\noptimizer: {name: adamw, variant: coat, states: coat}\nschedule:\n  - {step: 3, precision: no}\n' >"$dir/p.yaml"
trained "$dir/p.yaml" "another plan from step 3 on" --width 64

# a checkpoint goes on to the same bits, a run as text is the same run
turns 4 together
for p in coat-fp8-states muon-bf16; do
    due && "$MPSIM" train -P $p --width 64 --optimizer adamw --steps 4 --digests "$dir/all" -o /dev/null --quiet
    due && "$MPSIM" train -P $p --width 64 --optimizer adamw --steps 2 --checkpoint "$dir/half" -o /dev/null --quiet
    run 0 train --resume "$dir/half" --steps 4 --digests "$dir/rest" -o /dev/null --quiet &&
        [ "$(grep '^4 ' "$dir/all")" = "$(grep '^4 ' "$dir/rest")" ]
    ok $? "train: $p goes on"
    due && "$MPSIM" train -P $p --width 64 --optimizer adamw --steps 4 --write-run "$dir/text.run" &&
        run 0 train --run "$dir/text.run" --digests "$dir/rest" -o /dev/null --quiet && cmp -s "$dir/all" "$dir/rest"
    ok $? "train: $p as text"
done
due && sed 's/model=[^ ]*/model=nothing/' "$dir/text.run" >"$dir/bad.run"
run 3 train --run "$dir/bad.run" && has "not a model: 'nothing'" err; ok $? "train: Muon's model in a run as text"
due && sed 's/states=coat/states=coatt/; s/muon=1/muon=x/' "$dir/text.run" >"$dir/bad.run"
run 3 train --run "$dir/bad.run" && has "not a value here: 'x'" err; ok $? "train: a layer's muon in a run as text"
finish
