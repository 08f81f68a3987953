#!/bin/sh
# merge.sh -- stat --shard and merge: the bytes, the errors and the exit code of one run over everything, for any
# number of shards, in any order, merged at once or in steps; and what is said of parts that do not fit.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
data=$MPSIM_SRCDIR/data

# ---- inputs of all layouts ----
# safetensors FILE HEADER: the header of a file, little endian
safetensors() {
    printf "$(printf '\\%03o\\%03o\\000\\000\\000\\000\\000\\000' $((${#2} % 256)) $((${#2} / 256)))" >"$1"
    printf '%s' "$2" >>"$1"
}
mkdir "$dir/odd" "$dir/mixed" "$dir/bad" "$dir/parts"
# empty tensors first, between and last; integers; one NaN and one Inf; names that need care
safetensors "$dir/odd/a_step_3.safetensors" '{"none":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"wgrad:x,\"\u001b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"nil":{"dtype":"BF16","shape":[3,0],"data_offsets":[16,16]},"i":{"dtype":"I32","shape":[2],"data_offsets":[16,24]},"act:h":{"dtype":"F16","shape":[3],"data_offsets":[24,30]},"end":{"dtype":"F64","shape":[0],"data_offsets":[30,30]}}'
printf '\000\000\200\076\000\000\300\177\000\000\200\177\000\000\000\001\001\000\000\000\002\000\000\000\001\000\377\173\000\074' >>"$dir/odd/a_step_3.safetensors"
safetensors "$dir/odd/b_step_3.safetensors" '{"only":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}'
safetensors "$dir/odd/c.safetensors" '{"i":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}}'
printf '\001\002\003\004' >>"$dir/odd/c.safetensors"
cp "$dir/odd/a_step_3.safetensors" "$dir/odd/d_step_12.safetensors"
printf 'no tensors' >"$dir/odd/README.md"
cp "$data/charlm/step_000100/rank_00000.safetensors" "$dir/mixed/grads.safetensors"
cp "$data/vectors/dot/volta.npz" "$dir/mixed/archive.npz"
mkdir "$dir/seeds" && gzip -dc "$MPSIM_SRCDIR/tests/fuzz/corpus/trace.tar.gz" | (cd "$dir/seeds" && tar -xf -)
cp "$dir/seeds/npy-f4" "$dir/seeds/npz-deflated" "$dir/mixed"
chmod -R u+w "$dir/mixed" # sources may be read-only
printf 'no tensors' >"$dir/mixed/notes.txt"
cat "$data"/charlm/step_*/* "$data"/digits-cnn/step_*/* | head -c 7000001 >"$dir/raw"
cat "$dir/raw" "$dir/raw" "$dir/raw" | head -c 20000000 >"$dir/huge"
cp "$dir/mixed/grads.safetensors" "$dir/bad/1.safetensors"
head -c 5000 "$dir/bad/1.safetensors" >"$dir/bad/2.safetensors" # a header that promises more
cp "$dir/mixed/archive.npz" "$dir/bad/3.npz"
printf 'XXXX' | dd of="$dir/bad/3.npz" bs=1 seek=60000 conv=notrunc 2>/dev/null # a member whose CRC is wrong
cp "$dir/bad/1.safetensors" "$dir/bad/4.safetensors"
ln -s nowhere "$dir/bad/5.safetensors"

