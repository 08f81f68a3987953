/* fuzz-checkpoint.c -- checkpoints of mpsim train, as they are and with the digests that are due: a small run goes on
 * from what is accepted. */
#include "input.h"
#include "sim/trace/owndigests.h"
#include "sim/train/checkpoint.h"

#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads/parallel.h>
#include <train/train.h>

enum { MOST = 1 << 16, HEX = 16 };
static const char schema[] = "mpsim.schema", no_schema[] = "mpsim.schemb", no_digests[] = "mpsim.train.digesta";

static void must_be_error(const trace_error *e)
{
    must(e->exit == 3 || e->exit == 4);
    must_be_line(e->text);
}

/* A run that takes no time. */
static int is_small(const train_run *r)
{
    const train_settings *s = &r->settings;
    return s->depth <= 2 && s->width <= 2 && s->batch <= 2;
}

static void resume(const char *path, const train_run *r)
{
    char line[TRAIN_ERROR];
    train_engine engine;
    train_step step;
    checkpoint_note note;
    trace_error e = {0};
    must(train_engine_cpu(&engine, &parallel_pool) == 0);
    train *t = train_open(r, &engine, 0, line);
    if (!t)
        must_be_line(line);
    else if (train_checkpoint_read(path, r, t, &note, &e))
        must_be_error(&e);
    else if (train_next(t, &step, line))
        must_be_line(line);
    else
        must(note.taken <= note.step && step.step == note.step);
    if (t)
        train_close(t);
    train_engine_close(&engine);
}

/* ---- digests that are due ---- */

/* A digest over that which stands behind the next blank; p moves behind it. */
static void put_digest(uint8_t **p, const uint8_t *end, uint64_t digest)
{
    char digits[HEX + 1];
    while (*p < end && **p != ' ' && **p != '}')
        ++*p;
    if (end - *p <= HEX || **p != ' ')
        return;
    snprintf(digits, sizeof digits, "%016" PRIx64, digest);
    memcpy(*p + 1, digits, HEX);
    *p += 1 + HEX;
}

static uint64_t digest_of(trace *t, size_t i)
{
    const trace_tensor *x = trace_at(t, i);
    const size_t bytes = (size_t)x->count * mpsim_format_code_bytes(x->format);
    unsigned char *codes = malloc(bytes + 1);
    trace_error e;
    must(codes != NULL);
    const int bad = trace_select(t, i, &e) || trace_read_bytes(t, codes, bytes, &e);
    const uint64_t digest = bad ? 0 : mpsim_digest_bytes(codes, bytes, 0);
    free(codes);
    return digest;
}

/* Digests of the tensors and of all else, from p on. */
static void put_digests(uint8_t *p, const uint8_t *end, trace *t)
{
    own_sum sum = {0, 0};
    const char *k;
    for (size_t i = 0; (k = trace_metadata_key(t, i)) != NULL; i++)
        if (strcmp(k, no_digests) != 0)
            trace_own_sum_pair(&sum, strcmp(k, no_schema) == 0 ? schema : k, trace_metadata_value(t, i));
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        if (!x->format || x->count > MOST)
            return;
        const uint64_t digest = digest_of(t, i);
        trace_own_sum_tensor(&sum, x->name, x->format, x->shape, x->rank, digest);
        put_digest(&p, end, digest);
    }
    put_digest(&p, end, sum.digest);
}

/* A file that does not say that it has digests is opened whatever they are. */
static void correct(uint8_t *data, size_t n)
{
    trace_error e;
    uint8_t *at = memmem(data, n, schema, sizeof schema - 1),
            *digests = memmem(data, n, OWN_DIGESTS_KEY, sizeof OWN_DIGESTS_KEY - 1);
    if (!at || !digests)
        return;
    memcpy(at, no_schema, sizeof no_schema - 1);
    memcpy(digests, no_digests, sizeof no_digests - 1);
    trace *t = trace_open(input_path(data, n), NULL, &e);
    memcpy(at, schema, sizeof schema - 1);
    memcpy(digests, OWN_DIGESTS_KEY, sizeof OWN_DIGESTS_KEY - 1);
    if (t)
        put_digests(digests, data + n, t);
    trace_close(t);
}

static void go_on(const char *path)
{
    trace_error e = {0};
    train_run r;
    if (train_checkpoint_run(path, &r, &e)) {
        must_be_error(&e);
        return;
    }
    if (is_small(&r))
        resume(path, &r);
    train_run_clear(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n + 1);
    must(copy != NULL);
    if (n)
        memcpy(copy, data, n);
    go_on(input_path(data, n));
    correct(copy, n);
    if (n && memcmp(copy, data, n) != 0)
        go_on(input_path(copy, n));
    free(copy);
    return 0;
}
