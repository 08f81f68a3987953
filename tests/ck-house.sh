#!/bin/sh
# ck-house.sh -- rules of the house that a script can check: what the library exports and uses, who includes
# whom, that no two files or folders need each other (doc/dev/architecture.md), and how errors are worded.
#
#   ck-house.sh             the checks, as TAP
#   ck-house.sh messages    every text of an error in the sources, FILE:LINE: TEXT, for a reader's eyes
set -u
LC_ALL=C
export LC_ALL
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
messages() { # texts with a space among the arguments of the functions that report errors
    find lib sim gpu -name '*.[ch]' -o -name '*.cu' | sort | xargs awk '
        FNR == 1 { inside = 0 }
        /^[ \t]*(\/\*|\*)/ || /#define/ { next }
        /(^|[^a-z0-9_])([a-z0-9_]*_)?(fail|failed|fails|bad|refuse|refused|damaged|misfit|trouble|error_set)(_[a-z]+)?[(]/ {
            inside = 1; text = ""; line = FNR
        }
        inside {
            rest = $0
            while (match(rest, /"([^"\\]|\\.)*"/)) {
                text = text substr(rest, RSTART + 1, RLENGTH - 2)
                rest = substr(rest, RSTART + RLENGTH)
            }
            if ($0 ~ /;[ \t]*$/) { inside = 0; if (text ~ / /) print FILENAME ":" line ": " text }
        }'
}
build=$(cd "$(dirname "$MPSIM")" && pwd)
cd "$MPSIM_SRCDIR" || exit 1
if [ "${1:-}" = messages ]; then
    messages
    exit
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# ---- the public headers and the shared libraries name the same functions ----
declared() { cat "$@" | tr '\n' ' ' | sed 's/MPSIM_API/\
MPSIM_API/g' | sed -n 's/^MPSIM_API[^(]*[ *]\(mpsim_[a-z0-9_]*\)(.*/\1/p' | sort -u; }
shared() { ls "$build/lib/.libs/$1.so" 2>/dev/null || ls "$build/lib/.libs/$1.dylib" 2>/dev/null; }
exported() { # sanitizers and coverage add symbols of their own
    nm -D --defined-only "$1" | sed -n 's/.* [TDBRV] //p' | grep -v -e '^_' -e '^__' | sort -u
}
declared lib/include/mpsim/judge.h lib/include/mpsim/trace.h lib/include/mpsim/report.h lib/include/mpsim/threads.h lib/include/mpsim/policy.h >"$dir/of-trace"
declared lib/include/mpsim/*.h >"$dir/declared"
grep -v -x -F -f "$dir/of-trace" "$dir/declared" >"$dir/of-mpsim"
lib=$(shared libmpsim) trace=$(shared libmpsim-trace)
if [ -n "$lib" ] && [ -n "$trace" ] && command -v nm >/dev/null; then
    exported "$lib" >"$dir/exported"
    ok "exported functions are the declared ones" "$(diff "$dir/of-mpsim" "$dir/exported")"
    exported "$trace" >"$dir/exported"
    ok "those of libmpsim-trace, too" "$(diff "$dir/of-trace" "$dir/exported")"
    ok "libmpsim-trace does not print, end a process, start one, or handle signals" "$(nm -D --undefined-only "$trace" | grep -w -E \
        'w?printf|__printf_chk|puts|putchar|perror|stdout|stderr|_?exit|quick_exit|abort|raise|kill|signal|sigaction|fork|execve|posix_spawnp?')"
else
    n=$((n + 3))
    echo "ok $((n - 2)) - exported functions are the declared ones # SKIP no shared libraries or no nm"
    echo "ok $((n - 1)) - those of libmpsim-trace, too # SKIP likewise"
    echo "ok $n - libmpsim-trace does not print, end a process, start one, or handle signals # SKIP likewise"
fi
find tests -name '*.c' -print | xargs grep -o -h 'mpsim_[A-Za-z0-9_]*' | awk '!seen[$0]++' >"$dir/used"
ok "every public function is used by a test" "$(grep -v -x -F -f "$dir/used" "$dir/declared")"

ok "headers begin with #pragma once, public ones with a guard" "$(
    find lib/include gpu/include -name '*.h' | xargs grep -L '^#ifndef MPSIM_'
    find lib sim gpu tests -name '*.h' -o -name '*.cuh' | grep -v -e '^lib/include' -e '^gpu/include' -e '^tests/tree[.]' | # that of library.sh
        xargs grep -l '^#ifndef MPSIM_[A-Z0-9_]*_CUH*$\|^#ifndef MPSIM_[A-Z0-9_]*_H$')"

# ---- who may include whom: the first line whose left side fits a file decides ----
# <name> is a header of the system or of another project; a path is one of the house.
cat >"$dir/borders" <<'TABLE'
^lib/include/mpsim/       ^lib/include/mpsim/|^<(stddef|stdint)[.]h>
^lib/include/(train|threads)/ ^lib/include/|^<(stddef|stdint|stdio)[.]h>
^lib/threads/             ^lib/include/threads/|^lib/threads/|^<
^lib/train/               ^lib/include/|^lib/base/transpose[.]h|^lib/train/|^data/(digits|text)/|^<(inttypes|math|stdarg|stddef|stdint|stdio|stdlib|string)[.]h>
^lib/simd/                ^lib/simd/generic[.]h|^<(arm_neon|emmintrin|immintrin|math|stddef|stdint|string)[.]h>
^lib/base/isa[.]c         ^lib/base/isa[.]h|^lib/include/mpsim/isa[.]h|^config[.]h|^<(cpuid|stdatomic|string)[.]h>
^lib/base/environment[.]h ^<(fenv|stdint|xmmintrin)[.]h>
^lib/dot/                 ^lib/include/mpsim/|^lib/(base|dot|round|simd|stats|arith)/|^config[.]h|^<(float|immintrin|math|stdatomic|stddef|stdint|stdlib|string)[.]h>
^lib/                     ^lib/include/mpsim/|^lib/(arith|base|block|digest|format|layer|optim|round|scaler|simd|stats)/|^config[.]h|^<(float|math|stdatomic|stddef|stdint|stdlib|string)[.]h>
^gpu/stats/plan[.]c        ^gpu/stats/|^lib/include/|^lib/stats/(target[.]h|loops/loops[.]h)|^<
^gpu/library/             ^gpu/|^lib/include/|^lib/[a-z]+/scalar[.]h|^lib/optim/numbers[.]h|^lib/round/rng[.]h|^lib/block/scale[.]h|^lib/dot/(grouped|shape|stack|staged)[.]h|^lib/layer/seen[.]h|^<
^gpu/                     ^gpu/|^lib/include/|^lib/[a-z]+/scalar[.]h|^lib/block/scale[.]h|^lib/layer/(functions|transformer)[.]h|^lib/optim/numbers[.]h|^lib/round/rng[.]h|^tests/gpu/host|^<
^sim/array/               ^sim/array/|^<
^sim/text/                ^sim/(array|text)/|^<
^sim/pickle/              ^sim/pickle/|^<
^sim/quant/               ^sim/(quant|text)/|^lib/include/mpsim/|^<
^sim/trace/               ^sim/(array|pickle|quant|text|trace)/|^lib/include/mpsim/|^config[.]h|^<
^sim/tracelib/              ^sim/(array|cli|judge|operand|policy|process|tracelib|record|stat|text|trace)/|^lib/include/(mpsim/|threads/parallel[.]h)|^<
^sim/sandbox/             ^sim/sandbox/|^config[.]h|^<
^sim/record/              ^sim/(array|record|text)/|^lib/include/|^<
^sim/process/             ^sim/(array|process|record|text|trace)/|^lib/include/|^config[.]h|^<
^sim/cli/confine[.]c       ^sim/(cli|process|sandbox|trace)/|^<
^sim/exact/               ^sim/(exact|text)/|^lib/include/mpsim/|^<
^sim/cli/                 ^sim/(array|cli|process|record|text|trace)/|^lib/include/|^config[.]h|^<
^sim/(operand|input)/     ^sim/(array|cli|exact|input|operand|process|record|text|trace)/|^lib/include/|^config[.]h|^<
^sim/traininglog/          ^sim/(array|cli|input|operand|process|record|text|trace|traininglog)/|^lib/include/|^config[.]h|^<
^sim/policy/yaml[.]c      ^sim/(array|policy|cli|process|trace)/|^<
^sim/verify/gpu[.]c       ^sim/(verify|cli|process)/|^gpu/gpu[.]h|^<
^sim/train/cuda[.]c       ^sim/train/|^gpu/(gpu|train)[.]h|^<
^sim/[a-z]*[.][ch]         ^sim/((cli|input|process)/|(commands|program)[.]h)|^lib/include/mpsim/|^config[.]h|^<
^sim/                     ^sim/|^lib/include/|^config[.]h|^<
TABLE

includes() { # of the tree in the current folder: FILE TARGET, a line each
    find lib sim gpu -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort |
        xargs grep -H '^[[:space:]]*#[[:space:]]*include' | awk '
    function there(p,   line) {
        if (!(p in found)) { found[p] = (getline line < p) >= 0; close(p) }
        return found[p]
    }
    function plain(p) { while (sub(/[^\/.]+\/[.][.]\//, "", p)); return p }
    {
        i = index($0, ":"); file = substr($0, 1, i - 1); what = substr($0, i + 1)
        sub(/^[^<"]*/, "", what); quote = substr(what, 1, 1); sub(/^["<]/, "", what); sub(/[">].*/, "", what)
        folder = file; sub(/[^\/]*$/, "", folder)
        if (quote == "<") target = what ~ /^(mpsim|train)\/|[.][.]\// ? plain("lib/include/" what) : "<" what ">"
        else {
            target = plain(folder what)
            if (!there(target)) { # what lies on a path of the build
                if (what == "digits.inc" || what == "text.inc") target = "data/" substr(what, 1, length(what) - 4) "/" what
                else if (what ~ /^host/) target = "tests/gpu/" what
                else target = what
            }
        }
        print file, target
    }'
}
borders() { # violations in $dir/includes
    awk -v table="$dir/borders" '
    BEGIN { while ((getline < table) > 0) { n++; from[n] = $1; to[n] = $2 } }
    { for (i = 1; i <= n; i++) if ($1 ~ from[i]) { if ($2 !~ to[i]) print $1 " includes " $2; next }
      print $1 ": no rule for this file" }' "$dir/includes"
}
includes >"$dir/includes"
ok "who includes whom: the table of borders" "$(borders)"
ok "threads are the business of lib/threads" "$(grep -l -r --include='*.[ch]' -E \
    '[^a-z]omp_|pragma omp|[^a-z]pthread_' lib sim | grep -v '^lib/threads/')"
