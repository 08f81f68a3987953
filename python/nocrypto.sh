#!/bin/sh
# nocrypto.sh -- a wheel's libzip without OpenSSL, which it needs for encrypted archives alone and which is as large as
# all the rest.
#
# Usage: nocrypto.sh PROGRAM FOLDER; CC is the C compiler. Where the libzip of PROGRAM needs libcrypto, FOLDER gets a copy
# that asks for another library of the same length of name, and that library: the functions that libzip would call, each of
# which says that it has failed. No password is ever given to libzip, so that it calls none.
set -eu
program=$1 folder=$2
library=$(ldd "$program" | awk '$1 ~ /^libzip\.so/ { print $3 }')
crypto=$(ldd "${library:-$program}" | awk '$1 ~ /^libcrypto\.so/ { print $1 }')
[ "$library" ] && [ "$crypto" ] || exit 0
stand_in=$(echo "$crypto" | sed 's/^libcrypto/libnocryp/')
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
nm -D --undefined-only "$library" | sed -n 's/.* U \([A-Za-z0-9_]*\)@\(OPENSSL_[0-9.]*\)$/\1 \2/p' >"$dir/wanted"
[ "$(cut -d ' ' -f 2 "$dir/wanted" | sort -u | wc -l)" = 1 ] || exit 0 # another kind of libcrypto: as it is
sed 's/ .*/;/; s/^/    /' "$dir/wanted" | sed "1i $(sed -n '1s/.* //p' "$dir/wanted") {\nglobal:" | sed '$a local: *;\n};' >"$dir/map"
sed 's/\([^ ]*\) .*/long \1(void);\nlong \1(void) { return 0; }/' "$dir/wanted" >"$dir/none.c"
${CC:-cc} -O2 -fPIC -shared -nostdlib -s -Wl,-soname,"$stand_in" -Wl,--version-script="$dir/map" -o "$folder/$stand_in" "$dir/none.c"
LC_ALL=C sed "s/$crypto/$stand_in/g" "$library" >"$folder/$(basename "$(ldd "$program" | awk '$1 ~ /^libzip\.so/ { print $1 }')")"
