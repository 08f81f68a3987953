/* remains.c -- what differs once elements of A are where B has them. */
#include "impl.h"

#include "../record/cells.h"

#include <math.h>

#define LEAST_SHARE 0.25 /* of B at most: what its elements are not A's times a number */

static const char *const formats[REMAINS_FORMATS] = {"bf16", "fp16", "tf32", "e4m3", "e5m2"};

void diff_remains_add(remains *r, const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        r->equal += a[i] == b[i];
        r->aa += a[i] * a[i];
        r->bb += b[i] * b[i];
        r->ab += a[i] * b[i];
        r->apart += (a[i] - b[i]) * (a[i] - b[i]);
    }
    r->n += n;
    for (int from = 0; from < 2; from++)
        for (int f = 0; f < REMAINS_FORMATS; f++) {
            const fit_question q = {.format = *mpsim_format_find(formats[f]), .scale = 1};
            if (!r->fits[from][f].missed)
                diff_fit_add(&r->fits[from][f], &q, from ? b : a, from ? a : b, n);
        }
}

static int is_rounding(const fit *x)
{
    return !x->missed && x->inexact >= 16 && x->farthest >= 0.125 && diff_fit_mode(x);
}

static int say_rounding(finding *f, const remains *r)
{
    for (int from = 0; from < 2; from++)
        for (int k = 0; k < REMAINS_FORMATS; k++) {
            const fit *x = &r->fits[from][k];
            if (!is_rounding(x))
                continue;
            snprintf(f->format, sizeof f->format, "%s", formats[k]);
            f->mode = diff_fit_mode(x);
            diff_finding_say(f, "%s is then %s rounded to %s (%s)", from ? "A" : "B", from ? "B" : "A", formats[k],
                             f->mode);
            return 1;
        }
    return 0;
}

void diff_remains_say(finding *f, const remains *r)
{
    const double scale = r->ab / r->aa, left = sqrt(fmax(0, 1 - r->ab * r->ab / (r->aa * r->bb)));
    char a[32], b[32];
    diff_finding_say(f, "; ");
    if (r->equal == r->n)
        diff_finding_say(f, "the rest is equal");
    else if (!say_rounding(f, r)) {
        if (fabs(scale - 1) > 4 * left / sqrt((double)r->n) + 1e-6) {
            f->scale = scale;
            diff_finding_say(f, "B is then A times %s, ", text_number(a, scale));
        }
        diff_finding_say(f, "the error is then %s of B (root mean squares)", text_number(b, left));
    }
    diff_finding_say(f, ", in %s elements looked at", text_count(a, r->n));
}

int diff_remains_explain(const remains *r)
{
    return r->n && r->ab > 0 && r->aa * r->bb > 0 && 1 - r->ab * r->ab / (r->aa * r->bb) <= LEAST_SHARE * LEAST_SHARE;
}
