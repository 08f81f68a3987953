/* t-decoder-autocast.c -- operations of transformers against steps of PyTorch under autocast on a CPU
 * (data/vectors/decoder): each on the inputs that PyTorch had, so that errors do not add up. What is
 * equal in every bit, and how many units in the last place the rest is apart, is printed and bounded. */
#include "sim/train/policy.h"
#include "support/decoderinput.h"
#include "support/recorded.h"
#include "support/trainengine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const files[] = {"bf16-gpt", "bf16-llama", "fp16-gpt", "fp16-llama"};

/* What is compared. Results may be `ulps` of their format from PyTorch's, or, where sums cancel, `share` of
 * the largest number of the tensor; at least `equal` of them have its bits. */
/* clang-format off */
typedef enum kind {
    CAST, EMBED, ADD, ADD_ROWS, ADD_GROUPS, TABLES, ROTARY, ROTARY_BACK, PRODUCT, COLUMN_SUMS, LAYER, LAYER_MEAN,
    LAYER_INVERSE, LAYER_BACK, LAYER_WEIGHT, RMS, RMS_BACK, RMS_WEIGHT, GELU, GELU_BACK, SWIGLU, SILU, SWIGLU_BACK,
    SILU_BACK, SOFTMAX, SOFTMAX_BACK, LOGITS, LOSS, KINDS
} kind;
/* clang-format on */

static const struct {
    const char *name;
    double ulps, share, equal;
} rows[KINDS] = {
    [CAST] = {"cast", 0, 0, 1},
    [EMBED] = {"embedding", 0, 0, 1},
    [ADD] = {"residual, sum of gradients", 0, 0, 1},
    [ADD_ROWS] = {"positions", 0, 0, 1},
    [ADD_GROUPS] = {"sum of a group of heads", 0, 0, 1},
    [TABLES] = {"gradient of embeddings", 0, 0, 1},
    [ROTARY] = {"rotary", 0, 0, 1},
    [ROTARY_BACK] = {"rotary, backward", 0, 0, 1},
    [PRODUCT] = {"product (exact sum)", 1, 0, 0.999},
    [COLUMN_SUMS] = {"gradient of bias", 0, 0, 1},
    [LAYER] = {"LayerNorm", 0, 4e-7, 0.4},
    [LAYER_MEAN] = {"its mean", 0, 2e-7, 0.4},
    [LAYER_INVERSE] = {"its 1 / deviation", 2, 0, 0.6},
    [LAYER_BACK] = {"LayerNorm, dx", 0, 2e-7, 0.3},
    [LAYER_WEIGHT] = {"LayerNorm, dweight, dbias", 0, 2e-7, 0.5},
    [RMS] = {"RMSNorm", 3, 0, 0.6},
    [RMS_BACK] = {"RMSNorm, dx", 0, 2e-7, 0.3},
    [RMS_WEIGHT] = {"RMSNorm, dweight", 0, 2e-7, 0.3},
    [GELU] = {"GELU (tanh)", 0, 0, 1},
    [GELU_BACK] = {"GELU (tanh), backward", 0, 0, 1},
    [SWIGLU] = {"SwiGLU", 1, 0, 0.7},
    [SWIGLU_BACK] = {"SwiGLU, backward", 1, 0, 0.7},
    [SILU] = {"SwiGLU, silu rounded", 0, 0, 1},
    [SILU_BACK] = {"SwiGLU, backward, the same", 0, 0, 1},
    [SOFTMAX] = {"softmax", 0, 0, 1},
    [SOFTMAX_BACK] = {"softmax, backward", 0, 0, 1},
    [LOGITS] = {"gradient of logits", 0, 0, 1},
    [LOSS] = {"loss", 2, 0, 0},
};

typedef struct tally {
    size_t tensors, elements, equal;
    double ulps, share; /* largest */
} tally;

typedef struct replay {
    recorded *file;
    const char *name, *facts;
    const mpsim_format *low;
    float *data[2]; /* binary32, low */
    size_t length[2];
    tally *tallies;
} replay;

/* ---- what a case says ---- */

