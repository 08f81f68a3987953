#!/bin/sh
# sassstats.sh FILE... -- what the statistics of binary32 elements are compiled to (stats/binary32.cuh), of objects or cubins of
# stats.cu: for each number of casts the registers, the bytes of stack, and the instructions of an element: those of the shortest
# way through the loop over chunks by its loads, the histogram and the longest run of casts, which is what usual numbers take, over
# the 16 elements of a thread. Needs cuobjdump of CUDA (CUOBJDUMP). Exit code 0; 2: no such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
for what in -res-usage -sass; do
    for file; do "$CUOBJDUMP" $what "$file"; done
done 2>/dev/null | awk -v wanted=stats8binary32I "$(cat "$(dirname "$0")/sass.awk")"'
# Where the run with the most errors of casts begins; a run goes up to the next branch or place that is branched to.
function longest(from, to,   k, run, most, begin, at, is_end) {
    for (k = from; k <= to; k++) is_end[target(k)] = 1
    for (k = from; k <= to; k++) {
        if (target(k) >= 0 || k in is_end) { run = 0; begin = k }
        run += text[k] ~ / IMAD[.]HI R/
        if (run > most) { most = run; at = begin }
    }
    return at + 0
}
function has_loads(from, to,   k) {
    for (k = from; k <= to; k++)
        if (text[k] ~ / LDG[.]E[.]EF[.]128/) return 1
    return 0
}
# The loop over chunks is the shortest that loads elements.
function report(name, registers, stack,   i, from, to, run, last, sum, step, marks, bytes) {
    for (i = 0; i < n; i++)
        if (target(i) >= 0 && has_loads(target(i), i) && (!to || i - target(i) < to - from)) { from = target(i); to = i }
    if (!to) return 0
    run = longest(from, to)
    marks = " (LDG[.]E[.]EF|ATOMS[.]POPC[.]INC[.]32 RZ)"
    sum = 1
    last = from
    for (i = from + 1; i <= to; i++) {
        bytes += text[i] ~ / LDG[.]E[.]EF[.]128/ ? 16 : 0
        if (i != to && i != run && text[i] !~ marks) continue
        step = shortest(last, i)
        if (step >= 1e8) continue
        sum += step - 1
        last = i
    }
    printf "statistics, %d casts: %3d registers %3d bytes of stack %5.1f instructions an element\n", \
        substr(name, index(name, "ILi") + 3) + 0, registers, stack, sum / (bytes / 4)
    return 1
}' | sort
