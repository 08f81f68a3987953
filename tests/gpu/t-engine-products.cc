/* t-engine-products.cc -- the CUDA engine of training on a CPU: blocks, the optimizer and matrix products against the CPU
 * engine, bit for bit. */
#include "pairs.h"

/* ---- quantising ---- */

static int quantize_one(source *s, const mpsim_block_recipe *b, const shape &a, input kind, int transposed,
                        const char *from, float given)
{
    const int whole = b->block_rows == 0 && b->block_cols == 0;
    const mpsim_format *f = format(whole ? b->element : "bf16");
    pair x(s, format(from), a.rows, a.cols, kind);
    pair y(f, transposed ? a.cols : a.rows, transposed ? a.rows : a.cols);
    train_quantize q;
    counts n;
    float u = 0, v = 0;
    memset(&q, 0, sizeof q);
    q.recipe = b;
    q.transposed = transposed;
    q.given = given;
    return !failed(cpu.ops->quantize(&cpu, &y.c, &x.c, &q, &u, &n.c) |
                   cuda.ops->quantize(&cuda, &y.g, &x.g, &q, &v, &n.g) | cuda.ops->finish(&cuda)) &&
           y.same(b->name) && same_float("amax", u, v) && n.same(b->name);
}

/* Many at once, of which launches take those alike: recipes of one launch and of two, straight and transposed,
 * with factors apart, formats, random numbers, some of them empty. */
static void test_quantize_list()
{
    enum { N = 90 };
    static const char *const names[] = {"mxfp8", "mxfp8-e5m2", "te-current", "given", "te-block-128x128", "nvfp4-sr"};
    source s = {15};
    std::vector<pair *> x, y;
    std::vector<counts> n(N);
    std::vector<train_quantize> how(N);
    std::vector<train_quantized> u, v;
    std::vector<mpsim_block_recipe> b(N);
    std::vector<float> p(N), q(N);
    for (size_t i = 0; i < N; i++) {
        const char *name = names[s.below(i % 2 ? 6 : 2)], *from = i % 3 ? "bf16" : "binary32";
        const size_t rows = s.below(9) ? 1 + s.below(70) : 0, cols = 1 + s.below(90);
        const int given = strcmp(name, "given") == 0, transposed = (int)s.below(2);
        b[i] = *mpsim_block_find(given ? "te-current" : name);
        if (given)
            b[i].rule = MPSIM_SCALE_GIVEN;
        x.push_back(new pair(&s, format(from), rows, cols, ORDINARY));
        y.push_back(new pair(format(b[i].block_rows ? "bf16" : b[i].element), transposed ? cols : rows,
                             transposed ? rows : cols));
        memset(&how[i], 0, sizeof how[i]);
        how[i].recipe = &b[i];
        how[i].transposed = transposed;
        how[i].given = (float)(1 + s.below(5));
        how[i].rng.stream = i;
        u.push_back(train_quantized{&y[i]->c, &x[i]->c, &how[i], i % 4 ? &p[i] : NULL, &n[i].c});
        v.push_back(train_quantized{&y[i]->g, &x[i]->g, &how[i], i % 4 ? &q[i] : NULL, &n[i].g});
    }
    int good = !failed(cpu.ops->quantize_list(&cpu, u.data(), N) | cuda.ops->quantize_list(&cuda, v.data(), N) |
                       cuda.ops->finish(&cuda));
    for (size_t i = 0; i < N; i++) {
        good = good && y[i]->same(b[i].name) && n[i].same(b[i].name) && same_float("amax", p[i], q[i]);
        delete x[i];
        delete y[i];
    }
    OK(good, "quantising: %d tensors at once", (int)N);
}

/* Blocks whose largest element lies at a power of two times the format's largest number, or beside
 * it. */
static void test_scales(source *s)
{
    const mpsim_format *single = format("binary32");
    for (const char *name : {"mxfp8", "mxfp8-e5m2", "te-block-1x128"}) {
        const mpsim_block_recipe *b = mpsim_block_find(name);
        const float max = (float)mpsim_format_max(format(b->element));
        const size_t rows = 3 * 280, cols = b->block_cols;
        std::vector<float> x(rows * cols, 0.0f);
        for (size_t i = 0; i < rows; i++) {
            const float most = ldexpf(max, (int)(i / 3) - 152);
            float *to = &x[i * cols];
            to[7] = i % 3 == 0 ? most : nextafterf(most, i % 3 == 1 ? INFINITY : 0);
            for (size_t k = 8; k < cols; k++)
                to[k] = (float)(s->unit() - 0.5) * (to[7] < FLT_MAX ? to[7] : 1) * (k % 4 ? 1 : 0x1p-17f);
        }
        pair a(single, rows, cols, x), y(format("bf16"), rows, cols);
        train_quantize q;
        counts n;
        memset(&q, 0, sizeof q);
        q.recipe = b;
        OK(!failed(cpu.ops->quantize(&cpu, &y.c, &a.c, &q, NULL, &n.c) |
                   cuda.ops->quantize(&cuda, &y.g, &a.g, &q, NULL, &n.g)) &&
               y.same(name) && n.same(name),
           "quantising: %s, every scale and what is beside it", name);
    }
}

