/* attendtile.c -- see attendtile.h. */
#include "attendtile.h"
#include "attendscore.h"

#include "../array/want.h"

#include <mpsim/layer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct work {
    const attend_tiles *t;
    mpsim_model scores;
    const mpsim_format *f; /* of O */
    float *x, *o, *part;   /* of the tile; n x size; what a tile gives */
    float *most, *sum;     /* of each query */
    void *codes, *p_codes, *o_codes;
} work;

static float larger(float a, float b)
{
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static float power(const work *w, float x, float most)
{
    const float r = most == -HUGE_VALF ? 0 : most, log2e = 0x1.715476p+0f;
    return w->t->row->exp2 ? mpsim_exp2(fmaf(x, log2e, -(r * log2e))) : mpsim_exp(x - r);
}

/* What was summed before, beside a larger score. */
static void rescale(work *w, size_t i, float most)
{
    const size_t size = w->t->s->size;
    const float a = power(w, w->most[i], most);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t c = 0; c < size; c++)
        w->o[i * size + c] *= a;
    (void)mpsim_round_array_f32(w->f, &r, NULL, w->o + i * size, w->o + i * size, size, NULL);
    w->sum[i] *= a;
    w->most[i] = most;
}

static void add_sink(work *w, size_t i)
{
    const float sink = w->t->x->sinks[w->t->head];
    rescale(w, i, larger(w->most[i], sink));
    w->sum[i] += power(w, sink, w->most[i]);
}

static int sees_any(const uint8_t *seen, size_t n)
{
    return memchr(seen, 1, n) != NULL;
}

/* Powers of a row of scores, as P; the sum. */
static void softmax_row(work *w, size_t i, size_t first, size_t n)
{
    const attend_tiles *t = w->t;
    const size_t at[3] = {t->head, t->first + i, first}, bytes = mpsim_format_code_bytes(t->p);
    const uint8_t *seen = t->seen + i * t->keys + first;
    float *x = w->x + i * n, most = w->most[i];
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t k = 0; k < n; k++)
        x[k] *= t->scale;
    judge_attend_adjust(t->row, t->s, t->x, mpsim_format_find("binary32"), at, n, x);
    for (size_t k = 0; k < n; k++)
        most = seen[k] ? larger(most, x[k]) : most;
    if (sees_any(seen, n))
        rescale(w, i, most);
    for (size_t k = 0; k < n; k++)
        x[k] = seen[k] ? power(w, x[k], w->most[i]) : 0;
    const float plain = mpsim_sum_lanes(NULL, x, n, 1, MPSIM_LANES_ROW);
    void *codes = (char *)w->p_codes + i * n * bytes;
    (void)mpsim_encode_array_f32(t->p, &r, NULL, codes, x, n, NULL);
    (void)mpsim_decode_array_f32(t->p, x, codes, n);
    w->sum[i] += t->row->sum_rounded ? mpsim_sum_lanes(NULL, x, n, 1, MPSIM_LANES_ROW) : plain;
}

static mpsim_status tile(work *w, size_t first, size_t n)
{
    const attend_tiles *t = w->t;
    const size_t size = t->s->size, count = t->n * size;
    const mpsim_format *f = &w->scores.result.format;
    const mpsim_matrix k = {t->k.format,
                            (const char *)t->k.codes + first * t->s->dim * mpsim_format_code_bytes(t->k.format),
                            t->s->dim, 1},
                       v = {t->v.format, (const char *)t->v.codes + first * size * mpsim_format_code_bytes(t->v.format),
                            size, 0},
                       p = {t->p, w->p_codes, n, 0}, o = {w->f, w->o_codes, size, 0};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_status s = mpsim_gemm(&w->scores, t->n, n, t->s->dim, &t->q, &k, NULL, w->codes, n, NULL, NULL);
    s = s == MPSIM_OK ? mpsim_decode_array_f32(f, w->x, w->codes, t->n * n) : s;
    for (size_t i = 0; i < t->n && s == MPSIM_OK; i++)
        softmax_row(w, i, first, n);
    s = s == MPSIM_OK ? mpsim_encode_array_f32(w->f, &r, NULL, w->o_codes, w->o, count, NULL) : s;
    s = s == MPSIM_OK ? mpsim_gemm(&t->row->model, t->n, size, n, &p, &v, &o, w->o_codes, size, NULL, NULL) : s;
    s = s == MPSIM_OK ? mpsim_decode_array_f32(w->f, w->part, w->o_codes, count) : s;
    for (size_t i = 0; i < t->n && s == MPSIM_OK;
         i++) /* zeros times infinities of keys that are not seen do not count */
        if (sees_any(t->seen + i * t->keys + first, n))
            memcpy(w->o + i * size, w->part + i * size, size * sizeof *w->o);
    return s;
}

static void finish(const work *w, float *y, float *lse)
{
    const size_t size = w->t->s->size;
    for (size_t i = 0; i < w->t->n; i++) {
        const float sum = w->sum[i], inverse = 1 / sum;
        for (size_t c = 0; c < size; c++) {
            const float o = w->o[i * size + c];
            y[i * size + c] = sum == 0 ? 0 : w->t->row->reciprocal ? o * inverse : o / sum;
        }
        if (lse)
            lse[i] = w->most[i] + mpsim_log(sum);
    }
}

static mpsim_status run(work *w, size_t width)
{
    const attend_tiles *t = w->t;
    mpsim_status s = MPSIM_OK;
    for (size_t i = 0; i < t->n; i++) {
        w->most[i] = -HUGE_VALF;
        if (t->x->sinks && t->row->sink_first)
            add_sink(w, i);
    }
    for (size_t first = 0; first < t->keys && s == MPSIM_OK; first += width)
        s = tile(w, first, t->keys - first < width ? t->keys - first : width);
    for (size_t i = 0; i < t->n && t->x->sinks && !t->row->sink_first; i++)
        add_sink(w, i);
    return s;
}

mpsim_status judge_attend_tiles(const attend_tiles *t, float *y, float *lse)
{
    const size_t width = t->row->tile && t->row->tile < t->keys ? t->row->tile : t->keys + !t->keys;
    const size_t count = t->n * t->s->size + 1, tiles = t->n * width + 1;
    work w = {.t = t, .scores = t->row->model, .f = &t->row->model.result.format};
    if (*t->row->s.name)
        w.scores.result.format = t->row->s;
    w.x = want_memory(tiles, sizeof *w.x);
    w.o = want_memory(count, sizeof *w.o);
    w.part = want_memory(count, sizeof *w.part);
    w.most = want_memory(t->n + 1, sizeof *w.most);
    w.sum = want_memory(t->n + 1, sizeof *w.sum);
    w.codes = want_memory(tiles, mpsim_format_code_bytes(&w.scores.result.format));
    w.p_codes = want_memory(tiles, mpsim_format_code_bytes(t->p));
    w.o_codes = want_memory(count, mpsim_format_code_bytes(w.f));
    const int room = w.x && w.o && w.part && w.most && w.sum && w.codes && w.p_codes && w.o_codes;
    const mpsim_status s = room ? run(&w, width) : MPSIM_ENOMEM;
    if (s == MPSIM_OK)
        finish(&w, y, lse);
    free(w.x);
    free(w.o);
    free(w.part);
    free(w.most);
    free(w.sum);
    free(w.codes);
    free(w.p_codes);
    free(w.o_codes);
    return s;
}
