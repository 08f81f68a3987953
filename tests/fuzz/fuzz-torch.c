/* fuzz-torch.c -- any bytes as a pickle or a legacy stream, and as the pickle of a PyTorch archive with four
 * storages: they are read or refused. What is read is what the tensors promise, also in pieces. */
#include "input.h"
#include "sim/trace/impl.h"

#include <string.h>

enum { STORAGES = 4, STORAGE = 96, PIECE = 50, MEMBERS = STORAGES + 1 };

static void check(const trace_error *e)
{
    must(e->exit == 3 || e->exit == 4);
    must_be_line(e->text);
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
        must(trace_metadata(t, trace_metadata_key(t, i)) != NULL);
    for (size_t i = 0; t->type->codes && i < trace_count(t) && i < 20; i++)
        read_some(t, &t->entries[i]);
    trace_close(t);
}

static size_t put(uint8_t *p, uint64_t u, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = i < 8 ? (uint8_t)(u >> (8 * i)) : 0;
    return bytes;
}

/* A header of a member, local or in the directory; without a CRC. */
static size_t header(uint8_t *p, int central, const char *name, size_t size, size_t at)
{
    size_t n = put(p, central ? 0x02014b50 : 0x04034b50, 4);
    n += put(p + n, 20, central ? 4 : 2);
    n += put(p + n, 0, 12); /* flags, method, time, date, CRC */
    n += put(p + n, size, 4);
    n += put(p + n, size, 4);
    n += put(p + n, strlen(name), 2);
    n += put(p + n, 0, central ? 14 - 4 : 2);
    if (central) {
        n += put(p + n, 0, 2);
        n += put(p + n, at, 4);
    }
    memcpy(p + n, name, strlen(name));
    return n + strlen(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[MEMBERS] = {"a/data.pkl", "a/data/0", "a/data/1", "a/data/2", "a/data/3"};
    static uint8_t zip[(64 << 10) + MEMBERS * 256];
    size_t at[MEMBERS], n = 0;
    if (size > 60 << 10)
        return 0;
    read_all(input_path(data, size));
    for (int i = 0; i < MEMBERS; i++) {
        at[i] = n;
        n += header(zip + n, 0, names[i], i ? STORAGE : size, 0);
        for (size_t k = 0; k < STORAGE && i; k++)
            zip[n + k] = (uint8_t)(k * 7 + (size_t)i);
        if (i == 0 && size)
            memcpy(zip + n, data, size);
        n += i ? STORAGE : size;
    }
    const size_t directory = n;
    for (int i = 0; i < MEMBERS; i++)
        n += header(zip + n, 1, names[i], i ? STORAGE : size, at[i]);
    const size_t end = n;
    n += put(zip + n, 0x06054b50, 8);
    n += put(zip + n, MEMBERS, 2);
    n += put(zip + n, MEMBERS, 2);
    n += put(zip + n, end - directory, 4);
    n += put(zip + n, directory, 4);
    n += put(zip + n, 0, 2);
    read_all(input_path(zip, n));
    return 0;
}