ok "YAML, archives, HDF5 and JSON: a library, a place" "$(grep -n -r --include='*.[ch]' -E '^#include <(yaml|zip|zlib|archive|hdf5|jansson)\.h>' lib sim gpu |
    grep -v -e '^sim/policy/yaml\.c:.*yaml' -e '^sim/trace/[a-z]*\.[ch]:.*\(zip\|jansson\)' -e '^sim/[a-z]*/[a-z]*\.[ch]:.*jansson' \
        -e '^sim/trace/stream[a-z]*\.c:.*\(zlib\|archive\)' -e '^sim/trace/hdf5\.h:.*hdf5')"
ok "texts in memory tell what they lack: no open_memstream, whose fprintf may be lost without an error" "$(grep -n -r --include='*.c' \
    'open_memstream(' lib sim gpu)"
ok "texts grow by text_add: in sim no snprintf writes behind a length" "$(grep -n -r --include='*.[ch]' -E \
    'snprintf\([^,]* \+ [^,]*, [^,]* - |snprintf\(&|\+= [^;]*snprintf\(' sim | grep -v '^sim/text/words\.c:')"
ok "MPI is the business of sim/mpi/main.c" "$(grep -l -r --include='*.[ch]' -E '^#include <mpi\.h>|[^a-z]MPI_' lib sim gpu |
    grep -v '^sim/mpi/main\.c$')"
