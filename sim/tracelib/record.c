/* record.c -- see mpsim_stat_record in mpsim/report.h: sim/stat/record.c for a caller. */
#include "../array/memory.h"
#include "../stat/record.h"
#include "surroundings.h"

#include <mpsim/report.h>

#include <stdlib.h>
#include <string.h>

enum { NO_AXIS = BLOCK_REQUANTISED + 1 };

static unsigned axis_of(const char *word)
{
    unsigned i = 0;
    while (i < NO_AXIS && strcmp(block_axes[i], word) != 0)
        i++;
    return i;
}

/* Losses of casts first: *n_casts of them; `blocks` is memory for the others. */
static void fill(stat_loss *to, block_sums *blocks, size_t *n_casts, const mpsim_loss *from, size_t n)
{
    size_t casts = 0, recipes = 0;
    for (size_t i = 0; i < n; i++)
        casts += from[i].cast != NULL;
    *n_casts = casts;
    casts = 0;
    for (size_t i = 0; i < n; i++) {
        stat_loss *k = from[i].cast ? &to[casts++] : &to[*n_casts + recipes];
        *k = (stat_loss){.name = from[i].name, .scale = from[i].scale};
        if (from[i].cast) {
            stat_loss_of_cast(k, 0, from[i].cast, from[i].of);
            continue;
        }
        block_sums *b = &blocks[recipes++];
        *b = (block_sums){from[i].of->count, *from[i].blocks};
        k->axis = axis_of(from[i].axis);
        stat_loss_of_blocks(k, 0, b, from[i].of);
    }
}

static void put(FILE *to, const mpsim_stats *stats, stat_loss *losses, size_t n_casts, size_t n)
{
    jsonout o = {.to = to};
    stat_row row = {.stats = stats,
                    .casts = losses,
                    .n_casts = n_casts,
                    .recipes = n_casts < n ? losses + n_casts : NULL,
                    .n_recipes = n - n_casts};
    stat_row_sums(&row);
    record_json(&o, NULL, &stat_held_record, &row, IN_LINE);
}

/* The text, to be freed, with *size bytes; NULL without memory. */
static char *text_of(const mpsim_stats *stats, const mpsim_loss *losses, size_t n, size_t *size)
{
    char *text = NULL;
    size_t n_casts = 0;
    stat_loss *all = calloc(n + 1, sizeof *all);
    block_sums *blocks = calloc(n + 1, sizeof *blocks);
    FILE *to = all && blocks ? memory_open(&text, size) : NULL;
    if (to) {
        fill(all, blocks, &n_casts, losses, n);
        put(to, stats, all, n_casts, n);
        (void)fclose(to); /* where it fails the text is NULL */
    }
    free(all);
    free(blocks);
    return text;
}

size_t mpsim_stat_record(char *to, size_t size, const mpsim_stats *stats, const mpsim_loss *losses, size_t n)
{
    surroundings own;
    size_t length = 0;
    const locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!locale)
        return 0;
    tracelib_surroundings_enter(&own, locale);
    char *text = text_of(stats, losses, n, &length);
    tracelib_surroundings_leave(&own);
    freelocale(locale);
    if (!text)
        return 0;
    if (length < size)
        memcpy(to, text, length + 1);
    free(text);
    return length;
}
