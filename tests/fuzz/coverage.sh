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
readers='sim/(trace|pickle|quant|merge|explain|log|policy|traininglog)/|sim/scaler/(pattern|spec)'
readers=$readers'|sim/plot/(skim|report|groups|plans|runs|sweep|grid|course|ledger|ranges|noise|select)\.c|sim/stat/(part|bytes)'
readers=$readers'|sim/train/(checkpoint|digests|owndigests|text|store)|sim/verify/vectors|sim/page/svg|lib/train/run/|lib/scaler/text|sim/operand/t|sim/process/t'
others='sim/policy/list|sim/trace/(arrays|writer|outfile|hdf5|temporary|unnamed|copy|inputs|maps|wanted)|sim/explain/(cmd|messages)|sim/(merge|log)/cmd|sim/input/twice|sim/(log|merge)/report|sim/quant/pack|sim/train/store|\.h$'

tool() { # tool NAME: the compiler's own
    # shellcheck disable=SC2086 # words
    path=$($compiler -print-prog-name="$1")
    command -v "$path" || { echo "coverage needs $1 beside $compiler" >&2; exit 1; }
}
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

[ $# -gt 0 ] || set -- $(cd "$folder" && for f in fuzz-*; do [ -x "$f" ] && [ -f "$f" ] && echo "${f#fuzz-}"; done)
lines=$folder/lines.txt
: >"$lines"
for target; do
    program=$folder/fuzz-$target
    seeds "$target" "$folder/seeds/$target" || exit 1
    # shellcheck disable=SC2046 # words
    find "$folder/seeds/$target" $(more "$target") ${FUZZ_FOUND:+"$FUZZ_FOUND/corpus/$target"} -type f -print0 |
        LLVM_PROFILE_FILE=$folder/$target-%p.profraw xargs -0 "$program" 2>"$program.said"
    "$profdata" merge -sparse -o "$program.profdata" "$folder/$target"-*.profraw
    rm -f "$folder/$target"-*.profraw
    # each by itself: of inline functions that two programs compile differently, counts do not add up
    "$cov" export -format=lcov -instr-profile="$program.profdata" "$program" 2>"$program.said" |
        awk -F '[:,]' -v top="$(cd "$sources" && pwd -P)/" '
            $1 == "SF" { file = $2; if (index(file, top) == 1) file = substr(file, length(top) + 1); sub(/^(\.\/)+/, "", file) }
            $1 == "DA" { print file, $2, ($3 > 0) }' >>"$lines"
done
sort -u "$lines" | awk '{ if (!(($1, $2) in of)) { of[$1, $2] = $1 } hit[$1, $2] += $3 }
    END { for (line in of) { split(line, at, SUBSEP); print at[1], at[2], (hit[line] > 0) } }' | sort -k1,1 -k2,2n >"$lines.all"
mv "$lines.all" "$lines"
awk '$3 == 0 { print $1 ":" $2 }' "$lines" >"$folder/not-reached.txt"
awk -v readers="$readers" -v others="$others" '$1 ~ readers && $1 !~ others' "$lines" |
    (cd "$sources" && awk -v list=tests/fuzz/aside '
        BEGIN {
            while ((getline line <list) > 0)
                if (line !~ /^#/ && (at = index(line, ": "))) {
                    of[++n] = substr(line, 1, at - 1)
                    words[n] = substr(line, at + 2)
                    sub(/ -- .*/, "", words[n])
                }
        }
        # what the lines of a file are part of: a function, a statement with the heads before it
        function look(file,   line, i, first, text) {
            i = count = 0
            first = 1
            name = text = ""
            while ((getline line <file) > 0) {
                i++
                if (line ~ /^[a-z].*\(/ && line !~ /;$/) {
                    name = line
                    sub(/\(.*/, "", name)
                    sub(/.*[ *]/, "", name)
                }
                in_function[i] = name "()"
                text = text line " "
                if (line ~ /[;}]( *\/\*.*)?$/) {
                    for (; first <= i; first++)
                        statement[first] = text
                    text = ""
                }
                if (line == "}")
                    name = ""
            }
            close(file)
        }
        function explained(file, i,   k, yes) {
            for (k = 1; k <= n; k++)
                if ((of[k] == "*" || of[k] == file) && (words[k] == in_function[i] || index(statement[i], words[k])))
                    yes = needed[k] = 1
            return yes
        }
        # lines in a row that no input reaches, up to six of them: one that is explained explains the others
        function flush(   k, aside) {
            for (k = 1; k <= m; k++)
                mine[k] = explained(file, at_line[k])
            for (k = 1; k <= m && m <= 6; k++)
                aside = aside || mine[k]
            for (k = 1; k <= m; k++)
                print file, at_line[k], aside || mine[k] ? "aside" : 0
            m = 0
        }
        {
            if ($1 != file || $3 > 0 || (m && $2 != at_line[m] + 1))
                flush()
            if ($1 != file)
                look(file = $1)
            if ($3 > 0)
                print
            else
                at_line[++m] = $2
        }
        END {
            flush()
            for (k = 1; k <= n; k++)
                if (!needed[k])
                    print "tests/fuzz/aside: nothing needs " of[k] ": " words[k] | "cat >&2"
        }') >"$folder/readers.txt"
awk '$3 == 0 { print $1 ":" $2 }' "$folder/readers.txt" >"$folder/not-reached.txt"
rows='$3 == "aside" { aside[$1]++; all_aside++; next }
    { n[$1]++; reached[$1] += $3; all++; sum += $3 }'
awk "$rows"'
    END { for (f in n) printf "%6.1f %% of %4d lines, %3d not, %3d aside  %s\n", 100 * reached[f] / n[f], n[f], n[f] - reached[f], aside[f], f }' \
    "$folder/readers.txt" | sort -n
awk "$rows"'
    END { for (f in n) { files++; good += reached[f] >= 0.95 * n[f] }
          printf "%6.1f %% of %d lines of %d files, %d aside (tests/fuzz/aside); %d files reach 95 %%\n", 100 * sum / (all ? all : 1), all, files, all_aside, good }' \
    "$folder/readers.txt"
