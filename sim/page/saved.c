/* saved.c -- the page of an emulation: of what `report.save(FOLDER)` of mpsim.emulate has written, which are statistics and no
 * tensors; see page.h. */
#include "page.h"

#include "../array/need.h"
#include "../process/output.h"
#include "../plot/figures.h"
#include "../plot/item.h"
#include "../text/words.h"
#include "../trace/textfile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEXT_MOST = 1 << 20 };

/* A tensor over all steps that have statistics: shares of its elements, and its worst cast. */
typedef struct saved_tensor {
    char *name; /* first: nameindex_item */
    char cast[64];
    uint64_t steps, nonfinite;
    double amax, zero, over, sqnr;
} saved_tensor;

typedef struct saved {
    page *page;
    plot_report stat, train;
    saved_tensor *tensors;
    size_t n;
    nameindex names;
    FILE *to;
    html_table table;
} saved;

static char *file_of(const page *p, const char *name)
{
    return need_format("%s/%s", p->operands[0], name);
}

int page_is_saved(const page *p)
{
    static const char *const names[] = {"stat.jsonl", "train.json"};
    int is = p->n_operands == 1;
    for (int i = 0; i < 2 && is; i++) {
        struct stat s;
        char *path = file_of(p, names[i]);
        is = stat(path, &s) == 0 && S_ISREG(s.st_mode);
        free(path);
    }
    return is;
}

/* ---- tensors ---- */

static double number_of(const json_t *o, const char *key)
{
    double x;
    return record_is_real(json_object_get(o, key), &x) ? x : (double)NAN;
}

/* A cast or a recipe, of so many elements that are neither zero nor not finite. */
static void take_cast(saved_tensor *t, const plot_cast *cast, double of)
{
    const char *name = cast->format ? cast->format : cast->recipe;
    if (of > 0) {
        t->zero = fmax(t->zero, (double)cast->underflow / of);
        t->over = fmax(t->over, (double)cast->overflow / of);
    }
    if (name && (cast->sqnr < t->sqnr || !*t->cast)) {
        snprintf(t->cast, sizeof t->cast, "%s", name);
        t->sqnr = isnan(cast->sqnr) ? HUGE_VAL : cast->sqnr;
    }
}

static void add_item(saved *s, const plot_item *item)
{
    const double of = (double)item->finite - (double)item->zero;
    saved_tensor *t = nameindex_item(&s->names, &s->tensors, &s->n, sizeof *t, item->name);
    if (t->steps++ == 0)
        t->sqnr = HUGE_VAL;
    t->amax = fmax(t->amax, item->amax);
    t->nonfinite += item->nan + item->inf;
    for (size_t i = 0; i < item->n_formats; i++)
        take_cast(t, &item->formats[i], of);
    for (size_t i = 0; i < item->n_blocks; i++)
        take_cast(t, &item->blocks[i], of);
}

static int take_tensor(void *context, const json_t *v)
{
    saved *s = context;
    plot_item item;
    const int code = plot_item_read(&item, &s->stat, v, "name count zero nan inf amax");
    if (!code)
        add_item(s, &item);
    plot_item_clear(&item);
    return code;
}

