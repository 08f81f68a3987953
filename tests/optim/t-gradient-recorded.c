/* t-gradient-recorded.c -- values that torch unscaled, and gradients that it clipped.
 *
 * Bit by bit, but for norms: torch adds squares in binary32 in an order of its own. */
#include <mpsim/gradient.h>
#include <mpsim/round.h>

#include "support/support.h"
#include "support/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { VALUES = 4096 };

/* f32 NULL */
static const mpsim_format *format_of(const char *name)
{
    static const char *const names[][2] = {{"f16", "fp16"}, {"bf16", "bf16"}};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(name, names[i][0]) == 0)
            return mpsim_format_find(names[i][1]);
    ck_assert_str_eq(name, "f32");
    return NULL;
}

static float value_of(const mpsim_format *f, uint64_t bits)
{
    return f ? (float)mpsim_decode(f, bits) : f32_of_bits((uint32_t)bits);
}

static int same(float x, float y)
{
    return (isnan(x) && isnan(y)) || bits_of_f32(x) == bits_of_f32(y);
}

/* Values of one group or set. */
static float in[VALUES], out[VALUES], y[VALUES], kept[VALUES];

/* The number of values that differ; found: what torch reported. */
static size_t unscaled(const mpsim_format *f, double scale, size_t n, int found)
{
    size_t mismatches = 0, keeps = 0;
    const unsigned u = mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, scale, f, y, in, n);
    ck_assert_msg(((u & MPSIM_FOUND_INPUT) != 0) == found, "scale %a: found %u", scale, u);
    unsigned output = 0;
    for (size_t i = 0; i < n; i++) {
        const int changed = scale == 1 && bits_of_f32(y[i]) != bits_of_f32(in[i]);
        mismatches += changed || !same(y[i], out[i]);
        output |= isfinite(out[i]) ? 0 : MPSIM_FOUND_OUTPUT;
        if (isfinite(in[i]))
            kept[keeps++] = in[i];
    }
    ck_assert((u & MPSIM_FOUND_OUTPUT) == output);
    ck_assert(!(mpsim_unscale_array(MPSIM_UNSCALE_RECIPROCAL, scale, f, kept, kept, keeps) & MPSIM_FOUND_INPUT));
    return mismatches;
}

CASE("gradients", 30);

TEST(unscale)
{
    FILE *f = words_open("unscale.txt");
    static words w;
    size_t values = 0, mismatches = 0, groups = 0, n = 0;
    const mpsim_format *format = NULL;
    double scale = 0;
    int found = 0;
    while (words_next(f, &w)) {
        if (words_skip(&w))
            continue;
        const int group = strcmp(w.word[0], "group") == 0;
        if (group && strcmp(w.word[4], "finite") == 0) { /* ends the group before it */
            ck_assert(n > 0 && traininglog_words_integer(w.word[3]) == 0 && words_real(w.word[1]) == scale);
            mismatches += unscaled(format, scale, n, found);
            values += n;
            groups++;
            n = 0;
        } else if (group) {
            ck_assert(n == 0);
            scale = words_real(w.word[1]);
            format = format_of(w.word[2]);
            found = (int)traininglog_words_integer(w.word[3]);
        } else if (strcmp(w.word[0], "raises") != 0) { /* fp16: torch refuses */
            ck_assert(n < VALUES && w.count == 4 && words_real(w.word[0]) == scale);
            in[n] = value_of(format, words_bits(w.word[2]));
            out[n++] = value_of(format, words_bits(w.word[3]));
        }
    }
    fclose(f);
    printf("# unscale.txt: %zu groups, %zu values, %zu mismatches\n", groups, values, mismatches);
    ck_assert(n == 0 && mismatches == 0 && groups >= 10 && values >= 500);
}

typedef struct set {
    const mpsim_format *f;
    double max;
    float total, norms[16];
    size_t tensors;
    uint64_t code;
} set;

/* Torch sums in binary32 in its own order: within two units in the last place. */
static int near_total(const set *s)
{
    const float t = (float)mpsim_clip_total(MPSIM_CLIP_TORCH_CPU, s->f, s->norms, s->tensors);
    if (!isfinite(s->total))
        return same(t, s->total);
    const float up = s->f ? value_of(s->f, s->code + 2) : f32_of_bits((uint32_t)s->code + 2);
    return t >= s->total - (up - s->total) && t <= up;
}

static size_t clipped(const set *s, size_t n)
{
    const mpsim_clip c = mpsim_clip_factor(MPSIM_CLIP_TORCH_CPU, s->f, (double)s->total, s->max, 65536);
    ck_assert(c.apply && !c.unscales && c.clipped == ((double)s->total > s->max));
    size_t mismatches = 0;
    mpsim_scale_array(s->f, y, in, n, (float)c.factor);
    for (size_t i = 0; i < n; i++)
        mismatches += !same(y[i], out[i]);
    return mismatches;
}

static size_t tensor(const mpsim_format *f, const words *w, float *x)
{
    for (size_t i = 2; i < w->count; i++)
        x[i - 2] = value_of(f, words_bits(w->word[i]));
    return w->count - 2;
}

TEST(clip)
{
    FILE *f = words_open("clip.txt");
    static words w;
    static set s;
    size_t sets = 0, values = 0, mismatches = 0, n = 0, totals = 0;
    int more = 1;
    while (more) {
        more = words_next(f, &w);
        if (more && words_skip(&w))
            continue;
        if (sets > 0 && (!more || strcmp(w.word[0], "set") == 0))
            totals += near_total(&s) ? 1 : 0;
        if (!more)
            break;
        if (strcmp(w.word[0], "set") == 0) {
            ck_assert(w.count == 7 && strcmp(w.word[2], w.word[6]) == 0);
            s = (set){.f = format_of(w.word[2]), .max = words_real(w.word[3])};
            s.code = words_bits(w.word[5]);
            s.total = value_of(s.f, s.code);
            sets++;
        } else if (strcmp(w.word[0], "in") == 0) {
            ck_assert(s.tensors < 16);
            n = tensor(s.f, &w, in);
            s.norms[s.tensors++] = mpsim_norm(s.f, in, n);
        } else {
            ck_assert_str_eq(w.word[0], "out");
            ck_assert(tensor(s.f, &w, out) == n);
            mismatches += clipped(&s, n);
            values += n;
        }
    }
    fclose(f);
    printf("# clip.txt: %zu sets, %zu values, %zu mismatches; %zu norms agree\n", sets, values, mismatches, totals);
    ck_assert(mismatches == 0 && totals == sets && sets >= 20 && values >= 1000);
}

TEST_MAIN("t-gradient-recorded");
