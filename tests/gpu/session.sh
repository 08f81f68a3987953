#!/bin/sh
# session.sh -- gpu/session.sh with programs that only say how they were called, fail or hang: parts, their order and
# times, the archive and its pieces, which parts are listed as missing.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
if ! command -v timeout >/dev/null; then
    echo "1..0 # SKIP no timeout"
    exit 0
fi
cat >"$dir/program" <<'X2'
#!/bin/sh
# says how it was called; writes a record; as the tests want it, differs, ends early or hangs
echo "asked: $*"
for last; do
    case $before in --output | --output-dir) break ;; esac
    before=$last
done
case " $* " in
*" ${TEST_DIFFERS:-none} "*) echo '{}' >"$last"; exit 1 ;;
*" ${TEST_CUT:-none} "*) echo '{}' >"$last.part"; exit 4 ;;
*" ${TEST_HANGS:-none} "*) echo '{}' >"$last.part"; exec sleep 60 ;;
*" ${TEST_LARGE:-none} "*) head -c 3000000 /dev/urandom >"$last"; exit 0 ;;
*" --output-dir "*)
    while [ "$1" != --output-dir ]; do shift; done
    mkdir "$2"
    ;;
*" --output "*) echo '{}' >"$last" ;;
esac
X2
chmod +x "$dir/program"
mkdir "$dir/bin"
printf '#!/bin/sh\necho a device\n' >"$dir/bin/nvidia-smi"
chmod +x "$dir/bin/nvidia-smi"
mkdir "$dir/build" # the programs that the table names
for name in $(sed -n 's/.* BUILD\/\([a-z-]*\).*/\1/p' "$MPSIM_SRCDIR/gpu/session.sh" | sort -u); do
    ln -s ../program "$dir/build/$name"
done
BUILD=$dir/build
export BUILD
MPSIM_GPU=$dir/program STATISTICS=$dir/program PYTHON=$dir/program SANITIZER=$dir/program PATH=$dir/bin:$PATH
export MPSIM_GPU STATISTICS PYTHON SANITIZER PATH
script=$MPSIM_SRCDIR/gpu/session.sh
session() {
    rm -rf "$dir/to" "$dir/session"
    sh "$script" --output-dir "$dir/to" "$@" >"$dir/out" 2>"$dir/err"
    status=$?
    [ -f "$dir/to/session.tar.gz" ] && cat "$dir"/to/session.tar.gz* | tar -xzf - -C "$dir"
    return $status
}

session all
all=$?
cp "$dir/out" "$dir/asked"
grep -v ' exit 0 ' "$dir/session/summary.txt" >"$dir/out"
[ $all -eq 0 ] && [ "$(cat "$dir/out")" = "nothing is missing" ]
ok $? "all parts"
cp "$dir/asked" "$dir/out"
sh "$script" list >"$dir/list"
parts=$(grep -v -e '^#' -e '^part ' -e '^all ' "$dir/list" | sed 's/ .*//')
[ "$(sed -n 's/^== \([a-z0-9-]*\): .*/\1/p' "$dir/out" | sort)" = "$(echo "$parts" | sort)" ]
ok $? "each part once"
[ "$(sed -n 's/^== \([a-z0-9-]*\): .*/\1/p' "$dir/out" | grep -x -e machine -e checks -e gpt | tr '\n' ' ')" = "machine checks gpt " ]
ok $? "in the order of the table"
has "^asked: --only wgmma --skip speed --skip variant --output /.*/session/wgmma.json$" &&
    has "^asked: --tool racecheck --error-exitcode 9 $dir/program --one-process --tiny --only gpt-fp8 --output " &&
    has '^asked: data/record/ask_device.py --device cuda --of first --jobs 5 --total [0-9]* .*--output-dir /.*/session/pytorch$'
ok $? "what each part asks"
[ "$(ls -A "$dir/to")" = session.tar.gz ]
ok $? "one file is left"
(cd "$dir/session" && ls -d checks.json checks.txt gpt.json machine.txt pytorch speed.json summary.txt) >"$dir/out" 2>&1
ok $? "it holds records, folders and what was printed"
(cd "$dir/session" && sha256sum -c --quiet SHA256SUMS && wc -l <SHA256SUMS && find . -type f | wc -l) >"$dir/out" 2>"$dir/err" &&
    [ "$(awk 'NR == 1 { n = $1 } END { print $1 - n }' "$dir/out")" -eq 1 ]
