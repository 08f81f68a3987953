#!/bin/sh
# numbers.sh -- pages that say what devices answered have the lines that data/gpu/numbers.sh counts from the records, and no
# other claim; a digit that changes in a page or in a record is found.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
numbers=$top/data/gpu/numbers.sh
sh "$numbers" --pages >"$dir/pages"

# Lines of a page with an amount that only a device can give: they must be among the printed ones.
claims='[0-9] ?(%|ms|GB/s|Tf/s|MHz|billion|million)|[0-9] (arrays|trainings|tensors|errors|different bits)'
# compare PAGE FILE LINES: what is in the page's file or among the lines alone. Of pages of more than devices all lines are looked for.
compare() {
    grep -Fxv -f "$2" "$3" | sed '/^$/d; s/^/not in the page: /'
    case $1 in
    *gpu/README.md) cat "$2" ;;
    README.md) grep -e H200 "$2" ;;
    esac | grep -E "$claims" | grep -Fxv -f "$3" | sed 's/^/not in the records: /'
}

mkdir -p "$dir/lines"
while read -r page; do
    lines=$dir/lines/$(echo "$page" | tr / _)
    sh "$numbers" "$page" >"$lines" 2>"$dir/err"
    compare "$page" "$top/$page" "$lines" >"$dir/out"
    [ -s "$lines" ] && [ ! -s "$dir/out" ]
    ok $? "$page: every number is counted from the records"
done <"$dir/pages"

# ---- a digit changes in the page: a third of the lines, and of the changes below, each day ----
today() {
    tried=$((tried + 1))
    [ "$all_parts" ] || [ $(((tried + part) % 3)) -eq 0 ]
}
mkdir -p "$dir/data"
missed=0 tried=0
for page in data/gpu/README.md data/gpu/speeds.tsv; do
    lines=$dir/lines/$(echo $page | tr / _) first=$tried
    while IFS= read -r line; do
        case $line in *[0-9]*) ;; *) continue ;; esac
        today || continue
        # the last digit of the line
        awk -v n=$((tried - first)) -v lines="$lines" '
            BEGIN { while ((getline l <lines) > 0) if (l ~ /[0-9]/ && ++k == n) line = l }
            $0 == line { match($0, /[0-9][^0-9]*$/); $0 = substr($0, 1, RSTART - 1) (substr($0, RSTART, 1) + 1) % 10 substr($0, RSTART + 1) }
            { print }' "$top/$page" >"$dir/data/${page##*/}"
        [ "$(compare "$page" "$dir/data/${page##*/}" "$lines" | wc -l)" -ge 1 ] || missed=$((missed + 1))
    done <"$lines"
done
page=data/gpu/README.md
echo "$tried lines, $missed missed" >"$dir/out"
[ $missed -eq 0 ] && [ $tried -gt 20 ]
ok $? "a changed digit in any line of $page and speeds.tsv is found"

# ---- a number changes in a record ----
mkdir "$dir/records"
cp "$top"/data/gpu/*.json "$top"/data/gpu/*.digests "$dir/records"
chmod u+w "$dir"/records/*
# changes FILE LINE FROM TO [PAGE]: in the first line of the record that matches LINE and FROM; the page's lines become others
changes() {
    today || return
    cp "$dir/records/$1" "$dir/kept"
    awk -v pattern="$2" -v from="$3" -v to="$4" '!done && $0 ~ pattern && sub(from, to) { done = 1 } { print }' \
        "$dir/kept" >"$dir/records/$1"
    MPSIM_RECORDS=$dir/records sh "$numbers" "${5-$page}" >"$dir/new" 2>"$dir/err"
    cmp -s "$dir/records/$1" "$dir/kept" && echo "$1: nothing was changed" >>"$dir/out"
    cmp -s "$dir/new" "$dir/lines/$(echo "${5-$page}" | tr / _)" && echo "$1, $2, $3" >>"$dir/out"
    cp "$dir/kept" "$dir/records/$1"
}
: >"$dir/out"
r=nvidia-h200-2026-11-26
changes $r-checks.json '^{' '"sm":90' '"sm":80'
changes $r-checks.json '^{' 580.159.04 580.159.05
changes $r-checks.json '^{' '"driver_cuda":13000' '"driver_cuda":13010'
changes $r-checks.json '^{' 2026-11-26 2026-11-25
changes $r-checks.json '^{' 'NVIDIA H200' 'NVIDIA H100' README.md
for name in 'convert fp16"' 'convert tf32, the bits' 'div bf16' 'mma.k8 tf32-fp32 dirty'; do
    changes $r-checks.json "$name" '"mismatches":0' '"mismatches":1'
    changes $r-checks.json "$name" '"count":[0-9]' '"count":9'
    changes $r-checks.json "$name" '"done"' '"skipped"'
done
changes $r-wgmma.json 'e5m2-fp16 tiny' '"seconds":0' '"seconds":1' gpu/README.md
changes $r-wgmma.json 'e5m2-fp16 tiny' '"mismatches":0' '"mismatches":1' doc/explanations/accumulation.md
changes $r-wgmma.json 'fp16-fp16 as mma' '"mismatches":0' '"mismatches":1' README.md
changes $r-probes.json '"instruction".*"done"' '"done"' '"failed"' doc/explanations/accumulation.md
changes $r-gpt.json '"gpt-fp8","status":"equal"' '"equal"' '"differs"' doc/explanations/evidence.md
changes $r-gpt.json '"gpt-fp8","status":"equal"' '"steps":2' '"steps":3' doc/explanations/evidence.md
changes $r-gpt.json '"gpt-fp8","status":"equal"' '"tensors":[0-9]' '"tensors":9' doc/explanations/evidence.md
changes $r-speed.json 'e4m3.*promoted' '"seconds":0.000195' '"seconds":0.000185'
changes $r-speed.json 'cublasLt, fast' '"seconds":0.000110' '"seconds":0.000120'
changes $r-speed.json 'cublasLt, b' '"sm_clock":1500' '"sm_clock":1600' data/gpu/speeds.tsv
changes $r-speed.json 'fp16.*cuBLAS"' '"flops":1.3' '"flops":1.4'
changes $r-speed.json 'cudaMemcpyAsync' '"bytes":2.1' '"bytes":2.2'
changes $r-speed.json 'cast of bf16' '"seconds":0.00075' '"seconds":0.00065'
changes $r-speed.json 'wgmma, b' '"power cap"' '""'
changes more-mlp-deepseek.digests '^10 ' '^10 .*' ''
[ ! -s "$dir/out" ]
ok $? "a changed number of a record changes a page"
finish
