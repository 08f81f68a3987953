#!/bin/sh
# session.sh -- gpu/session.sh with programs that only say how they were called: parts, their order and time,
# what is left in the folder.
set -u
: "${MPSIM_SRCDIR:=.}"
. "$MPSIM_SRCDIR/tests/cli/common.sh"
if ! command -v timeout >/dev/null; then
    echo "1..0 # SKIP no timeout"
    exit 0
fi
cat >"$dir/program" <<'X'
#!/bin/sh
for last; do :; done
echo "asked: $*"
case $* in
*"only training"*) exit 1 ;;
*output*) echo '{}' >"$last" ;;
*device*) mkdir "$last" ;;
esac
X
chmod +x "$dir/program"
MPSIM_GPU=$dir/program PYTHON=$dir/program SANITIZER=$dir/program
export MPSIM_GPU PYTHON SANITIZER

sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" first >"$dir/out" 2>"$dir/err" && has '^== training: exit 1$'
ok $? "the first call: a part that differs does not end it"
[ "$(sed -n 's/^== \([a-z]*\): exit.*/\1/p' "$dir/to/first.txt" | tr '\n' ' ')" = "machine tiny speed checks training " ]
ok $? "tiny checks, probes and speed, all checks, trainings"
sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" second >"$dir/out" 2>"$dir/err" && has 'exit 0$' &&
    has "^asked: $dir/program --tiny --output " && has '^asked: data/record/train_amp_mlp.py --device cuda '
ok $? "the second call: compute-sanitizer, PyTorch"
sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" third >"$dir/out" 2>"$dir/err" &&
    has "^asked: --only gpt --output " && has '^asked: data/record/train_gpt.py --device cuda --autocast fp16 '
ok $? "the third call: transformers, here and in PyTorch"
ls "$dir/to" | tr '\n' ' ' >"$dir/out"
has '^first.tar.gz first.txt second.tar.gz second.txt third.tar.gz third.txt $'
ok $? "two files of a call are left"
tar -tzf "$dir/to/first.tar.gz" | sort >"$dir/out"
has '^first/checks.json$' && has '^first/speed.json$' && has '^first/tiny.txt$' && has '^first/training.txt$'
ok $? "records and outputs are packed"
[ "$(awk '$1 == "part" { s += $3 + 5 } END { print (s <= 1080) }' "$MPSIM_SRCDIR/gpu/session.sh")" -eq 1 ] &&
    [ "$(awk '/^first/,/^}/' "$MPSIM_SRCDIR/gpu/session.sh" | awk '$1 == "part" { s += $3 } END { print s }')" -le 350 ]
ok $? "the times of a call's parts are six minutes at most"
sh "$MPSIM_SRCDIR/gpu/session.sh" first >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has usage err
ok $? "usage"
finish