ok "lib does not print, exit, abort or read the environment" "$(grep -n -w -r --include='*.[ch]' -E \
    '(printf|puts|perror|exit|abort|getenv|assert|fesetround|feraiseexcept) ?\(' lib | grep -v ':[0-9]*: \*')"
ok "lib but the trainer opens and writes no files" "$(grep -n -w -r --include='*.[ch]' -E \
    '(fprintf|fputs|fopen|fwrite|FILE) ?' lib | grep -v -e ':[0-9]*: \*' -e '^lib/train/' -e '^lib/include/train/' -e '^lib/threads/processors')"

ok "what takes a size refuses one that memory cannot hold: tests/base/t-extent.c asks each" "$(sed 's|/[*].*||; /^ [*]/d' lib/include/mpsim/*.h |
    tr '\n' ' ' | sed 's/MPSIM_API/\
MPSIM_API/g' | sed 's/;.*//' | grep -E 'size_t (n|rows|cols|columns|depth|classes|places)\b|(const mpsim_(stack|matrix|strided|rownorm|batchnorm|softmax|causal|causal_tile|convolution|product) [*])' |
    grep -E '^MPSIM_API (mpsim_status|void|float|double|unsigned|int|uint64_t|mpsim_number_counts) ' |
    sed -n 's/^[^(]*[ *]\(mpsim_[a-z0-9_]*\)(.*/\1/p' | sort -u | while read -r name; do
        case $name in
        # they read no array of that size (mpsim_scaler_set: a text), or do it through another function; those of libmpsim-trace: tests/sim/t-report.c, t-judge.c
        *_init | mpsim_scaler_set | mpsim_block_grid | mpsim_muon_work | mpsim_muon_factor | mpsim_convolution_size | mpsim_stat_* | mpsim_reader_* | mpsim_policy_* | mpsim_judge | mpsim_judge_tolerance_of) continue ;;
        esac
        grep -qE "(N|ROWS)\($name\)" tests/base/t-extent.c || echo "$name"
    done)"

