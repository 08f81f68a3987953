#!/bin/sh
# scale.sh -- the scripts and lines of doc/howto/read-28-gb-of-gradients.md, in the small: Slurm and GNU parallel with programs that play them, object
# stores with a curl that reads files; the reports are those of one run.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
program=$MPSIM
trace=$top/data/digits-cnn
mkdir "$dir/bin" "$dir/work" && cd "$dir/work" || exit 99
printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" >../bin/mpsim
# srun: in an array it runs the task; in a job it runs all of them
cat >../bin/srun <<'SRUN'
#!/bin/sh
echo srun >>../srun.log
[ "${SLURM_NTASKS:-}" ] || exec "$@"
SLURM_PROCID=0
while [ $SLURM_PROCID -lt "$SLURM_NTASKS" ]; do
    export SLURM_PROCID
    "$@" || exit 1
    SLURM_PROCID=$((SLURM_PROCID + 1))
done
SRUN
# parallel -q COMMAND with {} for each line
cat >../bin/parallel <<'PARALLEL'
#!/bin/sh
while [ "$1" != -q ]; do shift; done
shift
while read -r line; do
    n=$#
    for word in "$@"; do
        [ "$word" = '{}' ] && word=$line
        set -- "$@" "$word"
    done
    shift $n
    "$@" </dev/null || exit 1
    set -- "$@" # the words of the last line: put {} back
    n=$#
    for word in "$@"; do
        [ "$word" = "$line" ] && word='{}'
        set -- "$@" "$word"
    done
    shift $n
done
PARALLEL
# curl -s [-r FROM-TO] file:PATH
cat >../bin/curl <<'CURL'
#!/bin/sh
shift
range=
[ "$1" = -r ] && range=$2 && shift 2
file=${1#file:}
[ "$range" ] || exec cat "$file"
tail -c +$((${range%-*} + 1)) "$file" | head -c $((${range#*-} - ${range%-*} + 1))
CURL
chmod +x ../bin/*
PATH=$dir/bin:$PATH
export PATH
options='-f fp16,e4m3 -s 1,2^10 --histogram'
# shellcheck disable=SC2086 # words
mpsim stat $options --json -o ../whole.json "$trace" || exit 99

# ---- Slurm and GNU parallel ----
# shellcheck disable=SC2086 # words
array() { # array TASK...: these tasks of an array of 5
    for task in "$@"; do
        SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_COUNT=$# SLURM_CPUS_PER_TASK=2 sh "$top/doc/scripts/stat-array.sh" 5 parts "$trace" $options || return 1
    done
}
array 4 1 2 && [ "$(find parts -type f | wc -l)" -eq 3 ]; ok $? "stat-array.sh: some tasks"
mpsim merge --json -o early.json parts/part.* >../out 2>../err; [ $? -eq 3 ] && grep -q 'shards 3, 5 of 5 are missing' ../err; ok $? "what is missing is said"
cp -p parts/part.1 ../kept && array 1 2 3 4 5 && [ "$(wc -l <../srun.log)" -eq 5 ] && cmp -s ../kept parts/part.1; ok $? "submitted again it does the rest"
mpsim merge --json -o array.json parts/part.* && cmp -s array.json ../whole.json; ok $? "the report of one run"
rm -rf parts
# shellcheck disable=SC2086 # words
SLURM_NTASKS=7 sh "$top/doc/scripts/stat-srun.sh" parts srun.json "$trace" $options >../out 2>../err && cmp -s srun.json ../whole.json &&
    [ "$(find parts -type f | wc -l)" -eq 7 ]; ok $? "stat-srun.sh: seven tasks of one job"
rm -rf parts
# shellcheck disable=SC2086 # words
sh "$top/doc/scripts/stat-parallel.sh" 3 parts parallel.json "$trace" $options >../out 2>../err && cmp -s parallel.json ../whole.json
ok $? "stat-parallel.sh"

# ---- object stores: the lines of the page ----
file=$trace/step_000120/rank_00000.safetensors
curl -s "file:$file" | mpsim stat --json - | sed 's/"file": "[^"]*"/"file": ""/' >../pipe.json && mpsim stat --json "$file" | sed 's/"file": "[^"]*"/"file": ""/' >../file.json &&
    cmp -s ../pipe.json ../file.json; ok $? "a pipe is what the file is"
mpsim info --csv -m agrad:conv1 "$file" >../info.csv
tail -n 1 ../info.csv | sed 's/"[^"]*"//g' >../row
count=$(cut -d, -f7 ../row)
from=$(cut -d, -f8 ../row)
numbers() { sed -n 's/.*"total": \(.*\)/\1/p' | tr ',' '\n' | grep -v tensors; }
curl -s -r "$from-$((from + 4 * count - 1))" "file:$file" | mpsim stat --json --dtype fp32 - | numbers >../range && mpsim stat --json -m agrad:conv1 "$file" | numbers >../tensor &&
    [ -s ../range ] && cmp -s ../range ../tensor; ok $? "a range of bytes is the tensor"
finish
