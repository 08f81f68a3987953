/* inputquantise.c -- a matrix that tells block quantisers apart: a block for each maximum where a scale rule has a border, with elements
 * at ties under the scales that rules give it. */
#include "inputs.h"
#include "quantrow.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ACROSS = 3 }; /* blocks beside one another: an odd number */

static mpsim_status formats(judge_inputs *w, const mpsim_format *from)
{
    float y;
    w->set->format[0] = from ? *from : *mpsim_format_find("binary32");
    if (mpsim_decode_array_f32(&w->set->format[0], &y, NULL, 0) == MPSIM_ERANGE)
        return judge_inputs_fail(w, MPSIM_ERANGE, "a quantiser takes numbers of binary32, not %s", from->name);
    return MPSIM_OK;
}

/* ---- maxima ---- */

typedef struct maxima {
    const mpsim_format *from;
    double *items;
    size_t n;
    int bad;
} maxima;

static void add_one(maxima *m, double x)
{
    if (m->bad || (m->bad = want_room(&m->items, m->n, 1, sizeof *m->items)))
        return;
    m->items[m->n++] = x;
}

/* x as a number of the source, and its neighbours. */
static void add(maxima *m, double x, int beside)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    const uint64_t code = mpsim_encode_f64(m->from, &r, x, 0, NULL);
    for (uint64_t c = code > (uint64_t)beside ? code - (uint64_t)beside : 1;
         c <= code + (uint64_t)beside && c <= m->from->max_finite; c++)
        add_one(m, mpsim_decode(m->from, c));
}

/* The borders of the rules for one format of elements: powers of two, the largest number times these, and where rounding to the significand
 * of the elements, or of a logarithm, comes to a power of two. */
static void add_element(maxima *m, const mpsim_format *f, const int *exponents, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double unit = ldexp(1, exponents[i]);
        add(m, unit, 2);
        add(m, unit * mpsim_format_max(f), 2);
        add(m, unit * (2 - ldexp(1, -f->mbits - 1)), 1);
        add(m, unit * (2 - ldexp(1, -f->mbits - 2)), 1);
        for (int k = 12; k < 24; k += 2)
            add(m, unit * (1 - ldexp(1, -k)), 0);
    }
}

/* Maxima of any significand: scales in binary32 and in e4m3 are rounded. */
static void add_some(maxima *m, size_t n, int low, int high)
{
    uint64_t state = 49;
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = judge_inputs_random(&state);
        add(m, ldexp(1 + (double)(r >> 12) * 0x1p-52, low + (int)(r % (uint64_t)(high - low))), 0);
    }
}

static void add_extremes(maxima *m)
{
    static const double epsilons[] = {1e-12, 1e-10, 1e-8, 1e-5, 1e-4};
    for (int e = -149; e <= -117; e++)
        add(m, ldexp(1, e), e % 4 == 0);
    for (int e = 112; e <= 127; e++)
        add(m, ldexp(1.75, e), 0);
    for (size_t i = 0; i < sizeof epsilons / sizeof epsilons[0]; i++)
        add(m, epsilons[i], 1);
    add(m, mpsim_format_max(m->from), 1);
    add(m, mpsim_format_min_positive(m->from), 2);
}

/* Whether a scale depends on the whole tensor, or on many rows. */
static int is_global(const mpsim_block_recipe *b)
{
    return b->rule == MPSIM_SCALE_NVFP4_TE || b->rule == MPSIM_SCALE_NVFP4_TORCHAO || b->block_rows == 0;
}

static void add_maxima(maxima *m, const mpsim_block_recipe *only)
{
    static const int near[] = {-3, 0, 1, 2, 5}, far[] = {-100, -20, -1, 0, 1, 7, 63, 100};
    static const char *const elements[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
    const int global = !only || is_global(only);
    for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++)
        if (!only || strcmp(only->element, elements[i]) == 0)
            add_element(m, mpsim_format_find(elements[i]), global ? near : far, global ? 5 : 8);
    if (only && mpsim_format_find(only->element) && m->n == 0)
        add_element(m, mpsim_format_find(only->element), global ? near : far, global ? 5 : 8);
    add_some(m, 60, global ? -8 : -40, global ? 8 : 40);
    add_one(m, 0);
    if (global) {
        add(m, 0x1p-17, 0);
        add(m, 0x1p-24, 0);
    } else
        add_extremes(m);
    add_one(m, NAN);
    if (!global)
        add_one(m, INFINITY);
}

