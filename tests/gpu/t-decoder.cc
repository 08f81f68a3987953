/* t-decoder.cc -- the CUDA engine of training on a CPU: every operation of transformers, and products in
 * stacks, against the CPU engine, bit for bit. */
#include "../../gpu/kernels/flat_elements.cuh"
#include "pairs.h"

#include <mpsim/dot.h>

static const input kinds[] = {ORDINARY, WIDE, CODES, FEW};
static const char *const maths[] = {"", "binary32", "bf16", "fp16", "e5m2"};

static const mpsim_format *math_of(const char *name)
{
    return *name ? format(name) : NULL;
}

/* ---- sums, tables ---- */

static int add_one(source *s, const char *f, const char *g, const char *to, const shape &a, input kind)
{
    const size_t period = 1 + s->below((unsigned)a.rows);
    pair x(s, format(f), a.rows, a.cols, kind), z(s, format(g), a.rows, a.cols, kind);
    pair table(s, format(g), period, a.cols, kind), y(format(to), a.rows, a.cols);
    pair dtable(format(to), period, a.cols);
    counts n, m, k;
    return BOTH(add, of(y), of(x), of(z), of(n)) && y.same("add") && n.same("add") &&
           BOTH(add_rows, of(y), of(x), of(table), of(m)) && y.same("add_rows") && m.same("add_rows") &&
           BOTH(add_rows_backward, of(dtable), of(x), of(k)) && dtable.same("add_rows_backward") &&
           k.same("add_rows_backward") && BOTH(add, of(x), of(z), of(x), (train_counts *)NULL) &&
           x.same("add in place") && BOTH(add_rows, of(z), of(z), of(table), (train_counts *)NULL) &&
           z.same("add_rows in place");
}

static int embed_one(source *s, const char *f, const char *to, const shape &a, input kind)
{
    const size_t vocabulary = 1 + s->below(40);
    std::vector<uint32_t> index(a.rows);
    for (uint32_t &i : index)
        i = s->below((unsigned)vocabulary);
    pair table(s, format(f), vocabulary, a.cols, kind), y(format(to), a.rows, a.cols);
    pair dy(s, format(to), a.rows, a.cols, kind), dtable(s, format(f), vocabulary, a.cols, kind);
    counts n, m;
    int good = BOTH(embed, of(y), of(table), index.data(), of(n)) && y.same("embed") && n.same("embed");
    for (int added : {1, 0})
        good = good && BOTH(embed_backward, of(dtable), of(dy), index.data(), added, of(m)) &&
               dtable.same("embed_backward") && m.same("embed_backward");
    return good;
}

static int groups_one(source *s, const char *f, const char *to, size_t group, input kind)
{
    const size_t length = 1 + s->below(9), matrices = 1 + s->below(4), cols = 1 + s->below(17);
    pair x(s, format(f), matrices * group * length, cols, kind);
    pair y(format(to), matrices * length, cols);
    counts n;
    return BOTH(add_groups, of(y), of(x), length, group, of(n)) && y.same("add_groups") && n.same("add_groups");
}

static void test_tokens()
{
    static const char *const some[] = {"binary32", "fp16", "bf16", "e4m3"};
    source s = {21};
    int sums = 1, tables = 1, groups = 1;
    for (const char *f : some)
        for (const char *g : some)
            for (const char *to : some)
                for (const shape &a : shapes)
                    for (input kind : kinds) {
                        sums = sums && (!chosen(&s, 36) || add_one(&s, f, g, to, a, kind));
                        tables = tables && (!chosen(&s, 36) || embed_one(&s, f, to, a, kind));
                        groups = groups && (!chosen(&s, 36) || groups_one(&s, f, to, 1 + s.below(5), kind));
                    }
    for (const char *f : {"binary32", "fp16", "bf16"}) /* in eights */
        for (const char *to : {"binary32", "fp16", "bf16"})
            for (input kind : kinds)
                sums = sums && add_one(&s, f, to, to, shape{9, 40}, kind);
    OK(sums, "sums of tensors, with repeated rows, and the gradient of these");
    OK(tables, "rows of a table by tokens, and their gradient, anew and added");
    OK(groups, "sums of the heads that share one");
    const uint32_t beyond[] = {0, 7};
    pair table(&s, format("fp16"), 7, 3, ORDINARY), y(format("fp16"), 2, 3);
    OK(cuda.ops->embed(&cuda, &y.g, &table.g, beyond, NULL) == -1 && strstr(cuda.error, "number 1") &&
           cuda.ops->embed_backward(&cuda, &table.g, &y.g, beyond, 0, NULL) == -1,
       "a token beyond the table is an error");
}

