/* provenance.c -- where the numbers of a page come from: files, version, commands that give them again; see page.h. */
#include "page.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILES_MOST = 1000 };

/* ---- commands ---- */

/* A word as a shell takes it. */
static void put_word(FILE *to, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,=+@%^-";
    fputc(' ', to);
    if (*word && word[strspn(word, plain)] == '\0') {
        page_html_text(to, word);
        return;
    }
    fputs("&#39;", to);
    for (const char *s = word; *s;) {
        const size_t n = strcspn(s, "'");
        page_html_print(to, "%.*s%s", (int)n, s, s[n] ? "'\\''" : "");
        s += n + (s[n] != '\0');
    }
    fputs("&#39;", to);
}

static void put_option(FILE *to, const char *name, const char *value)
{
    if (!value)
        return;
    fprintf(to, " --%s", name);
    put_word(to, value);
}

static void put_settings(FILE *to, const stat_settings *s)
{
    record_word w;
    for (size_t i = 0; record_word_at(&stat_settings_record, s, i, &w); i++)
        if (w.is_flag)
            fprintf(to, " --%s", w.key);
        else
            put_option(to, w.key, w.text);
}

static void put_operands(const page *p, FILE *to)
{
    for (int i = 0; i < p->n_operands; i++)
        put_word(to, p->operands[i]);
    fputs("</code></li>\n", to);
}

static void put_bounds(FILE *to, const advise_words *w)
{
    put_option(to, "compute", w->compute);
    put_option(to, "max-underflow", w->underflow);
    put_option(to, "max-overflow", w->overflow);
    put_option(to, "min-sqnr", w->sqnr);
    put_option(to, "max-lost", w->lost);
}

/* Without what decides no number, as --threads and where the page went. */
static void put_commands(const page *p, FILE *to)
{
    const page_options *o = p->options;
    const stat_settings files = {.from = o->settings.from};
    const char *scale = o->settings.from.wanted.loss_scale;
    fputs("<h3>Commands</h3>\n<ol class=\"commands\">\n<li>This page: <code>mpsim report -o report.html", to);
    put_option(to, "title", o->title);
    fputs(o->no_figures ? " --no-figures" : "", to);
    fputs(o->no_digests ? " --no-digests" : "", to);
    put_bounds(to, &o->words);
    put_settings(to, &o->settings);
    put_option(to, "loss-scale", scale);
    put_operands(p, to);
    fputs("<li>What tensors hold and casts lose: <code>mpsim stat --json -o stat.json", to);
    put_settings(to, &p->settings);
    put_operands(p, to);
    fputs("<li>Advice: <code>mpsim advise --json -o advise.json", to);
    put_bounds(to, &o->words);
    put_settings(to, &files);
    put_option(to, "loss-scale", scale);
    put_operands(p, to);
    if (p->has_history) {
        fputs("<li>Loss scaler: <code>mpsim scaler --json -o scaler.json", to);
        put_settings(to, &files);
        put_option(to, "loss-scale", scale);
        put_operands(p, to);
    }
    fputs("</ol>\n", to);
}

/* ---- which number is which ---- */

typedef struct source {
    const char *section, *report, *members;
} source;

#define AT(member) offsetof(source, member)
static const record_field source_fields[] = {COLUMN(TEXT, "<section", 0, AT(section), NULL),
                                             COLUMN(TEXT, "<report", 0, AT(report), NULL),
                                             COLUMN(TEXT, "<members", 0, AT(members), NULL),
                                             {0}};
#undef AT
static const record_kind source_record = {"source", NULL, sizeof(source), source_fields};

static void put_sources(FILE *to)
{
    static const source rows[] = {
        {"In short: sentences", "advise.json", "bf16_weights, compute, recipe, loss_scale, tensors"},
        {"In short: formats", "stat.json",
         "kinds, tensors: formats, blocks; the bounds are those of advise.json: config"},
        {"Advice", "advise.json", "tensors: formats, fits, why_not; layers"},
        {"By kind, By step", "stat.json", "kinds, steps, total"},
        {"Tensor by tensor", "stat.json", "tensors: of all steps of a name the worst: most zero, lowest SQNR"},
        {"Tensor by tensor: advice", "advise.json", "tensors: narrowest, formats: why_not, fp16_scales"},
        {"Loss scaler", "scaler.json", "scalers: trajectory, verdict, why"},
    };
    html_table t;
    page_html_table_begin(&t, to, "sources", "Which numbers come from where", &source_record, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        page_html_row(&t, &rows[i]);
    page_html_table_end(&t);
}

/* ---- files ---- */

typedef struct file_row {
    const char *path;
    uint64_t bytes;
    const char *digest; /* NULL: not taken */
} file_row;

static const record_field file_fields[] = {
    COLUMN(TEXT, "<file", 0, offsetof(file_row, path), NULL),
    COLUMN(COUNT, ">bytes", 0, offsetof(file_row, bytes), NULL),
    COLUMN(TEXT, "<SHA-256", 0, offsetof(file_row, digest), NULL, .lacking = "not taken"),
    {0}};
static const record_kind file_record = {"file", NULL, sizeof(file_row), file_fields};

static void put_files(const page *p, FILE *to)
{
    html_table t;
    char n[32];
    const size_t all = p->in.tree.count, rows = all < FILES_MOST ? all : FILES_MOST;
    page_html_table_begin(&t, to, "files", "Files", &file_record, 0);
    for (size_t i = 0; i < rows; i++) {
        const page_file *f = &p->files[i];
        page_html_row(&t, &(file_row){p->in.tree.paths[i], f->bytes, *f->digest ? f->digest : NULL});
    }
    page_html_table_end(&t);
    if (rows < all) {
        fputs("<p class=\"note\">", to);
        page_html_print(to, "and %s more: stat.json names them all.", text_count(n, all - rows));
        fputs("</p>\n", to);
    }
}

/* The date of a build that is to be the same again; else none, so that the same files give the same page. */
static void put_date(FILE *to)
{
    const char *text = getenv("SOURCE_DATE_EPOCH");
    char date[32];
    uint64_t seconds;
    struct tm tm;
    if (!text || parse_count(&seconds, text) || seconds > INT64_C(1) << 40)
        return;
    const time_t at = (time_t)seconds;
    if (gmtime_r(&at, &tm) && strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &tm))
        fprintf(to, "<dt>Date</dt><dd>%s</dd>\n", date);
}

void page_provenance(const page *p, FILE *to)
{
    uint64_t bytes = 0;
    char a[32], b[32];
    for (size_t i = 0; i < p->in.tree.count; i++)
        bytes += p->files[i].bytes;
    fputs(
        "<section aria-labelledby=\"provenance\">\n<h2 id=\"provenance\">Where the numbers come from</h2>\n<dl>\n<dt>Program</dt><dd>",
        to);
    page_html_print(to, "mpsim %s", mpsim_version());
    fputs("</dd>\n<dt>Read</dt><dd>", to);
    page_html_print(to, "%s file%s, %s", text_count(a, p->in.tree.count), text_plural(p->in.tree.count),
                    text_bytes(b, bytes));
    fputs("</dd>\n", to);
    put_date(to);
    fputs(
        "</dl>\n<p>The same files give the same page. Each number is in one of the reports that these commands write, with all its "
        "digits:</p>\n",
        to);
    put_commands(p, to);
    put_sources(to);
    put_files(p, to);
    fputs("</section>\n", to);
}
