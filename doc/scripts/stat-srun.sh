#!/bin/sh
#SBATCH --job-name=mpsim-stat
#SBATCH --ntasks=100
#SBATCH --cpus-per-task=4
# stat-srun.sh -- all shards in one Slurm job, a task each, and the report at its end.
#
#   sbatch --ntasks=100 stat-srun.sh PARTS REPORT.json TRACE [option of stat]...
set -eu
parts=$1 report=$2 trace=$3
shift 3
mkdir -p "$parts"
# shellcheck disable=SC2016 # the task's own numbers
srun sh -c 'part=$1/part.$((SLURM_PROCID + 1)) trace=$2
    shift 2
    [ -e "$part" ] || exec mpsim stat --shard "$((SLURM_PROCID + 1))/$SLURM_NTASKS" "$@" -o "$part" "$trace"' \
    sh "$parts" "$trace" --threads "${SLURM_CPUS_PER_TASK:-1}" "$@"
exec mpsim merge --json -o "$report" "$parts"/part.*
