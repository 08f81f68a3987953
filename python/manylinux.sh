#!/bin/sh
# manylinux.sh -- make manylinux: a wheel that runs with glibc 2.28 or newer.
#
# Usage: manylinux.sh SRCDIR FOLDER, from anywhere. FOLDER is kept: a second run builds what is missing. The compiler is
# zig's clang, which links against any older glibc (ziglang of PyPI, in a virtual environment in FOLDER); jansson, libzip,
# libyaml, zlib, libarchive and what it reads with are compiled from Debian's source packages, statically, so that the
# wheel has no library but libmpsim. Needs a line of deb-src, python3 with venv, cmake, and what a build of mpsim needs.
# ZIG_TARGET is another target, as aarch64-linux-gnu.2.28; its tests run there, not here.
set -eu
srcdir=$(cd "$1" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
target=${ZIG_TARGET:-x86_64-linux-gnu.2.28}
jobs=$(nproc)
prefix=$dir/prefix
packages="zlib bzip2 xz-utils lz4 libzstd jansson libyaml libzip libarchive"
die() {
    echo "manylinux.sh: $*" >&2
    exit 1
}
mkdir -p "$dir/source" "$dir/bin" "$prefix"
[ -x "$dir/env/bin/python" ] || python3 -m venv "$dir/env"
"$dir/env/bin/python" -c 'import ziglang, auditwheel' 2>/dev/null || "$dir/env/bin/pip" -q install ziglang auditwheel
for tool in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$dir/env/bin/python" $tool >"$dir/bin/$tool"
done
# zig takes no files, libraries and folders among the words for the linker
cat >"$dir/bin/cc" <<EOF
#!/bin/sh
n=\$#
while [ \$n -gt 0 ]; do
    case \$1 in
    -Wl,[!-]*.a | -Wl,-l* | -Wl,-L*) set -- "\$@" "\${1#-Wl,}" ;;
    *) set -- "\$@" "\$1" ;;
    esac
    shift
    n=\$((n - 1))