static size_t fact(const replay *r, const char *key)
{
    const double x = recorded_number(r->facts, key, (double)NAN);
    ck_assert_msg(x >= 0, "%s: %s is missing", r->facts, key);
    return (size_t)x;
}

/* Values of a tensor of the case: n of them, to be freed, and their format; NULL if there is none. */
static float *values(const replay *r, const char *role, size_t *n, const mpsim_format **f)
{
    char text[64], *end;
    recorded_text(r->facts, role, "", text, sizeof text);
    if (!*text)
        return NULL;
    const size_t first = text[0] == '=' ? 0 : strtoul(text + 1, &end, 10), k = text[0] == 'f' ? 0 : 1;
    if (text[0] != '=')
        *n = strtoul(end + 1, NULL, 10);
    float *y = malloc((*n + 1) * sizeof *y);
    ck_assert(y && *n > 0 && (text[0] == '=' || first + *n <= r->length[k]));
    for (size_t i = 0; i < *n; i++)
        y[i] = text[0] == '=' ? decoder_weight(text + 1, i) : r->data[k][first + i];
    if (f)
        *f = text[0] == 'l' ? r->low : format("binary32");
    return y;
}

/* A tensor of `cols` columns; of parameters `n` elements. */
static train_tensor input(const replay *r, const char *role, size_t n, size_t cols)
{
    const mpsim_format *f;
    float *v = values(r, role, &n, &f);
    ck_assert_msg(v, "%s: %s is missing", r->facts, role);
    ck_assert_uint_eq(n % cols, 0);
    train_tensor x = make(f, n / cols, cols, v);
    free(v);
    return x;
}

/* An empty tensor of the recorded one's shape and format. */
static train_tensor output(const replay *r, const char *role, size_t cols)
{
    const mpsim_format *f;
    size_t n;
    float *v = values(r, role, &n, &f);
    ck_assert_msg(v, "%s: %s is missing", r->facts, role);
    ck_assert_uint_eq(n % cols, 0);
    free(v);
    return make(f, n / cols, cols, NULL);
}

static size_t indices(const replay *r, const char *role, uint32_t *out, size_t most)
{
    size_t n;
    float *v = values(r, role, &n, NULL);
    ck_assert(v && n <= most);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)v[i];
    free(v);
    return n;
}

/* ---- comparing ---- */

static double ulps_apart(const mpsim_format *f, float a, float b)
{
    const int lowest = (int)lround(log2(mpsim_format_min_normal(f))), at = b == 0 ? lowest : ilogb((double)b);
    return fabs((double)a - (double)b) / ldexp(1, (at < lowest ? lowest : at) - f->mbits);
}

static void judge(replay *r, kind k, const mpsim_format *f, const float *got, const float *want, size_t n)
{
    tally *t = &r->tallies[k];
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs((double)want[i]));
    t->tensors++;
    for (size_t i = 0; i < n; i++) {
        const double ulps = ulps_apart(f, got[i], want[i]), share = fabs((double)got[i] - (double)want[i]) / largest;
        t->elements++;
        t->equal += bits_of_f32(got[i]) == bits_of_f32(want[i]);
        t->ulps = fmax(t->ulps, ulps);
        t->share = fmax(t->share, share);
        ck_assert_msg(ulps <= rows[k].ulps || share <= rows[k].share,
                      "%s, case %s, %s: element %zu is %a, PyTorch has %a (%g ulps, %g of the largest)", r->name,
                      r->facts, rows[k].name, i, (double)got[i], (double)want[i], ulps, share);
    }
}

/* A result against the recorded tensor of that role; it is released. */
static void compare(replay *r, kind k, train_tensor *x, const char *role)
{
    size_t n;
    const mpsim_format *f;
    float *want = values(r, role, &n, &f);
    ck_assert(want && n == x->rows * x->cols && f == x->format);
    judge(r, k, f, get(x), want, n);
    free(want);
    drop(x);
}

/* ---- operations ---- */

static void replay_cast(replay *r)
{
    train_tensor y = output(r, "y", 1), x = input(r, "x", y.rows, 1);
    OK(ops->cast(&engine, &y, &x, MPSIM_ROUND_NEAREST_EVEN, NULL));
    compare(r, CAST, &y, "y");
    drop(&x);
}

