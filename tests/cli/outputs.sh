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

# ---- a figure, which gnuplot draws
cat >"$dir/gnuplot" <<'SCRIPT'
#!/bin/sh
figure=$(echo "$3" | sed "s/cd '\([^']*\)'; figure = '[.]\/\([^']*\)'.*/\1\/\2/")
echo '</svg>' >"$figure.svg"
SCRIPT
chmod +x "$dir/gnuplot" && echo old >"$dir/f.svg" && chmod 600 "$dir/f.svg"
MPSIM_GNUPLOT=$dir/gnuplot "$MPSIM" plot sqnr --by layer --type svg -o "$dir/f" "$top/tests/cli/reports/blocks.json" >"$dir/out" 2>"$dir/err" &&
    grep -q svg "$dir/f.svg" && [ "$(mode "$dir/f.svg")" = -rw------- ]
ok $? "the mode of a figure"
echo old >"$dir/behind.svg" && ln -s behind.svg "$dir/l.svg"
MPSIM_GNUPLOT=$dir/gnuplot "$MPSIM" plot sqnr --by layer --type svg -o "$dir/l" "$top/tests/cli/reports/blocks.json" >"$dir/out" 2>"$dir/err" &&
    [ -h "$dir/l.svg" ] && cmp -s "$dir/f.svg" "$dir/behind.svg"; ok $? "plot: a figure behind a symbolic link"

# ---- other names of the file that is replaced, and what it has beside its mode
echo old >"$dir/one" && ln "$dir/one" "$dir/other" && run 0 formats -o "$dir/one" fp16 && grep -q '^fp16' "$dir/one" &&
    [ "$(cat "$dir/other")" = old ]
ok $? "a hard link: the other name has what was there"

# attribute set|get FILE NAME [HEX]
attribute() {
    python3 -c 'import os, sys
what, file, name, *value = sys.argv[1:]
if what == "set":
    os.setxattr(file, name, bytes.fromhex(value[0]))
elif name in os.listxattr(file):
    print(os.getxattr(file, name).hex())' "$@" 2>"$dir/err"
}
list=system.posix_acl_access
# owner rw, user 65533 rw, group r, mask rw, others nothing: the group of the mode is the mask, and not the group
some=0200000001000600ffffffff02000600fdff000004000400ffffffff10000600ffffffff20000000ffffffff
more=$(printf %s $some | sed s/fdff0000/fcff0000/)
echo old >"$dir/listed" && chmod 640 "$dir/listed"
if attribute set "$dir/listed" $list $some; then
    attribute set "$dir/listed" user.sum 00
    run 0 formats -o "$dir/listed" fp16 && grep -q '^fp16' "$dir/listed" && [ "$(attribute get "$dir/listed" $list)" = $some ] &&
        [ "$(mode "$dir/listed")" = -rw-rw---- ] && [ ! "$(attribute get "$dir/listed" user.sum)" ]
    ok $? "an access control list stays, what else was said of the old file does not"
    echo old >"$dir/plain" && chmod 660 "$dir/plain" && mkdir "$dir/lists" && attribute set "$dir/lists" system.posix_acl_default "$more" &&
        mv "$dir/plain" "$dir/lists" && run 0 formats -o "$dir/lists/plain" fp16 && [ ! "$(attribute get "$dir/lists/plain" $list)" ] &&
        [ "$(mode "$dir/lists/plain")" = -rw-rw---- ]
    ok $? "none, in a folder whose new files have one"
    attribute set "$dir/listed" $list $some
    if "$MPSIM" formats --sandbox -o "$dir/listed" bf16 2>"$dir/err"; then
        grep -q '^bf16' "$dir/listed" && [ "$(mode "$dir/listed")" = -rw-r----- ]
        ok $? "in the sandbox, which writes no attributes, the group has what it had, and not what others had"
    fi
else
    echo "ok $((n += 1)) - an access control list # SKIP no python3, or the file system has none"
fi

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
