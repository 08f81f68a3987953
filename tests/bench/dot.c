/* dot.c -- speed of matrix products on one thread, multiply-adds a second.
 *
 * Compared with a plain loop in binary32, s += a[k] * b[k]; chains and exact sums, too, with what the machine can do at
 * most (peak.h). Operands: +-U(0, 1). Shapes that training
 * has (a transposed operand has a T), with zeros and smaller numbers among the operands, are compared
 * with the large product of the same model. */
#include "frame.h"
#include "peak.h"

#include <mpsim/mpsim.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
    bench *frame;
    mpsim_model m;
    mpsim_matrix a, b;
    mpsim_scales scales; /* of both, where the model has blocks */
    size_t rows, columns, depth;
    void *d;
    const float *fa, *fb;
} product;

static void do_gemm(void *context)
{
    product *p = context;
    const mpsim_scales *s = &p->scales;
    const mpsim_status status = s->codes ? mpsim_gemm_scaled(&p->m, p->rows, p->columns, p->depth, &p->a, s, &p->b, s,
                                                             NULL, p->d, p->columns, NULL, NULL)
                                         : mpsim_gemm(&p->m, p->rows, p->columns, p->depth, &p->a, &p->b, NULL, p->d,
                                                      p->columns, NULL, NULL);
    if (status != MPSIM_OK)
        abort();
}

static void do_plain(void *context)
{
    product *p = context;
    float *d = p->d;
    for (size_t i = 0; i < p->rows; i++)
        for (size_t j = 0; j < p->columns; j++) {
            float s = 0;
            for (size_t k = 0; k < p->depth; k++)
                s += p->fa[i * p->depth + k] * p->fb[j * p->depth + k];
            d[i * p->columns + j] = s;
        }
}

static double multiply_adds(const product *p)
{
    return (double)p->rows * (double)p->columns * (double)p->depth;
}

/* `base`: seconds of a multiply-add of what it is compared with, `to`. */
static void report(const char *kind, const product *p, const char *format, const char *to, double base, double t)
{
    char how[64];
    const double n = multiply_adds(p);
    const int shape = strcmp(kind, "shape") == 0;
    snprintf(how, sizeof how, "%zux%zux%zu%s%s", p->rows, p->columns, p->depth, p->a.transposed ? " aT" : "",
             p->b.transposed ? " bT" : "");
    const bench_row r = {.operation = kind,
                         .what = p->m.name,
                         .how = shape ? how : format,
                         .n = n,
                         .per_second = n / t,
                         .ratio = base * n / t,
                         .to = to};
    bench_print(p->frame, &r);
}

/* ---- models ---- */

/* Software models in other formats, beside the rows of the table. */
static const char *const typed[] = {"sequential:bf16",
                                    "sequential:fp16",
                                    "sequential:e4m3",
                                    "pairwise:bf16",
                                    "pairwise:fp16",
                                    "pairwise:e4m3",
                                    "fma:bf16",
                                    "fma:fp16",
                                    "fma:e4m3",
                                    "chunked:fp16",
                                    "chunked:bf16",
                                    "sequential:product=bf16",
                                    "amx-fp16-fp32:result=fp16",
                                    "cdna2-fp16-fp32:result=fp16",
                                    "fma:result=bf16"};

static const char *const formats[] = {"fp16", "bf16", "tf32", "e4m3", "binary32", "e4m3fnuz", "binary64"};

/* On the other instruction sets. */
static const char *const few[][2] = {{"hopper-fp16-fp32", "fp16"},      {"hopper-bf16-fp32", "bf16"},
                                     {"hopper-wgmma-fp8-fp32", "e4m3"}, {"hopper-tf32-fp32", "tf32"},
                                     {"avx512-bf16-fp32", "bf16"},      {"arm-bf16-fp32", "bf16"},
                                     {"amx-fp8-fp32", "e4m3"},          {"exact", "fp16"},
                                     {"pairwise:bf16", "fp16"},         {"chunked", "e4m3"},
                                     {"cdna1-fp16-fp32", "fp16"},       {"cdna2-bf16-fp32", "bf16"},
                                     {"cdna3-fp16-fp32", "fp16"},       {"cdna3-fp8-fp32", "e4m3fnuz"},
                                     {"cdna3-fp64", "binary64"},        {"rtx-blackwell-mxf8f6f4", "e4m3"},
                                     {"rtx-blackwell-mxf4nvf4", "e2m1"}};

