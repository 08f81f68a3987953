#!/bin/sh
# run.sh -- the benchmarks run: on few elements each prints a head, rows and the same rows as CSV. No speed is judged.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
folder=$(dirname "$MPSIM")/tests/bench
csv=$dir/bench.csv

for b in casts blocks arith stats files dot convolutions steps layers train; do
    rows=$([ -e "$csv" ] && wc -l <"$csv")
    "$folder/$b" --tiny --csv "$csv" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] && has '  a second  ratio to  *goal$'
    ok $? "$b runs"
    heads=$(grep -c '^mpsim .* on .* cores$' "$dir/out")
    [ "$heads" -eq "$([ -z "$rows" ] && echo 1 || echo 0)" ] && [ "$(wc -l <"$csv")" -gt $((${rows:-3} + 1)) ]
    ok $? "$b: its rows, the machine only in the first"
    # a row of the table has a set of instructions, a number of threads and a speed
    [ "$(grep -c '^[a-z0-9-]*  *.* [1-9][0-9]* *[0-9.]* [kMGTP ] ' "$dir/out")" -eq "$(grep -c "^$b," "$csv")" ]
    ok $? "$b: as many in the table as in the CSV"
done
[ "$(grep -c '^# ' "$csv")" -eq 3 ] && [ "$(grep -c '^program,operation,what,how,isa,threads,' "$csv")" -eq 1 ]
ok $? 'CSV: the machine and the names of the columns, once'
# per_second is positive; a goal is met or not
awk -F, '/^#/ || /^program,/ { next } NF != 15 || !($8 > 0) || ($13 > 0) != ($15 != "") { print; bad = 1 }
    { got = $14 == "ratio" ? $9 : $8 }
    $15 == "no" && got > 1.001 * $13 || $15 == "yes" && got < 0.999 * $13 { print; bad = 1 }
    END { exit bad }' "$csv" >"$dir/out"
ok $? 'CSV: every row has its columns'
"$MPSIM_SRCDIR/tests/bench/excerpt.sh" "$csv" >"$dir/out" 2>"$dir/err" && [ ! -s "$dir/err" ] &&
    [ "$(grep -c '^|' "$dir/out")" -eq 12 ] && has '^mpsim .* cores; .*instruction sets ' && ! has '|  *|  *|'
ok $? 'the rows of the front page'
"$folder/casts" --tiny --only 'enc*' >"$dir/out" && has '^encode ' && ! has '^round '
ok $? '--only'
"$folder/casts" --fast >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has '^usage: casts ' err
ok $? 'an unknown argument'
"$folder/casts" --tiny --csv "$dir/no-such-folder/x" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && has 'no-such-folder' err
ok $? 'a CSV that cannot be written'
finish
