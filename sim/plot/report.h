/* report.h -- reports that figures read: of a file, its schema checked, or of records in memory. Both are read by record_read. */
#pragma once

#include "../cli/options.h"
#include "../record/record.h"
#include "skim.h"

typedef struct plot_report {
    const char *path;   /* "-": standard input       */
    char command[16];   /* that writes it: "stat"    */
    record_source root; /* but for its lists: plot_each */
    skim *text;
    const char *schema, *version; /* version: or NULL */
    struct plot_report *next;     /* of several that one figure shows */
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
/* plot_report_kept -- a report that is in memory: what `k` kept of one of mpsim VERB (plot_kept_of), which must outlive r. `path` is what
 * messages call it. 0, or an exit code after a message; to be cleared in both cases. */
int plot_report_kept(plot_report *r, const record_keep *k, const char *path, const char *verb, const char *schema);
void plot_report_clear(plot_report *r);

/* plot_report_join -- `other` is the last of several that begin with r, and is cleared with it. */
void plot_report_join(plot_report *r, plot_report *other);

/* plot_each -- call visit, which returns 0 or an exit code, for each item of the list `key` of an object of r; an item lives as long as
 * the call. 0, or an exit code after a message. */
typedef int plot_visit(void *context, record_source item);
int plot_each(const plot_report *r, record_source of, const char *key, plot_visit *visit, void *context);

/* plot_read -- record_read, with what messages say of r. 0, or an exit code after a message. */
int plot_read(const plot_report *r, const record_kind *kind, record_source from, void *at, const char *needs);

/* A report is untrusted: each function returns 0, or an exit code after a message. */
int plot_malformed(const plot_report *r, const char *what);
int plot_wrong_member(const plot_report *r, const char *key, const char *what);
