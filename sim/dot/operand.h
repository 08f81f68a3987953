/* operand.h -- the operands of dot products: rows of numbers, generated or from a file. */
#pragma once

#include "../pass/chosen.h"

#include <mpsim/mpsim.h>

typedef struct operand {
    double *x; /* rows x depth, row-major                                   */
    size_t rows, depth;
    uint64_t all_rows;    /* of the tensor: only the first `rows` were read            */
    mpsim_format format;  /* and the values rounded to it:                             */
    double scale;         /* x * scale was rounded                                     */
    uint64_t nonzero;     /* elements that are not zero, before rounding               */
    unsigned char *codes; /* NULL before dot_operand_encode                                */
    mpsim_counts counts;
    int exact;       /* it has all the numbers as they were given */
    char label[256]; /* what it is, for people                                    */
    /* in blocks (blocks.h): elements of a block, 0: none; a scale code for each block of each row; the numbers, without
     * the tensor's scale, as bf16 */
    size_t block, scale_stride;
    mpsim_format scale_format;
    uint8_t *scales;
    uint16_t *numbers;
} operand;

/* Distributions of generated operands; element (row, k) is a function of seed, stream, row and k
 * alone, so that less products or rows are a part of more. All are integers times 2^-33:
 *   uniform    in (0, 1)
 *   symmetric  uniform in (-1, 1)
 *   normal     sum of 12 uniform numbers minus 6: variance 1
 *   relu       normal, and zero where that is negative */
int dot_distribution_find(int *distribution, const char *name); /* 0, or -1 */
/* dot_distribution_draw -- element k of the row of that stream. */
double dot_distribution_draw(int distribution, uint64_t seed, uint64_t stream, uint64_t k);

void dot_operand_generate(operand *o, size_t rows, size_t depth, int distribution, uint64_t seed, uint64_t stream);

/* Which dimension of a tensor runs over the products of a dot product; a tensor of one dimension is a
 * row in any case. */
typedef enum operand_layout {
    OPERAND_LAST,    /* the last one                                          */
    OPERAND_FLATTEN, /* all but the first                                     */
    OPERAND_FIRST    /* the first: rows are columns of what the file holds    */
} operand_layout;

/* dot_operand_take -- the numbers of a tensor that was read, whose last dimension K is; they are the operand's then. */
void dot_operand_take(operand *o, chosen *c);

/* dot_operand_read -- the tensor of the file whose name matches `glob` (NULL: any), which must be one and
 * not empty. At most max_rows rows are kept. 0, or an exit code after a message. */
int dot_operand_read(operand *o, const char *path, const char *glob, operand_layout layout, size_t max_rows);

/* dot_operand_encode -- round x * scale to f by a deterministic mode; a scale of 0 takes the largest power of two that brings no
 * element beyond the largest number. 0, or an exit code after a message. */
int dot_operand_encode(operand *o, const mpsim_format *f, mpsim_round_mode mode, double scale);
/* dot_operand_overflow -- 0, or EXIT_DATA after a message of the command `verb` on `what`, with advice, if elements are beyond the format. */
int dot_operand_overflow(const operand *o, const char *verb, const char *what, const char *advice);

void dot_operand_clear(operand *o);
