#!/bin/sh
# verify.sh -- mpsim verify: groups, replayed vectors, bad files, and that mismatches are found.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
recorded=${MPSIM_HWVECTORS:-$MPSIM_SRCDIR/../shared/hwvectors}
unset MPSIM_HWVECTORS
make=$(dirname "$MPSIM")/tests/support/mkvectors
v=$dir/v
mkdir "$v"

# file NAME ARGUMENT...: a folder with this one file
file() {
    due || return 1
    name=$1
    shift
    rm -rf "$v" && mkdir "$v" && "$make" "$v/$name" "$@"
}

# replay CODE ARGUMENT...: verify vectors of that folder
replay() {
    code=$1
    shift
    run "$code" verify vectors --vectors "$v" "$@"
}

# nothing ARGUMENT...: a report that says that nothing was compared, exit code 5
nothing() {
    due || return 1
    "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq 5 ] && [ ! -s "$dir/err" ] && has '^Nothing was compared'
}

# ---- usage ----
run 0 verify --help && has 'Usage: mpsim verify' && has Examples; ok $? "--help"
run 0 verify --list && [ "$(wc -l <"$dir/out")" -eq 6 ] && has '^vectors .*no recorded vectors'; ok $? "--list"
turns 4
run 2 verify mfpr && has 'did you mean mpfr' err; ok $? "an unknown group: a suggestion"
run 2 verify --json --csv; ok $? "two output forms"
run 2 verify vectors --model hoper-fp16-fp32 --vectors "$v" && has 'did you mean hopper' err; ok $? "an unknown model: a suggestion"
run 2 verify vectors --model hopper-fp16-fp32:G=24 --vectors "$v" && has 'G=24. is not a change; the changes are' err; ok $? "an unknown change of a model"
run 2 verify vectors --model exact && has 'vectors DIR' err; ok $? "--model without vectors"
run 2 verify mpfr --vectors "$v" && has 'vectors needs GROUP vectors' err; ok $? "--vectors without its group"
run 2 verify mpfr --model exact --vectors "$v"; ok $? "--model without its group"
run 2 verify --architecture pascal --vectors "$v" && has 'volta' err; ok $? "an unknown architecture"
nothing verify vectors && has '^vectors *skipped: no recorded' && has '^Nothing was compared; skipped: vectors$'; ok $? "no vectors: said, not passed over"

# ---- what is built in ----
turns 1
# MPFR takes long, and judges most unit tests of round, format and arith
groups='nvidia vectors gpu'
case " $(turn short short short short short short short long) " in *long*) groups= ;; esac
# shellcheck disable=SC2086 # words
{ run 0 verify --seed 3 $groups && has ' 0 mismatches'; } || nothing verify --seed 3 $groups; r=$?; has '^gpu ' && [ $r -eq 0 ]; ok $? "everything that runs here"
if [ "$groups" ]; then
    ok 0 "MPFR # SKIP takes seven seconds, so one day in eight"
elif grep -q '^mpfr *skipped' "$dir/out"; then
    ok 0 "MPFR # SKIP built without it"
else
    has '^mpfr .*binary32 to .* formats' && has '^mpfr .*fma in' && has '^mpfr .*models: hopper'
    ok $? "MPFR: casts, arithmetic, dot products"
fi

# ---- instructions of this CPU ----
turns 3 together
if { run 0 verify cpu --record "$dir/record" && has ' 0 mismatches'; } || nothing verify cpu; then r=0; else r=1; fi
ok $r "instructions of this CPU: every bit, or none that is known"
! has 'not there' || has '^cpu .*skipped: not there: this machine lacks '; ok $? "what it lacks is named"
[ ! -s "$dir/record" ] || { [ "$(head -n 1 "$dir/record")" = mpsim-cpu/1 ] && [ "$(grep -c '^row' "$dir/record")" -eq "$(grep -c '^cpu .* digest ' "$dir/out")" ]; }; ok $? "--record: a row for each"
run 2 verify mpfr --record "$dir/none" && has 'record needs GROUP cpu' err && [ ! -e "$dir/none" ]; ok $? "--record without its group"

