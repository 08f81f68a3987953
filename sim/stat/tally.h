/* tally.h -- tensors, one after the other, become a report: sums by kind and step, conditions on them, every
 * form, several at once where they are asked for. Who reads files (walk.h) and who reads parts of reports (../merge) tell it the same, in the same
 * order, and so get the same bytes. */
#pragma once

#include "conditions.h"
#include "report.h"

/* Groups by kind, in the order of the vocabulary, or by step, in their order. */
typedef struct keyed keyed;

typedef struct keyed_list {
    keyed *items;
    size_t count;
} keyed_list;

/* A form of the report, and where it is written. */
typedef struct tally_form {
    report_style style;
    FILE *to;
    const record_sink *sink; /* of JSON, instead of `to`; or NULL */
    int tensors;             /* text: list every tensor, too                                */
    const char *level;       /* CSV: the one level that is written; NULL: tensor            */
    statreport report;       /* the tally's                                                 */
} tally_form;

typedef struct tally {
    const stat_settings *settings;
    const target_list *targets;
    tally_form *forms;
    size_t n_forms;
    stat_config config;
    stat_rows rows;
    conditions conditions;
    group total;
    keyed_list kinds, steps;
    int show_file;
    int partial;              /* the exit code of a report that was interrupted; or 0 */
    uint64_t files, left_out; /* left_out: selected tensors that are not floating-point */
    unread_list unread;       /* those, and why                                         */
    uint64_t broken;          /* tensors with NaN or Inf                                */
    uint64_t rounded;         /* tensors of which elements are left out as round-off; the first of them */
    char first_rounded[256];
    uint64_t lines;  /* of one dimension, where recipes are along columns      */
    size_t all;      /* files that there are                                   */
    uint64_t cut;    /* tensors of which a part was read                       */
    int failed;      /* files                                                  */
    const input *in; /* what is selected; NULL: it is not known */
    uint64_t empty;  /* files of no tensors; the first of them                 */
    char first_empty[512];
} tally;

/* A tensor, and where it is. */
typedef struct stat_place {
    const char *path, *kind; /* kind: NULL without one */
    int64_t step;            /* -1: none */
    const trace_tensor *tensor;
} stat_place;

/* stat_tally_init -- everything is zero. fail_if: conditions; messages of them begin with `verb`. It, `settings` and
 * `targets` must outlive it. 0, or an exit code after a message; stat_tally_clear in any case. */
int stat_tally_init(tally *t, const char *verb, const stat_settings *settings, const option_list *fail_if,
                    const target_list *targets);
void stat_tally_clear(tally *t);

/* stat_tally_begin -- begin the report in n forms, which must outlive it, of `files` files in all (those that fail included)
 * and by the program's version `version`. 0, or EXIT_IO without memory (host.h). */
int stat_tally_begin(tally *t, tally_form *forms, size_t n, size_t files, const char *version);
/* In their order: a file is open, of which so many tensors are selected; a tensor, `of` NULL if it has no numbers; a file failed, which the caller
 * has said. 0, or an exit code after a message. */
void stat_tally_file(tally *t, const char *path, uint64_t tensors);
int stat_tally_tensor(tally *t, const stat_place *place, const group *of);
void stat_tally_failed(tally *t);
/* stat_tally_end -- the rest of the report. `code`: 0; why it ends early, so that there is none; or that of a signal (walk.h): the
 * report is marked partial. `names` are the files, for a message. 0, or an exit code: what was written is no report.
 * stat_tally_tell -- once it is delivered: notes, and what the conditions say. The exit code. */
int stat_tally_end(tally *t, int code, const char *names);
int stat_tally_tell(tally *t);

/* stat_tally_sums -- those of the kinds, of the steps and of all, in the order of the report; a row lives as long as the call. */
void stat_tally_sums(const tally *t, void (*visit)(void *context, const stat_row *row), void *context);