/* ---- ranks ---- */

static int reduce_one(source *s, unsigned ranks, int order, int average, const char *wire, const char *sum,
                      const char *to, input kind)
{
    const size_t n = 1 + s->below(300);
    std::vector<pair *> x;
    std::vector<train_tensor *> c, g;
    mpsim_reduce r;
    memset(&r, 0, sizeof r);
    r.wire = *format(wire);
    r.accumulator = *format(sum);
    r.result = *format(to);
    r.order = (uint8_t)order;
    r.average = (uint8_t)average;
    for (unsigned i = 0; i < ranks; i++) {
        x.push_back(new pair(s, format(to), 1, n, kind));
        c.push_back(&x[i]->c);
        g.push_back(&x[i]->g);
    }
    pair &y = *x[s->below(ranks)];
    const train_sum u = {&y.c, c.data()}, v = {&y.g, g.data()};
    const int good = !failed(cpu.ops->reduce(&cpu, &r, &u, 1, ranks) | cuda.ops->reduce(&cuda, &r, &v, 1, ranks)) &&
                     y.same("reduce");
    for (pair *p : x)
        delete p;
    return good;
}

static void test_reduce()
{
    source s = {22};
    int good = 1;
    for (unsigned ranks : {1u, 2u, 3u, 4u, 7u, 8u, 33u})
        for (int order = 0; order <= MPSIM_REDUCE_TREE; order++)
            for (int average = 0; average <= MPSIM_AVERAGE_AFTER; average++)
                for (const char *wire : {"binary32", "bf16", "e5m2"})
                    for (const char *sum : {"binary32", "bf16"})
                        for (input kind : kinds)
                            good = good && (!chosen(&s, 10) || reduce_one(&s, ranks, order, average, wire, sum,
                                                                          s.below(2) ? "binary32" : "fp16", kind));
    OK(good, "sums over ranks in every order, precision and average");
}

/* ---- heads ---- */

/* unit: of places and widths in a row. */
static int heads_one(source *s, const char *f, const char *to, size_t size, int rotation, input kind, size_t unit)
{
    const size_t length = 1 + s->below(9), sequences = 1 + s->below(3), heads = 1 + s->below(4);
    const size_t first = unit * s->below(7), cols = first + heads * size + unit * s->below(5);
    const mpsim_format *single = format("binary32");
    pair x(s, format(f), sequences * length, cols, kind);
    pair y(format(to), sequences * heads * length, size);
    pair cosines(s, single, length, size / 2, ORDINARY), sines(s, single, length, size / 2, ORDINARY);
    train_heads c = {sequences, length, heads, size, first, NULL, NULL};
    counts n, m;
    if (rotation) {
        c.cos = &cosines.c;
        c.sin = &sines.c;
    }
    train_heads g = c;
    if (rotation) {
        g.cos = &cosines.g;
        g.sin = &sines.g;
    }
    const train_turn u[] = {{&y.c, &x.c, &c, &n.c}, {&x.c, &y.c, &c, &m.c}};
    const train_turn v[] = {{&y.g, &x.g, &g, &n.g}, {&x.g, &y.g, &g, &m.g}};
    return !failed(cpu.ops->split(&cpu, &u[0], 1) | cuda.ops->split(&cuda, &v[0], 1)) && y.same("split") &&
           n.same("split") && !failed(cpu.ops->join(&cpu, &u[1], 1) | cuda.ops->join(&cuda, &v[1], 1)) &&
           x.same("join") && m.same("join");
}

static void test_heads()
{
    source s = {23};
    int good = 1;
    for (const char *f : all_formats)
        for (const char *to : all_formats)
            for (size_t size : {1u, 2u, 5u, 8u, 24u})
                for (int rotation : {0, 1})
                    for (input kind : kinds)
                        good = good &&
                               (!chosen(&s, 12) || heads_one(&s, f, to, size, rotation && size % 2 == 0, kind, 1));
    for (const char *f : {"binary32", "bf16", "fp16"})
        for (size_t size : {8u, 16u, 48u})
            for (int rotation : {0, 1})
                for (input kind : kinds)
                    good = good && heads_one(&s, f, size == 8 ? "bf16" : f, size, rotation, kind, 8);
    OK(good, "heads of rows and back, turned by place and as they are");
}