# ---- no circles: between files (who calls whom), between folders (who includes whom) ----
# shellcheck disable=SC2069 # what tsort complains of, not its order
circles() { # nm -A on stdin: the loops
    awk '{ sub(/:.*/, "", $1); file = $1 }
    NF >= 3 && $(NF - 1) ~ /^[TDBRVW]$/ { of[$NF] = file }
    NF >= 3 && $(NF - 1) == "U" { need[++n] = file " " $NF }
    END { for (i = 1; i <= n; i++) { split(need[i], p, " ")
        if (p[2] in of && of[p[2]] != p[1]) print p[1], of[p[2]] } }' | sort -u | tsort 2>&1 >/dev/null
}
objects() { # of libraries and program; none whose source is gone
    { find lib sim gpu -name '*.c' -o -name '*.cu' && (cd "$build" && find lib sim gpu -name '*.o'); } | awk '
        !/[.]o$/ { there[$0]; next }
        { source = $0; sub(/\/[^\/]*-/, "/", source); sub(/o$/, "c", source) }
        source in there || source "u" in there'
}
if command -v nm >/dev/null && command -v tsort >/dev/null; then
    objects >"$dir/objects"
    ok "no two files need each other" "$([ -s "$dir/objects" ] || echo "no objects"
        cd "$build" && xargs nm -A <"$dir/objects" 2>/dev/null | circles)"
else
    n=$((n + 1))
    echo "ok $n - no two files need each other # SKIP no nm or no tsort"
fi
# shellcheck disable=SC2069 # as above
folders() { # loops between the modules, by $dir/includes; a folder within one belongs to it
    grep -v ' <' "$dir/includes" | awk '
    function module(p,   part) {
        sub(/\/[^\/]*$/, "", p)
        if (p !~ /include/ && split(p, part, "/") > 2) p = part[1] "/" part[2]
        return p
    }
    { a = module($1); b = module($2); if (a != b) print a, b }' | sort -u | tsort 2>&1 >/dev/null
}
ok "no two folders include each other" "$(folders)"

