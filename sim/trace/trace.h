/* trace.h -- reading tensors from files of any supported layout.
 *
 * A file is recognised by its content, never by its name. All input is untrusted: every
 * length is checked against the file's size before it is used, memory stays bounded by the
 * header cap plus a few megabytes whatever a file claims, and a file that changes or is
 * truncated while it is read gives an error, not a crash (files are read, never mapped).
 *
 * Layouts: safetensors, npy (versions 1 to 3), npz (zip of npy members, stored or
 * deflated), PyTorch's (torch, torch-legacy, pickle: in the order of the pickle), GGUF, msgpack of Flax, ONNX, the files of
 * llm.c, HDF5 if it is built in, raw (the caller states dtype, shape and offset). "-" and pipes are copied to an
 * unnamed temporary file first, packed files (stream.h) unpacked to one, so that every layout can be read from them. */
#pragma once

#include "../text/escape.h"

#include <mpsim/format.h>
#include <stdio.h>

/* Why something failed: one line without "mpsim: ", control characters and bytes that are
 * not UTF-8 escaped, e.g. "grads.safetensors: offset 8: header is not valid JSON: ...".
 * `exit` is the exit code that fits: 2 an output that is an input, 3 bad input data, 4 I/O or out
 * of memory. */
typedef struct trace_error {
    int exit;
    int refused; /* a pickle that would call something when it is loaded */
    int memory;  /* there is none for it */
    char text[1024];
} trace_error;

/* What a tensor is made of that the file does not hold as it is: codes, scales of blocks, perhaps a scale of the
 * tensor, each a tensor of its own that is not shown (--stored parts shows them instead). */
typedef struct trace_quantised {
    const char *layout, *type;       /* whose layout it is, and the kind of tensor there: "torchao", "MXTensor" */
    const char *codes, *scales;      /* what they are, in words: "e2m1", "uint4"; "e8m0", "fp16 times int6" */
    const mpsim_format *element;     /* of the codes; NULL: they are no numbers of a format, but as `codes` says */
    const mpsim_format *scale;       /* of the block scales; NULL likewise: trace_scales has nothing to count    */
    uint64_t block_rows, block_cols; /* elements that share a scale; rows: all dimensions but the last */
    const char *order;               /* of the scales: "plain" or "swizzled"                         */
    const char *tensor_scale;        /* name of that part, or NULL                                   */
    unsigned transform;              /* groups of the Hadamard transform that the numbers are behind, or 0;
                                        they are read as what the transform gave                     */
    const char *evidence;            /* how this is known: "metadata", "names and shapes"            */
    uint64_t bytes;                  /* of all parts                                                 */
} trace_quantised;

/* Elements that are nothing but rounding, and read as zeros: see roundoff.h. */
typedef struct trace_rounded {
    uint64_t count;
    int evidence;               /* how that is known: trace_roundoff_evidence */
    const unsigned char *marks; /* one for each element of the tensor, 1: it is */
} trace_rounded;

/* One tensor of a file. All pointers belong to the trace and live until trace_close. */
typedef struct trace_tensor {
    const char *name;           /* key, UTF-8, never NULL; "" for the array of an npy or raw file */
    const char *kind;           /* what it is, of the list of trace_kind_at; NULL: not known      */
    const char *fqn;            /* the parameter or module, without its kind; never NULL          */
    const char *dtype;          /* as the file spells it: "F32", "<f4", "BOOL"                    */
    const mpsim_format *format; /* NULL if the elements are not floating-point numbers            */
    const uint64_t *shape;      /* rank dimensions                                                */
    size_t rank;
    uint64_t count;                   /* product of the shape; 1 for rank 0                             */
    uint64_t offset;                  /* of the first byte in the file (in the member, for npz)         */
    const trace_quantised *quantised; /* NULL: it is stored as it is; else binary32, what codes and scales stand for */
    const char
        *unread; /* why its numbers are not read: "integers", "complex numbers"; NULL: they are, or it has none */
    const trace_rounded *roundoff; /* NULL: no element is known to be nothing but rounding            */
    /* there may be half a million of these: a byte each */
    uint8_t big_endian;
    uint8_t fortran; /* column-major; elements are read in storage order all the same          */
    uint8_t unseen;  /* unread, and it may hold floating-point numbers or packed weights       */
} trace_tensor;

