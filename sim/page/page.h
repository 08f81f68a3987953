/* page.h -- what the files of this folder share: what was measured of a trace, and the page that tells it.
 *
 * measure.c runs `stat` and `advise`, history.c `scaler`, figures.c `plot`; the others write what these found, each a section
 * of the page.
 *
 * Nothing is measured here: stat's walk and tally, `advise`, `scaler` and `plot` run in this process, and the page
 * names the commands that give each number again (tests/cli/report.sh compares). Every table and figure has a limit
 * of its own; the tensors get what is left of 4.9 MB. All rows are in the file once; rows after the 200th are in a
 * second table body, which the style hides where scripts run. The script sorts rows away from the page, because
 * moving a row inside it costs a pass over all. */
#pragma once

#include "../advise/advise.h"
#include "../cli/reportoptions.h"
#include "../plot/report.h"
#include "../scaler/report.h"
#include "../stat/tally.h"
#include "html.h"

/* A cast of which the page has columns: to a format at a scale, or under a block recipe. */
typedef struct page_column {
    char label[96]; /* "fp16", "fp16 at 2^17", "mxfp8" */
    size_t cast;    /* of the targets; SIZE_MAX: none  */
    size_t block;   /* of the recipes; SIZE_MAX: none  */
    int overflows;  /* it does, of some tensor         */
    uint64_t within;
} page_column;

enum { PAGE_COLUMNS_MOST = 12 };

/* What a cast does to a tensor, in its worst steps. */
typedef struct page_loss {
    advise_worst underflow, overflow, sqnr; /* shares of its elements, decibels */
    int within;                             /* the bounds, in every step        */
} page_loss;

typedef struct page_tensor {
    char *name; /* first: nameindex_item */
    const char *kind;
    uint64_t count, steps;
    uint64_t nan, inf;       /* of all steps         */
    int64_t first_bad;       /* step; -1             */
    double zero, amin, amax; /* zero: the most, a share */
    page_loss *losses;       /* one for each column  */
} page_tensor;

/* A file that was read. */
typedef struct page_file {
    uint64_t bytes;
    char digest[65]; /* SHA-256; "" where none was taken */
} page_file;

enum { PAGE_FIGURES = 5 };

typedef struct page_figure {
    const char *name;                    /* of `plot` */
    const char *by;                      /* what a row is of; NULL: the usual */
    const char *title, *shows, *caption; /* `shows`: for those who do not see it; the table that has its numbers */
} page_figure;

typedef struct page_options {
    advise_words words;
    stat_settings settings;
    report_options form;
    const char *title;
    int no_figures, no_digests;
    int unnamed; /* no name of the page was given */
} page_options;

typedef struct page {
    const page_options *options;
    char **operands;
    int n_operands;
    input in;
    stat_settings settings; /* the user's, completed */
    char scales[32];
    char *rules; /* for names, as text */
    target_list targets;
    tally sums;
    advise advice;
    page_column *columns;
    size_t n_columns;
    page_tensor *tensors;
    size_t n_tensors;
    nameindex names;
    page_file *files;
    int cut_columns; /* casts that only the report of stat has */
    /* history.c */
    int has_history;
    scalerrun scaler;
    scaler_report scaler_report;
    input scaler_in;
    input_options scaler_from;
    /* figures.c */
    const char *folder;      /* of what gnuplot reads and draws; removed at the end */
    record_keep stat;        /* what figures show of the statistics */
    char *svg[PAGE_FIGURES]; /* as they stand in the page; NULL: not drawn */
    const char *no_figures;  /* why there are none; or NULL */
} page;

/* All that return an int: 0, or an exit code after a message. */

/* measure.c */
int page_measure(page *p); /* the report of stat goes to p->stat, too, where there will be figures */
void page_clear_measured(page *p);
/* page_shows -- whether target i is one that a reader wants to see. page_has_steps -- whether the files say of which steps they
 * are, and there are several. */
int page_shows(const page *p, size_t i);
int page_has_steps(const page *p);
/* history.c -- the loss scaler over the recorded gradients, where there are several steps with gradients. */
int page_find_history(page *p);
void page_clear_history(page *p);
/* inputs.c -- sizes and digests of the files. */
int page_digest(page *p);
/* figures.c -- page_begin_figures: whether there will be some (p->no_figures), and where. */
int page_begin_figures(page *p);
int page_draw(page *p);
void page_clear_figures(page *p);
/* page_draw_one -- a figure of a report, as the page's number i. page_put_one -- where it stands in the page; `file`: of what a reader draws
 * it again. page_put_why_none -- a sentence, where no figures were drawn. */
int page_draw_one(page *p, int i, const page_figure *what, const plot_report *report);
void page_put_one(const page *p, int i, const page_figure *what, const char *file, FILE *to);
void page_put_why_none(const page *p, FILE *to);
/* saved.c -- page_is_saved: whether the operand is a folder that `report.save` of mpsim.emulate has written. page_saved: its page. */
int page_is_saved(const page *p);
int page_saved(page *p);

/* page.c: all of it; the sections, in their order. page_begin, page_end: what is around them, from the head to the title. */
void page_write(const page *p, FILE *to);
void page_begin(const page *p, FILE *to);
void page_end(FILE *to);
void page_summary(const page *p, FILE *to);
void page_kinds(const page *p, FILE *to);
void page_steps(const page *p, FILE *to);
void page_put_tensors(const page *p, FILE *to, size_t room); /* bytes */
void page_advice(const page *p, FILE *to);
void page_history(const page *p, FILE *to);
void page_figures(const page *p, FILE *to);
void page_provenance(const page *p, FILE *to);
