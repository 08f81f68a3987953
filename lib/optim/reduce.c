/* reduce.c -- sums of gradients over ranks; see mpsim/gradient.h.
 *
 * Blocks of elements are read from all ranks before they are written, so that the result may lie
 * where an operand does. */
#include <mpsim/gradient.h>

#include "../base/extent.h"
#include "steps.h"

#include <string.h>

enum {
    BLOCK = 256,
    LEVELS = 8 * sizeof(size_t) + 1 /* of a binary tree over all ranks that a size_t counts */
};

typedef struct job {
    const mpsim_reduce *r;
    mpsim_held wire, accumulator, result;
    const float *const *x;
    size_t ranks, chunk; /* elements of a chunk of the ring */
} job;

static mpsim_status check_format(const mpsim_format *f)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL);
}

/* Elements i to i + n - 1 of a rank, as they go over the wire. */
static void contribution(const job *j, float *y, size_t rank, size_t i, size_t n)
{
    memcpy(y, j->x[rank] + i, n * sizeof *y);
    mpsim_hold_array(&j->wire, y, n);
    if (j->r->average != MPSIM_AVERAGE_BEFORE)
        return;
    const float share = (float)(1 / (double)j->ranks);
    mpsim_op(MPSIM_OP_SCALE, y, y, NULL, share, n);
    mpsim_hold_array(&j->wire, y, n);
}

/* y = y + x */
static void add(const job *j, float *y, const float *x, size_t n)
{
    mpsim_op(MPSIM_OP_ADD, y, x, NULL, 0, n);
    mpsim_hold_array(&j->accumulator, y, n);
}

/* From rank `first` on, around the ring, left to right. */
static void sum_in_order(const job *j, float *y, size_t first, size_t i, size_t n)
{
    float x[BLOCK];
    contribution(j, y, first, i, n);
    for (size_t k = 1; k < j->ranks; k++) {
        contribution(j, x, k < j->ranks - first ? first + k : first + k - j->ranks, i, n);
        add(j, y, x, n);
    }
}

/* As adding 1 to a binary number: two complete subtrees of the same size become one of twice that
 * size; what is left at the end is added from the right. */
static void sum_in_tree(const job *j, float *y, size_t i, size_t n)
{
    float stack[LEVELS][BLOCK];
    size_t depth = 0;
    for (size_t rank = 0; rank < j->ranks; rank++) {
        contribution(j, stack[depth++], rank, i, n);
        for (size_t carries = rank; carries & 1; carries >>= 1, depth--)
            add(j, stack[depth - 2], stack[depth - 1], n);
    }
    for (; depth > 1; depth--)
        add(j, stack[depth - 2], stack[depth - 1], n);
    memcpy(y, stack[0], n * sizeof *y);
}

static void reduce_block(const job *j, float *y, size_t i, size_t n)
{
    float sum[BLOCK];
    if (j->r->order == MPSIM_REDUCE_TREE)
        sum_in_tree(j, sum, i, n);
    else
        sum_in_order(j, sum, j->r->order == MPSIM_REDUCE_RING ? i / j->chunk : 0, i, n);
    if (j->r->average == MPSIM_AVERAGE_AFTER)
        mpsim_op(MPSIM_OP_DIVIDE, sum, sum, NULL, (float)j->ranks, n);
    mpsim_hold_array(&j->result, sum, n);
    memcpy(y + i, sum, n * sizeof *y);
}

mpsim_status mpsim_reduce_array(const mpsim_reduce *r, float *y, const float *const *x, size_t ranks, size_t n)
{
    if (!r || r->order > MPSIM_REDUCE_TREE || r->average > MPSIM_AVERAGE_AFTER || ranks == 0 || (n > 0 && (!y || !x)) ||
        !mpsim_fits(n, sizeof *y) || !mpsim_fits(ranks, sizeof *x))
        return MPSIM_EINVAL;
    const mpsim_format *const formats[] = {&r->wire, &r->accumulator, &r->result};
    for (size_t k = 0; k < 3; k++) {
        const mpsim_status s = check_format(formats[k]);
        if (s != MPSIM_OK)
            return s;
    }
    for (size_t k = 0; n > 0 && k < ranks; k++)
        if (!x[k])
            return MPSIM_EINVAL;
    const job j = {.r = r,
                   .wire = mpsim_hold(&r->wire),
                   .accumulator = mpsim_hold(&r->accumulator),
                   .result = mpsim_hold(&r->result),
                   .x = x,
                   .ranks = ranks,
                   .chunk = n / ranks + (n % ranks != 0)};
    for (size_t i = 0, m; i < n; i += m) {
        const size_t in_chunk = r->order == MPSIM_REDUCE_RING ? j.chunk - i % j.chunk : BLOCK;
        m = n - i < BLOCK ? n - i : BLOCK;
        m = m < in_chunk ? m : in_chunk;
        reduce_block(&j, y, i, m);
    }
    return MPSIM_OK;
}
