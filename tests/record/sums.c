/* sums.c -- reductions of devices: orders of additions that give the same sum. */
#include "device.h"

#include "support/support.h"

#include <math.h>
#include <mpsim/digest.h>
#include <mpsim/layer.h>
#include <mpsim/gradient.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- orders ---- */

static float sequential(const float *x, size_t n)
{
    float s = 0;
    for (size_t i = 0; i < n; i++)
        s += x[i];
    return s;
}

/* Neighbours, then neighbours of these; an odd last one passes. */
static float pairwise(const float *x, size_t n)
{
    size_t half = 1;
    if (n <= 1)
        return n ? x[0] : 0;
    while (half * 2 < n)
        half *= 2;
    return pairwise(x, half) + pairwise(x + half, n - half);
}

/* In binary64, rounded once at the end. */
static float wide(const float *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += (double)x[i];
    return (float)s;
}

/* Partial sums of `threads` threads, folded: halves from the largest down to warps, then within
 * warps upwards (1, 2, ... 16) or downwards. */
static float fold(float *s, size_t threads, int up)
{
    size_t offset = threads / 2;
    for (; offset >= 32; offset /= 2)
        for (size_t i = 0; i < offset; i++)
            s[i] += s[i + offset];
    const size_t warp = threads < 32 ? threads : 32;
    for (size_t step = up ? 1 : warp / 2; step > 0 && step < warp; step = up ? step * 2 : step / 2)
        for (size_t i = 0; i + step < warp; i++)
            s[i] += s[i + step];
    return s[0];
}

/* As a kernel that reduces one row does: each of `threads` threads of each block takes groups of
 * `vector` numbers by turns, adds each place of the group apart and these at the end; what fills no
 * group goes to the first threads, a number each. The threads of a block are folded, then the blocks. `apart`
 * 1: places are numbers `threads` apart, not neighbours. */
static float by_threads(const float *x, size_t n, size_t threads, size_t blocks, size_t vector, int apart, int up)
{
    const size_t all = threads * blocks, group = all * vector;
    const size_t grouped = apart ? n : n - n % vector;
    float *of = calloc(group, sizeof *of), *s = calloc(all + 1024, sizeof *s);
    device_need(of && s);
    for (size_t i = 0; i < n; i++) {
        const size_t in = i % group;
        const size_t t = i >= grouped ? i - grouped : apart ? in % all : in / vector;
        of[t * vector + (i >= grouped ? 0 : apart ? in / all : in % vector)] += x[i];
    }
    for (size_t t = 0; t < all; t++) {
        s[t] = of[t * vector];
        for (size_t v = 1; v < vector; v++)
            s[t] += of[t * vector + v];
    }
    for (size_t b = 0; b < blocks; b++)
        s[b] = fold(s + b * threads, threads, up);
    memset(s + blocks, 0, (all - blocks) * sizeof *s);
    for (size_t i = threads; i < blocks; i++)
        s[i % threads] += s[i];
    const float sum = blocks > 1 ? fold(s, threads, up) : s[0];
    free(of);
    free(s);
    return sum;
}

/* ---- ATen's, for CUDA ---- */

static float aten(const float *x, size_t n)
{
    const device_order o = device_order_of(1, n, 1);
    return device_sum(&o, x, 1, 0);
}

enum { THREADS = 512, CHUNK = 65536, WARP = 32 };

/* BlockReduceSum: each warp, then the first one over what they left. */
static float add_block(float s[THREADS])
{
    float warps[WARP] = {0};
    for (size_t w = 0; w < THREADS / WARP; w++)
        warps[w] = fold(s + w * WARP, WARP, 0);
    return fold(warps, WARP, 0);
}

