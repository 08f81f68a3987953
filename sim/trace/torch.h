/* torch.h -- what the files of PyTorch's layouts share (torch*.c).
 *
 * Calls go one way: torch.c knows the forms of files (torchzip.c, torchlegacy.c), whose pickles
 * become trees (torchpickle.c with torchglobal.c); torchtree.c walks a tree and makes tensors of it
 * (torchrebuild.c, torchnumpy.c, torchquantised.c, torchtensor.c) over storages, whose bytes are sections of the file or unpacked (torchdata.c);
 * torchview.c delivers elements in the order of their tensor.
 *
 * Sources: torch/serialization.py, torch/_utils.py, torch/_tensor.py, torch/_weights_only_unpickler.py of PyTorch
 * 1.0.1, 1.13.1 and 2.6.0; files of seven versions (tests/trace/torch). */
#pragma once

#include "../pickle/pickle.h"
#include "impl.h"

#include <stdatomic.h>

enum { TORCH_NESTED_MAX = 4, TORCH_DEPTH_MAX = 100, TORCH_NAME_MAX = 64 << 10, TORCH_VALUE_MAX = 1000 };

/* ---- bytes (torchdata.c) ---- */

/* A run of bytes: of the file, or of a packed member, which is unpacked into the spool before the first byte of
 * it is read. The CRC of a member is compared then, once. */
typedef struct torch_section {
    uint64_t at, bytes; /* of a packed member: of the spool, once it is ready */
    uint32_t crc, index;
    uint8_t spooled; /* in the spool and not in the file                   */
    uint8_t packed, has_crc;
    atomic_int state; /* of torchdata.c                                      */
} torch_section;

typedef struct torch_dtype {
    const char *name;    /* torch's: "float32"                                    */
    const char *storage; /* "FloatStorage", or NULL                               */
    uint8_t bytes;       /* of an element                                         */
    const char *format;  /* of mpsim_format_find, or NULL                         */
} torch_dtype;

/* Elements of a dtype, whole or a part of a section. */
typedef struct torch_storage {
    uint32_t section;
    const torch_dtype *dtype; /* of its class; NULL: bytes           */
    uint64_t first, bytes;    /* of the section                      */
    uint8_t big_endian;
} torch_storage;

/* Where the elements of a tensor are: a view whose dimensions are joined where they follow each other. */
typedef struct torch_place {
    uint32_t section;
    uint8_t width, rank;  /* bytes of an element; dimensions that are left     */
    uint8_t flip;         /* the sign bit of each element is to be flipped     */
    uint8_t beyond;       /* it and those before it show too many bytes        */
    uint64_t first;       /* byte of the section                               */
    const uint64_t *size; /* rank dimensions, then rank strides, in elements   */
} torch_place;

typedef struct torch_state {
    torch_section *sections;
    size_t n_sections, sections_room;
    torch_place *places; /* entry.at is an index: of tensors whose elements can be read */
    size_t n_places, places_room;
    int spool;                   /* -1: nothing is unpacked                            */
    uint64_t ratio;              /* see trace_shows                                     */
    uint64_t spool_end, decoded; /* decoded: bytes of texts that became bytes */
    uint64_t nested;             /* bytes of files within pickles, each time they are read */
    atomic_flag unpacking;
    atomic_flag gathering; /* who has it may use what is kept of a strided tensor: */
    unsigned char *ahead;
    const torch_place *ahead_of;
    uint64_t ahead_first, ahead_n;
    trace_unzip *unzip;
    uint32_t crc_table[8][256];
    uint64_t no_crc;     /* members without a CRC                              */
    uint64_t rest;       /* bytes after what was read                          */
    int script;          /* it is a TorchScript archive                        */
    uint64_t no_numbers; /* tensors whose elements are nowhere                 */
    char classes[400];   /* of objects that are kept as data                   */
    char skipped[400];   /* what has no numbers that are understood            */
    uint64_t n_classes, n_skipped, n_cycles, n_dropped;
} torch_state;

torch_state *trace_torch_state_new(trace *t, trace_error *error);
void trace_torch_close(trace *t);

/* trace_torch_section_add -- a new section, its index in *at. */
torch_section *trace_torch_section_add(trace *t, uint32_t *at, trace_error *error);
/* trace_torch_ready -- whether the bytes of a section can be read; from any thread. */
int trace_torch_ready(const trace *t, uint32_t section, trace_error *error);
/* trace_torch_bytes -- n bytes of a section that is ready, from byte `from` on, which it has. */
int trace_torch_bytes(const trace *t, uint32_t section, void *p, size_t n, uint64_t from, trace_error *error);
/* trace_torch_spool -- bytes behind those in the spool; trace_torch_spool_begin makes it. Only while a file is opened, or
 * a section is made ready. */
