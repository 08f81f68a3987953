#!/bin/sh
# session.sh -- gpu/session.sh with programs that only say how they were called, fail or hang: parts, their order and
# times, the archive, what is said to be missing.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
if ! command -v timeout >/dev/null; then
    echo "1..0 # SKIP no timeout"
    exit 0
fi
cat >"$dir/program" <<'X2'
#!/bin/sh
# says how it was called; writes a record; as the tests want it, differs, ends early or hangs
for last; do :; done
echo "asked: $*"
case " $* " in
*" ${TEST_DIFFERS:-none} "*) echo '{}' >"$last"; exit 1 ;;
*" ${TEST_CUT:-none} "*) echo '{}' >"$last.part"; exit 4 ;;
*" ${TEST_HANGS:-none} "*) echo '{}' >"$last.part"; exec sleep 60 ;;
*" --output-dir "*) mkdir "$last" ;;
*" --output "*) echo '{}' >"$last" ;;
esac
X2
chmod +x "$dir/program"
mkdir "$dir/bin"
printf '#!/bin/sh\necho a device\n' >"$dir/bin/nvidia-smi"
chmod +x "$dir/bin/nvidia-smi"
MPSIM_GPU=$dir/program STATISTICS=$dir/program PYTHON=$dir/program SANITIZER=$dir/program PATH=$dir/bin:$PATH
export MPSIM_GPU STATISTICS PYTHON SANITIZER PATH
session() {
    rm -rf "$dir/to" "$dir/session"
    sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    [ -f "$dir/to/session.tar.gz" ] && tar -xzf "$dir/to/session.tar.gz" -C "$dir"
    return $status
}

session all && has '^nothing is missing$'
ok $? "all parts"
[ "$(sed -n 's/^== \([a-z0-9]*\): .*/\1/p' "$dir/out" | tr '\n' ' ')" = \
    "machine checks wgmma probes speed statistics watch training fp8 gpt pytorch amp memcheck racecheck " ]
ok $? "the most valuable first"
has "^asked: --only wgmma --skip speed --output /.*/session/wgmma.json$" &&
    has "^asked: --tool racecheck --error-exitcode 9 $dir/program --one-process --tiny --only gpt-fp8 --output " &&
    has '^asked: data/record/ask_device.py --device cuda --jobs 5 --total [0-9]* .*--output-dir /.*/session/pytorch$'
ok $? "what each part asks"
[ "$(ls -A "$dir/to")" = session.tar.gz ]
ok $? "one file is left"
(cd "$dir/session" && ls -d checks.json checks.txt gpt.json machine.txt pytorch speed.json summary.txt) >"$dir/out" 2>&1
ok $? "it holds records, folders and what was printed"
cp "$dir/session/summary.txt" "$dir/out"
has '^wgmma  *exit 0    *[0-9]* s (at most 30, thought to take 3)$' && [ "$(wc -l <"$dir/out")" -eq 15 ]
ok $? "the summary has the time of each part"

session pytorch && has '^asked: .* --total 5[0-9][0-9] .*--output-dir ' && has '^pytorch .*(at most 5[0-9][0-9],'
ok $? "a single part has all the time"
TEST_DIFFERS=gpt TEST_CUT=probes
export TEST_DIFFERS TEST_CUT
session probes gpt
[ $? -eq 1 ] && has '^gpt  *exit 1 ' && has '^  probes: something failed  *sh gpu/session.sh --output-dir DIR probes$' &&
    ! has '^  gpt:' && [ -f "$dir/session/probes.json.part" ]
ok $? "one that differs is complete; one that failed is missing, with its command"
unset TEST_DIFFERS TEST_CUT

# killed in the middle: an archive of what there is, and nothing beside it
TEST_HANGS=speed
export TEST_HANGS
rm -rf "$dir/to" "$dir/session"
sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" probes speed >"$dir/out" 2>"$dir/err" &
process=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    has '^== speed' && break
    sleep 0.5
done
sleep 0.5
kill "$process"
wait "$process"
tar -xzf "$dir/to/session.tar.gz" -C "$dir" && [ -f "$dir/session/probes.json" ] && [ -f "$dir/session/speed.json.part" ] &&
    [ "$(ls -A "$dir/to")" = session.tar.gz ]
ok $? "ended by a signal: the archive has the parts before and what this one had found"
for most in 3 8 30; do # where a busy machine takes a second to begin, there is no time left for a part
    sed "s/^most=590/most=$most/" "$MPSIM_SRCDIR/gpu/session.sh" >"$dir/short.sh"
    rm -rf "$dir/session"
    sh "$dir/short.sh" --output-dir "$dir/to" speed >"$dir/out" 2>"$dir/err"
    status=$?
    has 'not begun: the time was over' || break
done
[ $status -eq 1 ] && has '^speed  *exit 124 ' && has '^  speed: cut short by its time  *sh gpu/session.sh'
ok $? "a part that hangs is ended by its time"
unset TEST_HANGS

list=$(sed -n '/<<.PARTS/,/^PARTS/p' "$MPSIM_SRCDIR/gpu/session.sh" | sed '1d;$d')
[ "$(echo "$list" | awk '{ s += $2 } END { print s }')" -le 590 ]
ok $? "the times of all parts are ten minutes at most"
sh "$MPSIM_SRCDIR/gpu/session.sh" all >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has usage err
ok $? "usage"
sh "$MPSIM_SRCDIR/gpu/session.sh" --output-dir "$dir/to" nonsense >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has '^parts: machine checks ' err
ok $? "a part that is not there: the list"
finish
