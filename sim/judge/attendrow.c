/* attendrow.c -- see attendrow.h. */
#include "attendscore.h"
#include "attendtile.h"
#include "modelword.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"

#include <mpsim/attention.h>
#include <mpsim/layer.h>
#include <mpsim/transformer.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_attend_causals[ATTEND_CAUSALS] = {"", "causal", "causal-first"};
const char *const judge_attend_scaled[ATTEND_SCALED] = {"scores", "queries", "both"};

/* ---- reading ---- */

static int set_switch(attend_row *row, const char *word)
{
    static const struct {
        const char *word;
        size_t at;
        int tiled; /* 1: of tiles alone */
    } switches[] = {{"upcast", offsetof(attend_row, upcast), 0},
                    {"exp2", offsetof(attend_row, exp2), 1},
                    {"reciprocal", offsetof(attend_row, reciprocal), 1},
                    {"sum-rounded", offsetof(attend_row, sum_rounded), 1},
                    {"sink-first", offsetof(attend_row, sink_first), 1}};
    for (uint8_t c = ATTEND_LAST; c < ATTEND_CAUSALS; c++)
        if (strcmp(word, judge_attend_causals[c]) == 0) {
            row->causal = c;
            return 0;
        }
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++)
        if (strcmp(word, switches[i].word) == 0 && (row->tiled || !switches[i].tiled)) {
            *((uint8_t *)row + switches[i].at) = 1;
            return 0;
        }
    return -1;
}

static int set_size(size_t *to, const char *value)
{
    uint64_t n;
    if (parse_count(&n, value) || n == 0 || n > 1u << 30)
        return -1;
    *to = (size_t)n;
    return 0;
}

static int set_scaled(attend_row *row, const char *value)
{
    for (uint8_t i = 0; i < ATTEND_SCALED; i++)
        if (strcmp(value, judge_attend_scaled[i]) == 0) {
            row->scaled = i;
            return 0;
        }
    return -1;
}

static int set_number(double *to, const char *value)
{
    return parse_number(to, value) || !(*to > 0) ? -1 : 0;
}

static int set_value(attend_row *row, const char *word, const char *value)
{
    if (strcmp(word, "s") == 0)
        return mpsim_format_parse(&row->s, value) == MPSIM_OK ? 0 : -1;
    if (strcmp(word, "p") == 0)
        return mpsim_format_parse(&row->p, value) == MPSIM_OK ? 0 : -1;
    if (strcmp(word, "scale") == 0)
        return set_number(&row->scale, value);
    if (strcmp(word, "softcap") == 0)
        return set_number(&row->softcap, value);
    if (strcmp(word, "scale-on") == 0)
        return set_scaled(row, value);
    return strcmp(word, "window") == 0               ? set_size(&row->window, value)
           : strcmp(word, "tile") == 0 && row->tiled ? set_size(&row->tile, value)
                                                     : -1;
}

/* A row while it is read. */
typedef struct reading {
    attend_row *row;
    judge_model_text model;
} reading;

static int set_word(void *context, const char *word, const char *value)
{
    reading *r = context;
    if ((value ? set_value(r->row, word, value) : set_switch(r->row, word)) == 0) {
        judge_model_close(&r->model);
        return 0;
    }
    return judge_model_word(&r->model, word, value) ? 0 : -1;
}

int judge_attend_read(void *to, char *text)
{
    attend_row *row = to;
    reading r = {row, {"", 0}};
    row->tiled = strncmp(text, "flash", 5) == 0;
    if (judge_words(text, set_word, &r) || judge_model_read(&row->model, &r.model, "sequential") || row->model.block)
        return -1;
    return strcmp(text, row->tiled ? "flash" : "eager") == 0 && !(row->tiled && row->scaled) ? 0 : -1;
}

/* ---- what is computed from what ---- */

static const mpsim_format *binary32(void)
{
    return mpsim_format_find("binary32");
}

static const mpsim_format *operand_format(const attend_row *row, const mpsim_judge_array *x)
{
    return row->upcast ? binary32() : x->format;
}

static const mpsim_format *p_format(const attend_row *row)
{
    return *row->p.name ? &row->p : binary32();
}

