#!/bin/sh
# written.sh -- the logs of tests/logs/written are judged as their author wrote down before (cases.tsv): the class, what
# the report has to say, what it must never say.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"
LC_ALL=C
export LC_ALL
logs=$MPSIM_SRCDIR/tests/logs/written
tab=$(printf '\t')
grep -v '^#' "$logs/cases.tsv" >"$dir/cases"

# class: of the verdict that was printed, by the word before its colon in the JSON of the same report
class() { sed -n 's/.*"class": "\([a-z-]*\)".*/\1/p' "$dir/json" | tail -n 1; }

# says PATTERNS: the verdict and what follows it match all of them
says() {
    rest=$1
    while [ -n "$rest" ]; do
        grep -Eiq -- "${rest%%;;*}" "$dir/verdict" || return 1
        case $rest in *';;'*) rest=${rest#*;;} ;; *) rest= ;; esac
    done
}

# judged OPTIONS FILE CLASS SAYS NEVER: one log
judged() {
    # shellcheck disable=SC2086 # options are words
    "$MPSIM" scaler --json $1 --log "$logs/$2" >"$dir/json" 2>"$dir/err" </dev/null || return 1
    # shellcheck disable=SC2086
    run 0 scaler $1 --log "$logs/$2" || return 1
    sed -n '/^Verdict: /,$p' "$dir/out" >"$dir/verdict"
    case "|$3|" in *"|$(class)|"*) ;; *) return 1 ;; esac
    says "$4" && { [ "$5" = - ] || ! grep -Eiq -- "$5" "$dir/verdict"; }
}

right=0
while IFS=$tab read -r file expected says never options; do
    [ "$options" = - ] && options=
    judged "$options" "$file" "$expected" "$says" "$never"
    status=$?
    [ $status -eq 0 ] && right=$((right + 1))
    printf '# %-42s expected %-30s given %s\n' "$file" "$expected" "$(class)"
    ok $status "$file: $expected"
    : >"$dir/json"
done <"$dir/cases"
echo "# right: $right of $(wc -l <"$dir/cases")"
(cd "$logs" && ls ./*.txt) | sed 's,^\./,,' | sort >"$dir/files"
cut -f1 "$dir/cases" | sort | cmp -s - "$dir/files"; ok $? "each log has its case, each case its log"
printf 'Verdict: steady\n  fine\n' >"$dir/verdict"
says 'steady;;fine' && ! says 'steady;;runaway' && ! says 'runaway;;steady'; ok $? "the comparison can fail"
finish
