/* special.c -- see special.h. */
#include "special.h"

#include "../base/codes.h"
#include "../base/environment.h"
#include "binary32.h"

#include <stdlib.h>

/* ---- what a model does with them ---- */

/* Whether an exact sum is rounded to the result at once. */
static int is_single(const mpsim_model *m)
{
    return m->addition == MPSIM_ADDITION_EXACT && !m->chunk && !m->length;
}

/* A chain or a tree of operations of two terms. */
static int has_operations(const mpsim_model *m)
{
    return m->addition == MPSIM_ADDITION_FMA || m->addition == MPSIM_ADDITION_MULADD;
}

/* The places before the result. */
static size_t places_of(const mpsim_model *m, const mpsim_rounded **p)
{
    size_t n = 0;
    if (m->addition == MPSIM_ADDITION_MULADD)
        p[n++] = &m->product;
    if (!is_single(m))
        p[n++] = &m->accumulator;
    if (m->chunk)
        p[n++] = &m->outer;
    return n;
}

static int keeps(const mpsim_rounded *p)
{
    return p->format.inf && p->format.nan == MPSIM_NAN_TOP && mpsim_has_sign(&p->format) &&
           p->rounding.infinity == MPSIM_INFINITY_KEEP;
}

static mpsim_number through(const mpsim_rounded *p, mpsim_number x)
{
    unsigned flags;
    return mpsim_scalar_unpack(&p->format,
                               mpsim_scalar_encode(&p->format, &p->rounding, p->rounding.mode, x, 0, &flags));
}

static uint64_t result_code(const mpsim_model *m, mpsim_number x)
{
    unsigned flags;
    return mpsim_scalar_encode(&m->result.format, &m->result.rounding, m->result.rounding.mode, x, 0, &flags);
}

/* Where a NaN enters. */
enum { OF_OPERAND, OF_SUM, OF_ADDEND };

static uint64_t nan_code(const mpsim_model *m, mpsim_number x, int from)
{
    if (from == OF_OPERAND && m->addition == MPSIM_ADDITION_MULADD)
        x = through(&m->product, x);
    if (!is_single(m) && (from != OF_ADDEND || !m->chunk))
        x = through(&m->accumulator, x);
    if (m->chunk)
        x = through(&m->outer, x);
    return result_code(m, x);
}

static mpsim_number invalid_number(const mpsim_model *m)
{
    unsigned flags = 0;
    mpsim_number x = mpsim_number_invalid(&flags);
    x.sign = m->traits & MPSIM_TRAIT_NAN_MINUS && !is_single(m);
    return x;
}

/* Whether the result has one NaN only. */
static int has_one_nan(const mpsim_rounded *p)
{
    const uint64_t code = mpsim_scalar_nan(&p->format, &p->rounding, 0, 0);
    return code == mpsim_scalar_nan(&p->format, &p->rounding, 1, 0) &&
           code == mpsim_scalar_nan(&p->format, &p->rounding, 0, UINT64_MAX) &&
           code == mpsim_scalar_nan(&p->format, &p->rounding, 1, UINT64_MAX);
}

/* Whether a NaN of an operation is the same wherever it arises. */
static int has_one_rule(const mpsim_model *m, const mpsim_rounded *const *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i]->rounding.nan != m->result.rounding.nan)
            return 0;
    return 1;
}

void mpsim_specials_init(mpsim_specials *s, const job *g)
{
    const mpsim_model *m = g->m;
    const mpsim_rounded *places[3];
    const size_t n = places_of(m, places);
    const int one = has_one_nan(&m->result);
    *s = (mpsim_specials){.can = g->depth != 0 && (one || has_one_rule(m, places, n)),
                          .alike = one || !has_operations(m),
                          .last = m->addition == MPSIM_ADDITION_FMA,
                          .signs = m->result.rounding.nan == MPSIM_NANS_SIGNED && !m->traits,
                          .infinite = {result_code(m, mpsim_number_infinity(0)),
                                       result_code(m, mpsim_number_infinity(1))},
                          .invalid = nan_code(m, invalid_number(m), OF_SUM),
                          .words = (g->depth + 63) / 64};
    for (size_t i = 0; i < n; i++)
        s->can &= keeps(places[i]);
}

void mpsim_specials_free(mpsim_specials *s)
{
    free(s->a.words);
    free(s->b.words);
    free(s->a.nan);
    free(s->b.nan);
}

/* ---- which NaN decides ---- */

/* Whether the NaN of product x does, and not that of product y. */
static int precedes(const job *g, size_t x, size_t y)
{
    const mpsim_model *m = g->m;
    if (m->chunk) {
        if (x / m->chunk != y / m->chunk)
            return x < y;
        x %= m->chunk;
        y %= m->chunk;
    }
    if (m->order == MPSIM_ORDER_LANES && x % m->length != y % m->length)
        return x % m->length < y % m->length;
    if (m->order == MPSIM_ORDER_ODD_FIRST) {
        x ^= 1;
        y ^= 1;
    }
    return g->specials->last ? x > y : x < y;
}

