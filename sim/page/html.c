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

/* A title: the text from `text` on, `n` bytes, without its sign; its group, `*group` bytes before it. */
static const char *next_title(const char *text, size_t *n, size_t *group)
{
    *n = strcspn(text, "|");
    const char *slash = memchr(text, '/', *n);
    *group = slash ? (size_t)(slash - text) : 0;
    return text[*n] ? text + *n + 1 : NULL;
}

static void put_part(FILE *to, const char *text, size_t n)
{
    char *part = need_part(text, n);
    page_html_text(to, part);
    free(part);
}

/* One row of groups, if there are any: neighbours of one name are one cell. */
static void put_groups(const html_table *t)
{
    const char *at = t->columns, *last = "";
    size_t n, group, last_group = 0, span = 0;
    if (!strchr(t->columns, '/'))
        return;
    fputs("<tr>", t->to);
    while (at) {
        const char *text = at + 1;
        at = next_title(at, &n, &group);
        group -= group > 0; /* the sign */
        if (span && group == last_group && strncmp(text, last, group) == 0) {
            span++;
            continue;
        }
        if (span) {
            fprintf(t->to, last_group ? "<th scope=\"colgroup\" colspan=\"%zu\">" : "<td colspan=\"%zu\">", span);
            put_part(t->to, last, last_group);
            fputs(last_group ? "</th>" : "</td>", t->to);
        }
        last = text;
        last_group = group;
        span = 1;
    }
    fprintf(t->to, last_group ? "<th scope=\"colgroup\" colspan=\"%zu\">" : "<td colspan=\"%zu\">", span);
    put_part(t->to, last, last_group);
    fputs(last_group ? "</th></tr>\n" : "</td></tr>\n", t->to);
}

static void put_titles(html_table *t)
{
    const char *at = t->columns;
    size_t n, group;
    fputs("<tr>", t->to);
    while (at) {
        const char *text = at + 1;
        const int is_text = *at == '<';
        at = next_title(at, &n, &group);
        fprintf(t->to, "<th scope=\"col\" aria-sort=\"none\"%s><button type=\"button\">",
                is_text ? " class=\"t\"" : "");
        if (group) { /* who hears the title alone hears its group, too */
            fputs("<span class=\"vh\">", t->to);
            put_part(t->to, text, group - 1);
            fputs(": </span>", t->to);
        }
        put_part(t->to, text + group, n - 1 - group);
        fputs("</button></th>", t->to);
        t->texts |= (unsigned long long)is_text << t->n++;
    }
    fputs("</tr>\n", t->to);
}

void page_html_table_begin(html_table *t, FILE *to, const char *id, const char *caption, const char *columns)
{
    *t = (html_table){.to = to, .columns = columns};
    fprintf(to,
            "<div class=\"scroll\" role=\"group\" aria-labelledby=\"%s-caption\" tabindex=\"0\">\n"
            "<table id=\"%s\">\n<caption id=\"%s-caption\">",
            id, id, id);
    page_html_text(to, caption);
    fputs("</caption>\n<thead>\n", to);
    put_groups(t);
    put_titles(t);
    fputs("</thead>\n<tbody>", to);
}

static void begin_cell(html_table *t)
{
    t->at = t->at == t->n ? 0 : t->at;
    t->rows += t->at == 0;
    if (t->at == 0 && t->rows == HTML_PAGE_ROWS + 1)
        fputs("\n</tbody>\n<tbody class=\"rest\">", t->to);
    fputs(t->at == 0 ? "\n<tr><th scope=\"row\">" : t->texts >> t->at & 1 ? "<td class=\"t\">" : "<td>", t->to);
}

static void end_cell(html_table *t)
{
    fputs(t->at == 0 ? "</th>" : "</td>", t->to);
    if (++t->at == t->n)
        fputs("</tr>", t->to);
}

void page_html_cell(html_table *t, const char *format, ...)
{
    va_list args;
    begin_cell(t);
    va_start(args, format);
    print(t->to, format, args);
    va_end(args);
    end_cell(t);
}

void page_html_mark_cell(html_table *t, const char *mark, const char *text)
{
    begin_cell(t);
    fprintf(t->to, "<b class=\"%s\">", mark);
    page_html_text(t->to, text);
    fputs("</b>", t->to);
    end_cell(t);
}

void page_html_table_end(html_table *t)
{
    fputs("\n</tbody>\n</table>\n</div>\n", t->to);
}
