#!/bin/sh
# memory.sh -- when memory runs out, at whichever allocation: exit code 4 with one line, or what would have been
# printed anyway; no crash, nothing incomplete, nothing temporary left.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"
build=$(cd "$(dirname "$MPSIM")" && pwd)
fail=$(ls "$build"/tests/support/failmalloc.so 2>/dev/null)
program=$build/$(basename "$MPSIM")
top=$(cd "$MPSIM_SRCDIR" && pwd)
MPSIM_POLICIES=$top/data/policies
OMP_NUM_THREADS=1
TMPDIR=$dir/tmp
export MPSIM_POLICIES OMP_NUM_THREADS TMPDIR
mkdir "$dir/tmp" "$dir/in" "$dir/work" && cd "$dir/in" || exit 99
if ! [ "$fail" ] || ! LD_PRELOAD=$fail MPSIM_FAIL_COUNT=count "$program" formats fp16 >out 2>&1 || ! [ -s count ]; then
    echo "1..0 # SKIP no library that lets allocations fail"
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
    gzip -c "$trace" >trace.gz && "$MPSIM" stat --json --histogram -s 2^0..2^2 -o report "$trace"
} || exit 99
cat >../gnuplot <<'SCRIPT'
#!/bin/sh
unset LD_PRELOAD
figure=$(echo "$3" | sed "s/figure = '\([^']*\)'.*/\1/")
for suffix in pdf png svg; do echo x >"$figure.$suffix"; done
SCRIPT
chmod +x ../gnuplot
MPSIM_GNUPLOT=$dir/gnuplot
export MPSIM_GNUPLOT
cd "$dir/work" || exit 99

# What depends on the clock.
steady() { sed 's/^speed .*//; s/"[a-z_]*second[a-z_]*": [^,}]*//g' "$1"; }

# fails N ARGUMENT...: a run whose N-th allocation fails; 0 if it ends as it should
fails() {
    rm -rf ../work/*
    at=$1
    shift
    MPSIM_FAIL_AT=$at LD_PRELOAD=$fail "$program" "$@" >../out 2>../err </dev/null
    case $? in
    4) { read -r line && ! read -r more; } <../err && [ "${line#mpsim: }" != "$line" ] &&
        case $line in *"could not be written") false ;; esac ;;
    0) [ ! -s ../err ] && steady ../out | cmp -s - ../whole ;; # it did not need that memory
    *) return 1 ;;
    esac
}

# Each command: every early allocation, and others that grow apart, so that the whole run is looked at.
while read -r words; do
    # shellcheck disable=SC2086 # words
    set -- $words
    rm -rf ../work/* ../work/.[!.]* && : >../bad
    LD_PRELOAD=$fail MPSIM_FAIL_COUNT=../count "$program" "$@" >../out 2>../err </dev/null
    [ $? -eq 0 ] || echo "it fails anyway" >../bad
    steady ../out >../whole
    read -r count <../count
    i=1
    while [ $i -le "$count" ]; do
        fails $i "$@" || { echo "of $count allocations, number $i" && cat ../err; } >>../bad
        # one allocation, or all from there on, in turn
        if [ "${MPSIM_FAIL_ON-}" ]; then unset MPSIM_FAIL_ON; else export MPSIM_FAIL_ON=1; fi
        i=$((i + 1 + i / 3))
    done
    find . ../tmp -name '*.tmp' -o -name 'mpsim-*' -o -name 'out.??????' >>../bad
    cp ../bad ../err
    [ ! -s ../err ]; ok $? "$words"
done <<TABLE
calc add 1 2 --json
formats --json fp16 bf16
formats --models
info -v $trace
info --json -o out ../in/column.npy
info -v $top/tests/trace/recorded/little.gguf
info $top/tests/trace/recorded/tokens.bin
stat -o out ../in/trace.gz
stat -o out $trace
stat --json --histogram $trace
stat --shard 1/2 --histogram -o out $trace
merge -o out ../in/part.2 ../in/part.1
merge --json ../in/part.1 ../in/part.2
merge --partial -o out ../in/part.1
cast -f bf16 -o out.safetensors $trace
cast -f e4m3 -q -o out.npy ../in/column.npy
dot -f e4m3 -K 64 --rows 8 --csv
dot -f e4m3 -K 64 --rows 8 --csv --split-k 3 --workspace bf16 -M fma
dot --reduce --wire bf16 $trace $trace
diff --logprob -k weight $trace $trace
formats --positions 300 bf16
dot -f e4m3 --a 1,2,3 --b 1,2,3 --c 1 -M exact,pairwise,hopper-mma-fp8-fp32 --steps
dot -f e4m3 --a 1,2,3 --b 1,2,3 -M fma,hopper-mma-fp8-fp32 --steps --json
cast --explain 1,0.1 -f fp16,nvfp4
cast --explain 1,0.1 -f fp16,nvfp4 --json
memory -P fp32 -P te-mxfp8 $trace
memory -P te-mxfp8 --json --layers 2 --hidden 8 --heads 2 --seq 4 --batch 3 --vocab 10
scaler --compare torch,apex $trace
scaler --log ../in/log
scaler --pattern 1,0 --state-in ../in/state --state-out out
replay -P ../in/policies --json -o out $top/data/amp-mlp/adam
train -P pytorch-amp-fp16 --width 8 --depth 1 --batch 8 --steps 2 --trace out --checkpoint point --digests digests
train --run ../in/plan
train --run ../in/plan --check-digests ../in/digests --json
train --resume ../in/point --steps 3 --checkpoint out
train --net gpt -P te-mxfp8 --width 8 --heads 2 --depth 1 --context 4 --batch 2 --steps 2 --accumulate 2 --ranks 2 --validation 3 --trace out --checkpoint point
train --net llama -P nemo-fp8-hybrid-max --width 8 --heads 2 --kv-heads 1 --depth 1 --context 6 --batch 2 --steps 2 --tile 4 --attention tiled --validation 3 --json
plot histogram -o out ../in/report
plot sweep --by total -o out ../in/report
plot scales --by kind -o out $top/tests/cli/reports/blocks.json
plot sqnr --by layer -o out $top/tests/cli/reports/blocks.json
verify --list
TABLE

# ---- a limit of the system: threads, libraries and all ----
for kilobytes in 12000 16000 24000 40000 80000; do
    if ! (ulimit -v $kilobytes && exec "$program" --version) >/dev/null 2>&1; then
        echo "# ulimit -v $kilobytes: not tried, the system cannot load the program in so little"
        continue
    fi
    rm -rf ../work/*
    (ulimit -v $kilobytes && exec "$program" stat --json --threads 8 -o out "$trace") >../out 2>../err </dev/null
    code=$?
    [ $code -eq 4 ] || { [ $code -eq 0 ] && [ -s out ]; }
    ok $? "ulimit -v $kilobytes"
done

finish