/* ---- rows ---- */

static int norm_one(source *s, const char *f, const char *small, const char *math, int rms, const shape &a, input kind)
{
    const mpsim_format *single = format("binary32");
    mpsim_rownorm r;
    memset(&r, 0, sizeof r);
    r.kind = rms ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER;
    r.eps = 1e-5f;
    r.math = math_of(math);
    pair x(s, format(f), a.rows, a.cols, kind), y(format(f), a.rows, a.cols);
    pair w(s, format(small), 1, a.cols, kind), b(s, format(small), 1, a.cols, kind);
    pair mean(single, a.rows, 1), inverse(single, a.rows, 1);
    pair dy(s, format(f), a.rows, a.cols, kind), dx(format(f), a.rows, a.cols);
    pair dw(format(small), 1, a.cols), db(format(small), 1, a.cols);
    counts n, k;
    train_tensor *const none = NULL;
    return BOTH(rownorm, &r, of(y), of(mean), of(inverse), of(x), of(w), rms ? none : of(b), of(n)) &&
           y.same("rownorm") && mean.same("mean") && inverse.same("inverse") && n.same("rownorm") &&
           BOTH(rownorm_backward, &r, of(dx), of(dw), rms ? none : of(db), of(dy), of(x), of(mean), of(inverse), of(w),
                of(k)) &&
           dx.same("rownorm dx") && dw.same("dweight") && db.same("dbias") && k.same("backward") &&
           BOTH(rownorm_backward, &r, of(dy), of(dw), rms ? none : of(db), of(dy), of(x), of(mean), of(inverse), of(w),
                (train_counts *)NULL) &&
           dy.same("backward in place") &&
           BOTH(rownorm, &r, of(x), of(mean), of(inverse), of(x), of(w), of(b), (train_counts *)NULL) &&
           x.same("rownorm in place");
}

static int activate_one(source *s, mpsim_activation kind, const char *f, const char *to, const char *math,
                        const shape &a, input of_x)
{
    const size_t width = kind == MPSIM_SWIGLU ? 2 * a.cols : a.cols;
    pair x(s, format(f), a.rows, width, of_x), y(format(to), a.rows, a.cols);
    pair dy(s, format(to), a.rows, a.cols, of_x), dx(format(f), a.rows, width);
    counts n, k;
    return BOTH(activate, kind, math_of(math), of(y), of(x), of(n)) && y.same("activate") && n.same("activate") &&
           BOTH(activate_backward, kind, math_of(math), of(dx), of(dy), of(x), of(k)) && dx.same("activate_backward") &&
           k.same("activate_backward");
}

/* Rows as kernels/flat.cuh takes them: fewer and more than those of a warp, loads ahead and none, held and not. */
static int test_flat_norms(source *s)
{
    static const shape sizes[] = {{1, 8}, {9, 40}, {300, 24}, {13, 768}, {8, 1032}, {3, 2048}};
    int good = 1, k = 0;
    for (const char *f : {"binary32", "fp16", "bf16"})
        for (const char *to : {"binary32", "bf16", "fp16"})
            for (const shape &a : sizes)
                for (input kind : kinds)
                    good = good && (k++ % 5 || norm_one(s, f, to, "", k % 2, a, kind));
    return good;
}

static void test_rows()
{
    static const shape sizes[] = {{1, 1}, {3, 5}, {300, 7}, {17, 64}, {3, 128}, {2, 129}, {2, 300}};
    source s = {24};
    int norms = 1, activations = 1;
    for (const char *f : {"binary32", "fp16", "bf16", "e4m3"})
        for (const char *to : {"binary32", "bf16"})
            for (const char *math : maths)
                for (const shape &a : sizes)
                    for (input kind : kinds) {
                        for (int rms : {0, 1})
                            norms = norms && (!chosen(&s, 100) || norm_one(&s, f, to, math, rms, a, kind));
                        for (mpsim_activation k : {MPSIM_GELU_TANH, MPSIM_GELU, MPSIM_SWIGLU})
                            activations = activations && (!chosen(&s, 24) || activate_one(&s, k, f, to, math, a, kind));
                    }
    OK(norms, "LayerNorm and RMSNorm of rows, forward and backward");
    OK(test_flat_norms(&s), "the same in rows of eights, some held in shared memory, some read again");
    OK(activations, "GELU by tanh and erf, SwiGLU, forward and backward");
    mpsim_format odd;
    pair x(&s, format("fp16"), 2, 2, ORDINARY), y(format("fp16"), 2, 2);
    OK(mpsim_format_parse(&odd, "e4m3fnuz") == MPSIM_OK &&
           cuda.ops->activate(&cuda, MPSIM_GELU, &odd, &y.g, &x.g, NULL) == -1 &&
           strstr(cuda.error, "does not compute in"),
       "arithmetic in a format without signed zeros is an error");
}

