/* epilogue.c -- see epilogue.h. */
#include "epilogue.h"

#include "panel.h"

#include <mpsim/layer.h>

enum { N = MPSIM_PANEL, MOST = MPSIM_ENDING_ROWS * N };

void mpsim_epilogue_init(mpsim_epilogue *e, const mpsim_format *sums, const mpsim_format *numbers,
                         const mpsim_format *lies)
{
    *e = (mpsim_epilogue){
        .sums = sums, .numbers = numbers ? numbers : lies, .lies = lies, .wide = !mpsim_in_binary32(sums)};
    e->narrow = mpsim_in_binary32(e->numbers);
    e->rounds = !mpsim_format_same(e->sums, e->numbers) || !mpsim_format_same(e->numbers, e->lies);
    e->inverse = e->factor = e->add_factor = 1;
    mpsim_rounding_init(&e->rounding, MPSIM_ROUND_NEAREST_EVEN);
    mpsim_ready_init(&e->ready, e->lies, &e->rounding, 0);
}

void mpsim_epilogue_scale(mpsim_epilogue *e, float inverse_a, float inverse_b, float factor)
{
    e->inverse = inverse_a * inverse_b;
    e->scales = inverse_a != 1 || inverse_b != 1;
    e->factor = factor;
    e->multiplies = factor != 1;
}

void mpsim_epilogue_count(const mpsim_epilogue *e, mpsim_entered *to)
{
    if (!to)
        return;
    to->nonzero += e->counts[0];
    to->lost += e->counts[1];
    to->overflow += e->counts[2];
    to->nonfinite += e->counts[3];
}

/* Rows of a tile, side by side. */
typedef struct tile {
    size_t first, rows, column, columns;
} tile;

static size_t size_of(const tile *t)
{
    return t->rows * t->columns;
}

/* ---- in binary32 ---- */

static void read_addend(const mpsim_addend *x, const tile *t, float *to)
{
    for (size_t i = 0; i < t->rows; i++)
        mpsim_read_f32(to + i * t->columns, x->format, x->codes,
                       x->first + (int64_t)(t->first + i) * x->row + (int64_t)t->column * x->col, x->col, t->columns);
}

static void multiply(float *s, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s[i] *= factor;
}

static void add(float *s, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        s[i] += x[i];
}

static void compute(const mpsim_ending *to, const tile *t, float *s)
{
    const mpsim_epilogue *e = to->e;
    float x[MOST];
    if (e->scales)
        multiply(s, e->inverse, size_of(t));
    if (e->multiplies)
        multiply(s, e->factor, size_of(t));
    if (to->bias.codes) {
        read_addend(&to->bias, t, x);
        add(s, x, size_of(t));
    }
    if (!to->add.codes)
        return;
    read_addend(&to->add, t, x);
    if (e->weighs)
        multiply(x, e->add_factor, size_of(t));
    add(s, x, size_of(t));
}

static void count(mpsim_epilogue *e, uint64_t nonzero, uint64_t nonfinite, const mpsim_counts *cast)
{
    const uint64_t all[4] = {nonzero, cast->underflow, cast->overflow, nonfinite};
    for (size_t i = 0; i < 4; i++)
        if (all[i])
            atomic_fetch_add_explicit(&e->counts[i], all[i], memory_order_relaxed);
}

/* The codes of d. */
static mpsim_status round_f32(mpsim_epilogue *e, void *codes, float *s, size_t n)
{
    const int same = mpsim_format_same(e->numbers, e->lies);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (e->counting || !same) {
        mpsim_counts cast = {0, 0, 0, 0, 0};
        const uint64_t nonzero = e->counting ? mpsim_count_numbers(s, n).nonzero : 0;
        const mpsim_status status = mpsim_is_f32(e->numbers) ? MPSIM_OK
                                                             : mpsim_round_array_f32(e->numbers, &r, NULL, s, s, n,
                                                                                     e->counting ? &cast : NULL);
        if (status)
            return status;
        if (e->counting)
            count(e, nonzero, n - mpsim_count_numbers(s, n).finite, &cast);
    }
    if (mpsim_is_f32(e->lies)) {
        memcpy(codes, s, n * sizeof *s);
        return MPSIM_OK;
    }
    return mpsim_ready_run(&e->ready, codes, s, n);
}

/* ---- in binary64 ---- */

