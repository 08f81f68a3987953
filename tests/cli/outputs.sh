#!/bin/sh
# outputs.sh -- what is written where something is: a file keeps its mode, a symbolic link stays one, a device is written to
# by everybody who may write to it.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
umask 022
mode() { # mode FILE: as ls shows it
    # shellcheck disable=SC2012 # one name of our own
    ls -ld "$1" | cut -c1-10
}
echo old >"$dir/file" && chmod 600 "$dir/file"
run 0 formats -o "$dir/file" fp16 && [ "$(mode "$dir/file")" = -rw------- ] && grep -q '^fp16' "$dir/file"
ok $? "the mode of a file that is replaced"
if [ "$(id -u)" -eq 0 ] && chown 65534:65534 "$dir/file" 2>"$dir/err"; then
    chmod 6755 "$dir/file" && run 0 formats -o "$dir/file" fp16 && [ "$(mode "$dir/file")" = -rwxr-xr-x ]
    ok $? "a file of another user: whoever writes it gives no rights of his own away"
else
    echo "ok $((n += 1)) - a file of another user # SKIP root alone has such"
fi
run 0 formats -o "$dir/new" fp16 && [ "$(mode "$dir/new")" = -rw-r--r-- ]; ok $? "that of a new file follows the umask"
chmod 640 "$dir/file" && mkdir "$dir/folder" && ln -s ../file "$dir/folder/link" && ln -s link "$dir/folder/second" &&
    run 0 formats -o "$dir/folder/second" bf16 && [ -h "$dir/folder/link" ] && [ -h "$dir/folder/second" ] &&
    grep -q '^bf16' "$dir/file" && [ "$(mode "$dir/file")" = -rw-r----- ]
ok $? "links to a file"
ln -s ../later "$dir/folder/dangling" && run 0 formats -o "$dir/folder/dangling" bf16 && [ -h "$dir/folder/dangling" ] &&
    grep -q '^bf16' "$dir/later"
ok $? "a link to what is not there yet"
ln -s circle "$dir/circle" && run 4 formats -o "$dir/circle" bf16 && has 'circle: .*symbolic links' err && [ -h "$dir/circle" ]
ok $? "a circle of links"

# ---- as an ordinary user, who cannot write to /dev
cp "$MPSIM" "$dir/program" && chmod 755 "$dir" "$dir/program"
if [ "$(id -u)" -ne 0 ]; then
    as=
elif command -v setpriv >/dev/null; then
    as='setpriv --reuid=65534 --clear-groups'
else
    as=none
fi
for device in null stdout stderr full; do
    if [ "$as" = none ]; then
        echo "ok $((n += 1)) - /dev/$device # SKIP root, and no setpriv"
        continue
    fi
    $as "$dir/program" formats -o /dev/$device fp16 2>"$dir/err" | cat >"$dir/out"
    case $device in
    null) [ ! -s "$dir/out" ] && [ ! -s "$dir/err" ] ;;
    stdout) has '^fp16' && [ ! -s "$dir/err" ] ;;
    stderr) has '^fp16' err ;;
    full) has 'No space left on device' err ;;
    esac
    ok $? "/dev/$device"
done
finish
