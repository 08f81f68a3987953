/* t-replay.c -- replay_run against recorded runs, and against an oracle that shares nothing with
 * it.
 *
 * The oracle rounds in binary64 arithmetic of its own and does optimizer steps as the frameworks
 * document them. What replay computes is seen through what it counts, and through the comparison
 * with recorded weights: a synthetic trace holds the weights that the oracle expects. */
#include "input.h"
#include "parallel.h"
#include "replay.h"
#include "support.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[512]; /* a folder of this run; removed at the end */

/* ---- numbers ---- */

typedef struct grid {
    const char *name;
    int bits, least; /* significant bits; exponent of the smallest normal number */
    double max;
    int saturates;
} grid;

static const grid fp32 = {"binary32", 24, -126, 0x1.fffffep127, 0};
static const grid fp16 = {"fp16", 11, -14, 65504, 0};
static const grid bf16 = {"bf16", 8, -126, 0x1.fep127, 0};
static const grid e4m3 = {"e4m3", 4, -6, 448, 1};
static const grid e5m2 = {"e5m2", 3, -14, 57344, 1};

/* x to nearest even; *over: a finite x that is too large. Exact: x / q is a power of two away. */
static double fit(const grid *g, double x, int *over)
{
    int e;
    if (x == 0 || isnan(x) || (isinf(x) && !g->saturates))
        return x;
    if (isinf(x))
        return copysign(g->max, x);
    frexp(x, &e);
    const double q = ldexp(1, (e - 1 < g->least ? g->least : e - 1) - g->bits + 1);
    const double y = rint(x / q) * q;
    if (fabs(y) <= g->max)
        return y;
    if (over)
        *over = 1;
    return copysign(g->saturates ? g->max : (double)INFINITY, x);
}

static float f32(double x) { return (float)x; }
static float b16(float x) { return (float)fit(&bf16, (double)x, NULL); }
static float h16(float x) { return (float)fit(&fp16, (double)x, NULL); }

static uint64_t bits16(const grid *g, double x)
{
    if (g->bits == 8)
        return bits_of_f32((float)x) >> 16;
    const uint64_t sign = signbit(x) ? 0x8000 : 0;
    int e;
    if (isnan(x))
        return sign | 0x7e00;
    if (isinf(x))
        return sign | 0x7c00;
    x = fabs(x);
    if (x < 0x1p-14)
        return sign | (uint64_t)(x * 0x1p24);
    const double m = frexp(x, &e);
    return sign | (uint64_t)(e - 1 + 15) << 10 | ((uint64_t)(m * 2048) & 0x3ff);
}

/* ---- a run, kept ---- */

typedef struct scrap {
    struct scrap *next;
    double data[];
} scrap;

typedef struct run {
    int code;
    char error[2048];
    size_t n;
    replay_step step[64];
    scrap *scraps;
} run;

static void *keep(run *r, const void *p, size_t n)
{
    scrap *s = malloc(sizeof *s + n);
    ck_assert_ptr_nonnull(s);
    s->next = r->scraps;
    r->scraps = s;
    return n ? memcpy(s->data, p, n) : s->data;
}

static const char *keep_text(run *r, const char *s)
{
    return s ? keep(r, s, strlen(s) + 1) : NULL;
}

static int keep_step(const replay_step *s, void *context)
{
    run *r = context;
    ck_assert_uint_lt(r->n, 64);
    replay_step *k = &r->step[r->n++];
    *k = *s;
    k->cause = keep_text(r, s->cause);
    replay_cast *c = keep(r, s->casts, s->n_casts * sizeof *c);
    replay_weight *w = keep(r, s->weights, s->n_weights * sizeof *w);
    for (size_t i = 0; i < s->n_casts; i++) {
        c[i].name = keep_text(r, c[i].name);
        c[i].kind = keep_text(r, c[i].kind);
    }
    for (size_t i = 0; i < s->n_weights; i++) {
        w[i].name = keep_text(r, w[i].name);
        w[i].storage = keep_text(r, w[i].storage);
        w[i].grads = keep_text(r, w[i].grads);
    }
    k->casts = c;
    k->weights = w;
    k->plan = NULL;
    k->optimizer = s->optimizer ? keep(r, s->optimizer, sizeof *s->optimizer) : NULL;
    return 0;
}

static void forget(run *r)
{
    for (scrap *next, *s = r->scraps; s; s = next) {
        next = s->next;
        free(s);
    }
    r->scraps = NULL;
    r->n = 0;
}

/* A policy: the path of a file below the top of the source tree, or the text of one. */
static policy load_policy(const char *text)
{
    char path[1024];
    policy p;
    trace_error error;
    if (strchr(text, ':')) {
        snprintf(path, sizeof path, "%s/policy.yaml", top);
        FILE *f = fopen(path, "w");
        ck_assert_ptr_nonnull(f);
        fputs(text, f);
        ck_assert_int_eq(fclose(f), 0);
    } else {
        snprintf(path, sizeof path, "%s", test_source_path(text));
    }
    const int code = policy_load(&p, path, &error);
    ck_assert_msg(code == 0, "%s", error.text);
    return p;
}

static void replay_files(run *r, const char *text, char **files, int n, const replay_options *o)
{
    input in;
    const input_options none = {0};
    policy p = load_policy(text);
    char path[1024];
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/stderr", top);
    fflush(NULL);
    const int old = dup(2);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    r->code = input_open(&in, "replay", &none, files, n);
    if (!r->code)
        r->code = replay_run(&p, &in, o, keep_step, r, NULL, 0);
    input_close(&in);
    policy_clear(&p);
    fflush(stderr);
    dup2(old, 2);
    close(old);
    FILE *f = fopen(path, "r");
    r->error[fread(r->error, 1, sizeof r->error - 1, f)] = 0;
    fclose(f);
}

static void replay_path(run *r, const char *text, const char *where, replay_weights w)
{
    char path[1024];
    char *files[1] = {path};
    const replay_options o = {.weights = w, .references = 1};
    snprintf(path, sizeof path, "%s", *where == '/' ? where : test_source_path(where));
    replay_files(r, text, files, 1, &o);
}

static void replay_ok(run *r, const char *text, const char *where)
{
    replay_path(r, text, where, REPLAY_AUTO);
    ck_assert_msg(r->code == 0, "%s: exit %d: %s", where, r->code, r->error);
    ck_assert_msg(r->error[0] == 0, "%s: %s", where, r->error);
}

/* One error line and exit code 3. */
static void refused(const char *text, const char *where, const char *what)
{
    run r;
    replay_path(&r, text, where, REPLAY_AUTO);
    const char *end = strchr(r.error, '\n');
    ck_assert_msg(r.code == 3 && strncmp(r.error, "mpsim: ", 7) == 0 && end && end[1] == 0,
                  "%s: exit %d, error '%s'", what, r.code, r.error);
    ck_assert_msg(strstr(r.error, what) != NULL, "'%s' is not in: %s", what, r.error);
    forget(&r);
}

static const replay_cast *cast_of(const replay_step *s, const char *name)
{
    for (size_t i = 0; i < s->n_casts; i++)
        if (strcmp(s->casts[i].name, name) == 0)
            return &s->casts[i];
    return NULL;
}

static const replay_weight *weight_of(const replay_step *s, const char *name)
{
    for (size_t i = 0; i < s->n_weights; i++)
        if (strcmp(s->weights[i].name, name) == 0)
            return &s->weights[i];
    return NULL;
}

typedef struct sums {
    uint64_t updates, lost, lost_model, compared, differ;
} sums;

static sums sum_step(const replay_step *s)
{
    sums t = {0};
    for (size_t i = 0; i < s->n_weights; i++) {
        t.updates += s->weights[i].updates;
        t.lost += s->weights[i].lost;
        t.lost_model += s->weights[i].lost_model;
        t.compared += s->weights[i].compared;
        t.differ += s->weights[i].differ;
    }
    return t;
}

static sums sum_run(const run *r)
{
    sums t = {0};
    for (size_t i = 0; i < r->n; i++) {
        const sums s = sum_step(&r->step[i]);
        t.updates += s.updates;
        t.lost += s.lost;
        t.lost_model += s.lost_model;
        t.compared += s.compared;
        t.differ += s.differ;
    }
    return t;
}

/* ---- recorded tensors ---- */

static trace *open_trace(const char *path)
{
    trace_error error;
    trace *t = trace_open(*path == '/' ? path : test_source_path(path), NULL, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    return t;
}

static trace *open_step(const char *folder, long step)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/step_%06ld/rank_00000.safetensors", folder, step);
    return open_trace(path);
}

static double number_of(trace *t, const char *key)
{
    const char *s = trace_metadata(t, key);
    return s ? strtod(s, NULL) : (double)NAN;
}

static double *elements(trace *t, size_t i, size_t *n)
{
    trace_error error;
    size_t got = 0;
    *n = trace_at(t, i)->count;
    double *v = malloc((*n + 1) * sizeof *v);
    ck_assert_ptr_nonnull(v);
    ck_assert_msg(!trace_select(t, i, &error) && !trace_read(t, v, *n, &got, &error), "%s",
                  error.text);
    ck_assert_uint_eq(got, *n);
    return v;
}

/* As floats; NULL, and *n untouched, if there is none. */
static float *floats(trace *t, const char *kind, const char *name, size_t *n)
{
    char full[256];
    snprintf(full, sizeof full, "%s:%s", kind, name);
    for (size_t i = 0; i < trace_count(t); i++) {
        if (strcmp(trace_at(t, i)->name, full) != 0)
            continue;
        double *v = elements(t, i, n);
        float *x = malloc((*n + 1) * sizeof *x);
        for (size_t k = 0; k < *n; k++)
            x[k] = (float)v[k];
        free(v);
        return x;
    }
    return NULL;
}

/* ---- 1. recorded runs ---- */

static const struct recording {
    const char *policy, *trace;
    uint64_t compared;
} recordings[] = {
    {"data/amp-mlp/autocast.yaml", "data/amp-mlp/sgd", 52030},
    {"data/amp-mlp/autocast.yaml", "data/amp-mlp/adam", 75020},
    {"data/amp-mlp/adamw.yaml", "data/amp-mlp/adamw", 75020},
    {"data/amp-mlp/half.yaml", "data/amp-mlp/half", 81070},
};

/* What the files say of a step, and of the next one. */
static void check_recorded_step(const char *folder, const replay_step *s)
{
    trace *now = open_step(folder, s->step), *next = open_step(folder, s->step + 1);
    const int found = number_of(now, "mpsim.found_inf") > 0;
    const int skipped = number_of(now, "mpsim.skipped") > 0;
    const double scale = number_of(now, "mpsim.loss_scale");
    const double after = number_of(next, "mpsim.loss_scale");
    ck_assert_double_eq(s->scale, scale);
    ck_assert_double_eq(s->unscale, scale);
    ck_assert_double_eq(s->recorded_scale, scale);
    ck_assert_double_eq(s->next_scale, after);
    ck_assert_double_eq((double)s->tracker, number_of(next, "mpsim.growth_tracker"));
    const unsigned events = (found ? MPSIM_SCALER_OVERFLOW : 0) |
                            (skipped ? MPSIM_SCALER_SKIP : 0) |
                            (after < scale ? MPSIM_SCALER_BACKOFF : 0) |
                            (after > scale ? MPSIM_SCALER_GROWTH : 0);
    ck_assert_uint_eq(s->events, events);
    ck_assert_int_eq(s->cause != NULL, found);
    ck_assert_int_eq(s->from_record, s->step == 1);
    trace_close(now);
    trace_close(next);
}

