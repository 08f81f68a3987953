#!/bin/sh
# ck-house.sh -- rules of the house that a script can check: what the library exports and uses,
# and who includes whom (HACKING.md).
set -u
: "${MPSIM:=./mpsim}" "${MPSIM_SRCDIR:=.}"
n=0
failed=0
ok() { # ok NAME OUTPUT: passes if OUTPUT is empty
    n=$((n + 1))
    if [ -z "$2" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        echo "$2" | sed 's/^/# /' | head -n 10
        failed=1
    fi
}
cd "$MPSIM_SRCDIR" || exit 1
build=$(dirname "$MPSIM")

# ---- the public headers and the shared library name the same functions ----
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat lib/mpsim/*.h | tr '\n' ' ' | sed 's/MPSIM_API/\
MPSIM_API/g' | sed -n 's/^MPSIM_API[^(]*[ *]\(mpsim_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$dir/declared"
lib=$(ls "$build"/lib/.libs/libmpsim.so 2>/dev/null || ls "$build"/lib/.libs/libmpsim.dylib 2>/dev/null)
if [ -n "$lib" ] && command -v nm >/dev/null; then
    # sanitizers and coverage add symbols of their own
    nm -D --defined-only "$lib" | sed -n 's/.* [TDBRV] //p' | grep -v -e '^_' -e '^__' | sort -u >"$dir/exported"
    ok "exported functions are the declared ones" "$(diff "$dir/declared" "$dir/exported")"
else
    n=$((n + 1))
    echo "ok $n - exported functions are the declared ones # SKIP no shared library or no nm"
fi
ok "every public function is used by a test" "$(while read -r f; do
    grep -q -w -r --include='*.c' "$f" tests || echo "$f"; done <"$dir/declared")"

# ---- layers ----
ok "lib includes libc, its own headers and nothing else" "$(grep -n '^#include' lib/*.c lib/*.h lib/mpsim/*.h |
    grep -v -e '<mpsim/[a-z]*\.h>' -e '"config\.h"' -e '"\(block_scale\|chain\|chain_portable\|chain_steps\|codes\|counts\|dot\|exact\|kernel\|kernel_vector\)\.h"' \
        -e '"\(layer_math\|loops\|optim_steps\|panel\|panel_steps\|rng\|scalar\|scalar_arith\|scalar_digest\|scalar_dot\)\.h"' \
        -e '"\(scalar_math\|sum\|tile\|tile_run\|tile_steps\|words\)\.h"' -e '^lib/\(panel\|loops\)[a-z0-9_]*\.[ch]:.*<immintrin\.h>' \
        -e '<\(float\|math\|stdatomic\|stddef\|stdint\|stdlib\|string\)\.h>')"
ok "lib does not print, exit, abort or read the environment" "$(grep -n -w -E \
    'printf|fprintf|puts|fputs|exit|abort|getenv|assert|fesetround|feraiseexcept' lib/*.c lib/*.h)"
ok "gpu includes its own files, the public headers of lib, lib/scalar*.h, rng.h and sim/train" "$(
    grep -n '^#include "' gpu/*.c gpu/*.h gpu/*.cu gpu/*.cuh | sed 's/^\([^:]*:[^:]*\):#include "\(.*\)".*/\1 \2/' |
    while read -r where file; do
        case $file in
        rng.h | scalar.h | scalar_*.h) [ -f "lib/$file" ] ;;
        ../sim/train/*.h | ../sim/parallel.h) [ -f "gpu/$file" ] ;;
        */*) false ;;
        *) [ -f "gpu/$file" ] ;;
        esac || echo "$where: $file"
    done)"
ok "sim uses the public headers of lib only" "$(grep -n -r --include='*.[ch]' \
    -E '^#include .*(scalar|kernel|lib/)' sim)"
ok "sim/train includes the public headers of lib and its own files" "$(grep -n '^#include' sim/train/*.[ch] |
    grep -v -e '<mpsim/[a-z]*\.h>' -e '<\(inttypes\|math\|stdarg\|stddef\|stdint\|stdio\|stdlib\|string\)\.h>' |
    sed 's/.*"\(.*\)".*/\1/' | while read -r file; do [ -f "sim/train/$file" ] ||
    [ "$file" = digits.inc ] || echo "$file"; done)"
ok "sim/train does not print, exit or abort" "$(grep -n -w -E '(printf|puts|perror|exit|abort|getenv) ?\(' sim/train/*.[ch])"
ok "sim/trace and sim/report do not know the commands" "$(grep -n -E \
    '^#include "(\.\./)?(cmd|options|input|target|statreport|output|plot)' sim/trace/*.[ch] sim/report/*.[ch])"
ok "threads are the business of sim/parallel.c" "$(grep -l -r --include='*.[ch]' -E \
    '[^a-z]omp_|pragma omp|[^a-z]pthread_' lib sim | grep -v '^sim/parallel\.c$')"
ok "the oracle uses no function of the library" "$(grep -n -E \
    'mpsim_[a-z0-9_]+ *\(' sim/verify/oracle*.c | grep -v -E 'sizeof|/\*|:[0-9]+: \*')"
ok "NEWS.md names the version" "$(v=$("$MPSIM" --version | cut -d' ' -f2)
    grep -q "^## $v" NEWS.md || echo "no section for $v")"

echo "1..$n"
exit $failed
