#!/bin/sh
# questions.sh -- doc/questions/: every screen is what the program prints, every page is in the list. A tenth of the pages a day.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
# shellcheck source=tests/cli/screens.sh
. "$MPSIM_SRCDIR/tests/cli/screens.sh"

: >"$dir/out"
: >"$dir/err"
pages=$(cd "$top/doc/questions" && echo *.md | tr ' ' '\n' | sed '/^README.md$/d')
for name in $pages; do
    grep -q "]($name) | \(reproduced\|corrected\|none\) |\$" "$top/doc/questions/README.md" || echo "README.md: no row for $name" >>"$dir/err"
    grep -q '^The number of the thread: ' "$top/doc/questions/$name" || echo "$name: nothing about the number" >>"$dir/err"
    grep -q '(https://github.com/' "$top/doc/questions/$name" || echo "$name: no thread" >>"$dir/err"
done
[ "$(echo "$pages" | wc -l)" -ge 20 ] && [ ! -s "$dir/err" ]; ok $? "each page has a thread, what became of its number, and a row in the list"
for name in $pages; do
    turns 10 together
    due || { ok 1 "$name" && continue; }
    show_page "doc/questions/$name"
done
turns 1
finish