# ---- each of these checks fails where it should ----
mkdir -p "$dir/tree/lib/dot" "$dir/tree/lib/round" "$dir/tree/lib/train" "$dir/tree/sim/stat" "$dir/tree/sim/trace" \
    "$dir/tree/gpu/kernels" "$dir/tree/sim/cli" "$dir/tree/lib/include/mpsim"
(
    cd "$dir/tree" || exit 1
    for header in lib/dot/panel.h lib/train/trainer.h sim/cli/options.h sim/stat/tensor.h lib/round/scalar.h; do : >$header; done
    echo '#include "../../lib/dot/panel.h"' >sim/stat/private.c
    echo '#include <../dot/panel.h>' >sim/stat/private_too.c
    echo '#include "../train/trainer.h"' >lib/dot/upwards.c
    echo '#include <jansson.h>' >lib/round/foreign.c
    echo '#include "../round/scalar.h"' >lib/train/inside.c
    echo '#include "../../lib/round/scalar.h"' >lib/include/mpsim/private.h
    echo '#include "../../sim/cli/options.h"' >gpu/kernels/back.cu
    echo '#include "../cli/options.h"' >sim/trace/command.c
    echo '#include "../stat/tensor.h"' >sim/cli/command.c
    echo '#include "../cli/options.h"' >sim/stat/fine.c
    includes >"$dir/includes"
    borders >"$dir/violations"
    folders >"$dir/loops"
)
ok "a violation of each border is found" "$(for f in sim/stat/private.c sim/stat/private_too.c lib/dot/upwards.c lib/round/foreign.c lib/train/inside.c \
    lib/include/mpsim/private.h gpu/kernels/back.cu sim/trace/command.c sim/cli/command.c; do
    grep -q "^$f includes" "$dir/violations" || echo "$f was not found"; done
    grep -v -e private -e upwards -e foreign -e inside -e back -e command "$dir/violations")"
ok "a circle of folders is found" "$([ -s "$dir/loops" ] || echo "sim/cli and sim/stat were not found")"
ok "a circle of files is found" "$([ -n "$(printf '%s\n' 'a.o: 0 T f' 'a.o: U g' 'b.o: 0 T g' 'b.o: U f' | circles)" ] || echo none
    printf '%s\n' 'a.o: 0 T f' 'a.o: U g' 'b.o: 0 T g' | circles)"

# ---- words ----
ok "errors say what is not so: '%s' is not a format, not: is no format" "$(messages |
    grep -E "(is|are) no |is none of" | grep -v -e 'there is no ')"

# ---- pages for contributors ----
# shellcheck disable=SC2016 # backquotes of a page
ok "README.md of lib and of sim has every folder" "$(find lib sim -mindepth 2 -name '*.[ch]' | cut -d/ -f1,2 | sort -u | while read -r folder; do
    grep -qF "\`${folder#*/}/" "${folder%/*}/README.md" || echo "$folder"; done)"
ok "HACKING.md is a page of links, and no source names it: reasons are in the heads of files" "$(
    [ "$(wc -w <HACKING.md)" -lt 250 ] || echo "HACKING.md: $(wc -w <HACKING.md) words"
    find lib sim gpu m4 tests -name '*.[ch]' -o -name '*.cu*' -o -name '*.m4' -o -name '*.awk' | xargs grep -n HACKING)"

ok "files that comments name are there" "$(find lib sim tests/oracle tests/support -name '*.[ch]' | xargs grep -h -o -E \
    '(^|[^A-Za-z0-9_./-])(lib|sim|gpu|tests|data|doc|python)/[A-Za-z0-9_/-]+[.](c|h|cuh?|md|sh|py|tsv|txt)([^A-Za-z0-9_.]|[.]?$)' |
    sed 's/^[^a-z]//; s/[^a-z]*$//' | sort -u | while read -r file; do [ -e "$file" ] || echo "$file"; done)"

