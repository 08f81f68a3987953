#!/bin/sh
# written.sh -- the logs of tests/logs/written are judged as their author wrote down before (cases.tsv): the class, what
# the report has to say, what it must never say.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
logs=$MPSIM_SRCDIR/tests/logs/written
tab=$(printf '\t')
grep -v '^#' "$logs/cases.tsv" >"$dir/cases"

# class: of the verdict that was printed (doc/explanations/scalers.md and training-logs.md; tests/cli/logs.sh reads it from the JSON)
class() {
    read -r _ name <"$dir/verdict"
    case $name in
    'no overflow' | steady | 'nothing unusual') echo fine-steady ;;
    'start-up search') echo fine-startup ;;
    'start-up search, not finished' | 'not enough to tell') echo not-enough ;;
    spikes) echo warn-spikes ;;
    'Inf or NaN' | 'Inf or NaN in the gradients') echo warn-nonfinite ;;
    runaway | diverging) echo warn-diverging ;;
    'floor reached') echo stopped ;;
    'overflow taken') echo taken ;;
    'scale stuck') echo warn-stuck ;;
    'nothing is learned') echo warn-not-learning ;;
    'trainer and sampler differ') echo warn-mismatch ;;
    'ranks differ') echo warn-ranks ;;
    *) echo "$name" ;;
    esac
}

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
    : >"$dir/verdict"
    # shellcheck disable=SC2086 # options are words
    run 0 scaler $1 --log "$logs/$2" || return 1
    sed -n '/^Verdict: /,$p' "$dir/out" >"$dir/verdict"
    given=$(class)
    case "|$3|" in *"|$given|"*) ;; *) return 1 ;; esac
    says "$4" && { [ "$5" = - ] || ! grep -Eiq -- "$5" "$dir/verdict"; }
}

# quoted LOG: each number of the loss or the norm that the evidence quotes stands in the first or the last line that it
# names; prints those that do not
quoted() {
    awk '
        FNR == NR { line[FNR] = $0; next }
        /^    lines? [0-9]/ && /: the (loss|norm)/ {
            split($2, at, /[-:]/)
            text = line[at[1]] " " line[at[2] ? at[2] : at[1]]
            n = split(text, word, /[^0-9.eE+-]+/)
            says = $0
            sub(/where .*/, "", says)
            while (match(says, / (is|to|from|after) -?[0-9]+[.][0-9]+/)) {
                split(substr(says, RSTART + 1, RLENGTH - 1), x, " ")
                says = substr(says, RSTART + RLENGTH)
                if (says ~ /^e/) continue
                found = 0
                for (i = 1; i <= n; i++) { d = word[i] - x[2]; if (d < 0) d = -d; if (d <= 1e-4 * (x[2] < 0 ? -x[2] : x[2])) found = 1 }
                if (!found) print $0
            }
        }' "$1" "$dir/out"
}

right=0
wrong=0
turns 4
while IFS=$tab read -r file expected says never options; do
    [ "$options" = - ] && options=
    judged "$options" "$file" "$expected" "$says" "$never"
    status=$?
    [ $status -eq 0 ] && right=$((right + 1))
    again && printf '# %-42s expected %-30s given %s\n' "$file" "$expected" "$given"
    ok $status "$file: $expected"
    again || continue
    quoted "$logs/$file" >"$dir/quoted"
    [ ! -s "$dir/quoted" ] || { wrong=$((wrong + 1)); sed "s,^,# $file: ," "$dir/quoted"; }
done <"$dir/cases"
turns 1
echo "# right: $right of $(wc -l <"$dir/cases")"
[ "$wrong" -eq 0 ]; ok $? "the numbers that are quoted stand in the lines that are named"
(cd "$logs" && ls ./*.txt) | sed 's,^\./,,' | sort >"$dir/files"
cut -f1 "$dir/cases" | sort | cmp -s - "$dir/files"; ok $? "each log has its case, each case its log"
printf 'Verdict: steady\n  fine\n' >"$dir/verdict"
says 'steady;;fine' && ! says 'steady;;runaway' && ! says 'runaway;;steady'; ok $? "the comparison can fail"
finish
