/* folder.h -- cast into a folder: a file for each file of the input, under its name. */
#pragma once

#include "../input/input.h"

/* Writes the tensors that a trace has in a file (NULL: all) to `path`: 0, or an exit code after a message. */
typedef int folder_write(void *context, const input *in, trace *t, const char *file, const char *path);

typedef struct folder {
    const char *path, *operand; /* operand: what names of files are below; NULL: several, each its own */
    const char *suffix;         /* of files that are written: ".safetensors", ".npy"                     */
    folder_write *write;
    void *context;
} folder;

/* cast_folder_wanted -- whether an output is a folder: one that is there or ends in '/', or what several files, or a folder
 * of them, are cast to. */
int cast_folder_wanted(const input *in, const char *operand, const char *path);
/* cast_folder_check -- before anything is read: no two files would have one name. 0, or an exit code after a message. */
int cast_folder_check(const folder *f, const input *in);
/* cast_folder_visit -- the files of a trace, and the index that is theirs. */
int cast_folder_visit(const folder *f, input *in, trace *t);
