/* torchdata.c -- the bytes of storages: sections of a file, or members of an archive that are unpacked into a
 * temporary file when the first of their bytes is wanted. CRCs are compared then. */
#include "unnamed.h"
#include "torch.h"
#include "whole.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNSEEN, BUSY, READY, DAMAGED };

torch_state *trace_torch_state_new(trace *t, trace_error *error)
{
    torch_state *s = calloc(1, sizeof *s);
    if (!s) {
        trace_no_memory(t, error);
        return NULL;
    }
    s->spool = -1;
    atomic_flag_clear(&s->unpacking);
    atomic_flag_clear(&s->gathering);
    /* CRC-32 of zip (APPNOTE.TXT 6.3.9, 4.4.7), eight bytes at a time: table k is a byte followed by k zeros */
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        s->crc_table[0][i] = c;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t i = 0; i < 256; i++) {
            const uint32_t c = s->crc_table[k - 1][i];
            s->crc_table[k][i] = c >> 8 ^ s->crc_table[0][c & 0xff];
        }
    t->state = s;
    return s;
}

void trace_torch_close(trace *t)
{
    torch_state *s = t->state;
    if (!s)
        return;
    trace_unzip_close(s->unzip);
    if (s->spool >= 0)
        close(s->spool);
    free(s->sections);
    free(s->places);
    free(s->ahead);
    free(s);
    t->state = NULL;
}

torch_section *trace_torch_section_add(trace *t, uint32_t *at, trace_error *error)
{
    torch_state *s = t->state;
    if (s->n_sections == s->sections_room) {
        const size_t room = s->sections_room ? s->sections_room + s->sections_room / 2 : 16;
        torch_section *p = room < UINT32_MAX ? realloc(s->sections, room * sizeof *p) : NULL;
        if (!p) {
            trace_no_memory(t, error);
            return NULL;
        }
        s->sections = p;
        s->sections_room = room;
    }
    torch_section *section = &s->sections[s->n_sections];
    memset(section, 0, sizeof *section);
    *at = (uint32_t)s->n_sections++;
    return section;
}

static uint32_t crc32_of(const torch_state *s, uint32_t crc, const unsigned char *p, size_t n)
{
    const uint32_t(*table)[256] = s->crc_table;
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t c = crc ^ (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
        crc = table[7][c & 0xff] ^ table[6][c >> 8 & 0xff] ^ table[5][c >> 16 & 0xff] ^ table[4][c >> 24] ^
              table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
    }
    for (; n; n--, p++)
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    return crc;
}

/* From the file, or what has been unpacked of it. */
static int read_all(const trace *t, int spooled, void *p, size_t n, uint64_t at, trace_error *error)
{
    const torch_state *s = t->state;
    const ssize_t r = spooled ? trace_pread(s->spool, p, n, at) : trace_file_pread(t, p, n, at);
    return trace_was_read(t, r, n, at, error);
}

int trace_torch_spool_begin(const trace *t, trace_error *error)
{
    torch_state *s = t->state;
    if (s->spool >= 0)
        return 0;
    s->spool = trace_unnamed_file();
    if (s->spool < 0)
        return trace_error_io(error, t->path, TRACE_NO_OFFSET, "cannot create a temporary file in %s to unpack to",
                              trace_unnamed_place());
    return 0;
}

int trace_torch_spool(const trace *t, const void *p, size_t n, trace_error *error)
{
    torch_state *s = t->state;
    if (trace_whole_write_at(s->spool, p, n, s->spool_end))
        return trace_error_io(error, t->path, TRACE_NO_OFFSET, "cannot unpack to a temporary file in %s",
                              trace_unnamed_place());
    s->spool_end += n;
    return 0;
}

enum { CHUNK = 256 << 10 };