int judge_attend_takes(const attend_row *row, const attend_arrays *x)
{
    return mpsim_model_accepts(&row->model, operand_format(row, x->q), operand_format(row, x->k)) &&
           mpsim_model_accepts(&row->model, p_format(row), operand_format(row, x->v));
}

void judge_attend_sees(const attend_row *row, const attend_shape *s, size_t query, size_t *first, size_t *end)
{
    const size_t shift = row->causal == ATTEND_FIRST ? 0 : s->keys;
    const size_t back = row->causal == ATTEND_FIRST ? 0 : s->queries; /* its own key: query + shift - back */
    const size_t past = query + shift + 1 > back ? query + shift + 1 - back : 0;
    *end = row->causal && past < s->keys ? past : s->keys;
    *first = row->window && past > row->window ? past - row->window : 0;
    *first = *first < *end ? *first : *end;
}

/* Lines of an operand, as they are multiplied. */
typedef struct operand {
    const mpsim_format *format;
    const void *codes;
    void *own; /* memory, or NULL */
} operand;

static mpsim_status take(operand *to, const attend_row *row, const mpsim_judge_array *x, size_t first, size_t n,
                         float by)
{
    const size_t count = n * x->columns;
    *to = (operand){x->format, (const char *)x->codes + first * x->columns * mpsim_format_code_bytes(x->format), NULL};
    if (by == 1 && operand_format(row, x) == x->format)
        return MPSIM_OK;
    float *numbers = want_memory(count + 1, sizeof *numbers);
    if (!numbers)
        return MPSIM_ENOMEM;
    (void)mpsim_decode_array_f32(x->format, numbers, to->codes, count);
    judge_attend_scale(numbers, operand_format(row, x), count, by);
    if (!row->upcast) { /* numbers of the operand's format: codes again */
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        void *codes = want_memory(count + 1, mpsim_format_code_bytes(x->format));
        if (codes)
            (void)mpsim_encode_array_f32(x->format, &r, NULL, codes, numbers, count, NULL);
        free(numbers);
        *to = (operand){x->format, codes, codes};
        return codes ? MPSIM_OK : MPSIM_ENOMEM;
    }
    *to = (operand){binary32(), numbers, numbers};
    return MPSIM_OK;
}

typedef struct work {
    const attend_row *row;
    const attend_shape *s;
    const attend_arrays *x;
    operand q, k, v;
    size_t head, first, n, keys; /* queries, and the keys that the last of them sees */
    uint8_t *mask;               /* n x keys bytes, or NULL */
    float *y, *lse;              /* lse: or NULL */
} work;

static float scale_of(const attend_row *row, const attend_shape *s)
{
    return row->scale > 0 ? (float)row->scale : (float)(1 / sqrt((double)s->dim));
}

/* A byte for each query and key. */
static mpsim_status make_mask(work *w)
{
    w->mask = want_memory(w->n * w->keys + 1, 1);
    for (size_t i = 0; i < w->n && w->mask; i++) {
        const uint8_t *given = judge_attend_mask(w->s, w->x, w->head, w->first + i);
        size_t first, end;
        judge_attend_sees(w->row, w->s, w->first + i, &first, &end);
        for (size_t k = 0; k < w->keys; k++)
            w->mask[i * w->keys + k] = k >= first && k < end && (!given || given[k]);
    }
    return w->mask ? MPSIM_OK : MPSIM_ENOMEM;
}

/* ---- whole rows ---- */

/* Scores, scaled; each step rounded to s. */
static mpsim_status score(work *w, float *x)
{
    const mpsim_format *result = &w->row->model.result.format;
    const size_t count = w->n * w->keys;
    const mpsim_matrix q = {w->q.format, w->q.codes, w->s->dim, 0}, k = {w->k.format, w->k.codes, w->s->dim, 1};
    const mpsim_format *f = *w->row->s.name ? &w->row->s : binary32();
    void *codes = want_memory(count + 1, mpsim_format_code_bytes(result));
    mpsim_status s = !codes ? MPSIM_ENOMEM
                            : mpsim_gemm(&w->row->model, w->n, w->keys, w->s->dim, &q, &k, NULL, codes,
                                         w->keys + !w->keys, NULL, NULL);
    if (s == MPSIM_OK)
        s = mpsim_decode_array_f32(result, x, codes, count);
    free(codes);
    if (s == MPSIM_OK)
        judge_attend_scale(x, f, count, 1);
    if (s == MPSIM_OK && w->row->scaled == ATTEND_SCORES)
        judge_attend_scale(x, f, count, scale_of(w->row, w->s));
    return s;
}

