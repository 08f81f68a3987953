/* castcode.c -- codes of a row of casts: by way of another format, the last rounding, NaNs that are cut (castrow.h). */
#include "castrow.h"
#include "impl.h"

#include "../operand/element.h"

#include <math.h>

const mpsim_format *judge_cast_via_format(uint8_t via)
{
    static const char *const names[CAST_VIAS] = {NULL, "binary32", "fp16", "bf16"};
    return via != CAST_DIRECT && via < CAST_VIAS ? mpsim_format_find(names[via]) : NULL;
}

int judge_cast_holds(const mpsim_format *to, const mpsim_format *f)
{
    return mpsim_format_same(to, f) || (f->mbits <= to->mbits && mpsim_format_max(f) <= mpsim_format_max(to) &&
                                        mpsim_format_min_positive(f) >= mpsim_format_min_positive(to) &&
                                        (mpsim_format_is_signed(to) || !mpsim_format_is_signed(f)));
}

int judge_cast_via_acts(uint8_t via, const mpsim_format *source)
{
    const mpsim_format *f = judge_cast_via_format(via);
    return f && !judge_cast_holds(f, source);
}

/* Magnitudes below this are read as zero; 0: none is. */
static double flush_below(const cast_row *row)
{
    const mpsim_format *via = judge_cast_via_format(row->via), *f = &row->format;
    const double own = row->rounding.flush_input ? mpsim_format_min_normal(via ? via : &row->source) : 0;
    const double least = row->below == CAST_BELOW_LEAST    ? mpsim_format_min_positive(f)
                         : row->below == CAST_BELOW_NORMAL ? mpsim_format_min_normal(f)
                                                           : 0;
    return fmax(own, least / row->rounding.scale);
}

mpsim_rounding judge_cast_rounding(const cast_row *row)
{
    mpsim_rounding r = row->rounding;
    r.nan = row->nan == CAST_NAN_CUT ? MPSIM_NANS_PAYLOAD : row->nan;
    r.flush_below = flush_below(row);
    r.flush_input = r.flush_below > 0;
    return r;
}

/* ---- codes ---- */

/* Codes in place of those of NaNs: decoded numbers have lost whether a NaN is signalling. */
static void cut_nans(const cast_row *row, void *codes, const mpsim_format *from, const void *x, size_t n)
{
    const mpsim_format *f = &row->format;
    const size_t bytes = mpsim_format_code_bytes(f), from_bytes = mpsim_format_code_bytes(from);
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = element_code(x, from_bytes, i), ones = ((uint64_t)1 << from->mbits) - 1;
        if (mpsim_classify(from, code) != MPSIM_CLASS_NAN)
            continue;
        const uint64_t payload = (code & ones) << (64 - from->mbits) >> (64 - f->mbits);
        const uint64_t sign = mpsim_format_is_signed(f) ? code >> (from->bits - 1) << (f->bits - 1) : 0;
        element_put_code(codes, bytes, i, sign | (f->max_finite + 1) | (payload ? payload : 1));
    }
}

static mpsim_rounding first_rounding(void)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.nan = MPSIM_NANS_PAYLOAD;
    return r;
}

static void codes_of_f32(const cast_row *row, void *codes, float *x, size_t n)
{
    const mpsim_rounding r = judge_cast_rounding(row), first = first_rounding();
    if (row->via != CAST_DIRECT)
        (void)mpsim_round_array_f32(judge_cast_via_format(row->via), &first, NULL, x, x, n, NULL);
    (void)mpsim_encode_array_f32(&row->format, &r, NULL, codes, x, n, NULL);
}

static void codes_of_f64(const cast_row *row, void *codes, double *x, size_t n)
{
    const mpsim_rounding r = judge_cast_rounding(row), first = first_rounding();
    float y[JUDGE_CHUNK];
    if (row->via == CAST_DIRECT) {
        (void)mpsim_encode_array_f64(&row->format, &r, NULL, codes, x, n, NULL);
        return;
    }
    (void)mpsim_round_array_f64(judge_cast_via_format(row->via), &first, NULL, x, x, n, NULL);
    for (size_t i = 0; i < n; i++)
        y[i] = (float)x[i];
    (void)mpsim_encode_array_f32(&row->format, &r, NULL, codes, y, n, NULL);
}

static void codes_of(const cast_row *row, void *codes, const mpsim_format *from, const void *x, size_t n)
{
    union {
        float f32[JUDGE_CHUNK];
        double f64[JUDGE_CHUNK];
    } v;
    if (mpsim_decode_array_f32(from, v.f32, x, n) == MPSIM_OK)
        codes_of_f32(row, codes, v.f32, n);
    else if (mpsim_decode_array(from, v.f64, x, n) == MPSIM_OK)
        codes_of_f64(row, codes, v.f64, n);
    if (row->nan == CAST_NAN_CUT && from->nan == MPSIM_NAN_TOP && row->format.nan == MPSIM_NAN_TOP && row->format.inf)
        cut_nans(row, codes, from, x, n);
}

void judge_cast_codes(const cast_row *row, void *codes, const mpsim_format *from, const void *x, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(&row->format), from_bytes = mpsim_format_code_bytes(from);
    for (size_t i = 0; i < n; i += JUDGE_CHUNK)
        codes_of(row, (char *)codes + i * bytes, from, (const char *)x + i * from_bytes,
                 n - i < JUDGE_CHUNK ? n - i : JUDGE_CHUNK);
}