START_TEST(recorded_runs_give_their_bits)
{
    const struct recording *c = &recordings[_i];
    run r;
    replay_ok(&r, c->policy, c->trace);
    ck_assert_uint_eq(r.n, 25);
    for (size_t i = 0; i < 24; i++) {
        ck_assert_int_eq(r.step[i].step, (int64_t)i + 1);
        ck_assert_int_eq(r.step[i].trains, 1);
        check_recorded_step(c->trace, &r.step[i]);
    }
    ck_assert_int_eq(r.step[24].trains, 0);
    const sums t = sum_run(&r);
    ck_assert_uint_eq(t.compared, c->compared);
    ck_assert_uint_eq(t.differ, 0);
    forget(&r);
}
END_TEST

START_TEST(clipped_where_the_norm_is_above)
{
    run r;
    int clipped = 0;
    replay_ok(&r, recordings[2].policy, recordings[2].trace);
    for (size_t i = 0; i < 24; i++) {
        trace *t = open_step(recordings[2].trace, r.step[i].step);
        const double norm = number_of(t, "mpsim.grad_norm");
        if (!(r.step[i].events & MPSIM_SCALER_SKIP)) {
            ck_assert_double_eq(r.step[i].norm, norm);
            ck_assert_int_eq(r.step[i].clipped, norm > 0.4);
            clipped += r.step[i].clipped;
        }
        trace_close(t);
    }
    ck_assert(clipped > 0 && clipped < 16);
    forget(&r);
}
END_TEST

