/* impl.h -- what the files of sim/trace share; not for other folders.
 *
 * Calls go one way: trace.c opens a source (source.c), whose first bytes show its layout
 * (layout.c); the layouts (safetensors.c with plainentry.c, npy.c, zip.c with zipdir.c, which is npz.c or torch*.c,
 * gguf.c with ggufhead.c, msgpack.c with chunks.c and onnx*.c with protowalk.c, both over bytewalk.c, llmc.c, hdf5*.c, raw.c) read through read.c, and all of them use dtype.c, memory.c and text.c.
 * What is packed (stream.c) is unpacked by the source.
 *
 * A layout is a const struct of functions. Its `open` reads the directory of tensors through
 * trace_bytes and trace_add; reading the elements of a selected tensor is common code
 * (read.c), which asks the layout only for a stream of bytes.
 *
 * Layouts whose tensors are in other files (shards.c with jsontext.c, zero.c with zerotensor.c, distcp.c; folder.c) share
 * parts.c and partsource.c, which open these files through functions that trace.c gives them (trace_others).
 *
 * Codes of few bits have a byte each above read.c (F4 and F6 of safetensors and ONNX: trace_entry.packing); writers
 * get them packed (trace_pack). What `cast` does not cast is copied as it is stored (copy.c). CRCs are compared
 * once, by the thread that comes first.
 *
 * Work is bounded by the bytes read and the elements shown. Names are sorted, or hashed under a random key: n log
 * n, never every item beside every other. What may be written once and read often has a bound of its own
 * (tests/cli/quick.sh has a clock):
 *
 *   paths through a pickle (torchtree.c)    100,000 steps, and one for 2 bytes of its tree, which is at most 20 times the pickle
 *   values of a pickle as text              1 MiB and 4 times the tree
 *   files within a pickle                   4 times the file; all pickles of a torch.package together have one bound
 *   chunks of torch.distributed             8 times the references of its pickle
 *   pairs of pieces that may overlap        10^8
 *   bytes that tensors show (trace_shows)   64 MiB, or --max-ratio times the bytes of the file if that is more
 *   numbers of ONNX that are decoded        8 times the model
 *   YAML                                    1 MiB and 20,000 nodes
 *   an overflow pattern of `scaler`         its text, and 10^8 steps
 *
 * Stacks may be small: 128 KiB in a thread of musl; threads of our own have 1 MiB. Frames stay below 72 KiB.
 * Recursion over input ends at 100 levels of a pickle, 4 files within each other, 64 levels of maps, graphs or
 * folders, 500 of JSON, 16 of YAML (tests/cli/deep.sh runs each with a stack of 256 KiB). */
#pragma once

#include "../quant/quant.h"
#include "trace.h"

#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

_Static_assert(sizeof(off_t) >= 8, "file offsets need 64 bits");

enum {
    TRACE_RANK_MAX = 64,             /* as NumPy 2                                        */
    TRACE_HEAD = 4096,               /* bytes that show a layout                          */
    TRACE_HEADER_DEFAULT = 16 << 20, /* cap on a header                                   */
    TRACE_HEADER_MAX = 100000000,    /* largest cap; the limit of the safetensors reader  */
    TRACE_ITEMS_MAX = 500000,        /* tensors of a file; pairs of metadata              */
    TRACE_MEMORY = 60 << 20,         /* for a directory of tensors, beside its header     */
    TRACE_SHOWN_FREE = 64 << 20,     /* bytes of tensors that need not be in the file       */
    TRACE_RATIO_DEFAULT = 1000,      /* what a packed file may unpack to, times its size  */
    TRACE_EXIT_USAGE = 2,
    TRACE_EXIT_DATA = 3,
    TRACE_EXIT_IO = 4
};

#define TRACE_NO_OFFSET UINT64_MAX