int trace_torch_spool_begin(const trace *t, trace_error *error);
int trace_torch_spool(const trace *t, const void *p, size_t n, trace_error *error);

/* ---- pickles (torchpickle.c) ---- */

typedef struct torch_key {
    const char *key; /* of a storage, in the chars of the tree */
    size_t n;
    torch_storage storage;
    int known; /* the storage is */
} torch_key;

/* A tree and what its persistent ids stand for. */
typedef struct torch_tree {
    pickle *p;
    uint32_t section; /* the pickle is in        */
    int depth;        /* of trees within trees   */
    torch_key *keys;  /* in the order of key     */
    size_t n_keys;
    size_t accounted; /* memory of it that counts against the trace's */
} torch_tree;

/* trace_torch_pickle -- the pickle at `at` of a section. Memory counts against the trace's until trace_torch_tree_clear. */
int trace_torch_pickle(trace *t, torch_tree *tree, uint32_t section, uint64_t at, trace_error *error);
void trace_torch_tree_clear(trace *t, torch_tree *tree);
/* trace_torch_keys -- fill tree->keys: all storages that the tree names, with dtype and size as it says. */
int trace_torch_keys(trace *t, torch_tree *tree, trace_error *error);
torch_key *trace_torch_find_key(const torch_tree *tree, const char *key, size_t n);
/* trace_torch_unfold -- the bytes of a text or byte string as a section: in place, or decoded into the spool. */
int trace_torch_unfold(trace *t, const torch_tree *tree, pickle_ref r, uint32_t *section, uint64_t *first, uint64_t *n,
                       trace_error *error);
/* trace_torch_storage_of -- what a persistent id ('storage', ...) stands for. */
int trace_torch_storage_of(trace *t, const torch_tree *tree, pickle_ref r, torch_storage *storage, trace_error *error);

/* ---- globals (torchglobal.c) ---- */

typedef enum torch_role {
    TORCH_UNKNOWN,   /* a class that torch does not need: kept as data, and said */
    TORCH_DATA,      /* likewise, but not worth a word                           */
    TORCH_VALUE,     /* one value, shown as text                                 */
    TORCH_CONTENT,   /* stands for its first argument and what is added          */
    TORCH_ARGUMENT,  /* stands for its first argument alone                     */
    TORCH_TENSOR,    /* storage, offset, size, stride, dtype, metadata           */
    TORCH_FROM_TYPE, /* function, type, arguments, state                         */
    TORCH_SPARSE,    /* layout, tensors of which it consists                     */
    TORCH_PARTS,     /* likewise without layout                                  */
    TORCH_NOWHERE,   /* a tensor without elements, meta or a wrapper: dtype, size */
    TORCH_BYTES,     /* a nested file                                            */
    TORCH_ENCODED,   /* a byte string written as text                            */
    TORCH_ARRAY,     /* of numpy                                                 */
    TORCH_SCALAR
} torch_role;

typedef struct torch_global {
    const char *name;
    torch_role role;
    signed char arg[6]; /* places of arguments, -1: none; what they are depends on the role */
} torch_global;

enum { TORCH_GLOBAL_MAX = 1100 };

/* trace_torch_refused -- of pickle_rules; context: TORCH_GLOBAL_MAX chars. */
const char *trace_torch_refused(void *context, const pickle *p, pickle_ref what, pickle_use use);
/* trace_torch_global_find -- the row of a global by its name in any version of Python and numpy, or NULL. */
const torch_global *trace_torch_global_find(const char *name);
/* trace_torch_callable -- the name of what makes an object: of a global, of a method (in out), of a class behind a
 * persistent id; NULL: it has none. */
const char *trace_torch_callable(const pickle *p, pickle_ref callable, char *out, size_t size);

/* ---- dtypes (torchdtype.c) ---- */
const torch_dtype *trace_torch_dtype_find(const char *global);   /* "torch.float32"         */
const torch_dtype *trace_torch_storage_find(const char *global); /* "torch.FloatStorage"    */
int trace_torch_storage_untyped(const char *global);
/* trace_torch_format -- of a dtype by its name and format; of integers, what they are read as if the options say so. */
const mpsim_format *trace_torch_format(const trace_options *o, const char *dtype, const char *format);

/* ---- tensors (torchtensor.c) ---- */
typedef struct torch_view {
    torch_storage storage;
    int nowhere;        /* there are no elements                                  */
    const char *dtype;  /* as it is shown                                         */
    uint8_t width;      /* bytes of an element                                    */
    const char *format; /* of mpsim_format_find, or NULL                          */
    uint64_t offset;    /* elements                                               */
    uint64_t size[TRACE_RANK_MAX], stride[TRACE_RANK_MAX];
    size_t rank;
    int flip;
} torch_view;
/* trace_torch_add -- a tensor of that name. */
int trace_torch_add(trace *t, const trace_options *options, const char *name, const torch_view *view,
                    trace_error *error);
