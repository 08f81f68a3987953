/* stacks.h -- results that are more than one torch.mm: stacks of products, something added, convolutions as products. A
 * question says which numbers meet in an element of its result; the rows, cuts of the depth, orders and endings that give
 * the recorded bits are found here. Of stacks.c, whole.c and their readers. */
#pragma once

#include "ways.h"

/* An element of the result: of which product, in which row and column. */
typedef struct spot {
    size_t group, row, column;
} spot;

/* Where the number that is added to a product comes in. */
enum { ADDED_NOWHERE, ADDED_AFTER, ADDED_BEFORE_PRODUCTS, ADDED_BEFORE_PARTS };

/* How a sum becomes an element. `after` finishes what ADDED_AFTER, and a function of the result, leave open. */
typedef struct ending {
    const char *text;
    int added, narrow; /* narrow: only where the result has 16 bits is it another than the one before */
    float (*after)(const mpsim_format *out, float sum, float added);
} ending;

/* The endings of what a case calls `how`. */
const ending *stacks_endings(const char *how, size_t *n);

typedef struct stack stack;
struct stack {
    const json_t *c;
    const char *form; /* torch's name of the operands' type */
    const mpsim_format *operand, *out;
    uint64_t streams[4];
    size_t groups, size[10]; /* products; the question's own numbers */
    int orders;              /* ways to number the depth: convolutions have several */
    int guess;               /* names of kernels do not say how the depth is cut */
    const ending *ends;
    size_t endings;
    spot (*find)(const stack *s, size_t at);
    size_t (*index)(const stack *s, spot p);                                 /* the inverse */
    void (*sizes)(const stack *s, int order, size_t group, size_t sizes[3]); /* rows, columns, depth */
    float (*a)(const stack *s, int order, spot p, size_t k);
    float (*b)(const stack *s, int order, spot p, size_t k);
    float (*added)(const stack *s, spot p);                              /* NULL: nothing is */
    float (*scale)(const stack *s, int end, spot p, float sum);          /* NULL: nothing is scaled */
    int (*repeats)(const stack *s, int order);                           /* an order that is another; NULL: none */
    void (*order_name)(const stack *s, int order, char *text, size_t n); /* NULL: one order */
};

/* What the cases of all these questions have; 0: it cannot be understood. */
int stacks_read(const json_t *c, stack *s);

/* The answer to a case. */
void stacks_answer(const json_t *head, const stack *s, char *answer);

/* A way of the question, by the numbers of its parts. */
typedef struct played {
    const char *row;
    size_t part;
    int order, ending;
} played;

/* Puts into the case what a device would answer that goes this way. */
void stacks_play(json_t *c, const stack *s, const played *by);

/* A product of the stack as matrices, for digests. */
typedef struct whole_product whole_product;
whole_product *whole_open(const stack *s, int order, size_t group);
void whole_close(whole_product *x);

/* Of those elements of the product that are in the case's digest. again: the sums are those of the last call. */
uint64_t whole_digest(whole_product *x, const way *w, const ending *e, int again);

/* An element of the sum of its products. */
float stacks_finish(const stack *s, const ending *e, spot p, float sum);

/* Reads a case of a question into *s; 0: it cannot be understood. */
typedef int stacks_reader(const json_t *c, stack *s);
stacks_reader stacks_batched, stacks_convolution, stacks_grouped;
