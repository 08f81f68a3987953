/* record.h -- a training as a trace (mpsim-trace/1). */
#pragma once

#include "../trace/temporary.h"
#include "store.h"

/* Which steps, counted from 1. */
typedef struct step_range {
    uint64_t first, last;
} step_range;

typedef struct step_selection {
    uint64_t every; /* the first step and every step that is a multiple; 0: none */
    step_range *ranges;
    size_t n_ranges;
} step_selection;

/* train_step_selection_parse -- "1,2,10-20". 0, or -1 if it is not such a list (or memory ran out). */
int train_step_selection_parse(step_selection *c, const char *text);
void train_step_selection_clear(step_selection *c);
int train_step_selected(const step_selection *c, uint64_t step);

typedef struct train_recorder {
    const char *folder; /* NULL: nothing is recorded                                     */
    const char *policy; /* its name, for the metadata                                    */
    const train_run *run;
    step_selection steps;
    uint64_t taken;   /* optimizer steps before the current one                        */
    temporary made;   /* the folder, until something is in it                          */
    int due;          /* the current step is recorded                                  */
    uint64_t last;    /* step that was recorded last, from 1; 0: none                  */
    uint64_t written; /* files                                                         */
    stored_list before, after;
} train_recorder;

/* train_record_begin -- make the folder: 0, or an exit code after a message. One that holds steps
 * already is refused unless the run is resumed.
 * train_record_before, train_record_after -- call around train_next: weights, masters and optimizer
 * state are those before the step's update. 0, or an exit code after a message.
 * train_record_end -- after the last step: if it was recorded, the weights that it left, as a
 * further step without gradients. */
int train_record_begin(train_recorder *r, int resumed);
int train_record_before(train_recorder *r, train *t);
int train_record_after(train_recorder *r, train *t, const train_step *s);
int train_record_end(train_recorder *r, train *t, const train_step *last);
void train_record_clear(train_recorder *r);
