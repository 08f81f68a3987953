#!/bin/sh
# emulate.sh -- mpsim emulate: what a Python is given, by one that writes it down; Pythons without the package; what is refused.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# A Python: asked for the package it says what $dir/there holds; else it writes its words down and ends with 1.
cat >"$dir/python" <<EOF2
#!/bin/sh
if [ "\$1" = -c ]; then exit "\$(cat "$dir/there")"; fi
for word; do echo "<\$word>"; done
exit 1
EOF2
chmod +x "$dir/python"
echo 0 >"$dir/there"
run 1 emulate --python "$dir/python" -P te-nvfp4 --arch blackwell-scaled --seed 3 --between mpsim -o r.json --record t "a b.py" -P x --lr 3 '' -- -h
printf '<%s>\n' -m mpsim.emulate --policy te-nvfp4 --arch blackwell-scaled --seed 3 --between mpsim --out r.json --record t -- "a b.py" -P x --lr 3 '' -- -h >"$dir/want"
cmp -s "$dir/out" "$dir/want"; ok $? "options, the script and its arguments; the script's exit code"
PYTHON=$dir/python run 1 emulate -P fp32 train.py
printf '<%s>\n' -m mpsim.emulate --policy fp32 -- train.py >"$dir/want"
cmp -s "$dir/out" "$dir/want"; ok $? "PYTHON of the environment"
for status in 7 1; do
    echo $status >"$dir/there"
    run 4 emulate --python "$dir/python" -P fp32 train.py && [ "$(wc -l <"$dir/err")" -eq 1 ] && [ ! -s "$dir/out" ] && has "^mpsim: emulate: $dir/python " err
    ok $? "a Python without the package: $status"
done
has 'does not run a line of Python' err; ok $? "or what is none"
run 4 emulate --python "$dir/none" -P fp32 train.py && has 'none does not run: No such file' err; ok $? "no Python"
run 2 emulate train.py && has 'no --policy given: name one, as te-nvfp4' err; ok $? "no policy"
run 2 emulate -P fp32 && has 'no SCRIPT given: mpsim emulate -P POLICY train.py' err; ok $? "no script"
run 2 emulate --sandbox -P fp32 train.py && has 'a script of Python keeps its rights' err; ok $? "no sandbox"
run 2 emulate --polcy fp32 train.py && has 'did you mean --policy' err; ok $? "an option that is misspelt"
run 0 emulate --help && has 'SCRIPT \[ARGUMENT...\]' && has 'mpsim emulate -P te-nvfp4'; ok $? "help"
finish