#define TRACE_RAW_REST UINT64_MAX

typedef struct trace_options {
    const mpsim_format *raw_format; /* not NULL: read the file as raw elements of this format,
                                       little-endian, codes of 1, 2, 4 or 8 bytes                 */
    const uint64_t *raw_shape;      /* raw: NULL and rank 0 mean one dimension, to the file's end; one of them
                                       may be TRACE_RAW_REST: as many as the file has              */
    size_t raw_rank;
    uint64_t raw_offset; /* raw: bytes before the first element                        */
    int raw_big_endian;
    const mpsim_format *assume_v1; /* npy: what '|V1', '<V1', '<f1' hold (ml_dtypes float8); or NULL */
    const mpsim_format *assume_v2; /* npy: what '|V2', '<V2' hold (ml_dtypes bfloat16); or NULL  */
    const mpsim_format *as_int16;  /* npy and safetensors: read 16-bit integers as codes of this */
    const mpsim_format *as_int8;   /* likewise 8-bit integers; NULL: integers stay integers      */
    uint64_t max_header;           /* cap on a header in bytes; 0: 16 MiB                        */
    uint64_t max_ratio;            /* how many times its size a packed file may unpack to, beyond
                                       64 MiB; 0: 1000                                            */
    const char *loss_scale;        /* what gradients were multiplied by, of a file that does not say it; or NULL: as the
                                      metadata mpsim.grads_scaled and mpsim.loss_scale (data/record/metadata.tsv) */
    const struct namemap *map;     /* what names mean, before all conventions (namemap.h); or NULL */
    const char *quantised;         /* codes with scales are one tensor: NULL where that is evident; "parts": never;
                                       "LAYOUT" or "LAYOUT:ELEMENT": in this layout (trace_quantised_word) */
} trace_options;

typedef struct trace trace;

/* trace_open -- open a file, or a folder that is a checkpoint as a whole, and read its directory of tensors.
 * `options` may be NULL. NULL on failure, with *error filled. */
trace *trace_open(const char *path, const trace_options *options, trace_error *error);
void trace_close(trace *t); /* accepts NULL */

/* trace_of_arrays -- the same of n arrays in memory, of different names, which must outlive it and stay as they are; they are
 * called as the tensors of a safetensors file at `path` are, and nothing of a file is read. Raw elements and other options of
 * single files say nothing here. */
typedef struct mpsim_array trace_array;
size_t trace_array_number(const trace *t, size_t i); /* which of them tensor i is */
trace *trace_of_arrays(const char *path, const trace_array *arrays, size_t n, const trace_options *options,
                       trace_error *error);

/* What files any build reads: messages, help and doc/reference/files.md (tests/cli/doc.sh) name these. */
#define TRACE_LAYOUTS(and_last) "safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX" and_last "llm.c"

const char *trace_path(const trace *t); /* as given to trace_open                       */
/* trace_file_of -- the file that has tensor i, or its beginning: another one where files are one trace. */
const char *trace_file_of(const trace *t, size_t i);
/* trace_has_index -- whether it is files beside an index, each with whole tensors. */
int trace_has_index(const trace *t);
const char *trace_layout(const trace *t); /* "safetensors", "npy", ...; "npy (gzip)"      */
uint64_t trace_size(const trace *t);      /* bytes, of a packed file unpacked             */

/* Tensors, in the order of their position in the file. */
size_t trace_count(const trace *t);
const trace_tensor *trace_at(const trace *t, size_t i);

/* String metadata ("__metadata__" of safetensors), in file order; NULL past the end. */
const char *trace_metadata_key(const trace *t, size_t i);
const char *trace_metadata_value(const trace *t, size_t i);
const char *trace_metadata(const trace *t, const char *key); /* NULL if absent */
/* The key under which a trace says what of an archive was not read: members that hold no numbers. */
#define TRACE_NOT_READ "mpsim.note.members"

/* trace_select -- start reading tensor i from its first element. */
int trace_select(trace *t, size_t i, trace_error *error);

/* trace_read -- the next elements of the selected tensor as exact binary64 values, in
 * storage order: up to n of them; *got < n only at the end of the tensor, 0 past it.
 * Returns 0, or -1 with *error filled; a tensor without a format is an error. The last call
 * of a tensor in an npz also verifies the member's CRC. */
