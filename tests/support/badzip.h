/* badzip.h -- zip archives of npy members, made byte by byte, with the places of their parts,
 * so that a test can lie in any field. Offsets of fields are those of APPNOTE.TXT. */
#pragma once

#include "badfile.h"

#define DICT(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape ", }"

typedef struct archive {
    blob b;
    size_t local[8], central[8], end; /* where the headers are */
    size_t members;
} archive;

/* Append one part. streamed: sizes and CRC in a data descriptor behind the data. */
void archive_member(archive *a, const char *name, const blob *data, int streamed);
void archive_central(archive *a, size_t i, const char *name, const blob *data, int streamed);
void archive_end(archive *a);

/* A whole archive of arrays of three floats each: i + 1, 2, 3. */
archive archive_of(size_t n, const char *const *names, int streamed);
archive archive_of_two(void); /* a.npy and b.npy */

/* The same two members, with zip64 records in front of the end record that state `count`
 * members and values that are wrong by the rest. */
archive archive_zip64(uint64_t count, uint64_t size_lie, uint64_t offset_lie, uint64_t place_lie);

/* The npy file of one such array. */
blob archive_array(float first);
