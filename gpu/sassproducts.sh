#!/bin/sh
# sassproducts.sh FILE... -- what products without tensor cores are compiled to, of objects or cubins of library/gemm.cu (chains) and
# library/fused.cu (fused additions): for each kernel its registers, its bytes of stack (spills lie there), and the instructions a
# product: those of the shortest way by all products of the innermost loop with the most, over their number. Needs cuobjdump of
# CUDA (CUOBJDUMP). Exit code 0; 2: no such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
{
    "$CUOBJDUMP" -res-usage "$@"
    "$CUOBJDUMP" -sass "$@"
} 2>/dev/null | awk '
/^ *Function .*(chain_kernel|exact_kernel|fused_kernel|grouped_kernel)/ || /REG:/ {
    if (/Function/) { of = $2; sub(/:.*/, "", of) }
    if (/REG:/ && of) {
        match($0, /REG:[0-9]+/); registers[of] = substr($0, RSTART + 4, RLENGTH - 4)
        match($0, /STACK:[0-9]+/); stack[of] = substr($0, RSTART + 6, RLENGTH - 6)
        of = ""
    }
    next
}
/Function : / {
    finish()
    name = $3
    next
}
name ~ /(chain_kernelI|exact_kernelI|fused_kernelI|grouped_kernel)/ && match($0, /^ *\/\*[0-9a-f]+\*\//) {
    at = $1
    gsub(/[\/*]/, "", at)
    text[n] = $0
    sub(/;.*/, "", text[n])
    place[at] = n++
}
# Where instruction k may jump; -1: nowhere.
function target(k,   at) {
    if (!match(text[k], /BRA.* 0x[0-9a-f]+/)) return -1
    at = substr(text[k], RSTART, RLENGTH)
    sub(/.* 0x/, "", at)
    while (length(at) < 4) at = "0" at
    return at in place ? place[at] : -1
}
# The instruction that a product has once.
function product_of(mangled,   kind) {
    each = mangled ~ /grouped/ ? 4 : 1
    if (mangled ~ /grouped/) return " IDP[.]4A"
    if (mangled ~ /(exact|fused)_kernel/) return " DFMA[.]RM "
    split(mangled, kind, /kernelILi|ELNS_10chain_kindE|ELi/) # 2: FUSED, 3: the kind
    return (kind[2] ? " FFMA" : " FMUL") (kind[3] ? "[.]RZ " : " ")
}
function products(from, to,   k, sum) {
    for (k = from; k <= to; k++) sum += text[k] ~ wanted
    return sum + 0
}
# The way of fewest instructions from the first to the last of the loop.
function shortest(from, to,   k, where, cost) {
    for (k = from; k <= to; k++) cost[k] = 1e9
    cost[from] = 1
    for (k = from; k < to; k++) {
        where = target(k)
        if (where > k && where <= to && cost[k] + 1 < cost[where]) cost[where] = cost[k] + 1
        if ((where < 0 || text[k] ~ /@/) && cost[k] + 1 < cost[k + 1]) cost[k + 1] = cost[k] + 1
    }
    return cost[to]
}
# The same by way of all products.
function through(from, to,   k, first, last) {
    for (k = to; k >= from; k--)
        if (text[k] ~ wanted) {
            first = k
            if (!last) last = k
        }
    return shortest(from, first) + shortest(first, last) + shortest(last, to) - 2
}
# An innermost loop ends where no other one has ended since its first instruction.
function finish(   i, last, from, to, most, many) {
    wanted = product_of(name)
    last = -1
    for (i = 0; i < n; i++) {
        if (target(i) < 0 || target(i) > i || target(i) == i) continue
        many = target(i) > last ? products(target(i), i) : 0
        last = i
        if (many > most) { most = many; from = target(i); to = i }
    }
    if (most)
        printf "%-34s %3d registers %3d bytes of stack %5.2f instructions a product\n", names(name), registers[name], \
            stack[name], through(from, to) / most / each
    seen += most > 0
    n = 0
    delete place
}
function names(mangled,   part) {
    split(mangled, part, /kernelILi|ELNS_10(chain|fused)_kindE|ELi|E+v/)
    if (mangled ~ /exact/)
        return "exact, " (part[3] ? "chunks" : part[2] ? "of " part[2] : "all products")
    part[4] = part[4] ? ", chunks" : ""
    if (mangled ~ /grouped/) return "groups of 16 with scales"
    if (mangled ~ /fused_kernel/)
        return "fused, L = " part[2] ", " (part[3] == 0 ? "binary32" : part[3] == 1 ? "e8m13" : part[3] == 2 ? "fp16" : part[3] == 3 ? "staged" : "staged, two sums") part[4]
    return (part[2] ? "fma" : "sequential") ", " (part[3] == 0 ? "binary32" : part[3] == 1 ? "bf16" : "fp16") part[4]
}
END {
    finish()
    exit seen ? 0 : 2
}' | sort
