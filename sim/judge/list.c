/* list.c -- see list.h. */
#include "list.h"

#include "../array/want.h"
#include "../text/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int read_row(const judge_list *l, void *to, const char *text)
{
    judge_row *row = to;
    char copy[MPSIM_JUDGE_ROW];
    if (strlen(text) >= sizeof copy)
        return -1;
    memset(to, 0, l->size);
    row->math = *judge_math_at(0);
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(row->name, sizeof row->name, "%s", text);
    return l->read(to, copy);
}

void judge_list_add(judge_list *l, const char *text, ...)
{
    char name[MPSIM_JUDGE_ROW] = "";
    va_list values;
    va_start(values, text);
    const int cut = text_add_list(name, sizeof name, text, values);
    va_end(values);
    if (!cut && l->n < l->most && read_row(l, l->rows + l->n * l->size, name) == 0)
        l->n++;
}

static const char *name(const void *question, size_t row)
{
    return ((const judge_row *)judge_list_at(question, row))->name;
}

static const mpsim_format *math(const void *question, size_t row)
{
    return &((const judge_row *)judge_list_at(question, row))->math;
}

/* The row that is asked for, in the last place. */
static mpsim_status take_like(const judge_list *l, judge_table *t)
{
    char text[MPSIM_JUDGE_ROW];
    snprintf(text, sizeof text, "%s", l->w->like);
    if (strlen(l->w->like) >= sizeof text || judge_ending_take(&t->ending, text) ||
        read_row(l, l->rows + l->most * l->size, text))
        return judge_fail(l->w, MPSIM_ENOTFOUND, "'%s' is not a row of %s", l->w->like, l->texts);
    t->like = 1;
    return MPSIM_OK;
}

static mpsim_status answer(judge_list *l, judge_table *t, mpsim_status (*add)(void *question, void *like))
{
    char *like = t->like ? l->rows + l->most * l->size : NULL;
    const mpsim_status s = add(l, like);
    if (s != MPSIM_OK)
        return s;
    if (like && l->n < l->most)
        memcpy(l->rows + l->n * l->size, like, l->size);
    t->rows = l->n;
    return judge_table_answer(t);
}

mpsim_status judge_list_answer(judge_list *l, judge_table *t, mpsim_status (*add)(void *question, void *like))
{
    enum { Y = 1 };
    t->w = l->w;
    t->self = l;
    t->name = name;
    t->math = t->math ? t->math : math;
    if (!t->outputs) {
        t->found[0] = l->w->of[Y];
        t->outputs = 1;
    }
    l->rows = want_memory(l->most + 1, l->size);
    mpsim_status s = !l->rows ? MPSIM_ENOMEM : l->w->like ? take_like(l, t) : MPSIM_OK;
    s = s == MPSIM_OK ? answer(l, t, add) : s;
    free(l->rows);
    return s;
}

mpsim_status judge_list_numbers(const judge_case *c)
{
    mpsim_status s = MPSIM_OK;
    for (int i = 0; i < JUDGE_ROLES && s == MPSIM_OK; i++)
        s = judge_has_numbers(c, c->of[i]);
    return s;
}

mpsim_status judge_list_alike(const judge_case *c, const mpsim_judge_array *x, const mpsim_judge_array *y)
{
    const mpsim_status s = judge_list_numbers(c);
    if (s != MPSIM_OK)
        return s;
    if (x->rows != y->rows || x->columns != y->columns || x->rows * x->columns == 0)
        return judge_fail(c, MPSIM_EINVAL, "expected as many results as numbers: x is %zu x %zu, y is %zu x %zu",
                          x->rows, x->columns, y->rows, y->columns);
    return MPSIM_OK;
}
