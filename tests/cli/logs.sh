#!/bin/sh
# logs.sh -- every log of data/logs is judged as a reader of its thread judges it (data/logs/cases.tsv), or "not
# enough to tell" with what is missing; verdicts name their lines. A table: expected, given.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
logs=$MPSIM_SRCDIR/data/logs
tab=$(printf '\t')
grep -v '^#' "$logs/cases.tsv" >"$dir/cases"

value() { # value KEY: of the report in JSON, the last one of that name
    tr ',' '\n' <"$dir/out" | sed -n "s/.*\"$1\": \"\{0,1\}\([^\"]*\)\"\{0,1\}.*/\1/p" | tail -n 1
}

# fits GIVEN EXPECTED: one of the classes, or the tool holds back
fits() {
    case "|$2|" in
    *"|$1|"*) return 0 ;;
    esac
    [ "$1" = not-enough ]
}

exact=0
read_today=0
while IFS=$tab read -r file _ _ _ class _ options; do
    turns 4 together
    due || { ok 1 "$file" && continue; }
    read_today=$((read_today + 1))
    [ "$options" = - ] && options=
    # shellcheck disable=SC2086 # options are words
    if eval "set -- $options" && run 0 scaler --json --log "$logs/$file" "$@"; then
        given=$(value class)
    else
        given="exit code not 0"
    fi
    case "|$class|" in *"|$given|"*) exact=$((exact + 1)) ;; esac
    printf '# %-52s expected %-30s given %s (%s)\n' "$file" "$class" "$given" "$(value confidence)"
    fits "$given" "$class"; ok $? "$file: $class"
    case $given in
    not-enough) [ "$(value missing)" != null ] && grep -q '"missing": "' "$dir/out"; ok $? "$file: what is missing is named" ;;
    *) grep -q '"evidence": \[{"line": [1-9]' "$dir/out"; ok $? "$file: the verdict names its lines" ;;
    esac
done <"$dir/cases"
turns 1
[ "$exact" -eq $read_today ]; ok $? "none held back where a reader concludes: $exact"
ls "$logs" | grep '\.log$' | sort >"$dir/files"
cut -f1 "$dir/cases" | sort | cmp -s - "$dir/files"; ok $? "each log has its case, each case its log"
[ "$(wc -l <"$dir/cases")" -ge 40 ]; ok $? "forty logs at least"
! fits fine-steady 'warn-spikes|stopped' && ! fits warn-spikes fine-steady && fits taken 'warn-diverging|taken'
ok $? "the comparison can fail"
finish