typedef struct trace_entry {
    trace_tensor tensor;
    uint64_t at;           /* safetensors: offset of the key, for messages; npz: index of the member */
    uint64_t bytes;        /* of all elements                                                        */
    quant_packing packing; /* of a format whose codes are packed into these bytes; readers give a byte to each */
    uint8_t nowhere;       /* the file does not hold its elements, or does not say where            */
    uint8_t coded;         /* its bytes are not its elements one behind the other: they can be compared alone */
    uint8_t loose;         /* a part of a quantised tensor that is read from other parts             */
} trace_entry;

typedef struct trace_layout_type {
    const char *name;
    int (*open)(trace *t, const trace_options *options, trace_error *error);
    /* Make trace_bytes deliver the bytes of an entry; NULL: they are in the file at offset. */
    int (*start)(trace *t, const trace_entry *entry, trace_error *error);
    /* Exactly n bytes; NULL: from the file. */
    int (*bytes)(trace *t, void *p, size_t n, trace_error *error);
    /* Codes of n elements of an entry from element `first` on, as trace_tensor says (its byte order), read
     * from wherever they are; from several threads at once. Instead of `start` and `bytes`, for elements
     * that are not a run of bytes of the file; NULL: they are. */
    int (*codes)(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n, trace_error *error);
    /* Called once after the last byte of an entry; NULL: nothing to check. */
    int (*finish)(trace *t, trace_error *error);
    void (*close)(trace *t);                                       /* NULL: nothing to free */
    int has_parts;                                                 /* its tensors are in other files */
    const char *(*file)(const trace *t, const trace_entry *entry); /* which one; NULL: that of the trace */
    int all_elements; /* codes of entries without a format may be parts of quantised tensors   */
    int only_numbers; /* elements of entries without a format cannot be read (trace_stored)     */
} trace_layout_type;

/* Opening and closing other files: `bytes` bytes of one from `at` on, or all of it (0, 0). They have no parts. */
typedef struct trace_others {
    trace *(*open)(const char *path, uint64_t at, uint64_t bytes, const trace_options *options, trace_error *error);
    void (*close)(trace *t);
} trace_others;

extern const trace_layout_type trace_layout_safetensors, trace_layout_npy, trace_layout_zip, trace_layout_npz,
    trace_layout_raw, trace_layout_torch, trace_layout_torch_legacy, trace_layout_pickle, trace_layout_gguf,
    trace_layout_llmc, trace_layout_hdf5, trace_layout_shards, trace_layout_zero, trace_layout_distcp,
    trace_layout_msgpack, trace_layout_onnx, trace_layout_torch_export;

struct trace {
    char *path;
    int fd;         /* -1: a folder                                            */
    uint64_t base;  /* bytes of the file before those of the trace              */
    int is_section; /* not the whole file                                       */
    uint64_t size;
    const struct trace_others *others; /* of trace.c, for layouts that read other files */
    uint64_t max_header;
    const char *packing; /* "gzip": the file is packed, and fd is what it unpacks to; or NULL */
    uint64_t packed;     /* bytes of it then                                        */
    uint64_t beside;     /* bytes of other files that have its tensors            */
    uint64_t shown;      /* bytes of the tensors that trace_shows has counted  */
    char label[64];      /* of trace_layout, if it is packed                                  */
    const trace_layout_type *type;
    trace_entry *entries;
    size_t count, room;    /* behind the first `count` entries: parts of quantised tensors (quantised.c) */
    size_t hidden;         /* how many those are                                       */
    const char **metadata; /* key, value, key, value, ... */
    size_t n_metadata, metadata_room;
    int64_t step;
    const char *convention; /* see trace_convention                                        */
    char clash[512];        /* see trace_clash                                             */
    char lone[512];         /* see trace_quantised_note                                    */
    char zeros[512];        /* see trace_zeros_note                                        */
    char unread[512];       /* see trace_unread_note                                       */
    int not_numbers;        /* why the last npy header was refused: dates, texts, objects  */
    int (*quantised)(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                     trace_error *error); /* `codes` of tensors that are codes and scales  */
    struct arena *arena;
    size_t arena_bytes;
    char *text; /* a header whose strings are in use, or NULL                  */
    size_t text_bytes;
    void *state;        /* of the layout                                               */
    const char *member; /* name of the member being read, for messages; NULL: the file */