START_TEST(digits_in_fp32_give_the_last_step)
{
    run r;
    replay_ok(&r, "data/policies/fp32.yaml", "data/digits-cnn");
    ck_assert_uint_eq(r.n, 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert_int_eq(r.step[i].from_record, i != 6);
    const sums t = sum_run(&r), last = sum_step(&r.step[6]);
    ck_assert_uint_eq(t.compared, 7364);
    ck_assert_uint_eq(last.compared, 7364);
    ck_assert_uint_eq(t.differ, 0);
    ck_assert_double_eq(r.step[6].distance_fp32, 0);
    forget(&r);
}
END_TEST

/* Policies that are wrong in one thing: the comparison of weights must see it, or that of the loss
 * scales (a power of two more or less changes no weight that is recorded here). */
#define TORCH "precision: fp16\nloss_scaling: {scaler: torch-cpu, "
#define AMP TORCH "init_scale: 2^24, growth_interval: 6}\n"
#define AMP7 TORCH "init_scale: 2^24, growth_interval: 7}\n"
#define AMP23 TORCH "init_scale: 2^23, growth_interval: 6}\n"
#define CPU "optimizer: {name: trace, variant: torch-cpu-default"
static const struct wrong {
    const char *text, *trace;
    int scale;
} wrongs[] = {
    {AMP "optimizer: {name: trace, variant: torch-cpu}\n", "data/amp-mlp/sgd", 0},
    {AMP "optimizer: {name: trace, variant: torch-cpu}\n", "data/amp-mlp/adam", 0},
    {AMP "optimizer: {name: trace, variant: apex}\n", "data/amp-mlp/adam", 0},
    {AMP CPU ", lr: 0.1000001}\n", "data/amp-mlp/sgd", 0},
    {AMP CPU ", momentum: 0.8999}\n", "data/amp-mlp/sgd", 0},
    {AMP CPU ", eps: 1e-7}\n", "data/amp-mlp/adam", 0},
    {AMP CPU "}\nclip: {rule: torch, max_norm: 0.4, norm: exact}\n", "data/amp-mlp/adamw", 0},
    {AMP CPU "}\n", "data/amp-mlp/adamw", 0},
    {AMP7 CPU "}\n", "data/amp-mlp/sgd", 1},
    {AMP23 CPU "}\n", "data/amp-mlp/sgd", 1},
    {AMP7 CPU "}\n", "data/amp-mlp/adam", 1},
    {"precision: bf16\nautocast: all\nloss_scaling: {scaler: torch-cpu, init_scale: 2^24, "
     "growth_interval: 6}\n" CPU "}\n", "data/amp-mlp/sgd", 0},
    {"precision: fp32\noptimizer: {name: trace, variant: ieee, lr: 0.11}\n",
     "data/digits-cnn", 0},
};
enum { N_WRONGS = sizeof wrongs / sizeof *wrongs };

START_TEST(a_wrong_policy_is_seen)
{
    run r;
    uint64_t scales = 0;
    replay_ok(&r, wrongs[_i].text, wrongs[_i].trace);
    const sums t = sum_run(&r);
    for (size_t i = 0; i < r.n; i++)
        scales += r.step[i].trains && r.step[i].scale != r.step[i].recorded_scale;
    printf("# wrong policy %d: %llu of %llu differ, %llu scales\n", _i,
           (unsigned long long)t.differ, (unsigned long long)t.compared,
           (unsigned long long)scales);
    ck_assert_int_eq(t.differ > 0, !wrongs[_i].scale);
    if (strncmp(wrongs[_i].trace, "data/amp", 8) == 0)
        ck_assert_int_eq(scales > 0, wrongs[_i].scale);
    forget(&r);
}
END_TEST

/* ---- 2. counts of casts ---- */

typedef struct counts {
    uint64_t nonzero, nonfinite, underflow, subnormal, overflow;
    double amax, signal, noise;
} counts;

static counts count_cast(const grid *g, const double *x, size_t n, double scale)
{
    counts c = {0};
    for (size_t i = 0; i < n; i++) {
        int over = 0;
        const double v = x[i] * scale, y = fit(g, v, &over);
        c.nonzero += v != 0;
        c.nonfinite += isfinite(v) ? 0 : 1;
        c.underflow += v != 0 && y == 0;
        c.subnormal += y != 0 && fabs(y) < ldexp(1, g->least);
        c.overflow += (uint64_t)over;
        c.amax = fmax(c.amax, fabs(v));
        if (isfinite(y)) {
            c.signal += v * v;
            c.noise += (v - y) * (v - y);
        }
    }
    return c;
}

/* The format of a tensor of digits-cnn: torch's autocast leaves the parameters of batch norm and
 * their gradients alone; Apex O3 converts all of the model. */
static const grid *digits_format(const grid *low, int all, const char *name)
{
    const int parameter = strncmp(name, "w", 1) == 0;
    return parameter && !all && strstr(name, ":bn") ? &fp32 : low;
}

static const struct counted {
    const char *policy;
    const grid *low;
    int all;
    double scale;
} counted[] = {
    {"data/policies/pytorch-amp-fp16.yaml", &fp16, 0, 65536},
    {"data/policies/apex-O3.yaml", &fp16, 1, 1},
    {"data/policies/pytorch-amp-bf16.yaml", &bf16, 0, 1},
};

/* A model whose parameters are kept in the low format casts what it keeps. */
static void check_cast(const struct counted *c, const replay_step *s, const char *name, double *x,
                       size_t n)
{
    const int gradient = strstr(name, "grad:") != NULL;
    const double scale = gradient ? c->scale : 1;
    const grid *g = digits_format(c->low, c->all, name);
    for (size_t i = 0; c->all && strncmp(name, "weight", 6) == 0 && i < n; i++)
        x[i] = fit(g, x[i], NULL);
    const counts want = count_cast(g, x, n, scale);
    const replay_cast *got = cast_of(s, name);
    ck_assert_msg(got != NULL, "step %d: no cast of %s", (int)s->step, name);
    ck_assert_msg(strcmp(got->format, g->name) == 0, "%s: step %d, %s: %s, not %s", c->policy,
                  (int)s->step, name, got->format, g->name);
    ck_assert_msg(got->scale == scale, "%s: scale %g", name, got->scale);
    ck_assert_msg(got->count == n && got->nonzero == want.nonzero &&
                      got->nonfinite == want.nonfinite && got->underflow == want.underflow &&
                      got->subnormal == want.subnormal && got->overflow == want.overflow &&
                      got->stale == 0 && got->amax == want.amax,
                  "%s: step %d, %s: underflow %u (%u), subnormal %u (%u), overflow %u (%u), "
                  "amax %a (%a)", c->policy, (int)s->step, name, (unsigned)got->underflow,
                  (unsigned)want.underflow, (unsigned)got->subnormal, (unsigned)want.subnormal,
                  (unsigned)got->overflow, (unsigned)want.overflow, got->amax, want.amax);
    if (want.noise > 0)
        ck_assert_double_eq_tol(got->sqnr_db, 10 * log10(want.signal / want.noise), 1e-6);
}

START_TEST(casts_are_counted)
{
    const struct counted *c = &counted[_i];
    run r;
    size_t checked = 0;
    replay_ok(&r, c->policy, "data/digits-cnn");
    for (size_t k = 0; k < r.n; k++) {
        size_t casts = 0;
        trace *t = open_step("data/digits-cnn", r.step[k].step);
        for (size_t i = 0; i < trace_count(t); i++) {
            const char *name = trace_at(t, i)->name;
            size_t n;
            if (strncmp(name, "opt", 3) == 0)
                continue;
            casts++;
            if (strncmp(name, "weight", 6) == 0 &&
                (!r.step[k].from_record || strstr(name, ".bias")))
                continue;
            double *x = elements(t, i, &n);
            check_cast(c, &r.step[k], name, x, n);
            checked += n;
            free(x);
        }
        ck_assert_uint_eq(r.step[k].n_casts, casts);
        trace_close(t);
    }
    printf("# %s: %zu casts counted\n", c->policy, checked);
    ck_assert_uint_gt(checked, 600000);
    forget(&r);
}
END_TEST

/* autocast casts all arguments of linear: weight and bias; the gradient of both comes in fp16. */
START_TEST(a_bias_is_cast_like_its_weight)
{
    run r;
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", "data/digits-cnn");
    for (size_t k = 0; k < r.n; k++)
        for (int i = 0; i < 4; i++) {
            static const char *const names[] = {"weight:fc1.bias", "weight:fc2.bias",
                                                "wgrad:fc1.bias", "wgrad:fc2.bias"};
            const replay_cast *c = cast_of(&r.step[k], names[i]);
            ck_assert_ptr_nonnull(c);
            ck_assert_msg(c->layer == LAYER_LINEAR && strcmp(c->format, "fp16") == 0,
                          "%s: %s, %s", c->name, layer_kind_name(c->layer), c->format);
        }
    forget(&r);
}
END_TEST

/* Layer norm, softmax and embeddings stay in fp32 under torch's autocast. */
START_TEST(what_autocast_leaves_in_fp32)
{
    run r;
    size_t seen = 0, low = 0;
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", "data/charlm");
    for (size_t k = 0; k < r.n; k++)
        for (size_t i = 0; i < r.step[k].n_casts; i++) {
            const replay_cast *c = &r.step[k].casts[i];
            const char *n = c->name;
            const int norm = strstr(n, "ln1") || strstr(n, "ln2") || strstr(n, "lnf");
            const int embedding = strstr(n, ":tok") || strstr(n, ":pos");
            const layer_kind kind = norm ? LAYER_NORM
                                    : embedding ? LAYER_EMBEDDING
                                    : strstr(n, "softmax") ? LAYER_SOFTMAX : LAYER_LINEAR;
            if (strcmp(c->kind, "weight") == 0 && strstr(n, ".bias"))
                continue;
            ck_assert_msg(c->layer == kind, "%s is %s", n, layer_kind_name(c->layer));
            ck_assert_msg(strcmp(c->format, kind == LAYER_LINEAR ? "fp16" : "binary32") == 0,
                          "%s: %s", n, c->format);
            if (kind == LAYER_LINEAR) {
                low += c->underflow;
                continue;
            }
            seen++;
            ck_assert_uint_eq(c->underflow + c->overflow + c->subnormal, 0);
        }
    ck_assert_uint_gt(seen, 100);
    ck_assert_uint_gt(low, 0);
    forget(&r);
}
END_TEST

/* ---- 3. lost updates ---- */

typedef struct step_inputs {
    float *w, *g, *m, *v;
    size_t n;
} step_inputs;

static step_inputs inputs_of(trace *t, const char *name)
{
    step_inputs s = {0};
    s.w = floats(t, "weight", name, &s.n);
    s.g = floats(t, "wgrad", name, &s.n);
    s.m = floats(t, "opt.m", name, &s.n);
    s.v = floats(t, "opt.v", name, &s.n);
    ck_assert(s.w && s.g);
    return s;
}

static void inputs_free(step_inputs *s)
{
    free(s->w);
    free(s->g);
    free(s->m);
    free(s->v);
}

/* torch's foreach kernels on CUDA over bf16 tensors: opmath is float, what an operation gives is
 * rounded; scalars are floats. */
static float sgd_bf16(float w, float g, float m, int first)
{
    const float buffer = first ? g : b16(b16(m * 0.9f) + g);
    return b16(fmaf(-0.1f, buffer, w));
}

static float sgd_fp32(float w, float g, float m, int first)
{
    const float buffer = first ? g : f32((double)f32((double)m * (double)0.9f) + (double)g);
    const float move = 0.1f * buffer;
    return w - move;
}

static float adamw_bf16(float w, float g, float m, float v, int t)
{
    const double bc1 = 1 - pow(0.9, t), root = sqrt(1 - pow(0.99, t));
    const float p = b16(w * (float)(1 - 0.002 * 0.01));
    m = b16(fmaf((float)(1 - 0.9), g - m, m));
    v = b16(v * 0.99f);
    v = b16(fmaf((float)(1 - 0.99), g * g, v));
    float d = b16(sqrtf(v));
    d = b16(d / (float)root);
    d = b16(d + 1e-8f);
    return b16(fmaf((float)(-0.002 / bc1), m / d, p));
}

typedef float (*mover)(const step_inputs *s, size_t i, int t);
typedef double (*mover64)(const step_inputs *s, size_t i, int t);

static float digits_pure(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return sgd_bf16(b16(s->w[i]), b16(s->g[i]), s->m ? b16(s->m[i]) : 0, !s->m);
}

/* What the README of the trace counts: the update of fp32 on a weight kept in bf16. */
static float digits_readme(const step_inputs *s, size_t i, int t)
{
    (void)t;
    const float m = s->m ? f32((double)(s->m[i] * 0.9f) + (double)s->g[i]) : s->g[i];
    return b16(b16(s->w[i]) - 0.1f * m);
}

static float digits_plain(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return sgd_fp32(s->w[i], s->g[i], s->m ? s->m[i] : 0, !s->m);
}

static float charlm_pure(const step_inputs *s, size_t i, int t)
{
    return adamw_bf16(b16(s->w[i]), b16(s->g[i]), s->m ? b16(s->m[i]) : 0,
                      s->v ? b16(s->v[i]) : 0, t);
}


/* The update in binary64: the weight becomes w - u. */
static double digits_f64(const step_inputs *s, size_t i, int t)
{
    (void)t;
    return 0.1 * (0.9 * (s->m ? (double)s->m[i] : 0) + (double)s->g[i]);
}

static double charlm_f64(const step_inputs *s, size_t i, int t)
{
    const double w = (double)s->w[i], g = (double)s->g[i];
    const double m = 0.9 * (s->m ? (double)s->m[i] : 0) + 0.1 * g;
    const double v = 0.99 * (s->v ? (double)s->v[i] : 0) + 0.01 * g * g;
    const double d = sqrt(v / (1 - pow(0.99, t))) + 1e-8;
    return 0.002 * 0.01 * w + 0.002 * (m / (1 - pow(0.9, t))) / d;
}

static float charlm_readme(const step_inputs *s, size_t i, int t)
{
    return b16(f32((double)b16(s->w[i]) - charlm_f64(s, i, t)));
}

typedef struct losses {
    uint64_t updates, lost;
} losses;

static void fit_inputs(step_inputs *x, size_t i, const grid *kept)
{
    float *all[] = {x->w, x->g, x->m, x->v};
    for (int k = 0; k < 4; k++)
        if (all[k])
            all[k][i] = (float)fit(kept, (double)all[k][i], NULL);
}

/* Of the elements that move in binary64, from the numbers that are kept (recorded: from the
 * recorded ones, and all whose update is not zero, however small), those that do not as `move`
 * computes. */
static losses count_lost(const char *folder, const replay_step *s, const grid *kept, mover move,
                         mover64 exact, int recorded)
{
    losses c = {0};
    trace *t = open_step(folder, s->step);
    for (size_t i = 0; i < s->n_weights; i++) {
        step_inputs x = inputs_of(t, s->weights[i].name);
        for (size_t k = 0; k < x.n; k++) {
            if (!recorded)
                fit_inputs(&x, k, kept);
            const double u = exact(&x, k, (int)s->step), w = (double)x.w[k];
            if (u == 0 || (!recorded && w - u == w))
                continue;
            const float before = (float)fit(kept, (double)x.w[k], NULL);
            c.updates++;
            c.lost += move(&x, k, (int)s->step) == before;
        }
        inputs_free(&x);
    }
    trace_close(t);
    return c;
}

static double percent(losses c)
{
    return 100 * (double)c.lost / (double)c.updates;
}

#define PURE "precision: bf16\nautocast: all\nparams: bf16\n"
#define MASTER PURE "master_weights: true\ngrads: fp32\n"
static const struct lossy {
    const char *trace;
    mover pure, readme;
    mover64 exact;
    double claims[7]; /* per cent, to the digits of the README; 0: no claim */
    double digits;
} lossy[] = {
    {"data/digits-cnn", digits_pure, digits_readme, digits_f64,
     {0, 34.5, 94.5, 99.3, 0, 0, 99.8}, 0.05},
    {"data/charlm", charlm_pure, charlm_readme, charlm_f64, {0, 40, 49, 0, 67}, 0.5},
};

START_TEST(bf16_loses_what_the_readme_says)
{
    const struct lossy *c = &lossy[_i];
    run r;
    replay_path(&r, "data/policies/bf16-pure.yaml", c->trace, REPLAY_RECORDED);
    ck_assert_int_eq(r.code, 0);
    for (size_t i = 0; i < r.n; i++) {
        const sums got = sum_step(&r.step[i]);
        const losses want = count_lost(c->trace, &r.step[i], &bf16, c->pure, c->exact, 0);
        const losses readme = count_lost(c->trace, &r.step[i], &bf16, c->readme, c->exact, 1);
        printf("# %s step %d: lost %llu of %llu, oracle %llu of %llu, fp32 update %.2f %%\n",
               c->trace, (int)r.step[i].step, (unsigned long long)got.lost,
               (unsigned long long)got.updates, (unsigned long long)want.lost,
               (unsigned long long)want.updates, percent(readme));
        ck_assert_int_eq(r.step[i].from_record, 1);
        ck_assert_uint_eq(got.updates, want.updates);
        ck_assert_uint_eq(got.lost, want.lost);
        ck_assert_uint_eq(got.lost_model, want.lost);
        if (c->claims[i] > 0)
            ck_assert_double_eq_tol(percent(readme), c->claims[i], c->digits);
        if (c->claims[i] > 0)
            ck_assert_double_eq_tol(100 * (double)got.lost / (double)got.updates, c->claims[i],
                                    0.5 + c->digits);
    }
    forget(&r);
}
END_TEST

/* An fp32 master loses what fp32 itself loses; the model's bf16 copy stands still all the same. */
START_TEST(a_master_keeps_updates)
{
    run r;
    replay_path(&r, MASTER "optimizer: {name: trace, variant: ieee}\n", "data/digits-cnn",
                REPLAY_RECORDED);
    ck_assert_msg(r.code == 0, "%s", r.error);
    for (size_t i = 0; i < r.n; i++) {
        const sums got = sum_step(&r.step[i]);
        const losses want = count_lost("data/digits-cnn", &r.step[i], &fp32, digits_plain,
                                       digits_f64, 0);
        const losses model = count_lost("data/digits-cnn", &r.step[i], &bf16, digits_readme,
                                        digits_f64, 1);
        ck_assert_uint_eq(got.updates, want.updates);
        ck_assert_uint_eq(got.lost, want.lost);
        ck_assert_uint_ge(got.lost_model, model.lost * 9 / 10);
        for (size_t k = 0; k < r.step[i].n_weights; k++)
            ck_assert_int_eq(r.step[i].weights[k].master, 1);
    }
    forget(&r);
}
END_TEST

/* How far the model's bf16 weights are from runs of the same gradients in fp32 and binary64, and
 * these from each other: one step from the record. */
START_TEST(distances_from_the_references)
{
    run r;
    replay_path(&r, "data/policies/bf16-pure.yaml", "data/digits-cnn", REPLAY_RECORDED);
    ck_assert_msg(r.code == 0, "%s", r.error);
    for (size_t k = 0; k < r.n; k++) {
        const replay_step *s = &r.step[k];
        double from32 = 0, from64 = 0, between = 0, norm32 = 0, norm64 = 0;
        trace *t = open_step("data/digits-cnn", s->step);
        for (size_t j = 0; j < s->n_weights; j++) {
            step_inputs x = inputs_of(t, s->weights[j].name);
            for (size_t i = 0; i < x.n; i++) {
                const double plain32 = (double)digits_plain(&x, i, 0);
                const double plain64 = (double)x.w[i] - digits_f64(&x, i, 0);
                const double w = (double)digits_pure(&x, i, 0);
                from32 += (w - plain32) * (w - plain32);
                from64 += (w - plain64) * (w - plain64);
                between += (plain32 - plain64) * (plain32 - plain64);
                norm32 += plain32 * plain32;
                norm64 += plain64 * plain64;
            }
            inputs_free(&x);
        }
        trace_close(t);
        ck_assert_double_eq_tol(s->distance_fp32 / sqrt(from32 / norm32), 1, 1e-9);
        ck_assert_double_eq_tol(s->distance_f64 / sqrt(from64 / norm64), 1, 1e-9);
        ck_assert_double_eq_tol(s->fp32_f64 / sqrt(between / norm64), 1, 1e-6);
    }
    forget(&r);
}
END_TEST

START_TEST(kahan_keeps_updates)
{
    run r;
    replay_ok(&r, "data/policies/bf16-kahan.yaml", "data/digits-cnn");
    const sums t = sum_run(&r);
    printf("# kahan: lost %llu of %llu, in the model %llu\n", (unsigned long long)t.lost,
           (unsigned long long)t.updates, (unsigned long long)t.lost_model);
    ck_assert_uint_lt(t.lost * 1000, t.updates);
    ck_assert_uint_gt(t.lost_model * 2, t.updates);
    forget(&r);
}
END_TEST

/* ---- synthetic traces ---- */

typedef struct made {
    char name[64];
    const grid *format; /* fp32, fp16, bf16 */
    size_t rank, n;
    uint64_t shape[4];
    unsigned char data[4096];
} made;

/* A file under construction. */
static struct {
    char path[700];
    size_t n, pairs;
    made tensor[16];
    char key[32][48], value[32][48];
} file;

static void set(const char *key, const char *value)
{
    size_t i = 0;
    while (i < file.pairs && strcmp(file.key[i], key) != 0)
        i++;
    ck_assert_uint_lt(i, 32);
    file.pairs = i == file.pairs ? i + 1 : file.pairs;
    snprintf(file.key[i], sizeof file.key[i], "%s", key);
    snprintf(file.value[i], sizeof file.value[i], "%s", value);
}

static void unset(const char *key)
{
    for (size_t i = 0; i < file.pairs; i++)
        if (strcmp(file.key[i], key) == 0) {
            file.pairs--;
            memmove(file.key[i], file.key[i + 1], (file.pairs - i) * sizeof *file.key);
            memmove(file.value[i], file.value[i + 1], (file.pairs - i) * sizeof *file.value);
        }
}

/* File `rank` of a step: SGD with lr 0.5, no momentum, unless changed. */
static const char *begin(const char *folder, int step, int rank)
{
    static char at[600];
    char text[32];
    memset(&file, 0, sizeof file);
    snprintf(at, sizeof at, "%s/%s", top, folder);
    mkdir(at, 0700);
    snprintf(file.path, sizeof file.path, "%s/step_%06d", at, step);
    mkdir(file.path, 0700);
    snprintf(file.path, sizeof file.path, "%s/step_%06d/rank_%05d.safetensors", at, step, rank);
    set("mpsim.schema", "mpsim-trace/1");
    snprintf(text, sizeof text, "%d", step);
    set("mpsim.step", text);
    snprintf(text, sizeof text, "%d", rank);
    set("mpsim.rank", text);
    set("mpsim.optimizer", "sgd");
    set("mpsim.lr", "0.5");
    return at;
}

/* A tensor; cols 0: of one dimension. */
static void put(const char *name, const grid *g, const float *x, size_t rows, size_t cols)
{
    made *t = &file.tensor[file.n++];
    const size_t n = cols ? rows * cols : rows, size = g->bits == 24 ? 4 : 2;
    ck_assert_uint_le(n * size, sizeof t->data);
    snprintf(t->name, sizeof t->name, "%s", name);
    *t = (made){.format = g, .rank = cols ? 2 : 1, .n = n, .shape = {rows, cols}};
    snprintf(t->name, sizeof t->name, "%s", name);
    for (size_t i = 0; i < n; i++) {
        if (size == 4)
            code_store(t->data + 4 * i, 4, bits_of_f32(x[i]));
        else
            code_store(t->data + 2 * i, 2, bits16(g, (double)x[i]));
    }
}

static void end(void)
{
    trace_error error = {0};
    trace_tensor t[16];
    const char *pairs[32][2];
    memset(t, 0, sizeof t);
    for (size_t i = 0; i < file.n; i++) {
        const made *m = &file.tensor[i];
        t[i] = (trace_tensor){.name = m->name, .format = mpsim_format_find(m->format->name),
                              .shape = m->shape, .rank = m->rank, .count = m->n};
    }
    for (size_t i = 0; i < file.pairs; i++) {
        pairs[i][0] = file.key[i];
        pairs[i][1] = file.value[i];
    }
    trace_writer *w = trace_writer_safetensors(file.path, t, file.n,
                                               (const char *const (*)[2])pairs, file.pairs, &error);
    ck_assert_msg(w != NULL, "%s", error.text);
    for (size_t i = 0; i < file.n; i++) {
        const size_t size = file.tensor[i].format->bits == 24 ? 4 : 2;
        ck_assert_msg(!trace_writer_data(w, file.tensor[i].data, file.tensor[i].n * size, &error),
                      "%s", error.text);
    }
    ck_assert_msg(!trace_writer_finish(w, &error), "%s", error.text);
}

#define W "weight:fc.weight"
#define G "wgrad:fc.weight"
#define M "opt.m:fc.weight"

static const float ramp_w[8] = {1, -0.5f, 0.25f, 3.1415927f, -2.7182818f, 0.1f, 1e-3f, 100};
static const float ramp_g[8] = {0.1f, -0.2f, 1e-4f, 0.33333334f, 7e-6f, -1e-2f, 0.5f, 1e-9f};

static uint64_t random_state = 20240701;

static float random_float(void) /* normal-like magnitudes, both signs */
{
    const double u = (double)(test_random(&random_state) >> 11) * 0x1p-53;
    const double e = (double)(test_random(&random_state) % 12);
    return (float)((2 * u - 1) * pow(2, -e));
}

/* lr 0.5 and no momentum, in fp32. */
static float plain(float w, float g) { return w - 0.5f * g; }

/* The comparison sees one flipped bit, once, in the step that has it. */
START_TEST(one_flipped_bit_is_seen)
{
    float w[8], next[8];
    run r;
    const char *at = begin("flip", 1, 0);
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    for (int i = 0; i < 8; i++)
        w[i] = plain(ramp_w[i], ramp_g[i]);
    begin("flip", 2, 0);
    w[5] = f32_of_bits(bits_of_f32(w[5]) ^ 1);
    put(W, &fp32, w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    w[5] = f32_of_bits(bits_of_f32(w[5]) ^ 1);
    for (int i = 0; i < 8; i++)
        next[i] = plain(w[i], ramp_g[i]);
    begin("flip", 3, 0);
    put(W, &fp32, next, 2, 4);
    end();
    replay_ok(&r, "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 3);
    ck_assert_uint_eq(sum_step(&r.step[1]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[1]).differ, 1);
    ck_assert_uint_eq(sum_step(&r.step[2]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[2]).differ, 0);
    const double ulp = fabs((double)w[5] - (double)f32_of_bits(bits_of_f32(w[5]) ^ 1));
    const double got = weight_of(&r.step[1], "fc.weight")->max_difference;
    ck_assert_double_eq_tol(got, ulp / fabs((double)w[5]), 1e-10);
    ck_assert_int_eq(r.step[2].trains, 0);
    forget(&r);
}
END_TEST

/* ---- several ranks ---- */

enum { RANKS = 4, WIDTH = 10 };

static float rank_g[RANKS][WIDTH], rank_w[WIDTH];

/* Ranks added in the order of a ring: chunk c of 3 elements starts with rank c. */
static float ring(const grid *wire, int before, size_t i)
{
    const size_t chunk = i / 3;
    float sum = 0;
    for (size_t k = 0; k < RANKS; k++) {
        const float g = rank_g[(chunk + k) % RANKS][i];
        const float share = (float)fit(wire, (double)(before ? g * 0.25f : g), NULL);
        sum = k ? (float)fit(wire, (double)(sum + share), NULL) : share;
    }
    return before ? sum : sum / 4;
}

static float in_sequence(size_t i)
{
    return (((rank_g[0][i] + rank_g[1][i]) + rank_g[2][i]) + rank_g[3][i]) / 4;
}

static const struct reduction {
    const char *name, *text;
    const grid *wire; /* NULL: sequential in fp32 */
    int before;
} reductions[] = {
    {"ring-fp32", "grad_reduce: {wire: fp32, order: ring, average: before}\n", &fp32, 1},
    {"ring-bf16", "grad_reduce: {wire: bf16, order: ring, average: before}\n", &bf16, 1},
    {"ring-fp16", "grad_reduce: {wire: fp16, order: ring, average: before}\n", &fp16, 1},
    {"ring-after", "grad_reduce: {wire: fp32, order: ring, average: after}\n", &fp32, 0},
    {"sequence", "grad_reduce: {wire: fp32, order: sequential, average: after}\n", NULL, 0},
    {"ring-bf16-2", "grad_reduce: bf16\n", &bf16, 1},
};
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions };

/* The folder of a trace of four ranks, and of the weights that are expected after it. */
static const char *make_ranks(const struct reduction *c, const char *reduced)
{
    const char *at = NULL;
    float next[WIDTH];
    for (size_t i = 0; i < WIDTH; i++) {
        rank_w[i] = random_float();
        for (size_t k = 0; k < RANKS; k++)
            rank_g[k][i] = random_float();
    }
    for (int k = 0; k < RANKS; k++) {
        at = begin(c->name, 1, k);
        set("mpsim.world", "4");
        set("mpsim.reduced", reduced);
        put(W, &fp32, rank_w, 2, 5);
        put(G, &fp32, rank_g[k], 2, 5);
        end();
    }
    for (size_t i = 0; i < WIDTH; i++) {
        const float g = c->wire ? ring(c->wire, c->before, i) : in_sequence(i);
        next[i] = plain(rank_w[i], g);
    }
    begin(c->name, 2, 0);
    put(W, &fp32, next, 2, 5);
    end();
    return at;
}

START_TEST(ranks_are_averaged)
{
    const struct reduction *c = &reductions[_i];
    char text[512];
    run r;
    const char *at = make_ranks(c, "pre");
    snprintf(text, sizeof text, "precision: fp32\n%s", c->text);
    replay_ok(&r, text, at);
    ck_assert_uint_eq(r.n, 2);
    const sums t = sum_run(&r);
    ck_assert_uint_eq(t.compared, WIDTH);
    ck_assert_msg(t.differ == 0, "%s: %u differ", c->name, (unsigned)t.differ);
    forget(&r);
}
END_TEST

/* A wire of bf16 is not one of fp32. */
START_TEST(another_wire_is_seen)
{
    run r;
    const char *at = make_ranks(&reductions[1], "pre");
    replay_ok(&r, "precision: fp32\ngrad_reduce: {wire: fp32, order: ring, average: before}\n", at);
    ck_assert_uint_gt(sum_run(&r).differ, 5);
    forget(&r);
}
END_TEST

/* What was reduced before it was recorded is the same on all ranks: rank 0's counts. */
START_TEST(reduced_gradients_are_taken_once)
{
    float next[8];
    run r;
    const char *at = NULL;
    for (int k = 0; k < 2; k++) {
        at = begin("post", 1, k);
        set("mpsim.world", "2");
        set("mpsim.reduced", "post");
        put(W, &fp32, ramp_w, 2, 4);
        put(G, &fp32, ramp_g, 2, 4);
        end();
    }
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], ramp_g[i]);
    begin("post", 2, 0);
    put(W, &fp32, next, 2, 4);
    end();
    replay_ok(&r, "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 2);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* An infinity on the last of three ranks skips the step of all. */
START_TEST(one_rank_overflows)
{
    run r;
    const char *at = NULL;
    float g[8];
    memcpy(g, ramp_g, sizeof g);
    for (int k = 0; k < 3; k++) {
        at = begin("one-bad", 1, k);
        set("mpsim.world", "3");
        set("mpsim.reduced", "pre");
        g[6] = k == 2 ? -INFINITY : ramp_g[6];
        put(W, &fp32, ramp_w, 2, 4);
        put(G, &fp32, g, 2, 4);
        end();
    }
    replay_ok(&r, "data/policies/megatron-fp16.yaml", at);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_SKIP, 0);
    forget(&r);
}
END_TEST

/* ---- recorded scales ---- */

/* Gradients recorded with the scale 1024 in fp16, replayed by a scaler that starts elsewhere. */
START_TEST(recorded_scales_are_taken_out)
{
    float scaled[8], next[8];
    run r;
    const double own = _i ? 65536 : 1024;
    for (int i = 0; i < 8; i++)
        scaled[i] = h16(ramp_g[i] * 1024);
    const char *at = begin(_i ? "scale-b" : "scale-a", 1, 0);
    set("mpsim.loss_scale", "1024");
    set("mpsim.grads_scaled", "true");
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, scaled, 2, 4);
    end();
    for (int i = 0; i < 8; i++) {
        const float g = h16((float)((double)scaled[i] / 1024 * own));
        next[i] = plain(ramp_w[i], g * (float)(1 / own));
    }
    begin(_i ? "scale-b" : "scale-a", 2, 0);
    put(W, &fp32, next, 2, 4);
    end();
    replay_ok(&r, _i ? "precision: fp16\nloss_scaling: {scaler: torch, init: 65536}\n"
                     : "precision: fp16\nloss_scaling: {scaler: torch, init: 1024}\n", at);
    ck_assert_double_eq(r.step[0].scale, own);
    ck_assert_double_eq(r.step[0].recorded_scale, 1024);
    ck_assert_uint_eq(r.step[0].events, 0);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    ck_assert_double_eq(cast_of(&r.step[0], G)->scale, own);
    forget(&r);
}
END_TEST

