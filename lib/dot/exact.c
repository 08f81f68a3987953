/* exact.c -- see exact.h. */
#include "exact.h"

#include "../arith/scalar.h"

enum { N = MPSIM_PANEL, ROWS = 8, BLOCK = 64 /* products whose slices are kept at once */ };

/* Numbers of a line are integers below 2^width in units of 2^unit. */
typedef struct scaled {
    int width, unit;
} scaled;

static scaled scaled_line(int low, int high, int bits, int last)
{
    if (low > high) /* zeros */
        return (scaled){0, 0};
    const int unit = low - bits + 1 > last ? low - bits + 1 : last;
    return (scaled){high + 1 - unit, unit};
}

static scaled scaled_row(const mpsim_exact *e, const mpsim_exact_lines *x, size_t r)
{
    return scaled_line(x->low[r], x->high[r], e->bits_a, e->last_a);
}

static scaled scaled_column(const mpsim_exact *e, const mpsim_exact_lines *x, size_t j)
{
    return scaled_line(x->lows[j], x->highs[j], e->bits_b, e->last_b);
}

int mpsim_exact_init(mpsim_exact *e, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, size_t depth)
{
    if (m->addition != MPSIM_ADDITION_EXACT || m->chunk != 0 || m->traits || !mpsim_in_binary32(fa) ||
        !mpsim_in_binary32(fb))
        return 0;
    e->bits_a = fa->mbits + 1;
    e->bits_b = fb->mbits + 1;
    e->last_a = mpsim_format_last_bit(fa);
    e->last_b = mpsim_format_last_bit(fb);
    e->depth = depth;
    e->carry = 0;
    while (e->carry < 63 && (uint64_t)1 << e->carry < depth)
        e->carry++;
    return 1;
}

int mpsim_exact_width(const mpsim_exact *e, const mpsim_exact_lines *x)
{
    int width = 0;
    for (size_t j = 0; j < N; j++) {
        const scaled column = scaled_column(e, x, j);
        width = column.width > width ? column.width : width;
    }
    return width;
}

int mpsim_exact_way(const mpsim_exact *e, const mpsim_exact_lines *x, size_t r, int width)
{
    const int row = scaled_row(e, x, r).width, others = width + e->carry;
    return row + others <= 53 ? MPSIM_EXACT_WHOLE : row / 2 + others <= 53 ? MPSIM_EXACT_HALVES : MPSIM_EXACT_SLICED;
}

static double power(int e)
{
    return mpsim_f64_bits((uint64_t)(1023 + e) << 52);
}

double mpsim_exact_cut(const mpsim_exact *e, const mpsim_exact_lines *x, size_t r)
{
    const scaled row = scaled_row(e, x, r);
    return 1.5 * power(52 + row.unit + (row.width + 1) / 2);
}

#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static mpsim_number number_of(wide sum, int unit)
{
    const int sign = sum < 0;
    const unsigned_wide m = sign ? 0 - (unsigned_wide)sum : (unsigned_wide)sum;
    const mpsim_u128 parts = {(uint64_t)(m >> 64), (uint64_t)m};
    return m ? mpsim_number_wide(sign, parts, unit + 127) : mpsim_number_make(0, 0, 0);
}

/* A product of rows and a panel on its way. */
typedef struct sliced {
    int count; /* of slices */
    scaled row[ROWS], column[N];
    double cut_columns[MPSIM_SLICES][N];
    double s[ROWS][2 * MPSIM_SLICES - 1][N];
    wide total[ROWS][N];
} sliced;

static double cut(int unit, int i)
{
    return 1.5 * power(52 + unit + MPSIM_SLICE * i);
}

