/* reason.c -- numbers of advice in words; see advise.h. */
#include "advise.h"

#include "../record/cells.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *advise_step(char out[32], const char *before, int64_t step)
{
    out[0] = '\0';
    if (step >= 0)
        snprintf(out, 32, "%sstep %" PRId64, before, step);
    return out;
}

const char *advise_lr(char out[32], double lr)
{
    snprintf(out, 32, "%.3g", lr);
    return out;
}

static int differs(double value, double bound, int less)
{
    return !isnan(value) && (less ? value < bound : value > bound);
}

/* A share in per cent, with as many digits as keep it apart from the bound. */
static const char *per_cent(char out[32], double share)
{
    snprintf(out, 32, "%.3g %%", 100 * share);
    return out;
}

/* What a format without a scale rounds to zero: " (below 2^-25)". */
static const char *below(char out[32], const advise *a, const advise_tensor *t, size_t which)
{
    const candidate *c = &a->candidates.items[which];
    const mpsim_format *f = c->casts[0] ? NULL : mpsim_format_find(c->name);
    out[0] = '\0';
    if (f && !(t->gradient && strcmp(c->name, "fp16") == 0))
        snprintf(out, 32, " (below 2^%d)", -f->bias - f->mbits);
    return out;
}

const char *advise_reason(char *out, size_t size, const advise *a, const advise_tensor *t, size_t which)
{
    const advise_evidence *e = &t->of[which];
    const advise_bounds *b = &a->bounds;
    char at[32], n[32], under[32], sqnr[48] = "";
    out[0] = '\0';
    if (isfinite(e->sqnr.value))
        snprintf(sqnr, sizeof sqnr, ", SQNR %.1f dB", e->sqnr.value);
    if (differs(e->overflow.value, b->overflow, 0))
        snprintf(out, size, "%s overflow%s", per_cent(n, e->overflow.value), advise_step(at, " at ", e->overflow.step));
    else if (strcmp(a->candidates.items[which].name, "bf16") != 0 && differs(e->underflow.value, b->underflow, 0))
        snprintf(out, size, "%s underflow%s%s%s", per_cent(n, e->underflow.value), below(under, a, t, which), sqnr,
                 advise_step(at, " at ", e->underflow.step));
    else if (differs(e->sqnr.value, b->sqnr, 1))
        snprintf(out, size, "SQNR %.1f dB%s", e->sqnr.value, advise_step(at, " at ", e->sqnr.step));
    return out;
}

const char *advise_scale_reason(char *out, size_t size, const advise *a, const advise_tensor *t)
{
    char low[32], high[32], reason[160] = "";
    const int fp16 = advise_candidates_find(&a->candidates, "fp16");
    if (t->scales || t->low.exponent > t->high.exponent)
        snprintf(out, size, "needs 2^%d%s, tolerates no more than 2^%d%s", t->low.exponent,
                 advise_step(low, " at ", t->low.step), t->high.exponent, advise_step(high, " at ", t->high.step));
    else {
        if (fp16 >= 0)
            advise_reason(reason, sizeof reason, a, t, (size_t)fp16);
        snprintf(out, size, "no scale%s", *reason ? ": " : " fits every step");
        text_add(out, size, "%s", reason);
    }
    return out;
}
