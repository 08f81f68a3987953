#!/bin/sh
# hostile-names.sh -- names chosen to harm a terminal, a spreadsheet or a reader: shown escaped by every
# command in every form; JSON gives them back.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"

# little endian: FILE of 8 bytes of length and a header, then zeros and numbers
safetensors() { # safetensors FILE HEADER BYTES-OF-DATA
    printf "$(printf '\\%03o\\%03o\\000\\000\\000\\000\\000\\000' $((${#2} % 256)) $((${#2} / 256)))" >"$1"
    printf '%s' "$2" >>"$1"
    i=0
    while [ $i -lt "$3" ]; do
        printf '\000\000\200\076' >>"$1" # 0.25
        i=$((i + 4))
    done
}

# escape, DEL, C1, override, isolate, marks, line ends, quotes, a comma, a formula
bad='=1+1\u001b]0;x\u0007\u007f\u0085\u202e\u2066\u200f\u061c\ufeff\u000d\u000a\u0009\",`id`$(id)'
tensor() { # tensor KIND FROM
    printf '"%s:%s.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[%d,%d]}' "$1" "$bad" "$2" $(($2 + 16))
}
run_dir=$dir/run/step_000001
mkdir -p "$run_dir" "$dir/formula"
f=$run_dir/$(printf '\033]0;x\007\302\205\342\200\256\n\377').safetensors
safetensors "$f" "{\"__metadata__\":{\"mpsim.step\":\"1\",\"k\\u001b\":\"v\\u202e\"},$(tensor weight 0),$(
    )$(tensor act 16),$(tensor agrad 32),$(tensor wgrad 48)}" 64
safetensors "$dir/formula/x" '{"=cmd|x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"+1":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"-1":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"@x":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},"\t=1":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},"\r=1":{"dtype":"F32","shape":[1],"data_offsets":[20,24]}}' 24

# No control but the line end, no DEL, C1, mark or override, and nothing that is not UTF-8 (here: 0xff).
marks=$(printf '\302[\200-\237]\\|\342\200[\213-\217\250-\256]\\|\342\201[\240-\257]\\|\330\234\\|\357\273\277')
clean() { # clean FILE...
    for c in "$@"; do
        ! tr -d '\n\040-\176\200-\376' <"$c" | grep -a -q . || return 1
        ! grep -a -q "$marks" "$c" || return 1
    done
}
printf 'a\033b\n' >"$dir/a"; printf 'a\342\200\256b\n' >"$dir/b"; printf 'a\302\205b\n' >"$dir/c"; printf '\357\273\277' >"$dir/d"; printf '\330\234' >"$dir/e"
printf 'fa\303\247ade \342\200\246 \342\210\222\n' >"$dir/good"
clean "$dir/good" && ! clean "$dir/a" && ! clean "$dir/b" && ! clean "$dir/c" && ! clean "$dir/d" && ! clean "$dir/e"
ok $? "the judge sees what it is to see"

try() { # try NAME COMMAND...: whatever the exit code
    what=$1
    shift
    "$MPSIM" "$@" >"$dir/out" 2>"$dir/err" </dev/null
    code=$?
    [ $code -le 5 ] && { [ -s "$dir/out" ] || [ -s "$dir/err" ]; } && clean "$dir/out" "$dir/err"
    ok $? "$what: exit code $code, escaped"
}
for form in '' --json --csv; do
    try "info $form" info $form "$dir/run"
    try "memory $form" memory -P pytorch-amp-fp16 $form "$dir/run"
    try "stat $form" stat $form "$dir/run"
    try "replay $form" replay -P pytorch-amp-fp16 $form "$dir/run"
    try "scaler $form" scaler -s torch $form "$dir/run"
    try "scaler --adaptive $form" scaler --adaptive $form "$dir/run"
done
try "info -v" info -v "$dir/run"
try "stat --ndjson" stat --ndjson "$dir/run"
try "replay --ndjson" replay -P pytorch-amp-fp16 --ndjson "$dir/run"
try "stat of a file" stat "$f"
for form in '' --tensors --csv --json; do
    # shellcheck disable=SC2086 # words
    try "advise $form" advise $form --policy-out "$dir/advised.yaml" "$f"
    clean "$dir/advised.yaml" && run 0 memory --params 9 -P "$dir/advised.yaml"; ok $? "advise $form: its policy"
