#!/bin/sh
# session.sh -- what to ask of a machine with a device, in three calls of at most six minutes:
#
#   sh gpu/session.sh --output-dir DIR first     tiny checks, probes and speed, all checks, trainings
#   sh gpu/session.sh --output-dir DIR second    compute-sanitizer on a tiny run; PyTorch's AMP steps
#   sh gpu/session.sh --output-dir DIR third     transformers: trainings, and the same model in PyTorch
#
# In the top directory; gpu/build/mpsim-gpu (or MPSIM_GPU) is built elsewhere. A part that takes too long
# is stopped and leaves what it found. DIR then holds CALL.txt, all that was printed, and CALL.tar.gz,
# everything else: records, digests, traces, each part's own output.
set -u
usage() {
    echo "usage: $0 --output-dir DIR first|second|third" >&2
    exit 2
}
if [ $# -ne 3 ] || [ "$1" != --output-dir ]; then usage; fi
out=$2 call=$3
: "${MPSIM_GPU:=gpu/build/mpsim-gpu}" "${PYTHON:=python3}" "${SANITIZER:=compute-sanitizer}"
case $call in first | second | third) ;; *) usage ;; esac
mkdir -p "$out/$call" || exit 4

part() { # part NAME SECONDS COMMAND...
    name=$1 seconds=$2
    shift 2
    echo "== $name: $*"
    timeout -k 5 "$seconds" "$@" >"$out/$call/$name.txt" 2>&1
    status=$?
    tail -n 200 "$out/$call/$name.txt"
    echo "== $name: exit $status"
}

first() {
    part machine 10 nvidia-smi
    part tiny 30 "$MPSIM_GPU" --tiny --only checks --output "$out/first/tiny.json"
    part speed 60 "$MPSIM_GPU" --only probes --only speed --output "$out/first/speed.json"
    part checks 140 "$MPSIM_GPU" --only checks --output "$out/first/checks.json"
    part training 100 "$MPSIM_GPU" --only training --skip gpt --output "$out/first/training.json"
}

second() {
    part sanitizer 180 "$SANITIZER" "$MPSIM_GPU" --tiny --output "$out/second/sanitizer.json"
    part amp-mlp 150 "$PYTHON" data/record/train_amp_mlp.py --device cuda "$out/second/amp-mlp"
}

third() {
    part gpt 200 "$MPSIM_GPU" --only gpt --output "$out/third/gpt.json"
    for low in bf16 fp16; do
        part "train-gpt-$low" 60 "$PYTHON" data/record/train_gpt.py --device cuda --autocast $low \
            --steps 200 --batch 2 --record "$out/third/train-gpt-$low"
    done
}

$call 2>&1 | tee "$out/$call.txt"
tar -czf "$out/$call.tar.gz" -C "$out" "$call" && rm -rf "${out:?}/$call"
