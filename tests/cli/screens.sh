# shellcheck shell=sh
# screens.sh -- what tests of pages share: their screens, each run and compared with what the program prints.
#
# A screen is an indented line "$ COMMAND" (with its continuations) and the indented lines under it. It
# runs in a folder that looks like the one where mpsim was built. A line "..." stands for one or more
# lines that are left out; the others must be there, in one piece and in their order.
# shellcheck disable=SC2154 # dir, n and top are of common.sh

mkdir "$dir/build"
for folder in data plots tests; do ln -s "$top/$folder" "$dir/build/$folder"; done
printf '#!/bin/sh\nexec %s "$@"\n' "$MPSIM" >"$dir/build/mpsim"
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
    'cc -o example '*) "${MPSIM%/*}/tests/example" ;; # built from the page
    *) echo "no test knows this command" ;;
    esac >"$dir/out" 2>&1 </dev/null
    compare "$dir/screens/$1.screen" "$dir/out" >"$dir/err"
    [ ! -s "$dir/err" ]
}

# show_page PAGE [PATTERN WHY]: runs the screens of a page, a case each; a command with the pattern is skipped, for that reason
show_page() {
    screens "$top/$1"
    [ -s "$dir/screens/list" ]; ok $? "$1: has screens"
    while read -r number line; do
        if [ "${2-}" ] && grep -q "$2" "$dir/screens/$number.command"; then
            n=$((n + 1))
            echo "ok $n - $1:$line # SKIP $3"
            continue
        fi
        show "$number"; ok $? "$1:$line: $(tr -s ' \n\\#' ' ' <"$dir/screens/$number.command" | cut -c1-90)"
    done <"$dir/screens/list"
}