/* As clip_grad_norm_ takes it: chunks, each thread four sums of squares by FMA. */
float device_list_norm(const float *x, size_t n)
{
    float chunks[THREADS] = {0};
    for (size_t first = 0; first < n; first += CHUNK) {
        static float v[THREADS][4];
        float s[THREADS];
        memset(v, 0, sizeof v);
        for (size_t i = 0; i < CHUNK && first + i < n; i++) {
            float *to = n % 4 ? &v[i % THREADS][i / THREADS % 4] : &v[i / 4 % THREADS][i % 4];
            *to = fmaf(x[first + i], x[first + i], *to);
        }
        for (size_t t = 0; t < THREADS; t++)
            s[t] = v[t][0] + v[t][1] + v[t][2] + v[t][3];
        chunks[first / CHUNK % THREADS] += add_block(s);
    }
    return sqrtf(add_block(chunks));
}

/* Welford's mean and sum of squared deviations. */
typedef struct welford {
    float mean, m2, count;
} welford;

/* reciprocal 1: of rows whose length is a multiple of 4, whose kernel multiplies by 1 / count. */
static welford add_number(welford w, float x, int reciprocal)
{
    const float d = x - w.mean, count = w.count + 1;
    const float mean = reciprocal ? fmaf(d, 1 / count, w.mean) : w.mean + d / count;
    return (welford){mean, fmaf(d, x - mean, w.m2), count};
}

static welford combine(welford a, welford b, int reciprocal)
{
    const float d = reciprocal ? a.mean - b.mean : b.mean - a.mean, count = a.count + b.count;
    if (reciprocal) {
        const float coefficient = 1 / count, na = a.count * coefficient, nb = b.count * coefficient;
        if (count == 0)
            return (welford){0, 0, 0};
        return (welford){fmaf(nb, b.mean, na * a.mean), fmaf(d * d * b.count, na, b.m2 + a.m2), count};
    }
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    const float share = b.count / count;
    return (welford){fmaf(d, share, a.mean), fmaf(d * d * a.count, share, a.m2 + b.m2), count};
}

static welford fold_warp(welford *w, int reciprocal)
{
    for (size_t step = WARP / 2; step > 0; step /= 2)
        for (size_t i = 0; i + step < WARP; i++)
            w[i] = combine(w[i], w[i + step], reciprocal);
    return w[0];
}

/* Of one row: 128 threads of four neighbours, their warps by halves; of other lengths 512 threads of one number. */
static welford row_moments(const float *x, size_t n)
{
    static welford w[THREADS];
    const int whole = n % 4 == 0;
    const size_t threads = whole ? 128 : THREADS, group = whole ? 4 : 1;
    welford warps[WARP] = {{0, 0, 0}};
    memset(w, 0, sizeof w);
    for (size_t i = 0; i < n; i++)
        w[i / group % threads] = add_number(w[i / group % threads], x[i], whole);
    for (size_t k = 0; k < threads / WARP; k++)
        warps[k] = fold_warp(w + k * WARP, whole);
    if (!whole)
        return fold_warp(warps, 0);
    for (size_t half = threads / WARP / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++)
            warps[k] = combine(warps[k], warps[k + half], 1);
    return warps[0];
}

/* Orders that give `want` after `end`: what is done with the sum. */
typedef float ending(float sum, size_t n);

static float as_sum(float sum, size_t n)
{
    (void)n;
    return sum;
}

static float as_mean(float sum, size_t n)
{
    return sum / (float)n;
}

static float as_norm(float sum, size_t n)
{
    (void)n;
    return sqrtf(sum);
}

typedef struct wanted {
    const float *x;
    size_t n;
    const mpsim_format *f;
    uint64_t code;
    ending *end;
} wanted;

/* Orders in turn: those that failed once are out; of the last sum those that are left are named. */
typedef struct trial {
    unsigned char out[256];
    size_t at;
    int last;
    device_fits *fits;
} trial;

/* 1: the order of this turn is out, and its sum not needed. */
static int is_out(trial *t)
{
    if (!t->out[t->at])
        return 0;
    t->at++;
    return 1;
}

static void try_sum(const wanted *w, trial *t, float sum, const char *name)
{
    const size_t k = t->at++;
    t->out[k] |= device_encode(w->f, w->end(sum, w->n)) != w->code;
    if (t->last && !t->out[k])
        device_fit(t->fits, "%s", name);
}