static mpsim_status combine(work *w, const float *p)
{
    const mpsim_format *f = p_format(w->row), *result = &w->row->model.result.format;
    const size_t count = w->n * w->keys, out = w->n * w->s->size;
    void *codes = want_memory(count + 1, mpsim_format_code_bytes(f)),
         *d = want_memory(out + 1, mpsim_format_code_bytes(result));
    mpsim_rounding r;
    mpsim_status s = codes && d ? MPSIM_OK : MPSIM_ENOMEM;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (s == MPSIM_OK)
        s = mpsim_encode_array_f32(f, &r, NULL, codes, p, count, NULL);
    const mpsim_matrix a = {f, codes, w->keys + !w->keys, 0}, v = {w->v.format, w->v.codes, w->s->size, 0};
    if (s == MPSIM_OK)
        s = mpsim_gemm(&w->row->model, w->n, w->s->size, w->keys, &a, &v, NULL, d, w->s->size, NULL, NULL);
    if (s == MPSIM_OK)
        s = mpsim_decode_array_f32(result, w->y, d, out);
    free(codes);
    free(d);
    return s;
}

/* Rows of `keys` numbers from rows of keys + 1, and back. */
static void narrow_rows(float *to, const float *from, const work *w)
{
    for (size_t i = 0; i < w->n; i++)
        memmove(to + i * w->keys, from + i * (w->keys + 1), w->keys * sizeof *to);
}

/* Rows of scores with the sink as one more, which every query sees. */
static void widen_rows(float *to, uint8_t *seen, const float *from, const work *w)
{
    const size_t wide = w->keys + 1;
    for (size_t i = 0; i < w->n; i++) {
        memcpy(to + i * wide, from + i * w->keys, w->keys * sizeof *to);
        memcpy(seen + i * wide, w->mask + i * w->keys, w->keys);
        to[i * wide + w->keys] = w->x->sinks[w->head];
        seen[i * wide + w->keys] = 1;
    }
}

/* Probabilities of scores, in place. */
static mpsim_status weigh(work *w, float *x)
{
    const size_t wide = w->keys + (w->x->sinks != NULL);
    const mpsim_softmax c = {.rows = w->n, .cols = wide, .scale = 1};
    float *own = w->x->sinks ? want_memory(w->n * wide + 1, sizeof *own) : NULL;
    uint8_t *seen = w->x->sinks ? want_memory(w->n * wide + 1, 1) : NULL;
    float *rows = own ? own : x;
    const uint8_t *mask = seen ? seen : w->mask;
    mpsim_status s = w->x->sinks && (!own || !seen) ? MPSIM_ENOMEM : MPSIM_OK;
    if (s == MPSIM_OK && own)
        widen_rows(own, seen, x, w);
    for (size_t i = 0; i < w->n && w->lse && s == MPSIM_OK; i++)
        w->lse[i] = judge_attend_lse(rows + i * wide, mask + i * wide, wide);
    s = s == MPSIM_OK ? mpsim_softmax_rows(&c, rows, rows, mask) : s;
    if (s == MPSIM_OK && own)
        narrow_rows(x, own, w);
    free(own);
    free(seen);
    return s;
}

static mpsim_status eager(work *w)
{
    const mpsim_format *f = *w->row->s.name ? &w->row->s : binary32();
    float *x = want_memory(w->n * w->keys + 1, sizeof *x);
    mpsim_status s = x ? make_mask(w) : MPSIM_ENOMEM;
    s = s == MPSIM_OK ? score(w, x) : s;
    for (size_t i = 0; i < w->n && s == MPSIM_OK; i++) {
        const size_t at[3] = {w->head, w->first + i, 0};
        judge_attend_adjust(w->row, w->s, w->x, f, at, w->keys, x + i * w->keys);
    }
    s = s == MPSIM_OK ? weigh(w, x) : s;
    s = s == MPSIM_OK ? combine(w, x) : s;
    free(x);
    return s;
}

