/* samples.c -- see samples.h. */
#include "samples.h"

#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t sample_state;

double sample_uniform(void)
{
    return (double)(test_random(&sample_state) >> 11) * 0x1p-53;
}

sample sample_make(size_t rows)
{
    sample s = {.shape = {rows, COLUMNS}, .n = rows * COLUMNS};
    s.x = malloc(s.n * sizeof *s.x);
    for (size_t i = 0; i < s.n; i++)
        s.x[i] = (float)ldexp((sample_uniform() + 0.25) * (test_random(&sample_state) & 1 ? 1 : -1),
                              (int)(test_random(&sample_state) % 4));
    return s;
}

sample sample_copy(const sample *s)
{
    sample c = *s;
    c.x = malloc(s->n * sizeof *s->x);
    memcpy(c.x, s->x, s->n * sizeof *s->x);
    return c;
}

const char *sample_path(const char *name)
{
    static char paths[4][64];
    static int k;
    char *path = paths[k++ % 4];
    snprintf(path, sizeof paths[0], "t-diff-%ld-%s.tmp", (long)getpid(), name);
    return path;
}

static const char *save(const char *name, const sample *s)
{
    trace_error e;
    const mpsim_format *f = mpsim_format_find(s->format ? s->format : "binary32");
    const char *path = sample_path(name);
    const trace_tensor t = {.name = "weight:fc.weight", .format = f, .shape = s->shape, .rank = 2, .count = s->n};
    mpsim_rounding r;
    unsigned char *codes = malloc(s->n * 8);
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (s->format)
        ck_assert(mpsim_encode_array_f32(f, &r, NULL, codes, s->x, s->n, NULL) == MPSIM_OK);
    else
        memcpy(codes, s->x, s->n * sizeof *s->x); /* signalling NaN, too */
    trace_writer *w = trace_writer_safetensors(path, &t, 1, NULL, 0, &e);
    ck_assert_msg(w != NULL, "%s", e.text);
    trace_to_little_endian(codes, mpsim_format_code_bytes(f), s->n);
    ck_assert(trace_writer_data(w, codes, s->n * mpsim_format_code_bytes(f), &e) == 0 &&
              trace_writer_finish(w, &e) == 0);
    free(codes);
    return path;
}

static int tell(void *context, const sequence_entry *e)
{
    told *t = context;
    const side_tensor *x = e->tensors[0] ? e->tensors[0] : e->tensors[1];
    if (x && t->n < 64)
        snprintf(t->names[t->n], sizeof t->names[0], "%s", x->name);
    t->n++;
    if (e->compared) {
        t->found = e->compared->found;
        t->all = e->compared->c.all;
        t->how = e->how;
    }
    return 0;
}

told sample_run(const char *a, const char *b, const char *within)
{
    told t = {.n = 0};
    side sides[2];
    tolerance tol;
    input_options o = {.keep_going = 0};
    char *paths[2] = {strdup(a), strdup(b)};
    ck_assert(diff_tolerance_parse(&tol, within, "diff") == 0);
    for (int k = 0; k < 2; k++)
        ck_assert(diff_side_open(&sides[k], "diff", &o, paths[k]) == 0);
    ck_assert(diff_sequence_run(&sides[0], &sides[1], &tol, tell, &t) == 0);
    for (int k = 0; k < 2; k++) {
        diff_side_close(&sides[k]);
        free(paths[k]);
    }
    return t;
}

told sample_compare(const sample *a, const sample *b, const char *within)
{
    const char *x = save("a", a), *y = save("b", b);
    const told t = sample_run(x, y, within);
    unlink(x);
    unlink(y);
    return t;
}