done
try "report" report --no-figures -o - "$dir/run"
try "cast" cast -f bf16 -o "$dir/cast.safetensors" "$f"
try "cast, an output of such a name" cast -f bf16 -o "$dir/$(printf 'o\033\342\200\256').safetensors" "$f"
try "dot" dot --a 'weight:*' --b 'act:*' "$f"
try "attention" attention -M fma --q 'act:*' --k 'weight:*' --v 'weight:*' "$f"
try "attention: which tensor" attention --q '*' --k '*' --v '*' "$f"
try "judge" judge cast "$f" --role 'x=act:*' --role 'y=weight:*'
try "mismatch" mismatch -a fma -b fma --hidden "$f" --hidden-name 'act:*' --head "$f" --head-name 'weight:*'
try "mismatch: which tokens" mismatch -a fma -b fma --tokens "$f"
try "dot: which tensor" dot --a '*' --b '*' "$f"
for c in stat info replay advise report dot 'attention --q a --k a --v a' 'judge cast' 'mismatch -a fma -b fma --tokens' "memory -P fp32" verify 'train --run' 'train --resume' 'plot ruler' 'scaler --log' 'train -P' 'replay -P' 'cast -f bf16 -o x'; do
    # shellcheck disable=SC2086 # words
    try "$c: no such file" $c "$(printf 'none\033[2J\302\205\342\200\256\n')"
done
for c in stat "stat -f" "advise -f" "advise --fail-if" "advise --min-sqnr" "stat -r" "plot" "stat --kind" "dot -M" "attention -M" "attention --values" judge "judge cast" "judge cast --like" "mismatch -b fma -a" "formats" "calc" "calc add" "train -P fp32 --net" "scaler -s" "scaler -m" "scaler --pattern" "verify" "replay -P" "memory --params" "memory --params 3 -P fp32 --optimizer" "cast -f fp16 --explain" "dot --a 1 --b"; do
    # shellcheck disable=SC2086 # words
    try "$c: a bad word" $c "$(printf 'x\033[2J\302\205\342\200\256\n')" "$f"
done
printf 'x' >"$dir/$(printf 'bad\033\342\200\256')"
try "a damaged file" stat "$dir/$(printf 'bad\033\342\200\256')"
safetensors "$dir/twice" "{$(tensor act 0),$(tensor act 16)}" 32
try "a name twice" stat "$dir/twice"
safetensors "$dir/hole" "{$(tensor act 0),$(tensor agrad 20)}" 36
try "a hole behind a name" stat "$dir/hole"

# ---- JSON gives the names back ----
run 0 stat --json -o "$dir/report.json" "$dir/run"
glob=$(printf 'act:=1+1\033]0;x\007\177\302\205\342\200\256\342\201\246\342\200\217\330\234\357\273\277\r\n\t",`id`$(id).weight')
clean "$dir/report.json" && grep -q '\\u202e' "$dir/report.json" && grep -q '\\u0085' "$dir/report.json" && grep -q '\\u007f' "$dir/report.json"
ok $? "JSON: escapes"
if command -v "${MPSIM_GNUPLOT:-gnuplot}" >/dev/null; then
    (cd "$dir" && "$MPSIM" plot ruler -m "$glob" --title "$glob" --type svg -o fig report.json) >"$dir/out" 2>"$dir/err"
    ok $? "JSON: the name is what it was"
    tr -d '\t' <"$dir/fig.svg" >"$dir/drawn" # gnuplot's own
    clean "$dir/fig.dat" "$dir/fig.gp" "$dir/drawn" && grep -q '\\u{202e}' "$dir/fig.svg"; ok $? "a figure shows the name escaped"
    # what ends a section, a text or a comment of XML, and begins one
    safetensors "$dir/markup" '{"wgrad:w]]>x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"wgrad:]]]></text><!--&\u0001\"--><![CDATA[":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}' 16
    "$MPSIM" stat --json --histogram -s 1,8 "$dir/markup" >"$dir/markup.json"
    for figure in ruler heatmap sweep histogram; do
        (cd "$dir" && "$MPSIM" plot "$figure" -m '*' --title 'a]]>b<![CDATA[' --type svg -o fig markup.json) >"$dir/out" 2>"$dir/err" &&
            grep -q 'a]]&gt;b&lt;!' "$dir/fig.svg" && ! grep -q -e ']]>' -e '<text/>' "$dir/fig.svg" &&
            { ! command -v xmllint >/dev/null || xmllint --noout "$dir/fig.svg" 2>"$dir/err"; }
        ok $? "$figure: a figure is XML, whatever names hold"
    done
else
    echo "ok $((n += 1)) - JSON: the name is what it was # SKIP no gnuplot"
fi

# ---- CSV ----
run 0 stat --csv "$dir/formula" && [ "$(tail -n +2 "$dir/out" | grep -c '^tensor,')" -eq 24 ] && ! grep -q '[,"][=+@-][^0-9,]' "$dir/out"
ok $? "CSV: no cell begins a formula"
has ",'=cmd|x," && has ",'+1," && has ",'-1," && has ",'@x," && has ',\\t=1,' && has ',\\x0d=1,'; ok $? "CSV: a quote before it"
run 0 info --csv "$dir/formula" && has ",'=cmd|x,"; ok $? "CSV: info, too"
"$MPSIM" stat --csv - <"$dir/formula/x" >"$dir/out" 2>"$dir/err" && has '^tensor,-,'; ok $? "CSV: - alone is standard input"

finish
