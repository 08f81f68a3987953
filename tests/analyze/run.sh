#!/bin/sh
# run.sh [FOLDER...]: what analyzers say of the sources (default: lib, sim and the C of gpu) and `known` does not explain; exit code 1 if
# there is anything. cppcheck looks at all of them, clang's and gcc's analyzers at each file, where they are installed.
# CPPFLAGS: what the libraries need. make analyze runs it in the build folder, whose config.h it reads.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd) build=$PWD
cd "$source" || exit 2
LC_ALL=C # messages as `known` has them
export LC_ALL
[ $# -gt 0 ] || set -- lib sim gpu/validation/checks gpu/validation/program gpu/validation/speed gpu/stats
found=$(mktemp)
trap 'rm -f "$found"' EXIT
includes="-I$build -Ilib/include -I. -Idata/digits -Idata/text"
macros='-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DMPSIM_PLOTS_DIR="" -DMPSIM_POLICIES_DIR=""'
# what needs a library or a machine that may not be here
files=$(find "$@" -name '*.c' ! -name '*hdf5*' ! -path '*/mpi/*' ! -name 'neon.c' ! -name 'nvidia.c' ! -name 'cuda.c' \
    ! -name 'avx*.c' | sort)
ran=
if command -v cppcheck >/dev/null; then
    ran="$ran cppcheck"
    # shellcheck disable=SC2086
    cppcheck -q --std=c11 --enable=warning,portability --max-configs=1 --template='{file}: {id}: {message}' \
        $includes $macros -DHAVE_LIBARCHIVE -D__BYTE_ORDER__=1234 "$@" 2>>"$found"
fi
if command -v "${CLANG:=clang}" >/dev/null; then
    ran="$ran clang"
    for file in $files; do
        # shellcheck disable=SC2086
        "$CLANG" --analyze -Xclang -analyzer-output=text -std=c17 $includes $macros ${CPPFLAGS-} "$file" 2>&1 |
            sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning: /\1: /p' >>"$found"
    done
fi
if [ "${GCC=gcc}" ] && "$GCC" -fanalyzer -E -x c /dev/null >/dev/null 2>&1; then
    ran="$ran gcc"
    for file in $files; do
        case $file in */generic.c) continue ;; esac # kernels take it minutes each
        # shellcheck disable=SC2086
        "$GCC" -fanalyzer -O1 -std=c17 -c -o /dev/null $includes $macros ${CPPFLAGS-} "$file" 2>&1 |
            sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: warning: /\1: /p' >>"$found"
    done
fi
# A line of `known` explains findings: FILE: words of the message, then why it is no defect after " -- ".
sed -n 's/ -- .*//p' tests/analyze/known >"$found.known"
new=$(sort -u "$found" | grep -v -F -f "$found.known")
known=$(sort -u "$found" | grep -c -F -f "$found.known")
rm -f "$found.known"
[ -z "$new" ] || printf '%s\n' "$new"
echo "analyzed by${ran:- nothing: none is installed}: $(printf '%s' "$new" | grep -c .) new, $known explained in tests/analyze/known"
[ -z "$new" ]