/* Whether no sum comes before that product's. */
static int is_first(const job *g, size_t k)
{
    const mpsim_model *m = g->m;
    if (g->specials->last && !m->chunk)
        return 1;
    if (m->chunk && k >= m->chunk)
        return 0;
    if (m->order == MPSIM_ORDER_LANES && k % m->length != 0)
        return 0;
    return g->specials->last || k == (m->order == MPSIM_ORDER_ODD_FIRST);
}

static void take_nan(const job *g, size_t *nan, size_t k)
{
    if (*nan == SIZE_MAX || precedes(g, k, *nan))
        *nan = k;
}

/* ---- looking at lines ---- */

/* What codes of an operand are, as they are read. */
typedef struct reader {
    const mpsim_format *f;
    uint64_t magnitude, zeros; /* magnitudes below are zeros */
    int sign, negzero;
} reader;

static reader reader_of(const job *g, const mpsim_lines *x)
{
    const mpsim_format *f = x->entry ? &mpsim_binary32 : x->numbers;
    uint64_t zeros = f->zero != MPSIM_ZERO_NONE;
    if (zeros && g->m->traits & MPSIM_TRAIT_FLUSH_OPERANDS)
        zeros = x->entry ? mpsim_bits_f32((float)mpsim_format_min_normal(x->numbers)) : (uint64_t)1 << f->mbits;
    return (reader){f, mpsim_magnitude_mask(f), zeros, mpsim_has_sign(f) ? mpsim_magnitude_bits(f) : -1,
                    f->nan == MPSIM_NAN_NEGZERO};
}

/* One code as bits number `at` of a word; *kinds |= MPSIM_LINE_.... Whether it is a NaN. */
static inline int read_code(const reader *r, uint64_t code, size_t at, mpsim_special_word *to, int *kinds)
{
    const uint64_t m = code & r->magnitude, minus = r->sign < 0 ? 0 : code >> r->sign & 1;
    const int infinite = r->f->inf && m == r->f->max_finite + 1;
    const int nan = (m > r->f->max_finite && !infinite) || (r->negzero && minus && m == 0);
    to->infinite |= (uint64_t)infinite << at;
    to->zero |= (uint64_t)(m < r->zeros && !nan) << at;
    to->minus |= minus << at;
    *kinds |= (infinite ? MPSIM_LINE_INFINITE : 0) | (nan ? MPSIM_LINE_NAN : 0);
    return nan;
}

/* Line l: its kinds; words and *nan, unless they are NULL. */
static int read_line(const job *g, const mpsim_lines *x, size_t l, mpsim_special_word *words, size_t *nan)
{
    const reader r = reader_of(g, x);
    int kinds = 0;
    for (size_t k = 0; k < g->depth; k += N) {
        const size_t n = g->depth - k < N ? g->depth - k : N;
        mpsim_special_word word = {0, 0, 0};
        uint64_t codes[N];
        mpsim_load_line(x, codes, l, k, n);
        for (size_t i = 0; i < n; i++)
            if (read_code(&r, codes[i], (k + i) % 64, &word, &kinds) && nan)
                take_nan(g, nan, k + i);
        if (words) {
            words[k / 64].infinite |= word.infinite;
            words[k / 64].zero |= word.zero;
            words[k / 64].minus |= word.minus;
        }
    }
    return kinds;
}

/* A scale that is a NaN makes all products of its block one. */
static int scale_kinds(const job *g, const mpsim_scales *x, size_t l)
{
    if (!x)
        return 0;
    for (size_t k = 0; k < g->depth; k += g->m->block) {
        const uint64_t code = mpsim_code_load(x->codes, mpsim_format_code_bytes(x->format),
                                              l * x->stride + k / g->m->block);
        if (mpsim_scalar_classify(x->format, code & mpsim_magnitude_mask(x->format)) == MPSIM_CLASS_NAN)
            return MPSIM_LINE_NAN;
    }
    return 0;
}

/* A walk over lines of one operand. */
typedef struct look {
    const job *g;
    const mpsim_lines *lines;
    const mpsim_scales *scales;
    unsigned char *special;
    mpsim_special_lines *to;
    int all; /* the words of all lines; else the kinds and NaNs of special ones */
} look;

