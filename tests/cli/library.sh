#!/bin/sh
# library.sh -- libmpsim and libmpsim-trace as somebody else's program meets them: installed into a folder, found by pkg-config,
# and their headers from C++ and CUDA.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
build=${MPSIM%/*}
cc=$(command -v gcc || command -v cc) || { echo "1..0 # SKIP no C compiler"; exit 0; }
compile() { "$@" >"$dir/out" 2>"$dir/err"; }
tree=$(mktemp -d "$build/tests/tree.XXXXXX") || exit 99 # not in $dir: libtool installs into no folder with blanks in its name
trap 'rm -rf "$dir" "$tree"' EXIT

# ---- an installed tree, without make check's flags ----
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$build" prefix="$tree" exec_prefix="$tree" libdir="$tree/lib" \
    includedir="$tree/include" DESTDIR= install-libLIBRARIES install-libLTLIBRARIES install-dist_mpsimincludeHEADERS \
    >"$dir/out" 2>"$dir/err"
ok $? "libraries and headers are installed"
mkdir -p "$tree/lib/pkgconfig"
for pc in mpsim mpsim-trace; do
    sed "s,^prefix=.*,prefix=$tree,; s,^exec_prefix=.*,exec_prefix=\${prefix},; s,^libdir=.*,libdir=\${prefix}/lib,
        s,^includedir=.*,includedir=\${prefix}/include," "$build/lib/$pc.pc" >"$tree/lib/pkgconfig/$pc.pc"
done
example() { # example PAGE [NAME]: its program of that name, and what that prints, to the next paragraph
    awk -v name="${2-example}" -v source="$dir/example.c" -v wanted="$dir/wanted" '
        /^    #include <mpsim/ { text = "" }
        /^    / { text = text substr($0, 5) "\n" }
        /^$/ { text = text "\n" }
        /^[^ ]/ { prints = 0 }
        prints { lines = lines substr($0, 5) "\n" }
        $0 ~ "cc -o " name " " { sub(/\n\n*[$][^\n]*\n$/, "\n", text); printf "%s", text >source; prints = 1 }
        END { sub(/\n\n*$/, "\n", lines); printf "%s", lines >wanted }' "$MPSIM_SRCDIR/$1"
}
example README.md
# sanitizers are no part of what others link
if [ -n "$(sanitizers)" ] || ! command -v pkg-config >/dev/null; then
    ok 0 "the example of the README # SKIP sanitizers, or no pkg-config"
else
    PKG_CONFIG_PATH=$tree/lib/pkgconfig
    export PKG_CONFIG_PATH
    if [ -e "$tree/lib/libmpsim.so" ]; then
        # shellcheck disable=SC2046 # words
        compile "$cc" -o "$dir/shared" "$dir/example.c" $(pkg-config --cflags --libs mpsim) &&
            LD_LIBRARY_PATH=$tree/lib "$dir/shared" >"$dir/out" 2>"$dir/err" && cmp "$dir/out" "$dir/wanted" >>"$dir/err"
        ok $? "the example of the README, by pkg-config" # the shared library did not say that it needs libm
    fi
    if [ -e "$tree/lib/libmpsim-trace.so" ]; then
        example doc/reference/library.md
        # shellcheck disable=SC2046
        compile "$cc" -o "$dir/reads" "$dir/example.c" $(pkg-config --cflags --libs mpsim-trace) &&
            (cd "$MPSIM_SRCDIR" && LD_LIBRARY_PATH=$tree/lib "$dir/reads" data/digits-cnn/step_000001) >"$dir/out" 2>"$dir/err" &&
            cmp "$dir/out" "$dir/wanted" >>"$dir/err"
        ok $? "the example of doc/reference/library.md, by pkg-config"
        compile "$cc" -o "$dir/alone" -I"$tree/include" "$dir/example.c" -L"$tree/lib" -lmpsim-trace -Wl,-rpath,"$tree/lib" &&
            { "$dir/alone" "$dir/nowhere" 2>"$dir/err"; [ $? -eq 1 ]; } &&
            [ "$(cat "$dir/err")" = "example: $dir/nowhere: cannot open: No such file or directory" ]
        ok $? "libmpsim-trace finds libmpsim beside it; an error is a line and a status"
        example doc/reference/library.md report
        # shellcheck disable=SC2046
        compile "$cc" -o "$dir/reports" "$dir/example.c" $(pkg-config --cflags --libs mpsim-trace) &&
            LD_LIBRARY_PATH=$tree/lib "$dir/reports" >"$dir/out" 2>"$dir/err" && cmp "$dir/out" "$dir/wanted" >>"$dir/err"
        ok $? "its report of arrays, too"
        example README.md
    fi
    rm -f "$tree"/lib/libmpsim*.so* "$tree"/lib/libmpsim*.la
    # shellcheck disable=SC2046
    compile "$cc" -o "$dir/static" "$dir/example.c" $(pkg-config --static --cflags --libs mpsim) &&
        "$dir/static" >"$dir/out" 2>"$dir/err" && cmp "$dir/out" "$dir/wanted" >>"$dir/err"
    ok $? "and with the static library"
fi

# ---- each header on its own ----
headers=$(cd "$tree/include" && ls mpsim/*.h)
for h in $headers; do
    printf '#include <%s>\n' "$h" >"$dir/$(basename "$h" .h).cc"
    printf '#include <%s>\nextern int declared;\n' "$h" >"$dir/one-$(basename "$h")"
done
"$cc" -std=c17 -pedantic-errors -Wall -Wextra -Werror -I"$tree/include" -fsyntax-only -x c "$dir"/one-*.h >"$dir/out" 2>"$dir/err"
ok $? "each header on its own, in C17"
if cxx=$(command -v g++ || command -v c++); then
    "$cxx" -std=c++11 -pedantic-errors -Wall -Wextra -Werror -I"$tree/include" -fsyntax-only "$dir"/*.cc >"$dir/out" 2>"$dir/err"
    ok $? "each header on its own, in C++11"
else
    ok 0 "each header on its own, in C++11 # SKIP no C++ compiler"
fi
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ -x "$nvcc" ]; then
    printf '#include <mpsim/mpsim.h>\n__global__ void k(mpsim_rng *r) { r->index = 1; }\n' >"$dir/x.cu"
    "$nvcc" -I"$tree/include" --cuda -o "$dir/x.ii" "$dir/x.cu" >"$dir/out" 2>"$dir/err"
    ok $? "all headers, in CUDA"
else
    ok 0 "all headers, in CUDA # SKIP no nvcc"
fi
finish
