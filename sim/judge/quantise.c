/* quantise.c -- the judge of block quantisation (mpsim/judge.h): codes, block scales, or the numbers that they stand for.
 *
 * The row with the fewest other scales and codes is searched among all recipes that fit the sizes, on the first rows of a large
 * matrix. Scales and elements are judged apart: what is wrong with the scales by the row's own; then the elements under the scales
 * that were found, so that a wrong scale is not taken for wrong elements. */
#include "castrow.h"
#include "impl.h"
#include "quantrow.h"
#include "scales.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../quant/quant.h"

#include <mpsim/block.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_quantise_roles[] = {"x", NULL, "codes", "scales", "y", NULL};
enum { X, CODES, SCALES, VALUES };

enum { SAMPLE = 1 << 18, CANDIDATES = 192 };

/* The arrays of a question, as a matrix. */
typedef struct question {
    judge_case *w;
    float *x;
    uint8_t *codes; /* a byte each; NULL: not given */
    size_t rows, columns;
    float amax;                 /* of all of x, NaN dropped */
    int packed;                 /* two codes in a byte  */
    const mpsim_format *narrow; /* bf16 or fp16, whose numbers those of x are; or NULL */
    quantise_row candidates[CANDIDATES];
    size_t n;
} question;

/* What a recipe makes of the first rows. */
typedef struct made {
    const quantise_row *b;
    size_t rows, grid_rows, grid_columns;
    uint8_t *codes;
    float *values;
    uint8_t *scale_codes;
    float *scales, *inverses;
} made;

static void made_clear(made *m)
{
    free(m->codes);
    free(m->values);
    free(m->scale_codes);
    free(m->scales);
    free(m->inverses);
}

/* 0; or -1 without memory, or if the recipe needs what is not given. */
static int make(made *m, const question *q, const quantise_row *b, size_t rows)
{
    float tensor;
    *m = (made){.b = b, .rows = rows};
    mpsim_block_grid(&b->of, rows, q->columns, &m->grid_rows, &m->grid_columns);
    const size_t n = rows * q->columns, blocks = m->grid_rows * m->grid_columns;
    m->codes = want_memory(n + 1, 1);
    m->values = want_memory(n + 1, sizeof(float));
    m->scale_codes = want_memory(blocks + 1, 1);
    m->scales = want_memory(blocks + 1, sizeof(float));
    m->inverses = want_memory(blocks + 1, sizeof(float));
    if (!m->codes || !m->values || !m->scale_codes || !m->scales || !m->inverses)
        return -1;
    const mpsim_blocks out = {.codes = m->codes,
                              .values = m->values,
                              .scale_codes = m->scale_codes,
                              .scales = m->scales,
                              .inverses = m->inverses};
    if (b->kept) {
        const quantise_kept kept = {q->x,      rows,       q->columns, m->grid_rows, m->grid_columns,
                                    out.codes, out.values, out.scales, out.inverses};
        judge_quantise_kept(&kept, b);
        return 0;
    }
    return mpsim_block_quantize(&b->of, q->x, rows, q->columns, q->amax, 1, NULL, &out, &tensor) == MPSIM_OK ? 0 : -1;
}

/* ---- the arrays ---- */

static float *floats_of(const mpsim_judge_array *a)
{
    float *x = want_memory(a->rows * a->columns + 1, sizeof *x);
    if (x && mpsim_decode_array_f32(a->format, x, a->codes, a->rows * a->columns) != MPSIM_OK) {
        free(x);
        return NULL;
    }
    return x;
}

static mpsim_status take_codes(question *q, const mpsim_judge_array *codes)
{
    const size_t n = q->rows * q->columns, given = codes ? codes->rows * codes->columns : 0;
    if (!codes)
        return MPSIM_OK;
    q->packed = given != n && given == (n + 1) / 2;
    if ((given != n && !q->packed) || (codes->format && mpsim_format_code_bytes(codes->format) != 1))
        return judge_fail(q->w, MPSIM_EINVAL, "expected codes of a byte each, or two in a byte, of %zu x %zu elements",
                          q->rows, q->columns);
    q->codes = want_memory(n + 2, 1);
    if (q->codes && q->packed)
        quant_unpack(QUANT_NIBBLES, q->codes, codes->codes, n);
    else if (q->codes)
        memcpy(q->codes, codes->codes, n);
    return q->codes ? MPSIM_OK : MPSIM_ENOMEM;
}

