#!/bin/sh
# stat-parallel.sh -- all shards by GNU parallel, on this machine, or with PARALLEL='--sshloginfile nodes --wd .' on several
# that see the same files; then the report.
#
#   stat-parallel.sh SHARDS PARTS REPORT.json TRACE [option of stat]...
set -eu
shards=$1 parts=$2 report=$3 trace=$4
shift 4
mkdir -p "$parts"
# shellcheck disable=SC2016 # each shard's own words; -q: they reach it as they are
seq "$shards" | parallel --halt now,fail=1 -q sh -c \
    'part=$1/part.$4 trace=$2 shard=$4/$3
    shift 4
    [ -e "$part" ] || exec mpsim stat --shard "$shard" --threads 1 "$@" -o "$part" "$trace"' sh "$parts" "$trace" "$shards" '{}' "$@"
exec mpsim merge --json -o "$report" "$parts"/part.*
