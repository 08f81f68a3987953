/* between.h -- the operations of mpsim/layer.h and mpsim/transformer.h on arrays in memory: numbers of any format, with
 * strides, on threads. Results have the bits of the functions there, whatever the memory and the threads. */
#ifndef MPSIM_BETWEEN_H
#define MPSIM_BETWEEN_H

#include <mpsim/dot.h>
#include <mpsim/transformer.h>

MPSIM_BEGIN

enum { MPSIM_BETWEEN_DIMS = 8, MPSIM_BETWEEN_ARRAYS = 10 };

/* Elements of an operation's shape: element (i, j, ...) is at data + (i stride[0] + j stride[1] + ...) elements; stride 0
 * repeats. */
typedef struct mpsim_strided {
    const mpsim_format *format; /* of the codes, whose numbers are binary32 numbers; NULL: binary32. Masks are bytes. */
    void *data;                 /* NULL: not there */
    ptrdiff_t stride[MPSIM_BETWEEN_DIMS];
} mpsim_strided;

/* Which arrays an operation takes, in their order, results behind the arrow; [x] may be missing. An array that has fewer
 * dimensions than the shape has the others' strides 0:
 *
 *   rows     x, y, dy, dx, s, p, dp, ds, a, b, value: the whole shape
 *   columns  weight, bias, dweight, dbias, running_*, sums, of BATCHNORM mean and inverse: the last dimension alone
 *   scalars  loss, of ROWNORM mean and inverse: all dimensions but the last
 *   tables   table, dtable, of PERIOD_SUMS sums: entry k, column c at k stride[0] + c stride[dims - 1]
 *
 * A weight that is missing is 1 everywhere, a bias of BATCHNORM 0. */
typedef enum mpsim_between_kind {
    MPSIM_BETWEEN_ROWNORM,           /* x [weight] [bias] -> y [mean] [inverse]                      norm, eps      */
    MPSIM_BETWEEN_ROWNORM_BACKWARD,  /* dy x [mean] inverse [weight] -> dx                           norm           */
    MPSIM_BETWEEN_ROWNORM_GRADIENTS, /* dy x [mean] inverse -> [dweight] [dbias]                     norm           */
    MPSIM_BETWEEN_ACTIVATE,          /* x [value] -> y                                               activation     */
    MPSIM_BETWEEN_ACTIVATE_BACKWARD, /* dy x [value] -> dx [dvalue]; value, dvalue: of SWIGLU        activation     */
    MPSIM_BETWEEN_SOFTMAX,           /* s [mask] -> p                                                scale, length  */
    MPSIM_BETWEEN_SOFTMAX_BACKWARD,  /* dp p [mask] -> ds                                            scale, length  */
    MPSIM_BETWEEN_LOG_SOFTMAX,       /* s [mask] -> y                                                scale, length  */
    MPSIM_BETWEEN_LOG_SOFTMAX_BACKWARD, /* dy y [mask] -> ds                                            scale, length  */
    MPSIM_BETWEEN_CROSS_ENTROPY,      /* x -> [loss] [dx]                                             index, scale   */
    MPSIM_BETWEEN_EMBED,              /* table -> y                                                   index, entries */
    MPSIM_BETWEEN_EMBED_BACKWARD,     /* dy -> dtable                                                 index, entries */
    MPSIM_BETWEEN_ADD,                /* a b -> y                                                                    */
    MPSIM_BETWEEN_MULTIPLY,           /* a b -> y                                                                    */
    MPSIM_BETWEEN_DROPOUT,            /* x -> y                                                       p, rng         */
    MPSIM_BETWEEN_COLUMN_SUMS,        /* x -> sums                                                                   */
    MPSIM_BETWEEN_PERIOD_SUMS,        /* x -> sums                                                    entries: period */
    MPSIM_BETWEEN_BATCHNORM,          /* x [weight] [bias] -> y [mean] [inverse] [running_mean] [running_var]        */
    MPSIM_BETWEEN_BATCHNORM_BACKWARD, /* dy x mean inverse [weight] -> [dx] [dweight] [dbias]                        */
    MPSIM_BETWEEN_BATCHNORM_INFERENCE /* x running_mean running_var [weight] [bias] -> y                             */
} mpsim_between_kind;

typedef struct mpsim_between {
    uint8_t kind;       /* mpsim_between_kind */
    uint8_t norm;       /* mpsim_norm_kind */
    uint8_t activation; /* mpsim_activation */
    uint8_t added;      /* 1: a chain begins with what is in dtable, sums */
    uint8_t ignores;    /* 1: rows with index `ignored` have no loss, no gradient */
    uint8_t dims;       /* 1 to MPSIM_BETWEEN_DIMS */
    size_t shape[MPSIM_BETWEEN_DIMS];
    size_t length;  /* of mpsim_softmax */
    size_t entries; /* of the table; the period of sums */
    float eps, momentum;
    float scale; /* of softmax; the coefficient of the cross-entropy */
    double p;    /* of dropout */
    mpsim_rng rng;
    const int64_t *index; /* of each row, row-major: labels, entries of the table */
    int64_t ignored;
    const mpsim_format *math; /* NULL: binary32 */
    const mpsim_format *f;    /* what y, dx, p, ds, sums are rounded to; NULL: the format of the array */
} mpsim_between;

/* mpsim_between_run -- an operation on `n` arrays in the order above, at least as many as it has; those that are missing
 * have data NULL. Rows are those of the shape but for its last dimension, row-major. Results that no format `f` is for
 * are rounded to the format of their array, to nearest even, overflow to infinity; numbers rounded to `f` likewise, which
 * changes none that the array's format has.
 *
 * found: NULL, or of CROSS_ENTROPY 2 numbers: rows that are correct, rows that count. pool: threads, or NULL. A result of
 * the whole shape may be in place of an operand of the whole shape, with equal format and strides.
 *
 * MPSIM_EINVAL for an invalid format or setting, an array that is needed and missing, an index that is no entry, more
 * than 2^32 - 1 entries; MPSIM_ERANGE for a format that has numbers that binary32 has not; MPSIM_ENOMEM. But for the last
 * nothing is touched then. */
MPSIM_API mpsim_status mpsim_between_run(const mpsim_between *o, const mpsim_strided *arrays, size_t n, uint64_t *found,
                                         const mpsim_pool *pool);

MPSIM_END

#endif
