#!/bin/sh
# progress.sh -- the line of progress: on a terminal (played by script of util-linux), erased at the end, never elsewhere; and
# stat that is interrupted: what it has, marked, exit code 130.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
OMP_NUM_THREADS=1 # 32 GiB are not read in the seconds below
export OMP_NUM_THREADS
large=$dir/large
dd if=/dev/zero of="$large" bs=1 count=0 seek=34359738368 2>/dev/null || exit 99 # takes no room
small=$top/data/digits-cnn/step_000120/rank_00000.safetensors
escape=$(printf '\033')

# ---- nothing where there is no terminal; the report is the same ----
run 0 dot -f fp16 -K 2048 -M exact --csv && cp "$dir/out" "$dir/quiet" && run 0 dot -f fp16 -K 2048 -M exact --csv --progress=never &&
    cmp -s "$dir/out" "$dir/quiet"; ok $? "none without a terminal"
run 2 stat --progress=perhaps "$small" && has 'auto, always or never' err; ok $? "--progress=perhaps"
"$MPSIM" stat --help=all | grep -q -- '--progress WHEN'; ok $? "--help=all has it"

# ---- --progress=always: a line a second ----
if timeout --foreground 1 true 2>/dev/null; then
    turns 8
    signalled INT 1.6 "has ' left' err" stat --json --dtype fp32 "$large" --progress=always
    [ $? -eq 130 ] && has 'of 32.0 GiB, [0-9]* %, .* a second, .* left' err && has '"partial": true' && has '^{"schema"'; ok $? "stat: bytes, rate, what is left; interrupted: partial"
    signalled INT 1.6 "has ' left' err" stat --shard 2/2 --dtype fp32 -o "$dir/part" "$large" --progress=always
    [ $? -eq 130 ] && has ' of 16.0 GiB, [0-9]* %, .* a second, .* left' err; ok $? "stat --shard: the bytes of the shard"
    signalled INT 1.6 "has ' left' err" stat -f te-current --dtype fp32 --shape 65536,131072 "$large" --progress=always
    [ $? -eq 130 ] && has ' of 64.0 GiB, [0-9]* %, .* a second, .* left' err; ok $? "stat: what is read twice counts twice"
    signalled INT 1.6 "has ' left' err" report --no-figures --no-digests -f fp16 -o "$dir/page" --dtype fp32 --shape 65536,131072 "$large" --progress=always
    [ $? -eq 130 ] && has ' of 96.0 GiB, [0-9]* %, .* a second, .* left' err; ok $? "report: statistics are a reading, advice with scales of tensors two"
    signalled INT 1.6 "has ' left' err" cast -f nvfp4 -o "$dir/cast" --dtype fp32 --shape 65536,131072 "$large" --progress=always
    [ $? -eq 130 ] && has ' of 64.0 GiB, [0-9]* %, .* a second, .* left' err; ok $? "cast: the amax of the tensor takes a reading of its own"
    signalled INT 1.6 : cast -f fp16 -q --dtype fp32 -o "$dir/cast" "$large" --progress=always
    [ $? -eq 130 ] && ! has . err && [ ! -e "$dir/cast" ]; ok $? "-q is quiet, and cast ends as before"
    signalled INT 1.6 "has ' steps, ' err" train -P fp32 --width 32 --steps 100000000 --progress=always
    [ $? -eq 130 ] && has '^fp32, loss [0-9.e-]*: [0-9,]* of 100,000,000 steps, ' err; ok $? "train: steps"

    # ---- what an interrupted report says, in each form ----
    turns 8
    interrupted() { # interrupted WORDS...
        signalled INT 0.7 "has 'is partial' err" stat "$@" --dtype fp32 "$large"
        [ $? -eq 130 ] && has '^mpsim: note: stat: interrupted: the report is partial$' err
    }
    interrupted && [ "$(grep -c '^PARTIAL: interrupted; 1 of 1 file begun, 1 tensor, 1 of them in part$' "$dir/out")" -eq 2 ] &&
        head -n 1 "$dir/out" | grep -q ^PARTIAL && tail -n 1 "$dir/out" | grep -q ^PARTIAL; ok $? "text: the first line and the last"
    interrupted --csv && tail -n 1 "$dir/out" | grep -q '^partial,,' &&
        [ "$(tail -n 1 "$dir/out" | tr -cd , | wc -c)" -eq "$(head -n 1 "$dir/out" | tr -cd , | wc -c)" ]; ok $? "CSV: a last row"
    interrupted --ndjson && tail -n 1 "$dir/out" | grep -q '"level": "total".*"partial": true'; ok $? "NDJSON: a key of the total"
    interrupted --json -o "$dir/report" && grep -q '^"partial": true}$' "$dir/report"; ok $? "JSON, into a file"
    signalled INT 0.7 : stat --shard 1/2 --dtype fp32 -o "$dir/part" "$large"
    [ $? -eq 130 ] && [ ! -e "$dir/part" ]; ok $? "a shard leaves no part"
else
    echo "# no timeout of coreutils: nothing is interrupted"
fi
if env --default-signal=INT true 2>/dev/null; then
    turns 1
    env --default-signal=INT "$MPSIM" stat --json --dtype fp32 -o "$dir/twice" "$large" 2>"$dir/err" &
    stat=$!
    sleep 0.5
    kill -INT $stat && kill -INT $stat # one is the report's, or both come at once
    wait $stat
    [ $? -eq 130 ]; ok $? "a second signal ends it"
fi

# ---- on a terminal ----
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    turns 3 together
    for seconds in 2 8 32; do # later, where the machine is busy
        due && script -qec "timeout --foreground -s INT $seconds '$MPSIM' stat --json -o '$dir/report' --dtype fp32 '$large'" "$dir/typescript" >/dev/null 2>&1 </dev/null
        due && tr '\r' '\n' <"$dir/typescript" >"$dir/out" && ! has ' left' || break
    done
    grep -q "of 32.0 GiB, .* left$escape\[K" "$dir/out"; ok $? "a line on a terminal"
    grep -A 2 "left$escape\[K" "$dir/out" | tail -n 2 | grep -q "^$escape\[K"; ok $? "which is erased"
    turns 1
    for _ in 1 2 3 4; do # a busy machine may make more of it than a second
        script -qec "'$MPSIM' stat '$small'" "$dir/typescript" >/dev/null 2>&1 </dev/null
        grep -q "$escape" "$dir/typescript" || break
    done
    ! grep -q "$escape" "$dir/typescript"; ok $? "none in the first second"
fi
finish
