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
run 3 judge sum "$x" && has "x.npy: expected an array 'y', found none" err; ok $? "a role is missing"
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
