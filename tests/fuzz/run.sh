#!/bin/sh
# run.sh -- the fuzz targets of a folder, one after the other, each from its corpus in tests/fuzz/corpus (unpacked to FOLDER/seeds) and from what
# earlier runs found. What crashes, leaks or hangs is kept in FOLDER/found. A row for each on standard output.
#
#   run.sh FOLDER SOURCES RUNS [TARGET...]      as `make fuzz` calls it; RUNS executions each; FUZZ_OPTIONS: more
# options of libFuzzer, as -max_total_time=60
set -u
folder=$1 sources=$2 runs=$3
shift 3

# shellcheck source=tests/fuzz/targets.sh
. "$sources/tests/fuzz/targets.sh"

[ $# -gt 0 ] || set -- $(cd "$folder" && for f in fuzz-*; do [ -x "$f" ] && [ -f "$f" ] && echo "${f#fuzz-}"; done)
failed=0 before=0 after=0
# what is freed is kept for a while, to be caught when it is used: less of it than usual, for speed
ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=2:allocator_release_to_os_interval_ms=-1:clear_shadow_mmap_threshold=100000000${ASAN_OPTIONS:+:$ASAN_OPTIONS}
# what is packed is unpacked in memory, where there is such a place
[ -n "${TMPDIR-}" ] || [ ! -w /dev/shm ] || TMPDIR=/dev/shm
export ASAN_OPTIONS ${TMPDIR+TMPDIR}
spent() { # spent VARIABLE: seconds of a processor that all runs took so far; `times` knows this shell alone, no subshell
    times >"$folder/times"
    eval "$1=$(awk 'NR == 2 { gsub(/m/, " "); gsub(/s/, ""); print 60 * $1 + $2 + 60 * $3 + $4 }' "$folder/times")"
}
printf '%-11s %11s %8s %8s %9s %9s %9s %9s\n' target executions findings edges features seconds 'CPU s' 'per CPU s'
for target; do
    spent before
    mkdir -p "$folder/corpus/$target" "$folder/found"
    seeds "$target" "$folder/seeds/$target" || exit 1
    log=$folder/$target.log
    dictionary "$target" >"$folder/$target.dict"
    [ -s "$folder/$target.dict" ] || echo '"\x00"' >"$folder/$target.dict" # an empty one is an error
    # Inputs that take long are changed less often. A target limits the size of its files, so that another process writes the log.
    # shellcheck disable=SC2046,SC2086 # words
    {
        "$folder/fuzz-$target" -runs="$runs" -max_len=$(longest "$target") -dict="$folder/$target.dict" -timeout=5 -rss_limit_mb=2048 \
            -print_final_stats=1 -close_fd_mask=3 -entropic_scale_per_exec_time=1 ${FUZZ_OPTIONS-} -artifact_prefix="$folder/found/$target-" \
            "$folder/corpus/$target" "$folder/seeds/$target" $(more "$target") 2>&1
        echo "run.sh: exit code $?"
    } | cat >"$log"
    code=$(sed -n 's/^run.sh: exit code //p' "$log")
    spent after
    [ "$code" = 0 ] || failed=1
    awk -v target="$target" -v code="$code" -v before="$before" -v after="$after" '
        / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") edges = $(i + 1); if ($i == "ft:") features = $(i + 1) } }
        /^Done .* second/ { seconds = $(NF - 1) }
        /^stat::number_of_executed_units:/ { n = $2 }
        END { cpu = after - before
              printf "%-11s %11d %8d %8d %9d %9d %9.1f %9d\n", target, n, code != 0, edges, features, seconds, cpu,
                     n / (cpu > 0 ? cpu : 1) }' "$log"
done
exit $failed
