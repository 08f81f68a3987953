/* cast.h -- what the files of sim/cast have of one another. */
#pragma once

#include "../input/input.h"
#include "../operand/target.h"
#include "../quant/quant.h"
#include "recipe.h"

/* ---- contents.c: what a file of cast holds: tensors that are cast, and tensors that are copied as they are stored. ---- */

typedef struct content {
    size_t index; /* of the tensor in the trace                          */
    int copied;   /* `copy` is written: the tensor itself, or one of its parts */
    trace_copy copy;
} content;

typedef struct contents {
    content *items; /* in the order of the trace */
    size_t n;
    size_t copies; /* tensors that are copied, and their elements           */
    uint64_t copied_elements;
    uint64_t unselected, unselected_elements; /* with `only`: what --match or --kind leaves out        */
    uint64_t no_numbers;                      /* with `only`: selected, without floating-point numbers */
    uint64_t unwritten[2];                    /* no dtype of safetensors holds them; the file has no data of them */
    const trace_tensor *first_unwritten[2];   /* of the trace                                          */
    unread_list *lacks;                       /* of all files: what is not written, and may hold numbers; or NULL */
} contents;

/* cast_contents_of -- of a file, or with `file` (not NULL) of what a trace of several files has in that one (trace_file_of).
 * Without `only` what is not selected, or holds no floating-point numbers, is copied. */
void cast_contents_of(contents *c, unread_list *lacks, const input *in, const trace *t, const char *file, int only);
void cast_contents_clear(contents *c);

/* cast_contents_note -- what was left out. */
void cast_contents_note(const contents *c);
/* cast_contents_say -- adds the same for a summary: "; 3 tensors of 21 elements copied". */
void cast_contents_say(char *to, size_t size, const contents *c);

/* ---- convert.c: elements of one format as elements of another: what cast does with the codes of a tensor. ---- */

/* From the codes of `source` to those of `out`, which is the target's format or holds its numbers. */
typedef struct converter {
    struct converter *next; /* the owner's */
    const mpsim_format *source, *to, *out;
    mpsim_rounding rounding;
    enum { CONVERT_WIDE, CONVERT_NARROW, CONVERT_TABLE } path;
    float *table; /* CONVERT_TABLE: binary32 of every code */
} converter;

/* cast_converter_init -- what it is made of must outlive it. */
void cast_converter_init(converter *c, const target *t, const mpsim_format *source, const mpsim_format *out);
void cast_converter_clear(converter *c);

/* cast_converter_run -- n codes, in the byte order of the host, become n codes in that of files. `rng` is that
 * of the first element, `counts` may be NULL. Threads may share a converter. */
void cast_converter_run(const converter *c, const mpsim_rng *rng, void *to, const void *from, size_t n,
                        mpsim_counts *counts);

void cast_counts_add(mpsim_counts *to, const mpsim_counts *from);

/* widened -- the format that holds every number of f, of those that other tools read. */
const mpsim_format *cast_widened(const mpsim_format *f);

/* ---- folder.c: cast into a folder: a file for each file of the input, under its name. ---- */

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

/* ---- pairs.c: the metadata of a file that cast writes. ---- */

/* Keys and values, copies; all zeros is an empty list. */
typedef struct pairs {
    char *(*all)[2];
    size_t n;
} pairs;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void cast_pairs_put(pairs *p, const char *key, const char *format, ...);

/* cast_pairs_put_input -- those of the input that are true of the output: nothing about an earlier cast, nor about codes and
 * scales, of mpsim or torchao, which a cast reads as numbers. */
void cast_pairs_put_input(pairs *p, const trace *t);

/* cast_pairs_put_codes -- what the input says of quantised tensors whose codes and scales are copied. */
void cast_pairs_put_codes(pairs *p, const trace *t, const content *all, size_t n);

/* cast_pairs_open -- trace_writer_safetensors with these pairs; the list is empty afterwards. */
trace_writer *cast_pairs_open(pairs *p, const char *path, const trace_tensor *tensors, size_t n, trace_error *error);

/* ---- plain.c: a file under a format: its selected tensors cast, the others as they are. ---- */

typedef struct plain_options {
    const target *to;
    const mpsim_format *out; /* of the elements that are written: the target's, or a wider one */
    int npy, only;           /* only: what is not selected is not copied                       */
    int summary;
    unread_list *lacks; /* as in contents.h */
} plain_options;

/* cast_plain_file -- the tensors of t that cast_contents_of takes with this `file`, into `path`; notes, and the summary if it is
 * wanted. 0, or an exit code after a message. */
int cast_plain_file(const plain_options *o, uint64_t seed, const input *in, trace *t, const char *file,
                    const char *path);

/* ---- quantise.c: a file under a block recipe: its matrices quantised in a layout of checkpoints, or as the values that
 * they stand for; its other tensors as they are. ---- */

typedef struct quantise_options {
    const cast_recipe *how;
    const char *path, *layout;
    int swizzled, columns, widen, npy, counted;
    int only;         /* what is not selected is not copied      */
    int may_be_none;  /* nothing to quantise is not an error     */
    const char *file; /* of cast_contents_of                          */
    uint64_t seed;
    unread_list *lacks;
    const option_list *keep; /* names of tensors that stay as they are, beside those that are no matrices */
} quantise_options;

typedef struct quantise_result {
    size_t quantised, kept;
    uint64_t elements;
    contents all;        /* without items: how many were copied, or left out */
    mpsim_counts counts; /* if counted                                       */
} quantise_result;

/* cast_quantise_file -- the tensors of t, with notes of what is left out. 0, or an exit code after a message; then nothing is written. */
int cast_quantise_file(const quantise_options *o, const input *in, trace *t, quantise_result *r);

/* One tensor of the input, and what is written of it. */
typedef struct quantised {
    size_t index;
    const trace_tensor *x;
    const char *name;
    const trace_copy *copy; /* NULL: it is not copied */
    int kept;
    quant_geometry *g;    /* NULL: kept, or values */
    int has[QUANT_PARTS]; /* which parts there are; of what has no geometry the first */
    char *names[QUANT_PARTS];
    uint64_t at[QUANT_PARTS];
} quantised;

/* cast_quantise_metadata -- those of the input, how the output was made, and of every tensor what its layout says and
 * mpsim/sim/quant/describe.h; of torchao's layout its own instead of those of the input (about.c). */
void cast_quantise_metadata(pairs *p, const quantise_options *o, const trace *t, const quantised *q, size_t n);

/* ---- tensors.c: the tensors of a file, cast on all threads and written in their order. ---- */

typedef struct caster {
    const target *to;
    const mpsim_format *out; /* what is written: the target's format, or a wider one */
    uint64_t seed;
    int npy;             /* column-major tensors stay so; a byte for each code of few bits */
    int counted;         /* counts are wanted                       */
    mpsim_counts counts; /* of what was written                     */
} caster;

/* cast_caster_write -- n tensors of t, cast or copied, are the data of w. 0, or -1 with *error filled. */
int cast_caster_write(caster *c, trace *t, const content *all, size_t n, trace_writer *w, trace_error *error);
