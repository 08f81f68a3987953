#!/bin/sh
# quick.sh -- small files that were slow, or could be: each takes a bounded multiple of its bytes and of what is shown, on a
# clock of CPU seconds that is far above it (sim/trace/impl.h). Then what is unpacked is bounded by the room in TMPDIR.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
clock=4 # CPU seconds; all of these take less than half of one
again() { # again N TEXT: the text so often; \377 stands for NUL
    yes "$(printf "$2")" | tr -d '\n' | head -c $(($1 * $(printf "$2" | wc -c))) | tr '\377' '\000'
}
quick() { # quick CODE NAME ARGUMENT...: ends with that exit code before the clock does
    due || { ok 1 "$2" && return; }
    want=$1
    what=$2
    shift 2
    (ulimit -t $clock && exec "$MPSIM" "$@") >"$dir/out" 2>"$dir/err" <"${from:-/dev/null}"
    code=$?
    [ $code -eq "$want" ]
    ok $? "$what: exit code $code"
}
byte() { printf "\\\\%03o" "$1"; }
le() { # le BYTES NUMBER: little-endian
    u=$2
    for _ in $(seq "$1"); do
        printf "$(byte $((u % 256)))"
        u=$((u / 256))
    done
}

# ---- pickles: what is written once is shown again and again ----
turns 6
: >"$dir/err"
get() { printf 'h'; le 1 "$1"; }
keep() { printf 'q'; le 1 "$1"; }
doubled() { # doubled FROM N: lists of two of the value FROM, N levels, kept behind it
    for i in $(seq "$1" $(($1 + $2 - 1))); do
        printf ']('
        get "$i"
        get "$i"
        printf e
        keep $((i + 1))
    done
    printf .
}
real='G\001\267\215\302\227\361\303\361' # of 17 digits
{ # a key of 32 x 32 numbers, in dicts that are shown 100,000 times
    printf '\200\002%b' "$real"; keep 0
    printf '('; again 32 'h\377'; printf t; keep 1
    printf '('; again 32 'h\001'; printf t; keep 2
    printf '}'; get 2; printf 'K\001s'; keep 3
    printf '0('; again 2000 'h\003'; printf l; keep 4
    doubled 4 10
} >"$dir/key.pkl"
quick 3 "a pickle of $(wc -c <"$dir/key.pkl") bytes: a long key of numbers" info "$dir/key.pkl"
has 'again and again$' err; ok $? "which is said"
{ printf '\200\002]('; again 100 "$real"; printf e; keep 0; doubled 0 60; } >"$dir/numbers.pkl"
quick 3 "a pickle: a list of numbers, shared 2^60 times" info "$dir/numbers.pkl"
{ printf '\200\002X\210\023\000\000'; again 5000 x; keep 0; doubled 0 60; } >"$dir/text.pkl"
quick 3 "a pickle: a text, shared 2^60 times" info "$dir/text.pkl"
{ printf '\200\002('; again 8000 'G\377\377\377\377\377\377\377\007'; printf 'l.'; } >"$dir/tiny.pkl"
quick 0 "a pickle: subnormal numbers" info -v "$dir/tiny.pkl"
printf '\200\002N.' >"$dir/nested"
for _ in 1 2 3 4; do # files within pickles, each used 300 times
    {
        printf '\200\002ctorch.storage\n_load_from_bytes\nB'; le 4 "$(wc -c <"$dir/nested")"; cat "$dir/nested"
        printf '\205R'; keep 0; printf '('; again 300 'h\377'; printf 'l.'
    } >"$dir/nested.pkl"
    mv "$dir/nested.pkl" "$dir/nested"
done
quick 3 "a pickle: files within files, each used again" info "$dir/nested"
has 'used too often$' err; ok $? "which is said"

