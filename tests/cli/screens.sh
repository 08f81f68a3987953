# shellcheck shell=sh
# screens.sh -- what tests of pages share: their screens, each run and compared with what the program prints (pages.awk).
# shellcheck disable=SC2154 # dir, n and top are of common.sh

pages() {
    rm -rf "$dir/pages"
    mkdir "$dir/pages"
    awk -v dir="$dir/pages" -v top="$top" -v program="$(command -v "$MPSIM")" -f "$top/tests/cli/pages.awk" "$@"
}

# compare SCREEN OUTPUT: nothing, or what differs first
compare() { pages -v compare=1 "$1" "$2"; }

# show_page PAGE [PATTERN WHY]: runs the screens of a page, a case each; a command with the pattern is skipped, for that reason
show_page() {
    pages -v doc=1 -v before="$n" -v skip="${2-}" -v why_skipped="${3-}" "$top/$1" >"$dir/shown" || failed=1
    cat "$dir/shown"
    n=$((n + $(grep -c '^\(not \)*ok ' "$dir/shown")))
    grep -q '^\(not \)*ok ' "$dir/shown"; ok $? "$1: has screens"
}
