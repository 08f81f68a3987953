/* columns.c -- what help says of the columns of a table for people; see record.h. */
#include "field.h"

#include <string.h>
#include <strings.h>

/* The sentence of f, or that of another field of the same place, which has the same value. */
static const char *sentence_of(const record_kind *r, const record_field *f)
{
    for (const record_field *g = r->fields; !f->what && !field_end(g); g++)
        if (g->what && g->at == f->at && g->type < FIELD_RECORD)
            return g->what;
    return f->what;
}

/* Whether a sentence says the title and no more. */
static int is_title(const char *title, const char *what)
{
    const size_t n = strlen(title);
    return strncasecmp(title, what, n) == 0 && strcmp(what + n, ".") == 0;
}

/* Whether it is told already: of this title, or of any if it is another field's. */
static int is_told(const record_column *told, size_t n, const record_column *c, int of_another)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(told[i].what, c->what) == 0 && (of_another || strcmp(told[i].title, c->title) == 0))
            return 1;
    return 0;
}

const char *field_sentence(char out[FIELD_SENTENCE], const record_kind *r, const record_field *f)
{
    const char *title = f->title + (*f->title != '\0'), *what = sentence_of(r, f);
    if (!*title || !what || strncasecmp(what, "null:", 5) == 0 || is_title(title, what))
        return NULL;
    const char *null = strstr(what, "; null:");
    snprintf(out, FIELD_SENTENCE, "%.*s%s", null ? (int)(null - what) : (int)strlen(what), what, null ? "." : "");
    return out;
}

static size_t add_column(record_column *to, size_t n, const record_kind *r, const record_field *f)
{
    if (n == RECORD_COLUMNS_MOST || !field_sentence(to[n].what, r, f))
        return n;
    to[n].title = f->title + 1;
    return n + !is_told(to, n, &to[n], !f->what);
}

size_t record_columns(record_column to[RECORD_COLUMNS_MOST], size_t n, const record_kind *r, unsigned shows)
{
    const record_field *columns[FIELD_COLUMNS_MOST];
    const size_t count = field_columns(columns, r, shows);
    for (size_t i = 0; i < count; i++)
        n = columns[i]->type == FIELD_RECORD ? record_columns(to, n, columns[i]->record, shows)
                                             : add_column(to, n, r, columns[i]);
    return n;
}
