#!/bin/sh
# take.sh -- the results of a session (the folder in the archive of gpu/session.sh) put in their places, with a digest of each file:
#
#   sh data/gpu/take.sh SESSION [DATA]    DATA: where gpu/ and vectors/ are; our own folder data if it is not given
#   sh data/gpu/take.sh --sums FOLDER     files of FOLDER that have no digest in its SHA256SUMS get one
#
# The copy is compared with SHA256SUMS of the session first, and nothing that lies there already is replaced. NAME is the device and the
# day of the records, DEVICE the device: nvidia-h200-2026-11-26, nvidia-h200.
# Exit: 0; 1: a file is not what the session wrote, or another one is in its place; 2: usage; 4: something cannot be written.
set -u
LC_ALL=C
export LC_ALL

# What is taken, and where to: a pattern, a place below DATA (@: the name of the file, .part taken off).
places() {
    cat <<'PLACES'
*.json                gpu/NAME-@
*.json.part           gpu/NAME-@
*.digests             gpu/NAME-@
memcheck*.txt         gpu/NAME-@
racecheck*.txt        gpu/NAME-@
*.tables              gpu/NAME-@
beside/*.*json        gpu/NAME-beside-@
pytorch/*.*json       vectors/device/DEVICE-torch-VERSION/@
products/*.ndjson     vectors/device/DEVICE-torch-VERSION/@
products/manifest.json  vectors/device/DEVICE-torch-VERSION/manifest-products.json
attention/*.ndjson    vectors/device/DEVICE-torch-VERSION/@
attention/manifest.json vectors/device/DEVICE-torch-VERSION/manifest-attention.json
PLACES
}

fail() { # fail STATUS WORD...
    status=$1
    shift
    echo "take.sh: $*" >&2
    exit "$status"
}

# ---- digests: README.md, scripts, .tsv and answers.txt are no records ----
records_in() {
    find "$1" -maxdepth 1 -type f -name '[!.]*.*' ! -name README.md ! -name '*.sh' ! -name '*.tsv' ! -name answers.txt | sed 's|.*/||' | sort
}
add_sums() {
    list=$1/SHA256SUMS
    [ -e "$list" ] || : >"$list" || exit 4
    for file in $(records_in "$1"); do
        sum=$(sha256sum <"$1/$file" | sed 's/ .*//')
        old=$(awk -v file="$file" '$2 == file { print $1 }' "$list")
        [ -z "$old" ] || [ "$old" = "$sum" ] || fail 1 "$1/$file: SHA256SUMS has another digest"
        [ "$old" ] || echo "$sum  $file" >>"$list" || exit 4
    done
    sort -k 2 -o "$list" "$list" || exit 4
}

case ${1-} in
--sums)
    if [ $# -ne 2 ] || [ ! -d "$2" ]; then fail 2 "usage: $0 --sums FOLDER"; fi
    add_sums "$2"
    exit 0
    ;;
esac
if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -d "$1" ]; then fail 2 "usage: $0 SESSION [DATA] | --sums FOLDER"; fi
session=$1
data=${2-$(dirname "$0")/..}

# ---- what came is what was written ----
if [ -f "$session/SHA256SUMS" ]; then
    (cd "$session" && sha256sum -c --quiet SHA256SUMS) >&2 || fail 1 "$session is not what the session wrote"
else
    echo "take.sh: $session has no SHA256SUMS: whether its files are whole is not known" >&2
fi

# ---- names ----
word_of() { # word_of KEY FILE: the first text of that key
    sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p" "$2" | head -n 1
}
device='' day=''
for file in "$session"/*.json "$session"/*.json.part; do
    [ -f "$file" ] || continue
    device=$(word_of device "$file" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9\n' -) day=$(word_of date "$file" | sed 's/T.*//')
    [ -z "$device" ] || [ -z "$day" ] || break
done
if [ -z "$device" ] || [ -z "$day" ]; then fail 1 "no record of $session has a device and a date"; fi
version=none
for file in "$session"/attention/manifest.json "$session"/p*/manifest.json; do
    [ ! -f "$file" ] || version=$(word_of torch "$file" | sed 's/+.*//')
done
answers=$device-torch-$version
[ ! -d "$data/vectors/device/$answers" ] || answers=$answers-$day

# ---- copies: the plan has a line for each file, a tab between its two paths ----
plan=$(mktemp) && trap 'rm -f "$plan"' EXIT || exit 4
tab=$(printf '\t')
places | while read -r pattern place; do
    for file in "$session"/$pattern; do
        [ -f "$file" ] || continue
        name=$(basename "$file" .part)
        printf '%s\t%s/%s\n' "$file" "$data" "$(echo "$place" | sed "s|NAME|$device-$day|; s|DEVICE-torch-VERSION|$answers|; s|@|$name|")"
    done
done >"$plan"
[ -s "$plan" ] || fail 1 "$session has nothing to take"
while IFS=$tab read -r file to; do
    if [ -e "$to" ] && ! cmp -s "$file" "$to"; then fail 1 "$to is there already, and another one"; fi
done <"$plan" || exit 1
while IFS=$tab read -r file to; do
    mkdir -p "$(dirname "$to")" && cp "$file" "$to" || fail 4 "$to: cannot be written"
    echo "$to"
done <"$plan" || exit 4
sed "s/.*$tab//; s|/[^/]*\$||" "$plan" | sort -u | while read -r folder; do
    add_sums "$folder" || exit
done || exit
find "$session" -type f ! -name SHA256SUMS | sort | while read -r file; do
    cut -f 1 "$plan" | grep -qxF "$file" || echo "not taken: $file"
done
