#!/bin/sh
# mpi.sh -- mpsim-mpi on 2 and 3 ranks: the bytes and exit codes of mpsim; errors told once; ranks that die.
: "${MPSIM_MPI:=./mpsim-mpi}" "${MPIRUN:=mpirun}"
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
if [ ! -x "$MPSIM_MPI" ]; then
    echo "1..0 # SKIP configured without MPI"
    exit 0
fi
if ! timeout --foreground 1 true 2>/dev/null; then
    echo "1..0 # SKIP no timeout of coreutils"
    exit 0
fi
# As root, more ranks than processors, no shell to other machines, no reading of other processes' memory, which
# containers forbid: other libraries do not know these words.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_plm=isolated
OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_orte_execute_quiet=1
OMPI_MCA_odls_base_sigkill_timeout=0 # Open MPI waits so long after every exit code but 0
OMP_NUM_THREADS=1
ASAN_OPTIONS=detect_leaks=0 # MPI's own
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe \
    OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle OMPI_MCA_plm OMPI_MCA_btl \
    OMPI_MCA_btl_vader_single_copy_mechanism OMPI_MCA_orte_execute_quiet OMPI_MCA_odls_base_sigkill_timeout OMP_NUM_THREADS ASAN_OPTIONS
start() { # start N PROGRAM ARGUMENT...: a minute at most
    due || return 1
    ranks=$1
    shift
    # shellcheck disable=SC2086 # words
    timeout --foreground 60 $MPIRUN -n "$ranks" "$@"
}
if ! start 2 true >"$dir/out" 2>&1 </dev/null; then
    echo "1..0 # SKIP $MPIRUN starts no processes here: $(head -n 1 "$dir/out")"
    exit 0
fi
MPSIM_MPI=$(cd "$(dirname "$MPSIM_MPI")" && pwd)/$(basename "$MPSIM_MPI")
data=$top/data
cd "$dir" || exit 99

# ours: what mpsim-mpi says on stderr, without what the starter of the job and the library say of a code or a death
ours() { grep '^mpsim: ' "$dir/err.all" >"$dir/err"; }

# same N ARGUMENT...: stdout, lines on stderr and exit code are those of mpsim
same() {
    due || return 1
    ranks=$1
    shift
    "$MPSIM" "$@" >"$dir/want" 2>"$dir/want.err" </dev/null
    want=$?
    start "$ranks" "$MPSIM_MPI" "$@" >"$dir/out" 2>"$dir/err.all" </dev/null
    code=$?
    ours
    [ $code -eq $want ] && cmp "$dir/want" "$dir/out" >/dev/null && cmp "$dir/want.err" "$dir/err" >/dev/null
}
both() { # both NAME ARGUMENT...: a report, the same with 2 ranks and with 3, in turn
    name=$1
    shift
    differ=0
    for each in $(turn 2 3); do same "$each" "$@" && [ "$want" -eq 0 ] || differ=1; done
    ok $differ "$name"
}
three() { # three NAME ARGUMENT...: a report, the same with 3
    name=$1
    shift
    same 3 "$@" && [ "$want" -eq 0 ]
    ok $? "$name"
}
two() { # two CODE NAME ARGUMENT...: an error, the same with 2 ranks
    expected=$1
    name=$2
    shift 2
    same 2 "$@" && [ "$want" -eq "$expected" ] && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "$name"
}

# ---- replay ----
both "replay: a recorded run" replay -P "$data/amp-mlp/autocast.yaml" "$data/amp-mlp/sgd"
turns 13
three "replay: clipped AdamW, JSON" replay -P "$data/amp-mlp/adamw.yaml" --json "$data/amp-mlp/adamw"
three "replay: masters, CSV of tensors" replay -P "$data/amp-mlp/half.yaml" --csv --tensors "$data/amp-mlp/half"
three "replay: --amp, no reference" replay -P "$data/amp-mlp/autocast.yaml" --amp --no-reference "$data/amp-mlp/adam"
both "replay: FP8 delayed scaling" replay -P nemo-fp8-hybrid-max --json --tensors "$data/digits-cnn"
both "replay: weights of the record, a choice of tensors" \
    replay -P nemo-fp8-hybrid-recent --weights recorded -m '*fc*' -k act,wgrad,weight --json "$data/digits-cnn"
