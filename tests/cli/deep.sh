#!/bin/sh
# deep.sh -- files nested a million deep, in every way that a pickle, JSON and YAML can be: one line says so, and no stack
# is exhausted. Fuzzing does not find these: its inputs are short.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
levels=1000000
stack=256
again() { # again N TEXT: the text so often
    yes "$(printf "$2")" | tr -d '\n' | head -c $(($1 * $(printf "$2" | wc -c)))
}
deep() { # deep FILE: refused for its depth, on a small stack
    (ulimit -s $stack && exec "$MPSIM" info "$dir/$1") >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq 3 ] && has 'nested deeper than 100$' err && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "$1"
}
passed() { # passed FILE: read to its end, it has no tensors
    (ulimit -s $stack && exec "$MPSIM" info "$dir/$1") >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq 0 ] && has ' 0 tensors'
    ok $? "$1"
}

begin='\200\002'
{ printf "${begin}cmodule\nClass\nq\001"; again $levels 'h\001'; printf N; again $levels '\205R'; printf .; } >"$dir/called"
passed called # what a class outside the table is called with is not looked into
{ printf "${begin}cmodule\nClass\nq\001"; again $levels 'h\001'; printf N; again $levels '\205\201'; printf .; } >"$dir/objects"
deep objects
{ printf "$begin"; again $levels ']'; again $((levels - 1)) a; printf .; } >"$dir/lists"
deep lists
{ printf "${begin}N"; again $levels '\205'; printf .; } >"$dir/tuples"
deep tuples
{ printf "$begin"; again $levels '}K\001'; printf '}'; again $levels s; printf .; } >"$dir/dicts"
deep dicts
{ printf "${begin}ctorch._utils\n_rebuild_parameter\nq\001"; again $levels 'h\001'; printf N; again $levels '\205R'; printf .; } >"$dir/calls"
deep calls
{ printf "${begin}ctorch._tensor\n_rebuild_from_type_v2\nq\001ctorch._utils\n_rebuild_parameter\nq\002ctorch\nTensor\nq\003"
    again 200000 'h\001(h\002h\003'; printf N; again 200000 '\205tR'; printf .; } >"$dir/types"
deep types
{ printf "${begin}cmodule\nclass\n)\201}q\001"; again $levels 'h\001\206'; printf b.; } >"$dir/states"
deep states
{ printf '\200\004'; again $levels '\217('; again $levels '\220'; printf .; } >"$dir/sets"
passed sets
{ printf '\200\004'; again $levels '('; again $levels '\221'; printf .; } >"$dir/frozen-sets"
passed frozen-sets

again $levels '[' >"$dir/index.safetensors.index.json"
{ printf '\340\223\004\000\000\000\000\000'; again 60000 '{"a":'; } >"$dir/header.safetensors"
for f in index.safetensors.index.json header.safetensors; do
    (ulimit -s $stack && exec "$MPSIM" info "$dir/$f") >"$dir/out" 2>"$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ]
    [ $? -ne 0 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && ! has ' -- ' err
    ok $? "JSON: $f"
done
again $levels '[' >"$dir/policy.yaml"
(ulimit -s $stack && exec "$MPSIM" train -P "$dir/policy.yaml") >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] && has 'nested too deeply' err
ok $? "YAML"
finish
