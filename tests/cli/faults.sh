#!/bin/sh
# faults.sh -- whichever call fails, of the system or for memory: exit code 4 with one line that says what failed, or what would
# have been printed and written anyway. No crash, no file that is new or changed unless the exit code is 0, nothing temporary left.
# In make check some faults, which take turns by day; all of them with MPSIM_TEST_EXPENSIVE=1 (make check-long).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
build=${MPSIM%/*}
fail=$(ls "$build"/tests/support/failcall.so 2>/dev/null)
program=$MPSIM
OMP_NUM_THREADS=1
TMPDIR=$dir/run/tmp
export OMP_NUM_THREADS TMPDIR
mkdir -p "$dir/in" "$dir/run/tmp" && cd "$dir/in" || exit 99
if ! [ "$fail" ] || ! LD_PRELOAD=$fail MPSIM_FAIL_COUNT=count "$program" formats fp16 >out 2>&1 || ! [ -s count ]; then
    echo "1..0 # SKIP no library that lets calls fail: $(head -n 1 out 2>&1)"
    exit 0
fi

# ---- inputs ----
trace=$top/data/amp-mlp/adam/step_000001/rank_00000.safetensors
{
    printf 'step %d scale 65536 skipped 0\n' 1 2 3 4 5 >log && mkdir policies && cp "$top/data/policies/fp32.yaml" policies &&
    "$MPSIM" scaler --pattern 1,0 -s torch --state-out state >/dev/null &&
    "$MPSIM" train -P fp32 --width 8 --depth 1 --batch 8 --steps 2 --write-run plan &&
    "$MPSIM" train --run plan -q --digests digests --checkpoint point >/dev/null &&
    "$MPSIM" cast -f fp16 -q -o column.npy --match weight:fc1.weight "$trace" &&
    "$MPSIM" stat --shard 1/2 -o part.1 "$trace" && "$MPSIM" stat --shard 2/2 -o part.2 "$trace" &&
    "$MPSIM" stat --json --histogram -s 2^0..2^2 -o report "$trace"
    gzip -c "$trace" >trace.gz
} || exit 99
cat >../gnuplot <<'SCRIPT'
#!/bin/sh
figure=$(echo "$3" | sed "s/cd '\([^']*\)'; figure = '[.]\/\([^']*\)'.*/\1\/\2/")
echo %%EOF >"$figure.pdf" && printf 'IEND\256B`\202' >"$figure.png" && echo '</svg>' >"$figure.svg"
SCRIPT
chmod +x ../gnuplot
MPSIM_GNUPLOT=$dir/gnuplot
export MPSIM_GNUPLOT

# ---- how calls fail ----
# A kind of call, an error, what the line then says; -: nothing, the call is to be made again. See failcall.c.
cat >../kinds <<'KINDS'
open EMFILE Too many open files
open EACCES Permission denied
read EIO Input/output error
read short -
read EINTR -
write ENOSPC No space left on device
write EIO Input/output error
write short -
write EINTR -
close EIO Input/output error
finish EIO Input/output error
seek EIO Input/output error
stat EIO Input/output error
sync EIO Input/output error
truncate ENOSPC No space left on device
chmod EACCES Permission denied
rename EACCES Permission denied
unlink EACCES Permission denied
folder ENOSPC No space left on device
list EIO Input/output error
map ENOMEM out of memory
pipe EMFILE Too many open files
spawn EAGAIN Resource temporarily unavailable
thread EAGAIN Resource temporarily unavailable
wait EINTR -
malloc ENOMEM out of memory
KINDS

# Folders: run is that of the command, with work, where it runs, tmp and its streams; old0 and old1 are what it was before, without
# and with older files; whole what it becomes.
# fresh OLD
fresh() {
    rm -rf ../run && cp -R "../old$1" ../run
    dirty=
}

# told ARGUMENT...: the command, loaded with the library
told() {
    (cd ../run/work && LD_PRELOAD=$fail exec "$program" "$@" >../stdout 2>../stderr </dev/null)
}

# judge CODE OLD KIND SAYS: what is wrong with a run
judge() {
    case $1 in
    4)
        { read -r line && ! read -r _; } <../run/stderr || echo "not one line"
        case $line in
        "mpsim: standard output: Interrupted system call" | "mpsim: train: a temporary file: Interrupted system call") ;; # stdio
        *"could not be written" | "mpsim: -"*) echo "not a line" ;;
        "mpsim: "*"$4"* | "mpsim: "*": not found, "*"but "*) [ "$3" != malloc ] || [ "${line%cannot write*}" = "$line" ] || echo "it is not the file" ;;
        *) echo "another reason" ;;
        esac
        diff -r -x stderr -x stdout "../old$2" ../run >../differ || may_stay "$2" "$3" "$line" || cat ../differ
        ;;
    0)
        : >../differ
        case $3 in unlink) left='*[.-]??????' ;; *) left=- ;; esac
        diff -r -I '^speed ' -x "$left" ../whole ../run
        case $3 in sync | finish) echo "nobody has looked" ;; esac
        ;;
    *) echo "exit code $1" ;;
    esac
}

