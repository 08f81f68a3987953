#!/bin/sh
# words.sh -- words of all pages, by kind, and their sum, which is to stay below 90,000:
#
#   sh doc/words.sh [MAN]     MAN: the folder of the generated manual pages (make words builds them and counts them, too)
#
# Pages are the Markdown files that git knows. Pages of tests/cli are tests and do not count. libmpsim(3) and mpsim-policy(5) are
# made from pages that count already.
LC_ALL=C
export LC_ALL
man=$(cd "${1:-.}" && pwd) || exit 4
cd "$(dirname "$0")/.." || exit 4
git ls-files '*.md' | grep -v '^tests/cli/' | while IFS= read -r page; do
    [ -f "$page" ] || continue
    case $page in
    doc/tutorial.md) kind=tutorial ;;
    doc/howto/*) kind=how-to ;;
    doc/reference/* | doc/schema/* | data/policies/README.md) kind=reference ;;
    doc/explanations/*) kind=explanations ;;
    doc/questions/*) kind=questions ;;
    doc/dev/* | HACKING.md | CONTRIBUTING.md) kind=development ;;
    doc/*) kind=overview ;;
    data/*) kind=data ;;
    */*) kind='other folders' ;;
    *) kind=root ;;
    esac
    echo "$kind	$(wc -w <"$page")	$page"
done >"${TMPDIR:-/tmp}/words.$$"
trap 'rm -f "${TMPDIR:-/tmp}/words.$$"' EXIT
[ ! "${1-}" ] || for page in "$man"/*.[17]; do echo "manual pages	$(wc -w <"$page")	$page"; done >>"${TMPDIR:-/tmp}/words.$$"
awk -F '\t' '
    { words[$1] += $2; pages[$1]++; all += $2; n++ }
    END {
        for (kind in words) printf "%-14s %4d pages %7d words\n", kind, pages[kind], words[kind] | "sort"
        close("sort")
        printf "%-14s %4d pages %7d words\n", "all", n, all
    }' "${TMPDIR:-/tmp}/words.$$"
