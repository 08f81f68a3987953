/* verdict.c -- see verdict.h. */
#include "verdict.h"

#include "../report/report.h"
#include "../text/words.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

const verdict_word verdict_words[VERDICTS] = {
    [VERDICT_EQUAL] = {"equal", "equal"},
    [VERDICT_TOLERATED] = {"tolerated", "within the tolerance"},
    [VERDICT_DTYPE] = {"dtype", "the same numbers in another dtype"},
    [VERDICT_RESHAPED] = {"reshaped", "the same elements in another shape"},
    [VERDICT_CODES] = {"codes", "the same values, other codes"},
    [VERDICT_STEP_SKIPPED] = {"step-skipped", "a step skipped"},
    [VERDICT_STEP_SHIFTED] = {"step-shifted", "A's numbers of another step"},
    [VERDICT_SCALAR] = {"scalar", "another number"},
    [VERDICT_CONSTANT] = {"constant", "a constant, which proves nothing"},
    [VERDICT_FLIPPED_BIT] = {"flipped-bit", "a flipped bit"},
    [VERDICT_BYTE_ORDER] = {"byte-order", "bytes in the opposite order"},
    [VERDICT_REINTERPRETED] = {"reinterpreted", "the same codes, read as another dtype"},
    [VERDICT_NEGATED] = {"negated", "the sign flipped"},
    [VERDICT_SIGNS] = {"signs", "other signs"},
    [VERDICT_SCALED] = {"scaled", "a constant ratio"},
    [VERDICT_OFFSET] = {"offset", "a constant difference"},
    [VERDICT_AFFINE] = {"affine", "a scale and an offset"},
    [VERDICT_QUANTISED] = {"quantised", "quantised as its file says"},
    [VERDICT_ROUNDED] = {"rounded", "one rounding apart"},
    [VERDICT_COMPUTED] = {"computed", "looks like computed in fewer bits"},
    [VERDICT_ZEROED] = {"zeroed", "zeros in place of numbers"},
    [VERDICT_DROPOUT] = {"dropout", "zeros as dropout leaves them"},
    [VERDICT_CLIPPED] = {"clipped", "clipped"},
    [VERDICT_TRANSPOSED] = {"transposed", "axes in another order"},
    [VERDICT_REVERSED] = {"reversed", "an axis run through backwards"},
    [VERDICT_SHIFTED] = {"shifted", "elements shifted"},
    [VERDICT_PERMUTED] = {"permuted", "the same elements in another order"},
    [VERDICT_RESIZED] = {"resized", "another number of elements"},
    [VERDICT_NON_FINITE] = {"non-finite", "NaN or Inf appear"},
    [VERDICT_SUM_ORDER] = {"sum-order", "looks like sums in another order"},
    [VERDICT_PARTIAL] = {"partial", "some numbers moved, the rest is equal"},
    [VERDICT_CORRUPTED] = {"corrupted", "other numbers in some places"},
    [VERDICT_CLOSE] = {"close", "near, in no way that is known"},
    [VERDICT_RELATED] = {"related", "related, in no way that is known"},
    [VERDICT_UNRELATED] = {"unrelated", "other numbers, no relation is known"},
    [VERDICT_INTEGERS] = {"integers", "other integers"},
    [VERDICT_BYTES] = {"bytes", "other bytes, whose numbers are not read"},
    [VERDICT_MISSING] = {"missing", "missing in B"},
    [VERDICT_EXTRA] = {"extra", "only in B"},
    [VERDICT_INCOMPARABLE] = {"incomparable", "numbers on one side only"},
    [VERDICT_NOT_COMPARED] = {"not-compared", "not compared"},
    [VERDICT_UNREADABLE] = {"unreadable", "could not be read"},
};

void finding_init(finding *f, verdict v)
{
    memset(f, 0, sizeof *f);
    f->verdict = v;
    f->scale = (double)NAN;
    f->bit = -1;
}

void finding_say(finding *f, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    text_add_list(f->evidence, sizeof f->evidence, text, args);
    va_end(args);
}

const char *verdict_range(char out[96], const verdict_case *c)
{
    char a[32], b[32];
    const uint64_t n = c->tensors[1]->count;
    if (c->all.differ == 1)
        snprintf(out, 96, "element %s", text_count(a, c->first));
    else if (c->end - c->first > n - n / 10)
        snprintf(out, 96, "all %s elements", text_count(a, n));
    else
        snprintf(out, 96, "elements %s to %s", text_count(a, c->first), text_count(b, c->end - 1));
    return out;
}

void verdict_say_errors(const verdict_case *c, finding *f)
{
    const measure *m = &c->all;
    char a[32];
    const double r = measure_correlation(m);
    finding_say(f, "the error is %s of A where they differ (root mean squares)",
                text_number(a, measure_relative_differ(m)));
    if (fabs(r) > 0.999)
        finding_say(f, ", the correlation %s 0.999", r > 0 ? "above" : "beyond -");
    else if (!isnan(r))
        finding_say(f, ", the correlation %.3f", r);
}
