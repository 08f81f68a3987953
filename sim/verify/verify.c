/* verify.c -- see verify.h. */
#include "verify.h"

#include "../array/need.h"
#include "../process/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

verify_row *verify_add(verify *v, const char *group, const char *what, ...)
{
    va_list args;
    need_room(&v->rows, v->count, sizeof *v->rows);
    verify_row *row = &v->rows[v->count++];
    memset(row, 0, sizeof *row);
    row->group = group;
    va_start(args, what);
    vsnprintf(row->what, sizeof row->what, what, args);
    va_end(args);
    return row;
}

void verify_differs(verify_row *row, const char *text, ...)
{
    va_list args;
    if (row->mismatches++)
        return;
    va_start(args, text);
    vsnprintf(row->text, sizeof row->text, text, args);
    va_end(args);
}

int verify_run(verify *v, const verify_group *group)
{
    char why[sizeof((verify_row *)0)->text];
    progress_say("%s", group->name);
    if (group->here(v, why, sizeof why))
        return group->run(v);
    verify_row *row = verify_add(v, group->name, "%s", "");
    row->status = VERIFY_SKIPPED;
    memcpy(row->text, why, sizeof row->text);
    return 0;
}

void verify_clear(verify *v)
{
    free(v->rows);
    v->rows = NULL;
    v->count = 0;
}