/* ---- elements ---- */

typedef struct matrix {
    const mpsim_format *from;
    void *codes;
    size_t columns;
    uint64_t state;
    const mpsim_format *elements[5];
    size_t n;
} matrix;

static void put(matrix *x, size_t row, size_t column, double value)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    element_put_code(x->codes, mpsim_format_code_bytes(x->from), row * x->columns + column,
                     mpsim_encode_f64(x->from, &r, value, 0, NULL));
}

/* A number at most amax that is at a code, halfway or a quarter behind it, under a scale that a rule may give the block. */
static double element_below(matrix *x, double amax)
{
    const uint64_t r = judge_inputs_random(&x->state);
    const mpsim_format *f = x->elements[r % x->n];
    const double power = ldexp(1, ilogb(amax) - ilogb(mpsim_format_max(f)));
    const double scales[] = {power, power * 2, amax / mpsim_format_max(f),
                             (double)((float)amax / (float)mpsim_format_max(f))};
    const double scale = scales[r >> 8 & 3];
    const uint64_t code = (r >> 16) % f->max_finite;
    const double at = mpsim_decode(f, code), next = mpsim_decode(f, code + 1);
    double value = (at + (next - at) * (double)(r >> 32 & 3) / 4) * scale;
    if ((r >> 34 & 3) == 3)
        value = nextafter((float)value, r >> 36 & 1 ? 0 : INFINITY);
    return (value <= amax ? value : amax) * (r >> 37 & 1 ? -1 : 1);
}

/* A block: its maximum once, of either sign, at any place; or NaN or infinity beside ordinary numbers. */
static void fill(matrix *x, size_t row, size_t column, size_t rows, size_t columns, double amax)
{
    const double ordinary = isfinite(amax) ? amax : 3;
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < columns; k++)
            put(x, row + i, column + k, ordinary > 0 ? element_below(x, ordinary) : k % 2 ? -0.0 : 0.0);
    const uint64_t r = judge_inputs_random(&x->state);
    if (amax != 0)
        put(x, row + (r >> 8) % rows, column + r % columns, r >> 40 & 1 ? -amax : amax);
}

/* ---- the shape ---- */

typedef struct shape {
    size_t block_rows, block_columns; /* of the blocks that are filled */
    size_t across, down;
    size_t tiles; /* rows of tiles of 128 x 128 behind them */
} shape;

static shape shape_of(const mpsim_block_recipe *only, size_t n)
{
    shape s = {1, 128, ACROSS, 0, 0};
    if (only) {
        s.block_rows = only->block_rows ? only->block_rows : 1;
        s.block_columns = only->block_cols ? only->block_cols : 67;
        s.across = only->block_cols ? ACROSS : 1;
    } else
        s.tiles = 2;
    if (s.block_rows > 16)
        n = n < 36 ? n : 36; /* of tiles a few */
    s.down = (n + s.across - 1) / s.across;
    s.down += s.down % 2 == 0; /* odd, too */
    return s;
}

static mpsim_status make_matrix(judge_inputs *w, matrix *x, const maxima *m, const mpsim_block_recipe *only)
{
    const shape s = shape_of(only, m->n);
    size_t rows = s.down * s.block_rows;
    if (s.tiles)
        rows = (rows + 127) / 128 * 128 + s.tiles * 128;
    x->columns = s.across * s.block_columns;
    if (!(x->codes = judge_inputs_array(w->set, 0, "x", rows, x->columns)))
        return MPSIM_ENOMEM;
    const size_t blocks = s.down * s.across;
    for (size_t i = 0; i < blocks; i++)
        fill(x, i / s.across * s.block_rows, i % s.across * s.block_columns, s.block_rows, s.block_columns,
             m->items[blocks < m->n ? i * m->n / blocks : i % m->n]);
    for (size_t i = 0; i < s.tiles * ACROSS; i++)
        fill(x, rows - (1 + i / ACROSS) * 128, i % ACROSS * 128, 128, 128, m->items[i * 7 % (m->n / 2)]);
    return MPSIM_OK;
}

