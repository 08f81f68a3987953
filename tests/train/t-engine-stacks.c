/* t-engine-stacks.c -- stacks of products of the CPU engine against single products of copied matrices:
 * parts, shared operands, every start, threads. */
#include "support/trainengine.h"

#include <math.h>

/* ---- one stack ---- */

/* Rows of each matrix: of a, b and d, their parts; and what the products are. */
typedef struct stack {
    size_t stacks, shared, rows, columns, depth;
    int a_transposed, b_transposed, parts;
    train_start start;
} stack;

/* A part of a matrix of `n` rows: they and some around them, or all. */
static train_part part_of(const stack *s, size_t n, size_t before)
{
    return s->parts ? (train_part){before, n} : (train_part){0, 0};
}

static size_t height_of(const stack *s, size_t n, size_t before)
{
    return s->parts ? n + before + 1 : n;
}

/* The rows of matrix i that are in its part, as a tensor. */
static train_tensor copy_of(const train_tensor *x, size_t i, size_t height, size_t first, size_t n)
{
    return make(x->format, n, x->cols, get(x) + (i * height + first) * x->cols);
}

/* What product i is alone, before the numbers in d are added; its counts only where they are not. */
static void alone(const train_gemm *g, const train_tensor *d, size_t i, size_t rows, size_t columns, float *want,
                  train_counts *counts)
{
    const size_t shared = g->shared ? g->shared : 1;
    const size_t ha = g->a->rows / g->stacks, hb = g->b->rows / (g->stacks / shared);
    const size_t hd = d->rows / g->stacks;
    train_tensor a = copy_of(g->a, i, ha, g->a_part.first, g->a_part.n ? g->a_part.n : ha);
    train_tensor b = copy_of(g->b, i / shared, hb, g->b_part.first, g->b_part.n ? g->b_part.n : hb);
    a.inverse = g->a->inverse;
    b.inverse = g->b->inverse;
    const int from_sum = g->start == TRAIN_FROM_SUM;
    const size_t first = (i * hd + g->d_part.first) * columns;
    train_tensor to = make(d->format, rows, columns, get(d) + first);
    const train_gemm one = {.model = g->model,
                            .a = &a,
                            .b = &b,
                            .a_transposed = g->a_transposed,
                            .b_transposed = g->b_transposed,
                            .start = from_sum ? TRAIN_FROM_SUM : TRAIN_FROM_ZERO};
    OK(ops->gemm(&engine, &to, &one, g->start == TRAIN_ADD_TO ? NULL : counts));
    const float *sums = get(&to);
    for (size_t k = 0; k < rows * columns; k++) {
        float *w = want + first + k;
        *w = g->start == TRAIN_ADD_TO ? rounded(d->format, *w + sums[k], counts) : sums[k];
    }
    drop(&a);
    drop(&b);
    drop(&to);
}

static void check_stack(const stack *s, const mpsim_model *m, const char *fa, const char *fb, const char *fd,
                        int specials)
{
    static float want[MOST];
    train_counts got = {0, 0, 0, 0}, expected = {0, 0, 0, 0};
    const size_t ra = s->a_transposed ? s->depth : s->rows;
    const size_t rb = s->b_transposed ? s->columns : s->depth;
    const size_t ha = height_of(s, ra, 2), hb = height_of(s, rb, 1), hd = height_of(s, s->rows, 3);
    train_tensor a = any(fa, s->stacks * ha, s->a_transposed ? s->rows : s->depth, specials);
    train_tensor b = any(fb, s->stacks / s->shared * hb, s->b_transposed ? s->depth : s->columns, specials);
    train_tensor d = any(fd, s->stacks * hd, s->columns, specials);
    if (s->start != TRAIN_FROM_SUM)
        a.inverse = 0x1.4p-2f;
    const train_gemm g = {.model = m,
                          .a = &a,
                          .b = &b,
                          .a_transposed = s->a_transposed,
                          .b_transposed = s->b_transposed,
                          .stacks = s->stacks,
                          .shared = s->shared,
                          .a_part = part_of(s, ra, 2),
                          .b_part = part_of(s, rb, 1),
                          .d_part = part_of(s, s->rows, 3),
                          .start = (uint8_t)s->start};
    memcpy(want, get(&d), d.rows * d.cols * sizeof *want);
    for (size_t i = 0; i < s->stacks; i++)
        alone(&g, &d, i, s->rows, s->columns, want, &expected);
    OK(ops->gemm(&engine, &d, &g, &got));
    ck_assert(d.inverse == 1);
    engine_same(m->name, get(&d), want, d.rows * d.cols);
    same_counts(m->name, &got, &expected);
    drop(&a);
    drop(&b);
    drop(&d);
}

