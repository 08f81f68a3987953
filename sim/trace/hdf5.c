/* hdf5.c -- HDF5 files through its library: every dataset is a tensor, named by its path, attributes are metadata.
 *
 * Only hard links are followed, each group once: soft and external links are named among the metadata. Plugins are
 * switched off (H5PLset_loading_state), virtual datasets, external storage and filters other than gzip, shuffle and
 * fletcher32 refused, so that no other file is opened and no other code runs. The library reads what it is given with
 * its own checks, which have had holes (CVE-2016-4333, CVE-2026-26200): that is why configure leaves it out unless told.
 *
 * Source: the reference manual of HDF5 1.10. */
#include "hdf5.h"

#include "../text/words.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

enum { DEPTH_MAX = 64 };

static mtx_t lock;
static once_flag once = ONCE_FLAG_INIT;

static void start(void)
{
    mtx_init(&lock, mtx_plain);
}

/* The library speaks only where it is asked to, and loads nothing. */
static void enter(void)
{
    call_once(&once, start);
    mtx_lock(&lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
}

static void leave(void)
{
    mtx_unlock(&lock);
}

static int compare(const void *pa, const void *pb)
{
    const uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

/* Whether an object has been seen before: 1, 0; -1 without memory. */
static int seen(hdf5 *h, uint64_t address)
{
    if (tfind(&address, &h->visited, compare))
        return 1;
    uint64_t *copy = trace_alloc(h->t, sizeof *copy);
    if (!copy)
        return -1;
    *copy = address;
    return tsearch(copy, &h->visited, compare) ? 0 : -1;
}

static void nothing(void *p)
{
    (void)p;
}

static int group(hdf5 *h, hid_t id);

/* An object below a hard link, h->path. */
static int object(hdf5 *h, hid_t id)
{
    H5O_info_t info;
    const H5I_type_t type = H5Iget_type(id);
    char why[160];
    if (H5Oget_info(id, &info) < 0)
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "'%s': %s", h->path, hdf5_why(why, sizeof why));
    const int known = type == H5I_GROUP || info.rc > 1 ? seen(h, info.addr) : 0;
    if (known < 0)
        return trace_no_memory(h->t, h->error);
    if (known || (type != H5I_GROUP && type != H5I_DATASET))
        return 0;
    if (hdf5_attributes(h, id))
        return -1;
    return type == H5I_GROUP ? group(h, id) : hdf5_dataset(h, id, info.addr);
}

/* H5Literate calls this with each link of a group. */
static herr_t link_of_group(hid_t id, const char *name, const H5L_info_t *info, void *context)
{
    hdf5 *h = context;
    char why[160];
    int bad;
    const size_t length = strlen(h->path), n = strlen(name);
    if (length + n + 2 > sizeof h->path)
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "'%s': a path of more than %zu bytes", h->path,
                          sizeof h->path);
    text_add(h->path, sizeof h->path, "%s%s", length ? "/" : "", name);
    if (info->type != H5L_TYPE_HARD) {
        bad = hdf5_keep(h, NULL,
                        info->type == H5L_TYPE_SOFT       ? "soft link, not followed"
                        : info->type == H5L_TYPE_EXTERNAL ? "external link, not followed"
                                                          : "link, not followed");
    } else {
        const hid_t o = H5Oopen(id, name, H5P_DEFAULT);
        bad = o < 0 ? trace_fail(h->t, h->error, TRACE_NO_OFFSET, "'%s': %s", h->path, hdf5_why(why, sizeof why))
                    : object(h, o);
        if (o >= 0)
            H5Oclose(o);
    }
    h->path[length] = '\0';
    return bad ? -1 : 0;
}

static int group(hdf5 *h, hid_t id)
{
    char why[160];
    hsize_t at = 0;
    if (h->depth == DEPTH_MAX)
        return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "'%s': groups are nested deeper than %d", h->path,
                          DEPTH_MAX);
    h->depth++;
    h->error->exit = 0;
    const herr_t code = H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, &at, link_of_group, h);
    h->depth--;
    if (code >= 0)
        return 0;
    if (h->error->exit) /* told by what was called */
        return -1;
    return trace_fail(h->t, h->error, TRACE_NO_OFFSET, "'%s': %s", h->path, hdf5_why(why, sizeof why));
}

static int open_file(hdf5 *h)
{
    char why[160];
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 && hdf5_drive(access, h->t) == 0)
        h->file = H5Fopen(h->t->path, H5F_ACC_RDONLY, access); /* a name for messages only */
    H5Pclose(access);
    return h->file >= 0 ? 0
                        : trace_fail(h->t, h->error, TRACE_NO_OFFSET, "the HDF5 library cannot open it: %s",
                                     hdf5_why(why, sizeof why));
}

static int open_hdf5(trace *t, const trace_options *options, trace_error *error)
{
    trace_error unheard;
    hdf5 *h = calloc(1, sizeof *h);
    if (!(t->state = h))
        return trace_no_memory(t, error);
    h->t = t;
    h->options = options;
    h->error = error ? error : &unheard;
    h->room = t->max_header;
    h->file = h->dataset = h->type = h->space = -1;
    enter();
    int bad = open_file(h);
    if (!bad) {
        const hid_t root = H5Oopen(h->file, "/", H5P_DEFAULT);
        bad = root < 0 ? trace_fail(t, h->error, TRACE_NO_OFFSET, "it has no root group") : object(h, root);
        if (root >= 0)
            H5Oclose(root);
    }
    tdestroy(h->visited, nothing);
    leave();
    h->error = NULL;
    return bad;
}

static int hdf5_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error)
{
    enter();
    const int bad = hdf5_read(t->state, e, first, codes, n, error);
    leave();
    return bad;
}

static void close_hdf5(trace *t)
{
    hdf5 *h = t->state;
    if (!h)
        return;
    enter();
    hdf5_release(h);
    if (h->file >= 0)
        H5Fclose(h->file);
    leave();
    free(h);
    t->state = NULL;
}

const trace_layout_type trace_layout_hdf5 = {
    .name = "hdf5", .open = open_hdf5, .codes = hdf5_codes, .close = close_hdf5, .only_numbers = 1};
