/* t-blocks.cc -- recipes in blocks on the CUDA engine, on the host executor, against the CPU engine:
 * FP4 and its random bits, every rule of powers of two, codes with their factors, random Hadamard
 * transforms, products of codes. */
#include "pairs.h"

#include <mpsim/dot.h>

struct quantized {
    const mpsim_block_recipe *recipe;
    size_t rows, cols;
    input kind;
    const char *from;
    int transposed, factors;
};

static int quantize_one(source *s, const quantized &t)
{
    const mpsim_block_recipe *b = t.recipe;
    const size_t rows = t.transposed ? t.cols : t.rows, cols = t.transposed ? t.rows : t.cols;
    size_t down, across;
    mpsim_block_grid(b, rows, cols, &down, &across);
    pair x(s, format(t.from), t.rows, t.cols, t.kind);
    pair y(format(t.factors ? b->element : "bf16"), rows, cols), f(format("binary32"), down, across);
    train_quantize q, r;
    counts n;
    memset(&q, 0, sizeof q);
    q.recipe = b;
    q.transposed = t.transposed;
    q.rng.seed = s->next();
    q.rng.stream = s->next();
    q.rng.index = s->below(9);
    r = q;
    q.blocks = t.factors ? &f.c : NULL;
    r.blocks = t.factors ? &f.g : NULL;
    return !failed(cpu.ops->quantize(&cpu, &y.c, &x.c, &q, NULL, &n.c) |
                   cuda.ops->quantize(&cuda, &y.g, &x.g, &r, NULL, &n.g)) &&
           y.same(b->name) && f.same("factors") && n.same(b->name);
}

static void test_quantize(source *s)
{
    for (const char *name : {"nvfp4", "nvfp4-2d", "nvfp4-sr", "mxfp8-floor", "mxfp8-even", "mxfp8-ceil",
                             "mxfp8-rceil", "te-block-1x128", "te-block-128x128", "mxfp8", "deepseek-1x128",
                             "deepseek-128x128", "deepgemm-1x128", "deepgemm-128x128"}) {
        const mpsim_block_recipe *b = mpsim_block_find(name);
        int good = 1;
        for (const char *from : {"binary32", "bf16", "fp16"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW})
                    for (int bits = 0; bits < 4; bits++) {
                        const int factors = bits / 2 && strcmp(b->element, "e2m1");
                        if (chosen(s, 12))
                            good = good && quantize_one(s, {b, a.rows, a.cols, kind, from, bits & 1,
                                                            factors});
                    }
        OK(good, "quantising: %s, straight and transposed", name);
    }
}

/* Every distance between numbers of FP4, and every word's first bits, in blocks whose scale is 1. */
static void test_random_bits(source *s)
{
    const size_t rows = 256, cols = 160;
    std::vector<float> x(rows * cols);
    for (size_t i = 0; i < x.size(); i++)
        x[i] = i % 16 == 0 ? 2688 : (float)((s->unit() - 0.5) * 2 * 2688);
    pair a(format("bf16"), rows, cols), b(format("binary32"), rows, cols, x), y(format("bf16"), rows, cols);
    train_quantize q;
    counts n;
    memset(&q, 0, sizeof q);
    q.recipe = mpsim_block_find("nvfp4-sr");
    q.rng.seed = 3;
    OK(BOTH(cast, of(a), of(b), MPSIM_ROUND_NEAREST_EVEN, NULL) &&
           !failed(cpu.ops->quantize(&cpu, &y.c, &a.c, &q, NULL, &n.c) |
                   cuda.ops->quantize(&cuda, &y.g, &a.g, &q, NULL, &n.g)) &&
           y.same("nvfp4-sr") && n.same("nvfp4-sr"),
       "quantising: nvfp4-sr, numbers between all neighbours");
}

static void test_hadamard(source *s)
{
    int good = 1;
    for (const char *f : all_formats)
        for (const shape &a : {shape{1, 16}, shape{3, 5}, shape{257, 47}, shape{64, 64}, shape{1, 300}})
            for (input kind : {ORDINARY, WIDE, CODES})
                for (int transposed : {0, 1}) {
                    pair x(s, format(f), a.rows, a.cols, kind);
                    pair y(format(f), transposed ? a.cols : a.rows, transposed ? a.rows : a.cols);
                    good = good && BOTH(hadamard, of(y), of(x), transposed) && y.same("hadamard");
                }
    OK(good, "random Hadamard transforms, straight and transposed");
}

