/* scaledgroups.c -- see scaledgroups.h. */
#include "scaledgroups.h"

#include "../base/codes.h"
#include "job.h"
#include "scalar.h"

#include <stdlib.h>

/* ---- the choice ---- */

/* Whether binary32 has every number, but for the last bits of zero, and codes become values in vectors. */
static int is_simple(const mpsim_format *f)
{
    mpsim_unpacker u;
    mpsim_unpacker_init(&u, f, 0);
    return u.direct && u.bytes <= 4 && mpsim_format_last_bit(f) >= -30 && mpsim_format_highest(f) <= 30;
}

int mpsim_scaledgroups_init(mpsim_scaledgroups *p, const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb,
                            const mpsim_format *sa, const mpsim_format *sb)
{
    const mpsim_format *acc = &m->accumulator.format, *result = &m->result.format;
    const int bits_s = (sa ? sa->mbits : 0) + (sb ? sb->mbits : 0);
    const int last = mpsim_format_last_bit(fa) + mpsim_format_last_bit(fb);
    if (m->addition != MPSIM_ADDITION_GROUPED || m->chunk || m->group > 32 || !is_simple(fa) || !is_simple(fb) ||
        m->alignment != MPSIM_ALIGN_TRUNCATE || m->floor == MPSIM_MODEL_NO_FLOOR)
        return 0;
    if (m->accumulator.rounding.mode != MPSIM_ROUND_TOWARD_ZERO || acc->bits != 32 || acc->mbits != 23 ||
        acc->bias != 127 || acc->max_finite != 0x7f7fffff || m->accumulator.rounding.flush_output ||
        !mpsim_format_same(acc, result) || m->result.rounding.flush_output)
        return 0;
    /* P has its bits and those of the group, S two more than bits_s; a term and the sum of all less than 2^52 */
    const int bits_p = mpsim_format_highest(fa) + mpsim_format_highest(fb) - last + 5;
    p->up_p = 1;
    for (int i = last; i < 0; i++)
        p->up_p *= 2;
    p->group = m->group;
    p->length = m->length;
    p->up = last - bits_s + m->fraction;
    p->fraction = m->fraction;
    p->floor = m->floor;
    return last <= 0 && bits_p <= 24 && p->up >= 0 && m->fraction >= 23 && m->fraction <= 40 &&
           bits_p + bits_s + 2 + p->up + 3 <= 51 && m->length / m->group <= 8;
}

/* ---- what stands of each group ---- */

static size_t groups_of(const job *g)
{
    return g->padded / (size_t)g->scaledgroups.group;
}

static mpsim_term scale_of(const job *g, const mpsim_scales *x, size_t line, size_t k)
{
    static const mpsim_term one = {MPSIM_NUMBER_FINITE, 0, 0, 1};
    if (!x || k >= g->depth)
        return one;
    const uint64_t code = mpsim_code_load(x->codes, mpsim_format_code_bytes(x->format),
                                          line * x->stride + k / g->m->block);
    return mpsim_scalar_term(x->format, MPSIM_MODEL_OWN_EMIN, code & mpsim_magnitude_mask(x->format));
}

/* Group q of line `line`, whose values are `step` apart, as entry `at`. */
static void put_group(const job *g, const mpsim_group_info *to, size_t at, const mpsim_scales *x, size_t line, size_t q,
                      const float *values, size_t step, unsigned char *special)
{
    const mpsim_term t = scale_of(g, x, line, q * (size_t)g->scaledgroups.group);
    uint32_t nonzero = 0;
    for (size_t k = 0; k < (size_t)g->scaledgroups.group; k++)
        nonzero |= (uint32_t)(values[k * step] != 0) << k;
    *special |= t.kind != MPSIM_NUMBER_FINITE;
    to->nonzero[at] = t.s ? nonzero : 0;
    to->significand[at] = (uint32_t)t.s;
    to->exponent[at] = t.e;
}

void mpsim_scaledgroups_pack_row(const job *g, size_t i)
{
    const size_t n = groups_of(g);
    const float *values = (const float *)mpsim_row_values(g, i);
    for (size_t q = 0; q < n; q++)
        put_group(g, &g->groups_a, i * n + q, g->scales_a, i, q, values + q * (size_t)g->scaledgroups.group, 1,
                  &g->panels_a.special[i]);
}

void mpsim_scaledgroups_pack_panel(const job *g, size_t panel)
{
    const size_t n = groups_of(g), columns = mpsim_panel_columns(g, panel);
    const float *values = (const float *)mpsim_panel_values(g, panel);
    for (size_t q = 0; q < n; q++)
        for (size_t j = 0; j < N; j++)
            put_group(g, &g->groups_b, (panel * n + q) * N + j, j < columns ? g->scales_b : NULL, panel * N + j, q,
                      values + q * (size_t)g->scaledgroups.group * N + j, N, &g->panels_b.special[panel * N + j]);
}

static int allocate(mpsim_group_info *x, size_t n)
{
    if (n > SIZE_MAX / sizeof(uint32_t) - 1)
        return 0;
    x->nonzero = (uint32_t *)malloc((n + 1) * sizeof(uint32_t));
    x->significand = (uint32_t *)malloc((n + 1) * sizeof(uint32_t));
    x->exponent = (int32_t *)malloc((n + 1) * sizeof(int32_t));
    return x->nonzero && x->significand && x->exponent;
}

static void release(mpsim_group_info *x)
{
    free(x->nonzero);
    free(x->significand);
    free(x->exponent);
}

int mpsim_scaledgroups_allocate(job *g)
{
    /* the panels, which are larger, have been allocated */
    return allocate(&g->groups_a, g->rows * groups_of(g)) && allocate(&g->groups_b, g->panels * N * groups_of(g));
}

void mpsim_scaledgroups_free(job *g)
{
    release(&g->groups_a);
    release(&g->groups_b);
}

/* ---- rows ---- */

static mpsim_group_info at(const mpsim_group_info *x, size_t n)
{
    const mpsim_group_info y = {x->nonzero + n, x->significand + n, x->exponent + n};
    return y;
}

void mpsim_scaledgroups_rows(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo)
{
    const mpsim_group_info of_a = at(&g->groups_a, first * groups_of(g));
    const mpsim_group_info of_b = at(&g->groups_b, panel * groups_of(g) * N);
    float s[ROWS * N];
    mpsim_start_rows_f32(g, first, n, panel, s, to, 0);
    g->loops->scaledgroups(&g->scaledgroups, (const float *)mpsim_row_values(g, first), &of_a, g->padded,
                           (const float *)mpsim_panel_values(g, panel), &of_b, s, n, g->padded, redo);
    for (size_t r = 0; r < n; r++)
        for (size_t j = 0; j < N; j++)
            to->codes[r][j] = mpsim_bits_f32(s[r * N + j]);
}
