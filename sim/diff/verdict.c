/* verdict.c -- see verdict.h. */
#include "verdict.h"

#include "../record/cells.h"
#include "../text/words.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define V(NAME, word, title) word,
const char *const diff_verdict_words[] = {VERDICT_LIST(V) NULL};
#undef V

#define V(NAME, word, title) title,
const char *const diff_verdict_titles[VERDICTS] = {VERDICT_LIST(V)};
#undef V

void diff_finding_init(finding *f, verdict v)
{
    memset(f, 0, sizeof *f);
    f->verdict = v;
    f->scale = (double)NAN;
    f->bit = -1;
}

void diff_finding_say(finding *f, const char *text, ...)
{
    va_list args;
    va_start(args, text);
    text_add_list(f->evidence, sizeof f->evidence, text, args);
    va_end(args);
}

const char *diff_verdict_range(char out[96], const verdict_case *c)
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

void diff_verdict_say_errors(const verdict_case *c, finding *f)
{
    const measure *m = &c->all;
    char a[32];
    const double r = diff_measure_correlation(m);
    diff_finding_say(f, "the error is %s of A where they differ (root mean squares)",
                     text_number(a, diff_measure_relative_differ(m)));
    if (fabs(r) > 0.999)
        diff_finding_say(f, ", the correlation %s 0.999", r > 0 ? "above" : "beyond -");
    else if (!isnan(r))
        diff_finding_say(f, ", the correlation %.3f", r);
}