static void test_quantize()
{
    source s = {10};
    for (const char *name : {"te-current", "te-current-e5m2", "te-current-pow2", "te-block-1x128", "te-block-128x128",
                             "mxfp8", "mxfp8-e5m2", "given"}) {
        mpsim_block_recipe b = *mpsim_block_find(strcmp(name, "given") ? name : "te-current");
        int good = 1;
        if (strcmp(name, "given") == 0)
            b.rule = MPSIM_SCALE_GIVEN;
        for (const char *from : {"binary32", "bf16", "fp16"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW})
                    for (int transposed : {0, 1})
                        for (float given : {1.0f, 0x1.234p5f, 0.0f, 0x1p120f})
                            if ((given == 1 || b.rule == MPSIM_SCALE_GIVEN) && chosen(&s, 40))
                                good = good && quantize_one(&s, &b, a, kind, transposed, from, given);
        OK(good, "quantising: %s, straight and transposed", name);
    }
    test_scales(&s);
    test_quantize_list();
}

/* ---- the optimizer ---- */

struct settings {
    const char *variant, *param, *state;
    mpsim_optim_algorithm algorithm;
    mpsim_store store;
    int amsgrad, nesterov, maximize;
    double momentum, dampening, decay, grad_scale;
};

static mpsim_optim optim_of(const settings &t)
{
    mpsim_optim o;
    mpsim_optim_init(&o, t.algorithm, mpsim_optim_variant_find(t.variant));
    o.store = (uint8_t)t.store;
    o.amsgrad = (uint8_t)t.amsgrad;
    o.nesterov = (uint8_t)t.nesterov;
    o.maximize = (uint8_t)t.maximize;
    o.momentum = t.momentum;
    o.dampening = t.dampening;
    o.weight_decay = t.decay;
    o.grad_scale = t.grad_scale;
    o.lr = 0x1.9p-7;
    if (t.decay == 0.3) { /* both ways of a lerp meet at 1/2; the factor of the squares is 1 */
        o.beta1 = 0.5;
        o.beta2 = 0;
    } else if (t.decay == 0.01) {
        o.beta1 = 0.4;
    }
    o.param = *format(t.param);
    o.state = *format(t.state);
    return o;
}

static int optim_run(source *s, const settings &t, input kind, int counting)
{
    const mpsim_format *p = format(t.param), *m = format(t.state);
    enum { ROWS = 19, COLS = 31 };
    const mpsim_optim o = optim_of(t);
    pair w(s, p, ROWS, COLS, kind), m1(m, ROWS, COLS), m2(m, ROWS, COLS), m3(m, ROWS, COLS);
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (uint64_t step = 1; step <= 4; step++) {
        pair g(s, p, ROWS, COLS, kind);
        mpsim_rng rng = {5, 77, step * 1000003};
        const int adam = t.algorithm != MPSIM_OPTIM_SGD;
        train_update u = {&w.c,
                          &g.c,
                          adam || t.momentum != 0 ? &m1.c : NULL,
                          adam ? &m2.c : NULL,
                          t.amsgrad ? &m3.c : NULL,
                          NULL,
                          &o,
                          step,
                          &rng,
                          NULL};
        train_update v = {&w.g, &g.g, u.m ? &m1.g : NULL, u.v ? &m2.g : NULL, u.vmax ? &m3.g : NULL, NULL, &o, step,
                          &rng, NULL};
        if (failed(cpu.ops->optim(&cpu, &u, 1, counting ? &a : NULL, counting ? &b : NULL) |
                   cuda.ops->optim(&cuda, &v, 1, counting ? &c : NULL, counting ? &d : NULL) | cuda.ops->finish(&cuda)))
            return 0;
        if (!w.same("parameter") || !m1.same("m") || !m2.same("v") || !m3.same("vmax") || a != c || b != d) {
            printf("# step %llu, updates %llu %llu, lost %llu %llu\n", (unsigned long long)step, (unsigned long long)a,
                   (unsigned long long)c, (unsigned long long)b, (unsigned long long)d);
            return 0;
        }
    }
    return 1;
}