# may_stay OLD KIND LINE: what could not be removed; where a command goes on writing, what it has finished; what the line says is written
may_stay() {
    case $3 in *" are written: install gnuplot"*) (cd ../run && find work tmp ! -type d -o -empty) | finished "$1" && return 0 ;; esac
    case $goes_on$2 in
    *unlink) return 0 ;;
    +* | !rename) (cd ../run && find work tmp ! -type d -o -empty) | finished "$1" ;;
    *) return 1 ;;
    esac
}

# finished OLD: all files of a list are as they were or as they become; folders are none
finished() {
    while read -r file; do
        [ "$file" = tmp ] || [ "$file" = work ] || cmp -s "../run/$file" "../old$1/$file" || cmp -s "../run/$file" "../whole/$file" || return 1
    done
}

# fails KIND HOW N SAYS ARGUMENT...: one call fails
fails() {
    kind=$1 how=$2 at=$3 says=$4 old=$((at % 2))
    shift 4
    if [ "$dirty" ] || [ $old != "$was" ]; then fresh $old; fi
    was=$old
    MPSIM_FAIL=$kind MPSIM_FAIL_WITH=$how MPSIM_FAIL_AT=$at told "$@"
    code=$?
    wrong=$(judge $code $old "$kind" "$says" 2>&1)
    [ $code -eq 4 ] && [ ! -s ../differ ] || dirty=1
    tried=$((tried + 1))
    [ -z "$wrong" ] || { bad=$((bad + 1)) && echo "$kind $how, number $at of $count: $wrong" && cat ../run/stderr; } >>../bad
}

# Those whose turn it is; of memory some of every command, closer together where the program begins.
all=${MPSIM_TEST_EXPENSIVE:-0}
its_turn() {
    case $all$1 in 0malloc | 1*) return 0 ;; esac
    faults=$((faults + 1))
    [ $((faults % PARTS)) -eq $((part % PARTS)) ]
}
next() {
    case $all$1 in
    0malloc) i=$((i + 1 + i / 3)) ;;
    1malloc) i=$((i + 1 + i / 100)) ;;
    *) i=$((i + 1)) ;;
    esac
}

faults() {
    while read -r kind how says; do
        eval "count=\$count_$kind"
        i=1 bad=0 before=$tried
        while [ $i -le "$count" ]; do
            ! its_turn "$kind" || fails "$kind" "$how" $i "$says" "$@"
            # of memory one allocation, or all from there on, in turn
            if [ "$kind" = malloc ] && [ -z "${MPSIM_FAIL_ON-}" ]; then export MPSIM_FAIL_ON=1; else unset MPSIM_FAIL_ON; fi
            next "$kind"
        done
        unset MPSIM_FAIL_ON
        [ "$all" = 0 ] || [ "$count" = 0 ] || echo "# $1 $kind $how: $((tried - before)) faults, $bad wrong"
    done <../kinds
}

