#!/bin/sh
# judge.sh -- mpsim judge: arrays from files, roles, reports of every form, exit codes, bad input (usage errors: judge.md).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
real=$MPSIM_SRCDIR/data/digits-cnn/step_020000/rank_00000.safetensors

# npy FILE DESCR SHAPE OCTAL...: an npy file of these bytes
npy() {
    to=$1 header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
    shift 3
    {
        printf '\223NUMPY\1\0\166\0%s%*s\n' "$header" $((118 - ${#header} - 1)) ''
        for bytes in "$@"; do printf "$bytes"; done
    } >"$dir/$to.npy"
}
one='\0\0\200\077' two='\0\0\0\100' three='\0\0\100\100' five='\0\0\240\100' six='\0\0\300\100' nine='\0\0\020\101'
x=$dir/x.npy y=$dir/y.npy

# ---- sums by hand: rows 1 2 and 3 2
npy x '<f4' 2,2 $one $two $three $two
npy y '<f4' 2, $three $five
run 0 judge sum "$x" "$y" && has '^sum y: .*, equal in all 2 results$' && has '^the same results for these inputs: '; ok $? "sums of rows"
npy y '<f4' 2, $three $six
run 1 judge sum "$x" "$y" --like sequential && has '^sum y: 1 of 2 results are not those of sequential$'; ok $? "a wrong sum: exit code 1"
run 1 judge sum "$x" "$y" --like sequential --csv && cat >"$dir/want" <<'END' && cmp "$dir/want" "$dir/out"
row,column,exact,found_code,found,expected_code,expected
0,1,5,0x40c00000,6,0x40a00000,5
END
ok $? "the result that differs as CSV"
run 1 judge sum "$x" "$y" --like sequential --json && has '"schema": "mpsim.judge/1"' && has '"kind": "sum"' && has '"row": "sequential"' && has '"equal": false' && has '"results": 2' && has '"differ": 1'
ok $? "JSON"
run 1 judge sum "$x" "$y" --like sequential --ndjson && [ "$(wc -l <"$dir/out")" -eq 1 ] && has '"found_code": "0x40c00000"'; ok $? "a line each"
run 1 judge SUM "$x" "$y" --like sequential -o "$dir/report" && [ ! -s "$dir/out" ] && grep -q '^sum y: 1 of 2' "$dir/report"; ok $? "a report in a file"

# ---- roles
npy sums '<f4' 2, $three $five
run 0 judge sum "$x" "$dir/sums.npy" --role 'y=*sums.npy'; ok $? "--role: a file of another name"
run 0 judge sum "$x" "$dir/sums.npy" --role y=sums; ok $? "--role: the name of a file without its folder and ending"
run 3 judge sum "$x" && has "x.npy: expected an array 'y', found none: the files have '$x'; --role y=NAME gives one this role" err; ok $? "a role is missing"
run 3 judge sum "$x" "$y" "$dir/sums.npy" --role 'y=*sums.npy' --role 'y=*/y.npy' && has "two arrays have the role 'y'" err; ok $? "a role is there twice"
run 0 judge sum "$x" "$y" "$dir/sums.npy" --role 'y=*sums.npy'; ok $? "--role decides, not the name"
cp "$x" "$dir/a.npy" && npy b '<f4' 2,2 $one $one $one $one && npy d '<f4' 2,2 $three $three $five $five
run 0 judge product "$dir/a.npy" "$dir/b.npy" "$dir/d.npy" && has '^product d: '; ok $? "a product"
npy d '<f4' 2,2 $six $six $nine $nine
run 1 judge product "$dir/a.npy" "$dir/b.npy" "$dir/d.npy" --like fma; ok $? "another product"
run 1 judge product "$real" --role a=act:fc2 --role b=weight:fc2.weight --role bias=weight:fc2.bias --role d=out:fc2 --like fma --csv && [ "$(wc -l <"$dir/out")" -gt 1 ]
ok $? "tensors of a recorded training"
run 0 cast -f bf16 -m weight:fc1.weight --to npy -q -o "$y" "$real" && run 0 judge cast "$real" "$y" --role x=weight:fc1.weight --like bf16 && has 'equal in all 2,048 results'
ok $? "a cast"
npy param '<f4' 2, $one $two && npy grad '<f4' 2, $one $one && npy new_param '<f4' 2, '\0\0\0\0' $one
run 0 judge update "$dir/param.npy" "$dir/grad.npy" "$dir/new_param.npy" --like sgd:lr=1 && has '^update new_param: sgd@'; ok $? "a step"
for threads in 1 2; do
    run 1 judge softmax "$x" "$dir/d.npy" --role 'y=*d.npy' --json --threads $threads && cp "$dir/out" "$dir/threads$threads"
done
cmp "$dir/threads1" "$dir/threads2"; ok $? "threads change nothing"

# ---- a stored run: a product, whose results are a file or a digest, and a cast
run=$dir/run
mkdir "$run" && cp "$dir/a.npy" "$dir/b.npy" "$x" "$run" && npy run/d '<f4' 2,2 $three $three $five $five && npy run/wrong '<f4' 2,2 $three $three $five $six
digest=$(printf "$three$three$five$five" | sha256sum | cut -c 1-64)
manifest() { # manifest OPERATION...: run.json
    printf '{"schema": "mpsim.run/1", "files": ["a.npy", "b.npy", "x.npy", "d.npy", "wrong.npy"], "operations": [' >"$run/run.json"
    between=
    for operation in "$@"; do
        printf '%s\n%s' "$between" "$operation"
        between=,
    done >>"$run/run.json"
    printf ']}\n' >>"$run/run.json"
}
product() { # product NAME ROW D
    printf '{"name": "%s", "kind": "product", "row": %s, "arrays": {"a": "a", "b": {"tensor": "b", "transposed": true}, "d": %s}}' "$@"
}
kept=$(product kept '"fma"' '"d"') right="\"format\": \"binary32\", \"shape\": [2, 2]"
manifest "$kept" "$(product searched null '"d"')" "$(product hashed '"fma"' "{\"digest\": \"$digest\", $right}")" '{"kind": "cast", "row": "binary32", "arrays": {"x": "a", "y": "x"}}'
run 0 judge "$run" && has '4 of 4 operations equal in all bits: 12 of 12 results, 1 of 1 digests$'; ok $? "a stored run"
run 0 judge "$run/run.json" --json && has '"schema": "mpsim.judge-run/1"' && has '"first_guilty": null' && has '"number": 3, "name": "hashed", .*"digests": 1, "digests_differ": 0'; ok $? "a stored run as JSON"
manifest "$kept" "$(product first '"fma"' '"wrong"')" "$(product second '"fma"' '"wrong"')"
run 1 judge "$run" && has '1 of 3 operations equal in all bits: 10 of 12 results$' && has 'first guilty operation: 2, first (product)$' && has '^product d: 1 of 4 results are not those of fma$' && has '0x40c00000'
ok $? "the first guilty operation"
run 1 judge "$run" --csv && cat >"$dir/want" <<'END' && cmp "$dir/want" "$dir/out"
number,name,kind,state,row,results,differ,digests,digests_differ,text
1,kept,product,equal,fma,4,0,0,0,
2,first,product,differs,fma,4,1,0,0,
3,second,product,differs,fma,4,1,0,0,
END
ok $? "operations of a run as CSV"
wrong=$(printf "$three$three$five$six" | sha256sum | cut -c 1-64) top=$(printf "$three$three" | sha256sum | cut -c 1-64) bottom=$(printf "$five$six" | sha256sum | cut -c 1-64)
manifest "$(product whole '"fma"' "{\"digest\": \"$wrong\", $right}")" "$(product rows '"fma"' "{\"digest\": [\"$top\", \"$bottom\"], \"rows\": 1, $right}")"
run 1 judge "$run" && has '0 of 3 digests$\|1 of 3 digests$' && has '  the digest of d differs: it is not that of fma$' && run 1 judge "$run" --ndjson && has 'd: 1 of 2 digests differ, first that of row 1'
ok $? "digests of results that were not kept"
manifest "$(product unknown null "{\"digest\": \"$digest\", $right}")"
"$MPSIM" judge "$run" >"$dir/out" 2>"$dir/err"
[ $? -eq 5 ] && has '^not judged: 1 of 1$' && has 'run.json: 1 of 1 operations were not judged' err && has 'no row is given, no row of an operation before gives these digests'; ok $? "no row: exit code 5"
manifest "$kept" "$(product before null "{\"digest\": \"$digest\", $right}")"
run 0 judge "$run"; ok $? "the row of an operation before"
run_refused() { # run_refused TEXT OPERATION
    manifest "$2"
    run 3 judge "$run" && has "$1" err && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "refused: $1"
}
run_refused "run.json: operation 1 (x): 'rwo' is not a key here: name, kind, row, try, arrays, about" '{"name": "x", "rwo": "fma"}'
run_refused "run.json: operation 1 (no name): kind: 'conv' is not an operation that is judged" '{"kind": "conv"}'
run_refused "operation 1 (x): array 'd': no file has a tensor 'e'" "$(product x '"fma"' '"e"')"
run_refused "operation 1 (x): expected an array 'd', found none" '{"name": "x", "kind": "product", "arrays": {"a": "a", "b": "b"}}'
run_refused "operation 1 (no name): array 'z': is not a role of cast" '{"kind": "cast", "arrays": {"x": "a", "y": "a", "z": "a"}}'
run_refused "array 'a': expected a tensor: of product only results may be digests" "{\"kind\": \"product\", \"arrays\": {\"a\": {\"digest\": \"$digest\", $right}, \"b\": \"b\", \"d\": \"d\"}}"
run_refused "array 'd': digest: expected 64 hexadecimal digits, found 12" "$(product x '"fma"' "{\"digest\": \"12\", $right}")"
run_refused "array 'd': expected 2 digests, found 1" "$(product x '"fma"' "{\"digest\": \"$digest\", \"rows\": 1, $right}")"
run_refused "array 'd': a digest needs 'format'" "$(product x '"fma"' "{\"digest\": \"$digest\", \"shape\": [2, 2]}")"
run_refused "operation 1 (x): 'fmaa' is not a row of a product" "$(product x '"fmaa"' '"d"')"
run_refused "operations: expected a list of operations" ''
printf '{"schema": "mpsim.run/2"}' >"$run/run.json" && run 3 judge "$run" && has "run.json: expected the schema mpsim.run/1, found 'mpsim.run/2'" err; ok $? "another schema"
printf '{' >"$run/run.json" && run 3 judge "$run" && has 'run.json: line 1: ' err; ok $? "no JSON"
run 2 judge "$run" --like fma && has 'a stored run takes no --like' err; ok $? "a run has rows of its own"

# ---- what cannot be judged
refused() { # refused CODE TEXT WORD...
    code=$1 text=$2
    shift 2
    run "$code" judge "$@" && has "$text" err; ok $? "refused: $text"
}
npy param3 '<f4' 3, $one $one $one
npy wide '<f8' 1,1 '\0\0\0\0\0\0\0\0'
npy y '<f4' 2, $three $six
refused 2 "'lanes:3' is not a row of a sum" sum "$x" "$y" --like lanes:3
refused 2 "'softmax:top=1' is not a row of a softmax" softmax "$x" "$dir/d.npy" --role 'y=*d.npy' --like softmax:top=1
refused 3 'expected a sum for each row or column of x' sum "$x" "$dir/param3.npy" --role 'y=*param3.npy'
refused 3 'found binary64' norm "$dir/wide.npy" "$y" --role 'x=*wide.npy'
refused 3 'expected as many results as numbers' cast "$x" "$y"
refused 4 'cannot open' sum "$x" "$dir/missing.npy"
printf x >"$dir/bad.npy"
refused 3 'bad.npy' sum "$x" "$dir/bad.npy"
finish
