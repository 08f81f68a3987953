#!/bin/sh
# take.sh -- data/gpu/take.sh puts a session's results in their places, and tests/gpu/t-record reads them there. What the session
# found is played: mpsim-gpu's and libmpsim-cuda's kernels run on a CPU. A digit that changes, a file that is cut are found.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
tests=$(dirname "$MPSIM")/tests
: "${MPSIM_GPU_HOST:=$tests/gpu/mpsim-gpu-host}"
if [ ! -x "$MPSIM_GPU_HOST" ] || [ ! -x "$tests/gpu/t-record" ] || [ ! -x "$tests/gpu/mpsim-gpu-statistics-host" ] || ! command -v sha256sum >/dev/null; then
    echo "1..0 # SKIP no C++ compiler, no Check or no sha256sum"
    exit 0
fi
take() { # take CODE ARGUMENT...
    want=$1
    shift
    sh "$top/data/gpu/take.sh" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ]
}
record() { "$tests/gpu/t-record" "$dir/data/gpu" >"$dir/out" 2>"$dir/err"; }
sums() { (cd "$1" && rm -f SHA256SUMS && find . -type f | sed 's|^\./||' | sort | xargs sha256sum >"$dir/sums" && mv "$dir/sums" SHA256SUMS); }

# ---- a session of one small training, statistics, a watch, a sanitizer, an answer of PyTorch ----
mkdir -p "$dir/runs" "$dir/session/pytorch" "$dir/session/products" "$dir/session/beside" "$dir/data"
echo one >"$dir/runs/list"
"$MPSIM" train -P pytorch-amp-bf16 --width 8 --batch 8 --steps 3 --write-run "$dir/runs/one.run"
s=$dir/session
"$MPSIM_GPU_HOST" --runs "$dir/runs" --only training --output "$s/training.json" >"$s/training.txt" 2>&1 &&
    "$tests/gpu/mpsim-gpu-statistics-host" --small --piece 8/260 --output "$s/statistics.json" >"$s/statistics.txt"
ok $? "what is played"
cat >"$s/watch.json" <<'X'
{"schema": "mpsim.cuda-check/2",
 "device": "CPU executor", "torch": "2.15.0", "date": "2026-01-01T00:00:00Z",
 "stat_differing": 0, "watch_differing": 0,
 "questions": [
  {"question": "stat {}", "status": "equal", "seconds": 0.789},
  {"question": "watch, autocast True, 7 kinds", "status": "equal", "seconds": 8.967}],
 "ms_of_stat": {"float32, 1 formats": 0.436}}
X
echo '========= ERROR SUMMARY: 0 errors' >"$s/memcheck.txt"
echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' >"$s/racecheck.txt"
cp "$top"/data/vectors/device/cpu-torch-2.15.0/manifest.json "$top"/data/vectors/device/cpu-torch-2.15.0/division.ndjson "$s/pytorch"
chmod u+w "$s"/pytorch/*
cp "$s/pytorch/manifest.json" "$s/products"
cp "$s/pytorch/manifest.json" "$s/beside"
echo tables >"$s/functions.tables"
sums "$s"

take 0 "$s" "$dir/data" && has '^not taken: .*/session/training.txt$' && ! has 'not taken: .*json'
ok $? "it is taken"
day=$(sed -n 's/.*"date":"\([^T]*\)T.*/\1/p' "$s/training.json")
name=cpu-executor-$day
(cd "$dir/data" && find . -type f | sort) >"$dir/out"
tr '\n' ' ' <"$dir/out" >"$dir/err"
[ "$(cat "$dir/err")" = "./gpu/SHA256SUMS ./gpu/$name-beside-manifest.json ./gpu/$name-functions.tables ./gpu/$name-memcheck.txt ./gpu/$name-racecheck.txt ./gpu/$name-statistics.json ./gpu/$name-training-one.digests \
./gpu/$name-training.json ./gpu/$name-watch.json ./vectors/device/cpu-executor-torch-2.15.0/SHA256SUMS \
./vectors/device/cpu-executor-torch-2.15.0/division.ndjson ./vectors/device/cpu-executor-torch-2.15.0/manifest-products.json \
./vectors/device/cpu-executor-torch-2.15.0/manifest.json " ]
ok $? "names of device and day, with digests"
record && has "repeats $name-statistics.json" && has "repeats $name-watch.json" && has 'racecheck.txt: the sanitizer found nothing'
ok $? "t-record reads the records of each kind"
MPSIM_RECORDS=$dir/data/gpu sh "$top/data/gpu/numbers.sh" data/gpu/README.md >"$dir/out" 2>"$dir/err" &&
    has 'statistics of libmpsim-cuda .* | [0-9]* arrays* | 0 |$' && has "memcheck of .* |  | 0 errors |$" &&
    has '(`python/cuda_check.py`) | 2 reports and trainings | 0 |$' && has '^| 1 trainings (`gpu/runs`: .*| 3 steps,'
ok $? "numbers.sh counts them"
take 0 "$s" "$dir/data"
ok $? "once more: the same"

# ---- a digit changes where they are now, or the summary of a log ----
: >"$dir/missed"
for file in "$dir"/data/gpu/*.json "$dir"/data/gpu/*.digests "$dir"/data/gpu/*.txt; do
    cp "$file" "$dir/kept"
    awk 'NR == FNR { n = NR; next } FNR == int((n + 1) / 2) { match($0, /[0-9]/); $0 = substr($0, 1, RSTART - 1) (substr($0, RSTART, 1) + 1) % 10 substr($0, RSTART + 1) } { print }' \
        "$dir/kept" "$dir/kept" >"$file"
    record && echo "$file: a changed digit" >>"$dir/missed"
    cp "$dir/kept" "$file"
done
echo '========= ERROR SUMMARY: 2 errors' >"$dir/data/gpu/$name-memcheck.txt"
(cd "$dir/data/gpu" && sha256sum ./*.[jdt]* | sed 's|\./||' >SHA256SUMS)
record && echo "a log with errors" >>"$dir/missed"
has '^not ok .*memcheck.txt' || echo "a log with errors is not named" >>"$dir/missed"
cp "$s/memcheck.txt" "$dir/data/gpu/$name-memcheck.txt"
(cd "$dir/data/gpu" && sha256sum ./*.[jdt]* | sed 's|\./||' >SHA256SUMS)
rm "$dir/data/gpu/$name-watch.json"
record && echo "a file that is missing" >>"$dir/missed"
record || cp "$s/watch.json" "$dir/data/gpu/$name-watch.json"
cp "$dir/missed" "$dir/out"
[ ! -s "$dir/missed" ] && record
ok $? "a changed digit, an error of a sanitizer, a file that is missing are found"

# ---- copies that are no copies ----
sed -i.old 's/"steps":3/"steps":4/' "$s/training.json"
rm "$s/training.json.old"
take 1 "$s" "$dir/data" && has 'is not what the session wrote$' err
ok $? "a copy that was edited is not taken"
sums "$s"
take 1 "$s" "$dir/data" && has 'is there already, and another one$' err
ok $? "another file in its place is not replaced"
rm -r "$dir/data" && mkdir "$dir/data" "$dir/none"
mv "$s/training.json" "$s/training.json.part"
rm "$s/SHA256SUMS"
take 0 "$s" "$dir/data" && has 'has no SHA256SUMS' err && [ -f "$dir/data/gpu/$name-training.json" ]
ok $? "a part that was cut short; a session without digests"
take 1 "$dir/none" "$dir/data" && has 'no record of .* has a device and a date$' err && take 2 && take 2 "$dir/no" && take 2 --sums
ok $? "nothing to take; usage"
finish