#define COUNT(table) (sizeof table / sizeof *table)

enum { N = 256, DEPTH = 1024, QUICK = 64 };

typedef struct operands {
    double *x;
    float *f;
    void *codes, *d;
    void *scales;
    double plain; /* seconds of a multiply-add of the plain loop */
} operands;

/* Some in a row: a clock must be able to tell how long one takes. */
enum { SOME = 8 };

static void do_some(void *context)
{
    for (int i = 0; i < SOME; i++)
        do_gemm(context);
}

/* The product of a model whose operands are in that format, if it takes them, compared with `to`, of which a multiply-add
 * takes `base` seconds. */
static int run_compared(bench *b, const operands *o, const mpsim_model *m, const char *format, const char *kind,
                        const char *to, double base)
{
    const mpsim_format *f = mpsim_format_find(format);
    const size_t n = b->quick ? QUICK : N;
    product p = {.frame = b,
                 .m = *m,
                 .rows = n,
                 .columns = n,
                 .depth = DEPTH,
                 .d = o->d,
                 .a = {f, o->codes, DEPTH, 0},
                 .b = {f, o->codes, DEPTH, 1}};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (!mpsim_model_accepts(m, f, f) || !bench_wants(b, kind, m->name))
        return 0;
    if (mpsim_encode_array_f64(f, &r, NULL, o->codes, o->x, N * DEPTH, NULL) != MPSIM_OK)
        return 1;
    if (m->block) {
        const mpsim_format *fs = mpsim_format_find(strncmp(m->scales, "e4m3", 4) == 0 ? "e4m3" : "e8m0");
        unsigned char *s = o->scales;
        for (size_t i = 0; i < N * DEPTH / m->block; i++)
            s[i] = (unsigned char)((fs->mbits ? 0x30 : 120) + mpsim_rng_word(2, 0, i) % 16);
        p.scales = (mpsim_scales){fs, s, DEPTH / m->block};
    }
    const int is_short = strcmp(kind, "chain") == 0;
    const double t = bench_seconds(b, is_short ? do_some : do_gemm, &p);
    report(kind, &p, format, to, base, is_short ? t / SOME : t);
    return 0;
}

static int run_model(bench *b, const operands *o, const mpsim_model *m, const char *format)
{
    return run_compared(b, o, m, format, "gemm", "plain loop", o->plain);
}

/* What the machine's own multiply-adds, or products and sums, bound: two exact sums are two of them. */
static const struct chain {
    const char *model, *format;
    int peak, times;
} chains[] = {{"fma", "binary32", PEAK_FUSED_F32, 1},
              {"fma", "bf16", PEAK_FUSED_F32, 1},
              {"sequential", "binary32", PEAK_PRODUCT_AND_SUM_F32, 1},
              {"sequential", "fp16", PEAK_FUSED_F32, 1},
              {"avx512-bf16-fp32", "bf16", PEAK_FUSED_F32, 1},
              {"amx-bf16-fp32", "bf16", PEAK_FUSED_F32, 1},
              {"exact", "e4m3", PEAK_FUSED_F64, 1},
              {"exact", "fp16", PEAK_FUSED_F64, 2},
              {"exact", "bf16", PEAK_FUSED_F64, 2},
              {"cdna3-fp64", "binary64", PEAK_FUSED_F64, 1},
              {"hopper-wgmma-fp8-fp32", "e4m3", PEAK_FUSED_F32, 1},
              {"hopper-wgmma-fp8-fp32", "e5m2", PEAK_FUSED_F32, 1},
              {"hopper-bf16-fp32", "bf16", PEAK_FUSED_F64, 1},
              {"hopper-fp16-fp32", "fp16", PEAK_FUSED_F64, 1},
              {"ampere-bf16-fp32", "bf16", PEAK_FUSED_F64, 1},
              {"volta-fp16-fp32", "fp16", PEAK_FUSED_F64, 1},
              {"cdna3-bf16-fp32", "bf16", PEAK_FUSED_F64, 1},
              {"cdna3-fp8-fp32", "e4m3fnuz", PEAK_FUSED_F64, 1},
              {"chunked", "bf16", PEAK_FUSED_F32, 1},
              {"sequential:bf16", "bf16", PEAK_FUSED_F32, 1},
              {"arm-bf16-fp32", "bf16", PEAK_FUSED_F32, 1}};

