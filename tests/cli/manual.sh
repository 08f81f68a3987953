#!/bin/sh
# manual.sh -- --help in its forms: every command has a manual page with all of its options, every option of an example
# exists, shells take the completions and complete by them; topics and suggestions.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
there() { command -v "$1" >/dev/null; }
"$MPSIM" --help >"$dir/program"
commands=$(sed -n '1,/help TOPIC/s/^  \([a-z][a-z]*\) .*/\1/p' "$dir/program")
topics=$(sed -n '/help TOPIC/,/mpsim COMMAND/s/^  \([a-z]*\)  .*/\1/p' "$dir/program")
groups=$(awk '/help TOPIC/ { exit } !before && /^[A-Z]/ && !/[.]$/ && NR > 1 { n++ } { before = $0 } END { print n }' "$dir/program")
[ "$(echo "$commands" | wc -l)" -ge 16 ] && [ "$(echo "$topics" | wc -l)" -ge 7 ]; ok $? "commands and topics are listed"
[ "$groups" -ge 5 ] && [ "$(echo "$commands" | head -n 1)" = info ] && [ "$(echo "$commands" | tail -n 1)" = verify ] &&
    [ "$(grep -c '^\.SS ' <<END
$("$MPSIM" --help=man)
END
)" -eq "$groups" ]
ok $? "commands are in groups, in the manual page, too"

# ---- manual pages ----
missing= unknown=
mkdir "$dir/man"
"$MPSIM" --help=man >"$dir/man/mpsim.1"
for c in $commands; do
    "$MPSIM" "$c" --help=all >"$dir/help"
    "$MPSIM" "$c" --help=man >"$dir/man/mpsim-$c.1"
    sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' "$dir/help" | sort >"$dir/options"
    sed -n '/^\.TP/{n;s/\\f[BRI]//g;s/\\-/-/g;s/^\(-., \)\{0,1\}\(--[a-z0-9-]*\).*/\2/p;}' "$dir/man/mpsim-$c.1" | sort >"$dir/of-page"
    cmp -s "$dir/options" "$dir/of-page" || missing="$missing $c"
    [ -s "$dir/options" ] && grep -q "mpsim.-$c (1)" "$dir/man/mpsim.1" || missing="$missing $c"
    # the options of the examples
    sed -n '/^Examples:/,$p' "$dir/help" | sed "s/   .*//; s/;.*//; s/'[^']*'//g" | grep "mpsim $c " |
        grep -o ' --[a-z][a-z0-9-]*' | tr -d ' ' | sort -u | comm -23 - "$dir/options" >"$dir/strange"
    # and those of the rules
    sed -n '/^What goes together/,/^$/p' "$dir/help" | sed 's/: .*//' | grep -o -- '--[a-z][a-z0-9-]*' | sort -u |
        comm -23 - "$dir/options" >>"$dir/strange"
    [ ! -s "$dir/strange" ] || unknown="$unknown $c:$(cat "$dir/strange")"
done
[ ! "$missing" ]; ok $? "every command has a page with all of its options:$missing"
[ ! "$unknown" ]; ok $? "the options of examples and rules exist:$unknown"
missing=
for c in $commands; do
    case " $(sed -n 's/^manual_commands = //p' "$MPSIM_SRCDIR/doc/local.mk") " in *" $c "*) ;; *) missing="$missing $c" ;; esac
done
[ ! "$missing" ]; ok $? "doc/local.mk installs them:$missing"
page() { awk -v name="$1" -v section="$2" -v version=mpsim -f "$MPSIM_SRCDIR/doc/man.awk" "$3" >"$dir/man/$1.$2"; }
sh "$top/doc/formats.sh" "$MPSIM" >"$dir/formats.md" && page libmpsim 3 "$top/doc/reference/library.md" &&
    page mpsim-policy 5 "$top/data/policies/README.md" && page mpsim-format 7 "$dir/formats.md"