static void add_wide(const mpsim_addend *x, const tile *t, double *s, double factor)
{
    double v[N];
    for (size_t i = 0; x->codes && i < t->rows; i++) {
        mpsim_read_f64(v, x->format, x->codes,
                       x->first + (int64_t)(t->first + i) * x->row + (int64_t)t->column * x->col, x->col, t->columns);
        for (size_t j = 0; j < t->columns; j++)
            s[i * t->columns + j] += factor == 1 ? v[j] : v[j] * factor;
    }
}

static void compute_wide(const mpsim_ending *to, const tile *t, double *s)
{
    const mpsim_epilogue *e = to->e;
    for (size_t i = 0; i < size_of(t); i++) {
        s[i] = e->scales ? s[i] * (double)e->inverse : s[i];
        s[i] = e->multiplies ? s[i] * (double)e->factor : s[i];
    }
    add_wide(&to->bias, t, s, 1);
    add_wide(&to->add, t, s, (double)e->add_factor);
}

static mpsim_status round_wide(mpsim_epilogue *e, void *codes, double *s, size_t n)
{
    mpsim_counts cast = {0, 0, 0, 0, 0};
    uint64_t nonzero = 0, nonfinite = 0;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; e->counting && i < n; i++)
        nonzero += s[i] != 0 && s[i] - s[i] == 0;
    mpsim_status status = mpsim_round_array_f64(e->numbers, &r, NULL, s, s, n, &cast);
    for (size_t i = 0; e->counting && i < n; i++)
        nonfinite += s[i] - s[i] != 0;
    if (!status && e->counting)
        count(e, nonzero, nonfinite, &cast);
    return status ? status : mpsim_encode_array_f64(e->lies, &r, NULL, codes, s, n, NULL);
}

static mpsim_status round_widened(mpsim_epilogue *e, void *codes, const float *s, size_t n)
{
    double wide[MOST];
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)s[i];
    return round_wide(e, codes, wide, n);
}

/* ---- a tile ---- */

/* Rows of a whole panel without gaps; `bytes` is a constant where this is inlined. */
static inline void write_rows(const mpsim_ending *to, const tile *t, const size_t bytes, const unsigned char *codes)
{
    unsigned char *row = (unsigned char *)to->d +
                         (to->first + (int64_t)t->first * to->row + (int64_t)t->column) * (int64_t)bytes;
    for (size_t i = 0; i < t->rows; i++)
        memcpy(row + (int64_t)i * to->row * (int64_t)bytes, codes + i * N * bytes, N * bytes);
}

static void write_tile(const mpsim_ending *to, const tile *t, const void *codes)
{
    const size_t bytes = mpsim_format_code_bytes(to->e->lies);
    if (to->col == 1 && t->columns == N && bytes == 2)
        write_rows(to, t, 2, (const unsigned char *)codes);
    else if (to->col == 1 && t->columns == N && bytes == 4)
        write_rows(to, t, 4, (const unsigned char *)codes);
    else
        for (size_t i = 0; i < t->rows; i++)
            mpsim_write_codes(to->d, bytes,
                              to->first + (int64_t)(t->first + i) * to->row + (int64_t)t->column * to->col, to->col,
                              t->columns, (const unsigned char *)codes + i * t->columns * bytes);
}

void mpsim_end_sums(mpsim_ending *to, size_t first, size_t rows, size_t column, size_t columns, const void *sums,
                    size_t stride)
{
    mpsim_epilogue *e = to->e;
    const tile t = {first, rows, column, columns};
    const size_t bytes = mpsim_format_code_bytes(e->sums);
    union {
        float f32[MOST];
        double f64[MOST];
    } s;
    double codes[MOST];
    mpsim_status status;
    const int plain = mpsim_is_f32(e->sums);
    if (plain && columns == stride)
        memcpy(s.f32, sums, rows * stride * sizeof(float));
    for (size_t i = 0; i < rows && !(plain && columns == stride); i++) {
        const unsigned char *row = (const unsigned char *)sums + i * stride * bytes;
        if (e->wide)
            mpsim_read_f64(s.f64 + i * columns, e->sums, row, 0, 1, columns);
        else
            mpsim_read_f32(s.f32 + i * columns, e->sums, row, 0, 1, columns);
    }
    if (e->wide) {
        compute_wide(to, &t, s.f64);
        status = round_wide(e, codes, s.f64, size_of(&t));
    } else {
        compute(to, &t, s.f32);
        status = e->narrow ? round_f32(e, codes, s.f32, size_of(&t)) : round_widened(e, codes, s.f32, size_of(&t));
    }
    if (status)
        atomic_store_explicit(&e->status, status, memory_order_relaxed);
    else
        write_tile(to, &t, codes);
}
