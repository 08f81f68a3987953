/* t-engine.cc -- the CUDA engine of training on a CPU: every operation against the CPU engine, bit
 * for bit; blocks, the optimizer and products are t-engine-products.cc's. */
#include "pairs.h"

/* ---- casts ---- */

static int cast_one(const mpsim_format *to, const mpsim_format *from, const std::vector<float> &x, size_t rows,
                    size_t cols, mpsim_round_mode mode)
{
    pair a(from, rows, cols, x), y(to, rows, cols);
    counts n;
    char what[200];
    snprintf(what, sizeof what, "%s to %s, %s", from->name, to->name, mpsim_round_mode_name(mode));
    return BOTH(cast, of(y), of(a), mode, of(n)) && y.same(what) && n.same(what);
}

/* Numbers around every code of a format of at most 16 bits: itself, midpoints, neighbours. */
static std::vector<float> around(const mpsim_format *f, unsigned stride)
{
    std::vector<float> x;
    for (uint64_t code = 0; code < (uint64_t)1 << f->bits; code += stride) {
        const float v = (float)mpsim_decode(f, code);
        const float w = (float)mpsim_decode(f, mpsim_next_up(f, code));
        const float middle = (float)(((double)v + (double)w) / 2);
        const float all[] = {v,
                             middle,
                             nextafterf(middle, -INFINITY),
                             nextafterf(middle, INFINITY),
                             nextafterf(v, INFINITY),
                             nextafterf(v, -INFINITY)};
        x.insert(x.end(), all, all + 6);
    }
    const float max = (float)mpsim_format_max(f), half = max - (float)mpsim_decode(f, f->max_finite - 1);
    for (float beyond : {max + half / 2, nextafterf(max + half / 2, 0), nextafterf(max + half / 2, INFINITY),
                         max + half, INFINITY, NAN, FLT_MAX, 0x1p-149f})
        for (float sign : {1.0f, -1.0f})
            x.push_back(sign * beyond);
    return x;
}

static void test_cast()
{
    source s = {1};
    for (const char *to : all_formats) {
        int good = 1;
        for (const char *from : all_formats)
            for (const shape &h : shapes)
                for (input kind : {ORDINARY, WIDE, CODES})
                    for (mpsim_round_mode mode : {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_NEAREST_AWAY})
                        good = good && (!chosen(&s, 24) || cast_one(format(to), format(from),
                                                                    draw_all(&s, format(from), kind, h.rows * h.cols),
                                                                    h.rows, h.cols, mode));
        if (format(to)->bits <= 19) {
            const std::vector<float> x = around(format(to), format(to)->bits > 8 ? 509 : 1);
            for (mpsim_round_mode mode : {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_NEAREST_AWAY})
                good = good && cast_one(format(to), format("binary32"), x, 1, x.size(), mode);
        }
        OK(good, "casts to %s, to nearest even and away", to);
    }
    int good = 1;
    for (const char *odd : {"e4m3fnuz", "e3m2", "e2m1", "binary8p3se", "e5m7"})
        for (input kind : {WIDE, CODES})
            for (mpsim_round_mode mode : {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_NEAREST_AWAY}) {
                mpsim_format f;
                good = good && mpsim_format_parse(&f, odd) == MPSIM_OK &&
                       cast_one(&f, format("binary32"), draw_all(&s, format("binary32"), kind, 500), 5, 100, mode) &&
                       cast_one(format("fp16"), &f, draw_all(&s, &f, kind, 500), 5, 100, mode);
            }
    OK(good, "casts to and from other formats");
    pair x(&s, format("bf16"), 9, 9, CODES);
    OK(BOTH(cast, of(x), of(x), MPSIM_ROUND_NEAREST_EVEN, NULL) && x.same("in place"), "a cast in place");
}

/* ---- gather, ReLU, pooling ---- */