three "replay: several policies" replay -P pytorch-amp-fp16 -P te-nvfp4 -P bf16-stochastic --seed 7 "$data/digits-cnn"
three "replay: norms as the record's CPU sums them" replay -P fp32 "$data/replay-cases/clip-no-norm"
three "replay: tied parameters, accumulated" replay -P pytorch-amp-fp16 --json "$data/replay-cases/tied"
start 3 "$MPSIM_MPI" replay -P fp32 -o report "$data/digits-cnn" >"$dir/out" 2>"$dir/err.all" </dev/null &&
    "$MPSIM" replay -P fp32 "$data/digits-cnn" 2>/dev/null | cmp - report >/dev/null && [ ! -s "$dir/out" ]
ok $? "replay: -o"

# ---- odd traces: FILE, then of each tensor NAME, SHAPE and its numbers as words of eight hexadecimal digits ----
little() { # little BYTES NUMBER: as escapes for printf %b
    at=0
    left=$2
    while [ $at -lt "$1" ]; do
        printf '\\0%03o' $((left % 256))
        left=$((left / 256))
        at=$((at + 1))
    done
}
trace() { # trace FILE METADATA
    mkdir -p "$(dirname "$1")"
    header="{\"__metadata__\":{$2}"
    from=0
    : >data
    while read -r name shape numbers; do
        for x in $numbers; do printf %b "$(little 4 $((0x$x)))" >>data; done
        to=$(wc -c <data)
        header="$header,\"$name\":{\"dtype\":\"F32\",\"shape\":$shape,\"data_offsets\":[$from,$((to))]}"
        from=$((to))
    done
    header="$header}"
    printf %b "$(little 8 ${#header})" >"$1"
    printf '%s' "$header" >>"$1"
    cat data >>"$1"
}
# two ranks whose gradients wait for their reduction: an empty tensor, a scalar, an overflow in the second step
for step in 1 2 3; do
    for rank in 0 1; do
        big=40490fdb
        if [ $step$rank = 21 ]; then big=7f7fffff; fi
        trace odd/step_$step/rank_$rank "\"mpsim.step\":\"$step\",\"mpsim.rank\":\"$rank\",\"mpsim.world\":\"2\",\
\"mpsim.reduced\":\"pre\",\"mpsim.optimizer\":\"adamw\",\"mpsim.lr\":\"0.01\",\"mpsim.grad_clip\":\"1\"" <<LIST
weight:a.weight [2,2] 3f800000 3f000000 bf800000 3e99999a
weight:a.bias [] 3dcccccd
weight:none.weight [0,4]
weight:b.weight [1,3] 3f800001 3f333333 00000001
act:a [2,2] 3f800000 3f000000 bf800000 3$step${rank}00000
act:b [1,3] 3f800001 3f333333 00000001
agrad:a [2] 33800000 b3000000
wgrad:a.weight [2,2] 38d1b717 b8d1b717 3a83126f 3$step${rank}00000
wgrad:a.bias [] 3$rank${step}ccccd
wgrad:none.weight [0,4]
wgrad:b.weight [1,3] $big 00000000 33333333
LIST
    done
done
printf 'precision: fp16\nloss_scaling: {scaler: fairseq}\n' >norm.yaml
both "replay: two recorded ranks, empty tensors, a scalar, an overflow" replay -P pytorch-amp-fp16 --json --tensors odd
three "replay: their FP8 states" replay -P nemo-fp8-hybrid-max --json --tensors odd
three "replay: a scaler that looks at norms" replay -P norm.yaml --json odd
three "replay: ranks reduced as DeepSpeed does" replay -P deepspeed-fp16 odd

# ---- stat ----
turns 1
both "stat: a trace" stat "$data/digits-cnn"
turns 13
both "stat: JSON with histograms, scales, stochastic rounding" \
    stat --json --histogram -r sr --seed 3 -s 1,2^10 -f fp16,e4m3@cuda "$data/digits-cnn" "$data/charlm"
three "stat: every tensor of many files" stat -t "$data/replay-cases"
three "stat: CSV of kinds" stat --csv --level kind "$data/digits-cnn"
both "stat: NDJSON, counts alone, a choice" stat --ndjson --counts -k wgrad,agrad -m '*fc*' "$data/digits-cnn"
three "stat: odd tensors" stat --json odd
same 3 stat --fail-if 'underflow>1%,nan' "$data/digits-cnn" && [ "$want" -eq 1 ]; ok $? "stat: --fail-if"
start 3 "$MPSIM_MPI" stat --json -o report "$data/digits-cnn" >"$dir/out" 2>"$dir/err.all" </dev/null &&
    "$MPSIM" stat --json "$data/digits-cnn" | cmp - report >/dev/null && [ ! -s "$dir/out" ]
ok $? "stat: -o"