# ---- nothing that a tool left: files in the root that are not known; files of bytes outside data/ and tests/ ----
known='[.](clang-format|containerignore|editorconfig|gitignore)|(CONTRIBUTING|HACKING|NEWS|README|SECURITY)[.]md|AUTHORS|CITATION[.]cff|Containerfile|COPYING|Makefile[.]am|bootstrap|configure[.]ac'
strays() { # of the names on stdin
    grep -v -E '^(data|tests)/|^(plots|doc/gallery)/.*[.]png$' >"$dir/looked"
    grep -v -e / "$dir/looked" | grep -v -x -E "$known"
    grep -e / "$dir/looked" | xargs grep -L -I '' | while read -r file; do [ ! -s "$file" ] || echo "$file holds bytes"; done
}
if [ -e .git ] && command -v git >/dev/null && git ls-files >"$dir/files" 2>/dev/null; then
    ok "no stray files" "$(strays <"$dir/files")"
else
    n=$((n + 1))
    echo "ok $n - no stray files # SKIP not a checkout, or no git"
fi
printf 'a\0b' >"$dir/tree/lib/left"
ok "a stray file is found" "$(cd "$dir/tree" && [ "$(printf '%s\n' default.profraw lib/left COPYING lib/dot/upwards.c | strays | wc -l)" -eq 2 ] || echo none)"

# ---- oracles, news ----
ok "the oracle uses no function of the library" "$([ -e sim/verify/oracles/oracle.c ] || echo "no oracle.c"
    grep -n -E \
    'mpsim_[a-z0-9_]+ *\(' sim/verify/oracles/oracle*.c | grep -v -E 'sizeof|/\*|:[0-9]+: \*')"
ok "every test that tests/properties.tsv names exists" "$(awk -F '\t' 'NF != 3 || $1 == "" || $2 == ""' tests/properties.tsv
    cd tests && for file in $(sed 1d properties.tsv | cut -f3); do [ -e "$file" ] || echo "$file"; done)"
# what tests/README.md lists: each is judged elsewhere, or looks up a row or data
lent='rng_word|exp|exp2|log|sin|cos|tanh|erf|sigmoid|power|norm|clip_(factor|total|unscales)|scaler_(init|update)|amax'
lent="$lent|delayed_(config_init|init|record|update)|block_(find|quantize)|decode|format_find|optim_variant_unscales"
ok "the oracles of tests call what tests/README.md lists of the library" "$(grep -n -o -E \
    '(^|[^a-z0-9_])(mpsim|train)_[a-z0-9_]+ *\(' tests/oracle/*.[ch] | grep -v -E "[^a-z0-9_](mpsim_($lent)|train_digit) *\\($")"
# ---- schemas of reports: mpsim.NAME/VERSION in sim is mpsim.NAME.VERSION.json in doc/schema; scaler-state is no JSON, run is what judge reads ----
reports() { # names in C files and in those of mpsim.emulate, and those that have a file which says the same: what only one of both has
    find "$1/sim" "$1"/python/src/mpsim/emulate* -name '*.c' -o -name '*.py' | xargs grep -h -o 'mpsim[.][a-z-]*/[0-9][0-9]*' | grep -v '^mpsim[.]\(scaler-state\|run\)/' | sort -u >"$dir/named"
    for file in "$1"/doc/schema/mpsim.*.json; do
        grep -o '"schema": {"const": "mpsim[.][a-z-]*/[0-9]*"' "$file" | cut -d'"' -f6 | head -n 1 >"$dir/const"
        case $file in */"$(tr / . <"$dir/const").json") cat "$dir/const" ;; *) echo "$file: it is of $(cat "$dir/const")" ;; esac
    done | sort -u >"$dir/filed"
    diff "$dir/named" "$dir/filed"
}
ok "every report that names a schema has it in doc/schema, and every schema a report" "$(reports .)"
ok "every report says which version made it" "$(grep -L -E '^ *"mpsim": \{.*"type": "string"' doc/schema/mpsim.*.json
    for file in doc/schema/mpsim.*.json; do tr -d ' \n' <"$file" | grep -q '"required":\["schema","mpsim",' || echo "$file: not required"; done)"
