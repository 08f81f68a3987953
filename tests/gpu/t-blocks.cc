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
    for (const char *name :
         {"nvfp4", "nvfp4-2d", "nvfp4-sr", "mxfp8-floor", "mxfp8-even", "mxfp8-ceil", "mxfp8-rceil", "te-block-1x128",
          "te-block-128x128", "mxfp8", "deepseek-1x128", "deepseek-128x128", "deepgemm-1x128", "deepgemm-128x128"}) {
        const mpsim_block_recipe *b = mpsim_block_find(name);
        int good = 1;
        for (const char *from : {"binary32", "bf16", "fp16"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW})
                    for (int bits = 0; bits < 4; bits++) {
                        const int factors = bits / 2 && strcmp(b->element, "e2m1");
                        if (chosen(s, 24))
                            good = good && quantize_one(s, {b, a.rows, a.cols, kind, from, bits & 1, factors});
                    }
        OK(good, "quantising: %s, straight and transposed", name);
    }
}

/* Tensors that are large enough for the kernels of gpu/kernels/blocks.cuh. */
static void test_large(source *s)
{
    unsigned index = 0;
    int good = 1;
    for (const char *name :
         {"te-block-1x128", "mxfp8", "mxfp8-e5m2", "mxfp8-floor", "deepseek-1x128", "deepgemm-1x128"})
        for (const char *from : {"binary32", "bf16", "fp16"})
            for (input kind : {ORDINARY, WIDE})
                if (test_in_part(index++, 6))
                    good = good && quantize_one(s, {mpsim_block_find(name), 259, 256, kind, from, 0, kind == WIDE});
    OK(good, "quantising: large tensors, blocks in a row");
}

/* x and its transpose, by one launch that reads x once; more: as codes with factors. */
static int quantize_both(source *s, const char *name, const char *from, size_t rows, size_t cols, input kind, int codes)
{
    const mpsim_block_recipe *b = mpsim_block_find(name);
    const char *to = codes ? b->element : "bf16";
    pair x(s, format(from), rows, cols, kind), y(format(to), rows, cols), z(format(to), cols, rows);
    pair f(format("binary32"), rows, (cols + 31) / 32), h(format("binary32"), cols, (rows + 31) / 32);
    counts n[2];
    float amax[2][2] = {{0, 0}, {0, 0}};
    train_quantize how[4];
    memset(how, 0, sizeof how);
    for (int i = 0; i < 4; i++) {
        how[i].recipe = b;
        how[i].transposed = i % 2;
        how[i].blocks = !codes ? NULL : i == 0 ? &f.c : i == 1 ? &h.c : i == 2 ? &f.g : &h.g;
    }
    const train_quantized of_cpu[] = {{&y.c, &x.c, &how[0], &amax[0][0], &n[0].c},
                                      {&z.c, &x.c, &how[1], &amax[0][1], &n[1].c}};
    const train_quantized of_cuda[] = {{&y.g, &x.g, &how[2], &amax[1][0], &n[0].g},
                                       {&z.g, &x.g, &how[3], &amax[1][1], &n[1].g}};
    if (failed(cpu.ops->quantize_list(&cpu, of_cpu, 2)))
        return 0;
    const uint64_t before = gpu_host.launches;
    if (failed(cuda.ops->quantize_list(&cuda, of_cuda, 2)) || gpu_host.launches != before + 1)
        return 0;
    return y.same(name) && z.same("transposed") && f.same("factors") && h.same("factors, transposed") &&
           n[0].same(name) && n[1].same("transposed") && memcmp(amax[0], amax[1], sizeof amax[0]) == 0;
}

