#!/bin/sh
# dry-run.sh -- before a session with a device: every part of session.sh in an empty folder that has only what is carried,
# on a machine without a device.
#
#   sh gpu/dry-run.sh [PART...]        # in the top folder of a build; all parts without arguments
#
# The programs of `make -f gpu/device.mk build` are carried; each has to say in one line that there is no device (exit 77).
# Then stand-ins take their places, which the build's tests have: tests/gpu/NAME-host is NAME with its kernels on a CPU. They run
# tiny checks and small trainings; a part may take sixteen times its seconds. A program without a stand-in is run as it is. PYTHON asks
# the CPU, with few and small cases (--device cpu --quick). The environment has a search path of nvcc, the C compiler and Python, and
# nothing else.
# PYTHON=...: the Python, with torch; BUILD, HOSTS, MPSIM: where the programs, the stand-ins and mpsim are.
# Prints what is carried and how large it is, and a table: part, exit status, seconds, files that it left, its last line.
# Exit: 0: each part was done, or said that there is no device; 1: one failed; 2: a program is missing.
set -u
: "${BUILD:=gpu/build}" "${HOSTS:=tests/gpu}" "${MPSIM:=./mpsim}" "${PYTHON:=python3}" "${CUDA_HOME:=/usr/local/cuda}"
limit=67108864 # bytes that may be carried

for f in "$HOSTS/mpsim-gpu-host" "$HOSTS/mpsim-gpu-statistics-host" "$MPSIM"; do
    if [ ! -x "$f" ]; then
        echo "dry-run.sh: $f is not there: make $f" >&2
        exit 2
    fi
done
python=$(command -v "$PYTHON") || { echo "dry-run.sh: $PYTHON is not there" >&2; exit 2; }
hosts=$(cd "$HOSTS" && pwd)
dir=$(mktemp -d) || exit 4
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -p "$dir/top/gpu" "$dir/top/data" "$dir/top/python" "$dir/stand-ins" "$dir/home"

# ---- what is carried ----

# The programs, libraries and folders of the build that parts need; no objects.
carried() {
    find "$BUILD" -maxdepth 1 -type f -perm -u+x 2>/dev/null || echo "  no programs in $BUILD: make -f gpu/device.mk build" >&2
    for f in "$BUILD/traces" "$BUILD/python"; do
        [ ! -d "$f" ] || echo "$f"
    done
}
tar -cf - --exclude="$BUILD" gpu data/record data/digits python/cuda_check.py python/cuda_emulate.py python/src/mpsim/record.py | tar -xf - -C "$dir/top"
mkdir -p "$dir/top/gpu/build"
carried | while read -r f; do cp -r "$f" "$dir/top/gpu/build/"; done
echo "carried:"
(cd "$dir/top" && find gpu/build/* data/record gpu -maxdepth 0 -exec du -sb {} + | sed 's/^/  /')
bytes=$(du -sb "$dir/top" | cut -f1)
echo "  $bytes bytes of $limit"

# ---- stand-ins ----

stand_in() { # stand_in NAME: of the script on standard input
    cat >"$dir/stand-ins/$1"
    chmod +x "$dir/stand-ins/$1"
}
# The trainings of gpu/runs, but smaller and of two steps.
small_runs() {
    while read -r name options; do
        case $name in
        mlp*) small="--width 32 --batch 16" ;;
        cnn*) small="--width 4 --depth 1 --batch 4" ;;
        *) small="--width 32 --context 16 --depth 1 --batch 2" ;;
        esac
        # shellcheck disable=SC2086 # options
        MPSIM_POLICIES=data/policies "$MPSIM" train $options $small --steps 2 --write-run "$dir/runs/$name.run" >"$dir/said" 2>&1 ||
            sed "s/^/$name: /" "$dir/said"
    done <gpu/runs/list
}
mkdir "$dir/runs" && cp gpu/runs/list "$dir/runs/" && small_runs
printf '#!/bin/sh\nexec "%s/mpsim-gpu-host" --tiny "$@" --runs "%s/runs"\n' "$hosts" "$dir" | stand_in mpsim-gpu
printf '#!/bin/sh\nexec "%s/mpsim-gpu-statistics-host" --small --piece 1/26 "$@"\n' "$hosts" | stand_in mpsim-gpu-statistics
printf '#!/bin/sh\necho "no device"\n' | stand_in nvidia-smi
stand_in compute-sanitizer <<'X'
#!/bin/sh
# --tool NAME --error-exitcode N PROGRAM ARGUMENT...; variants of wgmma are slow on a CPU, and have a part of their own
shift 4
case $1 in
*/mpsim-gpu) exec "$@" --skip variant ;;
*) exec "$@" ;;
esac
X
# Of scripts that take --device cuda: the CPU, and --quick where they have it.
stand_in python-on-cpu <<X
#!/bin/sh
script=\$1
shift
quick=
if grep -q -e '"--quick"' "\$script"; then quick=--quick; fi
case " \$* " in
*" --device cuda "*) ;;
*) exec "$python" "\$script" "\$@" ;; # says that there is no device
esac
n=\$#
while [ \$n -gt 0 ]; do
    word=\$1
    shift
    [ "\$word" != cuda ] || word=cpu
    set -- "\$@" "\$word"
    n=\$((n - 1))