static int run_chains(bench *b, const operands *o)
{
    mpsim_model m;
    int bad = 0;
    for (size_t i = 0; i < COUNT(chains); i++) {
        const double peak = bench_wants(b, "chain", chains[i].model) ? bench_peak(b, chains[i].peak) : 0;
        bad |= mpsim_model_parse(&m, chains[i].model) != MPSIM_OK ||
               (peak > 0 && run_compared(b, o, &m, chains[i].format, "chain", "peak", chains[i].times * peak));
    }
    return bad;
}

/* Infinities and NaNs among the elements of a; compared with the same product of ordinary numbers. */
static const struct strewn {
    const char *how;
    size_t apart; /* elements from one to the next; 0: there is one */
    double x;
} strewn[] = {{"1 NaN", 0, NAN},
              {"1 % NaN", 100, NAN},
              {"100 % NaN", 1, NAN},
              {"1 infinity", 0, INFINITY},
              {"1 % infinities", 100, INFINITY},
              {"100 % infinities", 1, INFINITY}};

static const char *const strewn_models[][2] = {
    {"fma", "binary32"},          {"sequential", "binary32"},        {"exact", "fp16"},
    {"avx512-bf16-fp32", "bf16"}, {"amx-bf16-fp32", "bf16"},         {"hopper-fp16-fp32", "fp16"},
    {"hopper-bf16-fp32", "bf16"}, {"hopper-wgmma-fp8-fp32", "e5m2"}, {"sequential:bf16", "bf16"},
    {"cdna3-fp16-fp32", "fp16"}};

static int strew(const operands *o, const mpsim_format *f, void *codes, const struct strewn *s)
{
    const size_t n = N * DEPTH, apart = s->apart ? s->apart : n;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    if (mpsim_encode_array_f64(f, &r, NULL, codes, o->x, n, NULL) != MPSIM_OK)
        return 1;
    for (size_t i = apart / 2; i < n; i += apart) {
        const double x = i % 2 ? s->x : -s->x;
        (void)mpsim_encode_array_f64(f, &r, NULL, (char *)codes + i * mpsim_format_code_bytes(f), &x, 1, NULL);
    }
    return 0;
}

static int run_strewn(bench *b, const operands *o, void *codes)
{
    int bad = 0;
    for (size_t i = 0; i < COUNT(strewn_models); i++) {
        const mpsim_format *f = mpsim_format_find(strewn_models[i][1]);
        const size_t n = b->quick ? QUICK : N;
        product p = {.frame = b, .rows = n, .columns = n, .depth = DEPTH, .d = o->d};
        mpsim_rounding r;
        mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
        if (!bench_wants(b, "special", strewn_models[i][0]))
            continue;
        bad |= mpsim_model_parse(&p.m, strewn_models[i][0]) != MPSIM_OK ||
               mpsim_encode_array_f64(f, &r, NULL, o->codes, o->x, N * DEPTH, NULL) != MPSIM_OK;
        p.a = p.b = (mpsim_matrix){f, o->codes, DEPTH, 0};
        p.b.transposed = 1;
        const double each = bad ? 0 : bench_seconds(b, do_some, &p) / SOME / multiply_adds(&p);
        p.a.codes = codes;
        for (size_t k = 0; !bad && k < COUNT(strewn); k++) {
            bad |= strew(o, f, codes, &strewn[k]);
            report("special", &p, strewn[k].how, "ordinary", each, bench_seconds(b, do_some, &p) / SOME);
        }
    }
    return bad;
}

static void run_plain(bench *b, operands *o)
{
    const size_t n = b->quick ? QUICK : N;
    product p = {.frame = b, .rows = n, .columns = n, .depth = DEPTH, .d = o->d, .fa = o->f, .fb = o->f};
    strcpy(p.m.name, "plain loop");
    const double t = bench_seconds(b, do_plain, &p);
    o->plain = t / multiply_adds(&p);
    report("gemm", &p, "binary32", "plain loop", o->plain, t);
}