/* libzip compares the CRC. */
static int unpack(const trace *whole, torch_section *section, unsigned char *buffer, trace_error *error)
{
    torch_state *s = whole->state;
    trace named = *whole; /* errors say which member it was */
    const trace *t = &named;
    if (trace_torch_spool_begin(t, error) || (!s->unzip && !(s->unzip = trace_unzip_open(t, error))))
        return -1;
    named.member = trace_unzip_name(s->unzip, section->index);
    const uint64_t room = trace_unnamed_room(s->spool);
    if (section->bytes > room)
        return trace_error_set(error, TRACE_EXIT_IO, t->path, TRACE_NO_OFFSET,
                               "a member unpacks to %" PRIu64 " bytes, more "
                               "than the %" PRIu64 " that a temporary file in %s has room for: set TMPDIR",
                               section->bytes, room, trace_unnamed_place());
    trace_unzipped *file = trace_unzip_member(t, s->unzip, section->index, error);
    if (!file)
        return -1;
    const uint64_t first = s->spool_end;
    int failed = 0;
    for (uint64_t done = 0; done < section->bytes && !failed; done += CHUNK) {
        const size_t n = section->bytes - done < CHUNK ? (size_t)(section->bytes - done) : CHUNK;
        failed = trace_unzip_bytes(t, file, buffer, n, done, error) || trace_torch_spool(t, buffer, n, error);
    }
    failed = failed || trace_unzip_end(t, file, section->bytes, error);
    trace_unzip_end_member(file);
    if (!failed) {
        section->at = first;
        section->spooled = 1;
    }
    return failed ? -1 : 0;
}

/* The CRC of a stored member; 1: it is another one. */
static int compare_crc(const trace *t, const torch_section *section, unsigned char *buffer, trace_error *error)
{
    uint32_t crc = 0xffffffff;
    for (uint64_t done = 0; done < section->bytes; done += CHUNK) {
        const size_t n = section->bytes - done < CHUNK ? (size_t)(section->bytes - done) : CHUNK;
        if (read_all(t, 0, buffer, n, section->at + done, error))
            return -1;
        crc = crc32_of(t->state, crc, buffer, n);
    }
    return (crc ^ 0xffffffff) != section->crc;
}

static int damaged(const trace *t, const torch_section *section, trace_error *error)
{
    return trace_fail(t, error, section->at, "wrong CRC: the %" PRIu64 " bytes from here on are damaged",
                      section->bytes);
}

/* The thread that makes a section ready: another state of it, or -1. */
static int make_ready(const trace *t, torch_section *section, trace_error *error)
{
    torch_state *s = t->state;
    unsigned char *buffer = malloc(section->bytes < CHUNK ? (size_t)section->bytes + 1 : CHUNK);
    if (!buffer)
        return trace_no_memory(t, error);
    int result;
    if (section->packed) {
        while (atomic_flag_test_and_set(&s->unpacking))
            sched_yield();
        result = unpack(t, section, buffer, error) ? -1 : READY;
        atomic_flag_clear(&s->unpacking);
    } else {
        const int other = compare_crc(t, section, buffer, error);
        result = other < 0 ? -1 : other ? DAMAGED : READY;
    }
    free(buffer);
    return result;
}

int trace_torch_ready(const trace *t, uint32_t at, trace_error *error)
{
    torch_section *section = &((torch_state *)t->state)->sections[at];
    for (;;) {
        int state = atomic_load_explicit(&section->state, memory_order_acquire);
        if (state == READY)
            return 0;
        if (state == DAMAGED)
            return damaged(t, section, error);
        if (state == UNSEEN && !section->packed && !section->has_crc) {
            atomic_store(&section->state, READY);
            return 0;
        }
        if (state == UNSEEN && atomic_compare_exchange_strong(&section->state, &state, BUSY)) {
            const int result = make_ready(t, section, error);
            atomic_store_explicit(&section->state, result < 0 ? UNSEEN : result, memory_order_release);
            if (result < 0)
                return -1;
        } else {
            sched_yield();
        }
    }
}

int trace_torch_bytes(const trace *t, uint32_t at, void *p, size_t n, uint64_t from, trace_error *error)
{
    const torch_state *s = t->state;
    const torch_section *section = &s->sections[at];
    return read_all(t, section->spooled, p, n, section->at + from, error);
}