ok $? "pages become manual pages"
grep -q '^\.TP$' "$dir/man/mpsim-policy.5" && grep -q 'fBmax_grad_norm' "$dir/man/mpsim-policy.5" && ! grep -n '[`|]' "$dir/man/mpsim-policy.5" >"$dir/out"
ok $? "keys are tags, and no marks are left"
if there groff; then
    groff -man -Tascii -ww "$dir"/man/* 2>&1 >/dev/null | grep -v "can't break line\|cannot adjust line\|cannot break line" >"$dir/out"
    [ ! -s "$dir/out" ]; ok $? "groff has nothing to say of them"
else
    ok 0 "groff # SKIP it is not here"
fi
if there mandoc; then
    mandoc -T lint -W warning "$dir"/man/* | grep -v 'missing date' >"$dir/out"
    [ ! -s "$dir/out" ]; ok $? "nor has mandoc"
else
    ok 0 "mandoc # SKIP it is not here"
fi

# ---- widths and lengths: 80 columns wherever it goes, for less; where there are many options the common ones alone, and examples ----
wide='' long=''
for c in '' $commands; do
    # shellcheck disable=SC2086 # a command, or none
    for form in help help=all; do
        "$MPSIM" $c --$form >"$dir/help"
        awk 'length > 80' "$dir/help" | grep -q . && wide="$wide $c:$form"
    done
    "$MPSIM" $c --help >"$dir/short"
    grep -q -- '--help=all' "$dir/short" || [ "$(wc -l <"$dir/short")" -le 75 ] || long="$long $c"
done
[ ! "$wide" ]; ok $? "help fits 80 columns:$wide"
[ ! "$long" ]; ok $? "what has many options shows the common ones:$long"
"$MPSIM" train --help >"$dir/out"
[ "$(grep -c '^  \(-., \|    \)--' "$dir/out")" -le 24 ] && has '^Examples:' && has '[-]-help=all  *[0-9]* more options' && ! has '^What goes together' &&
    "$MPSIM" train --help=all >"$dir/out" && has '^What goes together' && has '[-]-min-lr X' && has '^diverged '
ok $? "train has twenty options, and all of them"
for c in $commands; do # the names of common options exist
    "$MPSIM" "$c" --help=all >"$dir/help"
    "$MPSIM" "$c" --help | sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\).*/\2/p' | grep -v '^--help' | while read -r o; do
        grep -q -- "$o" "$dir/help" || echo "$c $o"
    done
done >"$dir/out"
[ ! -s "$dir/out" ]; ok $? "a short help is a part of the whole one"

# ---- columns: what help says of one is what the schema says ----
columns() { # COMMAND: sentences of columns
    sed -n '/^\.SS Columns/,/^\.S[HS] [^C]/p' "$dir/man/mpsim-$1.1" | sed -n '/^\.TP/{n;n;s/\\-/-/g;s/\\(aq/'"'"'/g;s/\\(ha/^/g;s/\.$//;p;}'
}
missing= told=0
for c in stat dot attention log diff judge mismatch memory; do
    columns $c >"$dir/out"
    told=$((told + $(wc -l <"$dir/out"))) found=0
    while read -r sentence; do
        grep -q -F -- "$sentence" "$MPSIM_SRCDIR/doc/schema/mpsim.$c".*.json && found=1
    done <"$dir/out"
    [ $found = 1 ] || missing="$missing $c"
done
[ ! "$missing" ] && [ $told -ge 50 ]; ok $? "$told columns are told as in doc/schema:$missing"

# ---- completions ----
if there bash; then
    "$MPSIM" --help=bash >"$dir/bash"
    # WORD... : what bash offers for the last of the words
    cat >"$dir/complete" <<'END'