/* Where the lines are cut. A line that is too wide is not cut right, its sums are not used. */
static void start(sliced *w, const mpsim_exact *e, const mpsim_exact_lines *x, unsigned *redo)
{
    int width = 0;
    for (size_t j = 0; j < N; j++) {
        w->column[j] = scaled_column(e, x, j);
        width = w->column[j].width > width ? w->column[j].width : width;
    }
    for (size_t r = 0; r < x->rows; r++) {
        w->row[r] = scaled_row(e, x, r);
        width = w->row[r].width > width ? w->row[r].width : width;
        /* 126 bits: an addend that follows needs two more (mpsim_number_add) */
        for (size_t j = 0; j < N; j++)
            if (w->row[r].width > MPSIM_SLICE * MPSIM_SLICES || w->column[j].width > MPSIM_SLICE * MPSIM_SLICES ||
                w->row[r].width + w->column[j].width + e->carry > 126)
                redo[r] |= 1u << j;
    }
    w->count = width > 2 * MPSIM_SLICE ? 3 : 2;
    for (int i = 1; i < w->count; i++)
        for (size_t j = 0; j < N; j++)
            w->cut_columns[i][j] = cut(w->column[j].unit, i);
    memset(w->s, 0, sizeof w->s);
    memset(w->total, 0, sizeof w->total);
}

/* The sums of products of slices become integers. */
static void collect(sliced *w, size_t rows, const unsigned *redo)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; redo[r] != ~0u && j < N; j++)
            for (int d = 0; d < 2 * w->count - 1 && !(redo[r] >> j & 1); d++) {
                const int shift = MPSIM_SLICE * d;
                const double scale = power(-(w->row[r].unit + w->column[j].unit) - shift);
                w->total[r][j] += (wide)(int64_t)(w->s[r][d][j] * scale) * ((wide)1 << shift);
            }
        memset(w->s[r], 0, sizeof w->s[r]);
    }
}

/* Products first to first + n - 1, n <= BLOCK. */
static void add_block(sliced *w, const mpsim_exact_lines *x, mpsim_slice_function *slice, mpsim_slices_function *add,
                      const unsigned *redo, size_t first, size_t n)
{
    double a[BLOCK * MPSIM_SLICES], b[BLOCK * N * MPSIM_SLICES];
    const size_t groups = (n - 1) / N + 1;
    slice(x->b + first * N, (const double(*)[N])w->cut_columns, b, (size_t)w->count, n);
    for (size_t r = 0; r < x->rows; r++) {
        double row[BLOCK] = {0}, cuts[MPSIM_SLICES][N];
        if (redo[r] == ~0u)
            continue;
        memcpy(row, x->a + r * x->next + first, n * sizeof row[0]);
        for (int i = 1; i < w->count; i++)
            for (size_t j = 0; j < N; j++)
                cuts[i][j] = cut(w->row[r].unit, i);
        slice(row, (const double(*)[N])cuts, a, (size_t)w->count, groups);
        add(a, b, w->s[r], (size_t)w->count, n);
    }
}

void mpsim_exact_slices(const mpsim_exact *e, const mpsim_exact_lines *x, mpsim_slice_function *slice,
                        mpsim_slices_function *add, unsigned *redo, mpsim_number (*sums)[N])
{
    sliced w;
    start(&w, e, x, redo);
    for (size_t k = 0; k < e->depth; k += BLOCK) {
        add_block(&w, x, slice, add, redo, k, e->depth - k < BLOCK ? e->depth - k : BLOCK);
        if ((k + BLOCK) % MPSIM_SLICE_PRODUCTS == 0)
            collect(&w, x->rows, redo);
    }
    collect(&w, x->rows, redo);
    for (size_t r = 0; r < x->rows; r++)
        for (size_t j = 0; j < N; j++)
            if (!(redo[r] >> j & 1))
                sums[r][j] = number_of(w.total[r][j], w.row[r].unit + w.column[j].unit);
}
#else
void mpsim_exact_slices(const mpsim_exact *e, const mpsim_exact_lines *x, mpsim_slice_function *slice,
                        mpsim_slices_function *add, unsigned *redo, mpsim_number (*sums)[MPSIM_PANEL])
{
    (void)e;
    (void)slice;
    (void)add;
    (void)sums;
    for (size_t r = 0; r < x->rows; r++)
        redo[r] = ~0u;
}
#endif
