#!/bin/sh
# logreader.sh -- what the reader of training logs owes to every log: settings, printed models and source code above it change
# nothing; nor do other names, other forms, lines printed twice, lines left out.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
cd "$dir" || exit 99
data=$top/data/logs written=$top/tests/logs/written

# verdict LOG [OPTION]...: the verdict with its confidence, without the numbers of lines
verdict() {
    "$MPSIM" scaler --log "$@" 2>&1 | sed -n '/^Verdict/,/^  Evidence/p; /^mpsim:/p' | sed 's/lines* [0-9]*\(-[0-9]*\)*/line N/g' | tr -s ' \n' ' '
}

# ---- a prefix of settings, a printed model, source code changes nothing: one prefix a day
turns 6
for prefix in "$top"/tests/logs/prefixes/*.txt; do
    due || { ok 1 "$prefix" && continue; }
    : >differing
    count=0
    for log in $(ls "$data"/*.log "$written"/*.txt | awk -v part=$((part % 4)) 'NR % 4 == part || ENVIRON["MPSIM_TEST_PART"] == "all"'); do
        case $log in *tensorboard-mismatch*) continue ;; esac # JSON, which goes to the end of the file
        count=$((count + 1))
        cat "$prefix" "$log" >prefixed
        [ "$(verdict "$log")" = "$(verdict prefixed)" ] || echo "$log" >>differing
    done
    cat differing
    [ ! -s differing ] && [ $count -gt 40 ]; ok $? "$(basename "$prefix" .txt) above $count logs changes no verdict"
done
turns 1
finish
