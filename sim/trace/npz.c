/* npz.c -- zip archives of npy members, read through libzip. */
#include "impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { NO_MEMORY_OF_ZLIB = -4 }; /* Z_MEM_ERROR */

typedef struct npz {
    zip_t *zip;
    zip_file_t *file; /* the member being read, or NULL */
} npz;

static int zip_failed(const trace *t, zip_error_t *z, const char *what, trace_error *error)
{
    const int code = zip_error_code_zip(z);
    const int system = zip_error_code_system(z);
    if (code == ZIP_ER_MEMORY || code == ZIP_ER_NOZIP || /* what is none was told by npz_directory */
        (code == ZIP_ER_ZLIB && system == NO_MEMORY_OF_ZLIB) ||
        (zip_error_system_type(z) == ZIP_ET_SYS && system == ENOMEM))
        return trace_no_memory(t, error);
    if (code == ZIP_ER_CRC)
        return trace_fail(t, error, TRACE_NO_OFFSET, "wrong CRC: the data are damaged");
    if (code == ZIP_ER_READ && system != 0)
        return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "cannot read: %s",
                               zip_error_strerror(z));
    return trace_fail(t, error, TRACE_NO_OFFSET, "%s: %s", what, zip_error_strerror(z));
}

static int open_zip(trace *t, npz *z, trace_error *error)
{
    int code = 0;
    const int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET, "cannot read: %s",
                               strerror(errno));
    z->zip = zip_fdopen(fd, ZIP_CHECKCONS, &code);
    if (z->zip)
        return 0;
    close(fd);
    /* NOENT: an extra field that a local header needs is missing */
    if (code == ZIP_ER_INCONS || code == ZIP_ER_NOENT)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the zip archive is not consistent: local "
                          "headers contradict the directory");
    zip_error_t e;
    zip_error_init_with_code(&e, code);
    const int result = zip_failed(t, &e, "the zip archive is not consistent", error);
    zip_error_fini(&e);
    return result;
}

static void close_member(npz *z)
{
    if (z->file)
        zip_fclose(z->file);
    z->file = NULL;
}

static int open_member(trace *t, uint64_t index, trace_error *error)
{
    npz *z = t->state;
    close_member(z);
    z->file = zip_fopen_index(z->zip, index, 0);
    t->at = 0;
    return z->file ? 0 : zip_failed(t, zip_get_error(z->zip), "cannot open the member", error);
}

static int npz_bytes(trace *t, void *p, size_t n, trace_error *error)
{
    npz *z = t->state;
    for (size_t got = 0; got < n;) {
        const zip_int64_t r = zip_fread(z->file, (char *)p + got, n - got);
        if (r < 0)
            return zip_failed(t, zip_file_get_error(z->file), "cannot unpack", error);
        if (r == 0)
            return trace_fail(t, error, t->at + got, "the member ends here, before the size that "
                              "the zip directory has");
        got += (size_t)r;
    }
    return 0;
}

/* libzip compares the CRC when it meets the end. */
static int npz_finish(trace *t, trace_error *error)
{
    npz *z = t->state;
    char beyond;
    const zip_int64_t r = zip_fread(z->file, &beyond, 1);
    if (r < 0)
        return zip_failed(t, zip_file_get_error(z->file), "cannot unpack", error);
    if (r > 0)
        return trace_fail(t, error, t->at, "the member is longer than the zip directory says");
    return 0;
}

static int npz_start(trace *t, const trace_entry *entry, trace_error *error)
{
    char skipped[4096];
    t->member = entry->tensor.name;
    if (open_member(t, entry->at, error))
        return -1;
    while (t->at < entry->tensor.offset) {
        const uint64_t left = entry->tensor.offset - t->at;
        if (trace_bytes(t, skipped, left < sizeof skipped ? (size_t)left : sizeof skipped, error))
            return -1;
    }
    return 0;
}

/* Names are data and never become paths here; but an archive with such names was made to
 * harm somebody, and is not to be trusted with anything else. */
static int check_name(const trace *t, const char *name, trace_error *error)
{
    int bad = name[0] == '/' || name[0] == '\\';
    for (const char *s = name; s && !bad; s = strchr(s, '/'), s = s ? s + 1 : NULL)
        bad = strncmp(s, "..", 2) == 0 && (s[2] == '/' || s[2] == 0 || s[2] == '\\');
    return bad ? trace_fail(t, error, TRACE_NO_OFFSET,
                            "the name is absolute or leads out of the archive")
               : 0;
}