static mpsim_status make(judge_inputs *w)
{
    static const char *const elements[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
    mpsim_block_recipe b;
    unsigned transform = 0;
    maxima m = {.from = &w->set->format[0]};
    matrix x = {.from = &w->set->format[0], .state = 49};
    if (w->row && mpsim_block_parse(&b, &transform, w->row, w->why, w->size) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    if (w->row && (transform || judge_quantise_is_random(&b)))
        return judge_inputs_fail(w, MPSIM_ERANGE, "'%s' needs random bits, a transform or a given scale", w->row);
    for (size_t i = 0; i < 5 && !w->row; i++)
        x.elements[x.n++] = mpsim_format_find(elements[i]);
    if (w->row)
        x.elements[x.n++] = mpsim_format_find(b.element);
    add_maxima(&m, w->row ? &b : NULL);
    const mpsim_status s = m.bad ? MPSIM_ENOMEM : make_matrix(w, &x, &m, w->row ? &b : NULL);
    free(m.items);
    return s;
}

/* ---- rows ---- */

/* Whether codes and scales of both have one form: other rows are told apart by the form. */
static int is_alike(const mpsim_block_recipe *a, const mpsim_block_recipe *b)
{
    return strcmp(a->element, b->element) == 0 && a->block_rows == b->block_rows && a->block_cols == b->block_cols &&
           mpsim_block_scale_format(a) == mpsim_block_scale_format(b);
}

static mpsim_status rows(judge_inputs *w)
{
    mpsim_block_recipe like;
    quantise_row row;
    unsigned transform;
    int bad = 0;
    if (w->row && mpsim_block_parse(&like, &transform, w->row, w->why, w->size) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    for (size_t i = 0; judge_quantise_row_at(&row, i) == 0 && !bad; i++)
        bad = !row.kept && !judge_quantise_is_random(&row.of) && (!w->row || is_alike(&like, &row.of)) &&
              judge_inputs_name(w->set, row.of.name);
    if (w->row && !bad)
        bad = judge_inputs_name(w->set, like.name);
    return bad ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- results ---- */

typedef struct made {
    float *x, *values, *scales;
    uint8_t *codes, *scale_codes;
} made;

static mpsim_status quantise(made *m, const mpsim_judge_array *x, const mpsim_block_recipe *b, size_t blocks)
{
    const size_t n = x->rows * x->columns;
    float amax = 0, tensor;
    m->x = want_memory(n + 1, sizeof(float));
    m->values = want_memory(n + 1, sizeof(float));
    m->scales = want_memory(blocks + 1, sizeof(float));
    m->codes = want_memory(n + 1, 1);
    m->scale_codes = want_memory(blocks + 1, 1);
    if (!m->x || !m->values || !m->scales || !m->codes || !m->scale_codes)
        return MPSIM_ENOMEM;
    (void)mpsim_decode_array_f32(x->format, m->x, x->codes, n);
    for (size_t i = 0; i < n; i++)
        amax = fabsf(m->x[i]) > amax ? fabsf(m->x[i]) : amax;
    const mpsim_blocks out = {
        .codes = m->codes, .values = m->values, .scale_codes = m->scale_codes, .scales = m->scales};
    return mpsim_block_quantize(b, m->x, x->rows, x->columns, amax, 1, NULL, &out, &tensor);
}

/* Codes, scales and the numbers that these stand for. */
static mpsim_status sign(const mpsim_judge_set *set, const char *name, uint64_t *hash)
{
    const mpsim_judge_array *x = &set->array[0];
    const mpsim_format *binary32 = mpsim_format_find("binary32"), *byte = mpsim_format_find("e4m3");
    mpsim_block_recipe b;
    unsigned transform;
    size_t down, across;
    made m = {0};
    if (mpsim_block_parse(&b, &transform, name, NULL, 0) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    mpsim_block_grid(&b, x->rows, x->columns, &down, &across);
    const mpsim_status s = quantise(&m, x, &b, down * across);
    if (s == MPSIM_OK) {
        for (const char *c = b.element; *c; c++)
            *hash = judge_inputs_mix(*hash, (unsigned char)*c);
        *hash = judge_inputs_mix(judge_inputs_mix(*hash, down), across);
        *hash = judge_inputs_mix_codes(*hash, byte, m.codes, x->rows * x->columns, 0);
        *hash = judge_inputs_mix_codes(*hash, binary32, m.values, x->rows * x->columns, 1);
        if (mpsim_block_scale_format(&b))
            *hash = judge_inputs_mix_codes(*hash, byte, m.scale_codes, down * across, 0);
        else
            *hash = judge_inputs_mix_codes(*hash, binary32, m.scales, down * across, 1);
    }
    free(m.x);
    free(m.values);
    free(m.scales);
    free(m.codes);
    free(m.scale_codes);
    return s;
}

const judge_inputs_kind judge_inputs_quantise = {formats, make, rows, sign};
