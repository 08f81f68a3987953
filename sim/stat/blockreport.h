/* blockreport.h -- what block recipes do to a group, in every form of the report. */
#pragma once

#include "../report/jsonout.h"
#include "../report/report.h"
#include "group.h"

/* block_sqnr_db, block_mse, block_max_rel_err -- of a recipe in a group; NaN where nothing was compared. */
double block_sqnr_db(const block_sums *b, const group *g);
double block_mse(const block_sums *b);
double block_max_rel_err(const block_sums *b);

/* block_shows -- whether a group has elements for recipe i: tensors of one dimension alone have no columns. */
int block_shows(const block_list *l, const group *g, size_t i);

/* block_left_out -- whether SQNR leaves out finite elements, which NaN or infinities in their block made such. */
int block_left_out(const block_sums *b, const group *g);

/* JSON: members "first" and "counts" of n bins, the first of which is `least`, without those that are empty at either end. */
void bins_put(jsonout *o, const uint64_t *bins, int n, int least);

/* JSON: the list "blocks" of a group. `counts`: without what needs sums. */
void block_group_put(jsonout *o, const block_list *l, const group *g, int counts);

/* CSV: titles and cells behind those of a cast, each with a comma before it; recipe i, or of a cast empty (i < 0). */
void block_csv_titles(FILE *to);
void block_csv_cells(FILE *to, const block_list *l, const group *g, int i);

/* Text: titles and cells behind those that say which group, recipe i. */
const char *block_text_titles(int counts);
void block_text_cells(table *t, const block_list *l, const group *g, size_t i, int counts);
