#!/bin/sh
# interrupt.sh -- INT, TERM and HUP end every command that writes, within two seconds, and leave nothing temporary.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
if ! timeout --foreground 1 true 2>/dev/null; then
    echo "1..0 # SKIP no timeout of coreutils"
    exit 0
fi
digits=$top/data/digits-cnn
TMPDIR=$dir/tmp
OMP_NUM_THREADS=2
export TMPDIR OMP_NUM_THREADS
mkdir "$dir/tmp" "$dir/work" && cd "$dir/work" || exit 99
"$MPSIM" stat --json --histogram -o ../report "$digits/step_000120" || exit 99
dd if=/dev/zero of=../large bs=1 count=0 seek=2147483648 2>/dev/null || exit 99 # takes no room

# A gnuplot that draws and does not end, with a program of its own.
cat >../gnuplot <<'SCRIPT'
#!/bin/sh
figure=$(echo "$3" | sed "s/cd '\([^']*\)'; figure = '[.]\/\([^']*\)'.*/\1\/\2/")
(while :; do echo x >"$figure.svg"; done) &
while :; do sleep 1; done
SCRIPT
chmod +x ../gnuplot

# What a command may leave: PATTERN, of find. Nothing in the folder of temporary files, and no name of one.
left() {
    find . ! -name . | grep -v -E "^\./($1)$"
    find ../tmp ! -path ../tmp
}

# sent SIGNAL SECONDS ARGUMENT...: the program, sent the signal after so long. Then it has two seconds of processor time for each of
# its two threads, however busy the machine is: longer, and it ends by XCPU, or by KILL if it sleeps. Its exit code.
sent() {
    by=$1 seconds=$2
    shift 2
    (ulimit -t 5 && exec timeout --foreground --preserve-status -s "$by" -k 60 "$seconds" "$MPSIM" "$@")
}

# ended SIGNAL CODE: it ended by that signal, or of itself
ended() {
    case $1 in INT) by=130 ;; TERM) by=143 ;; *) by=129 ;; esac
    [ "$2" -eq 0 ] || [ "$2" -eq $by ]
}

# Rows: the seconds until the signals, what may be left, the command; @ before it: its standard input comes slowly.
moment=1
while read -r seconds may words; do
    bad=
    for signal in $(turn INT TERM HUP); do
        moment=$((moment * 69069 % 65537))
        after=$(awk -v s="$seconds" -v m=$moment 'BEGIN { print s * (0.5 + m / 65537) }')
        rm -rf ../work/* ../work/.[!.]*
        input=/dev/null
        if [ "${words#@}" != "$words" ]; then
            rm -f ../pipe && mkfifo ../pipe && input=../pipe
            (cat "$digits/step_000120/rank_00000.safetensors" && exec sleep 2) >../pipe 2>/dev/null &
            feeder=$!
        fi
        # shellcheck disable=SC2086 # words
        sent $signal "$after" ${words#@} <$input >../out 2>../err
        code=$?
        ended $signal $code || bad="$bad $signal-ended-with-$code"
        [ $input = /dev/null ] || { kill $feeder && wait $feeder; } 2>/dev/null
        [ -z "$(left "$may" | tee -a ../err)" ] || bad="$bad $signal-left"
    done
    [ -z "$bad" ] || echo "$bad" >>../err
    [ -z "$bad" ]; ok $? "${words#@}"
done <<TABLE
0.09 out @stat -o out -
0.09 out @cast -f bf16 -q -o out -
0.09 out @info -o out -
0.09 out @scaler -o out -
0.09 out @replay -P pytorch-amp-fp16 --json -o out -
0.09 out cast -f e4m3 --dtype fp32 -o out ../large
0.09 out cast -f e4m3 --dtype fp16 -q -o out.npy ../large
0.09 out stat --json --dtype fp32 -o out ../large
0.09 out stat --shard 1/2 --dtype fp32 -o out ../large
0.08 out replay -P pytorch-amp-fp16 --json --tensors -o out $digits
0.08 out scaler --compare all --repeat 100 --json -o out $digits
0.09 out dot -f fp16 -K 262144 --rows 64 -o out
0.09 out verify -o out
TABLE

# ---- a limit of files' sizes is an error like a full disk ----
rm -rf ../work/* ../work/.[!.]*
(ulimit -f 64 && exec "$MPSIM" cast -f e4m3 --dtype fp16 -q -o out ../large) >../out 2>../err
[ $? -eq 4 ] && grep -q '^mpsim: out: cannot write: ' ../err && [ -z "$(left none | tee -a ../err)" ]; ok $? "ulimit -f"

# ---- figures: gnuplot ends, too, whatever it had begun ----
MPSIM_GNUPLOT=$dir/gnuplot
export MPSIM_GNUPLOT
signals=$(turn INT TERM HUP)
case $(sanitizers) in
*thread*) # its handlers wait until waitpid has returned (tests/trace/t-temporary.c)
    ok 0 "plot # SKIP ThreadSanitizer"
    signals=
    ;;
esac
for signal in $signals; do
    rm -rf ../work/* ../work/.[!.]*
    sent $signal 0.3 plot histogram -o figure ../report >../out 2>../err
    code=$?
    ended $signal $code && [ $code -ne 0 ] && [ -z "$(left 'figure\.(dat|gp)' | tee -a ../err)" ]; ok $? "plot: $signal"
    sleep 0.1
    [ -z "$(left 'figure\.(dat|gp)' | tee -a ../err)" ]; ok $? "plot: nothing comes back after $signal"
done

# ---- a training: what is whole stays, under its name; nothing else ----
for signal in $(turn INT TERM HUP); do
    rm -rf ../work/* ../work/.[!.]*
    sent $signal 0.3 train -P fp32 --width 32 --steps 1000000 --trace trace --trace-every 1 --checkpoint point \
        --checkpoint-every 1 -q >../out 2>../err
    code=$?
    ended $signal $code && [ $code -ne 0 ] && [ -z "$(find . -name '*.tmp' | tee -a ../err)" ] &&
        { [ ! -e point ] || { "$MPSIM" info trace && "$MPSIM" info point; } >/dev/null; }
    ok $? "train: $signal"
done

finish