    uint64_t at;                /* where trace_bytes reads next                          */
    const trace_entry *current; /* the selected tensor                                   */
    uint64_t done;              /* elements of it that have been read                    */
    int finished;               /* finish() has been called                              */
    unsigned char *buffer;      /* for codes on their way to values                      */
};

/* text.c */

/* trace_fail -- an error in the data of t (exit 3), which names the member being read. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
int trace_fail(const trace *t, trace_error *error, uint64_t offset, const char *message, ...);

/* names.c */

/* trace_kind_named -- the word of the vocabulary that n characters are, or NULL. */
const char *trace_kind_named(const char *word, size_t n);

/* kinds.c */

/* trace_find_kinds -- kind and fqn of the tensors of a file whose directory is read. */
int trace_find_kinds(trace *t, const trace_options *options, trace_error *error);

/* trace_find_step -- what trace_step says of a file whose directory is read. */
int64_t trace_find_step(const trace *t);

/* trace.c: a trace of a path, of which nothing is known; NULL without memory. And once its tensors are: what they are of kinds and
 * steps, and what codes and scales are together. NULL with *error filled, and the trace is closed, where that fails, or had. */
trace *trace_new(const char *path, const trace_options *options, trace_error *error);
trace *trace_finish(trace *t, const trace_options *options, int failed, trace_error *error);

/* source.c */

/* trace_source_open -- set t->fd and t->size; pipes are spooled, packed streams unpacked (t->packing). */
int trace_source_open(trace *t, const trace_options *options, trace_error *error);

/* folder.c */

/* trace_folder -- the layout of a directory that is one trace as a whole; NULL: it is none, or errno is ENOMEM. */
const trace_layout_type *trace_folder(const char *path);

/* trace_folder_has -- whether a name in it is a file of such a trace. */
int trace_folder_has(const trace_layout_type *type, const char *name);

/* shards.c */

/* trace_is_index -- whether a file that begins so is an index of shards. */
int trace_is_index(const unsigned char *head, size_t n);

/* trace_shards -- visit the names of the files of an index, while it returns 0; what is no index has none. What the last visit
 * returned; -1 and ENOMEM without memory. */
int trace_shards(const char *path, int (*visit)(void *context, const char *file), void *context);

/* unread.c */

/* trace_find_unread -- why the numbers of a tensor are not read, of all tensors whose kinds are known. */
void trace_find_unread(trace *t);

/* quantised.c with quantisedhint.c and quantisedread.c */

/* trace_find_quantised -- codes and scales of a trace whose directory is read become tensors. */
int trace_find_quantised(trace *t, const trace_options *options, trace_error *error);

/* layout.c */

/* trace_layout_of -- the layout that the first bytes of a file look like, or NULL. */
const trace_layout_type *trace_layout_of(const unsigned char *head, size_t n);

/* trace_layout_unknown -- why a file has no layout. */
int trace_layout_unknown(const trace *t, const unsigned char *head, size_t n, trace_error *error);

/* memory.c: everything here lives until trace_close, and is NULL if there is no memory */
void *trace_alloc(trace *t, size_t n);
char *trace_string(trace *t, const char *s, size_t n);
char *trace_utf8(trace *t, const char *s); /* s, or s escaped if it is not UTF-8 */
int trace_is_utf8(const char *s);
/* trace_shows -- more bytes of tensors that may show the same bytes of the file again and again, or none: whether all of
 * them are more than the times of the file's bytes (packed, if it is) that --max-ratio says, beyond 64 MiB. */
int trace_shows(trace *t, const trace_options *options, uint64_t bytes);
/* trace_ratio -- the times. */
uint64_t trace_ratio(const trace_options *options);
trace_entry *trace_add(trace *t, trace_error *error); /* a zeroed entry; checks the limits */
int trace_add_metadata(trace *t, const char *key, const char *value, trace_error *error);
/* trace_order -- sort entries by (offset, size, at); 0, or -1 without memory. */
int trace_order(trace *t);
void trace_memory_clear(trace *t);