static int run_models(bench *b, const operands *o)
{
    mpsim_model m;
    int bad = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        for (size_t k = 0; k < COUNT(formats); k++)
            if (strcmp(formats[k], "binary64") != 0 || m.operands) /* of software models one wide format is enough */
                bad |= run_model(b, o, &m, formats[k]);
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        if (m.addition == MPSIM_ADDITION_GROUPED)
            bad |= run_model(b, o, &m, "e2m1");
    for (size_t i = 0; i < COUNT(typed); i++)
        bad |= mpsim_model_parse(&m, typed[i]) != MPSIM_OK || run_model(b, o, &m, "fp16");
    const char *const best = mpsim_isa_active();
    for (size_t i = 0; mpsim_isa_at(i); i++) {
        if (strcmp(mpsim_isa_at(i), best) == 0 || strcmp(mpsim_isa_at(i), "scalar") == 0 ||
            mpsim_isa_use(mpsim_isa_at(i)) != MPSIM_OK)
            continue;
        for (size_t k = 0; k < COUNT(few); k++)
            bad |= mpsim_model_parse(&m, few[k][0]) != MPSIM_OK || run_model(b, o, &m, few[k][1]);
    }
    (void)mpsim_isa_use(best);
    return bad | run_chains(b, o);
}

static int run_products(bench *b)
{
    operands o = {.x = malloc(N * DEPTH * sizeof *o.x),
                  .f = malloc(N * DEPTH * sizeof *o.f),
                  .codes = malloc(N * DEPTH * 8),
                  .scales = malloc(N * DEPTH),
                  .d = malloc(N * N * 8)};
    int bad = !o.x || !o.f || !o.codes || !o.scales || !o.d;
    for (size_t i = 0; !bad && i < N * DEPTH; i++) {
        const uint32_t w = mpsim_rng_word(1, 0, i);
        o.x[i] = (w & 1 ? 1 : -1) * (double)w * 0x1p-32;
        o.f[i] = (float)o.x[i];
    }
    if (!bad) {
        run_plain(b, &o);
        bad = run_models(b, &o);
    }
    void *codes = malloc(N * DEPTH * 8);
    bad |= !codes || run_strewn(b, &o, codes);
    free(codes);
    free(o.x);
    free(o.f);
    free(o.codes);
    free(o.scales);
    free(o.d);
    return bad;
}

/* ---- stacks ---- */

/* Heads of attention, and a layer: values in binary32, rounded as they enter, results in bf16; compared with the large product. */
static const struct stacks {
    size_t matrices, rows, columns, depth;
} stacks[] = {{64, 128, 128, 32}, {1, 1024, 256, 256}};

typedef struct stacked {
    mpsim_product p;
    mpsim_operand a, b;
    mpsim_stack d;
} stacked;

static void do_stack(void *context)
{
    const stacked *s = context;
    if (mpsim_product_run(&s->p, NULL) != MPSIM_OK)
        abort();
}

static mpsim_stack stack_in(const char *format, void *memory, size_t matrices, size_t rows, size_t cols)
{
    const int64_t apart = (int64_t)(rows * cols);
    return (mpsim_stack){.format = mpsim_format_find(format),
                         .codes = memory,
                         .rank = 3,
                         .shape = {matrices, rows, cols},
                         .strides = {apart, (int64_t)cols, 1}};
}