. "$1"
program=$2
shift 2
COMP_WORDS=(mpsim "$@") COMP_CWORD=$# previous=mpsim
[ $# -lt 2 ] || previous=${COMP_WORDS[$# - 1]}
_mpsim "$program" "${COMP_WORDS[$#]}" "$previous"
echo "${COMPREPLY[*]}"
END
    offers() { # EXPECTED WORD...
        expected=$1
        shift
        bash "$dir/complete" "$dir/bash" "$MPSIM" "$@" >"$dir/out" 2>"$dir/err"
        [ "$(cat "$dir/out")" = "$expected" ] && [ ! -s "$dir/err" ]
    }
    offers stat sta && offers --format stat --form && offers "inf saturate" stat --overflow '' &&
        offers fp16,e4m3fnuz cast -f fp16,e4m3fn && offers '' train --seed ''
    ok $? "bash completes commands, options, choices and formats"
    (cd "$dir" && : >'a file.npy' && offers 'a file.npy' stat a) && (cd "$dir" && offers 'a file.npy' cast -o a)
    ok $? "bash completes files"
else
    ok 0 "bash # SKIP it is not here"
fi
missing=
for shell in zsh fish; do
    "$MPSIM" --help=$shell >"$dir/$shell"
    for c in $commands; do
        grep -q "__fish_seen_subcommand_from $c'\|^        $c)" "$dir/$shell" || missing="$missing $shell:$c"
    done
    if there $shell; then
        $shell -n "$dir/$shell" >"$dir/out" 2>&1; ok $? "$shell can parse its own"
    else
        ok 0 "$shell # SKIP it is not here"
    fi
done
[ ! "$missing" ]; ok $? "every command is in them:$missing"

# ---- topics and suggestions ----
for t in $topics; do
    run 0 help "$t" && [ "$(wc -l <"$dir/out")" -ge 5 ]; ok $? "help $t"
done
ls "$MPSIM_SRCDIR"/data/policies/*.yaml | sed 's,.*/,,; s,\.yaml,,' | sort >"$dir/files"
"$MPSIM" help policies | sed -n 's/^\([^ ].*\)  .*/\1/p' | sed 's/ .*//' | sort | cmp -s - "$dir/files"; ok $? "help policies has them all"
run 2 help nothing && has "'nothing' is neither a command nor a topic: see 'mpsim --help'" err; ok $? "a topic that there is not"
run 2 help recipies && has 'did you mean recipes?' err; ok $? "a topic with a letter too many"
run 2 stat --formt fp16 x && has 'stat: --formt is not an option: did you mean --format?' err; ok $? "an option with a letter too few"
run 2 stat --fprmat=fp16 x && has 'stat: --fprmat=fp16 is not an option: did you mean --format?' err; ok $? "an option with its value"
run 2 stat x '' && has '^mpsim: stat: operand 2 is empty$' err && run 2 stat x -o '' && has '^mpsim: stat: --output is empty$' err &&
    run 2 replay -P '' x && has '^mpsim: replay: --policy is empty$' err; ok $? "a name that is empty: where"
run 2 stat --zzzzz x && has "stat: --zzzzz is not an option; try 'mpsim stat --help'" err; ok $? "an option that is like none"
run 4 replay -P fp16 "$MPSIM_SRCDIR/data/amp-mlp" && has 'did you mean fp16-static, fp16-unscaled, deepspeed-fp16 or [0-9]* others?$' err; ok $? "a policy by its beginning"
run 2 plot histgram x && has "did you mean histogram?$" err && run 2 plot nothing x && has 'is not a figure: histogram, ruler' err; ok $? "a figure with a letter too few"
run 4 replay -P pytorch-amp-fp61 "$MPSIM_SRCDIR/data/amp-mlp" && has 'did you mean pytorch-amp-fp16?' err; ok $? "a policy with letters swapped"
run 2 stat --help=word && has "stat: --help is alone or all, man, bash, zsh or fish, not 'word'" err; ok $? "a form that there is not"
run 2 --help=word && has "^mpsim: --help is alone or all, man" err; ok $? "nor of the program"
finish