# shards N FOLDER ARGUMENT...: its N parts in FOLDER; an exit code but 0 and 5 is kept in FOLDER/code
shards() {
    count=$1
    to=$2
    shift 2
    rm -rf "$to"
    mkdir "$to"
    k=1
    while [ $k -le "$count" ]; do
        "$MPSIM" stat --shard $k/"$count" -o "$to/$k" "$@" 2>"$to/err.$k"
        exit_code=$?
        [ $exit_code -eq 0 ] || [ $exit_code -eq 5 ] || echo $exit_code >"$to/code"
        k=$((k + 1))
    done
}
# Tensors that are not read are noted by who reads the file: by shards, not by merge.
unread() { cat "$@" | grep ': note: .*: not read: ' | sort -u; }
# whole FORM ARGUMENT...: what one run says, in $dir/whole.*; its notes of tensors that are not read in $dir/unread
whole() {
    form=$1
    shift
    # shellcheck disable=SC2086 # words
    "$MPSIM" stat $form "$@" >"$dir/whole" 2>"$dir/whole.err" </dev/null
    echo $? >"$dir/whole.code"
    unread "$dir/whole.err" >"$dir/unread"
    grep -v ': note: .*: not read: ' "$dir/whole.err" | sed 's/^mpsim: stat: --fail-if/mpsim: merge: --fail-if/' >"$dir/whole.told" || :
}
# merges FORM PART...: the same is said by merge
merges() {
    form=$1
    shift
    # shellcheck disable=SC2086 # words
    "$MPSIM" merge $form "$@" >"$dir/out" 2>"$dir/err" </dev/null
    echo $? >"$dir/code"
    cmp "$dir/whole" "$dir/out" && cmp "$dir/whole.told" "$dir/err" && cmp "$dir/whole.code" "$dir/code"
} >"$dir/cmp" 2>&1
# with_parts COMMAND...: and the parts whose numbers are in $numbers, of $folder
with_parts() {
    for number in $numbers; do set -- "$@" "$folder/$number"; done
    "$@"
}
# orders N FOLDER FORM: forwards; backwards; odd ones before even ones; halves that are parts themselves
orders() {
    many=$1 folder=$2 shown=$3
    odd=$(seq 1 2 "$many") even=$(seq 2 2 "$many")
    for numbers in "$(seq 1 "$many")" "$(seq "$many" -1 1)" "$odd $even"; do
        with_parts merges "$shown" || return 1
    done
    [ "$many" -ge 3 ] || return 0
    numbers=$odd && with_parts "$MPSIM" merge --partial -o "$folder/odd" && numbers=$even &&
        with_parts "$MPSIM" merge --partial -o "$folder/even" && merges "$shown" "$folder/even" "$folder/odd" &&
        "$MPSIM" merge --partial "$folder/even" "$folder/odd" >"$folder/all" && merges "$shown" "$folder/all"
}

# ---- option sets x layouts x numbers of shards x orders ----
# same NAME COUNTS SHARED FORMS ARGUMENT...: SHARED are the options of both, FORMS, with ';' between, those of the report,
# of which the first is tried in all orders
same() {
    due || { ok 1 "$1" && return; }
    name=$1
    counts=$2
    shared=$3
    forms=$4
    shift 4
    code=0
    for count in $counts; do
        # shellcheck disable=SC2086 # words
        shards "$count" "$dir/parts" $shared "$@"
        rest=$forms
        while [ "$rest" ]; do
            # shellcheck disable=SC2086 # words
            whole "${rest%%;*}" $shared "$@"
            unread "$dir"/parts/err.* | cmp - "$dir/unread" >"$dir/cmp" || code=1
            if [ "$rest" = "$forms" ]; then
                orders "$count" "$dir/parts" "${rest%%;*}" || code=1
            else
                numbers=$(seq "$count" -1 1) folder=$dir/parts
                with_parts merges "${rest%%;*}" || code=1
            fi
            case $rest in *\;*) rest=${rest#*;} ;; *) rest= ;; esac
        done
    done
    ok $code "$name"
}
forms='--json;-t;--ndjson;--csv --level step'
same "a trace" "$(turn 3 1 50 2 7)" '' '--json;-t' "$data/charlm"
turns 7 # the numbers of shards take turns, too: of 2, 4 or 5
same "a trace, in every form" "$(turn 3 1 50 2 7)" '' "$forms;;--csv;--csv --level kind;--csv --level total" "$data/charlm"
same "two traces, operands in any order" '3' '-s 1,2^10' '--json;-t' "$data/digits-cnn" "$data/charlm"
same "stochastic rounding" "$(turn 2 7)" '-f e4m3@cuda,fp16 -r src:9 --seed 5 -s 3' '--json;-t' "$data/charlm/step_000100" "$data/digits-cnn"
same "flushing, selection" '3' '-f e5m2,bf16 --flush-inputs --flush-subnormals --overflow saturate -k wgrad,act -m *fc* --scale-kinds all -s 1,2^4..2^6' \
    '--json;--csv;-t' "$data/charlm" "$data/digits-cnn"
