/* dotset.c -- see dotset.h. */
#include "dotset.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

const char *dot_set_parse(dot_set *s, const char *model, const char *fa, const char *fb, const char *k,
                          const char *seed, const char *scale)
{
    memset(s, 0, sizeof *s);
    s->k = (size_t)strtoul(k, NULL, 10);
    s->seed = strtoull(seed, NULL, 10);
    if (mpsim_model_parse(&s->m, model) != MPSIM_OK)
        return "no such model";
    if (mpsim_format_parse(&s->fa, fa) != MPSIM_OK || mpsim_format_parse(&s->fb, fb) != MPSIM_OK)
        return "no such format";
    if (scale && mpsim_format_parse(&s->scale, scale) != MPSIM_OK)
        return "no such format of scales";
    if (s->k < 1 || s->k > DOT_SET_DEPTH)
        return "depth out of range";
    return (scale != NULL) == (s->m.block != 0) ? NULL : "scales where there are no blocks, or the reverse";
}

size_t dot_set_scales(const dot_set *s)
{
    return s->m.block ? (s->k - 1) / s->m.block + 1 : 0;
}

/* The code of a scale, near 1 but for kinds that reach further. */
static uint64_t a_scale(const mpsim_format *f, int kind, uint64_t *seed)
{
    static const uint8_t ends[2][8] = {{0, 1, 2, 127, 127, 253, 254, 254}, {0, 1, 7, 8, 0x38, 0x38, 0x7e, 0x77}};
    const int is_power = f->mbits == 0;
    const uint64_t u = test_random(seed), one = is_power ? 127 : 0x38;
    const uint64_t near = one - 8 + u % 17;
    switch (kind) {
    case KIND_BITS:
        return u & 0xff;
    case KIND_EXTREME:
        return ends[!is_power][u % 8];
    case KIND_SPECIAL:
        return u / 32 % 64 ? near : is_power ? 0xff : 0x7f;
    case KIND_FINITE:
        return is_power ? u % 255 : u % 0x7f;
    case KIND_TINY:
        return is_power ? 48 + u % 32 : 1 + u % 15;
    case KIND_HUGE:
        return is_power ? 180 + u % 24 : 0x60 + u % 31;
    default:
        return near;
    }
}

void dot_set_case(const dot_set *s, uint64_t i, dot_case *x)
{
    uint64_t seed = s->seed + (i << 20);
    const int kind = (int)(i % KINDS);
    seed = test_random(&seed);
    verify_kinds_fill(&s->fa, x->a, &s->fb, x->b, s->k, &s->m.result.format, kind, &seed);
    x->c = verify_kinds_addend(&s->m.result.format, kind, &seed);
    for (size_t q = 0; q < dot_set_scales(s); q++) {
        x->scales_a[q] = a_scale(&s->scale, kind, &seed);
        x->scales_b[q] = a_scale(&s->scale, kind, &seed);
    }
}

uint64_t dot_set_dot(const dot_set *s, const dot_case *x)
{
    uint64_t a[DOT_SET_DEPTH], b[DOT_SET_DEPTH], sa[DOT_SET_DEPTH], sb[DOT_SET_DEPTH], d = 0;
    dot_pack(&s->fa, a, 0, x->a, s->k);
    dot_pack(&s->fb, b, 0, x->b, s->k);
    mpsim_status status;
    if (s->scale.bits) {
        dot_pack(&s->scale, sa, 0, x->scales_a, dot_set_scales(s));
        dot_pack(&s->scale, sb, 0, x->scales_b, dot_set_scales(s));
        const mpsim_scales ya = {&s->scale, sa, 0}, yb = {&s->scale, sb, 0};
        status = mpsim_dot_scaled(&s->m, &s->fa, a, &ya, &s->fb, b, &yb, s->k, x->c, NULL, &d);
    } else {
        status = mpsim_dot(&s->m, &s->fa, a, &s->fb, b, s->k, x->c, NULL, &d);
    }
    if (status != MPSIM_OK)
        abort();
    return d;
}

void dot_set_gemm(const dot_set *s, const dot_case *x, uint64_t *codes)
{
    enum { N = DOT_SET_BLOCK };
    static uint64_t a[N * DOT_SET_DEPTH], b[N * DOT_SET_DEPTH], sa[N * DOT_SET_DEPTH], sb[N * DOT_SET_DEPTH];
    static uint64_t c[N * N];
    const size_t q = dot_set_scales(s);
    for (size_t i = 0; i < N; i++) {
        dot_pack(&s->fa, a, i * s->k, x[i].a, s->k);
        dot_pack(&s->fb, b, i * s->k, x[i].b, s->k);
        for (size_t j = 0; j < N; j++)
            dot_pack(&s->m.result.format, c, j * N + i, &x[i].c, 1);
        if (s->scale.bits) {
            dot_pack(&s->scale, sa, i * q, x[i].scales_a, q);
            dot_pack(&s->scale, sb, i * q, x[i].scales_b, q);
        }
    }
    const mpsim_matrix ma = {&s->fa, a, s->k, 0}, mb = {&s->fb, b, s->k, 1}, mc = {&s->m.result.format, c, N, 0};
    const mpsim_scales ya = {&s->scale, sa, q}, yb = {&s->scale, sb, q};
    const mpsim_status status = s->scale.bits
                                    ? mpsim_gemm_scaled(&s->m, N, N, s->k, &ma, &ya, &mb, &yb, &mc, c, N, NULL, NULL)
                                    : mpsim_gemm(&s->m, N, N, s->k, &ma, &mb, &mc, c, N, NULL, NULL);
    if (status != MPSIM_OK)
        abort();
    for (size_t i = 0; i < N; i++)
        codes[i] = dot_unpack(&s->m.result.format, c, i * N + i);
}

int dot_set_dropped(const dot_set *s, const dot_case *x, uint64_t theirs)
{
    const mpsim_class c = mpsim_classify(&s->m.result.format, dot_set_dot(s, x));
    if (!s->m.drop || (c != MPSIM_CLASS_NAN && c != MPSIM_CLASS_INF))
        return 0;
    for (size_t first = 0; first < s->k; first += s->m.length) {
        dot_set rest = *s;
        dot_case y = *x;
        rest.k = s->k - first;
        memcpy(y.a, x->a + first, rest.k * sizeof y.a[0]);
        memcpy(y.b, x->b + first, rest.k * sizeof y.b[0]);
        y.c = 0;
        if (dot_set_dot(&rest, &y) == theirs)
            return 1;
    }
    return 0;
}

int dot_set_same(const dot_set *s, uint64_t x, uint64_t y, int any_nan)
{
    const mpsim_format *f = &s->m.result.format;
    return x == y || (any_nan && mpsim_classify(f, x) == MPSIM_CLASS_NAN && mpsim_classify(f, y) == MPSIM_CLASS_NAN);
}