static void look_at(size_t panel, void *context)
{
    const look *w = (const look *)context;
    const size_t end = w->lines->count - panel * N < N ? w->lines->count : panel * N + N;
    const mpsim_environment before = mpsim_environment_default();
    for (size_t l = panel * N; l < end; l++) {
        if (w->all)
            (void)read_line(w->g, w->lines, l, w->to->words + l * w->g->specials->words, NULL);
        else if (w->special[l])
            w->special[l] |= (unsigned char)(read_line(w->g, w->lines, l, NULL, w->to->nan ? w->to->nan + l : NULL) |
                                             scale_kinds(w->g, w->scales, l));
    }
    mpsim_environment_restore(before);
}

static void look_at_all(look *w, const mpsim_pool *pool)
{
    pool->run(pool->self, (w->lines->count - 1) / N + 1, look_at, w);
}

/* The special lines of an operand: their kinds, and the NaNs that decide. */
static int find_kinds(look *w, const mpsim_pool *pool)
{
    const size_t n = w->lines->count;
    w->to->any = memchr(w->special, 1, n) != NULL;
    if (!w->to->any)
        return 1;
    if (!w->g->specials->alike) {
        if (!w->to->nan)
            w->to->nan = (size_t *)malloc(n * sizeof *w->to->nan);
        if (!w->to->nan)
            return 0;
        memset(w->to->nan, 0xff, n * sizeof *w->to->nan);
    }
    w->all = 0;
    look_at_all(w, pool);
    return 1;
}

static int find_words(look *w, const mpsim_pool *pool)
{
    const size_t words = w->g->specials->words, n = w->lines->count;
    free(w->to->words);
    w->to->words = n > SIZE_MAX / sizeof *w->to->words / words
                       ? NULL
                       : (mpsim_special_word *)calloc(n * words, sizeof *w->to->words);
    if (!w->to->words)
        return 0;
    w->all = 1;
    look_at_all(w, pool);
    return 1;
}

static int has_infinities(const look *w)
{
    for (size_t l = 0; w->to->any && l < w->lines->count; l++)
        if (w->special[l] & MPSIM_LINE_INFINITE)
            return 1;
    return 0;
}

int mpsim_specials_find(job *g, const mpsim_pool *pool, int first)
{
    mpsim_specials *s = g->specials;
    look a = {g, &g->lines_a, g->scales_a, g->panels_a.special, &s->a, 0};
    look b = {g, &g->lines_b, g->scales_b, g->panels_b.special, &s->b, 0};
    if (!s->can)
        return 1;
    if ((first && !find_kinds(&a, pool)) || !find_kinds(&b, pool))
        return 0;
    if (g->raw || g->scales || (!has_infinities(&a) && !has_infinities(&b)))
        return 1;
    return (s->a.words || find_words(&a, pool)) && find_words(&b, pool);
}

/* Whether a NaN of row i decides all its results. */
static int decides(const job *g, size_t i)
{
    return g->specials->alike && !g->c && g->panels_a.special[i] & MPSIM_LINE_NAN;
}

int mpsim_specials_decided(const job *g, size_t first, size_t n, results *to, size_t panels)
{
    size_t r = 0;
    while (r < n && g->specials->can && decides(g, first + r))
        r++;
    for (size_t p = 0; r == n && p < panels; p++)
        for (size_t i = 0; i < n; i++) {
            to->special[p * ROWS + i] = ~0u;
            to->known[p * ROWS + i] = to->nans[p * ROWS + i] = 0;
        }
    return r == n;
}

/* ---- results ---- */

static mpsim_number operand_at(const mpsim_source *x, size_t l, size_t k)
{
    const mpsim_format *from = x->entry ? x->entry->from : x->format;
    const size_t bytes = mpsim_format_code_bytes(from);
    const uint64_t code = mpsim_code_load(x->codes, bytes, l * x->line + k * x->next);
    unsigned char in[8], out[8];
    float value;
    if (!x->entry)
        return mpsim_scalar_unpack(from, code);
    mpsim_code_store(in, bytes, 0, code);
    mpsim_decode_array_f32(from, &value, in, 1);
    mpsim_encode_array_f32(x->format, &x->entry->rounding, NULL, out, &value, 1, NULL);
    return mpsim_scalar_unpack(x->format, mpsim_code_load(out, mpsim_format_code_bytes(x->format), 0));
}

/* A result that is not that of numbers alone. */
typedef struct lane {
    size_t i, j;       /* row, column                                         */
    unsigned kinds;    /* of both lines                                       */
    mpsim_number c;    /* the addend                                          */
    int special, over; /* a term is; a sum of numbers overflowed, or may have */
} lane;

