/* hdf5.h -- what the files of the HDF5 layout share. The library is not made for threads: every call of it is between
 * hdf5_enter and hdf5_leave. Of hdf5.c, in hdf5dataset.c, hdf5driver.c and
 * hdf5metadata.c.
 *
 * This is the only foreign reader of untrusted files, and off by default. */
#pragma once

#include "config.h"
#include "impl.h"

#include <hdf5.h>

enum { HDF5_NAME_MAX = 4096, HDF5_CHUNK_MAX = 32 << 20 };

typedef struct hdf5 {
    trace *t;
    const trace_options *options; /* while the file is opened */
    trace_error *error;
    uint64_t room; /* bytes of names and values that may be kept */
    hid_t file;
    void *visited; /* addresses of groups and of datasets of several names: a tree of tsearch */
    int depth;
    char path[HDF5_NAME_MAX]; /* of what is looked at, without the '/' before it */
    /* The dataset that was read last. */
    const trace_entry *entry;
    hid_t dataset, type, space;
} hdf5;

/* hdf5dataset.c */

/* hdf5_why -- what the library says went wrong, the innermost of it. */
const char *hdf5_why(char *out, size_t size);

/* hdf5_dataset -- the dataset becomes a tensor, named h->path. 0, or -1 with *h->error filled. */
int hdf5_dataset(hdf5 *h, hid_t dataset, uint64_t address);
/* hdf5_read -- n codes from element `first`, as they are stored. */
int hdf5_read(hdf5 *h, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error);
/* hdf5_release -- close what hdf5_read keeps open. */
void hdf5_release(hdf5 *h);

/* hdf5driver.c */

/* hdf5_drive -- files that are opened with this access list are read from t->fd. 0, or -1. */
int hdf5_drive(hid_t access, const trace *t);

/* hdf5metadata.c */

/* hdf5_attributes -- those of an object become metadata, PATH/NAME. 0, or -1 with *h->error filled. */
int hdf5_attributes(hdf5 *h, hid_t object);
/* hdf5_keep -- a pair of metadata: the path, with the name behind it if there is one. */
int hdf5_keep(hdf5 *h, const char *name, const char *value);