/* trace_entry_named -- the entry whose tensor.name is at that place. */
static inline const trace_entry *trace_entry_named(const char *const *name)
{
    return (const trace_entry *)(const void *)((const char *)name - offsetof(trace_entry, tensor.name));
}
/* trace_duplicate -- the later one of two equal strings, or NULL; *failed: no memory. */
const char *const *trace_duplicate(const char *const *strings, size_t n, size_t stride, int *failed);

/* read.c */

/* trace_pread -- read up to n bytes at an offset, fewer only at the end of the file; -1 and
 * errno on failure. */
ssize_t trace_pread(int fd, void *p, size_t n, uint64_t offset);

/* trace_file_pread -- the same of the file of t, from byte `at` of its own on. */
ssize_t trace_file_pread(const trace *t, void *p, size_t n, uint64_t at);

/* trace_was_read -- whether a read of n bytes at `at`, which gave r, gave all of them: 0, or -1 after the error. */
int trace_was_read(const trace *t, ssize_t r, size_t n, uint64_t at, trace_error *error);

/* trace_width -- bytes of an element of an entry; 1 where several are packed into a byte: bytes are its elements then. */
size_t trace_width(const trace_entry *e);

/* trace_stored -- n elements of an entry, which may be of no format, from element `first` on: as they are stored, in
 * the byte order of the host. From several threads at once, of a trace that is flat. */
int trace_stored(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error);

/* trace_select_stored -- trace_select of any entry, for trace_read_codes. */
int trace_select_stored(trace *t, size_t entry, trace_error *error);

/* trace_bytes -- the next n bytes at t->at of the file or of the selected member. */
int trace_bytes(trace *t, void *p, size_t n, trace_error *error);

/* dtype.c */

/* trace_shape_bytes -- count and size of a shape with `bits` per element; -1 if the product overflows, for which
 * dimensions of 0 count as 1 (as in NumPy: no product of some of them overflows), -2 if the size is not a whole number of bytes. */
int trace_shape_bytes(const uint64_t *shape, size_t rank, unsigned bits, uint64_t *count, uint64_t *bytes);

typedef struct trace_dtype {
    const char *name;   /* safetensors                       */
    uint8_t bits;       /* per element in the file           */
    const char *format; /* of mpsim_format_find, or NULL     */
} trace_dtype;

const trace_dtype *trace_dtype_find(const char *name);
/* trace_dtype_packing -- how its elements share bytes: the first in the lowest bits. */
quant_packing trace_dtype_packing(const trace_dtype *d);
/* trace_dtype_format -- the format of its elements, NULL if they are not read: integers are where the options say. */
const mpsim_format *trace_dtype_format(const trace_dtype *d, const trace_options *options);

/* trace_npy_dtype -- what a descr of an npy header means: sets dtype, format and big_endian
 * of *tensor and *bits. `at` is the offset of the descr for messages. */
int trace_npy_dtype(trace *t, const char *descr, uint64_t at, const trace_options *options, trace_tensor *tensor,
                    unsigned *bits, trace_error *error);

/* plainentry.c */
typedef struct trace_description {
    char dtype[100];
    uint64_t shape[TRACE_RANK_MAX], range[2];
    size_t rank;
} trace_description;

/* trace_plain_string -- the bytes of the JSON string that begins the text, quotes included, if it is one of
 * printable ASCII without escapes; else 0. */
size_t trace_plain_string(const char *text, size_t n);
/* trace_plain_entry -- the same for the description of a tensor, which is filled in. */
size_t trace_plain_entry(trace_description *d, const char *text, size_t n);

/* llmc.c */

/* trace_llmc_begins -- whether a file of llm.c begins so. */
int trace_llmc_begins(const unsigned char *head, size_t n);

/* msgpack.c, onnx.c: the like */
int trace_msgpack_begins(const unsigned char *head, size_t n);
int trace_onnx_begins(const unsigned char *head, size_t n);
/* trace_core_ml -- what a file is that begins as a model of Core ML, which is protobuf, too; NULL: it does not. */
const char *trace_core_ml(const unsigned char *head, size_t n);

