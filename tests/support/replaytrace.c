/* replaytrace.c -- see replaytrace.h. */
#include "replaytrace.h"

#include "replaykept.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- recorded traces ---- */

static trace *open_trace(const char *path)
{
    trace_error error;
    trace *t = trace_open(*path == '/' ? path : test_source_path(path), NULL, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    return t;
}

trace *open_step(const char *folder, long step)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/step_%06ld/rank_00000.safetensors", folder, step);
    return open_trace(path);
}

double number_of(trace *t, const char *key)
{
    const char *s = trace_metadata(t, key);
    return s ? strtod(s, NULL) : (double)NAN;
}

double *elements(trace *t, size_t i, size_t *n)
{
    trace_error error;
    size_t got = 0;
    *n = trace_at(t, i)->count;
    double *v = malloc((*n + 1) * sizeof *v);
    ck_assert_ptr_nonnull(v);
    ck_assert_msg(!trace_select(t, i, &error) && !trace_read(t, v, *n, &got, &error), "%s", error.text);
    ck_assert_uint_eq(got, *n);
    return v;
}

float *floats(trace *t, const char *kind, const char *name, size_t *n)
{
    char full[256];
    snprintf(full, sizeof full, "%s:%s", kind, name);
    for (size_t i = 0; i < trace_count(t); i++) {
        if (strcmp(trace_at(t, i)->name, full) != 0)
            continue;
        double *v = elements(t, i, n);
        float *x = malloc((*n + 1) * sizeof *x);
        for (size_t k = 0; k < *n; k++)
            x[k] = (float)v[k];
        free(v);
        return x;
    }
    return NULL;
}

/* ---- synthetic traces ---- */

made_trace made;

const float ramp_w[8] = {1, -0.5f, 0.25f, 3.1415927f, -2.7182818f, 0.1f, 1e-3f, 100};
const float ramp_g[8] = {0.1f, -0.2f, 1e-4f, 0.33333334f, 7e-6f, -1e-2f, 0.5f, 1e-9f};

void made_set(const char *key, const char *value)
{
    size_t i = 0;
    while (i < made.pairs && strcmp(made.key[i], key) != 0)
        i++;
    ck_assert_uint_lt(i, 32);
    made.pairs = i == made.pairs ? i + 1 : made.pairs;
    snprintf(made.key[i], sizeof made.key[i], "%s", key);
    snprintf(made.value[i], sizeof made.value[i], "%s", value);
}

void made_unset(const char *key)
{
    for (size_t i = 0; i < made.pairs; i++)
        if (strcmp(made.key[i], key) == 0) {
            made.pairs--;
            memmove(made.key[i], made.key[i + 1], (made.pairs - i) * sizeof *made.key);
            memmove(made.value[i], made.value[i + 1], (made.pairs - i) * sizeof *made.value);
        }
}

const char *made_begin(const char *folder, int step, int rank)
{
    static char at[600];
    char text[32];
    memset(&made, 0, sizeof made);
    snprintf(at, sizeof at, "%s/%s", replay_top, folder);
    mkdir(at, 0700);
    snprintf(made.path, sizeof made.path, "%s/step_%06d", at, step);
    mkdir(made.path, 0700);
    snprintf(made.path, sizeof made.path, "%s/step_%06d/rank_%05d.safetensors", at, step, rank);
    made_set("mpsim.schema", "mpsim-trace/1");
    snprintf(text, sizeof text, "%d", step);
    made_set("mpsim.step", text);
    snprintf(text, sizeof text, "%d", rank);
    made_set("mpsim.rank", text);
    made_set("mpsim.optimizer", "sgd");
    made_set("mpsim.lr", "0.5");
    return at;
}

void made_put(const char *name, const grid *g, const float *x, size_t rows, size_t cols)
{
    made_tensor *t = &made.tensor[made.n++];
    const size_t n = cols ? rows * cols : rows, size = g->bits == 24 ? 4 : 2;
    ck_assert_uint_le(n * size, sizeof t->data);
    snprintf(t->name, sizeof t->name, "%s", name);
    *t = (made_tensor){.format = g, .rank = cols ? 2 : 1, .n = n, .shape = {rows, cols}};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (size_t i = 0; i < n; i++) {
        if (size == 4)
            code_store(t->data + 4 * i, 4, bits_of_f32(x[i]));
        else
            code_store(t->data + 2 * i, 2, bits16(g, (double)x[i]));
    }
}

void made_end(void)
{
    trace_error error = {0};
    trace_tensor t[16];
    const char *pairs[32][2];
    memset(t, 0, sizeof t);
    for (size_t i = 0; i < made.n; i++) {
        const made_tensor *m = &made.tensor[i];
        t[i] = (trace_tensor){.name = m->name,
                              .format = mpsim_format_find(m->format->name),
                              .shape = m->shape,
                              .rank = m->rank,
                              .count = m->n};
    }
    for (size_t i = 0; i < made.pairs; i++) {
        pairs[i][0] = made.key[i];
        pairs[i][1] = made.value[i];
    }
    trace_writer *w = trace_writer_safetensors(made.path, t, made.n, (const char *const(*)[2])pairs, made.pairs,
                                               &error);
    ck_assert_msg(w != NULL, "%s", error.text);
    for (size_t i = 0; i < made.n; i++) {
        const size_t size = made.tensor[i].format->bits == 24 ? 4 : 2;
        trace_to_little_endian(made.tensor[i].data, size, made.tensor[i].n);
        ck_assert_msg(!trace_writer_data(w, made.tensor[i].data, made.tensor[i].n * size, &error), "%s", error.text);
    }
    ck_assert_msg(!trace_writer_finish(w, &error), "%s", error.text);
}
