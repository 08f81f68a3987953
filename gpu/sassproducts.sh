#!/bin/sh
# sassproducts.sh FILE... -- what products without tensor cores are compiled to, of objects or cubins of library/gemm.cu (chains),
# library/fused.cu (fused additions, CDNA3, groups) and library/exact.cu (exact sums): for each kernel its registers, its bytes of stack (spills lie there), and the instructions a
# product: those of the shortest way by all products of the innermost loop with the most, over their number. Needs cuobjdump of
# CUDA (CUOBJDUMP). Exit code 0; 2: no such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
for what in -res-usage -sass; do
    for file; do "$CUOBJDUMP" $what "$file"; done
done 2>/dev/null | awk -v wanted='(chain_kernelI|exact_tile_kernelI|fused_kernelI|grouped_kernel)' "$(cat "$(dirname "$0")/sass.awk")"'
# The instruction that a product has once.
function product_of(mangled,   kind) {
    each = mangled ~ /grouped/ ? 4 : 1
    if (mangled ~ /grouped/) return " IDP[.]4A"
    if (mangled ~ /(exact_tile|fused)_kernel/) return " DFMA[.]RM "
    split(mangled, kind, /kernelILi|ELNS_10chain_kindE|ELi/) # 2: the way, 3: the kind
    if (kind[2] == 2) return " FMUL "
    if (kind[2] > 4) return " FMUL[.]FTZ "
    return (kind[2] ? " FFMA" : " FMUL") (kind[3] ? "[.]RZ " : " ")
}
function products(from, to,   k, sum) {
    for (k = from; k <= to; k++) sum += text[k] ~ product
    return sum + 0
}
# The shortest way by all products.
function through(from, to,   k, first, last) {
    for (k = to; k >= from; k--)
        if (text[k] ~ product) {
            first = k
            if (!last) last = k
        }
    return shortest(from, first) + shortest(first, last) + shortest(last, to) - 2
}
# An innermost loop ends where no other one has ended since its first instruction. That of a tree has others in it: it is counted
# from its first barrier on, behind the loops that read operands.
function report(name, registers, stack,   i, last, from, to, most, many, tree) {
    product = product_of(name)
    tree = name ~ /chain_kernelILi2E/
    last = -1
    for (i = 0; i < n; i++) {
        if (target(i) < 0 || target(i) >= i) continue
        many = tree || target(i) > last ? products(target(i), i) : 0
        last = i
        if (many > most) { most = many; from = target(i); to = i }
    }
    while (tree && from < to && text[from] !~ / BAR[.]/) from++
    most = products(from, to)
    if (most)
        printf "%-34s %3d registers %3d bytes of stack %5.2f instructions a product\n", names(name), registers, \
            stack, through(from, to) / most / each
    return most > 0
}
BEGIN {
    way_of[2] = "tree of all products"; way_of[3] = "fma, odd first, flushed"; way_of[4] = "fma, two lanes, flushed"
    way_of[5] = "trees of 2, flushed"; way_of[6] = "trees of 4, flushed"; way_of[7] = "pairs to odd, flushed"
}
function names(mangled,   part) {
    split(mangled, part, /kernelILi|ELNS_10(chain|fused)_kindE|ELi|E+v/)
    if (mangled ~ /exact/)
        return "exact, " (part[3] ? "chunks" : part[2] ? "of " part[2] : "all products")
    part[4] = part[4] ? ", chunks" : ""
    if (mangled ~ /grouped/) return "groups of 16 with scales"
    if (mangled ~ /fused_kernel/)
        return "fused, L = " part[2] ", " (part[3] == 0 ? "binary32" : part[3] == 1 ? "e8m13" : part[3] == 2 ? "fp16" : part[3] == 3 ? "staged" : "staged, two sums") part[4]
    if (part[2] > 1)
        return way_of[part[2]]
    return (part[2] ? "fma" : "sequential") ", " (part[3] == 0 ? "binary32" : part[3] == 1 ? "bf16" : "fp16") part[4]
}' | sort