static void test_gather()
{
    source s = {2};
    int good = 1;
    for (const char *f : all_formats) {
        std::vector<int32_t> index(13 * 29);
        pair x(&s, format(f), 11, 17, CODES), y(format(f), 13, 29);
        for (int32_t &i : index)
            i = (int32_t)s.below(11 * 17 + 1) - 1;
        void *a = NULL, *b = NULL;
        x.c.inverse = x.g.inverse = 0.375f;
        good = good && !failed(cpu.ops->index_new(&cpu, index.data(), index.size(), &a) |
                               cuda.ops->index_new(&cuda, index.data(), index.size(), &b));
        good = good && !failed(cpu.ops->gather(&cpu, &y.c, &x.c, a) | cuda.ops->gather(&cuda, &y.g, &x.g, b));
        good = good && y.same("gather") && y.g.inverse == 0.375f;
        cpu.ops->index_free(&cpu, a);
        cuda.ops->index_free(&cuda, b);
    }
    OK(good, "gather in every format, with its inverse");
}

static void test_relu()
{
    source s = {3};
    int good = 1;
    for (const char *f : all_formats)
        for (const char *h : all_formats)
            for (input kind : {ORDINARY, CODES, FEW}) {
                if (!chosen(&s, 1))
                    continue;
                pair x(&s, format(f), 33, 9, kind), y(format(f), 33, 9);
                pair dy(&s, format(h), 33, 9, kind), dx(format(h), 33, 9);
                good = good && BOTH(relu, of(y), of(x)) && y.same("relu") &&
                       BOTH(relu_backward, of(dx), of(dy), of(y)) && dx.same("relu_backward") &&
                       BOTH(relu_backward, of(dy), of(dy), of(y)) && dy.same("relu_backward in place") &&
                       BOTH(relu, of(x), of(x)) && x.same("relu in place");
            }
    OK(good, "ReLU and its gradient");
}

static void test_maxpool()
{
    static const train_pool pools[] = {
        {1, 2, 2, 1, 2}, {3, 8, 8, 16, 2}, {2, 5, 7, 3, 2}, {2, 9, 6, 5, 3}, {4, 4, 4, 33, 1}};
    source s = {4};
    int good = 1;
    for (const char *f : all_formats)
        for (const train_pool &p : pools)
            for (input kind : {ORDINARY, CODES, FEW}) {
                if (!chosen(&s, 1))
                    continue;
                const size_t before = p.images * p.height * p.width;
                const size_t after = p.images * (p.height / p.size) * (p.width / p.size);
                pair x(&s, format(f), before, p.channels, kind), y(format(f), after, p.channels);
                pair dy(&s, format("fp16"), after, p.channels, CODES), dx(format("fp16"), before, p.channels);
                good = good && BOTH(maxpool, of(y), of(x), &p) && y.same("maxpool") &&
                       BOTH(maxpool_backward, of(dx), of(dy), of(x), &p) && dx.same("maxpool_backward");
            }
    OK(good, "pooling and its gradient: equals, NaNs, windows that do not fit");
}

/* ---- sums ---- */

static int sums_of(pair *d, pair *x, train_counts *c, train_counts *g)
{
    const train_pair u = {&d->c, &x->c, c}, v = {&d->g, &x->g, g};
    return !failed(cpu.ops->column_sums(&cpu, &u, 1) | cuda.ops->column_sums(&cuda, &v, 1));
}

static void test_column_sums()
{
    source s = {5};
    int good = 1;
    for (const char *f : all_formats)
        for (const char *h : {"binary32", "fp16", "bf16", "e4m3"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW}) {
                    if (!chosen(&s, 1))
                        continue;
                    pair x(&s, format(f), a.rows, a.cols, kind), d(format(h), 1, a.cols);
                    counts n;
                    good = good && sums_of(&d, &x, &n.c, &n.g) && d.same("column_sums") && n.same("column_sums");
                }
    OK(good, "sums of columns in 256 lanes");
    pair x(&s, format("binary32"), 5000, 3, WIDE), d(format("binary32"), 1, 3);
    OK(sums_of(&d, &x, NULL, NULL) && d.same("5000 rows"), "sums of 5000 rows");
}

static int norms(pair *x, const mpsim_format *f, float *u, float *v)
{
    const train_tensor *c = &x->c, *g = &x->g;
    return !failed(cpu.ops->norm(&cpu, &c, 1, &f, u) | cuda.ops->norm(&cuda, &g, 1, &f, v));
}

