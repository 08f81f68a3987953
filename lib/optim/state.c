/* state.c -- see mpsim/optimstate.h: moments as codes and numbers of blocks, and what these stand for. */
#include <mpsim/optimstate.h>

#include "../base/extent.h"
#include "../round/scalar.h"
#include "expand.h"

#include <mpsim/round.h>

#include <math.h>
#include <string.h>

static int is_of_table(const mpsim_state *s)
{
    for (size_t i = 0; mpsim_state_at(i); i++)
        if (s == mpsim_state_at(i))
            return 1;
    return 0;
}

/* ---- maps ----
 *
 * torchao 0.18 optim/quant_utils.py create_dynamic_map, after bitsandbytes @dada5301 functional.py: decade i of
 * `decades` has the middles of 2^i, or 2^(i + 1), equal parts of 0.1 to 1 (torch.linspace), times 10^(i + 1 -
 * decades); and 0 and 1. */

static const float powers_of_ten[] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f};
enum { POWERS = sizeof powers_of_ten / sizeof powers_of_ten[0] };

/* Element i of torch.linspace(0.1, 1, n + 1): from the nearer end, with FMA, as on CPUs that have it. */
static float part(int i, int n)
{
    const float step = (1.0f - 0.1f) / (float)n;
    return i < (n + 1) / 2 ? fmaf(step, (float)i, 0.1f) : fmaf(-step, (float)(n - i), 1.0f);
}

static size_t dynamic_map(float *map, int decades, int is_signed)
{
    const size_t each = ((size_t)1 << decades) - 1, positive = is_signed ? each : 2 * each;
    const size_t zero = is_signed ? positive : 0;
    size_t n = zero;
    map[n++] = 0;
    for (int i = 0; i < decades; i++) {
        const int parts = 1 << (is_signed ? i : i + 1);
        for (int k = 0; k < parts; k++)
            map[n++] = powers_of_ten[POWERS - decades + i] * ((part(k, parts) + part(k + 1, parts)) / 2);
    }
    for (size_t k = 1; k <= zero; k++)
        map[zero - k] = -map[zero + k];
    map[n++] = 1;
    return n;
}

size_t mpsim_state_map(const mpsim_state *s, float map[MPSIM_STATE_MAP_MAX])
{
    enum { LINEAR = 16 };
    if (s->rule != MPSIM_STATE_MAP)
        return 0;
    if (s->map != MPSIM_MAP_LINEAR)
        return dynamic_map(map, s->bits - 1, s->map != MPSIM_MAP_UNSIGNED);
    for (int i = 0; i < LINEAR; i++)
        map[i] = (float)(i + 1) / LINEAR;
    return LINEAR;
}

/* ---- the numbers of a block ---- */

/* What all blocks of an array share. */
typedef struct rules {
    const mpsim_state *s;
    const mpsim_format *format;
    mpsim_rounding rounding;
    float largest; /* number of the format */
    float map[MPSIM_STATE_MAP_MAX];
    size_t size; /* of the map */
} rules;

static void find_rules(rules *r, const mpsim_state *s)
{
    r->s = s;
    r->size = mpsim_state_map(s, r->map);
    r->format = s->format ? mpsim_format_find(s->format) : NULL;
    if (!r->format)
        return;
    mpsim_rounding_preset(&r->rounding, mpsim_preset_find("cuda"), r->format);
    r->largest = (float)mpsim_format_max(r->format);
}

/* The largest magnitude; NaN if there is one. */
static float amax_of(const float *x, size_t n)
{
    float a = 0;
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= a))
            a = isnan(a) ? a : fabsf(x[i]);
    return a;
}

static float above_least(const mpsim_state *s, float a)
{
    if (s->adds)
        return (float)((double)a + s->least);
    return a < (float)s->least ? (float)s->least : a;
}

/* As in MS-AMP, infinite where the quotient is. */
static float power_number(const rules *r, float amax)
{
    int e;
    const float ratio = r->largest / amax;
    if (!(amax > 0) || isinf(amax))
        return 1;
    if (isinf(ratio))
        return ratio;
    (void)frexpf(ratio, &e);
    return ldexpf(1, e - 1);
}

/* COAT, fp8_adamw_expand_cuda_kernel.cu of NVlabs/VILA @36f6adcd; its NaN are not looked for: fmax and fmin leave
 * them out. */
static void expanded_numbers(const rules *r, const float *x, size_t n, float *numbers)
{
    enum { PARTS = 16 }; /* expand_min */
    float most = 0, fewest = 1e9f;
    for (size_t i = 0; i < n; i++) {
        most = fmaxf(most, fabsf(x[i]));
        fewest = fminf(fewest, fabsf(x[i]));
    }
    most = above_least(r->s, most);
    fewest = above_least(r->s, fewest);
    const float bound = mpsim_expand_log2(r->largest * r->largest / 2), ratio = most / fewest;
    const float range = isfinite(ratio) ? mpsim_expand_log2(ratio) : ratio;
    numbers[2] = sqrtf(most * fewest);
    numbers[1] = floorf(bound / range * PARTS) / PARTS;
    numbers[0] = mpsim_expand_power(most / numbers[2], numbers[1]) / r->largest;
}

