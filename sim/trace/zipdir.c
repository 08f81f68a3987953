/* zipdir.c -- a strict look at the structure of a zip file, before libzip reads it.
 *
 * libzip compares local headers with the central directory, and trace_zip_check_local does it for what is read
 * without libzip. What it does not do is done here: one end record and nothing after it, nothing before the
 * first member, no members that share bytes (Fifield 2019, "A better zip bomb"), limits on count, sizes and
 * ratio. Two parsers that disagree are a way in, so npz.c compares their views of each member.
 * Source: APPNOTE.TXT 6.3.9, section 4.3. */
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_MAGIC = 0x06054b50, /* "PK\5\6": compared with every place at the end of a file, so as a number */
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    CENTRAL_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 65535,
    MEMBERS_MAX = 500000,
    RATIO_MAX = 1000,     /* deflate reaches 1032 with zeros; real data do not  */
    RATIO_FREE = 64 << 20 /* up to this size the ratio does not matter          */
};

typedef struct directory {
    trace *t;
    trace_error *error;
    uint64_t at, end; /* of the central directory                            */
    uint64_t members;
    unsigned char *window; /* a piece of it: window[0] is at `window_at`          */
    uint64_t window_at;
    size_t fill;
} directory;

static unsigned le16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static uint32_t le32(const unsigned char *p)
{
    return le16(p) | (uint32_t)le16(p + 2) << 16;
}

static uint64_t le64(const unsigned char *p)
{
    return le32(p) | (uint64_t)le32(p + 4) << 32;
}

static int read_at(const trace *t, void *p, size_t n, uint64_t at, trace_error *error)
{
    const ssize_t r = trace_file_pread(t, p, n, at);
    if (r < 0)
        return trace_error_io(error, t->path, at, "cannot read");
    if ((size_t)r < n)
        return trace_fail(t, error, at + (size_t)r, "the file ends here");
    return 0;
}

/* The end record must be the last thing in the file, and the only one that could be. */
static int check_end(const trace *t, trace_error *error)
{
    int result = -1;
    uint64_t found = 0;
    const size_t n = t->size < COMMENT_MAX + END_BYTES ? (size_t)t->size : COMMENT_MAX + END_BYTES;
    const uint64_t base = t->size - n;
    unsigned char *tail = malloc(n);
    if (!tail)
        return trace_no_memory(t, error);
    if (read_at(t, tail, n, base, error))
        goto done;
    for (size_t i = 0; i + END_BYTES <= n; i++)
        if (le32(tail + i) == END_MAGIC && i + END_BYTES + le16(tail + i + 20) == n) {
            if (found) {
                trace_fail(t, error, base + i, "two end records of a zip directory");
                goto done;
            }
            found = base + i + 1;
        }
    if (!found)
        trace_fail(t, error, t->size, "no zip directory at the end: the file is truncated, or something was appended");
    else if (found - 1 != t->size - END_BYTES)
        trace_fail(t, error, found - 1, "the zip directory is followed by a comment");
    else
        result = 0;
done:
    free(tail);
    return result;
}

/* A field of the end record, which zip64 may replace if it is all ones. */
static int widen(uint64_t *field, uint64_t ones, const unsigned char *wide)
{
    if (*field != ones && *field != le64(wide))
        return -1;
    *field = le64(wide);
    return 0;
}

static int find_directory(directory *d)
{
    const trace *t = d->t;
    unsigned char end[LOCATOR_BYTES + END_BYTES], wide[END64_BYTES];
    const uint64_t end_at = t->size - END_BYTES;
    unsigned char *e = end + LOCATOR_BYTES;
    uint64_t limit = end_at;
    memset(end, 0, sizeof end);
    if (end_at >= LOCATOR_BYTES ? read_at(t, end, sizeof end, end_at - LOCATOR_BYTES, d->error)
                                : read_at(t, e, END_BYTES, end_at, d->error))
        return -1;
    if (le16(e + 4) || le16(e + 6) || le16(e + 8) != le16(e + 10))
        return trace_fail(t, d->error, end_at, "zip archives in several parts are not supported");
    uint64_t size = le32(e + 12);
    d->members = le16(e + 10);
    d->at = le32(e + 16);
    if (memcmp(end, "PK\6\7", 4) == 0) {
        const uint64_t locator_at = end_at - LOCATOR_BYTES;
        limit = le64(end + 8);
        if (le32(end + 4) || le32(end + 16) > 1)
            return trace_fail(t, d->error, locator_at, "zip archives in several parts are not supported");
        if (limit > locator_at || locator_at - limit < END64_BYTES)
            return trace_fail(t, d->error, locator_at, "zip64 end record at %" PRIu64 " is not in front of its locator",
                              limit);
        if (read_at(t, wide, sizeof wide, limit, d->error))
            return -1;
        if (memcmp(wide, "PK\6\6", 4) != 0 || le64(wide + 4) != locator_at - limit - 12 || le32(wide + 16) ||
            le32(wide + 20) || le64(wide + 24) != le64(wide + 32))
            return trace_fail(t, d->error, limit, "zip64 end record is not valid");
        if (widen(&d->members, 0xffff, wide + 32) || widen(&size, 0xffffffff, wide + 40) ||
            widen(&d->at, 0xffffffff, wide + 48))
            return trace_fail(t, d->error, limit, "zip64 end record contradicts the end record");
    }
    if (d->members > MEMBERS_MAX)
        return trace_fail(t, d->error, end_at, "%" PRIu64 " members, more than %d", d->members, MEMBERS_MAX);
    if (size > t->max_header / 2)
        return trace_fail(t, d->error, end_at, "zip directory of %" PRIu64 " bytes is above the cap of %" PRIu64, size,
                          t->max_header / 2);
    if (d->at > limit || size != limit - d->at)
        return trace_fail(t, d->error, end_at,
                          "zip directory at %" PRIu64 " with %" PRIu64 " bytes does not end at its end record", d->at,
                          size);
    d->end = limit;
    return 0;
}