static void replay_embed(replay *r)
{
    uint32_t index[64];
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), x = input(r, "x", fact(r, "rows") * cols, cols);
    ck_assert_uint_eq(indices(r, "index", index, COUNT(index)), y.rows);
    OK(ops->embed(&engine, &y, &x, index, NULL));
    compare(r, EMBED, &y, "y");
    drop(&x);
}

static void replay_embed_backward(replay *r)
{
    uint32_t index[64];
    const size_t cols = fact(r, "cols");
    train_tensor x = input(r, "x", 0, cols), y = output(r, "y", cols);
    ck_assert_uint_eq(indices(r, "index", index, COUNT(index)), x.rows);
    OK(ops->embed_backward(&engine, &y, &x, index, 0, NULL));
    compare(r, TABLES, &y, "y");
    drop(&x);
}

static void replay_add(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), a = input(r, "a", 0, cols), b = input(r, "b", 0, cols);
    OK(ops->add(&engine, &y, &a, &b, NULL));
    compare(r, ADD, &y, "y");
    drop(&a);
    drop(&b);
}

static void replay_add_rows(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), a = input(r, "a", 0, cols), b = input(r, "b", fact(r, "rows") * cols, cols);
    OK(ops->add_rows(&engine, &y, &a, &b, NULL));
    compare(r, ADD_ROWS, &y, "y");
    drop(&a);
    drop(&b);
}

static void replay_rows_backward(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), x = input(r, "x", 0, cols);
    OK(ops->add_rows_backward(&engine, &y, &x, NULL));
    compare(r, TABLES, &y, "y");
    drop(&x);
}

static void replay_column_sums(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), x = input(r, "x", 0, cols);
    OK(ops->column_sums(&engine, &(train_pair){.y = &y, .x = &x}, 1));
    compare(r, COLUMN_SUMS, &y, "y");
    drop(&x);
}

static void replay_add_groups(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor y = output(r, "y", cols), x = input(r, "x", 0, cols);
    OK(ops->add_groups(&engine, &y, &x, fact(r, "length"), fact(r, "group"), NULL));
    compare(r, ADD_GROUPS, &y, "y");
    drop(&x);
}

static void replay_gemm(replay *r)
{
    char error[TRAIN_ERROR];
    mpsim_model model;
    train_settings s;
    const size_t depth = fact(r, "depth"), cols = fact(r, "cols"), stacks = fact(r, "stacks");
    const size_t at = fact(r, "at"), bt = fact(r, "bt");
    const int biased = strstr(r->facts, " bias=") != NULL;
    train_tensor y = output(r, "y", cols), bias = {0};
    train_tensor a = input(r, "a", 0, at ? fact(r, "rows") : depth), b = input(r, "b", 0, bt ? depth : cols);
    if (biased)
        bias = input(r, "bias", cols, cols);
    train_settings_init(&s, "mlp");
    snprintf(s.arch, sizeof s.arch, "exact");
    ck_assert_msg(train_model(&s, a.format, b.format, &model, error) == 0, "%s", error);
    const train_gemm g = {.model = &model,
                          .a = &a,
                          .b = &b,
                          .a_transposed = (int)at,
                          .b_transposed = (int)bt,
                          .bias = biased ? &bias : NULL,
                          .stacks = stacks > 1 ? stacks : 0};
    OK(ops->gemm(&engine, &y, &g, NULL));
    compare(r, PRODUCT, &y, "y");
    drop(&a);
    drop(&b);
    if (biased)
        drop(&bias);
}

static mpsim_rownorm norm_of(const replay *r)
{
    return (mpsim_rownorm){.kind = fact(r, "kind") ? MPSIM_NORM_RMS : MPSIM_NORM_LAYER, .eps = 1e-5f};
}

