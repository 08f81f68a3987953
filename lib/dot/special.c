/* special.c -- see special.h. */
#include "special.h"

#include "../base/codes.h"
#include "../base/environment.h"

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
    *s = (mpsim_specials){
        .can = g->depth != 0 && (one || has_one_rule(m, places, n)),
        .alike = one || !has_operations(m),
        .last = m->addition == MPSIM_ADDITION_FMA,
        .signs = m->result.rounding.nan == MPSIM_NANS_SIGNED && !m->traits,
        .infinite = {result_code(m, mpsim_number_infinity(0)), result_code(m, mpsim_number_infinity(1))},
        .invalid = nan_code(m, invalid_number(m), OF_SUM),
        .words = (g->depth + 63) / 64};
    s->overflows = 1;
    for (size_t i = 0; i < n; i++) {
        s->can &= keeps(places[i]);
        s->overflows &= places[i]->rounding.overflow == MPSIM_OVERFLOW_INF;
    }
}

void mpsim_specials_free(mpsim_specials *s)
{
    free(s->a.words);
    free(s->b.words);
    free(s->a.nans);
    free(s->b.nans);
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

/* ---- looking at lines ---- */

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

/* Products first + i for the bits i that are set: *k becomes the one that decides, if it was not. */
static void take_nans(const job *g, size_t *k, size_t first, uint64_t nans)
{
    const size_t chunk = g->m->chunk;
    const int is_plain = !chunk && g->m->order == MPSIM_ORDER_SEQUENTIAL;
    if (!nans || (*k != SIZE_MAX && chunk && first / chunk > *k / chunk))
        return;
    if (is_plain) { /* the last of all, or the first */
        if (g->specials->last)
            *k = first + 63 - (size_t)mpsim_clz64(nans);
        else if (*k == SIZE_MAX)
            *k = first + 63 - (size_t)mpsim_clz64(nans & (0 - nans));
        return;
    }
    for (size_t i = 0; i < 64; i++)
        if (nans >> i & 1 && (*k == SIZE_MAX || precedes(g, first + i, *k)))
            *k = first + i;
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
    const mpsim_source *source;
    const mpsim_scales *scales;
    unsigned char *special;
    mpsim_special_lines *to;
    int all; /* the words of all lines; else the kinds and NaNs of special ones */
} look;

/* What words from number `word` on say of line l, which is special. */
static void take_words(const look *w, size_t l, size_t word, const mpsim_kinds *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w->special[l] |= (unsigned char)((x[i].nan ? MPSIM_LINE_NAN : 0) | (x[i].infinite ? MPSIM_LINE_INFINITE : 0));
        if (w->to->nans)
            take_nans(w->g, &w->to->nans[l].k, 64 * (word + i), x[i].nan);
    }
}

static void end_line(const look *w, size_t l)
{
    mpsim_special_nan *nan = w->to->nans ? &w->to->nans[l] : NULL;
    w->special[l] |= (unsigned char)scale_kinds(w->g, w->scales, l);
    if (!nan || nan->k == SIZE_MAX)
        return;
    const mpsim_number x = operand_at(w->source, l, nan->k);
    nan->sign = x.sign;
    nan->code = nan_code(w->g->m, x, OF_OPERAND);
}

/* n lines from `first` on. */
static void look_at_some(const look *w, size_t first, size_t n)
{
    const mpsim_kinds_reader r = mpsim_kinds_reader_of(w->lines, w->g->m->traits & MPSIM_TRAIT_FLUSH_OPERANDS);
    const size_t words = w->g->specials->words;
    mpsim_kinds some[N][MPSIM_KINDS_WORDS];
    for (size_t k = 0; k < words; k += MPSIM_KINDS_WORDS) {
        const size_t count = words - k < MPSIM_KINDS_WORDS ? words - k : MPSIM_KINDS_WORDS;
        mpsim_read_kinds(w->lines, &r, w->g->loops->kinds, first, n, k, some);
        for (size_t l = 0; l < n; l++)
            if (w->all)
                memcpy(w->to->words + (first + l) * words + k, some[l], count * sizeof some[l][0]);
            else if (w->special[first + l])
                take_words(w, first + l, k, some[l], count);
    }
    for (size_t l = first; !w->all && l < first + n; l++)
        if (w->special[l])
            end_line(w, l);
}

