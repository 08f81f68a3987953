# shellcheck shell=sh
# common.sh -- what the tests of the program share: the program ($MPSIM) and the top of the sources ($top), from any folder; the
# locale C; a folder of their own ($dir); lines of TAP.
set -u
: "${MPSIM:=mpsim}" "${MPSIM_SRCDIR:=.}"
top=$(cd "$MPSIM_SRCDIR" && pwd) || exit 99
case $MPSIM in */*) MPSIM=$(cd "${MPSIM%/*}" && pwd)/${MPSIM##*/} || exit 99 ;; esac
MPSIM_SRCDIR=$top MPSIM_POLICIES=$top/data/policies MPSIM_PLOTS=$top/plots LC_ALL=C
export MPSIM MPSIM_SRCDIR MPSIM_POLICIES MPSIM_PLOTS LC_ALL
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
n=0
failed=0
# a machine that lacks the instruction set of make check-isa
case ${MPSIM_ISA:+$("$MPSIM" --version 2>&1)} in *'this machine has no'*) echo "1..0 # SKIP no $MPSIM_ISA"; exit 0 ;; esac

# sanitizers: the flags of those that the program is built with, if any
sanitizers() { sed -n 's/^SAN_CFLAGS = //p' "${MPSIM%/*}/Makefile" 2>/dev/null; }

# ---- turns: what does not run every day. MPSIM_TEST_PART, else the number of today, says which part runs; all parts run
# with MPSIM_TEST_PART=all, or MPSIM_TEST_EXPENSIVE=1 (make check-wide)
part=${MPSIM_TEST_PART:-$(($(date +%s) / 86400))} all_parts=
[ "${MPSIM_TEST_EXPENSIVE:-0}" != 1 ] || part=all
echo "# MPSIM_TEST_PART=$part"
[ "$part" != all ] || part=0 all_parts=1

# turn WORD...: one of the words, day by day the next
turn() {
    if [ "$all_parts" ]; then
        echo "$@"
    else
        shift $((part % $#))
        echo "$1"
    fi
}

# turns N: from here on each case, which ends with its `ok`, runs one day in N; turns 1: every day. A case whose day it is
# not starts nothing by `run`, or by what else asks `due`, and prints no line; one that asks nothing goes with the case
# before it. So what later cases need, and what must be seen every day, stands behind `turns 1`. turns N together: the cases from
# here on, which need one another, have the same day.
turn_days=1 turn_together='' turn_case=0 turn_asked='' turn_due=1 turn_waiting=0
turns() { turn_days=$1 turn_together=${2-} turn_asked='' turn_due=1; }
due() { # whether the case that has begun, or begins here, runs today
    if [ ! "$turn_asked" ]; then
        turn_asked=1 turn_due=1 turn_case=$((turn_case + 1))
        [ "$all_parts" ] || [ $(((turn_case + part) % turn_days)) -eq 0 ] || turn_due=
    fi
    [ "$turn_due" ]
}
again() { [ "$turn_due" ]; } # the same of a case that starts nothing and looks at what the one before left

ok() { # ok STATUS NAME: one line of TAP; what was printed, if it failed
    [ "$turn_together" ] || turn_asked=
    [ "$turn_due" ] || { turn_waiting=$((turn_waiting + 1)) && return; }
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

# one_line: what was said on stderr is one line that begins with "mpsim: "
one_line() {
    { IFS= read -r first_line && ! IFS= read -r next_line && [ ! "$next_line" ]; } <"$dir/err" || return 1
    case $first_line in 'mpsim: '*) ;; *) return 1 ;; esac
}

# run CODE ARGUMENT...: exit code as expected; nothing on stderr for 0 and 1, otherwise nothing
# on stdout and one line on stderr that begins with "mpsim: "
run() {
    due || return 1
    want=$1
    shift
    "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    [ $? -eq "$want" ] || return 1
    if [ "$want" -le 1 ]; then
        [ ! -s "$dir/err" ]
    else
        [ ! -s "$dir/out" ] && one_line
    fi
}

# signalled SIGNAL SECONDS ENOUGH ARGUMENT...: the program, sent the signal after so many seconds: once, and nothing that it
# started. Where ENOUGH, words of the shell, is not true of what it printed, a busy machine had not let it come so far: again,
# with four times the seconds, and four times those. Its exit code.
signalled() {
    due || return 1
    by=$1 seconds=$2 enough=$3
    shift 3
    for times in 1 4 16; do
        after=$(awk "BEGIN { print $seconds * $times }")
        timeout --foreground --preserve-status -s "$by" -k 20 "$after" "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
        signalled_code=$?
        ! eval "$enough" || break
    done
    return $signalled_code
}

# has TEXT [err]: a line of the output, or of the errors, has the pattern
has() { grep -q -- "$1" "$dir/${2:-out}"; }

finish() { # the plan, and the exit status
    [ $turn_waiting -eq 0 ] || echo "# $turn_waiting cases wait for their day; all: MPSIM_TEST_PART=all"
    echo "1..$n"
    exit $failed
}