static void replay_norm(replay *r)
{
    const size_t cols = fact(r, "cols");
    const mpsim_rownorm norm = norm_of(r);
    const int layer = norm.kind == MPSIM_NORM_LAYER;
    train_tensor x = input(r, "x", 0, cols), y = output(r, "y", cols), w = input(r, "w", cols, cols), b = {0};
    train_tensor mean = make(format("binary32"), x.rows, 1, NULL), inverse = make(format("binary32"), x.rows, 1, NULL);
    if (layer)
        b = input(r, "b", cols, cols);
    OK(ops->rownorm(&engine, &norm, &y, &mean, &inverse, &x, &w, layer ? &b : NULL, NULL));
    compare(r, layer ? LAYER : RMS, &y, "y");
    if (layer) {
        compare(r, LAYER_MEAN, &mean, "mean");
        compare(r, LAYER_INVERSE, &inverse, "inverse");
        drop(&b);
    } else {
        drop(&mean);
        drop(&inverse);
    }
    drop(&x);
    drop(&w);
}

/* With PyTorch's mean and inverse, where they are recorded. */
static void replay_norm_backward(replay *r)
{
    const size_t cols = fact(r, "cols");
    const mpsim_rownorm norm = norm_of(r);
    const int layer = norm.kind == MPSIM_NORM_LAYER;
    train_tensor x = input(r, "x", 0, cols), dy = input(r, "dy", 0, cols), w = input(r, "w", cols, cols);
    train_tensor dx = output(r, "y", cols), dw = output(r, "dw", cols), db = {0}, mean, inverse;
    if (layer) {
        mean = input(r, "mean", 0, 1);
        inverse = input(r, "inverse", 0, 1);
        db = output(r, "db", cols);
    } else {
        mean = make(format("binary32"), x.rows, 1, NULL);
        inverse = make(format("binary32"), x.rows, 1, NULL);
        OK(ops->rownorm(&engine, &norm, &dx, &mean, &inverse, &x, &w, NULL, NULL));
    }
    OK(ops->rownorm_backward(&engine, &norm, &dx, &dw, layer ? &db : NULL, &dy, &x, &mean, &inverse, &w, NULL));
    compare(r, layer ? LAYER_BACK : RMS_BACK, &dx, "y");
    compare(r, layer ? LAYER_WEIGHT : RMS_WEIGHT, &dw, "dw");
    if (layer)
        compare(r, LAYER_WEIGHT, &db, "db");
    drop(&x);
    drop(&dy);
    drop(&w);
    drop(&mean);
    drop(&inverse);
}

/* x of SwiGLU with values of 1, of which SwiGLU is silu. */
static train_tensor with_ones(const train_tensor *x)
{
    static float v[MOST];
    const size_t half = x->cols / 2;
    memcpy(v, get(x), x->rows * x->cols * sizeof *v);
    for (size_t i = 0; i < x->rows * x->cols; i++)
        if (i % x->cols >= half)
            v[i] = 1;
    return make(x->format, x->rows, x->cols, v);
}

/* y[i] = a[i] times the value beside gate i of x, rounded. */
static void times_values(const train_tensor *x, float *y, const float *a)
{
    const size_t half = x->cols / 2;
    const float *v = get(x);
    for (size_t i = 0; i < x->rows * half; i++)
        y[i] = rounded(x->format, a[i] * v[i / half * x->cols + half + i % half], NULL);
}

/* As PyTorch's two calls round SwiGLU: silu to the low format, then its product with the value. */
static void replay_silu(replay *r, const train_tensor *x, train_tensor *silu)
{
    float y[MOST / 8];
    size_t n;
    train_tensor gates = with_ones(x);
    OK(ops->activate(&engine, MPSIM_SWIGLU, NULL, silu, &gates, NULL));
    float *want = values(r, "y", &n, NULL);
    times_values(x, y, get(silu));
    judge(r, SILU, x->format, y, want, n);
    free(want);
    drop(&gates);
}