/* Gradients that were recorded unscaled, although the scale is known. */
START_TEST(unscaled_gradients_stay)
{
    float next[8];
    run r;
    const char *at = begin("unscaled", 1, 0);
    set("mpsim.loss_scale", "1024");
    set("mpsim.grads_scaled", "false");
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], h16(ramp_g[i] * 256) * (1.0f / 256));
    begin("unscaled", 2, 0);
    put(W, &fp32, next, 2, 4);
    end();
    replay_ok(&r, "precision: fp16\nloss_scaling: {scaler: torch, init: 256}\n", at);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* ---- gradients that are not finite ---- */

static const char *make_bad(const char *name, float bad)
{
    float g[8];
    memcpy(g, ramp_g, sizeof g);
    g[3] = bad;
    const char *at = begin(name, 1, 0);
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, g, 2, 4);
    end();
    begin(name, 2, 0);
    put(W, &fp32, ramp_w, 2, 4);
    end();
    return at;
}

START_TEST(bad_gradients_are_skipped)
{
    static const float bads[] = {INFINITY, -INFINITY, NAN, 1e30f};
    run r;
    const char *at = make_bad("bad", bads[_i]);
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    const replay_step *s = &r.step[0];
    ck_assert_uint_eq(s->events, MPSIM_SCALER_OVERFLOW | MPSIM_SCALER_SKIP | MPSIM_SCALER_BACKOFF);
    ck_assert_double_eq(s->next_scale, 32768);
    ck_assert_msg(s->cause && strstr(s->cause, "fc.weight"), "%s", s->cause);
    ck_assert_ptr_null(s->optimizer);
    ck_assert_uint_eq(s->tracker, 0);
    const replay_cast *c = cast_of(s, G);
    ck_assert_uint_eq(c->nonfinite, _i < 3);
    ck_assert_uint_eq(c->overflow, _i == 3);
    ck_assert_uint_eq(sum_step(s).updates, 0);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* Apex O3 has the constant scale 1, and never acts on an overflow: the weight becomes infinite. */
START_TEST(a_static_scale_takes_infinity)
{
    run r;
    const char *at = make_bad("taken", INFINITY);
    float next[8];
    for (int i = 0; i < 8; i++)
        next[i] = h16(plain(h16(ramp_w[i]), i == 3 ? INFINITY : h16(ramp_g[i])));
    begin("taken", 2, 0);
    put(W, &fp16, next, 2, 4);
    end();
    replay_ok(&r, "opt_level: O3\noptimizer: {name: trace, variant: ieee}\n", at);
    ck_assert_uint_eq(r.step[0].events & MPSIM_SCALER_SKIP, 0);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    ck_assert_ptr_nonnull(r.step[0].optimizer);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* ---- gaps, and whose weights ---- */

/* Steps 1, 2, 5; every file has the same weights and gradients. */
static const char *make_gap(void)
{
    static const int steps[] = {1, 2, 5};
    const char *at = NULL;
    for (int i = 0; i < 3; i++) {
        at = begin("gap", steps[i], 0);
        put(W, &fp32, ramp_w, 2, 4);
        put(G, &fp32, ramp_g, 2, 4);
        end();
    }
    return at;
}

START_TEST(gaps_begin_from_the_record)
{
    static const int from[3][3] = {{1, 0, 1}, {1, 1, 1}, {1, 0, 0}};
    static const unsigned compared[3][3] = {{0, 8, 0}, {0, 0, 0}, {0, 8, 8}};
    run r;
    replay_path(&r, "data/policies/fp32.yaml", make_gap(), (replay_weights)_i);
    ck_assert_int_eq(r.code, 0);
    ck_assert_uint_eq(r.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(r.step[i].from_record, from[_i][i]);
        ck_assert_msg(sum_step(&r.step[i]).compared == compared[_i][i], "step %d: %u compared", i,
                      (unsigned)sum_step(&r.step[i]).compared);
    }
    if (_i == REPLAY_CARRY) { /* the weight moves by 0.05 a step, in fp32 */
        const float moved = plain(plain(ramp_w[0], ramp_g[0]), ramp_g[0]);
        const double far = (1 - (double)moved) / 1;
        ck_assert_uint_eq(sum_step(&r.step[2]).differ, sum_step(&r.step[1]).differ);
        ck_assert_double_ge(r.step[2].weights[0].max_difference, far);
    }
    forget(&r);
}
END_TEST

/* ---- what is missing or odd ---- */

static const char *make_odd(const char *name, int steps, void (*change)(int step))
{
    const char *at = NULL;
    for (int i = 1; i <= steps; i++) {
        at = begin(name, i, 0);
        put(W, &fp32, ramp_w, 2, 4);
        put(G, &fp32, ramp_g, 2, 4);
        change(i);
        end();
    }
    return at;
}

/* Changes of metadata: a key, and its value or NULL for none. */
static const char *change_key, *change_value;
static void metadata(int step)
{
    (void)step;
    if (change_value)
        set(change_key, change_value);
    else
        unset(change_key);
}

static const char *make_with(const char *name, const char *key, const char *value)
{
    change_key = key;
    change_value = value;
    return make_odd(name, 1, metadata);
}

static void shape(int step)
{
    for (int i = 0; i < 2; i++) {
        file.tensor[i].shape[0] = step == 2 ? 4 : 2;
        file.tensor[i].shape[1] = step == 2 ? 2 : 4;
    }
}
static void size(int step)
{
    if (step == 2)
        for (int i = 0; i < 2; i++) {
            file.tensor[i].n = 4;
            file.tensor[i].shape[0] = 1;
        }
}
static void size_of_grad(int step)
{
    (void)step;
    file.tensor[1].n = 4;
    file.tensor[1].shape[0] = 1;
}
static void backwards(int step) { set("mpsim.step", step == 1 ? "7" : "3"); }

START_TEST(what_is_missing_is_said)
{
    static const char fixed[] = "precision: fp32\n"
                                "optimizer: {name: trace, variant: ieee, lr: 0.5}\n";
    static const char sgd[] = "precision: fp32\noptimizer: {name: sgd, variant: ieee}\n";
    static const char plain32[] = "data/policies/fp32.yaml";
    run r;
    refused(plain32, make_with("no-lr", "mpsim.lr", NULL), "lr");
    replay_ok(&r, fixed, make_with("no-lr", "mpsim.lr", NULL));
    forget(&r);
    refused(plain32, make_with("no-name", "mpsim.optimizer", NULL), "optimizer");
    replay_ok(&r, sgd, make_with("no-name", "mpsim.optimizer", NULL));
    forget(&r);
    refused(plain32, make_with("odd-name", "mpsim.optimizer", "lion"), "optimizer");
    refused(plain32, make_with("odd-lr", "mpsim.lr", "fast"), "lr");
    refused(plain32, make_with("nan-lr", "mpsim.lr", "nan"), "lr");
    const char *at = begin("odd-scale", 1, 0);
    set("mpsim.grads_scaled", "true");
    set("mpsim.loss_scale", "0");
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    refused(plain32, at, "scale");
}
END_TEST

START_TEST(shapes_and_steps_must_fit)
{
    static const char plain32[] = "data/policies/fp32.yaml";
    refused(plain32, make_odd("size", 2, size), "fc.weight");
    run r; /* as many elements in another shape are the same elements */
    replay_ok(&r, plain32, make_odd("shape", 2, shape));
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    forget(&r);
    refused(plain32, make_odd("grad-size", 1, size_of_grad), "fc.weight");
    refused(plain32, make_odd("backwards", 2, backwards), "step");
}
END_TEST

/* A file that says no step: neither its metadata nor its folder. */
START_TEST(a_file_needs_a_step)
{
    begin("stepless", 1, 0);
    unset("mpsim.step");
    snprintf(file.path, sizeof file.path, "%s/stepless/a.safetensors", top);
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    char path[700];
    snprintf(path, sizeof path, "%s", file.path);
    end();
    refused("data/policies/fp32.yaml", path, "step");
}
END_TEST

/* Gradients alone are enough for casts and scaler. */
START_TEST(gradients_alone)
{
    run r;
    const char *at = begin("only-grads", 1, 0);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_ptr_nonnull(cast_of(&r.step[0], G));
    ck_assert_uint_eq(sum_run(&r).updates, 0);
    forget(&r);
    at = begin("only-bad", 1, 0); /* the scaler has gradients to look at all the same */
    float g[8] = {INFINITY};
    put(G, &fp32, g, 2, 4);
    end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_ne(r.step[0].events & MPSIM_SCALER_OVERFLOW, 0);
    forget(&r);
}
END_TEST

START_TEST(weights_alone)
{
    run r;
    const char *at = begin("only-weights", 1, 0);
    unset("mpsim.optimizer");
    put(W, &fp32, ramp_w, 2, 4);
    end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_int_eq(r.step[0].trains, 0);
    ck_assert_ptr_nonnull(cast_of(&r.step[0], W));
    ck_assert_uint_eq(sum_run(&r).updates, 0);
    forget(&r);
}
END_TEST

START_TEST(activations_alone)
{
    run r;
    const char *at = begin("only-acts", 1, 0);
    put("act:fc", &fp32, ramp_w, 2, 4);
    unset("mpsim.optimizer");
    end();
    replay_ok(&r, "data/policies/pytorch-amp-fp16.yaml", at);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_uint_eq(r.step[0].n_casts, 1);
    ck_assert_uint_eq(r.step[0].n_weights, 0);
    forget(&r);
}
END_TEST

START_TEST(empty_and_scalar_tensors)
{
    run r;
    const char *at = NULL;
    for (int step = 1; step <= 2; step++) {
        at = begin("tiny", step, 0);
        const float one = step == 1 ? 1 : 0.75f, g = 0.5f;
        put("weight:none", &fp32, ramp_w, 0, 0);
        put("wgrad:none", &fp32, ramp_w, 0, 0);
        put("weight:gain", &fp32, &one, 1, 0);
        put("wgrad:gain", &fp32, &g, 1, 0);
        file.tensor[2].rank = file.tensor[3].rank = 0;
        end();
    }
    replay_ok(&r, _i ? "data/policies/nemo-fp8-hybrid-max.yaml" : "data/policies/fp32.yaml", at);
    ck_assert_uint_eq(r.n, 2);
    if (!_i) {
        ck_assert_uint_eq(sum_run(&r).compared, 1);
        ck_assert_uint_eq(sum_run(&r).differ, 0);
    }
    ck_assert_uint_eq(weight_of(&r.step[0], "none")->count, 0);
    ck_assert_uint_eq(weight_of(&r.step[0], "gain")->count, 1);
    forget(&r);
}
END_TEST

/* ---- 4. FP8 ---- */

enum { FP8_STEPS = 9, ROWS = 4, COLS = 40 };

/* How large the numbers of a step are: jumps by 100, a step of zeros, and back. */
static const float levels[FP8_STEPS] = {1, 100, 100, 0.01f, 1, 0, 1e-6f, 300, 3};

static float fp8_act[FP8_STEPS][ROWS * COLS], fp8_grad[FP8_STEPS][ROWS * 2], fp8_weight[2 * COLS];

static const char *make_fp8(const char *name)
{
    const char *at = NULL;
    const float zero[2 * COLS] = {0};
    for (size_t i = 0; i < 2 * COLS; i++)
        fp8_weight[i] = random_float();
    for (int k = 0; k < FP8_STEPS; k++) {
        for (size_t i = 0; i < ROWS * COLS; i++)
            fp8_act[k][i] = random_float() * levels[k];
        for (size_t i = 0; i < ROWS * 2; i++)
            fp8_grad[k][i] = random_float() * levels[FP8_STEPS - 1 - k] * 1e-3f;
        at = begin(name, k + 1, 0);
        set("mpsim.lr", "0");
        put(W, &fp32, fp8_weight, 2, COLS);
        put(G, &fp32, zero, 2, COLS);
        put("act:fc", &fp32, fp8_act[k], ROWS, COLS);
        put("agrad:fc", &fp32, fp8_grad[k], ROWS, 2);
        end();
    }
    return at;
}

/* TransformerEngine's delayed scaling of one tensor: the window has the amax of this step and of
 * length - 1 before; a step of zeros leaves window and scale alone. */
typedef struct delayed {
    const grid *g;
    float scale, window[FP8_STEPS];
    int n, length, margin;
} delayed;

static float scale_of(const delayed *d, float amax)
{
    return f32(d->g->max * ldexp(1, -d->margin)) / amax;
}

static void delayed_update(delayed *d, float amax)
{
    float most = 0;
    if (amax == 0)
        return;
    d->window[d->n++] = amax;
    for (int i = d->n > d->length ? d->n - d->length : 0; i < d->n; i++)
        most = fmaxf(most, d->window[i]);
    d->scale = scale_of(d, most);
}

static int saturates(const grid *g, float x, float scale, double *y)
{
    int over = 0;
    *y = fit(g, (double)(x * scale), &over);
    return over;
}

/* One tensor in one step; returns how many of its saturations are stale. */
static uint64_t check_delayed(delayed *d, const replay_cast *c, const float *x, size_t n)
{
    uint64_t underflow = 0, subnormal = 0, overflow = 0, stale = 0;
    float amax = 0;
    double y, z;
    ck_assert_ptr_nonnull(c);
    for (size_t i = 0; i < n; i++)
        amax = fmaxf(amax, fabsf(b16(x[i])));
    for (size_t i = 0; i < n; i++) {
        const int over = saturates(d->g, b16(x[i]), d->scale, &y);
        overflow += (uint64_t)over;
        stale += over && !saturates(d->g, b16(x[i]), scale_of(d, amax), &z);
        underflow += x[i] != 0 && y == 0;
        subnormal += y != 0 && fabs(y) < ldexp(1, d->g->least);
    }
    ck_assert_msg(c->scale == (double)d->scale, "%s: scale %a, not %a", c->name, c->scale,
                  (double)d->scale);
    delayed_update(d, amax);
    ck_assert_msg(c->next == (double)d->scale, "%s: next scale %a, not %a", c->name, c->next,
                  (double)d->scale);
    ck_assert_msg(c->overflow == overflow && c->stale == stale && c->underflow == underflow &&
                      c->subnormal == subnormal,
                  "%s: overflow %u (%u), stale %u (%u), underflow %u (%u), subnormal %u (%u)",
                  c->name, (unsigned)c->overflow, (unsigned)overflow, (unsigned)c->stale,
                  (unsigned)stale, (unsigned)c->underflow, (unsigned)underflow,
                  (unsigned)c->subnormal, (unsigned)subnormal);
    return stale;
}

static const struct delays {
    const char *name, *text;
    int length, margin;
    const grid *gradient;
} delays[] = {
    {"fp8-1", "fp8_amax_history_len: 1\nfp8_amax_compute_algo: most_recent\n", 1, 0, &e5m2},
    {"fp8-1024", "fp8_amax_history_len: 1024\nfp8_amax_compute_algo: max\n", 1024, 0, &e5m2},
    {"fp8-3", "fp8_amax_history_len: 3\nfp8_amax_compute_algo: max\nfp8: e4m3\n", 3, 0, &e4m3},
    {"fp8-m2", "fp8_amax_history_len: 2\nfp8_amax_compute_algo: max\nfp8_margin: 2\n", 2, 2, &e5m2},
    {"fp8-m-1", "fp8_amax_history_len: 1\nfp8_margin: -1\n", 1, -1, &e5m2},
};
enum { N_DELAYS = sizeof delays / sizeof *delays };

START_TEST(delayed_scales_follow_their_history)
{
    const struct delays *c = &delays[_i];
    char text[512];
    uint64_t stale = 0;
    run r;
    delayed act = {.g = &e4m3, .scale = 1, .length = c->length, .margin = c->margin};
    delayed weight = act, grad = act;
    grad.g = c->gradient;
    const char *at = make_fp8(c->name);
    snprintf(text, sizeof text, "precision: fp8\nfp8_recipe: delayed\n%s", c->text);
    replay_ok(&r, text, at);
    ck_assert_uint_eq(r.n, FP8_STEPS);
    for (int k = 0; k < FP8_STEPS; k++) {
        stale += check_delayed(&act, cast_of(&r.step[k], "act:fc"), fp8_act[k], ROWS * COLS);
        stale += check_delayed(&grad, cast_of(&r.step[k], "agrad:fc"), fp8_grad[k], ROWS * 2);
        check_delayed(&weight, cast_of(&r.step[k], W), fp8_weight, 2 * COLS);
        ck_assert_ptr_nonnull(strstr(cast_of(&r.step[k], "agrad:fc")->format, c->gradient->name));
    }
    printf("# %s: %u stale\n", c->name, (unsigned)stale);
    ck_assert_uint_gt(stale, 0);
    forget(&r);
}
END_TEST

static const grid e2m1 = {"e2m1", 2, 0, 6, 1};

/* Blocks of 32: a power of two that no element exceeds. */
static double mxfp8(const float *block, size_t n, size_t i)
{
    float amax = 0;
    int e = -127;
    for (size_t k = 0; k < n; k++)
        amax = fmaxf(amax, fabsf(block[k]));
    while ((double)amax > ldexp(448, e))
        e++;
    return fit(&e4m3, ldexp((double)block[i], -e), NULL);
}

/* Blocks of 16 under a scale of the tensor. */
static double nvfp4(const float *block, size_t n, size_t i, float all)
{
    float amax = 0;
    const float enc = all > 0 ? 2688 / all : 1, dec = 1 / enc;
    for (size_t k = 0; k < n; k++)
        amax = fmaxf(amax, fabsf(block[k]));
    const float s = (float)fit(&e4m3, (double)(amax * (enc * (1.0f / 6))), NULL);
    const float inverse = fminf(1 / (s * dec), 0x1.fffffep127f);
    return fit(&e2m1, (double)(block[i] * inverse), NULL);
}

START_TEST(block_scales_are_never_stale)
{
    const int four = _i;
    const size_t width = four ? 16 : 32;
    uint64_t lost = 0;
    run r;
    replay_ok(&r, four ? "precision: nvfp4\n" : "precision: mxfp8\n",
              make_fp8(four ? "nvfp4" : "mxfp8"));
    for (int k = 0; k < FP8_STEPS; k++) {
        float x[ROWS * COLS], all = 0;
        uint64_t underflow = 0, subnormal = 0;
        for (size_t i = 0; i < ROWS * COLS; i++) {
            x[i] = b16(fp8_act[k][i]);
            all = fmaxf(all, fabsf(x[i]));
        }
        for (size_t i = 0; i < ROWS * COLS; i++) {
            const size_t column = i % COLS, begins = column - column % width;
            const size_t n = COLS - begins < width ? COLS - begins : width;
            const float *block = x + i - column + begins;
            const double y = four ? nvfp4(block, n, column - begins, all)
                                  : mxfp8(block, n, column - begins);
            underflow += x[i] != 0 && y == 0;
            subnormal += y != 0 && fabs(y) < (four ? 1 : 0x1p-6);
        }
        const replay_cast *c = cast_of(&r.step[k], "act:fc");
        ck_assert_msg(c->underflow == underflow && c->subnormal == subnormal,
                      "step %d: underflow %u (%u), subnormal %u (%u)", k + 1,
                      (unsigned)c->underflow, (unsigned)underflow, (unsigned)c->subnormal,
                      (unsigned)subnormal);
        for (size_t i = 0; i < r.step[k].n_casts; i++)
            ck_assert_uint_eq(r.step[k].casts[i].stale, 0);
        ck_assert(isnan(c->scale) && isnan(c->next));
        ck_assert_uint_eq(four ? 0 : c->overflow, 0);
        lost += underflow;
    }
    ck_assert(lost > 0 || !four);
    forget(&r);
}
END_TEST

/* ---- stochastic rounding ---- */

/* 1 - u lies between 1 - 2^-8 and 1, -1 - u between -1 and -1 - 2^-7: they move with the
 * probability of the rest, so that the mean movement is u. */
START_TEST(stochastic_rounding_moves_by_the_update_on_average)
{
    enum { N = 1000, SEEDS = 200 };
    static float w[2][N / 2], g[N / 2];
    const double u = 0x1p-8 * 77 / 256;
    uint64_t moved[2] = {0}, last = 0, changes = 0;
    char *at = NULL;
    char path[700];
    run r;
    for (size_t i = 0; i < N / 2; i++) {
        w[0][i] = 1;
        w[1][i] = -1;
        g[i] = (float)(2 * u);
    }
    snprintf(path, sizeof path, "%s", begin("stochastic", 1, 0));
    at = path;
    put("weight:down", &bf16, w[0], N / 2, 0);
    put("weight:up", &bf16, w[1], N / 2, 0);
    put("wgrad:down", &bf16, g, N / 2, 0);
    put("wgrad:up", &bf16, g, N / 2, 0);
    end();
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const replay_options o = {.seed = seed};
        replay_files(&r, "data/policies/bf16-stochastic.yaml", &at, 1, &o);
        ck_assert_msg(r.code == 0, "%s", r.error);
        const replay_weight *a = weight_of(&r.step[0], "down"), *b = weight_of(&r.step[0], "up");
        ck_assert_uint_eq(a->updates + b->updates, N);
        moved[0] += a->updates - a->lost;
        moved[1] += b->updates - b->lost;
        changes += a->lost != last;
        last = a->lost;
        forget(&r);
    }
    const double trials = SEEDS * N / 2;
    for (int i = 0; i < 2; i++) {
        const double step = i ? 0x1p-7 : 0x1p-8, p = u / step;
        const double mean = (double)moved[i] * step / trials;
        const double error = step * sqrt(p * (1 - p) / trials);
        printf("# mean movement %g, update %g, standard error %g\n", mean, u, error);
        ck_assert_double_eq_tol(mean, u, 4 * error);
    }
    ck_assert_uint_gt(changes, SEEDS / 2);
}
END_TEST

/* ---- 6. schedules ---- */

START_TEST(a_schedule_changes_plans)
{
    static const char text[] =
        "precision: fp32\nschedule:\n"
        "  - {step: 3, precision: bf16}\n"
        "  - {step: 5, precision: fp16, loss_scaling: {scaler: torch, init: 1024, "
        "growth_interval: 2}}\n"
        "  - {step: 8, precision: fp32}\n"
        "  - {step: 9, precision: fp16, loss_scaling: {scaler: torch, init: 1024, "
        "growth_interval: 2}}\n";
    static const struct {
        const char *format;
        double scale;
        uint64_t tracker;
        int begins;
    } want[] = {{"binary32", 1, 0, 0}, {"binary32", 1, 0, 0}, {"bf16", 1, 0, 1}, {"bf16", 1, 0, 0},
                {"fp16", 1024, 1, 1},  {"fp16", 1024, 0, 0},  {"fp16", 2048, 1, 0},
                {"binary32", 1, 0, 1}, {"fp16", 1024, 1, 1},  {"fp16", 1024, 0, 0}};
    run r;
    const char *at = NULL;
    float w[8];
    memcpy(w, ramp_w, sizeof w);
    for (int k = 0; k < 10; k++) {
        at = begin("schedule", k + 1, 0);
        put(W, &fp32, w, 2, 4);
        put(G, &fp32, ramp_g, 2, 4);
        end();
        for (int i = 0; i < 8; i++) {
            const float scale = (float)want[k].scale;
            const float g = k < 2 || k == 7 ? ramp_g[i] : k < 4 ? b16(ramp_g[i])
                                                                : h16(ramp_g[i] * scale) / scale;
            w[i] = plain(w[i], g);
        }
    }
    replay_ok(&r, text, at);
    ck_assert_uint_eq(r.n, 10);
    for (int k = 0; k < 10; k++) {
        const replay_step *s = &r.step[k];
        ck_assert_msg(strcmp(cast_of(s, G)->format, want[k].format) == 0, "step %d: %s", k + 1,
                      cast_of(s, G)->format);
        ck_assert_double_eq(s->scale, want[k].scale);
        if (want[k].scale > 1)
            ck_assert_uint_eq(s->tracker, want[k].tracker);
        if (k > 0)
            ck_assert_msg(s->new_plan == want[k].begins, "step %d: new_plan %d", k + 1,
                          s->new_plan);
        ck_assert_int_eq((s->events & MPSIM_SCALER_GROWTH) != 0, k == 5 || k == 9);
    }
    ck_assert_uint_eq(sum_run(&r).compared, 72);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* The bundled schedule, whose epochs have 1000 steps: bf16 from step 1001, fp16 from 6001. */
START_TEST(the_bundled_schedule)
{
    static const char *const formats[] = {"binary32", "binary32", "binary32", "bf16", "bf16",
                                          "fp16", "fp16"};
    run r;
    replay_ok(&r, "data/policies/fp32-bf16-fp16.yaml", "data/digits-cnn");
    for (int k = 0; k < 7; k++) {
        ck_assert_msg(strcmp(cast_of(&r.step[k], "act:fc1")->format, formats[k]) == 0, "%d", k);
        ck_assert_double_eq(r.step[k].scale, k < 5 ? 1 : 65536);
    }
    ck_assert_uint_eq(r.step[5].tracker, 1);
    forget(&r);
}
END_TEST

/* Parameters that become bf16, then have a master again. */
START_TEST(parameters_change_their_format)
{
    static const char text[] = "precision: fp32\nschedule:\n"
                               "  - {step: 2, precision: bf16, autocast: all, params: bf16}\n";
    float w[3][8];
    run r;
    for (int i = 0; i < 8; i++) {
        w[0][i] = plain(ramp_w[i], ramp_g[i]);
        w[1][i] = b16(plain(b16(w[0][i]), b16(ramp_g[i])));
    }
    const char *at = begin("convert", 1, 0);
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    begin("convert", 2, 0);
    put(W, &fp32, w[0], 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    begin("convert", 3, 0);
    put(W, &bf16, w[1], 2, 4);
    end();
    replay_ok(&r, text, at);
    ck_assert_uint_eq(sum_step(&r.step[2]).compared, 8);
    ck_assert_uint_eq(sum_step(&r.step[2]).differ, 0);
    ck_assert_str_eq(r.step[1].weights[0].storage, "bf16");
    forget(&r);
}
END_TEST

/* ---- whole steps of other rules ---- */

/* DeepSpeed updates the scale before it unscales: on a growth step by the new scale. */
START_TEST(deepspeed_unscales_with_the_new_scale)
{
    static const char text[] = "precision: fp16\nloss_scaling: {scaler: deepspeed, "
                               "initial_scale_power: 4, loss_scale_window: 1}\n";
    static const double scales[] = {16, 16, 32, 64}, unscales[] = {16, 32, 64};
    const char *at = NULL;
    float w[8];
    run r;
    memcpy(w, ramp_w, sizeof w);
    for (int k = 0; k < 4; k++) {
        at = begin("deepspeed", k + 1, 0);
        put(W, &fp32, w, 2, 4);
        if (k < 3)
            put(G, &fp32, ramp_g, 2, 4);
        end();
        for (int i = 0; i < 8 && k < 3; i++)
            w[i] = plain(w[i], h16(ramp_g[i] * (float)scales[k]) / (float)unscales[k]);
    }
    replay_ok(&r, text, at);
    for (int k = 0; k < 3; k++) {
        ck_assert_double_eq(r.step[k].scale, scales[k]);
        ck_assert_double_eq(r.step[k].unscale, unscales[k]);
        ck_assert_double_eq(r.step[k].next_scale, scales[k + 1]);
    }
    ck_assert_uint_eq(sum_run(&r).compared, 24);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* torch: the reciprocal of the norm plus 1e-6, times the largest norm, each rounded to binary32. */
START_TEST(clipping_by_the_global_norm)
{
    float next[2][8];
    run r;
    double squares[2] = {0, 0};
    const double most = _i ? 10 : 0.25;
    for (int i = 0; i < 8; i++) {
        squares[0] += (double)ramp_g[i] * (double)ramp_g[i];
        squares[1] += (double)(ramp_g[i] * 2) * (double)(ramp_g[i] * 2);
    }
    const float a = f32(sqrt(squares[0])), b = f32(sqrt(squares[1]));
    const float total = f32(sqrt((double)a * (double)a + (double)b * (double)b));
    const float factor = fminf(1, 1 / (total + 1e-6f) * (float)most);
    const char *at = begin("clip", 1, 0);
    float twice[8];
    for (int i = 0; i < 8; i++) {
        twice[i] = ramp_g[i] * 2;
        next[0][i] = plain(ramp_w[i], ramp_g[i] * factor);
        next[1][i] = plain(ramp_w[i], twice[i] * factor);
    }
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    put("weight:fc.bias", &fp32, ramp_w, 8, 0);
    put("wgrad:fc.bias", &fp32, twice, 8, 0);
    end();
    begin("clip", 2, 0);
    put(W, &fp32, next[0], 2, 4);
    put("weight:fc.bias", &fp32, next[1], 8, 0);
    end();
    replay_ok(&r, _i ? "precision: fp32\nclip: 10\n" : "precision: fp32\nclip: 0.25\n", at);
    ck_assert_double_eq_tol(r.step[0].norm, (double)total, 1e-7);
    ck_assert_int_eq(r.step[0].clipped, !_i);
    ck_assert_uint_eq(sum_run(&r).compared, 16);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* One factor unscales and clips. DeepSpeed: 1 / (S max(1, ((norm / S) + 1e-6) / most)); fairseq:
 * (1 / S) (most / (norm / S)), without the 1e-6; in binary64. */
START_TEST(unscaling_and_clipping_at_once)
{
    static const char *const texts[] = {
        "precision: fp16\nloss_scaling: {scaler: deepspeed, initial_scale_power: 8}\n"
        "clip: {rule: deepspeed-zero, max_norm: 0.3}\n",
        "precision: fp16\nloss_scaling: {scaler: fairseq, init: 256}\n"
        "clip: {rule: fairseq, max_norm: 0.3}\n"};
    float scaled[8], next[8];
    double squares = 0, factor = 1.0 / 256;
    run r;
    for (int i = 0; i < 8; i++) {
        scaled[i] = h16(ramp_g[i] * 256);
        squares += (double)scaled[i] * (double)scaled[i];
    }
    const double norm = (double)f32(sqrt(squares));
    ck_assert_double_gt(norm / 256, 0.3);
    if (_i)
        factor *= 0.3 / (factor * norm);
    else
        factor = 1 / (256 * ((norm / 256 + 1e-6) / 0.3));
    for (int i = 0; i < 8; i++)
        next[i] = plain(ramp_w[i], scaled[i] * f32(factor));
    const char *at = begin("combined", 1, 0);
    put(W, &fp32, ramp_w, 2, 4);
    put(G, &fp32, ramp_g, 2, 4);
    end();
    begin("combined", 2, 0);
    put(W, &fp32, next, 2, 4);
    end();
    replay_ok(&r, texts[_i], at);
    ck_assert_double_eq_tol(r.step[0].norm, norm / 256, 1e-7);
    ck_assert_int_eq(r.step[0].clipped, 1);
    ck_assert_uint_eq(sum_run(&r).compared, 8);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* fp16 parameters, fp32 masters: the master moves by the unscaled gradient; the model's copy is the
 * master rounded. */
START_TEST(masters_and_the_models_copy)
{
    static const char text[] = "precision: fp16\nautocast: all\nparams: fp16\n"
                               "master_weights: true\nloss_scaling: {scaler: torch, init: 512}\n";
    float master[8], model[8], m[8];
    run r;
    const char *at = NULL;
    for (int i = 0; i < 8; i++)
        master[i] = h16(ramp_w[i]);
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 8; i++)
            model[i] = h16(master[i]);
        at = begin("master", k + 1, 0);
        set("mpsim.momentum", "0.9");
        put(W, &fp16, model, 2, 4);
        put("master:fc.weight", &fp32, master, 2, 4);
        if (k)
            put(M, &fp32, m, 2, 4);
        if (k < 3)
            put(G, &fp32, ramp_g, 2, 4);
        end();
        for (int i = 0; i < 8; i++) {
            const float g = h16(ramp_g[i] * 512) / 512, old = 0.9f * m[i];
            m[i] = k ? old + g : g;
            const float move = 0.5f * m[i];
            master[i] -= move;
        }
    }
    replay_ok(&r, text, at);
    ck_assert_uint_eq(sum_run(&r).compared, 72);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    ck_assert_int_eq(r.step[0].weights[0].master, 1);
    ck_assert_str_eq(r.step[0].weights[0].storage, "fp16");
    forget(&r);
}
END_TEST

/* A master split into the model's bf16 code and the other 16 bits: the model's copy is rounded to
 * nearest with ties away from zero, that of a plain master with ties to even. */
START_TEST(a_split_master_rounds_ties_away)
{
    static const float start[4] = {1, -1, 2, 0.5f};
    static const float masters[4] = {1 + 0x1p-8f, -1 - 0x1p-8f, 2 + 0x3p-7f, 0.5f + 0x1.8p-10f};
    static const float away[4] = {1 + 0x1p-7f, -1 - 0x1p-7f, 2 + 0x1p-5f, 0.5f};
    static const float even[4] = {1, -1, 2 + 0x1p-5f, 0.5f};
    char text[200];
    float g[4];
    run r;
    for (int i = 0; i < 4; i++)
        g[i] = (start[i] - masters[i]) * 2;
    const char *at = begin("split", 1, 0);
    put(W, &bf16, start, 2, 2);
    put(G, &fp32, g, 2, 2);
    end();
    for (int k = 0; k < 4; k++) { /* policy and record: split or not */
        begin("split", 2, 0);
        put(W, &bf16, k & 1 ? away : even, 2, 2);
        put("master:fc.weight", &fp32, masters, 2, 2);
        end();
        snprintf(text, sizeof text, "precision: bf16\nautocast: all\nparams: bf16\ngrads: fp32\n"
                 "master_weights: %s\n", k & 2 ? "split" : "true");
        replay_ok(&r, text, at);
        ck_assert_uint_eq(sum_run(&r).compared, 8);
        ck_assert_msg(sum_run(&r).differ == (!(k & 1) == !(k & 2) ? 0 : 2), "%d: %u differ", k,
                      (unsigned)sum_run(&r).differ);
        ck_assert_uint_eq(r.step[0].bytes.weights + r.step[0].bytes.master, k & 2 ? 16 : 24);
        forget(&r);
    }
}
END_TEST

/* Adam in the order of ieee; t does not advance where the step is skipped. Traces say the betas in
 * one key or in two. */
START_TEST(adam_counts_the_steps_it_takes)
{
    float w[8], m[8] = {0}, v[8] = {0}, bad[8];
    run r;
    const char *at = NULL;
    memcpy(w, ramp_w, sizeof w);
    memcpy(bad, ramp_g, sizeof bad);
    bad[2] = NAN;
    for (int k = 0, t = 0; k < 5; k++) {
        const int skipped = k == 0 || k == 2;
        at = begin("adam", k + 1, 0);
        set("mpsim.optimizer", "adam");
        set("mpsim.lr", "0.01");
        if (_i) {
            set("mpsim.beta1", "0.9");
            set("mpsim.beta2", "0.99");
        } else {
            set("mpsim.betas", "0.9,0.99");
        }
        set("mpsim.eps", "1e-6");
        put(W, &fp32, w, 2, 4);
        if (t) {
            put(M, &fp32, m, 2, 4);
            put("opt.v:fc.weight", &fp32, v, 2, 4);
        }
        if (k < 4)
            put(G, &fp32, skipped ? bad : ramp_g, 2, 4);
        end();
        t += !skipped;
        const float c1 = f32(1 - pow(0.9, t)), c2 = f32(1 - pow(0.99, t));
        for (int i = 0; i < 8 && !skipped; i++) {
            const float scale = k == 1 ? 512 : 256, g = h16(ramp_g[i] * scale) / scale;
            const float m0 = 0.9f * m[i], m1 = f32(1 - 0.9) * g, square = g * g;
            const float v0 = 0.99f * v[i], v1 = f32(1 - 0.99) * square;
            m[i] = m0 + m1;
            v[i] = v0 + v1;
            const float root = sqrtf(v[i] / c2), step = 0.01f * (m[i] / c1);
            w[i] -= step / (root + 1e-6f);
        }
    }
    replay_ok(&r, "precision: fp16\nloss_scaling: {scaler: torch, init: 1024}\n", at);
    ck_assert_uint_eq(sum_run(&r).compared, 8 + 3 * 24);
    ck_assert_uint_eq(sum_run(&r).differ, 0);
    forget(&r);
}
END_TEST

/* Layers that a policy keeps out of FP8, keeps in fp32, or calls something else. */
START_TEST(exceptions_of_a_policy)
{
    static const char text[] = "precision: fp8\nfp8_exclude: [fc2]\nkeep_fp32: [conv1]\n"
                               "layer_kinds: {conv2: softmax}\n";
    static const char *const want[][2] = {
        {"act:fc1", "bf16 > e4m3"},   {"weight:fc1.weight", "bf16 > e4m3"},
        {"agrad:fc1", "bf16 > e5m2"}, {"wgrad:fc1.weight", "bf16"},
        {"act:fc2", "bf16"},          {"agrad:fc2", "bf16"},
        {"act:conv1", "binary32"},    {"wgrad:conv1.weight", "binary32"},
        {"act:conv2", "binary32"},    {"weight:bn1.weight", "binary32"},
        {"act:bn1", "bf16"}};
    run r;
    replay_ok(&r, text, "data/digits-cnn");
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const replay_cast *c = cast_of(&r.step[0], want[i][0]);
        ck_assert_msg(c && strcmp(c->format, want[i][1]) == 0, "%s: %s, not %s", want[i][0],
                      c ? c->format : "none", want[i][1]);
    }
    forget(&r);
}
END_TEST

/* ---- 7. bytes ---- */

/* digits-cnn: 3682 parameters, 48 of them of batch norm; activations 33792, 3072 of them of linear
 * layers (32 x 64 and 32 x 32). SGD with momentum: one number of state each. */
enum { P = 3682, BN = 48, ACTS = 33792, LINEAR = 3072 };
static const struct memory {
    const char *policy;
    replay_bytes want; /* weights, master, gradients, state, activations */
} memories[] = {
    {"fp32", {4 * P, 0, 4 * P, 4 * P, 4 * ACTS}},
    {"pytorch-amp-fp16", {4 * P, 0, 4 * P, 4 * P, 2 * ACTS}},
    {"pytorch-amp-bf16", {4 * P, 0, 4 * P, 4 * P, 2 * ACTS}},
    {"apex-O2", {2 * P + 2 * BN, 4 * (P - BN), 2 * P + 2 * BN, 4 * P, 2 * ACTS}},
    {"apex-O3", {2 * P, 0, 2 * P, 2 * P, 2 * ACTS}},
    {"bf16-pure", {2 * P, 0, 2 * P, 2 * P, 2 * ACTS}},
    {"bf16-kahan", {2 * P, 0, 2 * P, 4 * P, 2 * ACTS}},
    {"megatron-bf16", {2 * P, 4 * P, 4 * P, 4 * P, 2 * ACTS}},
    {"megatron-fp16", {2 * P, 4 * P, 2 * P, 4 * P, 2 * ACTS}},
    {"deepseek-v3-fp8", {2 * P, 4 * P, 4 * P, 2 * P, 2 * (ACTS - LINEAR) + LINEAR + 64 * 4}},
    {"te-mxfp8", {2 * P, 4 * P, 4 * P, 4 * P, 2 * (ACTS - LINEAR) + LINEAR + LINEAR / 32}},
    {"nemo-fp8-hybrid-max", /* weights of linear layers in FP8, with a scale each */
     {2 * P - (64 * 32 + 32 * 10) + 2 * 4, 4 * P, 4 * P, 4 * P,
      2 * (ACTS - LINEAR) + LINEAR + 2 * 4}},
    {"te-nvfp4",
     {2 * P, 4 * P, 4 * P, 4 * P, 2 * (ACTS - LINEAR) + LINEAR / 2 + LINEAR / 16 + 2 * 4}},
};
enum { N_MEMORIES = sizeof memories / sizeof *memories };

START_TEST(bytes_by_hand)
{
    const struct memory *c = &memories[_i];
    char path[200];
    run r;
    snprintf(path, sizeof path, "data/policies/%s.yaml", c->policy);
    replay_ok(&r, path, "data/digits-cnn");
    const replay_bytes *b = &r.step[6].bytes;
    ck_assert_msg(b->weights == c->want.weights && b->master == c->want.master &&
                      b->gradients == c->want.gradients && b->state == c->want.state &&
                      b->activations == c->want.activations,
                  "%s: weights %u (%u), master %u (%u), gradients %u (%u), state %u (%u), "
                  "activations %u (%u)", c->policy, (unsigned)b->weights, (unsigned)c->want.weights,
                  (unsigned)b->master, (unsigned)c->want.master, (unsigned)b->gradients,
                  (unsigned)c->want.gradients, (unsigned)b->state, (unsigned)c->want.state,
                  (unsigned)b->activations, (unsigned)c->want.activations);
    forget(&r);
}
END_TEST

/* ---- the program ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/mpsim-replay-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(top))
        return EXIT_FAILURE;
    TCase *recorded = test_case("recorded", 60), *casts = test_case("casts", 60);
    TCase *lost = test_case("lost", 60);
    tcase_add_loop_test(recorded, recorded_runs_give_their_bits, 0, 4);
    tcase_add_test(recorded, clipped_where_the_norm_is_above);
    tcase_add_test(recorded, digits_in_fp32_give_the_last_step);
    tcase_add_loop_test(recorded, a_wrong_policy_is_seen, 0, N_WRONGS);
    tcase_add_loop_test(casts, casts_are_counted, 0, 3);
    tcase_add_test(casts, a_bias_is_cast_like_its_weight);
    tcase_add_test(casts, what_autocast_leaves_in_fp32);
    tcase_add_loop_test(lost, bf16_loses_what_the_readme_says, 0, 2);
    tcase_add_test(lost, a_master_keeps_updates);
    tcase_add_test(lost, distances_from_the_references);
    tcase_add_test(lost, kahan_keeps_updates);
    TCase *synthetic = test_case("synthetic", 60);
    tcase_add_test(synthetic, one_flipped_bit_is_seen);
    tcase_add_loop_test(synthetic, ranks_are_averaged, 0, N_REDUCTIONS);
    tcase_add_test(synthetic, another_wire_is_seen);
    tcase_add_test(synthetic, reduced_gradients_are_taken_once);
    tcase_add_test(synthetic, one_rank_overflows);
    tcase_add_loop_test(synthetic, recorded_scales_are_taken_out, 0, 2);
    tcase_add_test(synthetic, unscaled_gradients_stay);
    tcase_add_loop_test(synthetic, bad_gradients_are_skipped, 0, 4);
    tcase_add_test(synthetic, a_static_scale_takes_infinity);
    tcase_add_loop_test(synthetic, gaps_begin_from_the_record, 0, 3);
    tcase_add_test(synthetic, what_is_missing_is_said);
    tcase_add_test(synthetic, shapes_and_steps_must_fit);
    tcase_add_test(synthetic, a_file_needs_a_step);
    tcase_add_test(synthetic, gradients_alone);
    tcase_add_test(synthetic, weights_alone);
    tcase_add_test(synthetic, activations_alone);
    tcase_add_loop_test(synthetic, empty_and_scalar_tensors, 0, 2);
    TCase *fp8 = test_case("fp8", 60), *rules = test_case("rules", 60);
    tcase_add_loop_test(fp8, delayed_scales_follow_their_history, 0, N_DELAYS);
    tcase_add_loop_test(fp8, block_scales_are_never_stale, 0, 2);
    tcase_add_test(rules, stochastic_rounding_moves_by_the_update_on_average);
    tcase_add_test(rules, a_schedule_changes_plans);
    tcase_add_test(rules, the_bundled_schedule);
    tcase_add_test(rules, parameters_change_their_format);
    tcase_add_test(rules, deepspeed_unscales_with_the_new_scale);
    tcase_add_loop_test(rules, clipping_by_the_global_norm, 0, 2);
    tcase_add_loop_test(rules, unscaling_and_clipping_at_once, 0, 2);
    tcase_add_test(rules, masters_and_the_models_copy);
    tcase_add_test(rules, a_split_master_rounds_ties_away);
    tcase_add_loop_test(rules, adam_counts_the_steps_it_takes, 0, 2);
    tcase_add_test(rules, exceptions_of_a_policy);
    tcase_add_loop_test(rules, bytes_by_hand, 0, N_MEMORIES);
    TCase *const cases[] = {recorded, casts, lost, synthetic, fp8, rules, NULL};
    const int code = test_main("replay", cases);
    nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return code;
}