done
exec "$dir/env/bin/python" -m ziglang cc -target $target "\$@"
EOF
chmod +x "$dir"/bin/*
export CC="$dir/bin/cc" AR="$dir/bin/ar" RANLIB="$dir/bin/ranlib"
flags='-O2 -g0 -fPIC -fvisibility=hidden -fno-sanitize=undefined'

# ---- libraries ----

fetch() {
    [ -d "$dir/source/$1" ] && return
    (cd "$dir/source" && mkdir -p "$1.tmp" && cd "$1.tmp" && apt-get -q source "$1" >log 2>&1) ||
        die "no source of $1: is there a line of deb-src? $(tail -n 1 "$dir/source/$1.tmp/log")"
    mv "$dir/source/$1.tmp" "$dir/source/$1"
}
autotools() { ./configure --host="${target%%.*}" --prefix="$prefix" --disable-shared --enable-static CFLAGS="$flags" "$@" && make -j"$jobs" && make install; }
cmaked() { cmake -S . -B out -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" \
    -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
    -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -DCMAKE_C_COMPILER="$CC" -DCMAKE_AR="$AR" -DCMAKE_RANLIB="$RANLIB" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_BUILD_TYPE=None -DBUILD_SHARED_LIBS=OFF "$@" && cmake --build out -j "$jobs" && cmake --install out; }
export CPPFLAGS="-I$prefix/include" LDFLAGS="-L$prefix/lib" PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
build() {
    case $1 in
    zlib) CFLAGS="$flags" ./configure --static --prefix="$prefix" && make -j"$jobs" libz.a && make install ;;
    bzip2) make -j"$jobs" libbz2.a CC="$CC" AR="$AR" RANLIB="$RANLIB" CFLAGS="$flags -D_FILE_OFFSET_BITS=64" &&
        mkdir -p "$prefix/lib" "$prefix/include" && cp libbz2.a "$prefix/lib" && cp bzlib.h "$prefix/include" ;;
    xz-utils) autotools --disable-xz --disable-xzdec --disable-lzmadec --disable-lzmainfo --disable-scripts --disable-doc --disable-nls ;;
    lz4) make -C lib -j"$jobs" liblz4.a CC="$CC" AR="$AR" CFLAGS="$flags" && cp lib/liblz4.a "$prefix/lib" &&
        cp lib/lz4.h lib/lz4hc.h lib/lz4frame.h "$prefix/include" ;;
    libzstd) make -C lib -j"$jobs" libzstd.a CC="$CC" AR="$AR" CFLAGS="$flags" ZSTD_LIB_COMPRESSION=0 ZSTD_LIB_DICTBUILDER=0 \
        ZSTD_LIB_DEPRECATED=0 ZSTD_LEGACY_SUPPORT=0 ZSTD_NO_ASM=1 && cp lib/libzstd.a "$prefix/lib" && cp lib/zstd.h lib/zstd_errors.h "$prefix/include" ;;
    jansson) cmaked -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON ;;
    libyaml) cmaked -DBUILD_TESTING=OFF ;;
    libzip) cmaked -DENABLE_COMMONCRYPTO=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_WINDOWS_CRYPTO=OFF \
        -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF ;;
    libarchive) autoreconf -f -i && autotools --without-xml2 --without-expat --without-openssl --without-nettle --without-mbedtls --without-cng \
        --without-iconv --without-libb2 --disable-acl --disable-xattr --disable-bsdtar --disable-bsdcat --disable-bsdcpio ;;
    esac
}
for package in $packages; do
    [ -f "$dir/source/$package.done" ] && continue
    fetch "$package"
    echo "manylinux.sh: $package"
    mkdir -p "$dir/licences" && cp "$dir/source/$package"/*/debian/copyright "$dir/licences/$package"
    (cd "$dir/source/$package"/*/ && build "$package") >"$dir/source/$package.log" 2>&1 ||
        die "$package does not build: $(tail -n 3 "$dir/source/$package.log")"
    touch "$dir/source/$package.done"
done

# ---- mpsim: a copy of the sources, since a configured tree cannot have a build folder beside ----

copy=$dir/mpsim
mkdir -p "$copy" "$dir/build" "$dir/wheel"
if [ -e "$srcdir/.git" ]; then
    (cd "$srcdir" && git ls-files -z | xargs -0 cp -u --parents --preserve=timestamps -t "$copy")
else
    cp -ru "$srcdir/." "$copy"
fi
if [ ! -f "$dir/build/config.status" ]; then
    (cd "$copy" && mkdir -p build-aux && autoreconf -i -f) >"$dir/autoreconf.log" 2>&1 || die "autoreconf fails: $dir/autoreconf.log"
    (cd "$dir/build" && "$copy/configure" -q CFLAGS="-O2 -fno-sanitize=undefined" --without-mpfr --without-check \
        YAML_CFLAGS="-I$prefix/include -DYAML_DECLARE_STATIC" YAML_LIBS=-lyaml \
        LIBARCHIVE_LIBS="-larchive -llzma -lzstd -llz4 -lbz2 -lz") >"$dir/configure.log" 2>&1 ||
        die "configure fails: $dir/configure.log: $(tail -n 1 "$dir/configure.log")"
fi
make -C "$dir/build" -j"$jobs" >"$dir/make.log" 2>&1 || die "make fails: $dir/make.log: $(tail -n 1 "$dir/make.log")"
rm -f "$dir"/wheel/*.whl
(cd "$dir/wheel" && MPSIM_BUILD="$dir/build" MPSIM_LICENCES="$dir/licences" PYTHONPATH="$copy/python/backend" \
    python3 -B -c 'import mpsim_backend; print(mpsim_backend.build_wheel("."))')
wheel=$(ls "$dir"/wheel/*.whl)
"$dir/env/bin/auditwheel" show "$wheel"
echo "$wheel: $(wc -c <"$wheel") bytes"
