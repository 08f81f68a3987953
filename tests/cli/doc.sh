#!/bin/sh
# doc.sh -- the front page and doc/: every screen is what the program prints, every link leads somewhere.
#
# A screen is an indented line "$ COMMAND" (with its continuations) and the indented lines under it. It
# runs in a folder that looks like the one where mpsim was built. A line "..." stands for one or more
# lines that are left out; the others must be there, in one piece and in their order.
set -u
: "${MPSIM_SRCDIR:=.}"
# shellcheck source=tests/cli/common.sh
. "$MPSIM_SRCDIR/tests/cli/common.sh"
LC_ALL=C
export LC_ALL
source=$(realpath "$MPSIM_SRCDIR")
program=$(realpath "$MPSIM")
MPSIM_POLICIES=$source/data/policies
export MPSIM_POLICIES

mkdir "$dir/build"
for folder in data plots tests; do ln -s "$source/$folder" "$dir/build/$folder"; done
printf '#!/bin/sh\nexec %s "$@"\n' "$program" >"$dir/build/mpsim"
chmod +x "$dir/build/mpsim"

# screens PAGE: its screens, numbered: N.command and N.screen in $dir/screens; their lines in list
screens() {
    rm -rf "$dir/screens"
    mkdir "$dir/screens"
    awk -v to="$dir/screens" '
        /^    \$ / {
            close(command)
            close(screen)
            command = to "/" ++n ".command"
            screen = to "/" n ".screen"
            print substr($0, 7) >command
            printf "" >screen
            print n, NR >(to "/list")
            open = 1
            more = /\\$/
            blank = 0
            next
        }
        open && more { print substr($0, 5) >command; more = /\\$/; next }
        open && /^    / {
            for (; blank > 0; blank--) print "" >screen
            print substr($0, 5) >screen
            next
        }
        open && /^$/ { blank++; next }
        { open = 0 }' "$1"
}

# compare SCREEN OUTPUT: nothing, or what differs first
compare() {
    awk '
        # whether lines a to b of the screen are lines i and on of the output
        function here(a, b, i,    k) {
            for (k = a; k <= b; k++) if (want[k] != got[i + k - a]) return 0
            return 1
        }
        function differs(k, text) { print "line " k " of the screen: " text; failed = 1; exit }
        { sub(/[ \t]+$/, "") }
        FILENAME == ARGV[1] { want[++m] = $0; next }
        { got[++n] = $0 }
        END {
            if (failed) exit
            at = 1 # the next line of the output
            for (a = 1; a <= m; a = b + 1) {
                b = a
                if (want[a] == "...") {
                    if (at > n) differs(a, "nothing is left out here")
                    at++
                    gap = 1
                    continue
                }
                while (b < m && want[b + 1] != "...") b++
                last = n - (b - a) # where the piece may begin at the latest
                if (gap && b == m && at <= last) at = last
                while (gap && at < last && !here(a, b, at)) at++
                if (at > last) differs(a, "more lines than the output has left: " want[a])
                for (k = a; k <= b; k++)
                    if (want[k] != got[at + k - a])
                        differs(k, "\"" want[k] "\"; the output: \"" got[at + k - a] "\"")
                at += b - a + 1
                gap = 0
            }
            if (!gap && at <= n) differs(m, "the output goes on: \"" got[at] "\"")
        }' "$1" "$2"
}

# show NUMBER: runs a command of a page as its reader would
show() {
    command=$dir/screens/$1.command
    case $(cat "$command") in
    *./mpsim\ *) (cd "$dir/build" && sh "$command") ;;
    'cc -o example '*) "${program%/*}/tests/example" ;; # built from the page
    *) echo "doc.sh does not know this command" ;;
    esac >"$dir/out" 2>&1 </dev/null
    compare "$dir/screens/$1.screen" "$dir/out" >"$dir/err"
    [ ! -s "$dir/err" ]
}