same "--counts" "$(turn 1 7)" '--counts -r rtz -f e2m1' "$forms" "$data/charlm/step_000100"
same "odd files: empty tensors, NaN, integers, no numbers at all" "$(turn 1 2 3 7)" '-s 1,8' "$forms" "$dir/odd"
same "several layouts in a folder" "$(turn 7 1 3 50)" '' "$forms" "$dir/mixed"
same "one file of one tensor without a name" "$(turn 1 2 3 7)" '--dtype bf16 -r sr' '--json;-t' "$dir/huge"
same "a large tensor in odd pieces" '7' '--dtype fp16 --offset 1 -f e4m3 --big-endian' '--json' "$dir/raw"
same "no byte for most shards" '17' '--dtype e4m3' '--json;-t' "$dir/odd/README.md"
same "other layouts, packed ones, and what is none" '3' '--keep-going' '--json;-t' "$MPSIM_SRCDIR/tests/trace/recorded" \
    "$dir/seeds"
same "a condition that holds: exit code 1 and its lines" "$(turn 2 7)" '-s 2^16' \
    "--fail-if nan,inf,underflow>1%,total:sqnr<40;--json --fail-if kind:overflow,step:amax>1e-3;--fail-if nan>1e9" "$data/digits-cnn" "$dir/odd"
same "--keep-going: files that fail count as in one run" "$(turn 3 1 2 7)" '--keep-going' "--json;-t;--csv --level total;--fail-if underflow" "$dir/bad"
same "--keep-going: all fail" '3' '--keep-going' '-t;--json' "$dir/bad/2.safetensors" "$dir/nothing"
same "nothing is selected" '3' '-m nothing' '-t;--json' "$data/charlm"
same "no numbers are left" '2' '' '-t' "$dir/odd/c.safetensors"

# histograms are in parts that are made with them, and in JSON
code=0
for count in $(turn 1 7); do
    due || break
    shards $count "$dir/parts" --histogram -s 2^7 "$data/charlm/step_000100"
    whole '--json --histogram' -s 2^7 "$data/charlm/step_000100" && orders $count "$dir/parts" --json || code=1
    whole -t -s 2^7 "$data/charlm/step_000100" && orders $count "$dir/parts" -t || code=1
done
ok $code "histograms"

# threads
turns 1
shards 3 "$dir/parts" "$data/charlm" --threads 1
for k in 1 2 3; do
    "$MPSIM" stat --shard $k/3 --threads 5 "$data/charlm" >"$dir/other" && cmp "$dir/other" "$dir/parts/$k" || echo differs
done >"$dir/out" 2>&1
[ ! -s "$dir/out" ]
ok $? "a part does not depend on threads"

# ---- a shard reads its own files ----
mkdir "$dir/own"
for k in 1 2 3; do cat "$data/charlm/step_000100/rank_00000.safetensors" >"$dir/own/$k.safetensors"; done
head -c "$(wc -c <"$dir/own/1.safetensors")" /dev/zero >"$dir/own/2.safetensors"
run 0 stat --shard 1/3 -o "$dir/p1" "$dir/own/1.safetensors" "$dir/own/2.safetensors" "$dir/own/3.safetensors" &&
    run 0 stat --shard 3/3 -o "$dir/p3" "$dir/own/1.safetensors" "$dir/own/2.safetensors" "$dir/own/3.safetensors" &&
    run 3 stat --shard 2/3 -o "$dir/p2" "$dir/own/1.safetensors" "$dir/own/2.safetensors" "$dir/own/3.safetensors" && has own/2 err &&
    [ ! -e "$dir/p2" ]