static const struct product {
    const char *model, *a, *b, *out;
} products[] = {
    {"fma", "binary32", "binary32", "binary32"}, {"exact", "fp16", "bf16", "e5m2"},
    {"hopper", "fp16", "fp16", "fp16"},          {"hopper", "bf16", "bf16", "bf16"},
    {"hopper", "e4m3", "e5m2", "bf16"},          {"sequential", "fp16", "fp16", "binary32"},
};

static void model_of(mpsim_model *m, const struct product *p)
{
    if (strcmp(p->model, "hopper") == 0)
        ck_assert(mpsim_model_for(m, p->model, format(p->a), format(p->b), format("binary32")) == MPSIM_OK);
    else
        ck_assert(mpsim_model_parse(m, p->model) == MPSIM_OK);
}

START_TEST(test_stacks)
{
    const struct product *p = &products[_i];
    mpsim_model m;
    model_of(&m, p);
    for (unsigned form = 0; form < 96; form++) {
        const stack s = {.stacks = form & 32 ? 6 : 4,
                         .shared = form & 8 ? 2 : 1,
                         .rows = 1 + form % 7,
                         .columns = 9 - form % 5,
                         .depth = 5 + form % 30,
                         .a_transposed = form & 1,
                         .b_transposed = form >> 1 & 1,
                         .parts = form >> 2 & 1,
                         .start = (train_start)(form % 3)};
        const char *out = s.start == TRAIN_FROM_ZERO ? p->out : "binary32";
        check_stack(&s, &m, p->a, p->b, out, form >= 80);
    }
}

/* The chain goes on where it was: two halves of the depth are the whole. */
START_TEST(test_halves)
{
    const struct product *p = &products[_i];
    mpsim_model m;
    model_of(&m, p);
    train_tensor a = any(p->a, 5, 64, 0), b = any(p->b, 7, 64, 0);
    train_tensor whole = make(format("binary32"), 5, 7, NULL), d = make(whole.format, 5, 7, NULL);
    train_gemm g = {.model = &m, .a = &a, .b = &b, .b_transposed = 1};
    OK(ops->gemm(&engine, &whole, &g, NULL));
    /* halves of b as rows: b^T */
    static float turned[448];
    const float *v = get(&b);
    for (size_t i = 0; i < 448; i++)
        turned[i % 64 * 7 + i / 64] = v[i];
    train_tensor t = make(b.format, 64, 7, turned);
    v = get(&a);
    static float low[160], high[160];
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 32; k++) {
            low[i * 32 + k] = v[i * 64 + k];
            high[i * 32 + k] = v[i * 64 + 32 + k];
        }
    train_tensor al = make(a.format, 5, 32, low), ah = make(a.format, 5, 32, high);
    train_gemm half = {.model = &m, .a = &al, .b = &t, .stacks = 1, .b_part = {0, 32}};
    OK(ops->gemm(&engine, &d, &half, NULL));
    half.a = &ah;
    half.b_part.first = 32;
    half.start = TRAIN_FROM_SUM;
    OK(ops->gemm(&engine, &d, &half, NULL));
    if (strcmp(p->model, "exact") != 0) /* which rounds in the end only */
        engine_same(p->model, get(&d), get(&whole), 35);
    drop(&a);
    drop(&b);
    drop(&t);
    drop(&al);
    drop(&ah);
    drop(&whole);
    drop(&d);
}

