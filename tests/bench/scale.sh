#!/bin/sh
# scale.sh -- make bench-scale: time and memory of mpsim stat against the number of tensors in a file, of files, and of bytes of a
# tensor, on one thread and on several, as a table. CPU time is what counts where the machine has other work. Private memory
# is the most that a look every 50 ms at /proc/PID/smaps_rollup finds.
#
#   scale.sh [tensors|files|steps|bytes|threads]...      default: all of them
set -eu
export LC_ALL=C
: "${MPSIM:=./mpsim}"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM
[ $# -gt 0 ] || set -- tensors files steps bytes threads

# A safetensors file of n tensors of 4 binary32 numbers.
tensors() { # tensors FILE N
    awk -v n="$2" 'BEGIN {
        printf "{"
        for (i = 0; i < n; i++)
            printf "%s\"layers.%d.weight\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[%d,%d]}", i ? "," : "", i, 16 * i, 16 * i + 16
        printf "}" }' >"$dir/header"
    size=$(wc -c <"$dir/header")
    left=$size
    for _ in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2059 # an escape
        printf "$(printf '\\%03o' $((left % 256)))"
        left=$((left / 256))
    done >"$1"
    cat "$dir/header" >>"$1"
    dd if=/dev/zero of="$1" bs=1 count=0 seek=$((8 + size + 16 * $2)) 2>/dev/null
}

# What a process has of its own, in KiB, while it runs.
watch() {
    most=0
    while kill -0 "$1" 2>/dev/null; do
        now=$(awk '/^Private/ { s += $2 } END { print s + 0 }' "/proc/$1/smaps_rollup" 2>/dev/null || echo 0)
        [ "${now:-0}" -le "$most" ] || most=$now
        sleep 0.05
    done
    echo "$most"
}

# measure WHAT SIZE THREADS WORDS...: a row
measure() {
    what=$1 size=$2 threads=$3
    shift 3
    rm -f "$dir/pid"
    ( # whose only child is the program, so that `times` has its time alone
        "$MPSIM" stat --threads "$threads" -f fp16 --csv --level total -o "$dir/report" "$@" &
        echo $! >"$dir/pid.new" && mv "$dir/pid.new" "$dir/pid"
        wait $!
        times >"$dir/times"
    ) &
    while [ ! -e "$dir/pid" ]; do :; done
    watch "$(cat "$dir/pid")" >"$dir/memory"
    wait $!
    awk -v what="$what" -v size="$size" -v threads="$threads" -v memory="$(cat "$dir/memory")" '
        function seconds(t) { split(t, p, /[ms]/); return 60 * p[1] + p[2] }
        NR == 2 { printf "%-10s %8s %8d %12.2f %12.1f\n", what, size, threads, seconds($1) + seconds($2), memory / 1024 }' "$dir/times"
}

printf '%-10s %8s %8s %12s %12s\n' what size threads 'CPU seconds' 'private MiB'
for part in "$@"; do
    case $part in
    tensors)
        for n in 1000 10000 100000; do
            tensors "$dir/model.safetensors" $n
                    measure tensors $n 1 "$dir/model.safetensors"
        done
        ;;
    files | steps)
        tensors "$dir/one" 4
        name=file_
        [ "$part" = files ] || name=step_ # a report says something of every step
        rm -rf "$dir/files"
        for n in 100 1000 10000; do
            mkdir -p "$dir/files"
            seq $n | while read -r i; do cp "$dir/one" "$dir/files/$name$i.safetensors"; done
            measure "$part" $n 1 "$dir/files"
        done
        ;;
    bytes)
        for gib in 1 4 16; do
            dd if=/dev/zero of="$dir/sparse" bs=1 count=0 seek=$((gib << 30)) 2>/dev/null
            measure GiB $gib 1 --dtype fp32 "$dir/sparse"
        done
        ;;
    threads)
        dd if=/dev/zero of="$dir/sparse" bs=1 count=0 seek=$((1 << 30)) 2>/dev/null
        for n in 1 2 4 8 16; do
            measure GiB 1 $n --dtype fp32 "$dir/sparse"
        done
        ;;
    *) echo "scale.sh: '$part' is not one of tensors, files, steps, bytes, threads" >&2 && exit 2 ;;
    esac
done
