/* ledger.c -- see ledger.h. */
#include "ledger.h"

#include "../record/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const memory_ledger_names[] = {
    [LEDGER_WEIGHTS] = "weights",           [LEDGER_COPIES] = "copies of weights",
    [LEDGER_GATHERED] = "gathered weights", [LEDGER_MASTER] = "master weights",
    [LEDGER_GRADIENTS] = "gradients",       [LEDGER_MASTER_GRADIENTS] = "master gradients",
    [LEDGER_STATE] = "optimizer state",     [LEDGER_SCALING] = "scaling state",
    [LEDGER_ACTIVATIONS] = "activations",   [LEDGER_COMPONENTS] = NULL,
};

uint64_t memory_ledger_times(ledger *l, uint64_t a, uint64_t b)
{
    if (a != 0 && b > UINT64_MAX / a) {
        l->overflow = 1;
        return 0;
    }
    return a * b;
}

uint64_t memory_ledger_plus(ledger *l, uint64_t a, uint64_t b)
{
    if (b > UINT64_MAX - a) {
        l->overflow = 1;
        return 0;
    }
    return a + b;
}

void memory_ledger_add(ledger *l, ledger_component c, ledger_term t)
{
    ledger_term *list = l->terms[c];
    size_t i = 0;
    if (t.each)
        t.bytes = memory_ledger_times(l, t.each, t.n);
    if (t.bytes == 0)
        return;
    while (i < l->count[c] &&
           (list[i].each != t.each || list[i].symbol != t.symbol || strcmp(list[i].what, t.what) != 0))
        i++;
    if (i == LEDGER_TERMS) { /* more kinds than anyone reads: the last one takes them */
        const uint64_t bytes = list[--i].bytes;
        list[i] = (ledger_term){.what = "others", .bytes = bytes};
    }
    if (i == l->count[c]) {
        list[l->count[c]++] = t;
        return;
    }
    list[i].bytes = memory_ledger_plus(l, list[i].bytes, t.bytes);
    list[i].n = memory_ledger_plus(l, list[i].n, t.n);
    list[i].whole = memory_ledger_plus(l, list[i].whole, t.whole);
    list[i].times = memory_ledger_plus(l, list[i].times, t.times);
}

/* Beyond the largest number it is that. */
static uint64_t sum(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

uint64_t memory_ledger_bytes(const ledger *l, ledger_component c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < l->count[c]; i++)
        bytes = sum(bytes, l->terms[c][i].bytes);
    return bytes;
}

uint64_t memory_ledger_total(const ledger *l)
{
    uint64_t bytes = 0;
    for (int c = 0; c < LEDGER_COMPONENTS; c++)
        bytes = sum(bytes, memory_ledger_bytes(l, (ledger_component)c));
    return bytes;
}

const char *memory_ledger_formula(char *out, size_t size, const ledger_term *t)
{
    char each[32] = "", n[32], whole[32], part[32] = "";
    if (t->each)
        snprintf(each, sizeof each, "%" PRIu64 " ", t->each);
    if (t->symbol && t->n && t->n != t->whole)
        snprintf(part, sizeof part, " / %" PRIu64, t->whole / t->n);
    if (t->symbol)
        snprintf(out, size, "%s: %s%s%s x %s%s", t->what, t->each ? "" : "blocks of ", each, t->symbol,
                 text_count(n, t->times), part);
    else if (!t->each)
        snprintf(out, size, "%s", t->what);
    else if (t->n == t->whole)
        snprintf(out, size, "%s: %sx %s", t->what, each, text_count(n, t->n));
    else
        snprintf(out, size, "%s: %sx %s of %s", t->what, each, text_count(n, t->n), text_count(whole, t->whole));
    return out;
}
