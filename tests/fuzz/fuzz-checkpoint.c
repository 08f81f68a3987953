/* fuzz-checkpoint.c -- checkpoints of mpsim train, as they are and with the digests that are due: a small run goes on
 * from what is accepted. */
#include "input.h"
#include "sim/train/checkpoint.h"
#include "sim/trace/owndigests.h"
#include "sim/train/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <train/parallel.h>
#include <train/train.h>

enum { PAIRS = 16, MOST = 1 << 16, HEX = 16 };
static const char key[] = OWN_DIGESTS_KEY, schema[] = OWN_DIGESTS_SCHEMA;

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
    else if (checkpoint_read(path, r, t, &note, &e))
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

/* What a trace holds, as the trainer would store it. -1: not that, or too much. */
static int take_tensors(stored_list *l, trace *t)
{
    trace_error e;
    l->items = calloc(trace_count(t) + 1, sizeof *l->items);
    must(l->items != NULL);
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        stored_tensor *s = &l->items[i];
        if (!x->format || x->rank > 4 || x->count > MOST || strlen(x->name) >= sizeof s->name)
            return -1;
        *s = (stored_tensor){.format = x->format, .count = x->count, .rank = x->rank};
        strcpy(s->name, x->name);
        if (x->rank)
            memcpy(s->shape, x->shape, x->rank * sizeof *s->shape);
        const size_t bytes = (size_t)x->count * mpsim_format_code_bytes(x->format);
        s->codes = malloc(bytes + 1);
        must(s->codes != NULL);
        l->count++;
        if (trace_select(t, i, &e) || trace_read_bytes(t, s->codes, bytes, &e))
            return -1;
    }
    return 0;
}

/* Digits after the key in the file's text become those of `due`, line by line. */
static void put_digits(uint8_t *data, size_t n, const char *due)
{
    uint8_t *p = memmem(data, n, key, sizeof key - 1);
    for (uint8_t *end = data + n; p && *due; due += strcspn(due, "\n") + 1) {
        const char *digits = due + strcspn(due, "\n") - HEX;
        while (p < end && *p != ' ' && *p != '}')
            p++;
        if (end - p <= HEX || *p != ' ')
            return;
        memcpy(p + 1, digits, HEX);
        p += 1 + HEX;
    }
}

/* A word of the file's text, if it is there, ends in another letter. */
static void spoil(uint8_t *data, size_t n, const char *word, size_t length)
{
    uint8_t *p = memmem(data, n, word, length);
    if (p)
        p[length - 1] = 'x';
}

/* The file with digests that are right for what it holds. They are computed from a copy that does not say that it has any: one
 * with others is not opened. */
static void correct(uint8_t *data, size_t n)
{
    const char *pairs[PAIRS][2], *k;
    size_t count = 0;
    trace_error e;
    stored_list l = {.items = NULL};
    uint8_t *other = malloc(n + 1);
    must(other != NULL);
    if (n)
        memcpy(other, data, n);
    spoil(other, n, key, sizeof key - 1);
    spoil(other, n, schema, sizeof schema - 1);
    trace *t = trace_open(input_path(other, n), NULL, &e);
    for (size_t i = 0; t && (k = trace_metadata_key(t, i)) != NULL && count < PAIRS; i++) {
        if (strncmp(k, key, sizeof key - 2) == 0 && strcmp(k + sizeof key - 2, "x") == 0)
            continue;
        const char *value = trace_metadata_value(t, i);
        const int spoilt = strncmp(value, schema, sizeof schema - 2) == 0 && strcmp(value + sizeof schema - 2, "x") == 0;
        pairs[count][0] = k;
        pairs[count++][1] = spoilt ? schema : value;
    }
    if (t && take_tensors(&l, t) == 0) {
        char *due = stored_digests(&l, (const char *const(*)[2])pairs, count);
        must(due != NULL);
        put_digits(data, n, due);
        free(due);
    }
    stored_clear(&l);
    trace_close(t);
    free(other);
}

static void go_on(const char *path)
{
    trace_error e = {0};
    train_run r;
    if (checkpoint_run(path, &r, &e)) {
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
