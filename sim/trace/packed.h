/* packed.h -- weights that are packed integers, with scales, zero points or tables beside them: GPTQ, AWQ, bitsandbytes,
 * compressed-tensors.
 * packedfit.c finds them among the tensors of a file (for quantised.c), packedread.c reads them (for quantisedread.c).
 *
 * These layouts are found beside the rows of sim/quant and read by rows; blocks of GGUF are in sim/quant/ggml.c. */
#pragma once

#include "quantisedfit.h"

/* The parts of one, places in quantised.parts. Of GPTQ and AWQ the second are the zero points, the fourth the groups of
 * inputs, if there are any; of bitsandbytes tables, then what the first scales are scales of, and what describes all. */
enum { PACKED_CODES, PACKED_ZEROS, PACKED_SCALES, PACKED_GROUPS };
enum { PACKED_ABSMAX = 1, PACKED_TABLE, PACKED_NESTED, PACKED_NESTED_TABLE, PACKED_STATE };
enum { PACKED_SCB = 1, PACKED_FORMAT };
enum { PACKED_ROW_SCALES = 1, PACKED_ROW_ZEROS, PACKED_ROW_GROUPS, PACKED_ROW_SHAPE };

typedef enum packed_kind {
    PACKED_GPTQ,
    PACKED_GPTQ_V2,
    PACKED_AWQ,
    PACKED_ROWS,
    PACKED_INT8,
    PACKED_FOUR,
    PACKED_EIGHT
} packed_kind;

struct packed {
    packed_kind kind;
    unsigned bits;
    uint64_t outs, ins, groups, group; /* but of bitsandbytes: rows and columns, scales of a row, columns of one */
    uint64_t block, nested_block;      /* bitsandbytes: elements of a scale, scales of a scale; 0: there are none    */
    float offset;                      /* added to scales that have one themselves                                  */
};

/* trace_packed_word -- whether a word is one of the layouts, for --stored; trace_packed_words lists them, with a space before each. */
int trace_packed_word(const char *word);
const char *trace_packed_words(void);

/* trace_packed_find -- whether entry `codes` is one: then *q has its parts, what is said of it and its shape, of the trace's
 * memory, and f->name its name. 0: it is not packed; -1: failed. f->misfit and f->missing as trace_quantised_try. */
int trace_packed_find(quantised_finder *f, uint32_t codes, quantised *q);

/* trace_packed_read -- n elements from `first` on. 0, or -1 with *error filled. */
int trace_packed_read(const trace *t, const trace_entry *e, uint64_t first, float *to, size_t n, trace_error *error);