/* ---- attention ---- */

static int causal_rows(source *s, const char *f, const char *to, const char *math, size_t rows, size_t length,
                       input kind)
{
    const float scale = 0x1.6a09e6p-2f;
    pair x(s, format(f), rows, length, kind), p(format(to), rows, length);
    pair dp(s, format(f), rows, length, kind), ds(format(to), rows, length);
    counts n, k;
    return BOTH(causal, math_of(math), scale, of(p), of(x), of(n)) && p.same("causal") && n.same("causal") &&
           BOTH(causal_backward, math_of(math), scale, of(ds), of(dp), of(p), of(k)) && ds.same("causal_backward") &&
           k.same("causal_backward") &&
           BOTH(causal_backward, math_of(math), scale, of(dp), of(dp), of(p), (train_counts *)NULL) &&
           dp.same("causal_backward in place") &&
           BOTH(causal, math_of(math), scale, of(x), of(x), (train_counts *)NULL) && x.same("causal in place");
}

static int causal_one(source *s, const char *f, const char *to, const char *math, size_t matrices, size_t length,
                      input kind)
{
    return causal_rows(s, f, to, math, matrices * length, length, kind);
}

/* Gradients of many norms at once, more than a launch takes: those alike, others, with a bias and without. */
static void test_rownorm_gradients()
{
    enum { N = 90 };
    const mpsim_format *single = format("binary32");
    source s = {21};
    std::vector<pair *> all;
    std::vector<mpsim_rownorm> r(N);
    std::vector<train_normed> u, v;
    const auto made = [&](pair *x) {
        all.push_back(x);
        return x;
    };
    for (size_t i = 0; i < N; i++) {
        const int odd = i % 4 == 3;
        const size_t rows = odd ? s.below(20) : 9, cols = odd ? 1 + s.below(70) : 40;
        const mpsim_format *f = format(i % 5 ? "bf16" : "fp16");
        r[i] = mpsim_rownorm{
            1, 1, uint8_t(i % 7 ? MPSIM_NORM_LAYER : MPSIM_NORM_RMS), 1e-5f, i % 9 ? NULL : format("bf16"), NULL};
        pair *dw = made(new pair(single, 1, cols)), *db = i % 6 ? made(new pair(single, 1, cols)) : NULL;
        pair *dy = made(new pair(&s, f, rows, cols, ORDINARY)), *x = made(new pair(&s, f, rows, cols, ORDINARY));
        pair *mean = made(new pair(&s, single, rows, 1, ORDINARY));
        pair *inverse = made(new pair(&s, single, rows, 1, ORDINARY));
        pair *w = made(new pair(&s, f, 1, cols, ORDINARY));
        u.push_back(train_normed{&r[i], &dw->c, db ? &db->c : NULL, &dy->c, &x->c, &mean->c, &inverse->c, &w->c});
        v.push_back(train_normed{&r[i], &dw->g, db ? &db->g : NULL, &dy->g, &x->g, &mean->g, &inverse->g, &w->g});
    }
    int good = !failed(cpu.ops->rownorm_gradients(&cpu, u.data(), N) | cuda.ops->rownorm_gradients(&cuda, v.data(), N));
    for (pair *x : all) {
        good = good && x->same("rownorm_gradients");
        delete x;
    }
    OK(good, "gradients of %d norms at once", (int)N);
}

