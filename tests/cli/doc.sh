#!/bin/sh
# doc.sh -- the front page and doc/: every screen is what the program prints, every link leads somewhere.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
# shellcheck source=tests/cli/screens.sh
. "$MPSIM_SRCDIR/tests/cli/screens.sh"

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
# a page of tests/cli of which every case fails: lines, pieces and order of the output, standard error, exit codes
cat >"$dir/wrong.md" <<'PAGE'
| command | output |
|---|---|
| `echo 1 2` | `1` |
| `echo 1; echo 2` | `2 ... 1` |
| `echo 1 2 3` | `1...4` |
| `echo 1 2 3` | `2...` |
| `echo 1 2 3` | `1...2` |
| `echo 1; echo 2 >&2` | `1` |
| `echo 1; false` | `1` |

| command | exit | error |
|---|---|---|
| `echo mpsim: no >&2` | 2 | `no` |
| `echo mpsim: no, no >&2; (exit 2)` | 2 | `no` |
| `echo no >&2; (exit 2)` | 2 | `no` |
| `echo 1; echo mpsim: no >&2; (exit 2)` | 2 | `no` |
| `echo mpsim: no >&2; echo no >&2; (exit 2)` | 2 | `no` |
| `(exit 2)` | 2 | `no` |

    $ cat >file
    1
    $ cat file; false
    1
    $ cat file; (exit 2)
    1
    [exit 1]
    $ cat file; echo mpsim: no >&2
    1
    $ cat file
    1
    mpsim: no
    $ echo 2 | cat file -
    1
PAGE
pages -v all=1 "$dir/wrong.md" >"$dir/out" 2>"$dir/err" || [ "$(grep -c '^not ok' "$dir/out")" -eq 18 ] && ! grep -q '^ok' "$dir/out"
ok $? "pages of tests/cli: whatever differs is seen"

# ---- the screens ----
# What a page shows may need what it showed before: a page is run as a whole, README.md every day.
screens=$(cd "$top" && grep -l '^    \$ \./mpsim ' doc/*.md doc/*/*.md | grep -v '^doc/questions/')
[ "$(echo "$screens" | wc -l)" -ge 20 ]; ok $? "pages with screens"
for page in README.md $screens; do
    turns 5 together
    [ "$page" != README.md ] || turns 1
    due || { ok 1 "$page" && continue; }
    show_page "$page"
done

# ---- links and paths ----
turns 1
: >"$dir/out"
: >"$dir/err"
pages=$(cd "$top" && [ -e .git ] && git ls-files '*.md' 2>/dev/null)
[ "$pages" ] || pages=$(cd "$top" && ls README.md doc/*.md doc/*/*.md)
# shellcheck disable=SC2086 # names
(cd "$top" && awk -f tests/cli/links.awk $pages) >"$dir/links"
while IFS='	' read -r page link target; do
    [ "$target" ] || echo "$page: $link: no such heading"
    [ -e "$top/$target" ] || echo "$page: $link: no such file"
done <"$dir/links" >"$dir/err"
[ "$(wc -l <"$dir/links")" -ge 20 ] && [ ! -s "$dir/err" ]; ok $? "links of every page lead to files and headings"
for page in $(cd "$top" && ls doc/howto/*.md doc/explanations/*.md doc/reference/*.md doc/dev/*.md); do
    grep -q "^doc/README.md	.*	$page\$" "$dir/links" || echo "$page is not on doc/README.md"
done >"$dir/err"
[ ! -s "$dir/err" ]; ok $? "doc/README.md lists every page"
# shellcheck disable=SC2016 # backquotes of a page
printf '# A `b` (c): d\n## E\n## E\n[1](#a-b-c-d) [2](one.md#e-1) [3](#e-2) [4](two.md#any) `[5](x)`\n' >"$dir/one.md"
(cd "$dir" && awk -f "$top/tests/cli/links.awk" one.md) >"$dir/out"
[ "$(cut -f2,3 "$dir/out" | tr '\t\n' '> ')" = '#a-b-c-d>one.md one.md#e-1>one.md #e-2>one.md #e-2> two.md#any>two.md ' ]
ok $? "a heading that is not there is found"
: >"$dir/err"
paths=0
for page in $(cd "$top" && ls README.md doc/*.md doc/*/*.md); do
    # shellcheck disable=SC2016 # backquotes of the page
    for path in $(cd "$top" && grep -o '`[a-z]*/[^` ]*`' "$page" | tr -d '`' | grep -E '^(data|doc|gpu|lib|plots|sim|tests)/'); do
        paths=$((paths + 1))
        # shellcheck disable=SC2086 # a pattern
        (cd "$top" && ls -d $path) >/dev/null 2>&1 || echo "$page: $path" >>"$dir/err"
    done
done
[ $paths -ge 20 ] && [ ! -s "$dir/err" ]; ok $? "paths in the text exist"
files=$("$MPSIM" --help | sed -n 's/^Files: \(.*\), raw, .*/\1/p')
[ -n "$files" ] && grep -q "^\* Input files are $files, " "$top/doc/reference/files.md"; ok $? "the files that help names are those of the reference"
finish