mkdir -p "$dir/tree/sim/stat" "$dir/tree/doc/schema" "$dir/tree/python/src/mpsim/emulate"
echo '"mpsim.stat/1" "mpsim.stat/2" "mpsim.scaler-state/2"' >"$dir/tree/sim/stat/report.c"
for name in stat.1 info.1; do echo '"schema": {"const": "mpsim.stat/1"}' >"$dir/tree/doc/schema/mpsim.$name.json"; done
ok "a report without a schema is found, and a schema that says another name" "$([ "$(reports "$dir/tree" | grep -c '^[<>] ')" -eq 2 ] || echo none)"
unpacked() { # files of the Python package and its tests that a distribution would leave out
    find python/src python/tests -name '*.py' | while read -r file; do grep -qF "$file" python/local.mk || echo "$file"; done
}
ok "python/local.mk names every file of the Python package, for distributions" "$(unpacked)"
ok "folders in recipes of make are in quotes: one may have a space" "$(grep -nE '(^|[^"=])\$\(abs_[a-z_]*builddir\)|[^%]=\$\(abs_' \
    Makefile.am ./*/local.mk)"
# ---- one version: configure.ac has it, NEWS.md the day; the number in the sonames is in file names of the wheel and in Debian's ----
released() { # TREE: files that say something else
    (cd "$1" && version=$(sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/\1/p' configure.ac)
    soname=$(sed -n 's/^AC_SUBST(\[MPSIM_LT_VERSION\], \[\([0-9]*\):[0-9]*:\([0-9]*\)\])/\1 \2/p' configure.ac | awk '{ print $1 - $2 }')
    says() { sed -n "$2" "$1" | head -n 1 | grep -q -x -F -e "$3" || echo "$1: expected $3"; }
    heading=$(sed -n '/^## /{p;q;}' NEWS.md) day=
    case $heading in
    "## $version, "[0-9]*-[0-9]*-[0-9]*) day=${heading##* } ;;
    "## $version (not released yet)") ;;
    *) echo "NEWS.md: expected ## $version" ;;
    esac
    says CITATION.cff 's/^version: //p' "$version"
    says debian/changelog 's/^mpsim (\(.*\)) .*/\1/p' "$version"
    if [ "$day" ]; then
        says CITATION.cff 's/^date-released: //p' "$day"
        says debian/changelog 's/^mpsim .*) \([^;]*\);.*/\1/p' unstable
        says debian/changelog 's/^ -- .*, \([0-9]* [A-Z][a-z]* [0-9]*\) .*/\1/p' "$(LC_ALL=C date -u -d "$day" '+%d %b %Y')"
    fi
    grep -q "^Package: libmpsim$soname\$" debian/control && grep -q "^Package: libmpsim-trace$soname\$" debian/control || echo "debian/control: expected libmpsim$soname"
    grep -o 'libmpsim[a-z-]*[.]so[.][0-9]*' python/local.mk | grep -v "[.]so[.]$soname\$" || true)
}
ok "one version, one day and one soname: NEWS.md, CITATION.cff, debian, python" "$(released .)"
ok "the program has it, too" "$("$MPSIM" --version | head -n 1 | grep -q -x -F "mpsim $(sed -n 's/^AC_INIT(\[mpsim\], \[\(.*\)\])/\1/p' configure.ac)" || "$MPSIM" --version)"
cp -r debian configure.ac NEWS.md CITATION.cff "$dir/tree" && mkdir -p "$dir/tree/python" && cp python/local.mk "$dir/tree/python"
sed -i 's/^version: .*/version: 9.9.9/; s/^date-released: .*/date-released: 1999-01-01/' "$dir/tree/CITATION.cff"
sed -i 's/libmpsim0/libmpsim1/' "$dir/tree/debian/control"
ok "another version and another soname are found" "$([ "$(released "$dir/tree" | wc -l)" -ge 2 ] || echo none)"

echo "1..$n"
exit $failed
