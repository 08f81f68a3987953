#!/bin/sh
# coverage.sh SOURCES -- lines and branches of lib and sim that tests reached, a row for each module, the least reached first, then
# each file below 95 % of its lines and the sums of both folders. A branch is a way that a condition, or a part of one, goes. `make coverage` calls it in the build folder, after the tests; a build with
# --enable-coverage leaves the counts beside its objects. GCOV: the tool of the compiler, as "llvm-cov gcov" for clang.
# Lines that are not reached go to not-reached.txt.
set -eu
sources=$(cd "$1" && pwd -P)/
counts=$(mktemp) branches=$(mktemp)
trap 'rm -f "$counts" "$branches"' EXIT
# The sources' names begin at their top (-ffile-prefix-map where the build folder is another).
build=$(pwd -P)
# shellcheck disable=SC2086 # words
(cd "$sources" && find "$build/lib" "$build/sim" -name '*.gcno' -exec ${GCOV:-gcov} -b -c -t {} + 2>/dev/null) |
    awk -F : -v top="$sources" -v branches="$branches" '
        /^branch / { split($0, word, " "); if (file ~ /^(lib|sim)\// && at) way[file ":" at " " word[2]] += word[3] == "taken" && word[4] > 0; next }
        /^(call|unconditional|function) / { next }
        { count = $1; line = $2; gsub(/[ *]/, "", count); gsub(/ /, "", line) }
        line == 0 && $3 == "Source" { file = $4; if (index(file, top) == 1) file = substr(file, length(top) + 1); sub(/^(\.\.?\/)+/, "", file) }
        { at = line > 0 ? line : at }
        line > 0 && count != "-" && file ~ /^(lib|sim)\// { n[file ":" line] += count ~ /^[0-9]/ && count > 0 }
        END { for (at in n) print at, (n[at] > 0)
              for (at in way) { split(at, part, " "); print part[1], (way[at] > 0) >branches } }' >"$counts"
[ -s "$counts" ] || { echo "coverage.sh: no counts here: the build was not configured with --enable-coverage" >&2; exit 1; }
sort "$counts" | sed -n 's/ 0$//p' >not-reached.txt
rows() { # rows WHAT: of each file, or the first two folders of its name, or the first
    awk -v what="$1" '
        { file = $1; sub(/:[0-9]*$/, "", file); m = split(file, part, "/"); key = file
          if (what == "module") key = m > 2 ? part[1] "/" part[2] : part[1]
          if (what == "folder") key = part[1] }
        FNR == NR { n[key]++; reached[key] += $2; next }
        { ways[key]++; gone[key] += $2 }
        END { for (key in n) printf "%6.1f %% of %6d lines, %5d not, %6.1f %% of %6d branches  %s\n", 100 * reached[key] / n[key],
                n[key], n[key] - reached[key], ways[key] ? 100 * gone[key] / ways[key] : 100, ways[key], key }' \
        "$counts" "$branches" | sort -n -k1,1 -k12,12
}
rows module
echo "files below 95 %:"
rows file | awk '$1 < 95'
rows folder