# ---- errors: one line, the exit code of mpsim ----
turns 1
two 4 "no such file" replay -P fp32 nowhere
turns 13
two 4 "no such policy" replay -P nowhere odd
two 2 "no such option" replay --nowhere
two 3 "not a trace" replay -P fp32 norm.yaml
two 4 "-o into nothing" replay -P fp32 -o nowhere/report odd
two 3 "no step" replay -P fp32 -k opt.m odd
rm odd/step_3/rank_1
two 3 "a rank's file is missing" replay -P fp32 odd
three "--help" replay --help
start 2 "$MPSIM_MPI" >"$dir/out" 2>"$dir/err" </dev/null
[ $? -eq 2 ] && [ "$(grep -c '^Usage: mpirun -n N mpsim-mpi' "$dir/err")" -eq 1 ]; ok $? "no words"

# an archive whose members are checked where they are read: by the rank that has them
zip() { # zip FILE NAME=DATA...: stored members; NAME! has another checksum than its data
    out=$1
    shift
    : >"$out"
    : >central
    for member; do
        name=${member%%=*}
        file=${member#*=}
        gzip -c <"$file" | tail -c 8 | head -c 4 >crc
        case $name in *!) name=${name%!}; printf '\1\2\3\4' >crc ;; esac
        size=$(little 4 $(($(wc -c <"$file"))))
        at=$(little 4 $(($(wc -c <"$out"))))
        { printf 'PK\003\004\024\0\0\0\0\0\0\0\041\0'; cat crc; printf %b "$size$size$(little 2 ${#name})"; printf '\0\0%s' "$name"; cat "$file"; } >>"$out"
        { printf 'PK\001\002\024\003\024\0\0\0\0\0\0\0\041\0'; cat crc; printf %b "$size$size$(little 2 ${#name})"
            printf '\0\0\0\0\0\0\0\0\0\0\0\0'; printf %b "$at"; printf '%s' "$name"; } >>central
    done
    at=$(little 4 $(($(wc -c <"$out"))))
    cat central >>"$out"
    { printf 'PK\005\006\0\0\0\0'; printf %b "$(little 2 $#)$(little 2 $#)$(little 4 $(($(wc -c <central))))$at"; printf '\0\0'; } >>"$out"
}
{ printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"; printf '\0\0\200\077\0\0\0\100'; } >member
mkdir -p good bad
zip good/step_1.npz wgrad:a.npy=member wgrad:b.npy=member weight:a.npy=member weight:b.npy=member
mark() { [ "$1" = "$which" ] && echo !; }
printf 'precision: fp32\noptimizer: {name: sgd, lr: 1}\n' >sgd.yaml
three "an archive" replay -P sgd.yaml --json good
for which in a b c; do
    mkdir -p bad/$which
    zip bad/$which/step_1.npz "wgrad:a.npy$(mark a)=member" "wgrad:b.npy$(mark b)=member" "act:c.npy$(mark c)=member"
    two 3 "a damaged member of an archive: $which" replay -P sgd.yaml bad/$which
    has CRC err; ok $? "and said: $which"
done
three "stat: an archive" stat --json good
for which in a b c; do
    two 3 "stat: a damaged member of an archive: $which" stat bad/$which
done
same 3 stat --keep-going --json bad good && [ "$want" -eq 5 ] && [ "$(wc -l <"$dir/err")" -eq 3 ]
ok $? "stat: --keep-going, a line for each file that failed"
two 2 "stat: a condition that is none" stat --fail-if nowhere odd
two 3 "stat: nothing is selected" stat -m nowhere odd
two 4 "stat: -o into nothing" stat -o nowhere/report odd
start 2 "$MPSIM_MPI" stat nowhere >"$dir/out" 2>"$dir/err.all" </dev/null
[ $? -eq 4 ] && ours && [ "$(wc -l <"$dir/err")" -eq 1 ] &&
    has '^mpsim: nowhere: cannot open: .* (rank 1 on ' err # the one whose it is
ok $? "stat: no such file, and where it is missing"
start 2 "$MPSIM_MPI" stat --shard 1/2 odd >"$dir/out" 2>"$dir/err.all" </dev/null
[ $? -eq 2 ] && ours && has '^mpsim: stat: --shard needs one process' err; ok $? "stat: ranks are no shards"

start 2 "$MPSIM_MPI" replay -P fp32 - >"$dir/out" 2>"$dir/err.all" </dev/null
[ $? -eq 2 ] && ours && [ "$(wc -l <"$dir/err")" -eq 1 ] && has "'-' can be read by one process only" err
ok $? "standard input is refused"

# ---- ranks that are given different words ----
# unlike WANTED FIRST SECOND...: the words of rank 0, and those of rank 1
unlike() {
    # shellcheck disable=SC2016,SC2086 # of the rank; words
    start 2 sh -c 'words=$1; [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 1 ] && words=$2; exec "$0" $words' \
        "$MPSIM_MPI" "$2" "$3" >"$dir/out" 2>"$dir/err.all" </dev/null
    [ $? -eq 2 ] && ours && [ "$(wc -l <"$dir/err")" -eq 1 ] && has "not given the same words: $1\$" err && [ ! -s "$dir/out" ]
    ok $? "other words: $1"
}
unlike "rank 1 has '-f bf16', rank 0 has '-f fp16'" 'stat -f fp16 odd' 'stat -f bf16 odd'
unlike "rank 1 has '-P fp32', rank 0 has '-P apex-O2'" 'replay -P apex-O2 odd' 'replay -P fp32 odd'
unlike "rank 1 has nothing, rank 0 has '--csv'" 'stat odd --csv' 'stat odd'

# ---- machines that see different files ----
mkdir -p other/odd
cp -R odd/. other/odd
rm -r other/odd/step_3
cp -R odd other/same
cp -R odd same
echo 'precision: fp16' >policy.yaml && echo 'precision: bf16' >other/policy.yaml
for command in stat 'replay -P pytorch-amp-fp16' 'replay -P policy.yaml'; do
    # shellcheck disable=SC2016,SC2086 # of the rank; words
    start 2 sh -c 'if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 1 ]; then cd other || exit 99; fi; exec "$@"' \
        sh "$MPSIM_MPI" $command "$(case $command in *.*) echo same ;; *) echo odd ;; esac)" >"$dir/out" 2>"$dir/err.all" </dev/null
    [ $? -eq 3 ] && ours && [ "$(wc -l <"$dir/err")" -eq 1 ] && has 'do not read the same files' err && [ ! -s "$dir/out" ]
    ok $? "$command: other files on another machine"
done

# ---- a rank that dies: the job ends, in one line ----
OMPI_MCA_odls_base_sigkill_timeout=2 # for the others to say so
works() { # works PID: it reads files, so that it knows the others; where that cannot be seen, after a while
    if [ -d /proc/self/fd ]; then
        # shellcheck disable=SC2010 # where links lead
        ls -l "/proc/$1/fd" 2>/dev/null | grep -q 'large/step_'
    else
        sleep 2
    fi
}
dies() { # dies RANK SIGNAL ARGUMENT...
    which=$1
    number=$2
    shift 2
    rm -f pid
    # shellcheck disable=SC2016 # of the rank
    start 3 sh -c 'rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}
        if [ "$rank" = "$0" ]; then echo $$ >pid; fi
        exec "$@"' "$which" "$MPSIM_MPI" "$@" >"$dir/out" 2>"$dir/err.all" </dev/null &
    job=$!
    tries=0
    until [ -s pid ] && works "$(cat pid)" || [ $tries -ge 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ -s pid ] && kill -s "$number" "$(cat pid)"
    killed=$?
    wait $job
    code=$?
    ours
    [ $killed -eq 0 ] && [ $code -ne 0 ] && [ $code -ne 124 ] && [ ! -s "$dir/out" ]
}
one="mpsim: rank [0-9] of the job has died: there is no report"
# many steps of tensors of 64 MiB that take no room
header='{"x":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
at=0
for i in 1 2 3 4 5 6 7 8; do
    header="$header,\"act:l$i\":{\"dtype\":\"F32\",\"shape\":[16384,1024],\"data_offsets\":[$at,$((at + 67108864))]}"
    at=$((at + 67108864))
done
header="$header}"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    mkdir -p large/step_$i
    { printf %b "$(little 8 ${#header})"; printf '%s' "$header"; } >large/step_$i/all
    dd if=/dev/zero of=large/step_$i/all bs=1 count=0 seek=$((8 + ${#header} + at)) 2>/dev/null || exit 99
done
turns 12
for row in 0:stat 2:replay 2:stat 0:replay; do # Open MPI needs seconds for each
    which=${row%:*}
    command=stat
    [ "${row#*:}" = stat ] || command='replay -P nemo-fp8-hybrid-max'
    # shellcheck disable=SC2086 # words
    due && dies "$which" KILL $command large
    ok $? "rank $which is killed in ${row#*:}: the job ends"
    if [ -n "$(command -v ompi_info)" ]; then # others end the ranks without a signal that can be caught
        [ "$(wc -l <"$dir/err")" -eq 1 ] && has "$one" err; ok $? "rank $which is killed in ${row#*:}: one line"
    fi
done
finish