static mpsim_status take_arrays(question *q)
{
    const mpsim_judge_array *x = q->w->of[X], *y = q->w->of[VALUES];
    if (!x->format)
        return judge_fail(q->w, MPSIM_EINVAL, "x: expected numbers");
    q->rows = x->rows;
    q->columns = x->columns;
    if (!q->w->of[CODES] && !y)
        return judge_fail(q->w, MPSIM_EINVAL, "expected an array 'codes' or 'y', found neither");
    if (y && (!y->format || y->rows != x->rows || y->columns != x->columns))
        return judge_fail(q->w, MPSIM_EINVAL, "y: expected %zu x %zu numbers", x->rows, x->columns);
    if (!(q->x = floats_of(x)))
        return judge_fail(q->w, MPSIM_ERANGE, "x: expected numbers of binary32, found %s", x->format->name);
    q->narrow = x->format->bits == 16 ? mpsim_format_find(x->format->name) : judge_narrow_of(&x, 1);
    for (size_t i = 0; i < q->rows * q->columns; i++)
        q->amax = fabsf(q->x[i]) > q->amax ? fabsf(q->x[i]) : q->amax;
    return take_codes(q, q->w->of[CODES]);
}

/* ---- rows ---- */

/* Whether the sizes and formats of the arrays can be those of the recipe. */
static int fits(const question *q, const quantise_row *b)
{
    const mpsim_judge_array *codes = q->w->of[CODES], *scales = q->w->of[SCALES];
    const mpsim_format *of = mpsim_format_find(b->of.element), *stored = mpsim_block_scale_format(&b->of);
    if (judge_quantise_is_random(&b->of) || (codes && codes->format && !mpsim_format_same(codes->format, of)) ||
        (q->packed && of->bits > 4) || (b->kept && b->kept != q->narrow))
        return 0;
    if (!scales)
        return 1;
    if (stored ? scales->format && scales->format->bits <= 8 && !mpsim_format_same(scales->format, stored)
               : !scales->format || scales->format->bits <= 8)
        return 0;
    size_t down, across;
    mpsim_block_grid(&b->of, q->rows, q->columns, &down, &across);
    return judge_scales_layout(scales->rows * scales->columns, down, across, 0) < JUDGE_LAYOUTS;
}

static void add_candidate(question *q, const quantise_row *b)
{
    for (size_t i = 0; i < q->n; i++)
        if (strcmp(q->candidates[i].of.name, b->of.name) == 0)
            return;
    if (q->n < CANDIDATES && fits(q, b))
        q->candidates[q->n++] = *b;
}

static void add_candidates(question *q)
{
    quantise_row b;
    for (size_t i = 0; judge_quantise_row_at(&b, i) == 0; i++)
        add_candidate(q, &b);
}

/* ---- how many differ ---- */

/* The scales that were found, as those of a recipe are stored, and the recipe's own. */
static int scales_of(judge_scales *s, const question *q, const made *m)
{
    const judge_scales_source from = {
        q->w->of[SCALES], mpsim_block_scale_format(&m->b->of),  m->scale_codes, m->scales, m->inverses, m->grid_rows,
        m->grid_columns,  m->rows == q->rows ? m->grid_rows : 0};
    size_t down, across;
    mpsim_block_grid(&m->b->of, q->rows, q->columns, &down, &across);
    return judge_scales_take(s, &from, down, across);
}

static uint64_t count_codes(const question *q, const made *m)
{
    const mpsim_format *f = mpsim_format_find(m->b->of.element);
    const judge_pair p = {f, q->codes, m->codes, m->rows, q->columns, 0};
    uint64_t n = 0;
    if (memcmp(q->codes, m->codes, m->rows * q->columns) == 0)
        return 0;
    for (size_t i = 0; i < m->rows * q->columns; i++)
        n += !judge_pair_same(&p, i);
    return n;
}

