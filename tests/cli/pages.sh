#!/bin/sh
# pages.sh -- the pages of tests/cli, or those that are given: commands and what they print (pages.awk says how a page is written).
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
# shellcheck source=tests/cli/screens.sh
. "$MPSIM_SRCDIR/tests/cli/screens.sh"
[ $# -gt 0 ] || set -- "$top"/tests/cli/*.md
pages -v part="$part" -v all="$all_parts" "$@"