# ---- torch.distributed.checkpoint: tensors that share what is said of them ----
u() { printf '\214'; le 1 ${#1}; printf '%s' "$1"; }
object() { printf 'ctorch.distributed.checkpoint.metadata\n%s\n)\201}(' "$1"; }
none='ctorch\nSize\n((K\000ttR'
names() { # names N VALUE: pairs of a dict
    awk -v n="$1" -v value="$2" 'BEGIN { for (i = 0; i < n; i++) { s = "t" i; printf "\214%c%s%s", length(s), s, value } }'
}
mkdir "$dir/distcp"
{
    printf '\200\002]'; keep 1; printf '0'
    object TensorStorageMetadata
    u properties; object TensorProperties; u dtype; printf 'ctorch\nfloat32\nub'
    u size; printf "$none"; u chunks; get 1; printf ub; keep 2; printf '0'
    u ''; keep 3; printf '0('; again 30000 'h\003'; printf t; keep 4; printf '0'
    object Metadata
    u state_dict_metadata; printf '}('; names 4000 "$(get 2)"; printf u
    u storage_data; printf '}'
    u planner_data; printf '}('; names 4000 "$(get 4)"; printf u
    printf 'ub.'
} >"$dir/distcp/.metadata"
quick 0 "torch.distributed.checkpoint: 4000 tensors share a path" info "$dir/distcp"

# ---- patterns, policies, names ----
{ printf '(1,'; again 15000 '0*0,'; printf ')*1000000'; } >"$dir/pattern"
quick 0 "a pattern: items without steps, repeated" scaler --pattern "@$dir/pattern"
awk 'BEGIN { for (i = 0; i < 38000; i++) printf "%%TAG !a%d! tag:a,2000:\n", i; print "---\na: 1" }' >"$dir/directives.yaml"
quick 3 "a policy: directives" train --steps 1 -P "$dir/directives.yaml"
awk 'BEGIN { for (i = 0; i < 9000; i++) printf "k%d: 1\n", i }' >"$dir/keys.yaml"
quick 3 "a policy: keys" train --steps 1 -P "$dir/keys.yaml"
safetensors() { # safetensors FILE: of the header on standard input, no elements
    cat >"$dir/header"
    { le 8 "$(wc -c <"$dir/header")"; cat "$dir/header"; } >"$dir/$1"
}
awk 'BEGIN { printf "{"; for (i = 0; i < 12000; i++) printf "%s\"%s.%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
    i ? "," : "", "model.layers.mlp.up_proj.weight", i; printf "}" }' | safetensors many.safetensors
quick 0 "safetensors: tensors" info "$dir/many.safetensors"
quick 0 "safetensors: tensors side by side" diff "$dir/many.safetensors" "$dir/many.safetensors"
awk 'BEGIN { for (k = 0; k < 2000; k++) s = s "a"; printf "{"; for (i = 0; i < 300; i++)
    printf "%s\"%s%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "", s, i; printf "}" }' | safetensors long.safetensors
quick 0 "rules of --map over long names" info --map '(a*)(a*)(.*)(.*)(a|b)(.*)c=weight:\1' "$dir/long.safetensors"

# ---- logs ----
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "step %d scale %d loss 1e-%d\n", 20000 - i, 2 ^ (i % 16), i % 300 }' >"$dir/log"
quick 0 "a log: steps that fall, scales that change" scaler --log "$dir/log" -c all --json
awk 'BEGIN { for (i = 0; i < 9000; i++) printf "step,loss,a%d\n%d,2,3\n", i, i }' >"$dir/log.csv"
quick 0 "a log: a header for each row" log "$dir/log.csv"
again 300000 '{"a":' >"$dir/log"
quick 3 "a log: an open brace again and again" log "$dir/log"
again 200000 'Loss is ' >"$dir/said"
from=$dir/said
quick 3 "a message: its first words again and again" explain -
from=

