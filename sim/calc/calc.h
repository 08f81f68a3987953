/* calc.h -- what an operation of mpsim calc is (calc.c), and its operands that are files (files.c). */
#pragma once

#include "../operand/element.h"
#include "../operand/target.h"
#include "../record/record.h"

#include <mpsim/function.h>

/* What OP says: an operation of mpsim/arith.h or a function of mpsim/function.h. */
typedef struct calculation {
    const char *name;
    int operands, is_function;
    mpsim_op op; /* of a function: convert */
    mpsim_function function;
} calculation;

/* What the command line says of operands. */
typedef struct operand_formats {
    const mpsim_format *format; /* of --operands, which all are rounded to first; NULL: they stay as they are */
    const mpsim_format *codes;  /* of which 0x3c00 is a code; NULL: no format is known */
    int same;                   /* --operands same: the format of each result          */
} operand_formats;

/* calc_operand_format -- the format that operands of a result are rounded to, or NULL. */
const mpsim_format *calc_operand_format(const operand_formats *f, const target *result);

/* calc_parse -- a word. 0, or -1. */
int calc_parse(calculation *c, const char *word);

/* calc_nearest -- how operands are rounded to --operands: the choices of the target, to nearest even. */
mpsim_rounding calc_nearest(const target *t);

/* calc_operand_code -- x in the format of --operands: rounded so, but a NaN that was given as a code of it stays that code. */
uint64_t calc_operand_code(const mpsim_format *f, const mpsim_rounding *nearest, const exact_number *x,
                           unsigned *flags);

/* calc_flushes -- whether the target reads the number as zero: --flush-inputs, and it is subnormal in f. */
int calc_flushes(const target *t, const exact_number *x, const mpsim_format *f);

/* calc_operand_is_number -- whether a word is a number, or meant as one; a blank before it hides a negative one from the
 * parser of options. calc_operand_value -- that number, or the value of a code. 0, or an exit code after a message. */
int calc_operand_is_number(const char *word);
int calc_operand_value(exact_number *x, const operand_formats *f, const char *word);

/* calc_operand_file -- the first of the operands that is no number, and so is a file; NULL: all are numbers. */
const char *calc_operand_file(char *const *words, int n);

/* calc_files -- the operation on each element of tensors: an operand is a file, or a number, which every element
 * meets. The tensors are those of the first file; a tensor of another file has the same name and shape, or is, as that
 * of the first, the only one. Written to `path`, safetensors or npy by its name, in the format of the target. 0, or an
 * exit code after a message. */
int calc_files(const calculation *c, const target *t, const operand_formats *f, uint64_t seed, char *const *words,
               const char *path);

extern const report_kind calc_kind;