/* dy times the value is rounded before silu's gradient, and silu before dy times it. */
static void replay_silu_backward(replay *r, const train_tensor *x, const train_tensor *dy, train_tensor *dx)
{
    float y[MOST / 8];
    size_t n;
    train_tensor gates = with_ones(x), silu = make(dy->format, dy->rows, dy->cols, NULL), t = silu;
    OK(ops->activate(&engine, MPSIM_SWIGLU, NULL, &silu, &gates, NULL));
    const float *s = get(&silu), *d = get(dy);
    times_values(x, y, d);
    OK(ops->put(&engine, &t, y));
    OK(ops->activate_backward(&engine, MPSIM_SWIGLU, NULL, dx, &t, &gates, NULL));
    memcpy(y, get(dx), dx->rows * dx->cols * sizeof *y);
    for (size_t i = 0; i < dy->rows * dy->cols; i++)
        y[i / dy->cols * dx->cols + dy->cols + i % dy->cols] = rounded(dx->format, d[i] * s[i], NULL);
    float *want = values(r, "y", &n, NULL);
    judge(r, SILU_BACK, dx->format, y, want, n);
    free(want);
    drop(&silu);
    drop(&gates);
}

static void replay_activate(replay *r)
{
    const size_t cols = fact(r, "cols");
    const mpsim_activation what = (mpsim_activation)fact(r, "kind");
    train_tensor y = output(r, "y", cols), x = input(r, "x", 0, what == MPSIM_SWIGLU ? 2 * cols : cols);
    if (what == MPSIM_SWIGLU)
        replay_silu(r, &x, &y);
    OK(ops->activate(&engine, what, NULL, &y, &x, NULL));
    compare(r, what == MPSIM_SWIGLU ? SWIGLU : GELU, &y, "y");
    drop(&x);
}

static void replay_activate_backward(replay *r)
{
    const mpsim_activation what = (mpsim_activation)fact(r, "kind");
    const size_t cols = fact(r, "cols"), wide = what == MPSIM_SWIGLU ? 2 * cols : cols;
    train_tensor dx = output(r, "y", wide), x = input(r, "x", 0, wide), dy = input(r, "dy", 0, cols);
    if (what == MPSIM_SWIGLU)
        replay_silu_backward(r, &x, &dy, &dx);
    OK(ops->activate_backward(&engine, what, NULL, &dx, &dy, &x, NULL));
    compare(r, what == MPSIM_SWIGLU ? SWIGLU_BACK : GELU_BACK, &dx, "y");
    drop(&x);
    drop(&dy);
}

static void replay_causal(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor p = output(r, "y", cols), s = input(r, "x", 0, cols);
    OK(ops->causal(&engine, NULL, (float)recorded_number(r->facts, "scale", (double)NAN), &p, &s, NULL));
    compare(r, SOFTMAX, &p, "y");
    drop(&s);
}

static void replay_causal_backward(replay *r)
{
    const size_t cols = fact(r, "cols");
    train_tensor ds = output(r, "y", cols), p = input(r, "p", 0, cols), dp = input(r, "dy", 0, cols);
    OK(ops->causal_backward(&engine, NULL, (float)recorded_number(r->facts, "scale", (double)NAN), &ds, &dp, &p, NULL));
    compare(r, SOFTMAX_BACK, &ds, "y");
    drop(&p);
    drop(&dp);
}

static train_heads heads_of(const replay *r, size_t sequences, const train_tensor *tables)
{
    return (train_heads){.sequences = sequences,
                         .length = fact(r, "length"),
                         .heads = fact(r, "heads"),
                         .size = fact(r, "size"),
                         .first = fact(r, "first"),
                         .cos = &tables[0],
                         .sin = &tables[1]};
}

static void replay_heads(replay *r)
{
    const size_t cols = fact(r, "cols"), size = fact(r, "size");
    train_tensor tables[2] = {input(r, "cos", 0, size / 2), input(r, "sin", 0, size / 2)};
    train_tensor x = input(r, "x", 0, cols), y = output(r, "y", size);
    const train_heads h = heads_of(r, x.rows / fact(r, "length"), tables);
    OK(ops->split(&engine, &(train_turn){.y = &y, .x = &x, .heads = &h}, 1));
    compare(r, ROTARY, &y, "y");
    drop(&x);
    drop(&tables[0]);
    drop(&tables[1]);
}

