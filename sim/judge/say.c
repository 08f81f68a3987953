/* say.c -- lines of errors, findings, shares; work on threads. */
#include "impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

mpsim_status judge_fail(const judge_case *c, mpsim_status status, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    if (c->why && c->size)
        vsnprintf(c->why, c->size, text, values);
    va_end(values);
    return status;
}

void judge_in_pieces(const mpsim_pool *pool, size_t n, void (*task)(size_t i, void *job), void *job)
{
    if (pool && n > 1) {
        pool->run(pool->self, n, task, job);
        return;
    }
    for (size_t i = 0; i < n; i++)
        task(i, job);
}

const char *judge_percent(char out[24], uint64_t part, uint64_t whole)
{
    const double share = whole ? 100 * (double)part / (double)whole : 0;
    if (part == whole)
        return "all";
    snprintf(out, 24, share < 0.01 ? "%.1e %%" : share < 10 ? "%.2f %%" : "%.1f %%", share);
    return out;
}

/* ---- findings ---- */

/* Whether a finding says only which pattern the results have, or that they may be right. */
static int is_pattern(const char *cause)
{
    static const char *const patterns[] = {"bits",          "pairs-swapped", "transposed",
                                           "rows-permuted", "rows",          "columns-permuted",
                                           "columns",       "shifted",       "rounding"};
    size_t i = 0;
    while (i < sizeof patterns / sizeof patterns[0] && strcmp(patterns[i], cause) != 0)
        i++;
    return i < sizeof patterns / sizeof patterns[0];
}

void judge_forget(mpsim_judgement *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->findings; i++)
        if (!is_pattern(j->finding[i].cause))
            j->finding[n++] = j->finding[i];
    j->findings = n;
}

void judge_find(mpsim_judgement *j, const char *cause, uint64_t explains, const char *text, ...)
{
    size_t at = j->findings;
    va_list values;
    while (at > 0 && j->finding[at - 1].explains < explains)
        at--;
    if (at == MPSIM_JUDGE_FINDINGS)
        return;
    if (j->findings < MPSIM_JUDGE_FINDINGS)
        j->findings++;
    memmove(&j->finding[at + 1], &j->finding[at], (j->findings - at - 1) * sizeof j->finding[0]);
    mpsim_judge_finding *f = &j->finding[at];
    f->cause = cause;
    f->explains = explains;
    va_start(values, text);
    vsnprintf(f->text, sizeof f->text, text, values);
    va_end(values);
}
