/* replaykept.h -- a run of replay, kept for a test to look at. */
#pragma once

#include "sim/replay/replay.h"
#include "support.h"

#include <stddef.h>
#include <stdint.h>

/* A folder for the files of this program; replay_test_main makes it, runs the cases and removes
 * it. */
extern char replay_top[512];

int replay_test_main(const char *suite, TCase *const *cases);

typedef struct scrap scrap;

typedef struct run {
    int code;
    char error[2048]; /* what was written to stderr */
    size_t n;
    replay_step step[64];
    scrap *scraps; /* what the steps point to */
} run;

/* replay_files -- replay n files or folders under a policy: the path of a file below the top of the
 * source tree, or the text of one. replay_path: a folder, from its path below the top of the source
 * tree or from the root. replay_ok: the run must succeed and say nothing. */
void replay_files(run *r, const char *text, char **files, int n, const replay_options *o);
void replay_path(run *r, const char *text, const char *where, replay_weights w);
void replay_ok(run *r, const char *text, const char *where);
void forget(run *r);

/* The run must fail with exit code 3 and one error line that contains `what`. */
void refused(const char *text, const char *where, const char *what);

/* By name; NULL if there is none. */
const replay_cast *cast_of(const replay_step *s, const char *name);
const replay_weight *weight_of(const replay_step *s, const char *name);

/* Counts over all weights of a step, or of all steps. */
typedef struct sums {
    uint64_t updates, lost, lost_model, compared, differ;
} sums;

sums sum_step(const replay_step *s);
sums sum_run(const run *r);
