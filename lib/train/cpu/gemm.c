/* gemm.c -- the CPU engine: matrix products, one or a stack of them. */
#include "cpu.h"

typedef struct encoding {
    const train_tensor *x;
    char *codes;
    mpsim_status status[CPU_PIECES];
} encoding;

/* Numbers of the format: none is rounded. */
static void encode_some(void *job, size_t piece, size_t first, size_t n)
{
    encoding *o = job;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    o->status[piece] = mpsim_encode_array_f32(o->x->format, &r, NULL,
                                              o->codes + first * mpsim_format_code_bytes(o->x->format),
                                              cpu_values(o->x) + first, n, NULL);
}

const void *cpu_codes(train_engine *e, int i, const train_tensor *x)
{
    const size_t n = cpu_size(x);
    if (cpu_is_binary32(x->format))
        return cpu_values(x);
    encoding o = {.x = x, .codes = cpu_buffer(e, i, n * mpsim_format_code_bytes(x->format))};
    if (!o.codes)
        return NULL;
    cpu_pieces(e, n, CPU_IN_CACHE, 1, encode_some, &o);
    for (size_t k = 0; k < CPU_PIECES; k++)
        if (o.status[k]) {
            cpu_fail(e, "codes of %s: %s", x->format->name, mpsim_status_string(o.status[k]));
            return NULL;
        }
    return o.codes;
}

/* ---- the product as the library has it ---- */

/* The numbers of a tensor that has `matrices` of equal height below one another, `shared` of which belong together (0: each
 * serves so many), as a stack; only the rows of a part of each. */
static mpsim_stack stack_of(const train_tensor *x, size_t matrices, size_t shared, const train_part *part)
{
    const size_t height = x->rows / matrices, cols = x->cols, together = shared ? shared : 1;
    const int64_t apart = (int64_t)(height * cols);
    return (mpsim_stack){.format = mpsim_format_find("binary32"),
                         .codes = cpu_values(x) + part->first * cols,
                         .rank = 4,
                         .shape = {matrices / together, together, part->n ? part->n : height, cols},
                         .strides = {apart * (int64_t)together, apart, (int64_t)cols, 1}};
}

static mpsim_operand operand_of(const train_tensor *x, const mpsim_stack *s, int turned)
{
    mpsim_operand lies, o;
    mpsim_operand_init(&lies, s, x->format, MPSIM_ROUND_NEAREST_EVEN);
    lies.inverse = x->inverse;
    lies.rounded = 1;
    if (!turned)
        return lies;
    (void)mpsim_operand_turn(&o, &lies);
    return o;
}

/* Of blocks: what their sums are multiplied by. */
static void add_factors(mpsim_operand *o, const train_tensor *blocks, size_t rows, const train_gemm *g)
{
    o->factors = cpu_values(blocks);
    o->block_rows = rows;
    o->block_cols = g->promote;
    o->grid_rows = blocks->rows;
    o->grid_cols = blocks->cols;
    o->scales = g->model->block ? mpsim_format_find(g->promote == 16 ? "e4m3" : "e8m0") : NULL;
}

int cpu_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts)
{
    const size_t stacks = g->stacks ? g->stacks : 1, shared = g->shared ? g->shared : 1;
    const mpsim_stack sa = stack_of(g->a, stacks, shared, &g->a_part);
    const mpsim_stack sb = stack_of(g->b, stacks / shared, 0, &g->b_part);
    const mpsim_stack sd = stack_of(d, stacks, shared, &g->d_part);
    mpsim_operand a = operand_of(g->a, &sa, g->a_transposed), b = operand_of(g->b, &sb, !g->b_transposed);
    mpsim_entered entered = {0, 0, 0, 0};
    mpsim_stack bias;
    mpsim_product p;
    mpsim_product_init(&p);
    p.model = g->model;
    p.a = &a;
    p.b = &b;
    p.d = &sd;
    p.numbers = d->format;
    p.depth_limit = g->depth_limit;
    p.counts = counts ? &entered : NULL;
    p.start = g->start == TRAIN_FROM_SUM ? &sd : NULL;
    p.add = g->start == TRAIN_ADD_TO ? &sd : NULL;
    if (g->a_blocks) {
        add_factors(&a, g->a_blocks, g->a_rows, g);
        add_factors(&b, g->b_blocks, g->b_rows, g);
    }
    if (g->bias) {
        bias = stack_of(g->bias, 1, 0, &(train_part){0, 0});
        p.bias = &bias;
    }
    const mpsim_status s = mpsim_product_run(&p, e->pool);
    if (s)
        return cpu_fail(e, "gemm: %s of %s and %s: %s", g->model->name, g->a->format->name, g->b->format->name,
                        mpsim_status_string(s));
    if (counts)
        cpu_add_counts(counts, &(train_counts){entered.nonzero, entered.lost, entered.overflow, entered.nonfinite});
    d->inverse = 1;
    return 0;
}

int cpu_gemm_list(train_engine *e, const train_multiply *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cpu_gemm(e, list[i].d, list[i].g, list[i].counts))
            return -1;
    return 0;
}