# ---- the comparison sees what differs ----
# same CODE SCREEN OUTPUT: whether they are the same
same() {
    printf '%b' "$2" >"$dir/want"
    printf '%b' "$3" >"$dir/out"
    compare "$dir/want" "$dir/out" >"$dir/err"
    if [ -s "$dir/err" ]; then [ "$1" -eq 1 ]; else [ "$1" -eq 0 ]; fi
}
same 0 'a\nb\n' 'a\nb  \n' && same 1 'a\nb\n' 'a\nc\n' && same 1 'a\n' 'a\nb\n' && same 1 'a\nb\n' 'a\n' &&
    same 1 '' 'a\n' && same 1 'a\n' ''; ok $? "a screen without gaps is the output"
same 0 '...\nc\n' 'a\nb\nc\n' && same 0 'a\n...\n' 'a\nb\nc\n' && same 0 'a\n...\nc\n...\ne\n' 'a\nb\nc\nd\ne\n' &&
    same 0 '...\nc\n' 'a\nc\nb\nc\n'; ok $? "gaps"
same 1 '...\nb\n' 'a\nb\nc\n' && same 1 'b\n...\n' 'a\nb\nc\n' && same 1 'a\n...\nb\n' 'a\nb\n' && same 1 'a\n...\n' 'a\n' &&
    same 1 'a\n...\nd\n...\nb\n...\n' 'a\nb\nc\nd\ne\n' && same 1 '...\nb\nd\n...\n' 'a\nb\nc\nd\ne\n'
ok $? "gaps: pieces in their order, at least a line left out"

# ---- the screens ----
case " $(turn short short long) " in *long*) long=1 ;; *) long= ;; esac
# What a page shows may need what it showed before: a page is run as a whole, README.md every day.
for page in README.md doc/formats.md doc/names.md doc/stat.md doc/diff.md doc/scale.md doc/scaler.md doc/replay.md doc/advise.md \
    doc/train.md doc/transformers.md doc/dot.md doc/attention.md doc/mismatch.md doc/memory.md doc/quantised.md; do
    turns 5 together
    [ $page != README.md ] || turns 1
    due || { ok 1 "$page" && continue; }
    screens "$source/$page"
    [ -s "$dir/screens/list" ]; ok $? "$page: has screens"
    while read -r number line; do
        if [ -z "$long" ] && grep -q 'te-nvfp4-without-rht' "$dir/screens/$number.command"; then
            n=$((n + 1))
            echo "ok $n - $page:$line # SKIP takes seven seconds, so one day in three"
            continue
        fi
        show "$number"; ok $? "$page:$line: $(tr -s ' \n\\#' ' ' <"$dir/screens/$number.command" | cut -c1-90)"
    done <"$dir/screens/list"
done

# ---- links and paths ----
turns 1
: >"$dir/out"
: >"$dir/err"
links=0
for page in $(cd "$source" && ls README.md HACKING.md doc/*.md); do
    for link in $(cd "$source" && grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^https*:'); do
        links=$((links + 1))
        (cd "$source" && [ -e "$(dirname "$page")/$link" ]) || echo "$page: $link" >>"$dir/err"
    done
done
[ $links -ge 20 ] && [ ! -s "$dir/err" ]; ok $? "links lead to files"
: >"$dir/err"
paths=0
for page in $(cd "$source" && ls README.md doc/*.md); do
    # shellcheck disable=SC2016 # backquotes of the page
    for path in $(cd "$source" && grep -o '`[a-z]*/[^` ]*`' "$page" | tr -d '`' | grep -E '^(data|doc|gpu|lib|plots|sim|tests)/'); do
        paths=$((paths + 1))
        # shellcheck disable=SC2086 # a pattern
        (cd "$source" && ls -d $path) >/dev/null 2>&1 || echo "$page: $path" >>"$dir/err"
    done
done
[ $paths -ge 20 ] && [ ! -s "$dir/err" ]; ok $? "paths in the text exist"
files=$("$MPSIM" --help | sed -n 's/^Files: \(.*\), raw, .*/\1/p')
[ -n "$files" ] && grep -q "^\* Input files are $files, " "$source/doc/README.md"; ok $? "the files that help names are those of the overview"
finish
