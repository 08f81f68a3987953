#!/bin/sh
# torch.sh -- PyTorch's files in every command: as safetensors with the same tensors, from pipes and folders, on any
# number of threads.
# shellcheck source=tests/cli/common.sh
. "${MPSIM_SRCDIR:=.}/tests/cli/common.sh"
files=$MPSIM_SRCDIR/tests/trace/torch
train=$files/torch-2.6.0/train.zip.pt

numbers() { # of a report, but for the file and what it calls its dtypes
    sed -e 's/^tensor,[^,]*,/tensor,/' -e 's/^file,[^,]*,/file,/' -e 's/,float32,/,F32,/' "$dir/out" | grep -v '^level' | sort
}

layout() { # layout NAME FILE
    run 0 info "$files/$2" && has ": $1, "
    ok $? "info: $2 is $1"
}
layout torch torch-2.6.0/train.zip.pt
layout torch torch-1.5.1/torchscript_linear.jit.pt
layout torch-legacy torch-1.0.1/state_dict.legacy.pt
layout pickle torch-2.6.0/plain_protocol0.pkl
(cd "$files" && tar cf "$dir/old.pt" README.md)
run 3 info "$dir/old.pt" && has 'a tar archive: unpack it first' err; ok $? "info: a tar archive is called one"

run 0 info -v "$train" && has '^  step = 1234$' && has '^  args/name = résumé$' && has ', step 1234$'
ok $? "info: scalars are metadata"
run 0 info -v "$files/torch-2.6.0/te_dump.legacy.pt" && has 'mpsim.note.skipped = not read: quantized ('
ok $? "info: what is not read is said"
run 0 info -v "$files/torch-2.6.0/no_crc32.zip.pt" && has 'mpsim.note.crc = '
ok $? "info: an archive without CRCs is read, and it is said"

# the same tensor as torch and as safetensors
run 0 stat -f fp16,e4m3 -s 1,1024 --csv "$files/torch-2.6.0/views.zip.pt" && cp "$dir/out" "$dir/one"
ok $? "stat: views"
same=0
for threads in 1 2 3; do
    OMP_NUM_THREADS=$threads run 0 stat -f fp16,e4m3 -s 1,1024 --csv "$files/torch-2.6.0/views.zip.pt" &&
        cmp -s "$dir/out" "$dir/one" || same=1
done
ok $same "stat: the same on 1, 2 and 3 threads"
"$MPSIM" stat -f fp16,e4m3 -s 1,1024 --csv - <"$files/torch-2.6.0/views.zip.pt" 2>"$dir/err" >"$dir/out"
sed "s|,$files/torch-2.6.0/views.zip.pt,|,-,|" "$dir/one" | cmp -s - "$dir/out"
ok $? "stat: from standard input"
# shellcheck disable=SC2002 # a pipe
cat "$files/torch-2.6.0/views.zip.pt" | "$MPSIM" stat -f fp16,e4m3 -s 1,1024 --csv - 2>"$dir/err" >"$dir/out"
sed "s|,$files/torch-2.6.0/views.zip.pt,|,-,|" "$dir/one" | cmp -s - "$dir/out"
ok $? "stat: from a pipe"
mkdir "$dir/folder"
cp "$files/torch-2.6.0/views.zip.pt" "$files/torch-2.6.0/list.zip.pt" "$files/README.md" "$dir/folder" 2>/dev/null
run 0 info "$dir/folder" && has 'views.zip.pt: torch' && ! has README
ok $? "info: a folder"
run 0 cast -f binary32 -o "$dir/views.safetensors" "$files/torch-2.6.0/views.zip.pt" &&
    run 0 stat -f fp16 --csv "$dir/views.safetensors" && numbers >"$dir/a" &&
    run 0 stat -f fp16 --csv "$files/torch-2.6.0/views.zip.pt" && numbers >"$dir/b" &&
    cmp -s "$dir/a" "$dir/b"
ok $? "cast: a safetensors file of the same numbers"

