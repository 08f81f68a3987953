/* products.c -- see products.h. */
#include "products.h"

#include "dotcases.h"
#include "support.h"

#include <mpsim/isa.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- threads ---- */

typedef struct job {
    void (*task)(size_t i, void *job);
    void *of;
    size_t n;
    atomic_size_t next;
} job;

static void in_random_order(void *self, size_t n, void (*task)(size_t i, void *job), void *of)
{
    uint64_t *seed = self;
    size_t *order = malloc((n + 1) * sizeof *order);
    ck_assert(order);
    for (size_t i = 0; i < n; i++)
        order[i] = i;
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)(test_random(seed) % i), x = order[i - 1];
        order[i - 1] = order[j];
        order[j] = x;
    }
    for (size_t i = 0; i < n; i++)
        task(order[i], of);
    free(order);
}

static void *worker(void *self)
{
    job *j = self;
    for (size_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n;)
        j->task(i, j->of);
    return NULL;
}

void product_on_threads(void *self, size_t n, void (*task)(size_t i, void *job), void *of)
{
    pthread_t threads[3];
    job j = {.task = task, .of = of, .n = n};
    (void)self;
    atomic_init(&j.next, 0);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        ck_assert(pthread_create(&threads[i], NULL, worker, &j) == 0);
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++)
        pthread_join(threads[i], NULL);
}

/* ---- problems ---- */

static void set_up(product_matrix *x, const mpsim_format *f, size_t rows, size_t columns, size_t gap, int transposed)
{
    x->f = *f;
    x->rows = rows;
    x->columns = columns;
    x->stride = (transposed ? rows : columns) + gap;
    x->transposed = transposed;
    const size_t lines = transposed ? columns : rows;
    x->codes = calloc(rows * columns + 1, sizeof *x->codes);
    x->memory = malloc(lines * x->stride * 8 + 16);
    ck_assert(x->codes && x->memory);
    memset(x->memory, 0xff, lines * x->stride * 8 + 16); /* NaNs in the gaps */
}

static void lay_out(product_matrix *x)
{
    for (size_t i = 0; i < x->rows; i++)
        for (size_t j = 0; j < x->columns; j++)
            dot_pack(&x->f, x->memory + 1, x->transposed ? j * x->stride + i : i * x->stride + j,
                     &x->codes[i * x->columns + j], 1);
}

void product_lay_out(product *p)
{
    lay_out(&p->a);
    lay_out(&p->b);
    lay_out(&p->c);
}

mpsim_matrix product_view(const product_matrix *x)
{
    return (mpsim_matrix){&x->f, x->memory + 1, x->stride, x->transposed};
}

static void clear(product_matrix *x)
{
    free(x->codes);
    free(x->memory);
}

/* Numbers of the kind for the products a[i][k] b[k][j]; with few = 1 only two elements are. */
void product_fill(product *p, int kind, int few, uint64_t *seed)
{
    const mpsim_format *fr = &p->m->result.format;
    const size_t na = p->rows * p->depth, nb = p->depth * p->columns;
    const size_t n = na > nb ? na : nb;
    uint64_t *x = calloc(n + 1, sizeof *x), *y = calloc(n + 1, sizeof *y);
    ck_assert(x && y);
    verify_kinds_fill(&p->a.f, x, &p->b.f, y, n, fr, few || kind == KIND_CANCEL ? KIND_NORMAL : kind, seed);
    memcpy(p->a.codes, x, na * sizeof *x);
    memcpy(p->b.codes, y, nb * sizeof *y);
    if (few && n) {
        verify_kinds_fill(&p->a.f, x, &p->b.f, y, 2, fr, KIND_BITS, seed);
        verify_kinds_fill(&p->a.f, x, &p->b.f, y, 1, fr, kind, seed);
        if (na)
            p->a.codes[test_random(seed) % na] = x[0];
        if (nb)
            p->b.codes[test_random(seed) % nb] = y[test_random(seed) % 2];
    }
    if (kind == KIND_CANCEL && mpsim_format_is_signed(&p->b.f))
        for (size_t k = 1; k < p->depth; k += 2) { /* opposite products, side by side */
            for (size_t i = 0; i < p->rows; i++)
                p->a.codes[i * p->depth + k] = p->a.codes[i * p->depth + k - 1];
            for (size_t j = 0; j < p->columns; j++)
                p->b.codes[k * p->columns + j] = p->b.codes[(k - 1) * p->columns + j] ^ (uint64_t)1
                                                                                            << (p->b.f.bits - 1);
        }
    for (size_t i = 0; i < p->rows * p->columns; i++)
        p->c.codes[i] = p->no_c ? 0 : verify_kinds_addend(fr, few ? KIND_NORMAL : kind, seed);
    free(x);
    free(y);
    product_lay_out(p);
}