static void test_both(source *s)
{
    unsigned index = 0;
    int good = 1;
    for (const char *name : {"mxfp8", "mxfp8-e5m2", "mxfp8-floor", "mxfp8-rceil"})
        for (const char *from : {"binary32", "bf16", "fp16"})
            for (input kind : {ORDINARY, WIDE, CODES})
                if (test_in_part(index++, 6))
                    good = good && quantize_both(s, name, from, 288, 352, kind, kind != WIDE) &&
                           quantize_both(s, name, from, 416, 160, kind, kind == WIDE);
    OK(good, "quantising: x and its transpose by one launch");
    good = 1;
    for (const char *from : {"binary32", "bf16", "fp16"})
        for (input kind : {ORDINARY, WIDE})
            good = good && quantize_one(s, {mpsim_block_find("mxfp8"), 256, 264, kind, from, 1, kind == WIDE});
    OK(good, "quantising: a large transpose alone");
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

struct blocks_product {
    const char *fa, *fb, *fd;
    size_t rows, cols, depth, a_rows, b_rows, promote, limit;
    int bias;
    float inverse;
    input factors;
};

/* Of codes, with factors, on both engines; *launches: those of the device. */
static int product(source *s, const blocks_product &t, uint64_t *launches)
{
    const size_t blocks = (t.depth + t.promote - 1) / t.promote;
    mpsim_model m;
    if (mpsim_model_for(&m, "hopper", format(t.fa), format(t.fb), format("binary32")) != MPSIM_OK)
        return 0;
    pair a(s, format(t.fa), t.rows, t.depth, ORDINARY), b(s, format(t.fb), t.cols, t.depth, CODES);
    pair u(s, format("binary32"), (t.rows + t.a_rows - 1) / t.a_rows, blocks, t.factors);
    pair v(s, format("binary32"), (t.cols + t.b_rows - 1) / t.b_rows, blocks, ORDINARY);
    pair d(format(t.fd), t.rows, t.cols), z(s, format("bf16"), 1, t.cols, ORDINARY);
    counts n;
    train_gemm g;
    memset(&g, 0, sizeof g);
    g.model = &m;
    g.b_transposed = 1;
    g.depth_limit = t.limit;
    g.a_rows = t.a_rows;
    g.b_rows = t.b_rows;
    g.promote = t.promote;
    a.c.inverse = a.g.inverse = t.inverse;
    train_gemm h = g;
    g.a = &a.c, g.b = &b.c, g.a_blocks = &u.c, g.b_blocks = &v.c, g.bias = t.bias ? &z.c : NULL;
    h.a = &a.g, h.b = &b.g, h.a_blocks = &u.g, h.b_blocks = &v.g, h.bias = t.bias ? &z.g : NULL;
    if (failed(cpu.ops->gemm(&cpu, &d.c, &g, &n.c)))
        return 0;
    const uint64_t before = gpu_host.launches;
    if (failed(cuda.ops->gemm(&cuda, &d.g, &h, &n.g)))
        return 0;
    *launches = gpu_host.launches - before;
    return d.same(m.name) && n.same(m.name);
}

static void test_products(source *s)
{
    static const blocks_product one_launch[] = {
        {"e4m3", "e4m3", "binary32", 20, 9, 128, 1, 1, 128, 0, 0, 1, WIDE},
        {"e4m3", "e4m3", "bf16", 3, 150, 300, 1, 128, 128, 0, 1, 1, WIDE},
        {"e5m2", "e4m3", "fp16", 5, 4, 129, 1, 1, 128, 0, 0, 1, ORDINARY},
        {"e4m3", "e5m2", "binary32", 7, 130, 513, 1, 128, 128, 200, 1, 0.75f, WIDE},
        {"e5m2", "e5m2", "binary32", 131, 5, 256, 128, 1, 128, 0, 0, 1, CODES},
        {"e4m3", "e4m3", "binary32", 140, 140, 1168, 128, 128, 128, 0, 1, 1, WIDE},
        {"e4m3", "e4m3", "binary32", 9, 17, 640, 3, 5, 128, 0, 0, 1, WIDE},
        {"e4m3", "e4m3", "bf16", 2, 2, 5, 1, 1, 128, 0, 0, 1, ORDINARY}};
    uint64_t launches = 0;
    int good = 1, once = 1;
    unsigned k = 0;
    for (const auto &t : one_launch) {
        if (!test_in_part(k++, 2))
            continue;
        good = good && product(s, t, &launches);
        once = once && launches == 1;
    }
    OK(good, "products of codes, the sums of 128 with their factors");
    OK(once, "each is one launch");
    const blocks_product others = {"e4m3", "e4m3", "bf16", 20, 33, 200, 1, 1, 64, 0, 1, 0.75f, WIDE};
    OK(product(s, others, &launches) && launches == 2 * 4 + 1, "blocks of another length, a product for each");
}

/* Where factors times sums underflow s becomes -0, and stays so over the zeros behind the depth. */
static void test_negative_zero()
{
    std::vector<float> small(4 * 128, 0x1p-9f), least(4, -0x1p-149f), one(4, 1.0f);
    mpsim_model m;
    train_gemm g;
    counts n;
    memset(&g, 0, sizeof g);
    pair a(format("e4m3"), 4, 128, small), b(format("e4m3"), 4, 128, small), d(format("binary32"), 4, 4);
    pair u(format("binary32"), 4, 1, least), v(format("binary32"), 4, 1, one);
    int good = mpsim_model_parse(&m, "hopper-wgmma-fp8-fp32") == MPSIM_OK;
    g.model = &m;
    g.b_transposed = 1;
    g.a_rows = g.b_rows = 1;
    g.promote = 128;
    g.a = &a.g, g.b = &b.g, g.a_blocks = &u.g, g.b_blocks = &v.g;
    float got[16];
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, &n.g) == 0 && cuda.ops->get(&cuda, &d.g, got) == 0;
    for (float x : got)
        good = good && x == 0 && signbit(x);
    OK(good, "a sum that underflows to -0 keeps its sign");
}