ok $? "damage in the file of another shard does not matter; there is no part after a failure"

# ---- errors, each naming the part ----
trace=$data/charlm/step_000100
shards 3 "$dir/parts" -s 1,2^10 "$trace"
p=$dir/parts
refused() { # refused NAME PATTERN PART...: exit code 3, one line, no report
    name=$1
    pattern=$2
    shift 2
    run 3 merge "$@" && has "$pattern" err
    ok $? "$name"
}
refused "a shard twice" "parts/again: shard 2 of 3 is also in .*parts/2" "$p/1" "$p/2" "$p/3" "$(cp "$p/2" "$p/again" && echo "$p/again")"
refused "the same part twice" "parts/1: shard 1 of 3 is also in .*parts/1" "$p/1" "$p/2" "$p/3" "$p/1"
refused "one missing" "merge: shard 2 of 3 is missing" "$p/1" "$p/3"
refused "two missing" "merge: shards 1 to 2 of 3 are missing" "$p/3"
for k in 1 2 3 4 5 6 7 8 9; do "$MPSIM" stat --shard ${k}00001/1000000 -o "$p/far$k" "$trace"; done
refused "many missing" "merge: shards 1 to 100000, 100002 to 200000, .*, \.\.\. of 1000000 are missing" "$p"/far?
run 0 merge -q -o "$dir/quiet" "$p/1" "$p/2" "$p/3" && [ ! -s "$dir/err" ] && run 0 merge -o "$dir/loud" "$p/1" "$p/2" "$p/3" && cmp -s "$dir/quiet" "$dir/loud"
ok $? "-q"
"$MPSIM" merge --partial -o "$p/some" "$p/3" "$p/1"
refused "a shard twice, in a larger part" "shard 3 of 3 is also in" "$p/some" "$p/2" "$p/3"
code=0
size=$(wc -c <"$p/2")
turns 6
for cut in 0 5 12 13 17 40 200 $((size / 2)) $((size - 9)) $((size - 1)); do
    head -c "$cut" "$p/2" >"$p/cut"
    run 3 merge "$p/1" "$p/cut" "$p/3" && has "parts/cut: " err || code=1