/* The same numbers: of two zeros the largest may be either. */
static int same_largest(const pair &max)
{
    std::vector<float> a(max.c.rows), b(a.size());
    if (failed(cpu.ops->get(&cpu, &max.c, a.data()) | cuda.ops->get(&cuda, &max.g, b.data())))
        return 0;
    for (size_t i = 0; i < a.size(); i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])))
            return same_float("max", a[i], b[i]);
    return 1;
}

/* Going back: all tiles at once, of two formats. */
struct tiles_back {
    train_tile t;
    pair s, dp, p, ds;
    counts n;
    tiles_back(source *from, const train_tile &tile, const char *f, size_t height, input kind)
        : t(tile), s(from, format("binary32"), height, t.cols, kind),
          dp(from, format("binary32"), height, t.cols, kind), p(format(f), height, t.cols),
          ds(format(from->below(2) ? f : "fp16"), height, t.cols)
    {
    }
};

static int all_backward(source *s, const char *f, train_tile t, size_t tile, input kind, const pair &lse, const pair &d)
{
    std::vector<tiles_back *> all;
    std::vector<train_tiled> p[2], ds[2];
    for (t.first = 0; t.first < t.length; t.first += tile) {
        t.cols = t.length - t.first < tile ? t.length - t.first : tile;
        tiles_back *x = new tiles_back(s, t, f, t.matrices * (t.length - t.first), kind);
        all.push_back(x);
        p[0].push_back(train_tiled{&x->t, &x->p.c, &x->s.c, &lse.c, NULL, NULL, &x->n.c});
        p[1].push_back(train_tiled{&x->t, &x->p.g, &x->s.g, &lse.g, NULL, NULL, &x->n.g});
        ds[0].push_back(train_tiled{&x->t, &x->ds.c, &x->s.c, &lse.c, &x->dp.c, &d.c, &x->n.c});
        ds[1].push_back(train_tiled{&x->t, &x->ds.g, &x->s.g, &lse.g, &x->dp.g, &d.g, &x->n.g});
    }
    const size_t n = all.size();
    int good = !failed(cpu.ops->tile_again(&cpu, p[0].data(), n) | cuda.ops->tile_again(&cuda, p[1].data(), n) |
                       cpu.ops->tile_backward(&cpu, ds[0].data(), n) | cuda.ops->tile_backward(&cuda, ds[1].data(), n));
    for (tiles_back *x : all) {
        good = good && x->p.same("tile_again") && x->ds.same("tile_backward") && x->n.same("tile");
        delete x;
    }
    return good;
}

/* All tiles of `tile` columns, and what follows them. */
static int tiles_one(source *s, const char *f, size_t matrices, size_t length, size_t tile, size_t size, input kind,
                     float p_scale)
{
    const mpsim_format *single = format("binary32");
    const size_t rows = matrices * length;
    pair o(single, rows, size), sum(single, rows, 1), lse(single, rows, 1), d(single, rows, 1);
    pair max(single, rows, 1, std::vector<float>(rows, -INFINITY));
    pair y(format(f), rows, size), dy(s, format(f), rows, size, ORDINARY);
    train_tile t = {matrices, length, 0, 0, size, 0x1.6a09e6p-2f, p_scale};
    int good = 1;
    for (t.first = 0; t.first < length; t.first += tile) {
        t.cols = length - t.first < tile ? length - t.first : tile;
        const size_t height = matrices * (length - t.first);
        pair x(s, single, height, t.cols, kind), p(format(f), height, t.cols);
        counts n;
        good = good && BOTH(tile_forward, &t, of(p), of(o), of(max), of(sum), of(x), of(n)) && p.same("tile_forward") &&
               n.same("tile") && same_largest(max) && sum.same("sum") && o.same("o");
        const std::vector<float> more = draw_all(s, single, ORDINARY, rows * size);
        o.put(more); /* what a product would leave there */
    }
    const train_tile whole = {matrices, length, 0, length, size, 1, p_scale};
    counts n;
    return good && BOTH(tile_end, &whole, of(y), of(lse), of(o), of(max), of(sum), of(n)) && y.same("tile_end") &&
           lse.same("lse") && n.same("tile_end") && BOTH(tile_dots, &whole, of(d), of(dy), of(y)) && d.same("dots") &&
           all_backward(s, f, t, tile, kind, lse, d);
}