static void test_norm()
{
    source s = {6};
    int good = 1;
    for (const char *f : all_formats)
        for (const char *to : {"", "fp16", "bf16", "e5m2"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW}) {
                    pair x(&s, format(f), a.rows, a.cols, kind);
                    float u = 1, v = 2;
                    good = good && norms(&x, *to ? format(to) : NULL, &u, &v) && same_float("norm", u, v);
                }
    OK(good, "exact norms");
    std::vector<float> x(70, 0x1.fffffep127f);
    float u = 1, v = 2;
    pair most(format("binary32"), 7, 10, x);
    good = norms(&most, NULL, &u, &v) && same_float("largest", u, v);
    for (float &e : x)
        e = 0x1p-149f;
    most.put(x);
    good = good && norms(&most, NULL, &u, &v) && same_float("smallest", u, v) && v > 0;
    OK(good, "norms of the largest and of the smallest numbers");
}

/* ---- softmax ---- */

static int softmax_one(source *s, const char *f, const char *to, const shape &a, input kind, float c)
{
    pair x(s, format(f), a.rows, a.cols, kind), dx(format(to), a.rows, a.cols);
    std::vector<uint32_t> labels(a.rows);
    counts n;
    float u = 1, v = 2;
    uint64_t j = 3, k = 4;
    for (uint32_t &l : labels)
        l = s->below((unsigned)a.cols);
    if (failed(cpu.ops->softmax_xent(&cpu, &dx.c, &x.c, labels.data(), c, NULL, &u, &j, &n.c) |
               cuda.ops->softmax_xent(&cuda, &dx.g, &x.g, labels.data(), c, NULL, &v, &k, &n.g) |
               cuda.ops->finish(&cuda)) ||
        !dx.same("softmax") || !same_float("loss", u, v) || !n.same("softmax") || j != k)
        return 0;
    return !failed(cpu.ops->softmax_xent(&cpu, NULL, &x.c, labels.data(), c, NULL, &u, &j, NULL) |
                   cuda.ops->softmax_xent(&cuda, NULL, &x.g, labels.data(), c, NULL, &v, &k, NULL) |
                   cuda.ops->finish(&cuda)) &&
           same_float("loss alone", u, v) && j == k;
}

static void test_softmax()
{
    static const shape sizes[] = {{1, 1}, {3, 5}, {257, 10}, {20, 1000}, {5, 32}, {7, 33}, {300, 2}};
    source s = {7};
    int good = 1;
    for (const char *f : {"binary32", "fp16", "bf16", "e4m3"})
        for (const char *to : {"binary32", "fp16", "e5m2"})
            for (const shape &a : sizes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW})
                    good = good &&
                           (!chosen(&s, 12) || softmax_one(&s, f, to, a, kind, kind == WIDE ? 1024.0f : 0x1.999p-4f));
    OK(good, "softmax with cross-entropy: gradients, losses, hits");
    pair x(&s, format("fp16"), 2, 2, ORDINARY);
    const uint32_t labels[] = {0, 2};
    const uint32_t right[] = {0, 1};
    float loss;
    uint64_t hits;
    OK(cuda.ops->softmax_xent(&cuda, NULL, &x.g, labels, 1, NULL, &loss, &hits, NULL) == -1 &&
           strstr(cuda.error, "label"),
       "a label beyond the classes is an error");
    OK(cuda.ops->softmax_xent(&cuda, NULL, &x.g, right, 1, format("bf16"), &loss, &hits, NULL) == -1 &&
           strstr(cuda.error, "binary32 only"),
       "softmax in bf16 is an error");
}

/* ---- batch normalisation ---- */