/* The next n bytes of the directory, which stay valid until the next call; NULL on error. */
static const unsigned char *take(directory *d, size_t n)
{
    enum { WINDOW = 256 << 10 }; /* more than the longest entry */
    const uint64_t left = d->end - d->at;
    const size_t room = left < WINDOW ? (size_t)left : WINDOW;
    if (n > left) {
        trace_fail(d->t, d->error, d->at, "zip directory ends within an entry");
        return NULL;
    }
    if (!d->window && !(d->window = malloc(room + 1))) { /* what is left later is less */
        trace_no_memory(d->t, d->error);
        return NULL;
    }
    if (d->at < d->window_at || d->at + n > d->window_at + d->fill) {
        d->window_at = d->at;
        d->fill = room;
        if (read_at(d->t, d->window, d->fill, d->at, d->error)) {
            d->fill = 0;
            return NULL;
        }
    }
    const unsigned char *p = d->window + (d->at - d->window_at);
    d->at += n;
    return p;
}

/* Sizes and offset that do not fit 32 bits stand in extra field 1, in this order. */
static int zip64_fields(const unsigned char *extra, size_t n, uint64_t *const field[3])
{
    while (n >= 4) {
        const size_t length = le16(extra + 2);
        if (length > n - 4)
            return -1;
        if (le16(extra) == 1) {
            size_t at = 4;
            for (int i = 0; i < 3; i++)
                if (*field[i] == 0xffffffff) {
                    if (at + 8 > 4 + length)
                        return -1;
                    *field[i] = le64(extra + at);
                    at += 8;
                }
            return 0;
        }
        extra += 4 + length;
        n -= 4 + length;
    }
    return *field[0] == 0xffffffff || *field[1] == 0xffffffff || *field[2] == 0xffffffff ? -1 : 0;
}

/* Where the data of a member end, by its local header. */
static int find_end(const directory *d, zip_member *m, unsigned flags, uint64_t at)
{
    unsigned char p[LOCAL_BYTES];
    if (m->offset > d->end || d->end - m->offset < LOCAL_BYTES)
        return trace_fail(d->t, d->error, at, "a zip member begins past the directory's end, at %" PRIu64, m->offset);
    if (read_at(d->t, p, sizeof p, m->offset, d->error))
        return -1;
    if (memcmp(p, "PK\3\4", 4) != 0)
        return trace_fail(d->t, d->error, m->offset, "no zip member where the directory has one");
    if (le16(p + 8) != m->method || ((le16(p + 6) ^ flags) & 1))
        return trace_fail(d->t, d->error, m->offset, "local header of a zip member contradicts the directory");
    const uint64_t data = m->offset + LOCAL_BYTES + le16(p + 26) + le16(p + 28);
    if (data > d->t->size || m->packed > d->t->size - data)
        return trace_fail(d->t, d->error, m->offset,
                          "a zip member of %" PRIu64 " bytes reaches past the end of the file", m->packed);
    m->end = data + m->packed;
    return 0;
}