/* Promoted sums that begin with what is in d, over an odd and an even number of blocks. */
static void test_promoted_goes_on(source *s)
{
    int good = 1;
    unsigned k = 0;
    for (size_t depth : {(size_t)40, (size_t)1040, (size_t)300, (size_t)512}) {
        if (!test_in_part(k++ / 2, 2))
            continue;
        mpsim_model m;
        train_gemm g;
        counts n;
        memset(&g, 0, sizeof g);
        good = good && mpsim_model_parse(&m, "hopper-wgmma-fp8-promoted") == MPSIM_OK;
        pair a(s, format("e4m3"), 131, depth, ORDINARY), b(s, format("e5m2"), 7, depth, ORDINARY);
        pair d(s, format("binary32"), 131, 7, ORDINARY);
        g.model = &m;
        g.b_transposed = 1;
        g.start = TRAIN_FROM_SUM;
        train_gemm h = g;
        g.a = &a.c, g.b = &b.c;
        h.a = &a.g, h.b = &b.g;
        good = good && !failed(cpu.ops->gemm(&cpu, &d.c, &g, &n.c) | cuda.ops->gemm(&cuda, &d.g, &h, &n.g)) &&
               d.same(m.name) && n.same(m.name);
    }
    OK(good, "promoted sums that go on");
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
               strstr(g->error, "quantize: blocks: a tensor must be 4 x 1, not 4 x 2");
        good = good && g->ops->hadamard(g, i ? &x.g : &x.c, i ? &x.g : &x.c, 0) == -1 &&
               strstr(g->error, "result and operand must be different");
    }
    OK(good, "factors of the wrong shape, a transform in place");
}

int main()
{
    source s = {77};
    if (open_engines())
        return 1;
    test_large(&s);
    test_both(&s);
    test_quantize(&s);
    test_random_bits(&s);
    test_hadamard(&s);
    test_products(&s);
    test_negative_zero();
    test_promoted_goes_on(&s);
    test_errors(&s);
    OK(cuda.ops->finish(&cuda) == 0, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    printf("# %llu values compared\n", (unsigned long long)compared);
    return tap_end();
}