# ---- sets that are reproduced ----
turns 1
file a100-sxm4.npz ampere-fp16-fp32 fp16 500 16
replay 0 && has 'a100-sxm4.npz fp16.d_fp32, K = [0-9]* *500 *0 *ampere-fp16-fp32$' && has '^500 comparisons in 1 row, 0 mismatches$'; ok $? "fp16 to fp32"
cp "$dir/out" "$dir/one"
turns 4
replay 0 --threads 3 && cmp -s "$dir/one" "$dir/out"; ok $? "the same bytes with 3 threads"
due && MPSIM_HWVECTORS=$v "$MPSIM" verify vectors >"$dir/out" 2>"$dir/err" && cmp -s "$dir/one" "$dir/out"; ok $? "the folder by MPSIM_HWVECTORS"
run 0 verify vectors --vectors "$v/a100-sxm4.npz" && cmp -s "$dir/one" "$dir/out"; ok $? "one file"
replay 0 --json && has '"schema": "mpsim.verify/1"' && has '"compared": 500, "mismatches": 0'; ok $? "--json"
replay 0 --ndjson && has '^{"group": "vectors", .*"models_that_fit": 1, "compared": 500, "mismatches": 0, "first": null, '; ok $? "--ndjson"
replay 0 --csv -o "$dir/report" && [ ! -s "$dir/out" ] && grep -q '^vectors,"a100-sxm4.npz fp16.d_fp32, K = [0-9]*",done,ampere-fp16-fp32,500,0,,$' "$dir/report"; ok $? "--csv --output"
turns 4 together
file H200.npz hopper-fp16-fp16 fp16 500 16
replay 0 && has 'hopper-fp16-fp16$'; ok $? "fp16 results: c rounded first"
file gh200.npz hopper-bf16-fp32 bf16 500 16 special
replay 0 && has 'hopper-bf16-fp32$'; ok $? "NaN, infinities and signs of zero: every bit"
! has 'several rows'; ok $? "one row fits: nothing is said"
turns 4 together
file gh200.npz hopper-wgmma-fp8-fp32 e4m3 500 32 zero
replay 0 && has 'hopper-wgmma-fp8-fp32.*, c = 0$'; ok $? "fp8 without c"
has 'hopper-wgmma-fp8-fp32 or ' && has "^1 set fits several rows of the table, named with 'or': the set does not tell them apart$"; ok $? "a set that several rows give is told"
replay 0 --json && has '"models_that_fit": [2-9]'; ok $? "in JSON, too"
turns 4 together
file h100.npz hopper-mma-fp8-fp16 e5m2 500 64
replay 0 && has 'hopper-mma-fp8-fp16$'; ok $? "fp8 by mma.sync, two instructions"
file b200.npz blackwell-tcgen05-fp8-fp32 e3m2 200 32
replay 0 && has 'tcgen05-fp8-fp32'; ok $? "a type that only Blackwell takes"
run 0 verify vectors --vectors "$MPSIM_SRCDIR/data/vectors/dot" && has '^660,000 comparisons in 40 rows, 0 mismatches'; ok $? "sums that come to zero, as MMA-Sim has them"

