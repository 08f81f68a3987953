#!/bin/sh
# endless.sh -- what has no end, or never begins, where a file is expected: an error, and no hang.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
command -v timeout >/dev/null || { echo "1..0 # SKIP no timeout"; exit 0; }
hangs=300 # seconds after which it is taken for that; a busy machine must not trip them
trace=$MPSIM_SRCDIR/data/digits-cnn/step_000001
one=$(find "$trace" -name '*.safetensors' | head -n 1)
mkfifo "$dir/fifo"
mkdir "$dir/silent" "$dir/policies" "$dir/devices" "$dir/dangling"
cp "$MPSIM_SRCDIR/data/policies/fp32.yaml" "$dir/policies/a.yaml"
mkfifo "$dir/policies/z.yaml" "$dir/silent/rank_00001"
ln -s /dev/zero "$dir/devices/rank_00001"
ln -s nowhere "$dir/dangling/rank_00001"
for d in silent devices dangling; do cp "$one" "$dir/$d/rank_00000"; done

# All at once, since a pipe is given two seconds for its writer; judged afterwards.
started=0
start() { # start INPUT WHAT COMMAND...: INPUT for standard input
    turns 5 together
    due || { ok 1 "$2" && return; }
    started=$((started + 1))
    input=$1
    what=$2
    shift 2
    echo "$what" >"$dir/$started.what"
    {
        timeout $hangs "$MPSIM" "$@" <"$input" >"$dir/$started.out" 2>"$dir/$started.err"
        echo $? >"$dir/$started.code"
    } &
}
for f in /dev/zero "$dir/fifo"; do
    for c in 'train --steps 1 -P' 'train --resume' 'train --run' 'train -P fp32 --steps 1 --check-digests' 'scaler --pattern 1x10 --state-in' \
        'scaler --log' 'scaler' 'plot histogram' 'plot training' merge 'merge --list' stat info advise report 'cast -f bf16 -o x' dot 'attention --q a --k a --v a' 'judge cast' 'mismatch -a fma -b fma --tokens' 'verify vectors --vectors'; do
        # shellcheck disable=SC2086 # words
        start /dev/null "$c $(basename "$f")" $c "$f"
    done
    start /dev/null "replay -P $(basename "$f")" replay -P "$f" "$trace"
    start /dev/null "scaler --pattern @$(basename "$f")" scaler --pattern "@$f"
done
start /dev/null 'a FIFO in a folder of policies' train --steps 1 -P "$dir/policies"
for c in stat info advise 'report --no-figures' 'replay -P fp32' 'scaler -k act'; do
    for d in silent devices dangling; do
        # shellcheck disable=SC2086 # words
        start /dev/null "$c: $d in a trace" $c "$dir/$d"
    done
done
wait
turns 1
i=0
while [ $i -lt $started ]; do
    i=$((i + 1))
    code=$(cat "$dir/$i.code")
    cp "$dir/$i.err" "$dir/err"
    case $code in 2 | 3 | 4) grep -q '^mpsim: ' "$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ] ;; *) false ;; esac
    ok $? "$(cat "$dir/$i.what"): exit code $code"
done

# ---- what --keep-going says of them ----
for d in silent devices dangling; do
    timeout $hangs "$MPSIM" stat --keep-going -q "$dir/$d" >"$dir/out" 2>"$dir/err"
    [ $? -eq 5 ] && has 'rank_00001' err && [ "$(wc -l <"$dir/err")" -eq 1 ] && [ -s "$dir/out" ]
    ok $? "stat --keep-going: $d is named, the rest is reported"
done

# ---- standard input without an end ----
turns 8
for c in 'train --steps 1 -P -' 'train --run -' 'train -P fp32 --steps 1 --check-digests -' 'scaler --pattern @-' 'scaler --pattern 1 --state-in -' 'plot histogram -' 'plot training -' 'stat -' 'replay -P fp32 -' 'cast -f bf16 -o x -'; do
    # shellcheck disable=SC2086 # words
    due && yes '{"a": [' 2>/dev/null | timeout $hangs "$MPSIM" $c >"$dir/out" 2>"$dir/err"
    code=$?
    case $code in 2 | 3 | 4) has '^mpsim: ' err ;; *) false ;; esac
    ok $? "yes | $c: exit code $code"
done

# ---- a pipe that is written to is read ----
turns 1
printf 'step %d scale 65536\n' 1 2 3 >"$dir/log"
late() { # late FILE ARGUMENT...: of a FIFO to which it is written late; again, where a busy machine made that more than the two seconds
    file=$1
    shift
    for i in 1 2 3 4; do
        mkfifo "$dir/late-$i"
        timeout 10 sh -c 'sleep 0.2; cat "$1" >"$2"' sh "$file" "$dir/late-$i" &
        timeout $hangs "$MPSIM" "$@" "$dir/late-$i" >"$dir/out" 2>"$dir/err"
        code=$?
        [ $code -eq 4 ] && has 'nobody writes to' err || break
    done
    return $code
}
late "$MPSIM_SRCDIR/data/policies/fp32.yaml" replay "$trace" -P; ok $? "a policy from a FIFO whose writer comes late"
late "$dir/log" scaler --log; ok $? "a log from a FIFO whose writer comes late"
turns 8
due && { printf 'step 1 scale 65536\n'; sleep 2.5; printf 'step 2 scale 32768\n'; } | timeout $hangs "$MPSIM" scaler --log /dev/stdin >"$dir/out" 2>"$dir/err"
[ $? -eq 0 ] && has "2^15"; ok $? "a log whose writer pauses"
due && yes | tr -d '\n' 2>/dev/null | timeout $hangs "$MPSIM" scaler --log - >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] && has 'without the end of a line' err; ok $? "a log that is one line without an end"

finish