/* As kernels/flat_softmax.cuh takes them: rows of eights, the last ones too long to be held. */
static int test_flat_softmax(source *s)
{
    static const shape sizes[] = {{8, 8}, {3 * 40, 40}, {136, 136}, {264, 264}};
    int good = 1, k = 0;
    for (const char *f : {"binary32", "fp16", "bf16"})
        for (const char *to : {"binary32", "bf16", "fp16"})
            for (const shape &a : sizes)
                for (input kind : kinds)
                    good = good && (k++ % 5 || causal_rows(s, f, to, "", a.rows, a.cols, kind));
    for (const char *f : {"binary32", "fp16", "bf16"})
        for (size_t tile : {8u, 24u, 48u})
            for (input kind : kinds)
                good = good && tiles_one(s, f, 2, 48, tile, 8 + s->below(2) * 8, kind, s->below(2) ? 256.0f : 1.0f);
    return good;
}

/* exp of binary32 without its rare cases, and quotients by a reciprocal. */
static void test_functions()
{
    source s = {26};
    int same_exp = 1, same_quotient = 1;
    for (uint32_t u = s.below(997); u <= mpsim_bits_f32(87.0f); u += 997)
        for (float x : {mpsim_f32_bits(u), -mpsim_f32_bits(u)})
            same_exp &= mpsim_bits_f32(gpu_exp_ordinary(x)) == mpsim_bits_f32(mpsim_exp_f32(x));
    for (int i = 0; i < 1 << 18; i++) {
        const float z = mpsim_f32_bits(0x3f800000u + s.below(24 << 23));
        float v[8];
        for (float &x : v)
            x = mpsim_f32_bits(s.below(16) ? 0x0d800000u + s.below(0x32000000u) : s.below(0x3f800000u));
        float want[8];
        for (int t = 0; t < 8; t++)
            want[t] = v[t] / z;
        gpu_divisor(z).divide(v);
        same_quotient &= memcmp(v, want, sizeof v) == 0;
    }
    int same_two = 1;
    for (uint32_t m = 0; m < 1u << 23; m += m + 256 < 1u << 23 ? 1 + s.below(128) : 1) {
        const float d = mpsim_f32_bits(0x3f800000u + m), back = 1.0f / d;
        for (int k = -4; k <= 4; k++) {
            const float start = mpsim_f32_bits(mpsim_bits_f32(back) + (uint32_t)k);
            if (fabs((double)start * d - 1) <= 0x1p-22)
                same_two &= mpsim_bits_f32(flat_two_over_by(d, start)) == mpsim_bits_f32(2.0f / d);
        }
    }
    for (float d : {0x1.fc03fep+0f, 0x1.bd0d52p+0f, 0x1.30cf32p+0f}) /* where the start must be larger */
        for (int k = -4; k <= 4; k++) {
            const float start = mpsim_f32_bits(mpsim_bits_f32(1.0f / d) + (uint32_t)k);
            if (fabs((double)start * d - 1) <= 0x1p-22)
                same_two &= mpsim_bits_f32(flat_two_over_by(d, start)) == mpsim_bits_f32(2.0f / d);
        }
    int same_far = 1;
    for (uint32_t u = mpsim_bits_f32(0.25f); u <= mpsim_bits_f32(9.02f); u += 1 + s.below(512)) {
        const float a = mpsim_f32_bits(u);
        same_far &= mpsim_bits_f32(flat_tanh_far(a)) == mpsim_bits_f32(mpsim_tanh_far(a));
        same_far &= a > 3.92f || mpsim_bits_f32(flat_erf_far(a)) == mpsim_bits_f32(mpsim_erf_far(a));
    }
    int same_eights = 1;
    for (int i = 0; i < 1 << 14; i++) {
        float v[8], by_tanh[8], by_erf[8];
        for (int t = 0; t < 8; t++) /* from 1/4 to 4 and of both signs, some of any size */
            by_tanh[t] = by_erf[t] = v[t] = mpsim_f32_bits(
                (s.below(999) ? 0x3e800000u + s.below(4 << 23) : s.below(0x7f800000u)) | s.below(2) << 31);
        flat_tanh(by_tanh);
        flat_erf(by_erf);
        for (int t = 0; t < 8; t++) {
            same_eights &= mpsim_bits_f32(by_tanh[t]) == mpsim_bits_f32(mpsim_tanh_f32(v[t]));
            same_eights &= mpsim_bits_f32(by_erf[t]) == mpsim_bits_f32(mpsim_erf_f32(v[t]));
        }
    }
    OK(same_eights, "tanh and erf of eights change their polynomials where mpsim_tanh_f32 and mpsim_erf_f32 do");
    OK(same_two, "2 / d by a reciprocal of 2^-22 is the nearest number");
    OK(same_far, "tanh and erf of the kernels of eights have the bits of mpsim_tanh_far and mpsim_erf_far");
    OK(same_exp, "exp of numbers up to 87 has the bits of mpsim_exp_f32");
    OK(same_quotient, "quotients by a rounded reciprocal are the nearest numbers");
}