/* The other columns of dx are those that PyTorch has. */
static void replay_heads_backward(replay *r)
{
    const size_t cols = fact(r, "cols"), size = fact(r, "size");
    train_tensor tables[2] = {input(r, "cos", 0, size / 2), input(r, "sin", 0, size / 2)};
    train_tensor dx = input(r, "y", 0, cols), dy = input(r, "x", 0, size);
    const train_heads h = heads_of(r, dx.rows / fact(r, "length"), tables);
    float *before = malloc(dx.rows * cols * sizeof *before);
    ck_assert(before != NULL);
    memcpy(before, get(&dx), dx.rows * cols * sizeof *before);
    for (size_t i = 0; i < dx.rows; i++)
        memset(before + i * cols + h.first, 0, h.heads * size * sizeof *before);
    OK(ops->put(&engine, &dx, before));
    OK(ops->join(&engine, &(train_turn){.y = &dx, .x = &dy, .heads = &h}, 1));
    compare(r, ROTARY_BACK, &dx, "y");
    free(before);
    drop(&dy);
    drop(&tables[0]);
    drop(&tables[1]);
}

static void replay_loss(replay *r)
{
    uint32_t labels[64];
    size_t n;
    const size_t cols = fact(r, "cols");
    train_tensor dx = output(r, "y", cols), x = input(r, "x", 0, cols);
    float *want = values(r, "loss", &n, NULL), loss = 0;
    ck_assert_uint_eq(indices(r, "labels", labels, COUNT(labels)), x.rows);
    OK(ops->softmax_xent(&engine, &dx, &x, labels,
                         (float)(recorded_number(r->facts, "scale", (double)NAN) / (double)x.rows), NULL, &loss, NULL,
                         NULL));
    compare(r, LOGITS, &dx, "y");
    judge(r, LOSS, format("binary32"), &loss, want, 1);
    free(want);
    drop(&x);
}

static const struct {
    const char *op;
    void (*replay)(replay *r);
} replays[] = {
    {"cast", replay_cast},
    {"embed", replay_embed},
    {"embed-backward", replay_embed_backward},
    {"add", replay_add},
    {"add-rows", replay_add_rows},
    {"rows-backward", replay_rows_backward},
    {"add-groups", replay_add_groups},
    {"column-sums", replay_column_sums},
    {"gemm", replay_gemm},
    {"norm", replay_norm},
    {"norm-backward", replay_norm_backward},
    {"activate", replay_activate},
    {"activate-backward", replay_activate_backward},
    {"causal", replay_causal},
    {"causal-backward", replay_causal_backward},
    {"heads", replay_heads},
    {"heads-backward", replay_heads_backward},
    {"loss", replay_loss},
};

static void replay_case(replay *r)
{
    char op[32];
    recorded_text(r->facts, "op", "", op, sizeof op);
    for (size_t i = 0; i < COUNT(replays); i++)
        if (strcmp(op, replays[i].op) == 0) {
            replays[i].replay(r);
            return;
        }
    ck_abort_msg("%s: case '%s' is of no known operation", r->name, r->facts);
}

static void print_row(const char *low, kind k, const tally *t)
{
    if (t->tensors)
        printf("# %-4s  %-28s %5zu %6zu %6zu %9.3g %9.2g\n", low, rows[k].name, t->tensors, t->elements, t->equal,
               t->ulps, t->share);
}

/* Files of one dtype, the first at 2 _i. */
START_TEST(steps)
{
    tally tallies[KINDS] = {0};
    const char *low = _i ? "fp16" : "bf16";
    for (size_t i = 2 * (size_t)_i; i < 2 * (size_t)_i + 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "data/vectors/decoder/autocast-%s.safetensors", files[i]);
        replay r = {.file = recorded_open(path), .name = files[i], .low = format(low), .tallies = tallies};
        ck_assert_str_eq(recorded_metadata(r.file, "mpsim.low"), low);
        r.data[0] = recorded_floats(r.file, "fp32", NULL, &r.length[0]);
        r.data[1] = recorded_floats(r.file, "low", NULL, &r.length[1]);
        ck_assert(r.data[0] && r.data[1] && recorded_count(r.file) > 40);
        for (size_t k = 0; k < recorded_count(r.file); k++) {
            r.facts = recorded_facts(r.file, recorded_case(r.file, k));
            replay_case(&r);
        }
        free(r.data[0]);
        free(r.data[1]);
        recorded_close(r.file);
    }
    printf("# %-4s  %-28s tensors numbers  equal  most ulps  share of largest\n", low, "");
    for (int k = 0; k < KINDS; k++) {
        print_row(low, (kind)k, &tallies[k]);
        ck_assert_msg(tallies[k].tensors, "%s: none", rows[k].name);
        ck_assert_msg((double)tallies[k].equal >= rows[k].equal * (double)tallies[k].elements,
                      "%s: %zu of %zu are equal", rows[k].name, tallies[k].equal, tallies[k].elements);
    }
}

