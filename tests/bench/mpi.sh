#!/bin/sh
# mpi.sh -- make bench-mpi: time and private memory of mpsim-mpi on 1, 2 and 3 ranks against the size of a trace that it makes:
# two steps of eight parameters with their gradients. Private memory is the most that a look every 50 ms at
# /proc/PID/smaps_rollup finds, of the rank that has most and of the first.
#
#   mpi.sh [MILLIONS-OF-WEIGHTS...]     default 1 4 16 (replay takes 70 bytes for a weight)
set -eu
export LC_ALL=C OMP_NUM_THREADS=1
: "${MPSIM:=./mpsim}" "${MPSIM_MPI:=./mpsim-mpi}" "${MPIRUN:=mpirun}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
    OMPI_MCA_plm=isolated OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
[ -x "$MPSIM_MPI" ] || { echo "bench-mpi: configured without MPI" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 99' HUP INT TERM

# Elements that are numbers: random e4m3 codes but for NaN and the largest, as binary32.
data() { # data FILE ELEMENTS
    head -c $(($2 * 9 / 8 + 65536)) /dev/urandom | tr -d '\175-\177\375-\377' | head -c "$2" >"$dir/codes"
    "$MPSIM" cast -q --dtype e4m3 -f binary32 -o "$dir/wide.npy" "$dir/codes"
    tail -c $(($2 * 4)) "$dir/wide.npy" >"$1"
    rm "$dir/codes" "$dir/wide.npy"
}
eight() { # eight NUMBER: as eight bytes, little-endian
    left=$1
    for _ in 1 2 3 4 5 6 7 8; do
        # shellcheck disable=SC2059 # an escape
        printf "$(printf '\\%03o' $((left % 256)))"
        left=$((left / 256))
    done
}
make_trace() { # make_trace FOLDER MILLIONS
    n=$(($2 * 131072))
    data "$dir/data" $n
    for step in 1 2; do
        mkdir -p "$1/step_$step"
        file=$1/step_$step/all.safetensors
        header="{\"__metadata__\":{\"mpsim.step\":\"$step\",\"mpsim.optimizer\":\"adamw\",\"mpsim.lr\":\"0.001\"}"
        at=0
        for p in 1 2 3 4 5 6 7 8; do
            for kind in weight wgrad; do
                header="$header,\"$kind:layer$p.weight\":{\"dtype\":\"F32\",\"shape\":[$((n / 64)),64],\"data_offsets\":[$at,$((at + 4 * n))]}"
                at=$((at + 4 * n))
            done
        done
        header="$header}"
        { eight ${#header}; printf '%s' "$header"; for _ in 1 2 3 4 5 6 7 8; do cat "$dir/data" "$dir/data"; done; } >"$file"
    done
}

# A rank, watched: what it had at most, in KiB, in the file most.RANK.
cat >"$dir/watched" <<'SCRIPT'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
"$@" &
most=0
while kill -0 $! 2>/dev/null; do
    now=$(awk '/^Private_(Clean|Dirty)/ { n += $2 } END { print n + 0 }' /proc/$!/smaps_rollup 2>/dev/null)
    if [ "${now:-0}" -gt "$most" ]; then most=$now; fi
    sleep 0.05
done
echo "$most" >"$WATCHED_IN/most.$rank"
wait $!
SCRIPT
chmod +x "$dir/watched"
WATCHED_IN=$dir
export WATCHED_IN
now() { date +%s.%N; }

echo "command  trace MB  ranks  seconds  MB of the largest  MB of the first  report"
[ $# -gt 0 ] || set -- 1 4 16
for millions; do
    make_trace "$dir/trace" "$millions"
    for command in stat 'replay --policy pytorch-amp-fp16'; do
        for ranks in 1 2 3; do
            rm -f "$dir"/most.*
            began=$(now)
            # shellcheck disable=SC2086 # words
            $MPIRUN -n $ranks "$dir/watched" "$MPSIM_MPI" $command "$dir/trace" >"$dir/report" 2>"$dir/err" </dev/null ||
                { cat "$dir/err" >&2; exit 1; }
            ended=$(now)
            cat "$dir"/most.* | sort -n | tail -n 1 >"$dir/largest"
            awk -v c="${command%% *}" -v mb=$((millions * 16)) -v n=$ranks -v a="$began" -v b="$ended" \
                -v most="$(cat "$dir/largest")" -v first="$(cat "$dir/most.0")" -v sum="$(cksum <"$dir/report")" \
                'BEGIN { printf "%-8s %8d %6d %8.1f %18.0f %16.0f  %s\n", c, mb, n, b - a, most / 1024, first / 1024, sum }'
        done
    done
    rm -rf "$dir/trace"
done
