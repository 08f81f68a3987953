/* run.c -- advice from beginning to end: the words that set its bounds, the work in its order; see advise.h. */
#include "advise.h"

#include <stdlib.h>
#include <string.h>

void advise_clear(advise *a)
{
    for (size_t i = 0; i < a->n_tensors; i++) {
        free(a->tensors[i].name);
        free(a->tensors[i].layer);
    }
    for (size_t i = 0; i < a->n_layers; i++)
        free(a->layers[i].name);
    nameindex_clear(&a->names);
    nameindex_clear(&a->layer_names);
    free(a->tensors);
    free(a->layers);
    free(a->held);
    free(a->kindless);
}

/* ---- the bounds ---- */

/* A number without the unit that may follow it: 0, or an exit code after a message. */
static int read_number(const advise *a, double *x, const char *option, const char *typed, const char *unit,
                       const char *example)
{
    char text[64];
    if (!typed)
        return 0;
    size_t n = strlen(typed);
    const size_t length = strlen(unit);
    if (n > length && strcmp(typed + n - length, unit) == 0)
        n -= length;
    while (n > 0 && typed[n - 1] == ' ')
        n--;
    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : 0), typed);
    return parse_number(x, text) == 0
               ? 0
               : fail(EXIT_USAGE, "%s: --%s: '%s' is not a number, as %s", a->verb, option, typed, example);
}

/* "0.1%", or a share, "0.001". */
static int read_share(const advise *a, double *x, const char *option, const char *typed)
{
    const size_t n = typed ? strlen(typed) : 0;
    const int code = read_number(a, x, option, typed, "%", "0.1%");
    if (code || !typed)
        return code;
    *x /= typed[n - 1] == '%' ? 100 : 1;
    return *x >= 0 && *x <= 1
               ? 0
               : fail(EXIT_USAGE, "%s: --%s: '%s' is not a share from 0 to 100%%", a->verb, option, typed);
}

static int check_compute(const advise *a)
{
    return !a->compute || advise_candidates_find(&a->candidates, a->compute) >= 0
               ? 0
               : fail(EXIT_USAGE, "%s: --compute %s: -f does not list this format", a->verb, a->compute);
}

int advise_begin(advise *a, const char *verb, const advise_words *o)
{
    int code = advise_candidates_make(&a->candidates, o->formats);
    a->verb = verb;
    a->bounds = (advise_bounds){.underflow = 0.01, .sqnr = 25, .lost = 0.1};
    a->hold_back = o->hold_back;
    a->compute = o->compute;
    if (code || (code = read_share(a, &a->bounds.underflow, "max-underflow", o->underflow)) ||
        (code = read_share(a, &a->bounds.overflow, "max-overflow", o->overflow)) ||
        (code = read_share(a, &a->bounds.lost, "max-lost", o->lost)) ||
        (code = read_number(a, &a->bounds.sqnr, "min-sqnr", o->sqnr, "dB", "25dB")) || (code = check_compute(a)))
        return code;
    return a->hold_back == 1 ? fail(EXIT_USAGE, "%s: --hold-back must be at least 2: 1 holds back all steps", a->verb)
                             : 0;
}

/* ---- the work ---- */

int advise_run(advise *a, input *in)
{
    const int code = advise_measure(a, in);
    if (code)
        return code;
    advise_judge(a);
    advise_hold(a);
    return advise_find_stall(a, in);
}