product product_new(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb, size_t rows, size_t columns,
                    size_t depth, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    product p = {.m = m, .rows = rows, .columns = columns, .depth = depth};
    set_up(&p.a, fa, rows, depth, u & 1 ? u >> 8 & 3 : 0, u >> 1 & 1);
    set_up(&p.b, fb, depth, columns, u >> 2 & 1 ? u >> 10 & 3 : 0, u >> 3 & 1);
    set_up(&p.c, &m->result.format, rows, columns, u >> 4 & 1 ? u >> 12 & 3 : 0, u >> 5 & 1);
    /* mpsim_dot takes a code for c: in a format without zero it cannot say what no c is */
    p.no_c = (u >> 16) % 8 == 0 && m->result.format.zero != MPSIM_ZERO_NONE;
    p.rng = (mpsim_rng){test_random(seed), test_random(seed), test_random(seed)};
    p.want = malloc((rows * columns + 1) * sizeof *p.want);
    ck_assert(p.want);
    return p;
}

void product_clear(product *p)
{
    clear(&p->a);
    clear(&p->b);
    clear(&p->c);
    free(p->want);
}

/* The dot products one by one. */
void product_solve(product *p)
{
    unsigned char *row = malloc(p->depth * 8 + 1), *column = malloc(p->depth * 8 + 1);
    uint64_t *x = malloc(p->depth * sizeof *x + 1);
    ck_assert(row && column && x);
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->columns; j++) {
            mpsim_rng rng = p->rng;
            rng.index += ((uint64_t)i * p->columns + j) << 32;
            for (size_t k = 0; k < p->depth; k++)
                x[k] = p->b.codes[k * p->columns + j];
            dot_pack(&p->a.f, row, 0, p->a.codes + i * p->depth, p->depth);
            dot_pack(&p->b.f, column, 0, x, p->depth);
            ck_assert(mpsim_dot(p->m, &p->a.f, row, &p->b.f, column, p->depth, p->c.codes[i * p->columns + j], &rng,
                                &p->want[i * p->columns + j]) == MPSIM_OK);
        }
    free(row);
    free(column);
    free(x);
}

static const char *describe(const product *p, const char *with)
{
    static char text[800];
    const mpsim_model *m = p->m;
    snprintf(text, sizeof text,
             "%s (addition %d L=%d F=%d floor=%d chunk=%u acc=%s mode %d result=%s), %s%s x %s%s, "
             "%zu x %zu x %zu, %s%s, %s",
             m->name, m->addition, m->length, m->fraction, m->floor, m->chunk, m->accumulator.format.name,
             m->accumulator.rounding.mode, m->result.format.name, p->a.f.name, p->a.transposed ? "^T" : "", p->b.f.name,
             p->b.transposed ? "^T" : "", p->rows, p->columns, p->depth,
             p->no_c           ? "no c"
             : p->c.transposed ? "c^T"
                               : "c",
             with, mpsim_isa_active());
    return text;
}

void product_check_once(const product *p, const mpsim_pool *pool, int in_place, const char *with)
{
    const mpsim_format *f = &p->m->result.format;
    const size_t stride = in_place ? p->c.stride : p->columns + p->rng.seed % 3;
    const size_t bytes = p->rows * stride * 8 + 16, width = mpsim_format_code_bytes(f);
    unsigned char *d = malloc(bytes), *expected = malloc(bytes);
    ck_assert(d && expected);
    memset(d, 0xff, bytes);
    if (in_place)
        memcpy(d + 1, p->c.memory + 1, p->rows * stride * width);
    memcpy(expected, d, bytes);
    for (size_t i = 0; i < p->rows; i++)
        dot_pack(f, expected + 1, i * stride, p->want + i * p->columns, p->columns);
    const mpsim_matrix a = product_view(&p->a), b = product_view(&p->b);
    mpsim_matrix c = product_view(&p->c);
    if (in_place)
        c.codes = d + 1;
    const mpsim_status s = mpsim_gemm(p->m, p->rows, p->columns, p->depth, &a, &b, p->no_c ? NULL : &c, d + 1, stride,
                                      &p->rng, pool);
    ck_assert_msg(s == MPSIM_OK, "%s: %s", describe(p, with), mpsim_status_string(s));
    if (memcmp(d, expected, bytes) != 0) {
        for (size_t i = 0; i < p->rows; i++)
            for (size_t j = 0; j < p->columns; j++) {
                const uint64_t got = dot_unpack(f, d + 1, i * stride + j);
                ck_assert_msg(got == p->want[i * p->columns + j], "%s: element %zu, %zu is %llx, the dot product %llx",
                              describe(p, with), i, j, (unsigned long long)got,
                              (unsigned long long)p->want[i * p->columns + j]);
            }
        ck_abort_msg("%s: writes between the rows", describe(p, with));
    }
    free(d);
    free(expected);
}

void product_check(product *p, uint64_t *seed)
{
    const mpsim_pool random = {.run = in_random_order, .self = seed}, threads = {.run = product_on_threads};
    product_solve(p);
    for (size_t i = 0; mpsim_isa_at(i); i++) {
        if (mpsim_isa_use(mpsim_isa_at(i)) != MPSIM_OK)
            continue;
        product_check_once(p, NULL, 0, "");
        product_check_once(p, &random, 0, ", random order");
        if (!p->no_c && !p->c.transposed)
            product_check_once(p, i % 2 ? &random : NULL, 1, ", in place");
    }
    if (test_random(seed) % 8 == 0)
        product_check_once(p, &threads, 0, ", threads");
    if (mpsim_isa_at(0))
        mpsim_isa_use(mpsim_isa_at(0));
}

uint64_t product_code_of(const mpsim_format *f, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_encode_f64(f, &r, x, 0, NULL);
}
