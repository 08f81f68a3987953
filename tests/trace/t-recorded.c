/* t-recorded.c -- files that other programs wrote: every tensor there has the dtype, the shape and the codes that their
 * libraries gave (recorded/record.py, recorded/digests.tsv). */
#include "config.h"
#include "support/badfile.h"
#include "sim/text/sha256.h"
#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 10000 };

typedef struct row {
    char file[160], tensor[160], dtype[32], shape[64], digest[80];
} row;

static FILE *open_list(void)
{
    char path[4400];
    const char *source = getenv("MPSIM_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/trace/recorded/digests.tsv", source ? source : ".");
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    return f;
}

/* A line of five cells, the fourth of which may be empty. */
static int next_row(FILE *f, row *r)
{
    char line[600];
    char *const cells[] = {r->file, r->tensor, r->dtype, r->shape, r->digest};
    static const size_t sizes[] = {sizeof r->file, sizeof r->tensor, sizeof r->dtype, sizeof r->shape,
                                   sizeof r->digest};
    if (!fgets(line, sizeof line, f))
        return 0;
    line[strcspn(line, "\n")] = '\0';
    char *rest = line;
    for (size_t i = 0; i < 5; i++) {
        char *cell = strsep(&rest, "\t");
        ck_assert_msg(cell != NULL, "%zu cells", i);
        snprintf(cells[i], sizes[i], "%s", cell);
    }
    return 1;
}

/* The libraries that this program was built without. */
static const char *const left_out[] = {
#ifndef HAVE_LIBARCHIVE
    ".xz",
#endif
#ifndef HAVE_HDF5
    ".h5", ".keras",
#endif
    NULL};

static int is_left_out(const char *name)
{
    const char *last = strrchr(name, '.'), *dot = last ? last : "";
    int i = 0;
    while (left_out[i] && strcmp(dot, left_out[i]) != 0)
        i++;
    return left_out[i] != NULL;
}

static trace *open_file(const char *name)
{
    static const trace_options options = {.max_ratio = 100000};
    char path[4400];
    const char *source = getenv("MPSIM_SRCDIR");
    trace_error e;
    if (is_left_out(name))
        return NULL;
    snprintf(path, sizeof path, "%s/tests/trace/recorded/%s", source ? source : ".", name);
    trace *t = trace_open(path, &options, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    return t;
}

static void compare(trace *t, const row *r, size_t i)
{
    char shape[64] = "", digest[65];
    unsigned char codes[PIECE * 8];
    trace_error e;
    size_t n = 0, got = 1;
    sha256 s;
    const trace_tensor *x = trace_at(t, i);
    ck_assert_msg(x != NULL && strcmp(x->name, r->tensor) == 0, "%s, %zu: '%s' is '%s'", r->file, i, r->tensor,
                  x ? x->name : "");
    ck_assert_msg(strcmp(x->dtype, r->dtype) == 0, "%s, %s: %s", r->file, x->name, x->dtype);
    for (size_t k = 0; k < x->rank; k++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRIu64, k ? "," : "", x->shape[k]);
    ck_assert_msg(strcmp(shape, r->shape) == 0, "%s, %s: shape %s", r->file, x->name, shape);
    ck_assert_msg((x->format != NULL) == (r->digest[0] != '-'), "%s, %s: format", r->file, x->name);
    if (!x->format)
        return;
    const size_t width = mpsim_format_code_bytes(x->format);
    sha256_init(&s);
    ck_assert_msg(trace_select(t, i, &e) == 0, "%s", e.text);
    while (got) {
        ck_assert_msg(trace_read_codes(t, codes, PIECE, &got, &e) == 0, "%s", e.text);
        trace_to_little_endian(codes, width, got);
        sha256_add(&s, codes, got * width);
    }
    sha256_hex(&s, digest);
    ck_assert_msg(strcmp(digest, r->digest) == 0, "%s, %s: %s", r->file, x->name, digest);
    /* from another place: the last elements again */
    if (trace_is_flat(t) && x->count > 1) {
        unsigned char again[8];
        ck_assert(trace_codes(t, i, x->count - 1, again, 1, &e) == 0);
        const size_t last = (size_t)((x->count - 1) % PIECE);
        trace_to_little_endian(again, width, 1);
        ck_assert(memcmp(again, codes + last * width, width) == 0);
    }
}

CASE("recorded", 120);

TEST(every_tensor_is_as_recorded)
{
    row r;
    char name[160] = "";
    trace *t = NULL;
    size_t i = 0, tensors = 0, files = 0;
    FILE *f = open_list();
    while (next_row(f, &r)) {
        if (strcmp(r.file, name) != 0) {
            ck_assert_msg(!t || i == trace_count(t), "%s has more than %zu tensors", name, i);
            trace_close(t);
            snprintf(name, sizeof name, "%s", r.file);
            t = open_file(name);
            printf("# %s%s\n", name, t ? "" : ": left out, its library is not there");
            files += t != NULL;
            i = 0;
        }
        if (t)
            compare(t, &r, i++);
        tensors += t != NULL;
    }
    ck_assert(!t || i == trace_count(t));
    trace_close(t);
    fclose(f);
    printf("# %zu files, %zu tensors\n", files, tensors);
    ck_assert(tensors > 60);
}

TEST_MAIN_BY(bad_main, "recorded");
