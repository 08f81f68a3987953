/* npz.c -- zip archives of npy members, read through libzip. */
#include "../text/words.h"
#include "impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

typedef struct npz {
    zip_t *zip;
    zip_file_t *file; /* the member being read, or NULL */
    char left[1000];  /* members that hold no numbers: names and why */
    size_t n_left;
    trace_error first; /* why of the first */
} npz;

static void close_member(npz *z)
{
    trace_unzip_end_member(z->file);
    z->file = NULL;
}

static int open_member(trace *t, uint64_t index, trace_error *error)
{
    npz *z = t->state;
    close_member(z);
    z->file = trace_unzip_member(t, z->zip, index, error);
    t->at = 0;
    return z->file ? 0 : -1;
}

static int npz_bytes(trace *t, void *p, size_t n, trace_error *error)
{
    return trace_unzip_bytes(t, ((npz *)t->state)->file, p, n, t->at, error);
}

static int npz_finish(trace *t, trace_error *error)
{
    return trace_unzip_end(t, ((npz *)t->state)->file, t->at, error);
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
    return bad ? trace_fail(t, error, TRACE_NO_OFFSET, "the name is absolute or leads out of the archive") : 0;
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

/* A member that holds texts, objects or dates (scipy.sparse.save_npz writes one) is noted, and the others are read. */
static void note_member(trace *t, const char *name, const trace_error *error)
{
    npz *z = t->state;
    char shown[256];
    const char *dtype = strstr(error->text, "dtype '");
    if (z->n_left++ == 0)
        z->first = *error;
    if (strlen(z->left) < sizeof z->left - 300)
        text_add(z->left, sizeof z->left, "%s%s (%s)", *z->left ? ", " : "", escape_text(shown, sizeof shown, name),
                 dtype ? dtype : "a structured dtype");
}

/* The rest of a member that is to be left out: its header is believed where its bytes are those that were written. -1: they are
 * not, and *error says so. */
static int check_rest(trace *t, uint64_t size, trace_error *error)
{
    char rest[4096];
    while (t->at < size)
        if (trace_bytes(t, rest, size - t->at < sizeof rest ? (size_t)(size - t->at) : sizeof rest, error))
            return -1;
    return npz_finish(t, error);
}

/* One member becomes a tensor. *budget is what all headers together may take, because a
 * deflated header costs its author a thousandth of what it costs the reader. */
static int add_member(trace *t, const zip_member *m, const trace_options *options, uint64_t *budget, trace_error *error)
{
    npz *z = t->state;
    trace_error damage;
    zip_stat_t st;
    const char *zip_name = utf8_name(z->zip, m->index);
    if (!zip_name || zip_stat_index(z->zip, m->index, 0, &st))
        return trace_unzip_failed(t, z->zip, "the zip archive is not consistent", error);
    const size_t n = strlen(zip_name);
    const uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_CRC | ZIP_STAT_COMP_METHOD;
    char *name = trace_string(t, zip_name, n);
    if (!name)
        return trace_no_memory(t, error);
    t->member = name;
    if ((st.valid & need) != need || st.size != m->size || st.comp_size != m->packed || st.crc != m->crc ||
        st.comp_method != m->method)
        return trace_fail(t, error, m->offset, "the zip archive can be read in two ways");
    if (check_name(t, name, error))
        return -1;
    if (n && name[n - 1] == '/' && m->size == 0)
        return 0; /* a directory */
    if (n < 4 || strcmp(name + n - 4, ".npy") != 0)
        return trace_fail(t, error, m->offset,
                          "not an npy member, and no member is a data.pkl, as PyTorch's files have one");

    uint64_t header = 0;
    trace_entry *e = trace_add(t, error);
    if (!e || open_member(t, m->index, error))
        return -1;
    const int bad = trace_npy_entry(t, m->size, options, e, &header, error);
    const int damaged = bad && t->not_numbers && check_rest(t, m->size, &damage);
    close_member(z);
    if (damaged)
        *error = damage;
    if (damaged || (bad && !t->not_numbers))
        return -1;
    if (header > *budget)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "the headers of the members are together above the cap of %" PRIu64 " bytes", t->max_header);
    *budget -= header;
    if (bad)
        note_member(t, name, error);
    name[n - 4] = 0;
    e->tensor.name = name;
    e->at = m->index;
    return 0;
}

/* An archive of such members alone is no file of tensors. */
static int say_left(trace *t, trace_error *error)
{
    const npz *z = t->state;
    char text[1200];
    if (z->n_left == 0)
        return 0;
    if (t->count == z->n_left) {
        *error = z->first;
        return -1;
    }
    snprintf(text, sizeof text, "%zu member%s: %s", z->n_left, text_plural(z->n_left), z->left);
    char *value = trace_string(t, text, strlen(text));
    return value ? trace_add_metadata(t, TRACE_NOT_READ, value, error) : trace_no_memory(t, error);
}

int trace_npz_open(trace *t, const zip_member *members, size_t n, const trace_options *options, trace_error *error)
{
    uint64_t budget = t->max_header;
    int failed = 0;
    npz *z = calloc(1, sizeof *z);
    if (!(t->state = z))
        return trace_no_memory(t, error);
    for (size_t i = 0; i < n; i++)
        if (trace_zip_check_local(t, &members[i], error))
            return -1;
    if (!(z->zip = trace_unzip_open(t, error)))
        return -1;
    if ((uint64_t)zip_get_num_entries(z->zip, 0) != n)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the zip archive can be read in two ways");
    for (size_t i = 0; i < n; i++)
        if (add_member(t, &members[i], options, &budget, error))
            return -1;
    t->member = NULL;
    if (say_left(t, error))
        return -1;
    if (t->count) {
        const char *const *twice = trace_duplicate(&t->entries[0].tensor.name, t->count, sizeof *t->entries, &failed);
        if (failed)
            return trace_no_memory(t, error);
        if (twice)
            return trace_fail(t, error, TRACE_NO_OFFSET, "two members have the name '%s.npy'", *twice);
    }
    return 0;
}

static void close_npz(trace *t)
{
    npz *z = t->state;
    if (!z)
        return;
    close_member(z);
    trace_unzip_close(z->zip);
    free(z);
    t->state = NULL;
}

const trace_layout_type trace_layout_npz = {
    .name = "npz", .start = npz_start, .bytes = npz_bytes, .finish = npz_finish, .close = close_npz};
