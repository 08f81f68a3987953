/* owndigests.c -- see owndigests.h. */
#include "owndigests.h"

#include "impl.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- all but the tensors' elements ---- */

static void add(own_sum *s, const char *text)
{
    const size_t n = strlen(text) + 1; /* the zero byte keeps texts apart */
    s->digest += mpsim_digest_bytes(text, n, s->bytes);
    s->bytes += n;
}

static void add_count(own_sum *s, uint64_t n)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, n);
    add(s, text);
}

void trace_own_sum_pair(own_sum *s, const char *key, const char *value)
{
    add(s, key);
    add(s, value);
}

void trace_own_sum_tensor(own_sum *s, const char *name, const mpsim_format *f, const uint64_t *shape, size_t rank,
                          uint64_t digest)
{
    add(s, name);
    add(s, f->name);
    add_count(s, rank);
    for (size_t i = 0; i < rank; i++)
        add_count(s, shape[i]);
    add_count(s, digest);
}

/* ---- checking ---- */

static int damaged(const trace *t, trace_error *error, const char *what)
{
    return trace_error_set(error, TRACE_EXIT_DATA, t->path, TRACE_NO_OFFSET, "damaged: %s", what);
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
static int check_head(const trace *t, uint64_t *digests, trace_error *error)
{
    const char *text = trace_metadata(t, OWN_DIGESTS_KEY), *k;
    own_sum s = {0, 0};
    uint64_t all = 0;
    for (size_t i = 0; (k = trace_metadata_key(t, i)) != NULL; i++)
        if (strcmp(k, OWN_DIGESTS_KEY) != 0)
            trace_own_sum_pair(&s, k, trace_metadata_value(t, i));
    for (size_t i = 0; i < t->count; i++) {
        const trace_tensor *x = &t->entries[i].tensor;
        if (take_line(&text, x->name, &digests[i]))
            return trace_error_set(error, TRACE_EXIT_DATA, t->path, TRACE_NO_OFFSET,
                                   "damaged: tensor '%s' is not the one that was written here", x->name);
        if (!x->format)
            return damaged(t, error, "a tensor without a format");
        trace_own_sum_tensor(&s, x->name, x->format, x->shape, x->rank, digests[i]);
    }
    if (take_line(&text, "all", &all) || *text)
        return damaged(t, error, "its list of tensors and digests is not the one that was written");
    return all == s.digest ? 0
                           : damaged(t, error,
                                     "its metadata, or names, formats and shapes of its "
                                     "tensors, do not have the digest that it gives");
}

static int check_tensor(trace *t, size_t i, uint64_t want, trace_error *error)
{
    unsigned char block[8 << 10];
    const trace_tensor *x = &t->entries[i].tensor;
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
                          : trace_error_set(error, TRACE_EXIT_DATA, t->path, TRACE_NO_OFFSET,
                                            "damaged: tensor '%s' has digest %016" PRIx64 ", not %016" PRIx64, x->name,
                                            digest, want);
}

int trace_own_digests_check(trace *t, trace_error *error)
{
    const char *schema = trace_metadata(t, "mpsim.schema");
    const int has = trace_metadata(t, OWN_DIGESTS_KEY) != NULL;
    if (!has && (!schema || strcmp(schema, OWN_DIGESTS_SCHEMA) != 0))
        return 0;
    uint64_t *digests = calloc(t->count + 1, sizeof *digests);
    if (!digests)
        return trace_no_memory(t, error);
    int bad = !has ? damaged(t, error, "its digests are missing") : check_head(t, digests, error);
    for (size_t i = 0; i < t->count && !bad; i++)
        bad = check_tensor(t, i, digests[i], error);
    free(digests);
    return bad;
}