/* The worst first: not finite, then what becomes zero, then the noise. */
static int worse(const void *a, const void *b)
{
    const saved_tensor *s = a, *t = b;
    const double keys[][2] = {
        {(double)(t->nonfinite > 0), (double)(s->nonfinite > 0)}, {t->zero, s->zero}, {s->sqnr, t->sqnr}};
    for (int i = 0; i < 3; i++)
        if (keys[i][0] < keys[i][1] || keys[i][0] > keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return strcmp(s->name, t->name);
}

static void put_tensors(saved *s)
{
    char percent[2][32], db[32];
    html_table t;
    qsort(s->tensors, s->n, sizeof *s->tensors, worse);
    fputs("<section aria-labelledby=\"each\">\n<h2 id=\"each\">Tensor by tensor</h2>\n", s->to);
    page_html_table_begin(
        &t, s->to, "tensors",
        "Each tensor over the steps with statistics: its worst cast, and the largest shares of its elements",
        "<tensor|<cast|>steps|>largest|>zero|>too large|>dB|>not finite");
    for (size_t i = 0; i < s->n; i++) {
        const saved_tensor *e = &s->tensors[i];
        page_html_cell(&t, "%s", e->name);
        page_html_cell(&t, "%s", e->cast);
        page_html_cell(&t, "%" PRIu64, e->steps);
        page_html_cell(&t, "%.3g", e->amax);
        page_html_cell(&t, "%s", page_percent(percent[0], e->zero));
        page_html_cell(&t, "%s", page_percent(percent[1], e->over));
        page_html_cell(&t, "%s", page_db(db, isinf(e->sqnr) ? (double)NAN : e->sqnr));
        page_html_cell(&t, "%" PRIu64, e->nonfinite);
    }
    page_html_table_end(&t);
    fputs("</section>\n", s->to);
}

/* ---- the training ---- */

static int put_run(saved *s, const json_t *item)
{
    static const char *const numbers[] = {"initial_loss", "final_loss", "final_scale"};
    const json_t *total = json_object_get(item, "total");
    const char *name;
    uint64_t steps, skipped, updates, lost;
    char percent[32];
    int code = plot_get_string(&s->train, json_object_get(item, "policy"), "name", &name);
    if (code || (code = plot_get_count(&s->train, total, "steps", &steps)) ||
        (code = plot_get_count(&s->train, total, "skipped", &skipped)) ||
        (code = plot_get_count(&s->train, total, "updates", &updates)) ||
        (code = plot_get_count(&s->train, total, "lost", &lost)))
        return code;
    page_html_cell(&s->table, "%s", name);
    page_html_cell(&s->table, "%" PRIu64, steps);
    for (int i = 0; i < 3; i++)
        page_html_cell(&s->table, "%.6g", number_of(total, numbers[i]));
    page_html_cell(&s->table, "%" PRIu64, skipped);
    page_html_cell(&s->table, "%s", page_percent(percent, updates ? (double)lost / (double)updates : (double)NAN));
    return 0;
}

static int put_training(saved *s)
{
    size_t i;
    json_t *item;
    const json_t *runs;
    int code = plot_get_array(&s->train, s->train.json, "runs", &runs);
    fputs("<section aria-labelledby=\"training\">\n<h2 id=\"training\">The training</h2>\n", s->to);
    page_html_table_begin(&s->table, s->to, "runs", "Each policy, and of several optimizers each",
                          "<policy|>steps|>first loss|>last loss|>last scale|>skipped|>updates lost");
    json_array_foreach(code ? NULL : runs, i, item) code = code ? code : put_run(s, item);
    page_html_table_end(&s->table);
    fputs("</section>\n", s->to);
    return code;
}

/* ---- text and figures ---- */

/* report.txt, if it is there. */
static void put_text(const saved *s)
{
    trace_error error;
    char *path = file_of(s->page, "report.txt"), *text = trace_text_file_whole(path, TEXT_MOST, NULL, &error),
         *rest = text;
    fputs("<section aria-labelledby=\"summary\">\n<h2 id=\"summary\">In short</h2>\n<pre tabindex=\"0\">", s->to);
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        page_html_text(s->to, line);
        fputs(rest ? "\n" : "", s->to);
    }
    fputs("</pre>\n</section>\n", s->to);
    free(text);
    free(path);
}

static int has_casts(const saved *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (*s->tensors[i].cast)
            return 1;
    return 0;
}

static int has_steps(const saved *s)
{
    int several = 0;
    for (size_t i = 0; i < s->n; i++)
        several |= s->tensors[i].steps > 1;
    return several && has_casts(s) && s->n <= PLOT_ROWS_MAX;
}

static int has_training(const saved *s)
{
    const json_t *const total = json_object_get(json_array_get(json_object_get(s->train.json, "runs"), 0), "total");
    return json_integer_value(json_object_get(total, "steps")) > 0;
}

