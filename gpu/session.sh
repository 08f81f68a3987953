#!/bin/sh
# session.sh -- what to ask of a machine with a device, in one call of ten minutes at most:
#
#   sh gpu/session.sh list                           the parts, their seconds and commands; asks nothing
#   sh gpu/session.sh --output-dir DIR all           every part of the table below, from the first line to the last
#   sh gpu/session.sh --output-dir DIR PART...       these parts alone; a single one has all the time
#
# Run it in the top folder; the programs in gpu/build are built elsewhere. Each part has a process and a time of its own;
# within mpsim-gpu each check, probe, run and row of speed has, too. Each part's output, records, digests and traces
# come into DIR/session.tar.gz, which is written anew after each part, and every 20 seconds within one: whenever this
# script is killed, an archive of what was found is there. An archive of more than 15 MiB goes on in session.tar.gz.2 to
# session.tar.gz.4 (`cat DIR/session.tar.gz* | tar xz` reads all); what does not fit is left out, with a line that says
# so. SHA256SUMS has a digest of each file, for data/gpu/take.sh. summary.txt has the time of each part; at its end it lists what is missing, with the commands that ask for it.
# Exit: 0: all parts were run and agree; 1: one differs, failed or is missing; 2: usage; 4: DIR cannot be written.
set -u