static void test_attention()
{
    source s = {25};
    int whole = 1, tiles = 1;
    for (const char *f : {"binary32", "fp16", "bf16", "e5m2"})
        for (const char *to : {"binary32", "bf16", "e4m3"})
            for (const char *math : maths)
                for (size_t length : {1u, 5u, 33u, 70u, 128u, 129u}) /* 128 is held in registers */
                    for (input kind : kinds)
                        whole = whole && (!chosen(&s, length > 100 ? 400 : 80) ||
                                          causal_one(&s, f, to, math, 1 + s.below(3), length, kind));
    for (const char *f : {"binary32", "fp16", "bf16", "e4m3"})
        for (size_t length : {1u, 8u, 37u, 70u})
            for (size_t tile : {1u, 4u, 16u, 64u})
                for (input kind : kinds)
                    tiles = tiles && (!chosen(&s, 12) || tiles_one(&s, f, 1 + s.below(3), length, tile, 1 + s.below(12),
                                                                   kind, s.below(2) ? 256.0f : 1.0f));
    for (size_t tile : {128u, 129u})
        tiles = tiles && tiles_one(&s, "bf16", 1, 140, tile, 3, ORDINARY, 1);
    OK(whole, "softmax of causal scores, forward and backward");
    OK(tiles, "the same in tiles: every one, the end, backward");
    OK(test_flat_softmax(&s), "the same of rows in eights");
}

/* ---- products in stacks ---- */

struct stack {
    const char *model, *fa, *fb, *fd;
    size_t rows, columns, depth, stacks, shared;
    int a_transposed, b_transposed, parts;
    train_start start;
};

/* Rows of an operand of which a product takes n: how many a matrix has, and where they are. */
static size_t with_part(source *s, int parts, size_t n, train_part *part)
{
    const train_part all = {0, 0};
    *part = all;
    if (!parts || n == 0 || !s->below(2)) /* 0 rows are all */
        return n;
    part->first = s->below(6);
    part->n = n;
    return part->first + n + s->below(5);
}

static int stack_one(source *s, const stack &t, input kind)
{
    mpsim_model m;
    train_gemm c;
    char what[200];
    counts n;
    memset(&c, 0, sizeof c);
    if (mpsim_model_parse(&m, t.model) != MPSIM_OK)
        return 0;
    const size_t deep_a = t.a_transposed ? t.depth : t.rows, wide_a = t.a_transposed ? t.rows : t.depth;
    const size_t deep_b = t.b_transposed ? t.columns : t.depth;
    const size_t a_rows = with_part(s, t.parts, deep_a, &c.a_part);
    const size_t b_rows = with_part(s, t.parts, deep_b, &c.b_part);
    const size_t d_rows = with_part(s, t.parts, t.rows, &c.d_part);
    pair a(s, format(t.fa), t.stacks * a_rows, wide_a, kind);
    pair b(s, format(t.fb), t.stacks / t.shared * b_rows, t.b_transposed ? t.depth : t.columns, kind);
    pair d(s, format(t.fd), t.stacks * d_rows, t.columns, kind == CODES ? FEW : ORDINARY);
    if (t.start != TRAIN_FROM_SUM && s->below(2))
        a.c.inverse = a.g.inverse = 0.375f;
    c.model = &m;
    c.a_transposed = t.a_transposed;
    c.b_transposed = t.b_transposed;
    c.stacks = t.stacks;
    c.shared = t.shared;
    c.start = (uint8_t)t.start;
    train_gemm g = c;
    c.a = &a.c, c.b = &b.c;
    g.a = &a.g, g.b = &b.g;
    snprintf(what, sizeof what, "%s %zu x %zu x %zu, %zu / %zu, transposed %d %d, start %d", t.model, t.rows, t.columns,
             t.depth, t.stacks, t.shared, t.a_transposed, t.b_transposed, (int)t.start);
    return !failed(cpu.ops->gemm(&cpu, &d.c, &c, &n.c) | cuda.ops->gemm(&cuda, &d.g, &g, &n.g)) && d.same(what) &&
           n.same(what);
}

