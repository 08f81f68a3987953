/* owndigests.c -- see owndigests.h. */
#include "owndigests.h"

#include "../cli/options.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

/* ---- all but the tensors' elements ---- */

typedef struct sum {
    uint64_t digest, bytes;
} sum;

static void add(sum *s, const char *text)
{
    const size_t n = strlen(text) + 1; /* the zero byte keeps texts apart */
    s->digest += mpsim_digest_bytes(text, n, s->bytes);
    s->bytes += n;
}

static void add_count(sum *s, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    add(s, text);
}

static void add_tensor(sum *s, const char *name, const mpsim_format *f, const uint64_t *shape,
                       size_t rank, uint64_t digest)
{
    add(s, name);
    add(s, f->name);
    add_count(s, rank);
    for (size_t i = 0; i < rank; i++)
        add_count(s, shape[i]);
    add_count(s, digest);
}

/* ---- writing ---- */

char *own_digests_text(const stored_list *l, const char *const (*metadata)[2], size_t n_metadata)
{
    sum s = {0, 0};
    size_t n;
    char *text = NULL;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return NULL;
    for (size_t i = 0; i < n_metadata; i++) {
        add(&s, metadata[i][0]);
        add(&s, metadata[i][1]);
    }
    for (size_t i = 0; i < l->count; i++) {
        const stored_tensor *x = &l->items[i];
        const size_t bytes = (size_t)x->count * mpsim_format_code_bytes(x->format);
        const uint64_t digest = mpsim_digest_bytes(x->codes, bytes, 0);
        add_tensor(&s, x->name, x->format, x->shape, x->rank, digest);
        fprintf(f, "%s %016" PRIx64 "\n", x->name, digest);
    }
    fprintf(f, "all %016" PRIx64 "\n", s.digest);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- checking ---- */

static int damaged(const trace *t, trace_error *error, const char *what)
{
    return trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX, "damaged: %s", what);
}

/* "NAME DIGEST" and a new line at *text: behind it. 0, or -1. */
static int take_line(const char **text, const char *name, uint64_t *digest)
{
    static const char hex[] = "0123456789abcdef";
    const size_t n = strlen(name);
    if (strncmp(*text, name, n) != 0 || (*text)[n] != ' ')
        return -1;
    const char *p = *text + n + 1;
    *digest = 0;
    for (int i = 0; i < 16; i++, p++) {
        const char *at = *p ? strchr(hex, *p) : NULL;
        if (!at)
            return -1;
        *digest = *digest << 4 | (uint64_t)(at - hex);
    }
    if (*p != '\n')
        return -1;
    *text = p + 1;
    return 0;
}

/* Names, formats, shapes, metadata; the digests that the tensors are to have. */
static int check_head(const trace *t, const char *key, uint64_t *digests, trace_error *error)
{
    const char *text = trace_metadata(t, key), *k;
    sum s = {0, 0};
    uint64_t all = 0;
    for (size_t i = 0; (k = trace_metadata_key(t, i)) != NULL; i++)
        if (strcmp(k, key) != 0) {
            add(&s, k);
            add(&s, trace_metadata_value(t, i));
        }
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        if (take_line(&text, x->name, &digests[i]))
            return trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX,
                                   "damaged: tensor '%s' is not the one that was written here",
                                   x->name);
        if (!x->format)
            return damaged(t, error, "a tensor without a format");
        add_tensor(&s, x->name, x->format, x->shape, x->rank, digests[i]);
    }
    if (take_line(&text, "all", &all) || *text)
        return damaged(t, error, "its list of tensors and digests is not the one that was written");
    return all == s.digest ? 0
                           : damaged(t, error, "its metadata, or names, formats and shapes of its "
                                               "tensors, do not have the digest that it gives");
}

static int check_tensor(trace *t, size_t i, uint64_t want, trace_error *error)
{
    unsigned char block[8 << 10];
    const trace_tensor *x = trace_at(t, i);
    const uint64_t bytes = x->count * mpsim_format_code_bytes(x->format);
    uint64_t digest = 0;
    if (trace_select(t, i, error))
        return -1;
    for (uint64_t at = 0; at < bytes;) {
        const size_t n = bytes - at < sizeof block ? (size_t)(bytes - at) : sizeof block;
        if (trace_read_bytes(t, block, n, error))
            return -1;
        digest += mpsim_digest_bytes(block, n, at);
        at += n;
    }
    return digest == want ? 0
                          : trace_error_set(error, EXIT_DATA, trace_path(t), UINT64_MAX,
                                            "damaged: tensor '%s' has digest %016" PRIx64
                                            ", not %016" PRIx64, x->name, digest, want);
}

int own_digests_check(trace *t, const char *key, trace_error *error)
{
    uint64_t *digests = calloc(trace_count(t) + 1, sizeof *digests);
    if (!digests)
        return trace_error_set(error, EXIT_IO, trace_path(t), UINT64_MAX, "out of memory");
    int bad = !trace_metadata(t, key) ? damaged(t, error, "its digests are missing")
                                      : check_head(t, key, digests, error);
    for (size_t i = 0; i < trace_count(t) && !bad; i++)
        bad = check_tensor(t, i, digests[i], error);
    free(digests);
    return bad;
}
