/* source.h -- the elements of a tensor by rows, read from anywhere: of files that are read in order only, and of
 * tensors stored by columns, too. */
#ifndef MPSIM_SIM_DIFF_SOURCE_H
#define MPSIM_SIM_DIFF_SOURCE_H

#include "side.h"

typedef struct source {
    trace *t;
    const side_tensor *tensor;
    uint64_t at;           /* in order: the next element; UINT64_MAX: none was read */
    unsigned char *memory; /* all elements, or NULL                                 */
    unsigned char *tile;   /* by columns: some rows, from `row` on, or NULL         */
    uint64_t row, rows;
    size_t width;
} source;

/* source_open -- 0, or -1 with *error. source_free forgets what the others keep. */
int source_open(source *s, side *of, const side_tensor *t, trace_error *error);
void source_free(source *s);

/* source_is_flat -- whether threads may read at once. */
int source_is_flat(const source *s);

/* source_read -- the codes of n elements from `first` on, which are to be there. 0, or -1 with *error. */
int source_read(source *s, uint64_t first, void *codes, size_t n, trace_error *error);

/* source_load -- keep all elements in memory if they are small enough: then single ones are cheap. 0, or -1 with
 * *error. */
int source_load(source *s, trace_error *error);

/* source_can_jump -- whether reading single elements anywhere costs no more than a call each. */
int source_can_jump(const source *s);

#endif