/* ---- which dtypes ---- */

/* Where a CPU's autocast and the policies, which have CUDA's lists, part: a CPU has softmax in no list. "dgrad"
 * of add1 and add2 is another thing: PyTorch's is the branch's gradient, cast; ours goes on as the stream does. */
static const struct {
    const char *layer, *role;
} apart[] = {{"attn.softmax", "act"},   {"attn.softmax", "out"}, {"attn.softmax", "agrad"},
             {"attn.softmax", "dgrad"}, {"add1", "dgrad"},       {"add2", "dgrad"}};

static int is_apart(const char *layer, const char *role)
{
    for (size_t i = 0; i < COUNT(apart); i++)
        if (strstr(layer, apart[i].layer) && strcmp(apart[i].role, role) == 0)
            return 1;
    return 0;
}

static void open_policy(train_run *run, const char *low, const char *net)
{
    char path[128], error[TRAIN_ERROR];
    trace_error trouble;
    train_settings s;
    policy p;
    snprintf(path, sizeof path, "data/policies/pytorch-amp-%s.yaml", low);
    train_settings_init(&s, net);
    s.depth = 1;
    ck_assert_msg(policy_load(&p, test_source_path(path), 0, &trouble) == 0, "%s", trouble.text);
    ck_assert_msg(train_run_of_policy(run, &p, &s, NULL, error) == 0, "%s", error);
    policy_clear(&p);
}

START_TEST(placement)
{
    static const struct {
        const char *name;
        int role;
    } roles[] = {{"act", TRAIN_ACT}, {"out", TRAIN_OUT}, {"agrad", TRAIN_AGRAD}, {"dgrad", TRAIN_DGRAD}};
    char path[128], key[128], word[16];
    size_t equal = 0, different = 0;
    train_run run;
    snprintf(path, sizeof path, "data/vectors/decoder/autocast-%s.safetensors", files[_i]);
    recorded *file = recorded_open(path);
    open_policy(&run, recorded_metadata(file, "mpsim.low"), recorded_metadata(file, "mpsim.net"));
    for (size_t i = 0; i < run.n_layers; i++) {
        snprintf(key, sizeof key, "mpsim.dtypes.%s", run.layers[i].name);
        const char *facts = recorded_metadata(file, key);
        for (size_t k = 0; facts && k < COUNT(roles); k++) {
            const mpsim_format *f = &run.plans[0].layers[i].format[roles[k].role];
            recorded_text(facts, roles[k].name, "", word, sizeof word);
            if (!*word)
                continue;
            const int same = mpsim_format_same(f, format(word));
            ck_assert_msg(same != is_apart(run.layers[i].name, roles[k].name), "%s: %s of %s is %s, the policy's %s",
                          files[_i], roles[k].name, run.layers[i].name, word, f->name);
            equal += (size_t)same;
            different += (size_t)!same;
        }
    }
    printf("# %s: dtypes of %zu tensors are the policy's, of %zu not\n", files[_i], equal, different);
    ck_assert_uint_gt(equal, 50);
    train_run_clear(&run);
    recorded_close(file);
}

static void add(TCase *t)
{
    tcase_add_loop_test(t, steps, 0, 2);
    tcase_add_loop_test(t, placement, 0, (int)COUNT(files));
}

int main(void)
{
    return engine_main("train-decoder-autocast", add);
}
