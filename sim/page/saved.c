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

/* A training. */
typedef struct saved_run {
    const char *name;
    uint64_t steps, skipped, updates, lost;
    double numbers[3]; /* the first loss, the last one, the last loss scale; NaN: not told */
} saved_run;

typedef struct saved {
    page *page;
    plot_report stat, train;
    saved_tensor *tensors;
    size_t n;
    nameindex names;
    saved_run *runs;
    size_t n_runs;
    FILE *to;
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

static int take_tensor(void *context, record_source v)
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

#define AT(member) offsetof(saved_tensor, member)
static const record_field tensor_fields[] = {
    COLUMN(TEXT, "<tensor", 0, AT(name), NULL),
    COLUMN(CHARS, "<cast", 0, AT(cast), "The cast or recipe of the lowest SQNR."),
    COLUMN(COUNT, ">steps", FIELD_PLAIN, AT(steps), "Steps with statistics."),
    COLUMN(REAL, ">largest", 0, AT(amax), "The largest finite magnitude.", .format = "%.3g"),
    COLUMN(REAL, ">underflow", FIELD_PERCENT, AT(zero), "Elements other than 0 that become 0: the largest share."),
    COLUMN(REAL, ">overflow", FIELD_PERCENT, AT(over), "Finite elements beyond the largest number: the largest share."),
    COLUMN(REAL, ">SQNR dB", FIELD_DECIBEL, AT(sqnr), "Signal to quantisation noise: the lowest.", .lacking = "–"),
    COLUMN(COUNT, ">not finite", FIELD_PLAIN, AT(nonfinite), "Elements that are NaN or Inf, of all steps."),
    {0}};
#undef AT
static const record_kind tensor_record = {"tensor", NULL, sizeof(saved_tensor), tensor_fields};

static void put_tensors(saved *s)
{
    html_table t;
    qsort(s->tensors, s->n, sizeof *s->tensors, worse);
    fputs("<section aria-labelledby=\"each\">\n<h2 id=\"each\">Tensor by tensor</h2>\n", s->to);
    page_html_table_begin(
        &t, s->to, "tensors",
        "Each tensor over the steps with statistics: its worst cast, and the largest shares of its elements",
        &tensor_record, 0);
    for (size_t i = 0; i < s->n; i++) {
        saved_tensor row = s->tensors[i];
        row.sqnr = isinf(row.sqnr) ? (double)NAN : row.sqnr; /* HUGE_VAL: nothing was compared */
        page_html_row(&t, &row);
    }
    page_html_table_end(&t);
    fputs("</section>\n", s->to);
}

/* ---- the training ---- */

#define AT(member) offsetof(saved_run, member)
static const record_field policy_fields[] = {FIELD(TEXT, "name", IN_JSON, AT(name), NULL), {0}};
static const record_kind policy_record = {"policy", NULL, sizeof(saved_run), policy_fields};
static const record_field total_fields[] = {FIELD(COUNT, "steps", IN_JSON, AT(steps), NULL),
                                            FIELD(COUNT, "skipped", IN_JSON, AT(skipped), NULL),
                                            FIELD(COUNT, "updates", IN_JSON, AT(updates), NULL),
                                            FIELD(COUNT, "lost", IN_JSON, AT(lost), NULL),
                                            FIELD(REAL, "initial_loss", IN_JSON, AT(numbers[0]), NULL),
                                            FIELD(REAL, "final_loss", IN_JSON, AT(numbers[1]), NULL),
                                            FIELD(REAL, "final_scale", IN_JSON, AT(numbers[2]), NULL),
                                            {0}};
static const record_kind total_record = {"total", NULL, sizeof(saved_run), total_fields};
static const record_field run_fields[] = {FIELD(RECORD, "policy", IN_JSON, 0, NULL, .record = &policy_record),
                                          FIELD(RECORD, "total", IN_JSON, 0, NULL, .record = &total_record),
                                          {0}};
static const record_field row_fields[] = {
    COLUMN(TEXT, "<policy", 0, AT(name), NULL),
    COLUMN(COUNT, ">steps", FIELD_PLAIN, AT(steps), NULL),
    COLUMN(REAL, ">first loss", 0, AT(numbers[0]), NULL, .format = "%.6g"),
    COLUMN(REAL, ">last loss", 0, AT(numbers[1]), NULL, .format = "%.6g"),
    COLUMN(REAL, ">last scale", 0, AT(numbers[2]), NULL, .format = "%.6g"),
    COLUMN(COUNT, ">skipped", FIELD_PLAIN, AT(skipped), "Steps that the loss scaler skips."),
    COLUMN(SHARE, ">updates lost", 0, AT(lost), "Updates that change no weight.", .of = AT(updates), .lacking = "–"),
    {0}};
#undef AT
static const record_kind row_record = {"row", NULL, sizeof(saved_run), row_fields};
static const record_kind run_record = {"run", NULL, sizeof(saved_run), run_fields};

static int take_run(void *context, record_source item)
{
    saved *s = context;
    need_room(&s->runs, s->n_runs, sizeof *s->runs);
    return plot_read(&s->train, &run_record, item, &s->runs[s->n_runs++],
                     "policy.name total.steps total.skipped total.updates total.lost");
}

static void put_training(saved *s)
{
    html_table t;
    fputs("<section aria-labelledby=\"training\">\n<h2 id=\"training\">The training</h2>\n", s->to);
    page_html_table_begin(&t, s->to, "runs", "Each policy, and of several optimizers each", &row_record, 0);
    for (const saved_run *r = s->runs; r < s->runs + s->n_runs; r++)
        page_html_row(&t, r);
    page_html_table_end(&t);
    fputs("</section>\n", s->to);
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
    return s->n_runs && s->runs[0].steps > 0;
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

static void put_all(saved *s)
{
    page_begin(s->page, s->to);
    fputs("</header>\n<main>\n", s->to);
    put_text(s);
    put_training(s);
    put_figures(s);
    put_tensors(s);
    page_end(s->to);
}

static int write_saved(saved *s)
{
    output out;
    const int code = output_open(&out, s->page->options->form.path);
    if (code)
        return code;
    s->to = out.file;
    put_all(s);
    return output_close(&out);
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
            code = plot_each(&s->stat, s->stat.root, "tensors", take_tensor, s);
    }
    return code ? code : plot_each(&s->train, s->train.root, "runs", take_run, s);
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
    free(s->runs);
}

int page_saved(page *p)
{
    saved s = {.page = p};
    int code = output_check(p->options->form.path);
    if (!code && !(code = page_begin_figures(p)) && !(code = load(&s)) && !(code = p->no_figures ? 0 : draw(&s)))
        code = write_saved(&s);
    clear(&s);
    return code;
}