# refused
refused=$dir/refused.pkl
printf '\200\2cos\nsystem\nX\4\0\0\0true\205R.' >"$refused"
run 3 info "$refused" && has 'refused: global os.system' err
ok $? "a call is refused, with its name"
# an enumeration is a call of its class: data, like all that a Trainer's training_args.bin holds
printf '\200\2}(X\4\0\0\0kindcmy_run\nSchedule\nX\6\0\0\0linear\205RX\4\0\0\0argsc__main__\n_Args\n)\201}X\2\0\0\0lrK\3sbu.' >"$dir/enum.pkl"
run 0 info -v "$dir/enum.pkl" && has 'kind = my_run.Schedule' && has 'args/lr = 3$' && has 'read as data: my_run.Schedule'
ok $? "bug_20261123_enumerations_are_data"
# a named tuple of optax has its fields' names: (count 3, mu, nu)
printf '\200\2}X\t\0\0\0opt_state(coptax._src.transform\nScaleByAdamState\nK\3}X\1\0\0\0wG?\360\0\0\0\0\0\0s}\207\201ts.' >"$dir/optax.pkl"
run 0 info -v "$dir/optax.pkl" && has 'opt_state/0/count = 3$' && has 'opt_state/0/mu/w = 1'
ok $? "the states of optax are tuples with names"
mkdir "$dir/checkpoint-7"
cp "$dir/enum.pkl" "$dir/checkpoint-7/training_args.bin"
cp "$files/torch-2.6.0/views.zip.pt" "$dir/checkpoint-7/optimizer.pt"
"$MPSIM" stat -f fp16 "$dir/checkpoint-7" >"$dir/out" 2>"$dir/err" && [ "$(cat "$dir/err")" = "mpsim: note: ignored a file without tensors: $dir/checkpoint-7/training_args.bin" ]
ok $? "a folder of a Trainer, with its training_args.bin, which is named"
"$MPSIM" cast -f bf16 -o "$dir/cast-7" "$dir/checkpoint-7" >"$dir/out" 2>"$dir/err" && [ "$(ls "$dir/cast-7")" = optimizer.pt.safetensors ] && has 'ignored a file without tensors' err
ok $? "bug_20261125_cast: it is not written as a file without tensors either"
printf '\200\2cmy_run\nschedule\nX\6\0\0\0linear\205R.' >"$refused"
run 3 info "$refused" && has 'refused: global my_run.schedule' err; ok $? "but a call of a function is refused"
printf '\200\2csubprocess\nPopen\nX\4\0\0\0true\205R.' >"$refused"
run 3 info "$refused" && has 'refused: global subprocess.Popen' err; ok $? "and a class of a module that runs something"
cp "$refused" "$dir/checkpoint-7/evil.bin"
for command in 'stat -f fp16' info; do
    "$MPSIM" $command "$dir/checkpoint-7" >"$dir/out" 2>"$dir/err"
    [ $? -eq 5 ] && has 'refused: global subprocess.Popen (ignored)$' err && has 'tensors'
    ok $? "$command: below a folder a refused pickle is named, and the rest is read"
done
run 3 stat -f fp16 "$dir/checkpoint-7/evil.bin" "$train" && has 'keep-going goes on' err; ok $? "but not where it is asked for by name"
run 0 info "$MPSIM_SRCDIR/tests/trace/recorded/optimizer.pt" && has "state/3/exp_avg_sq  opt.v:3 " &&
    has "^  numbered: 8 tensors are of parameters whose names this file does not have.*; group 0 has 0 to 1, group 1 2 to 3\$"
ok $? "moments without names"
run 0 info "$MPSIM_SRCDIR/data/record/recipes/pytorch" && has ' agrad:2 ' && ! has numbered; ok $? "bug_20261126: modules of a Sequential are no numbered parameters"
mkdir "$dir/zarr" && echo '{}' >"$dir/zarr/.zarray" && echo 0 >"$dir/zarr/0.0"
run 3 stat "$dir/zarr" && has 'holds no file of tensors: it is a Zarr array, which is not read' err; ok $? "a folder of Zarr is called one"