/* ---- tiles ---- */

static mpsim_status flash(work *w)
{
    const attend_row *row = w->row;
    mpsim_model scores = row->model;
    mpsim_attention a;
    mpsim_status s = MPSIM_OK;
    const int own = w->x->mask || (row->causal == ATTEND_FIRST && w->s->queries > w->s->keys);
    if (*row->s.name)
        scores.result.format = row->s;
    mpsim_attention_init(&a, w->s->dim);
    a.scores = &scores;
    a.context = &row->model;
    a.p.format = *p_format(row);
    a.scale = scale_of(row, w->s);
    a.tile = row->tile;
    a.exp2 = row->exp2;
    a.reciprocal = row->reciprocal;
    a.sum_rounded = row->sum_rounded;
    if (own)
        s = make_mask(w);
    else if (row->causal) { /* of the keys that the last query sees the last is its own */
        a.causal = 1;
        a.left = row->window ? row->window - 1 : SIZE_MAX;
    } else if (row->window)
        s = make_mask(w);
    a.mask = w->mask;
    const mpsim_attention_shape shape = {w->n, w->keys, w->s->dim, w->s->size};
    const mpsim_matrix q = {w->q.format, w->q.codes, w->s->dim, 0}, k = {w->k.format, w->k.codes, w->s->dim, 0},
                       v = {w->v.format, w->v.codes, w->s->size, 0};
    return s == MPSIM_OK ? mpsim_attention_forward(&a, &shape, &q, &k, &v, w->y, w->lse, NULL, NULL, NULL, NULL) : s;
}

static mpsim_status tiled(work *w)
{
    if (!judge_attend_is_more(w->row, w->x))
        return flash(w);
    const mpsim_status s = make_mask(w);
    const attend_tiles t = {.row = w->row,
                            .s = w->s,
                            .x = w->x,
                            .q = {w->q.format, w->q.codes, w->s->dim, 0},
                            .k = {w->k.format, w->k.codes, w->s->dim, 1},
                            .v = {w->v.format, w->v.codes, w->s->size, 0},
                            .p = p_format(w->row),
                            .head = w->head,
                            .first = w->first,
                            .n = w->n,
                            .keys = w->keys,
                            .scale = scale_of(w->row, w->s),
                            .seen = w->mask};
    return s == MPSIM_OK ? judge_attend_tiles(&t, w->y, w->lse) : s;
}

mpsim_status judge_attend_compute(const attend_row *row, const attend_shape *s, const attend_arrays *x, size_t head,
                                  size_t first, size_t n, float *y, float *lse)
{
    const float scale = scale_of(row, s), by = row->scaled == ATTEND_BOTH      ? sqrtf(scale)
                                               : row->scaled == ATTEND_QUERIES ? scale
                                                                               : 1;
    const size_t kv = judge_attend_kv(s, head) * s->keys;
    size_t begin, keys;
    judge_attend_sees(row, s, first + n - 1, &begin, &keys);
    work w = {.row = row, .s = s, .x = x, .head = head, .first = first, .n = n, .keys = keys, .y = y, .lse = lse};
    w.keys = keys = row->tiled ? keys : s->keys; /* zeros times infinities count in whole rows */
    mpsim_status status = take(&w.q, row, x->q, head * s->queries + first, n, by);
    status = status == MPSIM_OK ? take(&w.k, row, x->k, kv, keys, row->scaled == ATTEND_BOTH ? by : 1) : status;
    status = status == MPSIM_OK ? take(&w.v, row, x->v, kv, keys, 1) : status;
    status = status == MPSIM_OK ? (row->tiled ? tiled : eager)(&w) : status;
    free(w.q.own);
    free(w.k.own);
    free(w.v.own);
    free(w.mask);
    return status;
}
