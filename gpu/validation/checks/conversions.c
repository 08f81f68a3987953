/* conversions.c -- the conversions of conversions.h as checks: of each what is settled, then, of those that have any,
 * what is open. */
#include "conversions.h"

#include "checks.h"

#include <stdio.h>
#include <string.h>

typedef struct conversion {
    const char *ptx, *from, *to;
    int mode, traits;
} conversion;

static const conversion rows[] = {
#define ROW(ID, ptx, form, from, to, mode, traits) {ptx, from, to, MPSIM_ROUND_##mode, traits},
    GPU_CONVERSIONS(ROW) GPU_CONVERSIONS_NEXT(ROW)
#undef ROW
};

/* Each has something that is open but those without a trait: their NaNs have been seen on a device in the lower half,
 * and are as those of the preset. */
static int what_is_open(const conversion *c)
{
    return (c->traits & GPU_CVT_OPEN ? GPU_OPEN_NANS : 0) | (c->traits & GPU_CVT_RELU ? GPU_OPEN_SMALL : 0);
}

/* relu is a conversion to the same numbers without a sign, where what is negative becomes the smallest: 0. */
static void clamp(mpsim_arith *o)
{
    o->result.bits--;
    o->rounding.negative = MPSIM_NEGATIVE_MIN;
}

static void fill_arith(mpsim_arith *o, const conversion *c)
{
    const mpsim_format *result = mpsim_format_find(c->to);
    o->op = MPSIM_OP_CONVERT;
    o->result = *result;
    o->operand[0] = o->operand[1] = o->operand[2] = *mpsim_format_find(c->from);
    mpsim_rounding_preset(&o->rounding, mpsim_preset_find(c->traits & GPU_CVT_NO_SATURATION ? "cuda-nosat" : "cuda"),
                          result);
    o->rounding.mode = (uint8_t)c->mode;
    if (c->traits & GPU_CVT_SATURATES) {
        o->rounding.overflow = MPSIM_OVERFLOW_MAX;
        o->rounding.infinity = MPSIM_INFINITY_MAX;
    }
    if (c->traits & GPU_CVT_RELU)
        clamp(o);
}

/* All codes; of binary64 2^26 numbers, of which there are too many. */
static int choose_inputs(gpu_scalar *s)
{
    const int bits = s->o.operand[0].bits, is_open = s->asked == GPU_ASKED_OPEN;
    s->inputs = bits == 64   ? GPU_INPUTS_WIDE
                : bits != 32 ? GPU_INPUTS_CODES
                : is_open    ? GPU_INPUTS_OPEN
                             : GPU_INPUTS_EVERY;
    static const int counts[] = {
        [GPU_INPUTS_EVERY] = 32, [GPU_INPUTS_CODES] = 17, [GPU_INPUTS_WIDE] = 26, [GPU_INPUTS_OPEN] = 25};
    return counts[s->inputs];
}

static void fill(gpu_check *c, size_t row, int asked, int *log_count)
{
    const conversion *r = &rows[row];
    gpu_scalar *s = &c->scalar;
    s->unit = row < GPU_CONVERT_FIRST_NEXT ? GPU_UNIT_CVT : GPU_UNIT_CVT_NEXT;
    s->instruction = (int)row;
    s->expected = GPU_ROUNDED;
    s->stream = 100000 + row;
    s->open = what_is_open(r);
    s->asked = asked;
    fill_arith(&s->o, r);
    *log_count = choose_inputs(s);
    c->since = row < GPU_CONVERT_FIRST_NEXT ? 90 : 100;
    c->question = asked == GPU_ASKED_OPEN;
    snprintf(c->name, sizeof c->name, "%s%s", r->ptx,
             !c->question              ? ""
             : s->open & GPU_OPEN_NANS ? ", NaNs"
                                       : ", small negatives");
}

size_t gpu_cvt_count(void)
{
    size_t n = GPU_CONVERSION_ROWS;
    for (size_t row = 0; row < GPU_CONVERSION_ROWS; row++)
        n += what_is_open(&rows[row]) != 0;
    return n;
}

int gpu_cvt_fill(gpu_check *c, size_t i, int *log_count)
{
    if (i < GPU_CONVERSION_ROWS) {
        fill(c, i, GPU_ASKED_SETTLED, log_count);
        return 1;
    }
    i -= GPU_CONVERSION_ROWS;
    for (size_t row = 0; row < GPU_CONVERSION_ROWS; row++)
        if (what_is_open(&rows[row]) && i-- == 0) {
            fill(c, row, GPU_ASKED_OPEN, log_count);
            return 1;
        }
    return 0;
}
