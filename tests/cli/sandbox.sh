#!/bin/sh
# sandbox.sh -- every command inside the sandbox: over all kinds of operands and outputs it prints, writes and ends as without; and
# the sandbox is closed where it is said to be. (What is refused inside: tests/sandbox/t-sandbox.c.)
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
build=${MPSIM%/*}
old=$build/tests/support/oldkernel
data=$top/data
TMPDIR=$dir/tmp
export TMPDIR
mkdir "$TMPDIR" "$dir/work" && cd "$dir/work" || exit 99

run 0 --version && has '^sandbox '; ok $? "--version tells"
missing=
for c in $(turn formats info cast stat) $(turn diff merge calc dot attention mismatch) $(turn replay advise report scaler explain log) $(turn train memory plot verify); do
    run 0 "$c" --help=all && has '^      --sandbox  ' && has '^      --no-sandbox  ' || missing="$missing $c"
done
[ ! "$missing" ]; ok $? "every --help=all has the options:$missing"

# ---- where there is no such kernel ----
f=$data/digits-cnn/step_000001/rank_00000.safetensors
[ -e "$f" ] || f=$(find "$data/digits-cnn" -name '*.safetensors' | sort | head -n 1)
if [ -x "$old" ] && "$old" both true; then
    "$MPSIM" info --no-sandbox "$f" >"$dir/want" 2>&1
    for lacks in landlock seccomp both; do
        "$old" $lacks "$MPSIM" info "$f" >"$dir/out" 2>"$dir/err" && cmp -s "$dir/out" "$dir/want" && [ ! -s "$dir/err" ]
        ok $? "without $lacks: info goes on"
        "$old" $lacks "$MPSIM" info --sandbox "$f" >"$dir/out" 2>"$dir/err"
        [ $? -eq 2 ] && [ ! -s "$dir/out" ] && [ "$(wc -l <"$dir/err")" -eq 1 ] && has '^mpsim: info: --sandbox: this kernel, or this mpsim, has no ' err
        ok $? "without $lacks: --sandbox is refused"
    done
    "$old" both "$MPSIM" --version >"$dir/out" 2>"$dir/err" && has '^sandbox none'
    ok $? "without both: --version tells"
fi
if ! "$MPSIM" calc --sandbox add 1 2 >"$dir/out" 2>"$dir/err"; then
    has '^mpsim: calc: --sandbox: ' err && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "this kernel has none: $(cat "$dir/err")"
    finish
fi

# ---- the same inside and outside: output, errors, exit code, files in the folder o ----
one() { # one WISH STDIN VERB WORD...
    wish=$1 from=$2 verb=$3
    shift 3
    rm -rf o && mkdir o
    case $from in
    -) "$MPSIM" "$verb" "$wish" "$@" >"$dir/out" 2>"$dir/err" </dev/null ;;
    '|'*) cat "${from#|}" | "$MPSIM" "$verb" "$wish" "$@" >"$dir/out" 2>"$dir/err" ;;
    *) "$MPSIM" "$verb" "$wish" "$@" >"$dir/out" 2>"$dir/err" <"$from" 3<"$from" ;;
    esac
    echo "exit code $?" >>"$dir/out"
    find o -type f | sort | xargs cksum /dev/null >>"$dir/out"
}
both() { # both NAME CODE STDIN VERB WORD...
    name=$1 code=$2
    shift 2
    due || { ok 1 "$name" && return; }
    one --no-sandbox "$@"
    mv "$dir/out" "$dir/want" && mv "$dir/err" "$dir/want.err"
    one --sandbox "$@"
    grep -q "^exit code $code\$" "$dir/out" && cmp "$dir/want" "$dir/out" >>"$dir/err" 2>&1 && cmp "$dir/want.err" "$dir/err" && [ -z "$(ls "$TMPDIR")" ]
    ok $? "$name"
}

# ---- operands ----
recorded=$top/tests/trace/recorded
mkdir -p run/step_1 run/step_2 hub/blobs hub/snapshots/x elsewhere closed
cp "$f" run/step_1/rank_0.safetensors && cp "$f" run/step_2/rank_0.safetensors && cp "$f" a.safetensors && gzip -c "$f" >a.gz
ln -s ../a.safetensors elsewhere/link.safetensors && ln -s run linked && ln -s ../../elsewhere run/step_1/more
i=0
for file in "$recorded"/index/*; do
    i=$((i + 1))
    cp "$file" hub/blobs/$i && ln -s ../../blobs/$i "hub/snapshots/x/$(basename "$file")"
done
index=$(ls hub/snapshots/x/*.index.json)
cp "$index" hub/snapshots/x/odd-name
both "a file" 0 - info a.safetensors
turns 5
both "another way to it" 0 - info ./run/../a.safetensors
both "a symbolic link" 0 - stat -f e4m3 elsewhere/link.safetensors
both "a folder with a link to another" 0 - info run
rm run/step_1/more
both "a folder" 0 - stat --json run
both "a folder, with / and through a link" 0 - info linked/
cd run || exit 99
both "the current folder" 0 - info .
cd .. && rm -rf run/o
both "a snapshot of links" 0 - info -v hub/snapshots/x/
both "an index of links" 0 - stat "$index"
both "an index by another name" 0 - info hub/snapshots/x/odd-name
mkdir -p onnx && cp "$recorded"/types.onnx onnx/ && ln -s "$recorded"/types.onnx.data onnx/types.onnx.data
both "ONNX with data beside it, a link" 0 - stat onnx/types.onnx
both "FSDP" 0 - stat -f fp16 "$recorded/fsdp"
both "torch" 0 - info "$top/tests/trace/torch/torch-2.6.0/train.zip.pt"
both "packed" 0 - stat -f fp16 a.gz
both "standard input" 0 a.safetensors info -
both "/dev/stdin" 0 a.safetensors stat -f fp16 /dev/stdin
both "a pipe" 0 '|a.safetensors' info -
both "a packed pipe by /dev/stdin" 0 '|a.gz' stat -f fp16 /dev/stdin
both "/proc/self/fd" 0 a.safetensors info /proc/self/fd/3
both "what is not there" 4 - info a.safetensors nothing.npy
both "a device" 3 - info /dev/null
both "a damaged file, in a list" 5 - info --keep-going "$top/README.md" a.safetensors
mkfifo fifo
through() { # through COMMAND WORD...: a command with somebody who writes to the pipe, and waits for a reader already
    timeout 60 sh -c 'exec 9>"$1"; cat "$2" >z.npy; cat "$3" >&9' sh fifo "$recorded/../quantised/packed.safetensors" a.safetensors &
    sleep 0.2
    "$@"
    code=$?
    wait
    return $code
}
due && through "$MPSIM" info --no-sandbox fifo >"$dir/want" 2>&1 && through "$MPSIM" info fifo >"$dir/out" 2>&1 && cmp "$dir/want" "$dir/out" >"$dir/err"
ok $? "a named pipe"
printf 'x/(.*)=wgrad:\\1\n' >rules && cp rules mpsim-names.map && cp rules run/mpsim-names.map
both "rules of a file" 0 - info --map @rules a.safetensors
both "rules above" 0 - info run/step_1/rank_0.safetensors
rm mpsim-names.map run/mpsim-names.map

# ---- outputs ----
both "-o" 0 - info --json -o o/report a.safetensors
ln -s o/kept kept-link
both "-o through a link" 0 - info -o kept-link a.safetensors
both "-o replaces, in the current folder" 0 - info -o kept a.safetensors
both "-o of a device" 0 - stat -f fp16 -o /dev/null a.safetensors
both "-o to standard error" 0 - info -o /dev/stderr a.safetensors
both "-o into nothing" 4 - info -o none/x a.safetensors
both "-o a folder" 4 - info -o o a.safetensors
both "-o an input" 2 - info -o a.safetensors a.safetensors
TMPDIR=$dir/none both "no TMPDIR" 0 - info a.safetensors 2>/dev/null

# ---- every command ----
both "formats" 0 - formats e4m3
both "calc" 0 - calc add 1 2
both "cast to a file" 0 - cast -f fp16 -o o/x.safetensors a.safetensors
both "cast of a folder" 0 - cast -f bf16 -o o/two/ run
both "diff" 0 - diff run/step_1 run/step_2
both "stat --shard" 0 - stat --shard 1/1 -o o/part a.safetensors
"$MPSIM" stat --shard 1/1 -o part a.safetensors 2>/dev/null
both "merge" 0 - merge part
both "dot" 0 - dot -K 16 -M fma
{
    printf '\223NUMPY\1\0\166\0%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (32, 32), }"
    head -c 1024 /dev/zero
} >mask.npy
both "attention" 0 - attention -M fma --q act:fc1 --k weight:fc1.weight --v weight:fc1.weight --mask mask.npy -o o/report "$f"
both "mismatch" 0 - mismatch -a fma -b exact --hidden "$f" --hidden-name act:fc1 --head "$f" --head-name weight:fc1.weight -o o/report
both "advise" 0 - advise --policy-out o/policy -o o/report "$data/digits-cnn"
both "report" 0 - report -q -o o/report.html "$data/digits-cnn/step_000001"
both "replay" 0 - replay -P pytorch-amp-fp16 "$data/digits-cnn"
both "replay: a policy of a file" 0 - replay -P "$data/policies/fp32.yaml" --json -o o/report "$data/digits-cnn"
echo '1,0,0' >pattern
both "scaler: a pattern, a state" 0 - scaler -s torch --pattern @pattern --state-out o/state
"$MPSIM" scaler -s torch --pattern 1,0 --state-out state >/dev/null
both "scaler goes on" 0 - scaler --pattern @pattern --state-in state
printf 'step %d scale 65536 skipped 0\n' 1 2 3 4 5 >log
both "scaler --log" 0 - scaler --log log
both "log" 0 - log log
both "explain" 0 - explain 'Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0'
both "memory" 0 - memory -P pytorch-amp-fp16 --params 1M
set -- -P fp32 --width 8 --depth 1 --batch 8 --steps 2 -q
both "train" 0 - train "$@" --json -o o/report --digests o/digests --checkpoint o/point --trace o/trace
"$MPSIM" train "$@" -o /dev/null --digests digests --checkpoint point && "$MPSIM" train "$@" --write-run plan
both "train goes on" 0 - train "$@" --steps 3 --resume point --digests o/digests -o /dev/null
both "train: digests" 0 - train --run plan -q --check-digests digests -o /dev/null
both "verify --list" 0 - verify --list
if command -v gnuplot >/dev/null; then
    "$MPSIM" stat --json --histogram -f fp16 -o report.json a.safetensors
    both "plot" 0 - plot histogram --type svg -o o/figure report.json
fi

# ---- it is closed ----
turns 1
inside() { # inside WANT WORD...: what the kernel says of a process that waits for its input
    wanted=$1
    shift
    mkfifo wait
    "$MPSIM" "$@" - <wait >/dev/null 2>&1 &
    exec 9>wait
    [ "$wanted" = 2 ] || sleep 0.2
    for _ in $(seq 100); do
        grep -e '^Seccomp:' -e '^NoNewPrivs:' /proc/$!/status | tr -d '\n\t' >"$dir/out"
        has "Seccomp:$wanted\$" && break
        sleep 0.1
    done
    exec 9>&-
    wait $!
    rm -f wait
}
inside 2 info; has '^NoNewPrivs:1Seccomp:2$'; ok $? "info: closed"
inside 2 stat --json; has '^NoNewPrivs:1Seccomp:2$'; ok $? "stat: closed"
inside 0 info --no-sandbox; has '^NoNewPrivs:0Seccomp:0$'; ok $? "info --no-sandbox: open"
inside 0 log; has '^NoNewPrivs:0Seccomp:0$'; ok $? "log: open"
# A file that comes to be after the start was no operand that could be read.
late() { # late WISH...
    rm -f z.npy
    through "$MPSIM" info "$@" fifo z.npy >"$dir/out" 2>"$dir/err"
}
turns 5
due && late
[ $? -eq 4 ] && has '^mpsim: z.npy: cannot open: Permission denied' err; ok $? "what is named later is not read"
due && late --no-sandbox; ok $? "without, it is"
turns 1
mkfifo wait
"$MPSIM" info - <wait >/dev/null 2>&1 &
exec 9>wait
for _ in $(seq 400); do [ -n "$(ls "$TMPDIR")" ] && break; sleep 0.05; done
made=$(ls "$TMPDIR")
rights=$(sed -n 's/^Cap\(Inh\|Prm\|Eff\):[[:space:]]*0*//p' /proc/$!/status 2>/dev/null | tr -d '\n')
kill -TERM $!
wait $! 2>/dev/null
exec 9>&-
[ -n "$made" ] && [ -z "$(ls "$TMPDIR")" ]
ok $? "a signal removes the folder of temporary files"
case $rights in '' | 66) : ;; *) false ;; esac # as root files are read and written, whosever they are: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
ok $? "root gives up what else root may do: '$rights'"
finish
