/* groups.c -- which models and operands groups.h can do, and rows of them. */
#include "job.h"

#include <math.h>

/* All places are binary32 in that mode, and an overflow is an infinity. */
static int rounds(const mpsim_model *m, int mode)
{
    mpsim_rounded p[] = {m->accumulator, m->outer, m->result, m->product};
    const size_t n = m->addition == MPSIM_ADDITION_MULADD ? 4 : 3;
    for (size_t i = 0; i < n; i++) {
        if (p[i].rounding.mode != (i == 2 ? MPSIM_ROUND_NEAREST_EVEN : mode))
            return 0;
        p[i].rounding.mode = MPSIM_ROUND_NEAREST_EVEN;
        if (!mpsim_is_native(&p[i]))
            return 0;
    }
    return 1;
}

static int is_bf16_like(const mpsim_format *f)
{
    return f->mbits <= 10 && mpsim_in_binary32(f) && mpsim_emin(f) >= -126;
}

int mpsim_group_init(mpsim_group *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const unsigned flushes = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS;
    const unsigned traits = m->traits & ~(unsigned)MPSIM_TRAIT_NAN_MINUS;
    const int odd = m->addition == MPSIM_ADDITION_MULADD && m->order == MPSIM_ORDER_PAIRWISE && m->chunk == 2 &&
                    traits == (flushes | MPSIM_TRAIT_FILLED | MPSIM_TRAIT_OVERFLOW) && rounds(m, MPSIM_ROUND_TO_ODD) &&
                    is_bf16_like(fa) && is_bf16_like(fb) && mpsim_emin(fa) == -126 && mpsim_emin(fb) == -126;
    const int pairs = m->addition == MPSIM_ADDITION_EXACT && m->chunk == 2 && traits == MPSIM_TRAIT_FILLED &&
                      rounds(m, MPSIM_ROUND_NEAREST_EVEN) && is_bf16_like(fa) && is_bf16_like(fb);
    const int high = mpsim_format_highest(fa) + mpsim_format_highest(fb);
    const int low = mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb);
    const int exact = m->addition == MPSIM_ADDITION_EXACT && m->chunk > 0 && m->chunk <= 4096 &&
                      traits == MPSIM_TRAIT_FLUSH_SUMS && rounds(m, MPSIM_ROUND_NEAREST_EVEN) && high <= 37 &&
                      low >= -40;
    p->kind = odd ? MPSIM_GROUP_ODD : pairs ? MPSIM_GROUP_PAIRS : MPSIM_GROUP_EXACT;
    p->chunk = m->chunk;
    p->place = (mpsim_place){ldexp(1.5, 52 - 23), ldexp(1.5, 52 - 149), 0x1.fffffep127, 1, 0};
    return odd || pairs || exact;
}

/* To odd, in binary32. */
static void odd_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    float own[ROWS * N], *s = mpsim_sums_f32(g, to, own);
    mpsim_start_rows_f32(g, first, n, panel, s, to, 0);
    for (size_t j = 0; g->depth && j < n * N; j++)
        s[j] = fabsf(s[j]) < 0x1p-126F ? copysignf(0, s[j]) : s[j];
    g->loops->odd_groups((const float *)mpsim_row_values(g, first), g->padded,
                         (const float *)mpsim_panel_values(g, panel), s, n, g->depth);
    mpsim_finish_rows_f32(g, s, n, MPSIM_LARGEST_F32, to, 0, redo);
}

void mpsim_group_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    double s[ROWS * N];
    if (g->group.kind == MPSIM_GROUP_ODD) {
        odd_rows(g, first, n, panel, to, redo);
        return;
    }
    const int flushes = g->depth && g->m->traits & MPSIM_TRAIT_FLUSH_SUMS;
    for (size_t r = 0; r < n; r++) {
        double c[N];
        mpsim_start_row(g, first + r, panel, c, to, r);
        for (size_t j = 0; j < N; j++)
            s[r * N + j] = flushes && fabs(c[j]) < 0x1p-126 ? copysign(0, c[j]) : c[j];
    }
    g->loops->groups(&g->group, (const double *)mpsim_row_values(g, first), g->padded,
                     (const double *)mpsim_panel_values(g, panel), s, n, g->depth, redo);
    for (size_t r = 0; r < n; r++) {
        double d[N];
        for (size_t j = 0; j < N; j++)
            d[j] = redo[r] >> j & 1 ? 0 : s[r * N + j];
        mpsim_pack_values(&g->result, to->codes[r], d);
    }
}
