/* narrow.c -- results of 16 bits in arrays of wider numbers. */
#include "impl.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <mpsim/round.h>

#include <math.h>

enum { FEW = 8 }; /* numbers that may be those of a narrow format by chance */

/* Whether all numbers of an array are those of f. *numbers: how many are neither zero nor without a value is added. */
static int holds(const mpsim_format *f, const mpsim_judge_array *x, size_t *numbers)
{
    const size_t n = x->rows * x->columns, bytes = mpsim_format_code_bytes(x->format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n; i++) {
        unsigned flags = 0;
        const double y = mpsim_decode(x->format, element_code(x->codes, bytes, i));
        (void)mpsim_encode_f64(f, &r, y, 0, &flags);
        if (flags & (MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW))
            return 0;
        *numbers += y != 0 && isfinite(y);
    }
    return 1;
}

const mpsim_format *judge_narrow_of(const mpsim_judge_array *const *arrays, size_t n)
{
    static const char *const names[] = {"bf16", "fp16"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const mpsim_format *f = mpsim_format_find(names[k]);
        size_t numbers = 0, i = 0;
        while (i < n && (!arrays[i] || (arrays[i]->format->mbits >= 23 && holds(f, arrays[i], &numbers))))
            i++;
        if (i == n && numbers > FEW)
            return f;
    }
    return NULL;
}

void *judge_narrow_codes(const mpsim_format *f, const mpsim_judge_array *x)
{
    const size_t n = x->rows * x->columns, bytes = mpsim_format_code_bytes(x->format);
    void *codes = want_memory(n + 1, mpsim_format_code_bytes(f));
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n && codes; i++)
        element_put_code(codes, mpsim_format_code_bytes(f), i,
                         mpsim_encode_f64(f, &r, mpsim_decode(x->format, element_code(x->codes, bytes, i)), 0, NULL));
    return codes;
}
