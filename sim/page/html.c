/* html.c -- see html.h. */
#include "html.h"

#include "../array/memory.h"
#include "../array/need.h"
#include "../text/escape.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void page_html_text(FILE *to, const char *text)
{
    while (*text) {
        char unit[ESCAPE_UNIT];
        text += escape_next(unit, text);
        switch (unit[0]) {
        case '&':
            fputs("&amp;", to);
            break;
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '"':
            fputs("&quot;", to);
            break;
        case '\'':
            fputs("&#39;", to);
            break;
        default:
            fputs(unit, to);
        }
    }
}

static void print(FILE *to, const char *format, va_list args)
{
    char few[256], *all = few;
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(few, sizeof few, format, args);
    if (n >= (int)sizeof few) {
        all = need_memory((uint64_t)n + 1, 1);
        vsnprintf(all, (size_t)n + 1, format, again);
    }
    va_end(again);
    page_html_text(to, all);
    if (all != few)
        free(all);
}

void page_html_print(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print(to, format, args);
    va_end(args);
}

FILE *page_html_begin(char **text, size_t *size)
{
    *text = NULL;
    *size = 0;
    return need(memory_open(text, size));
}

void page_html_end(FILE *to, char *const *text)
{
    const int bad = ferror(to), late = fclose(to);
    (void)need(bad || late ? NULL : *text);
}

/* ---- tables ---- */

/* A row of the titles of records, if there are any: neighbours of one name are one cell. */
typedef struct groups {
    FILE *to;
    const char *name;
    size_t span;
} groups;

static void end_group(const groups *g)
{
    fprintf(g->to, *g->name ? "<th scope=\"colgroup\" colspan=\"%zu\">" : "<td colspan=\"%zu\">", g->span);
    page_html_text(g->to, g->name);
    fputs(*g->name ? "</th>" : "</td>", g->to);
}

static void put_group(void *to, const record_title *t)
{
    groups *g = to;
    if (g->span && strcmp(g->name, t->above) != 0) {
        end_group(g);
        g->span = 0;
    }
    g->name = t->above;
    g->span++;
}

static void see_group(void *to, const record_title *t)
{
    *(int *)to |= *t->above != '\0';
}

static void put_groups(const html_table *t)
{
    groups g = {t->to, "", 0};
    int any = 0;
    record_titles(t->kind, t->shows, see_group, &any);
    if (!any)
        return;
    fputs("<tr>", t->to);
    record_titles(t->kind, t->shows, put_group, &g);
    end_group(&g);
    fputs("</tr>\n", t->to);
}

static void put_title(void *to, const record_title *t)
{
    fprintf(to, "<th scope=\"col\" aria-sort=\"none\"%s", t->is_text ? " class=\"t\"" : "");
    if (t->what) {
        fputs(" title=\"", to);
        page_html_text(to, t->what);
        fputc('"', to);
    }
    fputs("><button type=\"button\">", to);
    if (*t->above) { /* who hears the title alone hears its group, too */
        fputs("<span class=\"vh\">", to);
        page_html_text(to, t->above);
        fputs(": </span>", to);
    }
    page_html_text(to, t->title);
    fputs("</button></th>", to);
}

void page_html_table_begin(html_table *t, FILE *to, const char *id, const char *caption, const record_kind *kind,
                           unsigned shows)
{
    *t = (html_table){.to = to, .kind = kind, .shows = shows};
    fprintf(to,
            "<div class=\"scroll\" role=\"group\" aria-labelledby=\"%s-caption\" tabindex=\"0\">\n"
            "<table id=\"%s\">\n<caption id=\"%s-caption\">",
            id, id, id);
    page_html_text(to, caption);
    fputs("</caption>\n<thead>\n", to);
    put_groups(t);
    fputs("<tr>", to);
    record_titles(kind, shows, put_title, to);
    fputs("</tr>\n</thead>\n<tbody>", to);
}

static void put_cell(void *to, const record_field *f, const char *text)
{
    html_table *t = to;
    const char *mark = f->type == FIELD_WORD ? t->mark : NULL, *element = t->at++ ? "td" : "th";
    fprintf(t->to, "<%s%s>", element,
            t->at == 1                          ? " scope=\"row\""
            : *f->title == '<' && !t->is_styled ? " class=\"t\""
                                                : "");
    if (mark)
        fprintf(t->to, "<b class=\"%s\">", mark);
    page_html_text(t->to, strcmp(text, "-") == 0 ? "–" : text);
    fprintf(t->to, "%s</%s>", mark ? "</b>" : "", element);
}

void page_html_row(html_table *t, const void *row)
{
    t->at = 0;
    fputs(t->rows++ == HTML_PAGE_ROWS ? "\n</tbody>\n<tbody class=\"rest\">\n<tr>" : "\n<tr>", t->to);
    record_texts(t->kind, row, t->shows, put_cell, t);
    fputs("</tr>", t->to);
}

void page_html_table_end(html_table *t)
{
    fputs("\n</tbody>\n</table>\n</div>\n", t->to);
}