# ---- mismatches ----
turns 1
file a100.npz ampere-fp16-fp32 fp16 500 16 flip=321
replay 1 && has '500 *1 *0.20 % *best: ampere-fp16-fp32' && has 'row 321: recorded 0x.*gives 0x'; ok $? "one wrong bit of 500 results: exit 1, and where"
replay 1 --csv && has ',500,1,"row 321: recorded'; ok $? "the same in CSV"
turns 4 together
file rtx3090.npz hopper-fp16-fp32 fp16 500 16
replay 1 && has 'closest: hopper-fp16-fp32 or .*, 0 mismatches'; ok $? "another architecture's results: the closest model"
file h100.npz hopper-fp16-fp32 fp16 500 16
replay 1 --model hopper-fp16-fp32:F=24 && has 'hopper-fp16-fp32:F=24$'; ok $? "a wrong parameter: exit 1"
replay 1 --model hopper-fp16-fp32,hopper-fp16-fp32:F=24 --model exact && has '^1,500 comparisons in 3 rows'; ok $? "a list of models"
replay 1 --model '*-fp16-fp32' && has ' 500 *0 *hopper-fp16-fp32$' &&
    has " comparisons in $(($("$MPSIM" formats --models '*-fp16-fp32' --csv | wc -l) - 1)) rows"; ok $? "a pattern of models"
replay 0 --model hopper-fp16-fp32:F=25 && has ' 0 mismatches'; ok $? "the right parameter: exit 0"
nothing verify vectors --vectors "$v" --model volta-fp16-fp16 && has 'skipped: no set'; ok $? "a model that fits no set"

# ---- names ----
turns 1
file x.npz blackwell-tcgen05-fp8-fp16 e2m1 1 4
"$MPSIM" verify vectors --vectors "$v" >"$dir/out" 2>"$dir/err"; [ $? -eq 3 ] && has 'x.npz.*--architecture' err; ok $? "a name that tells no GPU"
replay 0 --architecture Blackwell && has 'tcgen05-fp8-fp16'; ok $? "--architecture"
"$make" "$v/a100.npz" ampere-fp16-fp32 fp16 5 8
replay 0 --architecture Blackwell && has 'ampere-fp16-fp32'; ok $? "--architecture leaves names that tell a GPU alone"
rm "$v/a100.npz"
mv "$v/x.npz" "$dir/x.npz"
while read -r architecture names; do
    for name in $names; do
        cp "$dir/x.npz" "$v/$name.npz"
        echo "$name.npz e2m1.d_fp16, K = 4 *skipped: $architecture has" >>"$dir/expected"
    done
done <<END
volta v100 Tesla-V100-SXM2-32GB volta
turing t4 turing rtx2080ti
ampere a100 A100_80GB_PCIe a30 a2 a10 a10g a40 rtx3090 rtx_a6000 sm_86
ada ada l4 l40 l40s rtx1000 ada_rtx1000 rtx4090 rtx_5000_ada
hopper h100 h200 gh200 h800 h20 hopper nvidia-h100-80gb-hbm3
END
nothing verify vectors --vectors "$v" && ! grep -v -q skipped "$dir/out"
while read -r line; do
    has "$line" || echo "$line" >>"$dir/lost"