static void look_at(size_t panel, void *context)
{
    const look *w = (const look *)context;
    const size_t first = panel * N, n = w->lines->count - first < N ? w->lines->count - first : N;
    if (!w->all && !memchr(w->special + first, 1, n))
        return;
    const mpsim_environment before = mpsim_environment_default();
    look_at_some(w, first, n);
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
    if (!w->g->specials->alike && !w->to->nans)
        w->to->nans = (mpsim_special_nan *)malloc(n * sizeof *w->to->nans);
    if (!w->g->specials->alike && !w->to->nans)
        return 0;
    for (size_t l = 0; w->to->nans && l < n; l++)
        w->to->nans[l] = (mpsim_special_nan){.k = SIZE_MAX};
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
                       : (mpsim_kinds *)malloc(n * words * sizeof *w->to->words);
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
    look a = {g, &g->lines_a, g->a, g->scales_a, g->panels_a.special, &s->a, 0};
    look b = {g, &g->lines_b, g->b, g->scales_b, g->panels_b.special, &s->b, 0};
    if (!s->can)
        return 1;
    if ((first && !find_kinds(&a, pool)) || !find_kinds(&b, pool))
        return 0;
    if (g->raw || g->scales || (!has_infinities(&a) && !has_infinities(&b)))
        return 1;
    return (s->a.words || find_words(&a, pool)) && find_words(&b, pool);
}

/* The NaN of a line that decides. */
static const mpsim_special_nan *nan_of(const mpsim_special_lines *x, size_t l)
{
    static const mpsim_special_nan none = {.k = SIZE_MAX};
    return x->any && x->nans ? &x->nans[l] : &none;
}

/* Whether NaNs of row i, and of columns that it meets, decide all its results. */
static int decides(const job *g, size_t i)
{
    const mpsim_specials *s = g->specials;
    return !g->c && s->a.any && g->panels_a.special[i] & MPSIM_LINE_NAN &&
           (s->alike || is_first(g, nan_of(&s->a, i)->k));
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

/* A result that is not that of numbers alone. */
typedef struct lane {
    size_t i, j;       /* row, column                                         */
    unsigned kinds;    /* of both lines                                       */
    mpsim_number c;    /* the addend                                          */
    int special, over; /* a term is; a sum of numbers overflowed, or may have */
} lane;

/* The NaN of two that decides. */
static const mpsim_special_nan *first_of(const job *g, const mpsim_special_nan *a, const mpsim_special_nan *b)
{
    return b->k == SIZE_MAX || (a->k != SIZE_MAX && (a->k == b->k || precedes(g, a->k, b->k))) ? a : b;
}

/* A NaN of the addend, which comes before those of operands where a sum does. */
static int of_addend(const job *g, const lane *x)
{
    const int is_kept = g->m->chunk || has_operations(g->m), is_first = g->m->chunk || !g->specials->last;
    return x->c.kind == MPSIM_NUMBER_NAN && is_kept && (is_first || !(x->kinds & MPSIM_LINE_NAN));
}

/* A NaN of an operand, or of the addend, is among the terms. */
static int of_nans(const job *g, const lane *x, uint64_t *code)
{
    const mpsim_specials *s = g->specials;
    if (of_addend(g, x)) {
        *code = nan_code(g->m, x->c, OF_ADDEND);
        return 1;
    }
    *code = s->invalid;
    if (s->alike)
        return 1;
    const mpsim_special_nan *nan = first_of(g, nan_of(&s->a, x->i), nan_of(&s->b, x->j));
    *code = nan->code;
    return is_first(g, nan->k) || (s->signs && !nan->sign) || (!x->over && !(x->kinds & MPSIM_LINE_INFINITE));
}

/* Which signs infinite products have, as bits; both where a product has no value. Without branches that nothing could foresee. */
static unsigned signs_of(const mpsim_kinds *a, const mpsim_kinds *b, size_t words)
{
    enum { SOME = 16 };
    uint64_t plus = 0, minus = 0;
    for (size_t w = 0; w < words && !(w % SOME == 0 && plus && minus); w++) {
        const uint64_t any = a[w].infinite | b[w].infinite, of_minus = a[w].minus ^ b[w].minus;
        const uint64_t neither = (a[w].infinite & b[w].zero) | (b[w].infinite & a[w].zero);
        plus |= neither | (any & ~of_minus);
        minus |= neither | (any & of_minus);
    }
    return (plus != 0) | (unsigned)(minus != 0) << 1;
}

static int of_infinities(const job *g, const lane *x, uint64_t *code)
{
    const mpsim_specials *s = g->specials;
    const uint64_t codes[] = {0, s->infinite[0], s->infinite[1], s->invalid};
    unsigned signs = x->c.kind == MPSIM_NUMBER_INF ? 1u << x->c.sign : 0;
    if (x->kinds & MPSIM_LINE_INFINITE) {
        if (g->raw || !s->a.words)
            return 0;
        signs |= signs_of(s->a.words + x->i * s->words, s->b.words + x->j * s->words, s->words);
    }
    *code = codes[signs];
    return signs == 3 || (signs && !x->over);
}

/* Whether the code can be said. */
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
    const mpsim_specials *s = g->specials;
    const size_t l = j % N;
    const int special = to->special[at] >> l & 1, is_known = to->known[at] >> l & 1,
              is_nan = is_known && to->nans[at] >> l & 1;
    const lane x = {.i = i,
                    .j = j,
                    .kinds = g->panels_a.special[i] | (unsigned)g->panels_b.special[j],
                    .c = addend_at(g, i, j),
                    .special = special,
                    .over = g->run != mpsim_exact_rows && (redo >> l & 1 || is_known)};
    uint64_t code;
    if (!special && is_known && !s->overflows)
        return 0;
    if (!special && is_known && !is_nan) /* the path's own code */
        return 1;
    if (!settle(g, &x, is_nan, &code))
        return 0;
    put(g, to, at, l, code);
    return 1;
}

