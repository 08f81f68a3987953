#!/bin/sh
# session.sh -- what to ask of a machine with a device, in one call of ten minutes at most:
#
#   sh gpu/session.sh --output-dir DIR all       every part of the list below, the most valuable first
#   sh gpu/session.sh --output-dir DIR PART...   these parts alone; a single one has all the time
#
# In the top folder; gpu/build/mpsim-gpu (or MPSIM_GPU) is built elsewhere. Every part has a process and a
# time of its own; within mpsim-gpu every check, probe, run and row of speed has, too. What is printed,
# records, digests and traces come into DIR/session.tar.gz, which is written anew after every part, and
# every 20 seconds within one: whenever this is killed, an archive of what was found is there. Its summary.txt has
# the time of each part, and at its end what is missing, with the commands that ask for it again.
# Exit: 0: all parts were run and agree; 1: one differs, failed or is missing; 2: usage; 4: DIR cannot be written.
set -u

# Parts: name, seconds it may take, seconds it is thought to take (on an H200 beside 16 processors), command.
# GPU: mpsim-gpu, its record named by the part; STATISTICS: mpsim-gpu-statistics; SANITIZER: compute-sanitizer; TO: the folder of results; LIMIT: ten seconds
# less than the part may take; TRACES: mpsim's trainings, if data/record/device/traces.sh has written them to gpu/build/traces.
list() {
    cat <<'PARTS'
machine      5   1  nvidia-smi -q
checks      35   7  GPU --only checks --skip wgmma
wgmma       30   3  GPU --only wgmma --skip speed
probes      15   1  GPU --only probes
speed       45  10  GPU --only speed
statistics  45  29  STATISTICS
watch       35  12  PYTHON python/cuda_check.py --quick --output TO/watch.json
training    60  40  GPU --only training --skip fp8 --skip gpt
fp8         35  16  GPU --only fp8 --skip gpt --skip checks --skip speed
gpt         95  73  GPU --only gpt
pytorch     80  45  PYTHON data/record/ask_device.py --device cuda --jobs 5 --total LIMIT TRACES --output-dir TO/pytorch
amp         25  20  PYTHON data/record/train_amp_mlp.py --device cuda TO/amp
memcheck    40  20  SANITIZER --tool memcheck --error-exitcode 9 GPU --one-process --tiny
racecheck   35  14  SANITIZER --tool racecheck --error-exitcode 9 GPU --one-process --tiny --only gpt-fp8
PARTS
}
most=590 # seconds for all of it

usage() {
    echo "usage: $0 --output-dir DIR all|PART..." >&2
    echo "parts: $(list | awk '{ printf "%s%s", sep, $1; sep = " " }')" >&2
    exit 2
}
if [ $# -lt 3 ] || [ "$1" != --output-dir ]; then usage; fi
out=$2
shift 2
if [ "$*" = all ]; then
    # shellcheck disable=SC2046 # words
    set -- $(list | awk '{ print $1 }')
fi
for name in "$@"; do
    list | grep -q "^$name " || usage
done

# compute-sanitizer is often not on the path, but below the CUDA folder.
find_sanitizer() {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    for at in "$(command -v compute-sanitizer)" "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
        "$(dirname "$nvcc")/compute-sanitizer" \
        "${CUDA_HOME:-/usr/local/cuda}"/compute-sanitizer/compute-sanitizer; do
        if [ -x "$at" ]; then
            echo "$at"
            return
        fi
    done
    echo compute-sanitizer
}
: "${MPSIM_CUDA:=$PWD/gpu/build/libmpsim-cuda.so}" # of the part `watch`, which needs the package mpsim, too
export MPSIM_CUDA
: "${MPSIM_GPU:=gpu/build/mpsim-gpu}" "${STATISTICS:=gpu/build/mpsim-gpu-statistics}" "${PYTHON:=python3}" "${SANITIZER:=$(find_sanitizer)}"

mkdir -p "$out" && work=$(mktemp -d) && mkdir "$work/session" || exit 4
to=$work/session
summary=$to/summary.txt
began=$(date +%s)
pack() {
    tar -czf "$out/session.tar.gz.new" -C "$work" session && mv "$out/session.tar.gz.new" "$out/session.tar.gz"
}
process=
trap '[ -z "$process" ] || kill "$process" 2>/dev/null; pack; rm -rf "$work"; exit 1' HUP INT TERM

traces='/^TRACES$/d'
[ ! -d gpu/build/traces ] || traces='s|^TRACES$|--traces=gpu/build/traces|'

# The words of a part's command, one a line.
command_of() {
    list | awk -v name="$1" '$1 == name { for (i = 4; i <= NF; i++) print $i }' |
        sed "s|^TO/|$to/|; s|^LIMIT\$|$((limit - 10))|; s|^PYTHON\$|$PYTHON|; $traces; s|^SANITIZER\$|$SANITIZER|; s|^GPU\$|$MPSIM_GPU|; s|^STATISTICS\$|$STATISTICS|"
    case $(list | grep "^$1 ") in *" GPU "* | *" STATISTICS") printf '%s\n' --output "$to/$1.json" ;; esac
}

# part NAME: its output in NAME.txt, its line in the summary. $status: its exit status.
part() {
    limit=$(list | awk -v name="$1" '$1 == name { print $2 }')
    thought=$(list | awk -v name="$1" '$1 == name { print $3 }')
    left=$((most - $(date +%s) + began))
    [ "$alone" = 0 ] || limit=$left
    [ "$left" -lt "$limit" ] && limit=$left
    if [ "$limit" -lt 3 ]; then
        status=late
        printf '%-10s not begun: the time was over\n' "$1" | tee -a "$summary"
        return
    fi
    from=$(date +%s) ticks=0
    # a command's words hold no white space but in the paths of the environment
    IFS='
'
    # shellcheck disable=SC2046 # words
    set -- "$1" $(command_of "$1")
    unset IFS
    name=$1
    shift
    echo "== $name: $*"
    timeout -k 5 "$limit" "$@" >"$to/$name.txt" 2>&1 </dev/null &
    process=$!
    while kill -0 "$process" 2>/dev/null; do
        sleep 0.2
        ticks=$((ticks + 1))
        [ $((ticks % 100)) -ne 0 ] || pack
    done
    wait "$process"
    status=$? process=
    tail -n 200 "$to/$name.txt"
    printf '%-10s exit %-3s  %3d s (at most %d, thought to take %d)\n' "$name" "$status" \
        $(($(date +%s) - from)) "$limit" "$thought" | tee -a "$summary"
    pack
}

# What an exit status leaves to be asked again, or nothing.
missing() {
    case $2 in
    0 | 1) [ ! -e "$to/$1.json.part" ] || echo "ended early" ;;
    4) echo "something failed" ;;
    77) echo "no device" ;;
    124 | 137) echo "cut short by its time" ;;
    127 | 126) echo "its program is not there" ;;
    late) echo "not begun" ;;
    *) echo "exit status $2" ;;
    esac
}

verdict=0 alone=0
[ $# -ne 1 ] || alone=1
: >"$to/again"
for p in "$@"; do
    part "$p"
    [ "$status" = 0 ] || verdict=1
    why=$(missing "$p" "$status")
    if [ -n "$why" ]; then
        printf '  %-32s sh gpu/session.sh --output-dir DIR %s\n' "$p: $why" "$p" >>"$to/again"
    fi
done
if [ -s "$to/again" ]; then
    { echo "missing:" && cat "$to/again"; } | tee -a "$summary"
else
    echo "nothing is missing" | tee -a "$summary"
fi
rm "$to/again"
pack || verdict=4
rm -rf "$work"
exit $verdict