static size_t tasks;

static void backwards(void *self, size_t n, void (*task)(size_t i, void *job), void *job)
{
    (void)self;
    tasks += n;
    while (n-- > 0)
        task(n, job);
}

/* Threads take products of a stack; and rows of one, for what follows its sums. */
START_TEST(test_threads)
{
    const mpsim_pool pool = {.run = backwards};
    const size_t stacks = _i ? 30 : 1;
    mpsim_model m;
    model_of(&m, &products[2]);
    train_tensor a = any("fp16", stacks * 32, 32, 1), b = any("fp16", stacks * 32, 32, 1);
    train_tensor d = make(format("e5m2"), stacks * 32, 32, NULL), e = d;
    train_counts one = {0, 0, 0, 0}, many = {0, 0, 0, 0};
    const train_gemm g = {.model = &m, .a = &a, .b = &b, .b_transposed = 1, .stacks = stacks};
    OK(ops->gemm(&engine, &d, &g, &one));
    const float *want = get(&d);
    engine.pool = &pool;
    OK(ops->gemm(&engine, &e, &g, &many));
    engine_same("threads", get(&e), want, stacks * 1024);
    same_counts("threads", &many, &one);
    ck_assert((tasks > 1) == (stacks > 1));
    drop(&a);
    drop(&b);
    drop(&d);
}

/* ---- what is refused ---- */

START_TEST(test_errors)
{
    mpsim_model m;
    model_of(&m, &products[0]);
    train_tensor a = any("fp16", 12, 6, 0), b = any("bf16", 12, 6, 0);
    train_tensor d = make(format("fp16"), 12, 3, NULL), bias = any("fp16", 1, 3, 0);
    train_tensor sums = make(format("binary32"), 12, 3, NULL);
    train_gemm g = {.model = &m, .a = &a, .b = &b, .b_transposed = 1, .stacks = 4};
    OK(ops->gemm(&engine, &d, &g, NULL));
    g.stacks = 5;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "12 rows of a cannot be divided into 5 matrices");
    g.stacks = 4;
    g.shared = 3;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "4 products are not a multiple of the 3 that share b");
    g.shared = 2;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "must be 3 x 6");
    g.b_part = (train_part){4, 3};
    FAILS(ops->gemm(&engine, &d, &g, NULL), "rows 4 to 7 of b are beyond its matrices of 6 rows");
    g.b_part = (train_part){SIZE_MAX, 3};
    FAILS(ops->gemm(&engine, &d, &g, NULL), "of b are beyond its matrices of 6 rows");
    g.b_part = (train_part){3, 3};
    OK(ops->gemm(&engine, &d, &g, NULL));
    g.bias = &bias;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "a stack of products takes no bias");
    g.bias = NULL;
    g.depth_limit = 2;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "a stack of products takes no bias, blocks or depth limit");
    g.depth_limit = 0;
    g.start = TRAIN_ADD_TO;
    FAILS(ops->gemm(&engine, &d, &g, NULL), "sums continue in binary32");
    OK(ops->gemm(&engine, &sums, &g, NULL));
    g.start = TRAIN_FROM_SUM;
    OK(ops->gemm(&engine, &sums, &g, NULL));
    a.inverse = 2;
    FAILS(ops->gemm(&engine, &sums, &g, NULL), "scales cannot continue");
    g.start = 7;
    FAILS(ops->gemm(&engine, &sums, &g, NULL), "unknown start mode 7");
    train_tensor *const all[] = {&a, &b, &d, &bias, &sums};
    for (size_t i = 0; i < COUNT(all); i++)
        drop(all[i]);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, test_stacks, 0, (int)COUNT(products));
    tcase_add_loop_test(t, test_halves, 0, (int)COUNT(products));
    tcase_add_loop_test(t, test_threads, 0, 2);
    tcase_add_test(t, test_errors);
}

int main(void)
{
    return engine_main("train-engine-stacks", add);
}