# A part is a line: name, way, seconds it may take, seconds it is thought to take (on an H200 beside 16 processors),
# command. Behind a line that begins with "#" is what the following parts have in common.
#
# Ways: `timed`: nothing runs beside it, since it measures times. `beside`: it runs beside the parts that follow, to the
# next `timed` or `beside`. `-`: it waits for nothing and the next part waits for it.
#
# Words of a command: GPU: mpsim-gpu, with a record TO/NAME.json; STATISTICS: mpsim-gpu-statistics, likewise; BUILD: the
# folder of programs (gpu/build); PYTHON; SANITIZER: compute-sanitizer; TO: the folder of results; LIMIT: ten seconds
# less than the part may take; TRACES: mpsim's trainings, if data/record/device/traces.sh has written them to BUILD/traces.
#
# Add a part: a line here, with the reason for its seconds in the commit or beside the program; `all` asks from the top,
# so the place is the value. Its program exits with 0, 1 (something differs), 4 (trouble) or 77 (no device).
table() {
    cat <<'PARTS'
# no device has answered these
machine     -       5   1  nvidia-smi -q
products    beside 70  35  PYTHON data/record/ask_device.py --device cuda --of multiplications --jobs 5 --total LIMIT --output-dir TO/products
functions   -      60  35  BUILD/mpsim-gpu-functions --output TO/functions.json --tables TO/functions.tables
attention   beside 80  35  PYTHON data/record/ask_device.py --device cuda --of raw --total LIMIT --output-dir TO/attention
cvt         -      30   9  GPU --only cvt
memory      -      30   6  GPU --only memory
orders      -      20   2  GPU --only orders
variants    -      45  12  GPU --only variant
speed       timed  60  30  GPU --only speed
emulate     timed  90  60  PYTHON python/cuda_emulate.py
model       -      60  20  PYTHON data/judge/model.py record TO/model --device cuda
beside      timed 110  55  PYTHON data/record/ask_device.py --device cuda --modules gpu/validation/speed/beside --total LIMIT --output-dir TO/beside multiply heads layers updates
# an H200 answered these, but their logs are not kept
statistics  timed  45  29  STATISTICS
watch       timed  35  12  PYTHON python/cuda_check.py --quick --output TO/watch.json
memcheck    -      60  25  SANITIZER --tool memcheck --error-exitcode 9 GPU --one-process --tiny --skip cvt --skip variant
memcheck-variants - 40 15  SANITIZER --tool memcheck --error-exitcode 9 GPU --one-process --tiny --only variant
racecheck   -      35  14  SANITIZER --tool racecheck --error-exitcode 9 GPU --one-process --tiny --only gpt-fp8
memcheck-statistics - 40 20 SANITIZER --tool memcheck --error-exitcode 9 STATISTICS --small --piece 1/4
racecheck-statistics - 50 30 SANITIZER --tool racecheck --error-exitcode 9 STATISTICS --small --piece 1/8
# an H200 answered these on 26 November 2026
pytorch     beside 80  45  PYTHON data/record/ask_device.py --device cuda --of first --jobs 5 --total LIMIT TRACES --output-dir TO/pytorch
checks      -      35   7  GPU --only checks --skip wgmma --skip cvt --skip memory --skip variant
wgmma       -      30   3  GPU --only wgmma --skip speed --skip variant
probes      -      15   1  GPU --only probes
training    -      60  40  GPU --only training --skip fp8 --skip gpt
amp         beside 25  20  PYTHON data/record/train_amp_mlp.py --device cuda TO/amp
fp8         -      35  16  GPU --only fp8 --skip gpt --skip checks --skip speed
gpt         -      95  73  GPU --only gpt
PARTS
}
list() {
    table | grep -v '^#'
}
most=590         # seconds for all of it
piece=15728640   # bytes of an archive's piece, of which there are four
: "${BUILD:=gpu/build}"
: "${MPSIM_GPU:=$BUILD/mpsim-gpu}" "${STATISTICS:=$BUILD/mpsim-gpu-statistics}" "${PYTHON:=python3}"
: "${MPSIM_CUDA:=$PWD/$BUILD/libmpsim-cuda.so}" # of the parts `emulate` and `watch`, which need the package mpsim, too (pip install --target gpu/build/python ./python)
export MPSIM_CUDA
if [ -d "$BUILD/python" ]; then # the package, installed there
    PYTHONPATH=$(cd "$BUILD/python" && pwd)${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
fi

field() { # field PART NUMBER: of its line
    list | awk -v name="$1" -v field="$2" '$1 == name { print $field }'
}

usage() {
    echo "usage: $0 list | --output-dir DIR all|PART..." >&2
    echo "parts: $(list | awk '{ printf "%s%s", sep, $1; sep = " " }')" >&2
    exit 2
}

# The parts for people, and how long the calls last that ask all of them.
show() {
    echo "part                 at most  thought  way     command"
    table | awk -v most="$most" '
        /^#/ { print; next }
        { at = match($0, /[0-9] +[A-Za-z]/) + RLENGTH - 1 # the command, as it is
          printf "%-20s %5d s  %5d s  %-7s %s\n", $1, $3, $4, $2, substr($0, at); all += $4 }
        $2 == "beside" { others += $4 }
        END { printf "all are thought to take %d s, of which %d s pass beside others; %d s is the limit\n", all, others, most }'
}
if [ "$*" = list ] || [ "$*" = --help ]; then
    [ "$1" = list ] || sed -n '/^# session/,/^set/{/^set/d;s/^# \{0,1\}//p;}' "$0"
    show
    exit 0
fi
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
: "${SANITIZER:=$(find_sanitizer)}"

mkdir -p "$out" && work=$(mktemp -d) && mkdir "$work/session" "$work/pieces" "$work/status" || exit 4
to=$work/session
summary=$to/summary.txt
began=$(date +%s)

# ---- the archive ----

# A digest of each file as it is now, by which data/gpu/take.sh sees that a copy is whole.
write_sums() {
    (cd "$to" && find . -type f ! -name SHA256SUMS | sed 's|^\./||' | sort | xargs -n 50 sha256sum >SHA256SUMS)
}

compress() {
    write_sums
    rm -f "$work"/pieces/*
    tar -cf - -C "$work" session | gzip -1 | split -b "$piece" -a 1 - "$work/pieces/p"
}

# A file that is too large for the four pieces: the largest one.
leave_out_largest() {
    largest=$(find "$to" -type f -exec ls -ln {} + | sort -k5,5n | tail -n 1 | sed "s|.* $work/session/||")
    printf '%s is left out: the archive would be too large\n' "$largest" | tee -a "$summary"
    rm "$to/$largest"
}

pack() {
    compress || return 1
    while [ -e "$work/pieces/pe" ]; do
        leave_out_largest
        compress || return 1
    done
    number=0
    for p in "$work"/pieces/p?; do
        number=$((number + 1)) name=session.tar.gz
        [ $number = 1 ] || name=$name.$number
        cp "$p" "$out/.new" && mv "$out/.new" "$out/$name" || return 1
    done
}

# ---- a part: a process of its own, whose child is the command ----

traces='/^TRACES$/d'
[ ! -d "$BUILD/traces" ] || traces="s|^TRACES\$|--traces=$BUILD/traces|"

# The words of a part's command, one a line. limit: its seconds.
command_of() {
    list | awk -v name="$1" '$1 == name { for (i = 5; i <= NF; i++) print $i }' |
        sed "s|^TO/|$to/|; s|^LIMIT\$|$((limit - 10))|; s|^PYTHON\$|$PYTHON|; $traces; s|^SANITIZER\$|$SANITIZER|
            s|^BUILD/|$BUILD/|; s|^GPU\$|$MPSIM_GPU|; s|^STATISTICS\$|$STATISTICS|"
    case "$(list | grep "^$1 ") " in *" GPU "* | *" STATISTICS "*) printf '%s\n' --output "$to/$1.json" ;; esac
}

# part NAME: its output in NAME.txt, its exit status in status/NAME, its line in the summary.
part() {
    limit=$(field "$1" 3) from=$(date +%s) name=$1 process=
    left=$((most - from + began))
    [ "$alone" = 0 ] || limit=$left
    [ "$left" -lt "$limit" ] && limit=$left
    if [ "$limit" -lt 3 ]; then
        echo late >"$work/status/$name"
        printf '%-20s not begun: the time was over\n' "$name" | tee -a "$summary"
        return
    fi
    # a command's words hold no white space but in the paths of the environment
    IFS='
'
    # shellcheck disable=SC2046 # words
    set -- $(command_of "$name")
    unset IFS
    echo "== $name: $*"
    trap '[ -z "$process" ] || kill "$process" 2>/dev/null; exit 1' HUP INT TERM
    timeout -k 5 "$limit" "$@" >"$to/$name.txt" 2>&1 </dev/null &
    process=$!
    wait "$process"
    status=$?
    echo $status >"$work/status/$name"
    tail -n 200 "$to/$name.txt"
    printf '%-20s exit %-3s  %3d s (at most %d, thought to take %d)\n' "$name" "$status" \
        $(($(date +%s) - from)) "$limit" "$(field "$name" 4)" | tee -a "$summary"
}

# What an exit status leaves to be asked again, or nothing. 9: a sanitizer has found errors.
missing() {
    case $2 in
    0 | 1 | 9) [ ! -e "$to/$1.json.part" ] || echo "ended early" ;;
    4) echo "something failed" ;;
    77) echo "no device" ;;
    124 | 137) echo "cut short by its time" ;;
    127 | 126) echo "its program is not there" ;;
    late) echo "not begun" ;;
    *) echo "exit status $2" ;;
    esac
}

# ---- all parts ----

running="" beside="" # processes of parts; beside: of the one that others run beside
trap 'for p in $running $beside; do kill "$p" 2>/dev/null && wait "$p"; done; pack; rm -rf "$work"; exit 1' HUP INT TERM

# finish PROCESS: wait for its end; the archive is written anew.
finish() {
    ticks=0
    while kill -0 "$1" 2>/dev/null; do
        sleep 0.1
        ticks=$((ticks + 1))
        [ $((ticks % 200)) -ne 0 ] || pack
    done
    wait "$1"
    pack
}

finish_beside() {
    [ -z "$beside" ] || finish "$beside"
    beside=
}

# begin PART: as its way says.
begin() {
    way=$(field "$1" 2)
    [ "$way" = - ] || finish_beside
    part "$1" &
    if [ "$way" = beside ]; then
        beside=$!
        return
    fi
    running=$!
    finish "$running"
    running=
}

alone=0
[ $# -ne 1 ] || alone=1
for name in "$@"; do
    begin "$name"
done
finish_beside

verdict=0
: >"$work/again"
for name in "$@"; do
    status=$(cat "$work/status/$name")
    [ "$status" = 0 ] || verdict=1
    why=$(missing "$name" "$status")
    if [ -n "$why" ]; then
        printf '  %-32s sh gpu/session.sh --output-dir DIR %s\n' "$name: $why" "$name" >>"$work/again"
    fi
done
if [ -s "$work/again" ]; then
    { echo "missing:" && cat "$work/again"; } | tee -a "$summary"
else
    echo "nothing is missing" | tee -a "$summary"
fi
pack || verdict=4
rm -rf "$work"
exit $verdict