static int product(source *s, const char *fa, const char *fb, size_t rows, size_t cols, size_t depth,
                   size_t b_rows, const char *fd, int bias, size_t limit)
{
    mpsim_model m;
    if (mpsim_model_for(&m, "hopper", format(fa), format(fb), format("binary32")) != MPSIM_OK)
        return 0;
    pair a(s, format(fa), rows, depth, ORDINARY), b(s, format(fb), cols, depth, CODES);
    pair u(s, format("binary32"), rows, (depth + 127) / 128, WIDE);
    pair v(s, format("binary32"), (cols + b_rows - 1) / b_rows, (depth + 127) / 128, ORDINARY);
    pair d(format(fd), rows, cols), z(s, format("bf16"), 1, cols, ORDINARY);
    counts n;
    train_gemm g;
    memset(&g, 0, sizeof g);
    g.model = &m;
    g.b_transposed = 1;
    g.depth_limit = limit;
    g.a_rows = 1;
    g.b_rows = b_rows;
    g.promote = 128;
    train_gemm h = g;
    g.a = &a.c, g.b = &b.c, g.a_blocks = &u.c, g.b_blocks = &v.c, g.bias = bias ? &z.c : NULL;
    h.a = &a.g, h.b = &b.g, h.a_blocks = &u.g, h.b_blocks = &v.g, h.bias = bias ? &z.g : NULL;
    return !failed(cpu.ops->gemm(&cpu, &d.c, &g, &n.c) | cuda.ops->gemm(&cuda, &d.g, &h, &n.g)) &&
           d.same(m.name) && n.same(m.name);
}

static void test_products(source *s)
{
    OK(product(s, "e4m3", "e4m3", 20, 9, 128, 1, "binary32", 0, 0) &&
           product(s, "e4m3", "e4m3", 3, 150, 300, 128, "bf16", 1, 0) &&
           product(s, "e5m2", "e4m3", 5, 4, 129, 1, "fp16", 0, 0) &&
           product(s, "e4m3", "e5m2", 7, 130, 513, 128, "binary32", 1, 200) &&
           product(s, "e4m3", "e4m3", 2, 2, 5, 1, "bf16", 0, 0),
       "products of codes, the sums of 128 with their factors");
}

/* What both engines refuse, in words that name it. */
static void test_errors(source *s)
{
    pair x(s, format("bf16"), 4, 32, ORDINARY), y(format("bf16"), 4, 32), f(format("binary32"), 4, 2);
    pair e(format("e4m3"), 4, 32);
    train_quantize q;
    memset(&q, 0, sizeof q);
    q.recipe = mpsim_block_find("nvfp4-torchao");
    OK(cuda.ops->quantize(&cuda, &y.g, &x.g, &q, NULL, NULL) == -1 &&
           strstr(cuda.error, "no kernel for recipe nvfp4-torchao"),
       "a recipe without a kernel is an error");
    int good = 1;
    for (int i = 0; i < 2; i++) {
        train_engine *g = i ? &cuda : &cpu;
        train_tensor *blocks = i ? &f.g : &f.c;
        q.recipe = mpsim_block_find("nvfp4");
        q.blocks = blocks;
        good = good && g->ops->quantize(g, i ? &e.g : &e.c, i ? &x.g : &x.c, &q, NULL, NULL) == -1;
        q.recipe = mpsim_block_find("mxfp8"); /* 4 x 1 blocks, not 4 x 2 */
        good = good && g->ops->quantize(g, i ? &e.g : &e.c, i ? &x.g : &x.c, &q, NULL, NULL) == -1 &&
               strstr(g->error, "quantize: blocks: a tensor is 4 x 2 where 4 x 1 is needed");
        good = good && g->ops->hadamard(g, i ? &x.g : &x.c, i ? &x.g : &x.c, 0) == -1 &&
               strstr(g->error, "the result is the operand");
    }
    OK(good, "factors of the wrong shape, a transform in place");
}

int main()
{
    source s = {77};
    if (open_engines())
        return 1;
    test_quantize(&s);
    test_random_bits(&s);
    test_hadamard(&s);
    test_products(&s);
    test_errors(&s);
    OK(cuda.ops->finish(&cuda) == 0, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    printf("# %llu values compared\n", (unsigned long long)compared);
    return tap_end();
}