# ---- the commands ----
# One in each line; + before it: it goes on writing, and the whole files that it has written may stay; !: so where they cannot be renamed.
PARTS=101 faults=0 # that and the days below have no divisor in common
turns 10
while read -r words; do
    due || { ok 1 "$words" && continue; }
    goes_on=
    case $words in [+!]*) goes_on=${words%"${words#?}"} words=${words#?} ;; esac
    # shellcheck disable=SC2086 # words
    set -- $words
    rm -rf ../old0 ../old1 ../whole && mkdir -p ../old0/work ../old0/tmp && cp -R ../old0 ../old1 && : >../bad && fresh 0
    MPSIM_FAIL_COUNT=$dir/count told "$@" || echo "it fails anyway" >../bad
    cp -R ../run ../whole
    while read -r kind count; do eval "count_$kind=$count"; done <../count
    (cd ../run/work && for f in *; do [ ! -f "$f" ] || echo old >"../../old1/work/$f"; done)
    tried=0 dirty=1 was=
    faults "$@"
    cp ../bad ../err
    [ ! -s ../err ]; ok $? "$words ($tried faults)"
done <<TABLE
calc add 1 2 --json
formats --json fp16 bf16
formats --models
info -v $trace
info --json -o out ../../in/column.npy
info -v $top/tests/trace/recorded/little.gguf
info $top/tests/trace/recorded/tokens.bin
stat -o out ../../in/trace.gz
stat -o out $trace
stat --json --histogram $trace
stat --shard 1/2 --histogram -o out $trace
merge -o out ../../in/part.2 ../../in/part.1
merge --json ../../in/part.1 ../../in/part.2
merge --partial -o out ../../in/part.1
+cast -f bf16 -o out.safetensors $trace
cast -f e4m3 -q -o out.npy ../../in/column.npy
dot -f e4m3 -K 64 --rows 8 --csv
dot -f e4m3 -K 64 --rows 8 --csv --split-k 3 --workspace bf16 -M fma
dot --reduce --wire bf16 $trace $trace
attention -M fma,hopper-bf16-fp32:result=bf16 --q weight:fc1.weight --k weight:fc1.weight --v weight:fc1.weight $trace
mismatch -a fma -b hopper-bf16-fp32,split=2 --hidden $trace --hidden-name weight:fc1.weight --head $trace --head-name weight:fc1.weight
diff --logprob -k weight $trace $trace
advise --hold-back 2 -o out $top/data/amp-mlp/adam/step_000007/rank_00000.safetensors $top/data/amp-mlp/adam/step_000008/rank_00000.safetensors
+advise --policy-out policy $top/data/amp-mlp/adam/step_000007/rank_00000.safetensors
report --no-figures -o out $top/data/amp-mlp/adam/step_000007/rank_00000.safetensors $top/data/amp-mlp/adam/step_000008/rank_00000.safetensors
formats --positions 300 bf16
dot -f e4m3 --a 1,2,3 --b 1,2,3 --c 1 -M exact,pairwise,hopper-mma-fp8-fp32 --steps
dot -f e4m3 --a 1,2,3 --b 1,2,3 -M fma,hopper-mma-fp8-fp32 --steps --json
cast --explain 1,0.1 -f fp16,nvfp4
cast --explain 1,0.1 -f fp16,nvfp4 --json
memory -P fp32 -P te-mxfp8 $trace
memory -P te-mxfp8 --json --layers 2 --hidden 8 --heads 2 --seq 4 --batch 3 --vocab 10
scaler $trace
scaler --compare torch,apex $trace
scaler --log ../../in/log
scaler --pattern 1,0 --state-in ../../in/state --state-out out
replay -P ../../in/policies --json -o out $top/data/amp-mlp/adam
+train -P pytorch-amp-fp16 --width 8 --depth 1 --batch 8 --steps 2 --trace out --checkpoint point --digests digests
train --run ../../in/plan
train --run ../../in/plan --check-digests ../../in/digests --json
+train --resume ../../in/point --steps 3 --checkpoint out
+train --net gpt -P te-mxfp8 --width 8 --heads 2 --depth 1 --context 4 --batch 2 --steps 2 --accumulate 2 --ranks 2 --validation 3 --trace out --checkpoint point
+train --net llama -P nemo-fp8-hybrid-max --width 8 --heads 2 --kv-heads 1 --depth 1 --context 6 --batch 2 --steps 2 --tile 4 --attention tiled --validation 3 --json
!plot histogram -o out ../../in/report
!plot sweep --by total -o out ../../in/report
!plot scales --by kind -o out $top/tests/cli/reports/blocks.json
!plot sqnr --by layer -o out $top/tests/cli/reports/blocks.json
verify --list
TABLE

turns 1
# ---- a limit of the system: threads, libraries and all ----
for kilobytes in 12000 16000 24000 40000 80000; do
    if ! (ulimit -v $kilobytes && exec "$program" --version) >/dev/null 2>&1; then
        echo "# ulimit -v $kilobytes: not tried, the system cannot load the program in so little"
        continue
    fi
    rm -f ../report
    (ulimit -v $kilobytes && exec "$program" stat --json --threads 8 -o ../report "$trace") >../out 2>../err </dev/null
    code=$?
    [ $code -eq 4 ] || { [ $code -eq 0 ] && [ -s ../report ]; }
    ok $? "ulimit -v $kilobytes"
done

finish
