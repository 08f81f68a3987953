#!/bin/sh
# recorders.sh -- doc/howto/record-*.md: each recipe of data/record/recipes is named by a page, and lines of a recipe on a page are
# its own; what the scripts wrote is read as it was meant, and replayed; the recipe for CUDA C writes a trace, with stand-ins for a
# device.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
recipes=$MPSIM_SRCDIR/data/record/recipes
pages=$MPSIM_SRCDIR/doc/howto

# ---- the pages and the scripts ----
scripts=$(cd "$recipes" && ls with_*)
# shellcheck disable=SC2016 # backquotes of the pages
[ "$(cat "$pages"/record-*.md | grep -o '`[a-z/]*with_[a-z]*\.[a-z]*`' | tr -d '`' | sed 's/.*\///' | sort -u)" = "$scripts" ]
ok $? "the pages name the recipes, and no others"
# Indented lines of these pages are lines of the recipes; screens and commands of mpsim are not.
cat "$recipes"/with_* >"$dir/scripts"
for page in "$pages/record-jax.md" "$pages/record-megatron.md"; do
    awk '/^    \$ / { screen = 1 } !/^    / { screen = 0 } /^    / && !screen && !/^ *(\.\.\.$|mpsim )/ { sub(/^ */, ""); print }' "$page" >"$dir/code"
    while IFS= read -r line; do
        grep -qF -- "$line" "$dir/scripts" || echo "$line"
    done <"$dir/code" >"$dir/out" 2>"$dir/err"
    [ -s "$dir/code" ] && [ ! -s "$dir/out" ]; ok $? "${page##*/}: its lines are those of the recipes"
done

# ---- what they wrote ----
# read NAME KINDS ELEMENTS OF: its kinds, the elements of weights in two steps, how many of how many numbers replay finds different
read_back() {
    run 0 stat --csv --level kind --counts -f fp16 "$recipes/$1" && [ "$(cut -d, -f4 "$dir/out" | sed 1d | sort | tr '\n' ' ')" = "$2 " ]; ok $? "$1: $2"
    run 0 info --csv -k weight "$recipes/$1" && [ "$(awk -F, 'NR > 1 { n += $(NF - 1) } END { print n }' "$dir/out")" = "$3" ]; ok $? "$1: $3 elements of weights"
    run 0 replay -P fp32 "$recipes/$1" && has "^record     $4 carried weights, moments and masters differ"; ok $? "$1: $4 carried numbers differ from the record"
    run 0 scaler "$recipes/$1"; ok $? "$1: scaler"
}
all='act agrad opt.m opt.v weight wgrad'
read_back pytorch "$all" 116 '0 of 174'
read_back lightning "$all" 116 '0 of 174'
read_back trainer 'opt.m opt.v weight wgrad' 664 '0 of 996'
read_back jax "$all" 116 '58 of 174' # in another order than optax
# scaled gradients of the recorded AMP run: the loss scale is known
run 0 info -v "$recipes/pytorch/step_000002" && has 'mpsim.loss_scale = 1024$' && has 'mpsim.grads_scaled = true$' && has 'agrad:2 .*fp16'
ok $? "pytorch: scaled gradients, and by what"

# ---- CUDA C ----
if command -v "${CC:-cc}" >/dev/null; then
    mkdir "$dir/include" "$dir/trace"
    cat >"$dir/include/cuda_runtime.h" <<'END'
#include <stdlib.h>
#include <string.h>
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
static int cudaMalloc(void **at, size_t n) { return (*at = malloc(n)) ? cudaSuccess : 2; }
static int cudaMemcpy(void *to, const void *from, size_t n, int way) { (void)way; memcpy(to, from, n); return cudaSuccess; }
END
    "${CC:-cc}" -x c -Wall -Wextra -Werror -I"$dir/include" -o "$dir/with_cuda" "$recipes/with_cuda.cu" >"$dir/out" 2>"$dir/err" &&
        "$dir/with_cuda" "$dir/trace" && run 0 info -v "$dir/trace" && has 'mpsim.loss_scale = 1024$' && has '^  wgrad:fc1.weight .*\[8, 4\]' && has ', step 1$' &&
        run 0 stat --json -f fp16 "$dir/trace" && has '"amax": 0.016383999958634377'; ok $? "CUDA C: a trace, with stand-ins for a device"
else
    ok 0 "CUDA C # SKIP no C compiler"
fi
finish
