/* columns.c -- see columns.h. */
#include "columns.h"

#include "../record/record.h"

void columns_each(const option_row *options, void (*heading)(const char *title),
                  void (*column)(const char *title, const char *what))
{
    record_column all[RECORD_COLUMNS_MOST];
    size_t n = 0;
    for (const option_row *o = options; o->name; o++) {
        const option_columns *c = o->type == OPTION_COLUMNS ? o->value : NULL;
        size_t i = n;
        n = c ? record_columns(all, n, c->record, c->shows) : n;
        if (i < n)
            heading(o->name);
        for (; i < n; i++)
            column(all[i].title, all[i].what);
    }
}
