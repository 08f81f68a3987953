/* badfile.h -- good and bad tensor files, made byte by byte, and what a reader says of them.
 *
 * Item numbers are those of the list of bad inputs that the readers are accepted by: 1 to 25
 * safetensors, 26 to 38 npy and npz, 53 to 58 generic. */
#pragma once

#include "sim/trace/trace.h"

#include <check.h>
#include <stddef.h>
#include <stdint.h>

/* What NumPy calls binary32 as it lies in memory here. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BAD_FLOAT ">f4"
#else
#define BAD_FLOAT "<f4"
#endif

/* Bytes under construction. */
typedef struct blob {
    unsigned char *data;
    size_t n, room;
} blob;

void blob_add(blob *b, const void *p, size_t n);
void blob_fill(blob *b, char c, size_t n);
void blob_int(blob *b, uint64_t u, unsigned bytes); /* little-endian */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void blob_text(blob *b, const char *format, ...);
void blob_set(blob *b, size_t at, uint64_t u, unsigned bytes);
void blob_clear(blob *b);

/* A path in the private directory of this program; valid until the eighth call after it. */
const char *bad_path(const char *name);
/* Write a file there and clear the blob; returns its path. */
const char *bad_write(const char *name, blob *b);

/* A safetensors file: length, header, then `data` bytes 0, 1, 2, ... */
blob bad_safetensors(const char *header, size_t data);
/* An npy file of the given version whose dict is `dict`, padded as numpy does. */
blob bad_npy(int version, const char *dict, const void *payload, size_t n);
uint32_t bad_crc32(const void *p, size_t n);

/* Open a file and read everything in it. */
typedef struct outcome {
    int failed;
    trace_error error;
    size_t tensors;
    uint64_t elements; /* that have values */
    double first[8];   /* of them          */
} outcome;

outcome bad_read(const char *path, const trace_options *options);

/* Reading the file must fail with this exit code, in one line that begins with the path and
 * holds the fragment. */
void bad_expect(int item, const char *what, const char *path, const trace_options *options, int exit_code,
                const char *fragment);

/* Run work(context) in a child process: its peak memory in KiB and its processor time. */
void bad_measure(void (*work)(const void *context), const void *context, long *kib, double *seconds);
/* The criterion for every input: 64 MiB and the header cap, two seconds (six on a core that is shared). The memory of the
 * test program itself counts as well. */
void bad_within_limits(const char *what, void (*work)(const void *context), const void *context, double header_mib);
/* work for the two above: bad_read; must_fail */
void bad_read_ok(const void *path);
void bad_read_fails(const void *path);

/* Every prefix of the file and every single-byte change must be read or refused cleanly. */
void bad_damage_all(const char *name, const blob *good, const trace_options *options);

/* test_main in a private directory, which is removed at the end. */
int bad_main(const char *suite, TCase *const *cases);
