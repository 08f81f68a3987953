#!/bin/sh
# sassblocks.sh FILE... -- what the kernels that quantise are compiled to (kernels/blocks*.cuh, hadamard.cuh), of objects or cubins of
# blocks.cu and engine.cu: for each its registers, its bytes of stack (spills lie there), the instructions of an element, and how many of
# the loads and stores of spilled registers are among them. The way counted is the shortest way through a loop by every load of 16
# bytes, every conversion to codes, every store of 8 or 16 bytes, and a store of a scale; it has no rare numbers. Kernels that
# read twice have two loops.
# KERNELS: those whose mangled name matches, instead of all (half a minute). Needs cuobjdump of CUDA (CUOBJDUMP). Exit code 0; 2: no such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
: "${KERNELS:=(blocks|blocks_amax|one_block|row_blocks|tile_blocks|hadamard_line)_kernelI}"
for file; do
    usage=$("$CUOBJDUMP" -res-usage "$file")
    echo "$usage"
    "$CUOBJDUMP" -sass -fun "$(echo "$usage" | sed -n 's/^ *Function \([^ :]*\):.*/\1/p' | grep -E "$KERNELS" | paste -s -d, -)" "$file"
done 2>/dev/null | awk -v wanted="$KERNELS" "$(cat "$(dirname "$0")/sass.awk")"'
BEGIN {
    split("binary32 bf16 fp16", input, " ")
    split("e4m3 e5m2 e2m1 e3m2 e2m3 e2m1,_stochastic", element, " ")
    split("powers_of_two NVFP4 DeepSeek", rule, " ")
}
function is_mark(k) { return text[k] ~ /LDG[.]E[.]128|STG[.]E[.](64|128)|F2FP[.]SATFINITE|PRMT.* 0x5410,/ }
# The way by all marks and, unless it is -1, by instruction `by`; spilled: loads and stores of the stack in it.
function through(from, to, by,   k, sum, last, step) {
    sum = 1
    last = from
    spilled = is_spill(from)
    for (k = from + 1; k <= to; k++)
        if (k == to || k == by || is_mark(k)) {
            step = shortest(last, k, 1)
            if (step >= 1e8) return 1e9
            sum += step - 1
            spilled += spills(last, k)
            last = k
        }
    return sum
}
function is_spill(k) { return text[k] ~ / (LDL|STL)/ }
# Of the last shortest way, without its first instruction.
function spills(from, to,   sum) {
    for (; to > from; to = before[to]) sum += is_spill(to)
    return sum + 0
}
# The innermost loops that load 16 bytes; those behind the first, or of rows the second, are for rare blocks.
function report(name, registers, stack,   i, k, from, loads, last, way, least, sum, memory, all, loops) {
    last = -1
    for (i = 0; i < n && loops < 1 + (name ~ /row_/); i++) {
        if ((from = target(i)) < 0 || from >= i || from <= last) continue
        loads = 0
        for (k = from; k <= i; k++) loads += text[k] ~ /LDG[.]E[.]128/
        if (!loads) continue
        last = i
        loops++
        least = 1e9
        for (k = from; k <= i; k++)
            if (text[k] ~ /STG[.]E[.]U8/ && (way = through(from, i, k)) < least) {
                least = way
                memory = spilled
            }
        if (least >= 1e8) {
            least = through(from, i, -1)
            memory = spilled
        }
        sum += least / loads / (name ~ /kernelILi0E/ ? 4 : 8)
        all += memory
    }
    if (sum)
        printf "%-52s %3d registers %3d bytes of stack %5.1f instructions an element, %2d spills in the way\n", names(name), \
            registers, stack, sum, all
    return sum > 0
}
function names(mangled,   part, kind, word) {
    kind = mangled ~ /hadamard/ ? "Hadamard" : mangled ~ /amax/ ? "amax" : mangled ~ /one_/ ? "one scale" : mangled ~ /row_/ ? "a scale a row" : mangled ~ /tile_/ ? "tiles of 128 rows" : "blocks"
    split(mangled, part, /kernelILi|ELi|EE/)
    if (mangled ~ /tile_/ && part[5] == 1) kind = "tiles of 16 rows"
    if (mangled ~ /both_/) kind = "1 x 32 in both directions"
    if (mangled ~ /[0-9]blocks_kernel/) kind = "1 x " part[5] ", " rule[part[6] + 1]
    word = input[part[2] + 1] (mangled ~ /hadamard|amax/ ? "" : " to " element[part[3] + 1] (part[4] ? ", values" : ""))
    kind = kind ", " word
    gsub(/_/, " ", kind)
    return kind
}' | sort