/* The values of a recipe as numbers of the format of y. */
static void *values_of(const question *q, const made *m)
{
    const mpsim_format *f = q->w->of[VALUES]->format;
    const size_t n = m->rows * q->columns;
    mpsim_rounding r;
    void *to = want_memory(n + 1, mpsim_format_code_bytes(f));
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (to)
        (void)mpsim_encode_array_f32(f, &r, NULL, to, m->values, n, NULL);
    return to;
}

static uint64_t count_values(const question *q, const made *m)
{
    const mpsim_format *f = q->w->of[VALUES]->format;
    void *values = values_of(q, m);
    uint64_t n = values ? 0 : UINT64_MAX;
    const judge_pair p = {f, q->w->of[VALUES]->codes, values, m->rows, q->columns, 1};
    for (size_t i = 0; i < m->rows * q->columns && values; i++)
        n += !judge_pair_same(&p, i);
    free(values);
    return n;
}

/* All that differs of a recipe for the first rows; UINT64_MAX without memory. A block with another scale counts as much as one with other
 * elements, so that the rule of the scale decides. */
static uint64_t count(const question *q, const quantise_row *b, size_t rows)
{
    made m;
    judge_scales s = {0};
    uint64_t n = UINT64_MAX;
    if (make(&m, q, b, rows) == 0) {
        n = q->codes ? count_codes(q, &m) : count_values(q, &m);
        if (q->w->of[SCALES] && scales_of(&s, q, &m) == 0)
            n += judge_scales_differ(&s) * (rows * q->columns / (m.grid_rows * m.grid_columns));
    }
    judge_scales_clear(&s);
    made_clear(&m);
    return n;
}

static size_t sample_rows(const question *q)
{
    const size_t rows = (SAMPLE / q->columns + 127) / 128 * 128;
    return rows < q->rows && rows ? rows : q->rows;
}

/* The recipe with the fewest differences, and how many those are in all. */
static const quantise_row *find_row(const question *q, uint64_t *differ)
{
    const quantise_row *best = NULL;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < q->n && least; i++) {
        /* a block that is the whole matrix, or a column of it, has a scale of all rows */
        const uint64_t n = count(q, &q->candidates[i], q->candidates[i].of.block_rows ? sample_rows(q) : q->rows);
        if (n < least) {
            least = n;
            best = &q->candidates[i];
        }
    }
    *differ = best ? count(q, best, q->rows) : UINT64_MAX;
    return best;
}

static void find_class(const question *q, const quantise_row *row)
{
    mpsim_judgement *j = q->w->j;
    for (size_t i = 0; i < q->n; i++) {
        const quantise_row *b = &q->candidates[i];
        if (strcmp(b->of.name, row->of.name) != 0 && count(q, b, q->rows))
            continue;
        if (j->same < MPSIM_JUDGE_ROWS)
            snprintf(j->class_rows[j->same], MPSIM_JUDGE_ROW, "%s", b->of.name);
        j->same++;
    }
}

/* ---- what is said ---- */

static uint64_t swapped(const question *q, const made *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->rows * q->columns; i++)
        n += q->codes[i ^ 1] != m->codes[i];
    return n;
}

/* Numbers as they were scaled before they became codes: by the factors of the row, corrected to the scales that were found. */
static float *scaled(const question *q, const made *m, const judge_scales *s)
{
    const size_t down = quant_up(m->rows, m->grid_rows), across = quant_up(q->columns, m->grid_columns);
    float *x = want_memory(m->rows * q->columns + 1, sizeof *x);
    for (size_t i = 0; i < m->rows && x; i++)
        for (size_t k = 0; k < q->columns; k++) {
            const size_t block = i / down * m->grid_columns + k / across;
            const double ratio = s->found ? judge_scales_ratio(s, block) : 1;
            x[i * q->columns + k] = q->x[i * q->columns + k] * (float)((double)m->scales[block] * ratio);
        }
    return x;
}

