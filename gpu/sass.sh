#!/bin/sh
# sass.sh FILE... -- what casts between usual formats are compiled to, of objects or cubins of cast.cu or engine.cu: for each
# kernel its registers, its bytes of stack (spills lie there), and the instructions of an element: those of the shortest way once
# through the loop that loads ahead, that of finite numbers which do not overflow, over its elements. Needs cuobjdump of CUDA
# (CUOBJDUMP). Exit code 0; 2: no such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
for what in -res-usage -sass; do
    for file; do "$CUOBJDUMP" $what "$file"; done
done 2>/dev/null | awk -v wanted=usual_cast_kernel "$(cat "$(dirname "$0")/sass.awk")"'
function format(bits, mbits) {
    if (bits == 16) return mbits == 7 ? "bf16" : "fp16"
    if (bits == 8) return mbits == 3 ? "e4m3" : "e5m2"
    return bits == 32 ? "binary32" : bits == 19 ? "tf32" : "e2m1"
}
# Bytes that instructions from..to load, an element each once.
function loaded(from, to,   k, bytes) {
    for (k = from; k <= to; k++)
        if (text[k] ~ /LDG/) bytes += text[k] ~ /[.]128/ ? 16 : text[k] ~ /[.]64/ ? 8 : 4
    return bytes
}
# The loop with the most instructions is the one that loads ahead.
function report(name, registers, stack,   i, from, to) {
    for (i = 0; i < n; i++)
        if (target(i) >= 0 && i - target(i) > to - from) {
            from = target(i)
            to = i
        }
    if (to)
        printf "%-42s %3d registers %3d bytes of stack %6.1f instructions an element\n", names(name), registers, \
            stack, shortest(from, to, 1) / (loaded(from, to) / source)
    return to > 0
}
# A mangled name as text; S1_ is the first format again.
function names(mangled,   rest, k, list, m, kinds, part, kind, last) {
    rest = mangled
    sub(/^.*usual_cast_kernelI/, "", rest)
    for (m = 0; m < 3; m++) {
        if (match(rest, /^[0-9A-Za-z_]*ILi[0-9]+ELi[0-9]+ELi[0-9]+ELj[0-9]+ELi[01]ELi[0-9]EE/) && rest !~ /^S[1-9]/) {
            match(rest, /EE/)
            k = substr(rest, 1, RSTART + 1)
            rest = substr(rest, RSTART + 2)
            sub(/^[^I]*ILi/, "", k)
            split(k, part, /ELi|ELj/)
            kind[++kinds] = last = format(part[1], part[2])
            if (m == 0) source = part[1] <= 8 ? 1 : part[1] <= 16 ? 2 : 4
        } else {
            match(rest, /^S[0-9]*_/)
            k = last
            last = kind[substr(rest, 2, RLENGTH - 2) + 0]
            rest = substr(rest, RLENGTH + 1)
        }
        list = list (m == 0 ? "" : m == 1 ? " to " : k == last ? "" : ", as ") (m == 2 && k == last ? "" : last)
    }
    k = substr(rest, 3, 1)
    return list (k == 3 ? ", stochastic" : k == 2 ? ", ties away" : "") (substr(rest, 4, 4) == "ELi1" ? ", scaled" : "")
}' | sort