int trace_read(trace *t, double *values, size_t n, size_t *got, trace_error *error);

/* trace_read_codes -- the same elements as they are stored: codes of their format, of
 * mpsim_format_code_bytes each, in the byte order of the host. */
int trace_read_codes(trace *t, void *codes, size_t n, size_t *got, trace_error *error);

/* trace_read_bytes -- the bytes of the selected tensor's next elements as they are in the file, n of
 * them, which are to be there; a tensor is read with one of these three functions. 0, or -1 with *error
 * filled. */
int trace_read_bytes(trace *t, void *bytes, size_t n, trace_error *error);

/* trace_is_flat -- whether the elements can be read from any place: they are not in a packed member. */
int trace_is_flat(const trace *t);

/* trace_codes -- of such a file: the codes of n elements of tensor i from element `first`, which are to
 * be there, as trace_read_codes gives them. No tensor is selected, and threads may read at once. 0, or
 * -1 with *error filled. */
int trace_codes(const trace *t, size_t i, uint64_t first, void *codes, size_t n, trace_error *error);

/* trace_watch_reads -- from now on `read` gets the number of bytes that are read of files, by any thread. NULL: nobody. */
void trace_watch_reads(void (*read)(size_t bytes));

/* trace_error_set -- fill *error; always returns -1. The text becomes
 * "PATH: offset N: MESSAGE", or "PATH: MESSAGE" if offset is UINT64_MAX; path and message
 * are escaped. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
int trace_error_set(trace_error *error, int exit_code, const char *path, uint64_t offset,
                    const char *message, ...);
/* trace_error_say -- the same without a path: "MESSAGE". */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int trace_error_say(trace_error *error, int exit_code, const char *message, ...);
/* trace_error_io -- what errno says of the file: "PATH: offset N: MESSAGE: No such file or directory"; nothing of a message
 * that is empty. trace_error_memory -- out of memory, of that file, or NULL; trace_no_memory: of the file that was read. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int trace_error_io(trace_error *error, const char *path, uint64_t offset, const char *message, ...);
int trace_error_memory(trace_error *error, const char *path);
int trace_no_memory(const trace *t, trace_error *error);

/* tree: the files that operands stand for.
 *
 * A file operand stands for itself, "-" for standard input, a directory for all regular
 * files below it whose names do not begin with '.', in natural order (step_2 before step_10,
 * locale ignored). Symbolic links are followed, to directories, too; one that leads back to a
 * directory above it is refused, as is what is neither a file nor a directory (a FIFO, a device).
 * Files below a directory that are not tensors (README.md, SHA256SUMS, ...) are told by
 * content: trace_tree_add keeps only files that trace_probe recognises and counts the
 * others in *skipped; a file operand is never skipped. */
typedef struct trace_tree {
    char **paths;
    size_t count, skipped;
    int unread; /* set first: no file is opened, all regular ones below a directory are kept */
    /* Called with what is refused below a directory; 0: go on without it. NULL: never go on. */
    int (*refused)(void *context, const trace_error *error);
    void *context;
} trace_tree;

/* trace_tree_add -- add what an operand stands for. 0, -1 with *error filled, or what `refused`
 * returned. */
int trace_tree_add(trace_tree *tree, const char *operand, const trace_options *options, trace_error *error);
/* trace_tree_keeps -- whether a regular file below a directory, or a folder, is one of the tree. */
int trace_tree_keeps(const char *path, const trace_options *options);
/* trace_are_folders -- whether all n paths are directories. */
int trace_are_folders(const char *const *paths, size_t n);
/* trace_folder_unread -- what a folder without files of tensors is, as far as that is known: "a Zarr array"; NULL: it is not. */
const char *trace_folder_unread(const char *path);
/* trace_tree_bytes -- what a path of the tree takes by the sizes of files alone: its file; all files that are one
 * trace in a folder, or by an index. 0 for what is not there; -1 if it is no file (a pipe), or
 * nobody knows: then errno says why. */
int trace_tree_bytes(const char *path, uint64_t *bytes);
/* trace_tree_sort -- all paths in natural order, whatever the order of the operands. */
void trace_tree_sort(trace_tree *tree);
void trace_tree_clear(trace_tree *tree);