/* each: seconds of a multiply-add that it is compared with; x: values, at least as many as an operand has. */
static void run_stacks(bench *b, const mpsim_model *m, const mpsim_format *f, float *x, void *d, double each)
{
    for (size_t i = 0; i < COUNT(stacks); i++) {
        const struct stacks *w = &stacks[i];
        const double n = (double)w->matrices * (double)w->rows * (double)w->columns * (double)w->depth;
        const mpsim_stack a = stack_in("binary32", x, w->matrices, w->rows, w->depth);
        const mpsim_stack y = stack_in("binary32", x, w->matrices, w->columns, w->depth);
        stacked s = {.d = stack_in("bf16", d, w->matrices, w->rows, w->columns)};
        char how[64];
        mpsim_operand_init(&s.a, &a, f, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_operand_init(&s.b, &y, f, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_product_init(&s.p);
        s.p.model = m;
        s.p.a = &s.a;
        s.p.b = &s.b;
        s.p.d = &s.d;
        snprintf(how, sizeof how, "%zu of %zux%zux%zu", w->matrices, w->rows, w->columns, w->depth);
        const double t = bench_seconds(b, do_stack, &s);
        const bench_row r = {.operation = "product",
                             .what = m->name,
                             .how = how,
                             .n = n,
                             .per_second = n / t,
                             .ratio = each * n / t,
                             .to = "large"};
        bench_print(b, &r);
    }
}

/* ---- shapes of training ---- */

/* Layers of 64 and 128 features in batches of 64, with both gradients; convolutions of 3 x 3 over
 * 1 and 16 channels as products, with both gradients; the last is large. */
static const struct shape {
    size_t rows, columns, depth;
    int a_transposed, b_transposed;
} shapes[] = {{64, 64, 128, 0, 0},   {64, 128, 64, 0, 1},   {128, 64, 64, 1, 0},   {2048, 16, 9, 0, 1},
              {16, 9, 2048, 1, 0},   {2048, 9, 16, 0, 0},   {2048, 32, 144, 0, 1}, {32, 144, 2048, 1, 0},
              {2048, 144, 32, 0, 0}, {256, 256, 1024, 0, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], MOST = 2048 * 144 };

static const char *const shape_models[][2] = {{"hopper-fp16-fp32", "fp16"},
                                              {"hopper-bf16-fp32", "bf16"},
                                              {"hopper-wgmma-fp8-fp32", "e4m3"},
                                              {"hopper-wgmma-fp8-promoted", "e4m3"},
                                              {"fma", "binary32"},
                                              {"fma", "fp16"},
                                              {"sequential", "binary32"},
                                              {"exact", "fp16"},
                                              {"exact", "bf16"},
                                              {"exact", "e4m3"},
                                              {"exact", "binary32"}};

static int run_shapes(bench *b)
{
    double *x = malloc(MOST * sizeof *x);
    float *values = malloc(MOST * sizeof *values);
    void *a = malloc(MOST * 4), *d = malloc(MOST * 8);
    if (!x || !values || !a || !d)
        return 1;
    for (size_t i = 0; i < MOST; i++) {
        const uint32_t w = mpsim_rng_word(1, 0, i), v = mpsim_rng_word(1, 1, i);
        x[i] = v % 4 ? (w & 1 ? 1 : -1) * (double)w * 0x1p-32 / (1 + (v >> 8) % 16) : 0;
        values[i] = (float)x[i];
    }
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < COUNT(shape_models); i++) {
        const mpsim_format *f = mpsim_format_find(shape_models[i][1]);
        product p = {.frame = b, .d = d};
        if (!bench_wants(b, "shape", shape_models[i][0]))
            continue;
        if (mpsim_model_parse(&p.m, shape_models[i][0]) != MPSIM_OK ||
            mpsim_encode_array_f64(f, &r, NULL, a, x, MOST, NULL) != MPSIM_OK)
            return 1;
        double each = 0; /* seconds of a multiply-add in the large product */
        for (size_t k = SHAPES; k-- > 0;) {
            const struct shape *s = &shapes[k];
            p.rows = s->rows;
            p.columns = s->columns;
            p.depth = s->depth;
            p.a = (mpsim_matrix){f, a, s->a_transposed ? s->rows : s->depth, s->a_transposed};
            p.b = (mpsim_matrix){f, a, s->b_transposed ? s->depth : s->columns, s->b_transposed};
            const double t = bench_seconds(b, do_gemm, &p);
            if (k == SHAPES - 1)
                each = t / multiply_adds(&p);
            report("shape", &p, f->name, "large", each, t);
        }
        run_stacks(b, &p.m, f, values, d, each);
    }
    free(x);
    free(values);
    free(a);
    free(d);
    return 0;
}

/* ---- attention ---- */

/* One head: tokens x tokens scores of 64 numbers, in tiles of 128 keys; compared with its two products alone. */
enum { TOKENS = 1024, HEAD = 64, TILE = 128 };

static const char *const attention_models[][2] = {{"hopper-bf16-fp32", "bf16"},
                                                  {"hopper-bf16-fp32:result=bf16", "bf16"},
                                                  {"hopper-wgmma-fp8-fp32", "e4m3"},
                                                  {"exact", "bf16"}};

typedef struct attention {
    mpsim_attention a;
    mpsim_attention_shape shape;
    mpsim_matrix x;
    float *y;
    void *scores, *p, *sums; /* p: some numbers, as many as P has */
} attention;

static void do_attention(void *context)
{
    attention *h = context;
    if (mpsim_attention_forward(&h->a, &h->shape, &h->x, &h->x, &h->x, h->y, NULL, NULL, NULL, NULL, NULL) != MPSIM_OK)
        abort();
}

/* dq, dk and dv lie where the scores do, which are not needed then. */
static void do_gradients(void *context)
{
    attention *h = context;
    const size_t n = h->shape.queries * HEAD;
    float *const to = h->scores;
    mpsim_attention_gradient g;
    mpsim_attention_gradient_init(&g, &h->a);
    g.dp = g.dvalue = g.dkey = g.dquery = h->a.scores;
    g.p.format = g.ds.format = *h->x.format;
    if (mpsim_attention_backward(&g, &h->shape, &h->x, &h->x, &h->x, &h->x, h->y, NULL, h->y, to, to + n, to + 2 * n,
                                 NULL, NULL) != MPSIM_OK)
        abort();
}

static void do_both_products(void *context)
{
    attention *h = context;
    const size_t n = h->shape.queries;
    mpsim_matrix k = h->x;
    const mpsim_matrix p = {h->x.format, h->p, n, 0};
    k.transposed = 1;
    if (mpsim_gemm(h->a.scores, n, n, HEAD, &h->x, &k, NULL, h->scores, n, NULL, NULL) != MPSIM_OK ||
        mpsim_gemm(h->a.context, n, HEAD, n, &p, &h->x, NULL, h->sums, HEAD, NULL, NULL) != MPSIM_OK)
        abort();
}

static void run_head(bench *b, attention *h, const mpsim_model *m, const char *format)
{
    const double n = 2.0 * (double)h->shape.queries * (double)h->shape.keys * HEAD;
    const double products = bench_seconds(b, do_both_products, h), t = bench_seconds(b, do_attention, h);
    char how[64];
    snprintf(how, sizeof how, "%zux%zux%d %s", h->shape.queries, h->shape.keys, HEAD, format);
    const bench_row r = {.operation = "attention",
                         .what = m->name,
                         .how = how,
                         .n = n,
                         .per_second = n / t,
                         .ratio = products / t,
                         .to = "products"};
    bench_print(b, &r);
    const double back = bench_seconds(b, do_gradients, h);
    const bench_row gradients = {.operation = "attention back",
                                 .what = m->name,
                                 .how = how,
                                 .n = 2.5 * n,
                                 .per_second = 2.5 * n / back,
                                 .ratio = 2.5 * products / back,
                                 .to = "products"};
    bench_print(b, &gradients);
}

static int run_attention(bench *b)
{
    const size_t tokens = b->quick ? TILE : TOKENS;
    attention h = {.shape = {tokens, tokens, HEAD, HEAD},
                   .y = malloc(TOKENS * HEAD * sizeof *h.y),
                   .scores = malloc((size_t)TOKENS * TOKENS * 4),
                   .p = malloc((size_t)TOKENS * TOKENS * 4),
                   .sums = malloc(TOKENS * HEAD * 4)};
    double *x = malloc((size_t)TOKENS * TOKENS * sizeof *x);
    void *codes = malloc(TOKENS * HEAD * 4);
    int bad = !h.y || !h.scores || !h.p || !h.sums || !x || !codes;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; !bad && i < (size_t)TOKENS * TOKENS; i++)
        x[i] = (double)mpsim_rng_word(1, 0, i) * 0x1p-31 - 1;
    for (size_t i = 0; i < COUNT(attention_models) && !bad; i++) {
        mpsim_model m;
        const mpsim_format *f = mpsim_format_find(attention_models[i][1]);
        bad = mpsim_model_parse(&m, attention_models[i][0]) != MPSIM_OK ||
              mpsim_encode_array_f64(f, &r, NULL, codes, x, TOKENS * HEAD, NULL) != MPSIM_OK ||
              mpsim_encode_array_f64(f, &r, NULL, h.p, x, (size_t)TOKENS * TOKENS, NULL) != MPSIM_OK;
        mpsim_attention_init(&h.a, HEAD);
        h.a.scores = h.a.context = &m;
        h.a.p.format = *f;
        h.x = (mpsim_matrix){f, codes, HEAD, 0};
        if (!bad && bench_wants(b, "attention", m.name))
            run_head(b, &h, &m, f->name);
    }
    free(h.y);
    free(h.scores);
    free(h.p);
    free(h.sums);
    free(x);
    free(codes);
    return bad;
}

int main(int argc, char **argv)
{
    bench b;
    const int code = bench_begin(&b, argc, argv, "dot");
    if (code)
        return code;
    bench_part(&b, b.quick ? "Matrix products of 64x64x1024, multiply-adds a second"
                           : "Matrix products of 256x256x1024, multiply-adds a second");
    if (run_products(&b))
        return 1;
    bench_part(&b, "Shapes of training, compared with the large product of the model");
    if (run_shapes(&b))
        return 1;
    bench_part(
        &b, "Attention of one head in tiles of 128 keys, compared with its two products alone, multiply-adds a second");
    if (run_attention(&b))
        return 1;
    return bench_end(&b);
}
