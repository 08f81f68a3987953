/* chain_portable.h -- the loops of chain.h in plain C, for machines without fused multiply-adds: included by generic.c, which
 * defines CHAIN. */

/* x y + s rounded once to binary32, for finite x and y. The product has 48 bits and an exponent
 * within [-298, 255]: exact in binary64. Its sum with s is rounded to nearest; Knuth's two-sum
 * gives the error exactly, since binary64 neither overflows nor underflows here. Where there is an
 * error and the last bit of the sum is 0, the sum moves one unit toward the exact value, or stays:
 * that is rounding to odd with 53 bits, and a rounding to at most 51 bits after it is that of the
 * exact value, also to the fewer bits of a subnormal number, and beyond the largest one (Boldo and
 * Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to
 * odd", 2008). An infinite s gives itself: its error is NaN, and no comparison holds. */
static inline float fma_one(float x, float y, float s)
{
    const double p = (double)x * (double)y, c = (double)s;
    const double sum = p + c, part = sum - p;
    const double error = (p - (sum - part)) + (c - part);
    uint64_t u = mpsim_bits_f64(sum);
    const uint64_t inexact = (uint64_t)(error > 0) | (uint64_t)(error < 0);
    const uint64_t inward = (mpsim_bits_f64(error) ^ u) >> 63; /* of other signs */
    u += (inexact & ~u) * (1 - 2 * inward);
    return (float)mpsim_f64_bits(u);
}

static void fma_row(float x, const float *b, float *s)
{
    for (size_t j = 0; j < MPSIM_PANEL; j++)
        s[j] = fma_one(x, b[j], s[j]);
}

static void muladd_row(float x, const float *b, float *s)
{
    for (size_t j = 0; j < MPSIM_PANEL; j++)
        s[j] += x * b[j];
}

/* See chain_vectors.h. */
static void tree(const float *a, const float *b, float *s, size_t depth)
{
    float stack[8 * sizeof(size_t) + 1][MPSIM_PANEL];
    size_t top = 0;
    for (size_t k = 0; k < depth; k++, top++) {
        for (size_t j = 0; j < MPSIM_PANEL; j++)
            stack[top][j] = a[k] * b[k * MPSIM_PANEL + j];
        for (size_t bits = k; bits & 1; bits >>= 1, top--)
            for (size_t j = 0; j < MPSIM_PANEL; j++)
                stack[top - 1][j] += stack[top][j];
    }
    for (; top > 1; top--)
        for (size_t j = 0; j < MPSIM_PANEL; j++)
            stack[top - 2][j] += stack[top - 1][j];
    for (size_t j = 0; depth && j < MPSIM_PANEL; j++)
        s[j] += stack[0][j];
}

/* See chain_vectors.h. */
static void odd_first(const float *a, const float *b, float *s, size_t depth)
{
    static const float zeros[MPSIM_PANEL];
    for (size_t k = 0; k < depth; k += 2) {
        const int both = k + 1 < depth;
        fma_row(both ? a[k + 1] : 0, both ? b + (k + 1) * MPSIM_PANEL : zeros, s);
        fma_row(a[k], b + k * MPSIM_PANEL, s);
    }
}

static void two_lanes(const float *a, const float *b, float *s, size_t depth)
{
    float sum[2][MPSIM_PANEL] = {{0}};
    for (size_t k = 0; k < depth; k++)
        fma_row(a[k], b + k * MPSIM_PANEL, sum[k % 2]);
    for (size_t j = 0; j < MPSIM_PANEL; j++)
        s[j] = sum[0][j] + sum[1][j];
}

/* Products of a row and a panel. */
static void chain_part(int kind, const float *a, const float *b, float *s, size_t depth)
{
    if (kind == MPSIM_CHAIN_PAIRWISE)
        tree(a, b, s, depth);
    else if (kind == MPSIM_CHAIN_ODD_FIRST)
        odd_first(a, b, s, depth);
    else if (kind == MPSIM_CHAIN_LANES)
        two_lanes(a, b, s, depth);
    else if (kind == MPSIM_CHAIN_FMA)
        for (size_t k = 0; k < depth; k++)
            fma_row(a[k], b + k * MPSIM_PANEL, s);
    else
        for (size_t k = 0; k < depth; k++)
            muladd_row(a[k], b + k * MPSIM_PANEL, s);
}

static void chain_chunks(int kind, const mpsim_chain_work *w, const float *a, const float *b, float *s)
{
    for (size_t k = 0; k < w->depth; k += w->chunk) {
        float sum[MPSIM_PANEL] = {0};
        chain_part(kind, a + k, b + k * MPSIM_PANEL, sum, w->depth - k < w->chunk ? w->depth - k : w->chunk);
        for (size_t j = 0; j < MPSIM_PANEL; j++)
            s[j] += sum[j];
    }
}

static void CHAIN(int kind, const mpsim_chain_work *w, float *s)
{
    for (size_t p = 0; p < w->panels; p++)
        for (size_t r = 0; r < w->rows; r++) {
            const float *a = w->a + r * w->next, *b = w->b + p * w->apart;
            float *to = s + p * w->sums + r * MPSIM_PANEL;
            if (w->chunk)
                chain_chunks(kind, w, a, b, to);
            else
                chain_part(kind, a, b, to, w->depth);
        }
}