static void test_stacks()
{
    static const struct {
        const char *model, *a, *b;
    } rows[] = {{"fma", "binary32", "binary32"},           {"sequential", "binary32", "bf16"},
                {"hopper-tf32-fp32", "tf32", "tf32"},      {"hopper-fp16-fp32", "fp16", "fp16"},
                {"hopper-bf16-fp32", "bf16", "bf16"},      {"hopper-mma-fp8-fp32", "e4m3", "e5m2"},
                {"hopper-wgmma-fp8-fp32", "e4m3", "e4m3"}, {"hopper-wgmma-fp8-promoted", "e5m2", "e4m3"}};
    source s = {26};
    for (const auto &r : rows) {
        int good = 1;
        for (int bits = 0; bits < 8; bits++)
            for (train_start start : {TRAIN_FROM_ZERO, TRAIN_FROM_SUM, TRAIN_ADD_TO}) {
                const size_t shared = 1 + s.below(3);
                const stack t = {r.model,
                                 r.a,
                                 r.b,
                                 start == TRAIN_FROM_ZERO && s.below(2) ? "bf16" : "binary32",
                                 1 + s.below(13),
                                 1 + s.below(13),
                                 s.below(70),
                                 shared * (1 + s.below(2)),
                                 shared,
                                 bits & 1,
                                 bits >> 1 & 1,
                                 bits >> 2 & 1,
                                 start};
                good = good && stack_one(&s, t, kinds[s.below(3)]);
            }
        OK(good, "%s: stacks with parts, shared operands, transposed, chains that go on", r.model);
    }
    const stack large = {"hopper-fp16-fp32", "fp16", "fp16", "binary32", 16, 24, 40, 32, 2, 0, 1, 0,
                         TRAIN_ADD_TO}; /* enough tiles for the fast kernel */
    OK(stack_one(&s, large, ORDINARY), "a stack of products by the fast kernel");
}

static void test_errors()
{
    mpsim_model m;
    train_gemm g;
    source s = {27};
    memset(&g, 0, sizeof g);
    pair a(&s, format("fp16"), 8, 4, ORDINARY), b(&s, format("fp16"), 8, 4, ORDINARY);
    pair d(format("binary32"), 8, 4), half(format("fp16"), 8, 4);
    if (mpsim_model_parse(&m, "hopper-fp16-fp32") != MPSIM_OK)
        return;
    g.model = &m;
    g.a = &a.g;
    g.b = &b.g;
    g.b_transposed = 1;
    g.stacks = 3;
    int good = cuda.ops->gemm(&cuda, &d.g, &g, NULL) == -1 && strstr(cuda.error, "divided into 3");
    g.stacks = 2;
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, NULL) == 0;
    g.a_part = {3, 2};
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, NULL) == -1 && strstr(cuda.error, "rows 3 to 5");
    g.a_part = {0, 0};
    g.start = TRAIN_FROM_SUM;
    good = good && cuda.ops->gemm(&cuda, &half.g, &g, NULL) == -1 && strstr(cuda.error, "binary32");
    a.g.inverse = 0.5f;
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, NULL) == -1 && strstr(cuda.error, "scales cannot continue");
    g.start = TRAIN_FROM_ZERO;
    g.shared = 3;
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, NULL) == -1 && strstr(cuda.error, "share");
    g.shared = 1;
    g.bias = &d.g;
    good = good && cuda.ops->gemm(&cuda, &d.g, &g, NULL) == -1;
    OK(good, "stacks that do not fit are errors");
}

int main()
{
    if (open_engines())
        return 1;
    test_tokens();
    test_reduce();
    test_heads();
    test_rows();
    test_rownorm_gradients();
    test_attention();
    test_functions();
    test_stacks();
    test_errors();
    OK(cuda.ops->finish(&cuda) == 0, "no kernel wrote beside its memory or waited in vain");
    printf("# %llu elements compared\n", (unsigned long long)compared);
    train_engine_close(&cpu);
    train_engine_close(&cuda);
    return tap_end();
}