static void try_orders(const wanted *w, trial *t)
{
    char name[80];
    t->at = 0;
    try_sum(w, t, sequential(w->x, w->n), "sequential");
    try_sum(w, t, pairwise(w->x, w->n), "pairwise");
    try_sum(w, t, wide(w->x, w->n), "binary64");
    try_sum(w, t, aten(w->x, w->n), "ATen's for CUDA");
    for (size_t lanes = 2; lanes <= 1024; lanes *= 2) {
        snprintf(name, sizeof name, "%zu lanes", lanes);
        if (!is_out(t))
            try_sum(w, t, mpsim_sum_lanes(NULL, w->x, w->n, 1, lanes), name);
    }
    /* Longer rows are several blocks', in an order that is not here. */
    for (size_t threads = 32; threads <= 1024 && w->n <= 1 << 16; threads *= 2)
        for (size_t vector = 1; vector <= 8; vector *= 2)
            for (int k = 0; k < 4; k++) {
                snprintf(name, sizeof name, "%zu threads of %zu%s, folded %s", threads, vector, k & 1 ? " apart" : "",
                         k & 2 ? "up" : "down");
                if (!is_out(t))
                    try_sum(w, t, by_threads(w->x, w->n, threads, 1, vector, k & 1, k >> 1), name);
            }
}

/* ---- cases ---- */

static float *numbers(uint64_t stream, const char *type, size_t n, int squares)
{
    float *x = malloc(n * sizeof *x);
    device_need(x != NULL);
    for (size_t i = 0; i < n; i++) {
        x[i] = device_number(type, -3, 1, stream, i);
        x[i] = squares ? x[i] * x[i] : x[i];
    }
    return x;
}

/* Mean, reciprocal deviation, and the row, by mpsim's LayerNorm beside the orders of its mean. */
static void layer_norm(const json_t *c, const char *type, const float *x, size_t n, device_fits *fits)
{
    const mpsim_format *b32 = mpsim_format_find("binary32");
    const json_t *mean = json_object_get(c, "mean"), *rstd = json_object_get(c, "rstd");
    const wanted w = {x, n, b32, device_code(device_text(mean, "d"), 0), as_mean};
    const mpsim_rownorm r = {.rows = 1, .cols = n, .kind = MPSIM_NORM_LAYER, .eps = 1e-5f};
    float *y = malloc(n * sizeof *y), *one = malloc(n * sizeof *one), m, inverse;
    device_need(y && one);
    for (size_t i = 0; i < n; i++)
        one[i] = 1;
    if (strcmp(type, "float32") == 0 && mpsim_rownorm_forward(&r, y, &m, &inverse, x, one, NULL) == MPSIM_OK &&
        bits_of_f32(m) == w.code && bits_of_f32(inverse) == device_code(device_text(rstd, "d"), 0))
        device_fit(fits, "mpsim's mean and deviation%s",
                   device_same_digest(c, "y", mpsim_digest(b32, y, n, 0)) ? " and row" : "");
    trial t = {.last = 1, .fits = fits};
    try_orders(&w, &t);
    free(y);
    free(one);
}

/* Whether all of the row is (x - mean) times the recorded 1 / deviation, rounded to the type. */
static int is_normed(const json_t *c, const mpsim_format *f, const float *x, size_t n, float mean, float inverse)
{
    uint64_t digest = 0;
    for (size_t i = 0; i < n; i++)
        digest += device_word(device_encode(f, (x[i] - mean) * inverse), i);
    return device_same_digest(c, "y", digest);
}