/* A NaN of an operand, or of the addend, is among the terms. */
static int of_nans(const job *g, const lane *x, uint64_t *code)
{
    const mpsim_specials *s = g->specials;
    const size_t of_a = s->a.nan && s->a.any ? s->a.nan[x->i] : SIZE_MAX;
    const size_t of_b = s->b.nan && s->b.any ? s->b.nan[x->j] : SIZE_MAX;
    const int c_first = g->m->chunk || (!s->last && has_operations(g->m));
    *code = s->invalid;
    if (x->c.kind == MPSIM_NUMBER_NAN && (c_first || !(x->kinds & MPSIM_LINE_NAN)) && (g->m->chunk || has_operations(g->m))) {
        *code = nan_code(g->m, x->c, OF_ADDEND);
        return 1;
    }
    if (s->alike)
        return 1;
    const int is_a = of_b == SIZE_MAX || (of_a != SIZE_MAX && (of_a == of_b || precedes(g, of_a, of_b)));
    const size_t k = is_a ? of_a : of_b;
    const mpsim_number nan = is_a ? operand_at(g->a, x->i, k) : operand_at(g->b, x->j, k);
    *code = nan_code(g->m, nan, OF_OPERAND);
    return is_first(g, k) || (s->signs && !nan.sign) ||
           (!x->over && !(x->kinds & MPSIM_LINE_INFINITE));
}

/* Infinities among the products: which signs there are, as bits; NEITHER: a product has no value. */
enum { NEITHER = 4 };

static unsigned signs_of(const job *g, const lane *x)
{
    const mpsim_specials *s = g->specials;
    const mpsim_special_word *a = s->a.words + x->i * s->words, *b = s->b.words + x->j * s->words;
    unsigned signs = 0;
    for (size_t w = 0; w < s->words && signs < 3; w++) {
        const uint64_t any = a[w].infinite | b[w].infinite, minus = a[w].minus ^ b[w].minus;
        if ((a[w].infinite & b[w].zero) | (b[w].infinite & a[w].zero))
            return NEITHER;
        signs |= ((any & ~minus) != 0) | (unsigned)((any & minus) != 0) << 1;
    }
    return signs;
}

static int of_infinities(const job *g, const lane *x, uint64_t *code)
{
    unsigned signs = x->c.kind == MPSIM_NUMBER_INF ? 1u << x->c.sign : 0;
    if (x->kinds & MPSIM_LINE_INFINITE && (g->raw || !g->specials->a.words))
        return 0;
    if (x->kinds & MPSIM_LINE_INFINITE)
        signs |= signs_of(g, x);
    if (signs >= 3) {
        *code = g->specials->invalid;
        return 1;
    }
    *code = g->specials->infinite[signs >> 1];
    return signs && !x->over;
}

static int settle(const job *g, const lane *x, int is_nan, uint64_t *code)
{
    if (x->kinds & MPSIM_LINE_NAN || x->c.kind == MPSIM_NUMBER_NAN)
        return of_nans(g, x, code);
    if (x->special)
        return of_infinities(g, x, code);
    *code = g->specials->invalid;
    return is_nan;
}

static mpsim_number addend_at(const job *g, size_t i, size_t j)
{
    const mpsim_format *f = &g->m->result.format;
    return g->c ? mpsim_scalar_unpack(
                      f, mpsim_code_load(g->c->codes, mpsim_format_code_bytes(f), mpsim_index_in(g->c, i, j)))
                : mpsim_number_make(0, 0, 0);
}

static void put(const job *g, results *to, size_t at, size_t j, uint64_t code)
{
    if (g->words)
        to->words[at][j] = mpsim_f32_bits((uint32_t)code);
    else
        to->codes[at][j] = code;
}

/* Whether column j is settled. */
static int settle_column(const job *g, size_t i, size_t j, results *to, size_t at, unsigned redo)
{
    const size_t l = j % N;
    const int special = to->special[at] >> l & 1, is_known = to->known[at] >> l & 1, is_nan = to->nans[at] >> l & 1;
    const lane x = {.i = i,
                    .j = j,
                    .kinds = g->panels_a.special[i] | (unsigned)g->panels_b.special[j],
                    .c = addend_at(g, i, j),
                    .special = special,
                    .over = g->run != mpsim_exact_rows && (redo >> l & 1 || is_known)};
    uint64_t code;
    if (!special && is_known && !is_nan) /* the path's own code */
        return 1;
    if (!settle(g, &x, is_nan, &code))
        return 0;
    put(g, to, at, l, code);
    return 1;
}

void mpsim_specials_settle(const job *g, size_t i, size_t panel, results *to, size_t at, unsigned *redo)
{
    const mpsim_specials *s = g->specials;
    const unsigned special = to->special[at], before = *redo;
    const unsigned left = (special | before) & ((2u << (mpsim_panel_columns(g, panel) - 1)) - 1);
    *redo = left;
    if (!left || !s->can)
        return;
    *redo = 0;
    if (decides(g, i)) {
        for (size_t j = 0; j < N; j++)
            put(g, to, at, j, s->invalid);
        return;
    }
    for (size_t j = 0; left >> j; j++)
        if (left >> j & 1 && !settle_column(g, i, panel * N + j, to, at, before))
            *redo |= 1u << j;
}
