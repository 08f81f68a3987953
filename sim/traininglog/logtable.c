/* logtable.c -- see logtable.h.
 *
 * Rows of CSV and of notebooks, and files with a series for each name (logseries.c), become lines of names with
 * values, which every reader of lines knows. */
#include "impl.h"

#include "../text/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One cell without what surrounds it. */
typedef struct cell {
    const char *p;
    size_t n;
} cell;

static cell trimmed(const char *p, size_t n)
{
    while (n > 0 && strchr(" \t\"'", *p))
        p++, n--;
    while (n > 0 && strchr(" \t\"'\r", p[n - 1]))
        n--;
    return (cell){p, n};
}

/* The next cell; *text is moved behind it, to NULL after the last. */
static cell next_cell(const char **text, char between)
{
    const char *p = *text;
    if (between == ' ')
        p += strspn(p, " \t");
    const size_t n = between == ' ' ? strcspn(p, " \t") : strcspn(p, (const char[]){between, 0});
    const char *rest = p + n;
    rest += between == ' ' ? strspn(rest, " \t") : *rest != 0;
    *text = p[n] && (between != ' ' || *rest) ? rest : NULL;
    return trimmed(p, n);
}

/* A name of a column: a few words, no number. */
static int is_name(cell c)
{
    enum { WORDS = 4 };
    int blanks = 0;
    if (c.n == 0 || c.n >= LOG_COLUMN || !(isalpha((unsigned char)*c.p) || *c.p == '_'))
        return 0;
    for (size_t i = 0; i < c.n; i++) {
        blanks += c.p[i] == ' ';
        if (!isalnum((unsigned char)c.p[i]) && !strchr("_-/. ()%@", c.p[i]))
            return 0;
    }
    return blanks < WORDS;
}

/* A value: a number of any kind, yes or no. Other words are no values of a row. */
static int is_value(cell c)
{
    return c.n && (isdigit((unsigned char)*c.p) || (c.n > 1 && strchr("+-.", *c.p)) ||
                   (c.n >= 3 && (strncasecmp(c.p, "nan", 3) == 0 || strncasecmp(c.p, "inf", 3) == 0)) ||
                   (c.n == 4 && strncasecmp(c.p, "true", 4) == 0) || (c.n == 5 && strncasecmp(c.p, "false", 5) == 0));
}

/* TensorBoard's CSV has the name of its number in the name of the file: run-NAME-tag-train_loss.csv. */
static void name_value(log_table *t, const char *text)
{
    static const char header[] = "Wall time,Step,Value";
    if (strncmp(text, header, sizeof header - 1) == 0 && t->columns == 3)
        traininglog_series_name(t->names[2], LOG_COLUMN, t->tag);
}

/* Whether the names are those of a training: a loss, a norm, a loss scale beside another column. */
static int is_of_training(const char *text)
{
    static const char *const words[] = {"loss", "grad_norm", "grad norm", "scale", "Loss", "Value", "gpu_mem", NULL};
    for (size_t i = 0; words[i]; i++)
        if (strstr(text, words[i]))
            return 1;
    return 0;
}

/* YOLOv5's columns of losses: box, obj, cls beside gpu_mem. */
static void name_losses(log_table *t, const char *text)
{
    static const char *const words[] = {"box", "obj", "cls", NULL};
    for (size_t k = 0; strstr(text, "gpu_mem") && k < t->columns; k++)
        for (size_t i = 0; words[i]; i++)
            if (strcmp(t->names[k], words[i]) == 0)
                snprintf(t->names[k], LOG_COLUMN, "%s_loss", words[i]);
}

/* A header, with this between its columns. Names between blanks are a header only where they begin as Ultralytics'
 * and fastai's do. */
static int take_header(log_table *t, const char *text, char between)
{
    log_table new = {.between = between, .tag = t->tag};
    const char *const line = text;
    text += between == '|' ? strspn(text, " |") : strspn(text, " ");
    if (between == ' ' && strncasecmp(text, "epoch ", 6) != 0)
        return 0;
    for (const char *p = text; p;) {
        const cell c = next_cell(&p, between);
        if (!p && c.n == 0 && between == '|')
            break; /* "a | b |" */
        if (!is_name(c) || new.columns == LOG_COLUMNS)
            return 0;
        snprintf(new.names[new.columns++], LOG_COLUMN, "%.*s", (int)c.n, c.p);
    }
    if (new.columns < 2)
        return 0;
    name_value(&new, line);
    name_losses(&new, line);
    *t = new;
    return 1;
}

static int is_header(log_table *t, const char *text)
{
    static const char marks[] = ",;\t| ";
    if (!is_of_training(text))
        return 0;
    for (const char *mark = marks; *mark; mark++)
        if ((*mark == ' ' || strchr(text, *mark)) && take_header(t, text, *mark))
            return 1;
    return 0;
}

const char *traininglog_table_line(log_table *t, const char *text, char out[LOG_WIDTH + 1])
{
    size_t k = 0;
    if (is_header(t, text))
        return NULL;
    out[0] = '\0';
    const char *p = text + (t->between == '|' ? strspn(text, " |") : 0);
    for (; p && k < t->columns; k++) {
        const cell c = next_cell(&p, t->between);
        if (strlen(out) + c.n + LOG_COLUMN + 4 > LOG_WIDTH || (k == 0 && t->between == ' ' && !is_value(c)))
            return NULL;
        if (is_value(c))
            text_add(out, LOG_WIDTH, "%s%s: %.*s", *out ? "  " : "", t->names[k], (int)c.n, c.p);
    }
    const int rest = p && t->between != ' ' && p[strspn(p, " ")]; /* more cells than names */
    return t->columns && k == t->columns && *out && !rest ? out : NULL;
}
