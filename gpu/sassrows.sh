#!/bin/sh
# sassrows.sh FILE... -- what the kernels of rows in eights are compiled to (kernels/flat*.cuh), of objects or cubins of engine.cu: for each
# its registers, its bytes of stack (spills lie there), and the instructions of an element of bf16: those of the shortest way
# through its loops by the unpacking of every code, the packing and the longest run of binary32 operations, which is what usual
# numbers take. "but ... loops": the table below is of another compiler's. Needs cuobjdump of CUDA (CUOBJDUMP). Exit code 0; 2: no
# such kernel; 77: no cuobjdump.
set -u
: "${CUOBJDUMP:=$(command -v cuobjdump || echo /usr/local/cuda/bin/cuobjdump)}"
"$CUOBJDUMP" --version >/dev/null 2>&1 || exit 77
for file; do
    usage=$("$CUOBJDUMP" -res-usage "$file")
    echo "$usage"
    "$CUOBJDUMP" -sass -fun "$(echo "$usage" | sed -n 's/^ *Function \([^ :]*flat_[^ :]*\):.*/\1/p' | paste -s -d, -)" "$file"
done 2>/dev/null | awk -v wanted=flat_ "$(cat "$(dirname "$0")/sass.awk")"'
# A kernel, its name in the table, and elements of each of its loops: 0 is one of the last eights, of rows that are not held, or
# of the parameters; n: numbers are held, so that nothing is unpacked; q: likewise, and the longest run is of those not held.
BEGIN {
    packing = "F2FP[.]BF16[^;]* R[0-9]+, R[0-9]+, R[0-9]+"
    split("flat_norm_kernel:norm:32 0 8 0 8|flat_norm_backward_kernel:norm, backward:32 0 8|" \
          "flat_norm_gradients_kernel:norm, gradients of weight and bias:0 32 0 0 0|flat_column_sums_kernel:sums of columns:0 32 0 0|" \
          "flat_causal_kernel:softmax:32 0 8n 8q 0|flat_causal_backward_kernel:softmax, backward:32 0 8 0|" \
          "flat_tile_forward_kernel:tile of attention:32 0 8n 0 8q 0|flat_tile_kernelILi0:tile of attention, P again:0 8|" \
          "flat_tile_kernelILi1:tile of attention, dS:0 8|flat_heads_kernel:heads of rows, turned:0 8|flat_add_kernel:sum of two:8|" \
          "flat_gelu_kernelILi0:GELU by tanh:8|flat_gelu_kernelILi1:GELU by erf:8|flat_gelu_backward_kernelILi0:GELU by tanh, backward:8|" \
          "flat_gelu_backward_kernelILi1:GELU by erf, backward:8|flat_loss_kernel:cross-entropy:8 8 8", row, "|")
    for (i in row) {
        split(row[i], part, ":")
        title[part[1]] = part[2]
        loops[part[1]] = part[3]
    }
}
function is_binary32(k) { return text[k] ~ / (FADD|FMUL|FFMA)[. ]/ }
# Begin of the run with the most operations of binary32, up to the next branch or place that is branched to.
function longest(from, to,   k, run, most, begin, at, is_end) {
    for (k = from; k <= to; k++) is_end[target(k)] = 1
    for (k = from; k <= to; k++) {
        if (target(k) >= 0 || k in is_end) { run = 0; begin = target(k) >= 0 ? k + 1 : k }
        run += is_binary32(k)
        if (run > most) { most = run; at = begin }
    }
    return most ? at : from
}
function through(from, to, marks, by_run,   k, sum, last, run, step) {
    run = by_run ? longest(from, to) : from
    sum = 1
    last = from
    for (k = from + 1; k <= to; k++) {
        if (k != to && k != run && text[k] !~ marks) continue
        step = shortest(last, k)
        if (step >= 1e8) continue
        sum += step - 1
        last = k
    }
    return sum
}
# An innermost loop ends where no other one has ended since its first instruction.
function report(name, registers, stack,   i, last, count, each, many, sum, kernel) {
    for (i in title)
        if (index(name, i)) kernel = i
    if (!kernel) return 0
    last = -1
    many = split(loops[kernel], each, " ")
    for (i = 0; i < n; i++) {
        if (target(i) < 0 || target(i) >= i) continue
        if (target(i) > last && each[++count] + 0 > 0)
            sum += through(target(i), i, (each[count] ~ /[nq]/ ? "" : "0xffff0000|") packing, each[count] !~ /q/) / (each[count] + 0)
        last = i
    }
    printf "%-40s %3d registers %3d bytes of stack %6.1f instructions an element%s\n", title[kernel], registers, stack, sum, \
        count == many ? "" : ", but " count " loops, not " many
    return 1
}' | sort