/* trace_is_events -- whether n bytes begin an event file of TensorBoard, which no command reads: TRACE_EVENTS, in messages. */
#define TRACE_EVENTS "an event file of TensorBoard, which is not read: export its scalars as CSV"
int trace_is_events(const void *head, size_t n);
/* trace_probe -- 1 if the file's first bytes look like a supported layout (or if
 * options->raw_format is set). Does not open FIFOs or devices. */
int trace_probe(const char *path, const trace_options *options);

/* trace_names_others -- whether a regular file begins as one that names files beside it: an index of shards, or a model of ONNX. */
int trace_names_others(const char *path);
/* trace_beside -- names of files beside one of tensors that are read with it, which say how it is quantised; NULL ends them. */
extern const char *const trace_beside[];

/* trace_kind -- the kind of a tensor named "kind:fqn" (mpsim-trace/1): the part before the
 * first ':' if it is one of weight act out agrad dgrad wgrad opt.m opt.v opt.vmax master, else NULL.
 * The result is a static string. */
const char *trace_kind(const char *name);

/* trace_kinds -- that list, up to NULL. trace_kind_at -- kind i of it; NULL past its end. */
extern const char *const trace_kinds[];
const char *trace_kind_at(int i);

/* trace_kind_rank -- the place of a result of trace_kind in that list; NULL comes last. */
int trace_kind_rank(const char *kind);

/* trace_convention -- whose names the tensors of a file have, as far as they have a kind: "mpsim-trace/1",
 * "PyTorch checkpoint, gradients", the label of a map; NULL: nobody's. */
const char *trace_convention(const trace *t);

/* trace_clash -- tensors that would be the same by a convention, and so have no kind: a line that names two of
 * them; NULL: none. */
const char *trace_clash(const trace *t);

/* trace_quantised_word -- whether a word can be trace_options.quantised; if not, why not. */
int trace_quantised_word(const char *word, char *why, size_t size);

/* trace_quantised_note -- codes without their scales, which are a tensor of their own then: a line that names the first;
 * NULL: there are none. */
const char *trace_quantised_note(const trace *t);

/* trace_zeros_note -- GPTQ's zeros that fit version 2 of its format, in a file that is read as version 1: a line; NULL: none. */
const char *trace_zeros_note(const trace *t);

/* trace_unread_note -- tensors of numbers whose elements are not read: a line that names one and says why; NULL: none. */
const char *trace_unread_note(const trace *t);

/* trace_scales -- what the block scales of a quantised tensor are, those of zero blocks included, which are not
 * told apart. */
typedef struct trace_scale_stats {
    uint64_t count;
    double least, largest; /* of those that are numbers above 0: as they are stored, without the tensor's scale */
    uint64_t least_codes, largest_codes; /* with the least code (E4M3: 0 or 1) and the largest finite one; 0 where
                                            scales are wider than 8 bits */
    uint64_t zeros, nonfinite, negative;
} trace_scale_stats;
int trace_scales(const trace *t, size_t i, trace_scale_stats *stats, trace_error *error);

/* trace_step -- the training step a file belongs to: metadata "mpsim.step" (or "step"), else
 * the last path component of the form [text]step_N or [text]step-N or [text]stepN (also
 * "iter" and "checkpoint"), else metadata "global_step", "global_steps", "iteration", "iter_num", else -1. */
int64_t trace_step(const trace *t);
/* trace_step_of_path -- what its name or those of its folders say, or -1. */
int64_t trace_step_of_path(const trace *t);
/* trace_step_in_path -- the same of a path: *digits and *end are where its number is. */
int64_t trace_step_in_path(const char *path, const char **digits, const char **end);

/* What a tensor is in its file, for who copies it as it is: itself, or its codes and scales. */
enum { TRACE_COPIES = 6 };
typedef struct trace_copy {
    trace_tensor tensor; /* for trace_writer_safetensors: its dtype is one of safetensors            */
    size_t width;        /* bytes of a unit: an element, or a byte where several elements share one  */
    uint64_t units;
    size_t entry;               /* where it is in the trace */
    const mpsim_format *packed; /* of codes that share bytes; else NULL */
    int raw;                    /* bytes as they are in the file, in order */
} trace_copy;
/* trace_copies -- of tensor i: how many there are; 0: safetensors has no dtype for it, or the file has no elements of it.
 * Where it has none for codes or scales, the numbers that they stand for are copied. */
