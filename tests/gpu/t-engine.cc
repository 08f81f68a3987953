/* t-engine.cc -- the CUDA engine of training on a CPU: every operation against the CPU engine, bit
 * for bit. */
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

static int optim_run(source *s, const settings &t, input kind, int counting)
{
    const mpsim_format *p = format(t.param), *m = format(t.state);
    enum { ROWS = 19, COLS = 31 };
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
    o.param = *p;
    o.state = *m;
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
    for (const char *variant : {"ieee", "torch", "torch-foreach"})
        for (const char *param : {"binary32", "bf16", "fp16"}) {
            const int ieee = strcmp(variant, "ieee") == 0;
            int good = 1;
            for (const auto &r : rows)
                for (const char *state : {"binary32", "bf16"})
                    for (mpsim_store store : {nearest, chance})
                        for (input kind : {ORDINARY, WIDE, CODES})
                            for (double grad_scale : {1.0, 3.0}) {
                                if ((!ieee && (store == chance || grad_scale != 1)) || !chosen(&s, 24))
                                    continue;
                                const settings t = {variant,    param,       state,      r.algorithm,
                                                    store,      r.amsgrad,   r.nesterov, r.maximize,
                                                    r.momentum, r.dampening, r.decay,    grad_scale};
                                good = good && optim_run(&s, t, kind, kind != WIDE);
                            }
            OK(good, "steps of %s with parameters in %s, counted", variant, param);
        }
    mpsim_optim o;
    mpsim_optim_init(&o, adamw, mpsim_optim_variant_find("apex"));
    pair w(&s, format("binary32"), 2, 2, ORDINARY), g(&s, format("binary32"), 2, 2, ORDINARY);
    train_update u = {&w.g, &g.g, &w.g, &w.g, NULL, NULL, &o, 1, NULL, NULL};
    OK(cuda.ops->optim(&cuda, &u, 1, NULL, NULL) == -1 && strstr(cuda.error, "variant apex"),
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
    OK(cuda.ops->relu(&cuda, &y.g, &v) == -1 && strstr(cuda.error, "asked of a tensor"),
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
    test_quantize();
    test_optim();
    test_gemm();
    test_gemm_list();
    test_views();
    const int clean = cuda.ops->finish(&cuda) == 0;
    OK(clean, "no kernel wrote beside its memory or waited in vain");
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    printf("# %llu values compared\n", (unsigned long long)compared);
    return tap_end();
}
