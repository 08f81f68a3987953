/* blocktarget.c -- see blocktarget.h. */
#include "blocktarget.h"

#include "../array/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const rules[] = {"floor", "even", "ceil", "rceil", "te", "microx"};
enum { RULES = sizeof rules / sizeof rules[0] };

/* ---- axes ---- */

const char *const block_axes[] = {"rows", "columns", "requantised", NULL};

const char *block_axis_name(block_axis axis)
{
    return block_axes[axis];
}

/* The first and the last of those that a word asks for. */
static int parse_axis(block_axis *first, block_axis *last, const char *word, const char *verb)
{
    *first = word && strcmp(word, "columns") == 0 ? BLOCK_COLUMNS : BLOCK_ROWS;
    *last = *first;
    if (!word || strcmp(word, "rows") == 0 || strcmp(word, "columns") == 0)
        return 0;
    *last = BLOCK_REQUANTISED;
    return strcmp(word, "both") == 0 ? 0
                                     : fail(EXIT_USAGE, "%s: --axis is rows, columns or both, not '%s'", verb, word);
}

/* ---- targets ---- */

int block_is_first(const block_list *l, size_t i)
{
    return i == 0 || strcmp(l->items[i].label, l->items[i - 1].label) != 0;
}

/* One recipe, along all axes that are asked for. */
static int add(block_list *l, block_target *t, const char *axis, const char *word, const char *verb)
{
    block_axis first, last;
    const int code = parse_axis(&first, &last, axis, verb);
    if (code)
        return code;
    snprintf(t->label, sizeof t->label, "%s", t->recipe.name);
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].label, t->label) == 0)
            return fail(EXIT_USAGE, "%s: recipe '%s' is given twice", verb, word);
    for (int a = (int)first; a <= (int)last; a++) {
        if (array_room(&l->items, l->count, sizeof *l->items))
            return host_no_memory();
        t->axis = (block_axis)a;
        l->items[l->count++] = *t;
    }
    return 0;
}

static int too_long(const char *word, const char *verb)
{
    return fail(EXIT_USAGE, "%s: '%.40s...': the name of the recipe is too long", verb, word);
}

static int bad_word(const char *verb, const char *word, const char *error)
{
    return fail(EXIT_USAGE, "%s: %s: %s", verb, word, error);
}

/* The recipe of a word without '*', and with the transform. */
static int add_both(block_list *l, const char *word, const char *hadamard, const char *axis, const char *verb)
{
    char error[256], longer[96];
    block_target t;
    memset(&t, 0, sizeof t);
    if (mpsim_block_parse(&t.recipe, &t.transform, word, error, sizeof error) != MPSIM_OK)
        return bad_word(verb, word, error);
    const int code = add(l, &t, axis, word, verb);
    if (code || !hadamard || t.transform)
        return code;
    if (snprintf(longer, sizeof longer, "%s:rht%s", word, *hadamard ? hadamard : "0") >= (int)sizeof longer)
        return too_long(word, verb);
    if (mpsim_block_parse(&t.recipe, &t.transform, longer, error, sizeof error) != MPSIM_OK)
        return fail(EXIT_USAGE, "%s: --rht is 16, 32, 64 or 128, not '%s'", verb, hadamard);
    return add(l, &t, axis, longer, verb);
}

/* "mxfp8:*": all rules that the family has. */
static int add_rules(block_list *l, const char *word, const char *star, const char *hadamard, const char *axis,
                     const char *verb)
{
    char each[96], error[256];
    int found = 0, code = 0;
    for (size_t i = 0; i < RULES && !code; i++) {
        mpsim_block_recipe b;
        unsigned transform;
        if (snprintf(each, sizeof each, "%.*s%s%s", (int)(star - word), word, rules[i], star + 1) >= (int)sizeof each)
            return too_long(word, verb);
        if (mpsim_block_parse(&b, &transform, each, error, sizeof error) != MPSIM_OK)
            continue;
        found = 1;
        code = add_both(l, each, hadamard, axis, verb);
    }
    if (found || code)
        return code;
    return fail(EXIT_USAGE, "%s: %s: '*' stands for the scale rules of a family, as mxfp8:*; this one has none", verb,
                word);
}

int block_list_add(block_list *l, const char *word, const char *hadamard, const char *axis, const char *verb, int *is)
{
    char head[96], error[256];
    mpsim_block_recipe b;
    unsigned transform;
    const char *star = strchr(word, '*'), *rest = star && star > word && star[-1] == ':' ? star + 1 : NULL;
    if (rest && snprintf(head, sizeof head, "%.*s%s", (int)(star - 1 - word), word, rest) >= (int)sizeof head)
        return too_long(word, verb);
    const mpsim_status status = mpsim_block_parse(&b, &transform, rest ? head : word, error, sizeof error);
    *is = status != MPSIM_ENOTFOUND;
    if (!*is)
        return 0;
    if (status != MPSIM_OK)
        return bad_word(verb, word, error);
    return rest ? add_rules(l, word, star, hadamard, axis, verb) : add_both(l, word, hadamard, axis, verb);
}

void block_list_suggest(suggestion *s)
{
    for (size_t i = 0; i < mpsim_block_count(); i++)
        suggestion_consider(s, mpsim_block_at(i)->name);
}

void block_list_clear(block_list *l)
{
    free(l->items);
    memset(l, 0, sizeof *l);
}