static int entry(directory *d, zip_member *m)
{
    const uint64_t at = d->at;
    const unsigned char *p = take(d, CENTRAL_BYTES);
    if (!p)
        return -1;
    if (memcmp(p, "PK\1\2", 4) != 0)
        return trace_fail(d->t, d->error, at, "zip directory has no entry where one is expected");
    const unsigned flags = le16(p + 8);
    const size_t name_bytes = le16(p + 28), extra_bytes = le16(p + 30), comment = le16(p + 32);
    m->method = (uint16_t)le16(p + 10);
    m->crc = le32(p + 16);
    m->packed = le32(p + 20);
    m->size = le32(p + 24);
    m->offset = le32(p + 42);
    if (le16(p + 34) != 0)
        return trace_fail(d->t, d->error, at, "zip archives in several parts are not supported");
    if (flags & (1 | 1u << 6 | 1u << 13))
        return trace_fail(d->t, d->error, at, "a zip member is encrypted");
    if (m->method != 0 && m->method != 8)
        return trace_fail(d->t, d->error, at, "zip compression method %u is not supported; stored and deflated are",
                          (unsigned)m->method);
    const unsigned char *name = take(d, name_bytes + extra_bytes + comment);
    if (!name)
        return -1;
    if (memchr(name, 0, name_bytes))
        return trace_fail(d->t, d->error, at, "the name of a zip member has a NUL byte");
    if (!(m->name = trace_string(d->t, (const char *)name, name_bytes)))
        return trace_no_memory(d->t, d->error);
    if (zip64_fields(name + name_bytes, extra_bytes, (uint64_t *const[]){&m->size, &m->packed, &m->offset}))
        return trace_fail(d->t, d->error, at, "extra fields of a zip member are not valid");
    if (m->method == 0 && m->size != m->packed)
        return trace_fail(d->t, d->error, at, "a stored zip member has two sizes, %" PRIu64 " and %" PRIu64, m->packed,
                          m->size);
    if (m->size > RATIO_FREE && m->size / RATIO_MAX > m->packed)
        return trace_fail(d->t, d->error, at,
                          "a zip member of %" PRIu64 " bytes claims to unpack to %" PRIu64 ": more than %d to 1",
                          m->packed, m->size, RATIO_MAX);
    return find_end(d, m, flags, at);
}

static int compare_offsets(const void *pa, const void *pb)
{
    const zip_member *a = pa, *b = pb;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int check_extents(const directory *d, const zip_member *m, size_t n, uint64_t directory_at)
{
    if (n && m[0].offset != 0)
        return trace_fail(d->t, d->error, 0, "%" PRIu64 " bytes before the first zip member", m[0].offset);
    for (size_t i = 0; i < n; i++)
        if (m[i].end > (i + 1 < n ? m[i + 1].offset : directory_at))
            return trace_fail(d->t, d->error, m[i].offset, "a zip member overlaps what follows it");
    return 0;
}

int trace_zip_directory(trace *t, zip_member **members, size_t *n, trace_error *error)
{
    directory d = {.t = t, .error = error};
    zip_member *m = NULL;
    int result = -1;
    *members = NULL;
    *n = 0;
    if (t->size < END_BYTES)
        return trace_fail(t, error, t->size, "no zip directory at the end: the file is truncated");
    if (check_end(t, error) || find_directory(&d))
        return -1;
    const uint64_t directory_at = d.at;
    if (d.members * CENTRAL_BYTES > d.end - d.at)
        return trace_fail(t, error, d.at, "zip directory is too small for %" PRIu64 " members", d.members);
    if (!(m = calloc((size_t)d.members + 1, sizeof *m)))
        return trace_no_memory(t, error);
    for (uint32_t i = 0; i < d.members; i++) {
        m[i].index = i;
        if (entry(&d, &m[i]))
            goto done;
    }
    if (d.at != d.end) {
        trace_fail(t, error, d.at, "zip directory has more entries than the %" PRIu64 " it counts", d.members);
        goto done;
    }
    qsort(m, (size_t)d.members, sizeof *m, compare_offsets);
    if (check_extents(&d, m, (size_t)d.members, directory_at))
        goto done;
    *members = m;
    *n = (size_t)d.members;
    result = 0;
done:
    free(d.window);
    if (result)
        free(m);
    return result;
}

/* Bit 3: the sizes and the CRC follow the data, and may be 0 here. */
int trace_zip_check_local(const trace *t, const zip_member *m, trace_error *error)
{
    enum { WINDOW = 4096 };
    unsigned char p[LOCAL_BYTES + WINDOW];
    const size_t n = strlen(m->name), begin = n < WINDOW ? n : WINDOW;
    if (read_at(t, p, LOCAL_BYTES + begin, m->offset, error))
        return -1;
    const int later = le16(p + 6) & 1u << 3;
    const uint64_t said[] = {le32(p + 14), le32(p + 18), le32(p + 22)}, is[] = {m->crc, m->packed, m->size};
    int same = le16(p + 26) == n && memcmp(p + LOCAL_BYTES, m->name, begin) == 0;
    for (size_t at = begin, some; at < n && same;
         at += some) { /* names are at most 64 KiB, of which threads have few */
        some = n - at < WINDOW ? n - at : WINDOW;
        if (read_at(t, p, some, m->offset + LOCAL_BYTES + at, error))
            return -1;
        same = memcmp(p, m->name + at, some) == 0;
    }
    for (int i = 0; i < 3; i++)
        same &= said[i] == is[i] || (later && said[i] == 0) || (i && said[i] == 0xffffffff);
    return same
               ? 0
               : trace_fail(t, error, m->offset,
                            "the zip archive is not consistent: the local header of '%.200s' contradicts the directory",
                            m->name);
}