static void test_optim()
{
    const mpsim_optim_algorithm sgd = MPSIM_OPTIM_SGD, adam = MPSIM_OPTIM_ADAM, adamw = MPSIM_OPTIM_ADAMW;
    const mpsim_store nearest = MPSIM_STORE_NEAREST, chance = MPSIM_STORE_STOCHASTIC;
    static const struct {
        mpsim_optim_algorithm algorithm;
        int amsgrad, nesterov, maximize;
        double momentum, dampening, decay;
    } rows[] = {{sgd, 0, 0, 0, 0, 0, 0},       {sgd, 0, 0, 0, 0.9, 0, 0},   {sgd, 0, 1, 0, 0.9, 0, 0.01},
                {sgd, 0, 0, 1, 0.7, 0.2, 0.1}, {adam, 0, 0, 0, 0, 0, 0},    {adam, 1, 0, 0, 0, 0, 0.01},
                {adamw, 0, 0, 1, 0, 0, 0.01},  {adamw, 1, 0, 0, 0, 0, 0.3}, {adamw, 0, 0, 0, 0, 0, 0}};
    source s = {11};
    for (const char *variant : {"ieee", "torch", "torch-foreach", "torch-fused-c", "torch-cpu", "apex", "torchao"})
        for (const char *param : {"binary32", "bf16", "fp16"}) {
            int good = 1;
            for (const auto &r : rows)
                for (const char *state : {"binary32", "bf16"})
                    for (mpsim_store store : {nearest, chance})
                        for (input kind : {ORDINARY, WIDE, CODES})
                            for (double grad_scale : {1.0, 3.0}) {
                                const settings t = {variant,    param,       state,      r.algorithm,
                                                    store,      r.amsgrad,   r.nesterov, r.maximize,
                                                    r.momentum, r.dampening, r.decay,    grad_scale};
                                const mpsim_optim o = optim_of(t);
                                if (mpsim_optim_check(&o) != MPSIM_OK || !chosen(&s, 24))
                                    continue;
                                good = good && optim_run(&s, t, kind, kind != WIDE);
                            }
            OK(good, "steps of %s with parameters in %s, counted", variant, param);
        }
    mpsim_optim o;
    mpsim_optim_init(&o, adamw, mpsim_optim_variant_find("optimi"));
    o.store = MPSIM_STORE_KAHAN;
    pair w(&s, format("binary32"), 2, 2, ORDINARY), g(&s, format("binary32"), 2, 2, ORDINARY);
    train_update u = {&w.g, &g.g, &w.g, &w.g, NULL, &w.g, &o, 1, NULL, NULL};
    OK(cuda.ops->optim(&cuda, &u, 1, NULL, NULL) == -1 && strstr(cuda.error, "variant optimi"),
       "a variant without a kernel is an error");
    mpsim_optim_init(&o, MPSIM_OPTIM_LION, mpsim_optim_variant_find("ieee"));
    OK(cuda.ops->optim(&cuda, &u, 1, NULL, NULL) == -1 && strstr(cuda.error, "the device has no Lion"),
       "an algorithm that the CPU alone has is an error");
}

/* ---- products ---- */

static int gemm_one(source *s, const char *fa, const char *fb, const char *fd, size_t rows, size_t cols, size_t depth,
                    int ta, int tb, input kind, int bias, size_t limit)
{
    mpsim_model m;
    const mpsim_format *single = format("binary32");
    if (strcmp(fa, "binary32") == 0 ? mpsim_model_parse(&m, "fma") != MPSIM_OK
                                    : mpsim_model_for(&m, "hopper", format(fa), format(fb), single) != MPSIM_OK)
        return 0;
    pair a(s, format(fa), ta ? depth : rows, ta ? rows : depth, kind);
    pair b(s, format(fb), tb ? cols : depth, tb ? depth : cols, kind);
    pair d(format(fd), rows, cols), z(s, format("bf16"), 1, cols, ORDINARY);
    counts n;
    const int scaled = strncmp(fa, "e", 1) == 0;
    a.c.inverse = a.g.inverse = scaled ? 0x1.3p-2f : 1;
    train_gemm u = {&m, &a.c,   &b.c,   ta,     tb, bias ? &z.c : NULL, limit, NULL, NULL, 0, 0, 0, 0,
                    0,  {0, 0}, {0, 0}, {0, 0}, 0};
    train_gemm v = {&m, &a.g,   &b.g,   ta,     tb, bias ? &z.g : NULL, limit, NULL, NULL, 0, 0, 0, 0,
                    0,  {0, 0}, {0, 0}, {0, 0}, 0};
    return !failed(cpu.ops->gemm(&cpu, &d.c, &u, &n.c) | cuda.ops->gemm(&cuda, &d.g, &v, &n.g)) && d.same(m.name) &&
           n.same(m.name);
}

