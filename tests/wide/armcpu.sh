#!/bin/sh
# armcpu.sh [RESULTS [FILE WORDS]] -- what qemu-user makes of Arm's instructions beside the models: by hand, from the top of the
# source tree, with aarch64-linux-gnu-gcc and qemu-aarch64 (7.1 knows SME, 9.2 FPCR.EBF). qemu follows the pseudo-code
# of Arm's manual; it is no hardware.
set -eu
cc=${CROSS_CC:-aarch64-linux-gnu-gcc}
emulator=${EMULATOR:-qemu-aarch64 -cpu max}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '#define PACKAGE_VERSION "0"' >"$work/config.h"
sources=$(find lib/base lib/format lib/round lib/arith lib/stats lib/digest lib/dot -name '*.c' ! -name 'avx*' ! -name 'neon.c')
# shellcheck disable=SC2086 # words
$cc -static -O2 -std=gnu17 -ffp-contract=off -w -D_GNU_SOURCE -I"$work" -I. -Ilib/include $sources \
    sim/verify/cpu.c sim/verify/cpuarm.c sim/verify/kinds.c tests/wide/armcpu.c -o "$work/armcpu" -lm
# shellcheck disable=SC2086 # words
$emulator "$work/armcpu" "$@"
