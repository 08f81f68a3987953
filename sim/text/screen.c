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

/* screen_fold with the lines behind the first at column `hang`. */
static void fold_at(FILE *to, int columns, int hang, const char *line, size_t n)
{
    for (int at = 0;; at = hang) {
        const size_t k = fitting(line, n, columns - at);
        fprintf(to, "%*s%.*s\n", at, "", (int)k, line);
        for (line += k, n -= k; n > 0 && *line == ' '; line++)
            n--;
        if (n == 0)
            return;
    }
}

void screen_fold(FILE *to, int columns, const char *line, size_t n)
{
    fold_at(to, columns, hanging(line, n, columns), line, n);
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

static const char *next_line(const char *text)
{
    const size_t n = line_of(text);
    return text + n + (text[n] == '\n');
}

static int indent_of(const char *text)
{
    return (int)strspn(text, " ");
}

static int fits(const char *text, int columns)
{
    for (; *text; text = next_line(text))
        if (text_columns(text, line_of(text)) > columns)
            return 0;
    return 1;
}

/* Whether the line at `text` goes on with a paragraph whose lines begin at column `indent`. */
static int goes_on(const char *text, int indent)
{
    const size_t n = line_of(text);
    return n > 0 && indent_of(text) == indent && !screen_is_verbatim(text + indent, n - (size_t)indent);
}

/* Fills the lines from text on, of n bytes, with those behind it that go on at column `indent`; where they end. */
static const char *fill(FILE *to, int columns, const char *text, int indent)
{
    char line[LINE] = "";
    text_add(line, sizeof line, "%.*s", (int)line_of(text), text);
    for (text = next_line(text); goes_on(text, indent); text = next_line(text))
        text_add(line, sizeof line, " %.*s", (int)line_of(text) - indent, text + indent);
    fold_at(to, columns, indent, line, strlen(line));
    return text;
}

/* A line that is too wide: what stands behind its last gap, if that is far to the right, has a line of its own. */
static void fold_remark(FILE *to, int columns, const char *line, size_t n)
{
    const int indent = indent_of(line);
    size_t gap = n, word;
    while (gap > (size_t)columns / 3 && !(line[gap - 1] == ' ' && line[gap - 2] == ' '))
        gap--;
    if (text_columns(line, n) <= columns || gap <= (size_t)columns / 3) {
        screen_fold(to, columns, line, n);
        return;
    }
    word = gap;
    while (gap > 0 && line[gap - 1] == ' ')
        gap--;
    fold_at(to, columns, indent + 4, line, gap);
    fprintf(to, "%*s", indent + 6, "");
    fold_at(to, columns - indent - 6, 0, line + word, n - word);
}

void screen_text(FILE *to, int columns, const char *text)
{
    if (columns == 0 || fits(text, columns)) {
        fputs(text, to);
        return;
    }
    while (*text) {
        const size_t n = line_of(text);
        const int verbatim = screen_is_verbatim(text, n), hang = verbatim ? hanging(text, n, columns) : 0;
        if (n == 0 || (verbatim && hang <= indent_of(text) + 2)) {
            fold_remark(to, columns, text, n);
            text = next_line(text);
        } else {
            text = fill(to, columns, text, hang);
        }
    }
}

/* ---- columns that are left out ---- */

/* Whether it is an item of the list. */
static int is_left_out(const char *column)
{
    const size_t n = strlen(column);
    for (const char *at = left_out; (at = strstr(at, column)); at++)
        if ((at == left_out || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return n > 0;
    return 0;
}

int screen_leaves_out(FILE *to, const char *column)
{
    return screen_columns(to) > 0 && is_left_out(column);
}

void screen_leave_out(const char *column)
{
    if (!is_left_out(column))
        text_add(left_out, sizeof left_out, "%s%s", *left_out ? ", " : "", column);
}

void screen_end(FILE *to)
{
    if (!*left_out || !screen_columns(to))
        return;
    fputc('\n', to);
    screen_line(to, "(not shown in %d columns: %s; a wider terminal or | cat shows all)", terminal, left_out);
    left_out[0] = '\0';
}