/* trace_torch_sizes -- a tuple of natural numbers; how many, or -1 after an error about `what` of the tensor `name`. */
int trace_torch_sizes(const trace *t, const pickle *p, pickle_ref r, const char *name, const char *what, uint64_t *out,
                      trace_error *error);

/* torchnumpy.c: an object that is an array of numpy becomes a tensor; 1: it holds no numbers. */
int trace_torch_add_array(trace *t, const trace_options *options, const torch_tree *tree, const char *name,
                          pickle_ref r, trace_error *error);
/* trace_torch_scalar_text -- a scalar of numpy as text; -1: its type is not known. */
int trace_torch_scalar_text(trace *t, const torch_tree *tree, pickle_ref r, char *out, size_t size);

/* ---- texts (torchtext.c) ---- */
/* trace_torch_text -- a value about as Python would show it, a text without quotes; -1: only its beginning fits. */
int trace_torch_text(const pickle *p, pickle_ref r, char *out, size_t size);

/* ---- tensors as torch rebuilds them (torchrebuild.c) ---- */

/* A way through a tree. */
typedef struct torch_walker {
    trace *t;
    const trace_options *options;
    torch_tree *tree;
    trace_error *error;
    char *path; /* TORCH_NAME_MAX */
    size_t path_bytes;
    uint64_t *steps, *texts; /* that are left; bytes of them                       */
    unsigned char *marks;    /* of every value                                     */
    torch_storage *storages; /* of nested files, each read once: by value           */
    uint32_t *storage_of;    /* from 1 on; NULL: there was none yet                 */
    size_t n_storages;
    char made[TORCH_GLOBAL_MAX], text[TORCH_VALUE_MAX]; /* room for a moment: a frame is one of a hundred */
} torch_walker;

/* An error about the tensor at the path; always -1. */
int trace_torch_bad_tensor(const torch_walker *w, const char *why);
/* trace_torch_rebuild -- a tensor, with elements or (TORCH_NOWHERE) without, of the arguments of a function. */
int trace_torch_rebuild(torch_walker *w, const torch_global *g, pickle_ref args);
/* trace_torch_rebuild_storage -- a storage that stands for itself: a tensor of all its elements. */
int trace_torch_rebuild_storage(torch_walker *w, pickle_ref r);

/* ---- trees (torchtree.c) ---- */
/* trace_torch_walk -- the tensors and values of a tree, of several one after the other, below a path ("": none). trace_torch_walk_end frees the
 * walker, and tells a failure or a name that occurs twice. Both take NULL, what there is without memory, for a failure. */
torch_walker *trace_torch_walk_begin(trace *t, const trace_options *options, trace_error *error);
int trace_torch_walk(torch_walker *w, const char *path, torch_tree *tree);
int trace_torch_walk_end(torch_walker *w, int failed);

/* ---- named tuples (torchfields.c) ---- */
/* trace_torch_fields -- the names of the fields of such a class, up to NULL; NULL: it is not known. */
const char *const *trace_torch_fields(const char *made);

/* ---- quantised tensors that a function makes (torchquantised.c) ---- */
/* trace_torch_quantised -- if `made` is such a function and the arguments are understood: their names, up to NULL, "" for those
 * that are not wanted, and what the elements are. Else NULL. */
const char *const *trace_torch_quantised(const pickle *p, const char *made, pickle_ref args, const char **element);
/* trace_torch_is_element -- whether an argument of that name is the type of the elements. */
int trace_torch_is_element(const char *argument);

/* ---- elements (torchview.c) ---- */
int trace_torch_codes(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                      trace_error *error);

/* ---- forms of files ---- */

/* torchlegacy.c. trace_torch_open_stream -- the tree of a section that is a legacy stream or one pickle, its storages
 * found; *legacy says which. */
int trace_torch_open_stream(trace *t, uint32_t section, torch_tree *tree, int *legacy, trace_error *error);
/* trace_torch_open_nested -- likewise of the bytes that a value of another tree is. */
int trace_torch_open_nested(trace *t, const torch_tree *from, pickle_ref r, torch_tree *tree, trace_error *error);

/* torchzip.c */
int trace_torch_open_zip(trace *t, const zip_member *members, size_t n, torch_tree *tree, trace_error *error);
/* trace_torch_open_package -- of an archive of torch.package all pickles, walked through. */
int trace_torch_open_package(torch_walker *w, const zip_member *members, size_t n);