# GGUF's types of tables are named, all of them, and other tensors are read: a.w of 32 ones, b.w and c.w of 256
u64() { printf "\\$(printf %03o "$1")\0\0\0\0\0\0\0"; } # of a number below 256
tensor() { u64 3; printf '%s\1\0\0\0' "$1"; printf "$2"; printf "\\$(printf %03o "$3")\0\0\0"; u64 "$4"; }
{
    printf 'GGUF\3\0\0\0'; u64 3; u64 0
    tensor a.w '\040\0\0\0\0\0\0\0' 0 0; tensor b.w '\0\1\0\0\0\0\0\0' 16 128; tensor c.w '\0\1\0\0\0\0\0\0' 19 224
    head -c 31 /dev/zero
    for _ in 1 2 3 4 5 6 7 8; do printf '\0\0\200\077\0\0\200\077\0\0\200\077\0\0\200\077'; done
    head -c 160 /dev/zero
} >"$dir/iq.gguf"
"$MPSIM" stat -f fp16 "$dir/iq.gguf" >"$dir/out" 2>"$dir/err" && has '^  weight  *1  *32 ' && [ "$(cat "$dir/err")" = "mpsim: note: $dir/iq.gguf: not read: 'b.w', and what is like it: blocks of IQ2_XXS, IQ1_S
mpsim: note: 2 tensors without floating-point numbers left out" ]; ok $? "blocks of GGUF that are not read are named by type"

# unread FOLDER FILE BYTES WHAT: what is not read is called by its name, as a folder and as a file of it, in one line
unread() {
    mkdir -p "$dir/$1" && printf "$3" >"$dir/$1/$2"
    run 3 info "$dir/${1%%/*}" && has "holds no file of tensors: it is .*$4.*, which is not read; save its arrays as" err &&
        run 3 info "$dir/$1/$2" && has "file but .*$4.*, which is not read: save its arrays as" err && [ "$(wc -l <"$dir/err")" -eq 1 ]
    ok $? "$1/$2: $4"
}
unread zarr3 zarr.json '{"zarr_format": 3}' Zarr
unread zarr2 .zgroup '{"zarr_format": 2}' Zarr
unread ocdbt manifest.ocdbt '\014\333\072\052q\0\0\0\0' OCDBT
unread orbax/5/default _METADATA '{"tree_metadata": {}}' Orbax
unread saved saved_model.pb '\010\001\022\232\001\012\0' SavedModel
unread checkpoint-of-tf ckpt-1.data-00000-of-00001 '\0\001\002\003\004\005\006\007\010' TensorFlow
run 3 info "$dir/ocdbt/manifest.ocdbt" && cp "$dir/checkpoint-of-tf/ckpt-1.data-00000-of-00001" "$dir/ckpt-1.index" &&
    run 3 info "$dir/ckpt-1.index" && has 'the index of a checkpoint of TensorFlow' err; ok $? "an index of TensorFlow"
keras=$MPSIM_SRCDIR/tests/trace/recorded/model.keras
if "$MPSIM" info "$MPSIM_SRCDIR/tests/trace/recorded/h5py.h5" >/dev/null 2>&1; then
    run 0 info "$keras" && has ': hdf5, '
else
    run 3 info "$keras" && has 'is an HDF5 file, which this mpsim was built without (configure --with-hdf5)' err
fi
ok $? "a model of Keras, or what it needs"
cat "$train" >"$dir/damaged.pt" # sources may be read-only
at=$(($(grep -a -b -o 'data/3' "$train" | head -n 1 | cut -d: -f1) + 64))
printf '\377\377\377\377\377\377\377\377' | dd of="$dir/damaged.pt" bs=1 seek=$at conv=notrunc 2>/dev/null
run 3 stat -f fp16 "$dir/damaged.pt" && has 'wrong CRC' err
ok $? "a damaged storage is found"
finish
