/* fuzz-torch.c -- any bytes as a pickle or a legacy stream, and as the pickle of a PyTorch archive with four
 * storages: they are read or refused. What is read is what the tensors promise, also in pieces. */
#include "input.h"
#include "members.h"
#include "sim/trace/impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORAGES = 4, STORAGE = 96, PIECE = 50, WHOLE = 1 << 16, MEMBERS = STORAGES + 1, LOOKED_UP = 100 };

static void check(const trace_error *e)
{
    must(e->exit == 3 || e->exit == 4);
    must_be_line(e->text);
}

/* All of a tensor at once, if it is small: the same as its first piece. */
static void read_whole(const trace *t, const trace_entry *e, const unsigned char *piece, size_t bytes)
{
    trace_error error;
    unsigned char *all = e->bytes <= WHOLE ? malloc((size_t)e->bytes) : NULL;
    if (all && t->type->codes(t, e, 0, all, (size_t)e->tensor.count, &error))
        check(&error);
    else if (all)
        must(memcmp(all, piece, bytes) == 0);
    free(all);
}

/* Some elements from the beginning, from the middle and at the end, whole and one by one. */
static void read_some(const trace *t, const trace_entry *e)
{
    unsigned char codes[PIECE * 16], one[16];
    trace_error error;
    const uint64_t n = e->tensor.count, firsts[] = {0, n / 2, n > PIECE ? n - PIECE : 0};
    if (n == 0 || e->at == UINT64_MAX)
        return;
    const size_t width = (size_t)(e->bytes / n);
    must(width >= 1 && width <= 16);
    for (size_t k = 0; k < 3; k++) {
        const size_t m = n - firsts[k] < PIECE ? (size_t)(n - firsts[k]) : PIECE;
        if (t->type->codes(t, e, firsts[k], codes, m, &error)) {
            check(&error);
            return;
        }
        for (size_t i = 0; i < m; i++) {
            must(t->type->codes(t, e, firsts[k] + i, one, 1, &error) == 0);
            must(memcmp(one, codes + i * width, width) == 0);
        }
        if (k == 0)
            read_whole(t, e, codes, m * width);
    }
}

static void read_all(const char *path)
{
    const trace_options options = {.max_header = 1 << 20};
    trace_error e;
    trace *t = trace_open(path, &options, &e);
    if (!t) {
        check(&e);
        return;
    }
    for (size_t i = 0; trace_metadata_key(t, i); i++)
        must(trace_metadata_value(t, i) && (i >= LOOKED_UP || trace_metadata(t, trace_metadata_key(t, i))));
    /* layouts of other files have elements of less than a byte */
    for (size_t i = 0; t->type->codes && t->type->all_elements && i < trace_count(t) && i < 20; i++)
        read_some(t, &t->entries[i]);
    trace_close(t);
}

/* The pickle in an archive of PyTorch. */
static void read_in_archive(const uint8_t *data, size_t n)
{
    static members m = {.count = MEMBERS};
    static uint8_t storage[STORAGES][STORAGE];
    for (int i = 0; i < STORAGES; i++) {
        for (size_t k = 0; k < STORAGE; k++)
            storage[i][k] = (uint8_t)(k * 7 + (size_t)i + 1);
        m.of[i + 1] = (member){.bytes = storage[i], .n = STORAGE};
        snprintf(m.of[i + 1].name, MEMBER_NAME, "a/data/%d", i);
    }
    m.of[0] = (member){.name = "a/data.pkl", .bytes = (uint8_t *)(uintptr_t)data, .n = n};
    size_t size;
    uint8_t *zip = members_write(&m, &size);
    read_all(input_path(zip, size));
    free(zip);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    read_all(input_path(data, n));
    if (n <= MEMBER_MOST)
        read_in_archive(data, n);
    return 0;
}