done
case " \$* " in *" --quick "*) quick= ;; esac
exec "$python" "\$script" \$quick "\$@"
X

# ---- programs without a device: one line, exit 77 ----

failed=0
echo "without a device:"
for f in "$dir"/top/gpu/build/mpsim-gpu*; do
    [ -e "$f" ] || continue
    (cd "$dir/top" && "$f" >"$dir/said" 2>&1 </dev/null)
    status=$?
    printf '  %-28s exit %-3s %s\n' "${f##*/}" $status "$(head -n 1 "$dir/said")"
    [ $status -eq 77 ] && [ "$(wc -l <"$dir/said")" -eq 1 ] || failed=1
    if [ -x "$hosts/${f##*/}-host" ] && [ ! -e "$dir/stand-ins/${f##*/}" ]; then
        printf '#!/bin/sh\nexec "%s" --tiny "$@"\n' "$hosts/${f##*/}-host" | stand_in "${f##*/}"
    elif [ ! -e "$dir/stand-ins/${f##*/}" ]; then
        cp "$f" "$dir/stand-ins/"
    fi
done
for f in "$dir"/top/gpu/build/*; do # what programs are not
    [ -e "$dir/stand-ins/${f##*/}" ] || ln -s "$f" "$dir/stand-ins/${f##*/}"
done

# ---- the parts ----

cd "$dir/top" || exit 4
sed -i -e 's/^most=590 /most=6000 /' -e 's/^    limit=$(field "$1" 3) /    limit=$((16 * $(field "$1" 3))) /' gpu/session.sh
[ $# -gt 0 ] || set -- all
began=$(date +%s)
env -i HOME="$dir/home" PATH="$dir/stand-ins:${python%/*}:/usr/bin:/bin:$CUDA_HOME/bin" BUILD="$dir/stand-ins" \
    MPSIM_CUDA="$dir/top/gpu/build/libmpsim-cuda.so" PYTHON="$dir/stand-ins/python-on-cpu" SANITIZER=compute-sanitizer \
    sh gpu/session.sh --output-dir "$dir/out" "$@" >"$dir/log" 2>&1
seconds=$(($(date +%s) - began))
if ! cat "$dir"/out/session.tar.gz* 2>/dev/null | tar -xzf - -C "$dir"; then
    cat "$dir/log"
    exit 1
fi
echo "parts, in $seconds s:"
while read -r part word status rest; do
    [ "$word" = exit ] || continue
    said=$(tail -n 1 "$dir/session/$part.txt" | cut -c 1-100)
    files=$(find "$dir/session" -path "$dir/session/$part*" -type f ! -name '*.txt' | wc -l)
    printf '  %-20s exit %-3s %4s s  %3d files  %s\n' "$part" "$status" "${rest%% *}" "$files" "$said"
    case $status in 0 | 77) ;; *) failed=1 && tail -n 5 "$dir/session/$part.txt" | sed 's/^/      /' ;; esac
done <"$dir/session/summary.txt"
sed -n '/^missing/,$p; /is left out/p; /not begun/p' "$dir/session/summary.txt" | grep -v -e ': no device ' -e '^missing' | sed 's/^/  /'
! grep -q 'not begun' "$dir/session/summary.txt" || failed=1
echo "archive: $(find "$dir/out" -type f | wc -l) files, $(du -cb "$dir"/out/* | tail -n 1 | cut -f1) bytes"
exit $failed