/* NaNs in place of numbers, beside scales that differ: with all of them in blocks whose scale is zero, that is why. */
static void say_nans(const question *q, const made *m, const judge_scales *s)
{
    const mpsim_format *f = mpsim_format_find(m->b->of.element);
    const size_t down = quant_up(m->rows, m->grid_rows), across = quant_up(q->columns, m->grid_columns);
    uint64_t nans = 0, under_zero = 0;
    for (size_t i = 0; i < m->rows * q->columns; i++)
        if (mpsim_classify(f, q->codes[i]) == MPSIM_CLASS_NAN && mpsim_classify(f, m->codes[i]) != MPSIM_CLASS_NAN) {
            nans++;
            under_zero +=
                (uint64_t)judge_scales_is_zero(s, i / q->columns / down * m->grid_columns + i % q->columns / across);
        }
    if (nans)
        judge_find(q->w->j, "nan", nans, "%" PRIu64 " elements are NaN where numbers are expected%s", nans,
                   under_zero == nans ? ": the scales of their blocks are 0" : "");
}

static int is_told(const mpsim_judgement *j, const char *cause)
{
    for (size_t i = 0; i < j->findings; i++)
        if (strcmp(j->finding[i].cause, cause) == 0)
            return 1;
    return 0;
}

/* The elements under the scales that were found: what a cast would have to be. */
static mpsim_status judge_elements(const question *q, const made *m, const judge_scales *s, uint64_t wrong)
{
    const mpsim_format *f = mpsim_format_find(m->b->of.element), *binary32 = mpsim_format_find("binary32");
    mpsim_judgement of;
    char like[96];
    float *x = scaled(q, m, s);
    if (!x)
        return MPSIM_ENOMEM;
    const mpsim_judge_array arrays[] = {{"x", binary32, x, m->rows, q->columns},
                                        {"y", f, q->codes, m->rows, q->columns}};
    snprintf(like, sizeof like, "%s@saturate", f->name);
    memset(&of, 0, sizeof of);
    judge_case cast = {{&arrays[0], &arrays[1]}, like, q->w->pool, &of, q->w->why, q->w->size, NULL};
    const mpsim_status status = judge_cast(&cast);
    free(x);
    if (status != MPSIM_OK)
        return status;
    if (of.differ <= (s->format && s->format->mbits > 7 ? wrong / 100 : 0) &&
        wrong) /* a product of two roundings may be one off */
        judge_find(q->w->j, "elements-follow", wrong, "the elements are right for the scales that were found");
    if (of.differ <= wrong / 100)
        return MPSIM_OK;
    /* places and codes are those of the array itself */
    for (size_t i = 0; i < of.findings; i++)
        if (judge_cast_is_choice(of.finding[i].cause) && !is_told(q->w->j, of.finding[i].cause) &&
            of.finding[i].explains >= of.differ / 2)
            judge_find(q->w->j, of.finding[i].cause, of.finding[i].explains, "elements: %.200s", of.finding[i].text);
    return MPSIM_OK;
}

static void set_results(mpsim_judgement *j, const char *role, const judge_pair *p, int only_where)
{
    j->role = role;
    j->format = *p->format;
    j->rows = p->rows;
    j->columns = p->columns;
    j->results += p->rows * p->columns;
    const uint64_t before = j->differ;
    judge_places(j, p, only_where ? JUDGE_WHERE : JUDGE_ALL);
    j->differ += before;
}

static mpsim_status say_codes(const question *q, const made *m, const judge_scales *s)
{
    const mpsim_format *f = mpsim_format_find(m->b->of.element);
    const uint64_t wrong = count_codes(q, m), scales_wrong = s->found ? judge_scales_differ(s) : 0;
    mpsim_judgement *j = q->w->j;
    const size_t before = j->findings;
    if (wrong && scales_wrong)
        say_nans(q, m, s);
    if (wrong && q->packed && swapped(q, m) * 16 < wrong)
        judge_find(j, "nibbles", wrong,
                   "the codes of each byte have changed places: the first element is in bits 4 to 7");
    else if (wrong) {
        const mpsim_status status = judge_elements(q, m, s, wrong);
        if (status != MPSIM_OK)
            return status;
    }
    const int known = j->findings > before;
    if (scales_wrong) { /* places and codes of the elements follow from those of the scales */
        j->results += m->rows * q->columns;
        j->differ += wrong;
        return MPSIM_OK;
    }
    const judge_pair p = {f, q->codes, m->codes, m->rows, q->columns, 0};
    set_results(j, "codes", &p, known);
    return MPSIM_OK;
}

