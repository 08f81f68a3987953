/* models.h -- the accumulation models that a command line selects. */
#pragma once

#include <mpsim/dot.h>
#include <stdio.h>

#include "../record/record.h"

typedef struct model_list {
    mpsim_model *items;
    size_t count;
} model_list;

/* dot_model_list_make -- the models of a list of names separated by commas: names with changes
 * (mpsim_model_parse), "all", or patterns of row names as 'hopper-*'. What a pattern selects is
 * limited to rows that take fa and fb, unless those are NULL; naming a row that does not take them
 * is an error. 0, or an exit code after a message that begins with `verb`. */
int dot_model_list_make(model_list *l, const char *verb, const char *names, const mpsim_format *fa,
                        const mpsim_format *fb);
void dot_model_list_clear(model_list *l);
/* dot_model_one -- the only model of such a list; `need` is told where there are several: "a side is one". */
int dot_model_one(mpsim_model *m, const char *verb, const char *name, const mpsim_format *fa, const char *need);

extern const report_kind dot_models_kind;

/* dot_models_print -- the table of models. */
void dot_models_print(const model_list *l, report_style style, FILE *to);