static int batchnorm_one(source *s, const char *f, const char *small, const shape &a, input kind)
{
    const mpsim_format *single = format("binary32");
    mpsim_batchnorm b;
    memset(&b, 0, sizeof b);
    b.eps = 1e-5f;
    b.momentum = 0.1f;
    pair x(s, format(f), a.rows, a.cols, kind), y(format(f), a.rows, a.cols);
    pair w(s, format(small), 1, a.cols, kind), bias(s, format(small), 1, a.cols, kind);
    pair mean(format(small), 1, a.cols), inverse(format(small), 1, a.cols);
    pair rm(s, single, 1, a.cols, ORDINARY), rv(s, single, 1, a.cols, ORDINARY);
    pair dy(s, format(f), a.rows, a.cols, kind), dx(format(f), a.rows, a.cols);
    pair dw(format(small), 1, a.cols), db(format(small), 1, a.cols), z(format(f), a.rows, a.cols);
    counts n, k;
    return BOTH(batchnorm, &b, of(y), of(mean), of(inverse), of(rm), of(rv), of(x), of(w), of(bias), of(n)) &&
           y.same("batchnorm y") && mean.same("mean") && inverse.same("inverse") && rm.same("running mean") &&
           rv.same("running variance") && n.same("batchnorm") &&
           BOTH(batchnorm_backward, &b, of(dx), of(dw), of(db), of(dy), of(x), of(mean), of(inverse), of(w), of(k)) &&
           dx.same("batchnorm dx") && dw.same("dweight") && db.same("dbias") && k.same("backward") &&
           BOTH(batchnorm_inference, &b, of(z), of(x), of(rm), of(rv), of(w), of(bias)) && z.same("inference") &&
           BOTH(batchnorm, &b, of(x), of(mean), of(inverse), (train_tensor *)NULL, (train_tensor *)NULL, of(x), of(w),
                of(bias), (train_counts *)NULL) &&
           x.same("batchnorm in place") &&
           BOTH(batchnorm_backward, &b, of(dy), of(dw), of(db), of(dy), of(y), of(mean), of(inverse), of(w),
                (train_counts *)NULL) &&
           dy.same("backward in place");
}

static void test_batchnorm()
{
    source s = {8};
    int good = 1;
    for (const char *f : {"binary32", "fp16", "bf16"})
        for (const char *small : {"binary32", "bf16"})
            for (const shape &a : shapes)
                for (input kind : {ORDINARY, WIDE, CODES, FEW})
                    good = good && (!chosen(&s, 16) || batchnorm_one(&s, f, small, a, kind));
    OK(good, "batch normalisation forward, backward, inference");
}

/* ---- gradients ---- */

static void test_unscale()
{
    source s = {9};
    int good = 1;
    for (const char *f : all_formats)
        for (const char *to : {"binary32", "fp16", "bf16"})
            for (mpsim_unscale_rule rule : {MPSIM_UNSCALE_RECIPROCAL, MPSIM_UNSCALE_ROUNDED, MPSIM_UNSCALE_DIVIDE})
                for (double scale : {1.0, 65536.0, 3.0, 1e-30, 0.0})
                    for (input kind : {ORDINARY, WIDE, CODES}) {
                        if (!chosen(&s, 1))
                            continue;
                        pair x(&s, format(f), 21, 13, kind), y(format(to), 21, 13);
                        unsigned a = 0, b = 0;
                        const train_pair c = {&y.c, &x.c, NULL}, g = {&y.g, &x.g, NULL};
                        good = good &&
                               !failed(cpu.ops->unscale(&cpu, &c, 1, rule, scale, &a) |
                                       cuda.ops->unscale(&cuda, &g, 1, rule, scale, &b)) &&
                               y.same("unscale") && a == b;
                    }
    OK(good, "unscaling by every rule, and what it finds");
    good = 1;
    for (const char *f : all_formats)
        for (input kind : {ORDINARY, WIDE, CODES}) {
            pair x(&s, format(f), 21, 13, kind);
            train_tensor *c = &x.c, *g = &x.g;
            good = good && !failed(cpu.ops->scale(&cpu, &c, 1, 0x1.8p-3f) | cuda.ops->scale(&cuda, &g, 1, 0x1.8p-3f)) &&
                   x.same("scale");
        }
    OK(good, "scaling in place");
}

/* ---- lists ---- */

/* More tensors than a launch takes, of all formats, some of them empty: the numbers, counts and what is found
 * are each one's own. */
