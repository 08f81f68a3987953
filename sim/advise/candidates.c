/* candidates.c -- see candidates.h. What block recipes a word of a policy stands for is in sim/policy/table.c.
 *
 * Underflow does not rule out bf16: it loses subnormal numbers of binary32 below 2^-134, such as moments that decay
 * without gradients. */
#include "candidates.h"

#include "../cli/options.h"
#include "../operand/target.h"

#include <stdlib.h>
#include <string.h>

/* The bundled words, and which form of the recipe's gradients all tensors get (E5M2: hybrid). */
static const struct row {
    const char *name;
    const char *recipe; /* of policies, or NULL */
    int e5m2;           /* every tensor as this recipe has gradients in its hybrid form */
    int usual;
} rows[] = {
    {"mxfp4", "mxfp4", 0, 0},  {"nvfp4", "nvfp4", 0, 1}, {"mxfp6", "mxfp6", 0, 0},         {"e4m3", "current", 0, 1},
    {"e5m2", "current", 1, 1}, {"mxfp8", "mxfp8", 0, 1}, {"blockwise", "blockwise", 0, 1}, {"bf16", NULL, 0, 1},
    {"fp16", NULL, 0, 1},      {"binary32", NULL, 0, 1},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Bits of an element and its share of a block's scale; a scale of the whole tensor is none. */
static double bits_of(const char *name)
{
    const mpsim_block_recipe *b = mpsim_block_find(name);
    const double elements = (double)b->block_rows * b->block_cols;
    const double scale = elements > 0 ? mpsim_format_find(target_scale_format(b))->bits / elements : 0;
    return mpsim_format_find(b->element)->bits + scale;
}

static void set_casts(candidate *c, const struct row *row)
{
    const recipe_row *r = policy_recipe_find(row->recipe);
    c->casts[ROLE_WEIGHT] = row->e5m2 ? r->agrad_hybrid : r->weight;
    c->casts[ROLE_ACT] = row->e5m2 ? r->agrad_hybrid : r->act;
    c->casts[ROLE_GRAD] = row->e5m2 ? r->agrad_hybrid : r->agrad_e4m3;
    c->bits = bits_of(c->casts[ROLE_ACT]);
}

size_t advise_candidates_cast(const candidate_list *l, const char *recipe)
{
    size_t i = 0;
    while (i < l->n_casts && strcmp(l->casts[i], recipe) != 0)
        i++;
    return i;
}

static void add(candidate_list *l, const struct row *row)
{
    candidate *c = &l->items[l->count++];
    *c = (candidate){.name = row->name};
    if (!row->recipe) {
        c->bits = mpsim_format_find(row->name)->bits;
        return;
    }
    set_casts(c, row);
    for (int role = 0; role < CANDIDATE_ROLES; role++)
        if (advise_candidates_cast(l, c->casts[role]) == l->n_casts)
            l->casts[l->n_casts++] = c->casts[role];
}

static int unknown(const char *word)
{
    suggestion s;
    suggestion_init(&s, word);
    for (int i = 0; i < ROWS; i++)
        suggestion_consider(&s, rows[i].name);
    return fail(EXIT_USAGE,
                "advise: --format: '%s' is not one of mxfp4, nvfp4, mxfp6, e4m3, e5m2, mxfp8, blockwise, bf16, fp16%s",
                word, suggestion_end(&s, ""));
}

/* The words of a list, in `is`. */
static int read_words(int is[ROWS], const char *typed)
{
    for (const char *p = typed; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        char word[32];
        const size_t n = strcspn(p, ",");
        int i = 0;
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), p);
        while (i < ROWS && strcmp(rows[i].name, word) != 0)
            i++;
        if (i == ROWS)
            return unknown(word);
        is[i] = 1;
    }
    return 0;
}

int advise_candidates_make(candidate_list *l, const char *typed)
{
    int is[ROWS] = {0};
    *l = (candidate_list){.count = 0};
    const int code = read_words(is, typed);
    for (int i = 0; i < ROWS && !code; i++)
        if (typed ? is[i] || i == ROWS - 1 : rows[i].usual)
            add(l, &rows[i]);
    return code;
}

int advise_candidates_find(const candidate_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* ---- recipes ---- */

static const advise_recipe recipes[] = {
    {"mxfp4", "mxfp4", "mxfp4", "mxfp4", NULL, NULL},
    {"nvfp4", "nvfp4", "nvfp4", "nvfp4", NULL, NULL},
    {"mxfp6", "mxfp6", "mxfp6", "mxfp6", NULL, NULL},
    {"fp8 current scaling, e4m3", "e4m3", "e4m3", "fp8", "current", "e4m3"},
    {"fp8 current scaling, hybrid", "e4m3", "e5m2", "fp8", "current", "hybrid"},
    {"mxfp8", "mxfp8", "mxfp8", "mxfp8", NULL, NULL},
    {"fp8 blockwise", "blockwise", "blockwise", "fp8", "blockwise", NULL},
};

const advise_recipe *advise_recipe_at(size_t i)
{
    return i < sizeof recipes / sizeof *recipes ? &recipes[i] : NULL;
}
