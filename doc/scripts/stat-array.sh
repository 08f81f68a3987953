#!/bin/sh
#SBATCH --job-name=mpsim-stat
#SBATCH --cpus-per-task=4
# stat-array.sh -- a shard of a report in each task of a Slurm array. A part appears when it is complete, so that the same
# line submitted again, or with --array of those that are missing, does what is left.
#
#   sbatch --array=1-100 stat-array.sh 100 PARTS TRACE [option of stat]...
#   sbatch --dependency=afterok:JOB --wrap='mpsim merge --json -o report.json PARTS/part.*'
set -eu
shards=$1 parts=$2 trace=$3
shift 3
part=$parts/part.$SLURM_ARRAY_TASK_ID
mkdir -p "$parts"
[ ! -e "$part" ] || exit 0
exec srun mpsim stat --shard "$SLURM_ARRAY_TASK_ID/$shards" --threads "${SLURM_CPUS_PER_TASK:-1}" "$@" -o "$part" "$trace"