size_t trace_copies(const trace *t, size_t i, trace_copy *to);
/* trace_stored_as -- the same for who compares bytes, whatever dtypes safetensors has, and never numbers that codes stand
 * for; of an i from trace_count on, the parts of quantised tensors that no tensor is read from. 0: the file has no
 * elements of it. */
size_t trace_stored_as(const trace *t, size_t i, trace_copy *to);
/* trace_loose -- such a part: the first from `i` on, whose number is in *at; NULL: there is none. */
const trace_tensor *trace_loose(const trace *t, size_t i, size_t *at);
/* trace_copy_dtype -- the dtype of safetensors that holds the elements of a tensor bit for bit, whatever its file calls it;
 * NULL: none does. */
const char *trace_copy_dtype(const trace_tensor *x);
/* trace_integers -- whether the elements are integers or truth values, of 1, 2, 4 or 8 bytes; *is_signed. */
int trace_integers(const trace_tensor *x, int *is_signed);
/* trace_copy_units -- n units from `first` on, little-endian; in order from 0, up to the last one, where the trace is not
 * flat or the copy is `raw`. 0, or -1 with *error filled. */
int trace_copy_units(trace *t, const trace_copy *c, uint64_t first, void *units, size_t n, trace_error *error);

/* Writers. A file is written under a temporary name beside it and renamed when complete, so
 * that a failure, or a signal, leaves nothing behind. It never replaces an input. "-" writes to
 * standard output. */
typedef struct trace_writer trace_writer;

/* The safetensors dtype of a format ("BF16", "F8_E4M3"), or NULL if there is none or if it
 * packs several elements into a byte. */
const char *trace_safetensors_dtype(const mpsim_format *f);
/* That of a format whose codes it packs ("F4", "F6_E2M3"), or NULL: a writer gets bytes that trace_pack made. trace_code_bits -- of
 * an element in the file. trace_pack -- n codes, a byte each, as bytes of the file: how many. A run of codes that is not the last
 * is a multiple of four. */
const char *trace_packed_dtype(const mpsim_format *f);
uint64_t trace_code_bits(const mpsim_format *f);
size_t trace_pack(const mpsim_format *f, unsigned char *to, const unsigned char *codes, size_t n);

/* The npy descr of a format: "<f2", "<f4", "<f8"; "|V1" for 8-bit and "<V2" for bfloat16
 * codes as ml_dtypes writes them; NULL for others. */
const char *trace_npy_descr(const mpsim_format *f);

/* trace_writer_safetensors -- tensors (name, format, shape, rank, count are used; without a format dtype, which is
 * one of safetensors) are laid out in the given order; then trace_writer_data is called with their
 * bytes, back to back, little-endian codes (packed ones: trace_pack), row-major. The header is padded with spaces so that data starts
 * at a multiple of 8. metadata: n_metadata pairs key, value. */
trace_writer *trace_writer_safetensors(const char *path, const trace_tensor *tensors, size_t n,
                                       const char *const (*metadata)[2], size_t n_metadata, trace_error *error);
/* trace_writer_npy -- one array; t->fortran is honoured. */
trace_writer *trace_writer_npy(const char *path, const trace_tensor *t, trace_error *error);
int trace_writer_data(trace_writer *w, const void *bytes, size_t n, trace_error *error);
/* trace_writer_has_places -- whether the data may be written in any order, with trace_writer_data_at alone:
 * not into a pipe. */
int trace_writer_has_places(const trace_writer *w);
/* trace_writer_make_places -- from now on it may, into a pipe, too: then the data wait in a file without a name. */
int trace_writer_make_places(trace_writer *w, trace_error *error);
/* trace_writer_data_at -- bytes of the data from `at` on; from several threads, each byte once. */
int trace_writer_data_at(trace_writer *w, uint64_t at, const void *bytes, size_t n, trace_error *error);
/* trace_to_little_endian -- n codes of `bytes` bytes each, from the host to the byte order of files. */
void trace_to_little_endian(unsigned char *codes, size_t bytes, size_t n);
/* trace_writer_finish -- check that all promised bytes came, flush, rename; frees w always. */
int trace_writer_finish(trace_writer *w, trace_error *error);
void trace_writer_abandon(trace_writer *w); /* accepts NULL: removes the temporary file */