# ---- GGUF, msgpack ----
{ printf 'GGUF'; le 4 3; le 8 0; le 8 1; le 8 1; printf k; le 4 9; le 4 8; le 8 60000; again 60000 '\001\377\377\377\377\377\377\377a'; again 15 '\377'; } >"$dir/gguf"
quick 0 "GGUF: an array of texts" info "$dir/gguf"
{ printf '\336\001\000'; for i in $(seq 256); do printf '\244k%03d\200' $((i - 1)); done; } >"$dir/flax.msgpack"
quick 0 "msgpack: maps" info "$dir/flax.msgpack"

turns 1
# ---- what is unpacked: no more than TMPDIR has room for ----
build=${MPSIM%/*}
little=$build/tests/support/failcall.so
room() { # room NAME ARGUMENT...: with 1 MB left, one line that names the place; with enough, none
    what=$1
    shift
    LD_PRELOAD=$little MPSIM_FAIL_ROOM=1000000 TMPDIR=$dir "$MPSIM" "$@" >"$dir/out" 2>"$dir/err"
    [ $? -eq 4 ] && has "a temporary file in $dir has room for: set TMPDIR\$" err && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "$what: more than there is room for"
    run 0 "$@"; ok $? "$what: otherwise"
}
LD_PRELOAD=$little "$MPSIM" formats fp16 >"$dir/out" 2>&1 && [ -f "$little" ] || finish
[ -s "$dir/out" ] || finish
npy='\223NUMPY\001\000\166\000' # version 1, a header of 118 bytes
{ printf "$npy"; printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (500000,), }"; head -c 2000000 /dev/zero; } | gzip -n >"$dir/a.npy.gz"
room "a packed file" info --max-ratio 2000 "$dir/a.npy.gz"
{ printf "$npy"; printf '%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (500000,), }"; head -c 2000000 /dev/zero; } >"$dir/a.npy"
mkfifo "$dir/pipe"
cat "$dir/a.npy" >"$dir/pipe" 2>/dev/null &
LD_PRELOAD=$little MPSIM_FAIL_ROOM=1000000 TMPDIR=$dir "$MPSIM" info "$dir/pipe" >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] && has 'the pipe gives more than .*: set TMPDIR$' err; ok $? "a pipe: more than there is room for"
wait

# a member of a zip archive, deflated by gzip: its local header in local, its row of the directory in rows
: >"$dir/local"
member() { # member NAME: what is on standard input
    gzip -n >"$dir/gz"
    at=$(wc -c <"$dir/local")
    all=$(wc -c <"$dir/gz")
    packed=$((all - 18)) # between a head of 10 bytes and the CRC and the size
    {
        le 2 20; le 2 0; le 2 8; le 4 0
        tail -c 8 "$dir/gz" | head -c 4
        le 4 $packed
        tail -c 4 "$dir/gz"
        le 2 ${#1}; le 2 0
    } >"$dir/fields"
    { printf 'PK\003\004'; cat "$dir/fields"; printf '%s' "$1"; tail -c +11 "$dir/gz" | head -c $packed; } >>"$dir/local"
    { printf 'PK\001\002'; le 2 20; cat "$dir/fields"; le 6 0; le 4 0; le 4 "$at"; printf '%s' "$1"; } >>"$dir/rows"
}
{
    printf '\200\002}'; u w; printf 'ctorch._utils\n_rebuild_tensor_v2\n(('
    u storage; printf 'ctorch\nFloatStorage\n'; u 0; u cpu; printf 'J'; le 4 500000
    printf 'tQK\000(J'; le 4 500000; printf 't(K\001t\211ccollections\nOrderedDict\n)RtRs.'
} | member a/data.pkl
head -c 2000000 /dev/zero | member a/data/0
{ cat "$dir/local" "$dir/rows"; printf 'PK\005\006'; le 4 0; le 2 2; le 2 2; le 4 "$(wc -c <"$dir/rows")"; le 4 "$(wc -c <"$dir/local")"; le 2 0; } >"$dir/a.pt"
room "a member of a PyTorch file" stat -q -f bf16 "$dir/a.pt"
finish