ok $? "and a digest of each file"
cp "$dir/session/summary.txt" "$dir/out"
has '^wgmma  *exit 0    *[0-9]* s (at most 30, thought to take 3)$' && [ "$(wc -l <"$dir/out")" -eq $(($(echo "$parts" | wc -l) + 1)) ]
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

# ---- parts beside others: the next part begins before such a one has ended ----
sed -i '2a case " $* " in *" ${TEST_WAITS:-none} "*) for _ in 1 2 3 4 5 6 7 8 9; do [ -e "${0%/*}/met" ] && break; sleep 0.3; done; sleep 1 ;; *" --only checks "*) : >"${0%/*}/met" ;; esac' \
    "$dir/program"
TEST_WAITS=data/record/ask_device.py
export TEST_WAITS
session pytorch checks speed && [ -e "$dir/met" ] && cp "$dir/session/summary.txt" "$dir/out" &&
    [ "$(sed 's/ .*//' "$dir/out" | tr '\n' ' ')" = "checks pytorch speed nothing " ]
ok $? "a part that measures times waits for the one beside others"
unset TEST_WAITS

# ---- an archive in pieces; more than four are not kept ----
script=$dir/short.sh
sed 's/^piece=15728640/piece=1000000/' "$MPSIM_SRCDIR/gpu/session.sh" >"$script"
TEST_LARGE=speed
export TEST_LARGE
session probes speed && [ "$(ls -A "$dir/to" | tr '\n' ' ')" = "session.tar.gz session.tar.gz.2 session.tar.gz.3 session.tar.gz.4 " ] &&
    [ "$(wc -c <"$dir/session/speed.json")" -eq 3000000 ] && [ -f "$dir/session/probes.json" ]
ok $? "a large archive is pieces that are put together again"
sed 's/^piece=15728640/piece=700000/' "$MPSIM_SRCDIR/gpu/session.sh" >"$script"
session probes speed
[ -f "$dir/session/probes.json" ] && [ ! -e "$dir/session/speed.json" ] && has 'speed.json is left out: the archive would be too large$'
ok $? "what does not fit is left out, with a word"
unset TEST_LARGE
script=$MPSIM_SRCDIR/gpu/session.sh

# ---- the table ----
cp "$dir/list" "$dir/out"
has '^# no device has answered these$' && has '^gpt  *95 s  *73 s  -  *GPU --only gpt$' && has '590 s is the limit$'
ok $? "list: the parts with their seconds"
sed -n '/^    cat <<.PARTS/,/^PARTS/p' "$script" | sed '1d;$d' | grep -v '^#' >"$dir/out"
! grep -v -E '^[a-z0-9-]+ +(-|timed|beside) +[0-9]+ +[0-9]+ +[^ ]' "$dir/out"
ok $? "each line has its five fields"
[ "$(awk '$4 >= $3' "$dir/out" | wc -l)" -eq 0 ]
ok $? "each part may take more than it is thought to"
sed -n '/^    cat <<.PARTS/,/^# an H200 answered these on/p' "$script" >"$dir/new"
[ "$(grep -v '^#' "$dir/new" | awk '$2 != "beside" { s += $4 } END { print s }')" -le 590 ]
ok $? "what no device has answered, or left no log of, is thought to fit ten minutes; the rest has the time that is left"
tests=$(dirname "$MPSIM")/tests
if [ -x "$tests/gpu/mpsim-gpu-host" ] && [ -x "$tests/gpu/mpsim-gpu-statistics-host" ]; then
    (
        unset MPSIM_GPU STATISTICS PYTHON SANITIZER
        HOSTS=$(cd "$tests/gpu" && pwd) MPSIM=$(cd "$(dirname "$MPSIM")" && pwd)/mpsim
        export HOSTS MPSIM
        cd "$MPSIM_SRCDIR" && BUILD=none PYTHON=sh sh gpu/dry-run.sh machine statistics probes
    ) >"$dir/out" 2>"$dir/err" && has '^  statistics  *exit 0 .*, 0 differ$' && has '^  probes  *exit 0 ' && has ' of 67108864$'
    ok $? "a dry run of some parts in an empty folder (all: sh gpu/dry-run.sh)"
else
    echo "ok $((n += 1)) - a dry run # SKIP no C++ compiler"
fi
sh "$script" all >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has usage err
ok $? "usage"
sh "$script" --output-dir "$dir/to" nonsense >"$dir/out" 2>"$dir/err"
[ $? -eq 2 ] && has '^parts: machine ' err
ok $? "a part that is not there: the list"
finish