static void numbers_of(const rules *r, const float *x, size_t n, float *numbers)
{
    switch (r->s->rule) {
    case MPSIM_STATE_MAP:
        numbers[0] = above_least(r->s, amax_of(x, n));
        break;
    case MPSIM_STATE_SCALED:
        numbers[0] = above_least(r->s, amax_of(x, n)) / r->largest;
        break;
    case MPSIM_STATE_POWER:
        numbers[0] = power_number(r, amax_of(x, n));
        break;
    default:
        expanded_numbers(r, x, n, numbers);
    }
}

/* ---- codes ---- */

/* What is rounded to a code: y may be x. */
static void scale(const rules *r, const float *numbers, float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float a = x[i];
        if (r->s->rule == MPSIM_STATE_EXPANDED)
            a = copysignf(mpsim_expand_power(fabsf(a) / numbers[2], numbers[1]), a);
        y[i] = r->s->rule == MPSIM_STATE_POWER ? a * numbers[0] : a / numbers[0];
    }
}

/* Where a number is in a map: halving, then the nearer neighbour, the upper one from the middle on. */
static uint16_t place_of(const rules *r, float y)
{
    size_t c = 0;
    for (size_t half = r->size / 2; half > 0; half /= 2)
        if (y >= r->map[c + half])
            c += half;
    const size_t up = c + 1 < r->size ? c + 1 : c;
    return (uint16_t)(y - r->map[c] >= (r->map[up] - r->map[c]) * 0.5f ? up : c);
}

enum { PIECE = 256 };

static void encode(const rules *r, uint16_t *codes, const float *y, size_t n)
{
    uint8_t narrow[PIECE];
    if (r->s->rule == MPSIM_STATE_MAP) {
        for (size_t i = 0; i < n; i++)
            codes[i] = place_of(r, y[i]);
    } else if (r->s->bits == 16) {
        mpsim_encode_array_f32(r->format, &r->rounding, NULL, codes, y, n, NULL);
    } else {
        mpsim_encode_array_f32(r->format, &r->rounding, NULL, narrow, y, n, NULL);
        for (size_t i = 0; i < n; i++)
            codes[i] = narrow[i];
    }
}

/* ---- values ---- */

static float expanded_value(float c, const float *numbers)
{
    const float x = c * numbers[0];
    const float a = mpsim_expand_power(fabsf(x), 1 / numbers[1]);
    return (signbit(x) && !isnan(x) ? -a : a) * numbers[2];
}

static void values_of(const rules *r, const float *numbers, const uint16_t *codes, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float c = r->format ? (float)mpsim_decode(r->format, codes[i]) : r->map[codes[i] % r->size];
        y[i] = r->s->rule == MPSIM_STATE_EXPANDED ? expanded_value(c, numbers)
               : r->s->rule == MPSIM_STATE_POWER  ? c * (1 / numbers[0])
                                                  : c * numbers[0];
    }
}

/* ---- arrays ---- */

mpsim_status mpsim_state_quantise(const mpsim_state *s, const float *x, size_t n, uint16_t *codes, float *numbers,
                                  float *values)
{
    rules r;
    if (!is_of_table(s) || (n > 0 && !x) || !mpsim_fits(n, sizeof *x))
        return MPSIM_EINVAL;
    find_rules(&r, s);
    const size_t block = s->block ? s->block : n;
    for (size_t begin = 0, b = 0; begin < n; begin += block, b++) {
        const size_t end = n - begin < block ? n : begin + block;
        float own[MPSIM_STATE_NUMBERS_MAX];
        numbers_of(&r, x + begin, end - begin, own);
        if (numbers)
            memcpy(numbers + b * s->numbers, own, s->numbers * sizeof *own);
        for (size_t i = begin, m; i < end; i += m) {
            float y[PIECE];
            uint16_t c[PIECE];
            m = end - i < PIECE ? end - i : PIECE;
            scale(&r, own, y, x + i, m);
            encode(&r, c, y, m);
            if (codes)
                memcpy(codes + i, c, m * sizeof *c);
            if (values)
                values_of(&r, own, c, values + i, m);
        }
    }
    return MPSIM_OK;
}

mpsim_status mpsim_state_values(const mpsim_state *s, const uint16_t *codes, const float *numbers, size_t n,
                                float *values)
{
    rules r;
    if (!is_of_table(s) || (n > 0 && (!codes || !numbers || !values)) || !mpsim_fits(n, sizeof *values))
        return MPSIM_EINVAL;
    find_rules(&r, s);
    const size_t block = s->block ? s->block : n;
    for (size_t i = 0, b = 0; i < n; i += block, b++)
        values_of(&r, numbers + b * s->numbers, codes + i, values + i, n - i < block ? n - i : block);
    return MPSIM_OK;
}
