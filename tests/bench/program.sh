# program.sh -- read by others: $program, the program itself where $MPSIM is libtool's script, which would be watched instead.
# shellcheck shell=sh disable=SC2034
program=$MPSIM
real=$(dirname "$MPSIM")/.libs/$(basename "$MPSIM")
if [ -x "$real" ]; then
    program=$real
    LD_LIBRARY_PATH=$(cd "$(dirname "$MPSIM")" && pwd)/lib/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
fi