static void test_gemm()
{
    static const char *const operands[][2] = {{"binary32", "binary32"}, {"fp16", "fp16"}, {"bf16", "bf16"},
                                              {"tf32", "tf32"},         {"e4m3", "e4m3"}, {"e4m3", "e5m2"},
                                              {"e5m2", "e4m3"}};
    source s = {12};
    for (const auto &f : operands) {
        int good = 1;
        for (int t = 0; t < 4; t++)
            for (input kind : {ORDINARY, WIDE, CODES}) {
                if (!chosen(&s, 8))
                    continue;
                good = good && gemm_one(&s, f[0], f[1], "binary32", 5, 3, 7, t & 1, t / 2, kind, 0, 0);
                good = good && gemm_one(&s, f[0], f[1], "fp16", 33, 20, 65, t & 1, t / 2, kind, 1, 0);
                good = good && gemm_one(&s, f[0], f[1], "bf16", 64, 16, 32, t & 1, t / 2, kind, 1, 9);
            }
        OK(good, "products of %s and %s", f[0], f[1]);
    }
}

/* A product of a list, on both engines. */
struct listed {
    pair *a, *b, *d, *bias;
    mpsim_model model;
    train_gemm u, v;
    counts n;
};

static void list_one(source *s, listed *x, const char *operand, const char *result)
{
    const size_t rows = 1 + s->below(90), cols = s->below(20) ? 1 + s->below(90) : 0, depth = 1 + s->below(40);
    const size_t stacks = s->below(3), high = stacks ? stacks : 1;
    const int ta = (int)s->below(2), tb = (int)s->below(2);
    const int to_sum = strcmp(result, "binary32") == 0 && s->below(2);
    x->a = new pair(s, format(operand), high * (ta ? depth : rows), ta ? rows : depth, ORDINARY);
    x->b = new pair(s, format(operand), high * (tb ? cols : depth), tb ? depth : cols, ORDINARY);
    x->d = new pair(s, format(result), high * rows, cols, ORDINARY);
    x->bias = new pair(s, format("bf16"), 1, cols, ORDINARY);
    memset(&x->u, 0, sizeof x->u);
    x->u.model = &x->model;
    x->u.a_transposed = ta;
    x->u.b_transposed = tb;
    x->u.stacks = stacks;
    x->u.start = (uint8_t)(to_sum ? s->below(3) : 0);
    const int biased = !stacks && !x->u.start && s->below(4) == 0;
    x->v = x->u;
    x->u.a = &x->a->c;
    x->v.a = &x->a->g;
    x->u.b = &x->b->c;
    x->v.b = &x->b->g;
    x->u.bias = biased ? &x->bias->c : NULL;
    x->v.bias = biased ? &x->bias->g : NULL;
}

/* More products than a launch takes: operands and results in several formats, as many as two of the latter and
 * more, stacks, sums that go on, with and without bias, and some without elements. */
static void test_gemm_list()
{
    enum { N = 70 };
    static const char *const operands[] = {"binary32", "bf16", "bf16", "e4m3"};
    static const char *const results[] = {"binary32", "bf16", "fp16"};
    source s = {16};
    std::vector<listed> all(N);
    std::vector<train_multiply> u, v;
    int good = 1;
    for (listed &x : all) {
        const char *f = operands[s.below(4)];
        good = good && (strcmp(f, "binary32") == 0
                            ? mpsim_model_parse(&x.model, "fma")
                            : mpsim_model_for(&x.model, "hopper", format(f), format(f), format("binary32"))) == 0;
        list_one(&s, &x, f, results[s.below(3)]);
        u.push_back(train_multiply{&x.d->c, &x.u, &x.n.c});
        v.push_back(train_multiply{&x.d->g, &x.v, &x.n.g});
    }
    good = good && !failed(cpu.ops->gemm_list(&cpu, u.data(), N) | cuda.ops->gemm_list(&cuda, v.data(), N));
    for (listed &x : all) {
        good = good && x.d->same("products") && x.n.same("products");
        delete x.a;
        delete x.b;
        delete x.d;
        delete x.bias;
    }
    OK(good, "%d products at once", (int)N);
}

int main()
{
    if (open_engines())
        return 1;
    test_quantize();
    test_optim();
    test_gemm();
    test_gemm_list();
    const int clean = cuda.ops->finish(&cuda) == 0;
    OK(clean, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    printf("# %llu values compared\n", (unsigned long long)compared);
    return tap_end();
}
