/* side.h -- one of the two operands: its files by step, opened when they are needed, and the tensors of a
 * step. */
#pragma once

#include "../input/steps.h"

#include <mpsim/format.h>

typedef struct side_file {
    const char *path;
    const char *below; /* the path below the operand; "" if the file is the operand */
    char *series;      /* `below` without the number of the step                     */
    input_step said;
    trace *t;      /* NULL: not open                                            */
    uint64_t used; /* when it was used last                                */
    int once;      /* it can be read only once, and stays open                  */
} side_file;

/* Formats of tensors whose files may be closed. */
typedef struct side_format {
    mpsim_format format;
    struct side_format *next;
} side_format;

/* The files of one step. */
typedef struct side_step {
    int64_t step; /* -1: the files do not say */
    size_t first, n;
} side_step;

typedef struct side {
    input in;
    side_file *files;
    side_step *steps; /* growing */
    side_format *formats;
    size_t n_files, n_steps, n_open;
    uint64_t clock, pinned; /* what was used since `pinned` stays open */
    int single;             /* the operand is a file                   */
} side;

/* One tensor; the texts are its own. */
typedef struct side_tensor {
    side_file *file;
    size_t index;           /* in its file                                                  */
    size_t place;           /* among all of the step, in the order of files and in them     */
    const char *name;       /* of the file where the tensor has none; "" if that is the operand */
    const char *series;     /* the name in other steps, too: of a file without the number of its step */
    const char *kind, *fqn; /* kind: static, or NULL; fqn: the name without it              */
    const char *dtype;
    const mpsim_format *format; /* NULL: no floating-point numbers; lives as long as the side */
    int fortran, quantised;
    uint64_t *shape, count;
    size_t rank;
    size_t at[3]; /* what order.c sorts by: phase and places in it                */
    void *memory;
} side_tensor;

/* The tensors of a step. */
typedef struct side_group {
    side *of;
    int64_t step;
    side_tensor *tensors;
    size_t n;
    char *modules; /* metadata "mpsim.order", or NULL */
    int sorted;    /* the files have sorted names: the order of execution is a guess (order.c) */
    int several;   /* there are files of several ranks */
} side_group;

/* diff_side_open -- the files of an operand in the order of their steps. 0, or an exit code after a message. */
int diff_side_open(side *s, const char *verb, const input_options *o, char *operand);
void diff_side_close(side *s);

/* diff_side_load -- the tensors of step k that are selected. 0, or an exit code after a message; to be cleared
 * in both cases. */
int diff_side_load(side_group *g, side *s, size_t k);
void diff_side_clear(side_group *g);

/* diff_side_trace -- the file, open; NULL with *error filled. It stays open until diff_side_pin was called and other files
 * were asked for. */
trace *diff_side_trace(side *s, side_file *f, trace_error *error);
/* diff_side_pin -- from now on, what was asked for before may be closed. */
void diff_side_pin(side *s);
