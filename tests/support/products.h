/* products.h -- matrix products for tests: operands of a kind in some layout, and every element beside what mpsim_dot gives. */
#pragma once

#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>

/* A matrix of codes, row-major, and where it lies in memory. */
typedef struct product_matrix {
    mpsim_format f;
    size_t rows, columns, stride;
    int transposed;
    uint64_t *codes;
    unsigned char *memory;
} product_matrix;

typedef struct product {
    const mpsim_model *m;
    size_t rows, columns, depth;
    product_matrix a, b, c;
    int no_c;
    mpsim_rng rng;
    uint64_t *want;
} product;

/* product_new -- room for one, in a layout by *seed; product_fill: numbers of the kind for the products a[i][k] b[k][j], with
 * few = 1 only two elements are; product_solve: what it should give, dot product by dot product. */
product product_new(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, size_t rows, size_t columns,
                    size_t depth, uint64_t *seed);
void product_fill(product *p, int kind, int few, uint64_t *seed);
void product_solve(product *p);
void product_clear(product *p);

/* product_check -- solve it and compare, on every instruction set, in any order of tasks, in place, on threads. */
void product_check(product *p, uint64_t *seed);

/* product_check_once -- run it and compare; in_place: d is c. Whatever lies between the rows of d must stay. */
void product_check_once(const product *p, const mpsim_pool *pool, int in_place, const char *with);

/* product_lay_out -- codes that were changed, into memory; product_view: a matrix for the library. */
void product_lay_out(product *p);
mpsim_matrix product_view(const product_matrix *x);

/* product_on_threads -- run of a pool of three threads. */
void product_on_threads(void *self, size_t n, void (*task)(size_t i, void *job), void *of);

/* product_code_of -- the code of a number, to the nearest. */
uint64_t product_code_of(const mpsim_format *f, double x);