done <"$dir/expected"
[ -s "$dir/expected" ] && [ ! -s "$dir/lost" ]; ok $? "architectures by file name"
rm -f "$v"/*
for name in b100 gb200 b300-sxm blackwell rtx-blackwell rtx5090 rtx_pro_6000_blackwell; do
    cp "$dir/x.npz" "$v/$name.npz"
done
replay 0 && [ "$(grep -c ' blackwell-' "$dir/out")" -eq 4 ] && [ "$(grep -c ' rtx-blackwell-' "$dir/out")" -eq 3 ]; ok $? "both Blackwells by file name"

# ---- bad files: one line on stderr, a row that says so, exit code 3 ----
unread() { # unread PATTERN
    due || return 1
    "$MPSIM" verify vectors --vectors "$v" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq 3 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && has "^mpsim: .*$1" err && has 'npz *failed: '
}
bad() { # bad PATTERN NAME LIE
    file h100.npz hopper-fp16-fp32 fp16 5 16 "$3" && unread "h100.npz: $1"
    ok $? "$2"
}
turns 4
bad 'array fp16.c is missing' "no c" without=c
bad 'array fp16.b is missing' "no b" without=b
bad 'array fp16.d_fp32 is missing' "no results" without=d_fp32
bad 'array fp16.b has shape 4 x 16, and 5 x 16' "b is short" short=b
bad 'array fp16.d_fp32 has shape 4, and 5' "results are short" short=d_fp32
bad 'array fp16.a has 1 dimension, not 2' "a is flat" flat=a
bad 'array fp16.b does not hold' "integers" whole=b
bad 'array fp16.a, row 0, column 1: 0.333333343 (0x1.555556p-2) is not a number of fp16' "a value that fp16 does not have" third=a
bad 'array fp16.e is not one of' "an unknown array" name=e
file h100.npz hopper-fp16-fp16 fp16 5 16 third=d && unread 'd_fp16, row 1: 0.3333'; ok $? "a result that fp16 does not have"
turns 1
file h100.npz hopper-fp16-fp32 fp16 5 16
head -c 300 "$v/h100.npz" >"$v/a100.npz"; unread 'a100.npz' && has '^vectors *h100.npz .* 5 *0 *hopper-fp16-fp32'; ok $? "a truncated file, and the other one is replayed"
rm "$v/h100.npz"; echo text >"$v/a100.npz"; unread 'a100.npz'; ok $? "no npz inside"
rm "$v/a100.npz"; replay 3 && has 'no npz file' err; ok $? "an empty folder"
"$MPSIM" verify vectors --vectors "$dir/none" >"$dir/out" 2>"$dir/err"; [ $? -eq 4 ] && has 'No such file' err; ok $? "no folder"

# ---- what real GPUs gave ----
if [ -d "$recorded" ]; then
    v=$recorded
    replay 0 && has ' 0 mismatches' && ! has skipped; ok $? "every recorded result of $(find "$v" -name '*.npz' | wc -l) GPUs"
    if [ -f "$v/h100.npz" ]; then
        replay 1 --model hopper-fp16-fp32:F=24 && has 'h100.npz fp16.d_fp32, K = 16 *5,000 *1,175 '; ok $? "F = 24 instead of 25 misses 1,175 of 5,000"
    fi
    if [ -f "$v/b200.npz" ]; then
        v=$v/b200.npz
        replay 1 --model 'exact,pairwise,amx-fp8-fp32,*blackwell-*,hopper-*' && sed -n '/^Models that give every bit/,/^$/p' "$dir/out" >"$dir/fit" && cmp "$dir/fit" - >"$dir/err" <<'END'; ok $? "rows that give every bit of a B200"
Models that give every bit
  b200.npz e4m3.d_fp32, K = 32
    exact, pairwise, amx-fp8-fp32, blackwell-mma-fp8-fp32, hopper-mma-fp8-fp32
  b200.npz e4m3.d_fp16, K = 32
    blackwell-mma-fp8-fp16, hopper-mma-fp8-fp16
  b200.npz e5m2.d_fp32, K = 32
    blackwell-mma-fp8-fp32, hopper-mma-fp8-fp32
  b200.npz e5m2.d_fp16, K = 32
    blackwell-mma-fp8-fp16, hopper-mma-fp8-fp16
  b200.npz bf16.d_fp32, K = 16
    blackwell-bf16-fp32, rtx-blackwell-bf16-fp32, hopper-bf16-fp32
  b200.npz fp16.d_fp32, K = 16
    blackwell-fp16-fp32, rtx-blackwell-fp16-fp32, hopper-fp16-fp32
  b200.npz fp16.d_fp16, K = 16
    blackwell-fp16-fp16, rtx-blackwell-fp16-fp16, hopper-fp16-fp16
  b200.npz tf32.d_fp32, K = 4
    blackwell-tf32-fp32, rtx-blackwell-tf32-fp32, hopper-tf32-fp32, hopper-k4-tf32-fp32

END
    fi
else
    ok 0 "recorded results # SKIP no folder $recorded"
fi

finish
