#!/bin/sh
# coverage.sh -- lines of what reads and parses that the fuzz corpora reach, a row for each file, the least reached first,
# and their sum. `make fuzz-coverage` calls it.
#
#   coverage.sh FOLDER SOURCES COMPILER [TARGET...]      FOLDER: of the programs; with FUZZ_FOUND=FOLDER also what
# `make fuzz` found worth keeping there. COMPILER: clang, which knows its llvm-cov.
set -eu
folder=$1 sources=$2 compiler=$3
shift 3

# shellcheck source=tests/fuzz/targets.sh
. "$sources/tests/fuzz/targets.sh"

# what reads: no writers, and nothing that works on what was read
readers='sim/(trace|pickle|quant|merge|explain|log|policy)/|sim/scaler/(log|reader|pattern|spec|words|track|traininglog|series)'
readers=$readers'|sim/plot/(skim|report|data|runs|scaled|targets|sweep|differences|noise|select)\.c|sim/stat/(part|bytes|settings|pack)'
readers=$readers'|sim/train/(checkpoint|digests|owndigests|text|store)|sim/verify/vectors|lib/train/run/|lib/scaler/text|sim/cli/t'
others='sim/trace/(writer|outfile|hdf5|tree|temporary|copy)|sim/explain/(cmd|messages)|sim/(merge|log)/cmd|sim/cli/twice|\.h$'

tool() { # tool NAME: the compiler's own
    # shellcheck disable=SC2086 # words
    path=$($compiler -print-prog-name="$1")
    command -v "$path" || { echo "coverage needs $1 beside $compiler" >&2; exit 1; }
}
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

[ $# -gt 0 ] || set -- $(cd "$folder" && for f in fuzz-*; do [ -x "$f" ] && [ -f "$f" ] && echo "${f#fuzz-}"; done)
objects=
for target; do
    # shellcheck disable=SC2046 # words
    LLVM_PROFILE_FILE=$folder/$target.profraw sh -c 'program=$1; shift; find "$@" -type f -print0 2>/dev/null |
        xargs -0 "$program" 2>"$program.said"' - "$folder/fuzz-$target" \
        "$sources/tests/fuzz/corpus/$target" $(more "$target") ${FUZZ_FOUND:+"$FUZZ_FOUND/corpus/$target"}
    objects="$objects -object $folder/fuzz-$target"
done
(cd "$folder" && "$profdata" merge -sparse -o all.profdata ./*.profraw)
# shellcheck disable=SC2086 # words
"$cov" report -instr-profile="$folder/all.profdata" ${objects# -object } >"$folder/report.txt"
awk -v readers="$readers" -v others="$others" '
    $1 ~ readers && $1 !~ others { print $8, $9, $1 }' "$folder/report.txt" |
    awk '{ printf "%6.1f %% of %4d lines, %3d not  %s\n", 100 * (1 - $2 / $1), $1, $2, $3 }' | sort -n
awk -v readers="$readers" -v others="$others" '
    $1 ~ readers && $1 !~ others { lines += $8; missed += $9; files++; good += $9 <= $8 / 20 }
    END { printf "%6.1f %% of %d lines of %d files; %d files reach 95 %%\n", 100 * (1 - missed / (lines ? lines : 1)), lines,
                 files, good }' "$folder/report.txt"
