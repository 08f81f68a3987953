#!/bin/sh
# pack.sh -- the files of FOLDER as the corpus of a target, corpus/TARGET.tar.gz: the same files give the same archive (GNU tar).
#
#   pack.sh TARGET FOLDER           to add a file: pack.sh -x TARGET FOLDER unpacks the corpus first
set -eu
corpus=$(dirname "$0")/corpus
if [ "$1" = -x ]; then
    mkdir -p "$3"
    exec tar -xzf "$corpus/$2.tar.gz" -C "$3"
fi
(cd "$2" && tar --sort=name --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rw,go=r -cf - -- *) | gzip -9n >"$corpus/$1.tar.gz"
