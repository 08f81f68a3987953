/* trace.h -- tensors from files of any layout: libmpsim-trace, a library beside libmpsim (pkg-config mpsim-trace).
 *
 * It reads all that the program mpsim reads: safetensors, PyTorch, npy, npz, GGUF, Flax, ONNX, llm.c, HDF5 if that is
 * built in, raw elements; files that are packed (gzip, zstd, ...), checkpoints in many files, directories. A file is
 * recognised by its content. Codes with scales of blocks are one tensor, of the numbers that they represent. Input is
 * not trusted: what a file claims is checked before it is believed, memory is bounded, and pickles are data.
 *
 * Nothing here prints, ends the program, starts threads or changes how signals are handled. (Libraries that it uses
 * may end the program themselves where there is no memory: jansson, for JSON with long strings; libarchive, for what is
 * packed by anything but gzip; and glibc 2.36, which compiles the rules of `map`.) What fails gives a status, and why as one line of printable UTF-8 in the caller's buffer:
 * `size` bytes at `error`, which may be NULL; a longer line is cut. It says which file. Where nothing fails the buffer
 * is untouched.
 *
 * The rule of mpsim/mpsim.h for pointers holds here, too: functions with a status refuse NULL; of the others mpsim_reader_close
 * alone takes it. A reader is for one thread at a time; readers are independent of each other, and threads may have one each. While a
 * function runs, its thread has the locale "C" and the default floating-point environment, and its own again
 * afterwards. Files without a name, for what is packed or comes from a pipe, are made in $TMPDIR, else in /tmp. */
#ifndef MPSIM_TRACE_H
#define MPSIM_TRACE_H

#include <mpsim/format.h>

MPSIM_BEGIN

typedef struct mpsim_reader mpsim_reader;

/* An option of the program without its dashes, and its argument; the argument of one that takes none is "1".
 *
 *   match        names that fit, as "wgrad:*"; may be repeated          kind        kinds, as "agrad,wgrad"
 *   map          what names mean, a rule or @FILE; may be repeated      stored      "parts", or a layout of codes and scales
 *   dtype        files are raw elements of this format; then also       as          integers are codes of this format
 *                shape ("2,3"), offset (bytes), big-endian ("1")        assume      npy: "V1=e4m3,V2=bf16"
 *   max-header, max-ratio  caps on headers (bytes) and unpacking        keep-going  "1": bad files become notes
 *
 * `mpsim stat --help` and doc/reference/names.md say more. */
typedef struct mpsim_option {
    const char *name, *value;
} mpsim_option;

/* One tensor. All of it belongs to the reader. Fields may be added at the end. */
typedef struct mpsim_tensor {
    const char *name;           /* its key in the file; "" for the array of an npy or raw file               */
    const char *kind;           /* "weight" "act" "out" "agrad" "dgrad" "wgrad" "opt.m" "opt.v" "opt.vmax" "master";
                                   NULL: not known                                                           */
    const char *fqn;            /* the parameter or module; the name where the kind is not known             */
    const char *dtype;          /* as the file spells it: "BF16", "<f4"                                      */
    const mpsim_format *format; /* of the elements; NULL: they are not floating-point numbers               */
    const char *element;        /* what mpsim_reader_codes gives: the name of the format, or "int8" to "int64", "uint8"
                                   to "uint64", "bool", "complex64"; NULL: the elements cannot be read      */
    size_t code_bytes;          /* of such an element, 1 to 8; 0 where there is none                         */
    const uint64_t *shape;      /* dimensions, the slowest first                                             */
    size_t dimensions;
    uint64_t count;        /* elements: the product of the shape; 1 without dimensions                  */
    int column_major;      /* 1: elements follow each other by the first dimension (Fortran), not by the last */
    int64_t step;          /* of the training that its file belongs to; -1: not known                   */
    int64_t rank;          /* of the process that saved it; -1: not known                               */
    const char *file;      /* where it is, or begins                                                    */
    uint64_t offset;       /* of its first byte in that file, or in the archive's member or what is unpacked of it */
    const char *layout;    /* "safetensors", "torch", "npy (gzip)"                                      */
    const char *quantised; /* what it is made of, as "torchao MXTensor: codes e2m1, scales e8m0 of 1x32", and `format`
                              is that of the numbers; NULL: it is stored as it is                       */
    int in_order;          /* 1: it is packed, and reading backwards begins anew at its first element   */
} mpsim_tensor;

/* mpsim_reader_open -- read what tensors there are in the files of n_paths paths, at least one: files, directories (all
 * files of tensors below them, in natural order of their paths: step_2 before step_10), "-" (standard input). The
 * n_options options (may be NULL and 0) select tensors and say how files are read. At most 64 files stay open:
 * others are opened again, by the same paths, and unpacked again, when their elements are read. What can be read once stays.
 *
 * MPSIM_ENOTFOUND: there is no such option; MPSIM_EINVAL: it takes no such argument, or there is no path; MPSIM_EDATA:
 * a file is not one of tensors, or damaged; MPSIM_EIO: it cannot be opened or read; MPSIM_ENOMEM. *r is NULL then. */
MPSIM_API mpsim_status mpsim_reader_open(mpsim_reader **r, const char *const *paths, size_t n_paths,
                                         const mpsim_option *options, size_t n_options, char *error, size_t size);

/* mpsim_reader_close -- and free all that belongs to it. Accepts NULL. */
MPSIM_API void mpsim_reader_close(mpsim_reader *r);

/* mpsim_reader_count -- tensors, in the order of files, and of their places there. mpsim_reader_tensor: number i; NULL
 * past the last one. */
MPSIM_API size_t mpsim_reader_count(const mpsim_reader *r);
MPSIM_API const mpsim_tensor *mpsim_reader_tensor(const mpsim_reader *r, size_t i);

/* mpsim_reader_note -- line i of what a reader of the record should know (files that are passed over, names that clash,
 * what is not read); NULL past the last one. */
MPSIM_API const char *mpsim_reader_note(const mpsim_reader *r, size_t i);

/* The n elements of tensor i from element `first` on, counted as they are stored (`column_major`).
 *
 *   mpsim_reader_f64    their values, exactly
 *   mpsim_reader_f32    the same, rounded to nearest, ties to even, where the format is wider than binary32
 *   mpsim_reader_codes  as they are stored: code_bytes each, in the byte order of this machine
 *
 * MPSIM_EINVAL: there is no such tensor, it has no such elements, or not of this type; MPSIM_EDATA: the file is damaged,
 * or has changed since it was opened; MPSIM_EIO; MPSIM_ENOMEM. The contents of the array are undefined then. */
MPSIM_API mpsim_status mpsim_reader_f64(mpsim_reader *r, size_t i, uint64_t first, size_t n, double *values,
                                        char *error, size_t size);
MPSIM_API mpsim_status mpsim_reader_f32(mpsim_reader *r, size_t i, uint64_t first, size_t n, float *values, char *error,
                                        size_t size);
MPSIM_API mpsim_status mpsim_reader_codes(mpsim_reader *r, size_t i, uint64_t first, size_t n, void *codes, char *error,
                                          size_t size);

MPSIM_END

#endif
