/* verify.h -- proofs that a user can run: each compares this build with something that shares
 * nothing with it, and says what was compared, how often, and what differed first.
 *
 * A group is a row of a table of functions (groups.h); what it finds are rows of a report. A group
 * whose judge is missing adds one row that says so: what did not run never looks like success. */
#pragma once

#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum verify_status {
    VERIFY_DONE,
    VERIFY_SKIPPED, /* `text` says why                             */
    VERIFY_FAILED   /* it could not be compared; `text` says why   */
} verify_status;

typedef struct verify_row {
    const char *group; /* its name */
    verify_status status;
    uint64_t compared, mismatches;
    unsigned fitting; /* vectors: rows of the table that give every bit                       */
    char what[128];   /* "binary32 to 46 formats, 9 modes"                                     */
    char with[192];   /* "MPFR 4.2.0", or the model that gives what was recorded               */
    char text[1024];  /* the first mismatch, in hex and %a; or why it was skipped; or ""       */
    char note[192];   /* what else there is to say of mismatches, or ""                        */
} verify_row;

/* A run: what is asked for, and the rows found. */
typedef struct verify {
    int thorough;              /* minutes instead of seconds                                   */
    uint64_t seed;             /* of random inputs                                             */
    const char *vectors;       /* folder or file of recorded vectors, or NULL                  */
    const char *architecture;  /* of all its files, or NULL: told by their names               */
    const mpsim_model *models; /* replay with these instead of the rows of an architecture    */
    size_t n_models;
    FILE *record; /* of what this CPU gives, or NULL                              */
    verify_row *rows;
    size_t count;
    int bad_file; /* 0, or the exit code of an input that could not be read       */
} verify;

typedef struct verify_group {
    const char *name, *proves, *needs;
    /* 1, and what it compares with in `text`; or 0, and why it cannot run here. */
    int (*here)(const verify *v, char *text, size_t size);
    /* Add rows. 0, or an exit code after a message. */
    int (*run)(verify *v);
} verify_group;

/* verify_add -- a new row, done, of nothing. Valid until the next one; never NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
verify_row *
verify_add(verify *v, const char *group, const char *what, ...);

/* verify_differs -- count a mismatch; the text of the first one is kept. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void verify_differs(verify_row *row, const char *text, ...);

void verify_clear(verify *v);

/* verify_run -- run a group, or add the row that says why not. 0, or an exit code after a
 * message. */
int verify_run(verify *v, const verify_group *group);

/* The groups, a file each (vectors: recorded.c). */
int verify_mpfr(verify *v);
int verify_mpfr_here(const verify *v, char *text, size_t size);
int verify_nvidia(verify *v);
int verify_nvidia_here(const verify *v, char *text, size_t size);
int verify_cpu(verify *v);
int verify_cpu_here(const verify *v, char *text, size_t size);
int verify_vectors(verify *v);
int verify_vectors_here(const verify *v, char *text, size_t size);
int verify_gpu(verify *v);
int verify_gpu_here(const verify *v, char *text, size_t size);
