/* report.h -- reports that figures read: loaded, their schema checked, their members. */
#pragma once

#include "../cli/options.h"
#include "../record/record.h"
#include "skim.h"

typedef struct plot_report {
    const char *path; /* "-": standard input       */
    char command[16]; /* that writes it: "stat"    */
    json_t *json;     /* but for its lists: plot_each */
    skim **texts;     /* its own, and those of reports that joined it */
    size_t n_texts;
    const char *schema, *version; /* version: or NULL */
} plot_report;

/* What the user chose. NULL and empty lists: everything. */
typedef struct plot_selection {
    option_list kinds;           /* one is equal to the tensor's kind          */
    option_list match;           /* one is a glob for its name, or a model's   */
    const char *step;            /* a number                                   */
    option_list formats, scales; /* elements may be lists with commas          */
    const char *column;          /* which error, or loss; NULL: the usual      */
    const char *by;              /* what is a curve; NULL: the usual           */
    const char *underflow;       /* per cent that is safe; NULL: the usual     */
} plot_selection;

/* plot_listed -- whether one of the list, or anything if it is empty, is the text, or with
 * `glob` a pattern for it. */
int plot_listed(const option_list *l, const char *text, int glob);

/* plot_report_load -- read a report of schema mpsim.VERB/1 for `figure`, VERB being one of `verbs`, of at most 256 MiB.
 * 0, or an exit code after a message; to be cleared in both cases. */
int plot_report_load(plot_report *r, const char *path, const char *verbs, const char *figure);
void plot_report_clear(plot_report *r);

/* plot_report_join -- the lists of `other` belong to r from now on. */
void plot_report_join(plot_report *r, plot_report *other);

/* plot_each -- call visit, which returns 0 or an exit code, for each item of the list v, the member
 * `key`; an item lives as long as the call. 0, or an exit code after a message. */
int plot_each(const plot_report *r, const json_t *v, const char *key, int (*visit)(void *context, const json_t *item),
              void *context);

/* A report is untrusted: each function returns 0, or an exit code after a message. */
int plot_malformed(const plot_report *r, const char *what);
int plot_wrong_member(const plot_report *r, const char *key, const char *what);
int plot_get_count(const plot_report *r, const json_t *object, const char *key, uint64_t *n);
int plot_get_magnitude(const plot_report *r, const json_t *object, const char *key, double *x);
int plot_get_string(const plot_report *r, const json_t *object, const char *key, const char **s);
int plot_get_array(const plot_report *r, const json_t *object, const char *key, const json_t **list);
