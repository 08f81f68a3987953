/* calc.h -- what an operation of mpsim calc is (calc.c), and its operands that are files (files.c). */
#pragma once

#include "../cli/target.h"

#include <mpsim/function.h>

/* What OP says: an operation of mpsim/arith.h or a function of mpsim/function.h. */
typedef struct calculation {
    const char *name;
    int operands, is_function;
    mpsim_op op; /* of a function: convert */
    mpsim_function function;
} calculation;

/* calculation_parse -- a word. 0, or -1. */
int calculation_parse(calculation *c, const char *word);

/* calculation_arith -- how its result is rounded: operands of a format (NULL: that of the target), which are rounded to
 * it by *nearest first. */
void calculation_arith(const calculation *c, const target *t, const mpsim_format *operands, mpsim_arith *o,
                       mpsim_rounding *nearest);

/* operand_number -- a number of binary64, inf or nan; a blank before it hides a negative one from the parser of options.
 * 0, or -1. */
int operand_number(double *x, const char *word);

/* operand_file -- the first of the operands that is no number, and so is a file; NULL: all are numbers. */
const char *operand_file(char *const *words, int n);

/* calculate_files -- the operation on each element of tensors: an operand is a file, or a number, which every element
 * meets. The tensors are those of the first file; a tensor of another file has the same name and shape, or is, as that
 * of the first, the only one. Written to `path`, safetensors or npy by its name, in the format of the target. 0, or an
 * exit code after a message. */
int calculate_files(const calculation *c, const target *t, const mpsim_format *operands, uint64_t seed,
                    char *const *words, const char *path);
