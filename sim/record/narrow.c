/* narrow.c -- tables that are too wide for a terminal; see table_print in cells.h. */
#include "table.h"

#include "../text/screen.h"
#include "../text/words.h"

#include <string.h>

/* A text of more columns than TEXT_LEAST may be broken to as many; a name takes at least NAME_LEAST columns beside its row. */
enum { TEXT_LEAST = 24, NAME_LEAST = 12, GAP = 2 };

typedef struct fit {
    const table *t;
    int room;
    int least[COLUMNS_MAX]; /* what a column needs; 0: it has no text, or is left out */
    int whole[COLUMNS_MAX]; /* what it would take with nothing broken                 */
    int width[COLUMNS_MAX];
    int shown[COLUMNS_MAX]; /* in the part of the table that is printed               */
} fit;

static int width(const char *s)
{
    return text_columns(s, strlen(s));
}

/* The first word: where it begins, and its bytes; 0 where there is none. */
static size_t word(const char **s)
{
    *s += strspn(*s, " ");
    return strcspn(*s, " ");
}

static int longest_word(const char *s)
{
    int most = 0;
    for (size_t n; (n = word(&s)) > 0; s += n)
        most = text_columns(s, n) > most ? text_columns(s, n) : most;
    return most;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static size_t rows(const table *t)
{
    return t->count / (size_t)t->columns;
}

static const char *cell(const table *t, size_t row, int c)
{
    return t->cells[row * (size_t)t->columns + (size_t)c];
}

static void measure_column(fit *f, int c)
{
    const table_column *of = &f->t->of[c];
    int most = 0, words = 0;
    for (size_t row = 0; row < rows(f->t); row++) {
        most = larger(most, width(cell(f->t, row, c)));
        words = larger(words, longest_word(cell(f->t, row, c)));
    }
    if (most == 0)
        return;
    const int breaks = of->left && !of->spare && most > TEXT_LEAST && words < most;
    f->least[c] = larger(longest_word(of->title), breaks ? larger(words, TEXT_LEAST) : most);
    f->whole[c] = larger(width(of->title), most);
}

static int total(const fit *f)
{
    int all = -GAP;
    for (int c = 0; c < f->t->columns; c++)
        all += f->least[c] > 0 ? f->least[c] + GAP : 0;
    return all;
}

/* What a column is called where it is not seen: "bias (operands as given)". */
static void leave_out(const fit *f, int c)
{
    char name[128] = "";
    int above = c;
    while (above > 0 && !f->t->of[above].above)
        above--;
    text_add(name, sizeof name, "%s", f->t->of[c].title);
    if (f->t->of[above].above && *f->t->of[above].above)
        text_add(name, sizeof name, " (%s)", f->t->of[above].above);
    screen_leave_out(name);
}

/* Leaves out the column whose number is the largest, of those from `least` on, with columns behind it that share its title. Whether
 * there was one. */
static int drop(fit *f, int least)
{
    int found = -1;
    for (int c = 0; c < f->t->columns; c++)
        if (f->least[c] > 0 && f->t->of[c].spare >= least && (found < 0 || f->t->of[c].spare >= f->t->of[found].spare))
            found = c;
    if (found < 0)
        return 0;
    leave_out(f, found);
    do
        f->least[found++] = 0;
    while (found < f->t->columns && !*f->t->of[found].title);
    return 1;
}

static int first_shown(const fit *f)
{
    int c = 0;
    while (c < f->t->columns - 1 && f->least[c] == 0)
        c++;
    return c;
}

/* Long names of rows get lines of their own. Whether that makes room. */
static int shrink_names(fit *f)
{
    const int c = first_shown(f), over = total(f) - f->room;
    const int least = larger(NAME_LEAST, longest_word(f->t->of[c].title));
    if (!f->t->of[c].left || f->least[c] <= least)
        return 0;
    f->least[c] = larger(least, f->least[c] - over);
    return 1;
}

/* Columns until they fit, or nothing helps. */
static void choose(fit *f)
{
    while (total(f) > f->room && (drop(f, 2) || shrink_names(f) || drop(f, 1)))
        ;
}

/* ---- parts: the first columns, and as many others as there is room for ---- */

/* How many columns every part has: the first, and a second one that is a name as well. */
static int keys(const fit *f)
{
    const int first = first_shown(f);
    return first + 1 + (first + 1 < f->t->columns && f->t->of[first + 1].left && f->least[first + 1] <= TEXT_LEAST);
}

/* The columns of the next part, from `from` on; the column behind it. */
static int next_part(fit *f, int from)
{
    int all = -GAP, c;
    for (c = 0; c < f->t->columns; c++)
        f->shown[c] = c < keys(f) && f->least[c] > 0;
    for (c = 0; c < keys(f); c++)
        all += f->least[c] > 0 ? f->least[c] + GAP : 0;
    for (c = from; c < f->t->columns; c++) {
        const int more = f->least[c] > 0 ? f->least[c] + GAP : 0;
        if (all + more > f->room && c > from)
            break;
        f->shown[c] = more > 0;
        all += more;
    }
    return c;
}

/* What the part leaves of the room goes to names, titles and texts, from the left. */
static void widen(fit *f)
{
    int left = f->room + GAP;
    for (int c = 0; c < f->t->columns; c++) {
        f->width[c] = f->shown[c] ? f->least[c] : 0;
        left -= f->shown[c] ? f->least[c] + GAP : 0;
    }
    for (int c = 0; c < f->t->columns; c++) {
        const int more = f->shown[c] ? f->whole[c] - f->width[c] : 0, give = more < left ? more : left;
        if (give <= 0 ||
            (give < more && f->least[c] < TEXT_LEAST && !f->t->of[c].left)) /* a title as a whole, or not */
            continue;
        f->width[c] += give;
        left -= give;
    }
}

/* ---- printing ---- */

/* The next line of *s, of at most `most` columns: its bytes; *s is then what is left. Blanks before the first word stay. */
static size_t next_line(const char **s, int most)
{
    const char *line = *s, *at = *s;
    size_t n = 0;
    for (size_t k; (k = word(&at)) > 0 && (n == 0 || text_columns(line, (size_t)(at - line) + k) <= most); at += k)
        n = (size_t)(at - line) + k;
    *s = line + n;
    *s += strspn(*s, " ");
    return n;
}

static int lines_of(const char *s, int most)
{
    int lines = 0;
    for (; *s; lines++)
        (void)next_line(&s, most);
    return lines;
}

/* Texts in columns, each broken to the width of its own; they end on the same line, or begin there. */
static void print_texts(const fit *f, const char *const *texts, const int *widths, int end, FILE *to,
                        const char *indent)
{
    const char *rest[COLUMNS_MAX];
    int lines = 0, has[COLUMNS_MAX] = {0};
    for (int c = 0; c < f->t->columns; c++) {
        rest[c] = texts[c] ? texts[c] : "";
        has[c] = widths[c] > 0 ? lines_of(rest[c], widths[c]) : 0;
        lines = larger(lines, has[c]);
    }
    for (int i = 0; i < lines; i++) {
        int blanks = (int)strlen(indent);
        for (int c = 0; c < f->t->columns; c++) {
            if (widths[c] == 0)
                continue;
            const char *s = rest[c];
            const size_t n = end && i < lines - has[c] ? 0 : next_line(&rest[c], widths[c]);
            const int w = text_columns(s, n), before = f->t->of[c].left ? 0 : larger(widths[c] - w, 0);
            if (w > 0) {
                fprintf(to, "%*s%.*s", blanks + before, "", (int)n, s);
                blanks = 0;
            }
            blanks += (w > 0 ? larger(widths[c] - w - before, 0) : widths[c]) + GAP;
        }
        fputc('\n', to);
    }
}

/* The lines above the titles: each over its columns, up to those of the next one. */
static void print_above(const fit *f, FILE *to, const char *indent)
{
    const char *texts[COLUMNS_MAX] = {NULL}, *above = NULL;
    int widths[COLUMNS_MAX] = {0}, group = -1, any = 0;
    for (int c = 0; c < f->t->columns; c++) {
        const int begins = f->t->of[c].above != NULL;
        above = begins ? f->t->of[c].above : above;
        group = begins ? -1 : group;
        if (f->width[c] == 0)
            continue;
        if (group < 0) {
            group = c;
            texts[c] = above;
            widths[c] = f->width[c];
            any |= above && *above;
        } else {
            widths[group] += GAP + f->width[c];
        }
    }
    fit left = *f; /* begins where its columns do */
    table as = *f->t;
    left.t = &as;
    for (int c = 0; c < as.columns; c++)
        as.of[c].left = 1;
    if (any)
        print_texts(&left, texts, widths, 1, to, indent);
}

static void print_titles(const fit *f, FILE *to, const char *indent)
{
    const char *texts[COLUMNS_MAX];
    for (int c = 0; c < f->t->columns; c++)
        texts[c] = f->t->of[c].title;
    print_above(f, to, indent);
    print_texts(f, texts, f->width, 1, to, indent);
}

/* Whether a part has nothing of a row but its names. */
static int is_empty(const fit *f, size_t row)
{
    for (int c = keys(f); c < f->t->columns; c++)
        if (f->shown[c] && *cell(f->t, row, c))
            return 0;
    return 1;
}

static void print_cells(const fit *f, size_t row, FILE *to, const char *indent)
{
    const char *texts[COLUMNS_MAX];
    const int name = first_shown(f);
    for (int c = 0; c < f->t->columns; c++)
        texts[c] = cell(f->t, row, c);
    if (width(texts[name]) > f->width[name] && longest_word(texts[name]) > f->width[name]) {
        fprintf(to, "%s%s\n", indent, texts[name]);
        texts[name] = "";
    }
    print_texts(f, texts, f->width, 0, to, indent);
}

void table_narrow(const table *t, FILE *to, const char *indent, int room)
{
    fit f = {.t = t, .room = room};
    for (int c = 0; c < t->columns; c++)
        measure_column(&f, c);
    choose(&f);
    for (int from = keys(&f), last = from; last < t->columns || from == last; from = last) {
        last = next_part(&f, from);
        widen(&f);
        if (from > keys(&f))
            fputc('\n', to);
        print_titles(&f, to, indent);
        for (size_t row = 0; row < rows(t); row++)
            if (from == keys(&f) || !is_empty(&f, row))
                print_cells(&f, row, to, indent);
        if (last >= t->columns)
            break;
    }
}