/* npyheader.c */
typedef struct npy_header {
    char descr[64];
    uint64_t descr_at, shape_at; /* offsets in the header's text */
    int fortran;
    uint64_t shape[TRACE_RANK_MAX];
    size_t rank;
    char holds[56]; /* the format that our writer names behind the dict, where the descr is bytes: "# mpsim: bf16" */
} npy_header;

/* trace_npy_header_parse -- the text of a header; NULL, or why not, with *at. */
const char *trace_npy_header_parse(npy_header *h, const char *text, size_t n, size_t *at);

/* npy.c */

/* trace_npy_entry -- read the header of the npy stream at t->at (0), which has `size` bytes,
 * and fill *entry but for the name. *header_bytes is what the prefix took. Of an array of anything but numbers
 * t->not_numbers is set. */
int trace_npy_entry(trace *t, uint64_t size, const trace_options *options, trace_entry *entry, uint64_t *header_bytes,
                    trace_error *error);

/* zipdir.c: a strict look at the structure of a zip file */
typedef struct zip_member {
    const char *name;     /* as in the directory, terminated     */
    uint64_t offset, end; /* of the local header; past the data            */
    uint64_t size, packed;
    uint32_t crc, index; /* index: position in the central directory       */
    uint16_t method;     /* 0: stored, 8: deflated                         */
} zip_member;

/* trace_zip_directory -- all members in the order of their offsets, to be freed by the caller. */
int trace_zip_directory(trace *t, zip_member **members, size_t *n, trace_error *error);

/* trace_zip_check_local -- whether the header in front of a member says what the directory says. */
int trace_zip_check_local(const trace *t, const zip_member *m, trace_error *error);

/* npz.c, torch.c -- the rest of opening, once zip.c has read the directory. */
int trace_npz_open(trace *t, const zip_member *members, size_t n, const trace_options *options, trace_error *error);
int trace_torch_open(trace *t, const zip_member *members, size_t n, const trace_options *options, trace_error *error);
int trace_torch_package_open(trace *t, const zip_member *members, size_t n, const trace_options *options,
                             trace_error *error);
/* torchzip.c: trace_torch_package -- the member that makes an archive one of torch.package, in the folder of its data, or NULL. */
const zip_member *trace_torch_package(const zip_member *members, size_t n);

/* torchexport.c: trace_torch_exported -- the member that lists the weights of an exported program, or NULL. */
const zip_member *trace_torch_exported(const zip_member *members, size_t n);
int trace_torch_export_open(trace *t, const zip_member *members, size_t n, const zip_member *config,
                            const trace_options *options, trace_error *error);

/* unzip.c: libzip, for what is packed. trace_unzip is a zip_t, trace_unzipped a zip_file_t. */
typedef struct zip trace_unzip;
typedef struct zip_file trace_unzipped;
trace_unzip *trace_unzip_open(const trace *t, trace_error *error);
void trace_unzip_close(trace_unzip *z); /* accepts NULL */
/* trace_unzip_failed -- an error from libzip's last one in an archive. */
int trace_unzip_failed(const trace *t, trace_unzip *z, const char *what, trace_error *error);
trace_unzipped *trace_unzip_member(const trace *t, trace_unzip *z, uint64_t index, trace_error *error);
/* trace_unzip_name -- the name of a member, for messages; NULL: it has none. */
const char *trace_unzip_name(trace_unzip *z, uint64_t index);
/* trace_unzip_bytes -- the next n bytes of a member, which is to have them; `at` is for messages. */
int trace_unzip_bytes(const trace *t, trace_unzipped *file, void *p, size_t n, uint64_t at, trace_error *error);
/* trace_unzip_end -- whether the member ends here, with the right CRC. */
int trace_unzip_end(const trace *t, trace_unzipped *file, uint64_t at, trace_error *error);
void trace_unzip_end_member(trace_unzipped *file); /* accepts NULL */