static void test_lists()
{
    enum { N = 230 };
    source s = {14};
    std::vector<pair *> x, y;
    std::vector<counts> n(N);
    std::vector<train_pair> u(N), v(N);
    std::vector<const train_tensor *> a(N), b(N);
    std::vector<const mpsim_format *> f(N);
    std::vector<float> p(N), q(N);
    std::vector<unsigned> found(N), seen(N);
    for (size_t i = 0; i < N; i++) {
        const size_t rows = s.below(9) ? 1 + s.below(40) : 0;
        const char *from = all_formats[s.below(FORMATS)], *to = all_formats[s.below(FORMATS)];
        x.push_back(new pair(&s, format(from), rows, 60, i % 3 ? ORDINARY : CODES));
        y.push_back(new pair(format(to), rows, 60));
        u[i] = train_pair{&y[i]->c, &x[i]->c, &n[i].c};
        v[i] = train_pair{&y[i]->g, &x[i]->g, &n[i].g};
        a[i] = &x[i]->c;
        b[i] = &x[i]->g;
        f[i] = i % 2 ? x[i]->c.format : NULL;
    }
    int good = !failed(cpu.ops->cast_list(&cpu, u.data(), N, MPSIM_ROUND_NEAREST_EVEN) |
                       cuda.ops->cast_list(&cuda, v.data(), N, MPSIM_ROUND_NEAREST_EVEN));
    for (size_t i = 0; i < N; i++)
        good = good && y[i]->same("cast") && n[i].same("cast");
    OK(good, "casts of %d tensors at once", (int)N);
    for (mpsim_unscale_rule rule : {MPSIM_UNSCALE_RECIPROCAL, MPSIM_UNSCALE_ROUNDED, MPSIM_UNSCALE_DIVIDE}) {
        good = good && !failed(cpu.ops->unscale(&cpu, u.data(), N, rule, 3, found.data()) |
                               cuda.ops->unscale(&cuda, v.data(), N, rule, 3, seen.data()));
        for (size_t i = 0; i < N; i++)
            good = good && y[i]->same("unscale") && found[i] == seen[i];
    }
    OK(good, "gradients of %d tensors unscaled at once", (int)N);
    good = !failed(cpu.ops->norm(&cpu, a.data(), N, f.data(), p.data()) |
                   cuda.ops->norm(&cuda, b.data(), N, f.data(), q.data()));
    for (size_t i = 0; i < N; i++)
        good = good && same_float("norm", p[i], q[i]);
    OK(good, "norms of %d tensors at once", (int)N);
    for (size_t i = 0; i < N; i++) {
        delete x[i];
        delete y[i];
    }
}

/* ---- the engine ---- */

static void test_views()
{
    source s = {13};
    pair x(&s, format("fp16"), 12, 10, CODES), y(format("fp16"), 30, 4);
    train_tensor u = x.c, v = x.g;
    u.rows = v.rows = 30;
    u.cols = v.cols = 4;
    OK(!failed(cpu.ops->relu(&cpu, &y.c, &u) | cuda.ops->relu(&cuda, &y.g, &v)) && y.same("a view"),
       "views of other shapes");
    v.cols = 5;
    OK(cuda.ops->relu(&cuda, &y.g, &v) == -1 && strstr(cuda.error, "are beyond a tensor"),
       "a view that is too large is an error");
    const float no_number = 1.0009765625f;
    train_tensor one = x.g;
    one.rows = one.cols = 1;
    pair z(format("bf16"), 1, 1);
    OK(cuda.ops->put(&cuda, &z.g, &no_number) == -1, "put takes numbers of the format only");
    static train_counts many[1500];
    memset(many, 0, sizeof many);
    int good = 1;
    for (train_counts &c : many)
        good = good && cuda.ops->cast(&cuda, &x.g, &x.g, MPSIM_ROUND_NEAREST_EVEN, &c) == 0;
    good = good && cuda.ops->finish(&cuda) == 0;
    for (const train_counts &c : many)
        good = good && c.nonzero == many[0].nonzero && c.nonzero > 0;
    OK(good, "more counters than a device keeps");
    train_tensor wide = x.g;
    wide.format = format("binary64");
    OK(cuda.ops->alloc(&cuda, &wide) == -1 && strstr(cuda.error, "binary64"), "no tensors of binary64");
}

/* ---- digests by blocks ---- */

/* Both engines' digests of the first rows. */
static int same_blocks(pair *x, size_t rows)
{
    uint64_t a = 1, b = 2;
    x->c.rows = x->g.rows = rows;
    return !failed(cpu.ops->digest(&cpu, &x->c, &a) | cuda.ops->digest(&cuda, &x->g, &b)) && a == b;
}