static const struct saved_figure {
    page_figure what;
    int (*is)(const saved *s);
    int of_train;
} figures[] = {
    {{"training", NULL, "The training",
      "Curves over the steps: the loss, the loss scale, and what rounding loses; the numbers are in the table The training.",
      "Loss, loss scale and what rounding loses, over the steps. "},
     has_training,
     1},
    {{"sqnr", NULL, "Error of each cast, by kind of tensor",
      "A table of colours: signal to quantisation noise of each cast for each kind of tensor.",
      "Signal to quantisation noise in decibels, of the casts and recipes that products read: the stronger the shade, the lower. "},
     has_casts,
     0},
    {{"heatmap", "layer", "What becomes zero, layer by step",
      "A grid of layers and steps: the share of elements that the first format makes zero.",
      "The share of elements that become zero in the first format of the report, the worst tensor of each layer; a cross: some overflow, too. "},
     has_steps,
     0},
};

static int draw(saved *s)
{
    int code = 0;
    for (int i = 0; i < (int)(sizeof figures / sizeof *figures) && !code; i++)
        if (figures[i].is(s))
            code = page_draw_one(s->page, i, &figures[i].what, figures[i].of_train ? &s->train : &s->stat);
    return code;
}

static void put_figures(const saved *s)
{
    fputs("<section aria-labelledby=\"figures\">\n<h2 id=\"figures\">Figures</h2>\n", s->to);
    page_put_why_none(s->page, s->to);
    for (int i = 0; i < (int)(sizeof figures / sizeof *figures) && !s->page->no_figures; i++)
        if (figures[i].is(s))
            page_put_one(s->page, i, &figures[i].what, figures[i].of_train ? "train.json" : "stat.jsonl", s->to);
    fputs("</section>\n", s->to);
}

/* ---- all ---- */

static int put_all(saved *s)
{
    page_begin(s->page, s->to);
    fputs("</header>\n<main>\n", s->to);
    put_text(s);
    const int code = put_training(s);
    put_figures(s);
    put_tensors(s);
    page_end(s->to);
    return code;
}

/* In memory first, as a report may be malformed at its end. */
static int write_saved(saved *s)
{
    output out;
    char *text;
    size_t n;
    s->to = page_html_begin(&text, &n);
    int code = put_all(s);
    page_html_end(s->to, &text);
    if (!code)
        code = output_open(&out, s->page->options->form.path);
    if (!code) {
        fwrite(text, 1, n, out.file);
        code = output_close(&out);
    }
    free(text);
    return code;
}

static int load(saved *s)
{
    static const char *const names[] = {"stat.jsonl", "train.json"}, *const verbs[] = {"stat", "train"};
    plot_report *const reports[] = {&s->stat, &s->train};
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        char *path = file_of(s->page, names[i]); /* the report's from here on */
        code = plot_report_load(reports[i], path, verbs[i], "the page");
        if (!code && i == 0)
            code = plot_each(&s->stat, json_object_get(s->stat.json, "tensors"), "tensors", take_tensor, s);
    }
    return code;
}

static void clear(saved *s)
{
    char *paths[] = {(char *)(uintptr_t)s->stat.path, (char *)(uintptr_t)s->train.path};
    plot_report_clear(&s->stat);
    plot_report_clear(&s->train);
    for (int i = 0; i < 2; i++)
        free(paths[i]);
    nameindex_clear(&s->names);
    while (s->n)
        free(s->tensors[--s->n].name);
    free(s->tensors);
}

int page_saved(page *p)
{
    saved s = {.page = p};
    FILE *to;
    int code = output_check(p->options->form.path);
    if (!code && !(code = page_begin_files(p, &to)) && !(code = page_end_file(p, to)) && !(code = load(&s)) &&
        !(code = p->no_figures ? 0 : draw(&s)))
        code = write_saved(&s);
    clear(&s);
    return code;
}
