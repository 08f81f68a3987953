/* record.h -- what a report of stat says of a group of elements, each statistic described once: a member of a struct, filled in
 * record.c, and beside it a row of a table. Text, JSON, lines, CSV, the schema and the names of conditions follow from the tables. */
#pragma once

#include "../input/unread.h"
#include "../trace/trace.h"
#include "group.h"

typedef enum stat_level { STAT_TENSOR, STAT_KIND, STAT_STEP, STAT_TOTAL, STAT_LEVELS } stat_level;
extern const char *const stat_levels[]; /* their words, up to NULL */

/* Bins of a factor of two, from the first that is not empty to the last. */
typedef struct stat_bins {
    const uint64_t *counts;
    size_t n;
    int first;           /* the power of two of the first bin; 0 without any */
    int lowest, highest; /* the powers of the first and the last; FIELD_NONE without any */
    uint64_t zero, inf, nan;
} stat_bins;

/* What a cast, or a block recipe, loses of a group. */
typedef struct stat_loss {
    const target *to; /* NULL: a recipe */
    const char *name; /* the label of the format, or of the recipe */
    double scale;
    size_t is_cast, is_recipe;
    uint64_t of; /* elements that shares are of */
    uint64_t underflow, subnormal, overflow, inexact, compared;
    size_t sums; /* whether the errors are known */
    double sqnr_db, mse, max_rel_err;
    int left_out;  /* SQNR leaves out finite elements */
    int all_lost;  /* there are finite elements, and none was compared */
    char sqnr[32]; /* for people */
    /* of a recipe */
    unsigned axis; /* block_axis, or none of them */
    const block_sums *blocks;
    stat_bins scales;
    char scales_text[40]; /* the smallest and the largest, for people */
} stat_loss;

/* A row: what a group is, and what is known of it. What does not apply is NULL, or step -1. */
typedef struct stat_row {
    stat_level level;
    const char *file, *name, *kind;
    int64_t step;
    const trace_tensor *tensor;
    uint64_t tensors; /* 0: it is one */
    /* filled by stat_row_fill */
    const char *word; /* of the level */
    const group *group;
    const mpsim_stats *stats;
    uint64_t roundoff;
    size_t tells_roundoff, sums, n_casts, n_recipes;
    double mean, l2;
    stat_loss *casts, *recipes; /* recipes: NULL where none was asked for */
    const stat_bins *histogram;
    /* of the total */
    int64_t failed;
    const unread_list *unread;
    int partial; /* 1; -1: it is whole */
} stat_row;

/* Memory of rows, and what they are made with. */
typedef struct stat_rows {
    const target_list *targets;
    int counts, roundoff;
    stat_loss *losses;
    stat_bins *histogram;
} stat_rows;

/* stat_rows_make -- `counts`: without what needs sums. 0, or EXIT_IO without memory; stat_rows_clear in any case. */
int stat_rows_make(stat_rows *m, const target_list *targets, int counts, int roundoff);
void stat_rows_clear(stat_rows *m);

/* stat_row_sums -- what needs sums, of row->stats. */
void stat_row_sums(stat_row *row);
/* stat_row_fill -- what is known of g, until another row is filled. */
void stat_row_fill(const stat_rows *m, stat_row *row, const group *g);

/* stat_loss_of_cast, stat_loss_of_blocks -- what is known of a cast, or a recipe, of the elements that s is of; name, scale and axis are
 * there already. `counts`: as of stat_rows_make. */
void stat_loss_of_cast(stat_loss *k, int counts, const mpsim_cast_stats *c, const mpsim_stats *s);
void stat_loss_of_blocks(stat_loss *k, int counts, const block_sums *b, const mpsim_stats *s);

/* What tables and CSV show. */
enum {
    SHOW_TENSORS = 1, /* titles of labels */
    SHOW_KINDS = 2,
    SHOW_STEPS = 4,
    SHOW_TOTAL = 8,
    SHOW_SUMS = 16, /* what needs sums */
    SHOW_CASTS = 32,
    SHOW_RECIPES = 64,
    SHOW_SCALES = 128,
    SHOW_AXES = 256
};

extern const record_kind stat_tensor_record, stat_kind_record, stat_step_record, stat_total_record; /* of a stat_row */
extern const record_kind stat_cast_record, stat_recipe_record;                                      /* of a stat_loss */
extern const record_kind stat_held_record; /* of a stat_row: what every level has, from `count` on */
extern const record_kind *const stat_level_records[STAT_LEVELS];

/* Rows of CSV and of tables for people: what stands in front of a line, if anything; a row; what is lost, for CSV and the tables of it. */
typedef struct stat_shown {
    char name[512], step[32]; /* step: of a tensor */
} stat_shown;

typedef struct stat_line {
    const stat_shown *label;
    const stat_row *row;
    const stat_loss *loss;
} stat_line;

extern const record_kind stat_csv_record, stat_holds_record, stat_loses_record, stat_blocks_record; /* of a stat_line */