done
head -c "$(($(wc -c <"$p/some") - $(wc -c <"$p/3") + 300))" "$p/some" >"$p/cut"
run 3 merge "$p/2" "$p/cut" && has "parts/cut: truncated" err || code=1
{ cat "$p/2" && printf x; } >"$p/cut"
run 3 merge "$p/1" "$p/cut" "$p/3" && has "parts/cut: .*something follows" err || code=1
ok $code "a truncated part, at ten places; one that is too long"
# flip FILE AT: another byte there
flip() {
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "$(printf '\\%03o' $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
code=0
at=0
while [ $at -lt "$size" ] && due; do
    cp "$p/2" "$p/flipped"
    flip "$p/flipped" $at
    run 3 merge --json "$p/1" "$p/flipped" "$p/3" && has "parts/flipped: " err || code=1
    at=$((at + size / 31))
done
ok $code "a flipped bit, at thirty places"
other() { # other NAME PATTERN ARGUMENT...: a part of other options than $p/1
    name=$1
    pattern=$2
    shift 2
    due && "$MPSIM" stat -o "$p/other" "$@" 2>"$dir/err"
    refused "$name" "parts/other: $pattern" "$p/1" "$p/other" "$p/3"
}
other "another scale" "other options: --scale 1,2^11, which is 1,2^10 in .*parts/1" --shard 2/3 -s 1,2^11 "$trace"
other "an option more" "other options: with --seed 3, which .*parts/1 is without" --shard 2/3 -s 1,2^10 --seed 3 "$trace"
other "an option less" "other options: without --scale 1,2^10, which .*parts/1 is with" --shard 2/3 "$trace"
other "an option for another" "other options: with --preset cuda, which .*parts/1 is without" --shard 2/3 -p cuda "$trace"
other "another selection" "other options: with --match a\\*" --shard 2/3 -s 1,2^10 -m 'a*' "$trace"
other "another number of shards" "of 4 shards, .*parts/1 of 3" --shard 2/4 -s 1,2^10 "$trace"
other "another file" "other inputs: 1 files of [0-9]* bytes, in .*parts/1 1 of" --shard 2/3 -s 1,2^10 "$data/digits-cnn/step_000100"
turns 1
mkdir "$dir/sizes"
cp "$trace"/* "$dir/sizes/one" && cp "$trace"/* "$dir/sizes/two" && chmod -R u+w "$dir/sizes"
shards 3 "$dir/parts.sizes" "$dir/sizes"
truncate -s +8 "$dir/sizes/two" && "$MPSIM" stat --shard 3/3 -o "$dir/parts.sizes/3" --keep-going "$dir/sizes" 2>"$dir/err"
"$MPSIM" stat --shard 3/3 -o "$dir/parts.sizes/3" -m nothing "$dir/sizes" 2>"$dir/err"
run 3 merge "$dir/parts.sizes/1" "$dir/parts.sizes/2" "$dir/parts.sizes/3" && has "sizes/3: other" err
ok $? "a file that changed its size"
sed '1s,/3$,/5,' "$p/2" >"$p/newer"
refused "a newer version" "parts/newer: mpsim-part/5: a newer version" "$p/1" "$p/newer" "$p/3"
refused "no part" "rank_00000.safetensors: not a part of a report" "$p/1" "$trace/rank_00000.safetensors"
run 4 merge "$p/1" "$p/nothing" && has "parts/nothing: " err
ok $? "a part that is not there"
run 3 merge "$dir" && has "not a regular file" err
ok $? "a folder"
run 2 merge -o "$p/2" "$p/1" "$p/2" "$p/3" && has "parts/2" err
ok $? "the report replaces no part"

# ---- the command line ----
turns 8
usage() { # usage NAME PATTERN ARGUMENT...
    name=$1
    pattern=$2
    shift 2
    run 2 "$@" && has "$pattern" err
    ok $? "$name"
}
for shard in 0/3 4/3 1 1/ /3 a/b 1/0 -1/3 1/1000001 1/3/3; do usage "--shard $shard" "must be K/N" stat --shard $shard "$trace"; done
for form in --json --ndjson --csv -t '--level kind' '--fail-if nan'; do
    # shellcheck disable=SC2086 # words
    usage "--shard $form" "mpsim merge writes the report" stat --shard 1/3 $form "$trace"
done
usage "a pipe has no size" "not a regular file" stat --shard 1/3 --dtype bf16 -
usage "merge without parts" "no PART given" merge
usage "merge --level without --csv" "level needs --csv" merge --level kind "$p/1"
usage "merge --partial --json" "write no report" merge --partial --json "$p/1"
usage "merge --partial --list" "exclude" merge --partial --list "$p/1"
turns 1
whole -t -s 1,2^10 "$trace"
"$MPSIM" merge -t "$p/1" - "$p/3" <"$p/2" >"$dir/out" 2>"$dir/err" && cmp "$dir/whole" "$dir/out" >"$dir/cmp" &&
    mkfifo "$dir/pipe" && { cat "$p/2" >"$dir/pipe" & } && merges -t "$p/1" "$p/3" "$dir/pipe"
ok $? "a part through a pipe"
run 3 info "$p/2" && has "parts/2: .*a part of a report: see mpsim merge" err
ok $? "info knows a part"
run 0 merge --list "$p/2" "$p/some" && has "parts/2: shard 2 of 3, mpsim .* --scale 1,2^10 " && has "parts/some: shards 1, 3 of 3"
ok $? "merge --list"
run 2 merge --fail-if nothing "$p/1" "$p/2" "$p/3" && has '^mpsim: merge: --fail-if: .nothing. is not a condition' err
ok $? "a condition that is none"
finish