/* Whether y has the numbers of the codes, without the scales. */
static int say_missing(const question *q, const made *m)
{
    const mpsim_judge_array *y = q->w->of[VALUES];
    const mpsim_format *f = mpsim_format_find(m->b->of.element);
    const size_t bytes = mpsim_format_code_bytes(y->format), all = m->rows * q->columns;
    uint64_t n = 0;
    for (size_t i = 0; i < all; i++)
        n += mpsim_decode(y->format, element_code(y->codes, bytes, i)) == mpsim_decode(f, m->codes[i]);
    if (n < all - all / 100 || q->w->j->differ < all / 4)
        return 0;
    judge_find(q->w->j, "scale-missing", n, "the numbers are those of the codes, without the scales");
    return 1;
}

/* The ratio of y to the values of a block, where it is one for all elements within roundings; 0: it is not; NaN: all are zero. */
static double block_ratio(const question *q, const made *m, size_t block)
{
    const mpsim_judge_array *y = q->w->of[VALUES];
    const size_t bytes = mpsim_format_code_bytes(y->format);
    const size_t down = quant_up(m->rows, m->grid_rows), across = quant_up(q->columns, m->grid_columns);
    const size_t top = block / m->grid_columns * down, left = block % m->grid_columns * across;
    const double slack = 8 * ldexp(1, -(int)y->format->mbits - 1);
    double ratio = NAN;
    for (size_t i = top; i < top + down && i < m->rows; i++)
        for (size_t k = left; k < left + across && k < q->columns; k++) {
            const double e = (double)m->values[i * q->columns + k],
                         f = mpsim_decode(y->format, element_code(y->codes, bytes, i * q->columns + k));
            if (e == 0 && f == 0)
                continue;
            if (e == 0 || !isfinite(f) || !isfinite(e))
                return 0;
            if (isnan(ratio))
                ratio = f / e;
            if (fabs(f / e / ratio - 1) > slack)
                return 0;
        }
    return ratio;
}

/* Whether each block is off by a factor of its own: right elements, wrong scales. */
static void say_factors(const question *q, const made *m)
{
    const size_t blocks = m->grid_rows * m->grid_columns;
    size_t of_own = 0, none = 0;
    double first = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < blocks; i++) {
        const double r = block_ratio(q, m, i);
        none += isnan(r) || r == 1;
        if (!(r != 0) || isnan(r) || r == 1)
            continue;
        first = of_own++ ? first : r;
        least = fmin(least, r);
        most = fmax(most, r);
    }
    if (of_own < 2 || least == most || of_own < (blocks - none) - (blocks - none) / 100 || q->w->j->format.mbits < 7)
        return;
    judge_find(q->w->j, "factor", q->w->j->differ,
               "%zu of %zu blocks are off by a factor of the block: %.6g in the first of them", of_own, blocks, first);
}

static mpsim_status say_values(const question *q, const made *m)
{
    void *values = values_of(q, m);
    if (!values)
        return MPSIM_ENOMEM;
    const judge_pair p = {q->w->of[VALUES]->format, q->w->of[VALUES]->codes, values, m->rows, q->columns, 1};
    set_results(q->w->j, "y", &p, 0);
    if (q->w->j->differ && !say_missing(q, m))
        say_factors(q, m);
    free(values);
    return MPSIM_OK;
}

/* Parts of a block whose maximum a scale may be of. */
static const struct {
    const char *text;
    size_t first, last, step; /* in eighths of a block; step: every so many elements */
} parts[] = {{"the first half", 0, 4, 1},       {"the second half", 4, 8, 1},      {"the first quarter", 0, 2, 1},
             {"every second element", 0, 8, 2}, {"every fourth element", 0, 8, 4}, {"the first eighth", 0, 1, 1}};
enum { PARTS = sizeof parts / sizeof parts[0] };

