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

/* The columns that a title takes in two lines. */
static int title_width(const char *title)
{
    int most = longest_word(title);
    while (lines_of(title, most) > 2)
        most++;
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
    f->least[c] = larger(title_width(of->title), breaks ? larger(words, TEXT_LEAST) : most);
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
static const char *name_of(const fit *f, int c, char out[128])
{
    int above = c;
    while (above > 0 && !f->t->of[above].above)
        above--;
    snprintf(out, 128, "%s", f->t->of[c].title);
    if (f->t->of[above].above && *f->t->of[above].above)
        text_add(out, 128, " (%s)", f->t->of[above].above);
    return out;
}

/* A column, and those behind it that share its title, are left out. */
static void leave_out(fit *f, int c)
{
    char name[128];
    screen_leave_out(name_of(f, c, name));
    do
        f->least[c++] = 0;
    while (c < f->t->columns && !*f->t->of[c].title);
}

/* Columns that tables before this one left out. */
static void leave_out_again(fit *f, FILE *to)
{
    char name[128];
    for (int c = 0; c < f->t->columns; c++)
        if (f->least[c] > 0 && f->t->of[c].spare && screen_leaves_out(to, name_of(f, c, name)))
            leave_out(f, c);
}

/* Leaves out the column whose number is the largest, of those from `least` on. Whether there was one. */
static int drop(fit *f, int least)
{
    int found = -1;
    for (int c = 0; c < f->t->columns; c++)
        if (f->least[c] > 0 && f->t->of[c].spare >= least && (found < 0 || f->t->of[c].spare >= f->t->of[found].spare))
            found = c;
    if (found < 0)
        return 0;
    leave_out(f, found);
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
    const int least = larger(NAME_LEAST, title_width(f->t->of[c].title));
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

/* How many columns every part has: the first, and names behind it that leave half of the room. */
static int keys(const fit *f)
{
    int n = first_shown(f) + 1, all = f->least[n - 1];
    while (n < f->t->columns && f->t->of[n].left && f->least[n] <= TEXT_LEAST && all + f->least[n] + GAP <= f->room / 2)
        all += f->least[n++] + GAP;
    return n;
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

/* Gives a column what it lacks, of what is left: all, or a part where `some`. */
static void give(fit *f, int c, int *left, int some)
{
    const int more = f->shown[c] ? f->whole[c] - f->width[c] : 0;
    if (more > 0 && (more <= *left || some)) {
        const int part = more < *left ? more : *left;
        f->width[c] += part;
        *left -= part;
    }
}

/* What the part leaves of the room goes to texts, then to the names of rows, then to titles. */
static void widen(fit *f)
{
    int left = f->room + GAP;
    for (int c = 0; c < f->t->columns; c++) {
        f->width[c] = f->shown[c] ? f->least[c] : 0;
        left -= f->shown[c] ? f->least[c] + GAP : 0;
    }
    left = larger(left, 0);
    for (int c = f->t->columns - 1; c > first_shown(f); c--)
        give(f, c, &left, f->t->of[c].left && f->least[c] >= TEXT_LEAST);
    give(f, first_shown(f), &left, 1);
}

/* ---- printing ---- */

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

/* A row; `name`: that of its group, where the row itself has none and none of the group was printed before. */
static void print_cells(const fit *f, size_t row, const char *name, FILE *to, const char *indent)
{
    const char *texts[COLUMNS_MAX];
    const int first = first_shown(f);
    for (int c = 0; c < f->t->columns; c++)
        texts[c] = cell(f->t, row, c);
    texts[first] = *texts[first] ? texts[first] : name;
    if (width(texts[first]) > f->width[first] && longest_word(texts[first]) > f->width[first]) {
        fprintf(to, "%s%s\n", indent, texts[first]);
        texts[first] = "";
    }
    print_texts(f, texts, f->width, 0, to, indent);
}

/* The rows of a part; of those behind the first part only rows that have something in it. */
static void print_part(const fit *f, int is_first, FILE *to, const char *indent)
{
    const char *name = "";
    for (size_t row = 0; row < rows(f->t); row++) {
        const char *own = cell(f->t, row, first_shown(f));
        name = *own ? own : name;
        if (!is_first && is_empty(f, row))
            continue;
        print_cells(f, row, is_first ? "" : name, to, indent);
        name = "";
    }
}

void table_narrow(const table *t, FILE *to, const char *indent, int room)
{
    fit f = {.t = t, .room = room};
    for (int c = 0; c < t->columns; c++)
        measure_column(&f, c);
    leave_out_again(&f, to);
    choose(&f);
    for (int from = keys(&f), last = from; last < t->columns || from == last; from = last) {
        last = next_part(&f, from);
        widen(&f);
        if (from > keys(&f))
            fputc('\n', to);
        print_titles(&f, to, indent);
        print_part(&f, from == keys(&f), to, indent);
        if (last >= t->columns)
            break;
    }
}
