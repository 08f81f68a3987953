/* gate.c -- see gate.h. */
#include "gate.h"

#include "../cli/options.h"
#include "../record/cells.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What is counted, and of how many; NaN: it is not known. */
typedef struct amount {
    double n, all;
    const char *of;
} amount;

static amount wide(const advise *a)
{
    amount x = {0, 0, "tensors that only binary32 fits"};
    for (size_t i = 0; i < a->n_tensors; i++) {
        x.all += a->tensors[i].steps > 0;
        x.n += a->tensors[i].steps > 0 && a->tensors[i].choice + 1 == a->candidates.count;
    }
    return x;
}

static amount excluded(const advise *a)
{
    amount x = {0, (double)a->operand_layers, "linear layers that no recipe is advised for"};
    x.n = x.all - (double)a->fitting_layers;
    return x;
}

static amount lost(const advise *a)
{
    const double none = (double)NAN;
    return a->stall.unknown ? (amount){none, none, ""}
                            : (amount){(double)a->stall.lost, (double)a->stall.updates, "updates lost in bf16 weights"};
}

static amount unscaled(const advise *a)
{
    return (amount){(double)(a->gradients - (a->scale_low <= a->scale_high ? a->scale_fits : 0)), (double)a->gradients,
                    "gradients that the loss scale does not keep within the bounds"};
}

static amount broken(const advise *a)
{
    const uint64_t judged = a->kept_choice.judged + a->kept_scale.judged + a->kept_recipe.judged;
    const uint64_t kept = a->kept_choice.kept + a->kept_scale.kept + a->kept_recipe.kept;
    return a->hold_back ? (amount){(double)(judged - kept), (double)judged, "bounds not kept in the steps held back"}
                        : (amount){(double)NAN, (double)NAN, ""};
}

static const struct {
    const char *name;
    amount (*count)(const advise *a);
    const char *unknown;
} measures[] = {
    {"binary32", wide, ""},
    {"excluded", excluded, ""},
    {"lost", lost, "whether bf16 weights lose updates is not known"},
    {"unscaled", unscaled, ""},
    {"broken", broken, "nothing is held back (--hold-back)"},
};
enum { MEASURES = sizeof measures / sizeof *measures };

static int read_condition(gate_condition *c)
{
    char name[64];
    const size_t n = strcspn(c->text, " <>=");
    const char *text = c->text + n + strspn(c->text + n, " ");
    snprintf(name, sizeof name, "%.*s", (int)n, c->text);
    while (c->what < MEASURES && strcmp(measures[c->what].name, name) != 0)
        c->what++;
    if (c->what == MEASURES)
        return fail(
            EXIT_USAGE,
            "advise: --fail-if: '%s' is not a condition: binary32, excluded, lost, unscaled, broken, as lost>10%%",
            name);
    const int bad = *text ? stat_limit_read(&c->than, &text) : 0;
    return bad == LIMIT_NO_COMPARISON
               ? fail(EXIT_USAGE, "advise: --fail-if: '%s': > < >= or <= and a value are needed", c->text)
           : bad ? fail(EXIT_USAGE, "advise: --fail-if: '%s': '%s' is not a number", c->text, text)
                 : 0;
}

int advise_gate_make(gate *g, const option_list *words)
{
    *g = (gate){.count = 0};
    for (size_t i = 0; i < words->count; i++)
        for (const char *p = words->items[i]; p;) {
            const char *comma = strchr(p, ',');
            p += strspn(p, " ");
            const size_t n = comma ? (size_t)(comma - p) : strlen(p);
            if (g->count == GATE_MOST || n >= sizeof g->items[0].text)
                return fail(EXIT_USAGE, "advise: --fail-if: more than %d conditions, or one of more than %d characters",
                            GATE_MOST, (int)sizeof g->items[0].text - 1);
            gate_condition *c = &g->items[g->count++];
            snprintf(c->text, sizeof c->text, "%.*s", (int)n, p);
            const int code = read_condition(c);
            if (code)
                return code;
            p = comma ? comma + 1 : NULL;
        }
    return 0;
}

int advise_gate_tell(const gate *g, const advise *a)
{
    int code = 0;
    for (size_t i = 0; i < g->count; i++) {
        const gate_condition *c = &g->items[i];
        const amount x = measures[c->what].count(a);
        const double value = c->than.per_cent ? x.all > 0 ? 100 * x.n / x.all : 0 : x.n;
        char n[32], all[32], share[32];
        if (isnan(x.n)) /* a gate that cannot tell does not let pass */
            code = fail(EXIT_CHECK, "advise: --fail-if %s: %s", c->text, measures[c->what].unknown);
        else if (stat_limit_holds(&c->than, value))
            code = fail(EXIT_CHECK, "advise: --fail-if %s: %s of %s %s, %s", c->text, text_count(n, (uint64_t)x.n),
                        text_count(all, (uint64_t)x.all), x.of, text_share(share, (uint64_t)x.n, (uint64_t)x.all));
    }
    return code;
}
