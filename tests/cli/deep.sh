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
# small FILE: each command that reads one, on a small stack; its exit code and its line
small() {
    file=$dir/$1
    for command in info stat cast; do
        case $command in
        info) set -- ;;
        stat) set -- -f mxfp8,fp16 ;;
        cast) set -- -f fp16 -o "$dir/cast.safetensors" ;;
        esac
        (ulimit -s $stack && exec "$MPSIM" $command "$@" "$file") >"$dir/out" 2>"$dir/err" </dev/null
        echo $? "$(grep -c '' "$dir/err")" "$(sed 's/.*: //' "$dir/err")"
    done
}
deep() { # deep FILE [WORDS]: refused for its depth
    words=${2-nested deeper than 100}
    [ "$(small "$1" | grep -c "^3 1 .*$words")" -eq 3 ]
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
{ printf '\201\241a'; again $levels '\201\241a'; printf '\001'; } >"$dir/maps.msgpack"
deep maps.msgpack 'maps are nested deeper than '
# a list of weights as torch.export writes it: a zip archive of one member, whose sizes are typed
bytes4() { printf "\\$(printf %o $(($1 % 256)))\\$(printf %o $(($1 / 256 % 256)))\\$(printf %o $(($1 / 65536 % 256)))\\$(printf %o $(($1 / 16777216)))"; }
member=data/weights/model_weights_config.json
zip() { # zip FILE: $dir/FILE.pt2 has it as that member; CRCs are not compared
    size=$(wc -c <"$dir/$1")
    {
        printf 'PK\003\004\024\000\000\000\000\000\000\000\041\000\000\000\000\000' && bytes4 "$size" && bytes4 "$size"
        printf '\046\000\000\000%s' $member && cat "$dir/$1"
        printf 'PK\001\002\024\000\024\000\000\000\000\000\000\000\041\000\000\000\000\000' && bytes4 "$size" && bytes4 "$size"
        printf '\046\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000%s' $member
        printf 'PK\005\006\000\000\000\000\001\000\001\000' && bytes4 84 && bytes4 $((68 + size)) && printf '\000\000'
    } >"$dir/$1.pt2"
}
{ printf '{"config":{"w":'; again $levels '{"tensor_meta":'; } >"$dir/weights" && zip weights
deep weights.pt2 'the list of weights is not JSON with a config'
# as deep as JSON may be, so that all of it is built, and freed
{ printf '{"config":{"w":{"path_name":"w0","tensor_meta":'; again 497 '['; again 497 ']'; printf '}}}'; } >"$dir/nest" && zip nest
deep nest.pt2 'its member is not in the archive'

again $levels '[' >"$dir/index.safetensors.index.json"
{ printf '\340\223\004\000\000\000\000\000'; again 60000 '{"a":'; } >"$dir/header.safetensors"
for f in index.safetensors.index.json header.safetensors; do
    (ulimit -s $stack && exec "$MPSIM" info "$dir/$f") >"$dir/out" 2>"$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ]
    [ $? -ne 0 ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && ! has ' -- ' err
    ok $? "JSON: $f"
done
has 'not valid JSON: nested deeper than 500' err
ok $? "JSON: less than jansson takes, whose stack is too large for threads"
again $levels '[' >"$dir/policy.yaml"
(ulimit -s $stack && exec "$MPSIM" train -P "$dir/policy.yaml") >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] && has 'nested too deeply' err
ok $? "YAML"
finish
