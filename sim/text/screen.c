/* screen.c -- see screen.h. */
#include "screen.h"

#include "words.h"

#include <stdarg.h>
#include <string.h>

enum { LEFT_OUT = 512, LINE = 8192 };

static FILE *direct, *report; /* what goes to the terminal: at once, in the end */
static int terminal;          /* its columns; 0: there is none                   */
static char left_out[LEFT_OUT];

void screen_begin(FILE *to, int columns)
{
    direct = to;
    terminal = columns;
}

void screen_report(FILE *to)
{
    report = to;
}

int screen_columns(FILE *to)
{
    return to && (to == direct || to == report) ? terminal : 0;
}

int screen_width(FILE *to, int most)
{
    const int columns = screen_columns(to);
    return columns && columns < most ? columns : most;
}

/* ---- lines ---- */

int screen_is_verbatim(const char *line, size_t n)
{
    if (n && line[0] == ' ')
        return 1;
    for (size_t i = 1; i + 1 < n; i++)
        if (line[i] == ' ' && line[i + 1] == ' ')
            return 1;
    return 0;
}

/* Where the lines behind the first begin: at the text behind the first gap, if that leaves two thirds of the columns to it. */
static int hanging(const char *line, size_t n, int columns)
{
    size_t indent = 0;
    while (indent < n && line[indent] == ' ')
        indent++;
    for (size_t i = indent; i + 2 < n && (int)i < columns / 3; i++)
        if (line[i] == ' ' && line[i + 1] == ' ') {
            while (i < n && line[i] == ' ')
                i++;
            return text_columns(line, i) <= columns / 3 ? text_columns(line, i) : (int)indent + 2;
        }
    return (int)indent + 2;
}

/* The bytes of the line, of n, that fit so many columns, to a blank behind the first word; all where they fit. */
static size_t fitting(const char *line, size_t n, int columns)
{
    size_t at = 0, best = 0;
    if (text_columns(line, n) <= columns)
        return n;
    while (at < n && line[at] == ' ')
        at++;
    for (; at < n; at++)
        if (line[at] == ' ' && (best == 0 || text_columns(line, at) <= columns))
            best = at;
    return best ? best : n;
}

void screen_fold(FILE *to, int columns, const char *line, size_t n)
{
    const int hang = hanging(line, n, columns);
    for (int at = 0;; at = hang) {
        const size_t k = fitting(line, n, columns - at);
        fprintf(to, "%*s%.*s\n", at, "", (int)k, line);
        for (line += k, n -= k; n > 0 && *line == ' '; line++)
            n--;
        if (n == 0)
            return;
    }
}

void screen_line(FILE *to, const char *format, ...)
{
    char line[LINE] = "";
    va_list values;
    va_start(values, format);
    text_add_list(line, sizeof line, format, values);
    va_end(values);
    if (screen_columns(to))
        screen_fold(to, screen_columns(to), line, strlen(line));
    else
        fprintf(to, "%s\n", line);
}

/* ---- paragraphs ---- */

static size_t line_of(const char *text)
{
    return strcspn(text, "\n");
}

static int is_paragraph(const char *text)
{
    const size_t n = line_of(text);
    return n > 0 && !screen_is_verbatim(text, n);
}

/* Words of a line behind those of others, the cursor being at column `at`. */
static int put_words(FILE *to, int at, int columns, const char *line, size_t n)
{
    for (size_t i = 0, k; i < n; i += k + (i + k < n)) {
        k = strcspn(line + i, " \n");
        const int width = text_columns(line + i, k);
        if (at && at + 1 + width > columns)
            at = fprintf(to, "\n") - 1;
        fprintf(to, "%s%.*s", at ? " " : "", (int)k, line + i);
        at += (at > 0) + width;
    }
    return at;
}

/* A paragraph from text on; where it ends. */
static const char *put_paragraph(FILE *to, int columns, const char *text)
{
    for (int at = 0, more = 1; more; text += text[0] == '\n') {
        const size_t n = line_of(text);
        at = put_words(to, at, columns, text, n);
        more = text[n] && is_paragraph(text + n + 1);
        text += n;
    }
    fputc('\n', to);
    return text;
}

static int fits(const char *text, int columns)
{
    for (; *text; text += line_of(text) + (text[line_of(text)] == '\n'))
        if (text_columns(text, line_of(text)) > columns)
            return 0;
    return 1;
}

void screen_text(FILE *to, const char *text)
{
    const int columns = screen_columns(to);
    if (columns == 0 || fits(text, columns)) {
        fputs(text, to);
        return;
    }
    while (*text) {
        if (is_paragraph(text)) {
            text = put_paragraph(to, columns, text);
            continue;
        }
        screen_fold(to, columns, text, line_of(text));
        text += line_of(text) + (text[line_of(text)] == '\n');
    }
}

/* ---- columns that are left out ---- */

void screen_leave_out(const char *column)
{
    const char *at = left_out;
    const size_t n = strlen(column);
    while ((at = strstr(at, column))) { /* as a whole item of the list */
        if ((at == left_out || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return;
        at++;
    }
    text_add(left_out, sizeof left_out, "%s%s", *left_out ? ", " : "", column);
}

void screen_end(FILE *to)
{
    if (!*left_out || !screen_columns(to))
        return;
    fputc('\n', to);
    screen_line(to, "(%d columns have no room for: %s; a wider terminal or | cat shows them)", terminal, left_out);
    left_out[0] = '\0';
}