/* The same on a device: 1 / deviation is by the machine's approximate root there. */
static void layer_norm_by_welford(const json_t *c, const char *type, const float *x, size_t n, device_fits *fits)
{
    const welford w = row_moments(x, n);
    const float variance = w.m2 / (float)n + 1e-5f;
    const uint64_t want = device_code(device_text(json_object_get(c, "rstd"), "d"), 0);
    const int64_t apart = (int64_t)bits_of_f32((float)(1 / sqrt((double)variance))) - (int64_t)want;
    if (bits_of_f32(w.mean) == device_code(device_text(json_object_get(c, "mean"), "d"), 0) && llabs(apart) <= 2 &&
        is_normed(c, device_format(type), x, n, w.mean, f32_of_bits((uint32_t)want)))
        device_fit(fits, "ATen's for CUDA, by Welford; 1 / deviation %d ulp from the nearest", (int)llabs(apart));
}

static void cross_entropy(const json_t *c, const mpsim_format *f, const float *x, size_t n, device_fits *fits)
{
    float loss = 0;
    const uint32_t label = (uint32_t)device_integer(c, "label");
    const mpsim_status s = mpsim_softmax_xent(NULL, f, 1, n, x, &label, 1, &loss, NULL, NULL);
    if (s == MPSIM_OK && device_encode(f, loss) == device_code(device_text(c, "d"), 0))
        device_fit(fits, "mpsim's cross-entropy");
}

/* On a device: what its ATen does, of all streams. */
static int is_atens(const json_t *c, const char *type, size_t n, int norm)
{
    const json_t *streams = json_object_get(c, "streams");
    int equal = 1;
    for (size_t i = 0; i < json_array_size(streams) && equal; i++) {
        float *x = numbers((uint64_t)json_integer_value(json_array_get(streams, i)), type, n, 0);
        const float y = norm ? device_list_norm(x, n) : aten(x, n);
        equal = device_encode(device_format(type), y) == device_code(device_text(c, "d"), i);
        free(x);
    }
    return equal;
}

/* Sums, or norms, of several streams, all of which an order must give. */
static void sums(const json_t *c, const char *type, size_t n, int norm, device_fits *fits)
{
    const json_t *streams = json_object_get(c, "streams");
    trial t = {.fits = fits};
    for (size_t i = 0; i < json_array_size(streams); i++) {
        float *x = numbers((uint64_t)json_integer_value(json_array_get(streams, i)), type, n, norm);
        const wanted w = {x, n, device_format(type), device_code(device_text(c, "d"), i), norm ? as_norm : as_sum};
        t.last = i + 1 == json_array_size(streams);
        try_orders(&w, &t);
        free(x);
    }
}

void device_reductions(const json_t *head, const json_t *c, char *answer)
{
    char what[32], type[32];
    device_fits fits = {.count = 0};
    const size_t n = (size_t)device_integer(c, "n");
    const json_t *streams = json_object_get(c, "streams");
    const size_t codes = device_codes(device_text(c, "d"));
    const int cuda = strcmp(device_text(head, "kind"), "cuda") == 0;
    if (sscanf(device_text(c, "case"), "%31s %31s", what, type) != 2 || !device_format(type) || n == 0 ||
        n > (size_t)1 << 24 || (codes > 0 && codes != json_array_size(streams))) {
        device_say(answer, "not understood");
        return;
    }
    const int norm = strcmp(what, "norm") == 0;
    float *x = numbers((uint64_t)json_integer_value(json_array_get(streams, 0)), type, n, 0);
    if (strcmp(what, "cross_entropy") == 0)
        cross_entropy(c, device_format(type), x, n, &fits);
    else if (strcmp(what, "layer_norm") == 0 && cuda)
        layer_norm_by_welford(c, type, x, n, &fits);
    else if (strcmp(what, "layer_norm") == 0)
        layer_norm(c, type, x, n, &fits);
    else if (cuda && is_atens(c, type, n, norm))
        device_fit(&fits, "ATen's for CUDA");
    else
        sums(c, type, n, norm, &fits);
    free(x);
    if (fits.count)
        device_say_fits(answer, &fits);
    else
        device_say(answer, "none fits; %.2f ulp from the true value",
                   json_number_value(json_object_get(codes ? c : json_object_get(c, "mean"), "ulps")));
}
