/* explain.h -- what becomes of numbers of the command line in a cast, and why (explain.c); of one number in a
 * format (number.c), and of a block under a recipe (blocks.c). */
#pragma once

#include "../operand/element.h"
#include "../cli/reportoptions.h"
#include "../operand/target.h"
#include "../record/record.h"
#include "recipe.h"

typedef struct explain_options {
    const char *numbers;     /* "0.1,0x3f800000"                                          */
    const char *from;        /* their format; NULL: as they are typed, of recipes binary32 */
    const char *tensor_amax; /* of NVFP4: of the tensor that the block is of; NULL: its own */
    target_options to;       /* formats may be names of block recipes                    */
    const char *path;
    report_options form; /* JSON, NDJSON */
} explain_options;

/* cast_explain_run -- 0, or an exit code after a message. */
int cast_explain_run(const explain_options *o);

/* One number in a format: the candidates around x * scale, and the choice between them. */
typedef struct explain_number {
    const target *to;
    const element *x;
    const mpsim_format *from;  /* which numbers are rounded to first, or NULL */
    const mpsim_format *codes; /* of codes; NULL: there are none */
    uint64_t index, seed;
} explain_number;

void cast_explain_number_text(const explain_number *n, FILE *to);
void cast_explain_number_row(const explain_number *n, record_writer *to);
extern const record_kind cast_explain_number_record;

/* Numbers as a row of a matrix under a recipe. amax: see mpsim_block_quantize. */
typedef struct explain_blocks {
    const cast_recipe *recipe;
    const element *x;
    const mpsim_format *from; /* which numbers are rounded to first */
    size_t n;
    float amax;
    uint64_t seed;
} explain_blocks;

void cast_explain_blocks_text(const explain_blocks *b, FILE *to);
void cast_explain_blocks_row(const explain_blocks *b, record_writer *to);
extern const record_kind cast_explain_blocks_record;

extern const report_kind cast_explain_kind; /* rows of both */
