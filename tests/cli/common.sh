# shellcheck shell=sh
# common.sh -- what the tests of the program share: a folder of their own ($dir), lines of TAP.
: "${MPSIM:=mpsim}" "${MPSIM_SRCDIR:=.}"
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
n=0
failed=0
# a machine that lacks the instruction set of make check-isa
case ${MPSIM_ISA:+$("$MPSIM" --version 2>&1)} in *'this machine has no'*) echo "1..0 # SKIP no $MPSIM_ISA"; exit 0 ;; esac

ok() { # ok STATUS NAME: one line of TAP; what was printed, if it failed
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=1
        sed 's/^/# out: /' "$dir/out" 2>/dev/null | head -n 8
        sed 's/^/# err: /' "$dir/err" 2>/dev/null | head -n 8
    fi
}

# run CODE ARGUMENT...: exit code as expected; nothing on stderr for 0 and 1, otherwise nothing
# on stdout and one line on stderr that begins with "mpsim: "
run() {
    want=$1
    shift
    "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ] || return 1
    if [ "$want" -le 1 ]; then
        [ ! -s "$dir/err" ]
    else
        [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && grep -q '^mpsim: ' "$dir/err"
    fi
}

# has TEXT [err]: a line of the output, or of the errors, has the pattern
has() { grep -q -- "$1" "$dir/${2:-out}"; }

# turn WORD...: one of the words, day by day the next (MPSIM_TEST_PART, see tests/support/support.h); all with
# MPSIM_TEST_EXPENSIVE=1
part=${MPSIM_TEST_PART:-$(($(date +%s) / 86400))}
echo "# MPSIM_TEST_PART=$part"
turn() {
    if [ "${MPSIM_TEST_EXPENSIVE:-0}" = 1 ]; then
        echo "$@"
    else
        shift $((part % $#))
        echo "$1"
    fi
}

finish() { # the plan, and the exit status
    echo "1..$n"
    exit $failed
}
