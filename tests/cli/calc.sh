#!/bin/sh
# calc.sh -- mpsim calc: known results, flags, presets, negative numbers, bad input.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"
LC_ALL=C
export LC_ALL

# gives NAME PATTERN WORD...: the row of the result has the pattern
gives() {
    name=$1 pattern=$2
    shift 2
    run 0 calc "$@" && has "$pattern"
    ok $? "$name"
}
gives "1/3 in fp16" '^fp16 *1 *3 .* 0x3555 *inexact$' div 1 3 -f fp16
# double rounding through binary32 gives 0x1.068p+15 (Khronos OpenCL-CTS pull request 1882)
gives "fma is rounded once" '0x1.064p+15 *0x7819' fma 0x1.eacp+7 0x1.3f4p+4 0x1.c04p+14 -f fp16
gives "464 ties to 448" ' 448 .*0x7e *inexact$' add 448 16 -f e4m3
gives "480 is no number of e4m3" ' nan .*0x7f *overflow, inexact$' add 448 32 -f e4m3@ocp
gives "and saturates in CUDA" ' 448 .*0x7e *overflow, inexact$' add 448 32 -f e4m3@cuda
gives "operands of another format, one of them rounded" '^fp16 *3  *4\* *12 ' mul 3 5 --operands e2m1 -f fp16
gives "negative numbers are operands" '^fp16 *-1 *-2 *1 .*0x3c00$' sub -1 -2 -f fp16
gives "the root of -1" 'nan *0x7e00 *invalid$' sqrt -1 -f fp16
gives "1/0" ' inf .*0x7c00 *division by zero$' div 1 0 -f fp16
gives "inf - inf" ' nan .*invalid$' sub inf inf -f fp16
gives "-inf * 0" ' nan .*invalid$' mul -inf 0 -f fp16
gives "underflow" ' 0 .*underflow, inexact$' mul 2^-14 2^-14 -f fp16
gives "subnormal" 'subnormal' mul 2^-14 0.5 -f fp16
gives "modes" '0x2a *inexact$' div 1 3 -f e4m3 -r down
gives "convert" ' 0.10009765625 \|0.0999755859375 ' convert 0.1 -f fp16
gives "all common formats" '^e5m2 *2 *2 *4 .*0x44$' add 2 2
run 0 calc add 2 2 --json -f fp16,bf16 && has '"mpsim.calc/1"' && has '"code": "0x4400"' && has '"operands": \[2.0, 2.0\]'; ok $? "JSON"
for words in '' 'pow 2 3' 'add 1' 'add 1 2 3' 'sqrt x' 'add 1 2 -f fp61' 'add 1 2 --operands fp61' 'add 1 2 -r sideways' 'add 1 1e999'; do
    # shellcheck disable=SC2086 # a line is several words
    run 2 calc $words; ok $? "calc $words: usage error"
done
finish
