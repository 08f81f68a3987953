#!/bin/sh
# cross.sh HOST FOLDER [TEST...]: mpsim for another machine, built and tested on this one, in FOLDER. Debian or like it.
#
#   HOST             packages of this machine
#   i686-linux-gnu   gcc-i686-linux-gnu                          32 bits
#   s390x-linux-gnu  gcc-s390x-linux-gnu qemu-user-static        the other byte order
#   aarch64-linux-gnu  gcc-aarch64-linux-gnu qemu-user-static    NEON, another floating-point environment
#
# The libraries of HOST are fetched by apt into FOLDER/root; nothing is installed and no package of this machine is touched.
# Then: configure and make without a warning, mpsim verify, same.sh against the mpsim of this machine (MPSIM, as built in
# the source tree), and the unit tests that are named, as trace/t-npy (default: those that read and write files; all: all).
# A source tree in which configure has run cannot be built elsewhere: a clone can. CCACHE=ccache spares time.
set -eu
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d' >&2; exit 2; }
host=$1 source=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
shift 2
root=$folder/root
emulator=
case $host in
i686-*) machine=i386 triplet=i386-linux-gnu ;;
s390x-*) machine=s390x triplet=$host emulator="qemu-s390x-static -L $root" ;;
aarch64-*) machine=arm64 triplet=$host emulator="qemu-aarch64-static -L $root" ;;
*) echo "cross.sh: HOST is i686-linux-gnu, s390x-linux-gnu or aarch64-linux-gnu, not $host" >&2; exit 2 ;;
esac

# ---- libraries ----
if [ ! -e "$root/complete" ]; then
    state=$folder/apt
    mkdir -p "$root" "$state/lists/partial" "$state/cache/archives/partial"
    : >"$state/status"
    set -- "$@" --
    apt() {
        apt-get -qq -o APT::Architecture=$machine -o APT::Architectures::=$machine -o Dir::State="$state" \
            -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" -o Debug::NoLocking=1 "$@"
    }
    apt update || echo "cross.sh: apt has not all lists; what follows may do" >&2
    apt install -y --no-install-recommends --download-only libc6-dev libgcc-12-dev libjansson-dev libzip-dev libyaml-dev \
        zlib1g-dev libarchive-dev libmpfr-dev check
    for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    find "$root" -type l -lname '/*' | while read -r link; do ln -snf "$root$(readlink "$link")" "$link"; done
    while [ "$1" != -- ]; do set -- "$@" "$1"; shift; done
    shift
    touch "$root/complete"
fi

# ---- build ----
# Programs of i386 run here, with their own loader and libraries.
flags=
[ $machine != i386 ] || flags="-Wl,-dynamic-linker,$root/lib/ld-linux.so.2 -Wl,--disable-new-dtags \
-Wl,-rpath,$root/lib/$triplet:$root/usr/lib/$triplet"
cd "$folder"
[ -e Makefile ] || PKG_CONFIG_LIBDIR=$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
    "$source/configure" -q --host="$host" CC="${CCACHE:+$CCACHE }$host-gcc --sysroot=$root" CXX=no LDFLAGS="$flags"
make mpsim WARN_CFLAGS='-Wall -Wextra -Wconversion -Werror'
program=$folder/mpsim
if [ -n "$emulator" ]; then
    program=$folder/mpsim-emulated
    printf '#!/bin/sh\nexec %s %s/mpsim "$@"\n' "$emulator" "$folder" >"$program"
    chmod +x "$program"
fi

# ---- tests ----
failed=0
"$program" verify >verify.txt || failed=1
grep ' comparisons in ' verify.txt || failed=1
MPSIM_SRCDIR=$source sh "$source/tests/wide/same.sh" "${MPSIM:-$source/mpsim}" "$program" || failed=1
[ $# -gt 0 ] || set -- base/t-env digest/t-digest quant/t-form quant/t-layout quant/t-tiles quant/t-written round/t-golden \
    trace/t-codes trace/t-gguf trace/t-llmc trace/t-npy trace/t-npz trace/t-parts trace/t-pickle trace/t-quantised \
    trace/t-recorded trace/t-safetensors trace/t-stream trace/t-torch trace/t-trace trace/t-walked trace/t-writer \
    trace/t-zipdir train/t-digests
if [ "$1" = all ]; then
    tests=$(make -pn 2>/dev/null | sed -n 's/^\(unit_tests\|mpfr_tests\) = //p' | tr ' ' '\n' | sort -u | tr '\n' ' ')
else
    tests=$(printf 'tests/%s ' "$@")
fi
# An emulator is slow, and its memory counts; a test that runs the program must run it there, too.
CK_TIMEOUT_MULTIPLIER=20 make -k check WARN_CFLAGS="-Wall -Wextra -Werror" TESTS_ENVIRONMENT="MPSIM=$program" LOG_COMPILER="$emulator" \
    TESTS="$tests" check_PROGRAMS="$tests" || failed=1
exit $failed