/* Whole blocks, several of a warp, and ends between words; NaNs, bits above a code, formats with one NaN. */
static void test_digests()
{
    source s = {113};
    int good = 1;
    cpu.digests = cuda.digests = TRAIN_DIGEST_BLOCKS;
    for (const char *f :
         {"binary32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e4m3fnuz", "e2m1", "e3m2", "binary8p3se"})
        for (input kind : {CODES, WIDE}) {
            pair x(&s, format(f), 3000, 7, kind);
            for (size_t rows : {0, 1, 73, 293, 1024, 3000})
                good = good && same_blocks(&x, rows);
        }
    OK(good, "digests by blocks: those of the CPU");
    pair x(&s, format("fp16"), 1024, 4, CODES);
    uint64_t blocks = 0, codes = 0;
    good = !failed(cuda.ops->digest(&cuda, &x.g, &blocks));
    cpu.digests = cuda.digests = TRAIN_DIGEST_CODES;
    OK(good && !failed(cuda.ops->digest(&cuda, &x.g, &codes)) && codes != blocks,
       "a kind of digest can be chosen at any time");
}

/* ---- arguments that are wrong ---- */

/* What both engines say of `call`, of an engine and its tensor of a pair, but for their names. */
template <class Call>
static int refused_alike(Call call)
{
    const int a = call(&cpu, 0), b = call(&cuda, 1);
    if (a == -1 && b == -1 && strcmp(cpu.error + strlen("cpu"), cuda.error + strlen("cuda")) == 0)
        return 1;
    printf("# %d: %s / %d: %s\n", a, cpu.error, b, cuda.error);
    return 0;
}

static void test_refused()
{
    source s = {91};
    pair x(&s, format("fp16"), 4, 6, ORDINARY), y(format("fp16"), 4, 6), small(format("fp16"), 4, 3);
    pair f(&s, format("binary32"), 4, 6, ORDINARY), one(format("binary32"), 4, 1);
    const auto of = [](pair &p, int g) { return g ? &p.g : &p.c; };
    const uint32_t tokens[] = {0, 1, 2, 9};
    const train_turn no_heads = {NULL, NULL, NULL, NULL};
    mpsim_model m;
    mpsim_optim o;
    mpsim_rownorm r;
    memset(&r, 0, sizeof r);
    mpsim_optim_init(&o, MPSIM_OPTIM_ADAM, mpsim_optim_variant_find("ieee"));
    int good = mpsim_model_parse(&m, "fma") == MPSIM_OK;
    good &= refused_alike([&](train_engine *e, int g) { return e->ops->put(e, of(x, g), NULL); });
    good &= refused_alike([&](train_engine *e, int g) { return e->ops->relu(e, of(small, g), of(x, g)); });
    good &= refused_alike([&](train_engine *e, int g) { return e->ops->relu(e, NULL, of(x, g)); });
    good &= refused_alike([&](train_engine *e, int g) {
        train_gemm product;
        memset(&product, 0, sizeof product);
        product.model = &m;
        product.a = of(x, g);
        product.b = of(y, g);
        return e->ops->gemm(e, of(small, g), &product, NULL);
    });
    good &= refused_alike([&](train_engine *e, int g) { return e->ops->embed(e, of(y, g), of(x, g), tokens, NULL); });
    good &= refused_alike([&](train_engine *e, int) { return e->ops->split(e, &no_heads, 1); });
    good &= refused_alike([&](train_engine *e, int) { return e->ops->split(e, NULL, 1); });
    good &= refused_alike([&](train_engine *e, int g) {
        return e->ops->rownorm(e, &r, of(y, g), of(one, g), of(x, g), of(x, g), of(small, g), NULL, NULL);
    });
    good &= refused_alike([&](train_engine *e, int g) { return e->ops->causal(e, NULL, 1, of(y, g), of(x, g), NULL); });
    good &= refused_alike([&](train_engine *e, int g) {
        const train_update u = {of(f, g), of(f, g), NULL, NULL, NULL, NULL, &o, 1, NULL, NULL};
        return e->ops->optim(e, &u, 1, NULL, NULL);
    });
    OK(good, "both engines refuse wrong arguments, in the same words");
}

int main()
{
    if (open_engines())
        return 1;
    test_cast();
    test_refused();
    test_gather();
    test_relu();
    test_maxpool();
    test_column_sums();
    test_norm();
    test_softmax();
    test_batchnorm();
    test_unscale();
    test_lists();
    test_views();
    test_digests();
    const int clean = cuda.ops->finish(&cuda) == 0;
    OK(clean, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    printf("# %llu values compared\n", (unsigned long long)compared);
    return tap_end();
}
