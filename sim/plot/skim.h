/* skim.h -- a JSON text of which only what is asked for becomes values, since those take ten times the
 * memory of the text: its lists are read item by item. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* The text of a list, and what stands for it in the values. */
typedef struct skim_list {
    json_t *mark;
    size_t at;
} skim_list;

typedef struct skim {
    char *text;
    size_t n;
    json_t *root; /* an object, long lists replaced by marks */
    skim_list *lists;
    size_t n_lists, taken; /* bytes of the text that became values */
    char error[320];       /* "line 3, column 7: ..." */
} skim;

/* plot_skim_open -- take over a text, whatever comes of it. `lists` are the names of members that are lists
 * when they are long arrays; ends with NULL. 0, or -1 with s->error; to be closed in both cases. */
int plot_skim_open(skim *s, char *text, size_t n, const char *const *lists);
void plot_skim_close(skim *s);

/* plot_skim_is_list -- whether v is an array, or stands for a list of this text. */
int plot_skim_is_list(const skim *s, const json_t *v);

/* plot_skim_each -- call visit for each item of an array or a list, which lives as long as the call. visit
 * returns 0 to go on. What it returned otherwise, 0, or -1 with s->error. */
int plot_skim_each(skim *s, const json_t *v, int (*visit)(void *context, const json_t *item), void *context);