/* The name as it stands in the file if that is UTF-8, flagged or not, else as libzip takes it:
 * code page 437. */
static const char *utf8_name(zip_t *z, uint64_t index)
{
    const char *raw = zip_get_name(z, index, ZIP_FL_ENC_RAW);
    size_t n = 1;
    uint32_t c;
    for (const char *s = raw; s && *s && n; s += n)
        n = utf8_character(s, &c);
    return n ? raw : zip_get_name(z, index, ZIP_FL_ENC_GUESS);
}

/* One member becomes a tensor. *budget is what all headers together may take, because a
 * deflated header costs its author a thousandth of what it costs the reader. */
static int add_member(trace *t, const npz_member *m, const trace_options *options,
                      uint64_t *budget, trace_error *error)
{
    npz *z = t->state;
    zip_stat_t st;
    const char *zip_name = utf8_name(z->zip, m->index);
    if (!zip_name || zip_stat_index(z->zip, m->index, 0, &st))
        return zip_failed(t, zip_get_error(z->zip), "the zip archive is not consistent", error);
    const size_t n = strlen(zip_name);
    const uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    char *name = trace_string(t, zip_name, n);
    if (!name)
        return trace_no_memory(t, error);
    t->member = name;
    if ((st.valid & need) != need || st.size != m->size || st.comp_size != m->packed ||
        st.crc != m->crc || st.comp_method != m->method)
        return trace_fail(t, error, m->offset, "the zip archive can be read in two ways");
    if (check_name(t, name, error))
        return -1;
    if (n && name[n - 1] == '/' && m->size == 0)
        return 0; /* a directory */
    if (n >= 8 && strcmp(name + n - 8, "data.pkl") == 0)
        return trace_fail(t, error, m->offset, "this is a PyTorch file, whose pickle is never "
                          "loaded: save it as safetensors");
    if (n < 4 || strcmp(name + n - 4, ".npy") != 0)
        return trace_fail(t, error, m->offset, "not an npy member");

    uint64_t header = 0;
    trace_entry *e = trace_add(t, error);
    if (!e || open_member(t, m->index, error) ||
        trace_npy_entry(t, m->size, options, e, &header, error))
        return -1;
    close_member(z);
    if (header > *budget)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the headers of the members are together "
                          "above the cap of %" PRIu64 " bytes", t->max_header);
    *budget -= header;
    name[n - 4] = 0;
    e->tensor.name = name;
    e->at = m->index;
    return 0;
}

static int open_npz(trace *t, const trace_options *options, trace_error *error)
{
    npz_member *members = NULL;
    size_t n;
    uint64_t budget = t->max_header;
    int result = -1, failed = 0;
    npz *z = calloc(1, sizeof *z);
    if (!(t->state = z))
        return trace_no_memory(t, error);
    if (npz_directory(t, &members, &n, error) || open_zip(t, z, error))
        goto done;
    if ((uint64_t)zip_get_num_entries(z->zip, 0) != n) {
        trace_fail(t, error, TRACE_NO_OFFSET, "the zip archive can be read in two ways");
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        if (add_member(t, &members[i], options, &budget, error))
            goto done;
    t->member = NULL;
    if (t->count) {
        const char *const *twice = trace_duplicate(&t->entries[0].tensor.name, t->count,
                                                   sizeof *t->entries, &failed);
        if (failed)
            trace_no_memory(t, error);
        else if (twice)
            trace_fail(t, error, TRACE_NO_OFFSET, "two members have the name '%s.npy'", *twice);
        if (failed || twice)
            goto done;
    }
    result = 0;
done:
    free(members);
    return result;
}

static void close_npz(trace *t)
{
    npz *z = t->state;
    if (!z)
        return;
    close_member(z);
    if (z->zip)
        zip_discard(z->zip);
    free(z);
    t->state = NULL;
}

const trace_layout_type trace_layout_npz = {.name = "npz",
                                            .open = open_npz,
                                            .start = npz_start,
                                            .bytes = npz_bytes,
                                            .finish = npz_finish,
                                            .close = close_npz};
