/* t-replay-fp8.c -- delayed scales of FP8 step by step, with what saturates because a scale is
 * stale; block scales, which never are. */
#include "oracle/replay.h"
#include "support/replaykept.h"
#include "support/replaytrace.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
        at = made_begin(name, k + 1, 0);
        made_set("mpsim.lr", "0");
        made_put(W, &fp32, fp8_weight, 2, COLS);
        made_put(G, &fp32, zero, 2, COLS);
        made_put("act:fc", &fp32, fp8_act[k], ROWS, COLS);
        made_put("agrad:fc", &fp32, fp8_grad[k], ROWS, 2);
        made_end();
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
    ck_assert_msg(c->scale == (double)d->scale, "%s: scale %a, not %a", c->name, c->scale, (double)d->scale);
    delayed_update(d, amax);
    ck_assert_msg(c->next == (double)d->scale, "%s: next scale %a, not %a", c->name, c->next, (double)d->scale);
    ck_assert_msg(c->overflow == overflow && c->stale == stale && c->underflow == underflow &&
                      c->subnormal == subnormal,
                  "%s: overflow %u (%u), stale %u (%u), underflow %u (%u), subnormal %u (%u)", c->name,
                  (unsigned)c->overflow, (unsigned)overflow, (unsigned)c->stale, (unsigned)stale,
                  (unsigned)c->underflow, (unsigned)underflow, (unsigned)c->subnormal, (unsigned)subnormal);
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

CASE("fp8", 60);

TESTS(delayed_scales_follow_their_history, N_DELAYS)
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

TESTS(block_scales_are_never_stale, 2)
{
    const int four = _i;
    const size_t width = four ? 16 : 32;
    uint64_t lost = 0;
    run r;
    replay_ok(&r, four ? "precision: nvfp4\n" : "precision: mxfp8\n", make_fp8(four ? "nvfp4" : "mxfp8"));
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
            const double y = four ? nvfp4(block, n, column - begins, all) : mxfp8(block, n, column - begins);
            underflow += x[i] != 0 && y == 0;
            subnormal += y != 0 && fabs(y) < (four ? 1 : 0x1p-6);
        }
        const replay_cast *c = cast_of(&r.step[k], "act:fc");
        ck_assert_msg(c->underflow == underflow && c->subnormal == subnormal,
                      "step %d: underflow %u (%u), subnormal %u (%u)", k + 1, (unsigned)c->underflow,
                      (unsigned)underflow, (unsigned)c->subnormal, (unsigned)subnormal);
        for (size_t i = 0; i < r.step[k].n_casts; i++)
            ck_assert_uint_eq(r.step[k].casts[i].stale, 0);
        ck_assert(isnan(c->scale) && isnan(c->next));
        ck_assert_uint_eq(four ? 0 : c->overflow, 0);
        lost += underflow;
    }
    ck_assert(lost > 0 || !four);
    forget(&r);
}

TEST_MAIN_BY(replay_test_main, "replay-fp8");