/* The question with zeros in place of what is no part of a block. */
static int keep_part(question *to, const question *q, size_t across, size_t part)
{
    *to = *q;
    to->x = want_memory(q->rows * q->columns + 1, sizeof *to->x);
    for (size_t i = 0; to->x && i < q->rows * q->columns; i++) {
        const size_t at = i % q->columns % across;
        const int is_in = at * 8 >= parts[part].first * across && at * 8 < parts[part].last * across &&
                          at % parts[part].step == 0;
        to->x[i] = is_in ? q->x[i] : 0;
    }
    return to->x ? 0 : -1;
}

/* Whether the scales are those of a part of each block. */
static void say_parts(const question *q, const quantise_row *row, size_t across, uint64_t differ)
{
    for (size_t i = 0; i < PARTS; i++) {
        question part;
        made m = {0};
        judge_scales s = {0};
        if (keep_part(&part, q, across, i) == 0 && make(&m, &part, row, q->rows) == 0 &&
            scales_of(&s, &part, &m) == 0 && judge_scales_differ(&s) <= differ / 100) {
            judge_find(q->w->j, "scale-factor", differ, "the scales are those of the maximum of %s of each block",
                       parts[i].text);
            i = PARTS;
        }
        judge_scales_clear(&s);
        made_clear(&m);
        free(part.x);
    }
}

static mpsim_status say(const question *q, const quantise_row *row)
{
    made m;
    judge_scales s = {0};
    mpsim_status status = MPSIM_ENOMEM;
    if (make(&m, q, row, q->rows) == 0 && (!q->w->of[SCALES] || scales_of(&s, q, &m) == 0)) {
        status = MPSIM_OK;
        if (s.found) {
            const judge_pair p = judge_scales_pair(&s);
            const int known = judge_scales_explain(q->w->j, &s, q->x, q->rows, q->columns);
            const uint64_t other = known ? 0 : judge_scales_differ(&s);
            if (other && m.grid_columns)
                say_parts(q, row, quant_up(q->columns, m.grid_columns), other);
            set_results(q->w->j, "scales", &p, known);
        }
        if (s.fault) /* right in another order: each is at a wrong place */
            q->w->j->differ = m.grid_rows * m.grid_columns;
        if (q->codes)
            status = say_codes(q, &m, &s);
        else
            status = say_values(q, &m);
    }
    judge_scales_clear(&s);
    made_clear(&m);
    return status;
}

static mpsim_status answer(question *q, const quantise_row *like)
{
    mpsim_judgement *j = q->w->j;
    uint64_t differ = 0;
    const quantise_row *best = q->w->sink && like ? NULL : find_row(q, &differ);
    const quantise_row *row = like ? like : best;
    if (!row)
        return judge_fail(q->w, MPSIM_ERANGE, "no recipe has these sizes and formats");
    snprintf(j->row, sizeof j->row, "%s", row->of.name);
    const mpsim_status status = say(q, row);
    if (status != MPSIM_OK)
        return status;
    if (like && best && j->differ && strcmp(best->of.name, like->of.name) != 0 && differ <= j->differ / 2) {
        snprintf(j->nearest, sizeof j->nearest, "%s", best->of.name);
        j->nearest_differ = differ;
    }
    if (j->differ == 0 && !q->w->sink)
        find_class(q, row);
    return MPSIM_OK;
}

mpsim_status judge_quantise(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    quantise_row like;
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status status = MPSIM_OK;
    if (c->like && (status = judge_quantise_row_parse(&like, c->like, c->why, c->size)) == MPSIM_ENOTFOUND)
        status = judge_fail(c, MPSIM_ENOTFOUND, "'%s' is not a block recipe", c->like);
    if (status == MPSIM_OK)
        status = take_arrays(q);
    if (status == MPSIM_OK && c->like && !fits(q, &like))
        status = judge_fail(c, MPSIM_ERANGE, "%s has other formats, or another number of scales, than these arrays",
                            like.of.name);
    if (status == MPSIM_OK) {
        add_candidates(q);
        status = answer(q, c->like ? &like : NULL);
    }
    free(q->x);
    free(q->codes);
    free(q);
    return status;
}