/* Whether row i has infinities, and no NaN is among the terms. */
static int is_infinite_row(const job *g, size_t i, size_t panel)
{
    uint64_t columns[2];
    memcpy(columns, g->panels_b.special + panel * N, sizeof columns);
    return !g->c && !g->raw && g->specials->a.words && g->panels_a.special[i] & MPSIM_LINE_INFINITE &&
           !((g->panels_a.special[i] | columns[0] | columns[1]) & (0x0101010101010101 * MPSIM_LINE_NAN));
}

/* Such a row; returns the columns, as bits, that are not settled. */
static unsigned infinite_row(const job *g, size_t i, size_t panel, results *to, size_t at, unsigned over)
{
    const mpsim_specials *s = g->specials;
    const size_t words = s->words, n = mpsim_panel_columns(g, panel);
    const mpsim_kinds *a = s->a.words + i * words, *b = s->b.words + panel * N * words;
    const uint64_t codes[] = {0, s->infinite[0], s->infinite[1], s->invalid};
    unsigned left = 0;
    for (size_t j = 0; j < n; j++) {
        const unsigned signs = signs_of(a, b + j * words, words);
        put(g, to, at, j, codes[signs]);
        left |= (signs == 0 || (signs != 3 && over >> j & 1) ? 1u : 0u) << j;
    }
    return left;
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
        for (size_t j = 0, n = mpsim_panel_columns(g, panel); j < n; j++)
            put(g, to, at, j,
                s->alike ? s->invalid : first_of(g, nan_of(&s->a, i), nan_of(&s->b, panel * N + j))->code);
        return;
    }
    if (is_infinite_row(g, i, panel)) {
        *redo = infinite_row(g, i, panel, to, at, g->run == mpsim_exact_rows ? 0 : before | to->known[at]);
        return;
    }
    for (size_t j = 0; left >> j; j++)
        if (left >> j & 1 && !settle_column(g, i, panel * N + j, to, at, before))
            *redo |= 1u << j;
}
